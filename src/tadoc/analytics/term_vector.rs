//! For each document its words with counts.
//!
//! ```text
//! TermVectors ──cursor(documents)──▶ TermVectorCursor ──next_chunk()──▶ TermVectorChunk
//! (shared, built once)               (one for each thread)              doc_ids  3    4  5
//!                                                                       offsets  0    2  2    3
//!                                                                       rows     7 9  |  | 4
//!                                                                       counts   1 2  |  | 5
//! ```
//!
//! A chunk is a few whole documents; only selected documents are touched. Where nobody says how to count, counts are
//! taken from [`DocWords`](crate::segment::DocWords) once a segment keeps them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use crate::error::Result;
use crate::segment::dag::RuleTexts;
use crate::segment::{Corpus, Segment};

use super::doc_terms::{DocTerms, GROUP_LEN, Helps};
use super::segment_terms::{Counted, SegmentTerms};
use super::term_bags::TermBags;
use super::word_rows::WordRows;
use super::{
    DocSelection, SegmentShape, TermVectorChunk, Traversal, TraversalTask, Vocabulary,
    choose_task_traversal,
};

/// Rows after which a chunk ends, with the document at hand.
const CHUNK_ROWS: usize = 8192;
/// Documents of a chunk at most: small ones have few rows, empty ones none.
const CHUNK_DOCS: usize = 8192;
/// Pieces for each thread, so that uneven documents do not matter.
const PIECES_PER_THREAD: usize = 16;
/// A cursor over fewer documents than a part so large makes no bags and texts: they cost O(G).
const PART_WORTH_HELPS: u64 = 32;

/// Words with counts of every document of `corpus`, in parallel.
///
/// # Errors
/// As [`Vocabulary::new`] and [`TermVectorCursor::next_chunk`].
pub fn term_vector(corpus: &Corpus, traversal: Traversal) -> Result<TermVectorChunk> {
    let vectors = TermVectors::new(Arc::new(Vocabulary::new(corpus)?), traversal);
    vectors.collect(&DocSelection::all(corpus), None)
}

/// What cursors over the term vectors of a corpus share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TermVectors {
    vocabulary: Arc<Vocabulary>,
    rows: Arc<WordRows>,
    ways: Arc<[Way]>,
}

/// How the documents of a segment are counted.
#[derive(Debug)]
struct Way {
    traversal: Traversal,
    is_forced: bool,
    /// For bottom-up, made by the first cursor that comes here with documents enough.
    bags: OnceLock<TermBags>,
    /// The same for a token scan.
    texts: OnceLock<RuleTexts>,
    /// What was counted elsewhere, so that nothing is to be counted here.
    counted: Option<SegmentTerms>,
    /// Whether the segment keeps what is to be counted.
    is_kept: bool,
}

impl TermVectors {
    /// Term vectors over the words of `vocabulary`. `traversal` is taken for every segment, or the
    /// best one for each ([`choose_term_traversal`]).
    pub fn new(vocabulary: Arc<Vocabulary>, traversal: Traversal) -> Self {
        let way = |segment: &Arc<Segment>| Way {
            traversal: match traversal {
                Traversal::Auto => choose_term_traversal(segment.as_ref()).0,
                forced => forced,
            },
            is_forced: traversal != Traversal::Auto,
            bags: OnceLock::new(),
            texts: OnceLock::new(),
            counted: None,
            is_kept: traversal == Traversal::Auto && segment.dag.doc_words_if_worth().is_some(),
        };
        let ways = vocabulary.corpus().segments().iter().map(way).collect();
        let rows = Arc::new(WordRows::new(&vocabulary));
        Self { vocabulary, rows, ways }
    }

    /// Term vectors that were counted from the words of the text, one part for each segment.
    pub(super) fn with_counted(vocabulary: Arc<Vocabulary>, parts: Vec<SegmentTerms>) -> Self {
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

    /// What is known already of a segment.
    pub(super) fn counted(&self, segment_idx: usize) -> Option<Counted<'_>> {
        let way = &self.ways[segment_idx];
        if way.is_kept {
            let dag = &self.vocabulary.corpus().segments()[segment_idx].dag;
            return dag.doc_words_if_worth().map(Counted::Kept);
        }
        way.counted.as_ref().map(Counted::Elsewhere)
    }

    /// The rows' words.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The way that is taken for each segment, never [`Traversal::Auto`].
    pub fn traversals(&self) -> impl Iterator<Item = Traversal> + '_ {
        self.ways.iter().map(|way| way.traversal)
    }

    /// Main memory of what cursors share, the vocabulary not counted.
    pub fn memory_bytes(&self) -> usize {
        let bags = self.ways.iter().filter_map(|way| way.bags.get()).map(TermBags::memory_bytes);
        let texts = self.ways.iter().filter_map(|way| way.texts.get()).map(RuleTexts::memory_bytes);
        let counted = self.ways.iter().filter_map(|way| way.counted.as_ref());
        let counted = counted.map(SegmentTerms::memory_bytes);
        self.rows.memory_bytes() + bags.chain(texts).chain(counted).sum::<usize>()
    }

    /// A cursor over the words of `docs`. With `top`, of each document only its so many most
    /// frequent words, these first, words of the same count in byte order.
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

    /// All chunks of a [`cursor`](Self::cursor) joined, found in parallel.
    ///
    /// # Errors
    /// As [`TermVectorCursor::next_chunk`].
    pub fn collect(&self, docs: &DocSelection, top: Option<usize>) -> Result<TermVectorChunk> {
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
                    cursor.chunk_of(usize::MAX, usize::MAX, |chunk| chunk.keep_frequent(top))
                },
            )
            .collect::<Result<_>>()?;
        if chunks.len() == 1 {
            return Ok(chunks.swap_remove(0));
        }
        let mut joined = TermVectorChunk::default();
        joined.reserve(chunks.iter().map(TermVectorChunk::num_rows).sum());
        chunks.iter().for_each(|chunk| joined.append(chunk));
        Ok(joined)
    }
}

/// The term vectors of selected documents, a chunk at a time.
#[derive(Debug)]
pub struct TermVectorCursor {
    vectors: TermVectors,
    docs: DocSelection,
    next: usize,
    top: Option<usize>,
    counter: Counter,
    /// Indexes in `docs` that were counted last.
    group: Range<usize>,
    /// Rows and counts of a document that was cut, from all its segments.
    parts: Vec<(u32, u64)>,
}

impl TermVectorCursor {
    /// The next documents, or `None` after the last. About 8,192 rows, more where one document has
    /// more words.
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) for a forced token scan of a document of more than
    /// 2^32 bytes, and where a word occurs 2^64 times in a document that was cut.
    pub fn next_chunk(&mut self) -> Result<Option<TermVectorChunk>> {
        let top = self.top;
        self.next_chunk_of(|chunk| chunk.keep_frequent(top))
    }

    /// The next documents, each after `finish` had its way with it.
    pub(super) fn next_chunk_of(
        &mut self,
        finish: impl Fn(&mut TermVectorChunk),
    ) -> Result<Option<TermVectorChunk>> {
        if self.next >= self.docs.len() {
            return Ok(None);
        }
        self.chunk_of(CHUNK_DOCS, CHUNK_ROWS, finish).map(Some)
    }

    /// Main memory of what this cursor alone holds.
    pub fn memory_bytes(&self) -> usize {
        let open = self.counter.open.as_ref().map_or(0, |(_, terms)| terms.memory_bytes());
        open + size_of::<(u32, u64)>() * self.parts.capacity()
    }

    fn chunk_of(
        &mut self,
        max_docs: usize,
        max_rows: usize,
        finish: impl Fn(&mut TermVectorChunk),
    ) -> Result<TermVectorChunk> {
        let mut chunk = TermVectorChunk::default();
        while chunk.num_docs() < max_docs && chunk.num_rows() < max_rows {
            let Some(doc_id) = self.docs.get(self.next) else { break };
            self.append(doc_id, &mut chunk)?;
            finish(&mut chunk);
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
                let rows = vectors.rows.of(segment_idx);
                if let Some(counted) = vectors.counted(segment_idx) {
                    counted.append(doc, rows, chunk);
                    chunk.end_document(doc_id);
                    return Ok(());
                }
                if !self.group.contains(&self.next) {
                    let num_docs = self.counter.count_group(
                        vectors,
                        (segment_idx, doc),
                        &self.docs,
                        self.next,
                    )?;
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
                    let rows = vectors.rows.of(segment_idx);
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

/// What counts documents that nobody counted before.
#[derive(Debug)]
struct Counter {
    /// Whether there are documents enough for bags and texts.
    makes_helps: bool,
    /// Documents that are to be counted.
    num_docs: usize,
    /// The segment that was looked at last.
    open: Option<(usize, DocTerms)>,
}

impl Counter {
    /// Counts the words of documents of a segment.
    fn count(
        &mut self,
        vectors: &TermVectors,
        segment_idx: usize,
        docs: &[usize],
    ) -> Result<&DocTerms> {
        let dag = &vectors.vocabulary.corpus().segments()[segment_idx].dag;
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
            dag.note_docs_read(docs.len() as u64);
        }
        Ok(terms)
    }

    /// Counts document `doc` of a segment, which is the one at `next` of `docs`, and those after it that lie in this
    /// segment alone, as many as are counted at once; says how many.
    fn count_group(
        &mut self,
        vectors: &TermVectors,
        (segment_idx, doc): (usize, usize),
        docs: &DocSelection,
        next: usize,
    ) -> Result<usize> {
        let corpus = vectors.vocabulary.corpus();
        let group_len = self.open(vectors, segment_idx).group_len();
        let (mut group, mut num_docs) = ([doc; GROUP_LEN], 1);
        // Even groups: two of 5 cost less than one of 8 and one of 2.
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

    /// What counts documents of a segment, the one at hand where it is of this segment.
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

/// What `slot` holds, made where that is worth it.
fn got<T>(slot: &OnceLock<T>, is_worth: bool, make: impl FnOnce() -> T) -> Option<&T> {
    if is_worth { Some(slot.get_or_init(make)) } else { slot.get() }
}

/// The way to take for the term vectors of a segment of this `shape`, never [`Traversal::Auto`],
/// and the reason for `EXPLAIN`. O(1) from counted statistics.
pub fn choose_term_traversal(shape: impl Into<SegmentShape>) -> (Traversal, String) {
    choose_task_traversal(TraversalTask::TermVector, shape.into(), 2)
}
