//! The keys of the footer, and the columns that they are about.

use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::schema::types::SchemaDescriptor;

use super::index::{GsstColumn, INDEX_KEY, Index};

/// Beginning of what follows the name of a GSST column in the file.
pub(super) const STORED_NAME_MARK: &str = " (tadoc GSST codes";

/// Returns the value of a key in the footer.
pub(super) fn value_of<'a>(footer: &'a ParquetMetaData, key: &str) -> Option<&'a str> {
    let pairs = footer.file_metadata().key_value_metadata();
    let pair = pairs.into_iter().flatten().find(|pair| pair.key == key)?;
    pair.value.as_deref()
}

/// Returns true if the file has keys of another file whose other columns were copied. Programs keep
/// all keys when they rewrite a file. No column of the index is there, neither by its name nor by its
/// type and encoding, so no single damage can look like this.
pub(super) fn are_keys_left_over(footer: &ParquetMetaData) -> bool {
    let index = value_of(footer, INDEX_KEY).map(Index::from_text);
    let Some(Ok(index)) = index else { return false };
    let schema = footer.file_metadata().schema_descr();
    let is_there = |column: &GsstColumn| {
        let mut leaves = 0..schema.num_columns();
        let leaf = leaves.find(|leaf| schema.get_column_root_idx(*leaf) == column.field_idx);
        let is_codes = |leaf| has_stored_name(schema, leaf) || has_stored_type(footer, leaf);
        leaf.is_some_and(is_codes)
    };
    index.has_checksums && !index.columns.is_empty() && !index.columns.iter().any(is_there)
}

/// Returns true if a leaf has a name that GSST columns have in a file.
pub(super) fn has_stored_name(schema: &SchemaDescriptor, leaf: usize) -> bool {
    schema.column(leaf).path().parts().first().is_some_and(|name| name.contains(STORED_NAME_MARK))
}

/// Returns true if a leaf has the type and the encoding of codes.
pub(super) fn has_stored_type(footer: &ParquetMetaData, leaf: usize) -> bool {
    let column = footer.file_metadata().schema_descr().column(leaf);
    let is_plain_bytes = column.physical_type() == PhysicalType::BYTE_ARRAY
        && column.logical_type_ref().is_none()
        && column.path().parts().len() == 1;
    let mut chunks = footer.row_groups().iter().filter_map(|group| group.columns().get(leaf));
    let has_encoding = |chunk: &ColumnChunkMetaData| {
        chunk.encodings().any(|encoding| encoding == Encoding::DELTA_LENGTH_BYTE_ARRAY)
    };
    is_plain_bytes && chunks.all(has_encoding)
}
