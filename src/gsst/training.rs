//! Selection of symbols: grow a set of candidates from the parse of a sample, then prune it by the
//! value of each symbol.
//!
//! ```text
//! bytes that occur
//!   └▶ round ─┬ parse the sample, count symbols and neighbours
//!             ├ grow    neighbours that come often become symbols, up to twice the table
//!             └ prune   in stages, each after a new parse: drop what loses least
//!                       loss(s) = count(s) x (units of s written with the others - 1)
//! ```
//!
//! Training uses the parse that will encode, so a count equals the encoder's use of a symbol. Losses are measured in
//! stored units: an escaped byte takes two units, and a single byte can lose its code like any other symbol. FSST's own
//! training (Boncz, Neumann, Leis, VLDB 2020, algorithm 3) grows a set of fixed size by gain = count x length. This
//! gain credits a symbol with bytes that other symbols would cover as well. A round does not always improve the result,
//! so training takes the best symbols of all rounds.
//!
//! The result depends on rows and options alone. Time: about 3 parses of the sample per round, at the encoder's speed.
//! Sizes of blocks of 23 columns (f-dbtext, TPC-H) relative to those with the tables of fsst-rs 0.7, geometric mean:
//! samples of 16 KiB and 5 rounds 1.085 times smaller, 64 KiB and 6 rounds 1.12 times smaller. Failed experiments:
//! samples of 128 and 256 KiB (no gain); symbols extended by the first byte of their neighbour as candidates, as in
//! FSST (1.063); one parse per round for pruning and growing (single columns 15 % larger); required bytes only after
//! the rounds (one more round for the same result).
//!
//! # Sample
//!
//! ```text
//! text     ──────▣▣──────────▣▣─────────────▣▣──────      the text is cut into equal parts; each
//! sample   ▣▣▣▣▣▣ 00000000                                gives one range, at a scrambled place so
//!                                                         that periods in the data do no harm
//! ```
//!
//! A range ends at the end of its row, so training learns no symbol that occurs in no row. The same rows give the same
//! sample. Pairs of ids are counted in an open-addressing table whose output order does not depend on the hashes.

use rustc_hash::FxHashSet;

use crate::encode::{GreedyParser, Parse};
use crate::matcher::{NO_SYMBOL, OptimalParse, PrefixIndex, word_at};
use crate::symbol_table::{CodeWidth, MAX_SYMBOL_BYTES, Symbol, SymbolTable, bytes_for};

/// Number of ids that are single bytes. Ids from here on are longer symbols.
const NUM_BYTES: usize = 256;
/// Candidates per symbol of the final table. With 3, codes of `wiki` and `l_comment` were 0.5 %
/// larger.
const GROWTH: usize = 2;
/// Largest number of distinct bytes for which every byte gets a code. Devices decode blocks without
/// escapes without looking for them. Up to this number the loss is below 2 % (`l_comment` gains 1
/// %). On `wiki` and `yago` the loss would be 12 % and more.
const MAX_NO_ESCAPE_BYTES: usize = 100;
/// Largest alphabet whose pairs all fit into codes of 8 bits.
const MAX_FEW_LETTERS: usize = 15;

/// Limits on the work for one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainingOptions {
    /// Bytes of text that training looks at. With a sixteenth to a quarter of the default, training
    /// is two to three times as fast, and codes of small columns are 1 to 4 % longer, 30 % in
    /// `c_name`.
    pub sample_bytes: usize,
    /// Number of rounds of growing and pruning.
    pub num_rounds: usize,
    /// Number of pruning stages per round, each after a new parse.
    pub num_stages: usize,
    /// Parse that counts the use of symbols. It should be the parse that will encode.
    pub parse: Parse,
}

impl TrainingOptions {
    /// Returns options that give a good table for codes of this width.
    pub fn new(width: CodeWidth) -> Self {
        match width {
            CodeWidth::Eight => Self { sample_bytes: 64 << 10, num_rounds: 6, num_stages: 2, parse: Parse::Greedy },
            CodeWidth::Twelve => Self { sample_bytes: 512 << 10, ..Self::new(CodeWidth::Eight) },
        }
    }
}

impl SymbolTable {
    /// Trains a table that suits `rows` and rows like them.
    ///
    /// In a table of 12 bits, every byte that occurs has a code. In a table of 8 bits, every byte
    /// that occurs in about a megabyte of the rows has a code, if these are at most 100 distinct
    /// bytes. The same rows and options give the same table.
    ///
    /// ```
    /// use gsst::{CodeWidth, SymbolTable, TrainingOptions};
    ///
    /// let rows = [Some(&b"http://a.example"[..]), None, Some(b"http://b.example")].repeat(50);
    /// let options = TrainingOptions::new(CodeWidth::Eight);
    /// let table = SymbolTable::train(CodeWidth::Eight, &rows, &options);
    /// assert!(table.symbols().iter().any(|symbol| symbol.as_bytes().starts_with(b"http:")));
    /// ```
    pub fn train(width: CodeWidth, rows: &[Option<&[u8]>], options: &TrainingOptions) -> Self {
        let text_len_bytes = rows.iter().flatten().map(|row| row.len()).sum();
        let mut options = *options;
        let sample = Sample::new(rows, text_len_bytes, options.sample_bytes);
        if width == CodeWidth::Eight && sample.is_mostly_multibyte() {
            // The greedy parse crosses characters: `chinese` was 5 % larger with it.
            options.parse = Parse::Optimal;
        }
        let mut trainer = Trainer::new(&sample, width, options.parse);
        let occurs = match width {
            CodeWidth::Twelve => bytes_for(rows.iter().flatten().copied()),
            CodeWidth::Eight => sample.occurs_around(rows),
        };
        let num_bytes = occurs.iter().filter(|occurs| **occurs).count();
        if width == CodeWidth::Twelve || num_bytes <= MAX_NO_ESCAPE_BYTES {
            trainer.require(&occurs);
        }
        trainer.try_all_short();
        for _ in 0..options.num_rounds {
            trainer.grow();
            trainer.prune(options.num_stages);
        }
        trainer.take_best();
        trainer.into_table(width)
    }
}

struct Trainer<'a> {
    sample: &'a Sample,
    /// All single bytes, followed by the longer symbols.
    symbols: Vec<Symbol>,
    /// Units of the single bytes: 1 if the byte has a code, 2 if it is escaped.
    byte_units: [u8; NUM_BYTES],
    /// True for bytes whose code must stay.
    is_required: [bool; NUM_BYTES],
    max_symbols: usize,
    parse: Parse,
    optimal: OptimalParse,
    /// Index of the symbols as of the last count.
    index: PrefixIndex,
    pairs: PairCounts,
    best: Best,
    /// Parser for the greedy parse, if a byte is free to end rows with.
    greedy: Option<GreedyParser<'a>>,
}

/// Symbols that fit into the table, and the number of units of the sample with them.
struct Best {
    num_units: u64,
    symbols: Vec<Symbol>,
    byte_units: [u8; NUM_BYTES],
}

impl<'a> Trainer<'a> {
    fn new(sample: &'a Sample, width: CodeWidth, parse: Parse) -> Self {
        let symbols: Vec<Symbol> = (0..=u8::MAX).map(Symbol::from_byte).collect();
        Self {
            sample,
            byte_units: sample.occurs().map(|occurs| if occurs { 1 } else { 2 }),
            is_required: [false; NUM_BYTES],
            max_symbols: width.max_symbols(),
            parse,
            optimal: OptimalParse::default(),
            index: PrefixIndex::new(&symbols),
            pairs: PairCounts::new(),
            best: Best { num_units: u64::MAX, symbols: Vec::new(), byte_units: [2; NUM_BYTES] },
            greedy: greedy_parser(sample).filter(|_| parse == Parse::Greedy),
            symbols,
        }
    }

    fn require(&mut self, bytes: &[bool; NUM_BYTES]) {
        for (byte, _) in bytes.iter().enumerate().filter(|(_, occurs)| **occurs) {
            self.is_required[byte] = true;
            self.byte_units[byte] = 1;
        }
    }

    /// Tries all strings that occur, length by length, as long as the table has room for all
    /// strings of a length. For few letters this is the best choice if the rows are so short that
    /// their ends dominate. On `genome` (rows of nine random letters of four) blocks are 2.964
    /// instead of 2.947 times smaller.
    fn try_all_short(&mut self) {
        let num_letters = self.sample.occurs().iter().filter(|occurs| **occurs).count();
        if num_letters > MAX_FEW_LETTERS {
            return;
        }
        let before = self.symbols.len();
        for len_bytes in 2..=MAX_SYMBOL_BYTES {
            let room = self.max_symbols.saturating_sub(self.num_symbols());
            let Some(strings) = self.sample.strings_for(len_bytes, room) else { break };
            self.symbols.extend(strings);
        }
        if self.symbols.len() > before {
            let counts = self.count(false);
            self.keep_if_best(&counts);
            self.symbols.truncate(before);
        }
    }

    fn num_symbols(&self) -> usize {
        self.symbols.len() - NUM_BYTES + self.byte_units.iter().filter(|units| **units == 1).count()
    }

    /// Counts how often the parse of the sample uses each symbol, and adds each two successive
    /// symbols to `pairs` if `has_pairs`.
    fn count(&mut self, has_pairs: bool) -> Vec<u32> {
        let Self { sample, symbols, byte_units, index, pairs, optimal, .. } = self;
        let mut counts = vec![0; symbols.len()];
        if let Some((ids, row_ends)) = self.greedy.as_mut().and_then(|parser| parser.parse(symbols)) {
            ids.iter().for_each(|id| counts[usize::from(*id)] += 1);
            let mut start = 0;
            for end in row_ends.into_iter().map(|end| end as usize).filter(|_| has_pairs) {
                ids[start..end].windows(2).for_each(|two| pairs.add(two[0], two[1]));
                start = end;
            }
            return counts;
        }
        index.rebuild(symbols);
        for &(start, end) in &sample.rows {
            let mut before = NO_SYMBOL;
            let mut add = |id: u16| {
                counts[usize::from(id)] += 1;
                if has_pairs && before != NO_SYMBOL {
                    pairs.add(before, id);
                }
                before = id;
            };
            if self.parse == Parse::Optimal {
                optimal.run(index, byte_units, &sample.text, (start, end), |id, _| add(id));
                continue;
            }
            let mut at = start;
            while at < end {
                let (id, len_bytes) = index.longest(word_at(&sample.text, at), end - at);
                add(id);
                at += len_bytes;
            }
        }
        counts
    }

    /// Makes symbols of pairs that occur repeatedly, and gives a code to escaped bytes that do.
    fn grow(&mut self) {
        let counts = self.count(true);
        self.keep_if_best(&counts);
        for (units, count) in self.byte_units.iter_mut().zip(&counts) {
            if *count > 1 {
                *units = 1;
            }
        }
        let mut candidates: Vec<(Symbol, u32)> = self
            .pairs
            .take_repeated()
            .into_iter()
            .filter_map(|(first, second, count)| {
                let first = self.symbols[usize::from(first)];
                Some((first.concat(self.symbols[usize::from(second)])?, count))
            })
            .collect();
        // Several pairs may give the same symbol, and some results are symbols already.
        candidates.extend(self.symbols.iter().map(|symbol| (*symbol, 0)));
        candidates.sort_unstable_by_key(|(symbol, count)| (order(symbol), *count));
        let merged = candidates.chunk_by(|a, b| a.0 == b.0).filter(|same| same[0].1 > 0);
        let mut merged: Vec<(Symbol, u32)> =
            merged.map(|same| (same[0].0, same.iter().map(|(_, count)| count).sum())).collect();
        merged.sort_by_key(|(_, count)| u32::MAX - count);
        let room = (GROWTH * self.max_symbols + NUM_BYTES).saturating_sub(self.symbols.len());
        self.symbols.extend(merged.iter().take(room).map(|(symbol, _)| *symbol));
    }

    /// Drops symbols until the table has room for all, in `num_stages` steps of equal ratio.
    fn prune(&mut self, num_stages: usize) {
        for stage in (0..num_stages).rev() {
            let num_symbols = self.num_symbols();
            if num_symbols <= self.max_symbols {
                return;
            }
            let excess = num_symbols as f64 / self.max_symbols as f64;
            let share = excess.powf(stage as f64 / (stage + 1) as f64);
            let num_kept = (self.max_symbols as f64 * share) as usize;
            let counts = self.count(false);
            self.drop_cheapest(num_symbols - num_kept, &counts);
        }
    }

    /// Drops the `num_dropped` symbols with the smallest loss.
    fn drop_cheapest(&mut self, num_dropped: usize, counts: &[u32]) {
        let mut losses = self.losses(counts);
        if num_dropped < losses.len() {
            losses.select_nth_unstable(num_dropped);
            losses.truncate(num_dropped);
        }
        self.drop_all(&losses);
    }

    /// Returns the loss of dropping each symbol that may be dropped, in units of the sample, with
    /// its id.
    fn losses(&mut self, counts: &[u32]) -> Vec<(u64, usize)> {
        self.index.rebuild(&self.symbols);
        let may_go = |id: &usize| match *id {
            id if id < NUM_BYTES => self.byte_units[id] == 1 && !self.is_required[id],
            _ => true,
        };
        let loss = |id: usize| match u64::from(counts[id]) {
            0 => 0,
            count => count * (self.units_without(id) - 1),
        };
        (0..self.symbols.len()).filter(may_go).map(|id| (loss(id), id)).collect()
    }

    fn drop_all(&mut self, dropped: &[(u64, usize)]) {
        let mut is_dropped = vec![false; self.symbols.len()];
        for &(_, id) in dropped {
            is_dropped[id] = true;
            if id < NUM_BYTES {
                self.byte_units[id] = 2;
            }
        }
        let mut id = 0;
        self.symbols.retain(|_| {
            id += 1;
            id <= NUM_BYTES || !is_dropped[id - 1]
        });
    }

    /// Returns the number of units of a symbol's bytes in the best parse by the other symbols.
    fn units_without(&self, id: usize) -> u64 {
        if id < NUM_BYTES {
            return 2;
        }
        let symbol = self.symbols[id];
        let len = symbol.len_bytes();
        let mut units = [0; MAX_SYMBOL_BYTES + 1];
        for start in (0..len).rev() {
            let word = symbol.word() >> (8 * start);
            let mut best = units[start + 1] + u64::from(self.byte_units[usize::from(word as u8)]);
            self.index.for_each_longer(word, len - start, |other, len_bytes| {
                if usize::from(other) != id {
                    best = best.min(units[start + len_bytes] + 1);
                }
            });
            units[start] = best;
        }
        units[0]
    }

    /// Saves the symbols if they fit into the table and take fewer units, by `counts`, than the
    /// best so far.
    fn keep_if_best(&mut self, counts: &[u32]) {
        if self.num_symbols() > self.max_symbols {
            return;
        }
        let units =
            |(id, count): (usize, &u32)| u64::from(*count) * u64::from(self.byte_units.get(id).copied().unwrap_or(1));
        let num_units = counts.iter().enumerate().map(units).sum();
        if num_units < self.best.num_units {
            let symbols = self.symbols.clone();
            self.best = Best { num_units, symbols, byte_units: self.byte_units };
        }
    }

    /// Restores the best symbols so far, without those that save less in the whole text than they
    /// take in the table.
    fn take_best(&mut self) {
        let counts = self.count(false);
        self.keep_if_best(&counts);
        self.symbols = std::mem::take(&mut self.best.symbols);
        self.byte_units = self.best.byte_units;
        let counts = self.count(false);
        let scale = self.sample.text_len_bytes as f64 / (self.sample.text.len() as f64).max(1.0);
        let mut losses = self.losses(&counts);
        let is_worthless = |(loss, id): &(u64, usize)| {
            let len_bytes = self.symbols[*id].len_bytes() as f64;
            (*loss as f64) * scale < 1.0 + 0.6 * len_bytes
        };
        losses.retain(is_worthless);
        self.drop_all(&losses);
    }

    fn into_table(mut self, width: CodeWidth) -> SymbolTable {
        let mut symbols = self.symbols.split_off(NUM_BYTES);
        let with_code = self.symbols.iter().zip(self.byte_units).filter(|(_, units)| *units == 1);
        symbols.extend(with_code.map(|(symbol, _)| symbol));
        symbols.sort_unstable_by_key(order);
        SymbolTable::from_trained(width, symbols)
    }
}

fn greedy_parser(sample: &Sample) -> Option<GreedyParser<'_>> {
    let free = sample.occurs().iter().position(|occurs| !occurs)?;
    let rows = sample.rows.iter().map(|&(start, end)| Some(&sample.text[start..end])).collect();
    Some(GreedyParser::new(rows, free as u8))
}

/// Returns the sort key of a symbol, which orders symbols by their bytes.
fn order(symbol: &Symbol) -> (u64, usize) {
    (symbol.word().swap_bytes(), symbol.len_bytes())
}

/// Bytes of text per range. It starts at the start of a row if the row is not longer than this.
const PIECE_BYTES: usize = 192;

/// Approximate number of bytes of text that are searched for bytes that occur.
const MAX_SEARCHED_BYTES: usize = 1 << 20;

/// Text of some rows, with 8 zero bytes behind it, and the range of each row in it.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) text: Vec<u8>,
    pub(super) rows: Vec<(usize, usize)>,
    /// Length of the text that the sample was taken from.
    pub(super) text_len_bytes: usize,
}

impl Sample {
    /// Takes about `len_bytes` of the rows, whose text has `text_len_bytes`.
    pub(super) fn new(rows: &[Option<&[u8]>], text_len_bytes: usize, len_bytes: usize) -> Self {
        let mut sample =
            Self { text: Vec::with_capacity(len_bytes.min(text_len_bytes) + 4096), rows: Vec::new(), text_len_bytes };
        if text_len_bytes <= len_bytes {
            rows.iter().flatten().for_each(|row| sample.add(row));
        } else {
            sample.add_pieces(rows, text_len_bytes, (len_bytes / PIECE_BYTES).max(1));
        }
        sample.text.extend_from_slice(&[0; 8]);
        sample
    }

    /// Returns, for each byte, true if it occurs in the sample.
    pub(super) fn occurs(&self) -> [bool; 256] {
        bytes_for(self.rows.iter().map(|&(start, end)| &self.text[start..end]))
    }

    /// Returns the distinct strings of `len_bytes` that occur in rows, sorted. Returns `None` if
    /// there are more than `max_strings`, or none at all.
    pub(super) fn strings_for(&self, len_bytes: usize, max_strings: usize) -> Option<Vec<Symbol>> {
        let rows = self.rows.iter().map(|&(start, end)| &self.text[start..end]);
        let mut words = FxHashSet::default();
        let mut strings = Vec::new();
        for string in rows.flat_map(|row| row.windows(len_bytes)).filter_map(Symbol::try_new) {
            if words.insert(string.word()) {
                strings.push(string);
                if strings.len() > max_strings {
                    return None;
                }
            }
        }
        strings.sort_unstable_by_key(|string| string.word());
        (!strings.is_empty()).then_some(strings)
    }

    /// Returns, for each byte, true if it occurs in the sample or in a wider selection of `rows`,
    /// from which the sample was taken: all rows if their text is short, otherwise every n-th.
    pub(super) fn occurs_around(&self, rows: &[Option<&[u8]>]) -> [bool; 256] {
        let step = (self.text_len_bytes / MAX_SEARCHED_BYTES).max(1);
        let mut occurs = bytes_for(rows.iter().step_by(step).flatten().copied());
        occurs.iter_mut().zip(self.occurs()).for_each(|(all, here)| *all |= here);
        occurs
    }

    /// Returns true if more than a quarter of the sample's bytes are not ASCII.
    pub(super) fn is_mostly_multibyte(&self) -> bool {
        4 * self.text.iter().filter(|byte| !byte.is_ascii()).count() > self.text.len()
    }

    fn add_pieces(&mut self, rows: &[Option<&[u8]>], text_len_bytes: usize, num_pieces: usize) {
        let part_bytes = text_len_bytes / num_pieces;
        let place_of = |piece: usize| piece * part_bytes + scramble(piece) % part_bytes.max(1);
        let mut piece = 0;
        let mut left_bytes = 0;
        let mut row_start = 0;
        for row in rows.iter().flatten() {
            let row_end = row_start + row.len();
            if left_bytes > 0 && row.len() <= PIECE_BYTES {
                self.add(row);
                left_bytes = usize::saturating_sub(left_bytes, row.len());
            }
            while piece < num_pieces && place_of(piece) < row_end {
                let place = place_of(piece) - row_start;
                piece += 1;
                if row.len() > PIECE_BYTES {
                    let start = place.min(row.len() - PIECE_BYTES);
                    self.add(&row[start..start + PIECE_BYTES]);
                    left_bytes = 0;
                } else if left_bytes == 0 {
                    // The sample may already have this row. The range starts with the next one.
                    left_bytes = PIECE_BYTES;
                }
            }
            row_start = row_end;
        }
    }

    fn add(&mut self, row: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(row);
        self.rows.push((start, self.text.len()));
    }
}

/// Returns a number that looks unrelated to its neighbours' (Fibonacci hashing).
fn scramble(number: usize) -> usize {
    ((number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}

/// Number of slots of a new table.
const NUM_SLOTS: usize = 1 << 12;

/// A table of counts, by pair.
#[derive(Debug)]
pub(super) struct PairCounts {
    /// Slots with `pair << 32 | count`, or 0 if free.
    slots: Vec<u64>,
    num_pairs: usize,
    shift: u32,
}

impl PairCounts {
    pub(super) fn new() -> Self {
        Self::with_slots(NUM_SLOTS)
    }

    /// Creates a table of `num_slots` slots, a power of two.
    fn with_slots(num_slots: usize) -> Self {
        Self { slots: vec![0; num_slots], num_pairs: 0, shift: 64 - num_slots.trailing_zeros() }
    }

    /// Adds one occurrence of `second` behind `first`.
    #[inline]
    pub(super) fn add(&mut self, first: u16, second: u16) {
        let pair = u64::from(first) << 16 | u64::from(second);
        let at = self.slot(pair);
        if self.slots[at] != 0 {
            self.slots[at] += 1;
            return;
        }
        self.slots[at] = pair << 32 | 1;
        self.num_pairs += 1;
        if 2 * self.num_pairs > self.slots.len() {
            self.grow();
        }
    }

    /// Returns the slot that holds `pair`, or the free slot for it.
    #[inline]
    fn slot(&self, pair: u64) -> usize {
        let mut at = (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        while self.slots[at] != 0 && self.slots[at] >> 32 != pair {
            at = (at + 1) & (self.slots.len() - 1);
        }
        at
    }

    #[cold]
    fn grow(&mut self) {
        let mut grown = Self::with_slots(4 * self.slots.len());
        grown.num_pairs = self.num_pairs;
        for slot in self.slots.iter().filter(|slot| **slot != 0) {
            let at = grown.slot(slot >> 32);
            grown.slots[at] = *slot;
        }
        *self = grown;
    }

    /// Returns the pairs that occur at least twice, with their counts, sorted by pair, and clears
    /// the table.
    pub(super) fn take_repeated(&mut self) -> Vec<(u16, u16, u32)> {
        let mut repeated: Vec<u64> = self.slots.iter().copied().filter(|slot| *slot as u32 > 1).collect();
        self.slots.fill(0);
        self.num_pairs = 0;
        repeated.sort_unstable();
        let pair = |slot: u64| ((slot >> 48) as u16, (slot >> 32) as u16, slot as u32);
        repeated.into_iter().map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_about_the_length_asked_for() {
        let long: Vec<u8> = (0..1 << 20).map(|i: u32| (i % 251) as u8).collect();
        for row_len in [1, 31, 200, 5000, 1 << 20] {
            let rows: Vec<_> = long.chunks(row_len).map(Some).collect();
            for len_bytes in [256, 4096, 65536] {
                let sample = Sample::new(&rows, 1 << 20, len_bytes);
                let got = sample.text.len() - 8;
                assert!((len_bytes / 2..2 * len_bytes + 1024).contains(&got), "{row_len}: {got}");
                assert!(sample.rows.iter().all(|(start, end)| start <= end && *end <= got));
            }
        }
        assert_eq!(Sample::new(&[None, Some(b"ab"), Some(b"")], 2, 100).rows, [(0, 2), (2, 2)]);
    }

    #[test]
    fn pairs_are_counted_apart() {
        let mut counts = PairCounts::with_slots(2);
        for (first, second) in [(0, 0), (9, 1), (1, 9), (0, 0), (9, 1), (9, 1), (5, 5)] {
            counts.add(first, second);
        }
        assert_eq!(counts.take_repeated(), [(0, 0, 2), (9, 1, 3)]);
        assert_eq!(counts.take_repeated(), []);
    }
}
