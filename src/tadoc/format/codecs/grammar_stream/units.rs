//! Units of a segment: runs of whole documents, or parts of long ones.

use std::ops::Range;

use crate::error::Result;
use crate::format::cursor::{Cursor, push_varint};

use super::codes::{Codes, Entrance};

/// Bits of a unit that say where its first document and its first code are.
const CONTINUES: u64 = 1 << 2;
const CONTEXT: u64 = CONTINUES - 1;
const FLAGS_LEN: u32 = 3;

/// A run of whole documents, or a part of a long one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Documents of which it has a part, by their ids in the segment. They may be empty.
    pub docs: Range<u32>,
    /// True if its first document begins in a unit before.
    pub continues: bool,
    /// Its elements in the root.
    pub root: Range<u32>,
    /// Bit of the root's stream at which its elements begin.
    pub bit: u64,
    /// Rules that are used first in it, by their numbers in the segment.
    pub rules: Range<u32>,
}

/// Sums over all units before one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Start {
    /// Documents that began.
    pub num_docs: u32,
    pub root_len: u32,
    pub num_rules: u32,
    pub entrance: Entrance,
    pub continues: bool,
}

/// The units of a segment, in the order of its text.
#[derive(Debug)]
pub struct Units {
    /// Start of each unit, and the end of the last one.
    starts: Vec<Start>,
}

impl Units {
    pub(super) fn new(starts: Vec<Start>) -> Self {
        Self { starts }
    }

    /// Appends the list of units to `out`.
    pub(super) fn push(&self, out: &mut Vec<u8>) {
        push_varint(out, self.len() as u64);
        for ends in self.starts.windows(2) {
            let [start, end] = [ends[0], ends[1]];
            let flags = u64::from(start.entrance.context) | if start.continues { CONTINUES } else { 0 };
            push_varint(out, u64::from(end.root_len - start.root_len));
            push_varint(out, u64::from(end.num_docs - start.num_docs) << FLAGS_LEN | flags);
            push_varint(out, u64::from(end.num_rules - start.num_rules));
            push_varint(out, end.entrance.bit - start.entrance.bit);
        }
    }

    /// Reads what [`push`](Self::push) writes.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let at = cursor.clone();
        let num_units = cursor.varint()?;
        let mut starts = vec![Start::default()];
        let mut end = Start::default();
        for _ in 0..num_units {
            let [root_len, docs, num_rules, num_bits] =
                [cursor.varint()?, cursor.varint()?, cursor.varint()?, cursor.varint()?];
            if let Some(start) = starts.last_mut() {
                start.continues = docs & CONTINUES != 0;
                start.entrance.context = (docs & CONTEXT) as u8;
            }
            let next = end.and(root_len, docs >> FLAGS_LEN, num_rules, num_bits);
            end = next.ok_or_else(|| at.fault("expected units of less than 2^32 elements"))?;
            starts.push(end);
        }
        Ok(Self { starts })
    }

    /// Returns the sums over all units.
    pub(super) fn total(&self) -> Start {
        self.starts[self.len()]
    }

    /// Returns true if `codes` have the contexts in which units begin.
    pub(super) fn contexts_exist_in(&self, codes: &Codes) -> bool {
        self.starts.iter().all(|start| codes.has_context(start.entrance.context))
    }

    /// Returns where unit `unit_idx` begins, or where the last one ends.
    pub(super) fn entrance(&self, unit_idx: usize) -> Entrance {
        self.starts[unit_idx].entrance
    }

    /// Returns the number of elements and marks before unit `unit_idx`.
    pub(super) fn symbols_before(&self, unit_idx: usize) -> u64 {
        self.starts[unit_idx].num_symbols()
    }

    /// Returns the last unit, or the end, before which there are at most `num_symbols` elements and
    /// marks.
    pub(super) fn unit_at_symbol(&self, num_symbols: u64) -> usize {
        self.starts.partition_point(|start| start.num_symbols() <= num_symbols).saturating_sub(1)
    }

    /// Returns the number of units.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns unit `unit_idx`, if it exists.
    pub fn get(&self, unit_idx: usize) -> Option<Unit> {
        let [start, end] = *self.starts.get(unit_idx..)?.first_chunk()?;
        let all_rules = self.total().num_rules + 1;
        Some(Unit {
            docs: start.first_doc()..end.num_docs,
            continues: start.continues,
            root: start.root_len..end.root_len,
            bit: start.entrance.bit,
            rules: all_rules - end.num_rules..all_rules - start.num_rules,
        })
    }

    /// Returns the units that have a part of document `doc`, which counts from the first document of
    /// the segment.
    pub fn for_doc(&self, doc: u32) -> Range<usize> {
        let first = self.starts[1..].partition_point(|end| end.num_docs <= doc);
        let end = self.starts[..self.len()].partition_point(|start| start.first_doc() <= doc);
        first..end.max(first)
    }
}

impl Start {
    fn num_symbols(self) -> u64 {
        u64::from(self.root_len) + u64::from(self.num_docs)
    }

    fn first_doc(self) -> u32 {
        self.num_docs.saturating_sub(u32::from(self.continues))
    }

    /// Returns the start behind a unit with these numbers.
    fn and(self, root_len: u64, num_docs: u64, num_rules: u64, num_bits: u64) -> Option<Self> {
        let sum = |sum: u32, more: u64| u32::try_from(more).ok().and_then(|more| sum.checked_add(more));
        Some(Self {
            num_docs: sum(self.num_docs, num_docs)?,
            root_len: sum(self.root_len, root_len)?,
            num_rules: sum(self.num_rules, num_rules)?,
            entrance: Entrance { bit: self.entrance.bit.checked_add(num_bits)?, context: 0 },
            continues: false,
        })
    }
}
