//! User columns of several files as columns of one file, for `tadoc ingest` and recompression.
//!
//! Columns are matched by name. [`join_schemas`] finds their common types, and [`conform`] casts values to them.
//! [`merge_columns`] does both for the files of a living corpus, including the values that edits set.
//!
//! ```
//! use std::sync::Arc;
//!
//! use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
//! use datafusion::arrow::datatypes::{DataType, Field, Schema};
//! use datafusion_tadoc::user_columns::{conform, join_schemas};
//!
//! // One file has numbers, the other one has text.
//! let schema = |data_type| Schema::new(vec![Field::new("year", data_type, true)]);
//! let joined = join_schemas(&schema(DataType::Int64), &schema(DataType::Utf8))?;
//! assert_eq!(joined, schema(DataType::Utf8));
//!
//! let numbers: ArrayRef = Arc::new(Int64Array::from(vec![2024]));
//! let texts = conform(&numbers, joined.field(0).data_type())?;
//! assert_eq!(texts.as_string::<i32>().value(0), "2024");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Null combines with every type. Integers and floats widen, decimals too if they have the same number of decimals.
//! Other scalars become text, so that `1.10` beside `1.9` stays what it is. Lists and structs combine recursively. A
//! scalar and a list (or struct) have no common type, but for rows that are read ([`join_rows`]), whose lists and
//! structs become texts of JSON. Limit: an integer above 2^53 is rounded beside floats.

mod merge;

pub use merge::merge_columns;
pub(crate) use merge::{Overlay, check_tables, table_schema};

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, ListArray, StringArray, StringBuilder, StructArray, new_null_array,
};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::{Encoder, EncoderFactory, EncoderOptions, NullableEncoder, make_encoder};
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;

/// Returns the Parquet properties with which user columns are written.
///
/// # Errors
/// Errors of the Parquet library only.
pub fn parquet_properties() -> Result<WriterProperties, ParquetError> {
    let level = ZstdLevel::try_new(3)?;
    Ok(WriterProperties::builder().set_compression(Compression::ZSTD(level)).build())
}

/// Returns the columns of both schemas, matched by name, in order of first appearance.
///
/// # Errors
/// A message that names the column whose types have no common type.
pub fn join_schemas(left: &Schema, right: &Schema) -> Result<Schema, String> {
    Ok(Schema::new(join_fields(left.fields(), right.fields(), &join_types)?))
}

/// Returns the columns of both schemas, as [`join_schemas`] does, with texts where a scalar, a list and a struct meet.
pub fn join_rows(left: &Schema, right: &Schema) -> Schema {
    let joined = join_fields(left.fields(), right.fields(), &|left, right| Some(join_types_of_rows(left, right)));
    joined.map_or_else(|_| left.clone(), Schema::new)
}

fn join_types_of_rows(left: &DataType, right: &DataType) -> DataType {
    let join = |left: &DataType, right: &DataType| Some(join_types_of_rows(left, right));
    join_with(left, right, &join).unwrap_or(DataType::Utf8)
}

/// A function that returns the type that values of both types fit.
type Join<'a> = &'a dyn Fn(&DataType, &DataType) -> Option<DataType>;

fn join_fields(left: &Fields, right: &Fields, join: Join<'_>) -> Result<Vec<Field>, String> {
    let mut joined: Vec<Field> = left.iter().map(|field| field.as_ref().clone()).collect();
    for field in right {
        match joined.iter_mut().find(|known| known.name() == field.name()) {
            Some(known) => {
                let data_type = join(known.data_type(), field.data_type()).ok_or_else(|| {
                    format!("column `{}` is {} first and {} later", field.name(), known.data_type(), field.data_type())
                })?;
                *known = Field::new(field.name(), data_type, true);
            }
            None => joined.push(Field::new(field.name(), field.data_type().clone(), true)),
        }
    }
    Ok(joined)
}

/// Returns the type that values of both types fit, or `None` for a scalar and a list or struct.
pub(crate) fn join_types(left: &DataType, right: &DataType) -> Option<DataType> {
    join_with(left, right, &join_types)
}

/// Joins types whose parts `join` joins.
fn join_with(left: &DataType, right: &DataType, join: Join<'_>) -> Option<DataType> {
    match (left, right) {
        _ if left == right => Some(left.clone()),
        (DataType::Null, other) | (other, DataType::Null) => Some(other.clone()),
        (DataType::Struct(left), DataType::Struct(right)) => {
            Some(DataType::Struct(join_fields(left, right, join).ok()?.into()))
        }
        (DataType::List(left), DataType::List(right)) => {
            let item = join(left.data_type(), right.data_type())?;
            Some(DataType::List(Arc::new(Field::new(left.name(), item, true))))
        }
        _ if is_nested(left) || is_nested(right) => None,
        _ if is_bytes(left) && is_bytes(right) => Some(DataType::BinaryView),
        (DataType::Decimal128(left, scale), DataType::Decimal128(right, other)) if scale == other => {
            Some(DataType::Decimal128(*left.max(right), *scale))
        }
        _ if left.is_decimal() || right.is_decimal() => Some(DataType::Utf8),
        _ if left.is_numeric() && right.is_numeric() => {
            type_union_resolution(&[left.clone(), right.clone()]).or(Some(DataType::Utf8))
        }
        _ => Some(DataType::Utf8),
    }
}

/// Returns the type in which values of `data_type` are stored; `None` for structs without fields,
/// which hold no values and which Parquet does not support.
pub fn storable(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Null => Some(DataType::Utf8),
        DataType::Struct(fields) => {
            let fields =
                fields.iter().filter_map(|field| Some(Field::new(field.name(), storable(field.data_type())?, true)));
            let fields: Fields = fields.collect();
            (!fields.is_empty()).then_some(DataType::Struct(fields))
        }
        DataType::List(item) => {
            let item = Field::new(item.name(), storable(item.data_type())?, true);
            Some(DataType::List(Arc::new(item)))
        }
        other => Some(other.clone()),
    }
}

/// Casts `column` to `data_type`, a type that [`join_schemas`] and [`storable`] returned.
///
/// # Errors
/// An error for a value that does not fit the type.
pub fn conform(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    match (column.data_type(), data_type) {
        (from, to) if from == to => Ok(column.clone()),
        (DataType::Null, to) => Ok(new_null_array(to, column.len())),
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let from = column.as_struct();
            let part = |field: &Arc<Field>| match from.column_by_name(field.name()) {
                Some(part) => conform(part, field.data_type()),
                None => Ok(new_null_array(field.data_type(), from.len())),
            };
            let parts = fields.iter().map(part).collect::<Result<Vec<_>, _>>()?;
            let joined = StructArray::try_new(fields.clone(), parts, from.nulls().cloned())?;
            Ok(Arc::new(joined))
        }
        (DataType::List(_), DataType::List(item)) => {
            let from = column.as_list::<i32>();
            let values = conform(from.values(), item.data_type())?;
            let offsets = from.offsets().clone();
            let nulls = from.nulls().cloned();
            Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, nulls)?))
        }
        (from, DataType::Utf8) if is_nested(from) => json_texts(column),
        _ => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(column, data_type, &options)
        }
    }
}

/// Returns lists or structs as texts of JSON.
fn json_texts(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let field = Arc::new(Field::new("value", column.data_type().clone(), true));
    let options = EncoderOptions::default().with_encoder_factory(Arc::new(Numbers));
    let mut encoder = make_encoder(&field, column, &options)?;
    let mut texts = StringBuilder::new();
    let mut text = Vec::new();
    for row in 0..column.len() {
        if column.is_null(row) {
            texts.append_null();
            continue;
        }
        text.clear();
        encoder.encode(row, &mut text);
        texts.append_value(String::from_utf8_lossy(&text));
    }
    Ok(Arc::new(texts.finish()))
}

/// Key in the metadata of a field whose texts are numbers, as the readers of rows mark them.
const NUMBER: &str = "tadoc.number";

/// Writes numbers that are texts as they are.
#[derive(Debug)]
struct Numbers;

impl EncoderFactory for Numbers {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        _options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        // Items of lists come with the field of the list.
        let mut field = field;
        while let DataType::List(item) = field.data_type() {
            field = item;
        }
        let texts = array.as_string_opt::<i32>().filter(|_| field.metadata().contains_key(NUMBER));
        Ok(texts.map(|texts| NullableEncoder::new(Box::new(NumberEncoder(texts)), texts.nulls().cloned())))
    }
}

struct NumberEncoder<'a>(&'a StringArray);

impl Encoder for NumberEncoder<'_> {
    fn encode(&mut self, idx: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.value(idx).as_bytes());
    }
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// Returns true if a type contains other types.
fn is_nested(data_type: &DataType) -> bool {
    data_type.is_nested() && !matches!(data_type, DataType::Dictionary(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_meet() {
        use DataType::{Binary, BinaryView, Boolean, Float64, Int32, Int64, Null, Utf8};
        let list = |item| DataType::List(Arc::new(Field::new("item", item, true)));
        assert_eq!(join_types(&Null, &Int64), Some(Int64));
        assert_eq!(join_types(&Int64, &Float64), Some(Float64));
        assert_eq!(join_types(&Int32, &Int64), Some(Int64));
        let decimal = DataType::Decimal128;
        assert_eq!(join_types(&decimal(3, 2), &decimal(5, 2)), Some(decimal(5, 2)));
        for other in [decimal(4, 3), Float64, Int64] {
            assert_eq!(join_types(&decimal(3, 2), &other), Some(Utf8));
            assert_eq!(join_types(&other, &decimal(3, 2)), Some(Utf8));
        }
        assert_eq!(join_types(&Boolean, &Int64), Some(Utf8));
        // Types of files, and types of statements.
        assert_eq!(join_types(&Binary, &BinaryView), Some(BinaryView));
        assert_eq!(join_types(&list(Null), &list(Int64)), Some(list(Int64)));
        assert_eq!(join_types(&list(Int64), &Int64), None);
    }

    #[test]
    fn rows_of_several_shapes_are_texts() {
        let mark = [(NUMBER.to_owned(), String::new())];
        let number = Field::new("n", DataType::Utf8, true).with_metadata(mark.into());
        let numbers = Arc::new(StringArray::from(vec![Some("1.10"), None, Some("1e5")])) as ArrayRef;
        let rows: ArrayRef = Arc::new(StructArray::from(vec![(Arc::new(number), numbers)]));
        let schema = |kind: &DataType| Schema::new(vec![Field::new("x", kind.clone(), true)]);
        assert!(join_schemas(&schema(rows.data_type()), &schema(&DataType::Int64)).is_err());
        let joined = join_rows(&schema(rows.data_type()), &schema(&DataType::Int64));
        assert_eq!(joined, schema(&DataType::Utf8));
        let texts = conform(&rows, &DataType::Utf8).unwrap();
        assert_eq!(
            texts.as_string::<i32>().iter().flatten().collect::<Vec<_>>(),
            ["{\"n\":1.10}", "{}", "{\"n\":1e5}"]
        );
    }

    #[test]
    fn structs_without_fields_are_not_stored() {
        let empty = DataType::Struct(Fields::empty());
        assert_eq!(storable(&empty), None);
        assert_eq!(storable(&DataType::Null), Some(DataType::Utf8));
    }
}
