//! Words of an edited document: those of its base, and those beside its edits.
//!
//! Counts and offsets of a word in one document of the base corpus.
//!
//! The search climbs from the places of the word in the grammar to the root and skips places in
//! other documents. If the steps exceed a budget, the word is frequent or the grammar has long
//! chains of rules. Then [`count`](crate::query::count) or [`search_with`] answer. Their costs are
//! bounded, and they read the document instead if that is less work. If the segments keep the words
//! of documents, these give the counts, and show that a word does not occur.
//!
//! # Changes
//!
//! Differences between the words of an edited document and those of its base.
//!
//! The count of a word in an edited document is its count in the base, minus the lost occurrences,
//! plus those in new text. Both numbers are kept by word after they were first asked for, so a
//! count costs one more look-up. Each edit then updates the numbers of the words beside it, O(bytes
//! that are tokenized again).
//!
//! # Surroundings
//!
//! Bytes around an edit that are written again with it, so that pieces begin and end at cuts.
//!
//! ```text
//! document   … the power lo|ss of …        an insert inside a word
//! kept                   lo|ss             from the last cut before to the first one after
//! ```
//!
//! A window of [`WINDOW_BYTES`] on each side has a cut in nearly every text. If it has none, wider
//! windows up to [`MAX_WINDOW_BYTES`] are read, so an edit reads 8 KiB at most.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};

use crate::error::Result;
use crate::query;
use crate::query::{Query, Question, SearchOptions, Way, search_with};
use crate::segment::Corpus;
use crate::text::{TokenizerProfile, first_cut, for_each_token, last_cut};

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

/// Change of the occurrences of one word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WordChange {
    /// Number of occurrences in the base document that were removed.
    pub lost: u64,
    /// Number of occurrences in new text.
    pub fresh: u64,
}

/// Changes of all words whose occurrences differ from the base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WordChanges {
    by_word: HashMap<Box<[u8]>, WordChange>,
}

impl WordChanges {
    /// Returns the change of `word`.
    pub fn for_word(&self, word: &[u8]) -> WordChange {
        self.by_word.get(word).copied().unwrap_or_default()
    }

    /// Records that the base lost `text`, which begins and ends at a cut.
    pub fn lose(&mut self, profile: TokenizerProfile, text: &[u8]) {
        self.for_each_word(profile, text, |change| change.lost += 1);
    }

    /// Records that `text`, which begins and ends at a cut, was inserted.
    pub fn add(&mut self, profile: TokenizerProfile, text: &[u8]) {
        self.for_each_word(profile, text, |change| change.fresh += 1);
    }

    /// Records that `text`, which was inserted before and begins and ends at a cut, was removed.
    pub fn remove(&mut self, profile: TokenizerProfile, text: &[u8]) {
        self.for_each_word(profile, text, |change| change.fresh -= 1);
    }

    /// Returns the approximate number of bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let words: usize = self.by_word.keys().map(|word| word.len()).sum();
        words + self.by_word.capacity() * size_of::<(Box<[u8]>, WordChange)>()
    }

    fn for_each_word(&mut self, profile: TokenizerProfile, text: &[u8], mut change: impl FnMut(&mut WordChange)) {
        for_each_token(profile, text, |token| {
            if !token.is_word {
                return;
            }
            match self.by_word.get_mut(token.bytes) {
                Some(known) => change(known),
                None => change(self.by_word.entry(token.bytes.into()).or_default()),
            }
        });
    }
}

/// Number of bytes on each side of an edit that are first searched for a cut.
const WINDOW_BYTES: u64 = 48;
/// Factor by which each window is wider than the one before.
const WINDOW_GROWTH: u64 = 9;
/// Most bytes on each side that are searched.
const MAX_WINDOW_BYTES: u64 = 4096;

/// The bytes between two cuts around an edit, before and after it.
pub(super) struct Surroundings {
    seen: Vec<u8>,
    kept: Range<usize>,
    /// Position of the edit in `seen`.
    place: usize,
}

impl Surroundings {
    pub fn before(&self) -> &[u8] {
        &self.seen[self.kept.start..self.place]
    }

    pub fn behind(&self) -> &[u8] {
        &self.seen[self.place..self.kept.end]
    }
}

/// Returns the bytes from the last cut before `range` to its start, and from its end to the first
/// cut after it, in a document of `len_bytes`. `read` appends a range of its bytes. Returns `None`
/// if there is no cut nearby or the bytes cannot be read.
pub(super) fn surroundings(
    profile: TokenizerProfile,
    len_bytes: u64,
    range: &Range<u64>,
    read: impl Fn(Range<u64>, &mut Vec<u8>) -> Result<()>,
) -> Option<Surroundings> {
    let mut window = WINDOW_BYTES;
    while window <= MAX_WINDOW_BYTES {
        if let Some(around) = within(profile, len_bytes, range, window, &read).ok()? {
            return Some(around);
        }
        window *= WINDOW_GROWTH;
    }
    None
}

fn within(
    profile: TokenizerProfile,
    len_bytes: u64,
    range: &Range<u64>,
    window: u64,
    read: &impl Fn(Range<u64>, &mut Vec<u8>) -> Result<()>,
) -> Result<Option<Surroundings>> {
    let first = range.start.saturating_sub(window);
    let last = len_bytes.min(range.end.saturating_add(window));
    let mut seen = Vec::with_capacity(2 * window as usize + 16);
    let stays = if range.is_empty() { [first..last, last..last] } else { [first..range.start, range.end..last] };
    for range in stays.into_iter().filter(|range| !range.is_empty()) {
        read(range, &mut seen)?;
    }
    let place = (range.start - first) as usize;
    let (before, behind) = seen.split_at(place);
    let start = last_cut(profile, before).or((first == 0).then_some(0));
    let is_end_seen = last == len_bytes;
    let end = first_cut(profile, behind).or(is_end_seen.then_some(behind.len()));
    let (Some(start), Some(num_behind)) = (start, end) else { return Ok(None) };
    Ok(Some(Surroundings { seen, kept: start..place + num_behind, place }))
}
