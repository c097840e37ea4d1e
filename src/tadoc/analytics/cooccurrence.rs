//! Co-occurrence: the pairs of words that occur near one another, and their counts.
//!
//! Two positions i < j < i + window of one document, counted in words, are one occurrence of the
//! pair of their words. The smaller word comes first. Separators are ignored, and a word may pair
//! with itself. So `window` = 2 pairs neighbours, and k equal words in a row have k - 1 such pairs.
//! Pairs are met like windows of `window` words: in the rule where they cross a border between two
//! elements, with the weight of the rule, or at every word of the text. O(windows * window).
//!
//! # Buckets
//!
//! ```text
//! words     | a an and | be but | ... | the | them then |     blocks of equal width, 4096 at most
//! buckets   | 0               | ... | 17  | 18               as many words of the grammar in each
//! ```
//!
//! The walk writes pairs to hundreds of buckets in turn, by their first word; the ends of buckets stay in
//! the cache, and so do the pairs of one while they are added up. The number of pairs that a word begins
//! is estimated from the number of times that the word occurs in the grammar. O(G).
//!
//! # Sums
//!
//! The pairs of a bucket are counted without sorting them:
//!
//! ```text
//! bucket    be see: 1 | a see: 2 | be an: 1 | be see: 3        as met
//! by first  a: see 2  | be: see 1, an 1, see 3                 counted and placed
//! sums      see 4, an 1                                        one for each second word
//! rows      be an: 1  | be see: 4                              in order: bits, or sorted
//! ```
//!
//! O(pairs), and O(distinct pairs) for their order. Sorting by digits takes longer where pairs
//! repeat, as in logs. If there are so many words that their sums do not fit the cache, sorting by
//! digits is faster and is used. Slower: pairs in one array, split into ranges and sorted by digits as
//! windows are (fresh memory, and one more split), and all pairs of an element written without a branch
//! as short windows are ([`key`](crate::analytics::sequences::key)) (ten writes for the four that are pairs).

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Canceller, Error, Result};
use crate::segment::Corpus;

use super::lane_counts::AscendingSet;
use super::sequences::count::{Joining, check_parts, cut_document};
use super::sequences::edges::{Limit, chosen};
use super::sequences::entries::{Sorting, runs_from};
use super::sequences::key::{Keep, Key, Keyed, Packing};
use super::sequences::walk::{RowMaker, Walk, for_each_pass};
use super::sequences::windows::{NumberedWeights, Weights};
use super::sequences::{Counted, Sequences, Sink, for_each_in_order, too_many_occurrences};
use super::vocabulary::WordRows;
use super::{SegmentSequences, TaskLimits, Traversal, TraversalTask, Vocabulary};

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
        let pairing = Pairing { window, min_count };
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
        Pairing { window, min_count }: Pairing,
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
        let scan_limit = Limit::for_scan(limits, packing);
        let task = TraversalTask::Cooccurrence;
        let way = chosen(traversal, task, &vocabulary, window, &scan_limit);
        let reach = window - 1;
        let max_bytes = limits.max_memory_bytes / 2;
        let walk = Walk::new(&vocabulary, reach, way, max_bytes, canceller)?;
        let weights = walk.weights();
        let words = &vocabulary;
        let weights = &weights;
        let maker = RowMaker { vocabulary: words, packing, weights, min_count, canceller };
        let make = |pairs, counts| make(Self { pairs, counts });
        match packing.all_bits() + (&weights).bits() {
            0..=64 => counted::<u64, T>(&maker, walk, (reach, limits), make, &mut take),
            _ => counted::<u128, T>(&maker, walk, (reach, limits), make, &mut take),
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

/// Meets the pairs of words at most `reach` apart and adds them up.
fn counted<K: Key + Keyed<Key = K>, T: Send>(
    maker: &RowMaker<'_>,
    walk: Walk,
    (reach, limits): (usize, TaskLimits<'_>),
    make: impl Fn(Sequences, Vec<u64>) -> T + Send + Sync,
    take: &mut impl FnMut(T, usize) -> Result<bool>,
) -> Result<()> {
    let RowMaker { packing, weights, canceller, .. } = *maker;
    let limit = &Limit::for_keys::<K>(limits);
    let firsts = &FirstWords::new(maker.vocabulary, reach);
    let meeting = Meeting { packing, reach, weights, firsts, max_met: limit.max_met(), canceller };
    let new = |keep| Pairs::<K>::new(meeting, keep);
    for_each_pass(walk, maker.vocabulary, limit, packing.all_bits(), new, |tasks, _, held_bytes| {
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

/// Maximum number of blocks of words.
const MAX_BLOCKS: usize = 1 << 12;
/// Target number of pairs in a bucket; [`MAX_BUCKETS`] limits the number of buckets.
const BUCKET_PAIRS: usize = 1 << 15;
const MAX_BUCKETS: usize = 512;

/// Map from the first word of a pair to its bucket.
#[derive(Debug)]
pub(in crate::analytics) struct FirstWords {
    /// Bucket by block.
    buckets: Vec<u16>,
    block_bits: u32,
    num_words: usize,
}

impl FirstWords {
    /// Cuts the words of `vocabulary` into buckets, assuming `pairs_per_word` pairs for each word
    /// of the grammar.
    pub fn new(vocabulary: &Vocabulary, pairs_per_word: usize) -> Self {
        let num_words = vocabulary.len();
        let block_bits = (num_words / MAX_BLOCKS + 1).next_power_of_two().ilog2();
        let mut counts = vec![0usize; (num_words >> block_bits) + 1];
        let rows = WordRows::new(vocabulary);
        for (at, segment) in vocabulary.corpus().segments().iter().enumerate() {
            let rows = rows.for_segment(at);
            let end = segment.dag.num_words();
            let words = segment.dag.grammar().symbols.iter().filter(|&&element| element < end);
            words.for_each(|&word| counts[(rows.row(word) >> block_bits) as usize] += 1);
        }
        let all: usize = counts.iter().sum();
        let num_buckets = all.saturating_mul(pairs_per_word) / BUCKET_PAIRS;
        let bucket_len = all / num_buckets.clamp(1, MAX_BUCKETS) + 1;
        let mut before = 0;
        let bucket = |count: usize| {
            before += count;
            ((before - count) / bucket_len) as u16
        };
        let buckets = counts.into_iter().map(bucket).collect();
        Self { buckets, block_bits, num_words }
    }

    /// Returns the number of buckets.
    pub fn num_buckets(&self) -> usize {
        self.buckets.last().map_or(0, |&bucket| usize::from(bucket) + 1)
    }

    /// Returns the bucket of the pairs that begin with `first`.
    #[inline]
    pub fn bucket(&self, first: u32) -> usize {
        usize::from(self.buckets[(first >> self.block_bits) as usize])
    }

    /// Returns the words that begin the pairs of `bucket`.
    pub fn words(&self, bucket: usize) -> Range<usize> {
        let start = |bucket| {
            let block = self.buckets.partition_point(|&other| usize::from(other) < bucket);
            (block << self.block_bits).min(self.num_words)
        };
        start(bucket)..start(bucket + 1)
    }
}

/// Number of words of a text that are kept before the oldest are dropped.
const CONTEXT_LEN: usize = 1 << 12;
/// Initial room for the pairs of a parallel task.
const TASK_PAIRS: usize = 1 << 17;
/// Number of pairs of words that are looked at between two looks at the cancellation.
const CHECK_PAIRS: usize = 1 << 16;
/// Number of pairs met after the caller has left, too large for any limit.
const STOPPED: usize = usize::MAX;

/// Parameters of meeting pairs.
#[derive(Debug, Clone, Copy)]
pub(in crate::analytics) struct Meeting<'a> {
    pub packing: Packing,
    /// Maximum distance between the words of a pair.
    pub reach: usize,
    pub weights: &'a Weights,
    pub firsts: &'a FirstWords,
    /// Maximum number of pairs kept. A walk with more pairs is going to be rejected.
    pub max_met: usize,
    pub canceller: Canceller<'a>,
}

/// Pairs of a parallel task, in buckets. A key has the smaller word, the other word and, in the
/// lowest bits, the number of the weight.
#[derive(Debug)]
pub(in crate::analytics) struct Pairs<'a, K> {
    meeting: Meeting<'a>,
    /// Number of the current weight.
    weight: u32,
    /// Last words of the text; only the last `reach` of them matter.
    context: Vec<u32>,
    keep: Keep<K>,
    /// Least word whose pairs may be kept.
    least: u32,
    num_met: usize,
    /// Number of pairs to the next look at the cancellation.
    num_unchecked: usize,
    pub buckets: Vec<Vec<K>>,
}

impl<'a, K: Key> Pairs<'a, K> {
    pub fn new(meeting: Meeting<'a>, keep: Keep<K>) -> Self {
        let num_buckets = meeting.firsts.num_buckets();
        let room = if keep.is_all() { TASK_PAIRS / num_buckets.max(1) } else { 0 };
        let buckets = (0..num_buckets).map(|_| Vec::with_capacity(room)).collect();
        let least = match &keep {
            Keep::Within(first, _) => meeting.packing.word(*first, 0),
            Keep::All | Keep::Counted(_) => 0,
        };
        let num_met = 0;
        let num_unchecked = CHECK_PAIRS;
        let context = Vec::new();
        Self { meeting, weight: 0, context, keep, least, num_met, num_unchecked, buckets }
    }

    /// Pairs `word` with the words of the context. There are `skipped` words between the context
    /// and `word`.
    #[inline]
    fn meet(&mut self, word: u32, skipped: usize) {
        let Meeting { packing, reach, weights, firsts, max_met, canceller } = self.meeting;
        if word < self.least || self.num_met > max_met {
            return;
        }
        let reach = reach.saturating_sub(skipped).min(self.context.len());
        // A step of a walk has a word, so pairs of wide windows are checked here.
        if reach >= self.num_unchecked {
            self.num_unchecked = CHECK_PAIRS;
            if canceller.check().is_err() {
                self.num_met = STOPPED;
                return;
            }
        }
        self.num_unchecked -= reach.min(self.num_unchecked);
        let near = &self.context[self.context.len() - reach..];
        let word_bits = packing.word_bits();
        let all_bits = packing.all_bits();
        let weight = self.weight;
        let weight_bits = weights.bits();
        let pairs = near.iter().map(|&other| {
            let first = word.min(other);
            let pair = K::default().rolled(first, word_bits, all_bits);
            (firsts.bucket(first), pair.rolled(word.max(other), word_bits, all_bits))
        });
        if self.keep.is_all() {
            for (bucket, pair) in pairs {
                self.buckets[bucket].push(pair.with_value(weight, weight_bits));
            }
            self.num_met += reach;
            return;
        }
        for (bucket, pair) in pairs {
            if self.keep.is_kept(|| pair) {
                self.buckets[bucket].push(pair.with_value(weight, weight_bits));
                self.num_met += 1;
            }
        }
    }
}

impl<K: Key> Sink for Pairs<'_, K> {
    fn begin(&mut self, weight: u64) {
        self.context.clear();
        self.weight = self.meeting.weights.number(weight);
    }

    #[inline]
    fn push(&mut self, word: u32) {
        self.meet(word, 0);
        self.context.push(word);
        let reach = self.meeting.reach;
        if self.context.len() >= reach.saturating_mul(2).saturating_add(CONTEXT_LEN) {
            self.context.drain(..self.context.len() - reach);
        }
    }

    fn push_child(&mut self, head: &[u32], tail: Option<&[u32]>) {
        for (at, &word) in head.iter().enumerate() {
            self.meet(word, at);
        }
        if tail.is_some() {
            self.context.clear();
        }
        self.context.extend_from_slice(tail.unwrap_or(head));
    }

    fn prime(&mut self, words: &[u32]) {
        self.context.extend_from_slice(words);
    }

    fn num_met(&self) -> usize {
        self.num_met
    }

    fn close(&mut self) {
        self.context = Vec::new();
        let room: usize = self.buckets.iter().map(Vec::capacity).sum();
        if self.num_met < room / 2 {
            self.buckets.iter_mut().for_each(Vec::shrink_to_fit);
        }
    }
}

/// Maximum number of pairs of a first word that are sorted rather than added up by second word.
const FEW_PAIRS: usize = 16;
/// Maximum number of words that have sums: 1 MB.
const MAX_WORDS: usize = 1 << 17;
/// Maximum number of distinct second words that are sorted rather than put into a set.
const FEW_WORDS: usize = 32;

/// Sums of the pairs of one first word at a time.
#[derive(Debug, Default)]
pub(in crate::analytics) struct PairSums<K> {
    /// Pairs of a bucket by first word; `ends` has the end of the pairs of each first word.
    keys: Vec<K>,
    ends: Vec<usize>,
    /// Sums by second word; 0 between first words.
    sums: Vec<u64>,
    /// Second words that have a sum; `set` puts them in order.
    met: Vec<u32>,
    set: AscendingSet,
    /// Room to sort pairs, used if there are many words.
    sorting: Option<Sorting<K>>,
}

impl<K: Key + Keyed<Key = K>> PairSums<K> {
    /// Creates sums for words below `num_words`.
    pub fn new(num_words: usize) -> Self {
        if num_words > MAX_WORDS {
            return Self { sorting: Some(Sorting::default()), ..Self::default() };
        }
        let sums = vec![0; num_words];
        let set = AscendingSet::new(num_words);
        Self { sums, set, ..Self::default() }
    }

    /// Appends the rows of a bucket to `counted`. The pairs of the bucket, in `pieces`, begin with
    /// `words`.
    ///
    /// # Errors
    /// [`Error::Capacity`] if a sum needs more than 64 bits, and
    /// [`Error::Cancelled`].
    pub fn add<'k>(
        &mut self,
        pieces: impl Iterator<Item = &'k [K]> + Clone,
        words: Range<usize>,
        maker: &RowMaker<'_>,
        counted: &mut Counted,
    ) -> Result<()>
    where
        K: 'k,
    {
        if let Some(sorting) = &mut self.sorting {
            sorting.entries.clear();
            pieces.for_each(|keys| sorting.entries.extend_from_slice(keys));
            sorting.sort(maker.weights.bits(), maker.canceller)?;
            return counted.add_keys(&sorting.entries, maker.packing, &maker.weights, maker.min_count);
        }
        self.group_by_first_word(pieces, words, maker);
        let mut interrupt = maker.canceller.interrupt();
        let mut start = 0;
        for at in 0..self.ends.len() {
            let end = self.ends[at];
            interrupt.pass(end - start)?;
            match end - start {
                0 => {}
                1..=FEW_PAIRS => {
                    let keys = &mut self.keys[start..end];
                    keys.sort_unstable();
                    counted.add_keys(keys, maker.packing, &maker.weights, maker.min_count)?;
                }
                _ => self.add_first(start..end, maker, counted)?,
            }
            start = end;
        }
        Ok(())
    }

    /// Groups the pairs of a bucket by first word.
    fn group_by_first_word<'k>(
        &mut self,
        pieces: impl Iterator<Item = &'k [K]> + Clone,
        words: Range<usize>,
        maker: &RowMaker<'_>,
    ) where
        K: 'k,
    {
        let word_bits = maker.packing.word_bits();
        let shift = word_bits + maker.weights.bits();
        let first = |key: K| key.above(shift).low(word_bits) as usize - words.start;
        self.ends.clear();
        self.ends.resize(words.len() + 1, 0);
        for &key in pieces.clone().flatten() {
            self.ends[first(key) + 1] += 1;
        }
        for at in 1..self.ends.len() {
            self.ends[at] += self.ends[at - 1];
        }
        self.keys.clear();
        self.keys.resize(self.ends.last().copied().unwrap_or(0), K::default());
        // Each start moves to the end of its range.
        for &key in pieces.flatten() {
            let next = &mut self.ends[first(key)];
            self.keys[*next] = key;
            *next += 1;
        }
        self.ends.pop();
    }

    /// Appends the rows of one first word, whose pairs lie at `range`.
    fn add_first(&mut self, range: Range<usize>, maker: &RowMaker<'_>, counted: &mut Counted) -> Result<()> {
        let Self { keys, sums, met, set, .. } = self;
        let packing = maker.packing;
        let weights = maker.weights;
        let min_count = maker.min_count;
        let word_bits = packing.word_bits();
        let weight_bits = weights.bits();
        let keys = &keys[range];
        met.resize(keys.len().max(met.len()), 0);
        let mut num_met = 0;
        let mut is_exact = true;
        for key in keys {
            let second = key.above(weight_bits).low(word_bits);
            let sum = &mut sums[second as usize];
            met[num_met] = second;
            num_met += usize::from(*sum == 0);
            let (more, is_over) = sum.overflowing_add(weights.weight(key.low(weight_bits)));
            is_exact &= !is_over;
            *sum = more;
        }
        if !is_exact {
            return Err(too_many_occurrences());
        }
        let first = keys[0].above(word_bits + weight_bits).number() << word_bits;
        let mut push = |second: u32| {
            let sum = std::mem::take(&mut sums[second as usize]);
            if sum >= min_count {
                counted.push_key(first | u64::from(second), packing);
                counted.counts.push(sum);
            }
        };
        let met = &mut met[..num_met];
        if num_met <= FEW_WORDS {
            met.sort_unstable();
            met.iter().for_each(|&second| push(second));
        } else {
            met.iter().for_each(|&second| set.insert(second as usize));
            set.drain(|second| push(second as u32));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use crate::analytics::{Cooccurrences, Traversal, Vocabulary};
    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::OpenLimits;
    use crate::segment::Corpus;

    const WINDOW: usize = 4;
    const AMPLE: u64 = 1 << 30;

    /// Returns documents of random words. The lowest words occur together with all others, the
    /// highest with few.
    fn documents() -> Vec<Vec<String>> {
        let mut state = 7u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % limit
        };
        let mut word = move || {
            let range = [9, 90, 900, 9000][below(4) as usize];
            format!("w{:04}", below(range))
        };
        (0..30).map(|_| (0..400).map(|_| word()).collect()).collect()
    }

    fn vocabulary(documents: &[Vec<String>]) -> Arc<Vocabulary> {
        let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
        for (doc, words) in documents.iter().enumerate() {
            builder.push_document(&doc.to_string(), words.join(" ").as_bytes()).unwrap();
        }
        let (file, _) = builder.finish(None).unwrap();
        let corpus = Corpus::from_bytes("memory", &file, &OpenLimits::default()).unwrap().1;
        Arc::new(Vocabulary::new(&corpus).unwrap())
    }

    #[test]
    fn sums_are_those_of_a_map() {
        let mut documents = documents();
        // A pair that many rules contain, each with its own weight.
        let again = |len: usize| (0..len).map(|at| ["on", "at"][at % 2].to_owned()).collect();
        documents.extend((1..6).map(|len| again(40 * len)));
        let mut expected: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for words in &documents {
            for (at, a) in words.iter().enumerate() {
                for b in words.iter().skip(at + 1).take(WINDOW - 1) {
                    *expected.entry((a.min(b), a.max(b))).or_default() += 1;
                }
            }
        }
        let vocabulary = vocabulary(&documents);
        let least_bytes = 2 * 16 * 8_000;
        for way in [Traversal::TopDown, Traversal::TokenScan] {
            for (min_count, memory_bytes) in [(1, AMPLE), (3, AMPLE), (1, least_bytes)] {
                let words = vocabulary.clone();
                let found = Cooccurrences::with_vocabulary(words, WINDOW, min_count, way, memory_bytes).unwrap();
                let word = |row: u32| vocabulary.word(row as usize);
                let rows = (0..found.len()).map(|row| {
                    let pair: Vec<&str> = found.pairs().words(row).map(word).collect();
                    ((pair[0], pair[1]), found.counts()[row])
                });
                let kept = expected.iter().filter(|(_, count)| **count >= min_count);
                assert!(rows.eq(kept.map(|(pair, count)| (*pair, *count))), "{way} {min_count}");
            }
        }
    }
}
