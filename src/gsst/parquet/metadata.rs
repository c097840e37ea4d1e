//! The footer of a Parquet file: its metadata, the index of GSST columns, and checksums.
//!
//! The footer is enough to plan a query: it shows which row groups can be skipped and which byte ranges the fields of a
//! row group occupy. Asynchronous readers fetch those ranges first and then read from memory. All places in the index
//! are compared with those of Parquet, because another program may have rewritten the file and kept the key. A run must
//! lie inside its column's chunk, and stretches must have the row group's rows.
//!
//! In the file, a GSST column has a name of its own, `level (tadoc GSST codes)` for `level`. A
//! reader that does not know GSST columns finds no `level`, so it cannot take codes for values. The
//! index has the names of the schema that the file was written from.
//!
//! # Seal
//!
//! Checksums cover every byte of a file that a reader uses; blocks have their own.
//!
//! ```text
//! "PAR1" │ chunks of row group 0 │ chunks of row group 1 │ page indexes │ footer, length, "PAR1"
//!          CRC32C of each chunk: in the index            └─────────── seal: CRC32C ───────────┘
//!
//! "tadoc.gsst.seal" ─▶ start of the sealed bytes (16 digits), their CRC32C (8 digits)
//! ```
//!
//! The seal lies among the bytes that it covers, so its last 8 digits count as `0` in the checksum.
//! It is found by its key and the lengths that Parquet writes around it (the compact protocol of
//! Thrift), at the last place that has them. It is compared before the footer is used.

use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use memchr::memmem;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::SchemaDescriptor;

use crate::layout::{ALIGNMENT_BYTES, HEADER_BYTES, MAX_BLOCK_ROWS};
use crate::{Error, Result};

use super::guarded;
use super::index::{
    GsstColumn, GsstRowGroup, INDEX_KEY, Index, SOURCE, STORED_NAME_MARK, StoredBlock, TextStatistics,
    are_keys_left_over, fault, has_stored_name, has_stored_type, value_for,
};

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

/// Key of the seal in the footer.
pub const SEAL_KEY: &str = "tadoc.gsst.seal";

const START_DIGITS: usize = 16;
const CHECKSUM_DIGITS: usize = 8;
const DIGITS: usize = START_DIGITS + CHECKSUM_DIGITS;
/// Head of the second field of a structure, a text, and the length of the text.
const BETWEEN: [u8; 2] = [0x18, DIGITS as u8];
const SECTION: &str = "footer";

/// Checksum of the end of a file: page indexes and footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FooterSeal {
    start: u64,
    checksum: u32,
}

impl FooterSeal {
    /// Returns the seal of the file with this footer. `None` if it has none, as files of the first
    /// version and files without GSST columns.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if the value of the key is no seal.
    pub fn find(footer: &ParquetMetaData) -> Result<Option<Self>> {
        let digits = value_for(footer, SEAL_KEY).filter(|_| !are_keys_left_over(footer));
        let Some(digits) = digits else { return Ok(None) };
        let is_seal = digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let parsed = digits.split_at_checked(START_DIGITS).filter(|_| is_seal);
        let parsed = parsed.and_then(|(start, checksum)| {
            let start = u64::from_str_radix(start, 16).ok()?;
            Some(Self { start, checksum: u32::from_str_radix(checksum, 16).ok()? })
        });
        let reason = "expected 24 hexadecimal digits as the checksum of the footer";
        parsed.map(Some).ok_or_else(|| fault(0, reason))
    }

    /// Returns the range of the sealed bytes in a file of this length.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if they start behind the end of the file.
    pub fn range(&self, file_len_bytes: u64) -> Result<Range<u64>> {
        if self.start < file_len_bytes {
            Ok(self.start..file_len_bytes)
        } else {
            Err(fault(0, "a checksum of bytes behind the end of the file"))
        }
    }

    /// Compares the sealed bytes with their checksum.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] if they are not those that were written.
    pub fn check(&self, sealed: &[u8]) -> Result<()> {
        let got = match places(sealed) {
            Some(places) => checksum_without(sealed, &places),
            None => crc32c::crc32c(sealed),
        };
        if got == self.checksum {
            return Ok(());
        }
        let file = SOURCE.to_owned();
        let expected = self.checksum;
        Err(Error::Checksum { file, section: SECTION, offset: self.start, expected, got })
    }
}

/// Returns the value of the seal's key before the checksum is known.
pub(super) fn open_seal(start: u64) -> String {
    format!("{start:016x}{:08x}", 0)
}

/// Writes the checksum of `sealed` into the value of the seal's key.
pub(super) fn close_seal(sealed: &mut [u8]) -> io::Result<()> {
    let places = places(sealed);
    let places = places.ok_or_else(|| io::Error::other("the footer has no place for its checksum"))?;
    let digits = format!("{:08x}", checksum_without(sealed, &places));
    sealed[places].copy_from_slice(digits.as_bytes());
    Ok(())
}

/// Returns the places of the digits of the checksum among the sealed bytes.
fn places(sealed: &[u8]) -> Option<Range<usize>> {
    let around = [SEAL_KEY.as_bytes(), &BETWEEN].concat();
    let start = memmem::rfind(sealed, &around)? + around.len() + START_DIGITS;
    let places = start..start + CHECKSUM_DIGITS;
    (places.end <= sealed.len()).then_some(places)
}

/// Returns the CRC32C of `sealed` with `0` at `places`.
fn checksum_without(sealed: &[u8], places: &Range<usize>) -> u32 {
    let before = crc32c::crc32c(&sealed[..places.start]);
    let zeros = crc32c::crc32c_append(before, &[b'0'; CHECKSUM_DIGITS]);
    crc32c::crc32c_append(zeros, &sealed[places.end..])
}

/// An output that computes the checksums of column chunks as they pass, and seals the footer.
pub(super) struct SealedOutput<W> {
    output: W,
    /// Number of bytes that were written.
    len_bytes: u64,
    /// Chunks whose bytes are awaited or have passed, ascending.
    chunks: Vec<Chunk>,
    /// First of them that is not complete.
    next: usize,
    /// Bytes of the end of the file, once it begins.
    end: Option<Vec<u8>>,
}

struct Chunk {
    range: Range<u64>,
    checksum: u32,
}

impl<W> SealedOutput<W> {
    pub(super) fn new(output: W) -> Self {
        Self { output, len_bytes: 0, chunks: Vec::new(), next: 0, end: None }
    }

    /// Notes that the bytes in `range` will be a column chunk. Ranges must ascend.
    pub(super) fn expect_chunk(&mut self, range: Range<u64>) {
        self.chunks.push(Chunk { range, checksum: 0 });
    }

    /// Returns the checksums of all chunks, in the order in which they were noted.
    pub(super) fn checksums(&self) -> Vec<u32> {
        self.chunks.iter().map(|chunk| chunk.checksum).collect()
    }

    /// Keeps all following bytes until [`SealedOutput::finish`].
    pub(super) fn begin_end(&mut self) {
        self.end = Some(Vec::new());
    }

    fn count(&mut self, written: &[u8]) {
        let start = self.len_bytes;
        self.len_bytes += written.len() as u64;
        while let Some(chunk) = self.chunks.get_mut(self.next) {
            let from = chunk.range.start.clamp(start, self.len_bytes) - start;
            let to = chunk.range.end.clamp(start, self.len_bytes) - start;
            let part = &written[from as usize..to as usize];
            chunk.checksum = crc32c::crc32c_append(chunk.checksum, part);
            if chunk.range.end > self.len_bytes {
                return;
            }
            self.next += 1;
        }
    }
}

impl<W: Write> SealedOutput<W> {
    /// Writes the end of the file with its checksum, and returns the output.
    pub(super) fn finish(mut self) -> io::Result<W> {
        if let Some(mut end) = self.end.take() {
            close_seal(&mut end)?;
            self.output.write_all(&end)?;
        }
        Ok(self.output)
    }
}

impl<W: Write> Write for SealedOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(end) = &mut self.end {
            end.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let num_written = self.output.write(bytes)?;
        self.count(&bytes[..num_written]);
        Ok(num_written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output that takes at most 3 bytes at a time.
    struct Slow(Vec<u8>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let part = &bytes[..bytes.len().min(3)];
            self.0.extend_from_slice(part);
            Ok(part.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn chunks_have_the_checksums_of_their_bytes() {
        let bytes: Vec<u8> = (0..100).collect();
        let ranges = [4..4, 4..9, 9..50, 60..61, 61..100];
        for piece in [1, 2, 7, 100] {
            let mut output = SealedOutput::new(Slow(Vec::new()));
            for range in ranges.clone() {
                output.expect_chunk(range);
            }
            bytes.chunks(piece).for_each(|part| output.write_all(part).unwrap());
            let of = |range: Range<u64>| crc32c::crc32c(&bytes[range.start as usize..range.end as usize]);
            assert_eq!(output.checksums(), ranges.clone().map(of));
            assert_eq!(output.finish().unwrap().0, bytes);
        }
    }

    #[test]
    fn a_seal_covers_each_of_its_bytes() {
        let mut output = SealedOutput::new(Vec::new());
        output.write_all(b"rows").unwrap();
        output.begin_end();
        let pair = [SEAL_KEY.as_bytes(), &BETWEEN, open_seal(4).as_bytes()].concat();
        // A value that looks like a seal comes before it.
        let end = [&b"min "[..], &pair, b" footer ", &pair, b" PAR1"].concat();
        output.write_all(&end).unwrap();
        let file = output.finish().unwrap();
        let sealed = &file[4..];
        let found = places(sealed).unwrap();
        let digits = std::str::from_utf8(&sealed[found]).unwrap();
        let seal = FooterSeal { start: 4, checksum: u32::from_str_radix(digits, 16).unwrap() };
        seal.check(sealed).unwrap();
        assert_eq!(seal.range(file.len() as u64).unwrap(), 4..file.len() as u64);
        assert!(seal.range(4).is_err());
        let digits = places(sealed).unwrap();
        for at in (0..sealed.len()).filter(|at| !digits.contains(at)) {
            let mut damaged = sealed.to_vec();
            damaged[at] ^= 0x10;
            assert!(matches!(seal.check(&damaged), Err(Error::Checksum { .. })), "{at}");
        }
    }

    #[test]
    fn an_end_without_a_seal_is_refused() {
        let mut output = SealedOutput::new(Vec::new());
        output.begin_end();
        output.write_all(b"footer").unwrap();
        assert!(output.finish().is_err());
    }
}
