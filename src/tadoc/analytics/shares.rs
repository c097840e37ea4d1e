//! Shares of the rows of a task, for machines that each have the whole corpus: a range of words,
//! and the rows that begin with one of them.
//!
//! ```text
//! words    a an and | be but ... | the them then      share 0, 1, 2 of 3
//! rows     and so   | be not     | the storm          sequences: by the first word
//!          an, the  | be, not    | the, then          pairs: by the smaller word
//! ```
//!
//! Each row is in one share, and shares ascend. So machines add nothing up and send no row twice.
//! All of them cut at the same words, because the places of the cuts depend on the segments alone.
//! The work of a share is estimated from the words in the rules, of which at most a million are
//! looked at. O(words).
//!
//! Ours. A walk still meets what it leaves out: half of the rows take more than half of the time.

use std::ops::Range;

use crate::segment::Dag;

use super::Vocabulary;
use super::vocabulary::{WordRows, word_weights};

/// Maximum number of blocks of words. Cuts lie between blocks.
const MAX_BLOCKS: usize = 1 << 14;
/// Number of elements of the rules that are looked at.
const MAX_LOOKS: usize = 1 << 20;

/// One of several shares of the rows of a task. The default is all rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    place: u32,
    num_shares: u32,
}

impl Default for Share {
    fn default() -> Self {
        Self { place: 0, num_shares: 1 }
    }
}

impl Share {
    /// Returns share `place` of `num_shares`, or `None` if there is no such share.
    pub fn new(place: u32, num_shares: u32) -> Option<Self> {
        (place < num_shares).then_some(Self { place, num_shares })
    }

    /// Returns true if the share has all rows.
    pub fn is_all(self) -> bool {
        self.num_shares == 1
    }

    /// Returns the place of the share among all.
    pub fn place(self) -> u32 {
        self.place
    }

    /// Returns the number of shares.
    pub fn num_shares(self) -> u32 {
        self.num_shares
    }

    /// Returns the share's part of `len` rows that take equal work.
    pub fn part(self, len: usize) -> Range<usize> {
        let end = |place: u32| {
            let end = len as u128 * u128::from(place) / u128::from(self.num_shares);
            usize::try_from(end).unwrap_or(len)
        };
        end(self.place)..end(self.place + 1)
    }

    /// Returns the rows of `vocabulary` whose lists of documents are the share.
    pub(super) fn for_lists(self, vocabulary: &Vocabulary) -> Range<usize> {
        let segments = vocabulary.corpus().segments().iter();
        let weights: Vec<(&[u64], u64)> =
            segments.map(|segment| (word_weights(segment), segment.dag.grammar().num_docs() as u64)).collect();
        let postings = |(at, word): (usize, u32)| {
            let (weights, num_docs) = weights[at];
            weights[word as usize].min(num_docs)
        };
        let mut blocks = Blocks::new(vocabulary.len());
        for row in 0..vocabulary.len() {
            let work = vocabulary.ids(row).map(postings).fold(0, u64::saturating_add);
            blocks.add(row, work);
        }
        blocks.rows(self, Cut::Equal)
    }

    /// Returns the words of `vocabulary` that begin the sequences of the share.
    pub(super) fn for_sequences(self, vocabulary: &Vocabulary) -> Range<usize> {
        self.by_elements(vocabulary, Cut::Equal)
    }

    /// Returns the words of `vocabulary` that are the smaller ones of the pairs of the share.
    pub(super) fn for_pairs(self, vocabulary: &Vocabulary) -> Range<usize> {
        self.by_elements(vocabulary, Cut::Pairs)
    }

    fn by_elements(self, vocabulary: &Vocabulary, cut: Cut) -> Range<usize> {
        if self.is_all() {
            return 0..vocabulary.len();
        }
        let rows = WordRows::new(vocabulary);
        let mut blocks = Blocks::new(vocabulary.len());
        let dags = || vocabulary.corpus().segments().iter().map(|segment| &segment.dag);
        let elements = |dag: &Dag| dag.grammar().symbols.len();
        let step = dags().map(elements).sum::<usize>() / MAX_LOOKS + 1;
        for (at, dag) in dags().enumerate() {
            let rows = rows.for_segment(at);
            let end = dag.num_words();
            let looked_at = dag.grammar().symbols.iter().step_by(step);
            let words = looked_at.filter(|&&element| element < end);
            words.for_each(|&word| blocks.add(rows.row(word) as usize, 1));
        }
        blocks.rows(self, cut)
    }
}

/// The way in which rows are distributed over words.
#[derive(Debug, Clone, Copy)]
enum Cut {
    /// A word begins as many rows as it has work.
    Equal,
    /// Two words meet at random, and the row is of the smaller one.
    Pairs,
}

/// Work by blocks of words of equal width.
struct Blocks {
    num_words: usize,
    block_bits: u32,
    work: Vec<u64>,
}

impl Blocks {
    fn new(num_words: usize) -> Self {
        let block_bits = (num_words / MAX_BLOCKS + 1).next_power_of_two().ilog2();
        Self { num_words, block_bits, work: vec![0; (num_words >> block_bits) + 1] }
    }

    #[inline]
    fn add(&mut self, row: usize, work: u64) {
        let block = &mut self.work[row >> self.block_bits];
        *block = block.saturating_add(work);
    }

    /// Returns the words of `share`.
    fn rows(&self, share: Share, cut: Cut) -> Range<usize> {
        let start = self.end(share.place, share.num_shares, cut);
        start..self.end(share.place + 1, share.num_shares, cut)
    }

    /// Returns the end of the words of the first `place` shares of `num_shares`.
    fn end(&self, place: u32, num_shares: u32, cut: Cut) -> usize {
        if place == num_shares {
            return self.num_words;
        }
        let all: u128 = self.work.iter().map(|&work| u128::from(work)).sum();
        let num_shares = u128::from(num_shares);
        let place = u128::from(place);
        let is_enough = |before: u128| match cut {
            Cut::Equal => before * num_shares >= all * place,
            // All but the pairs of two words behind the cut.
            Cut::Pairs => {
                let behind = all - before;
                behind * behind * num_shares <= all * all * (num_shares - place)
            }
        };
        let mut before = 0;
        let mut block = 0;
        while block < self.work.len() && !is_enough(before) {
            before += u128::from(self.work[block]);
            block += 1;
        }
        (block << self.block_bits).min(self.num_words)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::analytics::{Cooccurrences, InvertedIndex, Pairing, SequenceCounts, Traversal, Vocabulary};
    use crate::build::corpus_from_texts;

    fn texts() -> impl Strategy<Value = Vec<String>> {
        let words = prop::collection::vec("[a-d]{1,2}|the|of", 0..40);
        prop::collection::vec(words.prop_map(|words| words.join(" ")), 1..6)
    }

    type Row = (Vec<u32>, u64);

    fn sequences(vocabulary: &Arc<Vocabulary>, n: usize, memory: u64, share: Share) -> Vec<Row> {
        let mut rows = Vec::new();
        let way = Traversal::Auto;
        let make = |counts: SequenceCounts| {
            let row = |row: usize| (counts.sequences().words(row).collect(), counts.counts()[row]);
            (0..counts.len()).map(row).collect::<Vec<Row>>()
        };
        SequenceCounts::in_parts(vocabulary.clone(), (n, share), way, memory, make, |part, _| {
            rows.extend(part);
            Ok(true)
        })
        .unwrap();
        rows
    }

    fn pairs(vocabulary: &Arc<Vocabulary>, window: usize, share: Share) -> Vec<Row> {
        let mut rows = Vec::new();
        let pairing = Pairing { window, min_count: 1, share };
        let make = |found: Cooccurrences| {
            let row = |row: usize| (found.pairs().words(row).collect(), found.counts()[row]);
            (0..found.len()).map(row).collect::<Vec<Row>>()
        };
        let words = vocabulary.clone();
        let way = Traversal::Auto;
        Cooccurrences::in_parts(words, pairing, way, 1 << 30, make, |part, _| {
            rows.extend(part);
            Ok(true)
        })
        .unwrap();
        rows
    }

    proptest! {
        #[test]
        fn shares_together_are_all_rows(
            texts in texts(),
            num_shares in 1u32..6,
            is_cut in any::<bool>(),
        ) {
            let corpus = corpus_from_texts(if is_cut { 60 } else { 1 << 20 }, &texts);
            let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap());
            let shares = || (0..num_shares).map(|place| Share::new(place, num_shares).unwrap());
            for n in [1, 2, 3, 20] {
                let all = sequences(&vocabulary, n, 1 << 30, Share::default());
                let parts = shares().flat_map(|share| sequences(&vocabulary, n, 1 << 30, share));
                prop_assert_eq!(parts.collect::<Vec<Row>>(), all);
            }
            for window in [2, 4] {
                let all = pairs(&vocabulary, window, Share::default());
                let parts = shares().flat_map(|share| pairs(&vocabulary, window, share));
                prop_assert_eq!(parts.collect::<Vec<Row>>(), all);
            }
            let all = InvertedIndex::with_vocabulary(vocabulary.clone(), Traversal::Auto).unwrap();
            let mut next = 0;
            for share in shares() {
                let way = Traversal::Auto;
                let (index, rows) =
                    InvertedIndex::for_share(vocabulary.clone(), way, share, &|| false).unwrap();
                prop_assert_eq!(rows.start, next);
                next = rows.end;
                for row in rows {
                    let ids: Vec<u64> = index.doc_ids(row).collect();
                    prop_assert_eq!(ids, all.doc_ids(row).collect::<Vec<u64>>());
                }
            }
            prop_assert_eq!(next, vocabulary.len());
        }

        #[test]
        fn parts_are_alike_and_tile_all_rows(len in 0usize..1000, num_shares in 1u32..20) {
            let mut next = 0;
            for place in 0..num_shares {
                let part = Share::new(place, num_shares).unwrap().part(len);
                prop_assert_eq!(part.start, next);
                prop_assert!(part.len() <= len / num_shares as usize + 1);
                next = part.end;
            }
            prop_assert_eq!((next, Share::new(num_shares, num_shares)), (len, None));
        }

        #[test]
        fn the_pairs_of_random_words_are_cut_evenly(num_shares in 2u32..9) {
            let mut blocks = Blocks::new(1000);
            (0..1000).for_each(|row| blocks.add(row, 1));
            let num_pairs = |words: Range<usize>| -> usize {
                words.map(|word| 2 * (1000 - word) - 1).sum()
            };
            for place in 0..num_shares {
                let share = Share::new(place, num_shares).unwrap();
                let (got, equal) =
                    (num_pairs(blocks.rows(share, Cut::Pairs)), 1_000_000 / num_shares as usize);
                prop_assert!(got.abs_diff(equal) < 4000, "{got} of {equal}");
            }
        }
    }

    #[test]
    fn a_small_memory_counts_a_share_in_passes() {
        let mut state = 1u64;
        let mut word = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("w{:02}", (state >> 33) % 50)
        };
        let words: Vec<String> = (0..4000).map(&mut word).collect();
        let corpus = corpus_from_texts(8000, &[words.join(" ")]);
        let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap());
        let all = sequences(&vocabulary, 3, 1 << 30, Share::default());
        for memory in [1 << 16, 1 << 17, 1 << 30] {
            let shares = (0..3).map(|place| Share::new(place, 3).unwrap());
            let parts: Vec<Vec<Row>> = shares.map(|share| sequences(&vocabulary, 3, memory, share)).collect();
            assert!(parts.iter().all(|part| part.len() > all.len() / 6), "{memory}");
            assert_eq!(parts.concat(), all, "{memory}");
        }
    }
}
