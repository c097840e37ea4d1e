//! The metadata of a Parquet file from its footer: the schema as it was written, and the GSST
//! columns.
//!
//! All places in the index are compared with those of Parquet, because another program may have
//! rewritten the file and kept the key. A run must lie inside its column's chunk, and stretches
//! must have the row group's rows.
//!
//! In the file, a GSST column has a name of its own, `level (tadoc GSST codes)` for `level`. A
//! reader that does not know GSST columns finds no `level`, so it cannot take codes for values. The
//! index has the names of the schema that the file was written from.
//!
//! # Footer
//!
//! The footer of a file: Parquet's metadata and the index of GSST columns.
//!
//! The footer is enough to plan a query: it shows which row groups can be skipped and which byte
//! ranges the fields of a row group occupy. Asynchronous readers fetch those ranges first and then
//! read from memory.
//!
//! A file that was written with GSST columns has a checksum of its footer ([`FooterSeal`]). It is
//! compared before the footer is used.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::SchemaDescriptor;

use crate::error::{Error, Result};
use crate::layout::{ALIGNMENT_BYTES, HEADER_BYTES, MAX_BLOCK_ROWS};

use super::guarded;
use super::index::{
    GsstColumn, GsstRowGroup, INDEX_KEY, Index, SOURCE, STORED_NAME_MARK, StoredBlock, TextStatistics,
    are_keys_left_over, fault, has_stored_name, has_stored_type, value_for,
};
use super::seal::{FooterSeal, SEAL_KEY};

/// Name of the Arrow extension type that marks GSST columns.
pub const EXTENSION_NAME: &str = "tadoc.gsst";

const EXTENSION_NAME_KEY: &str = "ARROW:extension:name";
const EXTENSION_METADATA_KEY: &str = "ARROW:extension:metadata";

/// Returns true if the file has GSST columns, or if it was written with them.
///
/// The footer alone decides. A file that was written with GSST columns and lacks its index is
/// damaged, and [`GsstMetadata::new`] refuses it.
pub fn is_gsst_file(footer: &ParquetMetaData) -> bool {
    let has_key = value_for(footer, INDEX_KEY).is_some() || value_for(footer, SEAL_KEY).is_some();
    (has_key && !are_keys_left_over(footer)) || codes_column(footer).is_some()
}

/// Sizes of a GSST column in a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ColumnTotals {
    /// Length of the text of all rows, in bytes.
    pub text_len_bytes: u64,
    /// Length of all blocks, in bytes.
    pub stored_len_bytes: u64,
    /// Number of rows that are null.
    pub num_nulls: u64,
}

/// Schema and GSST columns of a file, from its footer alone.
#[derive(Debug, Clone)]
pub struct GsstMetadata {
    schema: SchemaRef,
    index: Index,
}

impl GsstMetadata {
    /// Reads the metadata from a footer and the Arrow schema that the Parquet crate derives from
    /// it.
    ///
    /// # Errors
    ///
    /// [`Error::Format`], [`Error::Version`] or [`Error::Checksum`] if the index is damaged or does
    /// not agree with the file. [`Error::Format`] also if the footer has places outside of any
    /// file.
    pub fn new(footer: &ParquetMetaData, stored_schema: &Schema) -> Result<Self> {
        for chunk in footer.row_groups().iter().flat_map(|row_group| row_group.columns()) {
            chunk_range(chunk)?;
        }
        let value = value_for(footer, INDEX_KEY).filter(|_| !are_keys_left_over(footer));
        let index = match value {
            Some(text) => Index::from_text(text)?,
            None => match codes_column(footer) {
                Some(name) => return Err(no_index(name)),
                None => Index::default(),
            },
        };
        if index.has_checksums != FooterSeal::find(footer)?.is_some() {
            return Err(fault(0, "the index and the checksum of the footer do not belong together"));
        }
        let metadata = Self { schema: Arc::new(restore(stored_schema, &index)?), index };
        metadata.check(footer)?;
        Ok(metadata)
    }

    /// Returns the schema that the file was written from.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the GSST columns, sorted by field.
    pub fn columns(&self) -> &[GsstColumn] {
        &self.index.columns
    }

    /// Returns the index of the field in [`GsstMetadata::columns`], if it is a GSST column.
    pub fn column_of_field(&self, field_idx: usize) -> Option<usize> {
        self.index.columns.iter().position(|column| column.field_idx == field_idx)
    }

    /// Returns the GSST columns of each row group. Empty if there are no GSST columns.
    pub fn row_groups(&self) -> &[GsstRowGroup] {
        &self.index.row_groups
    }

    /// Returns the statistics of a GSST column in a row group, or `None` if there is no such
    /// column.
    pub fn statistics(&self, row_group_idx: usize, column_idx: usize) -> Option<TextStatistics> {
        let run = self.index.row_groups.get(row_group_idx)?.runs.get(column_idx)?;
        let from_blocks = run.blocks.iter().map(|block| block.statistics.clone());
        Some(from_blocks.reduce(|one, two| one.merge(&two)).unwrap_or_default())
    }

    /// Returns the sizes of a GSST column in the whole file. All are 0 if there is no such column.
    pub fn totals(&self, column_idx: usize) -> ColumnTotals {
        let runs = self.index.row_groups.iter().filter_map(|group| group.runs.get(column_idx));
        let mut totals = ColumnTotals::default();
        for StoredBlock { len_bytes, statistics } in runs.flat_map(|run| &run.blocks) {
            totals.text_len_bytes += statistics.text_len_bytes;
            totals.stored_len_bytes += *len_bytes as u64;
            totals.num_nulls += statistics.num_nulls as u64;
        }
        totals
    }

    /// Returns the CRC32C of a column chunk, by its place among Parquet's leaves. `None` if the
    /// file has no checksums of chunks, as files of the first version and files without GSST
    /// columns.
    pub(crate) fn chunk_checksum(&self, row_group_idx: usize, leaf: usize) -> Option<u32> {
        self.index.row_groups.get(row_group_idx)?.chunk_checksums.get(leaf).copied()
    }

    /// Returns the range of a GSST column's run in the file, or `None` if there is no such column.
    pub(crate) fn run_range(&self, row_group_idx: usize, column_idx: usize) -> Option<Range<u64>> {
        let run = self.index.row_groups.get(row_group_idx)?.runs.get(column_idx)?;
        Some(run.start..run.start + run.len_bytes())
    }

    /// Returns the range of a stretch's block in the file, or `None` if there is no block because
    /// all its rows are null.
    pub fn block_range(&self, row_group_idx: usize, column_idx: usize, stretch_idx: usize) -> Option<Range<u64>> {
        let run = self.index.row_groups.get(row_group_idx)?.runs.get(column_idx)?;
        let len_bytes = run.blocks.get(stretch_idx)?.len_bytes as u64;
        let before = &run.blocks[..stretch_idx];
        let start = run.start + before.iter().map(|block| block.len_bytes as u64).sum::<u64>();
        (len_bytes > 0).then_some(start..start + len_bytes)
    }

    fn check(&self, footer: &ParquetMetaData) -> Result<()> {
        let Index { columns, row_groups, has_checksums, .. } = &self.index;
        if columns.is_empty() && row_groups.is_empty() && !has_checksums {
            return Ok(());
        }
        if row_groups.len() != footer.num_row_groups() {
            let reason = format!("{} row groups of {}", row_groups.len(), footer.num_row_groups());
            return Err(does_not_fit(reason));
        }
        let leaves = first_leaves(footer.file_metadata().schema_descr(), self.schema.fields().len());
        for (row_group, in_footer) in row_groups.iter().zip(footer.row_groups()) {
            let num_rows: u64 = row_group.stretch_rows.iter().map(|rows| *rows as u64).sum();
            let is_stretch = |rows: &usize| (1..=MAX_BLOCK_ROWS).contains(rows);
            if Ok(num_rows) != u64::try_from(in_footer.num_rows()) || !row_group.stretch_rows.iter().all(is_stretch) {
                return Err(does_not_fit("other numbers of rows"));
            }
            if *has_checksums && row_group.chunk_checksums.len() != in_footer.num_columns() {
                return Err(does_not_fit("other numbers of columns"));
            }
            for (run, column) in row_group.runs.iter().zip(columns) {
                let chunk = leaves.get(column.field_idx).and_then(|leaf| in_footer.columns().get(*leaf));
                let chunk = chunk.ok_or_else(|| does_not_fit("no such column"))?;
                let range = chunk_range(chunk)?;
                let end = run.start.checked_add(run.len_bytes());
                let is_inside = run.start >= range.start && end.is_some_and(|end| end <= range.end);
                if !(is_inside || run.len_bytes() == 0) || !run.blocks.iter().all(is_possible) {
                    return Err(does_not_fit("a run that is not in its column"));
                }
            }
        }
        Ok(())
    }
}

fn is_possible(block: &StoredBlock) -> bool {
    let StoredBlock { len_bytes, statistics } = block;
    let is_all_null = statistics.num_nulls == statistics.num_rows;
    let is_block = *len_bytes >= HEADER_BYTES && len_bytes.is_multiple_of(ALIGNMENT_BYTES);
    statistics.num_nulls <= statistics.num_rows && (if is_all_null { *len_bytes == 0 } else { is_block })
}

/// Returns the first leaf of each top-level field.
pub(super) fn first_leaves(schema: &SchemaDescriptor, num_fields: usize) -> Vec<usize> {
    let mut leaves = vec![usize::MAX; num_fields];
    for leaf in (0..schema.num_columns()).rev() {
        if let Some(first) = leaves.get_mut(schema.get_column_root_idx(leaf)) {
            *first = leaf;
        }
    }
    leaves
}

/// Returns the range of a column's chunk in the file.
pub(super) fn chunk_range(chunk: &ColumnChunkMetaData) -> Result<Range<u64>> {
    let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
    let range = u64::try_from(start).ok().zip(u64::try_from(chunk.compressed_size()).ok());
    range.and_then(|(start, len_bytes)| Some(start..start.checked_add(len_bytes)?)).ok_or_else(|| Error::Format {
        file: SOURCE.to_owned(),
        section: "footer",
        offset: 0,
        reason: "a column that lies outside of the file".to_owned(),
    })
}

fn does_not_fit(reason: impl std::fmt::Display) -> Error {
    fault(0, format!("it does not fit the file ({reason}); did another program rewrite the file?"))
}

fn no_index(name: &str) -> Error {
    fault(0, format!("none for the column {name:?}; did another program rewrite the file?"))
}

/// Returns the name of the first column that holds codes by its name, type and encoding, if there
/// is one. Only columns that are written as GSST columns have all three.
fn codes_column(footer: &ParquetMetaData) -> Option<&str> {
    let schema = footer.file_metadata().schema_descr();
    let are_codes = |leaf: &usize| has_stored_name(schema, *leaf) && has_stored_type(footer, *leaf);
    let leaf = (0..schema.num_columns()).find(are_codes)?;
    Some(schema.root_schema().get_fields().get(schema.get_column_root_idx(leaf))?.name())
}

/// Returns the names of `columns` in the file. No other column has such a name, not even in another
/// case.
pub(super) fn stored_names(schema: &Schema, columns: &[GsstColumn]) -> Vec<String> {
    let names = schema.fields().iter().map(|field| field.name().to_lowercase());
    let mut taken: HashSet<String> = names.collect();
    let mut stored_name = |column: &GsstColumn| {
        let name = schema.field(column.field_idx).name();
        let mut stored = format!("{name}{STORED_NAME_MARK})");
        let mut number = 2;
        while !taken.insert(stored.to_lowercase()) {
            stored = format!("{name}{STORED_NAME_MARK} {number})");
            number += 1;
        }
        stored
    };
    columns.iter().map(&mut stored_name).collect()
}

/// Returns the field as Parquet stores it, with the name `stored_name`.
pub(super) fn stored_field(field: &Field, stored_name: &str) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(EXTENSION_NAME_KEY.to_owned(), EXTENSION_NAME.to_owned());
    metadata.insert(EXTENSION_METADATA_KEY.to_owned(), field.data_type().to_string());
    let renamed = field.clone().with_name(stored_name);
    renamed.with_data_type(DataType::Binary).with_metadata(metadata)
}

/// Returns true if the field already has an extension type, which the GSST mark would overwrite.
pub(super) fn has_extension(field: &Field) -> bool {
    field.metadata().contains_key(EXTENSION_NAME_KEY)
}

/// Returns the schema that the file was written from, given the schema that Parquet stores.
fn restore(stored: &Schema, index: &Index) -> Result<Schema> {
    let mut fields: Vec<Arc<Field>> = stored.fields().to_vec();
    if !index.columns.is_sorted_by(|one, two| one.field_idx < two.field_idx) {
        return Err(fault(0, "columns out of order"));
    }
    for (column_idx, column) in index.columns.iter().enumerate() {
        let field = fields.get_mut(column.field_idx);
        let field = field.filter(|field| *field.data_type() == DataType::Binary);
        let field = field.ok_or_else(|| does_not_fit("a column that is not binary"))?;
        let mut metadata = field.metadata().clone();
        metadata.remove(EXTENSION_NAME_KEY);
        metadata.remove(EXTENSION_METADATA_KEY);
        let mut restored = field.as_ref().clone().with_data_type(column.text_type.data_type());
        if let Some(name) = index.names.get(column_idx) {
            restored.set_name(name);
        }
        *field = Arc::new(restored.with_metadata(metadata));
    }
    let is_marked =
        |field: &&Arc<Field>| field.metadata().get(EXTENSION_NAME_KEY).is_some_and(|name| name == EXTENSION_NAME);
    if let Some(field) = fields.iter().find(is_marked) {
        return Err(no_index(field.name()));
    }
    let mut metadata = stored.metadata().clone();
    metadata.remove(INDEX_KEY);
    metadata.remove(SEAL_KEY);
    Ok(Schema::new_with_metadata(fields, metadata))
}

/// Footer of a Parquet file, with or without GSST columns.
#[derive(Debug, Clone)]
pub struct GsstFooter {
    pub(super) arrow: ArrowReaderMetadata,
    metadata: Arc<GsstMetadata>,
}

impl GsstFooter {
    /// Reads the footer of a file, and compares it with its checksum.
    ///
    /// # Errors
    ///
    /// [`Error::External`] if it is not a Parquet file, and those of
    /// [`GsstMetadata::new`] and [`FooterSeal::check`].
    pub fn read<R: ChunkReader>(input: &R) -> Result<Self> {
        const OPENING: &str = "opening a Parquet file";
        let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional);
        let arrow = guarded(OPENING, || ArrowReaderMetadata::load(input, options))?;
        if let Some(seal) = FooterSeal::find(arrow.metadata())? {
            let range = seal.range(input.len())?;
            let len_bytes = (range.end - range.start) as usize;
            seal.check(&guarded(OPENING, || input.get_bytes(range.start, len_bytes))?)?;
        }
        Self::from_arrow(arrow)
    }

    /// Creates a footer from Parquet metadata that was read before. The caller compares the bytes
    /// with the [`FooterSeal`] of the metadata, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::External`] if Arrow does not support the schema, and those
    /// of [`GsstMetadata::new`].
    pub fn new(parquet: Arc<ParquetMetaData>) -> Result<Self> {
        Self::from_arrow(guarded("opening a Parquet file", || {
            ArrowReaderMetadata::try_new(parquet, ArrowReaderOptions::new())
        })?)
    }

    fn from_arrow(arrow: ArrowReaderMetadata) -> Result<Self> {
        let metadata = Arc::new(GsstMetadata::new(arrow.metadata(), arrow.schema())?);
        Ok(Self { arrow, metadata })
    }

    /// Returns Parquet's metadata.
    pub fn parquet(&self) -> &Arc<ParquetMetaData> {
        self.arrow.metadata()
    }

    /// Returns the metadata of the GSST columns.
    pub fn gsst(&self) -> &GsstMetadata {
        &self.metadata
    }

    /// Returns the schema that the file was written from.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Returns the number of row groups.
    pub fn num_row_groups(&self) -> usize {
        self.parquet().num_row_groups()
    }

    /// Returns the offset of a row group in the file. It is different for each row group.
    pub fn row_group_start(&self, row_group_idx: usize) -> u64 {
        let columns = self.parquet().row_group(row_group_idx).columns();
        let starts = columns.iter().filter_map(|chunk| Some(chunk_range(chunk).ok()?.start));
        starts.min().unwrap_or(0)
    }

    /// Returns the byte ranges to read for `fields` of a row group, ascending and without
    /// duplicates.
    pub fn ranges(&self, row_group_idx: usize, fields: &[usize]) -> Vec<Range<u64>> {
        let schema = self.parquet().file_metadata().schema_descr();
        let chunks = self.parquet().row_group(row_group_idx).columns();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for &field_idx in fields {
            match self.metadata.column_of_field(field_idx) {
                Some(column_idx) => ranges.extend(self.metadata.run_range(row_group_idx, column_idx)),
                None => {
                    let leaves =
                        (0..schema.num_columns()).filter(|leaf| schema.get_column_root_idx(*leaf) == field_idx);
                    ranges.extend(leaves.filter_map(|leaf| chunk_range(chunks.get(leaf)?).ok()));
                }
            }
        }
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.dedup();
        ranges
    }
}
