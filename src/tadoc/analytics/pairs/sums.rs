//! Counts of the pairs of a bucket, without sorting pairs.
//!
//! ```text
//! bucket    be see: 1 | a see: 2 | be an: 1 | be see: 3        as met
//! by first  a: see 2  | be: see 1, an 1, see 3                 counted and placed
//! sums      see 4, an 1                                        one for each second word
//! rows      be an: 1  | be see: 4                              in order: bits, or sorted
//! ```
//!
//! O(pairs), and O(distinct pairs) for their order. Sorting all pairs of a bucket to add up equal
//! ones made the whole task take 1.4 times as long (a-tldr, windows of 5 words, one thread of a
//! busy machine). Sorting them by digits takes as long as this method, but 1.13 times as long on
//! logs, where pairs repeat. If there are so many words that their sums do not fit the cache,
//! sorting by digits is 1.2 times faster (f-dbtext, 608,000 words) and is used.
//!
//! Tried on two corpora, one thread:
//!
//! - Pairs in one array for each parallel task, split into 2,048 balanced ranges and sorted by
//!   digits, as windows are: 1.1 times as long on prose, 1.35 on logs, because of fresh memory and
//!   one more split.
//! - All pairs of an element and the four words before it, written without a branch as in
//!   `sequences/short.rs`: 1.05 to 1.1 times as long, because of ten writes for the four that are
//!   pairs, and 32 bytes for each element from a table that does not fit the cache.

use std::ops::Range;

use crate::analytics::ascending_set::AscendingSet;
use crate::analytics::sequences::digits::Sorting;
use crate::analytics::sequences::key::Key;
use crate::analytics::sequences::key::Keyed;
use crate::analytics::sequences::row_maker::RowMaker;
use crate::analytics::sequences::rows::{Counted, too_many_occurrences};
use crate::analytics::sequences::weights::NumberedWeights;
use crate::error::Result;

/// Maximum number of pairs of a first word that are sorted rather than added up by second word.
const FEW_PAIRS: usize = 16;
/// Maximum number of words that have sums: 1 MB.
const MAX_WORDS: usize = 1 << 17;
/// Maximum number of distinct second words that are sorted rather than put into a set.
const FEW_WORDS: usize = 32;

/// Sums of the pairs of one first word at a time.
#[derive(Debug, Default)]
pub(in crate::analytics) struct PairSums<K> {
    /// Pairs of a bucket by first word; `ends` has the end of the pairs of each first word.
    keys: Vec<K>,
    ends: Vec<usize>,
    /// Sums by second word; 0 between first words.
    sums: Vec<u64>,
    /// Second words that have a sum; `set` puts them in order.
    met: Vec<u32>,
    set: AscendingSet,
    /// Room to sort pairs, used if there are many words.
    sorting: Option<Sorting<K>>,
}

impl<K: Key + Keyed<Key = K>> PairSums<K> {
    /// Creates sums for words below `num_words`.
    pub fn new(num_words: usize) -> Self {
        if num_words > MAX_WORDS {
            return Self { sorting: Some(Sorting::default()), ..Self::default() };
        }
        let (sums, set) = (vec![0; num_words], AscendingSet::new(num_words));
        Self { sums, set, ..Self::default() }
    }

    /// Appends the rows of a bucket to `counted`. The pairs of the bucket, in `pieces`, begin with
    /// `words`.
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) if a sum needs more than 64 bits, and
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn add<'k>(
        &mut self,
        pieces: impl Iterator<Item = &'k [K]> + Clone,
        words: Range<usize>,
        maker: &RowMaker<'_>,
        counted: &mut Counted,
    ) -> Result<()>
    where
        K: 'k,
    {
        if let Some(sorting) = &mut self.sorting {
            sorting.entries.clear();
            pieces.for_each(|keys| sorting.entries.extend_from_slice(keys));
            sorting.sort(maker.weights.bits(), maker.canceller)?;
            return counted.add_keys(
                &sorting.entries,
                maker.packing,
                &maker.weights,
                maker.min_count,
            );
        }
        self.group_by_first_word(pieces, words, maker);
        let mut interrupt = maker.canceller.interrupt();
        let mut start = 0;
        for at in 0..self.ends.len() {
            let end = self.ends[at];
            interrupt.pass(end - start)?;
            match end - start {
                0 => {}
                1..=FEW_PAIRS => {
                    let keys = &mut self.keys[start..end];
                    keys.sort_unstable();
                    counted.add_keys(keys, maker.packing, &maker.weights, maker.min_count)?;
                }
                _ => self.add_first(start..end, maker, counted)?,
            }
            start = end;
        }
        Ok(())
    }

    /// Groups the pairs of a bucket by first word.
    fn group_by_first_word<'k>(
        &mut self,
        pieces: impl Iterator<Item = &'k [K]> + Clone,
        words: Range<usize>,
        maker: &RowMaker<'_>,
    ) where
        K: 'k,
    {
        let word_bits = maker.packing.word_bits();
        let shift = word_bits + maker.weights.bits();
        let first = |key: K| key.above(shift).low(word_bits) as usize - words.start;
        self.ends.clear();
        self.ends.resize(words.len() + 1, 0);
        for &key in pieces.clone().flatten() {
            self.ends[first(key) + 1] += 1;
        }
        for at in 1..self.ends.len() {
            self.ends[at] += self.ends[at - 1];
        }
        self.keys.clear();
        self.keys.resize(self.ends.last().copied().unwrap_or(0), K::default());
        // Each start moves to the end of its range.
        for &key in pieces.flatten() {
            let next = &mut self.ends[first(key)];
            self.keys[*next] = key;
            *next += 1;
        }
        self.ends.pop();
    }

    /// Appends the rows of one first word, whose pairs lie at `range`.
    fn add_first(
        &mut self,
        range: Range<usize>,
        maker: &RowMaker<'_>,
        counted: &mut Counted,
    ) -> Result<()> {
        let Self { keys, sums, met, set, .. } = self;
        let (packing, weights, min_count) = (maker.packing, maker.weights, maker.min_count);
        let (word_bits, weight_bits) = (packing.word_bits(), weights.bits());
        let keys = &keys[range];
        met.resize(keys.len().max(met.len()), 0);
        let (mut num_met, mut is_exact) = (0, true);
        for key in keys {
            let second = key.above(weight_bits).low(word_bits);
            let sum = &mut sums[second as usize];
            met[num_met] = second;
            num_met += usize::from(*sum == 0);
            let (more, is_over) = sum.overflowing_add(weights.weight(key.low(weight_bits)));
            is_exact &= !is_over;
            *sum = more;
        }
        if !is_exact {
            return Err(too_many_occurrences());
        }
        let first = keys[0].above(word_bits + weight_bits).number() << word_bits;
        let mut push = |second: u32| {
            let sum = std::mem::take(&mut sums[second as usize]);
            if sum >= min_count {
                counted.push_key(first | u64::from(second), packing);
                counted.counts.push(sum);
            }
        };
        let met = &mut met[..num_met];
        if num_met <= FEW_WORDS {
            met.sort_unstable();
            met.iter().for_each(|&second| push(second));
        } else {
            met.iter().for_each(|&second| set.insert(second as usize));
            set.drain(|second| push(second as u32));
        }
        Ok(())
    }
}
