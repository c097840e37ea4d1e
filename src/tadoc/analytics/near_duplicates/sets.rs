//! Documents as sets of n-grams.
//!
//! ```text
//! set    shared n-grams, rarest first | number of n-grams that no other document has
//! ```
//!
//! N-grams get exact names by sorting ([`grams`](crate::analytics::repeated_phrases::grams)), and then
//! ranks by the number of documents that have them. An n-gram of one document only counts for the size
//! of its set.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::analytics::repeated_phrases::grams::{self, NONE};
use crate::analytics::repeated_phrases::text::{self, BORDER};
use crate::analytics::{DocSelection, Vocabulary};
use crate::error::Result;

use super::WORD_BYTES;

/// Sets of all documents that have n-grams, ascending by document.
#[derive(Debug, Default)]
pub(super) struct Sets {
    doc_ids: Vec<u64>,
    /// Number of n-grams of each set that no other document has.
    nums_alone: Vec<u32>,
    /// Ranks of the others, ascending, one set after another, and the ends of the sets.
    ranks: Vec<u32>,
    ends: Vec<usize>,
    /// Number of ranks.
    num_ranks: usize,
    /// First set that equals each set; itself if there is none before.
    first_equal: Vec<u32>,
}

impl Sets {
    /// Reads the sets of n-grams of `num_words` words.
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) if this needs more than `max_memory_bytes`.
    pub fn read(
        vocabulary: &Arc<Vocabulary>,
        docs: &DocSelection,
        num_words: usize,
        max_memory_bytes: u64,
    ) -> Result<Self> {
        let mut doc_ids = Vec::new();
        let task = text::Task {
            what: "looking for near duplicates (bytes)",
            word_bytes: WORD_BYTES,
            max_memory_bytes,
        };
        let words = text::read(vocabulary, docs, &task, |doc_id| doc_ids.push(doc_id))?;
        let (names, num_names) = grams::name(&words, vocabulary.len(), num_words, 2);
        let mut sets = Self::default();
        let (mut nums_of_docs, mut start) = (vec![0u32; num_names], 0);
        let mut set: Vec<u32> = Vec::new();
        for (doc_id, len) in
            doc_ids.iter().zip(words.split(|&word| word == BORDER).map(<[u32]>::len))
        {
            let names = &names[start..start + len];
            start += len + 1;
            let Some(num_grams) = (len + 1).checked_sub(num_words).filter(|&num| num > 0) else {
                continue;
            };
            set.clear();
            set.extend(names[..num_grams].iter().filter(|&&name| name != NONE));
            let num_alone = num_grams - set.len();
            set.sort_unstable();
            set.dedup();
            set.iter().for_each(|&name| nums_of_docs[name as usize] += 1);
            sets.push(*doc_id, num_alone as u32, &set);
        }
        drop((words, names));
        sets.rank(&nums_of_docs);
        sets.ranks.shrink_to_fit();
        sets.first_equal = sets.first_equal();
        Ok(sets)
    }

    fn push(&mut self, doc_id: u64, num_alone: u32, set: &[u32]) {
        self.doc_ids.push(doc_id);
        self.nums_alone.push(num_alone);
        self.ranks.extend_from_slice(set);
        self.ends.push(self.ranks.len());
    }

    /// Replaces names by ranks: the n-grams of fewest documents come first. Those of one document are
    /// dropped.
    fn rank(&mut self, nums_of_docs: &[u32]) {
        let shared = (0..nums_of_docs.len() as u32).filter(|&name| nums_of_docs[name as usize] > 1);
        let mut order: Vec<u32> = shared.collect();
        order.sort_unstable_by_key(|&name| (nums_of_docs[name as usize], name));
        let mut ranks = vec![NONE; nums_of_docs.len()];
        for (rank, &name) in (0..).zip(&order) {
            ranks[name as usize] = rank;
        }
        let (mut start, mut to) = (0, 0);
        for (end, num_alone) in self.ends.iter_mut().zip(&mut self.nums_alone) {
            let first = to;
            for at in start..*end {
                let rank = ranks[self.ranks[at] as usize];
                if rank != NONE {
                    self.ranks[to] = rank;
                    to += 1;
                }
            }
            *num_alone += (*end - start - (to - first)) as u32;
            self.ranks[first..to].sort_unstable();
            (start, *end) = (*end, to);
        }
        self.ranks.truncate(to);
        self.num_ranks = order.len();
    }

    /// Returns for each set the first one that equals it. A set with an n-gram of its own equals none.
    fn first_equal(&self) -> Vec<u32> {
        let mut firsts: FxHashMap<&[u32], u32> = FxHashMap::default();
        let first_of = |set: usize| match self.nums_alone[set] {
            0 => *firsts.entry(self.shared(set)).or_insert(set as u32),
            _ => set as u32,
        };
        (0..self.len()).map(first_of).collect()
    }

    /// Returns the number of sets.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of ranks. All ranks are below it.
    pub fn num_ranks(&self) -> usize {
        self.num_ranks
    }

    /// Returns the document of `set`.
    pub fn doc_id(&self, set: usize) -> u64 {
        self.doc_ids[set]
    }

    /// Returns the ranks of the n-grams of `set` that other documents have, ascending.
    pub fn shared(&self, set: usize) -> &[u32] {
        &self.ranks[self.range(set)]
    }

    fn range(&self, set: usize) -> Range<usize> {
        set.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[set]
    }

    /// Returns the number of n-grams of `set`.
    pub fn size(&self, set: usize) -> usize {
        self.nums_alone[set] as usize + self.range(set).len()
    }

    /// Returns the number of n-grams of `set` that no other document has.
    pub fn num_alone(&self, set: usize) -> usize {
        self.nums_alone[set] as usize
    }

    /// Returns the first set that equals `set`, or `set`.
    pub fn first_equal_to(&self, set: usize) -> usize {
        self.first_equal[set] as usize
    }

    /// Returns the bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        self.doc_ids.len() * (8 + 4 + 8 + 4) + 4 * self.ranks.len()
    }
}
