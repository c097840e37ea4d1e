//! Descriptions of table functions in `information_schema.routines`, and so in `SHOW FUNCTIONS`.
//!
//! ```text
//! routines ── left join on routine_name ── names, summaries, signatures
//!                        └─▶ the columns of routines
//! ```
//!
//! DataFusion lists table functions there, without a place for what they say of themselves. Functions
//! with a description keep it.

use datafusion::error::Result;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::sqlparser::ast::ObjectName;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, col, ident, lit};

use crate::functions::signatures;

/// Schema and name of the list of functions.
const LIST: (&str, &str) = ("information_schema", "routines");
/// Columns that are filled, each with the column that fills it.
const FILLED: [(&str, &str); 2] = [("description", "about"), ("syntax_example", "usage")];

/// Returns the plan of the relation `name` with descriptions; `None` if it is not the list of functions.
pub(super) fn described(
    name: &ObjectName,
    context: &dyn RelationPlannerContext,
) -> Result<Option<LogicalPlan>> {
    let parts = name.0.iter().map(|part| part.as_ident().cloned());
    let parts: Vec<String> = parts.flatten().map(|part| context.normalize_ident(part)).collect();
    let catalog = &context.context_provider().options().catalog.default_catalog;
    let is_list = match parts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [schema, table] => (schema, table) == LIST,
        [of, schema, table] => of == catalog && (schema, table) == LIST,
        _ => false,
    };
    if !is_list {
        return Ok(None);
    }
    let relation = context.object_name_to_table_reference(name.clone())?;
    let source = context.context_provider().get_table_source(relation.clone())?;
    let schema = source.schema();
    let columns = schema.fields().iter().map(|field| filled(field.name()));
    let is_table = ident("function_type").eq(lit("TABLE"));
    LogicalPlanBuilder::scan(relation.clone(), source, None)?
        .join(summaries()?, JoinType::Left, (vec!["routine_name"], vec!["named"]), Some(is_table))?
        .project(columns)?
        .alias(relation)?
        .build()
        .map(Some)
}

/// Returns the column `name` of the list, filled.
fn filled(name: &str) -> Expr {
    match FILLED.iter().find(|(column, _)| *column == name) {
        Some((_, by)) => coalesce(vec![ident(name), ident(*by)]).alias(name),
        None => ident(name),
    }
}

/// Returns `named`, `about` and `usage` of the table functions of this crate.
fn summaries() -> Result<LogicalPlan> {
    let rows = signatures().map(|signature| {
        let texts =
            [signature.name.to_owned(), signature.summary.to_owned(), signature.to_string()];
        texts.map(lit).to_vec()
    });
    let names = ["named", "about", "usage"].into_iter().enumerate();
    let named = names.map(|(at, name)| col(format!("column{}", at + 1)).alias(name));
    LogicalPlanBuilder::values(rows.collect())?.project(named)?.build()
}
