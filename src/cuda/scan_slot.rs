//! A slot of a scanner: a stream with its staging buffer and device memory; and the rows of a run in host
//! memory.
//!
//! The holder of a slot's lock submits work to its stream, and the stream keeps the order. So device memory can be
//! reused at once. Only the staging buffer, which the host writes, must wait until it was copied.
//!
//! A device that shares the host's memory reads the staging buffer and writes the results in place,
//! if they are pinned. It then copies nothing.

#![allow(unsafe_code, reason = "copies by address, in the order of a stream, and numbers in the bytes of a buffer")]

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaStream, result, sys};
use gsst::SealedBlock;

use crate::device::Device;
use crate::error::{BlockCheck, GpuError};
use crate::gsst_decode::NO_ERROR;
use crate::gsst_run::{RowForm, RunLayout};
use crate::memory::{DeviceMemory, HostBuffer, PinnedPool};
use crate::run_kernels::{RunAddresses, RunKernels};

/// Event flags for a wait that does not keep a core busy.
const DONE_FLAGS: sys::CUevent_flags = sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC;

/// A stream with the memory that is kept for it.
#[derive(Debug)]
pub(super) struct Slot {
    device: Device,
    pub(super) stream: Arc<CudaStream>,
    staging: Option<HostBuffer>,
    /// Event until which the staging buffer is read.
    uploaded: Option<CudaEvent>,
    pub(super) input: Option<DeviceMemory>,
    pub(super) scratch: Option<DeviceMemory>,
    pub(super) output: Option<DeviceMemory>,
    /// Addresses of the staging buffer and of the results on a device that shares the host's
    /// memory.
    shared_input: Option<u64>,
    shared_output: Option<u64>,
}

/// A kind of device memory that a slot keeps.
#[derive(Debug, Clone, Copy)]
pub(super) enum SlotMemory {
    Input,
    Scratch,
    Output,
}

impl Slot {
    /// Builds a slot without memory.
    pub(super) fn new(device: &Device) -> Result<Self, GpuError> {
        let stream = device.context().new_stream().map_err(device.fault("opening a stream"))?;
        Ok(Self {
            device: device.clone(),
            stream,
            staging: None,
            uploaded: None,
            input: None,
            scratch: None,
            output: None,
            shared_input: None,
            shared_output: None,
        })
    }

    /// Writes a run to the staging buffer and enqueues its copy. `is_read_in_place` says that the
    /// run is processed once; a device that shares the staging buffer then reads it there.
    pub(super) fn upload<B: AsRef<[u8]>>(
        &mut self,
        pool: &Arc<PinnedPool>,
        layout: &mut RunLayout,
        blocks: &[SealedBlock<B>],
        is_read_in_place: bool,
    ) -> Result<(), GpuError> {
        let len_bytes = layout.input_len_bytes;
        self.reserve(SlotMemory::Scratch, layout.scratch_len_bytes)?;
        let lens_bytes = [len_bytes, len_bytes];
        self.upload_bytes(pool, lens_bytes, is_read_in_place, |input| layout.write(blocks, input))
    }

    /// Enqueues the copies of a run: the blocks from where they are, and the rest of the input. Pinned blocks must
    /// stay until the stream is done, also after an error.
    pub(super) fn upload_pinned<B: AsRef<[u8]>>(
        &mut self,
        pool: &Arc<PinnedPool>,
        layout: &mut RunLayout,
        blocks: &[SealedBlock<B>],
    ) -> Result<(), GpuError> {
        let copying = self.device.fault("copying GSST blocks");
        self.device.context().bind_to_thread().map_err(&copying)?;
        (self.shared_input, self.shared_output) = (None, None);
        self.reserve(SlotMemory::Scratch, layout.scratch_len_bytes)?;
        self.reserve(SlotMemory::Input, layout.input_len_bytes)?;
        let mut at = self.address(SlotMemory::Input);
        for block in blocks {
            let bytes = block.as_bytes();
            // SAFETY: the device memory has room for all blocks of the layout. The caller keeps the
            // blocks.
            unsafe { result::memcpy_htod_async(at, bytes, self.stream.cu_stream()) }.map_err(&copying)?;
            at += bytes.len() as u64;
        }
        let rest_len_bytes = layout.input_len_bytes - layout.stored_len_bytes;
        let staging = self.fill_staging(pool, rest_len_bytes, |rest| layout.write_rest(blocks, rest))?;
        self.copy_staging(staging, at)
    }

    /// Writes the first `len_bytes` of an input of `max_len_bytes` to the staging buffer by
    /// `write`, and enqueues their copy. `is_read_in_place` is as for [`Slot::upload`].
    pub(super) fn upload_bytes(
        &mut self,
        pool: &Arc<PinnedPool>,
        [len_bytes, max_len_bytes]: [usize; 2],
        is_read_in_place: bool,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), GpuError> {
        let staging = self.fill_staging(pool, len_bytes, write)?;
        (self.shared_input, self.shared_output) = (None, None);
        if is_read_in_place {
            self.shared_input = self.shared_address(&staging);
        }
        if self.shared_input.is_some() {
            self.staging = Some(staging);
            return Ok(());
        }
        self.reserve(SlotMemory::Input, max_len_bytes)?;
        self.copy_staging(staging, self.address(SlotMemory::Input))
    }

    /// Returns the staging buffer with `len_bytes` that `write` wrote, once the device has read what was in it.
    fn fill_staging(
        &mut self,
        pool: &Arc<PinnedPool>,
        len_bytes: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<HostBuffer, GpuError> {
        let copying = self.device.fault("copying GSST blocks");
        self.device.context().bind_to_thread().map_err(&copying)?;
        if let Some(uploaded) = self.uploaded.take() {
            uploaded.synchronize().map_err(&copying)?;
        }
        let is_large_enough = |buffer: &HostBuffer| buffer.capacity_bytes() >= len_bytes;
        let mut staging = match self.staging.take().filter(is_large_enough) {
            Some(staging) => staging,
            None => pool.take(len_bytes),
        };
        staging.set_len(len_bytes);
        write(&mut staging);
        Ok(staging)
    }

    /// Keeps the staging buffer, and enqueues its copy to the address `to` in the input, which has room for it.
    fn copy_staging(&mut self, staging: HostBuffer, to: u64) -> Result<(), GpuError> {
        let copying = self.device.fault("copying GSST blocks");
        // SAFETY: the device memory at `to` is at least as long as `staging`. This slot keeps
        // `staging` alive, and nothing writes or drops it before a wait for the event below or for
        // the stream.
        let copied = unsafe { result::memcpy_htod_async(to, &staging, self.stream.cu_stream()) };
        self.staging = Some(staging);
        copied.map_err(&copying)?;
        self.uploaded = Some(self.stream.record_event(None).map_err(&copying)?);
        Ok(())
    }

    /// Enqueues all kernels of the run that was uploaded last.
    pub(super) fn run(&mut self, kernels: &RunKernels, layout: &RunLayout, must_be_utf8: bool) -> Result<(), GpuError> {
        let at = RunAddresses {
            stream: &self.stream,
            input: self.address(SlotMemory::Input),
            scratch: self.address(SlotMemory::Scratch),
            output: self.address(SlotMemory::Output),
        };
        set_error_word(&self.device, &self.stream, layout, at.output)?;
        // SAFETY: `upload` and `reserve` allocated memory of the lengths of `layout`, and copied or
        // share the input that `layout` wrote. Only this slot, which is locked, and its stream use
        // this memory.
        let ran = unsafe { kernels.run(layout, at, must_be_utf8) };
        if self.shared_input.is_some() {
            let working = self.device.fault("decoding GSST blocks");
            self.uploaded = Some(self.stream.record_event(None).map_err(working)?);
        }
        ran
    }

    /// Makes room for the results that go to `buffer`: in `buffer` itself if the device shares it.
    pub(super) fn reserve_output(&mut self, buffer: &HostBuffer) -> Result<(), GpuError> {
        self.shared_output = self.shared_address(buffer);
        match self.shared_output {
            Some(_) => Ok(()),
            None => self.reserve(SlotMemory::Output, buffer.len()),
        }
    }

    fn shared_address(&self, buffer: &HostBuffer) -> Option<u64> {
        self.device.shares_host_memory().then(|| buffer.device_address())?
    }

    /// Enqueues the copy of the output, unless it is in `buffer` already. Returns the event after
    /// it.
    pub(super) fn copy_back(&self, buffer: &mut HostBuffer) -> Result<CudaEvent, GpuError> {
        let copying = self.device.fault("copying rows from the device");
        let output = self.address(SlotMemory::Output);
        let stream = self.stream.cu_stream();
        if self.shared_output.is_none() {
            // SAFETY: the output has the length of `buffer`. The caller keeps `buffer` until a wait
            // for the event below or for the stream.
            unsafe { result::memcpy_dtoh_async(buffer, output, stream) }.map_err(&copying)?;
        }
        self.record_done()
    }

    /// Enqueues the copy of a part of the output.
    pub(super) fn copy_part(&self, part: &Range<usize>, to: &mut [u8]) -> Result<(), GpuError> {
        let copying = self.device.fault("copying rows from the device");
        if part.is_empty() {
            return Ok(());
        }
        let from = self.address(SlotMemory::Output) + part.start as u64;
        let stream = self.stream.cu_stream();
        // SAFETY: the output contains `part`, and `to` has room for it. The caller keeps `to` until
        // a wait for the stream.
        unsafe { result::memcpy_dtoh_async(&mut to[..part.len()], from, stream) }.map_err(&copying)
    }

    /// Enqueues the copy of the first bytes of the output to the staging buffer, whose content is
    /// no longer needed. Returns the event after it.
    pub(super) fn copy_head(&mut self, len_bytes: usize) -> Result<CudaEvent, GpuError> {
        let Some(mut staging) = self.staging.take() else { return Err(self.gone()) };
        let copied = self.copy_part(&(0..len_bytes), &mut staging);
        self.staging = Some(staging);
        copied?;
        self.record_done()
    }

    /// Records an event after all work of the stream, to wait for.
    pub(super) fn record_done(&self) -> Result<CudaEvent, GpuError> {
        let recording = self.device.fault("copying rows from the device");
        self.stream.record_event(Some(DONE_FLAGS)).map_err(recording)
    }

    /// Returns the word `idx` that [`Slot::copy_head`] copied. Its event must be waited for first.
    pub(super) fn head_word(&self, idx: usize) -> u64 {
        let words = self.staging.as_ref().map_or(&[][..], |staging| staging.as_chunks::<8>().0);
        words.get(idx).map_or(0, |word| u64::from_le_bytes(*word))
    }

    /// Makes sure that a part has at least `len_bytes`.
    pub(super) fn reserve(&mut self, part: SlotMemory, len_bytes: usize) -> Result<(), GpuError> {
        let (what, memory) = match part {
            SlotMemory::Input => ("GSST blocks", &mut self.input),
            SlotMemory::Scratch => ("lengths of rows", &mut self.scratch),
            SlotMemory::Output => ("rows", &mut self.output),
        };
        if memory.as_ref().is_none_or(|memory| memory.len_bytes() < len_bytes) {
            // Frees first and allocates then, in the order of the stream, so that both never
            // coexist.
            *memory = None;
            *memory = Some(DeviceMemory::new(self.device.budget(), &self.stream, what, len_bytes)?);
        }
        Ok(())
    }

    /// Frees all memory of the slot, after its work is done.
    pub(super) fn release(&mut self) {
        let _ = self.stream.synchronize(); // the staging buffer may be read until then
        (self.input, self.scratch, self.output) = (None, None, None);
        (self.staging, self.uploaded) = (None, None);
    }

    pub(super) fn address(&self, part: SlotMemory) -> u64 {
        let (memory, shared) = match part {
            SlotMemory::Input => (&self.input, self.shared_input),
            SlotMemory::Scratch => (&self.scratch, None),
            SlotMemory::Output => (&self.output, self.shared_output),
        };
        if let Some(address) = shared {
            return address;
        }
        memory.as_ref().map_or(0, DeviceMemory::address)
    }

    /// Builds the error for a missing part that was just reserved. It cannot occur, but must not
    /// end the process.
    pub(super) fn gone(&self) -> GpuError {
        GpuError::Mismatch { what: "device memory of a slot", got: 0, expected: 1 }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // The staging buffer goes back to its pool, so nothing may read it any more.
        let _ = self.stream.synchronize();
    }
}

/// Sets the error word at the start of an output to [`NO_ERROR`], and
/// the range `zeros` to 0.
pub(super) fn set_head(
    device: &Device,
    stream: &Arc<CudaStream>,
    output: u64,
    zeros: Range<usize>,
) -> Result<(), GpuError> {
    let setting = device.fault("setting the error word");
    device.context().bind_to_thread().map_err(&setting)?;
    for (part, byte) in [(0..8, 0xff), (zeros, 0)] {
        let at = output + part.start as u64;
        // SAFETY: every output starts with an error word and contains the requested part.
        unsafe { result::memset_d8_async(at, byte, part.len(), stream.cu_stream()) }.map_err(&setting)?;
    }
    Ok(())
}

/// Sets the error word at the start of an output to [`NO_ERROR`].
/// Also fills the gaps between the parts of the output, because they are copied too.
pub(super) fn set_error_word(
    device: &Device,
    stream: &Arc<CudaStream>,
    layout: &RunLayout,
    output: u64,
) -> Result<(), GpuError> {
    let setting = device.fault("setting the error word");
    device.context().bind_to_thread().map_err(&setting)?;
    for part in [0..layout.text.start, layout.text.end..layout.rows.start] {
        if part.is_empty() {
            continue;
        }
        let at = output + part.start as u64;
        // SAFETY: the output has the parts of its layout, and these ranges lie before or between
        // them.
        unsafe { result::memset_d8_async(at, 0xff, part.len(), stream.cu_stream()) }.map_err(&setting)?;
    }
    Ok(())
}

/// Block number in the error word for faults of the text of a run, as in `kernels/gsst_run.cuh`.
const NO_BLOCK: u64 = 0xffff_fffe;

/// A run that the device works on. Dropping it waits for the device.
#[derive(Debug)]
pub struct PendingRows {
    pub(super) device: Device,
    pub(super) done: Option<CudaEvent>,
    pub(super) rows: Option<ScannedRows>,
}

/// The rows of a run, in host memory.
#[derive(Debug, Clone)]
pub struct ScannedRows {
    pub(super) buffer: Arc<HostBuffer>,
    pub(super) form: RowForm,
    pub(super) text: Range<usize>,
    pub(super) rows: Range<usize>,
    pub(super) num_rows: usize,
    pub(super) num_nulls: usize,
    pub(super) block_rows: Vec<usize>,
    pub(super) validity: Option<Vec<u8>>,
}

/// Converts an error word to a result.
pub(super) fn verdict(word: u64) -> Result<(), GpuError> {
    let block = word >> 32;
    let check = word as u32 >> 26;
    let place = word as u32 % (1 << 26);
    match (word, block) {
        (NO_ERROR, _) => Ok(()),
        (_, NO_BLOCK) => Err(GpuError::NotText { check: BlockCheck::from_number(check), place }),
        (_, block) => {
            let block_idx = block as usize;
            Err(GpuError::Malformed { block_idx, check: BlockCheck::from_number(check), place })
        }
    }
}

impl PendingRows {
    /// Returns true if waiting would return at once.
    pub fn is_done(&self) -> bool {
        self.done.as_ref().is_none_or(CudaEvent::is_complete)
    }

    /// Waits for the rows. The call blocks the thread.
    ///
    /// # Errors
    ///
    /// [`GpuError::Malformed`] or [`GpuError::NotText`] if the blocks are invalid,
    /// [`GpuError::Driver`] for faults of the device.
    pub fn wait(mut self) -> Result<ScannedRows, GpuError> {
        let waiting = self.device.fault("decoding GSST blocks");
        if let Some(done) = &self.done {
            done.synchronize().map_err(waiting)?;
            self.done = None;
        }
        let gone = GpuError::Mismatch { what: "rows of a run", got: 0, expected: 1 };
        let rows = self.rows.take().ok_or(gone)?;
        let word = rows.buffer.first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word));
        verdict(word)?;
        Ok(rows)
    }
}

impl Drop for PendingRows {
    fn drop(&mut self) {
        if let Some(done) = &self.done {
            let _ = done.synchronize(); // the buffer is written until then
        }
    }
}

impl ScannedRows {
    /// Returns the text of all rows.
    pub fn text(&self) -> &[u8] {
        &self.buffer[self.text.clone()]
    }

    /// Returns the offsets of the rows in the text: 0, then the end of each row. `None` unless the
    /// form is [`RowForm::Offsets`].
    pub fn offsets(&self) -> Option<&[u32]> {
        (self.form == RowForm::Offsets).then(|| {
            // SAFETY: any bits are a valid `u32`; the part starts at a multiple of 64.
            unsafe { self.buffer[self.rows.clone()].align_to::<u32>() }.1
        })
    }

    /// Returns Arrow's views, one per row. `None` unless the form is [`RowForm::Views`].
    pub fn views(&self) -> Option<&[u128]> {
        (self.form == RowForm::Views).then(|| {
            // SAFETY: any bits are a valid `u128`; the part starts at a multiple of 64.
            unsafe { self.buffer[self.rows.clone()].align_to::<u128>() }.1
        })
    }

    /// Returns the host memory that holds the rows. Clones keep it alive.
    pub fn buffer(&self) -> &Arc<HostBuffer> {
        &self.buffer
    }

    /// Returns the range of the text in the buffer. It starts at a multiple of 64.
    pub(crate) fn text_range(&self) -> Range<usize> {
        self.text.clone()
    }

    /// Returns the range of the offsets or views in the buffer. It starts at a multiple of 64.
    pub(crate) fn rows_range(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Returns the number of rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Returns the number of rows that are null.
    pub fn num_nulls(&self) -> usize {
        self.num_nulls
    }

    /// Returns the number of rows of each block.
    pub fn block_rows(&self) -> &[usize] {
        &self.block_rows
    }

    /// Returns one bit per row, low bits first; 1 means not null. `None` if no row is null.
    pub fn validity(&self) -> Option<&[u8]> {
        self.validity.as_deref()
    }
}
