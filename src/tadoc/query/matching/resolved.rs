//! A query as word ids of the dictionary of each segment.
//!
//! The dictionary of a segment is searched when the segment is first asked for an item, once for
//! each item. A search that ends early never reads the other dictionaries.

use std::cell::OnceCell;

use crate::error::Result;
use crate::segment::Corpus;

use crate::interrupt::Canceller;
use crate::query::language::query::Query;
use crate::query::matching::cut::{CutMatch, matches_across};
use crate::query::matching::occurrences::Item;
use crate::query::matching::word_set::WordSet;

/// A query and its words in a corpus; V / 8 bytes for each pattern and segment at most.
#[derive(Debug)]
pub(in crate::query) struct ResolvedQuery<'a> {
    corpus: &'a Corpus,
    query: &'a Query,
    canceller: Canceller<'a>,
    /// Sets by segment, then item; `None` if a word of the item is not in the segment.
    sets: Vec<OnceCell<Option<Vec<WordSet>>>>,
}

impl<'a> ResolvedQuery<'a> {
    pub fn new(corpus: &'a Corpus, query: &'a Query, canceller: Canceller<'a>) -> Self {
        let num_sets = corpus.segments().len() * query.items().len();
        Self { corpus, query, canceller, sets: vec![OnceCell::new(); num_sets] }
    }

    pub fn corpus(&self) -> &'a Corpus {
        self.corpus
    }

    /// Returns the number of documents of a segment, including a continued part.
    pub fn num_docs(&self, segment_idx: usize) -> usize {
        self.corpus.segments()[segment_idx].dag.grammar().num_docs()
    }

    pub fn query(&self) -> &'a Query {
        self.query
    }

    fn num_items(&self) -> usize {
        self.query.items().len()
    }

    /// Returns item `item_idx` in segment `segment_idx`; `None` if it cannot occur there.
    pub fn item(&self, segment_idx: usize, item_idx: usize) -> Option<Item<'_>> {
        let segment = &self.corpus.segments()[segment_idx];
        let find = || -> Option<Vec<WordSet>> {
            let patterns = self.query.items()[item_idx].iter();
            let sets = patterns.map(|pattern| pattern.find(&segment.dictionary));
            sets.map(|set| (!set.is_empty()).then_some(set)).collect()
        };
        let words = self.sets[segment_idx * self.num_items() + item_idx].get_or_init(find);
        words.as_ref().map(|words| Item::new(segment, words, self.canceller))
    }

    /// Returns the matches of item `item_idx` that begin in segment `segment_idx` and end in a
    /// later one.
    pub fn matches_across(&self, segment_idx: usize, item_idx: usize) -> Result<Vec<CutMatch>> {
        matches_across(self.corpus, segment_idx, &self.query.items()[item_idx])
    }
}
