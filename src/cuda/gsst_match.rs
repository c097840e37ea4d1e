//! Selection of rows of GSST blocks by a predicate on a device: the wrapper of `kernels/gsst_match.cu`.
//!
//! ```text
//! host     Block, Block, …  ──upload──▶  DeviceRows      bytes of blocks, places of frames of rows
//!          RowPredicate                      │
//!                   └────────select──────────┤  tables ▶ mask ▶ scan ▶ write or dense
//! device                                     ▼
//!          DeviceSelection      numbers of the rows that match, ascending; offsets; text
//! ```
//!
//! The predicate is an automaton over bytes. The device turns it into an automaton over the codes of each block. If the
//! pattern starts with `%`, it also makes a filter that rejects most rows without the automaton; if it is `%literal%`,
//! the filter accepts most of the others, too. Rows that match are decoded one by one if they are few. From a quarter
//! of all rows on everything is decoded, and the rest is dropped on the way (`kernels/gsst_match_dense.cu`).
//!
//! In addition to its bytes, a block takes 48 bytes for every 128 rows and 2 KiB (8 bits) or 32 KiB
//! (12 bits) for its symbols. A block written without lengths of texts also takes 3 bytes per row.
//! A call takes [`DeviceSelection::scratch_len_bytes`] more, at most 16 MiB of them for tables.

#![allow(unsafe_code, reason = "launching kernels")]

mod predicate;
mod rows;
mod run;

use std::sync::{Arc, OnceLock};

use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, ValidAsZeroBits, result};
use gsst::{Block, ByteAutomaton, Pattern};

use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use rows::{BlockList, Kernels, ListAddresses, MaskInputs, MatchAddresses, OutputAddresses, UNITS_PER_TILE};

pub use predicate::RowPredicate;
pub use rows::DeviceRows;

pub(super) use run::{MatchLayout, MatchOutput, MatchRunKernels};

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
        Ok(RowPredicate::new(&automaton, pattern.floating_literal(), pattern.is_contains()))
    }

    /// Builds the predicate "one of `constants`". Null rows do not match.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if its automaton has more than 256 states, that is, if the
    /// constants have more than 254 different prefixes.
    pub fn one_of(&self, constants: &[&[u8]]) -> Result<RowPredicate, GpuError> {
        let automaton = ByteAutomaton::one_of(constants).ok_or_else(|| self.too_many_states())?;
        Ok(RowPredicate::new(&automaton, Vec::new(), false))
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

    /// Returns the number of rows that match `predicate`. Uses the memory of `selection` for intermediate
    /// results, writes no row, and makes the selection empty.
    ///
    /// # Errors
    ///
    /// The errors of [`GsstMatcher::select`].
    pub fn count(
        &self,
        rows: &DeviceRows,
        predicate: &RowPredicate,
        selection: &mut DeviceSelection,
    ) -> Result<usize, GpuError> {
        let found = self.find(rows, predicate, selection)?;
        let num_rows = if found.is_some() { selection.totals_to_host()?[0] as usize } else { 0 };
        selection.clear()?;
        Ok(num_rows)
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
        let Some(found) = self.find(rows, predicate, selection)? else { return selection.clear() };
        // Writes at once if the selection has memory: it may suffice, and then the device need not
        // wait for the host.
        if selection.has_capacity() {
            self.write(&found, selection)?;
        }
        if !selection.read_totals()? {
            selection.grow()?;
            self.write(&found, selection)?;
        }
        Ok(())
    }

    /// Enqueues the mask of the rows that match and the sums before each unit. Returns their addresses, or `None` if
    /// there is no block with rows.
    fn find<'r>(
        &'r self,
        rows: &'r DeviceRows,
        predicate: &RowPredicate,
        selection: &mut DeviceSelection,
    ) -> Result<Option<Found<'r>>, GpuError> {
        let expected = self.device.context().ordinal();
        for got in [rows.ordinal(), selection.ordinal()] {
            if got != expected {
                let got = got as u64;
                let expected = expected as u64;
                return Err(GpuError::Mismatch { what: "device of a buffer", got, expected });
            }
        }
        if rows.lists().is_empty() {
            return Ok(None);
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
        Ok(Some(Found { at, lists }))
    }

    /// Writes the matches that were found, as far as `selection` has room for them.
    fn write(&self, found: &Found<'_>, selection: &DeviceSelection) -> Result<(), GpuError> {
        let kernels = self.kernels()?;
        let output = selection.output();
        for list in &found.lists {
            // SAFETY: same argument as for the mask, which was written earlier on the same stream.
            // The output is as long as it says.
            unsafe { kernels.write(&self.device, &found.at, list, &output) }?;
        }
        Ok(())
    }
}

/// Addresses of rows and of the intermediate results of a search in them. They hold until the next search.
struct Found<'r> {
    at: MatchAddresses<'r>,
    lists: Vec<ListAddresses<'r>>,
}

/// Rows that match a predicate: their numbers, offsets and text, in device memory.
///
/// Later calls reuse the memory, including that of intermediate results.
#[derive(Debug)]
pub struct DeviceSelection {
    device: Device,
    rows: DeviceBuffer<u32>,
    offsets: DeviceBuffer<u32>,
    text: DeviceBuffer<u8>,
    num_rows: usize,
    text_len_bytes: usize,
    scratch: Scratch,
}

/// Intermediate results of a call.
#[derive(Debug)]
struct Scratch {
    /// Automaton over bytes, flags of states and literal.
    predicate: DeviceBuffer<u8>,
    /// Next state by block, state and code.
    next: DeviceBuffer<u8>,
    /// Entry of the filter by block and code.
    filters: DeviceBuffer<u32>,
    /// Mask with one bit per row, 4 words per frame.
    mask: DeviceBuffer<u32>,
    /// Rows and bytes of text of each unit, as two halves of a word.
    sums: DeviceBuffer<u64>,
    /// Rows and bytes of text of every 1,024 units, as two words.
    tile_sums: DeviceBuffer<u64>,
    rows_before: DeviceBuffer<u32>,
    text_before: DeviceBuffer<u64>,
    /// Totals of rows and of bytes of text.
    totals: DeviceBuffer<u64>,
}

impl DeviceSelection {
    fn new(device: &Device) -> Result<Self, GpuError> {
        const WHAT: &str = "a selection";
        Ok(Self {
            device: device.clone(),
            rows: device.alloc(WHAT, 0)?,
            offsets: device.alloc(WHAT, 1)?,
            text: device.alloc(WHAT, 0)?,
            num_rows: 0,
            text_len_bytes: 0,
            scratch: Scratch {
                predicate: device.alloc(WHAT, RowPredicate::MAX_BYTES)?,
                next: device.alloc(WHAT, 0)?,
                filters: device.alloc(WHAT, 0)?,
                mask: device.alloc(WHAT, 0)?,
                sums: device.alloc(WHAT, 0)?,
                tile_sums: device.alloc(WHAT, 0)?,
                rows_before: device.alloc(WHAT, 0)?,
                text_before: device.alloc(WHAT, 0)?,
                totals: device.alloc(WHAT, 2)?,
            },
        })
    }

    /// Returns the number of rows that match.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Returns the length of their text, in bytes.
    pub fn text_len_bytes(&self) -> usize {
        self.text_len_bytes
    }

    /// Returns the device memory of intermediate results, in bytes.
    pub fn scratch_len_bytes(&self) -> u64 {
        let scratch = &self.scratch;
        let small = scratch.predicate.num_bytes() + scratch.totals.num_bytes();
        let tables = scratch.next.num_bytes() + scratch.filters.num_bytes();
        let sums = scratch.sums.num_bytes() + scratch.tile_sums.num_bytes() + scratch.rows_before.num_bytes();
        (small + tables + sums + scratch.mask.num_bytes() + scratch.text_before.num_bytes()) as u64
    }

    /// Sets all bytes of rows, offsets and text to one value. Tests use this to find bytes that
    /// kernels do not write.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub fn fill(&mut self, byte: u8) -> Result<(), GpuError> {
        fill(&self.device, &mut self.rows, byte)?;
        fill(&self.device, &mut self.offsets, byte)?;
        fill(&self.device, &mut self.text, byte)
    }

    /// Returns the numbers of the matching rows, ascending, counted over all blocks.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the work that wrote them.
    pub fn rows_to_host(&self) -> Result<Vec<u32>, GpuError> {
        self.to_host(&self.rows, self.num_rows)
    }

    /// Returns the start of each row's text, and after the last row the end of the text.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the work that wrote them.
    pub fn offsets_to_host(&self) -> Result<Vec<u32>, GpuError> {
        self.to_host(&self.offsets, self.num_rows + 1)
    }

    /// Returns the text of the matching rows, without gaps.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the work that wrote it.
    pub fn text_to_host(&self) -> Result<Vec<u8>, GpuError> {
        self.to_host(&self.text, self.text_len_bytes)
    }

    fn to_host<T: DeviceRepr + ValidAsZeroBits + Clone + Default>(
        &self,
        values: &DeviceBuffer<T>,
        len: usize,
    ) -> Result<Vec<T>, GpuError> {
        let copying = self.device.fault("copying a selection from the device");
        let mut copy = vec![T::default(); len];
        if len > 0 {
            self.device.stream().memcpy_dtoh(&values.slice(..len), &mut copy).map_err(copying)?;
        }
        self.device.synchronize()?;
        Ok(copy)
    }

    fn ordinal(&self) -> usize {
        self.rows.ordinal()
    }

    /// Returns the number of rows that fit.
    fn max_rows(&self) -> usize {
        self.rows.len().min(self.offsets.len() - 1)
    }

    /// Returns true if at least one row fits.
    fn has_capacity(&self) -> bool {
        self.max_rows() > 0
    }

    /// Makes the selection empty.
    fn clear(&mut self) -> Result<(), GpuError> {
        (self.num_rows, self.text_len_bytes) = (0, 0);
        let mut first = self.offsets.slice_mut(..1);
        let copied = self.device.stream().memcpy_htod(&[0], &mut first);
        copied.map_err(GpuError::driver("clearing a selection"))
    }

    /// Makes room for intermediate results, and copies the predicate to the device.
    fn prepare(&mut self, rows: &DeviceRows, predicate: &RowPredicate) -> Result<(), GpuError> {
        const WHAT: &str = "tables and sums of a selection";
        (self.num_rows, self.text_len_bytes) = (0, 0);
        let device = &self.device;
        let scratch = &mut self.scratch;
        let has_filter = !predicate.literal().is_empty();
        for list in rows.lists() {
            let width = list.units.width();
            let num_blocks = list.units.max_group_blocks(predicate.tables_len_bytes(width));
            let num_codes = num_blocks << width.bits();
            at_least(device, WHAT, &mut scratch.next, num_codes * predicate.num_states())?;
            at_least(device, WHAT, &mut scratch.filters, if has_filter { num_codes } else { 0 })?;
        }
        at_least(device, WHAT, &mut scratch.mask, 4 * rows.num_frames)?;
        at_least(device, WHAT, &mut scratch.sums, rows.num_units)?;
        let num_tiles = rows.num_units.div_ceil(UNITS_PER_TILE);
        at_least(device, WHAT, &mut scratch.tile_sums, 2 * num_tiles)?;
        at_least(device, WHAT, &mut scratch.rows_before, rows.num_units)?;
        at_least(device, WHAT, &mut scratch.text_before, rows.num_units)?;
        let bytes = predicate.to_bytes();
        let mut target = scratch.predicate.slice_mut(..bytes.len());
        let copied = device.stream().memcpy_htod(&bytes, &mut target);
        copied.map_err(GpuError::driver("copying a predicate"))
    }

    /// Returns the addresses for a call on `rows`.
    fn addresses<'a>(&self, device: &'a Device, rows: &DeviceRows) -> MatchAddresses<'a> {
        let stream = device.stream();
        let scratch = &self.scratch;
        MatchAddresses {
            stream,
            bytes: address(&rows.bytes, stream),
            frames: address(&rows.frames, stream),
            error: 0,
            next: address(&scratch.next, stream),
            filters: address(&scratch.filters, stream),
            mask: address(&scratch.mask, stream),
            sums: address(&scratch.sums, stream),
            tile_sums: address(&scratch.tile_sums, stream),
            rows_before: address(&scratch.rows_before, stream),
            text_before: address(&scratch.text_before, stream),
            totals: address(&scratch.totals, stream),
            num_units: rows.num_units as u32,
            num_rows: rows.num_rows() as u32,
        }
    }

    /// Returns the address of the predicate that [`DeviceSelection::prepare`] copied.
    fn predicate_at(&self) -> u64 {
        address(&self.scratch.predicate, self.device.stream())
    }

    /// Returns the addresses and the capacity for the matching rows.
    fn output(&self) -> OutputAddresses {
        let stream = self.device.stream();
        OutputAddresses {
            rows: address(&self.rows, stream),
            offsets: address(&self.offsets, stream),
            text: address(&self.text, stream),
            max_rows: self.max_rows() as u64,
            max_text: (self.text.len() as u64).min(u64::from(u32::MAX)),
        }
    }

    /// Waits for the numbers of matching rows and of their bytes.
    fn totals_to_host(&self) -> Result<[u64; 2], GpuError> {
        let reading = self.device.fault("reading how many rows match");
        let mut totals = [0; 2];
        self.device.stream().memcpy_dtoh(&self.scratch.totals, &mut totals).map_err(reading)?;
        self.device.synchronize()?;
        Ok(totals)
    }

    /// Reads the numbers of matching rows and bytes. Returns true if the selection has room for
    /// them.
    fn read_totals(&mut self) -> Result<bool, GpuError> {
        let [num_rows, text_len_bytes] = self.totals_to_host()?;
        if text_len_bytes > u64::from(u32::MAX) {
            let got = text_len_bytes;
            let expected = u64::from(u32::MAX);
            return Err(GpuError::Mismatch { what: "text of a selection", got, expected });
        }
        (self.num_rows, self.text_len_bytes) = (num_rows as usize, text_len_bytes as usize);
        let has_room = self.num_rows <= self.max_rows() && self.text_len_bytes <= self.text.len();
        Ok(has_room && self.has_capacity())
    }

    /// Makes room for the matches.
    fn grow(&mut self) -> Result<(), GpuError> {
        const WHAT: &str = "a selection";
        at_least(&self.device, WHAT, &mut self.rows, self.num_rows)?;
        at_least(&self.device, WHAT, &mut self.offsets, self.num_rows.max(1) + 1)?;
        at_least(&self.device, WHAT, &mut self.text, self.text_len_bytes)
    }
}

/// Returns the addresses of a list's blocks and tables.
fn list_addresses<'a>(list: &'a BlockList, device: &Device) -> ListAddresses<'a> {
    let stream = device.stream();
    ListAddresses { units: &list.units, tables: address(&list.tables, stream), blocks: address(&list.blocks, stream) }
}

/// Returns the address of `memory`, which must be used only on the device's own stream.
fn address<T>(memory: &DeviceBuffer<T>, stream: &Arc<CudaStream>) -> u64 {
    memory.device_ptr(stream).0
}

/// Replaces `memory` if it has fewer than `len` values. Its content is then lost.
fn at_least<T: DeviceRepr + ValidAsZeroBits>(
    device: &Device,
    what: &'static str,
    memory: &mut DeviceBuffer<T>,
    len: usize,
) -> Result<(), GpuError> {
    if memory.len() < len {
        *memory = device.alloc(what, len)?;
    }
    Ok(())
}

fn fill<T>(device: &Device, memory: &mut DeviceBuffer<T>, byte: u8) -> Result<(), GpuError> {
    let filling = GpuError::driver("filling device memory");
    let stream = device.stream();
    device.context().bind_to_thread().map_err(&filling)?;
    let num_bytes = memory.num_bytes();
    let (at, _used_until_here) = memory.device_ptr_mut(stream);
    // SAFETY: the allocation has `num_bytes` bytes, and the borrow lasts until the call is
    // enqueued.
    unsafe { result::memset_d8_async(at, byte, num_bytes, stream.cu_stream()) }.map_err(filling)
}

/// Tests that the kernel and its wrapper declare the same constants and structs.
#[cfg(test)]
mod tests {
    use super::predicate::MAX_UNIT_FRAMES;
    use super::rows::{
        DENSE_WARPS, FORM_WIDTH_BIT, FRAME_ROWS, MASK_WARPS, MatchBlock, MatchFrame, SCAN_THREADS, WRITE_WARPS,
    };
    use super::run::{FRAME_GROUPS, LENGTH_BYTES, PLACES_THREADS};

    #[test]
    fn constants_are_those_of_the_kernel() {
        let kernel = concat!(
            include_str!("../../kernels/gsst_match.cu"),
            include_str!("../../kernels/gsst_match.cuh"),
            include_str!("../../kernels/gsst_match_frame.cuh"),
            include_str!("../../kernels/gsst_match_dense.cu"),
            include_str!("../../kernels/gsst_match_mask.cuh"),
            include_str!("../../kernels/gsst_match_rows.cuh"),
            include_str!("../../kernels/gsst_match_write.cuh"),
            include_str!("../../kernels/gsst_places.cu"),
        );
        for line in [
            format!("constexpr u32 FRAME_ROWS = {FRAME_ROWS};"),
            format!("constexpr u32 MAX_UNIT_FRAMES = {MAX_UNIT_FRAMES};"),
            format!("constexpr u32 FORM_WIDTH_BIT = {FORM_WIDTH_BIT};"),
            format!("constexpr u32 MASK_WARPS = {MASK_WARPS};"),
            format!("constexpr u32 WRITE_WARPS = {WRITE_WARPS};"),
            format!("constexpr u32 DENSE_WARPS = {DENSE_WARPS};"),
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
