//! The footer of a file: Parquet's metadata and the index of GSST columns.
//!
//! The footer is enough to plan a query: it shows which row groups can be skipped and which byte
//! ranges the fields of a row group occupy. Asynchronous readers fetch those ranges first and then
//! read from memory.
//!
//! A file that was written with GSST columns has a checksum of its footer ([`FooterSeal`]). It is
//! compared before the footer is used.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use parquet::file::reader::ChunkReader;

use crate::error::Result;

use super::guarded;
use super::metadata::{GsstMetadata, chunk_range};
use super::seal::FooterSeal;

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
    /// [`Error::External`](crate::Error::External) if it is not a Parquet file, and those of
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
    /// [`Error::External`](crate::Error::External) if Arrow does not support the schema, and those
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
                Some(column_idx) => {
                    ranges.extend(self.metadata.run_range(row_group_idx, column_idx))
                }
                None => {
                    let leaves = (0..schema.num_columns())
                        .filter(|leaf| schema.get_column_root_idx(*leaf) == field_idx);
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
