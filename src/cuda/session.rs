//! The devices of a session, with copies of segments and scanners of GSST columns.
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

mod columns;
mod corpora;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::corpus::{CopyKey, CorpusCopies};
use crate::device::{Device, has_driver};
use crate::devices::{Devices, Opening};
use crate::error::GpuError;
use crate::gsst_scan::{GsstScanner, ScanOptions};
use corpora::Homes;
use gsst::CodeWidth;
use tadoc::accelerator::DeviceState;

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
