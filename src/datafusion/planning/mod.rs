//! Scans of table functions: the table, the plan's node and the rows.
//!
//! ```text
//! table ─ scan ─▶ ScanSpec ─ prepare, facts ─▶ ScanPlan ─▶ exec ─▶ Execution ─▶ output
//!                   ║                                                 └ function: computes the rows
//!                   ╚══ a message to another machine ═▶ the same ScanSpec, planned there
//! ```
//!
//! [`ScanSpec`] is the scan as a statement asks for it: function, files and version, projection, filters, limit and
//! settings. [`ScanPlan`] adds what this machine decides: what the function prepared, the parts of segments, cores or a
//! device, partitions. Each is made once, complete. [`Execution`] is one partition under execution.
//!
//! Reading order: `signature` and `arguments` (of a function), `function` (its trait), `filter` and `side_tables`
//! (parts of a spec), `file_names`, `subcorpus`, `table` and `resolved` (from a statement to a spec), `portions`
//! (corpora larger than memory), `plan` (decisions of this machine), `exec`, `output` and `answers` (rows), `long_rows`
//! (plans around scans).

pub(crate) mod answers;
pub(crate) mod arguments;
pub(crate) mod exec;
pub(crate) mod file_names;
pub(crate) mod filter;
pub(crate) mod function;
pub(crate) mod long_rows;
pub(crate) mod output;
pub(crate) mod parcels;
pub(crate) mod plan;
pub(crate) mod portions;
pub(crate) mod resolved;
mod side_tables;
pub(crate) mod signature;
pub(crate) mod subcorpus;
pub(crate) mod table;

pub(crate) use exec::SpreadRows;
pub use exec::TadocExec;
pub use long_rows::{BatchRows, enough_memory};
pub(crate) use plan::ScanPlan;
pub use portions::Spreading;
pub use side_tables::Texts;
pub use signature::{Argument, ArgumentKind, Column, ColumnKind, Signature};
pub use table::TadocTable;

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::compute::and;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, Time};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::OnceCell;
use tracing::Instrument;

use crate::corpora::living::LivingView;
use crate::corpora::location::SourceFile;
use crate::corpora::open_file::RowSource;
use crate::corpora::{
    CommonWords, CorpusCache, CountedCorpus, FactTable, LoadContext, LoadedCorpus, OpenFile, Sought, Source,
};
use crate::errors::task_error;
use crate::options::TadocOptions;
use crate::planning::filter::{Filters, Stage, project_schema};
use crate::planning::function::BoundFunction;
use crate::planning::output::{Output, SkippedSegments};
use crate::planning::parcels::Parcels;
use crate::planning::portions::WordNumbers;
use tadoc::analytics::{Fold, Vocabulary};
use tadoc::query::Query;
use tadoc::segment::Segment;
use tadoc::text::Synonyms;

/// A scan as a statement asks for it. It is complete, and travels to other machines as a value. `source` names
/// the files that are read; here they are opened.
#[derive(Debug, Clone)]
pub struct ScanSpec<S = Source> {
    /// The function of the call.
    pub function: BoundFunction,
    /// Location as the user wrote it.
    pub location: String,
    /// The files that are read.
    pub source: S,
    /// Schema with all columns of the function.
    pub schema: SchemaRef,
    /// Positions of the columns that are returned.
    pub projection: Vec<usize>,
    /// Filters that the scan evaluates.
    pub filters: Filters,
    /// Most rows that are returned.
    pub limit: Option<usize>,
    /// The settings of the statement.
    pub options: TadocOptions,
    /// Set if the rows are packed for other machines. The columns are those of packed rows then.
    pub parcels: Option<Arc<Parcels>>,
    /// The files of the whole corpus, if their words number those of packed rows, alike on all machines.
    pub numbered_by: Option<S>,
    /// Synonyms of the function's fold, if it has any.
    pub synonyms: Option<Arc<Synonyms>>,
    /// Texts of another table that the function compares with the corpus, if it does.
    pub texts: Option<Arc<Texts>>,
}

impl<S> ScanSpec<S> {
    /// Returns the same scan of `source`. It numbers words by itself.
    pub fn with_source<T>(&self, source: T) -> ScanSpec<T> {
        ScanSpec {
            function: Arc::clone(&self.function),
            location: self.location.clone(),
            source,
            schema: Arc::clone(&self.schema),
            projection: self.projection.clone(),
            filters: self.filters.clone(),
            limit: self.limit,
            options: self.options.clone(),
            parcels: self.parcels.clone(),
            numbered_by: None,
            synonyms: self.synonyms.clone(),
            texts: self.texts.clone(),
        }
    }

    /// Returns the schema of the columns that are returned.
    ///
    /// # Errors
    /// An error if there is no column at one of the positions.
    pub fn projected_schema(&self) -> Result<SchemaRef> {
        project_schema(&self.schema, &self.projection)
    }
}

impl ScanSpec {
    /// Returns the corpora that are read. Empty if plain files are read.
    pub(crate) fn corpora(&self) -> &[OpenFile] {
        self.source.corpora()
    }

    /// Returns the version that is read, if the corpus is a living one.
    pub(crate) fn living(&self) -> Option<&Arc<LivingView>> {
        self.source.living()
    }

    /// Returns the sources of the rows of user columns, in order. Together they have one row for
    /// each document id.
    pub(crate) fn row_sources(&self) -> Vec<RowSource<'_>> {
        match self.living() {
            Some(view) => view.row_sources(),
            None => self.corpora().iter().map(RowSource::File).collect(),
        }
    }

    /// Returns the files that are read without being opened first.
    pub(crate) fn files(&self) -> &[SourceFile] {
        match &self.source {
            Source::Files(files) => files,
            _ => &[],
        }
    }

    /// Returns true if there is a filter.
    pub(crate) fn is_filtered(&self) -> bool {
        self.filters.stages().next().is_some()
    }

    /// Returns true if a filter or a limit chooses some documents.
    pub(crate) fn is_part(&self) -> bool {
        self.is_filtered() || self.limit.is_some()
    }

    /// Returns the names of the columns that are returned, in their order.
    pub(crate) fn projected(&self) -> impl Iterator<Item = &str> {
        self.names(&self.projection)
    }

    /// Returns the names of the columns that `stage` filters on.
    pub(crate) fn names_in(&self, stage: &Stage) -> impl Iterator<Item = &str> {
        self.names(&stage.columns)
    }

    fn names(&self, positions: &[usize]) -> impl Iterator<Item = &str> {
        positions.iter().map(|&position| self.schema.field(position).name().as_str())
    }

    /// Returns true if the column `name` is returned.
    pub(crate) fn projects(&self, name: &str) -> bool {
        self.projected().any(|projected| projected == name)
    }

    /// Returns true if the column `name` is returned or filtered on.
    pub(crate) fn uses(&self, name: &str) -> bool {
        let is_filtered = |stage: &Stage| self.names_in(stage).any(|filtered| filtered == name);
        self.projects(name) || self.filters.stages().any(is_filtered)
    }

    /// Returns true if all filters are on columns for whose names `is_one` is true.
    pub(crate) fn filters_only_on(&self, is_one: impl Fn(&str) -> bool) -> bool {
        self.filters.stages().all(|stage| self.names_in(stage).all(&is_one))
    }

    /// Evaluates the filters that need no text and returns which of `num_rows` rows pass. `column`
    /// returns the columns that the filters use, by name. Returns `None` if there are no such filters.
    pub(crate) fn mask(
        &self,
        num_rows: usize,
        column: impl Fn(&str) -> Result<ArrayRef>,
    ) -> Result<Option<BooleanArray>> {
        let mut mask: Option<BooleanArray> = None;
        for stage in self.filters.before_text() {
            let arrays = self.names_in(stage).map(&column).collect::<Result<_>>()?;
            let passed = stage.evaluate(arrays, num_rows)?;
            mask = Some(mask.map_or(Ok(passed.clone()), |mask| and(&mask, &passed))?);
        }
        Ok(mask)
    }

    /// Returns the number of document ids, including those of dropped documents.
    pub(crate) fn num_doc_ids(&self) -> u64 {
        match self.living() {
            Some(view) => view.version.num_doc_ids(),
            None => self.corpora().iter().map(|open| open.footer.num_docs()).sum(),
        }
    }

    /// Returns the ids of dropped documents, ascending.
    pub(crate) fn dropped(&self) -> &[u64] {
        self.source.dropped()
    }

    /// Returns the number of documents in all corpora.
    pub(crate) fn num_docs(&self) -> u64 {
        self.num_doc_ids().saturating_sub(self.dropped().len() as u64)
    }

    /// Returns those of `ids` that have a document.
    pub(crate) fn documents(&self, ids: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let mut dropped = self.dropped_of(&ids).iter().peekable();
        ids.filter(move |id| dropped.next_if_eq(&id).is_none())
    }

    /// Returns the number of `ids` that have a document.
    pub(crate) fn num_docs_of(&self, ids: Range<u64>) -> usize {
        let num_dropped = self.dropped_of(&ids).len();
        ids.count() - num_dropped
    }

    fn dropped_of(&self, ids: &Range<u64>) -> &[u64] {
        let dropped = self.dropped();
        let below = |end| dropped.partition_point(|&id| id < end);
        &dropped[below(ids.start)..below(ids.end)]
    }

    /// Returns the mean number of bytes of a document, in the segment in which it is largest.
    pub(crate) fn document_bytes(&self) -> u64 {
        let segments = self.corpora().iter().flat_map(|open| &open.footer.segments);
        segments.map(|segment| segment.len_bytes / segment.num_docs.max(1)).max().unwrap_or(0)
    }

    /// Returns an upper bound of the mean bytes of a list of the documents that contain a word, in
    /// the segment in which it is largest.
    pub(crate) fn list_bytes(&self) -> u64 {
        let segments = self.corpora().iter().flat_map(|open| &open.footer.segments);
        let num_docs = segments.map(|segment| {
            let tokens_per_word = segment.num_word_tokens / u64::from(segment.num_words).max(1);
            tokens_per_word.min(segment.num_docs)
        });
        num_docs.max().unwrap_or(0).saturating_mul(8)
    }

    /// Returns the mean number of bytes of `num_words` words of the text.
    pub(crate) fn words_bytes(&self, num_words: usize) -> u64 {
        let segments = || self.corpora().iter().flat_map(|open| &open.footer.segments);
        let words: u64 = segments().map(|segment| segment.num_word_tokens).sum();
        (self.len_bytes() / words.max(1)).max(1).saturating_mul(num_words as u64)
    }

    /// Returns the number of word tokens in all corpora.
    pub(crate) fn num_word_tokens(&self) -> u64 {
        let segments = self.corpora().iter().flat_map(|open| &open.footer.segments);
        segments.map(|segment| segment.num_word_tokens).fold(0, u64::saturating_add)
    }

    /// Returns the bytes of text of all corpora. For a living corpus this is an upper bound.
    pub(crate) fn len_bytes(&self) -> u64 {
        let files_bytes = self.corpora().iter().map(|open| open.footer.len_bytes());
        let fresh_bytes = self.living().map_or(0, |view| view.fresh_bytes);
        files_bytes.fold(fresh_bytes, u64::saturating_add)
    }
}

/// State that the partitions of one execution share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Documents that can match the demands. The first partition that needs them computes them.
    pub(crate) candidates: OnceLock<Option<Vec<u64>>>,
    /// Documents of all partitions that pass the filters on columns, if these are evaluated before
    /// the corpus is opened.
    pub(crate) passing: OnceCell<Vec<u64>>,
    /// The corpus with what is sought, as long as a partition uses it.
    sought: tokio::sync::Mutex<Weak<LoadedCorpus>>,
    /// Segments that the statement skips. The first partition that knows of some creates it.
    skipped: OnceLock<Mutex<SkippedSegments>>,
    made: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
}

impl Shared {
    /// Returns a value that all partitions need. The first partition computes it with `make`; the
    /// others wait for it.
    pub(crate) fn once<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let known = made.as_ref().and_then(|any| Arc::clone(any).downcast::<T>().ok());
        if let Some(known) = known {
            return Ok(known);
        }
        let value = Arc::new(make()?);
        *made = Some(value.clone());
        Ok(value)
    }
}

/// A partition of a scan under execution.
#[derive(Debug)]
pub struct Execution {
    pub(crate) plan: Arc<ScanPlan>,
    /// The scan of the plan.
    pub(crate) scan: Arc<ScanSpec>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) partition: usize,
    pub(crate) runtime: Arc<RuntimeEnv>,
    pub(crate) cache: Arc<CorpusCache>,
    pub(crate) metrics: ExecutionPlanMetricsSet,
    pub(crate) output: Output,
    /// The corpus, once it is loaded.
    pub(crate) loaded: OnceLock<Arc<LoadedCorpus>>,
    /// Numbers of the words of a larger corpus, if the scan is one of its portions and was told.
    pub(crate) numbers: Option<Arc<WordNumbers>>,
    /// The words of the whole corpus, once they are loaded, if they number those of packed rows.
    pub(crate) common: OnceLock<(Arc<LoadedCorpus>, Arc<CommonWords>)>,
}

impl Execution {
    /// Returns the counter `name` of this partition.
    pub(crate) fn counter(&self, name: &'static str) -> Count {
        MetricBuilder::new(&self.metrics).counter(name, self.partition)
    }

    /// Returns an empty memory reservation of this partition, named after `what`.
    pub(crate) fn reservation(&self, what: &str) -> MemoryReservation {
        MemoryConsumer::new(format!("Tadoc{what}[{}]", self.partition)).register(&self.runtime.memory_pool)
    }

    /// Returns the context for loading files.
    pub(crate) fn load_context(&self) -> LoadContext {
        LoadContext {
            runtime: Arc::clone(&self.runtime),
            uses: self.plan.uses,
            options: self.scan.options.clone(),
            devices: Arc::clone(&self.plan.devices),
            bytes_read: self.counter("bytes_read"),
            common: None,
            versions_made: self.scan.living().map(|_| self.counter("versions_made")),
        }
    }

    /// Returns the time metric `name` of this partition.
    pub(crate) fn time(&self, name: &'static str) -> Time {
        MetricBuilder::new(&self.metrics).subset_time(name, self.partition)
    }

    /// Returns the corpus, and loads it if it is not in memory.
    pub(crate) async fn load(&self) -> Result<Arc<LoadedCorpus>> {
        let time = self.time("time_loading");
        let _timer = time.timer();
        let mut context = self.load_context();
        if let Some(whole) = &self.scan.numbered_by {
            let words = self.cache.load_words(&context, whole).instrument(load_span()).await?;
            let common = Arc::new(CommonWords::new(words.corpus.clone(), whole.corpora()));
            context.common = Some(Arc::clone(&common));
            self.common.get_or_init(|| (words, common));
        }
        let loaded = self.cache.load(&context, &self.scan.source).instrument(load_span()).await?;
        Ok(Arc::clone(self.loaded.get_or_init(|| loaded)))
    }

    /// Returns the words of the corpus `loaded`, with the numbers of those of the whole corpus if all machines have them.
    ///
    /// # Errors
    /// An error if memory is short.
    pub(crate) fn vocabulary(&self, loaded: &LoadedCorpus, fold: &Fold) -> Result<Arc<Vocabulary>> {
        match self.common.get() {
            Some((words, common)) => loaded.vocabulary_in(words, &common.places(self.scan.corpora())?, fold),
            None => loaded.vocabulary(fold),
        }
    }

    /// Variant of [`load`](Self::load) for functions that only look for `sought`, the same in all partitions.
    /// Segments in which it cannot be are absent if the corpus is not in memory, and documents in which it cannot
    /// be may lack their text.
    pub(crate) async fn load_sought(&self, sought: Sought) -> Result<Arc<LoadedCorpus>> {
        let time = self.time("time_loading");
        let _timer = time.timer();
        // Partitions that run at the same time share what is decoded for this statement alone.
        let mut shared = self.shared.sought.lock().await;
        let loaded = match shared.upgrade() {
            Some(loaded) => loaded,
            None => {
                let context = self.load_context();
                let (loaded, num_units) =
                    self.cache.load_sought(&context, &self.scan.source, sought).instrument(load_span()).await?;
                if num_units > 0 {
                    self.counter("units_decoded").add(num_units);
                }
                *shared = Arc::downgrade(&loaded);
                loaded
            }
        };
        drop(shared);
        let loaded = Arc::clone(self.loaded.get_or_init(|| loaded));
        self.skipped_segments();
        Ok(loaded)
    }

    /// Variant of [`load_sought`](Self::load_sought) for functions that ask for nothing but the
    /// numbers of the leaves of `query`, which is sought, in documents. They may come from word lists. Returns the
    /// query, too, as it is asked of this corpus.
    pub(crate) async fn load_counted(&self, query: &Query, sought: Sought) -> Result<(Arc<LoadedCorpus>, Query)> {
        let time = self.time("time_loading");
        let counted = {
            let _timer = time.timer();
            self.cache.load_counted(&self.load_context(), &self.scan.source, &sought).instrument(load_span()).await?
        };
        let Some(CountedCorpus { corpus, tally }) = counted else {
            return Ok((self.load_sought(sought).await?, query.clone()));
        };
        let counted = Arc::clone(self.loaded.get_or_init(|| corpus));
        self.counter("segments_listed").add(tally.num_listed);
        for (name, number) in [("units_decoded", tally.num_units), ("grammars_counted", tally.num_grammars)] {
            if number > 0 {
                self.counter(name).add(number);
            }
        }
        self.skipped_segments();
        Ok((counted, query.with_leaf_words()))
    }

    /// Notes that of the documents `seen` only those of `kept`, which ascend, are looked into.
    pub(crate) fn note_kept(&self, seen: &Range<u64>, kept: &[u64]) {
        let skipped = self.skipped_segments();
        let num = skipped.lock().unwrap_or_else(PoisonError::into_inner).note(seen, kept);
        self.counter("segments_skipped").add(num);
    }

    /// Returns the segments that the statement skips. On first use, those that the corpus was opened
    /// without are counted.
    fn skipped_segments(&self) -> &Mutex<SkippedSegments> {
        self.shared.skipped.get_or_init(|| {
            let segments = self.loaded.get().map_or(&[][..], |loaded| loaded.corpus.segments());
            let is_absent = |segment: &Arc<Segment>| segment.is_absent();
            let num_absent = segments.iter().filter(|segment| is_absent(segment)).count();
            self.counter("segments_skipped").add(num_absent);
            let docs = self.scan.source.docs_of_segments();
            let is_counted = |place: usize| segments.get(place).is_some_and(is_absent);
            Mutex::new(SkippedSegments::new(docs, is_counted))
        })
    }

    /// Loads the words of the corpus and their counts. Returns the whole corpus if it is already in
    /// memory.
    pub(crate) async fn load_words(&self) -> Result<Arc<LoadedCorpus>> {
        let time = self.time("time_loading");
        let _timer = time.timer();
        self.cache.load_words(&self.load_context(), &self.scan.source).instrument(load_span()).await
    }

    /// Loads the paths and lengths of documents of the files at `places`, or of all files.
    pub(crate) async fn load_facts(&self, places: Option<&[usize]>) -> Result<FactTable> {
        let time = self.time("time_loading");
        let _timer = time.timer();
        self.cache.load_facts(&self.load_context(), &self.scan.source, places).instrument(load_span()).await
    }

    /// Returns the state that the function prepared.
    ///
    /// # Errors
    /// An internal error if it prepared something else.
    pub(crate) fn prepared<T: Send + Sync + 'static>(&self) -> Result<Arc<T>> {
        self.plan.prepared.get()
    }

    /// Loads the corpus and calls `work` with it on a blocking thread.
    pub(crate) fn with_corpus(
        self,
        work: impl FnOnce(Execution, &LoadedCorpus) -> Result<()> + Send + 'static,
    ) -> BoxFuture<'static, Result<()>> {
        async move {
            let loaded = self.load().await?;
            self.blocking(move |run| work(run, &loaded)).await
        }
        .boxed()
    }

    /// Runs CPU-bound work on a blocking thread.
    pub(crate) async fn blocking(mut self, work: impl FnOnce(Execution) -> Result<()> + Send + 'static) -> Result<()> {
        // Threads for blocking work know no spans of the task.
        let span = tracing::info_span!("tadoc_compute");
        let timed = move || {
            let _entered = span.entered();
            self.output.start_computing();
            let start = Instant::now();
            let note = self.note_time();
            work(self)?;
            note(start.elapsed());
            Ok(())
        };
        tokio::task::spawn_blocking(timed).await.map_err(task_error)?
    }

    /// Returns a function that records the task's time for later placements. It records only if all
    /// rows are wanted and the reader has not left.
    fn note_time(&self) -> impl FnOnce(Duration) + use<> {
        let is_whole = self.partition == 0 && self.scan.limit.is_none();
        let timed = self.plan.placement.timed().filter(|_| is_whole);
        let noted = timed.zip(self.loaded.get().cloned());
        let noted = noted.map(|noted| (noted, self.output.canceller()));
        move |time| {
            if let Some((((task, finds), loaded), reader)) = noted
                && !reader.is_closed()
            {
                loaded.tasks.note_time(task, finds, time.as_secs_f64());
            }
        }
    }

    /// Sends `num_rows` rows from a blocking thread. `column` computes each projected column, by name. Returns
    /// false if the function should stop.
    pub(crate) fn send(&mut self, num_rows: usize, column: impl FnMut(&str) -> Result<ArrayRef>) -> Result<bool> {
        let columns = self.scan.projected().map(column).collect::<Result<_>>()?;
        self.output.send_columns(columns, num_rows)
    }

    /// Variant of [`send`](Self::send) for asynchronous tasks.
    pub(crate) async fn send_async(
        &mut self,
        num_rows: usize,
        column: impl FnMut(&str) -> Result<ArrayRef>,
    ) -> Result<bool> {
        let columns = self.scan.projected().map(column).collect::<Result<_>>()?;
        self.output.send_columns_async(columns, num_rows).await
    }
}

/// Returns the span of loading what a scan needs.
fn load_span() -> tracing::Span {
    tracing::info_span!("tadoc_load")
}

/// Returns the error of a function that is asked for a column `name` which is not in its signature.
pub(crate) fn no_column<T>(name: &str) -> Result<T> {
    internal_err!("the function has no column {name}")
}

/// Returns the positions that `mask` selects. NULL does not select.
pub(crate) fn selected(mask: &BooleanArray) -> impl Iterator<Item = usize> + '_ {
    mask.iter().enumerate().filter(|(_, pass)| *pass == Some(true)).map(|(i, _)| i)
}
