//! Parts of texts in the logs of Docker, which cuts lines after 16 KiB.
//!
//! ```text
//! {"log":"first part of ", "stream":"stdout","time":"…1Z"}        "first part of a line\n", stdout, …1Z
//! {"log":"error\n",        "stream":"stderr","time":"…2Z"}   ─▶   "error\n",                stderr, …2Z
//! {"log":"a line\n",       "stream":"stdout","time":"…3Z"}
//! ```
//!
//! A text goes on in the next row of its stream until it ends with a line end. A document stands in the place of its
//! first part and has the other fields of this part.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BinaryViewArray, BooleanArray, RecordBatch};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Field, Schema};

use crate::failure::Outcome;
use crate::rows;

/// Name of the field with the text.
const TEXT: &str = "log";

/// Rows whose parts are joined.
pub struct Joined {
    /// The rows.
    pub batch: RecordBatch,
    /// Index of the first part of each row.
    pub firsts: Vec<usize>,
    /// Number of the rows before that were taken. Those behind have parts that go on.
    pub num_taken: usize,
}

/// A document of one or more rows.
struct Document {
    first: usize,
    last: usize,
    /// `None` in a row without a text.
    text: Option<Vec<u8>>,
}

/// Returns true if rows with these columns and the text in `field` may be parts.
pub fn are_possible(field: &str, schema: &Schema) -> bool {
    let is_text = |name: &str| schema.field_with_name(name).is_ok_and(|field| rows::is_text(field.data_type()));
    field == TEXT && is_text(TEXT) && is_text("stream") && is_text("time")
}

/// Joins the parts in `batch`; `None` if every text is whole. Parts that go on behind the last row are not taken,
/// unless `is_end`, or the rows from the first of them on have more than `max_bytes`. `ends` are the ends of the bytes
/// of the rows.
pub fn join(batch: &RecordBatch, ends: &[usize], is_end: bool, max_bytes: u64) -> Outcome<Option<Joined>> {
    let texts = rows::texts(TEXT, batch)?;
    let texts = texts.as_binary_view();
    if texts.iter().flatten().all(|text| text.ends_with(b"\n")) {
        return Ok(None);
    }
    let Some(streams) = batch.column_by_name("stream") else { return Ok(None) };
    let streams = cast(streams, &DataType::Utf8View)?;
    let streams = streams.as_string_view();
    let mut documents: Vec<Document> = Vec::new();
    let mut open: HashMap<&str, usize> = HashMap::new();
    for row in 0..batch.num_rows() {
        if texts.is_null(row) || streams.is_null(row) {
            let text = texts.is_valid(row).then(|| texts.value(row).to_vec());
            documents.push(Document { first: row, last: row, text });
            continue;
        }
        let (text, stream) = (texts.value(row), streams.value(row));
        let before = open.remove(stream);
        let idx = match before.and_then(|idx| documents[idx].text.as_mut().map(|before| (idx, before))) {
            Some((idx, before)) if (before.len() + text.len()) as u64 <= max_bytes => {
                before.extend_from_slice(text);
                documents[idx].last = row;
                idx
            }
            _ => {
                documents.push(Document { first: row, last: row, text: Some(text.to_vec()) });
                documents.len() - 1
            }
        };
        if !text.ends_with(b"\n") {
            open.insert(stream, idx);
        }
    }
    let num_taken = if is_end { batch.num_rows() } else { num_taken(&documents, open.values(), ends, max_bytes) };
    documents.retain(|document| document.first < num_taken);
    let mut is_first = vec![false; num_taken];
    documents.iter().for_each(|document| is_first[document.first] = true);
    let firsts = documents.iter().map(|document| document.first).collect();
    let joined = BinaryViewArray::from_iter(documents.into_iter().map(|document| document.text));
    let batch = filter_record_batch(&batch.slice(0, num_taken), &BooleanArray::from(is_first))?;
    Ok(Some(Joined { batch: with_texts(&batch, joined)?, firsts, num_taken }))
}

/// Returns the number of rows before the first that goes on behind the last row, or that another one goes on in.
fn num_taken<'a>(
    documents: &[Document],
    open: impl Iterator<Item = &'a usize>,
    ends: &[usize],
    max_bytes: u64,
) -> usize {
    let num_rows = ends.len();
    let first_open = open.map(|&idx| documents[idx].first).min().unwrap_or(num_rows);
    let going_on = |num: usize, document: &Document| if document.last >= num { num.min(document.first) } else { num };
    let num_taken = documents.iter().rev().fold(first_open, going_on);
    let begin = num_taken.checked_sub(1).map_or(0, |last| ends[last]);
    let left = ends.last().map_or(0, |end| end - begin);
    if left as u64 > max_bytes { num_rows } else { num_taken }
}

fn with_texts(batch: &RecordBatch, texts: BinaryViewArray) -> Outcome<RecordBatch> {
    let schema = batch.schema();
    let idx = schema.index_of(TEXT)?;
    let (mut fields, mut columns) = (schema.fields().to_vec(), batch.columns().to_vec());
    fields[idx] = Arc::new(Field::new(TEXT, DataType::BinaryView, true));
    columns[idx] = Arc::new(texts);
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;
    use testkit::random::Random;

    use super::*;

    type Row = (&'static str, &'static str);

    fn batch(rows: &[Row]) -> RecordBatch {
        let column = |idx: fn(&Row) -> &str| Arc::new(StringArray::from_iter_values(rows.iter().map(idx)));
        let columns = [column(|row| row.0), column(|row| row.1), column(|_| "now")];
        let names = [TEXT, "stream", "time"];
        RecordBatch::try_from_iter(names.into_iter().zip(columns.map(|column| column as _))).unwrap()
    }

    fn texts(batch: &RecordBatch) -> Vec<String> {
        let texts = rows::texts(TEXT, batch).unwrap();
        let texts = texts.as_binary_view().iter().map(|text| String::from_utf8(text.unwrap().to_vec()).unwrap());
        texts.collect()
    }

    /// Returns the documents of all `rows`, joined one by one.
    fn expected(rows: &[Row]) -> Vec<String> {
        let mut documents: Vec<(String, bool, &str)> = Vec::new();
        for (text, stream) in rows {
            match documents.iter_mut().find(|(_, is_open, of)| *is_open && of == stream) {
                Some((document, is_open, _)) => {
                    document.push_str(text);
                    *is_open = !text.ends_with('\n');
                }
                None => documents.push(((*text).to_owned(), !text.ends_with('\n'), stream)),
            }
        }
        documents.into_iter().map(|(text, ..)| text).collect()
    }

    #[test]
    fn parts_are_joined_however_the_rows_come() {
        for case in 0..2000 {
            let random = &mut Random(case);
            let row = |_| (*random.pick(&["a", "b\n", "", "\n", "c"]), *random.pick(&["out", "err"]));
            let rows: Vec<Row> = (0..12).map(row).collect();
            let (mut found, mut waiting, mut rest) = (Vec::new(), Vec::new(), &rows[..]);
            while !rest.is_empty() {
                let num = (1 + random.below(5)).min(rest.len());
                waiting.extend_from_slice(&rest[..num]);
                rest = &rest[num..];
                let (batch, ends) = (batch(&waiting), Vec::from_iter(1..=waiting.len()));
                match join(&batch, &ends, rest.is_empty(), 1000).unwrap() {
                    Some(joined) => {
                        found.extend(texts(&joined.batch));
                        assert_eq!(joined.firsts.len(), joined.batch.num_rows());
                        waiting.drain(..joined.num_taken);
                    }
                    None => found.extend(waiting.drain(..).map(|(text, _)| text.to_owned())),
                }
            }
            assert_eq!(found, expected(&rows), "{case}: {rows:?}");
        }
    }

    #[test]
    fn no_document_is_larger_than_a_row() {
        let rows = batch(&[("abc", "out"), ("def", "out"), ("g", "out"), ("h\n", "out")]);
        let joined = join(&rows, &[1, 2, 3, 4], true, 4).unwrap().unwrap();
        assert_eq!(
            (texts(&joined.batch), joined.firsts),
            (vec!["abc".to_owned(), "defg".into(), "h\n".into()], vec![0, 1, 3])
        );
        let joined = join(&rows.slice(0, 3), &[10, 20, 30], false, 4).unwrap().unwrap();
        assert_eq!(joined.num_taken, 3);
    }
}
