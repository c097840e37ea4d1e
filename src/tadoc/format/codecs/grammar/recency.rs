//! Elements of one symbol in order of their last use. The coded value is the distance from the end.
//!
//! ```text
//! entries  [c † a † † e b d]      † gap of an element taken from far away, removed by a sweep
//!                 distance 2 ┘ │ └ distance 0
//! ```
//!
//! Taking one of the last [`NEAR_LEN`] entries closes the gap at once, so near distances are exact ranks. Further away
//! a gap stays. The list is swept when one in [`SWEEP_SHARE`] entries is a gap. Distances are at most 9 % too large
//! (0.1 bit), and sweeps move 12 entries for each use. Predicted uses are not recorded here.
//!
//! # The encoder's side
//!
//! Encoder's counterpart of [`Recency`]: it finds
//! the same distances from the element, not the element from the distance.
//!
//! ```text
//! head    places  c † a † † e b …     one bit each: present or not; count of ones before each word
//! tail    d g a f … h                 the last 16 to 32 entries, searched
//! ```
//!
//! The near end is short and changes with every use. The far part changes only when gaps are swept. So a far distance
//! takes two look-ups and a count of ones, and places stay unchanged. (Renumbering elements whenever a gap was closed
//! or swept took twenty scattered writes for each use.) A sweep costs one or two bits for each use. If most places are
//! empty, the head is renumbered. It needs about 10 bytes for each element.
//!
//! Rejected experiment: bits of all uses with counts over 64, 1,024, 16,384 and 262,144 of them,
//! kept exact. It took three times the instructions.

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

const WORD_BITS: usize = 64;
const TAIL_LEN: usize = 2 * NEAR_LEN;
/// Mark of a gap or an unused entry in the tail.
const NOTHING: u32 = u32::MAX;
/// Place of an element that is in the tail.
const IN_TAIL: u32 = u32::MAX;
/// Number of places for each entry above which the head is renumbered.
const MAX_PLACES_PER_ENTRY: usize = 6;

/// State of an element, in eight bytes because it is read at random.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::format) struct ElementState {
    /// Place in the order that contains it, or among the unseen elements.
    pub(in crate::format) place: u32,
    /// Number of uses without predicted ones. It saturates.
    pub(in crate::format) num_uses: u16,
    /// List of the element (of a rule after it is complete).
    pub(in crate::format) list: u8,
}

/// Elements of one symbol, in order of their last use.
#[derive(Debug)]
pub(in crate::format) struct UseOrder {
    tail: [u32; TAIL_LEN],
    tail_len: usize,
    /// Element at each place, including elements that were removed.
    head: Vec<u32>,
    /// Bit of each place, set if there is an entry, including gaps.
    is_present: Vec<u64>,
    is_gap: Vec<u64>,
    /// For each word of `is_present`, the number of ones in the words before.
    ones_before: Vec<u32>,
    num_present: usize,
    /// Number of gaps in head and tail.
    num_gaps: usize,
}

impl Default for UseOrder {
    fn default() -> Self {
        Self {
            tail: [NOTHING; TAIL_LEN],
            tail_len: 0,
            head: Vec::new(),
            is_present: Vec::new(),
            is_gap: Vec::new(),
            ones_before: Vec::new(),
            num_present: 0,
            num_gaps: 0,
        }
    }
}

impl UseOrder {
    /// Appends `element`, which is now used. `states` is indexed by element.
    #[inline]
    pub(in crate::format) fn push(&mut self, element: u32, states: &mut [ElementState]) {
        if self.tail_len == TAIL_LEN {
            self.move_to_head(states);
        }
        self.tail[self.tail_len] = element;
        self.tail_len += 1;
        states[element as usize].place = IN_TAIL;
    }

    /// Removes `element`, which must be in this order. Returns the number of entries behind it,
    /// including gaps.
    #[inline]
    pub(in crate::format) fn take(&mut self, element: u32, states: &mut [ElementState]) -> u32 {
        if self.tail_len < NEAR_LEN && !self.head.is_empty() {
            self.move_to_tail(states);
        }
        let place = states[element as usize].place;
        let distance = match place {
            IN_TAIL => self.take_from_tail(element),
            place => self.take_from_head(place as usize),
        };
        if distance >= NEAR_LEN {
            self.num_gaps += 1;
            if self.num_gaps * SWEEP_SHARE > self.num_present + self.tail_len {
                self.sweep(states);
            }
        }
        distance as u32
    }

    fn take_from_tail(&mut self, element: u32) -> usize {
        // Exactly one entry matches. Looking at all entries needs no branch.
        let is_it = |(i, &entry): (u32, &u32)| if entry == element { i } else { 0 };
        let index = (0..).zip(&self.tail).map(is_it).sum::<u32>() as usize;
        let distance = self.tail_len - 1 - index;
        if distance < NEAR_LEN {
            self.tail.copy_within(index + 1.., index);
            self.tail_len -= 1;
            self.tail[TAIL_LEN - 1] = NOTHING;
        } else {
            self.tail[index] = NOTHING;
        }
        distance
    }

    #[inline]
    fn take_from_head(&mut self, place: usize) -> usize {
        let word_idx = place / WORD_BITS;
        let bit = 1 << (place % WORD_BITS);
        let before = self.is_present[word_idx] & (bit - 1);
        let rank = self.ones_before[word_idx] + before.count_ones();
        self.is_gap[word_idx] |= bit;
        self.tail_len + self.num_present - 1 - rank as usize
    }

    /// Moves the older half of the full tail to the head.
    fn move_to_head(&mut self, states: &mut [ElementState]) {
        for &element in &self.tail[..NEAR_LEN] {
            let place = self.head.len();
            let word_idx = place / WORD_BITS;
            let bit = 1 << (place % WORD_BITS);
            if place.is_multiple_of(WORD_BITS) {
                self.is_present.push(0);
                self.is_gap.push(0);
                self.ones_before.push(self.num_present as u32);
            }
            self.head.push(element);
            self.is_present[word_idx] |= bit;
            self.num_present += 1;
            match states.get_mut(element as usize) {
                Some(state) => state.place = place as u32,
                None => self.is_gap[word_idx] |= bit,
            }
        }
        self.tail.copy_within(NEAR_LEN.., 0);
        self.tail[TAIL_LEN - NEAR_LEN..].fill(NOTHING);
        self.tail_len -= NEAR_LEN;
    }

    /// Moves entries from the head back to the tail until all near entries are in the tail.
    fn move_to_tail(&mut self, states: &mut [ElementState]) {
        while self.tail_len < NEAR_LEN
            && let Some(element) = self.head.pop()
        {
            let place = self.head.len();
            let word_idx = place / WORD_BITS;
            let bit = 1 << (place % WORD_BITS);
            let is_present = self.is_present[word_idx] & bit != 0;
            let is_gap = self.is_gap[word_idx] & bit != 0;
            self.is_present[word_idx] &= !bit;
            self.is_gap[word_idx] &= !bit;
            if place.is_multiple_of(WORD_BITS) {
                self.is_present.pop();
                self.is_gap.pop();
                self.ones_before.pop();
            }
            if is_present {
                self.num_present -= 1;
                self.tail.copy_within(..TAIL_LEN - 1, 1);
                self.tail[0] = if is_gap { NOTHING } else { element };
                self.tail_len += 1;
                if !is_gap {
                    states[element as usize].place = IN_TAIL;
                }
            }
        }
    }

    /// Closes all gaps.
    fn sweep(&mut self, states: &mut [ElementState]) {
        let mut ones = 0;
        let words = self.is_present.iter_mut().zip(&mut self.is_gap).zip(&mut self.ones_before);
        for ((is_present, is_gap), ones_before) in words {
            *is_present &= !std::mem::take(is_gap);
            *ones_before = ones;
            ones += is_present.count_ones();
        }
        self.num_present = ones as usize;
        if self.head.len() > MAX_PLACES_PER_ENTRY * self.num_present + WORD_BITS {
            self.renumber(states);
        }
        let mut len = 0;
        for i in 0..self.tail_len {
            self.tail[len] = self.tail[i];
            len += usize::from(self.tail[i] != NOTHING);
        }
        self.tail[len..].fill(NOTHING);
        self.tail_len = len;
        self.num_gaps = 0;
    }

    /// Gives the entries of the head the first places. The head has no gaps.
    fn renumber(&mut self, states: &mut [ElementState]) {
        let is_present = |place: usize| self.is_present[place / WORD_BITS] >> (place % WORD_BITS) & 1 != 0;
        let mut place = 0;
        self.head.retain(|_| {
            place += 1;
            is_present(place - 1)
        });
        (0..).zip(&self.head).for_each(|(place, &element)| states[element as usize].place = place);
        let num_words = self.head.len().div_ceil(WORD_BITS);
        self.is_present.truncate(num_words);
        self.is_present.fill(u64::MAX);
        if !self.head.len().is_multiple_of(WORD_BITS)
            && let Some(last) = self.is_present.last_mut()
        {
            *last = (1 << (self.head.len() % WORD_BITS)) - 1;
        }
        self.is_gap.truncate(num_words);
        self.ones_before.truncate(num_words);
        (0..).zip(&mut self.ones_before).for_each(|(i, ones)| *ones = i * WORD_BITS as u32);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
            let distance = recency.entries.iter().rev().position(|&entry| entry.element() == element);
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

    /// Checks that distances lead to the right entries. Elements move between two orders, as they
    /// do when they are used more often.
    fn check(num_elements: u32, steps: impl Iterator<Item = (u32, bool)>) {
        let mut recencies = [Recency::default(), Recency::default()];
        let mut orders = [UseOrder::default(), UseOrder::default()];
        let mut states = vec![ElementState::default(); num_elements as usize];
        let mut list_of = vec![0usize; num_elements as usize];
        for element in 0..num_elements {
            recencies[0].push(Entry::from_element(element));
            orders[0].push(element, &mut states);
        }
        for (step, (element, is_moved)) in steps.enumerate() {
            let list = &mut list_of[element as usize];
            let distance = orders[*list].take(element, &mut states);
            let taken = recencies[*list].take(distance);
            assert_eq!(taken, Some(Entry::from_element(element)), "step {step}, distance {distance}");
            *list ^= usize::from(is_moved);
            orders[*list].push(element, &mut states);
            recencies[*list].push(Entry::from_element(element));
        }
    }

    #[test]
    fn distances_are_those_of_the_entries() {
        // Most uses are of a few elements, which change over time. Others wait for a long time.
        let steps = (0..300_000u32).map(|step| {
            let mixed = step.wrapping_mul(0x9e37_79b1) >> 12;
            let range = [3, 20, 100, 700][mixed as usize % 4];
            ((mixed / 4 % range + step / 5_000) % 700, mixed % 31 == 0)
        });
        check(700, steps);
    }

    proptest! {
        #[test]
        fn any_uses_have_the_distances_of_the_entries(
            num_elements in 1u32..120,
            steps in prop::collection::vec((any::<u32>(), 0u32..7, any::<bool>()), 0..1_500),
        ) {
            let near = |(mixed, shift, is_moved): (u32, u32, bool)| {
                (mixed % (num_elements >> shift).max(1), is_moved)
            };
            check(num_elements, steps.into_iter().map(near));
        }
    }
}
