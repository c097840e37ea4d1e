//! First and last words of the rules of a segment, and walks that meet every window once.
//!
//! ```text
//! rule      a [r: b c d e f] g      n = 3, so heads and tails have 2 words
//! walk      a  b c | e f  g         windows abc, efg and, with their 2 words, none inside r
//! ```
//!
//! A window of n words belongs to the rule where it crosses a border between two children, and
//! occurs as often as that rule (Goto, Bannai, Inenaga, Takeda, "Fast q-gram mining on SLP
//! compressed strings", 2011, there for binary rules). What lies inside a child is met in the
//! child's own rule, so of a child only the first and the last n - 1 words matter. Heads and tails are
//! made by a backward sweep each, children before parents and both at once, O(rules * n); separators
//! are left out.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::analytics::Vocabulary;
use crate::error::{Error, Result};
use crate::segment::{Dag, Segment};

use super::short::{ShortEdges, Table};

/// Where a walk hands over what it meets.
pub(in crate::analytics) trait Sink {
    /// A text begins: nothing before it counts. It occurs `weight` times.
    fn begin(&mut self, weight: u64);
    /// The next word.
    fn push(&mut self, word: u32);
    /// The next child, of which `head` are the first words. Where it has more than those, `tail`
    /// are the last ones.
    fn push_child(&mut self, head: &[u32], tail: Option<&[u32]>);
    /// The next elements, whose first and last words `table` knows.
    fn push_short<const R: usize>(&mut self, table: &Table<R>, elements: &[u32])
    where
        Self: Sized,
    {
        table.push_each(elements, self);
    }
    /// Words before the next one, right behind the beginning: what lies inside them is not met.
    fn prime(&mut self, words: &[u32]);
    /// Windows or pairs met so far.
    fn num_met(&self) -> usize;
    /// Nothing more comes.
    fn close(&mut self);
}

/// The rules of a segment as a walk sees them; words are rows of a vocabulary.
#[derive(Debug)]
pub(in crate::analytics) struct Edges {
    segment: Arc<Segment>,
    /// By word id; empty where rows are the word ids.
    rows: Vec<u32>,
    /// Words of a head or tail at most: n - 1.
    reach: usize,
    ends: AllEnds,
}

/// Heads and tails.
#[derive(Debug)]
enum AllEnds {
    Short(ShortEdges),
    /// By rule, and what they are places in.
    Long(Vec<Span>, Vec<u32>),
}

/// Head and tail of a rule in `words`: all words, or `reach` of both, one behind the other.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    head_len: u32,
}

/// Added to the length of a head that is not all.
const HAS_TAIL: u32 = 1 << 31;

/// Heads, or tails, of all rules: `reach` words, or all where a rule has no more.
#[derive(Debug)]
struct Ends {
    /// Start in `words` and length, by rule.
    spans: Vec<(u32, u32)>,
    words: Vec<u32>,
}

impl Ends {
    /// Children before parents.
    fn new(
        dag: &Dag,
        reach: usize,
        max_words: u64,
        is_tail: bool,
        row: impl Fn(u32) -> u32,
    ) -> Result<Self> {
        let grammar = dag.grammar();
        let num_rules = grammar.num_rules();
        let mut ends = Self { spans: vec![(0, 0); num_rules], words: Vec::new() };
        for rule_idx in (1..num_rules).rev() {
            let num_words = dag.len_words(dag.num_terminals() + rule_idx as u32);
            let len = num_words.min(reach as u64) as usize;
            let start = ends.words.len();
            if (start + len) as u64 > max_words {
                return Err(too_many_edge_words(start + len, max_words));
            }
            ends.spans[rule_idx] = (start as u32, len as u32);
            if is_tail {
                ends.words.resize(start + len, 0);
                ends.fill_tail(dag, rule_idx, start..start + len, &row);
            } else {
                ends.append_head(dag, rule_idx, start + len, &row);
            }
        }
        Ok(ends)
    }

    fn append_head(&mut self, dag: &Dag, rule_idx: usize, end: usize, row: &impl Fn(u32) -> u32) {
        for &element in dag.grammar().rule(rule_idx) {
            let num_left = end - self.words.len();
            if num_left == 0 {
                break;
            }
            if element < dag.num_words() {
                self.words.push(row(element));
            } else if let Some(child) = dag.rule_of(element) {
                let (start, len) = self.spans[child];
                let start = start as usize;
                self.words.extend_from_within(start..start + num_left.min(len as usize));
            }
        }
    }

    fn fill_tail(
        &mut self,
        dag: &Dag,
        rule_idx: usize,
        place: Range<usize>,
        row: &impl Fn(u32) -> u32,
    ) {
        let mut end = place.end;
        for &element in dag.grammar().rule(rule_idx).iter().rev() {
            if end == place.start {
                break;
            }
            if element < dag.num_words() {
                end -= 1;
                self.words[end] = row(element);
            } else if let Some(child) = dag.rule_of(element) {
                let (start, len) = self.spans[child];
                let child_end = (start + len) as usize;
                let len = (end - place.start).min(len as usize);
                end -= len;
                self.words.copy_within(child_end - len..child_end, end);
            }
        }
    }

    #[inline]
    fn of(&self, rule_idx: usize) -> &[u32] {
        let (start, len) = self.spans[rule_idx];
        &self.words[start as usize..start as usize + len as usize]
    }
}

/// Words that a walk meets at most before the limit is looked at again.
pub(super) const STEP_WORDS: usize = 1 << 16;

impl Edges {
    /// Edges of `reach` words for each segment of the corpus behind `vocabulary`, in at most
    /// `max_bytes`.
    ///
    /// # Errors
    /// [`Error::Capacity`] where they need more.
    pub fn of_segments(vocabulary: &Vocabulary, reach: usize, max_bytes: u64) -> Result<Vec<Self>> {
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
        // Longer than everything: no window, and nothing to hold for it.
        let root_words = segments.iter().map(|s| s.dag.len_words(s.dag.num_terminals()));
        let all_words = root_words.fold(0u64, u64::saturating_add);
        let reach = reach.min(usize::try_from(all_words).unwrap_or(usize::MAX));
        let share = max_bytes / segments.len().max(1) as u64;
        if reach as u64 > share / 4 {
            return Err(too_many_edge_words(reach, share / 4));
        }
        let parts: Vec<_> = segments.iter().zip(rows).collect();
        parts
            .into_par_iter()
            .map(|(segment, rows)| Self::new(segment, rows, reach, share))
            .collect()
    }

    fn new(segment: &Arc<Segment>, rows: Vec<u32>, reach: usize, max_bytes: u64) -> Result<Self> {
        // Heads and tails apart, and then side by side: a walk wants both of a rule.
        let max_words = (max_bytes / 16).min(u64::from(u32::MAX / 2));
        let row = |word: u32| if rows.is_empty() { word } else { rows[word as usize] };
        if let Some(short) = ShortEdges::new(&segment.dag, reach, max_bytes, &rows) {
            return Ok(Self { segment: segment.clone(), ends: AllEnds::Short(short), rows, reach });
        }
        let (heads, tails) = rayon::join(
            || Ends::new(&segment.dag, reach, max_words, false, row),
            || Ends::new(&segment.dag, reach, max_words, true, row),
        );
        let (heads, tails) = (heads?, tails?);
        let mut words = Vec::with_capacity(heads.words.len() + tails.words.len());
        let spans = (0..heads.spans.len()).map(|rule_idx| {
            let (start, head) = (words.len() as u32, heads.of(rule_idx));
            let element = segment.dag.num_terminals() + rule_idx as u32;
            words.extend_from_slice(head);
            let has_tail = segment.dag.len_words(element) > head.len() as u64;
            if has_tail {
                words.extend_from_slice(tails.of(rule_idx));
            }
            Span { start, head_len: head.len() as u32 | if has_tail { HAS_TAIL } else { 0 } }
        });
        let ends = AllEnds::Long(spans.collect(), words);
        Ok(Self { segment: segment.clone(), ends, rows, reach })
    }

    /// The first words at `positions` of one rule, as many as a head has at most.
    pub fn head(&self, positions: Range<usize>, words: &mut Vec<u32>) {
        words.clear();
        for &element in &self.dag().grammar().symbols[positions] {
            if words.len() >= self.reach {
                break;
            }
            if element < self.dag().num_words() {
                words.push(self.row(element));
            } else if let Some(rule_idx) = self.dag().rule_of(element) {
                words.extend_from_slice(self.rule(rule_idx).0);
            }
        }
        words.truncate(self.reach);
    }

    /// The last words at `positions` of one rule, as many as a tail has at most.
    pub fn tail(&self, positions: Range<usize>, words: &mut Vec<u32>) {
        words.clear();
        for &element in self.dag().grammar().symbols[positions].iter().rev() {
            if words.len() >= self.reach {
                break;
            }
            if element < self.dag().num_words() {
                words.push(self.row(element));
            } else if let Some(rule_idx) = self.dag().rule_of(element) {
                let (head, tail) = self.rule(rule_idx);
                words.extend(tail.unwrap_or(head).iter().rev());
            }
        }
        words.truncate(self.reach);
        words.reverse();
    }

    /// Whether there are more than `len` words at `positions` of one rule.
    pub fn has_more_words(&self, positions: Range<usize>, len: u64) -> bool {
        let mut left = Some(len);
        let mut elements = self.dag().grammar().symbols[positions].iter();
        while let (Some(words), Some(&element)) = (left, elements.next()) {
            left = words.checked_sub(self.dag().len_words(element));
        }
        left.is_none()
    }

    /// The grammar.
    pub fn dag(&self) -> &Dag {
        &self.segment.dag
    }

    /// Main memory of the edges.
    pub fn memory_bytes(&self) -> usize {
        let ends = match &self.ends {
            AllEnds::Short(short) => short.memory_bytes(),
            AllEnds::Long(spans, words) => 4 * words.capacity() + 8 * spans.len(),
        };
        ends + 4 * self.rows.capacity()
    }

    /// Head and tail of a rule; without a tail the head is all.
    #[inline]
    fn rule(&self, rule_idx: usize) -> (&[u32], Option<&[u32]>) {
        let (spans, words) = match &self.ends {
            AllEnds::Short(short) => return short.rule(self.dag(), rule_idx),
            AllEnds::Long(spans, words) => (spans, words),
        };
        let span = spans[rule_idx];
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

    /// Hands the children at `positions` of one rule to `sink`.
    ///
    /// # Errors
    /// [`Error::Capacity`] where `sink` has met more than `max_met`.
    pub fn walk(
        &self,
        positions: Range<usize>,
        sink: &mut impl Sink,
        max_met: usize,
    ) -> Result<()> {
        let dag = self.dag();
        for step in dag.grammar().symbols[positions].chunks(STEP_WORDS / (self.reach + 1) + 1) {
            match &self.ends {
                AllEnds::Short(ShortEdges::One(table)) => sink.push_short(table, step),
                AllEnds::Short(ShortEdges::Two(table)) => sink.push_short(table, step),
                AllEnds::Long(..) => self.push_long(step, sink),
            }
            if sink.num_met() > max_met {
                return Err(too_many_windows(sink.num_met(), max_met));
            }
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
            } else if let Some(rule_idx) = dag.rule_of(element) {
                let (head, tail) = self.rule(rule_idx);
                sink.push_child(head, tail);
            }
        }
    }

    /// Walks over all rules and documents that lie at `positions`, each with its weight. Ranges
    /// that tile the grammar meet together what one walk over all of it meets.
    ///
    /// # Errors
    /// As [`walk`](Self::walk).
    pub fn walk_all(
        &self,
        positions: Range<usize>,
        sink: &mut impl Sink,
        max_met: usize,
    ) -> Result<()> {
        let grammar = self.dag().grammar();
        let num_terminals = grammar.num_terminals as usize;
        let root_len = grammar.root().len();
        let mut at = positions.start;
        let mut doc = grammar.doc_offsets.partition_point(|&start| start as usize <= at);
        while at < positions.end.min(root_len) {
            let end = grammar.doc_offsets[doc] as usize;
            let start = grammar.doc_offsets[doc - 1] as usize;
            self.walk_part(start, at..end.min(positions.end), 1, sink, max_met)?;
            (at, doc) = (end, doc + 1);
        }
        let mut rule = grammar.rule_offsets.partition_point(|&start| start as usize <= at);
        while at < positions.end {
            let end = grammar.rule_offsets[rule] as usize;
            let start = grammar.rule_offsets[rule - 1] as usize;
            let weight = self.dag().weights()[num_terminals + rule - 1];
            self.walk_part(start, at..end.min(positions.end), weight, sink, max_met)?;
            (at, rule) = (end, rule + 1);
        }
        Ok(())
    }

    /// Walks over part of the rule or document that begins at `start`, after what is before it.
    fn walk_part(
        &self,
        start: usize,
        part: Range<usize>,
        weight: u64,
        sink: &mut impl Sink,
        max_met: usize,
    ) -> Result<()> {
        sink.begin(weight);
        if start < part.start {
            let mut words = Vec::new();
            self.tail(start..part.start, &mut words);
            sink.prime(&words);
        }
        self.walk(part, sink, max_met)
    }

    /// The grammar in ranges of positions for tasks of about `len`.
    pub fn ranges(&self, len: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let end = self.dag().grammar().symbols.len();
        (0..end).step_by(len.max(1)).map(move |start| start..end.min(start + len.max(1)))
    }
}

fn too_many_edge_words(requested: usize, limit: u64) -> Error {
    let what = "the first and last words of the rules (words, at least)";
    Error::memory_of_task(what, requested as u64, limit)
}

pub(in crate::analytics) fn too_many_windows(requested: usize, limit: usize) -> Error {
    let what = "counting sequences (windows held at once, at least)";
    Error::memory_of_task(what, requested as u64, limit as u64)
}
