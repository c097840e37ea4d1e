//! Columns of Arrow in the kinds that a corpus holds.
//!
//! ```text
//! union: 1, "x", {a: 1}, null   ─▶  texts: 1, x, {"a":1}, null     as columns of JSON with mixed values
//! uuid: 16 bytes                ─▶  texts: 550e8400-e29b-41d4-a716-446655440000
//! months, days, nanoseconds     ─▶  texts: 1 mons 2 days 0.000000003 secs
//! dictionary: values a, null    ─▶  a dictionary whose keys are null
//! ```
//!
//! Parquet has no unions and no such intervals, and readers of dictionaries look at the keys for nulls. This holds at
//! any depth. Structures and lists of a union are JSON. Columns that nobody wants are left out. Time is linear in the
//! values; a union must have less than 2 GiB of text in a batch.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryArray, RecordBatch, RecordBatchOptions};
use arrow::array::{StringArray, StringBuilder, UnionArray, make_array};
use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, Schema, SchemaRef, UnionFields};
use arrow::error::ArrowError;
use arrow::json::writer::{EncoderOptions, make_encoder};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::failure::{Failure, Outcome};

const UUID_BYTES: i32 = 16;
/// Bytes of a UUID with a hyphen in front.
const HYPHENS: [usize; 4] = [4, 6, 8, 10];
/// Entries in the metadata of a field that say that it has UUIDs, as Arrow and Avro write them.
const UUID_MARKS: [(&str, &str); 2] = [("ARROW:extension:name", "arrow.uuid"), ("logicalType", "uuid")];

/// Makes the columns of one schema plain.
pub(crate) struct Plain {
    /// Indices of the columns that are wanted.
    wanted: Vec<usize>,
    /// All columns as they are, and as they become.
    from: SchemaRef,
    to: SchemaRef,
}

impl Plain {
    /// Plans for columns of `schema`. Batches have those that are `wanted` by their names.
    pub fn new(schema: &SchemaRef, wanted: impl Fn(&str) -> bool) -> Self {
        let fields = schema.fields().iter().enumerate();
        let wanted = fields.filter(|(_, field)| wanted(field.name())).map(|(idx, _)| idx).collect();
        let plain: Vec<FieldRef> = schema.fields().iter().map(plain).collect();
        Self { wanted, from: Arc::clone(schema), to: Arc::new(Schema::new(plain)) }
    }

    /// Returns the schema of all columns as they become.
    pub fn schema(&self) -> &SchemaRef {
        &self.to
    }

    /// Returns true if a column has unions, at any depth.
    pub fn has_unions(&self) -> bool {
        self.from.fields().iter().any(has_unions)
    }

    /// Returns the wanted columns of `batch`.
    ///
    /// # Errors
    /// A union has too much text, or values without a form as text; the text names the column and the way out.
    pub fn batch(&self, batch: &RecordBatch) -> Outcome<RecordBatch> {
        let column = |idx: &usize| {
            let (from, to) = (self.from.field(*idx), self.to.field(*idx));
            values(from, to, batch.column(*idx)).map_err(|error| {
                let what = format!("column `{}`: pass --no-columns to keep the text only", from.name());
                Failure::with_cause(what, &error)
            })
        };
        let columns: Vec<ArrayRef> = self.wanted.iter().map(column).collect::<Outcome<_>>()?;
        let schema = Arc::new(self.to.project(&self.wanted)?);
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }
}

/// Returns `field` with a mark that it has UUIDs.
pub(crate) fn marked_uuid(field: &Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.extend(UUID_MARKS.map(|(key, value)| (key.to_owned(), value.to_owned())));
    field.clone().with_metadata(metadata)
}

/// Returns true if the values of `field` become texts.
fn is_printed(field: &Field) -> bool {
    match field.data_type() {
        DataType::Union(..) | DataType::Interval(IntervalUnit::MonthDayNano) => true,
        DataType::FixedSizeBinary(UUID_BYTES) => {
            let metadata = field.metadata();
            UUID_MARKS.iter().any(|(key, value)| metadata.get(*key).is_some_and(|stated| stated == value))
        }
        _ => false,
    }
}

fn has_unions(field: &FieldRef) -> bool {
    matches!(field.data_type(), DataType::Union(..)) || inner(field.data_type()).iter().any(has_unions)
}

/// Returns the field that `field` becomes.
fn plain(field: &FieldRef) -> FieldRef {
    if is_printed(field) {
        return Arc::new(Field::new(field.name(), DataType::Utf8, true));
    }
    let before = inner(field.data_type());
    let after: Vec<FieldRef> = before.iter().map(plain).collect();
    if before == after {
        return Arc::clone(field);
    }
    Arc::new(field.as_ref().clone().with_data_type(with_inner(field.data_type(), after)))
}

/// Returns the fields of the values inside of values, in the order of their data.
fn inner(kind: &DataType) -> Vec<FieldRef> {
    use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView, Map, RunEndEncoded, Struct};
    match kind {
        Struct(fields) => fields.iter().cloned().collect(),
        List(item) | LargeList(item) | ListView(item) | LargeListView(item) => vec![Arc::clone(item)],
        FixedSizeList(item, _) | Map(item, _) => vec![Arc::clone(item)],
        RunEndEncoded(ends, values) => vec![Arc::clone(ends), Arc::clone(values)],
        _ => Vec::new(),
    }
}

/// Returns `kind` with other fields inside, as [`inner`] returns them.
fn with_inner(kind: &DataType, fields: Vec<FieldRef>) -> DataType {
    use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView, Map, RunEndEncoded, Struct};
    match (kind, fields.as_slice()) {
        (List(_), [item]) => List(Arc::clone(item)),
        (LargeList(_), [item]) => LargeList(Arc::clone(item)),
        (ListView(_), [item]) => ListView(Arc::clone(item)),
        (LargeListView(_), [item]) => LargeListView(Arc::clone(item)),
        (FixedSizeList(_, len), [item]) => FixedSizeList(Arc::clone(item), *len),
        (Map(_, is_sorted), [entry]) => Map(Arc::clone(entry), *is_sorted),
        (RunEndEncoded(..), [ends, values]) => RunEndEncoded(Arc::clone(ends), Arc::clone(values)),
        (Struct(_), _) => Struct(fields.into()),
        _ => kind.clone(),
    }
}

/// Returns the values of `from` as those of `to`, which it becomes.
fn values(from: &Field, to: &Field, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if is_printed(from) {
        return Ok(Arc::new(texts(from, array)?));
    }
    let has_null_values = array.as_any_dictionary_opt().is_some_and(|array| array.values().null_count() > 0);
    if has_null_values {
        let data = array.to_data().into_builder().nulls(array.logical_nulls());
        return Ok(make_array(data.build()?));
    }
    if from.data_type() == to.data_type() {
        return Ok(Arc::clone(array));
    }
    let data = array.to_data();
    let (before, after) = (inner(from.data_type()), inner(to.data_type()));
    let fields = before.iter().zip(&after);
    let parts = fields.zip(data.child_data());
    let parts = parts.map(|((from, to), part)| Ok(values(from, to, &make_array(part.clone()))?.to_data()));
    let parts = parts.collect::<Result<Vec<_>, ArrowError>>()?;
    let data = data.clone().into_builder().data_type(to.data_type().clone()).child_data(parts);
    Ok(make_array(data.build()?))
}

/// Returns each value as a text.
fn texts(field: &Field, array: &ArrayRef) -> Result<StringArray, ArrowError> {
    match array.data_type() {
        DataType::Union(fields, _) => union_texts(fields, array.as_union()),
        DataType::FixedSizeBinary(_) if is_printed(field) => Ok(uuid_texts(array.as_fixed_size_binary())),
        kind if kind.is_nested() => json_texts(field, array),
        _ => formatted(array),
    }
}

fn union_texts(fields: &UnionFields, array: &UnionArray) -> Result<StringArray, ArrowError> {
    let parts = fields.iter().map(|(id, field)| Ok((id, texts(field, array.child(id))?)));
    let parts = parts.collect::<Result<HashMap<i8, StringArray>, ArrowError>>()?;
    let rows = (0..array.len()).map(|row_idx| {
        let part = parts.get(&array.type_id(row_idx))?;
        let value_idx = array.value_offset(row_idx);
        part.is_valid(value_idx).then(|| part.value(value_idx))
    });
    let num_bytes: u64 = rows.clone().flatten().map(|text| text.len() as u64).sum();
    if i32::try_from(num_bytes).is_err() {
        return Err(ArrowError::InvalidArgumentError(format!(
            "a union has {num_bytes} bytes of text in one batch, and less than 2 GiB are held"
        )));
    }
    Ok(rows.collect())
}

/// Returns structures and lists as JSON.
fn json_texts(field: &Field, array: &ArrayRef) -> Result<StringArray, ArrowError> {
    let to = plain(&Arc::new(field.clone()));
    let array = values(field, &to, array)?;
    let options = EncoderOptions::default().with_explicit_nulls(true);
    let mut encoder = make_encoder(&to, &array, &options)?;
    let nulls = array.logical_nulls();
    let mut texts = StringBuilder::new();
    let mut json = Vec::new();
    for row_idx in 0..array.len() {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row_idx)) {
            texts.append_null();
            continue;
        }
        json.clear();
        encoder.encode(row_idx, &mut json);
        texts.append_value(String::from_utf8_lossy(&json));
    }
    Ok(texts.finish())
}

/// Returns values as SQL prints them.
fn formatted(array: &ArrayRef) -> Result<StringArray, ArrowError> {
    let options = FormatOptions::new();
    let formatter = ArrayFormatter::try_new(array, &options)?;
    let nulls = array.logical_nulls();
    let is_null = |row_idx| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row_idx));
    let text = |row_idx| (!is_null(row_idx)).then(|| formatter.value(row_idx).try_to_string()).transpose();
    (0..array.len()).map(text).collect()
}

fn uuid_texts(array: &FixedSizeBinaryArray) -> StringArray {
    array.iter().map(|bytes| bytes.map(uuid)).collect()
}

fn uuid(bytes: &[u8]) -> String {
    bytes.iter().enumerate().fold(String::new(), |mut text, (idx, byte)| {
        let hyphen = if HYPHENS.contains(&idx) { "-" } else { "" };
        // Writing to a text does not fail.
        let _ = write!(text, "{hyphen}{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{DictionaryArray, Int8Array, Int64Array, IntervalMonthDayNanoArray, ListArray, StructArray};
    use arrow::buffer::{OffsetBuffer, ScalarBuffer};
    use arrow::datatypes::{Int8Type, IntervalMonthDayNano};

    use super::*;

    fn field_for(array: ArrayRef) -> Field {
        Field::new("v", array.data_type().clone(), true)
    }

    /// Returns the values of a column as SQL prints them once they are plain.
    fn printed(field: Field, array: ArrayRef) -> Vec<Option<String>> {
        let schema = Arc::new(Schema::new(vec![field]));
        let plain = Plain::new(&schema, |_| true);
        let batch = plain.batch(&RecordBatch::try_new(schema, vec![array]).unwrap()).unwrap();
        assert_eq!(batch.schema(), *plain.schema());
        let column = batch.column(0);
        let formatter = ArrayFormatter::try_new(column, &FormatOptions::new()).unwrap();
        (0..column.len()).map(|idx| column.is_valid(idx).then(|| formatter.value(idx).to_string())).collect()
    }

    fn some(texts: &[&str]) -> Vec<Option<String>> {
        texts.iter().map(|text| (*text != "NULL").then(|| (*text).to_owned())).collect()
    }

    /// Returns the rows 1, "x", {"n":7}, null and "" as a union.
    fn union() -> ArrayRef {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x", ""]));
        let objects: ArrayRef = Arc::new(StructArray::from(vec![(
            Arc::new(Field::new("n", DataType::Int64, true)),
            Arc::new(Int64Array::from(vec![7])) as ArrayRef,
        )]));
        let children = vec![numbers, texts, objects];
        let fields = children.iter().enumerate();
        let fields = fields.map(|(idx, part)| Field::new(format!("b{idx}"), part.data_type().clone(), true));
        let fields = UnionFields::try_new([0i8, 1, 2], fields.collect::<Vec<_>>()).unwrap();
        let ids = ScalarBuffer::from(vec![0i8, 1, 2, 0, 1]);
        let offsets = ScalarBuffer::from(vec![0i32, 0, 0, 1, 1]);
        Arc::new(UnionArray::try_new(fields, ids, Some(offsets), children).unwrap())
    }

    #[test]
    fn unions_are_texts_at_any_depth() {
        let array = union();
        let expected = some(&["1", "x", "{\"n\":7}", "NULL", ""]);
        assert_eq!(printed(field_for(Arc::clone(&array)), Arc::clone(&array)), expected);
        assert_eq!(printed(field_for(Arc::clone(&array)), array.slice(1, 3)), expected[1..4]);
        let item = Arc::new(Field::new("item", array.data_type().clone(), true));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(vec![0, 2, 2, 5]));
        let list: ArrayRef = Arc::new(ListArray::new(Arc::clone(&item), offsets, Arc::clone(&array), None));
        let expected = some(&["[1, x]", "[]", "[{\"n\":7}, , ]"]);
        assert_eq!(printed(field_for(Arc::clone(&list)), Arc::clone(&list)), expected);
        let object: ArrayRef = Arc::new(StructArray::from(vec![(item, array)]));
        assert_eq!(printed(field_for(Arc::clone(&object)), object)[1], Some("{item: x}".to_owned()));
        // A union in the list of a union is a text in JSON.
        let fields = UnionFields::try_new([5i8], [Field::new("l", list.data_type().clone(), true)]).unwrap();
        let outer = UnionArray::try_new(fields, ScalarBuffer::from(vec![5i8; 3]), None, vec![list]).unwrap();
        let outer: ArrayRef = Arc::new(outer);
        let expected = some(&["[\"1\",\"x\"]", "[]", "[\"{\\\"n\\\":7}\",null,\"\"]"]);
        assert_eq!(printed(field_for(Arc::clone(&outer)), outer), expected);
    }

    #[test]
    fn uuids_and_intervals_are_texts() {
        let bytes: Vec<u8> = (0..16).map(|byte| byte * 16 + 1).collect();
        let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some(bytes), None].into_iter(), 16);
        let array: ArrayRef = Arc::new(array.unwrap());
        let hex = "011121314151617181 91a1b1c1d1e1f1".replace(' ', "");
        assert_eq!(printed(field_for(Arc::clone(&array)), Arc::clone(&array)), some(&[&hex, "NULL"]));
        let text = "01112131-4151-6171-8191-a1b1c1d1e1f1";
        for (key, value) in UUID_MARKS {
            let field = field_for(Arc::clone(&array)).with_metadata([(key.to_owned(), value.to_owned())].into());
            assert_eq!(printed(field, Arc::clone(&array)), some(&[text, "NULL"]), "{key}");
        }
        let interval = IntervalMonthDayNano::new(1, 2, 3);
        let array: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![Some(interval), None]));
        assert_eq!(printed(field_for(Arc::clone(&array)), array), some(&["1 mons 2 days 0.000000003 secs", "NULL"]));
    }

    #[test]
    fn null_values_of_dictionaries_are_null_keys() {
        let keys = Int8Array::from(vec![Some(0), Some(1), None, Some(0)]);
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
        let array: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, texts));
        assert_eq!(array.null_count(), 1);
        let field = field_for(Arc::clone(&array));
        assert_eq!(printed(field, array), some(&["a", "NULL", "NULL", "a"]));
    }

    #[test]
    fn columns_that_nobody_wants_are_left_out() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1; 5]));
        let batch = RecordBatch::try_from_iter([("n", numbers), ("u", union())]).unwrap();
        let plain = Plain::new(&batch.schema(), |name| name == "n");
        assert!(plain.has_unions() && plain.schema().fields().len() == 2);
        assert_eq!(plain.batch(&batch).unwrap(), batch.project(&[0]).unwrap());
        let none = Plain::new(&batch.schema(), |_| false).batch(&batch).unwrap();
        assert_eq!((none.num_columns(), none.num_rows()), (0, 5));
    }
}
