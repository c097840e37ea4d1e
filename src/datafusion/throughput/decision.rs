//! The rule by which work goes to the cores or to a device: two estimates, and the state of the device.
//!
//! ```text
//! gain = margin * cores - device            what an open device saves that has all it needs
//!
//! gain <= 0           ─▶ cores
//! no device           ─▶ cores, and why
//! wait + owed <= gain ─▶ device             wait   opening: all of it, the rest of it, or nothing
//! otherwise           ─▶ cores              owed   copies, less what they would have saved before
//! ```
//!
//! Opening is paid once in a process. Work that is left to the cores only because the device is closed has
//! it opened beside it ([`is_worth_opening`]), so that work after it finds it open. So no work waits
//! for a device longer than the device saves it. Copies are paid by what they save: the first work leaves them when
//! they cost more than it gains, and work like it makes them once the sum of the gains is as much (the ski-rental rule,
//! Karlin et al., Algorithmica 1988: at most twice the cost of the better way).

use std::fmt;

pub use tadoc::accelerator::DeviceState;

/// Part of the time of opening that is left to wait for at least, while nobody says that it has ended.
const LEAST_WAIT: f64 = 0.1;

/// Returns the seconds until a device in this state is open, if opening takes `startup_s`. A device
/// that is late is expected to need as long again as it is late.
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

/// Times of a piece of work, in seconds, and the margin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// On the cores.
    pub cores_s: f64,
    /// On a device that is open and has all it needs.
    pub device_s: f64,
    /// Copies that the device needs first.
    pub copies_s: f64,
    /// Time that the same work would have saved with these copies before.
    pub saved_s: f64,
    /// Opening the device.
    pub startup_s: f64,
    /// The device is used where its time is at most so much of that of the cores.
    pub margin: f64,
}

impl Effort {
    /// Seconds that a device saves which is open and has all it needs; 0 or less where the cores are faster.
    pub fn gain_s(&self) -> f64 {
        self.margin * self.cores_s - self.device_s
    }
}

/// Place of a piece of work.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// On the device.
    Device,
    /// On the cores, and why.
    Cores(Hindrance),
}

/// Reason why work is not done on a device.
#[derive(Debug, Clone, PartialEq)]
pub enum Hindrance {
    /// The cores are faster.
    Slower,
    /// The device would be faster, but for its copies.
    Copies,
    /// The device would be faster, but it is closed.
    Closed,
    /// The device would be faster, but it is still being opened.
    Opening,
    /// There is no device; with the reason.
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

/// Decides where work of this `effort` is done. The `state` of the device is only asked for where a device
/// would be faster: to ask loads the driver's library.
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

/// Returns true where it pays to open a closed device beside the work. Work on `num_cores` cores has missed `missed_s`
/// seconds so far; opening keeps one core busy for `startup_s`.
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

    /// Nobody waits longer than he gains.
    #[test]
    fn short_work_does_not_wait_and_long_work_does() {
        // 0.082 s are gained: the last of opening is worth waiting for, and not what is late by more.
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
        // Ties, and what is no number.
        for device_s in [0.8 * 0.14, f64::NAN, f64::INFINITY] {
            let effort = Effort { device_s, ..SCAN };
            assert_eq!(asked(&effort), Decision::Cores(Hindrance::Slower));
        }
    }

    /// The same task, asked again and again: copies are made when they would have paid.
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
        // What was saved before is no reason to wait for the driver.
        let paid = Effort { saved_s: 9.0, ..dear };
        assert_eq!(hindrance(&paid, DeviceState::Closed), Some(Hindrance::Closed));
        assert_eq!(hindrance(&paid, DeviceState::Open), None);
    }

    /// One scan of 30 million rows is enough, and so are many short ones.
    #[test]
    fn a_device_is_opened_for_what_it_saves() {
        let gain_s = SCAN.gain_s();
        assert!(is_worth_opening(gain_s, SCAN.startup_s, 16));
        assert!(!is_worth_opening(gain_s / 10.0, SCAN.startup_s, 16));
        let num_short = (1..).find(|n| is_worth_opening(f64::from(*n) * 1e-3, 0.35, 16));
        assert_eq!(num_short, Some(22));
        // Of few cores opening takes a larger part.
        assert!(!is_worth_opening(gain_s, SCAN.startup_s, 2));
    }
}
