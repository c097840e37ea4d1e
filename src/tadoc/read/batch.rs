//! What the calls have in common that take many queries at once.
//!
//! Answers stand in the order of the queries, one after the other in one buffer. A batch is answered
//! whole or not at all: the error is that of the first query that fails, whatever the threads do.

use crate::error::{Error, Result};

use crate::read::output::{check_output_len, reserve};

/// The passages of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passages {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Passages {
    /// `bytes` cut at `ends`, which ascend to its length.
    pub(crate) fn new(bytes: Vec<u8>, ends: Vec<usize>) -> Self {
        Self { bytes, ends }
    }

    /// `texts` one after the other, which may have `max_output_bytes`.
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

    /// Number of passages.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The passage of query `query_idx`, if there is one.
    pub fn get(&self, query_idx: usize) -> Option<&[u8]> {
        slice_of(&self.bytes, &self.ends, query_idx)
    }

    /// All bytes, and where each passage ends.
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

/// The values of all queries, or what is wrong with the first that has none.
pub(crate) fn first_error<T>(outcomes: Vec<Result<T>>) -> Result<Vec<T>> {
    let numbered = outcomes.into_iter().enumerate();
    numbered.map(|(query_idx, outcome)| outcome.map_err(|e| in_batch(query_idx, e))).collect()
}

/// `source`, which query `query_idx` met.
pub fn in_batch(query_idx: usize, source: Error) -> Error {
    Error::InBatch { query_idx, source: Box::new(source) }
}
