//! A query as word ids of the dictionary of each segment.
//!
//! The dictionary of a segment is searched when the segment is first asked for an item, once for
//! each item. A search that ends early never reads the other dictionaries.
//!
//! # Cut documents
//!
//! ```text
//! segment s    ... | doc 8 | doc 9, first part |
//! segment s+1              | doc 9, second part | doc 10 | ...      continues
//! ```
//!
//! Offsets in a later part are increased by the lengths of the parts before it. A phrase may begin
//! in one part and end in a later one. Only the few words beside a cut are read, and only the parts
//! that hold them.

use std::cell::OnceCell;

use crate::error::Result;
use crate::ids::DocId;
use crate::interrupt::Canceller;
use crate::query::language::pattern::WordPattern;
use crate::query::language::query::Query;
use crate::read::too_long;
use crate::segment::{Corpus, Segment};

use super::occurrences::Item;
use super::sets::WordSet;

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

/// Number of bytes and words of a document before one of its parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::query) struct PartStart {
    pub bytes: u64,
    pub words: u64,
}

impl PartStart {
    /// Returns the start of the next part, where this part is document `doc` of `segment`.
    fn after(self, segment: &Segment, doc: DocId) -> Result<Self> {
        let length = segment.doc_length_or_derive(doc);
        let bytes = self.bytes.checked_add(length.len_bytes).ok_or_else(too_long)?;
        let words = self.words.checked_add(length.num_words).ok_or_else(too_long)?;
        Ok(Self { bytes, words })
    }
}

/// Returns the start of the first document of segment `segment_idx`. It is not 0 if that document
/// began in an earlier segment. Sums up to the end of that document in this segment fit into 64
/// bits.
pub(in crate::query) fn part_start(corpus: &Corpus, segment_idx: usize) -> Result<PartStart> {
    let doc_id = corpus.first_doc_id(segment_idx);
    let (mut start, mut end) = (PartStart::default(), PartStart::default());
    for (idx, doc) in corpus.doc_parts(doc_id).take_while(|&(idx, _)| idx <= segment_idx) {
        start = end;
        end = start.after(&corpus.segments()[idx], doc)?;
    }
    Ok(start)
}

/// A phrase that begins in one part of a document and ends in a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) struct CutMatch {
    pub byte_offset: u64,
    pub byte_len: u64,
    pub word_idx: u64,
}

/// A word beside a cut, with its offsets in the whole document.
struct WordBesideCut<'a> {
    text: &'a str,
    start: u64,
    end: u64,
}

/// Returns the last document of segment `segment_idx` if it continues in a later segment.
pub(in crate::query) fn doc_cut_after(corpus: &Corpus, segment_idx: usize) -> Option<DocId> {
    let last = corpus.segments()[segment_idx].dag.grammar().docs().next_back()?;
    let mut parts = corpus.doc_parts(corpus.doc_id(segment_idx, last));
    parts.any(|(idx, _)| idx > segment_idx).then_some(last)
}

/// Returns the matches of the phrase `words` that begin in the last document of segment
/// `segment_idx` and end in a later part of it, in ascending order. Offsets and word indexes count
/// from the start of the document.
pub(in crate::query) fn matches_across(
    corpus: &Corpus,
    segment_idx: usize,
    words: &[WordPattern],
) -> Result<Vec<CutMatch>> {
    let Some(cut_doc) = doc_cut_after(corpus, segment_idx).filter(|_| words.len() > 1) else {
        return Ok(Vec::new());
    };
    let doc_id = corpus.doc_id(segment_idx, cut_doc);
    let reach = words.len() as u64 - 1;
    let mut beside: Vec<WordBesideCut<'_>> = Vec::new();
    let mut first_word_idx = 0;
    let mut num_before_cut = 0;
    let mut start = PartStart::default();
    for (idx, doc) in corpus.doc_parts(doc_id).skip_while(|&(idx, _)| idx < segment_idx) {
        let segment = &corpus.segments()[idx];
        let num_words = segment.doc_length_or_derive(doc).num_words;
        let taken = if idx == segment_idx {
            // Only the first document of a segment can have earlier parts.
            start = if doc == DocId::FIRST { part_start(corpus, idx)? } else { start };
            num_words.saturating_sub(reach)..num_words
        } else {
            match (num_before_cut + words.len() - 1).saturating_sub(beside.len()) as u64 {
                0 => break,
                missing => 0..num_words.min(missing),
            }
        };
        if idx == segment_idx {
            first_word_idx = start.words + taken.start;
            num_before_cut = (taken.end - taken.start) as usize;
        }
        beside.extend(taken.map(|word_idx| {
            let sums = segment.prefix_sums_or_derive();
            let span = sums.word_span(&segment.dag, segment.dag.doc_range(doc), word_idx);
            let at = start.bytes + span.byte_offset;
            let text = segment.dictionary.word(span.word);
            WordBesideCut { text, start: at, end: at + span.byte_len }
        }));
        start = start.after(segment, doc)?;
    }
    let windows = beside.windows(words.len()).take(num_before_cut).enumerate();
    let matches =
        windows.filter(|(_, window)| window.iter().zip(words).all(|(placed, word)| word.matches(placed.text)));
    let placed = matches.map(|(at, window)| CutMatch {
        byte_offset: window[0].start,
        byte_len: window[words.len() - 1].end - window[0].start,
        word_idx: first_word_idx + at as u64,
    });
    Ok(placed.collect())
}
