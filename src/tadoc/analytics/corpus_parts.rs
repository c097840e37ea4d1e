//! A corpus in parts, of which few are in memory at a time: what a task needs of an owner of corpora that
//! are larger than memory. Ours.
//!
//! A task asks for parts by number, as often as it likes, and says how much memory it holds beside them.
//! The owner decides what stays in memory.

use std::borrow::Borrow;

use crate::error::Result;
use crate::segment::Corpus;

/// Greatest number of words that tasks read for each byte of memory that they may take. So a small file
/// that expands to 2^60 words is refused.
pub(super) const WORDS_PER_BYTE: u64 = 8;

/// A corpus in parts. No document lies in two parts.
pub trait CorpusParts {
    /// A part in memory.
    type Part: Borrow<Corpus>;

    /// Returns the number of parts.
    fn num_parts(&self) -> usize;

    /// Returns an estimate of the number of words of all parts.
    fn num_words(&self) -> u64;

    /// Loads a part. It may be dropped and loaded again. At most two are held at a time.
    ///
    /// # Errors
    /// The errors of loading.
    fn part(&self, index: usize) -> Result<Self::Part>;

    /// Notes that the search holds so many bytes of memory beside the parts.
    ///
    /// # Errors
    /// The owner has too little memory.
    fn hold(&self, bytes: u64) -> Result<()>;

    /// Returns true if the caller wants to stop.
    fn is_cancelled(&self) -> bool;
}

/// A corpus in memory, as its only part.
#[derive(Debug, Clone, Copy)]
pub struct OnePart<'a>(pub &'a Corpus);

impl<'a> CorpusParts for OnePart<'a> {
    type Part = &'a Corpus;

    fn num_parts(&self) -> usize {
        1
    }

    fn num_words(&self) -> u64 {
        0
    }

    fn part(&self, _index: usize) -> Result<&'a Corpus> {
        Ok(self.0)
    }

    fn hold(&self, _bytes: u64) -> Result<()> {
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Returns the number of words of document `doc_id` of `corpus`, or 2^64 - 1 if there are more.
pub(super) fn doc_words(corpus: &Corpus, doc_id: u64) -> u64 {
    let parts = corpus.doc_parts(doc_id);
    let lens = parts.map(|(at, doc)| corpus.segments()[at].doc_length_or_derive(doc));
    lens.map(|len| len.num_words).fold(0, u64::saturating_add)
}
