//! Properties that plans promise of their rows: orders that files declare are checked while the rows are read, and
//! constants and orders that an operator does not keep are taken back.
//!
//! ```text
//! CheckedOrderExec       each row comes behind those before it, or the statement fails
//!   DataSourceExec       output_ordering=[x ASC]: WITH ORDER (x), or what a Parquet file states
//!
//! HashJoinExec: join_type=Left       y.b is 'all' or NULL
//!   scan of x
//!   TadocNullableRowsExec            promises no constant
//!     ProjectionExec: 'all' as b     promises that b is constant
//! ```
//!
//! The planner leaves sorts out where rows are in an order already. If they are not, merges, joins, windows and groups
//! above answer wrongly. Cost: the declared columns of each row are compared with those of the row before. Limit: a
//! scan that another process runs for Ballista is not checked.
//!
//! A row without a partner in an outer join has NULL in all columns of the other side. A join of DataFusion (55.2)
//! still promises that a column is constant if it was constant below. Sorts are left out then, rows of a group come
//! in parts, and merges take rows in a wrong order. So [`NullableConstants`] puts a [`NullableRowsExec`] below each
//! side of a join whose rows can be missing, if a column of it is constant, or equal to an expression like
//! `coalesce(a, 0)`. Columns that are only equal stay equal, because both become NULL. An aggregate over several sets
//! of groups (`ROLLUP`) makes NULL of one column and not of the other, and its input gets the same node. And a window
//! that moves over the rows promises that `count`, `min` and `max` ascend, although each partition begins anew and
//! NULLs are not counted. Such a window is the input of that node.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, exec_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::SetMonotonicity;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::window::{SlidingAggregateWindowExpr, WindowExpr};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec, SortMergeJoinExec, SymmetricHashJoinExec,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::StreamExt;

use crate::plan_methods::{file_scan, one_input_methods, passing_methods, same_rows_methods};

/// Returns `plan` with a check above each scan of files that declares an order.
pub(crate) fn check_orders(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_down(|node| {
        if node.is::<CheckedOrderExec>() {
            return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
        }
        let Some(ordering) = declared_order(&node) else { return Ok(Transformed::no(node)) };
        let checked = Arc::new(CheckedOrderExec { input: node, ordering });
        Ok(Transformed::new(checked, true, TreeNodeRecursion::Jump))
    })
    .data()
}

/// Returns the order that a scan of files declares; `None` for other nodes, and where no column tells it.
fn declared_order(node: &Arc<dyn ExecutionPlan>) -> Option<LexOrdering> {
    file_scan(node).filter(|scan| !scan.output_ordering.is_empty())?;
    let ordering = node.output_ordering()?;
    fields_of(ordering, node).filter(|fields| RowConverter::supports_fields(fields))?;
    Some(ordering.clone())
}

fn fields_of(ordering: &LexOrdering, node: &Arc<dyn ExecutionPlan>) -> Option<Vec<SortField>> {
    let schema = node.schema();
    let field = |sort: &PhysicalSortExpr| {
        let kind = sort.expr.data_type(&schema).ok()?;
        Some(SortField::new_with_options(kind, sort.options))
    };
    ordering.iter().map(field).collect()
}

/// Plan node that checks the order of the rows of a scan.
#[derive(Debug)]
struct CheckedOrderExec {
    input: Arc<dyn ExecutionPlan>,
    ordering: LexOrdering,
}

impl DisplayAs for CheckedOrderExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            _ => write!(f, "CheckedOrderExec"),
        }
    }
}

impl ExecutionPlan for CheckedOrderExec {
    passing_methods!("CheckedOrderExec", |node, input| Ok(Self { input, ordering: node.ordering.clone() }));

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        let schema = rows.schema();
        let fields = fields_of(&self.ordering, &self.input).unwrap_or_default();
        let mut check = OrderCheck {
            ordering: self.ordering.clone(),
            converter: RowConverter::new(fields)?,
            last: None,
            files: files_of(&self.input, partition),
        };
        let rows = rows.map(move |batch| {
            let batch = batch?;
            check.batch(&batch)?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// Returns the names of the files of a partition, for errors.
fn files_of(node: &Arc<dyn ExecutionPlan>, partition: usize) -> String {
    let group = file_scan(node).and_then(|scan| scan.file_groups.get(partition));
    let files = group.into_iter().flat_map(|group| group.iter());
    let files = files.map(|file| file.object_meta.location.to_string()).collect::<Vec<_>>();
    files.join(", ")
}

/// Check of the rows of one partition, which come batch by batch.
struct OrderCheck {
    ordering: LexOrdering,
    converter: RowConverter,
    /// The last row of the batches before.
    last: Option<OwnedRow>,
    files: String,
}

impl OrderCheck {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let num_rows = batch.num_rows();
        if num_rows == 0 {
            return Ok(());
        }
        let values = |sort: &PhysicalSortExpr| sort.expr.evaluate(batch)?.into_array(num_rows);
        let columns = self.ordering.iter().map(values).collect::<Result<Vec<_>>>()?;
        let rows = self.converter.convert_columns(&columns)?;
        let is_early = |row: usize| match row.checked_sub(1) {
            Some(before) => rows.row(row) < rows.row(before),
            None => self.last.as_ref().is_some_and(|last| rows.row(row) < last.row()),
        };
        if let Some(row) = (0..num_rows).find(|row| is_early(*row)) {
            let shown = columns.iter().map(|column| array_value_to_string(column, row));
            let shown = shown.collect::<std::result::Result<Vec<_>, _>>()?.join(", ");
            return exec_err!(
                "{}: the row with {shown} stands behind one that belongs behind it in the declared order {}; leave \
                 WITH ORDER out, or sort the file",
                self.files,
                self.ordering
            );
        }
        self.last = Some(rows.row(num_rows - 1).owned());
        Ok(())
    }
}

/// Optimizer rule that puts [`NullableRowsExec`] where plans promise too much. It is the first rule, because the
/// others count on what is constant.
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

/// Returns `node` with inputs that promise only what rows of NULL keep, where columns become NULL, and below such a
/// node if its own promise is wrong.
fn guarded(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if has_moving_counts(&node) {
        return Ok(Transformed::yes(Arc::new(NullableRowsExec::new(node))));
    }
    let has_sets = has_sets_of_groups(&node);
    let nullable = match join_type(&node) {
        Some(JoinType::Left) => [false, true],
        Some(JoinType::Right) => [true, false],
        Some(JoinType::Full) => [true, true],
        Some(_) => return Ok(Transformed::no(node)),
        None => [has_sets, false],
    };
    let mut inputs = Vec::new();
    let mut is_changed = false;
    for (input, is_nullable) in node.children().into_iter().zip(nullable) {
        let known = input.equivalence_properties();
        let promises_too_much = if has_sets { !known.eq_group().is_empty() } else { is_lost_with_nulls(known) };
        if is_nullable && promises_too_much {
            inputs.push(Arc::new(NullableRowsExec::new(Arc::clone(input))) as Arc<dyn ExecutionPlan>);
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

/// Returns true if `node` groups rows by several sets of columns, and makes NULL of the others.
fn has_sets_of_groups(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<AggregateExec>().is_some_and(|aggregate| !aggregate.group_expr().is_single())
}

/// Returns true if `node` aggregates a frame that moves over the rows, by a function of which DataFusion knows an
/// order.
fn has_moving_counts(node: &Arc<dyn ExecutionPlan>) -> bool {
    let exprs = match (node.downcast_ref::<BoundedWindowAggExec>(), node.downcast_ref::<WindowAggExec>()) {
        (Some(window), _) => window.window_expr(),
        (_, Some(window)) => window.window_expr(),
        (None, None) => return false,
    };
    exprs.iter().filter_map(|expr| expr.as_any().downcast_ref::<SlidingAggregateWindowExpr>()).any(|expr| {
        let is_ordered = expr.get_aggregate_expr().set_monotonicity() != SetMonotonicity::NotMonotonic;
        is_ordered && !expr.get_window_frame().end_bound.is_unbounded()
    })
}

/// Returns true if rows without a partner, all of whose columns are NULL, do not keep what is `known`.
fn is_lost_with_nulls(known: &EquivalenceProperties) -> bool {
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

/// Plan node that returns the rows of its input, and promises nothing of them: no constant, no equal columns, no order.
/// See the module's description.
#[derive(Debug)]
pub struct NullableRowsExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl NullableRowsExec {
    /// Builds a node over `input`.
    pub fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let known = EquivalenceProperties::new(input.schema());
        let properties = input.properties().as_ref().clone().with_eq_properties(known);
        Self { input, properties: Arc::new(properties) }
    }
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
    one_input_methods!("TadocNullableRowsExec", |_node, input| Ok(Self::new(input)));

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
    use datafusion::prelude::{SessionConfig, SessionContext};

    use crate::register_all;
    use crate::shown_rows::shown_rows;

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
        shown_rows(&ctx, sql).await.join(", ")
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

    #[tokio::test]
    async fn sets_of_groups_make_null_of_constants() {
        let table = "(SELECT value % 2 AS x, value % 3 AS y FROM generate_series(1, 60000))";
        for (sql, expected) in [
            (
                format!(
                    "SELECT x, y, count(*) AS n FROM {table} WHERE x = 1 AND y = 2 GROUP BY ROLLUP (x, y) ORDER BY y, x"
                ),
                "1 2 10000, 1 10000, 10000",
            ),
            (
                format!(
                    "SELECT x, y, count(*) AS n FROM {table} WHERE x = 1 AND y < 2 GROUP BY CUBE (x, y) ORDER BY x \
                     NULLS FIRST, y NULLS FIRST LIMIT 3"
                ),
                "20000, 0 10000, 1 10000",
            ),
            (
                "SELECT a, b, count(*) AS n FROM (VALUES (1, 1), (2, 2), (3, 4)) t(a, b) WHERE a = b GROUP BY GROUPING \
                 SETS ((a, b), (a), ()) ORDER BY b NULLS FIRST, a NULLS FIRST"
                    .to_owned(),
                "2, 1 1, 2 1, 1 1 1, 2 2 1",
            ),
        ] {
            assert_eq!(shown(&sql, &[]).await, expected, "{sql}");
        }
    }

    #[tokio::test]
    async fn counts_of_a_moving_frame_have_no_order() {
        let values = "(VALUES (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, NULL)) t(a, b)";
        let frame = "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW";
        for (sql, expected) in [
            (
                format!(
                    "SELECT w FROM (SELECT count(*) OVER (PARTITION BY a ORDER BY b {frame}) AS w FROM {values}) ORDER BY w"
                ),
                "1, 1, 1, 2, 2, 2",
            ),
            (
                format!("SELECT w FROM (SELECT count(b) OVER (ORDER BY b {frame}) AS w FROM {values}) ORDER BY w"),
                "1, 1, 2, 2, 2, 2",
            ),
            (
                format!(
                    "SELECT w, count(*) AS n FROM (SELECT max(b) OVER (PARTITION BY a ORDER BY b {frame}) AS w FROM {values}) \
                     GROUP BY w ORDER BY w"
                ),
                "1 2, 2 2, 3 1, 1",
            ),
        ] {
            assert_eq!(shown(&sql, &[]).await, expected, "{sql}");
        }
    }
}
