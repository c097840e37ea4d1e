//! Token scan: walks over every token of expanded documents, without weights, heads and tails.
//!
//! ```text
//! root      | task 1 ............ | task 2 ..................
//! document  | a b c d e f g h i j   k l m n ...
//!             task 1 looks at the n - 1 words behind its last one, too
//! ```

use std::ops::Range;

use rayon::prelude::*;

use crate::analytics::Vocabulary;
use crate::analytics::word_rows::WordRows;
use crate::analytics::word_walk::WordWalk;
use crate::error::Result;
use crate::ids::DocId;
use crate::interrupt::Canceller;
use crate::segment::Dag;
use crate::segment::dag::{Expansion, RuleTexts, num_words_at};

use super::Sink;
use super::edges::STEP_WORDS;
use super::limit::{Limit, StepLimit, too_many_windows};

/// Minimum number of words of a parallel task.
const TASK_WORDS: u64 = 1 << 17;

/// Data of a walk over tokens.
#[derive(Debug)]
pub(in crate::analytics) struct TokenWalk {
    rows: WordRows,
    /// Texts of rules, by segment.
    texts: Vec<RuleTexts>,
    /// Number of words of a window behind its first.
    reach: usize,
}

impl TokenWalk {
    /// Prepares the walk by expanding small rules. O(G).
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn new(vocabulary: &Vocabulary, reach: usize, canceller: Canceller<'_>) -> Result<Self> {
        let segments = vocabulary.corpus().segments();
        let texts = segments.par_iter().map(|segment| {
            canceller.check()?;
            Ok(RuleTexts::new(&segment.dag))
        });
        let texts = texts.collect::<Result<_>>()?;
        Ok(Self { rows: WordRows::new(vocabulary), texts, reach })
    }

    /// Passes the words of all documents to sinks, in parallel tasks.
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) if there are more words than `limit` allows, and
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn tasks<S: Sink + Send>(
        &self,
        vocabulary: &Vocabulary,
        limit: &Limit<'_>,
        new: impl Fn() -> S + Sync,
    ) -> Result<Vec<S>> {
        limit.canceller().check()?;
        let segments = vocabulary.corpus().segments();
        let lens = segments.iter().map(|segment| segment.dag.len_words(root(&segment.dag)));
        check_num_words(lens.fold(0, u64::saturating_add), limit)?;
        let task_words = TASK_WORDS.max(self.reach as u64);
        // A task expands its words, and an element is not cut.
        let roots = segments.iter().map(|segment| &segment.dag);
        let longest = roots.map(|dag| {
            let elements = dag.grammar().root().iter();
            elements.map(|&element| dag.len_words(element)).max().unwrap_or(0)
        });
        let longest = longest.max().unwrap_or(0);
        if longest > task_words.max(limit.max_met() as u64) {
            return Err(too_many_windows(longest as usize, limit.max_met()));
        }
        let tasks: Vec<(usize, Range<usize>)> = segments
            .iter()
            .enumerate()
            .flat_map(|(at, segment)| {
                cut(&segment.dag, task_words).into_iter().map(move |range| (at, range))
            })
            .collect();
        tasks
            .into_par_iter()
            .map_init(Expansion::default, |expansion, (at, range)| {
                let (mut sink, mut limit_of_task) = (new(), limit.for_task());
                let place = (at, range);
                self.walk(vocabulary, place, (expansion, &mut limit_of_task), &mut sink)?;
                limit.add(sink.num_met())?;
                sink.close();
                Ok(sink)
            })
            .collect()
    }

    /// Passes the words of one document to `sink`.
    ///
    /// # Errors
    /// The errors of [`tasks`](Self::tasks).
    pub fn document(
        &self,
        vocabulary: &Vocabulary,
        doc_id: u64,
        expansion: &mut Expansion,
        sink: &mut impl Sink,
        limit: &Limit<'_>,
    ) -> Result<()> {
        let mut limit_of_doc = limit.for_task();
        sink.begin(1);
        for (at, doc) in vocabulary.corpus().doc_parts(doc_id) {
            let dag = &vocabulary.corpus().segments()[at].dag;
            check_num_words(num_words_at(dag, dag.doc_range(doc)), limit)?;
            let positions = dag.doc_range(doc);
            self.push_all(dag, at, positions, (expansion, &mut limit_of_doc), sink)?;
        }
        Ok(())
    }

    /// Passes the windows that begin at positions `range` of the root of segment `at` to `sink`.
    fn walk(
        &self,
        vocabulary: &Vocabulary,
        (at, range): (usize, Range<usize>),
        (expansion, limit): (&mut Expansion, &mut StepLimit<'_>),
        sink: &mut impl Sink,
    ) -> Result<()> {
        let dag = &vocabulary.corpus().segments()[at].dag;
        let doc_offsets = &dag.grammar().doc_offsets;
        let mut start = range.start;
        let mut doc_end = doc_offsets.partition_point(|&offset| offset as usize <= start);
        while start < range.end {
            let end = doc_offsets[doc_end] as usize;
            let part = start..end.min(range.end);
            sink.begin(1);
            self.push_all(dag, at, part.clone(), (expansion, limit), sink)?;
            let behind = self.behind(vocabulary, at, DocId::from_index(doc_end - 1), part.end..end);
            sink.push_child(&behind, None);
            start = end;
            doc_end += 1;
        }
        Ok(())
    }

    fn push_all(
        &self,
        dag: &Dag,
        at: usize,
        positions: Range<usize>,
        (expansion, limit): (&mut Expansion, &mut StepLimit<'_>),
        sink: &mut impl Sink,
    ) -> Result<()> {
        let rows = self.rows.for_segment(at);
        let words = expansion.expand(dag, &self.texts[at], positions);
        for step in words.chunks(STEP_WORDS / (self.reach + 1) + 1) {
            step.iter().for_each(|&word| sink.push(rows.row(word)));
            limit.check(sink.num_met(), step.len())?;
        }
        Ok(())
    }

    /// Returns the first words of document `doc` of segment `at` from `positions` on, at most
    /// `reach`. Later parts of the document follow.
    fn behind(
        &self,
        vocabulary: &Vocabulary,
        at: usize,
        doc: DocId,
        positions: Range<usize>,
    ) -> Vec<u32> {
        let corpus = vocabulary.corpus();
        let later =
            corpus.doc_parts(corpus.doc_id(at, doc)).skip_while(|&(part_at, _)| part_at <= at);
        let later = later.map(|(at, doc)| (at, corpus.segments()[at].dag.doc_range(doc)));
        let mut words = Vec::new();
        let mut walk = WordWalk::default();
        for (at, positions) in std::iter::once((at, positions)).chain(later) {
            let num_left = self.reach - words.len();
            if num_left == 0 {
                break;
            }
            let rows = self.rows.for_segment(at);
            walk.start(positions);
            let dag = &corpus.segments()[at].dag;
            walk.next_words(dag, num_left, |word| words.push(rows.row(word)));
        }
        words
    }

    /// Returns the memory of the walk in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.rows.memory_bytes() + self.texts.iter().map(RuleTexts::memory_bytes).sum::<usize>()
    }
}

fn root(dag: &Dag) -> u32 {
    dag.num_terminals()
}

fn check_num_words(num_words: u64, limit: &Limit<'_>) -> Result<()> {
    if num_words <= limit.max_words() {
        return Ok(());
    }
    let [requested, most] =
        [num_words, limit.max_words()].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    Err(too_many_windows(requested, most))
}

/// Cuts the root into ranges of about `task_words` words.
fn cut(dag: &Dag, task_words: u64) -> Vec<Range<usize>> {
    let (mut ranges, mut start, mut num_words) = (Vec::new(), 0, 0u64);
    let elements = dag.grammar().root();
    for (at, &element) in elements.iter().enumerate() {
        num_words = num_words.saturating_add(dag.len_words(element));
        if num_words >= task_words {
            ranges.push(start..at + 1);
            (start, num_words) = (at + 1, 0);
        }
    }
    ranges.push(start..elements.len());
    ranges
}
