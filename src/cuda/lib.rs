//! The crate `tadoc-cuda`: the only one that knows CUDA, with one typed wrapper per kernel.
//!
//! ```text
//! kernels/*.cu ──build.py──▶ PTX, embedded ──module──▶ kernels of a Device
//!                                                         │
//! gsst::Block (validated) ──upload──▶ DeviceBlocks ──GsstDecoder──▶ DeviceText ──▶ bytes
//! corpus::Segment         ──upload──▶ DeviceCorpus ──weights, passages, sequences──▶ rows
//! ```
//!
//! Without a driver or a device, every call returns a [`GpuError`], so one binary runs anywhere. The CPU implementation
//! is the reference, and answers if this one fails. Users need only the NVIDIA driver (535 or newer). This crate never
//! falls back to the CPU by itself; the caller decides how to handle an error.
//!
//! ```
//! use gsst::{Block, BlockOptions, write_block};
//! use tadoc_cuda::{Device, GpuError, GsstDecoder};
//!
//! let block = Block::open(write_block(&[Some(b"to be")], &BlockOptions::default())?)?;
//! let on_device = || -> Result<Vec<u8>, GpuError> {
//!     let device = Device::open(0)?.with_max_bytes(1 << 30);
//!     GsstDecoder::new(&device).decode(std::slice::from_ref(&block))
//! };
//! let text = on_device().unwrap_or_else(|error| {
//!     println!("the CPU answers: {error}");
//!     block.decode_all().text
//! });
//! assert_eq!(text, b"to be");
//! # Ok::<(), gsst::Error>(())
//! ```

mod corpus;
mod device;
mod device_column;
mod error;
mod gsst_decode;
mod gsst_distinct;
mod gsst_match;
mod gsst_run;
mod gsst_scan;
mod matched_rows;
mod memory;
mod run_kernels;
mod scan_slot;
mod session;

pub use crate::device_column::{
    ArrowArray, ArrowDeviceArray, ColumnType, DeviceColumn, DeviceRange, DeviceRun, SharedColumn,
};
pub use crate::error::{BlockCheck, GpuError};
pub use crate::gsst_decode::{DeviceBlocks, DeviceText, GsstDecoder};
pub use crate::gsst_distinct::{DistinctRows, FrequentRows};
pub use crate::gsst_scan::{GsstScanner, RunBytes, ScanOptions};
pub use crate::matched_rows::{MatchedRows, PendingMatches};
pub use crate::scan_slot::{PendingRows, ScannedRows};
pub use corpus::{
    CopyKey, CorpusCopies, CorpusDocuments, CorpusIndex, CorpusPassages, CorpusRanked, CorpusSequences, CorpusTerms,
    CorpusText, CorpusWeights, CorpusWords, DeviceCorpus, DeviceCounts, DeviceDocumentSequences, DeviceDocuments,
    DeviceGroup, DeviceOffsets, DeviceRanked, DeviceScores, DeviceSequences, DeviceTermVectors, DeviceTerms, DocWord,
    DocumentSequenceRows, DocumentWords, Occurrences, PassageBatch, PassageQuery, Passages, RankedRows, SequenceRows,
    WordBatch, WordDocuments, WordOffsets,
};
#[cfg(feature = "edits")]
pub use corpus::{CorpusEdits, MixedBatch, MixedResults};
pub use device::{Device, has_driver, num_devices};
pub use gsst_match::{DeviceRows, DeviceSelection, GsstMatcher, RowPredicate};
pub use gsst_run::RowForm;
pub use memory::HostBuffer;
pub use session::{CudaSession, Devices};
