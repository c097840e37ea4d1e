//! Rows of few words with common numbers, packed as keys, and their merge.
//!
//! ```text
//! chunk   5 │ bits │ head │ distance │ head │ distance │ count │ ...
//! row     a b: 3      key: the numbers of a and b, `bits` bits each, the first word highest
//! head    low half: bytes of the distance; high half: the count, or 15 if the rest of it follows as LEB128
//! ```
//!
//! A distance is that to the key of the row before, and of the first row of a chunk the key itself. It is little-endian,
//! so it is read at once and needs no loop. Keys have up to 120 bits: five words of 16 million, or three of 2^40. A
//! sequence of three words takes 4 to 6 bytes.
//!
//! O(rows) to pack, O(rows * log machines) to merge. Ours.

use std::cmp::Reverse;

use super::{KEYS, MORE, Packed, fault};
use crate::analytics::sequences::key::Packing;
use crate::analytics::too_many_occurrences;
use crate::error::Result;
use crate::format::cursor::{Cursor, push_varint};

/// Most bits of a key, which are those of a distance.
const MAX_KEY_BITS: u32 = 120;
/// Bytes of a chunk, after which another one begins.
const CHUNK_BYTES: usize = 1 << 13;
/// Bytes that are read for a distance.
const DISTANCE_BYTES: usize = size_of::<u128>();
/// Most bytes of a row: a head, a distance and a count.
const MAX_ROW_BYTES: usize = 1 + DISTANCE_BYTES + 10;

/// The words of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyWords {
    packing: Packing,
    /// Number of words that have numbers.
    num_common: usize,
}

impl KeyWords {
    /// Returns the words of keys of `num_words` of `num_common` words. `None` if a key has no room for them.
    pub fn new(num_words: usize, num_common: usize) -> Option<Self> {
        let packing = Packing::new(num_words, num_common);
        let is_whole = num_words > 0 && packing.all_bits() <= MAX_KEY_BITS;
        is_whole.then_some(Self { packing, num_common })
    }

    /// Returns true if keys of 64 bits with this `packing` are the same numbers.
    pub fn are_keys(self, packing: Packing) -> bool {
        packing.is_whole() && packing == self.packing
    }

    /// Returns the key of `words`.
    #[inline]
    pub fn key(self, words: impl Iterator<Item = u32>) -> u128 {
        words.fold(0, |key, word| key << self.packing.word_bits() | u128::from(word))
    }

    /// Returns the word of `key` at place `at`.
    #[inline]
    pub fn word(self, key: u128, at: usize) -> u32 {
        self.packing.word(key, at)
    }

    /// Checks that all words of `keys` have numbers.
    fn check(self, keys: &[u128]) -> Result<()> {
        let has_number = |word: u32| (word as usize) < self.num_common;
        let have_numbers = |&key: &u128| {
            key >> self.packing.all_bits() == 0 && (0..self.packing.num_words).all(|at| has_number(self.word(key, at)))
        };
        match keys.iter().find(|key| !have_numbers(key)) {
            None => Ok(()),
            Some(key) => Err(fault(0, format!("expected numbers of {} words, got the key {key:#x}", self.num_common))),
        }
    }
}

/// Writer of the chunks of one parcel.
pub(super) struct KeyWriter {
    parcel: u32,
    words: KeyWords,
    bytes: Vec<u8>,
    /// Key of the last row of the chunk.
    last: u128,
}

impl KeyWriter {
    pub fn new(parcel: u32, words: KeyWords) -> Self {
        Self { parcel, words, bytes: Vec::new(), last: 0 }
    }

    /// Appends a row. A chunk that is full goes to `done`.
    #[inline]
    pub fn push(&mut self, key: u128, count: u64, done: &mut Vec<Packed>) {
        if self.bytes.len() >= CHUNK_BYTES {
            self.close(done);
        }
        if self.bytes.is_empty() {
            self.bytes.reserve(CHUNK_BYTES + MAX_ROW_BYTES);
            self.bytes.extend_from_slice(&[KEYS, self.words.packing.word_bits() as u8]);
            self.last = 0;
        }
        let distance = key - self.last;
        self.last = key;
        let len = (u128::BITS - distance.leading_zeros()).div_ceil(8) as usize;
        let end = self.bytes.len() + 1 + len;
        // A copy of a fixed length is faster than one of `len` bytes.
        let mut row = [0; 1 + DISTANCE_BYTES];
        row[0] = len as u8 | (count.min(MORE) << 4) as u8;
        row[1..].copy_from_slice(&distance.to_le_bytes());
        self.bytes.extend_from_slice(&row);
        self.bytes.truncate(end);
        if count >= MORE {
            push_varint(&mut self.bytes, count - MORE);
        }
    }

    /// Moves the chunk to `done`, unless it is empty.
    pub fn close(&mut self, done: &mut Vec<Packed>) {
        if !self.bytes.is_empty() {
            done.push(Packed { parcel: self.parcel, bytes: std::mem::take(&mut self.bytes) });
        }
    }
}

/// Reader of the rows of one parcel of one machine.
#[derive(Debug)]
struct KeyReader<'a> {
    /// Chunks that are not read yet, the next one last.
    chunks: Vec<&'a [u8]>,
    /// Rows of the chunk that are not read yet.
    rows: &'a [u8],
    /// True until a row of the chunk is read.
    is_first: bool,
    /// True once a row of any chunk is read.
    has_read: bool,
    key: u128,
    count: u64,
}

impl<'a> KeyReader<'a> {
    /// Builds a reader of `chunks`, which may come in any order.
    fn new(words: KeyWords, chunks: Vec<&'a [u8]>) -> Result<Self> {
        let reader = Self { chunks: Vec::new(), rows: &[], is_first: true, has_read: false, key: 0, count: 0 };
        let mut firsts = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let rows = match chunk {
                [KEYS, bits, rows @ ..] if u32::from(*bits) == words.packing.word_bits() && !rows.is_empty() => rows,
                _ => return Err(fault(0, format!("expected rows of words of {} bits", words.packing.word_bits()))),
            };
            let mut first = Self { rows, chunks: Vec::new(), ..reader };
            first.advance()?;
            firsts.push((first.key, rows));
        }
        // Chunks mostly come in order, and a stable sort is fast then.
        firsts.sort_by_key(|&(key, _)| Reverse(key));
        Ok(Self { chunks: firsts.into_iter().map(|(_, rows)| rows).collect(), ..reader })
    }

    /// Reads the next row. Returns false if there is none.
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        if self.rows.is_empty() {
            let Some(rows) = self.chunks.pop() else { return Ok(false) };
            self.rows = rows;
            self.is_first = true;
        }
        let [head, rest @ ..] = self.rows else { return Ok(false) };
        let len = usize::from(head & 0xF);
        let distance = match rest.first_chunk::<DISTANCE_BYTES>() {
            Some(bytes) => u128::from_le_bytes(*bytes) & ((1 << (8 * len)) - 1),
            None => last_distance(rest, len)?,
        };
        self.rows = &rest[len..];
        self.count = u64::from(head >> 4);
        if self.count == MORE {
            self.read_count()?;
        }
        let before = if self.is_first { 0 } else { self.key };
        // Both have 120 bits at most when a row is right, and a sum of more is refused as a key.
        let key = before.saturating_add(distance);
        // Rows that do not ascend would be merged wrongly.
        if self.has_read && key <= self.key {
            return Err(fault(0, "expected rows that ascend"));
        }
        self.key = key;
        self.is_first = false;
        self.has_read = true;
        Ok(true)
    }

    #[cold]
    fn read_count(&mut self) -> Result<()> {
        let mut rest = Cursor::new(super::ORIGIN, self.rows);
        let more = rest.varint()?;
        self.count = self.count.checked_add(more).ok_or_else(|| rest.fault("expected a count of 64 bits"))?;
        self.rows = &self.rows[self.rows.len() - rest.remaining()..];
        Ok(())
    }
}

/// Returns a distance of `len` bytes at the end of a chunk.
#[cold]
fn last_distance(rest: &[u8], len: usize) -> Result<u128> {
    let Some(bytes) = rest.get(..len) else {
        return Err(fault(0, format!("expected a distance of {len} bytes, {} are left", rest.len())));
    };
    let mut all = [0; DISTANCE_BYTES];
    all[..len].copy_from_slice(bytes);
    Ok(u128::from_le_bytes(all))
}

/// The rows of parcels of several machines, merged while they are read.
#[derive(Debug)]
pub(super) struct MergedKeys<'a> {
    words: KeyWords,
    readers: Vec<KeyReader<'a>>,
    /// Keys of readers with a row, as a heap: none is below the one at half of its place.
    heap: Vec<(u128, usize)>,
}

impl<'a> MergedKeys<'a> {
    /// Builds the merge of the rows of `machines`.
    pub fn new(words: KeyWords, machines: impl Iterator<Item = Vec<&'a [u8]>>) -> Result<Self> {
        let mut readers = machines.map(|chunks| KeyReader::new(words, chunks)).collect::<Result<Vec<_>>>()?;
        let mut heap = Vec::with_capacity(readers.len());
        for (at, reader) in readers.iter_mut().enumerate() {
            if reader.advance()? {
                heap.push((reader.key, at));
            }
        }
        heap.sort_unstable();
        Ok(Self { words, readers, heap })
    }

    /// Returns the words of the keys.
    pub fn words(&self) -> KeyWords {
        self.words
    }

    /// Appends the next rows whose sum is `least_count` or more to `keys` and `counts`, until these are `num_rows`.
    pub fn next_rows(
        &mut self,
        num_rows: usize,
        least_count: u64,
        keys: &mut Vec<u128>,
        counts: &mut Vec<u64>,
    ) -> Result<()> {
        let first_row = keys.len();
        while keys.len() < num_rows {
            let Some(&(key, first)) = self.heap.first() else { break };
            let others = self.heap[1..].iter().take(2).map(|&(key, _)| key);
            let limit = others.min().unwrap_or(u128::MAX);
            if key < limit {
                self.pass_below(limit, first, num_rows, least_count, keys, counts)?;
                continue;
            }
            let mut sum = 0u64;
            while let Some(&(next, reader)) = self.heap.first()
                && next == key
            {
                let count = self.readers[reader].count;
                sum = sum.checked_add(count).ok_or_else(too_many_occurrences)?;
                let is_left = self.readers[reader].advance()?;
                self.replace_first(is_left);
            }
            if sum >= least_count {
                keys.push(key);
                counts.push(sum);
            }
        }
        self.words.check(&keys[first_row..])
    }

    /// Passes the rows of the first reader whose keys are below `limit`, the least key of the others.
    fn pass_below(
        &mut self,
        limit: u128,
        first: usize,
        num_rows: usize,
        least_count: u64,
        keys: &mut Vec<u128>,
        counts: &mut Vec<u64>,
    ) -> Result<()> {
        let reader = &mut self.readers[first];
        let mut is_left = true;
        while is_left && reader.key < limit && keys.len() < num_rows {
            if reader.count >= least_count {
                keys.push(reader.key);
                counts.push(reader.count);
            }
            is_left = reader.advance()?;
        }
        self.replace_first(is_left);
        Ok(())
    }

    /// Puts the key of the first reader of the heap in its place there, if the reader has a row left.
    #[inline]
    fn replace_first(&mut self, is_left: bool) {
        if is_left {
            let (key, reader) = &mut self.heap[0];
            *key = self.readers[*reader].key;
        } else {
            self.heap.swap_remove(0);
        }
        let mut place = 0;
        while let Some(&left) = self.heap.get(2 * place + 1) {
            let right = self.heap.get(2 * place + 2).copied();
            let (least, child) = match right {
                Some(right) if right < left => (right, 2 * place + 2),
                _ => (left, 2 * place + 1),
            };
            if self.heap[place] <= least {
                break;
            }
            self.heap.swap(place, child);
            place = child;
        }
    }
}
