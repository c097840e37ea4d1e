//! Rows of one input become documents: the text column, the path, user columns and timestamps of a batch.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, RecordBatch, new_null_array};
use arrow::compute::{cast, filter, filter_record_batch};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};

use crate::columns::{
    ColumnSink, PATH_COLUMN, check_num_columns, has_times, is_text, leaves, names, texts, without_mark,
};
use crate::display;
use crate::failure::{Failure, Outcome};
use crate::gather::Gather;
use crate::inputs::Input;
use crate::options::ReadOptions;
use crate::timestamps::{self, Clock};

/// Receivers of the rows of one input.
pub(crate) struct Rows<'a, 'b> {
    /// The input.
    pub input: &'a Input,
    /// Options for reading it.
    pub options: ReadOptions,
    /// Receiver of user columns.
    pub columns: &'a mut dyn ColumnSink,
    /// Reader of timestamps, if they are asked for.
    pub clock: Option<&'a mut Clock>,
    /// Receiver of documents.
    pub sink: &'a mut Gather<'b>,
}

impl Rows<'_, '_> {
    /// Adds the rows of `batch`, or none of them. `locate` names a row by its index in the batch, such as
    /// `line 17`.
    pub fn take(&mut self, text_column: &str, batch: &RecordBatch, locate: &dyn Fn(usize) -> String) -> Outcome {
        let all_texts = texts(text_column, batch)?;
        let fitting = match self.fitting(text_column, all_texts.as_binary_view(), locate)? {
            Some(fits) => Some((filter_record_batch(batch, &fits)?, filter(&all_texts, &fits)?)),
            None => None,
        };
        let (batch, texts) = fitting.as_ref().map_or((batch, &all_texts), |(batch, texts)| (batch, texts));
        let texts = texts.as_binary_view();
        let paths = self.paths(text_column, batch)?;
        let kept = if self.options.keep_columns { other_columns(text_column, batch)? } else { batch.project(&[])? };
        self.push_kept(kept, batch)?;
        let file_path: Arc<str> = Arc::from(self.input.path.as_str());
        for row_idx in 0..batch.num_rows() {
            let text = if texts.is_null(row_idx) { &[] } else { texts.value(row_idx) };
            let own_path = paths.as_ref().map(|paths| paths.as_string::<i64>());
            match own_path.filter(|paths| paths.is_valid(row_idx)) {
                Some(paths) => self.sink.push(&Arc::from(paths.value(row_idx)), text)?,
                None => self.sink.push(&file_path, text)?,
            }
        }
        Ok(())
    }

    /// Returns which rows stay where some texts are missing or too large; `None` if all stay.
    fn fitting(
        &self,
        text_column: &str,
        texts: &BinaryViewArray,
        locate: &dyn Fn(usize) -> String,
    ) -> Outcome<Option<BooleanArray>> {
        let mut fits = vec![true; texts.len()];
        for (row_idx, fits) in fits.iter_mut().enumerate() {
            let failure = if texts.is_null(row_idx) {
                if self.options.allow_missing {
                    continue;
                }
                self.missing_text(text_column, &locate(row_idx))
            } else if texts.value(row_idx).len() as u64 > self.options.max_row_bytes {
                self.too_large(&locate(row_idx))
            } else {
                continue;
            };
            self.sink.faults.pass_row(self.input, failure)?;
            *fits = false;
        }
        let are_all = fits.iter().all(|&fits| fits);
        Ok((!are_all).then(|| BooleanArray::from(fits)))
    }

    /// Adds columns of documents that were passed on already.
    pub fn push_columns(&mut self, batch: &RecordBatch) -> Outcome {
        let kept = if self.options.keep_columns { batch.clone() } else { batch.project(&[])? };
        self.push_kept(kept, batch)
    }

    /// Adds `kept`, columns of `batch`, and the timestamps.
    fn push_kept(&mut self, kept: RecordBatch, batch: &RecordBatch) -> Outcome {
        let rows = self.with_times(kept, batch)?;
        if rows.num_columns() == 0 && !self.options.keep_columns {
            return Ok(());
        }
        let file = self.input.shown();
        let pushed = self
            .columns
            .push(&rows)
            .and_then(|()| check_num_columns(self.columns.num_columns(), self.options.max_columns, &file));
        pushed.inspect_err(|_| self.sink.faults.end())
    }

    /// Returns true if the column `name` is needed for documents whose text is in `text_column`.
    pub fn needs(&self, name: &str, text_column: &str) -> bool {
        let has_times = self.time_column().is_some_and(|path| has_times(name, path));
        self.options.keep_columns || has_times || [text_column, PATH_COLUMN].contains(&name)
    }

    /// Checks that `schema` has no more columns than are kept.
    ///
    /// # Errors
    /// It has more; the text names the limit.
    pub fn check_num_columns(&self, schema: &Schema) -> Outcome {
        if !self.options.keep_columns {
            return Ok(());
        }
        check_num_columns(leaves(schema.fields()).count(), self.options.max_columns, &self.input.shown())
    }

    /// Checks that `schema` has the column with the timestamps.
    pub fn check_time_column(&self, schema: &Schema) -> Outcome {
        match self.time_column() {
            Some(name) if self.time_path(schema).is_none() => {
                let reason = if name == timestamps::AUTO {
                    "no column has a name of times, such as timestamp, time or ts; name one of the columns"
                } else {
                    "there is no such column; the columns are"
                };
                Err(Failure::new(format!(
                    "{}: --timestamp {name}: {reason} {}",
                    self.input.shown(),
                    names(schema, |_| true)
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns the path of the column of `schema` that has the timestamps, if there is one: `auto` is the column
    /// [`COLUMN`](timestamps::COLUMN), or the first one with a name of times.
    fn time_path(&self, schema: &Schema) -> Option<String> {
        let path = self.time_column()?;
        if field_at(schema.fields(), path).is_some() {
            return Some(path.to_owned());
        }
        let names = || schema.fields().iter().map(|field| field.name().as_str());
        let first = || names().find(|name| *name == timestamps::COLUMN).or_else(|| timestamps::first_name(names()));
        first().filter(|_| path == timestamps::AUTO).map(str::to_owned)
    }

    /// Returns the column that has the timestamps, if they are in rows.
    pub fn time_column(&self) -> Option<&str> {
        self.clock.as_ref().and_then(|clock| clock.how().column())
    }

    /// Returns `kept` with the timestamps of the rows of `batch`.
    fn with_times(&mut self, kept: RecordBatch, batch: &RecordBatch) -> Outcome<RecordBatch> {
        let name = self.time_path(&batch.schema()).or_else(|| self.time_column().map(str::to_owned));
        let (Some(name), Some(clock)) = (name, &mut self.clock) else { return Ok(kept) };
        let dates = || column_at(batch, &format!("{name}.$date"));
        let times = match column_at(batch, &name) {
            Some((field, _)) if matches!(field.data_type(), DataType::Struct(_)) && dates().is_none() => {
                return Err(Failure::new(format!(
                    "{}: --timestamp {name}: it holds objects; name the field of them that has the time, such as \
                     --timestamp {name}.FIELD",
                    self.input.shown()
                )));
            }
            // MongoDB writes times as objects.
            Some((field, times)) => match dates() {
                Some((field, times)) => without_mark(&field, &times)?,
                None => without_mark(&field, &times)?,
            },
            None => new_null_array(&DataType::Null, batch.num_rows()),
        };
        let times = clock.for_column(&times).map_err(|error| {
            let column = format!("{}: --timestamp {name}", self.input.shown());
            Failure::with_cause(column, &error)
        })?;
        let mut columns: Vec<(Arc<Field>, ArrayRef)> =
            kept.schema().fields().iter().cloned().zip(kept.columns().iter().cloned()).collect();
        if name != timestamps::COLUMN && kept.column_by_name(timestamps::COLUMN).is_some() {
            return Err(Failure::new(format!(
                "{}: --timestamp {name}: the rows have a column `{COLUMN}` of their own; pass --timestamp \
                 {COLUMN} to read that one, or --no-columns",
                self.input.shown(),
                COLUMN = timestamps::COLUMN
            )));
        }
        columns.retain(|(field, _)| field.name() != timestamps::COLUMN);
        columns.push((Arc::new(timestamps::field()), times));
        let (fields, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }

    /// Checks that `schema` has the text column and that the column holds text.
    pub fn check_text_column(&self, text_column: &str, schema: &Schema) -> Outcome {
        let file = self.input.shown();
        self.columns.check(schema, &file)?;
        match schema.field_with_name(text_column) {
            Ok(field) if is_text(field.data_type()) => Ok(()),
            Ok(field) => Err(Failure::new(format!(
                "{file}: column `{text_column}` holds {}, not text; columns with text: {}",
                field.data_type(),
                names(schema, is_text)
            ))),
            Err(_) => Err(Failure::new(format!(
                "{file}: there is no column `{text_column}`; the columns are {}",
                names(schema, |_| true)
            ))),
        }
    }

    /// Builds the failure for a row at `place` that is larger than `--max-row-size`.
    pub fn too_large(&self, place: &str) -> Failure {
        Failure::new(format!(
            "{}: {place} is larger than {}; a row is held in memory as a whole: pass a larger \
             --max-row-size",
            self.input.shown(),
            display::bytes(self.options.max_row_bytes)
        ))
    }

    fn missing_text(&self, text_column: &str, place: &str) -> Failure {
        Failure::new(format!(
            "{}: {place}: `{text_column}` is missing or null; pass --allow-missing to store such rows \
             as empty documents",
            self.input.shown()
        ))
    }

    fn paths(&self, text_column: &str, batch: &RecordBatch) -> Outcome<Option<ArrayRef>> {
        let column = batch.column_by_name(PATH_COLUMN).filter(|_| text_column != PATH_COLUMN);
        Ok(column.map(|column| cast(column, &DataType::LargeUtf8)).transpose()?)
    }
}

/// Returns the field at `path`: its whole name, or the names of the structures around it and its own.
fn field_at<'a>(fields: &'a Fields, path: &str) -> Option<&'a FieldRef> {
    if let Some((_, field)) = fields.find(path) {
        return Some(field);
    }
    let (first, below) = path.split_once('.')?;
    match fields.find(first)?.1.data_type() {
        DataType::Struct(inner) => field_at(inner, below),
        _ => None,
    }
}

/// Returns the values at `path`, as [`field_at`] finds them.
fn column_at(batch: &RecordBatch, path: &str) -> Option<(FieldRef, ArrayRef)> {
    let schema = batch.schema();
    let field = Arc::clone(field_at(schema.fields(), path)?);
    let mut columns = batch.columns().to_vec();
    let mut fields = schema.fields().clone();
    let mut path = path;
    loop {
        if let Some((idx, _)) = fields.find(path) {
            return Some((field, Arc::clone(&columns[idx])));
        }
        let (first, below) = path.split_once('.')?;
        let inner = Arc::clone(&columns[fields.find(first)?.0]);
        let inner = inner.as_struct_opt()?;
        (columns, fields, path) = (inner.columns().to_vec(), inner.fields().clone(), below);
    }
}

fn other_columns(text_column: &str, batch: &RecordBatch) -> Outcome<RecordBatch> {
    let schema = batch.schema();
    let kept = schema
        .fields()
        .iter()
        .enumerate()
        .filter(|(_, field)| field.name() != text_column && field.name() != PATH_COLUMN);
    let indices: Vec<usize> = kept.map(|(idx, _)| idx).collect();
    Ok(batch.project(&indices)?)
}
