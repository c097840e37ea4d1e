//! The devices of the host, handed out in turn, and those of a session, with copies of segments and
//! scanners of GSST columns.
//!
//! ```text
//! CudaSession ── Opening ──▶ seats, one for each device
//!   seat       scanner     blocks of GSST columns          (columns)
//!              copies      of segments, behind a lock      (corpora)
//!   homes      segment ──▶ its seat, which stays the same while the segment is loaded
//! ```
//!
//! A session opens its devices once and limits their memory. The sessions of a process share the
//! context of a device, so the second session opens quickly. If a device has too little memory for
//! a request, the session drops what it keeps there for other requests, and tries again.
//!
//! # Opening
//!
//! Devices are opened on a thread of their own, while statements go on.
//!
//! ```text
//! closed ── open_soon ──▶ opening ─┬▶ open
//!        └─ get ─▶ waits for it ───┴▶ failed: never opened again
//! ```
//!
//! Nobody waits for the thread: a runtime that ends leaves it behind, and so does a process. Such a process should end
//! without the driver's own clean-up ([`Opening::is_working`]), because that waits for the running call of the driver.

mod columns;
mod work;

use std::fmt::{self, Display};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use gsst::CodeWidth;
use tadoc::accelerator::DeviceState;

use crate::corpus::{CopyKey, CorpusCopies};
use crate::device::{Device, has_driver, num_devices};
use crate::error::{self, GpuError};
use crate::gsst_scan::{GsstScanner, ScanOptions};
use work::Homes;

/// Function that gets the first device when the devices are open.
type AfterOpening = dyn Fn(&Device) + Send + Sync;

/// The devices of a session. Implements [`Accelerator`](tadoc::accelerator::Accelerator) for
/// corpora and [`ColumnDevice`](gsst::parquet::device::ColumnDevice) for GSST columns.
///
/// ```
/// use tadoc::accelerator::{Accelerator, DeviceState};
/// use tadoc_cuda::CudaSession;
///
/// let session = CudaSession::new(|device| println!("{} is open", device.name()));
/// match session.problem() {
///     None => session.open_soon(),
///     Some(reason) => assert_eq!(session.state(), DeviceState::Missing(reason)),
/// }
/// ```
pub struct CudaSession {
    seats: Arc<Opening<Vec<Arc<Seat>>, GpuError>>,
    num_devices: OnceLock<Result<usize, GpuError>>,
    homes: Mutex<Homes>,
    after_opening: Arc<AfterOpening>,
}

/// A device and its contents.
#[derive(Debug)]
pub(super) struct Seat {
    /// Index of the seat in its session.
    position: usize,
    device: Device,
    scanner: GsstScanner,
    copies: Mutex<CorpusCopies>,
    /// Keys of the copies at the last release of their lock. Can be read without that lock.
    kept: Mutex<Vec<CopyKey>>,
}

impl fmt::Debug for CudaSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaSession").field("state", &self.state_now()).finish_non_exhaustive()
    }
}

impl CudaSession {
    /// Builds a session whose devices are closed. The thread that opens them then calls
    /// `after_opening` with the first one.
    pub fn new(after_opening: impl Fn(&Device) + Send + Sync + 'static) -> Self {
        Self {
            seats: Arc::new(Opening::new(open_all)),
            num_devices: OnceLock::new(),
            homes: Mutex::default(),
            after_opening: Arc::new(after_opening),
        }
    }

    fn state_now(&self) -> DeviceState {
        if !has_driver() {
            return DeviceState::Missing(GpuError::NoDriver.to_string());
        }
        if let Some(Err(error)) = self.num_devices.get() {
            return DeviceState::Missing(error.to_string());
        }
        match self.seats.if_opened().map(usable) {
            Some(Err(error)) => DeviceState::Missing(error.to_string()),
            _ => self.seats.state(),
        }
    }

    /// Returns the seats of devices that did not fail; at least one.
    fn usable_seats(&self) -> Result<Vec<&Arc<Seat>>, GpuError> {
        usable(self.seats.get())
    }

    /// Returns the seats if the devices are open, and no seats otherwise.
    fn open_seats(&self) -> &[Arc<Seat>] {
        self.seats.if_opened().and_then(Result::ok).map_or(&[], Vec::as_slice)
    }
}

impl Seat {
    /// Drops the copies of segments and the free memory of the scanner, unless a task works on the
    /// copies.
    fn release(&self) {
        self.scanner.release_idle();
        if let Ok(mut copies) = self.copies.try_lock() {
            copies.clear();
            *lock(&self.kept) = copies.keys();
            // The memory is free when earlier work is done. The caller of that work gets its
            // faults.
            let _ = self.device.synchronize();
        }
    }

    /// Returns the result of `work`. If the device has too little memory, releases this seat's
    /// other contents and tries again.
    fn retried<T>(&self, work: impl Fn() -> Result<T, GpuError>) -> Result<T, GpuError> {
        work().or_else(|error| match error {
            GpuError::OutOfMemory { .. } => {
                self.release();
                work()
            }
            other => Err(other),
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open_all() -> Result<Vec<Arc<Seat>>, GpuError> {
    let devices = Devices::open(u64::MAX)?;
    let seat = |(position, device): (usize, &Device)| {
        let scanner = GsstScanner::new(device, ScanOptions::default())?;
        let copies = Mutex::new(CorpusCopies::new(device.clone()));
        let device = device.clone();
        let kept = Mutex::default();
        Ok(Arc::new(Seat { position, device, scanner, copies, kept }))
    };
    let seats = devices.all().iter().enumerate().map(seat).collect::<Result<Vec<_>, GpuError>>()?;
    load_kernels(&seats);
    Ok(seats)
}

/// Loads the kernels of all scanners in parallel. A failure is reported by the first run.
fn load_kernels(seats: &[Arc<Seat>]) {
    std::thread::scope(|scope| {
        for seat in seats {
            let load = |width| seat.scanner.load(width);
            scope.spawn(move || load(CodeWidth::Eight).and_then(|()| load(CodeWidth::Twelve)));
        }
    });
}

fn usable<'a>(seats: Result<&'a Vec<Arc<Seat>>, &GpuError>) -> Result<Vec<&'a Arc<Seat>>, GpuError> {
    let mut usable = Vec::new();
    let mut lost = GpuError::NoDevice;
    for seat in seats.map_err(GpuError::clone)? {
        match seat.device.check() {
            Ok(()) => usable.push(seat),
            Err(error) => lost = error,
        }
    }
    if usable.is_empty() { Err(lost) } else { Ok(usable) }
}

/// The devices that could be opened. The partitions of a scan take them in turn.
#[derive(Debug)]
pub struct Devices {
    devices: Vec<Device>,
    next: AtomicUsize,
}

impl Devices {
    /// Opens every device, each with at most `max_bytes` of device memory. Leaves out the devices
    /// that cannot be opened, if at least one can.
    ///
    /// # Errors
    ///
    /// The errors of [`num_devices`]. If no device can be opened, the error of the first one.
    pub fn open(max_bytes: u64) -> Result<Self, GpuError> {
        let opened = open_each(num_devices()?);
        let first_error = opened.iter().find_map(|device| device.as_ref().err().cloned());
        let devices: Vec<_> = opened.into_iter().flatten().map(|device| device.with_max_bytes(max_bytes)).collect();
        match first_error {
            Some(error) if devices.is_empty() => Err(error),
            _ => Ok(Self { devices, next: AtomicUsize::new(0) }),
        }
    }

    /// Returns the number of devices; at least one.
    pub fn len(&self) -> usize {
        self.devices.len()
    }

    /// Returns false always, because opening no device is an error.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// Returns all devices, by ordinal.
    pub fn all(&self) -> &[Device] {
        &self.devices
    }

    /// Returns the next device in turn that is not lost.
    ///
    /// # Errors
    ///
    /// [`GpuError::Lost`] if all devices are lost.
    pub fn next(&self) -> Result<&Device, GpuError> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let ordinals: Vec<_> = self.devices.iter().map(Device::ordinal).collect();
        in_turn(&ordinals, first).map(|at| &self.devices[at])
    }
}

/// Opens the devices below `num_devices` in parallel, because the driver needs a tenth of a second
/// for each.
fn open_each(num_devices: usize) -> Vec<Result<Device, GpuError>> {
    std::thread::scope(|scope| {
        let open = |ordinal| scope.spawn(move || Device::open(ordinal));
        let threads: Vec<_> = (0..num_devices).map(open).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

/// Returns the index of the first device in turn, from `first` on, that is not lost.
fn in_turn(ordinals: &[usize], first: usize) -> Result<usize, GpuError> {
    let places = (0..ordinals.len()).map(|i| first.wrapping_add(i) % ordinals.len());
    let mut error = GpuError::NoDevice;
    for at in places {
        match error::check(ordinals[at]) {
            Ok(()) => return Ok(at),
            Err(lost) => error = lost,
        }
    }
    Err(error)
}

/// A value of devices that `open` makes on first use.
pub(super) struct Opening<T, E> {
    open: Box<dyn Fn() -> Result<T, E> + Send + Sync>,
    opened: OnceLock<Result<T, E>>,
    since: OnceLock<Instant>,
    is_working: AtomicBool,
}

/// Notes that the thread has ended, however it ends.
struct Working<'a>(&'a AtomicBool);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<T, E> Opening<T, E>
where
    T: Send + Sync + 'static,
    E: Display + Send + Sync + 'static,
{
    /// Builds a value that is closed.
    pub(super) fn new(open: impl Fn() -> Result<T, E> + Send + Sync + 'static) -> Self {
        Self {
            open: Box::new(open),
            opened: OnceLock::new(),
            since: OnceLock::new(),
            is_working: AtomicBool::new(false),
        }
    }

    /// Returns the devices. Opens them, or waits until they are open.
    ///
    /// # Errors
    /// The error of opening them, the same each time.
    pub(super) fn get(&self) -> Result<&T, &E> {
        self.since.get_or_init(Instant::now);
        self.opened.get_or_init(&self.open).as_ref()
    }

    /// Returns the devices, or the reason why there are none, if that is known.
    pub(super) fn if_opened(&self) -> Option<Result<&T, &E>> {
        self.opened.get().map(Result::as_ref)
    }

    /// Returns the state without waiting.
    pub(super) fn state(&self) -> DeviceState {
        match (self.opened.get(), self.since.get()) {
            (Some(Ok(_)), _) => DeviceState::Open,
            (Some(Err(error)), _) => DeviceState::Missing(error.to_string()),
            (None, Some(since)) => DeviceState::Opening { elapsed_s: since.elapsed().as_secs_f64() },
            (None, None) => DeviceState::Closed,
        }
    }

    /// Opens devices that are closed on a thread of their own. The thread then calls `then`.
    pub(super) fn open_soon(self: &Arc<Self>, then: impl FnOnce(&T) + Send + 'static) {
        if self.since.set(Instant::now()).is_err() {
            return;
        }
        self.is_working.store(true, Ordering::Release);
        let opening = Arc::clone(self);
        let work = move || {
            let _working = Working(&opening.is_working);
            if let Ok(devices) = opening.get() {
                then(devices);
            }
        };
        // Without a thread, the first user opens them.
        if thread::Builder::new().name("tadoc-device".to_owned()).spawn(work).is_err() {
            self.is_working.store(false, Ordering::Release);
        }
    }

    /// Returns true while the thread runs.
    pub(super) fn is_working(&self) -> bool {
        self.is_working.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use super::*;

    #[test]
    fn devices_take_turns_and_lost_ones_are_left_out() {
        let ordinals = [5_000, 5_001, 5_002];
        let turns = |num| (0..num).map(|first| in_turn(&ordinals, first)).collect::<Vec<_>>();
        assert_eq!(turns(4), [Ok(0), Ok(1), Ok(2), Ok(0)]);
        let fault = GpuError::Driver { what: "a test", code: 719, reason: "none".to_owned() };
        error::note(5_001, &fault);
        assert_eq!(turns(4), [Ok(0), Ok(2), Ok(2), Ok(0)]);
        error::note(5_000, &fault);
        error::note(5_002, &fault);
        assert!(matches!(in_turn(&ordinals, 0), Err(GpuError::Lost { ordinal: 5_002, .. })));
        assert_eq!(in_turn(&[], 3), Err(GpuError::NoDevice));
    }

    type Answer = Result<&'static str, &'static str>;
    type Fake = Arc<Opening<&'static str, &'static str>>;

    /// Returns devices that open when they are told how, and the number of openings.
    fn fake() -> (Fake, Sender<Answer>, Arc<AtomicUsize>) {
        let (tell, told) = channel::<Answer>();
        let told = Mutex::new(told);
        let num_asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&num_asked);
        let open = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.recv_timeout(Duration::from_secs(60)).unwrap()
        };
        (Arc::new(Opening::new(open)), tell, num_asked)
    }

    fn wait_until(is_done: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_done() {
            assert!(start.elapsed() < Duration::from_secs(60), "it never happened");
            thread::yield_now();
        }
    }

    #[test]
    fn devices_are_opened_once() {
        let (devices, tell, num_asked) = fake();
        assert_eq!(devices.state(), DeviceState::Closed);
        assert!(devices.if_opened().is_none());
        for _statement in 0..2 {
            devices.open_soon(|_| {});
            assert!(matches!(devices.state(), DeviceState::Opening { .. }));
            assert!(devices.is_working());
        }
        tell.send(Ok("a device")).unwrap();
        wait_until(|| !devices.is_working());
        assert_eq!(devices.state(), DeviceState::Open);
        assert_eq!((devices.get(), num_asked.load(Ordering::SeqCst)), (Ok(&"a device"), 1));
    }

    #[test]
    fn devices_that_failed_are_never_opened_again() {
        let (devices, tell, num_asked) = fake();
        devices.open_soon(|_| unreachable!("it fails"));
        tell.send(Err("the driver is too old")).unwrap();
        wait_until(|| !devices.is_working());
        devices.open_soon(|_| unreachable!("it failed"));
        let reason = "the driver is too old".to_owned();
        assert_eq!(devices.state(), DeviceState::Missing(reason));
        assert_eq!(devices.get(), Err(&"the driver is too old"));
        assert_eq!(num_asked.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn users_wait_for_the_thread() {
        let (devices, tell, num_asked) = fake();
        let (then, reached) = channel();
        devices.open_soon(move |device| then.send(*device).unwrap());
        let waiting = Arc::clone(&devices);
        let waiting = thread::spawn(move || waiting.get().copied().map_err(|error| *error));
        tell.send(Ok("a device")).unwrap();
        assert_eq!(waiting.join().unwrap(), Ok("a device"));
        assert_eq!(reached.recv().unwrap(), "a device");
        assert_eq!(num_asked.load(Ordering::SeqCst), 1);
    }
}
