//! The place where a scan counts, and the reason.

use std::fmt;

use datafusion::common::plan_err;
use datafusion::error::Result;

use crate::placement::chooser::SOME_DOCUMENTS;
use crate::placement::task::Task;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Place {
    #[default]
    Cpu,
    Device,
    /// A device was demanded, and there is none.
    Nowhere,
}

/// The place where a scan counts, and the reason. Without a decision it is the CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Placement {
    pub(super) place: Place,
    pub(super) reason: String,
    /// True if a device was chosen because all documents are asked for.
    pub(super) is_for_all: bool,
    /// The task, where its time says what it takes the next time.
    pub(super) timed: Option<Task>,
}

impl Placement {
    pub(super) fn on_cpu(reason: impl Into<String>) -> Self {
        Self { place: Place::Cpu, reason: reason.into(), ..Self::default() }
    }

    /// The same where it turns out later that some documents are enough.
    pub(crate) fn for_part(self) -> Self {
        if self.is_for_all { Self::on_cpu(SOME_DOCUMENTS) } else { self }
    }

    pub(crate) fn is_on_device(&self) -> bool {
        self.place == Place::Device
    }

    /// The task, where its time says what it takes the next time: all that it needs is there.
    pub(crate) fn timed(&self) -> Option<Task> {
        self.timed
    }

    /// That there is a device where one is demanded.
    ///
    /// # Errors
    /// A plan error that names the way out.
    pub(crate) fn check(&self) -> Result<()> {
        match self.place {
            Place::Nowhere => plan_err!("{}", self.reason),
            Place::Cpu | Place::Device => Ok(()),
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
        let on_device = |is_for_all| Placement {
            place: Place::Device,
            reason: "estimated".to_owned(),
            is_for_all,
            timed: None,
        };
        assert_eq!(on_device(true).for_part().to_string(), "cpu: some documents are asked for");
        assert_eq!(on_device(false).for_part(), on_device(false));
        assert_eq!(Placement::default().for_part(), Placement::default());
    }
}
