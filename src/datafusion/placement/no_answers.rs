//! What stands for answers of devices where the feature `cuda` is off: there is none.

use std::sync::Arc;

use datafusion::error::Result;

use crate::placement::task::Task;
use crate::scan::Run;
use tadoc::analytics::{
    DocSelection, InvertedIndex, Pairing, RankedInvertedIndex, TermVectors, Vocabulary, WordCounts,
};
use tadoc::segment::Segment;

/// There are none.
#[derive(Debug)]
pub(crate) enum SequenceParts {}

/// There is none.
#[derive(Debug)]
pub(crate) enum SequencePart {}

impl SequenceParts {
    pub(crate) fn num_segment_rows(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn num_parts(&self) -> usize {
        match *self {}
    }

    pub(crate) fn part(&self, _: usize) -> tadoc::Result<SequencePart> {
        match *self {}
    }
}

impl SequencePart {
    pub(crate) fn len(&self) -> usize {
        match *self {}
    }

    pub(crate) fn counts(&self) -> &[u64] {
        match *self {}
    }

    pub(crate) fn words(&self, _: usize) -> std::iter::Empty<u32> {
        match *self {}
    }
}

/// There are none.
#[derive(Debug)]
pub(crate) enum RankedParts {}

/// There is none.
#[derive(Debug)]
pub(crate) enum RankedPart {}

impl RankedParts {
    pub(crate) fn num_parts(&self) -> usize {
        match *self {}
    }

    /// By reference: to the compiler nothing is done with a value that cannot be.
    pub(crate) fn part(&self, _: usize) -> &RankedPart {
        match *self {}
    }
}

impl RankedPart {
    pub(crate) fn len(&self) -> usize {
        match *self {}
    }

    pub(crate) fn words(&self, _: usize) -> std::iter::Empty<u32> {
        match *self {}
    }

    pub(crate) fn doc_ids(&self) -> &[u64] {
        match *self {}
    }

    pub(crate) fn counts(&self) -> &[u64] {
        match *self {}
    }

    pub(crate) fn ranks(&self) -> &[u64] {
        match *self {}
    }
}

/// None.
pub(crate) fn word_counts(_: &Run, _: &Arc<Vocabulary>) -> Result<Option<WordCounts>> {
    Ok(None)
}

/// None.
pub(crate) fn term_vectors(_: &Run, _: &Arc<Vocabulary>) -> Result<Option<TermVectors>> {
    Ok(None)
}

/// None.
pub(crate) fn inverted_index(_: &Run, _: &Arc<Vocabulary>) -> Result<Option<InvertedIndex>> {
    Ok(None)
}

/// None.
pub(crate) fn sequence_counts(
    _: &Run,
    _: &Arc<Vocabulary>,
    _: usize,
) -> Result<Option<SequenceParts>> {
    Ok(None)
}

/// None.
pub(crate) fn cooccurrences(
    _: &Run,
    _: &Arc<Vocabulary>,
    _: Pairing,
) -> Result<Option<SequenceParts>> {
    Ok(None)
}

/// None.
pub(crate) fn ranked_inverted_index(
    _: &Run,
    _: &Arc<Vocabulary>,
    _: &DocSelection,
    _: usize,
) -> Result<Option<RankedInvertedIndex>> {
    Ok(None)
}

/// None.
pub(crate) fn ranked_parts(
    _: &Run,
    _: &Arc<Vocabulary>,
    _: &DocSelection,
    _: usize,
) -> Result<Option<RankedParts>> {
    Ok(None)
}

/// All of them.
pub(crate) fn missing_elements(_: Task, segments: &[Arc<Segment>]) -> u64 {
    segments.iter().map(|segment| segment.dag.grammar().symbols.len() as u64).sum()
}

/// Nothing is kept.
pub(crate) fn forget<'a>(_: impl Iterator<Item = &'a Arc<Segment>>) {}
