//! Document frequencies: the number of documents that contain each word, without listing them.
//!
//! The sets of documents flow down as for an inverted index ([`postings`](super::postings)), 64
//! documents in one sweep. They are counted instead of kept, which takes 4 bytes for each word and
//! thread. A document that is cut over segments is left out of the sweeps; its term vector is
//! counted instead. If term vectors exist already, from a device or kept with the segment, their
//! entries are counted.

use std::ops::Range;

use rayon::prelude::*;

use crate::error::Result;
use crate::ids::DocId;
use crate::interrupt::Canceller;
use crate::segment::Corpus;

use super::postings::{DOCS_PER_TASK, Masks};
use super::{DocSelection, TermVectors};

/// Returns the number of documents that contain each word, by row of the vocabulary; 1 or more.
///
/// # Errors
/// The errors of [`TermVectorCursor::next_chunk`](super::TermVectorCursor::next_chunk).
pub fn document_counts(vectors: &TermVectors) -> Result<Vec<u64>> {
    document_counts_until(vectors, &|| false)
}

/// Variant of [`document_counts`] whose caller may leave. `is_cancelled` is asked now and then, by any
/// thread.
///
/// # Errors
/// The errors of [`document_counts`], and [`Error::Cancelled`](crate::Error::Cancelled).
pub fn document_counts_until(
    vectors: &TermVectors,
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<u64>> {
    let canceller = Canceller::new(is_cancelled);
    canceller.check()?;
    let vocabulary = vectors.vocabulary();
    let corpus = vocabulary.corpus();
    let by_segment: Vec<Vec<u32>> = vocabulary
        .first_ids()
        .into_par_iter()
        .enumerate()
        .map(|(segment_idx, first_ids)| segment_counts(vectors, segment_idx, &first_ids, canceller))
        .collect::<Result<_>>()?;
    let count = |row: usize| {
        let ids = vocabulary.ids(row);
        ids.map(|(segment_idx, word)| u64::from(by_segment[segment_idx][word as usize])).sum()
    };
    let mut counts: Vec<u64> = (0..vocabulary.len()).map(count).collect();
    let mut cursor = vectors.cursor(&DocSelection::list(cut_docs(corpus))?, None);
    while let Some(chunk) = cursor.next_chunk()? {
        canceller.check()?;
        chunk.rows().iter().for_each(|&row| counts[row as usize] += 1);
    }
    Ok(counts)
}

/// Returns the documents that lie in more than one segment, ascending.
fn cut_docs(corpus: &Corpus) -> Vec<u64> {
    let first_ids =
        (0..corpus.segments().len()).map(|segment_idx| corpus.first_doc_id(segment_idx));
    let mut ids: Vec<u64> = first_ids.filter(|&doc_id| is_cut(corpus, doc_id)).collect();
    ids.dedup();
    ids
}

fn is_cut(corpus: &Corpus, doc_id: u64) -> bool {
    corpus.doc_parts(doc_id).nth(1).is_some()
}

/// Returns the documents of a segment that lie in no other segment, as indexes inside the segment.
fn whole_docs(corpus: &Corpus, segment_idx: usize) -> Range<usize> {
    let num_docs = corpus.segments()[segment_idx].dag.grammar().num_docs();
    let is_cut = |doc| is_cut(corpus, corpus.doc_id(segment_idx, doc));
    let mut docs = DocId::range(0..num_docs);
    let start = usize::from(docs.next().is_some_and(is_cut));
    let end = num_docs - usize::from(docs.next_back().is_some_and(is_cut));
    start..end
}

/// Returns the number of whole documents that contain each word of a segment. Folded words are
/// counted with the first of the words that fold to the same text.
fn segment_counts(
    vectors: &TermVectors,
    segment_idx: usize,
    first_ids: &[u32],
    canceller: Canceller<'_>,
) -> Result<Vec<u32>> {
    let corpus = vectors.vocabulary().corpus();
    let dag = &corpus.segments()[segment_idx].dag;
    let docs = whole_docs(corpus, segment_idx);
    let num_words = dag.num_words() as usize;
    let num_tasks = docs.len().div_ceil(DOCS_PER_TASK);
    let num_pieces = rayon::current_num_threads().min(num_tasks).max(1);
    let none = || vec![0u32; num_words];
    let count_piece = |piece: usize| {
        let [start, end] = [piece, piece + 1]
            .map(|piece| docs.end.min(docs.start + num_tasks * piece / num_pieces * DOCS_PER_TASK));
        if let Some(terms) = vectors.counted(segment_idx) {
            canceller.check()?;
            return Ok(terms.doc_counts(start..end, first_ids, num_words));
        }
        let (mut masks, mut counts) = (Masks::new(dag, first_ids), none());
        for first in (start..end).step_by(DOCS_PER_TASK) {
            canceller.check()?;
            masks.count_docs(first..end.min(first + DOCS_PER_TASK), &mut counts);
        }
        Ok(counts)
    };
    (0..num_pieces).into_par_iter().map(count_piece).try_reduce(none, |mut sums, counts| {
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        Ok(sums)
    })
}
