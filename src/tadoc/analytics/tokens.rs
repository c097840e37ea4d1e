//! Words of documents in text order, as rows of the vocabulary: input for word2vec and similar
//! tools.
//!
//! A chunk ends after a fixed number of words, also inside a document. So the cost for a corpus of
//! 2^60 words depends only on the words that are read. O(words), with a few steps through the
//! grammar for each word.

use std::sync::Arc;

use crate::error::{Error, Result};

use super::word_rows::WordRows;
use super::word_walk::WordWalk;
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
            let Some((segment_idx, doc)) =
                self.vocabulary.corpus().doc_parts(doc_id).nth(self.part)
            else {
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
