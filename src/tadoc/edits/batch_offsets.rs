//! Translation of offsets in the text before a batch to offsets in the text at some point of the
//! batch.
//!
//! ```text
//! before      a b c d e f g     insert "X" at 3, delete 1..5, insert "Y" at 3, in this order
//! places      0 . 1 . 2 . 3     of the edits: 1, 3, 5
//! now         a b c X d e f g   3 is still 3, and from now on 3 + 1 for what comes later at 3
//!             a X f g           1..3 goes at 1, 3..5 goes at 2
//!             a X Y f g         3 + 1 inserted - 2 deleted = 2
//! ```
//!
//! All edits of a document are known before the first one is made. Their offsets are sorted, and
//! the index of an offset is the number of its *place*. Two Fenwick trees return the bytes inserted
//! up to a place and the bytes deleted before it, in O(log edits) for each edit. The range between
//! two places is deleted once, even if several edits delete it.

use std::ops::Range;

/// Offsets of the edits of one document.
#[derive(Debug)]
pub struct BatchOffsets {
    /// Distinct offsets of edits before the batch, in ascending order.
    places: Vec<u64>,
    inserted: Sums,
    deleted: Sums,
    /// For each place, itself if the range after it is not deleted, else a later place that is
    /// nearer to the next range that is not deleted.
    next_kept: Vec<usize>,
}

impl BatchOffsets {
    /// Creates the translation for edits at `places`: offsets of inserts, and both ends of deletes.
    pub fn new(mut places: Vec<u64>) -> Self {
        places.sort_unstable();
        places.dedup();
        let num_places = places.len();
        Self {
            places,
            inserted: Sums::new(num_places),
            deleted: Sums::new(num_places),
            next_kept: (0..=num_places).collect(),
        }
    }

    /// Records an insert of `len` bytes at `offset`, one of the places. Returns its current offset.
    pub fn insert(&mut self, offset: u64, len: u64) -> u64 {
        let place = self.place_idx(offset);
        let now = self.now(place);
        self.inserted.add(place, len);
        now
    }

    /// Records the deletion of `range`, which begins and ends at places. Returns the ranges to
    /// delete, one after the other.
    pub fn delete(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
        let end = self.place_idx(range.end);
        let mut deleted: Vec<Range<u64>> = Vec::new();
        let mut place = self.kept(self.place_idx(range.start));
        while place < end {
            let len = self.places[place + 1] - self.places[place];
            let start = self.now(place);
            self.deleted.add(place, len);
            self.next_kept[place] = place + 1;
            match deleted.last_mut().filter(|last| last.start == start) {
                Some(last) => last.end += len,
                None => deleted.push(start..start + len),
            }
            place = self.kept(place + 1);
        }
        deleted
    }

    fn place_idx(&self, offset: u64) -> usize {
        self.places.partition_point(|&place| place < offset)
    }

    /// Returns the current offset of the byte at `place`, after all text inserted there.
    fn now(&self, place: usize) -> u64 {
        self.places[place] + self.inserted.before(place + 1) - self.deleted.before(place)
    }

    /// Returns the first place from `place` on whose range is not deleted.
    fn kept(&mut self, mut place: usize) -> usize {
        while self.next_kept[place] != place {
            // Halves the path for later calls.
            self.next_kept[place] = self.next_kept[self.next_kept[place]];
            place = self.next_kept[place];
        }
        place
    }
}

/// Sums over the first places (Fenwick, 1994).
#[derive(Debug)]
struct Sums(Vec<u64>);

impl Sums {
    fn new(num_places: usize) -> Self {
        Self(vec![0; num_places + 1])
    }

    fn add(&mut self, place: usize, len: u64) {
        let mut node = place + 1;
        while node < self.0.len() {
            self.0[node] += len;
            node += node & node.wrapping_neg();
        }
    }

    fn before(&self, place: usize) -> u64 {
        let (mut node, mut sum) = (place, 0);
        while node > 0 {
            sum += self.0[node];
            node &= node - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes the text from the texts inserted before each old byte and at the end, and the old
    /// bytes that are left.
    fn slow(old: &[u8], edits: &[(u64, u64, Vec<u8>)]) -> Vec<u8> {
        let mut before = vec![Vec::new(); old.len() + 1];
        let mut is_kept = vec![true; old.len()];
        for (start, end, text) in edits {
            before[*start as usize].extend_from_slice(text);
            is_kept[*start as usize..*end as usize].fill(false);
        }
        let bytes = before.into_iter().enumerate().flat_map(|(at, mut text)| {
            text.extend(old.get(at).filter(|_| is_kept[at]));
            text
        });
        bytes.collect()
    }

    proptest! {
           #![proptest_config(ProptestConfig::with_cases(2_000))]

           #[test]
           fn edits_are_as_if_made_at_once(
               len in 0..30u64,
               edits in prop::collection::vec((any::<u64>(), any::<u64>(), 0..4usize, any::<bool>()), 0..12),
           ) {
               let old: Vec<u8> = (0..len as u8).collect();
               let edits: Vec<(u64, u64, Vec<u8>)> = edits.iter().zip(b'A'..).map(|(edit, mark)| {
                   let (a, b) = (edit.0 % (len + 1), edit.1 % (len + 1));
                   if edit.3 { (a.min(b), a.max(b), Vec::new())
    } else { (a, a, vec![mark; edit.2])
    }
               }).collect();
               let places = edits.iter().flat_map(|edit| [edit.0, edit.1]).collect();
               let (mut offsets, mut now) = (BatchOffsets::new(places), old.clone());
               for (start, end, text) in &edits {
                   if text.is_empty() {
                       for range in offsets.delete(*start..*end) {
                           now.drain(range.start as usize..range.end as usize);
                       }
                   } else {
                       let at = offsets.insert(*start, text.len() as u64) as usize;
                       now.splice(at..at, text.iter().copied());
                   }
               }
               prop_assert_eq!(now, slow(&old, &edits));
           }
       }
}
