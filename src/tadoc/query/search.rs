//! Search: the documents that meet a query, with the number and positions of the occurrences.
//!
//! ```text
//! a (b OR c) NOT d            documents of a segment
//! a          count by document: 1 2 5 8
//! b, c       counted in 1 2 5 8 only: 2 5 │ 5          OR: 2 5
//! d          counted in 2 5 only: 5                    NOT: 2
//! hits in 2  those of a and b; c is not there, d is excluded
//! ```
//!
//! Segments are processed one after the other. Each leaf is counted in the documents that the leaves before it left.
//! Matches of phrases are counted by rule and passed up to the documents, so the time is O(places above the matches),
//! however often these occur; stretches of NEAR are listed. If few documents are left, they are read instead. A
//! document that was cut is reported after its last part. Memory is that of the counts of one segment.
//!
//! Then places are listed in the documents found. Hits are produced one by one in order. Memory is that of
//! the places in the grammar (at most one for each of its elements), never of all hits.
//!
//! # Lines and columns of hits
//!
//! A document is read once, up to its last hit, in pieces of 1 MiB. Lines end with `\n`.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use memchr::{memchr_iter, memrchr};

use crate::error::{Error, Result};
use crate::ids::DocId;
use crate::query::language::{Expression, Leaf};
use crate::read::extract;
use crate::segment::Corpus;

use super::language::query::Query;
use super::matching::sets::DocSet;
use super::matching::{ResolvedQuery, doc_cut_after};
use super::{
    DocCounts, DocumentCount, Hit, SearchOptions, SegmentHits, add_to, checked_sum, listed, segment_item_counts,
};

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
/// ascending order: [`term_count`](search()) as one list.
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

/// Occurrences of each leaf so far in a document that continues in the next segment with documents.
type OpenDoc = Vec<u64>;

/// Documents of one segment that meet the condition. A document that was cut belongs to the segment
/// of its last part.
#[derive(Debug, Default)]
pub(in crate::query) struct Met {
    /// Documents, ascending, each with the number of hits of all leaves.
    pub counts: Vec<DocumentCount>,
    /// For each leaf the ids of the documents in which it has hits, ascending.
    pub by_leaf: Vec<Vec<u64>>,
}

/// Calls `visit` with the documents that meet the condition of the query in one segment after the
/// other, out of `docs`, which ascend, or out of all documents.
pub(in crate::query) fn meet_condition(
    resolved: &ResolvedQuery<'_>,
    docs: Option<&[u64]>,
    visit: &mut dyn FnMut(&Met) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let corpus = resolved.corpus();
    let mut open: Option<OpenDoc> = None;
    for segment_idx in 0..corpus.segments().len() {
        let filter = docs.map(|docs| local_docs(corpus, segment_idx, docs));
        if resolved.num_docs(segment_idx) == 0 || filter.as_ref().is_some_and(DocSet::is_empty) {
            continue;
        }
        let mut evaluation = Evaluation::new(resolved, segment_idx, filter, open.take());
        let met = evaluation.met()?;
        open = evaluation.open();
        if visit(&met)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Evaluates the condition for the documents that end in one segment.
struct Evaluation<'r, 'q> {
    resolved: &'r ResolvedQuery<'q>,
    segment_idx: usize,
    /// Documents that are asked for; `None` for all.
    filter: Option<Arc<DocSet>>,
    /// The first document, if it continues from an earlier segment.
    before: Option<OpenDoc>,
    /// The last document, if it continues in a later segment.
    cut_doc: Option<DocId>,
    /// Number of places in the condition where each leaf stands.
    num_uses: Vec<usize>,
    /// Counts of each leaf that was asked for, without the document that continues.
    counts: Vec<Option<DocCounts>>,
    /// Counts of the document that continues.
    open_counts: OpenDoc,
}

/// Documents that meet an expression, and the same for its parts.
#[derive(Default)]
struct Found {
    docs: Vec<DocId>,
    parts: Vec<Found>,
}

impl<'r, 'q> Evaluation<'r, 'q> {
    fn new(
        resolved: &'r ResolvedQuery<'q>,
        segment_idx: usize,
        filter: Option<DocSet>,
        before: Option<OpenDoc>,
    ) -> Self {
        let num_leaves = resolved.query().leaves().len();
        let cut_doc = doc_cut_after(resolved.corpus(), segment_idx)
            .filter(|&doc| filter.as_ref().is_none_or(|docs| docs.contains(doc)));
        let mut num_uses = vec![0; num_leaves];
        count_uses(resolved.query().root(), &mut num_uses);
        Self {
            resolved,
            segment_idx,
            filter: filter.map(Arc::new),
            before,
            cut_doc,
            num_uses,
            counts: vec![None; num_leaves],
            open_counts: vec![0; num_leaves],
        }
    }

    /// Returns the counts of the document that continues after the segment.
    fn open(self) -> Option<OpenDoc> {
        self.cut_doc.map(|_| self.open_counts)
    }

    fn met(&mut self) -> Result<Met> {
        let root = self.resolved.query().root();
        let found = self.find(root, self.filter.clone())?;
        let mut leaf_docs = vec![Vec::new(); self.counts.len()];
        note_hits(root, &found, &found.docs, &mut leaf_docs);
        let mut sums: DocCounts = found.docs.iter().map(|&doc| (doc, 0)).collect();
        for (docs, counts) in leaf_docs.iter().zip(&self.counts) {
            add_counts(&mut sums, docs, counts.as_deref().unwrap_or_default())?;
        }
        let corpus = self.resolved.corpus();
        let doc_id = |doc: DocId| corpus.doc_id(self.segment_idx, doc);
        let row = |(doc, count)| DocumentCount { doc_id: doc_id(doc), count };
        let ids = |docs: Vec<DocId>| docs.into_iter().map(doc_id).collect();
        Ok(Met { counts: sums.into_iter().map(row).collect(), by_leaf: leaf_docs.into_iter().map(ids).collect() })
    }

    /// Returns the documents of `filter` that meet `expression`.
    fn find(&mut self, expression: &Expression, filter: Option<Arc<DocSet>>) -> Result<Found> {
        match expression {
            Expression::Leaf(leaf) => {
                let docs = self.docs_of_leaf(*leaf, filter)?;
                Ok(Found { docs, parts: Vec::new() })
            }
            Expression::And(parts) => {
                let mut all = Found::default();
                let mut left = filter;
                for part in parts {
                    let found = self.find(part, left)?;
                    all.docs.clone_from(&found.docs);
                    all.parts.push(found);
                    let docs = self.narrowed(&all.docs);
                    if docs.is_empty() {
                        // No document is left for the parts that follow, and none is cut.
                        return Ok(Found::default());
                    }
                    left = Some(docs);
                }
                Ok(all)
            }
            Expression::Or(parts) => {
                let found = parts.iter().map(|part| self.find(part, filter.clone()));
                let parts: Vec<Found> = found.collect::<Result<_>>()?;
                let mut docs: Vec<DocId> = parts.iter().flat_map(|part| &part.docs).copied().collect();
                docs.sort_unstable();
                docs.dedup();
                Ok(Found { docs, parts })
            }
            Expression::Not(parts) => {
                let [kept, excluded] = parts.as_ref();
                let kept = self.find(kept, filter)?;
                let left = self.narrowed(&kept.docs);
                if left.is_empty() {
                    return Ok(Found::default());
                }
                let excluded = self.find(excluded, Some(left))?;
                let mut excluded = excluded.docs.iter().peekable();
                let is_kept = |doc: &DocId| {
                    while excluded.next_if(|&next| next < doc).is_some() {}
                    excluded.peek() != Some(&doc)
                };
                let docs = kept.docs.iter().copied().filter(is_kept).collect();
                Ok(Found { docs, parts: vec![kept] })
            }
        }
    }

    /// Returns `docs` as a set, with the document that continues: later parts of it decide.
    fn narrowed(&self, docs: &[DocId]) -> Arc<DocSet> {
        let mut narrowed = DocSet::none(self.resolved.num_docs(self.segment_idx));
        narrowed.extend(docs.iter().copied().chain(self.cut_doc));
        Arc::new(narrowed)
    }

    /// Returns the documents of `filter` with hits of a leaf.
    fn docs_of_leaf(&mut self, leaf: usize, filter: Option<Arc<DocSet>>) -> Result<Vec<DocId>> {
        if self.counts[leaf].is_none() {
            // A leaf that stands in several places is counted once, for all of them.
            let is_shared = self.num_uses[leaf] > 1;
            let counted = if is_shared { self.filter.clone() } else { filter.clone() };
            self.counts[leaf] = Some(self.count(leaf, counted.as_ref())?);
        }
        let docs = self.counts[leaf].iter().flatten().map(|&(doc, _)| doc);
        Ok(docs.filter(|&doc| filter.as_ref().is_none_or(|docs| docs.contains(doc))).collect())
    }

    /// Counts a leaf in the documents of `filter`. Of the document that continues, the count goes
    /// to `open_counts`.
    fn count(&mut self, leaf: usize, filter: Option<&Arc<DocSet>>) -> Result<DocCounts> {
        let mut counts = segment_leaf_counts(self.resolved, self.segment_idx, leaf, filter)?;
        if let Some(before) = &self.before {
            add_to(&mut counts, DocId::FIRST, before[leaf])?;
        }
        if let Some(cut) = self.cut_doc {
            self.open_counts[leaf] = counts.pop_if(|last| last.0 == cut).map_or(0, |last| last.1);
        }
        Ok(counts)
    }
}

/// Adds the `counts` of `docs` to their `sums`. All three ascend, and `docs` are in both others.
fn add_counts(sums: &mut DocCounts, docs: &[DocId], counts: &[(DocId, u64)]) -> Result<()> {
    let mut sums = sums.iter_mut();
    let mut counts = counts.iter();
    for &doc in docs {
        let sum = sums.find(|sum| sum.0 == doc);
        let count = counts.find(|count| count.0 == doc);
        if let (Some(sum), Some(count)) = (sum, count) {
            sum.1 = checked_sum([sum.1, count.1].into_iter())?;
        }
    }
    Ok(())
}

/// Counts the places where each leaf stands.
fn count_uses(expression: &Expression, num_uses: &mut [usize]) {
    match expression {
        Expression::Leaf(leaf) => num_uses[*leaf] += 1,
        Expression::And(parts) | Expression::Or(parts) => {
            parts.iter().for_each(|part| count_uses(part, num_uses));
        }
        Expression::Not(parts) => parts.iter().for_each(|part| count_uses(part, num_uses)),
    }
}

/// Adds the documents in which each leaf of `expression` has hits to `leaf_docs`: those of `docs`,
/// which meet it, as far as the parts around the leaf hold, too.
fn note_hits(expression: &Expression, found: &Found, docs: &[DocId], leaf_docs: &mut [Vec<DocId>]) {
    match expression {
        Expression::Leaf(leaf) => {
            let all = &mut leaf_docs[*leaf];
            let is_first = all.is_empty();
            all.extend_from_slice(docs);
            if !is_first {
                all.sort_unstable();
                all.dedup();
            }
        }
        Expression::And(parts) => {
            let parts = parts.iter().zip(&found.parts);
            parts.for_each(|(part, found)| note_hits(part, found, docs, leaf_docs));
        }
        Expression::Or(parts) => {
            for (part, found) in parts.iter().zip(&found.parts) {
                let mut asked = docs.iter().peekable();
                let is_asked = |doc: &DocId| {
                    while asked.next_if(|&next| next < doc).is_some() {}
                    asked.peek() == Some(&doc)
                };
                let both: Vec<DocId> = found.docs.iter().copied().filter(is_asked).collect();
                note_hits(part, found, &both, leaf_docs);
            }
        }
        Expression::Not(parts) => {
            let kept = found.parts.first().into_iter();
            kept.for_each(|found| note_hits(&parts[0], found, docs, leaf_docs));
        }
    }
}

/// Returns the number of hits of a leaf that begin in segment `segment_idx`, by document.
fn segment_leaf_counts(
    resolved: &ResolvedQuery<'_>,
    segment_idx: usize,
    leaf: usize,
    filter: Option<&Arc<DocSet>>,
) -> Result<DocCounts> {
    let leaf = match &resolved.query().leaves()[leaf] {
        Leaf::Phrase(item) => {
            return segment_item_counts(resolved, segment_idx, *item, filter.map(Arc::as_ref));
        }
        leaf => leaf,
    };
    let first_doc_id = resolved.corpus().first_doc_id(segment_idx);
    let hits = listed(resolved, segment_idx, leaf, filter)?;
    let by_document = hits.chunk_by(|a, b| a.doc_id == b.doc_id);
    // Documents of a segment have numbers of 32 bits.
    let count = |hits: &[_]| hits.len() as u64;
    Ok(by_document.map(|hits| (DocId::from((hits[0].doc_id - first_doc_id) as u32), count(hits))).collect())
}

/// Returns the documents of `docs` (ascending ids) that have a part in segment `segment_idx`.
fn local_docs(corpus: &Corpus, segment_idx: usize, docs: &[u64]) -> DocSet {
    let num_docs = corpus.segments()[segment_idx].dag.grammar().num_docs();
    let mut local = DocSet::none(num_docs);
    let begin = docs.partition_point(|&doc_id| doc_id < corpus.first_doc_id(segment_idx));
    local.extend(docs[begin..].iter().map_while(|&doc_id| corpus.doc_in(segment_idx, doc_id)));
    local
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::corpus_from_texts;

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
