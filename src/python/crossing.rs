//! A plan of a session of this library as a table of another DataFusion, and functions for it.
//!
//! ```text
//! host's session                                │ this library
//! filters, columns, limit ─▶ FFI_TableProvider ─┼▶ Crossing: the plan with filters, columns, limit
//! operators of the host  ◀── FFI stream ◀───────┼─ CrossingExec: one partition ◀─ tadoc_session::Session
//! ```
//!
//! The host gets nothing but a stream of rows. The plan is optimized and runs in the session of this
//! library, with its catalogs, settings, device, stores and memory limit, on its threads. So a
//! host needs none of those, and what it has of them is not used. Inside, the plan uses all cores.
//!
//! Limits: the host sees no order and no statistics. Filters cross if they are made of columns,
//! constants and operators; a function would be called back in the host, so its filter stays there.
//! Tables that cross are not written.
//!
//! Table functions, scalar functions and external tables, as another DataFusion calls them, have the session of this
//! library. A call of a table function becomes a plan of that session, and its rows are those of a [`Crossing`].
//! DataFusion's interface makes columns of the constants in a call of a scalar function. An argument with the same
//! value in all rows becomes a constant again here, because the location of a corpus must be one. No call lets a
//! panic out: it would end the process of the host.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions, new_empty_array};
use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider, TableProviderFactory};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{TableReference, internal_err, not_impl_err, plan_err};
use datafusion::datasource::provider_as_source;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    ColumnarValue, CreateExternalTable, Expr, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, TableProviderFilterPushDown, TableType,
};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use datafusion::prelude::Column;
use datafusion::scalar::ScalarValue;
use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use datafusion_ffi::table_provider::{FFI_TableProvider, ForeignTableProvider};
use futures::TryStreamExt;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::AbortHandle;

use crate::waiting::{Plan, runtime};
use datafusion_tadoc::{contain_panics, contain_panics_of};
use tadoc_session::{Failure, Outcome};

/// Batches that wait for the host.
const WAITING_BATCHES: usize = 2;

/// An item of the channel to the host; `None` is the end of the rows.
type Sent = Option<Result<RecordBatch>>;

/// A plan of a session, as a table.
pub struct Crossing {
    session: Arc<tadoc_session::Session>,
    plan: Plan,
    schema: SchemaRef,
}

impl Crossing {
    /// Creates the table of the rows of `plan`.
    ///
    /// # Errors
    /// Two columns have the same name.
    pub fn new(session: Arc<tadoc_session::Session>, plan: LogicalPlan) -> Result<Self> {
        let schema = Arc::clone(plan.schema().inner());
        for (at, field) in schema.fields().iter().enumerate() {
            if schema.fields()[..at].iter().any(|other| other.name() == field.name()) {
                return Err(DataFusionError::Plan(format!(
                    "two columns have the name {:?}; give them names with AS, so that the result \
                     can be a table",
                    field.name()
                )));
            }
        }
        Ok(Self { session, plan: Plan::new(plan), schema })
    }

    /// Returns the plan of `columns` of the rows that pass `filters`, at most `limit` of them.
    fn narrowed(&self, columns: Option<&Vec<usize>>, filters: &[Expr], limit: Option<usize>) -> Result<LogicalPlan> {
        let plan = self.plan.get();
        let column = |at: usize| Expr::Column(Column::from(plan.schema().qualified_field(at)));
        let bound = |filter: &Expr| {
            let filter = filter.clone().transform_up(|expr| match &expr {
                Expr::Column(named) => Ok(Transformed::yes(column(self.schema.index_of(named.name())?))),
                _ => Ok(Transformed::no(expr)),
            });
            filter.map(|filter| filter.data)
        };
        let mut narrowed = LogicalPlanBuilder::from(plan.clone());
        let filters = filters.iter().map(bound).collect::<Result<Vec<_>>>()?;
        if let Some(filter) = conjunction(filters) {
            narrowed = narrowed.filter(filter)?;
        }
        if let Some(columns) = columns {
            narrowed = narrowed.project(columns.iter().map(|&at| column(at)).collect::<Vec<_>>())?;
        }
        if limit.is_some() {
            narrowed = narrowed.limit(0, limit)?;
        }
        narrowed.build()
    }
}

impl fmt::Debug for Crossing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crossing").field("schema", &self.schema).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for Crossing {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let answer = |filter: &&Expr| match can_cross(filter) {
            Ok(true) => TableProviderFilterPushDown::Exact,
            _ => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(answer).collect())
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let narrowed = contain_panics("a scan", || self.narrowed(projection, filters, limit));
        let plan = narrowed.map_err(|panic| crossing_error(panic.into()))??;
        Ok(Arc::new(CrossingExec::new(Arc::clone(&self.session), plan)))
    }

    async fn insert_into(
        &self,
        _session: &dyn Session,
        _input: Arc<dyn ExecutionPlan>,
        _operation: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        not_impl_err!(
            "a table of datafusion_tadoc is only read in another DataFusion; write with \
             datafusion_tadoc.connect(), ingest() or open()"
        )
    }
}

/// Returns true if this library evaluates `filter` without a call into the host.
fn can_cross(filter: &Expr) -> Result<bool> {
    let mut can_cross = true;
    filter.apply(|expr| {
        can_cross = matches!(
            expr,
            Expr::Column(_)
                | Expr::Literal(..)
                | Expr::BinaryExpr(_)
                | Expr::Like(_)
                | Expr::Not(_)
                | Expr::Negative(_)
                | Expr::IsNull(_)
                | Expr::IsNotNull(_)
                | Expr::IsTrue(_)
                | Expr::IsFalse(_)
                | Expr::IsNotTrue(_)
                | Expr::IsNotFalse(_)
                | Expr::Between(_)
                | Expr::InList(_)
                | Expr::Cast(_)
        );
        Ok(if can_cross { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(can_cross)
}

/// The plan node that runs a plan in its session.
struct CrossingExec {
    session: Arc<tadoc_session::Session>,
    plan: Plan,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl CrossingExec {
    fn new(session: Arc<tadoc_session::Session>, plan: LogicalPlan) -> Self {
        let schema = Arc::clone(plan.schema().inner());
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { session, plan: Plan::new(plan), schema, properties: Arc::new(properties) }
    }
}

impl fmt::Debug for CrossingExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrossingExec").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl DisplayAs for CrossingExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.schema.fields().iter().map(|f| f.name().as_str()).collect();
        write!(f, "TadocCrossing: projection=[{}]", names.join(", "))
    }
}

impl ExecutionPlan for CrossingExec {
    fn name(&self) -> &str {
        "TadocCrossing"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() {
            Ok(self)
        } else {
            internal_err!("TadocCrossing is a leaf, got {} children", children.len())
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
    }

    fn execute(&self, partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition > 0 {
            return internal_err!("TadocCrossing has no partition {partition}");
        }
        let session = Arc::clone(&self.session);
        let plan = self.plan.get().clone();
        let schema = Arc::clone(&self.schema);
        // The statement starts when the first row is asked for.
        let rows = futures::stream::unfold(Rows::Waiting { session, plan, schema }, Rows::next);
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows)))
    }
}

/// The rows of a plan, as the host takes them.
enum Rows {
    Waiting { session: Arc<tadoc_session::Session>, plan: LogicalPlan, schema: SchemaRef },
    Running { sent: Receiver<Sent>, _task: StopOnDrop },
    Ended,
}

impl Rows {
    async fn next(self) -> Option<(Result<RecordBatch>, Self)> {
        let (mut sent, task) = match self {
            Self::Waiting { session, plan, schema } => match start(session, plan, schema) {
                Ok(running) => running,
                Err(error) => return Some((Err(error), Self::Ended)),
            },
            Self::Running { sent, _task: task } => (sent, task),
            Self::Ended => return None,
        };
        match sent.recv().await {
            Some(Some(Ok(batch))) => Some((Ok(batch), Self::Running { sent, _task: task })),
            Some(Some(Err(error))) => Some((Err(error), Self::Ended)),
            Some(None) => None,
            None => {
                let stopped = DataFusionError::Execution("the statement was stopped".to_owned());
                Some((Err(stopped), Self::Ended))
            }
        }
    }
}

/// A task that ends at its next await when nobody takes its rows any more.
struct StopOnDrop(AbortHandle);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts `plan` on the threads of this library.
fn start(
    session: Arc<tadoc_session::Session>,
    plan: LogicalPlan,
    schema: SchemaRef,
) -> Result<(Receiver<Sent>, StopOnDrop)> {
    let (sender, sent) = channel(WAITING_BATCHES);
    let runtime = runtime().map_err(|_| no_threads())?;
    let task = runtime.spawn(async move {
        let rows = contain_panics_of("the statement", send_rows(&session, plan, schema, &sender));
        let last = match rows.await {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(Err(crossing_error(failure))),
            Err(panic) => Some(Err(crossing_error(panic.into()))),
        };
        // If this fails, the host has dropped the stream.
        let _ = sender.send(last).await;
    });
    Ok((sent, StopOnDrop(task.abort_handle())))
}

async fn send_rows(
    session: &tadoc_session::Session,
    plan: LogicalPlan,
    schema: SchemaRef,
    sender: &Sender<Sent>,
) -> Outcome {
    let rows = session.start(plan).await?;
    let taken = rows.take(async |mut stream| {
        while let Some(batch) = stream.try_next().await? {
            let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let columns = batch.columns().to_vec();
            let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &rows)?;
            if sender.send(Some(Ok(batch))).await.is_err() {
                break;
            }
        }
        Ok(())
    });
    Ok(taken.await?)
}

/// Returns the error that the host sees, with the text of the command line.
pub fn crossing_error(failure: Failure) -> DataFusionError {
    DataFusionError::Execution(failure.into_text())
}

/// Returns the error of a process that was forked from one with threads of this library.
pub fn no_threads() -> DataFusionError {
    DataFusionError::Execution(
        "datafusion_tadoc has no threads in this process; if it was forked from one that uses \
         datafusion_tadoc, start it with multiprocessing.get_context('spawn')"
            .to_owned(),
    )
}

/// Runs `call` and makes an error of a panic.
fn contained<T>(name: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
    match contain_panics(name, call) {
        Ok(outcome) => outcome,
        Err(panic) => Err(crossing_error(Failure::from(panic))),
    }
}

/// Returns the rows of `table`, which belongs to `session`.
fn crossing_of(session: &Arc<tadoc_session::Session>, name: &str, table: Arc<dyn TableProvider>) -> Result<Crossing> {
    let name = TableReference::bare(name);
    let plan = LogicalPlanBuilder::scan(name, provider_as_source(table), None)?.build()?;
    Crossing::new(Arc::clone(session), plan)
}

/// A table function of a session.
pub struct CrossingFunction {
    session: Arc<tadoc_session::Session>,
    name: String,
    codec: FFI_LogicalExtensionCodec,
}

impl CrossingFunction {
    /// Creates the function `name` of `session` for the host with `codec`.
    pub fn new(session: Arc<tadoc_session::Session>, name: String, codec: FFI_LogicalExtensionCodec) -> Self {
        Self { session, name, codec }
    }

    fn table(&self, args: &TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let state = self.session.context().state();
        let Some(function) = state.table_functions().get(&self.name) else {
            return plan_err!("there is no table function {}", self.name);
        };
        let args = TableFunctionArgs::new(args.exprs(), &state);
        let table = function.create_table_provider_with_args(args)?;
        let table = crossing_of(&self.session, &self.name, table)?;
        // DataFusion's interface lets no filters through to tables of functions, unless they are in
        // its form for the host already.
        let runtime = runtime().map_err(|_| no_threads())?.handle().clone();
        let codec = self.codec.clone();
        let table = FFI_TableProvider::new_with_ffi_codec(Arc::new(table), true, Some(runtime), codec);
        Ok(Arc::new(ForeignTableProvider(table)))
    }
}

impl std::fmt::Debug for CrossingFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CrossingFunction").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TableFunctionImpl for CrossingFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        contained(&self.name, || self.table(&args))
    }
}

/// The tables `STORED AS` a file type of a session.
pub struct CrossingFactory {
    session: Arc<tadoc_session::Session>,
    file_type: String,
}

impl CrossingFactory {
    /// Creates the factory of tables of `file_type`, which is in capitals.
    pub fn new(session: Arc<tadoc_session::Session>, file_type: String) -> Self {
        Self { session, file_type }
    }
}

impl std::fmt::Debug for CrossingFactory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CrossingFactory").field("file_type", &self.file_type).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProviderFactory for CrossingFactory {
    async fn create(&self, _session: &dyn Session, command: &CreateExternalTable) -> Result<Arc<dyn TableProvider>> {
        let session = Arc::clone(&self.session);
        let command = command.clone();
        let file_type = self.file_type.clone();
        let create = async move {
            let state = session.context().state();
            let Some(factory) = state.table_factories().get(&file_type) else {
                return plan_err!("there are no tables STORED AS {file_type}");
            };
            let table = factory.create(&state, &command).await?;
            Ok(Arc::new(crossing_of(&session, command.name.table(), table)?) as _)
        };
        // The host's threads have nothing that this library waits for files with.
        let runtime = runtime().map_err(|_| no_threads())?;
        let contained = runtime.spawn(contain_panics_of("CREATE EXTERNAL TABLE", create));
        match contained.await {
            Ok(outcome) => outcome.and_then(|outcome| outcome),
            Err(error) => Err(DataFusionError::Execution(error.to_string())),
        }
    }
}

/// A scalar function of a session.
pub struct CrossingScalar {
    session: Arc<tadoc_session::Session>,
    function: Arc<ScalarUDF>,
}

impl CrossingScalar {
    /// Creates the function of `session` as another session calls it.
    pub fn wrap(session: Arc<tadoc_session::Session>, function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { session, function }))
    }

    fn answer(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if args.number_rows == 0 {
            return Ok(ColumnarValue::Array(new_empty_array(args.return_field.data_type())));
        }
        args.config_options = Arc::clone(self.session.context().copied_config().options());
        for value in &mut args.args {
            if let ColumnarValue::Array(column) = value
                && let Some(constant) = constant_of(column)?
            {
                *value = ColumnarValue::Scalar(constant);
            }
        }
        self.function.invoke_with_args(args)
    }
}

/// Returns the value that all rows of `column` have.
fn constant_of(column: &arrow::array::ArrayRef) -> Result<Option<ScalarValue>> {
    let first = ScalarValue::try_from_array(column, 0)?;
    for row in 1..column.len() {
        if !first.eq_array(column, row)? {
            return Ok(None);
        }
    }
    Ok(Some(first))
}

impl std::fmt::Debug for CrossingScalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CrossingScalar").field("name", &self.function.name()).finish_non_exhaustive()
    }
}

impl PartialEq for CrossingScalar {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.session, &other.session) && self.function == other.function
    }
}

impl Eq for CrossingScalar {}

impl Hash for CrossingScalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.hash(state);
    }
}

impl ScalarUDFImpl for CrossingScalar {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        contained(self.name(), || self.function.return_type(arguments))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        contained(self.name(), || self.function.return_field_from_args(args))
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        contained(self.name(), || self.function.coerce_types(arguments))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        contained(self.name(), || self.answer(args))
    }
}
