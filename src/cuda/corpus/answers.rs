//! What a segment answers with the parts of it that are kept on its device: one function for each task.
//!
//! Rows stay on the device, so that room for them can be found on the host, as many as there are, before
//! they are copied there.

use std::sync::Arc;

use crate::error::GpuError;
use tadoc::segment::Segment;

use super::{
    CopyKey, CorpusCopies, CorpusRanked, CorpusSequences, CorpusTerms, CorpusWeights, DeviceCorpus,
    DeviceRanked, DeviceSequences, DeviceTermVectors, DeviceTerms,
};

/// Windows of pairs are kept beside those of sequences, under numbers that no sequence has.
const PAIRS: u64 = 1 << 32;

impl CopyKey {
    /// What counting words needs.
    pub fn of_weights(segment: &Arc<Segment>) -> Self {
        Self::of::<CorpusWeights>(segment, 0)
    }

    /// What counting sequences of `n` words needs.
    pub fn of_sequences(segment: &Arc<Segment>, n: usize) -> Self {
        Self::of::<CorpusSequences>(segment, n as u64)
    }

    /// What finding words of documents and documents of words needs.
    pub fn of_terms(segment: &Arc<Segment>) -> Self {
        Self::of::<CorpusTerms>(segment, 0)
    }

    /// What counting pairs in windows of so many words needs.
    pub fn of_pairs(segment: &Arc<Segment>, window: usize) -> Self {
        Self::of::<CorpusSequences>(segment, PAIRS | window as u64)
    }

    /// What ranking documents of sequences of `n` words needs.
    pub fn of_ranked(segment: &Arc<Segment>, n: usize) -> Self {
        Self::of::<CorpusRanked>(segment, n as u64)
    }
}

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
    /// Those of [`DeviceCorpus::sequences`] and [`CorpusSequences::count`].
    pub fn sequence_counts(
        &mut self,
        segment: &Arc<Segment>,
        n: usize,
    ) -> Result<DeviceSequences, GpuError> {
        self.windows(segment, n as u64, |corpus| corpus.sequences(n))
    }

    /// How often each pair of words less than `window` apart occurs in `segment`.
    ///
    /// # Errors
    ///
    /// Those of [`DeviceCorpus::cooccurrences`] and [`CorpusSequences::count`].
    pub fn pair_counts(
        &mut self,
        segment: &Arc<Segment>,
        window: usize,
    ) -> Result<DeviceSequences, GpuError> {
        self.windows(segment, PAIRS | window as u64, |corpus| corpus.cooccurrences(window))
    }

    fn windows(
        &mut self,
        segment: &Arc<Segment>,
        number: u64,
        make: impl Fn(&DeviceCorpus) -> Result<CorpusSequences, GpuError>,
    ) -> Result<DeviceSequences, GpuError> {
        let weights = self.take(segment, 0, DeviceCorpus::weights)?;
        let mut sequences = self.take(segment, number, make)?;
        let counted = self.retried(|| sequences.count(&weights))?;
        self.put(segment, 0, weights);
        self.put(segment, number, sequences);
        Ok(counted)
    }

    /// The documents of each word of `segment`.
    ///
    /// # Errors
    ///
    /// Those of [`DeviceCorpus::terms`] and [`CorpusTerms::run`].
    pub fn word_documents(&mut self, segment: &Arc<Segment>) -> Result<DeviceTerms, GpuError> {
        let mut terms = self.take(segment, 0, DeviceCorpus::terms)?;
        let found = self.retried(|| terms.run())?;
        self.put(segment, 0, terms);
        Ok(found)
    }

    /// The words of each document of `segment`, with counts.
    ///
    /// # Errors
    ///
    /// Those of [`DeviceCorpus::terms`], [`CorpusTerms::run`] and [`DeviceTerms::by_document`].
    pub fn term_vectors(&mut self, segment: &Arc<Segment>) -> Result<DeviceTermVectors, GpuError> {
        let mut terms = self.take(segment, 0, DeviceCorpus::terms)?;
        let found = self.retried(|| terms.run()?.by_document())?;
        self.put(segment, 0, terms);
        Ok(found)
    }

    /// The documents of each sequence of `n` words of `segment`, by rank.
    ///
    /// # Errors
    ///
    /// Those of [`DeviceCorpus::ranked`] and [`CorpusRanked::run`].
    pub fn ranked_documents(
        &mut self,
        segment: &Arc<Segment>,
        n: usize,
    ) -> Result<DeviceRanked, GpuError> {
        let mut ranked = self.take(segment, n as u64, |corpus| corpus.ranked(n))?;
        let found = self.retried(|| ranked.run())?;
        self.put(segment, n as u64, ranked);
        Ok(found)
    }
}
