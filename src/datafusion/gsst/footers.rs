//! Footers of the files of a table, with their schemas, statistics and sizes for planning.
//!
//! ```text
//! Parquet's metadata ─▶ has GSST columns? ─ no ──▶ plain: the footer of Parquet's metadata
//!  (session's cache)                      └ yes ─▶ checksum of the footer, index ─▶ session's cache
//! ```
//!
//! A footer is read and checked once. The entry of a checked footer in the session's cache of file
//! metadata has a key of its own, because DataFusion keeps Parquet's metadata under the location.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, HashMap, Statistics};
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::parquet::transform_schema_to_view;
use datafusion::error::Result;
use datafusion::execution::cache::cache_manager::{CachedFileMetadataEntry, FileMetadata, FileMetadataCache};
use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use datafusion::scalar::ScalarValue;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::errors::{contain_panics, contain_panics_of, datafusion_error, from_gsst};
use gsst::CodeWidth;
use gsst::parquet::{Bound, FooterSeal, GsstFooter, TextStatistics, is_gsst_file};

/// Number of files that are known at most.
const MAX_FILES: usize = 1 << 16;

/// Plain Parquet files, by location, in the version that was read. Every plan of Parquet files asks it of
/// each file. DataFusion's cache of footers has a limit of bytes, and a table may have more.
#[derive(Debug, Default)]
pub(crate) struct PlainFiles(Mutex<std::collections::HashMap<Path, ObjectMeta>>);

impl PlainFiles {
    /// Returns true if this version of the file is known to be plain.
    pub(super) fn contains(&self, object: &ObjectMeta) -> bool {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.get(&object.location) == Some(object)
    }

    /// Notes that this version of the file is plain.
    pub(super) fn insert(&self, object: &ObjectMeta) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= MAX_FILES {
            files.clear();
        }
        files.insert(object.location.clone(), object.clone());
    }
}

/// Number of bytes that are first read from the end of a file. Most footers are shorter.
const FOOTER_HINT_BYTES: usize = 64 << 10;

/// Last part of the key of a checked footer in the cache.
const CHECKED: &str = "tadoc.gsst footer";

/// The checked footer of a file with GSST columns, in the session's cache.
struct CheckedFooter(GsstFooter);

impl FileMetadata for CheckedFooter {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn memory_size(&self) -> usize {
        // The index takes about as much as its digits, which are a part of Parquet's metadata.
        2 * self.0.parquet().memory_size()
    }

    fn extra_info(&self) -> HashMap<String, String> {
        HashMap::from([("gsst_columns".to_owned(), self.0.gsst().columns().len().to_string())])
    }
}

/// Returns the footer of a file. Reads and checks it unless it is in the session's cache.
pub(super) async fn read_footer(
    store: &Arc<dyn ObjectStore>,
    object: &ObjectMeta,
    cache: Option<&Arc<FileMetadataCache>>,
) -> Result<GsstFooter> {
    if let Some(footer) = cache.and_then(|cache| cached_footer(cache, object)) {
        return Ok(footer);
    }
    let what = || format!("reading the footer of {}", object.location);
    let parquet = read_metadata(store, object, cache, None).await;
    let parquet = parquet.map_err(|error| error.context(what()))?;
    let is_gsst = is_gsst_file(&parquet);
    check_seal(store, object, &parquet).await.map_err(|error| error.context(what()))?;
    let footer = contain_panics("footer", || GsstFooter::new(parquet).map_err(from_gsst));
    let footer = footer.flatten().map_err(|error| datafusion_error(error).context(what()))?;
    if let Some(cache) = cache.filter(|_| is_gsst) {
        let checked = Arc::new(CheckedFooter(footer.clone()));
        cache.put(&key_of(object), CachedFileMetadataEntry::new(object.clone(), checked));
    }
    Ok(footer)
}

/// Returns the footer of a file if it has GSST columns. `None` for other Parquet files, and for files
/// whose metadata cannot be read: the reader of plain Parquet says why.
///
/// # Errors
/// Those of a file with GSST columns whose footer is damaged.
pub(crate) async fn footer_with_text(
    store: &Arc<dyn ObjectStore>,
    object: &ObjectMeta,
    cache: &Arc<FileMetadataCache>,
    plain: &PlainFiles,
) -> Result<Option<GsstFooter>> {
    if plain.contains(object) {
        return Ok(None);
    }
    if let Some(footer) = cached_footer(cache, object) {
        return Ok(Some(footer));
    }
    let policy = Some(PageIndexPolicy::Skip);
    let Ok(parquet) = read_metadata(store, object, Some(cache), policy).await else {
        return Ok(None);
    };
    if is_gsst_file(&parquet) {
        return read_footer(store, object, Some(cache)).await.map(Some);
    }
    plain.insert(object);
    Ok(None)
}

async fn read_metadata(
    store: &Arc<dyn ObjectStore>,
    object: &ObjectMeta,
    cache: Option<&Arc<FileMetadataCache>>,
    page_index: Option<PageIndexPolicy>,
) -> Result<Arc<ParquetMetaData>> {
    let metadata = DFParquetMetadata::new(store.as_ref(), object)
        .with_metadata_size_hint(Some(FOOTER_HINT_BYTES))
        .with_page_index_policy(page_index)
        .with_file_metadata_cache(cache.map(Arc::clone));
    contain_panics_of("footer", metadata.fetch_metadata()).await.flatten()
}

/// Compares the end of a file with the checksum in its metadata, if there is one.
async fn check_seal(store: &Arc<dyn ObjectStore>, object: &ObjectMeta, parquet: &ParquetMetaData) -> Result<()> {
    let refused = |error| datafusion_error(from_gsst(error));
    let Some(seal) = FooterSeal::find(parquet).map_err(refused)? else { return Ok(()) };
    let range = seal.range(object.size).map_err(refused)?;
    let sealed = store.get_range(&object.location, range).await?;
    seal.check(&sealed).map_err(refused)
}

fn key_of(object: &ObjectMeta) -> Path {
    object.location.clone().join(CHECKED)
}

fn cached_footer(cache: &Arc<FileMetadataCache>, object: &ObjectMeta) -> Option<GsstFooter> {
    let entry = cache.get(&key_of(object)).filter(|entry| entry.is_valid_for(object))?;
    let checked = entry.file_metadata.as_any().downcast_ref::<CheckedFooter>()?;
    Some(checked.0.clone())
}

/// What the footers of the files of a scan say about a column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ColumnFacts {
    /// Length of the text, if it is a GSST column in one of the files.
    pub text_len_bytes: Option<u64>,
    /// Length of its blocks.
    pub stored_len_bytes: u64,
    /// Part of the text whose codes have 12 bits.
    pub twelve_len_bytes: u64,
    /// Part of the text whose width the files do not say.
    pub unknown_len_bytes: u64,
    /// Number of null rows.
    pub num_nulls: u64,
}

impl ColumnFacts {
    /// Returns the facts about both columns together.
    pub(super) fn plus(self, other: Self) -> Self {
        let text_len_bytes = self.text_len_bytes.into_iter().chain(other.text_len_bytes);
        Self {
            text_len_bytes: text_len_bytes.reduce(u64::saturating_add),
            stored_len_bytes: self.stored_len_bytes.saturating_add(other.stored_len_bytes),
            twelve_len_bytes: self.twelve_len_bytes.saturating_add(other.twelve_len_bytes),
            unknown_len_bytes: self.unknown_len_bytes.saturating_add(other.unknown_len_bytes),
            num_nulls: self.num_nulls.saturating_add(other.num_nulls),
        }
    }

    /// Returns the width of the codes of most of the text whose width is known.
    pub(super) fn width(&self) -> Option<CodeWidth> {
        let known = self.text_len_bytes?.saturating_sub(self.unknown_len_bytes);
        if known == 0 {
            return None;
        }
        let is_twelve = self.twelve_len_bytes > known / 2;
        Some(if is_twelve { CodeWidth::Twelve } else { CodeWidth::Eight })
    }
}

/// What the footers of the files of a scan say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileFacts {
    /// Facts about each column of the files.
    pub columns: Vec<ColumnFacts>,
    /// Number of rows of all files.
    pub num_rows: u64,
    /// Number of row groups of all files.
    pub num_row_groups: u64,
}

impl FileFacts {
    /// Reads the footers of `objects`, the files of a table with this schema.
    pub(super) async fn read(
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        mut objects: Vec<ObjectMeta>,
        schema: &Schema,
    ) -> Result<Self> {
        let cache = session.runtime_env().cache_manager.get_file_metadata_cache();
        let concurrency = session.config_options().execution.meta_fetch_concurrency.get();
        // A file that is cut into ranges is in the plan with each of them.
        objects.sort_unstable_by(|one, other| one.location.cmp(&other.location));
        objects.dedup_by(|one, other| one.location == other.location);
        let read = |object: ObjectMeta| {
            let cache = &cache;
            async move { read_footer(store, &object, Some(cache)).await }
        };
        let mut footers = futures::stream::iter(objects).map(read).boxed().buffer_unordered(concurrency);
        let columns = vec![ColumnFacts::default(); schema.fields().len()];
        let mut facts = Self { columns, ..Self::default() };
        while let Some(footer) = footers.try_next().await? {
            facts.add(&footer, schema);
        }
        Ok(facts)
    }

    fn add(&mut self, footer: &GsstFooter, schema: &Schema) {
        let num_rows = footer.parquet().file_metadata().num_rows();
        self.num_rows += u64::try_from(num_rows).unwrap_or(0);
        self.num_row_groups += footer.num_row_groups() as u64;
        for (column_idx, column) in footer.gsst().columns().iter().enumerate() {
            let name = footer.schema().field(column.field_idx).name();
            let Ok(place) = schema.index_of(name) else { continue };
            let facts = &mut self.columns[place];
            let totals = footer.gsst().totals(column_idx);
            let text_if = |is_so: bool| if is_so { totals.text_len_bytes } else { 0 };
            *facts = facts.plus(ColumnFacts {
                text_len_bytes: Some(totals.text_len_bytes),
                stored_len_bytes: totals.stored_len_bytes,
                twelve_len_bytes: text_if(column.width == Some(CodeWidth::Twelve)),
                unknown_len_bytes: text_if(column.width.is_none()),
                num_nulls: totals.num_nulls,
            });
        }
    }
}

/// Returns the schema of a table that reads the file. Text has view types, as in tables `STORED AS
/// PARQUET`.
pub(crate) fn table_schema(footer: &GsstFooter) -> Schema {
    transform_schema_to_view(footer.schema())
}

/// Returns the schema with which the file is read. GSST columns have view types, other columns have
/// their stored types.
pub(super) fn read_schema(footer: &GsstFooter) -> SchemaRef {
    let mut fields = footer.schema().fields().to_vec();
    for column in footer.gsst().columns() {
        let field = fields[column.field_idx].as_ref().clone();
        fields[column.field_idx] = Arc::new(field.with_data_type(column.text_type.as_view().data_type()));
    }
    Arc::new(Schema::new_with_metadata(fields, footer.schema().metadata().clone()))
}

/// Returns the statistics of the file for a table with this schema.
pub(crate) fn statistics(footer: &GsstFooter, table_schema: &SchemaRef) -> Result<Statistics> {
    let mut statistics = DFParquetMetadata::statistics_from_parquet_metadata(footer.parquet(), table_schema)?;
    // If no column has statistics, the list is empty.
    statistics.column_statistics.resize_with(table_schema.fields().len(), ColumnStatistics::new_unknown);
    // Parquet knows GSST columns by other names, which are no columns of the table.
    for (column, field) in statistics.column_statistics.iter_mut().zip(table_schema.fields()) {
        if footer.schema().index_of(field.name()).is_err() {
            *column = ColumnStatistics::new_unknown();
        }
    }
    for (column_idx, column) in footer.gsst().columns().iter().enumerate() {
        let name = footer.schema().field(column.field_idx).name();
        let Some((place, field)) = table_schema.column_with_name(name) else { continue };
        let row_groups = (0..footer.num_row_groups())
            .filter_map(|row_group_idx| footer.gsst().statistics(row_group_idx, column_idx));
        let whole = row_groups.reduce(|one, two| one.merge(&two)).unwrap_or_default();
        statistics.column_statistics[place] = text_statistics(&whole, field.data_type());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_is_not_known() {
        let object = |size, e_tag: &str| ObjectMeta {
            location: Path::from("a/x.parquet"),
            last_modified: Default::default(),
            size,
            e_tag: Some(e_tag.to_owned()),
            version: None,
        };
        let files = PlainFiles::default();
        files.insert(&object(7, "one"));
        assert!(files.contains(&object(7, "one")));
        assert!(!files.contains(&object(8, "one")) && !files.contains(&object(7, "two")));
    }
}
