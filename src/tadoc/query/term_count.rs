//! Counts of a query in each document, without a list of the occurrences.
//!
//! The documents come from [`condition`](super::condition), one segment after the other.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::segment::Corpus;

use crate::query::condition::meet_condition;
use crate::query::counts::DocumentCount;
use crate::query::language::query::Query;
use crate::query::matching::resolved::ResolvedQuery;
use crate::query::options::SearchOptions;

/// Number of rows that are passed to the caller at once.
const BATCH_ROWS: usize = 1 << 12;

/// Calls `visit` with the documents that meet the condition of `query` and the number of its hits
/// in them, in batches in ascending order of the document, until it breaks.
///
/// # Errors
/// [`Error::OutOfRange`] if a document of `options` does not exist; [`Error::InvalidArgument`]
/// named `docs` if `options.docs` do not ascend; [`Error::Capacity`] if a number has more than 64
/// bits; [`Error::Cancelled`]. `options.max_hits` is ignored.
pub fn term_count(
    corpus: &Corpus,
    query: &Query,
    options: &SearchOptions<'_>,
    visit: &mut dyn FnMut(&[DocumentCount]) -> ControlFlow<()>,
) -> Result<()> {
    let docs = options.selected(corpus)?;
    let resolved = ResolvedQuery::new(corpus, query, options.canceller());
    meet_condition(&resolved, docs.as_deref(), &mut |met| send_counts(&met.counts, options, visit))
}

/// Calls `visit` with `counts` in batches, until it breaks.
pub(in crate::query) fn send_counts(
    counts: &[DocumentCount],
    options: &SearchOptions<'_>,
    visit: &mut dyn FnMut(&[DocumentCount]) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    for batch in counts.chunks(BATCH_ROWS) {
        if (options.is_cancelled)() {
            return Err(Error::Cancelled);
        }
        if visit(batch).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
