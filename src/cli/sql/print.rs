//! Prints rows to standard output.
//!
//! csv, tsv, json and ndjson are streamed batch by batch and are always complete. (The printer of
//! datafusion-cli keeps only `maxrows` rows.) Lists are JSON in csv and tsv. A table needs the widths
//! of all columns first. It collects the [cells](BoundedTable) that it shows and counts the other rows.
//!
//! JSON has every column in every row: NULL is `null`, as with `duckdb -json`. So are NaN and infinite
//! numbers, which JSON cannot write. (datafusion-cli leaves columns that are NULL out of a row.)
//!
//! The options have the names of datafusion-cli.

use std::collections::HashSet;
use std::io::{self, BufWriter, ErrorKind, Write, stdout};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::arrow::json::writer::{
    EncoderOptions, JsonArray, LineDelimited, WriterBuilder as JsonBuilder, make_encoder,
};
use datafusion::common::plan_err;
use datafusion::config::FormatOptions;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryPool;
use futures::StreamExt;
use tadoc_documents::display;
use tadoc_session::{BoundedTable, MaxWidth};

/// Numbers of rows: those of the result, and those written.
pub struct Printed {
    num_rows: u64,
    num_shown: u64,
    is_relation: bool,
}

/// Formats the footer, such as `12 rows, 0.34 s`.
pub fn footer(printed: &Printed, elapsed: Duration) -> String {
    let time = display::seconds(elapsed);
    match (printed.is_relation, printed.num_shown < printed.num_rows) {
        (false, _) => format!("done, {time}"),
        (true, false) => format!("{}, {time}", display::plural(printed.num_rows, "row")),
        (true, true) => format!(
            "{}, {} shown (--maxrows inf shows all), {time}",
            display::plural(printed.num_rows, "row"),
            display::grouped(printed.num_shown)
        ),
    }
}

/// Options of a table that is shown.
pub struct TableOptions<'a> {
    /// Maximum width of a cell.
    pub max_width: MaxWidth,
    /// Texts of NULL, of times and the like.
    pub format: &'a FormatOptions,
    /// Memory of the cells.
    pub pool: &'a Arc<dyn MemoryPool>,
}

/// Writes all rows of `stream`.
pub async fn print(
    stream: SendableRecordBatchStream,
    options: &PrintOptions,
    table_options: &TableOptions<'_>,
) -> Result<Printed> {
    let is_closed = AtomicBool::new(false);
    let mut writer = BufWriter::new(Reader { is_closed: &is_closed });
    let max_rows = match options.max_rows {
        MaxRows::Limited(max_rows) if table_options.max_width != MaxWidth::Lines => max_rows,
        _ => usize::MAX,
    };
    let printed = match options.format {
        Format::Table | Format::Automatic => print_table(stream, &mut writer, max_rows, table_options).await,
        Format::Csv => print_separated(stream, &mut writer, b',').await,
        Format::Tsv => print_separated(stream, &mut writer, b'\t').await,
        Format::Json => print_json(stream, &mut writer).await,
        Format::Ndjson => print_json_lines(stream, &mut writer).await,
    };
    let printed = printed.and_then(|printed| writer.flush().map(|()| printed).map_err(Into::into));
    // The writers of formats wrap I/O errors in texts, so the kind is taken from `is_closed`.
    match printed {
        Err(_) if is_closed.load(Ordering::Relaxed) => Err(io::Error::from(ErrorKind::BrokenPipe).into()),
        printed => printed,
    }
}

/// Standard output. It notes when its reader closes it.
struct Reader<'a> {
    is_closed: &'a AtomicBool,
}

impl Reader<'_> {
    fn noted<T>(&self, written: io::Result<T>) -> io::Result<T> {
        written.inspect_err(|error| {
            self.is_closed.fetch_or(error.kind() == ErrorKind::BrokenPipe, Ordering::Relaxed);
        })
    }
}

impl Write for Reader<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.noted(stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.noted(stdout().flush())
    }
}

async fn print_table(
    mut stream: SendableRecordBatchStream,
    writer: &mut dyn Write,
    max_rows: usize,
    options: &TableOptions<'_>,
) -> Result<Printed> {
    let schema = stream.schema();
    let format = options.format.try_into()?;
    let mut table = BoundedTable::new(&schema, format, options.max_width, options.pool);
    let mut printed = Printed::from_schema(&schema);
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        let room = max_rows.saturating_sub(printed.num_shown as usize).min(batch.num_rows());
        printed.num_rows += batch.num_rows() as u64;
        printed.num_shown += room as u64;
        table.push(&batch.slice(0, room))?;
    }
    if printed.is_relation && max_rows > 0 {
        writeln!(writer, "{table}")?;
    }
    Ok(printed)
}

async fn print_separated(
    mut stream: SendableRecordBatchStream,
    writer: &mut dyn Write,
    delimiter: u8,
) -> Result<Printed> {
    let schema = stream.schema();
    let mut printed = Printed::from_schema(&schema);
    if !printed.is_relation {
        while let Some(batch) = stream.next().await {
            batch?;
        }
        return Ok(printed);
    }
    let mut writer = WriterBuilder::new().with_header(true).with_delimiter(delimiter).build(writer);
    // Without a batch the writer would write no header.
    writer.write(&flat(&RecordBatch::new_empty(schema))?)?;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        printed.count(&batch);
        writer.write(&flat(&batch)?)?;
    }
    Ok(printed)
}

/// Returns `batch` with JSON in place of lists and other nested values.
fn flat(batch: &RecordBatch) -> Result<RecordBatch> {
    let column = |(field, column): (&FieldRef, &ArrayRef)| -> Result<(FieldRef, ArrayRef)> {
        if !field.data_type().is_nested() {
            return Ok((Arc::clone(field), Arc::clone(column)));
        }
        let options = EncoderOptions::default().with_explicit_nulls(true);
        let mut encoder = make_encoder(field, column, &options)?;
        let json = (0..column.len()).map(|row| {
            let mut bytes = Vec::new();
            (!encoder.is_null(row)).then(|| encoder.encode(row, &mut bytes))?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        });
        let field = Field::new(field.name(), DataType::Utf8, true);
        Ok((Arc::new(field), Arc::new(json.collect::<StringArray>())))
    };
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).map(column);
    let (fields, columns): (Vec<_>, Vec<_>) = columns.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}

async fn print_json(mut stream: SendableRecordBatchStream, writer: &mut dyn Write) -> Result<Printed> {
    check_names(&stream.schema())?;
    let mut printed = Printed::from_schema(&stream.schema());
    let builder = JsonBuilder::new().with_explicit_nulls(true);
    let mut json = builder.build::<_, JsonArray>(&mut *writer);
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        printed.count(&batch);
        json.write(&batch)?;
    }
    if printed.is_relation {
        json.finish()?;
        writeln!(writer)?;
    }
    Ok(printed)
}

async fn print_json_lines(mut stream: SendableRecordBatchStream, writer: &mut dyn Write) -> Result<Printed> {
    check_names(&stream.schema())?;
    let mut printed = Printed::from_schema(&stream.schema());
    let builder = JsonBuilder::new().with_explicit_nulls(true);
    let mut json = builder.build::<_, LineDelimited>(writer);
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        printed.count(&batch);
        json.write(&batch)?;
    }
    json.finish()?;
    Ok(printed)
}

/// Refuses columns of one name: of a JSON object with equal names readers take one.
fn check_names(schema: &SchemaRef) -> Result<()> {
    let mut names = HashSet::new();
    for field in schema.fields() {
        let name = field.name();
        if !names.insert(name) {
            return plan_err!(
                "JSON has one value for each name, and two columns are named {name}; name them with AS, or write csv"
            );
        }
    }
    Ok(())
}

impl Printed {
    /// Creates counts of 0. Statements such as CREATE give a relation without columns.
    fn from_schema(schema: &SchemaRef) -> Self {
        Self { num_rows: 0, num_shown: 0, is_relation: !schema.fields().is_empty() }
    }

    fn count(&mut self, batch: &RecordBatch) {
        self.num_rows += batch.num_rows() as u64;
        self.num_shown += batch.num_rows() as u64;
    }
}

/// An output format. datafusion-cli calls ndjson `nd-json` in some places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Csv,
    Tsv,
    Json,
    #[value(alias = "nd-json")]
    Ndjson,
    Automatic,
}

/// The maximum number of rows that a table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxRows {
    Unlimited,
    Limited(usize),
}

impl FromStr for MaxRows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if ["inf", "infinite", "none"].iter().any(|name| text.eq_ignore_ascii_case(name)) {
            return Ok(Self::Unlimited);
        }
        let max_rows = text.parse().map(Self::Limited);
        max_rows.map_err(|_| format!("expected a number of rows, or inf for all; got `{text}`"))
    }
}

/// Options of printed rows.
#[derive(Debug, Clone, Copy)]
pub struct PrintOptions {
    pub format: Format,
    pub max_rows: MaxRows,
    /// Prints only rows.
    pub quiet: bool,
}

impl PrintOptions {
    /// Returns the options of tables that are shown whole.
    pub fn whole_tables() -> Self {
        Self { format: Format::Table, max_rows: MaxRows::Unlimited, quiet: true }
    }
}
