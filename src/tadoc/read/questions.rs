//! Questions of a batch, cut at segments, for somebody else than the cores to answer: a device.
//!
//! ```text
//! passages     p0 ──────────────   p1 ──── (a document that is cut)   p2 ───
//! segment 3    p0                  p1, first part
//! segment 4                        p1, second part                     p2
//! all bytes    |p0             |p1, first|p1, second|p2     |          parts know where they begin
//! ```
//!
//! The core checks the queries, cuts them and joins the answers, so errors and limits are those of the batches on
//! cores. An [`Ask`] answers the parts. The shape of its answers is checked. O(queries + parts + bytes of answers).
//!
//! Words in documents are cut by `query/batch.rs`, which asks for each word of a document once.

use std::collections::BTreeMap;
use std::ops::Range;

use super::extract::{ExtractQuery, Passages, passage_ends};
use super::reserve;
use crate::error::{Error, Result};
use crate::ids::{DocId, WordId};
use crate::segment::Corpus;

/// A passage of a document of a segment, which has all of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocPassage {
    /// Document of the segment.
    pub doc: DocId,
    /// Number of bytes of the document, in this segment, before the passage.
    pub byte_offset: u64,
    /// Number of bytes of the passage, 1 or more.
    pub byte_len: u64,
}

/// A word of a segment, and one of its documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocWord {
    /// Document of the segment.
    pub doc: DocId,
    /// Word of the segment.
    pub word: WordId,
}

/// Questions to the documents of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Questions {
    /// The bytes of passages.
    Passages(Vec<DocPassage>),
    /// Counts of words in documents.
    Counts(Vec<DocWord>),
    /// Places of words in documents, ascending; at most `max_places` places together.
    Places {
        /// The words.
        words: Vec<DocWord>,
        /// Largest number of places of all answers.
        max_places: u64,
    },
}

/// Answers to [`Questions`], of the same kind and in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answers {
    /// The bytes of all passages, and the end of each.
    Passages {
        /// The bytes, end to end.
        bytes: Vec<u8>,
        /// The end of each passage.
        ends: Vec<usize>,
    },
    /// The number of occurrences of each word.
    Counts(Vec<u64>),
    /// The byte offsets of all words, and the end of those of each.
    Places {
        /// The offsets, ascending for each word.
        offsets: Vec<u64>,
        /// The end of the offsets of each word.
        ends: Vec<usize>,
    },
}

/// Answers the questions to segments, by the index of the segment in its corpus.
pub type Ask<'a> = dyn Fn(BTreeMap<usize, Questions>) -> Result<BTreeMap<usize, Answers>> + 'a;

impl Questions {
    /// Returns the number of questions.
    pub fn len(&self) -> usize {
        match self {
            Self::Passages(passages) => passages.len(),
            Self::Counts(words) | Self::Places { words, .. } => words.len(),
        }
    }

    /// Returns true if there is no question.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the questions of `other` behind these.
    ///
    /// # Errors
    /// [`Error::External`] if they are of another kind.
    pub fn append(&mut self, other: Self) -> Result<()> {
        match (self, other) {
            (Self::Passages(all), Self::Passages(more)) => all.extend(more),
            (Self::Counts(all), Self::Counts(more)) => all.extend(more),
            (Self::Places { words, max_places }, Self::Places { words: more, max_places: more_places }) => {
                words.extend(more);
                *max_places = max_places.saturating_add(more_places);
            }
            _ => return Err(misshapen("questions of one kind")),
        }
        Ok(())
    }
}

impl Answers {
    /// Returns the answers to the questions `range`.
    ///
    /// # Errors
    /// [`Error::External`] if there are fewer.
    pub fn part(&self, range: Range<usize>) -> Result<Self> {
        let part = match self {
            Self::Passages { bytes, ends } => {
                cut(bytes, ends, range).map(|(bytes, ends)| Self::Passages { bytes, ends })
            }
            Self::Counts(counts) => counts.get(range).map(|counts| Self::Counts(counts.to_vec())),
            Self::Places { offsets, ends } => {
                cut(offsets, ends, range).map(|(offsets, ends)| Self::Places { offsets, ends })
            }
        };
        part.ok_or_else(|| misshapen("an answer to each question"))
    }
}

/// Returns the lists `range` of those that end at `ends`, with ends of their own.
fn cut<T: Clone>(values: &[T], ends: &[usize], range: Range<usize>) -> Option<(Vec<T>, Vec<usize>)> {
    let start = range.start.checked_sub(1).map_or(Some(0), |before| ends.get(before).copied())?;
    let ends = ends.get(range)?;
    let values = values.get(start..ends.last().copied().unwrap_or(start))?;
    Some((values.to_vec(), ends.iter().map(|end| end - start).collect()))
}

/// Returns the error about answers that are not what was `expected`.
pub(crate) fn misshapen(expected: &str) -> Error {
    Error::external("questions to segments", format!("got other answers than {expected}"))
}

/// Returns the passages of `queries` as [`extract_batch`](super::extract_batch) does. `ask` reads them.
///
/// # Errors
/// As [`extract_batch`](super::extract_batch); the errors of `ask`, and [`Error::External`] for answers of another
/// shape.
pub fn extract_batch_by(
    corpus: &Corpus,
    queries: &[ExtractQuery],
    max_output_bytes: u64,
    ask: &Ask<'_>,
) -> Result<Passages> {
    let ends = passage_ends(corpus, queries, max_output_bytes)?;
    let parts = cut_passages(corpus, queries, &ends);
    let questions = parts.iter().map(|(&segment_idx, parts)| {
        let passages = parts.iter().map(|part| part.passage).collect();
        (segment_idx, Questions::Passages(passages))
    });
    let mut answers = ask(questions.collect())?;
    let len = ends.last().copied().unwrap_or(0);
    let mut all = Vec::new();
    reserve(&mut all, len)?;
    all.resize(len, 0);
    for (segment_idx, parts) in parts {
        let Some(Answers::Passages { bytes, ends }) = answers.remove(&segment_idx) else {
            return Err(misshapen("passages"));
        };
        write_parts(&parts, &bytes, &ends, &mut all)?;
    }
    Ok(Passages::new(all, ends))
}

/// A passage, or a part of one, and its place among the bytes of all.
#[derive(Debug, Clone, Copy)]
struct Part {
    passage: DocPassage,
    start: usize,
}

/// Returns the parts of the passages of `queries`, by segment. The passages end at `ends`.
fn cut_passages(corpus: &Corpus, queries: &[ExtractQuery], ends: &[usize]) -> BTreeMap<usize, Vec<Part>> {
    let mut parts: BTreeMap<usize, Vec<Part>> = BTreeMap::new();
    let mut start = 0;
    for (query, &end) in queries.iter().zip(ends) {
        let mut byte_offset = query.byte_offset;
        for (segment_idx, doc) in corpus.doc_parts(query.doc_id) {
            if start == end {
                break;
            }
            let len = corpus.segments()[segment_idx].doc_length_or_derive(doc).len_bytes;
            if let Some(left) = len.checked_sub(byte_offset).filter(|&left| left > 0) {
                let byte_len = left.min((end - start) as u64);
                let passage = DocPassage { doc, byte_offset, byte_len };
                parts.entry(segment_idx).or_default().push(Part { passage, start });
                start += byte_len as usize;
            }
            byte_offset = byte_offset.saturating_sub(len);
        }
        start = end;
    }
    parts
}

/// Copies the `bytes` of `parts`, which end at `ends`, to their places in `all`.
fn write_parts(parts: &[Part], bytes: &[u8], ends: &[usize], all: &mut [u8]) -> Result<()> {
    if ends.len() != parts.len() {
        return Err(misshapen("a passage for each question"));
    }
    let mut from = 0;
    for (part, &end) in parts.iter().zip(ends) {
        let len = part.passage.byte_len as usize;
        let text = bytes.get(from..end).filter(|text| text.len() == len);
        let place = all.get_mut(part.start..part.start + len);
        let (Some(text), Some(place)) = (text, place) else {
            return Err(misshapen("passages of the length that was asked for"));
        };
        place.copy_from_slice(text);
        from = end;
    }
    Ok(())
}
