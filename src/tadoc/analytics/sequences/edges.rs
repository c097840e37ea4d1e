//! First and last words of the rules of a segment, walks that meet every window once, and their limits.
//!
//! ```text
//! rule      a [r: b c d e f] g      n = 3, so heads and tails have 2 words
//! walk      a  b c | e f  g         windows abc, efg and, with their 2 words, none inside r
//! ```
//!
//! A window of n words belongs to the rule where it crosses a border between two elements, and occurs as often as that
//! rule (Goto, Bannai, Inenaga, Takeda, "Fast q-gram mining on SLP compressed strings", 2011, for binary rules). The
//! child's own rule meets the windows inside a child. So only the first and the last n - 1 words of a child matter: its
//! head and its tail. One backward sweep makes the heads and another one the tails, children before parents and both in
//! parallel, O(rules * n). Separators are left out.
//!
//! A [`Limit`] has the windows that a walk may meet, from the memory that it may use, and its time, since
//! the caller may leave. Both decide about the traversal, too.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::analytics::traversal::{TraversalTask, cheapest_first};
use crate::analytics::{SegmentShape, TaskLimits, Traversal, Vocabulary};
use crate::error::{Canceller, Error, Interrupt, Result};
use crate::ids::RuleId;
use crate::segment::{Dag, Segment};

use super::Sink;
use super::key::{Packing, ShortEdges};

/// Rules of a segment as a walk sees them. Words are rows of a vocabulary.
#[derive(Debug)]
pub(in crate::analytics) struct Edges {
    segment: Arc<Segment>,
    /// Rows by word id; empty if rows are the word ids.
    rows: Vec<u32>,
    /// Maximum number of words of a head or tail: n - 1.
    reach: usize,
    ends: AllEnds,
}

/// Heads and tails of all rules.
#[derive(Debug)]
enum AllEnds {
    Short(ShortEdges),
    /// Head and tail by rule, and the words that they are ranges of.
    Long(Vec<Span>, Vec<u32>),
}

/// Head and tail of a rule in `words`: all words of the rule, or `reach` words of each, one behind
/// the other.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    head_len: u32,
}

/// Flag in the length of a head: the rule has more words, so there is a tail.
const HAS_TAIL: u32 = 1 << 31;

/// Heads, or tails, of all rules: `reach` words, or all words of a rule that has no more.
#[derive(Debug)]
struct Ends {
    /// Start in `words` and length, by rule.
    spans: Vec<(u32, u32)>,
    words: Vec<u32>,
}

impl Ends {
    /// Computes the heads or tails, children before parents.
    fn new(
        dag: &Dag,
        reach: usize,
        max_words: u64,
        is_tail: bool,
        row: impl Fn(u32) -> u32,
        canceller: Canceller<'_>,
    ) -> Result<Self> {
        let grammar = dag.grammar();
        let mut interrupt = canceller.interrupt();
        let num_rules = grammar.num_rules();
        let mut ends = Self { spans: vec![(0, 0); num_rules], words: Vec::new() };
        for rule_id in grammar.rule_ids().skip(1).rev() {
            let num_words = dag.len_words(grammar.element_for(rule_id));
            let len = num_words.min(reach as u64) as usize;
            interrupt.pass(len + 1)?;
            let start = ends.words.len();
            if (start + len) as u64 > max_words {
                return Err(too_many_edge_words(start + len, max_words));
            }
            ends.spans[rule_id.index()] = (start as u32, len as u32);
            if is_tail {
                ends.words.resize(start + len, 0);
                ends.fill_tail(dag, rule_id, start..start + len, &row);
            } else {
                ends.append_head(dag, rule_id, start + len, &row);
            }
        }
        Ok(ends)
    }

    fn append_head(&mut self, dag: &Dag, rule_id: RuleId, end: usize, row: &impl Fn(u32) -> u32) {
        for &element in dag.grammar().rule(rule_id) {
            let num_left = end - self.words.len();
            if num_left == 0 {
                break;
            }
            if element < dag.num_words() {
                self.words.push(row(element));
            } else if let Some(child) = dag.rule_of(element) {
                let (start, len) = self.spans[child.index()];
                let start = start as usize;
                self.words.extend_from_within(start..start + num_left.min(len as usize));
            }
        }
    }

    fn fill_tail(&mut self, dag: &Dag, rule_id: RuleId, place: Range<usize>, row: &impl Fn(u32) -> u32) {
        let mut end = place.end;
        for &element in dag.grammar().rule(rule_id).iter().rev() {
            if end == place.start {
                break;
            }
            if element < dag.num_words() {
                end -= 1;
                self.words[end] = row(element);
            } else if let Some(child) = dag.rule_of(element) {
                let (start, len) = self.spans[child.index()];
                let child_end = (start + len) as usize;
                let len = (end - place.start).min(len as usize);
                end -= len;
                self.words.copy_within(child_end - len..child_end, end);
            }
        }
    }

    #[inline]
    fn for_rule(&self, rule_id: RuleId) -> &[u32] {
        let (start, len) = self.spans[rule_id.index()];
        &self.words[start as usize..start as usize + len as usize]
    }
}

/// Maximum number of words that a walk meets before it checks the limit again.
pub(super) const STEP_WORDS: usize = 1 << 16;

impl Edges {
    /// Computes edges of `reach` words for each segment of the corpus of `vocabulary`, in at most
    /// `max_bytes` bytes.
    ///
    /// # Errors
    /// [`Error::Capacity`] if they need more, and [`Error::Cancelled`].
    pub fn from_segments(
        vocabulary: &Vocabulary,
        reach: usize,
        max_bytes: u64,
        canceller: Canceller<'_>,
    ) -> Result<Vec<Self>> {
        canceller.check()?;
        let segments = vocabulary.corpus().segments();
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); segments.len()];
        if !vocabulary.is_one_segment() {
            for (rows, segment) in rows.iter_mut().zip(segments) {
                rows.resize(segment.dag.num_words() as usize, 0);
            }
            for row in 0..vocabulary.len() {
                vocabulary.ids(row).for_each(|(at, word)| rows[at][word as usize] = row as u32);
            }
        }
        // A reach longer than the text has no windows and needs no memory.
        let root_words = segments.iter().map(|s| s.dag.len_words(s.dag.num_terminals()));
        let all_words = root_words.fold(0u64, u64::saturating_add);
        let reach = reach.min(usize::try_from(all_words).unwrap_or(usize::MAX));
        let share = max_bytes / segments.len().max(1) as u64;
        if reach as u64 > share / 4 {
            return Err(too_many_edge_words(reach, share / 4));
        }
        let parts: Vec<_> = segments.iter().zip(rows).collect();
        parts.into_par_iter().map(|(segment, rows)| Self::new(segment, rows, reach, share, canceller)).collect()
    }

    fn new(
        segment: &Arc<Segment>,
        rows: Vec<u32>,
        reach: usize,
        max_bytes: u64,
        canceller: Canceller<'_>,
    ) -> Result<Self> {
        // Heads and tails are made apart, then stored side by side, because a walk needs both of a
        // rule.
        let max_words = (max_bytes / 16).min(u64::from(u32::MAX / 2));
        let row = |word: u32| if rows.is_empty() { word } else { rows[word as usize] };
        if let Some(short) = ShortEdges::new(&segment.dag, reach, max_bytes, &rows, canceller)? {
            return Ok(Self { segment: segment.clone(), ends: AllEnds::Short(short), rows, reach });
        }
        let (heads, tails) = rayon::join(
            || Ends::new(&segment.dag, reach, max_words, false, row, canceller),
            || Ends::new(&segment.dag, reach, max_words, true, row, canceller),
        );
        let heads = heads?;
        let tails = tails?;
        let mut words = Vec::with_capacity(heads.words.len() + tails.words.len());
        let mut interrupt = canceller.interrupt();
        let spans = segment.dag.grammar().rule_ids().map(|rule_id| {
            let start = words.len() as u32;
            let head = heads.for_rule(rule_id);
            let element = segment.dag.grammar().element_for(rule_id);
            interrupt.pass(head.len() + 1)?;
            words.extend_from_slice(head);
            let has_tail = segment.dag.len_words(element) > head.len() as u64;
            if has_tail {
                words.extend_from_slice(tails.for_rule(rule_id));
            }
            let flag = if has_tail { HAS_TAIL } else { 0 };
            Ok(Span { start, head_len: head.len() as u32 | flag })
        });
        let spans = spans.collect::<Result<_>>()?;
        let ends = AllEnds::Long(spans, words);
        Ok(Self { segment: segment.clone(), ends, rows, reach })
    }

    /// Computes the first words at `positions` of one rule, at most as many as a head has.
    pub fn head(&self, positions: Range<usize>, words: &mut Vec<u32>) {
        words.clear();
        for &element in &self.dag().grammar().symbols[positions] {
            if words.len() >= self.reach {
                break;
            }
            if element < self.dag().num_words() {
                words.push(self.row(element));
            } else if let Some(rule_id) = self.dag().rule_of(element) {
                words.extend_from_slice(self.rule(rule_id).0);
            }
        }
        words.truncate(self.reach);
    }

    /// Computes the last words at `positions` of one rule, at most as many as a tail has.
    pub fn tail(&self, positions: Range<usize>, words: &mut Vec<u32>) {
        words.clear();
        for &element in self.dag().grammar().symbols[positions].iter().rev() {
            if words.len() >= self.reach {
                break;
            }
            if element < self.dag().num_words() {
                words.push(self.row(element));
            } else if let Some(rule_id) = self.dag().rule_of(element) {
                let (head, tail) = self.rule(rule_id);
                words.extend(tail.unwrap_or(head).iter().rev());
            }
        }
        words.truncate(self.reach);
        words.reverse();
    }

    /// Returns true if there are more than `len` words at `positions` of one rule.
    pub fn has_more_words(&self, positions: Range<usize>, len: u64) -> bool {
        let mut left = Some(len);
        let mut elements = self.dag().grammar().symbols[positions].iter();
        while let (Some(words), Some(&element)) = (left, elements.next()) {
            left = words.checked_sub(self.dag().len_words(element));
        }
        left.is_none()
    }

    /// Returns the grammar as a DAG.
    pub fn dag(&self) -> &Dag {
        &self.segment.dag
    }

    /// Returns the number of occurrences of each element, which the segment derives on first use.
    pub fn weights(&self) -> &[u64] {
        self.segment.weights_or_derive()
    }

    /// Returns the memory of the edges in bytes.
    pub fn memory_bytes(&self) -> usize {
        let ends = match &self.ends {
            AllEnds::Short(short) => short.memory_bytes(),
            AllEnds::Long(spans, words) => 4 * words.capacity() + 8 * spans.len(),
        };
        ends + 4 * self.rows.capacity()
    }

    /// Returns head and tail of a rule. Without a tail, the head has all words.
    #[inline]
    fn rule(&self, rule_id: RuleId) -> (&[u32], Option<&[u32]>) {
        let (spans, words) = match &self.ends {
            AllEnds::Short(short) => return short.rule(self.dag(), rule_id),
            AllEnds::Long(spans, words) => (spans, words),
        };
        let span = spans[rule_id.index()];
        let len = (span.head_len & !HAS_TAIL) as usize;
        let words = &words[span.start as usize..];
        match span.head_len & HAS_TAIL {
            0 => (&words[..len], None),
            _ => (&words[..len], Some(&words[len..2 * len])),
        }
    }

    #[inline]
    fn row(&self, word: u32) -> u32 {
        if self.rows.is_empty() { word } else { self.rows[word as usize] }
    }

    /// Passes the children at `positions` of one rule to `sink`.
    ///
    /// # Errors
    /// The errors of [`StepLimit::check`].
    pub fn walk(&self, positions: Range<usize>, sink: &mut impl Sink, limit: &mut StepLimit<'_>) -> Result<()> {
        let dag = self.dag();
        for step in dag.grammar().symbols[positions].chunks(STEP_WORDS / (self.reach + 1) + 1) {
            match &self.ends {
                AllEnds::Short(ShortEdges::One(table)) => sink.push_short(table, step),
                AllEnds::Short(ShortEdges::Two(table)) => sink.push_short(table, step),
                AllEnds::Long(..) => self.push_long(step, sink),
            }
            limit.check(sink.num_met(), step.len().saturating_mul(self.reach + 1))?;
        }
        Ok(())
    }

    #[inline]
    fn push_long(&self, elements: &[u32], sink: &mut impl Sink) {
        let dag = self.dag();
        let num_words = dag.num_words();
        for &element in elements {
            if element < num_words {
                sink.push(self.row(element));
            } else if let Some(rule_id) = dag.rule_of(element) {
                let (head, tail) = self.rule(rule_id);
                sink.push_child(head, tail);
            }
        }
    }

    /// Walks over all rules and documents at `positions`, each with its weight. Ranges that tile
    /// the grammar together meet the same windows as one walk over all of it.
    ///
    /// # Errors
    /// The errors of [`walk`](Self::walk).
    pub fn walk_all(&self, positions: Range<usize>, sink: &mut impl Sink, limit: &mut StepLimit<'_>) -> Result<()> {
        let grammar = self.dag().grammar();
        let num_terminals = grammar.num_terminals as usize;
        let root_len = grammar.root().len();
        let mut at = positions.start;
        let mut doc = grammar.doc_offsets.partition_point(|&start| start as usize <= at);
        while at < positions.end.min(root_len) {
            let end = grammar.doc_offsets[doc] as usize;
            let start = grammar.doc_offsets[doc - 1] as usize;
            self.walk_part(start, at..end.min(positions.end), 1, sink, limit)?;
            (at, doc) = (end, doc + 1);
        }
        let mut rule = grammar.rule_offsets.partition_point(|&start| start as usize <= at);
        while at < positions.end {
            let end = grammar.rule_offsets[rule] as usize;
            let start = grammar.rule_offsets[rule - 1] as usize;
            let weight = self.weights()[num_terminals + rule - 1];
            self.walk_part(start, at..end.min(positions.end), weight, sink, limit)?;
            (at, rule) = (end, rule + 1);
        }
        Ok(())
    }

    /// Walks over a part of the rule or document that begins at `start`, after the words before
    /// that part.
    fn walk_part(
        &self,
        start: usize,
        part: Range<usize>,
        weight: u64,
        sink: &mut impl Sink,
        limit: &mut StepLimit<'_>,
    ) -> Result<()> {
        sink.begin(weight);
        if start < part.start {
            let mut words = Vec::new();
            self.tail(start..part.start, &mut words);
            sink.prime(&words);
        }
        self.walk(part, sink, limit)
    }

    /// Cuts the positions of the grammar into ranges of about `len` for parallel tasks.
    pub fn ranges(&self, len: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let end = self.dag().grammar().symbols.len();
        (0..end).step_by(len.max(1)).map(move |start| start..end.min(start + len.max(1)))
    }
}

fn too_many_edge_words(requested: usize, limit: u64) -> Error {
    let what = "the first and last words of the rules (words, at least)";
    Error::memory_of_task(what, requested as u64, limit)
}

/// Memory of a window whose row is kept while others are counted: met, split and, if no other
/// window is equal, a row. The words of sequences that do not fit a key are not included.
const WINDOW_BYTES: u64 = 64;
/// Number of keys in memory for each window whose rows are passed on in small parts: one, in a
/// vector with room for twice as many. Splitting takes the memory of one more task in each thread.
/// A bucket takes at most the other half of the memory, where the edges were before.
const KEYS_PER_WINDOW: usize = 2;

/// Limit of the number of windows that all parallel tasks together may meet.
#[derive(Debug)]
pub(in crate::analytics) struct Limit<'a> {
    max_met: usize,
    /// Maximum number of windows of one task. Several tasks run before their numbers are added up.
    pub(super) max_of_task: usize,
    /// Maximum number of words of a token scan.
    max_words: u64,
    num_met: AtomicUsize,
    canceller: Canceller<'a>,
}

impl<'a> Limit<'a> {
    /// Creates the limit for windows that are no keys, or whose rows are kept.
    pub fn new(limits: TaskLimits<'a>, packing: Packing) -> Self {
        let words = if packing.is_whole() { 0 } else { packing.num_words as u64 };
        Self::from_windows(limits, words.saturating_mul(4).saturating_add(WINDOW_BYTES))
    }

    /// Creates the limit for windows that are keys and whose rows are passed on.
    pub fn for_keys<K>(limits: TaskLimits<'a>) -> Self {
        let all = Self::from_windows(limits, (KEYS_PER_WINDOW * size_of::<K>()) as u64);
        Self { max_of_task: all.max_met / rayon::current_num_threads(), ..all }
    }

    /// Creates the limit for a token scan, whose windows all have the same weight.
    pub fn for_scan(limits: TaskLimits<'a>, packing: Packing) -> Self {
        match packing.all_bits() {
            0..=64 => Self::for_keys::<u64>(limits),
            65..=128 => Self::for_keys::<u128>(limits),
            _ => Self::new(limits, packing),
        }
    }

    /// Creates a limit from half of the memory; the other half is for the data of walks.
    fn from_windows(limits: TaskLimits<'a>, window_bytes: u64) -> Self {
        let max_met = (limits.max_memory_bytes / 2 / window_bytes).min(u64::from(u32::MAX)) as usize;
        let max_words = max_met as u64;
        let num_met = AtomicUsize::new(0);
        let canceller = limits.canceller();
        Self { max_met, max_of_task: max_met, max_words, num_met, canceller }
    }

    /// Returns the limit for a walk that keeps only the windows of a range, and may read more
    /// words.
    pub fn for_range(&self) -> Self {
        let max_words = u64::from(u32::MAX);
        let max_met = self.max_met;
        let num_met = AtomicUsize::new(0);
        Self { max_met, max_of_task: max_met, max_words, num_met, canceller: self.canceller }
    }

    /// Returns true if `num_windows` numbered windows fit, together with counts of a group of
    /// documents for each of them in every thread. Such counts take half the memory of a window.
    pub fn fits_numbers(&self, num_windows: u64) -> bool {
        let num_threads = rayon::current_num_threads() as u64;
        num_windows.saturating_mul(2 + num_threads) / 2 <= self.max_met as u64
    }

    pub fn max_met(&self) -> usize {
        self.max_met
    }

    /// Returns the limit of one parallel task.
    pub fn for_task(&self) -> StepLimit<'a> {
        StepLimit { max_met: self.max_of_task, interrupt: self.canceller.interrupt() }
    }

    pub fn canceller(&self) -> Canceller<'a> {
        self.canceller
    }

    pub fn max_words(&self) -> u64 {
        self.max_words
    }

    pub fn add(&self, num_met: usize) -> Result<()> {
        let sum = self.num_met.fetch_add(num_met, Ordering::Relaxed) + num_met;
        if sum > self.max_met { Err(too_many_windows(sum, self.max_met)) } else { Ok(()) }
    }
}

/// Limit of one parallel task, which is checked after each step.
#[derive(Debug)]
pub(in crate::analytics) struct StepLimit<'a> {
    max_met: usize,
    interrupt: Interrupt<'a>,
}

impl StepLimit<'_> {
    /// Checks the limit after a step that read `num_words` words. The task has met `num_met`
    /// windows.
    ///
    /// # Errors
    /// [`Error::Capacity`] if these are too many, and [`Error::Cancelled`].
    #[inline]
    pub fn check(&mut self, num_met: usize, num_words: usize) -> Result<()> {
        self.interrupt.pass(num_words)?;
        if num_met <= self.max_met {
            return Ok(());
        }
        // A sink that stopped because the caller has left says so by a number that is too large.
        self.interrupt.ask()?;
        Err(too_many_windows(num_met, self.max_met))
    }
}

pub(in crate::analytics) fn too_many_windows(requested: usize, limit: usize) -> Error {
    let what = "counting sequences (windows held at once, at least)";
    Error::memory_of_task(what, requested as u64, limit as u64)
}

/// Returns the traversal for windows of `n` words, never [`Traversal::Auto`]: the forced one or the
/// cheapest. A token scan is not chosen if there are more words than `limit` has windows. Bottom-up
/// is not chosen if its numbers, or their counts in all threads, need more memory than `limit` has.
pub(in crate::analytics) fn chosen(
    traversal: Traversal,
    task: TraversalTask,
    vocabulary: &Vocabulary,
    n: usize,
    limit: &Limit<'_>,
) -> Traversal {
    if traversal != Traversal::Auto {
        return traversal;
    }
    let segments = vocabulary.corpus().segments().iter();
    let shape: SegmentShape = segments.map(|segment| SegmentShape::from(segment.as_ref())).sum();
    let max_words = match task {
        TraversalTask::Cooccurrence => limit.max_met() as u64 / n as u64,
        _ => limit.max_met() as u64,
    };
    let reach = n.saturating_sub(1).max(1) as u64;
    let fits = |way: &Traversal| match way {
        Traversal::TokenScan => shape.num_words <= max_words,
        Traversal::BottomUp => limit.fits_numbers(shape.num_elements.saturating_mul(reach)),
        _ => true,
    };
    let ways = cheapest_first(task, shape, n).into_iter().map(|(way, _)| way);
    ways.clone().find(fits).unwrap_or(Traversal::TopDown)
}
