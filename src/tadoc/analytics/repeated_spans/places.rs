//! Places of words: counted from the start of the corpus, over all its parts.
//!
//! ```text
//! part            0           1
//! document        0     1     2        3 (empty)   4
//! words           a b   c     d e f                g
//! place           0 1   3     5 6 7                10
//! ```
//!
//! A place without a word lies behind each document, so that words of two documents are never
//! neighbours.

use std::ops::Range;

use super::first_places::PLACE_BITS;
use crate::analytics::corpus_parts::doc_words;
use crate::analytics::word_walk::WordWalk;
use crate::error::{Error, Result};
use crate::segment::Corpus;

/// Greatest number of words of a corpus.
const MAX_WORDS: u64 = (1 << PLACE_BITS) - 2;

/// Places at which documents and parts begin.
#[derive(Debug)]
pub(super) struct Places {
    /// Place of the first word of each document, then the number of places.
    doc_starts: Vec<u64>,
    /// First document of each part, then the number of documents.
    part_starts: Vec<usize>,
    max_words: u64,
    max_doc_words: u64,
}

/// A part of the corpus in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartAt<'a> {
    pub index: usize,
    pub corpus: &'a Corpus,
}

/// A word of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    pub segment_idx: usize,
    pub id: u32,
}

impl Places {
    /// Creates the places of a corpus without parts, which may have up to `max_words` words.
    pub fn new(max_words: u64) -> Self {
        let max_words = max_words.min(MAX_WORDS);
        Self { doc_starts: vec![0], part_starts: vec![0], max_words, max_doc_words: 0 }
    }

    /// Adds the documents of the next part, O(elements of the root).
    ///
    /// # Errors
    /// [`Error::Capacity`] if there are more words than allowed.
    pub fn push_part(&mut self, part: &Corpus) -> Result<()> {
        for doc_id in 0..part.num_docs() {
            let len = doc_words(part, doc_id);
            let end = self.num_places().saturating_add(len).saturating_add(1);
            if end > self.max_words {
                return Err(Error::memory_of_task("reading so many words", end, self.max_words));
            }
            self.max_doc_words = self.max_doc_words.max(len);
            self.doc_starts.push(end);
        }
        self.part_starts.push(self.doc_starts.len() - 1);
        Ok(())
    }

    /// Returns the number of places of all parts.
    pub fn num_places(&self) -> u64 {
        self.doc_starts[self.doc_starts.len() - 1]
    }

    /// Returns the number of words of the longest document.
    pub fn max_doc_words(&self) -> u64 {
        self.max_doc_words
    }

    /// Returns the documents of `part`.
    pub fn docs_of_part(&self, part: usize) -> Range<usize> {
        self.part_starts[part]..self.part_starts[part + 1]
    }

    /// Returns the places of the words of `part`.
    pub fn for_part(&self, part: usize) -> Range<u64> {
        let docs = self.docs_of_part(part);
        self.doc_starts[docs.start]..self.doc_starts[docs.end]
    }

    /// Returns the places of the words of document `doc_id`.
    pub fn for_doc(&self, doc_id: usize) -> Range<u64> {
        self.doc_starts[doc_id]..self.doc_starts[doc_id + 1] - 1
    }

    /// Returns the part with the word at `place`.
    pub fn part_of(&self, place: u64) -> usize {
        let begins = |&doc: &usize| self.doc_starts[doc] <= place;
        self.part_starts.partition_point(begins) - 1
    }

    /// Returns the document with the word at `place`.
    pub fn doc_of(&self, place: u64) -> usize {
        self.doc_starts.partition_point(|&start| start <= place) - 1
    }

    /// Returns the memory in bytes.
    pub fn memory_bytes(&self) -> u64 {
        8 * (self.doc_starts.capacity() + self.part_starts.capacity()) as u64
    }

    /// Writes `num_words` words from `place` on to `words`. They lie in one document of `part`.
    pub fn read_words(
        &self,
        part: PartAt<'_>,
        place: u64,
        num_words: usize,
        words: &mut Vec<Word>,
    ) {
        words.clear();
        let (corpus, (doc_id, mut skipped)) = (part.corpus, self.in_part(part.index, place));
        let mut walk = WordWalk::default();
        for (segment_idx, doc) in corpus.doc_parts(doc_id) {
            let segment = &corpus.segments()[segment_idx];
            let sums = segment.prefix_sums_or_derive();
            let len = sums.doc_length(doc).num_words;
            if skipped >= len {
                skipped -= len;
                continue;
            }
            walk.start_at(&segment.dag, sums, segment.dag.doc_range(doc), skipped);
            skipped = 0;
            let num_left = num_words - words.len();
            walk.next_words(&segment.dag, num_left, |id| words.push(Word { segment_idx, id }));
            if words.len() == num_words {
                break;
            }
        }
    }

    /// Returns the bytes of the word at `place` in its document, which lies in `part`. O(depth * log of
    /// a rule's length).
    pub fn bytes_of(&self, part: PartAt<'_>, place: u64) -> Range<u64> {
        let (corpus, (doc_id, mut skipped)) = (part.corpus, self.in_part(part.index, place));
        let mut start = 0u64;
        for (segment_idx, doc) in corpus.doc_parts(doc_id) {
            let segment = &corpus.segments()[segment_idx];
            let (dag, sums) = (&segment.dag, segment.prefix_sums_or_derive());
            let length = sums.doc_length(doc);
            if skipped >= length.num_words {
                skipped -= length.num_words;
                start += length.len_bytes;
                continue;
            }
            let word = sums.word_span(dag, dag.doc_range(doc), skipped);
            start += word.byte_offset;
            return start..start + word.byte_len;
        }
        start..start
    }

    /// Returns the document with the word at `place`, counted from the first one of `part`, and the
    /// number of its words before the place.
    fn in_part(&self, part: usize, place: u64) -> (u64, u64) {
        let doc_id = self.doc_of(place);
        ((doc_id - self.part_starts[part]) as u64, place - self.doc_starts[doc_id])
    }
}
