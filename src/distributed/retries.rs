//! The plan node that runs a statement again without a worker that was lost.
//!
//! ```text
//! stages on workers 1 2 3 ─▶ first row ─▶ all rows            rows are passed on as they come
//!                  2 is lost ┐
//! stages on workers 1 3     ◀┘ ─▶ first row ─▶ all rows       planned again; no row was passed on before
//!                  3 is lost ┐
//! in this process           ◀┘ ─▶ first row ─▶ all rows       one worker has no advantage
//!
//! first row ─▶ a worker is lost ─▶ error                      its reader has rows of the first attempt
//! ```
//!
//! The stages of the engine cannot replace one task: those who read its rows know only the worker of its plan, and
//! a partition can be read once. So the whole statement runs again, once for each lost worker at most. Rows that are
//! added up come last, and a statement over them goes on until then. No row comes twice, since an attempt ends before
//! the next one begins, and none of its rows were passed on.
//!
//! A statement that writes does not run again, because its first attempt may have written.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::{EmptyRecordBatchStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, execute_stream};
use datafusion_distributed::DistributedExec;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};

use crate::connections::lost_worker;
use crate::workers::WorkerUrls;
use datafusion_tadoc::travel::{WriteSegmentsExec, one_input_methods, same_rows_methods};

type Plan = Arc<dyn ExecutionPlan>;
/// Plans the statement again, for the workers that are left.
pub(super) type PlanAgain = Arc<dyn Fn() -> BoxFuture<'static, Result<Plan>> + Send + Sync>;

/// Plan node that returns the rows of a statement. See the module's description.
pub(super) struct RetryExec {
    input: Plan,
    workers: WorkerUrls,
    plan_again: PlanAgain,
}

impl RetryExec {
    /// Builds a node above the plan `input` of a statement that runs on `workers`.
    pub(super) fn new(input: Plan, workers: WorkerUrls, plan_again: PlanAgain) -> Self {
        Self { input, workers, plan_again }
    }

    /// Returns true if `plan` has tasks on workers and writes nothing.
    ///
    /// # Errors
    /// None of this node.
    pub(super) fn fits(plan: &Plan) -> Result<bool> {
        let mut is_divided = false;
        let mut is_written = false;
        plan.apply(|node| {
            is_divided |= node.is::<DistributedExec>();
            is_written |= node.is::<DataSinkExec>() || node.is::<WriteSegmentsExec>();
            Ok(if is_written { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(is_divided && !is_written)
    }
}

impl fmt::Debug for RetryExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryExec").field("input", &self.input).field("workers", &self.workers).finish_non_exhaustive()
    }
}

impl DisplayAs for RetryExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            _ => write!(f, "TadocRetryExec"),
        }
    }
}

impl ExecutionPlan for RetryExec {
    one_input_methods!("TadocRetryExec", |node, input| Ok(Self::new(
        input,
        node.workers.clone(),
        Arc::clone(&node.plan_again)
    )));

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    same_rows_methods!();

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let attempt = self.input.execute(partition, Arc::clone(&context))?;
        let attempts = Attempts { workers: self.workers.clone(), plan_again: Arc::clone(&self.plan_again), context };
        let rows = stream::once(attempts.rows(attempt)).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// The attempts of a statement.
struct Attempts {
    workers: WorkerUrls,
    plan_again: PlanAgain,
    context: Arc<TaskContext>,
}

impl Attempts {
    /// Returns the rows of the first attempt that has one, of `attempt` and those after it.
    async fn rows(self, mut attempt: SendableRecordBatchStream) -> Result<SendableRecordBatchStream> {
        let mut num_lost = 0;
        loop {
            let error = match first_rows(&mut attempt).await {
                Ok(None) => return Ok(Box::pin(EmptyRecordBatchStream::new(attempt.schema()))),
                Ok(Some(first)) => {
                    let schema = attempt.schema();
                    let rows = stream::once(async { Ok(first) }).chain(attempt);
                    return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)));
                }
                Err(error) => error,
            };
            let lost = lost_worker(self.workers.urls(), &error);
            let Some((url, reason)) = lost.filter(|_| num_lost < self.workers.len()) else { return Err(error) };
            num_lost += 1;
            self.workers.lose(url, &reason);
            // The tasks of the other workers end.
            drop(attempt);
            let plan = (self.plan_again)().await?;
            attempt = execute_stream(plan, Arc::clone(&self.context))?;
        }
    }
}

/// Returns the first batch of `rows` that has a row.
async fn first_rows(rows: &mut SendableRecordBatchStream) -> Result<Option<RecordBatch>> {
    while let Some(batch) = rows.try_next().await? {
        if batch.num_rows() > 0 {
            return Ok(Some(batch));
        }
    }
    Ok(None)
}
