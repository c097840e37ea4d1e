//! The place where work is done, with its reason: one type for tasks over corpora and GSST scans.
//!
//! A plan holds a placement and changes nothing. [`Placement::begin`] opens devices and notes
//! missed work when the plan is executed.

use std::fmt;

use datafusion::common::plan_err;
use datafusion::error::Result;

use crate::placement::chooser::SOME_DOCUMENTS;
use crate::placement::known::Finds;
use crate::placement::session::DeviceSession;
use crate::placement::task::Task;

/// The place where work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Place {
    #[default]
    Cpu,
    Device,
    /// A device is demanded, and there is none.
    Nowhere,
}

/// The place where work is done, with its reason. Without a decision it is the CPU.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Placement {
    pub(crate) place: Place,
    pub(crate) reason: String,
    /// True if a device was chosen only because the statement asks for all documents.
    pub(crate) is_for_all: bool,
    /// The task whose runs are timed, and what this run finds.
    pub(crate) timed: Option<(Task, Finds)>,
    /// Rate of text that the model predicts, in GB/s.
    pub(crate) predicted_gb_per_s: Option<f64>,
    /// Bytes of text on which an open device may be faster; 0 if it does the work or is slower.
    pub(crate) missed_bytes: u64,
}

impl Placement {
    pub(crate) fn on_cpu(reason: impl Into<String>) -> Self {
        Self { place: Place::Cpu, reason: reason.into(), ..Self::default() }
    }

    pub(crate) fn on_device(reason: impl Into<String>) -> Self {
        Self { place: Place::Device, reason: reason.into(), ..Self::default() }
    }

    /// Returns the placement if only some of the documents are asked for.
    pub(crate) fn for_part(self) -> Self {
        if self.is_for_all { Self::on_cpu(SOME_DOCUMENTS) } else { self }
    }

    /// Returns true if a device does the work.
    pub(crate) fn is_on_device(&self) -> bool {
        self.place == Place::Device
    }

    /// Returns the task whose runs are timed, and what this run finds.
    pub(crate) fn timed(&self) -> Option<(Task, Finds)> {
        self.timed
    }

    /// Returns the rate of text that the model predicts, in GB/s, if the model was asked.
    pub(crate) fn predicted_gb_per_s(&self) -> Option<f64> {
        self.predicted_gb_per_s
    }

    /// Checks that there is a device if one is demanded.
    ///
    /// # Errors
    /// A plan error that says what the user can do.
    pub(crate) fn check(&self) -> Result<()> {
        match self.place {
            Place::Nowhere => plan_err!("{}", self.reason),
            Place::Cpu | Place::Device => Ok(()),
        }
    }

    /// Notes that the work begins. Opens the devices if the work needs them, or if the missed work
    /// is worth it.
    pub(crate) fn begin(&self, devices: &DeviceSession) {
        if self.is_on_device() {
            devices.open_soon();
        }
        if self.missed_bytes > 0 {
            devices.miss(self.missed_bytes);
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.place {
            Place::Cpu => "cpu",
            Place::Device => "gpu",
            Place::Nowhere => "none",
        };
        match self.reason.as_str() {
            "" => f.write_str(place),
            reason => write!(f, "{place}: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_was_chosen_for_all_documents_is_not_for_some() {
        let on_device = |is_for_all| Placement { is_for_all, ..Placement::on_device("estimated") };
        assert_eq!(on_device(true).for_part().to_string(), "cpu: some documents are asked for");
        assert_eq!(on_device(false).for_part(), on_device(false));
        assert_eq!(Placement::default().for_part(), Placement::default());
    }
}
