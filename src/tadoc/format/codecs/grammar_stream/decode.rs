//! Decoder of all of the grammar section with entry points.
//!
//! The root and the rules are cut into eight parts each, and four parts are followed at once, because
//! within a part the decoder must know where one element ends before it can read the next. Two
//! threads share the work. One pass from the end then gives the rules to their first uses and finds
//! where rules begin. Another one over the root finds what is repeated and where documents begin.

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

/// Decodes the grammar of the segment `meta` from its section.
///
/// # Errors
/// [`Error::Format`](crate::Error::Format) if the section does not contain a grammar with the
/// numbers that `meta` declares.
pub(in crate::format) fn decode(place: Origin<'_>, codec: u16, bytes: &[u8], meta: &SegmentMeta) -> Result<Grammar> {
    let stored = Stored::read(place, codec, bytes, meta)?;
    let element_at = stored.elements_by_place().ok_or_else(|| stored.misfit())?;
    let num_docs = meta.num_docs as usize;
    let mut symbols = vec![0; meta.num_elements as usize + num_docs];
    let root_end = stored.units.total().root_len as usize + num_docs;
    let (root, rules) = symbols.split_at_mut(root_end);
    let root = parts_of(&stored.root, root, stored.root_parts());
    let rules = parts_of(&stored.rules, rules, stored.rules_parts());
    let follow_half = |root: &mut [PartTo<'_>], rules: &mut [PartTo<'_>]| {
        follow(&stored.root.codes, &element_at, root) & follow(&stored.rules.codes, &element_at, rules)
    };
    let (mut root, mut rules) = (root, rules);
    let (first_root, second_root) = root.split_at_mut(PARTS_AT_ONCE);
    let (first_rules, second_rules) = rules.split_at_mut(PARTS_AT_ONCE);
    let is_shared = meta.num_elements as usize >= MIN_SHARED_LEN;
    let fits = if is_shared {
        rayon::join(|| follow_half(first_root, first_rules), || follow_half(second_root, second_rules))
    } else {
        (follow_half(first_root, first_rules), follow_half(second_root, second_rules))
    };
    let settled = settle(&mut symbols, root_end, num_docs, stored.num_terminals, stored.num_rules);
    let (rule_offsets, doc_offsets) = settled.filter(|_| fits == (true, true)).ok_or_else(|| stored.misfit())?;
    Ok(Grammar { num_terminals: stored.num_terminals, rule_offsets, symbols, doc_offsets })
}

impl Stored<'_> {
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

    /// Returns where each part of the root begins, its number of elements and marks, and its end.
    fn root_parts(&self) -> [(Entrance, usize, u64); NUM_PARTS] {
        let units = &self.units;
        let num_symbols = units.symbols_before(units.len());
        let mut start = 0;
        std::array::from_fn(|part| {
            let end = units.unit_at_symbol(num_symbols * (part as u64 + 1) / NUM_PARTS as u64).max(start);
            let num_symbols = units.symbols_before(end) - units.symbols_before(start);
            let of_part = (units.entrance(start), num_symbols as usize, units.entrance(end).bit);
            start = end;
            of_part
        })
    }

    /// Returns the same of the rules.
    fn rules_parts(&self) -> [(Entrance, usize, u64); NUM_PARTS] {
        let context = self.rules.codes.first_context();
        let starts = self.part_starts();
        std::array::from_fn(|part| {
            let Part { num_elements, num_bits } = self.parts[part];
            let (_, bit) = starts[part];
            (Entrance { bit, context }, num_elements, bit + num_bits)
        })
    }
}

/// A part of a stream, and the place for its elements.
struct PartTo<'a> {
    reader: Reader<'a>,
    to: &'a mut [u32],
    end_bit: u64,
}

/// Cuts `to` into `parts`, which are as long together.
fn parts_of<'a>(
    coded: &Coded<'a>,
    to: &'a mut [u32],
    parts: [(Entrance, usize, u64); NUM_PARTS],
) -> [PartTo<'a>; NUM_PARTS] {
    let mut rest = to;
    parts.map(|(entrance, len, end_bit)| {
        let (to, others) = std::mem::take(&mut rest).split_at_mut(len);
        rest = others;
        PartTo { reader: coded.reader_at(entrance), to, end_bit }
    })
}

/// Decodes one element of each part in turn. Returns true if all parts end where they should.
fn follow(codes: &Codes, element_at: &[u32], parts: &mut [PartTo<'_>]) -> bool {
    if codes.is_empty() {
        return true;
    }
    let (last, first_repeat) = (element_at.len() - 1, element_at.len() as u32);
    let element = |(place, ends): (u32, u32)| {
        let known = element_at[last.min(place as usize)];
        let distance = place.wrapping_sub(first_repeat).wrapping_add(1);
        if place < first_repeat { known | ends } else { distance | REPEAT }
    };
    let shared_len = parts.iter().map(|part| part.to.len()).min().unwrap_or(0);
    if let [at_a, at_b, at_c, at_d] = parts {
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

/// Replaces the first uses and repeats in `symbols` and removes the marks. Returns the offsets of the
/// rules and of the documents, or `None` if the numbers differ or if a rule has no first use. A first
/// use without a rule becomes an element that no grammar has.
fn settle(
    symbols: &mut Vec<u32>,
    root_end: usize,
    num_docs: usize,
    num_terminals: u32,
    num_rules: u32,
) -> Option<(Vec<u32>, Vec<u32>)> {
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
    let is_each_rule_there = num_rules == 1 || num_ends + 1 == num_rules as usize;
    for symbol in symbols[..root_end].iter_mut().rev() {
        let is_first_use = *symbol == FIRST_USE;
        *symbol = if is_first_use { untaken[top] } else { *symbol };
        top = top.saturating_sub(usize::from(is_first_use));
    }
    let doc_offsets = settle_root(&mut symbols[..root_end], num_docs)?;
    symbols.drain(root_end - num_docs..root_end);
    rule_offsets.iter_mut().skip(1).for_each(|offset| *offset = offset.wrapping_sub(num_docs as u32));
    (top == 0 && is_each_rule_there).then_some((rule_offsets, doc_offsets))
}

/// Replaces the repeats in `root` and moves the elements before its marks. Returns the offsets of the
/// documents, or `None` if their number differs, if an element stands before the first one, or if a
/// repeat leads before the first element.
fn settle_root(root: &mut [u32], num_docs: usize) -> Option<Vec<u32>> {
    let mut doc_offsets = vec![0; num_docs + 1];
    let (mut doc, mut to) = (0, 0);
    let mut is_inside = true;
    for at in 0..root.len() {
        let symbol = root[at];
        let is_repeat = symbol >= REPEAT;
        let distance = if is_repeat { (symbol & !REPEAT) as usize } else { 0 };
        is_inside &= distance <= to;
        let source = root[to - distance.min(to)];
        doc_offsets[doc.min(num_docs)] = to as u32;
        root[to] = if is_repeat { source } else { symbol };
        let is_mark = usize::from(symbol == MARK);
        doc += is_mark;
        to += 1 - is_mark;
    }
    let is_whole = is_inside && doc == num_docs && doc_offsets[0] == 0 && to + num_docs == root.len();
    doc_offsets[num_docs] = to as u32;
    is_whole.then_some(doc_offsets)
}
