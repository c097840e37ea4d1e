//! The devices of a session, and the one place that decides between them and the cores.
//!
//! ```text
//! with_tadoc ──▶ DeviceSession, an extension of the session's configuration
//!                  accelerator   tasks over corpora   (a trait of tadoc)
//!                  columns       GSST columns         (a trait of gsst)
//!                  stores        rates of stores, as they are read
//!                  missed time   ──▶ opens the devices as soon as their opening would have paid
//! ```
//!
//! The crate `tadoc-cuda` implements both traits. A build without this crate, or a session that was
//! not set up, has no devices. All work then goes to the cores, and the reason says so. A session
//! opens its devices once. If work goes to the cores only because the devices are closed, the
//! session adds the lost time to the missed time, and opens the devices for later work when it is
//! worth it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::prelude::SessionConfig;

use crate::placement::observed::ObservedStores;
use crate::throughput::calibration::{DeviceCalibration, expected_device};
use crate::throughput::{Calibration, DeviceState, Effort, is_worth_opening};
use gsst::parquet::device::ColumnDevice;
use tadoc::accelerator::{Accelerator, SegmentTask};
use tadoc::segment::Segment;

/// The devices of a session. The session's configuration holds it as an extension.
pub struct DeviceSession {
    devices: std::result::Result<Devices, &'static str>,
    /// Seconds that work has missed so far because the devices are closed.
    missed_s: Mutex<f64>,
    is_last: AtomicBool,
    expected: OnceLock<Option<DeviceCalibration>>,
    stores: Arc<ObservedStores>,
}

/// Devices, and their rates, which are set when they are open.
#[derive(Debug)]
struct Devices {
    accelerator: Arc<dyn Accelerator>,
    columns: Arc<dyn ColumnDevice>,
    rates: Arc<OnceLock<DeviceCalibration>>,
}

impl fmt::Debug for DeviceSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceSession").field("devices", &self.devices).finish_non_exhaustive()
    }
}

impl Default for DeviceSession {
    /// Builds a session without devices.
    fn default() -> Self {
        Self::build(Err("the session was not set up for devices (with_tadoc)"))
    }
}

impl DeviceSession {
    /// Builds a session with the devices that this build supports. They are closed.
    pub fn new() -> Self {
        Self::build(devices_of_build())
    }

    /// Builds a session with devices of another crate. Their rates are calibrated or built in.
    pub fn with_devices(accelerator: Arc<dyn Accelerator>, columns: Arc<dyn ColumnDevice>) -> Self {
        Self::build(Ok(Devices { accelerator, columns, rates: Arc::default() }))
    }

    fn build(devices: std::result::Result<Devices, &'static str>) -> Self {
        let (missed_s, is_last) = (Mutex::new(0.0), AtomicBool::new(false));
        let (expected, stores) = (OnceLock::new(), Arc::default());
        Self { devices, missed_s, is_last, expected, stores }
    }

    /// Returns the devices of the session with this configuration.
    pub fn from_config(config: &SessionConfig) -> Arc<Self> {
        config.get_extension::<Self>().unwrap_or_default()
    }

    /// Declares that the next statement is the last one. No device is then opened in the background
    /// for later statements.
    pub fn expect_last_statement(&self) {
        self.is_last.store(true, Ordering::Relaxed);
    }

    /// Returns true while a thread opens a GPU. No query waits for that thread. A process that ends
    /// during this time should end without running its `atexit` handlers, because the driver's
    /// handler waits until the GPU is open.
    pub fn is_opening(&self) -> bool {
        self.accelerator().is_some_and(Accelerator::is_opening)
    }

    /// Returns the devices for tasks over corpora, if there are any.
    pub(crate) fn accelerator(&self) -> Option<&dyn Accelerator> {
        self.devices.as_ref().ok().map(|devices| devices.accelerator.as_ref())
    }

    /// Returns the devices for GSST columns, if there are any.
    pub(crate) fn columns(&self) -> Option<&Arc<dyn ColumnDevice>> {
        self.devices.as_ref().ok().map(|devices| &devices.columns)
    }

    /// Returns the rates of stores that the session has observed.
    pub(crate) fn stores(&self) -> &Arc<ObservedStores> {
        &self.stores
    }

    /// Returns the state of the devices without waiting.
    pub(crate) fn state(&self) -> DeviceState {
        match &self.devices {
            Ok(devices) => devices.accelerator.state(),
            Err(reason) => DeviceState::Missing((*reason).to_owned()),
        }
    }

    /// Returns the devices for tasks over corpora, or the reason why none can be used. Waits for the
    /// driver.
    pub(crate) fn usable(&self) -> std::result::Result<&dyn Accelerator, String> {
        let devices = self.devices.as_ref().map_err(|reason| (*reason).to_owned())?;
        match devices.accelerator.problem() {
            Some(problem) => Err(problem),
            None => Ok(devices.accelerator.as_ref()),
        }
    }

    /// Returns the reason why no device can be used. Waits for the driver.
    pub(crate) fn problem(&self) -> Option<String> {
        self.usable().err()
    }

    /// Checks that there is a device, because the user demands one.
    ///
    /// # Errors
    /// A plan error that says what the user can do.
    pub(crate) fn demand(&self) -> Result<()> {
        self.problem().map_or(Ok(()), |problem| plan_err!("{}", demanded_but(&problem)))
    }

    /// Opens the devices on another thread, unless they are being opened or are open.
    pub(crate) fn open_soon(&self) {
        if let Some(accelerator) = self.accelerator() {
            accelerator.open_soon();
        }
    }

    /// Returns the choice of `choose`, which can ask for the state of the devices. If the choice is
    /// a device, the session first asks the driver if there is one, and otherwise chooses again.
    pub(crate) fn decide<C>(
        &self,
        choose: impl Fn(&dyn Fn() -> DeviceState) -> C,
        is_on_device: impl Fn(&C) -> bool,
    ) -> C {
        let choice = choose(&|| self.state());
        let problem = if is_on_device(&choice) { self.problem() } else { None };
        match problem {
            Some(problem) => choose(&|| DeviceState::Missing(problem.clone())),
            None => choice,
        }
    }

    /// Adds to the missed time what open devices would have saved of work on `num_cores` cores.
    /// Opens the devices if the sum is worth it.
    pub(crate) fn miss(&self, effort: &Effort, num_cores: usize) {
        let is_last = self.is_last.load(Ordering::Relaxed);
        if effort.gain_s() <= 0.0 || is_last || self.state() != DeviceState::Closed {
            return;
        }
        let mut missed_s = self.missed_s.lock().unwrap_or_else(PoisonError::into_inner);
        *missed_s += effort.gain_s();
        if is_worth_opening(*missed_s, effort.startup_s, num_cores) {
            self.open_soon();
        }
    }

    /// Returns the rates that plans use. Without a calibration, the rates of a device are those
    /// that were measured when it was opened, or built-in ones.
    pub(crate) fn calibration(&self) -> Calibration {
        let mut calibration = Calibration::load().unwrap_or_else(|error| {
            tracing::warn!(%error, "planning with built-in rates; run tadoc calibrate");
            Calibration::default()
        });
        if calibration.device.is_none() {
            calibration.device = self.rates().cloned();
        }
        calibration
    }

    fn rates(&self) -> Option<&DeviceCalibration> {
        let devices = self.devices.as_ref().ok()?;
        devices.rates.get().or_else(|| self.expected.get_or_init(expected_device).as_ref())
    }

    /// Returns the number of elements in those of `segments` that lack, on every device, the copies
    /// that `task` needs.
    pub(crate) fn missing_elements(&self, task: SegmentTask, segments: &[Arc<Segment>]) -> u64 {
        match self.accelerator() {
            Some(accelerator) => accelerator.missing_elements(task, segments),
            None => segments.iter().map(|one| one.dag.grammar().symbols.len() as u64).sum(),
        }
    }

    /// Drops the copies of `segments` from the devices, because the segments are not loaded any
    /// more.
    pub(crate) fn forget<'a>(&self, mut segments: impl Iterator<Item = &'a Arc<Segment>>) {
        if let Some(accelerator) = self.accelerator() {
            accelerator.forget(&mut segments);
        }
    }
}

/// Returns the error text of a statement that demands a device.
pub(crate) fn demanded_but(problem: &str) -> String {
    format!("tadoc.device = gpu: {problem}; SET tadoc.device = 'auto'")
}

/// Returns the devices of NVIDIA. Their rates are measured or looked up when they are opened.
#[cfg(feature = "cuda")]
fn devices_of_build() -> std::result::Result<Devices, &'static str> {
    use crate::throughput::calibration::{GpuProbe, device_rates, measure_only_device};

    let rates = Arc::new(OnceLock::new());
    let found = Arc::clone(&rates);
    let session = Arc::new(tadoc_cuda::CudaSession::new(move |device| {
        let measure = || measure_only_device(&mut GpuProbe::open(device.ordinal())?);
        if let Some(rates) = device_rates(device.name(), measure) {
            let _known_before = found.set(rates);
        }
    }));
    Ok(Devices { accelerator: session.clone(), columns: session, rates })
}

/// Returns the reason why this build has no devices.
#[cfg(not(feature = "cuda"))]
fn devices_of_build() -> std::result::Result<Devices, &'static str> {
    Err("built without the feature cuda")
}

#[cfg(test)]
pub(super) mod fake;

#[cfg(test)]
mod tests {
    use super::fake::{FakeDevices, session};
    use super::*;
    use crate::throughput::{Decision, Hindrance, decide};

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

    /// Runs a statement of a session, and returns its place.
    fn run(devices: &DeviceSession, effort: &Effort) -> Decision {
        let choose = |state: &dyn Fn() -> DeviceState| decide(effort, state);
        let decision = devices.decide(choose, |decision| *decision == Decision::Device);
        if decision == Decision::Cores(Hindrance::Closed) {
            devices.miss(effort, 16);
        }
        decision
    }

    #[test]
    fn a_scan_opens_the_device_for_those_after_it() {
        let fake = FakeDevices::new(DeviceState::Closed);
        let devices = session(&fake);
        assert_eq!(run(&devices, &SCAN), Decision::Cores(Hindrance::Closed));
        assert_eq!(fake.num_openings(), 1);
        fake.set_state(DeviceState::Opening { elapsed_s: 0.01 });
        assert_eq!(run(&devices, &SCAN), Decision::Cores(Hindrance::Opening));
        fake.set_state(DeviceState::Open);
        assert_eq!(run(&devices, &SCAN), Decision::Device);
        assert_eq!(fake.num_openings(), 1);
    }

    #[test]
    fn short_statements_open_it_together() {
        let fake = FakeDevices::new(DeviceState::Closed);
        let devices = session(&fake);
        let short = Effort { cores_s: 0.005, device_s: 0.0025, ..SCAN };
        let num_runs = (1..).find(|_| {
            assert_eq!(run(&devices, &short), Decision::Cores(Hindrance::Closed));
            fake.num_openings() > 0
        });
        // Each misses 2 ms. Opening takes 0.35 s / 16 of the time of all cores.
        assert_eq!(num_runs, Some(11));
    }

    #[test]
    fn work_that_the_cores_do_faster_opens_nothing() {
        let fake = FakeDevices::new(DeviceState::Closed);
        let devices = session(&fake);
        let slower = Effort { device_s: 0.2, ..SCAN };
        for _ in 0..100 {
            assert_eq!(run(&devices, &slower), Decision::Cores(Hindrance::Slower));
            devices.miss(&slower, 16);
        }
        assert_eq!(fake.num_openings(), 0);
    }

    #[test]
    fn the_last_statement_opens_nothing() {
        let fake = FakeDevices::new(DeviceState::Closed);
        let devices = session(&fake);
        devices.expect_last_statement();
        assert_eq!(run(&devices, &SCAN), Decision::Cores(Hindrance::Closed));
        assert_eq!(fake.num_openings(), 0);
        // A statement that is long enough waits for the device all the same.
        let long = Effort { cores_s: 4.0, device_s: 1.0, ..SCAN };
        assert_eq!(run(&devices, &long), Decision::Device);
    }

    #[test]
    fn a_device_that_the_driver_does_not_have_is_not_chosen() {
        let fake = FakeDevices::new(DeviceState::Open);
        let devices = session(&fake);
        fake.set_problem("no device");
        let missing = Hindrance::Missing("no device".to_owned());
        assert_eq!(run(&devices, &SCAN), Decision::Cores(missing));
        let error = devices.demand().unwrap_err().to_string();
        assert!(error.contains("tadoc.device = gpu: no device; SET tadoc.device"), "{error}");
    }

    #[test]
    fn two_sessions_have_devices_of_their_own() {
        let [one, other] = [(); 2].map(|()| Arc::new(DeviceSession::new()));
        let config = |devices: &Arc<_>| SessionConfig::new().with_extension(Arc::clone(devices));
        let [first, second] =
            [&one, &other].map(|devices| DeviceSession::from_config(&config(devices)));
        assert!(Arc::ptr_eq(&first, &one) && Arc::ptr_eq(&second, &other));
        let none = DeviceSession::from_config(&SessionConfig::new());
        assert!(none.accelerator().is_none() && none.problem().is_some());
    }
}
