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
//!
//! # First places
//!
//! They stand in a table with open addressing, by the hash of the window.
//!
//! ```text
//! slot    hash of the window (61 bits) │ bits of its anchor (24) and its place (40), or 0
//! ```
//!
//! A slot has 16 bytes, and at most three of four are taken. Two windows are taken for equal if
//! both numbers agree, 85 bits.
//!
//! # Windows
//!
//! Each has an *anchor*: a short sequence inside it that is chosen by the words of the window alone.
//!
//! ```text
//! words      a b c d e f g h        windows of 5 words, sequences of 2 words
//! ranks      ab 7  bc 3  cd 9  de 1  ef 6  fg 2  gh 4
//! windows    a b c d e   ab bc cd de   anchor de
//!            b c d e f   bc cd de ef   anchor de
//!            e f g h …   ef fg gh …    anchor fg
//! ```
//!
//! This is winnowing (Schleimer, Wilkerson, Aiken, "Winnowing: local algorithms for document
//! fingerprinting", SIGMOD 2003): the anchor is the sequence of the least rank, the last one of
//! those of equal rank. Ranks are mixed hashes. Equal windows have the same anchor at the same
//! place, so a window whose anchor occurs once is itself unique. Neighbouring windows mostly share
//! an anchor: for windows of m words and sequences of k words there are about 2 / (m - k + 2)
//! anchors for each word. The least rank of a sliding range takes O(1) for each word with a queue
//! of ascending ranks.
//!
//! # Anchors
//!
//! A Bloom filter with two bits for each place finds those that occur more than once.
//!
//! ```text
//! block of 64 places   seen    0 1 0 1 1 0 …      the first time, all four places of an anchor are set
//!                      again   0 1 0 0 0 0 …      the next time, they are set here
//! ```
//!
//! They lie in one block, so that each anchor takes one load from memory
//! (Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters", 2007). An anchor
//! that occurs twice is always found. With 16 places for each anchor, one of a hundred that occur
//! once is found, too. It costs memory and time, but no row.

use std::collections::VecDeque;
use std::ops::Range;

use crate::analytics::doc_terms::WordWalk;
use crate::analytics::rolling_hash::{Hashing, behind, mixed};
use crate::analytics::task_limits::doc_words;
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
    pub fn part_from(&self, place: u64) -> usize {
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
    pub fn read_words(&self, part: PartAt<'_>, place: u64, num_words: usize, words: &mut Vec<Word>) {
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

    /// Returns the bytes of the word at `place` in its document, which lies in `part`. O(depth *
    /// log of a rule's length).
    pub fn bytes_of(&self, part: PartAt<'_>, place: u64) -> Range<u64> {
        let (corpus, (doc_id, mut skipped)) = (part.corpus, self.in_part(part.index, place));
        let mut start = 0u64;
        for (segment_idx, doc) in corpus.doc_parts(doc_id) {
            let segment = &corpus.segments()[segment_idx];
            let dag = &segment.dag;
            let sums = segment.prefix_sums_or_derive();
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

/// Number of bits of a place.
pub(super) const PLACE_BITS: u32 = 40;
const PLACES: u64 = (1 << PLACE_BITS) - 1;
const MIN_SLOTS: usize = 1 << 10;
const SLOT_BYTES: usize = 16;

/// The table is as large as it may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// First places of windows.
#[derive(Debug)]
pub(super) struct FirstPlaces {
    slots: Vec<[u64; 2]>,
    num_taken: usize,
    max_slots: usize,
}

impl FirstPlaces {
    /// Creates an empty table. While it grows it takes at most `max_bytes`, or 24 KiB if this is
    /// more.
    pub fn new(max_bytes: u64) -> Self {
        // The slots before and after growing stand side by side.
        let max_slots = usize::try_from(max_bytes / (2 * SLOT_BYTES as u64)).unwrap_or(usize::MAX);
        let max_slots = 1 << max_slots.max(MIN_SLOTS).ilog2();
        Self { slots: vec![[0; 2]; MIN_SLOTS], num_taken: 0, max_slots }
    }

    /// Returns the first place of the window with this `hash` and `anchor`. If it has none yet,
    /// that is `place`.
    ///
    /// # Errors
    /// [`Full`] if there is no room for it.
    #[inline]
    pub fn first(&mut self, hash: u64, anchor: u64, place: u64) -> Result<u64, Full> {
        let checked = anchor << PLACE_BITS;
        let mut slot = self.slot_for(hash);
        loop {
            let [other, found] = self.slots[slot];
            if found == 0 {
                break;
            }
            if other == hash && found & !PLACES == checked {
                return Ok((found & PLACES) - 1);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        if self.num_taken >= self.slots.len() / 4 * 3 {
            self.grow()?;
            slot = self.free_slot(hash);
        }
        self.slots[slot] = [hash, checked | (place + 1)];
        self.num_taken += 1;
        Ok(place)
    }

    /// Returns the memory in bytes, as much as growing took.
    pub fn memory_bytes(&self) -> u64 {
        (self.slots.len() / 2 * 3 * SLOT_BYTES) as u64
    }

    #[cold]
    fn grow(&mut self) -> Result<(), Full> {
        let num_slots = 2 * self.slots.len();
        if num_slots > self.max_slots {
            return Err(Full);
        }
        let before = std::mem::replace(&mut self.slots, vec![[0; 2]; num_slots]);
        for taken in before.into_iter().filter(|slot| slot[1] != 0) {
            let slot = self.free_slot(taken[0]);
            self.slots[slot] = taken;
        }
        Ok(())
    }

    fn free_slot(&self, hash: u64) -> usize {
        let mut slot = self.slot_for(hash);
        while self.slots[slot][1] != 0 {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    #[inline]
    fn slot_for(&self, hash: u64) -> usize {
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - self.slots.len().ilog2())) as usize
    }
}

/// A window of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// Number of words of the document before it.
    pub start: u64,
    /// Number of words of the document before its anchor.
    pub anchor_start: u64,
    /// Mixed hash of its anchor.
    pub anchor: u64,
}

/// Reader of the windows of one document at a time.
#[derive(Debug)]
pub(super) struct Windows<'a> {
    hashing: &'a Hashing,
    window_words: u64,
    gram_words: u64,
    window_power: u64,
    gram_power: u64,
    /// Hash of the first n words at n modulo the length, for the words of the last window.
    prefixes: Vec<u64>,
    num_words: u64,
    /// Ranks and starts of sequences that are or can become the anchor of a window, both ascending.
    candidates: VecDeque<(u64, u64)>,
}

impl<'a> Windows<'a> {
    /// Creates a reader of windows of `window_words` words, at least 1.
    pub fn new(hashing: &'a Hashing, window_words: u64) -> Self {
        let gram_words = window_words.div_ceil(2);
        let num_prefixes = (window_words as usize + 1).next_power_of_two();
        Self {
            hashing,
            window_words,
            gram_words,
            window_power: hashing.power(window_words),
            gram_power: hashing.power(gram_words),
            prefixes: vec![0; num_prefixes],
            num_words: 0,
            candidates: VecDeque::new(),
        }
    }

    /// Returns the greatest number of bytes of memory of a reader.
    pub fn max_memory_bytes(window_words: u64) -> u64 {
        // Up to twice as many prefixes as words, and as many candidates as sequences.
        window_words.saturating_mul(2 * (8 + 16)).saturating_add(64)
    }

    /// Returns an estimate of the number of anchors of a text of `num_words` words.
    pub fn num_anchors(window_words: u64, num_words: u64) -> u64 {
        let grams_of_window = window_words - window_words.div_ceil(2) + 1;
        (num_words.saturating_mul(2) / (grams_of_window + 1)).max(1)
    }

    /// Begins the next document.
    pub fn start(&mut self) {
        self.num_words = 0;
        self.prefixes[0] = 0;
        self.candidates.clear();
    }

    /// Reads the next word of the document, and returns the window that ends with it.
    #[inline]
    pub fn push(&mut self, value: u64) -> Option<Window> {
        let prefix = self.hashing.extended(self.prefix(self.num_words), value);
        self.num_words += 1;
        let slot = self.slot(self.num_words);
        self.prefixes[slot] = prefix;
        let gram_start = self.num_words.checked_sub(self.gram_words)?;
        let rank = mixed(behind(self.prefix(gram_start), prefix, self.gram_power));
        while self.candidates.back().is_some_and(|&(other, _)| other >= rank) {
            self.candidates.pop_back();
        }
        self.candidates.push_back((rank, gram_start));
        let start = self.num_words.checked_sub(self.window_words)?;
        while self.candidates.front().is_some_and(|&(_, gram)| gram < start) {
            self.candidates.pop_front();
        }
        let &(anchor, anchor_start) = self.candidates.front()?;
        Some(Window { start, anchor_start, anchor })
    }

    /// Returns the hash of the window that ends with the last word.
    #[inline]
    pub fn hash(&self, window: Window) -> u64 {
        behind(self.prefix(window.start), self.prefix(self.num_words), self.window_power)
    }

    #[inline]
    fn prefix(&self, num_words: u64) -> u64 {
        self.prefixes[self.slot(num_words)]
    }

    #[inline]
    fn slot(&self, num_words: u64) -> usize {
        num_words as usize & (self.prefixes.len() - 1)
    }
}

/// Number of anchors for each block.
const ANCHORS_PER_BLOCK: u64 = 4;
const BLOCK_BYTES: u64 = 16;

/// Set of anchors, with those that were added more than once.
#[derive(Debug)]
pub(super) struct AnchorFilter {
    /// Places that were seen, and places that were seen again.
    blocks: Vec<[u64; 2]>,
}

impl AnchorFilter {
    /// Creates an empty filter for `num_anchors` anchors, of at most `max_bytes`.
    pub fn new(num_anchors: u64, max_bytes: u64) -> Self {
        let num_blocks = num_anchors.div_ceil(ANCHORS_PER_BLOCK);
        let num_blocks = num_blocks.min(max_bytes / BLOCK_BYTES).clamp(1, 1 << 32);
        Self { blocks: vec![[0; 2]; num_blocks as usize] }
    }

    /// Adds an anchor.
    #[inline]
    pub fn add(&mut self, anchor: u64) {
        let places = places_from(anchor);
        let block = self.block_from(anchor);
        let [seen, again] = &mut self.blocks[block];
        *again |= if *seen & places == places { places } else { 0 };
        *seen |= places;
    }

    /// Returns true if an anchor was added more than once, and in few other cases.
    #[inline]
    pub fn is_repeated(&self, anchor: u64) -> bool {
        let places = places_from(anchor);
        self.blocks[self.block_from(anchor)][1] & places == places
    }

    /// Returns the memory in bytes.
    pub fn memory_bytes(&self) -> u64 {
        size_of_val(self.blocks.as_slice()) as u64
    }

    #[inline]
    fn block_from(&self, anchor: u64) -> usize {
        // Anchors are of low rank, so their first bits are mostly 0.
        let mixed = anchor.wrapping_mul(0xff51_afd7_ed55_8ccd);
        (((mixed >> 32) * self.blocks.len() as u64) >> 32) as usize
    }
}

#[inline]
fn places_from(anchor: u64) -> u64 {
    1 << (anchor & 63) | 1 << (anchor >> 6 & 63) | 1 << (anchor >> 12 & 63) | 1 << (anchor >> 18 & 63)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn first_places_are_those_of_a_map() {
        let mut table = FirstPlaces::new(1 << 20);
        let mut map = HashMap::new();
        let mut state = 1u64;
        for place in 0..40_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Few hashes that differ in their anchors, and many that differ.
            let (hash, anchor) = match place % 3 {
                0 => (state >> 60, state >> 50 & 7),
                _ => (state >> 50, 0),
            };
            let expected = *map.entry((hash, anchor)).or_insert(place);
            assert_eq!(table.first(hash, anchor, place), Ok(expected));
        }
        assert!(table.memory_bytes() <= 1 << 20);
    }

    #[test]
    fn a_full_table_says_so_and_keeps_what_it_has() {
        let mut table = FirstPlaces::new(0);
        let outcomes: Vec<_> = (0..1_000).map(|place| table.first(place, 0, place)).collect();
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), MIN_SLOTS / 4 * 3);
        assert_eq!(outcomes.last(), Some(&Err(Full)));
        assert_eq!(table.first(5, 0, 2_000), Ok(5));
        assert_eq!(table.memory_bytes(), 24 << 10);
    }

    proptest! {
        /// Words of few values, so that windows and ranks repeat.
        #[test]
        fn anchors_are_the_last_of_the_least_rank(
            values in prop::collection::vec(0..3u64, 0..120),
            window_words in 1..20u64,
        ) {
            let hashing = Hashing::new(u64::MAX);
            let hash = |values: &[u64]| values.iter().fold(0, |h, &v| hashing.extended(h, v));
            let mut windows = Windows::new(&hashing, window_words);
            // The second document begins anew.
            windows.start();
            windows.push(7);
            windows.start();
            let m = window_words as usize;
            let k = window_words.div_ceil(2) as usize;
            for end in 1..=values.len() {
                let found = windows.push(values[end - 1]);
                let Some(start) = end.checked_sub(m) else {
                    prop_assert_eq!(found, None);
                    continue;
                };
                let rank = |at: &usize| mixed(hash(&values[*at..at + k]));
                let least = (start..=end - k).map(|at| rank(&at)).min().unwrap();
                let at = (start..=end - k).rev().find(|at| rank(at) == least).unwrap();
                let window = found.unwrap();
                prop_assert_eq!((window.start, window.anchor_start), (start as u64, at as u64));
                prop_assert_eq!(window.anchor, least);
                prop_assert_eq!(windows.hash(window), hash(&values[start..end]));
            }
        }
    }

    #[test]
    fn repeated_anchors_are_found_and_few_others() {
        let anchor = |at: u64| {
            let product = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            product ^ product >> 32
        };
        let mut filter = AnchorFilter::new(11_000, u64::MAX);
        assert_eq!(filter.memory_bytes(), 44_000);
        (0..10_000).chain(0..1_000).for_each(|at| filter.add(anchor(at)));
        assert!((0..1_000).all(|at| filter.is_repeated(anchor(at))));
        let num_others = (1_000..10_000).filter(|&at| filter.is_repeated(anchor(at))).count();
        assert!(num_others < 200, "{num_others}");
        // A filter with too little room finds all that are repeated, too.
        let mut small = AnchorFilter::new(u64::MAX, 0);
        (0..1_000).chain(0..1_000).for_each(|at| small.add(anchor(at)));
        assert!((0..1_000).all(|at| small.is_repeated(anchor(at))));
    }
}
