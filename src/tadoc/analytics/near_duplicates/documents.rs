//! The documents: numbers of their words and n-grams, and which of them have equal sets of n-grams.
//!
//! ```text
//! sets     0: ab bc    1: ab cd    2: bc ab    3: bc ab    fingerprint: sum of mixed hashes
//! equal    0, 2   0, 3                          2 and 3 are copies of 0
//! ```
//!
//! Documents whose fingerprints and sizes agree are equal, it seems; their words are compared later.
//! 21 bytes of memory for each document, O(words + documents * log documents).
//!
//! # Reading
//!
//! ```text
//! words     a b c a b d      n = 2
//! n-grams   ab bc ca ab bd
//! hashes    17 42  3 17 99   distinct: 17 42 3 99
//! ```
//!
//! N-grams of one document that have the same hash are compared word by word. So the number of distinct hashes is that
//! of distinct n-grams, or the keys of the hashes must be drawn again. O(words).
//!
//! # Counters
//!
//! The number of documents that have an n-gram is estimated, in a byte for each of many classes of hashes.
//!
//! ```text
//! counter    0   1 .. 16    17 ..       24      25 ..      32     …
//! documents  0   1 .. 16    18, 20, ..  32      36, 40, .. 64     …     up to 2^33
//! ```
//!
//! Beyond 16 a counter goes up with a probability (Morris, "Counting large numbers of events in
//! small registers", 1978). N-grams of one class share their counter, so it may be too high. A
//! counter of 1 is exact: only one document has n-grams of the class.
//!
//! # Memory and threads
//!
//! Documents of few words are read in parallel, some at a time. A document that alone needs the share of a thread is
//! read while no other is. So memory for reading is bounded by the threads' share and by the largest document.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::analytics::doc_terms::WordWalk;
use crate::analytics::rolling_hash::{Hashing, behind, mixed};
use crate::analytics::task_limits::{CorpusParts, WORDS_PER_BYTE, doc_words, sort_checked};
use crate::error::{Canceller, Error, Result};
use crate::segment::{Corpus, Segment};
use crate::text::Fold;

/// Bytes of memory for each document.
const DOC_BYTES: u64 = 21;

/// Documents of all parts.
#[derive(Debug, Default)]
pub(super) struct Documents {
    /// First document of each part, and the number of documents.
    part_starts: Vec<u32>,
    num_words: Vec<u32>,
    /// Number of distinct n-grams.
    sizes: Vec<u32>,
    /// True for documents whose set an earlier one has.
    are_copies: Vec<bool>,
    /// The first document, and a copy of it, ascending.
    copies: Vec<(u32, u32)>,
}

impl Documents {
    /// Reads the documents of all parts, and counts the documents of their n-grams. Returns `None`
    /// if two n-grams of a document have the same hash.
    ///
    /// # Errors
    /// [`Error::Capacity`] if the task needs more memory than it may take, [`Error::Cancelled`],
    /// and the errors of the parts.
    pub fn read<P: CorpusParts + Sync>(task: &Task<'_, P>) -> Result<Option<(Self, DocCounts)>> {
        let mut documents = Self { part_starts: vec![0], ..Self::default() };
        let mut fingerprints: Vec<u64> = Vec::new();
        let mut counts = DocCounts::new(0, 0);
        let mut num_words = 0u64;
        let max_words = task.max_memory_bytes.saturating_mul(WORDS_PER_BYTE);
        for index in 0..task.parts.num_parts() {
            let part = task.parts.part(index)?;
            let corpus: &Corpus = part.borrow();
            let start = documents.len();
            num_words = num_words.saturating_add(documents.push_part(task, corpus)?);
            if num_words > max_words {
                return Err(Error::memory_of_task("reading so many words", num_words, max_words));
            }
            if index == 0 {
                // Documents of few words have fewer n-grams than words.
                let from_parts = num_words.saturating_mul(task.parts.num_parts() as u64);
                let num_grams = from_parts.max(task.parts.num_words());
                counts = DocCounts::new(num_grams, task.max_memory_bytes / 4);
            }
            let max_doc_words = documents.max_words(start..documents.len());
            let held_bytes = documents.memory_bytes() + counts.memory_bytes();
            let reading_bytes = task.reading_bytes(max_doc_words);
            task.hold(held_bytes + PartText::memory_bytes(task, corpus) + reading_bytes)?;
            let text = PartText::new(task, corpus);
            let lens = &documents.num_words[start..];
            let read = |docs: Range<usize>| {
                let mut reader = DocReader::new(&text);
                let mut from_docs = Vec::with_capacity(docs.len());
                for at in docs {
                    let Some(hashes) = reader.read(at as u64, lens[at])? else { return Ok(None) };
                    let doc = (start + at) as u32;
                    hashes.iter().for_each(|&hash| counts.add(hash, doc));
                    from_docs.push((hashes.len() as u32, fingerprint(hashes)));
                }
                Ok(Some(from_docs))
            };
            let mut are_exact = true;
            task.for_each_range(lens, read, |from_docs| {
                are_exact &= from_docs.is_some();
                for (size, fingerprint) in from_docs.into_iter().flatten() {
                    documents.sizes.push(size);
                    fingerprints.push(fingerprint);
                }
                Ok(())
            })?;
            if !are_exact {
                return Ok(None);
            }
        }
        documents.find_copies(task, &fingerprints)?;
        Ok(Some((documents, counts)))
    }

    /// Appends the documents of a part. Returns the number of their words.
    fn push_part<P: CorpusParts + Sync>(&mut self, task: &Task<'_, P>, corpus: &Corpus) -> Result<u64> {
        let num_docs = (self.len() as u64).saturating_add(corpus.num_docs());
        // Numbers of documents and words have 32 bits.
        let num_bytes = num_docs.saturating_mul(DOC_BYTES);
        if num_docs >= u64::from(u32::MAX) || num_bytes > task.max_memory_bytes {
            return Err(task.too_little(num_bytes));
        }
        let mut num_words = 0u64;
        for doc_id in 0..corpus.num_docs() {
            let len = doc_words(corpus, doc_id);
            let from_doc = u32::try_from(len).ok().filter(|&len| len < u32::MAX);
            self.num_words.push(from_doc.ok_or_else(|| task.too_little(task.reading_bytes(len)))?);
            num_words = num_words.saturating_add(len);
        }
        self.part_starts.push(num_docs as u32);
        Ok(num_words)
    }

    /// Finds the documents whose fingerprint and size an earlier one has.
    fn find_copies<P: CorpusParts + Sync>(&mut self, task: &Task<'_, P>, fingerprints: &[u64]) -> Result<()> {
        let key = |doc: u32| (fingerprints[doc as usize], self.sizes[doc as usize]);
        let mut order: Vec<u32> = (0..self.len() as u32).filter(|&doc| self.sizes[doc as usize] > 0).collect();
        let is_cancelled = || task.parts.is_cancelled();
        sort_checked(&mut order, |&doc| (key(doc), doc), Canceller::new(&is_cancelled))?;
        self.are_copies = vec![false; self.len()];
        for equal in order.chunk_by(|&a, &b| key(a) == key(b)) {
            for &copy in &equal[1..] {
                self.are_copies[copy as usize] = true;
                self.copies.push((equal[0], copy));
            }
        }
        self.copies.sort_unstable();
        Ok(())
    }

    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        self.num_words.len()
    }

    /// Returns the number of words of `doc`.
    pub fn num_words(&self, doc: u32) -> u32 {
        self.num_words[doc as usize]
    }

    /// Returns the number of words of all documents.
    pub fn all_num_words(&self) -> &[u32] {
        &self.num_words
    }

    /// Returns the number of distinct n-grams of `doc`.
    #[inline]
    pub fn size(&self, doc: u32) -> usize {
        self.sizes[doc as usize] as usize
    }

    /// Returns true if an earlier document has the set of `doc`.
    pub fn is_copy(&self, doc: u32) -> bool {
        self.are_copies[doc as usize]
    }

    /// Returns the copies of all documents: the first document, and a copy, ascending.
    pub fn copies(&self) -> &[(u32, u32)] {
        &self.copies
    }

    /// Returns the copies of `doc`, ascending.
    pub fn copies_for(&self, doc: u32) -> &[(u32, u32)] {
        let start = self.copies.partition_point(|&(first, _)| first < doc);
        let len = self.copies[start..].partition_point(|&(first, _)| first == doc);
        &self.copies[start..start + len]
    }

    /// Returns the documents of `part`.
    pub fn for_part(&self, part: usize) -> Range<usize> {
        self.part_starts[part] as usize..self.part_starts[part + 1] as usize
    }

    /// Returns the first document of `part`, or the number of documents if there is no such part.
    pub fn first_of_part(&self, part: usize) -> u64 {
        self.part_starts.get(part).map_or(self.len() as u64, |&start| start.into())
    }

    /// Returns the part of `doc`.
    pub fn part_from(&self, doc: u32) -> usize {
        self.part_starts.partition_point(|&start| start <= doc) - 1
    }

    /// Returns the greatest number of words of one of `docs`.
    pub fn max_words(&self, docs: Range<usize>) -> u64 {
        self.num_words[docs].iter().copied().max().unwrap_or(0).into()
    }

    /// Returns the bytes of memory in use.
    pub fn memory_bytes(&self) -> u64 {
        DOC_BYTES * self.len() as u64 + 8 * self.copies.capacity() as u64
    }
}

/// Returns a number that depends on a set of hashes, and not on their order.
fn fingerprint(hashes: &[u64]) -> u64 {
    let mixed = |hash: u64| {
        let product = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        product ^ product >> 32
    };
    hashes.iter().fold(0, |sum, &hash| sum.wrapping_add(mixed(hash)))
}

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
        let values = |s: &Segment| words_from(s).map(value).collect();
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
        let from_segments = corpus.segments().iter().map(|s| u64::from(s.dag.num_words()));
        bytes_of_word * from_segments.sum::<u64>()
    }

    /// Returns the id that stands for word `id` and all others that are folded to the same text.
    #[inline]
    fn folded_id(&self, segment_idx: usize, id: u32) -> u32 {
        self.first_ids[segment_idx].get(id as usize).copied().unwrap_or(id)
    }
}

fn words_from(segment: &Segment) -> impl Iterator<Item = &str> {
    (0..segment.dag.num_words()).map(|id| segment.dictionary.word(id.into()))
}

fn first_ids<P>(task: &Task<'_, P>, segment: &Segment) -> Vec<u32> {
    let mut ids = HashMap::new();
    let first = |(id, word)| *ids.entry(task.fold.text(word)).or_insert(id);
    (0..).zip(words_from(segment)).map(first).collect()
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
    /// [`Error::Cancelled`].
    pub fn read(&mut self, doc_id: u64, num_doc_words: u32) -> Result<Option<&[u64]>> {
        let num_words = self.text.task.num_words;
        self.distinct.clear();
        let Some(num_grams) = (num_doc_words as usize + 1).checked_sub(num_words).filter(|&num_grams| num_grams > 0)
        else {
            return Ok(Some(&self.distinct));
        };
        self.read_words(doc_id, num_doc_words as usize)?;
        for at in 0..num_grams {
            self.hashes[at] = mixed(behind(self.hashes[at], self.hashes[at + num_words], self.power));
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
                let words = &mut self.words;
                let hashes = &mut self.hashes;
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

/// Number of counters for each n-gram, where memory allows.
const COUNTERS_PER_GRAM: u64 = 2;
/// Counters up to here are exact.
const MAX_EXACT: u8 = 16;
/// Number of steps in which a counter doubles its number of documents.
const STEPS: u8 = 8;

/// Counters of documents.
#[derive(Debug)]
pub(super) struct DocCounts(Vec<AtomicU8>);

impl DocCounts {
    /// Creates counters for `num_grams` n-grams, of at most `max_bytes`.
    pub fn new(num_grams: u64, max_bytes: u64) -> Self {
        let len = num_grams.saturating_mul(COUNTERS_PER_GRAM).min(max_bytes).max(64);
        Self((0..len).map(|_| AtomicU8::new(0)).collect())
    }

    /// Returns the number of bytes of [`new`](Self::new).
    pub fn memory_bytes(&self) -> u64 {
        self.0.len() as u64
    }

    /// Counts document `doc` for the n-gram of `hash`.
    #[inline]
    pub fn add(&self, hash: u64, doc: u32) {
        let counter = self.counter(hash);
        let mut count = counter.load(Ordering::Relaxed);
        while count < u8::MAX {
            if count >= MAX_EXACT {
                let level = u32::from((count - MAX_EXACT) / STEPS) + 1;
                let random = (hash ^ u64::from(doc)).wrapping_mul(0xd6e8_feb8_6659_fd93);
                if random >> (64 - level) != 0 {
                    return;
                }
            }
            let next = count + 1;
            let set = Ordering::Relaxed;
            let get = Ordering::Relaxed;
            match counter.compare_exchange_weak(count, next, set, get) {
                Ok(_) => return,
                Err(changed) => count = changed,
            }
        }
    }

    /// Returns the counter of the n-gram of `hash`. It goes up with the number of documents.
    #[inline]
    pub fn count(&self, hash: u64) -> u8 {
        self.counter(hash).load(Ordering::Relaxed)
    }

    #[inline]
    fn counter(&self, hash: u64) -> &AtomicU8 {
        &self.0[((u128::from(hash) * self.0.len() as u128) >> 64) as usize]
    }
}

/// Bytes of memory for each word of a document that is read: 4 for the word, 8 for its hash, 16 for
/// its slots, 8 for distinct hashes, and 1 for their counts.
const READING_BYTES: u64 = 40;
/// Greatest number of words that a thread reads before its results are taken.
const MAX_TASK_WORDS: u64 = 1 << 16;
/// Number of tasks for each thread before results are taken.
const TASKS_PER_THREAD: usize = 8;

/// Arguments of the task.
pub(super) struct Task<'a, P> {
    pub parts: &'a P,
    pub fold: &'a Fold,
    pub threshold: f64,
    pub num_words: usize,
    pub max_memory_bytes: u64,
    pub hashing: Hashing,
}

impl<P: CorpusParts + Sync> Task<'_, P> {
    /// Notes the memory in use.
    ///
    /// # Errors
    /// [`Error::Capacity`] if it is too much; the errors of the owner of the parts.
    pub fn hold(&self, bytes: u64) -> Result<()> {
        if bytes > self.max_memory_bytes {
            return Err(self.too_little(bytes));
        }
        self.parts.hold(bytes)
    }

    /// Returns the error of a task that needs so many bytes.
    pub fn too_little(&self, bytes: u64) -> Error {
        Error::memory_of_task("looking for near duplicates (bytes)", bytes, self.max_memory_bytes)
    }

    /// Checks that the caller does not want to stop.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    #[inline]
    pub fn check_cancelled(&self) -> Result<()> {
        if self.parts.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Returns the greatest number of bytes of memory for reading documents of at most
    /// `max_doc_words`.
    pub fn reading_bytes(&self, max_doc_words: u64) -> u64 {
        let side_by_side = self.words_of_thread().min(max_doc_words) * num_threads();
        side_by_side.max(max_doc_words).saturating_mul(READING_BYTES)
    }

    /// Returns the number of words that a thread may have in memory beside others.
    fn words_of_thread(&self) -> u64 {
        let share = self.max_memory_bytes / 8 / num_threads() / READING_BYTES;
        share.min(MAX_TASK_WORDS)
    }

    /// Calls `read` with ranges of `lens`, which are numbers of words of documents, and `take` with
    /// the results, in order. `read` is called in parallel, unless a document is large.
    ///
    /// # Errors
    /// The errors of `read` and `take`.
    pub fn for_each_range<T: Send>(
        &self,
        lens: &[u32],
        read: impl Fn(Range<usize>) -> Result<T> + Sync,
        mut take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let max_words = self.words_of_thread();
        let mut tasks = Vec::new();
        let mut start = 0;
        let mut num_words = 0u64;
        for (at, &len) in lens.iter().enumerate() {
            if at > start && num_words + u64::from(len) > max_words {
                tasks.push((start..at, num_words));
                (start, num_words) = (at, 0);
            }
            // An empty document takes time, too.
            num_words += u64::from(len).max(1);
        }
        if start < lens.len() {
            tasks.push((start..lens.len(), num_words));
        }
        let is_small = |task: &(Range<usize>, u64)| task.1 <= max_words;
        for tasks in tasks.chunk_by(|a, b| is_small(a) && is_small(b)) {
            for tasks in tasks.chunks(TASKS_PER_THREAD * num_threads() as usize) {
                let read = |(range, _): &(Range<usize>, u64)| read(range.clone());
                let made: Result<Vec<T>> = tasks.par_iter().map(read).collect();
                made?.into_iter().try_for_each(&mut take)?;
            }
        }
        Ok(())
    }
}

fn num_threads() -> u64 {
    rayon::current_num_threads() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_counts_are_exact_and_large_ones_double_in_eight_steps() {
        let counts = DocCounts::new(1_000, u64::MAX);
        assert_eq!((counts.memory_bytes(), counts.count(7)), (2_000, 0));
        let mut seen = Vec::new();
        for doc in 0..1 << 14 {
            counts.add(7, doc);
            seen.push(counts.count(7));
        }
        assert_eq!(seen[..16], (1..=16).collect::<Vec<u8>>());
        let expected = 16.0 + 8.0 * 10.0;
        assert!((f64::from(seen[seen.len() - 1]) - expected).abs() < 12.0, "{seen:?}");
        assert_eq!(DocCounts::new(u64::MAX, 0).memory_bytes(), 64);
    }
}
