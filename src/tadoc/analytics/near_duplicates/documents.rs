//! The documents: numbers of their words and n-grams, and which of them have equal sets of n-grams.
//!
//! ```text
//! sets     0: ab bc    1: ab cd    2: bc ab    3: bc ab    fingerprint: sum of mixed hashes
//! equal    0, 2   0, 3                          2 and 3 are copies of 0
//! ```
//!
//! The parts are read once. Documents whose fingerprints and sizes agree are equal, it seems; their words
//! are compared later. 21 bytes of memory for each document, O(words + documents * log documents).

use std::borrow::Borrow;
use std::ops::Range;

use super::counts::DocCounts;
use super::reading::{DocReader, PartText};
use super::task::Task;
use crate::analytics::checked_sort::sort_checked;
use crate::analytics::corpus_parts::{CorpusParts, WORDS_PER_BYTE, doc_words};
use crate::error::{Error, Result};
use crate::interrupt::Canceller;
use crate::segment::Corpus;

/// Bytes of memory for each document.
const DOC_BYTES: u64 = 21;

/// Documents of all parts.
#[derive(Debug, Default)]
pub(super) struct Documents {
    /// First document of each part, and the number of documents.
    part_starts: Vec<u32>,
    num_words: Vec<u32>,
    /// Number of distinct n-grams.
    sizes: Vec<u32>,
    /// True for documents whose set an earlier one has.
    are_copies: Vec<bool>,
    /// The first document, and a copy of it, ascending.
    copies: Vec<(u32, u32)>,
}

impl Documents {
    /// Reads the documents of all parts, and counts the documents of their n-grams. Returns `None` if two
    /// n-grams of a document have the same hash.
    ///
    /// # Errors
    /// [`Error::Capacity`] if the task needs more memory than it may take, [`Error::Cancelled`], and the
    /// errors of the parts.
    pub fn read<P: CorpusParts + Sync>(task: &Task<'_, P>) -> Result<Option<(Self, DocCounts)>> {
        let mut documents = Self { part_starts: vec![0], ..Self::default() };
        let mut fingerprints: Vec<u64> = Vec::new();
        let mut counts = DocCounts::new(0, 0);
        let (mut num_words, max_words) =
            (0u64, task.max_memory_bytes.saturating_mul(WORDS_PER_BYTE));
        for index in 0..task.parts.num_parts() {
            let part = task.parts.part(index)?;
            let corpus: &Corpus = part.borrow();
            let start = documents.len();
            num_words = num_words.saturating_add(documents.push_part(task, corpus)?);
            if num_words > max_words {
                return Err(Error::memory_of_task("reading so many words", num_words, max_words));
            }
            if index == 0 {
                // Documents of few words have fewer n-grams than words.
                let of_parts = num_words.saturating_mul(task.parts.num_parts() as u64);
                let num_grams = of_parts.max(task.parts.num_words());
                counts = DocCounts::new(num_grams, task.max_memory_bytes / 4);
            }
            let max_doc_words = documents.max_words(start..documents.len());
            let held_bytes = documents.memory_bytes() + counts.memory_bytes();
            let reading_bytes = task.reading_bytes(max_doc_words);
            task.hold(held_bytes + PartText::memory_bytes(task, corpus) + reading_bytes)?;
            let text = PartText::new(task, corpus);
            let lens = &documents.num_words[start..];
            let read = |docs: Range<usize>| {
                let mut reader = DocReader::new(&text);
                let mut of_docs = Vec::with_capacity(docs.len());
                for at in docs {
                    let Some(hashes) = reader.read(at as u64, lens[at])? else { return Ok(None) };
                    let doc = (start + at) as u32;
                    hashes.iter().for_each(|&hash| counts.add(hash, doc));
                    of_docs.push((hashes.len() as u32, fingerprint(hashes)));
                }
                Ok(Some(of_docs))
            };
            let mut are_exact = true;
            task.for_each_range(lens, read, |of_docs| {
                are_exact &= of_docs.is_some();
                for (size, fingerprint) in of_docs.into_iter().flatten() {
                    documents.sizes.push(size);
                    fingerprints.push(fingerprint);
                }
                Ok(())
            })?;
            if !are_exact {
                return Ok(None);
            }
        }
        documents.find_copies(task, &fingerprints)?;
        Ok(Some((documents, counts)))
    }

    /// Appends the documents of a part. Returns the number of their words.
    fn push_part<P: CorpusParts + Sync>(
        &mut self,
        task: &Task<'_, P>,
        corpus: &Corpus,
    ) -> Result<u64> {
        let num_docs = (self.len() as u64).saturating_add(corpus.num_docs());
        // Numbers of documents and words have 32 bits.
        let num_bytes = num_docs.saturating_mul(DOC_BYTES);
        if num_docs >= u64::from(u32::MAX) || num_bytes > task.max_memory_bytes {
            return Err(task.too_little(num_bytes));
        }
        let mut num_words = 0u64;
        for doc_id in 0..corpus.num_docs() {
            let len = doc_words(corpus, doc_id);
            let of_doc = u32::try_from(len).ok().filter(|&len| len < u32::MAX);
            self.num_words.push(of_doc.ok_or_else(|| task.too_little(task.reading_bytes(len)))?);
            num_words = num_words.saturating_add(len);
        }
        self.part_starts.push(num_docs as u32);
        Ok(num_words)
    }

    /// Finds the documents whose fingerprint and size an earlier one has.
    fn find_copies<P: CorpusParts + Sync>(
        &mut self,
        task: &Task<'_, P>,
        fingerprints: &[u64],
    ) -> Result<()> {
        let key = |doc: u32| (fingerprints[doc as usize], self.sizes[doc as usize]);
        let mut order: Vec<u32> =
            (0..self.len() as u32).filter(|&doc| self.sizes[doc as usize] > 0).collect();
        let is_cancelled = || task.parts.is_cancelled();
        sort_checked(&mut order, |&doc| (key(doc), doc), Canceller::new(&is_cancelled))?;
        self.are_copies = vec![false; self.len()];
        for equal in order.chunk_by(|&a, &b| key(a) == key(b)) {
            for &copy in &equal[1..] {
                self.are_copies[copy as usize] = true;
                self.copies.push((equal[0], copy));
            }
        }
        self.copies.sort_unstable();
        Ok(())
    }

    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        self.num_words.len()
    }

    /// Returns the number of words of `doc`.
    pub fn num_words(&self, doc: u32) -> u32 {
        self.num_words[doc as usize]
    }

    /// Returns the number of words of all documents.
    pub fn all_num_words(&self) -> &[u32] {
        &self.num_words
    }

    /// Returns the number of distinct n-grams of `doc`.
    #[inline]
    pub fn size(&self, doc: u32) -> usize {
        self.sizes[doc as usize] as usize
    }

    /// Returns true if an earlier document has the set of `doc`.
    pub fn is_copy(&self, doc: u32) -> bool {
        self.are_copies[doc as usize]
    }

    /// Returns the copies of all documents: the first document, and a copy, ascending.
    pub fn copies(&self) -> &[(u32, u32)] {
        &self.copies
    }

    /// Returns the copies of `doc`, ascending.
    pub fn copies_of(&self, doc: u32) -> &[(u32, u32)] {
        let start = self.copies.partition_point(|&(first, _)| first < doc);
        let len = self.copies[start..].partition_point(|&(first, _)| first == doc);
        &self.copies[start..start + len]
    }

    /// Returns the documents of `part`.
    pub fn for_part(&self, part: usize) -> Range<usize> {
        self.part_starts[part] as usize..self.part_starts[part + 1] as usize
    }

    /// Returns the first document of `part`, or the number of documents if there is no such part.
    pub fn first_of_part(&self, part: usize) -> u64 {
        self.part_starts.get(part).map_or(self.len() as u64, |&start| start.into())
    }

    /// Returns the part of `doc`.
    pub fn part_of(&self, doc: u32) -> usize {
        self.part_starts.partition_point(|&start| start <= doc) - 1
    }

    /// Returns the greatest number of words of one of `docs`.
    pub fn max_words(&self, docs: Range<usize>) -> u64 {
        self.num_words[docs].iter().copied().max().unwrap_or(0).into()
    }

    /// Returns the bytes of memory in use.
    pub fn memory_bytes(&self) -> u64 {
        DOC_BYTES * self.len() as u64 + 8 * self.copies.capacity() as u64
    }
}

/// Returns a number that depends on a set of hashes, and not on their order.
fn fingerprint(hashes: &[u64]) -> u64 {
    let mixed = |hash: u64| {
        let product = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        product ^ product >> 32
    };
    hashes.iter().fold(0, |sum, &hash| sum.wrapping_add(mixed(hash)))
}
