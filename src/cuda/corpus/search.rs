//! Words in documents, many queries in one call: the wrapper of `kernels/corpus_search.cu`.
//!
//! ```text
//! queries ──sort──▶ keys ──▶ filters of documents ──read──▶ found ──sort──▶ lists of queries
//!                            a document is read once         counted, scanned, then written
//! ```
//!
//! The device reads the queried documents in full, up to 64 GiB. The CPU is faster for few queries
//! of long documents, and for documents that repeat a few bytes very often. Memory is 24 bytes per
//! query and per word found, 136 per document, and 8 per chunk of a document.

#![allow(unsafe_code, reason = "launching kernels")]

use cudarc::driver::CudaFunction;

use crate::device::{CORPUS_SEARCH, Device, Module};
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use tadoc::ids::DocId;

use super::launch::{Argument, THREADS, address, grid_for, launch, one_to_host, to_host};
use super::sort::{MAX_KEYS, Pairs, SortSpace, Sorter, TILE_NUMBERS};
use super::{CorpusText, CorpusWeights, check_limit};

/// Default number of bytes of a document whose words one thread reads.
const DEFAULT_CHUNK_BYTES: u32 = 512;
/// Bits of an offset in a key. The query number uses the bits above.
const OFFSET_BITS: u32 = 36;
/// Largest number of queries of a batch, plus one.
const MAX_QUERIES: usize = 1 << (64 - OFFSET_BITS);
/// Largest total length of the documents that a batch reads, in bytes.
const MAX_READ_BYTES: u64 = 1 << OFFSET_BITS;
/// Number of 32-bit words in the filter of a document.
const FILTER_WORDS: usize = 32;

/// An object that counts and finds words in documents of a segment.
#[derive(Debug)]
pub struct CorpusWords {
    text: CorpusText,
    filters: CudaFunction,
    count: CudaFunction,
    emit: CudaFunction,
    lists: CudaFunction,
    offsets: CudaFunction,
    weights: CudaFunction,
    sorter: Sorter,
    chunk_bytes: u32,
}

/// A query for a word in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocWord {
    /// Document of the segment.
    pub doc: DocId,
    /// Id of the word ([`CorpusText::word_id`]); `None` for a word that no document contains.
    pub word: Option<u32>,
}

/// Queries on the device, with room for intermediate results.
#[derive(Debug)]
pub struct WordBatch {
    text: CorpusText,
    num_queries: usize,
    word_bits: u32,
    doc_bits: u32,
    /// Queries with their numbers. Sorting moves them between two buffers.
    queries: SortSpace<u64>,
    docs: DeviceBuffer<u32>,
    num_docs: usize,
    chunk_starts: DeviceBuffer<u64>,
    chunk_bytes: u32,
    num_chunks: usize,
    key_ranges: DeviceBuffer<u32>,
    filters: DeviceBuffer<u32>,
    /// Words found in each chunk, later the sum of those before.
    chunks: DeviceBuffer<u64>,
    sums: DeviceBuffer<u64>,
    list_starts: DeviceBuffer<u32>,
    found: Option<SortSpace<u64>>,
    text_bytes: u64,
}

/// Numbers of occurrences of words in documents, in device memory.
#[derive(Debug)]
pub struct DeviceCounts {
    device: Device,
    counts: DeviceBuffer<u64>,
    num_queries: usize,
}

/// Byte offsets of words in documents, in device memory.
#[derive(Debug)]
pub struct DeviceOffsets {
    device: Device,
    starts: DeviceBuffer<u64>,
    offsets: DeviceBuffer<u64>,
    num_queries: usize,
    num_offsets: usize,
}

/// Lists of byte offsets, in the order of the queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordOffsets {
    starts: Vec<u64>,
    offsets: Vec<u64>,
}

/// The occurrences found, sorted by query.
struct Found {
    number: usize,
    keys_at: u64,
}

impl CorpusText {
    /// Builds the object that counts and finds words in documents.
    ///
    /// # Errors
    ///
    /// The errors of [`passages`](Self::passages).
    pub fn words(&self) -> Result<CorpusWords, GpuError> {
        CorpusWords::new(self)
    }
}

impl CorpusWords {
    pub(super) fn new(text: &CorpusText) -> Result<Self, GpuError> {
        let module = Module::load(text.device(), CORPUS_SEARCH)?;
        Ok(Self {
            filters: module.kernel("corpus_search_filters")?,
            count: module.kernel("corpus_search_count")?,
            emit: module.kernel("corpus_search_emit")?,
            lists: module.kernel("corpus_search_lists")?,
            offsets: module.kernel("corpus_search_offsets")?,
            weights: module.kernel("corpus_search_weights")?,
            sorter: Sorter::new(text.device())?,
            chunk_bytes: DEFAULT_CHUNK_BYTES,
            text: text.clone(),
        })
    }

    /// Returns the same object with threads that read `chunk_bytes` bytes of a document each.
    /// Existing batches keep their size.
    #[must_use]
    pub fn with_chunk_bytes(mut self, chunk_bytes: u32) -> Self {
        self.chunk_bytes = chunk_bytes.clamp(64, 1 << 20);
        self
    }

    /// Copies `queries` to the device.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] for a document that does not exist, for an id that is not that of a
    /// word, for 2^28 queries or more, and for documents of more than 64 GiB in total;
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn batch(&self, queries: &[DocWord]) -> Result<WordBatch, GpuError> {
        check_limit("queries of a batch", queries.len(), MAX_QUERIES - 1)?;
        let device = self.text.device();
        let num_terminals = self.text.num_terminals();
        // The number of terminals, as an id, marks words that no document contains.
        let word_bits = u32::BITS - num_terminals.leading_zeros();
        let num_docs = self.text.num_docs();
        let doc_bits = usize::BITS - num_docs.leading_zeros();
        let mut is_asked = vec![false; num_docs];
        let mut keys = Vec::with_capacity(queries.len());
        for query in queries {
            self.text.doc_len_bytes(query.doc)?;
            let word = query.word.unwrap_or(num_terminals);
            let is_word = query.word.is_none_or(|word| self.text.is_word(word));
            check_limit("numbers of queries that are not of words", usize::from(!is_word), 0)?;
            is_asked[query.doc.index()] = true;
            keys.push(u64::from(query.doc) << word_bits | u64::from(word));
        }
        let mut docs = Vec::new();
        let mut chunk_starts = vec![0u64];
        let mut num_chunks = 0;
        let mut text_bytes = 0u64;
        for doc in DocId::range(0..num_docs).filter(|doc| is_asked[doc.index()]) {
            let len = self.text.doc_len_bytes(doc)?;
            text_bytes = text_bytes.saturating_add(len);
            let what = "bytes of documents to read";
            let got = text_bytes;
            let expected = MAX_READ_BYTES;
            if got > expected {
                return Err(GpuError::Mismatch { what, got, expected });
            }
            num_chunks += len.div_ceil(u64::from(self.chunk_bytes));
            docs.push(u32::from(doc));
            chunk_starts.push(num_chunks);
        }
        let num_chunks = num_chunks as usize;
        let queries = SortSpace::with_keys(device, &keys)?;
        Ok(WordBatch {
            num_queries: keys.len(),
            word_bits,
            doc_bits,
            queries,
            num_docs: docs.len(),
            key_ranges: device.alloc("queries of documents", 2 * docs.len())?,
            filters: device.alloc("filters of documents", FILTER_WORDS * docs.len())?,
            docs: device.copy_for("documents of queries", &docs)?,
            chunk_starts: device.copy_for("chunks of documents", &chunk_starts)?,
            chunk_bytes: self.chunk_bytes,
            num_chunks,
            chunks: device.alloc("words of chunks", num_chunks + 1)?,
            sums: device.alloc("words of chunks", num_chunks.max(keys.len()) / TILE_NUMBERS + 2)?,
            list_starts: device.alloc("starts of lists", keys.len())?,
            found: None,
            text_bytes,
            text: self.text.clone(),
        })
    }

    /// Counts the words of `batch`.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if the batch was made for another text, or if 2^31 words or more are
    /// found; [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn count(&self, batch: &mut WordBatch) -> Result<DeviceCounts, GpuError> {
        let counts = self.list(batch)?.0;
        let device = self.text.device().clone();
        let num_queries = batch.num_queries;
        Ok(DeviceCounts { device, counts, num_queries })
    }

    /// Finds the words of `batch`, at most `max_offsets` of them. Equal queries get one list each.
    ///
    /// # Errors
    ///
    /// The errors of [`count`](Self::count), and [`GpuError::Mismatch`] for more than
    /// `max_offsets`.
    pub fn find(&self, batch: &mut WordBatch, max_offsets: u64) -> Result<DeviceOffsets, GpuError> {
        let (starts, found) = self.list(batch)?;
        let device = self.text.device();
        // SAFETY: there is room for one number more than there are queries, and for the sums of
        // their tiles.
        unsafe { self.sorter.scan_wide(&starts, batch.num_queries, &batch.sums) }?;
        let got = one_to_host(device, &starts, batch.num_queries)?;
        let expected = max_offsets.min(MAX_KEYS as u64);
        if got > expected {
            return Err(GpuError::Mismatch { what: "words found", got, expected });
        }
        let num_offsets = got as usize;
        let offsets = device.alloc("offsets of words", num_offsets)?;
        let arguments = [
            Argument::Long(found.keys_at),
            Argument::Long(address(device, &batch.list_starts)),
            Argument::Long(address(device, &starts)),
            Argument::Short(batch.num_queries as u32),
            Argument::Long(got),
            Argument::Long(address(device, &offsets)),
        ];
        // SAFETY: the arguments match the kernel. Lists lie among the occurrences found, and their
        // lengths were summed.
        unsafe { launch(device, &self.offsets, grid_for(num_offsets), THREADS, &arguments) }?;
        let device = device.clone();
        Ok(DeviceOffsets { device, starts, offsets, num_queries: batch.num_queries, num_offsets })
    }

    /// Counts the occurrences of each of `words` in all documents of the segment of `weights`.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] for an id that is not that of a word of the segment;
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn corpus_counts(&self, weights: &CorpusWeights, words: &[u32]) -> Result<DeviceCounts, GpuError> {
        weights.check_made_for(self.text.corpus())?;
        let device = self.text.device();
        let num_words = self.text.corpus().dag().num_words();
        let beyond = words.iter().filter(|&&word| word >= num_words).count();
        check_limit("numbers of queries that are not of words", beyond, 0)?;
        check_limit("queries of a batch", words.len(), MAX_QUERIES - 1)?;
        let counts = device.alloc("counts of words", words.len())?;
        let copy = device.copy_for("words of queries", words)?;
        let arguments = [
            Argument::Long(weights.rules_at(0)),
            Argument::Long(address(device, &copy)),
            Argument::Short(words.len() as u32),
            Argument::Long(address(device, &counts)),
        ];
        // SAFETY: the arguments match the kernel; the words have weights.
        unsafe { launch(device, &self.weights, grid_for(words.len()), THREADS, &arguments) }?;
        Ok(DeviceCounts { device: device.clone(), counts, num_queries: words.len() })
    }

    /// Finds the lists of a batch. Returns their lengths, with room for one more, and the
    /// occurrences found.
    fn list(&self, batch: &mut WordBatch) -> Result<(DeviceBuffer<u64>, Found), GpuError> {
        self.text.check_same(&batch.text)?;
        let device = self.text.device();
        let key_bits = batch.word_bits + batch.doc_bits;
        // SAFETY: queries were written to the space. An earlier call leaves all of them there, in
        // another order.
        let sorted = unsafe {
            let space = &batch.queries;
            let number = batch.num_queries;
            self.sorter.sort_wide(space, space.inputs(device), number, 0..key_bits)?
        };
        let Pairs { keys_at, values_at: numbers_at } = sorted;
        let found = self.read(batch, keys_at)?;
        let lens: DeviceBuffer<u64> = device.alloc("lengths of lists", batch.num_queries + 1)?;
        let arguments = [
            Argument::Long(keys_at),
            Argument::Long(numbers_at),
            Argument::Short(batch.num_queries as u32),
            Argument::Long(found.keys_at),
            Argument::Short(found.number as u32),
            Argument::Long(address(device, &lens)),
            Argument::Long(address(device, &batch.list_starts)),
        ];
        // SAFETY: the arguments match the kernel; each query number is below the number of queries.
        unsafe { launch(device, &self.lists, grid_for(batch.num_queries), THREADS, &arguments) }?;
        Ok((lens, found))
    }

    /// Reads the documents: counts the occurrences, allocates room, and writes and sorts them.
    fn read(&self, batch: &mut WordBatch, keys_at: u64) -> Result<Found, GpuError> {
        let device = self.text.device();
        let [docs, ranges, filters] =
            [&batch.docs, &batch.key_ranges, &batch.filters].map(|buffer| Argument::Long(address(device, buffer)));
        let [chunk_starts, chunks] =
            [&batch.chunk_starts, &batch.chunks].map(|buffer| Argument::Long(address(device, buffer)));
        let num_docs = Argument::Short(batch.num_docs as u32);
        let keys = Argument::Long(keys_at);
        let word_bits = Argument::Short(batch.word_bits);
        let num_queries = Argument::Short(batch.num_queries as u32);
        let filtering = [keys, num_queries, word_bits, docs, num_docs, ranges, filters];
        let mut reading = vec![
            self.text.arrays(),
            keys,
            word_bits,
            docs,
            num_docs,
            chunk_starts,
            Argument::Short(batch.chunk_bytes),
            ranges,
            filters,
            Argument::Short(batch.num_chunks as u32),
            chunks,
        ];
        let grid = grid_for(batch.num_chunks);
        // SAFETY: the arguments match the kernels. The text has a validated grammar, the documents
        // exist, and chunks cover them.
        unsafe {
            launch(device, &self.filters, grid_for(batch.num_docs * 32), THREADS, &filtering)?;
            launch(device, &self.count, grid, THREADS, &reading)?;
            self.sorter.scan_wide(&batch.chunks, batch.num_chunks, &batch.sums)?;
        }
        let number = one_to_host(device, &batch.chunks, batch.num_chunks)?;
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        check_limit("words found", number, MAX_KEYS - 1)?;
        let kept = batch.found.take().filter(|space| space.capacity >= number);
        let space = match kept {
            Some(space) => space,
            None => SortSpace::new(device, number)?,
        };
        let inputs = space.inputs(device);
        reading.extend([inputs.keys_at, inputs.values_at].map(Argument::Long));
        let query_bits = usize::BITS - batch.num_queries.leading_zeros();
        // SAFETY: same argument as for the kernels above; there is room for the counted
        // occurrences.
        let sorted = unsafe {
            launch(device, &self.emit, grid, THREADS, &reading)?;
            self.sorter.sort_wide(&space, inputs, number, OFFSET_BITS..OFFSET_BITS + query_bits)?
        };
        let keys_at = sorted.keys_at;
        batch.found = Some(space);
        Ok(Found { number, keys_at })
    }
}

impl WordBatch {
    /// Returns the number of queries.
    pub fn num_queries(&self) -> usize {
        self.num_queries
    }

    /// Returns the total length of the documents to read, in bytes.
    pub fn text_len_bytes(&self) -> u64 {
        self.text_bytes
    }
}

impl DeviceCounts {
    /// Copies the counts to the host, in the order of the queries.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the counting.
    pub fn to_host(&self) -> Result<Vec<u64>, GpuError> {
        to_host(&self.device, &self.counts, self.num_queries)
    }
}

impl DeviceOffsets {
    /// Returns the number of offsets in all lists.
    pub fn num_offsets(&self) -> usize {
        self.num_offsets
    }

    /// Copies the lists to the host.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the search.
    pub fn to_host(&self) -> Result<WordOffsets, GpuError> {
        Ok(WordOffsets {
            starts: to_host(&self.device, &self.starts, self.num_queries + 1)?,
            offsets: to_host(&self.device, &self.offsets, self.num_offsets)?,
        })
    }
}

impl WordOffsets {
    /// Returns the start of each list and the end of the last, and the offsets of all lists.
    pub fn into_parts(self) -> (Vec<u64>, Vec<u64>) {
        (self.starts, self.offsets)
    }

    /// Returns the number of lists.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns true if there are no lists.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the offsets of the query at index `at` of the batch, ascending.
    ///
    /// # Panics
    ///
    /// Panics if `at` is not below [`len`](Self::len).
    pub fn get(&self, at: usize) -> &[u64] {
        &self.offsets[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}
