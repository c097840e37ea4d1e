//! The documents that may be similar: those whose prefixes meet.
//!
//! ```text
//! list       documents that have one n-gram in their prefix, ascending; two at least
//! document   its lists
//! ```
//!
//! The parts are read again. The n-grams of a prefix become entries of a hash and a document, and
//! are sorted. An n-gram of one prefix only makes no list. Where the entries have no room, hashes
//! are divided into classes, and the parts are read once for each class.

use std::borrow::Borrow;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::analytics::rolling_hash::HashClass;
use crate::analytics::sequences::entries::{Entry, sorted_buckets};
use crate::analytics::task_limits::CorpusParts;
use crate::error::{Canceller, Result};
use crate::segment::Corpus;

use super::SLACK;
use super::documents::{DocCounts, DocReader, Documents, PartText, Task};

/// Bytes of memory for each entry: 16, and the reserve of vectors.
const ENTRY_BYTES: u64 = 32;
/// Bytes of memory for each document of a list: 4 for the document, 4 for the list, 4 for the end
/// of the list, and the reserve of vectors.
const LISTED_BYTES: u64 = 16;
/// Least number of entries for which there must be room.
const MIN_ENTRIES: u64 = 64;

/// Documents by the n-grams of their prefixes.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Documents of all lists, and the ends of the lists.
    listed: Vec<u32>,
    ends: Vec<usize>,
    /// Lists of all documents, and the ends of the documents.
    lists: Vec<u32>,
    doc_ends: Vec<usize>,
}

impl Index {
    /// Reads the prefixes of `documents`, whose n-grams have `counts`.
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) if the task needs more memory than it may take,
    /// [`Error::Cancelled`](crate::Error::Cancelled), and the errors of the parts.
    pub fn new<P: CorpusParts + Sync>(task: &Task<'_, P>, documents: &Documents, counts: &DocCounts) -> Result<Self> {
        let mut index = Self::default();
        let mut next_class = Some(HashClass::ALL);
        while let Some(class) = next_class {
            if let Some(entries) = index.entries_of(task, class, documents, counts)? {
                index.push_lists(task, entries)?;
                if u32::try_from(index.ends.len()).is_err() {
                    return Err(task.too_little(task.max_memory_bytes.saturating_mul(2)));
                }
                next_class = class.next();
                continue;
            }
            // The first half of the class comes next.
            next_class =
                Some(class.first_half().ok_or_else(|| task.too_little(task.max_memory_bytes.saturating_mul(2)))?);
        }
        index.listed.shrink_to_fit();
        index.fill_docs(documents.len());
        Ok(index)
    }

    /// Returns the hashes of a class that the prefixes have, with their documents, by parallel
    /// task, or `None` if there are too many.
    fn entries_of<P: CorpusParts + Sync>(
        &self,
        task: &Task<'_, P>,
        class: HashClass,
        documents: &Documents,
        counts: &DocCounts,
    ) -> Result<Option<Vec<Vec<Entry>>>> {
        let listed_bytes = self.listed.len() as u64 * LISTED_BYTES;
        let held_bytes = documents.memory_bytes() + counts.memory_bytes() + listed_bytes;
        let mut reading = Reading { task, class, documents, counts, num_entries: AtomicU64::new(0), max_entries: 0 };
        let mut entries = Vec::new();
        for part in 0..task.parts.num_parts() {
            if !reading.read_part(part, held_bytes, &mut entries)? {
                return Ok(None);
            }
        }
        task.hold(held_bytes + (ENTRY_BYTES + LISTED_BYTES) * reading.num_entries.into_inner())?;
        Ok(Some(entries))
    }

    /// Adds the documents of each hash that several of them have, in order of hashes.
    fn push_lists<P: CorpusParts + Sync>(&mut self, task: &Task<'_, P>, entries: Vec<Vec<Entry>>) -> Result<()> {
        let is_cancelled = || task.parts.is_cancelled();
        let canceller = Canceller::new(&is_cancelled);
        // Documents of the lists of a bucket, and the lengths of the lists.
        let lists_for = |entries: &mut [Entry]| {
            let mut listed = Vec::new();
            let mut lens = Vec::new();
            for list in entries.chunk_by_mut(|a, b| a.key == b.key).filter(|list| list.len() > 1) {
                list.sort_unstable_by_key(|entry| entry.value);
                listed.extend(list.iter().map(|entry| entry.value as u32));
                lens.push(list.len());
            }
            Ok((listed, lens))
        };
        let buckets: Vec<(Vec<u32>, Vec<usize>)> = sorted_buckets(entries, (0, u64::MAX), canceller, lists_for)?;
        for (listed, lens) in buckets {
            canceller.check()?;
            let mut end = self.listed.len();
            self.listed.extend(listed);
            self.ends.extend(lens.into_iter().map(|len| {
                end += len;
                end
            }));
        }
        Ok(())
    }

    /// Notes the lists of each document.
    fn fill_docs(&mut self, num_docs: usize) {
        let mut ends = vec![0; num_docs + 1];
        self.listed.iter().for_each(|&doc| ends[doc as usize + 1] += 1);
        for doc in 1..ends.len() {
            ends[doc] += ends[doc - 1];
        }
        let mut lists = vec![0; self.listed.len()];
        for (number, list) in (0..).zip(0..self.ends.len()) {
            for &doc in self.list(list) {
                let at = &mut ends[doc as usize];
                lists[*at] = number;
                *at += 1;
            }
        }
        // Each start has moved to the end of its document.
        ends.pop();
        (self.lists, self.doc_ends) = (lists, ends);
    }

    fn list(&self, list: usize) -> &[u32] {
        let start = list.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.listed[start..self.ends[list]]
    }

    /// Returns the greatest number of candidates of `doc`, each counted as often as its prefix
    /// meets.
    pub fn max_candidates(&self, doc: u32) -> u64 {
        let later = |&list: &u32| {
            let list = self.list(list as usize);
            list.len() - list.partition_point(|&other| other <= doc)
        };
        self.lists_for(doc).iter().map(|list| later(list) as u64).sum()
    }

    fn lists_for(&self, doc: u32) -> &[u32] {
        let start = (doc as usize).checked_sub(1).map_or(0, |before| self.doc_ends[before]);
        &self.lists[start..self.doc_ends[doc as usize]]
    }

    /// Returns the later documents of a similar size whose prefix meets that of `doc`, ascending.
    pub fn candidates(&self, documents: &Documents, doc: u32, threshold: f64) -> Vec<u32> {
        let size = documents.size(doc) as f64;
        let mut candidates: Vec<u32> = Vec::new();
        for &list in self.lists_for(doc) {
            let list = self.list(list as usize);
            let later = &list[list.partition_point(|&other| other <= doc)..];
            candidates.extend(later.iter().filter(|&&other| {
                let other = documents.size(other) as f64;
                size.min(other) >= threshold * size.max(other) - SLACK
            }));
        }
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }

    /// Returns the bytes of memory in use.
    pub fn memory_bytes(&self) -> u64 {
        let numbers = self.listed.capacity() + self.lists.capacity();
        (4 * numbers + 8 * (self.ends.capacity() + self.doc_ends.capacity())) as u64
    }
}

/// A pass over the parts, which reads the entries of a class.
struct Reading<'r, 't, P> {
    task: &'r Task<'t, P>,
    class: HashClass,
    documents: &'r Documents,
    counts: &'r DocCounts,
    /// Number of entries up to now. Tasks that run in parallel add to it.
    num_entries: AtomicU64,
    /// Most entries for which there is room beside the part that is read.
    max_entries: u64,
}

impl<P: CorpusParts + Sync> Reading<'_, '_, P> {
    /// Adds the entries of a part to `entries`, by parallel task, while others hold `held_bytes`. Returns false if
    /// there is no room for all.
    fn read_part(&mut self, part: usize, held_bytes: u64, entries: &mut Vec<Vec<Entry>>) -> Result<bool> {
        let task = self.task;
        let docs = self.documents.for_part(part);
        let part = task.parts.part(part)?;
        let corpus: &Corpus = part.borrow();
        let reading_bytes = task.reading_bytes(self.documents.max_words(docs.clone()));
        let from_part = PartText::memory_bytes(task, corpus) + reading_bytes;
        // All entries may meet others.
        let entry_bytes = ENTRY_BYTES + LISTED_BYTES;
        let least_bytes = held_bytes + from_part + entry_bytes * MIN_ENTRIES;
        if least_bytes > task.max_memory_bytes {
            return Err(task.too_little(least_bytes));
        }
        self.max_entries = (task.max_memory_bytes - held_bytes - from_part) / entry_bytes;
        if !self.has_room() {
            return Ok(false);
        }
        task.hold(held_bytes + from_part + entry_bytes * self.num_entries.load(Ordering::Relaxed))?;
        let text = PartText::new(task, corpus);
        let lens = &self.documents.all_num_words()[docs.clone()];
        let read = |range| self.read_docs(&text, docs.start, range);
        task.for_each_range(lens, read, |mut found: Vec<Entry>| {
            if self.has_room() {
                found.shrink_to_fit();
                entries.push(found);
            }
            Ok(())
        })?;
        Ok(self.has_room())
    }

    fn has_room(&self) -> bool {
        self.num_entries.load(Ordering::Relaxed) <= self.max_entries
    }

    /// Returns the entries of the documents in `range` of a part, whose first document is `first_doc`. Leaves some out
    /// if there is no room.
    fn read_docs(&self, text: &PartText<'_, P>, first_doc: usize, range: Range<usize>) -> Result<Vec<Entry>> {
        let lens = &self.documents.all_num_words()[first_doc..];
        let mut reader = DocReader::new(text);
        let mut prefix = Prefix::default();
        let mut found = Vec::new();
        for at in range {
            let doc = (first_doc + at) as u32;
            if self.documents.size(doc) == 0 || self.documents.is_copy(doc) {
                continue;
            }
            if !self.has_room() {
                break;
            }
            // All hashes were compared when they were read first.
            let hashes = reader.read(at as u64, lens[at])?.unwrap_or_default();
            let before = found.len();
            prefix.read(hashes, self.task.threshold, self.counts, |hash| {
                if self.class.contains(hash) {
                    found.push(Entry { key: hash, value: doc.into() });
                }
            });
            self.num_entries.fetch_add((found.len() - before) as u64, Ordering::Relaxed);
        }
        Ok(found)
    }
}

/// Chooses the n-grams of the prefix of a document: those of fewest documents first, by their
/// counters and hashes.
#[derive(Debug, Default)]
struct Prefix {
    counts: Vec<u8>,
    /// Hashes of the last counter of the prefix.
    last: Vec<u64>,
}

impl Prefix {
    /// Calls `f` with the hashes of the prefix that other documents may have.
    fn read(&mut self, hashes: &[u64], threshold: f64, counts: &DocCounts, mut f: impl FnMut(u64)) {
        let least_common = (threshold * hashes.len() as f64 - SLACK).ceil().max(1.0) as usize;
        let mut num_left = (hashes.len() + 1).saturating_sub(least_common);
        self.counts.clear();
        self.counts.extend(hashes.iter().map(|&hash| counts.count(hash)));
        let mut nums = [0usize; 256];
        self.counts.iter().for_each(|&count| nums[usize::from(count)] += 1);
        // Those of one document come first.
        num_left = num_left.saturating_sub(nums[1]);
        let mut end = 2;
        while end < nums.len() && nums[end] <= num_left {
            num_left -= nums[end];
            end += 1;
        }
        if num_left == 0 && end == 2 {
            return;
        }
        self.last.clear();
        for (&hash, &count) in hashes.iter().zip(&self.counts) {
            match usize::from(count) {
                0 | 1 => {}
                count if count < end => f(hash),
                count if count == end => self.last.push(hash),
                _ => {}
            }
        }
        if num_left > 0 && num_left < self.last.len() {
            self.last.select_nth_unstable(num_left);
        }
        self.last.iter().take(num_left).for_each(|&hash| f(hash));
    }
}
