//! Search: the documents that match a query, with the number and positions of the occurrences.
//!
//! A query of several leaves is answered in two steps. First, documents are counted for each leaf
//! without a list of places, and those that meet the condition are found. Then places are listed in
//! them. Hits are produced one by one in order. Memory is that of the places in the grammar (at
//! most one for each of its elements), or of the documents found, never of all hits.
//!
//! # Lines
//!
//! Lines and columns of hits.
//!
//! A document is read once, up to its last hit, in pieces of 1 MiB. Lines end with `\n`.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use memchr::{memchr_iter, memrchr};

use crate::error::{Error, Result};
use crate::read::extract;
use crate::segment::Corpus;

use super::condition::{local_docs, meet_condition};
use super::hit::{DocumentCount, Hit, SearchOptions, checked_sum};
use super::hits::SegmentHits;
use super::language::query::Query;
use super::matching::resolved::ResolvedQuery;
use super::matching::sets::DocSet;

/// Number of hits of a batch.
const BATCH_HITS: usize = 1 << 12;

/// Returns all occurrences of `query`, in one document or all, by document and offset.
///
/// # Errors
/// [`Error::OutOfRange`] if there is no document `doc_id`; [`Error::Capacity`] for more than
/// [`DEFAULT_MAX_HITS`](crate::query::DEFAULT_MAX_HITS) hits, counted before any is produced.
pub fn search(corpus: &Corpus, query: &Query, doc_id: Option<u64>) -> Result<Vec<Hit>> {
    let options = SearchOptions { doc_id, ..Default::default() };
    let resolved = ResolvedQuery::new(corpus, query, options.canceller());
    let num_hits = count_resolved(&resolved, &options)?;
    check_num_hits(num_hits, options.max_hits)?;
    let mut hits = Vec::with_capacity(num_hits as usize);
    let segments = 0..corpus.segments().len();
    search_resolved(&resolved, segments, &options, &mut |batch| {
        hits.extend_from_slice(batch);
        ControlFlow::Continue(())
    })?;
    Ok(hits)
}

/// Calls `visit` with the occurrences of `query` in batches, until it breaks. Each batch, and all
/// batches together, are in order of document and offset.
///
/// # Errors
/// [`Error::OutOfRange`] if there is no document `options.doc_id` or one of `options.docs`;
/// [`Error::InvalidArgument`] named `docs` if these do not ascend; [`Error::Capacity`] if there are
/// more than `options.max_hits`, after this number; [`Error::Cancelled`].
pub fn search_with(
    corpus: &Corpus,
    query: &Query,
    options: &SearchOptions<'_>,
    visit: &mut dyn FnMut(&[Hit]) -> ControlFlow<()>,
) -> Result<()> {
    search_segments(corpus, query, 0..corpus.segments().len(), options, visit)
}

/// Calls `visit` as [`search_with`] does, with the occurrences that begin in the existing segments
/// of `segments`. Several threads can search a corpus in this way. If a query has several leaves,
/// each thread counts the documents of the whole corpus.
///
/// # Errors
/// As [`search_with`]; `options.max_hits` applies to these segments only.
pub fn search_segments(
    corpus: &Corpus,
    query: &Query,
    segments: Range<usize>,
    options: &SearchOptions<'_>,
    visit: &mut dyn FnMut(&[Hit]) -> ControlFlow<()>,
) -> Result<()> {
    let resolved = ResolvedQuery::new(corpus, query, options.canceller());
    search_resolved(&resolved, segments, options, visit)
}

fn search_resolved(
    resolved: &ResolvedQuery<'_>,
    segments: Range<usize>,
    options: &SearchOptions<'_>,
    visit: &mut dyn FnMut(&[Hit]) -> ControlFlow<()>,
) -> Result<()> {
    let corpus = resolved.corpus();
    let chosen = Chosen::new(resolved, options)?;
    let leaves = resolved.query().leaves();
    let mut batch = Vec::new();
    let mut num_hits = 0;
    for segment_idx in segments.start..segments.end.min(corpus.segments().len()) {
        let filters = chosen.in_segment(resolved, segment_idx);
        if filters.is_empty() {
            continue;
        }
        let from_leaf = filters.iter().map(|(leaf, docs)| (&leaves[*leaf], docs.as_ref()));
        let mut hits = SegmentHits::new(resolved, segment_idx, from_leaf)?;
        loop {
            batch.clear();
            hits.fill(&mut batch, BATCH_HITS);
            if (options.is_cancelled)() {
                return Err(Error::Cancelled);
            }
            num_hits += batch.len() as u64;
            let excess = num_hits.saturating_sub(options.max_hits);
            batch.truncate(batch.len() - excess as usize);
            if !batch.is_empty() && visit(&batch).is_break() {
                return Ok(());
            }
            check_num_hits(num_hits, options.max_hits)?;
            if batch.is_empty() {
                break;
            }
        }
    }
    Ok(())
}

/// Checks that there are at most `max_hits` occurrences.
///
/// # Errors
/// [`Error::Capacity`] if `requested` is larger.
pub fn check_num_hits(requested: u64, max_hits: u64) -> Result<()> {
    if requested <= max_hits {
        return Ok(());
    }
    Err(Error::Capacity { what: "occurrences to list", requested, limit: max_hits, knob: "tadoc.max_hits" })
}

/// Returns the number of occurrences of `query` in the documents of `options`. It is exact even if
/// a list of them would exceed any limit.
///
/// # Errors
/// [`Error::OutOfRange`] if there is no document `options.doc_id` or one of `options.docs`;
/// [`Error::InvalidArgument`] named `docs` if these do not ascend; [`Error::Capacity`] if the
/// number has more than 64 bits; [`Error::Cancelled`].
pub fn count(corpus: &Corpus, query: &Query, options: &SearchOptions<'_>) -> Result<u64> {
    count_resolved(&ResolvedQuery::new(corpus, query, options.canceller()), options)
}

fn count_resolved(resolved: &ResolvedQuery<'_>, options: &SearchOptions<'_>) -> Result<u64> {
    if options.doc_id.is_some() || options.docs.is_some() || !resolved.query().is_phrase() {
        let counts = counts_by_document(resolved, options)?;
        return checked_sum(counts.iter().map(|counted| counted.count));
    }
    let mut counts = Vec::new();
    for segment_idx in 0..resolved.corpus().segments().len() {
        counts.push(resolved.item(segment_idx, 0).map_or(Ok(0), |item| item.count())?);
        counts.push(resolved.matches_across(segment_idx, 0)?.len() as u64);
    }
    checked_sum(counts.into_iter())
}

/// Returns the documents that meet the condition of `query`, and the number of its hits in them, in
/// ascending order: [`term_count`](super::search()) as one list.
///
/// # Errors
/// As [`count`].
pub fn count_by_document(corpus: &Corpus, query: &Query, options: &SearchOptions<'_>) -> Result<Vec<DocumentCount>> {
    counts_by_document(&ResolvedQuery::new(corpus, query, options.canceller()), options)
}

fn counts_by_document(resolved: &ResolvedQuery<'_>, options: &SearchOptions<'_>) -> Result<Vec<DocumentCount>> {
    let docs = options.selected(resolved.corpus())?;
    let mut found = Vec::new();
    meet_condition(resolved, docs.as_deref(), &mut |met| {
        found.extend_from_slice(&met.counts);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// Documents in which the leaves of a query have hits.
enum Chosen {
    /// The same for all leaves, ascending; `None` for all documents.
    Same(Option<Vec<u64>>),
    /// For each leaf its own, ascending.
    ByLeaf(Vec<Vec<u64>>),
}

impl Chosen {
    fn new(resolved: &ResolvedQuery<'_>, options: &SearchOptions<'_>) -> Result<Self> {
        let docs = options.selected(resolved.corpus())?;
        if resolved.query().is_leaf() {
            return Ok(Self::Same(docs));
        }
        let mut by_leaf = vec![Vec::new(); resolved.query().leaves().len()];
        meet_condition(resolved, docs.as_deref(), &mut |met| {
            met.by_leaf.iter().zip(&mut by_leaf).for_each(|(docs, all)| all.extend_from_slice(docs));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Self::ByLeaf(by_leaf))
    }

    /// Returns, for segment `segment_idx`, the documents of each leaf that is in one.
    fn in_segment(&self, resolved: &ResolvedQuery<'_>, segment_idx: usize) -> Vec<(usize, Option<Arc<DocSet>>)> {
        let local = |docs: &[u64]| Arc::new(local_docs(resolved.corpus(), segment_idx, docs));
        match self {
            Self::Same(None) => vec![(0, None)],
            Self::Same(Some(docs)) => vec![(0, Some(local(docs)))],
            Self::ByLeaf(by_leaf) => by_leaf.iter().map(|docs| Some(local(docs))).enumerate().collect(),
        }
        .into_iter()
        .filter(|(_, docs)| docs.as_ref().is_none_or(|docs| !docs.is_empty()))
        .collect()
    }
}

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

/// Bytes that are read at once.
const PIECE_BYTES: u64 = 1 << 20;

/// Line and column of a byte of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinePlace {
    /// Number of the line, from 1.
    pub line: u64,
    /// Number of the byte in the line, from 1.
    pub column: u64,
}

/// Counts the lines of documents of a corpus up to given places.
///
/// ```
/// use tadoc::Corpus;
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::OpenLimits;
/// use tadoc::query::{LineCounter, LinePlace};
///
/// # fn main() -> tadoc::Result<()> {
/// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
/// builder.push_document("a", b"one\ntwo three\n")?;
/// let (file, _report) = builder.finish(None)?;
/// let (_footer, corpus) = Corpus::from_bytes("c.tadoc", &file, &OpenLimits::default())?;
/// let mut lines = LineCounter::new(&corpus);
/// assert_eq!(lines.locate(0, 8)?, LinePlace { line: 2, column: 5 });
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LineCounter<'c> {
    corpus: &'c Corpus,
    doc_id: u64,
    /// Bytes of the document that were read.
    offset: u64,
    /// Line ends before `offset`, and the start of the line there.
    num_ends: u64,
    line_start: u64,
}

impl<'c> LineCounter<'c> {
    /// Creates the counter.
    pub fn new(corpus: &'c Corpus) -> Self {
        Self { corpus, doc_id: 0, offset: 0, num_ends: 0, line_start: 0 }
    }

    /// Returns the place of byte `offset` of document `doc_id`. Places are cheap if they ascend
    /// within a document.
    ///
    /// # Errors
    /// The errors of [`extract()`](crate::read::extract()).
    pub fn locate(&mut self, doc_id: u64, offset: u64) -> Result<LinePlace> {
        if doc_id != self.doc_id || offset < self.offset {
            *self = Self { doc_id, ..Self::new(self.corpus) };
        }
        while self.offset < offset {
            let len = PIECE_BYTES.min(offset - self.offset);
            let piece = extract(self.corpus, doc_id, self.offset, len)?;
            if piece.is_empty() {
                break;
            }
            self.num_ends += memchr_iter(b'\n', &piece).count() as u64;
            if let Some(at) = memrchr(b'\n', &piece) {
                self.line_start = self.offset + at as u64 + 1;
            }
            self.offset += piece.len() as u64;
        }
        Ok(LinePlace { line: self.num_ends + 1, column: offset - self.line_start + 1 })
    }
}

#[cfg(test)]
mod tests {
    use crate::build::corpus_from_texts;

    use super::*;

    #[test]
    fn lines_are_those_of_the_text() {
        let texts = ["a\n\nb c\r\nd".to_owned(), String::new(), "no line end".to_owned()];
        for block_bytes in [1 << 20, 3] {
            let corpus = corpus_from_texts(block_bytes, &texts);
            let mut lines = LineCounter::new(&corpus);
            for (doc_id, text) in (0..).zip(&texts) {
                for offset in (0..=text.len()).chain([0, 2]).filter(|&at| at <= text.len()) {
                    let before = &text[..offset];
                    let line = 1 + before.matches('\n').count() as u64;
                    let start = before.rfind('\n').map_or(0, |at| at + 1);
                    let expected = LinePlace { line, column: (offset - start) as u64 + 1 };
                    assert_eq!(lines.locate(doc_id, offset as u64).unwrap(), expected);
                }
            }
        }
    }
}
