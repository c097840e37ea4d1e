//! Windows of n words as entries: packed into the key where they fit, else as places in a text.

use super::edges::Sink;
use super::entries::Entry;
use super::key::Key;
use super::packing::Packing;
use super::weights::NumberedWeights;

/// Windows as keys: the whole sequence and, below it, the number of the weight.
#[derive(Debug)]
pub(in crate::analytics) struct PackedWindows<K, W> {
    packing: Packing,
    pub weights: W,
    key: K,
    /// Words behind `key` since the text began.
    len: usize,
    /// Number of the weight at hand.
    weight: u32,
    pub keys: Vec<K>,
}

impl<K: Key, W: NumberedWeights> PackedWindows<K, W> {
    /// No window yet, and room for `capacity`.
    pub fn new(packing: Packing, weights: W, capacity: usize) -> Self {
        let keys = Vec::with_capacity(capacity);
        Self { packing, weights, key: K::default(), len: 0, weight: 0, keys }
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
        if self.len >= self.packing.num_words {
            self.keys.push(self.key.with_value(self.weight, self.weights.bits()));
        }
    }

    #[inline]
    fn push_child(&mut self, head: &[u32], tail: Option<&[u32]>) {
        head.iter().for_each(|&word| self.push(word));
        if let Some(tail) = tail {
            self.key = tail.iter().fold(K::default(), |key, &word| self.rolled(key, word));
            self.len = tail.len();
        }
    }

    fn num_met(&self) -> usize {
        self.keys.len()
    }

    fn forget(&mut self, num_met: usize) {
        self.keys.truncate(num_met);
    }
}
/// Windows of any length: the key is the beginning, the value a number among those met.
#[derive(Debug)]
pub(in crate::analytics) struct TextWindows {
    packing: Packing,
    /// Words met one after another, tails put in between.
    text: Vec<u32>,
    len: usize,
    weight: u64,
    /// Start in `text` and weight of each window.
    windows: Vec<(usize, u64)>,
}

impl TextWindows {
    pub fn new(packing: Packing) -> Self {
        Self { packing, text: Vec::new(), len: 0, weight: 0, windows: Vec::new() }
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.windows.clear();
    }

    /// The windows met, with values from `first_value`.
    pub fn entries(&self, first_value: u64) -> Vec<Entry> {
        let windows = self.windows.iter().zip(first_value..);
        windows
            .map(|(&(start, _), value)| Entry { key: self.packing.key(&self.text[start..]), value })
            .collect()
    }

    /// The words of window `at`.
    pub fn words(&self, at: usize) -> &[u32] {
        let start = self.windows[at].0;
        &self.text[start..start + self.packing.num_words]
    }

    /// How often window `at` was met.
    pub fn weight(&self, at: usize) -> u64 {
        self.windows[at].1
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
        if self.len >= self.packing.num_words {
            self.windows.push((self.text.len() - self.packing.num_words, self.weight));
        }
    }

    #[inline]
    fn push_child(&mut self, head: &[u32], tail: Option<&[u32]>) {
        head.iter().for_each(|&word| self.push(word));
        if let Some(tail) = tail {
            self.text.extend_from_slice(tail);
            self.len = tail.len();
        }
    }

    fn num_met(&self) -> usize {
        self.windows.len()
    }

    fn forget(&mut self, num_met: usize) {
        self.windows.truncate(num_met);
    }
}
