//! The optimizer rule and plan node that keep constants of an outer join from being taken for constants of its rows.
//!
//! ```text
//! HashJoinExec: join_type=Left       y.b is 'all' or NULL
//!   scan of x
//!   TadocNullableRowsExec            promises no constant
//!     ProjectionExec: 'all' as b     promises that b is constant
//! ```
//!
//! A row without a partner has NULL in all columns of the other side. A join of DataFusion (55.2) still promises
//! that a column is constant if it was constant below. Sorts are left out then, rows of a group come in parts, and
//! merges take rows in a wrong order. So [`NullableConstants`] puts a [`NullableRowsExec`] below each side of a join
//! whose rows can be missing, if a column of it is constant, or equal to an expression like `coalesce(a, 0)`. Columns
//! that are equal stay equal, because both become NULL.

use std::fmt;
use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec, SortMergeJoinExec, SymmetricHashJoinExec,
};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};

use crate::plan_methods::{one_input_methods, same_rows_methods};

/// Optimizer rule that puts [`NullableRowsExec`] below outer joins. It is the first rule, because the others count
/// on what is constant.
#[derive(Debug, Default)]
pub(crate) struct NullableConstants;

impl PhysicalOptimizerRule for NullableConstants {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(guarded).data()
    }

    fn name(&self) -> &str {
        "tadoc_nullable_constants"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns `node` with inputs that promise only what rows of NULL keep, where rows can be missing.
fn guarded(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let nullable = match join_type(&node) {
        Some(JoinType::Left) => [false, true],
        Some(JoinType::Right) => [true, false],
        Some(JoinType::Full) => [true, true],
        _ => return Ok(Transformed::no(node)),
    };
    let mut inputs = Vec::new();
    let mut is_changed = false;
    for (input, is_nullable) in node.children().into_iter().zip(nullable) {
        if is_nullable && promises_too_much(input.equivalence_properties()) {
            inputs.push(Arc::new(NullableRowsExec::try_new(Arc::clone(input))?) as Arc<dyn ExecutionPlan>);
            is_changed = true;
        } else {
            inputs.push(Arc::clone(input));
        }
    }
    if !is_changed {
        return Ok(Transformed::no(node));
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Ok(Transformed::yes(node.replace_children(inputs, options)?))
}

/// Returns true if rows of NULL do not keep what is `known`.
fn promises_too_much(known: &EquivalenceProperties) -> bool {
    let is_computed = |expr: &Arc<dyn PhysicalExpr>| !expr.is::<Column>();
    !known.constants().is_empty() || known.eq_group().iter().any(|class| class.iter().any(is_computed))
}

/// Returns the kind of join of `node`; `None` for other nodes.
fn join_type(node: &Arc<dyn ExecutionPlan>) -> Option<JoinType> {
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        return Some(*join.join_type());
    }
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        return Some(*join.join_type());
    }
    if let Some(join) = node.downcast_ref::<SortMergeJoinExec>() {
        return Some(join.join_type());
    }
    if let Some(join) = node.downcast_ref::<SymmetricHashJoinExec>() {
        return Some(*join.join_type());
    }
    node.downcast_ref::<PiecewiseMergeJoinExec>().map(PiecewiseMergeJoinExec::join_type)
}

/// Plan node that returns the rows of its input, and promises of them what holds of rows of NULL, too. See the
/// module's description.
#[derive(Debug)]
pub struct NullableRowsExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl NullableRowsExec {
    /// Builds a node over `input`.
    ///
    /// # Errors
    /// The errors of DataFusion's notes on equal columns.
    pub fn try_new(input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let known = kept_with_nulls(input.equivalence_properties())?;
        let properties = input.properties().as_ref().clone().with_eq_properties(known);
        Ok(Self { input, properties: Arc::new(properties) })
    }
}

/// Returns which columns are equal, as in `known`. An order is forgotten: sorts below leave constants out of theirs.
fn kept_with_nulls(known: &EquivalenceProperties) -> Result<EquivalenceProperties> {
    let mut kept = EquivalenceProperties::new(Arc::clone(known.schema()));
    for class in known.eq_group().iter() {
        let columns: Vec<&Arc<dyn PhysicalExpr>> = class.iter().filter(|expr| expr.is::<Column>()).collect();
        for pair in columns.windows(2) {
            kept.add_equal_conditions(Arc::clone(pair[0]), Arc::clone(pair[1]))?;
        }
    }
    Ok(kept)
}

impl DisplayAs for NullableRowsExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            _ => write!(f, "TadocNullableRowsExec"),
        }
    }
}

impl ExecutionPlan for NullableRowsExec {
    one_input_methods!("TadocNullableRowsExec", |_node, input| Self::try_new(input));

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    same_rows_methods!();

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        FilterDescription::from_children(parent_filters, &self.children())
    }

    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        child_pushdown_result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(child_pushdown_result))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use crate::register_all;

    /// Rows of a table that most rows of the other one have no partner in, each with a constant.
    const FEW: &str = "(SELECT DISTINCT column1 AS a, 'all' AS b FROM (VALUES (5), (6), (99)) t)";
    const MANY: &str = "(SELECT DISTINCT column1 AS a, 'all' AS b FROM (VALUES (1), (2), (3), (4), (5), (6)) t)";

    async fn shown(sql: &str, settings: &[(&str, bool)]) -> String {
        let mut config = SessionConfig::new().with_target_partitions(3);
        for (name, value) in settings {
            config = config.set_bool(name, *value);
        }
        let ctx = SessionContext::new_with_config(config);
        register_all(&ctx).unwrap();
        let rows = ctx.sql(sql).await.unwrap().collect().await.unwrap();
        let table = pretty_format_batches(&rows).unwrap().to_string();
        let lines = table.lines().skip(3).filter(|line| !line.starts_with('+'));
        let words =
            lines.map(|line| line.split('|').map(str::trim).filter(|word| !word.is_empty()).collect::<Vec<_>>());
        words.map(|words| words.join(" ")).collect::<Vec<_>>().join(", ")
    }

    #[tokio::test]
    async fn constants_of_a_side_without_a_partner_are_not_constants() {
        let on = "ON x.a = y.a AND x.b = y.b";
        let sorted = "5 all, 6 all, 1, 2, 3, 4";
        let cases = [
            (format!("SELECT x.a, y.b FROM {MANY} x LEFT JOIN {FEW} y {on} ORDER BY y.b, x.a"), sorted),
            (format!("SELECT x.a, y.b FROM {FEW} y RIGHT JOIN {MANY} x {on} ORDER BY y.b, x.a"), sorted),
            (
                format!("SELECT x.a, y.b FROM {MANY} x FULL JOIN {FEW} y {on} ORDER BY y.b, x.a"),
                "5 all, 6 all, all, 1, 2, 3, 4",
            ),
            (
                format!("SELECT x.a, y.b FROM {MANY} x LEFT JOIN {FEW} y ON x.a > y.a ORDER BY y.b, x.a"),
                "6 all, 1, 2, 3, 4, 5",
            ),
            (format!("SELECT count(*) FROM {MANY} x LEFT JOIN {FEW} y {on} GROUP BY y.b ORDER BY 1"), "2, 4"),
            (
                format!(
                    "SELECT x.a, y.b FROM {MANY} x LEFT JOIN (SELECT a, b FROM (SELECT a, a % 2 AS b FROM {FEW}) \
                     WHERE b = 1) y ON x.a = y.a ORDER BY y.b, x.a"
                ),
                "5 1, 1, 2, 3, 4, 6",
            ),
            (
                format!(
                    "SELECT x.a, row_number() OVER (PARTITION BY y.b ORDER BY x.a) AS n FROM {MANY} x LEFT JOIN \
                     {FEW} y {on} ORDER BY n, x.a"
                ),
                "1 1, 5 1, 2 2, 6 2, 3 3, 4 4",
            ),
            (
                "SELECT x.k FROM (VALUES (1), (2), (3)) x(k) LEFT JOIN (SELECT * FROM (VALUES (2, 0, 0), (4, 1, 1)) \
                 t(k, a, c) WHERE coalesce(a, 0) = c) y ON x.k = y.k ORDER BY coalesce(y.a, 0), y.c, x.k"
                    .to_owned(),
                "2, 1, 3",
            ),
        ];
        let joins: [&[(&str, bool)]; 2] = [&[], &[("datafusion.optimizer.prefer_hash_join", false)]];
        for settings in joins {
            for (sql, expected) in &cases {
                assert_eq!(shown(sql, settings).await, *expected, "{settings:?}: {sql}");
            }
        }
    }
}
