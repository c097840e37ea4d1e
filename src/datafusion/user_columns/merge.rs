//! Merging of the user columns of consecutive files into one file.
//!
//! Columns are matched by name and get a type that holds all values. Values that edits set replace
//! the others. A value is NULL if its file lacks the column or its document was dropped.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::compute::nullif;
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::parquet::errors::ParquetError;

use super::overlay::{Overlay, table_schema};
use super::{join_schemas, parquet_properties, types};
use crate::errors::contain_panics;
use tadoc::edits::{Edit, column_tables};
use tadoc::error::{Error, Result};
use tadoc_store::ColumnsOfPart;

/// Number of rows of NULLs made at a time.
const ROWS_AT_ONCE: u64 = 8192;

/// Merges the columns of all `parts` into one Parquet file, with the values that `edits` set. The
/// `dropped` rows are NULL. Returns `None` if no part and no edit has columns.
///
/// # Errors
/// An error for a column whose types have no common type, and for bytes that are not a Parquet
/// file. The latter names the file.
pub fn merge_columns(parts: &[ColumnsOfPart], edits: &[Edit], dropped: &[Range<u64>]) -> Result<Option<Vec<u8>>> {
    contain_panics("joining columns", || merge(parts, edits, dropped)).flatten()
}

fn merge(parts: &[ColumnsOfPart], edits: &[Edit], dropped: &[Range<u64>]) -> Result<Option<Vec<u8>>> {
    let mut schema = Schema::empty();
    let mut join = |other: SchemaRef| -> Result<()> {
        schema = join_schemas(&schema, &other).map_err(|reason| Error::external("joining columns", reason))?;
        Ok(())
    };
    for part in parts {
        if let Some(parquet) = &part.parquet {
            join(in_columns(part, || table_schema(parquet))?)?;
        }
    }
    for parquet in column_tables(edits) {
        join(table_schema(parquet)?)?;
    }
    if schema.fields().is_empty() {
        return Ok(None);
    }
    let overlay = Overlay::read(edits, schema.fields(), u64::MAX)?;
    write(parts, &overlay, dropped, &Arc::new(schema)).map(Some)
}

/// Returns the result of `work` on the columns of `part`, or an error that names their file.
fn in_columns<T, E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    part: &ColumnsOfPart,
    work: impl FnOnce() -> std::result::Result<T, E>,
) -> Result<T> {
    let what = format!("{}: section columns", part.file);
    contain_panics(&what, work)?.map_err(|error| Error::external(what, error))
}

fn write(parts: &[ColumnsOfPart], overlay: &Overlay, dropped: &[Range<u64>], schema: &SchemaRef) -> Result<Vec<u8>> {
    let failed = |error| Error::external("storing columns", error);
    let properties = parquet_properties().map_err(failed)?;
    let writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties));
    let mut writer = writer.map_err(failed)?;
    let mut first_row = 0;
    let mut push = |batch: &RecordBatch| -> std::result::Result<(), ParquetError> {
        let num_rows = batch.num_rows() as u64;
        writer.write(&conform(batch, schema, overlay, first_row, dropped)?)?;
        first_row += num_rows;
        Ok(())
    };
    for part in parts {
        in_columns(part, || push_part(part, &mut push))?;
    }
    writer.into_inner().map_err(failed)
}

/// Passes the rows of `part` to `push`. The rows are NULLs if it has no columns.
fn push_part(
    part: &ColumnsOfPart,
    push: &mut impl FnMut(&RecordBatch) -> std::result::Result<(), ParquetError>,
) -> std::result::Result<(), ParquetError> {
    let mut left = part.num_docs;
    if let Some(parquet) = part.parquet.clone() {
        for batch in ParquetRecordBatchReaderBuilder::try_new(parquet)?.build()? {
            let batch = batch?;
            left = left
                .checked_sub(batch.num_rows() as u64)
                .ok_or_else(|| ParquetError::General("a file has more rows than documents".into()))?;
            push(&batch)?;
        }
    }
    while left > 0 {
        let num_rows = left.min(ROWS_AT_ONCE);
        let options = RecordBatchOptions::new().with_row_count(Some(num_rows as usize));
        let schema = Arc::new(Schema::empty());
        push(&RecordBatch::try_new_with_options(schema, Vec::new(), &options)?)?;
        left -= num_rows;
    }
    Ok(())
}

/// Converts `batch`, whose first row is `first_row`, to the columns of `schema`. `overlay` has the
/// same fields.
fn conform(
    batch: &RecordBatch,
    schema: &SchemaRef,
    overlay: &Overlay,
    first_row: u64,
    dropped: &[Range<u64>],
) -> std::result::Result<RecordBatch, ArrowError> {
    let is_dropped = |row: u64| {
        let next = dropped.partition_point(|rows| rows.end <= row);
        dropped.get(next).is_some_and(|rows| rows.contains(&row))
    };
    let rows = first_row..first_row + batch.num_rows() as u64;
    let gone: BooleanArray = rows.map(|row| Some(is_dropped(row))).collect();
    let column = |(place, field): (usize, &FieldRef)| {
        let came = match batch.column_by_name(field.name()) {
            Some(column) => types::conform(column, field.data_type())?,
            None => new_null_array(field.data_type(), batch.num_rows()),
        };
        let column = overlay.over(place, &came, first_row)?;
        match gone.true_count() {
            0 => Ok(column),
            _ => nullif(&column, &gone),
        }
    };
    let columns = schema.fields().iter().enumerate().map(column);
    RecordBatch::try_new(schema.clone(), columns.collect::<std::result::Result<_, ArrowError>>()?)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, StringArray};
    use datafusion::arrow::datatypes::Float64Type;

    use super::*;

    fn part(columns: Vec<(&str, ArrayRef)>) -> ColumnsOfPart {
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)));
        let batch = batch.unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        let parquet = Some(writer.into_inner().unwrap().into());
        ColumnsOfPart { file: String::new(), num_docs: batch.num_rows() as u64, parquet }
    }

    #[test]
    fn parts_are_joined_by_name_and_dropped_rows_are_emptied() {
        let none = |num_docs| ColumnsOfPart { file: String::new(), num_docs, parquet: None };
        assert_eq!(merge_columns(&[none(2), none(0)], &[], &[]).unwrap(), None);
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.5]));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
        let parts = [part(vec![("n", ints)]), none(2), part(vec![("who", names), ("n", floats)])];
        let parquet = merge_columns(&parts, &[], &[1..2, 4..5]).unwrap().unwrap();
        let mut reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(parquet)).unwrap().build().unwrap();
        let rows = reader.next().unwrap().unwrap();
        let numbers = rows.column_by_name("n").unwrap().as_primitive::<Float64Type>();
        let expected = [Some(1.0), None, Some(3.0), None, None, Some(0.5)];
        assert_eq!(numbers.iter().collect::<Vec<_>>(), expected);
        let names = rows.column_by_name("who").unwrap().as_string::<i32>();
        assert_eq!(names.iter().flatten().collect::<Vec<_>>(), ["x"]);
        assert_eq!(rows.num_rows(), 6);
    }

    #[test]
    fn a_list_and_a_number_do_not_meet() {
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let list =
            datafusion::arrow::array::ListArray::from_iter_primitive::<datafusion::arrow::datatypes::Int64Type, _, _>(
                [Some([Some(1)])],
            );
        let parts = [part(vec![("n", ints)]), part(vec![("n", Arc::new(list))])];
        let text = merge_columns(&parts, &[], &[]).unwrap_err().to_string();
        assert!(text.contains("column `n` is Int64 first"), "{text}");
    }
}
