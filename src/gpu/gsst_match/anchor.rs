//! Where in a literal the filter looks: at its rarest place.
//!
//! The filter compares two codes, some 6 bytes, with the literal: the code that covers the byte
//! `anchor` of the literal, and the next one. At a common place most of what it finds is wrong, and
//! has to be tested: in `l_comment` the middle of `final dep` is in `final`, which 8 % of the rows
//! have, while 1 % have both words. So a sample of the rows says how often each four bytes occur.

use crate::gsst::Block;

/// Blocks and rows of each that are sampled: some 200 KB of short rows, decoded in 0.1 ms.
const NUM_BLOCKS: usize = 8;
const NUM_ROWS: usize = 1000;
const MAX_BLOCK_BYTES: usize = 1 << 15;
const NUM_BUCKETS: usize = 1 << 16;
/// How far the two codes reach from the anchor, on average: 1 byte before it, 5 behind it.
const NUM_GRAMS: usize = 4;

/// How often each four bytes occur in a sample, by a hash.
#[derive(Debug, Clone)]
pub(super) struct FourGrams {
    counts: Vec<u32>,
}

impl FourGrams {
    /// Counts in some rows of some of `blocks`.
    pub(super) fn of<B: AsRef<[u8]>>(blocks: &[Block<B>]) -> Self {
        let mut grams = Self { counts: vec![0; NUM_BUCKETS] };
        let step = blocks.len().div_ceil(NUM_BLOCKS).max(1);
        let mut text = Vec::new();
        for block in blocks.iter().step_by(step) {
            text.clear();
            for row in 0..block.num_rows().min(NUM_ROWS) {
                if text.len() >= MAX_BLOCK_BYTES || block.decode_row(row, &mut text).is_err() {
                    break;
                }
            }
            text.truncate(MAX_BLOCK_BYTES);
            for gram in text.windows(4) {
                grams.counts[bucket(gram)] += 1;
            }
        }
        grams
    }

    /// The anchor for `literal`: the one whose surroundings are rarest. 0 for short literals; else at
    /// least 4 bytes follow, so that there is a second code to compare.
    pub(super) fn anchor(&self, literal: &[u8]) -> usize {
        let rarity = |anchor: &usize| {
            let around = anchor.saturating_sub(1)..(anchor + NUM_GRAMS + 2).min(literal.len());
            let counts = literal[around].windows(4).map(|gram| self.counts[bucket(gram)]);
            let (least, sum) =
                counts.fold((u32::MAX, 0), |(least, sum), count| (least.min(count), sum + count));
            (least, sum)
        };
        (0..literal.len().saturating_sub(4)).min_by_key(rarity).unwrap_or(0)
    }
}

fn bucket(gram: &[u8]) -> usize {
    let word = gram.iter().fold(0, |word: u32, byte| word << 8 | u32::from(*byte));
    (word.wrapping_mul(0x9e37_79b1) >> 16) as usize % NUM_BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gsst::{BlockOptions, write_block};

    #[test]
    fn anchors_lie_where_the_literal_is_rare() {
        let row = b"final account final idea";
        let rows = vec![Some(&row[..]); 100];
        let block = Block::open(write_block(&rows, &BlockOptions::default()).unwrap()).unwrap();
        let grams = FourGrams::of(&[block]);
        let anchor = grams.anchor(b"final deposit");
        assert!((4..9).contains(&anchor), "{anchor}");
        assert_eq!((grams.anchor(b"abc"), grams.anchor(b"")), (0, 0));
        let none: [Block<Vec<u8>>; 0] = [];
        assert_eq!(FourGrams::of(&none).anchor(b"anything"), 0);
    }
}
