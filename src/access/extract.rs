//! A passage of a document, read without expanding what lies before it.
//!
//! Prefix sums find the root element that holds the first byte; from there each rule is entered at
//! the element that holds it. Then elements are expanded forward until enough bytes are there.
//! O(log root + depth * log rule length + output). Offsets are bytes of the document, whether it
//! was cut at a block border or not.

use std::ops::Range;

use crate::corpus::{Corpus, Segment};
use crate::dag::Measure;
use crate::error::{Error, Result};

use super::decode::{check_doc_id, document_len_bytes};
use super::{DEFAULT_MAX_OUTPUT_BYTES, check_output_len, reserve};

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
    reserve(output, len)?;
    let mut skipped = byte_offset;
    for (segment_idx, doc) in corpus.doc_parts(doc_id) {
        let segment = &corpus.segments()[segment_idx];
        let part_len = segment.dag.doc_len_bytes(doc);
        if skipped < part_len && output.len() < len {
            extract_part(segment, segment.dag.doc_range(doc), skipped, len, output);
        }
        skipped = skipped.saturating_sub(part_len);
    }
    Ok(())
}

/// Appends the bytes of `range` from `offset`, which is below its length, until `output` has `len`
/// bytes or the range ends.
fn extract_part(
    segment: &Segment,
    range: Range<usize>,
    offset: u64,
    len: usize,
    output: &mut Vec<u8>,
) {
    let mut stack = Vec::with_capacity(32);
    enter(segment, range, offset, len, output, &mut stack);
    let (dag, dictionary) = (&segment.dag, &segment.dictionary);
    let sums = dag.prefix_sums();
    while let Some(Range { start: position, end }) = stack.pop() {
        if output.len() >= len {
            return;
        }
        if position + 1 < end {
            stack.push(position + 1..end);
        }
        if sums.has_blank_before(position) {
            push_bytes(b" ", len, output);
        }
        let element = dag.grammar().symbols[position];
        match dag.rule_of(element) {
            None => push_bytes(dictionary.get(element), len, output),
            Some(rule_idx) if dag.len_bytes(element) > 0 => stack.push(dag.rule_range(rule_idx)),
            Some(_) => {}
        }
    }
}

/// Descends to the token that holds byte `offset` of `range` and appends the rest of it; leaves on
/// `stack` the ranges that follow, innermost last.
fn enter(
    segment: &Segment,
    mut range: Range<usize>,
    mut offset: u64,
    len: usize,
    output: &mut Vec<u8>,
    stack: &mut Vec<Range<usize>>,
) {
    let dag = &segment.dag;
    loop {
        let (position, start) =
            dag.prefix_sums().locate(dag, Measure::Bytes, range.clone(), offset);
        offset -= start;
        if position + 1 < range.end {
            stack.push(position + 1..range.end);
        }
        let element = dag.grammar().symbols[position];
        if offset >= dag.len_bytes(element) {
            // The blank after this element, which the next range begins with.
            return;
        }
        match dag.rule_of(element) {
            Some(rule_idx) => range = dag.rule_range(rule_idx),
            None => {
                return push_bytes(
                    &segment.dictionary.get(element)[offset as usize..],
                    len,
                    output,
                );
            }
        }
    }
}

/// Appends as much of `bytes` as keeps `output` within `len`.
#[inline]
fn push_bytes(bytes: &[u8], len: usize, output: &mut Vec<u8>) {
    output.extend_from_slice(&bytes[..bytes.len().min(len - output.len())]);
}
