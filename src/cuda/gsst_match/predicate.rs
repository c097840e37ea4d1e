//! A predicate in the form that kernels take.
//!
//! # Anchors
//!
//! The filter looks at the rarest position of a literal. It compares two codes, about 6 bytes, with the literal: the
//! code that covers the byte `anchor` of the literal, and the next one. At a common place, most candidates are wrong
//! and must be tested. For example, in `l_comment` the middle of `final dep` lies in `final`, which 8 % of the rows
//! contain; only 1 % contain both words. So a sample of the rows shows how often each sequence of four bytes occurs.
//!
//! A unit is the 1 to 8 frames of a block that a warp takes at a time.

use gsst::layout::HEADER_BYTES;
use gsst::{ByteAutomaton, CodeWidth, SealedBlock};

/// Longest literal of a filter. The beginning of a longer one suffices.
const MAX_LITERAL_BYTES: usize = 128;
/// A condition on rows: an automaton over their bytes, and a literal for a filter.
#[derive(Debug, Clone)]
pub struct RowPredicate {
    /// Next state by state and byte. The final states are the last ones.
    next: Vec<u8>,
    /// By state, true if a text that ends in it matches.
    accepts: Vec<bool>,
    /// First of the final states. Their answer holds for any continuation.
    first_final: usize,
    /// Literal for the filter. Every matching row contains it; empty if none is known.
    literal: Vec<u8>,
    /// True if the answer for a row depends only on whether it contains the literal.
    is_exact: bool,
}

impl RowPredicate {
    /// Builds the predicate of an automaton. Every matching row contains `literal`; `is_exact` says that
    /// a row with the literal matches.
    pub(super) fn new(automaton: &ByteAutomaton, mut literal: Vec<u8>, is_exact: bool) -> Self {
        let is_exact = is_exact && literal.len() <= MAX_LITERAL_BYTES;
        literal.truncate(MAX_LITERAL_BYTES);
        if automaton.is_final(0) {
            // All texts get the same answer.
            let accepts = vec![automaton.accepts(0)];
            return Self { next: vec![0; 256], accepts, first_final: 0, literal: Vec::new(), is_exact: false };
        }
        let num_states = automaton.num_states();
        let is_last = |state: &usize| automaton.is_final(*state as u8);
        let mut order: Vec<usize> = (0..num_states).filter(|state| !is_last(state)).collect();
        let first_final = order.len();
        order.extend((0..num_states).filter(is_last));
        let mut place_of = vec![0; num_states];
        for (place, state) in order.iter().enumerate() {
            place_of[*state] = place as u8;
        }
        let next_of = |state: &usize| automaton.next_states()[*state];
        Self {
            next: order.iter().flat_map(next_of).map(|next| place_of[usize::from(next)]).collect(),
            accepts: order.iter().map(|state| automaton.accepts(*state as u8)).collect(),
            first_final,
            literal,
            is_exact,
        }
    }

    /// Returns the predicate of the rows that are not null and do not match `self`.
    #[must_use]
    pub fn negated(self) -> Self {
        let accepts = self.accepts.into_iter().map(|accepts| !accepts).collect();
        let literal = if self.is_exact { self.literal } else { Vec::new() };
        Self { accepts, literal, ..self }
    }

    /// Returns the same predicate without a filter, so that the automaton runs over every row. For
    /// benchmarks and tests of the filter.
    #[must_use]
    pub fn without_filter(self) -> Self {
        Self { literal: Vec::new(), is_exact: false, ..self }
    }

    pub(super) fn num_states(&self) -> usize {
        self.accepts.len()
    }

    pub(super) fn first_final(&self) -> usize {
        self.first_final
    }

    pub(super) fn literal(&self) -> &[u8] {
        &self.literal
    }

    pub(super) fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Returns the automaton, the flags of states and the literal, concatenated: 256 bytes per
    /// state, 256 bytes, and the literal.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut flags = [0; 256];
        for (flag, accepts) in flags.iter_mut().zip(&self.accepts) {
            *flag = u8::from(*accepts);
        }
        [&self.next[..], &flags, &self.literal].concat()
    }

    /// Largest length of [`RowPredicate::to_bytes`].
    pub(super) const MAX_BYTES: usize = 256 * 256 + 256 + MAX_LITERAL_BYTES;

    /// Returns the size of the tables of one block, in bytes.
    pub(super) fn tables_len_bytes(&self, width: CodeWidth) -> usize {
        tables_len_bytes(self.num_states() as u32, width)
    }
}

/// Returns the size of the tables of one block, in bytes: the automaton over codes, and the filter.
pub(super) fn tables_len_bytes(num_states: u32, width: CodeWidth) -> usize {
    (num_states as usize + 4) << width.bits()
}

/// Number of blocks in the sample, and bytes of each: 30 KB of text.
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
            let (least, sum) = counts.fold((u32::MAX, 0), |(least, sum), count| (least.min(count), sum + count));
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

/// Largest number of frames of a unit, and its intended number of codes. Marks of 9,216 codes fit.
pub(super) const MAX_UNIT_FRAMES: usize = 8;
const UNIT_CODES: usize = 8_448;

/// Returns the frames per unit of a block, so that the marks of its codes fit.
pub(super) fn unit_frames(num_codes: usize, num_frames: usize) -> usize {
    (UNIT_CODES * num_frames / num_codes.max(1)).clamp(1, MAX_UNIT_FRAMES)
}

/// The units of the blocks of one code width.
#[derive(Debug)]
pub(super) struct ListUnits {
    width: CodeWidth,
    /// First unit of each block, and after them the number of units.
    starts: Vec<u32>,
}

/// A group of consecutive blocks of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockGroup {
    pub(super) first_block: usize,
    pub(super) num_blocks: usize,
    pub(super) first_unit: u32,
    pub(super) end_unit: u32,
}

impl ListUnits {
    pub(super) fn new(width: CodeWidth) -> Self {
        Self { width, starts: vec![0] }
    }

    /// Adds a block of `num_units` units.
    pub(super) fn push(&mut self, num_units: u32) {
        self.starts.push(self.num_units() + num_units);
    }

    pub(super) fn width(&self) -> CodeWidth {
        self.width
    }

    pub(super) fn num_blocks(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn num_units(&self) -> u32 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Returns the largest number of blocks of a group.
    pub(super) fn max_group_blocks(&self, tables_len_bytes: usize) -> usize {
        self.num_blocks().min(blocks_per_group(tables_len_bytes))
    }

    /// Returns groups of blocks whose tables, `tables_len_bytes` each, fit into their memory.
    pub(super) fn groups(&self, tables_len_bytes: usize) -> Vec<BlockGroup> {
        let num_per_group = blocks_per_group(tables_len_bytes);
        let group = |first_block: usize| {
            let end = (first_block + num_per_group).min(self.num_blocks());
            BlockGroup {
                first_block,
                num_blocks: end - first_block,
                first_unit: self.starts[first_block],
                end_unit: self.starts[end],
            }
        };
        (0..self.num_blocks()).step_by(num_per_group).map(group).collect()
    }
}

/// Returns the number of blocks whose tables are made at a time. Grids have at most 65,535 layers.
fn blocks_per_group(tables_len_bytes: usize) -> usize {
    (super::TABLES_BYTES / tables_len_bytes).clamp(1, 65_535)
}

#[cfg(test)]
mod tests {
    use gsst::{BlockOptions, Pattern, write_block};

    use super::*;

    #[test]
    fn renumbered_states_accept_the_same_texts() {
        let patterns = ["%", "", "a%", "%ab%", "a%b_c", "ab", "%a%b%"];
        for pattern in patterns.map(|pattern| Pattern::like(pattern, None)) {
            let automaton = ByteAutomaton::new(&pattern).unwrap();
            let predicate = RowPredicate::new(&automaton, Vec::new(), false);
            let negated = predicate.clone().negated();
            for text in [&b""[..], b"a", b"ab", b"aabxc", b"abab", b"b", b"a\xffb--c"] {
                let mut state = 0;
                for byte in text {
                    let next = predicate.next[state << 8 | usize::from(*byte)];
                    assert!(state < predicate.first_final || usize::from(next) == state);
                    state = usize::from(next);
                }
                assert_eq!(predicate.accepts[state], pattern.matches(text), "{pattern:?}");
                assert_eq!(negated.accepts[state], !pattern.matches(text), "{pattern:?}");
            }
        }
    }

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
        let rows: Vec<Vec<u8>> = (0_u32..900).map(|i| i.wrapping_pow(3).to_le_bytes().into()).collect();
        let rows: Vec<_> = rows.iter().map(|row| Some(&row[..])).collect();
        let text = rows.iter().copied().flatten().collect::<Vec<_>>().concat();
        for width in [CodeWidth::Eight, CodeWidth::Twelve] {
            let bytes = write_block(&rows, &BlockOptions::new(width)).unwrap();
            let sample = beginning(&SealedBlock::open(bytes).unwrap());
            assert!(sample.len() > 3000, "{}", sample.len());
            assert!(text.starts_with(&sample), "{width:?}");
        }
    }

    #[test]
    fn groups_have_all_units_once() {
        let mut units = ListUnits::new(CodeWidth::Eight);
        [3, 1, 2, 5].into_iter().for_each(|num_units| units.push(num_units));
        let groups = units.groups(super::super::TABLES_BYTES / 3);
        let of = |first_block, num_blocks, first_unit, end_unit| BlockGroup {
            first_block,
            num_blocks,
            first_unit,
            end_unit,
        };
        assert_eq!(groups, [of(0, 3, 0, 6), of(3, 1, 6, 11)]);
        assert_eq!((units.num_blocks(), units.num_units()), (4, 11));
        assert_eq!(units.groups(usize::MAX).len(), 4);
        assert!(ListUnits::new(CodeWidth::Twelve).groups(1).is_empty());
    }

    #[test]
    fn units_have_as_many_frames_as_marks_fit() {
        assert_eq!(unit_frames(0, 1), MAX_UNIT_FRAMES);
        assert_eq!(unit_frames(UNIT_CODES * 10, 10), 1);
        assert_eq!(unit_frames(UNIT_CODES, 4), 4);
    }
}
