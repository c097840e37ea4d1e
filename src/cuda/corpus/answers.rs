//! Answers of tasks from the copies of a segment on its device, with one function per task.
//!
//! Rows stay on the device at first. So the host can allocate exactly the room they need before
//! they are copied.
//!
//! # Batches
//!
//! Answers to batches of queries from the copy of a segment's text on its device.

use std::sync::Arc;

use tadoc::segment::Segment;

use crate::error::GpuError;

use super::{
    CopyKey, CorpusCopies, CorpusRanked, CorpusSequences, CorpusTerms, CorpusText, DeviceCorpus, DeviceRanked,
    DeviceSequences, DeviceTermVectors, DeviceTerms, DocWord, PassageQuery, Passages, WordOffsets,
};

/// Flag in the key numbers of pairs. It keeps them apart from those of sequences.
const PAIRS: u64 = 1 << 32;

impl CopyKey {
    /// Returns the key of the object that counts sequences of `n` words.
    pub fn for_sequences(segment: &Arc<Segment>, n: usize) -> Self {
        Self::new::<CorpusSequences>(segment, n as u64)
    }

    /// Returns the key of the object that finds words of documents and documents of words.
    pub(crate) fn for_terms(segment: &Arc<Segment>) -> Self {
        Self::new::<CorpusTerms>(segment, 0)
    }

    /// Returns the key of the object that counts pairs in windows of `window` words.
    pub fn for_pairs(segment: &Arc<Segment>, window: usize) -> Self {
        Self::new::<CorpusSequences>(segment, PAIRS | window as u64)
    }

    /// Returns the key of the object that ranks documents of sequences of `n` words.
    pub(crate) fn for_ranked(segment: &Arc<Segment>, n: usize) -> Self {
        Self::new::<CorpusRanked>(segment, n as u64)
    }
}

impl CorpusCopies {
    /// Counts the occurrences of each word of `segment`, by word id.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceCorpus::weights`].
    pub fn word_counts(&mut self, segment: &Arc<Segment>) -> Result<Vec<u64>, GpuError> {
        let weights = self.take(segment, 0, DeviceCorpus::weights)?;
        let counts = weights.word_counts_to_host()?;
        self.put(segment, 0, weights);
        Ok(counts)
    }

    /// Counts the occurrences of each sequence of `n` words of `segment`.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceCorpus::sequences`] and [`CorpusSequences::count`].
    pub fn sequence_counts(&mut self, segment: &Arc<Segment>, n: usize) -> Result<DeviceSequences, GpuError> {
        self.windows(segment, n as u64, |corpus| corpus.sequences(n))
    }

    /// Counts the occurrences in `segment` of each pair of words less than `window` apart.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceCorpus::cooccurrences`] and [`CorpusSequences::count`].
    pub fn pair_counts(&mut self, segment: &Arc<Segment>, window: usize) -> Result<DeviceSequences, GpuError> {
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

    /// Finds the documents of each word of `segment`.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceCorpus::terms`] and [`CorpusTerms::run`].
    pub fn word_documents(&mut self, segment: &Arc<Segment>) -> Result<DeviceTerms, GpuError> {
        let mut terms = self.take(segment, 0, DeviceCorpus::terms)?;
        let found = self.retried(|| terms.run())?;
        self.put(segment, 0, terms);
        Ok(found)
    }

    /// Finds the words of each document of `segment`, with counts.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceCorpus::terms`], [`CorpusTerms::run`] and
    /// [`DeviceTerms::by_document`].
    pub fn term_vectors(&mut self, segment: &Arc<Segment>) -> Result<DeviceTermVectors, GpuError> {
        let mut terms = self.take(segment, 0, DeviceCorpus::terms)?;
        let found = self.retried(|| terms.run()?.by_document())?;
        self.put(segment, 0, terms);
        Ok(found)
    }

    /// Finds the documents of each sequence of `n` words of `segment`, by rank.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceCorpus::ranked`] and [`CorpusRanked::run`].
    pub fn ranked_documents(&mut self, segment: &Arc<Segment>, n: usize) -> Result<DeviceRanked, GpuError> {
        let mut ranked = self.take(segment, n as u64, |corpus| corpus.ranked(n))?;
        let found = self.retried(|| ranked.run())?;
        self.put(segment, n as u64, ranked);
        Ok(found)
    }
}

impl CorpusCopies {
    /// Reads the passages of `segment` that `queries` request.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceCorpus::text`] and of [`CorpusPassages`](super::CorpusPassages).
    pub fn passages(&mut self, segment: &Arc<Segment>, queries: &[PassageQuery]) -> Result<Passages, GpuError> {
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
    pub fn document_word_counts(&mut self, segment: &Arc<Segment>, queries: &[DocWord]) -> Result<Vec<u64>, GpuError> {
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
