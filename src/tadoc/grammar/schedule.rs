//! What the rounds go by, for whoever runs them: this machine's cores, or a device.
//!
//! Numbers alone, so that both make the same rules: thresholds, when rounds end, which part is the
//! sample, how pairs are shared out where they are numbered (which is what their ids follow from), and
//! which chunks are joined.

/// Ends a document; never part of a pair.
pub const BARRIER: u32 = u32::MAX;

/// Tokens of a fresh chunk: its arrays (576 KiB) stay in the second-level cache.
pub const CHUNK_LEN: usize = 65_536;

/// Most rounds, and so most levels of pair rules.
pub const MAX_ROUNDS: usize = 64;

/// Rounds at T = 2 stop when they replace less than this share of the sequence.
const LEAST_REPLACED_SHARE: f64 = 0.004;

/// Memory for pairs while the whole sequence is numbered; a longer one is numbered in passes.
const JOIN_BUFFER_BYTES: usize = 256 << 20;

/// What a pair takes there: itself, its shard, its position, its answer.
const JOIN_BYTES_PER_PAIR: usize = 8 + 2 + 4 + 8;

/// Pairs in a shard: its table takes 512 KiB.
const SHARD_LEN: usize = 16_384;

/// Most shards: more streams than this are not written to without cache misses.
pub const MAX_SHARDS: usize = 2_048;

/// Shorter sequences are not worth a sample.
const LEAST_SAMPLED: usize = 1 << 18;

/// Elements of one stretch of the sample; a chunk has a whole number of steps.
pub const STRETCH_LEN: usize = 2_048;

/// One stretch in so many is in the sample.
pub const SAMPLE_STEP: usize = 16;

/// Pairs seen less often in the sample are not learned: their order is chance.
pub const LEAST_COUNT: u32 = 8;

/// By what T falls from round to round: fast while few pairs reach it, then by octaves. Measured G:
/// step 2 throughout is 0.3 % smaller on logs at seven rounds more; step 6 throughout is 6 % larger
/// on logs and 2 % on versioned text, step 12 twice that; prose does not care.
pub fn next_threshold(threshold: u32) -> u32 {
    let step = if threshold > 1000 { 8 } else { 2 };
    (threshold / step).max(2)
}

/// The thresholds of the rounds over a sample whose most frequent pair counts `largest`.
pub fn thresholds_of_sample(largest: u32) -> Vec<u32> {
    let mut thresholds = Vec::new();
    let mut threshold = largest;
    while threshold > LEAST_COUNT {
        threshold = next_threshold(threshold).max(LEAST_COUNT);
        thresholds.push(threshold);
    }
    thresholds
}

/// Whether the round at `threshold` that replaced `num_replaced` pairs and left `len` elements is the
/// last.
pub fn is_last_round(threshold: u32, num_replaced: usize, len: usize) -> bool {
    threshold == 2 && num_replaced as f64 <= LEAST_REPLACED_SHARE * len as f64
}

/// In how many passes so many pairs are numbered.
pub fn num_passes(num_pairs: usize) -> usize {
    (num_pairs * JOIN_BYTES_PER_PAIR).div_ceil(JOIN_BUFFER_BYTES)
}

/// How many shards so many pairs of a pass are in.
pub fn num_shards(num_pairs: usize) -> usize {
    (num_pairs / SHARD_LEN).next_power_of_two().clamp(1, MAX_SHARDS)
}

/// Elements of the sample of a sequence, a barrier behind each stretch; none if it is short.
pub fn sample_len(len: usize) -> Option<usize> {
    let num_stretches = len.div_ceil(STRETCH_LEN * SAMPLE_STEP);
    let last_start = num_stretches.checked_sub(1)? * STRETCH_LEN * SAMPLE_STEP;
    let last_len = (len - last_start).min(STRETCH_LEN);
    (len >= LEAST_SAMPLED).then_some((num_stretches - 1) * (STRETCH_LEN + 1) + last_len + 1)
}

/// Whether chunks with so many elements are half empty on average, so that neighbours are joined.
pub fn are_joined(num_chunks: usize, len: usize) -> bool {
    num_chunks > 1 && len < num_chunks * CHUNK_LEN / 2
}
