//! Runs of which only the rows that match come back.
//!
//! ```text
//! slot a   write │ copy in │ check, match │ how many │ copy back what matches │
//! slot b           write │ copy in │ check, match │ how many │ copy back …
//! ```
//!
//! How much comes back is known when the device has matched, so a run keeps its slot until it was
//! waited for. There are as many slots as runs were ever on their way at the same time.

#![allow(unsafe_code, reason = "launching what was laid out here")]

use std::sync::{Arc, OnceLock};

use gsst::SealedBlock;

use super::super::device::Device;
use super::super::error::GpuError;
use super::super::gsst_match::{
    GsstMatcher, MatchLayout, MatchOutput, MatchRunKernels, RowPredicate,
};
use super::super::lost;
use super::super::matched_rows::{FreeSlots, PendingMatches};
use super::super::run_kernels::RunPlace;
use super::super::scan_slot::{Part, Slot, set_head};
use super::GsstScanner;

/// What a scanner has for matching.
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
    /// Makes predicates for [`GsstScanner::submit_matching`].
    pub fn matcher(&self) -> &GsstMatcher {
        &self.matching.matcher
    }

    /// Gives back what slots for matching keep that no run has.
    pub(crate) fn release_idle_matching(&self) {
        while self.matching.free.take().is_some() {}
    }

    /// Gives a run to the device to find the rows that match all of `predicates`: their numbers come
    /// back to host memory, and, where it is wanted, their text. Blocks are checked as for
    /// [`GsstScanner::submit`], but for UTF-8. Returns when `blocks` are not needed any more.
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
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] where the run has 2^31 bytes of text or rows or more, or there is no
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
        slot.reserve(Part::Scratch, layout.scratch_len_bytes)?;
        slot.reserve(Part::Output, layout.output.len_bytes)?;
        let at = RunPlace {
            stream: &slot.stream,
            input: slot.address(Part::Input),
            scratch: slot.address(Part::Scratch),
            output: slot.address(Part::Output),
        };
        set_head(&self.device, &slot.stream, at.output, layout.output.zeros())?;
        // SAFETY: memory of the layout's lengths was taken, its input copied and its head set, all on
        // the stream of this slot, which nobody else has until it was waited for.
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
