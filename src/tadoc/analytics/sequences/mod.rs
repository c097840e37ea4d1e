//! Sequences of n words (n-grams): counted, by document, and as a ranked index; and their rows, for a
//! corpus or by document. The rows of one document follow those of the document before.
//!
//! Reading order: `key` (windows as numbers, and those of two and three words), `edges` (the windows that each rule
//! contributes, and limits of memory and time), `windows` (all windows as numbers), `walk` (over the rules or the text,
//! several times if memory is short, and rows in parts), `entries` (sorting windows), and the tasks `count`,
//! `by_document` and `ranked`;
//! `counted_documents` has documents that a device has counted, `numbered` sequences by number.

mod by_document;
pub(super) mod count;
mod counted_documents;
pub(super) mod edges;
pub(super) mod entries;
pub(super) mod key;
mod numbered;
mod ranked;
pub(super) mod walk;
pub(super) mod windows;

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::analytics::Vocabulary;
use crate::error::{Canceller, Error, Result};

use entries::{Entry, for_each_sequence};
use key::{Keep, Key, Packing, Table};
use windows::{NumberedWeights, give_back_room};

pub use by_document::DocumentSequences;
pub use count::{SegmentSequences, SequenceCounts, sequence_count};
pub use counted_documents::SegmentDocumentSequences;
pub use ranked::{RankedInvertedIndex, SegmentRanked, ranked_inverted_index};
pub use walk::for_each_in_order;

/// Receiver of the words that a walk meets.
pub(in crate::analytics) trait Sink {
    /// Begins a text that occurs `weight` times. Earlier words do not count.
    fn begin(&mut self, weight: u64);
    /// Receives the next word.
    fn push(&mut self, word: u32);
    /// Receives the next child. `head` has its first words. If it has more words, `tail` has the
    /// last ones.
    fn push_child(&mut self, head: &[u32], tail: Option<&[u32]>);
    /// Receives the next elements, whose first and last words are in `table`.
    fn push_short<const R: usize>(&mut self, table: &Table<R>, elements: &[u32])
    where
        Self: Sized,
    {
        table.push_each(elements, self);
    }
    /// Receives the words before the next one, at the start of a text. Windows inside them do not
    /// count.
    fn prime(&mut self, words: &[u32]);
    /// Returns the number of windows or pairs met so far.
    fn num_met(&self) -> usize;
    /// Ends the input.
    fn close(&mut self);
}

/// Maximum number of keys for which a row is reserved for each. More keys may be equal to one
/// another and give few rows.
const MANY_KEYS: usize = 1 << 20;

/// Sequences of n words each, as rows. A row takes 8 bytes if n words fit 64 bits (for n = 3 up to
/// two million distinct words), else 4 bytes for each word.
#[derive(Debug, Clone)]
pub struct Sequences {
    vocabulary: Arc<Vocabulary>,
    packing: Packing,
    /// Keys by row, if sequences fit keys.
    keys: Vec<u64>,
    /// Words by row and position, if sequences do not fit keys.
    words: Vec<u32>,
}

impl Sequences {
    pub(in crate::analytics) fn new(vocabulary: Arc<Vocabulary>, packing: Packing) -> Self {
        Self { vocabulary, packing, keys: Vec::new(), words: Vec::new() }
    }

    /// Creates rows of one word each from the words `rows` of the vocabulary.
    pub(in crate::analytics) fn from_words(vocabulary: Arc<Vocabulary>, rows: Range<usize>) -> Self {
        let packing = Packing::new(1, vocabulary.len());
        let keys = (rows.start as u64..rows.end as u64).collect();
        Self { vocabulary, packing, keys, words: Vec::new() }
    }

    /// Returns the vocabulary that the rows in [`words`](Self::words) belong to.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns the number of words of each sequence.
    pub fn num_words(&self) -> usize {
        self.packing.num_words
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.keys.len() + self.words.len() / self.packing.num_words
    }

    /// Returns true if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the words of `row` in order, as rows of the vocabulary.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    pub fn words(&self, row: usize) -> impl ExactSizeIterator<Item = u32> + '_ {
        let packing = self.packing;
        let len = self.packing.num_words;
        let (key, words) =
            if packing.is_whole() { (self.keys[row], &[][..]) } else { (0, &self.words[row * len..(row + 1) * len]) };
        (0..len).map(move |at| if packing.is_whole() { packing.word(key, at) } else { words[at] })
    }

    /// Appends the words of `row`, joined by blanks.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    pub fn append_text(&self, row: usize, output: &mut String) {
        for (at, word) in self.words(row).enumerate() {
            if at > 0 {
                output.push(' ');
            }
            output.push_str(self.vocabulary.word(word as usize));
        }
    }

    /// Returns the memory of the rows in bytes, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(self.keys.as_slice()) + size_of_val(self.words.as_slice())
    }

    /// Returns the sort key of `row`: the beginning of its words.
    pub(in crate::analytics) fn key(&self, row: usize) -> u64 {
        if self.packing.is_whole() { self.keys[row] } else { self.packing.key(self.row_words(row)) }
    }

    /// Returns the words of `row`, if sequences do not fit keys.
    pub(in crate::analytics) fn row_words(&self, row: usize) -> &[u32] {
        let len = self.packing.num_words;
        &self.words[row * len..(row + 1) * len]
    }

    pub(in crate::analytics) fn packing(&self) -> Packing {
        self.packing
    }

    /// Sets the rows of sequences that fit keys.
    pub(in crate::analytics) fn set_keys(&mut self, keys: Vec<u64>) {
        self.keys = keys;
    }

    /// Appends the rows of `parts`.
    pub(in crate::analytics) fn extend<'a>(&mut self, parts: impl Iterator<Item = &'a Counted> + Clone) {
        self.keys.reserve_exact(parts.clone().map(|part| part.keys.len()).sum());
        self.words.reserve_exact(parts.clone().map(|part| part.words.len()).sum());
        for part in parts {
            self.keys.extend_from_slice(&part.keys);
            self.words.extend_from_slice(&part.words);
        }
    }

    /// Joins the rows of `parts` in order, with their counts.
    pub(in crate::analytics) fn joined(
        vocabulary: Arc<Vocabulary>,
        packing: Packing,
        parts: &[(Self, Vec<u64>)],
    ) -> (Self, Vec<u64>) {
        let keys = parts.iter().map(|(part, _)| part.keys.as_slice()).collect::<Vec<_>>().concat();
        let words = parts.iter().map(|(part, _)| part.words.as_slice()).collect::<Vec<_>>();
        let counts = parts.iter().map(|(_, counts)| counts.as_slice()).collect::<Vec<_>>();
        (Self { vocabulary, packing, keys, words: words.concat() }, counts.concat())
    }
}

/// Distinct sequences and their counts, not joined to others yet.
#[derive(Debug, Default)]
pub(in crate::analytics) struct Counted {
    keys: Vec<u64>,
    words: Vec<u32>,
    pub counts: Vec<u64>,
}

impl Counted {
    /// Adds up the `weight`s of equal sequences among `entries`, which are sorted by key, and
    /// appends the sequences whose sum reaches `min_count`.
    ///
    /// # Errors
    /// [`Error::Capacity`] if a sum needs more than 64 bits, and [`Error::Cancelled`].
    pub fn add<'a>(
        &mut self,
        entries: &mut [Entry],
        packing: Packing,
        words: &impl Fn(u64) -> &'a [u32],
        weight: &impl Fn(u64) -> u64,
        min_count: u64,
        canceller: Canceller<'_>,
    ) -> Result<()> {
        let mut is_exact = true;
        for_each_sequence(entries, packing, words, canceller, |run| {
            let sum = run.iter().try_fold(0u64, |sum, e| sum.checked_add(weight(e.value)));
            is_exact &= sum.is_some();
            let sum = sum.unwrap_or(u64::MAX);
            if sum >= min_count {
                self.push(run[0], packing, words);
                self.counts.push(sum);
            }
        })?;
        if is_exact { Ok(()) } else { Err(too_many_occurrences()) }
    }

    /// Adds up the weights of equal keys, as [`add`](Self::add) does. `keys` are sorted and have
    /// the number of a weight each.
    ///
    /// # Errors
    /// [`Error::Capacity`] if a sum needs more than 64 bits.
    pub fn add_keys<K: Key>(
        &mut self,
        keys: &[K],
        packing: Packing,
        weights: &impl NumberedWeights,
        min_count: u64,
    ) -> Result<()> {
        if packing.is_whole() && keys.len() <= MANY_KEYS {
            return self.add_whole_keys(keys, weights, min_count);
        }
        let value_bits = weights.bits();
        let mut at = 0;
        while at < keys.len() {
            let key = keys[at].above(value_bits);
            let mut sum = 0u64;
            while at < keys.len() && keys[at].above(value_bits) == key {
                let weight = weights.weight(keys[at].low(value_bits));
                sum = sum.checked_add(weight).ok_or_else(too_many_occurrences)?;
                at += 1;
            }
            if sum >= min_count {
                self.push_key(key, packing);
                self.counts.push(sum);
            }
        }
        Ok(())
    }

    /// Adds up the weights of equal keys of 64 bits or fewer. The end of a run of equal keys is
    /// almost random, so the loop has no branch: it writes every key as a row, over the row before
    /// if they are equal.
    fn add_whole_keys<K: Key>(&mut self, keys: &[K], weights: &impl NumberedWeights, min_count: u64) -> Result<()> {
        let value_bits = weights.bits();
        let Some(first) = keys.first() else { return Ok(()) };
        let first_row = self.counts.len();
        self.keys.resize(first_row + keys.len(), 0);
        self.counts.resize(first_row + keys.len(), 0);
        let rows = &mut self.keys[first_row..];
        let counts = &mut self.counts[first_row..];
        let mut row = 0;
        let mut last = first.above(value_bits);
        let mut sum = 0u64;
        let mut is_exact = true;
        for &key in keys {
            let (key, weight) = (key.above(value_bits), weights.weight(key.low(value_bits)));
            let is_new = key != last;
            row += usize::from(is_new);
            let (more, is_over) = if is_new { 0 } else { sum }.overflowing_add(weight);
            is_exact &= !is_over;
            (last, sum) = (key, more);
            (rows[row], counts[row]) = (key.number(), sum);
        }
        if !is_exact {
            return Err(too_many_occurrences());
        }
        let mut num_rows = row + 1;
        if min_count > 1 {
            num_rows = (0..num_rows).fold(0, |num_kept, row| {
                (rows[num_kept], counts[num_kept]) = (rows[row], counts[row]);
                num_kept + usize::from(counts[num_kept] >= min_count)
            });
        }
        self.keys.truncate(first_row + num_rows);
        self.counts.truncate(first_row + num_rows);
        Ok(())
    }

    /// Removes the rows from `first_row` on whose key, the beginning of their words, is not kept.
    pub fn retain_from(&mut self, first_row: usize, packing: Packing, keep: &Keep<u64>) {
        if keep.is_all() {
            return;
        }
        let mut num_kept = first_row;
        let len = packing.num_words;
        for row in first_row..self.counts.len() {
            let words = row * len..(row + 1) * len;
            let is_kept = keep
                .is_kept(|| if packing.is_whole() { self.keys[row] } else { packing.key(&self.words[words.clone()]) });
            if is_kept {
                self.counts[num_kept] = self.counts[row];
                if packing.is_whole() {
                    self.keys[num_kept] = self.keys[row]
                } else {
                    self.words.copy_within(words, num_kept * len)
                }
                num_kept += 1;
            }
        }
        self.counts.truncate(num_kept);
        if packing.is_whole() { self.keys.truncate(num_kept) } else { self.words.truncate(num_kept * len) }
    }

    /// Returns the rows, as words of `vocabulary`, and their counts.
    pub fn into_rows(self, vocabulary: Arc<Vocabulary>, packing: Packing) -> (Sequences, Vec<u64>) {
        let Self { keys, words, counts } = self;
        (Sequences { vocabulary, packing, keys, words }, counts)
    }

    /// Joins the rows of `parts` in order. The rows of an only part are not copied, unless their
    /// vectors have much more room than they need.
    pub fn joined(mut parts: Vec<Self>) -> Self {
        if parts.len() == 1 {
            let mut only = parts.swap_remove(0);
            give_back_room(&mut only.keys);
            give_back_room(&mut only.words);
            give_back_room(&mut only.counts);
            return only;
        }
        Self {
            keys: joined_slices(parts.iter().map(|part| part.keys.as_slice())),
            words: joined_slices(parts.iter().map(|part| part.words.as_slice())),
            counts: joined_slices(parts.iter().map(|part| part.counts.as_slice())),
        }
    }

    /// Appends the rows of `other`.
    pub fn append(&mut self, other: &Self) {
        self.keys.extend_from_slice(&other.keys);
        self.words.extend_from_slice(&other.words);
        self.counts.extend_from_slice(&other.counts);
    }

    /// Appends the sequence of `key` as a row.
    #[inline]
    pub fn push_key<K: Key>(&mut self, key: K, packing: Packing) {
        if packing.is_whole() {
            self.keys.push(key.number())
        } else {
            self.words.extend((0..packing.num_words).map(|at| packing.word(key, at)))
        }
    }

    /// Appends the sequence of `entry` as a row.
    pub fn push<'a>(&mut self, entry: Entry, packing: Packing, words: &impl Fn(u64) -> &'a [u32]) {
        if packing.is_whole() { self.keys.push(entry.key) } else { self.words.extend_from_slice(words(entry.value)) }
    }
}

/// Returns the elements of `parts` behind one another. They are copied in parallel, because writing to new memory takes
/// most of the time.
fn joined_slices<'a, T: Copy + Default + Send + Sync + 'a>(parts: impl Iterator<Item = &'a [T]> + Clone) -> Vec<T> {
    let mut joined = vec![T::default(); parts.clone().map(<[T]>::len).sum()];
    let mut rest = joined.as_mut_slice();
    let mut copies = Vec::new();
    for part in parts {
        let (to, behind) = rest.split_at_mut(part.len());
        copies.push((to, part));
        rest = behind;
    }
    copies.into_par_iter().for_each(|(to, part)| to.copy_from_slice(part));
    joined
}

/// Returns the error of a count over all segments that needs more than 64 bits.
pub fn too_many_occurrences() -> Error {
    Error::count_overflow("a count over all segments")
}

/// Sequences by document with their counts, as rows in the order of the documents and, inside a
/// document, of the words.
#[derive(Debug, Clone)]
pub struct DocumentSequenceCounts {
    doc_ids: Vec<u64>,
    /// Ends of the rows: document `at` has the rows `ends[at]..ends[at + 1]`.
    ends: Vec<usize>,
    sequences: Sequences,
    counts: Vec<u64>,
}

impl DocumentSequenceCounts {
    /// Returns the documents of the chunk.
    pub fn doc_ids(&self) -> &[u64] {
        &self.doc_ids
    }

    /// Returns the rows of the document at index `at` of [`doc_ids`](Self::doc_ids).
    ///
    /// # Panics
    /// If `at` is not below the number of documents.
    pub fn rows_of(&self, at: usize) -> Range<usize> {
        self.ends[at]..self.ends[at + 1]
    }

    /// Returns the document of `row`.
    fn doc_id_for(&self, row: usize) -> u64 {
        self.doc_ids[self.ends.partition_point(|&end| end <= row) - 1]
    }

    /// Returns the sequences of the rows.
    pub fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    /// Returns the number of occurrences of the sequence of each row in the row's document, 1 or
    /// more.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the memory of the rows in bytes, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        self.sequences.memory_bytes()
            + size_of_val(self.counts.as_slice())
            + size_of_val(self.doc_ids.as_slice())
            + size_of_val(self.ends.as_slice())
    }
}
