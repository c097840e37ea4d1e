//! A text as edits see it: what they read of it, and the arrays of the text that they make.
//!
//! ```text
//! CorpusText ── BaseText ──▶ plan, tokens     tests have a text on the host instead
//!            ── Root     ──▶ kernels          elements of the root and of all rules, edges of elements
//! NewText, new terminals ──▶ CorpusText       the corpus stays, and its rules
//! ```

use std::sync::Arc;

use cudarc::driver::{DeviceRepr, ValidAsZeroBits};
use tadoc::ids::DocId;

use crate::corpus::text::{PassageQuery, Passages, Root, TextDictionary, TextState};
use crate::corpus::{CorpusText, GrammarArrays, check_limit};
use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

/// The arrays of a text after edits.
#[derive(Debug)]
pub(super) struct NewText {
    pub(super) symbols: DeviceBuffer<u32>,
    pub(super) rule_offsets: DeviceBuffer<u32>,
    pub(super) doc_offsets: DeviceBuffer<u32>,
    pub(super) starts: DeviceBuffer<u64>,
    pub(super) blanks: DeviceBuffer<u32>,
    pub(super) doc_lens: Vec<u64>,
    pub(super) root: Root,
}

/// A word or separator: true for a word, and its bytes.
pub(super) type Terminal = (bool, Box<[u8]>);

/// A base text that edits read.
pub(super) trait BaseText: Sync {
    fn num_docs(&self) -> usize;

    /// Returns the length of a document in bytes.
    ///
    /// # Errors
    ///
    /// An error if the document does not exist.
    fn doc_len_bytes(&self, doc: DocId) -> Result<u64, GpuError>;

    fn read(&self, queries: &[PassageQuery]) -> Result<Passages, GpuError>;

    /// Returns the id of the word or separator with exactly these bytes.
    fn terminal_id(&self, is_word: bool, bytes: &[u8]) -> Option<u32>;

    fn num_terminals(&self) -> u32;
}

impl CorpusText {
    /// Builds the text that edits made from this one.
    pub(super) fn edited(&self, new: NewText, dictionary: TextDictionary) -> CorpusText {
        let NewText { symbols, rule_offsets, doc_offsets, .. } = new;
        let state = TextState {
            corpus: self.state.corpus.clone(),
            grammar: Arc::new(GrammarArrays { symbols, rule_offsets, doc_offsets }),
            starts: new.starts,
            blanks: new.blanks,
            dictionary,
            doc_lens: new.doc_lens,
            root: new.root,
        };
        CorpusText { state: Arc::new(state) }
    }

    /// Returns the terminals of this text, followed by `new` ones.
    pub(super) fn with_terminals(&self, new: &[Terminal]) -> Result<TextDictionary, GpuError> {
        let device = self.device();
        let old = &self.state.dictionary;
        let num_new_bytes = new.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        let num_bytes = old.num_bytes + num_new_bytes;
        check_limit("bytes of the words of a text", num_bytes, u32::MAX as usize)?;
        let num_terminals = old.num_terminals as usize;
        let mut new_ids = old.new_ids.clone();
        let mut new_classes = old.new_classes.clone();
        new_classes.extend(new.iter().map(|&(is_word, _)| is_word));
        let mut ends = Vec::with_capacity(new.len());
        let mut new_bytes = Vec::new();
        for ((is_word, bytes), id) in new.iter().zip(old.num_terminals..) {
            new_bytes.extend_from_slice(bytes);
            ends.push((old.num_bytes + new_bytes.len()) as u32);
            new_ids[usize::from(*is_word)].insert(bytes.clone(), id);
        }
        let mut offsets = device.alloc("offsets of tokens", num_terminals + new.len() + 1)?;
        let mut bytes = device.alloc("tokens", num_bytes)?;
        append(device, &old.offsets, num_terminals + 1, &ends, &mut offsets)?;
        append(device, &old.bytes, old.num_bytes, &new_bytes, &mut bytes)?;
        let num_terminals = (num_terminals + new.len()) as u32;
        Ok(TextDictionary { offsets, bytes, num_bytes, num_terminals, new_ids, new_classes })
    }

    pub(super) fn num_rules(&self) -> usize {
        self.state.corpus.dag().grammar().num_rules()
    }

    pub(super) fn num_elements(&self) -> usize {
        self.num_terminals() as usize + self.num_rules()
    }

    pub(super) fn num_root(&self) -> usize {
        self.state.root.num_root
    }

    pub(super) fn num_symbols(&self) -> usize {
        self.state.root.num_symbols
    }

    pub(super) fn edges(&self) -> &DeviceBuffer<u8> {
        &self.state.root.edges
    }
}

impl BaseText for CorpusText {
    fn num_docs(&self) -> usize {
        self.num_docs()
    }

    fn doc_len_bytes(&self, doc: DocId) -> Result<u64, GpuError> {
        self.doc_len_bytes(doc)
    }

    fn read(&self, queries: &[PassageQuery]) -> Result<Passages, GpuError> {
        let reader = self.passages()?;
        let mut batch = reader.batch(queries)?;
        reader.run(&mut batch)?;
        batch.to_host()
    }

    fn terminal_id(&self, is_word: bool, bytes: &[u8]) -> Option<u32> {
        self.terminal_id(is_word, bytes)
    }

    fn num_terminals(&self) -> u32 {
        self.num_terminals()
    }
}

/// Fills `target` with the first `len` values of `first`, then with `rest`.
fn append<T: DeviceRepr + ValidAsZeroBits>(
    device: &Device,
    first: &DeviceBuffer<T>,
    len: usize,
    rest: &[T],
    target: &mut DeviceBuffer<T>,
) -> Result<(), GpuError> {
    let copying = device.fault("copying numbers of a corpus");
    let stream = device.stream();
    if len > 0 {
        let copied = stream.memcpy_dtod(&first.slice(..len), &mut target.slice_mut(..len));
        copied.map_err(&copying)?;
    }
    if !rest.is_empty() {
        let copied = stream.memcpy_htod(rest, &mut target.slice_mut(len..len + rest.len()));
        copied.map_err(&copying)?;
    }
    Ok(())
}
