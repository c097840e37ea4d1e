//! Numbering of units. A unit is the 1 to 8 frames of a block that a warp takes at a time.

use gsst::CodeWidth;

/// Largest number of frames of a unit, and its intended number of codes. Marks of 16,384 codes fit.
pub(super) const MAX_UNIT_FRAMES: usize = 8;
const UNIT_CODES: usize = 12_288;

/// Returns the frames per unit of a block, so that the marks of its codes fit.
pub(super) fn unit_frames(num_codes: usize, num_frames: usize) -> usize {
    (UNIT_CODES * num_frames / num_codes.max(1)).clamp(1, MAX_UNIT_FRAMES)
}

/// The units of the blocks of one code width.
#[derive(Debug)]
pub(super) struct ListUnits {
    width: CodeWidth,
    /// First unit of each block, and after them the number of units.
    starts: Vec<u32>,
}

/// A group of consecutive blocks of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockGroup {
    pub(super) first_block: usize,
    pub(super) num_blocks: usize,
    pub(super) first_unit: u32,
    pub(super) end_unit: u32,
}

impl ListUnits {
    pub(super) fn new(width: CodeWidth) -> Self {
        Self { width, starts: vec![0] }
    }

    /// Adds a block of `num_units` units.
    pub(super) fn push(&mut self, num_units: u32) {
        self.starts.push(self.num_units() + num_units);
    }

    pub(super) fn width(&self) -> CodeWidth {
        self.width
    }

    pub(super) fn num_blocks(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn num_units(&self) -> u32 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Returns the largest number of blocks of a group.
    pub(super) fn max_group_blocks(&self, tables_len_bytes: usize) -> usize {
        self.num_blocks().min(blocks_per_group(tables_len_bytes))
    }

    /// Returns groups of blocks whose tables, `tables_len_bytes` each, fit into their memory.
    pub(super) fn groups(&self, tables_len_bytes: usize) -> Vec<BlockGroup> {
        let num_per_group = blocks_per_group(tables_len_bytes);
        let group = |first_block: usize| {
            let end = (first_block + num_per_group).min(self.num_blocks());
            BlockGroup {
                first_block,
                num_blocks: end - first_block,
                first_unit: self.starts[first_block],
                end_unit: self.starts[end],
            }
        };
        (0..self.num_blocks()).step_by(num_per_group).map(group).collect()
    }
}

/// Returns the number of blocks whose tables are made at a time. Grids have at most 65,535 layers.
fn blocks_per_group(tables_len_bytes: usize) -> usize {
    (super::TABLES_BYTES / tables_len_bytes).clamp(1, 65_535)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_all_units_once() {
        let mut units = ListUnits::new(CodeWidth::Eight);
        [3, 1, 2, 5].into_iter().for_each(|num_units| units.push(num_units));
        let groups = units.groups(super::super::TABLES_BYTES / 3);
        let of = |first_block, num_blocks, first_unit, end_unit| BlockGroup {
            first_block,
            num_blocks,
            first_unit,
            end_unit,
        };
        assert_eq!(groups, [of(0, 3, 0, 6), of(3, 1, 6, 11)]);
        assert_eq!((units.num_blocks(), units.num_units()), (4, 11));
        assert_eq!(units.groups(usize::MAX).len(), 4);
        assert!(ListUnits::new(CodeWidth::Twelve).groups(1).is_empty());
    }

    #[test]
    fn units_have_as_many_frames_as_marks_fit() {
        assert_eq!(unit_frames(0, 1), MAX_UNIT_FRAMES);
        assert_eq!(unit_frames(UNIT_CODES * 10, 10), 1);
        assert_eq!(unit_frames(UNIT_CODES, 4), 4);
    }
}
