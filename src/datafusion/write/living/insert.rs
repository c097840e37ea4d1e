//! `INSERT INTO d (path, text) …`, and `COPY (…) TO` a living corpus: rows become documents.
//!
//! ```text
//! rows ─▶ at most 100 of 64 KiB in all, no user columns ─▶ edits in the file of the version
//!      └▶ otherwise ─▶ builder ─▶ a segment file ─▶ the version that names it
//! ```
//!
//! Columns that a statement omits arrive as NULL. `doc_id`, `bytes` and `words` are derived from
//! the corpus and the text, so they must be NULL. The document is `content`, or `text` where
//! `content` is NULL. Rows where both are NULL are refused, and rows where they differ.
//!
//! `COPY` gives the columns of a query: its text, maybe paths, and user columns. It drops derived
//! columns, so that a corpus can be copied to a corpus.
//!
//! With `tadoc.unique_paths` an `INSERT` adds no document whose path the corpus has already:
//!
//! ```text
//! latest version n ─▶ its paths ─▶ rows are checked as they come ─▶ commit on n
//!      ▲                                                              │ another commit was first
//!      └── the paths of all rows are checked again ◀──────────────────┘
//! ```
//!
//! The paths are read after version n was, and versions only grow. If the version after n can be put, they were
//! those of n. So two statements at the same time store a path once. Rows of one statement may share a path, as
//! lines of a file do, and rows without a path are never refused. Memory is that of all paths.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::cast::{as_binary_view_array, as_string_view_array};
use datafusion::common::{SchemaExt, exec_datafusion_err, exec_err, plan_datafusion_err, plan_err};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, execute_stream};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use tokio::sync::mpsc::channel;

use crate::corpora::columns::RESERVED;
use crate::errors::{core_error, datafusion_error, mask_secrets};
use crate::options::TadocOptions;
use crate::planning::table::TadocTable;
use crate::write::building::{Building, Roles, contents, feed, show_building};
use crate::write::living::changes::recompress_if_due;
use tadoc::edits::{Edit, EditBatch};
use tadoc::error::Error;
use tadoc_store::{Change, CommitKind, LivingStore, PartWriter, Version, WrittenPart};

/// Maximum number of rows that become edits.
const MAX_EDIT_ROWS: usize = 100;
/// Maximum number of bytes of their texts and paths.
const MAX_EDIT_BYTES: usize = 64 << 10;
/// Columns that are derived from the text and the corpus.
const DERIVED: [&str; 3] = ["doc_id", "bytes", "words"];

/// Plans an `INSERT` of the rows of `input`.
///
/// # Errors
/// A plan error for a table that cannot be changed, and for operations that replace rows.
pub(crate) fn insert_into<'a>(
    table: &'a TadocTable,
    session: &'a dyn Session,
    input: Arc<dyn ExecutionPlan>,
    operation: InsertOp,
) -> BoxFuture<'a, Result<Arc<dyn ExecutionPlan>>> {
    async move {
        let (store, options) = table.changeable(session).await?;
        if operation != InsertOp::Append {
            return plan_err!(
                "{operation}: documents have no key that could be replaced; DELETE them, then INSERT INTO"
            );
        }
        table.schema().logically_equivalent_names_and_types(&input.schema())?;
        let sink = InsertSink {
            schema: nullable(&table.schema()),
            copied: None,
            location: table.location().into(),
            store,
            unique: if options.unique_paths { Some(UniquePaths::new(table, session)?) } else { None },
            options,
            metrics: ExecutionPlanMetricsSet::new(),
        };
        // Keeps the order of sorted input, as COPY does.
        let order = input.output_ordering().cloned().map(Into::into);
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), order)) as Arc<dyn ExecutionPlan>)
    }
    .boxed()
}

/// Makes all columns nullable. Omitted columns are NULL, even those that are never NULL when read.
pub(super) fn nullable(schema: &Schema) -> SchemaRef {
    let field = |field: &FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

/// Sink that adds documents to a living corpus; see the module's description.
pub(super) struct InsertSink {
    /// Columns of the rows: those of the table, or those of a query.
    pub(super) schema: SchemaRef,
    /// Roles of the columns of a query that is copied.
    pub(super) copied: Option<Roles>,
    pub(super) location: String,
    pub(super) store: LivingStore,
    /// Refuses paths that are there already.
    pub(super) unique: Option<UniquePaths>,
    pub(super) options: TadocOptions,
    pub(super) metrics: ExecutionPlanMetricsSet,
}

impl InsertSink {
    /// Returns the schema of documents for the builder, the same for every batch.
    fn document_schema(&self) -> SchemaRef {
        let own = [("path", DataType::Utf8View), ("content", DataType::BinaryView)];
        let own = own.map(|(name, data_type)| Arc::new(Field::new(name, data_type, true)));
        let fields = self.schema.fields().iter();
        let user = fields.filter(|field| !RESERVED.contains(&field.name().as_str())).cloned();
        Arc::new(Schema::new(own.into_iter().chain(user).collect::<Vec<_>>()))
    }

    /// Converts rows to rows of [`InsertSink::document_schema`].
    pub(super) fn documents(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let (path, content) = match &self.copied {
            Some(roles) => roles.documents(rows)?,
            None => self.inserted(rows)?,
        };
        let mut columns = vec![path, content];
        let schema = self.document_schema();
        for field in &schema.fields()[columns.len()..] {
            columns.push(Arc::clone(rows.column(self.schema.index_of(field.name())?)));
        }
        Ok(RecordBatch::try_new(schema, columns)?)
    }

    /// Returns the paths and contents of rows of the table.
    fn inserted(&self, rows: &RecordBatch) -> Result<(ArrayRef, ArrayRef)> {
        let column = |name: &str| -> Result<&ArrayRef> { Ok(rows.column(self.schema.index_of(name)?)) };
        for name in DERIVED {
            if column(name)?.logical_null_count() < rows.num_rows() {
                return exec_err!(
                    "INSERT: column {name} follows from the documents and cannot be given; write \
                     INSERT INTO d (path, text) SELECT path, text …"
                );
            }
        }
        let contents = contents(Some(column("content")?), Some(column("text")?))?;
        Ok((cast(column("path")?, &DataType::Utf8View)?, contents))
    }

    async fn add_as_edits(&self, documents: &[RecordBatch], check: Option<&PathCheck<'_>>) -> Result<()> {
        let mut edits = Vec::new();
        for batch in documents {
            let paths = as_string_view_array(batch.column(0))?;
            let contents = as_binary_view_array(batch.column(1))?;
            for (path, content) in paths.iter().zip(contents) {
                let path = path.unwrap_or_default();
                let content = content.unwrap_or_default();
                edits.push(Edit::AddDocument { path: path.into(), content: content.into() });
            }
        }
        let batch = EditBatch { edits, ..EditBatch::default() };
        self.commit(&Change::edit(CommitKind::Insert, &batch), check).await
    }

    async fn add_as_file(
        &self,
        documents: impl Stream<Item = Result<RecordBatch>> + Unpin,
        context: &Arc<TaskContext>,
        check: Option<&PathCheck<'_>>,
    ) -> Result<u64> {
        let written = self.write_file(documents, context, true).await?;
        let num_docs = written.part.num_docs();
        self.commit(&Change::append(CommitKind::Insert, &[written]), check).await?;
        Ok(num_docs)
    }

    /// Writes `documents` into a segment file that no version names yet. `commits_here` is false if another
    /// process makes the commit.
    pub(super) async fn write_file(
        &self,
        documents: impl Stream<Item = Result<RecordBatch>> + Unpin,
        context: &Arc<TaskContext>,
        commits_here: bool,
    ) -> Result<WrittenPart> {
        let schema = self.document_schema();
        let memory = MemoryConsumer::new("TadocInsertSink");
        let building = Building {
            roles: Roles::find(&schema)?,
            schema,
            options: TadocOptions { tokenizer: self.store.profile(), ..self.options.clone() },
            reservation: memory.register(&context.runtime_env().memory_pool),
            metrics: self.metrics.clone(),
        };
        let (sender, rows) = channel(2);
        let write = move |out: &mut PartWriter| building.run(rows, out).map(|(_, footer)| footer).map_err(core_error);
        let writing = async {
            if commits_here {
                self.store.write_part(write).await
            } else {
                self.store.write_part_for_another(write).await
            }
        };
        let (fed, written) = futures::join!(feed(documents, sender), writing);
        // The error of the input comes first: without input the writing fails too.
        fed?;
        written.map_err(datafusion_error)
    }

    async fn commit(&self, change: &Change, check: Option<&PathCheck<'_>>) -> Result<()> {
        let version = match check {
            Some(check) => check.commit(change).await?,
            None => {
                let committing = async { self.store.commit(&self.store.latest().await?, change).await };
                committing.await.map_err(datafusion_error)?
            }
        };
        recompress_if_due(&self.store, &version, &self.options).await;
        Ok(())
    }
}

/// Returns true if the rows seen so far may become edits.
fn are_few(documents: &[RecordBatch]) -> Result<bool> {
    let mut num_rows = 0;
    let mut num_bytes = 0;
    for batch in documents {
        num_rows += batch.num_rows();
        num_bytes += as_binary_view_array(batch.column(1))?.lengths().sum::<u32>() as usize;
        num_bytes += as_string_view_array(batch.column(0))?.lengths().sum::<u32>() as usize;
        let is_empty = |column: &ArrayRef| column.logical_null_count() == column.len();
        if !batch.columns()[2..].iter().all(is_empty) {
            return Ok(false);
        }
    }
    Ok(num_rows <= MAX_EDIT_ROWS && num_bytes <= MAX_EDIT_BYTES)
}

impl fmt::Debug for InsertSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InsertSink").field("corpus", &self.location).finish()
    }
}

impl DisplayAs for InsertSink {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let corpus = mask_secrets(&self.location);
        let tokenizer = self.store.profile();
        let separator = match format {
            DisplayFormatType::TreeRender => "\n",
            _ => ", ",
        };
        write!(f, "TadocInsertSink(corpus={corpus}{separator}tokenizer={tokenizer}{separator}")?;
        show_building(&self.options, format, f)
    }
}

#[async_trait]
impl DataSink for InsertSink {
    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(&self, data: SendableRecordBatchStream, context: &Arc<TaskContext>) -> Result<u64> {
        let check = match &self.unique {
            Some(unique) => Some(unique.begin(&self.store, context).await?),
            None => None,
        };
        let check = check.as_ref();
        let mut data = data.map(|rows| {
            let documents = self.documents(&rows?)?;
            if let Some(check) = check {
                check.check(&documents)?;
            }
            Ok(documents)
        });
        let mut first = Vec::new();
        while are_few(&first)? {
            let Some(batch) = data.next().await.transpose()? else {
                let num_docs: usize = first.iter().map(RecordBatch::num_rows).sum();
                if num_docs > 0 {
                    self.add_as_edits(&first, check).await?;
                }
                MetricBuilder::new(&self.metrics).global_counter("documents").add(num_docs);
                return Ok(num_docs as u64);
            };
            if batch.num_rows() > 0 {
                first.push(batch);
            }
        }
        let all = futures::stream::iter(first.into_iter().map(Ok)).chain(data);
        let num_docs = self.add_as_file(all, context, check).await?;
        MetricBuilder::new(&self.metrics).global_counter("documents").add(num_docs as usize);
        Ok(num_docs)
    }
}

/// The table whose paths are unique.
pub(super) struct UniquePaths {
    table: TadocTable,
    session: SessionState,
}

/// The check of the rows of one statement.
pub(super) struct PathCheck<'a> {
    unique: &'a UniquePaths,
    store: &'a LivingStore,
    context: &'a Arc<TaskContext>,
    /// Version of which the paths are known.
    version: Version,
    taken: Paths,
    /// Paths of the rows so far.
    added: Mutex<Paths>,
}

/// Paths, and their memory.
struct Paths {
    set: HashSet<Box<str>>,
    reservation: MemoryReservation,
}

impl UniquePaths {
    /// Keeps what reads the paths of `table` later, in the latest version.
    ///
    /// # Errors
    /// A plan error if the session is one of another process.
    pub(super) fn new(table: &TadocTable, session: &dyn Session) -> Result<Self> {
        let state = session.as_any().downcast_ref::<SessionState>().ok_or_else(|| {
            plan_datafusion_err!("{}: only a session of this process checks paths", mask_secrets(table.location()))
        })?;
        Ok(Self { table: table.clone().with_reading(None), session: state.clone() })
    }

    /// Reads the paths of the latest version of `store`.
    ///
    /// # Errors
    /// The corpus cannot be read, or the memory of the session is exceeded.
    pub(super) async fn begin<'a>(
        &'a self,
        store: &'a LivingStore,
        context: &'a Arc<TaskContext>,
    ) -> Result<PathCheck<'a>> {
        let version = store.latest().await.map_err(datafusion_error)?;
        let taken = self.read(context).await?;
        Ok(PathCheck { unique: self, store, context, version, taken, added: Mutex::new(Paths::new(context)) })
    }

    async fn read(&self, context: &Arc<TaskContext>) -> Result<Paths> {
        let projection = vec![self.table.schema().index_of("path")?];
        let plan = self.table.scan(&self.session, Some(&projection), &[], None).await?;
        let mut rows = execute_stream(plan, Arc::clone(context))?;
        let mut paths = Paths::new(context);
        while let Some(batch) = rows.next().await {
            for path in as_string_view_array(batch?.column(0))?.iter().flatten() {
                paths.insert(path)?;
            }
        }
        Ok(paths)
    }
}

impl PathCheck<'_> {
    /// Refuses a row whose path is there already, and keeps the paths of the others.
    ///
    /// # Errors
    /// An execution error that names the document.
    pub(super) fn check(&self, documents: &RecordBatch) -> Result<()> {
        let mut added = self.added();
        for path in as_string_view_array(documents.column(0))?.iter().flatten().filter(|path| !path.is_empty()) {
            if self.taken.set.contains(path) {
                return Err(self.refusal(path));
            }
            added.insert(path)?;
        }
        Ok(())
    }

    /// Commits `change` on the version whose paths were checked, or on a later one after another check.
    ///
    /// # Errors
    /// A row has a path that came into the corpus meanwhile, and the errors of a commit.
    pub(super) async fn commit(&self, change: &Change) -> Result<Version> {
        let change = change.clone().pinned();
        let mut version = self.version.clone();
        loop {
            match self.store.commit(&version, &change).await {
                Err(Error::Conflict { .. }) => {}
                committed => return committed.map_err(datafusion_error),
            }
            version = self.store.latest().await.map_err(datafusion_error)?;
            let taken = self.unique.read(self.context).await?;
            if let Some(path) = self.added().set.intersection(&taken.set).min() {
                return Err(self.refusal(path));
            }
        }
    }

    fn added(&self) -> MutexGuard<'_, Paths> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusal(&self, path: &str) -> DataFusionError {
        exec_datafusion_err!(
            "{}: a document {path} is there already; nothing was added: UPDATE or DELETE it; without \
             tadoc.unique_paths it is stored once more",
            mask_secrets(self.unique.table.location())
        )
    }
}

impl Paths {
    fn new(context: &TaskContext) -> Self {
        let memory = MemoryConsumer::new("TadocUniquePaths");
        Self { set: HashSet::new(), reservation: memory.register(&context.runtime_env().memory_pool) }
    }

    fn insert(&mut self, path: &str) -> Result<()> {
        if !self.set.contains(path) {
            self.reservation.try_grow(path.len() + 2 * size_of::<Box<str>>())?;
            self.set.insert(path.into());
        }
        Ok(())
    }
}
