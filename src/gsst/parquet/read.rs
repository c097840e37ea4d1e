//! Reading Parquet files with GSST columns, and those without.
//!
//! ```text
//! for each stretch      statistics ─▶ blocks of predicates ─▶ rows ─┬─▶ blocks of the projection
//!                       (pruned)      (codes)                       └─▶ Parquet: ordinary columns
//! ```
//!
//! Nothing is read of a stretch whose rows are all rejected but the blocks of its predicates. This
//! reader is synchronous; what it knows of places is in [`GsstMetadata`], for others.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::reader::ChunkReader;

use crate::error::{Error, Result};

use super::guarded;
use super::metadata::GsstMetadata;
use super::predicate::CodePredicate;
use super::row_group::RowGroupReader;

/// What is read of a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// Fields of the batches, by their place in the schema; `None` is all.
    pub projection: Option<Vec<usize>>,
    /// Only rows that meet all of these.
    pub predicates: Vec<CodePredicate>,
    /// Most rows of a batch.
    pub batch_rows: usize,
    /// Whether GSST columns come as views, whatever they were written from.
    pub text_as_views: bool,
}

impl Default for ReadOptions {
    /// Everything, as it was written, in batches of 8,192 rows.
    fn default() -> Self {
        Self { projection: None, predicates: Vec::new(), batch_rows: 8192, text_as_views: false }
    }
}

/// A Parquet file, with or without GSST columns, in anything that gives ranges of bytes.
pub struct GsstParquetReader<R> {
    input: Arc<R>,
    footer: ArrowReaderMetadata,
    metadata: Arc<GsstMetadata>,
}

impl<R: ChunkReader + 'static> GsstParquetReader<R> {
    /// Reads the footer.
    ///
    /// # Errors
    ///
    /// [`Error::External`] where it is not a Parquet file, or as [`GsstMetadata::new`].
    pub fn open(input: R) -> Result<Self> {
        let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional);
        let load = || ArrowReaderMetadata::load(&input, options);
        let footer = guarded("opening a Parquet file", load)?;
        let metadata = Arc::new(GsstMetadata::new(footer.metadata(), footer.schema())?);
        Ok(Self { input: Arc::new(input), footer, metadata })
    }

    /// The schema the file was written from.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// What the footer says of GSST columns.
    pub fn metadata(&self) -> &GsstMetadata {
        &self.metadata
    }

    /// Number of row groups.
    pub fn num_row_groups(&self) -> usize {
        self.footer.metadata().num_row_groups()
    }

    /// Batches of a row group.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] where there is no such row group or field, [`Error::InvalidArgument`]
    /// where a predicate is on a column that is no GSST column.
    pub fn read_row_group(
        &self,
        row_group_idx: usize,
        options: &ReadOptions,
    ) -> Result<RowGroupReader<R>> {
        let out_of_range = |what, got: usize, len: usize| {
            Err(Error::OutOfRange { what, got: got as u64, len: len as u64 })
        };
        if row_group_idx >= self.num_row_groups() {
            return out_of_range("row group", row_group_idx, self.num_row_groups());
        }
        let num_fields = self.schema().fields().len();
        let projection = options.projection.clone().unwrap_or((0..num_fields).collect());
        if let Some(&field_idx) = projection.iter().find(|field_idx| **field_idx >= num_fields) {
            return out_of_range("field", field_idx, num_fields);
        }
        let predicate_columns = options.predicates.iter().map(|predicate| {
            let column = self.metadata.column_of_field(predicate.field_idx);
            column.ok_or_else(|| Error::InvalidArgument {
                name: "predicate",
                got: format!("field {}", predicate.field_idx),
                allowed: "a GSST column".to_owned(),
            })
        });
        let predicate_columns = predicate_columns.collect::<Result<_>>()?;
        let field = |field_idx: &usize| self.field(*field_idx, options.text_as_views);
        let fields: Vec<Field> = projection.iter().map(field).collect();
        let metadata = self.schema().metadata().clone();
        let num_stretches = match self.metadata.row_groups().get(row_group_idx) {
            Some(row_group) => row_group.stretch_rows.len(),
            None => 1,
        };
        Ok(RowGroupReader {
            input: self.input.clone(),
            footer: self.footer.clone(),
            metadata: self.metadata.clone(),
            row_group_idx,
            schema: Arc::new(Schema::new_with_metadata(fields, metadata)),
            options: ReadOptions { batch_rows: options.batch_rows.max(1), ..options.clone() },
            projection,
            predicate_columns,
            num_stretches,
            stretch_idx: 0,
            stretch_start: 0,
            stretch: None,
        })
    }

    fn field(&self, field_idx: usize, as_view: bool) -> Field {
        let field = self.schema().field(field_idx).clone();
        match self.metadata.column_of_field(field_idx) {
            Some(column) if as_view => field
                .with_data_type(self.metadata.columns()[column].text_type.as_view().data_type()),
            _ => field,
        }
    }
}
