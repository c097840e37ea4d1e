//! Elements of one symbol in order of their last use. The coded value is the distance from the end.
//!
//! ```text
//! entries  [c † a † † e b d]      † gap of an element taken from far away, removed by a sweep
//!                 distance 2 ┘ │ └ distance 0
//! ```
//!
//! Taking one of the last [`NEAR_LEN`] entries closes the gap at once, so near distances are exact
//! ranks. Further away a gap stays. The list is swept when one in [`SWEEP_SHARE`] entries is a gap.
//! Distances are at most 9 % too large (0.1 bit), and sweeps move 12 entries for each use.
//! Predicted uses are not recorded here.

/// Number of entries at the end that have no gaps between them.
pub(in crate::format) const NEAR_LEN: usize = 16;
/// Number of entries for each gap at which a sweep starts.
pub(in crate::format) const SWEEP_SHARE: usize = 12;
const GAP: Entry = Entry(u64::MAX);

/// An element that was used, and its number of uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::format) struct Entry(u64);

impl Entry {
    /// Returns the entry of an element, whose id is less than 2^32 - 1, after its first use.
    #[inline]
    pub(in crate::format) fn from_element(element: u32) -> Self {
        Self(u64::from(element) << 32 | 1)
    }

    #[inline]
    pub(in crate::format) fn element(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns a lower bound of the number of uses.
    #[inline]
    pub(in crate::format) fn num_uses(self) -> u32 {
        self.0 as u32
    }

    /// Returns the entry after one more use.
    #[inline]
    pub(in crate::format) fn used_again(self) -> Self {
        Self(self.0 + u64::from(self.num_uses() != u32::MAX))
    }
}

/// Masks of the near entries that move, behind masks of those that stay.
static MOVES: [u64; 2 * NEAR_LEN] = {
    let mut masks = [0; 2 * NEAR_LEN];
    let mut i = NEAR_LEN;
    while i < masks.len() {
        masks[i] = u64::MAX;
        i += 1;
    }
    masks
};

/// Elements in order of their last use, by ids that are less than 2^32 - 1.
#[derive(Debug, Default)]
pub(in crate::format) struct Recency {
    entries: Vec<Entry>,
    num_gaps: usize,
}

impl Recency {
    /// Appends an element.
    #[inline]
    pub(in crate::format) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Removes the element at `distance` before the last one and returns it, if it exists.
    #[inline]
    pub(in crate::format) fn take(&mut self, distance: u32) -> Option<Entry> {
        let distance = distance as usize;
        let index = self.entries.len().checked_sub(distance + 1)?;
        let entry = *self.entries.get(index)?;
        if entry == GAP {
            return None;
        }
        if distance < NEAR_LEN {
            self.close(distance);
        } else {
            self.entries[index] = GAP;
            self.num_gaps += 1;
            if self.num_gaps * SWEEP_SHARE > self.entries.len() {
                self.sweep();
            }
        }
        Some(entry)
    }

    /// Removes the entry at the near `distance`.
    #[inline]
    fn close(&mut self, distance: usize) {
        match self.entries.last_chunk_mut::<NEAR_LEN>() {
            // All entries may move, so that there is no loop of unpredictable length.
            Some(near) => {
                let masks = &MOVES[distance % NEAR_LEN + 1..][..NEAR_LEN - 1];
                for (i, mask) in masks.iter().enumerate() {
                    near[i].0 ^= (near[i].0 ^ near[i + 1].0) & mask;
                }
            }
            None => {
                let index = self.entries.len() - 1 - distance;
                self.entries.copy_within(index + 1.., index);
            }
        }
        self.entries.pop();
    }

    #[cold]
    #[inline(never)]
    fn sweep(&mut self) {
        // Computed without a branch, because the positions of gaps are unpredictable.
        let mut len = 0;
        let mut at = 0;
        while let Some(&entries) = self.entries[at..].first_chunk::<8>() {
            let to = &mut self.entries[len..];
            let Some(to) = to.first_chunk_mut::<8>() else { break };
            let mut num = 0;
            for entry in entries {
                to[num % 8] = entry;
                num += usize::from(entry != GAP);
            }
            (at, len) = (at + 8, len + num);
        }
        for at in at..self.entries.len() {
            let entry = self.entries[at];
            self.entries[len] = entry;
            len += usize::from(entry != GAP);
        }
        self.entries.truncate(len);
        self.num_gaps = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_distances_are_ranks_and_far_ones_nearly() {
        let mut recency = Recency::default();
        let mut exact: Vec<u32> = (0..1_000).collect();
        exact.iter().for_each(|&element| recency.push(Entry::from_element(element)));
        for step in 0..20_000usize {
            let rank = step * step % (if step % 3 == 0 { 1_000 } else { 10 });
            let element = exact.remove(exact.len() - 1 - rank);
            exact.push(element);
            let distance =
                recency.entries.iter().rev().position(|&entry| entry.element() == element);
            let distance = distance.unwrap();
            assert!(rank >= NEAR_LEN || distance <= rank + NEAR_LEN);
            assert!(distance >= rank && distance - rank <= recency.entries.len() / SWEEP_SHARE);
            assert_eq!(recency.take(distance as u32), Some(Entry::from_element(element)));
            recency.push(Entry::from_element(element));
        }
    }

    #[test]
    fn what_is_not_there_is_not_taken() {
        let mut recency = Recency::default();
        assert!(recency.take(0).is_none());
        (0..100).for_each(|element| recency.push(Entry::from_element(element)));
        assert!(recency.take(100).is_none() && recency.take(u32::MAX).is_none());
        assert_eq!(recency.take(99), Some(Entry::from_element(0)));
        assert!(recency.take(99).is_none());
        assert_eq!(recency.take(98), Some(Entry::from_element(1)));
    }
}
