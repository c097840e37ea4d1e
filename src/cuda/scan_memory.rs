//! Memory limits of a scanner, on the host and on the device.
//!
//! Slots keep device memory and staging buffers between runs, and a pool keeps pinned memory. Both
//! stay within limits that the user of the scanner can change. The host memory of a run is known
//! before the run is submitted.

use gsst::SealedBlock;

use super::error::GpuError;
use super::gsst_run::{RowForm, RunLayout};
use super::gsst_scan::GsstScanner;

/// Host memory of a run, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunBytes {
    /// Staging buffer of the blocks, held until the rows are on the host.
    pub staging: usize,
    /// Buffer of the rows.
    pub rows: usize,
}

impl RunBytes {
    /// Computes the host memory of a run of `blocks` whose rows come back as `form`.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if the run has 2^31 or more bytes of text or rows.
    pub fn from_blocks<B: AsRef<[u8]>>(
        blocks: &[SealedBlock<B>],
        form: RowForm,
    ) -> Result<Self, GpuError> {
        let layout = RunLayout::new(blocks, form, false)?;
        Ok(Self { staging: layout.input_len_bytes, rows: layout.output_len_bytes })
    }
}

impl GsstScanner {
    /// Limits the device and its clones to `max_bytes` of device memory from now on. Limits the
    /// pinned memory of this scanner to `max_bytes` or to its options, whichever is lower. Frees
    /// the memory that slots hold beyond the limit, except in slots that a run is being submitted
    /// to.
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

    /// Frees the memory of all slots that no run is being submitted to. Waits for their runs.
    pub fn release_idle(&self) {
        for mut slot in self.slots.iter().filter_map(|slot| slot.try_lock().ok()) {
            slot.release();
        }
        self.release_idle_matching();
    }
}
