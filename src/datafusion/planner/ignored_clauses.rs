//! Clauses of SQL that the parser reads and the planner ignores. They are refused by name.
//!
//! ```text
//! FROM t TABLESAMPLE (10 ROWS)   ─▶ "TABLESAMPLE is not executed; …"
//!        └─ the plan would have all rows of t
//! ```
//!
//! The list is that of sqlparser 0.62 against DataFusion 55: each clause that the parser accepts was run. The
//! planner refuses most of them itself. A hint in a comment says nothing of the rows, so it is no clause.
//! Cost: one walk over the statement.

use std::ops::ControlFlow;

use datafusion::common::plan_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    Delete, DuplicateTreatment, Expr, Function, FunctionArgumentClause, FunctionArguments,
    GroupByExpr, GroupByWithModifier, Query, Select, SelectItem, Statement as SqlStatement,
    TableFactor, Visit, Visitor, WildcardAdditionalOptions,
};

/// Ways to a sample of rows.
const SAMPLES: &str = "write WHERE random() < 0.01 for a share, ORDER BY random() LIMIT n for a number, and ORDER BY \
                       md5(concat(doc_id, 'seed')) LIMIT n for the same rows each time";
/// Way out for what is said of one row and not of groups.
const CASES: &str = "write CASE WHEN … THEN … END";

/// Checks that the planner ignores no clause of `statement`. `is_scalar` tells functions of rows by their name.
///
/// Statements of `tadoc`, of its server and of Python pass it. Programs that call
/// [`SessionContext::sql`](datafusion::prelude::SessionContext::sql) call it themselves.
///
/// ```
/// use datafusion::sql::parser::DFParser;
///
/// let check = |sql| {
///     let statement = DFParser::parse_sql(sql).unwrap().pop_front().unwrap();
///     datafusion_tadoc::check_clauses(&statement, &|name| name == "upper")
/// };
/// assert!(check("SELECT a FROM t LIMIT 3").is_ok());
/// assert!(check("SELECT a FROM t TABLESAMPLE (3 ROWS)").is_err());
/// ```
///
/// # Errors
/// A plan error that names the first ignored clause, and the way out.
pub fn check_clauses(statement: &Statement, is_scalar: &dyn Fn(&str) -> bool) -> Result<()> {
    let mut check = Check { is_scalar };
    let mut open = vec![statement];
    while let Some(statement) = open.pop() {
        let found = match statement {
            Statement::Statement(statement) => statement.visit(&mut check),
            Statement::CopyTo(copy) => match &copy.source {
                CopyToSource::Query(query) => query.visit(&mut check),
                CopyToSource::Relation(_) => ControlFlow::Continue(()),
            },
            Statement::Explain(explain) => {
                open.push(&explain.statement);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        };
        if let ControlFlow::Break(error) = found {
            return Err(error);
        }
    }
    Ok(())
}

type Found = ControlFlow<DataFusionError>;

/// Breaks with an error if `is_there`.
fn refuse(is_there: bool, clause: &str, way_out: &str) -> Found {
    if !is_there {
        return ControlFlow::Continue(());
    }
    ControlFlow::Break(plan_datafusion_err!("{clause} is not executed; {way_out}"))
}

/// The walk over a statement.
struct Check<'a> {
    is_scalar: &'a dyn Fn(&str) -> bool,
}

impl Visitor for Check<'_> {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &Query) -> Found {
        let locks = "nothing locks rows, so leave it out; a statement reads one version";
        refuse(!query.locks.is_empty(), "FOR UPDATE or FOR SHARE", locks)?;
        let format = "choose the format where the rows are written, as with --format json";
        refuse(query.for_clause.is_some(), "FOR XML, FOR JSON or FOR BROWSE", format)?;
        refuse(query.format_clause.is_some(), "FORMAT", format)?;
        let settings = "write SET name = value before the statement";
        refuse(query.settings.is_some(), "SETTINGS", settings)
    }

    fn pre_visit_select(&mut self, select: &Select) -> Found {
        refuse(select.prewhere.is_some(), "PREWHERE", "write WHERE")?;
        refuse(!select.connect_by.is_empty(), "CONNECT BY", "write WITH RECURSIVE")?;
        let mode = "build the value with struct() or named_struct()";
        refuse(select.value_table_mode.is_some(), "SELECT AS VALUE or AS STRUCT", mode)?;
        let modifiers = select.select_modifiers.as_ref();
        let has_modifiers = modifiers.is_some_and(|modifiers| !modifiers.to_string().is_empty());
        refuse(has_modifiers, "a modifier behind SELECT", "leave it out")?;
        let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) =
            &select.group_by;
        let has_totals = modifiers.contains(&GroupByWithModifier::Totals);
        refuse(has_totals, "WITH TOTALS", "write GROUP BY ROLLUP (…)")?;
        for item in &select.projection {
            if let SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) = item
            {
                wildcard(options)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> Found {
        match table {
            TableFactor::Table {
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
                ..
            } => {
                refuse(sample.is_some(), "TABLESAMPLE", SAMPLES)?;
                let hints = "leave it out: the plan is chosen without hints";
                refuse(!with_hints.is_empty(), "WITH (hint)", hints)?;
                refuse(!index_hints.is_empty(), "USE, FORCE or IGNORE INDEX", hints)?;
                let versions =
                    "name the version of a living corpus as in documents('c/', version => 2)";
                refuse(version.is_some(), "a version of a table", versions)?;
                let order = "write row_number() OVER ()";
                refuse(*with_ordinality, "WITH ORDINALITY", order)?;
                refuse(!partitions.is_empty(), "PARTITION (…)", "write a condition in WHERE")?;
                refuse(json_path.is_some(), "a path behind a table", "write column['field']")
            }
            TableFactor::Derived { sample, .. } => refuse(sample.is_some(), "TABLESAMPLE", SAMPLES),
            TableFactor::Function { with_ordinality, .. } => {
                refuse(*with_ordinality, "WITH ORDINALITY", "write row_number() OVER ()")
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Found {
        match expr {
            Expr::Function(function) => self.function(function),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_statement(&mut self, statement: &SqlStatement) -> Found {
        match statement {
            SqlStatement::Delete(Delete { limit, .. }) => {
                let limited = "write WHERE doc_id IN (SELECT doc_id … LIMIT n)";
                refuse(limit.is_some(), "LIMIT of DELETE", limited)
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Check<'_> {
    fn function(&self, function: &Function) -> Found {
        let has_parameters = !matches!(function.parameters, FunctionArguments::None);
        refuse(has_parameters, "a second list of arguments", "give all arguments in one list")?;
        let name = function.name.to_string().to_ascii_lowercase();
        if function.over.is_some() || !(self.is_scalar)(&name) {
            return ControlFlow::Continue(());
        }
        let of_rows = |clause: &str| format!("{clause} of {name}, a function of single rows,");
        refuse(function.filter.is_some(), &of_rows("FILTER"), CASES)?;
        let leave_out = "leave it out";
        refuse(function.null_treatment.is_some(), &of_rows("IGNORE or RESPECT NULLS"), leave_out)?;
        refuse(!function.within_group.is_empty(), &of_rows("WITHIN GROUP"), leave_out)?;
        let FunctionArguments::List(list) = &function.args else {
            return ControlFlow::Continue(());
        };
        let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
        refuse(is_distinct, &of_rows("DISTINCT"), "write SELECT DISTINCT")?;
        let is_order =
            |clause: &FunctionArgumentClause| matches!(clause, FunctionArgumentClause::OrderBy(_));
        refuse(list.clauses.iter().any(is_order), &of_rows("ORDER BY"), leave_out)
    }
}

fn wildcard(options: &WildcardAdditionalOptions) -> Found {
    refuse(options.opt_ilike.is_some(), "* ILIKE", "name the columns, or write * EXCLUDE (…)")
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    fn check(sql: &str) -> Result<()> {
        let statements = DFParser::parse_sql(sql).unwrap();
        let is_scalar = |name: &str| name == "upper";
        statements.iter().try_for_each(|statement| check_clauses(statement, &is_scalar))
    }

    #[test]
    fn ignored_clauses_are_refused_by_name() {
        for (sql, clause) in [
            ("SELECT * FROM t TABLESAMPLE (10 ROWS)", "TABLESAMPLE"),
            ("SELECT * FROM t TABLESAMPLE BERNOULLI (1) REPEATABLE (7)", "TABLESAMPLE"),
            ("SELECT * FROM (SELECT * FROM t) TABLESAMPLE SYSTEM (1)", "TABLESAMPLE"),
            ("SELECT * FROM a JOIN b SAMPLE (1) ON a.x = b.x", "TABLESAMPLE"),
            ("EXPLAIN SELECT (SELECT x FROM t TABLESAMPLE (1)) FROM u", "TABLESAMPLE"),
            ("COPY (SELECT * FROM t TABLESAMPLE (1)) TO 'x.csv'", "TABLESAMPLE"),
            ("CREATE TABLE c AS SELECT * FROM t TABLESAMPLE (1)", "TABLESAMPLE"),
            ("INSERT INTO c SELECT * FROM t TABLESAMPLE (1)", "TABLESAMPLE"),
            ("SELECT * FROM t FOR UPDATE", "FOR UPDATE"),
            ("VALUES (1) FOR SHARE", "FOR UPDATE"),
            ("SELECT * FROM t FOR JSON PATH", "FOR XML, FOR JSON"),
            ("SELECT * FROM t SETTINGS x = 1", "SETTINGS"),
            ("SELECT * FROM t FORMAT CSV", "FORMAT"),
            ("SELECT * FROM t PREWHERE a = 1", "PREWHERE"),
            ("SELECT * FROM t CONNECT BY PRIOR a = b", "CONNECT BY"),
            ("SELECT * FROM t WITH (NOLOCK)", "WITH (hint)"),
            ("SELECT * FROM t PARTITION (p0)", "PARTITION"),
            ("SELECT * FROM generate_series(1, 3) WITH ORDINALITY AS g(a)", "WITH ORDINALITY"),
            ("SELECT * ILIKE '%a%' FROM t", "* ILIKE"),
            ("SELECT t.* ILIKE '%a%' FROM t", "* ILIKE"),
            ("SELECT a, count(*) FROM t GROUP BY a WITH TOTALS", "WITH TOTALS"),
            ("SELECT upper(a) FILTER (WHERE a > 1) FROM t", "FILTER of upper"),
            ("SELECT upper(a) IGNORE NULLS FROM t", "NULLS of upper"),
            ("SELECT UPPER(DISTINCT a) FROM t", "DISTINCT of upper"),
            ("SELECT upper(a ORDER BY b) FROM t", "ORDER BY of upper"),
            ("SELECT sum(1)(a) FROM t", "a second list of arguments"),
            ("DELETE FROM t WHERE a = 1 LIMIT 1", "LIMIT of DELETE"),
        ] {
            let error = check(sql).unwrap_err().to_string();
            assert!(error.contains(clause) && error.contains("is not executed"), "{sql}: {error}");
        }
    }

    #[test]
    fn what_is_executed_passes() {
        for sql in [
            "SELECT a, sum(b) FILTER (WHERE b > 1) FROM t GROUP BY a",
            "SELECT lag(a) IGNORE NULLS OVER (ORDER BY a), array_agg(DISTINCT a ORDER BY a) FROM t",
            "SELECT a FROM t QUALIFY row_number() OVER (ORDER BY a) = 1",
            "SELECT * EXCLUDE (a) REPLACE (1 AS b) FROM t GROUP BY ROLLUP (a) LIMIT 3 OFFSET 1",
            "SELECT /*+ BROADCAST(t) */ a INTO u FROM t",
            "DELETE FROM t WHERE a IN (SELECT a FROM t LIMIT 1)",
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x.csv'",
        ] {
            check(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }
}
