//! Parameters of the rounds: thresholds, the end of the rounds, the shards in which pairs are
//! numbered (which determine their ids), and the chunks that are joined.
//!
//! Fewer rounds do not pay: without any round, tokens, learning, numbering pairs and coding take half to nine tenths of
//! the time, and files of logs and sources are 1.24 to 1.5 times as large. More rounds and passes make files 0.97 to
//! 0.999 times as large in 1.2 to 1.7 times the time.

/// Symbol that ends a document. It is never part of a pair.
pub(super) const BARRIER: u32 = u32::MAX;

/// Number of elements of a new chunk. Its arrays (576 KiB) stay in the second-level cache.
pub(super) const CHUNK_LEN: usize = 65_536;

/// Least threshold of a round. Rarer pairs become rules as parts of longer repeats.
const LEAST_THRESHOLD: u32 = 3;

/// Greatest number of rounds at the least threshold.
const MAX_LEAST_ROUNDS: usize = 4;

/// Share of the sequence. Rounds at the least threshold stop when they replace at most this share.
const LEAST_REPLACED_SHARE: f64 = 0.004;

/// Divisor of thresholds up to 1,000.
const STEP: u32 = 2;

/// Memory for pairs while the whole sequence is numbered. A longer sequence is numbered in passes.
const JOIN_BUFFER_BYTES: usize = 256 << 20;

/// Memory for each pair during numbering: the pair or its answer, its shard, its position.
const JOIN_BYTES_PER_PAIR: usize = 8 + 2 + 4;

/// Number of pairs in a shard, whose table then takes 256 KiB.
const SHARD_LEN: usize = 8_192;

/// Greatest number of shards. Writing to more streams than this causes cache misses.
pub(super) const MAX_SHARDS: usize = 2_048;

/// Least threshold of a round over a sample. The order of rarer pairs in a sample is random.
const LEAST_SAMPLE_THRESHOLD: u32 = 4;

/// Thresholds of the rounds over a sequence, from the largest count down. There are at most 18.
#[derive(Debug, Clone)]
pub(super) struct Thresholds {
    last: u32,
    least: u32,
    /// Number of rounds that may still run at the least threshold.
    num_least: usize,
}

impl Thresholds {
    /// Starts the rounds of a sequence whose most frequent pair has count `largest`.
    pub(super) fn from_largest_count(largest: u32) -> Self {
        Self { last: largest, least: LEAST_THRESHOLD, num_least: MAX_LEAST_ROUNDS }
    }

    /// Starts the rounds of a sample whose most frequent pair has count `largest`.
    pub(super) fn for_sample(largest: u32) -> Self {
        let of_sequence = Self::from_largest_count(largest);
        Self { least: LEAST_SAMPLE_THRESHOLD, num_least: 1, ..of_sequence }
    }

    /// Ends the rounds if the last one ran at the least threshold and replaced few pairs:
    /// `num_replaced`, after which `len` elements remain.
    pub(super) fn end_if_few(&mut self, num_replaced: usize, len: usize) {
        let is_few = num_replaced as f64 <= LEAST_REPLACED_SHARE * len as f64;
        if self.last == self.least && is_few {
            self.num_least = 0;
        }
    }
}

impl Iterator for Thresholds {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.num_least == 0 {
            return None;
        }
        self.last = lowered(self.last).max(self.least);
        self.num_least -= usize::from(self.last == self.least);
        Some(self.last)
    }
}

/// Returns the threshold after `threshold`. It falls fast while few pairs reach it, then by
/// octaves. Measured G: step 2 throughout is 0.3 % smaller on logs and needs seven more rounds.
/// Step 6 throughout is 6 % larger on logs and 2 % on versioned text, step 12 twice that. Prose
/// shows no difference.
fn lowered(threshold: u32) -> u32 {
    threshold / if threshold > 1000 { 8 } else { STEP }
}

/// Returns the number of passes in which `num_pairs` pairs are numbered.
pub(super) fn num_passes(num_pairs: usize) -> usize {
    (num_pairs * JOIN_BYTES_PER_PAIR).div_ceil(JOIN_BUFFER_BYTES)
}

/// Returns the number of shards for `num_pairs` pairs of a pass.
pub(super) fn num_shards(num_pairs: usize) -> usize {
    (num_pairs / SHARD_LEN).next_power_of_two().clamp(1, MAX_SHARDS)
}

/// Returns true if chunks with `len` elements are half empty on average, so that neighbours are
/// joined.
pub(super) fn are_joined(num_chunks: usize, len: usize) -> bool {
    num_chunks > 1 && len < num_chunks * CHUNK_LEN / 2
}

/// If G is at most N / 3, the rounds run a second time over their own result (root
/// and rule bodies). Inlining moves rule borders, so repeats that were cut differently in two
/// places become equal. On e-peps-revisions G falls by 5.7 % and time rises by a fifth, on d-logs G
/// falls by 1 %, on prose by 0.3 %. A third run reduces G by another 1.7 % on e-peps-revisions and
/// by nothing on logs.
const REPEAT_SHARE: usize = 3;

/// Returns true if the rounds run a second time over their own result, a grammar of `num_elements` elements of a text of
/// `num_tokens` tokens.
pub(super) fn has_second_pass(num_elements: usize, num_tokens: usize) -> bool {
    num_elements <= num_tokens / REPEAT_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_few() {
        for (largest, expected) in [(0, 4), (1, 4), (7, 4), (8, 5), (1 << 20, 14), (u32::MAX, 17)] {
            let thresholds: Vec<u32> = Thresholds::from_largest_count(largest).collect();
            assert_eq!(thresholds.len(), expected, "{thresholds:?}");
            assert!(thresholds.is_sorted_by(|a, b| a >= b));
            assert!(thresholds.ends_with(&[LEAST_THRESHOLD; MAX_LEAST_ROUNDS]));
        }
    }

    #[test]
    fn only_rounds_at_the_least_threshold_are_the_last() {
        let mut thresholds = Thresholds::from_largest_count(8);
        assert_eq!(thresholds.next(), Some(4));
        thresholds.end_if_few(0, 1_000);
        assert_eq!(thresholds.next(), Some(3));
        thresholds.end_if_few(5, 1_000);
        assert_eq!(thresholds.next(), Some(3));
        thresholds.end_if_few(4, 1_000);
        assert_eq!(thresholds.next(), None);
    }
}
