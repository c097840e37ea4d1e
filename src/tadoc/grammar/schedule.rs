//! Parameters of the rounds: thresholds, the end of the rounds, the shards in which pairs are
//! numbered (which determine their ids), and the chunks that are joined.
//!
//! # Effort
//!
//! Time from text to sections and size of the file against `balanced`, with one thread (`tadoc ingest
//! --threads 1 --effort NAME` shows them):
//!
//! | text | fast: time, size | small: time, size |
//! | --- | --- | --- |
//! | Markdown pages, 6 MB | 0.77, 1.031 | 1.7, 0.998 |
//! | prose, 8 MB | 0.93, 1.009 | 1.6, 0.999 |
//! | logs, 14 MB | 0.88, 1.117 | 1.3, 0.997 |
//! | revisions of documents, 7.5 MB | 0.69, 1.143 | 1.5, 0.972 |
//! | sources of crates, 40 MB | 0.82, 1.059 | 1.2, 0.996 |
//!
//! `fast` cannot be much faster: without any round, tokens, learning, numbering pairs and coding
//! take half to nine tenths of the time, and files of logs and sources are 1.24 to 1.5 times as
//! large. Neither a higher threshold at the end, other lengths of samples nor rounds without
//! repeats do better. `small` gains most where text repeats in revisions; a fourth pass gains
//! almost nothing, and neither do samples of half the text.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

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

/// Thresholds of the rounds over a sequence, from the largest count down. There are at most 18, or
/// 24 for the effort `small`.
#[derive(Debug, Clone)]
pub(super) struct Thresholds {
    last: u32,
    least: u32,
    /// Divisor of thresholds up to 1,000.
    step: u32,
    /// Share of the sequence, see [`LEAST_REPLACED_SHARE`].
    least_share: f64,
    /// Number of rounds that may still run at the least threshold.
    num_least: usize,
}

impl Thresholds {
    /// Starts the rounds of a sequence whose most frequent pair has count `largest`.
    pub(super) fn from_largest_count(largest: u32) -> Self {
        Self {
            last: largest,
            least: LEAST_THRESHOLD,
            step: STEP,
            least_share: LEAST_REPLACED_SHARE,
            num_least: MAX_LEAST_ROUNDS,
        }
    }

    /// Starts the rounds of a sequence for an effort.
    pub(super) fn for_effort(effort: Effort, largest: u32) -> Self {
        let balanced = Self::from_largest_count(largest);
        match effort {
            Effort::Fast => Self { least: 4, step: 4, num_least: 1, ..balanced },
            Effort::Balanced => balanced,
            Effort::Small => Self { least: 2, least_share: 0.001, num_least: 8, ..balanced },
        }
    }

    /// Starts the rounds of a sample whose most frequent pair has count `largest`.
    pub(super) fn for_sample(largest: u32) -> Self {
        let of_sequence = Self::from_largest_count(largest);
        Self { least: LEAST_SAMPLE_THRESHOLD, num_least: 1, ..of_sequence }
    }

    /// Ends the rounds if the last one ran at the least threshold and replaced few pairs:
    /// `num_replaced`, after which `len` elements remain.
    pub(super) fn end_if_few(&mut self, num_replaced: usize, len: usize) {
        let is_few = num_replaced as f64 <= self.least_share * len as f64;
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
        self.last = lowered(self.last, self.step).max(self.least);
        self.num_least -= usize::from(self.last == self.least);
        Some(self.last)
    }
}

/// Returns the threshold after `threshold`. It falls fast while few pairs reach it, then by
/// octaves. Measured G: step 2 throughout is 0.3 % smaller on logs and needs seven more rounds.
/// Step 6 throughout is 6 % larger on logs and 2 % on versioned text, step 12 twice that. Prose
/// shows no difference.
fn lowered(threshold: u32, step: u32) -> u32 {
    threshold / if threshold > 1000 { 8 } else { step }
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

/// Time that the rounds builder spends on a smaller grammar. Every reader reads every grammar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Effort {
    /// Fewer rounds, in one pass.
    Fast,
    /// A second pass where text repeats itself.
    #[default]
    Balanced,
    /// Rounds for pairs that occur twice, in four passes.
    Small,
}

impl Effort {
    /// All efforts, the fastest first.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Balanced, Self::Small];

    /// Returns the name in options, files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Balanced => "balanced",
            Self::Small => "small",
        }
    }

    /// Returns the number of passes over the builder's own result, for a grammar of `num_elements`
    /// elements and a text of `num_tokens` tokens.
    pub(super) fn num_more_passes(self, num_elements: usize, num_tokens: usize) -> usize {
        match self {
            Self::Fast => 0,
            Self::Balanced => usize::from(num_elements <= num_tokens / REPEAT_SHARE),
            Self::Small => 3,
        }
    }
}

/// If G is at most N / 3, the rounds of `balanced` run a second time over their own result (root
/// and rule bodies). Inlining moves rule borders, so repeats that were cut differently in two
/// places become equal. On e-peps-revisions G falls by 5.7 % and time rises by a fifth, on d-logs G
/// falls by 1 %, on prose by 0.3 %. A third run reduces G by another 1.7 % on e-peps-revisions and
/// by nothing on logs.
const REPEAT_SHARE: usize = 3;

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Effort {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|effort| effort.as_str() == name).ok_or_else(|| {
            let allowed = "fast, balanced or small".into();
            Error::InvalidArgument { name: "effort", got: name.into(), allowed }
        })
    }
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
    fn efforts_have_fewer_or_more_rounds() {
        let num_rounds = |effort, largest| Thresholds::for_effort(effort, largest).count();
        for largest in [0, 5, 1_000, u32::MAX] {
            let [fast, balanced, small] = Effort::ALL.map(|effort| num_rounds(effort, largest));
            assert!(fast < balanced && balanced < small && small <= 24, "{fast} {balanced} {small}");
        }
        let fast: Vec<u32> = Thresholds::for_effort(Effort::Fast, 2_000).collect();
        assert_eq!(fast, [250, 62, 15, 4]);
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

    #[test]
    fn names_are_read_back() {
        for effort in Effort::ALL {
            assert_eq!(effort.to_string().parse::<Effort>().unwrap(), effort);
        }
        let refused = "tiny".parse::<Effort>().unwrap_err().to_string();
        assert!(refused.contains("fast, balanced or small"), "{refused}");
    }
}
