//! The comparison of documents, block by block.
//!
//! ```text
//! block     documents 0 4 9 in memory             candidates 4: 0    7: 0 4    9: 4    31: 9
//! parts     read once, from the block's first     7 is read and compared with 0 and 4, then dropped
//! ```
//!
//! A block has as many documents as its share of memory has room for. So a corpus larger than
//! memory is read once for each block, and only its documents that are candidates. A corpus in
//! memory begins with a small block, so that the first pairs come soon.
//!
//! # Words
//!
//! ```text
//! block     a b c a b e      numbers a 0, b 1, c 2, e 3      n-grams of 2 words: ab bc ca be, by hash
//! other     a b d b c        words   0 1 . 1 2               ab bc; d is in no document of the block
//! ```
//!
//! Words are looked up by their text, each word of a segment once. N-grams are in order of 32 bits of a
//! hash, and of their words where these agree. So numbers and sets are exact.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::analytics::doc_terms::WordWalk;
use crate::analytics::rolling_hash::{Hashing, behind, mixed};
use crate::analytics::task_limits::{CorpusParts, sort_checked};
use crate::error::{Canceller, Result};
use crate::segment::Corpus;
use crate::text::Fold;

use super::documents::{Documents, Task};
use super::{SLACK, SimilarPair};

/// Bytes of memory for each word of a block: 4 for the word, 8 for its n-gram, the rest for the
/// numbers of words.
const BLOCK_WORD_BYTES: u64 = 20;
/// Bytes of memory for each candidate of a block: 8, and 24 for a pair, and the reserve of vectors.
const CANDIDATE_BYTES: u64 = 40;

/// Documents that are compared with others.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Documents in memory, ascending.
    docs: Vec<u32>,
    num_words: u64,
    /// Candidate, and index of the document in memory.
    candidates: Vec<(u32, u32)>,
}

impl Block {
    /// Adds a document and the later ones with which it is compared.
    pub fn push(&mut self, documents: &Documents, doc: u32, candidates: &[u32]) {
        if candidates.is_empty() {
            return;
        }
        let index = self.docs.len() as u32;
        self.docs.push(doc);
        self.num_words += u64::from(documents.num_words(doc));
        self.candidates.extend(candidates.iter().map(|&candidate| (candidate, index)));
    }

    /// Returns the bytes of memory that the comparison needs.
    pub fn memory_bytes(&self) -> u64 {
        let from_candidates = CANDIDATE_BYTES * self.candidates.len() as u64;
        from_candidates + BLOCK_WORD_BYTES * self.num_words
    }

    /// Returns the number of pairs of documents.
    pub fn num_candidates(&self) -> usize {
        self.candidates.len()
    }

    /// Compares the documents. Returns the pairs of a similarity of `threshold` or more, in order.
    /// Beside the block, `held_bytes` are held.
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) if the task needs more memory than it may take,
    /// [`Error::Cancelled`](crate::Error::Cancelled), and the errors of the parts.
    pub fn compare<P: CorpusParts + Sync>(
        mut self,
        task: &Task<'_, P>,
        documents: &Documents,
        threshold: f64,
        held_bytes: u64,
    ) -> Result<Vec<SimilarPair>> {
        let is_cancelled = || task.parts.is_cancelled();
        sort_checked(&mut self.candidates, |&pair| pair, Canceller::new(&is_cancelled))?;
        let held_bytes = held_bytes + self.memory_bytes();
        let mut numbers = Numbers::new(task.fold);
        let mut sets: Vec<GramSet> = Vec::with_capacity(self.docs.len());
        for docs in self.docs.chunk_by(|&a, &b| documents.part_from(a) == documents.part_from(b)) {
            let index = documents.part_from(docs[0]);
            let part = task.parts.part(index)?;
            let corpus: &Corpus = part.borrow();
            let start = documents.for_part(index).start;
            let doc_id = |doc: u32| (doc as usize - start) as u64;
            let lens: Vec<u32> = docs.iter().map(|&doc| documents.num_words(doc)).collect();
            let from_words = PartWords::memory_bytes(corpus) + numbers.memory_bytes();
            task.hold(held_bytes + from_words)?;
            let mut words = PartWords::new(corpus);
            let want = |range: Range<usize>| {
                task.check_cancelled()?;
                docs[range].iter().for_each(|&doc| words.want(doc_id(doc)));
                Ok(())
            };
            task.for_each_range(&lens, want, Ok)?;
            words.number(&mut numbers);
            let read = |range: Range<usize>| {
                task.check_cancelled()?;
                let read = |at| GramSet::new(words.read(doc_id(docs[at]), lens[at], &numbers));
                Ok(range.map(read).collect())
            };
            task.for_each_range(&lens, read, |read: Vec<GramSet>| {
                sets.extend(read);
                Ok(())
            })?;
        }
        let compared = Compared { task, documents, threshold, block: &self, sets, numbers };
        let mut pairs = Vec::new();
        let candidates: Vec<&[(u32, u32)]> = self.candidates.chunk_by(|a, b| a.0 == b.0).collect();
        let part_from = |of_doc: &[(u32, u32)]| documents.part_from(of_doc[0].0);
        for candidates in candidates.chunk_by(|a, b| part_from(a) == part_from(b)) {
            compared.compare_part(part_from(candidates[0]), candidates, held_bytes, &mut pairs)?;
        }
        pairs.sort_unstable_by_key(|pair| (pair.doc_id_a, pair.doc_id_b));
        Ok(pairs)
    }
}

/// A block that is in memory.
struct Compared<'a, P> {
    task: &'a Task<'a, P>,
    documents: &'a Documents,
    threshold: f64,
    block: &'a Block,
    sets: Vec<GramSet>,
    numbers: Numbers<'a>,
}

impl<P: CorpusParts + Sync> Compared<'_, P> {
    /// Compares documents of part `index`, each with its documents of the block.
    fn compare_part(
        &self,
        index: usize,
        candidates: &[&[(u32, u32)]],
        held_bytes: u64,
        pairs: &mut Vec<SimilarPair>,
    ) -> Result<()> {
        let task = self.task;
        let documents = self.documents;
        let in_block = |doc: u32| self.block.docs.binary_search(&doc).ok();
        let part = if candidates.iter().all(|of_doc| in_block(of_doc[0].0).is_some()) {
            None
        } else {
            Some(task.parts.part(index)?)
        };
        let corpus: Option<&Corpus> = part.as_ref().map(Borrow::borrow);
        let docs = documents.for_part(index);
        let start = docs.start;
        let lens: Vec<u32> = candidates.iter().map(|of_doc| documents.num_words(of_doc[0].0)).collect();
        let from_words = corpus.map_or(0, PartWords::memory_bytes) + self.numbers.memory_bytes();
        let max_doc_words = lens.iter().copied().max().unwrap_or(0).into();
        task.hold(held_bytes + from_words + task.reading_bytes(max_doc_words))?;
        let words = corpus.map(PartWords::new);
        let compare = |range: Range<usize>| {
            let mut found = Vec::new();
            for at in range {
                task.check_cancelled()?;
                let doc = candidates[at][0].0;
                let read = words.as_ref().filter(|_| in_block(doc).is_none()).map(|words| {
                    let doc_id = (doc as usize - start) as u64;
                    GramSet::new(words.read(doc_id, lens[at], &self.numbers))
                });
                let set = read.as_ref().or_else(|| in_block(doc).map(|at| &self.sets[at]));
                let Some(set) = set else { continue };
                for &(_, other) in candidates[at] {
                    task.check_cancelled()?;
                    found.extend(self.pair(other as usize, doc, set));
                }
            }
            Ok(found)
        };
        task.for_each_range(&lens, compare, |found: Vec<SimilarPair>| {
            pairs.extend(found);
            Ok(())
        })
    }

    /// Returns the pair of a document of the block and `doc`, which is `set`, if they are similar.
    fn pair(&self, in_block: usize, doc: u32, set: &GramSet) -> Option<SimilarPair> {
        let task = self.task;
        let first = self.block.docs[in_block];
        let pair = |similarity| SimilarPair { doc_id_a: first.into(), doc_id_b: doc.into(), similarity };
        if self.sets[in_block].has_same_words(set) {
            return Some(pair(1.0));
        }
        let total = self.documents.size(first) + self.documents.size(doc);
        // Common n-grams c have c / (total - c) >= threshold.
        let least = (self.threshold / (1.0 + self.threshold) * total as f64 - SLACK).ceil() as usize;
        let from_block = &self.sets[in_block];
        let common = from_block.num_common(set, least, &task.hashing, task.num_words)?;
        let similarity = common as f64 / (total - common) as f64;
        (similarity >= self.threshold).then(|| pair(similarity))
    }
}

/// Number of words that are not in the block.
const UNKNOWN: u32 = u32::MAX;
/// States of a word of a segment whose number is not noted yet. Other states are numbers plus 3.
const UNREAD: u32 = 0;
const WANTED: u32 = 1;
const NOT_IN_BLOCK: u32 = 2;
const FIRST_NUMBER: u32 = 3;
/// Bytes of memory for each word with a number, beside its text.
const WORD_BYTES: u64 = 48;

/// Numbers of words.
#[derive(Debug)]
pub(super) struct Numbers<'a> {
    fold: &'a Fold,
    numbers: HashMap<Box<str>, u32>,
    num_bytes: u64,
}

impl<'a> Numbers<'a> {
    pub fn new(fold: &'a Fold) -> Self {
        Self { fold, numbers: HashMap::new(), num_bytes: 0 }
    }

    /// Returns the bytes of memory in use.
    pub fn memory_bytes(&self) -> u64 {
        self.num_bytes + WORD_BYTES * self.numbers.len() as u64
    }
}

/// States of the words of a part, by segment and id.
#[derive(Debug)]
pub(super) struct PartWords<'a> {
    corpus: &'a Corpus,
    states: Vec<Vec<AtomicU32>>,
}

impl<'a> PartWords<'a> {
    /// Notes nothing yet about the words of `corpus`.
    pub fn new(corpus: &'a Corpus) -> Self {
        let nums = corpus.segments().iter().map(|segment| segment.dag.num_words());
        let states = nums.map(|num| (0..num).map(|_| AtomicU32::new(UNREAD)).collect());
        Self { corpus, states: states.collect() }
    }

    /// Returns the bytes of memory for the words of `corpus`.
    pub fn memory_bytes(corpus: &Corpus) -> u64 {
        let from_segments = corpus.segments().iter().map(|s| u64::from(s.dag.num_words()));
        4 * from_segments.sum::<u64>()
    }

    /// Notes that the words of document `doc_id` of the part belong to the block.
    pub fn want(&self, doc_id: u64) {
        self.walk(doc_id, |segment_idx, id| {
            let state = &self.states[segment_idx][id as usize];
            if state.load(Ordering::Relaxed) == UNREAD {
                state.store(WANTED, Ordering::Relaxed);
            }
        });
    }

    /// Numbers the words that belong to the block.
    pub fn number(&mut self, numbers: &mut Numbers<'_>) {
        for (segment, states) in self.corpus.segments().iter().zip(&mut self.states) {
            for (id, state) in (0u32..).zip(states) {
                if *state.get_mut() != WANTED {
                    continue;
                }
                let word = numbers.fold.text(segment.dictionary.word(id.into()));
                let next = numbers.numbers.len() as u32;
                let number = match numbers.numbers.get(&*word) {
                    Some(&number) => number,
                    None => {
                        numbers.num_bytes += word.len() as u64;
                        numbers.numbers.insert(word.into(), next);
                        next
                    }
                };
                *state.get_mut() = number + FIRST_NUMBER;
            }
        }
    }

    /// Returns the numbers of the `num_words` words of document `doc_id` of the part.
    pub fn read(&self, doc_id: u64, num_words: u32, numbers: &Numbers<'_>) -> Vec<u32> {
        let mut words = Vec::with_capacity(num_words as usize);
        self.walk(doc_id, |segment_idx, id| {
            let state = &self.states[segment_idx][id as usize];
            let mut known = state.load(Ordering::Relaxed);
            if known == UNREAD {
                let dictionary = &self.corpus.segments()[segment_idx].dictionary;
                let number = numbers.numbers.get(&*numbers.fold.text(dictionary.word(id.into())));
                known = number.map_or(NOT_IN_BLOCK, |number| number + FIRST_NUMBER);
                state.store(known, Ordering::Relaxed);
            }
            words.push(if known == NOT_IN_BLOCK { UNKNOWN } else { known - FIRST_NUMBER });
        });
        words
    }

    fn walk(&self, doc_id: u64, mut f: impl FnMut(usize, u32)) {
        let mut walk = WordWalk::default();
        for (segment_idx, doc) in self.corpus.doc_parts(doc_id) {
            let dag = &self.corpus.segments()[segment_idx].dag;
            walk.start(dag.doc_range(doc));
            walk.next_words(dag, usize::MAX, |id| f(segment_idx, id));
        }
    }
}

/// A document as its words, and the set of its n-grams that are in the block.
#[derive(Debug)]
pub(super) struct GramSet {
    words: Vec<u32>,
    /// Hash in the upper half, place in `words` in the lower half. Made when it is asked for.
    grams: OnceLock<Vec<u64>>,
}

impl GramSet {
    pub fn new(words: Vec<u32>) -> Self {
        Self { words, grams: OnceLock::new() }
    }

    /// Returns true if both have the same words in the same order, all of them of the block.
    pub fn has_same_words(&self, other: &Self) -> bool {
        self.words == other.words && !self.words.contains(&UNKNOWN)
    }

    /// Returns the number of n-grams that both have, if it is `least` or more.
    pub fn num_common(&self, other: &Self, least: usize, hashing: &Hashing, num_words: usize) -> Option<usize> {
        let mut a = &self.grams(hashing, num_words)[..];
        let mut b = &other.grams(hashing, num_words)[..];
        let mut common = 0;
        while let ([first_a, rest_a @ ..], [first_b, rest_b @ ..]) = (a, b) {
            if common + a.len().min(b.len()) < least {
                return None;
            }
            let by_hash = (first_a >> 32).cmp(&(first_b >> 32));
            let order = by_hash
                .then_with(|| gram(&self.words, *first_a, num_words).cmp(gram(&other.words, *first_b, num_words)));
            (a, b) = match order {
                std::cmp::Ordering::Less => (rest_a, b),
                std::cmp::Ordering::Greater => (a, rest_b),
                std::cmp::Ordering::Equal => {
                    common += 1;
                    (rest_a, rest_b)
                }
            };
        }
        (common >= least).then_some(common)
    }

    fn grams(&self, hashing: &Hashing, num_words: usize) -> &Vec<u64> {
        self.grams.get_or_init(|| sorted_grams(&self.words, hashing, num_words))
    }
}

/// Returns the words of an n-gram.
#[inline]
fn gram(words: &[u32], gram: u64, num_words: usize) -> &[u32] {
    let start = gram as u32 as usize;
    &words[start..start + num_words]
}

/// Returns the distinct n-grams of `words` in order of their hashes, and of their words.
fn sorted_grams(words: &[u32], hashing: &Hashing, num_words: usize) -> Vec<u64> {
    let num_grams = (words.len() + 1).saturating_sub(num_words);
    let mut grams: Vec<u64> = Vec::with_capacity(num_grams);
    let power = hashing.power(num_words as u64);
    // Prefixes from the one before the next n-gram on, and the first place behind an unknown word.
    let mut prefixes = vec![0; num_words.min(words.len()) + 1];
    let len = prefixes.len();
    let mut prefix = 0;
    let mut known = 0;
    for (at, &word) in words.iter().enumerate() {
        // Values are below 2^61 - 1, and differ.
        prefix = hashing.extended(prefix, u64::from(word) << 28 | 1);
        prefixes[(at + 1) % len] = prefix;
        if word == UNKNOWN {
            known = at + 1;
        }
        if let Some(start) = (at + 1).checked_sub(num_words)
            && start >= known
        {
            let hash = mixed(behind(prefixes[start % len], prefix, power));
            grams.push(hash >> 32 << 32 | start as u64);
        }
    }
    grams.sort_unstable();
    // N-grams of the same 32 bits are put in order of their words.
    let mut start = 0;
    let mut len = 0;
    while start < grams.len() {
        let num_same = grams[start..].partition_point(|&other| other >> 32 == grams[start] >> 32);
        let same = &mut grams[start..start + num_same];
        if num_same > 1 {
            same.sort_unstable_by(|&a, &b| gram(words, a, num_words).cmp(gram(words, b, num_words)));
        }
        for at in start..start + num_same {
            let is_new = at == start || gram(words, grams[at], num_words) != gram(words, grams[len - 1], num_words);
            if is_new {
                grams[len] = grams[at];
                len += 1;
            }
        }
        start += num_same;
    }
    grams.truncate(len);
    grams
}
