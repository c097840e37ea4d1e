//! The choice of CPU or GPU for a scan, with both predictions and a reason for `EXPLAIN`.
//!
//! The GPU pays if there is much text, if a filter removes many rows before they cross the bus, or
//! if few cores are free. A tie stays on the CPU, and so does a scan if opening the device takes too long:
//!
//! ```text
//! gain = margin * cores - device     time that an open device saves
//!
//! gain <= 0        ─▶ cores
//! no device        ─▶ cores, with the reason
//! wait <= gain     ─▶ device         wait   remaining time of opening; 0 if open
//! otherwise        ─▶ cores
//! ```
//!
//! A process pays once for opening a device. If work stays on the cores only because the device is
//! closed, the device is opened beside that work, and later work finds it open.

use std::fmt;

use super::model::{Column, Plan, Prediction, Query, Rates, Route, best_num_blocks, predict};
use super::rates::significant;
use tadoc::error::Result;

pub use tadoc::accelerator::DeviceState;

/// Largest part of the time of the cores that a device may take to get a scan.
const MARGIN: f64 = 0.9;
/// Least remaining time of opening that is assumed until the device is open, as a part of the
/// whole time.
const LEAST_WAIT: f64 = 0.1;

/// A reason why work does not run on a device.
#[derive(Debug, Clone, PartialEq)]
pub enum Hindrance {
    /// The cores are faster.
    Slower,
    /// The device would be faster, but it is closed.
    Closed,
    /// The device would be faster, but it is still being opened.
    Opening,
    /// There is no device. The text says why.
    Missing(String),
}

impl Hindrance {
    /// Returns the reason why work of `cores_s` seconds on the cores and `device_s` seconds on an
    /// open device stays on the cores. `None` if the device is to do it.
    ///
    /// Opening takes `startup_s` seconds. `state` is called only if a device would be faster,
    /// because the call loads the driver's library.
    ///
    /// ```
    /// use datafusion_tadoc::throughput::{DeviceState, Hindrance};
    ///
    /// let hindrance = |state| Hindrance::for_times(0.12, 0.03, 0.35, || state);
    /// assert_eq!(hindrance(DeviceState::Closed), Some(Hindrance::Closed));
    /// assert_eq!(hindrance(DeviceState::Open), None);
    /// ```
    pub fn for_times(cores_s: f64, device_s: f64, startup_s: f64, state: impl FnOnce() -> DeviceState) -> Option<Self> {
        let gain_s = MARGIN * cores_s - device_s;
        if gain_s.is_nan() || gain_s <= 0.0 {
            return Some(Self::Slower);
        }
        let state = state();
        if wait_s(&state, startup_s) <= gain_s {
            return None;
        }
        Self::for_state(state)
    }

    /// Returns the reason why work does not run on a device in this state. `None` if it is open.
    pub fn for_state(state: DeviceState) -> Option<Self> {
        match state {
            DeviceState::Open => None,
            DeviceState::Closed => Some(Self::Closed),
            DeviceState::Opening { .. } => Some(Self::Opening),
            DeviceState::Missing(reason) => Some(Self::Missing(reason)),
        }
    }
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Slower => "the cores take less time than a device",
            Self::Closed => "the device is to be opened first",
            Self::Opening => "the device is being opened",
            Self::Missing(reason) => reason,
        })
    }
}

/// Returns the seconds until a device in this state is open, if opening takes `startup_s`.
///
/// If opening takes longer than expected, the remaining time is assumed to equal the delay so far.
fn wait_s(state: &DeviceState, startup_s: f64) -> f64 {
    match state {
        DeviceState::Closed => startup_s,
        DeviceState::Opening { elapsed_s } => (startup_s - elapsed_s).abs().max(LEAST_WAIT * startup_s),
        DeviceState::Open => 0.0,
        DeviceState::Missing(_) => f64::INFINITY,
    }
}

/// Facts that are known when a query is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation {
    /// Number of blocks of the column. Each can be read and decoded alone.
    pub num_blocks: u64,
    /// True if the blocks are in device memory.
    pub is_resident: bool,
}

/// A choice of the route.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Route of the stored bytes.
    pub route: Route,
    /// Order of the stages.
    pub plan: Plan,
    /// Prediction for the cores.
    pub cpu: Prediction,
    /// Prediction for the device, without its startup; `None` if there is no device.
    pub gpu: Option<Prediction>,
    /// Reason against the device; `None` if the device decodes, or if there is no device.
    pub hindrance: Option<Hindrance>,
    /// Sentence that gives the reason.
    pub reason: String,
}

impl Choice {
    /// Returns the prediction for the chosen route.
    pub fn prediction(&self) -> &Prediction {
        match (&self.gpu, self.route) {
            (Some(gpu), Route::Gpu | Route::GpuResident) => gpu,
            _ => &self.cpu,
        }
    }
}

/// Chooses the route of stored bytes to what decodes them.
///
/// `state` is called only if a device would be faster, as by [`Hindrance::for_times`].
///
/// ```
/// use gsst::CodeWidth;
/// use datafusion_tadoc::throughput::{
///     Calibration, Column, DeviceState, Route, Query, Situation, choose,
/// };
///
/// let rates = Calibration::default().rates(CodeWidth::Eight, true);
/// let column = Column::new(1_000_000, 40_000, 2.84);
/// let query = Query {
///     selectivity: Some(0.01),
///     is_wanted_on_host: true,
///     are_rows_compared: false,
///     is_in_host_memory: true,
///     num_cores: 2,
/// };
/// let situation = Situation { num_blocks: 1, is_resident: false };
/// let choice = choose(&rates, &column, &query, &situation, || DeviceState::Closed)?;
/// assert_eq!(choice.route, Route::Cpu);
/// println!("{}", choice.reason);
/// # Ok::<(), tadoc::Error>(())
/// ```
///
/// # Errors
///
/// Errors of [`predict`].
pub fn choose(
    rates: &Rates,
    column: &Column,
    query: &Query,
    situation: &Situation,
    state: impl FnOnce() -> DeviceState,
) -> Result<Choice> {
    let num_blocks = situation.num_blocks.max(1);
    let cpu_plan = Plan::Overlapped { num_blocks };
    // One core decodes a block.
    let num_cores = query.num_cores.max(1).min(usize::try_from(num_blocks).unwrap_or(usize::MAX));
    let query = Query { num_cores, ..*query };
    let cpu = predict(rates, column, &query, Route::Cpu, cpu_plan)?;
    let on_cores = on_cores(&cpu, num_cores);
    let Some(device) = &rates.device else {
        return Ok(Choice {
            route: Route::Cpu,
            plan: cpu_plan,
            cpu,
            gpu: None,
            hindrance: None,
            reason: format!("CPU: there is no device; {on_cores}"),
        });
    };
    let gpu_route = if situation.is_resident { Route::GpuResident } else { Route::Gpu };
    // Each core feeds the device, so a stage processes as many blocks at a time as there are cores.
    let max_parts = num_blocks.div_ceil(num_cores as u64);
    let num_parts = best_num_blocks(rates, column, &query, gpu_route, max_parts)?;
    let gpu_plan = Plan::Overlapped { num_blocks: num_parts };
    let gpu = predict(rates, column, &query, gpu_route, gpu_plan)?;
    let on_device = format!("{} on the GPU (bound by {})", duration(gpu.seconds), gpu.binding);
    let hindrance = Hindrance::for_times(cpu.seconds, gpu.seconds, device.startup_s, state);
    let reason = match &hindrance {
        None => format!("GPU: {on_device} instead of {on_cores}"),
        Some(Hindrance::Slower) => format!("CPU: {on_cores} instead of {on_device}"),
        Some(Hindrance::Closed) => format!(
            "CPU: {on_cores} instead of {on_device}, which is to be opened first, in {}",
            duration(device.startup_s)
        ),
        Some(other) => format!("CPU: {other}; {on_cores} instead of {on_device}"),
    };
    let (route, plan) = if hindrance.is_some() { (Route::Cpu, cpu_plan) } else { (gpu_route, gpu_plan) };
    Ok(Choice { route, plan, cpu, gpu: Some(gpu), hindrance, reason })
}

fn on_cores(cpu: &Prediction, num_cores: usize) -> String {
    let cores = if num_cores == 1 { "core" } else { "cores" };
    format!("{} on {num_cores} {cores} (bound by {})", duration(cpu.seconds), cpu.binding)
}

/// Formats a duration in the largest of s, ms and us in which it is at least 1, else in us.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{} s", significant(s)),
        s if s >= 1e-3 => format!("{} ms", significant(s * 1e3)),
        s => format!("{} us", significant(s * 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::throughput::Calibration;
    use crate::throughput::model::{DeviceRates, Stage};
    use gsst::CodeWidth;

    const STARTUP_S: f64 = 0.35;

    /// Returns the hindrance of a scan of 30 million rows on 16 cores.
    fn hindrance(state: DeviceState) -> Option<Hindrance> {
        Hindrance::for_times(0.124, 0.03, STARTUP_S, || state)
    }

    fn opening(elapsed_s: f64) -> DeviceState {
        DeviceState::Opening { elapsed_s }
    }

    #[test]
    fn a_scan_goes_to_the_device_as_soon_as_it_is_open() {
        assert_eq!(hindrance(DeviceState::Closed), Some(Hindrance::Closed));
        assert_eq!(hindrance(opening(0.01)), Some(Hindrance::Opening));
        assert_eq!(hindrance(DeviceState::Open), None);
        let reason = "no driver".to_owned();
        let missing = DeviceState::Missing(reason.clone());
        assert_eq!(hindrance(missing), Some(Hindrance::Missing(reason)));
    }

    /// Checks that no work waits longer than it gains.
    #[test]
    fn short_work_does_not_wait_and_long_work_does() {
        // The gain is 0.0816 s. The work waits for the end of opening, but not for a longer delay.
        for (elapsed_s, is_waited_for) in
            [(0.2, false), (0.26, false), (0.28, true), (0.35, true), (0.42, true), (0.5, false)]
        {
            assert_eq!(hindrance(opening(elapsed_s)).is_none(), is_waited_for, "{elapsed_s}");
        }
        let long = Hindrance::for_times(4.0, 1.0, STARTUP_S, || DeviceState::Closed);
        assert_eq!(long, None);
        for elapsed_s in [0.0, 0.1, 1.0, 10.0, 1e9] {
            let short = Hindrance::for_times(0.03, 0.001, STARTUP_S, || opening(elapsed_s));
            assert_eq!(short, Some(Hindrance::Opening));
        }
    }

    #[test]
    fn the_driver_is_not_asked_for_work_that_is_no_gain() {
        // Slower, a tie, NaN and infinity.
        for device_s in [0.2, MARGIN * 0.124, f64::NAN, f64::INFINITY] {
            let asked = || unreachable!("the driver is asked");
            let hindrance = Hindrance::for_times(0.124, device_s, STARTUP_S, asked);
            assert_eq!(hindrance, Some(Hindrance::Slower));
        }
    }

    fn h200() -> Rates {
        let device = DeviceRates {
            h2d_gb_per_s: 55.0,
            d2h_gb_per_s: 55.0,
            decode_gb_per_s: 2390.0,
            matching_gb_per_s: 2000.0,
            memory_gb_per_s: 4300.0,
            launch_s: 7e-6,
            startup_s: 0.2,
        };
        let mut rates = Calibration::default().rates(CodeWidth::Eight, true);
        rates.cpu.check_gb_per_s = f64::INFINITY;
        rates.cpu.staging_gb_per_s = f64::INFINITY;
        Rates { device: Some(device), ..rates }
    }

    fn choice(text_bytes: u64, state: DeviceState, num_cores: usize) -> Choice {
        let column = Column::new(text_bytes, text_bytes / 26, 2.844);
        let query = Query {
            selectivity: Some(0.01),
            is_wanted_on_host: true,
            are_rows_compared: false,
            is_in_host_memory: true,
            num_cores,
        };
        let num_blocks = text_bytes.div_ceil(4 << 20);
        let situation = Situation { num_blocks, is_resident: false };
        choose(&h200(), &column, &query, &situation, || state).unwrap()
    }

    #[test]
    fn much_text_goes_to_the_device_and_little_stays() {
        let much = choice(4 << 30, DeviceState::Closed, 2);
        assert_eq!((much.route, &much.hindrance), (Route::Gpu, &None));
        assert_eq!(much.prediction(), much.gpu.as_ref().unwrap());
        assert_eq!(much.prediction().binding, Stage::HostToDevice);
        assert!(much.reason.starts_with("GPU: "), "{}", much.reason);
        let little = choice(4 << 20, DeviceState::Closed, 2);
        assert_eq!((little.route, little.prediction()), (Route::Cpu, &little.cpu));
        assert!(little.reason.contains("on 1 core (bound by CPU match)"), "{}", little.reason);
        assert!(little.reason.ends_with("is to be opened first, in 200 ms"), "{}", little.reason);
        let opening = choice(4 << 20, DeviceState::Opening { elapsed_s: 0.1 }, 2);
        assert_eq!(opening.hindrance, Some(Hindrance::Opening));
        assert!(opening.reason.starts_with("CPU: the device is being opened; "));
        let none = choice(4 << 20, DeviceState::Missing("no driver".to_owned()), 2);
        assert!(none.reason.starts_with("CPU: no driver; "), "{}", none.reason);
        assert_eq!(choice(4 << 20, DeviceState::Open, 2).route, Route::Gpu);
    }

    #[test]
    fn without_a_device_the_reason_says_so() {
        let rates = Rates { device: None, ..h200() };
        let column = Column::new(1000, 10, 2.0);
        let query = Query {
            selectivity: None,
            is_wanted_on_host: true,
            are_rows_compared: false,
            is_in_host_memory: false,
            num_cores: 8,
        };
        let situation = Situation { num_blocks: 1, is_resident: false };
        let choice = choose(&rates, &column, &query, &situation, || unreachable!()).unwrap();
        assert!(choice.reason.starts_with("CPU: there is no device; "), "{}", choice.reason);
        assert_eq!(choice.gpu, None);
        assert_eq!(choice.reason, "CPU: there is no device; 1.67 us on 1 core (bound by storage)");
    }

    #[test]
    fn resident_blocks_cross_nothing_but_their_answers() {
        let column = Column::new(1 << 30, 1 << 24, 2.844);
        let query = Query {
            selectivity: None,
            is_wanted_on_host: false,
            are_rows_compared: false,
            is_in_host_memory: true,
            num_cores: 16,
        };
        let situation = Situation { num_blocks: 256, is_resident: true };
        let choice = choose(&h200(), &column, &query, &situation, || DeviceState::Open).unwrap();
        assert_eq!(choice.route, Route::GpuResident);
        assert_eq!(choice.prediction().binding, Stage::DeviceDecode);
        assert!(choice.prediction().rate_gb_per_s > 2_000.0);
    }

    #[test]
    fn durations_have_the_unit_that_fits() {
        assert_eq!(duration(2.0), "2.00 s");
        assert_eq!(duration(0.0421), "42.1 ms");
        assert_eq!(duration(7e-6), "7.00 us");
        assert_eq!(duration(0.0), "0 us");
    }
}
