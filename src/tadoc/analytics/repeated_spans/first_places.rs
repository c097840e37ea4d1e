//! The first place of each window, by its hash: a table with open addressing.
//!
//! ```text
//! slot    hash of the window (61 bits) │ bits of its anchor (24) and its place (40), or 0
//! ```
//!
//! A slot has 16 bytes, and at most three of four are taken. Two windows are taken for equal if both
//! numbers agree, 85 bits.

/// Number of bits of a place.
pub(super) const PLACE_BITS: u32 = 40;
const PLACES: u64 = (1 << PLACE_BITS) - 1;
const MIN_SLOTS: usize = 1 << 10;
const SLOT_BYTES: usize = 16;

/// The table is as large as it may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// First places of windows.
#[derive(Debug)]
pub(super) struct FirstPlaces {
    slots: Vec<[u64; 2]>,
    num_taken: usize,
    max_slots: usize,
}

impl FirstPlaces {
    /// Creates an empty table. While it grows it takes at most `max_bytes`, or 24 KiB if this is more.
    pub fn new(max_bytes: u64) -> Self {
        // The slots before and after growing stand side by side.
        let max_slots = usize::try_from(max_bytes / (2 * SLOT_BYTES as u64)).unwrap_or(usize::MAX);
        let max_slots = 1 << max_slots.max(MIN_SLOTS).ilog2();
        Self { slots: vec![[0; 2]; MIN_SLOTS], num_taken: 0, max_slots }
    }

    /// Returns the first place of the window with this `hash` and `anchor`. If it has none yet, that
    /// is `place`.
    ///
    /// # Errors
    /// [`Full`] if there is no room for it.
    #[inline]
    pub fn first(&mut self, hash: u64, anchor: u64, place: u64) -> Result<u64, Full> {
        let checked = anchor << PLACE_BITS;
        let mut slot = self.slot_of(hash);
        loop {
            let [other, found] = self.slots[slot];
            if found == 0 {
                break;
            }
            if other == hash && found & !PLACES == checked {
                return Ok((found & PLACES) - 1);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        if self.num_taken >= self.slots.len() / 4 * 3 {
            self.grow()?;
            slot = self.free_slot(hash);
        }
        self.slots[slot] = [hash, checked | (place + 1)];
        self.num_taken += 1;
        Ok(place)
    }

    /// Returns the memory in bytes, as much as growing took.
    pub fn memory_bytes(&self) -> u64 {
        (self.slots.len() / 2 * 3 * SLOT_BYTES) as u64
    }

    #[cold]
    fn grow(&mut self) -> Result<(), Full> {
        let num_slots = 2 * self.slots.len();
        if num_slots > self.max_slots {
            return Err(Full);
        }
        let before = std::mem::replace(&mut self.slots, vec![[0; 2]; num_slots]);
        for taken in before.into_iter().filter(|slot| slot[1] != 0) {
            let slot = self.free_slot(taken[0]);
            self.slots[slot] = taken;
        }
        Ok(())
    }

    fn free_slot(&self, hash: u64) -> usize {
        let mut slot = self.slot_of(hash);
        while self.slots[slot][1] != 0 {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    #[inline]
    fn slot_of(&self, hash: u64) -> usize {
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - self.slots.len().ilog2())) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn first_places_are_those_of_a_map() {
        let mut table = FirstPlaces::new(1 << 20);
        let mut map = HashMap::new();
        let mut state = 1u64;
        for place in 0..40_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Few hashes that differ in their anchors, and many that differ.
            let (hash, anchor) = match place % 3 {
                0 => (state >> 60, state >> 50 & 7),
                _ => (state >> 50, 0),
            };
            let expected = *map.entry((hash, anchor)).or_insert(place);
            assert_eq!(table.first(hash, anchor, place), Ok(expected));
        }
        assert!(table.memory_bytes() <= 1 << 20);
    }

    #[test]
    fn a_full_table_says_so_and_keeps_what_it_has() {
        let mut table = FirstPlaces::new(0);
        let outcomes: Vec<_> = (0..1_000).map(|place| table.first(place, 0, place)).collect();
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), MIN_SLOTS / 4 * 3);
        assert_eq!(outcomes.last(), Some(&Err(Full)));
        assert_eq!(table.first(5, 0, 2_000), Ok(5));
        assert_eq!(table.memory_bytes(), 24 << 10);
    }
}
