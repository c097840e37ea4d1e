//! Lists of numbers in static prefix codes, decoded at one to two nanoseconds for each number.
//!
//! ```text
//! list     code lengths, 4 bits for each class | lengths of the streams LEB128 | streams
//! stream   of each number: code of its class | its place in the class, in plain bits
//! class    numbers start .. start + 2^width
//! ```
//!
//! A list is cut into [`NUM_STREAMS`] equal parts, each with a stream of its own. A decoder follows several streams at
//! once, because within a stream it must know where one number ends before it can read the next. A number is one load,
//! one look-up in a table of 2^[`MAX_CODE_LEN`] entries, and one shift. Low bits come first. Codes are canonical and at
//! most 11 bits long (Huffman, 1952; counts are halved until they fit).
//!
//! Adaptive rANS in this folder is slower and needs no table. It is smaller where
//! probabilities change within a segment.

use crate::error::Result;
use crate::format::cursor::Cursor;

/// Greatest number of classes.
pub(in crate::format) const MAX_CLASSES: usize = 64;
const MAX_CODE_LEN: u8 = 11;
/// Number of parts of a list. Two threads follow four streams each.
const NUM_STREAMS: usize = 8;
const STREAMS_AT_ONCE: usize = NUM_STREAMS / 2;
/// Least number of numbers that a second thread is asked to help with.
const MIN_SHARED_LEN: usize = 1 << 16;

/// Numbers that share a code: `start` up to `start + 2^width`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::format) struct Class {
    pub(in crate::format) start: u32,
    /// At most 31.
    pub(in crate::format) width: u8,
}

/// Returns classes for any number: class c holds those of c bits.
pub(in crate::format) fn classes_by_len() -> [Class; 33] {
    std::array::from_fn(|len| match len {
        0 => Class { start: 0, width: 0 },
        len => Class { start: 1 << (len - 1), width: len as u8 - 1 },
    })
}

/// Decodes a list of `num_numbers` numbers of `classes`, and applies `map` to each.
///
/// # Errors
/// [`Error::Format`](crate::Error::Format) if `cursor` is not at such a list.
pub(in crate::format) fn decode_list(
    cursor: &mut Cursor<'_>,
    classes: &[Class],
    num_numbers: u64,
    map: impl Fn(u32) -> u32 + Copy + Sync,
) -> Result<Vec<u32>> {
    List::read(cursor, classes, num_numbers)?.decode(map)
}

/// A list whose numbers are not decoded yet.
#[derive(Debug)]
pub(in crate::format) struct List<'a> {
    table: Table,
    streams: [Stream<'a>; NUM_STREAMS],
    num_numbers: usize,
    /// The place of the list, for errors.
    at: Cursor<'a>,
}

impl<'a> List<'a> {
    /// Finds the streams of a list of `num_numbers` numbers of `classes`.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if `cursor` is not at such a list.
    pub(in crate::format) fn read(cursor: &mut Cursor<'a>, classes: &[Class], num_numbers: u64) -> Result<Self> {
        let at = cursor.clone();
        let table = Table::read(cursor, classes)?;
        let mut stream_lens = [0u64; NUM_STREAMS];
        for len in &mut stream_lens {
            *len = cursor.varint()?;
        }
        let mut streams: [Stream<'_>; NUM_STREAMS] = Default::default();
        for (stream, len) in streams.iter_mut().zip(stream_lens) {
            stream.bytes = cursor.take(usize::try_from(len).unwrap_or(usize::MAX))?;
        }
        // Each number takes a bit or more, so the bytes bound the memory.
        let num_bits = streams.iter().map(|stream| 8 * stream.bytes.len() as u64).sum::<u64>();
        if num_numbers > num_bits {
            return Err(at.fault(format!("expected {num_numbers} numbers in {num_bits} bits")));
        }
        Ok(Self { table, streams, num_numbers: num_numbers as usize, at })
    }

    /// Returns the number of numbers in the first half of the streams.
    fn first_half_len(&self) -> usize {
        (STREAMS_AT_ONCE * self.part_len()).min(self.num_numbers)
    }

    /// Decodes all numbers, and applies `map` to each.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if the streams have other lengths.
    pub(in crate::format) fn decode(&self, map: impl Fn(u32) -> u32 + Copy + Sync) -> Result<Vec<u32>> {
        let mut numbers = vec![0; self.num_numbers];
        let (first, second) = numbers.split_at_mut(self.first_half_len());
        let mut decode_first = || self.follow(0, first, map);
        let mut decode_second = || self.follow(STREAMS_AT_ONCE, second, map);
        let (first, second) = if self.num_numbers >= MIN_SHARED_LEN {
            rayon::join(decode_first, decode_second)
        } else {
            (decode_first(), decode_second())
        };
        first.and(second).map(|()| numbers)
    }

    /// Returns the length of all parts but the last ones.
    fn part_len(&self) -> usize {
        self.num_numbers.div_ceil(NUM_STREAMS).max(1)
    }

    /// Decodes the four streams from `first_stream` on to `numbers`.
    fn follow(&self, first_stream: usize, numbers: &mut [u32], map: impl Fn(u32) -> u32) -> Result<()> {
        let mut streams = self.streams;
        let streams = &mut streams[first_stream..][..STREAMS_AT_ONCE];
        let mut parts = numbers.chunks_mut(self.part_len());
        let mut parts: [&mut [u32]; STREAMS_AT_ONCE] = std::array::from_fn(|_| parts.next().unwrap_or_default());
        follow(&self.table, streams, &mut parts, map);
        if streams.iter().all(Stream::is_at_end) {
            Ok(())
        } else {
            let num_numbers = self.num_numbers;
            Err(self.at.fault(format!("expected {num_numbers} numbers, got other bits")))
        }
    }
}

/// Decodes one number of each stream in turn. The parts are equally long, except that the last ones
/// may be shorter.
#[inline]
fn follow(
    table: &Table,
    streams: &mut [Stream<'_>],
    parts: &mut [&mut [u32]; STREAMS_AT_ONCE],
    map: impl Fn(u32) -> u32,
) {
    let shared_len = parts.iter().map(|part| part.len()).min().unwrap_or(0);
    if let [at_a, at_b, at_c, at_d] = streams
        && let [to_a, to_b, to_c, to_d] = parts
    {
        // Copies stay in registers.
        let [mut a, mut b, mut c, mut d] = [*at_a, *at_b, *at_c, *at_d];
        let shared = to_a[..shared_len].iter_mut().zip(&mut to_b[..shared_len]);
        let shared = shared.zip(to_c[..shared_len].iter_mut().zip(&mut to_d[..shared_len]));
        for ((to_a, to_b), (to_c, to_d)) in shared {
            *to_a = map(a.next(table));
            *to_b = map(b.next(table));
            *to_c = map(c.next(table));
            *to_d = map(d.next(table));
        }
        (*at_a, *at_b, *at_c, *at_d) = (a, b, c, d);
    }
    for (stream, part) in streams.iter_mut().zip(parts) {
        part[shared_len..].iter_mut().for_each(|to| *to = map(stream.next(table)));
    }
}

/// Code of the numbers of some classes.
#[derive(Debug)]
pub(in crate::format) struct Code(Vec<ClassCode>);

/// Code of a class.
#[derive(Debug, Clone, Copy)]
struct ClassCode {
    code: u32,
    code_len: u8,
    /// Length of the code and of a place in the class.
    len: u8,
}

impl Code {
    /// Returns the code for numbers whose `classes` occur so often.
    pub(in crate::format) fn for_counts(classes: &[Class], counts: &[u64]) -> Self {
        let lens = code_lens(counts, MAX_CODE_LEN);
        let codes = codes(&lens).into_iter().zip(&lens).zip(classes);
        let codes = codes.map(|((code, &code_len), class)| ClassCode { code, code_len, len: code_len + class.width });
        Self(codes.collect())
    }

    /// Appends the lengths that [`Table::read`] reads.
    pub(in crate::format) fn push_lens(&self, out: &mut Vec<u8>) {
        for pair in self.0.chunks(2) {
            out.push(pair[0].code_len | pair.get(1).map_or(0, |code| code.code_len << 4));
        }
    }

    /// Appends the number at `place` of its class.
    #[inline]
    pub(in crate::format) fn push(&self, writer: &mut BitWriter, class_idx: u8, place: u32) {
        let ClassCode { code, code_len, len } = self.0[usize::from(class_idx)];
        writer.push(u64::from(code) | u64::from(place) << code_len, len);
    }

    /// Returns the number of bits of a number of a class.
    #[inline]
    pub(in crate::format) fn num_bits(&self, class_idx: u8) -> u64 {
        self.0[usize::from(class_idx)].len.into()
    }
}

/// Bits that are read from any place on, such as one part of a list.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::format) struct Stream<'a> {
    pub(in crate::format) bytes: &'a [u8],
    /// Number of bits read.
    pub(in crate::format) position: usize,
}

impl<'a> Stream<'a> {
    /// Creates the stream of all bits of `bytes`.
    pub(in crate::format) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Returns the next 57 bits or more. Bits behind the end are zero.
    #[inline(always)]
    pub(in crate::format) fn bits(&self) -> u64 {
        self.load(self.position / 8) >> (self.position % 8)
    }

    /// Reads a number. Bits behind the end are zero.
    #[inline(always)]
    pub(in crate::format) fn next(&mut self, table: &Table) -> u32 {
        let bits = self.bits();
        let entry = table.entries[bits as usize % table.entries.len()];
        self.position += usize::from(entry.len);
        let place = (bits >> entry.code_len) as u32 & ((1 << entry.width) - 1);
        entry.start + place
    }

    /// Reads `len` plain bits, at most 32. Bits behind the end are zero.
    pub(in crate::format) fn plain(&mut self, len: u8) -> u32 {
        let bits = self.bits();
        self.position += usize::from(len);
        (bits & ((1 << len) - 1)) as u32
    }

    /// Leaves out `num_bits` bits.
    pub(in crate::format) fn skip(&mut self, num_bits: usize) {
        self.position = self.position.saturating_add(num_bits);
    }

    /// Returns true if more bits were read than there are.
    pub(in crate::format) fn is_behind_end(&self) -> bool {
        self.position > 8 * self.bytes.len()
    }

    /// Returns the 64 bits from byte `at` on.
    #[inline]
    fn load(&self, at: usize) -> u64 {
        match self.bytes.get(at..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => self.load_end(at),
        }
    }

    #[cold]
    fn load_end(&self, at: usize) -> u64 {
        if let Some(last) = self.bytes.last_chunk()
            && at < self.bytes.len()
        {
            return u64::from_le_bytes(*last) >> (8 * (at + 8 - self.bytes.len()));
        }
        let rest = self.bytes.iter().skip(at).zip((0..64).step_by(8));
        rest.map(|(&byte, shift)| u64::from(byte) << shift).sum()
    }

    /// Returns true if the last byte was begun and nothing behind it.
    pub(in crate::format) fn is_at_end(&self) -> bool {
        self.position.div_ceil(8) == self.bytes.len()
    }
}

/// A class, found by the next bits of a stream.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    start: u32,
    width: u8,
    code_len: u8,
    /// Length of the code and of the place.
    len: u8,
}

/// The entry of each sequence of [`MAX_CODE_LEN`] bits.
#[derive(Debug)]
pub(in crate::format) struct Table {
    entries: Box<[Entry; 1 << MAX_CODE_LEN]>,
}

impl Table {
    /// Reads the lengths of a code of `classes`.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if they are not those of a complete code.
    pub(in crate::format) fn read(cursor: &mut Cursor<'_>, classes: &[Class]) -> Result<Self> {
        let at = cursor.clone();
        let lens = cursor.take(classes.len().div_ceil(2))?;
        let lens: Vec<u8> = lens.iter().flat_map(|pair| [pair & 15, pair >> 4]).collect();
        let (lens, rest) = lens.split_at(classes.len());
        Self::new(classes, lens)
            .filter(|_| rest.iter().all(|&len| len == 0))
            .ok_or_else(|| at.fault("expected lengths of a complete prefix code"))
    }

    /// Bytes of memory of a table.
    pub(in crate::format) const MEMORY_BYTES: usize = size_of::<[Entry; 1 << MAX_CODE_LEN]>();

    /// Returns true if `lens`, two in a byte, are those of a complete code of `num_classes`
    /// classes.
    pub(in crate::format) fn are_lens(lens: &[u8], num_classes: usize) -> bool {
        let lens: Vec<u8> = lens.iter().flat_map(|pair| [pair & 15, pair >> 4]).collect();
        let (lens, rest) = lens.split_at(num_classes);
        is_complete(lens) && rest.iter().all(|&len| len == 0)
    }

    /// Returns the table of a code, or `None` if the lengths are not those of a complete code. A
    /// code of one class takes one bit.
    fn new(classes: &[Class], lens: &[u8]) -> Option<Self> {
        if !is_complete(lens) {
            return None;
        }
        let num_used = lens.iter().filter(|&&len| len > 0).count();
        let mut entries = Box::new([Entry::default(); 1 << MAX_CODE_LEN]);
        for ((class, &len), code) in classes.iter().zip(lens).zip(codes(lens)) {
            let &Class { start, width } = class;
            let entry = Entry { start, width, code_len: len, len: len + width };
            let step = if num_used == 1 { 1 } else { 1 << len };
            if len > 0 {
                let with_code = entries.iter_mut().skip(code as usize).step_by(step);
                with_code.for_each(|to| *to = entry);
            }
        }
        Some(Self { entries })
    }
}

/// Returns true if `lens` are those of a code that each sequence of bits belongs to, or of at most
/// one class.
pub(in crate::format) fn is_complete(lens: &[u8]) -> bool {
    let space = |len: u8| if len == 0 { 0 } else { 1u32 << MAX_CODE_LEN >> len };
    let num_used = lens.iter().filter(|&&len| len > 0).count();
    let are_short = lens.iter().all(|&len| len <= MAX_CODE_LEN);
    are_short && (num_used <= 1 || lens.iter().map(|&len| space(len)).sum::<u32>() == 1 << MAX_CODE_LEN)
}

/// Returns the lengths of codes for classes of these counts: 0 for those without, else 1 to
/// `max_len`.
pub(in crate::format) fn code_lens(counts: &[u64], max_len: u8) -> Vec<u8> {
    let mut counts = counts.to_vec();
    loop {
        let lens = huffman_lens(&counts);
        if lens.iter().all(|&len| len <= max_len) {
            return lens;
        }
        counts.iter_mut().for_each(|count| *count = count.div_ceil(2));
    }
}

/// Joins the two rarest trees until one is left. Quadratic, for few classes.
fn huffman_lens(counts: &[u64]) -> Vec<u8> {
    let mut lens = vec![0; counts.len()];
    let used = (0..counts.len()).filter(|&class_idx| counts[class_idx] > 0);
    let mut trees: Vec<(u64, Vec<usize>)> = used.map(|idx| (counts[idx], vec![idx])).collect();
    if let [(_, only)] = &trees[..] {
        lens[only[0]] = 1;
    }
    while trees.len() > 1 {
        // Falling counts; among equal ones the smaller tree is joined first.
        trees.sort_by(|a, b| (b.0, &b.1).cmp(&(a.0, &a.1)));
        let (Some(rarest), Some(next)) = (trees.pop(), trees.pop()) else { break };
        let joined: Vec<usize> = rarest.1.into_iter().chain(next.1).collect();
        joined.iter().for_each(|&class_idx| lens[class_idx] += 1);
        trees.push((rarest.0 + next.0, joined));
    }
    lens
}

/// Returns the canonical codes of these lengths, first bit lowest.
pub(in crate::format) fn codes(lens: &[u8]) -> Vec<u32> {
    let mut codes = vec![0; lens.len()];
    let mut next = 0u32;
    for len in 1..=MAX_CODE_LEN {
        for class_idx in (0..lens.len()).filter(|&idx| lens[idx] == len) {
            codes[class_idx] = next.reverse_bits() >> (u32::BITS - u32::from(len));
            next += 1;
        }
        next <<= 1;
    }
    codes
}

/// Writer of bits, lowest first.
#[derive(Debug, Default)]
pub(in crate::format) struct BitWriter {
    /// Complete bytes, then room for more.
    out: Vec<u8>,
    /// Number of complete bytes.
    len: usize,
    /// Less than 8 further bits, and their number.
    bits: u64,
    num_bits: u32,
}

impl BitWriter {
    /// Appends the `len` low bits of `value`, which has no others. They are at most 56.
    #[inline]
    pub(in crate::format) fn push(&mut self, value: u64, len: u8) {
        self.bits |= value << self.num_bits;
        self.num_bits += u32::from(len);
        // All bytes are written, complete or not, so that the number of complete ones needs no branch.
        match self.out.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut) {
            Some(room) => *room = self.bits.to_le_bytes(),
            None => self.grow(),
        }
        self.len += self.num_bits as usize / 8;
        self.bits >>= self.num_bits & !7;
        self.num_bits %= 8;
    }

    /// Doubles the room and writes the bits.
    #[cold]
    fn grow(&mut self) {
        self.out.truncate(self.len);
        self.out.extend(self.bits.to_le_bytes());
        self.out.resize(2 * self.out.len(), 0);
    }

    /// Returns the number of bits written.
    pub(in crate::format) fn position(&self) -> u64 {
        8 * self.len as u64 + u64::from(self.num_bits)
    }

    /// Returns the bytes. The rest of the last one is zero.
    pub(in crate::format) fn finish(mut self) -> Vec<u8> {
        self.out.truncate(self.len);
        if self.num_bits > 0 {
            self.out.push(self.bits as u8);
        }
        self.out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::cursor::{Origin, push_varint};

    const PLACE: Origin<'_> = Origin { file: "a", section: "grammar", offset: 0 };

    /// Appends `numbers`, each as the index of its class and its place there, to `out`.
    fn encode_list(out: &mut Vec<u8>, classes: &[Class], numbers: impl ExactSizeIterator<Item = (u8, u32)> + Clone) {
        let mut counts = vec![0u64; classes.len()];
        numbers.clone().for_each(|(class_idx, _)| counts[usize::from(class_idx)] += 1);
        let code = Code::for_counts(classes, &counts);
        code.push_lens(out);
        let part_len = numbers.len().div_ceil(NUM_STREAMS);
        let mut numbers = numbers;
        let streams: [Vec<u8>; NUM_STREAMS] = std::array::from_fn(|_| {
            let mut writer = BitWriter::default();
            for (class_idx, place) in numbers.by_ref().take(part_len) {
                code.push(&mut writer, class_idx, place);
            }
            writer.finish()
        });
        streams.iter().for_each(|stream| push_varint(out, stream.len() as u64));
        out.extend(streams.iter().flatten());
    }

    proptest! {
        #[test]
        fn bits_are_written_one_behind_another(
            numbers in prop::collection::vec((any::<u64>(), 0..=56u8), 0..100),
        ) {
            let mut writer = BitWriter::default();
            let mut expected: Vec<bool> = Vec::new();
            for (number, len) in numbers {
                writer.push(number & !(u64::MAX << len), len);
                expected.extend((0..len).map(|bit| number >> bit & 1 == 1));
                prop_assert_eq!(writer.position(), expected.len() as u64);
            }
            let bytes = writer.finish();
            prop_assert_eq!(bytes.len(), expected.len().div_ceil(8));
            expected.resize(8 * bytes.len(), false);
            let bits: Vec<bool> = (0..expected.len()).map(|at| bytes[at / 8] >> (at % 8) & 1 == 1).collect();
            prop_assert_eq!(bits, expected);
        }
    }

    fn encoded(numbers: &[u32]) -> Vec<u8> {
        let classes = classes_by_len();
        let mut out = Vec::new();
        let numbers = numbers.iter().map(|&number| {
            let len = u32::BITS - number.leading_zeros();
            (len as u8, number - classes[len as usize].start)
        });
        encode_list(&mut out, &classes, numbers);
        out
    }

    fn decoded(bytes: &[u8], num_numbers: usize) -> Result<Vec<u32>> {
        let mut cursor = Cursor::new(PLACE, bytes);
        let numbers = decode_list(&mut cursor, &classes_by_len(), num_numbers as u64, |n| n)?;
        cursor.finish()?;
        Ok(numbers)
    }

    #[test]
    fn rare_classes_have_codes_of_at_most_11_bits() {
        let fibonacci = |n: u32| (0..n).fold((1u64, 1u64), |(a, b), _| (b, a + b)).0;
        let counts: Vec<u64> = (0..33).map(fibonacci).collect();
        let lens = code_lens(&counts, MAX_CODE_LEN);
        assert_eq!(lens.iter().max(), Some(&11));
        let classes = classes_by_len();
        assert!(Table::new(&classes, &lens).is_some());
        assert!(Table::new(&classes, &[1, 2]).is_none() && Table::new(&classes, &[12]).is_none());
    }

    proptest! {
        #[test]
        fn lists_come_back(
            numbers in proptest::collection::vec((0u32..32, any::<u32>()), 0..400),
        ) {
            let numbers: Vec<u32> = numbers.iter().map(|&(shift, n)| n >> shift).collect();
            let bytes = encoded(&numbers);
            prop_assert_eq!(decoded(&bytes, numbers.len()).unwrap(), numbers);
        }

        #[test]
        fn any_bytes_are_numbers_or_a_fault(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), num_numbers in 0usize..400,
        ) {
            if let Ok(numbers) = decoded(&bytes, num_numbers) {
                prop_assert_eq!(numbers.len(), num_numbers);
            }
        }
    }
}
