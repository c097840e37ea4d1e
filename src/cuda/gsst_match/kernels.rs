//! The kernels of `kernels/gsst_match.cu` and their launches.

use std::sync::Arc;

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg};

use gsst::CodeWidth;

use super::KERNEL;
use super::predicate::{BlockGroup, FourGrams, ListUnits, RowPredicate, tables_len_bytes};
use super::rows::{MatchBlock, MatchFrame};
use crate::device::Device;
use crate::error::GpuError;
use crate::module::{GSST_MATCH, Module, max_grid, unsupported};

const TABLE_THREADS: u32 = 256;
pub(super) const MASK_WARPS: u32 = 16;
pub(super) const WRITE_WARPS: u32 = 8;
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
    write: GridKernel,
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
        let sizes = sizes(device, &module)?;
        if sizes[4..] != [size_of::<MatchBlock>() as u32, size_of::<MatchFrame>() as u32] {
            return Err(unsupported(device, KERNEL, format!("its structs have {sizes:?} bytes")));
        }
        let grid = |name, warps, shared_bytes| GridKernel::new(device, module.kernel(name)?, 32 * warps, shared_bytes);
        Ok(Self {
            eight: WidthKernels {
                tables: module.kernel("gsst_match_tables_8bit")?,
                mask: grid("gsst_match_mask_8bit", MASK_WARPS, sizes[0])?,
                write: grid("gsst_match_write_8bit", WRITE_WARPS, sizes[2])?,
            },
            twelve: WidthKernels {
                tables: module.kernel("gsst_match_tables_12bit")?,
                mask: grid("gsst_match_mask_12bit", MASK_WARPS, sizes[1])?,
                write: grid("gsst_match_write_12bit", WRITE_WARPS, sizes[3])?,
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
    /// bytes with [`SLACK_BYTES`](super::rows::SLACK_BYTES) after them, blocks, tables and frames.
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
        launch.arg(&list.tables).arg(&blocks).arg(&inputs.at).arg(&inputs.num_states);
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
        let has_mask = u32::from(inputs.has_mask);
        let mut launch = at.stream.launch_builder(&kernel.function);
        launch.arg(&at.bytes).arg(&blocks).arg(&num_blocks).arg(&at.frames);
        launch.arg(&at.filters).arg(&at.next).arg(&literals).arg(&flags);
        launch.arg(&inputs.num_states).arg(&inputs.first_final).arg(&has_filter).arg(&has_mask);
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
        let kernel = &self.for_width(list.units.width()).write;
        let num_blocks = list.units.num_blocks() as u32;
        let num_units = list.units.num_units();
        let mut launch = at.stream.launch_builder(&kernel.function);
        launch.arg(&at.bytes).arg(&list.blocks).arg(&num_blocks).arg(&at.frames);
        launch.arg(&list.tables).arg(&num_units).arg(&at.mask);
        launch.arg(&at.rows_before).arg(&at.text_before).arg(&at.totals);
        launch.arg(&output.max_rows).arg(&output.max_text);
        launch.arg(&output.rows).arg(&output.offsets).arg(&output.text).arg(&at.error);
        // SAFETY: the arguments match the kernel in number, order and type; the caller guarantees
        // what they point to.
        let launched = unsafe { launch.launch(kernel.config(num_units)) };
        launched.map(drop).map_err(device.fault("launching gsst_match_write"))
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

/// Reads the sizes that the kernels know: shared memory of mask (8, 12 bits) and write (8, 12
/// bits), and the sizes of the structs.
fn sizes(device: &Device, module: &Module) -> Result<[u32; 6], GpuError> {
    let asking = GpuError::driver("asking for sizes of a kernel");
    let kernel = module.kernel("gsst_match_sizes")?;
    let mut sizes = device.alloc::<u32>(KERNEL, 6)?;
    let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
    let mut arguments = device.stream().launch_builder(&kernel);
    arguments.arg(&mut sizes);
    // SAFETY: one thread writes six u32 to an allocation of six.
    unsafe { arguments.launch(one) }.map_err(&asking)?;
    let mut answer = [0; 6];
    device.stream().memcpy_dtoh(&sizes, &mut answer).map_err(&asking)?;
    device.synchronize()?;
    Ok(answer)
}
