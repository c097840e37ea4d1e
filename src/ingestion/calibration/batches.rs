//! Batches of questions to a corpus: what cores and a device need for them.
//!
//! ```text
//! corpus of 4 MiB ─▶ passages of 16 bytes, then of 512  ─▶ a passage, a byte of it
//!                    words of all documents             ─▶ a byte that is read
//!                    one passage                        ─▶ device: a batch with hardly any
//!                    the first time, and again          ─▶ device: what is prepared of an element
//! ```
//!
//! What is measured is measured on one core and on the device; how much faster all cores are is taken to
//! be the same for all machines. Passages of larger texts wait longer for memory: [`BatchRates::passage_s`]
//! is that of the text above.

use std::hint::black_box;
use std::time::Instant;

use rayon::ThreadPoolBuilder;

use crate::access::{ExtractQuery, WordPlan, WordQuery, WordTask, extract_batch};
use crate::corpus::Corpus;
use crate::error::{Error, Result};

use super::corpora::ProbeCorpora;
use super::device::DeviceProbe;
use super::file::{Number, SECONDS, Slot};
use super::{CorpusTimes, DeviceCalibration};

const NUM_QUESTIONS: usize = 2048;
const SHORT_BYTES: u64 = 16;
const LONG_BYTES: u64 = 512;
const NUM_RUNS: usize = 3;
/// Files hold numbers above 0.
const LEAST_S: f64 = 1e-12;
/// Bytes of text that [`BatchRates::passage_s`] is about.
pub const PROBE_TEXT_BYTES: f64 = (4 << 20) as f64;

/// What batches take, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchRates {
    /// On one core, a passage without its bytes.
    pub passage_s: f64,
    /// On one core, a byte of a passage.
    pub passage_byte_s: f64,
    /// On one core, a byte of text that is read for its words.
    pub word_byte_s: f64,
    /// Twice the cores take this part of the time.
    pub of_twice: f64,
    /// On a device, a batch with next to nothing in it; for each segment.
    pub device_batch_s: f64,
    /// A question that is sent, and answered.
    pub device_question_s: f64,
    /// A byte of a passage that is written there and comes back.
    pub device_passage_byte_s: f64,
    /// A byte of text that is read there for its words.
    pub device_word_byte_s: f64,
    /// A place of a word that is sorted there and comes back.
    pub device_place_s: f64,
    /// What is made of an element of a rule and copied there before the first batch.
    pub prepare_s: f64,
    /// Opening the device.
    pub startup_s: f64,
    /// The device is used where its time is at most so much of that of the cores.
    pub margin: f64,
}

impl Default for BatchRates {
    /// Built-in values: cores at the fast end of those that were measured (benches/README.md: 0.84 µs a
    /// passage at 10 MB, 16 ns a place, two cores 1.5 to 2.1 times as fast as one), and a device at a half
    /// to a tenth of an H200 (kernels/README.md, 22 November 2026).
    fn default() -> Self {
        Self {
            passage_s: 0.6e-6,
            passage_byte_s: 0.5e-9,
            word_byte_s: 0.7e-9,
            of_twice: 0.55,
            device_batch_s: 1e-3,
            device_question_s: 60e-9,
            device_passage_byte_s: 1.2e-9,
            device_word_byte_s: 0.1e-9,
            device_place_s: 10e-9,
            prepare_s: 15e-9,
            startup_s: 0.5,
            margin: 0.8,
        }
    }
}

/// Seconds of [`BatchRates`] that one core was measured to take; `None`: not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CoreBatches {
    /// A passage.
    pub passage_s: Option<f64>,
    /// A byte of it.
    pub passage_byte_s: Option<f64>,
    /// A byte read for its words.
    pub word_byte_s: Option<f64>,
}

/// Seconds of [`BatchRates`] that a device was measured to take; `None`: not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DeviceBatches {
    /// A batch.
    pub batch_s: Option<f64>,
    /// A question.
    pub question_s: Option<f64>,
    /// A byte of a passage.
    pub passage_byte_s: Option<f64>,
    /// A byte read for its words.
    pub word_byte_s: Option<f64>,
    /// An element that is prepared.
    pub prepare_s: Option<f64>,
}

impl BatchRates {
    /// What was measured, in the place of what is built in.
    pub(super) fn of(cores: &CoreBatches, device: Option<&DeviceCalibration>) -> Self {
        let built_in = Self::default();
        let rates = Self {
            passage_s: cores.passage_s.unwrap_or(built_in.passage_s),
            passage_byte_s: cores.passage_byte_s.unwrap_or(built_in.passage_byte_s),
            word_byte_s: cores.word_byte_s.unwrap_or(built_in.word_byte_s),
            ..built_in
        };
        let Some(device) = device else { return rates };
        let batches = &device.batches;
        Self {
            device_batch_s: batches.batch_s.unwrap_or(built_in.device_batch_s),
            device_question_s: batches.question_s.unwrap_or(built_in.device_question_s),
            device_passage_byte_s: batches.passage_byte_s.unwrap_or(built_in.device_passage_byte_s),
            device_word_byte_s: batches.word_byte_s.unwrap_or(built_in.device_word_byte_s),
            prepare_s: batches.prepare_s.unwrap_or(built_in.prepare_s),
            startup_s: device.startup_s,
            ..rates
        }
    }

    /// How long `num_cores` cores take for what one does in a second.
    pub fn of_cores(&self, num_cores: usize) -> f64 {
        self.of_twice.powf((num_cores.max(1) as f64).log2())
    }
}

impl CoreBatches {
    pub(super) fn numbers(&mut self) -> Vec<Number<'_>> {
        vec![
            seconds("corpus_passage", &mut self.passage_s),
            seconds("corpus_passage_byte", &mut self.passage_byte_s),
            seconds("corpus_word_byte", &mut self.word_byte_s),
        ]
    }
}

impl DeviceBatches {
    pub(super) fn numbers(&mut self) -> Vec<Number<'_>> {
        vec![
            seconds("device_corpus_batch", &mut self.batch_s),
            seconds("device_corpus_question", &mut self.question_s),
            seconds("device_corpus_passage_byte", &mut self.passage_byte_s),
            seconds("device_corpus_word_byte", &mut self.word_byte_s),
            seconds("device_corpus_text", &mut self.prepare_s),
        ]
    }
}

fn seconds<'a>(key: &str, slot: &'a mut Option<f64>) -> Number<'a> {
    Number { key: key.to_owned(), unit: SECONDS, slot: Slot::Optional(slot) }
}

/// Questions to a segment.
struct Questions {
    /// Document, offset, length.
    short: Vec<(u32, u64, u64)>,
    long: Vec<(u32, u64, u64)>,
    /// Document and word; all documents are asked about.
    words: Vec<(u32, u32)>,
}

impl Questions {
    fn new(corpus: &Corpus) -> Self {
        let segment = &corpus.segments()[0];
        let (dag, num_words) = (&segment.dag, segment.dictionary.num_words().max(1) as usize);
        let num_docs = dag.grammar().num_docs().max(1);
        let passage = |at: usize, len: u64| {
            let doc = at % num_docs;
            // Multiples of a prime number are spread over the document.
            let places = dag.doc_len_bytes(doc).saturating_sub(len).max(1);
            (doc as u32, at as u64 * 7_919 % places, len)
        };
        let all = 0..NUM_QUESTIONS;
        Self {
            short: all.clone().map(|at| passage(at, SHORT_BYTES)).collect(),
            long: all.clone().map(|at| passage(at, LONG_BYTES)).collect(),
            words: all.map(|at| ((at % num_docs) as u32, (at * 31 % num_words) as u32)).collect(),
        }
    }
}

/// Seconds for each of `number`.
fn each(seconds: f64, number: f64) -> Option<f64> {
    Some((seconds / number.max(1.0)).max(LEAST_S))
}

/// Bytes by which long passages are longer than short ones.
fn more_bytes() -> f64 {
    (NUM_QUESTIONS as u64 * (LONG_BYTES - SHORT_BYTES)) as f64
}

/// What one core needs.
pub(super) fn measure_core_batches(corpora: &ProbeCorpora) -> Result<CoreBatches> {
    let corpus = corpora.large()?;
    let questions = Questions::new(&corpus);
    let pool = ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.map_err(|error| Error::external("starting threads", error))?;
    let least = |run: &(dyn Fn() -> Result<()> + Sync)| -> Result<f64> {
        let mut least = f64::MAX;
        for _ in 0..NUM_RUNS {
            let start = Instant::now();
            pool.install(run)?;
            least = least.min(start.elapsed().as_secs_f64());
        }
        Ok(least)
    };
    let passages_s = |asked: &[(u32, u64, u64)]| {
        let query = |&(doc, byte_offset, byte_len): &(u32, u64, u64)| ExtractQuery {
            doc_id: doc.into(),
            byte_offset,
            byte_len,
        };
        let queries: Vec<ExtractQuery> = asked.iter().map(query).collect();
        least(&|| {
            black_box(extract_batch(&corpus, &queries, u64::MAX)?);
            Ok(())
        })
    };
    let (short_s, long_s) = (passages_s(&questions.short)?, passages_s(&questions.long)?);
    let dictionary = &corpus.segments()[0].dictionary;
    let query =
        |&(doc, word): &(u32, u32)| WordQuery { doc_id: doc.into(), word: dictionary.word(word) };
    let queries: Vec<WordQuery<'_>> = questions.words.iter().map(query).collect();
    let plan = || WordPlan::new(&corpus, &queries, WordTask::CountFromRules);
    let effort_bytes = plan()?.effort_bytes();
    let words_s = least(&|| {
        black_box(plan()?.counts()?);
        Ok(())
    })?;
    Ok(CoreBatches {
        passage_s: each(short_s, NUM_QUESTIONS as f64),
        passage_byte_s: each(long_s - short_s, more_bytes()),
        word_byte_s: each(words_s, effort_bytes as f64),
    })
}

/// What a device needs; nothing where it cannot answer.
pub(super) fn measure_device_batches(
    probe: &mut dyn DeviceProbe,
    corpora: &ProbeCorpora,
) -> Result<DeviceBatches> {
    let corpus = corpora.large()?;
    let (segment, questions) = (&corpus.segments()[0], Questions::new(&corpus));
    let mut passages = |asked: &[(u32, u64, u64)]| -> Result<Option<CorpusTimes>> {
        let mut least =
            CorpusTimes { first_s: f64::MAX, again_s: f64::MAX, copy_s: 0.0, num_rows: 0 };
        for _ in 0..NUM_RUNS {
            let Some(times) = probe.passage_times(segment, asked)? else { return Ok(None) };
            least.first_s = least.first_s.min(times.first_s);
            least.again_s = least.again_s.min(times.again_s);
        }
        Ok(Some(least))
    };
    let one = passages(&questions.short[..1])?;
    let (short, long) = (passages(&questions.short)?, passages(&questions.long)?);
    let words = probe.document_words_s(segment, &questions.words)?;
    let (Some(one), Some(short), Some(long), Some(words_s)) = (one, short, long, words) else {
        return Ok(DeviceBatches::default());
    };
    let (dag, asked) = (&segment.dag, NUM_QUESTIONS as f64);
    let text_bytes = dag.len_bytes(dag.num_terminals()) as f64;
    Ok(DeviceBatches {
        batch_s: each(one.again_s, 1.0),
        question_s: each(short.again_s - one.again_s, asked),
        passage_byte_s: each(long.again_s - short.again_s, more_bytes()),
        word_byte_s: each(words_s - short.again_s, text_bytes),
        prepare_s: each(short.first_s - short.again_s, dag.grammar().symbols.len() as f64),
    })
}
