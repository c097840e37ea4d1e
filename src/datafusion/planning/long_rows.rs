//! The optimizer rule and plan node that reduce the rows of a batch if rows are long, and the memory limit that
//! suffices for a plan.
//!
//! ```text
//! TadocBatchRowsExec: row_bytes=10000   nodes below run with datafusion.execution.batch_size = 104
//!   AggregateExec
//!     RepartitionExec                   gathers a batch before it counts its memory
//!       TadocExec                       rows of 10 kB
//! ```
//!
//! Operators gather `batch_size` rows when they repartition, filter and join rows. When they merge, they hold a batch
//! of each file. They count a batch when it is complete. 8,192 documents can be hundreds of megabytes. So a plan with
//! long rows runs with so many rows in a batch that they have [`batch_bytes`]. The length of a row is the mean of the
//! segment with the longest rows.
//!
//! A batch has 1 MiB, or in a bounded pool a thousandth of the pool: a merge of spilled data holds several batches of
//! each of dozens of files. Plans of short rows keep the session's setting, and no node is put above them.
//!
//! [`enough_memory`] is not the smallest limit, but it is known before any data is read:
//!
//! ```text
//! segments   ▇▇▇▇▇▇▇▇▇▇▇▇           decoded, of all corpora at once; half of the limit
//! rows       ▇▇▇▇▇▇ ▇▇▇▇▇▇ ▇▇▇▇▇▇   as held by operators that cannot spill, and by partitions of sorts
//! ```

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use datafusion::prelude::SessionConfig;

use crate::corpora::memory::MemoryWhenUsed;
use crate::plan_methods::{passing_methods, same_rows_methods};
use crate::planning::exec::TadocExec;

/// Largest and smallest target for the bytes of a batch. A single row may have more.
const MOST_BYTES: u64 = 1 << 20;
const FEWEST_BYTES: u64 = 64 << 10;
/// Number of batches for which a bounded pool has room.
const BATCHES_OF_POOL: u64 = 1 << 10;

/// Returns the target for the bytes of a batch if memory is taken from `pool`.
pub(crate) fn batch_bytes(pool: &Arc<dyn MemoryPool>) -> u64 {
    match pool.memory_limit() {
        MemoryLimit::Finite(limit) => (limit as u64 / BATCHES_OF_POOL).clamp(FEWEST_BYTES, MOST_BYTES),
        _ => MOST_BYTES,
    }
}

/// Optimizer rule that puts [`BatchRowsExec`] above plans of long rows.
#[derive(Debug, Default)]
pub struct BatchRows;

impl PhysicalOptimizerRule for BatchRows {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let row_bytes = longest_row_bytes(&plan)?;
        let is_long = row_bytes.saturating_mul(config.execution.batch_size.get() as u64) > MOST_BYTES;
        Ok(if is_long { Arc::new(BatchRowsExec { input: plan, row_bytes }) } else { plan })
    }

    fn name(&self) -> &str {
        "tadoc_batch_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns the bytes of a row of the scan in `plan` with the longest rows; 0 if all rows are short.
fn longest_row_bytes(plan: &Arc<dyn ExecutionPlan>) -> Result<u64> {
    let mut longest = 0;
    plan.apply(|node| {
        if let Some(scan) = node.downcast_ref::<TadocExec>() {
            longest = longest.max(scan.row_bytes());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(longest)
}

/// Returns `context` with another configuration and run-time environment.
pub fn context_with(context: &TaskContext, config: SessionConfig, runtime: Arc<RuntimeEnv>) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(
        context.task_id(),
        context.session_id(),
        config,
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        runtime,
    ))
}

/// Plan node that returns the rows of its input and sets the rows of a batch below it. See the
/// module's description.
#[derive(Debug, Clone)]
pub struct BatchRowsExec {
    /// Node below.
    pub input: Arc<dyn ExecutionPlan>,
    /// Mean bytes of the longest rows.
    pub row_bytes: u64,
}

impl DisplayAs for BatchRowsExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => writeln!(f, "row_bytes={}", self.row_bytes),
            _ => write!(f, "TadocBatchRowsExec: row_bytes={}", self.row_bytes),
        }
    }
}

impl ExecutionPlan for BatchRowsExec {
    passing_methods!("TadocBatchRowsExec", |node, input| Ok(Self { input, row_bytes: node.row_bytes }));

    same_rows_methods!();

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let config = context.session_config();
        let num_rows = batch_bytes(context.memory_pool()) / self.row_bytes.max(1);
        let num_rows = usize::try_from(num_rows).unwrap_or(usize::MAX);
        let config = config.clone().with_batch_size(num_rows.clamp(1, config.batch_size()));
        self.input.execute(partition, context_with(&context, config, context.runtime_env()))
    }
}

/// Number of copies of the rows in operators that cannot spill: input, sorted, output.
const COPIES_OF_ROWS: u64 = 3;
/// Number of partitions of a sort for each further copy. Batches of several partitions share the buffers of
/// their texts, and each partition counts them: 16 of them took seven times the rows.
const PARTITIONS_FOR_A_COPY: u64 = 2;
/// Memory of a session besides segments and rows, in bytes.
const BESIDE_BYTES: u64 = 64 << 20;

/// Returns the size, in bytes, of a memory pool that suffices for `plan`, even if its operators
/// hold all rows of the corpora. Returns `None` if the plan reads no corpus.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> datafusion::error::Result<()> {
/// # let ctx = datafusion::prelude::SessionContext::new();
/// let plan = ctx.sql("SELECT 1").await?.create_physical_plan().await?;
/// assert_eq!(datafusion_tadoc::enough_memory(&plan), None);
/// # Ok(())
/// # }
/// ```
pub fn enough_memory(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let mut segments: HashMap<String, MemoryWhenUsed> = HashMap::new();
    let mut rows_bytes = 0u64;
    let mut num_scans = 0;
    let mut num_partitions = 0;
    let look = plan.apply(|node| {
        if let Some(scan) = node.downcast_ref::<TadocExec>() {
            num_scans += 1;
            rows_bytes = rows_bytes.saturating_add(scan.all_bytes());
            segments.extend(scan.memory_when_used());
        }
        if node.downcast_ref::<SortExec>().is_some() {
            let sort_partitions = node.properties().partitioning.partition_count() as u64;
            num_partitions = sort_partitions.max(num_partitions);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    if look.is_err() || num_scans == 0 {
        return None;
    }
    let held = segments.into_values().fold(MemoryWhenUsed::default(), MemoryWhenUsed::and);
    let segments_bytes = held.bytes().saturating_mul(2);
    let num_copies = COPIES_OF_ROWS + num_partitions / PARTITIONS_FOR_A_COPY;
    let copies_bytes = rows_bytes.saturating_mul(num_copies);
    Some(segments_bytes.saturating_add(copies_bytes).saturating_add(BESIDE_BYTES))
}
