//! The user columns of rows: collects them while rows are read, and stores them in the corpus as one Parquet section.
//!
//! ```text
//! batches ──▶ one temporary file: run 0 │ run 1 │ …      a run = batches of one schema
//!                                  └──────┬──────┘
//!                    one schema (by name) ▼  casts, nulls for columns that a run lacks
//!                                    Parquet, one row per document
//! ```
//!
//! The types of JSON lines and CSV are certain only at the end, so a temporary file is needed.
//! Memory is one batch and the compressed Parquet bytes.
//!
//! The types of CSV columns are guessed ([`Guesses`]). A column gets a type only if every cell comes back as it was:
//! the cell is the text that is printed for its value. So `007`, `1.10` beside `1.9`, `12E4` and `2024-05-06 07:08:09`
//! stay texts. Numbers with one number of decimals, such as prices, become decimals, which keep their zeros. Time is
//! linear in the number of cells. A type that one value rules out is not tried again.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, SeekFrom};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::errors::ParquetError;
use datafusion_tadoc::check_type_depth;
use datafusion_tadoc::user_columns::{self, join_rows, parquet_properties, storable};
use tadoc_documents as documents;
use tadoc_documents::columns::leaves;
use tadoc_documents::{ColumnSink, Documents, Numbers};
use tadoc_session::{Failure, Outcome};

/// Names of columns that every corpus has. A user column with such a name is renamed.
const TAKEN_NAMES: [&str; 6] = ["doc_id", "path", "bytes", "words", "text", "content"];

/// Maximum nesting of structures and lists in a column. The Arrow metadata inside Parquet files is
/// read to a depth of 64.
const MAX_DEPTH: usize = 50;

/// Columns ready to be stored.
pub struct StoredColumns {
    /// Parquet bytes with one row per document.
    pub parquet: Vec<u8>,
    /// Names and types of the columns.
    pub schema: SchemaRef,
    /// Messages to the user about names and types.
    pub notes: Vec<String>,
}

/// Collects user columns row by row, in the order of the documents.
#[derive(Default)]
pub struct Columns {
    /// Guessed types, if all values are texts.
    narrow: Option<Guesses>,
    numbers: Numbers,
    runs: Vec<SchemaRun>,
    writer: Option<StreamWriter<BufWriter<File>>>,
    file: Option<File>,
    /// Paths of all columns, with the fields of structures.
    paths: HashSet<String>,
}

/// Consecutive rows with one schema.
struct SchemaRun {
    schema: SchemaRef,
    /// Start of the run in the temporary file, or `None` if the run has no columns.
    offset: Option<u64>,
    num_rows: usize,
}

impl Columns {
    /// Creates columns of `documents`. Cells of CSV are texts that may hold numbers, dates or booleans.
    pub fn for_documents(documents: &Documents) -> Self {
        match documents {
            Documents::Csv(_) | Documents::Tsv(_) => Self::from_texts(),
            _ => Self::default(),
        }
    }

    fn from_texts() -> Self {
        Self { narrow: Some(Guesses::default()), ..Self::default() }
    }

    fn push_batch(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        if self.runs.last().is_none_or(|run| run.schema != batch.schema()) {
            self.start_run(batch.schema())?;
        }
        if let Some(run) = self.runs.last_mut() {
            run.num_rows += batch.num_rows();
        }
        match &mut self.writer {
            Some(writer) => writer.write(batch),
            None => Ok(()),
        }
    }

    fn start_run(&mut self, schema: SchemaRef) -> Result<(), ArrowError> {
        self.end_run()?;
        self.paths.extend(leaves(schema.fields()));
        let mut offset = None;
        if !schema.fields().is_empty() {
            let mut file = match self.file.take() {
                Some(file) => file,
                None => tempfile::tempfile()?,
            };
            offset = Some(file.stream_position()?);
            self.writer = Some(StreamWriter::try_new(BufWriter::new(file), &schema)?);
        }
        self.runs.push(SchemaRun { schema, offset, num_rows: 0 });
        Ok(())
    }

    fn end_run(&mut self) -> Result<(), ArrowError> {
        if let Some(mut writer) = self.writer.take() {
            writer.finish()?;
            let file = writer.into_inner()?.into_inner();
            self.file = Some(file.map_err(std::io::IntoInnerError::into_error)?);
        }
        Ok(())
    }

    /// Returns all rows as Parquet, or `None` if there are no user columns.
    ///
    /// # Errors
    /// A column is nested too deeply (the text names the column), or I/O fails.
    pub fn into_parquet(mut self) -> Outcome<Option<StoredColumns>> {
        self.end_run()?;
        let schema = self.joined_schema()?;
        let Some(file) = self.file.as_mut().filter(|_| !schema.fields().is_empty()) else {
            return Ok(None);
        };
        let mut notes = Vec::new();
        let stored = Arc::new(stored_schema(&schema, &mut notes));
        let parquet = write_parquet(file, &self.runs, &schema, &stored)
            .map_err(|error| Failure::with_cause("storing columns", &error))?;
        Ok(Some(StoredColumns { parquet, schema: stored, notes }))
    }

    /// Joins the columns of all runs by name. Each gets a type that holds all of its values.
    fn joined_schema(&self) -> Outcome<Schema> {
        let mut schema = Schema::empty();
        for run in &self.runs {
            schema = join_rows(&schema, &self.numbers.typed(&run.schema));
        }
        if let Some(deep) = schema.fields().iter().find(|field| depth(field) > MAX_DEPTH) {
            return Err(Failure::new(format!(
                "column `{}` is nested {} levels deep, {MAX_DEPTH} at most can be stored; pass \
                 --no-columns to keep the text only",
                deep.name(),
                depth(deep)
            )));
        }
        let fields = schema.fields().iter().filter_map(|field| {
            let guessed = self.narrow.as_ref().and_then(|guesses| guesses.for_column(field.name()));
            let data_type = guessed.or_else(|| storable(field.data_type()))?;
            Some(Field::new(field.name(), data_type, true))
        });
        Ok(Schema::new(fields.collect::<Vec<_>>()))
    }
}

impl ColumnSink for Columns {
    fn check(&self, schema: &Schema, input: &str) -> documents::Outcome {
        check_type_depth(schema).map_err(|error| documents::Failure::with_cause(input, &error))
    }

    /// Collects the rows in a temporary file.
    fn push(&mut self, batch: &RecordBatch) -> documents::Outcome {
        match &mut self.narrow {
            Some(guesses) => guesses.observe(batch),
            None => self.numbers.observe(batch),
        }
        let pushed = self.push_batch(batch);
        let what = "collecting columns in a temporary file";
        pushed.map_err(|error| documents::Failure::with_cause(what, &error))
    }

    fn num_columns(&self) -> usize {
        self.paths.len()
    }
}

/// Returns the number of nested levels of `field`, including itself.
fn depth(field: &Field) -> usize {
    let inner = match field.data_type() {
        DataType::Struct(fields) => fields.iter().map(|field| depth(field)).max(),
        DataType::List(field) | DataType::LargeList(field) => Some(depth(field)),
        _ => None,
    };
    1 + inner.unwrap_or(0)
}

/// Renames the columns whose names are taken, and notes the new names.
fn stored_schema(schema: &Schema, notes: &mut Vec<String>) -> Schema {
    let is_taken = |name: &str| TAKEN_NAMES.contains(&name) || schema.field_with_name(name).is_ok();
    let fields = schema.fields().iter().map(|field| {
        if !TAKEN_NAMES.contains(&field.name().as_str()) {
            return field.as_ref().clone();
        }
        let mut number = 1;
        while is_taken(&format!("{}_{number}", field.name())) {
            number += 1;
        }
        let name = format!("{}_{number}", field.name());
        notes.push(format!("column `{}` is stored as `{name}`, as the name is taken", field.name()));
        field.as_ref().clone().with_name(name)
    });
    Schema::new(fields.collect::<Vec<_>>())
}

fn write_parquet(
    file: &mut File,
    runs: &[SchemaRun],
    schema: &Schema,
    stored: &SchemaRef,
) -> Result<Vec<u8>, ParquetError> {
    let mut writer = ArrowWriter::try_new(Vec::new(), stored.clone(), Some(parquet_properties()?))?;
    for run in runs {
        let Some(offset) = run.offset else {
            writer.write(&conform(&empty_rows(run)?, schema, stored)?)?;
            continue;
        };
        file.seek(SeekFrom::Start(offset))?;
        for batch in StreamReader::try_new(BufReader::new(&mut *file), None)? {
            writer.write(&conform(&batch?, schema, stored)?)?;
        }
    }
    writer.into_inner()
}

fn empty_rows(run: &SchemaRun) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(run.num_rows));
    RecordBatch::try_new_with_options(run.schema.clone(), Vec::new(), &options)
}

/// Returns `batch` with the columns of `schema`, under the names in `stored`.
fn conform(batch: &RecordBatch, schema: &Schema, stored: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let column = |field: &Arc<Field>| -> Result<ArrayRef, ArrowError> {
        match batch.column_by_name(field.name()) {
            Some(column) => user_columns::conform(column, field.data_type()),
            None => Ok(new_null_array(field.data_type(), batch.num_rows())),
        }
    };
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new(stored.clone(), columns)
}

/// Number of digits with which each decimal number has a float of its own.
const FLOAT_DIGITS: usize = 15;

/// The types that are still possible for each column.
#[derive(Default)]
pub struct Guesses(HashMap<String, Guess>);

impl Guesses {
    /// Tests all values of `batch`.
    pub fn observe(&mut self, batch: &RecordBatch) {
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            // A column of timestamps has its type already.
            let Some(values) = column.as_string_opt::<i32>() else { continue };
            let guess = self.0.entry(field.name().clone()).or_default();
            values.iter().flatten().for_each(|value| guess.observe(value));
        }
    }

    /// Returns the narrowest type that holds all values of `column`.
    pub fn for_column(&self, column: &str) -> Option<DataType> {
        self.0.get(column).map(Guess::data_type)
    }
}

#[derive(Clone, Copy)]
struct Guess {
    is_seen: bool,
    boolean: bool,
    integer: bool,
    float: bool,
    decimal: Decimal,
    date: bool,
    timestamp: bool,
}

impl Default for Guess {
    fn default() -> Self {
        Self {
            is_seen: false,
            boolean: true,
            integer: true,
            float: true,
            decimal: Decimal::Any,
            date: true,
            timestamp: true,
        }
    }
}

impl Guess {
    fn observe(&mut self, value: &str) {
        self.is_seen = true;
        self.boolean = self.boolean && matches!(value, "true" | "false");
        self.integer = self.integer && is_integer(value);
        self.float = self.float && is_float(value);
        self.decimal = self.decimal.with(value);
        self.date = self.date && is_date(value);
        self.timestamp = self.timestamp && is_timestamp(value);
    }

    fn data_type(&self) -> DataType {
        match self {
            Self { is_seen: false, .. } => DataType::Utf8,
            Self { boolean: true, .. } => DataType::Boolean,
            Self { integer: true, .. } => DataType::Int64,
            Self { float: true, .. } => DataType::Float64,
            Self { decimal: Decimal::Digits { whole, scale }, .. } => {
                DataType::Decimal128(whole + scale, i8::try_from(*scale).unwrap_or(i8::MAX))
            }
            Self { date: true, .. } => DataType::Date32,
            Self { timestamp: true, .. } => DataType::Timestamp(TimeUnit::Microsecond, None),
            _ => DataType::Utf8,
        }
    }
}

/// The decimal type that is still possible.
#[derive(Clone, Copy)]
enum Decimal {
    /// No value was seen.
    Any,
    /// Each value has `scale` digits behind the point, and at most `whole` before it.
    Digits { whole: u8, scale: u8 },
    /// No decimal type fits.
    None,
}

impl Decimal {
    fn with(self, value: &str) -> Self {
        if matches!(self, Self::None) {
            return self;
        }
        let Some((whole, scale)) = decimal_digits(value) else { return Self::None };
        match self {
            Self::Digits { scale: other, .. } if scale != other => Self::None,
            Self::Digits { whole: other, .. } => Self::within_limits(whole.max(other), scale),
            _ => Self::within_limits(whole, scale),
        }
    }

    fn within_limits(whole: u8, scale: u8) -> Self {
        if whole + scale <= DECIMAL128_MAX_PRECISION { Self::Digits { whole, scale } } else { Self::None }
    }
}

/// Returns the numbers of digits before and behind the point of a number that a decimal prints as it is.
fn decimal_digits(value: &str) -> Option<(u8, u8)> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let (whole, fraction) = digits.split_once('.')?;
    let is_negative_zero = digits.len() < value.len() && digits.bytes().all(|b| matches!(b, b'0' | b'.'));
    let is_plain = are_digits(fraction) && is_whole(whole) && !is_negative_zero;
    let fits = whole.len() + fraction.len() <= usize::from(DECIMAL128_MAX_PRECISION);
    if is_plain && fits { Some((u8::try_from(whole.len()).ok()?, u8::try_from(fraction.len()).ok()?)) } else { None }
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true for digits without a zero in front of others.
fn is_whole(text: &str) -> bool {
    are_digits(text) && (text.len() == 1 || !text.starts_with('0'))
}

fn is_integer(value: &str) -> bool {
    value.parse::<i64>().is_ok_and(|number| number.to_string() == value)
}

/// Returns true for a number that is printed as it is written.
fn is_float(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return false;
    }
    if let Some((whole, fraction)) = digits.split_once('.') {
        // Numbers such as 0.00001 may be printed with an exponent.
        let is_usual = is_whole(whole) && are_digits(fraction) && !fraction.starts_with("0000");
        let has_extra_zeros = fraction.len() > 1 && fraction.ends_with('0');
        if is_usual && whole.len() + fraction.len() <= FLOAT_DIGITS {
            return !has_extra_zeros;
        }
    }
    let Ok(number) = value.parse::<f64>() else { return false };
    if (1e-4..1e16).contains(&number.abs()) {
        return format!("{number:?}") == value;
    }
    number.is_finite() && printed(number).is_some_and(|text| text == value)
}

/// Returns the text that statements print.
fn printed(number: f64) -> Option<String> {
    array_value_to_string(&Float64Array::from(vec![number]), 0).ok()
}

/// Returns the number that the `len` digits of `text` are.
fn number(text: &str, len: usize) -> Option<u32> {
    let is_number = text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Returns true for `YYYY-MM-DD` with a day that exists.
fn is_date(value: &str) -> bool {
    let parts: Vec<&str> = value.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    match (number(year, 4), number(month, 2), number(day, 2)) {
        (Some(year), Some(month), Some(day)) => (1..=days_of(year, month)).contains(&day),
        _ => false,
    }
}

fn days_of(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => 0,
    }
}

/// Returns true for a date, `T`, `HH:MM:SS`, and three or six digits of a second unless they are zeros, as
/// timestamps are printed. Time zones are not allowed.
fn is_timestamp(value: &str) -> bool {
    let Some((date, time)) = value.split_once('T') else { return false };
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let parts: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = parts[..] else { return false };
    let below = |text: &str, limit: u32| {
        text.len() == 2
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && text.parse::<u32>().is_ok_and(|number| number < limit)
    };
    let has_fraction = time.len() < value.len() - date.len() - 1;
    let is_fraction = match fraction.len() {
        0 => !has_fraction,
        3 | 6 => are_digits(fraction) && !fraction.ends_with("000"),
        _ => false,
    };
    is_date(date) && below(hour, 24) && below(minute, 60) && below(second, 60) && is_fraction
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
    use datafusion::arrow::compute::{CastOptions, cast_with_options};
    use datafusion::arrow::datatypes::{Float64Type, Int64Type};
    use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use testkit::random::Random;

    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
            .unwrap()
    }

    fn read_back(stored: StoredColumns) -> RecordBatch {
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(stored.parquet)).unwrap();
        reader.build().unwrap().next().unwrap().unwrap()
    }

    #[test]
    fn runs_with_other_columns_and_types_are_joined_by_name() {
        let mut columns = Columns::default();
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let floats: ArrayRef = Arc::new(datafusion::arrow::array::Float64Array::from(vec![0.5]));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
        columns.push(&batch(vec![("n", ints)])).unwrap();
        columns.push(&batch(vec![("text", names), ("n", floats)])).unwrap();
        columns.push(&RecordBatch::new_empty(Arc::new(Schema::empty()))).unwrap();
        let stored = columns.into_parquet().unwrap().unwrap();
        assert_eq!(stored.notes, ["column `text` is stored as `text_1`, as the name is taken"]);
        let rows = read_back(stored);
        let numbers = rows.column_by_name("n").unwrap().as_primitive::<Float64Type>();
        assert_eq!(numbers.values(), &[1.0, 2.0, 0.5]);
        let names = rows.column_by_name("text_1").unwrap().as_string::<i32>();
        assert_eq!(names.iter().collect::<Vec<_>>(), [None, None, Some("x")]);
    }

    #[test]
    fn texts_become_numbers_only_where_nothing_is_lost() {
        let mut columns = Columns::from_texts();
        let column = |values: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(values)) };
        let rows = batch(vec![("year", column(vec!["1999", "-2000"])), ("zip", column(vec!["01234", "99999"]))]);
        columns.push(&rows).unwrap();
        let rows = read_back(columns.into_parquet().unwrap().unwrap());
        let years = rows.column_by_name("year").unwrap().as_primitive::<Int64Type>();
        assert_eq!(years.values(), &[1999, -2000]);
        assert_eq!(rows.column_by_name("zip").unwrap().data_type(), &DataType::Utf8);
    }

    #[test]
    fn without_columns_nothing_is_stored() {
        assert!(Columns::default().into_parquet().unwrap().is_none());
        let mut columns = Columns::default();
        let options = RecordBatchOptions::new().with_row_count(Some(3));
        let schema = Arc::new(Schema::empty());
        let rows = RecordBatch::try_new_with_options(schema, Vec::new(), &options).unwrap();
        columns.push(&rows).unwrap();
        assert!(columns.into_parquet().unwrap().is_none());
    }

    /// Returns the guessed type, after a check that every value comes back as it was.
    fn guess(values: &[&str]) -> DataType {
        let mut guess = Guess::default();
        values.iter().for_each(|value| guess.observe(value));
        let column: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let typed = cast_with_options(&column, &guess.data_type(), &options).unwrap();
        for (idx, value) in values.iter().enumerate() {
            assert_eq!(array_value_to_string(&typed, idx).unwrap(), *value, "{values:?}");
        }
        guess.data_type()
    }

    #[test]
    fn types_are_guessed_when_every_value_comes_back() {
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert_eq!(guess(&["true", "false"]), DataType::Boolean);
        assert_eq!(guess(&["1", "-2", "9223372036854775807"]), DataType::Int64);
        assert_eq!(guess(&["1.0", "2.5", "-0.001"]), DataType::Float64);
        assert_eq!(guess(&["0.12345678901234568", "-0.0", "1e20"]), DataType::Float64);
        assert_eq!(guess(&["1.10", "12.50", "-3.00", "0.05"]), DataType::Decimal128(4, 2));
        assert_eq!(guess(&["2024-02-29", "1970-01-01"]), DataType::Date32);
        assert_eq!(guess(&["2024-02-29T23:59:59", "2024-01-01T00:00:00.123456"]), timestamp);
        assert_eq!(guess(&["2024-02-29T23:59:59.120"]), timestamp);
    }

    #[test]
    fn doubtful_values_stay_texts() {
        let cases = [
            "",
            "007",
            "+1",
            "1_000",
            "9223372036854775808",
            "1.",
            ".5",
            "00.5",
            "-0.00",
            "NaN",
            "inf",
            "12E4",
            "1e5",
            "1e-3",
            "1e+20",
            "2023-02-29",
            "2024-1-1",
            "24:00:00",
            "2024-01-01 00:00:00",
            "2024-01-01T24:00:00",
            "2024-01-01T00:00:00Z",
            "2024-01-01T00:00:00.",
            "2024-01-01T00:00:00.5",
            "2024-01-01T00:00:00.000",
            "2024-01-01T00:00:00.120000",
            "2024-01-01T00:00:00.1234567",
            "TRUE",
            "1e999",
        ];
        for value in cases {
            assert_eq!(guess(&[value]), DataType::Utf8, "{value}");
        }
        for values in [["1", "x"], ["1.9", "1.10"], ["1", "2.5"], ["1.50", "2.5"], ["12.5", "1e5"]] {
            assert_eq!(guess(&values), DataType::Utf8, "{values:?}");
        }
        assert_eq!(guess(&[]), DataType::Utf8);
    }

    #[test]
    fn numbers_of_any_form_come_back() {
        let digits = ["0", "1", "9", "10", "00", "5", "000", "123456789", ".", "-", "e", "E", "+"];
        for case in 0..20_000 {
            let random = &mut Random(case);
            let number =
                |random: &mut Random| -> String { (0..=random.below(5)).map(|_| *random.pick(&digits)).collect() };
            let values: Vec<String> = (0..=random.below(2)).map(|_| number(random)).collect();
            guess(&values.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}
