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
//!
//! Row groups that a filter rules out need only the footer. DataFusion rewrites the filter to one on the
//! smallest and largest values. For ordinary columns these are Parquet's statistics. For GSST columns they
//! come from the index, and are about decoded text.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common;
use datafusion::common::pruning::PruningStatistics;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use datafusion::parquet::file::metadata::RowGroupMetaData;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, LikeExpr, Literal, NotExpr};
use datafusion::physical_expr::utils::{collect_columns, conjunction_opt, reassign_expr_columns, split_conjunction};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::metrics::Count;
use datafusion::scalar::ScalarValue;

use super::footers::bound_value;
use crate::dynamic_filters::passing;
use gsst::Pattern;
use gsst::parquet::{Bound, CodePredicate, CodeTest, GsstFooter, RowFilter, TextStatistics};

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
        let mut row_filter = Vec::new();
        let mut rest = Vec::new();
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

/// Returns true if all parts of `filter` are conditions on the codes of the column `field_idx`.
pub(super) fn are_on_codes_of(field_idx: usize, filter: &Arc<dyn PhysicalExpr>) -> bool {
    let predicates = code_predicates(filter, |idx| idx == field_idx);
    predicates.len() == split_conjunction(filter).len()
}

fn row_filter_of(filter: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<RowFilter> {
    let mut fields: Vec<usize> = collect_columns(filter).iter().map(|column| column.index()).collect();
    fields.sort_unstable();
    let filter = reassign_expr_columns(Arc::clone(filter), &schema.project(&fields)?)?;
    let test = move |batch: &RecordBatch| {
        passing(&filter, batch).map_err(|error| gsst::Error::external("evaluating a filter", error))
    };
    Ok(RowFilter { fields, test: Arc::new(test) })
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
    let column = column(text)?;
    let argument = literal(argument)?;
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
            let one = code_predicate(binary.left())?;
            let two = code_predicate(binary.right())?;
            let is_same = one.field_idx == two.field_idx && !one.is_negated && !two.is_negated;
            match (one.test, two.test) {
                (CodeTest::IsIn(mut texts), CodeTest::IsIn(others)) if is_same => {
                    texts.extend(others);
                    let field_idx = one.field_idx;
                    let test = CodeTest::IsIn(texts);
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

/// Returns those of `row_groups` that may have rows that meet `predicate`. The predicate refers to
/// the columns of `schema`.
pub(super) fn possible_row_groups(
    footer: &GsstFooter,
    schema: &SchemaRef,
    predicate: &Arc<dyn PhysicalExpr>,
    row_groups: Vec<usize>,
    errors: &Count,
) -> Result<Vec<usize>> {
    let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(schema));
    let Some(pruning) = builder.with_error_counter(errors).build(Arc::clone(predicate)) else {
        return Ok(row_groups);
    };
    let statistics = RowGroupStatistics { footer, schema, row_groups: &row_groups };
    let is_possible = pruning.prune(&statistics)?;
    Ok(row_groups.iter().zip(is_possible).filter(|(_, keep)| *keep).map(|(i, _)| *i).collect())
}

/// Statistics of some row groups.
struct RowGroupStatistics<'a> {
    footer: &'a GsstFooter,
    schema: &'a SchemaRef,
    row_groups: &'a [usize],
}

impl RowGroupStatistics<'_> {
    /// Returns the statistics of a GSST column for each row group, and its type. `None` for an
    /// ordinary column.
    fn text(&self, column: &common::Column) -> Option<(Vec<TextStatistics>, &DataType)> {
        let (field_idx, field) = self.schema.column_with_name(&column.name)?;
        let column_idx = self.footer.gsst().column_of_field(field_idx)?;
        let of = |i: &usize| self.footer.gsst().statistics(*i, column_idx).unwrap_or_default();
        Some((self.row_groups.iter().map(of).collect(), field.data_type()))
    }

    fn text_bounds(
        &self,
        column: &common::Column,
        bound_of: impl Fn(&TextStatistics) -> &Option<Bound>,
    ) -> Option<ArrayRef> {
        let (statistics, data_type) = self.text(column)?;
        let none = ScalarValue::try_from(data_type).ok()?;
        let bounds = statistics.iter().map(|of| {
            let bound = bound_of(of).as_ref().and_then(|bound| bound_value(bound, data_type));
            bound.unwrap_or_else(|| none.clone())
        });
        ScalarValue::iter_to_array(bounds).ok()
    }

    fn converter(&self, column: &common::Column) -> Option<StatisticsConverter<'_>> {
        let parquet_schema = self.footer.parquet().file_metadata().schema_descr();
        StatisticsConverter::try_new(&column.name, self.schema, parquet_schema).ok()
    }

    fn metadata(&self) -> impl Iterator<Item = &RowGroupMetaData> {
        self.row_groups.iter().map(|i| self.footer.parquet().row_group(*i))
    }
}

impl PruningStatistics for RowGroupStatistics<'_> {
    fn min_values(&self, column: &common::Column) -> Option<ArrayRef> {
        match self.text(column) {
            Some(_) => self.text_bounds(column, |text| &text.min),
            None => self.converter(column)?.row_group_mins(self.metadata()).ok(),
        }
    }

    fn max_values(&self, column: &common::Column) -> Option<ArrayRef> {
        match self.text(column) {
            Some(_) => self.text_bounds(column, |text| &text.max),
            None => self.converter(column)?.row_group_maxes(self.metadata()).ok(),
        }
    }

    fn num_containers(&self) -> usize {
        self.row_groups.len()
    }

    fn null_counts(&self, column: &common::Column) -> Option<ArrayRef> {
        match self.text(column) {
            Some((text, _)) => {
                let counts = text.iter().map(|text| text.num_nulls as u64);
                Some(Arc::new(UInt64Array::from_iter_values(counts)))
            }
            None => Some(Arc::new(self.converter(column)?.row_group_null_counts(self.metadata()).ok()?)),
        }
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let counts = self.metadata().map(|row_group| row_group.num_rows() as u64);
        Some(Arc::new(UInt64Array::from_iter_values(counts)))
    }

    fn contained(&self, _: &common::Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
