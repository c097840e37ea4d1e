//! Windows of n words as entries: packed into a key if they fit, else as positions in a text.
//!
//! A window carries the number of its weight, a few bits instead of 64. d distinct weights need d
//! (d - 1) / 2 words of text, so there are few: 11 bits for a million words.

use super::Sink;
use super::edges::Edges;
use super::entries::Entry;
use super::key::{Before, Keep, Key, Packing, Table, append_windows};

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
        let step = (table, elements);
        let packing = self.packing;
        let keys = &mut self.keys;
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
        windows.map(|(&(start, _), value)| Entry { key: self.packing.key(&self.text[start..]), value }).collect()
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

/// Limit below which weights are numbered by a table.
const TABLE_LEN: usize = 1 << 12;

/// Distinct weights, ascending.
#[derive(Debug, Clone)]
pub(in crate::analytics) struct Weights {
    weights: Vec<u64>,
    /// Numbers of the small weights, by weight.
    table: Vec<u32>,
}

impl Weights {
    /// Creates the numbers of weight 1 only.
    pub fn one() -> Self {
        Self { weights: vec![1], table: vec![0; 2] }
    }

    /// Numbers the weight 1 and the weights of all rules. O(rules).
    pub fn from_rules(edges: &[Edges]) -> Self {
        let mut is_used = vec![false; TABLE_LEN];
        is_used[1] = true;
        let mut large = Vec::new();
        for edges in edges {
            let first_rule = edges.dag().num_terminals() as usize;
            for &weight in &edges.weights()[first_rule..] {
                match is_used.get_mut(weight as usize) {
                    Some(is_used) => *is_used = true,
                    None => large.push(weight),
                }
            }
        }
        large.sort_unstable();
        large.dedup();
        let mut weights = Vec::new();
        let mut table = vec![0; TABLE_LEN];
        for weight in (0..TABLE_LEN).filter(|&weight| is_used[weight]) {
            table[weight] = weights.len() as u32;
            weights.push(weight as u64);
        }
        weights.append(&mut large);
        Self { weights, table }
    }
}

/// Weights with numbers.
pub(in crate::analytics) trait NumberedWeights {
    /// Returns the number of bits of a number, at most 32.
    fn bits(&self) -> u32;
    /// Returns the number of `weight`.
    fn number(&mut self, weight: u64) -> u32;
    /// Returns the weight of `number`.
    fn weight(&self, number: u32) -> u64;
}

impl NumberedWeights for &Weights {
    #[inline]
    fn bits(&self) -> u32 {
        usize::BITS - (self.weights.len() - 1).leading_zeros()
    }

    #[inline]
    fn number(&mut self, weight: u64) -> u32 {
        match self.table.get(weight as usize) {
            Some(&number) => number,
            None => self.weights.partition_point(|&other| other < weight) as u32,
        }
    }

    #[inline]
    fn weight(&self, number: u32) -> u64 {
        self.weights[number as usize]
    }
}

/// Weights in order of arrival. Equal weights may have several numbers.
#[derive(Debug)]
pub(in crate::analytics) struct ListedWeights {
    weights: Vec<u64>,
    bits: u32,
}

impl ListedWeights {
    /// Creates room for the weights that a document may have: one for each rule, each part of the
    /// document and all borders.
    pub fn from_rules(edges: &[Edges]) -> Self {
        let num_rules = edges.iter().map(|edges| edges.dag().grammar().num_rules() + 1);
        let bits = usize::BITS - num_rules.sum::<usize>().leading_zeros();
        Self { weights: Vec::new(), bits: bits.min(u32::BITS) }
    }

    /// Removes all weights and keeps the memory.
    pub fn clear(&mut self) {
        self.weights.clear();
    }
}

impl NumberedWeights for ListedWeights {
    #[inline]
    fn bits(&self) -> u32 {
        self.bits
    }

    #[inline]
    fn number(&mut self, weight: u64) -> u32 {
        self.weights.push(weight);
        (self.weights.len() - 1) as u32
    }

    #[inline]
    fn weight(&self, number: u32) -> u64 {
        self.weights[number as usize]
    }
}
