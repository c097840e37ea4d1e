//! Rows of a run that match, in host memory, and the way there.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::CudaEvent;

use super::device::Device;
use super::error::GpuError;
use super::gsst_match::MatchOutput;
use super::gsst_run::Parts;
use super::pinned::{HostBuffer, PinnedPool};
use super::scan_slot::Slot;
use super::scanned_rows::verdict;

/// Slots that no run has.
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

/// A run on its way; dropping it waits, too.
#[derive(Debug)]
pub struct PendingMatches {
    pub(super) device: Device,
    pub(super) pool: Arc<PinnedPool>,
    pub(super) free: Arc<FreeSlots>,
    pub(super) slot: Slot,
    /// How many rows match is on the host then.
    pub(super) counted: CudaEvent,
    pub(super) output: MatchOutput,
    pub(super) block_rows: Vec<usize>,
}

/// The rows of a run that match, in host memory.
#[derive(Debug, Clone)]
pub struct MatchedRows {
    buffer: Arc<HostBuffer>,
    rows: Range<usize>,
    /// Offsets and text, where it was wanted.
    text: Option<(Range<usize>, Range<usize>)>,
    block_rows: Vec<usize>,
}

impl PendingMatches {
    /// Whether the device has matched; waiting then takes as long as copying what matches.
    pub fn is_done(&self) -> bool {
        self.counted.is_complete()
    }

    /// Waits for the rows; call it where a thread may block.
    ///
    /// # Errors
    ///
    /// [`GpuError::Malformed`] where the blocks are not what they say, [`GpuError::Driver`] for
    /// faults of the device.
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
        let mut parts = Parts::default();
        let rows = parts.next(4 * num_rows);
        let text =
            self.output.text.as_ref().map(|text| {
                (parts.next(4 * (num_rows + 1)), parts.next(text_len_bytes), text.start)
            });
        let mut buffer = self.pool.take(parts.len_bytes());
        let copied = self.copy_back(&mut buffer, &rows, text.as_ref());
        let done = copied.and_then(|()| self.slot.record_done());
        let done = done.and_then(|done| done.synchronize().map_err(waiting));
        if let Err(error) = done {
            // A copy may be under way: nobody may have the buffer before it ends.
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

    /// Gives the copies of rows, and of offsets and the text that starts there, to the stream.
    fn copy_back(
        &self,
        buffer: &mut HostBuffer,
        rows: &Range<usize>,
        text: Option<&(Range<usize>, Range<usize>, usize)>,
    ) -> Result<(), GpuError> {
        let mut copy = |from: usize, to: &Range<usize>| {
            self.slot.copy_part(&(from..from + to.len()), &mut buffer[to.clone()])
        };
        copy(self.output.rows.start, rows)?;
        if let Some((offsets, text, text_from)) = text {
            copy(self.output.offsets.start, offsets)?;
            copy(*text_from, text)?;
        }
        Ok(())
    }
}

impl MatchedRows {
    /// Numbers of the rows that match, ascending, counted over all blocks.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        let words = self.buffer[self.rows.clone()].as_chunks::<4>().0;
        words.iter().map(|word| u32::from_le_bytes(*word))
    }

    /// Where each row's text starts, and behind the last one where it ends; where text was wanted.
    pub fn offsets(&self) -> Option<impl ExactSizeIterator<Item = u32> + '_> {
        let words = self.buffer[self.offsets_range()?].as_chunks::<4>().0;
        Some(words.iter().map(|word| u32::from_le_bytes(*word)))
    }

    /// Their text, without gaps; where it was wanted.
    pub fn text(&self) -> Option<&[u8]> {
        Some(&self.buffer[self.text_range()?])
    }

    /// The host memory that holds it all; clones of it keep it.
    pub fn buffer(&self) -> &Arc<HostBuffer> {
        &self.buffer
    }

    /// Where the offsets lie in the buffer; starts at a multiple of 64.
    pub fn offsets_range(&self) -> Option<Range<usize>> {
        self.text.as_ref().map(|(offsets, _)| offsets.clone())
    }

    /// Where the text lies in the buffer; starts at a multiple of 64.
    pub fn text_range(&self) -> Option<Range<usize>> {
        self.text.as_ref().map(|(_, text)| text.clone())
    }

    /// Number of rows of each block, whether they match or not.
    pub fn block_rows(&self) -> &[usize] {
        &self.block_rows
    }
}
