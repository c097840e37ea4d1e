//! What stands for answers of devices where the feature `cuda` is off: there is none.

use std::sync::Arc;

use datafusion::error::Result;

use crate::analytics::{SequenceCounts, Vocabulary, WordCounts};
use crate::corpus::Segment;
use crate::sql::scan::Run;

/// None.
pub(crate) fn word_counts(_: &Run, _: &Arc<Vocabulary>) -> Result<Option<WordCounts>> {
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

/// Nothing is kept.
pub(crate) fn forget<'a>(_: impl Iterator<Item = &'a Arc<Segment>>) {}
