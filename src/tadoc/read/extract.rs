//! Passages of documents, read without expanding the text before them.
//!
//! There are two ways to a passage:
//!
//! - After many passages have been read, the segment keeps its documents as runs of texts
//!   ([`TextRuns`]). A passage is copied from the texts that hold it: O(log of a block + output).
//! - Until then, and if the runs would be much larger than the grammar, hints and prefix sums find the root element
//!   that holds the first byte. From there each rule is entered at the element that holds the byte, and elements are
//!   expanded forward until enough bytes are written: O(output + depth * log rule length). The first passages of a
//!   segment do without prefix sums: the lengths before them in their documents are added up.
//!
//! Offsets are bytes of the document, even if it was cut at a block border.
//!
//! A batch is written to one buffer by all cores. Each task writes a range of the passages. Lengths
//! are known before the first byte is written, so each passage has a fixed position.
//!
//! Nearly all of the time is spent waiting for memory. Entering the rules of many passages level by
//! level, so that their loads overlap, does not help: neither do huge pages, loops without
//! branches, or texts of short elements found by element.
//!
//! # Batches
//!
//! Types and helpers that calls with many queries share.
//!
//! Answers are stored in the order of the queries, end to end in one buffer. A batch is answered as
//! a whole or not at all. The error is that of the first query that fails, however the threads run.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::ids::DocId;
use crate::segment::{Corpus, Cursor, Measure, Next, Segment, TEXT_SLACK, TextRuns};

use super::{DEFAULT_MAX_OUTPUT_BYTES, check_output_len, copy_short, document_len_bytes, reserve};

/// Number of queries of a batch that one task answers.
const QUERIES_PER_TASK: usize = 512;
/// Number of queries of a batch whose loads from memory overlap.
const GROUP_LEN: usize = 16;

/// Returns up to `byte_len` bytes of document `doc_id` from `byte_offset`. A passage that reaches
/// beyond the end of the document is cut there.
///
/// # Errors
/// [`Error::OutOfRange`] if there is no such document, [`Error::PastEnd`] if `byte_offset` is
/// larger than its length, [`Error::Capacity`] for more than [`DEFAULT_MAX_OUTPUT_BYTES`].
pub fn extract(corpus: &Corpus, doc_id: u64, byte_offset: u64, byte_len: u64) -> Result<Vec<u8>> {
    let mut output = Vec::new();
    let limit = DEFAULT_MAX_OUTPUT_BYTES;
    extract_into(corpus, doc_id, byte_offset, byte_len, limit, &mut output)?;
    Ok(output)
}

/// Appends a passage to `output`, as [`extract`] reads it. The output may grow to
/// `max_output_bytes`.
///
/// # Errors
/// As [`extract`]. The output is unchanged then.
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
    reserve(output, end + TEXT_SLACK)?;
    output.resize(end + TEXT_SLACK, 0);
    read_passage(corpus, doc_id, byte_offset, &mut output[start..], end - start);
    output.truncate(end);
    Ok(())
}

/// A passage to extract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtractQuery {
    /// Id of the document.
    pub doc_id: u64,
    /// Number of bytes of the document before the passage.
    pub byte_offset: u64,
    /// Number of bytes of the passage; fewer are read if the document ends before.
    pub byte_len: u64,
}

/// Returns the passages of `queries`, in their order, of at most `max_output_bytes` in total. Runs
/// on all cores.
///
/// # Errors
/// [`Error::InBatch`] for the first query that [`extract`] would refuse; [`Error::Capacity`] for
/// more bytes than allowed, computed before any is read.
pub fn extract_batch(corpus: &Corpus, queries: &[ExtractQuery], max_output_bytes: u64) -> Result<Passages> {
    read_passages(corpus, queries, passage_ends(corpus, queries, max_output_bytes)?)
}

/// Returns the end of the passage of each query in the buffer of all passages.
///
/// # Errors
/// As [`extract_batch`].
pub(super) fn passage_ends(corpus: &Corpus, queries: &[ExtractQuery], max_output_bytes: u64) -> Result<Vec<usize>> {
    let len_for = |q: &ExtractQuery| passage_len(corpus, q.doc_id, q.byte_offset, q.byte_len);
    let lens = queries.par_iter().with_min_len(QUERIES_PER_TASK).map(len_for);
    let lens = first_error(lens.collect())?;
    let mut ends = Vec::with_capacity(queries.len());
    let mut len = 0;
    for added in lens {
        len = check_output_len(len as u64, added, max_output_bytes)?;
        ends.push(len);
    }
    Ok(ends)
}

/// Reads the passages of `queries`, which end at `ends` as [`passage_ends`] returns them.
///
/// # Errors
/// [`Error::Capacity`] if the machine has too little memory.
fn read_passages(corpus: &Corpus, queries: &[ExtractQuery], ends: Vec<usize>) -> Result<Passages> {
    let len = ends.last().copied().unwrap_or(0);
    let mut bytes = Vec::new();
    reserve(&mut bytes, len)?;
    bytes.resize(len, 0);
    let mut rest = bytes.as_mut_slice();
    let mut start = 0;
    let mut tasks = Vec::with_capacity(queries.len() / QUERIES_PER_TASK + 1);
    for (queries, ends) in queries.chunks(QUERIES_PER_TASK).zip(ends.chunks(QUERIES_PER_TASK)) {
        let end = ends.last().copied().unwrap_or(start);
        let (output, behind) = std::mem::take(&mut rest).split_at_mut(end - start);
        tasks.push((queries, ends, output, start));
        (rest, start) = (behind, end);
    }
    tasks.into_par_iter().for_each(|(queries, ends, output, first)| {
        let mut start = first;
        for (queries, ends) in queries.chunks(GROUP_LEN).zip(ends.chunks(GROUP_LEN)) {
            let places = starts_ahead(corpus, queries);
            for ((query, place), &end) in queries.iter().zip(places).zip(ends) {
                let output = &mut output[start - first..];
                let len = end - start;
                match place {
                    Some(place) => {
                        let mut passage = Passage { output, at: 0, len };
                        passage.read_runs(place.runs, place.arena, place.cursor, len);
                    }
                    None => read_passage(corpus, query.doc_id, query.byte_offset, output, len),
                }
                start = end;
            }
        }
    });
    Ok(Passages::new(bytes, ends))
}

/// Start of a passage in the runs of a segment.
#[derive(Clone, Copy)]
struct PassageStart<'a> {
    runs: &'a TextRuns,
    arena: &'a [u8],
    cursor: Cursor,
}

/// Returns the starts of the passages of up to [`GROUP_LEN`] queries. A query has none if its
/// document has several parts, if its segment has no runs or if it begins at the end of its
/// document. The loads from memory are issued step by step, for all queries at once.
fn starts_ahead<'a>(corpus: &'a Corpus, queries: &[ExtractQuery]) -> [Option<PassageStart<'a>>; GROUP_LEN] {
    let mut windows = [None; GROUP_LEN];
    for (window, query) in windows.iter_mut().zip(queries) {
        let mut parts = corpus.doc_parts(query.doc_id);
        let (Some((segment_idx, doc)), None) = (parts.next(), parts.next()) else { continue };
        let segment = &corpus.segments()[segment_idx];
        let arena = &segment.dictionary.bytes()[..];
        let Some(runs) = segment.text_runs_or_derive_if_worth() else { continue };
        let sums = segment.prefix_sums_or_derive();
        if query.byte_offset < sums.doc_len_bytes(doc) {
            let at = sums.doc_starts(doc)[0] + query.byte_offset;
            *window = Some((runs, arena, at, runs.root_window(at)));
        }
    }
    let places = windows.map(|window| {
        window.map(|(runs, arena, at, window)| PassageStart { runs, arena, cursor: runs.root_within(window, at) })
    });
    let bytes = places.iter().flatten().map(|place| place.runs.first_bytes(place.cursor));
    std::hint::black_box(bytes.fold(0, |all, byte| all ^ byte));
    places
}

/// Returns the length of a passage in bytes, if it can be read.
fn passage_len(corpus: &Corpus, doc_id: u64, byte_offset: u64, byte_len: u64) -> Result<u64> {
    corpus.check_doc_id(doc_id)?;
    let doc_len = document_len_bytes(corpus, doc_id)?;
    match doc_len.checked_sub(byte_offset) {
        Some(available) => Ok(byte_len.min(available)),
        None => Err(Error::PastEnd {
            what: "byte_offset",
            got: byte_offset,
            doc_id,
            path: corpus.path(doc_id).map(str::to_owned),
            len_bytes: doc_len,
        }),
    }
}

/// Writes a passage of `len` bytes, which must exist, to the start of `output`. The bytes after it
/// may be overwritten.
fn read_passage(corpus: &Corpus, doc_id: u64, offset: u64, output: &mut [u8], len: usize) {
    let mut passage = Passage { output, at: 0, len };
    let mut skipped = offset;
    for (segment_idx, doc) in corpus.doc_parts(doc_id) {
        if passage.is_full() {
            return;
        }
        let segment = &corpus.segments()[segment_idx];
        let part_len = segment.doc_length_or_derive(doc).len_bytes;
        if skipped < part_len {
            passage.read(segment, doc, skipped);
        }
        skipped = skipped.saturating_sub(part_len);
    }
}

/// A passage that is being written.
struct Passage<'a> {
    /// Memory for the passage, followed by bytes that may be overwritten.
    output: &'a mut [u8],
    at: usize,
    len: usize,
}

impl Passage<'_> {
    fn is_full(&self) -> bool {
        self.at == self.len
    }

    /// Appends the bytes of document `doc` from `offset`, which is below its length, until the
    /// passage is full or the document ends.
    fn read(&mut self, segment: &Segment, doc: DocId, offset: u64) {
        match segment.text_runs_or_derive_if_worth() {
            Some(runs) => {
                let arena = segment.dictionary.bytes();
                let sums = segment.prefix_sums_or_derive();
                let len = sums.doc_len_bytes(doc) - offset;
                let end = self.len.min(self.at + len as usize);
                let start = sums.doc_starts(doc)[0] + offset;
                self.read_runs(runs, arena, runs.root_from(start), end);
            }
            None => self.read_rules(segment, doc, offset),
        }
    }

    /// Appends texts from `cursor` on, up to `end` of the passage.
    fn read_runs(&mut self, runs: &TextRuns, arena: &[u8], mut cursor: Cursor, end: usize) {
        let mut outer = Vec::new();
        while self.at < end {
            match runs.next(&mut cursor, arena) {
                Next::Text(text, len) => self.push(text, len.min(end - self.at)),
                Next::Inner(inner) => outer.push(std::mem::replace(&mut cursor, inner)),
                Next::End => match outer.pop() {
                    Some(outer) => cursor = outer,
                    None => return,
                },
            }
        }
    }

    /// Appends the same bytes as [`read`](Self::read), from the rules.
    fn read_rules(&mut self, segment: &Segment, doc: DocId, offset: u64) {
        let dag = &segment.dag;
        let arena = &segment.dictionary.bytes()[..];
        let offsets = segment.dictionary.offsets();
        let symbols = &dag.grammar().symbols;
        let mut stack = Vec::with_capacity(16);
        let mut range = dag.doc_range(doc);
        let sums = segment.prefix_sums_or_derive_if_worth(range.len());
        let (mut position, mut start) = match sums {
            Some(sums) => sums.locate_in_document(dag, doc, offset),
            None => dag.locate_byte(range.clone(), offset),
        };
        let mut skipped = offset - start;
        // Descend to the token that holds the byte. The blank after an element is written with the
        // next one.
        while skipped < dag.len_bytes(symbols[position])
            && let Some(rule_id) = dag.rule_of(symbols[position])
        {
            stack.push(position + 1..range.end);
            range = dag.rule_range(rule_id);
            (position, start) = match sums {
                Some(sums) => sums.locate(dag, Measure::Bytes, range.clone(), skipped),
                None => dag.locate_byte(range.clone(), skipped),
            };
            skipped -= start;
        }
        let text = |token: u32| {
            let [start, end] = [token, token + 1].map(|at| offsets[at as usize] as usize);
            (&arena[start..], end - start)
        };
        if skipped < dag.len_bytes(symbols[position]) {
            let (text, len) = text(symbols[position]);
            self.push(&text[skipped as usize..], len - skipped as usize);
        }
        range.start = position + 1;
        // Two words in a row have a blank between them.
        let mut after_word = dag.ends_with_word(symbols[position]);
        while !self.is_full() {
            let Some(position) = range.next() else {
                match stack.pop() {
                    Some(outer) => range = outer,
                    None => return,
                }
                continue;
            };
            let element = symbols[position];
            let Some(rule_id) = dag.rule_of(element) else {
                let is_word = element < dag.num_words();
                if after_word && is_word {
                    self.push(b" ", 1);
                }
                after_word = is_word;
                let (text, len) = text(element);
                self.push(text, len);
                continue;
            };
            stack.push(std::mem::replace(&mut range, dag.rule_range(rule_id)));
        }
    }

    /// Appends the first `len` bytes of `text`, as far as the passage has room.
    #[inline]
    fn push(&mut self, text: &[u8], len: usize) {
        let taken = len.min(self.len - self.at);
        copy_short::<TEXT_SLACK>(&mut self.output[self.at..], text, taken);
        self.at += taken;
    }
}

/// The passages of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passages {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Passages {
    /// Creates passages from `bytes`, cut at `ends`. The ends ascend, and the last is the length.
    pub(crate) fn new(bytes: Vec<u8>, ends: Vec<usize>) -> Self {
        Self { bytes, ends }
    }

    /// Joins `texts`, of at most `max_output_bytes` in total.
    ///
    /// # Errors
    /// [`Error::Capacity`] if the texts are longer than allowed or memory is too small.
    pub fn joined(texts: &[&[u8]], max_output_bytes: u64) -> Result<Self> {
        let mut ends = Vec::with_capacity(texts.len());
        let mut len = 0;
        for text in texts {
            len = check_output_len(len as u64, text.len() as u64, max_output_bytes)?;
            ends.push(len);
        }
        let mut bytes = Vec::new();
        reserve(&mut bytes, len)?;
        texts.iter().for_each(|text| bytes.extend_from_slice(text));
        Ok(Self { bytes, ends })
    }

    /// Returns the number of passages.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there is no passage.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the passage of query `query_idx`, if there is one.
    pub fn get(&self, query_idx: usize) -> Option<&[u8]> {
        slice_for(&self.bytes, &self.ends, query_idx)
    }

    /// Returns the bytes of all passages and the end of each passage.
    pub fn into_parts(self) -> (Vec<u8>, Vec<usize>) {
        (self.bytes, self.ends)
    }
}

/// Returns value `idx` of `values`, which are cut at `ends`.
pub(crate) fn slice_for<'a, T>(values: &'a [T], ends: &[usize], idx: usize) -> Option<&'a [T]> {
    let end = *ends.get(idx)?;
    let start = idx.checked_sub(1).map_or(0, |before| ends[before]);
    values.get(start..end)
}

/// Returns the values of all queries, or the error of the first query that failed.
pub(crate) fn first_error<T>(outcomes: Vec<Result<T>>) -> Result<Vec<T>> {
    let numbered = outcomes.into_iter().enumerate();
    numbered.map(|(query_idx, outcome)| outcome.map_err(|e| in_batch(query_idx, e))).collect()
}

/// Wraps `source` as the error of query `query_idx`.
pub fn in_batch(query_idx: usize, source: Error) -> Error {
    Error::InBatch { query_idx, source: Box::new(source) }
}
