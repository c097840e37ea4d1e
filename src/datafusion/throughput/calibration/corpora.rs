//! Tasks over corpora: what cores and a device need for them.
//!
//! ```text
//! rows of text ──▶ corpus ─┬▶ cores    each task on one and on all : what traversal_costs says
//!                          └▶ device   the first time, and again: what is prepared once for each
//! rows of a document ──────▶ device    element, what a unit and a row cost, and a task with hardly any
//! as much for each core ───▶ cores     the same on all, where nothing fits a cache
//!
//! unit   a window of a sequence, a pair that is met, or a word of the text: what a device goes through
//! ```
//!
//! Nearly every window of the text is a row of its own. Between the sizes of the two corpora, and only there,
//! the cores' rate follows the logarithm of the grammar's.

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

/// Words of a sequence that is counted, and of a window of pairs.
const NUM_WORDS: usize = 3;
const WINDOW: usize = 5;
/// Text of the corpus.
const TEXT_BYTES: usize = 4 << 20;
/// Rows of text that make a document.
const ROWS_OF_A_DOCUMENT: usize = 500;
pub(super) const NUM_RUNS: usize = 3;
/// After so long a task on the cores is not run again.
const TIME: Duration = Duration::from_millis(150);
const MEMORY_BYTES: u64 = 8 << 30;
/// Fewer cores than this have a cache that holds as much text for each, and more take no more.
const MIN_LARGE_CORES: usize = 4;
const MAX_LARGE_TEXTS: usize = 16;

/// Kinds of tasks over corpora, each with rates of its own; with the words of a sequence or a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CorpusTask {
    /// Sequences of so many words.
    Sequences(usize),
    /// Words of documents.
    Terms,
    /// Documents of words.
    Index,
    /// Pairs of words in windows of so many.
    Pairs(usize),
    /// Documents of sequences of so many words.
    Ranked(usize),
}

/// Number of kinds of tasks.
pub const NUM_CORPUS_TASKS: usize = 5;

impl CorpusTask {
    /// What is measured, one of each kind.
    pub const MEASURED: [Self; NUM_CORPUS_TASKS] = [
        Self::Sequences(NUM_WORDS),
        Self::Terms,
        Self::Index,
        Self::Pairs(WINDOW),
        Self::Ranked(NUM_WORDS),
    ];

    /// Which place of arrays of rates is this kind's.
    fn place(self) -> usize {
        match self {
            Self::Sequences(_) => 0,
            Self::Terms => 1,
            Self::Index => 2,
            Self::Pairs(_) => 3,
            Self::Ranked(_) => 4,
        }
    }

    /// What a device goes through one by one for a text of this `shape`, at most.
    pub fn num_units(self, shape: SegmentShape) -> u64 {
        match self {
            Self::Sequences(n) => most_windows(shape, n),
            Self::Terms | Self::Index | Self::Ranked(_) => shape.num_words,
            Self::Pairs(window) => most_pairs(shape, window),
        }
    }

    /// Seconds of one core, by the table of the traversals.
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

    /// The task on the cores.
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

/// What tasks over corpora take, in seconds but for the cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorpusRates {
    /// In the order of [`CorpusTask::MEASURED`].
    pub tasks: [TaskRates; NUM_CORPUS_TASKS],
    /// On a device, a task with next to nothing to do.
    pub task_s: f64,
    /// What is made of an element of a rule and copied there before the first task.
    pub prepare_s: f64,
    /// A row that comes to the host.
    pub row_s: f64,
    /// A row that is merged with those of other segments, on one core.
    pub merge_s: f64,
    /// A row that is sorted among those of other segments, or of other words that count as one.
    pub sort_s: f64,
    /// Opening the device.
    pub startup_s: f64,
    /// The device is used where its time is at most so much of that of the cores.
    pub margin: f64,
}

/// What one kind of task takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TaskRates {
    /// The time of one core as a multiple of what [`traversal_costs`] says.
    pub one_core: f64,
    /// Twice the cores take this part of the time.
    pub of_twice: f64,
    /// Where it was measured, the elements of a grammar and the time of a larger one as a multiple of what
    /// the others say.
    pub growth: Option<Growth>,
    /// Seconds of a unit on a device.
    pub unit_s: f64,
}

/// What becomes of a rate where a corpus is too large for caches, or large enough for all cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Elements of the grammars that were measured.
    pub elements: [f64; 2],
    /// Time of the larger one, as a multiple of what the rates of the smaller one say.
    pub factor: f64,
}

impl Growth {
    /// The multiple for a grammar of so many elements; no more than was measured for larger ones.
    fn of(&self, num_elements: u64) -> f64 {
        let [small, large] = self.elements.map(f64::ln);
        let share = ((num_elements.max(1) as f64).ln() - small) / (large - small);
        if share.is_nan() { 1.0 } else { self.factor.powf(share.clamp(0.0, 1.0)) }
    }
}

impl Default for CorpusRates {
    /// Built-in values: 16 cores as fast as 5.3 (for sequences 3.7 to 5.1 were measured), and the slow end
    /// of one H100 (kernels/README.md, 22 November 2026), which needed 5 to 15 ns an element for plans of
    /// weights and as much for inverse grammars, 0.5 ns a window, and 13 ns a row through ordinary memory.
    /// Units of other tasks are taken to cost as much as windows do.
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
    /// The rates of tasks like `task`.
    pub fn of(&self, task: CorpusTask) -> &TaskRates {
        &self.tasks[task.place()]
    }
}

impl TaskRates {
    /// How long `num_cores` cores take for what [`traversal_costs`] says takes one second.
    pub fn of_cores(&self, num_cores: usize) -> f64 {
        self.one_core * self.of_twice.powf((num_cores.max(1) as f64).log2())
    }

    /// The same for a grammar of so many elements.
    pub fn of_cores_and_elements(&self, num_cores: usize, num_elements: u64) -> f64 {
        self.of_cores(num_cores) * self.growth.map_or(1.0, |growth| growth.of(num_elements))
    }

    /// What one core and all `num_cores` took, as multiples of what [`traversal_costs`] says.
    pub(super) fn set_cores(&mut self, one_core: f64, all_cores: f64, num_cores: usize) {
        let num_doublings = (num_cores as f64).log2();
        if num_doublings > 0.0 {
            self.of_twice = (all_cores / one_core).powf(1.0 / num_doublings).clamp(0.5, 1.0);
        }
        self.one_core = one_core;
    }
}

/// What a device needed for a task over a segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorpusTimes {
    /// With nothing of the segment on the device.
    pub first_s: f64,
    /// After that.
    pub again_s: f64,
    /// Of this, what copying the answer to the host takes, and the rows that it has.
    pub copy_s: f64,
    /// See there.
    pub num_rows: usize,
}

/// What devices and cores are measured with.
#[derive(Debug)]
pub(super) struct ProbeCorpora {
    pub(super) large: Vec<u8>,
    pub(super) tiny: Vec<u8>,
    /// As large ones, of other text: together out of all caches.
    more: Vec<Vec<u8>>,
}

impl ProbeCorpora {
    /// With as many more as `num_cores` cores make in the time of one.
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

    /// All of them as one; `None` where there is one.
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

    /// The large one, with nothing derived yet.
    pub(super) fn large(&self) -> Result<Corpus> {
        fresh(&self.large)
    }
}

/// The documents of text number `number`.
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

/// The corpus with nothing derived yet.
pub(super) fn fresh(file: &[u8]) -> Result<Corpus> {
    Ok(Corpus::from_bytes("calibration", file, &OpenLimits::default())?.1)
}

pub(super) fn shape(corpus: &Corpus) -> SegmentShape {
    corpus.segments().iter().map(|segment| SegmentShape::from(segment.as_ref())).sum()
}

/// How many windows of `n` words there are at most: each begins in one word, and at most n - 1 of them in an
/// element.
fn most_windows(shape: SegmentShape, n: usize) -> u64 {
    let reach = n.saturating_sub(1) as u64;
    shape.num_elements.saturating_mul(reach).min(shape.num_words)
}

/// How many pairs of words less than `window` apart there are at most: each word begins `window` - 1 of
/// them, and those that begin in an element and end behind it are as many as two edges have.
fn most_pairs(shape: SegmentShape, window: usize) -> u64 {
    let reach = window.saturating_sub(1) as u64;
    let of_element = reach.saturating_mul(reach.saturating_add(1)) / 2;
    let of_elements = shape.num_elements.saturating_mul(of_element);
    of_elements.min(shape.num_words.saturating_mul(reach))
}

/// What cores need.
pub(super) struct TimesOfCores {
    /// One core and all of them compared with [`CorpusTask::one_core_s`], for each kind of task.
    pub(super) ratios: [[f64; 2]; NUM_CORPUS_TASKS],
    /// The same of all cores with the larger corpus, where there is one.
    pub(super) large_ratios: Option<[f64; NUM_CORPUS_TASKS]>,
    /// Elements of both.
    pub(super) elements: [Option<f64>; 2],
}

/// Counts everything on one core and on all of them.
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

/// How `num_threads` cores compare with [`CorpusTask::one_core_s`], for each kind of task.
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
        let rates = TaskRates { one_core: 2.0, ..*CorpusRates::default().of(CorpusTask::Terms) };
        let times: Vec<_> = [0, 1, 2, 16, 1000].map(|cores| rates.of_cores(cores)).to_vec();
        assert_eq!(times[..2], [2.0, 2.0]);
        assert!(times.windows(2).skip(1).all(|pair| pair[0] > pair[1] && pair[1] > 0.0));
        assert!((5.0..5.5).contains(&(times[1] / times[3])), "{times:?}");
    }

    #[test]
    fn rates_follow_the_size_between_those_measured() {
        for factor in [0.25, 1.0, 4.0] {
            let growth = Some(Growth { elements: [1e4, 1e6], factor });
            let rates =
                TaskRates { growth, ..*CorpusRates::default().of(CorpusTask::Sequences(3)) };
            let of =
                |num_elements| rates.of_cores_and_elements(4, num_elements) / rates.of_cores(4);
            for (num_elements, expected) in
                [(0, 1.0), (10_000, 1.0), (100_000, factor.sqrt()), (1 << 40, factor)]
            {
                assert!((of(num_elements) / expected - 1.0).abs() < 1e-9, "{num_elements}");
            }
        }
    }

    /// Texts of cores that there are not, which differ; few are made where there are few cores.
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
    fn kinds_have_their_own_places() {
        let places = CorpusTask::MEASURED.map(CorpusTask::place);
        assert_eq!(places, [0, 1, 2, 3, 4]);
    }
}
