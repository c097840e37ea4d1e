//! Conditions that stay above the operators whose rows they are about.
//!
//! ```text
//! Filter: c > 1 AND (SELECT false)               Filter: c > 1 AND (SELECT false)
//!   Aggregate: count(*) AS c                       Aggregate: count(*) AS c
//!     scan                                           scan
//!                                 and not            Filter: (SELECT false)
//! ```
//!
//! DataFusion (55.2) moves a condition below an aggregate or a window if all its columns are keys of groups. A
//! condition without columns has none, so it went below, too. But an aggregate of all rows has one row also of nothing,
//! and a window counts the rows that are left. So such conditions, and those with a new value for each row
//! (`random()`), stay. The rule takes the place of DataFusion's own and calls it for everything else.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan};
use datafusion::optimizer::optimizer::{ApplyOrder, Optimizer};
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Puts the rule of this module in the place of DataFusion's.
pub(crate) fn keep_conditions(optimizer: &mut Optimizer) {
    for rule in &mut optimizer.rules {
        if rule.name() == PushDownFilter::new().name() {
            *rule = Arc::new(KeptConditions::default());
        }
    }
}

#[derive(Debug, Default)]
struct KeptConditions {
    pushed: PushDownFilter,
}

impl OptimizerRule for KeptConditions {
    fn name(&self) -> &str {
        self.pushed.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.pushed.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let filter = match plan {
            LogicalPlan::Filter(filter) if is_above_counted_rows(&filter) => filter,
            other => return self.pushed.rewrite(other, config),
        };
        let (conditions, input) = all_conditions(filter);
        let stays = |condition: &Expr| is_kept_above(condition, &input);
        let (kept, others): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(stays);
        let below = match conjunction(others) {
            Some(others) => {
                let filter = LogicalPlan::Filter(Filter::try_new(others, input)?);
                self.pushed.rewrite(filter, config)?
            }
            None => Transformed::no(Arc::unwrap_or_clone(input)),
        };
        match conjunction(kept) {
            Some(kept) => below.map_data(|plan| Ok(LogicalPlan::Filter(Filter::try_new(kept, Arc::new(plan))?))),
            None => Ok(below),
        }
    }
}

/// Returns true if the rows of `filter`, and of those directly below it, are those of an aggregate or a window.
fn is_above_counted_rows(filter: &Filter) -> bool {
    let mut input = filter.input.as_ref();
    while let LogicalPlan::Filter(below) = input {
        input = below.input.as_ref();
    }
    matches!(input, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_))
}

/// Returns the conditions of `filter` and of those directly below it, and the input of the last one.
fn all_conditions(filter: Filter) -> (Vec<Expr>, Arc<LogicalPlan>) {
    let mut conditions = split_conjunction_owned(filter.predicate);
    let mut input = filter.input;
    while let LogicalPlan::Filter(below) = input.as_ref() {
        conditions.extend(split_conjunction_owned(below.predicate.clone()));
        input = Arc::clone(&below.input);
    }
    (conditions, input)
}

/// Returns true if `condition` is about the rows of `input` and not about those below.
fn is_kept_above(condition: &Expr, input: &LogicalPlan) -> bool {
    match input {
        LogicalPlan::Window(_) => condition.is_volatile() || !condition.any_column_refs(),
        LogicalPlan::Aggregate(aggregate) => {
            // Sets of groups may have one of all rows.
            let has_row_of_nothing =
                aggregate.group_expr.is_empty() || matches!(aggregate.group_expr[..], [Expr::GroupingSet(_)]);
            condition.is_volatile() || has_row_of_nothing && !condition.any_column_refs()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use crate::register_all;
    use crate::shown_rows::shown_rows;

    async fn answer(sql: &str) -> String {
        let ctx = SessionContext::new();
        register_all(&ctx).unwrap();
        ctx.sql("CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 5)").await.unwrap();
        shown_rows(&ctx, sql).await.join(", ")
    }

    #[tokio::test]
    async fn conditions_without_columns_are_about_the_rows_above() {
        for (sql, expected) in [
            ("SELECT * FROM (SELECT count(*) AS c FROM t) WHERE (SELECT max(a) FROM t) > 100", ""),
            ("SELECT * FROM (SELECT count(*) AS c FROM t) WHERE (SELECT max(a) FROM t) < 100", "5"),
            ("SELECT count(*) AS c FROM t HAVING (SELECT false)", ""),
            ("SELECT count(*) AS c FROM t HAVING count(*) NOT IN (25, 26, NULL)", ""),
            ("SELECT count(*) AS c FROM t HAVING count(*) > 1 AND (SELECT true)", "5"),
            ("SELECT count(*) AS c FROM t GROUP BY GROUPING SETS ((a), ()) HAVING (SELECT false)", ""),
            ("SELECT count(*) AS c FROM t GROUP BY a HAVING (SELECT false)", ""),
            ("SELECT count(*) FROM (SELECT count(*) OVER () AS c FROM t) WHERE (SELECT false)", "0"),
            ("SELECT max(c) FROM (SELECT count(*) OVER () AS c FROM t) WHERE random() >= 0.0", "5"),
            (
                "SELECT count(*) FROM t u LEFT JOIN (SELECT count(*) AS c FROM t HAVING (SELECT false)) s ON true \
              WHERE s.c IS NULL",
                "5",
            ),
        ] {
            assert_eq!(answer(sql).await, expected, "{sql}");
        }
    }

    #[tokio::test]
    async fn the_size_of_a_window_does_not_depend_on_chance() {
        let sql =
            "SELECT count(*) FILTER (WHERE c <> 5) FROM (SELECT count(*) OVER () AS c FROM t) WHERE random() < 0.5";
        for _ in 0..20 {
            assert_eq!(answer(sql).await, "0");
        }
    }
}
