//! Choosing symbols: grow a set of candidates from the parse of a sample, then prune it by what
//! each symbol is worth.
//!
//! ```text
//! bytes that occur
//!   └▶ round ─┬ parse the sample, count symbols and neighbours
//!             ├ grow    neighbours that come often become symbols, up to twice the table
//!             └ prune   in stages, each after a new parse: drop what loses least
//!                       loss(s) = count(s) x (units of s written with the others - 1)
//! ```
//!
//! The parse is the optimal one ([`optimal`](super::optimal)), so a count says what the encoder will
//! use. Losses are measured in what the file pays for: an escaped byte takes two units, and a byte
//! without a code of its own loses its place in the table like any other symbol. FSST's own
//! training (Boncz, Neumann, Leis, VLDB 2020, algorithm 3) grows a set of fixed size by gain =
//! count x length, which credits a symbol with bytes that others would cover as well. On 8 MB of
//! TPC-H `l_comment` the codes are 2.79 (fsst-rs 0.7) and 3.59 times smaller than the text.
//!
//! Everything is a function of rows and options. Time: about 2 x rounds parses of the sample.

use super::optimal::OptimalParse;
use super::pair_counts::PairCounts;
use super::prefix_index::PrefixIndex;
use super::sample::Sample;
use super::symbol::{MAX_SYMBOL_BYTES, Symbol};
use super::symbol_table::{CodeWidth, SymbolTable};

/// Ids of a trainer: those below are single bytes, the others longer symbols.
const NUM_BYTES: usize = 256;
/// Candidates per symbol that stays. With 3, codes of `wiki` and `l_comment` got 0.5 % larger.
const GROWTH: usize = 2;
/// A table that spares escapes altogether may cost this part of all units: devices decode blocks
/// without escapes without looking for them, and this loses less than 2 % on text of up to 100
/// different bytes (on `l_comment` it gains 1 %), 12 % and more on `wiki` and `yago`.
const MAX_NO_ESCAPE_LOSS: f64 = 0.02;
/// Tables may shrink as long as they lose no more than this part of all units.
const MAX_SHRINK_LOSS: f64 = 0.0005;
/// Most different bytes for which such a table is tried.
const MAX_NO_ESCAPE_BYTES: usize = 128;

/// How much work goes into a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainingOptions {
    /// Text that is looked at, in bytes.
    pub sample_bytes: usize,
    /// Rounds of growing and pruning.
    pub num_rounds: usize,
    /// Parses between which a round prunes.
    pub num_stages: usize,
}

impl TrainingOptions {
    /// A good table for codes of this width.
    pub fn new(width: CodeWidth) -> Self {
        match width {
            CodeWidth::Eight => Self { sample_bytes: 64 << 10, num_rounds: 6, num_stages: 2 },
            CodeWidth::Twelve => Self { sample_bytes: 512 << 10, num_rounds: 6, num_stages: 2 },
        }
    }
}

impl SymbolTable {
    /// A table for `rows`: good for them, and for others like them.
    ///
    /// Every byte that occurs has a code where the table is of 12 bits, and where that costs little
    /// with 8 bits. The same rows and options give the same table.
    ///
    /// ```
    /// use datafusion_tadoc::gsst::{CodeWidth, SymbolTable, TrainingOptions};
    ///
    /// let rows = [Some(&b"http://a.example"[..]), None, Some(b"http://b.example")];
    /// let options = TrainingOptions::new(CodeWidth::Eight);
    /// let table = SymbolTable::train(CodeWidth::Eight, &rows, &options);
    /// assert!(table.symbols().iter().any(|symbol| symbol.as_bytes() == b"http://"));
    /// ```
    pub fn train(width: CodeWidth, rows: &[Option<&[u8]>], options: &TrainingOptions) -> Self {
        let occurs = bytes_of(rows.iter().flatten().copied());
        let sample = Sample::new(rows, options.sample_bytes);
        let mut trainer = Trainer::new(&sample, width);
        if width == CodeWidth::Twelve {
            trainer.require(&occurs);
        }
        for round in 1..=options.num_rounds {
            trainer.grow();
            let is_last = round == options.num_rounds;
            trainer.prune(if is_last { 2 * options.num_stages } else { options.num_stages });
        }
        if width == CodeWidth::Eight {
            trainer.spare_escapes(&occurs, options);
        }
        trainer.shrink();
        trainer.into_table(width)
    }
}

/// Which bytes occur.
pub(super) fn bytes_of<'a>(rows: impl Iterator<Item = &'a [u8]>) -> [bool; NUM_BYTES] {
    let mut occurs = [false; NUM_BYTES];
    for row in rows {
        for byte in row {
            occurs[usize::from(*byte)] = true;
        }
    }
    occurs
}

struct Trainer<'a> {
    sample: &'a Sample,
    /// All single bytes, then the longer symbols.
    symbols: Vec<Symbol>,
    /// Units of the single bytes: 1 where the byte has a code, 2 where it is escaped.
    byte_units: [u8; NUM_BYTES],
    /// Bytes whose code stays.
    is_required: [bool; NUM_BYTES],
    max_symbols: usize,
    parse: OptimalParse,
}

impl<'a> Trainer<'a> {
    fn new(sample: &'a Sample, width: CodeWidth) -> Self {
        let rows = sample.rows.iter().map(|&(start, end)| &sample.text[start..end]);
        Self {
            sample,
            symbols: (0..=u8::MAX).map(Symbol::of_byte).collect(),
            byte_units: bytes_of(rows).map(|occurs| if occurs { 1 } else { 2 }),
            is_required: [false; NUM_BYTES],
            max_symbols: width.max_symbols(),
            parse: OptimalParse::default(),
        }
    }

    fn require(&mut self, bytes: &[bool; NUM_BYTES]) {
        for (byte, _) in bytes.iter().enumerate().filter(|(_, occurs)| **occurs) {
            self.is_required[byte] = true;
            self.byte_units[byte] = 1;
        }
    }

    fn num_symbols(&self) -> usize {
        self.symbols.len() - NUM_BYTES + self.byte_units.iter().filter(|units| **units == 1).count()
    }

    /// How often the best parse of the sample uses each symbol, and each two after one another.
    fn count(&mut self, mut pairs: Option<&mut PairCounts>) -> Vec<u32> {
        let index = PrefixIndex::new(&self.symbols);
        let mut counts = vec![0; self.symbols.len()];
        for &row in &self.sample.rows {
            let mut before = None;
            self.parse.run(&index, &self.byte_units, &self.sample.text, row, |id, _| {
                counts[usize::from(id)] += 1;
                if let (Some(pairs), Some(before)) = (pairs.as_deref_mut(), before) {
                    pairs.add(before, id);
                }
                before = Some(id);
            });
        }
        counts
    }

    /// Makes symbols of pairs that come often, and gives escaped bytes that do a code.
    fn grow(&mut self) {
        let mut pairs = PairCounts::new(self.sample.text.len());
        let counts = self.count(Some(&mut pairs));
        for (units, count) in self.byte_units.iter_mut().zip(counts) {
            if count > 1 {
                *units = 1;
            }
        }
        let mut candidates: Vec<(Symbol, u32)> = pairs
            .repeated()
            .into_iter()
            .filter_map(|(first, second, count)| {
                let first = self.symbols[usize::from(first)];
                Some((first.concat(self.symbols[usize::from(second)])?, count))
            })
            .collect();
        // Several pairs may make the same symbol, and some are symbols already.
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
            let counts = self.count(None);
            self.drop_cheapest(num_symbols - num_kept, &counts);
        }
    }

    /// Drops the `num_dropped` symbols that lose least.
    fn drop_cheapest(&mut self, num_dropped: usize, counts: &[u32]) {
        let index = PrefixIndex::new(&self.symbols);
        let may_go = |id: &usize| match *id {
            id if id < NUM_BYTES => self.byte_units[id] == 1 && !self.is_required[id],
            _ => true,
        };
        let mut losses: Vec<(u64, usize)> = (0..self.symbols.len())
            .filter(may_go)
            .map(|id| (u64::from(counts[id]) * (self.units_without(id, &index) - 1), id))
            .collect();
        losses.sort_unstable();
        losses.truncate(num_dropped);
        let mut is_dropped = vec![false; self.symbols.len()];
        for &(_, id) in &losses {
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

    /// Units of a symbol's bytes in the best parse by the other symbols.
    fn units_without(&self, id: usize, index: &PrefixIndex) -> u64 {
        if id < NUM_BYTES {
            return 2;
        }
        let symbol = self.symbols[id];
        let len = symbol.len_bytes();
        let mut units = [0; MAX_SYMBOL_BYTES + 1];
        for start in (0..len).rev() {
            let word = symbol.word() >> (8 * start);
            let mut best = units[start + 1] + u64::from(self.byte_units[usize::from(word as u8)]);
            index.for_each_longer(word, len - start, |other, len_bytes| {
                if usize::from(other) != id {
                    best = best.min(units[start + len_bytes] + 1);
                }
            });
            units[start] = best;
        }
        units[0]
    }

    /// Gives every byte that occurs a code, and trains on, where that costs little.
    fn spare_escapes(&mut self, occurs: &[bool; NUM_BYTES], options: &TrainingOptions) {
        let has_all = |units: &[u8; NUM_BYTES]| (0..NUM_BYTES).all(|b| !occurs[b] || units[b] == 1);
        let num_bytes = occurs.iter().filter(|occurs| **occurs).count();
        if has_all(&self.byte_units) || num_bytes > MAX_NO_ESCAPE_BYTES {
            return;
        }
        let num_units = self.num_units();
        let before = (self.symbols.clone(), self.byte_units);
        self.require(occurs);
        self.prune(options.num_stages);
        self.grow();
        self.prune(2 * options.num_stages);
        if self.num_units() > num_units * (1.0 + MAX_NO_ESCAPE_LOSS) {
            (self.symbols, self.byte_units) = before;
        }
    }

    /// Drops symbols as long as they are worth nothing, a quarter of them at a time: where many
    /// parses are as short (`genome`), losses count what another parse has for free.
    fn shrink(&mut self) {
        let max_units = self.num_units() * (1.0 + MAX_SHRINK_LOSS);
        loop {
            let before = (self.symbols.clone(), self.byte_units);
            self.max_symbols = self.num_symbols() - self.num_symbols() / 4;
            self.prune(1);
            let is_stuck = self.num_symbols() > self.max_symbols || self.max_symbols < 4;
            if is_stuck || self.num_units() > max_units {
                (self.symbols, self.byte_units) = before;
                return;
            }
        }
    }

    /// Code units of the sample.
    fn num_units(&mut self) -> f64 {
        let counts = self.count(None);
        let units = |(id, count): (usize, &u32)| {
            f64::from(*count) * f64::from(self.byte_units.get(id).copied().unwrap_or(1))
        };
        counts.iter().enumerate().map(units).sum()
    }

    fn into_table(mut self, width: CodeWidth) -> SymbolTable {
        let mut symbols = self.symbols.split_off(NUM_BYTES);
        let with_code = self.symbols.iter().zip(self.byte_units).filter(|(_, units)| *units == 1);
        symbols.extend(with_code.map(|(symbol, _)| symbol));
        symbols.sort_unstable_by_key(order);
        SymbolTable::of_trained(width, symbols)
    }
}

/// Sorts symbols by their bytes.
fn order(symbol: &Symbol) -> (u64, usize) {
    (symbol.word().swap_bytes(), symbol.len_bytes())
}
