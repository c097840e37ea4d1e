//! Descriptions of functions of this crate in `information_schema`, and so in `SHOW FUNCTIONS`.
//!
//! ```text
//! routines ── left join on name and type ── names, types, summaries, signatures, types of answers
//!                        └─▶ the columns of routines
//! parameters ── union all ── arguments and answers of functions that coerce their arguments
//! ```
//!
//! DataFusion lists table functions without a place for what they say of themselves, and no arguments of
//! functions that coerce them by themselves. Functions with a description keep it.

use datafusion::error::Result;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::sqlparser::ast::ObjectName;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, col, ident, lit};
use datafusion::scalar::ScalarValue;

use crate::functions::{listed_functions, signatures};

/// Schema of the lists.
const SCHEMA: &str = "information_schema";
/// Columns of `routines` that are filled, each with the column that fills it.
const FILLED: [(&str, &str); 3] = [("description", "about"), ("syntax_example", "usage"), ("data_type", "answer")];

/// Returns the plan of the relation `name` with descriptions; `None` if it is no list of functions.
pub(super) fn described(name: &ObjectName, context: &dyn RelationPlannerContext) -> Result<Option<LogicalPlan>> {
    let parts = name.0.iter().map(|part| part.as_ident().cloned());
    let parts: Vec<String> = parts.flatten().map(|part| context.normalize_ident(part)).collect();
    let catalog = &context.context_provider().options().catalog.default_catalog;
    let list = match parts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [SCHEMA, list] => list,
        [of, SCHEMA, list] if of == catalog => list,
        _ => return Ok(None),
    };
    match list {
        "routines" => routines(name, context).map(Some),
        "parameters" => parameters(name, context).map(Some),
        _ => Ok(None),
    }
}

fn routines(name: &ObjectName, context: &dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let relation = context.object_name_to_table_reference(name.clone())?;
    let source = context.context_provider().get_table_source(relation.clone())?;
    let schema = source.schema();
    let columns = schema.fields().iter().map(|field| filled(field.name()));
    let keys = (vec!["routine_name", "function_type"], vec!["named", "kind"]);
    LogicalPlanBuilder::scan(relation.clone(), source, None)?
        .join(summaries()?, JoinType::Left, keys, None)?
        .project(columns)?
        .alias(relation)?
        .build()
}

/// Returns the column `name` of `routines`, filled.
fn filled(name: &str) -> Expr {
    match FILLED.iter().find(|(column, _)| *column == name) {
        Some((_, by)) => coalesce(vec![ident(name), ident(*by)]).alias(name),
        None => ident(name),
    }
}

/// Returns `named`, `kind`, `about`, `usage` and `answer` of functions that DataFusion knows too little
/// of.
fn summaries() -> Result<LogicalPlan> {
    let tables = signatures().map(|signature| {
        let [name, about] = [signature.name, signature.summary].map(text);
        vec![name, text("TABLE"), about, text(signature.to_string()), no_text()]
    });
    let scalars = listed_functions().map(|function| {
        let [name, about] = [function.name, function.summary].map(text);
        vec![name, text("SCALAR"), about, text(function.usage), text(function.answer)]
    });
    values(tables.chain(scalars).collect(), &["named", "kind", "about", "usage", "answer"])
}

/// Returns `parameters`, and behind them those that DataFusion does not list.
fn parameters(name: &ObjectName, context: &dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let relation = context.object_name_to_table_reference(name.clone())?;
    let source = context.context_provider().get_table_source(relation.clone())?;
    let schema = source.schema();
    let catalog = &context.context_provider().options().catalog;
    let row = |function: &str, at: u64, mode: &str, name: Expr, data_type: &str, default: Expr| {
        let (database, schema) = (&catalog.default_catalog, &catalog.default_schema);
        let named = [database.as_str(), schema.as_str(), function].map(text);
        let described = [lit(at), text(mode), name, text(data_type), default, lit(false), lit(0u8)];
        named.into_iter().chain(described).collect::<Vec<Expr>>()
    };
    let mut rows = Vec::new();
    for function in listed_functions() {
        for (parameter, at) in function.parameters.iter().zip(1..) {
            let default = parameter.default.map_or_else(no_text, text);
            let (name, data_type) = (text(parameter.name), parameter.data_type);
            rows.push(row(function.name, at, "IN", name, data_type, default));
        }
        rows.push(row(function.name, 1, "OUT", no_text(), function.answer, no_text()));
    }
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    LogicalPlanBuilder::scan(relation.clone(), source, None)?.union(values(rows, &names)?)?.alias(relation)?.build()
}

fn text(text: impl Into<String>) -> Expr {
    lit(text.into())
}

fn no_text() -> Expr {
    lit(ScalarValue::Utf8(None))
}

/// Returns `rows` with the columns `names`.
fn values(rows: Vec<Vec<Expr>>, names: &[&str]) -> Result<LogicalPlan> {
    let named = names.iter().enumerate();
    let named = named.map(|(at, name)| col(format!("column{}", at + 1)).alias(*name));
    LogicalPlanBuilder::values(rows)?.project(named)?.build()
}
