//! From the rows that a statement finds to one commit.
//!
//! ```text
//! latest version n ─▶ plan and run the query ─▶ edits ─▶ put version n + 1
//!        ▲                                                 │ another came first
//!        └─────────────────────────────────────────────────┘
//! ```
//!
//! The query is planned after n was read, and versions only grow. So where n + 1 could be put, every
//! table of the corpus in it, those in subqueries too, was read at n: what is committed is exactly
//! what the statement says of the version it is committed on. A statement that finds nothing commits
//! nothing, and so looks whether n is still the latest.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{internal_err, plan_datafusion_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, EvaluationType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
    execute_stream,
};
use futures::StreamExt;

use crate::errors::{core_error, datafusion_error};
use crate::options::TadocOptions;
use crate::store::recompress::recompress_if_due;
use tadoc::edits::{Edit, EditBatch, EditMode, column_tables};
use tadoc::error::Error;
use tadoc_store::{Change, CommitKind, LivingStore, Version};

/// What a statement makes of the rows of its query.
#[async_trait]
pub(crate) trait Operation: fmt::Debug + Send + Sync {
    /// Its name in EXPLAIN.
    fn name(&self) -> &'static str;

    /// What the history says of it.
    fn kind(&self) -> CommitKind;

    /// What its offsets refer to.
    fn mode(&self) -> EditMode {
        EditMode::InSequence
    }

    /// Whether the order of its rows counts, so that one thread runs its query.
    fn is_ordered(&self) -> bool {
        false
    }

    /// Adds the edits that `rows` ask for.
    ///
    /// # Errors
    /// An execution error that names the row that cannot be an edit.
    fn read(&self, rows: &RecordBatch, edits: &mut Vec<Edit>) -> Result<()>;

    /// Whether the edits can be made on the version that `session` reads; puts them in order: that of
    /// ids, one of a kind for each, where nothing else is said (partitions answer in any order).
    ///
    /// # Errors
    /// An execution error that names the edit that cannot.
    async fn check(
        &self,
        _session: &SessionState,
        edits: &mut Vec<Edit>,
        _context: &Arc<TaskContext>,
    ) -> Result<()> {
        edits.sort_by_key(|edit| (edit.doc_id(), edit.sets_columns()));
        edits.dedup_by_key(|edit| (edit.doc_id(), edit.sets_columns()));
        Ok(())
    }
}

/// Makes an operation on the rows of a query.
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

    /// Commits; returns the number of rows.
    async fn run(&self, context: &Arc<TaskContext>) -> Result<u64> {
        let (is_nothing, num_rows) = (AtomicBool::new(false), AtomicU64::new(0));
        let change = async |mut latest: Version| loop {
            let (edits, found) = self.edits(context).await.map_err(core_error)?;
            num_rows.store(found, Ordering::Relaxed);
            if !edits.is_empty() {
                let batch = EditBatch { mode: self.operation.mode(), edits };
                return Ok(Change::edit(self.operation.kind(), &batch));
            }
            // Nothing found is nothing to commit, where it was not found in two versions.
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

    /// The edits that the latest version asks for, and the number of rows they came from.
    async fn edits(&self, context: &Arc<TaskContext>) -> Result<(Vec<Edit>, u64)> {
        let reservation =
            MemoryConsumer::new("TadocChangeExec").register(&context.runtime_env().memory_pool);
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
            // The edits, and what they bring once more in the bytes of the commit.
            reservation.try_resize(size_of::<Edit>() * edits.len() + 2 * value_bytes)?;
        }
        self.operation.check(&self.session, &mut edits, context).await?;
        Ok((edits, num_rows))
    }
}

/// What every statement that changes rows answers with.
pub(super) fn count_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("count", DataType::UInt64, false)]))
}

/// The error for a place that cannot be changed.
pub(crate) fn read_only(location: &str) -> DataFusionError {
    plan_datafusion_err!(
        "{location} is read-only: only a living corpus can be changed; make one with CREATE EXTERNAL \
         TABLE d STORED AS TADOC LOCATION 'folder/' OPTIONS ('tadoc.create' 'true') and INSERT INTO d \
         (path, text) SELECT path, text FROM documents('{location}')"
    )
}

/// The error for filters that may not be all of the statement's.
pub(crate) fn unfiltered(location: &str) -> DataFusionError {
    plan_datafusion_err!(
        "{location}: DataFusion's planner may have dropped a part of the WHERE clause, so nothing is \
         changed; set the session up with register_all or with_tadoc, which keep the whole"
    )
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
    fn name(&self) -> &str {
        "TadocChangeExec"
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
            return Ok(self);
        }
        internal_err!("TadocChangeExec is a leaf, got {} children", children.len())
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
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
