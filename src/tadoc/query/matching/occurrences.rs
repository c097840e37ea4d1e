//! Occurrences of one item of a query in one segment: number, documents and offsets.
//!
//! A single word needs no work before the climb, since the inverse grammar lists its places. The places
//! of a set of words are sorted by position, so that one climb serves the whole set. A phrase is first
//! resolved to matches inside rules. If a filter leaves few documents, they are scanned instead when
//! that is less work than gathering all places in the segment. [`Way`] chooses.
//!
//! # Phrases
//!
//! Each place of the phrase is a set of words, most often a set of one. The rarest set is the *anchor*. The search
//! starts from each place of the anchor on a right-hand side. It compares the other words to the left and to the right,
//! inside that rule first. If the rule is too short, the rest is carried to the places of the rule in its parents, and
//! so on, until the phrase is complete in some rule or a word is not in its set. A complete phrase is a *match* of that
//! rule. It is found once, however often the rule occurs:
//!
//! ```text
//! phrase        power  loss  during         anchor: loss
//! rule 7        ...  power  loss            right side unmet: "during"
//! rule 3        ...  [7]  during  ...       complete: one match of rule 3
//! rule 5        ...  [7]  and  ...          differs: dropped
//! ```
//!
//! A state that is carried lies within the length of the phrase of an edge of its rule, and each rule has one path to
//! it. The total cost is O(G * words), however large the sets are, and also where the corpus repeats without bound.
//! Separators are ignored. Documents and parts of documents end a phrase; `cut` handles phrases across a cut.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Canceller, Interrupt, Result};
use crate::ids::{DocId, RuleId};
use crate::segment::{Dag, DocWords, EdgeWords, Measure, Occurrence, PrefixSums, Segment};

use super::match_paths::{DocCounter, MatchPathsBuilder, PositionedMatch, Walk};
use super::sets::{DocSet, WordSet};
use super::sweep::Sweep;
use super::{Form, Found, Question, Want, Way, scan_doc};

/// Number of positions that one parallel task resolves.
const POSITIONS_PER_TASK: usize = 1 << 14;

/// One item of a query as non-empty sets of words of a segment.
#[derive(Debug)]
pub(in crate::query) struct Item<'a> {
    segment: &'a Segment,
    words: &'a [WordSet],
    canceller: Canceller<'a>,
}

impl<'a> Item<'a> {
    pub fn new(segment: &'a Segment, words: &'a [WordSet], canceller: Canceller<'a>) -> Self {
        Self { segment, words, canceller }
    }

    /// Returns the number of occurrences in the segment. It is exact; the cost is O(G * words),
    /// whatever the number.
    pub fn count(&self) -> Result<u64> {
        if let Some(counts) = self.swept_counts(None)? {
            return Ok(counts.into_iter().map(|(_, count)| count).sum());
        }
        let weights = self.segment.weights_or_derive();
        if let (Way::Weights, [words]) = (self.way_to_total(), self.words) {
            return Ok(words.weight(self.segment));
        }
        // A match belongs to one occurrence of its first word: the sum is below 2^64.
        let grammar = self.segment.dag.grammar();
        let of = |matched: &Match| weights[grammar.element_for(matched.rule_id) as usize];
        Ok(self.matches()?.iter().map(of).sum())
    }

    /// Returns the documents of `filter` (all if there is none) with at least one occurrence, and
    /// the number of occurrences in each.
    pub fn count_by_doc(&self, filter: Option<&DocSet>) -> Result<Vec<(DocId, u64)>> {
        if let Some(counts) = self.swept_counts(filter)? {
            return Ok(counts);
        }
        match (self.way(Want::Counts, filter, None), filter) {
            (Way::KeptWords, Some(docs)) => return Ok(self.kept_counts(docs)),
            (Way::Scan, Some(docs)) => return self.scan(docs, |_, _| ()),
            _ => {}
        }
        if filter.is_some() {
            self.segment.note_words_read(self.num_positions());
        }
        let mut docs = filter.into_iter().flat_map(DocSet::iter);
        let mut counter = match (docs.next(), docs.next()) {
            (Some(only), None) => DocCounter::for_doc(self.segment, only),
            _ => DocCounter::new(self.segment, self.rarest_weight()),
        };
        if let [words] = self.words {
            let inverse = self.segment.inverse_or_derive();
            words.ids().for_each(|word| counter.add(inverse.for_element(word)));
        } else {
            self.matches()?.iter().for_each(|matched| match matched.rule_id {
                RuleId::ROOT => counter.add_to_doc(matched.doc),
                rule_id => counter.add_to_rule(rule_id, 1),
            });
        }
        let mut counts = counter.finish(&mut self.canceller.interrupt())?;
        counts.retain(|&(doc, _)| filter.is_none_or(|docs| docs.contains(doc)));
        Ok(counts)
    }

    /// Returns the occurrences in the documents of `filter` (all if there is none), by document and
    /// offset. Places are gathered here, O(G) at most; occurrences are produced one by one.
    pub fn stream(&self, filter: Option<&Arc<DocSet>>) -> Result<ItemStream> {
        let docs = filter.map(Arc::as_ref);
        if let Some(sweep) = self.sweep(docs).filter(Sweep::is_walk_short) {
            let mut found = Vec::new();
            sweep.for_each(&mut self.canceller.interrupt(), |doc, at| found.push((doc, at)))?;
            return Ok(ItemStream::Scanned(found.into_iter()));
        }
        let mut way = self.way(Want::Hits, docs, None);
        if let (Way::KeptWords, Some(docs)) = (way, docs) {
            if self.kept_counts(docs).is_empty() {
                return Ok(ItemStream::Scanned(Vec::new().into_iter()));
            }
            way = self.way(Want::Hits, Some(docs), Some(way));
        }
        if let (Way::Scan, Some(docs)) = (way, docs) {
            let mut found = Vec::new();
            self.scan(docs, |doc, at| found.push((doc, at)))?;
            return Ok(ItemStream::Scanned(found.into_iter()));
        }
        let dag = &self.segment.dag;
        let mut interrupt = self.canceller.interrupt();
        let mut builder = MatchPathsBuilder::new(self.segment);
        let (paths, byte_lens) = if let [words] = self.words {
            let only = words.only();
            let direct = match only {
                Some(word) => Cow::Borrowed(self.segment.inverse_or_derive().for_element(word.into())),
                None => Cow::Owned(words.positions(self.segment)),
            };
            builder.add_rules(direct.iter().map(|place| place.rule_id));
            builder.climb(&mut interrupt)?;
            let paths = match only {
                Some(_) => builder.finish_words(&direct)?,
                None => builder.finish_keys(keys_from(self.segment, words))?,
            };
            (paths, words.ids().map(|word| dag.len_bytes(word)).collect())
        } else {
            let matches = self.positioned_matches()?;
            builder.add_rules(matches.iter().map(|matched| matched.rule_id));
            builder.climb(&mut interrupt)?;
            let byte_lens = matches.iter().map(|matched| matched.byte_len).collect();
            (builder.finish_matches(&matches)?, byte_lens)
        };
        Ok(ItemStream::Walked { walk: paths.walk(filter.cloned()), byte_lens })
    }

    /// Returns the documents of `filter` (all if there is none) with occurrences and the number in
    /// each, if the segment was asked little.
    fn swept_counts(&self, filter: Option<&DocSet>) -> Result<Option<Vec<(DocId, u64)>>> {
        let Some(sweep) = self.sweep(filter) else { return Ok(None) };
        if let Some(counts) = sweep.counts() {
            return Ok(Some(counts.to_vec()));
        }
        if !sweep.is_walk_short() {
            return Ok(None);
        }
        let mut counts: Vec<(DocId, u64)> = Vec::new();
        sweep.for_each(&mut self.canceller.interrupt(), |doc, _| match counts.last_mut() {
            Some((last, count)) if *last == doc => *count += 1,
            _ => counts.push((doc, 1)),
        })?;
        Ok(Some(counts))
    }

    /// Returns the occurrences in `filter` (all documents if there is none) of a segment that was
    /// asked little.
    fn sweep(&self, filter: Option<&DocSet>) -> Option<Sweep<'a>> {
        let is_worth = self.segment.is_sweep_worth();
        is_worth.then(|| Sweep::new(self.segment, self.words, filter)).flatten()
    }

    fn rarest_weight(&self) -> u64 {
        self.words.iter().map(|words| words.weight(self.segment)).min().unwrap_or(0)
    }

    /// Returns an estimate of the number of positions of a climb.
    fn num_positions(&self) -> u64 {
        self.rarest_weight().min(self.segment.dag.grammar().symbols.len() as u64)
    }

    fn form(&self) -> Form {
        match self.words {
            [words] if words.only().is_some() => Form::Word,
            [_] => Form::Pattern,
            _ => Form::Phrase,
        }
    }

    fn way_to_total(&self) -> Way {
        Question::Total { form: self.form() }.way(None, [])
    }

    /// Returns the first way behind `after` to the occurrences in the documents of `filter` (all if
    /// there is none).
    fn way(&self, want: Want, filter: Option<&DocSet>, after: Option<Way>) -> Way {
        let form = self.form();
        let num_positions = self.num_positions();
        let num_docs = filter.map(|docs| docs.len() as u64);
        // The kept words are of no use for a phrase, nor for all documents.
        let can_use_kept = filter.is_some() && form != Form::Phrase;
        let keeps_words = can_use_kept && self.kept_words().is_some();
        let question = Question::Search { want, form, num_positions, num_docs, keeps_words };
        let docs = filter.into_iter().flat_map(DocSet::iter);
        question.way(after, docs.map(|doc| self.segment.doc_length_or_derive(doc).len_bytes))
    }

    fn kept_words(&self) -> Option<&'a DocWords> {
        self.segment.doc_words_or_derive_if_worth()
    }

    /// Returns the counts of a single word in `docs` from the words that the segment keeps.
    fn kept_counts(&self, docs: &DocSet) -> Vec<(DocId, u64)> {
        let word = self.words.first().and_then(WordSet::only);
        let Some((word, doc_words)) = word.zip(self.kept_words()) else { return Vec::new() };
        let counts = docs.iter().map(|doc| (doc, doc_words.count(doc, word)));
        counts.filter(|&(_, count)| count > 0).collect()
    }

    fn scan(&self, docs: &DocSet, mut visit: impl FnMut(DocId, Found)) -> Result<Vec<(DocId, u64)>> {
        let mut counts = Vec::new();
        let mut interrupt = self.canceller.interrupt();
        for doc in docs.iter() {
            let mut count = 0;
            self.segment.note_docs_read(1);
            scan_doc(self.segment, doc, self.words, &mut interrupt, |found| {
                count += 1;
                visit(doc, found);
            })?;
            if count > 0 {
                counts.push((doc, count));
            }
        }
        Ok(counts)
    }

    /// Returns the matches of a phrase inside rules and documents.
    fn matches(&self) -> Result<Vec<Match>> {
        let phrase = Phrase::new(self.segment, self.words);
        let resolve = |anchors: &[Occurrence]| {
            let mut matches = Vec::new();
            let mut interrupt = self.canceller.interrupt();
            phrase.resolve(anchors, &mut interrupt, |matched| matches.push(matched))?;
            Ok(matches)
        };
        let anchors = phrase.anchors();
        if anchors.len() <= POSITIONS_PER_TASK {
            return resolve(&anchors);
        }
        let portions: Result<Vec<_>> = anchors.par_chunks(POSITIONS_PER_TASK).map(resolve).collect();
        Ok(portions?.concat())
    }

    /// Returns the matches with their bytes, by rule and offset.
    fn positioned_matches(&self) -> Result<Vec<PositionedMatch>> {
        let sums = self.segment.prefix_sums_or_derive();
        let mut matches = self.matches()?;
        matches.sort_unstable_by_key(|matched| (matched.rule_id, matched.doc, matched.word_idx));
        let matches = matches.par_iter().with_min_len(POSITIONS_PER_TASK);
        Ok(matches.map(|matched| self.positioned(sums, matched)).collect())
    }

    fn positioned(&self, sums: &PrefixSums, matched: &Match) -> PositionedMatch {
        let dag = &self.segment.dag;
        let range = matched.range(dag);
        let word_idx = matched.word_idx;
        let (position, _) = sums.locate(dag, Measure::Words, range.clone(), word_idx);
        let first = sums.word_span(dag, range.clone(), word_idx);
        let last = sums.word_span(dag, range, word_idx + self.words.len() as u64 - 1);
        PositionedMatch {
            rule_id: matched.rule_id,
            position: position as u32,
            offsets: [first.byte_offset, word_idx],
            byte_len: last.byte_offset + last.byte_len - first.byte_offset,
        }
    }
}

/// Returns the positions of `words`, each with the index of the word in the set.
fn keys_from(segment: &Segment, words: &WordSet) -> Vec<u64> {
    let inverse = segment.inverse_or_derive();
    let for_word = |(word, idx): (u32, u64)| {
        let places = inverse.for_element(word).iter();
        places.map(move |place| u64::from(place.position) << 32 | idx)
    };
    words.ids().zip(0..).flat_map(for_word).collect()
}

/// Occurrences of an item in a segment, by document and offset.
#[derive(Debug)]
pub(in crate::query) enum ItemStream {
    Scanned(std::vec::IntoIter<(DocId, Found)>),
    /// Occurrences of a walk, with the byte length of each match.
    Walked {
        walk: Walk,
        byte_lens: Vec<u64>,
    },
}

impl Iterator for ItemStream {
    type Item = (DocId, Found);

    #[inline]
    fn next(&mut self) -> Option<(DocId, Found)> {
        match self {
            Self::Scanned(found) => found.next(),
            Self::Walked { walk, byte_lens } => walk.next().map(|spot| {
                let [byte_offset, word_idx] = spot.offsets;
                let byte_len = byte_lens[spot.match_idx as usize];
                (spot.doc, Found { byte_offset, byte_len, word_idx })
            }),
        }
    }
}

/// A match that is complete in one rule (or one document of the root) and in no rule below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) struct Match {
    /// Rule that holds the match.
    pub rule_id: RuleId,
    /// Document if the rule is the root, else the first.
    pub doc: DocId,
    /// Index of the first matched word among the words of the rule or document.
    pub word_idx: u64,
}

impl Match {
    /// Returns the positions of the rule or document that holds the match.
    pub fn range(&self, dag: &Dag) -> Range<usize> {
        match self.rule_id {
            RuleId::ROOT => dag.doc_range(self.doc),
            rule_id => dag.rule_range(rule_id),
        }
    }
}

/// A phrase as sets of words of one segment, with the set from which the search starts.
#[derive(Debug)]
pub(in crate::query) struct Phrase<'a> {
    segment: &'a Segment,
    edges: &'a EdgeWords,
    words: &'a [WordSet],
    anchor: usize,
}

/// A partial match: the anchor at word `anchor_idx` of rule `rule_id`, with words beside it that
/// are not found yet.
#[derive(Debug, Clone, Copy)]
struct Partial {
    rule_id: RuleId,
    anchor_idx: u64,
    unmet_left: usize,
    unmet_right: usize,
}

impl<'a> Phrase<'a> {
    /// Creates the phrase of `words`, which are two or more.
    pub fn new(segment: &'a Segment, words: &'a [WordSet]) -> Self {
        let rarest = (0..words.len()).min_by_key(|&at| words[at].weight(segment));
        Self { segment, edges: segment.edge_words_or_derive(), words, anchor: rarest.unwrap_or(0) }
    }

    /// Returns the places of the anchor, which can be passed to [`resolve`](Self::resolve) in any
    /// chunks.
    pub fn anchors(&self) -> Cow<'a, [Occurrence]> {
        let anchor = &self.words[self.anchor];
        match anchor.only() {
            Some(word) => Cow::Borrowed(self.segment.inverse_or_derive().for_element(word.into())),
            None => Cow::Owned(anchor.positions(self.segment)),
        }
    }

    /// Calls `found` with each match whose anchor is one of `anchors`.
    pub fn resolve(
        &self,
        anchors: &[Occurrence],
        interrupt: &mut Interrupt<'_>,
        mut found: impl FnMut(Match),
    ) -> Result<()> {
        let mut pending = Vec::new();
        let mut scratch = Vec::new();
        let right = self.words.len() - 1 - self.anchor;
        for &place in anchors {
            let fresh = Partial { rule_id: RuleId::ROOT, anchor_idx: 0, unmet_left: self.anchor, unmet_right: right };
            self.extend(fresh, place, &mut pending, &mut scratch, &mut found);
            while let Some(partial) = pending.pop() {
                let element = self.segment.dag.grammar().element_for(partial.rule_id);
                for &place in self.segment.inverse_or_derive().for_element(element) {
                    interrupt.check()?;
                    self.extend(partial, place, &mut pending, &mut scratch, &mut found);
                }
            }
            interrupt.check()?;
        }
        Ok(())
    }

    /// Continues `partial` at `place`, one of the places of its rule (or of the anchor itself).
    fn extend(
        &self,
        partial: Partial,
        place: Occurrence,
        pending: &mut Vec<Partial>,
        scratch: &mut Vec<Range<usize>>,
        found: &mut impl FnMut(Match),
    ) {
        let dag = &self.segment.dag;
        let position = place.position as usize;
        let doc = match place.rule_id {
            RuleId::ROOT => self.segment.doc_at_or_derive(position),
            _ => DocId::FIRST,
        };
        let mut matched = Match { rule_id: place.rule_id, doc, word_idx: 0 };
        let range = matched.range(dag);
        let left = &self.words[..partial.unmet_left];
        let right = &self.words[self.words.len() - partial.unmet_right..];
        let Some(met_left) = self.match_backward(range.start..position, left, scratch) else {
            return;
        };
        let Some(met_right) = self.match_forward(position + 1..range.end, right, scratch) else {
            return;
        };
        let sums = self.segment.prefix_sums_or_derive();
        let before = sums.between(dag, Measure::Words, range.start..position);
        let next = Partial {
            rule_id: place.rule_id,
            anchor_idx: before + partial.anchor_idx,
            unmet_left: left.len() - met_left,
            unmet_right: right.len() - met_right,
        };
        if next.unmet_left == 0 && next.unmet_right == 0 {
            matched.word_idx = next.anchor_idx - self.anchor as u64;
            found(matched);
        } else if place.rule_id != RuleId::ROOT {
            pending.push(next);
        }
    }

    /// Returns the number of `words` with which the elements of `range` begin: all of them, or as
    /// many as the range has. Returns `None` if a word differs.
    fn match_forward(
        &self,
        mut range: Range<usize>,
        words: &[WordSet],
        stack: &mut Vec<Range<usize>>,
    ) -> Option<usize> {
        let symbols = &self.segment.dag.grammar().symbols;
        let mut met = 0;
        stack.clear();
        while met < words.len() {
            let Some(position) = range.next() else {
                match stack.pop() {
                    Some(outer) => range = outer,
                    None => break,
                }
                continue;
            };
            let element = symbols[position];
            let len_words = self.segment.dag.len_words(element);
            if len_words == 0 {
                continue;
            }
            if !words[met].contains(self.edges.first_for(&self.segment.dag, element)) {
                return None;
            }
            match self.segment.dag.rule_of(element) {
                Some(rule_id) if len_words > 1 && met + 1 < words.len() => {
                    stack.push(std::mem::replace(&mut range, self.segment.dag.rule_range(rule_id)));
                }
                _ => met += 1,
            }
        }
        Some(met)
    }

    /// Returns the number of `words`, counted from their end, with which the elements of `range`
    /// end. This is the mirror image of [`match_forward`](Self::match_forward).
    fn match_backward(
        &self,
        mut range: Range<usize>,
        words: &[WordSet],
        stack: &mut Vec<Range<usize>>,
    ) -> Option<usize> {
        let symbols = &self.segment.dag.grammar().symbols;
        let mut unmet = words.len();
        stack.clear();
        while unmet > 0 {
            let Some(position) = range.next_back() else {
                match stack.pop() {
                    Some(outer) => range = outer,
                    None => break,
                }
                continue;
            };
            let element = symbols[position];
            let len_words = self.segment.dag.len_words(element);
            if len_words == 0 {
                continue;
            }
            if !words[unmet - 1].contains(self.edges.last_for(&self.segment.dag, element)) {
                return None;
            }
            match self.segment.dag.rule_of(element) {
                Some(rule_id) if len_words > 1 && unmet > 1 => {
                    stack.push(std::mem::replace(&mut range, self.segment.dag.rule_range(rule_id)));
                }
                _ => unmet -= 1,
            }
        }
        Some(words.len() - unmet)
    }
}
