//! Parquet files by any name: DataFusion's own format `PARQUET`, with errors that name the file, and the
//! reader of GSST columns where a file has some.
//!
//! ```text
//! CREATE EXTERNAL TABLE ─▶ format   schema, statistics: footers  ┐ error ─▶ "reading x.parquet: …"
//!                          │ └ a file with GSST columns ─▶ gsst  │ panic ─▶ the same
//! rows                  ─▶ scan     pages, as DataFusion streams ┘
//!
//! Morselizer ─ plan_file(x.parquet) ─▶ MorselPlanner ─ plan ─▶ Morsel ─ into_stream ─▶ rows
//!                                        ▲    └ pending (footer, bytes of pages)
//!                                        └──────┘             each of them carries the file's name
//! ```
//!
//! The libraries expect intact files. On damaged files their errors do not name the file, and some panic. Both
//! become errors that name the file, for every session in which this package is registered. Errors about exhausted
//! memory stay unchanged. The last rule of the physical optimizer puts [`NamingSource`] around the source of each
//! scan, so no later rule looks for DataFusion's own source. Plans are displayed unchanged.
//!
//! The footers tell which files have GSST columns. If one of them has, the columns are those of all files by their
//! own names, with text as views, and the scan is that of tables `STORED AS GSST`. So a table that was made of plain
//! files may get files of either kind.
//!
//! A column of texts that a table declares as decimals is refused before a row is read. DataFusion would cast
//! it while it scans, where nothing bounds the length of a text: Arrow's parser of decimals recurses over the
//! digits. A cast in a statement is bounded (`planner/decimal_texts.rs`).

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::{fmt, slice};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::config::TableParquetOptions;
use datafusion::common::{GetExt, Statistics, internal_err, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory, FileMeta};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::transform_schema_to_view;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::{LexOrdering, LexRequirement};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::{ObjectMeta, ObjectStore};

use crate::depth::check_type_depth;
use crate::errors::{contain_panics, contain_panics_of, datafusion_error};
use crate::gsst::{PlainFiles, ReadBuffers, footer_with_text, merged, scan_with_text, statistics, table_schema};
use crate::plan_methods::{passing_source_methods, with_sources};
use crate::planner::has_type;
use crate::promises::check_orders;
use crate::text_files::with_exact_texts;
use gsst::parquet::GsstFooter;

/// Returns the result of `work` on `file`, or an error that names the file.
fn contain<T>(file: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    match contain_panics(file, work) {
        Ok(done) => done.map_err(|error| named(file, error)),
        Err(panicked) => Err(datafusion_error(panicked)),
    }
}

/// Variant of [`contain`] for a future.
async fn contain_future<T>(file: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    match contain_panics_of(file, work).await {
        Ok(done) => done.map_err(|error| named(file, error)),
        Err(panicked) => Err(panicked),
    }
}

fn named(file: &str, error: DataFusionError) -> DataFusionError {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => error,
        _ => error.context(format!("reading {file}")),
    }
}

/// Extension of Parquet files, and the name of their format.
const PARQUET: &str = "parquet";

/// Wraps `format` in the naming format if it reads Parquet.
pub(super) fn wrap_parquet_format(format: Arc<dyn FileFormatFactory>) -> Arc<dyn FileFormatFactory> {
    if format.get_ext() != PARQUET || format.is::<NamingFactory>() {
        return format;
    }
    Arc::new(NamingFactory { inner: format, known: Arc::default() })
}

/// Returns the options of `format` if it reads plain Parquet files: DataFusion's own, or that of this
/// module.
pub fn parquet_options<'a>(format: &'a (dyn FileFormat + 'static)) -> Option<&'a TableParquetOptions> {
    let inner = match format.downcast_ref::<NamingFormat>() {
        Some(naming) => naming.inner.as_ref(),
        None => format,
    };
    inner.downcast_ref::<ParquetFormat>().map(ParquetFormat::options)
}

/// Returns the format that reads plain Parquet files.
pub fn parquet_format(options: TableParquetOptions) -> Arc<dyn FileFormat> {
    let inner = Arc::new(ParquetFormat::default().with_options(options));
    Arc::new(NamingFormat { inner, known: Arc::default() })
}

/// Factory that wraps the formats of the session's own factory.
struct NamingFactory {
    inner: Arc<dyn FileFormatFactory>,
    known: Arc<Known>,
}

/// What the statements of a session share.
#[derive(Default)]
struct Known {
    plain: PlainFiles,
    /// Memory for the bytes of files with GSST columns.
    buffers: Arc<ReadBuffers>,
}

impl fmt::Debug for NamingFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl GetExt for NamingFactory {
    fn get_ext(&self) -> String {
        self.inner.get_ext()
    }
}

impl FileFormatFactory for NamingFactory {
    fn create(&self, session: &dyn Session, format_options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        let inner = self.inner.create(session, format_options)?;
        Ok(Arc::new(NamingFormat { inner, known: Arc::clone(&self.known) }))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        let inner = self.inner.default();
        Arc::new(NamingFormat { inner, known: Arc::clone(&self.known) })
    }
}

/// DataFusion's format, wrapped so that it reads GSST columns and errors name the file.
struct NamingFormat {
    inner: Arc<dyn FileFormat>,
    known: Arc<Known>,
}

impl NamingFormat {
    /// Returns the schema of a plain file, with text as views.
    async fn schema_of_plain(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        object: &ObjectMeta,
    ) -> Result<Schema> {
        let alone = self.inner.infer_schema(session, store, slice::from_ref(object));
        let schema = contain_future(object.location.as_ref(), alone).await?;
        Ok(transform_schema_to_view(&schema))
    }

    /// Returns the footer of a file if it has GSST columns.
    async fn footer_of(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        object: &ObjectMeta,
    ) -> Result<Option<GsstFooter>> {
        let cache = session.runtime_env().cache_manager.get_file_metadata_cache();
        footer_with_text(store, object, &cache, &self.known.plain).await
    }

    /// Returns the footers of those of `objects` that have GSST columns.
    async fn footers_of<'a>(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: Vec<&'a ObjectMeta>,
    ) -> Result<Vec<(&'a ObjectMeta, Option<GsstFooter>)>> {
        let concurrency = session.config_options().execution.meta_fetch_concurrency.get();
        let read = |object: &'a ObjectMeta| async move { Ok((object, self.footer_of(session, store, object).await?)) };
        stream::iter(objects).map(read).boxed().buffer_unordered(concurrency).try_collect().await
    }

    /// Returns the columns of all files, in the order of the names of the files.
    async fn merged_schema(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        mut files: Vec<(&ObjectMeta, Option<GsstFooter>)>,
    ) -> Result<SchemaRef> {
        files.sort_unstable_by(|(one, _), (other, _)| one.location.cmp(&other.location));
        let mut schemas = Vec::with_capacity(files.len());
        for (object, footer) in files {
            schemas.push(match footer {
                Some(footer) => table_schema(&footer),
                None => self.schema_of_plain(session, store, object).await?,
            });
        }
        Ok(Arc::new(merged(&schemas)?))
    }
}

impl fmt::Debug for NamingFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl FileFormat for NamingFormat {
    fn get_ext(&self) -> String {
        self.inner.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.inner.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.inner.compression_type()
    }

    /// Asks for all files at once. If that fails, asks for each file in order, up to the one that
    /// causes the error.
    async fn infer_schema(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let files = self.footers_of(session, store, objects.iter().collect()).await?;
        if files.iter().any(|(_, footer)| footer.is_some()) {
            return self.merged_schema(session, store, files).await;
        }
        let all = self.inner.infer_schema(session, store, objects);
        let error = match contain_future("Parquet files", all).await {
            Ok(schema) => {
                check_type_depth(&schema)?;
                return Ok(schema);
            }
            Err(error) => error,
        };
        for object in objects {
            let alone = self.inner.infer_schema(session, store, slice::from_ref(object));
            contain_future(object.location.as_ref(), alone).await?;
        }
        Err(error)
    }

    async fn infer_stats(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        if let Some(footer) = self.footer_of(session, store, object).await? {
            return statistics(&footer, &table_schema);
        }
        let asked = self.inner.infer_stats(session, store, table_schema, object);
        contain_future(object.location.as_ref(), asked).await
    }

    async fn infer_ordering(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Option<LexOrdering>> {
        if self.footer_of(session, store, object).await?.is_some() {
            return Ok(None);
        }
        let asked = self.inner.infer_ordering(session, store, table_schema, object);
        contain_future(object.location.as_ref(), asked).await
    }

    async fn infer_stats_and_ordering(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<FileMeta> {
        if let Some(footer) = self.footer_of(session, store, object).await? {
            return Ok(FileMeta::new(statistics(&footer, &table_schema)?));
        }
        let asked = self.inner.infer_stats_and_ordering(session, store, table_schema, object);
        contain_future(object.location.as_ref(), asked).await
    }

    async fn create_physical_plan(
        &self,
        session: &dyn Session,
        scan: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let scan = without_decimal_texts(scan);
        let store = session.runtime_env().object_store(&scan.object_store_url)?;
        let files = scan.file_groups.iter().flat_map(|group| group.iter());
        let objects = files.map(|file| &file.object_meta).collect();
        let files = self.footers_of(session, &store, objects).await?;
        if files.iter().any(|(_, footer)| footer.is_some()) {
            drop(files);
            return scan_with_text(session, scan, &self.known.buffers).await;
        }
        drop(files);
        self.inner.create_physical_plan(session, scan).await
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        session: &dyn Session,
        sink: FileSinkConfig,
        order_requirements: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.inner.create_writer_physical_plan(input, session, sink, order_requirements).await
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        self.inner.file_source(table_schema)
    }
}

/// Returns `scan`, which refuses files whose texts are declared as decimals.
fn without_decimal_texts(mut scan: FileScanConfig) -> FileScanConfig {
    let usual = || Arc::new(DefaultPhysicalExprAdapterFactory) as _;
    let adapters = scan.expr_adapter_factory.take().unwrap_or_else(usual);
    scan.expr_adapter_factory = Some(Arc::new(NoDecimalTexts(adapters)));
    scan
}

/// Factory of adapters from the columns of a file to those of its table.
#[derive(Debug)]
struct NoDecimalTexts(Arc<dyn PhysicalExprAdapterFactory>);

impl PhysicalExprAdapterFactory for NoDecimalTexts {
    fn create(
        &self,
        logical_file_schema: SchemaRef,
        physical_file_schema: SchemaRef,
    ) -> Result<Arc<dyn PhysicalExprAdapter>> {
        for declared in logical_file_schema.fields() {
            let Ok(stored) = physical_file_schema.field_with_name(declared.name()) else {
                continue;
            };
            let is_decimal = has_type(declared.data_type(), &DataType::is_decimal);
            if is_decimal && has_type(stored.data_type(), &DataType::is_string) {
                return plan_err!(
                    "column {} is a text in the file and is declared as {}; declare a text, and cast it in statements",
                    declared.name(),
                    declared.data_type()
                );
            }
        }
        self.0.create(logical_file_schema, physical_file_schema)
    }
}

/// Optimizer rule for plans that run here. It makes scans of Parquet files name the file in their errors, those of JSON
/// read declared decimals exactly, those of CSV refuse values that take rows, and those of all files keep the order
/// that they declare.
#[derive(Debug, Default)]
pub struct NameParquetFiles;

impl PhysicalOptimizerRule for NameParquetFiles {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let named = with_sources(plan, |source| Ok(naming(source)))?;
        with_exact_texts(check_orders(named)?, config)
    }

    fn name(&self) -> &str {
        "tadoc_name_parquet_files"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns a source that names files for `source`; `None` if it has no Parquet files, or already is such a source.
fn naming(source: &Arc<dyn FileSource>) -> Option<Arc<dyn FileSource>> {
    let is_plain = source.file_type() == "parquet" && !source.is::<NamingSource>();
    is_plain.then(|| Arc::new(NamingSource(Arc::clone(source))) as _)
}

/// Source of Parquet files in a finished plan. It supports only reading.
struct NamingSource(Arc<dyn FileSource>);

impl FileSource for NamingSource {
    fn create_file_opener(&self, _: Arc<dyn ObjectStore>, _: &FileScanConfig, _: usize) -> Result<Arc<dyn FileOpener>> {
        internal_err!("Parquet files are read in morsels")
    }

    fn create_morselizer(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        let inner = self.0.create_morselizer(object_store, base_config, partition)?;
        Ok(Box::new(NamingMorselizer(inner)))
    }

    passing_source_methods!(0);

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self(self.0.with_batch_size(batch_size)))
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.0.filter()
    }

    fn supports_repartitioning(&self) -> bool {
        self.0.supports_repartitioning()
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.0.reorder_files(files)
    }
}

#[derive(Debug)]
struct NamingMorselizer(Box<dyn Morselizer>);

impl Morselizer for NamingMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let name: Arc<str> = file.object_meta.location.to_string().into();
        let inner = contain(&name, || self.0.plan_file(file))?;
        Ok(NamingPlanner::boxed(inner, &name))
    }
}

/// Planner of the next steps of reading `file`.
#[derive(Debug)]
struct NamingPlanner {
    inner: Box<dyn MorselPlanner>,
    file: Arc<str>,
}

impl NamingPlanner {
    fn boxed(inner: Box<dyn MorselPlanner>, file: &Arc<str>) -> Box<dyn MorselPlanner> {
        Box::new(Self { inner, file: Arc::clone(file) })
    }
}

impl MorselPlanner for NamingPlanner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { inner, file } = *self;
        let Some(mut plan) = contain(&file, || inner.plan())? else { return Ok(None) };
        let morsels = plan.take_morsels().into_iter();
        let morsels = morsels.map(|morsel| NamingMorsel::boxed(morsel, &file)).collect();
        let planners = plan.take_ready_planners().into_iter();
        let planners = planners.map(|planner| Self::boxed(planner, &file)).collect();
        let pending = plan.take_pending_planner();
        let mut named = MorselPlan::new().with_morsels(morsels).with_planners(planners);
        if let Some(pending) = pending {
            named.set_pending_planner(async move {
                let planner = contain_future(&file, pending).await?;
                Ok(Self::boxed(planner, &file))
            });
        }
        Ok(Some(named))
    }
}

/// Morsel of `file` whose bytes are read.
#[derive(Debug)]
struct NamingMorsel {
    inner: Box<dyn Morsel>,
    file: Arc<str>,
}

impl NamingMorsel {
    fn boxed(inner: Box<dyn Morsel>, file: &Arc<str>) -> Box<dyn Morsel> {
        Box::new(Self { inner, file: Arc::clone(file) })
    }
}

impl Morsel for NamingMorsel {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let Self { inner, file } = *self;
        let mut rows = match contain(&file, || Ok(inner.into_stream())) {
            Ok(rows) => Some(rows),
            Err(error) => return stream::iter([Err(error)]).boxed(),
        };
        stream::poll_fn(move |context| {
            let Some(stream) = &mut rows else { return Poll::Ready(None) };
            let polled = contain(&file, || match stream.poll_next_unpin(context) {
                Poll::Ready(Some(batch)) => batch.map(|batch| Poll::Ready(Some(batch))),
                Poll::Ready(None) => Ok(Poll::Ready(None)),
                Poll::Pending => Ok(Poll::Pending),
            });
            polled.map_or_else(
                |error| {
                    // After an error or a panic the stream is not polled again.
                    rows = None;
                    Poll::Ready(Some(Err(error)))
                },
                |poll| poll.map(|batch| batch.map(Ok)),
            )
        })
        .boxed()
    }
}
