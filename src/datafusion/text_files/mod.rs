//! Text files that DataFusion reads, under more names (`.jsonl`, `.ndjson` and `.tsv`), with exact numbers and times.
//!
//! ```text
//! CREATE EXTERNAL TABLE t (price DECIMAL(9, 2)) STORED AS CSV …
//! scan of price: DECIMAL   ─▶   declared_value(price, DECIMAL, file, column) over a scan of price: text
//! ```
//!
//! DataFusion finds a format by the name of a file or by `STORED AS`. It knows `json`, by which it means a JSON value
//! in each line, and `csv`. Here these two get more names. Endings of compressed files (`.jsonl.gz`) follow from them.
//! A byte order mark before JSON is skipped ([`json`]).
//!
//! Arrow's readers of CSV and JSON count the digits of a number in 8 bits, keep its mantissa in the bits of the type,
//! and its exponent in 16 bits. So a long number comes out as another one. A rule of the physical optimizer changes
//! scans of columns that a table declares as decimals: they read texts, and a function reads the numbers. Digits behind
//! the declared scale are cut, as Arrow does.
//!
//! Arrow's reader of JSON also cuts the fraction of a number where whole ones are read, which a table declares or the
//! first rows of a file have, and refuses a number where texts are read. That of CSV cuts a time of the day behind a
//! date, and parts of a second behind whole seconds, ms or µs. So these columns are read as texts, too. What would be
//! cut is an error. So is a whole number of JSON that a float would round, where no table declares the column as one.
//!
//! A scan of CSV stays a scan of DataFusion, so it travels to workers. A scan of JSON is one of this crate
//! ([`JsonTexts`]), so it is changed where it runs. There scans of CSV get a look at their quotation marks, too
//! ([`csv`]).

use std::borrow::Cow;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, PrimitiveArray, make_array,
};
use datafusion::arrow::compute::kernels::cast_utils::{Parser, string_to_datetime};
use datafusion::arrow::datatypes::{
    ArrowNativeType, DECIMAL128_MAX_PRECISION, DataType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DecimalType, Field, FieldRef, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Schema,
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::Session;
use datafusion::common::config::{CsvOptions, JsonOptions};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::utils::take_function_args;
use datafusion::common::{GetExt, exec_datafusion_err, exec_err, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::file_format::csv::{CsvFormat, CsvFormatFactory};
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::{CsvSource, FileSource, JsonSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions::core::input_file_name;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::projection::{ProjectionExpr, ProjectionExprs};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion::scalar::ScalarValue;
use datafusion_datasource::boundary_stream::AlignedBoundaryStream;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStore;

use crate::depth::inner_types;
use crate::plan_methods::with_sources;
use crate::planner::has_type;
use crate::text_files::csv::with_checked_csv;
use crate::text_files::json::{JsonTexts, num_first_rows, with_marked_json};
use crate::text_files::json_format::has_digits_alone;

mod csv;
mod json;
mod json_format;

pub(crate) use json_format::wrap_json_format;
pub use json_format::{json_format, json_options};

/// A name of a format of DataFusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFile {
    /// A JSON value in each line.
    Jsonl,
    /// The same by its other name.
    Ndjson,
    /// Values with tabs between them.
    Tsv,
}

impl TextFile {
    /// All names.
    pub(crate) const ALL: [Self; 3] = [Self::Jsonl, Self::Ndjson, Self::Tsv];
}

impl GetExt for TextFile {
    fn get_ext(&self) -> String {
        match self {
            Self::Jsonl => "jsonl".into(),
            Self::Ndjson => "ndjson".into(),
            Self::Tsv => "tsv".into(),
        }
    }
}

impl FileFormatFactory for TextFile {
    fn create(&self, session: &dyn Session, format_options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        match self {
            Self::Jsonl | Self::Ndjson => json_format::session_format(session, format_options),
            Self::Tsv => {
                let mut format_options = format_options.clone();
                let delimiter = format_options.entry("format.delimiter".into());
                delimiter.or_insert_with(|| "\t".into());
                CsvFormatFactory::new().create(session, &format_options)
            }
        }
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        match self {
            Self::Jsonl | Self::Ndjson => json_format(JsonOptions::default()),
            Self::Tsv => Arc::new(CsvFormat::default().with_delimiter(b'\t')),
        }
    }
}

const NANOS: i128 = 1_000_000_000;
const NANOS_OF_DAY: i128 = 24 * 60 * 60 * NANOS;
/// Digits that a float keeps of each number.
const MAX_KEPT_DIGITS: usize = 15;
/// Most characters of a cell in an error.
const MAX_SHOWN: usize = 40;

/// Optimizer rule that makes scans of CSV files read decimals and times as texts.
#[derive(Debug, Default)]
pub(crate) struct DeclaredValues;

impl PhysicalOptimizerRule for DeclaredValues {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        exact_scans(plan, config, |_| &CSV)
    }

    fn name(&self) -> &str {
        "tadoc_declared_values"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns `plan`, which runs here, with scans of JSON that read decimals and whole numbers as texts, and marks as
/// blanks, and with scans of CSV that refuse values that take rows.
pub(crate) fn with_exact_texts(plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
    let inexact = |columns: &Schema| if num_first_rows(columns).is_some() { &FOUND_JSON } else { &JSON };
    let plan = with_marked_json(exact_scans(plan, config, inexact)?)?;
    with_checked_csv(plan)
}

/// Returns the error of rows of `file`. An error of its bytes names the file already.
fn error_of_rows(file: &str, error: ArrowError) -> DataFusionError {
    match error {
        ArrowError::ExternalError(error) => match error.downcast::<DataFusionError>() {
            Ok(error) => *error,
            Err(error) => DataFusionError::External(error),
        },
        error => exec_datafusion_err!("{file}: {error}"),
    }
}

/// Returns the lines that begin in a part of a file. A `line_end` is behind each of them.
async fn part_of_file(
    store: &Arc<dyn ObjectStore>,
    file: &PartitionedFile,
    range: &FileRange,
    line_end: u8,
) -> Result<BoxStream<'static, Result<Bytes>>> {
    let location = &file.object_meta.location;
    let (Ok(start), Ok(end)) = (u64::try_from(range.start), u64::try_from(range.end)) else {
        return internal_err!("a part of {location} from {} to {}", range.start, range.end);
    };
    let store = Arc::clone(store);
    let num_bytes = file.object_meta.size;
    let lines = AlignedBoundaryStream::new(store, location.clone(), start, end, num_bytes, line_end).await?;
    Ok(lines.map_err(DataFusionError::from).boxed())
}

/// A function that returns a source of texts for another source; `None` for sources of other formats.
type SourceOfTexts = fn(&dyn FileSource, TableSchema, &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>>;

/// A function that returns true for some types.
type TypeTest = fn(&DataType) -> bool;

/// Sources of a format whose readers do not give all values as they are.
struct Inexact {
    /// Returns true for the types of such values.
    has: TypeTest,
    of_texts: SourceOfTexts,
}

const CSV: Inexact = Inexact { has: is_decimal_or_time, of_texts: exact_csv };
const JSON: Inexact = Inexact { has: is_whole_or_text, of_texts: exact_json };
/// JSON with columns that no table declares.
const FOUND_JSON: Inexact = Inexact { has: is_number_or_text, of_texts: exact_json };

/// Returns true for decimals and whole numbers, and for texts, which Arrow refuses where a number stands.
fn is_whole_or_text(kind: &DataType) -> bool {
    kind.is_decimal() || kind.is_integer() || kind.is_string()
}

/// Returns true for the types of [`is_whole_or_text`], and for floats, in which whole numbers may be rounded.
fn is_number_or_text(kind: &DataType) -> bool {
    is_whole_or_text(kind) || *kind == DataType::Float64
}

fn is_decimal_or_time(kind: &DataType) -> bool {
    let is_whole = |unit: &TimeUnit| *unit != TimeUnit::Nanosecond;
    match kind {
        DataType::Date32 => true,
        DataType::Timestamp(unit, None) => is_whole(unit),
        kind => kind.is_decimal(),
    }
}

fn exact_scans(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
    inexact: impl Fn(&Schema) -> &'static Inexact,
) -> Result<Arc<dyn ExecutionPlan>> {
    let config = Arc::new(config.clone());
    with_sources(plan, |source| {
        let (Some(projection), declared) = (source.projection(), source.table_schema()) else { return Ok(None) };
        let inexact = inexact(declared.file_schema());
        match exact_projection(projection, declared.file_schema(), inexact.has, &config)? {
            Some(projection) => (inexact.of_texts)(source.as_ref(), table_of_texts(declared, inexact.has), &projection),
            None => Ok(None),
        }
    })
}

fn exact_csv(
    source: &dyn FileSource,
    texts: TableSchema,
    projection: &ProjectionExprs,
) -> Result<Option<Arc<dyn FileSource>>> {
    match source.downcast_ref::<CsvSource>() {
        Some(source) => CsvSource::new(texts).with_csv_options(options_of(source)).try_pushdown_projection(projection),
        None => Ok(None),
    }
}

fn exact_json(
    source: &dyn FileSource,
    texts: TableSchema,
    projection: &ProjectionExprs,
) -> Result<Option<Arc<dyn FileSource>>> {
    let Some(declared) = source.downcast_ref::<JsonSource>() else { return Ok(None) };
    let source = JsonSource::new(texts).try_pushdown_projection(projection)?;
    Ok(source.map(|source| Arc::new(JsonTexts::new(source, Arc::new(declared.clone()))) as _))
}

/// Returns `projection` with the function around the values of a file for whose types `has` returns true; `None` if it
/// has none.
fn exact_projection(
    projection: &ProjectionExprs,
    declared: &Schema,
    has: TypeTest,
    config: &Arc<ConfigOptions>,
) -> Result<Option<ProjectionExprs>> {
    let mut is_changed = false;
    let mut exact = Vec::new();
    for one in projection.iter() {
        let expr = Arc::clone(&one.expr).transform_up(|expr| {
            let column = expr.downcast_ref::<Column>();
            let field = column.and_then(|column| declared.fields().get(column.index()));
            Ok(match field.filter(|field| is_read_as_text(field.data_type(), has)) {
                Some(field) => Transformed::yes(exact_column(&expr, field, config)),
                None => Transformed::no(expr),
            })
        })?;
        is_changed |= expr.transformed;
        exact.push(ProjectionExpr::new(expr.data, one.alias.clone()));
    }
    Ok(is_changed.then(|| ProjectionExprs::from(exact)))
}

/// Returns the value of a `column` of texts that is declared as `field`.
fn exact_column(
    column: &Arc<dyn PhysicalExpr>,
    field: &FieldRef,
    config: &Arc<ConfigOptions>,
) -> Arc<dyn PhysicalExpr> {
    let call = |function: Arc<ScalarUDF>, arguments, returned: FieldRef| -> Arc<dyn PhysicalExpr> {
        let name = function.name().to_owned();
        Arc::new(ScalarFunctionExpr::new(&name, function, arguments, returned, Arc::clone(config)))
    };
    // The scan puts the name of each file in its place.
    let file = call(input_file_name(), Vec::new(), Arc::new(Field::new("file", DataType::Utf8, true)));
    let kind = ScalarValue::try_new_null(field.data_type()).unwrap_or(ScalarValue::Null);
    let kind = Arc::new(Literal::new(kind));
    let name = Arc::new(Literal::new(ScalarValue::from(field.name().as_str())));
    let arguments = vec![Arc::clone(column), kind, file, name];
    call(Arc::new(DeclaredValue::new().into()), arguments, Arc::clone(field))
}

fn table_of_texts(declared: &TableSchema, has: TypeTest) -> TableSchema {
    let file_schema = declared.file_schema();
    let fields = file_schema.fields().iter().map(|field| field_of_texts(field, has)).collect::<Vec<_>>();
    let texts = Schema::new_with_metadata(fields, file_schema.metadata().clone());
    TableSchema::builder(Arc::new(texts))
        .with_table_partition_cols(declared.table_partition_cols().clone())
        .with_virtual_columns(declared.virtual_columns().clone())
        .build()
}

fn field_of_texts(field: &FieldRef, has: TypeTest) -> FieldRef {
    match type_of_texts(field.data_type(), has) {
        Cow::Borrowed(_) => Arc::clone(field),
        Cow::Owned(kind) => Arc::new(field.as_ref().clone().with_data_type(kind)),
    }
}

/// Returns the type that is read for a declared one: the same, with texts where `has` returns true.
fn type_of_texts<'a>(declared: &'a DataType, has: TypeTest) -> Cow<'a, DataType> {
    let texts = |field: &FieldRef| field_of_texts(field, has);
    let read = match declared {
        kind if !has_type(kind, &has) => return Cow::Borrowed(declared),
        kind if has(kind) && kind.is_string() => kind.clone(),
        kind if has(kind) => DataType::Utf8,
        DataType::List(field) => DataType::List(texts(field)),
        DataType::LargeList(field) => DataType::LargeList(texts(field)),
        DataType::FixedSizeList(field, length) => DataType::FixedSizeList(texts(field), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(texts).collect()),
        DataType::Map(field, is_sorted) => DataType::Map(texts(field), *is_sorted),
        // Readers of texts know no other types with types inside.
        _ => return Cow::Borrowed(declared),
    };
    Cow::Owned(read)
}

fn is_read_as_text(declared: &DataType, has: TypeTest) -> bool {
    matches!(type_of_texts(declared, has), Cow::Owned(_))
}

/// Returns the options of a source, which has them for itself.
fn options_of(source: &CsvSource) -> CsvOptions {
    CsvOptions {
        has_header: Some(source.has_header()),
        delimiter: source.delimiter(),
        quote: source.quote(),
        terminator: source.terminator(),
        escape: source.escape(),
        comment: source.comment(),
        newlines_in_values: Some(source.newlines_in_values()),
        truncated_rows: Some(source.truncate_rows()),
        ..CsvOptions::default()
    }
}

/// The function that reads numbers and times of a type from a column of texts.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct DeclaredValue {
    signature: Signature,
}

impl DeclaredValue {
    /// Creates the function of a text, a NULL of the declared type, the name of the file, and the column's name.
    pub(crate) fn new() -> Self {
        Self { signature: Signature::any(4, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for DeclaredValue {
    fn name(&self) -> &str {
        "declared_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [_, kind, _, _] = take_function_args(self.name(), arguments)?;
        Ok(kind.clone())
    }

    /// Keeps the order of its text, which is the order that the table declares for the numbers.
    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        let text = inputs.first().map(|text| text.sort_properties);
        Ok(text.unwrap_or(SortProperties::Unordered))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let num_rows = args.number_rows;
        let [texts, kind, file, column] = take_function_args(self.name(), args.args)?;
        let texts = texts.into_array(num_rows)?;
        let kind = kind.data_type();
        let place = Place { file: text_of(&file), column: text_of(&column) };
        place.declared(&texts, &kind).map(ColumnarValue::Array)
    }
}

/// Returns the text of an argument that is the same in all rows.
fn text_of(argument: &ColumnarValue) -> &str {
    match argument {
        ColumnarValue::Scalar(scalar) => scalar.try_as_str().flatten().unwrap_or_default(),
        ColumnarValue::Array(_) => "",
    }
}

/// A column of a file, for errors.
struct Place<'a> {
    file: &'a str,
    column: &'a str,
}

impl Place<'_> {
    /// Returns `array` with the values of `kind` instead of texts.
    fn declared(&self, array: &ArrayRef, kind: &DataType) -> Result<ArrayRef> {
        match kind {
            kind if array.data_type() == kind => Ok(Arc::clone(array)),
            DataType::Int8 => self.whole_numbers::<Int8Type>(array, kind),
            DataType::Int16 => self.whole_numbers::<Int16Type>(array, kind),
            DataType::Int32 => self.whole_numbers::<Int32Type>(array, kind),
            DataType::Int64 => self.whole_numbers::<Int64Type>(array, kind),
            DataType::UInt8 => self.whole_numbers::<UInt8Type>(array, kind),
            DataType::UInt16 => self.whole_numbers::<UInt16Type>(array, kind),
            DataType::UInt32 => self.whole_numbers::<UInt32Type>(array, kind),
            DataType::UInt64 => self.whole_numbers::<UInt64Type>(array, kind),
            DataType::Float64 => self.floats(array, kind),
            DataType::Date32 => self.times::<Date32Type>(array, kind, days),
            DataType::Timestamp(TimeUnit::Second, None) => {
                self.times::<TimestampSecondType>(array, kind, |time| whole_parts(time, 1_000_000_000))
            }
            DataType::Timestamp(TimeUnit::Millisecond, None) => {
                self.times::<TimestampMillisecondType>(array, kind, |time| whole_parts(time, 1_000_000))
            }
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                self.times::<TimestampMicrosecondType>(array, kind, |time| whole_parts(time, 1000))
            }
            DataType::Decimal32(precision, scale) => self.numbers::<Decimal32Type>(array, *precision, *scale),
            DataType::Decimal64(precision, scale) => self.numbers::<Decimal64Type>(array, *precision, *scale),
            DataType::Decimal128(precision, scale) => self.numbers::<Decimal128Type>(array, *precision, *scale),
            DataType::Decimal256(precision, scale) => self.numbers::<Decimal256Type>(array, *precision, *scale),
            kind => {
                let data = array.to_data();
                let inner = data.child_data().iter().cloned().map(make_array).zip(inner_types(kind));
                let inner = inner.map(|(inner, kind)| Ok(self.declared(&inner, kind)?.to_data()));
                let inner = inner.collect::<Result<Vec<_>>>()?;
                let data = data.into_builder().data_type(kind.clone()).child_data(inner).build()?;
                Ok(make_array(data))
            }
        }
    }

    fn numbers<T: DecimalType>(&self, array: &ArrayRef, precision: u8, scale: i8) -> Result<ArrayRef> {
        let declared = || format!("is declared as DECIMAL({precision}, {scale})");
        let way_out = "declare it as VARCHAR and read it with TRY_CAST";
        let number = |text: &str| match decimal::<T>(text, precision, scale) {
            Ok((number, _)) => Ok(number),
            Err(fault) => self.refused(text, fault, &declared(), way_out),
        };
        let numbers = self.each::<T>(array, number)?;
        Ok(Arc::new(numbers.with_precision_and_scale(precision, scale)?))
    }

    fn whole_numbers<T>(&self, array: &ArrayRef, kind: &DataType) -> Result<ArrayRef>
    where
        T: ArrowPrimitiveType,
        T::Native: FromStr + TryFrom<i128>,
    {
        let number = |text: &str| match whole_number(text) {
            Ok(number) => Ok(number),
            Err(fault @ Fault::TooLarge) => self.refused(text, fault, &as_read(kind), &other_type("DECIMAL(38, 0)")),
            Err(fault) => self.refused(text, fault, &as_read(kind), &other_type("DOUBLE")),
        };
        Ok(Arc::new(self.each::<T>(array, number)?))
    }

    fn floats(&self, array: &ArrayRef, kind: &DataType) -> Result<ArrayRef> {
        let number = |text: &str| match float(text) {
            Ok(number) => Ok(number),
            Err(Fault::Rounded) => {
                let way_out = format!("{}; DOUBLE rounds it", other_type("DECIMAL(38, 9)"));
                self.refused(text, Fault::Rounded, &as_read(kind), &way_out)
            }
            Err(fault) => self.refused(text, fault, &as_read(kind), &other_type("TEXT")),
        };
        Ok(Arc::new(self.each::<Float64Type>(array, number)?))
    }

    /// Returns the times of `array`, which `value` makes of nanoseconds since 1970.
    fn times<T: ArrowPrimitiveType>(
        &self,
        array: &ArrayRef,
        kind: &DataType,
        value: impl Fn(i128) -> std::result::Result<T::Native, Fault>,
    ) -> Result<ArrayRef> {
        let way_out =
            "declare the table with another type: CREATE EXTERNAL TABLE … (… TIMESTAMP) STORED AS CSV LOCATION '…'";
        let utc: Tz = "+00:00".parse()?;
        let time = |text: &str| match nanoseconds(text, &utc).and_then(&value) {
            Ok(time) => Ok(time),
            Err(fault) => self.refused(text, fault, &as_read(kind), way_out),
        };
        Ok(Arc::new(self.each::<T>(array, time)?))
    }

    /// Returns what `number` reads in the texts of `array`.
    fn each<T: ArrowPrimitiveType>(
        &self,
        array: &ArrayRef,
        number: impl Fn(&str) -> Result<T::Native>,
    ) -> Result<PrimitiveArray<T>> {
        let Some(texts) = array.as_string_opt::<i32>() else {
            return exec_err!("declared_value: got {}, expected a text", array.data_type());
        };
        texts.iter().map(|text| text.map(&number).transpose()).collect()
    }

    fn refused<N>(&self, text: &str, fault: Fault, declared: &str, way_out: &str) -> Result<N> {
        let file = self.file;
        let column = self.column;
        let mut shown = text.chars().take(MAX_SHOWN).collect::<String>();
        if shown.len() < text.len() {
            shown.push('…');
        }
        let what = match fault {
            Fault::NoNumber => "is no number",
            Fault::TooLarge => "is too large",
            Fault::NotWhole => "is no whole number",
            Fault::Rounded => "has more digits than that keeps",
            Fault::NoTime => "is no date or time",
            Fault::HasTime => "has a time of the day",
            Fault::HasFraction => "has smaller parts of a second",
        };
        exec_err!("{file}: column {column} {declared}, and `{shown}` {what}; {way_out}")
    }
}

/// The reason why a text is no number of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    NoNumber,
    TooLarge,
    NotWhole,
    Rounded,
    NoTime,
    HasTime,
    HasFraction,
}

fn as_read(kind: &DataType) -> String {
    format!("is read as {kind}, which it is declared as or the first rows have")
}

/// Returns the way out where a type of JSON has no room for a number.
fn other_type(kind: &str) -> String {
    format!("declare the table with another type: CREATE EXTERNAL TABLE … (… {kind}) STORED AS JSON LOCATION '…'")
}

/// Returns the nanoseconds since 1970 of a date or time.
fn nanoseconds(text: &str, utc: &Tz) -> std::result::Result<i128, Fault> {
    if let Ok(time) = string_to_datetime(utc, text) {
        return Ok(i128::from(time.timestamp()) * NANOS + i128::from(time.timestamp_subsec_nanos()));
    }
    let days = Date32Type::parse(text).ok_or(Fault::NoTime)?;
    Ok(i128::from(days) * NANOS_OF_DAY)
}

fn days(nanoseconds: i128) -> std::result::Result<i32, Fault> {
    if nanoseconds % NANOS_OF_DAY != 0 {
        return Err(Fault::HasTime);
    }
    i32::try_from(nanoseconds / NANOS_OF_DAY).map_err(|_| Fault::TooLarge)
}

/// Returns `nanoseconds` in parts of this length.
fn whole_parts(nanoseconds: i128, length: i128) -> std::result::Result<i64, Fault> {
    if nanoseconds % length != 0 {
        return Err(Fault::HasFraction);
    }
    i64::try_from(nanoseconds / length).map_err(|_| Fault::TooLarge)
}

/// Returns the whole number in `text`, which may be written as `7.0` or `7e3`.
fn whole_number<N: FromStr + TryFrom<i128>>(text: &str) -> std::result::Result<N, Fault> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let (number, is_whole) = decimal::<Decimal128Type>(text, DECIMAL128_MAX_PRECISION, 0)?;
    if !is_whole {
        return Err(Fault::NotWhole);
    }
    N::try_from(number).map_err(|_| Fault::TooLarge)
}

/// Returns the float in `text`. If that is a whole number, the float shows the same digits, or is the same number.
fn float(text: &str) -> std::result::Result<f64, Fault> {
    let number = Float64Type::parse(text).ok_or(Fault::NoNumber)?;
    let unsigned = text.trim_start_matches(['-', '+']);
    if number.is_infinite() && unsigned.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(Fault::TooLarge);
    }
    let is_kept = unsigned.len() <= MAX_KEPT_DIGITS
        || !has_digits_alone(unsigned)
        || number.abs().to_string() == unsigned
        || format!("{:.0}", number.abs()) == unsigned;
    if is_kept { Ok(number) } else { Err(Fault::Rounded) }
}

/// Returns the digits of the number in `text` up to `scale` digits behind the point, and true if these are all. Takes
/// O(length) time.
fn decimal<T: DecimalType>(
    text: &str,
    precision: u8,
    scale: i8,
) -> std::result::Result<(<T as ArrowPrimitiveType>::Native, bool), Fault> {
    let (is_negative, unsigned) = match text.as_bytes() {
        [b'-', unsigned @ ..] => (true, unsigned),
        [b'+', unsigned @ ..] => (false, unsigned),
        unsigned => (false, unsigned),
    };
    let mut parts = unsigned.splitn(2, |byte| matches!(byte, b'e' | b'E'));
    let mantissa = parts.next().unwrap_or_default();
    let exponent = parts.next().map_or(Some(0), exponent).ok_or(Fault::NoNumber)?;
    let mut parts = mantissa.splitn(2, |byte| *byte == b'.');
    let whole = parts.next().unwrap_or_default();
    let fraction = parts.next().unwrap_or_default();
    let digits = || whole.iter().chain(fraction);
    if digits().next().is_none() || !digits().all(u8::is_ascii_digit) {
        return Err(Fault::NoNumber);
    }
    let zero = T::Native::usize_as(0);
    let Some(first) = digits().position(|digit| *digit != b'0') else { return Ok((zero, true)) };
    // Digits of the number that count, from its first one; some of them may be zeros behind it.
    let num_kept = i64::try_from(whole.len()).unwrap_or(i64::MAX).saturating_add(exponent);
    let num_kept = num_kept.saturating_add(i64::from(scale));
    let num_kept = usize::try_from(num_kept).unwrap_or(0).saturating_sub(first);
    if num_kept > usize::from(precision) {
        return Err(Fault::TooLarge);
    }
    let ten = T::Native::usize_as(10);
    let kept = digits().skip(first).chain(std::iter::repeat(&b'0')).take(num_kept);
    let push = |number: T::Native, digit: &u8| {
        let digit = T::Native::usize_as(usize::from(digit - b'0'));
        number.mul_wrapping(ten).add_wrapping(digit)
    };
    let number = kept.fold(zero, push);
    let is_all = digits().skip(first).skip(num_kept).all(|digit| *digit == b'0');
    Ok((if is_negative { number.neg_wrapping() } else { number }, is_all))
}

/// Returns the exponent of a number, or a number as far from zero that has its meaning.
fn exponent(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let push = |number: i64, digit: &u8| number.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
    Some(sign * digits.iter().fold(0, push))
}
