//! Answers to batches of queries from the copy of a segment's text on its device.

use std::sync::Arc;

use crate::error::GpuError;
use tadoc::segment::Segment;

use super::{CorpusCopies, CorpusText, DeviceCorpus, DocWord, PassageQuery, Passages, WordOffsets};

impl CorpusCopies {
    /// Reads the passages of `segment` that `queries` request.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceCorpus::text`] and of [`CorpusPassages`](super::CorpusPassages).
    pub fn passages(
        &mut self,
        segment: &Arc<Segment>,
        queries: &[PassageQuery],
    ) -> Result<Passages, GpuError> {
        self.asked(segment, |text| {
            let reader = text.passages()?;
            let mut batch = reader.batch(queries)?;
            reader.run(&mut batch)?;
            batch.to_host()
        })
    }

    /// Counts the occurrences of words in documents of `segment`.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceCorpus::text`] and [`CorpusWords::count`](super::CorpusWords::count).
    pub fn document_word_counts(
        &mut self,
        segment: &Arc<Segment>,
        queries: &[DocWord],
    ) -> Result<Vec<u64>, GpuError> {
        self.asked(segment, |text| {
            let words = text.words()?;
            words.count(&mut words.batch(queries)?)?.to_host()
        })
    }

    /// Finds the byte offsets of words in documents of `segment`, at most `max_offsets`.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceCorpus::text`] and [`CorpusWords::find`](super::CorpusWords::find).
    pub fn document_word_offsets(
        &mut self,
        segment: &Arc<Segment>,
        queries: &[DocWord],
        max_offsets: u64,
    ) -> Result<WordOffsets, GpuError> {
        self.asked(segment, |text| {
            let words = text.words()?;
            words.find(&mut words.batch(queries)?, max_offsets)?.to_host()
        })
    }

    fn asked<T>(
        &mut self,
        segment: &Arc<Segment>,
        ask: impl Fn(&CorpusText) -> Result<T, GpuError>,
    ) -> Result<T, GpuError> {
        let text = self.take(segment, 0, DeviceCorpus::text)?;
        let answer = self.retried(|| ask(&text))?;
        self.put(segment, 0, text);
        Ok(answer)
    }
}
