//! A passage of a document, read without expanding what lies before it.
//!
//! Hints and prefix sums find the root element that holds the first byte; from there each rule is entered
//! at the element that holds it. Then elements are expanded forward until enough bytes are there.
//! O(depth * log rule length + output). Offsets are bytes of the document, whether it
//! was cut at a block border or not.
//!
//! Many passages at once are written to one buffer by all cores, each a run of them; lengths are known
//! before the first byte, so every passage has its place.
//!
//! Nearly all of the time is spent waiting for memory and going from rule to rule, so elements of few
//! bytes are copied from texts that are kept ([`ShortTexts`]) once many passages were read. Lengths
//! come from the prefix sums, which lie in the cache lines that are needed anyway.
//!
//! Tried and dropped, measured in one run on 10 and 100 MB (1.7 and 3.4 us without kept texts): rules of
//! a passage, or of up to 64 passages, entered level by level so that their loads overlap 1.7 and 2.9 us,
//! the same without branches that wait for memory 2.4 and 3.6 us; huge pages (`GLIBC_TUNABLES=glibc.malloc.hugetlb=1`) 10 % at
//! 100 MB. With kept texts: the first texts of 4 to 64 passages of a batch looked at before they are read,
//! nothing.

use std::ops::Range;

use rayon::prelude::*;

use crate::corpus::{Corpus, Segment};
use crate::dag::{Dag, Measure, ShortTexts};
use crate::error::{Error, Result};

use super::batch::{Passages, first_error};
use super::decode::{SHORT_COPY, check_doc_id, copy_token, document_len_bytes};
use super::{DEFAULT_MAX_OUTPUT_BYTES, check_output_len, reserve};

/// Queries of a batch that one task answers.
const QUERIES_PER_TASK: usize = 512;

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
    let len = passage_len(corpus, doc_id, byte_offset, byte_len)?;
    let start = output.len();
    let end = check_output_len(start as u64, len, max_output_bytes)?;
    reserve(output, end + SHORT_COPY)?;
    output.resize(end + SHORT_COPY, 0);
    read_passage(corpus, doc_id, byte_offset, &mut output[start..], end - start);
    output.truncate(end);
    Ok(())
}

/// One passage to extract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtractQuery {
    /// The document.
    pub doc_id: u64,
    /// Bytes of the document before the passage.
    pub byte_offset: u64,
    /// Bytes of the passage; fewer where the document ends before.
    pub byte_len: u64,
}

/// The passages that `queries` ask for, in their order, on all cores; all together may have
/// `max_output_bytes`.
///
/// # Errors
/// [`Error::InBatch`] for the first query that [`extract`] would refuse; [`Error::Capacity`] for more
/// bytes than allowed, counted before any is read.
pub fn extract_batch(
    corpus: &Corpus,
    queries: &[ExtractQuery],
    max_output_bytes: u64,
) -> Result<Passages> {
    read_passages(corpus, queries, passage_ends(corpus, queries, max_output_bytes)?)
}

/// Where the passages of `queries` end in the buffer of all of them.
///
/// # Errors
/// As [`extract_batch`].
pub(crate) fn passage_ends(
    corpus: &Corpus,
    queries: &[ExtractQuery],
    max_output_bytes: u64,
) -> Result<Vec<usize>> {
    let len_of = |q: &ExtractQuery| passage_len(corpus, q.doc_id, q.byte_offset, q.byte_len);
    let lens = queries.par_iter().with_min_len(QUERIES_PER_TASK).map(len_of);
    let lens = first_error(lens.collect())?;
    let mut ends = Vec::with_capacity(queries.len());
    let mut len = 0;
    for added in lens {
        len = check_output_len(len as u64, added, max_output_bytes)?;
        ends.push(len);
    }
    Ok(ends)
}

/// The passages of `queries`, which end at `ends` as [`passage_ends`] says.
///
/// # Errors
/// [`Error::Capacity`] where the machine has too little memory.
pub(crate) fn read_passages(
    corpus: &Corpus,
    queries: &[ExtractQuery],
    ends: Vec<usize>,
) -> Result<Passages> {
    let len = ends.last().copied().unwrap_or(0);
    let mut bytes = Vec::new();
    reserve(&mut bytes, len)?;
    bytes.resize(len, 0);
    let (mut rest, mut start) = (bytes.as_mut_slice(), 0);
    let mut tasks = Vec::with_capacity(queries.len() / QUERIES_PER_TASK + 1);
    for (queries, ends) in queries.chunks(QUERIES_PER_TASK).zip(ends.chunks(QUERIES_PER_TASK)) {
        let end = ends.last().copied().unwrap_or(start);
        let (output, behind) = std::mem::take(&mut rest).split_at_mut(end - start);
        tasks.push((queries, ends, output, start));
        (rest, start) = (behind, end);
    }
    tasks.into_par_iter().for_each(|(queries, ends, output, first)| {
        let mut start = first;
        for (query, &end) in queries.iter().zip(ends) {
            let output = &mut output[start - first..];
            read_passage(corpus, query.doc_id, query.byte_offset, output, end - start);
            start = end;
        }
    });
    Ok(Passages::new(bytes, ends))
}

/// Bytes of a passage, if it can be read.
fn passage_len(corpus: &Corpus, doc_id: u64, byte_offset: u64, byte_len: u64) -> Result<u64> {
    check_doc_id(corpus, doc_id)?;
    let doc_len = document_len_bytes(corpus, doc_id)?;
    match doc_len.checked_sub(byte_offset) {
        Some(available) => Ok(byte_len.min(available)),
        None => Err(Error::OutOfRange {
            what: "byte_offset",
            got: byte_offset,
            len: doc_len.saturating_add(1),
        }),
    }
}

/// Writes a passage of `len` bytes, which there must be, to the start of `output`; what follows there
/// may be overwritten.
fn read_passage(corpus: &Corpus, doc_id: u64, offset: u64, output: &mut [u8], len: usize) {
    let mut passage = Passage { output, at: 0, len };
    let mut skipped = offset;
    for (segment_idx, doc) in corpus.doc_parts(doc_id) {
        if passage.is_full() {
            return;
        }
        let segment = &corpus.segments()[segment_idx];
        let part_len = segment.dag.doc_len_bytes(doc);
        if skipped < part_len {
            passage.read(&Texts::of(segment), doc, skipped);
        }
        skipped = skipped.saturating_sub(part_len);
    }
}

/// Where the texts of elements are.
struct Texts<'a> {
    dag: &'a Dag,
    arena: &'a [u8],
    offsets: &'a [u32],
    short: Option<&'a ShortTexts>,
}

impl<'a> Texts<'a> {
    /// Those of a segment that a passage is read from.
    fn of(segment: &'a Segment) -> Self {
        let dag = &segment.dag;
        let (arena, offsets) = (&segment.dictionary.bytes()[..], segment.dictionary.offsets());
        Self { dag, arena, offsets, short: dag.short_texts_if_worth(arena, offsets) }
    }

    /// The text of `element` and whatever lies behind it, or the rule that is to be entered for it.
    #[inline]
    fn text_from(&self, element: u32) -> std::result::Result<&'a [u8], usize> {
        if let Some(text) = self.short.and_then(|short| short.text_from(element)) {
            return Ok(text);
        }
        match self.dag.rule_of(element) {
            Some(rule_idx) => Err(rule_idx),
            None => Ok(&self.arena[self.offsets[element as usize] as usize..]),
        }
    }
}

/// Bytes that are being written.
struct Passage<'a> {
    /// Room for the passage, and what may be overwritten.
    output: &'a mut [u8],
    at: usize,
    len: usize,
}

impl Passage<'_> {
    fn is_full(&self) -> bool {
        self.at == self.len
    }

    /// Appends the bytes of document `doc` from `offset`, which is below its length, until the passage
    /// is full or the document ends.
    fn read(&mut self, texts: &Texts<'_>, doc: usize, offset: u64) {
        let dag = texts.dag;
        let (symbols, sums) = (&dag.grammar().symbols, dag.prefix_sums());
        let mut stack = Vec::with_capacity(16);
        let mut range = self.enter(texts, doc, offset, &mut stack);
        // A blank before a rule goes in front of its first element.
        while !self.is_full() {
            let Some(position) = range.next() else {
                match stack.pop() {
                    Some(outer) => range = outer,
                    None => return,
                }
                continue;
            };
            let (len_bytes, blank) = sums.len_bytes_at(dag, position);
            self.push_blank(blank);
            match texts.text_from(symbols[position]) {
                Ok(text) => self.push(text, len_bytes),
                Err(rule_idx) => {
                    let outer = std::mem::replace(&mut range, dag.rule_range(rule_idx));
                    if !outer.is_empty() {
                        stack.push(outer);
                    }
                }
            }
        }
    }

    /// Descends to the text that holds byte `offset` of document `doc` and appends the rest of it.
    /// Returns the positions that follow in its rule, and leaves those of the rules above on
    /// `stack`, innermost last.
    fn enter(
        &mut self,
        texts: &Texts<'_>,
        doc: usize,
        mut offset: u64,
        stack: &mut Vec<Range<usize>>,
    ) -> Range<usize> {
        let dag = texts.dag;
        let sums = dag.prefix_sums();
        let mut range = dag.doc_range(doc);
        let (mut position, mut start) = sums.locate_in_document(dag, doc, offset);
        loop {
            offset -= start;
            let rest = position + 1..range.end;
            let (len_bytes, _) = sums.len_bytes_at(dag, position);
            if offset == len_bytes {
                // The blank after this element, which the next one brings along.
                return rest;
            }
            match texts.text_from(dag.grammar().symbols[position]) {
                Ok(text) => {
                    self.push(&text[offset as usize..], len_bytes - offset);
                    return rest;
                }
                Err(rule_idx) => range = dag.rule_range(rule_idx),
            }
            if !rest.is_empty() {
                stack.push(rest);
            }
            (position, start) = sums.locate(dag, Measure::Bytes, range.clone(), offset);
        }
    }

    #[inline]
    fn push_blank(&mut self, blank: bool) {
        if blank && !self.is_full() {
            self.output[self.at] = b' ';
            self.at += 1;
        }
    }

    /// Appends as much of the first `len_bytes` of `text` as there is room for.
    #[inline]
    fn push(&mut self, text: &[u8], len_bytes: u64) {
        let taken = len_bytes.min((self.len - self.at) as u64) as usize;
        copy_token(&mut self.output[self.at..], text, taken);
        self.at += taken;
    }
}
