//! Packed codec of the grammar section, which earlier builds wrote in the layout `fast`: static codes without
//! entry points. It is read and not written.
//!
//! ```text
//! section   document lengths | rule lengths, last rule first | group of each id | elements
//! group     ids by falling number of uses:  16 16 │ 32 32 │ 64 64 │ … │ rest in powers of two
//! element   code of the group, place in the group; or the code of a first use
//!
//! rules     … R7 = d ▪   R3 = e e │ stack      the last rule is read first; ▪ takes the rule that
//!               R7 = d R3         │ R7         was read last and is not taken yet
//! ```
//!
//! All four parts are lists in prefix codes ([`prefix_code`](crate::format::entropy::prefix_code)). An id costs about
//! log2 of its rank by number of uses, so the section has nearly the zero-order entropy of the elements. Groups are as
//! large as their places, so no place is wasted. The group of each id is stored, because ids of words are sorted and
//! those of rules go from parents to children.
//!
//! Rules are numbered depth-first as in the other [codec](super::grammar): the rule that is completed last, the root,
//! is rule 0. The rules that a rule uses first are therefore the ones that were read last, and their first uses need no
//! id. A rule can use only rules that were read before, so no bytes describe a cycle or a rule without use.

use crate::error::{Error, Result};
use crate::format::cursor::{Cursor, Origin};
use crate::format::entropy::prefix_code::{Class, List, MAX_CLASSES, classes_by_len, decode_list};
use crate::format::layout::SegmentMeta;
use crate::grammar::Grammar;

/// Stands for a first use, and is the place behind those of all groups.
const FIRST_USE: u32 = u32::MAX;
/// Log2 of the size of the two smallest groups, if there are fewer than 2^20 ids.
const MIN_WIDTH: u8 = 4;
/// Most doublings of the size of groups. With two groups of each size and 31 for the rest there are
/// fewer groups than classes.
const MAX_DOUBLINGS: u8 = 15;

/// Decodes the grammar of the segment `meta` from its section.
///
/// # Errors
/// [`Error::Format`] if the section does not contain a grammar with the numbers
/// that `meta` declares.
pub(in crate::format) fn decode(place: Origin<'_>, bytes: &[u8], meta: &SegmentMeta) -> Result<Grammar> {
    let stored = Stored::read(place, bytes, meta)?;
    let symbols = stored.elements.decode(stored.element_at())?;
    let Stored { rule_offsets, doc_offsets, .. } = stored;
    let num_terminals = meta.num_terminals();
    let mut grammar = Grammar { num_terminals, rule_offsets, symbols, doc_offsets };
    let mut untaken = Untaken::new(num_terminals, grammar.num_rules());
    untaken.fill_rules(&grammar.rule_offsets, &mut grammar.symbols);
    if untaken.is_empty() { Ok(grammar) } else { Err(misfit(place)) }
}

/// The lists of a section, of which the elements are not decoded.
#[derive(Debug)]
struct Stored<'a> {
    rule_offsets: Vec<u32>,
    doc_offsets: Vec<u32>,
    /// The ids by place, and [`FIRST_USE`] behind them.
    id_at: Vec<u32>,
    elements: List<'a>,
}

impl<'a> Stored<'a> {
    fn read(place: Origin<'a>, bytes: &'a [u8], meta: &SegmentMeta) -> Result<Self> {
        let misfit = || misfit(place);
        let mut cursor = Cursor::new(place, bytes);
        let doc_lens = decode_list(&mut cursor, &classes_by_len(), meta.num_docs, |len| len)?;
        let num_inner = u64::from(meta.num_rules).saturating_sub(1);
        let rule_lens = decode_list(&mut cursor, &classes_by_len(), num_inner, |len| len)?;
        let num_ids = u64::from(meta.num_terminals()) + u64::from(meta.num_rules);
        let groups = decode_list(&mut cursor, &classes_of_groups(), num_ids, |group| group)?;
        let (widths, mut id_at) = ids_by_group(&groups).ok_or_else(misfit)?;
        // No rule uses the root.
        if id_at.contains(&meta.num_terminals()) {
            return Err(misfit());
        }
        let classes = classes_of_elements(&widths);
        // First uses are frequent and follow no pattern, so a branch for them costs more than all
        // the rest.
        id_at.push(FIRST_USE);
        let elements = List::read(&mut cursor, &classes, meta.num_elements)?;
        cursor.finish()?;
        let num_elements = meta.num_elements as u32;
        let rule_offsets = rule_offsets(&rule_lens, num_elements).ok_or_else(misfit)?;
        let doc_offsets = ends(&doc_lens).filter(|ends| ends.last() == rule_offsets.get(1));
        let doc_offsets = doc_offsets.ok_or_else(misfit)?;
        Ok(Self { rule_offsets, doc_offsets, id_at, elements })
    }

    /// Returns a function from places to elements, with [`FIRST_USE`] for first uses.
    fn element_at(&self) -> impl Fn(u32) -> u32 + Copy + Sync {
        let id_at = &self.id_at[..];
        let last = self.id_at.len() - 1;
        move |place| id_at[last.min(place as usize)]
    }
}

fn misfit(place: Origin<'_>) -> Error {
    place.fault(0, "expected rules that fit one another and the declared counts")
}

/// Returns the log2 of the size of each group of `num_ids` ids.
fn group_widths(num_ids: u32) -> Vec<u8> {
    let mut widths = Vec::new();
    let mut left = num_ids;
    let log2 = num_ids.checked_ilog2().unwrap_or(0) as u8;
    let mut width = MIN_WIDTH.max(log2.saturating_sub(MAX_DOUBLINGS));
    while left >> width >= 2 {
        widths.extend([width, width]);
        left -= 2 << width;
        width += 1;
    }
    let rest = (0..u32::BITS as u8).rev().filter(|bit| left >> bit & 1 == 1);
    widths.extend(rest);
    widths
}

/// Returns the classes of the groups of ids: 0 for ids that are never named, and one for each group
/// that there can be, because the decoder learns their number from this list.
fn classes_of_groups() -> [Class; MAX_CLASSES] {
    std::array::from_fn(|group| Class { start: group as u32, width: 0 })
}

/// Returns the classes of elements: one for each group, and one for a first use.
fn classes_of_elements(widths: &[u8]) -> Vec<Class> {
    let mut start = 0;
    let groups = widths.iter().map(|&width| {
        let class = Class { start, width };
        start += 1 << width;
        class
    });
    let mut classes: Vec<Class> = groups.collect();
    classes.push(Class { start, width: 0 });
    classes
}

/// Returns the log2 of the size of each group, and the ids group by group, ascending in each.
/// Returns `None` if the groups have other sizes than an encoder gives them.
fn ids_by_group(groups: &[u32]) -> Option<(Vec<u8>, Vec<u32>)> {
    let mut sizes = [0usize; MAX_CLASSES];
    groups.iter().for_each(|&group| sizes[group as usize % MAX_CLASSES] += 1);
    let num_named = groups.len() - sizes[0];
    let widths = group_widths(num_named as u32);
    let expected = widths.iter().map(|&width| 1usize << width);
    if widths.len() >= MAX_CLASSES || !expected.eq(sizes[1..=widths.len()].iter().copied()) {
        return None;
    }
    let mut next = [0usize; MAX_CLASSES];
    for group in 2..=widths.len() {
        next[group] = next[group - 1] + sizes[group - 1];
    }
    // Ids without a group go behind the others and are cut off.
    next[0] = num_named;
    let mut ids = vec![0; groups.len()];
    for (id, &group) in (0..).zip(groups) {
        let at = &mut next[group as usize % MAX_CLASSES];
        ids[*at] = id;
        *at += 1;
    }
    ids.truncate(num_named);
    Some((widths, ids))
}

/// Returns the offsets of the rules from the lengths of all but the root, last rule first, or
/// `None` if a rule is empty or if there are more elements than `num_elements`.
fn rule_offsets(lens: &[u32], num_elements: u32) -> Option<Vec<u32>> {
    let mut offsets = vec![0; lens.len() + 2];
    let mut offset = num_elements;
    for (to, &len) in offsets.iter_mut().skip(1).rev().zip([&0].into_iter().chain(lens)) {
        offset = offset.checked_sub(len)?;
        *to = offset;
    }
    lens.iter().all(|&len| len > 0).then_some(offsets)
}

/// Returns 0 and the sums of the first lengths, or `None` if they need more than 32 bits.
fn ends(lens: &[u32]) -> Option<Vec<u32>> {
    let mut end = 0u32;
    let ends = lens.iter().map(|&len| {
        end = end.checked_add(len)?;
        Some(end)
    });
    [Some(0)].into_iter().chain(ends).collect()
}

/// Rules that were read and whose first use was not, the last one on top.
#[derive(Debug)]
struct Untaken {
    /// Element of rule 0.
    num_terminals: u32,
    /// The rules, behind a first use that is never taken. The top is at `at_top`.
    elements: Vec<u32>,
    at_top: usize,
}

impl Untaken {
    fn new(num_terminals: u32, num_rules: usize) -> Self {
        Self { num_terminals, elements: vec![FIRST_USE; num_rules + 1], at_top: 0 }
    }

    /// Replaces the first uses in the rules of `symbols`, which end at `rule_offsets`.
    fn fill_rules(&mut self, rule_offsets: &[u32], symbols: &mut [u32]) {
        let mut rest = symbols;
        for rule_idx in (0..rule_offsets.len() - 1).rev() {
            let (before, rule) = rest.split_at_mut(rule_offsets[rule_idx] as usize);
            rest = before;
            self.fill(rule);
            if rule_idx > 0 {
                self.at_top += 1;
                self.elements[self.at_top] = self.num_terminals + rule_idx as u32;
            }
        }
    }

    /// Replaces each first use in `rule` by the rule on top, which it takes. First uses that find
    /// no rule keep their number, which no valid grammar has.
    fn fill(&mut self, rule: &mut [u32]) {
        // First uses follow no pattern, so there is no branch for them.
        for element in rule.iter_mut().rev() {
            let is_first_use = *element == FIRST_USE;
            let next = self.elements[self.at_top];
            *element = if is_first_use { next } else { *element };
            self.at_top = self.at_top.saturating_sub(usize::from(is_first_use));
        }
    }

    fn is_empty(&self) -> bool {
        self.at_top == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hold_every_id_once() {
        for num_ids in (0..3_000).chain([1 << 20, (1 << 20) - 1, u32::MAX]) {
            let widths = group_widths(num_ids);
            let sum: u64 = widths.iter().map(|&width| 1u64 << width).sum();
            assert_eq!(sum, u64::from(num_ids));
            assert!(widths.len() < MAX_CLASSES - 1, "{num_ids} ids in {} groups", widths.len());
        }
    }
}
