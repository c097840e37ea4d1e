//! Which way a task over sequences goes.

use crate::analytics::costs::{TraversalTask, cheapest_first};
use crate::analytics::{SegmentShape, Traversal, Vocabulary};

use super::walk::Limit;

/// The way to take for windows of `n` words, never [`Traversal::Auto`]: what is forced, or the cheapest, but no scan of
/// more words than `limit` has windows, and nothing from the bottom up where numbers or their counts in
/// all threads need more memory.
pub(in crate::analytics) fn chosen(
    traversal: Traversal,
    task: TraversalTask,
    vocabulary: &Vocabulary,
    n: usize,
    limit: &Limit,
) -> Traversal {
    if traversal != Traversal::Auto {
        return traversal;
    }
    let segments = vocabulary.corpus().segments().iter();
    let shape: SegmentShape = segments.map(|segment| SegmentShape::from(segment.as_ref())).sum();
    let max_words = match task {
        TraversalTask::Cooccurrence => limit.max_met() as u64 / n as u64,
        _ => limit.max_met() as u64,
    };
    let reach = n.saturating_sub(1).max(1) as u64;
    let fits = |way: &Traversal| match way {
        Traversal::TokenScan => shape.num_words <= max_words,
        Traversal::BottomUp => limit.fits_numbers(shape.num_elements.saturating_mul(reach)),
        _ => true,
    };
    let ways = cheapest_first(task, shape, n).into_iter().map(|(way, _)| way);
    ways.clone().find(fits).unwrap_or(Traversal::TopDown)
}
