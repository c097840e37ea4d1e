//! Choice of the traversal of a task over sequences.

use crate::analytics::costs::{TraversalTask, cheapest_first};
use crate::analytics::{SegmentShape, Traversal, Vocabulary};

use super::limit::Limit;

/// Returns the traversal for windows of `n` words, never [`Traversal::Auto`]: the forced one or the
/// cheapest. A token scan is not chosen if there are more words than `limit` has windows. Bottom-up
/// is not chosen if its numbers, or their counts in all threads, need more memory than `limit` has.
pub(in crate::analytics) fn chosen(
    traversal: Traversal,
    task: TraversalTask,
    vocabulary: &Vocabulary,
    n: usize,
    limit: &Limit<'_>,
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
