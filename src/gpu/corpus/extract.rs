//! Passages of documents, many in one call: the wrapper of `kernels/corpus_extract.cu`.

#![allow(unsafe_code, reason = "launching kernels")]

use std::sync::Arc;

use cudarc::driver::CudaFunction;

use crate::corpus::Segment;
use crate::dag::Measure;
use crate::gpu::error::GpuError;
use crate::gpu::memory::DeviceBuffer;
use crate::gpu::module::{CORPUS_EXTRACT, Module};

use super::launch::{Argument, THREADS, TextArrays, address, launch};
use super::transfer::{fill, to_host};
use super::{DeviceCorpus, check_limit};

/// Bytes of output that a thread writes, unless chosen otherwise.
const DEFAULT_CHUNK_BYTES: u32 = 32;
/// Bytes of all passages of a batch at most: so many threads fit a launch.
const MAX_TEXT_BYTES: usize = 1 << 40;

/// Reads passages of the documents of a segment in device memory.
#[derive(Debug)]
pub struct CorpusPassages {
    corpus: DeviceCorpus,
    kernel: CudaFunction,
    /// Where the grammar and what follows lie.
    text: TextArrays,
    _starts: DeviceBuffer<u64>,
    _blanks: DeviceBuffer<u32>,
    _token_offsets: DeviceBuffer<u32>,
    _tokens: DeviceBuffer<u8>,
    chunk_bytes: u32,
}

/// What is wanted: up to `len_bytes` bytes of a document from `offset` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassageQuery {
    /// The document, counted from the first of the segment.
    pub doc: u32,
    /// Where the passage begins, in bytes of the document.
    pub offset: u64,
    /// Its length; what lies beyond the end of the document is left out.
    pub len_bytes: u64,
}

/// Queries on the device, and place for their passages.
#[derive(Debug)]
pub struct PassageBatch {
    corpus: DeviceCorpus,
    _queries: (DeviceBuffer<u32>, DeviceBuffer<u64>, DeviceBuffer<u64>),
    text: DeviceBuffer<u8>,
    /// Where these lie.
    arrays_at: [Argument; 4],
    host_starts: Vec<u64>,
}

/// Passages one behind the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passages {
    starts: Vec<u64>,
    text: Vec<u8>,
}

impl CorpusPassages {
    pub(super) fn upload(corpus: &DeviceCorpus) -> Result<Self, GpuError> {
        let (device, segment) = (&corpus.device, &corpus.segment);
        let module = Module::load(device, CORPUS_EXTRACT)?;
        let (starts, blanks) = starts_and_blanks(segment);
        let starts = device.copy_of("starts of elements", &starts)?;
        let blanks = device.copy_of("blanks between elements", &blanks)?;
        let token_offsets = device.copy_of("offsets of tokens", segment.dictionary.offsets())?;
        let tokens = device.copy_of("tokens", &segment.dictionary.bytes()[..])?;
        let text = TextArrays {
            symbols: address(device, &corpus.arrays.symbols),
            rule_offsets: address(device, &corpus.arrays.rule_offsets),
            doc_offsets: address(device, &corpus.arrays.doc_offsets),
            starts: address(device, &starts),
            blanks: address(device, &blanks),
            token_offsets: address(device, &token_offsets),
            tokens: address(device, &tokens),
            num_terminals: segment.dag.num_terminals(),
        };
        Ok(Self {
            kernel: module.kernel("corpus_extract_bytes")?,
            text,
            _starts: starts,
            _blanks: blanks,
            _token_offsets: token_offsets,
            _tokens: tokens,
            chunk_bytes: DEFAULT_CHUNK_BYTES,
            corpus: corpus.clone(),
        })
    }

    /// The same, with threads that write `chunk_bytes` bytes each, made a multiple of 8.
    #[must_use]
    pub fn with_chunk_bytes(mut self, chunk_bytes: u32) -> Self {
        self.chunk_bytes = chunk_bytes.clamp(8, 1 << 20).next_multiple_of(8);
        self
    }

    /// Copies `queries` to the device and takes place for their passages.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] for a document that is not there and an offset behind its end, and for
    /// 2^31 queries or more; [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn batch(&self, queries: &[PassageQuery]) -> Result<PassageBatch, GpuError> {
        check_limit("queries of a batch", queries.len(), i32::MAX as usize)?;
        let mut starts = Vec::with_capacity(queries.len() + 1);
        let mut end = 0u64;
        starts.push(end);
        for query in queries {
            end = end.saturating_add(self.checked_len(query)?);
            starts.push(end);
        }
        let device = &self.corpus.device;
        let docs: Vec<_> = queries.iter().map(|query| query.doc).collect();
        let offsets: Vec<_> = queries.iter().map(|query| query.offset).collect();
        check_limit(
            "bytes of passages",
            usize::try_from(end).unwrap_or(usize::MAX),
            MAX_TEXT_BYTES,
        )?;
        let docs = device.copy_of("documents of queries", &docs)?;
        let offsets = device.copy_of("offsets of queries", &offsets)?;
        let starts_copy = device.copy_of("starts of passages", &starts)?;
        let text = device.alloc("passages", end as usize)?;
        Ok(PassageBatch {
            arrays_at: [
                address(device, &docs),
                address(device, &offsets),
                address(device, &starts_copy),
                address(device, &text),
            ]
            .map(Argument::Long),
            _queries: (docs, offsets, starts_copy),
            text,
            host_starts: starts,
            corpus: self.corpus.clone(),
        })
    }

    /// The length of what is there of `query`.
    fn checked_len(&self, query: &PassageQuery) -> Result<u64, GpuError> {
        let dag = &self.corpus.segment.dag;
        let (doc, num_docs) = (query.doc as usize, dag.grammar().num_docs());
        check_limit("documents up to that of a query", doc.saturating_add(1), num_docs)?;
        let expected = dag.doc_len_bytes(doc);
        let what = "offset of a query in its document";
        let got = query.offset;
        let left = expected.checked_sub(got).ok_or(GpuError::Mismatch { what, got, expected })?;
        Ok(query.len_bytes.min(left))
    }

    /// Reads the passages of `batch`. Returns when the work is given to the device, not when it is
    /// done.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] where the batch was made for another copy of a segment,
    /// [`GpuError::Driver`].
    pub fn run(&self, batch: &mut PassageBatch) -> Result<(), GpuError> {
        let is_own = Arc::ptr_eq(&self.corpus.arrays, &batch.corpus.arrays);
        check_limit("batches of another corpus", usize::from(!is_own), 0)?;
        let device = &self.corpus.device;
        let num_chunks = batch.text_len_bytes().div_ceil(u64::from(self.chunk_bytes));
        let [docs, offsets, starts, output] = batch.arrays_at;
        let arguments = [
            Argument::Text(self.text),
            docs,
            offsets,
            starts,
            Argument::Short(batch.num_queries() as u32),
            Argument::Short(self.chunk_bytes),
            Argument::Long(num_chunks),
            output,
        ];
        let grid = num_chunks.div_ceil(u64::from(THREADS)) as u32;
        // SAFETY: the arguments are those of the kernel; the arrays are those of a validated grammar;
        // `batch` checked its queries against this segment and has place for all of their bytes.
        unsafe { launch(device, &self.kernel, grid, THREADS, &arguments) }
    }
}

impl PassageBatch {
    /// Number of queries.
    pub fn num_queries(&self) -> usize {
        self.host_starts.len() - 1
    }

    /// Bytes of all passages.
    pub fn text_len_bytes(&self) -> u64 {
        self.host_starts[self.host_starts.len() - 1]
    }

    /// Sets the place for passages to one byte, as tests do to see what the kernel leaves unwritten.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub fn fill(&mut self, byte: u8) -> Result<(), GpuError> {
        fill(&self.corpus.device, &mut self.text, byte)
    }

    /// Copies the passages to the host.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the reading.
    pub fn to_host(&self) -> Result<Passages, GpuError> {
        let len = self.text_len_bytes() as usize;
        let text = to_host(&self.corpus.device, &self.text, len)?;
        Ok(Passages { starts: self.host_starts.clone(), text })
    }
}

impl Passages {
    /// Number of passages.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The passage of the query at place `at` of the batch.
    ///
    /// # Panics
    ///
    /// When `at` is not below [`len`](Self::len).
    pub fn get(&self, at: usize) -> &[u8] {
        &self.text[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// Where the expansion at each position begins, and the bits of positions with a blank before them.
fn starts_and_blanks(segment: &Segment) -> (Vec<u64>, Vec<u32>) {
    let (dag, sums) = (&segment.dag, segment.dag.prefix_sums());
    let num_positions = dag.grammar().symbols.len();
    let starts = (0..=num_positions).map(|at| sums.start(dag, Measure::Bytes, at)).collect();
    let mut blanks = vec![0u32; num_positions / 32 + 1];
    for position in (0..num_positions).filter(|&at| sums.has_blank_before(at)) {
        blanks[position / 32] |= 1 << (position % 32);
    }
    (starts, blanks)
}
