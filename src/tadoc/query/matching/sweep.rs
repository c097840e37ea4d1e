//! Occurrences of an item in a segment that was just opened, without any derived array.
//!
//! ```text
//! marks    one byte for each element: which words of the item its expansion holds
//!          rules, last to first:  mark(rule) = mark(child) | mark(child) | …
//!          documents:             those whose elements hold all words are candidates
//! walk     candidate  … [3] [7] [4] …    [7] holds the anchor: entered; [3] and [4] are skipped
//!          rule 7         a [9] b
//!          rule 9           power loss   the anchor: its neighbours are compared
//! ```
//!
//! The *anchor* is the word of the item that the fewest elements hold. A walk enters only what holds
//! it, and adds up the lengths of everything else. At each place of the anchor the words beside it
//! are read. So a question costs one pass over the grammar with a load from one byte an element, and
//! the paths to the places of the anchor. The inverse grammar, the weights, the first and last words
//! and the prefix sums cost ten times as much, and pay when several questions follow. An anchor with
//! many places is left to them.

use std::ops::Range;

use crate::error::Result;
use crate::ids::DocId;
use crate::interrupt::Interrupt;
use crate::segment::{Len, Segment};

use crate::query::matching::doc_set::DocSet;
use crate::query::matching::scan::Found;
use crate::query::matching::word_set::WordSet;

/// Bits of a mark. Words of longer phrases share them.
const MARK_BITS: usize = 8;
/// Words below the elements that a walk enters, for each element of the grammar. A walk takes 2 to
/// 10 ns a word, the derived arrays 10 ns an element.
const WORDS_PER_ELEMENT: usize = 8;
/// The same of a small segment.
const MIN_WORDS: u64 = 1 << 12;

/// Documents that can hold an item of one segment, and the marks of its elements.
#[derive(Debug)]
pub(in crate::query) struct Sweep<'a> {
    segment: &'a Segment,
    words: &'a [WordSet],
    /// Index of the anchor among the words.
    anchor: usize,
    marks: Vec<u8>,
    candidates: Vec<DocId>,
}

impl<'a> Sweep<'a> {
    /// Marks the elements of `segment` that hold one of the consecutive `words`, and finds the
    /// documents of `filter` (all if there is none) that hold all. Returns `None` if the anchor has
    /// too many places.
    pub fn new(
        segment: &'a Segment,
        words: &'a [WordSet],
        filter: Option<&DocSet>,
    ) -> Option<Self> {
        let grammar = segment.dag.grammar();
        let mut marks = vec![0u8; segment.dag.num_elements()];
        for (idx, set) in words.iter().enumerate() {
            set.ids().for_each(|word| marks[word as usize] |= bit(idx));
        }
        // Number of elements with each mark.
        let mut num_marked = [0u64; 1 << MARK_BITS];
        for rule_id in grammar.rule_ids().skip(1).rev() {
            let mark = all_marks(&marks, grammar.rule(rule_id));
            marks[grammar.element_of(rule_id) as usize] = mark;
            num_marked[usize::from(mark)] += 1;
        }
        let wanted = (0..words.len()).fold(0, |mark, idx| mark | bit(idx));
        let mut candidates = Vec::new();
        for doc in grammar.docs().filter(|&doc| filter.is_none_or(|docs| docs.contains(doc))) {
            let elements = &grammar.symbols[segment.dag.doc_range(doc)];
            if all_marks(&marks, elements) == wanted {
                candidates.push(doc);
                elements.iter().for_each(|&e| num_marked[usize::from(marks[e as usize])] += 1);
            }
        }
        let num_with = |&idx: &usize| -> u64 {
            let has_bit = |&(mark, _): &(usize, _)| mark & usize::from(bit(idx)) != 0;
            num_marked.iter().enumerate().filter(has_bit).map(|(_, &count)| count).sum()
        };
        let anchor = (0..words.len()).min_by_key(num_with)?;
        let sweep = Self { segment, words, anchor, marks, candidates };
        sweep.is_walk_short().then_some(sweep)
    }

    /// Returns true if the elements of the candidates that hold the anchor have few words.
    fn is_walk_short(&self) -> bool {
        let dag = &self.segment.dag;
        let symbols = &dag.grammar().symbols;
        let max_words = (symbols.len() / WORDS_PER_ELEMENT) as u64;
        let elements = self.candidates.iter().flat_map(|&doc| &symbols[dag.doc_range(doc)]);
        let mut entered = elements.filter(|&&element| self.holds_anchor(element));
        let left = entered.try_fold(max_words.max(MIN_WORDS), |left, &element| {
            left.checked_sub(dag.len_words(element))
        });
        left.is_some()
    }

    #[inline]
    fn holds_anchor(&self, element: u32) -> bool {
        self.marks[element as usize] & bit(self.anchor) != 0
    }

    /// Calls `found` with each occurrence, by document and offset.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn for_each(
        &self,
        interrupt: &mut Interrupt<'_>,
        mut found: impl FnMut(DocId, Found),
    ) -> Result<()> {
        for &doc in &self.candidates {
            self.walk(doc, interrupt, &mut |occurrence| found(doc, occurrence))?;
        }
        Ok(())
    }

    /// Calls `found` with the occurrences in `doc`.
    fn walk(
        &self,
        doc: DocId,
        interrupt: &mut Interrupt<'_>,
        found: &mut impl FnMut(Found),
    ) -> Result<()> {
        let dag = &self.segment.dag;
        let symbols = &dag.grammar().symbols;
        let mut levels = vec![Level::new(dag.doc_range(doc))];
        let mut beside = Vec::new();
        let (mut byte_offset, mut word_idx, mut before) = (0, 0, Len::default());
        while let Some(level) = levels.last_mut() {
            let Some(position) = level.ahead.next() else {
                levels.pop();
                continue;
            };
            let element = symbols[position];
            if self.holds_anchor(element)
                && let Some(rule_id) = dag.rule_of(element)
            {
                // A blank before the rule lies before its first token.
                interrupt.check()?;
                levels.push(Level::new(dag.rule_range(rule_id)));
                continue;
            }
            let len = dag.len(element);
            byte_offset += len.blank_after(before);
            if self.holds_anchor(element) && self.words[self.anchor].contains(element) {
                let at = Found { byte_offset, byte_len: len.bytes, word_idx };
                self.widened(at, &levels, &mut beside, interrupt)?
                    .into_iter()
                    .for_each(&mut *found);
            }
            byte_offset += len.bytes;
            word_idx += len.words;
            before = len;
        }
        Ok(())
    }

    /// Returns the occurrence of the item around `anchor`, a word at the last position that was taken
    /// of `levels`, if there is one.
    fn widened(
        &self,
        anchor: Found,
        levels: &[Level],
        beside: &mut Vec<Range<usize>>,
        interrupt: &mut Interrupt<'_>,
    ) -> Result<Option<Found>> {
        let (left, right) = (&self.words[..self.anchor], &self.words[self.anchor + 1..]);
        beside.clear();
        beside.extend(levels.iter().map(Level::behind));
        let next = Range::<usize>::next_back;
        let Some(before) = self.matched(left.iter().rev(), beside, next, interrupt)? else {
            return Ok(None);
        };
        beside.clear();
        beside.extend(levels.iter().map(|level| level.ahead.clone()));
        let Some(after) = self.matched(right.iter(), beside, Range::next, interrupt)? else {
            return Ok(None);
        };
        Ok(Some(Found {
            byte_offset: anchor.byte_offset - before,
            byte_len: before + anchor.byte_len + after,
            word_idx: anchor.word_idx - left.len() as u64,
        }))
    }

    /// Compares `words` with the words from the anchor on, in the direction of `next`. `levels` are
    /// the positions that are left on each level. Returns the number of bytes from the anchor to the
    /// far end of the last word, or `None` if a word differs or the document ends.
    fn matched<'w>(
        &self,
        words: impl Iterator<Item = &'w WordSet>,
        levels: &mut Vec<Range<usize>>,
        next: impl Fn(&mut Range<usize>) -> Option<usize>,
        interrupt: &mut Interrupt<'_>,
    ) -> Result<Option<u64>> {
        let dag = &self.segment.dag;
        // The anchor is a word, and so is each of `words`: a blank lies between neighbours.
        let (mut bytes, mut after_word) = (0, true);
        for set in words {
            loop {
                interrupt.check()?;
                let Some(level) = levels.last_mut() else { return Ok(None) };
                let Some(position) = next(level) else {
                    levels.pop();
                    continue;
                };
                let element = dag.grammar().symbols[position];
                let len = dag.len(element);
                match dag.rule_of(element) {
                    Some(rule_id) if len.words > 0 => levels.push(dag.rule_range(rule_id)),
                    None if len.words > 0 => {
                        if !set.contains(element) {
                            return Ok(None);
                        }
                        bytes += u64::from(after_word) + len.bytes;
                        after_word = true;
                        break;
                    }
                    _ => {
                        bytes += len.bytes;
                        after_word = false;
                    }
                }
            }
        }
        Ok(Some(bytes))
    }
}

/// Positions of a rule or document on the way to the present one.
#[derive(Debug, Clone)]
struct Level {
    start: usize,
    /// Positions that are not taken yet.
    ahead: Range<usize>,
}

impl Level {
    fn new(range: Range<usize>) -> Self {
        Self { start: range.start, ahead: range }
    }

    /// Returns the positions before the one that was taken last.
    fn behind(&self) -> Range<usize> {
        self.start..self.ahead.start - 1
    }
}

fn bit(word_idx: usize) -> u8 {
    1 << (word_idx % MARK_BITS)
}

fn all_marks(marks: &[u8], elements: &[u32]) -> u8 {
    elements.iter().fold(0, |all, &element| all | marks[element as usize])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::OpenLimits;
    use crate::query::SearchOptions;
    use crate::query::matching::scan::scan_doc;
    use crate::segment::Corpus;

    const TOKENS: [&str; 7] = ["to", " ", "be", "or ", ", ", "not to be", "\n"];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn finds_what_reading_the_documents_finds(
            docs in prop::collection::vec(prop::collection::vec(0usize..7, 0..60), 1..8),
            sets in prop::collection::vec(prop::collection::btree_set(0u32..4, 1..3), 1..11),
            is_filtered in any::<bool>(),
        ) {
            let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
            for doc in &docs {
                let text: String = doc.iter().map(|&token| TOKENS[token]).collect();
                builder.push_document("d", text.as_bytes()).unwrap();
            }
            let (file, _) = builder.finish(None).unwrap();
            let (_, corpus) = Corpus::from_bytes("f", &file, &OpenLimits::default()).unwrap();
            let options = SearchOptions::default();
            for segment in corpus.segments() {
                let num_words = segment.dictionary.num_words();
                let ids = |set: &std::collections::BTreeSet<u32>| -> Vec<u32> {
                    set.iter().copied().filter(|&id| id < num_words).collect()
                };
                let words: Vec<_> = sets.iter().map(|set| WordSet::from_ids(&ids(set))).collect();
                let mut filter = DocSet::none(docs.len());
                filter.extend(segment.dag.grammar().docs().filter(|&doc| u32::from(doc) % 2 == 0));
                for len in 1..=words.len() {
                    let mut interrupt = options.canceller().interrupt();
                    let filter = is_filtered.then_some(&filter);
                    let sweep = Sweep::new(segment, &words[..len], filter).unwrap();
                    let mut found = Vec::new();
                    sweep.for_each(&mut interrupt, |doc, at| found.push((doc, at))).unwrap();
                    let mut expected = Vec::new();
                    let is_asked = |doc: &DocId| filter.is_none_or(|docs| docs.contains(*doc));
                    for doc in segment.dag.grammar().docs().filter(is_asked) {
                        let mut note = |at| expected.push((doc, at));
                        scan_doc(segment, doc, &words[..len], &mut interrupt, &mut note).unwrap();
                    }
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }
}
