//! The traversal that counts words: its name in EXPLAIN, and its work in the metrics.

use std::sync::Arc;

use crate::planning::Execution;
use tadoc::segment::Segment;

/// Traversal that counts words, for EXPLAIN.
pub(super) const SWEEP: &str = "top_down: weights flow once from the root to the words";

/// Adds the work of a traversal of all rules of `segments` to the metrics.
pub(super) fn record_sweep<'a>(run: &Execution, segments: impl IntoIterator<Item = &'a Arc<Segment>>) {
    let (mut num_rules, mut num_elements) = (0, 0);
    for segment in segments {
        num_rules += segment.dag.grammar().num_rules();
        num_elements += segment.dag.grammar().symbols.len();
    }
    run.counter("rules_visited").add(num_rules);
    run.counter("elements_read").add(num_elements);
    run.counter("logical_bytes").add(run.scan.len_bytes() as usize);
}
