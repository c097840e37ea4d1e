//! Values between clients and statements: rows to clients, and values of parameters from them.
//!
//! A view array holds whole buffers of text, of which its rows may show little. Arrow's IPC would send the buffers with
//! each batch, and not all clients know views. So `Utf8View` becomes `Utf8`, and `BinaryView` becomes `Binary`, also
//! inside lists and structs, in pieces of bounded size. All columns are nullable, because clients compare the schema of
//! the rows with the schema of the plan, and the two may differ in this. The page and agents get [`Values`] in JSON.
//!
//! | client | values of parameters | names |
//! | --- | --- | --- |
//! | Flight SQL | a row of Arrow | `$1`, `?` and `$name`, in their order |
//! | HTTP | an object | `$name` |
//! | HTTP | a list | `$1` and `?` |
//!
//! A value becomes a literal of the parsed statement. It is never a part of its text, so no value changes a statement:
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

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    BinaryViewType, DataType, Field, FieldRef, Int32Type, Int64Type, Schema, SchemaRef, StringViewType,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::{LineDelimited, WriterBuilder};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::functions::expr_fn::{arrow_cast, named_struct};
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::{Expr, lit};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use datafusion::sql::unparser::expr_to_sql;
use serde_json::Value;
use tadoc_session::{Parameters, parameter_names};

use crate::refusal::{Kind, Refusal};

/// Bytes of texts of a piece, unless one row has more.
const PIECE_BYTES: usize = 2 << 20;

/// Returns the schema of rows on the wire.
pub fn schema(schema: &Schema) -> SchemaRef {
    let field = |field: &FieldRef| {
        let plain = Field::new(field.name(), data_type(field.data_type()), true);
        plain.with_metadata(field.metadata().clone())
    };
    let fields: Vec<Field> = schema.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Returns the type of a column on the wire.
fn data_type(of: &DataType) -> DataType {
    let field = |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(data_type(field.data_type())));
    match of {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) | DataType::ListView(item) => DataType::List(field(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, len) => DataType::FixedSizeList(field(item), *len),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        DataType::Dictionary(_, value) => data_type(value),
        other => other.clone(),
    }
}

/// Returns the rows of `batch` as batches of `schema`, which is [`schema`] of the plan.
///
/// # Errors
/// The columns have not the types of the plan, or one text has 2 GiB.
pub fn pieces(batch: &RecordBatch, schema: &SchemaRef) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> {
    let mut rest = vec![batch.clone()];
    std::iter::from_fn(move || {
        let mut piece = rest.pop()?;
        while piece.num_rows() > 1 && text_bytes(&piece) > PIECE_BYTES {
            let half = piece.num_rows() / 2;
            rest.push(piece.slice(half, piece.num_rows() - half));
            piece = piece.slice(0, half);
        }
        Some(plain(&piece, schema))
    })
}

fn plain(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast(column, field.data_type()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// Returns the bytes of the texts that the views of `batch` show.
fn text_bytes(batch: &RecordBatch) -> usize {
    let column_bytes = |column: &Arc<dyn Array>| {
        let views = match column.data_type() {
            DataType::Utf8View => column.as_byte_view::<StringViewType>().views(),
            DataType::BinaryView => column.as_byte_view::<BinaryViewType>().views(),
            _ => return 0,
        };
        // The low 32 bits of a view are its length.
        views.iter().map(|&view| (view & u128::from(u32::MAX)) as usize).sum::<usize>()
    };
    batch.columns().iter().map(column_bytes).sum()
}

/// Most lists and structs in each other that a value may have.
const MAX_DEPTH: usize = 16;

/// Returns row `row` of `column` as an expression of literals.
///
/// # Errors
/// A plan error for a type that has no form in SQL, and for lists that are too deep in each other.
fn literal(column: &ArrayRef, row: usize) -> Result<Expr> {
    nested(column, row, MAX_DEPTH)
}

fn nested(column: &ArrayRef, row: usize, depth: usize) -> Result<Expr> {
    use DataType::{
        Date64, Decimal32, Decimal64, Decimal128, Decimal256, Dictionary, Duration, FixedSizeList, Float16, Float32,
        LargeList, LargeListView, List, ListView, Struct, Time32, Time64, Timestamp,
    };
    let data_type = column.data_type();
    let typed = |value: Expr| arrow_cast(value, lit(data_type.to_string()));
    let Some(below) = depth.checked_sub(1) else {
        return plan_err!("a parameter has more than {MAX_DEPTH} lists in each other");
    };
    let is_null = column.is_null(row);
    match data_type {
        Dictionary(_, values) => nested(&cast(&column.slice(row, 1), values)?, 0, depth),
        Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) | Float16 | Float32 if !is_null => {
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
        List(item) | LargeList(item) | FixedSizeList(item, _) | ListView(item) | LargeListView(item) if !is_null => {
            let items = cast(&column.slice(row, 1), &LargeList(item.clone()))?;
            let items = items.as_list::<i64>().value(0);
            let items: Result<Vec<Expr>> = (0..items.len()).map(|at| nested(&items, at, below)).collect();
            Ok(typed(make_array(items?)))
        }
        Struct(fields) if !is_null => {
            let columns = column.as_struct().columns();
            let fields = fields
                .iter()
                .zip(columns)
                .map(|(field, column)| Ok([lit(field.name().as_str()), nested(column, row, below)?]));
            Ok(named_struct(fields.collect::<Result<Vec<_>>>()?.concat()))
        }
        data_type if is_null && !is_plain(data_type) => Ok(typed(lit(ScalarValue::Null))),
        data_type if is_plain(data_type) => Ok(Expr::Literal(ScalarValue::try_from_array(column, row)?, None)),
        other => plan_err!("a parameter of the type {other}, which has no form in SQL"),
    }
}

/// Returns true for types whose values are literals of SQL.
fn is_plain(data_type: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, FixedSizeBinary, Float64, Interval, LargeBinary, LargeUtf8, Null, Utf8,
        Utf8View,
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

/// Bytes before each value in a line.
const BEFORE: &[u8] = b"{\"v\":";

/// The values of a column.
pub struct Values {
    lines: Vec<u8>,
    /// Begin of each line, and the end of the last one.
    starts: Vec<usize>,
}

impl Values {
    /// Writes the values of `column`. O(bytes of the text).
    ///
    /// # Errors
    /// The type of the column has no form in JSON.
    pub fn new(column: &ArrayRef) -> Result<Self, ArrowError> {
        let field = Field::new("v", column.data_type().clone(), true);
        let schema = Arc::new(Schema::new(vec![field]));
        let builder = WriterBuilder::new().with_explicit_nulls(true);
        let mut writer = builder.build::<_, LineDelimited>(Vec::new());
        writer.write(&RecordBatch::try_new(schema, vec![Arc::clone(column)])?)?;
        writer.finish()?;
        let lines = writer.into_inner();
        let ends = lines.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(ends).collect();
        Ok(Self { lines, starts })
    }

    /// Returns the value of row `row` as JSON.
    pub fn value(&self, row: usize) -> &[u8] {
        let line = match (self.starts.get(row), self.starts.get(row + 1)) {
            (Some(&start), Some(&end)) => &self.lines[start..end],
            _ => &[],
        };
        let value = line.strip_prefix(BEFORE).and_then(|line| line.strip_suffix(b"}\n"));
        value.unwrap_or(b"null")
    }
}

/// Values for the parameters of a statement.
#[derive(Debug, Clone, Default)]
pub enum Given {
    /// No values.
    #[default]
    Nothing,
    /// One row, in the order of the names.
    Row(RecordBatch),
    /// Literals by name.
    Named(BTreeMap<String, ast::Expr>),
}

impl Given {
    /// Takes `texts` for `$1`, `$2` and so on.
    ///
    /// # Errors
    /// A text has no form in SQL.
    pub fn from_texts(texts: &[String]) -> Result<Self, Refusal> {
        let mut literals = BTreeMap::new();
        for (at, text) in texts.iter().enumerate() {
            literals.insert((at + 1).to_string(), expr_to_sql(&lit(text.as_str()))?);
        }
        Ok(Self::Named(literals))
    }

    /// Reads values by name, or in a list for `$1`, `$2` and so on. Null stands for no values.
    ///
    /// # Errors
    /// A value is a list or an object.
    pub fn from_json(given: &Value) -> Result<Self, Refusal> {
        let named: Vec<(String, &Value)> = match given {
            Value::Null => return Ok(Self::Nothing),
            Value::Object(values) => values.iter().map(|(name, value)| (name.clone(), value)).collect(),
            Value::Array(values) => {
                values.iter().enumerate().map(|(at, value)| ((at + 1).to_string(), value)).collect()
            }
            _ => return Err(Refusal::new(Kind::Invalid, "parameters: expected an object, or a list")),
        };
        let literals = named.into_iter().map(|(name, value)| {
            let literal = expr_to_sql(&literal_from_json(&name, value)?)?;
            Ok((name, literal))
        });
        literals.collect::<Result<_, Refusal>>().map(Self::Named)
    }

    /// Returns the literals, by the names of the parameters of `statement`.
    ///
    /// # Errors
    /// A row has not one value for each parameter.
    pub fn bound(&self, statement: &mut Statement) -> Result<Parameters, Refusal> {
        let values = match self {
            Self::Nothing => return Ok(Parameters::default()),
            Self::Named(literals) => return Ok(Parameters::new(literals.clone())),
            Self::Row(values) => values,
        };
        let names = parameter_names(statement);
        if values.num_rows() != 1 || values.num_columns() != names.len() {
            let text = format!(
                "expected one row with {} values, one for each parameter, got {} rows with {}",
                names.len(),
                values.num_rows(),
                values.num_columns()
            );
            return Err(Refusal::new(Kind::Invalid, text));
        }
        let mut literals = BTreeMap::new();
        for (name, column) in names.into_iter().zip(values.columns()) {
            literals.insert(name, expr_to_sql(&literal(column, 0)?)?);
        }
        Ok(Parameters::new(literals))
    }
}

fn literal_from_json(name: &str, value: &Value) -> Result<Expr, Refusal> {
    match value {
        Value::Null => Ok(lit(ScalarValue::Null)),
        Value::Bool(value) => Ok(lit(*value)),
        Value::String(value) => Ok(lit(value.as_str())),
        Value::Number(value) => match (value.as_i64(), value.as_u64(), value.as_f64()) {
            (Some(value), _, _) => Ok(lit(value)),
            (None, Some(value), _) => Ok(lit(value)),
            (None, None, Some(value)) => Ok(lit(value)),
            (None, None, None) => Err(Refusal::new(Kind::Invalid, format!("parameters: {name} is no number of SQL"))),
        },
        Value::Array(_) | Value::Object(_) => {
            let text =
                format!("parameters: {name} is a list or an object, expected a text, number, true, false or null");
            Err(Refusal::new(Kind::Invalid, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{
        ArrayRef, Int64Array, ListBuilder, StringArray, StringViewArray, StringViewBuilder,
    };
    use datafusion::arrow::compute::concat_batches;

    #[test]
    fn texts_are_plain_and_pieces_are_small() {
        let texts: Vec<Option<String>> = (0..100).map(|n| (n % 7 != 0).then(|| "x".repeat(n * 4000))).collect();
        let mut lists = ListBuilder::new(StringViewBuilder::new());
        for n in 0..100 {
            lists.append_value([Some(format!("word number {n}")), None]);
        }
        let texts = texts.iter().map(Option::as_deref);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("text", Arc::new(texts.clone().collect::<StringViewArray>())),
            ("n", Arc::new(Int64Array::from_iter_values(0..100))),
            ("words", Arc::new(lists.finish())),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let wire = schema(&batch.schema());
        assert_eq!(wire.field(0).data_type(), &DataType::Utf8);
        assert!(wire.field(2).data_type().to_string().contains("Utf8"));
        let parts: Vec<RecordBatch> = pieces(&batch, &wire).collect::<Result<_, _>>().unwrap();
        assert!(parts.len() > 8);
        for part in &parts {
            let text: &StringArray = part.column(0).as_string();
            assert!(part.num_rows() == 1 || text.value_data().len() <= PIECE_BYTES);
        }
        let whole = concat_batches(&wire, &parts).unwrap();
        assert_eq!(whole.column(0).as_string::<i32>(), &texts.collect::<StringArray>());
        assert_eq!(whole.column(1), batch.column(1));
    }

    #[test]
    fn rows_without_columns_keep_their_number() {
        let options = RecordBatchOptions::new().with_row_count(Some(5));
        let empty = Arc::new(Schema::empty());
        let batch = RecordBatch::try_new_with_options(empty.clone(), vec![], &options).unwrap();
        let parts: Vec<RecordBatch> = pieces(&batch, &schema(&empty)).collect::<Result<_, _>>().unwrap();
        assert_eq!(parts.iter().map(RecordBatch::num_rows).sum::<usize>(), 5);
    }

    #[test]
    fn each_row_has_a_value() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a\nb"), None, Some("\"}")]));
        let texts = Values::new(&texts).unwrap();
        assert_eq!(texts.value(0), br#""a\nb""#);
        assert_eq!((texts.value(1), texts.value(3)), (b"null".as_slice(), b"null".as_slice()));
        assert_eq!(texts.value(2), br#""\"}""#);
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX]));
        assert_eq!(Values::new(&numbers).unwrap().value(0), b"9223372036854775807");
    }
}
