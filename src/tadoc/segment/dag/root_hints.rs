//! Hints that limit the search for a byte of the root to a few blocks.
//!
//! ```text
//! bytes of the root   |........|........|........|.....     1 << shift bytes each
//! hints               0        2        9        11         last block that starts there or before
//! blocks              0 1 2 3 4 5 6 7 8 9 10 11 12 ...      of the prefix sums
//! ```
//!
//! The root is most of a grammar, and text is too irregular for a proportional guess. A binary
//! search around such a guess took about nine cache misses in a document of 2,500 blocks. A hint
//! takes one, and leaves about as many blocks as share a hint. The hints need O(root / 12) time to
//! build, and 1 or 4 bytes for 12 positions of the root.

/// Hints for positions in the root.
#[derive(Debug)]
pub(super) struct RootHints {
    shift: u32,
    /// Last block that starts at or before each multiple of `1 << shift`, then the last block of
    /// all.
    blocks: Vec<u32>,
}

impl RootHints {
    /// Creates the hints from the start of each block of the root, ascending from 0, and the length
    /// of the root in bytes. On average `blocks_per_hint` blocks share a hint.
    pub fn new(starts: impl ExactSizeIterator<Item = u64>, len_bytes: u64, blocks_per_hint: usize) -> Self {
        let num_blocks = starts.len();
        let max_hints = (num_blocks / blocks_per_hint) as u64;
        let mut shift = 0;
        while len_bytes >> shift > max_hints {
            shift += 1;
        }
        let mut blocks = Vec::with_capacity((len_bytes >> shift) as usize + 2);
        for (block, start) in (0u32..).zip(starts) {
            // Multiples below this start belong to the previous block.
            let num_below = start.div_ceil(1 << shift).min((len_bytes >> shift) + 1) as usize;
            while blocks.len() < num_below {
                blocks.push(block.saturating_sub(1));
            }
        }
        let last = num_blocks.saturating_sub(1) as u32;
        blocks.resize((len_bytes >> shift) as usize + 2, last);
        Self { shift, blocks }
    }

    /// Returns the first and the last block that may contain byte `offset` of the root.
    #[inline]
    pub fn window(&self, offset: u64) -> (usize, usize) {
        let hint = (offset >> self.shift) as usize;
        (self.blocks[hint] as usize, self.blocks[hint + 1] as usize)
    }

    pub fn memory_bytes(&self) -> usize {
        4 * self.blocks.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn windows_hold_the_block_of_every_byte(
            blocks_per_hint in 1..6usize,
            lens in prop::collection::vec(prop_oneof![Just(0u64), 1u64..50, 1u64..100_000], 1..60),
        ) {
            let ends: Vec<u64> = lens.iter().scan(0, |sum, len| { *sum += len; Some(*sum) }).collect();
            let starts = [0].into_iter().chain(ends[..ends.len() - 1].iter().copied());
            let starts: Vec<u64> = starts.collect();
            let len_bytes = ends[ends.len() - 1];
            let hints = RootHints::new(starts.iter().copied(), len_bytes, blocks_per_hint);
            for at in starts.iter().flat_map(|&start| [start, start.saturating_sub(1), start + 1]) {
                if at < len_bytes {
                    let block = starts.partition_point(|&start| start <= at) - 1;
                    let (first, last) = hints.window(at);
                    prop_assert!(first <= block && block <= last, "{at}: {first} {block} {last}");
                }
            }
            prop_assert!(hints.blocks.len() <= lens.len() / blocks_per_hint + 2);
        }
    }
}
