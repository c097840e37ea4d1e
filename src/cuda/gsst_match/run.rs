//! The device layout of predicates and a run of blocks that were not checked.
//!
//! ```text
//! input    ┌────────────────┬───────────┬────────────┬──────────────┬┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┐
//!          │ a run's input  │ blocks    │ predicates │ an empty     │ lengths of texts,
//!          │ (`gsst_run`)   │ per width │            │ symbol table │ if blocks have none
//!          └────────────────┴───────────┴────────────┴──────────────┴┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┘
//! scratch  a run's scratch │ frames │ tables │ mask │ sums
//! output   error word, totals │ offsets │ numbers of rows │ text
//! ```
//!
//! The checks are those of a scan (`run_kernels`). Their intermediate results give the start of
//! each row's codes (`kernels/gsst_places.cu`). The output has room for all rows, so matches are
//! written without a wait for their number. Only the used part is copied back.

use std::ops::Range;

use cudarc::driver::{CudaFunction, LaunchConfig, PushKernelArg};

use gsst::{CodeWidth, SealedBlock};

use super::predicate::{FourGrams, ListUnits, RowPredicate, unit_frames};
use super::rows::{
    Kernels, ListAddresses, MaskInputs, MatchAddresses, MatchBlock, MatchFrame, OutputAddresses, SLACK_BYTES,
    UNITS_PER_TILE,
};
use crate::device::{Device, GSST_PLACES, Module};
use crate::error::GpuError;
use crate::gsst_run::{BufferRanges, Plain, RowForm, RunLayout, put};
use crate::run_kernels::{RunAddresses, RunKernels};

/// Threads of a thread block that computes places, and threads per frame.
pub(super) const PLACES_THREADS: u32 = 256;
pub(super) const FRAME_GROUPS: u32 = 8;
/// Bytes of a length that the device writes for blocks without lengths.
pub(super) const LENGTH_BYTES: usize = 3;
/// Bytes of an empty symbol table of 8 bits.
const TABLE_BYTES: usize = 8 << 8;

impl Plain for MatchBlock {}

/// The layout of a run to be matched: the range of each array.
#[derive(Debug)]
pub(crate) struct MatchLayout {
    run: RunLayout,
    lists: [MatchList; 2],
    predicates: Vec<Range<usize>>,
    empty_table: Range<usize>,
    lengths: Range<usize>,
    /// Length of the copied part of the input. The lengths follow it.
    pub(crate) copied_len_bytes: usize,
    pub(crate) input_len_bytes: usize,
    frames: Range<usize>,
    next: Range<usize>,
    filters: Range<usize>,
    mask: Range<usize>,
    sums: Range<usize>,
    tile_sums: Range<usize>,
    rows_before: Range<usize>,
    text_before: Range<usize>,
    pub(crate) scratch_len_bytes: usize,
    pub(crate) output: MatchOutput,
    sample: FourGrams,
    num_units: u32,
}

/// The ranges of the output.
#[derive(Debug, Clone)]
pub(crate) struct MatchOutput {
    pub(crate) offsets: Range<usize>,
    pub(crate) rows: Range<usize>,
    /// Text; `None` if only numbers of rows are wanted.
    pub(crate) text: Option<Range<usize>>,
    pub(crate) len_bytes: usize,
}

impl MatchOutput {
    /// Bytes of the error word and of the numbers of matching rows and bytes.
    pub(crate) const HEAD_BYTES: usize = 24;
    const TOTALS_AT: usize = 8;

    fn new(num_rows: usize, text_len_bytes: usize, is_text_wanted: bool) -> Self {
        let mut ranges = BufferRanges::behind(Self::HEAD_BYTES);
        let offsets = ranges.next(4 * (num_rows + 1));
        let rows = ranges.next(4 * num_rows);
        let text = is_text_wanted.then(|| ranges.next(text_len_bytes));
        Self { offsets, rows, text, len_bytes: ranges.len_bytes() }
    }

    /// Returns the range that must be 0 if nothing matches: totals and the first offset.
    pub(crate) fn zeros(&self) -> Range<usize> {
        Self::TOTALS_AT..self.offsets.start + 4
    }
}

/// The blocks of one code width. Blocks without codes count as 8 bits.
#[derive(Debug)]
struct MatchList {
    units: ListUnits,
    blocks: Vec<MatchBlock>,
    num_tables: u32,
    blocks_part: Range<usize>,
    tables_part: Range<usize>,
}

impl MatchList {
    fn new(width: CodeWidth) -> Self {
        Self { units: ListUnits::new(width), blocks: Vec::new(), num_tables: 0, blocks_part: 0..0, tables_part: 0..0 }
    }
}

/// The kernels of a run to be matched.
#[derive(Debug)]
pub(crate) struct MatchRunKernels {
    kernels: Kernels,
    places: CudaFunction,
}

impl MatchRunKernels {
    pub(super) fn new(device: &Device, kernels: &Kernels) -> Result<Self, GpuError> {
        let places = Module::load(device, GSST_PLACES)?.kernel("gsst_places")?;
        Ok(Self { kernels: kernels.clone(), places })
    }
}

impl MatchLayout {
    /// Builds the layout of `blocks`, whose rows are tested against all `predicates`.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if the run has 2^31 or more bytes of text or rows, or there is no
    /// predicate.
    pub(crate) fn new<B: AsRef<[u8]>>(
        blocks: &[SealedBlock<B>],
        predicates: &[RowPredicate],
        is_text_wanted: bool,
    ) -> Result<Self, GpuError> {
        if predicates.is_empty() {
            return Err(GpuError::Mismatch { what: "predicates of a run", got: 0, expected: 1 });
        }
        let run = RunLayout::new(blocks, RowForm::Views, false)?;
        let mut lists = [CodeWidth::Eight, CodeWidth::Twelve].map(MatchList::new);
        let num_units = add_blocks(blocks, &mut lists);
        let mut input = BufferRanges::behind(run.input_len_bytes);
        for (list, ranges) in lists.iter_mut().zip([&run.eight, &run.twelve]) {
            list.blocks_part = input.next(list.blocks.len() * size_of::<MatchBlock>());
            list.tables_part = ranges.tables.clone();
        }
        let bytes_of = |predicate: &RowPredicate| input.next(predicate.to_bytes().len());
        let predicate_parts = predicates.iter().map(bytes_of).collect();
        let empty_table = input.next(TABLE_BYTES);
        let copied_len_bytes = input.len_bytes();
        let num_lengths = if run.has_lengths { 0 } else { run.num_rows };
        let lengths = input.next(LENGTH_BYTES * num_lengths + SLACK_BYTES);
        if lengths.end > u32::MAX as usize {
            let got = lengths.end as u64;
            let expected = u64::from(u32::MAX);
            return Err(GpuError::Mismatch { what: "bytes of a run", got, expected });
        }
        let num_frames = run.num_frames + run.num_blocks;
        let most = |of: &dyn Fn(&ListUnits, &RowPredicate) -> usize| {
            let lists = lists.iter().flat_map(|list| predicates.iter().map(move |one| (list, one)));
            lists.map(|(list, predicate)| of(&list.units, predicate)).max().unwrap_or(0)
        };
        let num_codes = |units: &ListUnits, predicate: &RowPredicate| {
            units.max_group_blocks(predicate.tables_len_bytes(units.width())) << units.width().bits()
        };
        let units = num_units as usize;
        let mut scratch = BufferRanges::behind(run.scratch_len_bytes);
        Ok(Self {
            frames: scratch.next(num_frames * size_of::<MatchFrame>()),
            next: scratch.next(most(&|list, one| num_codes(list, one) * one.num_states())),
            filters: scratch.next(4 * most(&num_codes)),
            mask: scratch.next(16 * num_frames),
            sums: scratch.next(8 * units),
            tile_sums: scratch.next(16 * units.div_ceil(UNITS_PER_TILE)),
            rows_before: scratch.next(4 * units),
            text_before: scratch.next(8 * units),
            scratch_len_bytes: scratch.len_bytes(),
            output: MatchOutput::new(run.num_rows, run.text_len_bytes, is_text_wanted),
            sample: FourGrams::from_blocks(blocks),
            input_len_bytes: lengths.end,
            predicates: predicate_parts,
            run,
            lists,
            empty_table,
            lengths,
            copied_len_bytes,
            num_units,
        })
    }

    /// Writes the copied part of the input for `blocks` and `predicates`, which must be those of
    /// this layout.
    pub(crate) fn write<B: AsRef<[u8]>>(
        &mut self,
        blocks: &[SealedBlock<B>],
        predicates: &[RowPredicate],
        input: &mut [u8],
    ) {
        let len_bytes = self.run.input_len_bytes;
        self.run.write(blocks, &mut input[..len_bytes]);
        for list in &self.lists {
            for (idx, block) in list.blocks.iter().enumerate() {
                put(input, list.blocks_part.start, idx, block);
            }
        }
        for (part, predicate) in self.predicates.iter().zip(predicates) {
            input[part.clone()].copy_from_slice(&predicate.to_bytes());
        }
        input[self.empty_table.clone()].fill(0);
    }

    /// Enqueues all work: checks, places, masks, and the output of matching rows.
    ///
    /// # Safety
    ///
    /// The memory at `at` must match this layout: the input written by [`MatchLayout::write`] for
    /// `predicates`, scratch, and an output whose error word is set and whose
    /// [`MatchOutput::zeros`] are 0. Nothing else uses this memory before the stream is done.
    pub(crate) unsafe fn launch(
        &self,
        device: &Device,
        run_kernels: &RunKernels,
        kernels: &MatchRunKernels,
        predicates: &[RowPredicate],
        at: RunAddresses<'_>,
    ) -> Result<(), GpuError> {
        // SAFETY: the caller guarantees it.
        unsafe { run_kernels.check(&self.run, at) }?;
        if self.num_units == 0 {
            return Ok(());
        }
        // SAFETY: the caller guarantees it; the checks were enqueued before.
        unsafe { self.find_places(device, &kernels.places, at) }?;
        let addresses = self.addresses(at);
        let lists = self.lists.iter().filter(|list| !list.blocks.is_empty());
        let lists: Vec<_> = lists.map(|list| self.list_addresses(list, at)).collect();
        let kernels = &kernels.kernels;
        for (i, (predicate, part)) in predicates.iter().zip(&self.predicates).enumerate() {
            let mut inputs = MaskInputs::new(predicate, &self.sample, at.input + part.start as u64);
            inputs.has_mask = i > 0;
            for list in &lists {
                // SAFETY: the caller guarantees it; the layout has room for the largest group of
                // each predicate, and for masks and sums of all units.
                unsafe { kernels.mask_list(device, &addresses, list, &inputs) }?;
            }
        }
        // SAFETY: the caller guarantees it; there is at least one unit.
        unsafe { kernels.scan(device, &addresses) }?;
        let output = OutputAddresses {
            rows: at.output + self.output.rows.start as u64,
            offsets: at.output + self.output.offsets.start as u64,
            text: self.output.text.as_ref().map_or(0, |text| at.output + text.start as u64),
            max_rows: self.run.num_rows as u64,
            max_text: self.run.text_len_bytes as u64,
        };
        for list in &lists {
            // SAFETY: the caller guarantees it; the output has room for all rows, and for all text
            // if text is wanted.
            unsafe { kernels.write(device, &addresses, list, &output) }?;
        }
        Ok(())
    }

    unsafe fn find_places(
        &self,
        device: &Device,
        function: &CudaFunction,
        at: RunAddresses<'_>,
    ) -> Result<(), GpuError> {
        let (input, scratch) =
            (|part: &Range<usize>| at.input + part.start as u64, |part: &Range<usize>| at.scratch + part.start as u64);
        let blocks = input(&self.run.blocks);
        let frames = input(&self.run.frames);
        let num_frames = self.run.num_frames as u32;
        let code_ends = scratch(&self.run.code_ends);
        let offsets = scratch(&self.run.scratch_offsets);
        let lengths_at = self.lengths.start as u64;
        let places = scratch(&self.frames);
        let config = LaunchConfig {
            grid_dim: (num_frames.div_ceil(PLACES_THREADS / FRAME_GROUPS), 1, 1),
            block_dim: (PLACES_THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        let mut launch = at.stream.launch_builder(function);
        launch.arg(&at.input).arg(&blocks).arg(&frames).arg(&num_frames);
        launch.arg(&code_ends).arg(&offsets).arg(&lengths_at).arg(&places).arg(&at.output);
        // SAFETY: the arguments match the kernel in number, order and type; the caller guarantees
        // what they point to.
        let launched = unsafe { launch.launch(config) };
        launched.map(drop).map_err(device.fault("launching gsst_places"))
    }

    fn addresses<'a>(&self, at: RunAddresses<'a>) -> MatchAddresses<'a> {
        let scratch = |part: &Range<usize>| at.scratch + part.start as u64;
        MatchAddresses {
            stream: at.stream,
            bytes: at.input,
            frames: scratch(&self.frames),
            error: at.output,
            next: scratch(&self.next),
            filters: scratch(&self.filters),
            mask: scratch(&self.mask),
            sums: scratch(&self.sums),
            tile_sums: scratch(&self.tile_sums),
            rows_before: scratch(&self.rows_before),
            text_before: scratch(&self.text_before),
            totals: at.output + MatchOutput::TOTALS_AT as u64,
            num_units: self.num_units,
            num_rows: self.run.num_rows as u32,
        }
    }

    fn list_addresses<'a>(&self, list: &'a MatchList, at: RunAddresses<'_>) -> ListAddresses<'a> {
        // Blocks without codes have no table; kernels only need a valid address.
        let tables = if list.num_tables == 0 { &self.empty_table } else { &list.tables_part };
        ListAddresses {
            units: &list.units,
            tables: at.input + tables.start as u64,
            blocks: at.input + list.blocks_part.start as u64,
        }
    }
}

/// Adds the blocks that have rows to the lists of their widths. Returns their number of units.
fn add_blocks<B: AsRef<[u8]>>(blocks: &[SealedBlock<B>], lists: &mut [MatchList; 2]) -> u32 {
    let mut at = 0;
    let mut first_row = 0;
    let mut first_frame = 0;
    let mut first_slot = 0;
    for block in blocks {
        let num_frames = block.frames().code_counts.len();
        let has_codes = block.num_codes() > 0;
        let list = &mut lists[usize::from(has_codes && block.width() == CodeWidth::Twelve)];
        let unit_frames = unit_frames(block.num_codes(), num_frames);
        let num_units = num_frames.div_ceil(unit_frames) as u32;
        if num_units > 0 {
            list.blocks.push(MatchBlock {
                at,
                num_rows: block.num_rows() as u32,
                first_row,
                first_frame,
                first_unit: list.units.num_units(),
                first_slot,
                unit_frames: unit_frames as u32,
                validity_at: block.validity_offset().unwrap_or(0) as u32,
                table: if has_codes { list.num_tables } else { 0 },
            });
            list.units.push(num_units);
            list.num_tables += u32::from(has_codes);
        }
        at += block.as_bytes().len() as u64;
        first_row += block.num_rows() as u32;
        // One more frame after the last stores the end of the codes.
        first_frame += num_frames as u32 + 1;
        first_slot += num_units;
    }
    first_slot
}

#[cfg(test)]
mod tests {
    use super::*;
    use gsst::{BlockOptions, ByteAutomaton, Pattern, write_block};

    fn block(rows: &[Option<&[u8]>], options: &BlockOptions) -> SealedBlock<Vec<u8>> {
        SealedBlock::open(write_block(rows, options).unwrap()).unwrap()
    }

    fn contains(literal: &[u8]) -> RowPredicate {
        let pattern = Pattern::contains(literal);
        RowPredicate::new(&ByteAutomaton::new(&pattern).unwrap(), pattern.floating_literal(), pattern.is_contains())
    }

    #[test]
    fn lists_number_blocks_units_and_tables() {
        let rows = vec![Some(&b"some text"[..]); 300];
        let without_lengths = BlockOptions { has_text_lengths: false, ..BlockOptions::default() };
        let blocks = [
            block(&rows, &BlockOptions::new(CodeWidth::Twelve)),
            block(&[Some(b""), None], &BlockOptions::new(CodeWidth::Twelve)),
            block(&[], &BlockOptions::default()),
            block(&rows[..1], &without_lengths),
        ];
        let predicates = [contains(b"text"), contains(b"e")];
        let layout = MatchLayout::new(&blocks, &predicates, true).unwrap();
        let [eight, twelve] = &layout.lists;
        let figures = |list: &MatchList| {
            let of = |block: &MatchBlock| {
                [block.first_row, block.first_frame, block.first_unit, block.first_slot, block.table]
            };
            (list.num_tables, list.blocks.iter().map(of).collect::<Vec<_>>())
        };
        // Blocks without codes count as 8 bits and have no table; those without rows are left out.
        assert_eq!(figures(twelve), (1, vec![[0, 0, 0, 0, 0]]));
        assert_eq!(figures(eight), (1, vec![[300, 4, 0, 1, 0], [302, 7, 1, 2, 0]]));
        assert_eq!(eight.blocks[0].validity_at as usize, blocks[1].validity_offset().unwrap());
        assert_eq!(layout.num_units, 3);
        assert_eq!(layout.frames.len(), (3 + 1 + 1 + 4) * size_of::<MatchFrame>());
        // Lengths are written after the copied part.
        assert!(layout.lengths.start >= layout.copied_len_bytes);
        assert_eq!(layout.lengths.len(), 303 * LENGTH_BYTES + SLACK_BYTES);
        let mut input = vec![0xa5; layout.copied_len_bytes];
        let mut layout = layout;
        layout.write(&blocks, &predicates, &mut input);
        for (part, predicate) in layout.predicates.iter().zip(&predicates) {
            assert_eq!(input[part.clone()], predicate.to_bytes());
        }
        assert!(input[layout.empty_table.clone()].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn outputs_have_place_for_all_rows() {
        let with_text = MatchOutput::new(10, 1000, true);
        assert_eq!((with_text.offsets.len(), with_text.rows.len()), (44, 40));
        assert_eq!(with_text.text.as_ref().map(Range::len), Some(1000));
        assert_eq!(with_text.zeros(), 8..68);
        let without = MatchOutput::new(10, 1000, false);
        assert!(without.text.is_none() && without.len_bytes < with_text.len_bytes);
        let none: [SealedBlock<Vec<u8>>; 0] = [];
        let refused = MatchLayout::new(&none, &[], true).map(drop);
        assert!(matches!(refused, Err(GpuError::Mismatch { expected: 1, .. })));
    }
}
