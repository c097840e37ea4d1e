//! Walks from a place in the grammar: up to the documents, and to the words beside it.
//!
//! A climb goes from the places of a rare word to the root, one path at a time. Nearly all words are
//! rare. The climb then takes 1.1 to 1.6 steps for each occurrence of the
//! word, and no memory except the stack. A frequent word, or a grammar with long chains of rules,
//! exceeds the budget. The other ways have bounded costs, but take longer before they begin.
//!
//! # Neighbours
//!
//! ```text
//! root     … [3] [7] [4] …           the word stands in rule 9, which stands in rule 7
//! rule 7       a [9] b               before: …[3] | a | power     innermost last
//! rule 9         power loss          after:  [4]… | b | loss
//! ```
//!
//! One descent leads to the word and keeps the positions before and after it on each level. Both directions continue
//! from there without another descent. Cost: O(depth * log rule length), then O(1) for each token on average. The parts
//! of a document that was cut are walked one after the other.

use std::ops::Range;

use crate::ids::{DocId, RuleId, WordId};
use crate::segment::{Corpus, Measure, Segment};

/// Number of places that are climbed through in the time of one look-up of a word in a document.
pub(in crate::query) const MANY_POSITIONS: u64 = 8;

/// An element on the way to the root, and the byte offset of the word in its expansion.
type OnTheWay = (u32, u64);

/// Calls `found` with each occurrence of `word` in `ranges`: the index of the range and the byte
/// offset in it, in no order. The ranges are documents of the root in ascending order, none of them
/// empty. Returns false if `positions_left` was exceeded; `found` may have been called before.
/// Without `OFFSETS` all offsets are 0, which saves half of the loads.
pub(crate) fn climb<const OFFSETS: bool>(
    segment: &Segment,
    ranges: &[Range<usize>],
    word: WordId,
    positions_left: &mut usize,
    mut found: impl FnMut(usize, u64),
) -> bool {
    let dag = &segment.dag;
    let sums = segment.prefix_sums_or_derive();
    let inverse = segment.inverse_or_derive();
    let start = |position: usize| if OFFSETS { sums.start(dag, Measure::Bytes, position) } else { 0 };
    let positions_before = *positions_left;
    let mut pending: Vec<OnTheWay> = Vec::new();
    let mut next = Some((u32::from(word), 0u64));
    while let Some((element, offset)) = next {
        let places = inverse.for_element(element);
        match positions_left.checked_sub(places.len()) {
            Some(left) => *positions_left = left,
            None => break,
        }
        for place in places {
            let position = place.position as usize;
            if place.rule_id == RuleId::ROOT {
                let before = ranges.partition_point(|range| range.end <= position);
                if let Some(range) = ranges.get(before).filter(|range| range.start <= position) {
                    let from_start = start(position).wrapping_sub(start(range.start));
                    found(before, offset.wrapping_add(from_start));
                }
                continue;
            }
            let from_start = if OFFSETS {
                let first = dag.rule_range(place.rule_id).start;
                start(position).wrapping_sub(start(first))
            } else {
                0
            };
            let element = dag.grammar().element_for(place.rule_id);
            pending.push((element, offset.wrapping_add(from_start)));
        }
        next = pending.pop();
    }
    let num_positions = (positions_before - *positions_left) as u64;
    if num_positions >= MANY_POSITIONS {
        segment.note_words_read(num_positions);
    }
    next.is_none()
}

/// A token. `has_blank` is true if a blank is implied between it and the token returned before. The
/// word at which both walks begin lies before the nearest token to its left.
#[derive(Debug, Clone, Copy)]
pub(in crate::query) struct Neighbour<'a> {
    pub bytes: &'a [u8],
    pub is_word: bool,
    pub has_blank: bool,
}

/// A token as its id in a segment, and as a [`Neighbour`] otherwise.
#[derive(Debug, Clone, Copy)]
pub(in crate::query) struct Step {
    pub segment_idx: usize,
    pub token: u32,
    pub is_word: bool,
    pub has_blank: bool,
}

/// An iterator over tokens in one direction.
#[derive(Debug)]
pub(in crate::query) struct Walk<'a> {
    corpus: &'a Corpus,
    /// Segment and document of each part that is left, in reverse order; the last one is the
    /// current part.
    parts: Vec<(usize, DocId)>,
    /// Positions that are left on each level of the current part, innermost last.
    levels: Vec<Range<usize>>,
    is_forward: bool,
    /// True if the token returned before is a word of the same part.
    is_beside_word: bool,
}

/// Returns the tokens before the word at byte `offset` of document `doc_id`, nearest first, and the
/// tokens from that word on. A word must begin there.
pub(in crate::query) fn walks_from(corpus: &Corpus, doc_id: u64, mut offset: u64) -> (Walk<'_>, Walk<'_>) {
    let parts: Vec<(usize, DocId)> = corpus.doc_parts(doc_id).collect();
    let len_bytes =
        |(segment_idx, doc): (usize, DocId)| corpus.segments()[segment_idx].doc_length_or_derive(doc).len_bytes;
    let mut here = 0;
    while here + 1 < parts.len() && offset >= len_bytes(parts[here]) {
        offset -= len_bytes(parts[here]);
        here += 1;
    }
    let walk = |parts: Vec<(usize, DocId)>, is_forward| Walk {
        corpus,
        parts,
        levels: Vec::with_capacity(32),
        is_forward,
        // The word at `offset` lies behind those before it.
        is_beside_word: !is_forward,
    };
    let mut before = walk(parts[..parts.len().min(here + 1)].to_vec(), false);
    let mut after = walk(parts[here..].iter().rev().copied().collect(), true);
    if let Some(&(segment_idx, doc)) = parts.get(here) {
        let segment = &corpus.segments()[segment_idx];
        split_at(segment, segment.dag.doc_range(doc), offset, &mut before.levels, &mut after.levels);
    }
    (before, after)
}

/// Descends to the word at byte `offset` of `range`. Adds the positions before it to `before`, and
/// those from it on to `after`.
fn split_at(
    segment: &Segment,
    mut range: Range<usize>,
    mut offset: u64,
    before: &mut Vec<Range<usize>>,
    after: &mut Vec<Range<usize>>,
) {
    let dag = &segment.dag;
    let symbols = &dag.grammar().symbols;
    let sums = segment.prefix_sums_or_derive_if_worth(range.len());
    while !range.is_empty() {
        let (position, start) = match sums {
            Some(sums) => sums.locate(dag, Measure::Bytes, range.clone(), offset),
            None => dag.locate_byte(range.clone(), offset),
        };
        before.push(range.start..position);
        let Some(rule_id) = dag.rule_of(symbols[position]) else {
            return after.push(position..range.end);
        };
        after.push(position + 1..range.end);
        range = dag.rule_range(rule_id);
        offset -= start;
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Neighbour<'a>;

    fn next(&mut self) -> Option<Neighbour<'a>> {
        let Step { segment_idx, token, is_word, has_blank } = self.next_step()?;
        let bytes = self.corpus.segments()[segment_idx].dictionary.get(token);
        Some(Neighbour { bytes, is_word, has_blank })
    }
}

impl<'a> Walk<'a> {
    /// Returns the next token without its text.
    pub(in crate::query) fn next_step(&mut self) -> Option<Step> {
        loop {
            let &(segment_idx, _) = self.parts.last()?;
            let corpus: &'a Corpus = self.corpus;
            let segment = &corpus.segments()[segment_idx];
            if let Some((token, has_blank)) = self.next_token(segment) {
                let is_word = token < segment.dag.num_words();
                return Some(Step { segment_idx, token, is_word, has_blank });
            }
            self.parts.pop();
            self.is_beside_word = false;
            if let Some(&(segment_idx, doc)) = self.parts.last() {
                self.levels.push(corpus.segments()[segment_idx].dag.doc_range(doc));
            }
        }
    }

    /// Returns the next token of the current part. The flag is true if a blank lies between it and
    /// the last token.
    fn next_token(&mut self, segment: &Segment) -> Option<(u32, bool)> {
        let dag = &segment.dag;
        let symbols = &dag.grammar().symbols;
        loop {
            let range = self.levels.last_mut()?;
            let step = if self.is_forward { range.next() } else { range.next_back() };
            let Some(position) = step else {
                self.levels.pop();
                continue;
            };
            let element = symbols[position];
            match dag.rule_of(element) {
                None => {
                    let is_word = element < dag.num_words();
                    let has_blank = is_word && self.is_beside_word;
                    self.is_beside_word = is_word;
                    return Some((element, has_blank));
                }
                Some(rule_id) => self.levels.push(dag.rule_range(rule_id)),
            }
        }
    }
}

/// Returns the number of occurrences of `word` in document `doc_id`; 0 if there is no such
/// document. Returns `None` if a segment with a part of the document does not keep words, or the
/// number does not fit into 64 bits.
pub(crate) fn kept_count(corpus: &Corpus, doc_id: u64, word: &str) -> Option<u64> {
    let mut sum = 0u64;
    for (segment_idx, doc) in corpus.doc_parts(doc_id) {
        let segment = &corpus.segments()[segment_idx];
        let doc_words = segment.doc_words_or_derive_if_worth()?;
        let word = segment.dictionary.word_id(word.as_bytes());
        sum = sum.checked_add(word.map_or(0, |word| doc_words.count(doc, word)))?;
    }
    Some(sum)
}
