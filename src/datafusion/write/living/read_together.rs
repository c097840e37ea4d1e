//! The step of the analyzer that gives all tables and functions of a plan one common [`Reading`].
//!
//! ```text
//! plan ─ analyzer ─▶ Scan d        ─┐
//!                    Scan "d$edits" ├─ one Reading ─ location ─▶ store, latest version
//!                    word_count(d)  │
//!                    extract_text() ┘
//! ```
//!
//! A plan is analyzed each time it is planned, so a statement that runs again reads the latest
//! versions. Tables of this crate inside tables of other crates are not visible here: they look up
//! versions themselves.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::DefaultTableSource;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, TableSource};

use crate::corpora::living::Reading;
use crate::functions::CorpusFunction;
use crate::planning::table::TadocTable;
use crate::write::living::tables::LivingTable;

/// Gives all tables and functions of `plan` one new, common [`Reading`].
pub(super) fn read_together(plan: LogicalPlan) -> Result<LogicalPlan> {
    let reading = Arc::new(Reading::default());
    let with_reading = |node| match node {
        LogicalPlan::TableScan(scan) => Ok(match source_in(&scan.source, &reading) {
            Some(source) => Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })),
            None => Transformed::no(LogicalPlan::TableScan(scan)),
        }),
        node if calls_corpus(&node)? => node.map_expressions(|expr| expr.transform(|expr| Ok(call_in(expr, &reading)))),
        node => Ok(Transformed::no(node)),
    };
    plan.transform_down_with_subqueries(with_reading).data()
}

/// Returns the table behind `source` with `reading`; `None` if it is not a table of this crate.
fn source_in(source: &Arc<dyn TableSource>, reading: &Arc<Reading>) -> Option<Arc<dyn TableSource>> {
    let table = &source.downcast_ref::<DefaultTableSource>()?.table_provider;
    let provider: Arc<dyn datafusion::catalog::TableProvider> =
        match (table.downcast_ref::<TadocTable>(), table.downcast_ref::<LivingTable>()) {
            (Some(table), _) => Arc::new(table.clone().with_reading(Some(reading))),
            (_, Some(table)) => Arc::new(table.with_reading(reading)),
            _ => return None,
        };
    Some(Arc::new(DefaultTableSource::new(provider)))
}

fn corpus_function(expr: &Expr) -> Option<&CorpusFunction> {
    match expr {
        Expr::ScalarFunction(call) => call.func.inner().downcast_ref(),
        _ => None,
    }
}

fn calls_corpus(node: &LogicalPlan) -> Result<bool> {
    let mut calls = false;
    node.apply_expressions(|expr| {
        calls |= expr.exists(|expr| Ok(corpus_function(expr).is_some()))?;
        Ok(if calls { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(calls)
}

fn call_in(expr: Expr, reading: &Arc<Reading>) -> Transformed<Expr> {
    match (corpus_function(&expr).map(|function| function.with_reading(reading)), expr) {
        (Some(func), Expr::ScalarFunction(ScalarFunction { args, .. })) => {
            Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args }))
        }
        (_, expr) => Transformed::no(expr),
    }
}
