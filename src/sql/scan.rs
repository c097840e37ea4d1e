//! What a scan is about to do, and what its functions get to do it with.
//!
//! [`Scan`] is fixed when the physical plan is made: files and footers, projection, filter stages,
//! limit, settings. [`Run`] is one partition of it under execution: the scan, the session's
//! run-time environment, metrics, and the way out for rows.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::compute::and;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};

use super::corpora::{CorpusCache, LoadContext, LoadedCorpus, OpenFile};
use super::failure::task_error;
use super::filter::Stage;
use super::location::SourceFile;
use super::options::TadocOptions;
use super::output::Output;
use crate::access::TextPattern;

/// The files a scan reads.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// Corpora, with their footers.
    Corpora(Vec<OpenFile>),
    /// Files of which nothing is known yet.
    Files(Vec<SourceFile>),
}

/// A planned scan.
#[derive(Debug, Clone)]
pub(crate) struct Scan {
    /// Location as the user wrote it.
    pub(crate) location: String,
    pub(crate) source: Source,
    /// All columns of the table.
    pub(crate) schema: SchemaRef,
    /// Positions of the columns that go out.
    pub(crate) projection: Vec<usize>,
    /// Filters on columns that need no text.
    pub(crate) columns_stage: Option<Stage>,
    /// Filters on such columns that joins and sorts above find while they run.
    pub(crate) dynamic_stages: Vec<Stage>,
    /// Filters that need text.
    pub(crate) text_stage: Option<Stage>,
    /// For each filter that demands something of the text: patterns, one of which must match.
    pub(crate) demands: Vec<Vec<TextPattern>>,
    pub(crate) limit: Option<usize>,
    pub(crate) options: TadocOptions,
    pub(crate) num_partitions: usize,
}

impl Scan {
    /// The corpora that are read; none where plain files are.
    pub(crate) fn corpora(&self) -> &[OpenFile] {
        match &self.source {
            Source::Corpora(files) => files,
            Source::Files(_) => &[],
        }
    }

    /// The files that are read without being opened first.
    pub(crate) fn files(&self) -> &[SourceFile] {
        match &self.source {
            Source::Corpora(_) => &[],
            Source::Files(files) => files,
        }
    }

    /// Whether there is a filter.
    pub(crate) fn is_filtered(&self) -> bool {
        self.stages().next().is_some()
    }

    /// Whether column `position` goes out.
    pub(crate) fn projects(&self, position: usize) -> bool {
        self.projection.contains(&position)
    }

    /// Whether column `position` goes out or is filtered on.
    pub(crate) fn uses(&self, position: usize) -> bool {
        self.projects(position) || self.stages().any(|stage| stage.columns.contains(&position))
    }

    /// All filters.
    pub(crate) fn stages(&self) -> impl Iterator<Item = &Stage> {
        self.columns_stage.iter().chain(&self.dynamic_stages).chain(&self.text_stage)
    }

    /// Which of `num_rows` rows pass the filters that need no text, of whose columns `column` is
    /// asked; `None` where there are no such filters.
    pub(crate) fn mask(
        &self,
        num_rows: usize,
        column: impl Fn(usize) -> Result<ArrayRef>,
    ) -> Result<Option<BooleanArray>> {
        let mut mask: Option<BooleanArray> = None;
        for stage in self.columns_stage.iter().chain(&self.dynamic_stages) {
            let arrays = stage.columns.iter().map(|&i| column(i)).collect::<Result<_>>()?;
            let passed = stage.evaluate(arrays, num_rows)?;
            mask = Some(mask.map_or(Ok(passed.clone()), |mask| and(&mask, &passed))?);
        }
        Ok(mask)
    }

    /// Documents of all corpora.
    pub(crate) fn num_docs(&self) -> u64 {
        self.corpora().iter().map(|open| open.footer.num_docs()).sum()
    }

    /// Bytes of text of all corpora.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.corpora().iter().map(|open| open.footer.len_bytes()).fold(0, u64::saturating_add)
    }
}

/// What the partitions of one execution share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Documents that can match the demands; computed by whichever partition comes first.
    pub(crate) candidates: OnceLock<Option<Vec<u64>>>,
    prepared: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
}

impl Shared {
    /// What all partitions need, made by whichever comes first; the others wait for it.
    pub(crate) fn prepared<T: Send + Sync + 'static>(
        &self,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        let made = prepared.as_ref().and_then(|any| Arc::clone(any).downcast::<T>().ok());
        if let Some(made) = made {
            return Ok(made);
        }
        let made = Arc::new(make()?);
        *prepared = Some(made.clone());
        Ok(made)
    }
}

/// One partition of a scan under execution.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) scan: Arc<Scan>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) partition: usize,
    pub(crate) runtime: Arc<RuntimeEnv>,
    pub(crate) cache: Arc<CorpusCache>,
    pub(crate) metrics: ExecutionPlanMetricsSet,
    pub(crate) output: Output,
}

impl Run {
    /// The counter `name` of this partition.
    pub(crate) fn counter(&self, name: &'static str) -> Count {
        MetricBuilder::new(&self.metrics).counter(name, self.partition)
    }

    /// Memory of this partition for `what`.
    pub(crate) fn reservation(&self, what: &str) -> MemoryReservation {
        MemoryConsumer::new(format!("Tadoc{what}[{}]", self.partition))
            .register(&self.runtime.memory_pool)
    }

    /// What loading files needs.
    pub(crate) fn load_context(&self) -> LoadContext {
        LoadContext {
            runtime: Arc::clone(&self.runtime),
            options: self.scan.options.clone(),
            bytes_read: self.counter("bytes_read"),
        }
    }

    /// The corpus, loaded where it is not.
    pub(crate) async fn load(&self) -> Result<Arc<LoadedCorpus>> {
        self.cache.load(&self.load_context(), self.scan.corpora()).await
    }

    /// Runs CPU-bound work on a blocking thread.
    pub(crate) async fn blocking(
        self,
        work: impl FnOnce(Run) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        tokio::task::spawn_blocking(move || work(self)).await.map_err(task_error)?
    }

    /// Sends rows of which `column` makes each projected column; false says stop.
    pub(crate) fn send(
        &mut self,
        num_rows: usize,
        mut column: impl FnMut(usize) -> Result<ArrayRef>,
    ) -> Result<bool> {
        let scan = Arc::clone(&self.scan);
        let columns = scan.projection.iter().map(|&i| column(i)).collect::<Result<_>>()?;
        self.output.send_columns(columns, num_rows)
    }
}

/// Positions that `mask` selects, NULL being no.
pub(crate) fn selected(mask: &BooleanArray) -> impl Iterator<Item = usize> + '_ {
    mask.iter().enumerate().filter(|(_, pass)| *pass == Some(true)).map(|(i, _)| i)
}
