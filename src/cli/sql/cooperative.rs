//! Operators that make many rows of few: they let others run, and can be stopped.
//!
//! DataFusion makes the leaves of a plan yield to other tasks after some batches. A join can make
//! millions of rows from one batch of a leaf, so an aggregation above it would neither yield nor
//! notice that nobody waits for it any more: `SELECT count(*) FROM a, b, c` ran on for minutes after
//! its client had left. So these operators yield too. It costs a counter for each batch.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;

/// Returns `plan` with operators that yield where rows multiply.
///
/// # Errors
/// An operator does not take its input, which is an error of the plan.
pub fn cooperative(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let wrap = |node: Arc<dyn ExecutionPlan>| {
        Ok(match multiplies_rows(node.name()) {
            true => Transformed::yes(Arc::new(CooperativeExec::new(node)) as _),
            false => Transformed::no(node),
        })
    };
    Ok(plan.transform_up(wrap)?.data)
}

fn multiplies_rows(name: &str) -> bool {
    name.ends_with("JoinExec") || ["UnnestExec", "RecursiveQueryExec"].contains(&name)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use datafusion::physical_plan::{collect, displayable};
    use datafusion::prelude::SessionContext;

    use super::*;

    #[tokio::test]
    async fn a_join_of_many_rows_can_be_stopped() {
        let context = SessionContext::new();
        let numbers = "(SELECT * FROM generate_series(1, 20000))";
        let sql = format!("SELECT count(*) FROM {numbers} a, {numbers} b, {numbers} c");
        let frame = context.sql(&sql).await.unwrap();
        let task = Arc::new(frame.task_ctx());
        let plan = cooperative(frame.create_physical_plan().await.unwrap()).unwrap();
        assert!(displayable(plan.as_ref()).indent(false).to_string().contains("CooperativeExec"));
        let started = Instant::now();
        let rows = tokio::time::timeout(Duration::from_millis(300), collect(plan, task));
        assert!(rows.await.is_err());
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}
