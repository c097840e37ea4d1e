//! Windows of n words as entries: packed into a key if they fit, else as positions in a text.

use super::Sink;
use super::entries::Entry;
use super::keep::Keep;
use super::key::Key;
use super::packing::Packing;
use super::short::{Before, Table, append_windows};
use super::weights::NumberedWeights;

/// Windows as keys: the whole sequence and, in the lowest bits, the number of the weight.
#[derive(Debug)]
pub(in crate::analytics) struct PackedWindows<K, W> {
    packing: Packing,
    pub weights: W,
    key: K,
    /// Number of words in `key` since the text began.
    len: usize,
    /// Number of the current weight.
    weight: u32,
    keep: Keep<K>,
    pub keys: Vec<K>,
}

impl<K: Key, W: NumberedWeights> PackedWindows<K, W> {
    /// Creates an empty list, with room for `capacity` windows if all are kept.
    pub fn new(packing: Packing, weights: W, keep: Keep<K>, capacity: usize) -> Self {
        let keys = Vec::with_capacity(if keep.is_all() { capacity } else { 0 });
        Self { packing, weights, key: K::default(), len: 0, weight: 0, keep, keys }
    }

    #[inline]
    fn rolled(&self, key: K, word: u32) -> K {
        key.rolled(word, self.packing.word_bits(), self.packing.all_bits())
    }
}

impl<K: Key, W: NumberedWeights> Sink for PackedWindows<K, W> {
    fn begin(&mut self, weight: u64) {
        (self.len, self.weight) = (0, self.weights.number(weight));
    }

    #[inline]
    fn push(&mut self, word: u32) {
        self.key = self.rolled(self.key, word);
        self.len += 1;
        if self.len >= self.packing.num_words && self.keep.is_kept(|| self.key) {
            self.keys.push(self.key.with_value(self.weight, self.weights.bits()));
        }
    }

    #[inline]
    fn push_child(&mut self, head: &[u32], tail: Option<&[u32]>) {
        head.iter().for_each(|&word| self.push(word));
        if let Some(tail) = tail {
            self.prime(tail);
        }
    }

    fn push_short<const R: usize>(&mut self, table: &Table<R>, elements: &[u32]) {
        let mut before = Before { key: self.key, len: self.len };
        let value = (self.weight, self.weights.bits());
        let (step, packing, keys) = ((table, elements), self.packing, &mut self.keys);
        match self.keep {
            Keep::All => append_windows(step, packing, value, |_| true, &mut before, keys),
            Keep::Within(first, last) => {
                let is_kept = |key: K| (key >= first) & (key <= last);
                append_windows(step, packing, value, is_kept, &mut before, keys);
            }
            Keep::Counted(_) => return table.push_each(elements, self),
        }
        (self.key, self.len) = (before.key, before.len);
    }

    #[inline]
    fn prime(&mut self, words: &[u32]) {
        self.key = words.iter().fold(K::default(), |key, &word| self.rolled(key, word));
        self.len = words.len();
    }

    fn num_met(&self) -> usize {
        self.keys.len()
    }

    fn close(&mut self) {
        give_back_room(&mut self.keys);
    }
}

/// Releases unused memory if less than half of the vector is used.
pub(in crate::analytics) fn give_back_room<T>(items: &mut Vec<T>) {
    if items.len() < items.capacity() / 2 {
        items.shrink_to_fit();
    }
}

/// Number of words that no kept window needs, beside two windows, before they are dropped.
const UNNEEDED_WORDS: usize = 1 << 10;

/// Windows of any length. The key is the beginning of a window, the value its index.
#[derive(Debug)]
pub(in crate::analytics) struct TextWindows {
    packing: Packing,
    /// Words in the order in which they are met, with tails in between.
    text: Vec<u32>,
    len: usize,
    weight: u64,
    /// Start in `text` and weight of each window.
    windows: Vec<(usize, u64)>,
    keep: Keep<u64>,
}

impl TextWindows {
    pub fn new(packing: Packing, keep: Keep<u64>) -> Self {
        Self { packing, text: Vec::new(), len: 0, weight: 0, windows: Vec::new(), keep }
    }

    /// Removes everything and keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.windows.clear();
    }

    /// Returns the windows as entries, with values from `first_value` on.
    pub fn entries(&self, first_value: u64) -> Vec<Entry> {
        let windows = self.windows.iter().zip(first_value..);
        windows
            .map(|(&(start, _), value)| Entry { key: self.packing.key(&self.text[start..]), value })
            .collect()
    }

    /// Returns the words of window `at`.
    pub fn words(&self, at: usize) -> &[u32] {
        let start = self.windows[at].0;
        &self.text[start..start + self.packing.num_words]
    }

    /// Returns the weight of window `at`.
    pub fn weight(&self, at: usize) -> u64 {
        self.windows[at].1
    }

    /// Returns the memory of the windows and their words in bytes.
    pub fn memory_bytes(&self) -> usize {
        4 * self.text.capacity() + size_of::<(usize, u64)>() * self.windows.capacity()
    }

    /// Drops words that neither a kept window nor the next windows need.
    fn drop_unneeded(&mut self) {
        let num_words = self.packing.num_words;
        let needed = self.windows.last().map_or(0, |&(start, _)| start + num_words);
        let next = self.text.len() - self.len.min(num_words - 1);
        if next.saturating_sub(needed) > UNNEEDED_WORDS + 2 * num_words {
            self.text.drain(needed..next);
        }
    }
}

impl Sink for TextWindows {
    fn begin(&mut self, weight: u64) {
        (self.len, self.weight) = (0, weight);
    }

    #[inline]
    fn push(&mut self, word: u32) {
        self.text.push(word);
        self.len += 1;
        if self.len < self.packing.num_words {
            return;
        }
        let start = self.text.len() - self.packing.num_words;
        if self.keep.is_kept(|| self.packing.key(&self.text[start..])) {
            self.windows.push((start, self.weight));
        } else {
            self.drop_unneeded();
        }
    }

    #[inline]
    fn push_child(&mut self, head: &[u32], tail: Option<&[u32]>) {
        head.iter().for_each(|&word| self.push(word));
        if let Some(tail) = tail {
            self.prime(tail);
        }
    }

    #[inline]
    fn prime(&mut self, words: &[u32]) {
        self.text.extend_from_slice(words);
        self.len = words.len();
    }

    fn num_met(&self) -> usize {
        self.windows.len()
    }

    fn close(&mut self) {
        give_back_room(&mut self.text);
        give_back_room(&mut self.windows);
    }
}
