//! The rows that match, in device memory, with the copy back to the host.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, ValidAsZeroBits, result};

use super::kernels::{ListAddresses, MatchAddresses, OutputAddresses, UNITS_PER_TILE};
use super::predicate::RowPredicate;
use super::rows::{BlockList, DeviceRows};
use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

/// Rows that match a predicate: their numbers, offsets and text, in device memory.
///
/// Later calls reuse the memory, including that of intermediate results.
#[derive(Debug)]
pub struct DeviceSelection {
    device: Device,
    pub(super) rows: DeviceBuffer<u32>,
    pub(super) offsets: DeviceBuffer<u32>,
    pub(super) text: DeviceBuffer<u8>,
    num_rows: usize,
    text_len_bytes: usize,
    pub(super) scratch: Scratch,
}

/// Intermediate results of a call.
#[derive(Debug)]
pub(super) struct Scratch {
    /// Automaton over bytes, flags of states and literal.
    pub(super) predicate: DeviceBuffer<u8>,
    /// Next state by block, state and code.
    pub(super) next: DeviceBuffer<u8>,
    /// Entry of the filter by block and code.
    pub(super) filters: DeviceBuffer<u32>,
    /// Mask with one bit per row, 4 words per frame.
    pub(super) mask: DeviceBuffer<u32>,
    /// Rows and bytes of text of each unit, as two halves of a word.
    pub(super) sums: DeviceBuffer<u64>,
    /// Rows and bytes of text of every 1,024 units, as two words.
    pub(super) tile_sums: DeviceBuffer<u64>,
    pub(super) rows_before: DeviceBuffer<u32>,
    pub(super) text_before: DeviceBuffer<u64>,
    /// Totals of rows and of bytes of text.
    pub(super) totals: DeviceBuffer<u64>,
}

impl DeviceSelection {
    pub(super) fn new(device: &Device) -> Result<Self, GpuError> {
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

    pub(super) fn ordinal(&self) -> usize {
        self.rows.ordinal()
    }

    /// Returns the number of rows that fit.
    pub(super) fn max_rows(&self) -> usize {
        self.rows.len().min(self.offsets.len() - 1)
    }

    /// Returns true if at least one row fits.
    pub(super) fn has_capacity(&self) -> bool {
        self.max_rows() > 0
    }

    /// Makes the selection empty.
    pub(super) fn clear(&mut self) -> Result<(), GpuError> {
        (self.num_rows, self.text_len_bytes) = (0, 0);
        let mut first = self.offsets.slice_mut(..1);
        let copied = self.device.stream().memcpy_htod(&[0], &mut first);
        copied.map_err(GpuError::driver("clearing a selection"))
    }

    /// Makes room for intermediate results, and copies the predicate to the device.
    pub(super) fn prepare(&mut self, rows: &DeviceRows, predicate: &RowPredicate) -> Result<(), GpuError> {
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
    pub(super) fn addresses<'a>(&self, device: &'a Device, rows: &DeviceRows) -> MatchAddresses<'a> {
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
        }
    }

    /// Returns the address of the predicate that [`DeviceSelection::prepare`] copied.
    pub(super) fn predicate_at(&self) -> u64 {
        address(&self.scratch.predicate, self.device.stream())
    }

    /// Returns the addresses and the capacity for the matching rows.
    pub(super) fn output(&self) -> OutputAddresses {
        let stream = self.device.stream();
        OutputAddresses {
            rows: address(&self.rows, stream),
            offsets: address(&self.offsets, stream),
            text: address(&self.text, stream),
            max_rows: self.max_rows() as u64,
            max_text: (self.text.len() as u64).min(u64::from(u32::MAX)),
        }
    }

    /// Reads the numbers of matching rows and bytes. Returns true if the selection has room for
    /// them.
    pub(super) fn read_totals(&mut self) -> Result<bool, GpuError> {
        let reading = self.device.fault("reading how many rows match");
        let mut totals = [0; 2];
        self.device.stream().memcpy_dtoh(&self.scratch.totals, &mut totals).map_err(reading)?;
        self.device.synchronize()?;
        let [num_rows, text_len_bytes] = totals;
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
    pub(super) fn grow(&mut self) -> Result<(), GpuError> {
        const WHAT: &str = "a selection";
        at_least(&self.device, WHAT, &mut self.rows, self.num_rows)?;
        at_least(&self.device, WHAT, &mut self.offsets, self.num_rows.max(1) + 1)?;
        at_least(&self.device, WHAT, &mut self.text, self.text_len_bytes)
    }
}

/// Returns the addresses of a list's blocks and tables.
pub(super) fn list_addresses<'a>(list: &'a BlockList, device: &Device) -> ListAddresses<'a> {
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
