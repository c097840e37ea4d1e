//! Types that the libraries of Python read.
//!
//! pandas has no views in lists, and polars reads decimals of 32 and 64 bits from a stream as if they had
//! 128 (2.1.0). So columns of such types, at any depth, are cast before these libraries take them.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;

/// Returns `schema` with usual types. Texts and bytes may stay views if `has_views`.
pub fn usual_schema(schema: &Schema, has_views: bool) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(|field| usual_field(field, has_views)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Returns `batch` with the types of `schema`.
///
/// # Errors
/// A type has no cast.
pub fn cast_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let fields = schema.fields().iter();
    let columns = batch.columns().iter().zip(fields).map(|(column, field)| {
        if column.data_type() == field.data_type() { Ok(Arc::clone(column)) } else { cast(column, field.data_type()) }
    });
    RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_, _>>()?)
}

fn usual_field(field: &FieldRef, has_views: bool) -> FieldRef {
    let data_type = usual_type(field.data_type(), has_views);
    if data_type == *field.data_type() {
        Arc::clone(field)
    } else {
        Arc::new(Field::clone(field).with_data_type(data_type))
    }
}

fn usual_type(data_type: &DataType, has_views: bool) -> DataType {
    let inner = |field: &FieldRef| usual_field(field, has_views);
    match data_type {
        DataType::Utf8View if !has_views => DataType::LargeUtf8,
        DataType::BinaryView if !has_views => DataType::LargeBinary,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::List(item) | DataType::ListView(item) => DataType::List(inner(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => DataType::LargeList(inner(item)),
        DataType::FixedSizeList(item, len) => DataType::FixedSizeList(inner(item), *len),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(inner(entries), *is_sorted),
        other => other.clone(),
    }
}
