//! The format of JSON files: a byte order mark in front, and the columns of tables that declare none.
//!
//! ```text
//! first rows                            DataFusion          here
//! {"id": 18446744073709551615}          id: Float64         id: UInt64
//! {"id": -18446744073709551616}         id: Float64         id: Decimal128(38, 0)
//! {"id": 18446744073709551615.5}        id: Float64         id: Float64
//! ```
//!
//! Columns that no table declares are those of the first rows, 1,000 if no option says another number. DataFusion takes
//! a whole number beyond 64 bits for a float, which rounds it. So columns of floats are read a second time here, as
//! texts. The columns have a note that nobody has declared them ([`FIRST_ROWS`]), with which a scan refuses what a
//! declared one may leave out: digits, and fields of other rows.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, FieldRef, Fields, Schema, SchemaRef,
};
use datafusion::catalog::Session;
use datafusion::common::config::JsonOptions;
use datafusion::common::{GetExt, Statistics};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::{JsonFormat, JsonFormatFactory};
use datafusion::datasource::file_format::{DEFAULT_SCHEMA_INFER_MAX_RECORD, FileFormat, FileFormatFactory};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use object_store::{ObjectMeta, ObjectStore};

use crate::depth::inner_types;
use crate::planner::has_type;
use crate::text_files::json::{FIRST_ROWS, ValueOpener, Values, WithoutMarks};
use crate::text_files::{decimal, field_of_texts};

/// Wraps `format` in the format of this module if it is DataFusion's of JSON.
pub(crate) fn wrap_json_format(format: Arc<dyn FileFormatFactory>) -> Arc<dyn FileFormatFactory> {
    if format.is::<JsonFormatFactory>() { Arc::new(MarkedFactory(format)) } else { format }
}

/// Returns the options of `format` if it reads JSON files.
pub fn json_options<'a>(format: &'a (dyn FileFormat + 'static)) -> Option<&'a JsonOptions> {
    let inner = match format.downcast_ref::<MarkedJson>() {
        Some(marked) => marked.0.as_ref(),
        None => format,
    };
    inner.downcast_ref::<JsonFormat>().map(JsonFormat::options)
}

/// Returns the format that reads JSON files.
pub fn json_format(options: JsonOptions) -> Arc<dyn FileFormat> {
    Arc::new(MarkedJson(Arc::new(JsonFormat::default().with_options(options))))
}

/// Returns the format of JSON that a session makes with these options.
pub(super) fn session_format(session: &dyn Session, options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
    Ok(Arc::new(MarkedJson(JsonFormatFactory::new().create(session, options)?)))
}

/// Factory that wraps the formats of DataFusion's.
#[derive(Debug)]
struct MarkedFactory(Arc<dyn FileFormatFactory>);

impl GetExt for MarkedFactory {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }
}

impl FileFormatFactory for MarkedFactory {
    fn create(&self, session: &dyn Session, format_options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        Ok(Arc::new(MarkedJson(self.0.create(session, format_options)?)))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(MarkedJson(self.0.default()))
    }
}

/// DataFusion's format of JSON, whose files may begin with a mark.
#[derive(Debug)]
struct MarkedJson(Arc<dyn FileFormat>);

#[async_trait]
impl FileFormat for MarkedJson {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.0.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.0.compression_type()
    }

    async fn infer_schema(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let store: Arc<dyn ObjectStore> = Arc::new(WithoutMarks(Arc::clone(store)));
        let found = self.0.infer_schema(session, &store, objects).await?;
        let Some(options) = json_options(self) else { return Ok(found) };
        let num_rows = options.schema_infer_max_rec.unwrap_or(DEFAULT_SCHEMA_INFER_MAX_RECORD);
        let fields = whole_fields(found.fields(), options, &store, objects, num_rows).await?;
        let mut metadata = found.metadata().clone();
        metadata.insert(FIRST_ROWS.to_owned(), num_rows.to_string());
        Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
    }

    async fn infer_stats(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.0.infer_stats(session, store, schema, object).await
    }

    async fn create_physical_plan(
        &self,
        session: &dyn Session,
        scan: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.create_physical_plan(session, scan).await
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        session: &dyn Session,
        sink: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.create_writer_physical_plan(input, session, sink, order).await
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        self.0.file_source(table_schema)
    }
}

fn is_float(kind: &DataType) -> bool {
    *kind == DataType::Float64
}

/// Returns `found`, the fields of the first rows, with types of whole numbers for floats that are whole in all of them.
async fn whole_fields(
    found: &Fields,
    options: &JsonOptions,
    store: &Arc<dyn ObjectStore>,
    objects: &[ObjectMeta],
    num_rows: usize,
) -> Result<Fields> {
    let is_read = |field: &&FieldRef| has_type(field.data_type(), &is_float);
    let read = found.iter().filter(is_read).cloned().collect::<Fields>();
    let mut opener = ValueOpener {
        store: Arc::clone(store),
        schema: Arc::new(Schema::new(read.iter().map(|field| field_of_texts(field, is_float)).collect::<Fields>())),
        compression: options.compression.into(),
        batch_size: num_rows.min(DEFAULT_SCHEMA_INFER_MAX_RECORD),
        reads: Values { are_texts: true, are_in_array: !options.newline_delimited, ..Values::default() },
    };
    let mut num_missing = num_rows;
    let mut whole = None;
    for object in objects {
        if read.is_empty() {
            break;
        }
        let mut rows = opener.clone().rows(&PartitionedFile::from(object.clone())).await?;
        while num_missing > 0 && whole.as_ref() != Some(&read) {
            let Some(texts) = rows.next().await else { break };
            // A scan tells what is wrong with the rows.
            let Ok(texts) = texts else { return Ok(found.clone()) };
            num_missing = num_missing.saturating_sub(texts.num_rows());
            opener.batch_size = opener.batch_size.min(num_missing);
            whole = Some(whole_of(&read, whole.as_ref(), texts.columns()));
        }
    }
    let mut whole = whole.into_iter().flat_map(|whole| whole.iter().cloned().collect::<Vec<_>>());
    let field =
        |field: &FieldRef| if is_read(&field) { whole.next() } else { None }.unwrap_or_else(|| Arc::clone(field));
    Ok(found.iter().map(field).collect())
}

/// Returns `found` with types of whole numbers for floats that are whole in `columns`, the columns of some rows, and
/// were in the rows before, for which the fields were `before`.
fn whole_of(found: &Fields, before: Option<&Fields>, columns: &[ArrayRef]) -> Fields {
    let whole = |(idx, (field, column)): (usize, (&FieldRef, &ArrayRef))| {
        let before = before.and_then(|before| before.get(idx)).map(|before| before.data_type());
        let kind = whole_type(field.data_type(), before, column);
        Arc::new(field.as_ref().clone().with_data_type(kind))
    };
    found.iter().zip(columns).enumerate().map(whole).collect()
}

/// Returns the type for a column of some rows that was found as `found`, and was `before` for the rows before.
fn whole_type(found: &DataType, before: Option<&DataType>, column: &ArrayRef) -> DataType {
    match (found, before) {
        (DataType::Float64, before) => match column.as_string_opt::<i32>() {
            Some(texts) => whole_number_type(before, texts),
            None => DataType::Float64,
        },
        (DataType::List(item), before) => {
            let Some(list) = column.as_list_opt::<i32>() else { return found.clone() };
            let before = before.and_then(|before| inner_types(before).first().copied());
            let kind = whole_type(item.data_type(), before, list.values());
            DataType::List(Arc::new(item.as_ref().clone().with_data_type(kind)))
        }
        (DataType::Struct(fields), before) => {
            let Some(structs) = column.as_struct_opt() else { return found.clone() };
            let before = match before {
                Some(DataType::Struct(before)) => Some(before),
                _ => None,
            };
            DataType::Struct(whole_of(fields, before, structs.columns()))
        }
        _ => found.clone(),
    }
}

/// Returns the first type of 64 bits without a sign, of 38 digits, and of floats, that has all of `texts` as they are
/// and is not in front of `before`.
fn whole_number_type(before: Option<&DataType>, texts: &StringArray) -> DataType {
    let all = |fits: fn(&str) -> bool| texts.iter().flatten().all(fits);
    match before {
        Some(DataType::Float64) => DataType::Float64,
        None | Some(DataType::UInt64) if all(|text| text.parse::<u64>().is_ok()) => DataType::UInt64,
        _ if all(is_decimal) => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
        _ => DataType::Float64,
    }
}

/// Returns true if `text` is a whole number of at most 38 digits.
fn is_decimal(text: &str) -> bool {
    has_digits_alone(text) && decimal::<Decimal128Type>(text, DECIMAL128_MAX_PRECISION, 0).is_ok()
}

/// Returns true if `text` is a whole number without an exponent.
pub(super) fn has_digits_alone(text: &str) -> bool {
    text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit())
}
