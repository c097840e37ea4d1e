//! Words of documents in text order, as rows of the vocabulary: input for word2vec and similar
//! tools.
//!
//! A chunk ends after a fixed number of words, also inside a document. So the cost for a corpus of
//! 2^60 words depends only on the words that are read. O(words), with a few steps through the
//! grammar for each word.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::segment::{Dag, Measure, PrefixSums};

use super::vocabulary::WordRows;
use super::{DocSelection, Vocabulary};

/// Maximum number of words of a chunk.
const CHUNK_WORDS: usize = 8192;
/// Maximum number of documents visited for a chunk, because empty documents have no words.
const CHUNK_DOCS: usize = 8192;

/// Cursor over the words of selected documents, one chunk at a time.
#[derive(Debug)]
pub struct TokenCursor {
    vocabulary: Arc<Vocabulary>,
    rows: Arc<WordRows>,
    docs: DocSelection,
    /// Index in `docs` of the current document; `part` is the current part of that document.
    next: usize,
    part: usize,
    is_inside: bool,
    word_index: u64,
    walk: WordWalk,
}

/// Consecutive words of the selection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenChunk {
    doc_ids: Vec<u64>,
    word_indexes: Vec<u64>,
    rows: Vec<u32>,
}

impl TokenCursor {
    /// Creates a cursor over the words of `docs`.
    pub fn new(vocabulary: Arc<Vocabulary>, docs: &DocSelection) -> Self {
        let rows = Arc::new(WordRows::new(&vocabulary));
        let docs = docs.within(0..vocabulary.corpus().num_docs());
        let walk = WordWalk::default();
        Self { vocabulary, rows, docs, next: 0, part: 0, is_inside: false, word_index: 0, walk }
    }

    /// Creates a cursor over the words of other documents, which shares the large data with this
    /// one.
    #[must_use]
    pub fn with_docs(&self, docs: &DocSelection) -> Self {
        Self {
            vocabulary: self.vocabulary.clone(),
            rows: self.rows.clone(),
            docs: docs.within(0..self.vocabulary.corpus().num_docs()),
            next: 0,
            part: 0,
            is_inside: false,
            word_index: 0,
            walk: WordWalk::default(),
        }
    }

    /// Returns the next words, at most 8,192, or `None` after the last document. A chunk has no
    /// words if many empty documents follow each other.
    ///
    /// # Errors
    /// [`Error::Capacity`] for a document of 2^64 words or more, whose words cannot be numbered.
    pub fn next_chunk(&mut self) -> Result<Option<TokenChunk>> {
        let mut chunk = TokenChunk::default();
        let mut num_docs = 0;
        while chunk.len() < CHUNK_WORDS && num_docs < CHUNK_DOCS {
            let Some(doc_id) = self.docs.get(self.next) else {
                return Ok(Some(chunk).filter(|chunk| !chunk.is_empty()));
            };
            let Some((segment_idx, doc)) = self.vocabulary.corpus().doc_parts(doc_id).nth(self.part) else {
                (self.next, self.part, self.word_index) = (self.next + 1, 0, 0);
                num_docs += 1;
                continue;
            };
            let dag = &self.vocabulary.corpus().segments()[segment_idx].dag;
            if !self.is_inside {
                self.walk.start(dag.doc_range(doc));
                self.is_inside = true;
            }
            let rows = self.rows.for_segment(segment_idx);
            let max_words = CHUNK_WORDS - chunk.len();
            let push = |word| chunk.rows.push(rows.row(word));
            let num_words = self.walk.next_words(dag, max_words, push) as u64;
            let end = self.word_index.checked_add(num_words).ok_or_else(too_long)?;
            chunk.word_indexes.extend(self.word_index..end);
            chunk.doc_ids.resize(chunk.rows.len(), doc_id);
            self.word_index = end;
            if num_words < max_words as u64 {
                self.is_inside = false;
                self.part += 1;
            }
        }
        Ok(Some(chunk))
    }
}

impl TokenChunk {
    /// Returns the number of words.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if there is no word.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the document id of each word.
    pub fn doc_ids(&self) -> &[u64] {
        &self.doc_ids
    }

    /// Returns the index of each word in its document, from 0.
    pub fn word_indexes(&self) -> &[u64] {
        &self.word_indexes
    }

    /// Returns the words, as rows of the vocabulary.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }
}

fn too_long() -> Error {
    Error::Capacity {
        what: "the words of one document",
        requested: u64::MAX,
        limit: u64::MAX - 1,
        knob: "nothing (word numbers are 64-bit)",
    }
}

/// Position of a walk over the expansion of a document.
#[derive(Debug, Default)]
pub(super) struct WordWalk {
    range: Range<usize>,
    stack: Vec<Range<usize>>,
}

impl WordWalk {
    /// Moves the walk before the first word at `positions` of the root.
    pub fn start(&mut self, positions: Range<usize>) {
        self.range = positions;
        self.stack.clear();
    }

    /// Moves the walk before word `word_index` of the expansion at `positions` of the root, which
    /// has more words. It needs O(depth * log of a rule's length) time.
    pub fn start_at(&mut self, dag: &Dag, sums: &PrefixSums, positions: Range<usize>, mut word_index: u64) {
        self.start(positions);
        loop {
            let range = self.range.clone();
            let (position, start) = sums.locate(dag, Measure::Words, range.clone(), word_index);
            word_index -= start;
            let rule_id = dag.rule_of(dag.grammar().symbols[position]);
            let Some(rule_id) = rule_id.filter(|_| word_index > 0) else {
                self.range = position..range.end;
                return;
            };
            if position + 1 < range.end {
                self.stack.push(position + 1..range.end);
            }
            self.range = dag.rule_range(rule_id);
        }
    }

    /// Calls `f` with the next words, at most `max_words`. Returns the number of words, which is
    /// smaller only at the end. The walk does not enter rules without words. So each step but the
    /// last few reaches a word or passes a separator that is an element of the grammar.
    #[inline]
    pub fn next_words(&mut self, dag: &Dag, max_words: usize, mut f: impl FnMut(u32)) -> usize {
        let symbols = &dag.grammar().symbols[..];
        let num_words = dag.num_words();
        let mut num_found = 0;
        while num_found < max_words {
            let Some(position) = self.range.next() else {
                match self.stack.pop() {
                    Some(outer) => self.range = outer,
                    None => break,
                }
                continue;
            };
            let element = symbols[position];
            if element < num_words {
                f(element);
                num_found += 1;
            } else if let Some(rule_id) = dag.rule_of(element)
                && dag.len_words(element) > 0
            {
                let outer = std::mem::replace(&mut self.range, dag.rule_range(rule_id));
                if !outer.is_empty() {
                    self.stack.push(outer);
                }
            }
        }
        num_found
    }
}
