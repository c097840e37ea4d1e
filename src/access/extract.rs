//! A passage of a document, read without expanding what lies before it.
//!
//! Prefix sums find the root element that holds the first byte; from there each rule is entered at
//! the element that holds it. Then elements are expanded forward until enough bytes are there.
//! O(log root + depth * log rule length + output). Offsets are bytes of the document, whether it
//! was cut at a block border or not.
//!
//! Nearly all of the time is spent waiting for memory, so lengths come from the prefix sums, which
//! lie in the cache lines that are needed anyway, and tokens are gathered before they are copied:
//! the loads from the dictionary then overlap.

use std::ops::Range;

use crate::corpus::{Corpus, Segment};
use crate::dag::Measure;
use crate::error::{Error, Result};

use super::decode::{SHORT_COPY, check_doc_id, document_len_bytes};
use super::{DEFAULT_MAX_OUTPUT_BYTES, check_output_len, reserve};

/// Tokens that are gathered before they are copied.
const TOKENS_PER_BATCH: usize = 32;

/// Up to `byte_len` bytes of document `doc_id` from `byte_offset`; what lies beyond the end of the
/// document is left out.
///
/// # Errors
/// [`Error::OutOfRange`] where there is no such document or `byte_offset` is larger than its
/// length; [`Error::Capacity`] for more than [`DEFAULT_MAX_OUTPUT_BYTES`].
pub fn extract(corpus: &Corpus, doc_id: u64, byte_offset: u64, byte_len: u64) -> Result<Vec<u8>> {
    let mut output = Vec::new();
    let limit = DEFAULT_MAX_OUTPUT_BYTES;
    extract_into(corpus, doc_id, byte_offset, byte_len, limit, &mut output)?;
    Ok(output)
}

/// [`extract`], appended to `output`, which may grow to `max_output_bytes`.
///
/// # Errors
/// As [`extract`]; `output` is then as it was.
pub fn extract_into(
    corpus: &Corpus,
    doc_id: u64,
    byte_offset: u64,
    byte_len: u64,
    max_output_bytes: u64,
    output: &mut Vec<u8>,
) -> Result<()> {
    check_doc_id(corpus, doc_id)?;
    let doc_len = document_len_bytes(corpus, doc_id)?;
    let Some(available) = doc_len.checked_sub(byte_offset) else {
        return Err(Error::OutOfRange {
            what: "byte_offset",
            got: byte_offset,
            len: doc_len.saturating_add(1),
        });
    };
    let len = check_output_len(output.len() as u64, byte_len.min(available), max_output_bytes)?;
    let mut passage = Passage::new(output, len)?;
    let mut skipped = byte_offset;
    for (segment_idx, doc) in corpus.doc_parts(doc_id) {
        let segment = &corpus.segments()[segment_idx];
        let part_len = segment.dag.doc_len_bytes(doc);
        if skipped < part_len && !passage.is_full() {
            passage.read(segment, segment.dag.doc_range(doc), skipped);
        }
        skipped = skipped.saturating_sub(part_len);
    }
    passage.finish();
    Ok(())
}

/// Bytes that are being written to the end of `output`.
struct Passage<'a> {
    /// Has room for all of the passage and slack for short copies.
    output: &'a mut Vec<u8>,
    at: usize,
    len: usize,
}

impl<'a> Passage<'a> {
    /// A passage that makes `output` `len` bytes long.
    fn new(output: &'a mut Vec<u8>, len: usize) -> Result<Self> {
        let at = output.len();
        reserve(output, len + SHORT_COPY)?;
        output.resize(len + SHORT_COPY, 0);
        Ok(Self { output, at, len })
    }

    fn is_full(&self) -> bool {
        self.at == self.len
    }

    fn finish(self) {
        self.output.truncate(self.at);
    }

    /// Appends the bytes of `range`, a document, from `offset`, which is below its length, until
    /// the passage is full or the range ends.
    fn read(&mut self, segment: &Segment, range: Range<usize>, offset: u64) {
        let dag = &segment.dag;
        let (symbols, sums) = (&dag.grammar().symbols, dag.prefix_sums());
        let mut stack = Vec::with_capacity(32);
        let mut range = self.enter(segment, range, offset, &mut stack);
        let mut tokens = [(0u32, false); TOKENS_PER_BATCH];
        while !self.is_full() {
            let (mut num_tokens, mut planned) = (0, self.at as u64);
            // A blank before a rule goes in front of its first token.
            let mut blank_before = false;
            while num_tokens < TOKENS_PER_BATCH && planned < self.len as u64 {
                let Some(position) = range.next() else {
                    match stack.pop() {
                        Some(outer) => range = outer,
                        None => break,
                    }
                    continue;
                };
                let element = symbols[position];
                let (len_bytes, blank) = sums.len_bytes_at(dag, position);
                planned += u64::from(blank);
                blank_before |= blank;
                match dag.rule_of(element) {
                    None => {
                        tokens[num_tokens] = (element, std::mem::take(&mut blank_before));
                        num_tokens += 1;
                        planned += len_bytes;
                    }
                    Some(rule_idx) => {
                        let outer = std::mem::replace(&mut range, dag.rule_range(rule_idx));
                        if !outer.is_empty() {
                            stack.push(outer);
                        }
                    }
                }
            }
            if num_tokens == 0 && !blank_before {
                return;
            }
            for &(token, blank) in &tokens[..num_tokens] {
                self.push_blank(blank);
                self.push(segment.dictionary.get(token));
            }
            self.push_blank(blank_before);
        }
    }

    /// Descends to the token that holds byte `offset` of `range` and appends the rest of it.
    /// Returns the positions that follow in its rule, and leaves those of the rules above on
    /// `stack`, innermost last.
    fn enter(
        &mut self,
        segment: &Segment,
        mut range: Range<usize>,
        mut offset: u64,
        stack: &mut Vec<Range<usize>>,
    ) -> Range<usize> {
        let dag = &segment.dag;
        let sums = dag.prefix_sums();
        loop {
            let (position, start) = sums.locate(dag, Measure::Bytes, range.clone(), offset);
            offset -= start;
            let rest = position + 1..range.end;
            if offset == sums.len_bytes_at(dag, position).0 {
                // The blank after this element, which the next one brings along.
                return rest;
            }
            let element = dag.grammar().symbols[position];
            let Some(rule_idx) = dag.rule_of(element) else {
                self.push(&segment.dictionary.get(element)[offset as usize..]);
                return rest;
            };
            range = dag.rule_range(rule_idx);
            if !rest.is_empty() {
                stack.push(rest);
            }
        }
    }

    #[inline]
    fn push_blank(&mut self, blank: bool) {
        self.output[self.at] = b' ';
        self.at += usize::from(blank && !self.is_full());
    }

    /// Appends as much of `bytes` as there is room for.
    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        let taken = bytes.len().min(self.len - self.at);
        self.output[self.at..self.at + taken].copy_from_slice(&bytes[..taken]);
        self.at += taken;
    }
}
