//! The anchors that occur more than once: a Bloom filter with two bits for each place.
//!
//! ```text
//! block of 64 places   seen    0 1 0 1 1 0 …      the first time, all four places of an anchor are set
//!                      again   0 1 0 0 0 0 …      the next time, they are set here
//! ```
//!
//! The four places of an anchor lie in one block, so that each anchor takes one load from memory
//! (Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters", 2007). An anchor that
//! occurs twice is always found. With 16 places for each anchor, one of a hundred that occur once is
//! found, too. It costs memory and time, but no row.

/// Number of anchors for each block.
const ANCHORS_PER_BLOCK: u64 = 4;
const BLOCK_BYTES: u64 = 16;

/// Set of anchors, with those that were added more than once.
#[derive(Debug)]
pub(super) struct AnchorFilter {
    /// Places that were seen, and places that were seen again.
    blocks: Vec<[u64; 2]>,
}

impl AnchorFilter {
    /// Creates an empty filter for `num_anchors` anchors, of at most `max_bytes`.
    pub fn new(num_anchors: u64, max_bytes: u64) -> Self {
        let num_blocks = num_anchors.div_ceil(ANCHORS_PER_BLOCK);
        let num_blocks = num_blocks.min(max_bytes / BLOCK_BYTES).clamp(1, 1 << 32);
        Self { blocks: vec![[0; 2]; num_blocks as usize] }
    }

    /// Adds an anchor.
    #[inline]
    pub fn add(&mut self, anchor: u64) {
        let places = places_of(anchor);
        let block = self.block_of(anchor);
        let [seen, again] = &mut self.blocks[block];
        *again |= if *seen & places == places { places } else { 0 };
        *seen |= places;
    }

    /// Returns true if an anchor was added more than once, and in few other cases.
    #[inline]
    pub fn is_repeated(&self, anchor: u64) -> bool {
        let places = places_of(anchor);
        self.blocks[self.block_of(anchor)][1] & places == places
    }

    /// Returns the memory in bytes.
    pub fn memory_bytes(&self) -> u64 {
        size_of_val(self.blocks.as_slice()) as u64
    }

    #[inline]
    fn block_of(&self, anchor: u64) -> usize {
        // Anchors are of low rank, so their first bits are mostly 0.
        let mixed = anchor.wrapping_mul(0xff51_afd7_ed55_8ccd);
        (((mixed >> 32) * self.blocks.len() as u64) >> 32) as usize
    }
}

#[inline]
fn places_of(anchor: u64) -> u64 {
    1 << (anchor & 63)
        | 1 << (anchor >> 6 & 63)
        | 1 << (anchor >> 12 & 63)
        | 1 << (anchor >> 18 & 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_anchors_are_found_and_few_others() {
        let anchor = |at: u64| {
            let product = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            product ^ product >> 32
        };
        let mut filter = AnchorFilter::new(11_000, u64::MAX);
        assert_eq!(filter.memory_bytes(), 44_000);
        (0..10_000).chain(0..1_000).for_each(|at| filter.add(anchor(at)));
        assert!((0..1_000).all(|at| filter.is_repeated(anchor(at))));
        let num_others = (1_000..10_000).filter(|&at| filter.is_repeated(anchor(at))).count();
        assert!(num_others < 200, "{num_others}");
        // A filter with too little room finds all that are repeated, too.
        let mut small = AnchorFilter::new(u64::MAX, 0);
        (0..1_000).chain(0..1_000).for_each(|at| small.add(anchor(at)));
        assert!((0..1_000).all(|at| small.is_repeated(anchor(at))));
    }
}
