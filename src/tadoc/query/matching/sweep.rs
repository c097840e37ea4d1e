//! Occurrences of an item in a segment that was just opened, without any derived array.
//!
//! ```text
//! item      power loss
//! ends      effect of an expansion on a phrase that is being matched: how much of it the last words
//!           begin, how much of it the first words finish, which part of it is the whole expansion
//!
//! rule 9    power loss     one occurrence between its elements
//! rule 8    b power        begins the phrase with 1 word
//! rule 7    loss [9]       finishes it after 1 word; one occurrence in rule 9
//! document  a [8] [7] [4]  one between rules 8 and 7, one in rule 7; [4] is skipped
//! ```
//!
//! A phrase of w words is a Shift-And automaton (Baeza-Yates and Gonnet, 1992), whose states are
//! the bits of a number. The effect of an expansion is three such numbers and a length, which
//! follow from the effects of its elements. So one pass from the last rule to the first counts the
//! occurrences in each rule, and those in each document. Nearly all elements hold no word of the
//! item. They have the same ends, so the pass loads one byte for each, the index of its ends.
//!
//! A walk finds the places. It enters only rules that hold an occurrence, adds up the lengths of
//! everything else, and reads the words beside a border that an occurrence crosses. A rule is
//! walked once for each use in the text, so the pass adds up these steps, too.
//!
//! The inverse grammar, the weights, the first and last words and the prefix sums cost ten times as much as the pass,
//! and pay when several questions follow. The places of an item with a long walk are left to them.

use std::ops::{ControlFlow, Range};

use rustc_hash::FxHashMap;

use crate::error::{Interrupt, Result};
use crate::grammar::Grammar;
use crate::ids::{DocId, RuleId};
use crate::query::DocCounts;
use crate::segment::{Len, Segment, WordList};

use super::Found;
use super::sets::{DocSet, WordSet};

/// Number of words that the pass follows. Those behind them are compared by the walk.
const MAX_WORDS: usize = 16;
/// Steps of a walk for each element of the segment, in about the time of the derived arrays.
const STEPS_PER_ELEMENT: u64 = 2;
/// Steps that are walked in a small segment, too.
const MIN_STEPS: u64 = 1 << 17;
/// Cost of reading the words beside a border, in steps.
const STEPS_PER_OCCURRENCE: u64 = 16;

/// Occurrences of an item of one segment, rule by rule.
#[derive(Debug)]
pub(in crate::query) struct Sweep<'a> {
    segment: &'a Segment,
    words: &'a [WordSet],
    totals: Totals,
    /// Elements that a walk of the documents takes.
    num_steps: u64,
}

/// Effect of an expansion on a phrase that is being matched. Bit j of a number stands for the first
/// j words of the phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Ends {
    /// The last j words are the first j of the phrase, for 0 < j < w.
    begun: u16,
    /// The first words are those of the phrase behind its first j, for 0 < j < w.
    finished: u16,
    /// All words are those of the phrase behind its first j, and at least one follows there.
    inside: u16,
    /// Number of words, if there is a bit in `inside`, else 0.
    num_words: u8,
    /// An occurrence lies in the expansion.
    is_holding: bool,
}

impl Ends {
    /// Ends of words that are not in the item.
    const OTHER: Self = Self { begun: 0, finished: 0, inside: 0, num_words: 0, is_holding: false };
    /// Ends of expansions without words.
    const WORDLESS: Self = Self { inside: u16::MAX, ..Self::OTHER };

    /// Returns the ends of a word that stands at the places `places` of a phrase of `len` words.
    fn from_word(places: u16, len: usize) -> Self {
        let last = 1 << (len - 1);
        if len == 1 {
            return Self { is_holding: places != 0, ..Self::OTHER };
        }
        let inside = places & (last - 1);
        let finished = places & last;
        let begun = (places & 1) << 1;
        Self { begun, finished, inside, num_words: u8::from(inside != 0), is_holding: false }
    }

    /// Returns the starts of the occurrences between this expansion and the `next` one: bit j if it
    /// has the first j words.
    #[inline]
    fn crossing(self, next: Self) -> u16 {
        self.begun & next.finished
    }

    /// Returns the ends of this expansion and the `next` one together.
    #[inline]
    fn then(self, next: Self) -> Self {
        let inside = self.inside & (next.inside >> self.num_words);
        Self {
            begun: next.begun | (self.begun & next.inside) << next.num_words,
            finished: self.finished | self.inside & (next.finished >> self.num_words),
            inside,
            num_words: if inside == 0 { 0 } else { self.num_words + next.num_words },
            is_holding: self.is_holding || next.is_holding || self.crossing(next) != 0,
        }
    }
}

/// Indexes of [`Ends::OTHER`] and [`Ends::WORDLESS`]. The smaller one is that of both together.
const OTHER: u8 = 0;
const WORDLESS: u8 = 1;

/// Ends of all elements of a grammar.
#[derive(Debug)]
struct Marks {
    /// Index in `ends` of those of each element.
    marks: Vec<u8>,
    /// Ends that are in use, each once.
    ends: Vec<Ends>,
    indexes: FxHashMap<Ends, u8>,
}

impl Marks {
    /// Marks the words and separators of `grammar`, whose first `num_words` elements are words, for
    /// the item `words`, and makes room for its rules. Returns `None` if there are too many
    /// different ends.
    fn from_terminals(grammar: &Grammar, num_words: u32, words: &[WordSet]) -> Option<Self> {
        let words = &words[..words.len().min(MAX_WORDS)];
        let mut places = vec![0u16; num_words as usize];
        for (place, set) in words.iter().enumerate() {
            set.ids().for_each(|word| places[word as usize] |= 1 << place);
        }
        let ends = vec![Ends::OTHER, Ends::WORDLESS];
        let indexes = ends.iter().copied().zip(OTHER..).collect();
        let num_elements = grammar.num_terminals as usize + grammar.num_rules();
        let mut all = Self { marks: vec![OTHER; num_elements], ends, indexes };
        for (word, places) in places.into_iter().enumerate().filter(|&(_, places)| places != 0) {
            all.marks[word] = all.index(Ends::from_word(places, words.len()))?;
        }
        all.marks[num_words as usize..grammar.num_terminals as usize].fill(WORDLESS);
        Some(all)
    }

    /// Returns the index of `ends`, below 255, or `None` if there are too many.
    fn index(&mut self, ends: Ends) -> Option<u8> {
        if let Some(&index) = self.indexes.get(&ends) {
            return Some(index);
        }
        let index = u8::try_from(self.ends.len()).ok().filter(|&index| index < u8::MAX)?;
        self.ends.push(ends);
        self.indexes.insert(ends, index);
        Some(index)
    }

    #[inline]
    fn for_element(&self, element: u32) -> Ends {
        self.ends[usize::from(self.marks[element as usize])]
    }

    /// Returns the marks of `elements`.
    #[inline]
    fn for_all(&self, elements: &[u32]) -> impl Iterator<Item = u8> {
        elements.iter().map(|&element| self.marks[element as usize])
    }

    /// Returns the ends of elements with these `marks` together.
    fn combined(&self, marks: impl Iterator<Item = u8>) -> Ends {
        marks.fold(Ends::WORDLESS, |all, mark| match mark {
            WORDLESS => all,
            // Shorter than `then`, for most elements.
            OTHER => Ends { begun: 0, inside: 0, num_words: 0, ..all },
            mark => all.then(self.ends[usize::from(mark)]),
        })
    }

    /// Marks the rules of `grammar`, the last one first. Calls `found` with each rule that holds an
    /// occurrence, and stops if it breaks. Returns `None` if there are too many different ends.
    fn mark_rules(
        &mut self,
        grammar: &Grammar,
        mut found: impl FnMut(&Self, RuleId) -> ControlFlow<()>,
    ) -> Option<ControlFlow<()>> {
        for rule_id in grammar.rule_ids().skip(1).rev() {
            let elements = grammar.rule(rule_id);
            let mark = match plain(self.for_all(elements)) {
                Some(mark) => mark,
                None => {
                    let ends = self.combined(self.for_all(elements));
                    if ends.is_holding && found(self, rule_id).is_break() {
                        return Some(ControlFlow::Break(()));
                    }
                    self.index(ends)?
                }
            };
            self.marks[grammar.element_for(rule_id) as usize] = mark;
        }
        Some(ControlFlow::Continue(()))
    }

    /// Returns the number of occurrences in `elements`. The elements from `num_terminals` on are
    /// rules, which have as many as `inside` says by index.
    fn count(&self, elements: &[u32], num_terminals: u32, inside: &[u64]) -> u64 {
        let mut begun = 0;
        let mut count = 0u64;
        for &element in elements {
            match self.marks[element as usize] {
                OTHER => begun = 0,
                WORDLESS => {}
                mark => {
                    let next = self.ends[usize::from(mark)];
                    let mut here = u64::from((begun & next.finished).count_ones());
                    if next.is_holding {
                        let rule_idx = element.checked_sub(num_terminals);
                        here = here.saturating_add(rule_idx.map_or(1, |idx| inside[idx as usize]));
                    }
                    // A file may declare more than a number holds.
                    count = count.saturating_add(here);
                    begun = next.begun | (begun & next.inside) << next.num_words;
                }
            }
        }
        count
    }

    /// Returns the number of elements that a walk of `elements` takes, with those of rules that it
    /// enters, which `inside` has by index.
    fn num_steps(&self, elements: &[u32], num_terminals: u32, inside: &[u64]) -> u64 {
        let holding = elements.iter().filter(|&&element| self.for_element(element).is_holding);
        let entered = holding.filter_map(|element| element.checked_sub(num_terminals));
        entered.fold(elements.len() as u64, |num_steps, rule_idx| num_steps.saturating_add(inside[rule_idx as usize]))
    }
}

/// Returns the mark of elements with these `marks` together, if none of them has a word of the
/// item.
#[inline]
fn plain(marks: impl Iterator<Item = u8>) -> Option<u8> {
    let (any, all) = marks.fold((OTHER, WORDLESS), |(any, all), mark| (any | mark, all & mark));
    (any <= WORDLESS).then_some(all)
}

/// Occurrences of an item in the documents of a grammar.
#[derive(Debug)]
struct Totals {
    marks: Marks,
    /// Documents with occurrences, ascending, and the number of them.
    counts: DocCounts,
}

impl Totals {
    /// Counts the occurrences of the consecutive `words` in the rules of `grammar`, whose first `num_words` elements
    /// are words, and in the documents of `filter` (all if there is none). Returns `None` for an item whose words meet
    /// in too many ways.
    fn new(grammar: &Grammar, num_words: u32, words: &[WordSet], filter: Option<&DocSet>) -> Option<Self> {
        let num_terminals = grammar.num_terminals;
        let mut marks = Marks::from_terminals(grammar, num_words, words)?;
        let mut inside = vec![0; grammar.num_rules()];
        let _ = marks.mark_rules(grammar, |marks, rule_id| {
            inside[rule_id.index()] = marks.count(grammar.rule(rule_id), num_terminals, &inside);
            ControlFlow::Continue(())
        })?;
        let docs = grammar.docs().filter(|&doc| filter.is_none_or(|docs| docs.contains(doc)));
        let mut counts = Vec::new();
        for doc in docs {
            let elements = grammar.document(doc);
            if plain(marks.for_all(elements)).is_none() {
                let count = marks.count(elements, num_terminals, &inside);
                counts.extend((count > 0).then_some((doc, count)));
            }
        }
        Some(Self { marks, counts })
    }

    /// Returns the number of elements that a walk of the documents takes.
    fn num_steps(&self, grammar: &Grammar) -> u64 {
        let marks = &self.marks;
        let num_terminals = grammar.num_terminals;
        let mut inside = vec![0; grammar.num_rules()];
        for rule_id in grammar.rule_ids().skip(1).rev() {
            if marks.for_element(grammar.element_for(rule_id)).is_holding {
                inside[rule_id.index()] = marks.num_steps(grammar.rule(rule_id), num_terminals, &inside);
            }
        }
        let docs = self.counts.iter();
        let steps = docs.map(|&(doc, _)| marks.num_steps(grammar.document(doc), num_terminals, &inside));
        steps.fold(0, u64::saturating_add)
    }
}

/// Returns the documents of `grammar`, whose first `num_words` elements are words, in which words of the ids `words`
/// follow each other, one of each entry, with the number of occurrences. Returns `None` for a phrase of more than 16
/// words, for one whose words meet in too many ways, and for numbers of more than 32 bits.
///
/// It needs O(elements of the grammar) time and no dictionary. Every other terminal is a separator.
pub fn count_in_grammar(grammar: &Grammar, num_words: u32, words: &[Vec<u32>]) -> Option<WordList> {
    if words.len() > MAX_WORDS {
        return None;
    }
    let words: Vec<WordSet> = words.iter().map(|ids| WordSet::from_ids(ids)).collect();
    let counts = Totals::new(grammar, num_words, &words, None)?.counts;
    let mut list = WordList::default();
    for (doc, count) in counts {
        list.docs.push(doc.into());
        list.counts.push(u32::try_from(count).ok()?);
    }
    Some(list)
}

impl<'a> Sweep<'a> {
    /// Counts the occurrences of the consecutive `words` in the rules of `segment`, and in the
    /// documents of `filter` (all if there is none). Returns `None` for an item whose words meet in
    /// too many ways.
    pub fn new(segment: &'a Segment, words: &'a [WordSet], filter: Option<&DocSet>) -> Option<Self> {
        let grammar = segment.dag.grammar();
        let totals = Totals::new(grammar, segment.dag.num_words(), words, filter)?;
        let num_steps = totals.num_steps(grammar);
        Some(Self { segment, words, totals, num_steps })
    }

    /// Returns the documents with occurrences, ascending, and the number of occurrences in each.
    /// Returns `None` for an item of more than 16 words, of which only the walk knows the
    /// occurrences.
    pub fn counts(&self) -> Option<&[(DocId, u64)]> {
        (self.words.len() <= MAX_WORDS).then_some(&self.totals.counts)
    }

    /// Returns true if a walk to all occurrences takes few steps for the size of the segment.
    pub fn is_walk_short(&self) -> bool {
        let num_elements = self.segment.dag.grammar().symbols.len() as u64;
        let max_steps = MIN_STEPS.max(STEPS_PER_ELEMENT * num_elements);
        let beside = |&(_, count): &(DocId, u64)| count.saturating_mul(STEPS_PER_OCCURRENCE);
        let num_steps = self.totals.counts.iter().map(beside).fold(self.num_steps, u64::saturating_add);
        num_steps <= max_steps
    }

    /// Calls `found` with each occurrence, by document and offset.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn for_each(&self, interrupt: &mut Interrupt<'_>, mut found: impl FnMut(DocId, Found)) -> Result<()> {
        for &(doc, _) in &self.totals.counts {
            self.walk(doc, interrupt, &mut |occurrence| found(doc, occurrence))?;
        }
        Ok(())
    }

    /// Calls `found` with the occurrences in `doc`.
    fn walk(&self, doc: DocId, interrupt: &mut Interrupt<'_>, found: &mut impl FnMut(Found)) -> Result<()> {
        let dag = &self.segment.dag;
        let symbols = &dag.grammar().symbols;
        let mut levels = vec![Level::new(dag.doc_range(doc))];
        let mut beside = Vec::new();
        let mut byte_offset = 0;
        let mut word_idx = 0;
        let mut before = Len::default();
        while let Some(level) = levels.last_mut() {
            let Some(position) = level.ahead.next() else {
                levels.pop();
                continue;
            };
            let element = symbols[position];
            let read = level.read;
            let ends = self.totals.marks.for_element(element);
            level.read = read.then(ends);
            let mut crossing = read.crossing(ends);
            while crossing != 0 {
                let num_before = crossing.ilog2() as usize;
                crossing ^= 1 << num_before;
                let border = Border { byte_offset, word_idx, before, num_before };
                self.widened(&border, &levels, &mut beside, interrupt)?.into_iter().for_each(&mut *found);
            }
            if let Some(rule_id) = dag.rule_of(element).filter(|_| ends.is_holding) {
                // A blank before the rule lies before its first token.
                interrupt.check()?;
                levels.push(Level::new(dag.rule_range(rule_id)));
                continue;
            }
            let len = dag.len(element);
            byte_offset += len.blank_after(before);
            if ends.is_holding {
                found(Found { byte_offset, byte_len: len.bytes, word_idx });
            }
            byte_offset += len.bytes;
            word_idx += len.words;
            before = len;
        }
        Ok(())
    }

    /// Returns the occurrence across `border`, which lies before the last position that was taken
    /// of `levels`, if its words are those of the item.
    fn widened(
        &self,
        border: &Border,
        levels: &[Level],
        beside: &mut Vec<Range<usize>>,
        interrupt: &mut Interrupt<'_>,
    ) -> Result<Option<Found>> {
        let (left, right) = self.words.split_at(border.num_before);
        beside.clear();
        beside.extend(levels.iter().map(Level::behind));
        let next = Range::<usize>::next_back;
        let Some(before) = self.matched(left.iter().rev(), beside, next, false, interrupt)? else {
            return Ok(None);
        };
        beside.clear();
        beside.extend(levels.iter().map(|level| level.ahead.clone()));
        beside.last_mut().into_iter().for_each(|last| last.start -= 1);
        let after_word = border.before.ends_with_word();
        let Some(after) = self.matched(right.iter(), beside, Range::next, after_word, interrupt)? else {
            return Ok(None);
        };
        Ok(Some(Found {
            byte_offset: border.byte_offset - before,
            byte_len: before + after,
            word_idx: border.word_idx - border.num_before as u64,
        }))
    }

    /// Compares `words` with the words from a border on, in the direction of `next`. `levels` are
    /// the positions that are left on each level; `after_word` is true if a word ends at the
    /// border. Returns the number of bytes from the border to the far end of the last word, or
    /// `None` if a word differs or the document ends.
    fn matched<'w>(
        &self,
        words: impl Iterator<Item = &'w WordSet>,
        levels: &mut Vec<Range<usize>>,
        next: impl Fn(&mut Range<usize>) -> Option<usize>,
        mut after_word: bool,
        interrupt: &mut Interrupt<'_>,
    ) -> Result<Option<u64>> {
        let dag = &self.segment.dag;
        let mut bytes = 0;
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

/// Place between two elements of a rule or document, which an occurrence crosses.
struct Border {
    /// Bytes and words of the document before it.
    byte_offset: u64,
    word_idx: u64,
    /// The element before it.
    before: Len,
    /// Number of words of the occurrence before it.
    num_before: usize,
}

/// Positions of a rule or document on the way to the present one.
#[derive(Debug, Clone)]
struct Level {
    start: usize,
    /// Positions that are not taken yet.
    ahead: Range<usize>,
    /// Ends of the elements that were taken, together.
    read: Ends,
}

impl Level {
    fn new(range: Range<usize>) -> Self {
        Self { start: range.start, ahead: range, read: Ends::WORDLESS }
    }

    /// Returns the positions before the one that was taken last.
    fn behind(&self) -> Range<usize> {
        self.start..self.ahead.start - 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::scan_doc;
    use super::*;
    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::OpenLimits;
    use crate::query::SearchOptions;
    use crate::segment::Corpus;

    const TOKENS: [&str; 7] = ["to", " ", "be", "or ", ", ", "not to be", "\n"];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn finds_what_reading_the_documents_finds(
            docs in prop::collection::vec(prop::collection::vec(0usize..7, 0..60), 1..8),
            sets in prop::collection::vec(prop::collection::btree_set(0u32..4, 1..3), 1..19),
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
                    prop_assert_eq!(&found, &expected);
                    let mut counts: Vec<(DocId, u64)> = Vec::new();
                    for chunk in expected.chunk_by(|a, b| a.0 == b.0) {
                        counts.push((chunk[0].0, chunk.len() as u64));
                    }
                    let is_followed = len <= MAX_WORDS;
                    prop_assert_eq!(sweep.counts(), is_followed.then_some(&counts[..]));
                }
            }
        }
    }

    #[test]
    fn a_rule_that_is_long_and_often_used_is_not_walked() {
        // No rule inside the document that recurs.
        let words = |letter: char| -> String { (0..2_000).map(|n| format!("{letter}{n} ")).collect() };
        let text = format!("{}needle {}", words('a'), words('b'));
        let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
        (0..400).for_each(|_| builder.push_document("d", text.as_bytes()).unwrap());
        let (file, _) = builder.finish(None).unwrap();
        let (_, corpus) = Corpus::from_bytes("f", &file, &OpenLimits::default()).unwrap();
        let segment = &corpus.segments()[0];
        assert!(segment.dag.grammar().symbols.len() < 10_000);
        let needle = segment.dictionary.word_id(b"needle").unwrap();
        let words = [WordSet::from_ids(&[needle.into()])];
        let from_all = Sweep::new(segment, &words, None).unwrap();
        assert_eq!(from_all.counts().unwrap().len(), 400);
        assert!(!from_all.is_walk_short());
        let mut one = DocSet::none(400);
        one.extend([DocId::from(7)]);
        let from_one = Sweep::new(segment, &words, Some(&one)).unwrap();
        assert_eq!(from_one.counts().unwrap(), [(DocId::from(7), 1)]);
        assert!(from_one.is_walk_short());
    }
}
