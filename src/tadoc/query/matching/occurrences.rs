//! Occurrences of one item of a query in one segment: number, documents and offsets.
//!
//! A single word needs no work before the climb, since the inverse grammar lists its places. The
//! places of a set of words are sorted by position, so that one climb serves the whole set. A
//! phrase is first resolved to matches inside rules. If a filter leaves few documents, they are
//! scanned instead when that is less work than gathering all places in the segment. `way` chooses.

use std::borrow::Cow;
use std::sync::Arc;

use rayon::prelude::*;

use crate::error::Result;
use crate::ids::{DocId, RuleId};
use crate::segment::{DocWords, Measure, Occurrence, Segment};

use crate::interrupt::Canceller;
use crate::query::matching::doc_counts::DocCounter;
use crate::query::matching::doc_set::DocSet;
use crate::query::matching::match_paths::{MatchPathsBuilder, PositionedMatch, Walk};
use crate::query::matching::phrase::{Match, Phrase};
use crate::query::matching::scan::{Found, scan_doc};
use crate::query::matching::sweep::Sweep;
use crate::query::matching::way::{Form, Question, Want, Way};
use crate::query::matching::word_set::WordSet;

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
        let of = |matched: &Match| weights[grammar.element_of(matched.rule_id) as usize];
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
                Some(word) => {
                    Cow::Borrowed(self.segment.inverse_or_derive().for_element(word.into()))
                }
                None => Cow::Owned(words.positions(self.segment)),
            };
            builder.add_rules(direct.iter().map(|place| place.rule_id));
            builder.climb(&mut interrupt)?;
            let paths = match only {
                Some(_) => builder.finish_words(&direct)?,
                None => builder.finish_keys(keys_of(self.segment, words))?,
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

    /// Returns the documents of `filter` (all if there is none) with occurrences and the number in each, if
    /// the segment was asked little.
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

    /// Returns the occurrences in `filter` (all documents if there is none) of a segment that was asked
    /// little.
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
        let (form, num_positions) = (self.form(), self.num_positions());
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

    fn scan(
        &self,
        docs: &DocSet,
        mut visit: impl FnMut(DocId, Found),
    ) -> Result<Vec<(DocId, u64)>> {
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
        let portions: Result<Vec<_>> =
            anchors.par_chunks(POSITIONS_PER_TASK).map(resolve).collect();
        Ok(portions?.concat())
    }

    /// Returns the matches with their bytes, by rule and offset.
    fn positioned_matches(&self) -> Result<Vec<PositionedMatch>> {
        let (dag, sums) = (&self.segment.dag, self.segment.prefix_sums_or_derive());
        let mut matches = self.matches()?;
        matches.sort_unstable_by_key(|matched| (matched.rule_id, matched.doc, matched.word_idx));
        let positioned = |matched: &Match| {
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
        };
        Ok(matches.par_iter().with_min_len(POSITIONS_PER_TASK).map(positioned).collect())
    }
}

/// Returns the positions of `words`, each with the index of the word in the set.
fn keys_of(segment: &Segment, words: &WordSet) -> Vec<u64> {
    let inverse = segment.inverse_or_derive();
    let of_word = |(word, idx): (u32, u64)| {
        let places = inverse.for_element(word).iter();
        places.map(move |place| u64::from(place.position) << 32 | idx)
    };
    words.ids().zip(0..).flat_map(of_word).collect()
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
