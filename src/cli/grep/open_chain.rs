//! Chains of segments that are read as far as a search needs them.
//!
//! ```text
//! paths ─▶ a chosen one? ─▶ dictionary ─▶ words of the pattern? ─▶ lists or grammar ─▶ documents that may match
//! ```
//!
//! A chain without a chosen path is left out before its dictionary is read. Memory: that of one chain.

use std::sync::atomic::{AtomicBool, Ordering};

use tadoc::Corpus;
use tadoc::query::{MatchingLineCounter, TextPattern, documents_for_demands, has_line_ends};
use tadoc_session::{CorpusFile, Outcome};

use super::selection::Selection;
use crate::tasks::{Meta, are_needed, path_of, paths_of, read_matching, read_rest, read_words};

/// The documents that may have a line.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Conditions on the text.
    pub demands: &'a [Vec<TextPattern>],
    /// Conditions on the path, if there are some.
    pub selection: Option<&'a Selection>,
    /// Counts the lines, if that tells all that is shown, or documents without a line.
    pub counter: Option<&'a Counter>,
}

/// Counts the lines of documents, without their text.
pub struct Counter {
    pub lines: MatchingLineCounter,
    /// True if nothing of the lines is shown but their number, or if there is one.
    pub suffices: bool,
    /// False if most documents that were counted have a line, so that others are read at once.
    leaves_out_many: AtomicBool,
}

impl Counter {
    pub fn new(lines: MatchingLineCounter, suffices: bool) -> Self {
        Self { lines, suffices, leaves_out_many: AtomicBool::new(true) }
    }
}

impl Wanted<'_> {
    /// Returns the documents that may have a line.
    pub fn candidates(&self, corpus: &Corpus) -> Vec<u64> {
        let candidates = documents_for_demands(corpus, self.demands);
        self.chosen(corpus, candidates.unwrap_or_else(|| (0..corpus.num_docs()).collect()))
    }

    /// Counts the lines of `docs`, if that is worth it. Returns those that have some, and the numbers if they suffice.
    pub fn counted(&self, corpus: &Corpus, docs: Vec<u64>) -> (Vec<u64>, Option<Vec<u64>>) {
        let is_worth = |counter: &&Counter| counter.suffices || counter.leaves_out_many.load(Ordering::Relaxed);
        let Some(counter) = self.counter.filter(is_worth) else { return (docs, None) };
        let Some(counts) = counter.lines.count(corpus, &docs) else { return (docs, None) };
        let num_counted = docs.len();
        let (docs, counts): (Vec<u64>, Vec<u64>) = docs.into_iter().zip(counts).filter(|&(_, count)| count > 0).unzip();
        if 3 * docs.len() > 2 * num_counted {
            counter.leaves_out_many.store(false, Ordering::Relaxed);
        }
        (docs, Some(counts).filter(|_| counter.suffices))
    }

    /// Returns those of `docs` whose paths are chosen. Successive documents of one path are compared once.
    fn chosen(&self, corpus: &Corpus, mut docs: Vec<u64>) -> Vec<u64> {
        let Some(selection) = self.selection else { return docs };
        let mut last: Option<(&str, bool)> = None;
        docs.retain(|&doc| {
            let path = path_of(corpus, doc);
            let is_chosen = match last {
                Some((last_path, is_chosen)) if last_path == path => is_chosen,
                _ => selection.chooses(path),
            };
            last = Some((path, is_chosen));
            is_chosen
        });
        docs
    }

    /// Returns the documents of a segment whose paths are chosen, ascending; `None` if all are.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn chosen_in(&self, file: &CorpusFile, meta: Meta<'_>) -> Outcome<Option<Vec<u32>>> {
        let Some(selection) = self.selection else { return Ok(None) };
        let (mut docs, mut next) = (Vec::new(), 0u32);
        for (path, num_docs) in paths_of(file, meta)?.iter() {
            let end = next.saturating_add(u32::try_from(num_docs).unwrap_or(u32::MAX));
            if selection.chooses(path) {
                docs.extend(next..end);
            }
            next = end;
        }
        Ok(Some(docs))
    }
}

/// A chain that was read.
pub struct OpenChain {
    /// True if a document may have a line end.
    pub has_line_ends: bool,
    /// The chain and the documents that may have a line, if there may be some.
    pub corpus: Option<(Corpus, Vec<u64>)>,
    /// The number of lines of each of these documents, if they were counted. Each has some.
    pub counts: Option<Vec<u64>>,
}

impl OpenChain {
    /// Reads as much of `chain` as a search needs. If `only_those` are asked for, documents without a line may be
    /// left out.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn read(file: &CorpusFile, chain: &[Meta<'_>], wanted: Wanted<'_>, only_those: bool) -> Outcome<Self> {
        let demands = wanted.demands;
        let chosen = chain.iter().map(|&meta| wanted.chosen_in(file, meta)).collect::<Outcome<Vec<_>>>()?;
        if chosen.iter().all(|docs| docs.as_ref().is_some_and(Vec::is_empty)) {
            return Ok(Self { has_line_ends: true, corpus: None, counts: None });
        }
        let read = read_words(file, chain)?;
        let has_line_ends = read.iter().any(|(_, dictionary)| has_line_ends(dictionary));
        // All segments of a chain are needed, or none.
        if !are_needed(file, demands, &read).contains(&true) {
            return Ok(Self { has_line_ends, corpus: None, counts: None });
        }
        let with_segments = |segments| Corpus::new(file.footer.profile, segments);
        let chosen = chosen.into_iter().next().flatten();
        let corpus = match <[_; 1]>::try_from(read) {
            Ok([alone]) if !demands.is_empty() || chosen.is_some() => {
                let matching = read_matching(file, alone, demands, chosen, only_those)?;
                matching.map(|(segment, docs)| (with_segments(vec![segment]), docs))
            }
            Ok([alone]) => Some((with_segments(read_rest(file, vec![alone])?), None)),
            Err(read) => Some((with_segments(read_rest(file, read)?), None)),
        };
        let Some((corpus, docs)) = corpus else { return Ok(Self { has_line_ends, corpus: None, counts: None }) };
        let docs = docs.unwrap_or_else(|| wanted.candidates(&corpus));
        let (docs, counts) = wanted.counted(&corpus, docs);
        if counts.is_none() && docs.len() as u64 == corpus.num_docs() {
            corpus.segments().iter().for_each(|segment| segment.prepare_to_decode_all());
        }
        Ok(Self { has_line_ends, corpus: Some((corpus, docs)), counts })
    }
}
