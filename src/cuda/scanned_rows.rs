//! The rows of a run, all of them or those that match, in host memory.

#![allow(unsafe_code, reason = "numbers in the bytes of a buffer")]

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::CudaEvent;

use crate::device::Device;
use crate::error::{BlockCheck, GpuError};
use crate::gsst_decode::NO_ERROR;
use crate::gsst_match::MatchOutput;
use crate::gsst_run::{BufferRanges, RowForm};
use crate::pinned::{HostBuffer, PinnedPool};
use crate::scan_slot::Slot;

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
        let waiting = self.device.fault("matching GSST blocks");
        self.counted.synchronize().map_err(&waiting)?;
        let [error, num_rows, text_len_bytes] = [0, 1, 2].map(|idx| self.slot.head_word(idx));
        let checked = verdict(error);
        if let Err(error) = checked {
            self.free.give_back(self.slot);
            return Err(error);
        }
        let (num_rows, text_len_bytes) = (num_rows as usize, text_len_bytes as usize);
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
        let done = done.and_then(|done| done.synchronize().map_err(waiting));
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
