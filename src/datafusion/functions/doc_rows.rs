//! Shared code of functions that answer document by document: the choice of documents, and their
//! rows.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::array::{Array, ArrayRef, StringViewArray, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::error::Result;

use super::documents::range_of;
use super::strings::int64;
use crate::errors::datafusion_error;
use crate::placement::{self, Task};
use crate::scan::{Run, Scan, selected};
use crate::source::LoadedCorpus;
use tadoc::analytics::{DocSelection, Fold, TermVectors};
use tadoc::query::{Query, check_num_hits};
use tadoc::segment::Corpus;

/// Name of the column on which filters are claimed.
pub(super) const DOC_ID: &str = "doc_id";
/// Number of documents that one evaluation of a filter covers.
const FILTER_DOCS: usize = 65_536;
/// Bytes of text that make a partition worth its thread.
const PARTITION_BYTES: u64 = 1 << 20;

/// Returns the documents of the run's partition that pass the filters on `doc_id`.
pub(super) fn selected_documents(run: &Run) -> Result<DocSelection> {
    selected_of(run, range_of(run))
}

/// Returns the documents of all partitions that pass the filters on `doc_id`.
pub(super) fn all_selected_documents(run: &Run) -> Result<DocSelection> {
    selected_of(run, 0..run.scan.num_doc_ids())
}

fn selected_of(run: &Run, range: Range<u64>) -> Result<DocSelection> {
    let num_docs = run.scan.num_docs_of(range.clone());
    if !run.scan.is_filtered() && num_docs == range.clone().count() {
        return Ok(DocSelection::range(range));
    }
    let kept = passing_documents(&run.scan, range, |_, ids| int64(ids.iter().copied()))?;
    run.counter("documents_pruned_by_columns").add(num_docs - kept.len());
    DocSelection::list(kept).map_err(datafusion_error)
}

/// Returns the documents of `range` that pass the filters that need no text. `column` makes a
/// column for some of the documents.
pub(super) fn passing_documents(
    scan: &Scan,
    range: Range<u64>,
    column: impl Fn(usize, &[u64]) -> Result<ArrayRef>,
) -> Result<Vec<u64>> {
    let mut kept: Vec<u64> = Vec::new();
    for start in range.clone().step_by(FILTER_DOCS) {
        let ids = start..range.end.min(start + FILTER_DOCS as u64);
        let ids: Vec<u64> = scan.documents(ids).collect();
        match scan.mask(ids.len(), |position| column(position, &ids))? {
            Some(mask) => kept.extend(selected(&mask).map(|i| ids[i])),
            None => kept.extend(ids),
        }
    }
    Ok(kept)
}

/// Returns the documents that a search covers, ascending: those that pass the filters on `doc_id`.
/// Returns `None` if there are no filters.
pub(super) fn searched_documents(run: &Run) -> Result<Option<Vec<u64>>> {
    if !run.scan.is_filtered() {
        return Ok(None);
    }
    let docs: Vec<u64> = selected_documents(run)?.iter().collect();
    run.counter("documents_searched").add(docs.len());
    Ok(Some(docs))
}

/// Returns the number of partitions that are worth their threads if all text is processed.
pub(super) fn num_partitions(scan: &Scan, target: usize) -> usize {
    let most = (target as u64).min(scan.num_docs()).max(1);
    (scan.len_bytes() / PARTITION_BYTES).clamp(1, most) as usize
}

/// Returns the number of partitions that are worth their threads if segments are searched. It is
/// one if only some documents or rows are asked for. It is also one if `query` has several items,
/// because each partition would first have to count the documents of all items.
pub(super) fn num_search_partitions(scan: &Scan, target: usize, query: &Query) -> usize {
    if scan.is_filtered() || scan.limit.is_some() || query.items().len() > 1 {
        return 1;
    }
    let segments = scan.corpora().iter().map(|open| open.footer.segments.len());
    num_partitions(scan, target).min(segments.sum()).max(1)
}

/// Returns the segments of `corpus` that the run's partition searches. Partitions have equal
/// shares, in order.
pub(super) fn searched_segments(run: &Run, corpus: &Corpus) -> Range<usize> {
    let share = |partition: usize| corpus.segments().len() * partition / run.scan.num_partitions;
    share(run.partition)..share(run.partition + 1)
}

/// Number of hits that all partitions have found together.
pub(super) struct NumHits {
    found: Arc<AtomicU64>,
    max_hits: u64,
}

impl NumHits {
    pub(super) fn of(run: &Run) -> Result<Self> {
        let found = run.shared.prepared(|| Ok(AtomicU64::new(0)))?;
        Ok(Self { found, max_hits: run.scan.options.max_hits })
    }

    /// Adds `num_hits`.
    ///
    /// # Errors
    /// An error if there are more hits than `tadoc.max_hits`.
    pub(super) fn add(&self, num_hits: usize) -> Result<()> {
        let found = self.found.fetch_add(num_hits as u64, Ordering::Relaxed) + num_hits as u64;
        check_num_hits(found, self.max_hits).map_err(datafusion_error)
    }
}

/// Returns the term vectors of a corpus, which all partitions share.
pub(super) fn term_vectors(
    run: &Run,
    loaded: &LoadedCorpus,
    fold: Fold,
) -> Result<Arc<TermVectors>> {
    run.shared.prepared(|| new_term_vectors(run, loaded, fold))
}

/// Builds the term vectors of a corpus. A device counts them, or the cores count document by
/// document while a cursor moves.
pub(super) fn new_term_vectors(
    run: &Run,
    loaded: &LoadedCorpus,
    fold: Fold,
) -> Result<TermVectors> {
    let vocabulary = loaded.vocabulary(fold)?;
    let on_device = placement::term_vectors(run, &vocabulary)?;
    Ok(on_device.unwrap_or_else(|| TermVectors::new(vocabulary, run.scan.options.traversal)))
}

/// Returns the device task for term vectors. It is marked as partial if filters or a limit choose
/// documents, because the cores count only these.
pub(super) fn terms_task(scan: &Scan) -> Task {
    Task::TermVector { is_part: scan.is_filtered() || scan.limit.is_some() }
}

/// Returns the words at `rows` of the vocabulary.
pub(super) fn words_at(words: &StringViewArray, rows: &[u32]) -> Result<ArrayRef> {
    Ok(take(words as &dyn Array, &UInt32Array::from(rows.to_vec()), None)?)
}

/// Returns a column with the document's id in each row. The rows of document `ids[i]` are those
/// from `offsets[i]` to `offsets[i + 1]`.
pub(super) fn doc_ids(ids: &[u64], offsets: &[u64]) -> Result<ArrayRef> {
    let num_rows = offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
    int64(ids.iter().zip(num_rows).flat_map(|(&id, num_rows)| std::iter::repeat_n(id, num_rows)))
}
