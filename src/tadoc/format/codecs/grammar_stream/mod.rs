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
mod whole;

use crate::error::{Error, Result};
use crate::format::codec_numbers::STREAM_WITHOUT_REPEATS;
use crate::format::cursor::{Cursor, Origin};
use crate::format::entropy::Monotone;
use crate::format::entropy::prefix_code::Class;
use crate::format::layout::SegmentMeta;

use codes::{Alphabet, Codes, Entrance, Reader, Units};

pub(in crate::format) use encode::{cut_units, encode};
pub(in crate::format) use partial::GrammarStream;
pub(in crate::format) use whole::{PartialGrammar, decode};

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
/// Number of parts of the rules, which are decoded beside each other, and least number of parts of the root.
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
