//! The parts of a filter, split by the data on which they are evaluated.
//!
//! ```text
//! l_quantity > 9 AND l_comment LIKE '%fox%' AND length(l_comment) > 20
//! └─ row filter ┘    └─ on codes ─────────┘     └─ on decoded rows ──┘
//!    ordinary columns only, first                  the rest, last
//! ```
//!
//! These conditions are evaluated on codes: `=`, `<>`, `IN`, `LIKE`, `starts_with`, `ends_with` and
//! `contains` of a GSST column with literals, their negations, and `OR`s of equalities. They have
//! the meaning of DataFusion's expressions: bytes are compared, `\` escapes in `LIKE`, and a null
//! row passes no condition, negated or not. DataFusion's expressions evaluate all other conditions.

use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::cast::as_boolean_array;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, LikeExpr, Literal, NotExpr};
use datafusion::physical_expr::utils::{collect_columns, conjunction_opt, reassign_expr_columns, split_conjunction};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::scalar::ScalarValue;

use gsst::Pattern;
use gsst::parquet::{CodePredicate, CodeTest, GsstFooter, RowFilter};

/// The parts of a filter on the fields of one file.
#[derive(Debug, Clone, Default)]
pub(super) struct Conditions {
    pub(super) row_filter: Option<RowFilter>,
    pub(super) code_predicates: Vec<CodePredicate>,
    /// Part that is evaluated on decoded rows.
    pub(super) rest: Option<Arc<dyn PhysicalExpr>>,
}

impl Conditions {
    /// Splits `predicate`. `footer` is that of the file, which is read with `schema`.
    pub(super) fn new(predicate: &Arc<dyn PhysicalExpr>, footer: &GsstFooter, schema: &SchemaRef) -> Result<Self> {
        let (mut row_filter, mut rest) = (Vec::new(), Vec::new());
        let mut code_predicates = Vec::new();
        let is_text = |field_idx: usize| footer.gsst().column_of_field(field_idx).is_some();
        for part in split_conjunction(predicate) {
            let columns = collect_columns(part);
            if !columns.iter().any(|column| is_text(column.index())) {
                row_filter.push(Arc::clone(part));
            } else if let Some(predicate) = code_predicate(part).filter(|predicate| is_text(predicate.field_idx)) {
                code_predicates.push(predicate);
            } else {
                rest.push(Arc::clone(part));
            }
        }
        let row_filter = conjunction_opt(row_filter).map(|filter| row_filter_of(&filter, schema));
        let rest = conjunction_opt(rest);
        Ok(Self { row_filter: row_filter.transpose()?, code_predicates, rest })
    }
}

/// Returns the parts of `filter` that are conditions on codes. `is_text` returns true for the index
/// of a GSST column.
pub(super) fn code_predicates(filter: &Arc<dyn PhysicalExpr>, is_text: impl Fn(usize) -> bool) -> Vec<CodePredicate> {
    let parts = split_conjunction(filter).into_iter().filter_map(code_predicate);
    parts.filter(|predicate| is_text(predicate.field_idx)).collect()
}

fn row_filter_of(filter: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<RowFilter> {
    let mut fields: Vec<usize> = collect_columns(filter).iter().map(|column| column.index()).collect();
    fields.sort_unstable();
    let filter = reassign_expr_columns(Arc::clone(filter), &schema.project(&fields)?)?;
    let test = move |batch: &RecordBatch| {
        evaluate(&filter, batch).map_err(|error| gsst::Error::external("evaluating a filter", error))
    };
    Ok(RowFilter { fields, test: Arc::new(test) })
}

/// Evaluates `filter` for the rows of `batch`. A row passes if its value is true; null does not
/// pass.
pub(super) fn evaluate(filter: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<BooleanArray> {
    let values = filter.evaluate(batch)?.into_array(batch.num_rows())?;
    Ok(as_boolean_array(&values)?.clone())
}

/// Returns `expr` as a condition on the codes of one column, or `None` if it is not such a
/// condition.
fn code_predicate(expr: &Arc<dyn PhysicalExpr>) -> Option<CodePredicate> {
    if let Some(not) = expr.downcast_ref::<NotExpr>() {
        let inner = code_predicate(not.arg())?;
        return Some(CodePredicate { is_negated: !inner.is_negated, ..inner });
    }
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return binary_predicate(binary);
    }
    if let Some(like) = expr.downcast_ref::<LikeExpr>() {
        let pattern = literal(like.pattern())?;
        let pattern = Pattern::like(std::str::from_utf8(&pattern).ok()?, Some('\\'));
        let column = column(like.expr()).filter(|_| !like.case_insensitive())?;
        return Some(predicate(column, CodeTest::Like(pattern), like.negated()));
    }
    if let Some(list) = expr.downcast_ref::<InListExpr>() {
        let texts = list.list().iter().map(literal).collect::<Option<Vec<_>>>()?;
        return Some(predicate(column(list.expr())?, CodeTest::IsIn(texts), list.negated()));
    }
    let function = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let [text, argument] = function.args() else { return None };
    let (column, argument) = (column(text)?, literal(argument)?);
    let pattern = match function.name() {
        "starts_with" => Pattern::starts_with(&argument),
        "contains" => Pattern::contains(&argument),
        "ends_with" => Pattern::ends_with(&argument),
        _ => return None,
    };
    Some(predicate(column, CodeTest::Like(pattern), false))
}

fn binary_predicate(binary: &BinaryExpr) -> Option<CodePredicate> {
    let equality = |is_negated| {
        let (column, text) = match column(binary.left()) {
            Some(column) => (column, literal(binary.right())?),
            None => (column(binary.right())?, literal(binary.left())?),
        };
        Some(predicate(column, CodeTest::IsIn(vec![text]), is_negated))
    };
    match binary.op() {
        Operator::Eq => equality(false),
        Operator::NotEq => equality(true),
        Operator::Or => {
            let (one, two) = (code_predicate(binary.left())?, code_predicate(binary.right())?);
            let is_same = one.field_idx == two.field_idx && !one.is_negated && !two.is_negated;
            match (one.test, two.test) {
                (CodeTest::IsIn(mut texts), CodeTest::IsIn(others)) if is_same => {
                    texts.extend(others);
                    let (field_idx, test) = (one.field_idx, CodeTest::IsIn(texts));
                    Some(CodePredicate { field_idx, test, is_negated: false })
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn predicate(column: &Column, test: CodeTest, is_negated: bool) -> CodePredicate {
    CodePredicate { field_idx: column.index(), test, is_negated }
}

fn column(expr: &Arc<dyn PhysicalExpr>) -> Option<&Column> {
    expr.downcast_ref::<Column>()
}

/// Returns the bytes of a literal, or `None` if it is null or not text.
fn literal(expr: &Arc<dyn PhysicalExpr>) -> Option<Vec<u8>> {
    match expr.downcast_ref::<Literal>()?.value() {
        ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text) => {
            text.as_ref().map(|text| text.clone().into_bytes())
        }
        ScalarValue::Binary(bytes) | ScalarValue::LargeBinary(bytes) | ScalarValue::BinaryView(bytes) => bytes.clone(),
        _ => None,
    }
}
