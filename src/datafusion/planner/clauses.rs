//! Clauses that the parser reads and the planner passes over in silence.
//!
//! The parser reads the SQL of many engines, and the planner of DataFusion drops some of it without a word:
//! `FOR UPDATE`, `WITH (NOLOCK)`, `GROUP BY a WITH ROLLUP`, the limit of a `DELETE`. Such a statement would
//! answer something else than it asks. Each such clause is refused by its name, with what to write instead.
//! Clauses that the planner refuses itself are left to it, but for a few whose error names no way out. The list
//! is that of sqlparser 0.62 against DataFusion 55. Cost: one walk over the statement.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    self, DuplicateTreatment, ExcludeSelectItem, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, GroupByExpr, Ident, JoinConstraint, JoinOperator, LimitClause, NamedWindowExpr, OrderByKind,
    PipeOperator, Query, Select, SelectFlavor, SelectItem, SetExpr, SetOperator, SetQuantifier, TableAlias,
    TableFactor, UnaryOperator, Value, Visit, Visitor, WildcardAdditionalOptions, WindowType,
};

use super::relation::are_defaults;
use crate::functions::find_signature;

mod statements;

/// Window functions whose rows do not depend on values, so that NULLs are nothing to them.
const RANKS: [&str; 6] = ["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"];

/// Ways to a sample of rows.
const SAMPLES: &str = "write WHERE random() < 0.01 for a share, ORDER BY random() LIMIT n for a number, and ORDER BY \
                       md5(concat(doc_id, 'seed')) LIMIT n for the same rows each time";

/// Refuses `statement` if it has a clause that DataFusion parses and does not execute. `state` knows which
/// functions aggregate rows. `SessionContext::sql` does not call it: programs call it between parsing and
/// planning.
///
/// ```
/// use datafusion::config::Dialect;
/// use datafusion::prelude::SessionContext;
/// use datafusion_tadoc::check_clauses;
///
/// let state = SessionContext::new().state();
/// let statement = state.sql_to_statement("SELECT * FROM t FOR UPDATE", &Dialect::Generic)?;
/// let error = check_clauses(&state, &statement).unwrap_err().to_string();
/// assert!(error.contains("FOR UPDATE"), "{error}");
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
///
/// # Errors
/// A plan error, which names the clause and the way out.
pub fn check_clauses(state: &SessionState, statement: &Statement) -> Result<()> {
    has_replacements(state, statement).map(|_| ())
}

/// Checks `statement` as [`check_clauses`] does. Returns true if it has a `* REPLACE`.
///
/// # Errors
/// The errors of [`check_clauses`].
pub(super) fn has_replacements(state: &SessionState, statement: &Statement) -> Result<bool> {
    let mut statement = statement;
    while let Statement::Explain(explained) = statement {
        statement = &explained.statement;
    }
    let mut clauses = Clauses { state, open_queries: 1, has_replacements: false };
    match clauses.visit_statement(statement) {
        ControlFlow::Break((clause, instead)) => {
            plan_err!("{clause} is not executed here, so it is refused; {instead}")
        }
        ControlFlow::Continue(()) => Ok(clauses.has_replacements),
    }
}

/// A clause by its name, and what to write instead.
type Refused = (&'static str, &'static str);

type Outcome = ControlFlow<Refused>;

/// Walk over a statement that stops at the first clause that is not executed.
struct Clauses<'a> {
    state: &'a SessionState,
    /// Queries around the place, and 1 if the statement is not a query itself.
    open_queries: usize,
    /// True if a `* REPLACE` was met.
    has_replacements: bool,
}

impl Visitor for Clauses<'_> {
    type Break = Refused;

    fn pre_visit_statement(&mut self, statement: &ast::Statement) -> Outcome {
        statements::check_statement(statement)
    }

    fn pre_visit_query(&mut self, query: &Query) -> Outcome {
        self.open_queries += 1;
        self.has_replacements |= query.pipe_operators.iter().flat_map(pipe_items).any(replaces_columns);
        check_query(query)?;
        check_sets(&query.body)?;
        check_into(&query.body, self.open_queries == 1)
    }

    fn post_visit_query(&mut self, _: &Query) -> Outcome {
        self.open_queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> Outcome {
        self.has_replacements |= select.projection.iter().any(replaces_columns);
        check_select(select)
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> Outcome {
        self.check_table_function(table)?;
        check_table(table)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Outcome {
        match expr {
            Expr::Function(function) => self.check_function(function),
            Expr::Cast { data_type, .. } => statements::check_cast(data_type),
            Expr::TypedString(text) => statements::check_cast(&text.data_type),
            Expr::SimilarTo { .. } => {
                let instead = "write text ~ '^(…)$' with a regular expression, or LIKE";
                refuse(true, "SIMILAR TO", instead)
            }
            Expr::Trim { trim_characters: Some(characters), .. } => {
                let instead = "name all characters in one text: trim(text, 'ab')";
                refuse(characters.len() > 1, "a further argument of TRIM", instead)
            }
            Expr::Collate { .. } => refuse(true, "COLLATE", "texts compare by their bytes; use lower(…) for letters"),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Clauses<'_> {
    fn visit_statement(&mut self, statement: &Statement) -> Outcome {
        match statement {
            Statement::Statement(plain) => {
                if matches!(**plain, ast::Statement::Query(_)) {
                    self.open_queries = 0;
                }
                plain.visit(self)
            }
            Statement::CopyTo(copy) => {
                statements::check_copy(copy, self.state)?;
                match &copy.source {
                    CopyToSource::Query(query) => query.visit(self),
                    CopyToSource::Relation(_) => ControlFlow::Continue(()),
                }
            }
            Statement::CreateExternalTable(table) => statements::check_external_table(table),
            _ => ControlFlow::Continue(()),
        }
    }

    fn check_function(&self, function: &Function) -> Outcome {
        let name = match function.name.0.last().and_then(|part| part.as_ident()) {
            Some(name) if name.quote_style.is_none() => name.value.to_ascii_lowercase(),
            Some(name) => name.value.clone(),
            None => String::new(),
        };
        let has_parameters = !matches!(function.parameters, FunctionArguments::None);
        refuse(has_parameters, "f(…)(…)", "write all arguments in one list")?;
        if let Some(WindowType::WindowSpec(window)) = &function.over {
            check_window(window)?;
        }
        let mut is_distinct = false;
        let mut is_ordered = false;
        let mut has_nulls = function.null_treatment.is_some();
        let is_query = matches!(function.args, FunctionArguments::Subquery(_));
        refuse(is_query, "a query as all arguments", "write it in parentheses: f((SELECT …))")?;
        let mut has_star = false;
        if let FunctionArguments::List(list) = &function.args {
            has_star = list.args.iter().any(is_star);
            is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
            for clause in &list.clauses {
                is_ordered |= matches!(clause, FunctionArgumentClause::OrderBy(_));
                has_nulls |= matches!(clause, FunctionArgumentClause::IgnoreOrRespectNulls(_));
            }
        }
        let ranks = RANKS.contains(&name.as_str());
        if let Some(aggregate) = self.state.aggregate_functions().get(&name) {
            let columns = "name the columns, or SELECT count(*) FROM (SELECT DISTINCT * …)";
            refuse(is_distinct && has_star, "DISTINCT * in a call", columns)?;
            let is_ordered_set = aggregate.supports_within_group_clause();
            let within = "write f(0.5) WITHIN GROUP (ORDER BY a)";
            let clause = "ORDER BY in a call of a percentile";
            return refuse(is_ordered && is_ordered_set, clause, within);
        }
        let aggregates_only = "it is for aggregates; leave it out, or ask it in a subquery";
        refuse(function.filter.is_some(), "FILTER (WHERE …)", aggregates_only)?;
        refuse(is_distinct, "DISTINCT in a call", aggregates_only)?;
        if self.state.window_functions().contains_key(&name) {
            return refuse(ranks && has_nulls, "IGNORE NULLS or RESPECT NULLS of a rank", aggregates_only);
        }
        let over = "it is for aggregates and window functions; leave it out";
        refuse(function.over.is_some(), "OVER", over)?;
        refuse(is_ordered, "ORDER BY in a call", aggregates_only)?;
        refuse(!function.within_group.is_empty(), "WITHIN GROUP", aggregates_only)?;
        refuse(has_nulls, "IGNORE NULLS or RESPECT NULLS", aggregates_only)
    }

    /// Refuses parts of the name of a table function that are not looked at, and names of arguments of a function
    /// that takes them by position.
    fn check_table_function(&self, table: &TableFactor) -> Outcome {
        let (name, arguments, is_lateral) = match table {
            TableFactor::Table { name, args: Some(arguments), .. } => (name, &arguments.args, false),
            TableFactor::Function { name, args, .. } => (name, args, true),
            _ => return ControlFlow::Continue(()),
        };
        let Some((last, qualifiers)) = name.0.split_last() else {
            return ControlFlow::Continue(());
        };
        let catalog = &self.state.config_options().catalog;
        let is_same = |ident: &Ident, default: &str| ident.value.eq_ignore_ascii_case(default);
        let is_plain = are_defaults(qualifiers, catalog, is_same);
        refuse(!is_plain, "a dot in the name of a table function", "write its name alone")?;
        let is_ours = last.as_ident().is_some_and(|ident| find_signature(&ident.value).is_some());
        let has_names = arguments.iter().any(|arg| !matches!(arg, FunctionArg::Unnamed(_)));
        let instead = "give the arguments by position";
        refuse(is_lateral && has_names && !is_ours, "the name of an argument", instead)
    }
}

fn refuse(found: bool, clause: &'static str, instead: &'static str) -> Outcome {
    if found { ControlFlow::Break((clause, instead)) } else { ControlFlow::Continue(()) }
}

fn is_star(arg: &FunctionArg) -> bool {
    let (FunctionArg::Unnamed(arg) | FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. }) = arg;
    matches!(arg, FunctionArgExpr::Wildcard | FunctionArgExpr::QualifiedWildcard(_))
}

fn check_query(query: &Query) -> Outcome {
    let locks = "leave it out: a statement reads one version, and locks nothing";
    refuse(!query.locks.is_empty(), "FOR UPDATE or FOR SHARE", locks)?;
    let format = "leave it out and choose the format outside SQL, as tadoc sql --format";
    refuse(query.for_clause.is_some(), "FOR XML, FOR JSON or FOR BROWSE", format)?;
    refuse(query.settings.is_some(), "SETTINGS", "write SET name = value before the statement")?;
    refuse(query.format_clause.is_some(), "FORMAT", format)?;
    if let Some(fetch) = &query.fetch {
        let ties = "filter by rank() in a subquery: WHERE r <= n";
        refuse(fetch.with_ties, "FETCH … WITH TIES", ties)?;
        refuse(fetch.percent, "FETCH … PERCENT", "count first, and write LIMIT n")?;
        refuse(true, "FETCH FIRST", "write LIMIT n")?;
    }
    if let Some(LimitClause::LimitOffset { limit_by, .. }) = &query.limit_clause {
        let instead = "filter by row_number() OVER (PARTITION BY …) in a subquery";
        refuse(!limit_by.is_empty(), "LIMIT … BY", instead)?;
    }
    if let Some(order_by) = &query.order_by {
        check_order(&order_by.kind, matches!(*query.body, SetExpr::Select(_)))?;
    }
    let is_recursive = query.with.as_ref().is_some_and(|with| with.recursive);
    for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
        let has_limit = is_recursive && cte.query.limit_clause.is_some();
        refuse(has_limit, "LIMIT in WITH RECURSIVE", "write LIMIT in the query that reads it")?;
        refuse(cte.from.is_some(), "FROM after a query of WITH", "leave it out")?;
        let is_kept = matches!(cte.materialized, Some(ast::CteAsMaterialized::Materialized));
        refuse(is_kept, "MATERIALIZED", "leave it out, or CREATE TABLE … AS first")?;
    }
    query.pipe_operators.iter().try_for_each(|operator| match operator {
        PipeOperator::Select { .. } | PipeOperator::Extend { .. } => check_items(pipe_items(operator)),
        PipeOperator::Aggregate { full_table_exprs, group_by_expr } => {
            let mut all = full_table_exprs.iter().chain(group_by_expr);
            let is_ordered = all.any(|expr| expr.order_by.asc.is_some() || expr.order_by.nulls_first.is_some());
            refuse(is_ordered, "ASC or DESC in AGGREGATE", "write |> ORDER BY after it")
        }
        _ => ControlFlow::Continue(()),
    })
}

/// Refuses orders that sort nothing.
fn check_order(kind: &OrderByKind, is_select: bool) -> Outcome {
    let columns = match kind {
        OrderByKind::All(_) => {
            let instead = "name the columns";
            return refuse(!is_select, "ORDER BY ALL of anything but one SELECT", instead);
        }
        OrderByKind::Expressions(columns) => columns,
    };
    let is_constant = |expr: &Expr| match expr {
        Expr::Value(value) => !matches!(value.value, Value::Number(..) | Value::Placeholder(_)),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => {
            matches!(**expr, Expr::Value(_))
        }
        _ => false,
    };
    let instead = "write the name of a column as it is or in \"…\", or its number from 1";
    let any_constant = columns.iter().any(|column| is_constant(&column.expr));
    refuse(any_constant, "ORDER BY a constant", instead)
}

/// Refuses differences and intersections that count equal rows, which give wrong numbers of them.
fn check_sets(body: &SetExpr) -> Outcome {
    let mut open = vec![body];
    while let Some(body) = open.pop() {
        if let SetExpr::SetOperation { op, set_quantifier, left, right } = body {
            let is_all = matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName);
            let is_union = *op == SetOperator::Union;
            refuse(is_all && !is_union, "EXCEPT ALL or INTERSECT ALL", "leave ALL out")?;
            open.extend([&**left, &**right]);
        }
    }
    ControlFlow::Continue(())
}

/// Refuses `INTO` except in the one `SELECT` of the outermost query.
fn check_into(body: &SetExpr, is_outermost: bool) -> Outcome {
    let instead = "write CREATE TABLE … AS SELECT …";
    if is_outermost && let SetExpr::Select(select) = body {
        let into = select.into.as_ref();
        let has_kind = into.is_some_and(|into| into.temporary || into.unlogged);
        return refuse(has_kind, "INTO TEMPORARY or UNLOGGED", instead);
    }
    let mut open = vec![body];
    while let Some(body) = open.pop() {
        match body {
            SetExpr::Select(select) => {
                refuse(select.into.is_some(), "INTO inside of a statement", instead)?;
            }
            SetExpr::SetOperation { left, right, .. } => open.extend([&**left, &**right]),
            _ => {}
        }
    }
    ControlFlow::Continue(())
}

fn check_select(select: &Select) -> Outcome {
    let hint = "leave it out; SET names the settings of a session";
    refuse(!select.optimizer_hints.is_empty(), "a hint in a comment, /*+ … */", hint)?;
    let modifiers = select.select_modifiers.as_ref();
    let is_modified = modifiers.is_some_and(|m| !m.to_string().trim().is_empty());
    refuse(is_modified, "a modifier of SELECT (such as SQL_CALC_FOUND_ROWS)", "leave it out")?;
    let is_bare = select.flavor == SelectFlavor::FromFirstNoSelect;
    refuse(is_bare, "FROM without SELECT", "write SELECT * FROM …")?;
    refuse(select.top.is_some(), "TOP", "write LIMIT n")?;
    refuse(select.exclude.is_some(), "EXCLUDE after columns", "write SELECT * EXCLUDE (…)")?;
    refuse(!select.lateral_views.is_empty(), "LATERAL VIEW", "write unnest(…)")?;
    refuse(select.prewhere.is_some(), "PREWHERE", "write WHERE")?;
    refuse(!select.connect_by.is_empty(), "CONNECT BY", "write WITH RECURSIVE")?;
    let order = "write ORDER BY at the end of the query";
    refuse(!select.cluster_by.is_empty(), "CLUSTER BY", order)?;
    refuse(!select.distribute_by.is_empty(), "DISTRIBUTE BY", order)?;
    refuse(!select.sort_by.is_empty(), "SORT BY", order)?;
    refuse(select.value_table_mode.is_some(), "AS STRUCT or AS VALUE", "write named_struct(…)")?;
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = &select.group_by;
    let group = "write GROUP BY ROLLUP (…), CUBE (…) or GROUPING SETS (…)";
    refuse(!modifiers.is_empty(), "GROUP BY … WITH ROLLUP, CUBE or TOTALS", group)?;
    for join in select.from.iter().flat_map(|table| &table.joins) {
        refuse(join.global, "GLOBAL JOIN", "leave GLOBAL out")?;
        check_join(&join.join_operator)?;
    }
    for window in &select.named_window {
        if let NamedWindowExpr::WindowSpec(window) = &window.1 {
            check_window(window)?;
        }
    }
    check_items(&select.projection)
}

/// Refuses outer joins that become cross joins if the tables have no column of the same name.
fn check_join(operator: &JoinOperator) -> Outcome {
    let is_natural = matches!(
        operator,
        JoinOperator::Left(JoinConstraint::Natural)
            | JoinOperator::LeftOuter(JoinConstraint::Natural)
            | JoinOperator::Right(JoinConstraint::Natural)
            | JoinOperator::RightOuter(JoinConstraint::Natural)
            | JoinOperator::FullOuter(JoinConstraint::Natural)
    );
    refuse(is_natural, "NATURAL of an outer join", "name the columns: LEFT JOIN … USING (a, b)")
}

/// Refuses a window that adds to a named one.
fn check_window(window: &ast::WindowSpec) -> Outcome {
    let instead = "write the whole window in the parentheses, or OVER w";
    refuse(window.window_name.is_some(), "OVER (w …), a window that adds to w,", instead)
}

fn check_items(items: &[SelectItem]) -> Outcome {
    items.iter().try_for_each(|item| match item {
        SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => {
            let instead = "name the columns, or * EXCLUDE (…)";
            refuse(options.opt_ilike.is_some(), "* ILIKE", instead)?;
            let replaced = options.opt_replace.iter().flat_map(|replace| &replace.items);
            let mut names = HashSet::new();
            let is_twice = replaced.into_iter().any(|item| !names.insert(&item.column_name));
            refuse(is_twice, "REPLACE of the same column twice", "name it once")?;
            let is_excluded = excluded_columns(options).any(|column| names.contains(column));
            refuse(is_excluded, "REPLACE of an excluded column", "name it in one of the two lists")
        }
        _ => ControlFlow::Continue(()),
    })
}

/// Returns the columns that `operator` selects.
fn pipe_items(operator: &PipeOperator) -> &[SelectItem] {
    match operator {
        PipeOperator::Select { exprs } | PipeOperator::Extend { exprs } => exprs,
        _ => &[],
    }
}

fn replaces_columns(item: &SelectItem) -> bool {
    match item {
        SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => options.opt_replace.is_some(),
        _ => false,
    }
}

/// Returns the columns that a `*` leaves out.
fn excluded_columns(options: &WildcardAdditionalOptions) -> impl Iterator<Item = &Ident> {
    let excepted = options
        .opt_except
        .iter()
        .flat_map(|except| std::iter::once(&except.first_element).chain(&except.additional_elements));
    let names = match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => std::slice::from_ref(name),
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => &[],
    };
    let excluded = names.iter().filter_map(|name| name.0.last().and_then(|part| part.as_ident()));
    excepted.chain(excluded)
}

fn check_table(table: &TableFactor) -> Outcome {
    let numbers = "write row_number() OVER (…)";
    match table {
        TableFactor::Table {
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            index_hints,
            sample,
            ..
        } => {
            check_alias(alias.as_ref())?;
            refuse(sample.is_some(), "TABLESAMPLE", SAMPLES)?;
            let locks = "leave it out: a statement reads one version, and locks nothing";
            refuse(!with_hints.is_empty(), "WITH (…) after a table, such as NOLOCK,", locks)?;
            let versions = "name the version of a living corpus in its function: documents('c', 3)";
            refuse(version.is_some(), "a version of a table (AS OF, CHANGES)", versions)?;
            refuse(*with_ordinality, "WITH ORDINALITY", numbers)?;
            refuse(!partitions.is_empty(), "PARTITION (…) after a table", "write WHERE")?;
            refuse(json_path.is_some(), "a path in a table", "take parts of its columns")?;
            refuse(!index_hints.is_empty(), "USE, FORCE and IGNORE INDEX", "leave it out")?;
            let has_settings = args.as_ref().is_some_and(|args| args.settings.is_some());
            refuse(has_settings, "SETTINGS", "write SET name = value before the statement")
        }
        TableFactor::Function { with_ordinality, alias, .. } => {
            check_alias(alias.as_ref())?;
            refuse(*with_ordinality, "WITH ORDINALITY", numbers)
        }
        TableFactor::Derived { alias, sample, .. } => {
            check_alias(alias.as_ref())?;
            refuse(sample.is_some(), "TABLESAMPLE", SAMPLES)
        }
        _ => ControlFlow::Continue(()),
    }
}

fn check_alias(alias: Option<&TableAlias>) -> Outcome {
    let Some(alias) = alias else { return ControlFlow::Continue(()) };
    let has_types = alias.columns.iter().any(|column| column.data_type.is_some());
    refuse(has_types, "a type in the columns of an alias", "write CAST in SELECT")?;
    refuse(alias.at.is_some(), "AT after an alias", "write row_number() OVER (…)")
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;
    use datafusion::sql::parser::DFParser;
    use datafusion::sql::sqlparser::dialect::DuckDbDialect;

    use super::*;

    pub(super) fn check(sql: &str) -> Result<()> {
        let statements = DFParser::parse_sql(sql).unwrap();
        let state = SessionContext::new().state();
        statements.iter().try_for_each(|statement| check_clauses(&state, statement))
    }

    /// Returns the error that refuses a clause.
    pub(super) fn refusal(sql: &str) -> String {
        let error = check(sql).map(|()| sql.to_owned()).unwrap_err().to_string();
        assert!(error.contains("is not executed here"), "{sql}: {error}");
        error
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
            ("SELECT * FROM t WITH (NOLOCK)", "WITH (…) after a table"),
            ("SELECT * FROM t PARTITION (p0)", "PARTITION"),
            ("SELECT * FROM generate_series(1, 3) WITH ORDINALITY AS g(a)", "WITH ORDINALITY"),
            ("SELECT * ILIKE '%a%' FROM t", "* ILIKE"),
            ("SELECT t.* ILIKE '%a%' FROM t", "* ILIKE"),
            ("SELECT a, count(*) FROM t GROUP BY a WITH TOTALS", "TOTALS"),
            ("SELECT sum(a) OVER (w ORDER BY a) FROM t WINDOW w AS (PARTITION BY b)", "OVER (w"),
            ("SELECT a FROM t GLOBAL JOIN u USING (a)", "GLOBAL JOIN"),
            ("SELECT 1 EXCEPT ALL SELECT 1", "EXCEPT ALL"),
            (
                "WITH RECURSIVE n AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM n LIMIT 3) SELECT * FROM n",
                "LIMIT in WITH",
            ),
            ("SELECT a FROM t FETCH FIRST 1 ROWS WITH TIES", "WITH TIES"),
            ("SELECT upper(a) FILTER (WHERE a > 1) FROM t", "FILTER"),
            ("SELECT upper(a) IGNORE NULLS FROM t", "IGNORE NULLS"),
            ("SELECT UPPER(DISTINCT a) FROM t", "DISTINCT in a call"),
            ("SELECT upper(a ORDER BY b) FROM t", "ORDER BY in a call"),
            ("SELECT sum(1)(a) FROM t", "f(…)(…)"),
            ("SELECT upper(a) OVER (ORDER BY a) FROM t", "OVER"),
            ("SELECT unnest([1, 2]) OVER () FROM t", "OVER"),
            ("SELECT count(DISTINCT *) FROM t", "DISTINCT *"),
            ("SELECT count(DISTINCT t.*) FROM t", "DISTINCT *"),
            ("SELECT percentile_cont(a, 0.25 ORDER BY b) FROM t", "a percentile"),
            ("SELECT 'abc' SIMILAR TO 'b'", "SIMILAR TO"),
            ("SELECT trim('xyaxy', 'x', 'y')", "argument of TRIM"),
            ("FROM t", "FROM without SELECT"),
            ("COPY (FROM t) TO 'x.csv'", "FROM without SELECT"),
            ("SELECT a FROM t NATURAL LEFT JOIN u", "NATURAL of an outer join"),
            ("SELECT a FROM t ORDER BY 'a'", "ORDER BY a constant"),
            ("SELECT a FROM t ORDER BY a, -1", "ORDER BY a constant"),
            ("SELECT * REPLACE (1 AS a, 2 AS a) FROM t", "REPLACE of the same column twice"),
            ("SELECT * EXCLUDE (a) REPLACE (1 AS a) FROM t", "REPLACE of an excluded column"),
            ("SELECT * EXCLUDE a REPLACE (1 AS a) FROM t", "REPLACE of an excluded column"),
            ("SELECT a FROM t |> AGGREGATE sum(a) AS c GROUP BY b DESC", "ASC or DESC"),
            ("SELECT * FROM word_count.foo('c')", "a dot in the name"),
            ("SELECT * FROM t, LATERAL generate_series(stop => 1, start => 3)", "the name of an argument"),
            ("CREATE VIEW w AS SELECT a INTO u FROM t", "INTO inside"),
            ("SELECT a INTO TEMP u FROM t", "INTO TEMPORARY"),
        ] {
            let error = refusal(sql);
            assert!(error.contains(clause), "{sql}: {error}");
        }
    }

    #[test]
    fn an_order_by_all_columns_of_one_select_passes() {
        let check = |sql: &str| {
            let statements = DFParser::parse_sql_with_dialect(sql, &DuckDbDialect {}).unwrap();
            check_clauses(&SessionContext::new().state(), &statements[0])
        };
        assert!(check("SELECT a FROM t ORDER BY ALL DESC").is_ok());
        for sql in ["(SELECT a FROM t) ORDER BY ALL", "VALUES (1), (2) ORDER BY ALL"] {
            assert!(check(sql).unwrap_err().to_string().contains("ORDER BY ALL"), "{sql}");
        }
    }

    #[test]
    fn what_is_executed_passes() {
        for sql in [
            "SELECT a, sum(b) FILTER (WHERE b > 1) FROM t GROUP BY a",
            "SELECT lag(a) IGNORE NULLS OVER (ORDER BY a), array_agg(DISTINCT a ORDER BY a) FROM t",
            "SELECT a FROM t QUALIFY row_number() OVER (ORDER BY a) = 1",
            "SELECT * EXCLUDE (a) REPLACE (1 AS b) FROM t GROUP BY ROLLUP (a) LIMIT 3 OFFSET 1",
            "SELECT a INTO u FROM t",
            "SELECT sum(a) OVER w, percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t WINDOW w AS ()",
            "SELECT a FROM t NATURAL JOIN u ORDER BY 1, a + 1, \"a\", $1",
            "SELECT trim(a), trim(a, 'ab'), trim(BOTH 'a' FROM a) FROM t ORDER BY ALL",
            "SELECT * FROM public.word_count('c'), LATERAL search('c', words => a)",
        ] {
            check(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }
}
