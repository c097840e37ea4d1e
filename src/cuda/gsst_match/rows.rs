//! Blocks on a device, with the places of their rows.

use cudarc::driver::{DeviceRepr, ValidAsZeroBits};

use gsst::layout::{ALIGNMENT_BYTES, HEADER_BYTES};
use gsst::{Block, CodeWidth, SealedBlock};

use super::predicate::{FourGrams, ListUnits, unit_frames};
use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

/// Rows of a frame of packed lengths. The start of every 16th row is stored.
pub(super) const FRAME_ROWS: usize = 128;
/// Bytes after the last block that kernels may read.
pub(super) const SLACK_BYTES: usize = 1024;
/// First bit of the width of differences in a form.
pub(super) const FORM_WIDTH_BIT: u32 = 27;

/// Description of a block for a launch. The kernel has the same struct.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct MatchBlock {
    pub(super) at: u64,
    pub(super) num_rows: u32,
    pub(super) first_row: u32,
    pub(super) first_frame: u32,
    pub(super) first_unit: u32,
    pub(super) first_slot: u32,
    pub(super) unit_frames: u32,
    pub(super) validity_at: u32,
    pub(super) table: u32,
}

/// Description of 128 rows for a launch. The kernel has the same struct.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct MatchFrame {
    pub(super) counts_at: u32,
    pub(super) counts_form: u32,
    pub(super) lengths_at: u32,
    pub(super) lengths_form: u32,
    pub(super) starts: [u32; 8],
}

const _: () = assert!(size_of::<MatchBlock>() == 40 && size_of::<MatchFrame>() == 48);

// SAFETY: integers in C layout without padding or pointers.
unsafe impl DeviceRepr for MatchBlock {}
// SAFETY: all-zero integers are valid.
unsafe impl ValidAsZeroBits for MatchBlock {}
// SAFETY: integers in C layout without padding or pointers.
unsafe impl DeviceRepr for MatchFrame {}
// SAFETY: all-zero integers are valid.
unsafe impl ValidAsZeroBits for MatchFrame {}

/// Blocks on a device, with random access to their rows.
#[derive(Debug)]
pub struct DeviceRows {
    pub(super) bytes: DeviceBuffer<u8>,
    pub(super) frames: DeviceBuffer<MatchFrame>,
    lists: Vec<BlockList>,
    sample: FourGrams,
    pub(super) num_frames: usize,
    pub(super) num_units: usize,
    num_rows: usize,
    stored_len_bytes: u64,
    text_len_bytes: u64,
}

/// The blocks of one width.
#[derive(Debug)]
pub(super) struct BlockList {
    pub(super) units: ListUnits,
    pub(super) tables: DeviceBuffer<u64>,
    pub(super) blocks: DeviceBuffer<MatchBlock>,
}

impl DeviceRows {
    pub(super) fn upload<B: AsRef<[u8]>>(device: &Device, blocks: &[Block<B>]) -> Result<Self, GpuError> {
        let mut plan = Plan::default();
        for block in blocks {
            plan.add(block)?;
        }
        let mut bytes = device.alloc("GSST blocks", plan.len_bytes + SLACK_BYTES)?;
        let copying = GpuError::driver("copying GSST blocks");
        for (block, at) in blocks.iter().zip(&plan.places) {
            let stored = block.as_bytes();
            let mut target = bytes.slice_mut(*at..*at + stored.len());
            device.stream().memcpy_htod(stored, &mut target).map_err(&copying)?;
        }
        for (at, lengths) in &plan.lengths {
            let mut target = bytes.slice_mut(*at..*at + lengths.len());
            device.stream().memcpy_htod(lengths, &mut target).map_err(&copying)?;
        }
        let lists = plan.lists.into_iter().filter(|list| !list.blocks.is_empty());
        Ok(Self {
            bytes,
            frames: device.copy_for("places of rows", &plan.frames)?,
            lists: lists.map(|list| list.upload(device)).collect::<Result<_, _>>()?,
            sample: FourGrams::from_blocks(&blocks.iter().map(SealedBlock::from_valid).collect::<Vec<_>>()),
            num_frames: plan.frames.len(),
            num_units: plan.num_units,
            num_rows: plan.num_rows,
            stored_len_bytes: blocks.iter().map(|block| block.as_bytes().len() as u64).sum(),
            text_len_bytes: blocks.iter().map(|block| block.text_len_bytes() as u64).sum(),
        })
    }

    /// Returns the number of rows, including nulls.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Returns the stored length of the blocks, in bytes.
    pub fn stored_len_bytes(&self) -> u64 {
        self.stored_len_bytes
    }

    /// Returns the length of their text, in bytes.
    pub fn text_len_bytes(&self) -> u64 {
        self.text_len_bytes
    }

    /// Returns the device memory used in addition to the blocks' bytes: symbols and places of rows.
    pub fn overhead_len_bytes(&self) -> u64 {
        let lists = self.lists.iter().map(|list| list.tables.num_bytes() + list.blocks.num_bytes());
        (lists.sum::<usize>() + self.frames.num_bytes()) as u64 + self.bytes.num_bytes() as u64 - self.stored_len_bytes
    }

    pub(super) fn ordinal(&self) -> usize {
        self.bytes.ordinal()
    }

    pub(super) fn sample(&self) -> &FourGrams {
        &self.sample
    }

    pub(super) fn lists(&self) -> &[BlockList] {
        &self.lists
    }
}

/// The input for the device, on the host.
#[derive(Debug)]
struct Plan {
    lists: [ListPlan; 2],
    frames: Vec<MatchFrame>,
    /// Place of each block.
    places: Vec<usize>,
    /// Packed lengths of texts for blocks that lack them, with their places.
    lengths: Vec<(usize, Vec<u8>)>,
    len_bytes: usize,
    num_units: usize,
    num_rows: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            lists: [CodeWidth::Eight, CodeWidth::Twelve].map(ListPlan::new),
            frames: Vec::new(),
            places: Vec::new(),
            lengths: Vec::new(),
            len_bytes: 0,
            num_units: 0,
            num_rows: 0,
        }
    }
}

/// The blocks of one width, on the host.
#[derive(Debug)]
struct ListPlan {
    units: ListUnits,
    tables: Vec<u64>,
    blocks: Vec<MatchBlock>,
}

impl ListPlan {
    fn new(width: CodeWidth) -> Self {
        Self { units: ListUnits::new(width), tables: Vec::new(), blocks: Vec::new() }
    }

    fn upload(self, device: &Device) -> Result<BlockList, GpuError> {
        Ok(BlockList {
            units: self.units,
            tables: device.copy_for("symbol tables", &self.tables)?,
            blocks: device.copy_for("places of blocks", &self.blocks)?,
        })
    }
}

impl Plan {
    fn add<B: AsRef<[u8]>>(&mut self, block: &Block<B>) -> Result<(), GpuError> {
        let at = self.len_bytes;
        self.places.push(at);
        self.len_bytes += block.as_bytes().len();
        if block.num_rows() == 0 {
            return Ok(());
        }
        let first_row = self.num_rows as u32;
        self.num_rows += block.num_rows();
        if self.num_rows > u32::MAX as usize {
            let got = self.num_rows as u64;
            let expected = u64::from(u32::MAX);
            return Err(GpuError::Mismatch { what: "rows of a selection", got, expected });
        }
        let first_frame = self.frames.len() as u32;
        let sections = PackedSections::from_block(block);
        self.add_frames(block, &sections);
        if block.text_ends().is_none() {
            self.add_lengths(block, at, first_frame as usize);
        }
        let num_frames = block.num_rows().div_ceil(FRAME_ROWS);
        let unit_frames = unit_frames(block.num_codes(), num_frames);
        let num_units = num_frames.div_ceil(unit_frames);
        let list = &mut self.lists[usize::from(block.width() == CodeWidth::Twelve)];
        let first_unit = list.units.num_units();
        let table = list.blocks.len() as u32;
        list.blocks.push(MatchBlock {
            at: at as u64,
            num_rows: block.num_rows() as u32,
            first_row,
            first_frame,
            first_unit,
            first_slot: self.num_units as u32,
            unit_frames: unit_frames as u32,
            validity_at: if block.num_nulls() > 0 { sections.validity_at as u32 } else { 0 },
            table,
        });
        list.units.push(num_units as u32);
        list.tables.extend(block.table().packed());
        self.num_units += num_units;
        Ok(())
    }

    /// Adds the frames of a block, and one more that stores the end of its codes.
    fn add_frames<B: AsRef<[u8]>>(&mut self, block: &Block<B>, sections: &PackedSections) {
        let bytes = block.as_bytes();
        let has_lengths = block.text_ends().is_some();
        let (mut counts_at, mut lengths_at) = (sections.counts_at, sections.lengths_at);
        for first in (0..block.num_rows()).step_by(FRAME_ROWS) {
            let num_rows = FRAME_ROWS.min(block.num_rows() - first);
            let counts = read_frame(bytes, &mut counts_at, num_rows);
            let lengths = if has_lengths { read_frame(bytes, &mut lengths_at, num_rows) } else { (0, 0) };
            // Groups after the last row start at the end of all codes.
            let start_of = |group: usize| block.code_ends()[(first + 16 * group).min(block.num_rows())];
            self.frames.push(MatchFrame {
                counts_at: counts.0,
                counts_form: counts.1,
                lengths_at: lengths.0,
                lengths_form: lengths.1,
                starts: std::array::from_fn(start_of),
            });
        }
        let end = MatchFrame { starts: [block.num_codes() as u32; 8], ..MatchFrame::default() };
        self.frames.push(end);
    }

    /// Packs the lengths of texts of a block that lacks them, with 24 bits each.
    fn add_lengths<B: AsRef<[u8]>>(&mut self, block: &Block<B>, at: usize, first_frame: usize) {
        let offsets = block.decode_all().offsets;
        let length = |pair: &[u32]| (pair[1] - pair[0]).to_le_bytes();
        let mut packed: Vec<u8> = Vec::with_capacity(3 * block.num_rows());
        offsets.windows(2).for_each(|pair| packed.extend_from_slice(&length(pair)[..3]));
        let lengths_at = self.len_bytes - at;
        let num_frames = self.frames.len() - 1 - first_frame;
        for (i, frame) in self.frames[first_frame..].iter_mut().take(num_frames).enumerate() {
            frame.lengths_at = (lengths_at + 3 * FRAME_ROWS * i) as u32;
            frame.lengths_form = 24 << FORM_WIDTH_BIT;
        }
        let place = self.len_bytes;
        self.len_bytes += packed.len().next_multiple_of(ALIGNMENT_BYTES);
        self.lengths.push((place, packed));
    }
}

/// Starts of the packed sections of a block, as in the figure of `gsst::layout`.
struct PackedSections {
    counts_at: usize,
    lengths_at: usize,
    validity_at: usize,
}

impl PackedSections {
    fn from_block<B: AsRef<[u8]>>(block: &Block<B>) -> Self {
        let header = block.as_bytes();
        let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let codes_end = HEADER_BYTES + block.width().stored_bytes(block.num_codes());
        let table_at = codes_end.next_multiple_of(ALIGNMENT_BYTES) + 4 * block.splits().len();
        let counts_at = table_at + number(32) as usize;
        let lengths_at = counts_at + number(36) as usize;
        Self { counts_at, lengths_at, validity_at: lengths_at + number(40) as usize }
    }
}

/// Reads the head of the frame at `at`, whose bytes must exist. Returns the place and the form of
/// its differences, and advances `at` past the frame.
fn read_frame(block: &[u8], at: &mut usize, num_rows: usize) -> (u32, u32) {
    let width = u32::from(block[*at]);
    let mut smallest = 0;
    let mut shift = 0;
    loop {
        *at += 1;
        smallest |= u32::from(block[*at] & 0x7f) << shift;
        shift += 7;
        if block[*at] < 0x80 {
            break;
        }
    }
    let differences_at = *at + 1;
    *at = differences_at + (num_rows * width as usize).div_ceil(8);
    (differences_at as u32, smallest | width << FORM_WIDTH_BIT)
}
