//! Tables that find symbols at a place of the text: the longest one, for the encoder, and all of them,
//! for training and the optimal parse.
//!
//! # The longest symbol
//!
//! ```text
//! first two bytes ▶ short: the symbol of 2 bytes, else of 1, else an escape
//! hash of three   ▶ the symbol of 3 bytes
//! hash of four    ▶ bucket: the two longest symbols of 4 bytes and more
//!                   if any of these has more candidates: a slower search over all of them (rare)
//! ```
//!
//! All tables are read at once and the winner is selected by its address, so the only branch is the rare one. If values
//! were selected instead, the compiler would branch on the comparisons. FSST's table keeps one symbol per bucket; this
//! table keeps all. The match is always the longest one, so a greedy parse depends on the table's symbols alone.
//!
//! Rows lie behind one another. Each is closed by a byte that occurs in no row and no symbol, so no
//! match crosses it and rows need no test for their end. Its own entry says that a row ends.
//!
//! # All symbols
//!
//! A [`PrefixIndex`] has buckets by the hash of three bytes, longest symbols first. It keeps every
//! symbol, so their number is free (training looks at several times the symbols that it keeps). A
//! search probes each of three tables once and compares each symbol in the bucket once.
//!
//! # Best cuts
//!
//! The parse with the fewest code units, by dynamic programming from the end of a row.
//!
//! ```text
//! cost(end) = 0
//! cost(i)   = min over symbols s that begin at i of cost(i + |s|) + units(s)
//! ```
//!
//! `units` is 1, or 2 for a byte without a code (escape and literal). Of several best parses, the
//! one with the longest symbol wins, so the parse depends on table and row alone. Time O(bytes x
//! symbols that share three bytes). OptFSST (Chehaidar) measured the benefit of this parse.

use std::hint::select_unpredictable;

use crate::symbol_table::{ESCAPE_CODE, MAX_SYMBOL_BYTES, PREFIX_MASKS, Symbol, SymbolTable};

/// Largest text that is encoded at a time, in bytes. Places and numbers of codes are taken modulo
/// constants, so they need no bounds check when they index arrays of that length.
pub(super) const MAX_STAGED_BYTES: usize = 1 << 16;
/// Largest number of rows that are encoded at a time.
pub(super) const MAX_STAGED_ROWS: usize = 1 << 16;

/// Result of a lookup at a place, in a form that a cursor can add up.
///
/// ```text
/// bits 0..16    length in bytes of text
/// bits 16..32   number of rows that end: 1 or 0
/// bits 32..49   number of code units: 1, with a literal 2, at the end of a row 0
/// bits 49..61   the code; 255 before a literal (meaningless in a sum)
/// bit  63       set for a symbol of four bytes or more
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match(u64);

impl Match {
    const NONE: Self = Self(0);
    const ROW_END: Self = Self(1 | 1 << 16);
    const ESCAPE: Self = Self(1 | 2 << 32 | (ESCAPE_CODE as u64) << 49);

    fn from_symbol(code: u16, len_bytes: usize) -> Self {
        let is_long = if len_bytes > 3 { IS_LONG } else { 0 };
        Self(len_bytes as u64 | 1 << 32 | u64::from(code) << 49 | is_long)
    }

    #[inline(always)]
    pub(super) fn code(self) -> u16 {
        (self.0 >> 49) as u16 & 0xfff
    }
}

/// Position of a cursor, as the sum of all its matches.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor(u64);

impl Cursor {
    /// Creates a cursor at place `at` of the text (below 2^17), `num_codes` of the codes (below
    /// 2^18) and `row` of the rows (below 2^16).
    pub(super) fn new(at: usize, num_codes: usize, row: usize) -> Self {
        Self(at as u64 | (row as u64) << 16 | (num_codes as u64) << 32)
    }

    #[inline(always)]
    pub(super) fn at(self) -> usize {
        self.0 as usize % MAX_STAGED_BYTES
    }

    #[inline(always)]
    pub(super) fn num_codes(self) -> usize {
        (self.0 >> 32) as usize % (2 * MAX_STAGED_BYTES)
    }

    #[inline(always)]
    pub(super) fn row(self) -> usize {
        (self.0 as u32 >> 16) as usize
    }

    #[inline(always)]
    pub(super) fn advance(&mut self, found: Match) {
        self.0 = self.0.wrapping_add(found.0);
    }
}

/// Bit that is set in matches of four bytes or more.
const IS_LONG: u64 = 1 << 63;

/// Two longest symbols of four bytes or more with the same hash.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    words: [u64; 2],
    masks: [u64; 2],
    matches: [Match; 2],
    /// Limit below which a match may not be the longest one: [`IS_LONG`] if other symbols have the
    /// same hash, otherwise 1, so that only [`Match::NONE`] is below it.
    least: u64,
    _padding: u64,
}

/// A symbol of three bytes.
#[derive(Debug, Clone, Copy)]
struct Three {
    word: u64,
    found: Match,
}

/// Empty bucket. Its masks are 0 and its words are not, so no text matches.
const EMPTY: Bucket = Bucket { words: [1; 2], masks: [0; 2], matches: [Match::NONE; 2], least: 1, _padding: 0 };
const NO_THREE: Three = Three { word: 1 << 24, found: Match::NONE };

/// A symbol of four bytes or more that is not in its bucket.
#[derive(Debug, Clone, Copy)]
struct Rest {
    word: u64,
    mask: u64,
    found: Match,
}

/// Number of multipliers to try. The one that leaves the fewest symbols without a place is taken.
const NUM_TRIES: u32 = 8;
/// Most symbols that are compared one by one.
const MAX_RESTS: usize = 16;

/// Tables that find the longest symbol. `NUM_BUCKETS` and `NUM_IDS` are powers of two. The lower
/// half of the ids holds the codes, an escape and the end of a row.
#[derive(Debug)]
pub(super) struct Matcher<const NUM_BUCKETS: usize, const NUM_IDS: usize> {
    multiplier: u32,
    buckets: [Bucket; NUM_BUCKETS],
    threes: [Three; NUM_BUCKETS],
    /// Matches by id. The upper half holds [`Match::NONE`], for ids of short symbols that may not
    /// be the longest ones.
    matches: [Match; NUM_IDS],
    /// Id of a symbol of two bytes or one byte, indexed by two bytes.
    shorts: [u16; 1 << 16],
    /// Symbols of four bytes and more that are in no bucket, grouped by bucket, longest first.
    rests: Vec<Rest>,
    /// Start and end in `rests` of each bucket's symbols.
    rest_ranges: [(u16, u16); NUM_BUCKETS],
    has_all_threes: bool,
    by_length: ByLength,
}

impl<const NUM_BUCKETS: usize, const NUM_IDS: usize> Matcher<NUM_BUCKETS, NUM_IDS> {
    /// Creates the matcher of a table, for rows closed by `row_end`, which must be in no symbol but
    /// its own.
    pub(super) fn new(symbols: &[Symbol], row_end: u8) -> Box<Self> {
        let mut matcher = Box::new(Self {
            multiplier: 1,
            buckets: [EMPTY; NUM_BUCKETS],
            threes: [NO_THREE; NUM_BUCKETS],
            matches: [Match::ESCAPE; NUM_IDS],
            shorts: [0; 1 << 16],
            rests: Vec::new(),
            rest_ranges: [(0, 0); NUM_BUCKETS],
            has_all_threes: true,
            by_length: ByLength::default(),
        });
        matcher.rebuild(symbols, row_end, NUM_TRIES);
        matcher
    }

    /// Replaces the symbols. More tries leave fewer of them without a place.
    pub(super) fn rebuild(&mut self, symbols: &[Symbol], row_end: u8, num_tries: u32) {
        let matcher = self;
        matcher.multiplier = Self::best_multiplier(symbols, num_tries);
        matcher.buckets.fill(EMPTY);
        matcher.threes.fill(NO_THREE);
        matcher.matches[..NUM_IDS / 2].fill(Match::ESCAPE);
        matcher.rest_ranges.fill((0, 0));
        matcher.rests.clear();
        matcher.has_all_threes = true;
        matcher.by_length = ByLength::new(symbols);
        matcher.add_shorts(symbols, row_end);
        let mut longs = Vec::with_capacity(symbols.len());
        for (code, symbol) in symbols.iter().enumerate() {
            let word = symbol.word();
            let len_bytes = symbol.len_bytes();
            let found = Match::from_symbol(code as u16, len_bytes);
            match len_bytes {
                1 | 2 => {}
                3 => matcher.add_three(word, found),
                _ => {
                    let bucket = bucket::<NUM_BUCKETS>(word as u32, matcher.multiplier);
                    let mask = PREFIX_MASKS[len_bytes];
                    longs.push((bucket, MAX_SYMBOL_BYTES - len_bytes, Rest { word, mask, found }));
                }
            }
        }
        longs.sort_unstable_by_key(|(bucket, rank, rest)| (*bucket, *rank, rest.word));
        for same in longs.chunk_by(|a, b| a.0 == b.0) {
            let bucket = &mut matcher.buckets[same[0].0];
            for (slot, (_, _, symbol)) in same.iter().take(2).enumerate() {
                bucket.words[slot] = symbol.word;
                bucket.masks[slot] = symbol.mask;
                bucket.matches[slot] = symbol.found;
            }
            if same.len() > 2 {
                bucket.least = IS_LONG;
                let start = matcher.rests.len();
                matcher.rests.extend(same[2..].iter().map(|(_, _, symbol)| *symbol));
                matcher.rest_ranges[same[0].0] = (start as u16, matcher.rests.len() as u16);
            }
        }
    }

    fn best_multiplier(symbols: &[Symbol], num_tries: u32) -> u32 {
        let tries = (0..num_tries).map(|i| 0x9e37_79b1_u32.wrapping_mul(2 * i + 1));
        let num_left = |multiplier: &u32| {
            let mut num_symbols = [(0_u8, 0_u8); NUM_BUCKETS];
            let mut num_left = 0;
            for symbol in symbols.iter().filter(|symbol| symbol.len_bytes() > 2) {
                let same = &mut num_symbols[bucket::<NUM_BUCKETS>(symbol.word() as u32, *multiplier)];
                let (count, max) = if symbol.len_bytes() == 3 { (&mut same.0, 1) } else { (&mut same.1, 2) };
                num_left += usize::from(*count == max);
                *count = max.min(*count + 1);
            }
            num_left
        };
        tries.min_by_key(num_left).unwrap_or(1)
    }

    fn add_shorts(&mut self, symbols: &[Symbol], row_end: u8) {
        let escape = NUM_IDS / 2 - 2;
        let end = NUM_IDS / 2 - 1;
        let mut ones = [escape as u16; 256];
        self.matches[end] = Match::ROW_END;
        for (code, symbol) in symbols.iter().enumerate() {
            self.matches[code] = Match::from_symbol(code as u16, symbol.len_bytes());
            if symbol.len_bytes() == 1 {
                ones[symbol.word() as usize] = code as u16;
            }
        }
        ones[usize::from(row_end)] = end as u16;
        self.shorts.as_chunks_mut().0.fill(ones);
        for (code, symbol) in symbols.iter().enumerate() {
            if symbol.len_bytes() == 2 {
                self.shorts[symbol.word() as usize] = code as u16;
            }
        }
        self.matches[NUM_IDS / 2..].fill(Match::NONE);
    }

    fn add_three(&mut self, word: u64, found: Match) {
        let three = &mut self.threes[bucket::<NUM_BUCKETS>(word as u32, self.multiplier)];
        if three.found == Match::NONE {
            *three = Three { word, found };
        } else {
            self.shorts[usize::from(word as u16)] |= (NUM_IDS / 2) as u16;
            self.has_all_threes = false;
        }
    }

    /// Returns the match of the longest symbol that `word` begins with, or of an escape or the end
    /// of a row.
    #[inline(always)]
    pub(super) fn find(&self, word: u64) -> Match {
        let bucket = &self.buckets[bucket::<NUM_BUCKETS>(word as u32, self.multiplier)];
        let three_bytes = word & 0xff_ffff;
        let three = &self.threes[self::bucket::<NUM_BUCKETS>(three_bytes as u32, self.multiplier)];
        let is_first = word & bucket.masks[0] == bucket.words[0];
        let is_second = word & bucket.masks[1] == bucket.words[1];
        let short = &self.matches[usize::from(self.shorts[usize::from(word as u16)]) % NUM_IDS];
        let found = select_unpredictable(three_bytes == three.word, &three.found, short);
        let found = select_unpredictable(is_second, &bucket.matches[1], found);
        let found = *select_unpredictable(is_first, &bucket.matches[0], found);
        if found.0 < bucket.least { self.find_rest(word, found) } else { found }
    }

    /// Returns the longest match of `word` when a table had more candidates than it holds.
    /// `shorter` is the match if none of the remaining symbols is longer.
    #[cold]
    #[inline(never)]
    fn find_rest(&self, word: u64, shorter: Match) -> Match {
        let bucket = bucket::<NUM_BUCKETS>(word as u32, self.multiplier);
        let (start, end) = self.rest_ranges[bucket];
        let rests = &self.rests[usize::from(start)..usize::from(end)];
        if rests.len() > MAX_RESTS || !self.has_all_threes {
            let short = usize::from(self.shorts[usize::from(word as u16)]) % (NUM_IDS / 2);
            return self.by_length.longest(word, self.matches[short]);
        }
        let is_it = |rest: &&Rest| word & rest.mask == rest.word;
        rests.iter().find(is_it).map_or(shorter, |rest| rest.found)
    }
}

/// Returns the bucket of up to four bytes.
#[inline(always)]
fn bucket<const NUM_BUCKETS: usize>(bytes: u32, multiplier: u32) -> usize {
    let hash = bytes.wrapping_mul(multiplier);
    (hash >> (32 - NUM_BUCKETS.trailing_zeros())) as usize % NUM_BUCKETS
}

/// Symbols of three bytes and more, by all of their bytes. A search probes once for each length.
#[derive(Debug, Default)]
struct ByLength {
    /// Start in `symbols` of the symbols with each hash. One more than hashes.
    starts: Vec<u16>,
    symbols: Vec<(u64, Match)>,
    /// Lengths of the symbols, longest first.
    lens_bytes: Vec<usize>,
    shift: u32,
}

impl ByLength {
    fn new(all: &[Symbol]) -> Self {
        let num_hashes = (2 * all.len()).next_power_of_two().max(2);
        let shift = u64::BITS - num_hashes.trailing_zeros();
        let longer = || all.iter().zip(0..).filter(|(symbol, _)| symbol.len_bytes() > 2);
        let mut starts = vec![0_u16; num_hashes + 1];
        longer().for_each(|(symbol, _)| starts[hash(symbol.word(), shift) + 1] += 1);
        for hash in 0..num_hashes {
            starts[hash + 1] += starts[hash];
        }
        let mut symbols = vec![(0, Match::NONE); usize::from(starts[num_hashes])];
        let mut ends = starts.clone();
        let mut has_length = [false; MAX_SYMBOL_BYTES + 1];
        for (symbol, code) in longer() {
            let at = &mut ends[hash(symbol.word(), shift)];
            symbols[usize::from(*at)] = (symbol.word(), Match::from_symbol(code, symbol.len_bytes()));
            *at += 1;
            has_length[symbol.len_bytes()] = true;
        }
        let lens_bytes = (3..=MAX_SYMBOL_BYTES).rev().filter(|len| has_length[*len]).collect();
        Self { starts, symbols, lens_bytes, shift }
    }

    fn longest(&self, word: u64, shorter: Match) -> Match {
        for len_bytes in &self.lens_bytes {
            let word = word & PREFIX_MASKS[*len_bytes];
            let hash = hash(word, self.shift);
            let same = usize::from(self.starts[hash])..usize::from(self.starts[hash + 1]);
            for (symbol, found) in &self.symbols[same] {
                if *symbol == word && (found.0 % 16) as usize == *len_bytes {
                    return *found;
                }
            }
        }
        shorter
    }
}

fn hash(word: u64, shift: u32) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize
}

/// Returns a byte that is in no symbol, and so rarely in a row.
pub(super) fn row_end_byte(table: &SymbolTable) -> Option<u8> {
    let mut is_taken = [false; 256];
    for byte in table.symbols().iter().flat_map(|symbol| symbol.as_bytes()) {
        is_taken[usize::from(*byte)] = true;
    }
    is_taken.iter().position(|is_taken| !is_taken).map(|free| free as u8)
}

/// Id that says that there is no such symbol.
pub(super) const NO_SYMBOL: u16 = u16::MAX;

/// A symbol of three bytes or more.
#[derive(Debug, Clone, Copy, Default)]
struct LongSymbol {
    word: u64,
    mask: u64,
    id: u16,
    len_bytes: u8,
}

impl LongSymbol {
    /// Returns true if `word` begins with the symbol, and it has at most `max_len` bytes.
    #[inline]
    fn begins(&self, word: u64, max_len: usize) -> bool {
        word & self.mask == self.word && usize::from(self.len_bytes) <= max_len
    }
}

/// Symbols by their first bytes. The id of a symbol is its place in the indexed list.
#[derive(Debug)]
pub(super) struct PrefixIndex {
    ones: [u16; 256],
    twos: Vec<u16>,
    /// Places in `twos` that hold a symbol.
    set_twos: Vec<u16>,
    bucket_ends: Vec<u16>,
    longs: Vec<LongSymbol>,
    shift: u32,
}

impl PrefixIndex {
    /// Creates an index of `symbols`, which must be fewer than 65,535.
    pub(super) fn new(symbols: &[Symbol]) -> Self {
        let mut index = Self {
            ones: [NO_SYMBOL; 256],
            twos: vec![NO_SYMBOL; 1 << 16],
            set_twos: Vec::new(),
            bucket_ends: Vec::new(),
            longs: Vec::new(),
            shift: 0,
        };
        index.rebuild(symbols);
        index
    }

    /// Replaces the indexed symbols by `symbols`.
    pub(super) fn rebuild(&mut self, symbols: &[Symbol]) {
        let num_buckets = (2 * symbols.len()).next_power_of_two().max(256);
        self.shift = 64 - num_buckets.trailing_zeros();
        self.ones.fill(NO_SYMBOL);
        for two in self.set_twos.drain(..) {
            self.twos[usize::from(two)] = NO_SYMBOL;
        }
        // `bucket_ends` first holds counts, then the start of each bucket. Placing a symbol
        // advances the start, so that it finally is the end.
        self.bucket_ends.clear();
        self.bucket_ends.resize(num_buckets + 2, 0);
        let mut num_by_length = [0; MAX_SYMBOL_BYTES + 1];
        for (id, symbol) in symbols.iter().enumerate() {
            num_by_length[symbol.len_bytes()] += 1;
            match symbol.len_bytes() {
                1 => self.ones[symbol.word() as usize] = id as u16,
                2 => {
                    self.twos[symbol.word() as usize] = id as u16;
                    self.set_twos.push(symbol.word() as u16);
                }
                _ => self.bucket_ends[prefix_bucket(symbol.word(), self.shift) + 2] += 1,
            }
        }
        for bucket in 2..num_buckets + 2 {
            self.bucket_ends[bucket] += self.bucket_ends[bucket - 1];
        }
        let num_longs = num_by_length[3..].iter().sum();
        self.longs.clear();
        self.longs.resize(num_longs, LongSymbol::default());
        for len_bytes in (3..=MAX_SYMBOL_BYTES).rev().filter(|len| num_by_length[*len] > 0) {
            for (id, symbol) in symbols.iter().enumerate() {
                if symbol.len_bytes() == len_bytes {
                    let word = symbol.word();
                    let place = &mut self.bucket_ends[prefix_bucket(word, self.shift) + 1];
                    let mask = PREFIX_MASKS[len_bytes];
                    let id = id as u16;
                    self.longs[usize::from(*place)] = LongSymbol { word, mask, id, len_bytes: len_bytes as u8 };
                    *place += 1;
                }
            }
        }
    }

    /// Returns the symbol that consists of the first byte of `word`.
    #[inline]
    pub(super) fn one(&self, word: u64) -> u16 {
        self.ones[usize::from(word as u8)]
    }

    /// Returns the longest symbol of at most `max_len` bytes that `word` begins with, and its
    /// length. `max_len` is at least 1.
    #[inline]
    pub(super) fn longest(&self, word: u64, max_len: usize) -> (u16, usize) {
        for symbol in self.longs_at(word) {
            if symbol.begins(word, max_len) {
                return (symbol.id, usize::from(symbol.len_bytes));
            }
        }
        self.two(word, max_len).map_or_else(|| (self.one(word), 1), |two| (two, 2))
    }

    /// Calls `found(id, length)` for each symbol of 2 to `max_len` bytes that `word` begins with,
    /// longest first.
    #[inline]
    pub(super) fn for_each_longer(&self, word: u64, max_len: usize, mut found: impl FnMut(u16, usize)) {
        for symbol in self.longs_at(word) {
            if symbol.begins(word, max_len) {
                found(symbol.id, usize::from(symbol.len_bytes));
            }
        }
        if let Some(two) = self.two(word, max_len) {
            found(two, 2);
        }
    }

    /// Returns the symbols of three bytes and more whose hash is that of `word`, longest first.
    #[inline]
    fn longs_at(&self, word: u64) -> &[LongSymbol] {
        let bucket = prefix_bucket(word, self.shift);
        &self.longs[usize::from(self.bucket_ends[bucket])..usize::from(self.bucket_ends[bucket + 1])]
    }

    /// Returns the symbol of the first two bytes of `word`, if there is one and `max_len` allows it.
    #[inline]
    fn two(&self, word: u64, max_len: usize) -> Option<u16> {
        let two = self.twos[usize::from(word as u16)];
        (two != NO_SYMBOL && max_len >= 2).then_some(two)
    }
}

#[inline]
fn prefix_bucket(word: u64, shift: u32) -> usize {
    // The first three bytes move to the top and are multiplied by an odd number near 2^64 / golden
    // ratio.
    ((word << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize
}

/// State of the parse. Each place has a key `cost << 32 | (8 - length) << 16 | id`, so that less is
/// better.
#[derive(Debug, Default)]
pub(super) struct OptimalParse {
    keys: Vec<u64>,
}

impl OptimalParse {
    /// Parses `text[start..end]` and calls `emit(id, place)` for each symbol from left to right. A
    /// byte without a symbol has the id [`NO_SYMBOL`]. `byte_units`
    /// are the units of single bytes. `text` must have 8 bytes behind `end`.
    pub(super) fn run(
        &mut self,
        index: &PrefixIndex,
        byte_units: &[u8; 256],
        text: &[u8],
        (start, end): (usize, usize),
        mut emit: impl FnMut(u16, usize),
    ) {
        let len = end - start;
        self.keys.clear();
        self.keys.resize(len + 1, 0);
        for i in (0..len).rev() {
            let word = word_at(text, start + i);
            let cost = |len_bytes: usize| self.keys[i + len_bytes] >> 32;
            let key = |units: u64, len_bytes: usize, id: u16| {
                units << 32 | ((MAX_SYMBOL_BYTES - len_bytes) as u64) << 16 | u64::from(id)
            };
            let units = u64::from(byte_units[usize::from(word as u8)]);
            let mut best = key(cost(1) + units, 1, index.one(word));
            index.for_each_longer(word, len - i, |id, len_bytes| {
                best = best.min(key(cost(len_bytes) + 1, len_bytes, id));
            });
            self.keys[i] = best;
        }
        let mut i = 0;
        while i < len {
            let key = self.keys[i];
            let len_bytes = MAX_SYMBOL_BYTES - (key >> 16 & 0xff) as usize;
            emit(key as u16, start + i);
            i += len_bytes;
        }
    }
}

/// Returns the 8 bytes from `at` on.
#[inline]
pub(super) fn word_at(text: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&text[at..at + 8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Random;

    fn check<const NUM_BUCKETS: usize, const NUM_IDS: usize>(letters: &[u8], random: &mut Random) {
        let mut symbols: Vec<Symbol> = Vec::new();
        for _ in 0..random.below(NUM_IDS / 2 - 2).min(400) {
            let word: Vec<u8> = (0..1 + random.below(8)).map(|_| letters[random.below(letters.len())]).collect();
            let symbol = Symbol::new(&word).unwrap();
            if !symbols.contains(&symbol) {
                symbols.push(symbol);
            }
        }
        let matcher = Matcher::<NUM_BUCKETS, NUM_IDS>::new(&symbols, b'.');
        for _ in 0..500 {
            let word: [u8; 8] = std::array::from_fn(|_| match random.below(20) {
                0 => b'.',
                _ => letters[random.below(letters.len())],
            });
            let starts = |symbol: &(usize, &Symbol)| word.starts_with(symbol.1.as_bytes());
            let longest = symbols.iter().enumerate().filter(starts);
            let expected = match longest.max_by_key(|(_, symbol)| symbol.len_bytes()) {
                Some((code, symbol)) => Match::from_symbol(code as u16, symbol.len_bytes()),
                None if word[0] == b'.' => Match::ROW_END,
                None => Match::ESCAPE,
            };
            assert_eq!(matcher.find(u64::from_le_bytes(word)), expected, "{word:?} {symbols:?}");
        }
    }

    #[test]
    fn the_longest_symbol_is_found_however_many_share_a_hash() {
        let mut random = Random(9);
        for letters in [&b"a"[..], b"ab", b"abcd", b"abcdefghijklmnopqrstuvwxyz "] {
            for _ in 0..20 {
                check::<1024, 1024>(letters, &mut random);
                check::<8, 1024>(letters, &mut random);
            }
        }
    }
}
