//! The plan node that turns a panic of a task into an error.
//!
//! ```text
//! engine   a thread for each partition ─ its rows ═▶ coordinator       a thread that panics ends, and so do its rows
//! here     CaughtExec ─ the panic as an error ═════▶ coordinator       the statement ends with the error
//! ```
//!
//! The worker of datafusion-distributed takes the end of a thread for the end of its rows. So a panic in an operator
//! would lose the rest of the rows, and nobody would know. The node stands at the root of the plan of a task. It stands
//! below exchanges, broadcasts and unions at the root, because the engine looks for these: it puts other exchanges in
//! their place, and reads the inputs of its own task alone. Operators below the root hand panics on, as one process
//! does. Metrics of tasks are matched by place, so the node shows the children of its plan as its own.
//!
//! The engine puts an exchange above the node, and encodes the rows. What panics there is seen by `requests`.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use datafusion::common::exec_datafusion_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties};
use datafusion_distributed::BroadcastExec;
use futures::StreamExt;

use crate::requests::watched_rows;

type Plan = Arc<dyn ExecutionPlan>;

/// Name of the engine's union, which is private.
const UNION: &str = "ChildrenIsolatorUnionExec";

/// Returns the plan of a task whose panics are errors.
///
/// # Errors
/// An operator does not take its input, which is an error of the plan.
pub(super) fn caught(plan: Plan) -> Result<Plan> {
    let is_looked_for = plan.is::<RepartitionExec>() || plan.is::<BroadcastExec>() || plan.name() == UNION;
    if !is_looked_for {
        return Ok(Arc::new(CaughtExec { plan, watches: Watches::Operators }));
    }
    let inputs = plan.children().into_iter().cloned().map(caught).collect::<Result<_>>()?;
    plan.replace_children(inputs, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
}

/// Returns `plan` of an engine whose exchanges read rows in threads of their own, such as Ballista: a thread that
/// panics is an error at the end of the rows, and not only their end. The node shows the children of `plan` as its own.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::arrow::datatypes::Schema;
/// use datafusion::physical_plan::empty::EmptyExec;
/// use datafusion_tadoc_distributed::watched;
///
/// let plan = watched(Arc::new(EmptyExec::new(Arc::new(Schema::empty()))));
/// assert_eq!(plan.name(), "EmptyExec");
/// ```
pub fn watched(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    Arc::new(CaughtExec { plan, watches: Watches::Threads })
}

/// Panics that a node makes errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watches {
    /// Panics of operators, which are below it.
    Operators,
    /// Panics of threads that were spawned for it.
    Threads,
}

/// Plan node in the place of `plan`. See the module's description.
#[derive(Debug)]
struct CaughtExec {
    plan: Plan,
    watches: Watches,
}

impl DisplayAs for CaughtExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.fmt_as(format, f)
    }
}

impl ExecutionPlan for CaughtExec {
    fn name(&self) -> &str {
        self.plan.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        self.plan.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.plan.apply_expressions(f)
    }

    fn replace_children(self: Arc<Self>, children: Vec<Plan>, options: ReplaceChildrenOptions) -> Result<Plan> {
        let plan = Arc::clone(&self.plan).replace_children(children, options)?;
        Ok(Arc::new(Self { plan, watches: self.watches }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if self.watches == Watches::Threads {
            return watched_rows(|| self.plan.execute(partition, context));
        }
        let name = self.plan.name().to_owned();
        let begun = catch_unwind(AssertUnwindSafe(|| self.plan.execute(partition, context)));
        let rows = begun.unwrap_or_else(|panic| Err(error_of(&name, panic.as_ref())))?;
        let schema = rows.schema();
        let rows = AssertUnwindSafe(rows).catch_unwind();
        let rows = rows.map(move |row| row.unwrap_or_else(|panic| Err(error_of(&name, panic.as_ref()))));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.plan.metrics()
    }
}

/// Returns the error of a plan with this `name` at its root that has panicked.
fn error_of(name: &str, panic: &(dyn Any + Send)) -> DataFusionError {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("without a text");
    exec_datafusion_err!(
        "a task of the statement failed in or below {name}: {text}; please report this with the statement"
    )
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, RecordBatch};
    use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
    use datafusion::common::runtime::SpawnedTask;
    use datafusion::physical_expr::EquivalenceProperties;
    use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
    use datafusion::physical_plan::{Partitioning, collect};
    use datafusion_tadoc::travel::leaf_methods;
    use futures::stream;

    use super::*;

    fn no_row() -> Result<RecordBatch> {
        panic!("on purpose")
    }

    /// Thread in which a leaf panics.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum In {
        /// The one that asks for the first row.
        Caller,
        /// One of its own, behind the first row.
        Spawned,
    }

    /// A leaf that panics.
    #[derive(Debug)]
    struct Panics {
        thread: In,
        properties: Arc<PlanProperties>,
    }

    /// Returns a row of a thread that panics before the next one, as exchanges send them.
    fn sent(schema: SchemaRef) -> SendableRecordBatchStream {
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(vec![7]))]);
        let thread = SpawnedTask::spawn(async move {
            sender.send(batch.map_err(DataFusionError::from)).await.unwrap();
            sender.send(no_row()).await.unwrap();
        });
        let rows = stream::unfold((receiver, thread), |(mut receiver, thread)| async move {
            receiver.recv().await.map(|row| (row, (receiver, thread)))
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    impl DisplayAs for Panics {
        fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "Panics")
        }
    }

    impl ExecutionPlan for Panics {
        leaf_methods!("Panics");

        fn apply_expressions(
            &self,
            _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
        ) -> Result<TreeNodeRecursion> {
            Ok(TreeNodeRecursion::Continue)
        }

        fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
            if self.thread == In::Spawned {
                return Ok(sent(self.schema()));
            }
            let rows = stream::once(async { no_row() });
            Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
        }
    }

    fn leaf() -> Plan {
        leaf_that_panics(In::Caller)
    }

    fn leaf_that_panics(thread: In) -> Plan {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Arc::new(Panics { thread, properties: Arc::new(properties) })
    }

    #[tokio::test]
    async fn panics_are_errors_and_nodes_keep_their_places() {
        let plan = caught(leaf()).unwrap();
        assert_eq!((plan.name(), plan.children().len()), ("Panics", 0));
        let error = collect(plan, Arc::default()).await.unwrap_err().to_string();
        assert!(error.contains("in or below Panics: on purpose"), "{error}");
        let shared = caught(Arc::new(BroadcastExec::new(leaf(), 1))).unwrap();
        assert!(shared.is::<BroadcastExec>() && shared.children()[0].name() == "Panics");
        let error = collect(shared, Arc::default()).await.unwrap_err().to_string();
        assert!(error.contains("on purpose"), "{error}");
        let exchange = RepartitionExec::try_new(leaf(), Partitioning::RoundRobinBatch(2)).unwrap();
        let exchange = caught(Arc::new(exchange)).unwrap();
        assert!(exchange.is::<RepartitionExec>() && exchange.children()[0].name() == "Panics");
        let error = collect(exchange, Arc::default()).await.unwrap_err().to_string();
        assert!(error.contains("on purpose"), "{error}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_end_of_a_thread_that_panics_is_no_end_of_rows() {
        let lost = collect(leaf_that_panics(In::Spawned), Arc::default()).await.unwrap();
        assert_eq!(lost.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
        for _ in 0..100 {
            let plan = watched(leaf_that_panics(In::Spawned));
            let error = collect(plan, Arc::default()).await.unwrap_err().to_string();
            assert!(error.contains("on purpose, at ") && error.contains("panics.rs:"), "{error}");
        }
    }
}
