//! Decoder of some units of a segment.
//!
//! Many units are read with [all rules](super::whole). Of few of them, the elements are decoded first. They reach
//! rules, and these reach others, always with larger numbers. So one pass by ascending number decodes each rule once.
//! The decoder goes on where it is if the next rule is in the same block, and to the begin of its block otherwise.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::cursor::Origin;
use crate::format::framing::OpenLimits;
use crate::format::layout::SegmentMeta;
use crate::grammar::Grammar;

use super::codes::{ENDS, Entrance, Reader, Unit, Units};
use super::whole::{PartialGrammar, reached};
use super::{BLOCK_LEN, REPEAT, SectionPlaces, Stored};

/// Peak memory for each element that is decoded: symbols and offsets, while they grow.
const ELEMENT_BYTES: u64 = 16;
/// Bit of an element that is looked up and not reached.
const NOT_REACHED: u32 = 1 << 31;
/// Units whose elements are at least this part of those of the rules are many.
const MANY_PART: usize = 8;

/// The grammar section of a segment, of which units are decoded.
#[derive(Debug)]
pub struct GrammarStream<'a> {
    stored: Stored<'a>,
}

impl<'a> GrammarStream<'a> {
    /// Finds the parts of the section of segment `meta`. The time depends on the number of units,
    /// and not on that of elements.
    ///
    /// # Errors
    /// [`Error::Format`] if they are not those of a section with the numbers that `meta` declares.
    pub(in crate::format) fn open(place: Origin<'a>, codec: u16, bytes: &'a [u8], meta: &SegmentMeta) -> Result<Self> {
        Ok(Self { stored: Stored::read(place, codec, bytes, meta)? })
    }

    /// Returns the units of the segment.
    pub fn units(&self) -> &Units {
        &self.stored.units
    }

    /// Returns the units of the documents `docs`, which ascend.
    pub fn units_for(&self, docs: &[u32]) -> Vec<usize> {
        let mut units: Vec<usize> = docs.iter().flat_map(|&doc| self.units().for_doc(doc)).collect();
        units.dedup();
        units
    }

    /// Returns where the parts of the section are.
    pub(in crate::format) fn places(&self) -> SectionPlaces {
        self.stored.places
    }

    /// Returns the bytes of the section that have the elements of unit `unit_idx`, which exists.
    pub(in crate::format) fn root_bytes(&self, unit_idx: usize) -> Range<usize> {
        let start = self.units().entrance(unit_idx).bit / 8;
        let end = self.units().entrance(unit_idx + 1).bit.div_ceil(8);
        let root_start = self.places().root_start;
        root_start + start as usize..root_start + end as usize
    }

    /// Decodes the units `wanted`, which ascend. The grammar is valid, and all its rules are used.
    /// The time depends on the elements of these units and of the rules that they reach, on the
    /// number of documents, and a little on that of rules, or on that of all rules if it is less.
    ///
    /// # Errors
    /// [`Error::Format`] if the section does not have such units, [`Error::InvalidArgument`] if
    /// `wanted` does not ascend, [`Error::OutOfRange`] if a unit does not exist,
    /// [`Error::Capacity`] if the grammar needs more memory than `limits` allow.
    pub fn decode_units(&self, wanted: impl IntoIterator<Item = usize>, limits: &OpenLimits) -> Result<PartialGrammar> {
        let units = self.existing_units(wanted)?;
        if self.are_many(&units, limits) { self.decode_beside_rules(&units) } else { self.decode_alone(units, limits) }
    }

    /// Variant of [`decode_units`](Self::decode_units) that may keep rules that they do not reach. Returns the grammar,
    /// and the id in the segment of each of its terminals, ascending, unless it has all of them.
    ///
    /// # Errors
    /// Same as [`decode_units`](Self::decode_units).
    pub fn decode_with_rules(
        &self,
        wanted: impl IntoIterator<Item = usize>,
        limits: &OpenLimits,
    ) -> Result<(Grammar, Option<Vec<u32>>)> {
        let units = self.existing_units(wanted)?;
        if self.are_many(&units, limits) {
            let grammar = self.stored.decode_runs(&runs_of(&units))?;
            grammar.validate().map_err(|_| self.stored.misfit())?;
            return Ok((grammar, None));
        }
        let PartialGrammar { grammar, terminals } = self.decode_alone(units, limits)?;
        Ok((grammar, Some(terminals)))
    }

    /// Returns true if to decode all rules beside these units takes less time than to decode only what they reach, and
    /// if there is memory for it.
    fn are_many(&self, units: &[(usize, Unit)], limits: &OpenLimits) -> bool {
        let num_elements: usize = units.iter().map(|(_, unit)| unit.root.len()).sum();
        let num_ids = u64::from(self.stored.num_terminals) + u64::from(self.stored.num_rules);
        let rules_len: usize = self.stored.parts.iter().map(|part| part.num_elements).sum();
        let num_bytes = 16 * num_ids + ELEMENT_BYTES * (num_elements + rules_len) as u64;
        MANY_PART * num_elements >= rules_len && limits.check_memory(num_bytes).is_ok()
    }

    /// Decodes `units` and all rules, and keeps what the units reach.
    pub(super) fn decode_beside_rules(&self, units: &[(usize, Unit)]) -> Result<PartialGrammar> {
        let grammar = self.stored.decode_runs(&runs_of(units))?;
        reached(&grammar).ok_or_else(|| self.stored.misfit())
    }

    /// Decodes `units` and what they reach.
    pub(super) fn decode_alone(&self, units: Vec<(usize, Unit)>, limits: &OpenLimits) -> Result<PartialGrammar> {
        let mut reading = Reading::new(&self.stored, limits)?;
        reading.look_up_groups(units.iter().map(|(_, unit)| unit.root.len()).sum())?;
        let mut first_uses = Vec::with_capacity(units.len());
        for (unit_idx, unit) in &units {
            first_uses.push(reading.read_unit(*unit_idx, unit)?);
        }
        reading.read_rules(units.into_iter().map(|(_, unit)| unit.rules).zip(first_uses).collect())?;
        reading.settle_repeats();
        Ok(reading.finish())
    }

    /// Checks that units and blocks begin where the section says. If it also decodes
    /// as a whole, any of its units are those of the whole. It reads all elements twice.
    ///
    /// # Errors
    /// [`Error::Format`] if one begins elsewhere, [`Error::Capacity`] as in
    /// [`decode_units`](Self::decode_units).
    pub fn check_entrances(&self, limits: &OpenLimits) -> Result<()> {
        let has_all = self.root_has_entrances() && self.rules_have_entrances();
        if !has_all {
            return Err(self.stored.misfit());
        }
        self.decode_alone(self.existing_units(0..self.units().len())?, limits).map(drop)
    }

    fn root_has_entrances(&self) -> bool {
        let coded = &self.stored.root;
        let units = self.units();
        let mut reader = coded.reader_at(units.entrance(0));
        (0..units.len()).all(|unit_idx| {
            let is_here = reader.entrance() == units.entrance(unit_idx);
            let num_symbols = units.symbols_before(unit_idx + 1) - units.symbols_before(unit_idx);
            for _ in 0..num_symbols {
                reader.next(&coded.codes);
            }
            is_here
        })
    }

    fn rules_have_entrances(&self) -> bool {
        let coded = &self.stored.rules;
        let mut reader = coded.reader_at(Entrance { bit: 0, context: coded.codes.first_context() });
        let mut parts = self.stored.part_starts().into_iter().peekable();
        let mut num_elements = 0;
        for rule in 1..self.stored.num_rules {
            let bit = reader.position();
            let is_block = (rule - 1) % BLOCK_LEN == 0;
            let block = ((rule - 1) / BLOCK_LEN) as usize;
            if is_block && self.stored.blocks.get(block) != Some(bit) {
                return false;
            }
            while parts.next_if_eq(&(num_elements, bit)).is_some() {}
            loop {
                let (_, ends) = reader.next(&coded.codes);
                num_elements += 1;
                if ends > 0 || reader.position() > coded.num_bits {
                    break;
                }
            }
        }
        while parts.next_if_eq(&(num_elements, reader.position())).is_some() {}
        parts.next().is_none()
    }

    /// Returns the units `wanted`, if they exist and ascend.
    pub(super) fn existing_units(&self, wanted: impl IntoIterator<Item = usize>) -> Result<Vec<(usize, Unit)>> {
        let mut units: Vec<(usize, Unit)> = Vec::new();
        for unit_idx in wanted {
            let got = unit_idx as u64;
            let len = self.units().len() as u64;
            let unit = self.units().get(unit_idx).ok_or(Error::OutOfRange { what: "unit", got, len })?;
            if let Some((last, _)) = units.last()
                && *last >= unit_idx
            {
                let got = format!("unit {unit_idx} behind {last}");
                let allowed = "units that ascend".into();
                return Err(Error::InvalidArgument { name: "wanted", got, allowed });
            }
            units.push((unit_idx, unit));
        }
        Ok(units)
    }
}

/// Returns the runs of successive units.
fn runs_of(units: &[(usize, Unit)]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for &(unit_idx, _) in units {
        match runs.last_mut() {
            Some(last) if last.end == unit_idx => last.end += 1,
            _ => runs.push(unit_idx..unit_idx + 1),
        }
    }
    runs
}

/// Units while they are decoded.
struct Reading<'s, 'a> {
    stored: &'s Stored<'a>,
    limits: &'s OpenLimits,
    /// Memory that does not depend on the number of elements.
    fixed_bytes: u64,
    /// Element at each place, plus 1, with [`NOT_REACHED`] until it is, or 0 if it is not looked up.
    element_at: Vec<u32>,
    terminals: NumberSet,
    rules: NumberSet,
    /// Elements by their ids in the segment: those of the units, then those of the rules.
    symbols: Vec<u32>,
    /// Starts of the rules in `symbols`, without the root.
    rule_starts: Vec<u32>,
    /// Number of elements of each document.
    doc_lens: Vec<u32>,
    rule_reader: Reader<'a>,
    /// Rule at which it stands.
    next_rule: u32,
}

impl<'s, 'a> Reading<'s, 'a> {
    fn new(stored: &'s Stored<'a>, limits: &'s OpenLimits) -> Result<Self> {
        let num_named = stored.classes.num_named();
        let num_docs = stored.units.total().num_docs;
        let num_ids = u64::from(stored.num_terminals) + u64::from(stored.num_rules);
        let fixed_bytes = 4 * u64::from(num_named) + 8 * u64::from(num_docs) + num_ids;
        limits.check_memory(fixed_bytes)?;
        let mut rules = NumberSet::new(stored.num_rules);
        rules.insert(0);
        Ok(Self {
            stored,
            limits,
            fixed_bytes,
            element_at: vec![0; num_named as usize],
            terminals: NumberSet::new(stored.num_terminals),
            rules,
            symbols: Vec::new(),
            rule_starts: Vec::new(),
            doc_lens: vec![0; num_docs as usize],
            rule_reader: stored.rules.reader_at(Entrance::default()),
            next_rule: 0,
        })
    }

    /// Decodes the elements of unit `unit_idx`. Returns the positions of its first uses.
    fn read_unit(&mut self, unit_idx: usize, unit: &Unit) -> Result<Vec<u32>> {
        let coded = &self.stored.root;
        let units = &self.stored.units;
        let end_bit = units.entrance(unit_idx + 1).bit;
        let num_symbols = units.symbols_before(unit_idx + 1) - units.symbols_before(unit_idx);
        let first_use = self.stored.classes.num_named();
        let first_repeat = self.stored.classes.first_repeat();
        let unit_start = self.symbols.len();
        let mut reader = coded.reader_at(units.entrance(unit_idx));
        let mut first_uses = Vec::new();
        let mut doc = if unit.continues { Some(unit.docs.start) } else { None };
        let mut num_marks = 0;
        for _ in 0..num_symbols {
            let (place, _) = reader.next(&coded.codes);
            if place == first_use + 1 {
                doc = Some(unit.docs.start + u32::from(unit.continues) + num_marks);
                num_marks += 1;
                continue;
            }
            // An element stands in a document that begins in the unit or is continued.
            let len = doc.and_then(|doc| self.doc_lens.get_mut(doc as usize));
            *len.ok_or_else(|| self.stored.misfit())? += 1;
            let element = if place == first_use {
                first_uses.push(self.symbols.len() as u32);
                0
            } else if place >= first_repeat {
                let distance = place - first_repeat + 1;
                if distance as usize > self.symbols.len() - unit_start {
                    return Err(self.stored.misfit());
                }
                distance | REPEAT
            } else {
                self.element(place, 0)?
            };
            self.symbols.push(element);
        }
        let num_docs = unit.docs.len() - usize::from(unit.continues);
        if reader.position() != end_bit || num_marks as usize != num_docs {
            return Err(self.stored.misfit());
        }
        self.check_memory()?;
        Ok(first_uses)
    }

    /// Replaces the repeats in the units. First uses have their rules.
    fn settle_repeats(&mut self) {
        let root_len = self.rule_starts.first().map_or(self.symbols.len(), |&start| start as usize);
        for at in 0..root_len {
            let symbol = self.symbols[at];
            if symbol >= REPEAT {
                self.symbols[at] = self.symbols[at - (symbol & !REPEAT) as usize];
            }
        }
    }

    /// Decodes the rules that the units reach. `units` has the rules that are used first in each, and
    /// the positions of these uses.
    fn read_rules(&mut self, units: Vec<(Range<u32>, Vec<u32>)>) -> Result<()> {
        let mut next_rule = 1;
        // The last unit has the rules with the smallest numbers.
        for (rules, mut first_uses) in units.into_iter().rev() {
            self.read_reached(next_rule..rules.start)?;
            next_rule = self.read_below(rules.clone(), &mut first_uses)?;
            if next_rule != rules.end {
                return Err(self.stored.misfit());
            }
        }
        self.read_reached(next_rule..self.stored.num_rules)
    }

    /// Decodes the rules of `range` that are reached, and the rules below them.
    fn read_reached(&mut self, range: Range<u32>) -> Result<()> {
        let mut first_uses = Vec::new();
        let mut from = range.start;
        while let Some(rule) = self.rules.next_from(from).filter(|&rule| rule < range.end) {
            self.read_rule(rule, &mut first_uses)?;
            from = self.read_below(rule + 1..range.end, &mut first_uses)?;
        }
        Ok(())
    }

    /// Decodes rules from the begin of `range` on until none of the `first_uses` waits for one.
    /// Returns the rule behind them.
    fn read_below(&mut self, range: Range<u32>, first_uses: &mut Vec<u32>) -> Result<u32> {
        let mut rule = range.start;
        while let Some(position) = first_uses.pop() {
            if rule >= range.end {
                return Err(self.stored.misfit());
            }
            self.symbols[position as usize] = self.stored.num_terminals + rule;
            self.rules.insert(rule);
            self.read_rule(rule, first_uses)?;
            rule += 1;
        }
        Ok(rule)
    }

    /// Decodes rule `rule` and adds the positions of its first uses.
    fn read_rule(&mut self, rule: u32, first_uses: &mut Vec<u32>) -> Result<()> {
        let mut reader = self.reader_at_rule(rule)?;
        self.rule_starts.push(self.symbols.len() as u32);
        let first_use = self.stored.classes.num_named();
        loop {
            let (place, ends) = self.next_of_rule(&mut reader)?;
            let element = if place >= first_use {
                first_uses.push(self.symbols.len() as u32);
                0
            } else {
                self.element(place, rule)?
            };
            self.symbols.push(element);
            if ends {
                break;
            }
        }
        (self.rule_reader, self.next_rule) = (reader, rule + 1);
        self.check_memory()
    }

    /// Returns a reader at the begin of rule `rule`, which is not before the next one.
    fn reader_at_rule(&self, rule: u32) -> Result<Reader<'a>> {
        let block = (rule - 1) / BLOCK_LEN;
        let first_rule = block * BLOCK_LEN + 1;
        let mut reader = self.rule_reader;
        let mut next_rule = self.next_rule;
        if next_rule < first_rule {
            // Blocks that ascend bound the number of steps.
            let bit = self.stored.blocks.get(block as usize).filter(|&bit| bit >= reader.position());
            let bit = bit.ok_or_else(|| self.stored.misfit())?;
            let context = self.stored.rules.codes.first_context();
            reader = self.stored.rules.reader_at(Entrance { bit, context });
            next_rule = first_rule;
        }
        while next_rule < rule {
            let (_, ends) = self.next_of_rule(&mut reader)?;
            next_rule += u32::from(ends);
        }
        Ok(reader)
    }

    /// Reads the place of the next element of a rule, and if it is the last one.
    #[inline]
    fn next_of_rule(&self, reader: &mut Reader<'a>) -> Result<(u32, bool)> {
        let (place, ends) = reader.next(&self.stored.rules.codes);
        if reader.position() <= self.stored.rules.num_bits {
            Ok((place, ends == ENDS))
        } else {
            Err(self.stored.misfit())
        }
    }

    /// Looks up all ids of the groups that have no more than twice `num_symbols`. To read a whole
    /// group takes a twentieth of the time for each id.
    fn look_up_groups(&mut self, num_symbols: usize) -> Result<()> {
        let classes = &self.stored.classes.classes;
        for (group, ids) in self.stored.ids.iter().enumerate().filter(|(_, ids)| ids.len() <= 2 * num_symbols) {
            let numbers = ids.numbers().ok_or_else(|| self.stored.misfit())?;
            let to = &mut self.element_at[classes[group].start as usize..][..numbers.len()];
            for (to, id) in to.iter_mut().zip(numbers) {
                let element = self.stored.element_for(group, id).ok_or_else(|| self.stored.misfit())?;
                *to = (element + 1) | NOT_REACHED;
            }
        }
        Ok(())
    }

    /// Returns the element at `place`, which stands in rule `rule`, and notes that it is reached.
    #[inline]
    fn element(&mut self, place: u32, rule: u32) -> Result<u32> {
        let known = self.element_at[place as usize];
        let is_reached = known > 0 && known < NOT_REACHED;
        let element = if is_reached { known - 1 } else { self.reach(place)? };
        // Rules refer to rules behind them.
        let num_terminals = self.stored.num_terminals;
        let is_wrong = element >= num_terminals && element <= num_terminals + rule;
        if is_wrong { Err(self.stored.misfit()) } else { Ok(element) }
    }

    /// Returns the element at `place`, and notes that it is reached.
    fn reach(&mut self, place: u32) -> Result<u32> {
        let element = match self.element_at[place as usize] {
            0 => self.stored.id_at(place).ok_or_else(|| self.stored.misfit())?,
            known => (known & !NOT_REACHED) - 1,
        };
        match element.checked_sub(self.stored.num_terminals) {
            None => self.terminals.insert(element),
            Some(rule) => self.rules.insert(rule),
        }
        self.element_at[place as usize] = element + 1;
        Ok(element)
    }

    fn check_memory(&self) -> Result<()> {
        self.limits.check_memory(self.fixed_bytes + ELEMENT_BYTES * self.symbols.len() as u64)
    }

    /// Returns the grammar, with the terminals and rules that are reached numbered from 0 on.
    fn finish(self) -> PartialGrammar {
        let terminals = self.terminals.members();
        let num_terminals = terminals.len() as u32;
        let terminals_ranked = self.terminals.ranked();
        let rules_ranked = self.rules.ranked();
        let mut symbols = self.symbols;
        for symbol in &mut symbols {
            *symbol = match symbol.checked_sub(self.stored.num_terminals) {
                None => rank(&terminals_ranked, *symbol),
                Some(rule) => num_terminals + rank(&rules_ranked, rule),
            };
        }
        let end = symbols.len() as u32;
        let rule_offsets = [0].into_iter().chain(self.rule_starts).chain([end]).collect();
        let ends = self.doc_lens.iter().scan(0, |end, len| {
            *end += len;
            Some(*end)
        });
        let doc_offsets = [0].into_iter().chain(ends).collect();
        PartialGrammar { grammar: Grammar { num_terminals, rule_offsets, symbols, doc_offsets }, terminals }
    }
}

/// Set of numbers.
#[derive(Debug)]
struct NumberSet {
    words: Vec<u64>,
}

impl NumberSet {
    fn new(len: u32) -> Self {
        Self { words: vec![0; len as usize / 64 + 1] }
    }

    #[inline]
    fn insert(&mut self, number: u32) {
        self.words[number as usize / 64] |= 1 << (number % 64);
    }

    /// Returns the least member from `start` on.
    fn next_from(&self, start: u32) -> Option<u32> {
        let first = start as usize / 64;
        let mut mask = u64::MAX << (start % 64);
        for (word_idx, word) in self.words.iter().enumerate().skip(first) {
            let word = word & mask;
            if word != 0 {
                return Some(64 * word_idx as u32 + word.trailing_zeros());
            }
            mask = u64::MAX;
        }
        None
    }

    fn members(&self) -> Vec<u32> {
        let mut members = Vec::new();
        for (word_idx, &word) in (0..).zip(&self.words) {
            let mut word = word;
            while word != 0 {
                members.push(64 * word_idx + word.trailing_zeros());
                word &= word - 1;
            }
        }
        members
    }

    /// Returns the same set with ranks.
    fn ranked(&self) -> Vec<RankedWord> {
        let ranked = self.words.iter().scan(0, |sum, &word| {
            let num_before = *sum;
            *sum += word.count_ones();
            Some(RankedWord { word, num_before })
        });
        ranked.collect()
    }
}

/// 64 numbers of a set, and the number of members before them.
#[derive(Debug, Clone, Copy)]
struct RankedWord {
    word: u64,
    num_before: u32,
}

/// Returns the number of members below `number`.
#[inline]
fn rank(ranked: &[RankedWord], number: u32) -> u32 {
    let RankedWord { word, num_before } = ranked[number as usize / 64];
    num_before + (word & !(u64::MAX << (number % 64))).count_ones()
}
