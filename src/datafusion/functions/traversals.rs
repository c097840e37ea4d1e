//! Traversals of the grammar that answer: their choice in EXPLAIN, and their work in the metrics.

use std::iter::repeat;
use std::sync::Arc;

use crate::scan::{Execution, Scan};
use tadoc::analytics::{SegmentShape, Traversal, TraversalTask, choose_task_traversal};
use tadoc::format::SegmentMeta;
use tadoc::segment::Segment;

/// Traversal that counts words, for EXPLAIN.
pub(super) const SWEEP: &str = "top_down: weights flow once from the root to the words";

/// Text for EXPLAIN if a device answers.
const OF_DEVICE: &str = "of the device: there is one way, tadoc.traversal does not apply";

/// Describes how the documents of each segment are counted: from the words of documents that it
/// keeps, or by the traversal of `choose`, with its reason. Consecutive segments with the same
/// choice are described once.
pub(super) fn shown_choices(
    scan: &Scan,
    choose: impl Fn(&SegmentMeta) -> (Traversal, String),
) -> String {
    if scan.placement.is_on_device() {
        return OF_DEVICE.to_owned();
    }
    if scan.options.traversal != Traversal::Auto {
        return format!("{}: forced by tadoc.traversal", scan.options.traversal);
    }
    if scan.are_all_words_kept() {
        return "none: words of documents are kept".to_owned();
    }
    let segments = scan.corpora().iter().flat_map(|open| &open.footer.segments);
    let is_of_files = scan.living().is_none_or(|view| view.has_texts_of_files());
    let kept = scan.are_words_kept.iter().filter(|_| is_of_files).chain(repeat(&false));
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
pub(super) fn shown_choice(scan: &Scan, task: TraversalTask, n: usize) -> String {
    if scan.placement.is_on_device() {
        return OF_DEVICE.to_owned();
    }
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

/// Adds the work of a traversal of all rules of `segments` to the metrics.
pub(super) fn record_sweep<'a>(
    run: &Execution,
    segments: impl IntoIterator<Item = &'a Arc<Segment>>,
) {
    let (mut num_rules, mut num_elements) = (0, 0);
    for segment in segments {
        num_rules += segment.dag.grammar().num_rules();
        num_elements += segment.dag.grammar().symbols.len();
    }
    run.counter("rules_visited").add(num_rules);
    run.counter("elements_read").add(num_elements);
    run.counter("logical_bytes").add(run.scan.len_bytes() as usize);
}
