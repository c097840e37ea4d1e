//! The longest symbol at a place, as fast as one core finds it: the encoder's table.
//!
//! ```text
//! first two bytes ▶ short: the symbol of 2 bytes, else of 1, else an escape
//! hash of three   ▶ the symbol of 3 bytes
//! hash of four    ▶ bucket: the two longest symbols of 4 bytes and more
//!                   whether any of these has more candidates (then, rarely, the exact index is asked)
//! ```
//!
//! All are looked up at once and the winner is selected, so the only branch is the rare one. With one
//! bucket for all symbols of 3 bytes and more, 7 % of the steps on `ps_comment` were rare ones, now 1 %.
//! Unlike FSST's table, which keeps one symbol per bucket, nothing is lost: the match is always the
//! longest one, so a greedy parse is a function of the table's symbols alone.
//!
//! Rows lie behind one another, each closed by a byte that occurs in no row and no symbol. No match
//! crosses it, so rows need no test for their end; its own entry says "a row ends here".

use std::hint::select_unpredictable;

use super::prefix_index::PrefixIndex;
use super::symbol::PREFIX_MASKS;
use super::symbol_table::{ESCAPE_CODE, SymbolTable};

/// Text that is encoded at a time, at most: places and numbers of codes that are taken modulo
/// constants need no test when they index arrays of that length.
pub(super) const MAX_STAGED_BYTES: usize = 1 << 17;

/// What was found at a place, as a cursor adds it up.
///
/// ```text
/// bits 0..24    bytes of text it stands for
/// bits 24..50   code units it takes: 1, with a literal 2, at the end of a row 0
/// bits 50..62   the code; 255 before a literal (in a sum: anything)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match(u64);

impl Match {
    const NONE: Self = Self(0);
    const ROW_END: Self = Self(1);
    const ESCAPE: Self = Self(1 | 2 << 24 | (ESCAPE_CODE as u64) << 50);

    fn of_symbol(code: u16, len_bytes: usize) -> Self {
        Self(len_bytes as u64 | 1 << 24 | u64::from(code) << 50)
    }

    #[inline(always)]
    pub(super) fn code(self) -> u16 {
        (self.0 >> 50) as u16
    }
}

/// The sum of all matches of one cursor: where it stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor(u64);

impl Cursor {
    /// A cursor at place `at` of the text, below 2^17, and `num_codes` of the codes, below 2^18.
    pub(super) fn new(at: usize, num_codes: usize) -> Self {
        Self(at as u64 | (num_codes as u64) << 24)
    }

    #[inline(always)]
    pub(super) fn at(self) -> usize {
        self.0 as usize % MAX_STAGED_BYTES
    }

    #[inline(always)]
    pub(super) fn num_codes(self) -> usize {
        (self.0 >> 24) as usize % (2 * MAX_STAGED_BYTES)
    }

    #[inline(always)]
    pub(super) fn advance(&mut self, found: Match) {
        self.0 = self.0.wrapping_add(found.0);
    }
}

/// Where none of the candidates matches, others may: a bit no match has.
const HAS_MORE: u64 = 1 << 63;

/// The two longest symbols of four bytes or more with the same hash.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    words: [u64; 2],
    masks: [u64; 2],
    matches: [Match; 2],
    /// [`HAS_MORE`] or 0.
    if_neither: u64,
    _padding: u64,
}

/// A symbol of three bytes; `word` has [`HAS_MORE`] where another has the same hash.
#[derive(Debug, Clone, Copy)]
struct Three {
    word: u64,
    found: Match,
}

/// A word that no masked text equals.
const EMPTY: Bucket =
    Bucket { words: [1; 2], masks: [0; 2], matches: [Match::NONE; 2], if_neither: 0, _padding: 0 };

/// Finds longest symbols; `NUM_BUCKETS` is a power of two.
#[derive(Debug)]
pub(super) struct Matcher<const NUM_BUCKETS: usize> {
    shorts: Vec<Match>,
    threes: Vec<Three>,
    buckets: Vec<Bucket>,
    index: PrefixIndex,
}

impl<const NUM_BUCKETS: usize> Matcher<NUM_BUCKETS> {
    /// The matcher of a table, for rows closed by `row_end`, which is in no symbol.
    pub(super) fn new(table: &SymbolTable, row_end: u8) -> Self {
        let mut matcher = Self {
            shorts: vec![Match::ESCAPE; 1 << 16],
            threes: vec![Three { word: 1 << 24, found: Match::NONE }; NUM_BUCKETS],
            buckets: vec![EMPTY; NUM_BUCKETS],
            index: PrefixIndex::new(table.symbols()),
        };
        let mut longs = Vec::new();
        let mut twos = Vec::new();
        for (code, symbol) in table.symbols().iter().enumerate() {
            let (code, word) = (code as u16, symbol.word());
            match symbol.len_bytes() {
                1 => (0..=255).for_each(|second: usize| {
                    matcher.shorts[second << 8 | word as usize] = Match::of_symbol(code, 1);
                }),
                2 => twos.push((word, code)),
                3 => {
                    let three = &mut matcher.threes[Self::bucket(word as u32)];
                    if three.found == Match::NONE {
                        *three = Three { word, found: Match::of_symbol(code, 3) };
                    } else {
                        three.word |= HAS_MORE;
                    }
                }
                len_bytes => longs.push((u8::MAX - len_bytes as u8, word, code)),
            }
        }
        for (word, code) in twos {
            matcher.shorts[word as usize] = Match::of_symbol(code, 2);
        }
        for second in 0..=255 {
            matcher.shorts[second << 8 | usize::from(row_end)] = Match::ROW_END;
        }
        longs.sort_unstable();
        for (rank, word, code) in longs {
            let bucket = &mut matcher.buckets[Self::bucket(word as u32)];
            let len_bytes = u8::MAX - rank;
            match bucket.matches.iter().position(|found| *found == Match::NONE) {
                Some(slot) => {
                    bucket.words[slot] = word;
                    bucket.masks[slot] = PREFIX_MASKS[usize::from(len_bytes)];
                    bucket.matches[slot] = Match::of_symbol(code, usize::from(len_bytes));
                }
                None => bucket.if_neither = HAS_MORE,
            }
        }
        matcher
    }

    /// The bucket of up to four bytes.
    #[inline(always)]
    fn bucket(bytes: u32) -> usize {
        let hash = bytes.wrapping_mul(0x9e37_79b1);
        (hash >> (32 - NUM_BUCKETS.trailing_zeros())) as usize % NUM_BUCKETS
    }

    /// Its tables as arrays: indexing them needs no test.
    #[inline(always)]
    pub(super) fn view(&self) -> Option<MatcherView<'_, NUM_BUCKETS>> {
        let shorts = self.shorts.as_slice().try_into().ok()?;
        let threes = self.threes.as_slice().try_into().ok()?;
        let buckets = self.buckets.as_slice().try_into().ok()?;
        Some(MatcherView { shorts, threes, buckets, index: &self.index })
    }
}

/// A matcher with the sizes of its tables known to the compiler.
#[derive(Debug, Clone, Copy)]
pub(super) struct MatcherView<'a, const NUM_BUCKETS: usize> {
    shorts: &'a [Match; 1 << 16],
    threes: &'a [Three; NUM_BUCKETS],
    buckets: &'a [Bucket; NUM_BUCKETS],
    index: &'a PrefixIndex,
}

impl<const NUM_BUCKETS: usize> MatcherView<'_, NUM_BUCKETS> {
    /// What begins with `word`.
    #[inline(always)]
    pub(super) fn find(&self, word: u64) -> Match {
        let bucket = &self.buckets[Matcher::<NUM_BUCKETS>::bucket(word as u32)];
        let three = &self.threes[Matcher::<NUM_BUCKETS>::bucket(word as u32 & 0xff_ffff)];
        let is_first = word & bucket.masks[0] == bucket.words[0];
        let is_second = word & bucket.masks[1] == bucket.words[1];
        let is_three = word & 0xff_ffff == three.word & !HAS_MORE;
        let short = select_unpredictable(is_three, three.found, self.short(word));
        // Whether there are others is asked of the selected value: as a condition of its own it made
        // the compiler branch on all comparisons, at half the speed.
        let short = Match(short.0 | bucket.if_neither | (three.word & HAS_MORE));
        let long = select_unpredictable(is_first, bucket.matches[0], bucket.matches[1]);
        let found = select_unpredictable(is_first | is_second, long, short);
        if found.0 & HAS_MORE != 0 { self.find_any(word) } else { found }
    }

    #[inline(always)]
    fn short(&self, word: u64) -> Match {
        self.shorts[usize::from(word as u16)]
    }

    #[cold]
    #[inline(never)]
    fn find_any(&self, word: u64) -> Match {
        let mut longest = None;
        self.index.for_each_longer(word, 8, |id, len_bytes| {
            longest = longest.or(Some(Match::of_symbol(id, len_bytes)));
        });
        longest.unwrap_or_else(|| self.short(word))
    }
}

/// A byte that is in no symbol, and so rarely in a row.
pub(super) fn row_end_byte(table: &SymbolTable) -> Option<u8> {
    let mut is_taken = [false; 256];
    for byte in table.symbols().iter().flat_map(|symbol| symbol.as_bytes()) {
        is_taken[usize::from(*byte)] = true;
    }
    is_taken.iter().position(|is_taken| !is_taken).map(|free| free as u8)
}
