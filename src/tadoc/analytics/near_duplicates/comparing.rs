//! The comparison of documents, block by block.
//!
//! ```text
//! block     documents 0 4 9 in memory             candidates 4: 0    7: 0 4    9: 4    31: 9
//! parts     read once, from the block's first     7 is read and compared with 0 and 4, then dropped
//! ```
//!
//! A block has as many documents as its share of memory has room for. So a corpus larger than memory is
//! read once for each block, and only its documents that are candidates. A corpus in memory begins with
//! a small block, so that the first pairs come soon.

use std::borrow::Borrow;
use std::ops::Range;

use super::documents::Documents;
use super::task::Task;
use super::words::{GramSet, Numbers, PartWords};
use super::{SLACK, SimilarPair};
use crate::analytics::checked_sort::sort_checked;
use crate::analytics::corpus_parts::CorpusParts;
use crate::error::Result;
use crate::interrupt::Canceller;
use crate::segment::Corpus;

/// Bytes of memory for each word of a block: 4 for the word, 8 for its n-gram, the rest for the numbers
/// of words.
const BLOCK_WORD_BYTES: u64 = 20;
/// Bytes of memory for each candidate of a block: 8, and 24 for a pair, and the reserve of vectors.
const CANDIDATE_BYTES: u64 = 40;

/// Documents that are compared with others.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Documents in memory, ascending.
    docs: Vec<u32>,
    num_words: u64,
    /// Candidate, and index of the document in memory.
    candidates: Vec<(u32, u32)>,
}

impl Block {
    /// Adds a document and the later ones with which it is compared.
    pub fn push(&mut self, documents: &Documents, doc: u32, candidates: &[u32]) {
        if candidates.is_empty() {
            return;
        }
        let index = self.docs.len() as u32;
        self.docs.push(doc);
        self.num_words += u64::from(documents.num_words(doc));
        self.candidates.extend(candidates.iter().map(|&candidate| (candidate, index)));
    }

    /// Returns the bytes of memory that the comparison needs.
    pub fn memory_bytes(&self) -> u64 {
        let of_candidates = CANDIDATE_BYTES * self.candidates.len() as u64;
        of_candidates + BLOCK_WORD_BYTES * self.num_words
    }

    /// Returns the number of pairs of documents.
    pub fn num_candidates(&self) -> usize {
        self.candidates.len()
    }

    /// Compares the documents. Returns the pairs of a similarity of `threshold` or more, in order. Beside
    /// the block, `held_bytes` are held.
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) if the task needs more memory than it may take,
    /// [`Error::Cancelled`](crate::Error::Cancelled), and the errors of the parts.
    pub fn compare<P: CorpusParts + Sync>(
        mut self,
        task: &Task<'_, P>,
        documents: &Documents,
        threshold: f64,
        held_bytes: u64,
    ) -> Result<Vec<SimilarPair>> {
        let is_cancelled = || task.parts.is_cancelled();
        sort_checked(&mut self.candidates, |&pair| pair, Canceller::new(&is_cancelled))?;
        let held_bytes = held_bytes + self.memory_bytes();
        let mut numbers = Numbers::new(task.fold);
        let mut sets: Vec<GramSet> = Vec::with_capacity(self.docs.len());
        for docs in self.docs.chunk_by(|&a, &b| documents.part_of(a) == documents.part_of(b)) {
            let index = documents.part_of(docs[0]);
            let part = task.parts.part(index)?;
            let corpus: &Corpus = part.borrow();
            let start = documents.for_part(index).start;
            let doc_id = |doc: u32| (doc as usize - start) as u64;
            let lens: Vec<u32> = docs.iter().map(|&doc| documents.num_words(doc)).collect();
            let of_words = PartWords::memory_bytes(corpus) + numbers.memory_bytes();
            task.hold(held_bytes + of_words)?;
            let mut words = PartWords::new(corpus);
            let want = |range: Range<usize>| {
                task.check_cancelled()?;
                docs[range].iter().for_each(|&doc| words.want(doc_id(doc)));
                Ok(())
            };
            task.for_each_range(&lens, want, Ok)?;
            words.number(&mut numbers);
            let read = |range: Range<usize>| {
                task.check_cancelled()?;
                let read = |at| GramSet::new(words.read(doc_id(docs[at]), lens[at], &numbers));
                Ok(range.map(read).collect())
            };
            task.for_each_range(&lens, read, |read: Vec<GramSet>| {
                sets.extend(read);
                Ok(())
            })?;
        }
        let compared = Compared { task, documents, threshold, block: &self, sets, numbers };
        let mut pairs = Vec::new();
        let candidates: Vec<&[(u32, u32)]> = self.candidates.chunk_by(|a, b| a.0 == b.0).collect();
        let part_of = |of_doc: &[(u32, u32)]| documents.part_of(of_doc[0].0);
        for candidates in candidates.chunk_by(|a, b| part_of(a) == part_of(b)) {
            compared.compare_part(part_of(candidates[0]), candidates, held_bytes, &mut pairs)?;
        }
        pairs.sort_unstable_by_key(|pair| (pair.doc_id_a, pair.doc_id_b));
        Ok(pairs)
    }
}

/// A block that is in memory.
struct Compared<'a, P> {
    task: &'a Task<'a, P>,
    documents: &'a Documents,
    threshold: f64,
    block: &'a Block,
    sets: Vec<GramSet>,
    numbers: Numbers<'a>,
}

impl<P: CorpusParts + Sync> Compared<'_, P> {
    /// Compares documents of part `index`, each with its documents of the block.
    fn compare_part(
        &self,
        index: usize,
        candidates: &[&[(u32, u32)]],
        held_bytes: u64,
        pairs: &mut Vec<SimilarPair>,
    ) -> Result<()> {
        let (task, documents) = (self.task, self.documents);
        let in_block = |doc: u32| self.block.docs.binary_search(&doc).ok();
        let part = if candidates.iter().all(|of_doc| in_block(of_doc[0].0).is_some()) {
            None
        } else {
            Some(task.parts.part(index)?)
        };
        let corpus: Option<&Corpus> = part.as_ref().map(Borrow::borrow);
        let docs = documents.for_part(index);
        let start = docs.start;
        let lens: Vec<u32> =
            candidates.iter().map(|of_doc| documents.num_words(of_doc[0].0)).collect();
        let of_words = corpus.map_or(0, PartWords::memory_bytes) + self.numbers.memory_bytes();
        let max_doc_words = lens.iter().copied().max().unwrap_or(0).into();
        task.hold(held_bytes + of_words + task.reading_bytes(max_doc_words))?;
        let words = corpus.map(PartWords::new);
        let compare = |range: Range<usize>| {
            let mut found = Vec::new();
            for at in range {
                task.check_cancelled()?;
                let doc = candidates[at][0].0;
                let read = words.as_ref().filter(|_| in_block(doc).is_none()).map(|words| {
                    let doc_id = (doc as usize - start) as u64;
                    GramSet::new(words.read(doc_id, lens[at], &self.numbers))
                });
                let set = read.as_ref().or_else(|| in_block(doc).map(|at| &self.sets[at]));
                let Some(set) = set else { continue };
                for &(_, other) in candidates[at] {
                    task.check_cancelled()?;
                    found.extend(self.pair(other as usize, doc, set));
                }
            }
            Ok(found)
        };
        task.for_each_range(&lens, compare, |found: Vec<SimilarPair>| {
            pairs.extend(found);
            Ok(())
        })
    }

    /// Returns the pair of a document of the block and `doc`, which is `set`, if they are similar.
    fn pair(&self, in_block: usize, doc: u32, set: &GramSet) -> Option<SimilarPair> {
        let (task, first) = (self.task, self.block.docs[in_block]);
        let pair =
            |similarity| SimilarPair { doc_id_a: first.into(), doc_id_b: doc.into(), similarity };
        if self.sets[in_block].has_same_words(set) {
            return Some(pair(1.0));
        }
        let total = self.documents.size(first) + self.documents.size(doc);
        // Common n-grams c have c / (total - c) >= threshold.
        let least =
            (self.threshold / (1.0 + self.threshold) * total as f64 - SLACK).ceil() as usize;
        let of_block = &self.sets[in_block];
        let common = of_block.num_common(set, least, &task.hashing, task.num_words)?;
        let similarity = common as f64 / (total - common) as f64;
        (similarity >= self.threshold).then(|| pair(similarity))
    }
}
