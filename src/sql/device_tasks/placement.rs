//! CPU or GPU for a task over a corpus, and why.
//!
//! ```text
//! tadoc.device   cpu  ─▶ CPU
//!                gpu  ─▶ GPU; CPU where there is no kernel for it; an error where there is no device
//!                auto ─▶ the chooser: CPU, or GPU where one is there
//! ```
//!
//! Decided once, when the plan is made, from footers and from what lies on devices then: `EXPLAIN` shows
//! what will be done. The driver is asked only where a device is wanted: asking takes a tenth of a second
//! the first time.

use std::fmt;
use std::sync::Arc;

use datafusion::common::plan_err;
use datafusion::error::Result;

use super::answers::missing_elements;
use super::chooser::{Work, choose};
use crate::analytics::SegmentShape;
use crate::corpus::{Segment, SegmentMeta};
use crate::sql::gsst::{calibration, device};
use crate::sql::options::Device;
use crate::sql::scan::Scan;

/// What has kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// How often each word occurs.
    WordCount,
    /// How often each sequence of so many words occurs.
    SequenceCount { num_words: usize, is_folded: bool },
}

impl Task {
    /// Why `segments` cannot be counted on a device, as far as footers say.
    fn refused<'a>(
        self,
        segments: impl Iterator<Item = &'a SegmentMeta> + Clone,
    ) -> Option<String> {
        let Self::SequenceCount { num_words, .. } = self else { return None };
        if segments.clone().any(|segment| segment.continues) {
            return Some("a document goes on in another segment".to_owned());
        }
        let most_words = segments.map(|segment| segment.num_words).max().unwrap_or(0);
        let word_bits =
            (u64::BITS - u64::from(most_words).saturating_sub(1).leading_zeros()).max(1);
        (num_words > (u64::BITS / word_bits) as usize)
            .then(|| format!("{num_words} words do not fit 64 bits"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Cpu,
    Device,
    /// A device was demanded, and there is none.
    Nowhere,
}

/// Where a scan counts, and why; the CPU unless it is placed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Placement {
    place: Place,
    reason: String,
}

impl Placement {
    fn on_cpu(reason: impl Into<String>) -> Self {
        Self { place: Place::Cpu, reason: reason.into() }
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn is_on_device(&self) -> bool {
        self.place == Place::Device
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

/// Decides where `task` of `scan` is done; an error instead of one says why there is none. `loaded` are
/// the segments, where they are in memory already.
pub(crate) fn place(
    scan: &Scan,
    task: std::result::Result<Task, &'static str>,
    loaded: Option<&[Arc<Segment>]>,
) -> Placement {
    let demanded = scan.options.device;
    let task = match (demanded, task) {
        (Device::Gpu, Err(reason)) => return Placement::on_cpu(reason),
        (_, Err(_)) => return Placement::default(),
        (Device::Cpu, Ok(_)) => return Placement::on_cpu("tadoc.device = cpu"),
        (Device::Auto | Device::Gpu, Ok(task)) => task,
    };
    let segments = scan.corpora().iter().flat_map(|open| &open.footer.segments);
    if let Some(reason) = task.refused(segments) {
        return Placement::on_cpu(reason);
    }
    let mut reason = String::new();
    if demanded == Device::Auto {
        let (is_worth, why) = choose(&work(scan, task, loaded), &calibration().corpus_rates());
        reason = why;
        if !is_worth {
            return Placement::on_cpu(reason);
        }
    }
    if let Some(problem) = device::problem() {
        if demanded == Device::Auto {
            return Placement::on_cpu(problem);
        }
        let reason = format!("tadoc.device = gpu: {problem}; SET tadoc.device = 'auto'");
        return Placement { place: Place::Nowhere, reason };
    }
    device::open_soon();
    Placement { place: Place::Device, reason }
}

fn work(scan: &Scan, task: Task, loaded: Option<&[Arc<Segment>]>) -> Work {
    let segments = || scan.corpora().iter().flat_map(|open| &open.footer.segments);
    let shape: SegmentShape = segments().map(SegmentShape::from).sum();
    let is_folded = matches!(task, Task::SequenceCount { is_folded: true, .. });
    Work {
        task,
        shape,
        missing_elements: loaded
            .map_or(shape.num_elements, |segments| missing_elements(task, segments)),
        are_rows_joined: is_folded || segments().count() > 1 || scan.living().is_some(),
        num_cores: rayon::current_num_threads(),
        is_device_open: device::is_open(),
    }
}
