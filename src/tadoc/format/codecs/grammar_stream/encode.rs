//! Encoder of the grammar section with entry points: events and bits.
//!
//! A repeat takes a code and the bits of its distance, an element with a name a code and the bits of its place in a
//! group, see [`choice`](super::choice). All steps take O(elements) of time and memory.

use crate::error::{Error, Result};
use crate::format::cursor::push_varint;
use crate::format::entropy::encode_monotone;
use crate::grammar::Grammar;

use super::choice::{Choice, Groups, RulesWritten, USED_FIRST};
use super::codes::{Event, Start, Units, encode_stream};
use super::{BLOCK_LEN, Classes, MARK, MAX_SYMBOLS, NUM_PARTS, UNIT_BYTES, UNIT_ELEMENTS};

/// Returns the position in the root at which each unit of `grammar` begins. `len_bytes` returns the
/// length of an element's expansion. A unit ends inside a document when it has 64 KiB of text and
/// 2,048 elements, and with a document when it has half of both. The first unit begins at 0. There
/// is none if there are no documents.
pub fn cut_units(grammar: &Grammar, len_bytes: impl Fn(u32) -> u64) -> Vec<u32> {
    let root = grammar.root();
    let mut starts = Vec::new();
    if grammar.num_docs() > 0 {
        starts.push(0);
    }
    let mut unit_bytes = 0u64;
    let mut unit_len = 0u32;
    for ends in grammar.doc_offsets.windows(2) {
        for at in ends[0]..ends[1] {
            if unit_bytes >= UNIT_BYTES && unit_len >= UNIT_ELEMENTS {
                starts.push(at);
                (unit_bytes, unit_len) = (0, 0);
            }
            unit_bytes = unit_bytes.saturating_add(len_bytes(root[at as usize]));
            unit_len += 1;
        }
        let is_full = 2 * unit_bytes.min(UNIT_BYTES) >= UNIT_BYTES && 2 * unit_len >= UNIT_ELEMENTS;
        if is_full && (ends[1] as usize) < root.len() {
            starts.push(ends[1]);
            (unit_bytes, unit_len) = (0, 0);
        }
    }
    starts
}

/// Returns the section's bytes for `grammar`, which must be valid, with units that begin at
/// `unit_starts`, as [`cut_units`] returns them.
///
/// # Errors
/// [`Error::Capacity`] if it has more than 2^31 - 2 ids or 2^32 - 1 elements and documents.
pub(in crate::format) fn encode(grammar: &Grammar, unit_starts: &[u32]) -> Result<Vec<u8>> {
    let num_ids = u64::from(grammar.num_terminals) + grammar.num_rules() as u64;
    check_number("ids of a segment", num_ids, MARK.into())?;
    let num_symbols = grammar.symbols.len() as u64 + grammar.num_docs() as u64;
    check_number("elements and documents of a segment", num_symbols, MAX_SYMBOLS)?;
    let rules = RulesWritten::new(grammar);
    let (root, inner) = rules.symbols.split_at(grammar.root().len());
    let choice = Choice::new(grammar, &rules.symbols, unit_starts);
    let coding = Coding::new(grammar, &choice);
    let mut starts = unit_sums(grammar, unit_starts, &rules);
    let root_events = coding.root_events(grammar, root, &choice.repeats);
    let (rules_events, rule_starts) = coding.rules_events(inner, &rules.lens);

    let mut root_codes = Vec::new();
    let alphabet = coding.classes.root_alphabet();
    let first_events: Vec<usize> = starts.iter().map(|start| (start.root_len + start.num_docs) as usize).collect();
    let (root_bytes, entrances) = encode_stream(&mut root_codes, &alphabet, &root_events, &first_events);
    starts.iter_mut().zip(&entrances).for_each(|(start, &entrance)| start.entrance = entrance);
    let mut rules_codes = Vec::new();
    let part_starts = part_starts(&rule_starts, rules_events.len());
    let wanted = block_and_part_starts(&rule_starts, &part_starts);
    let alphabet = coding.classes.rules_alphabet();
    let (rules_bytes, rule_entrances) = encode_stream(&mut rules_codes, &alphabet, &rules_events, &wanted);
    let bit_at = |event: usize| wanted.binary_search(&event).map_or(0, |at| rule_entrances[at].bit);
    let rules_bits = bit_at(rules_events.len());

    let mut out = Vec::new();
    out.extend(coding.num_named[0].to_le_bytes());
    out.extend(coding.num_named[1].to_le_bytes());
    out.push(coding.classes.num_repeat_classes());
    push_varint(&mut out, entrances.last().map_or(0, |end| end.bit));
    push_varint(&mut out, rules_bits);
    Units::new(starts).push(&mut out);
    for ends in part_starts.windows(2) {
        push_varint(&mut out, (ends[1] - ends[0]) as u64);
        push_varint(&mut out, bit_at(ends[1]) - bit_at(ends[0]));
    }
    out.extend(root_codes);
    out.extend(rules_codes);
    coding.push_ids(&mut out, grammar);
    let blocks: Vec<u64> = rule_starts.iter().step_by(BLOCK_LEN as usize).map(|&event| bit_at(event)).collect();
    encode_monotone(&mut out, &blocks, rules_bits + 1);
    out.extend(root_bytes);
    out.extend(rules_bytes);
    Ok(out)
}

fn check_number(what: &'static str, requested: u64, limit: u64) -> Result<()> {
    if requested <= limit {
        return Ok(());
    }
    Err(Error::Capacity { what, requested, limit, knob: "nothing (write smaller segments)" })
}

/// Returns the sums before each unit and at the end, without entrances. The marks of empty documents
/// stand in the unit that begins at their position.
fn unit_sums(grammar: &Grammar, unit_starts: &[u32], rules: &RulesWritten) -> Vec<Start> {
    let root_len = grammar.root().len() as u32;
    let mut num_rules = num_rules_before(unit_starts, root_len, rules).into_iter();
    let starts = unit_starts.iter().chain([&root_len]).map(|&at| {
        let is_end = at == root_len && num_rules.len() == 1;
        let begun = |&start: &u32| start < at || is_end;
        let num_docs = grammar.doc_offsets[..grammar.num_docs()].partition_point(begun);
        let continues = at < root_len && num_docs > 0 && grammar.doc_offsets[num_docs] > at;
        let num_rules = num_rules.next().unwrap_or(0);
        Start { num_docs: num_docs as u32, root_len: at, num_rules, continues, ..Start::default() }
    });
    starts.collect()
}

/// Returns the number of rules that are used first before each unit, and the number of all.
fn num_rules_before(unit_starts: &[u32], root_len: u32, rules: &RulesWritten) -> Vec<u32> {
    let (root, inner) = rules.symbols.split_at(root_len as usize);
    let num_first_uses = |symbols: &[u32]| symbols.iter().filter(|&&element| element == USED_FIRST).count();
    let mut sums = vec![rules.lens.len() as u32];
    // The last unit has the rules with the smallest numbers, which `inner` begins with.
    let mut rest = inner;
    let mut lens = rules.lens.iter().rev();
    let mut end = root_len;
    for &start in unit_starts.iter().rev() {
        let mut num_waiting = num_first_uses(&root[start as usize..end as usize]);
        let mut num_rules = 0;
        while num_waiting > 0 {
            let (rule, behind) = rest.split_at(lens.next().map_or(0, |&len| len as usize));
            num_waiting = num_waiting - 1 + num_first_uses(rule);
            rest = behind;
            num_rules += 1;
        }
        sums.push(sums[sums.len() - 1] - num_rules);
        end = start;
    }
    sums.reverse();
    sums
}

/// Returns where each part of the rules begins, in equal distances as far as blocks allow, and the
/// end. `rule_starts` are the events at which rules begin.
fn part_starts(rule_starts: &[usize], num_events: usize) -> Vec<usize> {
    let starts = (0..NUM_PARTS).map(|part| {
        let wanted = num_events * part / NUM_PARTS;
        let rule = rule_starts.partition_point(|&start| start < wanted).next_multiple_of(BLOCK_LEN as usize);
        rule_starts.get(rule).copied().unwrap_or(num_events)
    });
    starts.chain([num_events]).collect()
}

/// Returns the events at which blocks and parts begin, and the end, ascending.
fn block_and_part_starts(rule_starts: &[usize], part_starts: &[usize]) -> Vec<usize> {
    let mut starts: Vec<usize> = rule_starts.iter().step_by(BLOCK_LEN as usize).copied().collect();
    starts.extend(part_starts);
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Group of an element and its place there. It is zero for an element without a name.
#[derive(Clone, Copy, Default)]
struct Name {
    group: u8,
    place: u32,
}

/// Groups of the elements of a grammar.
struct Coding {
    classes: Classes,
    /// Number of terminals and of rules that are named.
    num_named: [u32; 2],
    names: Vec<Name>,
    /// Ids of each group, ascending.
    members: Vec<Vec<u32>>,
}

impl Coding {
    /// Names the elements of `grammar` that are used by their names in `choice`.
    fn new(grammar: &Grammar, choice: &Choice) -> Self {
        let Groups { num_named, group_of } = Groups::new(&choice.num_uses, grammar.num_terminals);
        let classes = Classes::new(num_named[0], num_named[1], choice.num_repeat_classes);
        let groups = &classes.classes[..classes.num_groups];
        let mut members: Vec<Vec<u32>> = groups.iter().map(|group| Vec::with_capacity(1 << group.width)).collect();
        let mut names = vec![Name::default(); group_of.len()];
        for ((id, name), &group) in (0..).zip(&mut names).zip(&group_of) {
            if let Some(members) = members.get_mut(usize::from(group)) {
                *name = Name { group, place: members.len() as u32 };
                members.push(id);
            }
        }
        Self { classes, num_named, names, members }
    }

    /// Returns the class and the place of an element, which is repeated from a place `distance` before
    /// if that is not 0.
    fn class_and_place(&self, element: u32, distance: u32) -> (u8, u32) {
        if element == USED_FIRST {
            (self.classes.first_use_class(), 0)
        } else if distance > 0 {
            let width = distance.ilog2();
            (self.classes.first_repeat_class() + width as u8, distance - (1 << width))
        } else {
            let Name { group, place } = self.names[element as usize];
            (group, place)
        }
    }

    /// Returns the elements of `root` with the marks of the documents.
    fn root_events(&self, grammar: &Grammar, root: &[u32], repeats: &[u32]) -> Vec<Event> {
        let mark = Event { symbol: self.classes.mark_class(), place: 0 };
        let mut events = Vec::with_capacity(root.len() + grammar.num_docs());
        for ends in grammar.doc_offsets.windows(2) {
            events.push(mark);
            for at in ends[0] as usize..ends[1] as usize {
                let (symbol, place) = self.class_and_place(root[at], repeats[at]);
                events.push(Event { symbol, place });
            }
        }
        events
    }

    /// Returns the elements of the rules, and the place at which each of them begins. `lens` has
    /// the lengths, last rule first.
    fn rules_events(&self, symbols: &[u32], lens: &[u32]) -> (Vec<Event>, Vec<usize>) {
        let mut events = Vec::with_capacity(symbols.len());
        let mut starts = Vec::with_capacity(lens.len());
        let mut rest = symbols;
        for &len in lens.iter().rev() {
            starts.push(events.len());
            let (rule, others) = rest.split_at(len as usize);
            rest = others;
            for (at, &element) in (1..).zip(rule) {
                let (class, place) = self.class_and_place(element, 0);
                events.push(Event { symbol: 2 * class + u8::from(at == len), place });
            }
        }
        (events, starts)
    }

    fn push_ids(&self, out: &mut Vec<u8>, grammar: &Grammar) {
        for (group, members) in self.members.iter().enumerate() {
            let (first, limit) = if group < self.classes.num_terminal_groups {
                (0, grammar.num_terminals)
            } else {
                (grammar.num_terminals, grammar.num_rules() as u32)
            };
            let ids: Vec<u64> = members.iter().map(|&id| u64::from(id - first)).collect();
            encode_monotone(out, &ids, limit.into());
        }
    }
}
