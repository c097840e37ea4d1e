//! Rates of tasks over corpora, on the cores and on a device.
//!
//! ```text
//! large corpus, all rows ─┬▶ cores    time on one core and on all / estimate of traversal_costs
//!                         └▶ device   first run and later runs: seconds per prepared element,
//! tiny corpus, 1 document ─▶ device   per unit and per row, and seconds of an almost empty task
//! a large text per core ───▶ cores    time on all cores, with a corpus larger than the caches
//!
//! unit   a step of the work on a device: a window of a sequence, a pair, or a word of the text
//! ```
//!
//! Almost every window of the text gives its own row. Between the sizes of the two corpora of the
//! cores, the logarithm of their rate changes linearly with the logarithm of the number of
//! elements. Outside these sizes the rate is constant.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

use tadoc::analytics::{
    Cooccurrences, DocSelection, InvertedIndex, RankedInvertedIndex, SegmentShape, SequenceCounts,
    TermVectors, Traversal, TraversalTask, Vocabulary, traversal_costs,
};
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::error::{Error, Result};
use tadoc::format::OpenLimits;
use tadoc::segment::Corpus;

use super::text;

/// Number of words of a measured sequence.
const NUM_WORDS: usize = 3;
const WINDOW: usize = 5;
/// Number of bytes of text in a corpus.
const TEXT_BYTES: usize = 4 << 20;
/// Number of rows of text in a document.
const ROWS_OF_A_DOCUMENT: usize = 500;
pub(super) const NUM_RUNS: usize = 3;
/// Time after which a task on the cores is not run again.
const TIME: Duration = Duration::from_millis(150);
const MEMORY_BYTES: u64 = 8 << 30;
/// Least number of cores for the larger corpus. The cache of fewer cores holds a text for each
/// core.
const MIN_LARGE_CORES: usize = 4;
const MAX_LARGE_TEXTS: usize = 16;

/// A kind of task over corpora with its own rates, and the words of its sequences or windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CorpusTask {
    /// Counts of sequences of this many words.
    Sequences(usize),
    /// Words of each document.
    Terms,
    /// Documents of each word.
    Index,
    /// Pairs of words in windows of this many words.
    Pairs(usize),
    /// Ranked documents of each sequence of this many words.
    Ranked(usize),
}

/// Number of kinds of tasks.
pub const NUM_CORPUS_TASKS: usize = 5;

impl CorpusTask {
    /// The measured tasks, one of each kind.
    pub const MEASURED: [Self; NUM_CORPUS_TASKS] = [
        Self::Sequences(NUM_WORDS),
        Self::Terms,
        Self::Index,
        Self::Pairs(WINDOW),
        Self::Ranked(NUM_WORDS),
    ];

    /// Returns the index of this kind in arrays of rates.
    fn idx(self) -> usize {
        match self {
            Self::Sequences(_) => 0,
            Self::Terms => 1,
            Self::Index => 2,
            Self::Pairs(_) => 3,
            Self::Ranked(_) => 4,
        }
    }

    /// Returns the largest number of units of work on a device, for a text of this `shape`.
    pub fn num_units(self, shape: SegmentShape) -> u64 {
        match self {
            Self::Sequences(n) => most_windows(shape, n),
            Self::Terms | Self::Index | Self::Ranked(_) => shape.num_words,
            Self::Pairs(window) => most_pairs(shape, window),
        }
    }

    /// Returns the seconds of one core for the fastest traversal, as estimated by
    /// [`traversal_costs`].
    pub fn one_core_s(self, shape: SegmentShape) -> f64 {
        let (task, n) = match self {
            Self::Sequences(n) => (TraversalTask::SequenceCount, n),
            Self::Terms => (TraversalTask::TermVector, 2),
            Self::Index => (TraversalTask::InvertedIndex, 2),
            Self::Pairs(window) => (TraversalTask::Cooccurrence, window),
            Self::Ranked(n) => (TraversalTask::DocumentSequences, n),
        };
        let costs = traversal_costs(task, shape, n);
        costs.map(|(_, nanoseconds)| nanoseconds).fold(f64::MAX, f64::min) * 1e-9
    }

    /// Runs the task on the cores.
    fn run(self, vocabulary: &Arc<Vocabulary>) -> Result<()> {
        let (words, way) = (vocabulary.clone(), Traversal::Auto);
        match self {
            Self::Sequences(n) => {
                black_box(SequenceCounts::with_vocabulary(words, n, way, MEMORY_BYTES)?);
            }
            Self::Terms => {
                let all = DocSelection::all(vocabulary.corpus());
                black_box(TermVectors::new(words, way).collect(&all, None)?);
            }
            Self::Index => {
                black_box(InvertedIndex::with_vocabulary(words, way)?);
            }
            Self::Pairs(window) => {
                black_box(Cooccurrences::with_vocabulary(words, window, 1, way, MEMORY_BYTES)?);
            }
            Self::Ranked(n) => {
                black_box(RankedInvertedIndex::with_vocabulary(words, n, way, MEMORY_BYTES)?);
            }
        }
        Ok(())
    }
}

/// Rates of tasks over corpora. Times are in seconds; those of the cores are multiples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorpusRates {
    /// Rates of each kind of task, in the order of [`CorpusTask::MEASURED`].
    pub tasks: [TaskRates; NUM_CORPUS_TASKS],
    /// Seconds of an almost empty task on a device.
    pub task_s: f64,
    /// Seconds to prepare one element of a grammar on the device, with its copy, before the first
    /// task.
    pub prepare_s: f64,
    /// Seconds to copy one row to the host.
    pub row_s: f64,
    /// Seconds to merge one row with those of other segments, on one core.
    pub merge_s: f64,
    /// Seconds to sort one row among those of other segments, or of other words that count as one.
    pub sort_s: f64,
    /// Seconds to open the device.
    pub startup_s: f64,
    /// Largest part of the time of the cores that the device may take to be used.
    pub margin: f64,
}

/// Rates of one kind of task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TaskRates {
    /// Time of one core, as a multiple of the estimate of [`traversal_costs`].
    pub one_core: f64,
    /// Part of the time that twice the number of cores takes.
    pub of_twice: f64,
    /// Change of the time with the size of a grammar; `None` if not measured.
    pub growth: Option<Growth>,
    /// Seconds of one unit on a device.
    pub unit_s: f64,
}

/// A change of the time on the cores with the size of a corpus.
///
/// A larger corpus does not fit into the caches, or it is large enough to keep all cores busy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Numbers of elements of the two measured grammars.
    pub elements: [f64; 2],
    /// Time over the larger grammar, as a multiple of the time that the smaller one predicts.
    pub factor: f64,
}

impl Growth {
    /// Returns the multiple for a grammar of `num_elements` elements.
    ///
    /// It is constant outside the sizes that were measured.
    fn for_elements(&self, num_elements: u64) -> f64 {
        let [small, large] = self.elements.map(f64::ln);
        let share = ((num_elements.max(1) as f64).ln() - small) / (large - small);
        if share.is_nan() { 1.0 } else { self.factor.powf(share.clamp(0.0, 1.0)) }
    }
}

impl Default for CorpusRates {
    /// Returns built-in values.
    ///
    /// 16 cores are 5.3 times as fast as one (3.7 to 5.1 times were measured for sequences). The
    /// rates of the device are the slow end of one H100 (22 November 2026). It needed 5 to 15 ns
    /// per element for plans of weights, as much for inverse grammars, 0.5 ns per window, and 13 ns
    /// per row through ordinary memory. Units of other tasks are assumed to cost as much as
    /// windows.
    fn default() -> Self {
        let task = TaskRates { one_core: 1.0, of_twice: 0.66, growth: None, unit_s: 3e-9 };
        Self {
            tasks: [task; NUM_CORPUS_TASKS],
            task_s: 5e-3,
            prepare_s: 35e-9,
            row_s: 13e-9,
            merge_s: 25e-9,
            sort_s: 60e-9,
            startup_s: 0.5,
            margin: 0.8,
        }
    }
}

impl CorpusRates {
    /// Returns the rates of the kind of `task`.
    pub fn for_task(&self, task: CorpusTask) -> &TaskRates {
        &self.tasks[task.idx()]
    }
}

impl TaskRates {
    /// Returns the time of `num_cores` cores, as a multiple of the estimate of [`traversal_costs`].
    pub fn for_cores(&self, num_cores: usize) -> f64 {
        self.one_core * self.of_twice.powf((num_cores.max(1) as f64).log2())
    }

    /// Returns the multiple of [`for_cores`](Self::for_cores), for a grammar of `num_elements`
    /// elements.
    pub fn for_cores_and_elements(&self, num_cores: usize, num_elements: u64) -> f64 {
        self.for_cores(num_cores)
            * self.growth.map_or(1.0, |growth| growth.for_elements(num_elements))
    }

    /// Sets the times of one core and of all `num_cores`, as multiples of the estimate of
    /// [`traversal_costs`].
    pub(super) fn set_cores(&mut self, one_core: f64, all_cores: f64, num_cores: usize) {
        let num_doublings = (num_cores as f64).log2();
        if num_doublings > 0.0 {
            self.of_twice = (all_cores / one_core).powf(1.0 / num_doublings).clamp(0.5, 1.0);
        }
        self.one_core = one_core;
    }
}

/// Times of a task over a segment, on a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorpusTimes {
    /// Seconds of the first run, with nothing of the segment on the device.
    pub first_s: f64,
    /// Seconds of a later run.
    pub again_s: f64,
    /// Seconds of a later run that copying the answer to the host takes.
    pub copy_s: f64,
    /// Number of rows of the answer.
    pub num_rows: usize,
}

/// Corpora, as files, for the measurement of devices and cores.
#[derive(Debug)]
pub(super) struct ProbeCorpora {
    pub(super) large: Vec<u8>,
    pub(super) tiny: Vec<u8>,
    /// Corpora as large as `large`, of other text. Together they are larger than all caches.
    more: Vec<Vec<u8>>,
}

impl ProbeCorpora {
    /// Builds the corpora: with few cores `large` and `tiny` only, else also one corpus for each
    /// further core, up to [`MAX_LARGE_TEXTS`] texts in all.
    pub(super) fn new(num_cores: usize) -> Result<Self> {
        let num_texts =
            if num_cores < MIN_LARGE_CORES { 1 } else { num_cores.min(MAX_LARGE_TEXTS) };
        let documents = documents(0);
        let (large, more) = rayon::join(
            || written(&documents),
            || {
                let texts = (1..num_texts).into_par_iter();
                texts.map(|at| written(&self::documents(at))).collect::<Result<Vec<_>>>()
            },
        );
        Ok(Self { large: large?, tiny: written(&documents[..1])?, more: more? })
    }

    /// Returns all large corpora as one corpus, or `None` if there is only one.
    fn all(&self) -> Result<Option<Corpus>> {
        if self.more.is_empty() {
            return Ok(None);
        }
        let large = self.large()?;
        let mut segments = large.segments().to_vec();
        for file in &self.more {
            segments.extend_from_slice(fresh(file)?.segments());
        }
        Ok(Some(Corpus::new(large.profile(), segments)))
    }

    /// Returns the large corpus, without derived data.
    pub(super) fn large(&self) -> Result<Corpus> {
        fresh(&self.large)
    }
}

/// Returns the documents of the text with number `number`.
fn documents(number: usize) -> Vec<Vec<u8>> {
    let rows = text::rows_of(number as u64, TEXT_BYTES);
    rows.chunks(ROWS_OF_A_DOCUMENT).map(|rows| rows.join(&b"\n"[..])).collect()
}

fn written(documents: &[Vec<u8>]) -> Result<Vec<u8>> {
    let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    for (doc, text) in documents.iter().enumerate() {
        builder.push_document(&doc.to_string(), text)?;
    }
    Ok(builder.finish(None)?.0)
}

/// Opens the corpus of `file`, without derived data.
pub(super) fn fresh(file: &[u8]) -> Result<Corpus> {
    Ok(Corpus::from_bytes("calibration", file, &OpenLimits::default())?.1)
}

pub(super) fn shape(corpus: &Corpus) -> SegmentShape {
    corpus.segments().iter().map(|segment| SegmentShape::from(segment.as_ref())).sum()
}

/// Returns an upper bound of the number of windows of `n` words.
///
/// Each word begins one window, and at most n - 1 windows count for one element.
fn most_windows(shape: SegmentShape, n: usize) -> u64 {
    let reach = n.saturating_sub(1) as u64;
    shape.num_elements.saturating_mul(reach).min(shape.num_words)
}

/// Returns an upper bound of the number of pairs of words that are less than `window` apart.
///
/// Each word begins `window` - 1 pairs, and at most `window` (`window` - 1) / 2 pairs begin in an
/// element and end behind it.
fn most_pairs(shape: SegmentShape, window: usize) -> u64 {
    let reach = window.saturating_sub(1) as u64;
    let of_element = reach.saturating_mul(reach.saturating_add(1)) / 2;
    let of_elements = shape.num_elements.saturating_mul(of_element);
    of_elements.min(shape.num_words.saturating_mul(reach))
}

/// Measured times of the cores.
pub(super) struct TimesOfCores {
    /// Times of one core and of all cores divided by [`CorpusTask::one_core_s`], for each kind of
    /// task.
    pub(super) ratios: [[f64; 2]; NUM_CORPUS_TASKS],
    /// Ratios of all cores over the larger corpus, if there is one.
    pub(super) large_ratios: Option<[f64; NUM_CORPUS_TASKS]>,
    /// Numbers of elements of the grammars of both corpora.
    pub(super) elements: [Option<f64>; 2],
}

/// Measures all kinds of tasks on one core and on all cores.
pub(super) fn measure_cores(corpora: &ProbeCorpora, num_cores: usize) -> Result<TimesOfCores> {
    let (corpus, all) = (corpora.large()?, corpora.all()?);
    let [one_core, all_cores] = [ratios(&corpus, 1)?, ratios(&corpus, num_cores)?];
    let mut pairs = [[0.0; 2]; NUM_CORPUS_TASKS];
    for ((pair, one_core), all_cores) in pairs.iter_mut().zip(one_core).zip(all_cores) {
        *pair = [one_core, all_cores];
    }
    let large_ratios = all.as_ref().map(|all| ratios(all, num_cores)).transpose()?;
    let elements = [Some(&corpus), all.as_ref()];
    let elements = elements.map(|corpus| Some(shape(corpus?).num_elements as f64));
    Ok(TimesOfCores { ratios: pairs, large_ratios, elements })
}

/// Measures `num_threads` cores, as multiples of [`CorpusTask::one_core_s`], for each kind of task.
fn ratios(corpus: &Corpus, num_threads: usize) -> Result<[f64; NUM_CORPUS_TASKS]> {
    let (vocabulary, shape) = (Arc::new(Vocabulary::new(corpus)?), shape(corpus));
    let pool = ThreadPoolBuilder::new().num_threads(num_threads).build();
    let pool = pool.map_err(|error| Error::external("starting threads", error))?;
    let mut ratios = [0.0; NUM_CORPUS_TASKS];
    for (task, ratio) in CorpusTask::MEASURED.into_iter().zip(&mut ratios) {
        let (begin, mut least, mut num_runs) = (Instant::now(), f64::MAX, 0);
        while num_runs == 0 || (num_runs < NUM_RUNS && begin.elapsed() < TIME) {
            let start = Instant::now();
            pool.install(|| task.run(&vocabulary))?;
            least = least.min(start.elapsed().as_secs_f64());
            num_runs += 1;
        }
        *ratio = least / task.one_core_s(shape);
    }
    Ok(ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_cores_take_less_time_but_not_in_proportion() {
        let rates =
            TaskRates { one_core: 2.0, ..*CorpusRates::default().for_task(CorpusTask::Terms) };
        let times: Vec<_> = [0, 1, 2, 16, 1000].map(|cores| rates.for_cores(cores)).to_vec();
        assert_eq!(times[..2], [2.0, 2.0]);
        assert!(times.windows(2).skip(1).all(|pair| pair[0] > pair[1] && pair[1] > 0.0));
        assert!((5.0..5.5).contains(&(times[1] / times[3])), "{times:?}");
    }

    #[test]
    fn rates_follow_the_size_between_those_measured() {
        for factor in [0.25, 1.0, 4.0] {
            let growth = Some(Growth { elements: [1e4, 1e6], factor });
            let rates =
                TaskRates { growth, ..*CorpusRates::default().for_task(CorpusTask::Sequences(3)) };
            let of =
                |num_elements| rates.for_cores_and_elements(4, num_elements) / rates.for_cores(4);
            for (num_elements, expected) in
                [(0, 1.0), (10_000, 1.0), (100_000, factor.sqrt()), (1 << 40, factor)]
            {
                assert!((of(num_elements) / expected - 1.0).abs() < 1e-9, "{num_elements}");
            }
        }
    }

    /// Checks that the larger corpus is measured if there are more texts, and only then.
    #[test]
    fn many_cores_have_a_larger_corpus() {
        let written = |number: usize| written(&documents(number)[..2]).unwrap();
        let corpora = |more| ProbeCorpora { large: written(0), tiny: written(0), more };
        let few = measure_cores(&corpora(vec![]), 2).unwrap();
        assert!(few.large_ratios.is_none() && few.elements[1].is_none());
        let many = measure_cores(&corpora(vec![written(1), written(2)]), 2).unwrap();
        let [small, large] = many.elements.map(Option::unwrap);
        assert!(large > 2.0 * small && many.large_ratios.unwrap().iter().all(|&r| r > 0.0));
    }

    #[test]
    fn windows_are_bounded_by_words_and_elements() {
        let shape = SegmentShape { num_words: 100, num_elements: 30, ..SegmentShape::default() };
        let bounds = [0, 1, 2, 3, 5, usize::MAX].map(|n| most_windows(shape, n));
        assert_eq!(bounds, [0, 0, 30, 60, 100, 100]);
        let pairs = [0, 1, 2, 3, 5, usize::MAX].map(|window| most_pairs(shape, window));
        assert_eq!(pairs, [0, 0, 30, 90, 300, u64::MAX]);
        assert_eq!(
            [CorpusTask::Terms, CorpusTask::Ranked(9)].map(|t| t.num_units(shape)),
            [100; 2]
        );
    }

    #[test]
    fn kinds_have_their_own_indexes() {
        let idxs = CorpusTask::MEASURED.map(CorpusTask::idx);
        assert_eq!(idxs, [0, 1, 2, 3, 4]);
    }
}
