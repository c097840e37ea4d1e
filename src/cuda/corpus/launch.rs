//! Launches of kernels of corpora: addresses and numbers as arguments, on the device's stream.
//!
//! Arguments are addresses instead of buffers, because cudarc records events for each buffer of a
//! launch. These cost more than a small level of a grammar. All work on a corpus runs on the one
//! stream of its device, which also frees the memory. So nothing is freed or read too early.

#![allow(unsafe_code, reason = "launching kernels, and the layout of their arguments")]

use cudarc::driver::{CudaFunction, DevicePtr, DeviceRepr, LaunchConfig, PushKernelArg};

use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

/// Default number of threads of a thread block.
pub(super) const THREADS: u32 = 256;

/// An argument of a kernel.
#[derive(Debug, Clone, Copy)]
pub(super) enum Argument {
    /// A 64-bit number or an address.
    Long(u64),
    /// A 32-bit number.
    Short(u32),
    Text(TextArrays),
    Rules(RuleArrays),
    Splices(SpliceArrays),
}

/// Addresses of the text of a segment. `kernels/corpus_text.cuh` has the same struct.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct TextArrays {
    pub(super) symbols: u64,
    pub(super) rule_offsets: u64,
    pub(super) doc_offsets: u64,
    pub(super) starts: u64,
    pub(super) blanks: u64,
    pub(super) token_offsets: u64,
    pub(super) tokens: u64,
    pub(super) num_terminals: u32,
}

/// Addresses of the input and output of `corpus_sequences`. The kernel has the same struct.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct RuleArrays {
    pub(super) symbols: u64,
    pub(super) rule_offsets: u64,
    pub(super) doc_offsets: u64,
    pub(super) owners: u64,
    pub(super) lens: u64,
    pub(super) heads: u64,
    pub(super) tails: u64,
    pub(super) num_terminals: u32,
    pub(super) num_root: u32,
    pub(super) reach: u32,
    pub(super) word_bits: u32,
}

/// Addresses of the input of `corpus_edits`. The kernel has the same struct.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct SpliceArrays {
    pub(super) docs: u64,
    pub(super) splice_starts: u64,
    pub(super) froms: u64,
    pub(super) tos: u64,
    pub(super) token_starts: u64,
    pub(super) tokens: u64,
    pub(super) edges: u64,
    pub(super) num_docs: u32,
    pub(super) num_gaps: u32,
    pub(super) num_new: u32,
    pub(super) num_old_root: u32,
}

const _: () = assert!(size_of::<TextArrays>() == 64 && size_of::<RuleArrays>() == 72);
const _: () = assert!(size_of::<SpliceArrays>() == 72);

// SAFETY: integers in C layout; the kernel reads no padding.
unsafe impl DeviceRepr for TextArrays {}
// SAFETY: integers in C layout; the kernel reads no padding.
unsafe impl DeviceRepr for RuleArrays {}
// SAFETY: integers in C layout; the kernel reads no padding.
unsafe impl DeviceRepr for SpliceArrays {}

/// Returns the number of thread blocks of [`THREADS`] that give each of `len` items a thread.
pub(super) fn grid_for(len: usize) -> u32 {
    len.div_ceil(THREADS as usize) as u32
}

/// Returns the address of `buffer` on `device`.
pub(super) fn address<T>(device: &Device, buffer: &DeviceBuffer<T>) -> u64 {
    buffer.device_ptr(device.stream()).0
}

/// Launches `function` on the device with `grid` thread blocks of `threads`. Does nothing for an
/// empty grid.
///
/// # Safety
///
/// The arguments must match the kernel in number, order and type. Addresses must lie on `device`.
/// The memory there must be as long as the kernel expects, made on the device's stream, and alive
/// until that stream frees it.
pub(super) unsafe fn launch(
    device: &Device,
    function: &CudaFunction,
    grid: u32,
    threads: u32,
    arguments: &[Argument],
) -> Result<(), GpuError> {
    if grid == 0 {
        return Ok(());
    }
    let config =
        LaunchConfig { grid_dim: (grid, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 };
    let mut builder = device.stream().launch_builder(function);
    for argument in arguments {
        match argument {
            Argument::Long(number) => builder.arg(number),
            Argument::Short(number) => builder.arg(number),
            Argument::Text(arrays) => builder.arg(arrays),
            Argument::Rules(arrays) => builder.arg(arrays),
            Argument::Splices(arrays) => builder.arg(arrays),
        };
    }
    // SAFETY: the caller guarantees it.
    let launched = unsafe { builder.launch(config) };
    launched.map(drop).map_err(device.fault("launching a kernel of a corpus"))
}
