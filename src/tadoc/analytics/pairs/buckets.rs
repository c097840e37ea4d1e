//! Ranges of first words, cut so that each range has about the same number of pairs.
//!
//! ```text
//! words     | a an and | be but | ... | the | them then |     blocks of equal width, 4096 at most
//! buckets   | 0               | ... | 17  | 18               as many words of the grammar in each
//! ```
//!
//! The walk writes pairs to hundreds of buckets in turn, whose ends stay in the cache. The pairs of
//! one bucket are few enough to stay in the cache while they are added up. The number of pairs that
//! a word begins is estimated from the number of times that the word occurs in the grammar. O(G).

use std::ops::Range;

use crate::analytics::Vocabulary;
use crate::analytics::word_rows::WordRows;

/// Maximum number of blocks of words.
const MAX_BLOCKS: usize = 1 << 12;
/// Target number of pairs in a bucket; [`MAX_BUCKETS`] limits the number of buckets.
const BUCKET_PAIRS: usize = 1 << 15;
const MAX_BUCKETS: usize = 512;

/// Map from the first word of a pair to its bucket.
#[derive(Debug)]
pub(in crate::analytics) struct FirstWords {
    /// Bucket by block.
    buckets: Vec<u16>,
    block_bits: u32,
    num_words: usize,
}

impl FirstWords {
    /// Cuts the words of `vocabulary` into buckets, assuming `pairs_per_word` pairs for each word
    /// of the grammar.
    pub fn new(vocabulary: &Vocabulary, pairs_per_word: usize) -> Self {
        let num_words = vocabulary.len();
        let block_bits = (num_words / MAX_BLOCKS + 1).next_power_of_two().ilog2();
        let mut counts = vec![0usize; (num_words >> block_bits) + 1];
        let rows = WordRows::new(vocabulary);
        for (at, segment) in vocabulary.corpus().segments().iter().enumerate() {
            let (rows, end) = (rows.for_segment(at), segment.dag.num_words());
            let words = segment.dag.grammar().symbols.iter().filter(|&&element| element < end);
            words.for_each(|&word| counts[(rows.row(word) >> block_bits) as usize] += 1);
        }
        let all: usize = counts.iter().sum();
        let num_buckets = all.saturating_mul(pairs_per_word) / BUCKET_PAIRS;
        let bucket_len = all / num_buckets.clamp(1, MAX_BUCKETS) + 1;
        let mut before = 0;
        let bucket = |count: usize| {
            before += count;
            ((before - count) / bucket_len) as u16
        };
        let buckets = counts.into_iter().map(bucket).collect();
        Self { buckets, block_bits, num_words }
    }

    /// Returns the number of buckets.
    pub fn num_buckets(&self) -> usize {
        self.buckets.last().map_or(0, |&bucket| usize::from(bucket) + 1)
    }

    /// Returns the bucket of the pairs that begin with `first`.
    #[inline]
    pub fn bucket(&self, first: u32) -> usize {
        usize::from(self.buckets[(first >> self.block_bits) as usize])
    }

    /// Returns the words that begin the pairs of `bucket`.
    pub fn words(&self, bucket: usize) -> Range<usize> {
        let start = |bucket| {
            let block = self.buckets.partition_point(|&other| usize::from(other) < bucket);
            (block << self.block_bits).min(self.num_words)
        };
        start(bucket)..start(bucket + 1)
    }
}
