//! The text of a segment on a device, for reading passages and searching words.
//!
//! ```text
//! symbols, rule_offsets, doc_offsets    of the DeviceCorpus, or of the edited text
//! starts, blanks                        start of the expansion at each position; 8 1/8 bytes each
//! token_offsets, tokens                 the dictionary
//! ```
//!
//! `kernels/corpus_text.cuh` defines these arrays. Starts and blanks come from a [`CorpusIndex`], which needs memory
//! for lengths while it computes them. With the feature `edits`, a text can be made from another one by edits
//! (`edits/text.rs`). It has arrays of its own, made on the device, and new terminals after those of the dictionary.
//! Its documents are still those of the segment.
//!
//! Passages are read many in one call, by `kernels/corpus_extract.cu`.

#![allow(unsafe_code, reason = "launching kernels")]

use std::sync::Arc;

use cudarc::driver::CudaFunction;
use rustc_hash::FxHashMap;
use tadoc::ids::DocId;
use tadoc::segment::{Measure, Segment};

use crate::device::{CORPUS_EXTRACT, Device, Module};
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

use super::launch::{Argument, THREADS, TextArrays, address, fill, launch, to_host};
use super::{CorpusIndex, DeviceCorpus, GrammarArrays, check_limit};

/// The text of a segment on a device. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CorpusText {
    pub(super) state: Arc<TextState>,
}

#[derive(Debug)]
pub(super) struct TextState {
    pub(super) corpus: DeviceCorpus,
    pub(super) grammar: Arc<GrammarArrays>,
    pub(super) starts: DeviceBuffer<u64>,
    pub(super) blanks: DeviceBuffer<u32>,
    pub(super) dictionary: TextDictionary,
    pub(super) doc_lens: Vec<u64>,
    #[cfg(feature = "edits")]
    pub(super) root: Root,
}

/// The root of a text, and the edges of its elements: if they begin or end with a word.
#[cfg(feature = "edits")]
#[derive(Debug)]
pub(super) struct Root {
    pub(super) num_root: usize,
    pub(super) num_symbols: usize,
    pub(super) edges: DeviceBuffer<u8>,
}

#[cfg(feature = "edits")]
impl Root {
    /// Computes the edges of the elements of a segment and copies them to the device.
    pub(super) fn for_segment(device: &Device, dag: &tadoc::segment::Dag) -> Result<Self, GpuError> {
        let grammar = dag.grammar();
        let edge = |element| u8::from(dag.begins_with_word(element)) | u8::from(dag.ends_with_word(element)) << 1;
        let edges: Vec<u8> = (0..dag.num_elements() as u32).map(edge).collect();
        let edges = device.copy_for("edges of elements", &edges)?;
        Ok(Self { num_root: grammar.root().len(), num_symbols: grammar.symbols.len(), edges })
    }
}

/// Terminals: those of the segment, then those added by edits.
#[derive(Debug)]
pub(super) struct TextDictionary {
    pub(super) offsets: DeviceBuffer<u32>,
    pub(super) bytes: DeviceBuffer<u8>,
    #[cfg(feature = "edits")]
    pub(super) num_bytes: usize,
    pub(super) num_terminals: u32,
    /// Ids of the terminals added by edits, by class: separators and words.
    pub(super) new_ids: [FxHashMap<Box<[u8]>, u32>; 2],
    /// Classes of the terminals added by edits; true for a word.
    pub(super) new_classes: Vec<bool>,
}

impl CorpusText {
    pub(super) fn upload(corpus: &DeviceCorpus) -> Result<Self, GpuError> {
        let device = &corpus.device;
        let segment = &corpus.segment;
        let dag = &segment.dag;
        let grammar = segment.dag.grammar();
        let (starts, blanks) = match corpus.index().and_then(CorpusIndex::into_starts) {
            // For deep grammars, kernels that wait for each other give up. The host does not give
            // up, and it needs no device memory for lengths.
            Err(GpuError::Unsupported { .. } | GpuError::OutOfMemory { .. }) => starts_of_host(device, segment)?,
            starts => starts?,
        };
        let bytes = &segment.dictionary.bytes()[..];
        let dictionary = TextDictionary {
            offsets: device.copy_for("offsets of tokens", segment.dictionary.offsets())?,
            bytes: device.copy_for("tokens", bytes)?,
            #[cfg(feature = "edits")]
            num_bytes: bytes.len(),
            num_terminals: dag.num_terminals(),
            new_ids: Default::default(),
            new_classes: Vec::new(),
        };
        let state = TextState {
            starts,
            blanks,
            dictionary,
            #[cfg(feature = "edits")]
            root: Root::for_segment(device, dag)?,
            doc_lens: grammar.docs().map(|doc| segment.doc_length_or_derive(doc).len_bytes).collect(),
            grammar: corpus.arrays.clone(),
            corpus: corpus.clone(),
        };
        Ok(Self { state: Arc::new(state) })
    }

    /// Returns the number of documents.
    pub fn num_docs(&self) -> usize {
        self.state.doc_lens.len()
    }

    /// Returns the length of document `doc` in bytes.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if there is no such document.
    pub fn doc_len_bytes(&self, doc: DocId) -> Result<u64, GpuError> {
        let lens = &self.state.doc_lens;
        check_limit("documents up to that of a query", doc.index().saturating_add(1), lens.len())?;
        Ok(lens[doc.index()])
    }

    /// Returns the id of the word with exactly these bytes, for queries. `None` if no document
    /// contains it.
    pub fn word_id(&self, word: &[u8]) -> Option<u32> {
        self.terminal_id(true, word)
    }

    /// Returns the id of the word or separator with exactly these bytes.
    pub(super) fn terminal_id(&self, is_word: bool, bytes: &[u8]) -> Option<u32> {
        let dictionary = &self.state.corpus.segment.dictionary;
        let id = if is_word { dictionary.word_id(bytes).map(u32::from) } else { dictionary.separator_id(bytes) };
        id.or_else(|| self.state.dictionary.new_ids[usize::from(is_word)].get(bytes).copied())
    }

    pub(super) fn num_terminals(&self) -> u32 {
        self.state.dictionary.num_terminals
    }

    pub(super) fn is_word(&self, id: u32) -> bool {
        let is_new = |new: u32| self.state.dictionary.new_classes.get(new as usize) == Some(&true);
        let num_old = self.state.corpus.dag().num_terminals();
        id.checked_sub(num_old).map_or(id < self.state.corpus.dag().num_words(), is_new)
    }

    pub(super) fn corpus(&self) -> &DeviceCorpus {
        &self.state.corpus
    }

    pub(super) fn device(&self) -> &Device {
        &self.state.corpus.device
    }

    /// Returns the addresses of the arrays, for kernels.
    pub(super) fn arrays(&self) -> Argument {
        let device = self.device();
        let state = &self.state;
        Argument::Text(TextArrays {
            symbols: address(device, &state.grammar.symbols),
            rule_offsets: address(device, &state.grammar.rule_offsets),
            doc_offsets: address(device, &state.grammar.doc_offsets),
            starts: address(device, &state.starts),
            blanks: address(device, &state.blanks),
            token_offsets: address(device, &state.dictionary.offsets),
            tokens: address(device, &state.dictionary.bytes),
            num_terminals: state.dictionary.num_terminals,
        })
    }

    /// Checks that `other` is this text, because a batch fits only the text it was made for.
    pub(super) fn check_same(&self, other: &Self) -> Result<(), GpuError> {
        let is_same = Arc::ptr_eq(&self.state, &other.state);
        check_limit("batches of another corpus", usize::from(!is_same), 0)
    }
}

/// Computes on the host the start of the expansion at each position, and the bits of positions with
/// a blank before them.
fn starts_of_host(device: &Device, segment: &Segment) -> Result<(DeviceBuffer<u64>, DeviceBuffer<u32>), GpuError> {
    let dag = &segment.dag;
    let sums = segment.prefix_sums_or_derive();
    let num_positions = dag.grammar().symbols.len();
    let starts: Vec<u64> = (0..=num_positions).map(|at| sums.start(dag, Measure::Bytes, at)).collect();
    let mut blanks = vec![0u32; num_positions / 32 + 1];
    for position in (0..num_positions).filter(|&at| sums.has_blank_before(at)) {
        blanks[position / 32] |= 1 << (position % 32);
    }
    let starts = device.copy_for("starts of elements", &starts)?;
    Ok((starts, device.copy_for("blanks between elements", &blanks)?))
}

/// A query for up to `len_bytes` bytes of a document, starting at `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassageQuery {
    /// Document of the segment.
    pub doc: DocId,
    /// Start of the passage, in bytes of the document.
    pub offset: u64,
    /// Length of the passage in bytes. It is cut at the end of the document.
    pub len_bytes: u64,
}

/// Passages, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passages {
    pub(super) starts: Vec<u64>,
    pub(super) text: Vec<u8>,
}

impl Passages {
    #[cfg(all(test, feature = "edits"))]
    pub(super) fn joined<'a>(passages: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut starts = vec![0];
        let mut text = Vec::new();
        for passage in passages {
            text.extend_from_slice(passage);
            starts.push(text.len() as u64);
        }
        Self { starts, text }
    }

    /// Returns the start of each passage and the end of the last one, and the bytes of all
    /// passages.
    pub fn into_parts(self) -> (Vec<u64>, Vec<u8>) {
        (self.starts, self.text)
    }

    /// Returns the number of passages.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns true if there are no passages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the passage of the query at index `at` of the batch.
    ///
    /// # Panics
    ///
    /// Panics if `at` is not below [`len`](Self::len).
    pub fn get(&self, at: usize) -> &[u8] {
        &self.text[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// Default number of output bytes per thread.
const DEFAULT_CHUNK_BYTES: u32 = 32;
/// Largest number of bytes of all passages of a batch. A launch has enough threads for it.
const MAX_TEXT_BYTES: usize = 1 << 40;

/// A reader of passages of the documents of a segment in device memory.
#[derive(Debug)]
pub struct CorpusPassages {
    text: CorpusText,
    kernel: CudaFunction,
    chunk_bytes: u32,
}

/// Queries on the device, with room for their passages.
#[derive(Debug)]
pub struct PassageBatch {
    text: CorpusText,
    _queries: (DeviceBuffer<u32>, DeviceBuffer<u64>, DeviceBuffer<u64>),
    output: DeviceBuffer<u8>,
    /// Addresses of the queries and of the output.
    arrays_at: [Argument; 4],
    host_starts: Vec<u64>,
}

impl CorpusText {
    /// Builds the object that reads passages of documents.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`], [`GpuError::Driver`].
    pub fn passages(&self) -> Result<CorpusPassages, GpuError> {
        CorpusPassages::new(self)
    }
}

impl CorpusPassages {
    fn new(text: &CorpusText) -> Result<Self, GpuError> {
        let kernel = Module::load(text.device(), CORPUS_EXTRACT)?.kernel("corpus_extract_bytes")?;
        Ok(Self { text: text.clone(), kernel, chunk_bytes: DEFAULT_CHUNK_BYTES })
    }

    /// Returns the same reader with threads that write `chunk_bytes` bytes each, rounded up to a
    /// multiple of 8.
    #[must_use]
    pub fn with_chunk_bytes(mut self, chunk_bytes: u32) -> Self {
        self.chunk_bytes = chunk_bytes.clamp(8, 1 << 20).next_multiple_of(8);
        self
    }

    /// Copies `queries` to the device and allocates room for their passages.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] for a document that does not exist, for an offset after its end, and
    /// for 2^31 queries or more; [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn batch(&self, queries: &[PassageQuery]) -> Result<PassageBatch, GpuError> {
        check_limit("queries of a batch", queries.len(), i32::MAX as usize)?;
        let mut starts = Vec::with_capacity(queries.len() + 1);
        let mut end = 0u64;
        starts.push(end);
        for query in queries {
            end = end.saturating_add(self.checked_len(query)?);
            starts.push(end);
        }
        let device = self.text.device();
        let docs: Vec<_> = queries.iter().map(|query| u32::from(query.doc)).collect();
        let offsets: Vec<_> = queries.iter().map(|query| query.offset).collect();
        check_limit("bytes of passages", usize::try_from(end).unwrap_or(usize::MAX), MAX_TEXT_BYTES)?;
        let docs = device.copy_for("documents of queries", &docs)?;
        let offsets = device.copy_for("offsets of queries", &offsets)?;
        let starts_copy = device.copy_for("starts of passages", &starts)?;
        let output = device.alloc("passages", end as usize)?;
        Ok(PassageBatch {
            arrays_at: [
                address(device, &docs),
                address(device, &offsets),
                address(device, &starts_copy),
                address(device, &output),
            ]
            .map(Argument::Long),
            _queries: (docs, offsets, starts_copy),
            output,
            host_starts: starts,
            text: self.text.clone(),
        })
    }

    /// Returns the length of the part of `query` that exists.
    fn checked_len(&self, query: &PassageQuery) -> Result<u64, GpuError> {
        let expected = self.text.doc_len_bytes(query.doc)?;
        let what = "offset of a query in its document";
        let got = query.offset;
        let left = expected.checked_sub(got).ok_or(GpuError::Mismatch { what, got, expected })?;
        Ok(query.len_bytes.min(left))
    }

    /// Reads the passages of `batch`. Returns once the work is enqueued, before it is done.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if the batch was made for another copy of a segment;
    /// [`GpuError::Driver`].
    pub fn run(&self, batch: &mut PassageBatch) -> Result<(), GpuError> {
        self.text.check_same(&batch.text)?;
        let device = self.text.device();
        let num_chunks = batch.text_len_bytes().div_ceil(u64::from(self.chunk_bytes));
        let [docs, offsets, starts, output] = batch.arrays_at;
        let arguments = [
            self.text.arrays(),
            docs,
            offsets,
            starts,
            Argument::Short(batch.num_queries() as u32),
            Argument::Short(self.chunk_bytes),
            Argument::Long(num_chunks),
            output,
        ];
        let grid = num_chunks.div_ceil(u64::from(THREADS)) as u32;
        // SAFETY: the arguments match the kernel; the arrays belong to a validated grammar. `batch`
        // checked its queries against this segment and has room for all their bytes.
        unsafe { launch(device, &self.kernel, grid, THREADS, &arguments) }
    }
}

impl PassageBatch {
    /// Returns the number of queries.
    pub fn num_queries(&self) -> usize {
        self.host_starts.len() - 1
    }

    /// Returns the number of bytes of all passages.
    pub fn text_len_bytes(&self) -> u64 {
        self.host_starts[self.host_starts.len() - 1]
    }

    /// Sets all bytes of the output to one value. Tests use this to find bytes that the kernel does
    /// not write.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub fn fill(&mut self, byte: u8) -> Result<(), GpuError> {
        fill(self.text.device(), &mut self.output, byte)
    }

    /// Copies the passages to the host.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the reading.
    pub fn to_host(&self) -> Result<Passages, GpuError> {
        let len = self.text_len_bytes() as usize;
        let text = to_host(self.text.device(), &self.output, len)?;
        Ok(Passages { starts: self.host_starts.clone(), text })
    }
}
