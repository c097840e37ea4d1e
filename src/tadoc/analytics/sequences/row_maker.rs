//! Rows in parts. Windows are cut by ranges of sequences. One thread sorts each run of ranges, adds
//! up equal windows and converts them to the result of the caller; another thread takes earlier
//! results meanwhile.

use std::sync::Arc;

use rayon::prelude::*;

use crate::analytics::Vocabulary;
use crate::error::Result;
use crate::interrupt::Canceller;

use super::digits::Sorting;
use super::entries::{Buckets, Entry};
use super::key::Key;
use super::key::Keyed;
use super::ordered::for_each_in_order;
use super::packing::Packing;
use super::passes::KeyRange;
use super::rows::{Counted, Sequences};
use super::weights::{NumberedWeights, Weights};
use super::windows::TextWindows;

/// Number of words of windows after which a part ends.
pub(in crate::analytics) const PART_WORDS: usize = 1 << 17;

/// Maker of rows, with the data that the rows of all parts share.
pub(in crate::analytics) struct RowMaker<'a> {
    pub vocabulary: &'a Arc<Vocabulary>,
    pub packing: Packing,
    pub weights: &'a Weights,
    /// Minimum count of a row.
    pub min_count: u64,
    pub canceller: Canceller<'a>,
}

impl RowMaker<'_> {
    /// Makes rows from the keys of all parallel tasks. A key has the number of a weight below the
    /// sequence. Returns true if all parts were taken. `take` also gets the number of bytes held.
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) if a count needs more than 64 bits,
    /// [`Error::Cancelled`](crate::Error::Cancelled), and the errors of `take`.
    pub fn keys_to_rows<K: Key + Keyed<Key = K>, T: Send>(
        &self,
        tasks: Vec<Vec<K>>,
        range: KeyRange<K>,
        make: impl Fn(Sequences, Vec<u64>) -> T + Send + Sync,
        take: impl FnMut(T, usize) -> Result<bool>,
    ) -> Result<bool> {
        let buckets = Buckets::new(tasks, range, self.weights.bits(), self.canceller)?;
        let add = |counted: &mut Counted, keys: &mut [K]| {
            counted.add_keys(keys, self.packing, &self.weights, self.min_count)
        };
        self.buckets_to_rows(&buckets, 0, add, make, take)
    }

    /// Makes rows from windows that do not fit a key.
    ///
    /// # Errors
    /// The errors of [`keys_to_rows`](Self::keys_to_rows).
    pub fn texts_to_rows<T: Send>(
        &self,
        tasks: &[TextWindows],
        range: KeyRange<u64>,
        make: impl Fn(Sequences, Vec<u64>) -> T + Send + Sync,
        take: impl FnMut(T, usize) -> Result<bool>,
    ) -> Result<bool> {
        let entries = |(at, task): (usize, &TextWindows)| {
            self.canceller.check()?;
            Ok(task.entries((at as u64) << 32))
        };
        let entries = tasks.par_iter().enumerate().map(entries).collect::<Result<Vec<_>>>()?;
        let (task, window) = (|value: u64| (value >> 32) as usize, |value: u64| value as u32);
        let words = |value| tasks[task(value)].words(window(value) as usize);
        let weight = |value| tasks[task(value)].weight(window(value) as usize);
        let add = |counted: &mut Counted, entries: &mut [Entry]| {
            let (packing, min_count) = (self.packing, self.min_count);
            counted.add(entries, packing, &words, &weight, min_count, self.canceller)
        };
        let text_bytes = tasks.iter().map(TextWindows::memory_bytes).sum();
        let buckets = Buckets::new(entries, range, 0, self.canceller)?;
        self.buckets_to_rows(&buckets, text_bytes, add, make, take)
    }

    fn buckets_to_rows<E: Keyed, T: Send>(
        &self,
        buckets: &Buckets<E>,
        text_bytes: usize,
        add: impl Fn(&mut Counted, &mut [E]) -> Result<()> + Sync,
        make: impl Fn(Sequences, Vec<u64>) -> T + Send + Sync,
        mut take: impl FnMut(T, usize) -> Result<bool>,
    ) -> Result<bool> {
        let runs = buckets.runs((PART_WORDS / self.packing.num_words).max(1));
        let held_bytes = text_bytes + buckets.memory_bytes();
        let compute = |run: usize| {
            let (mut counted, mut sorting) = (Counted::default(), Sorting::default());
            for bucket in runs[run].clone() {
                add(&mut counted, buckets.sorted(bucket, &mut sorting, self.canceller)?)?;
            }
            let (sequences, counts) = counted.into_rows(self.vocabulary.clone(), self.packing);
            Ok(make(sequences, counts))
        };
        for_each_in_order(runs.len(), compute, |made: Result<T>| take(made?, held_bytes))
    }
}
