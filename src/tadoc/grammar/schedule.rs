//! Parameters of the rounds, shared by the cores and devices.
//!
//! They are numbers only, so that both make the same rules: thresholds, the end of the rounds, the
//! choice of the sample, the shards in which pairs are numbered (which determine their ids), and
//! the chunks that are joined.
//!
//! ```
//! use tadoc::grammar::schedule::{next_threshold, thresholds_of_sample};
//!
//! assert_eq!(thresholds_of_sample(100), [50, 25, 12, 8]);
//! assert_eq!(next_threshold(8), 4);
//! ```

/// Symbol that ends a document. It is never part of a pair.
pub const BARRIER: u32 = u32::MAX;

/// Number of tokens of a new chunk. Its arrays (576 KiB) stay in the second-level cache.
pub const CHUNK_LEN: usize = 65_536;

/// Greatest number of rounds, which is also the greatest depth of pair rules.
pub const MAX_ROUNDS: usize = 64;

/// Share of the sequence. Rounds at T = 2 stop when they replace at most this share.
const LEAST_REPLACED_SHARE: f64 = 0.004;

/// Memory for pairs while the whole sequence is numbered. A longer sequence is numbered in passes.
const JOIN_BUFFER_BYTES: usize = 256 << 20;

/// Memory for each pair during numbering: the pair, its shard, its position, its answer.
const JOIN_BYTES_PER_PAIR: usize = 8 + 2 + 4 + 8;

/// Number of pairs in a shard, whose table then takes 512 KiB.
const SHARD_LEN: usize = 16_384;

/// Greatest number of shards. Writing to more streams than this causes cache misses.
pub const MAX_SHARDS: usize = 2_048;

/// Least length of a sequence that is worth a sample.
const LEAST_SAMPLED: usize = 1 << 18;

/// Number of elements in a stretch of the sample. A chunk is a multiple of `STRETCH_LEN *
/// SAMPLE_STEP`.
pub const STRETCH_LEN: usize = 2_048;

/// Distance of the sampled stretches, in stretches.
pub const SAMPLE_STEP: usize = 16;

/// Least count of a learned pair. The order of rarer pairs in the sample is random.
pub const LEAST_COUNT: u32 = 8;

/// Returns the threshold of the next round. T falls fast while few pairs reach it, then by octaves.
/// Measured G: step 2 throughout is 0.3 % smaller on logs and needs seven more rounds. Step 6
/// throughout is 6 % larger on logs and 2 % on versioned text, step 12 twice that. Prose shows no
/// difference.
pub fn next_threshold(threshold: u32) -> u32 {
    let step = if threshold > 1000 { 8 } else { 2 };
    (threshold / step).max(2)
}

/// Returns the thresholds of the rounds over a sample whose most frequent pair has count `largest`.
pub fn thresholds_of_sample(largest: u32) -> Vec<u32> {
    let mut thresholds = Vec::new();
    let mut threshold = largest;
    while threshold > LEAST_COUNT {
        threshold = next_threshold(threshold).max(LEAST_COUNT);
        thresholds.push(threshold);
    }
    thresholds
}

/// Returns true if no round follows the round at `threshold`, which replaced `num_replaced` pairs
/// and left `len` elements.
pub fn is_last_round(threshold: u32, num_replaced: usize, len: usize) -> bool {
    threshold == 2 && num_replaced as f64 <= LEAST_REPLACED_SHARE * len as f64
}

/// Returns the number of passes in which `num_pairs` pairs are numbered.
pub fn num_passes(num_pairs: usize) -> usize {
    (num_pairs * JOIN_BYTES_PER_PAIR).div_ceil(JOIN_BUFFER_BYTES)
}

/// Returns the number of shards for `num_pairs` pairs of a pass.
pub fn num_shards(num_pairs: usize) -> usize {
    (num_pairs / SHARD_LEN).next_power_of_two().clamp(1, MAX_SHARDS)
}

/// Returns the length of the sample of a sequence, with a barrier behind each stretch, or `None` if
/// the sequence is short.
pub fn sample_len(len: usize) -> Option<usize> {
    let num_stretches = len.div_ceil(STRETCH_LEN * SAMPLE_STEP);
    let last_start = num_stretches.checked_sub(1)? * STRETCH_LEN * SAMPLE_STEP;
    let last_len = (len - last_start).min(STRETCH_LEN);
    (len >= LEAST_SAMPLED).then_some((num_stretches - 1) * (STRETCH_LEN + 1) + last_len + 1)
}

/// Returns true if chunks with `len` elements are half empty on average, so that neighbours are
/// joined.
pub fn are_joined(num_chunks: usize, len: usize) -> bool {
    num_chunks > 1 && len < num_chunks * CHUNK_LEN / 2
}
