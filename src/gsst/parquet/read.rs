//! The reader of Parquet files with or without GSST columns.
//!
//! ```text
//! each stretch  statistics ─▶ row filter ─▶ blocks of predicates ─┬─▶ blocks of the projection
//!               (pruned)      (ordinary)    (codes)               └─▶ Parquet: ordinary columns
//! ```
//!
//! Rows that were found elsewhere, such as on a device, are applied before the row filter. If all
//! rows of a stretch are rejected, only the columns that rejected them are read. This reader is
//! synchronous. [`GsstFooter`] gives the byte ranges to asynchronous readers.

use std::sync::{Arc, OnceLock};

use arrow::datatypes::{Field, Schema, SchemaRef};
use parquet::file::reader::ChunkReader;

use crate::error::{Error, Result};

use super::metadata::GsstFooter;
use super::row_group::{ReadOptions, RowGroupReader};

/// Reader of a Parquet file, with or without GSST columns, from any source of byte ranges.
pub struct GsstParquetReader<R> {
    input: Arc<R>,
    footer: GsstFooter,
}

impl<R: ChunkReader + 'static> GsstParquetReader<R> {
    /// Opens a file and reads its footer.
    ///
    /// # Errors
    ///
    /// The errors of [`GsstFooter::read`].
    pub fn open(input: R) -> Result<Self> {
        let footer = GsstFooter::read(&input)?;
        Ok(Self::with_footer(input, footer))
    }

    /// Creates a reader with a known footer. `input` needs to have only the ranges that are read.
    pub fn with_footer(input: R, footer: GsstFooter) -> Self {
        Self { input: Arc::new(input), footer }
    }

    /// Returns the schema that the file was written from.
    pub fn schema(&self) -> &SchemaRef {
        self.footer.schema()
    }

    /// Returns the footer.
    pub fn footer(&self) -> &GsstFooter {
        &self.footer
    }

    /// Returns the number of row groups.
    pub fn num_row_groups(&self) -> usize {
        self.footer.num_row_groups()
    }

    /// Returns the batches of a row group.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] if there is no such row group or field. [`Error::InvalidArgument`] if
    /// a predicate is on a column that is not a GSST column, or the row filter on one that is.
    pub fn read_row_group(&self, row_group_idx: usize, options: &ReadOptions) -> Result<RowGroupReader<R>> {
        let out_of_range =
            |what, got: usize, len: usize| Err(Error::OutOfRange { what, got: got as u64, len: len as u64 });
        if row_group_idx >= self.num_row_groups() {
            return out_of_range("row group", row_group_idx, self.num_row_groups());
        }
        let num_fields = self.schema().fields().len();
        let projection = options.projection.clone().unwrap_or((0..num_fields).collect());
        if let Some(&field_idx) = projection.iter().find(|field_idx| **field_idx >= num_fields) {
            return out_of_range("field", field_idx, num_fields);
        }
        let gsst = self.footer.gsst();
        if let Some(filter) = &options.row_filter {
            let is_ordinary = |field_idx: &usize| *field_idx < num_fields && gsst.column_of_field(*field_idx).is_none();
            if !filter.fields.iter().all(is_ordinary) || !filter.fields.is_sorted() {
                return Err(Error::InvalidArgument {
                    name: "row filter",
                    got: format!("fields {:?}", filter.fields),
                    allowed: "ordinary columns, ascending".to_owned(),
                });
            }
        }
        let predicate_columns = options.predicates.iter().map(|predicate| {
            let column = gsst.column_of_field(predicate.field_idx);
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
        let num_stretches = match gsst.row_groups().get(row_group_idx) {
            Some(row_group) => row_group.stretch_rows.len(),
            None => 1,
        };
        let num_leaves = self.footer.parquet().row_group(row_group_idx).num_columns();
        Ok(RowGroupReader {
            input: self.input.clone(),
            footer: self.footer.clone(),
            row_group_idx,
            schema: Arc::new(Schema::new_with_metadata(fields, metadata)),
            options: ReadOptions { batch_rows: options.batch_rows.max(1), ..options.clone() },
            projection,
            predicate_columns,
            num_stretches,
            stretch_idx: 0,
            stretch_start: 0,
            stretch: None,
            texts: vec![None; gsst.columns().len()],
            matches: vec![None; gsst.columns().len()],
            chunks: (0..num_leaves).map(|_| OnceLock::new()).collect(),
        })
    }

    fn field(&self, field_idx: usize, as_view: bool) -> Field {
        let field = self.schema().field(field_idx).clone();
        let gsst = self.footer.gsst();
        match gsst.column_of_field(field_idx) {
            Some(column) if as_view => field.with_data_type(gsst.columns()[column].text_type.as_view().data_type()),
            _ => field,
        }
    }
}
