//! Selection of rows of GSST blocks by a predicate on a device: the wrapper of
//! `kernels/gsst_match.cu`.
//!
//! ```text
//! host     Block, Block, …  ──upload──▶  DeviceRows      bytes of blocks, places of frames of rows
//!          RowPredicate                      │
//!                   └────────select──────────┤  tables ▶ mask ▶ scan ▶ write
//! device                                     ▼
//!          DeviceSelection      numbers of the rows that match, ascending; offsets; text
//! ```
//!
//! The predicate is an automaton over bytes. The device turns it into an automaton over the codes
//! of each block. If the pattern starts with `%`, it also makes a filter that rejects most rows
//! without the automaton. Only rows that match are decoded.
//!
//! In addition to its bytes, a block takes 48 bytes for every 128 rows and 2 KiB (8 bits) or 32 KiB
//! (12 bits) for its symbols. A block written without lengths of texts also takes 3 bytes per row.
//! A call takes [`DeviceSelection::scratch_len_bytes`] more, at most 16 MiB of them for tables.
//!
//! The selection suits predicates that few rows match. If more than about 2 % match, decoding all
//! rows ([`GsstDecoder`](super::GsstDecoder)) alone takes less time; at 10 %, about half.

#![allow(unsafe_code, reason = "launching kernels")]

mod kernels;
mod predicate;
mod rows;
mod run;
mod selection;

use std::sync::{Arc, OnceLock};

use gsst::{Block, ByteAutomaton, Pattern};

use super::device::Device;
use crate::error::GpuError;
use kernels::{Kernels, ListAddresses, MaskInputs, MatchAddresses};
pub use predicate::RowPredicate;
pub use rows::DeviceRows;
pub(super) use run::{MatchLayout, MatchOutput, MatchRunKernels};
pub use selection::DeviceSelection;
use selection::list_addresses;

const KERNEL: &str = "gsst_match";
/// Largest size of the tables of a query, or that of one block's tables. Blocks are processed in
/// groups.
const TABLES_BYTES: usize = 16 << 20;

/// A matcher of rows of GSST blocks on a device. The first rows load its kernels.
///
/// ```no_run
/// use tadoc_cuda::{Device, GsstMatcher};
/// use gsst::{Block, BlockOptions, Pattern, write_block};
///
/// let rows = [Some(&b"http://a.example"[..]), None, Some(b"http://b.example")];
/// let block = Block::open(write_block(&rows, &BlockOptions::default())?)?;
/// let matcher = GsstMatcher::new(&Device::open(0)?);
/// let rows = matcher.upload(&[block])?;
/// let mut selection = matcher.selection()?;
/// let has_b = matcher.like(&Pattern::contains(b"b."))?;
/// matcher.select(&rows, &has_b, &mut selection)?;
/// assert_eq!(selection.rows_to_host()?, [2]);
/// assert_eq!(selection.text_to_host()?, b"http://b.example");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct GsstMatcher {
    device: Device,
    kernels: Arc<OnceLock<Kernels>>,
}

impl GsstMatcher {
    /// Builds a matcher for `device`. Loads nothing yet.
    pub fn new(device: &Device) -> Self {
        Self { device: device.clone(), kernels: Arc::default() }
    }

    /// Loads the kernels, unless they are loaded already.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the device is too old or has too little shared memory;
    /// [`GpuError::Driver`].
    pub fn load(&self) -> Result<(), GpuError> {
        self.kernels().map(|_| ())
    }

    /// Returns the kernels for runs that were not checked.
    pub(super) fn run_kernels(&self) -> Result<MatchRunKernels, GpuError> {
        MatchRunKernels::new(&self.device, self.kernels()?)
    }

    fn kernels(&self) -> Result<&Kernels, GpuError> {
        if let Some(kernels) = self.kernels.get() {
            return Ok(kernels);
        }
        let kernels = Kernels::new(&self.device)?;
        Ok(self.kernels.get_or_init(|| kernels))
    }

    /// Builds the predicate "like `pattern`". Null rows do not match.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if its automaton has more than 256 states.
    pub fn like(&self, pattern: &Pattern) -> Result<RowPredicate, GpuError> {
        let automaton = ByteAutomaton::new(pattern).ok_or_else(|| self.too_many_states())?;
        Ok(RowPredicate::new(&automaton, pattern.floating_literal()))
    }

    /// Builds the predicate "one of `constants`". Null rows do not match.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if its automaton has more than 256 states, that is, if the
    /// constants have more than 254 different prefixes.
    pub fn one_of(&self, constants: &[&[u8]]) -> Result<RowPredicate, GpuError> {
        let automaton = ByteAutomaton::one_of(constants).ok_or_else(|| self.too_many_states())?;
        Ok(RowPredicate::new(&automaton, Vec::new()))
    }

    fn too_many_states(&self) -> GpuError {
        GpuError::Unsupported {
            device: self.device.name().to_owned(),
            kernel: KERNEL,
            reason: "the predicate's automaton has more than 256 states".to_owned(),
        }
    }

    /// Copies blocks to the device, with the places of their rows.
    ///
    /// Decodes blocks without lengths of texts once, to compute the lengths.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`]; [`GpuError::Driver`]; [`GpuError::Mismatch`] if the blocks have
    /// 2^32 rows or more.
    pub fn upload<B: AsRef<[u8]>>(&self, blocks: &[Block<B>]) -> Result<DeviceRows, GpuError> {
        DeviceRows::upload(&self.device, blocks)
    }

    /// Builds an empty selection, to be filled by [`GsstMatcher::select`].
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn selection(&self) -> Result<DeviceSelection, GpuError> {
        DeviceSelection::new(&self.device)
    }

    /// Replaces the content of `selection` by the rows that match `predicate`. Allocates device
    /// memory only if the selection has too little. Waits for the number of rows, not for their
    /// text.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if the rows or the selection lie on another device, or if the text of
    /// the selection has 2^32 bytes or more; [`GpuError::OutOfMemory`]; [`GpuError::Driver`]. The
    /// content of the selection is then unspecified.
    pub fn select(
        &self,
        rows: &DeviceRows,
        predicate: &RowPredicate,
        selection: &mut DeviceSelection,
    ) -> Result<(), GpuError> {
        let expected = self.device.context().ordinal();
        for got in [rows.ordinal(), selection.ordinal()] {
            if got != expected {
                let (got, expected) = (got as u64, expected as u64);
                return Err(GpuError::Mismatch { what: "device of a buffer", got, expected });
            }
        }
        if rows.lists().is_empty() {
            return selection.clear();
        }
        let kernels = self.kernels()?;
        selection.prepare(rows, predicate)?;
        let inputs = MaskInputs::new(predicate, rows.sample(), selection.predicate_at());
        let at = selection.addresses(&self.device, rows);
        let lists: Vec<_> = rows.lists().iter().map(|list| list_addresses(list, &self.device)).collect();
        for list in &lists {
            // SAFETY: `rows` was made from validated blocks. `prepare` copied the predicate and
            // made room for intermediate results. The selection is borrowed mutably, and all of it
            // is used only on the device's own stream.
            unsafe { kernels.mask_list(&self.device, &at, list, &inputs) }?;
        }
        // SAFETY: same argument as for the mask. There is at least one unit, because there is a
        // block with rows.
        unsafe { kernels.scan(&self.device, &at) }?;
        // Writes at once if the selection has memory: it may suffice, and then the device need not
        // wait for the host.
        if selection.has_capacity() {
            self.write(&at, &lists, selection)?;
        }
        if !selection.read_totals()? {
            selection.grow()?;
            self.write(&at, &lists, selection)?;
        }
        Ok(())
    }

    /// Writes the matches, as far as `selection` has room for them.
    fn write(
        &self,
        at: &MatchAddresses<'_>,
        lists: &[ListAddresses<'_>],
        selection: &mut DeviceSelection,
    ) -> Result<(), GpuError> {
        let kernels = self.kernels()?;
        let output = selection.output();
        for list in lists {
            // SAFETY: same argument as for the mask, which was written earlier on the same stream.
            // The output is as long as it says.
            unsafe { kernels.write(&self.device, at, list, &output) }?;
        }
        Ok(())
    }
}

/// Tests that the kernel and its wrapper declare the same constants and structs.
#[cfg(test)]
mod tests {
    use super::kernels::{MASK_WARPS, SCAN_THREADS, WRITE_WARPS};
    use super::predicate::MAX_UNIT_FRAMES;
    use super::rows::{FORM_WIDTH_BIT, FRAME_ROWS, MatchBlock, MatchFrame};
    use super::run::{FRAME_GROUPS, LENGTH_BYTES, PLACES_THREADS};

    #[test]
    fn constants_are_those_of_the_kernel() {
        let kernel = concat!(
            include_str!("../../kernels/gsst_match.cu"),
            include_str!("../../kernels/gsst_match.cuh"),
            include_str!("../../kernels/gsst_match_frame.cuh"),
            include_str!("../../kernels/gsst_match_mask.cuh"),
            include_str!("../../kernels/gsst_match_write.cuh"),
            include_str!("../../kernels/gsst_places.cu"),
        );
        for line in [
            format!("constexpr u32 FRAME_ROWS = {FRAME_ROWS};"),
            format!("constexpr u32 MAX_UNIT_FRAMES = {MAX_UNIT_FRAMES};"),
            format!("constexpr u32 FORM_WIDTH_BIT = {FORM_WIDTH_BIT};"),
            format!("constexpr u32 MASK_WARPS = {MASK_WARPS};"),
            format!("constexpr u32 WRITE_WARPS = {WRITE_WARPS};"),
            format!("constexpr u32 SCAN_THREADS = {SCAN_THREADS};"),
            format!("constexpr u32 THREADS = {PLACES_THREADS};"),
            format!("constexpr u32 LENGTH_BYTES = {LENGTH_BYTES};"),
            "constexpr u32 HEADER_BYTES = 64;".to_owned(),
        ] {
            assert!(kernel.contains(&line), "{line}");
        }
        assert_eq!(gsst::layout::HEADER_BYTES, 64);
        assert!(kernel.contains("constexpr u32 GROUP_ROWS = 16;"));
        assert_eq!(FRAME_GROUPS as usize * 16, FRAME_ROWS);
    }

    #[test]
    fn fields_are_those_of_the_kernel() {
        let offsets = [
            std::mem::offset_of!(MatchBlock, at),
            std::mem::offset_of!(MatchBlock, num_rows),
            std::mem::offset_of!(MatchBlock, first_row),
            std::mem::offset_of!(MatchBlock, first_frame),
            std::mem::offset_of!(MatchBlock, first_unit),
            std::mem::offset_of!(MatchBlock, first_slot),
            std::mem::offset_of!(MatchBlock, unit_frames),
            std::mem::offset_of!(MatchBlock, validity_at),
            std::mem::offset_of!(MatchBlock, table),
        ];
        assert_eq!(offsets, [0, 8, 12, 16, 20, 24, 28, 32, 36]);
        let offsets = [
            std::mem::offset_of!(MatchFrame, counts_at),
            std::mem::offset_of!(MatchFrame, counts_form),
            std::mem::offset_of!(MatchFrame, lengths_at),
            std::mem::offset_of!(MatchFrame, lengths_form),
            std::mem::offset_of!(MatchFrame, starts),
        ];
        assert_eq!(offsets, [0, 4, 8, 12, 16]);
    }
}
