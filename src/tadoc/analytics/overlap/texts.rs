//! Texts as numbered words and numbered sequences of n words.
//!
//! ```text
//! texts       0: a b a b c      1: x a b c            n = 2
//! words       0 1 0 1 2           3 0 1 2             in order of their first place
//! grams       0 1 0 2             3 0 2               a b = 0, b a = 1, b c = 2, x a = 3
//! lists       a b, b c: texts 0, 1      b a: text 0      x a: text 1
//! ```
//!
//! Sequences are found by their hashes and compared word by word, so that numbers are exact. Sequences
//! of the same texts share a list.

use std::collections::HashMap;
use std::ops::Range;

use crate::analytics::rolling_hash::{Hashing, Rolling};
use crate::error::{Error, Result};
use crate::text::{Fold, TokenizerProfile, for_each_token};

/// Number of a word that no text has, and of a place at which no sequence begins.
pub(super) const NONE: u32 = u32::MAX;
/// Bits of the filter for each sequence.
const FILTER_BITS: usize = 16;

/// Texts whose sequences are looked for.
#[derive(Debug)]
pub struct OverlapTexts {
    profile: TokenizerProfile,
    fold: Fold,
    pub(super) num_words: usize,
    pub(super) hashing: Hashing,
    /// Number of each word, in folded form.
    numbers: HashMap<Box<str>, u32>,
    /// Value of each word, by number.
    pub(super) values: Vec<u64>,
    /// Words of all texts.
    words: Vec<u32>,
    text_ends: Vec<usize>,
    words_bytes: usize,
    max_words: usize,
}

/// The sequences of texts.
#[derive(Debug)]
pub(super) struct Grams<'a> {
    texts: &'a OverlapTexts,
    /// Sequence that begins at each word, or none.
    of_words: Vec<u32>,
    /// First place of each sequence.
    starts: Vec<u32>,
    /// Sequences by hash: number + 1, or 0.
    slots: Vec<u32>,
    filter: Vec<u64>,
    /// List of each sequence, and the texts of each list.
    list_of_gram: Vec<u32>,
    list_ends: Vec<usize>,
    listed: Vec<u32>,
}

impl OverlapTexts {
    /// Creates an empty set of texts whose sequences have `num_words` words, at least 1. `profile` is
    /// that of the corpus. Words are compared as `fold` leaves them.
    pub fn new(profile: TokenizerProfile, fold: Fold, num_words: usize) -> Self {
        Self {
            profile,
            fold,
            num_words: num_words.max(1),
            hashing: Hashing::new(u64::MAX),
            numbers: HashMap::new(),
            values: Vec::new(),
            words: Vec::new(),
            text_ends: Vec::new(),
            words_bytes: 0,
            max_words: 0,
        }
    }

    /// Appends a text.
    ///
    /// # Errors
    /// [`Error::Capacity`] if the texts have 2^32 words or more.
    pub fn push(&mut self, text: &[u8]) -> Result<()> {
        let start = self.words.len();
        let Self { fold, hashing, numbers, values, words, words_bytes, .. } = self;
        for_each_token(self.profile, text, |token| {
            let Some(word) = std::str::from_utf8(token.bytes).ok().filter(|_| token.is_word) else {
                return;
            };
            let word = fold.text(word);
            let number = match numbers.get(&*word) {
                Some(&number) => number,
                None => {
                    let number = values.len() as u32;
                    *words_bytes += word.len();
                    values.push(hashing.value(word.as_bytes()));
                    numbers.insert(word.into(), number);
                    number
                }
            };
            words.push(number);
        });
        if self.words.len() >= NONE as usize {
            return Err(Error::Capacity {
                what: "the words of the texts",
                requested: self.words.len() as u64,
                limit: u64::from(NONE) - 1,
                knob: "nothing (their numbers have 32 bits)",
            });
        }
        self.max_words = self.max_words.max(self.words.len() - start);
        self.text_ends.push(self.words.len());
        Ok(())
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.text_ends.len()
    }

    /// Returns true if there is no text.
    pub fn is_empty(&self) -> bool {
        self.text_ends.is_empty()
    }

    /// Returns the memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        let of_numbers = self.words_bytes + self.numbers.capacity() * 25;
        let of_texts = 8 * self.text_ends.capacity() + 4 * self.words.capacity();
        of_numbers + 8 * self.values.capacity() + of_texts
    }

    /// Returns the greatest number of bytes of memory of their sequences during a search, and of what
    /// `num_tasks` tasks note about them.
    pub(super) fn max_search_bytes(&self, num_tasks: usize) -> usize {
        // Numbers, first places, slots, filter, lists, and found sequences; then lists and texts seen.
        let of_words = 64 * self.words.len();
        of_words + num_tasks * (8 * self.words.len() + 128 * self.len())
    }

    /// Returns true if no text has a sequence.
    pub(super) fn are_short(&self) -> bool {
        self.max_words < self.num_words
    }

    /// Returns the number of a word in folded form.
    pub(super) fn number_of(&self, word: &str) -> u32 {
        self.numbers.get(&*self.fold.text(word)).copied().unwrap_or(NONE)
    }

    /// Returns the places of the words of `text`.
    fn words_of(&self, text: usize) -> Range<usize> {
        let start = text.checked_sub(1).map_or(0, |before| self.text_ends[before]);
        start..self.text_ends[text]
    }
}

impl<'a> Grams<'a> {
    /// Numbers the sequences of `texts`, O(words).
    pub fn new(texts: &'a OverlapTexts) -> Self {
        let num_slots = (2 * texts.words.len()).next_power_of_two();
        let filter_len = (FILTER_BITS * texts.words.len() / 64).next_power_of_two();
        let mut grams = Self {
            texts,
            of_words: vec![NONE; texts.words.len()],
            starts: Vec::new(),
            slots: vec![0; num_slots],
            filter: vec![0; filter_len],
            list_of_gram: Vec::new(),
            list_ends: Vec::new(),
            listed: Vec::new(),
        };
        if !texts.are_short() {
            let mut rolling = Rolling::new(&texts.hashing, texts.num_words);
            for text in 0..texts.len() {
                rolling.start();
                for at in texts.words_of(text) {
                    let value = texts.values[texts.words[at] as usize];
                    if let Some(hash) = rolling.push(value) {
                        let start = at + 1 - texts.num_words;
                        grams.of_words[start] = grams.add(hash, start);
                    }
                }
            }
        }
        grams.fill_lists();
        grams
    }

    /// Returns the number of the sequence at `start`, a new one if it is the first of its words.
    fn add(&mut self, hash: u64, start: usize) -> u32 {
        let words = &self.texts.words[start..start + self.texts.num_words];
        let mut slot = hash as usize & (self.slots.len() - 1);
        while let Some(gram) = self.slots[slot].checked_sub(1) {
            if self.words_of_gram(gram) == words {
                return gram;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        let gram = self.starts.len() as u32;
        self.slots[slot] = gram + 1;
        self.starts.push(start as u32);
        let bit = self.bit_of(hash);
        self.filter[bit / 64] |= 1 << (bit % 64);
        gram
    }

    /// Returns the sequence of these words, which have this hash, if a text has it.
    #[inline]
    pub fn find(&self, hash: u64, has_words: impl Fn(&[u32]) -> bool) -> Option<u32> {
        let bit = self.bit_of(hash);
        if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
            return None;
        }
        let mut slot = hash as usize & (self.slots.len() - 1);
        while let Some(gram) = self.slots[slot].checked_sub(1) {
            if has_words(self.words_of_gram(gram)) {
                return Some(gram);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        None
    }

    #[inline]
    fn bit_of(&self, hash: u64) -> usize {
        (hash >> 20) as usize & (64 * self.filter.len() - 1)
    }

    fn words_of_gram(&self, gram: u32) -> &[u32] {
        &self.texts.words[self.starts[gram as usize] as usize..][..self.texts.num_words]
    }

    /// Makes the lists of texts, with one list for all sequences of the same texts.
    fn fill_lists(&mut self) {
        let mut places: Vec<(u32, u32)> = Vec::with_capacity(self.of_words.len());
        for text in 0..self.texts.len() {
            let grams = self.of_words[self.texts.words_of(text)].iter();
            places.extend(grams.filter(|&&gram| gram != NONE).map(|&gram| (gram, text as u32)));
        }
        places.sort_unstable();
        places.dedup();
        let mut lists: HashMap<Vec<u32>, u32> = HashMap::new();
        for places in places.chunk_by(|a, b| a.0 == b.0) {
            let texts: Vec<u32> = places.iter().map(|&(_, text)| text).collect();
            let next = lists.len() as u32;
            let list = match lists.get(&texts) {
                Some(&list) => list,
                None => {
                    self.listed.extend_from_slice(&texts);
                    self.list_ends.push(self.listed.len());
                    lists.insert(texts, next);
                    next
                }
            };
            self.list_of_gram.push(list);
        }
    }

    /// Returns the texts that are searched.
    pub fn texts(&self) -> &'a OverlapTexts {
        self.texts
    }

    /// Returns the number of sequences that differ.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the number of lists.
    pub fn num_lists(&self) -> usize {
        self.list_ends.len()
    }

    /// Returns the list of `gram`.
    #[inline]
    pub fn list_of(&self, gram: u32) -> usize {
        self.list_of_gram[gram as usize] as usize
    }

    /// Returns the texts of `list`.
    pub fn texts_of(&self, list: usize) -> &[u32] {
        let start = list.checked_sub(1).map_or(0, |before| self.list_ends[before]);
        &self.listed[start..self.list_ends[list]]
    }

    /// Returns the sequences of `text` in order.
    pub fn for_text(&self, text: usize) -> &[u32] {
        let words = self.texts.words_of(text);
        let num_grams = (words.len() + 1).saturating_sub(self.texts.num_words);
        &self.of_words[words.start..words.start + num_grams]
    }
}
