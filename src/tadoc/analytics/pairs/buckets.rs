//! Ranges of first words, so that each has about as many pairs.
//!
//! ```text
//! words     | a an and | be but | ... | the | them then |     blocks of equal width, 4096 at most
//! buckets   | 0               | ... | 17  | 18               as many words of the grammar in each
//! ```
//!
//! Pairs are written to hundreds of places in turn, which stay in the cache, and the pairs of a bucket are
//! few enough to stay there while they are added up. How often a word begins a pair is estimated by how
//! often it stands in the grammar: O(G).

use std::ops::Range;

use crate::analytics::Vocabulary;
use crate::analytics::word_rows::WordRows;

/// Blocks of words at most.
const MAX_BLOCKS: usize = 1 << 12;
/// Pairs of a bucket, and buckets at most.
const BUCKET_PAIRS: usize = 1 << 15;
const MAX_BUCKETS: usize = 512;

/// Which bucket the pairs of a first word belong to.
#[derive(Debug)]
pub(in crate::analytics) struct FirstWords {
    /// By block.
    buckets: Vec<u16>,
    block_bits: u32,
    num_words: usize,
}

impl FirstWords {
    /// For the words of `vocabulary` and about `pairs_per_word` pairs for each word of the grammar.
    pub fn new(vocabulary: &Vocabulary, pairs_per_word: usize) -> Self {
        let num_words = vocabulary.len();
        let block_bits = (num_words / MAX_BLOCKS + 1).next_power_of_two().ilog2();
        let mut counts = vec![0usize; (num_words >> block_bits) + 1];
        let rows = WordRows::new(vocabulary);
        for (at, segment) in vocabulary.corpus().segments().iter().enumerate() {
            let (rows, end) = (rows.of(at), segment.dag.num_words());
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

    /// Number of buckets.
    pub fn num_buckets(&self) -> usize {
        self.buckets.last().map_or(0, |&bucket| usize::from(bucket) + 1)
    }

    /// The bucket of pairs that `first` begins.
    #[inline]
    pub fn bucket(&self, first: u32) -> usize {
        usize::from(self.buckets[(first >> self.block_bits) as usize])
    }

    /// The words that begin the pairs of `bucket`.
    pub fn words(&self, bucket: usize) -> Range<usize> {
        let start = |bucket| {
            let block = self.buckets.partition_point(|&other| usize::from(other) < bucket);
            (block << self.block_bits).min(self.num_words)
        };
        start(bucket)..start(bucket + 1)
    }
}
