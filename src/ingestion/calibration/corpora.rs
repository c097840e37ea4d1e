//! Tasks over corpora: what cores and a device need for them.
//!
//! ```text
//! rows of text ──▶ corpus ─┬▶ cores    sequence_count(3) on one and on all : what traversal_costs says
//!                          └▶ device   the first time, and again: what is prepared once for each
//! rows of a document ──────▶ device    element, what a window costs, what a task costs with hardly any
//! ```
//!
//! Nearly every window of the text is a row of its own, which is the worst for a device, whose rows come
//! back to the host.

use std::sync::Arc;
use std::time::Instant;

use rayon::ThreadPoolBuilder;

use crate::analytics::{
    SegmentShape, SequenceCounts, Traversal, TraversalTask, Vocabulary, traversal_costs,
};
use crate::corpus::{Corpus, CorpusBuilder, IngestOptions, OpenLimits};
use crate::error::{Error, Result};

use super::device::DeviceProbe;
use super::text;

/// Words of a sequence that is counted.
pub(super) const NUM_WORDS: usize = 3;
/// Text of the corpus.
const TEXT_BYTES: usize = 4 << 20;
/// Rows of text that make a document.
const ROWS_OF_A_DOCUMENT: usize = 500;
const NUM_RUNS: usize = 3;
const MEMORY_BYTES: u64 = 8 << 30;

/// What tasks over corpora take, in seconds but for the cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorpusRates {
    /// The time of one core as a multiple of what [`traversal_costs`] says.
    pub one_core: f64,
    /// Twice the cores take this part of the time.
    pub of_twice: f64,
    /// On a device, a task with next to nothing to do.
    pub task_s: f64,
    /// What is made of an element of a rule and copied there before the first task.
    pub prepare_s: f64,
    /// A window that is counted there, and the row that comes back.
    pub window_s: f64,
    /// A row that is joined with those of other segments, on one core.
    pub join_s: f64,
    /// Opening the device.
    pub startup_s: f64,
    /// The device is used where its time is at most so much of that of the cores.
    pub margin: f64,
}

impl Default for CorpusRates {
    /// Built-in values: 16 cores as fast as 5.3 (3.7 to 5.1 were measured), and the slow end of one H100
    /// (kernels/README.md, 22 November 2026), which needed 5 to 15 ns an element for plans of weights and as much for
    /// inverse grammars, 0.5 ns a window, and 13 ns a row through ordinary memory.
    fn default() -> Self {
        Self {
            one_core: 1.0,
            of_twice: 0.66,
            task_s: 5e-3,
            prepare_s: 35e-9,
            window_s: 16e-9,
            join_s: 60e-9,
            startup_s: 0.5,
            margin: 0.8,
        }
    }
}

impl CorpusRates {
    /// How long `num_cores` cores take for what [`traversal_costs`] says takes one second.
    pub fn of_cores(&self, num_cores: usize) -> f64 {
        self.one_core * self.of_twice.powf((num_cores.max(1) as f64).log2())
    }
}

/// What a device needed for the sequences of a segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorpusTimes {
    /// With nothing of the segment on the device.
    pub first_s: f64,
    /// After that.
    pub again_s: f64,
}

/// What devices and cores are measured with.
#[derive(Debug)]
pub(super) struct ProbeCorpora {
    large: Vec<u8>,
    tiny: Vec<u8>,
}

impl ProbeCorpora {
    pub(super) fn new() -> Result<Self> {
        let rows = text::rows(TEXT_BYTES);
        let documents: Vec<Vec<u8>> =
            rows.chunks(ROWS_OF_A_DOCUMENT).map(|rows| rows.join(&b"\n"[..])).collect();
        Ok(Self { large: written(&documents)?, tiny: written(&documents[..1])? })
    }

    /// The large one, with nothing derived yet.
    pub(super) fn large(&self) -> Result<Corpus> {
        fresh(&self.large)
    }
}

fn written(documents: &[Vec<u8>]) -> Result<Vec<u8>> {
    let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    for (doc, text) in documents.iter().enumerate() {
        builder.push_document(&doc.to_string(), text)?;
    }
    Ok(builder.finish(None)?.0)
}

/// The corpus with nothing derived yet.
fn fresh(file: &[u8]) -> Result<Corpus> {
    Ok(Corpus::from_bytes("calibration", file, &OpenLimits::default())?.1)
}

fn shape(corpus: &Corpus) -> SegmentShape {
    corpus.segments().iter().map(|segment| SegmentShape::from(segment.as_ref())).sum()
}

/// How many windows of `n` words there are at most: each begins in one word, and at most n - 1 of them in an
/// element.
pub fn most_windows(shape: SegmentShape, n: usize) -> u64 {
    let reach = n.saturating_sub(1) as u64;
    shape.num_elements.saturating_mul(reach).min(shape.num_words)
}

/// Seconds of one core for sequences of `n` words, by the table of the traversals.
pub fn one_core_s(shape: SegmentShape, n: usize) -> f64 {
    let costs = traversal_costs(TraversalTask::SequenceCount, shape, n);
    costs.map(|(_, nanoseconds)| nanoseconds).fold(f64::MAX, f64::min) * 1e-9
}

/// How one core and all of them compare with [`one_core_s`].
pub(super) fn measure_cores(corpora: &ProbeCorpora, num_cores: usize) -> Result<[f64; 2]> {
    let corpus = fresh(&corpora.large)?;
    let vocabulary = Arc::new(Vocabulary::new(&corpus)?);
    let expected = one_core_s(shape(&corpus), NUM_WORDS);
    let ratio = |num_threads: usize| -> Result<f64> {
        let pool = ThreadPoolBuilder::new().num_threads(num_threads).build();
        let pool = pool.map_err(|error| Error::external("starting threads", error))?;
        let count = || {
            let vocabulary = vocabulary.clone();
            SequenceCounts::with_vocabulary(vocabulary, NUM_WORDS, Traversal::Auto, MEMORY_BYTES)
        };
        let mut least = f64::MAX;
        for _ in 0..NUM_RUNS {
            let start = Instant::now();
            std::hint::black_box(pool.install(count)?);
            least = least.min(start.elapsed().as_secs_f64());
        }
        Ok(least / expected)
    };
    Ok([ratio(1)?, ratio(num_cores)?])
}

/// What a device needs: a task, an element that is prepared, a window. `None` where it cannot count.
pub(super) fn measure_device_corpora(
    probe: &mut dyn DeviceProbe,
    corpora: &ProbeCorpora,
) -> Result<Option<[f64; 3]>> {
    let mut least = |file: &[u8]| -> Result<Option<(CorpusTimes, SegmentShape)>> {
        let mut least = CorpusTimes { first_s: f64::MAX, again_s: f64::MAX };
        let mut shape_of = None;
        for _ in 0..NUM_RUNS {
            let corpus = fresh(file)?;
            let Some(times) = probe.corpus_times(&corpus.segments()[0], NUM_WORDS)? else {
                return Ok(None);
            };
            least.first_s = least.first_s.min(times.first_s);
            least.again_s = least.again_s.min(times.again_s);
            shape_of = Some(shape(&corpus));
        }
        Ok(shape_of.map(|shape| (least, shape)))
    };
    let (Some((tiny, _)), Some((large, shape))) = (least(&corpora.tiny)?, least(&corpora.large)?)
    else {
        return Ok(None);
    };
    let windows = most_windows(shape, NUM_WORDS).max(1) as f64;
    let elements = shape.num_elements.max(1) as f64;
    // A picosecond at least: files hold numbers above 0.
    let each = |seconds: f64, number: f64| (seconds / number).max(1e-12);
    Ok(Some([
        tiny.first_s,
        each(large.first_s - large.again_s, elements),
        each(large.again_s - tiny.again_s, windows),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_cores_take_less_time_but_not_in_proportion() {
        let rates = CorpusRates { one_core: 2.0, ..CorpusRates::default() };
        let times: Vec<_> = [0, 1, 2, 16, 1000].map(|cores| rates.of_cores(cores)).to_vec();
        assert_eq!(times[..2], [2.0, 2.0]);
        assert!(times.windows(2).skip(1).all(|pair| pair[0] > pair[1] && pair[1] > 0.0));
        assert!((5.0..5.5).contains(&(times[1] / times[3])), "{times:?}");
    }

    #[test]
    fn windows_are_bounded_by_words_and_elements() {
        let shape = SegmentShape { num_docs: 1, num_words: 100, num_elements: 30, len_bytes: 600 };
        let bounds = [0, 1, 2, 3, 5, usize::MAX].map(|n| most_windows(shape, n));
        assert_eq!(bounds, [0, 0, 30, 60, 100, 100]);
    }
}
