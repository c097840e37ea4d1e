//! Documents that were cut at a block border, read as one document.
//!
//! ```text
//! segment s    ... | doc 8 | doc 9, first part |
//! segment s+1              | doc 9, second part | doc 10 | ...      continues
//! ```
//!
//! Offsets in a later part are increased by the lengths of the parts before it. A phrase may begin
//! in one part and end in a later one. Only the few words beside a cut are read, and only the parts
//! that hold them.

use crate::error::Result;
use crate::ids::DocId;
use crate::segment::{Corpus, Segment};

use crate::query::language::pattern::WordPattern;
use crate::read::decode::too_long;

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
    let matches = windows.filter(|(_, window)| {
        window.iter().zip(words).all(|(placed, word)| word.matches(placed.text))
    });
    let placed = matches.map(|(at, window)| CutMatch {
        byte_offset: window[0].start,
        byte_len: window[words.len() - 1].end - window[0].start,
        word_idx: first_word_idx + at as u64,
    });
    Ok(placed.collect())
}
