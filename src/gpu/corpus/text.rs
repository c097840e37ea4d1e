//! The text of a segment on a device: what passages are read from, and words are looked for in.
//!
//! ```text
//! symbols, rule_offsets, doc_offsets    of the DeviceCorpus
//! starts, blanks                        where the expansion at each position begins; 8 1/8 bytes each
//! token_offsets, tokens                 the dictionary
//! ```
//!
//! `kernels/corpus_text.cuh` says what each means. Everything is derived on the host, O(G), once.

use std::sync::Arc;

use crate::corpus::Segment;
use crate::dag::Measure;
use crate::gpu::device::Device;
use crate::gpu::error::GpuError;
use crate::gpu::memory::DeviceBuffer;

use super::launch::{Argument, TextArrays, address};
use super::{CorpusPassages, CorpusWords, DeviceCorpus, GrammarArrays, check_limit};

/// The text of a segment on a device. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CorpusText {
    state: Arc<TextState>,
}

#[derive(Debug)]
struct TextState {
    corpus: DeviceCorpus,
    grammar: Arc<GrammarArrays>,
    starts: DeviceBuffer<u64>,
    blanks: DeviceBuffer<u32>,
    token_offsets: DeviceBuffer<u32>,
    tokens: DeviceBuffer<u8>,
    num_terminals: u32,
    doc_lens: Vec<u64>,
}

impl CorpusText {
    pub(super) fn upload(corpus: &DeviceCorpus) -> Result<Self, GpuError> {
        let (device, segment) = (&corpus.device, &corpus.segment);
        let (starts, blanks) = starts_and_blanks(segment);
        let num_docs = segment.dag.grammar().num_docs();
        let state = TextState {
            starts: device.copy_of("starts of elements", &starts)?,
            blanks: device.copy_of("blanks between elements", &blanks)?,
            token_offsets: device.copy_of("offsets of tokens", segment.dictionary.offsets())?,
            tokens: device.copy_of("tokens", &segment.dictionary.bytes()[..])?,
            num_terminals: segment.dag.num_terminals(),
            doc_lens: (0..num_docs).map(|doc| segment.dag.doc_len_bytes(doc)).collect(),
            grammar: corpus.arrays.clone(),
            corpus: corpus.clone(),
        };
        Ok(Self { state: Arc::new(state) })
    }

    /// What reads passages of documents.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`], [`GpuError::Driver`].
    pub fn passages(&self) -> Result<CorpusPassages, GpuError> {
        CorpusPassages::new(self)
    }

    /// What counts words in documents, and finds them.
    ///
    /// # Errors
    ///
    /// As [`passages`](Self::passages).
    pub fn words(&self) -> Result<CorpusWords, GpuError> {
        CorpusWords::new(self)
    }

    /// Number of documents.
    pub fn num_docs(&self) -> usize {
        self.state.doc_lens.len()
    }

    /// Bytes of document `doc`, counted from the first of the segment.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] where there is no such document.
    pub fn doc_len_bytes(&self, doc: u32) -> Result<u64, GpuError> {
        let lens = &self.state.doc_lens;
        check_limit(
            "documents up to that of a query",
            (doc as usize).saturating_add(1),
            lens.len(),
        )?;
        Ok(lens[doc as usize])
    }

    /// Id of the word with exactly these bytes, to ask for it; `None` where no document holds it.
    pub fn word_id(&self, word: &[u8]) -> Option<u32> {
        self.state.corpus.segment.dictionary.word_id(word)
    }

    pub(super) fn is_word(&self, id: u32) -> bool {
        self.state.corpus.segment.dictionary.is_word(id)
    }

    pub(super) fn num_terminals(&self) -> u32 {
        self.state.num_terminals
    }

    pub(super) fn corpus(&self) -> &DeviceCorpus {
        &self.state.corpus
    }

    pub(super) fn device(&self) -> &Device {
        &self.state.corpus.device
    }

    /// Where everything lies, for kernels.
    pub(super) fn arrays(&self) -> Argument {
        let (device, state) = (self.device(), &self.state);
        Argument::Text(TextArrays {
            symbols: address(device, &state.grammar.symbols),
            rule_offsets: address(device, &state.grammar.rule_offsets),
            doc_offsets: address(device, &state.grammar.doc_offsets),
            starts: address(device, &state.starts),
            blanks: address(device, &state.blanks),
            token_offsets: address(device, &state.token_offsets),
            tokens: address(device, &state.tokens),
            num_terminals: state.num_terminals,
        })
    }

    /// That what was made for `other` is used here.
    pub(super) fn check_same(&self, other: &Self) -> Result<(), GpuError> {
        let is_same = Arc::ptr_eq(&self.state, &other.state);
        check_limit("batches of another corpus", usize::from(!is_same), 0)
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
