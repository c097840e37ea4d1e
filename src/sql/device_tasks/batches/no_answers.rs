//! What stands for answers of devices to batches where the feature `cuda` is off: there is none.

use std::sync::Arc;

use datafusion::physical_plan::metrics::Count;

use crate::access::{ExtractQuery, OffsetLists, WordPlan};
use crate::corpus::{Corpus, Segment};

/// None of them.
#[derive(Debug, Default)]
pub(super) struct Devices;

/// What nobody may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) max_bytes: u64,
    pub(super) uploaded: &'a Count,
}

impl Terms<'_> {
    fn refused<T>(self) -> Result<T, String> {
        let Self { max_bytes, uploaded } = self;
        Err(format!("no device: {uploaded} of {max_bytes} bytes were sent"))
    }
}

impl Devices {
    /// None.
    pub(super) fn passages(
        &self,
        terms: Terms<'_>,
        _: &Corpus,
        _: &[ExtractQuery],
        _: &[usize],
    ) -> Result<Vec<u8>, String> {
        terms.refused()
    }

    /// None.
    pub(super) fn counts(
        &self,
        terms: Terms<'_>,
        _: &Corpus,
        _: &WordPlan<'_>,
    ) -> Result<Vec<u64>, String> {
        terms.refused()
    }

    /// None.
    pub(super) fn lists(
        &self,
        terms: Terms<'_>,
        _: &Corpus,
        _: &WordPlan<'_>,
        _: u64,
    ) -> Result<OffsetLists, String> {
        terms.refused()
    }
}

/// All of them.
pub(super) fn missing_elements<'a>(segments: impl Iterator<Item = &'a Arc<Segment>>) -> u64 {
    segments.map(|segment| segment.dag.grammar().symbols.len() as u64).sum()
}
