//! Values that are compared with the rows of a query (`IN`, `ANY`, `ALL`), where DataFusion would answer wrongly.
//!
//! ```text
//! a = ANY (SELECT a FROM t)         ─▶  a = ANY (SELECT a AS __tadoc_value FROM t)
//! x OR a NOT IN (SELECT b FROM u)   ─▶  x OR NOT (a = ANY (SELECT b AS __tadoc_value FROM u))
//! ```
//!
//! DataFusion (55.2) compares the value of a row with the column of the query by its name. A query of the table of the
//! row has a column of the same name, so each row was compared with itself, and a `DELETE` took all of them. So the
//! column of such a query has a name of its own here.
//!
//! A membership inside of another condition becomes a join that marks rows with true and false. So an unknown one
//! (NULL) was false, and its opposite was true. DataFusion's rule for `ANY` knows all three. So a membership that can
//! be unknown becomes an `ANY`, unless false and unknown leave out the same rows. Cost: two joins for one. Limit: a
//! membership in the list of a `SELECT` is refused by DataFusion.

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
};
use datafusion::optimizer::AnalyzerRule;

/// Name of the column of the query of a comparison.
const VALUE: &str = "__tadoc_value";

/// Analyzer rule that changes these comparisons. See the module's description. It runs when types are known.
#[derive(Debug)]
pub(crate) struct SetQueries;

impl AnalyzerRule for SetQueries {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(rewritten).data()
    }

    fn name(&self) -> &str {
        "tadoc_set_queries"
    }
}

fn rewritten(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let plan = match plan {
        LogicalPlan::Filter(filter) => {
            let predicate = each_condition(filter.predicate, filter.input.schema())?;
            LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)
        }
        other => other,
    };
    plan.map_expressions(|expr| expr.transform_up(named))
}

/// Rewrites the conditions that `expr` joins by `AND`. A membership that is one of them becomes a join that knows NULL.
fn each_condition(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            let left = Box::new(each_condition(*left, schema)?);
            let right = Box::new(each_condition(*right, schema)?);
            Ok(Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }))
        }
        Expr::InSubquery(_) => Ok(expr),
        Expr::Not(ref inner) if matches!(**inner, Expr::InSubquery(_)) => Ok(expr),
        other => each_alternative(other, schema),
    }
}

/// Rewrites the alternatives of a condition. A row is left out whether one is false or unknown.
fn each_alternative(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let left = Box::new(each_alternative(*left, schema)?);
            let right = Box::new(each_alternative(*right, schema)?);
            Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::InSubquery(InSubquery { negated: false, .. }) => Ok(expr),
        other => other.transform_up(|expr| Ok(with_unknown(expr, schema))).data(),
    }
}

/// Returns a membership that can be unknown as a comparison with any row.
fn with_unknown(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::InSubquery(membership) = expr else { return Transformed::no(expr) };
    let InSubquery { expr, subquery, negated } = membership;
    let has_nulls = subquery.subquery.schema().fields().iter().any(|field| field.is_nullable());
    // An expression whose columns are unknown here belongs to a query around this one.
    let can_be_null = has_nulls || expr.nullable(schema).unwrap_or(true);
    if !can_be_null {
        return Transformed::no(Expr::InSubquery(InSubquery { expr, subquery, negated }));
    }
    let any = Expr::SetComparison(SetComparison::new(expr, subquery, Operator::Eq, SetQuantifier::Any));
    Transformed::yes(if negated { Expr::Not(Box::new(any)) } else { any })
}

/// Gives the column of the query of a comparison a name of its own.
fn named(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::SetComparison(comparison) = expr else { return Ok(Transformed::no(expr)) };
    let plan = Arc::unwrap_or_clone(comparison.subquery.subquery);
    let columns: Vec<Expr> =
        plan.schema().columns().into_iter().map(|column| Expr::Column(column).alias(VALUE)).collect();
    let plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
    let subquery = Subquery { subquery: Arc::new(plan), ..comparison.subquery };
    Ok(Transformed::yes(Expr::SetComparison(SetComparison { subquery, ..comparison })))
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use crate::register_all;
    use crate::shown_rows::shown_rows;

    async fn rows(statements: &[&str]) -> Vec<String> {
        let ctx = SessionContext::new();
        register_all(&ctx).unwrap();
        let mut rows = Vec::new();
        for sql in statements {
            rows = shown_rows(&ctx, sql).await;
        }
        rows.sort();
        rows
    }

    const T: &str = "CREATE TABLE t AS SELECT column1 AS a, column2 AS b FROM (VALUES (1, 'a'), (2, 'b'), (NULL, 'c'))";
    const U: &str = "CREATE TABLE u AS SELECT column1 AS a FROM (VALUES (1), (NULL))";
    const ONE: &str = "CREATE TABLE one AS SELECT 1 AS a";

    #[tokio::test]
    async fn a_query_of_the_table_of_the_row_keeps_its_names() {
        for (condition, expected) in [
            ("a = ANY (SELECT a FROM t WHERE b = 'b')", vec!["b"]),
            ("a <> ALL (SELECT a FROM t WHERE b = 'b')", vec!["a"]),
            ("a >= ALL (SELECT a FROM t WHERE a IS NOT NULL)", vec!["b"]),
            ("a < ANY (SELECT a FROM t)", vec!["a"]),
            ("NOT a = ANY (SELECT a FROM t WHERE b = 'b')", vec!["a"]),
            ("a = ANY (SELECT s.a FROM t s WHERE s.b = t.b AND s.a > 1)", vec!["b"]),
        ] {
            assert_eq!(rows(&[T, &format!("SELECT b FROM t WHERE {condition}")]).await, expected, "{condition}");
        }
    }

    #[tokio::test]
    async fn an_unknown_membership_is_neither_true_nor_false() {
        for (condition, expected) in [
            ("b = 'x' OR a NOT IN (SELECT a FROM u)", vec![]),
            ("b = 'x' OR a NOT IN (SELECT a FROM one)", vec!["b"]),
            ("b = 'x' OR a NOT IN (SELECT a FROM one WHERE a > 1)", vec!["a", "b", "c"]),
            ("b = 'x' OR a IN (SELECT a FROM u)", vec!["a"]),
            ("(a IN (SELECT a FROM u)) IS NULL", vec!["b", "c"]),
            ("(a NOT IN (SELECT a FROM one)) IS NOT TRUE", vec!["a", "c"]),
            ("NOT (a IN (SELECT a FROM u) AND b < 'z')", vec![]),
            ("a NOT IN (SELECT a FROM u)", vec![]),
            ("a NOT IN (SELECT a FROM one)", vec!["b"]),
            ("CASE WHEN a IN (SELECT a FROM u) THEN false ELSE a = 2 END", vec!["b"]),
            ("b IN (SELECT 'c') OR NOT (a IN (SELECT u.a FROM u WHERE u.a = t.a))", vec!["b", "c"]),
        ] {
            let statement = format!("SELECT b FROM t WHERE {condition}");
            assert_eq!(rows(&[T, U, ONE, &statement]).await, expected, "{condition}");
        }
    }
}
