//! Passages of documents, many in one call: the wrapper of `kernels/corpus_extract.cu`.

#![allow(unsafe_code, reason = "launching kernels")]

use cudarc::driver::CudaFunction;

use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::module::{CORPUS_EXTRACT, Module};

use super::base_text::{PassageQuery, Passages};
use super::launch::{Argument, THREADS, address, launch};
use super::transfer::{fill, to_host};
use super::{CorpusText, check_limit};

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
