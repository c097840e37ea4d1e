//! Types and helpers that calls with many queries share.
//!
//! Answers are stored in the order of the queries, end to end in one buffer. A batch is answered as
//! a whole or not at all. The error is that of the first query that fails, however the threads run.

use crate::error::{Error, Result};

use crate::read::output::{check_output_len, reserve};

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
        slice_of(&self.bytes, &self.ends, query_idx)
    }

    /// Returns the bytes of all passages and the end of each passage.
    pub fn into_parts(self) -> (Vec<u8>, Vec<usize>) {
        (self.bytes, self.ends)
    }
}

/// Returns value `idx` of `values`, which are cut at `ends`.
pub(crate) fn slice_of<'a, T>(values: &'a [T], ends: &[usize], idx: usize) -> Option<&'a [T]> {
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
