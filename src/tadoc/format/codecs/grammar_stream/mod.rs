//! Codec of the grammar section with entry points: parts of the text are decoded without the rest.
//!
//! ```text
//! section   head | ids | blocks | root | rules
//! head      named terminals u32 | named rules u32 | classes of repeats u8
//!           | length of root and of rules in bits, LEB128
//!           | number of units LEB128 | units | parts | codes of the root | codes of the rules
//! ids       for each group of terminals, then of rules: their ids, ascending
//! blocks    bit at which each block of 8 rules begins
//! root      elements of the documents, with a mark where a document begins
//! rules     elements of rule 1, 2, …; the last one of each rule is known by its code
//!
//! unit      elements | marks, continues, context | rules | bits                    LEB128 each
//! part      elements | bits                                                        LEB128 each
//! ```
//!
//! A *unit* is a run of whole documents or a part of a long one ([`cut_units`]). Its elements are a
//! range of the root, and the rules that are used first in it are a range of the rules. Rules are
//! numbered as in the other codecs: the rule that is completed last, the root, is rule 0. So units
//! at the begin of the text have the rules with the largest numbers.
//!
//! An element is the code of its group, in the context of the group before ([`codes`]), and its place
//! there. Groups double in size by falling number of uses, so a place costs about log2 of the rank.
//! Terminals and rules have groups of their own. The first use of a rule is a code without a place:
//! the rules below a rule follow it directly, and each takes the last first use that waits for one.
//!
//! ```text
//! 7  F a F     waits: F F            rule 8 takes the second one, rule 9 that of rule 8,
//! 8  b F       waits: F F            rule 10 the first one
//! 9  c d       waits: F
//! 10 e e       waits:
//! ```
//!
//! A rule refers only to rules behind it, which were used before. So no bytes describe a cycle. [`decode`] reads the
//! whole. [`GrammarStream`] reads units: their elements, and then each rule that these reach, once, by ascending
//! number. A rule is found by its block. So no reading takes more steps than there are elements in the section.
//!
//! An element of the root that stands in its unit before may be a *repeat*: the distance to that place,
//! in elements, with a group for each number of bits. Text repeats itself within 64 KiB, and a distance
//! of 11 bits is shorter than a place among 2^17. A repeat of a first use is the rule that takes it. So
//! a rule whose other uses are all repeats has no id in a group.
//!
//! Compared with the [packed](super::packed_grammar) codec, which has no entry points, sections of
//! the seven corpora and of 130 MB of sources have 0.79 (logs) to 1.04 (revisions) of the size, and all
//! of them is decoded in about the same time. Marks make it a fifth slower where each line is a
//! document. Repeats save 14 % of the root of sources and 26 % of that of logs, and codes by context 2
//! to 5 %. Ids and blocks take 5 to 10 %, of which 3 % make single ones readable.
//!
//! The head says where everything else is. So [a reader](crate::format::grammar_blocks) may have the head, ids, blocks
//! and rules, and of the root only the units that it decodes.

mod choice;
mod codes;
mod encode;
mod partial;
#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::format::codec_numbers::STREAM_WITHOUT_REPEATS;
use crate::format::cursor::{Cursor, Origin};
use crate::format::entropy::Monotone;
use crate::format::entropy::prefix_code::Class;
use crate::format::layout::SegmentMeta;
use crate::grammar::Grammar;

use codes::{Alphabet, Codes, ENDS, Entrance, Reader, Units};

pub(in crate::format) use encode::{cut_units, encode};
pub(in crate::format) use partial::{GrammarStream, PartialGrammar};

/// Places in a section, in bytes from its begin.
#[derive(Debug, Clone, Copy)]
pub(in crate::format) struct SectionPlaces {
    /// Length of the head.
    pub head_len: usize,
    pub root_start: usize,
    pub rules_start: usize,
}

/// Length of the text of a unit that ends inside a document, at least. A unit that ends with a
/// document has half of it or more. The lists that name units, and the text that is decoded for one
/// hit, grow in opposite directions with it.
const UNIT_BYTES: u64 = 64 << 10;
/// Number of elements of a unit, in the same way. Without it, repetitive text is cut into units of
/// few elements that all have the same words.
const UNIT_ELEMENTS: u32 = 2048;
/// Greatest number of elements and documents.
const MAX_SYMBOLS: u64 = u32::MAX as u64;
/// Number of rules of a block. With twice as many the section is 0.3 to 0.6 % smaller, and most steps
/// of reading one unit lead over rules that it does not need.
const BLOCK_LEN: u32 = 8;
/// Number of parts of the root and of the rules that are decoded at once.
const NUM_PARTS: usize = 8;

/// Greatest number of classes of repeats. Units have less than 2^24 elements where they repeat.
const MAX_REPEAT_CLASSES: u8 = 24;

/// Stands for a first use. Ids are smaller than it and [`MARK`].
const FIRST_USE: u32 = (1 << 31) - 1;
/// Bit of an element of the root that stands for a repeat. The others have its distance.
const REPEAT: u32 = 1 << 31;
/// Stands for the begin of a document.
const MARK: u32 = FIRST_USE - 1;

/// Log2 of the size of the smallest group, if there are so many ids.
const MIN_WIDTH: u8 = 4;

/// Returns the log2 of the size of each group of `num_ids` ids: 16, 32, 64, …, and the rest in
/// falling powers of two.
fn group_widths(num_ids: u32) -> Vec<u8> {
    let mut widths = Vec::new();
    let mut left = num_ids;
    let mut width = MIN_WIDTH;
    while left.checked_shr(width.into()).unwrap_or(0) > 0 {
        widths.push(width);
        left -= 1 << width;
        width += 1;
    }
    widths.extend((0..width).rev().filter(|bit| left >> bit & 1 == 1));
    widths
}

/// The classes of a stream: groups of terminals, groups of rules, first uses, and in the root also marks
/// and repeats.
#[derive(Debug)]
struct Classes {
    num_terminal_groups: usize,
    num_groups: usize,
    classes: Vec<Class>,
}

impl Classes {
    fn new(num_named_terminals: u32, num_named_rules: u32, num_repeat_classes: u8) -> Self {
        let terminals = group_widths(num_named_terminals);
        let rules = group_widths(num_named_rules);
        let num_terminal_groups = terminals.len();
        let num_groups = num_terminal_groups + rules.len();
        let mut start = 0;
        let widths = terminals.into_iter().chain(rules).chain([0, 0]).chain(0..num_repeat_classes);
        let classes = widths.map(|width| {
            let class = Class { start, width };
            start += 1 << width;
            class
        });
        Self { num_terminal_groups, num_groups, classes: classes.collect() }
    }

    /// Returns the number of ids in groups, which is the place of a first use. That of a mark follows it.
    fn num_named(&self) -> u32 {
        self.classes[self.num_groups].start
    }

    /// Returns the place of a repeat of the element before. Those of greater distances follow it.
    fn first_repeat(&self) -> u32 {
        self.num_named() + 2
    }

    fn first_use_class(&self) -> u8 {
        self.num_groups as u8
    }

    fn mark_class(&self) -> u8 {
        self.num_groups as u8 + 1
    }

    /// Returns the class of repeats of the least distance.
    fn first_repeat_class(&self) -> u8 {
        self.num_groups as u8 + 2
    }

    fn num_repeat_classes(&self) -> u8 {
        (self.classes.len() - self.num_groups) as u8 - 2
    }

    fn root_alphabet(&self) -> Alphabet {
        Alphabet::without_ends(&self.classes)
    }

    fn rules_alphabet(&self) -> Alphabet {
        Alphabet::with_ends(&self.classes[..=self.num_groups])
    }
}

/// A part of the rules that is decoded beside the others.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    num_elements: usize,
    num_bits: u64,
}

/// Elements in codes.
#[derive(Debug)]
struct Coded<'a> {
    codes: Codes,
    bytes: &'a [u8],
    num_bits: u64,
}

impl<'a> Coded<'a> {
    fn reader_at(&self, entrance: Entrance) -> Reader<'a> {
        Reader::new(self.bytes, entrance)
    }
}

/// A section of which no element is decoded.
#[derive(Debug)]
struct Stored<'a> {
    place: Origin<'a>,
    places: SectionPlaces,
    num_terminals: u32,
    num_rules: u32,
    units: Units,
    parts: [Part; NUM_PARTS],
    classes: Classes,
    /// Ids of terminals, and of rules, by group.
    ids: Vec<Monotone<'a>>,
    blocks: Monotone<'a>,
    root: Coded<'a>,
    rules: Coded<'a>,
}

impl<'a> Stored<'a> {
    /// Reads the section of `codec`, which must be one of [`is_stream`](crate::format::codec_numbers::is_stream).
    fn read(place: Origin<'a>, codec: u16, bytes: &'a [u8], meta: &SegmentMeta) -> Result<Self> {
        let misfit = || misfit(place);
        let mut cursor = Cursor::new(place, bytes);
        let num_terminals = meta.num_terminals();
        let num_rules = meta.num_rules;
        let num_inner = num_rules.checked_sub(1).ok_or_else(misfit)?;
        let [named_terminals, named_rules] = [cursor.u32()?, cursor.u32()?];
        let num_ids = u64::from(num_terminals) + u64::from(num_rules);
        if named_terminals > num_terminals || named_rules > num_inner || num_ids > u64::from(MARK) {
            return Err(misfit());
        }
        let num_repeat_classes = if codec == STREAM_WITHOUT_REPEATS { 0 } else { cursor.u8()? };
        if num_repeat_classes > MAX_REPEAT_CLASSES {
            return Err(misfit());
        }
        let [root_bits, rules_bits] = [cursor.varint()?, cursor.varint()?];
        // Each element takes a bit or more, so the bytes bound the memory of all that follows.
        let most_bits = 8 * bytes.len() as u64;
        let num_bits = root_bits.checked_add(rules_bits).filter(|&sum| sum <= most_bits);
        let num_symbols = meta.num_elements.checked_add(meta.num_docs);
        let fits = num_symbols.zip(num_bits).is_some_and(|(symbols, bits)| symbols <= bits.min(MAX_SYMBOLS));
        if !fits {
            return Err(misfit());
        }
        let units = Units::read(&mut cursor)?;
        let total = units.total();
        let root_len = u64::from(total.root_len);
        let rules_len = meta.num_elements.checked_sub(root_len).ok_or_else(misfit)?;
        let fits = u64::from(total.num_docs) == meta.num_docs
            && total.num_rules == num_inner
            && total.entrance.bit == root_bits
            && rules_len >= u64::from(num_inner)
            && (rules_len > 0) == (num_inner > 0);
        if !fits {
            return Err(misfit());
        }
        let parts = read_parts(&mut cursor, rules_len, rules_bits)?;
        let classes = Classes::new(named_terminals, named_rules, num_repeat_classes);
        let root_codes = Codes::read(&mut cursor, &classes.root_alphabet())?;
        let rules_codes = Codes::read(&mut cursor, &classes.rules_alphabet())?;
        let root_is_empty = root_len + meta.num_docs == 0;
        let fits = root_codes.is_empty() == root_is_empty && rules_codes.is_empty() == (rules_len == 0);
        if !fits || !units.contexts_exist_in(&root_codes) {
            return Err(misfit());
        }
        let head_len = bytes.len() - cursor.remaining();
        let groups = classes.classes[..classes.num_groups].iter().enumerate();
        let ids = groups.map(|(group, class)| {
            let limit = if group < classes.num_terminal_groups { num_terminals } else { num_rules };
            Monotone::read(&mut cursor, 1 << class.width, limit.into())
        });
        let ids = ids.collect::<Result<_>>()?;
        let num_blocks = num_inner.div_ceil(BLOCK_LEN) as usize;
        let blocks = Monotone::read(&mut cursor, num_blocks, rules_bits.saturating_add(1))?;
        let root_start = bytes.len() - cursor.remaining();
        let root_bytes = cursor.take(root_bits.div_ceil(8) as usize)?;
        let places = SectionPlaces { head_len, root_start, rules_start: root_start + root_bytes.len() };
        let rules_bytes = cursor.take(rules_bits.div_ceil(8) as usize)?;
        cursor.finish()?;
        let root = Coded { codes: root_codes, bytes: root_bytes, num_bits: root_bits };
        let rules = Coded { codes: rules_codes, bytes: rules_bytes, num_bits: rules_bits };
        Ok(Self { place, places, num_terminals, num_rules, units, parts, classes, ids, blocks, root, rules })
    }

    /// Returns the id of the element at `place` among those of all groups, or `None` if the section
    /// does not say it.
    fn id_at(&self, place: u32) -> Option<u32> {
        let groups = &self.classes.classes[..self.classes.num_groups];
        let group = groups.partition_point(|class| class.start <= place).checked_sub(1)?;
        let id = self.ids[group].get((place - groups[group].start) as usize)?;
        self.element_for(group, id)
    }

    /// Returns the element that has number `id` in `group`. No rule uses the root.
    #[inline]
    fn element_for(&self, group: usize, id: u64) -> Option<u32> {
        let id = id as u32;
        if group < self.classes.num_terminal_groups {
            return Some(id);
        }
        (id > 0).then_some(self.num_terminals + id)
    }

    /// Returns the number of elements and of bits of the rules before each part.
    fn part_starts(&self) -> [(usize, u64); NUM_PARTS] {
        let mut start = (0, 0);
        std::array::from_fn(|part| {
            let Part { num_elements, num_bits } = self.parts[part];
            let part_start = start;
            start = (start.0 + num_elements, start.1 + num_bits);
            part_start
        })
    }

    fn misfit(&self) -> Error {
        misfit(self.place)
    }
}

/// Reads the parts of the rules, which must have `num_elements` and `num_bits` together.
fn read_parts(cursor: &mut Cursor<'_>, num_elements: u64, num_bits: u64) -> Result<[Part; NUM_PARTS]> {
    let at = cursor.clone();
    let mut elements_left = num_elements;
    let mut bits_left = num_bits;
    let mut parts = [Part::default(); NUM_PARTS];
    for part in &mut parts {
        let [num_elements, num_bits] = [cursor.varint()?, cursor.varint()?];
        let left = elements_left.checked_sub(num_elements).zip(bits_left.checked_sub(num_bits));
        let Some(left) = left else {
            return Err(at.fault("expected parts that are all of the rules"));
        };
        (elements_left, bits_left) = left;
        *part = Part { num_elements: num_elements as usize, num_bits };
    }
    if (elements_left, bits_left) != (0, 0) {
        return Err(at.fault("expected parts that are all of the rules"));
    }
    Ok(parts)
}

fn misfit(place: Origin<'_>) -> Error {
    place.fault(0, "expected units and rules that fit one another and the declared counts")
}

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
    let mut root = root;
    let mut rules = rules;
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
            let bounds = (units.entrance(start), num_symbols as usize, units.entrance(end).bit);
            start = end;
            bounds
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
    let last = element_at.len() - 1;
    let first_repeat = element_at.len() as u32;
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
    let mut doc = 0;
    let mut to = 0;
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
