//! The sequences of texts that a part of the corpus has, and the documents that have them.
//!
//! Each task reads a range of documents. A word that no text has ends a run of words. Where a run has n
//! words or more, the hash of the last n is looked up: first in a filter that is small enough for a
//! cache, then in the table, whose words are compared.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::MAX_DOC_IDS;
use super::texts::{Grams, NONE};
use crate::analytics::corpus_parts::doc_words;
use crate::analytics::rolling_hash::Rolling;
use crate::analytics::word_walk::WordWalk;
use crate::error::{Error, Result};
use crate::segment::{Corpus, Dag, Segment};

/// Number of words between two looks at the cancellation.
const CHUNK_WORDS: usize = 1 << 14;

/// A set of sequences that all tasks fill.
#[derive(Debug)]
pub(super) struct Found(Vec<AtomicU64>);

/// Documents with sequences of a text.
#[derive(Debug, Clone, Default)]
pub(super) struct Documents {
    pub num_docs: u64,
    /// The first ids.
    pub doc_ids: Vec<u64>,
    /// The last document that was counted, plus 1.
    last: u64,
}

impl Found {
    pub fn new(num_grams: usize) -> Self {
        Self((0..num_grams.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    fn add(&self, gram: u32) {
        let (word, bit) = (&self.0[gram as usize / 64], 1 << (gram % 64));
        // Sequences are found again and again, and a store makes other cores wait.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub fn has(&self, gram: u32) -> bool {
        self.0[gram as usize / 64].load(Ordering::Relaxed) >> (gram % 64) & 1 == 1
    }
}

impl Documents {
    /// Appends the documents of `next`, which come behind.
    pub fn append(&mut self, next: Self) {
        self.num_docs += next.num_docs;
        let num_left = MAX_DOC_IDS - self.doc_ids.len();
        self.doc_ids.extend(next.doc_ids.into_iter().take(num_left));
    }
}

/// Returns the number of tasks that read a part side by side.
pub(super) fn num_tasks() -> usize {
    rayon::current_num_threads()
}

/// Reads all documents of `corpus`, whose first id is `first_doc_id`. Marks the sequences that it has in
/// `found`, and returns the documents of each text.
///
/// # Errors
/// [`Error::Cancelled`] if `is_cancelled` says so.
pub(super) fn count(
    grams: &Grams<'_>,
    corpus: &Corpus,
    first_doc_id: u64,
    found: &Found,
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Documents>> {
    let numbers_of = |segment: &Arc<Segment>| -> Vec<u32> {
        let word = |id: u32| segment.dictionary.word(id.into());
        (0..segment.dag.num_words()).map(|id| grams.texts().number_of(word(id))).collect()
    };
    let numbers: Vec<Vec<u32>> = corpus.segments().par_iter().map(numbers_of).collect();
    let tasks: Vec<Range<u64>> = equal_ranges(corpus, num_tasks());
    let read = |docs: Range<u64>| {
        let reader = Reader { grams, corpus, numbers: &numbers, found, is_cancelled };
        reader.read(docs, first_doc_id)
    };
    let of_tasks: Result<Vec<Vec<Documents>>> = tasks.into_par_iter().map(read).collect();
    let mut all = vec![Documents::default(); grams.texts().len()];
    for documents in of_tasks? {
        all.iter_mut().zip(documents).for_each(|(all, next)| all.append(next));
    }
    Ok(all)
}

/// Returns the number of words of `corpus`, or 2^64 - 1 if there are more.
pub(super) fn corpus_words(corpus: &Corpus) -> u64 {
    (0..corpus.num_docs()).map(|doc_id| doc_words(corpus, doc_id)).fold(0, u64::saturating_add)
}

/// Cuts the documents into ranges of about as many words.
fn equal_ranges(corpus: &Corpus, num_ranges: usize) -> Vec<Range<u64>> {
    let share = corpus_words(corpus) / num_ranges.max(1) as u64;
    let (mut ranges, mut start, mut len) = (Vec::with_capacity(num_ranges), 0, 0u64);
    for doc_id in 0..corpus.num_docs() {
        len = len.saturating_add(doc_words(corpus, doc_id));
        if len > share || doc_id + 1 == corpus.num_docs() {
            ranges.push(start..doc_id + 1);
            (start, len) = (doc_id + 1, 0);
        }
    }
    ranges
}

/// Reader of a range of documents.
struct Reader<'a> {
    grams: &'a Grams<'a>,
    corpus: &'a Corpus,
    /// Number of each word, by segment and word id.
    numbers: &'a [Vec<u32>],
    found: &'a Found,
    is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl Reader<'_> {
    fn read(&self, docs: Range<u64>, first_doc_id: u64) -> Result<Vec<Documents>> {
        let texts = self.grams.texts();
        let mut documents = vec![Documents::default(); texts.len()];
        let mut last_of_lists = vec![0u64; self.grams.num_lists()];
        let mut rolling = Rolling::new(&texts.hashing, texts.num_words);
        let mut recent = Recent::new(texts.num_words);
        let mut walk = WordWalk::default();
        for doc_id in docs {
            if (self.is_cancelled)() {
                return Err(Error::Cancelled);
            }
            rolling.start();
            let mark = first_doc_id + doc_id + 1;
            for (segment_idx, doc) in self.corpus.doc_parts(doc_id) {
                let dag = &self.corpus.segments()[segment_idx].dag;
                let numbers = &self.numbers[segment_idx];
                walk.start(dag.doc_range(doc));
                let read = |word: u32| {
                    let number = numbers[word as usize];
                    if number == NONE {
                        rolling.start();
                        return;
                    }
                    recent.push(number);
                    let Some(hash) = rolling.push(texts.values[number as usize]) else { return };
                    let Some(gram) = self.grams.find(hash, |words| recent.ends_with(words)) else {
                        return;
                    };
                    self.found.add(gram);
                    let list = self.grams.list_of(gram);
                    if std::mem::replace(&mut last_of_lists[list], mark) != mark {
                        for &text in self.grams.texts_of(list) {
                            documents[text as usize].add(mark);
                        }
                    }
                };
                self.read_words(&mut walk, dag, read)?;
            }
        }
        Ok(documents)
    }

    fn read_words(&self, walk: &mut WordWalk, dag: &Dag, mut read: impl FnMut(u32)) -> Result<()> {
        while walk.next_words(dag, CHUNK_WORDS, &mut read) == CHUNK_WORDS {
            if (self.is_cancelled)() {
                return Err(Error::Cancelled);
            }
        }
        Ok(())
    }
}

impl Documents {
    /// Counts the document of id `mark` - 1, unless it was counted last.
    fn add(&mut self, mark: u64) {
        if self.last == mark {
            return;
        }
        self.last = mark;
        self.num_docs += 1;
        if self.doc_ids.len() < MAX_DOC_IDS {
            self.doc_ids.push(mark - 1);
        }
    }
}

/// The last words that were read.
struct Recent {
    words: Vec<u32>,
    next: usize,
}

impl Recent {
    fn new(num_words: usize) -> Self {
        Self { words: vec![NONE; num_words.next_power_of_two()], next: 0 }
    }

    #[inline]
    fn push(&mut self, word: u32) {
        let mask = self.words.len() - 1;
        self.words[self.next & mask] = word;
        self.next = self.next.wrapping_add(1);
    }

    /// Returns true if the last words are `words`.
    #[inline]
    fn ends_with(&self, words: &[u32]) -> bool {
        let mask = self.words.len() - 1;
        let start = self.next.wrapping_sub(words.len());
        (0..words.len()).all(|at| self.words[start.wrapping_add(at) & mask] == words[at])
    }
}
