//! Words in documents, many at once: how often, and where.
//!
//! ```text
//! queries   (doc 7, power) (doc 2, loss) (doc 7, loss) (doc 9, power)
//! parts     cut documents have several; each word is looked up once a segment
//! groups    by word: power {7, 9}   climbed from once, for all documents that ask
//!           by document: 2 {loss} 7 {loss}   read once, for all words that are asked of it
//! ```
//!
//! A query belongs to the group that makes it cheaper: the places of a word cost some
//! [`BYTES_PER_PLACE`] of reading each, and are shared by the queries of the word. Rare words are
//! climbed from path by path, frequent ones as in [`super::search()`]. Groups are answered on all cores.
//! Memory: some 60 bytes a query, and the answers; equal queries are answered once.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::corpus::{Corpus, Segment};
use crate::error::{Error, Result};
use crate::text::{TokenizerProfile, for_each_token};

use super::batch::{OffsetLists, in_batch};
use super::climb::climb;
use super::decode::{check_doc_id, too_long};
use super::doc_set::DocSet;
use super::occurrences::Item;
use super::scan::scan_doc_words;
use super::search::{SearchOptions, check_num_hits};
use super::word_set::WordSet;

/// Text that is read in the time of one place climbed through.
const BYTES_PER_PLACE: u64 = 16;
/// What reading a document costs beside its text.
const DOC_BYTES: u64 = 512;
/// Words that occur more often are not climbed from path by path.
const MAX_RARE_WEIGHT: u64 = 256;
/// Most places of one climb: a grammar of long chains has more than words have occurrences.
const MAX_PLACES: usize = 2048;
/// Groups of one task.
const MIN_GROUPS: usize = 16;
/// Hits of an answer between two looks at the limit.
const HITS_PER_CHECK: u64 = 1 << 12;

/// A word to count or to look for in one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordQuery<'a> {
    /// The document.
    pub doc_id: u64,
    /// The word, as it stands in the text.
    pub word: &'a str,
}

/// How often each word occurs in its document, in the order of `queries`, on all cores.
///
/// # Errors
/// [`Error::InBatch`] for the first query whose document there is not, or whose word is not one word
/// of the corpus's tokenizer.
pub fn count_batch(corpus: &Corpus, queries: &[WordQuery<'_>]) -> Result<Vec<u64>> {
    let plan = Plan::new(corpus, queries)?;
    let mut of_parts = vec![0u64; plan.parts.len()];
    for (part_idx, answer) in plan.answers(&Asking::new(None))? {
        of_parts[part_idx as usize] = answer.count;
    }
    let count = |part_idx: usize| of_parts[plan.answered[part_idx] as usize];
    let sum = |(query_idx, mut parts): (usize, Range<usize>)| {
        let sum = parts.try_fold(0u64, |sum, part_idx| sum.checked_add(count(part_idx)));
        sum.ok_or_else(|| in_batch(query_idx, too_long()))
    };
    plan.parts_by_query().enumerate().map(sum).collect()
}

/// The byte offsets of each word in its document, ascending, in the order of `queries`, on all cores;
/// all together at most `max_hits`.
///
/// # Errors
/// As [`count_batch`]; [`Error::Capacity`] for more offsets than allowed.
pub fn search_batch(
    corpus: &Corpus,
    queries: &[WordQuery<'_>],
    max_hits: u64,
) -> Result<OffsetLists> {
    let plan = Plan::new(corpus, queries)?;
    let answers = plan.answers(&Asking::new(Some(max_hits)))?;
    let mut of_parts: Vec<&[u64]> = vec![&[]; plan.parts.len()];
    for (part_idx, answer) in &answers {
        of_parts[*part_idx as usize] = &answer.offsets;
    }
    let of_part = |part_idx: usize| of_parts[plan.answered[part_idx] as usize];
    // Equal queries were answered once and are listed each.
    let lens = (0..plan.parts.len()).map(|part_idx| of_part(part_idx).len() as u64);
    let num_hits = lens.fold(0, u64::saturating_add);
    check_num_hits(num_hits, max_hits)?;
    let mut offsets = Vec::with_capacity(num_hits as usize);
    let mut ends = Vec::with_capacity(queries.len());
    for parts in plan.parts_by_query() {
        for part_idx in parts {
            let start = plan.parts[part_idx].start;
            offsets.extend(of_part(part_idx).iter().map(|offset| start + offset));
        }
        ends.push(offsets.len());
    }
    Ok(OffsetLists::new(offsets, ends))
}

/// Refuses what is not one word: it would be found nowhere.
pub(crate) fn check_word(profile: TokenizerProfile, word: &str) -> Result<()> {
    let (mut num_tokens, mut is_word) = (0, false);
    for_each_token(profile, word.as_bytes(), |token| {
        num_tokens += 1;
        is_word = token.is_word;
    });
    if num_tokens == 1 && is_word {
        return Ok(());
    }
    Err(Error::InvalidArgument {
        name: "word",
        got: format!("`{word}`"),
        allowed: format!("one word of the tokenizer profile {profile}"),
    })
}

/// A query in one part of its document.
#[derive(Debug, Clone, Copy)]
struct Part {
    segment: u32,
    doc: u32,
    /// Index of the word among the distinct ones, then its id in the segment.
    word: u32,
    /// Bytes of the document before the part.
    start: u64,
}

/// Where a part stands in an order by word or by document.
type Key = (u32, u32, u32, u32);

/// Queries as parts, and the groups they are answered in.
struct Plan<'a> {
    corpus: &'a Corpus,
    /// Parts of one query after the other.
    parts: Vec<Part>,
    /// Where the parts of each query end.
    ends: Vec<u32>,
    /// The part that is answered for each: equal ones are answered once.
    answered: Vec<u32>,
    /// Segment, word, document, part; then segment, document, word, part.
    by_word: Vec<Key>,
    by_doc: Vec<Key>,
}

impl<'a> Plan<'a> {
    fn new(corpus: &'a Corpus, queries: &[WordQuery<'a>]) -> Result<Self> {
        let mut plan = Self {
            corpus,
            parts: Vec::with_capacity(queries.len()),
            ends: Vec::with_capacity(queries.len()),
            answered: Vec::new(),
            by_word: Vec::new(),
            by_doc: Vec::new(),
        };
        let words = plan.number_parts(queries)?;
        let key = |(part, part_idx): (&Part, u32)| (part.segment, part.word, part.doc, part_idx);
        let mut keys: Vec<Key> = plan.parts.iter().zip(0..).map(key).collect();
        keys.par_sort_unstable();
        plan.answered = vec![0; plan.parts.len()];
        keys.dedup_by(|next, kept| {
            let is_same = (next.0, next.1, next.2) == (kept.0, kept.1, kept.2);
            let first = if is_same { kept.3 } else { next.3 };
            plan.answered[next.3 as usize] = first;
            is_same
        });
        if let Some(first) = keys.first() {
            plan.answered[first.3 as usize] = first.3;
        }
        let groups: Vec<&[Key]> = keys.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).collect();
        let id_of = |group: &&[Key]| {
            let (segment, word, ..) = group[0];
            let dictionary = &corpus.segments()[segment as usize].dictionary;
            dictionary.word_id(words[word as usize].as_bytes())
        };
        let ids: Vec<Option<u32>> = groups.par_iter().with_min_len(MIN_GROUPS).map(id_of).collect();
        let found = groups.into_iter().zip(ids).filter_map(|(group, id)| Some((group, id?)));
        for (group, id) in found {
            let with_id = |&(segment, _, doc, part_idx): &Key| (segment, id, doc, part_idx);
            plan.by_word.extend(group.iter().map(with_id));
        }
        plan.choose();
        Ok(plan)
    }

    /// Makes the parts of all queries; returns their distinct words.
    fn number_parts(&mut self, queries: &[WordQuery<'a>]) -> Result<Vec<&'a str>> {
        let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
        let mut words = Vec::new();
        for (query_idx, query) in queries.iter().enumerate() {
            let fault = |error| in_batch(query_idx, error);
            check_doc_id(self.corpus, query.doc_id).map_err(fault)?;
            let word = match numbers.get(query.word) {
                Some(&number) => number,
                None => {
                    check_word(self.corpus.profile(), query.word).map_err(fault)?;
                    let number = words.len() as u32;
                    words.push(query.word);
                    numbers.insert(query.word, number);
                    number
                }
            };
            let mut start = 0u64;
            let mut parts = self.corpus.doc_parts(query.doc_id).peekable();
            while let Some((segment_idx, doc)) = parts.next() {
                let (segment, doc) = (segment_idx as u32, doc as u32);
                self.parts.push(Part { segment, doc, word, start });
                if parts.peek().is_some() {
                    let len = self.corpus.segments()[segment_idx].dag.doc_len_bytes(doc as usize);
                    start = start.checked_add(len).ok_or_else(|| fault(too_long()))?;
                }
            }
            self.ends.push(self.parts.len() as u32);
        }
        match u32::try_from(self.parts.len()) {
            Ok(_) => Ok(words),
            Err(_) => Err(Error::Capacity {
                what: "queries of a batch",
                requested: self.parts.len() as u64,
                limit: u64::from(u32::MAX),
                knob: "the number of batches",
            }),
        }
    }

    /// Moves parts that are cheaper to read from `by_word` to `by_doc`.
    fn choose(&mut self) {
        let is_same_word = |a: &Key, b: &Key| (a.0, a.1) == (b.0, b.1);
        let mut shares = Vec::with_capacity(self.by_word.len());
        for group in self.by_word.chunk_by(is_same_word) {
            let (segment, word, ..) = group[0];
            let dag = &self.corpus.segments()[segment as usize].dag;
            let places = dag.weights()[word as usize].min(dag.grammar().symbols.len() as u64);
            let share = places * BYTES_PER_PLACE / group.len() as u64;
            let with_share =
                |&(segment, word, doc, part_idx): &Key| ((segment, doc, word, part_idx), share);
            shares.extend(group.iter().map(with_share));
        }
        shares.par_sort_unstable();
        for group in shares.chunk_by(|a, b| (a.0.0, a.0.1) == (b.0.0, b.0.1)) {
            let (segment, doc, ..) = group[0].0;
            let dag = &self.corpus.segments()[segment as usize].dag;
            let reading = dag.doc_len_bytes(doc as usize).saturating_add(DOC_BYTES);
            if group.iter().map(|&(_, share)| share).sum::<u64>() > reading {
                self.by_doc.extend(group.iter().map(|&(key, _)| key));
            }
        }
        let mut is_read = vec![false; self.parts.len()];
        self.by_doc.iter().for_each(|key| is_read[key.3 as usize] = true);
        self.by_word.retain(|key| !is_read[key.3 as usize]);
    }

    /// Indexes of the parts of each query.
    fn parts_by_query(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| start as usize..end as usize)
    }

    /// Answers of the parts whose word occurs in their segment, in no order.
    fn answers(&self, asking: &Asking) -> Result<Vec<(u32, Answer)>> {
        let is_same_group = |a: &Key, b: &Key| (a.0, a.1) == (b.0, b.1);
        let words: Vec<&[Key]> = self.by_word.chunk_by(is_same_group).collect();
        let docs: Vec<&[Key]> = self.by_doc.chunk_by(is_same_group).collect();
        let segment = |group: &[Key]| &*self.corpus.segments()[group[0].0 as usize];
        let by_word = words.par_iter().with_min_len(MIN_GROUPS);
        let by_word = by_word.map(|group| asking.answer_word(segment(group), group));
        let by_doc = docs.par_iter().with_min_len(MIN_GROUPS);
        let by_doc = by_doc.map(|group| asking.answer_doc(segment(group), group));
        let answers: Result<Vec<Vec<_>>> = by_word.chain(by_doc).collect();
        Ok(answers?.into_iter().flatten().collect())
    }
}

/// What is asked of each part: a number, or offsets.
struct Asking {
    /// Most offsets of all answers together; `None` where only numbers are asked for.
    max_hits: Option<u64>,
    num_hits: AtomicU64,
}

/// What is known of a part.
#[derive(Debug, Clone, Default)]
struct Answer {
    count: u64,
    offsets: Vec<u64>,
}

impl Asking {
    fn new(max_hits: Option<u64>) -> Self {
        Self { max_hits, num_hits: AtomicU64::new(0) }
    }

    /// Answers for the documents of `group`, all of which ask for one word.
    fn answer_word(&self, segment: &Segment, group: &[Key]) -> Result<Vec<(u32, Answer)>> {
        let word = group[0].1;
        let mut answers = vec![Answer::default(); group.len()];
        if segment.dag.weights()[word as usize] <= MAX_RARE_WEIGHT {
            let range = |key: &Key| segment.dag.doc_range(key.2 as usize);
            let ranges: Vec<Range<usize>> = group.iter().map(range).collect();
            let mut places_left = MAX_PLACES;
            let note = |idx: usize, offset| self.note(&mut answers[idx], offset);
            if climb(segment, &ranges, word, &mut places_left, note) {
                answers.iter_mut().for_each(|answer| answer.offsets.sort_unstable());
                return self.numbered(group, answers);
            }
            answers.fill(Answer::default());
        }
        let mut docs = DocSet::none(segment.dag.grammar().num_docs());
        for key in group {
            docs.insert(key.2 as usize);
        }
        let words = [WordSet::from_ids(&[word])];
        let item = Item::new(segment, &words, SearchOptions::default().canceller());
        let place = |doc: u32| group.partition_point(|key| key.2 < doc);
        if self.max_hits.is_none() {
            for (doc, count) in item.count_by_doc(Some(&docs))? {
                answers[place(doc)].count = count;
            }
            return self.numbered(group, answers);
        }
        let mut idx = 0;
        for (doc, found) in item.stream(Some(&docs))? {
            if group[idx].2 != doc {
                idx = place(doc);
            }
            self.note(&mut answers[idx], found.byte_offset);
            if answers[idx].count % HITS_PER_CHECK == 0 {
                self.check()?;
            }
        }
        self.numbered(group, answers)
    }

    /// Answers for the words of `group`, all of which are asked of one document.
    fn answer_doc(&self, segment: &Segment, group: &[Key]) -> Result<Vec<(u32, Answer)>> {
        let words: Vec<u32> = group.iter().map(|key| key.2).collect();
        let mut answers = vec![Answer::default(); group.len()];
        let mut interrupt = SearchOptions::default().canceller().interrupt();
        scan_doc_words(segment, group[0].1 as usize, &words, &mut interrupt, |idx, offset| {
            self.note(&mut answers[idx], offset);
        })?;
        self.numbered(group, answers)
    }

    /// Adds an occurrence. Offsets beyond the limit are counted, and not kept.
    #[inline]
    fn note(&self, answer: &mut Answer, offset: u64) {
        answer.count += 1;
        let Some(max_hits) = self.max_hits else { return };
        if answer.count.is_multiple_of(HITS_PER_CHECK) {
            self.num_hits.fetch_add(HITS_PER_CHECK, Ordering::Relaxed);
        }
        if answer.count <= max_hits {
            answer.offsets.push(offset);
        }
    }

    /// Refuses more offsets than allowed.
    fn check(&self) -> Result<()> {
        let max_hits = self.max_hits.unwrap_or(u64::MAX);
        check_num_hits(self.num_hits.load(Ordering::Relaxed), max_hits)
    }

    /// The answers with the parts they are of.
    fn numbered(&self, group: &[Key], answers: Vec<Answer>) -> Result<Vec<(u32, Answer)>> {
        if self.max_hits.is_some() {
            let rest = answers.iter().map(|answer| answer.count % HITS_PER_CHECK).sum();
            self.num_hits.fetch_add(rest, Ordering::Relaxed);
            self.check()?;
        }
        Ok(group.iter().map(|key| key.3).zip(answers).collect())
    }
}
