//! What stands for answers of devices where the feature `cuda` is off: there is none.

use std::sync::Arc;

use datafusion::error::Result;

use super::placement::Task;
use crate::analytics::{
    Cooccurrences, DocSelection, InvertedIndex, Pairing, RankedInvertedIndex, SequenceCounts,
    TermVectors, Vocabulary, WordCounts,
};
use crate::corpus::Segment;
use crate::sql::scan::Run;

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
) -> Result<Option<SequenceCounts>> {
    Ok(None)
}

/// None.
pub(crate) fn cooccurrences(
    _: &Run,
    _: &Arc<Vocabulary>,
    _: Pairing,
) -> Result<Option<Cooccurrences>> {
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

/// All of them.
pub(crate) fn missing_elements(_: Task, segments: &[Arc<Segment>]) -> u64 {
    segments.iter().map(|segment| segment.dag.grammar().symbols.len() as u64).sum()
}

/// Nothing is kept.
pub(crate) fn forget<'a>(_: impl Iterator<Item = &'a Arc<Segment>>) {}
