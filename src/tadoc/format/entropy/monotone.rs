//! Lists of ascending numbers in which any place is read alone (Elias, 1974; Fano, 1971).
//!
//! ```text
//! list    low bits of each number | high bits | samples
//! high    number i sets bit (number >> width) + i
//! sample  bit of the high bits that number 128, 256, … sets
//! ```
//!
//! The length of a list and a limit of its numbers are known to the reader, and determine the sizes
//! of all three parts. Each number of n below u takes about 2 + log2(u / n) bits. A number is found
//! by counting the ones behind a sample.

use crate::error::Result;
use crate::format::cursor::Cursor;

use super::prefix_code::{BitWriter, Stream};

/// Numbers between two samples.
const SAMPLE_EVERY: usize = 128;

/// Sizes of the parts of a list.
#[derive(Debug, Clone, Copy)]
struct Shape {
    len: usize,
    /// Numbers are below it.
    limit: u64,
    /// Number of low bits.
    width: u8,
    /// Number of high bits.
    high_len: u64,
    sample_width: u8,
}

impl Shape {
    fn new(len: usize, limit: u64) -> Self {
        let ratio = limit.checked_div(len as u64).unwrap_or(0);
        let width = ratio.checked_ilog2().unwrap_or(0) as u8;
        let high_len = if len == 0 { 0 } else { len as u64 + (limit >> width) + 1 };
        let sample_width = (u64::BITS - high_len.leading_zeros()) as u8;
        Self { len, limit, width, high_len, sample_width }
    }

    fn num_samples(self) -> usize {
        self.len.saturating_sub(1) / SAMPLE_EVERY
    }

    /// Returns the lengths of the three parts in bytes.
    fn part_lens(self) -> [u64; 3] {
        let low = self.len as u64 * u64::from(self.width);
        let samples = self.num_samples() as u64 * u64::from(self.sample_width);
        [low, self.high_len, samples].map(|bits| bits.div_ceil(8))
    }
}

/// Appends `numbers`, which ascend and are below `limit`, to `out`.
pub(in crate::format) fn encode_monotone(out: &mut Vec<u8>, numbers: &[u64], limit: u64) {
    let shape = Shape::new(numbers.len(), limit);
    let (mut low, mut samples) = (BitWriter::default(), BitWriter::default());
    let mut high = vec![0u8; shape.part_lens()[1] as usize];
    for (at, &number) in numbers.iter().enumerate() {
        push_long(&mut low, number & !(u64::MAX << shape.width), shape.width);
        let bit = (number >> shape.width) + at as u64;
        high[(bit / 8) as usize] |= 1 << (bit % 8);
        if at > 0 && at % SAMPLE_EVERY == 0 {
            push_long(&mut samples, bit, shape.sample_width);
        }
    }
    out.extend(low.finish());
    out.extend(high);
    out.extend(samples.finish());
}

/// Writes a number of up to 64 bits.
fn push_long(writer: &mut BitWriter, number: u64, width: u8) {
    let low_width = width.min(u32::BITS as u8);
    writer.push(number as u32, low_width);
    if width > low_width {
        writer.push((number >> low_width) as u32, width - low_width);
    }
}

/// A list whose numbers are not read yet.
#[derive(Debug, Clone, Copy)]
pub(in crate::format) struct Monotone<'a> {
    shape: Shape,
    low: &'a [u8],
    high: &'a [u8],
    samples: &'a [u8],
}

impl<'a> Monotone<'a> {
    /// Finds the parts of a list of `len` numbers below `limit`, which must be at most 2^56.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if `cursor` has fewer bytes.
    pub(in crate::format) fn read(cursor: &mut Cursor<'a>, len: usize, limit: u64) -> Result<Self> {
        let shape = Shape::new(len, limit);
        let mut take = |len: u64| cursor.take(usize::try_from(len).unwrap_or(usize::MAX));
        let [low, high, samples] = shape.part_lens();
        Ok(Self { shape, low: take(low)?, high: take(high)?, samples: take(samples)? })
    }

    /// Returns the number of numbers.
    pub(in crate::format) fn len(&self) -> usize {
        self.shape.len
    }

    /// Returns the number at `at`, or `None` if it does not exist or is not below the limit.
    pub(in crate::format) fn get(&self, at: usize) -> Option<u64> {
        if at >= self.shape.len {
            return None;
        }
        let sample_idx = at / SAMPLE_EVERY;
        let start = match sample_idx.checked_sub(1) {
            None => 0,
            Some(before) => number_at(self.samples, before, self.shape.sample_width),
        };
        let bit = nth_one(self.high, start, (at % SAMPLE_EVERY) as u32)?;
        self.number(at, bit)
    }

    /// Returns all numbers, or `None` if they do not ascend below the limit.
    pub(in crate::format) fn numbers(&self) -> Option<Vec<u64>> {
        let mut numbers = Vec::with_capacity(self.shape.len);
        for (word_idx, bytes) in self.high.chunks(8).enumerate() {
            let mut word = Stream { bytes, position: 0 }.bits();
            while word != 0 {
                let bit = 64 * word_idx as u64 + u64::from(word.trailing_zeros());
                numbers.push(self.number(numbers.len(), bit)?);
                word &= word - 1;
            }
        }
        (numbers.len() == self.shape.len && numbers.is_sorted()).then_some(numbers)
    }

    /// Returns the number at `at`, which set `bit`.
    #[inline]
    fn number(&self, at: usize, bit: u64) -> Option<u64> {
        let high = bit.checked_sub(at as u64).filter(|_| at < self.shape.len)?;
        let number = high << self.shape.width | number_at(self.low, at, self.shape.width);
        (number < self.shape.limit).then_some(number)
    }
}

/// Returns the number at `at` among numbers of `width` bits.
#[inline]
fn number_at(bytes: &[u8], at: usize, width: u8) -> u64 {
    let position = at * usize::from(width);
    Stream { bytes, position }.bits() & !(u64::MAX << width)
}

/// Returns the place of one number `nth` among the ones of `bits` from bit `start` on.
fn nth_one(bits: &[u8], start: u64, nth: u32) -> Option<u64> {
    let mut at = usize::try_from(start / 64).ok()?.checked_mul(8)?;
    let mut left = nth;
    let mut mask = u64::MAX << (start % 64);
    while at < bits.len() {
        let word = Stream { bytes: bits, position: 8 * at }.bits() & mask;
        let num_ones = word.count_ones();
        if left < num_ones {
            return Some(8 * at as u64 + u64::from(nth_one_of(word, left)));
        }
        left -= num_ones;
        (at, mask) = (at + 8, u64::MAX);
    }
    None
}

/// Returns the place of one number `nth` in `word`, which has more.
fn nth_one_of(word: u64, nth: u32) -> u32 {
    let (mut word, mut left, mut place) = (word, nth, 0);
    for half in [32, 16, 8] {
        let num_ones = (word & ((1 << half) - 1)).count_ones();
        let skipped = if left < num_ones { 0 } else { half };
        left -= if skipped > 0 { num_ones } else { 0 };
        word >>= skipped;
        place += skipped;
    }
    (0..left).for_each(|_| word &= word - 1);
    place + word.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::cursor::Origin;

    const PLACE: Origin<'_> = Origin { file: "a", section: "grammar", offset: 0 };

    /// Returns the numbers read one by one, which must be those read at once.
    fn read(bytes: &[u8], len: usize, limit: u64) -> Option<Vec<u64>> {
        let mut cursor = Cursor::new(PLACE, bytes);
        let list = Monotone::read(&mut cursor, len, limit).ok()?;
        let numbers = list.numbers()?;
        cursor.finish().ok()?;
        assert_eq!(list.get(len), None);
        let single: Option<Vec<u64>> = (0..len).map(|at| list.get(at)).collect();
        (single.as_ref() == Some(&numbers)).then_some(numbers)
    }

    proptest! {
        #[test]
        fn lists_come_back(gaps in proptest::collection::vec((0u32..40, any::<u64>()), 0..700), more in 1u64..1000) {
            let ends = gaps.iter().scan(0u64, |end, &(shift, gap)| {
                *end += gap >> 24 >> shift;
                Some(*end)
            });
            let numbers: Vec<u64> = ends.collect();
            let limit = numbers.last().unwrap_or(&0) + more;
            let mut bytes = Vec::new();
            encode_monotone(&mut bytes, &numbers, limit);
            prop_assert_eq!(read(&bytes, numbers.len(), limit), Some(numbers));
        }

        #[test]
        fn any_bytes_are_numbers_below_the_limit_or_none(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), len in 0usize..400, limit in 0u64..1 << 20,
        ) {
            let mut cursor = Cursor::new(PLACE, &bytes);
            if let Ok(list) = Monotone::read(&mut cursor, len, limit) {
                prop_assert!((0..len).filter_map(|at| list.get(at)).all(|number| number < limit));
                prop_assert!(list.numbers().is_none_or(|numbers| numbers.len() == len));
            }
        }
    }
}
