//! The writer of the rows of one machine to parcels. [The layout](super) is that of the merge.
//!
//! ```text
//! rows, ascending   a b: 3   a c: 1   b a: 2
//! parcel 0          chunk of a b, a c ┐
//! parcel 1          chunk of b a      ┴─ then the words of each parcel
//! ```
//!
//! Threads pack different rows side by side. They share a bit for each word and parcel. O(rows).

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::keys::{KeyWords, KeyWriter};
use super::{COMMON, COUNTS, LISTS, MORE, Packed, RANKS, WORDS};
use crate::analytics::{Sequences, Vocabulary};
use crate::format::cursor::push_varint;

/// Bytes of a chunk, after which another one begins.
const CHUNK_BYTES: usize = 1 << 10;
/// Fewest words that a parallel task assigns to parcels.
const TASK_WORDS: usize = 1 << 12;

/// Writer of the rows of one machine to parcels. The layout is drawn at the head of the module `parcels`.
#[derive(Debug)]
pub struct ParcelPacker {
    vocabulary: Arc<Vocabulary>,
    num_parcels: usize,
    /// The numbers of words. `None` if all machines have the same.
    own: Option<OwnNumbers>,
    /// Words of rows that are packed as keys.
    keys: Option<KeyWords>,
}

/// Numbers of words that only this machine has.
#[derive(Debug)]
struct OwnNumbers {
    /// Parcel of the rows that begin with a word.
    parcels: Vec<u32>,
    /// Words that the rows of each parcel use, one bit for each.
    used: Vec<Vec<AtomicU64>>,
}

impl ParcelPacker {
    /// Builds a writer of rows of words of `vocabulary` to `num_parcels` parcels, at least 1. It takes 4 bytes
    /// for each word, and a bit for each word and parcel.
    pub fn new(vocabulary: Arc<Vocabulary>, num_parcels: u32) -> Self {
        let num_parcels = num_parcels.max(1);
        let words = (0..vocabulary.len()).into_par_iter().with_min_len(TASK_WORDS);
        let parcels = words.map(|word| parcel_of(vocabulary.word(word), num_parcels)).collect();
        let bits = || (0..vocabulary.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let used = (0..num_parcels).map(|_| bits()).collect();
        Self { vocabulary, num_parcels: num_parcels as usize, own: Some(OwnNumbers { parcels, used }), keys: None }
    }

    /// Builds a writer of rows of `num_words` words of `vocabulary`, whose numbers
    /// [all machines have](Vocabulary::for_part). The texts of words are not packed.
    pub fn with_common_numbers(vocabulary: Arc<Vocabulary>, num_parcels: u32, num_words: usize) -> Self {
        let keys = KeyWords::new(num_words, vocabulary.len());
        Self { vocabulary, num_parcels: num_parcels.max(1) as usize, own: None, keys }
    }

    /// Returns the memory of a writer in bytes.
    pub fn memory_bytes(&self) -> usize {
        let own = |own: &OwnNumbers| 4 * own.parcels.len() + self.num_parcels * self.vocabulary.len() / 8;
        self.own.as_ref().map_or(0, own)
    }

    /// Packs rows of words and counts. Rows ascend by their words, which are rows of the vocabulary. Several
    /// threads may call it with different rows.
    ///
    /// # Panics
    /// Panics if a row has no word or one that the vocabulary lacks, or if two rows are equal.
    pub fn pack<W: Iterator<Item = u32>>(&self, rows: impl Iterator<Item = (W, u64)>) -> Vec<Packed> {
        if let Some(keys) = self.keys {
            return self.pack_keys(keys, rows.map(|(words, count)| (keys.key(words), count)));
        }
        let mut packing = self.packing(COUNTS);
        for (words, count) in rows {
            packing.push(words, count);
        }
        packing.finish()
    }

    /// Packs `sequences` of words of the vocabulary and their counts. Variant of [`pack`](Self::pack) for rows that are
    /// keys already.
    ///
    /// # Panics
    /// The panics of [`pack`](Self::pack).
    pub fn pack_sequences(&self, sequences: &Sequences, counts: &[u64]) -> Vec<Packed> {
        match self.keys {
            Some(keys) if keys.are_keys(sequences.packing()) => {
                let rows = (0..sequences.len()).map(|row| u128::from(sequences.key(row)));
                self.pack_keys(keys, rows.zip(counts.iter().copied()))
            }
            Some(keys) if !sequences.packing().is_whole() => {
                let rows = (0..sequences.len()).map(|row| keys.key(sequences.row_words(row).iter().copied()));
                self.pack_keys(keys, rows.zip(counts.iter().copied()))
            }
            _ => self.pack((0..sequences.len()).map(|row| (sequences.words(row), counts[row]))),
        }
    }

    fn pack_keys(&self, words: KeyWords, rows: impl Iterator<Item = (u128, u64)>) -> Vec<Packed> {
        let mut done = Vec::new();
        let mut writers: Vec<KeyWriter> =
            (0..self.num_parcels as u32).map(|parcel| KeyWriter::new(parcel, words)).collect();
        for (key, count) in rows {
            let parcel = parcel_of_number(words.word(key, 0), self.num_parcels);
            writers[parcel].push(key, count, &mut done);
        }
        writers.iter_mut().for_each(|writer| writer.close(&mut done));
        done
    }

    /// Packs rows of one word and the ascending ids of its documents.
    ///
    /// # Panics
    /// Panics if the vocabulary lacks a word.
    pub fn pack_lists<I: ExactSizeIterator<Item = u64>>(&self, rows: impl Iterator<Item = (u32, I)>) -> Vec<Packed> {
        let mut packing = self.packing(LISTS);
        for (word, ids) in rows {
            packing.push(std::iter::once(word), ids.len() as u64).push_ids(ids);
        }
        packing.finish()
    }

    /// Packs rows of words and their documents: ids, which ascend, and numbers of occurrences. Rows ascend as those of
    /// [`pack`](Self::pack).
    ///
    /// # Panics
    /// The panics of [`pack`](Self::pack).
    pub fn pack_ranks<W, E>(&self, rows: impl Iterator<Item = (W, E)>) -> Vec<Packed>
    where
        W: Iterator<Item = u32>,
        E: ExactSizeIterator<Item = (u64, u64)>,
    {
        let mut packing = self.packing(RANKS);
        for (words, entries) in rows {
            packing.push(words, entries.len() as u64).push_entries(entries);
        }
        packing.finish()
    }

    /// Returns the words that packed rows use, chunk by chunk, or the number of all words if machines have the same. It
    /// is called once, after all rows.
    pub fn words(&self) -> impl Iterator<Item = Packed> + '_ {
        (0..self.num_parcels).flat_map(|parcel| match &self.own {
            Some(own) => self.words_of(parcel, own),
            None => vec![self.num_words_of(parcel)],
        })
    }

    fn num_words_of(&self, parcel: usize) -> Packed {
        let mut bytes = vec![COMMON];
        push_varint(&mut bytes, self.vocabulary.len() as u64);
        Packed { parcel: parcel as u32, bytes }
    }

    fn packing(&self, kind: u8) -> Packing<'_> {
        let writer = |parcel| Writer { kind, parcel, bytes: Vec::new(), last: Vec::new() };
        let writers = (0..self.num_parcels as u32).map(writer).collect();
        Packing { packer: self, writers, words: Vec::new(), done: Vec::new() }
    }

    /// Notes that a row uses `words`, and returns its parcel.
    fn note(&self, words: &[u32]) -> usize {
        let Some(own) = &self.own else { return parcel_of_number(words[0], self.num_parcels) };
        let parcel = own.parcels[words[0] as usize] as usize;
        for &word in words {
            let place = &own.used[parcel][word as usize / 64];
            let bit = 1u64 << (word % 64);
            // Most words are noted already, and reading does not disturb other threads.
            if place.load(Ordering::Relaxed) & bit == 0 {
                place.fetch_or(bit, Ordering::Relaxed);
            }
        }
        parcel
    }

    fn words_of(&self, parcel: usize, own: &OwnNumbers) -> Vec<Packed> {
        let mut done = Vec::new();
        let mut bytes = Vec::new();
        let mut next = 0;
        for (block, bits) in own.used[parcel].iter().enumerate() {
            let mut bits = bits.load(Ordering::Relaxed);
            while bits != 0 {
                let word = 64 * block + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if bytes.is_empty() {
                    bytes.push(WORDS);
                    next = 0;
                }
                let text = self.vocabulary.word(word);
                push_varint(&mut bytes, (word - next) as u64);
                push_varint(&mut bytes, text.len() as u64);
                bytes.extend_from_slice(text.as_bytes());
                next = word + 1;
                if bytes.len() >= CHUNK_BYTES {
                    done.push(Packed { parcel: parcel as u32, bytes: std::mem::take(&mut bytes) });
                }
            }
        }
        if !bytes.is_empty() {
            done.push(Packed { parcel: parcel as u32, bytes });
        }
        done
    }
}

/// Returns the parcel of the rows that begin with `word`. It is the same on all machines with one build.
fn parcel_of(word: &str, num_parcels: u32) -> u32 {
    let mut hasher = DefaultHasher::new();
    hasher.write(word.as_bytes());
    (hasher.finish() % u64::from(num_parcels)) as u32
}

/// Returns the parcel of the rows that begin with the word of this number, which all machines have.
fn parcel_of_number(number: u32, num_parcels: usize) -> usize {
    // The high half of the product depends on all bits of the number.
    let mixed = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    ((mixed * num_parcels as u64) >> 32) as usize
}

/// Rows that are being packed.
struct Packing<'a> {
    packer: &'a ParcelPacker,
    /// One for each parcel.
    writers: Vec<Writer>,
    words: Vec<u32>,
    done: Vec<Packed>,
}

impl Packing<'_> {
    /// Appends a row, and returns the writer of what follows its count.
    fn push(&mut self, words: impl Iterator<Item = u32>, count: u64) -> &mut Writer {
        self.words.clear();
        self.words.extend(words);
        let writer = &mut self.writers[self.packer.note(&self.words)];
        writer.close_if(CHUNK_BYTES, &mut self.done);
        writer.push(&self.words, count);
        writer
    }

    fn finish(mut self) -> Vec<Packed> {
        self.writers.iter_mut().for_each(|writer| writer.close_if(1, &mut self.done));
        self.done
    }
}

/// Writer of the chunks of one parcel.
struct Writer {
    kind: u8,
    parcel: u32,
    bytes: Vec<u8>,
    /// Words of the last row of the chunk.
    last: Vec<u32>,
}

impl Writer {
    fn push(&mut self, words: &[u32], count: u64) {
        let is_first = self.bytes.is_empty();
        let num_shared = if is_first {
            self.bytes.push(self.kind);
            0
        } else {
            let equal = words.iter().zip(&self.last).take_while(|(word, last)| word == last);
            equal.count()
        };
        let shared = num_shared as u64;
        self.bytes.push((shared.min(MORE) | count.min(MORE) << 4) as u8);
        if shared >= MORE {
            push_varint(&mut self.bytes, shared - MORE);
        }
        let before = if is_first { 0 } else { self.last[num_shared] + 1 };
        push_varint(&mut self.bytes, u64::from(words[num_shared] - before));
        for &word in &words[num_shared + 1..] {
            push_varint(&mut self.bytes, word.into());
        }
        if count >= MORE {
            push_varint(&mut self.bytes, count - MORE);
        }
        self.last.clear();
        self.last.extend_from_slice(words);
    }

    fn push_ids(&mut self, ids: impl Iterator<Item = u64>) {
        let mut before = 0;
        for id in ids {
            push_varint(&mut self.bytes, id - before);
            before = id;
        }
    }

    fn push_entries(&mut self, entries: impl Iterator<Item = (u64, u64)>) {
        let mut before = 0;
        for (id, count) in entries {
            push_varint(&mut self.bytes, id - before);
            push_varint(&mut self.bytes, count);
            before = id;
        }
    }

    /// Moves the chunk to `done` if it has `least_bytes`.
    fn close_if(&mut self, least_bytes: usize, done: &mut Vec<Packed>) {
        if self.bytes.len() >= least_bytes {
            done.push(Packed { parcel: self.parcel, bytes: std::mem::take(&mut self.bytes) });
        }
    }
}
