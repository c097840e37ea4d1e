//! Co-occurrence: the pairs of words that occur near one another, and their counts.
//!
//! Two positions i < j < i + window of one document, counted in words, are one occurrence of the
//! pair of their words. The smaller word comes first. Separators are ignored, and a word may pair
//! with itself. So `window` = 2 pairs neighbours, and k equal words in a row have k - 1 such pairs.
//!
//! Pairs are met like windows of `window` words: in the rule where they cross a border between two
//! elements, with the weight of the rule, or at every word of the text. O(windows * window).

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::pairs::{FirstWords, Meeting, PairSums, Pairs};
use super::sequences::count::{Joining, check_parts, cut_document};
use super::sequences::entries::runs_from;
use super::sequences::for_each_in_order;
use super::sequences::key::{Key, Keyed, Packing};
use super::sequences::limit::{Limit, chosen};
use super::sequences::passes::{RowMaker, for_each_pass, keys_from};
use super::sequences::rows::{Counted, Sequences};
use super::sequences::walk::Walk;
use super::sequences::windows::NumberedWeights;
use super::{SegmentSequences, Share, TaskLimits, Traversal, TraversalTask, Vocabulary};
use crate::error::{Error, Result};
use crate::segment::Corpus;

/// Number of pairs met after which a part ends.
const PART_PAIRS: usize = 1 << 16;

/// Counts the pairs of words at a distance below `window`. Rows are the pairs that occur
/// `min_count` times or more, ascending by the first word, then the second.
///
/// # Errors
/// [`Error::InvalidArgument`] for a `window` below 2, [`Error::Capacity`] if one pair alone is met
/// more often than the memory of `limits` holds or a count needs more than 64 bits,
/// [`Error::Cancelled`], and the errors of [`Vocabulary::new`].
pub fn cooccurrence<'a>(
    corpus: &Corpus,
    window: usize,
    min_count: u64,
    limits: impl Into<TaskLimits<'a>>,
) -> Result<Cooccurrences> {
    let vocabulary = Arc::new(Vocabulary::new(corpus)?);
    Cooccurrences::with_vocabulary(vocabulary, window, min_count, Traversal::Auto, limits)
}

/// Definition of a pair and of the pairs that become rows.
#[derive(Debug, Clone, Copy)]
pub struct Pairing {
    /// Number of words of a window. Each two words of a window are a pair.
    pub window: usize,
    /// Minimum count of a row.
    pub min_count: u64,
    /// Share of the rows that is counted.
    pub share: Share,
}

/// Pairs of words and their counts as rows.
#[derive(Debug, Clone)]
pub struct Cooccurrences {
    pairs: Sequences,
    counts: Vec<u64>,
}

impl Cooccurrences {
    /// Counts the pairs of the words of `vocabulary` by `traversal`; bottom-up is treated as
    /// top-down. The memory of `limits` is that for counting; the rows need more memory beside it.
    ///
    /// # Errors
    /// The errors of [`cooccurrence`].
    pub fn with_vocabulary<'a>(
        vocabulary: Arc<Vocabulary>,
        window: usize,
        min_count: u64,
        traversal: Traversal,
        limits: impl Into<TaskLimits<'a>>,
    ) -> Result<Self> {
        let mut parts = Vec::new();
        let pairing = Pairing { window, min_count, share: Share::default() };
        let words = vocabulary.clone();
        let rows = |part: Self| (part.pairs, part.counts);
        Self::in_parts(words, pairing, traversal, limits, rows, |part, _| {
            parts.push(part);
            Ok(true)
        })?;
        let packing = Packing::new(2, vocabulary.len());
        let (pairs, counts) = Sequences::joined(vocabulary, packing, &parts);
        Ok(Self { pairs, counts })
    }

    /// Counts the pairs and passes the rows on in parts, in order. `make` is called in parallel.
    /// `take` is called with each result of `make` and the bytes held for counting, until it
    /// returns false. Memory holds only a few parts at a time, however many rows there are.
    ///
    /// # Errors
    /// The errors of [`cooccurrence`] and of `take`.
    pub fn in_parts<'a, T: Send>(
        vocabulary: Arc<Vocabulary>,
        Pairing { window, min_count, share }: Pairing,
        traversal: Traversal,
        limits: impl Into<TaskLimits<'a>>,
        make: impl Fn(Self) -> T + Send + Sync,
        mut take: impl FnMut(T, usize) -> Result<bool>,
    ) -> Result<()> {
        if window < 2 {
            let got = window.to_string();
            let allowed = "2 words or more".to_owned();
            return Err(Error::InvalidArgument { name: "window", got, allowed });
        }
        let limits: TaskLimits<'_> = limits.into();
        let canceller = limits.canceller();
        canceller.check()?;
        let packing = Packing::new(2, vocabulary.len());
        let smaller = share.for_pairs(&vocabulary);
        if smaller.is_empty() {
            return Ok(());
        }
        let smaller = (!share.is_all()).then_some(smaller);
        let counting = Counting { reach: window - 1, smaller, limits };
        let scan_limit = Limit::for_scan(limits, packing);
        let task = TraversalTask::Cooccurrence;
        let way = chosen(traversal, task, &vocabulary, window, &scan_limit);
        let reach = window - 1;
        let max_bytes = limits.max_memory_bytes / 2;
        let walk = Walk::new(&vocabulary, reach, way, max_bytes, canceller)?;
        let weights = walk.weights();
        let (words, weights) = (&vocabulary, &weights);
        let maker = RowMaker { vocabulary: words, packing, weights, min_count, canceller };
        let make = |pairs, counts| make(Self { pairs, counts });
        match packing.all_bits() + (&weights).bits() {
            0..=64 => counted::<u64, T>(&maker, walk, counting, make, &mut take),
            _ => counted::<u128, T>(&maker, walk, counting, make, &mut take),
        }
    }

    /// Returns the reason why [`from_segments`](Self::from_segments) cannot join the pairs of
    /// segments, or `None` if it can.
    pub fn segments_refused(vocabulary: &Vocabulary) -> Option<String> {
        cut_document(vocabulary)
    }

    /// Joins the pairs of all segments to the pairs of the words of `vocabulary`. `parts` has one
    /// part for each segment.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the pairs [cannot be joined](Self::segments_refused) or there
    /// is not one part for each segment, [`Error::Capacity`] if a count needs more than 64 bits,
    /// and [`Error::Cancelled`].
    pub fn from_segments<'a>(
        vocabulary: Arc<Vocabulary>,
        min_count: u64,
        parts: Vec<SegmentSequences>,
        limits: impl Into<TaskLimits<'a>>,
    ) -> Result<Self> {
        check_parts(&vocabulary, parts.len(), Self::segments_refused(&vocabulary))?;
        let packing = Packing::new(2, vocabulary.len());
        let canceller = limits.into().canceller();
        let joining = Joining { packing, min_count, are_pairs: true, canceller };
        let (pairs, counts) = joining.rows(vocabulary, parts)?;
        Ok(Self { pairs, counts })
    }

    /// Returns the pairs of the rows, as sequences of 2 words.
    pub fn pairs(&self) -> &Sequences {
        &self.pairs
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns true if there is no pair.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the number of occurrences of the pair of each row.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the memory of the rows in bytes, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        self.pairs.memory_bytes() + size_of_val(self.counts.as_slice())
    }
}

/// Pairs that are counted.
struct Counting<'a> {
    /// Maximum distance between the words of a pair.
    reach: usize,
    /// Smaller words of the pairs, if not all are counted.
    smaller: Option<Range<usize>>,
    limits: TaskLimits<'a>,
}

/// Meets the pairs and adds them up.
fn counted<K: Key + Keyed<Key = K>, T: Send>(
    maker: &RowMaker<'_>,
    walk: Walk,
    Counting { reach, smaller, limits }: Counting<'_>,
    make: impl Fn(Sequences, Vec<u64>) -> T + Send + Sync,
    take: &mut impl FnMut(T, usize) -> Result<bool>,
) -> Result<()> {
    let RowMaker { packing, weights, canceller, .. } = *maker;
    let limit = &Limit::for_keys::<K>(limits);
    let firsts = &FirstWords::new(maker.vocabulary, reach);
    let meeting = Meeting { packing, reach, weights, firsts, max_met: limit.max_met(), canceller };
    let new = |keep| Pairs::<K>::new(meeting, keep);
    let bits = packing.all_bits();
    let keys = (bits, smaller.and_then(|words| keys_from(words, packing.word_bits(), bits)));
    for_each_pass(walk, maker.vocabulary, limit, keys, new, |tasks, _, held_bytes| {
        let tasks: Vec<Vec<Vec<K>>> = tasks.into_iter().map(|pairs| pairs.buckets).collect();
        let keys = |bucket: usize| tasks.iter().map(move |buckets| buckets[bucket].as_slice());
        let lens = (0..firsts.num_buckets()).map(|bucket| keys(bucket).map(<[K]>::len).sum());
        let runs = runs_from(lens, PART_PAIRS);
        let room = tasks.iter().flatten().map(Vec::capacity).sum::<usize>();
        let held_bytes = held_bytes + size_of::<K>() * room;
        // Sums that no run uses now; a thread takes one for each run.
        let spare: Mutex<Vec<PairSums<K>>> = Mutex::default();
        let compute = |run: usize| {
            let kept = spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut sums = kept.unwrap_or_else(|| PairSums::new(maker.vocabulary.len()));
            let mut counted = Counted::default();
            for bucket in runs[run].clone() {
                canceller.check()?;
                sums.add(keys(bucket), firsts.words(bucket), maker, &mut counted)?;
            }
            spare.lock().unwrap_or_else(PoisonError::into_inner).push(sums);
            let (pairs, counts) = counted.into_rows(maker.vocabulary.clone(), packing);
            Ok(make(pairs, counts))
        };
        for_each_in_order(runs.len(), compute, |made: Result<T>| take(made?, held_bytes))
    })
}
