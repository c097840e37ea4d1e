//! Shared code of functions that answer document by document or word by word: the choice of documents and words, their
//! rows, and the traversal that counts words, in EXPLAIN and in the metrics.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, StringViewArray, UInt32Array, UInt64Array};
use datafusion::arrow::compute::take;
use datafusion::common::stats::Precision;
use datafusion::error::Result;

use crate::corpora::LoadedCorpus;
use crate::corpora::memory::Uses;
use crate::errors::datafusion_error;
use crate::functions::strings::{int64, views};
use crate::placement::Task;
use crate::planning::function::{Facts, Walk};
use crate::planning::signature::Signature;
use crate::planning::{Execution, ScanSpec, answers, selected};
use tadoc::analytics::{DocSelection, Fold, MergedRows, TermVectors, choose_term_traversal};
use tadoc::segment::{Corpus, Segment};

/// Name of the column on which filters are claimed.
pub(super) const DOC_ID: &str = "doc_id";
/// Number of documents that one evaluation of a filter covers.
const FILTER_DOCS: usize = 65_536;
/// Bytes of text that make a partition worth its thread.
const PARTITION_BYTES: u64 = 1 << 20;

/// Returns the document ids of the run's partition. Partitions have equal shares, in order.
pub(super) fn range_of(run: &Execution) -> Range<u64> {
    let num_ids = u128::from(run.scan.num_doc_ids());
    let share = |partition: usize| (num_ids * partition as u128 / run.plan.num_partitions as u128) as u64;
    share(run.partition)..share(run.partition + 1)
}

/// Returns the documents of the run's partition that pass the filters on `doc_id`.
pub(super) fn selected_documents(run: &Execution) -> Result<DocSelection> {
    selected_of(run, range_of(run))
}

/// Returns the documents of all partitions that pass the filters on `doc_id`.
pub(super) fn all_selected_documents(run: &Execution) -> Result<DocSelection> {
    selected_of(run, 0..run.scan.num_doc_ids())
}

fn selected_of(run: &Execution, range: Range<u64>) -> Result<DocSelection> {
    let num_docs = run.scan.num_docs_of(range.clone());
    if !run.scan.is_filtered() && num_docs == range.clone().count() {
        return Ok(DocSelection::range(range));
    }
    let kept = passing_documents(&run.scan, range.clone(), |_, ids| int64(ids.iter().copied()))?;
    run.counter("documents_pruned_by_columns").add(num_docs - kept.len());
    run.note_kept(&range, &kept);
    DocSelection::list(kept).map_err(datafusion_error)
}

/// Returns the documents of `range` that pass the filters that need no text. `column` makes a
/// column for some of the documents.
pub(super) fn passing_documents(
    scan: &ScanSpec,
    range: Range<u64>,
    column: impl Fn(&str, &[u64]) -> Result<ArrayRef>,
) -> Result<Vec<u64>> {
    let mut kept: Vec<u64> = Vec::new();
    for start in range.clone().step_by(FILTER_DOCS) {
        let ids = start..range.end.min(start + FILTER_DOCS as u64);
        let ids: Vec<u64> = scan.documents(ids).collect();
        match scan.mask(ids.len(), |name| column(name, &ids))? {
            Some(mask) => kept.extend(selected(&mask).map(|i| ids[i])),
            None => kept.extend(ids),
        }
    }
    Ok(kept)
}

/// Returns the number of partitions that are worth their threads if all text is processed.
pub(super) fn num_partitions(scan: &ScanSpec) -> usize {
    let worth = (scan.len_bytes() / PARTITION_BYTES).min(scan.num_docs());
    usize::try_from(worth).unwrap_or(usize::MAX)
}

/// Returns the number of documents as a number of rows.
pub(super) fn num_documents(scan: &ScanSpec) -> Precision<usize> {
    usize::try_from(scan.num_docs()).map_or(Precision::Absent, Precision::Exact)
}

/// Returns the term vectors of a corpus, which all partitions share.
pub(super) fn term_vectors(run: &Execution, loaded: &LoadedCorpus, fold: &Fold) -> Result<Arc<TermVectors>> {
    run.shared.once(|| new_term_vectors(run, loaded, fold))
}

/// Builds the term vectors of a corpus. A device counts them, or the cores count document by
/// document while a cursor moves.
pub(super) fn new_term_vectors(run: &Execution, loaded: &LoadedCorpus, fold: &Fold) -> Result<TermVectors> {
    let vocabulary = loaded.vocabulary(fold)?;
    let on_device = answers::term_vectors(run, &vocabulary)?;
    Ok(on_device.unwrap_or_else(|| TermVectors::new(vocabulary, run.scan.options.traversal)))
}

/// Returns the facts of functions that count the words of each document. The device task is marked as partial if
/// filters or a limit choose documents, because the cores count only these.
pub(super) fn term_facts(scan: &ScanSpec) -> Facts {
    Facts {
        num_partitions: num_partitions(scan),
        task: Some(Ok(Task::TermVector { is_part: scan.is_part() })),
        uses: Uses::Text,
        walk: Some(Walk::ForSegments(|segment| choose_term_traversal(segment))),
        ..Facts::default()
    }
}

/// Returns the columns by which the words of documents are sorted. The `top` words of a document stand best first.
pub(super) fn word_ordering(top: Option<usize>) -> &'static [&'static str] {
    if top.is_some() { &[DOC_ID] } else { &[DOC_ID, "word"] }
}

/// Returns the words at `rows` of the vocabulary.
pub(super) fn words_at(words: &StringViewArray, rows: &[u32]) -> Result<ArrayRef> {
    Ok(take(words as &dyn Array, &UInt32Array::from(rows.to_vec()), None)?)
}

/// Returns the words of the rows of `merged` at `places`; each has one.
pub(super) fn merged_words_at(words: &StringViewArray, merged: &MergedRows, places: &[usize]) -> Result<ArrayRef> {
    let ids: Vec<u32> = places.iter().flat_map(|&row| merged.words_of(row)).collect();
    words_at(words, &ids)
}

/// Returns a column with the document's id in each row. The rows of document `ids[i]` are those
/// from `offsets[i]` to `offsets[i + 1]`.
pub(super) fn doc_ids(ids: &[u64], offsets: &[u64]) -> Result<ArrayRef> {
    let num_rows = offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
    int64(ids.iter().zip(num_rows).flat_map(|(&id, num_rows)| std::iter::repeat_n(id, num_rows)))
}

/// Returns the paths of documents.
pub(super) fn paths(corpus: &Corpus, ids: &[u64]) -> ArrayRef {
    views(ids.iter().map(|&id| path_of(corpus, id)))
}

/// Returns the path of document `id`; empty if there is none.
pub(super) fn path_of(corpus: &Corpus, id: u64) -> &str {
    corpus.path(id).unwrap_or("")
}

/// Refuses a document id that the corpus does not have, or that was dropped.
pub(super) fn check_doc_id(signature: &Signature, scan: &ScanSpec, doc_id: Option<u64>) -> Result<()> {
    let num_ids = scan.num_doc_ids();
    match doc_id {
        Some(doc_id) if doc_id >= num_ids => {
            let allowed = match num_ids {
                0 => "the corpus has no documents".to_string(),
                _ => format!("expected a number below {num_ids}, the documents of the corpus"),
            };
            Err(signature.error(format!("doc_id: got {doc_id}, {allowed}")))
        }
        Some(doc_id) if scan.source.is_dropped(doc_id) => {
            let allowed = "expected one that is there, or an earlier version";
            Err(signature.error(format!("doc_id: got {doc_id}, which was dropped, {allowed}")))
        }
        _ => Ok(()),
    }
}

/// Number of words between two tests for cancellation.
const CHUNK_LEN: usize = 65_536;

/// Returns an upper bound of the number of distinct words. It is exact for a corpus of one segment.
pub(super) fn num_words(scan: &ScanSpec) -> Precision<usize> {
    let segments = scan.corpora().iter().flat_map(|open| &open.footer.segments);
    Precision::Inexact(segments.map(|segment| segment.num_words as usize).sum())
}

/// Rows of a vocabulary: a range, or the rows that passed a filter.
pub(super) enum Rows {
    Range(Range<usize>),
    Selected(Vec<usize>),
}

impl Rows {
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let (range, selected) = match self {
            Self::Range(range) => (range.clone(), &[][..]),
            Self::Selected(rows) => (0..0, rows.as_slice()),
        };
        range.chain(selected.iter().copied())
    }
}

/// Calls `send` with those words of the rows `all` that pass the filter and with their rows, chunk by chunk,
/// until it returns false. `numbers` makes the one other column that a filter may use.
pub(super) fn for_each_selected(
    run: &mut Execution,
    words: &StringViewArray,
    all: Range<usize>,
    numbers: impl Fn(&Rows) -> Result<ArrayRef>,
    mut send: impl FnMut(&mut Execution, &ArrayRef, Rows) -> Result<bool>,
) -> Result<()> {
    let scan = Arc::clone(&run.scan);
    for start in all.clone().step_by(CHUNK_LEN) {
        let len = CHUNK_LEN.min(all.end - start);
        let chunk: ArrayRef = Arc::new(words.slice(start, len));
        let rows = Rows::Range(start..start + len);
        let mask = scan.mask(len, |column| match column {
            "word" => Ok(Arc::clone(&chunk)),
            _ => numbers(&rows),
        })?;
        let more = match mask {
            None => send(run, &chunk, rows)?,
            Some(mask) => {
                let passed: Vec<usize> = selected(&mask).collect();
                if passed.is_empty() {
                    !run.output.is_done()
                } else {
                    let indices = UInt64Array::from_iter_values(passed.iter().map(|&i| i as u64));
                    let words = take(&chunk, &indices, None)?;
                    send(run, &words, Rows::Selected(passed.iter().map(|i| i + start).collect()))?
                }
            }
        };
        if !more {
            break;
        }
    }
    Ok(())
}

/// Traversal that counts words, for EXPLAIN.
pub(super) const SWEEP: &str = "top_down: weights flow once from the root to the words";

/// Adds the work of a traversal of all rules of `segments` to the metrics.
pub(super) fn record_sweep<'a>(run: &Execution, segments: impl IntoIterator<Item = &'a Arc<Segment>>) {
    let mut num_rules = 0;
    let mut num_elements = 0;
    for segment in segments {
        num_rules += segment.dag.grammar().num_rules();
        num_elements += segment.dag.grammar().symbols.len();
    }
    run.counter("rules_visited").add(num_rules);
    run.counter("elements_read").add(num_elements);
    run.counter("logical_bytes").add(run.scan.len_bytes() as usize);
}
