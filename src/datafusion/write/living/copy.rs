//! `COPY (…) TO` a living corpus: one commit, of segments that are written here or by several machines.
//!
//! ```text
//! coordinator   SegmentsSink ─ one commit        worker 1   rows ─ WriteSegmentsExec ─▶ a segment file
//!                    ▲                           worker 2   rows ─ WriteSegmentsExec ─▶ a segment file
//!                    └──── one row for each file ═══════════════════════┘
//! ```
//!
//! Each partition of the query becomes one file, with as many segments as its text needs. A row says which
//! file it is, so the texts do not travel to the coordinator. Nobody sees a file before the commit. If
//! the statement fails, its files stay until `tadoc clean-up` removes them.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, StringArray, UInt32Array, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::cast::{as_string_array, as_uint32_array, as_uint64_array};
use datafusion::common::{exec_err, internal_err, plan_err};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, LexRequirement};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};

use crate::corpora::CorpusCache;
use crate::corpora::columns::user_fields;
use crate::corpora::living::{FoundCorpus, open_columns};
use crate::errors::{datafusion_error, mask_secrets};
use crate::options::TadocOptions;
use crate::plan_methods::one_input_methods;
use crate::write::building::Roles;
use crate::write::factory::with_declared;
use crate::write::living::changes::recompress_if_due;
use crate::write::living::insert::{InsertSink, nullable};
use tadoc_store::{Change, CommitKind, LivingStore, Part, WrittenPart};

/// Plans a `COPY` of the rows of `input` to the living corpus at `location`. Returns `None` if there
/// is none.
///
/// # Errors
/// A plan error for rows without text, for a column that the corpus has with another type, and if
/// `options` ask to replace what is there; the errors of opening the corpus.
pub(crate) async fn copy_into(
    location: &str,
    session: &dyn Session,
    input: &Arc<dyn ExecutionPlan>,
    options: &TadocOptions,
    order: &Option<LexRequirement>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let runtime = session.runtime_env();
    let cache = session.config().get_extension::<CorpusCache>().unwrap_or_default();
    let Some(found) = cache.living.find(runtime, location).await? else { return Ok(None) };
    if options.overwrite {
        return plan_err!(
            "COPY: {} is a living corpus, which grows and is not replaced; leave tadoc.overwrite out, \
             and DELETE documents that are to go",
            mask_secrets(location)
        );
    }
    let schema = nullable(&input.schema());
    let roles = Roles::find(&schema)?;
    let version = found.latest.clone();
    let (files, edits) = open_columns(&cache, runtime, options, &found, version).await?;
    let known = user_fields(&cache, runtime, &files, &edits).await?;
    with_declared(known, &schema.project(&roles.user())?)?;
    let is_divided = order.is_none() && input.output_partitioning().partition_count() > 1;
    if options.workers_write && is_divided {
        return spread_copy(input, found, schema, options).map(Some);
    }
    let sink = InsertSink {
        schema,
        copied: Some(roles),
        location: location.into(),
        store: found.store,
        unique: None,
        options: options.clone(),
        metrics: ExecutionPlanMetricsSet::new(),
    };
    let plan = DataSinkExec::new(Arc::clone(input), Arc::new(sink), order.clone());
    Ok(Some(Arc::new(plan)))
}

/// Refuses to write the file `location` into the folder of a living corpus: no version names it, so its
/// readers would not see the rows.
///
/// # Errors
/// A plan error that names the folder.
pub(crate) async fn check_outside_living(location: &str, session: &dyn Session) -> Result<()> {
    let folder = location.rsplit_once('/').map_or(".", |(folder, _)| folder);
    let cache = session.config().get_extension::<CorpusCache>().unwrap_or_default();
    // A folder that cannot be listed can still be written.
    match cache.living.find(session.runtime_env(), folder).await {
        Ok(Some(_)) => plan_err!(
            "COPY: {} lies in a living corpus, whose readers would not see the file; COPY … TO '{}/' adds \
             the rows to it",
            mask_secrets(location),
            mask_secrets(folder)
        ),
        _ => Ok(()),
    }
}

/// The living corpus that segment files are written for.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentTarget {
    /// A URL, which means the same on all machines.
    pub location: String,
    /// Columns of the query, all of them nullable.
    pub schema: SchemaRef,
    /// The settings of the statement.
    pub options: TadocOptions,
}

/// Plans a `COPY` of the rows of `input` to the living corpus `found`, whose segments are written where the
/// partitions of `input` are.
pub(super) fn spread_copy(
    input: &Arc<dyn ExecutionPlan>,
    found: FoundCorpus,
    schema: SchemaRef,
    options: &TadocOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let target = SegmentTarget { location: found.location.url(), schema, options: options.clone() };
    let sink = SegmentsSink {
        location: target.location.clone(),
        store: found.store,
        options: options.clone(),
        metrics: ExecutionPlanMetricsSet::new(),
    };
    let write = WriteSegmentsExec::new(Arc::clone(input), target);
    let rows = CoalescePartitionsExec::new(Arc::new(write));
    Ok(Arc::new(DataSinkExec::new(Arc::new(rows), Arc::new(sink), None)))
}

/// Returns the schema of rows that say which file was written.
fn file_schema() -> SchemaRef {
    let field = |name, data_type| Field::new(name, data_type, false);
    Arc::new(Schema::new(vec![
        field("id", DataType::Utf8),
        field("len_bytes", DataType::UInt64),
        field("crc32c", DataType::UInt32),
        field("num_docs", DataType::UInt64),
        field("text_bytes", DataType::UInt64),
    ]))
}

/// Returns the row of a file.
fn row_of(written: &WrittenPart) -> Result<RecordBatch> {
    let Part::File { id, len_bytes, crc32c, num_docs } = &written.part else {
        return internal_err!("a segment file that is none");
    };
    let numbers = |number: u64| Arc::new(UInt64Array::from(vec![number]));
    Ok(RecordBatch::try_new(
        file_schema(),
        vec![
            Arc::new(StringArray::from(vec![id.to_string()])),
            numbers(*len_bytes),
            Arc::new(UInt32Array::from(vec![*crc32c])),
            numbers(*num_docs),
            numbers(written.text_bytes),
        ],
    )?)
}

/// Returns the files of `rows`.
///
/// # Errors
/// An error for rows of another form.
fn files_of(rows: &RecordBatch) -> Result<Vec<WrittenPart>> {
    if rows.schema().fields() != file_schema().fields() {
        return exec_err!("COPY: expected rows of segment files, got {}", rows.schema());
    }
    let ids = as_string_array(rows.column(0))?;
    let crcs = as_uint32_array(rows.column(2))?;
    let numbers = |column: usize| as_uint64_array(rows.column(column));
    let lens = numbers(1)?;
    let docs = numbers(3)?;
    let texts = numbers(4)?;
    let file = |row: usize| {
        let part = Part::File {
            id: ids.value(row).parse().map_err(datafusion_error)?,
            len_bytes: lens.value(row),
            crc32c: crcs.value(row),
            num_docs: docs.value(row),
        };
        Ok(WrittenPart { part, text_bytes: texts.value(row) })
    };
    (0..rows.num_rows()).map(file).collect()
}

/// Plan node that writes each partition of its input into a segment file and returns a row that says which.
/// A partition without rows has none. See the module's description.
#[derive(Debug, Clone)]
pub struct WriteSegmentsExec {
    input: Arc<dyn ExecutionPlan>,
    target: SegmentTarget,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl WriteSegmentsExec {
    /// Builds the node above `input`, whose columns are those of `target`.
    pub fn new(input: Arc<dyn ExecutionPlan>, target: SegmentTarget) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(file_schema()),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Final,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        let properties = Arc::new(properties);
        let metrics = ExecutionPlanMetricsSet::new();
        Self { input, target, properties, metrics }
    }

    /// Returns the corpus that the files are for.
    pub fn target(&self) -> &SegmentTarget {
        &self.target
    }

    /// Writes the file of a partition. Returns `None` if the partition has no rows.
    async fn write(&self, rows: SendableRecordBatchStream, context: &Arc<TaskContext>) -> Result<Option<RecordBatch>> {
        let SegmentTarget { location, schema, options } = &self.target;
        let cache = context.session_config().get_extension::<CorpusCache>().unwrap_or_default();
        let found = cache.living.find(&context.runtime_env(), location).await?;
        let Some(found) = found else {
            return exec_err!("COPY: there is no living corpus at {}", mask_secrets(location));
        };
        let sink = InsertSink {
            copied: Some(Roles::find(schema)?),
            schema: Arc::clone(schema),
            location: location.clone(),
            store: found.store,
            unique: None,
            options: options.clone(),
            metrics: self.metrics.clone(),
        };
        let mut documents = rows.map(|rows| sink.documents(&rows?)).boxed();
        let first = loop {
            match documents.next().await.transpose()? {
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => break batch,
                None => return Ok(None),
            }
        };
        let all = futures::stream::iter([Ok(first)]).chain(documents);
        row_of(&sink.write_file(all, context, false).await?).map(Some)
    }
}

impl DisplayAs for WriteSegmentsExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let corpus = mask_secrets(&self.target.location);
        match format {
            DisplayFormatType::TreeRender => writeln!(f, "corpus={corpus}"),
            _ => write!(f, "TadocWriteSegmentsExec: corpus={corpus}"),
        }
    }
}

impl ExecutionPlan for WriteSegmentsExec {
    one_input_methods!("TadocWriteSegmentsExec", |node, input| Ok(Self::new(input, node.target.clone())));

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, Arc::clone(&context))?;
        let this = self.clone();
        let file = async move { this.write(rows, &context).await };
        let files = futures::stream::once(file).try_filter_map(|file| async { Ok(file) });
        Ok(Box::pin(RecordBatchStreamAdapter::new(file_schema(), files)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Sink that commits segment files which others wrote.
pub(super) struct SegmentsSink {
    location: String,
    store: LivingStore,
    options: TadocOptions,
    metrics: ExecutionPlanMetricsSet,
}

impl fmt::Debug for SegmentsSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentsSink").field("corpus", &self.location).finish()
    }
}

impl DisplayAs for SegmentsSink {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TadocSegmentsSink(corpus={})", mask_secrets(&self.location))
    }
}

#[async_trait]
impl DataSink for SegmentsSink {
    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn schema(&self) -> &SchemaRef {
        static SCHEMA: std::sync::OnceLock<SchemaRef> = std::sync::OnceLock::new();
        SCHEMA.get_or_init(file_schema)
    }

    async fn write_all(&self, mut data: SendableRecordBatchStream, _context: &Arc<TaskContext>) -> Result<u64> {
        let mut files = Vec::new();
        while let Some(rows) = data.next().await {
            files.extend(files_of(&rows?)?);
        }
        let num_docs: u64 = files.iter().map(|file| file.part.num_docs()).sum();
        if !files.is_empty() {
            let change = Change::append(CommitKind::Insert, &files);
            let committing = async { self.store.commit(&self.store.latest().await?, &change).await };
            let version = committing.await.map_err(datafusion_error)?;
            recompress_if_due(&self.store, &version, &self.options).await;
        }
        MetricBuilder::new(&self.metrics).global_counter("documents").add(num_docs as usize);
        MetricBuilder::new(&self.metrics).global_counter("files").add(files.len());
        Ok(num_docs)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Array;

    use super::*;
    use tadoc_store::CommitId;

    #[test]
    fn files_travel_as_rows() {
        let id = CommitId::from_bytes([7; 16]);
        let part = Part::File { id, len_bytes: u64::MAX, crc32c: 5, num_docs: 3 };
        let written = WrittenPart { part, text_bytes: 99 };
        let rows = row_of(&written).unwrap();
        assert_eq!(files_of(&rows).unwrap(), [written]);
        let error = files_of(&rows.project(&[0]).unwrap()).unwrap_err().to_string();
        assert!(error.contains("expected rows of segment files"), "{error}");
        let ids: Arc<dyn Array> = Arc::new(StringArray::from(vec!["../../x"]));
        let columns = std::iter::once(ids).chain(rows.columns()[1..].iter().cloned()).collect();
        assert!(files_of(&RecordBatch::try_new(file_schema(), columns).unwrap()).is_err());
    }
}
