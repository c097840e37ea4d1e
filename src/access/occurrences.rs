//! Occurrences of one item of a query in one segment: how many, in which documents, where.
//!
//! A single word needs no work before the climb: its places stand in the inverse grammar. A phrase
//! is first resolved to matches inside rules. Documents that a filter leaves can be scanned instead
//! where that is less work than climbing from every occurrence in the segment.

use rayon::prelude::*;

use crate::corpus::Segment;
use crate::dag::Occurrence;
use crate::error::{Error, Result};

use super::climb::{Climber, DocCounter, Spot};
use super::doc_set::DocSet;
use super::phrase::{Match, Phrase, word_span};
use super::scan::{Found, scan_doc};
use super::search::{Canceller, Interrupt};

/// Places that one parallel task climbs from.
const PLACES_PER_TASK: usize = 1 << 14;
/// Text bytes that are scanned in the time of one climbed occurrence (15 ns at 1 GB/s).
const SCAN_BYTES_PER_CLIMB: u64 = 16;
/// Most text bytes that are scanned for places, some seconds' worth.
const MAX_SCAN_BYTES: u64 = 1 << 33;
/// Memory for so many hits is taken at once where their number is known.
const MAX_RESERVED_HITS: u64 = 1 << 20;

/// One item of a query as word ids of a segment.
#[derive(Debug)]
pub(super) struct Item<'a> {
    segment: &'a Segment,
    words: Vec<u32>,
    canceller: Canceller<'a>,
}

/// Where an item is complete inside the grammar, and its bytes.
#[derive(Debug, Clone, Copy)]
struct PlacedMatch {
    matched: Match,
    byte_offset: u64,
    byte_len: u64,
}

impl<'a> Item<'a> {
    /// `None` where a word of the item is not in the segment.
    pub fn new(segment: &'a Segment, words: &[String], canceller: Canceller<'a>) -> Option<Self> {
        let ids = words.iter().map(|word| segment.dictionary.word_id(word.as_bytes()));
        Some(Self { segment, words: ids.collect::<Option<_>>()?, canceller })
    }

    /// Occurrences in the segment; exact, and O(G * words) however large.
    pub fn count(&self) -> Result<u64> {
        let weights = self.segment.dag.weights();
        if let [word] = self.words[..] {
            return Ok(weights[word as usize]);
        }
        // A match belongs to one occurrence of its first word: the sum is below 2^64.
        let num_terminals = self.segment.dag.num_terminals();
        let of = |matched: &Match| weights[(num_terminals + matched.rule_idx) as usize];
        Ok(self.matches()?.iter().map(of).sum())
    }

    /// Documents of `filter` (all without one) with at least one occurrence, and how many.
    pub fn count_by_doc(&self, filter: Option<&DocSet>) -> Result<Vec<(u32, u64)>> {
        let num_elements = self.segment.dag.grammar().symbols.len() as u64;
        let max_bytes = num_elements.saturating_mul(SCAN_BYTES_PER_CLIMB);
        if let Some(docs) = filter.filter(|docs| self.scans(docs, max_bytes)) {
            return self.scan(docs, |_, _| ());
        }
        let mut counter = DocCounter::new(&self.segment.dag);
        if let [word] = self.words[..] {
            let places = self.segment.dag.inverse().of(word);
            places.iter().for_each(|&place| counter.add(place, 1));
        } else {
            self.matches()?.iter().for_each(|matched| match matched.rule_idx {
                0 => counter.add_to_doc(matched.doc, 1),
                rule_idx => counter.add_to_rule(rule_idx, 1),
            });
        }
        let mut counts = counter.finish(&mut self.canceller.interrupt())?;
        counts.retain(|&(doc, _)| filter.is_none_or(|docs| docs.contains(doc as usize)));
        Ok(counts)
    }

    /// Calls `place` with every occurrence in the documents of `filter` (all without one) and
    /// collects what it makes of them, in no particular order.
    ///
    /// # Errors
    /// [`Error::Capacity`] for more than `max_hits` occurrences, found out before memory is taken.
    pub fn collect<T: Send>(
        &self,
        filter: Option<&DocSet>,
        max_hits: u64,
        place: impl Fn(u32, Found) -> T + Sync,
    ) -> Result<Vec<T>> {
        let in_all = self.count()?;
        if in_all > max_hits {
            let in_docs = match filter {
                None => in_all,
                Some(_) => self.count_by_doc(filter)?.iter().map(|&(_, count)| count).sum(),
            };
            check_num_hits(in_docs, max_hits)?;
        }
        if let Some(docs) = filter.filter(|docs| self.scans(docs, MAX_SCAN_BYTES)) {
            let mut hits = Vec::new();
            self.scan(docs, |doc, found| hits.push(place(doc, found)))?;
            return Ok(hits);
        }
        // Only a filter gets here with more: the places outside of it would be climbed as well.
        check_num_hits(in_all, max_hits.saturating_mul(64))?;
        let passes = |spot: &Spot| filter.is_none_or(|docs| docs.contains(spot.doc as usize));
        let capacity = if filter.is_none() { in_all.min(MAX_RESERVED_HITS) as usize } else { 0 };
        if let [word] = self.words[..] {
            let byte_len = self.segment.dag.len_bytes(word);
            let places = self.segment.dag.inverse().of(word);
            return self.collect_parallel(places, capacity, |places, interrupt, hits| {
                let mut climber = Climber::new(&self.segment.dag);
                places.iter().try_for_each(|&at| {
                    climber.climb(at, [0; 2], interrupt, &mut |spot| {
                        if passes(&spot) {
                            hits.push(place(spot.doc, found_at(spot, byte_len)));
                        }
                    })
                })
            });
        }
        let matches = self.placed_matches()?;
        self.collect_parallel(&matches, capacity, |matches, interrupt, hits| {
            let mut climber = Climber::new(&self.segment.dag);
            matches.iter().try_for_each(|placed| {
                let Match { rule_idx, doc, word_idx } = placed.matched;
                let offsets = [placed.byte_offset, word_idx];
                let mut visit = |spot: Spot| {
                    if passes(&spot) {
                        hits.push(place(spot.doc, found_at(spot, placed.byte_len)));
                    }
                };
                if rule_idx == 0 {
                    visit(Spot { doc, byte_offset: placed.byte_offset, word_idx });
                    return interrupt.check();
                }
                climber.climb_from_rule(rule_idx, offsets, interrupt, &mut visit)
            })
        })
    }

    /// Whether `docs` have at most `max_bytes` and reading them is less work than climbing from
    /// every occurrence in the segment.
    fn scans(&self, docs: &DocSet, max_bytes: u64) -> bool {
        let weights = self.segment.dag.weights();
        let rarest = self.words.iter().map(|&word| weights[word as usize]).min().unwrap_or(0);
        let mut budget = rarest.saturating_mul(SCAN_BYTES_PER_CLIMB).min(max_bytes);
        docs.iter().all(|doc| {
            let left = budget.checked_sub(self.segment.dag.doc_len_bytes(doc));
            budget = left.unwrap_or(0);
            left.is_some()
        })
    }

    fn scan(&self, docs: &DocSet, mut visit: impl FnMut(u32, Found)) -> Result<Vec<(u32, u64)>> {
        let mut counts = Vec::new();
        let mut interrupt = self.canceller.interrupt();
        for doc in docs.iter() {
            let mut count = 0;
            scan_doc(self.segment, doc, &self.words, &mut interrupt, |found| {
                count += 1;
                visit(doc as u32, found);
            })?;
            if count > 0 {
                counts.push((doc as u32, count));
            }
        }
        Ok(counts)
    }

    /// Matches of a phrase inside rules and documents.
    fn matches(&self) -> Result<Vec<Match>> {
        let phrase = Phrase::new(&self.segment.dag, &self.words);
        let anchors: &[Occurrence] = phrase.anchors();
        self.collect_parallel(anchors, 0, |anchors, interrupt, matches| {
            phrase.resolve(anchors, interrupt, |matched| matches.push(matched))
        })
    }

    fn placed_matches(&self) -> Result<Vec<PlacedMatch>> {
        let dag = &self.segment.dag;
        let matches = self.matches()?;
        self.collect_parallel(&matches, matches.len(), |matches, interrupt, placed| {
            matches.iter().try_for_each(|&matched| {
                let range = matched.range(dag);
                let last_idx = matched.word_idx + self.words.len() as u64 - 1;
                let first = word_span(dag, range.clone(), matched.word_idx);
                let last = word_span(dag, range, last_idx);
                let byte_len = last.byte_offset + last.byte_len - first.byte_offset;
                placed.push(PlacedMatch { matched, byte_offset: first.byte_offset, byte_len });
                interrupt.check()
            })
        })
    }

    /// Runs `work` over portions of `inputs`, in parallel where there are many, and joins what they
    /// collect in order.
    fn collect_parallel<I: Sync, T: Send>(
        &self,
        inputs: &[I],
        capacity: usize,
        work: impl Fn(&[I], &mut Interrupt<'_>, &mut Vec<T>) -> Result<()> + Sync,
    ) -> Result<Vec<T>> {
        let run = |portion: &[I], mut collected: Vec<T>| {
            work(portion, &mut self.canceller.interrupt(), &mut collected)?;
            Ok(collected)
        };
        if inputs.len() <= PLACES_PER_TASK {
            return run(inputs, Vec::with_capacity(capacity));
        }
        let portions: Result<Vec<Vec<T>>> =
            inputs.par_chunks(PLACES_PER_TASK).map(|portion| run(portion, Vec::new())).collect();
        let portions = portions?;
        let mut joined = Vec::with_capacity(portions.iter().map(Vec::len).sum());
        portions.into_iter().for_each(|mut portion| joined.append(&mut portion));
        Ok(joined)
    }
}

fn found_at(spot: Spot, byte_len: u64) -> Found {
    Found { byte_offset: spot.byte_offset, byte_len, word_idx: spot.word_idx }
}

/// Refuses more than `max_hits` occurrences.
pub(super) fn check_num_hits(requested: u64, max_hits: u64) -> Result<()> {
    if requested <= max_hits {
        return Ok(());
    }
    Err(Error::Capacity {
        what: "occurrences to list",
        requested,
        limit: max_hits,
        knob: "tadoc.max_hits",
    })
}
