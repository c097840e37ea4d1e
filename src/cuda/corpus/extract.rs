//! Passages of documents, many in one call: the wrapper of `kernels/corpus_extract.cu`.

#![allow(unsafe_code, reason = "launching kernels")]

use cudarc::driver::CudaFunction;

use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::module::{CORPUS_EXTRACT, Module};

use super::launch::{Argument, THREADS, address, launch};
use super::transfer::{fill, to_host};
use super::{CorpusText, check_limit};

/// Bytes of output that a thread writes, unless chosen otherwise.
const DEFAULT_CHUNK_BYTES: u32 = 32;
/// Bytes of all passages of a batch at most: so many threads fit a launch.
const MAX_TEXT_BYTES: usize = 1 << 40;

/// Reads passages of the documents of a segment in device memory.
#[derive(Debug)]
pub struct CorpusPassages {
    text: CorpusText,
    kernel: CudaFunction,
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
    text: CorpusText,
    _queries: (DeviceBuffer<u32>, DeviceBuffer<u64>, DeviceBuffer<u64>),
    output: DeviceBuffer<u8>,
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
    pub(super) fn new(text: &CorpusText) -> Result<Self, GpuError> {
        let kernel = Module::load(text.device(), CORPUS_EXTRACT)?.kernel("corpus_extract_bytes")?;
        Ok(Self { text: text.clone(), kernel, chunk_bytes: DEFAULT_CHUNK_BYTES })
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
        let device = self.text.device();
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

    /// The length of what is there of `query`.
    fn checked_len(&self, query: &PassageQuery) -> Result<u64, GpuError> {
        let expected = self.text.doc_len_bytes(query.doc)?;
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

impl Passages {
    #[cfg(test)]
    pub(super) fn joined<'a>(passages: impl Iterator<Item = &'a [u8]>) -> Self {
        let (mut starts, mut text) = (vec![0], Vec::new());
        for passage in passages {
            text.extend_from_slice(passage);
            starts.push(text.len() as u64);
        }
        Self { starts, text }
    }

    /// Where each passage starts and the last ends, and the bytes of all.
    pub fn into_parts(self) -> (Vec<u64>, Vec<u8>) {
        (self.starts, self.text)
    }

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
