//! The facts that EXPLAIN shows of a scan, in order.

use std::iter::repeat;

use crate::errors::mask_secrets;
use crate::planning::function::Walk;
use crate::planning::{ScanPlan, ScanSpec};
use tadoc::analytics::{SegmentShape, Traversal, TraversalTask, choose_task_traversal};
use tadoc::format::SegmentMeta;

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
        if let Some(view) = self.living() {
            facts.push(("version", view.version.number.to_string()));
            facts.push(("edits", view.num_edits().to_string()));
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
        if !self.share.is_all() {
            let place = self.share.place() + 1;
            facts.push(("share", format!("{place} of {}", self.share.num_shares())));
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
