//! What a segment answers with the parts of it that are kept on its device: one function for each task.

use std::sync::Arc;

use crate::corpus::Segment;
use crate::gpu::error::GpuError;

use super::{CorpusCopies, DeviceCorpus, SequenceRows};

impl CorpusCopies {
    /// How often each word of `segment` occurs, by word id.
    ///
    /// # Errors
    ///
    /// Those of [`DeviceCorpus::weights`].
    pub fn word_counts(&mut self, segment: &Arc<Segment>) -> Result<Vec<u64>, GpuError> {
        let weights = self.take(segment, 0, DeviceCorpus::weights)?;
        let counts = weights.word_counts_to_host()?;
        self.put(segment, 0, weights);
        Ok(counts)
    }

    /// How often each sequence of `n` words of `segment` occurs.
    ///
    /// # Errors
    ///
    /// Those of [`DeviceCorpus::sequences`] and [`CorpusSequences::count`](super::CorpusSequences::count).
    pub fn sequence_counts(
        &mut self,
        segment: &Arc<Segment>,
        n: usize,
    ) -> Result<SequenceRows, GpuError> {
        let weights = self.take(segment, 0, DeviceCorpus::weights)?;
        let mut sequences = self.take(segment, n as u64, |corpus| corpus.sequences(n))?;
        let rows = self.retried(|| sequences.count(&weights)?.to_host())?;
        self.put(segment, 0, weights);
        self.put(segment, n as u64, sequences);
        Ok(rows)
    }
}
