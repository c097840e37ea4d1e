//! Plan of a batch of words in documents: parts, look-ups and groups.
//!
//! `words` has the drawing and answers the parts. The answers of the parts are joined here.

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::ids::{DocId, WordId};
use crate::segment::{Corpus, Segment};
use crate::text::{TokenizerProfile, for_each_token};

use crate::query::batch::offset_lists::OffsetLists;
use crate::query::matching::climb::MANY_POSITIONS;
use crate::query::matching::way::{BYTES_PER_POSITION, DOC_BYTES, Question, Way};
use crate::query::search::check_num_hits;
use crate::read::batch::in_batch;
use crate::read::decode::too_long;

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

impl<'a> WordPlan<'a> {
    /// Looks up the words of `queries` and groups their parts.
    ///
    /// # Errors
    /// As [`count_batch`](crate::query::count_batch).
    pub(in crate::query) fn new(
        corpus: &'a Corpus,
        queries: &[WordQuery<'a>],
        task: WordTask,
    ) -> Result<Self> {
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
        let key =
            |(part, part_idx): (&DocQuery, u32)| (part.segment, part.word, part.doc, part_idx);
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
        let ids: Vec<Option<WordId>> =
            groups.par_iter().with_min_len(MIN_GROUPS).map(id_of).collect();
        let found = groups.into_iter().zip(ids).filter_map(|(group, id)| Some((group, id?)));
        for (group, id) in found {
            let with_id = |&(segment, _, doc, part_idx): &PartKey| (segment, id, doc, part_idx);
            plan.by_word.extend(group.iter().map(with_id));
        }
        plan.note_effort();
        plan.look_up(task);
        plan.choose();
        Ok(plan)
    }

    /// Returns the number of parts of all queries.
    pub(in crate::query) fn num_parts(&self) -> usize {
        self.parts.len()
    }

    /// Returns the counts of all queries; `of_parts` are the answers of the parts.
    ///
    /// # Errors
    /// As [`counts`](Self::counts).
    pub(in crate::query) fn join_counts(&self, of_parts: &[u64]) -> Result<Vec<u64>> {
        let count = |part_idx: usize| {
            let answered = self.answered[part_idx] as usize;
            of_parts[answered] + self.known_counts.get(answered).unwrap_or(&0)
        };
        let sum = |(query_idx, mut parts): (usize, Range<usize>)| {
            let sum = parts.try_fold(0u64, |sum, part_idx| sum.checked_add(count(part_idx)));
            sum.ok_or_else(|| in_batch(query_idx, too_long()))
        };
        self.parts_by_query().enumerate().map(sum).collect()
    }

    /// Returns the lists of all queries; `of_parts` are the offsets in the parts.
    ///
    /// # Errors
    /// As [`lists`](Self::lists).
    pub(in crate::query) fn join_lists(
        &self,
        of_parts: &[&[u64]],
        max_hits: u64,
    ) -> Result<OffsetLists> {
        let of_part = |part_idx: usize| of_parts[self.answered[part_idx] as usize];
        // Equal queries are answered once, but each is listed.
        let lens = (0..self.parts.len()).map(|part_idx| of_part(part_idx).len() as u64);
        let num_hits = lens.fold(0, u64::saturating_add);
        check_num_hits(num_hits, max_hits)?;
        let mut offsets = Vec::with_capacity(num_hits as usize);
        let mut ends = Vec::with_capacity(self.ends.len());
        for parts in self.parts_by_query() {
            for part_idx in parts {
                let start = self.parts[part_idx].start;
                offsets.extend(of_part(part_idx).iter().map(|offset| start + offset));
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
                    let len =
                        self.corpus.segments()[segment_idx].doc_length_or_derive(doc).len_bytes;
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
            let counts: Vec<(WordKey, u64)> =
                keys.map(|&key| (key, doc_words.count(key.2, key.1))).collect();
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
            let with_share =
                |&(segment, word, doc, part_idx): &WordKey| ((segment, doc, word, part_idx), share);
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
