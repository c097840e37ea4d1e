//! What a scanner takes of the host's memory and of the device's, and giving it back.
//!
//! Slots keep device memory and staging buffers from run to run, and a pool keeps pinned memory:
//! both within limits that whoever uses the scanner may move. Memory that a run takes on the host
//! is known before it is submitted.

use gsst::SealedBlock;

use super::error::GpuError;
use super::gsst_run::{RowForm, RunLayout};
use super::gsst_scan::GsstScanner;

/// Host memory of a run, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunBytes {
    /// Its blocks, as they are copied to the device; until its rows are there.
    pub staging: usize,
    /// Its rows.
    pub rows: usize,
}

impl RunBytes {
    /// Those of a run of `blocks` whose rows come back as `form`.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] where the run has 2^31 bytes of text or rows or more.
    pub fn of<B: AsRef<[u8]>>(blocks: &[SealedBlock<B>], form: RowForm) -> Result<Self, GpuError> {
        let layout = RunLayout::new(blocks, form, false)?;
        Ok(Self { staging: layout.input_len_bytes, rows: layout.output_len_bytes })
    }
}

impl GsstScanner {
    /// From now on the device and its clones take at most `max_bytes` of device memory, and this
    /// scanner no more pinned memory than that, or than its options say. What slots keep beyond it
    /// is given back, unless a run is being submitted to them.
    pub fn set_max_bytes(&self, max_bytes: u64) {
        let budget = self.device().budget();
        if budget.max_bytes() == max_bytes {
            return;
        }
        budget.set_max_bytes(max_bytes);
        if budget.used_bytes() > max_bytes {
            self.release_idle();
        }
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        self.pool.set_max_bytes(max_bytes.min(self.max_pinned_bytes));
    }

    /// Gives back what slots keep that no run is being submitted to. Waits for their runs.
    pub fn release_idle(&self) {
        for mut slot in self.slots.iter().filter_map(|slot| slot.try_lock().ok()) {
            slot.release();
        }
        self.release_idle_matching();
    }
}
