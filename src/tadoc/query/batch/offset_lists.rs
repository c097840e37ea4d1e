//! Result of a batch of searches: one list of byte offsets for each query.

use crate::error::Result;
use crate::query::check_num_hits;
use crate::read::batch::slice_of;

/// The byte offsets that a batch of searches found, one list for each query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffsetLists {
    offsets: Vec<u64>,
    ends: Vec<usize>,
}

impl OffsetLists {
    /// Creates lists from `offsets`, cut at `ends`. The ends ascend, and the last is the length.
    pub(in crate::query) fn new(offsets: Vec<u64>, ends: Vec<usize>) -> Self {
        Self { offsets, ends }
    }

    /// Joins `lists`, of at most `max_hits` offsets in total.
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) for more offsets than allowed.
    pub fn joined(lists: &[&[u64]], max_hits: u64) -> Result<Self> {
        let mut ends = Vec::with_capacity(lists.len());
        let mut num_hits = 0;
        for list in lists {
            num_hits += list.len();
            check_num_hits(num_hits as u64, max_hits)?;
            ends.push(num_hits);
        }
        Ok(Self { offsets: lists.concat(), ends })
    }

    /// Returns the number of lists.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there is no list.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the offsets of query `query_idx`, in ascending order, if there is such a query.
    pub fn get(&self, query_idx: usize) -> Option<&[u64]> {
        slice_of(&self.offsets, &self.ends, query_idx)
    }

    /// Returns all offsets and the end of each list.
    pub fn into_parts(self) -> (Vec<u64>, Vec<usize>) {
        (self.offsets, self.ends)
    }
}
