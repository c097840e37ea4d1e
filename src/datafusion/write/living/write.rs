//! Path from the rows that a statement finds to one commit.
//!
//! ```text
//! latest version n ─▶ plan and run the query ─▶ edits ─▶ put version n + 1
//!        ▲                                                 │ another commit was first
//!        └─────────────────────────────────────────────────┘
//! ```
//!
//! The query is planned after version n was read, and versions only grow. If version n + 1 can be
//! put, then every table of the corpus in the query, also in subqueries, was read at n. So the
//! commit is exactly the result of the statement on the version that it is based on. A statement
//! that finds no rows commits nothing; it checks that n is still the latest version.
//!
//! The statement whose commit makes a recompression due does it. A failure or an interruption of that does
//! not undo the statement, and the next statement tries again.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, internal_err};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, EvaluationType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties, execute_stream,
};
use futures::{FutureExt, StreamExt};

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
        let (session, properties) = (Arc::new(session), Arc::new(properties));
        Self { operation, query, session, location, store, options, properties }
    }

    /// Commits the change and returns the number of rows.
    async fn run(&self, context: &Arc<TaskContext>) -> Result<u64> {
        let (is_nothing, num_rows) = (AtomicBool::new(false), AtomicU64::new(0));
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
        let (mut edits, mut num_rows, mut value_bytes) = (Vec::new(), 0, 0);
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
        let (operation, corpus) = (self.operation.name(), &self.location);
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
