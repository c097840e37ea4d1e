//! The plan of a scan on this machine: what the function prepared, and what is decided before it runs.

use std::sync::Arc;

use crate::corpora::LoadedCorpus;
use crate::corpora::memory::Uses;
use crate::placement::{DeviceSession, Placement, Task};
use crate::planning::ScanSpec;
use crate::planning::filter::{Filters, Stage};
use crate::planning::function::{Facts, Prepared};
use crate::planning::place::place;

/// A scan that this machine runs. See the module's description.
#[derive(Debug, Clone)]
pub(crate) struct ScanPlan {
    pub(crate) spec: Arc<ScanSpec>,
    /// State that the function made for the scan.
    pub(crate) prepared: Prepared,
    pub(crate) facts: Facts,
    /// Parts of segments that the scan uses.
    pub(crate) uses: Uses,
    /// Devices of the session.
    pub(crate) devices: Arc<DeviceSession>,
    pub(crate) placement: Placement,
    /// For each segment, true if the answer is read from the words of documents that the segment
    /// keeps. Empty if this is not known.
    pub(crate) are_words_kept: Vec<bool>,
    pub(crate) num_partitions: usize,
}

impl ScanPlan {
    /// Plans `spec`, for which its function prepared `prepared` and stated `facts`, in at most
    /// `most_partitions` partitions. `loaded` is the corpus, if it is loaded.
    pub(crate) fn new(
        spec: ScanSpec,
        prepared: Prepared,
        facts: Facts,
        devices: Arc<DeviceSession>,
        loaded: Option<&LoadedCorpus>,
        most_partitions: usize,
    ) -> Self {
        let placement = match facts.task {
            None => Placement::default(),
            Some(_) if !spec.share.is_all() => place(&spec, &devices, Err("cores count a share of the rows"), loaded),
            Some(task) => place(&spec, &devices, task, loaded),
        };
        let task = facts.task.and_then(Result::ok).filter(|_| !placement.is_on_device());
        Self {
            are_words_kept: are_words_kept(&spec, task, loaded),
            uses: used(&spec, &facts),
            num_partitions: facts.num_partitions.min(most_partitions).max(1),
            spec: Arc::new(spec),
            prepared,
            facts,
            devices,
            placement,
        }
    }

    /// Returns the same plan with another number of partitions.
    pub(crate) fn with_partitions(&self, num_partitions: usize) -> Self {
        Self { num_partitions, ..self.clone() }
    }

    /// Returns the same plan for at most `limit` rows.
    pub(crate) fn with_limit(&self, limit: Option<usize>) -> Self {
        let plan = self.with_spec(ScanSpec { limit, ..ScanSpec::clone(&self.spec) });
        if limit.is_some() { plan.for_part() } else { plan }
    }

    /// Returns the same plan with dynamic filters, of which the scan can evaluate all.
    pub(crate) fn with_dynamic(&self, stages: Vec<Stage>) -> Self {
        let filters = Filters { dynamic: stages, ..self.spec.filters.clone() };
        self.with_spec(ScanSpec { filters, ..ScanSpec::clone(&self.spec) }).for_part()
    }

    /// Returns the same plan without dynamic filters.
    pub(crate) fn without_dynamic(&self) -> Self {
        let filters = self.spec.filters.without_dynamic();
        self.with_spec(ScanSpec { filters, ..ScanSpec::clone(&self.spec) })
    }

    /// Returns the same plan, placed for a part of the documents.
    pub(crate) fn for_part(self) -> Self {
        Self { placement: self.placement.for_part(), ..self }
    }

    fn with_spec(&self, spec: ScanSpec) -> Self {
        Self { spec: Arc::new(spec), ..self.clone() }
    }
}

/// Returns the parts of segments that `spec` uses. Filters on text first look for documents that may
/// pass, with the places of words.
pub(crate) fn used(spec: &ScanSpec, facts: &Facts) -> Uses {
    if spec.living().is_some() || spec.filters.text.is_some() { Uses::Positions } else { facts.uses }
}

/// Returns, for each segment of the corpus `loaded`, true if `task`, which cores do, is answered from the
/// words of documents that the segment keeps.
fn are_words_kept(spec: &ScanSpec, task: Option<Task>, loaded: Option<&LoadedCorpus>) -> Vec<bool> {
    if !task.is_some_and(|task| task.is_in_doc_words(&spec.options)) {
        return Vec::new();
    }
    let segments = loaded.into_iter().flat_map(|loaded| loaded.corpus.segments());
    segments.map(|segment| segment.keeps_doc_words()).collect()
}
