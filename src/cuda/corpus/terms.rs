//! Words of documents and their counts on a device: the wrapper of `kernels/corpus_terms.cu`.
//!
//! ```text
//! words  b a a c | c a       the text, written out      docs  0 0 0 0 1 1
//!   │ sorted by word, documents stay in order
//! words  a a a b c c         docs  0 0 1 0 0 1          one row for each run: an inverted index
//!   │ rows sorted by document, words stay in order
//! docs   0 0 0 1 1           words a b c a c            term vectors
//! ```
//!
//! Time is O(N), even if documents share text. Memory is 4 bytes per element of rules, 24 per word of the text and 12
//! per row. A text has fewer than 2^31 words, so 32-bit counts are exact. On the host rows are sparse matrices by rows,
//! one for each segment of the group ([`DeviceGroup`]).

#![allow(unsafe_code, reason = "launching kernels")]

use std::sync::Arc;

use cudarc::driver::CudaFunction;
use tadoc::ids::DocId;

use crate::device::{CORPUS_TERMS, Device, Module, unsupported};
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

use super::DeviceGroup;
use super::group::{GroupShape, RowsByDocument};
use super::launch::{Argument, THREADS, address, grid_for, launch, to_host};
use super::sort::{MAX_KEYS, Pairs, SortSpace, Sorter, bits_below, num_sums, sort_bytes};

const KERNEL: &str = "corpus_terms";
/// Words that a thread writes.
const THREAD_WORDS: usize = 16;

/// An object that counts the words of each document of some segments.
#[derive(Debug)]
pub struct CorpusTerms {
    pub(super) group: DeviceGroup,
    kernels: Arc<Kernels>,
    starts: DeviceBuffer<u32>,
    pub(super) space: SortSpace<u32>,
    pub(super) len_words: usize,
}

#[derive(Debug)]
struct Kernels {
    sorter: Sorter,
    lens: CudaFunction,
    words: CudaFunction,
    heads: CudaFunction,
    rows: CudaFunction,
    counts: CudaFunction,
    scores: CudaFunction,
}

/// Words with their documents in device memory, by word, then by document.
#[derive(Debug)]
pub struct DeviceTerms {
    group: DeviceGroup,
    kernels: Arc<Kernels>,
    /// Start of each word's rows, and the end of the last.
    word_offsets: DeviceBuffer<u32>,
    words: DeviceBuffer<u32>,
    docs: DeviceBuffer<u32>,
    /// Start of each row among the sorted words of the text.
    starts: DeviceBuffer<u32>,
    num_rows: usize,
}

/// Documents with their words and counts in device memory, by document, then by word.
#[derive(Debug)]
pub struct DeviceTermVectors {
    group: DeviceGroup,
    kernels: Arc<Kernels>,
    doc_offsets: DeviceBuffer<u32>,
    words: DeviceBuffer<u32>,
    counts: DeviceBuffer<u32>,
    num_rows: usize,
}

/// The documents of each word in device memory, ascending.
#[derive(Debug)]
pub struct DeviceDocuments {
    pub(super) group: DeviceGroup,
    /// Start of each word's documents, and the end of the last.
    pub(super) offsets: DeviceBuffer<u32>,
    pub(super) docs: DeviceBuffer<u32>,
    /// True if documents are numbers in their segment.
    pub(super) are_local: bool,
    pub(super) num_rows: usize,
    pub(super) traffic_bytes: u64,
}

/// The documents of each word of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordDocuments {
    offsets: Vec<u32>,
    docs: Vec<u32>,
}

impl CorpusTerms {
    pub(super) fn new(group: &DeviceGroup) -> Result<Self, GpuError> {
        let device = &group.device;
        let shape = group.shape;
        if shape.len_words >= MAX_KEYS as u64 {
            let reason = format!("{} words, it takes less than {MAX_KEYS}", shape.len_words);
            return Err(unsupported(device, KERNEL, reason));
        }
        let made = Self {
            kernels: Arc::new(Kernels::load(device)?),
            starts: device.alloc("words before elements", shape.num_positions + 1)?,
            space: SortSpace::new(device, shape.len_words as usize)?,
            len_words: shape.len_words as usize,
            group: group.clone(),
        };
        made.find_starts()?;
        Ok(made)
    }

    /// Sums the words before each position.
    fn find_starts(&self) -> Result<(), GpuError> {
        let device = &self.group.device;
        let num_positions = self.group.shape.num_positions;
        let lens = self.group.element_lens()?;
        let sums = device.alloc("words before elements", num_sums(num_positions))?;
        let arguments = [
            Argument::Long(address(device, &self.group.arrays.symbols)),
            Argument::Long(address(device, &lens)),
            Argument::Short(num_positions as u32),
            Argument::Long(address(device, &self.starts)),
        ];
        // SAFETY: the arguments match the kernel. Each element of a validated grammar has a length;
        // there is a start for each position and one more.
        unsafe {
            launch(device, &self.kernels.lens, grid_for(num_positions), THREADS, &arguments)?;
            self.kernels.sorter.scan_narrow(&self.starts, num_positions, &sums)
        }
    }

    pub(super) fn sorter(&self) -> &Sorter {
        &self.kernels.sorter
    }

    /// Sorts other rows by document than those of words: documents, items, and starts among what was counted.
    pub(super) fn by_document(
        &self,
        rows: [&DeviceBuffer<u32>; 3],
        num_rows: usize,
    ) -> Result<DeviceTermVectors, GpuError> {
        DeviceTermVectors::sorted(&self.group, &self.kernels, rows, num_rows)
    }

    /// Finds the documents of each word.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn run(&mut self) -> Result<DeviceTerms, GpuError> {
        let device = &self.group.device;
        let kernels = &self.kernels;
        let num_words = self.group.shape.num_words as usize;
        let len_words = self.len_words;
        let input = self.space.inputs(device);
        self.write_words(input)?;
        let word_bits = bits_below(num_words);
        // SAFETY: the words of the text were written to the input buffers of the space.
        let sorted = unsafe { kernels.sorter.sort_narrow(&self.space, input, len_words, word_bits) }?;
        let heads_at = self.space.beside(device, sorted).keys_at;
        let text = [
            Argument::Long(sorted.keys_at),
            Argument::Long(sorted.values_at),
            Argument::Short(len_words as u32),
            Argument::Long(heads_at),
        ];
        // SAFETY: the arguments match the kernel; a free buffer has room for all words and one
        // more.
        let num_rows = unsafe {
            launch(device, &kernels.heads, grid_for(len_words), THREADS, &text)?;
            kernels.sorter.scan_beside(&self.space, sorted, len_words)?
        };
        let words = device.alloc("words of documents", num_rows)?;
        let docs = device.alloc("documents of words", num_rows)?;
        let starts = device.alloc("counts of words", num_rows + 1)?;
        let [words_at, docs_at, starts_at] =
            [&words, &docs, &starts].map(|buffer| Argument::Long(address(device, buffer)));
        let [sorted_words, sorted_docs, len, heads] = text;
        let rows = [sorted_words, sorted_docs, len, heads, words_at, docs_at, starts_at];
        // SAFETY: the arguments match the kernel, and there are `num_rows` heads.
        let word_offsets = unsafe {
            launch(device, &kernels.rows, grid_for(len_words + 1), THREADS, &rows)?;
            kernels.sorter.offsets(address(device, &words), num_rows, num_words)?
        };
        Ok(DeviceTerms {
            group: self.group.clone(),
            kernels: kernels.clone(),
            word_offsets,
            words,
            docs,
            starts,
            num_rows,
        })
    }

    /// Writes the words of the text and their documents to `output`.
    pub(super) fn write_words(&self, output: Pairs) -> Result<(), GpuError> {
        let device = &self.group.device;
        let shape = self.group.shape;
        let arrays = &self.group.arrays;
        let arguments = [
            Argument::Long(address(device, &arrays.symbols)),
            Argument::Long(address(device, &arrays.rule_offsets)),
            Argument::Long(address(device, &arrays.doc_offsets)),
            Argument::Long(address(device, &self.starts)),
            Argument::Short(shape.num_terminals),
            Argument::Short(shape.num_words),
            Argument::Short(shape.num_docs as u32),
            Argument::Short(self.len_words as u32),
            Argument::Long(output.keys_at),
            Argument::Long(output.values_at),
        ];
        let grid = grid_for(self.len_words.div_ceil(THREAD_WORDS));
        // SAFETY: the arguments match the kernel; the arrays belong to a validated grammar. The
        // output has room for all words of the text.
        unsafe { launch(device, &self.kernels.words, grid, THREADS, &arguments) }
    }
}

/// Returns the bytes read and written to write and sort the words of the text of a group.
pub(super) fn text_traffic_bytes(shape: GroupShape) -> u64 {
    let len_words = shape.len_words;
    let sorting =
        sort_bytes::<u32>(usize::try_from(len_words).unwrap_or(usize::MAX), bits_below(shape.num_words as usize));
    sorting.saturating_add(len_words.saturating_mul(44))
}

impl Kernels {
    fn load(device: &Device) -> Result<Self, GpuError> {
        let module = Module::load(device, CORPUS_TERMS)?;
        Ok(Self {
            sorter: Sorter::new(device)?,
            lens: module.kernel("corpus_terms_lens")?,
            words: module.kernel("corpus_terms_words")?,
            heads: module.kernel("corpus_terms_heads")?,
            rows: module.kernel("corpus_terms_rows")?,
            counts: module.kernel("corpus_terms_counts")?,
            scores: module.kernel("corpus_terms_scores")?,
        })
    }
}

impl DeviceTerms {
    /// Returns the number of rows, one for each word of each document.
    pub fn len(&self) -> usize {
        self.num_rows
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.num_rows == 0
    }

    /// Returns the bytes read and written to write and sort the words of the text and to find the
    /// rows.
    pub fn traffic_bytes(&self) -> u64 {
        text_traffic_bytes(self.group.shape) + self.num_rows as u64 * 12
    }

    /// Returns the documents of each word, without counts.
    pub fn into_documents(self) -> DeviceDocuments {
        DeviceDocuments {
            traffic_bytes: self.traffic_bytes(),
            group: self.group,
            offsets: self.word_offsets,
            docs: self.docs,
            are_local: false,
            num_rows: self.num_rows,
        }
    }

    /// Sorts the rows by document, and adds counts.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn by_document(&self) -> Result<DeviceTermVectors, GpuError> {
        let rows = [&self.docs, &self.words, &self.starts];
        DeviceTermVectors::sorted(&self.group, &self.kernels, rows, self.num_rows)
    }
}

impl DeviceDocuments {
    /// Returns the number of rows, one for each document of each word.
    pub fn len(&self) -> usize {
        self.num_rows
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.num_rows == 0
    }

    /// Returns the bytes read and written at most to find the rows.
    pub fn traffic_bytes(&self) -> u64 {
        self.traffic_bytes
    }

    /// Copies the documents of each word to the host: inverted indexes of the segments, in order.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the search.
    pub fn to_host(&self) -> Result<Vec<WordDocuments>, GpuError> {
        let rows = self.group.rows_by_word(&self.offsets, &self.docs, self.are_local)?;
        Ok(rows.into_iter().map(|(offsets, docs)| WordDocuments { offsets, docs }).collect())
    }
}

impl WordDocuments {
    /// Returns the documents that contain `word`, ascending, counted from the first of the segment.
    ///
    /// # Panics
    ///
    /// Panics if `word` is no word of the segment.
    pub fn docs(&self, word: u32) -> &[u32] {
        let at = word as usize;
        &self.docs[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }

    /// Returns the start of each word's documents and the end of the last, and the documents.
    pub fn into_parts(self) -> (Vec<u32>, Vec<u32>) {
        (self.offsets, self.docs)
    }
}

impl DeviceTermVectors {
    /// Sorts rows by document, and adds counts. The rows have documents, words, and starts among what was counted, with
    /// the end of the last.
    fn sorted(
        group: &DeviceGroup,
        kernels: &Arc<Kernels>,
        [docs, words, starts]: [&DeviceBuffer<u32>; 3],
        num_rows: usize,
    ) -> Result<Self, GpuError> {
        let device = &group.device;
        let num_docs = group.shape.num_docs;
        let space = SortSpace::new(device, num_rows)?;
        let input = Pairs { keys_at: address(device, docs), values_at: 0 };
        // SAFETY: there is a document for each row, outside the space.
        let sorted = unsafe { kernels.sorter.sort_narrow(&space, input, num_rows, bits_below(num_docs))? };
        let own_words = device.alloc("words of documents", num_rows)?;
        let counts = device.alloc("counts of words", num_rows)?;
        let arguments = [
            Argument::Long(sorted.values_at),
            Argument::Short(num_rows as u32),
            Argument::Long(address(device, words)),
            Argument::Long(address(device, starts)),
            Argument::Long(address(device, &own_words)),
            Argument::Long(address(device, &counts)),
        ];
        // SAFETY: the arguments match the kernel; the sorted values are rows.
        let doc_offsets = unsafe {
            launch(device, &kernels.counts, grid_for(num_rows), THREADS, &arguments)?;
            kernels.sorter.offsets(sorted.keys_at, num_rows, num_docs)?
        };
        let group = group.clone();
        let kernels = Arc::clone(kernels);
        Ok(Self { group, kernels, doc_offsets, words: own_words, counts, num_rows })
    }

    /// Returns the number of rows, one for each word of each document.
    pub fn len(&self) -> usize {
        self.num_rows
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.num_rows == 0
    }

    /// Copies the rows to the host: the term vectors of the segments, in order.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the counting.
    pub fn to_host(&self) -> Result<Vec<DocumentWords>, GpuError> {
        let rows = self.rows_to_host(self.group.word_bases())?;
        Ok(rows.into_iter().map(|(offsets, words, counts)| DocumentWords { offsets, words, counts }).collect())
    }

    /// Copies the rows to the host. Words are counted from `bases`, one for each segment.
    pub(super) fn rows_to_host(&self, bases: &[u32]) -> Result<Vec<RowsByDocument>, GpuError> {
        self.group.rows_by_document(&self.doc_offsets, &self.words, &self.counts, bases)
    }

    /// Computes the score of each row: its count times the weight of its word. With `weights[word]`
    /// = ln(D / df) this is tfidf, as in [`Tfidf::score`](tadoc::analytics::Tfidf::score).
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] unless there is a weight for each word of the segments in order;
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn scores(&self, weights: &[f64]) -> Result<DeviceScores, GpuError> {
        let device = &self.group.device;
        let num_words = self.group.shape.num_words;
        if weights.len() != num_words as usize {
            let got = weights.len() as u64;
            let expected = u64::from(num_words);
            return Err(GpuError::Mismatch { what: "weights of words", got, expected });
        }
        let weights = device.copy_for("weights of words", weights)?;
        let scores = device.alloc("scores of words", self.num_rows)?;
        let arguments = [
            Argument::Long(address(device, &self.words)),
            Argument::Long(address(device, &self.counts)),
            Argument::Short(self.num_rows as u32),
            Argument::Long(address(device, &weights)),
            Argument::Long(address(device, &scores)),
        ];
        let grid = grid_for(self.num_rows);
        // SAFETY: the arguments match the kernel; each word has a weight, each row a score.
        unsafe { launch(device, &self.kernels.scores, grid, THREADS, &arguments) }?;
        Ok(DeviceScores { device: device.clone(), scores, num_rows: self.num_rows })
    }
}

/// A score for each row of term vectors, in device memory.
#[derive(Debug)]
pub struct DeviceScores {
    device: Device,
    scores: DeviceBuffer<f64>,
    num_rows: usize,
}

impl DeviceScores {
    /// Copies the scores to the host.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the scoring.
    pub fn to_host(&self) -> Result<Vec<f64>, GpuError> {
        to_host(&self.device, &self.scores, self.num_rows)
    }
}

/// The words of each document, with their counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentWords {
    pub(super) offsets: Vec<u32>,
    pub(super) words: Vec<u32>,
    pub(super) counts: Vec<u32>,
}

impl DocumentWords {
    /// Returns the word ids of document `doc`, ascending, with their counts.
    ///
    /// # Panics
    ///
    /// Panics if the segment has no document `doc`.
    pub fn for_doc(&self, doc: DocId) -> (&[u32], &[u32]) {
        let range = self.offsets[doc.index()] as usize..self.offsets[doc.index() + 1] as usize;
        (&self.words[range.clone()], &self.counts[range])
    }

    /// Returns the start of each document's words and the end of the last, the words, and their
    /// counts.
    pub fn into_parts(self) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
        (self.offsets, self.words, self.counts)
    }
}
