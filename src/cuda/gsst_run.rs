//! The device layout of a run: GSST blocks of one column.
//!
//! ```text
//! input    ┌────────┬────────┬───┬───────┬────────┬────────┬──────┬──────┬──────┐  one copy
//!          │ block  │ block  │ … │ slack │ tables │ places │ idxs │ rows │frames│  to the device
//!          └────────┴────────┴───┴───────┴────────┴────────┴──────┴──────┴──────┘
//!                                          └─ for 8 bits, then for 12 ─┘
//! scratch  sums of frames │ ends of codes of rows │ rows of splits, or offsets (for views)
//!
//! output   ┌────────────┬──────────────┬──────────────────┐                        one copy
//!          │ error word │ text         │ offsets or views │                        to the host
//!          └────────────┴──────────────┴──────────────────┘
//! ```
//!
//! The whole layout is known before any kernel runs, because the headers contain the lengths. So no
//! step waits for a result. This file only counts and copies on the host; `run_kernels` launches.

#![allow(unsafe_code, reason = "the layout of what kernels read")]

use std::ops::Range;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use gsst::layout::HEADER_BYTES;
use gsst::{CodeWidth, RowFrame, SealedBlock};

use crate::error::GpuError;
use crate::gsst_decode::{GsstBlock, SLACK_BYTES};

/// Description of the rows of a block for a kernel. `kernels/gsst_run.cuh` has the same struct.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct RunBlock {
    pub(super) bytes_at: u64,
    pub(super) text_at: u64,
    pub(super) validity_at: u32,
    pub(super) first_row: u32,
    pub(super) num_rows: u32,
    pub(super) first_frame: u32,
    pub(super) num_codes: u32,
    pub(super) text_len: u32,
    pub(super) has_lengths: u32,
    pub(super) table: u32,
}

/// A frame of packed lengths. `kernels/gsst_run.cuh` has the same struct.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct RunFrame {
    pub(super) counts_at: u32,
    pub(super) lengths_at: u32,
    pub(super) counts_head: u32,
    pub(super) lengths_head: u32,
    pub(super) block: u32,
    pub(super) first_row: u32,
    pub(super) num_rows: u32,
    pub(super) reserved: u32,
}

impl RunFrame {
    /// Packs the smallest number and the width of a frame into one word.
    fn head(frame: &RowFrame) -> u32 {
        frame.smallest | frame.width_bits << FRAME_WIDTH_BIT
    }
}

const _: () = assert!(size_of::<RunBlock>() == 48 && size_of::<RunFrame>() == 32);

/// Rows of a frame.
const FRAME_ROWS: usize = 128;
/// First bit of a frame's width in its head, above the smallest number.
const FRAME_WIDTH_BIT: u32 = 26;
/// Flag in the number of a block's table: the table has 12-bit codes.
const TABLE_OF_TWELVE: u32 = 1 << 31;
/// Alignment of the ranges of input, scratch and output, in bytes.
const RANGE_ALIGNMENT: usize = 64;
/// Size of `SplitRows` of `kernels/gsst_views.cuh`, which starts the rows of a split.
const SPLIT_ROWS_BYTES: usize = 16;
/// Least text per row of a block, in bytes, for views to be made during decoding. One warp makes
/// the views of a split one after another, also those of rows without text.
const MIN_ROW_BYTES: usize = 4;
/// Largest text and number of rows of a run. Offsets and views have signed 32-bit numbers.
pub(super) const MAX_RUN_BYTES: usize = i32::MAX as usize;

/// Form in which rows come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowForm {
    /// End of each row as a 32-bit number, after a first 0.
    Offsets,
    /// Arrow's views of 16 bytes. A short view has the length and up to 12 bytes of text. A long
    /// one has the length, 4 bytes of text, 0 and the start of the text.
    Views,
}

/// Ranges of the input for the blocks of one code width.
#[derive(Debug, Clone, Default)]
pub(super) struct WidthRanges {
    pub(super) tables: Range<usize>,
    pub(super) places: Range<usize>,
    pub(super) block_idxs: Range<usize>,
    /// Range in scratch; empty unless views are made during decoding.
    pub(super) split_rows: Range<usize>,
    pub(super) num_blocks: u32,
    pub(super) num_splits: u32,
}

/// The layout of a run: its counts, and the range of each array.
#[derive(Debug, Clone, Default)]
pub(super) struct RunLayout {
    pub(super) form: Option<RowForm>,
    pub(super) num_blocks: usize,
    pub(super) num_rows: usize,
    pub(super) num_nulls: usize,
    pub(super) num_frames: usize,
    pub(super) stored_len_bytes: usize,
    pub(super) text_len_bytes: usize,
    /// True if all blocks have lengths of texts.
    pub(super) has_lengths: bool,
    /// True if views are made during decoding.
    pub(super) decodes_views: bool,
    /// True if the text may contain bytes other than ASCII.
    pub(super) may_be_not_ascii: bool,
    pub(super) eight: WidthRanges,
    pub(super) twelve: WidthRanges,
    pub(super) blocks: Range<usize>,
    pub(super) frames: Range<usize>,
    pub(super) input_len_bytes: usize,
    pub(super) sums: Range<usize>,
    pub(super) code_ends: Range<usize>,
    pub(super) scratch_offsets: Range<usize>,
    pub(super) scratch_len_bytes: usize,
    pub(super) text: Range<usize>,
    pub(super) rows: Range<usize>,
    pub(super) output_len_bytes: usize,
}

/// An allocator of consecutive ranges of a buffer.
#[derive(Debug, Default)]
pub(super) struct BufferRanges(usize);

impl BufferRanges {
    /// Starts after the first `len_bytes`.
    pub(super) fn behind(len_bytes: usize) -> Self {
        Self(len_bytes)
    }

    pub(super) fn next(&mut self, len_bytes: usize) -> Range<usize> {
        let start = self.0.next_multiple_of(RANGE_ALIGNMENT);
        self.0 = start + len_bytes;
        start..self.0
    }

    /// Returns the length of all ranges together.
    pub(super) fn len_bytes(&self) -> usize {
        self.0
    }
}

impl RunLayout {
    /// Builds the layout of a run of `blocks` whose rows come back as `form`. `is_checked` says
    /// that the blocks were validated.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if the run has 2^31 or more bytes of text or rows.
    pub(super) fn new<B: AsRef<[u8]>>(
        blocks: &[SealedBlock<B>],
        form: RowForm,
        is_checked: bool,
    ) -> Result<Self, GpuError> {
        let mut layout = Self { has_lengths: true, num_blocks: blocks.len(), ..Self::default() };
        layout.decodes_views = is_checked && form == RowForm::Views;
        let mut num_tables = [0, 0];
        let mut num_splits = [0, 0];
        for block in blocks {
            layout.stored_len_bytes += block.as_bytes().len();
            layout.text_len_bytes += block.text_len_bytes();
            layout.num_rows += block.num_rows();
            layout.num_nulls += block.num_nulls();
            layout.num_frames += block.frames().code_counts.len();
            layout.has_lengths &= block.has_text_lengths();
            layout.may_be_not_ascii |= !block.is_ascii();
            layout.decodes_views &=
                block.has_text_lengths() && block.text_len_bytes() >= MIN_ROW_BYTES * block.num_rows();
            if block.num_codes() > 0 {
                let which = usize::from(block.width() == CodeWidth::Twelve);
                num_tables[which] += 1;
                num_splits[which] += block.num_splits();
            }
        }
        let expected = MAX_RUN_BYTES as u64;
        for (what, got) in [
            ("bytes of text in a run", layout.text_len_bytes),
            ("rows of a run", layout.num_rows),
            ("stored bytes of a run", layout.stored_len_bytes),
        ] {
            if got > MAX_RUN_BYTES {
                return Err(GpuError::Mismatch { what, got: got as u64, expected });
            }
        }
        layout.form = Some(form);
        layout.lay_out(num_tables, num_splits, is_checked);
        Ok(layout)
    }

    fn lay_out(&mut self, num_tables: [usize; 2], num_splits: [usize; 2], is_checked: bool) {
        let mut input = BufferRanges(self.stored_len_bytes + SLACK_BYTES);
        for (width, num) in [CodeWidth::Eight, CodeWidth::Twelve].into_iter().zip(num_tables) {
            let ranges = self.width_mut(width);
            ranges.num_blocks = num as u32;
            ranges.tables = input.next(num * (8 << width.bits()));
            ranges.places = input.next(num * size_of::<GsstBlock>());
            ranges.block_idxs = input.next(num * 4);
        }
        self.blocks = input.next(self.num_blocks * size_of::<RunBlock>());
        self.frames = input.next(self.num_frames * size_of::<RunFrame>());
        self.input_len_bytes = input.0;
        let mut scratch = BufferRanges::default();
        let is_view = self.form == Some(RowForm::Views);
        self.sums = scratch.next(if is_checked { 4 } else { 8 } * self.num_frames);
        self.code_ends = scratch.next(if is_checked { 0 } else { 4 * self.num_rows });
        for (width, num) in [CodeWidth::Eight, CodeWidth::Twelve].into_iter().zip(num_splits) {
            let len_bytes = if self.decodes_views { SPLIT_ROWS_BYTES * num } else { 0 };
            self.width_mut(width).split_rows = scratch.next(len_bytes);
        }
        let needs_offsets = is_view && !(is_checked && self.has_lengths);
        self.scratch_offsets = scratch.next(if needs_offsets { 4 * (self.num_rows + 1) } else { 0 });
        self.scratch_len_bytes = scratch.0;
        let mut output = BufferRanges::default();
        output.next(8);
        self.text = output.next(self.text_len_bytes);
        self.rows = output.next(match self.form {
            Some(RowForm::Views) => 16 * self.num_rows,
            _ => 4 * (self.num_rows + 1),
        });
        self.output_len_bytes = output.0;
    }

    fn width_mut(&mut self, width: CodeWidth) -> &mut WidthRanges {
        match width {
            CodeWidth::Eight => &mut self.eight,
            CodeWidth::Twelve => &mut self.twelve,
        }
    }

    /// Writes the input of `blocks`, the blocks of this layout, to all of `input`.
    pub(super) fn write<B: AsRef<[u8]>>(&mut self, blocks: &[SealedBlock<B>], input: &mut [u8]) {
        let (stored, rest) = input.split_at_mut(self.stored_len_bytes);
        copy_blocks(blocks, stored);
        self.write_rest(blocks, rest);
    }

    /// Writes the part of the input that follows the blocks, to all of `rest`.
    pub(super) fn write_rest<B: AsRef<[u8]>>(&mut self, blocks: &[SealedBlock<B>], rest: &mut [u8]) {
        let rest_at = self.stored_len_bytes;
        let mut run = RunBlock::default();
        let mut num_splits = [0_u32; 2];
        let mut num_places = [0_usize; 2];
        for (block_idx, block) in blocks.iter().enumerate() {
            run = RunBlock {
                validity_at: block.validity_offset().unwrap_or(0) as u32,
                num_rows: block.num_rows() as u32,
                num_codes: block.num_codes() as u32,
                text_len: block.text_len_bytes() as u32,
                has_lengths: u32::from(block.has_text_lengths()),
                ..run
            };
            let which = usize::from(block.width() == CodeWidth::Twelve);
            let from_twelve = if which == 1 { TABLE_OF_TWELVE } else { 0 };
            run.table = if run.num_codes == 0 { 0 } else { num_places[which] as u32 | from_twelve };
            put(rest, self.blocks.start - rest_at, block_idx, &run);
            self.write_frames(block, block_idx, &run, rest);
            if block.num_codes() > 0 {
                let place = GsstBlock {
                    codes_at: run.bytes_at + HEADER_BYTES as u64,
                    text_at: run.text_at,
                    splits_at: (block.splits_offset() - HEADER_BYTES) as u32,
                    num_codes: run.num_codes,
                    first_split: num_splits[which],
                    split_log2: block.split_codes_log2(),
                };
                let ranges = self.width_mut(block.width()).clone();
                put(rest, ranges.places.start - rest_at, num_places[which], &place);
                put(rest, ranges.block_idxs.start - rest_at, num_places[which], &(block_idx as u32));
                let words = block.table().packed();
                let first = num_places[which] * words.len();
                for (word_idx, word) in words.iter().enumerate() {
                    put(rest, ranges.tables.start - rest_at, first + word_idx, word);
                }
                num_places[which] += 1;
                num_splits[which] += block.num_splits() as u32;
            }
            run.bytes_at += block.as_bytes().len() as u64;
            run.text_at += block.text_len_bytes() as u64;
            run.first_row += run.num_rows;
            run.first_frame += block.frames().code_counts.len() as u32;
        }
        rest[..SLACK_BYTES].fill(0);
        [self.eight.num_splits, self.twelve.num_splits] = num_splits;
    }

    fn write_frames<B: AsRef<[u8]>>(&self, block: &SealedBlock<B>, block_idx: usize, run: &RunBlock, rest: &mut [u8]) {
        let frames = block.frames();
        let bytes_at = run.bytes_at as u32;
        let frames_at = self.frames.start - self.stored_len_bytes;
        for (i, counts) in frames.code_counts.iter().enumerate() {
            // A block without lengths of texts gets the lengths of a frame of zeros.
            let lengths = frames.text_lengths.get(i);
            let first = i * FRAME_ROWS;
            let frame = RunFrame {
                counts_at: bytes_at + counts.bits_offset,
                lengths_at: bytes_at + lengths.map_or(0, |lengths| lengths.bits_offset),
                counts_head: RunFrame::head(counts),
                lengths_head: lengths.map_or(0, RunFrame::head),
                block: block_idx as u32,
                first_row: run.first_row + first as u32,
                num_rows: FRAME_ROWS.min(block.num_rows() - first) as u32,
                reserved: 0,
            };
            put(rest, frames_at, run.first_frame as usize + i, &frame);
        }
    }

    /// Returns the device memory used in addition to blocks, text and rows, in bytes.
    pub(super) fn extra_bytes(&self) -> usize {
        self.input_len_bytes - self.stored_len_bytes + self.scratch_len_bytes
    }
}

/// Copies blocks to consecutive places on several threads. One thread copies more slowly than the
/// bus.
fn copy_blocks<B: AsRef<[u8]>>(blocks: &[SealedBlock<B>], mut to: &mut [u8]) {
    let mut copies = Vec::with_capacity(blocks.len());
    for block in blocks {
        let (target, behind) = to.split_at_mut(block.as_bytes().len());
        copies.push((block.as_bytes(), target));
        to = behind;
    }
    copies.into_par_iter().for_each(|(from, to)| to.copy_from_slice(from));
}

/// Types of values for kernels: integers in C layout, without padding.
pub(super) trait Plain: Copy {}
impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for GsstBlock {}
impl Plain for RunBlock {}
impl Plain for RunFrame {}

/// Writes `value` at index `idx` of the array that starts at `at`.
pub(super) fn put<T: Plain>(input: &mut [u8], at: usize, idx: usize, value: &T) {
    let start = at + idx * size_of::<T>();
    // SAFETY: a `Plain` value has no padding, so all its bytes are initialized.
    let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) };
    input[start..start + size_of::<T>()].copy_from_slice(bytes);
}

/// Returns one bit per row of the run, low bits first; 1 means not null. `None` if no row is null.
pub(super) fn validity_for<B: AsRef<[u8]>>(blocks: &[SealedBlock<B>]) -> Option<Vec<u8>> {
    if blocks.iter().all(|block| block.num_nulls() == 0) {
        return None;
    }
    let num_rows: usize = blocks.iter().map(SealedBlock::num_rows).sum();
    let mut bits = vec![0_u8; num_rows.div_ceil(8) + 1];
    let mut row = 0;
    for block in blocks {
        let first = row / 8;
        let shift = row % 8;
        let num_bytes = block.num_rows().div_ceil(8);
        for i in 0..num_bytes {
            let byte = match block.validity() {
                Some(stored) => stored[i],
                None if i + 1 < num_bytes || block.num_rows().is_multiple_of(8) => 255,
                None => (1 << (block.num_rows() % 8)) - 1,
            };
            let shifted = u16::from(byte) << shift;
            bits[first + i] |= shifted as u8;
            bits[first + i + 1] |= (shifted >> 8) as u8;
        }
        row += block.num_rows();
    }
    bits.truncate(num_rows.div_ceil(8));
    Some(bits)
}

/// Tests that the kernels of runs and their wrapper declare the same constants and structs, and
/// tests of validity bits and layouts.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::CHECKS;
    use gsst::{BlockOptions, write_block};

    const HEADER: &str = include_str!("../../kernels/gsst_run.cuh");

    #[test]
    fn numbers_of_checks_are_those_of_the_kernel() {
        for (i, (_, name)) in CHECKS.iter().enumerate() {
            let line = format!("constexpr u32 {name} = {};", i + 1);
            assert!(HEADER.contains(&line), "{line}");
        }
        assert_eq!(HEADER.matches("constexpr u32 CHECK_").count(), CHECKS.len());
        assert!(HEADER.contains(&format!("constexpr u32 FRAME_ROWS = {FRAME_ROWS};")));
        assert!(HEADER.contains("constexpr u32 NO_BLOCK = 0xfffffffeu;"));
        assert!(HEADER.contains("(u64)block << 32 | (u64)check << 26"));
    }

    #[test]
    fn fields_are_those_of_the_kernel() {
        let offsets = [
            std::mem::offset_of!(RunBlock, bytes_at),
            std::mem::offset_of!(RunBlock, text_at),
            std::mem::offset_of!(RunBlock, validity_at),
            std::mem::offset_of!(RunBlock, first_row),
            std::mem::offset_of!(RunBlock, num_rows),
            std::mem::offset_of!(RunBlock, first_frame),
            std::mem::offset_of!(RunBlock, num_codes),
            std::mem::offset_of!(RunBlock, text_len),
            std::mem::offset_of!(RunBlock, has_lengths),
            std::mem::offset_of!(RunBlock, table),
        ];
        assert_eq!(offsets, [0, 8, 16, 20, 24, 28, 32, 36, 40, 44]);
        let offsets = [
            std::mem::offset_of!(RunFrame, counts_at),
            std::mem::offset_of!(RunFrame, lengths_at),
            std::mem::offset_of!(RunFrame, counts_head),
            std::mem::offset_of!(RunFrame, lengths_head),
            std::mem::offset_of!(RunFrame, block),
            std::mem::offset_of!(RunFrame, first_row),
            std::mem::offset_of!(RunFrame, num_rows),
        ];
        assert_eq!(offsets, [0, 4, 8, 12, 16, 20, 24]);
        assert!(HEADER.contains(&format!("constexpr u32 FRAME_WIDTH_BIT = {FRAME_WIDTH_BIT};")));
        let (_, split_rows) = HEADER.split_once("struct alignas(16) SplitRows {").unwrap();
        let fields = split_rows.split("static").next().unwrap();
        assert_eq!(fields.matches("    u32 ").count() * size_of::<u32>(), SPLIT_ROWS_BYTES);
    }

    #[test]
    fn validity_of_blocks_of_any_number_of_rows_is_that_of_the_run() {
        let mut expected = Vec::new();
        let mut blocks = Vec::new();
        for (block_idx, num_rows) in [0, 1, 7, 8, 9, 3, 128, 130, 5].into_iter().enumerate() {
            let is_valid = |row: &usize| block_idx % 3 == 0 || !(row * row + block_idx).is_multiple_of(3);
            let valid: Vec<bool> = (0..num_rows).map(|row| is_valid(&row)).collect();
            let rows: Vec<_> = valid.iter().map(|valid| valid.then_some(&b"a"[..])).collect();
            blocks.push(write_block(&rows, &BlockOptions::default()).unwrap());
            expected.extend(valid);
        }
        let sealed: Vec<_> = blocks.iter().map(|bytes| SealedBlock::open(bytes).unwrap()).collect();
        let bits = validity_for(&sealed).unwrap();
        assert_eq!(bits.len(), expected.len().div_ceil(8));
        for (row, valid) in expected.iter().enumerate() {
            assert_eq!(bits[row / 8] >> (row % 8) & 1 == 1, *valid, "{row}");
        }
        assert_eq!(validity_for(&sealed[..2]), None);
    }

    #[test]
    fn views_are_decoded_where_no_block_has_many_rows_of_little_text() {
        let of = |len: usize, num_rows: usize| {
            let row = [b'a'; 40];
            let mut rows = vec![Some(&row[..len]); num_rows];
            rows.resize(100, Some(&row[..0]));
            write_block(&rows, &BlockOptions::default()).unwrap()
        };
        let decodes = |blocks: &[&Vec<u8>], form, is_checked| {
            let run: Vec<_> = blocks.iter().map(|bytes| SealedBlock::open(bytes).unwrap()).collect();
            let layout = RunLayout::new(&run, form, is_checked).unwrap();
            assert_eq!(layout.eight.split_rows.is_empty(), !layout.decodes_views);
            layout.decodes_views
        };
        let none = write_block(&[], &BlockOptions::default()).unwrap();
        let enough = of(40, 10);
        let too_little = of(39, 10);
        let nothing = of(0, 0);
        assert!(decodes(&[&enough, &none, &of(4, 100)], RowForm::Views, true));
        assert!(!decodes(&[&enough, &too_little], RowForm::Views, true));
        assert!(!decodes(&[&enough, &nothing], RowForm::Views, true));
        assert!(!decodes(&[&enough], RowForm::Views, false));
        assert!(!decodes(&[&enough], RowForm::Offsets, true));
    }

    #[test]
    fn a_layout_holds_every_block_with_its_slack() {
        let rows: Vec<_> = (0..1000).map(|_| Some(&b"carefully final deposits"[..])).collect();
        let block = write_block(&rows, &BlockOptions::default()).unwrap();
        let empty = write_block(&[], &BlockOptions::default()).unwrap();
        let run: Vec<_> = [&block, &empty, &block].map(|bytes| SealedBlock::open(bytes).unwrap()).into();
        let mut layout = RunLayout::new(&run, RowForm::Views, false).unwrap();
        let mut input = vec![0xA5; layout.input_len_bytes];
        layout.write(&run, &mut input);
        assert!(input.starts_with(&block));
        assert!(input[block.len() + empty.len()..].starts_with(&block));
        assert_eq!(input[layout.stored_len_bytes..][..SLACK_BYTES], [0; SLACK_BYTES]);
        assert_eq!((layout.num_rows, layout.num_frames, layout.eight.num_blocks), (2000, 16, 2));
        assert_eq!(layout.rows.len(), 16 * 2000);
        assert!(layout.text.start.is_multiple_of(64) && layout.rows.start.is_multiple_of(64));
    }
}
