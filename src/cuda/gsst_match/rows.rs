//! Blocks on a device with the places of their rows, and the launches of `kernels/gsst_match.cu` on them.

use std::sync::Arc;

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaFunction, CudaStream, DeviceRepr, LaunchConfig, PushKernelArg, ValidAsZeroBits};
use gsst::layout::{ALIGNMENT_BYTES, HEADER_BYTES};
use gsst::{Block, CodeWidth, SealedBlock};

use super::KERNEL;
use super::predicate::{BlockGroup, FourGrams, ListUnits, RowPredicate, tables_len_bytes, unit_frames};
use crate::device::{Device, GSST_MATCH, GSST_MATCH_DENSE, Module, max_grid, unsupported};
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

const TABLE_THREADS: u32 = 256;
pub(super) const MASK_WARPS: u32 = 16;
pub(super) const WRITE_WARPS: u32 = 8;
pub(super) const DENSE_WARPS: u32 = 10;
pub(super) const SCAN_THREADS: u32 = 1024;
/// Units per thread block of the scan.
pub(super) const UNITS_PER_TILE: usize = SCAN_THREADS as usize;

/// All kernels, on one device.
#[derive(Debug, Clone)]
pub(super) struct Kernels {
    eight: WidthKernels,
    twelve: WidthKernels,
    sum: CudaFunction,
    scan: CudaFunction,
}

/// The kernels of one width.
#[derive(Debug, Clone)]
struct WidthKernels {
    tables: CudaFunction,
    mask: GridKernel,
    /// Writes few rows, one by one.
    write: GridKernel,
    /// Writes many rows: decodes all and drops the others.
    dense: GridKernel,
}

/// A kernel whose thread blocks share the units and use shared memory.
#[derive(Debug, Clone)]
struct GridKernel {
    function: CudaFunction,
    threads: u32,
    shared_bytes: u32,
    /// Number of thread blocks that run at the same time.
    max_grid: u32,
}

/// A predicate on the device: automaton, flags of states and literal, with their sizes.
#[derive(Debug, Clone, Copy)]
pub(super) struct MaskInputs {
    at: u64,
    num_states: u32,
    first_final: u32,
    literal_len_bytes: u32,
    anchor: u32,
    is_exact: bool,
    /// True if only rows of the existing mask can match.
    pub(super) has_mask: bool,
}

/// Device addresses of the input and output of a launch, and its stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct MatchAddresses<'a> {
    pub(super) stream: &'a Arc<CudaStream>,
    pub(super) bytes: u64,
    pub(super) frames: u64,
    /// Error word; 0 if there is none, because the blocks were validated.
    pub(super) error: u64,
    pub(super) next: u64,
    pub(super) filters: u64,
    pub(super) mask: u64,
    pub(super) sums: u64,
    pub(super) tile_sums: u64,
    pub(super) rows_before: u64,
    pub(super) text_before: u64,
    pub(super) totals: u64,
    pub(super) num_units: u32,
    /// Rows of all blocks.
    pub(super) num_rows: u32,
}

/// The blocks of one width on the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListAddresses<'a> {
    pub(super) units: &'a ListUnits,
    pub(super) tables: u64,
    pub(super) blocks: u64,
}

/// Device addresses of the output, with its capacity.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputAddresses {
    pub(super) rows: u64,
    pub(super) offsets: u64,
    /// Text; 0 if only numbers and offsets are wanted.
    pub(super) text: u64,
    pub(super) max_rows: u64,
    pub(super) max_text: u64,
}

impl MaskInputs {
    /// Builds the inputs for the predicate whose [`RowPredicate::to_bytes`] lie at `at` on the
    /// device.
    pub(super) fn new(predicate: &RowPredicate, sample: &FourGrams, at: u64) -> Self {
        Self {
            at,
            num_states: predicate.num_states() as u32,
            first_final: predicate.first_final() as u32,
            literal_len_bytes: predicate.literal().len() as u32,
            anchor: sample.anchor(predicate.literal()) as u32,
            is_exact: predicate.is_exact(),
            has_mask: false,
        }
    }

    fn flags_at(&self) -> u64 {
        self.at + 256 * u64::from(self.num_states)
    }

    fn literal_at(&self) -> u64 {
        self.flags_at() + 256
    }
}

impl Kernels {
    pub(super) fn new(device: &Device) -> Result<Self, GpuError> {
        let module = Module::load(device, GSST_MATCH)?;
        let sizes_of_match: [u32; 6] = sizes(device, &module, "gsst_match_sizes")?;
        if sizes_of_match[4..] != [size_of::<MatchBlock>() as u32, size_of::<MatchFrame>() as u32] {
            return Err(unsupported(device, KERNEL, format!("its structs have {sizes_of_match:?} bytes")));
        }
        let dense_module = Module::load(device, GSST_MATCH_DENSE)?;
        let dense_sizes: [u32; 2] = sizes(device, &dense_module, "gsst_match_dense_sizes")?;
        let grid = |name, warps, shared_bytes| GridKernel::new(device, module.kernel(name)?, 32 * warps, shared_bytes);
        let dense =
            |name, shared_bytes| GridKernel::new(device, dense_module.kernel(name)?, 32 * DENSE_WARPS, shared_bytes);
        Ok(Self {
            eight: WidthKernels {
                tables: module.kernel("gsst_match_tables_8bit")?,
                mask: grid("gsst_match_mask_8bit", MASK_WARPS, sizes_of_match[0])?,
                write: grid("gsst_match_write_8bit", WRITE_WARPS, sizes_of_match[2])?,
                dense: dense("gsst_match_dense_8bit", dense_sizes[0])?,
            },
            twelve: WidthKernels {
                tables: module.kernel("gsst_match_tables_12bit")?,
                mask: grid("gsst_match_mask_12bit", MASK_WARPS, sizes_of_match[1])?,
                write: grid("gsst_match_write_12bit", WRITE_WARPS, sizes_of_match[3])?,
                dense: dense("gsst_match_dense_12bit", dense_sizes[1])?,
            },
            sum: module.kernel("gsst_match_sum")?,
            scan: module.kernel("gsst_match_scan")?,
        })
    }

    fn for_width(&self, width: CodeWidth) -> &WidthKernels {
        if width == CodeWidth::Eight { &self.eight } else { &self.twelve }
    }

    /// Computes which rows match: makes the tables and the mask of all blocks of a list, in groups
    /// whose tables fit.
    ///
    /// # Safety
    ///
    /// `at` and `list` belong to valid blocks, or the error word reports a fault. They have the
    /// bytes with [`SLACK_BYTES`] after them, blocks, tables and frames.
    /// `next` and `filters` have room for the largest group, mask and sums for all frames and
    /// units. The predicate lies where `inputs` says. Nothing else uses this memory before the
    /// stream is done.
    pub(super) unsafe fn mask_list(
        &self,
        device: &Device,
        at: &MatchAddresses<'_>,
        list: &ListAddresses<'_>,
        inputs: &MaskInputs,
    ) -> Result<(), GpuError> {
        for group in list.units.groups(tables_len_bytes(inputs.num_states, list.units.width())) {
            // SAFETY: the caller guarantees it.
            unsafe { self.make_tables(device, at, list, &group, inputs) }?;
            // SAFETY: the caller guarantees it; the tables belong to this group and were made on
            // the same stream.
            unsafe { self.mask(device, at, list, &group, inputs) }?;
        }
        Ok(())
    }

    unsafe fn make_tables(
        &self,
        device: &Device,
        at: &MatchAddresses<'_>,
        list: &ListAddresses<'_>,
        group: &BlockGroup,
        inputs: &MaskInputs,
    ) -> Result<(), GpuError> {
        let width = list.units.width();
        let num_codes = 1 << width.bits();
        let config = LaunchConfig {
            grid_dim: (num_codes / TABLE_THREADS, inputs.num_states, group.num_blocks as u32),
            block_dim: (TABLE_THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        let blocks = list.for_group(group);
        let literal = inputs.literal_at();
        let mut launch = at.stream.launch_builder(&self.for_width(width).tables);
        launch.arg(&at.bytes).arg(&list.tables).arg(&blocks).arg(&inputs.at).arg(&inputs.num_states);
        launch.arg(&inputs.first_final).arg(&literal);
        launch.arg(&inputs.literal_len_bytes).arg(&inputs.anchor);
        launch.arg(&at.next).arg(&at.filters);
        // SAFETY: the arguments match the kernel in number, order and type; the caller guarantees
        // what they point to.
        let launched = unsafe { launch.launch(config) };
        launched.map(drop).map_err(device.fault("launching gsst_match_tables"))
    }

    unsafe fn mask(
        &self,
        device: &Device,
        at: &MatchAddresses<'_>,
        list: &ListAddresses<'_>,
        group: &BlockGroup,
        inputs: &MaskInputs,
    ) -> Result<(), GpuError> {
        let kernel = &self.for_width(list.units.width()).mask;
        let blocks = list.for_group(group);
        let num_blocks = group.num_blocks as u32;
        let literals = inputs.at;
        let flags = inputs.flags_at();
        let has_filter = u32::from(inputs.literal_len_bytes > 0);
        let is_exact = u32::from(inputs.is_exact);
        let has_mask = u32::from(inputs.has_mask);
        let mut launch = at.stream.launch_builder(&kernel.function);
        launch.arg(&at.bytes).arg(&blocks).arg(&num_blocks).arg(&at.frames);
        launch.arg(&at.filters).arg(&at.next).arg(&literals).arg(&flags);
        launch.arg(&inputs.num_states).arg(&inputs.first_final).arg(&has_filter);
        launch.arg(&is_exact).arg(&has_mask);
        launch.arg(&group.first_unit).arg(&group.end_unit);
        launch.arg(&at.mask).arg(&at.sums).arg(&at.error);
        let config = kernel.config(group.end_unit - group.first_unit);
        // There is at least one unit, because the list has no blocks without rows.
        // SAFETY: the arguments match the kernel in number, order and type; the caller guarantees
        // what they point to.
        let launched = unsafe { launch.launch(config) };
        launched.map(drop).map_err(device.fault("launching gsst_match_mask"))
    }

    /// Sums the rows and the text before each unit.
    ///
    /// # Safety
    ///
    /// `at` has the sums of its units, at least one. It has room for the sums of tiles, for those
    /// before each unit, and for the totals. Nothing else uses this memory before the stream is
    /// done.
    pub(super) unsafe fn scan(&self, device: &Device, at: &MatchAddresses<'_>) -> Result<(), GpuError> {
        let config = LaunchConfig {
            grid_dim: (at.num_units.div_ceil(SCAN_THREADS), 1, 1),
            block_dim: (SCAN_THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        let scanning = device.fault("launching gsst_match_scan");
        let mut launch = at.stream.launch_builder(&self.sum);
        launch.arg(&at.sums).arg(&at.num_units).arg(&at.tile_sums);
        // SAFETY: the arguments match the kernel in number, order and type; the caller guarantees
        // what they point to.
        unsafe { launch.launch(config) }.map_err(&scanning)?;
        let mut launch = at.stream.launch_builder(&self.scan);
        launch.arg(&at.sums).arg(&at.num_units).arg(&at.tile_sums);
        launch.arg(&at.rows_before).arg(&at.text_before).arg(&at.totals);
        // SAFETY: same argument as for the call above.
        unsafe { launch.launch(config) }.map_err(&scanning)?;
        Ok(())
    }

    /// Writes the matching rows of a list, if the output has room for all matches.
    ///
    /// # Safety
    ///
    /// The contract of [`Kernels::mask_list`], which must have been called before, as well as
    /// [`Kernels::scan`]. `output` has room for what it says.
    pub(super) unsafe fn write(
        &self,
        device: &Device,
        at: &MatchAddresses<'_>,
        list: &ListAddresses<'_>,
        output: &OutputAddresses,
    ) -> Result<(), GpuError> {
        let kernels = self.for_width(list.units.width());
        let num_blocks = list.units.num_blocks() as u32;
        let num_units = list.units.num_units();
        // Both know how many rows match, and one of them returns at once.
        for kernel in [&kernels.write, &kernels.dense] {
            let mut launch = at.stream.launch_builder(&kernel.function);
            launch.arg(&at.bytes).arg(&list.blocks).arg(&num_blocks).arg(&at.frames);
            launch.arg(&list.tables).arg(&num_units).arg(&at.mask);
            launch.arg(&at.rows_before).arg(&at.text_before).arg(&at.totals);
            launch.arg(&output.max_rows).arg(&output.max_text).arg(&at.num_rows);
            launch.arg(&output.rows).arg(&output.offsets).arg(&output.text).arg(&at.error);
            // SAFETY: the arguments match both kernels in number, order and type; the caller guarantees
            // what they point to.
            let launched = unsafe { launch.launch(kernel.config(num_units)) };
            launched.map_err(device.fault("launching gsst_match_write"))?;
        }
        Ok(())
    }
}

impl ListAddresses<'_> {
    fn for_group(&self, group: &BlockGroup) -> u64 {
        self.blocks + (group.first_block * size_of::<MatchBlock>()) as u64
    }
}

impl GridKernel {
    fn new(device: &Device, function: CudaFunction, threads: u32, shared_bytes: u32) -> Result<Self, GpuError> {
        let max_shared = Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        let available_bytes = device.attribute(max_shared)?;
        if available_bytes < shared_bytes {
            let reason = format!("it has {available_bytes} bytes of shared memory per block");
            return Err(unsupported(device, KERNEL, reason));
        }
        let max_grid = max_grid(device, &function, KERNEL, threads, shared_bytes)?;
        Ok(Self { function, threads, shared_bytes, max_grid })
    }

    fn config(&self, num_units: u32) -> LaunchConfig {
        LaunchConfig {
            grid_dim: (self.max_grid.min(num_units), 1, 1),
            block_dim: (self.threads, 1, 1),
            shared_mem_bytes: self.shared_bytes,
        }
    }
}

/// Reads the `N` sizes that the kernel `name` writes: shared memory and the lengths of structs, in bytes.
fn sizes<const N: usize>(device: &Device, module: &Module, name: &'static str) -> Result<[u32; N], GpuError> {
    let asking = GpuError::driver("asking for sizes of a kernel");
    let kernel = module.kernel(name)?;
    let mut sizes = device.alloc::<u32>(KERNEL, N)?;
    let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
    let mut arguments = device.stream().launch_builder(&kernel);
    arguments.arg(&mut sizes);
    // SAFETY: one thread writes `N` u32 to an allocation of as many.
    unsafe { arguments.launch(one) }.map_err(&asking)?;
    let mut answer = [0; N];
    device.stream().memcpy_dtoh(&sizes, &mut answer).map_err(&asking)?;
    device.synchronize()?;
    Ok(answer)
}

/// Rows of a frame of packed lengths. The start of every 16th row is stored.
pub(super) const FRAME_ROWS: usize = 128;
/// Bytes after the last block that kernels may read.
pub(super) const SLACK_BYTES: usize = 1024;
/// First bit of the width of differences in a form.
pub(super) const FORM_WIDTH_BIT: u32 = 27;

/// Description of a block for a launch. The kernel has the same struct.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct MatchBlock {
    pub(super) at: u64,
    pub(super) num_rows: u32,
    pub(super) first_row: u32,
    pub(super) first_frame: u32,
    pub(super) first_unit: u32,
    pub(super) first_slot: u32,
    pub(super) unit_frames: u32,
    pub(super) validity_at: u32,
    pub(super) table: u32,
}

/// Description of 128 rows for a launch. The kernel has the same struct.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct MatchFrame {
    pub(super) counts_at: u32,
    pub(super) counts_form: u32,
    pub(super) lengths_at: u32,
    pub(super) lengths_form: u32,
    pub(super) starts: [u32; 8],
}

const _: () = assert!(size_of::<MatchBlock>() == 40 && size_of::<MatchFrame>() == 48);

// SAFETY: integers in C layout without padding or pointers.
unsafe impl DeviceRepr for MatchBlock {}
// SAFETY: all-zero integers are valid.
unsafe impl ValidAsZeroBits for MatchBlock {}
// SAFETY: integers in C layout without padding or pointers.
unsafe impl DeviceRepr for MatchFrame {}
// SAFETY: all-zero integers are valid.
unsafe impl ValidAsZeroBits for MatchFrame {}

/// Blocks on a device, with random access to their rows.
#[derive(Debug)]
pub struct DeviceRows {
    pub(super) bytes: DeviceBuffer<u8>,
    pub(super) frames: DeviceBuffer<MatchFrame>,
    lists: Vec<BlockList>,
    sample: FourGrams,
    pub(super) num_frames: usize,
    pub(super) num_units: usize,
    num_rows: usize,
    stored_len_bytes: u64,
    text_len_bytes: u64,
}

/// The blocks of one width.
#[derive(Debug)]
pub(super) struct BlockList {
    pub(super) units: ListUnits,
    pub(super) tables: DeviceBuffer<u64>,
    pub(super) blocks: DeviceBuffer<MatchBlock>,
}

impl DeviceRows {
    pub(super) fn upload<B: AsRef<[u8]>>(device: &Device, blocks: &[Block<B>]) -> Result<Self, GpuError> {
        let mut plan = Plan::default();
        for block in blocks {
            plan.add(block)?;
        }
        let mut bytes = device.alloc("GSST blocks", plan.len_bytes + SLACK_BYTES)?;
        let copying = GpuError::driver("copying GSST blocks");
        for (block, at) in blocks.iter().zip(&plan.places) {
            let stored = block.as_bytes();
            let mut target = bytes.slice_mut(*at..*at + stored.len());
            device.stream().memcpy_htod(stored, &mut target).map_err(&copying)?;
        }
        for (at, lengths) in &plan.lengths {
            let mut target = bytes.slice_mut(*at..*at + lengths.len());
            device.stream().memcpy_htod(lengths, &mut target).map_err(&copying)?;
        }
        let lists = plan.lists.into_iter().filter(|list| !list.blocks.is_empty());
        Ok(Self {
            bytes,
            frames: device.copy_for("places of rows", &plan.frames)?,
            lists: lists.map(|list| list.upload(device)).collect::<Result<_, _>>()?,
            sample: FourGrams::from_blocks(&blocks.iter().map(SealedBlock::from_valid).collect::<Vec<_>>()),
            num_frames: plan.frames.len(),
            num_units: plan.num_units,
            num_rows: plan.num_rows,
            stored_len_bytes: blocks.iter().map(|block| block.as_bytes().len() as u64).sum(),
            text_len_bytes: blocks.iter().map(|block| block.text_len_bytes() as u64).sum(),
        })
    }

    /// Returns the number of rows, including nulls.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Returns the stored length of the blocks, in bytes.
    pub fn stored_len_bytes(&self) -> u64 {
        self.stored_len_bytes
    }

    /// Returns the length of their text, in bytes.
    pub fn text_len_bytes(&self) -> u64 {
        self.text_len_bytes
    }

    /// Returns the device memory used in addition to the blocks' bytes: symbols and places of rows.
    pub fn overhead_len_bytes(&self) -> u64 {
        let lists = self.lists.iter().map(|list| list.tables.num_bytes() + list.blocks.num_bytes());
        (lists.sum::<usize>() + self.frames.num_bytes()) as u64 + self.bytes.num_bytes() as u64 - self.stored_len_bytes
    }

    pub(super) fn ordinal(&self) -> usize {
        self.bytes.ordinal()
    }

    pub(super) fn sample(&self) -> &FourGrams {
        &self.sample
    }

    pub(super) fn lists(&self) -> &[BlockList] {
        &self.lists
    }
}

/// The input for the device, on the host.
#[derive(Debug)]
struct Plan {
    lists: [ListPlan; 2],
    frames: Vec<MatchFrame>,
    /// Place of each block.
    places: Vec<usize>,
    /// Packed lengths of texts for blocks that lack them, with their places.
    lengths: Vec<(usize, Vec<u8>)>,
    len_bytes: usize,
    num_units: usize,
    num_rows: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            lists: [CodeWidth::Eight, CodeWidth::Twelve].map(ListPlan::new),
            frames: Vec::new(),
            places: Vec::new(),
            lengths: Vec::new(),
            len_bytes: 0,
            num_units: 0,
            num_rows: 0,
        }
    }
}

/// The blocks of one width, on the host.
#[derive(Debug)]
struct ListPlan {
    units: ListUnits,
    tables: Vec<u64>,
    blocks: Vec<MatchBlock>,
}

impl ListPlan {
    fn new(width: CodeWidth) -> Self {
        Self { units: ListUnits::new(width), tables: Vec::new(), blocks: Vec::new() }
    }

    fn upload(self, device: &Device) -> Result<BlockList, GpuError> {
        Ok(BlockList {
            units: self.units,
            tables: device.copy_for("symbol tables", &self.tables)?,
            blocks: device.copy_for("places of blocks", &self.blocks)?,
        })
    }
}

impl Plan {
    fn add<B: AsRef<[u8]>>(&mut self, block: &Block<B>) -> Result<(), GpuError> {
        let at = self.len_bytes;
        self.places.push(at);
        self.len_bytes += block.as_bytes().len();
        if block.num_rows() == 0 {
            return Ok(());
        }
        let first_row = self.num_rows as u32;
        self.num_rows += block.num_rows();
        if self.num_rows > u32::MAX as usize {
            let got = self.num_rows as u64;
            let expected = u64::from(u32::MAX);
            return Err(GpuError::Mismatch { what: "rows of a selection", got, expected });
        }
        let first_frame = self.frames.len() as u32;
        let sections = PackedSections::from_block(block);
        self.add_frames(block, &sections);
        if block.text_ends().is_none() {
            self.add_lengths(block, at, first_frame as usize);
        }
        let num_frames = block.num_rows().div_ceil(FRAME_ROWS);
        let unit_frames = unit_frames(block.num_codes(), num_frames);
        let num_units = num_frames.div_ceil(unit_frames);
        let list = &mut self.lists[usize::from(block.width() == CodeWidth::Twelve)];
        let first_unit = list.units.num_units();
        let table = list.blocks.len() as u32;
        list.blocks.push(MatchBlock {
            at: at as u64,
            num_rows: block.num_rows() as u32,
            first_row,
            first_frame,
            first_unit,
            first_slot: self.num_units as u32,
            unit_frames: unit_frames as u32,
            validity_at: if block.num_nulls() > 0 { sections.validity_at as u32 } else { 0 },
            table,
        });
        list.units.push(num_units as u32);
        list.tables.extend(block.table().packed());
        self.num_units += num_units;
        Ok(())
    }

    /// Adds the frames of a block, and one more that stores the end of its codes.
    fn add_frames<B: AsRef<[u8]>>(&mut self, block: &Block<B>, sections: &PackedSections) {
        let bytes = block.as_bytes();
        let has_lengths = block.text_ends().is_some();
        let mut counts_at = sections.counts_at;
        let mut lengths_at = sections.lengths_at;
        for first in (0..block.num_rows()).step_by(FRAME_ROWS) {
            let num_rows = FRAME_ROWS.min(block.num_rows() - first);
            let counts = read_frame(bytes, &mut counts_at, num_rows);
            let lengths = if has_lengths { read_frame(bytes, &mut lengths_at, num_rows) } else { (0, 0) };
            // Groups after the last row start at the end of all codes.
            let start_of = |group: usize| block.code_ends()[(first + 16 * group).min(block.num_rows())];
            self.frames.push(MatchFrame {
                counts_at: counts.0,
                counts_form: counts.1,
                lengths_at: lengths.0,
                lengths_form: lengths.1,
                starts: std::array::from_fn(start_of),
            });
        }
        let end = MatchFrame { starts: [block.num_codes() as u32; 8], ..MatchFrame::default() };
        self.frames.push(end);
    }

    /// Packs the lengths of texts of a block that lacks them, with 24 bits each.
    fn add_lengths<B: AsRef<[u8]>>(&mut self, block: &Block<B>, at: usize, first_frame: usize) {
        let offsets = block.decode_all().offsets;
        let length = |pair: &[u32]| (pair[1] - pair[0]).to_le_bytes();
        let mut packed: Vec<u8> = Vec::with_capacity(3 * block.num_rows());
        offsets.windows(2).for_each(|pair| packed.extend_from_slice(&length(pair)[..3]));
        let lengths_at = self.len_bytes - at;
        let num_frames = self.frames.len() - 1 - first_frame;
        for (i, frame) in self.frames[first_frame..].iter_mut().take(num_frames).enumerate() {
            frame.lengths_at = (lengths_at + 3 * FRAME_ROWS * i) as u32;
            frame.lengths_form = 24 << FORM_WIDTH_BIT;
        }
        let place = self.len_bytes;
        self.len_bytes += packed.len().next_multiple_of(ALIGNMENT_BYTES);
        self.lengths.push((place, packed));
    }
}

/// Starts of the packed sections of a block, as in the figure of `gsst::layout`.
struct PackedSections {
    counts_at: usize,
    lengths_at: usize,
    validity_at: usize,
}

impl PackedSections {
    fn from_block<B: AsRef<[u8]>>(block: &Block<B>) -> Self {
        let header = block.as_bytes();
        let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let codes_end = HEADER_BYTES + block.width().stored_bytes(block.num_codes());
        let table_at = codes_end.next_multiple_of(ALIGNMENT_BYTES) + 4 * block.splits().len();
        let counts_at = table_at + number(32) as usize;
        let lengths_at = counts_at + number(36) as usize;
        Self { counts_at, lengths_at, validity_at: lengths_at + number(40) as usize }
    }
}

/// Reads the head of the frame at `at`, whose bytes must exist. Returns the place and the form of
/// its differences, and advances `at` past the frame.
fn read_frame(block: &[u8], at: &mut usize, num_rows: usize) -> (u32, u32) {
    let width = u32::from(block[*at]);
    let mut smallest = 0;
    let mut shift = 0;
    loop {
        *at += 1;
        smallest |= u32::from(block[*at] & 0x7f) << shift;
        shift += 7;
        if block[*at] < 0x80 {
            break;
        }
    }
    let differences_at = *at + 1;
    *at = differences_at + (num_rows * width as usize).div_ceil(8);
    (differences_at as u32, smallest | width << FORM_WIDTH_BIT)
}
