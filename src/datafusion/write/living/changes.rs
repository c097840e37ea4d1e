//! Rows of a statement as edits, of `UPDATE`, `DELETE` and `INSERT INTO "d$edits"`; and their path to one commit.
//!
//! ```text
//! latest version n ─▶ plan and run the query ─▶ edits ─▶ put version n + 1
//!        ▲                                                 │ another commit was first
//!        └─────────────────────────────────────────────────┘
//! ```
//!
//! The query is planned after version n was read, and versions only grow. If version n + 1 can be put, then every
//! table of the corpus in the query, also in subqueries, was read at n. So the commit is exactly the result of the
//! statement on the version that it is based on. A statement that finds no rows commits nothing; it checks that n is
//! still the latest version. The statement whose commit makes a recompression due does it. A failure or an
//! interruption of that does not undo the statement, and the next statement tries again.
//!
//! ```text
//! UPDATE d SET text = …, author = … WHERE …
//!
//! rows of the query   doc_id | text | author | number
//!                        │      │      └────────┴──▶ one table for all rows, and its row numbers
//!                        └──────┴───────────────────▶ the new bytes
//! ```
//!
//! DataFusion writes the statement as a projection of all columns of the table, in their order. A column that is not
//! set is projected unchanged; the others are cast to the types of the table. Ids and paths stay. `DELETE FROM d
//! WHERE …` drops documents. Their ids are never used again.
//!
//! | `"d$edits"`: pos | len_bytes | text | edit |
//! | --- | --- | --- | --- |
//! | p | NULL | t | inserts t before byte p |
//! | NULL | NULL | t | appends t |
//! | p | n | NULL | deletes n bytes from byte p on |
//!
//! All rows form one batch, in their order. `tadoc.edit_mode` says which text their offsets refer to. Every document
//! and offset is checked against the version that the commit is based on. The check reads only lengths of documents,
//! and only ids if all edits prepend or append text.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::cast::{as_binary_view_array, as_int64_array, as_string_view_array};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{
    Column, DFSchema, TableReference, exec_datafusion_err, exec_err, internal_err, plan_datafusion_err, plan_err,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection, lit};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, EvaluationType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties, execute_stream,
};
use futures::{FutureExt, StreamExt};

use crate::corpora::columns::{ColumnsWriter, RESERVED};
use crate::errors::{core_error, datafusion_error};
use crate::options::TadocOptions;
use crate::plan_methods::leaf_methods;
use crate::user_columns::merge_columns;
use tadoc::edits::{Edit, EditBatch, EditMode, column_tables};
use tadoc::error::Error;
use tadoc_store::{Change, CommitKind, LivingStore, OptimizeOptions, Version};

/// Operation of a statement on the rows of its query.
#[async_trait]
pub(crate) trait Operation: fmt::Debug + Send + Sync {
    /// Returns its name in EXPLAIN.
    fn name(&self) -> &'static str;

    /// Returns its kind in the history.
    fn kind(&self) -> CommitKind;

    /// Returns the mode that says which text its offsets refer to.
    fn mode(&self) -> EditMode {
        EditMode::InSequence
    }

    /// Returns true if the order of its rows matters. One thread then runs its query.
    fn is_ordered(&self) -> bool {
        false
    }

    /// Appends the edits that `rows` describe.
    ///
    /// # Errors
    /// An execution error that names the row that is not a valid edit.
    fn read(&self, rows: &RecordBatch, edits: &mut Vec<Edit>) -> Result<()>;

    /// Checks that the edits are valid on the version that `session` reads, and sorts them. By
    /// default they are sorted by id, with one edit of a kind for each document, because partitions
    /// return rows in any order.
    ///
    /// # Errors
    /// An execution error that names the invalid edit.
    async fn check(&self, _session: &SessionState, edits: &mut Vec<Edit>, _context: &Arc<TaskContext>) -> Result<()> {
        edits.sort_by_key(|edit| (edit.doc_id(), edit.sets_columns()));
        edits.dedup_by_key(|edit| (edit.doc_id(), edit.sets_columns()));
        Ok(())
    }
}

/// Plan node that runs an operation on the rows of a query.
#[derive(Debug, Clone)]
pub(super) struct ChangeExec {
    operation: Arc<dyn Operation>,
    query: LogicalPlan,
    session: Arc<SessionState>,
    location: String,
    store: LivingStore,
    options: TadocOptions,
    properties: Arc<PlanProperties>,
}

impl ChangeExec {
    pub(super) fn new(
        operation: Arc<dyn Operation>,
        query: LogicalPlan,
        mut session: SessionState,
        location: String,
        (store, options): (LivingStore, TadocOptions),
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(count_schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative)
        .with_evaluation_type(EvaluationType::Eager);
        if operation.is_ordered() {
            session.config_mut().options_mut().execution.target_partitions = 1;
        }
        let session = Arc::new(session);
        let properties = Arc::new(properties);
        Self { operation, query, session, location, store, options, properties }
    }

    /// Commits the change and returns the number of rows.
    async fn run(&self, context: &Arc<TaskContext>) -> Result<u64> {
        let is_nothing = AtomicBool::new(false);
        let num_rows = AtomicU64::new(0);
        let change = async |mut latest: Version| loop {
            let (edits, found) = self.edits(context).await.map_err(core_error)?;
            num_rows.store(found, Ordering::Relaxed);
            if !edits.is_empty() {
                let batch = EditBatch { mode: self.operation.mode(), edits };
                return Ok(Change::edit(self.operation.kind(), &batch));
            }
            // Without rows there is nothing to commit, if the latest version did not change
            // meanwhile.
            let now = self.store.latest().await?;
            if now.commit_id == latest.commit_id {
                is_nothing.store(true, Ordering::Relaxed);
                return Err(Error::Cancelled);
            }
            latest = now;
        };
        match self.store.update(change).await {
            Err(_) if is_nothing.load(Ordering::Relaxed) => {}
            committed => {
                let version = committed.map_err(datafusion_error)?;
                recompress_if_due(&self.store, &version, &self.options).await;
            }
        }
        Ok(num_rows.load(Ordering::Relaxed))
    }

    /// Returns the edits for the latest version, and the number of rows they come from.
    async fn edits(&self, context: &Arc<TaskContext>) -> Result<(Vec<Edit>, u64)> {
        let reservation = MemoryConsumer::new("TadocChangeExec").register(&context.runtime_env().memory_pool);
        let plan = self.session.create_physical_plan(&self.query).await?;
        let mut rows = execute_stream(plan, Arc::clone(context))?;
        let mut edits = Vec::new();
        let mut num_rows = 0;
        let mut value_bytes = 0;
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            let first = edits.len();
            self.operation.read(&batch, &mut edits)?;
            num_rows += batch.num_rows() as u64;
            value_bytes += edits[first..].iter().map(Edit::text_len_bytes).sum::<u64>() as usize;
            value_bytes += column_tables(&edits[first..]).map(Bytes::len).sum::<usize>();
            // The edits, and a second copy of their text in the bytes of the commit.
            reservation.try_resize(size_of::<Edit>() * edits.len() + 2 * value_bytes)?;
        }
        self.operation.check(&self.session, &mut edits, context).await?;
        Ok((edits, num_rows))
    }
}

/// Returns the column `name` of `input`.
pub(super) fn column(input: &LogicalPlan, name: &str) -> Result<Expr> {
    let field = input.schema().qualified_field_with_unqualified_name(name)?;
    Ok(Expr::Column(Column::from(field)))
}

/// Returns the schema of the result of every statement that changes rows.
pub(super) fn count_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("count", DataType::UInt64, false)]))
}

impl DisplayAs for ChangeExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = self.operation.name();
        let corpus = &self.location;
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "TadocChangeExec: operation={operation}, corpus={corpus}")
            }
            DisplayFormatType::TreeRender => {
                write!(f, "operation={operation}\ncorpus={corpus}")
            }
        }
    }
}

impl ExecutionPlan for ChangeExec {
    leaf_methods!("TadocChangeExec");

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("TadocChangeExec has no partition {partition}");
        }
        let this = self.clone();
        let count = async move {
            let count = this.run(&context).await?;
            let count = Arc::new(UInt64Array::from(vec![count]));
            Ok(RecordBatch::try_new(count_schema(), vec![count])?)
        };
        let rows = futures::stream::once(count);
        Ok(Box::pin(RecordBatchStreamAdapter::new(count_schema(), rows)))
    }
}

/// Recompresses the corpus if that is due in `version`, the version just committed.
pub(super) async fn recompress_if_due(store: &LivingStore, version: &Version, options: &TadocOptions) {
    let options = OptimizeOptions {
        recompress_ratio: options.recompress_ratio,
        ingest: options.ingest_options(),
        limits: options.open_limits(),
        merge_columns: Some(Arc::new(merge_columns)),
        ..OptimizeOptions::default()
    };
    // Boxed, because the future is large and rarely run.
    match store.recompress_if_due(version, &options).boxed().await {
        Ok(None) => {}
        Ok(Some(optimized)) => {
            tracing::info!("{}: optimized as version {}", store.location(), optimized.number);
        }
        Err(error) => tracing::warn!("{}: not optimized: {error}", store.location()),
    }
}

/// Operation that drops the documents whose ids are in its rows.
#[derive(Debug)]
pub(super) struct Deletion;

#[async_trait]
impl Operation for Deletion {
    fn name(&self) -> &'static str {
        "delete"
    }

    fn kind(&self) -> CommitKind {
        CommitKind::Delete
    }

    fn read(&self, rows: &RecordBatch, edits: &mut Vec<Edit>) -> Result<()> {
        for doc_id in doc_ids(rows)? {
            edits.push(Edit::DropDocument { doc_id: doc_id? });
        }
        Ok(())
    }
}

/// Returns the ids in the first column of `rows`.
pub(super) fn doc_ids(rows: &RecordBatch) -> Result<impl Iterator<Item = Result<u64>>> {
    let ids = as_int64_array(rows.column(0))?;
    Ok(ids.iter().map(|id| match id.map(u64::try_from) {
        Some(Ok(id)) => Ok(id),
        _ => exec_err!("doc_id: got {id:?}, expected the number of a document"),
    }))
}

/// Operation that replaces the text of documents by the second column of its rows, if `has_text` is
/// true, and sets user columns from the columns after that.
#[derive(Debug)]
pub(super) struct Replacement {
    has_text: bool,
}

impl Replacement {
    /// Builds the operation, and the query for ids and values, of an `UPDATE` that DataFusion
    /// planned as `input`.
    ///
    /// # Errors
    /// A plan error for columns that cannot be set.
    pub(super) fn from_plan(table: &TableReference, input: &LogicalPlan) -> Result<(Self, LogicalPlan)> {
        let LogicalPlan::Projection(projection) = input else {
            return plan_err!("UPDATE {table}: expected a projection, got {}", input.display());
        };
        let mut texts = Vec::new();
        let mut values = Vec::new();
        for (name, value) in assignments(projection) {
            match name {
                "text" | "content" => texts.push(value.alias(name)),
                name if RESERVED.contains(&name) => {
                    return Err(not_settable(table, name, &projection.schema));
                }
                name => values.push(value.alias(name)),
            }
        }
        if texts.len() > 1 {
            return plan_err!("UPDATE {table}: text and content are one; set one of them");
        }
        let has_text = !texts.is_empty();
        let query = [vec![column(&projection.input, "doc_id")?], texts, values].concat();
        let query = LogicalPlanBuilder::from(projection.input.as_ref().clone()).project(query)?;
        Ok((Self { has_text }, query.build()?))
    }

    /// Appends an edit of the text for each row of `rows`.
    fn replace_texts(rows: &RecordBatch, contents: &ArrayRef, edits: &mut Vec<Edit>) -> Result<()> {
        let contents = cast(contents, &DataType::BinaryView)?;
        let contents = as_binary_view_array(&contents)?;
        for (row, doc_id) in doc_ids(rows)?.enumerate() {
            let doc_id = doc_id?;
            if contents.is_null(row) {
                return exec_err!(
                    "UPDATE: the new text of document {doc_id} is NULL; write '' for an empty one, \
                     or DELETE it"
                );
            }
            edits.push(Edit::ReplaceDocument { doc_id, content: contents.value(row).to_vec() });
        }
        Ok(())
    }

    /// Appends an edit of user columns for each row of `rows`. The values are in the columns from
    /// `first` on.
    fn set_columns(rows: &RecordBatch, first: usize, edits: &mut Vec<Edit>) -> Result<()> {
        let positions = (first..rows.num_columns()).collect();
        let Some(mut writer) = ColumnsWriter::try_new(&rows.schema(), positions)? else {
            return internal_err!("no column is set");
        };
        writer.write(rows)?;
        let table = Bytes::from(writer.finish()?);
        for (row, doc_id) in doc_ids(rows)?.enumerate() {
            let doc_id = doc_id?;
            let row = row as u64;
            let table = table.clone();
            edits.push(Edit::SetColumns { doc_id, row, table });
        }
        Ok(())
    }
}

/// Returns the columns of `projection` that are not projected unchanged.
fn assignments(projection: &Projection) -> impl Iterator<Item = (&str, Expr)> {
    let columns = projection.expr.iter().zip(projection.schema.fields());
    columns.filter_map(|(expr, field)| {
        let name = field.name().as_str();
        let value = expr.clone().unalias_nested().data;
        let is_itself = matches!(&value, Expr::Column(own) if own.name == name);
        (!is_itself).then_some((name, value))
    })
}

/// Returns the error for a column `name` that is derived from the corpus. It lists the settable
/// columns among `columns`.
fn not_settable(table: &TableReference, name: &str, columns: &DFSchema) -> DataFusionError {
    let names = columns.fields().iter().map(|field| field.name().as_str());
    let own: Vec<&str> = names.filter(|name| !RESERVED.contains(name)).collect();
    let own = match own.as_slice() {
        [] => "it has no columns of its own".into(),
        own => format!("and its own columns: {}", own.join(", ")),
    };
    plan_datafusion_err!(
        "UPDATE {table}: column {name} cannot be set, text and content can ({own}); to change it \
         DELETE the documents and INSERT them again"
    )
}

#[async_trait]
impl Operation for Replacement {
    fn name(&self) -> &'static str {
        "update"
    }

    fn kind(&self) -> CommitKind {
        CommitKind::Update
    }

    fn read(&self, rows: &RecordBatch, edits: &mut Vec<Edit>) -> Result<()> {
        let first_user = if self.has_text { 2 } else { 1 };
        if self.has_text {
            Self::replace_texts(rows, rows.column(1), edits)?;
        }
        if rows.num_rows() > 0 && rows.num_columns() > first_user {
            Self::set_columns(rows, first_user, edits)?;
        }
        Ok(())
    }
}

/// Maximum number of documents that a filter lists. For more documents the filter gives the range
/// of ids.
const MAX_LISTED: usize = 256;
/// Columns that are read-only.
const FOR_READING: [&str; 5] = ["version", "place", "mode", "kind", "path"];

/// Operation that turns its rows into edits of texts.
#[derive(Debug)]
pub(super) struct TextEdits {
    pub(super) mode: EditMode,
    /// Query for all documents of the corpus.
    pub(super) documents: LogicalPlan,
}

#[async_trait]
impl Operation for TextEdits {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn kind(&self) -> CommitKind {
        CommitKind::Edit
    }

    fn mode(&self) -> EditMode {
        self.mode
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn read(&self, rows: &RecordBatch, edits: &mut Vec<Edit>) -> Result<()> {
        let column = |name: &str| rows.column_by_name(name).ok_or_else(|| exec_datafusion_err!("no column {name}"));
        for name in FOR_READING {
            if column(name)?.logical_null_count() < rows.num_rows() {
                return exec_err!(
                    "INSERT: column {name} of edits is for reading; write INSERT INTO \"d$edits\" \
                     (doc_id, pos, text) SELECT doc_id, pos, text …"
                );
            }
        }
        let doc_ids = Numbers::from_column(rows, "doc_id")?;
        let places = Numbers::from_column(rows, "pos")?;
        let lens = Numbers::from_column(rows, "len_bytes")?;
        let texts = as_string_view_array(column("text")?)?;
        for row in 0..rows.num_rows() {
            let text = texts.is_valid(row).then(|| texts.value(row).as_bytes().to_vec());
            let doc_id = doc_ids.at(row)?;
            let offset = places.at(row)?;
            let len = lens.at(row)?;
            let Some(doc_id) = doc_id else {
                return exec_err!("edit {}: doc_id is NULL, expected a document", edits.len());
            };
            edits.push(match (offset, len, text) {
                (Some(offset_bytes), None, Some(text)) => Edit::InsertText { doc_id, offset_bytes, text },
                (None, None, Some(text)) => Edit::AppendText { doc_id, text },
                (Some(offset_bytes), Some(len_bytes), None) => Edit::DeleteText { doc_id, offset_bytes, len_bytes },
                (offset, len, text) => {
                    return exec_err!(
                        "edit {}: got pos {}, len_bytes {}, text {}; expected text to put in at pos \
                         (NULL: at the end), or len_bytes to take out at pos",
                        edits.len(),
                        shown(offset),
                        shown(len),
                        if text.is_some() { "given" } else { "NULL" }
                    );
                }
            });
        }
        Ok(())
    }

    async fn check(&self, session: &SessionState, edits: &mut Vec<Edit>, context: &Arc<TaskContext>) -> Result<()> {
        let lens = self.lens(session, edits, context).await?;
        Lengths { before: &lens, now: lens.clone(), mode: self.mode }.check(edits)
    }
}

impl TextEdits {
    /// Returns the lengths in bytes of the existing documents that `edits` name. The lengths are 0
    /// if no edit depends on them.
    async fn lens(
        &self,
        session: &SessionState,
        edits: &[Edit],
        context: &Arc<TaskContext>,
    ) -> Result<HashMap<u64, u64>> {
        let named: BTreeSet<u64> = edits.iter().filter_map(Edit::doc_id).collect();
        let (Some(&first), Some(&last)) = (named.first(), named.last()) else {
            return Ok(HashMap::new());
        };
        let doc_id = column(&self.documents, "doc_id")?;
        let is_named = if named.len() <= MAX_LISTED {
            doc_id.clone().in_list(named.iter().map(|&id| lit(id as i64)).collect(), false)
        } else {
            doc_id.clone().between(lit(first as i64), lit(last as i64))
        };
        let len = if edits.iter().any(depends_on_length) { column(&self.documents, "bytes")? } else { lit(0i64) };
        let query =
            LogicalPlanBuilder::from(self.documents.clone()).filter(is_named)?.project([doc_id, len])?.build()?;
        let plan = session.create_physical_plan(&query).await?;
        let mut rows = execute_stream(plan, Arc::clone(context))?;
        let mut lens = HashMap::with_capacity(named.len());
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            let pairs = as_int64_array(batch.column(0))?.values().iter();
            let pairs = pairs.zip(as_int64_array(batch.column(1))?.values());
            let pairs = pairs.map(|(&doc_id, &len)| (doc_id as u64, len as u64));
            lens.extend(pairs.filter(|(doc_id, _)| named.contains(doc_id)));
        }
        Ok(lens)
    }
}

/// Returns true if `edit` may fail because a document is too short.
fn depends_on_length(edit: &Edit) -> bool {
    match edit {
        Edit::InsertText { offset_bytes, .. } => *offset_bytes > 0,
        Edit::AppendText { .. } => false,
        _ => true,
    }
}

/// Lengths of documents, in bytes, while edits are checked.
struct Lengths<'a> {
    before: &'a HashMap<u64, u64>,
    now: HashMap<u64, u64>,
    mode: EditMode,
}

impl Lengths<'_> {
    fn check(mut self, edits: &[Edit]) -> Result<()> {
        for (number, edit) in edits.iter().enumerate() {
            let doc_id = edit.doc_id().unwrap_or_default();
            let Some(now) = self.now.get_mut(&doc_id) else {
                return exec_err!("edit {number}: there is no document {doc_id}");
            };
            let len = match self.mode {
                EditMode::InSequence => *now,
                EditMode::InBatch => self.before[&doc_id],
            };
            let (end, added, removed) = match edit {
                Edit::InsertText { offset_bytes, text, .. } => (*offset_bytes, text.len(), 0),
                Edit::AppendText { text, .. } => (len, text.len(), 0),
                Edit::DeleteText { offset_bytes, len_bytes, .. } => {
                    (offset_bytes.saturating_add(*len_bytes), 0, *len_bytes)
                }
                _ => (0, 0, 0),
            };
            if end > len {
                return exec_err!(
                    "edit {number}: byte {end} lies behind the end of document {doc_id}, which has \
                     {len} bytes {}",
                    match self.mode {
                        EditMode::InSequence => "at this place of the batch",
                        EditMode::InBatch => "before the batch",
                    }
                );
            }
            if self.mode == EditMode::InSequence {
                *now = len - removed + added as u64;
            }
        }
        Ok(())
    }
}

fn shown(number: Option<u64>) -> String {
    number.map_or("NULL".into(), |number| number.to_string())
}

/// A column of numbers that are non-negative or NULL.
struct Numbers<'a> {
    name: &'static str,
    values: &'a Int64Array,
}

impl<'a> Numbers<'a> {
    fn from_column(rows: &'a RecordBatch, name: &'static str) -> Result<Self> {
        let column = rows.column_by_name(name);
        let column = column.ok_or_else(|| exec_datafusion_err!("no column {name}"))?;
        Ok(Self { name, values: as_int64_array(column)? })
    }

    fn at(&self, row: usize) -> Result<Option<u64>> {
        let Self { name, values } = self;
        match values.is_valid(row).then(|| values.value(row)) {
            Some(value) => match u64::try_from(value) {
                Ok(value) => Ok(Some(value)),
                Err(_) => exec_err!("{name}: got {value}, expected 0 or more"),
            },
            None => Ok(None),
        }
    }
}
