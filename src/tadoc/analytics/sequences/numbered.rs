//! Numbers of sequences, with which the documents of a segment are counted several at once.
//!
//! The windows across the elements of every rule and document are stored once, as numbers:
//!
//! ```text
//! keys      [a b c | b c d | ...]                 ascending, so numbers order as sequences do
//! numbers   rule 4: 0 17 3 | rule 5: 9 | ...      windows over the borders of its children
//! ```
//!
//! With numbers, a document is counted like a term vector: counts of 8 documents flow down at once, and a rule adds
//! them to the numbers it contains ([`lane_counts`](crate::analytics::lane_counts)). Nothing is packed, sorted or
//! compared again. Preparation takes O(windows of all rules), independent of the number of documents counted later.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::analytics::doc_terms::GROUP_LEN;
use crate::analytics::lane_counts::{Bodies, Held, LaneCounts};
use crate::error::Result;
use crate::ids::{DocId, RuleId};

use super::Sink;
use super::edges::{Edges, Limit};
use super::entries::{Entry, sorted_buckets};
use super::key::{Keep, Key, Packing};
use super::windows::{PackedWindows, Weights};

/// Number of positions of the grammar in a parallel task.
const TASK_POSITIONS: usize = 1 << 15;

/// Counts of a group of documents.
pub(super) type GroupCounts = LaneCounts<u32, GROUP_LEN>;

/// Numbers of the sequences that fit 64 bits.
#[derive(Debug)]
pub(super) struct Numbered {
    /// Sequences by number.
    keys: Vec<u64>,
    segments: Vec<SegmentNumbers>,
    num_rules: usize,
    /// Counts that no parallel task uses now.
    spare: Mutex<Vec<GroupCounts>>,
}

/// Numbers of one segment.
#[derive(Debug, Default)]
struct SegmentNumbers {
    /// Ends in `numbers`: document or rule `at` has the numbers `ends[at]..ends[at + 1]`. Documents
    /// come first, then the rules without the root.
    ends: Vec<u32>,
    numbers: Vec<u32>,
}

impl Numbered {
    /// Numbers the windows of all rules and documents. Sequences that occur only across segments
    /// get no number.
    ///
    /// # Errors
    /// [`Error::Capacity`] for more windows than `limit` has, and
    /// [`Error::Cancelled`].
    pub fn new(edges: &[Edges], packing: Packing, limit: &Limit<'_>) -> Result<Self> {
        let mut segments = Vec::with_capacity(edges.len());
        let mut entries = Vec::new();
        let mut base = 0;
        for edges in edges {
            let mut ends = vec![0u32];
            for (keys, lens) in windows(edges, packing, limit)? {
                entries.push((base, keys));
                let before = ends.len();
                ends.extend(lens);
                for at in before..ends.len() {
                    ends[at] += ends[at - 1];
                }
                base += entries.last().map_or(0, |(_, keys)| keys.len());
            }
            segments.push(SegmentNumbers { ends, numbers: Vec::new() });
        }
        let tasks = entries.into_par_iter().map(|(base, keys)| {
            let places = keys.iter().zip(base as u64..);
            places.map(|(&key, value)| Entry { key, value }).collect()
        });
        let canceller = limit.canceller();
        let all = (0, u64::ones(packing.all_bits()));
        let finish = |entries: &mut [Entry]| Ok(distinct(entries));
        let parts = sorted_buckets(tasks.collect(), all, canceller, finish)?;
        let mut keys = Vec::new();
        let mut numbers = vec![0u32; base];
        for (part, places) in parts {
            canceller.check()?;
            let first = keys.len() as u32;
            places.iter().for_each(|&(place, number)| numbers[place as usize] = first + number);
            keys.extend_from_slice(&part);
        }
        let mut start = 0;
        for segment in &mut segments {
            let len = segment.ends.last().map_or(0, |&end| end as usize);
            segment.numbers = numbers[start..start + len].to_vec();
            start += len;
        }
        let num_rules = edges.iter().map(|edges| edges.dag().grammar().num_rules()).max();
        let num_rules = num_rules.unwrap_or(0);
        let spare = Mutex::default();
        Ok(Self { keys, segments, num_rules, spare })
    }

    /// Returns the sequence of `number`.
    #[inline]
    pub fn key(&self, number: u32) -> u64 {
        self.keys[number as usize]
    }

    /// Returns counts for groups of documents, reused if possible.
    pub fn counts(&self) -> GroupCounts {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| LaneCounts::new(self.keys.len(), self.num_rules))
    }

    /// Takes back `counts` for the next parallel task.
    pub fn give_back(&self, counts: GroupCounts) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(counts);
    }

    /// Counts the sequences of documents that lie only in segment `at`.
    pub fn count(&self, edges: &Edges, at: usize, docs: &[DocId], counts: &mut GroupCounts) {
        counts.count(&Sequenced { edges, numbers: &self.segments[at] }, docs);
    }

    /// Returns the memory of the numbers in bytes.
    pub fn memory_bytes(&self) -> usize {
        let segments = self.segments.iter();
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        8 * self.keys.capacity()
            + segments.map(|s| 4 * (s.ends.capacity() + s.numbers.capacity())).sum::<usize>()
            + spare.iter().map(LaneCounts::memory_bytes).sum::<usize>()
    }
}

/// Returns, for each parallel task, the windows of its documents and rules with the number of
/// windows of each. Documents come before rules.
fn windows(edges: &Edges, packing: Packing, limit: &Limit<'_>) -> Result<Vec<(Vec<u64>, Vec<u32>)>> {
    let grammar = edges.dag().grammar();
    // Documents tile the root and rules follow it, so their positions ascend.
    let docs = grammar.docs().map(|doc| edges.dag().doc_range(doc));
    let rules = grammar.rule_ids().skip(1).map(|rule_id| edges.dag().rule_range(rule_id));
    let bodies: Vec<Range<usize>> = docs.chain(rules).collect();
    let mut tasks: Vec<&[Range<usize>]> = Vec::new();
    let mut rest = &bodies[..];
    while let Some(first) = rest.first() {
        let len = rest.partition_point(|body| body.start < first.start + TASK_POSITIONS);
        let (task, behind) = rest.split_at(len.max(1));
        tasks.push(task);
        rest = behind;
    }
    let weights = Weights::one();
    let count = |bodies: &[Range<usize>]| {
        let mut windows = PackedWindows::<u64, _>::new(packing, &weights, Keep::All, TASK_POSITIONS);
        let mut lens = Vec::with_capacity(bodies.len());
        let mut limit_of_task = limit.for_task();
        for body in bodies {
            let before = windows.keys.len();
            windows.begin(1);
            edges.walk(body.clone(), &mut windows, &mut limit_of_task)?;
            lens.push((windows.keys.len() - before) as u32);
        }
        limit.add(windows.keys.len())?;
        Ok((windows.keys, lens))
    };
    tasks.into_par_iter().map(count).collect()
}

/// Returns the distinct keys of sorted entries and, for each entry, its value and the index of its
/// key.
fn distinct(entries: &mut [Entry]) -> (Vec<u64>, Vec<(u32, u32)>) {
    let mut keys: Vec<u64> = Vec::new();
    let places = entries.iter().map(|entry| {
        if keys.last() != Some(&entry.key) {
            keys.push(entry.key);
        }
        (entry.value as u32, keys.len() as u32 - 1)
    });
    let places = places.collect();
    (keys, places)
}

/// Numbers and rules on right-hand sides.
struct Sequenced<'a> {
    edges: &'a Edges,
    numbers: &'a SegmentNumbers,
}

impl Sequenced<'_> {
    #[inline]
    fn at(&self, body: usize, positions: Range<usize>, mut f: impl FnMut(Held)) {
        let range = self.numbers.ends[body] as usize..self.numbers.ends[body + 1] as usize;
        self.numbers.numbers[range].iter().for_each(|&number| f(Held::Item(number)));
        let dag = self.edges.dag();
        for &element in &dag.grammar().symbols[positions] {
            if let Some(rule_id) = dag.rule_of(element) {
                f(Held::Rule(rule_id));
            }
        }
    }
}

impl Bodies for Sequenced<'_> {
    #[inline]
    fn len_of_doc(&self, doc: DocId) -> usize {
        self.edges.dag().doc_range(doc).len()
    }

    #[inline]
    fn for_doc(&self, doc: DocId, f: impl FnMut(Held)) {
        self.at(doc.index(), self.edges.dag().doc_range(doc), f);
    }

    #[inline]
    fn for_rule(&self, rule_id: RuleId, f: impl FnMut(Held)) {
        let body = self.edges.dag().grammar().num_docs() + rule_id.index() - 1;
        self.at(body, self.edges.dag().rule_range(rule_id), f);
    }
}
