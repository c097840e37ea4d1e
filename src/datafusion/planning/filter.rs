//! Filters that a scan evaluates itself, and their demands on the text.
//!
//! ```text
//! WHERE path LIKE 'a%' AND words > 9 AND text LIKE '%disk failure%'
//!       └──────── columns stage ───┘     └───── text stage ───────┘
//!       no text needed                   decoded text of the candidates
//!                                        candidates: documents whose grammar can spell
//!                                        "disk failure" (a necessary condition)
//! ```
//!
//! Claimed filters are evaluated by DataFusion's own expressions on the scan's arrays, so their meaning is the same as
//! elsewhere. Only the choice of candidates is the scan's. Volatile expressions, subqueries, parameters and
//! asynchronous functions are refused.
//!
//! Demands are derived from `=`, `IN`, `LIKE`, `contains`, `starts_with`, `ends_with`, regular expressions (the
//! literals that every match must contain), conditions on fields of `parse` (the literals of its pattern) and
//! `OR`/`AND` of these. `NOT`, case-insensitive forms and all other expressions give no demand, which is always sound.
//! U+FFFD in a literal may be the replacement of any invalid byte, so literals are cut there.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::scalar::ScalarValue;
use regex_syntax::hir::{Hir, HirKind};

use crate::dynamic_filters::passing;
use crate::fields::{Compiled, Reader, compiled};
use crate::planning::signature::{Claim, Columns};
use tadoc::query::TextPattern;

/// Filters that a scan evaluates, by when it can.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    /// Filters on columns that need no text.
    pub columns: Option<Stage>,
    /// Dynamic filters on columns that need no text. Joins and sorts above compute them while they
    /// run.
    pub dynamic: Vec<Stage>,
    /// Filters that need text.
    pub text: Option<Stage>,
    /// For each filter that demands something of the text, patterns of which at least one must
    /// match.
    pub demands: Vec<Vec<TextPattern>>,
}

impl Filters {
    /// Compiles `filters` on `columns`, which the scan claims all.
    ///
    /// # Errors
    /// The errors of planning expressions.
    pub(crate) fn compile(session: &dyn Session, columns: &Columns, filters: &[Expr]) -> Result<Self> {
        let needs_text = |filter: &Expr| filter.column_refs().iter().any(|c| columns.claim(&c.name) == Claim::Text);
        let (on_text, on_columns): (Vec<Expr>, Vec<Expr>) = filters.iter().cloned().partition(needs_text);
        let mut demands: Vec<Vec<TextPattern>> = on_text.iter().filter_map(|filter| demands(filter, "text")).collect();
        demands.retain(|patterns| patterns.iter().all(|p| !p.fragments.is_empty()));
        Ok(Self {
            columns: Stage::compile(session, &columns.schema, &on_columns)?,
            dynamic: Vec::new(),
            text: Stage::compile(session, &columns.schema, &on_text)?,
            demands,
        })
    }

    /// Returns all stages.
    pub(crate) fn stages(&self) -> impl Iterator<Item = &Stage> {
        self.before_text().chain(&self.text)
    }

    /// Calls `f` for the expression of each stage, until it stops.
    ///
    /// # Errors
    /// The errors of `f`.
    pub fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for stage in self.stages() {
            recursion = f(stage.expr())?;
            if recursion == TreeNodeRecursion::Stop {
                break;
            }
        }
        Ok(recursion)
    }

    /// Returns the stages that need no text.
    pub(crate) fn before_text(&self) -> impl Iterator<Item = &Stage> + Clone {
        self.columns.iter().chain(&self.dynamic)
    }

    /// Returns the same filters without dynamic ones.
    pub(crate) fn without_dynamic(&self) -> Self {
        Self { dynamic: Vec::new(), ..self.clone() }
    }

    /// Describes how the documents for the text filter are chosen.
    pub(crate) fn shown_candidates(&self) -> String {
        if self.demands.is_empty() {
            return "all documents".to_owned();
        }
        let all: Vec<String> = self.demands.iter().map(|patterns| shown_demand(patterns)).collect();
        format!("documents that can spell {}", all.join(" and "))
    }
}

fn shown_demand(patterns: &[TextPattern]) -> String {
    let shown = patterns.iter().map(|pattern| {
        let fragments: Vec<String> = pattern.fragments.iter().map(|f| format!("{f:?}")).collect();
        fragments.join("..")
    });
    shown.collect::<Vec<_>>().join(" or ")
}

/// Returns true if a scan can evaluate `expr`. `claims` says which of its columns are available. A condition on no
/// column (`NULL`) is left to DataFusion: functions that claim no column evaluate none.
pub(crate) fn is_claimable(expr: &Expr, claims: &dyn Fn(&str) -> bool) -> bool {
    let mut claimable = !expr.is_volatile() && expr.any_column_refs();
    let walk = expr.apply(|node| {
        claimable &= match node {
            Expr::Column(column) => claims(&column.name),
            Expr::ScalarFunction(function) => function.func.as_async().is_none(),
            Expr::Literal(..) | Expr::BinaryExpr(_) | Expr::Like(_) | Expr::SimilarTo(_) => true,
            Expr::Not(_) | Expr::IsNull(_) | Expr::IsNotNull(_) => true,
            Expr::IsTrue(_) | Expr::IsFalse(_) | Expr::IsUnknown(_) => true,
            Expr::IsNotTrue(_) | Expr::IsNotFalse(_) | Expr::IsNotUnknown(_) => true,
            Expr::Negative(_) | Expr::Between(_) | Expr::Case(_) | Expr::InList(_) => true,
            Expr::Cast(_) | Expr::TryCast(_) => true,
            _ => false,
        };
        Ok(if claimable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    claimable && walk.is_ok()
}

/// A conjunction of filters over some columns of a table.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Positions of its columns in the table's schema, ascending.
    pub columns: Vec<usize>,
    /// The filters as EXPLAIN shows them.
    pub shown: String,
    schema: SchemaRef,
    expr: Arc<dyn PhysicalExpr>,
}

impl Stage {
    /// Compiles the conjunction of `filters`. Returns `None` if there are no filters.
    pub(crate) fn compile(session: &dyn Session, schema: &SchemaRef, filters: &[Expr]) -> Result<Option<Self>> {
        let unqualified = filters.iter().map(|f| unqualify(f.clone())).collect::<Result<Vec<_>>>()?;
        let shown: Vec<String> = unqualified.iter().map(|filter| filter.to_string()).collect();
        let Some(filter) = conjunction(unqualified) else { return Ok(None) };
        let used = |i: &usize| filter.column_refs().iter().any(|c| &c.name == schema.field(*i).name());
        let columns: Vec<usize> = (0..schema.fields().len()).filter(used).collect();
        let schema: SchemaRef = Arc::new(schema.project(&columns)?);
        let df_schema = DFSchema::try_from(Arc::clone(&schema))?;
        let expr = session.create_physical_expr(filter, &df_schema)?;
        Ok(Some(Self { columns, shown: format!("[{}]", shown.join(", ")), schema, expr }))
    }

    /// Builds a stage from a filter of a parent node. The filter is over the columns of the scan's
    /// output, which are the columns `projection` of `schema`.
    pub(crate) fn pushed(schema: &SchemaRef, projection: &[usize], expr: &Arc<dyn PhysicalExpr>) -> Result<Self> {
        let used = collect_columns(expr);
        let mut columns: Vec<usize> = used.iter().map(|c| projection[c.index()]).collect();
        columns.sort_unstable();
        let schema: SchemaRef = Arc::new(schema.project(&columns)?);
        let expr = reassign_expr_columns(Arc::clone(expr), &schema)?;
        Ok(Self { columns, shown: expr.to_string(), schema, expr })
    }

    /// Builds a stage of a filter `expr` over `schema`, which has the columns at `columns` of the table.
    pub fn from_parts(columns: Vec<usize>, shown: String, schema: SchemaRef, expr: Arc<dyn PhysicalExpr>) -> Self {
        Self { columns, shown, schema, expr }
    }

    /// Returns which of `num_rows` rows pass. `arrays` are the columns [`columns`](Self::columns).
    pub(crate) fn evaluate(&self, arrays: Vec<ArrayRef>, num_rows: usize) -> Result<BooleanArray> {
        let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        passing(&self.expr, &batch)
    }

    /// Returns the compiled conjunction.
    pub fn expr(&self) -> &Arc<dyn PhysicalExpr> {
        &self.expr
    }
}

/// Drops table qualifiers, which a scan's own schema does not have.
pub(crate) fn unqualify(expr: Expr) -> Result<Expr> {
    use datafusion::common::tree_node::Transformed;
    let strip = |node| match node {
        Expr::Column(column) if column.relation.is_some() => {
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(column.name))))
        }
        other => Ok(Transformed::no(other)),
    };
    Ok(expr.transform(strip)?.data)
}

/// Returns the schema of the columns `projection`, for building batches.
pub(crate) fn project_schema(schema: &Schema, projection: &[usize]) -> Result<SchemaRef> {
    Ok(Arc::new(schema.project(projection)?))
}

/// Returns patterns of which `column` must match at least one in every row for which `filter` is
/// true. Returns `None` if nothing is known.
fn demands(filter: &Expr, column: &str) -> Option<Vec<TextPattern>> {
    let is_column = |expr: &Expr| matches!(strip_cast(expr), Expr::Column(c) if c.name == column);
    let patterns = match filter {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => either(demands(left, column), demands(right, column)),
            Operator::Or => {
                let mut left = demands(left, column)?;
                let right = demands(right, column)?;
                left.extend(right);
                Some(left)
            }
            Operator::Eq if is_column(left) => Some(vec![TextPattern::equals(&text(right)?)]),
            Operator::Eq if is_column(right) => Some(vec![TextPattern::equals(&text(left)?)]),
            Operator::RegexMatch if is_column(left) => Some(vec![regex_pattern(&text(right)?)?]),
            // They are not true for NULL, which a text without the literals gives.
            op if is_comparison(*op) => either(field_pattern(left, column), field_pattern(right, column)).map(one),
            _ => None,
        },
        Expr::InList(list) if !list.negated && is_column(&list.expr) => {
            let literals = list.list.iter().map(text).collect::<Option<Vec<_>>>()?;
            Some(literals.iter().map(|literal| TextPattern::equals(literal)).collect())
        }
        Expr::InList(list) => field_pattern(&list.expr, column).map(one),
        Expr::Between(between) => field_pattern(&between.expr, column).map(one),
        Expr::IsNotNull(inner) => field_pattern(inner, column).map(one),
        // The backslash is the only escape in Arrow's LIKE.
        Expr::Like(like) if !like.negated && !like.case_insensitive && is_column(&like.expr) => {
            Some(vec![TextPattern::like(&text(&like.pattern)?, Some('\\'))])
        }
        Expr::Like(like) => field_pattern(&like.expr, column).map(one),
        Expr::ScalarFunction(function) => {
            let args = &function.args;
            let literal = args.get(1).and_then(text).filter(|_| is_column(&args[0]))?;
            match (function.name(), args.len()) {
                ("contains" | "ends_with", 2) => Some(vec![TextPattern::contains(&literal)]),
                ("starts_with", 2) => Some(vec![TextPattern::starts_with(&literal)]),
                ("regexp_like", 2) => Some(vec![regex_pattern(&literal)?]),
                _ => None,
            }
        }
        _ => None,
    };
    patterns.map(|patterns| patterns.into_iter().map(cut_at_replacements).collect())
}

fn one(pattern: TextPattern) -> Vec<TextPattern> {
    vec![pattern]
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq, RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch)
}

/// Returns the literals that `column` has in order in every row for which `expr`, a call of `parse` or a field of
/// one, is not NULL.
fn field_pattern(expr: &Expr, column: &str) -> Option<TextPattern> {
    let call = match expr {
        Expr::Cast(cast) => return field_pattern(&cast.expr, column),
        Expr::TryCast(cast) => return field_pattern(&cast.expr, column),
        Expr::ScalarFunction(call) => call,
        _ => return None,
    };
    match (call.name(), call.args.as_slice()) {
        ("get_field", [inner, ..]) => field_pattern(inner, column),
        ("parse", [read, pattern]) if matches!(strip_cast(read), Expr::Column(c) if c.name == column) => {
            let compiled = compiled(Reader::Parse, &text(pattern)?).ok()?;
            let Compiled::Parse(pattern) = compiled.as_ref() else { return None };
            Some(TextPattern::from_fragments(pattern.literals()))
        }
        _ => None,
    }
}

fn either<T>(left: Option<T>, right: Option<T>) -> Option<T> {
    left.or(right)
}

fn cut_at_replacements(mut pattern: TextPattern) -> TextPattern {
    let parts = pattern.fragments.iter().flat_map(|fragment| fragment.split('\u{FFFD}'));
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).map(str::to_string).collect();
    if parts != pattern.fragments {
        pattern.fragments = parts;
        pattern.exact_len_bytes = None;
    }
    pattern
}

fn strip_cast(expr: &Expr) -> &Expr {
    use datafusion::arrow::datatypes::DataType::{LargeUtf8, Utf8, Utf8View};
    match expr {
        Expr::Cast(cast) if matches!(cast.field.data_type(), Utf8 | LargeUtf8 | Utf8View) => strip_cast(&cast.expr),
        other => other,
    }
}

fn text(expr: &Expr) -> Option<String> {
    match strip_cast(expr) {
        Expr::Literal(literal, _) => string_value(literal),
        _ => None,
    }
}

fn string_value(literal: &ScalarValue) -> Option<String> {
    literal.try_as_str().flatten().map(str::to_string)
}

/// Returns the literals that every match of `pattern` contains, in order.
fn regex_pattern(pattern: &str) -> Option<TextPattern> {
    let hir = regex_syntax::Parser::new().parse(pattern).ok()?;
    let mut literals = Vec::new();
    collect_literals(&hir, &mut literals);
    Some(TextPattern::from_fragments(literals))
}

fn collect_literals(hir: &Hir, literals: &mut Vec<String>) {
    match hir.kind() {
        HirKind::Literal(literal) => {
            if let Ok(text) = std::str::from_utf8(&literal.0) {
                literals.push(text.to_string());
            }
        }
        HirKind::Concat(parts) => parts.iter().for_each(|part| collect_literals(part, literals)),
        HirKind::Capture(capture) => collect_literals(&capture.sub, literals),
        HirKind::Repetition(repetition) if repetition.min > 0 => {
            collect_literals(&repetition.sub, literals);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::{col, lit};

    fn fragments(filter: Expr) -> Option<Vec<Vec<String>>> {
        Some(demands(&filter, "text")?.into_iter().map(|pattern| pattern.fragments).collect())
    }

    fn regex(pattern: &str) -> Option<Vec<Vec<String>>> {
        let filter =
            Expr::BinaryExpr(BinaryExpr::new(Box::new(col("text")), Operator::RegexMatch, Box::new(lit(pattern))));
        fragments(filter)
    }

    fn one(fragments: &[&str]) -> Option<Vec<Vec<String>>> {
        Some(vec![fragments.iter().map(|f| f.to_string()).collect()])
    }

    #[test]
    fn literals_are_cut_where_anything_may_stand() {
        assert_eq!(fragments(col("text").like(lit("%disk_full\\%%"))), one(&["disk", "full%"]));
        assert_eq!(fragments(col("text").eq(lit("a\u{FFFD}b"))), one(&["a", "b"]));
    }

    #[test]
    fn or_needs_both_sides_and_not_gives_nothing() {
        let either = col("text").like(lit("%a%")).or(col("text").like(lit("%b%")));
        assert_eq!(fragments(either), Some(vec![vec!["a".into()], vec!["b".into()]]));
        assert_eq!(fragments(col("text").like(lit("%a%")).or(col("path").eq(lit("p")))), None);
        assert_eq!(fragments(col("text").not_like(lit("%a%"))), None);
        assert_eq!(fragments(col("text").ilike(lit("%a%"))), None);
        assert_eq!(fragments(col("path").eq(lit("a"))), None);
    }

    #[test]
    fn regular_expressions_keep_what_every_match_holds() {
        assert_eq!(regex("disk (failure|error) on /dev/sd[a-z]"), one(&["disk ", " on /dev/sd"]));
        assert_eq!(regex("(abc)+x?"), one(&["abc"]));
        assert_eq!(regex("(?i)abc"), one(&[]));
        assert_eq!(regex("a|b"), one(&[]));
    }
}
