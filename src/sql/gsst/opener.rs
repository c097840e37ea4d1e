//! Opening one file of a scan and reading its part of it.
//!
//! ```text
//! footer ─▶ this file's filter and projection ─▶ row groups that are left
//!
//! row group    fetch ─▶ decode (blocking) ─▶ rest of the filter ─▶ projection ─▶ batches
//! the next              └ fetched meanwhile
//! ```
//!
//! A row group belongs to the partition whose byte range has its first byte, so that a file may be
//! cut anywhere. Bytes of at most two row groups are held, inside the session's memory pool; where
//! the pool has no room for the second, it is fetched later.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_expr::projection::{ProjectionExprs, Projector};
use datafusion::physical_expr::simplifier::PhysicalExprSimplifier;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr_adapter::{
    PhysicalExprAdapterFactory, replace_columns_with_literals,
};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, Time};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::scalar::ScalarValue;
use futures::StreamExt;
use object_store::{ObjectMeta, ObjectStore};
use tokio::sync::mpsc::Sender;

use super::super::failure::{datafusion_error, task_error};
use super::conditions::{Conditions, evaluate};
use super::fetch::FetchedRanges;
use super::footers::{read_footer, read_schema};
use super::pruning::possible_row_groups;
use super::source::Settings;
use crate::gsst::parquet::{GsstFooter, GsstParquetReader, ReadOptions};

/// Opens the files of one partition.
#[derive(Clone)]
pub(super) struct GsstOpener {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) table_schema: TableSchema,
    pub(super) projection: ProjectionExprs,
    pub(super) filter: Option<Arc<dyn PhysicalExpr>>,
    pub(super) batch_size: usize,
    pub(super) adapters: Arc<dyn PhysicalExprAdapterFactory>,
    pub(super) settings: Settings,
    pub(super) metrics: ExecutionPlanMetricsSet,
    pub(super) partition: usize,
}

impl FileOpener for GsstOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let opener = self.clone();
        Ok(Box::pin(async move {
            let scan = opener.plan(file).await?;
            let mut stream = RecordBatchReceiverStreamBuilder::new(scan.output_schema(), 2);
            let batches = stream.tx();
            stream.spawn(async move { scan.run(batches).await });
            Ok(stream.build().boxed())
        }))
    }
}

impl GsstOpener {
    /// Reads the footer and decides what is read of the file and how.
    async fn plan(self, file: PartitionedFile) -> Result<FileScan> {
        let cache = self.settings.runtime.cache_manager.get_file_metadata_cache();
        let footer = read_footer(&self.store, &file.object_meta, Some(&cache)).await?;
        let schema = read_schema(&footer);
        let (filter, projection) = self.adapted(&file, &schema)?;
        let counters = Counters::new(&self.metrics, self.partition);

        let mut row_groups: Vec<usize> = (0..footer.num_row_groups()).collect();
        if let Some(range) = &file.range {
            let range = range.start as u64..range.end as u64;
            row_groups.retain(|i| range.contains(&footer.row_group_start(*i)));
        }
        let num_row_groups = row_groups.len();
        if let Some(filter) = &filter {
            let errors = &counters.pruning_errors;
            row_groups = possible_row_groups(&footer, &schema, filter, row_groups, errors)?;
        }
        counters.row_groups_pruned.add(num_row_groups - row_groups.len());

        let conditions = match &filter {
            Some(filter) => Conditions::new(filter, &footer, &schema)?,
            None => Conditions::default(),
        };
        let mut decoded = projection.column_indices();
        decoded.extend(conditions.rest.iter().flat_map(collect_columns).map(|c| c.index()));
        decoded.sort_unstable();
        decoded.dedup();
        let mut read = decoded.clone();
        read.extend(conditions.code_predicates.iter().map(|predicate| predicate.field_idx));
        read.extend(conditions.row_filter.iter().flat_map(|filter| filter.fields.clone()));

        let decoded_schema = Arc::new(schema.project(&decoded)?);
        let at_place = |expr| reassign_expr_columns(expr, &decoded_schema);
        let projector = projection.try_map_exprs(at_place)?.make_projector(&decoded_schema)?;
        let Conditions { row_filter, code_predicates, rest } = conditions;
        let consumer = MemoryConsumer::new(format!("GsstScan[{}]", self.partition));
        Ok(FileScan {
            object: file.object_meta,
            row_groups,
            ranges_of: read,
            options: ReadOptions {
                projection: Some(decoded),
                predicates: code_predicates,
                row_filter,
                batch_rows: self.batch_size,
                text_as_views: true,
            },
            rest: rest.map(at_place).transpose()?,
            projector: Arc::new(projector),
            reservation: Arc::new(consumer.register(&self.settings.runtime.memory_pool)),
            store: self.store,
            footer,
            counters,
        })
    }

    /// Filter and projection on the file's own columns: those of the path are literals, missing
    /// ones null, others cast.
    fn adapted(
        &self,
        file: &PartitionedFile,
        schema: &SchemaRef,
    ) -> Result<(Option<Arc<dyn PhysicalExpr>>, ProjectionExprs)> {
        let names =
            self.table_schema.table_partition_cols().iter().map(|field| field.name().clone());
        let literals: HashMap<String, ScalarValue> =
            names.zip(file.partition_values.iter().cloned()).collect();
        let adapter = self
            .adapters
            .create(Arc::clone(self.table_schema.file_schema()), Arc::clone(schema))?;
        let simplifier = PhysicalExprSimplifier::new(schema);
        let adapt = |expr| {
            let expr = replace_columns_with_literals(expr, &literals)?;
            simplifier.simplify(adapter.rewrite(expr)?)
        };
        let filter = self.filter.clone().map(adapt).transpose()?;
        Ok((filter, self.projection.clone().try_map_exprs(adapt)?))
    }
}

/// What is counted of a partition.
#[derive(Clone)]
struct Counters {
    bytes_scanned: Count,
    row_groups_pruned: Count,
    row_groups_read: Count,
    rows_decoded: Count,
    pruning_errors: Count,
    time_fetching: Time,
    time_decoding: Time,
}

impl Counters {
    fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let counter = |name| MetricBuilder::new(metrics).counter(name, partition);
        let time = |name| MetricBuilder::new(metrics).subset_time(name, partition);
        Self {
            bytes_scanned: counter("bytes_scanned"),
            row_groups_pruned: counter("row_groups_pruned"),
            row_groups_read: counter("row_groups_read"),
            rows_decoded: counter("rows_decoded"),
            pruning_errors: counter("pruning_errors"),
            time_fetching: time("time_fetching"),
            time_decoding: time("time_decoding"),
        }
    }
}

/// One file, or a part of it, as it is read.
#[derive(Clone)]
struct FileScan {
    store: Arc<dyn ObjectStore>,
    object: ObjectMeta,
    footer: GsstFooter,
    row_groups: Vec<usize>,
    /// Fields whose bytes are fetched.
    ranges_of: Vec<usize>,
    options: ReadOptions,
    /// The part of the filter that needs decoded rows.
    rest: Option<Arc<dyn PhysicalExpr>>,
    projector: Arc<Projector>,
    reservation: Arc<MemoryReservation>,
    counters: Counters,
}

/// The bytes of a row group, and the memory that was asked for them.
struct Fetched {
    row_group_idx: usize,
    ranges: FetchedRanges,
    _held: MemoryReservation,
}

impl FileScan {
    fn output_schema(&self) -> SchemaRef {
        Arc::clone(self.projector.output_schema())
    }

    /// Reads row group after row group, the next one's bytes while one is decoded.
    async fn run(self, batches: Sender<Result<RecordBatch>>) -> Result<()> {
        let mut row_groups = self.row_groups.clone().into_iter();
        let mut next: Option<SpawnedTask<Result<Fetched>>> = None;
        loop {
            let fetched = match next.take() {
                Some(fetching) => fetching.join().await.map_err(task_error)??,
                None => match row_groups.next() {
                    Some(row_group_idx) => {
                        let held = self.hold(row_group_idx)?;
                        self.fetch(row_group_idx, held).await?
                    }
                    None => return Ok(()),
                },
            };
            // Without room for two row groups the next one waits.
            if let Some(&row_group_idx) = row_groups.as_slice().first()
                && let Ok(held) = self.hold(row_group_idx)
            {
                row_groups.next();
                let scan = self.clone();
                next =
                    Some(SpawnedTask::spawn(async move { scan.fetch(row_group_idx, held).await }));
            }
            let (scan, batches) = (self.clone(), batches.clone());
            let decoding = SpawnedTask::spawn_blocking(move || scan.decode(fetched, &batches));
            if !decoding.join().await.map_err(task_error)?? {
                return Ok(());
            }
        }
    }

    /// Asks for the memory that the bytes of a row group take.
    fn hold(&self, row_group_idx: usize) -> Result<MemoryReservation> {
        let ranges = self.footer.ranges(row_group_idx, &self.ranges_of);
        let len_bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        let held = self.reservation.new_empty();
        held.try_grow(usize::try_from(len_bytes).unwrap_or(usize::MAX))?;
        Ok(held)
    }

    async fn fetch(&self, row_group_idx: usize, held: MemoryReservation) -> Result<Fetched> {
        let _timed = self.counters.time_fetching.timer();
        let ranges = self.footer.ranges(row_group_idx, &self.ranges_of);
        let location = &self.object.location;
        let fetched =
            FetchedRanges::fetch(&self.store, location, self.object.size, &ranges).await?;
        self.counters.bytes_scanned.add(held.size());
        Ok(Fetched { row_group_idx, ranges: fetched, _held: held })
    }

    /// Decodes a row group and sends its rows; false says that nobody wants more.
    fn decode(&self, fetched: Fetched, batches: &Sender<Result<RecordBatch>>) -> Result<bool> {
        self.counters.row_groups_read.add(1);
        let in_file =
            |error| datafusion_error(error).context(format!("reading {}", self.object.location));
        let mut timer = self.counters.time_decoding.timer();
        let reader = GsstParquetReader::with_footer(fetched.ranges, self.footer.clone());
        let rows = reader.read_row_group(fetched.row_group_idx, &self.options).map_err(in_file)?;
        for batch in rows {
            let batch = batch.map_err(in_file)?;
            self.counters.rows_decoded.add(batch.num_rows());
            let batch = match &self.rest {
                Some(rest) => filter_record_batch(&batch, &evaluate(rest, &batch)?)?,
                None => batch,
            };
            if batch.num_rows() == 0 {
                continue;
            }
            let batch = self.projector.project_batch(&batch)?;
            timer.stop();
            if batches.blocking_send(Ok(batch)).is_err() {
                return Ok(false);
            }
            timer.restart();
        }
        Ok(true)
    }
}
