//! Documents of a part as the hashes of their n-grams.
//!
//! ```text
//! words     a b c a b d      n = 2
//! n-grams   ab bc ca ab bd
//! hashes    17 42  3 17 99   distinct: 17 42 3 99
//! ```
//!
//! N-grams of one document that have the same hash are compared word by word. So the number of distinct
//! hashes is that of distinct n-grams, or the keys of the hashes must be drawn again. O(words).

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::task::Task;
use crate::analytics::corpus_parts::CorpusParts;
use crate::analytics::rolling_hash::{Hashing, behind, mixed};
use crate::analytics::word_walk::WordWalk;
use crate::error::Result;
use crate::segment::{Corpus, Segment};
use crate::text::Fold;

/// Number of words between two looks at the cancellation.
const CHUNK_WORDS: usize = 1 << 16;

/// A part with the values of its words.
pub(super) struct PartText<'a, P> {
    task: &'a Task<'a, P>,
    corpus: &'a Corpus,
    /// Value of each word, by segment and id.
    values: Vec<Vec<u64>>,
    /// First id of the same folded word in the segment; empty if words are not folded.
    first_ids: Vec<Vec<u32>>,
}

impl<'a, P: CorpusParts + Sync> PartText<'a, P> {
    /// Computes the values of the words of `corpus`.
    pub fn new(task: &'a Task<'a, P>, corpus: &'a Corpus) -> Self {
        let is_folded = *task.fold != Fold::NONE;
        let value = |word: &str| task.hashing.value(task.fold.text(word).as_bytes());
        let segments = corpus.segments();
        let values = |s: &Segment| words_of(s).map(value).collect();
        let first_ids = |s: &Segment| if is_folded { first_ids(task, s) } else { Vec::new() };
        Self {
            task,
            corpus,
            values: segments.par_iter().map(|segment| values(segment)).collect(),
            first_ids: segments.par_iter().map(|segment| first_ids(segment)).collect(),
        }
    }

    /// Returns the bytes of memory for the words of `corpus`.
    pub fn memory_bytes(task: &Task<'_, P>, corpus: &Corpus) -> u64 {
        // Folded words are collected in a table, one segment for each thread.
        let bytes_of_word = if *task.fold == Fold::NONE { 8 } else { 64 };
        let of_segments = corpus.segments().iter().map(|s| u64::from(s.dag.num_words()));
        bytes_of_word * of_segments.sum::<u64>()
    }

    /// Returns the id that stands for word `id` and all others that are folded to the same text.
    #[inline]
    fn folded_id(&self, segment_idx: usize, id: u32) -> u32 {
        self.first_ids[segment_idx].get(id as usize).copied().unwrap_or(id)
    }
}

fn words_of(segment: &Segment) -> impl Iterator<Item = &str> {
    (0..segment.dag.num_words()).map(|id| segment.dictionary.word(id.into()))
}

fn first_ids<P>(task: &Task<'_, P>, segment: &Segment) -> Vec<u32> {
    let mut ids = HashMap::new();
    let first = |(id, word)| *ids.entry(task.fold.text(word)).or_insert(id);
    (0..).zip(words_of(segment)).map(first).collect()
}

/// Reader of documents of a part, one after another.
pub(super) struct DocReader<'a, P> {
    text: &'a PartText<'a, P>,
    power: u64,
    walk: WordWalk,
    /// Words of the document. Equal numbers are equal words.
    words: Vec<u32>,
    hashes: Vec<u64>,
    /// Places of distinct n-grams plus 1 by hash, or 0.
    slots: Vec<u32>,
    distinct: Vec<u64>,
}

impl<'a, P: CorpusParts + Sync> DocReader<'a, P> {
    /// Creates a reader of documents of `text`.
    pub fn new(text: &'a PartText<'a, P>) -> Self {
        let power = text.task.hashing.power(text.task.num_words as u64);
        Self {
            text,
            power,
            walk: WordWalk::default(),
            words: Vec::new(),
            hashes: Vec::new(),
            slots: Vec::new(),
            distinct: Vec::new(),
        }
    }

    /// Returns the distinct hashes of the n-grams of document `doc_id` of the part, which has
    /// `num_doc_words`. Returns `None` if two n-grams that differ have the same hash.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn read(&mut self, doc_id: u64, num_doc_words: u32) -> Result<Option<&[u64]>> {
        let num_words = self.text.task.num_words;
        self.distinct.clear();
        let Some(num_grams) =
            (num_doc_words as usize + 1).checked_sub(num_words).filter(|&num_grams| num_grams > 0)
        else {
            return Ok(Some(&self.distinct));
        };
        self.read_words(doc_id, num_doc_words as usize)?;
        for at in 0..num_grams {
            self.hashes[at] =
                mixed(behind(self.hashes[at], self.hashes[at + num_words], self.power));
        }
        self.slots.clear();
        self.slots.resize((2 * num_grams).next_power_of_two(), 0);
        let mask = self.slots.len() - 1;
        for at in 0..num_grams {
            let hash = self.hashes[at];
            let mut slot = hash as usize & mask;
            loop {
                let Some(other) = self.slots[slot].checked_sub(1) else {
                    self.slots[slot] = at as u32 + 1;
                    self.distinct.push(hash);
                    break;
                };
                let other = other as usize;
                if self.hashes[other] == hash {
                    if self.words[at..at + num_words] != self.words[other..other + num_words] {
                        return Ok(None);
                    }
                    break;
                }
                slot = (slot + 1) & mask;
            }
        }
        Ok(Some(&self.distinct))
    }

    /// Reads the words of a document, and the hashes of all its beginnings.
    fn read_words(&mut self, doc_id: u64, num_doc_words: usize) -> Result<()> {
        let (text, hashing): (_, &Hashing) = (self.text, &self.text.task.hashing);
        self.words.clear();
        self.words.reserve(num_doc_words);
        self.hashes.clear();
        self.hashes.reserve(num_doc_words + 1);
        self.hashes.push(0);
        let is_cut = text.corpus.doc_parts(doc_id).nth(1).is_some();
        let mut names = Names::default();
        let mut hash = 0;
        for (segment_idx, doc) in text.corpus.doc_parts(doc_id) {
            let segment = &text.corpus.segments()[segment_idx];
            let values = &text.values[segment_idx];
            self.walk.start(segment.dag.doc_range(doc));
            loop {
                let (words, hashes) = (&mut self.words, &mut self.hashes);
                let num_read = self.walk.next_words(&segment.dag, CHUNK_WORDS, |id| {
                    let word = text.folded_id(segment_idx, id);
                    words.push(if is_cut { names.name(text, segment_idx, word) } else { word });
                    hash = hashing.extended(hash, values[id as usize]);
                    hashes.push(hash);
                });
                text.task.check_cancelled()?;
                if num_read < CHUNK_WORDS {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Names of the words of a document that lies in several segments.
#[derive(Default)]
struct Names {
    by_id: FxHashMap<(usize, u32), u32>,
    by_text: HashMap<Box<str>, u32>,
}

impl Names {
    fn name<P>(&mut self, text: &PartText<'_, P>, segment_idx: usize, id: u32) -> u32 {
        match self.by_id.entry((segment_idx, id)) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let word = text.corpus.segments()[segment_idx].dictionary.word(id.into());
                let next = self.by_text.len() as u32;
                let word = text.task.fold.text(word).into();
                *entry.insert(*self.by_text.entry(word).or_insert(next))
            }
        }
    }
}
