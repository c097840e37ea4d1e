//! Overlay of the values of user columns that edits set over the original values.
//!
//! ```text
//! column             a  b  c  d  e
//! table T            x  y              2 ← row 0 of T, 4 ← row 1 of T     edits in order:
//! table U            z                 2 ← row 0 of U                     the last one counts
//! over the column    a  b  z  d  y
//! ```
//!
//! A table holds the columns that a statement sets. Its documents keep their values in all other
//! columns. The edits say which row belongs to which document, so a table does not depend on where
//! its documents are stored.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::{concat, interleave};
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::types::conform;
use crate::errors::contain_panics;
use tadoc::edits::{Edit, column_tables};
use tadoc::error::{Error, Result};

/// Values that edits set in some columns; see the module's description.
#[derive(Debug)]
pub(crate) struct Overlay {
    /// Columns, in the order of the requested fields.
    columns: Vec<SetColumn>,
}

/// Values that edits set in one column.
#[derive(Debug, Default)]
struct SetColumn {
    /// Values of each table that has the column.
    values: Vec<ArrayRef>,
    /// Places of the values, in order of document.
    places: Vec<ValueSource>,
}

/// Place of the value of a document.
#[derive(Debug, Clone, Copy)]
struct ValueSource {
    doc_id: u64,
    /// Index into the values of its column.
    table: usize,
    row: usize,
}

/// A table that edits name.
struct Table {
    num_rows: u64,
    /// For each field, the index of its values in the column; `None` if the table does not set it.
    places: Vec<Option<usize>>,
}

impl Overlay {
    /// Reads the values that `edits`, in order, set in `fields`, and casts them to the types of
    /// `fields`. Decodes at most `limit_bytes`.
    ///
    /// # Errors
    /// An error for tables that are damaged, lack a row that an edit names, or hold values that do
    /// not fit the type; [`Error::Capacity`] if the limit is exceeded.
    pub(crate) fn read<'a>(
        edits: impl IntoIterator<Item = &'a Edit>,
        fields: &[FieldRef],
        limit_bytes: u64,
    ) -> Result<Self> {
        let mut columns: Vec<SetColumn> = fields.iter().map(|_| SetColumn::default()).collect();
        // Edits share tables and never copy them, so the address identifies a table.
        let mut tables: HashMap<(*const u8, usize), Table> = HashMap::new();
        let mut left_bytes = limit_bytes;
        for edit in edits {
            let Edit::SetColumns { doc_id, row, table: stored } = edit else { continue };
            let table = match tables.entry((stored.as_ptr(), stored.len())) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(read_table(stored, fields, &mut columns, &mut left_bytes)?),
            };
            if *row >= table.num_rows {
                let reason = format!("expected one of {} rows, got row {row}", table.num_rows);
                return Err(Error::external("setting columns", reason));
            }
            for (column, place) in columns.iter_mut().zip(&table.places) {
                if let Some(place) = place {
                    let (doc_id, row) = (*doc_id, *row as usize);
                    column.places.push(ValueSource { doc_id, table: *place, row });
                }
            }
        }
        columns.iter_mut().for_each(SetColumn::settle);
        Ok(Self { columns })
    }

    /// Replaces values in `values`, a range of the field at `place` that starts at document
    /// `first_doc`, by those that were set.
    ///
    /// # Errors
    /// Errors of Arrow only.
    pub(crate) fn over(
        &self,
        place: usize,
        values: &ArrayRef,
        first_doc: u64,
    ) -> std::result::Result<ArrayRef, ArrowError> {
        let SetColumn { values: set, places } = &self.columns[place];
        let docs = first_doc..first_doc.saturating_add(values.len() as u64);
        let below = |end| places.partition_point(|place| place.doc_id < end);
        let places = &places[below(docs.start)..below(docs.end)];
        if places.is_empty() {
            return Ok(Arc::clone(values));
        }
        let mut rows: Vec<(usize, usize)> = (0..values.len()).map(|row| (0, row)).collect();
        for ValueSource { doc_id, table, row } in places {
            rows[(doc_id - first_doc) as usize] = (table + 1, *row);
        }
        let all: Vec<&dyn Array> = std::iter::once(values).chain(set).map(|values| values.as_ref()).collect();
        interleave(&all, &rows)
    }
}

impl SetColumn {
    /// Sorts the places by document and keeps the last one of each document.
    fn settle(&mut self) {
        self.places.sort_by_key(|place| place.doc_id);
        self.places.dedup_by(|later, earlier| {
            let is_same = later.doc_id == earlier.doc_id;
            if is_same {
                *earlier = *later;
            }
            is_same
        });
    }
}

/// Reads the table `stored` and appends its columns to those of `fields`.
fn read_table(stored: &Bytes, fields: &[FieldRef], columns: &mut [SetColumn], left_bytes: &mut u64) -> Result<Table> {
    let broken = |error| Error::external("reading columns", error);
    let builder = open(stored)?;
    let num_rows = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0);
    let schema = Arc::clone(builder.schema());
    let is_wanted = |name: &str| fields.iter().any(|field| field.name() == name);
    let roots = (0..schema.fields().len()).filter(|&i| is_wanted(schema.field(i).name()));
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
    let reader = builder.with_projection(mask).build().map_err(|error| broken(error.into()))?;
    let batches = reader.collect::<std::result::Result<Vec<_>, _>>().map_err(broken)?;
    let mut places = Vec::with_capacity(fields.len());
    for (field, column) in fields.iter().zip(columns) {
        let parts = batches.iter().filter_map(|batch| batch.column_by_name(field.name()));
        let parts: Vec<&dyn Array> = parts.map(AsRef::as_ref).collect();
        if parts.is_empty() {
            places.push(None);
            continue;
        }
        let values = concat(&parts).and_then(|values| conform(&values, field.data_type()));
        let values = values.map_err(broken)?;
        if values.len() as u64 != num_rows {
            let reason = format!("expected {num_rows} rows, got {}", values.len());
            return Err(Error::external("reading columns", reason));
        }
        take_room(left_bytes, values.get_array_memory_size() as u64)?;
        places.push(Some(column.values.len()));
        column.values.push(values);
    }
    Ok(Table { num_rows, places })
}

fn take_room(left_bytes: &mut u64, requested: u64) -> Result<()> {
    let limit = *left_bytes;
    *left_bytes = limit.checked_sub(requested).ok_or(Error::Capacity {
        what: "columns that edits set in bytes",
        requested,
        limit,
        knob: "tadoc.max_memory_bytes",
    })?;
    Ok(())
}

/// Reads every value that `edits`, all of one version, set.
///
/// # Errors
/// The errors of [`Overlay::read`].
pub(crate) fn check_tables(edits: &[Edit], limit_bytes: u64) -> Result<()> {
    let read = || match column_tables(edits).next() {
        // A statement sets the same columns in all of its tables.
        Some(first) => Overlay::read(edits, table_schema(first)?.fields(), limit_bytes).map(drop),
        None => Ok(()),
    };
    contain_panics("reading columns", read).flatten()
}

/// Returns the columns of `table`, a Parquet file.
///
/// # Errors
/// An error if the file is damaged.
pub(crate) fn table_schema(table: &Bytes) -> Result<SchemaRef> {
    Ok(Arc::clone(open(table)?.schema()))
}

fn open(table: &Bytes) -> Result<ParquetRecordBatchReaderBuilder<Bytes>> {
    let opened = ParquetRecordBatchReaderBuilder::try_new(table.clone());
    opened.map_err(|error| Error::external("reading columns", error))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{AsArray, Int64Array, RecordBatch, StringViewArray, new_null_array};
    use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
    use datafusion::parquet::arrow::ArrowWriter;

    use super::*;

    fn table(columns: Vec<(&str, ArrayRef)>) -> Bytes {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap().into()
    }

    fn integers(values: &[Option<i64>]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    #[test]
    fn the_last_value_of_each_document_counts() {
        let names: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "b"]));
        let both = table(vec![("who", names), ("n", integers(&[Some(10), None]))]);
        let one = table(vec![("n", integers(&[Some(20)]))]);
        let set = |doc_id, row, table: &Bytes| Edit::SetColumns { doc_id, row, table: table.clone() };
        let edits = [set(4, 0, &both), set(2, 1, &both), Edit::DropDocument { doc_id: 1 }, set(4, 0, &one)];
        let field = |name: &str, data_type| Arc::new(Field::new(name, data_type, true));
        let fields = [field("n", DataType::Int64), field("who", DataType::Utf8)];
        let overlay = Overlay::read(&edits, &fields, u64::MAX).unwrap();
        let numbers = integers(&[Some(1), Some(2), Some(3), Some(4)]);
        let over = overlay.over(0, &numbers, 1).unwrap();
        let found: Vec<_> = over.as_primitive::<Int64Type>().iter().collect();
        assert_eq!(found, [Some(1), None, Some(3), Some(20)]);
        assert!(Arc::ptr_eq(&overlay.over(0, &numbers, 5).unwrap(), &numbers));
        let names = new_null_array(&DataType::Utf8, 5);
        let over = overlay.over(1, &names, 0).unwrap();
        let found: Vec<_> = over.as_string::<i32>().iter().collect();
        assert_eq!(found, [None, None, Some("b"), None, Some("a")]);
    }

    #[test]
    fn tables_that_are_not_what_edits_say_are_refused() {
        let one = table(vec![("n", integers(&[Some(20)]))]);
        let fields = [Arc::new(Field::new("n", DataType::Int64, true))];
        let refused = |table: &[u8], row, limit_bytes| {
            let table = Bytes::copy_from_slice(table);
            let edits = [Edit::SetColumns { doc_id: 0, row, table }];
            Overlay::read(&edits, &fields, limit_bytes).unwrap_err().to_string()
        };
        assert!(refused(&one, 1, u64::MAX).contains("expected one of 1 rows, got row 1"));
        assert!(refused(&one[1..], 0, u64::MAX).contains("reading columns"));
        assert!(refused(&one, 0, 1).contains("tadoc.max_memory_bytes"));
        let edits = [Edit::SetColumns { doc_id: 0, row: 1, table: one }];
        assert!(check_tables(&edits, u64::MAX).is_err());
    }
}
