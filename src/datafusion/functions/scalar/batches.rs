//! The place in which batches of a call are answered: the cores, or a device, which answers together what waits.
//!
//! ```text
//! partition 0   rows ─▶ checked, cut at segments ─▶ asks the device ······························▶ answers
//! partition 1   rows ─▶ checked, cut at segments ─────────┐ waits ┐
//! partition 2   rows ─▶ checked, cut at segments ─────────┘ waits ┴─▶ one of them asks for both ──▶ answers
//! ```
//!
//! A device takes about as long for 8,192 rows as for 100,000, so those that come while it works are asked together.
//! No plan changes for that, and no row waits for rows that are not there yet. Each batch is checked, limited and
//! joined by itself, with the code of the cores, so its errors and its rows are those of the cores.
//!
//! The place of each batch is chosen by the rates of earlier ones ([`crate::placement`]). If a device fails, the cores
//! answer, and so the rest of the statement; the log has the reason.

use std::collections::BTreeMap;
use std::mem::take;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use datafusion::error::Result;

use crate::options::Device;
use crate::placement::{BatchWork, Choice, DeviceSession, MIN_ROWS, QuestionKind, choose_batch};
use crate::planning::table::LoadedTable;
use tadoc::accelerator::{RowAccount, SegmentTask, SegmentWork, Step};
use tadoc::error::{Error, Result as TadocResult};
use tadoc::read::{Answers, Ask, Questions};
use tadoc::segment::{Corpus, Segment};

/// Bytes of text that a core reads in the time in which it answers a question.
const QUESTION_BYTES: u64 = 1 << 10;

/// Values by the index of the segment.
type BySegment<T> = BTreeMap<usize, T>;
/// The questions of a segment that belong to a batch.
type Ranges = BySegment<Range<usize>>;

/// The batches of one call in one statement.
#[derive(Debug)]
pub(super) struct Batches {
    devices: Arc<DeviceSession>,
    /// Batches that wait for the device.
    waiting: Mutex<Vec<Arc<Waiting>>>,
    /// Held by the batch that asks the device.
    turn: Mutex<()>,
    has_failed: AtomicBool,
    has_said: AtomicBool,
}

/// A batch that waits for the device.
#[derive(Debug)]
struct Waiting {
    /// The questions, until somebody asks them.
    questions: Mutex<BySegment<Questions>>,
    answers: Mutex<Option<TadocResult<BySegment<Answers>>>>,
}

impl Batches {
    pub(super) fn new(devices: Arc<DeviceSession>) -> Self {
        Self {
            devices,
            waiting: Mutex::default(),
            turn: Mutex::default(),
            has_failed: AtomicBool::new(false),
            has_said: AtomicBool::new(false),
        }
    }

    /// Returns the answers of a batch of `num_rows` rows to the corpus of `table`: those of `on_cores`, or of
    /// `on_device`, which gets somebody to ask.
    ///
    /// # Errors
    /// A plan error if a device is demanded and missing. The inner result is that of the batch.
    pub(super) fn answer<T>(
        &self,
        table: &LoadedTable,
        kind: QuestionKind,
        num_rows: usize,
        on_cores: impl FnOnce() -> TadocResult<T>,
        on_device: impl FnOnce(&Ask<'_>) -> TadocResult<T>,
    ) -> Result<TadocResult<T>> {
        let rates = &table.corpus.batches;
        let choice = self.choose(table, kind, num_rows)?;
        if !choice.is_on_device {
            if choice.is_missed {
                self.devices.miss((num_rows as u64).saturating_mul(QUESTION_BYTES));
            }
            let _running = (num_rows >= MIN_ROWS).then(|| rates.begin(kind, num_rows, false));
            return Ok(on_cores());
        }
        self.say(kind, &choice);
        let corpus = &table.corpus.corpus;
        let has_copies = self.devices.missing_elements(SegmentTask::Questions, corpus.segments()) == 0;
        let running = has_copies.then(|| rates.begin(kind, num_rows, true));
        let max_bytes = table.options.gpu_memory_bytes;
        let answer = on_device(&|questions| self.ask(corpus, max_bytes, questions));
        drop(running);
        match answer {
            Err(error @ Error::External { .. }) => {
                tracing::warn!(?kind, reason = %error, "answering questions on the CPU");
                self.has_failed.store(true, Ordering::Relaxed);
                Ok(on_cores())
            }
            answer => Ok(answer),
        }
    }

    fn choose(&self, table: &LoadedTable, kind: QuestionKind, num_rows: usize) -> Result<Choice> {
        let corpus = &table.corpus.corpus;
        let cores = |reason: &str| Choice { is_on_device: false, reason: reason.to_owned(), is_missed: false };
        if self.has_failed.load(Ordering::Relaxed) {
            return Ok(cores("the device failed"));
        }
        match table.options.device {
            Device::Cpu => return Ok(cores("tadoc.device = cpu")),
            Device::Gpu => {
                self.devices.demand()?;
                return Ok(Choice { is_on_device: true, reason: String::new(), is_missed: false });
            }
            Device::Auto if num_rows < MIN_ROWS => return Ok(cores("there are few questions")),
            Device::Auto => {}
        }
        let segments = corpus.segments();
        let work = BatchWork {
            num_rows,
            text_bytes: segments.iter().map(|segment| len_bytes(segment)).fold(0, u64::saturating_add),
            missing_elements: self.devices.missing_elements(SegmentTask::Questions, segments),
            known: table.corpus.batches.known(kind, num_rows),
            are_words_kept: kind == QuestionKind::Counts && segments.iter().all(|segment| segment.keeps_doc_words()),
        };
        let is_on_device = |choice: &Choice| choice.is_on_device;
        Ok(self.devices.decide(|state| choose_batch(&work, state), is_on_device))
    }

    /// Logs the first time that a device is chosen.
    fn say(&self, kind: QuestionKind, choice: &Choice) {
        if !self.has_said.swap(true, Ordering::Relaxed) {
            tracing::info!(?kind, reason = %choice.reason, "answering questions on a device");
        }
    }

    /// Returns the answers to `questions`, which are asked together with those that wait.
    fn ask(&self, corpus: &Corpus, max_bytes: u64, questions: BySegment<Questions>) -> TadocResult<BySegment<Answers>> {
        if questions.is_empty() {
            return Ok(BySegment::new());
        }
        let own = Arc::new(Waiting { questions: Mutex::new(questions), answers: Mutex::default() });
        lock(&self.waiting).push(Arc::clone(&own));
        let turn = lock(&self.turn);
        if lock(&own.answers).is_none() {
            let waiting = take(&mut *lock(&self.waiting));
            let questions = waiting.iter().map(|one| take(&mut *lock(&one.questions))).collect();
            let answers = together(questions, |questions| self.ask_device(corpus, max_bytes, questions));
            for (one, answers) in waiting.iter().zip(answers) {
                *lock(&one.answers) = Some(answers);
            }
        }
        drop(turn);
        let answers = lock(&own.answers).take();
        answers.unwrap_or_else(|| Err(Error::external("a batch of questions", "the batch that asked for it broke")))
    }

    fn ask_device(
        &self,
        corpus: &Corpus,
        max_bytes: u64,
        questions: BySegment<Questions>,
    ) -> TadocResult<BySegment<Answers>> {
        let missing = || Error::external("a batch of questions", "there is no device");
        let devices = self.devices.accelerator().ok_or_else(missing)?;
        let segments: Vec<Arc<Segment>> = questions.keys().map(|&at| Arc::clone(&corpus.segments()[at])).collect();
        let (places, questions): (Vec<usize>, Vec<Questions>) = questions.into_iter().unzip();
        let work = SegmentWork { segments: &segments, max_bytes, account: &NoAccount };
        let answers = devices.answers(work, &questions)?;
        Ok(places.into_iter().zip(answers).collect())
    }
}

/// Returns the answers to each of `asked`. All are asked by one call of `ask`.
fn together(
    mut asked: Vec<BySegment<Questions>>,
    ask: impl FnOnce(BySegment<Questions>) -> TadocResult<BySegment<Answers>>,
) -> Vec<TadocResult<BySegment<Answers>>> {
    if asked.len() == 1 {
        return asked.pop().map(ask).into_iter().collect();
    }
    let num_batches = asked.len();
    let answers = join(asked).and_then(|(questions, ranges)| Ok((ask(questions)?, ranges)));
    match answers {
        Ok((answers, ranges)) => ranges.iter().map(|ranges| parts(&answers, ranges)).collect(),
        Err(error) => {
            let copy = |_| Err(Error::external("a batch of questions", error.to_string()));
            (0..num_batches).map(copy).collect()
        }
    }
}

/// Returns the questions of all batches, and where those of each are.
fn join(asked: Vec<BySegment<Questions>>) -> TadocResult<(BySegment<Questions>, Vec<Ranges>)> {
    let mut all: BySegment<Questions> = BySegment::new();
    let mut ranges = Vec::with_capacity(asked.len());
    for questions in asked {
        let mut own = BySegment::new();
        for (segment_idx, questions) in questions {
            let len = questions.len();
            let end = match all.get_mut(&segment_idx) {
                Some(before) => {
                    before.append(questions)?;
                    before.len()
                }
                None => {
                    all.insert(segment_idx, questions);
                    len
                }
            };
            own.insert(segment_idx, end - len..end);
        }
        ranges.push(own);
    }
    Ok((all, ranges))
}

/// Returns the answers that are at `ranges`.
fn parts(answers: &BySegment<Answers>, ranges: &Ranges) -> TadocResult<BySegment<Answers>> {
    let part = |(&segment_idx, range): (&usize, &Range<usize>)| {
        let missing = || Error::external("a batch of questions", "the device left a segment out");
        let answers = answers.get(&segment_idx).ok_or_else(missing)?;
        Ok((segment_idx, answers.part(range.clone())?))
    };
    ranges.iter().map(part).collect()
}

fn len_bytes(segment: &Segment) -> u64 {
    segment.dag.len_bytes(segment.dag.num_terminals())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allows all rows. The function has asked for the memory of its answers.
struct NoAccount;

impl RowAccount for NoAccount {
    fn reserve(&self, _: usize, _: usize) -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }

    fn add_time(&self, _: Step, _: Duration) {}

    fn add_upload(&self, _: u64) {}
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::*;
    use crate::placement::fake::{FakeDevices, session};
    use crate::session::TadocSessionStateBuilderExt;
    use crate::throughput::DeviceState;
    use tadoc::build::{CorpusBuilder, IngestOptions};
    use tadoc::ids::{DocId, WordId};
    use tadoc::read::{DocPassage, DocWord};

    const NUM_DOCS: usize = 60;
    /// Rows of a batch, and of the table of questions.
    const BATCH_ROWS: usize = 50;
    const NUM_ROWS: usize = 2000;

    /// Writes documents in blocks so small that some are cut, and returns the location.
    fn corpus(folder: &std::path::Path) -> String {
        let options = IngestOptions { block_bytes: 700, ..IngestOptions::default() };
        let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
        for doc in 0..NUM_DOCS {
            let text = format!("to be {doc} or not, ").repeat(doc * 7 % 90);
            builder.push_document(&doc.to_string(), text.as_bytes()).unwrap();
        }
        let path = folder.join("c.tadoc");
        std::fs::write(&path, builder.finish(None).unwrap().0).unwrap();
        path.display().to_string()
    }

    async fn rows(context: &SessionContext, sql: &str) -> Result<String> {
        let rows = context.sql(sql).await?.collect().await?;
        Ok(pretty_format_batches(&rows)?.to_string())
    }

    fn context(fake: &Arc<FakeDevices>) -> SessionContext {
        let config = SessionConfig::new().with_batch_size(BATCH_ROWS).with_target_partitions(8);
        let config = config.with_extension(Arc::new(session(fake)));
        let builder = SessionStateBuilder::new().with_config(config).with_default_features();
        SessionContext::new_with_state(builder.with_tadoc().build())
    }

    /// Questions to all documents, with NULL, passages across cuts, and words that are nowhere.
    fn questions(location: &str) -> String {
        format!(
            "SELECT id, extract_text('{location}', doc, pos, 40) AS text, count_word('{location}', doc, word) AS number, \
             search_word('{location}', doc, word) AS places FROM (SELECT id, nullif(id % 61, 60) AS doc, id % 5 AS pos, \
             ['to', 'be', 'nowhere', '7', NULL][1 + id % 5] AS word FROM (SELECT value AS id FROM \
             generate_series(0, {}))) WHERE doc IS NULL OR doc % 90 > 0 ORDER BY id",
            NUM_ROWS - 1
        )
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 8)]
    async fn batches_that_wait_are_asked_together_and_have_the_rows_of_the_cores() {
        let folder = tempfile::tempdir().unwrap();
        let location = corpus(folder.path());
        let fake = FakeDevices::new(DeviceState::Open);
        let context = context(&fake);
        let sql = questions(&location);
        rows(&context, "SET tadoc.device = 'cpu'").await.unwrap();
        let expected = rows(&context, &sql).await.unwrap();
        assert_eq!(fake.num_answers(), 0);
        rows(&context, "SET tadoc.device = 'gpu'").await.unwrap();
        assert!(rows(&context, &sql).await.unwrap() == expected);
        // Each of the three functions has as many batches.
        let num_batches = 3 * NUM_ROWS / BATCH_ROWS;
        let num_answers = fake.num_answers();
        assert!(num_answers >= 3 && num_answers < num_batches, "{num_answers} of {num_batches}");
        // A row of one statement that is wrong is named.
        let beyond = format!("SELECT count_word('{location}', id, 'to') FROM (SELECT unnest([1, 999]) AS id)");
        let error = rows(&context, &beyond).await.unwrap_err().to_string();
        assert!(error.contains("doc_id 999 and word 'to'"), "{error}");
        fake.set_problem("it is lost");
        let error = rows(&context, &sql).await.unwrap_err().to_string();
        assert!(error.contains("tadoc.device = gpu: it is lost; SET tadoc.device"), "{error}");
        rows(&context, "SET tadoc.device = 'auto'").await.unwrap();
        assert!(rows(&context, &sql).await.unwrap() == expected);
    }

    fn passages(len: u64) -> Questions {
        let passage = |byte_offset| DocPassage { doc: DocId::FIRST, byte_offset, byte_len: 1 };
        Questions::Passages((0..len).map(passage).collect())
    }

    /// Answers each passage with its offset.
    fn offsets(asked: BySegment<Questions>) -> BySegment<Answers> {
        let answer = |(at, questions): (usize, Questions)| {
            let Questions::Passages(passages) = questions else { panic!("{questions:?}") };
            let bytes: Vec<u8> = passages.iter().map(|passage| passage.byte_offset as u8).collect();
            let ends = (1..=bytes.len()).collect();
            (at, Answers::Passages { bytes, ends })
        };
        asked.into_iter().map(answer).collect()
    }

    #[test]
    fn each_batch_gets_its_answers() {
        let asked = || {
            vec![
                BySegment::from([(0, passages(3)), (4, passages(1))]),
                BySegment::from([(4, passages(5))]),
                BySegment::from([(0, passages(2)), (7, passages(2))]),
            ]
        };
        let got = together(asked(), |questions| {
            let lens: Vec<(usize, usize)> = questions.iter().map(|(&at, asked)| (at, asked.len())).collect();
            assert_eq!(lens, [(0, 5), (4, 6), (7, 2)]);
            Ok(offsets(questions))
        });
        let got: Vec<_> = got.into_iter().map(|answers| answers.unwrap()).collect();
        let expected: Vec<_> = asked().into_iter().map(offsets).collect();
        assert_eq!(got, expected);
        // An error is that of all, and so are questions of several kinds and answers that lack a segment.
        let failed = together(asked(), |_| Err(Error::external("a device", "it broke")));
        assert!(failed.len() == 3 && failed.iter().all(|answer| answer.is_err()));
        let word = DocWord { doc: DocId::FIRST, word: WordId::from(1) };
        let mixed = vec![BySegment::from([(0, passages(3))]), BySegment::from([(0, Questions::Counts(vec![word]))])];
        assert!(together(mixed, |_| unreachable!()).iter().all(|answer| answer.is_err()));
        let short = together(asked(), |mut questions| {
            questions.remove(&7);
            Ok(offsets(questions))
        });
        assert_eq!(short.iter().map(|answer| answer.is_ok()).collect::<Vec<_>>(), [true, true, false]);
    }
}
