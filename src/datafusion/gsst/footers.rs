//! Footers of the files of a table, with their schemas and statistics for planning. A footer is
//! read once and kept in the session's cache.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::parquet::transform_schema_to_view;
use datafusion::error::Result;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::scalar::ScalarValue;
use object_store::{ObjectMeta, ObjectStore};

use crate::errors::{contain_panics, contain_panics_of, datafusion_error, from_gsst};
use gsst::parquet::{Bound, GsstFooter, TextStatistics};

/// Number of bytes that are first read from the end of a file. Most footers are shorter.
const FOOTER_HINT_BYTES: usize = 64 << 10;

/// Returns the footer of a file. Reads it unless it is in the session's cache.
pub(super) async fn read_footer(
    store: &Arc<dyn ObjectStore>,
    object: &ObjectMeta,
    cache: Option<&Arc<FileMetadataCache>>,
) -> Result<GsstFooter> {
    let what = || format!("reading the footer of {}", object.location);
    let metadata = DFParquetMetadata::new(store.as_ref(), object)
        .with_metadata_size_hint(Some(FOOTER_HINT_BYTES))
        .with_file_metadata_cache(cache.map(Arc::clone));
    let parquet = contain_panics_of("footer", metadata.fetch_metadata()).await;
    let parquet = parquet.flatten().map_err(|error| error.context(what()))?;
    let footer = contain_panics("footer", || GsstFooter::new(parquet).map_err(from_gsst));
    footer.flatten().map_err(|error| datafusion_error(error).context(what()))
}

/// Returns the schema of a table that reads the file. Text has view types, as in tables `STORED AS
/// PARQUET`.
pub(super) fn table_schema(footer: &GsstFooter) -> Schema {
    transform_schema_to_view(footer.schema())
}

/// Returns the schema with which the file is read. GSST columns have view types, other columns have
/// their stored types.
pub(super) fn read_schema(footer: &GsstFooter) -> SchemaRef {
    let mut fields = footer.schema().fields().to_vec();
    for column in footer.gsst().columns() {
        let field = fields[column.field_idx].as_ref().clone();
        fields[column.field_idx] =
            Arc::new(field.with_data_type(column.text_type.as_view().data_type()));
    }
    Arc::new(Schema::new_with_metadata(fields, footer.schema().metadata().clone()))
}

/// Returns the statistics of the file for a table with this schema.
pub(super) fn statistics(footer: &GsstFooter, table_schema: &SchemaRef) -> Result<Statistics> {
    let mut statistics =
        DFParquetMetadata::statistics_from_parquet_metadata(footer.parquet(), table_schema)?;
    // If no column has statistics, the list is empty.
    statistics
        .column_statistics
        .resize_with(table_schema.fields().len(), ColumnStatistics::new_unknown);
    for (column_idx, column) in footer.gsst().columns().iter().enumerate() {
        let name = footer.schema().field(column.field_idx).name();
        let Some((place, field)) = table_schema.column_with_name(name) else { continue };
        let of_row_groups = (0..footer.num_row_groups())
            .filter_map(|row_group_idx| footer.gsst().statistics(row_group_idx, column_idx));
        let of_file = of_row_groups.reduce(|one, two| one.merge(&two)).unwrap_or_default();
        statistics.column_statistics[place] = text_statistics(&of_file, field.data_type());
    }
    Ok(statistics)
}

fn text_statistics(text: &TextStatistics, data_type: &DataType) -> ColumnStatistics {
    let bound = |bound: &Option<Bound>| match bound {
        Some(bound) => match bound_value(bound, data_type) {
            Some(value) if bound.is_exact => Precision::Exact(value),
            Some(value) => Precision::Inexact(value),
            None => Precision::Absent,
        },
        None => Precision::Absent,
    };
    ColumnStatistics {
        null_count: Precision::Exact(text.num_nulls),
        min_value: bound(&text.min),
        max_value: bound(&text.max),
        byte_size: Precision::Exact(usize::try_from(text.text_len_bytes).unwrap_or(usize::MAX)),
        ..ColumnStatistics::new_unknown()
    }
}

/// Returns a bound as a value of a column's type, or `None` if its bytes do not fit the type.
pub(super) fn bound_value(bound: &Bound, data_type: &DataType) -> Option<ScalarValue> {
    let bytes = || Some(bound.bytes.clone());
    let text = || String::from_utf8(bound.bytes.clone()).ok();
    match data_type {
        DataType::Utf8 => Some(ScalarValue::Utf8(Some(text()?))),
        DataType::LargeUtf8 => Some(ScalarValue::LargeUtf8(Some(text()?))),
        DataType::Utf8View => Some(ScalarValue::Utf8View(Some(text()?))),
        DataType::Binary => Some(ScalarValue::Binary(bytes())),
        DataType::LargeBinary => Some(ScalarValue::LargeBinary(bytes())),
        DataType::BinaryView => Some(ScalarValue::BinaryView(bytes())),
        _ => None,
    }
}
