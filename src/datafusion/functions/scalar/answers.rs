//! Questions of rows to a corpus: the corpus of a call, and a column of answers from columns of arguments, in one call
//! of the library.
//!
//! Functions of rows receive values and settings, not the session. So they keep its catalogs (for the names of tables),
//! its run-time environment (stores and memory) and the cache of corpora. They cannot wait asynchronously: the first
//! batch of a query blocks its thread until the corpus is loaded. Meanwhile the runtime moves the thread's other tasks
//! to another thread.

use std::fmt;
use std::fmt::Display;
use std::future::Future;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewArray, UInt64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::catalog::CatalogProviderList;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::prelude::SessionConfig;
use tokio::runtime::{Builder, Handle, RuntimeFlavor};

use crate::corpora::CorpusCache;
use crate::corpora::living::Reading;
use crate::corpora::location::CORPUS_EXTENSION;
use crate::errors::datafusion_error;
use crate::functions::Documents;
use crate::functions::scalar::Kind;
use crate::functions::scalar::batches::Batches;
use crate::functions::strings::{Texts, int64, int64_lists};
use crate::placement::{DeviceSession, QuestionKind};
use crate::planning::table::{LoadedTable, TadocTable};
use tadoc::Error;
use tadoc::query::{WordQuery, count_batch, count_batch_by, search_batch, search_batch_by};
use tadoc::read::{ExtractQuery, document_len_bytes, extract_batch, extract_batch_by};

/// The session is that of a worker. Its configuration holds it as an extension.
#[derive(Debug, Clone, Copy)]
pub struct AtWorker;

/// Parts of a session that scalar functions keep.
pub(crate) struct Home {
    pub(crate) runtime: Arc<RuntimeEnv>,
    pub(crate) catalogs: Arc<dyn CatalogProviderList>,
    pub(crate) cache: Arc<CorpusCache>,
    pub(crate) devices: Arc<DeviceSession>,
    /// True if statements come from another machine, with other folders and tables.
    pub(crate) is_worker: bool,
}

impl fmt::Debug for Home {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Home")
    }
}

impl Home {
    /// Builds a session with the kept parts and `settings`.
    fn session(&self, settings: &ConfigOptions) -> SessionState {
        let config = SessionConfig::from(settings.clone()).with_extension(Arc::clone(&self.devices));
        SessionStateBuilder::new()
            // The kept catalogs have a default catalog. A new one would replace it.
            .with_config(config.with_create_default_catalog_and_schema(false))
            .with_runtime_env(Arc::clone(&self.runtime))
            .with_catalog_list(Arc::clone(&self.catalogs))
            .build()
    }
}

/// Corpus of one call in one query.
#[derive(Debug)]
pub(super) struct BoundCorpus {
    home: Arc<Home>,
    reading: Option<Arc<Reading>>,
    location: String,
    loaded: OnceLock<LoadedTable>,
    batches: Batches,
}

impl BoundCorpus {
    pub(super) fn new(home: Arc<Home>, reading: Option<Arc<Reading>>, location: &str) -> Self {
        let batches = Batches::new(Arc::clone(&home.devices));
        Self { home, reading, location: location.to_owned(), loaded: OnceLock::new(), batches }
    }

    /// Returns the batches of this call.
    pub(super) fn batches(&self) -> &Batches {
        &self.batches
    }

    pub(super) fn location(&self) -> &str {
        &self.location
    }

    /// Returns the corpus and the settings for it. The first caller looks it up and loads it.
    pub(super) fn loaded(&self, settings: &ConfigOptions) -> Result<&LoadedTable> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        if self.home.is_worker {
            check_is_whole(&self.location)?;
        }
        let function = Arc::new(Documents::new(Vec::new()));
        let cache = Arc::clone(&self.home.cache);
        let table = TadocTable::new(function, self.location.clone(), cache);
        let table = table.with_reading(self.reading.as_ref());
        let session = self.home.session(settings);
        let loaded = wait_for(table.load(&session))??;
        Ok(self.loaded.get_or_init(|| loaded))
    }
}

/// Checks that `location` means the same on all machines.
fn check_is_whole(location: &str) -> Result<()> {
    let is_file = location.ends_with(CORPUS_EXTENSION);
    let is_whole = location.contains("://") || location.starts_with('/');
    if is_file && is_whole {
        Ok(())
    } else {
        exec_err!("corpus: got '{location}' on a worker, expected a .tadoc file with its whole path, or its URL")
    }
}

/// Runs `future` to its end from synchronous code.
fn wait_for<T: Send>(future: impl Future<Output = T> + Send) -> Result<T> {
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            Ok(tokio::task::block_in_place(|| handle.block_on(future)))
        }
        // The waiting thread is the only one of its runtime, or there is no runtime.
        _ => std::thread::scope(|scope| {
            let run = || Ok(Builder::new_current_thread().enable_all().build()?.block_on(future));
            let outcome: std::io::Result<T> = match scope.spawn(run).join() {
                Ok(outcome) => outcome,
                Err(_) => Err(std::io::Error::other("the thread that opens a corpus broke")),
            };
            outcome.map_err(|error| datafusion_error(Error::io("opening a corpus", error)))
        }),
    }
}

/// Copies of a passage that exist at a time.
const COPIES_OF_PASSAGE: u64 = 3;

/// A batch of rows with questions.
pub(super) struct Ask<'a> {
    pub(super) kind: Kind,
    pub(super) table: &'a LoadedTable,
    pub(super) batches: &'a Batches,
    /// Columns of the arguments after the corpus.
    pub(super) columns: Vec<ArrayRef>,
}

impl Ask<'_> {
    /// Returns the answers of `num_rows` rows.
    pub(super) fn answer(&self, num_rows: usize) -> Result<ArrayRef> {
        let corpus = &self.table.corpus.corpus;
        let nulls = self.columns.iter().map(|column| column.logical_nulls());
        let nulls = nulls.reduce(|a, b| NullBuffer::union(a.as_ref(), b.as_ref())).flatten();
        let is_asked = |row: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
        let rows: Vec<usize> = (0..num_rows).filter(is_asked).collect();
        let answers = match self.kind {
            Kind::ExtractText => self.extract(&rows)?,
            Kind::CountWord => {
                let words = self.words()?;
                let queries = self.word_queries(&words, &rows)?;
                let counts = self.batches.answer(
                    self.table,
                    QuestionKind::Counts,
                    queries.len(),
                    || count_batch(corpus, &queries),
                    |ask| count_batch_by(corpus, &queries, ask),
                )?;
                int64(counts.map_err(|error| self.explain(error, &queries))?.into_iter())?
            }
            Kind::SearchWord => {
                let words = self.words()?;
                let queries = self.word_queries(&words, &rows)?;
                let max_hits = self.table.options.max_hits;
                let lists = self.batches.answer(
                    self.table,
                    QuestionKind::Places,
                    queries.len(),
                    || search_batch(corpus, &queries, max_hits),
                    |ask| search_batch_by(corpus, &queries, max_hits, ask),
                )?;
                let lists = lists.map_err(|error| self.explain(error, &queries))?;
                let (offsets, ends) = lists.into_parts();
                int64_lists(offsets.into_iter(), ends.into_iter())?
            }
        };
        if rows.len() == num_rows {
            return Ok(answers);
        }
        // Rows with NULL were skipped. The answers are moved to their own rows.
        let mut places = vec![None; num_rows];
        rows.iter().zip(0u64..).for_each(|(&row, place)| places[row] = Some(place));
        Ok(take(&answers, &UInt64Array::from(places), None)?)
    }

    /// Returns the bytes that the answers may take while they are made: passages, and their copy as a column.
    /// Rows that are errors take none.
    pub(super) fn answer_bytes(&self, num_rows: usize) -> u64 {
        if self.kind != Kind::ExtractText {
            return 0;
        }
        let numbers = self.columns.iter().map(|column| column.as_primitive_opt::<Int64Type>());
        let Some(numbers) = numbers.collect::<Option<Vec<_>>>() else { return 0 };
        let number = |idx: usize, row: usize| {
            let numbers = numbers.get(idx).filter(|numbers| numbers.is_valid(row))?;
            u64::try_from(numbers.value(row)).ok()
        };
        let passage_bytes = |row: usize| {
            let doc_id = number(0, row)?;
            let start = number(1, row)?;
            let len = number(2, row)?;
            let doc_bytes = document_len_bytes(&self.table.corpus.corpus, doc_id).ok()?;
            Some(doc_bytes.saturating_sub(start).min(len))
        };
        let passages = (0..num_rows).filter_map(passage_bytes).fold(0, u64::saturating_add);
        passages.saturating_mul(COPIES_OF_PASSAGE)
    }

    fn extract(&self, rows: &[usize]) -> Result<ArrayRef> {
        let numbers: Vec<&Int64Array> = self.columns.iter().map(|column| column.as_primitive::<Int64Type>()).collect();
        let number = |idx: usize, row: usize| self.unsigned(idx, numbers[idx].value(row));
        let query = |&row: &usize| {
            let doc_id = self.doc_id(numbers[0].value(row))?;
            let byte_offset = number(1, row)?;
            Ok(ExtractQuery { doc_id, byte_offset, byte_len: number(2, row)? })
        };
        let queries: Vec<ExtractQuery> = rows.iter().map(query).collect::<Result<_>>()?;
        let limit = self.table.options.max_output_bytes.min(i32::MAX as u64);
        let corpus = &self.table.corpus.corpus;
        let passages = self.batches.answer(
            self.table,
            QuestionKind::Passages,
            queries.len(),
            || extract_batch(corpus, &queries, limit),
            |ask| extract_batch_by(corpus, &queries, limit, ask),
        )?;
        let (bytes, ends) = passages.map_err(|error| self.explain(error, &queries))?.into_parts();
        Ok(Arc::new(Texts::new(bytes, ends)?.text()?))
    }

    fn words(&self) -> Result<StringViewArray> {
        let words = cast(&self.columns[1], &DataType::Utf8View)?;
        Ok(words.as_string_view().clone())
    }

    fn word_queries<'w>(&self, words: &'w StringViewArray, rows: &[usize]) -> Result<Vec<WordQuery<'w>>> {
        let doc_ids = self.columns[0].as_primitive::<Int64Type>();
        let query = |&row: &usize| {
            let doc_id = self.doc_id(doc_ids.value(row))?;
            Ok(WordQuery { doc_id, word: words.value(row) })
        };
        rows.iter().map(query).collect()
    }

    /// Converts the first argument after the corpus to a document id.
    fn doc_id(&self, number: i64) -> Result<u64> {
        let doc_id = self.unsigned(0, number)?;
        if self.table.source.is_dropped(doc_id) {
            Err(self.error(format!("doc_id: got {doc_id}, which was dropped, expected a document that is there")))
        } else {
            Ok(doc_id)
        }
    }

    /// Converts argument `idx` after the corpus to an unsigned number.
    fn unsigned(&self, idx: usize, number: i64) -> Result<u64> {
        u64::try_from(number).map_err(|_| {
            let (name, _) = self.kind.arguments()[idx + 1];
            self.error(format!("{name}: got {number}, expected a whole number, 0 or more"))
        })
    }

    /// Returns an error that names the arguments of the row that it concerns.
    fn explain<Q: Shown>(&self, error: Error, queries: &[Q]) -> DataFusionError {
        match error {
            Error::InBatch { query_idx, source } => {
                self.error(format!("{source}, in the row with {}", queries[query_idx].shown()))
            }
            other => datafusion_error(other),
        }
    }

    fn error(&self, what: impl Display) -> DataFusionError {
        exec_datafusion_err!("{}: {what}; usage: {}", self.kind.name(), self.kind.usage())
    }
}

/// A query that can be described in words.
trait Shown {
    fn shown(&self) -> String;
}

impl Shown for ExtractQuery {
    fn shown(&self) -> String {
        format!("doc_id {} and byte_offset {}", self.doc_id, self.byte_offset)
    }
}

impl Shown for WordQuery<'_> {
    fn shown(&self) -> String {
        format!("doc_id {} and word '{}'", self.doc_id, self.word)
    }
}
