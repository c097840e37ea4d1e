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
//! A chunk is a few whole documents; only selected documents are touched.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use crate::corpus::{Corpus, Segment};
use crate::error::Result;

use super::doc_terms::DocTerms;
use super::term_bags::TermBags;
use super::word_rows::WordRows;
use super::{DocSelection, SegmentShape, TermVectorChunk, Traversal, Vocabulary};

/// Rows after which a chunk ends, with the document at hand.
const CHUNK_ROWS: usize = 8192;
/// Documents of a chunk at most: small ones have few rows, empty ones none.
const CHUNK_DOCS: usize = 8192;
/// Pieces for each thread, so that uneven documents do not matter.
const PIECES_PER_THREAD: usize = 16;
/// Words of a document on average where the words of small rules are worth to be kept: below, a
/// document has hardly any rule, above, it uses small rules more than once.
const BAG_WORDS_PER_DOC: Range<u64> = 16..10_000;
/// A cursor over fewer documents than a part so large makes no bags: they cost O(G).
const PART_WORTH_BAGS: u64 = 32;

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
        };
        let ways = vocabulary.corpus().segments().iter().map(way).collect();
        let rows = Arc::new(WordRows::new(&vocabulary));
        Self { vocabulary, rows, ways }
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
        let bags = self.ways.iter().filter_map(|way| way.bags.get());
        self.rows.memory_bytes() + bags.map(TermBags::memory_bytes).sum::<usize>()
    }

    /// A cursor over the words of `docs`. With `top`, of each document only its so many most
    /// frequent words, these first, words of the same count in byte order.
    pub fn cursor(&self, docs: &DocSelection, top: Option<usize>) -> TermVectorCursor {
        let docs = docs.within(0..self.vocabulary.corpus().num_docs());
        TermVectorCursor {
            vectors: self.clone(),
            next: 0,
            makes_bags: self.is_worth_bags(&docs),
            docs,
            top,
            open: None,
            parts: Vec::new(),
        }
    }

    /// All chunks of a [`cursor`](Self::cursor) joined, found in parallel.
    ///
    /// # Errors
    /// As [`TermVectorCursor::next_chunk`].
    pub fn collect(&self, docs: &DocSelection, top: Option<usize>) -> Result<TermVectorChunk> {
        let docs = docs.within(0..self.vocabulary.corpus().num_docs());
        let num_pieces = (rayon::current_num_threads() * PIECES_PER_THREAD).min(docs.len());
        let cut = |piece: usize| docs.len() * piece / num_pieces;
        let chunks: Vec<TermVectorChunk> = (0..num_pieces)
            .into_par_iter()
            .map_init(
                || self.cursor(&docs, None),
                |cursor, piece| {
                    cursor.docs = docs.slice(cut(piece)..cut(piece + 1));
                    cursor.next = 0;
                    cursor.chunk_of(usize::MAX, usize::MAX, |chunk| chunk.keep_frequent(top))
                },
            )
            .collect::<Result<_>>()?;
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
    makes_bags: bool,
    top: Option<usize>,
    /// The segment that was looked at last.
    open: Option<(usize, DocTerms)>,
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
        let open = self.open.as_ref().map_or(0, |(_, terms)| terms.memory_bytes());
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
        let Self { vectors, open, parts, makes_bags, .. } = self;
        let mut doc_parts = vectors.vocabulary.corpus().doc_parts(doc_id);
        match (doc_parts.next(), doc_parts.next()) {
            (Some((segment_idx, doc)), None) => {
                let terms = vectors.count(open, segment_idx, doc, *makes_bags)?;
                chunk.extend(vectors.rows.of(segment_idx), terms);
            }
            _ => {
                parts.clear();
                for (segment_idx, doc) in vectors.vocabulary.corpus().doc_parts(doc_id) {
                    let rows = vectors.rows.of(segment_idx);
                    let terms = vectors.count(open, segment_idx, doc, *makes_bags)?;
                    let counted = terms.words().iter().zip(terms.counts());
                    parts.extend(counted.map(|(&word, &count)| (rows.row(word), count)));
                }
                chunk.extend_joined(parts)?;
            }
        }
        chunk.end_document(doc_id);
        Ok(())
    }
}

impl TermVectors {
    fn is_worth_bags(&self, docs: &DocSelection) -> bool {
        docs.len() as u64 >= self.vocabulary.corpus().num_docs() / PART_WORTH_BAGS
    }

    /// Counts the words of a document of a segment with what is open for it.
    fn count<'a>(
        &self,
        open: &'a mut Option<(usize, DocTerms)>,
        segment_idx: usize,
        doc: usize,
        makes_bags: bool,
    ) -> Result<&'a DocTerms> {
        let dag = &self.vocabulary.corpus().segments()[segment_idx].dag;
        let way = &self.ways[segment_idx];
        let kept = open.take().filter(|(open_idx, _)| *open_idx == segment_idx);
        let (_, terms) = open.insert(match kept {
            Some(kept) => kept,
            None => (segment_idx, DocTerms::new(dag)),
        });
        let bags = match way.traversal {
            Traversal::BottomUp if makes_bags || way.is_forced => {
                Some(way.bags.get_or_init(|| TermBags::new(dag)))
            }
            Traversal::BottomUp => way.bags.get(),
            _ => None,
        };
        terms.count(dag, doc, way.traversal, bags)?;
        Ok(terms)
    }
}

/// The way to take for the term vectors of a segment of this `shape`, never [`Traversal::Auto`],
/// and the reason for `EXPLAIN`. O(1) from counted statistics.
pub fn choose_term_traversal(shape: impl Into<SegmentShape>) -> (Traversal, String) {
    let SegmentShape { num_docs, num_words, num_elements, .. } = shape.into();
    let words_per_doc = num_words / num_docs.max(1);
    let reuse = num_elements as f64 / num_words.max(1) as f64;
    let size = format!("documents of {words_per_doc} words, {reuse:.2} grammar elements a word");
    if BAG_WORDS_PER_DOC.contains(&words_per_doc) {
        return (
            Traversal::BottomUp,
            format!("{size}: small documents add the words of small rules"),
        );
    }
    (Traversal::TopDown, format!("{size}: each rule is looked at once for a document"))
}
