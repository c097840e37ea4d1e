//! A cache of the copies of segments on a device, kept between queries, and the answers of tasks and of
//! batches of queries from them.
//!
//! ```text
//! (segment, part, number) ──▶ grammar, weights, sequences of n words, …   last used last
//! ```
//!
//! A copy in use is taken out and put back later, so an evicted copy is never in use. The budget of the device is the
//! limit. If it refuses an allocation, the least recently used copy is evicted and the allocation is tried again, until
//! nothing is left to evict. So a corpus larger than the budget passes through the device segment by segment.
//!
//! Copying the grammar of the next segment while the device works on the current one was tried and removed (H200, 17
//! segments of 32 MiB, memory for half of them): 0.96 to 1.11 times as fast, and 0.95 to 1.05 if all segments fit.
//!
//! A segment is identified by its address. Its owner reports when it is no longer needed
//! ([`CorpusCopies::forget`]). Each call takes O(kept copies). Rows of answers stay on the device at
//! first, so the host can allocate exactly the room they need before they are copied.

use std::any::{Any, TypeId};
use std::collections::VecDeque;
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tadoc::read::{self, Answers, Questions};
use tadoc::segment::Segment;

use super::{
    CorpusDocuments, CorpusRanked, CorpusSequences, CorpusTerms, CorpusText, DeviceCorpus, DeviceDocumentSequences,
    DeviceDocuments, DeviceGroup, DeviceRanked, DeviceSequences, DeviceTermVectors, DocWord, PassageQuery, Passages,
    WordOffsets,
};
use crate::device::Device;
use crate::error::GpuError;

/// Values by key, least recently used first.
#[derive(Debug)]
struct LeastRecentlyUsed<K, V> {
    kept: VecDeque<(K, V)>,
}

impl<K, V> Default for LeastRecentlyUsed<K, V> {
    fn default() -> Self {
        Self { kept: VecDeque::new() }
    }
}

impl<K: PartialEq, V> LeastRecentlyUsed<K, V> {
    fn take(&mut self, key: &K) -> Option<V> {
        let at = self.kept.iter().position(|(kept, _)| kept == key)?;
        self.kept.remove(at).map(|(_, value)| value)
    }

    /// Keeps `value` as the most recently used one. Replaces the value of the same key.
    fn put(&mut self, key: K, value: V) {
        self.take(&key);
        self.kept.push_back((key, value));
    }

    fn evict(&mut self) -> Option<V> {
        self.kept.pop_front().map(|(_, value)| value)
    }

    fn retain(&mut self, is_kept: impl Fn(&K) -> bool) {
        self.kept.retain(|(key, _)| is_kept(key));
    }

    /// Returns the result of `work`. If `is_full` says that an error means lack of room, evicts a
    /// value and tries again, until none is left.
    fn retried<T, E>(&mut self, is_full: impl Fn(&E) -> bool, mut work: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        loop {
            match work() {
                Err(error) if is_full(&error) && self.evict().is_some() => {}
                answer => return answer,
            }
        }
    }
}

/// The key of a part of a segment or of a group of segments: the type of the part, and its number, such as n.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyKey {
    segments: Box<[usize]>,
    part: TypeId,
    number: u64,
}

impl CopyKey {
    /// Returns the key of part `P` of `segment` for `number`.
    pub fn new<P: Any>(segment: &Arc<Segment>, number: u64) -> Self {
        Self::for_group::<P>(slice::from_ref(segment), number)
    }

    fn for_group<P: Any>(segments: &[Arc<Segment>], number: u64) -> Self {
        let segments = segments.iter().map(|segment| Arc::as_ptr(segment).addr()).collect();
        Self { segments, part: TypeId::of::<P>(), number }
    }

    /// Returns true if this part has what part `other` has, of as many segments or more.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        (self.part, self.number) == (other.part, other.number)
            && other.segments.iter().all(|segment| self.segments.contains(segment))
    }
}

/// The copies of segments on one device, and the objects made from them.
#[derive(Debug)]
pub struct CorpusCopies {
    device: Device,
    kept: LeastRecentlyUsed<CopyKey, Box<dyn Any + Send>>,
    prepare_time: Duration,
}

impl CorpusCopies {
    /// Builds an empty cache.
    pub fn new(device: Device) -> Self {
        Self { device, kept: LeastRecentlyUsed::default(), prepare_time: Duration::ZERO }
    }

    /// Returns the total time spent on uploads and on making missing parts.
    pub(crate) fn prepare_time(&self) -> Duration {
        self.prepare_time
    }

    /// Returns the device of the copies.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Limits all device memory to `max_bytes` from now on, and evicts copies to reach it.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub(crate) fn set_max_bytes(&mut self, max_bytes: u64) -> Result<(), GpuError> {
        self.device.budget().set_max_bytes(max_bytes);
        let mut is_evicted = false;
        while self.device.used_bytes() > max_bytes && self.kept.evict().is_some() {
            is_evicted = true;
        }
        if is_evicted { self.device.synchronize() } else { Ok(()) }
    }

    /// Returns the keys of all copies.
    pub fn keys(&self) -> Vec<CopyKey> {
        self.kept.kept.iter().map(|(key, _)| key.clone()).collect()
    }

    /// Takes part `P` of `segment` for `number` out of the cache. Makes it with `make` if it is
    /// missing. The caller owns it until it is [`put`](Self::put) back.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceCorpus::upload`] and of `make`.
    pub fn take<P: Any + Send>(
        &mut self,
        segment: &Arc<Segment>,
        number: u64,
        make: impl Fn(&DeviceCorpus) -> Result<P, GpuError>,
    ) -> Result<P, GpuError> {
        let kept = self.kept.take(&CopyKey::new::<P>(segment, number));
        if let Some(part) = kept.and_then(|kept| kept.downcast::<P>().ok()) {
            return Ok(*part);
        }
        let start = Instant::now();
        let corpus = self.corpus(segment)?;
        let made = self.retried(|| make(&corpus))?;
        self.device.synchronize()?;
        self.prepare_time += start.elapsed();
        Ok(made)
    }

    /// Puts `part` into the cache: a part from [`take`](Self::take), or a new one.
    pub fn put<P: Any + Send>(&mut self, segment: &Arc<Segment>, number: u64, part: P) {
        self.kept.put(CopyKey::new::<P>(segment, number), Box::new(part));
    }

    /// Returns the result of `work`. If the device has too little memory for it, evicts copies and
    /// tries again.
    ///
    /// # Errors
    ///
    /// The errors of `work`, and [`GpuError::Driver`].
    pub(crate) fn retried<T>(&mut self, mut work: impl FnMut() -> Result<T, GpuError>) -> Result<T, GpuError> {
        let device = &self.device;
        let mut num_tries = 0;
        self.kept.retried(is_full, || {
            if num_tries > 0 {
                // The device frees memory only after the earlier work on it is done.
                device.synchronize()?;
            }
            num_tries += 1;
            work()
        })
    }

    /// Drops the copies of the segments at these addresses.
    pub fn forget(&mut self, addresses: &[usize]) {
        self.kept.retain(|key| !key.segments.iter().any(|segment| addresses.contains(segment)));
    }

    /// Drops all copies.
    pub fn clear(&mut self) {
        self.kept = LeastRecentlyUsed::default();
    }

    /// Takes part `P` of the group of `segments` like [`take`](Self::take).
    fn take_from_group<P: Any + Send>(
        &mut self,
        key: &CopyKey,
        segments: &[Arc<Segment>],
        make: impl Fn(&DeviceGroup) -> Result<P, GpuError>,
    ) -> Result<P, GpuError> {
        if let Some(part) = self.kept.take(key).and_then(|kept| kept.downcast::<P>().ok()) {
            return Ok(*part);
        }
        let start = Instant::now();
        let group = self.group(segments)?;
        let made = self.retried(|| make(&group))?;
        self.device.synchronize()?;
        self.prepare_time += start.elapsed();
        Ok(made)
    }

    fn group(&mut self, segments: &[Arc<Segment>]) -> Result<DeviceGroup, GpuError> {
        let key = CopyKey::for_group::<DeviceGroup>(segments, 0);
        self.shared(key, |device| DeviceGroup::upload(device, segments))
    }

    fn corpus(&mut self, segment: &Arc<Segment>) -> Result<DeviceCorpus, GpuError> {
        let key = CopyKey::new::<DeviceCorpus>(segment, 0);
        self.shared(key, |device| DeviceCorpus::upload(device, segment))
    }

    /// Returns the copy with this `key`, which stays, or uploads it. A clone of it shares its memory.
    fn shared<C: Any + Clone + Send>(
        &mut self,
        key: CopyKey,
        upload: impl Fn(&Device) -> Result<C, GpuError>,
    ) -> Result<C, GpuError> {
        let kept = self.kept.take(&key).and_then(|kept| kept.downcast::<C>().ok());
        let copy = match kept {
            Some(copy) => *copy,
            None => {
                let device = self.device.clone();
                self.retried(|| upload(&device))?
            }
        };
        self.kept.put(key, Box::new(copy.clone()));
        Ok(copy)
    }
}

/// Returns true if the error means that there is no room.
fn is_full(error: &GpuError) -> bool {
    matches!(error, GpuError::OutOfMemory { .. })
}

/// Flag in the key numbers of pairs. It keeps them apart from those of sequences.
const PAIRS: u64 = 1 << 32;
/// Flag in the key numbers of sequences by document. It keeps them apart from those by rank.
const BY_DOCUMENT: u64 = 1 << 32;

impl CopyKey {
    /// Returns the key of the object that counts sequences of `n` words.
    pub fn for_sequences(segment: &Arc<Segment>, n: usize) -> Self {
        Self::new::<CorpusSequences>(segment, n as u64)
    }

    /// Returns the key of the group with the grammar of `segment` alone.
    pub(crate) fn for_terms(segment: &Arc<Segment>) -> Self {
        Self::new::<DeviceGroup>(segment, 0)
    }

    /// Returns the key of the object that counts pairs in windows of `window` words.
    pub fn for_pairs(segment: &Arc<Segment>, window: usize) -> Self {
        Self::new::<CorpusSequences>(segment, PAIRS | window as u64)
    }

    /// Returns the key of the text that questions are asked of.
    pub(crate) fn for_text(segment: &Arc<Segment>) -> Self {
        Self::new::<CorpusText>(segment, 0)
    }

    /// Returns the key of the object that ranks documents of sequences of `n` words.
    pub(crate) fn for_ranked(segment: &Arc<Segment>, n: usize) -> Self {
        Self::new::<CorpusRanked>(segment, n as u64)
    }

    /// Returns the key of the object that finds the sequences of `n` words of documents, for `segments` as one group.
    pub(crate) fn for_document_sequences(segments: &[Arc<Segment>], n: usize) -> Self {
        Self::for_group::<CorpusRanked>(segments, BY_DOCUMENT | n as u64)
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

    /// Finds the documents of each word of `segments`, which are one group.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceGroup::documents`] and [`CorpusDocuments::run`].
    pub fn word_documents(&mut self, segments: &[Arc<Segment>]) -> Result<DeviceDocuments, GpuError> {
        let key = CopyKey::for_group::<CorpusDocuments>(segments, 0);
        let mut documents = self.take_from_group(&key, segments, DeviceGroup::documents)?;
        let found = self.retried(|| documents.run())?;
        self.kept.put(key, Box::new(documents));
        Ok(found)
    }

    /// Finds the words of each document of `segments`, which are one group, with counts.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceGroup::terms`], [`CorpusTerms::run`] and
    /// [`DeviceTerms::by_document`](super::DeviceTerms::by_document).
    pub fn term_vectors(&mut self, segments: &[Arc<Segment>]) -> Result<DeviceTermVectors, GpuError> {
        let key = CopyKey::for_group::<CorpusTerms>(segments, 0);
        let mut terms = self.take_from_group(&key, segments, DeviceGroup::terms)?;
        let found = self.retried(|| terms.run()?.by_document())?;
        self.kept.put(key, Box::new(terms));
        Ok(found)
    }

    /// Finds the documents of each sequence of `n` words of `segment`, by rank.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceGroup::ranked`] and [`CorpusRanked::run`].
    pub fn ranked_documents(&mut self, segment: &Arc<Segment>, n: usize) -> Result<DeviceRanked, GpuError> {
        let key = CopyKey::for_ranked(segment, n);
        let mut ranked = self.take_from_group(&key, slice::from_ref(segment), |group| group.ranked(n))?;
        let found = self.retried(|| ranked.run())?;
        self.kept.put(key, Box::new(ranked));
        Ok(found)
    }

    /// Finds the sequences of `n` words of each document of `segments`, which are one group, with counts.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceGroup::ranked`] and [`CorpusRanked::by_document`].
    pub fn document_sequences(
        &mut self,
        segments: &[Arc<Segment>],
        n: usize,
    ) -> Result<DeviceDocumentSequences, GpuError> {
        let key = CopyKey::for_document_sequences(segments, n);
        let mut ranked = self.take_from_group(&key, segments, |group| group.ranked(n))?;
        let found = self.retried(|| ranked.by_document())?;
        self.kept.put(key, Box::new(ranked));
        Ok(found)
    }
}

impl CorpusCopies {
    /// Answers `questions` to the documents of `segment`.
    ///
    /// # Errors
    ///
    /// The errors of [`passages`](Self::passages), [`document_word_counts`](Self::document_word_counts) and
    /// [`document_word_offsets`](Self::document_word_offsets).
    pub fn answers(&mut self, segment: &Arc<Segment>, questions: &Questions) -> Result<Answers, GpuError> {
        let word = |asked: &read::DocWord| DocWord { doc: asked.doc, word: Some(asked.word.into()) };
        let words = |words: &[read::DocWord]| words.iter().map(word).collect::<Vec<_>>();
        match questions {
            Questions::Passages(passages) => {
                let query = |asked: &read::DocPassage| PassageQuery {
                    doc: asked.doc,
                    offset: asked.byte_offset,
                    len_bytes: asked.byte_len,
                };
                let queries: Vec<PassageQuery> = passages.iter().map(query).collect();
                let (starts, bytes) = self.passages(segment, &queries)?.into_parts();
                Ok(Answers::Passages { bytes, ends: ends(&starts) })
            }
            Questions::Counts(asked) => Ok(Answers::Counts(self.document_word_counts(segment, &words(asked))?)),
            Questions::Places { words: asked, max_places } => {
                let lists = self.document_word_offsets(segment, &words(asked), *max_places)?;
                let (starts, offsets) = lists.into_parts();
                Ok(Answers::Places { offsets, ends: ends(&starts) })
            }
        }
    }

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

/// Returns the end of each list, of the start of each and the end of the last.
fn ends(starts: &[u64]) -> Vec<usize> {
    starts.iter().skip(1).map(|&end| end as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(values: &[u32]) -> LeastRecentlyUsed<u32, u32> {
        let mut kept = LeastRecentlyUsed::default();
        values.iter().for_each(|&value| kept.put(value, value * 10));
        kept
    }

    fn has(all: &LeastRecentlyUsed<u32, u32>, wanted: u32) -> bool {
        all.kept.iter().any(|(key, _)| *key == wanted)
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut all = kept(&[1, 2, 3]);
        let one = all.take(&1).unwrap();
        assert!(!has(&all, 1));
        all.put(1, one);
        all.put(2, 21);
        let order: Vec<_> = std::iter::from_fn(|| all.evict()).collect();
        assert_eq!(order, [30, 10, 21]);
    }

    #[test]
    fn what_is_taken_out_is_not_evicted() {
        let mut all = kept(&[1, 2]);
        let one = all.take(&1);
        assert_eq!((all.evict(), all.evict()), (Some(20), None));
        assert_eq!(one, Some(10));
        assert_eq!(all.take(&1), None);
    }

    #[test]
    fn work_is_tried_again_while_there_is_something_to_evict() {
        // A memory of 100 in which each kept value takes 30.
        let needing = |all: &mut LeastRecentlyUsed<u32, u32>, needed: usize| {
            let before = all.kept.len();
            let mut num_tries = 0;
            all.retried(
                |error| *error == "full",
                || {
                    num_tries += 1;
                    let used = 30 * (before + 1 - num_tries);
                    if used + needed > 100 { Err("full") } else { Ok(num_tries) }
                },
            )
        };
        assert_eq!(needing(&mut kept(&[1, 2, 3]), 10), Ok(1));
        let mut all = kept(&[1, 2, 3]);
        assert_eq!(needing(&mut all, 50), Ok(3));
        assert!(has(&all, 3) && !has(&all, 1) && !has(&all, 2));
        assert_eq!(needing(&mut all, 101), Err("full"));
        assert!(all.kept.is_empty());
    }

    #[test]
    fn other_errors_evict_nothing() {
        let mut all = kept(&[1, 2]);
        let failed: Result<(), _> = all.retried(|error| *error == "full", || Err("lost"));
        assert_eq!((failed, all.kept.len()), (Err("lost"), 2));
        all.retain(|&key| key != 1);
        assert!(!has(&all, 1) && has(&all, 2));
    }
}
