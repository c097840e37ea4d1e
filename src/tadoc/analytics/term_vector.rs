//! Term vectors: for each document, its words with their counts, or with their TF-IDF scores.
//!
//! ```text
//! TermVectors ──cursor(documents)──▶ TermVectorCursor ──next_chunk()──▶ TermVectorChunk
//! (shared, built once)               (one for each thread)              doc_ids  3    4  5
//!                                                                       offsets  0    2  2    3
//!                                                                       rows     7 9  |  | 4
//!                                                                       counts   1 2  |  | 5
//! ```
//!
//! A chunk has a few whole documents, and only selected documents are read. With [`Traversal::Auto`], counts come from
//! [`DocWords`](crate::segment::DocWords) once a segment keeps them.
//!
//! The score of a word is tf * ln(D / df): tf is its number of occurrences in the document, df the
//! number of documents of the whole corpus that contain it, and D the number of documents.
//!
//! # Document frequencies
//!
//! The sets of documents flow down as for an inverted index ([`postings`](super::postings)), 64 documents in one sweep.
//! They are counted instead of kept, which takes 4 bytes for each word and thread. A document that is cut over segments
//! is left out of the sweeps; its term vector is counted instead. If term vectors exist already, from a device or kept
//! with the segment, their entries are counted.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use crate::error::{Canceller, Result};
use crate::ids::DocId;
use crate::segment::dag::RuleTexts;
use crate::segment::{Corpus, Segment};

use super::doc_terms::{DocTerms, GROUP_LEN, Helps, TermBags};
use super::postings::{DOCS_PER_TASK, Masks};
use super::segment_terms::{Counted, SegmentTerms, check_number};
use super::vocabulary::WordRows;
use super::{DocSelection, SegmentShape, TermVectorChunk, Traversal, TraversalTask, Vocabulary, choose_task_traversal};

/// Number of rows after which a chunk ends; the current document is completed.
const CHUNK_ROWS: usize = 8192;
/// Maximum number of documents of a chunk. Small documents have few rows, empty ones none.
const CHUNK_DOCS: usize = 8192;
/// Number of parallel tasks for each thread. Several tasks even out documents of different length.
const PIECES_PER_THREAD: usize = 16;
/// Inverse of the minimum share of the documents for which a cursor makes bags and texts, which
/// cost O(G).
const PART_WORTH_HELPS: u64 = 32;
/// Steps of a document that has no words.
const DOC_STEPS: usize = 64;

/// Counts the words of every document of `corpus`, in parallel.
///
/// # Errors
/// The errors of [`Vocabulary::new`] and [`TermVectorCursor::next_chunk`].
pub fn term_vector(corpus: &Corpus, traversal: Traversal) -> Result<TermVectorChunk> {
    let vectors = TermVectors::new(Arc::new(Vocabulary::new(corpus)?), traversal);
    vectors.collect(&DocSelection::all(corpus), None)
}

/// Data that the cursors over the term vectors of a corpus share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TermVectors {
    vocabulary: Arc<Vocabulary>,
    rows: Arc<WordRows>,
    ways: Arc<[Way]>,
}

/// Method of counting the documents of a segment.
#[derive(Debug)]
struct Way {
    traversal: Traversal,
    is_forced: bool,
    /// Bags for bottom-up, made by the first cursor with enough documents in this segment.
    bags: OnceLock<TermBags>,
    /// Texts of rules for a token scan, made in the same way.
    texts: OnceLock<RuleTexts>,
    /// Counts that were made elsewhere, so that nothing is counted here.
    counted: Option<SegmentTerms>,
    /// True if the segment keeps the words of its documents, and these are used.
    is_kept: bool,
}

impl Way {
    /// Creates the way of `segment` by `traversal`, or the best one.
    fn new(segment: &Segment, traversal: Traversal) -> Self {
        let is_forced = traversal != Traversal::Auto;
        Self {
            traversal: if is_forced { traversal } else { choose_term_traversal(segment).0 },
            is_forced,
            bags: OnceLock::new(),
            texts: OnceLock::new(),
            counted: None,
            is_kept: !is_forced && segment.doc_words_or_derive_if_worth().is_some(),
        }
    }
}

impl TermVectors {
    /// Prepares term vectors over the words of `vocabulary`. Every segment uses `traversal`; with
    /// [`Traversal::Auto`] each segment uses its best traversal ([`choose_term_traversal`]).
    pub fn new(vocabulary: Arc<Vocabulary>, traversal: Traversal) -> Self {
        let segments = vocabulary.corpus().segments().iter();
        let ways = segments.map(|segment| Way::new(segment, traversal)).collect();
        let rows = Arc::new(WordRows::new(&vocabulary));
        Self { vocabulary, rows, ways }
    }

    /// Creates the term vectors of a corpus from those of each of its segments.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) unless there is one part of the
    /// right shape for each segment.
    pub fn from_segments(vocabulary: Arc<Vocabulary>, parts: Vec<SegmentTerms>) -> Result<Self> {
        let segments = vocabulary.corpus().segments();
        check_number(parts.len(), segments.len())?;
        parts.par_iter().zip(segments).try_for_each(|(part, segment)| part.check(segment))?;
        Ok(Self::with_counted(vocabulary, parts))
    }

    /// Creates term vectors from counts that were made elsewhere, with one part for each segment.
    fn with_counted(vocabulary: Arc<Vocabulary>, parts: Vec<SegmentTerms>) -> Self {
        let way = |part| Way {
            traversal: Traversal::TokenScan,
            is_forced: false,
            bags: OnceLock::new(),
            texts: OnceLock::new(),
            counted: Some(part),
            is_kept: false,
        };
        let rows = Arc::new(WordRows::new(&vocabulary));
        Self { vocabulary, rows, ways: parts.into_iter().map(way).collect() }
    }

    /// Returns the words of the documents of a segment, if they are counted already.
    pub(super) fn counted(&self, segment_idx: usize) -> Option<Counted<'_>> {
        let way = &self.ways[segment_idx];
        if way.is_kept {
            let segment = &self.vocabulary.corpus().segments()[segment_idx];
            return segment.doc_words_or_derive_if_worth().map(Counted::Kept);
        }
        way.counted.as_ref().map(Counted::Elsewhere)
    }

    /// Returns the vocabulary that the rows belong to.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns the traversal of each segment, never [`Traversal::Auto`].
    pub fn traversals(&self) -> impl Iterator<Item = Traversal> + '_ {
        self.ways.iter().map(|way| way.traversal)
    }

    /// Returns the memory of the shared data in bytes, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        let bags = self.ways.iter().filter_map(|way| way.bags.get()).map(TermBags::memory_bytes);
        let texts = self.ways.iter().filter_map(|way| way.texts.get()).map(RuleTexts::memory_bytes);
        let counted = self.ways.iter().filter_map(|way| way.counted.as_ref());
        let counted = counted.map(SegmentTerms::memory_bytes);
        self.rows.memory_bytes() + bags.chain(texts).chain(counted).sum::<usize>()
    }

    /// Returns a cursor over the words of `docs`. With `top`, each document has only its `top` most
    /// frequent words, in descending order of count; words with the same count are in byte order.
    pub fn cursor(&self, docs: &DocSelection, top: Option<usize>) -> TermVectorCursor {
        let docs = docs.within(0..self.vocabulary.corpus().num_docs());
        let num_docs = self.vocabulary.corpus().num_docs();
        let makes_helps = docs.len() as u64 >= num_docs / PART_WORTH_HELPS;
        TermVectorCursor {
            vectors: self.clone(),
            next: 0,
            top,
            counter: Counter { makes_helps, num_docs: docs.len(), open: None },
            docs,
            group: 0..0,
            parts: Vec::new(),
        }
    }

    /// Returns all chunks of a [`cursor`](Self::cursor) joined, counted in parallel.
    ///
    /// # Errors
    /// The errors of [`TermVectorCursor::next_chunk`].
    pub fn collect(&self, docs: &DocSelection, top: Option<usize>) -> Result<TermVectorChunk> {
        self.collect_until(docs, top, &|| false)
    }

    /// Variant of [`collect`](Self::collect) whose caller may leave. `is_cancelled` is asked now
    /// and then, by any thread.
    ///
    /// # Errors
    /// The errors of [`collect`](Self::collect), and [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn collect_until(
        &self,
        docs: &DocSelection,
        top: Option<usize>,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<TermVectorChunk> {
        let canceller = Canceller::new(is_cancelled);
        let docs = docs.within(0..self.vocabulary.corpus().num_docs());
        let num_threads = rayon::current_num_threads();
        let num_groups = docs.len().div_ceil(GROUP_LEN).next_multiple_of(num_threads);
        let num_pieces = if num_threads > 1 { num_threads * PIECES_PER_THREAD } else { 1 };
        let num_pieces = num_pieces.min(num_groups).min(docs.len());
        let cut = |piece: usize| docs.len() * piece / num_pieces;
        let mut chunks: Vec<TermVectorChunk> = (0..num_pieces)
            .into_par_iter()
            .map_init(
                || self.cursor(&docs, None),
                |cursor, piece| {
                    cursor.docs = docs.slice(cut(piece)..cut(piece + 1));
                    cursor.counter.num_docs = cursor.docs.len();
                    (cursor.next, cursor.group) = (0, 0..0);
                    let mut interrupt = canceller.interrupt();
                    canceller.check()?;
                    cursor.chunk_for(usize::MAX, usize::MAX, |chunk, num_rows| {
                        chunk.keep_frequent(top);
                        interrupt.pass(num_rows + DOC_STEPS)
                    })
                },
            )
            .collect::<Result<_>>()?;
        if chunks.len() == 1 {
            return Ok(chunks.swap_remove(0));
        }
        let mut joined = TermVectorChunk::default();
        joined.reserve(chunks.iter().map(TermVectorChunk::num_rows).sum());
        for chunk in chunks {
            canceller.check()?;
            joined.append(&chunk);
        }
        Ok(joined)
    }
}

/// Cursor over the term vectors of selected documents, one chunk at a time.
#[derive(Debug)]
pub struct TermVectorCursor {
    vectors: TermVectors,
    docs: DocSelection,
    next: usize,
    top: Option<usize>,
    counter: Counter,
    /// Indexes in `docs` of the documents that were counted last.
    group: Range<usize>,
    /// Rows and counts of a document that is cut, from all its segments.
    parts: Vec<(u32, u64)>,
}

impl TermVectorCursor {
    /// Returns the next documents, or `None` after the last. A chunk has about 8,192 rows, and more
    /// if one document has more words.
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) for a forced token scan of a document of more
    /// than 2^32 bytes, and if a word occurs 2^64 times in a document that is cut.
    pub fn next_chunk(&mut self) -> Result<Option<TermVectorChunk>> {
        let top = self.top;
        self.next_chunk_for(|chunk| chunk.keep_frequent(top))
    }

    /// Returns the next documents. `finish` is called after each document is appended.
    fn next_chunk_for(&mut self, finish: impl Fn(&mut TermVectorChunk)) -> Result<Option<TermVectorChunk>> {
        if self.next >= self.docs.len() {
            return Ok(None);
        }
        let finish = |chunk: &mut TermVectorChunk, _| {
            finish(chunk);
            Ok(())
        };
        self.chunk_for(CHUNK_DOCS, CHUNK_ROWS, finish).map(Some)
    }

    /// Returns the memory of this cursor in bytes, without the shared data.
    pub fn memory_bytes(&self) -> usize {
        let open = self.counter.open.as_ref().map_or(0, |(_, terms)| terms.memory_bytes());
        open + size_of::<(u32, u64)>() * self.parts.capacity()
    }

    /// Returns the next documents. `finish` is called after each document is appended, with the
    /// number of its rows.
    fn chunk_for(
        &mut self,
        max_docs: usize,
        max_rows: usize,
        mut finish: impl FnMut(&mut TermVectorChunk, usize) -> Result<()>,
    ) -> Result<TermVectorChunk> {
        let mut chunk = TermVectorChunk::default();
        while chunk.num_docs() < max_docs && chunk.num_rows() < max_rows {
            let Some(doc_id) = self.docs.get(self.next) else { break };
            let num_before = chunk.num_rows();
            self.append(doc_id, &mut chunk)?;
            let num_rows = chunk.num_rows() - num_before;
            finish(&mut chunk, num_rows)?;
            self.next += 1;
        }
        Ok(chunk)
    }

    fn append(&mut self, doc_id: u64, chunk: &mut TermVectorChunk) -> Result<()> {
        let vectors = &self.vectors;
        let corpus = vectors.vocabulary.corpus();
        let mut doc_parts = corpus.doc_parts(doc_id);
        match (doc_parts.next(), doc_parts.next()) {
            (Some((segment_idx, doc)), None) => {
                let rows = vectors.rows.for_segment(segment_idx);
                if let Some(counted) = vectors.counted(segment_idx) {
                    counted.append(doc, rows, chunk);
                    chunk.end_document(doc_id);
                    return Ok(());
                }
                if !self.group.contains(&self.next) {
                    let num_docs = self.counter.count_group(vectors, (segment_idx, doc), &self.docs, self.next)?;
                    self.group = self.next..self.next + num_docs;
                }
                if let Some((_, terms)) = &self.counter.open {
                    let (words, counts) = terms.lane(self.next - self.group.start);
                    chunk.extend(rows, words, counts);
                }
            }
            _ => {
                self.group = 0..0;
                self.parts.clear();
                for (segment_idx, doc) in corpus.doc_parts(doc_id) {
                    let rows = vectors.rows.for_segment(segment_idx);
                    if let Some(counted) = vectors.counted(segment_idx) {
                        counted.append_parts(doc, rows, &mut self.parts);
                        continue;
                    }
                    let terms = self.counter.count(vectors, segment_idx, &[doc])?;
                    let (words, counts) = terms.lane(0);
                    let counted = words.iter().zip(counts);
                    self.parts.extend(counted.map(|(&word, &count)| (rows.row(word), count)));
                }
                chunk.extend_joined(&mut self.parts)?;
            }
        }
        chunk.end_document(doc_id);
        Ok(())
    }
}

/// Counter of documents that are not counted already.
#[derive(Debug)]
struct Counter {
    /// True if there are enough documents to make bags and texts.
    makes_helps: bool,
    /// Number of documents to count.
    num_docs: usize,
    /// Segment that was used last, with its counts.
    open: Option<(usize, DocTerms)>,
}

impl Counter {
    /// Counts the words of documents of a segment.
    fn count(&mut self, vectors: &TermVectors, segment_idx: usize, docs: &[DocId]) -> Result<&DocTerms> {
        let segment = &vectors.vocabulary.corpus().segments()[segment_idx];
        let dag = &segment.dag;
        let way = &vectors.ways[segment_idx];
        let is_worth = self.makes_helps || way.is_forced;
        let mut helps = Helps::default();
        match way.traversal {
            Traversal::BottomUp => helps.bags = got(&way.bags, is_worth, || TermBags::new(dag)),
            Traversal::TokenScan => helps.texts = got(&way.texts, is_worth, || RuleTexts::new(dag)),
            _ => {}
        }
        let terms = self.open(vectors, segment_idx);
        terms.count(dag, docs, helps)?;
        if !way.is_forced {
            segment.note_docs_read(docs.len() as u64);
        }
        Ok(terms)
    }

    /// Counts document `doc` of a segment, which is the document at `next` of `docs`, together with
    /// the following documents that lie in this segment alone, up to the length of a group. Returns
    /// the number of documents counted.
    fn count_group(
        &mut self,
        vectors: &TermVectors,
        (segment_idx, doc): (usize, DocId),
        docs: &DocSelection,
        next: usize,
    ) -> Result<usize> {
        let corpus = vectors.vocabulary.corpus();
        let group_len = self.open(vectors, segment_idx).group_len();
        let mut group = [doc; GROUP_LEN];
        let mut num_docs = 1;
        // Groups have an even length: two groups of 5 cost less than one of 8 and one of 2.
        let num_left = docs.len() - next;
        let group_len = num_left.div_ceil(num_left.div_ceil(group_len));
        for at in next + 1..next + group_len {
            let Some(doc_id) = docs.get(at) else { break };
            let mut parts = corpus.doc_parts(doc_id);
            match (parts.next(), parts.next()) {
                (Some((idx, doc)), None) if idx == segment_idx => group[num_docs] = doc,
                _ => break,
            }
            num_docs += 1;
        }
        self.count(vectors, segment_idx, &group[..num_docs])?;
        Ok(num_docs)
    }

    /// Returns the counts for a segment, which are reused if the last segment is the same.
    fn open(&mut self, vectors: &TermVectors, segment_idx: usize) -> &mut DocTerms {
        let num_docs = self.num_docs;
        let kept = self.open.take().filter(|(open_idx, _)| *open_idx == segment_idx);
        let (_, terms) = self.open.insert(kept.unwrap_or_else(|| {
            let dag = &vectors.vocabulary.corpus().segments()[segment_idx].dag;
            (segment_idx, DocTerms::new(dag, vectors.ways[segment_idx].traversal, num_docs))
        }));
        terms
    }
}

/// Returns the value of `slot`. Makes it first if `is_worth`.
fn got<T>(slot: &OnceLock<T>, is_worth: bool, make: impl FnOnce() -> T) -> Option<&T> {
    if is_worth { Some(slot.get_or_init(make)) } else { slot.get() }
}

/// Chooses the traversal for the term vectors of a segment of this `shape`. Returns it, never
/// [`Traversal::Auto`], and the reason for `EXPLAIN`. O(1) from stored statistics.
pub fn choose_term_traversal(shape: impl Into<SegmentShape>) -> (Traversal, String) {
    choose_task_traversal(TraversalTask::TermVector, shape.into(), 2)
}

/// Data that the cursors over the scores of a corpus share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tfidf {
    vectors: TermVectors,
    /// Number of documents by row.
    doc_counts: Arc<[u64]>,
    /// Weight ln(D / df) by row.
    weights: Arc<[f64]>,
}

impl Tfidf {
    /// Counts the documents of each word and prepares the scores of `vectors`.
    ///
    /// # Errors
    /// The errors of [`document_counts`].
    pub fn new(vectors: TermVectors) -> Result<Self> {
        let num_docs = vectors.vocabulary().corpus().num_docs();
        let doc_counts = document_counts(&vectors)?.into();
        Ok(Self::with_counts(vectors, num_docs, doc_counts))
    }

    /// Prepares the scores of `vectors` from `doc_counts`, which [`document_counts`] returned
    /// earlier, and `num_docs`, the number of documents of the corpus. Documents that were dropped
    /// and only keep their ids do not count.
    pub fn with_counts(vectors: TermVectors, num_docs: u64, doc_counts: Arc<[u64]>) -> Self {
        let num_docs = num_docs as f64;
        let weights = doc_counts.iter().map(|&count| (num_docs / count as f64).ln()).collect();
        Self { vectors, doc_counts, weights }
    }

    /// Returns the term vectors that are scored.
    pub fn vectors(&self) -> &TermVectors {
        &self.vectors
    }

    /// Returns the number of documents that contain the word of each row.
    pub fn doc_counts(&self) -> &[u64] {
        &self.doc_counts
    }

    /// Returns the score of the word of `row` in a document where it occurs `count` times.
    ///
    /// # Panics
    /// If `row` is not a row of the vocabulary.
    #[inline]
    pub fn score(&self, row: u32, count: u64) -> f64 {
        count as f64 * self.weights[row as usize]
    }

    /// Returns the memory of the shared data in bytes, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        16 * self.doc_counts.len() + self.vectors.memory_bytes()
    }

    /// Returns a cursor over the scores of `docs`. With `top`, each document has only the `top`
    /// words with the highest scores, in descending order of score; words with the same score are
    /// in byte order.
    pub fn cursor(&self, docs: &DocSelection, top: Option<usize>) -> TfidfCursor {
        TfidfCursor { tfidf: self.clone(), terms: self.vectors.cursor(docs, None), top }
    }
}

/// Cursor over the scores of selected documents, one chunk at a time.
#[derive(Debug)]
pub struct TfidfCursor {
    tfidf: Tfidf,
    terms: TermVectorCursor,
    top: Option<usize>,
}

impl TfidfCursor {
    /// Returns the scores of the next documents, or `None` after the last.
    ///
    /// # Errors
    /// The errors of [`TermVectorCursor::next_chunk`].
    pub fn next_chunk(&mut self) -> Result<Option<TfidfChunk>> {
        let tfidf = &self.tfidf;
        let rank = |row: u32, count: u64| Descending(tfidf.score(row, count));
        let terms = match self.top {
            None => self.terms.next_chunk()?,
            Some(top) => self.terms.next_chunk_for(|chunk| {
                chunk.keep_top(top, |count, row| rank(row, count));
            })?,
        };
        Ok(terms.map(|terms| {
            let counted = terms.rows().iter().zip(terms.counts());
            let scores = counted.map(|(&row, &count)| tfidf.score(row, count)).collect();
            TfidfChunk { terms, scores }
        }))
    }

    /// Returns the memory of this cursor in bytes, without the shared data.
    pub fn memory_bytes(&self) -> usize {
        self.terms.memory_bytes()
    }
}

/// Scores of consecutive documents of the selection.
#[derive(Debug, Clone)]
pub struct TfidfChunk {
    terms: TermVectorChunk,
    scores: Vec<f64>,
}

impl TfidfChunk {
    /// Returns the documents, words and counts.
    pub fn terms(&self) -> &TermVectorChunk {
        &self.terms
    }

    /// Returns the score of each row of [`terms`](Self::terms).
    pub fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// Returns the memory of the chunk in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.terms.memory_bytes() + 8 * self.scores.capacity()
    }
}

/// Score that orders the highest first.
#[derive(Debug, Clone, Copy)]
struct Descending(f64);

impl Ord for Descending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.0.total_cmp(&self.0)
    }
}

impl PartialOrd for Descending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Descending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Descending {}

/// Returns the number of documents that contain each word, by row of the vocabulary; 1 or more.
///
/// # Errors
/// The errors of [`TermVectorCursor::next_chunk`](super::TermVectorCursor::next_chunk).
pub fn document_counts(vectors: &TermVectors) -> Result<Vec<u64>> {
    document_counts_until(vectors, &|| false)
}

/// Variant of [`document_counts`] whose caller may leave. `is_cancelled` is asked now and then, by
/// any thread.
///
/// # Errors
/// The errors of [`document_counts`], and [`Error::Cancelled`](crate::Error::Cancelled).
pub fn document_counts_until(vectors: &TermVectors, is_cancelled: &(dyn Fn() -> bool + Sync)) -> Result<Vec<u64>> {
    let canceller = Canceller::new(is_cancelled);
    canceller.check()?;
    let vocabulary = vectors.vocabulary();
    let corpus = vocabulary.corpus();
    let by_segment: Vec<Vec<u32>> = vocabulary
        .first_ids()
        .into_par_iter()
        .enumerate()
        .map(|(segment_idx, first_ids)| segment_counts(vectors, segment_idx, &first_ids, canceller))
        .collect::<Result<_>>()?;
    let count = |row: usize| {
        let ids = vocabulary.ids(row);
        ids.map(|(segment_idx, word)| u64::from(by_segment[segment_idx][word as usize])).sum()
    };
    let mut counts: Vec<u64> = (0..vocabulary.len()).map(count).collect();
    let mut cursor = vectors.cursor(&DocSelection::list(cut_docs(corpus))?, None);
    while let Some(chunk) = cursor.next_chunk()? {
        canceller.check()?;
        chunk.rows().iter().for_each(|&row| counts[row as usize] += 1);
    }
    Ok(counts)
}

/// Returns the documents that lie in more than one segment, ascending.
fn cut_docs(corpus: &Corpus) -> Vec<u64> {
    let first_ids = (0..corpus.segments().len()).map(|segment_idx| corpus.first_doc_id(segment_idx));
    let mut ids: Vec<u64> = first_ids.filter(|&doc_id| is_cut(corpus, doc_id)).collect();
    ids.dedup();
    ids
}

fn is_cut(corpus: &Corpus, doc_id: u64) -> bool {
    corpus.doc_parts(doc_id).nth(1).is_some()
}

/// Returns the documents of a segment that lie in no other segment, as indexes inside the segment.
fn whole_docs(corpus: &Corpus, segment_idx: usize) -> Range<usize> {
    let num_docs = corpus.segments()[segment_idx].dag.grammar().num_docs();
    let is_cut = |doc| is_cut(corpus, corpus.doc_id(segment_idx, doc));
    let mut docs = DocId::range(0..num_docs);
    let start = usize::from(docs.next().is_some_and(is_cut));
    let end = num_docs - usize::from(docs.next_back().is_some_and(is_cut));
    start..end
}

/// Returns the number of whole documents that contain each word of a segment. Folded words are
/// counted with the first of the words that fold to the same text.
fn segment_counts(
    vectors: &TermVectors,
    segment_idx: usize,
    first_ids: &[u32],
    canceller: Canceller<'_>,
) -> Result<Vec<u32>> {
    let corpus = vectors.vocabulary().corpus();
    let dag = &corpus.segments()[segment_idx].dag;
    let docs = whole_docs(corpus, segment_idx);
    let num_words = dag.num_words() as usize;
    let num_tasks = docs.len().div_ceil(DOCS_PER_TASK);
    let num_pieces = rayon::current_num_threads().min(num_tasks).max(1);
    let none = || vec![0u32; num_words];
    let count_piece = |piece: usize| {
        let [start, end] =
            [piece, piece + 1].map(|piece| docs.end.min(docs.start + num_tasks * piece / num_pieces * DOCS_PER_TASK));
        if let Some(terms) = vectors.counted(segment_idx) {
            canceller.check()?;
            return Ok(terms.doc_counts(start..end, first_ids, num_words));
        }
        let mut masks = Masks::new(dag, first_ids);
        let mut counts = none();
        for first in (start..end).step_by(DOCS_PER_TASK) {
            canceller.check()?;
            masks.count_docs(first..end.min(first + DOCS_PER_TASK), &mut counts);
        }
        Ok(counts)
    };
    (0..num_pieces).into_par_iter().map(count_piece).try_reduce(none, |mut sums, counts| {
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        Ok(sums)
    })
}
