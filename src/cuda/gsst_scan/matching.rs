//! Runs of which only the matching rows come back.
//!
//! ```text
//! slot a   write │ copy in │ check, match │ how many │ copy back what matches │
//! slot b           write │ copy in │ check, match │ how many │ copy back …
//! ```
//!
//! The size of the result is known only after the device has matched. So a run keeps its slot until
//! it was waited for. The number of slots is the largest number of runs that were in progress at
//! once.

#![allow(unsafe_code, reason = "launching what was laid out here")]

use std::sync::{Arc, OnceLock};

use gsst::SealedBlock;

use super::GsstScanner;
use crate::device::Device;
use crate::error::GpuError;
use crate::gsst_match::{GsstMatcher, MatchLayout, MatchOutput, MatchRunKernels, RowPredicate};
use crate::lost;
use crate::matched_rows::{FreeSlots, PendingMatches};
use crate::run_kernels::RunAddresses;
use crate::scan_slot::{Slot, SlotMemory, set_head};

/// The state of a scanner for matching.
#[derive(Debug)]
pub(super) struct Matching {
    matcher: GsstMatcher,
    kernels: OnceLock<MatchRunKernels>,
    free: Arc<FreeSlots>,
}

impl Matching {
    pub(super) fn new(device: &Device) -> Self {
        Self { matcher: GsstMatcher::new(device), kernels: OnceLock::new(), free: Arc::default() }
    }

    fn kernels(&self) -> Result<&MatchRunKernels, GpuError> {
        if let Some(kernels) = self.kernels.get() {
            return Ok(kernels);
        }
        let kernels = self.matcher.run_kernels()?;
        Ok(self.kernels.get_or_init(|| kernels))
    }
}

impl GsstScanner {
    /// Returns the matcher, which makes predicates for [`GsstScanner::submit_matching`].
    pub fn matcher(&self) -> &GsstMatcher {
        &self.matching.matcher
    }

    /// Frees the memory of the matching slots that no run uses.
    pub(crate) fn release_idle_matching(&self) {
        while self.matching.free.take().is_some() {}
    }

    /// Submits a run to find the rows that match all `predicates`. Their numbers come back to host
    /// memory, with their text if `is_text_wanted`. Blocks are checked as by
    /// [`GsstScanner::submit`], except for UTF-8. `blocks` may be dropped after the return.
    ///
    /// ```no_run
    /// use tadoc_cuda::{Device, GsstScanner, ScanOptions};
    /// use gsst::{BlockOptions, Pattern, SealedBlock, write_block};
    ///
    /// let rows = [Some(&b"http://a.example"[..]), None, Some(b"http://b.example")];
    /// let run = [SealedBlock::open(write_block(&rows, &BlockOptions::default())?)?];
    /// let scanner = GsstScanner::new(&Device::open(0)?, ScanOptions::default())?;
    /// let has_b = scanner.matcher().like(&Pattern::contains(b"b."))?;
    /// let matched = scanner.submit_matching(&run, &[has_b], true)?.wait()?;
    /// assert_eq!(matched.rows().collect::<Vec<_>>(), [2]);
    /// assert_eq!(matched.text(), Some(&b"http://b.example"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if the run has 2^31 or more bytes of text or rows, or there is no
    /// predicate; [`GpuError::OutOfMemory`], [`GpuError::Unsupported`], [`GpuError::Lost`],
    /// [`GpuError::Driver`].
    pub fn submit_matching<B: AsRef<[u8]>>(
        &self,
        blocks: &[SealedBlock<B>],
        predicates: &[RowPredicate],
        is_text_wanted: bool,
    ) -> Result<PendingMatches, GpuError> {
        lost::check(self.device.ordinal())?;
        let mut layout = MatchLayout::new(blocks, predicates, is_text_wanted)?;
        let kernels = self.matching.kernels()?;
        let mut slot = match self.matching.free.take() {
            Some(slot) => slot,
            None => Slot::new(&self.device)?,
        };
        let lens_bytes = [layout.copied_len_bytes, layout.input_len_bytes];
        slot.upload_bytes(&self.pool, lens_bytes, false, |input| {
            layout.write(blocks, predicates, input);
        })?;
        slot.reserve(SlotMemory::Scratch, layout.scratch_len_bytes)?;
        slot.reserve(SlotMemory::Output, layout.output.len_bytes)?;
        let at = RunAddresses {
            stream: &slot.stream,
            input: slot.address(SlotMemory::Input),
            scratch: slot.address(SlotMemory::Scratch),
            output: slot.address(SlotMemory::Output),
        };
        set_head(&self.device, &slot.stream, at.output, layout.output.zeros())?;
        // SAFETY: memory of the layout's lengths was allocated, its input was copied and its head
        // set, all on the stream of this slot. Nothing else uses the slot until it was waited for.
        unsafe { layout.launch(&self.device, &self.kernels, kernels, predicates, at) }?;
        let counted = slot.copy_head(MatchOutput::HEAD_BYTES)?;
        Ok(PendingMatches {
            device: self.device.clone(),
            pool: Arc::clone(&self.pool),
            free: Arc::clone(&self.matching.free),
            slot,
            counted,
            output: layout.output,
            block_rows: blocks.iter().map(SealedBlock::num_rows).collect(),
        })
    }
}
