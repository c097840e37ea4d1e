//! Selection of the documents that a task reads: a range or a list of ids; and corpora in parts, of
//! which few are in memory at a time.
//!
//! A task asks for parts by number, as often as it likes, and says how much memory it holds beside
//! them. The owner decides what stays in memory.

use std::borrow::Borrow;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::segment::Corpus;

/// Documents by id, ascending, each once. A selection is cheap to clone and to cut.
#[derive(Debug, Clone)]
pub struct DocSelection(Docs);

#[derive(Debug, Clone)]
enum Docs {
    Range(Range<u64>),
    List(Arc<[u64]>, Range<usize>),
}

impl DocSelection {
    /// Selects every document of `corpus`.
    pub fn all(corpus: &Corpus) -> Self {
        Self::range(0..corpus.num_docs())
    }

    /// Selects the documents with an id in `ids`. The selection is empty if the range ends before
    /// it starts.
    pub fn range(ids: Range<u64>) -> Self {
        Self(Docs::Range(ids.start..ids.end.max(ids.start)))
    }

    /// Selects the documents with the given `ids`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless each id is larger than the one before it.
    pub fn list(ids: impl Into<Arc<[u64]>>) -> Result<Self> {
        let ids = ids.into();
        match ids.windows(2).find(|pair| pair[0] >= pair[1]) {
            None => {
                let all = 0..ids.len();
                Ok(Self(Docs::List(ids, all)))
            }
            Some(pair) => Err(Error::InvalidArgument {
                name: "doc_ids",
                got: format!("{} before {}", pair[0], pair[1]),
                allowed: "ids in ascending order, each once".into(),
            }),
        }
    }

    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        match &self.0 {
            Docs::Range(ids) => usize::try_from(ids.end - ids.start).unwrap_or(usize::MAX),
            Docs::List(_, range) => range.len(),
        }
    }

    /// Returns true if no document is selected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the id of the document at `index`, or `None` if `index` is not below
    /// [`len`](Self::len).
    #[inline]
    pub fn get(&self, index: usize) -> Option<u64> {
        match &self.0 {
            Docs::Range(ids) => Some(ids.start + index as u64).filter(|&id| id < ids.end),
            Docs::List(ids, range) => ids[range.clone()].get(index).copied(),
        }
    }

    /// Returns the ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len()).map_while(|index| self.get(index))
    }

    /// Returns the documents at `indexes`; indexes behind the end are ignored.
    #[must_use]
    pub fn slice(&self, indexes: Range<usize>) -> Self {
        let end = indexes.end.min(self.len());
        let start = indexes.start.min(end);
        Self(match &self.0 {
            Docs::Range(ids) => Docs::Range(ids.start + start as u64..ids.start + end as u64),
            Docs::List(ids, range) => Docs::List(ids.clone(), range.start + start..range.start + end),
        })
    }

    /// Returns the selected documents with an id in `ids`.
    #[must_use]
    pub fn within(&self, ids: Range<u64>) -> Self {
        self.slice(self.num_below(ids.start)..self.num_below(ids.end))
    }

    /// Returns the number of documents with an id below `end`.
    fn num_below(&self, end: u64) -> usize {
        match &self.0 {
            Docs::Range(ids) => {
                let num_below = end.clamp(ids.start, ids.end) - ids.start;
                usize::try_from(num_below).unwrap_or(usize::MAX)
            }
            Docs::List(ids, range) => ids[range.clone()].partition_point(|&id| id < end),
        }
    }
}

/// Greatest number of words that tasks read for each byte of memory that they may take. So a small
/// file that expands to 2^60 words is refused.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_lists_are_cut_alike() {
        let range = DocSelection::range(3..9);
        let list = DocSelection::list([3, 4, 5, 6, 7, 8]).unwrap();
        for docs in [range, list] {
            assert_eq!(docs.iter().collect::<Vec<_>>(), [3, 4, 5, 6, 7, 8]);
            let part = docs.slice(1..4);
            assert_eq!((part.len(), part.get(0), part.get(3)), (3, Some(4), None));
            assert_eq!(part.slice(2..9).iter().collect::<Vec<_>>(), [6]);
            assert_eq!(docs.within(0..5).iter().collect::<Vec<_>>(), [3, 4]);
            assert_eq!(part.within(5..100).iter().collect::<Vec<_>>(), [5, 6]);
            assert!(docs.within(9..u64::MAX).is_empty() && docs.slice(6..8).is_empty());
        }
        let gaps = DocSelection::list([2, 5, 9]).unwrap();
        assert_eq!(gaps.within(3..9).iter().collect::<Vec<_>>(), [5]);
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = DocSelection::range(5..2);
        assert!(backwards.is_empty());
    }

    #[test]
    fn refuses_ids_out_of_order() {
        for ids in [vec![1, 1], vec![0, 5, 4]] {
            let fault = DocSelection::list(ids).unwrap_err();
            assert!(matches!(fault, Error::InvalidArgument { name: "doc_ids", .. }), "{fault}");
        }
    }
}
