//! The devices of a session, and the one place that decides between them and the cores.
//!
//! ```text
//! with_tadoc ──▶ DeviceSession, an extension of the session's configuration
//!                  accelerator   tasks over corpora   (a trait of tadoc)
//!                  columns       GSST columns         (a trait of gsst)
//!                  stores        rates of stores, as they are read
//!                  missed work   ──▶ opens the devices if it is large
//! ```
//!
//! The crate `tadoc-cuda` implements both traits. A build without this crate, or a session that was
//! not set up, has no devices. All work then goes to the cores, and the reason says so. A session
//! opens its devices once. If work goes to the cores and open devices may be faster, it is missed work.
//! The session adds up its text, and opens the devices for later work when there is enough.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::prelude::SessionConfig;

use crate::placement::observed::ObservedStores;
use crate::throughput::calibration::{DeviceCalibration, installed_device};
use crate::throughput::{Calibration, DeviceState};
use gsst::parquet::device::ColumnDevice;
use tadoc::accelerator::{Accelerator, SegmentTask};
use tadoc::segment::Segment;

/// Bytes of text of missed work that are worth opening the devices. The cores are done with less text
/// before a device is open.
const WORTH_OPENING_BYTES: u64 = 64 << 20;

/// The devices of a session. The session's configuration holds it as an extension.
pub struct DeviceSession {
    devices: std::result::Result<Devices, &'static str>,
    /// Bytes of text of the work so far on which open devices may have been faster.
    missed_bytes: AtomicU64,
    is_last: AtomicBool,
    /// Name of the device that the system has, if it says so.
    installed: OnceLock<Option<String>>,
    stores: Arc<ObservedStores>,
}

/// Devices, and the name of the first one, which is set when they are open.
#[derive(Debug)]
struct Devices {
    accelerator: Arc<dyn Accelerator>,
    columns: Arc<dyn ColumnDevice>,
    name: Arc<OnceLock<String>>,
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
        Self::build(Ok(Devices { accelerator, columns, name: Arc::default() }))
    }

    fn build(devices: std::result::Result<Devices, &'static str>) -> Self {
        Self {
            devices,
            missed_bytes: AtomicU64::new(0),
            is_last: AtomicBool::new(false),
            installed: OnceLock::new(),
            stores: Arc::default(),
        }
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

    /// Adds work on `text_bytes` of text to the missed work. Opens the devices if there is enough.
    pub(crate) fn miss(&self, text_bytes: u64) {
        let before = self.missed_bytes.fetch_add(text_bytes, Ordering::Relaxed);
        let is_worth = before.saturating_add(text_bytes) >= WORTH_OPENING_BYTES;
        let is_last = self.is_last.load(Ordering::Relaxed);
        if is_worth && !is_last && self.state() == DeviceState::Closed {
            self.open_soon();
        }
    }

    /// Returns the rates that plans use. Without a calibration, the rates of a device are those that
    /// are built in for its name.
    pub(crate) fn calibration(&self) -> Calibration {
        let mut calibration = Calibration::load().unwrap_or_else(|error| {
            tracing::warn!(%error, "planning with built-in rates; run tadoc calibrate");
            Calibration::default()
        });
        if calibration.device.is_none() {
            calibration.device = self.device_name().map(DeviceCalibration::named);
        }
        calibration
    }

    fn device_name(&self) -> Option<&String> {
        let devices = self.devices.as_ref().ok()?;
        devices.name.get().or_else(|| self.installed.get_or_init(installed_device).as_ref())
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

/// Returns the devices of NVIDIA. They are named when they are opened.
#[cfg(feature = "cuda")]
fn devices_of_build() -> std::result::Result<Devices, &'static str> {
    let name = Arc::new(OnceLock::new());
    let found = Arc::clone(&name);
    let session = Arc::new(tadoc_cuda::CudaSession::new(move |device| {
        let _known_before = found.set(device.name().to_owned());
    }));
    Ok(Devices { accelerator: session.clone(), columns: session, name })
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
    use crate::throughput::Hindrance;

    /// Runs a scan that takes `cores_s` on the cores and 30 ms on a device, and returns the reason
    /// against the device.
    fn scan(devices: &DeviceSession, cores_s: f64) -> Option<Hindrance> {
        let choose = |state: &dyn Fn() -> DeviceState| Hindrance::for_times(cores_s, 0.03, 0.35, state);
        let hindrance = devices.decide(choose, Option::is_none);
        if hindrance == Some(Hindrance::Closed) {
            devices.miss(WORTH_OPENING_BYTES / 4);
        }
        hindrance
    }

    #[test]
    fn missed_scans_open_the_device_for_those_after_them() {
        let fake = FakeDevices::new(DeviceState::Closed);
        let devices = session(&fake);
        for num_openings in [0, 0, 0, 1] {
            assert_eq!(scan(&devices, 0.14), Some(Hindrance::Closed));
            assert_eq!(fake.num_openings(), num_openings);
        }
        fake.set_state(DeviceState::Opening { elapsed_s: 0.01 });
        assert_eq!(scan(&devices, 0.14), Some(Hindrance::Opening));
        fake.set_state(DeviceState::Open);
        assert_eq!(scan(&devices, 0.14), None);
        devices.miss(u64::MAX);
        assert_eq!(fake.num_openings(), 1);
    }

    #[test]
    fn work_that_the_cores_do_faster_opens_nothing() {
        let fake = FakeDevices::new(DeviceState::Closed);
        let devices = session(&fake);
        for _ in 0..100 {
            assert_eq!(scan(&devices, 0.03), Some(Hindrance::Slower));
        }
        assert_eq!(fake.num_openings(), 0);
    }

    #[test]
    fn the_last_statement_opens_nothing() {
        let fake = FakeDevices::new(DeviceState::Closed);
        let devices = session(&fake);
        devices.expect_last_statement();
        devices.miss(WORTH_OPENING_BYTES);
        assert_eq!(fake.num_openings(), 0);
        // A scan that is long enough waits for the device all the same.
        assert_eq!(scan(&devices, 4.0), None);
    }

    #[test]
    fn a_device_that_the_driver_does_not_have_is_not_chosen() {
        let fake = FakeDevices::new(DeviceState::Open);
        let devices = session(&fake);
        fake.set_problem("no device");
        assert_eq!(scan(&devices, 0.14), Some(Hindrance::Missing("no device".to_owned())));
        let error = devices.demand().unwrap_err().to_string();
        assert!(error.contains("tadoc.device = gpu: no device; SET tadoc.device"), "{error}");
    }

    #[test]
    fn two_sessions_have_devices_of_their_own() {
        let [one, other] = [(); 2].map(|()| Arc::new(DeviceSession::new()));
        let config = |devices: &Arc<_>| SessionConfig::new().with_extension(Arc::clone(devices));
        let [first, second] = [&one, &other].map(|devices| DeviceSession::from_config(&config(devices)));
        assert!(Arc::ptr_eq(&first, &one) && Arc::ptr_eq(&second, &other));
        let none = DeviceSession::from_config(&SessionConfig::new());
        assert!(none.accelerator().is_none() && none.problem().is_some());
    }
}
