//! Readers of documents: exact bytes of whole documents and of passages.
//!
//! ```
//! use tadoc::Corpus;
//! use tadoc::build::{CorpusBuilder, IngestOptions};
//! use tadoc::format::OpenLimits;
//! use tadoc::read::{DEFAULT_MAX_OUTPUT_BYTES, document_bytes, extract};
//!
//! # fn main() -> tadoc::Result<()> {
//! let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
//! builder.push_document("a.txt", b"to be or not to be")?;
//! let (file, _report) = builder.finish(None)?;
//! let (_footer, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
//!
//! assert_eq!(document_bytes(&corpus, 0, DEFAULT_MAX_OUTPUT_BYTES)?, b"to be or not to be");
//! assert_eq!(extract(&corpus, 0, 9, 3)?, b"not");
//! # Ok(())
//! # }
//! ```
//!
//! Here are whole documents and limits of the output; `extract` has passages, and batches of them; `questions` has
//! batches that a device answers.
//!
//! A document that was cut at a block border is read as one document: offsets count from its start.
//! All code is iterative, so a hostile grammar cannot exhaust the stack. Limits are checked against
//! computed sizes before memory is allocated.
//!
//! A rule that is already expanded in the output is copied from there. Decoding is thus a series of short copies, as in
//! a Lempel-Ziv decoder. It costs O(elements of the distinct rules used + output), whatever the depth of the grammar:
//!
//! ```text
//! output   |Licensed under the Apache License|...|Licensed under the Apache License|
//! memo[r]   ^ start, length                       ^ rule r again: one copy
//! ```
//!
//! After a part of a segment was decoded, texts of its short elements are built (`ElementTexts`), which all decoders
//! share. Documents are then copied from them, element by element: O(elements entered + output).
//!
//! The memo (8 bytes a rule) stays valid as long as the output stays in the decoder, so batches of small documents
//! profit from each other. It is created when it begins to pay; a single small document is expanded without it.

pub(crate) mod extract;
pub(crate) mod questions;

pub(crate) use extract::in_batch;
pub use extract::{ExtractQuery, Passages, extract, extract_batch, extract_into};
pub use questions::{Answers, Ask, DocPassage, DocWord, Questions, extract_batch_by};

use crate::error::{Error, Result};
use crate::ids::{DocId, RuleId};
use crate::segment::{Corpus, ELEMENT_TEXT_SLACK, ElementTexts, Place, Segment};

/// Number of rules of a grammar for each expansion that is made before a memo is created.
const RULES_PER_EXPANSION: usize = 16;

/// Number of elements whose texts are loaded before they are copied.
const GROUP_LEN: usize = 16;

/// Number of bytes that one copy of a short token or rule moves, whatever its length.
const SHORT_COPY: usize = 16;

/// Returns the length of document `doc_id` in bytes.
///
/// # Errors
/// [`Error::OutOfRange`] if there is no such document, [`Error::Capacity`] if it has 2^64 bytes or
/// more.
pub fn document_len_bytes(corpus: &Corpus, doc_id: u64) -> Result<u64> {
    corpus.check_doc_id(doc_id)?;
    corpus.doc_parts(doc_id).try_fold(0u64, |sum, (segment_idx, doc)| {
        let part = corpus.segments()[segment_idx].doc_length_or_derive(doc).len_bytes;
        sum.checked_add(part).ok_or_else(too_long)
    })
}

/// Returns the number of words of document `doc_id`.
///
/// # Errors
/// As [`document_len_bytes`].
pub fn document_num_words(corpus: &Corpus, doc_id: u64) -> Result<u64> {
    corpus.check_doc_id(doc_id)?;
    corpus.doc_parts(doc_id).try_fold(0u64, |sum, (segment_idx, doc)| {
        let part = corpus.segments()[segment_idx].doc_length_or_derive(doc).num_words;
        sum.checked_add(part).ok_or_else(too_long)
    })
}

/// Returns the exact bytes of document `doc_id`, at most `max_output_bytes`.
///
/// # Errors
/// [`Error::OutOfRange`] if there is no such document, [`Error::Capacity`] if it is longer than
/// allowed.
pub fn document_bytes(corpus: &Corpus, doc_id: u64, max_output_bytes: u64) -> Result<Vec<u8>> {
    let mut decoder = DocumentDecoder::new(corpus.clone(), max_output_bytes);
    decoder.append_document(doc_id)?;
    Ok(decoder.take())
}

/// Returns the error of a document whose length does not fit into 64 bits.
pub(crate) fn too_long() -> Error {
    Error::Capacity {
        what: "a document",
        requested: u64::MAX,
        limit: u64::MAX - 1,
        knob: "nothing (lengths are 64-bit numbers)",
    }
}

/// A decoder that appends documents to its own buffer.
#[derive(Debug)]
pub struct DocumentDecoder {
    corpus: Corpus,
    max_output_bytes: u64,
    /// Bytes of the documents, followed by slack for short copies.
    output: Vec<u8>,
    len: usize,
    memo: Memo,
    stack: Vec<Frame>,
}

/// Positions of a right-hand side that are not expanded yet.
#[derive(Debug, Clone, Copy)]
struct Frame {
    next: u32,
    end: u32,
}

impl DocumentDecoder {
    /// Creates a decoder for `corpus` that holds at most `max_output_bytes` at once.
    pub fn new(corpus: Corpus, max_output_bytes: u64) -> Self {
        let output = Vec::new();
        let stack = Vec::new();
        Self { corpus, max_output_bytes, output, len: 0, memo: Memo::default(), stack }
    }

    /// Appends the exact bytes of document `doc_id`, with all its parts.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if there is no such document, [`Error::Capacity`] if the buffer would
    /// exceed the limit. The buffer is unchanged then.
    pub fn append_document(&mut self, doc_id: u64) -> Result<()> {
        let added = document_len_bytes(&self.corpus, doc_id)?;
        let len = check_output_len(self.len as u64, added, self.max_output_bytes)?;
        reserve(&mut self.output, len + ELEMENT_TEXT_SLACK)?;
        self.output.resize(len + ELEMENT_TEXT_SLACK, 0);
        self.memo.make_room(len);
        let Self { corpus, output, memo, stack, len: at, .. } = self;
        for (segment_idx, doc) in corpus.doc_parts(doc_id) {
            let segment = &corpus.segments()[segment_idx];
            let num_elements = segment.dag.doc_range(doc).len();
            *at = match segment.element_texts_or_derive_if_worth(num_elements) {
                Some(texts) => copy_part(segment, texts, doc, output, *at, stack),
                None => {
                    memo.select_segment(segment_idx, segment.dag.grammar().num_rules(), *at);
                    decode_part(segment, doc, output, *at, memo, stack)
                }
            };
        }
        debug_assert_eq!(*at, len);
        Ok(())
    }

    /// Appends `bytes` as they are.
    ///
    /// # Errors
    /// [`Error::Capacity`] if the buffer would exceed the limit. The buffer is unchanged then.
    pub(crate) fn append_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let len = check_output_len(self.len as u64, bytes.len() as u64, self.max_output_bytes)?;
        reserve(&mut self.output, len + ELEMENT_TEXT_SLACK)?;
        self.output.resize(len + ELEMENT_TEXT_SLACK, 0);
        self.memo.make_room(len);
        self.output[self.len..len].copy_from_slice(bytes);
        self.len = len;
        Ok(())
    }

    /// Returns the documents appended since the start or the last [`take`](Self::take) or
    /// [`clear`](Self::clear).
    pub fn bytes(&self) -> &[u8] {
        &self.output[..self.len]
    }

    /// Returns the buffer and starts with an empty one.
    pub fn take(&mut self) -> Vec<u8> {
        self.output.truncate(self.len);
        self.memo.forget_output(self.len);
        self.len = 0;
        std::mem::take(&mut self.output)
    }

    /// Removes the bytes and keeps the memory.
    pub fn clear(&mut self) {
        self.memo.forget_output(self.len);
        self.len = 0;
    }
}

/// Positions of the last expansions of the rules of one segment.
///
/// Starts are counted from `base`, the number of the first byte of the buffer. They are valid if
/// they are not below `valid_from`, so a new buffer or another segment invalidates all entries in
/// O(1).
#[derive(Debug)]
struct Memo {
    /// Entry of each rule; empty as long as there is no memo.
    entries: Vec<MemoEntry>,
    /// Number of expansions that are still made without a memo.
    num_unnoted: usize,
    num_rules: usize,
    base: u32,
    valid_from: u32,
    segment_idx: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct MemoEntry {
    start: u32,
    len: u32,
}

impl Default for Memo {
    fn default() -> Self {
        let base = 1;
        let valid_from = 1;
        let entries = Vec::new();
        let num_unnoted = 0;
        let num_rules = 0;
        Self { entries, num_unnoted, num_rules, base, valid_from, segment_idx: usize::MAX }
    }
}

impl Memo {
    /// Makes sure that the bytes of a buffer of `len` bytes can be numbered with 32 bits, if
    /// possible.
    fn make_room(&mut self, len: usize) {
        if self.base > 1 && self.base as usize + len > u32::MAX as usize {
            self.entries.fill(MemoEntry::default());
            (self.base, self.valid_from) = (1, 1);
        }
    }

    fn select_segment(&mut self, segment_idx: usize, num_rules: usize, at: usize) {
        if self.segment_idx == segment_idx {
            return;
        }
        self.segment_idx = segment_idx;
        self.valid_from = u32::try_from(self.base as usize + at).unwrap_or(u32::MAX);
        self.num_rules = num_rules;
        if self.entries.len() < num_rules {
            self.entries = Vec::new();
            self.num_unnoted = num_rules / RULES_PER_EXPANSION;
        }
    }

    fn forget_output(&mut self, len: usize) {
        self.base = u32::try_from(self.base as usize + len).unwrap_or(u32::MAX);
        self.valid_from = self.base;
    }

    /// Returns the start and length of the last expansion of `rule_id`.
    #[inline]
    fn get(&self, rule_id: RuleId) -> Option<(usize, usize)> {
        let entry = self.entries.get(rule_id.index())?;
        (entry.start >= self.valid_from).then(|| ((entry.start - self.base) as usize, entry.len as usize))
    }

    /// Records an expansion. Expansions beyond 4 GiB are not recorded.
    #[inline]
    fn set(&mut self, rule_id: RuleId, start: usize, len: u64) {
        if self.entries.is_empty() {
            if self.num_unnoted > 0 {
                self.num_unnoted -= 1;
                return;
            }
            self.entries = vec![MemoEntry::default(); self.num_rules];
        }
        let numbered = u32::try_from(self.base as usize + start);
        if let (Ok(start), Ok(len)) = (numbered, u32::try_from(len))
            && start < u32::MAX
        {
            self.entries[rule_id.index()] = MemoEntry { start, len };
        }
    }
}

/// Writes document `doc` of `segment` to `output[at..]` from the `texts` of its elements. Returns
/// the end of its bytes. [`decode_part`] writes the same.
fn copy_part(
    segment: &Segment,
    texts: &ElementTexts,
    doc: DocId,
    output: &mut [u8],
    mut at: usize,
    stack: &mut Vec<Frame>,
) -> usize {
    let dag = &segment.dag;
    let symbols = dag.grammar().symbols.as_slice();
    let range = dag.doc_range(doc);
    let mut frame = Frame { next: range.start as u32, end: range.end as u32 };
    let mut before = Place::before_first();
    loop {
        let end = frame.end.min(frame.next + GROUP_LEN as u32);
        let group = &symbols[frame.next as usize..end as usize];
        let places = texts.places_ahead::<GROUP_LEN>(group);
        let mut entered = None;
        for (&element, place) in group.iter().zip(places) {
            frame.next += 1;
            output[at] = b' ';
            at += usize::from(place.has_blank_after(before));
            before = place;
            if let Some(len) = place.len_bytes() {
                copy_text(&mut output[at..], texts.bytes_from(place), len);
                at += len;
            } else if let Some(rule_id) = dag.rule_of(element) {
                entered = Some(rule_id);
                break;
            } else {
                let len = dag.len_bytes(element) as usize;
                output[at..at + len].copy_from_slice(&texts.bytes_from(place)[..len]);
                at += len;
            }
        }
        if let Some(rule_id) = entered {
            if frame.next < frame.end {
                stack.push(frame);
            }
            let range = dag.rule_range(rule_id);
            frame = Frame { next: range.start as u32, end: range.end as u32 };
            before = Place::before_first();
        } else if frame.next == frame.end {
            let Some(parent) = stack.pop() else { return at };
            frame = parent;
            before = texts.place(symbols[frame.next as usize - 1]);
        }
    }
}

/// Copies a text of `len` bytes. Up to [`ELEMENT_TEXT_SLACK`] bytes are written.
#[inline]
fn copy_text(output: &mut [u8], source: &[u8], len: usize) {
    const HALF: usize = ELEMENT_TEXT_SLACK / 2;
    match len {
        0..=HALF => copy_short::<HALF>(output, source, len),
        _ => copy_short::<ELEMENT_TEXT_SLACK>(output, source, len),
    }
}

/// Writes document `doc` of `segment` to `output[at..]` and returns the end of its bytes.
fn decode_part(
    segment: &Segment,
    doc: DocId,
    output: &mut [u8],
    mut at: usize,
    memo: &mut Memo,
    stack: &mut Vec<Frame>,
) -> usize {
    let dag = &segment.dag;
    let symbols = dag.grammar().symbols.as_slice();
    let arena = segment.dictionary.bytes();
    let token_offsets = segment.dictionary.offsets();
    let range = dag.doc_range(doc);
    let mut frame = Frame { next: range.start as u32, end: range.end as u32 };
    // True behind an element of the same right-hand side that ends with a word.
    let mut after_word = false;
    loop {
        while frame.next < frame.end {
            let element = symbols[frame.next as usize];
            frame.next += 1;
            output[at] = b' ';
            at += usize::from(after_word && dag.begins_with_word(element));
            after_word = dag.ends_with_word(element);
            let Some(rule_id) = dag.rule_of(element) else {
                let start = token_offsets[element as usize] as usize;
                let len = token_offsets[element as usize + 1] as usize - start;
                copy_short::<SHORT_COPY>(&mut output[at..], &arena[start..], len);
                at += len;
                continue;
            };
            if let Some((start, len)) = memo.get(rule_id) {
                copy_earlier(output, start, at, len);
                at += len;
                continue;
            }
            memo.set(rule_id, at, dag.len_bytes(element));
            if frame.next < frame.end {
                stack.push(frame);
            }
            let range = dag.rule_range(rule_id);
            frame = Frame { next: range.start as u32, end: range.end as u32 };
            after_word = false;
        }
        let Some(parent) = stack.pop() else { return at };
        frame = parent;
        after_word = dag.ends_with_word(symbols[frame.next as usize - 1]);
    }
}

/// Copies `len` bytes from `start` to `at`. Up to [`SHORT_COPY`] bytes are written.
#[inline]
fn copy_earlier(output: &mut [u8], start: usize, at: usize, len: usize) {
    let (earlier, output) = output.split_at_mut(at);
    copy_short::<SHORT_COPY>(output, &earlier[start..], len);
}

/// Default limit of the bytes that one call decodes: 2 GiB.
pub const DEFAULT_MAX_OUTPUT_BYTES: u64 = 2 << 30;

/// Returns the new length of an output of `len` bytes that grows by `added` bytes.
///
/// # Errors
/// [`Error::Capacity`] if the new length exceeds `limit` or the address space.
pub(crate) fn check_output_len(len: u64, added: u64, limit: u64) -> Result<usize> {
    let requested = len.saturating_add(added);
    // The slack for short copies must fit too. No allocation can be larger than this.
    let limit = limit.min(isize::MAX as u64 - 64);
    match usize::try_from(requested) {
        Ok(requested_len) if requested <= limit => Ok(requested_len),
        _ => Err(Error::Capacity { what: "decoded text in bytes", requested, limit, knob: "tadoc.max_output_bytes" }),
    }
}

/// Reserves memory for `len` bytes in total.
///
/// # Errors
/// [`Error::Capacity`] if the allocator fails; the process does not abort.
pub(crate) fn reserve(output: &mut Vec<u8>, len: usize) -> Result<()> {
    output.try_reserve(len.saturating_sub(output.len())).map_err(|_| Error::Capacity {
        what: "decoded text in bytes of memory",
        requested: len as u64,
        limit: output.capacity() as u64,
        knob: "the memory of this process",
    })
}

/// Copies the first `len` bytes of `source`. Up to `N` bytes are written if `len` is at most `N`:
/// one copy of a fixed length is faster than one of a length that has to be looked at.
#[inline]
pub(crate) fn copy_short<const N: usize>(output: &mut [u8], source: &[u8], len: usize) {
    match (output.first_chunk_mut::<N>(), source.first_chunk::<N>()) {
        (Some(output), Some(source)) if len <= N => *output = *source,
        _ => output[..len].copy_from_slice(&source[..len]),
    }
}
