//! Batches of reads of a living corpus, on all cores.
//!
//! Documents that were never edited are read from the base in one batch
//! ([`crate::read::extract_batch`], [`crate::query::count_batch`], [`crate::query::search_batch`]),
//! where queries share work. Edited documents are answered one by one. Answers are stored in the
//! order of the queries.

use rayon::prelude::*;

use super::document::EditedDocument;
use super::living_corpus::{Current, LivingCorpus, checked_offset};
use crate::error::{Error, Result};
use crate::query::{OffsetLists, WordQuery, check_word, count_batch, search_batch};
use crate::read;
use crate::read::{ExtractQuery, Passages, extract_batch};

/// Number of answers of edited documents that one task computes at least.
const MIN_QUERIES: usize = 16;

/// Queries of unedited and of edited documents, each with its index in the batch.
struct Parted<'a, Q> {
    of_base: Vec<Q>,
    base_idxs: Vec<usize>,
    edited: Vec<(usize, Q, &'a EditedDocument)>,
}

impl LivingCorpus {
    /// Returns the passages of `queries`, in their order, of at most `max_output_bytes` in total.
    ///
    /// # Errors
    /// [`Error::InBatch`] for the first query that [`extract`](Self::extract) would refuse;
    /// [`Error::Capacity`] for more bytes than allowed.
    pub fn extract_batch(&self, queries: &[ExtractQuery], max_output_bytes: u64) -> Result<Passages> {
        let parted = self.parted(queries, |_| Ok(()))?;
        let of_base = extract_batch(self.base(), &parted.of_base, max_output_bytes);
        let of_edited = parted.answer_edited(|query, document| {
            let start = checked_offset(query.doc_id, query.byte_offset, document.len_bytes())?;
            let end = document.len_bytes().min(start.saturating_add(query.byte_len));
            let mut text = Vec::new();
            document.read(self.base(), start..end, max_output_bytes, &mut text)?;
            Ok(text)
        });
        let both = parted.both(of_base, of_edited);
        let (of_base, of_edited) = both.map_err(|error| self.naming_document(error, queries))?;
        if of_edited.is_empty() {
            return Ok(of_base);
        }
        let mut texts = vec![&[][..]; queries.len()];
        for (place, &query_idx) in parted.base_idxs.iter().enumerate() {
            texts[query_idx] = of_base.get(place).unwrap_or_default();
        }
        for ((query_idx, ..), text) in parted.edited.iter().zip(&of_edited) {
            texts[*query_idx] = text;
        }
        Passages::joined(&texts, max_output_bytes)
    }

    /// Returns the number of occurrences of each word in its document, in the order of `queries`.
    ///
    /// # Errors
    /// [`Error::InBatch`] for the first query that [`count`](Self::count) would refuse.
    pub fn count_batch(&self, queries: &[WordQuery<'_>]) -> Result<Vec<u64>> {
        let parted = self.parted(queries, |query| check_word(self.base().profile(), query.word))?;
        let of_base = count_batch(self.base(), &parted.of_base);
        let of_edited = parted.answer_edited(|query, document| document.count(self.base(), query.word));
        let (of_base, of_edited) = parted.both(of_base, of_edited)?;
        let mut counts = vec![0; queries.len()];
        for (&query_idx, count) in parted.base_idxs.iter().zip(of_base) {
            counts[query_idx] = count;
        }
        for ((query_idx, ..), count) in parted.edited.iter().zip(of_edited) {
            counts[*query_idx] = count;
        }
        Ok(counts)
    }

    /// Returns the byte offsets of each word in its document, in ascending order, in the order of
    /// `queries`; at most `max_hits` in total.
    ///
    /// # Errors
    /// [`Error::InBatch`] for the first query that [`search`](Self::search) would refuse;
    /// [`Error::Capacity`] for more offsets than allowed.
    pub fn search_batch(&self, queries: &[WordQuery<'_>], max_hits: u64) -> Result<OffsetLists> {
        let parted = self.parted(queries, |query| check_word(self.base().profile(), query.word))?;
        let of_base = search_batch(self.base(), &parted.of_base, max_hits);
        let of_edited = parted.answer_edited(|query, document| {
            let mut offsets = Vec::new();
            document.find(self.base(), query.word, &mut offsets)?;
            Ok(offsets)
        });
        let (of_base, of_edited) = parted.both(of_base, of_edited)?;
        if of_edited.is_empty() {
            return Ok(of_base);
        }
        let mut lists = vec![&[][..]; queries.len()];
        for (place, &query_idx) in parted.base_idxs.iter().enumerate() {
            lists[query_idx] = of_base.get(place).unwrap_or_default();
        }
        for ((query_idx, ..), offsets) in parted.edited.iter().zip(&of_edited) {
            lists[*query_idx] = offsets;
        }
        OffsetLists::joined(&lists, max_hits)
    }

    /// Returns `error` with the id and path that the document has here, not in the base.
    fn naming_document(&self, error: Error, queries: &[ExtractQuery]) -> Error {
        match error {
            Error::InBatch { query_idx, source } => {
                let doc_id = queries[query_idx].doc_id;
                let source = Box::new(source.in_document(doc_id, self.path(doc_id)));
                Error::InBatch { query_idx, source }
            }
            other => other,
        }
    }

    /// Divides `queries` by the state of their documents. Each document must exist, and each query
    /// must pass `check`.
    fn parted<Q: InDocument>(&self, queries: &[Q], check: impl Fn(&Q) -> Result<()>) -> Result<Parted<'_, Q>> {
        let mut parted = Parted { of_base: Vec::new(), base_idxs: Vec::new(), edited: Vec::new() };
        for (query_idx, query) in queries.iter().enumerate() {
            let current = self.current(query.doc_id()).and_then(|current| {
                check(query)?;
                Ok(current)
            });
            match current.map_err(|error| read::in_batch(query_idx, error))? {
                Current::Edited(document) => parted.edited.push((query_idx, *query, document)),
                Current::Base(doc) => {
                    parted.of_base.push(query.for_document(doc));
                    parted.base_idxs.push(query_idx);
                }
            }
        }
        Ok(parted)
    }
}

/// A query about one document.
trait InDocument: Copy {
    fn doc_id(&self) -> u64;

    /// Returns the same query about another document.
    fn for_document(self, doc_id: u64) -> Self;
}

impl InDocument for ExtractQuery {
    fn doc_id(&self) -> u64 {
        self.doc_id
    }

    fn for_document(self, doc_id: u64) -> Self {
        Self { doc_id, ..self }
    }
}

impl InDocument for WordQuery<'_> {
    fn doc_id(&self) -> u64 {
        self.doc_id
    }

    fn for_document(self, doc_id: u64) -> Self {
        Self { doc_id, ..self }
    }
}

impl<Q: Copy + Sync> Parted<'_, Q> {
    /// Answers the queries of edited documents. An error names the index of the query in the batch.
    fn answer_edited<T: Send>(&self, answer: impl Fn(Q, &EditedDocument) -> Result<T> + Sync) -> Result<Vec<T>> {
        let answers = self.edited.par_iter().with_min_len(MIN_QUERIES);
        let answers: Vec<Result<T>> = answers.map(|(_, query, document)| answer(*query, document)).collect();
        let numbered = self.edited.iter().zip(answers);
        numbered.map(|(at, answer)| answer.map_err(|e| read::in_batch(at.0, e))).collect()
    }

    /// Returns both kinds of answers, or the error of the first query that has one.
    fn both<A, B>(&self, of_base: Result<A>, of_edited: Result<B>) -> Result<(A, B)> {
        let of_base = of_base.map_err(|error| match error {
            Error::InBatch { query_idx, source } => Error::InBatch { query_idx: self.base_idxs[query_idx], source },
            other => other,
        });
        match (of_base, of_edited) {
            (Ok(of_base), Ok(of_edited)) => Ok((of_base, of_edited)),
            (Err(Error::InBatch { query_idx: a, source }), Err(Error::InBatch { query_idx: b, source: other })) => {
                Err(if a < b {
                    Error::InBatch { query_idx: a, source }
                } else {
                    Error::InBatch { query_idx: b, source: other }
                })
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }
}
