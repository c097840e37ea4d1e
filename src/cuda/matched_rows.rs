//! Rows of a run that match predicates: pending, in host memory, or on the device.
//!
//! ```text
//! slot a   … match │ how many │ copy back what matches      wait, for MatchedRows
//!                             │ copy to memory of its own   wait_on_device, for a DeviceColumn
//! ```
//!
//! A run keeps its slot until it was waited for, because only then the number of rows is known.

#![allow(unsafe_code, reason = "copies by address, in the order of a stream")]

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::{CudaEvent, DriverError, result};

use crate::device::Device;
use crate::device_column::DeviceColumn;
use crate::error::GpuError;
use crate::gsst_match::MatchOutput;
use crate::gsst_run::{BufferRanges, RowForm};
use crate::memory::{DeviceMemory, HostBuffer, PinnedPool};
use crate::scan_slot::{Slot, SlotMemory, verdict};

/// Slots that no run uses.
#[derive(Debug, Default)]
pub(super) struct FreeSlots(Mutex<Vec<Slot>>);

impl FreeSlots {
    pub(super) fn take(&self) -> Option<Slot> {
        self.lock().pop()
    }

    fn give_back(&self, slot: Slot) {
        self.lock().push(slot);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run that the device works on. Dropping it waits for the device.
#[derive(Debug)]
pub struct PendingMatches {
    pub(super) device: Device,
    pub(super) pool: Arc<PinnedPool>,
    pub(super) free: Arc<FreeSlots>,
    pub(super) slot: Slot,
    /// Event after which the number of matching rows is on the host.
    pub(super) counted: CudaEvent,
    pub(super) output: MatchOutput,
    pub(super) block_rows: Vec<usize>,
}

/// The rows of a run that match, in host memory.
#[derive(Debug, Clone)]
pub struct MatchedRows {
    buffer: Arc<HostBuffer>,
    rows: Range<usize>,
    /// Ranges of the offsets and the text, if the text was requested.
    text: Option<(Range<usize>, Range<usize>)>,
    block_rows: Vec<usize>,
}

impl PendingMatches {
    /// Returns true if the device has finished matching. The wait then only copies the matches.
    pub fn is_done(&self) -> bool {
        self.counted.is_complete()
    }

    /// Waits for the rows. The call blocks the thread.
    ///
    /// # Errors
    ///
    /// [`GpuError::Malformed`] if a block contradicts its header, [`GpuError::Driver`] for faults
    /// of the device.
    pub fn wait(self) -> Result<MatchedRows, GpuError> {
        let (num_rows, text_len_bytes) = match self.totals()? {
            Ok(totals) => totals,
            Err(error) => {
                self.free.give_back(self.slot);
                return Err(error);
            }
        };
        let mut ranges = BufferRanges::default();
        let rows = ranges.next(4 * num_rows);
        let text = self
            .output
            .text
            .as_ref()
            .map(|text| (ranges.next(4 * (num_rows + 1)), ranges.next(text_len_bytes), text.start));
        let mut buffer = self.pool.take(ranges.len_bytes());
        let copied = self.copy_back(&mut buffer, &rows, text.as_ref());
        let done = copied.and_then(|()| self.slot.record_done());
        let done = done.and_then(|done| done.synchronize().map_err(self.waiting()));
        if let Err(error) = done {
            // A copy may still run, so the buffer must stay until the stream is done.
            let _ = self.slot.stream.synchronize();
            return Err(error);
        }
        self.free.give_back(self.slot);
        Ok(MatchedRows {
            buffer: Arc::new(buffer),
            rows,
            text: text.map(|(offsets, text, _)| (offsets, text)),
            block_rows: self.block_rows,
        })
    }

    /// Waits for the rows, and keeps them on the device, in memory of their length. The call blocks the thread.
    ///
    /// # Errors
    ///
    /// The errors of [`PendingMatches::wait`]; [`GpuError::Mismatch`] if the text was not requested;
    /// [`GpuError::OutOfMemory`].
    pub fn wait_on_device(self) -> Result<DeviceColumn, GpuError> {
        let column = self.totals().and_then(|totals| self.column(totals?));
        if column.is_err() {
            // A copy may still read the memory of the slot.
            let _ = self.slot.stream.synchronize();
        }
        self.free.give_back(self.slot);
        column
    }

    /// Copies rows to memory of their own, and waits for the device.
    fn column(&self, (num_rows, text_len_bytes): (usize, usize)) -> Result<DeviceColumn, GpuError> {
        let Some(text_from) = &self.output.text else {
            return Err(GpuError::Mismatch { what: "text of rows that match", got: 0, expected: 1 });
        };
        let mut ranges = BufferRanges::default();
        let rows = ranges.next(4 * (num_rows + 1));
        let text = ranges.next(text_len_bytes);
        // Kernels read text by aligned words.
        let len_bytes = ranges.len_bytes().next_multiple_of(size_of::<u64>());
        let output = DeviceMemory::new(self.device.budget(), &self.slot.stream, "rows", len_bytes)?;
        let from = self.slot.address(SlotMemory::Output);
        let copy = |at: usize, to: &Range<usize>| {
            let (from, to_at) = (from + at as u64, output.address() + to.start as u64);
            // SAFETY: the slot has written this many rows and bytes, and the memory has room for them. Both stay until
            // the wait below.
            unsafe { result::memcpy_dtod_async(to_at, from, to.len(), self.slot.stream.cu_stream()) }
        };
        let copied = copy(self.output.offsets.start, &rows).and_then(|()| copy(text_from.start, &text));
        let waited = self.slot.stream.synchronize();
        copied.and(waited).map_err(self.waiting())?;
        Ok(DeviceColumn {
            device: self.device.clone(),
            output,
            form: RowForm::Offsets,
            text,
            rows,
            num_rows,
            num_nulls: 0,
            validity: None,
        })
    }

    fn waiting(&self) -> impl Fn(DriverError) -> GpuError + use<> {
        self.device.fault("matching GSST blocks")
    }

    /// Waits for the numbers of matching rows and of bytes of their text. The inner error is that of the blocks.
    fn totals(&self) -> Result<Result<(usize, usize), GpuError>, GpuError> {
        self.counted.synchronize().map_err(self.waiting())?;
        let [error, num_rows, text_len_bytes] = [0, 1, 2].map(|idx| self.slot.head_word(idx));
        Ok(verdict(error).map(|()| (num_rows as usize, text_len_bytes as usize)))
    }

    /// Enqueues the copies of the rows. With `text`, also enqueues those of the offsets and of the
    /// text that starts at the given place.
    fn copy_back(
        &self,
        buffer: &mut HostBuffer,
        rows: &Range<usize>,
        text: Option<&(Range<usize>, Range<usize>, usize)>,
    ) -> Result<(), GpuError> {
        let mut copy =
            |from: usize, to: &Range<usize>| self.slot.copy_part(&(from..from + to.len()), &mut buffer[to.clone()]);
        copy(self.output.rows.start, rows)?;
        if let Some((offsets, text, text_from)) = text {
            copy(self.output.offsets.start, offsets)?;
            copy(*text_from, text)?;
        }
        Ok(())
    }
}

impl MatchedRows {
    /// Returns the numbers of the matching rows, ascending, counted over all blocks.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        let words = self.buffer[self.rows.clone()].as_chunks::<4>().0;
        words.iter().map(|word| u32::from_le_bytes(*word))
    }

    /// Returns the start of each row's text, and after the last row the end of the text. `None` if
    /// the text was not requested.
    pub fn offsets(&self) -> Option<impl ExactSizeIterator<Item = u32> + '_> {
        let words = self.buffer[self.offsets_range()?].as_chunks::<4>().0;
        Some(words.iter().map(|word| u32::from_le_bytes(*word)))
    }

    /// Returns the text of the rows, without gaps. `None` if the text was not requested.
    pub fn text(&self) -> Option<&[u8]> {
        Some(&self.buffer[self.text_range()?])
    }

    /// Returns the host memory that holds the rows. Clones keep it alive.
    pub fn buffer(&self) -> &Arc<HostBuffer> {
        &self.buffer
    }

    /// Returns the range of the offsets in the buffer. It starts at a multiple of 64.
    pub(crate) fn offsets_range(&self) -> Option<Range<usize>> {
        self.text.as_ref().map(|(offsets, _)| offsets.clone())
    }

    /// Returns the range of the text in the buffer. It starts at a multiple of 64.
    pub(crate) fn text_range(&self) -> Option<Range<usize>> {
        self.text.as_ref().map(|(_, text)| text.clone())
    }

    /// Returns the number of rows of each block, including those that do not match.
    pub fn block_rows(&self) -> &[usize] {
        &self.block_rows
    }
}
