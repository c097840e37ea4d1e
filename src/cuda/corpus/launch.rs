//! Launches of kernels of corpora: addresses and numbers as arguments, on the device's stream.
//!
//! Arguments are addresses instead of buffers, because cudarc records events for each buffer of a
//! launch. These cost more than a small level of a grammar. All work on a corpus runs on the one
//! stream of its device, which also frees the memory. So nothing is freed or read too early.
//!
//! # Transfers
//!
//! ```text
//! device   chunk 0 | chunk 1 | chunk 2 ...
//! pinned   left      right     left           the driver copies the next chunk
//! host     |-- all cores --|                  while all cores copy this one to its final place
//! ```
//!
//! Pageable memory is copied at a fifth of the speed of pinned memory. The first write to new memory costs as much
//! again, so all cores do it. The two pinned buffers of a copy are kept for the next copy. If the host shares the
//! device's memory, all cores read it directly, without pinned buffers.
//!
//! # Tickets
//!
//! Kernels whose threads wait for each other take tickets: the wrapper of `kernels/corpus_tickets.cuh`.

#![allow(unsafe_code, reason = "launching kernels, the layout of their arguments, copies without a safe form")]

use std::mem::MaybeUninit;

use cudarc::driver::{
    CudaEvent, CudaFunction, DevicePtr, DevicePtrMut, DeviceRepr, LaunchConfig, PushKernelArg, ValidAsZeroBits, result,
};
use rayon::prelude::*;

use crate::device::{Device, Staging, unsupported};
use crate::error::GpuError;
use crate::memory::{DeviceBuffer, HostBuffer, PinnedPool};

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
    #[cfg(feature = "edits")]
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
#[cfg(feature = "edits")]
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

#[cfg(feature = "edits")]
const _: () = assert!(size_of::<SpliceArrays>() == 72);
const _: () = assert!(size_of::<TextArrays>() == 64 && size_of::<RuleArrays>() == 72);

// SAFETY: integers in C layout; the kernel reads no padding.
unsafe impl DeviceRepr for TextArrays {}
// SAFETY: integers in C layout; the kernel reads no padding.
unsafe impl DeviceRepr for RuleArrays {}

// SAFETY: integers in C layout; the kernel reads no padding.
#[cfg(feature = "edits")]
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
    let config = LaunchConfig { grid_dim: (grid, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 };
    let mut builder = device.stream().launch_builder(function);
    for argument in arguments {
        match argument {
            Argument::Long(number) => builder.arg(number),
            Argument::Short(number) => builder.arg(number),
            Argument::Text(arrays) => builder.arg(arrays),
            Argument::Rules(arrays) => builder.arg(arrays),
            #[cfg(feature = "edits")]
            Argument::Splices(arrays) => builder.arg(arrays),
        };
    }
    // SAFETY: the caller guarantees it.
    let launched = unsafe { builder.launch(config) };
    launched.map(drop).map_err(device.fault("launching a kernel of a corpus"))
}

/// Bytes of a pinned buffer.
const CHUNK_BYTES: usize = 8 << 20;
/// Largest number of pairs of pinned buffers that a device keeps, for as many copies at once.
const MAX_KEPT: usize = 2;
/// Numbers that a core copies at a time.
const TASK_LEN: usize = 1 << 16;

/// Returns the first `len` values of `buffer` after all work on it is done.
pub(super) fn to_host<T: DeviceRepr + ValidAsZeroBits + Copy + Send + Sync>(
    device: &Device,
    buffer: &DeviceBuffer<T>,
    len: usize,
) -> Result<Vec<T>, GpuError> {
    to_host_as(device, buffer, len, |value| value)
}

/// Returns the first `len` values of `buffer`, each converted by `convert`, after all work on it is
/// done.
pub(super) fn to_host_as<T, U>(
    device: &Device,
    buffer: &DeviceBuffer<T>,
    len: usize,
    convert: impl Fn(T) -> U + Sync,
) -> Result<Vec<U>, GpuError>
where
    T: DeviceRepr + ValidAsZeroBits + Copy + Send + Sync,
    U: Copy + Send,
{
    if len == 0 {
        device.synchronize()?;
        return Ok(Vec::new());
    }
    let len = len.min(buffer.len());
    let mut values: Vec<U> = Vec::with_capacity(len);
    let places = &mut values.spare_capacity_mut()[..len];
    match buffer.lend(device.stream()).map_err(device.fault(COPYING))? {
        Some(lent) => write_all(places, &lent[..len], &convert),
        None => staged(device, address(device, buffer), places, convert)?,
    }
    // SAFETY: the first `len` values were written, and the vector has room for them.
    unsafe { values.set_len(len) };
    Ok(values)
}

/// Fills `places` with the values at `from` through pinned buffers. There must be as many values as
/// places.
fn staged<T, U>(
    device: &Device,
    from: u64,
    places: &mut [MaybeUninit<U>],
    convert: impl Fn(T) -> U + Sync,
) -> Result<(), GpuError>
where
    T: DeviceRepr + ValidAsZeroBits + Copy + Send + Sync,
    U: Copy + Send,
{
    let mut staging = take_staging(device);
    let len = places.len();
    let mut rest = places;
    let copied = copy_chunks(device, from, len, &mut staging, |values: &[T]| {
        let (now, later) = std::mem::take(&mut rest).split_at_mut(values.len());
        write_all(now, values, &convert);
        rest = later;
    });
    if copied.is_err() {
        // Makes sure that no copy to the buffers is still running. Its own result does not matter.
        let _ = device.synchronize();
    }
    keep_staging(device, staging);
    copied
}

/// Writes each value to its place on all cores.
fn write_all<T: Copy + Sync, U: Send>(places: &mut [MaybeUninit<U>], values: &[T], convert: &(impl Fn(T) -> U + Sync)) {
    places.par_chunks_mut(TASK_LEN).zip(values.par_chunks(TASK_LEN)).for_each(|(to, from)| {
        to.iter_mut().zip(from).for_each(|(place, &value)| {
            place.write(convert(value));
        });
    });
}

/// Copies `len` values from `from` through the given buffers. Passes them on to `write` in order, some at a time.
fn copy_chunks<T: DeviceRepr>(
    device: &Device,
    from: u64,
    len: usize,
    staging: &mut Staging,
    mut write: impl FnMut(&[T]),
) -> Result<(), GpuError> {
    let chunk_len = CHUNK_BYTES / size_of::<T>();
    let start_of = |chunk: usize| from + (chunk * CHUNK_BYTES) as u64;
    let len_of = |chunk: usize| chunk_len.min(len - chunk * chunk_len);
    let lens: Vec<usize> = (0..len.div_ceil(chunk_len)).map(len_of).collect();
    let [left, right] = staging;
    let mut filled = left;
    let mut free = right;
    let mut is_there = fetch::<T>(device, start_of(0), lens[0], filled)?;
    for (chunk, &len) in lens.iter().enumerate() {
        is_there.synchronize().map_err(device.fault(COPYING))?;
        if let Some(&next_len) = lens.get(chunk + 1) {
            is_there = fetch::<T>(device, start_of(chunk + 1), next_len, free)?;
        }
        // SAFETY: the buffer is aligned for numbers and holds these values; any bits are valid.
        write(unsafe { std::slice::from_raw_parts(filled.as_non_null().as_ptr().cast::<T>(), len) });
        std::mem::swap(&mut filled, &mut free);
    }
    Ok(())
}

const COPYING: &str = "copying numbers of a corpus from the device";

/// Enqueues the copy of `len` values from `from`. Returns the event after it.
fn fetch<T: DeviceRepr>(device: &Device, from: u64, len: usize, to: &mut HostBuffer) -> Result<CudaEvent, GpuError> {
    let copying = device.fault(COPYING);
    let stream = device.stream();
    device.context().bind_to_thread().map_err(&copying)?;
    let to = &mut to[..len * size_of::<T>()];
    // SAFETY: the values lie there, and nothing reads or drops the buffer before the event.
    unsafe { result::memcpy_dtoh_async(to, from, stream.cu_stream()) }.map_err(&copying)?;
    stream.record_event(None).map_err(&copying)
}

/// Writes `len` numbers to `to` through pinned buffers. `fill` writes those from an index on; all cores call it, each
/// for other numbers. `to` comes from [`alloc_to_send`](Device::alloc_to_send).
pub(super) fn send_filled(
    device: &Device,
    to: &mut DeviceBuffer<u32>,
    len: usize,
    fill: impl Fn(usize, &mut [u32]) + Sync,
) -> Result<(), GpuError> {
    if to.is_managed() {
        let mut numbers = vec![0; len];
        fill_all(0, &mut numbers, &fill);
        return device.send(SENDING, &numbers, device.stream(), to);
    }
    if len == 0 {
        return Ok(());
    }
    let mut staging = take_staging(device);
    let sent = send_chunks(device, to, len, &mut staging, fill);
    if sent.is_err() {
        // Makes sure that no copy from the buffers is still running. Its own result does not matter.
        let _ = device.synchronize();
    }
    keep_staging(device, staging);
    sent
}

/// Sends like [`send_filled`], through the given buffers. Returns when they are free again.
fn send_chunks(
    device: &Device,
    to: &mut DeviceBuffer<u32>,
    len: usize,
    staging: &mut Staging,
    fill: impl Fn(usize, &mut [u32]) + Sync,
) -> Result<(), GpuError> {
    let sending = device.fault(SENDING);
    let stream = device.stream();
    device.context().bind_to_thread().map_err(&sending)?;
    let (at, _written) = to.device_ptr_mut(stream);
    let mut are_sent: [Option<CudaEvent>; 2] = [None, None];
    for (chunk, start) in (0..len).step_by(CHUNK_NUMBERS).enumerate() {
        let side = chunk % 2;
        if let Some(is_sent) = are_sent[side].take() {
            is_sent.synchronize().map_err(&sending)?;
        }
        let chunk_len = CHUNK_NUMBERS.min(len - start);
        let pinned = &mut staging[side];
        // SAFETY: the buffer is aligned for numbers and has room for a chunk; any bits are valid.
        let numbers = unsafe { std::slice::from_raw_parts_mut(pinned.as_non_null().as_ptr().cast::<u32>(), chunk_len) };
        fill_all(start, numbers, &fill);
        let bytes = &pinned[..chunk_len * size_of::<u32>()];
        let chunk_at = at + (start * size_of::<u32>()) as u64;
        // SAFETY: the buffer of the device has `len` numbers. Nothing writes or drops the pinned one before its event.
        unsafe { result::memcpy_htod_async(chunk_at, bytes, stream.cu_stream()) }.map_err(&sending)?;
        are_sent[side] = Some(stream.record_event(None).map_err(&sending)?);
    }
    are_sent.into_iter().flatten().try_for_each(|is_sent| is_sent.synchronize().map_err(&sending))
}

const SENDING: &str = "copying numbers of a corpus to the device";
/// Numbers of 32 bits of a pinned buffer.
const CHUNK_NUMBERS: usize = CHUNK_BYTES / size_of::<u32>();

/// Fills `numbers`, the first of which has index `start`, on all cores.
fn fill_all(start: usize, numbers: &mut [u32], fill: &(impl Fn(usize, &mut [u32]) + Sync)) {
    if numbers.len() <= TASK_LEN {
        return fill(start, numbers);
    }
    let tasks = numbers.par_chunks_mut(TASK_LEN).enumerate();
    tasks.for_each(|(task, numbers)| fill(start + task * TASK_LEN, numbers));
}

/// Returns consecutive parts of `buffer`, from its start, of these lengths. The base of its part is taken off each
/// number. Waits for all work on the buffer.
pub(super) fn parts_to_host(
    device: &Device,
    buffer: &DeviceBuffer<u32>,
    parts: &[(usize, u32)],
) -> Result<Vec<Vec<u32>>, GpuError> {
    let len: usize = parts.iter().map(|(len, _)| len).sum();
    let mut values: Vec<Vec<u32>> = parts.iter().map(|(len, _)| Vec::with_capacity(*len)).collect();
    let places = values.iter_mut().zip(parts);
    let mut places: Vec<_> =
        places.map(|(values, (len, base))| (&mut values.spare_capacity_mut()[..*len], *base)).collect();
    match buffer.lend(device.stream()).map_err(device.fault(COPYING))? {
        Some(lent) => write_parts(&mut places, &lent[..len]),
        None if len == 0 => device.synchronize()?,
        None => {
            let mut staging = take_staging(device);
            let from = address(device, buffer);
            let copied = copy_chunks(device, from, len, &mut staging, |numbers: &[u32]| {
                write_parts(&mut places, numbers);
            });
            if copied.is_err() {
                // Makes sure that no copy to the buffers is still running. Its own result does not matter.
                let _ = device.synchronize();
            }
            keep_staging(device, staging);
            copied?;
        }
    }
    for (values, (len, _)) in values.iter_mut().zip(parts) {
        // SAFETY: the first `len` values were written, and the vector has room for them.
        unsafe { values.set_len(*len) };
    }
    Ok(values)
}

/// A part of the values that is not written yet, and its base.
type Part<'a> = (&'a mut [MaybeUninit<u32>], u32);

/// Writes `numbers` to the first places of `parts` on all cores, and takes these places off.
fn write_parts(parts: &mut Vec<Part<'_>>, mut numbers: &[u32]) {
    let mut tasks = Vec::new();
    for (places, base) in parts.iter_mut() {
        let len = places.len().min(numbers.len());
        let (now, later) = std::mem::take(places).split_at_mut(len);
        let (from, rest) = numbers.split_at(len);
        *places = later;
        numbers = rest;
        let halves = now.chunks_mut(TASK_LEN).zip(from.chunks(TASK_LEN));
        tasks.extend(halves.map(|(to, from)| (to, from, *base)));
    }
    tasks.into_par_iter().for_each(|(to, from, base)| {
        to.iter_mut().zip(from).for_each(|(place, number)| {
            place.write(number.wrapping_sub(base));
        });
    });
}

/// Returns the pinned buffers of a copy.
fn take_staging(device: &Device) -> Staging {
    let kept = device.staging().pop();
    kept.unwrap_or_else(|| {
        let pool = PinnedPool::new(device.context(), 2 * CHUNK_BYTES);
        [pool.take(CHUNK_BYTES), pool.take(CHUNK_BYTES)]
    })
}

/// Keeps the pinned buffers for the next copy.
fn keep_staging(device: &Device, staging: Staging) {
    let mut kept = device.staging();
    if kept.len() < MAX_KEPT {
        kept.push(staging);
    }
}

/// Returns the value at index `at` of `buffer` after all work on it is done.
pub(super) fn one_to_host<T: DeviceRepr + Copy + Default>(
    device: &Device,
    buffer: &DeviceBuffer<T>,
    at: usize,
) -> Result<T, GpuError> {
    let mut value = [T::default()];
    let copied = device.stream().memcpy_dtoh(&buffer.slice(at..=at), &mut value);
    copied.map_err(device.fault("copying a number of a corpus from the device"))?;
    device.synchronize()?;
    Ok(value[0])
}

/// Sets all bytes of `buffer` to `byte`.
pub(super) fn fill<T>(device: &Device, buffer: &mut DeviceBuffer<T>, byte: u8) -> Result<(), GpuError> {
    let filling = device.fault("filling device memory");
    let stream = device.stream();
    device.context().bind_to_thread().map_err(&filling)?;
    let num_bytes = buffer.num_bytes();
    let (at, _used_until_here) = buffer.device_ptr_mut(stream);
    // SAFETY: the allocation has `num_bytes` bytes, and the borrow lasts until the call is
    // enqueued.
    unsafe { result::memset_d8_async(at, byte, num_bytes, stream.cu_stream()) }.map_err(filling)
}

/// Sets `num_bytes` bytes from `at` on to 0.
///
/// # Safety
///
/// The bytes lie on `device` and were allocated on its stream.
pub(super) unsafe fn clear(device: &Device, at: u64, num_bytes: usize) -> Result<(), GpuError> {
    let clearing = device.fault("clearing device memory");
    device.context().bind_to_thread().map_err(&clearing)?;
    // SAFETY: the caller guarantees it.
    unsafe { result::memset_d8_async(at, 0, num_bytes, device.stream().cu_stream()) }.map_err(clearing)
}

/// The next number for a thread block, and a flag that a warp gave up.
#[derive(Debug)]
pub(super) struct Tickets {
    device: Device,
    numbers: DeviceBuffer<u32>,
}

impl Tickets {
    pub(super) fn new(device: &Device) -> Result<Self, GpuError> {
        let numbers = device.alloc("numbers of thread blocks", 2)?;
        Ok(Self { device: device.clone(), numbers })
    }

    /// Resets the tickets for one launch.
    pub(super) fn reset(&mut self) -> Result<(), GpuError> {
        fill(&self.device, &mut self.numbers, 0)
    }

    pub(super) fn argument(&self) -> Argument {
        Argument::Long(address(&self.device, &self.numbers))
    }

    /// Checks that the last launch, of `kernel`, ended without giving up. Waits for it.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] for a grammar that is too deep; [`GpuError::Driver`].
    pub(super) fn check_end(&self, kernel: &'static str) -> Result<(), GpuError> {
        if one_to_host(&self.device, &self.numbers, 1)? == 0 {
            return Ok(());
        }
        let reason = "a grammar whose rules waited for each other for a second, it takes less deep ones";
        Err(unsupported(&self.device, kernel, reason.to_owned()))
    }
}
