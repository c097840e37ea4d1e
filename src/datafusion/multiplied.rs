//! Operators that repeat rows in one batch of any length: they ask for the memory of it first.
//!
//! ```text
//! UnnestExec           one batch of all elements, each with the other columns of its row
//!   AskingExec         … asks for the bytes of the repeated columns
//!
//! CrossJoinExec        a row of the first side beside each row of a batch of the second
//!   AskingExec         … remembers the bytes of the longest row
//!   AskingExec         … asks for them for each of its rows
//! ```
//!
//! DataFusion counts the memory of such a batch when it is there, or not at all. An `AskingExec` returns the
//! batches of its input if the pool of the statement has room for what is made of them, else an error. Columns
//! of views are repeated by an unnest as views, without their texts. Rows count with their mean in a batch.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::array::{Array, Int64Array, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::cast::as_primitive_array;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::CrossJoinExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::StreamExt;

use crate::functions::{AnswerMemory, value_bytes};
use crate::plan_methods::passing_methods;

/// Bytes of a view of a text.
const VIEW_BYTES: u64 = 16;

/// Returns `plan` with operators that ask for memory below those that repeat rows.
///
/// # Errors
/// An operator does not take its input, which is an error of the plan.
pub fn asking(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let replace = |node: Arc<dyn ExecutionPlan>| {
        let asked: Vec<Asked> = if let Some(unnest) = node.downcast_ref::<UnnestExec>() {
            let lists = unnest.list_column_indices();
            vec![Asked::Elements(lists.iter().map(|list| list.index_in_input_schema).collect())]
        } else if node.is::<CrossJoinExec>() {
            let row = Arc::new(AtomicU64::new(0));
            vec![Asked::Nothing(Arc::clone(&row)), Asked::Rows(row)]
        } else {
            return Ok(Transformed::no(node));
        };
        let children = node.children().into_iter().zip(asked);
        let children = children
            .map(|(input, asked)| Arc::new(AskingExec { input: Arc::clone(input), asked }) as Arc<dyn ExecutionPlan>);
        let children = children.collect();
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        Ok(Transformed::yes(node.replace_children(children, options)?))
    };
    Ok(plan.transform_up(replace)?.data)
}

/// The memory that the operator above a node takes for a batch of it.
#[derive(Debug, Clone)]
enum Asked {
    /// A copy of the other columns for each element of the lists in these columns.
    Elements(Vec<usize>),
    /// None yet. The longest row is remembered.
    Nothing(Arc<AtomicU64>),
    /// The remembered row for each row.
    Rows(Arc<AtomicU64>),
}

impl Asked {
    fn bytes(&self, batch: &RecordBatch) -> Result<u64> {
        let num_rows = batch.num_rows() as u64;
        match self {
            Self::Elements(lists) => elements_bytes(batch, lists),
            Self::Nothing(row) => {
                let bytes = batch.columns().iter().map(bytes_of).fold(0, u64::saturating_add);
                row.fetch_max(bytes.div_ceil(num_rows.max(1)), Ordering::Relaxed);
                Ok(0)
            }
            Self::Rows(row) => Ok(row.load(Ordering::Relaxed).saturating_mul(num_rows)),
        }
    }
}

fn bytes_of(column: &Arc<dyn Array>) -> u64 {
    value_bytes(&ColumnarValue::Array(Arc::clone(column)))
}

/// Returns the bytes of the rows of `batch` for each element of its columns `lists`.
fn elements_bytes(batch: &RecordBatch, lists: &[usize]) -> Result<u64> {
    let lens = lists.iter().map(|&list| lens_of(batch.column(list)));
    let lens: Vec<Int64Array> = lens.collect::<Result<_>>()?;
    let len_at = |row: usize| {
        let len = lens.iter().filter(|lens| lens.is_valid(row)).map(|lens| lens.value(row));
        len.max().and_then(|len| u64::try_from(len).ok()).unwrap_or(0)
    };
    let num_elements = (0..batch.num_rows()).map(len_at).fold(0, u64::saturating_add);
    let others = batch.columns().iter().enumerate().filter(|(at, _)| !lists.contains(at));
    let other_bytes = others.map(|(_, column)| match column.data_type() {
        DataType::Utf8View | DataType::BinaryView => column.len() as u64 * VIEW_BYTES,
        _ => bytes_of(column),
    });
    let row_bytes = other_bytes.sum::<u64>().div_ceil(batch.num_rows().max(1) as u64);
    Ok(num_elements.saturating_mul(row_bytes))
}

/// Returns the lengths of lists.
fn lens_of(lists: &Arc<dyn Array>) -> Result<Int64Array> {
    let lens = cast(&length(lists)?, &DataType::Int64)?;
    Ok(as_primitive_array::<Int64Type>(&lens)?.clone())
}

/// Plan node that returns the rows of its input and asks for memory.
#[derive(Debug)]
struct AskingExec {
    input: Arc<dyn ExecutionPlan>,
    asked: Asked,
}

impl DisplayAs for AskingExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            _ => write!(f, "AskingExec"),
        }
    }
}

impl ExecutionPlan for AskingExec {
    passing_methods!("AskingExec", |node, input| Ok(Self { input, asked: node.asked.clone() }));

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, Arc::clone(&context))?;
        let schema = rows.schema();
        let asked = self.asked.clone();
        let checked = rows.map(move |batch| {
            let batch = batch?;
            let mut memory = AnswerMemory::new("rows that repeat", Some(context.memory_pool()));
            memory.add(asked.bytes(&batch)?)?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, checked)))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::physical_plan::{collect, displayable};
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::*;

    async fn rows(sql: &str) -> (Result<usize>, String) {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(64 << 20));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool)).build_arc();
        let context = SessionContext::new_with_config_rt(SessionConfig::new(), runtime.unwrap());
        let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        let plan = asking(plan).unwrap();
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        let rows = collect(plan, context.task_ctx()).await;
        assert_eq!(pool.reserved(), 0, "{sql}");
        (rows.map(|batches| batches.iter().map(RecordBatch::num_rows).sum()), shown)
    }

    #[tokio::test]
    async fn repeated_rows_have_room_or_are_refused() {
        let text = |bytes: usize| format!("arrow_cast(repeat('x', {bytes}), 'Utf8')");
        for (sql, num_rows) in [
            (format!("SELECT unnest(range(0, 30000)), {} AS t", text(100)), Some(30_000)),
            (format!("SELECT unnest(range(0, 30000)), {} AS t", text(9000)), None),
            (
                format!("SELECT a.t, b.value FROM (SELECT {} AS t) a CROSS JOIN range(0, 30000) b", text(100)),
                Some(30_000),
            ),
            (format!("SELECT a.t, b.value FROM (SELECT {} AS t) a CROSS JOIN range(0, 30000) b", text(90_000)), None),
            (format!("SELECT a.t, b.value FROM (SELECT {} AS t) a CROSS JOIN range(0, 3) b", text(900_000)), Some(3)),
        ] {
            let (found, shown) = rows(&sql).await;
            assert!(shown.contains("AskingExec"), "{shown}");
            match num_rows {
                Some(num_rows) => assert_eq!(found.unwrap(), num_rows, "{sql}"),
                None => {
                    let error = found.unwrap_err().to_string();
                    assert!(error.contains("so much memory is not left"), "{sql}: {error}");
                }
            }
        }
    }
}
