//! Decoding of GSST blocks on a device: the wrapper of `kernels/gsst_decode_{8,12}bit.cu`.
//!
//! ```text
//! host     Block, Block, …             bytes of all blocks, as stored
//!            │ upload                  ┌────────┬────────┬───┬───────┐
//! device     ▼                         │ block  │ block  │ … │ slack │
//!          DeviceBlocks ───────────────┴────────┴────────┴───┴───────┘
//!            │ decode_into: one launch for the blocks of 8 bits, one for those of 12
//!            ▼
//!          DeviceText                  text of all blocks, in order, without gaps
//! ```
//!
//! The kernel trusts its input, so it only gets [`Block`]s, which were validated when they were opened. In addition to
//! its bytes, a block takes device memory for its symbols, 2 KiB (8 bits) or 32 KiB (12 bits), and 32 bytes. Tests of
//! this file compare the constants that the kernel shares with it.

#![allow(unsafe_code, reason = "launching kernels, the layout of their arguments, and fills that have no safe form")]

use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{
    CudaFunction, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, LaunchConfig, PushKernelArg, ValidAsZeroBits, result,
};
use gsst::layout::{ALIGNMENT_BYTES, HEADER_BYTES};
use gsst::{Block, CodeWidth};

use crate::device::{Device, GSST_DECODE_8BIT, GSST_DECODE_12BIT, Module, max_grid, unsupported};
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

const KERNEL: &str = "gsst_decode";
const TABLE_AT: u32 = 1024;
const SHARED_WORDS_BYTES: u32 = 32;
const STAGE_BYTES: u32 = 4128;
const ROWS_BYTES: u32 = 752;
const MAX_WARPS: u32 = 10;
/// Bytes after the last block that the kernel may read: more than a tile of 12-bit codes.
pub(super) const SLACK_BYTES: usize = 1024;
/// Error word of a run without a fault.
pub(super) const NO_ERROR: u64 = u64::MAX;

/// Description of a block for a launch. The kernel has the same struct.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct GsstBlock {
    pub(super) codes_at: u64,
    pub(super) text_at: u64,
    pub(super) splits_at: u32,
    pub(super) num_codes: u32,
    pub(super) first_split: u32,
    pub(super) split_log2: u32,
}

const _: () = assert!(size_of::<GsstBlock>() == 32);

// SAFETY: six integers in C layout without padding or pointers.
unsafe impl DeviceRepr for GsstBlock {}
// SAFETY: all-zero integers are valid.
unsafe impl ValidAsZeroBits for GsstBlock {}

/// A decoder of GSST blocks on a device. The first blocks of a width load its kernel. The driver
/// compiles it once per machine (0.1 to 0.2 s) and keeps the result on disk.
///
/// ```no_run
/// use tadoc_cuda::{Device, GsstDecoder};
/// use gsst::{Block, BlockOptions, write_block};
///
/// let rows = [Some(&b"http://a.example"[..]), None, Some(b"http://b.example")];
/// let block = Block::open(write_block(&rows, &BlockOptions::default())?)?;
/// let decoder = GsstDecoder::new(&Device::open(0)?);
/// assert_eq!(decoder.decode(&[block])?, b"http://a.examplehttp://b.example");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct GsstDecoder {
    device: Device,
    kernels: Arc<[OnceLock<Kernel>; 2]>,
}

/// The kernels of one code width.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    text: Entry,
    with_views: Entry,
}

/// An entry point with its launch configuration on a device.
#[derive(Debug, Clone)]
struct Entry {
    function: CudaFunction,
    threads: u32,
    shared_bytes: u32,
    /// Number of thread blocks that run at the same time.
    max_grid: u32,
}

/// Device addresses of the input and output of a launch, with their sizes.
#[derive(Debug, Clone, Copy)]
pub(super) struct DecodeArguments {
    pub(super) bytes: u64,
    pub(super) tables: u64,
    pub(super) blocks: u64,
    pub(super) num_blocks: u32,
    pub(super) num_splits: u32,
    pub(super) text: u64,
    pub(super) error: u64,
}

/// Device addresses for views that are made together with the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct ViewArguments {
    pub(super) run_blocks: u64,
    pub(super) block_idxs: u64,
    pub(super) frames: u64,
    pub(super) split_rows: u64,
    pub(super) views: u64,
}

/// Blocks in device memory.
#[derive(Debug)]
pub struct DeviceBlocks {
    bytes: DeviceBuffer<u8>,
    /// Error word; [`NO_ERROR`], because the blocks were validated on the host.
    error: DeviceBuffer<u64>,
    eight: Option<Launch>,
    twelve: Option<Launch>,
    stored_len_bytes: u64,
    text_len_bytes: u64,
}

/// The blocks of one code width.
#[derive(Debug)]
struct Launch {
    tables: DeviceBuffer<u64>,
    blocks: DeviceBuffer<GsstBlock>,
    num_blocks: u32,
    num_splits: u32,
}

impl GsstDecoder {
    /// Builds a decoder for `device`. Loads nothing yet.
    pub fn new(device: &Device) -> Self {
        Self { device: device.clone(), kernels: Arc::default() }
    }

    /// Loads the kernel of a width, unless it is loaded already. [`GsstDecoder::upload`] does this
    /// too.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the device is too old or has too little shared memory;
    /// [`GpuError::Driver`].
    pub fn load(&self, width: CodeWidth) -> Result<(), GpuError> {
        self.kernel(width).map(|_| ())
    }

    pub(super) fn kernel(&self, width: CodeWidth) -> Result<&Kernel, GpuError> {
        let [eight, twelve] = &*self.kernels;
        let slot = if width == CodeWidth::Eight { eight } else { twelve };
        if let Some(kernel) = slot.get() {
            return Ok(kernel);
        }
        let kernel = Kernel::new(&self.device, width)?;
        Ok(slot.get_or_init(|| kernel))
    }

    /// Copies blocks to the device.
    ///
    /// # Errors
    ///
    /// The errors of [`GsstDecoder::load`]; [`GpuError::OutOfMemory`]; [`GpuError::Mismatch`] if
    /// the blocks have more than 2^32 splits.
    pub fn upload<B: AsRef<[u8]>>(&self, blocks: &[Block<B>]) -> Result<DeviceBlocks, GpuError> {
        const WHAT: &str = "GSST blocks";
        let stored_len: usize = blocks.iter().map(|block| block.as_bytes().len()).sum();
        let mut bytes = self.device.alloc(WHAT, stored_len + SLACK_BYTES)?;
        let mut eight = Plan::default();
        let mut twelve = Plan::default();
        let mut at = 0;
        let mut text_at = 0;
        for block in blocks {
            let stored = block.as_bytes();
            let mut target = bytes.slice_mut(at..at + stored.len());
            let copied = self.device.stream().memcpy_htod(stored, &mut target);
            copied.map_err(GpuError::driver("copying GSST blocks"))?;
            self.load(block.width())?;
            match block.width() {
                CodeWidth::Eight => eight.add(block, at as u64, text_at)?,
                CodeWidth::Twelve => twelve.add(block, at as u64, text_at)?,
            }
            at += stored.len();
            text_at += block.text_len_bytes() as u64;
        }
        Ok(DeviceBlocks {
            bytes,
            error: self.device.copy_for("error word", &[NO_ERROR])?,
            eight: eight.upload(&self.device)?,
            twelve: twelve.upload(&self.device)?,
            stored_len_bytes: stored_len as u64,
            text_len_bytes: text_at,
        })
    }

    /// Allocates device memory for the text of `blocks`, all 0.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn text_for(&self, blocks: &DeviceBlocks) -> Result<DeviceText, GpuError> {
        let len_bytes = blocks.text_len_bytes as usize;
        DeviceText::new(&self.device, len_bytes)
    }

    /// Decodes `blocks` into `text`. Returns once the work is enqueued, before it is done. Reading
    /// the text waits for it.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if `text` has another length or lies on another device;
    /// [`GpuError::Driver`].
    pub fn decode_into(&self, blocks: &DeviceBlocks, text: &mut DeviceText) -> Result<(), GpuError> {
        let ordinals = [blocks.bytes.ordinal(), text.bytes_mut().ordinal()];
        let expected = self.device.context().ordinal();
        if let Some(got) = ordinals.into_iter().find(|ordinal| *ordinal != expected) {
            let got = got as u64;
            let expected = expected as u64;
            return Err(GpuError::Mismatch { what: "device of a buffer", got, expected });
        }
        if text.len_bytes() as u64 != blocks.text_len_bytes {
            let got = text.len_bytes() as u64;
            let expected = blocks.text_len_bytes;
            return Err(GpuError::Mismatch { what: "length of the output", got, expected });
        }
        let launches = [(CodeWidth::Eight, &blocks.eight), (CodeWidth::Twelve, &blocks.twelve)];
        for (width, launch) in launches {
            if let Some(launch) = launch {
                let stream = self.device.stream();
                let (bytes, _bytes_used) = blocks.bytes.device_ptr(stream);
                let (error, _error_used) = blocks.error.device_ptr(stream);
                let (tables, _tables_used) = launch.tables.device_ptr(stream);
                let (places, _places_used) = launch.blocks.device_ptr(stream);
                let (text, _text_used) = text.bytes_mut().device_ptr_mut(stream);
                let arguments = DecodeArguments {
                    bytes,
                    tables,
                    blocks: places,
                    num_blocks: launch.num_blocks,
                    num_splits: launch.num_splits,
                    text,
                    error,
                };
                let kernel = self.kernel(width)?;
                // SAFETY: `blocks` holds validated blocks and the slack that the kernel may read,
                // and `launch` was made from them. `text` has the sum of their text lengths
                // (checked above) and is borrowed mutably until the launch is enqueued.
                unsafe { kernel.launch(&self.device, stream, arguments, None) }?;
            }
        }
        Ok(())
    }

    /// Returns the text of all blocks: uploads, decodes and copies back.
    ///
    /// # Errors
    ///
    /// The errors of [`GsstDecoder::upload`], [`GsstDecoder::text_for`] and
    /// [`GsstDecoder::decode_into`].
    pub fn decode<B: AsRef<[u8]>>(&self, blocks: &[Block<B>]) -> Result<Vec<u8>, GpuError> {
        let blocks = self.upload(blocks)?;
        let mut text = self.text_for(&blocks)?;
        self.decode_into(&blocks, &mut text)?;
        text.to_host()
    }
}

impl DeviceBlocks {
    /// Returns the stored length of the blocks, in bytes.
    pub fn stored_len_bytes(&self) -> u64 {
        self.stored_len_bytes
    }

    /// Returns the length of their text, in bytes.
    pub fn text_len_bytes(&self) -> u64 {
        self.text_len_bytes
    }
}

/// The input of a launch, on the host.
#[derive(Debug, Default)]
struct Plan {
    tables: Vec<u64>,
    blocks: Vec<GsstBlock>,
    num_splits: u64,
}

impl Plan {
    /// Adds a block whose bytes start at `at` and whose text goes to `text_at`.
    fn add<B: AsRef<[u8]>>(&mut self, block: &Block<B>, at: u64, text_at: u64) -> Result<(), GpuError> {
        if block.num_codes() == 0 {
            return Ok(());
        }
        let codes_len = block.width().stored_bytes(block.num_codes());
        self.blocks.push(GsstBlock {
            codes_at: at + HEADER_BYTES as u64,
            text_at,
            splits_at: codes_len.next_multiple_of(ALIGNMENT_BYTES) as u32,
            num_codes: block.num_codes() as u32,
            first_split: self.num_splits as u32,
            split_log2: block.split_codes().ilog2(),
        });
        self.tables.extend(block.table().packed());
        self.num_splits += block.splits().len() as u64;
        let expected = u64::from(u32::MAX);
        if self.num_splits > expected {
            let got = self.num_splits;
            return Err(GpuError::Mismatch { what: "splits of a launch", got, expected });
        }
        Ok(())
    }

    fn upload(self, device: &Device) -> Result<Option<Launch>, GpuError> {
        if self.blocks.is_empty() {
            return Ok(None);
        }
        Ok(Some(Launch {
            tables: device.copy_for("symbol tables", &self.tables)?,
            blocks: device.copy_for("places of blocks", &self.blocks)?,
            num_blocks: self.blocks.len() as u32,
            num_splits: self.num_splits as u32,
        }))
    }
}

impl Kernel {
    fn new(device: &Device, width: CodeWidth) -> Result<Self, GpuError> {
        let (source, name, name_with_views, table_bytes) = match width {
            CodeWidth::Eight => (GSST_DECODE_8BIT, "gsst_decode_8bit", "gsst_decode_8bit_views", 64 << 10),
            CodeWidth::Twelve => (GSST_DECODE_12BIT, "gsst_decode_12bit", "gsst_decode_12bit_views", 32 << 10),
        };
        let module = Module::load(device, source)?;
        let base = shared_base(device, &module)?;
        let fixed_bytes = TABLE_AT - base + table_bytes + SHARED_WORDS_BYTES;
        let entry = |name, warp_bytes| Entry::new(device, &module, name, fixed_bytes, warp_bytes);
        let text = entry(name, STAGE_BYTES)?;
        Ok(Self { text, with_views: entry(name_with_views, STAGE_BYTES + ROWS_BYTES)? })
    }

    /// Enqueues the decoding of `arguments` on `stream`. With `views`, also makes the views of the
    /// rows.
    ///
    /// # Safety
    ///
    /// All addresses lie on `device` and live until the work is done. They point to:
    ///
    /// - the blocks, with [`SLACK_BYTES`] after them;
    /// - as many tables and places as `num_blocks` says;
    /// - the text, with room for the text of the blocks, aligned to 16, without another writer;
    /// - the error word.
    ///
    /// The blocks were validated, or the error word is not [`NO_ERROR`] when the kernel runs.
    /// `num_splits` is their number of splits, and not 0. Views need the output of
    /// `gsst_rows_splits` for each split.
    pub(super) unsafe fn launch(
        &self,
        device: &Device,
        stream: &Arc<CudaStream>,
        arguments: DecodeArguments,
        views: Option<ViewArguments>,
    ) -> Result<(), GpuError> {
        let entry = if views.is_some() { &self.with_views } else { &self.text };
        let config = LaunchConfig {
            grid_dim: (entry.max_grid.min(arguments.num_splits), 1, 1),
            block_dim: (entry.threads, 1, 1),
            shared_mem_bytes: entry.shared_bytes,
        };
        let DecodeArguments { bytes, tables, blocks, num_blocks, num_splits, text, error } = arguments;
        let mut launch = stream.launch_builder(&entry.function);
        launch.arg(&bytes).arg(&tables).arg(&blocks);
        launch.arg(&num_blocks).arg(&num_splits).arg(&text).arg(&error);
        if let Some(views) = &views {
            launch.arg(&views.run_blocks).arg(&views.block_idxs).arg(&views.frames);
            launch.arg(&views.split_rows).arg(&views.views);
        }
        // SAFETY: the arguments match the kernel in number, order and type; the caller guarantees
        // the rest.
        let launched = unsafe { launch.launch(config) };
        launched.map(drop).map_err(device.fault("launching gsst_decode"))
    }
}

impl Entry {
    /// Loads the entry point `name`. Each warp gets `warp_bytes` of shared memory in addition to
    /// the table.
    fn new(
        device: &Device,
        module: &Module,
        name: &'static str,
        fixed_bytes: u32,
        warp_bytes: u32,
    ) -> Result<Self, GpuError> {
        let function = module.kernel(name)?;
        let max_shared = Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        let available_bytes = device.attribute(max_shared)?;
        let num_warps = (available_bytes.saturating_sub(fixed_bytes) / warp_bytes).min(MAX_WARPS);
        if num_warps == 0 {
            let reason = format!("it has {available_bytes} bytes of shared memory per block");
            return Err(unsupported(device, KERNEL, reason));
        }
        let threads = 32 * num_warps;
        let shared_bytes = fixed_bytes + num_warps * warp_bytes;
        let max_grid = max_grid(device, &function, KERNEL, threads, shared_bytes)?;
        Ok(Self { function, threads, shared_bytes, max_grid })
    }
}

/// Returns the start of dynamic shared memory, at most [`TABLE_AT`].
fn shared_base(device: &Device, module: &Module) -> Result<u32, GpuError> {
    let asking = GpuError::driver("asking where shared memory starts");
    let kernel = module.kernel("gsst_decode_base")?;
    let mut base = device.alloc::<u32>(KERNEL, 1)?;
    let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 16 };
    let mut arguments = device.stream().launch_builder(&kernel);
    arguments.arg(&mut base);
    // SAFETY: one thread writes one u32 to an allocation of one u32.
    unsafe { arguments.launch(one) }.map_err(&asking)?;
    let mut answer = [0];
    device.stream().memcpy_dtoh(&base, &mut answer).map_err(&asking)?;
    device.synchronize()?;
    match answer {
        [base] if base <= TABLE_AT => Ok(base),
        [base] => Err(unsupported(device, KERNEL, format!("its shared memory starts at {base}"))),
    }
}

/// A text in device memory.
#[derive(Debug)]
pub struct DeviceText {
    device: Device,
    bytes: DeviceBuffer<u8>,
    len_bytes: usize,
}

impl DeviceText {
    /// Allocates device memory for `len_bytes` bytes, all 0.
    pub(super) fn new(device: &Device, len_bytes: usize) -> Result<Self, GpuError> {
        let bytes = device.alloc("text", len_bytes)?;
        Ok(Self { device: device.clone(), bytes, len_bytes })
    }

    /// Returns the buffer that kernels write to: at least [`DeviceText::len_bytes`] bytes, and at
    /// least one.
    pub(super) fn bytes_mut(&mut self) -> &mut DeviceBuffer<u8> {
        &mut self.bytes
    }

    /// Returns the length of the text in bytes.
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Sets all bytes to one value. Tests use this to find bytes that a kernel does not write.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub fn fill(&mut self, byte: u8) -> Result<(), GpuError> {
        let filling = GpuError::driver("filling device memory");
        let stream = self.device.stream();
        self.device.context().bind_to_thread().map_err(&filling)?;
        let num_bytes = self.bytes.len();
        let (at, _used_until_here) = self.bytes.device_ptr_mut(stream);
        // SAFETY: the allocation has `num_bytes` bytes, and the borrow lasts until the call is
        // enqueued.
        unsafe { result::memset_d8_async(at, byte, num_bytes, stream.cu_stream()) }.map_err(filling)
    }

    /// Copies the text to the host after all work on it is done.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of that work.
    pub fn to_host(&self) -> Result<Vec<u8>, GpuError> {
        let copying = GpuError::driver("copying text from the device");
        let mut text = vec![0; self.len_bytes];
        if self.len_bytes > 0 {
            self.device.stream().memcpy_dtoh(&self.bytes, &mut text).map_err(copying)?;
        }
        self.device.synchronize()?;
        Ok(text)
    }
}

/// Tests that the kernel and its wrapper declare the same constants and structs.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_those_of_the_kernel() {
        let kernel = concat!(
            include_str!("../../kernels/gsst_codes.cuh"),
            include_str!("../../kernels/gsst_decode.cuh"),
            include_str!("../../kernels/gsst_symbols.cuh"),
            include_str!("../../kernels/gsst_views.cuh"),
        );
        for line in [
            format!("constexpr u32 TABLE_AT = {TABLE_AT};"),
            format!("constexpr u32 SHARED_WORDS_BYTES = {SHARED_WORDS_BYTES};"),
            format!("constexpr u32 MAX_WARPS = {MAX_WARPS};"),
            format!("constexpr u32 ROWS_BYTES = {ROWS_BYTES};"),
            "constexpr u32 STAGE_BYTES = 16 + 16 + 8 * TILE_CODES;".to_owned(),
            "constexpr u32 TILE_CODES = 512;".to_owned(),
            "TABLE_WORDS = 256, TABLE_BYTES = 65536;".to_owned(),
            "TABLE_WORDS = 4096, TABLE_BYTES = 32768;".to_owned(),
        ] {
            assert!(kernel.contains(&line), "{line}");
        }
        assert_eq!(STAGE_BYTES, 16 + 16 + 8 * 512);
    }

    #[test]
    fn fields_are_those_of_the_kernel() {
        let offsets = [
            std::mem::offset_of!(GsstBlock, codes_at),
            std::mem::offset_of!(GsstBlock, text_at),
            std::mem::offset_of!(GsstBlock, splits_at),
            std::mem::offset_of!(GsstBlock, num_codes),
            std::mem::offset_of!(GsstBlock, first_split),
            std::mem::offset_of!(GsstBlock, split_log2),
        ];
        assert_eq!(offsets, [0, 8, 16, 20, 24, 28]);
    }
}
