//! Decoder of a whole segment, or of all its rules and many of its units.
//!
//! ```text
//! units     . 1 2 . . 5 . 7      runs of units: 1 to 2, 5, 7
//! root      | 1 2 | 5 | 7 |      cut into parts, which are decoded four at a time
//! rules     | | | | | | | |      all of them, in parts, too
//! then      first uses and repeats become elements, and marks become begins of documents
//! reached   rules that the root reaches, and their terminals, numbered anew
//! ```
//!
//! Chains of codes that are followed side by side take a third of the time for each element of those that
//! [`partial`](super::partial) follows one by one. So it is worth reading rules that no unit reaches, unless the units
//! are few.

use std::cmp::Reverse;
use std::ops::{BitAnd, Range};

use rayon::prelude::*;

use crate::error::Result;
use crate::format::cursor::Origin;
use crate::format::layout::SegmentMeta;
use crate::grammar::Grammar;

use super::codes::{Codes, ENDS, Entrance, Reader};
use super::{Coded, FIRST_USE, MARK, NUM_PARTS, Part, REPEAT, Stored};

/// Number of parts that a thread follows at once.
const PARTS_AT_ONCE: usize = NUM_PARTS / 2;
/// Least number of elements that a second thread is asked to help with.
const MIN_SHARED_LEN: usize = 1 << 16;

/// The grammar of some units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialGrammar {
    /// The elements of the units, and the rules that they reach. It has all documents of the
    /// segment, and those outside the units are empty. If a document has parts in wanted units and
    /// in others between them, its wanted parts follow each other.
    pub grammar: Grammar,
    /// Id in the segment of each terminal of the grammar, ascending.
    pub terminals: Vec<u32>,
}

/// Decodes the grammar of the segment `meta` from its section.
///
/// # Errors
/// [`Error::Format`](crate::Error::Format) if the section does not contain a grammar with the
/// numbers that `meta` declares.
pub(in crate::format) fn decode(place: Origin<'_>, codec: u16, bytes: &[u8], meta: &SegmentMeta) -> Result<Grammar> {
    let stored = Stored::read(place, codec, bytes, meta)?;
    let all = 0..stored.units.len();
    stored.decode_runs(&[all])
}

/// The begin of a part of a stream, its number of elements and marks, and the bit at which it ends.
type Bounds = (Entrance, usize, u64);

impl Stored<'_> {
    /// Decodes all rules and `runs` of units, which ascend and lie apart. Documents outside of them are empty. The
    /// elements are not checked.
    pub(super) fn decode_runs(&self, runs: &[Range<usize>]) -> Result<Grammar> {
        let element_at = self.elements_by_place().ok_or_else(|| self.misfit())?;
        let root_end = runs.iter().map(|run| self.num_symbols(run)).sum();
        let rules_len: usize = self.parts.iter().map(|part| part.num_elements).sum();
        let mut symbols = vec![0; root_end + rules_len];
        let (root, rules) = symbols.split_at_mut(root_end);
        let mut root = parts_of(&self.root, root, self.root_parts(runs));
        let mut rules = parts_of(&self.rules, rules, self.rules_parts());
        let root_jobs = root.chunks_mut(PARTS_AT_ONCE).map(|parts| (&self.root.codes, parts));
        let rules_jobs = rules.chunks_mut(PARTS_AT_ONCE).map(|parts| (&self.rules.codes, parts));
        let jobs: Vec<(&Codes, &mut [PartTo<'_>])> = root_jobs.chain(rules_jobs).collect();
        let follow = |(codes, parts): (&Codes, &mut [PartTo<'_>])| follow(codes, &element_at, parts);
        let fits = if root_end + rules_len >= MIN_SHARED_LEN {
            jobs.into_par_iter().map(follow).reduce(|| true, BitAnd::bitand)
        } else {
            jobs.into_iter().map(follow).fold(true, BitAnd::bitand)
        };
        let settled = self.settle(&mut symbols, root_end, runs).filter(|_| fits);
        let (rule_offsets, doc_offsets) = settled.ok_or_else(|| self.misfit())?;
        Ok(Grammar { num_terminals: self.num_terminals, rule_offsets, symbols, doc_offsets })
    }

    /// Returns the number of elements and marks of a run of units.
    fn num_symbols(&self, run: &Range<usize>) -> usize {
        (self.units.symbols_before(run.end) - self.units.symbols_before(run.start)) as usize
    }

    /// Returns the elements by place, and behind them [`FIRST_USE`] and [`MARK`].
    fn elements_by_place(&self) -> Option<Vec<u32>> {
        let mut elements = Vec::with_capacity(self.classes.num_named() as usize + 2);
        for (group, ids) in self.ids.iter().enumerate() {
            for id in ids.numbers()? {
                elements.push(self.element_for(group, id)?);
            }
        }
        elements.extend([FIRST_USE, MARK]);
        Some(elements)
    }

    /// Cuts `runs` of units into parts. Long ones are about an eighth of all.
    fn root_parts(&self, runs: &[Range<usize>]) -> Vec<Bounds> {
        let units = &self.units;
        let num_symbols: usize = runs.iter().map(|run| self.num_symbols(run)).sum();
        let part_len = num_symbols.div_ceil(NUM_PARTS).max(1);
        let mut parts = Vec::new();
        for run in runs {
            let before = units.symbols_before(run.start);
            let len = self.num_symbols(run);
            let num_parts = len.div_ceil(part_len).max(1) as u64;
            let mut start = run.start;
            for part in 1..=num_parts {
                let end = units.unit_at_symbol(before + len as u64 * part / num_parts);
                let end = if part == num_parts { run.end } else { end.clamp(start, run.end) };
                parts.push((units.entrance(start), self.num_symbols(&(start..end)), units.entrance(end).bit));
                start = end;
            }
        }
        parts
    }

    /// Returns the parts of the rules.
    fn rules_parts(&self) -> Vec<Bounds> {
        let context = self.rules.codes.first_context();
        let starts = self.part_starts().into_iter().zip(&self.parts);
        let bounds = starts.map(|((_, bit), &Part { num_elements, num_bits })| {
            (Entrance { bit, context }, num_elements, bit + num_bits)
        });
        bounds.collect()
    }

    /// Replaces the first uses and repeats in `symbols`, which has the root with `runs` of units up to `root_end`, and
    /// removes the marks. Returns the offsets of the rules and of the documents, or `None` if the numbers differ or if
    /// a rule has no first use. A first use without a rule becomes an element that no grammar has.
    fn settle(&self, symbols: &mut Vec<u32>, root_end: usize, runs: &[Range<usize>]) -> Option<(Vec<u32>, Vec<u32>)> {
        let (mut rule_offsets, mut untaken) = self.settle_rules(symbols, root_end)?;
        let mut end = root_end;
        for run in runs.iter().rev() {
            let start = end - self.num_symbols(run);
            self.take_first_uses(&mut symbols[start..end], &mut untaken, run)?;
            end = start;
        }
        let (doc_offsets, root_len) = self.settle_root(&mut symbols[..root_end], runs)?;
        symbols.drain(root_len..root_end);
        let num_removed = (root_end - root_len) as u32;
        rule_offsets.iter_mut().skip(1).for_each(|offset| *offset = offset.wrapping_sub(num_removed));
        Some((rule_offsets, doc_offsets))
    }

    /// Replaces the first uses in the rules, which are `symbols` from `root_end` on. Returns the offsets of the rules,
    /// and the rules that are used first in the root, the least one last. Before them stands an element that no grammar
    /// has.
    fn settle_rules(&self, symbols: &mut [u32], root_end: usize) -> Option<(Vec<u32>, Vec<u32>)> {
        let num_terminals = self.num_terminals;
        let num_rules = self.num_rules;
        // First uses and ends follow no pattern, so there is no branch for them.
        let mut rule_offsets = vec![0; num_rules as usize + 1];
        let mut rule_idx = num_rules as usize - 1;
        rule_offsets[rule_idx + 1] = symbols.len() as u32;
        let mut untaken = vec![num_terminals + num_rules; num_rules as usize + 1];
        let mut top = 0;
        let mut num_ends = 0;
        if let Some(last) = symbols[root_end..].last_mut() {
            num_ends = (*last / ENDS) as usize;
            *last &= !ENDS;
        }
        for (at, symbol) in symbols.iter_mut().enumerate().skip(root_end).rev() {
            // The rule behind this element is whole if the element ends the one before.
            let ends = (*symbol / ENDS) as usize;
            num_ends += ends;
            let is_whole = ends & usize::from(rule_idx > 1);
            rule_offsets[rule_idx] = at as u32 + 1;
            untaken[top + 1] = num_terminals + rule_idx as u32;
            top += is_whole;
            rule_idx -= is_whole;
            let element = *symbol & !ENDS;
            let is_first_use = element == FIRST_USE;
            *symbol = if is_first_use { untaken[top] } else { element };
            top = top.saturating_sub(usize::from(is_first_use));
        }
        if num_rules > 1 {
            rule_offsets[1] = root_end as u32;
            top += 1;
            untaken[top] = num_terminals + 1;
        }
        untaken.truncate(top + 1);
        let is_each_rule_there = num_rules == 1 || num_ends + 1 == num_rules as usize;
        is_each_rule_there.then_some((rule_offsets, untaken))
    }

    /// Replaces the first uses in `symbols`, which are those of a run of units, by the last of the rules in `untaken`,
    /// behind those of later units. Removes all these. Returns `None` if others are used first in the units.
    fn take_first_uses(&self, symbols: &mut [u32], untaken: &mut Vec<u32>, run: &Range<usize>) -> Option<()> {
        let rules = self.units.rules(run);
        let num_from = |rule: u32| untaken.partition_point(|&element| element >= self.num_terminals + rule);
        let mut top = num_from(rules.start).checked_sub(1)?;
        let num_left = num_from(rules.end);
        for symbol in symbols.iter_mut().rev() {
            let is_first_use = *symbol == FIRST_USE;
            *symbol = if is_first_use { untaken[top] } else { *symbol };
            top = top.saturating_sub(usize::from(is_first_use));
        }
        untaken.truncate(num_left);
        (top + 1 == num_left).then_some(())
    }

    /// Replaces the repeats in `root`, which has `runs` of units, and moves the elements before its marks. Returns the
    /// offsets of the documents, and the number of elements. Returns `None` if a run has other documents, if an element
    /// stands before the first one, or if a repeat leads out of its run.
    fn settle_root(&self, root: &mut [u32], runs: &[Range<usize>]) -> Option<(Vec<u32>, usize)> {
        let num_docs = self.units.total().num_docs as usize;
        let mut doc_offsets = vec![0; num_docs + 1];
        let mut next_doc = 0;
        let mut at = 0;
        let mut to = 0;
        let mut is_whole = true;
        for run in runs {
            let run_start = to;
            let first_doc = self.units.docs_before(run.start);
            doc_offsets[next_doc..first_doc.max(next_doc)].fill(to as u32);
            let mut doc = first_doc;
            let end = at + self.num_symbols(run);
            for at in at..end {
                let symbol = root[at];
                let is_repeat = symbol >= REPEAT;
                let distance = if is_repeat { (symbol & !REPEAT) as usize } else { 0 };
                is_whole &= distance <= to - run_start;
                let source = root[to - distance.min(to)];
                doc_offsets[doc.min(num_docs)] = to as u32;
                root[to] = if is_repeat { source } else { symbol };
                let is_mark = usize::from(symbol == MARK);
                doc += is_mark;
                to += 1 - is_mark;
            }
            let has_mark = doc > first_doc;
            let starts_with_mark = has_mark && doc_offsets[first_doc.min(num_docs)] as usize == run_start;
            is_whole &= starts_with_mark || at == end || first_doc > 0 && self.units.continues(run.start);
            is_whole &= doc == self.units.docs_before(run.end);
            next_doc = doc.min(num_docs);
            at = end;
        }
        doc_offsets[next_doc..].fill(to as u32);
        is_whole.then_some((doc_offsets, to))
    }
}

/// A part of a stream, and the place for its elements.
struct PartTo<'a> {
    reader: Reader<'a>,
    to: &'a mut [u32],
    end_bit: u64,
}

/// Cuts `to` into `parts`, which are as long together. Returns the longest ones first, so that neighbours have about
/// the same length.
fn parts_of<'a>(coded: &Coded<'a>, to: &'a mut [u32], parts: Vec<Bounds>) -> Vec<PartTo<'a>> {
    let mut rest = to;
    let part = |(entrance, len, end_bit)| {
        let (to, others) = std::mem::take(&mut rest).split_at_mut(len);
        rest = others;
        PartTo { reader: coded.reader_at(entrance), to, end_bit }
    };
    let mut parts: Vec<PartTo<'a>> = parts.into_iter().map(part).collect();
    parts.sort_by_key(|part| Reverse(part.to.len()));
    parts
}

/// Decodes one element of each part in turn. Returns true if all parts end where they should.
fn follow(codes: &Codes, element_at: &[u32], parts: &mut [PartTo<'_>]) -> bool {
    if codes.is_empty() {
        return true;
    }
    let last = element_at.len() - 1;
    let first_repeat = element_at.len() as u32;
    let element = |(place, ends): (u32, u32)| {
        let known = element_at[last.min(place as usize)];
        let distance = place.wrapping_sub(first_repeat).wrapping_add(1);
        if place < first_repeat { known | ends } else { distance | REPEAT }
    };
    let mut shared_len = 0;
    if let [at_a, at_b, at_c, at_d] = parts {
        shared_len = at_a.to.len().min(at_b.to.len()).min(at_c.to.len()).min(at_d.to.len());
        // Copies stay in registers.
        let [mut a, mut b, mut c, mut d] = [at_a.reader, at_b.reader, at_c.reader, at_d.reader];
        let first = at_a.to[..shared_len].iter_mut().zip(&mut at_b.to[..shared_len]);
        let second = at_c.to[..shared_len].iter_mut().zip(&mut at_d.to[..shared_len]);
        for ((to_a, to_b), (to_c, to_d)) in first.zip(second) {
            *to_a = element(a.next(codes));
            *to_b = element(b.next(codes));
            *to_c = element(c.next(codes));
            *to_d = element(d.next(codes));
        }
        (at_a.reader, at_b.reader, at_c.reader, at_d.reader) = (a, b, c, d);
    }
    for part in parts.iter_mut() {
        part.to[shared_len..].iter_mut().for_each(|to| *to = element(part.reader.next(codes)));
    }
    parts.iter().all(|part| part.reader.position() == part.end_bit)
}

/// Returns the root of `grammar` and the rules that it reaches, numbered anew. Returns `None` if one of these has an
/// element that does not exist, or a rule before it.
pub(super) fn reached(grammar: &Grammar) -> Option<PartialGrammar> {
    let num_terminals = grammar.num_terminals as usize;
    let num_elements = num_terminals + grammar.num_rules();
    // 1 for each element that is reached, and its number then.
    let mut numbers = vec![0u32; num_elements];
    numbers[num_terminals] = 1;
    let mut num_symbols = 0;
    let mut is_valid = true;
    for rule_id in grammar.rule_ids() {
        let own = grammar.element_for(rule_id) as usize;
        if numbers[own] == 0 {
            continue;
        }
        let elements = grammar.rule(rule_id);
        num_symbols += elements.len();
        for &element in elements {
            let element = element as usize;
            let is_allowed = (element < num_terminals) | (element > own) & (element < num_elements);
            is_valid &= is_allowed;
            numbers[if is_allowed { element } else { own }] = 1;
        }
    }
    if !is_valid {
        return None;
    }
    let terminals = (0..).zip(&numbers[..num_terminals]).filter(|&(_, &is_reached)| is_reached == 1);
    let terminals: Vec<u32> = terminals.map(|(terminal, _)| terminal).collect();
    let mut symbols = Vec::with_capacity(num_symbols);
    let is_reached: Vec<bool> = numbers[num_terminals..].iter().map(|&is_reached| is_reached == 1).collect();
    let mut next = 0;
    for number in &mut numbers {
        let is_reached = *number;
        *number = next;
        next += is_reached;
    }
    let mut rule_offsets = vec![0];
    for rule_id in grammar.rule_ids().filter(|rule_id| is_reached[rule_id.index()]) {
        symbols.extend(grammar.rule(rule_id).iter().map(|&element| numbers[element as usize]));
        rule_offsets.push(symbols.len() as u32);
    }
    let num_terminals = terminals.len() as u32;
    let doc_offsets = grammar.doc_offsets.clone();
    Some(PartialGrammar { grammar: Grammar { num_terminals, rule_offsets, symbols, doc_offsets }, terminals })
}
