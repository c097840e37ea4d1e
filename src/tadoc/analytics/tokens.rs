//! The words of documents in order, as rows of the vocabulary: input for word2vec and the like.
//!
//! A chunk ends after so many words, inside a document too, so a corpus of 2^60 words costs what is
//! read of it. O(words), a few steps of the grammar for each.

use std::sync::Arc;

use crate::error::{Error, Result};

use super::word_rows::WordRows;
use super::word_walk::WordWalk;
use super::{DocSelection, Vocabulary};

/// Words of a chunk.
const CHUNK_WORDS: usize = 8192;
/// Documents that are looked at for a chunk at most: empty ones have no words.
const CHUNK_DOCS: usize = 8192;

/// The words of selected documents, a chunk at a time.
#[derive(Debug)]
pub struct TokenCursor {
    vocabulary: Arc<Vocabulary>,
    rows: Arc<WordRows>,
    docs: DocSelection,
    /// Index in `docs`, and the part of that document at hand.
    next: usize,
    part: usize,
    is_inside: bool,
    word_index: u64,
    walk: WordWalk,
}

/// Words that follow each other in the selection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenChunk {
    doc_ids: Vec<u64>,
    word_indexes: Vec<u64>,
    rows: Vec<u32>,
}

impl TokenCursor {
    /// A cursor over the words of `docs`.
    pub fn new(vocabulary: Arc<Vocabulary>, docs: &DocSelection) -> Self {
        let rows = Arc::new(WordRows::new(&vocabulary));
        let docs = docs.within(0..vocabulary.corpus().num_docs());
        let walk = WordWalk::default();
        Self { vocabulary, rows, docs, next: 0, part: 0, is_inside: false, word_index: 0, walk }
    }

    /// A cursor over the words of other documents, which shares what is large.
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

    /// The next words, at most 8,192 and none where there are many empty documents, or `None` after
    /// the last document.
    ///
    /// # Errors
    /// [`Error::Capacity`] for a document of 2^64 words or more, which has no word number.
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
            let rows = self.rows.of(segment_idx);
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
    /// Number of words.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The document of each word.
    pub fn doc_ids(&self) -> &[u64] {
        &self.doc_ids
    }

    /// The number of each word in its document, from 0.
    pub fn word_indexes(&self) -> &[u64] {
        &self.word_indexes
    }

    /// The words, as rows of the vocabulary.
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
