//! Counts and offsets of a word in one document of the base corpus.
//!
//! The search climbs from the places of the word in the grammar to the root and skips places in
//! other documents. If the steps exceed a budget, the word is frequent or the grammar has long
//! chains of rules. Then [`count`](crate::query::count) or [`search_with`] answer. Their costs are
//! bounded, and they read the document instead if that is less work. If the segments keep the words
//! of documents, these give the counts, and show that a word does not occur.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::query;
use crate::query::{Query, Question, SearchOptions, Way, search_with};
use crate::segment::Corpus;

/// Returns the number of occurrences of `word` in document `doc_id`, which must exist.
pub(super) fn count(corpus: &Corpus, doc_id: u64, word: &str) -> Result<u64> {
    let kept = query::kept_count(corpus, doc_id, word);
    let question = Question::Living { keeps_words: kept.is_some() };
    match (question.way(None, []), kept) {
        (Way::KeptWords, Some(count)) => return Ok(count),
        (Way::Climb { max_positions }, _) => {
            let mut count = 0;
            if climb::<false>(corpus, doc_id, word, max_positions, &mut |_| count += 1) {
                return Ok(count);
            }
        }
        _ => {}
    }
    let options = SearchOptions { doc_id: Some(doc_id), ..Default::default() };
    query::count(corpus, &Query::for_word(word), &options)
}

/// Appends the byte offsets of `word` in document `doc_id`, which must exist, to `offsets`, in
/// ascending order.
pub(super) fn find(corpus: &Corpus, doc_id: u64, word: &str, offsets: &mut Vec<u64>) -> Result<()> {
    let kept = query::kept_count(corpus, doc_id, word);
    let question = Question::Living { keeps_words: kept.is_some() };
    let mut way = question.way(None, []);
    if way == Way::KeptWords {
        if kept == Some(0) {
            return Ok(());
        }
        way = question.way(Some(way), []);
    }
    if let Way::Climb { max_positions } = way {
        let num_before = offsets.len();
        if climb::<true>(corpus, doc_id, word, max_positions, &mut |offset| offsets.push(offset)) {
            offsets[num_before..].sort_unstable();
            return Ok(());
        }
        offsets.truncate(num_before);
    }
    let options = SearchOptions { doc_id: Some(doc_id), ..Default::default() };
    search_with(corpus, &Query::for_word(word), &options, &mut |hits| {
        offsets.extend(hits.iter().map(|hit| hit.byte_offset));
        ControlFlow::Continue(())
    })
}

/// Calls `found` with the offset (if `OFFSETS`, else 0) of each occurrence, in no order. Returns
/// false if there are more than `max_positions` places; `found` may have been called before.
fn climb<const OFFSETS: bool>(
    corpus: &Corpus,
    doc_id: u64,
    word: &str,
    max_positions: usize,
    found: &mut dyn FnMut(u64),
) -> bool {
    let mut places_left = max_positions;
    let mut part_start = 0u64;
    let mut parts = corpus.doc_parts(doc_id).peekable();
    while let Some((segment_idx, doc)) = parts.next() {
        let segment = &corpus.segments()[segment_idx];
        if let Some(word) = segment.dictionary.word_id(word.as_bytes()) {
            let range = segment.dag.doc_range(doc);
            let placed = |_, offset: u64| found(part_start.wrapping_add(offset));
            if !query::climb::<OFFSETS>(segment, &[range], word, &mut places_left, placed) {
                return false;
            }
        }
        if parts.peek().is_some() {
            part_start = part_start.wrapping_add(segment.doc_length_or_derive(doc).len_bytes);
        }
    }
    true
}
