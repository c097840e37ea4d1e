//! A segment of a corpus on a device: weights, passages, counts of sequences, words of documents.
//!
//! ```text
//! Segment ──▶ DeviceCorpus     symbols, rule_offsets, doc_offsets          4 bytes an element each
//!                │ weights()   CorpusWeights    the inverse grammar, made there
//!                │ index()     CorpusIndex      lengths and starts, made there
//!                │ text()      CorpusText       where each position starts; tokens
//!                │   passages()  words()        CorpusPassages, CorpusWords
//!                │ sequences() CorpusSequences  first and last words of rules; windows
//!                │ cooccurrences()              the same; pairs
//! segments ──▶ DeviceGroup  the same, several segments as one grammar
//!                │ documents() CorpusDocuments  a mask of documents for each element, or terms()
//!                │ terms()     CorpusTerms      words before each position; all words of the text
//!                │ ranked()    CorpusRanked     the same; all windows of the text
//!                ▼
//!             numbers in device memory ──to_host()──▶ what the CPU gives, in the same order
//! ```
//!
//! A device that shares the host's memory keeps all of this in memory that the host reaches too (`memory.rs`). The
//! grammar is written to where kernels read it, and rows are read from where kernels wrote them.
//!
//! Each part is made on request and counted in the device's memory budget. Kernels trust the grammar, because it was
//! validated. The device refuses grammars of more than 2^31 positions. It also refuses grammars so deep that their
//! rules wait for each other for a second (some hundred thousand levels). The CPU answers for both.
//!
//! With the feature `edits`, `CorpusText::with_edits` and `plan_mixed` edit a text on the device. No statement uses
//! them: an edit of a corpus is a commit, and the plan of a batch on the host takes nine tenths of its time.
//!
//! A document that was cut continues in another segment, which is another `DeviceCorpus`. The
//! caller adds their counts and counts the windows across the cut.

mod cache;
mod documents;
#[cfg(feature = "edits")]
mod edits;
mod group;
mod index;
mod launch;
mod ranked;
mod search;
mod sequences;
mod sort;
mod terms;
mod text;

pub use cache::{CopyKey, CorpusCopies};
pub use documents::CorpusDocuments;
#[cfg(feature = "edits")]
pub use edits::{CorpusEdits, MixedBatch, MixedResults};
pub use group::DeviceGroup;
pub use index::{CorpusIndex, CorpusWeights, Occurrences};
pub use ranked::{CorpusRanked, DeviceDocumentSequences, DeviceRanked, DocumentSequenceRows, RankedRows};
pub use search::{CorpusWords, DeviceCounts, DeviceOffsets, DocWord, WordBatch, WordOffsets};
pub use sequences::{CorpusSequences, DeviceSequences, SequenceRows};
pub use terms::{
    CorpusTerms, DeviceDocuments, DeviceScores, DeviceTermVectors, DeviceTerms, DocumentWords, WordDocuments,
};
pub use text::{CorpusPassages, CorpusText, PassageBatch, PassageQuery, Passages};

use std::sync::Arc;

use tadoc::segment::{Dag, Segment};

use super::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

/// The grammar of a segment on a device. Its methods make the objects that answer tasks. Cheap to
/// clone.
#[derive(Debug, Clone)]
pub struct DeviceCorpus {
    device: Device,
    segment: Arc<Segment>,
    arrays: Arc<GrammarArrays>,
}

/// The arrays of [`Grammar`](tadoc::grammar::Grammar).
#[derive(Debug)]
struct GrammarArrays {
    symbols: DeviceBuffer<u32>,
    rule_offsets: DeviceBuffer<u32>,
    doc_offsets: DeviceBuffer<u32>,
}

impl GrammarArrays {
    /// Allocates the arrays for the grammar of `segment`.
    fn take(device: &Device, segment: &Segment) -> Result<Self, GpuError> {
        let grammar = segment.dag.grammar();
        Ok(Self {
            symbols: device.alloc_to_send("elements of rules", grammar.symbols.len())?,
            rule_offsets: device.alloc_to_send("offsets of rules", grammar.rule_offsets.len())?,
            doc_offsets: device.alloc_to_send("offsets of documents", grammar.doc_offsets.len())?,
        })
    }

    /// Enqueues the copy of the grammar of `segment`. Call it once.
    fn fill(&mut self, device: &Device, segment: &Segment) -> Result<(), GpuError> {
        let grammar = segment.dag.grammar();
        let parts = [
            (&grammar.symbols, &mut self.symbols),
            (&grammar.rule_offsets, &mut self.rule_offsets),
            (&grammar.doc_offsets, &mut self.doc_offsets),
        ];
        for (values, buffer) in parts {
            device.send("copying a grammar", &values[..], device.stream(), buffer)?;
        }
        Ok(())
    }
}

impl DeviceCorpus {
    /// Copies the grammar of `segment` to the device.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn upload(device: &Device, segment: &Arc<Segment>) -> Result<Self, GpuError> {
        let mut arrays = GrammarArrays::take(device, segment)?;
        arrays.fill(device, segment)?;
        let corpus = Self { device: device.clone(), segment: segment.clone(), arrays: Arc::new(arrays) };
        corpus.count_copied();
        Ok(corpus)
    }

    /// Counts the bytes of the grammar as copied.
    fn count_copied(&self) {
        let grammar = self.dag().grammar();
        let parts = [&grammar.symbols[..], &grammar.rule_offsets, &grammar.doc_offsets];
        let len_bytes = parts.map(size_of_val::<[u32]>).iter().sum::<usize>() as u64;
        self.device.budget().count_copied(len_bytes);
    }

    /// Builds the object that counts elements and words. It computes the counts once.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if the grammar is too large for the device's numbers;
    /// [`GpuError::Unsupported`], [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn weights(&self) -> Result<CorpusWeights, GpuError> {
        CorpusWeights::upload(self)
    }

    /// Computes the lengths of expansions and the starts of positions.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] for texts of 2^61 words or more. Otherwise the errors of
    /// [`weights`](Self::weights).
    pub fn index(&self) -> Result<CorpusIndex, GpuError> {
        CorpusIndex::upload(self)
    }

    /// Builds the text object, from which passages are read and in which words are searched.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if the grammar is too large for the device's numbers;
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn text(&self) -> Result<CorpusText, GpuError> {
        CorpusText::upload(self)
    }

    /// Builds the object that reads passages of documents, with its own text object.
    ///
    /// # Errors
    ///
    /// The errors of [`weights`](Self::weights).
    pub fn passages(&self) -> Result<CorpusPassages, GpuError> {
        self.text()?.passages()
    }

    /// Builds the object that counts sequences of `n` words.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if n words take more than 64 bits, or n is below 2. Otherwise the
    /// errors of [`weights`](Self::weights).
    pub fn sequences(&self, n: usize) -> Result<CorpusSequences, GpuError> {
        CorpusSequences::upload(self, n)
    }

    /// Builds the object that counts pairs of words. The second word of a pair is less than
    /// `window` words after the first. In a row, the word with the smaller id comes first.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] for a window below 2 or above 255. Otherwise the errors of
    /// [`weights`](Self::weights).
    pub fn cooccurrences(&self, window: usize) -> Result<CorpusSequences, GpuError> {
        CorpusSequences::upload_pairs(self, window)
    }

    /// Returns the segment that was copied.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    fn dag(&self) -> &Dag {
        &self.segment.dag
    }
}

impl DeviceGroup {
    /// Builds the object that finds the documents of words: by masks that flow down the grammar or from the sorted
    /// words of the text, whichever moves fewer bytes.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] for 2^31 words of documents or more; [`GpuError::OutOfMemory`],
    /// [`GpuError::Driver`].
    pub fn documents(&self) -> Result<CorpusDocuments, GpuError> {
        CorpusDocuments::new(self)
    }

    /// Builds the object of [`documents`](Self::documents) that uses masks.
    ///
    /// # Errors
    ///
    /// The errors of [`documents`](Self::documents).
    pub fn documents_by_masks(&self) -> Result<CorpusDocuments, GpuError> {
        CorpusDocuments::with_masks(self)
    }

    /// Builds the object that finds the documents of words and the words of documents.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] for texts of 2^31 words or more; [`GpuError::OutOfMemory`],
    /// [`GpuError::Driver`].
    pub fn terms(&self) -> Result<CorpusTerms, GpuError> {
        CorpusTerms::new(self)
    }

    /// Builds the object that finds the documents of sequences of `n` words.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if n words take more than 64 bits, if n is 0, and for texts of 2^31 words or more;
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn ranked(&self, n: usize) -> Result<CorpusRanked, GpuError> {
        CorpusRanked::new(self, n)
    }
}

/// Checks that `got` is at most `expected`.
fn check_limit(what: &'static str, got: usize, expected: usize) -> Result<(), GpuError> {
    if got <= expected {
        return Ok(());
    }
    Err(GpuError::Mismatch { what, got: got as u64, expected: expected as u64 })
}
