//! Kernel launches of a run: the wrapper of `kernels/gsst_check.cu` and `kernels/gsst_rows.cu`, with decoding.
//!
//! ```text
//! check     rows_sum ─▶ rows_scan ─▶ rows_offsets ─▶ check      faults go to the error word
//! decode    decode_8bit, decode_12bit                           does nothing after a fault
//! rows      views, utf8, utf8_rows                              does nothing after a fault
//! ```
//!
//! All kernels run on one stream, so each sees the output of those before it. Runs of validated
//! blocks skip the checks. Their views are made from the lengths directly, without offsets:
//!
//! ```text
//! rows_sum ─▶ rows_scan ─▶ rows_splits ─▶ decode_{8,12}bit_views ─▶ rows_split_views
//! rows_sum ─▶ rows_scan ─▶ decode_{8,12}bit ─▶ rows_views            if rows are short
//! ```

#![allow(unsafe_code, reason = "launching kernels")]

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaFunction, CudaStream, LaunchArgs, LaunchConfig, PushKernelArg};

use gsst::CodeWidth;

use super::device::{Device, GSST_CHECK, GSST_ROWS, Module};
use super::gsst_run::{RowForm, RunLayout, WidthRanges};
use crate::error::GpuError;
use crate::gsst_decode::{DecodeArguments, GsstDecoder, ViewArguments};

/// Warps of a thread block. Each handles frames, or one split to check.
const WARPS: u32 = 8;
/// Frames per warp when frames are unpacked.
const WARP_FRAMES: u32 = 4;
/// Frames per warp when views are made.
const VIEW_FRAMES: u32 = 2;
/// Threads of a thread block of the scan.
const SCAN_THREADS: u32 = 1024;
/// Threads of a thread block of the other kernels.
const THREADS: u32 = 256;
/// Thread blocks per multiprocessor in the check. The registers allow 4 to 8.
const CHECK_BLOCKS_PER_PROCESSOR: u32 = 8;
/// Bytes of text that a thread checks for UTF-8.
const UTF8_BYTES: usize = 16;

/// The kernels of runs on a device, loaded on first use.
#[derive(Debug)]
pub(super) struct RunKernels {
    device: Device,
    decoder: GsstDecoder,
    num_processors: u32,
    loaded: OnceLock<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    check_eight: CudaFunction,
    check_twelve: CudaFunction,
    rows_sum: CudaFunction,
    rows_sum_checked: CudaFunction,
    rows_scan: CudaFunction,
    rows_offsets: CudaFunction,
    rows_offsets_checked: CudaFunction,
    rows_views: CudaFunction,
    rows_splits: CudaFunction,
    rows_split_views: CudaFunction,
    views: CudaFunction,
    utf8: CudaFunction,
    utf8_rows: CudaFunction,
}

/// The addresses of a run on the device, and its stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunAddresses<'a> {
    pub(super) stream: &'a Arc<CudaStream>,
    pub(super) input: u64,
    pub(super) scratch: u64,
    pub(super) output: u64,
}

impl RunAddresses<'_> {
    /// Returns the address of a part of the input.
    fn input(&self, part: &Range<usize>) -> u64 {
        self.input + part.start as u64
    }

    fn scratch(&self, part: &Range<usize>) -> u64 {
        if part.is_empty() { 0 } else { self.scratch + part.start as u64 }
    }

    fn output(&self, part: &Range<usize>) -> u64 {
        self.output + part.start as u64
    }
}

impl RunKernels {
    pub(super) fn new(device: &Device) -> Result<Self, GpuError> {
        let processors = Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let num_processors = device.attribute(processors)?.max(1);
        let decoder = GsstDecoder::new(device);
        let loaded = OnceLock::new();
        Ok(Self { device: device.clone(), decoder, num_processors, loaded })
    }

    pub(super) fn load(&self, width: CodeWidth) -> Result<(), GpuError> {
        self.decoder.load(width)?;
        self.loaded().map(drop)
    }

    fn loaded(&self) -> Result<&Loaded, GpuError> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let check = Module::load(&self.device, GSST_CHECK)?;
        let rows = Module::load(&self.device, GSST_ROWS)?;
        let loaded = Loaded {
            check_eight: check.kernel("gsst_check_8bit")?,
            check_twelve: check.kernel("gsst_check_12bit")?,
            rows_sum: rows.kernel("gsst_rows_sum")?,
            rows_sum_checked: rows.kernel("gsst_rows_sum_checked")?,
            rows_scan: rows.kernel("gsst_rows_scan")?,
            rows_offsets: rows.kernel("gsst_rows_offsets")?,
            rows_offsets_checked: rows.kernel("gsst_rows_offsets_checked")?,
            rows_views: rows.kernel("gsst_rows_views")?,
            rows_splits: rows.kernel("gsst_rows_splits")?,
            rows_split_views: rows.kernel("gsst_rows_split_views")?,
            views: rows.kernel("gsst_views")?,
            utf8: rows.kernel("gsst_utf8")?,
            utf8_rows: rows.kernel("gsst_utf8_rows")?,
        };
        Ok(self.loaded.get_or_init(|| loaded))
    }

    /// Enqueues all kernels of a run whose blocks were not checked.
    ///
    /// # Safety
    ///
    /// The memory at `at` must match `layout`: the input written by [`RunLayout::write`], the
    /// scratch space, and an output whose error word is [`NO_ERROR`](crate::gsst_decode::NO_ERROR).
    /// Nothing else may use this memory before `stream` is done.
    pub(super) unsafe fn run(
        &self,
        layout: &RunLayout,
        at: RunAddresses<'_>,
        must_be_utf8: bool,
    ) -> Result<(), GpuError> {
        // SAFETY: the caller guarantees it.
        unsafe { self.check(layout, at) }?;
        // SAFETY: the caller guarantees it. The error word reports malformed blocks by now.
        unsafe { self.decode(layout, at) }?;
        // SAFETY: same argument as for the call above.
        unsafe { self.rows(layout, at, must_be_utf8) }
    }

    /// Checks all blocks and computes the offsets of their rows.
    ///
    /// # Safety
    ///
    /// The contract of [`RunKernels::run`].
    pub(super) unsafe fn check(&self, layout: &RunLayout, at: RunAddresses<'_>) -> Result<(), GpuError> {
        // SAFETY: the caller guarantees it.
        unsafe { self.sums(layout, at, true) }?;
        // SAFETY: the caller guarantees it.
        unsafe { self.offsets(layout, at, true) }?;
        let loaded = self.loaded()?;
        let widths = [(&layout.eight, &loaded.check_eight), (&layout.twelve, &loaded.check_twelve)];
        for (ranges, function) in widths {
            if ranges.num_blocks > 0 {
                // SAFETY: the caller guarantees it.
                unsafe { self.check_width(layout, ranges, function, at) }?;
            }
        }
        Ok(())
    }

    unsafe fn check_width(
        &self,
        layout: &RunLayout,
        ranges: &WidthRanges,
        function: &CudaFunction,
        at: RunAddresses<'_>,
    ) -> Result<(), GpuError> {
        let places = [&ranges.tables, &ranges.places, &ranges.block_idxs].map(|part| at.input(part));
        let blocks = at.input(&layout.blocks);
        let code_ends = at.scratch(&layout.code_ends);
        let offsets = offsets_for(layout, at);
        let wanted = ranges.num_splits.div_ceil(WARPS);
        let grid = wanted.min(self.num_processors * CHECK_BLOCKS_PER_PROCESSOR);
        let mut launch = at.stream.launch_builder(function);
        launch.arg(&at.input).arg(&places[0]).arg(&places[1]).arg(&places[2]);
        launch.arg(&ranges.num_blocks).arg(&ranges.num_splits).arg(&blocks);
        launch.arg(&code_ends).arg(&offsets).arg(&at.output);
        // SAFETY: the arguments match the kernel; the caller guarantees what they point to.
        unsafe { self.launch(launch, grid, 32 * WARPS) }
    }

    /// Decodes all blocks, unless the error word reports a fault.
    ///
    /// # Safety
    ///
    /// The contract of [`RunKernels::run`]. The blocks must have been checked, by
    /// [`RunKernels::check`] or earlier.
    unsafe fn decode(&self, layout: &RunLayout, at: RunAddresses<'_>) -> Result<(), GpuError> {
        let widths = [(CodeWidth::Eight, &layout.eight), (CodeWidth::Twelve, &layout.twelve)];
        for (width, ranges) in widths {
            if ranges.num_blocks == 0 {
                continue;
            }
            let arguments = DecodeArguments {
                bytes: at.input,
                tables: at.input(&ranges.tables),
                blocks: at.input(&ranges.places),
                num_blocks: ranges.num_blocks,
                num_splits: ranges.num_splits,
                text: at.output(&layout.text),
                error: at.output,
            };
            let kernel = self.decoder.kernel(width)?;
            if !layout.decodes_views {
                // SAFETY: the caller guarantees it; the text starts at a multiple of 64 of an
                // allocation.
                unsafe { kernel.launch(&self.device, at.stream, arguments, None) }?;
                continue;
            }
            let views = ViewArguments {
                run_blocks: at.input(&layout.blocks),
                block_idxs: at.input(&ranges.block_idxs),
                frames: at.input(&layout.frames),
                split_rows: at.scratch(&ranges.split_rows),
                views: at.output(&layout.rows),
            };
            // SAFETY: the caller guarantees it.
            unsafe { self.split_rows(layout, ranges, at) }?;
            // SAFETY: the caller guarantees it, and the call above enqueued the rows of splits.
            unsafe { kernel.launch(&self.device, at.stream, arguments, Some(views)) }?;
            // SAFETY: the caller guarantees it. A row across the end of a split has all its text in
            // blocks of the same width.
            unsafe { self.split_views(layout, ranges, at) }?;
        }
        Ok(())
    }

    /// Computes where the rows of each split of a width start.
    unsafe fn split_rows(
        &self,
        layout: &RunLayout,
        ranges: &WidthRanges,
        at: RunAddresses<'_>,
    ) -> Result<(), GpuError> {
        let [places, block_idxs] = [&ranges.places, &ranges.block_idxs].map(|part| at.input(part));
        let [blocks, frames] = [&layout.blocks, &layout.frames].map(|part| at.input(part));
        let [sums, splits] = [&layout.sums, &ranges.split_rows].map(|part| at.scratch(part));
        let mut launch = at.stream.launch_builder(&self.loaded()?.rows_splits);
        launch.arg(&at.input).arg(&places).arg(&ranges.num_blocks).arg(&ranges.num_splits);
        launch.arg(&blocks).arg(&block_idxs).arg(&frames).arg(&sums).arg(&splits);
        // SAFETY: the arguments match the kernel; the caller guarantees what they point to.
        unsafe { self.launch(launch, ranges.num_splits.div_ceil(THREADS), THREADS) }
    }

    /// Makes the views of rows across the end of a split, which decoding leaves out.
    unsafe fn split_views(
        &self,
        layout: &RunLayout,
        ranges: &WidthRanges,
        at: RunAddresses<'_>,
    ) -> Result<(), GpuError> {
        let splits = at.scratch(&ranges.split_rows);
        let text = at.output(&layout.text);
        let views = at.output(&layout.rows);
        let mut launch = at.stream.launch_builder(&self.loaded()?.rows_split_views);
        launch.arg(&splits).arg(&ranges.num_splits).arg(&text).arg(&views);
        // SAFETY: the arguments match the kernel; the caller guarantees what they point to.
        unsafe { self.launch(launch, ranges.num_splits.div_ceil(THREADS), THREADS) }
    }

    /// Makes the views of checked and decoded rows, and checks that the text is UTF-8.
    ///
    /// # Safety
    ///
    /// The contract of [`RunKernels::run`]. [`RunKernels::check`] and [`RunKernels::decode`] must
    /// have been called before.
    unsafe fn rows(&self, layout: &RunLayout, at: RunAddresses<'_>, must_be_utf8: bool) -> Result<(), GpuError> {
        let loaded = self.loaded()?;
        let text = at.output(&layout.text);
        let offsets = offsets_for(layout, at);
        let num_rows = layout.num_rows as u32;
        let len = layout.text_len_bytes as u64;
        if must_be_utf8 && layout.may_be_not_ascii && len > 0 {
            let grid = layout.text_len_bytes.div_ceil(UTF8_BYTES).div_ceil(THREADS as usize) as u32;
            let mut launch = at.stream.launch_builder(&loaded.utf8);
            launch.arg(&text).arg(&len).arg(&at.output);
            // SAFETY: the arguments match the kernel; the caller guarantees what they point to.
            unsafe { self.launch(launch, grid, THREADS) }?;
            let mut launch = at.stream.launch_builder(&loaded.utf8_rows);
            launch.arg(&text).arg(&offsets).arg(&num_rows).arg(&at.output);
            // SAFETY: same argument as for the call above.
            unsafe { self.launch(launch, num_rows.div_ceil(THREADS), THREADS) }?;
        }
        if layout.form == Some(RowForm::Views) && num_rows > 0 {
            let views = at.output(&layout.rows);
            let mut launch = at.stream.launch_builder(&loaded.views);
            launch.arg(&text).arg(&offsets).arg(&num_rows).arg(&views).arg(&at.output);
            // SAFETY: same argument as for the call above.
            unsafe { self.launch(launch, num_rows.div_ceil(THREADS), THREADS) }?;
        }
        Ok(())
    }

    /// Makes the text and the rows of validated blocks that store the lengths of texts.
    ///
    /// # Safety
    ///
    /// The contract of [`RunKernels::run`]. The blocks must be valid, and all must have lengths of
    /// texts.
    pub(super) unsafe fn run_valid(&self, layout: &RunLayout, at: RunAddresses<'_>) -> Result<(), GpuError> {
        // SAFETY: the caller guarantees it.
        unsafe { self.sums(layout, at, false) }?;
        // SAFETY: the caller guarantees it.
        unsafe { self.decode(layout, at) }?;
        if layout.form != Some(RowForm::Views) {
            // SAFETY: the caller guarantees it.
            return unsafe { self.offsets(layout, at, false) };
        }
        if layout.decodes_views {
            return Ok(());
        }
        let num_frames = layout.num_frames as u32;
        let frames = at.input(&layout.frames);
        let sums = at.scratch(&layout.sums);
        let text = at.output(&layout.text);
        let views = at.output(&layout.rows);
        let mut launch = at.stream.launch_builder(&self.loaded()?.rows_views);
        launch.arg(&at.input).arg(&frames).arg(&num_frames).arg(&sums).arg(&text).arg(&views);
        // SAFETY: the arguments match the kernel; the caller guarantees what they point to.
        unsafe { self.launch(launch, num_frames.div_ceil(WARPS * VIEW_FRAMES), 32 * WARPS) }
    }

    /// Sums the lengths before each frame: of texts, and of codes if blocks are checked.
    unsafe fn sums(&self, layout: &RunLayout, at: RunAddresses<'_>, is_check: bool) -> Result<(), GpuError> {
        let loaded = self.loaded()?;
        let blocks = at.input(&layout.blocks);
        let frames = at.input(&layout.frames);
        let num_frames = layout.num_frames as u32;
        let sums = at.scratch(&layout.sums);
        let sum = if is_check { &loaded.rows_sum_checked } else { &loaded.rows_sum };
        let mut launch = at.stream.launch_builder(sum);
        launch.arg(&at.input).arg(&blocks).arg(&frames).arg(&num_frames);
        launch.arg(&sums).arg(&at.output);
        let grid = num_frames.div_ceil(WARPS * WARP_FRAMES);
        // SAFETY: the arguments match the kernel; the caller guarantees what they point to.
        unsafe { self.launch(launch, grid, 32 * WARPS) }?;
        if layout.num_blocks == 0 {
            return Ok(());
        }
        let mut launch = at.stream.launch_builder(&loaded.rows_scan);
        launch.arg(&blocks).arg(&num_frames).arg(&sums).arg(&at.output);
        let config = LaunchConfig {
            grid_dim: (layout.num_blocks as u32, 1 + u32::from(is_check), 1),
            block_dim: (SCAN_THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: same argument as for the call above.
        let launched = unsafe { launch.launch(config) };
        launched.map(drop).map_err(self.device.fault("launching gsst_rows_scan"))
    }

    /// Computes where texts end, and where codes end if there is room for them.
    unsafe fn offsets(&self, layout: &RunLayout, at: RunAddresses<'_>, is_check: bool) -> Result<(), GpuError> {
        let loaded = self.loaded()?;
        let offsets = if is_check { &loaded.rows_offsets_checked } else { &loaded.rows_offsets };
        let mut launch = at.stream.launch_builder(offsets);
        let frames = at.input(&layout.frames);
        let num_frames = layout.num_frames as u32;
        let sums = at.scratch(&layout.sums);
        let offsets = offsets_for(layout, at);
        let code_ends = at.scratch(&layout.code_ends);
        launch.arg(&at.input).arg(&frames).arg(&num_frames).arg(&sums);
        launch.arg(&offsets).arg(&code_ends);
        // Launches at least one thread block, because it writes the first offset even if there are
        // no rows.
        // SAFETY: the arguments match the kernel; the caller guarantees what they point to.
        unsafe { self.launch(launch, num_frames.div_ceil(WARPS * WARP_FRAMES).max(1), 32 * WARPS) }
    }

    unsafe fn launch(&self, mut launch: LaunchArgs<'_>, grid: u32, threads: u32) -> Result<(), GpuError> {
        if grid == 0 {
            return Ok(());
        }
        let config = LaunchConfig { grid_dim: (grid, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: the callers guarantee it.
        let launched = unsafe { launch.launch(config) };
        launched.map(drop).map_err(self.device.fault("launching a kernel of a GSST run"))
    }
}

/// Returns the address of the offsets: in the output, or in scratch if views are requested.
fn offsets_for(layout: &RunLayout, at: RunAddresses<'_>) -> u64 {
    match layout.form {
        Some(RowForm::Views) => at.scratch(&layout.scratch_offsets),
        _ => at.output(&layout.rows),
    }
}
