//! Row groups that a filter rules out. Only the footer is read.
//!
//! DataFusion rewrites a predicate to one on the smallest and largest values. For ordinary columns
//! these are Parquet's statistics. For GSST columns they come from the index, and are about decoded
//! text.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Column;
use datafusion::common::pruning::PruningStatistics;
use datafusion::error::Result;
use datafusion::parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use datafusion::parquet::file::metadata::RowGroupMetaData;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::metrics::Count;
use datafusion::scalar::ScalarValue;

use super::footers::bound_value;
use gsst::parquet::{Bound, GsstFooter, TextStatistics};

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
    fn text(&self, column: &Column) -> Option<(Vec<TextStatistics>, &DataType)> {
        let (field_idx, field) = self.schema.column_with_name(&column.name)?;
        let column_idx = self.footer.gsst().column_of_field(field_idx)?;
        let of = |i: &usize| self.footer.gsst().statistics(*i, column_idx).unwrap_or_default();
        Some((self.row_groups.iter().map(of).collect(), field.data_type()))
    }

    fn text_bounds(&self, column: &Column, bound_of: impl Fn(&TextStatistics) -> &Option<Bound>) -> Option<ArrayRef> {
        let (statistics, data_type) = self.text(column)?;
        let none = ScalarValue::try_from(data_type).ok()?;
        let bounds = statistics.iter().map(|of| {
            let bound = bound_of(of).as_ref().and_then(|bound| bound_value(bound, data_type));
            bound.unwrap_or_else(|| none.clone())
        });
        ScalarValue::iter_to_array(bounds).ok()
    }

    fn converter(&self, column: &Column) -> Option<StatisticsConverter<'_>> {
        let parquet_schema = self.footer.parquet().file_metadata().schema_descr();
        StatisticsConverter::try_new(&column.name, self.schema, parquet_schema).ok()
    }

    fn metadata(&self) -> impl Iterator<Item = &RowGroupMetaData> {
        self.row_groups.iter().map(|i| self.footer.parquet().row_group(*i))
    }
}

impl PruningStatistics for RowGroupStatistics<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        match self.text(column) {
            Some(_) => self.text_bounds(column, |text| &text.min),
            None => self.converter(column)?.row_group_mins(self.metadata()).ok(),
        }
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        match self.text(column) {
            Some(_) => self.text_bounds(column, |text| &text.max),
            None => self.converter(column)?.row_group_maxes(self.metadata()).ok(),
        }
    }

    fn num_containers(&self) -> usize {
        self.row_groups.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
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

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
