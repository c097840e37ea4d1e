//! Plans of statements all of whose clauses are executed.
//!
//! ```text
//! SELECT * REPLACE (1 AS c) FROM t         ─▶ the plan that is returned
//! SELECT * REPLACE (1 AS c, "c" AS c) …    ─▶ a plan that fails if t has no column c
//! ```
//!
//! DataFusion passes over a `REPLACE` of a column that is not there. Only planning knows the columns, so such a
//! statement is planned a second time with a name that has to be found. DataFusion takes the first of two items for
//! a column, so the second one changes nothing else.

use std::ops::ControlFlow;

use datafusion::common::{Column, SchemaError, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ReplaceSelectElement, ReplaceSelectItem, Select, SelectItem, SelectItemQualifiedWildcardKind,
    VisitMut, VisitorMut,
};

use super::check_clauses;

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
/// The errors of [`check_clauses`] and of planning; a plan error if `* REPLACE` names a column that is not there.
pub async fn plan_statement(state: &SessionState, statement: Statement) -> Result<LogicalPlan> {
    check_clauses(state, &statement)?;
    let mut named = statement.clone();
    let plan = state.statement_to_plan(statement).await?;
    let mut replaced = Replaced { has_any: false };
    replaced.visit_statement(&mut named);
    if !replaced.has_any {
        return Ok(plan);
    }
    let missing = state.statement_to_plan(named).await.err().and_then(missing_column);
    match missing {
        Some(Column { name, .. }) => plan_err!(
            "* REPLACE (… AS {name}): expected a column of the tables, got {name}, which none of them has; to add a \
             column write SELECT *, … AS {name}"
        ),
        None => Ok(plan),
    }
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
struct Replaced {
    has_any: bool,
}

impl Replaced {
    fn visit_statement(&mut self, statement: &mut Statement) {
        let _ = match statement {
            Statement::Statement(plain) => VisitMut::visit(plain, self),
            Statement::Explain(explained) => {
                self.visit_statement(&mut explained.statement);
                ControlFlow::Continue(())
            }
            Statement::CopyTo(copy) => match &mut copy.source {
                CopyToSource::Query(query) => VisitMut::visit(query, self),
                CopyToSource::Relation(_) => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        };
    }

    /// Adds to `replace` an item that is the column itself for each column of its items, of the table `table`.
    fn name_columns(&mut self, replace: &mut ReplaceSelectItem, table: &[Ident]) {
        self.has_any = true;
        let columns: Vec<Ident> = replace.items.iter().map(|item| item.column_name.clone()).collect();
        for column_name in columns {
            let column = Ident::with_quote('"', column_name.value.clone());
            let expr = if table.is_empty() {
                Expr::Identifier(column)
            } else {
                Expr::CompoundIdentifier([table, &[column]].concat())
            };
            let item = ReplaceSelectElement { expr, column_name, as_keyword: true };
            replace.items.push(Box::new(item));
        }
    }
}

impl VisitorMut for Replaced {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            match item {
                SelectItem::Wildcard(options) => {
                    if let Some(replace) = &mut options.opt_replace {
                        self.name_columns(replace, &[]);
                    }
                }
                SelectItem::QualifiedWildcard(kind, options) => {
                    let SelectItemQualifiedWildcardKind::ObjectName(table) = kind else { continue };
                    let table: Vec<Ident> = table.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
                    if let Some(replace) = &mut options.opt_replace {
                        self.name_columns(replace, &table);
                    }
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
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
        plan_statement(&state, state.sql_to_statement(sql, &Dialect::DuckDB)?).await
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
            "CREATE VIEW v AS SELECT * REPLACE (1 AS c) FROM t",
            "COPY (SELECT * REPLACE (1 AS c) FROM t) TO 'x.csv' STORED AS CSV",
            "SELECT a FROM t UNION ALL SELECT a FROM (SELECT * REPLACE (1 AS c) FROM t)",
        ] {
            let error = plan(sql).await.unwrap_err().to_string();
            assert!(error.contains("* REPLACE (… AS"), "{sql}: {error}");
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
