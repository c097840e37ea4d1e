//! Filters that stay above operators whose output has several columns of one name.
//!
//! ```text
//! FilterExec: b@0 IS NULL OR a@1 > 1              FilterExec
//!   ProjectionExec: b@1 as b, a@2 as a, b@3 as b    EqualNamesExec              refuses filters from above
//!     HashJoinExec                                    ProjectionExec
//! ```
//!
//! When DataFusion (55.2) moves a filter of a plan below an operator, it finds the filter's columns there by name: the
//! first one of a name is taken for all. Below a join of tables that have columns of one name the filter became one of
//! other columns, and rows were missing. So while filters move, a node above each such operator refuses them. It is
//! gone afterwards. Filters of statements have moved before, when columns still had the names of their tables, so
//! this leaves above only those that joins and sorts make while they run. Cost: two walks over the plan.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use crate::plan_methods::passing_methods;

/// Start of the names of the rules that move filters.
const MOVES: &str = "FilterPushdown";

/// Lets the rules of `optimizer` that move filters leave them above equal names.
pub(crate) fn guard_equal_names(optimizer: &mut PhysicalOptimizer) {
    for rule in &mut optimizer.rules {
        if rule.name().starts_with(MOVES) {
            *rule = Arc::new(GuardedMoves { moves: Arc::clone(rule) });
        }
    }
}

/// The rule `moves`, over a plan with a guard above each operator with equal names.
#[derive(Debug)]
struct GuardedMoves {
    moves: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl PhysicalOptimizerRule for GuardedMoves {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let guarded = plan.transform_up(|node| Ok(guarded(node))).data()?;
        let moved = self.moves.optimize(guarded, config)?;
        moved.transform_up(|node| Ok(without_guard(node))).data()
    }

    fn name(&self) -> &str {
        self.moves.name()
    }

    fn schema_check(&self) -> bool {
        self.moves.schema_check()
    }
}

fn guarded(node: Arc<dyn ExecutionPlan>) -> Transformed<Arc<dyn ExecutionPlan>> {
    if has_equal_names(&node.schema()) {
        return Transformed::yes(Arc::new(EqualNamesExec { input: node }));
    }
    Transformed::no(node)
}

fn without_guard(node: Arc<dyn ExecutionPlan>) -> Transformed<Arc<dyn ExecutionPlan>> {
    match node.downcast_ref::<EqualNamesExec>() {
        Some(guard) => Transformed::yes(Arc::clone(&guard.input)),
        None => Transformed::no(node),
    }
}

fn has_equal_names(schema: &Schema) -> bool {
    let mut names = HashSet::new();
    !schema.fields().iter().all(|field| names.insert(field.name()))
}

/// Plan node that returns the rows of its input and takes no filter from above.
#[derive(Debug)]
struct EqualNamesExec {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for EqualNamesExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            _ => write!(f, "EqualNamesExec"),
        }
    }
}

impl ExecutionPlan for EqualNamesExec {
    passing_methods!("EqualNamesExec", |_node, input| Ok(Self { input }));

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{SessionConfig, SessionContext};

    use crate::register_all;
    use crate::shown_rows::shown_rows;

    async fn session() -> SessionContext {
        let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
        register_all(&ctx).unwrap();
        for sql in [
            "CREATE TABLE a AS VALUES (1, 10), (2, 20), (3, 30), (4, 40)",
            "CREATE TABLE b AS VALUES (1, 100), (2, 200), (3, 3), (9, NULL), (0, 7)",
        ] {
            ctx.sql(sql).await.unwrap().collect().await.unwrap();
        }
        ctx
    }

    #[tokio::test]
    async fn conditions_are_about_the_columns_of_their_side() {
        let ctx = session().await;
        for (sql, expected) in [
            (
                "SELECT c0 FROM (SELECT q.column2 AS c0 FROM a AS p RIGHT JOIN b AS q ON p.column1 = q.column1 WHERE \
                 p.column2 IS NULL OR q.column1 > 1) AS s WHERE c0 IS NULL OR c0 < 150 ORDER BY c0",
                "3, 7, ",
            ),
            (
                "SELECT q.column1 FROM a AS p RIGHT JOIN b AS q ON p.column1 = q.column1 WHERE coalesce(p.column2, 0) < \
                 coalesce(q.column2, 5) ORDER BY 1",
                "0, 1, 2, 9",
            ),
            (
                "SELECT q.column1 FROM a AS p RIGHT JOIN b AS q ON p.column1 = q.column1 WHERE p.column2 IS NULL OR \
                 q.column2 IS NULL ORDER BY q.column1 LIMIT 1",
                "0",
            ),
        ] {
            assert_eq!(shown_rows(&ctx, sql).await.join(", "), expected, "{sql}");
        }
    }

    #[tokio::test]
    async fn filters_stay_above_and_guards_leave() {
        let sql = "EXPLAIN SELECT * FROM a JOIN b ON a.column1 = b.column1 WHERE a.column2 IS NULL OR b.column2 > 1";
        let plan = session().await.sql(sql).await.unwrap().to_string().await.unwrap();
        assert!(!plan.contains("EqualNamesExec"), "{plan}");
    }
}
