//! The plan node that runs a statement again without a worker that was lost, or is slow.
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
//! A worker that is only slow (`progress`) is left once in a statement: the second attempt waits for all. It begins
//! when the others have waited for about half of the time that they took, and they have their segments open. So the
//! statement takes about twice the time that it would take without the slow one. Of two workers, none is left beside
//! the slow one with which anything could be divided, so the second attempt runs in this process.
//!
//! A statement whose rows are passed on as they come waits for a slow worker from its first row on: its reader has rows
//! of the attempt, and what is left of the worker's partition cannot be asked of another one.
//!
//! A statement that writes runs again where its sink shows nothing before all rows are there: files, and one commit to
//! a living corpus. Its only row comes after that, and an attempt that has failed has written nothing that is seen. It
//! waits for slow workers, because an attempt that is given up may be just completing.

use std::fmt;
use std::future::pending;
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
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use tokio::task::unconstrained;
use url::Url;

use crate::connections::{Connections, lost_worker};
use crate::progress::Tasks;
use crate::workers::WorkerUrls;
use datafusion_tadoc::travel::{context_with, one_input_methods, same_rows_methods, shows_all_or_nothing};

type Plan = Arc<dyn ExecutionPlan>;
/// Plans the statement again, for the workers that are left.
pub(super) type PlanAgain = Arc<dyn Fn() -> BoxFuture<'static, Result<Plan>> + Send + Sync>;

/// Plan node that returns the rows of a statement. See the module's description.
pub(super) struct RetryExec {
    input: Plan,
    workers: WorkerUrls,
    connections: Connections,
    retries: Retries,
    plan_again: PlanAgain,
}

/// The way in which a plan goes on when workers are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retries {
    /// Nothing: no worker has a part, or something is written that is seen at once.
    None,
    /// The plan runs again after an error.
    AfterErrors,
    /// The plan may also be given up.
    AtAnyTime,
}

impl Retries {
    /// Returns what can be done about `plan`.
    ///
    /// # Errors
    /// None of this crate.
    pub(super) fn for_plan(plan: &Plan) -> Result<Self> {
        let mut is_divided = false;
        let mut retries = Self::AtAnyTime;
        plan.apply(|node| {
            is_divided |= node.is::<DistributedExec>();
            if let Some(writing) = node.downcast_ref::<DataSinkExec>() {
                let is_whole = shows_all_or_nothing(writing.sink());
                retries = if is_whole && retries != Self::None { Self::AfterErrors } else { Self::None };
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if is_divided { retries } else { Self::None })
    }
}

impl RetryExec {
    /// Builds a node above the plan `input` of a statement that runs on `workers`, to which there are `connections`.
    pub(super) fn new(
        input: Plan,
        workers: WorkerUrls,
        connections: Connections,
        retries: Retries,
        plan_again: PlanAgain,
    ) -> Self {
        Self { input, workers, connections, retries, plan_again }
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
        node.connections.clone(),
        node.retries,
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
        let attempts = Attempts {
            workers: self.workers.clone(),
            connections: self.connections.clone(),
            retries: self.retries,
            leaves_slow_ones: self.retries == Retries::AtAnyTime,
            plan_again: Arc::clone(&self.plan_again),
            context,
        };
        let tasks = Arc::default();
        let attempt = self.input.execute(partition, attempts.context_for(&tasks))?;
        let rows = stream::once(attempts.rows(attempt, tasks)).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// The attempts of a statement.
struct Attempts {
    workers: WorkerUrls,
    connections: Connections,
    retries: Retries,
    leaves_slow_ones: bool,
    plan_again: PlanAgain,
    context: Arc<TaskContext>,
}

/// The begin of an attempt.
enum Begin {
    /// Its first rows, if it has any.
    Rows(Option<RecordBatch>),
    /// Workers that are slow, each with a reason.
    Slow(Vec<(Url, String)>),
}

impl Attempts {
    /// Returns the context of an attempt that notes its `tasks`.
    fn context_for(&self, tasks: &Arc<Tasks>) -> Arc<TaskContext> {
        let mut config = self.context.session_config().clone();
        config.set_extension(Arc::clone(tasks));
        context_with(&self.context, config, self.context.runtime_env())
    }

    /// Returns the rows of the first attempt that has one, of `attempt` with its `tasks` and those after it.
    async fn rows(
        mut self,
        mut attempt: SendableRecordBatchStream,
        mut tasks: Arc<Tasks>,
    ) -> Result<SendableRecordBatchStream> {
        let mut num_lost = 0;
        loop {
            let lost = match self.begin(&mut attempt, &tasks).await {
                Ok(Begin::Rows(None)) => return Ok(Box::pin(EmptyRecordBatchStream::new(attempt.schema()))),
                Ok(Begin::Rows(Some(first))) => {
                    let schema = attempt.schema();
                    let rows = stream::once(async { Ok(first) }).chain(attempt);
                    return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)));
                }
                Ok(Begin::Slow(workers)) => {
                    self.leaves_slow_ones = false;
                    workers
                }
                Err(error) => {
                    let may_go_on = num_lost < self.workers.len() && !self.has_written(&mut attempt);
                    let lost = lost_worker(self.workers.urls(), &error).filter(|_| may_go_on);
                    let Some((url, reason)) = lost else { return Err(error) };
                    vec![(url.clone(), reason)]
                }
            };
            num_lost += lost.len();
            for (url, reason) in lost {
                self.workers.lose(&url, &reason);
            }
            // The tasks of the other workers end.
            drop(attempt);
            let plan = (self.plan_again)().await?;
            tasks = Arc::default();
            attempt = execute_stream(plan, self.context_for(&tasks))?;
        }
    }

    /// Waits for the first rows of an attempt, or until workers are slow.
    async fn begin(&self, attempt: &mut SendableRecordBatchStream, tasks: &Tasks) -> Result<Begin> {
        let slow = async {
            if self.leaves_slow_ones {
                let num_partitions = self.context.session_config().target_partitions();
                return tasks.slow_workers(&self.connections, num_partitions).await;
            }
            pending().await
        };
        tokio::select! {
            biased;
            first = first_rows(attempt) => first.map(Begin::Rows),
            workers = slow => Ok(Begin::Slow(workers)),
        }
    }

    /// Returns true if `attempt`, which has an error, has also written what it should. A worker may be lost after all
    /// rows have come, and the engine returns the error and the row of the sink in any order.
    fn has_written(&self, attempt: &mut SendableRecordBatchStream) -> bool {
        let writes = self.retries == Retries::AfterErrors;
        writes && matches!(unconstrained(first_rows(attempt)).now_or_never(), Some(Ok(Some(_))))
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
