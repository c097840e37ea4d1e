//! A segment of a corpus on a device: weights and word counts, passages, counts of sequences, words of
//! documents.
//!
//! ```text
//! Segment ──▶ DeviceCorpus     symbols, rule_offsets, doc_offsets          4 bytes an element each
//!                │ weights()   CorpusWeights    the inverse grammar by levels (plan)
//!                │ text()      CorpusText       where each position starts; tokens
//!                │   passages()  words()        CorpusPassages, CorpusWords
//!                │ sequences() CorpusSequences  first and last words of rules; windows
//!                │ terms()     CorpusTerms      words before each position; all words of the text
//!                ▼
//!             numbers in device memory ──to_host()──▶ what the CPU gives, in the same order
//! ```
//!
//! Each part is uploaded when it is asked for, and counted in the device's memory budget. The host
//! derives what is uploaded from the validated grammar in O(G); kernels trust it. Grammars of more
//! than 65,536 levels or 2^32 - 1 positions are refused: their answer is the CPU's.
//!
//! A document that was cut goes on in another segment, which is another `DeviceCorpus`: its counts
//! are added by the caller, and windows across the cut are the caller's.

mod cache;
mod extract;
mod launch;
mod levels;
mod plan;
mod search;
mod sequences;
mod sort;
mod terms;
mod text;
mod transfer;
mod weights;

pub use cache::CorpusCopies;
pub use extract::{CorpusPassages, PassageBatch, PassageQuery, Passages};
pub use search::{CorpusWords, DeviceCounts, DeviceOffsets, DocWord, WordBatch, WordOffsets};
pub use sequences::{CorpusSequences, DeviceSequences, SequenceRows};
pub use terms::{
    CorpusTerms, DeviceScores, DeviceTermVectors, DeviceTerms, DocumentWords, WordDocuments,
};
pub use text::CorpusText;
pub use weights::CorpusWeights;

use std::sync::Arc;

use crate::corpus::Segment;
use crate::dag::Dag;

use super::device::Device;
use super::error::GpuError;
use super::memory::DeviceBuffer;

/// The grammar of a segment on a device, and what its tasks are made from. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DeviceCorpus {
    device: Device,
    segment: Arc<Segment>,
    arrays: Arc<GrammarArrays>,
}

/// The arrays of [`Grammar`](crate::grammar::Grammar).
#[derive(Debug)]
struct GrammarArrays {
    symbols: DeviceBuffer<u32>,
    rule_offsets: DeviceBuffer<u32>,
    doc_offsets: DeviceBuffer<u32>,
}

impl DeviceCorpus {
    /// Copies the grammar of `segment` to the device.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn upload(device: &Device, segment: &Arc<Segment>) -> Result<Self, GpuError> {
        let grammar = segment.dag.grammar();
        let arrays = GrammarArrays {
            symbols: device.copy_of("elements of rules", &grammar.symbols)?,
            rule_offsets: device.copy_of("offsets of rules", &grammar.rule_offsets)?,
            doc_offsets: device.copy_of("offsets of documents", &grammar.doc_offsets)?,
        };
        Ok(Self { device: device.clone(), segment: segment.clone(), arrays: Arc::new(arrays) })
    }

    /// What counts elements and words; they are counted once.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] where the grammar is too large or too deep for the device's numbers,
    /// [`GpuError::Unsupported`], [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn weights(&self) -> Result<CorpusWeights, GpuError> {
        CorpusWeights::upload(self)
    }

    /// What passages are read from, and words are looked for in.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn text(&self) -> Result<CorpusText, GpuError> {
        CorpusText::upload(self)
    }

    /// What reads passages of documents, with a text of its own.
    ///
    /// # Errors
    ///
    /// As [`weights`](Self::weights).
    pub fn passages(&self) -> Result<CorpusPassages, GpuError> {
        self.text()?.passages()
    }

    /// What counts sequences of `n` words.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] where n words take more than 64 bits, or n is below 2; else as
    /// [`weights`](Self::weights).
    pub fn sequences(&self, n: usize) -> Result<CorpusSequences, GpuError> {
        CorpusSequences::upload(self, n)
    }

    /// What finds the documents of words and the words of documents.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] for texts of 2^31 words or more; else as
    /// [`weights`](Self::weights).
    pub fn terms(&self) -> Result<CorpusTerms, GpuError> {
        CorpusTerms::upload(self)
    }

    /// The segment it is a copy of.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    fn dag(&self) -> &Dag {
        &self.segment.dag
    }
}

/// That `got` is at most `expected`.
fn check_limit(what: &'static str, got: usize, expected: usize) -> Result<(), GpuError> {
    if got <= expected {
        return Ok(());
    }
    Err(GpuError::Mismatch { what, got: got as u64, expected: expected as u64 })
}
