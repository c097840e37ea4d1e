//! Choice of the position in a literal at which the filter looks: its rarest one.
//!
//! The filter compares two codes, about 6 bytes, with the literal: the code that covers the byte
//! `anchor` of the literal, and the next one. At a common place, most candidates are wrong and must
//! be tested. For example, in `l_comment` the middle of `final dep` lies in `final`, which 8 % of
//! the rows contain; only 1 % contain both words. So a sample of the rows shows how often each
//! sequence of four bytes occurs.

use gsst::layout::HEADER_BYTES;
use gsst::{CodeWidth, SealedBlock};

/// Number of blocks in the sample, and bytes of each: 30 KB of text, read in 0.1 ms.
const NUM_BLOCKS: usize = 8;
const MAX_BLOCK_BYTES: usize = 1 << 12;
const NUM_BUCKETS: usize = 1 << 16;
/// Reach of the two codes from the anchor, on average: 1 byte before it, 5 after it.
const NUM_GRAMS: usize = 4;

/// Counts of four-byte strings in a sample, by hash.
#[derive(Debug, Clone)]
pub(super) struct FourGrams {
    counts: Vec<u32>,
}

impl FourGrams {
    /// Counts in the first bytes of some of `blocks`, whose codes need not be valid.
    pub(super) fn from_blocks<B: AsRef<[u8]>>(blocks: &[SealedBlock<B>]) -> Self {
        let mut grams = Self { counts: vec![0; NUM_BUCKETS] };
        let step = blocks.len().div_ceil(NUM_BLOCKS).max(1);
        for block in blocks.iter().step_by(step) {
            for gram in beginning(block).windows(4) {
                grams.counts[bucket(gram)] += 1;
            }
        }
        grams
    }

    /// Returns the anchor of `literal` whose surroundings are rarest. Returns 0 for short literals.
    /// Otherwise at least 4 bytes follow the anchor, so that there is a second code to compare.
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

/// Decodes the first codes of a block. Codes without a symbol give no text.
fn beginning<B: AsRef<[u8]>>(block: &SealedBlock<B>) -> Vec<u8> {
    let symbols = block.table().packed();
    let stored = &block.as_bytes()[HEADER_BYTES..block.splits_offset()];
    let mut text = Vec::with_capacity(MAX_BLOCK_BYTES);
    let mut is_literal = false;
    for code_idx in 0..block.num_codes() {
        if text.len() + 8 > MAX_BLOCK_BYTES {
            break;
        }
        let code = code_at(stored, block.width(), code_idx);
        if is_literal {
            text.push(code as u8);
            is_literal = false;
        } else if block.width() == CodeWidth::Eight && code == 255 {
            is_literal = true;
        } else {
            let symbol = symbols.get(code).copied().unwrap_or(0).to_le_bytes();
            text.extend_from_slice(&symbol[..usize::from(symbol[7]).min(8)]);
        }
    }
    text
}

/// Returns the code `code_idx`; 0 if the bytes end before it.
fn code_at(stored: &[u8], width: CodeWidth, code_idx: usize) -> usize {
    let byte = |at: usize| stored.get(at).copied().map_or(0, usize::from);
    match width {
        CodeWidth::Eight => byte(code_idx),
        CodeWidth::Twelve => {
            let at = code_idx / 2 * 3 + code_idx % 2;
            (byte(at) | byte(at + 1) << 8) >> (code_idx % 2 * 4) & 0xfff
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gsst::{BlockOptions, write_block};

    #[test]
    fn anchors_lie_where_the_literal_is_rare() {
        let row = b"final account final idea";
        let rows = vec![Some(&row[..]); 100];
        for width in [CodeWidth::Eight, CodeWidth::Twelve] {
            let bytes = write_block(&rows, &BlockOptions::new(width)).unwrap();
            let grams = FourGrams::from_blocks(&[SealedBlock::open(bytes).unwrap()]);
            let anchor = grams.anchor(b"final deposit");
            assert!((4..9).contains(&anchor), "{anchor}");
            assert_eq!((grams.anchor(b"abc"), grams.anchor(b"")), (0, 0));
        }
        let none: [SealedBlock<Vec<u8>>; 0] = [];
        assert_eq!(FourGrams::from_blocks(&none).anchor(b"anything"), 0);
    }

    #[test]
    fn a_sample_is_the_text_that_a_block_begins_with() {
        let rows: Vec<Vec<u8>> =
            (0_u32..900).map(|i| i.wrapping_pow(3).to_le_bytes().into()).collect();
        let rows: Vec<_> = rows.iter().map(|row| Some(&row[..])).collect();
        let text = rows.iter().copied().flatten().collect::<Vec<_>>().concat();
        for width in [CodeWidth::Eight, CodeWidth::Twelve] {
            let bytes = write_block(&rows, &BlockOptions::new(width)).unwrap();
            let sample = beginning(&SealedBlock::open(bytes).unwrap());
            assert!(sample.len() > 3000, "{}", sample.len());
            assert!(text.starts_with(&sample), "{width:?}");
        }
    }
}
