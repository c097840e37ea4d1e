//! Near duplicates: pairs of documents that have most of their n-grams in common.
//!
//! ```text
//! documents  0: a b c d e f    1: a b c d e g    2: a b c d e f      n = 2
//! n-grams    ab bc cd de ef    ab bc cd de eg    as 0
//! pairs      0, 2: 5 of 5 in common, 1.0     0, 1: 4 of 6, 0.67      not 1, 2: 2 equals 0
//! ```
//!
//! The similarity of two documents is that of Jaccard: the n-grams of both, divided by the n-grams of either, each
//! counted once. It is computed on the sets themselves, so no pair is wrong, and none is missed. Documents of fewer
//! than n words have no n-grams and no pairs. Of documents with equal sets only the first stands for all in pairs with
//! others: it has a pair with each of them, and they have no more. So 10,000 equal documents make 9,999 pairs.
//!
//! ```text
//! text ──hashes──▶ counters, sizes ──prefixes──▶ lists of documents ──candidates──▶ blocks ──▶ pairs
//!      of n-grams  of documents                  x: │prefix │ rest │                of words
//!                                                y: │prefix   │ rest │   similar only if these meet
//! ```
//!
//! The join filters by prefixes (Chaudhuri, Ganti, Kaushik, "A primitive operator for similarity joins in data
//! cleaning", ICDE 2006; Bayardo, Ma, Srikant, "Scaling up all pairs similarity search", WWW 2007). Let all sets be
//! sorted by the same order. Two sets of s and s' n-grams that are similar share at least threshold * s. So each has
//! one of them among its first s - ceil(threshold * s) + 1 n-grams. Rare n-grams come first, so few sets meet. Sets of
//! lengths that differ too much are not compared. MinHash would miss pairs.
//!
//! 1. `documents`: the parts are read for the first time. Each n-gram is its hash.
//!    Counters estimate the number of its documents.
//! 2. `index`: the n-grams of the prefixes are read and sorted, in classes of hashes if memory has no
//!    room for all. N-grams of one document never meet. They make most of most texts.
//! 3. `comparing`: documents whose prefixes meet are compared, a block of documents with all later
//!    ones, by the words of their n-grams.
//! 4. `clusters`: the documents that pairs join, with the first one to keep.
//!
//! The pairs are exact. The order of n-grams is by counter and hash, the same for all sets, so estimates cost time
//! only. Two n-grams of one document never have the same hash: they are compared, and the search begins again with
//! other random keys if they do. So the hashes of two documents have at least as many in common as their n-grams, and
//! the filter loses no pair. Documents of equal hashes are compared before the first pair, and the search begins again
//! if their words say that they differ. All similarities are counted by words.
//!
//! O(words) for each class and block, O(prefixes * log prefixes), and O(n-grams) for each pair of sets whose prefixes
//! meet. A corpus may come in parts ([`CorpusParts`]), one of which is in memory at a time. Memory beside it: 2 bytes
//! for each word, at most a quarter of what it may take; 21 for each document; 32 for each n-gram of a prefix and
//! class, and 16 for each that meets another; 20 for each word of a block, 80 MB in all if the corpus is in memory; 8
//! for each word of a part's dictionaries, 64 if words are folded; 40 for each word of the largest document. A corpus
//! of more than eight words for each byte of memory is refused.

mod clusters;
mod comparing;
mod documents;
mod index;

use rayon::prelude::*;

use super::repeated_phrases::check_at_least;
use super::rolling_hash::Hashing;
use super::task_limits::CorpusParts;
use crate::error::{Error, Result};
use crate::text::Fold;
pub use clusters::{ClusteredDoc, DuplicateClusters};
use comparing::Block;
use documents::{Documents, Task};
use index::Index;

/// Slack of products of sizes and the threshold. It exceeds the error of rounding, and makes
/// filters a little weaker at most.
const SLACK: f64 = 1e-6;
/// Bytes of the first block of a corpus in memory, and of its largest one.
const FIRST_BLOCK_BYTES: u64 = 1 << 19;
const MAX_BLOCK_BYTES: u64 = 80 << 20;
/// Growth of blocks of a corpus in memory.
const BLOCK_GROWTH: u64 = 4;
/// Number of documents whose candidates are found at a time.
const BATCH_DOCS: usize = 1024;
/// Bytes of memory for each pair that is found.
const PAIR_BYTES: u64 = size_of::<SimilarPair>() as u64;

/// Two documents that are similar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimilarPair {
    /// Document with the lower id.
    pub doc_id_a: u64,
    /// Document with the higher id.
    pub doc_id_b: u64,
    /// N-grams of both, divided by n-grams of either: above 0, and 1 at most.
    pub similarity: f64,
}

/// Documents of a corpus as sets of n-grams, ready to be compared.
pub struct NearDuplicates<'a, P> {
    task: Task<'a, P>,
    documents: Documents,
    index: Index,
    /// Bytes of memory of the caller that count, too.
    bytes_beside: u64,
}

impl<'a, P: CorpusParts + Sync> NearDuplicates<'a, P> {
    /// Reads the n-grams of `parts`, with `num_words` words each, as `fold` leaves them. Pairs will
    /// have a similarity of `threshold` or more.
    ///
    /// ```
    /// use tadoc::Corpus;
    /// use tadoc::analytics::{Fold, NearDuplicates, OnePart};
    /// use tadoc::build::{CorpusBuilder, IngestOptions};
    /// use tadoc::format::OpenLimits;
    ///
    /// # fn main() -> tadoc::Result<()> {
    /// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// builder.push_document("a", b"the quick brown fox jumps")?;
    /// builder.push_document("b", b"The quick brown fox jumps")?;
    /// let (file, _report) = builder.finish(None)?;
    /// let (_footer, corpus) = Corpus::from_bytes("c.tadoc", &file, &OpenLimits::default())?;
    ///
    /// let parts = OnePart(&corpus);
    /// let documents = NearDuplicates::new(&parts, 0.5, 2, &Fold::NONE, 1 << 30)?;
    /// documents.for_each_pairs(|pairs| {
    ///     assert_eq!((pairs[0].doc_id_a, pairs[0].doc_id_b, pairs[0].similarity), (0, 1, 0.6));
    ///     Ok(true)
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`check_similarity`]; [`Error::Capacity`] if the work needs more than
    /// `max_memory_bytes`; [`Error::Cancelled`]; the errors of `parts`.
    pub fn new(parts: &'a P, threshold: f64, num_words: usize, fold: &'a Fold, max_memory_bytes: u64) -> Result<Self> {
        check_similarity(threshold, num_words)?;
        loop {
            let hashing = Hashing::new(u64::MAX);
            let task = Task { parts, fold, threshold, num_words, max_memory_bytes, hashing };
            // It is very unlikely that two n-grams have the same hash even once.
            if let Some(found) = Self::read(task)? {
                return Ok(found);
            }
        }
    }

    /// Reads the parts. Returns `None` if n-grams that differ have the same hash where it matters.
    fn read(task: Task<'a, P>) -> Result<Option<Self>> {
        let Some((documents, counts)) = Documents::read(&task)? else { return Ok(None) };
        let index = Index::new(&task, &documents, &counts)?;
        drop(counts);
        let found = Self { task, documents, index, bytes_beside: 0 };
        found.task.hold(found.memory_bytes())?;
        Ok(found.have_copies_equal_sets()?.then_some(found))
    }

    /// Returns true if documents that seem to be copies have the n-grams of the first one.
    fn have_copies_equal_sets(&self) -> Result<bool> {
        let mut block = Block::default();
        let are_equal = |block: Block| {
            let num_pairs = block.num_candidates();
            let held_bytes = self.memory_bytes();
            let pairs = block.compare(&self.task, &self.documents, 1.0, held_bytes)?;
            Ok(pairs.len() == num_pairs)
        };
        let max_bytes = self.max_block_bytes();
        for copies in self.documents.copies().chunk_by(|a, b| a.0 == b.0) {
            let docs: Vec<u32> = copies.iter().map(|&(_, copy)| copy).collect();
            block.push(&self.documents, copies[0].0, &docs);
            if block.memory_bytes() > max_bytes && !are_equal(std::mem::take(&mut block))? {
                return Ok(false);
            }
        }
        are_equal(block)
    }

    /// Calls `take` with the pairs, in order of both ids and some at a time, until it returns
    /// false.
    ///
    /// # Errors
    /// [`Error::Capacity`] if the work needs more memory than it may take, [`Error::Cancelled`],
    /// and the errors of the parts and of `take`.
    pub fn for_each_pairs(&self, mut take: impl FnMut(&[SimilarPair]) -> Result<bool>) -> Result<()> {
        let max_bytes = self.max_block_bytes();
        // Each block of a corpus that is loaded part by part loads it once more.
        let is_loaded = self.task.parts.num_parts() == 1;
        let mut block_bytes = if is_loaded { FIRST_BLOCK_BYTES.min(max_bytes) } else { max_bytes };
        let mut next = 0;
        while next < self.documents.len() as u32 {
            let (block, copies) = self.next_block(&mut next, block_bytes)?;
            let held_bytes = self.memory_bytes() + copies.capacity() as u64 * PAIR_BYTES;
            let threshold = self.task.threshold;
            let mut pairs = block.compare(&self.task, &self.documents, threshold, held_bytes)?;
            if !copies.is_empty() {
                pairs.extend(copies);
                pairs.sort_unstable_by_key(|pair| (pair.doc_id_a, pair.doc_id_b));
            }
            if !pairs.is_empty() && !take(&pairs)? {
                break;
            }
            block_bytes = max_bytes.min(block_bytes.saturating_mul(BLOCK_GROWTH));
        }
        Ok(())
    }

    /// Returns the next documents with their candidates, and the pairs with their copies. `next`
    /// moves behind them.
    fn next_block(&self, next: &mut u32, max_bytes: u64) -> Result<(Block, Vec<SimilarPair>)> {
        let mut block = Block::default();
        let mut pairs = Vec::new();
        while *next < self.documents.len() as u32 {
            self.task.check_cancelled()?;
            let (batch, end) = self.next_batch(*next, max_bytes);
            let threshold = self.task.threshold;
            let candidates = |&doc: &u32| {
                self.task.check_cancelled()?;
                Ok(self.index.candidates(&self.documents, doc, threshold))
            };
            let found: Vec<Vec<u32>> = batch.par_iter().map(candidates).collect::<Result<_>>()?;
            for (&doc, candidates) in batch.iter().zip(&found) {
                if block.memory_bytes() + pairs.len() as u64 * PAIR_BYTES > max_bytes {
                    *next = doc;
                    return Ok((block, pairs));
                }
                block.push(&self.documents, doc, candidates);
                let copies = self.documents.copies_for(doc).iter();
                pairs.extend(copies.map(|&(first, copy)| SimilarPair {
                    doc_id_a: first.into(),
                    doc_id_b: copy.into(),
                    similarity: 1.0,
                }));
            }
            *next = end;
        }
        Ok((block, pairs))
    }

    /// Returns the next documents that may have pairs, and the one behind them.
    fn next_batch(&self, next: u32, max_bytes: u64) -> (Vec<u32>, u32) {
        let mut batch = Vec::new();
        let mut num_candidates = 0;
        for doc in next..self.documents.len() as u32 {
            // Each candidate has 32 bits, before those that were found twice are dropped.
            if batch.len() == BATCH_DOCS || num_candidates * 8 > max_bytes {
                return (batch, doc);
            }
            let max_candidates = self.index.max_candidates(doc);
            if max_candidates > 0 || !self.documents.copies_for(doc).is_empty() {
                num_candidates += max_candidates;
                batch.push(doc);
            }
        }
        (batch, self.documents.len() as u32)
    }

    /// Returns the id of the first document of `part`, or the number of documents if there is no
    /// such part.
    pub fn first_doc_id(&self, part: usize) -> u64 {
        self.documents.first_of_part(part)
    }

    fn max_block_bytes(&self) -> u64 {
        let free_bytes = self.task.max_memory_bytes.saturating_sub(self.memory_bytes());
        match self.task.parts.num_parts() {
            1 => MAX_BLOCK_BYTES.min(free_bytes / 2),
            _ => free_bytes / 2,
        }
    }

    /// Returns the bytes of memory in use between two blocks.
    pub fn memory_bytes(&self) -> u64 {
        self.documents.memory_bytes() + self.index.memory_bytes() + self.bytes_beside
    }
}

/// Checks the threshold and the number of words of [`NearDuplicates::new`].
///
/// # Errors
/// [`Error::InvalidArgument`] if `threshold` is not above 0 and at most 1, or if `num_words` is 0.
pub fn check_similarity(threshold: f64, num_words: usize) -> Result<()> {
    if !(threshold > 0.0 && threshold <= 1.0) {
        return Err(Error::InvalidArgument {
            name: "threshold",
            got: threshold.to_string(),
            allowed: "a number above 0, 1 at most".to_owned(),
        });
    }
    check_at_least("n", num_words as u64, 1)
}

/// Tests of what only the module can force: hashes that collide, and classes and blocks of few
/// bytes.
#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::analytics::OnePart;
    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::OpenLimits;
    use crate::segment::Corpus;

    const AMPLE: u64 = 1 << 30;

    /// A corpus cut wherever no document crosses.
    struct Parts(Vec<Corpus>);

    impl CorpusParts for Parts {
        type Part = Corpus;

        fn num_parts(&self) -> usize {
            self.0.len()
        }

        fn num_words(&self) -> u64 {
            0
        }

        fn part(&self, index: usize) -> Result<Corpus> {
            Ok(self.0[index].clone())
        }

        fn hold(&self, _bytes: u64) -> Result<()> {
            Ok(())
        }

        fn is_cancelled(&self) -> bool {
            false
        }
    }

    fn corpus_for(texts: &[String], block_bytes: usize) -> Corpus {
        let options = IngestOptions { block_bytes, ..IngestOptions::default() };
        let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
        for text in texts {
            builder.push_document("text", text.as_bytes()).unwrap();
        }
        let (file, _) = builder.finish(None).unwrap();
        Corpus::from_bytes("pairs.tadoc", &file, &OpenLimits::default()).unwrap().1
    }

    fn parts_for(corpus: &Corpus) -> Parts {
        let mut parts: Vec<Vec<_>> = Vec::new();
        for segment in corpus.segments() {
            match parts.last_mut().filter(|_| segment.continues) {
                Some(part) => part.push(segment.clone()),
                None => parts.push(vec![segment.clone()]),
            }
        }
        Parts(parts.into_iter().map(|part| Corpus::new(corpus.profile(), part)).collect())
    }

    /// Searches once, with hashes of which few bits are kept.
    fn find_once(
        parts: &(impl CorpusParts + Sync),
        (threshold, num_words): (f64, usize),
        fold: &Fold,
        kept_bits: u64,
        max_memory_bytes: u64,
    ) -> Result<Option<Vec<SimilarPair>>> {
        let hashing = Hashing::new(kept_bits);
        let task = Task { parts, fold, threshold, num_words, max_memory_bytes, hashing };
        let Some(found) = NearDuplicates::read(task)? else { return Ok(None) };
        let mut pairs = Vec::new();
        found.for_each_pairs(|some| {
            pairs.extend_from_slice(some);
            Ok(true)
        })?;
        Ok(Some(pairs))
    }

    /// Compares the sets of all documents.
    fn slow(docs: &[Vec<String>], (threshold, num_words): (f64, usize)) -> Vec<SimilarPair> {
        let sets: Vec<BTreeSet<&[String]>> = docs.iter().map(|doc| doc.windows(num_words).collect()).collect();
        let is_copy = |of: usize| sets[..of].contains(&sets[of]);
        let mut pairs = Vec::new();
        for a in (0..docs.len()).filter(|&a| !sets[a].is_empty() && !is_copy(a)) {
            for b in a + 1..docs.len() {
                let common = sets[a].intersection(&sets[b]).count();
                let similarity = common as f64 / sets[a].union(&sets[b]).count() as f64;
                if similarity >= threshold && (sets[a] == sets[b] || !is_copy(b)) {
                    pairs.push(SimilarPair { doc_id_a: a as u64, doc_id_b: b as u64, similarity });
                }
            }
        }
        pairs
    }

    /// If no bit of a value is kept, all n-grams have one hash. The search fails, and begins again.
    #[test]
    fn colliding_hashes_cost_only_time() {
        let find = |texts: &[String], kept_bits: u64| {
            let corpus = corpus_for(texts, 1 << 20);
            find_once(&OnePart(&corpus), (0.5, 2), &Fold::NONE, kept_bits, AMPLE).unwrap()
        };
        let text = |from: u32, to: u32| (from..to).map(|at| format!("w{at} ")).collect::<String>();
        let texts = [text(0, 90), text(4, 90), text(0, 90), "alone".into()];
        assert!(find(&texts, 0).is_none());
        assert_eq!(find(&texts, u64::MAX).unwrap().len(), 2);
        // Documents of one n-gram each seem to be copies, and are none.
        assert!(find(&["a b".into(), "c d".into()], 0).is_none());
        assert_eq!(find(&["a b".into(), "a b".into(), "a b".into()], 0).unwrap().len(), 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// Whatever hashes collide and however little memory there is, a search that ends has all
        /// pairs.
        #[test]
        fn searches_that_end_are_right(
            docs in prop::collection::vec(prop::collection::vec(0..9_usize, 0..14), 1..40),
            threshold in prop::sample::select(vec![0.1, 0.3, 0.5, 0.8, 1.0]),
            num_words in 1..4_usize,
            is_folded in any::<bool>(),
            block_bytes in 8..300_usize,
            bits in 2..12_u32,
            memory in 2_000..40_000_u64,
        ) {
            const WORDS: [&str; 9] = ["a", "b", "c", "d", "A", "B", "g", "h", "i"];
            let fold = if is_folded { Fold::CASE } else { Fold::NONE };
            let words = |doc: &Vec<usize>| -> Vec<&str> { doc.iter().map(|&at| WORDS[at]).collect() };
            let texts: Vec<String> = docs.iter().map(|doc| words(doc).join(" ")).collect();
            let corpus = corpus_for(&texts, block_bytes);
            let folded = |word: &str| fold.text(word).into_owned();
            let folded: Vec<Vec<String>> =
                docs.iter().map(|doc| words(doc).into_iter().map(folded).collect()).collect();
            let how = (threshold, num_words);
            let parts = parts_for(&corpus);
            let expected = slow(&folded, how);
            for kept_bits in [u64::MAX, (1 << bits) - 1] {
                let whole = find_once(&OnePart(&corpus), how, &fold, kept_bits, AMPLE).unwrap();
                prop_assert_eq!(whole.as_ref().unwrap_or(&expected), &expected);
                let in_parts = find_once(&parts, how, &fold, kept_bits, AMPLE).unwrap();
                prop_assert_eq!(in_parts.as_ref().unwrap_or(&expected), &expected);
                prop_assert!(kept_bits < u64::MAX || whole.is_some() && in_parts.is_some());
            }
            match find_once(&parts, how, &fold, u64::MAX, memory) {
                Ok(pairs) => prop_assert_eq!(pairs.unwrap(), expected),
                Err(error) => prop_assert!(matches!(error, Error::Capacity { .. }), "{}", error),
            }
        }
    }
}
