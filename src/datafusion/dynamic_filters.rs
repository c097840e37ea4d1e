//! Conditions of scans, some of which joins above compute while they run.
//!
//! ```text
//! x IN (SELECT 0.0 …)     the join of them: x in (0.0)       a row with x = -0.0 passes
//! ```
//!
//! SQL knows one zero. A join looks for a float in its set by the bits, and DataFusion (55.2) gives scans this set as a
//! filter without a look at the sign. So a row with a zero passes such a filter if it does with either sign; the join
//! looks at the row again. Other conditions see the zeros as they are.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::kernels::numeric::neg;
use datafusion::arrow::compute::{and_kleene, or_kleene};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::utils::normalize_float_zero;
use datafusion::error::Result;
use datafusion::physical_expr::DynamicFilterTracking;
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_plan::PhysicalExpr;

/// Evaluates `filter` for the rows of `batch`. A row passes if its value is true; null does not pass.
///
/// # Errors
/// The errors of the expression.
pub(crate) fn passing(filter: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<BooleanArray> {
    if !is_dynamic(filter) || !batch.columns().iter().any(has_zero) {
        return evaluate(filter, batch);
    }
    let with_plus = with_columns(batch, |column| Ok(normalize_float_zero(column)))?;
    let with_minus = with_columns(&with_plus, with_minus)?;
    let mut passing: Option<BooleanArray> = None;
    for part in split_conjunction(filter) {
        let passes = if is_dynamic(part) {
            or_kleene(&evaluate(part, &with_plus)?, &evaluate(part, &with_minus)?)?
        } else {
            evaluate(part, batch)?
        };
        passing = Some(match passing {
            Some(passing) => and_kleene(&passing, &passes)?,
            None => passes,
        });
    }
    passing.map_or_else(|| evaluate(filter, batch), Ok)
}

fn evaluate(filter: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<BooleanArray> {
    let values = filter.evaluate(batch)?.into_array(batch.num_rows())?;
    Ok(as_boolean_array(&values)?.clone())
}

fn is_dynamic(filter: &Arc<dyn PhysicalExpr>) -> bool {
    DynamicFilterTracking::classify(filter).contains_dynamic_filter()
}

fn has_zero(column: &ArrayRef) -> bool {
    match column.data_type() {
        DataType::Float64 => column.as_primitive::<Float64Type>().values().contains(&0.0),
        DataType::Float32 => column.as_primitive::<Float32Type>().values().contains(&0.0),
        _ => false,
    }
}

fn with_columns(batch: &RecordBatch, change: impl Fn(&ArrayRef) -> Result<ArrayRef>) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(change).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
}

/// Returns `column`, whose zeros have no sign, with a minus before them.
fn with_minus(column: &ArrayRef) -> Result<ArrayRef> {
    if has_zero(column) { Ok(neg(&normalize_float_zero(&neg(column)?))?) } else { Ok(Arc::clone(column)) }
}
