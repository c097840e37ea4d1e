//! Shared code of functions that count the words near hits.

use std::ops::ControlFlow;

use datafusion::error::Result;

use crate::corpora::LoadedCorpus;
use crate::errors::datafusion_error;
use crate::planning::Execution;
use tadoc::query::{NeighbourCounts, Query, SearchOptions, Window, count_neighbours};

/// Bytes of a row in the end for each byte of a count: the word as text, and numbers.
const ROW_BYTES_FOR_EACH: usize = 4;

/// Counts the words in the windows of all hits of `query`. Hits are not listed, so their number has no
/// limit. Returns `None` if the reader has left.
pub(super) fn count_near(
    run: &Execution,
    loaded: &LoadedCorpus,
    query: &Query,
    window: Window,
) -> Result<Option<NeighbourCounts>> {
    let cancel = run.output.canceller();
    let is_cancelled = move || cancel.is_closed();
    let options = SearchOptions { max_hits: u64::MAX, is_cancelled: &is_cancelled, ..Default::default() };
    let reservation = run.reservation("Neighbours");
    let mut reserved = Ok(());
    let mut keep = |counts: &NeighbourCounts| {
        reserved = reservation.try_resize(ROW_BYTES_FOR_EACH * counts.memory_bytes());
        if reserved.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let segments = 0..loaded.corpus.segments().len();
    let counts = count_neighbours(&loaded.corpus, query, segments, window, &options, &mut keep);
    reserved?;
    match counts {
        Ok(counts) => {
            run.counter("hits").add(usize::try_from(counts.num_hits()).unwrap_or(usize::MAX));
            Ok(Some(counts))
        }
        Err(tadoc::Error::Cancelled) => Ok(None),
        Err(error) => Err(datafusion_error(error)),
    }
}
