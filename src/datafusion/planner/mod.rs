//! Statements before planning: named arguments, descriptions of functions, limits of texts that are cast to decimals,
//! clauses that would be ignored; rules for plans that DataFusion would change into others; notices about planned ones,
//! and hints for errors. Here are plans of statements all of whose clauses are executed.
//!
//! ```text
//! SELECT * REPLACE (1 AS c) FROM t         ─▶ the plan that is returned
//! SELECT * REPLACE (1 AS c, "c" AS c) …    ─▶ a plan that fails if t has no column c
//! ```
//!
//! DataFusion passes over a `REPLACE` of a column that is not there. Only planning knows the columns, so such a
//! statement is planned a second time with a name that has to be found. DataFusion takes the first of two items for a
//! column, so the second one changes nothing else.

mod clauses;
mod decimal_texts;
mod kept_conditions;
mod relation;
mod set_queries;
mod way_out;
mod zeros;

pub use clauses::check_clauses;
pub use decimal_texts::check_parameters;
pub(crate) use decimal_texts::{DecimalText, DecimalTexts, has_type};
pub(crate) use kept_conditions::keep_conditions;
pub use relation::TadocRelationPlanner;
pub(crate) use set_queries::SetQueries;
pub(crate) use way_out::MisspelledFunctions;
pub use way_out::{explain_missing_table, notices, way_out};
pub(crate) use zeros::EqualZeros;

use std::ops::ControlFlow;

use datafusion::common::{Column, SchemaError, TableReference, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, PipeOperator, Query, ReplaceSelectElement, Select, SelectItem, SelectItemQualifiedWildcardKind,
    VisitorMut,
};

use crate::planner::clauses::has_replacements;
use crate::precedence::{mend_statement, visit_statement};
use crate::safety::Sandbox;

/// Plans `statement` if all of its clauses are executed.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use datafusion_tadoc::plan_statement;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let state = SessionContext::new().state();
/// let dialect = state.config_options().sql_parser.dialect;
/// let statement = state.sql_to_statement("SELECT * REPLACE (1 AS b) FROM (SELECT 2 AS a)", &dialect)?;
/// let error = plan_statement(&state, statement).await.unwrap_err().to_string();
/// assert!(error.contains("REPLACE (… AS b)"), "{error}");
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// The errors of [`check_clauses`] and of planning; a plan error if `* REPLACE` names a column that is not
/// there.
pub async fn plan_statement(state: &SessionState, mut statement: Statement) -> Result<LogicalPlan> {
    mend_statement(&mut statement);
    if !has_replacements(state, &statement)? {
        return Ok(beside_files(state, state.statement_to_plan(statement).await?));
    }
    let mut named = statement.clone();
    let plan = state.statement_to_plan(statement).await?;
    visit_statement(&mut named, &mut Replaced);
    let missing = state.statement_to_plan(named).await.err().and_then(missing_column);
    match missing {
        Some(Column { name, .. }) => plan_err!(
            "* REPLACE (… AS {name}): expected a column of the tables, got {name}, which none of them has; to add a \
             column write SELECT *, … AS {name}"
        ),
        None => Ok(beside_files(state, plan)),
    }
}

/// Returns `plan`, which may make a table or a view, so that it makes one beside files of its name. DataFusion takes
/// a folder of files for a table that is there: `IF NOT EXISTS` made nothing. To replace what is no table makes one.
/// A name with a slash or a dot means the file.
fn beside_files(state: &SessionState, mut plan: LogicalPlan) -> LogicalPlan {
    let is_free = |name: &TableReference| {
        let schema = state.schema_for_ref(name.clone());
        !name.table().contains(['/', '.']) && schema.is_ok_and(|schema| !schema.table_exist(name.table()))
    };
    match &mut plan {
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) if !table.or_replace && is_free(&table.name) => {
            table.if_not_exists = false;
            table.or_replace = true;
        }
        LogicalPlan::Ddl(DdlStatement::CreateView(view)) if is_free(&view.name) => view.or_replace = true,
        _ => {}
    }
    plan
}

/// Returns the column that planning did not find.
fn missing_column(error: DataFusionError) -> Option<Column> {
    match error.find_root() {
        DataFusionError::SchemaError(error, _) => match error.as_ref() {
            SchemaError::FieldNotFound { field, .. } => Some(Column::clone(field)),
            _ => None,
        },
        _ => None,
    }
}

/// Walk over a statement that names each column that `* REPLACE` replaces.
struct Replaced;

impl VisitorMut for Replaced {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for operator in &mut query.pipe_operators {
            if let PipeOperator::Select { exprs } | PipeOperator::Extend { exprs } = operator {
                exprs.iter_mut().for_each(name_replaced);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.projection.iter_mut().for_each(name_replaced);
        ControlFlow::Continue(())
    }
}

/// Adds to the `REPLACE` of `item` the column itself for each column that it replaces.
fn name_replaced(item: &mut SelectItem) {
    let (table, options) = match item {
        SelectItem::Wildcard(options) => (Vec::new(), options),
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), options) => {
            (table.0.iter().filter_map(|part| part.as_ident().cloned()).collect(), options)
        }
        _ => return,
    };
    let Some(replace) = &mut options.opt_replace else { return };
    for at in 0..replace.items.len() {
        let column_name = replace.items[at].column_name.clone();
        let column = Ident::with_quote('"', column_name.value.clone());
        let expr = if table.is_empty() {
            Expr::Identifier(column)
        } else {
            Expr::CompoundIdentifier([table.as_slice(), &[column]].concat())
        };
        replace.items.push(Box::new(ReplaceSelectElement { expr, column_name, as_keyword: true }));
    }
}

impl Sandbox {
    /// Plans, checks and starts the statement `sql` in `ctx`.
    ///
    /// # Errors
    /// A [`Refused`](crate::safety::Refused), and the errors of DataFusion.
    pub async fn sql(&self, ctx: &SessionContext, sql: &str) -> Result<DataFrame> {
        let state = ctx.state();
        let statement = state.sql_to_statement(sql, &state.config_options().sql_parser.dialect)?;
        let plan = plan_statement(&state, statement).await?;
        self.check(&plan)?;
        check_parameters(&plan, &[])?;
        ctx.execute_logical_plan(plan).await
    }
}

#[cfg(test)]
mod tests {
    use datafusion::config::Dialect;
    use datafusion::prelude::SessionContext;

    use super::*;

    async fn plan(sql: &str) -> Result<LogicalPlan> {
        let ctx = SessionContext::new();
        ctx.sql("CREATE TABLE t AS SELECT 1 AS a, 2 AS b").await?;
        ctx.sql("CREATE TABLE u AS SELECT 1 AS a, 3 AS \"C\"").await?;
        let state = ctx.state();
        // Only this dialect has pipes.
        let dialect = if sql.contains("|>") { Dialect::BigQuery } else { Dialect::DuckDB };
        plan_statement(&state, state.sql_to_statement(sql, &dialect)?).await
    }

    #[tokio::test]
    async fn replaced_columns_have_to_be_there() {
        for sql in [
            "SELECT * REPLACE (1 AS c) FROM t",
            "SELECT * REPLACE (1 AS c) FROM u",
            "SELECT * REPLACE (1 AS A) FROM t",
            "SELECT t.* REPLACE (1 AS \"C\") FROM t JOIN u ON t.a = u.a",
            "SELECT a FROM (SELECT * REPLACE (1 AS a, 2 AS c) FROM t)",
            "WITH w AS (SELECT * REPLACE (1 AS c) FROM t) SELECT a FROM w",
            "SELECT a FROM t WHERE EXISTS (SELECT * REPLACE (1 AS c) FROM u)",
            "EXPLAIN SELECT * REPLACE (1 AS c) FROM t",
            "SELECT a FROM t |> SELECT * REPLACE (1 AS c)",
            "CREATE VIEW v AS SELECT * REPLACE (1 AS c) FROM t",
            "COPY (SELECT * REPLACE (1 AS c) FROM t) TO 'x.csv' STORED AS CSV",
            "SELECT a FROM t UNION ALL SELECT a FROM (SELECT * REPLACE (1 AS c) FROM t)",
        ] {
            let error = plan(sql).await.unwrap_err().to_string();
            assert!(error.contains("* REPLACE (… AS"), "{sql}: {error}");
        }
    }

    #[tokio::test]
    async fn comparisons_have_their_precedence() {
        for (sql, expected) in [
            ("SELECT a FROM t WHERE a IS DISTINCT FROM b OR a > 1", "(a IS DISTINCT FROM b) OR a > 1"),
            ("SELECT a FROM t WHERE a IS NOT DISTINCT FROM b AND a > 1", "(a IS NOT DISTINCT FROM b) AND a > 1"),
        ] {
            let expected = plan(&format!("SELECT a FROM t WHERE {expected}")).await.unwrap();
            assert_eq!(plan(sql).await.unwrap().to_string(), expected.to_string(), "{sql}");
        }
    }

    #[tokio::test]
    async fn plans_of_other_statements_are_those_of_datafusion() {
        for sql in [
            "SELECT * REPLACE (b AS a) FROM t",
            "SELECT * REPLACE ('x' AS a) FROM t UNION ALL SELECT 'y', 2",
            "SELECT t.* REPLACE (1 AS a), u.* EXCLUDE (a) REPLACE (2 AS \"C\") FROM t JOIN u ON t.a = u.a",
            "SELECT a FROM t",
        ] {
            let ctx = SessionContext::new();
            ctx.sql("CREATE TABLE t AS SELECT 1 AS a, 2 AS b").await.unwrap();
            ctx.sql("CREATE TABLE u AS SELECT 1 AS a, 3 AS \"C\"").await.unwrap();
            let state = ctx.state();
            let expected = state.create_logical_plan(sql).await.unwrap();
            assert_eq!(plan(sql).await.unwrap().to_string(), expected.to_string(), "{sql}");
        }
    }
}
