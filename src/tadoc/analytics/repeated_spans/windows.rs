//! Windows of a document, each with its anchor: a short sequence inside it that is chosen by the
//! words of the window alone.
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
//! fingerprinting", SIGMOD 2003): the anchor is the sequence of the least rank, the last one of those
//! of equal rank. Ranks are mixed hashes. Equal windows have the same anchor at the same place, so a
//! window whose anchor occurs once is itself unique. Neighbouring windows mostly share an anchor: for
//! windows of m words and sequences of k words there are about 2 / (m - k + 2) anchors for each word.
//! The least rank of a sliding range takes O(1) for each word with a queue of ascending ranks.

use std::collections::VecDeque;

use crate::analytics::rolling_hash::{Hashing, behind, mixed};

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
            let (m, k) = (window_words as usize, window_words.div_ceil(2) as usize);
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
}
