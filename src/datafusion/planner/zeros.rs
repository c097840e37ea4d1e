//! Zeros in lists of `IN`.
//!
//! ```text
//! x IN (0.0, 1, 2, 3)        ─▶  x IN (0.0, 1, 2, 3, -0.0)
//! x IN (y, z, 1.5, 2)        ─▶  x = y OR x = z OR x = 1.5 OR x = 2
//! ```
//!
//! SQL knows one zero, and so does `=`. DataFusion (55.2) looks for a float in a list by its bits, so `-0.0` was in no
//! list with a zero, unless the list was so short that it became equalities. Longer chains of equalities become lists.
//! So a list with one zero gets the other one, and a list with values of the row becomes equalities. The rule comes
//! behind those of DataFusion, which make lists and take them apart. What it has changed, it leaves as it is.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::utils::normalize_float_zero_scalar;
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::{conjunction, disjunction, merge_schema};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::scalar::ScalarValue;

/// Optimizer rule that changes these lists. See the module's description.
#[derive(Debug, Default)]
pub(crate) struct EqualZeros;

impl OptimizerRule for EqualZeros {
    fn name(&self) -> &str {
        "tadoc_equal_zeros"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let schema = match &plan {
            LogicalPlan::TableScan(scan) => DFSchema::try_from(scan.source.schema())?,
            plan => merge_schema(&plan.inputs()),
        };
        plan.map_expressions(|expr| expr.transform_up(|expr| Ok(with_equal_zeros(expr, &schema))))
    }
}

fn with_equal_zeros(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::InList(mut list) = expr else { return Transformed::no(expr) };
    let zero = match kind_of(&list, schema) {
        Some(DataType::Float64) => ScalarValue::Float64(Some(0.0)),
        Some(DataType::Float32) => ScalarValue::Float32(Some(0.0)),
        _ => return Transformed::no(Expr::InList(list)),
    };
    if list.list.iter().any(|item| !matches!(item, Expr::Literal(..))) {
        return equalities(list);
    }
    let mut missing = Vec::from([zero.arithmetic_negate().unwrap_or_else(|_| zero.clone()), zero.clone()]);
    let mut has_zero = false;
    for item in &list.list {
        let Expr::Literal(value, _) = item else { continue };
        has_zero |= normalize_float_zero_scalar(value.clone()) == zero;
        missing.retain(|zero| zero != value);
    }
    if !has_zero || missing.is_empty() {
        return Transformed::no(Expr::InList(list));
    }
    list.list.extend(missing.into_iter().map(|zero| Expr::Literal(zero, None)));
    Transformed::yes(Expr::InList(list))
}

/// Returns the type that the values of a list have.
fn kind_of(list: &InList, schema: &DFSchema) -> Option<DataType> {
    let literal = list.list.iter().find_map(|item| match item {
        Expr::Literal(value, _) if !value.is_null() => Some(value.data_type()),
        _ => None,
    });
    literal.or_else(|| list.expr.get_type(schema).ok())
}

/// Returns the same condition as equalities. A value that is another one each time stays in its list.
fn equalities(list: InList) -> Transformed<Expr> {
    if list.expr.is_volatile() {
        return Transformed::no(Expr::InList(list));
    }
    let InList { expr, list: items, negated } = list;
    let each = items.into_iter().map(|item| {
        let value = expr.as_ref().clone();
        if negated { value.not_eq(item) } else { value.eq(item) }
    });
    let joined = if negated { conjunction(each) } else { disjunction(each) };
    Transformed::yes(joined.unwrap_or_else(|| Expr::Literal(ScalarValue::Boolean(Some(negated)), None)))
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use crate::register_all;
    use crate::shown_rows::shown_rows;

    #[tokio::test]
    async fn lists_and_equalities_have_one_zero() {
        let ctx = SessionContext::new();
        register_all(&ctx).unwrap();
        for kind in ["DOUBLE", "REAL"] {
            ctx.sql("DROP TABLE IF EXISTS t").await.unwrap();
            let values = "VALUES (1, -0.0, 0), (2, 0.0, 1), (3, 1.5, 2), (4, NULL, 3)";
            let sql = format!(
                "CREATE TABLE t AS SELECT column1 AS id, arrow_cast(column2, '{}') AS x, column3 AS n FROM ({values})",
                if kind == "REAL" { "Float32" } else { "Float64" }
            );
            ctx.sql(&sql).await.unwrap().collect().await.unwrap();
            for (condition, expected) in [
                ("x IN (0.0)", "1 2"),
                ("x IN (0, 4, 5, 6, 7)", "1 2"),
                ("x IN (-0.0, 4, 5, 6, 7)", "1 2"),
                ("x IN (0.0, -0.0, 4, 5, 1.5)", "1 2 3"),
                ("x IN (9, 4, 5, 6, 1.5)", "3"),
                ("x IN (0.0, NULL, 4, 5, 6)", "1 2"),
                ("x NOT IN (0.0, 4, 5, 6, 7)", "3"),
                ("x NOT IN (-0.0, 4, 5, 6, 7)", "3"),
                ("x NOT IN (-0.0, NULL, 4, 5, 6, 7)", ""),
                ("x IN (n, 4, 5, 6, 7)", "1"),
                ("x IN (-x, 4, 5, 6, 7)", "1 2"),
                ("x NOT IN (-x, 4, 5, 6, 7)", "3"),
                ("abs(x) IN (-0.0, 3)", "1 2"),
                ("-x IN (0.0, 3)", "1 2"),
                ("x = 0.0 OR x = 4 OR x = 5 OR x = 6 OR x = 7", "1 2"),
                ("x <> 0.0 AND x <> 4 AND x <> 5 AND x <> 6 AND x <> 7", "3"),
                ("id IN (SELECT u.id FROM t u WHERE u.x IN (0.0, 4, 5, 6, 7))", "1 2"),
            ] {
                let sql = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
                assert_eq!(shown_rows(&ctx, &sql).await.join(" "), expected, "{kind}: {condition}");
            }
        }
    }
}
