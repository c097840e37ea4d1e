//! Arrays that a [`Segment`] derives while it is used, and the counters that decide when it pays.
//!
//! ```text
//! array          derived                                      kept
//! weights        on first use, O(G)                           from then on
//! inverse        on first use, O(G); a few questions are      from then on
//!                answered by sweeps before
//! prefix sums    on first use, O(G); starts of passages are   from then on
//!                added up before
//! lengths        on first use, O(elements of the root)        from then on
//! edge words     on first use, O(G)                           from then on
//! text runs      after many passages were read without them   unless they are too large
//! element texts  after a part of the text was decoded          unless they are too large
//!                without them
//! doc words      after many words were read without them      unless they are too many
//! ```
//!
//! Everything else of a segment is immutable. So counting tasks do not pay for the arrays of searches, and a segment
//! that is asked once does not pay for those that need many questions. A method with `or_derive` in its name may derive
//! an array and keep it. All others only look at the arrays that exist.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ids::DocId;
use crate::segment::dag::{DocWords, EdgeWords, ElementTexts, Inverse, PrefixSums, TextRuns};
use crate::segment::{DocumentLength, Segment};

/// Number of elements for each passage that is read before text runs are built. Building them takes
/// about twice the time that they would have saved until then.
const ELEMENTS_PER_PASSAGE: u64 = 64;
/// Number of questions that are answered by a sweep before the arrays for searches are derived.
/// They take about ten times as long as a sweep.
const MAX_SWEEPS: u64 = 8;
/// Prefix sums are derived after this part of the elements was added up without them. Adding up
/// takes as long as deriving.
const PART_ADDED: u64 = 4;
/// Texts of elements are built after this part of the root was decoded without them. Building them
/// takes a fifth of the time that decoding all of it without them takes, and saves half of that
/// time.
const PART_DECODED: u64 = 16;
/// Words of documents are built after this part of the text's words was read without them. Reading
/// a word takes as long as building its entry, and such callers usually continue.
const PART_READ: u64 = 4;

/// Arrays of one segment that exist, and counters of its use.
#[derive(Debug, Default)]
pub(super) struct SegmentCache {
    weights: OnceLock<Vec<u64>>,
    inverse: OnceLock<Inverse>,
    prefix_sums: OnceLock<PrefixSums>,
    /// Lengths of the documents, which a segment of word lists has from elsewhere than from its grammar.
    lengths: OnceLock<Vec<DocumentLength>>,
    edge_words: OnceLock<EdgeWords>,
    /// `None` inside if the runs must not be built.
    text_runs: OnceLock<Option<TextRuns>>,
    /// Number of passages that were read without text runs.
    num_passages: AtomicU64,
    /// `None` inside if the texts of elements must not be built.
    element_texts: OnceLock<Option<ElementTexts>>,
    /// Number of elements of the root that were decoded without texts of elements.
    num_decoded: AtomicU64,
    /// `None` inside if the words of documents must not be built.
    doc_words: OnceLock<Option<DocWords>>,
    /// Number of questions that were answered by sweeps.
    num_sweeps: AtomicU64,
    /// Number of elements that were added up without prefix sums.
    num_added: AtomicU64,
    /// Number of words that were read and that the words of documents would have saved.
    num_words_read: AtomicU64,
}

impl SegmentCache {
    /// Creates a cache that holds `weights`, by element id.
    pub fn from_weights(weights: Vec<u64>) -> Self {
        Self { weights: OnceLock::from(weights), ..Self::default() }
    }

    /// Creates a cache for documents of these lengths.
    pub fn from_lengths(lengths: Vec<DocumentLength>) -> Self {
        Self { lengths: OnceLock::from(lengths), ..Self::default() }
    }

    /// Returns the number of bytes of main memory in use.
    fn memory_bytes(&self) -> usize {
        let text_runs = self.text_runs.get().and_then(Option::as_ref);
        let element_texts = self.element_texts.get().and_then(Option::as_ref);
        let doc_words = self.doc_words.get().and_then(Option::as_ref);
        self.weights.get().map_or(0, |weights| 8 * weights.len())
            + self.lengths.get().map_or(0, |lengths| size_of_val(&lengths[..]))
            + self.inverse.get().map_or(0, Inverse::memory_bytes)
            + self.prefix_sums.get().map_or(0, PrefixSums::memory_bytes)
            + self.edge_words.get().map_or(0, EdgeWords::memory_bytes)
            + text_runs.map_or(0, TextRuns::memory_bytes)
            + element_texts.map_or(0, ElementTexts::memory_bytes)
            + doc_words.map_or(0, DocWords::memory_bytes)
    }
}

impl Segment {
    /// Returns the number of occurrences of each element, by element id
    /// ([`Grammar::weights`](crate::grammar::Grammar::weights)). Derived on first use, O(G).
    #[inline]
    pub fn weights_or_derive(&self) -> &[u64] {
        self.cache.weights.get_or_init(|| self.dag.grammar().weights())
    }

    /// Returns the positions of each element on right-hand sides. Derived on first use, O(G).
    #[inline]
    pub fn inverse_or_derive(&self) -> &Inverse {
        self.cache.inverse.get_or_init(|| Inverse::new(self.dag.grammar()))
    }

    /// Returns the number of positions on right-hand sides of all of `tokens`, which are different. Without the inverse
    /// grammar they are counted in one pass, which takes a small part of the time of deriving it.
    pub(crate) fn num_places(&self, tokens: &[u32]) -> u64 {
        if !self.is_sweep_worth() {
            let inverse = self.inverse_or_derive();
            return tokens.iter().map(|&token| inverse.for_element(token).len() as u64).sum();
        }
        let symbols = &self.dag.grammar().symbols;
        let mut is_token = vec![0u8; self.dag.num_elements()];
        tokens.iter().for_each(|&token| is_token[token as usize] = 1);
        symbols.iter().map(|&element| u64::from(is_token[element as usize])).sum()
    }

    /// Returns true if a question about the places of words should be answered without the inverse
    /// grammar, because it does not exist and few questions were asked. This call counts as one
    /// more question.
    pub(crate) fn is_sweep_worth(&self) -> bool {
        self.cache.inverse.get().is_none() && self.cache.num_sweeps.fetch_add(1, Ordering::Relaxed) < MAX_SWEEPS
    }

    /// Returns the prefix sums of bytes and words over `symbols`. Derived on first use, O(G).
    #[inline]
    pub fn prefix_sums_or_derive(&self) -> &PrefixSums {
        self.cache.prefix_sums.get_or_init(|| PrefixSums::new(&self.dag))
    }

    /// Returns the document whose root range contains `root_position`.
    /// Empty documents contain no position. Derives the prefix sums on first use.
    #[inline]
    pub(crate) fn doc_at_or_derive(&self, root_position: usize) -> DocId {
        self.prefix_sums_or_derive().doc_at(&self.dag, root_position)
    }

    /// Returns the prefix sums if they exist, or if it pays to derive them now: when a part of the
    /// segment's elements was added up without them. This call is about `num_added` elements.
    #[inline]
    pub(crate) fn prefix_sums_or_derive_if_worth(&self, num_added: usize) -> Option<&PrefixSums> {
        if let Some(sums) = self.cache.prefix_sums.get() {
            return Some(sums);
        }
        let before = self.cache.num_added.fetch_add(num_added as u64, Ordering::Relaxed);
        let num_elements = self.dag.grammar().symbols.len() as u64;
        let is_worth = before + num_added as u64 > num_elements / PART_ADDED;
        is_worth.then(|| self.prefix_sums_or_derive())
    }

    /// Returns the length of document `doc`. The lengths of all documents are derived on first use, O(elements of the
    /// root).
    #[inline]
    pub fn doc_length_or_derive(&self, doc: DocId) -> DocumentLength {
        self.lengths_or_derive()[doc.index()]
    }

    fn lengths_or_derive(&self) -> &[DocumentLength] {
        let derive = || self.dag.grammar().docs().map(|doc| self.dag.doc_length(doc)).collect();
        self.cache.lengths.get_or_init(derive)
    }

    /// Returns the first and last word of each rule. Derived on first use, O(G).
    #[inline]
    pub(crate) fn edge_words_or_derive(&self) -> &EdgeWords {
        self.cache.edge_words.get_or_init(|| EdgeWords::new(&self.dag))
    }

    /// Returns the documents as runs of texts if enough passages were read to pay for building
    /// them. This call counts as one more passage. Building takes time proportional to the number
    /// of runs. Returns `None` if they would be much larger than the grammar.
    #[inline]
    pub(crate) fn text_runs_or_derive_if_worth(&self) -> Option<&TextRuns> {
        if let Some(runs) = self.cache.text_runs.get() {
            return runs.as_ref();
        }
        let num_passages = self.cache.num_passages.fetch_add(1, Ordering::Relaxed) + 1;
        let num_elements = self.dag.grammar().symbols.len() as u64;
        let is_worth = num_passages > num_elements / ELEMENTS_PER_PASSAGE;
        is_worth.then(|| self.text_runs_or_derive()).flatten()
    }

    fn text_runs_or_derive(&self) -> Option<&TextRuns> {
        let arena = &self.dictionary.bytes()[..];
        let offsets = self.dictionary.offsets();
        let derive = || TextRuns::new(&self.dag, self.prefix_sums_or_derive(), arena, offsets);
        self.cache.text_runs.get_or_init(derive).as_ref()
    }

    /// Returns the texts of elements if a part of the segment was decoded, which pays for building
    /// them. This call is about `num_added` elements of the root. Returns `None` if the texts would
    /// be too large.
    #[inline]
    pub(crate) fn element_texts_or_derive_if_worth(&self, num_added: usize) -> Option<&ElementTexts> {
        if let Some(texts) = self.cache.element_texts.get() {
            return texts.as_ref();
        }
        let before = self.cache.num_decoded.fetch_add(num_added as u64, Ordering::Relaxed);
        let root_len = self.dag.grammar().root().len() as u64;
        let is_worth = before + num_added as u64 > root_len / PART_DECODED;
        is_worth.then(|| self.element_texts_or_derive()).flatten()
    }

    fn element_texts_or_derive(&self) -> Option<&ElementTexts> {
        let arena = &self.dictionary.bytes()[..];
        let offsets = self.dictionary.offsets();
        let derive = || ElementTexts::new(&self.dag, arena, offsets);
        self.cache.element_texts.get_or_init(derive).as_ref()
    }

    /// Derives the lengths and texts that decoding all documents needs.
    pub fn prepare_to_decode_all(&self) {
        self.lengths_or_derive();
        self.element_texts_or_derive();
    }

    /// Returns the words of each document if it pays to build them. This is so after a quarter of
    /// the text's words was read without them ([`note_words_read`](Self::note_words_read)).
    #[inline]
    pub fn doc_words_or_derive_if_worth(&self) -> Option<&DocWords> {
        if let Some(doc_words) = self.cache.doc_words.get() {
            return doc_words.as_ref();
        }
        let derive = || self.cache.doc_words.get_or_init(|| DocWords::new(&self.dag)).as_ref();
        self.are_doc_words_worth().then(derive).flatten()
    }

    /// Returns true if the words of each document are kept, or the next task that can use them
    /// would make them. Changes nothing, so that plans can say what will be done.
    ///
    /// A few texts turn out to have too many different words when they are made; then nothing is
    /// kept.
    pub fn keeps_doc_words(&self) -> bool {
        match self.cache.doc_words.get() {
            Some(doc_words) => doc_words.is_some(),
            None => self.are_doc_words_worth() && DocWords::can_be_made(&self.dag),
        }
    }

    fn are_doc_words_worth(&self) -> bool {
        let enough = self.dag.len_words(self.dag.num_terminals()).div_ceil(PART_READ).max(1);
        self.cache.num_words_read.load(Ordering::Relaxed) >= enough
    }

    /// Notes that `num_words` words of the text, or positions of words, were read.
    #[inline]
    pub fn note_words_read(&self, num_words: u64) {
        self.cache.num_words_read.fetch_add(num_words, Ordering::Relaxed);
    }

    /// Notes that all words of `num_docs` documents of average length were read.
    pub fn note_docs_read(&self, num_docs: u64) {
        let num_words = self.dag.len_words(self.dag.num_terminals());
        let per_doc = num_words.div_ceil((self.dag.grammar().num_docs() as u64).max(1));
        self.note_words_read(per_doc.saturating_mul(num_docs));
    }

    /// Returns the number of bytes of main memory of the derived arrays that are kept.
    pub fn kept_bytes(&self) -> usize {
        self.cache.memory_bytes()
    }

    /// Prevents that text runs, texts of elements and words of documents are built later. Those
    /// that exist are kept. Without them all questions are answered from the rules.
    pub fn keep_no_copies(&self) {
        self.cache.text_runs.get_or_init(|| None);
        self.cache.element_texts.get_or_init(|| None);
        self.cache.doc_words.get_or_init(|| None);
    }

    /// Returns the greatest number of bytes of memory that the words of documents can take.
    pub fn max_doc_words_bytes(&self) -> usize {
        match self.cache.doc_words.get() {
            Some(None) => 0,
            _ => DocWords::max_memory_bytes(&self.dag),
        }
    }

    /// Returns the greatest number of bytes of memory that texts of elements can take.
    pub fn max_element_texts_bytes(&self) -> usize {
        match self.cache.element_texts.get() {
            Some(None) => 0,
            _ => ElementTexts::max_memory_bytes(&self.dag, self.dictionary.bytes().len()),
        }
    }

    /// Returns the greatest number of bytes of memory that text runs can take in general.
    pub fn max_text_runs_bytes(&self) -> usize {
        match self.cache.text_runs.get() {
            Some(None) => 0,
            _ => TextRuns::max_memory_bytes(&self.dag),
        }
    }
}
