//! The reader of Parquet files with or without GSST columns, row group by row group and stretch by stretch.
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

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::file::reader::{ChunkReader, Length};

use crate::arrow::{decode_rows, decode_selected};
use crate::block::Block;
use crate::{Error, Result};

use super::device::{CheckedChunks, CodePredicate, RowFilter, StretchMatches, checked_chunk, in_both};
use super::guarded;
use super::index::SOURCE;
use super::metadata::{GsstFooter, chunk_range};

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

const READING: &str = "reading Parquet columns";

/// Options for reading a row group.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Fields of the batches, by their place in the schema. `None` means all fields.
    pub projection: Option<Vec<usize>>,
    /// Conditions on GSST columns that all returned rows meet.
    pub predicates: Vec<CodePredicate>,
    /// Filter on ordinary columns that keeps some rows. It runs before the predicates.
    pub row_filter: Option<RowFilter>,
    /// Largest number of rows of a batch.
    pub batch_rows: usize,
    /// True to return GSST columns as views, whatever type they were written from.
    pub text_as_views: bool,
}

impl Default for ReadOptions {
    /// Returns options that read everything, in its original types, in batches of 8,192 rows.
    fn default() -> Self {
        Self { projection: None, predicates: Vec::new(), row_filter: None, batch_rows: 8192, text_as_views: false }
    }
}

/// Iterator over the batches of a row group. It ends after an error.
pub struct RowGroupReader<R> {
    pub(super) input: Arc<R>,
    pub(super) footer: GsstFooter,
    pub(super) row_group_idx: usize,
    pub(super) schema: SchemaRef,
    pub(super) options: ReadOptions,
    pub(super) projection: Vec<usize>,
    /// GSST column of each predicate.
    predicate_columns: Vec<usize>,
    pub(super) num_stretches: usize,
    /// Next stretch to read.
    pub(super) stretch_idx: usize,
    /// First row of that stretch in the row group.
    stretch_start: usize,
    pub(super) stretch: Option<Stretch>,
    /// Text of each GSST column, if it was decoded elsewhere.
    pub(super) texts: Vec<Option<Vec<ArrayRef>>>,
    /// Rows that meet all predicates on each GSST column, if they were found elsewhere.
    pub(super) matches: Vec<Option<Vec<StretchMatches>>>,
    /// Checked chunk of each of Parquet's leaves, once it is read, with its place in the file.
    pub(super) chunks: Vec<OnceLock<(u64, Bytes)>>,
}

/// Remaining rows of a stretch.
pub(super) struct Stretch {
    num_rows: usize,
    num_rows_given: usize,
    /// For each projected field, the text of all its selected rows, if it is a GSST column.
    texts: Vec<Option<ArrayRef>>,
    ordinary: Option<ParquetRecordBatchReader>,
}

impl<R: ChunkReader + 'static> RowGroupReader<R> {
    /// Returns the schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Sets the text of a GSST column, for example as decoded by a device. `stretches` has an array
    /// of all rows for each stretch. The batches then use this text instead of the column's blocks.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if there is no such column, or if the arrays have other rows or
    /// another type than the batches.
    pub fn set_text(&mut self, column_idx: usize, stretches: Vec<ArrayRef>) -> Result<()> {
        let (expected, stretch_rows) = self.type_and_rows(column_idx)?;
        let num_rows: Vec<usize> = stretches.iter().map(|array| array.len()).collect();
        let is_typed = stretches.iter().all(|array| *array.data_type() == expected);
        if num_rows != stretch_rows || !is_typed {
            let got = format!("arrays of {num_rows:?} rows");
            return Err(not_the_text(got, &format!("{stretch_rows:?} of {expected}")));
        }
        self.texts[column_idx] = Some(stretches);
        Ok(())
    }

    /// Sets the rows that meet all predicates on a GSST column, for example as found by a device.
    /// The reader then does not test the column's codes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if there is no such column, if rows do not ascend or do not
    /// exist, or if texts do not belong to the rows or have another type than in the batches.
    pub fn set_matches(&mut self, column_idx: usize, stretches: Vec<StretchMatches>) -> Result<()> {
        let (text_type, stretch_rows) = self.type_and_rows(column_idx)?;
        let mut pairs = stretches.iter().zip(stretch_rows);
        if stretches.len() != stretch_rows.len()
            || !pairs.all(|(matches, num_rows)| matches.is_of(*num_rows, &text_type))
        {
            let got = format!("rows of {} stretches", stretches.len());
            return Err(not_the_text(got, &format!("rows of {stretch_rows:?}")));
        }
        self.matches[column_idx] = Some(stretches);
        Ok(())
    }

    /// Returns the type of a GSST column in the batches, and the numbers of rows of its stretches.
    fn type_and_rows(&self, column_idx: usize) -> Result<(DataType, &[usize])> {
        let gsst = self.footer.gsst();
        let row_group = gsst.row_groups().get(self.row_group_idx);
        let (Some(column), Some(row_group)) = (gsst.columns().get(column_idx), row_group) else {
            return Err(not_the_text(format!("column {column_idx}"), "a GSST column"));
        };
        let is_view = self.options.text_as_views;
        let text_type = if is_view { column.text_type.as_view() } else { column.text_type };
        Ok((text_type.data_type(), &row_group.stretch_rows))
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(stretch) = &mut self.stretch
                && let Some(batch) = stretch.next_batch(&self.schema, &self.projection, self.options.batch_rows)?
            {
                return Ok(Some(batch));
            }
            if self.stretch_idx == self.num_stretches {
                return Ok(None);
            }
            self.stretch = self.open_stretch()?;
        }
    }

    /// Reads the next stretch. Returns `None` if no row of it is selected.
    fn open_stretch(&mut self) -> Result<Option<Stretch>> {
        let stretch_idx = self.stretch_idx;
        let start = self.stretch_start;
        let num_rows = match self.footer.gsst().row_groups().get(self.row_group_idx) {
            Some(row_group) => row_group.stretch_rows[stretch_idx],
            None => {
                let row_group = self.footer.parquet().row_group(self.row_group_idx);
                usize::try_from(row_group.num_rows()).unwrap_or(0)
            }
        };
        self.stretch_idx += 1;
        self.stretch_start += num_rows;
        let selected = self.selected_rows(stretch_idx, start, num_rows)?;
        let num_selected = selected.as_ref().map_or(num_rows, Vec::len);
        if num_selected == 0 {
            return Ok(None);
        }
        let text = |field_idx: &usize| match self.footer.gsst().column_of_field(*field_idx) {
            Some(column_idx) => self.text(column_idx, stretch_idx, num_rows, &selected).map(Some),
            None => Ok(None),
        };
        let texts: Vec<_> = self.projection.iter().map(text).collect::<Result<_>>()?;
        let ordinary = if texts.iter().all(Option::is_some) {
            None
        } else {
            Some(self.ordinary(&self.projection, start, num_rows, &selected)?)
        };
        Ok(Some(Stretch { num_rows: num_selected, num_rows_given: 0, texts, ordinary }))
    }

    /// Returns the rows of a stretch that the filter keeps and that meet all predicates. `None`
    /// means all rows.
    fn selected_rows(&self, stretch_idx: usize, start: usize, num_rows: usize) -> Result<Option<Vec<u32>>> {
        if self.options.predicates.is_empty() && self.options.row_filter.is_none() {
            return Ok(None);
        }
        let may_match = |(predicate, column_idx): (&CodePredicate, &usize)| {
            let runs = &self.footer.gsst().row_groups()[self.row_group_idx].runs;
            predicate.may_match(&runs[*column_idx].blocks[stretch_idx].statistics)
        };
        let predicates = || self.options.predicates.iter().zip(&self.predicate_columns);
        if !predicates().all(may_match) {
            return Ok(Some(Vec::new()));
        }
        let mut selected = self.kept_rows(start, num_rows, self.found_rows(stretch_idx))?;
        for (predicate, &column_idx) in predicates() {
            if selected.is_empty() {
                break;
            }
            if self.matches[column_idx].is_some() {
                continue;
            }
            match self.block(column_idx, stretch_idx)? {
                Some(block) => predicate.retain(&block, &mut selected),
                None => selected.clear(),
            }
        }
        Ok(Some(selected))
    }

    /// Returns the rows of a stretch that were found elsewhere, or `None` if there are no such
    /// results.
    fn found_rows(&self, stretch_idx: usize) -> Option<Vec<u32>> {
        let mut columns = self.matches.iter().flatten().map(|stretches| &stretches[stretch_idx].rows);
        let first = columns.next()?.clone();
        Some(columns.fold(first, |rows, others| in_both(rows, others)))
    }

    /// Returns the rows of a stretch that the row filter keeps, of those in `found`.
    fn kept_rows(&self, start: usize, num_rows: usize, found: Option<Vec<u32>>) -> Result<Vec<u32>> {
        let filter = match (&self.options.row_filter, &found) {
            (Some(filter), None) => filter,
            (Some(filter), Some(rows)) if !rows.is_empty() => filter,
            _ => return Ok(found.unwrap_or_else(|| (0..num_rows as u32).collect())),
        };
        let num_tested = found.as_ref().map_or(num_rows, Vec::len);
        let mut kept = Vec::new();
        let mut at = 0;
        let mut batches = self.ordinary(&filter.fields, start, num_rows, &found)?;
        while let Some(batch) = guarded(READING, || batches.next().transpose())? {
            let mask = (filter.test)(&batch)?;
            let is_kept = |row: &usize| mask.is_valid(*row) && mask.value(*row);
            let places = (0..batch.num_rows().min(mask.len())).filter(is_kept);
            kept.extend(places.map(|place| (at + place) as u32));
            at += batch.num_rows();
        }
        if at == num_tested {
            Ok(match found {
                Some(rows) => kept.iter().map(|place| rows[*place as usize]).collect(),
                None => kept,
            })
        } else {
            Err(rows_missing(num_tested - at.min(num_tested)))
        }
    }

    /// Returns the text of the selected rows of a GSST column.
    fn text(
        &self,
        column_idx: usize,
        stretch_idx: usize,
        num_rows: usize,
        selected: &Option<Vec<u32>>,
    ) -> Result<ArrayRef> {
        let text_type = self.footer.gsst().columns()[column_idx].text_type;
        let text_type = if self.options.text_as_views { text_type.as_view() } else { text_type };
        if let Some(stretches) = &self.texts[column_idx] {
            return rows_from(&stretches[stretch_idx], selected);
        }
        if let (Some(stretches), Some(rows)) = (&self.matches[column_idx], selected)
            && let Some(text) = stretches[stretch_idx].text_for(rows)?
        {
            return Ok(text);
        }
        match (self.block(column_idx, stretch_idx)?, selected) {
            (Some(block), Some(rows)) if rows.len() < num_rows => decode_selected(&block, rows, text_type),
            (Some(block), _) => decode_rows(&block, 0..num_rows, text_type),
            (None, rows) => {
                let num_rows = rows.as_ref().map_or(num_rows, Vec::len);
                Ok(new_null_array(&text_type.data_type(), num_rows))
            }
        }
    }

    /// Reads and checks the block of a stretch. Returns `None` if all its rows are null.
    fn block(&self, column_idx: usize, stretch_idx: usize) -> Result<Option<Block<Bytes>>> {
        let range = self.footer.gsst().block_range(self.row_group_idx, column_idx, stretch_idx);
        let Some(range) = range else {
            return Ok(None);
        };
        let damaged = |reason: &str| Error::Format {
            file: SOURCE.to_owned(),
            section: "GSST block",
            offset: range.start,
            reason: reason.to_owned(),
        };
        if range.end > self.input.len() {
            return Err(damaged("it ends behind the file"));
        }
        let len_bytes = (range.end - range.start) as usize;
        let bytes = guarded("reading a GSST block", || self.input.get_bytes(range.start, len_bytes))?;
        let block = Block::open(bytes)?;
        let run = &self.footer.gsst().row_groups()[self.row_group_idx].runs[column_idx];
        let statistics = &run.blocks[stretch_idx].statistics;
        let from_block = (block.num_rows(), block.num_nulls(), block.text_len_bytes() as u64);
        if from_block != (statistics.num_rows, statistics.num_nulls, statistics.text_len_bytes) {
            return Err(damaged("the index has other numbers of rows, nulls and bytes"));
        }
        Ok(Some(block))
    }

    /// Returns a reader of the selected rows, for those of `fields` that are ordinary columns.
    fn ordinary(
        &self,
        fields: &[usize],
        start: usize,
        num_rows: usize,
        selected: &Option<Vec<u32>>,
    ) -> Result<ParquetRecordBatchReader> {
        let is_ordinary = |field_idx: &usize| self.footer.gsst().column_of_field(*field_idx).is_none();
        let roots: Vec<usize> = fields.iter().copied().filter(is_ordinary).collect();
        let mut selectors = vec![RowSelector::skip(start)];
        match selected {
            Some(rows) => {
                let mut is_selected = vec![false; num_rows];
                rows.iter().for_each(|row| is_selected[*row as usize] = true);
                let filter = BooleanArray::from(is_selected);
                selectors.extend(RowSelection::from_filters(&[filter]).iter());
            }
            None => selectors.push(RowSelector::select(num_rows)),
        }
        match self.checked_chunks(&roots)? {
            Some(chunks) => self.reader(chunks, roots, selectors),
            None => self.reader(Shared(self.input.clone()), roots, selectors),
        }
    }

    fn reader<C: ChunkReader + 'static>(
        &self,
        input: C,
        roots: Vec<usize>,
        selectors: Vec<RowSelector>,
    ) -> Result<ParquetRecordBatchReader> {
        let mask = ProjectionMask::roots(self.footer.arrow.parquet_schema(), roots);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(input, self.footer.arrow.clone())
            .with_projection(mask)
            .with_row_groups(vec![self.row_group_idx])
            .with_row_selection(RowSelection::from(selectors))
            .with_batch_size(self.options.batch_rows);
        guarded(READING, || builder.build())
    }

    /// Returns the chunks of fields, compared with their checksums once. `None` if the file has no
    /// checksums of chunks.
    fn checked_chunks(&self, roots: &[usize]) -> Result<Option<CheckedChunks>> {
        let schema = self.footer.arrow.parquet_schema();
        let mut chunks = Vec::new();
        for (leaf, chunk) in self.chunks.iter().enumerate() {
            if !roots.contains(&schema.get_column_root_idx(leaf)) {
                continue;
            }
            let checksum = self.footer.gsst().chunk_checksum(self.row_group_idx, leaf);
            let Some(checksum) = checksum else { return Ok(None) };
            let read = match chunk.get() {
                Some(read) => read.clone(),
                None => self.read_chunk(leaf, checksum)?,
            };
            chunks.push(chunk.get_or_init(|| read).clone());
        }
        Ok(Some(CheckedChunks::new(self.input.len(), chunks)))
    }

    /// Reads the chunk of one of Parquet's leaves, and compares it with its checksum.
    fn read_chunk(&self, leaf: usize, checksum: u32) -> Result<(u64, Bytes)> {
        let range = chunk_range(self.footer.parquet().row_group(self.row_group_idx).column(leaf))?;
        if range.end > self.input.len() {
            return Err(Error::Format {
                file: SOURCE.to_owned(),
                section: "column chunk",
                offset: range.start,
                reason: "it ends behind the file".to_owned(),
            });
        }
        let len_bytes = (range.end - range.start) as usize;
        let bytes = guarded(READING, || self.input.get_bytes(range.start, len_bytes))?;
        Ok((range.start, checked_chunk(bytes, range.start, checksum)?))
    }
}

impl<R: ChunkReader + 'static> Iterator for RowGroupReader<R> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_batch().transpose();
        if let Some(Err(_)) = batch {
            self.stretch = None;
            self.stretch_idx = self.num_stretches;
        }
        batch
    }
}

impl Stretch {
    fn next_batch(
        &mut self,
        schema: &SchemaRef,
        projection: &[usize],
        batch_rows: usize,
    ) -> Result<Option<RecordBatch>> {
        let left = self.num_rows - self.num_rows_given;
        if left == 0 {
            return Ok(None);
        }
        let ordinary = match &mut self.ordinary {
            Some(reader) => guarded(READING, || reader.next().transpose())?,
            None => None,
        };
        let num_rows = match (&self.ordinary, &ordinary) {
            (None, _) => left.min(batch_rows),
            (Some(_), Some(batch)) if (1..=left).contains(&batch.num_rows()) => batch.num_rows(),
            _ => return Err(rows_missing(left)),
        };
        let ordinary_fields = projection.iter().zip(&self.texts).filter(|(_, text)| text.is_none());
        let mut ordinary_fields: Vec<usize> = ordinary_fields.map(|(field, _)| *field).collect();
        ordinary_fields.sort_unstable();
        ordinary_fields.dedup();
        let column = |(field_idx, text): (&usize, &Option<ArrayRef>)| match (text, &ordinary) {
            (Some(text), _) => Ok(text.slice(self.num_rows_given, num_rows)),
            (None, Some(batch)) => {
                let place = ordinary_fields.binary_search(field_idx).unwrap_or_default();
                Ok(batch.column(place).clone())
            }
            (None, None) => Err(Error::external(READING, "no batch")),
        };
        let columns = projection.iter().zip(&self.texts).map(column).collect::<Result<_>>()?;
        self.num_rows_given += num_rows;
        let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
        RecordBatch::try_new_with_options(schema.clone(), columns, &options)
            .map(Some)
            .map_err(|error| Error::external(READING, error))
    }
}

/// Returns some rows of an array.
fn rows_from(array: &ArrayRef, rows: &Option<Vec<u32>>) -> Result<ArrayRef> {
    match rows {
        Some(rows) if rows.len() < array.len() => {
            let rows = UInt32Array::from(rows.clone());
            take(array, &rows, None).map_err(|error| Error::external(READING, error))
        }
        _ => Ok(array.clone()),
    }
}

fn not_the_text(got: String, allowed: &str) -> Error {
    Error::InvalidArgument { name: "text of a GSST column", got, allowed: allowed.to_owned() }
}

fn rows_missing(num_rows: usize) -> Error {
    Error::Format {
        file: SOURCE.to_owned(),
        section: "ordinary columns",
        offset: 0,
        reason: format!("{num_rows} rows should follow"),
    }
}

/// An input that several readers share.
struct Shared<R>(Arc<R>);

impl<R: Length> Length for Shared<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for Shared<R> {
    type T = R::T;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}
