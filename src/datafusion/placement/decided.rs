//! The place where work is done, and the reason: one type for tasks over corpora and GSST scans.
//!
//! Plans hold it and change nothing. Devices are opened, and missed time is noted, when the plan is
//! executed ([`Placement::begin`]).

use std::fmt;

use datafusion::common::plan_err;
use datafusion::error::Result;

use crate::placement::chooser::SOME_DOCUMENTS;
use crate::placement::session::DeviceSession;
use crate::placement::task::Task;
use crate::throughput::Effort;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Place {
    #[default]
    Cpu,
    Device,
    /// A device is demanded, and there is none.
    Nowhere,
}

/// The place where work is done, and the reason. Without a decision it is the CPU.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Placement {
    pub(super) place: Place,
    pub(super) reason: String,
    /// True if a device was chosen because all documents are asked for.
    pub(super) is_for_all: bool,
    /// The task, if its time is representative for the next run.
    pub(super) timed: Option<Task>,
    /// Text per second that the model predicts, in GB/s.
    pub(super) predicted_gb_per_s: Option<f64>,
    /// Work that an open device would have done earlier.
    pub(super) missed: Option<Missed>,
}

/// Work that the cores do only because no open device is at hand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Missed {
    pub(super) effort: Effort,
    pub(super) num_cores: usize,
}

impl Placement {
    pub(super) fn on_cpu(reason: impl Into<String>) -> Self {
        Self { place: Place::Cpu, reason: reason.into(), ..Self::default() }
    }

    pub(super) fn on_device(reason: impl Into<String>) -> Self {
        Self { place: Place::Device, reason: reason.into(), ..Self::default() }
    }

    /// Returns the placement for some of the documents.
    pub(crate) fn for_part(self) -> Self {
        if self.is_for_all { Self::on_cpu(SOME_DOCUMENTS) } else { self }
    }

    /// Returns true if a device does the work.
    pub(crate) fn is_on_device(&self) -> bool {
        self.place == Place::Device
    }

    /// Returns the task, if its time is representative for the next run: nothing has to be loaded or
    /// copied first.
    pub(crate) fn timed(&self) -> Option<Task> {
        self.timed
    }

    /// Returns the text per second that the model predicts, in GB/s, if it was asked.
    pub(crate) fn predicted_gb_per_s(&self) -> Option<f64> {
        self.predicted_gb_per_s
    }

    /// Returns the seconds that an open device with all it needs would have saved.
    pub(crate) fn missed_s(&self) -> Option<f64> {
        self.missed.map(|missed| missed.effort.gain_s())
    }

    /// Checks that there is a device if one is demanded.
    ///
    /// # Errors
    /// A plan error that names the way out.
    pub(crate) fn check(&self) -> Result<()> {
        match self.place {
            Place::Nowhere => plan_err!("{}", self.reason),
            Place::Cpu | Place::Device => Ok(()),
        }
    }

    /// Notes that the work begins: opens the devices if it needs them, or if the time that was missed
    /// so far is worth it.
    pub(crate) fn begin(&self, devices: &DeviceSession) {
        if self.is_on_device() {
            devices.open_soon();
        }
        if let Some(Missed { effort, num_cores }) = &self.missed {
            devices.miss(effort, *num_cores);
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
