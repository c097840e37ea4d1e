//! The kernels of `kernels/gsst_match.cu` and how they are launched.

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaFunction, LaunchConfig, PushKernelArg};

use crate::gsst::CodeWidth;

use super::super::device::Device;
use super::super::error::GpuError;
use super::super::module::{GSST_MATCH, Module, max_grid, unsupported};
use super::KERNEL;
use super::predicate::RowPredicate;
use super::rows::{BlockGroup, BlockList, DeviceRows, MatchBlock, MatchFrame};
use super::selection::{DeviceSelection, Scratch};

const TABLE_THREADS: u32 = 256;
pub(super) const MASK_WARPS: u32 = 16;
pub(super) const WRITE_WARPS: u32 = 8;
pub(super) const SCAN_THREADS: u32 = 1024;
/// Units that one thread block of the scan takes.
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

/// A kernel whose thread blocks share units, and take shared memory.
#[derive(Debug, Clone)]
struct GridKernel {
    function: CudaFunction,
    threads: u32,
    shared_bytes: u32,
    /// Thread blocks that run at the same time.
    max_grid: u32,
}

/// Sizes of the predicate's parts on the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct MaskInputs {
    num_states: u32,
    first_final: u32,
    literal_len_bytes: u32,
    anchor: u32,
}

impl MaskInputs {
    pub(super) fn new(predicate: &RowPredicate, rows: &DeviceRows) -> Self {
        Self {
            num_states: predicate.num_states() as u32,
            first_final: predicate.first_final() as u32,
            literal_len_bytes: predicate.literal().len() as u32,
            anchor: rows.sample().anchor(predicate.literal()) as u32,
        }
    }

    fn flags_at(&self) -> usize {
        256 * self.num_states as usize
    }

    fn literal_at(&self) -> usize {
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
        let grid = |name, warps, shared_bytes| {
            GridKernel::new(device, module.kernel(name)?, 32 * warps, shared_bytes)
        };
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

    fn of(&self, width: CodeWidth) -> &WidthKernels {
        if width == CodeWidth::Eight { &self.eight } else { &self.twelve }
    }

    /// Makes the tables of a group of blocks.
    pub(super) fn make_tables(
        &self,
        device: &Device,
        list: &BlockList,
        group: &BlockGroup,
        inputs: &MaskInputs,
        scratch: &mut Scratch,
    ) -> Result<(), GpuError> {
        let num_codes = 1 << list.width().bits();
        let config = LaunchConfig {
            grid_dim: (num_codes / TABLE_THREADS, inputs.num_states, group.num_blocks as u32),
            block_dim: (TABLE_THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        let first_word = group.first_block * num_codes as usize;
        let tables = list.tables.slice(first_word..);
        let literal = scratch.predicate.slice(inputs.literal_at()..);
        let mut arguments = device.stream().launch_builder(&self.of(list.width()).tables);
        arguments.arg(&tables).arg(&scratch.predicate).arg(&inputs.num_states);
        arguments
            .arg(&inputs.first_final)
            .arg(&literal)
            .arg(&inputs.literal_len_bytes)
            .arg(&inputs.anchor);
        arguments.arg(&mut scratch.next).arg(&mut scratch.filters);
        // `tables` holds the symbols of the group's blocks and more; `prepare` made `next` and
        // `filters` long enough for the largest group, and copied a predicate of these sizes.
        // SAFETY: the arguments are those of the kernel in number, order and type, and hold the above.
        let launched = unsafe { arguments.launch(config) };
        launched.map(drop).map_err(device.fault("launching gsst_match_tables"))
    }

    /// Writes mask and sums of a group of blocks.
    pub(super) fn mask(
        &self,
        device: &Device,
        rows: &DeviceRows,
        list: &BlockList,
        group: &BlockGroup,
        inputs: &MaskInputs,
        scratch: &mut Scratch,
    ) -> Result<(), GpuError> {
        let kernel = &self.of(list.width()).mask;
        let blocks = list.blocks.slice(group.first_block..);
        let num_blocks = group.num_blocks as u32;
        let flags = scratch.predicate.slice(inputs.flags_at()..);
        let has_filter = u32::from(inputs.literal_len_bytes > 0);
        let mut arguments = device.stream().launch_builder(&kernel.function);
        arguments.arg(&rows.bytes).arg(&blocks).arg(&num_blocks).arg(&rows.frames);
        arguments.arg(&scratch.filters).arg(&scratch.next).arg(&scratch.predicate).arg(&flags);
        arguments.arg(&inputs.num_states).arg(&inputs.first_final).arg(&has_filter);
        arguments.arg(&group.first_unit).arg(&group.end_unit);
        arguments.arg(&mut scratch.mask).arg(&mut scratch.sums);
        let config = kernel.config(group.end_unit - group.first_unit);
        // `rows` was made from validated blocks, with the slack kernels may read; the tables are those
        // of this group, made before on the same stream; mask and sums have place for all frames and
        // units of `rows`; there is at least one unit, since blocks without rows are not in the list.
        // SAFETY: the arguments are those of the kernel in number, order and type, and hold the above.
        let launched = unsafe { arguments.launch(config) };
        launched.map(drop).map_err(device.fault("launching gsst_match_mask"))
    }

    /// Sums up the units before each.
    pub(super) fn scan(
        &self,
        device: &Device,
        rows: &DeviceRows,
        scratch: &mut Scratch,
    ) -> Result<(), GpuError> {
        let num_units = rows.num_units as u32;
        let config = LaunchConfig {
            grid_dim: (num_units.div_ceil(SCAN_THREADS), 1, 1),
            block_dim: (SCAN_THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        let scanning = device.fault("launching gsst_match_scan");
        let mut arguments = device.stream().launch_builder(&self.sum);
        arguments.arg(&scratch.sums).arg(&num_units).arg(&mut scratch.tile_sums);
        // SAFETY: the arguments are those of the kernel in number, order and type; `sums` has
        // `num_units` values and `tile_sums` two for every thread block (`prepare`).
        unsafe { arguments.launch(config) }.map_err(&scanning)?;
        let mut arguments = device.stream().launch_builder(&self.scan);
        arguments.arg(&scratch.sums).arg(&num_units).arg(&scratch.tile_sums);
        arguments.arg(&mut scratch.rows_before).arg(&mut scratch.text_before);
        arguments.arg(&mut scratch.totals);
        // SAFETY: as above; two more buffers have `num_units` values, `totals` has two, and there is a
        // unit, so that they are written.
        unsafe { arguments.launch(config) }.map_err(&scanning)?;
        Ok(())
    }

    /// Writes the rows that match, where `selection` has place for all of them.
    pub(super) fn write(
        &self,
        device: &Device,
        rows: &DeviceRows,
        selection: &mut DeviceSelection,
    ) -> Result<(), GpuError> {
        let max_rows = selection.max_rows() as u64;
        let max_text = (selection.text.len() as u64).min(u64::from(u32::MAX));
        for list in rows.lists() {
            let kernel = &self.of(list.width()).write;
            let (num_blocks, num_units) = (list.num_blocks() as u32, list.num_units());
            let DeviceSelection { rows: numbers, offsets, text, scratch, .. } = selection;
            let mut arguments = device.stream().launch_builder(&kernel.function);
            arguments.arg(&rows.bytes).arg(&list.blocks).arg(&num_blocks).arg(&rows.frames);
            arguments.arg(&list.tables).arg(&num_units).arg(&scratch.mask);
            arguments.arg(&scratch.rows_before).arg(&scratch.text_before).arg(&scratch.totals);
            arguments.arg(&max_rows).arg(&max_text);
            arguments.arg(numbers).arg(offsets).arg(text);
            // Mask, sums and totals were written for these rows before, on the same stream; the kernel
            // compares the totals with the capacities, which are those of the buffers.
            // SAFETY: the arguments are those of the kernel in number, order and type, and hold the
            // above.
            let launched = unsafe { arguments.launch(kernel.config(num_units)) };
            launched.map_err(device.fault("launching gsst_match_write"))?;
        }
        Ok(())
    }
}

impl GridKernel {
    fn new(
        device: &Device,
        function: CudaFunction,
        threads: u32,
        shared_bytes: u32,
    ) -> Result<Self, GpuError> {
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

/// Sizes that the kernels know: shared memory of mask (8, 12 bits) and write, and of the structs.
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
