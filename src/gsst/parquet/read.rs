//! Reading Parquet files with GSST columns, and those without.
//!
//! ```text
//! for each stretch   statistics ─▶ row filter ─▶ blocks of predicates ─┬─▶ blocks of the projection
//!                    (pruned)      (ordinary)    (codes)               └─▶ Parquet: ordinary columns
//! ```
//!
//! Rows that others have found, a device say, come before the row filter. Nothing is read of a
//! stretch whose rows are all rejected but what rejected them. This reader is
//! synchronous; what it knows of places is in [`GsstFooter`], for others.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use parquet::file::reader::ChunkReader;

use crate::error::{Error, Result};

use super::footer::GsstFooter;
use super::predicate::{CodePredicate, RowFilter};
use super::row_group::RowGroupReader;

/// What is read of a row group.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Fields of the batches, by their place in the schema; `None` is all.
    pub projection: Option<Vec<usize>>,
    /// Only rows that meet all of these.
    pub predicates: Vec<CodePredicate>,
    /// Only rows that it keeps; tested first.
    pub row_filter: Option<RowFilter>,
    /// Most rows of a batch.
    pub batch_rows: usize,
    /// Whether GSST columns come as views, whatever they were written from.
    pub text_as_views: bool,
}

impl Default for ReadOptions {
    /// Everything, as it was written, in batches of 8,192 rows.
    fn default() -> Self {
        Self {
            projection: None,
            predicates: Vec::new(),
            row_filter: None,
            batch_rows: 8192,
            text_as_views: false,
        }
    }
}

/// A Parquet file, with or without GSST columns, in anything that gives ranges of bytes.
pub struct GsstParquetReader<R> {
    input: Arc<R>,
    footer: GsstFooter,
}

impl<R: ChunkReader + 'static> GsstParquetReader<R> {
    /// Reads the footer.
    ///
    /// # Errors
    ///
    /// As [`GsstFooter::read`].
    pub fn open(input: R) -> Result<Self> {
        let footer = GsstFooter::read(&input)?;
        Ok(Self::with_footer(input, footer))
    }

    /// A file whose footer is known: `input` needs to have only the ranges that are read.
    pub fn with_footer(input: R, footer: GsstFooter) -> Self {
        Self { input: Arc::new(input), footer }
    }

    /// The schema the file was written from.
    pub fn schema(&self) -> &SchemaRef {
        self.footer.schema()
    }

    /// The footer.
    pub fn footer(&self) -> &GsstFooter {
        &self.footer
    }

    /// Number of row groups.
    pub fn num_row_groups(&self) -> usize {
        self.footer.num_row_groups()
    }

    /// Batches of a row group.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] where there is no such row group or field, [`Error::InvalidArgument`]
    /// where a predicate is on a column that is no GSST column, or the row
    /// filter on one that is.
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
        let gsst = self.footer.gsst();
        if let Some(filter) = &options.row_filter {
            let is_ordinary = |field_idx: &usize| {
                *field_idx < num_fields && gsst.column_of_field(*field_idx).is_none()
            };
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
        })
    }

    fn field(&self, field_idx: usize, as_view: bool) -> Field {
        let field = self.schema().field(field_idx).clone();
        let gsst = self.footer.gsst();
        match gsst.column_of_field(field_idx) {
            Some(column) if as_view => {
                field.with_data_type(gsst.columns()[column].text_type.as_view().data_type())
            }
            _ => field,
        }
    }
}
