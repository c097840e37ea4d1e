//! What devices answer to batches of questions: one function for each kind.
//!
//! An error is why the CPU has to answer.

use std::sync::Arc;

use datafusion::physical_plan::metrics::Count;

use super::super::devices;
use super::cut::{self, BySegment, PassagePart};
use super::together::{Queue, Runs};
use crate::access::{AskedWord, ExtractQuery, OffsetLists, WordPlan};
use crate::corpus::{Corpus, Segment};
use crate::gpu::{CopyKey, CorpusCopies, CorpusText, DocWord, GpuError, PassageQuery};

/// The batches of a call that wait for devices.
#[derive(Debug, Default)]
pub(super) struct Devices {
    passages: Queue<PassagePart, Runs<u8>>,
    counts: Queue<AskedWord, Vec<u64>>,
    lists: Queue<AskedWord, Runs<u64>>,
}

/// What may be taken of each device, and what is noted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) max_bytes: u64,
    /// Bytes that are sent there.
    pub(super) uploaded: &'a Count,
}

impl Devices {
    /// The bytes of the passages of `queries`, which end at `ends`.
    pub(super) fn passages(
        &self,
        terms: Terms<'_>,
        corpus: &Corpus,
        queries: &[ExtractQuery],
        ends: &[usize],
    ) -> Result<Vec<u8>, String> {
        let parts = cut::passages(corpus, queries, ends);
        let (parts, answers) = self.passages.ask(parts, |parts| {
            for_each(terms, parts, |copies, segment, parts| {
                let queries: Vec<PassageQuery> = parts.iter().map(|part| part.query).collect();
                let (starts, values) = copies.passages(segment, &queries)?.into_parts();
                Ok(Runs { starts, values })
            })
        })?;
        Ok(cut::joined_passages(&parts, answers, ends.last().copied().unwrap_or(0)))
    }

    /// How often words occur.
    pub(super) fn counts(
        &self,
        terms: Terms<'_>,
        corpus: &Corpus,
        plan: &WordPlan<'_>,
    ) -> Result<Vec<u64>, String> {
        let (parts, answers) = self.counts.ask(cut::words(corpus, plan), |parts| {
            for_each(terms, parts, |copies, segment, asked| {
                copies.document_word_counts(segment, &doc_words(asked))
            })
        })?;
        let mut of_parts = vec![0; plan.num_parts()];
        for (asked, count) in in_order(&parts).zip(answers.into_iter().flatten()) {
            of_parts[asked.part_idx] = count;
        }
        plan.join_counts(&of_parts).map_err(|error| error.to_string())
    }

    /// Where words begin, `max_hits` places at most.
    pub(super) fn lists(
        &self,
        terms: Terms<'_>,
        corpus: &Corpus,
        plan: &WordPlan<'_>,
        max_hits: u64,
    ) -> Result<OffsetLists, String> {
        let (parts, answers) = self.lists.ask(cut::words(corpus, plan), |parts| {
            for_each(terms, parts, |copies, segment, asked| {
                let found = copies.document_word_offsets(segment, &doc_words(asked), max_hits)?;
                let (starts, values) = found.into_parts();
                Ok(Runs { starts, values })
            })
        })?;
        let mut of_parts: Vec<&[u64]> = vec![&[]; plan.num_parts()];
        for (asked, offsets) in in_order(&parts).zip(answers.iter().flat_map(Runs::iter)) {
            of_parts[asked.part_idx] = offsets;
        }
        plan.join_lists(&of_parts, max_hits).map_err(|error| error.to_string())
    }
}

/// What `work` answers for each segment that something is asked of.
fn for_each<Q: Sync, P: Send>(
    terms: Terms<'_>,
    parts: &BySegment<Q>,
    work: impl Fn(&mut CorpusCopies, &Arc<Segment>, &[Q]) -> Result<P, GpuError> + Sync,
) -> Result<Vec<P>, String> {
    let answers =
        devices::for_each_segment(parts.segments(), terms.max_bytes, |copies, segment| {
            let before = copies.device().copied_bytes();
            let answer = work(copies, segment, parts.of(segment));
            terms.uploaded.add((copies.device().copied_bytes() - before) as usize);
            answer
        });
    answers.map_err(|error| error.to_string())
}

fn doc_words(asked: &[AskedWord]) -> Vec<DocWord> {
    asked.iter().map(cut::doc_word).collect()
}

fn in_order(parts: &BySegment<AskedWord>) -> impl Iterator<Item = &AskedWord> {
    parts.segments().iter().flat_map(|segment| parts.of(segment))
}

/// Elements of those of `segments` that no device has the text of.
pub(super) fn missing_elements<'a>(segments: impl Iterator<Item = &'a Arc<Segment>>) -> u64 {
    let is_missing =
        |segment: &&Arc<Segment>| !devices::is_kept(&CopyKey::of::<CorpusText>(segment, 0));
    segments.filter(is_missing).map(|segment| segment.dag.grammar().symbols.len() as u64).sum()
}
