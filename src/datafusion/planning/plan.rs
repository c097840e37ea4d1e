//! The plan of a scan on this machine: what the function prepared, and what is decided before it runs. Among it is
//! the choice between CPU and GPU for a task over a corpus, with its reason. EXPLAIN shows these facts in order.
//!
//! ```text
//! tadoc.device   cpu  ─▶ CPU
//!                gpu  ─▶ GPU; CPU if the task has no kernel; an error if there is no device
//!                auto ─▶ the chooser: CPU, or GPU if there is one
//! ```
//!
//! The choice uses the footers, and the copies that the devices have at that time. `EXPLAIN` opens nothing. With
//! `auto`, no task waits for a device. A closed device may be opened for later tasks when the plan is executed
//! ([`Placement::begin`]).

use std::iter::repeat;
use std::sync::Arc;

use crate::corpora::LoadedCorpus;
use crate::corpora::memory::Uses;
use crate::errors::mask_secrets;
use crate::options::Device;
use crate::placement::{Choice, DeviceSession, Finds, Place, Placement, Task, Work, choose, demanded_but};
use crate::planning::ScanSpec;
use crate::planning::filter::{Filters, Stage};
use crate::planning::function::{Facts, Prepared, Walk};
use tadoc::analytics::{SegmentShape, Traversal, TraversalTask, choose_task_traversal};
use tadoc::format::SegmentMeta;

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

/// Decides the place of `task` in `scan`. If `task` is an error, it is the reason why the statement
/// has no task. `loaded` is the corpus if it is in memory.
pub(crate) fn place(
    scan: &ScanSpec,
    devices: &DeviceSession,
    task: std::result::Result<Task, &'static str>,
    loaded: Option<&LoadedCorpus>,
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
    if demanded == Device::Auto {
        return choose_place(scan, devices, task, loaded);
    }
    if let Some(problem) = devices.problem() {
        let reason = demanded_but(&problem);
        return Placement { place: Place::Nowhere, reason, ..Placement::default() };
    }
    Placement::on_device("")
}

fn choose_place(scan: &ScanSpec, devices: &DeviceSession, task: Task, loaded: Option<&LoadedCorpus>) -> Placement {
    let work = work(scan, devices, task, loaded);
    let is_on_device = |choice: &Choice| choice.is_on_device;
    let choice = devices.decide(|state| choose(&work, state), is_on_device);
    if choice.is_on_device {
        let has_all = work.missing_elements == 0;
        let finds = if has_all { Finds::AllCopies } else { Finds::SomeCopies };
        return Placement {
            is_for_all: matches!(task, Task::TermVector { .. } | Task::DocumentSequences { .. }),
            timed: Some((task, finds)),
            ..Placement::on_device(choice.reason)
        };
    }
    let finds = if loaded.is_some() { Finds::Corpus } else { Finds::Nothing };
    Placement {
        timed: (!work.are_words_kept).then_some((task, finds)),
        missed_bytes: if choice.is_missed { scan.len_bytes() } else { 0 },
        ..Placement::on_cpu(choice.reason)
    }
}

fn work(scan: &ScanSpec, devices: &DeviceSession, task: Task, loaded: Option<&LoadedCorpus>) -> Work {
    let are_words_kept = loaded.is_some_and(|loaded| {
        let mut segments = loaded.corpus.segments().iter();
        task.is_in_doc_words(&scan.options) && segments.all(|segment| segment.keeps_doc_words())
    });
    let missing_elements =
        loaded.map_or(0, |loaded| devices.missing_elements(task.segment_task(), loaded.corpus.segments()));
    Work {
        task,
        text_bytes: scan.len_bytes(),
        missing_elements,
        known: loaded.map(|loaded| loaded.tasks.for_task(task)).unwrap_or_default(),
        are_words_kept,
    }
}

impl ScanPlan {
    /// Returns the facts that EXPLAIN shows, in order.
    pub(super) fn explain(&self) -> Vec<(&'static str, String)> {
        let mut facts = self.spec.explain();
        facts.extend(self.facts.explain.iter().cloned());
        if self.facts.task.is_some() {
            facts.push(("device", self.placement.to_string()));
        }
        facts.extend(self.facts.walk.map(|walk| ("traversal", shown_walk(self, walk))));
        facts
    }
}

impl ScanSpec {
    fn explain(&self) -> Vec<(&'static str, String)> {
        let signature = self.function.signature();
        let mut facts = vec![("function", signature.name.to_string())];
        if let Some(first) = signature.arguments.first() {
            facts.push((first.name, mask_secrets(&self.location)));
        }
        if let Some(view) = self.living().filter(|view| !view.narrowed.as_ref().is_some_and(|part| part.is_of_files)) {
            facts.push(("version", view.version.number.to_string()));
            facts.push(("edits", view.num_edits().to_string()));
        }
        if let Some(part) = self.living().and_then(|view| view.narrowed.as_ref()) {
            facts.push(("where", part.condition.clone()));
            facts.push(("documents", self.num_docs().to_string()));
        }
        facts.extend(self.function.arguments());
        match (self.corpora(), self.living()) {
            ([], None) => facts.push(("files", self.files().len().to_string())),
            (files, _) => {
                let segments: usize = files.iter().map(|open| open.footer.segments.len()).sum();
                facts.push(("files", files.len().to_string()));
                facts.push(("segments", segments.to_string()));
            }
        }
        if let Some(parcels) = &self.parcels {
            facts.push(("parcels", parcels.num_parcels.to_string()));
        }
        let names: Vec<&str> = self.projection.iter().map(|&at| self.schema.field(at).name().as_str()).collect();
        facts.push(("projection", format!("[{}]", names.join(", "))));
        if let Some(stage) = &self.filters.columns {
            facts.push(("column_filter", stage.shown.clone()));
        }
        for stage in &self.filters.dynamic {
            facts.push(("dynamic_filter", stage.expr().to_string()));
        }
        if let Some(stage) = &self.filters.text {
            facts.push(("text_filter", stage.shown.clone()));
            facts.push(("candidates", self.filters.shown_candidates()));
        }
        if let Some(limit) = self.limit {
            facts.push(("limit", limit.to_string()));
        }
        facts
    }
}

fn shown_walk(plan: &ScanPlan, walk: Walk) -> String {
    match walk {
        Walk::Only(walk) => walk.to_owned(),
        _ if plan.placement.is_on_device() => OF_DEVICE.to_owned(),
        Walk::ForSegments(choose) => shown_choices(plan, choose),
        Walk::ForSequences(task, num_words) => shown_choice(&plan.spec, task, num_words),
    }
}

/// Text for EXPLAIN if a device answers.
const OF_DEVICE: &str = "of the device: there is one way, tadoc.traversal does not apply";

/// Describes how the documents of each segment are counted: from the words of documents that it
/// keeps, or by the traversal of `choose`, with its reason. Consecutive segments with the same
/// choice are described once.
fn shown_choices(plan: &ScanPlan, choose: fn(&SegmentMeta) -> (Traversal, String)) -> String {
    let scan = &plan.spec;
    if scan.options.traversal != Traversal::Auto {
        return format!("{}: forced by tadoc.traversal", scan.options.traversal);
    }
    if plan.are_words_kept.contains(&true) && !plan.are_words_kept.contains(&false) {
        return "none: words of documents are kept".to_owned();
    }
    let segments = scan.corpora().iter().flat_map(|open| &open.footer.segments);
    let is_of_files = scan.living().is_none_or(|view| view.has_texts_of_files());
    let kept = plan.are_words_kept.iter().filter(|_| is_of_files).chain(repeat(&false));
    let choice = |(segment, &is_kept)| {
        if is_kept {
            ("none", "words of documents are kept".to_owned())
        } else {
            let (chosen, reason) = choose(segment);
            (chosen.as_str(), reason)
        }
    };
    let choices: Vec<(&str, String)> = segments.zip(kept).map(choice).collect();
    let runs = choices.chunk_by(|a, b| a.0 == b.0);
    let shown = |run: &[(&str, String)]| match run {
        [(chosen, reason)] => format!("{chosen}: {reason}"),
        [(chosen, reason), ..] => format!("{chosen} in {} segments: {reason}", run.len()),
        [] => String::new(),
    };
    runs.map(shown).collect::<Vec<_>>().join("; ")
}

/// Describes the traversal of a task over sequences of `n` words in all segments, with its reason.
fn shown_choice(scan: &ScanSpec, task: TraversalTask, n: usize) -> String {
    let segments = scan.corpora().iter().flat_map(|open| &open.footer.segments);
    let shape: SegmentShape = segments.map(SegmentShape::from).sum();
    let has_bottom_up = task == TraversalTask::DocumentSequences;
    match scan.options.traversal {
        Traversal::Auto => {
            let (chosen, reason) = choose_task_traversal(task, shape, n);
            format!("{chosen}: {reason}")
        }
        Traversal::BottomUp if !has_bottom_up => {
            "top_down: forced by tadoc.traversal (bottom_up is no way of this function)".to_owned()
        }
        forced => format!("{forced}: forced by tadoc.traversal"),
    }
}
