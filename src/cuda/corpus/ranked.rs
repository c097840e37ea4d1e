//! Sequences of n words with their documents on a device: by falling count, or by document. The wrapper of
//! `kernels/corpus_ranked.cu`.
//!
//! ```text
//! windows   a b c | b c d | …   of the text, written out      docs  0 0 … 1 1
//!   │ sorted by sequence, documents stay in order
//! rows      (a b c, 0) 2 | (a b c, 1) 1 | …                   runs of equal windows
//!   ├─ sorted by sequence and count ─▶ the documents of each sequence, by rank
//!   └─ sorted by document ───────────▶ the sequences of each document, by number
//! ```
//!
//! Time is O(N), even if documents share text. Memory is 40 bytes per word of the text, 20 per row and 12 per
//! sequence.

#![allow(unsafe_code, reason = "launching kernels")]

use cudarc::driver::CudaFunction;
use rayon::prelude::*;
use tadoc::analytics::SegmentDocumentSequences;
use tadoc::ids::DocId;

use super::group::RowsByDocument;
use super::launch::{Argument, THREADS, address, grid_for, launch, one_to_host, to_host, to_host_as};
use super::sequences::words_from;
use super::sort::{Pairs, SortSpace, bits_below, sort_bytes};
use super::{CorpusTerms, DeviceGroup, DeviceTermVectors, check_limit};
use crate::device::{CORPUS_RANKED, Device, Module, unsupported};
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

const RANKED_KERNEL: &str = "corpus_ranked";
/// Least number of keys that a parallel task converts.
const MIN_TASK_KEYS: usize = 1 << 14;
/// Largest number of thread blocks in the search for the largest count.
const MAX_GRID: u32 = 1024;

/// An object that finds the documents of the sequences of n words of some segments.
#[derive(Debug)]
pub struct CorpusRanked {
    terms: CorpusTerms,
    kernels: Kernels,
    space: Option<SortSpace<u64>>,
    num_words: usize,
    word_bits: u32,
}

#[derive(Debug)]
struct Kernels {
    flags: CudaFunction,
    keys: CudaFunction,
    heads: CudaFunction,
    rows: CudaFunction,
    max: CudaFunction,
    ranks: CudaFunction,
    counts: CudaFunction,
}

/// Sequences with their documents, in device memory.
#[derive(Debug)]
pub struct DeviceRanked {
    device: Device,
    keys: DeviceBuffer<u64>,
    /// Start of each sequence's rows, and the end of the last.
    starts: DeviceBuffer<u32>,
    docs: DeviceBuffer<u32>,
    counts: DeviceBuffer<u32>,
    num_sequences: usize,
    num_rows: usize,
    num_windows: usize,
    num_words: usize,
    word_bits: u32,
}

/// Sequences with their documents, on the host. Sequences are ascending by their words in order.
/// Documents are in order of falling count; those of equal counts are ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankedRows {
    keys: Vec<u64>,
    starts: Vec<u32>,
    docs: Vec<u32>,
    counts: Vec<u64>,
    num_words: usize,
    word_bits: u32,
}

/// Documents with their sequences, in device memory.
#[derive(Debug)]
pub struct DeviceDocumentSequences {
    group: DeviceGroup,
    keys: DeviceBuffer<u64>,
    /// The rows; their words are the numbers of sequences.
    rows: DeviceTermVectors,
    num_sequences: usize,
    num_windows: usize,
    num_words: usize,
    word_bits: u32,
}

/// Documents of a segment with their sequences, on the host. Sequences are ascending by their words in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentSequenceRows {
    keys: Vec<u64>,
    offsets: Vec<u32>,
    sequences: Vec<u32>,
    counts: Vec<u32>,
    num_words: usize,
    word_bits: u32,
}

/// Rows in the order of their windows.
struct Rows {
    docs: DeviceBuffer<u32>,
    starts: DeviceBuffer<u32>,
    sequences: DeviceBuffer<u32>,
    num_rows: usize,
}

/// Rows, distinct sequences, and the space in which they were sorted.
struct Found {
    space: SortSpace<u64>,
    rows: Rows,
    keys: DeviceBuffer<u64>,
    /// Start of each sequence's rows, and the end of the last.
    starts: DeviceBuffer<u32>,
    num_sequences: usize,
    num_windows: usize,
}

impl CorpusRanked {
    pub(super) fn new(group: &DeviceGroup, n: usize) -> Result<Self, GpuError> {
        let device = &group.device;
        let word_bits = bits_below(group.shape.num_words as usize);
        if !(1..=64 / word_bits as usize).contains(&n) {
            let reason = format!("{n} words of {word_bits} bits, it takes 1 and more in 64 bits");
            return Err(unsupported(device, RANKED_KERNEL, reason));
        }
        let module = Module::load(device, CORPUS_RANKED)?;
        Ok(Self {
            terms: group.terms()?,
            kernels: Kernels {
                flags: module.kernel("corpus_ranked_flags")?,
                keys: module.kernel("corpus_ranked_keys")?,
                heads: module.kernel("corpus_ranked_heads")?,
                rows: module.kernel("corpus_ranked_rows")?,
                max: module.kernel("corpus_ranked_max")?,
                ranks: module.kernel("corpus_ranked_ranks")?,
                counts: module.kernel("corpus_ranked_counts")?,
            },
            space: None,
            num_words: n,
            word_bits,
        })
    }

    /// Finds the documents of each sequence, by rank. The group has one segment, whose words the sequences have.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] for several segments; [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn run(&mut self) -> Result<DeviceRanked, GpuError> {
        check_limit("segments of ranked documents", self.terms.group.num_segments(), 1)?;
        let device = self.terms.group.device.clone();
        let Found { space, rows, keys, starts, num_sequences, num_windows } = self.find()?;
        let (docs, counts) = self.rank(&space, &rows, num_sequences)?;
        self.space = Some(space);
        Ok(DeviceRanked {
            device,
            keys,
            starts,
            docs,
            counts,
            num_sequences,
            num_rows: rows.num_rows,
            num_windows,
            num_words: self.num_words,
            word_bits: self.word_bits,
        })
    }

    /// Finds the sequences of each document.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn by_document(&mut self) -> Result<DeviceDocumentSequences, GpuError> {
        let Found { space, rows, keys, num_sequences, num_windows, .. } = self.find()?;
        let sorted = [&rows.docs, &rows.sequences, &rows.starts];
        let rows = self.terms.by_document(sorted, rows.num_rows)?;
        self.space = Some(space);
        Ok(DeviceDocumentSequences {
            group: self.terms.group.clone(),
            keys,
            rows,
            num_sequences,
            num_windows,
            num_words: self.num_words,
            word_bits: self.word_bits,
        })
    }

    /// Finds the rows in the order of their sequences, and the distinct sequences.
    fn find(&mut self) -> Result<Found, GpuError> {
        let device = self.terms.group.device.clone();
        let (space, num_windows) = self.write_windows()?;
        let key_bits = self.num_words as u32 * self.word_bits;
        let input = space.inputs(&device);
        // SAFETY: the windows were written to the input buffers of the space.
        let sorted = unsafe { self.terms.sorter().sort_wide(&space, input, num_windows, 0..key_bits) }?;
        let (rows, keys, starts, num_sequences) = self.find_rows(sorted, num_windows)?;
        Ok(Found { space, rows, keys, starts, num_sequences, num_windows })
    }

    /// Writes the windows of the text to the input buffers of a space. Returns the space and the
    /// number of windows.
    fn write_windows(&mut self) -> Result<(SortSpace<u64>, usize), GpuError> {
        let device = self.terms.group.device.clone();
        let terms = &self.terms;
        let text = terms.space.inputs(&device);
        terms.write_words(text)?;
        let places = Argument::Long(terms.space.beside(&device, text).keys_at);
        let [words, docs] = [text.keys_at, text.values_at].map(Argument::Long);
        let len = Argument::Short(terms.len_words as u32);
        let n = Argument::Short(self.num_words as u32);
        let grid = grid_for(terms.len_words);
        // SAFETY: the arguments match the kernel; the free buffer has room for all words and one
        // more.
        let num_windows = unsafe {
            launch(&device, &self.kernels.flags, grid, THREADS, &[docs, len, n, places])?;
            terms.sorter().scan_beside(&terms.space, text, terms.len_words)?
        };
        let kept = self.space.take().filter(|space| space.capacity >= num_windows);
        let space = match kept {
            Some(space) => space,
            None => SortSpace::new(&device, num_windows)?,
        };
        let output = space.inputs(&device);
        let [keys, key_docs] = [output.keys_at, output.values_at].map(Argument::Long);
        let word_bits = Argument::Short(self.word_bits);
        let arguments = [words, docs, len, n, word_bits, places, keys, key_docs];
        // SAFETY: the arguments match the kernel; the space has room for the counted windows.
        unsafe { launch(&device, &self.kernels.keys, grid, THREADS, &arguments) }?;
        Ok((space, num_windows))
    }

    /// Builds the rows and the distinct sequences of `num_keys` sorted windows. A row is a window
    /// with one of its documents.
    fn find_rows(
        &self,
        sorted: Pairs,
        num_keys: usize,
    ) -> Result<(Rows, DeviceBuffer<u64>, DeviceBuffer<u32>, usize), GpuError> {
        let device = &self.terms.group.device;
        let terms = &self.terms;
        // The text is no longer needed, so its buffers take the heads.
        let (rows, sequences) = {
            let first = terms.space.inputs(device);
            (first, terms.space.beside(device, first))
        };
        let heads = [sorted.keys_at, sorted.values_at].map(Argument::Long);
        let sums = [rows.keys_at, sequences.keys_at].map(Argument::Long);
        let len = Argument::Short(num_keys as u32);
        let arguments = [heads[0], heads[1], len, sums[0], sums[1]];
        // SAFETY: the arguments match the kernel; there are at least as many words as windows.
        let (num_rows, num_sequences) = unsafe {
            launch(device, &self.kernels.heads, grid_for(num_keys), THREADS, &arguments)?;
            let num_rows = terms.sorter().scan_beside(&terms.space, sequences, num_keys)?;
            (num_rows, terms.sorter().scan_beside(&terms.space, rows, num_keys)?)
        };
        let made = Rows {
            docs: device.alloc("documents of sequences", num_rows)?,
            starts: device.alloc("documents of sequences", num_rows + 1)?,
            sequences: device.alloc("documents of sequences", num_rows)?,
            num_rows,
        };
        let keys = device.alloc("sequences", num_sequences)?;
        let starts = device.alloc("sequences", num_sequences + 1)?;
        let [docs_at, starts_at, sequences_at] = made.arrays_at(device);
        let keys_at = Argument::Long(address(device, &keys));
        let sequence_starts = Argument::Long(address(device, &starts));
        let outputs = [docs_at, starts_at, sequences_at, keys_at, sequence_starts];
        let arguments = [&arguments[..], &outputs[..]].concat();
        // SAFETY: the arguments match the kernel; the outputs have room for the counted rows and
        // sequences.
        unsafe {
            launch(device, &self.kernels.rows, grid_for(num_keys + 1), THREADS, &arguments)?;
        }
        Ok((made, keys, starts, num_sequences))
    }

    /// Returns the documents and counts of `rows`, by sequence, then by count.
    fn rank(
        &self,
        space: &SortSpace<u64>,
        rows: &Rows,
        num_sequences: usize,
    ) -> Result<(DeviceBuffer<u32>, DeviceBuffer<u32>), GpuError> {
        let device = &self.terms.group.device;
        let [docs_at, starts_at, sequences_at] = rows.arrays_at(device);
        let grid = grid_for(rows.num_rows);
        let num_rows = Argument::Short(rows.num_rows as u32);
        let max: DeviceBuffer<u32> = device.alloc("largest count", 1)?;
        let largest = [starts_at, num_rows, Argument::Long(address(device, &max))];
        // SAFETY: the arguments match the kernel.
        unsafe { launch(device, &self.kernels.max, grid.min(MAX_GRID), THREADS, &largest) }?;
        let max_count = one_to_host(device, &max, 0)?;
        let count_bits = bits_below(max_count as usize + 1);
        let input = Pairs { values_at: 0, ..space.inputs(device) };
        let ranks = [
            starts_at,
            sequences_at,
            num_rows,
            Argument::Short(max_count),
            Argument::Short(count_bits),
            Argument::Long(input.keys_at),
        ];
        let key_bits = count_bits + bits_below(num_sequences);
        let docs = device.alloc("documents of sequences", rows.num_rows)?;
        let counts = device.alloc("counts of sequences", rows.num_rows)?;
        let outputs = [&docs, &counts].map(|buffer| Argument::Long(address(device, buffer)));
        // SAFETY: the arguments match the kernels. There are at least as many windows as rows, and
        // the sorted values are rows.
        unsafe {
            launch(device, &self.kernels.ranks, grid, THREADS, &ranks)?;
            let sorter = self.terms.sorter();
            let sorted = sorter.sort_wide(space, input, rows.num_rows, 0..key_bits)?;
            let order = Argument::Long(sorted.values_at);
            let arguments = [order, num_rows, docs_at, starts_at, outputs[0], outputs[1]];
            launch(device, &self.kernels.counts, grid, THREADS, &arguments)?;
        }
        Ok((docs, counts))
    }
}

impl Rows {
    fn arrays_at(&self, device: &Device) -> [Argument; 3] {
        let buffers = [&self.docs, &self.starts, &self.sequences];
        buffers.map(|buffer| Argument::Long(address(device, buffer)))
    }
}

impl DeviceRanked {
    /// Returns the number of distinct sequences.
    pub fn len(&self) -> usize {
        self.num_sequences
    }

    /// Returns true if there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.num_sequences == 0
    }

    /// Returns the number of rows, one for each sequence of each document.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Returns the bytes read and written to write and sort the windows and to find and sort the
    /// rows.
    pub fn traffic_bytes(&self) -> u64 {
        let windows = sort_bytes::<u64>(self.num_windows, self.num_words as u32 * self.word_bits);
        // Counts have few bits. The values are places, which the first step need not read.
        let rows = sort_bytes::<u64>(self.num_rows, bits_below(self.num_sequences) + 8);
        windows + rows + self.num_windows as u64 * 100 + self.num_rows as u64 * 56
    }

    /// Copies the sequences to the host.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the counting.
    pub fn to_host(&self) -> Result<RankedRows, GpuError> {
        Ok(RankedRows {
            keys: to_host(&self.device, &self.keys, self.num_sequences)?,
            starts: to_host(&self.device, &self.starts, self.num_sequences + 1)?,
            docs: to_host(&self.device, &self.docs, self.num_rows)?,
            counts: to_host_as(&self.device, &self.counts, self.num_rows, u64::from)?,
            num_words: self.num_words,
            word_bits: self.word_bits,
        })
    }
}

impl RankedRows {
    /// Returns the number of distinct sequences.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the word ids of the sequence of `row`, in order.
    ///
    /// # Panics
    ///
    /// Panics if `row` is not below [`len`](Self::len).
    pub fn words(&self, row: usize) -> impl ExactSizeIterator<Item = u32> + '_ {
        words_from(self.keys[row], self.num_words, self.word_bits)
    }

    /// Returns the documents that contain the sequence of `row`, by rank, and the number of
    /// occurrences in each. Documents are counted from the first of the segment.
    ///
    /// # Panics
    ///
    /// Panics if `row` is not below [`len`](Self::len).
    pub fn docs(&self, row: usize) -> (&[u32], &[u64]) {
        let range = self.starts[row] as usize..self.starts[row + 1] as usize;
        (&self.docs[range.clone()], &self.counts[range])
    }

    /// Returns the number of bits of a word in a key.
    pub fn word_bits(&self) -> u32 {
        self.word_bits
    }

    /// Returns the keys; the start of each key's documents and the end of the last; the documents;
    /// the counts. A key holds the word ids, the first in the highest bits.
    pub fn into_parts(self) -> (Vec<u64>, Vec<u32>, Vec<u32>, Vec<u64>) {
        (self.keys, self.starts, self.docs, self.counts)
    }
}

impl DeviceDocumentSequences {
    /// Returns the number of rows, one for each sequence of each document.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the number of distinct sequences. A sequence of two segments counts twice.
    pub fn num_sequences(&self) -> usize {
        self.num_sequences
    }

    /// Returns the bytes read and written to write and sort the windows and to find and sort the
    /// rows.
    pub fn traffic_bytes(&self) -> u64 {
        let windows = sort_bytes::<u64>(self.num_windows, self.num_words as u32 * self.word_bits);
        let rows = sort_bytes::<u32>(self.len(), bits_below(self.group.shape.num_docs));
        windows + rows + self.num_windows as u64 * 100 + self.len() as u64 * 28
    }

    /// Copies the sequences of the documents of each segment to the host.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the counting.
    pub fn to_host(&self) -> Result<Vec<DocumentSequenceRows>, GpuError> {
        let keys = to_host(&self.group.device, &self.keys, self.num_sequences)?;
        let bases = first_keys(&keys, self.group.word_bases(), self.num_words, self.word_bits);
        let rows = self.rows.rows_to_host(&bases)?;
        let own = bases.windows(2).zip(self.group.word_bases()).zip(rows);
        let segment = |((ends, &word_base), (offsets, sequences, counts)): ((&[u32], &u32), RowsByDocument)| {
            let keys = &keys[ends[0] as usize..ends[1] as usize];
            let keys = without_base(keys, word_base, self.num_words, self.word_bits);
            let num_words = self.num_words;
            DocumentSequenceRows { keys, offsets, sequences, counts, num_words, word_bits: self.word_bits }
        };
        Ok(own.map(segment).collect())
    }
}

/// Returns the number of `keys` whose words are those of earlier segments, for each segment, and of all. Keys ascend,
/// and the words of a key belong to one segment.
fn first_keys(keys: &[u64], word_bases: &[u32], num_words: usize, word_bits: u32) -> Vec<u32> {
    let first_word = |key: u64| key >> ((num_words - 1) as u32 * word_bits);
    let before = |base: &u32| keys.partition_point(|&key| first_word(key) < u64::from(*base)) as u32;
    word_bases.iter().map(before).collect()
}

/// Returns `keys`, from each of whose words `base` is taken off.
fn without_base(keys: &[u64], base: u32, num_words: usize, word_bits: u32) -> Vec<u64> {
    let bases = (0..num_words).fold(0, |bases, _| bases << word_bits | u64::from(base));
    keys.par_iter().with_min_len(MIN_TASK_KEYS).map(|key| key - bases).collect()
}

impl DocumentSequenceRows {
    /// Returns the sequences of document `doc`, ascending, with the number of occurrences of each. Sequences are
    /// numbers for [`words`](Self::words).
    ///
    /// # Panics
    ///
    /// Panics if the segment has no document `doc`.
    pub fn for_doc(&self, doc: DocId) -> (&[u32], &[u32]) {
        let range = self.offsets[doc.index()] as usize..self.offsets[doc.index() + 1] as usize;
        (&self.sequences[range.clone()], &self.counts[range])
    }

    /// Returns the word ids of sequence number `sequence`, in order.
    ///
    /// # Panics
    ///
    /// Panics if there is no such sequence.
    pub fn words(&self, sequence: u32) -> impl ExactSizeIterator<Item = u32> + '_ {
        words_from(self.keys[sequence as usize], self.num_words, self.word_bits)
    }

    /// Returns the rows as the core takes them.
    pub fn into_segment(self) -> SegmentDocumentSequences {
        let Self { keys, offsets, sequences, counts, word_bits, .. } = self;
        SegmentDocumentSequences { keys, word_bits, offsets, sequences, counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_group_are_divided_by_segment() {
        let key = |words: [u64; 2]| words[0] << 4 | words[1];
        let keys = [[0, 1], [2, 2], [3, 3], [3, 4], [7, 9]].map(key);
        let bases = [0, 3, 5, 5, 10];
        let first = first_keys(&keys, &bases, 2, 4);
        assert_eq!(first, [0, 2, 4, 4, 5]);
        assert_eq!(without_base(&keys[2..4], 3, 2, 4), [[0, 0], [0, 1]].map(key));
        assert_eq!(first_keys(&[], &bases, 2, 4), [0; 5]);
        // A key of one word has all its bits.
        assert_eq!(first_keys(&[u64::MAX], &[0, 9], 1, 64), [0, 0]);
    }
}
