//! Values of Arrow as SQL: the parameters of prepared statements.
//!
//! ```text
//! 12.50, Decimal128(38, 2)     arrow_cast('12.50', 'Decimal128(38, 2)')
//! 1 ms, Timestamp(ms, "UTC")   arrow_cast(1, 'Timestamp(ms, "UTC")')
//! [1.5, NULL], List(Float32)   arrow_cast([arrow_cast('1.5', 'Float32'), …], 'List(Float32)')
//! 'be', 7, true, NULL          as they are, because table functions take literals only
//! ```
//!
//! The literals of SQL have few types: a decimal is a float there, and a moment has nanoseconds. So all
//! other values are cast to their type, and keep their digits. O(bytes of the value).

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::functions::expr_fn::{arrow_cast, named_struct};
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::{Expr, lit};

/// Most lists and structs in each other that a value may have.
const MAX_DEPTH: usize = 16;

/// Returns row `row` of `column` as an expression of literals.
///
/// # Errors
/// A plan error for a type that has no form in SQL, and for lists that are too deep in each other.
pub fn literal(column: &ArrayRef, row: usize) -> Result<Expr> {
    nested(column, row, MAX_DEPTH)
}

fn nested(column: &ArrayRef, row: usize, depth: usize) -> Result<Expr> {
    use DataType::{
        Date64, Decimal32, Decimal64, Decimal128, Decimal256, Dictionary, Duration, FixedSizeList,
        Float16, Float32, LargeList, LargeListView, List, ListView, Struct, Time32, Time64,
        Timestamp,
    };
    let data_type = column.data_type();
    let typed = |value: Expr| arrow_cast(value, lit(data_type.to_string()));
    let Some(below) = depth.checked_sub(1) else {
        return plan_err!("a parameter has more than {MAX_DEPTH} lists in each other");
    };
    let is_null = column.is_null(row);
    match data_type {
        Dictionary(_, values) => nested(&cast(&column.slice(row, 1), values)?, 0, depth),
        Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) | Float16 | Float32
            if !is_null =>
        {
            let format = FormatOptions::default();
            Ok(typed(lit(ArrayFormatter::try_new(column, &format)?.value(row).to_string())))
        }
        Time32(_) if !is_null => {
            let number = cast(&column.slice(row, 1), &DataType::Int32)?;
            let number = number.as_primitive::<Int32Type>().value(0);
            Ok(typed(arrow_cast(lit(number), lit("Int32"))))
        }
        Timestamp(..) | Time64(_) | Date64 | Duration(_) if !is_null => {
            let number = cast(&column.slice(row, 1), &DataType::Int64)?;
            Ok(typed(lit(number.as_primitive::<Int64Type>().value(0))))
        }
        List(item)
        | LargeList(item)
        | FixedSizeList(item, _)
        | ListView(item)
        | LargeListView(item)
            if !is_null =>
        {
            let items = cast(&column.slice(row, 1), &LargeList(item.clone()))?;
            let items = items.as_list::<i64>().value(0);
            let items: Result<Vec<Expr>> =
                (0..items.len()).map(|at| nested(&items, at, below)).collect();
            Ok(typed(make_array(items?)))
        }
        Struct(fields) if !is_null => {
            let columns = column.as_struct().columns();
            let fields = fields.iter().zip(columns).map(|(field, column)| {
                Ok([lit(field.name().as_str()), nested(column, row, below)?])
            });
            Ok(named_struct(fields.collect::<Result<Vec<_>>>()?.concat()))
        }
        data_type if is_null && !is_plain(data_type) => Ok(typed(lit(ScalarValue::Null))),
        data_type if is_plain(data_type) => {
            Ok(Expr::Literal(ScalarValue::try_from_array(column, row)?, None))
        }
        other => plan_err!("a parameter of the type {other}, which has no form in SQL"),
    }
}

/// Returns true for types whose values are literals of SQL.
fn is_plain(data_type: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, FixedSizeBinary, Float64, Interval, LargeBinary,
        LargeUtf8, Null, Utf8, Utf8View,
    };
    data_type.is_integer()
        || matches!(
            data_type,
            Null | Boolean
                | Float64
                | Utf8
                | LargeUtf8
                | Utf8View
                | Binary
                | LargeBinary
                | BinaryView
                | FixedSizeBinary(_)
                | Date32
                | Interval(_)
        )
}
