//! Elements of one symbol, the latest used last; what is coded is the distance from the end.
//!
//! ```text
//! entries  [c † a † † e b d]      † taken from far away: swept out when they are many
//!                 distance 2 ┘ │ └ distance 0
//! ```
//!
//! Taking one of the last [`NEAR_LEN`] closes the gap at once, so near distances are exact ranks; further
//! away a gap stays, and the list is swept when one in [`SWEEP_SHARE`] entries is one: distances are
//! at most 9 % too large (0.1 bit) and a sweep costs 12 moved entries a use. Uses that were
//! predicted do not count here.

/// Entries at the end between which no gaps stay.
const NEAR_LEN: usize = 16;
const SWEEP_SHARE: usize = 12;
const GAP: u32 = u32::MAX;

/// An element that was used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Its id; ids end below 2^32 - 1.
    pub(super) element: u32,
    /// How often, at least.
    pub(super) num_uses: u32,
}

impl Entry {
    /// The entry after one more use.
    #[inline]
    pub(super) fn used_again(self) -> Self {
        Self { num_uses: self.num_uses.saturating_add(1), ..self }
    }
}

/// Elements in order of their last use.
#[derive(Debug, Default)]
pub(super) struct Recency {
    entries: Vec<Entry>,
    num_gaps: usize,
}

impl Recency {
    /// Number of entries, gaps included.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Appends an entry.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Takes out the entry that stands `distance` before the last one, if there is one. Calls
    /// `moved` with the element and the new index of every entry that changes its place.
    #[inline]
    pub(super) fn take(&mut self, distance: usize, moved: impl FnMut(u32, usize)) -> Option<Entry> {
        let index = self.entries.len().checked_sub(distance.checked_add(1)?)?;
        let entry = self.entries[index];
        if entry.element == GAP {
            return None;
        }
        if distance < NEAR_LEN {
            self.close_gap(index, moved);
        } else {
            self.entries[index].element = GAP;
            self.num_gaps += 1;
            if self.num_gaps * SWEEP_SHARE > self.entries.len() {
                self.sweep(moved);
            }
        }
        Some(entry)
    }

    #[inline]
    fn close_gap(&mut self, index: usize, mut moved: impl FnMut(u32, usize)) {
        self.entries.copy_within(index + 1.., index);
        self.entries.pop();
        for (i, entry) in self.entries.iter().enumerate().skip(index) {
            // Gaps may have come near; nobody asks where they are.
            moved(entry.element, i);
        }
    }

    fn sweep(&mut self, mut moved: impl FnMut(u32, usize)) {
        // Without a branch: where the gaps are cannot be guessed.
        let mut len = 0;
        for index in 0..self.entries.len() {
            let entry = self.entries[index];
            self.entries[len] = entry;
            len += usize::from(entry.element != GAP);
        }
        self.entries.truncate(len);
        self.num_gaps = 0;
        self.entries.iter().enumerate().for_each(|(i, entry)| moved(entry.element, i));
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
        let mut index_of: Vec<usize> = (0..1_000).collect();
        for step in 0..20_000usize {
            let rank = step * step % (if step % 3 == 0 { 1_000 } else { 10 });
            let element = exact.remove(exact.len() - 1 - rank);
            exact.push(element);
            let distance = recency.len() - 1 - index_of[element as usize];
            assert!(rank >= NEAR_LEN || distance <= rank + NEAR_LEN);
            assert!(distance >= rank && distance - rank <= recency.len() / SWEEP_SHARE);
            let note = |e: u32, i| index_of.get_mut(e as usize).map_or((), |at| *at = i);
            let entry = recency.take(distance, note).unwrap();
            assert_eq!(entry.element, element);
            index_of[element as usize] = recency.len();
            recency.push(entry.used_again());
        }
    }

    #[test]
    fn what_is_not_there_is_not_taken() {
        let mut recency = Recency::default();
        assert!(recency.take(0, |_, _| ()).is_none());
        (0..100).for_each(|element| recency.push(Entry { element, num_uses: 1 }));
        assert!(
            recency.take(100, |_, _| ()).is_none() && recency.take(usize::MAX, |_, _| ()).is_none()
        );
        assert_eq!(recency.take(99, |_, _| ()).unwrap().element, 0);
        assert!(recency.take(99, |_, _| ()).is_none());
        assert_eq!(recency.take(98, |_, _| ()).unwrap().element, 1);
    }
}
