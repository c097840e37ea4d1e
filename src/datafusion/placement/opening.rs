//! Devices of a process: opened once, on a thread of their own, while statements go on.
//!
//! ```text
//! closed ── miss: saved enough by now, or open_soon ──▶ opening ─┬▶ open
//!        └─ get ───────────────▶ waits for it ───────────────────┴▶ failed: never opened again
//! ```
//!
//! All sessions share it. The thread is nobody's to wait for: a runtime that ends leaves it behind, and so
//! does a process, which should then end without the driver's own clean-up ([`Opening::is_working`]): that would
//! wait for the call of the driver that is under way.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use crate::throughput::{DeviceState, is_worth_opening};

/// See the module's description; `F` opens the devices.
#[derive(Debug)]
pub(crate) struct Opening<T, E, F = fn() -> Result<T, E>> {
    open: F,
    opened: OnceLock<Result<T, E>>,
    since: OnceLock<Instant>,
    is_working: AtomicBool,
    /// Time that work has missed so far because the devices are closed, in seconds.
    missed_s: Mutex<f64>,
    is_last: AtomicBool,
}

/// Says when the thread has ended, however it ends.
struct Working<'a>(&'a AtomicBool);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<T, E, F> Opening<T, E, F>
where
    T: Send + Sync + 'static,
    E: Display + Send + Sync + 'static,
    F: Fn() -> Result<T, E> + Send + Sync + 'static,
{
    /// Devices that nobody has opened.
    pub(crate) const fn new(open: F) -> Self {
        Self {
            open,
            opened: OnceLock::new(),
            since: OnceLock::new(),
            is_working: AtomicBool::new(false),
            missed_s: Mutex::new(0.0),
            is_last: AtomicBool::new(false),
        }
    }

    /// The devices, or why there are none; opens them, or waits until they are open.
    ///
    /// # Errors
    /// The error of opening them, the same each time.
    pub(crate) fn get(&self) -> Result<&T, &E> {
        self.since.get_or_init(Instant::now);
        self.opened.get_or_init(&self.open).as_ref()
    }

    /// The devices, or why there are none, if that is known.
    pub(crate) fn if_opened(&self) -> Option<Result<&T, &E>> {
        self.opened.get().map(Result::as_ref)
    }

    /// Returns at once.
    pub(crate) fn state(&self) -> DeviceState {
        match (self.opened.get(), self.since.get()) {
            (Some(Ok(_)), _) => DeviceState::Open,
            (Some(Err(error)), _) => DeviceState::Missing(error.to_string()),
            (None, Some(since)) => {
                DeviceState::Opening { elapsed_s: since.elapsed().as_secs_f64() }
            }
            (None, None) => DeviceState::Closed,
        }
    }

    /// Notes that work on `num_cores` cores would have been done `gain_s` seconds earlier on open devices, if that is a gain, and
    /// opens them as [`open_soon`](Self::open_soon) does where they are worth it.
    pub(crate) fn miss(
        &'static self,
        gain_s: f64,
        startup_s: f64,
        num_cores: usize,
        then: impl FnOnce(&'static T) + Send + 'static,
    ) {
        let is_last = self.is_last.load(Ordering::Relaxed);
        if gain_s <= 0.0 || is_last || self.state() != DeviceState::Closed {
            return;
        }
        let mut missed_s = self.missed_s.lock().unwrap_or_else(PoisonError::into_inner);
        *missed_s += gain_s;
        if is_worth_opening(*missed_s, startup_s, num_cores) {
            self.open_soon(then);
        }
    }

    /// Opens devices that are closed on a thread of their own, which goes on with `then` where they are open.
    pub(crate) fn open_soon(&'static self, then: impl FnOnce(&'static T) + Send + 'static) {
        if self.since.set(Instant::now()).is_err() {
            return;
        }
        self.is_working.store(true, Ordering::Release);
        let working = Working(&self.is_working);
        let work = move || {
            let _working = working;
            if let Ok(devices) = self.get() {
                then(devices);
            }
        };
        // Without a thread they are opened by whoever needs them.
        let _ = thread::Builder::new().name("tadoc-device".to_owned()).spawn(work);
    }

    /// Says that nothing comes after the work that begins now: nothing [missed](Self::miss) from now on is worth
    /// opening devices for.
    pub(crate) fn expect_nothing_more(&self) {
        self.is_last.store(true, Ordering::Relaxed);
    }

    /// Returns true while the thread is at work.
    pub(crate) fn is_working(&self) -> bool {
        self.is_working.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use super::*;
    use crate::throughput::{Decision, Effort, Hindrance, decide};

    type Answer = Result<&'static str, &'static str>;
    type Fake = Opening<&'static str, &'static str, Box<dyn Fn() -> Answer + Send + Sync>>;

    const STARTUP_S: f64 = 0.35;
    /// A scan of 30 million rows on 16 cores.
    const SCAN: Effort = Effort {
        cores_s: 0.14,
        device_s: 0.03,
        copies_s: 0.0,
        saved_s: 0.0,
        startup_s: STARTUP_S,
        margin: 0.9,
    };

    /// Devices that open when they are told how; how often they were asked.
    fn fake() -> (&'static Fake, Sender<Answer>, &'static AtomicUsize) {
        let (tell, told) = channel();
        let num_asked: &AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
        let told: Mutex<Receiver<Answer>> = Mutex::new(told);
        let open = move || {
            num_asked.fetch_add(1, Ordering::SeqCst);
            told.lock().unwrap().recv_timeout(Duration::from_secs(60)).unwrap()
        };
        let open: Box<dyn Fn() -> Answer + Send + Sync> = Box::new(open);
        (Box::leak(Box::new(Fake::new(open))), tell, num_asked)
    }

    /// A statement of a session: where it ran, after it has noted what it missed.
    fn run(devices: &'static Fake, effort: &Effort) -> Decision {
        let decision = decide(effort, || devices.state());
        if decision == Decision::Cores(Hindrance::Closed) {
            devices.miss(effort.gain_s(), effort.startup_s, 16, |_| {});
        }
        decision
    }

    fn wait_until(is_done: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_done() {
            assert!(start.elapsed() < Duration::from_secs(60), "it never happened");
            thread::yield_now();
        }
    }

    #[test]
    fn a_scan_opens_the_device_for_those_after_it() {
        let (devices, tell, num_asked) = fake();
        assert_eq!(devices.state(), DeviceState::Closed);
        assert!(devices.if_opened().is_none());
        assert_eq!(run(devices, &SCAN), Decision::Cores(Hindrance::Closed));
        assert!(matches!(devices.state(), DeviceState::Opening { .. }) && devices.is_working());
        // Another session, meanwhile.
        assert_eq!(run(devices, &SCAN), Decision::Cores(Hindrance::Opening));
        tell.send(Ok("a device")).unwrap();
        wait_until(|| !devices.is_working());
        for _of_both_sessions in 0..2 {
            assert_eq!(run(devices, &SCAN), Decision::Device);
        }
        assert_eq!((devices.get(), num_asked.load(Ordering::SeqCst)), (Ok(&"a device"), 1));
    }

    #[test]
    fn what_failed_is_never_asked_again() {
        let (devices, tell, num_asked) = fake();
        assert_eq!(run(devices, &SCAN), Decision::Cores(Hindrance::Closed));
        tell.send(Err("the driver is too old")).unwrap();
        wait_until(|| !devices.is_working());
        let reason = || "the driver is too old".to_owned();
        for _of_both_sessions in 0..2 {
            assert_eq!(run(devices, &SCAN), Decision::Cores(Hindrance::Missing(reason())));
            devices.open_soon(|_| unreachable!("it failed"));
            assert_eq!(devices.state(), DeviceState::Missing(reason()));
        }
        assert_eq!(devices.get(), Err(&"the driver is too old"));
        assert_eq!(num_asked.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn short_statements_open_it_together() {
        let (devices, tell, num_asked) = fake();
        let short = Effort { cores_s: 0.005, device_s: 0.0025, ..SCAN };
        let num_runs = (1..).find(|_| {
            assert_eq!(run(devices, &short), Decision::Cores(Hindrance::Closed));
            devices.state() != DeviceState::Closed
        });
        // 2 ms each, of the 0.35 s / 16 that opening takes of the cores.
        assert_eq!(num_runs, Some(11));
        // What the cores do faster opens nothing.
        let (others, _, _) = fake();
        let slower = Effort { device_s: 0.2, ..SCAN };
        assert_eq!(run(others, &slower), Decision::Cores(Hindrance::Slower));
        assert_eq!(others.state(), DeviceState::Closed);
        tell.send(Ok("a device")).unwrap();
        wait_until(|| !devices.is_working());
        assert_eq!(num_asked.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn the_last_statement_opens_nothing() {
        let (devices, _, num_asked) = fake();
        devices.expect_nothing_more();
        assert_eq!(run(devices, &SCAN), Decision::Cores(Hindrance::Closed));
        assert_eq!((devices.state(), devices.is_working()), (DeviceState::Closed, false));
        assert_eq!(num_asked.load(Ordering::SeqCst), 0);
        // Unless it is so long that it waits for it.
        let long = Effort { cores_s: 4.0, device_s: 1.0, ..SCAN };
        assert_eq!(run(devices, &long), Decision::Device);
    }

    #[test]
    fn whoever_needs_it_waits_for_the_thread() {
        let (devices, tell, num_asked) = fake();
        let (then, reached) = channel();
        devices.open_soon(move |device| then.send(*device).unwrap());
        let waiting = thread::spawn(|| devices.get().copied());
        tell.send(Ok("a device")).unwrap();
        assert_eq!(waiting.join().unwrap(), Ok("a device"));
        assert_eq!(reached.recv().unwrap(), "a device");
        assert_eq!(num_asked.load(Ordering::SeqCst), 1);
    }
}
