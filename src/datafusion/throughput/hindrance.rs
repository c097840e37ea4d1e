//! The rule that keeps a scan on the cores, with its reason.
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
//! closed, the device is opened beside that work, and later work finds it open. So no work waits
//! for a device longer than the device saves.

use std::fmt;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
