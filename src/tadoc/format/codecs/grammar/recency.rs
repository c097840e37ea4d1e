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
const GAP: u32 = u32::MAX;

/// An element that was used.
#[derive(Debug, Clone, Copy)]
pub(in crate::format) struct Entry {
    /// Id of the element, less than 2^32 - 1.
    pub(in crate::format) element: u32,
    /// Lower bound of the number of uses.
    pub(in crate::format) num_uses: u32,
}

impl Entry {
    /// Returns the entry after one more use.
    #[inline]
    pub(in crate::format) fn used_again(self) -> Self {
        Self { num_uses: self.num_uses.saturating_add(1), ..self }
    }
}

/// Elements in order of their last use.
#[derive(Debug, Default)]
pub(in crate::format) struct Recency {
    entries: Vec<Entry>,
    num_gaps: usize,
}

impl Recency {
    /// Appends an entry.
    #[inline]
    pub(in crate::format) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Removes the entry at `distance` before the last one and returns it, if it exists.
    #[inline]
    pub(in crate::format) fn take(&mut self, distance: usize) -> Option<Entry> {
        let index = self.entries.len().checked_sub(distance.checked_add(1)?)?;
        let entry = self.entries[index];
        if entry.element == GAP {
            return None;
        }
        if distance < NEAR_LEN {
            self.entries.copy_within(index + 1.., index);
            self.entries.pop();
        } else {
            self.entries[index].element = GAP;
            self.num_gaps += 1;
            if self.num_gaps * SWEEP_SHARE > self.entries.len() {
                self.sweep();
            }
        }
        Some(entry)
    }

    fn sweep(&mut self) {
        // Computed without a branch, because the positions of gaps are unpredictable.
        let mut len = 0;
        for index in 0..self.entries.len() {
            let entry = self.entries[index];
            self.entries[len] = entry;
            len += usize::from(entry.element != GAP);
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
        exact.iter().for_each(|&element| recency.push(Entry { element, num_uses: 1 }));
        for step in 0..20_000usize {
            let rank = step * step % (if step % 3 == 0 { 1_000 } else { 10 });
            let element = exact.remove(exact.len() - 1 - rank);
            exact.push(element);
            let is_it = |entry: &Entry| entry.element == element;
            let distance = recency.entries.iter().rev().position(is_it).unwrap();
            assert!(rank >= NEAR_LEN || distance <= rank + NEAR_LEN);
            assert!(distance >= rank && distance - rank <= recency.entries.len() / SWEEP_SHARE);
            let entry = recency.take(distance).unwrap();
            assert_eq!(entry.element, element);
            recency.push(entry.used_again());
        }
    }

    #[test]
    fn what_is_not_there_is_not_taken() {
        let mut recency = Recency::default();
        assert!(recency.take(0).is_none());
        (0..100).for_each(|element| recency.push(Entry { element, num_uses: 1 }));
        assert!(recency.take(100).is_none() && recency.take(usize::MAX).is_none());
        assert_eq!(recency.take(99).unwrap().element, 0);
        assert!(recency.take(99).is_none());
        assert_eq!(recency.take(98).unwrap().element, 1);
    }
}
