//! Chains of segments, read as far as a search needs them, and texts that go on from chain to chain.
//!
//! ```text
//! paths ─▶ a chosen one? ─▶ dictionary ─▶ words of the pattern? ─▶ lists or grammar ─▶ documents that may match
//!
//! chains     | a a a | a a a | a b b | b c |       in a row: chains are searched one after the other
//! chains     | a a b | b a   |                     a comes back: all of them are one corpus
//! ```
//!
//! A chain without a chosen path is left out before its dictionary is read. Chains of segments that cannot match are
//! not opened. What is known of them are the paths of their documents, and so the number of lines if no document has a
//! line end. Only where that is not enough, they are opened after all: for lines around a line, and for records of
//! several lines. Memory: that of one chain.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use tadoc::Corpus;
use tadoc::query::{
    MatchingLineCounter, PathTexts, SegmentPaths, TextLead, TextPattern, documents_for_demands, has_line_ends,
};
use tadoc::segment::{PathRuns, Segment};
use tadoc_session::{CorpusFile, Outcome};

use super::selection::Selection;
use crate::tasks::{Decoded, Meta, are_needed, path_of, paths_of, read_matching, read_rest, read_words, runs_of};

/// The first and the last text of a chain.
#[derive(Debug, Default)]
struct Ends {
    first_path: String,
    first_hash: u64,
    last_path: String,
    /// Number of documents of the last text.
    last_docs: u64,
    /// Hashes of the paths, ascending.
    hashes: Vec<u64>,
    /// The paths of its segments, if they are few.
    paths: Option<Vec<PathRuns>>,
}

/// Most runs of paths of a chain that are kept.
const MAX_KEPT_RUNS: usize = 1 << 10;

/// The places of the texts of a file in its chains.
#[derive(Debug)]
pub struct Joins {
    ends: Vec<Ends>,
    /// True if a text has documents in chains with another text between them.
    pub comes_back: bool,
}

impl Joins {
    /// Reads the paths of `chains`.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn read(file: &CorpusFile, chains: &[&[Meta<'_>]]) -> Outcome<Self> {
        let hasher = RandomState::new();
        let mut ends = Vec::new();
        for chains in chains.chunks(rayon::current_num_threads()) {
            let paths = chains.iter().map(|chain| chain.iter().map(|&meta| paths_of(file, meta)).collect());
            let paths: Vec<Vec<PathRuns>> = paths.collect::<Outcome<_>>()?;
            let read = chains.par_iter().zip(paths).map(|(chain, paths)| ends_of(chain, paths, &hasher));
            ends.extend(read.collect::<Vec<_>>());
        }
        let joins = Self { ends, comes_back: false };
        Ok(Self { comes_back: joins.find_one_that_comes_back(), ..joins })
    }

    /// Returns true if the first text of a chain is the last one of the chain before.
    pub fn goes_on_from_before(&self, chain: usize) -> bool {
        let is_empty = |chain: usize| self.ends[chain].hashes.is_empty();
        let is_same = |chain: usize| self.ends[chain].first_path == self.ends[chain - 1].last_path;
        chain > 0 && !is_empty(chain) && !is_empty(chain - 1) && is_same(chain)
    }

    /// Returns true if the last text of a chain is the first one of the next.
    pub fn goes_on(&self, chain: usize) -> bool {
        chain + 1 < self.ends.len() && self.goes_on_from_before(chain + 1)
    }

    /// Returns true if each text lies in one chain.
    pub fn are_apart(&self) -> bool {
        !self.comes_back && !(0..self.ends.len()).any(|chain| self.goes_on(chain))
    }

    /// Returns true if a chain has one text, which goes on from the chain before.
    pub fn only_goes_on(&self, chain: usize) -> bool {
        self.goes_on_from_before(chain) && self.ends[chain].hashes.len() == 1
    }

    /// Returns the texts of a chain, whose segments are those of `corpus`.
    pub fn texts(&self, chain: usize, chains: &[&[Meta<'_>]], corpus: &Corpus) -> PathTexts {
        match &self.ends[chain].paths {
            Some(paths) => texts_of(chains[chain], paths),
            None => PathTexts::new(corpus),
        }
    }

    /// Returns the texts of a chain of `chains`, whose paths are read again if they are many.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn texts_of_paths(&self, chain: usize, file: &CorpusFile, chains: &[&[Meta<'_>]]) -> Outcome<PathTexts> {
        if let Some(paths) = &self.ends[chain].paths {
            return Ok(texts_of(chains[chain], paths));
        }
        let paths = chains[chain].iter().map(|&meta| paths_of(file, meta)).collect::<Outcome<Vec<_>>>()?;
        Ok(texts_of(chains[chain], &paths))
    }

    /// Returns the number of documents of the last text of a chain.
    pub fn num_last_docs(&self, chain: usize) -> u64 {
        self.ends[chain].last_docs
    }
}

/// Returns the ends of a chain of segments with these paths.
fn ends_of(chain: &[Meta<'_>], paths: Vec<PathRuns>, hasher: &RandomState) -> Ends {
    let texts = texts_of(chain, &paths);
    let mut hashes: Vec<u64> = paths.iter().flat_map(PathRuns::iter).map(|(path, _)| hasher.hash_one(path)).collect();
    let (Some(&first_hash), Some(last)) = (hashes.first(), texts.len().checked_sub(1)) else { return Ends::default() };
    hashes.sort_unstable();
    hashes.dedup();
    let path = |text: usize| {
        texts.documents(text).next().and_then(|doc| path_at(chain, &paths, doc)).unwrap_or_default().to_owned()
    };
    Ends {
        first_path: path(0),
        last_path: path(last),
        first_hash,
        last_docs: texts.num_docs(last),
        hashes,
        paths: Some(paths)
            .filter(|paths| paths.iter().map(|paths| paths.num_docs.len()).sum::<usize>() <= MAX_KEPT_RUNS),
    }
}

fn texts_of(chain: &[Meta<'_>], paths: &[PathRuns]) -> PathTexts {
    let segments = paths.iter().zip(chain).map(|(paths, (_, meta))| (SegmentPaths::Runs(paths), meta.continues));
    PathTexts::from_segments(&segments.collect::<Vec<_>>())
}

/// Returns the path of a document of consecutive segments.
fn path_at<'p>(chain: &[Meta<'_>], paths: &'p [PathRuns], doc: u64) -> Option<&'p str> {
    let mut num_before = 0;
    for ((_, meta), paths) in chain.iter().zip(paths) {
        num_before -= u64::from(meta.continues && num_before > 0);
        for (path, num_docs) in paths.iter() {
            num_before += num_docs;
            if doc < num_before {
                return Some(path);
            }
        }
    }
    None
}

impl Joins {
    /// Returns true if a path, or one with the same hash, comes back after another one.
    fn find_one_that_comes_back(&self) -> bool {
        let mut last_chains: HashMap<u64, usize> = HashMap::new();
        self.ends.iter().enumerate().any(|(chain, ends)| {
            ends.hashes.iter().any(|&hash| {
                let before = last_chains.insert(hash, chain);
                let is_first = hash == ends.first_hash && self.goes_on_from_before(chain);
                before.is_some_and(|before| !(is_first && before + 1 == chain))
            })
        })
    }
}

/// Opens a chain.
///
/// # Errors
/// The file cannot be read or is damaged.
pub fn open(file: &CorpusFile, chain: &[Meta<'_>]) -> Outcome<Corpus> {
    let segments = read_rest(file, read_words(file, chain)?)?;
    Ok(Corpus::new(file.footer.profile, segments))
}

/// The parts of the place of a line that the output shows.
#[derive(Debug, Clone, Copy)]
pub struct Needs {
    /// Numbers of lines, or if they follow each other.
    pub numbers: bool,
    /// Bytes before a line.
    pub offsets: bool,
    /// Lines before a line.
    pub before: usize,
}

impl Needs {
    /// Returns the texts of `corpus`, counted as far as it is needed.
    ///
    /// # Errors
    /// A document has 2^64 bytes or more.
    pub fn count(self, mut texts: PathTexts, corpus: &Corpus) -> Outcome<PathTexts> {
        if self.numbers {
            texts.count_line_ends(corpus);
        }
        if self.offsets {
            texts.count_bytes(corpus)?;
        }
        Ok(texts)
    }
}

/// The state of the text that goes on from chain to chain.
#[derive(Debug, Default)]
pub struct Leads {
    /// True for each chain up to here that may have line ends in its documents.
    pub has_line_ends: Vec<bool>,
    /// The last chain whose end is known, and what the next one begins with.
    known: Option<(usize, TextLead)>,
}

impl Leads {
    /// Notes the end of a chain.
    pub fn note(&mut self, chain: usize, lead: TextLead) {
        self.known = Some((chain, lead));
    }

    /// Returns the part of the first text of `chain` before it. Chains between that are not known are opened if
    /// their paths do not tell enough.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn lead_of(
        &mut self,
        chain: usize,
        file: &CorpusFile,
        chains: &[&[Meta<'_>]],
        joins: &Joins,
        needs: Needs,
    ) -> Outcome<TextLead> {
        if !joins.goes_on_from_before(chain) {
            return Ok(TextLead::default());
        }
        let mut begin = chain - 1;
        while joins.only_goes_on(begin) {
            begin -= 1;
        }
        let known = self.known.take().filter(|(known, _)| (begin..chain).contains(known));
        let (mut next, mut lead) = known.map_or((begin, TextLead::default()), |(known, lead)| (known + 1, lead));
        while next < chain {
            let num_docs_behind: u64 = (next + 1..chain).map(|chain| joins.num_last_docs(chain)).sum();
            let is_near = num_docs_behind < needs.before as u64;
            let has_line_ends = self.has_line_ends.get(next).is_none_or(|&has| has);
            if is_near || needs.offsets || needs.numbers && has_line_ends {
                let corpus = open(file, chains[next])?;
                let mut texts = PathTexts::new(&corpus).with_more();
                if next > begin {
                    texts = texts.with_lead(lead);
                }
                lead = needs.count(texts, &corpus)?.lead_of_next(&corpus, needs.before)?;
            } else {
                let num_docs = joins.num_last_docs(next);
                lead.num_docs += num_docs;
                lead.num_lines += num_docs;
                lead.last_lines.clear();
            }
            next += 1;
        }
        self.note(chain - 1, lead.clone());
        Ok(lead)
    }
}

/// A file of which all chains are one corpus.
pub struct Whole {
    pub corpus: Corpus,
    pub texts: PathTexts,
}

impl Whole {
    /// Opens the chains that are needed: those with a document as `is_needed` says, and those whose line ends
    /// count.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn open(file: &CorpusFile, chains: &[&[Meta<'_>]], wanted: Wanted<'_>, needs: Needs) -> Outcome<Self> {
        let mut segments: Vec<Arc<Segment>> = Vec::new();
        let mut absent_paths: Vec<Option<PathRuns>> = Vec::new();
        for chains in chains.chunks(rayon::current_num_threads()) {
            let read = read_words(file, &chains.concat())?;
            let mut is_needed = are_needed(file, wanted.demands, &read).into_iter();
            let mut needed = Vec::new();
            let mut places = Vec::new();
            for (meta, dictionary) in read {
                let counts = needs.offsets || needs.before > 0 || needs.numbers && has_line_ends(&dictionary);
                let has_chosen = wanted.chosen_in(file, meta)?.is_none_or(|docs| !docs.is_empty());
                if is_needed.next().unwrap_or_default() && has_chosen || counts {
                    needed.push((meta, dictionary));
                    places.push(None);
                } else {
                    places.push(Some(meta));
                }
            }
            let mut opened = read_rest(file, needed)?.into_iter();
            for place in places {
                match place {
                    Some(meta) => {
                        let num_docs = usize::try_from(meta.1.num_docs).unwrap_or(usize::MAX);
                        segments.push(Arc::new(Segment::absent(num_docs, meta.1.continues)?));
                        absent_paths.push(Some(paths_of(file, meta)?));
                    }
                    None => {
                        segments.extend(opened.next());
                        absent_paths.push(None);
                    }
                }
            }
        }
        let paths = segments.iter().zip(&absent_paths).map(|(segment, absent)| {
            let paths = absent.as_ref().map_or(SegmentPaths::Each(&segment.paths), SegmentPaths::Runs);
            (paths, segment.continues)
        });
        let texts = PathTexts::from_segments(&paths.collect::<Vec<_>>());
        let corpus = Corpus::new(file.footer.profile, segments);
        let texts = needs.count(texts, &corpus)?;
        Ok(Self { corpus, texts })
    }
}

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
        let paths = paths_of(file, meta)?;
        let chosen = runs_of(&paths).filter(|(path, _)| selection.chooses(path));
        Ok(Some(chosen.flat_map(|(_, run)| run).collect()))
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
    /// Reads as much of `chain` as a search needs, for which documents are `decoded`.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn read(file: &CorpusFile, chain: &[Meta<'_>], wanted: Wanted<'_>, decoded: Decoded) -> Outcome<Self> {
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
                let matching = read_matching(file, alone, demands, chosen, decoded)?;
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
