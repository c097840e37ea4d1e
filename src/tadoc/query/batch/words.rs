//! Counts and offsets of words in documents, for many queries at once.
//!
//! ```text
//! queries   (doc 7, power) (doc 2, loss) (doc 7, loss) (doc 9, power)
//! parts     cut documents have several; each word is looked up once a segment
//! groups    by word: power {7, 9}   climbed from once, for all documents that ask
//!           by document: 2 {loss} 7 {loss}   read once, for all words that are asked of it
//! ```
//!
//! `plan` creates parts and groups. A query is put into the group in which it is cheaper. A place
//! of a word costs as much as reading some bytes of text, and the queries of the word share its
//! places. Rare words are climbed from path by path, frequent words as in
//! [`crate::query::search()`]. Groups are answered on all cores. In segments that keep the words of
//! documents, counts are looked up first, and words that a document does not contain are not
//! searched for. Memory: some 60 bytes a query, and the answers. Equal queries are answered once.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::error::Result;
use crate::ids::DocId;
use crate::segment::{Corpus, Segment};

use crate::query::batch::offset_lists::OffsetLists;
use crate::query::batch::plan::{DocKey, MIN_GROUPS, WordKey, WordPlan, WordQuery, WordTask};
use crate::query::matching::climb::climb;
use crate::query::matching::doc_set::DocSet;
use crate::query::matching::occurrences::Item;
use crate::query::matching::scan::scan_doc_words;
use crate::query::matching::way::{Question, Way};
use crate::query::matching::word_set::WordSet;
use crate::query::options::SearchOptions;
use crate::query::search::check_num_hits;

/// Number of hits of an answer between two checks of the limit.
const HITS_PER_CHECK: u64 = 1 << 12;

/// Returns the number of occurrences of each word in its document, in the order of `queries`. Runs
/// on all cores.
///
/// # Errors
/// [`Error::InBatch`](crate::Error::InBatch) for the first query whose document does not exist, or
/// whose word is not one word of the tokenizer of the corpus.
pub fn count_batch(corpus: &Corpus, queries: &[WordQuery<'_>]) -> Result<Vec<u64>> {
    WordPlan::new(corpus, queries, WordTask::Count)?.counts()
}

/// Returns the byte offsets of each word in its document, in ascending order, in the order of
/// `queries`; at most `max_hits` in total. Runs on all cores.
///
/// # Errors
/// As [`count_batch`]; [`Error::Capacity`](crate::Error::Capacity) for more offsets than allowed.
pub fn search_batch(
    corpus: &Corpus,
    queries: &[WordQuery<'_>],
    max_hits: u64,
) -> Result<OffsetLists> {
    WordPlan::new(corpus, queries, WordTask::Find)?.lists(max_hits)
}

impl WordPlan<'_> {
    /// Returns the answers of [`count_batch`].
    ///
    /// # Errors
    /// [`Error::InBatch`](crate::Error::InBatch) for the first count that has more than 64 bits.
    fn counts(&self) -> Result<Vec<u64>> {
        let mut of_parts = vec![0u64; self.num_parts()];
        for (part_idx, answer) in self.answers(&Asking::new(None))? {
            of_parts[part_idx as usize] = answer.count;
        }
        self.join_counts(&of_parts)
    }

    /// Returns the answers of [`search_batch`].
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) for more offsets than allowed.
    fn lists(&self, max_hits: u64) -> Result<OffsetLists> {
        let answers = self.answers(&Asking::new(Some(max_hits)))?;
        let mut of_parts: Vec<&[u64]> = vec![&[]; self.num_parts()];
        for (part_idx, answer) in &answers {
            of_parts[*part_idx as usize] = &answer.offsets;
        }
        self.join_lists(&of_parts, max_hits)
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
    fn numbered(
        &self,
        part_idxs: impl Iterator<Item = u32>,
        answers: Vec<Answer>,
    ) -> Result<Vec<(u32, Answer)>> {
        if self.max_hits.is_some() {
            let rest = answers.iter().map(|answer| answer.count % HITS_PER_CHECK).sum();
            self.num_hits.fetch_add(rest, Ordering::Relaxed);
            self.check()?;
        }
        Ok(part_idxs.zip(answers).collect())
    }
}
