//! The rule that places work on the cores or on a device.
//!
//! ```text
//! gain = margin * cores - device            time that an open device with all copies saves
//!
//! gain <= 0           ─▶ cores
//! no device           ─▶ cores, with the reason
//! wait + owed <= gain ─▶ device             wait   remaining time of opening; 0 if open
//! otherwise           ─▶ cores              owed   copies, less the savings missed before
//! ```
//!
//! A process pays once for opening a device. If work stays on the cores only because the device is
//! closed, the device is opened beside that work ([`is_worth_opening`]), and later work finds it
//! open. So no work waits for a device longer than the device saves.
//!
//! Copies must pay for themselves. If copies cost more than the work gains, the work stays on the
//! cores. Later work of the same kind makes the copies as soon as the sum of the gains reaches
//! their cost. This is the ski-rental rule (Karlin et al., Algorithmica 1988): it costs at most
//! twice as much as the best choice.

use std::fmt;

pub use tadoc::accelerator::DeviceState;

/// Least remaining time of opening that is assumed until the device is open, as a part of the
/// whole time.
const LEAST_WAIT: f64 = 0.1;

/// Returns the seconds until a device in this state is open, if opening takes `startup_s`.
///
/// If opening takes longer than expected, the remaining time is assumed to equal the delay so far.
fn wait_s(state: &DeviceState, startup_s: f64) -> f64 {
    match state {
        DeviceState::Closed => startup_s,
        DeviceState::Opening { elapsed_s } => {
            (startup_s - elapsed_s).abs().max(LEAST_WAIT * startup_s)
        }
        DeviceState::Open => 0.0,
        DeviceState::Missing(_) => f64::INFINITY,
    }
}

/// Estimated times of some work, in seconds, and the margin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Time on the cores.
    pub cores_s: f64,
    /// Time on a device that is open and has all copies.
    pub device_s: f64,
    /// Time of the copies that the device needs first.
    pub copies_s: f64,
    /// Time that these copies would have saved for earlier work of the same kind.
    pub saved_s: f64,
    /// Time of opening the device.
    pub startup_s: f64,
    /// Largest part of the time of the cores that the device may take to be used.
    pub margin: f64,
}

impl Effort {
    /// Returns the seconds that a device saves if it is open and has all copies.
    ///
    /// The result is 0 or less if the cores are faster.
    pub fn gain_s(&self) -> f64 {
        self.margin * self.cores_s - self.device_s
    }
}

/// A decision where some work runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The device.
    Device,
    /// The cores, with the reason.
    Cores(Hindrance),
}

/// A reason why work does not run on a device.
#[derive(Debug, Clone, PartialEq)]
pub enum Hindrance {
    /// The cores are faster.
    Slower,
    /// The device would be faster, but not with the time of its copies.
    Copies,
    /// The device would be faster, but it is closed.
    Closed,
    /// The device would be faster, but it is still being opened.
    Opening,
    /// There is no device. The text says why.
    Missing(String),
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Slower => "estimated to take less time than on a device",
            Self::Copies => "estimated to take less time than on a device that lacks the corpus",
            Self::Closed => {
                "estimated to take less time than on a device that is to be opened first"
            }
            Self::Opening => "the device is being opened",
            Self::Missing(reason) => reason,
        })
    }
}

/// Decides whether work of this `effort` runs on the cores or on a device.
///
/// `state` is called only if a device would be faster, because the call loads the driver's library.
///
/// ```
/// use datafusion_tadoc::throughput::{Decision, DeviceState, Effort, Hindrance, decide};
///
/// let effort = Effort {
///     cores_s: 0.12,
///     device_s: 0.03,
///     copies_s: 0.0,
///     saved_s: 0.0,
///     startup_s: 0.35,
///     margin: 0.9,
/// };
/// assert_eq!(decide(&effort, || DeviceState::Closed), Decision::Cores(Hindrance::Closed));
/// assert_eq!(decide(&effort, || DeviceState::Open), Decision::Device);
/// ```
pub fn decide(effort: &Effort, state: impl FnOnce() -> DeviceState) -> Decision {
    let gain_s = effort.gain_s();
    if gain_s.is_nan() || gain_s <= 0.0 {
        return Decision::Cores(Hindrance::Slower);
    }
    let state = state();
    let owed_s = (effort.copies_s - effort.saved_s).max(0.0);
    if wait_s(&state, effort.startup_s) + owed_s <= gain_s {
        return Decision::Device;
    }
    Decision::Cores(match state {
        DeviceState::Open => Hindrance::Copies,
        DeviceState::Closed => Hindrance::Closed,
        DeviceState::Opening { .. } => Hindrance::Opening,
        DeviceState::Missing(reason) => Hindrance::Missing(reason),
    })
}

/// Returns true if it pays to open a closed device beside the work.
///
/// `missed_s` is the time that an open device would have saved so far on work of `num_cores` cores.
/// Opening keeps one core busy for `startup_s`.
pub fn is_worth_opening(missed_s: f64, startup_s: f64, num_cores: usize) -> bool {
    missed_s * num_cores as f64 >= startup_s
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCAN: Effort = Effort {
        cores_s: 0.14,
        device_s: 0.03,
        copies_s: 0.0,
        saved_s: 0.0,
        startup_s: 0.35,
        margin: 0.8,
    };

    fn hindrance(effort: &Effort, state: DeviceState) -> Option<Hindrance> {
        match decide(effort, || state) {
            Decision::Device => None,
            Decision::Cores(hindrance) => Some(hindrance),
        }
    }

    fn opening(elapsed_s: f64) -> DeviceState {
        DeviceState::Opening { elapsed_s }
    }

    #[test]
    fn a_statement_goes_to_the_device_as_soon_as_it_is_open() {
        assert_eq!(hindrance(&SCAN, DeviceState::Closed), Some(Hindrance::Closed));
        assert_eq!(hindrance(&SCAN, opening(0.01)), Some(Hindrance::Opening));
        assert_eq!(hindrance(&SCAN, DeviceState::Open), None);
        let reason = "no driver".to_owned();
        let missing = DeviceState::Missing(reason.clone());
        assert_eq!(hindrance(&SCAN, missing), Some(Hindrance::Missing(reason)));
    }

    /// Checks that no work waits longer than it gains.
    #[test]
    fn short_work_does_not_wait_and_long_work_does() {
        // The gain is 0.082 s. The work waits for the end of opening, but not for a longer delay.
        for (elapsed_s, is_waited_for) in
            [(0.2, false), (0.26, false), (0.28, true), (0.35, true), (0.42, true), (0.5, false)]
        {
            let waits = hindrance(&SCAN, opening(elapsed_s)).is_none();
            assert_eq!(waits, is_waited_for, "{elapsed_s}");
        }
        let long = Effort { cores_s: 4.0, device_s: 1.0, ..SCAN };
        assert_eq!(hindrance(&long, DeviceState::Closed), None);
        for elapsed_s in [0.0, 0.1, 1.0, 10.0, 1e9] {
            let short = Effort { cores_s: 0.03, device_s: 0.001, ..SCAN };
            assert_eq!(hindrance(&short, opening(elapsed_s)), Some(Hindrance::Opening));
        }
    }

    #[test]
    fn the_driver_is_not_asked_for_work_that_is_no_gain() {
        let slower = Effort { device_s: 0.2, ..SCAN };
        let asked = |effort: &Effort| decide(effort, || unreachable!("the driver is asked"));
        assert_eq!(asked(&slower), Decision::Cores(Hindrance::Slower));
        // A tie, NaN and infinity.
        for device_s in [0.8 * 0.14, f64::NAN, f64::INFINITY] {
            let effort = Effort { device_s, ..SCAN };
            assert_eq!(asked(&effort), Decision::Cores(Hindrance::Slower));
        }
    }

    /// Repeats a task and checks that copies are made as soon as they would have paid.
    #[test]
    fn copies_are_paid_by_the_work_that_they_save() {
        let dear = Effort { copies_s: 0.2, ..SCAN };
        let mut lost_s = 0.0;
        let made_at = (1..100).find(|_| {
            let effort = Effort { saved_s: lost_s, ..dear };
            match hindrance(&effort, DeviceState::Open) {
                None => true,
                Some(hindrance) => {
                    assert_eq!(hindrance, Hindrance::Copies);
                    lost_s += effort.gain_s();
                    false
                }
            }
        });
        assert_eq!(made_at, Some(3));
        assert!(lost_s <= dear.copies_s);
        let cheap = Effort { copies_s: 0.05, ..SCAN };
        assert_eq!(hindrance(&cheap, DeviceState::Open), None);
        // Savings missed before are no reason to wait for the driver.
        let paid = Effort { saved_s: 9.0, ..dear };
        assert_eq!(hindrance(&paid, DeviceState::Closed), Some(Hindrance::Closed));
        assert_eq!(hindrance(&paid, DeviceState::Open), None);
    }

    /// Checks that one scan of 30 million rows opens a device, and that many short scans do.
    #[test]
    fn a_device_is_opened_for_what_it_saves() {
        let gain_s = SCAN.gain_s();
        assert!(is_worth_opening(gain_s, SCAN.startup_s, 16));
        assert!(!is_worth_opening(gain_s / 10.0, SCAN.startup_s, 16));
        let num_short = (1..).find(|n| is_worth_opening(f64::from(*n) * 1e-3, 0.35, 16));
        assert_eq!(num_short, Some(22));
        // With few cores, opening takes a larger part of the processor.
        assert!(!is_worth_opening(gain_s, SCAN.startup_s, 2));
    }
}
