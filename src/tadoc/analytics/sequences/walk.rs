//! Walks that meet every window of a corpus once, in parallel tasks: one if all windows fit into memory,
//! else several over ranges of sequences.
//!
//! - *top-down*: over the rules, each with its weight ([`edges`](super::edges)). Windows across the places where a
//!   document is cut at the border of segments come last, with the parts of a document as children of a rule.
//! - *token scan*: over every token of the expanded documents, each window with weight 1, without
//!   weights, heads and tails.
//!
//! ```text
//! root      | task 1 ............ | task 2 ..................
//! document  | a b c d e f g h i j   k l m n ...
//!             task 1 looks at the n - 1 words behind its last one, too
//! ```
//!
//! # Passes
//!
//! ```text
//! walk 1    all               too much: given up
//! walk 2    how many where    | 12 | 3 | 90 | 7 |        a range that alone is too much is cut again
//! walks     [12 3] [90] [7]   kept, counted, sent, forgotten
//! ```
//!
//! A range is cut while it has more than one sequence. So an error means that one sequence occurs more often than
//! memory can hold. O(walks * grammar), where the number of walks is (windows met / windows that fit) + 2.
//!
//! The rows of a pass are made in parts, by [`RowMaker`]. Windows are cut by ranges of sequences.
//! One thread sorts each run of ranges, adds up equal windows and converts them to the result of
//! the caller; another thread takes earlier results meanwhile, in order:
//!
//! ```text
//! tasks     0 1 2 3 | 4 5 6 ...
//! threads   1 3     |               a few tasks ahead of what is taken, no more
//! taken     0       |               in order, by the caller's thread, meanwhile
//! ```

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use rayon::prelude::*;

use crate::analytics::doc_terms::WordWalk;
use crate::analytics::vocabulary::WordRows;
use crate::analytics::{Traversal, Vocabulary};
use crate::error::{Canceller, Error, Result};
use crate::ids::DocId;
use crate::segment::dag::{Expansion, RuleTexts, num_words_at};
use crate::segment::{Corpus, Dag};

use super::edges::{Edges, Limit, STEP_WORDS, StepLimit, too_many_windows};
use super::entries::{Buckets, Entry, Sorting};
use super::key::{Keep, Key, Keyed, Packing, Tally};
use super::windows::{NumberedWeights, TextWindows, Weights};
use super::{Counted, Sequences, Sink};

/// Number of positions of the grammar in a parallel task.
const TASK_POSITIONS: usize = 1 << 15;
/// Walk of one of the two kinds.
pub(in crate::analytics) enum Walk {
    Rules(Vec<Edges>),
    Tokens(TokenWalk),
}

impl Walk {
    /// Prepares windows of `reach` + 1 words by `traversal`. There is no bottom-up walk; it is
    /// treated as top-down.
    ///
    /// # Errors
    /// The errors of [`Edges::from_segments`].
    pub fn new(
        vocabulary: &Vocabulary,
        reach: usize,
        traversal: Traversal,
        max_bytes: u64,
        canceller: Canceller<'_>,
    ) -> Result<Self> {
        Ok(match traversal {
            Traversal::TokenScan => Self::Tokens(TokenWalk::new(vocabulary, reach, canceller)?),
            _ => Self::Rules(Edges::from_segments(vocabulary, reach, max_bytes, canceller)?),
        })
    }

    /// Returns the weights of the windows.
    pub fn weights(&self) -> Weights {
        match self {
            Self::Rules(edges) => Weights::from_rules(edges),
            Self::Tokens(_) => Weights::one(),
        }
    }

    /// Returns the memory of the walk in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Rules(edges) => edges.iter().map(Edges::memory_bytes).sum(),
            Self::Tokens(walk) => walk.memory_bytes(),
        }
    }

    /// Passes every window to one of the sinks.
    ///
    /// # Errors
    /// [`Error::Capacity`] if more windows than `limit` allows are met, and
    /// [`Error::Cancelled`].
    pub fn tasks<S: Sink + Send>(
        &self,
        vocabulary: &Vocabulary,
        limit: &Limit<'_>,
        new: impl Fn() -> S + Sync,
    ) -> Result<Vec<S>> {
        match self {
            Self::Rules(edges) => walk_rules(edges, vocabulary, limit, new),
            Self::Tokens(walk) => walk.tasks(vocabulary, limit, new),
        }
    }
}

/// Walks over the grammars of all segments and the borders between them, in parallel tasks.
fn walk_rules<S: Sink + Send>(
    edges: &[Edges],
    vocabulary: &Vocabulary,
    limit: &Limit<'_>,
    new: impl Fn() -> S + Sync,
) -> Result<Vec<S>> {
    let canceller = limit.canceller();
    let tasks: Vec<(usize, Range<usize>)> = edges
        .iter()
        .enumerate()
        .flat_map(|(at, edges)| edges.ranges(TASK_POSITIONS).map(move |range| (at, range)))
        .collect();
    edges.par_iter().try_for_each(|edges| {
        canceller.check()?;
        edges.weights();
        Ok(())
    })?;
    let walk = |(at, range): (usize, Range<usize>)| {
        canceller.check()?;
        let mut sink = new();
        edges[at].walk_all(range, &mut sink, &mut limit.for_task())?;
        limit.add(sink.num_met())?;
        sink.close();
        Ok(sink)
    };
    let mut sinks = tasks.into_par_iter().map(walk).collect::<Result<Vec<S>>>()?;
    let mut sink = new();
    walk_borders(edges, vocabulary.corpus(), None, &mut sink);
    limit.add(sink.num_met())?;
    sinks.push(sink);
    Ok(sinks)
}

/// Passes the parts of each document that has several to `sink`, as the children of a rule of
/// weight 1. Does so for all documents, or for `only`.
pub(in crate::analytics) fn walk_borders(edges: &[Edges], corpus: &Corpus, only: Option<u64>, sink: &mut impl Sink) {
    match only {
        Some(doc_id) => walk_parts(edges, corpus.doc_parts(doc_id), sink),
        None => {
            let segments = corpus.segments().iter().enumerate();
            let mut last = None;
            for (at, _) in segments.filter(|(at, segment)| *at > 0 && segment.continues) {
                let doc_id = corpus.first_doc_id(at);
                if last.replace(doc_id) != Some(doc_id) {
                    walk_parts(edges, corpus.doc_parts(doc_id), sink);
                }
            }
        }
    }
}

fn walk_parts(edges: &[Edges], parts: impl Iterator<Item = (usize, DocId)>, sink: &mut impl Sink) {
    let mut head = Vec::new();
    let mut tail = Vec::new();
    sink.begin(1);
    for (at, doc) in parts {
        let edges = &edges[at];
        let range: Range<usize> = edges.dag().doc_range(doc);
        edges.head(range.clone(), &mut head);
        edges.tail(range.clone(), &mut tail);
        let has_tail = edges.has_more_words(range, head.len() as u64);
        sink.push_child(&head, has_tail.then_some(tail.as_slice()));
    }
}

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
    /// [`Error::Cancelled`].
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
    /// [`Error::Capacity`] if there are more words than `limit` allows, and
    /// [`Error::Cancelled`].
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
            .flat_map(|(at, segment)| cut(&segment.dag, task_words).into_iter().map(move |range| (at, range)))
            .collect();
        tasks
            .into_par_iter()
            .map_init(Expansion::default, |expansion, (at, range)| {
                let mut sink = new();
                let mut limit_of_task = limit.for_task();
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
    fn behind(&self, vocabulary: &Vocabulary, at: usize, doc: DocId, positions: Range<usize>) -> Vec<u32> {
        let corpus = vocabulary.corpus();
        let later = corpus.doc_parts(corpus.doc_id(at, doc)).skip_while(|&(part_at, _)| part_at <= at);
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
    let [requested, most] = [num_words, limit.max_words()].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    Err(too_many_windows(requested, most))
}

/// Cuts the root into ranges of about `task_words` words.
fn cut(dag: &Dag, task_words: u64) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    let mut num_words = 0u64;
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

/// Maximum number of ranges of a tally (2 to this), with 8 bytes each.
const TALLY_BITS: u32 = 16;
const LEAST_TALLY_BITS: u32 = 4;

/// Range of keys that is counted separately: the first key and the last.
pub(in crate::analytics) type KeyRange<K> = (K, K);

/// Calls `take` for each pass, until it returns false. `take` gets the sinks of a walk, the range
/// of their keys (all keys below 2^`key_bits`; one range of these after another if memory is short), and the bytes that
/// the walk still holds. `new` makes sinks.
///
/// # Errors
/// [`Error::Capacity`] if one sequence alone is met more often than `limit` allows,
/// [`Error::Cancelled`], and the errors of `take`.
pub(in crate::analytics) fn for_each_pass<K: Key, S: Sink + Send>(
    walk: Walk,
    vocabulary: &Vocabulary,
    limit: &Limit<'_>,
    key_bits: u32,
    new: impl Fn(Keep<K>) -> S + Sync,
    mut take: impl FnMut(Vec<S>, KeyRange<K>, usize) -> Result<bool>,
) -> Result<()> {
    match walk.tasks(vocabulary, limit, || new(Keep::All)) {
        Ok(sinks) => {
            drop(walk);
            return take(sinks, (K::default(), K::ones(key_bits)), 0).map(drop);
        }
        Err(Error::Capacity { .. }) => {}
        Err(error) => return Err(error),
    }
    let ranges = fitting_ranges(limit, key_bits, |keep| {
        walk.tasks(vocabulary, &limit.for_range(), || new(keep.clone())).map(drop)
    })?;
    for (first, last) in ranges {
        let keep = Keep::Within(first, last);
        let sinks = walk.tasks(vocabulary, &limit.for_range(), || new(keep.clone()))?;
        if !take(sinks, (first, last), walk.memory_bytes())? {
            break;
        }
    }
    Ok(())
}

/// Returns ranges that together have all keys below 2^`key_bits`. Each has at most as many windows
/// as `limit` allows, unless a single key has more.
///
/// # Errors
/// The errors of `walk`.
pub(in crate::analytics) fn fitting_ranges<K: Key>(
    limit: &Limit<'_>,
    key_bits: u32,
    walk: impl Fn(&Keep<K>) -> Result<()>,
) -> Result<Vec<KeyRange<K>>> {
    let max_met = limit.max_met() as u64;
    let num_bits = (max_met + 1).ilog2().clamp(LEAST_TALLY_BITS, TALLY_BITS);
    let mut ranges: Vec<KeyRange<K>> = Vec::new();
    // Number of windows met in the last of `ranges`.
    let mut num_met = u64::MAX;
    // Ranges still to cut, the first one last, with the number of windows met in each.
    let mut waiting = vec![(K::default(), key_bits, u64::MAX)];
    while let Some((first, bits, count)) = waiting.pop() {
        if count > max_met && bits > 0 {
            let tally = Arc::new(Tally::new(first, bits, num_bits));
            walk(&Keep::Counted(tally.clone()))?;
            let parts: Vec<_> = tally.counts().collect();
            waiting.extend(parts.iter().rev().map(|&(first, n)| (first, tally.shift(), n)));
            continue;
        }
        let last = first.joined(K::ones(bits));
        match ranges.last_mut().filter(|_| num_met.saturating_add(count) <= max_met) {
            Some(range) => {
                range.1 = last;
                num_met += count;
            }
            None => {
                ranges.push((first, last));
                num_met = count;
            }
        }
    }
    Ok(ranges)
}

/// Number of words of windows after which a part ends.
pub(in crate::analytics) const PART_WORDS: usize = 1 << 17;

/// Maker of rows, with the data that the rows of all parts share.
pub(in crate::analytics) struct RowMaker<'a> {
    pub vocabulary: &'a Arc<Vocabulary>,
    pub packing: Packing,
    pub weights: &'a Weights,
    /// Minimum count of a row.
    pub min_count: u64,
    pub canceller: Canceller<'a>,
}

impl RowMaker<'_> {
    /// Makes rows from the keys of all parallel tasks. A key has the number of a weight below the
    /// sequence. Returns true if all parts were taken. `take` also gets the number of bytes held.
    ///
    /// # Errors
    /// [`Error::Capacity`] if a count needs more than 64 bits,
    /// [`Error::Cancelled`], and the errors of `take`.
    pub fn keys_to_rows<K: Key + Keyed<Key = K>, T: Send>(
        &self,
        tasks: Vec<Vec<K>>,
        range: KeyRange<K>,
        make: impl Fn(Sequences, Vec<u64>) -> T + Send + Sync,
        take: impl FnMut(T, usize) -> Result<bool>,
    ) -> Result<bool> {
        let buckets = Buckets::new(tasks, range, self.weights.bits(), self.canceller)?;
        let add =
            |counted: &mut Counted, keys: &mut [K]| counted.add_keys(keys, self.packing, &self.weights, self.min_count);
        self.buckets_to_rows(&buckets, 0, add, make, take)
    }

    /// Makes rows from windows that do not fit a key.
    ///
    /// # Errors
    /// The errors of [`keys_to_rows`](Self::keys_to_rows).
    pub fn texts_to_rows<T: Send>(
        &self,
        tasks: &[TextWindows],
        range: KeyRange<u64>,
        make: impl Fn(Sequences, Vec<u64>) -> T + Send + Sync,
        take: impl FnMut(T, usize) -> Result<bool>,
    ) -> Result<bool> {
        let entries = |(at, task): (usize, &TextWindows)| {
            self.canceller.check()?;
            Ok(task.entries((at as u64) << 32))
        };
        let entries = tasks.par_iter().enumerate().map(entries).collect::<Result<Vec<_>>>()?;
        let (task, window) = (|value: u64| (value >> 32) as usize, |value: u64| value as u32);
        let words = |value| tasks[task(value)].words(window(value) as usize);
        let weight = |value| tasks[task(value)].weight(window(value) as usize);
        let add = |counted: &mut Counted, entries: &mut [Entry]| {
            let packing = self.packing;
            let min_count = self.min_count;
            counted.add(entries, packing, &words, &weight, min_count, self.canceller)
        };
        let text_bytes = tasks.iter().map(TextWindows::memory_bytes).sum();
        let buckets = Buckets::new(entries, range, 0, self.canceller)?;
        self.buckets_to_rows(&buckets, text_bytes, add, make, take)
    }

    fn buckets_to_rows<E: Keyed, T: Send>(
        &self,
        buckets: &Buckets<E>,
        text_bytes: usize,
        add: impl Fn(&mut Counted, &mut [E]) -> Result<()> + Sync,
        make: impl Fn(Sequences, Vec<u64>) -> T + Send + Sync,
        mut take: impl FnMut(T, usize) -> Result<bool>,
    ) -> Result<bool> {
        let runs = buckets.runs((PART_WORDS / self.packing.num_words).max(1));
        let held_bytes = text_bytes + buckets.memory_bytes();
        let compute = |run: usize| {
            let mut counted = Counted::default();
            let mut sorting = Sorting::default();
            for bucket in runs[run].clone() {
                add(&mut counted, buckets.sorted(bucket, &mut sorting, self.canceller)?)?;
            }
            let (sequences, counts) = counted.into_rows(self.vocabulary.clone(), self.packing);
            Ok(make(sequences, counts))
        };
        for_each_in_order(runs.len(), compute, |made: Result<T>| take(made?, held_bytes))
    }
}

/// Maximum number of parallel tasks for each thread that run ahead of the result taken next.
const AHEAD_PER_THREAD: usize = 2;

/// Computes each task in parallel and passes the results to `take` in order, until it returns
/// false. Returns true if all results were taken. Only a few results wait at a time.
///
/// # Errors
/// The errors of `take`.
pub fn for_each_in_order<T: Send>(
    num_tasks: usize,
    compute: impl Fn(usize) -> T + Send + Sync,
    mut take: impl FnMut(T) -> Result<bool>,
) -> Result<bool> {
    let max_ahead = AHEAD_PER_THREAD * rayon::current_num_threads();
    if rayon::current_thread_index().is_some() {
        // A thread of the pool must not wait here, because the pool would miss it.
        for start in (0..num_tasks).step_by(max_ahead) {
            let tasks = start..num_tasks.min(start + max_ahead);
            for made in tasks.into_par_iter().map(&compute).collect::<Vec<T>>() {
                if !take(made)? {
                    return Ok(false);
                }
            }
        }
        return Ok(true);
    }
    let compute = &compute;
    rayon::in_place_scope(|scope| {
        let mut waiting = VecDeque::with_capacity(max_ahead);
        let mut tasks = 0..num_tasks;
        loop {
            for task in tasks.by_ref().take(max_ahead - waiting.len()) {
                let (sender, receiver) = sync_channel(1);
                // Sending fails if the receiver no longer waits, which does no harm.
                scope.spawn(move |_| drop(sender.send(compute(task))));
                waiting.push_back(receiver);
            }
            let Some(first) = waiting.pop_front() else { return Ok(true) };
            // A task that panicked sends nothing; the scope panics when it ends.
            let Ok(made) = first.recv() else { return Ok(false) };
            if !take(made)? {
                return Ok(false);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytics::TaskLimits;

    #[test]
    fn windows_are_reckoned_as_their_keys() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        let all = TaskLimits::from(1 << 20);
        let limits = || [Limit::for_keys::<u64>(all), Limit::for_keys::<u128>(all)];
        for (limit, key_bytes) in pool.install(limits).iter().zip([8, 16]) {
            // Half of the memory, with room for two keys for each window.
            assert_eq!(limit.max_met() * 2 * key_bytes, 1 << 19);
            // All threads together meet no more windows before they are rejected.
            assert_eq!(limit.max_of_task * 4, limit.max_met());
            assert_eq!(limit.for_range().max_of_task, limit.max_met());
            assert!(limit.add(limit.max_met()).is_ok() && limit.add(1).is_err());
        }
    }

    fn taken(num_tasks: usize, up_to: usize) -> Vec<usize> {
        let mut taken = Vec::new();
        for_each_in_order(
            num_tasks,
            |task| task * task,
            |made| {
                taken.push(made);
                Ok(taken.len() < up_to)
            },
        )
        .unwrap();
        taken
    }

    #[test]
    fn results_come_in_order_until_enough() {
        let squares = |len: usize| (0..len).map(|i| i * i).collect::<Vec<_>>();
        for (num_tasks, up_to) in [(0, 9), (1, 9), (100, usize::MAX), (100, 7)] {
            assert_eq!(taken(num_tasks, up_to), squares(num_tasks.min(up_to)));
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            assert_eq!(pool.install(|| taken(num_tasks, up_to)), squares(num_tasks.min(up_to)));
        }
    }
}
