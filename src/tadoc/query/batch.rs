//! Counts and offsets of words in documents, for many queries at once.
//!
//! ```text
//! queries   (doc 7, power) (doc 2, loss) (doc 7, loss) (doc 9, power)
//! parts     cut documents have several; each word is looked up once a segment
//! groups    by word: power {7, 9}   climbed from once, for all documents that ask
//!           by document: 2 {loss} 7 {loss}   read once, for all words that are asked of it
//! ```
//!
//! A query is put into the group in which it is cheaper. A place of a word costs as much as reading some bytes of text,
//! and the queries of the word share its places. Rare words are climbed from path by path, frequent words as in
//! [`crate::query::search()`]. Groups are answered on all cores. In segments that keep the words of documents, counts
//! are looked up first, and words that a document does not contain are not searched for. Memory: some 60 bytes a query,
//! and the answers. Equal queries are answered once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::ids::{DocId, WordId};
use crate::read::extract::{in_batch, slice_for};
use crate::read::questions::misshapen;
use crate::read::{Answers, Ask, DocWord, Questions, too_long};
use crate::segment::{Corpus, Segment};
use crate::text::{TokenizerProfile, for_each_token};

use super::matching::climb::{MANY_POSITIONS, climb};
use super::matching::occurrences::Item;
use super::matching::sets::{DocSet, WordSet};
use super::matching::{BYTES_PER_POSITION, DOC_BYTES, Question, Way, scan_doc_words};
use super::{SearchOptions, check_num_hits};

/// Number of hits of an answer between two checks of the limit.
const HITS_PER_CHECK: u64 = 1 << 12;

/// Returns the number of occurrences of each word in its document, in the order of `queries`. Runs
/// on all cores.
///
/// # Errors
/// [`Error::InBatch`] for the first query whose document does not exist, or
/// whose word is not one word of the tokenizer of the corpus.
pub fn count_batch(corpus: &Corpus, queries: &[WordQuery<'_>]) -> Result<Vec<u64>> {
    WordPlan::new(corpus, queries, WordTask::Count)?.counts()
}

/// Returns the byte offsets of each word in its document, in ascending order, in the order of
/// `queries`; at most `max_hits` in total. Runs on all cores.
///
/// # Errors
/// As [`count_batch`]; [`Error::Capacity`] for more offsets than allowed.
pub fn search_batch(corpus: &Corpus, queries: &[WordQuery<'_>], max_hits: u64) -> Result<OffsetLists> {
    WordPlan::new(corpus, queries, WordTask::Find)?.lists(max_hits)
}

/// Returns the counts of [`count_batch`]. `ask` counts what no segment knows.
///
/// # Errors
/// As [`count_batch`]; the errors of `ask`, and [`Error::External`] for answers of another shape.
pub fn count_batch_by(corpus: &Corpus, queries: &[WordQuery<'_>], ask: &Ask<'_>) -> Result<Vec<u64>> {
    let mut plan = WordPlan::number(corpus, queries)?;
    plan.look_up(WordTask::Count);
    let mut part_counts = vec![0u64; plan.num_parts()];
    let mut answers = ask(plan.questions(Questions::Counts))?;
    for keys in plan.by_segment() {
        let Some(Answers::Counts(counts)) = answers.remove(&(keys[0].0 as usize)) else {
            return Err(misshapen("counts"));
        };
        if counts.len() != keys.len() {
            return Err(misshapen("a count for each word"));
        }
        keys.iter().zip(counts).for_each(|(key, count)| part_counts[key.3 as usize] = count);
    }
    plan.join_counts(&part_counts)
}

/// Returns the offsets of [`search_batch`]. `ask` finds them.
///
/// # Errors
/// As [`search_batch`]; the errors of `ask`, and [`Error::External`] for answers of another shape.
pub fn search_batch_by(
    corpus: &Corpus,
    queries: &[WordQuery<'_>],
    max_hits: u64,
    ask: &Ask<'_>,
) -> Result<OffsetLists> {
    let mut plan = WordPlan::number(corpus, queries)?;
    plan.look_up(WordTask::Find);
    let answers = ask(plan.questions(|words| Questions::Places { words, max_places: max_hits }))?;
    let mut part_offsets: Vec<&[u64]> = vec![&[]; plan.num_parts()];
    for keys in plan.by_segment() {
        let Some(Answers::Places { offsets, ends }) = answers.get(&(keys[0].0 as usize)) else {
            return Err(misshapen("places"));
        };
        if ends.len() != keys.len() {
            return Err(misshapen("the places of each word"));
        }
        for (at, key) in keys.iter().enumerate() {
            let list = slice_for(offsets, ends, at);
            part_offsets[key.3 as usize] = list.ok_or_else(|| misshapen("lists that ascend"))?;
        }
    }
    plan.join_lists(&part_offsets, max_hits)
}

impl WordPlan<'_> {
    /// Returns the questions of all parts whose word occurs in their segment, as `kind` makes them.
    fn questions(&self, kind: impl Fn(Vec<DocWord>) -> Questions) -> BTreeMap<usize, Questions> {
        let word = |key: &WordKey| DocWord { doc: key.2, word: key.1 };
        let segment = |keys: &[WordKey]| (keys[0].0 as usize, kind(keys.iter().map(word).collect()));
        self.by_segment().map(segment).collect()
    }

    /// Returns the parts of `by_word`, which has them in this order, for each segment.
    fn by_segment(&self) -> impl Iterator<Item = &[WordKey]> {
        self.by_word.chunk_by(|a, b| a.0 == b.0)
    }

    /// Returns the answers of [`count_batch`].
    ///
    /// # Errors
    /// [`Error::InBatch`] for the first count that has more than 64 bits.
    fn counts(&self) -> Result<Vec<u64>> {
        let mut part_counts = vec![0u64; self.num_parts()];
        for (part_idx, answer) in self.answers(&Asking::new(None))? {
            part_counts[part_idx as usize] = answer.count;
        }
        self.join_counts(&part_counts)
    }

    /// Returns the answers of [`search_batch`].
    ///
    /// # Errors
    /// [`Error::Capacity`] for more offsets than allowed.
    fn lists(&self, max_hits: u64) -> Result<OffsetLists> {
        let answers = self.answers(&Asking::new(Some(max_hits)))?;
        let mut part_offsets: Vec<&[u64]> = vec![&[]; self.num_parts()];
        for (part_idx, answer) in &answers {
            part_offsets[*part_idx as usize] = &answer.offsets;
        }
        self.join_lists(&part_offsets, max_hits)
    }

    /// Returns the answers of the parts whose word occurs in their segment, in no order.
    fn answers(&self, asking: &Asking) -> Result<Vec<(u32, Answer)>> {
        let words = self.by_word.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
        let docs = self.by_doc.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
        let (words, docs): (Vec<&[WordKey]>, Vec<&[DocKey]>) = (words.collect(), docs.collect());
        let segment = |segment_idx: u32| &*self.corpus.segments()[segment_idx as usize];
        let by_word = words.par_iter().with_min_len(MIN_GROUPS);
        let by_word = by_word.map(|group| asking.answer_word(segment(group[0].0), group));
        let by_doc = docs.par_iter().with_min_len(MIN_GROUPS);
        let by_doc = by_doc.map(|group| asking.answer_doc(segment(group[0].0), group));
        let answers: Result<Vec<Vec<_>>> = by_word.chain(by_doc).collect();
        Ok(answers?.into_iter().flatten().collect())
    }
}

/// Question that is asked of each part: the count, or the offsets.
struct Asking {
    /// Most offsets of all answers together; `None` if only counts are asked for.
    max_hits: Option<u64>,
    num_hits: AtomicU64,
}

/// Answer of a part.
#[derive(Debug, Clone, Default)]
struct Answer {
    count: u64,
    offsets: Vec<u64>,
}

impl Asking {
    fn new(max_hits: Option<u64>) -> Self {
        Self { max_hits, num_hits: AtomicU64::new(0) }
    }

    /// Answers the documents of `group`, all of which ask for one word.
    fn answer_word(&self, segment: &Segment, group: &[WordKey]) -> Result<Vec<(u32, Answer)>> {
        let word = group[0].1;
        let mut answers = vec![Answer::default(); group.len()];
        let num_occurrences = segment.weights_or_derive()[word.index()];
        let way = Question::BatchWord { num_occurrences }.way(None, []);
        if let Way::Climb { max_positions } = way {
            let range = |key: &WordKey| segment.dag.doc_range(key.2);
            let ranges: Vec<Range<usize>> = group.iter().map(range).collect();
            let mut positions_left = max_positions;
            let note = |idx: usize, offset| self.note(&mut answers[idx], offset);
            let is_whole = match self.max_hits {
                None => climb::<false>(segment, &ranges, word, &mut positions_left, note),
                Some(_) => climb::<true>(segment, &ranges, word, &mut positions_left, note),
            };
            if is_whole {
                answers.iter_mut().for_each(|answer| answer.offsets.sort_unstable());
                return self.numbered(group.iter().map(|key| key.3), answers);
            }
            answers.fill(Answer::default());
        }
        let mut docs = DocSet::none(segment.dag.grammar().num_docs());
        docs.extend(group.iter().map(|key| key.2));
        let words = [WordSet::from_ids(&[word.into()])];
        let item = Item::new(segment, &words, SearchOptions::default().canceller());
        let place = |doc: DocId| group.partition_point(|key| key.2 < doc);
        if self.max_hits.is_none() {
            for (doc, count) in item.count_by_doc(Some(&docs))? {
                answers[place(doc)].count = count;
            }
            return self.numbered(group.iter().map(|key| key.3), answers);
        }
        let mut idx = 0;
        for (doc, found) in item.stream(Some(&Arc::new(docs)))? {
            if group[idx].2 != doc {
                idx = place(doc);
            }
            self.note(&mut answers[idx], found.byte_offset);
            if answers[idx].count % HITS_PER_CHECK == 0 {
                self.check()?;
            }
        }
        self.numbered(group.iter().map(|key| key.3), answers)
    }

    /// Answers the words of `group`, all of which are asked of one document.
    fn answer_doc(&self, segment: &Segment, group: &[DocKey]) -> Result<Vec<(u32, Answer)>> {
        let words: Vec<u32> = group.iter().map(|key| key.2.into()).collect();
        let mut answers = vec![Answer::default(); group.len()];
        let mut interrupt = SearchOptions::default().canceller().interrupt();
        scan_doc_words(segment, group[0].1, &words, &mut interrupt, |idx, offset| {
            self.note(&mut answers[idx], offset);
        })?;
        self.numbered(group.iter().map(|key| key.3), answers)
    }

    /// Adds an occurrence. Offsets beyond the limit are counted but not kept.
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

    /// Checks that there are no more offsets than allowed.
    fn check(&self) -> Result<()> {
        let max_hits = self.max_hits.unwrap_or(u64::MAX);
        check_num_hits(self.num_hits.load(Ordering::Relaxed), max_hits)
    }

    /// Returns the answers with the index of the part of each, `part_idxs`.
    fn numbered(&self, part_idxs: impl Iterator<Item = u32>, answers: Vec<Answer>) -> Result<Vec<(u32, Answer)>> {
        if self.max_hits.is_some() {
            let rest = answers.iter().map(|answer| answer.count % HITS_PER_CHECK).sum();
            self.num_hits.fetch_add(rest, Ordering::Relaxed);
            self.check()?;
        }
        Ok(part_idxs.zip(answers).collect())
    }
}

/// Number of words that one task looks up.
const MIN_LOOK_UPS: usize = 256;
/// Number of groups of one task.
pub(in crate::query) const MIN_GROUPS: usize = 16;

/// A word to count or to search for in one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordQuery<'a> {
    /// Id of the document.
    pub doc_id: u64,
    /// The word, as it stands in the text.
    pub word: &'a str,
}

/// A query in one part of its document.
#[derive(Debug, Clone, Copy)]
struct DocQuery {
    segment: u32,
    doc: DocId,
    /// Index of the word among the distinct words of the batch.
    word: u32,
    /// Number of bytes of the document before the part.
    start: u64,
}

/// Position of a part in the order by word: segment, word, document and index of the part.
pub(in crate::query) type WordKey = (u32, WordId, DocId, u32);
/// Position of a part in the order by document: segment, document, word and index of the part.
pub(in crate::query) type DocKey = (u32, DocId, WordId, u32);
/// Position of a part before its word is looked up: segment, index of the word among the distinct
/// words of the batch, document and index of the part.
type PartKey = (u32, u32, DocId, u32);

/// Question that a batch asks about all words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) enum WordTask {
    /// The number of occurrences.
    Count,
    /// The offsets of the occurrences.
    Find,
}

/// Queries as parts, and the groups in which they are answered.
#[derive(Debug)]
pub(in crate::query) struct WordPlan<'a> {
    pub(in crate::query) corpus: &'a Corpus,
    /// Parts of one query after the other.
    parts: Vec<DocQuery>,
    /// End of the parts of each query.
    ends: Vec<u32>,
    /// Index of the part whose answer each part uses: equal parts are answered once.
    answered: Vec<u32>,
    /// Counts that were looked up, by part; 0 for other parts. Empty if there are none.
    known_counts: Vec<u64>,
    /// Parts that are climbed to from their word.
    pub(in crate::query) by_word: Vec<WordKey>,
    /// Parts whose document is read.
    pub(in crate::query) by_doc: Vec<DocKey>,
}

/// Checks that `word` is one word; anything else would never be found.
///
/// # Errors
/// [`Error::InvalidArgument`] named `word` if it is not.
pub(crate) fn check_word(profile: TokenizerProfile, word: &str) -> Result<()> {
    let mut num_tokens = 0;
    let mut is_word = false;
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

impl<'a> WordPlan<'a> {
    /// Looks up the words of `queries` and groups their parts.
    ///
    /// # Errors
    /// As [`count_batch`].
    pub(in crate::query) fn new(corpus: &'a Corpus, queries: &[WordQuery<'a>], task: WordTask) -> Result<Self> {
        let mut plan = Self::number(corpus, queries)?;
        plan.note_effort();
        plan.look_up(task);
        plan.choose();
        Ok(plan)
    }

    /// Looks up the words of `queries`. All parts whose word occurs in their segment are in `by_word`, in order.
    ///
    /// # Errors
    /// As [`count_batch`].
    fn number(corpus: &'a Corpus, queries: &[WordQuery<'a>]) -> Result<Self> {
        let mut plan = Self {
            corpus,
            parts: Vec::with_capacity(queries.len()),
            ends: Vec::with_capacity(queries.len()),
            answered: Vec::new(),
            known_counts: Vec::new(),
            by_word: Vec::new(),
            by_doc: Vec::new(),
        };
        let words = plan.number_parts(queries)?;
        let key = |(part, part_idx): (&DocQuery, u32)| (part.segment, part.word, part.doc, part_idx);
        let mut keys: Vec<PartKey> = plan.parts.iter().zip(0..).map(key).collect();
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
        let groups: Vec<&[PartKey]> = keys.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).collect();
        let id_of = |group: &&[PartKey]| {
            let (segment, word, ..) = group[0];
            let dictionary = &corpus.segments()[segment as usize].dictionary;
            dictionary.word_id(words[word as usize].as_bytes())
        };
        let ids: Vec<Option<WordId>> = groups.par_iter().with_min_len(MIN_GROUPS).map(id_of).collect();
        let found = groups.into_iter().zip(ids).filter_map(|(group, id)| Some((group, id?)));
        for (group, id) in found {
            let with_id = |&(segment, _, doc, part_idx): &PartKey| (segment, id, doc, part_idx);
            plan.by_word.extend(group.iter().map(with_id));
        }
        Ok(plan)
    }

    /// Returns the number of parts of all queries.
    pub(in crate::query) fn num_parts(&self) -> usize {
        self.parts.len()
    }

    /// Returns the counts of all queries; `part_counts` are the answers of the parts.
    ///
    /// # Errors
    /// As [`counts`](Self::counts).
    pub(in crate::query) fn join_counts(&self, part_counts: &[u64]) -> Result<Vec<u64>> {
        let count = |part_idx: usize| {
            let answered = self.answered[part_idx] as usize;
            part_counts[answered] + self.known_counts.get(answered).unwrap_or(&0)
        };
        let sum = |(query_idx, mut parts): (usize, Range<usize>)| {
            let sum = parts.try_fold(0u64, |sum, part_idx| sum.checked_add(count(part_idx)));
            sum.ok_or_else(|| in_batch(query_idx, too_long()))
        };
        self.parts_by_query().enumerate().map(sum).collect()
    }

    /// Returns the lists of all queries; `part_offsets` are the offsets in the parts.
    ///
    /// # Errors
    /// As [`lists`](Self::lists).
    pub(in crate::query) fn join_lists(&self, part_offsets: &[&[u64]], max_hits: u64) -> Result<OffsetLists> {
        let for_part = |part_idx: usize| part_offsets[self.answered[part_idx] as usize];
        // Equal queries are answered once, but each is listed.
        let lens = (0..self.parts.len()).map(|part_idx| for_part(part_idx).len() as u64);
        let num_hits = lens.fold(0, u64::saturating_add);
        check_num_hits(num_hits, max_hits)?;
        let mut offsets = Vec::with_capacity(num_hits as usize);
        let mut ends = Vec::with_capacity(self.ends.len());
        for parts in self.parts_by_query() {
            for part_idx in parts {
                let start = self.parts[part_idx].start;
                offsets.extend(for_part(part_idx).iter().map(|offset| start + offset));
            }
            ends.push(offsets.len());
        }
        Ok(OffsetLists::new(offsets, ends))
    }

    /// Creates the parts of all queries. Returns their distinct words.
    fn number_parts(&mut self, queries: &[WordQuery<'a>]) -> Result<Vec<&'a str>> {
        let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
        let mut words = Vec::new();
        for (query_idx, query) in queries.iter().enumerate() {
            let fault = |error| in_batch(query_idx, error);
            self.corpus.check_doc_id(query.doc_id).map_err(fault)?;
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
                let segment = segment_idx as u32;
                self.parts.push(DocQuery { segment, doc, word, start });
                if parts.peek().is_some() {
                    let len = self.corpus.segments()[segment_idx].doc_length_or_derive(doc).len_bytes;
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

    /// Reports to the segments the work of this batch without the words of documents.
    fn note_effort(&self) {
        for group in self.by_word.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (segment, word, ..) = group[0];
            let reading = group.iter().map(|key| self.reading_bytes(segment, key.2));
            let reading = reading.fold(0, u64::saturating_add) / BYTES_PER_POSITION;
            let num_positions = self.num_positions(segment, word).min(reading);
            if num_positions >= MANY_POSITIONS {
                self.segment(segment).note_words_read(num_positions);
            }
        }
    }

    /// Removes the parts that segments which keep the words of documents can answer: counts, or
    /// that a word does not occur.
    fn look_up(&mut self, task: WordTask) {
        let is_same_segment = |a: &WordKey, b: &WordKey| a.0 == b.0;
        let mut left = Vec::new();
        for keys in self.by_word.chunk_by(is_same_segment) {
            let segment = self.segment(keys[0].0);
            let doc_words = segment.doc_words_or_derive_if_worth();
            let question = Question::BatchDoc { climb_bytes: 0, keeps_words: doc_words.is_some() };
            let (Way::KeptWords, Some(doc_words)) = (question.way(None, []), doc_words) else {
                left.extend_from_slice(keys);
                continue;
            };
            let keys = keys.par_iter().with_min_len(MIN_LOOK_UPS);
            let counts: Vec<(WordKey, u64)> = keys.map(|&key| (key, doc_words.count(key.2, key.1))).collect();
            if task == WordTask::Find {
                left.extend(counts.iter().filter(|(_, count)| *count > 0).map(|(key, _)| key));
                continue;
            }
            self.known_counts.resize(self.parts.len(), 0);
            for ((.., part_idx), count) in counts {
                self.known_counts[part_idx as usize] = count;
            }
        }
        self.by_word = left;
    }

    /// Moves parts that are cheaper to read from `by_word` to `by_doc`.
    fn choose(&mut self) {
        let is_same_word = |a: &WordKey, b: &WordKey| (a.0, a.1) == (b.0, b.1);
        let mut shares: Vec<(DocKey, u64)> = Vec::with_capacity(self.by_word.len());
        for group in self.by_word.chunk_by(is_same_word) {
            let (segment, word, ..) = group[0];
            let share = self.num_positions(segment, word) * BYTES_PER_POSITION / group.len() as u64;
            let with_share = |&(segment, word, doc, part_idx): &WordKey| ((segment, doc, word, part_idx), share);
            shares.extend(group.iter().map(with_share));
        }
        shares.par_sort_unstable();
        for group in shares.chunk_by(|a, b| (a.0.0, a.0.1) == (b.0.0, b.0.1)) {
            let (segment, doc, ..) = group[0].0;
            let climb_bytes = group.iter().map(|&(_, share)| share).sum();
            let question = Question::BatchDoc { climb_bytes, keeps_words: false };
            let doc_bytes = self.segment(segment).doc_length_or_derive(doc).len_bytes;
            if question.way(None, [doc_bytes]) == Way::Scan {
                self.by_doc.extend(group.iter().map(|&(key, _)| key));
            }
        }
        let mut is_read = vec![false; self.parts.len()];
        self.by_doc.iter().for_each(|key| is_read[key.3 as usize] = true);
        self.by_word.retain(|key| !is_read[key.3 as usize]);
    }

    /// Returns the number of positions of one climb from `word`.
    fn num_positions(&self, segment: u32, word: WordId) -> u64 {
        let segment = self.segment(segment);
        segment.weights_or_derive()[word.index()].min(segment.dag.grammar().symbols.len() as u64)
    }

    /// Returns the cost of reading `doc`, in bytes of text.
    fn reading_bytes(&self, segment: u32, doc: DocId) -> u64 {
        let sums = self.segment(segment).prefix_sums_or_derive();
        sums.doc_len_bytes(doc).saturating_add(DOC_BYTES)
    }

    fn segment(&self, segment_idx: u32) -> &Segment {
        &self.corpus.segments()[segment_idx as usize]
    }

    /// Returns the indexes of the parts of each query.
    fn parts_by_query(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| start as usize..end as usize)
    }
}

/// The byte offsets that a batch of searches found, one list for each query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffsetLists {
    offsets: Vec<u64>,
    ends: Vec<usize>,
}

impl OffsetLists {
    /// Creates lists from `offsets`, cut at `ends`. The ends ascend, and the last is the length.
    pub(in crate::query) fn new(offsets: Vec<u64>, ends: Vec<usize>) -> Self {
        Self { offsets, ends }
    }

    /// Joins `lists`, of at most `max_hits` offsets in total.
    ///
    /// # Errors
    /// [`Error::Capacity`] for more offsets than allowed.
    pub fn joined(lists: &[&[u64]], max_hits: u64) -> Result<Self> {
        let mut ends = Vec::with_capacity(lists.len());
        let mut num_hits = 0;
        for list in lists {
            num_hits += list.len();
            check_num_hits(num_hits as u64, max_hits)?;
            ends.push(num_hits);
        }
        Ok(Self { offsets: lists.concat(), ends })
    }

    /// Returns the number of lists.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there is no list.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the offsets of query `query_idx`, in ascending order, if there is such a query.
    pub fn get(&self, query_idx: usize) -> Option<&[u64]> {
        slice_for(&self.offsets, &self.ends, query_idx)
    }

    /// Returns all offsets and the end of each list.
    pub fn into_parts(self) -> (Vec<u64>, Vec<usize>) {
        (self.offsets, self.ends)
    }
}
