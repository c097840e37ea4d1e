//! Rows as a file: CSV, or a file of Arrow's IPC, written while the statement runs.
//!
//! ```text
//! Rows ─ batch ─▶ FileFormat ─ bytes ─▶ body of the response
//! ```
//!
//! A file holds all rows of a statement unless the client asks for fewer; memory holds one batch. A statement that
//! fails behind its first batch breaks the transfer off, so that nobody takes a part of a file for the whole. CSV
//! has a line with the names of the columns, NULL as nothing, and lists and structs as JSON. Texts are written as they
//! are: a spreadsheet may take a text that begins with `=` for a formula.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::FileWriter;
use futures::stream;

use crate::json::Values;
use crate::refusal::Refusal;
use crate::statements::Rows;

/// Media type of a file of Arrow.
const ARROW: &str = "application/vnd.apache.arrow.file";
/// Media type of CSV.
const CSV: &str = "text/csv; charset=utf-8";

/// Writes batches as parts of a file.
pub enum FileFormat {
    /// CSV; true before the line with the names of the columns.
    Csv(bool),
    /// A file of Arrow's IPC. `None` behind its last byte.
    Arrow(Option<Box<FileWriter<Vec<u8>>>>),
}

impl FileFormat {
    /// Creates CSV.
    pub fn csv() -> Self {
        Self::Csv(true)
    }

    /// Creates a file of Arrow with the columns of `schema`.
    ///
    /// # Errors
    /// A type has no form in IPC.
    pub fn arrow(schema: &Schema) -> Result<Self, ArrowError> {
        Ok(Self::Arrow(Some(Box::new(FileWriter::try_new(Vec::new(), schema)?))))
    }

    /// Returns the media type of the file.
    pub fn media_type(&self) -> &'static str {
        match self {
            Self::Csv(_) => CSV,
            Self::Arrow(_) => ARROW,
        }
    }

    /// Returns the bytes of `batch`.
    ///
    /// # Errors
    /// A value has no form in the file.
    fn write(&mut self, batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        match self {
            Self::Csv(is_first) => {
                let with_header = std::mem::take(is_first);
                let mut writer = csv::WriterBuilder::new().with_header(with_header).build(Vec::new());
                writer.write(&without_nesting(batch)?)?;
                Ok(writer.into_inner())
            }
            Self::Arrow(Some(writer)) => {
                writer.write(batch)?;
                Ok(std::mem::take(writer.get_mut()))
            }
            Self::Arrow(None) => Ok(Vec::new()),
        }
    }

    /// Returns the bytes behind the last batch.
    fn finish(&mut self, schema: &SchemaRef) -> Result<Vec<u8>, ArrowError> {
        match self {
            // An answer without rows has its line of names, too.
            Self::Csv(true) => self.write(&RecordBatch::new_empty(Arc::clone(schema))),
            Self::Csv(false) | Self::Arrow(None) => Ok(Vec::new()),
            Self::Arrow(writer) => {
                let Some(mut writer) = writer.take() else { return Ok(Vec::new()) };
                writer.finish()?;
                writer.into_inner()
            }
        }
    }
}

/// Returns `batch` with lists, structs and maps as texts in JSON.
fn without_nesting(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let mut fields = Vec::with_capacity(schema.fields().len());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if field.data_type().is_nested() {
            let values = Values::new(column)?;
            let texts = (0..column.len()).map(|row| text(&values, column, row)).collect::<StringArray>();
            fields.push(Field::new(field.name(), DataType::Utf8, true));
            columns.push(Arc::new(texts));
        } else {
            fields.push(field.as_ref().clone());
            columns.push(Arc::clone(column));
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn text(values: &Values, column: &ArrayRef, row: usize) -> Option<String> {
    column.is_valid(row).then(|| String::from_utf8_lossy(values.value(row)).into_owned())
}

/// A file that is being written.
struct Writing {
    rows: Rows,
    /// The batch that was taken to see that the statement runs.
    first: Option<RecordBatch>,
    format: FileFormat,
    num_rows_left: usize,
    is_finished: bool,
}

impl Writing {
    /// Returns the next bytes, or `None` behind the last.
    async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        if self.is_finished {
            return Ok(None);
        }
        let batch = match self.first.take() {
            Some(batch) => Some(batch),
            None if self.num_rows_left == 0 => None,
            None => self.rows.next().await.transpose()?,
        };
        let Some(batch) = batch else {
            self.is_finished = true;
            return Ok(Some(self.format.finish(&self.rows.schema)?.into()));
        };
        let num_rows = batch.num_rows().min(self.num_rows_left);
        self.num_rows_left -= num_rows;
        Ok(Some(self.format.write(&batch.slice(0, num_rows))?.into()))
    }
}

/// Returns the body of a response with at most `max_rows` rows in a file.
///
/// # Errors
/// The statement fails before its first rows.
pub async fn body(mut rows: Rows, format: FileFormat, max_rows: usize) -> Result<Body, Refusal> {
    let first = rows.next().await.transpose()?;
    let writing = Writing { rows, first, format, num_rows_left: max_rows, is_finished: false };
    let parts = stream::try_unfold(writing, async |mut writing| match writing.next().await {
        Ok(part) => Ok(part.map(|part| (part, writing))),
        Err(refusal) => Err(io::Error::other(refusal.text)),
    });
    Ok(Body::from_stream(parts))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use datafusion::arrow::array::{Int64Array, ListArray};
    use datafusion::arrow::datatypes::Int64Type;
    use datafusion::arrow::ipc::reader::FileReader;

    use super::*;

    fn batch(numbers: Vec<i64>) -> RecordBatch {
        let lists = numbers.iter().map(|&number| (number > 1).then(|| vec![Some(number), None]));
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
        let texts = StringArray::from_iter_values(numbers.iter().map(|number| format!("a,\"b\"\n{number}")));
        let numbers = Int64Array::from(numbers);
        let columns: Vec<(&str, ArrayRef)> =
            vec![("n", Arc::new(numbers)), ("text", Arc::new(texts)), ("list", Arc::new(lists))];
        let nullable = columns.into_iter().map(|(name, column)| (name, column, true));
        RecordBatch::try_from_iter_with_nullable(nullable).unwrap()
    }

    fn file(mut format: FileFormat, batches: &[RecordBatch]) -> Vec<u8> {
        let schema = batch(Vec::new()).schema();
        let mut bytes = Vec::new();
        for batch in batches {
            bytes.extend(format.write(batch).unwrap());
        }
        bytes.extend(format.finish(&schema).unwrap());
        bytes
    }

    #[test]
    fn csv_has_one_header_and_lists_as_json() {
        let bytes = file(FileFormat::csv(), &[batch(vec![1, 2]), batch(vec![3])]);
        let expected = "n,text,list\n1,\"a,\"\"b\"\"\n1\",\n2,\"a,\"\"b\"\"\n2\",\"[2,null]\"\n\
                        3,\"a,\"\"b\"\"\n3\",\"[3,null]\"\n";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        assert_eq!(file(FileFormat::csv(), &[]), b"n,text,list\n");
    }

    #[test]
    fn files_of_arrow_are_those_that_were_written() {
        let batches = [batch(vec![1, 2]), batch(vec![3])];
        for written in [&batches[..], &[]] {
            let format = FileFormat::arrow(&batches[0].schema()).unwrap();
            let read = FileReader::try_new(Cursor::new(file(format, written)), None).unwrap();
            assert_eq!(read.collect::<Result<Vec<_>, _>>().unwrap(), written);
        }
    }
}
