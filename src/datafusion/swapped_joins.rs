//! Joins whose sides the optimizer swapped, with columns of one name on both sides.
//!
//! ```text
//! ProjectionExec: doc_id@1, doc_id@0     ─▶    HashJoinExec: projection=[doc_id@1, doc_id@0]
//!   HashJoinExec
//! ```
//!
//! DataFusion (55.2) puts the columns of a swapped join in their old order by a projection. When a filter moves below
//! a projection, its columns are found by name: the first one of a name is taken for all. So the filter became one of
//! other columns, and rows were missing. A join that has the order itself finds columns by number. The rule runs
//! directly behind the one that swaps. Limit: a projection further above is not made a part of such a join.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;

/// Name of the rule that swaps sides.
const SWAPS: &str = "join_selection";

/// Adds the rule of this module to `optimizer`.
pub(crate) fn order_swapped_joins(optimizer: &mut PhysicalOptimizer) {
    if let Some(at) = optimizer.rules.iter().position(|rule| rule.name() == SWAPS) {
        optimizer.rules.insert(at + 1, Arc::new(SwappedJoins));
    }
}

#[derive(Debug)]
struct SwappedJoins;

impl PhysicalOptimizerRule for SwappedJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(ordered).data()
    }

    fn name(&self) -> &str {
        "tadoc_swapped_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns a join that orders its columns itself for a projection that does it, if columns have equal names.
fn ordered(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(projection) = node.downcast_ref::<ProjectionExec>() else { return Ok(Transformed::no(node)) };
    let Some(join) = projection.input().downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(node)) };
    if join.contains_projection() || !has_equal_names(&projection.schema()) {
        return Ok(Transformed::no(node));
    }
    let columns = projection.expr().iter().map(|output| {
        let column = output.expr.downcast_ref::<Column>()?;
        (column.name() == output.alias).then(|| column.index())
    });
    match columns.collect::<Option<Vec<usize>>>() {
        Some(columns) => Ok(Transformed::yes(Arc::new(join.with_projection(Some(columns))?))),
        None => Ok(Transformed::no(node)),
    }
}

fn has_equal_names(schema: &Schema) -> bool {
    let mut names = HashSet::new();
    !schema.fields().iter().all(|field| names.insert(field.name()))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use crate::register_all;

    #[tokio::test]
    async fn conditions_are_about_the_columns_of_their_side() {
        let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
        register_all(&ctx).unwrap();
        for sql in [
            "CREATE TABLE a AS VALUES (1, 10), (2, 20), (3, 30), (4, 40)",
            "CREATE TABLE b AS VALUES (1, 100), (2, 200), (3, 3), (9, NULL)",
        ] {
            ctx.sql(sql).await.unwrap().collect().await.unwrap();
        }
        for (sql, expected) in [
            (
                "SELECT c0 FROM (SELECT q.column2 AS c0 FROM a AS p RIGHT JOIN b AS q ON p.column1 = q.column1 WHERE \
                 p.column2 IS NULL OR q.column1 > 1) AS s WHERE c0 IS NULL OR c0 < 150 ORDER BY c0",
                "3, ",
            ),
            (
                "SELECT q.column1 FROM a AS p RIGHT JOIN b AS q ON p.column1 = q.column1 WHERE coalesce(p.column2, 0) < \
                 coalesce(q.column2, 5) ORDER BY 1",
                "1, 2, 9",
            ),
        ] {
            let rows = ctx.sql(sql).await.unwrap().collect().await.unwrap();
            let table = pretty_format_batches(&rows).unwrap().to_string();
            let lines = table.lines().skip(3).filter(|line| line.starts_with('|'));
            let found: Vec<&str> = lines.map(|line| line.trim_matches(['|', ' '])).collect();
            assert_eq!(found.join(", "), expected, "{sql}");
        }
    }
}
