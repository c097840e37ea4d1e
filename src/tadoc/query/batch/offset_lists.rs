//! Byte offsets that a batch of searches found, one list for each query.

use crate::error::Result;
use crate::query::check_num_hits;
use crate::read::batch::slice_of;

/// The byte offsets that a batch of searches found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffsetLists {
    offsets: Vec<u64>,
    ends: Vec<usize>,
}

impl OffsetLists {
    /// `offsets` cut at `ends`, which ascend to its length.
    pub(in crate::query) fn new(offsets: Vec<u64>, ends: Vec<usize>) -> Self {
        Self { offsets, ends }
    }

    /// `lists` one after the other, which may have `max_hits` offsets.
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

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The offsets of query `query_idx`, ascending, if there is such a query.
    pub fn get(&self, query_idx: usize) -> Option<&[u64]> {
        slice_of(&self.offsets, &self.ends, query_idx)
    }

    /// All offsets, and where each list ends.
    pub fn into_parts(self) -> (Vec<u64>, Vec<usize>) {
        (self.offsets, self.ends)
    }
}
