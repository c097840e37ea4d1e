//! A small deterministic sequence of numbers. The number of a failing case is enough to repeat it.

use std::ops::Range;

/// Numbers at which counts, lengths and offsets often fail.
const EDGES: [u64; 20] = [
    0,
    1,
    2,
    3,
    7,
    63,
    64,
    65,
    255,
    1 << 16,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 2,
    (1 << 32) - 1,
    1 << 32,
    1 << 62,
    1 << 63,
    u64::MAX - 63,
    u64::MAX - 1,
    u64::MAX,
];

/// A generator of random numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.number() % end.max(1) as u64) as usize
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }

    pub fn words(&mut self, len: usize) -> Vec<u8> {
        const WORDS: [&str; 12] = [
            "the ",
            "furiously ",
            "regular ",
            "deposits ",
            "a",
            "sleep ",
            "über ",
            "—",
            "\n",
            "0",
            "carefully ",
            "12345678",
        ];
        let mut text = Vec::new();
        while text.len() < len {
            text.extend_from_slice(WORDS[self.below(WORDS.len())].as_bytes());
        }
        text.truncate(len);
        text
    }

    pub fn one_in(&mut self, num: usize) -> bool {
        self.below(num) == 0
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// Returns a range inside `0..len`, mostly a short one. It is empty only if `len` is 0.
    pub fn range(&mut self, len: usize) -> Range<usize> {
        let start = self.below(len);
        let longest = if self.one_in(3) { len } else { 16 };
        let wanted = 1 + self.below(longest);
        start..(start + wanted).min(len)
    }

    /// Returns a false value for a field of `value`: a neighbour, an edge or another number.
    pub fn lie(&mut self, value: u64) -> u64 {
        match self.below(5) {
            0 => value.wrapping_add(1),
            1 => value.wrapping_sub(1),
            2 => value.wrapping_mul(1 + self.number() % 4096),
            3 => *self.pick(&EDGES),
            _ => self.number() >> self.below(64),
        }
    }
}
