//! Reads rows of Avro: object container files (`.avro`).
//!
//! ```text
//! file     Obj 1 │ schema, codec │ marker │ block │ block │ …
//! block    number of rows │ length in bytes │ rows, as the codec packs them │ marker
//! ```
//!
//! Source: the specification of Avro, <https://avro.apache.org/docs/1.12.0/specification/>. The blocks are
//! taken apart and unpacked here, within the limits of decompression, and arrow-avro decodes their rows. It
//! gets one row at a time, because its reader of whole files does not end if a block has more rows than it
//! says. Unions become texts ([`plain`](crate::plain)). Memory is one block, packed and unpacked, each of at most
//! `--max-row-size`.

use std::error::Error;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Schema};
use arrow_avro::reader::{Decoder, ReaderBuilder};
use arrow_avro::schema::{AvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore};
use bzip2::read::MultiBzDecoder;
use flate2::Crc;
use flate2::read::DeflateDecoder;
use tadoc::error::contain_panics;

use crate::failure::{Failure, Outcome};
use crate::open::{Budget, Opened, limited, xz_decoder, zstd_decoder};
use crate::plain::Plain;
use crate::rows::Rows;

const MAGIC: &[u8] = b"Obj\x01";
const MARKER_BYTES: usize = 16;
/// Maximum bytes of the header, which holds the schema.
const MAX_HEADER_BYTES: u64 = 16 << 20;
/// Maximum bytes of a number.
const MAX_NUMBER_BYTES: usize = 10;
/// Number of rows that are passed on at once.
const BATCH_ROWS: usize = 1024;
/// Number of the schema in front of each row, in the framing that arrow-avro expects.
const SCHEMA_ID: u32 = 1;
const ROW_PREFIX: [u8; 5] = [0, 0, 0, 0, 1];

/// Reads the rows of one input. `column` is the name of the text column.
pub fn read(column: &str, mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let file = rows.input.shown();
    let bad = |error: &(dyn Error + 'static)| Failure::with_cause(format!("{file}: no valid Avro"), error);
    let max_bytes = rows.options.max_row_bytes;
    let header = Header::read(&mut (&mut *opened.reader).take(MAX_HEADER_BYTES));
    let header = header.map_err(|error| opened.failed(rows.input, &error))?;
    let decoder = contain_panics("schema", || decoder(&header.schema))
        .map_err(|error| bad(&error))?
        .map_err(|error| bad(&*error))?;
    let plain = Plain::new(&decoder.schema(), |name| rows.needs(name, column));
    rows.check_text_column(column, plain.schema())?;
    rows.check_num_columns(plain.schema())?;
    rows.check_time_column(plain.schema())?;
    let mut decoder =
        RowDecoder { decoder, is_new: true, has_unions: plain.has_unions(), schema: header.schema, plain };
    let mut num_rows = 0;
    for number in 1u64.. {
        let block = Block::read(&mut *opened.reader, &header.marker, max_bytes);
        let block = block.map_err(|error| opened.failed(rows.input, &error))?;
        let Some(block) = block else { break };
        let wrong = |error: &(dyn Error + 'static)| {
            Failure::with_cause(format!("{file}: no valid Avro: block {number}"), error)
        };
        let unpacked = header.codec.unpack(block.bytes, max_bytes, &opened.budget);
        let unpacked = unpacked.map_err(|error| {
            if Budget::is_exceeded(&error) {
                opened.budget.failed(Some(header.codec.name()), rows.input, &error)
            } else {
                wrong(&error)
            }
        })?;
        rows.sink.count_read(opened.take_counts());
        let mut rest = unpacked.as_slice();
        let mut num_left = block.num_rows;
        while num_left > 0 || !rest.is_empty() {
            let decode = || decoder.next_rows(&mut rest, &mut num_left);
            let batch = contain_panics("block", decode).map_err(|error| wrong(&error))?;
            let batch = batch.map_err(|error| wrong(&*error))?;
            rows.take(column, &batch, &|idx| format!("row {}", num_rows + idx + 1))?;
            num_rows += batch.num_rows();
        }
    }
    rows.sink.count_read(opened.take_counts());
    Ok(())
}

/// Builds a decoder of rows of `schema`.
///
/// # Errors
/// It is no schema of rows, or a list in it may have any number of items without bytes.
fn decoder(schema: &str) -> Result<Decoder, Box<dyn Error>> {
    let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
    let id = store.set(Fingerprint::Id(SCHEMA_ID), AvroSchema::new(schema.to_owned()))?;
    let decoder = ReaderBuilder::new()
        .with_writer_schema_store(store)
        .with_active_fingerprint(id)
        .with_batch_size(1)
        .build_decoder()?;
    check_items(&decoder.schema())?;
    Ok(decoder)
}

/// Checks that the items of lists and maps have bytes. A few bytes could hold a billion others.
fn check_items(schema: &Schema) -> Result<(), String> {
    let is_bounded = |data_type: &DataType| match data_type {
        DataType::List(item) => has_bytes(item.data_type()),
        // The entries of a map have keys.
        _ => true,
    };
    let fields = schema.flattened_fields();
    match fields.iter().find(|field| !is_bounded(field.data_type())) {
        Some(field) => Err(format!("the items of the list `{}` are all null", field.name())),
        None => Ok(()),
    }
}

/// Returns true if each value of this type takes bytes.
fn has_bytes(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null | DataType::FixedSizeBinary(0) => false,
        DataType::Struct(fields) => fields.iter().any(|field| has_bytes(field.data_type())),
        _ => true,
    }
}

/// A decoder of the rows of one file.
struct RowDecoder {
    decoder: Decoder,
    /// True before the first row of `decoder`.
    is_new: bool,
    has_unions: bool,
    schema: String,
    plain: Plain,
}

impl RowDecoder {
    /// Decodes the next rows of a block, of which `rest` is left, and which has `num_left` rows more.
    ///
    /// # Errors
    /// They are damaged, or the block has another number of rows.
    fn next_rows(&mut self, rest: &mut &[u8], num_left: &mut u64) -> Result<RecordBatch, Box<dyn Error>> {
        let mut batches = Vec::new();
        while batches.len() < BATCH_ROWS && *num_left > 0 {
            let (row, len) = self.next_row(rest)?;
            let (Some(row), true) = (row, len > 0) else {
                return Err(format!("it is cut: {num_left} rows are missing").into());
            };
            batches.push(self.plain.batch(&row)?);
            *rest = rest.get(len..).unwrap_or_default();
            *num_left -= 1;
        }
        if *num_left == 0 && !rest.is_empty() {
            return Err(format!("{} bytes follow its rows", rest.len()).into());
        }
        let schema = batches.first().map_or_else(|| Arc::clone(self.plain.schema()), RecordBatch::schema);
        Ok(concat_batches(&schema, &batches)?)
    }

    /// Decodes the row at the start of `rest`, and returns its length, too.
    fn next_row(&mut self, rest: &[u8]) -> Result<(Option<RecordBatch>, usize), Box<dyn Error>> {
        // The decoder of unions counts the values of rows that it has returned, so it is good for one row.
        if self.has_unions && !self.is_new {
            self.decoder = decoder(&self.schema)?;
        }
        self.is_new = false;
        self.decoder.decode(&ROW_PREFIX)?;
        let len = self.decoder.decode(rest)?;
        Ok((self.decoder.flush()?, len))
    }
}

/// The start of a file.
#[derive(Debug)]
struct Header {
    schema: String,
    codec: Codec,
    /// Bytes behind each block.
    marker: [u8; MARKER_BYTES],
}

impl Header {
    fn read(reader: &mut dyn BufRead) -> io::Result<Self> {
        let mut magic = [0; MAGIC.len()];
        reader.read_exact(&mut magic).map_err(|_| damaged("the header is cut"))?;
        if magic != MAGIC {
            return Err(damaged("no Avro: expected a file that begins with `Obj` and a byte 1"));
        }
        let mut schema = None;
        let mut codec = Codec::None;
        loop {
            let count = read_number(reader)?;
            if count == 0 {
                break;
            }
            if count < 0 {
                // The length of these entries.
                read_number(reader)?;
            }
            for _ in 0..count.unsigned_abs() {
                let key = read_bytes(reader, u64::MAX)?;
                let value = read_bytes(reader, u64::MAX)?;
                match key.as_slice() {
                    b"avro.schema" => schema = Some(String::from_utf8_lossy(&value).into_owned()),
                    b"avro.codec" => codec = Codec::from_name(&value)?,
                    _ => {}
                }
            }
        }
        let mut marker = [0; MARKER_BYTES];
        reader.read_exact(&mut marker).map_err(|_| damaged("the header is cut"))?;
        let schema = schema.ok_or_else(|| damaged("the header has no schema"))?;
        Ok(Self { schema, codec, marker })
    }
}

/// A block, packed.
struct Block {
    num_rows: u64,
    bytes: Vec<u8>,
}

impl Block {
    /// Reads the next block, or none at the end.
    fn read(reader: &mut dyn BufRead, marker: &[u8; MARKER_BYTES], max_bytes: u64) -> io::Result<Option<Self>> {
        if reader.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let num_rows = read_number(reader)?;
        let num_rows = u64::try_from(num_rows).map_err(|_| damaged("a block has below 0 rows"))?;
        let bytes = read_bytes(reader, max_bytes)?;
        let mut behind = [0; MARKER_BYTES];
        reader.read_exact(&mut behind).map_err(|_| damaged("the last block is cut"))?;
        if behind == *marker {
            Ok(Some(Self { num_rows, bytes }))
        } else {
            Err(damaged("the marker behind a block differs from that of the header"))
        }
    }
}

/// A way to pack blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    None,
    Deflate,
    Snappy,
    Zstandard,
    Bzip2,
    Xz,
}

impl Codec {
    fn from_name(name: &[u8]) -> io::Result<Self> {
        Ok(match name {
            b"null" => Self::None,
            b"deflate" => Self::Deflate,
            b"snappy" => Self::Snappy,
            b"zstandard" => Self::Zstandard,
            b"bzip2" => Self::Bzip2,
            b"xz" => Self::Xz,
            other => {
                let other = String::from_utf8_lossy(other);
                let known = "null, deflate, snappy, zstandard, bzip2 or xz";
                return Err(damaged(&format!("the codec is {other:?}, expected {known}")));
            }
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::None => "null",
            Self::Deflate => "deflate",
            Self::Snappy => "snappy",
            Self::Zstandard => "zstandard",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
        }
    }

    /// Unpacks a block to at most `max_bytes`, within the limits of `budget`.
    fn unpack(self, packed: Vec<u8>, max_bytes: u64, budget: &Budget) -> io::Result<Vec<u8>> {
        let decoder: Box<dyn Read + '_> = match self {
            Self::None => return Ok(packed),
            Self::Snappy => return unpack_snappy(&packed, max_bytes, budget),
            Self::Deflate => Box::new(DeflateDecoder::new(packed.as_slice())),
            Self::Bzip2 => Box::new(MultiBzDecoder::new(packed.as_slice())),
            Self::Zstandard => zstd_decoder(packed.as_slice(), budget)?,
            Self::Xz => xz_decoder(packed.as_slice(), budget)?,
        };
        let counters = budget.counters(packed.len() as u64);
        let mut unpacked = Vec::new();
        let decoder = limited(decoder, &counters, budget);
        decoder.take(max_bytes.saturating_add(1)).read_to_end(&mut unpacked)?;
        check_len(unpacked.len() as u64, max_bytes)?;
        Ok(unpacked)
    }
}

/// Unpacks a block of snappy, which ends with a checksum of its bytes.
fn unpack_snappy(packed: &[u8], max_bytes: u64, budget: &Budget) -> io::Result<Vec<u8>> {
    let (packed, checksum) = packed.split_last_chunk().ok_or_else(|| damaged("the checksum is missing"))?;
    let len = snap::raw::decompress_len(packed).map_err(io::Error::other)?;
    check_len(len as u64, max_bytes)?;
    budget.expand(packed.len() as u64, len as u64).map_err(|reason| damaged(&reason))?;
    let unpacked = snap::raw::Decoder::new().decompress_vec(packed).map_err(io::Error::other)?;
    let mut crc = Crc::new();
    crc.update(&unpacked);
    if crc.sum() == u32::from_be_bytes(*checksum) { Ok(unpacked) } else { Err(damaged("the checksum differs")) }
}

fn check_len(len: u64, max_bytes: u64) -> io::Result<()> {
    if len <= max_bytes {
        Ok(())
    } else {
        Err(damaged(&format!(
            "a part of {len} bytes or more; parts are held in memory as a whole: pass a larger \
             --max-row-size than {max_bytes}"
        )))
    }
}

/// Reads bytes behind their length. Memory grows with the bytes that are there.
fn read_bytes(reader: &mut dyn BufRead, max_bytes: u64) -> io::Result<Vec<u8>> {
    let len = read_number(reader)?;
    let len = u64::try_from(len).map_err(|_| damaged("a length is below 0"))?;
    check_len(len, max_bytes)?;
    let mut bytes = Vec::new();
    reader.take(len).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == len { Ok(bytes) } else { Err(damaged("the file is cut")) }
}

/// Reads a number: groups of seven bits, the lowest first, whose lowest bit is the sign.
fn read_number(reader: &mut dyn BufRead) -> io::Result<i64> {
    let mut number = 0u64;
    for at in 0..MAX_NUMBER_BYTES {
        let mut byte = [0];
        reader.read_exact(&mut byte).map_err(|_| damaged("the file is cut"))?;
        number |= u64::from(byte[0] & 0x7f) << (7 * at);
        if byte[0] < 0x80 {
            return Ok((number >> 1) as i64 ^ -((number & 1) as i64));
        }
    }
    Err(damaged("a number has more than 10 bytes"))
}

fn damaged(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use arrow::util::display::array_value_to_string;

    use super::*;
    use crate::columns::ColumnSink;
    use crate::inputs::{Input, Source};
    use crate::{ArchiveOptions, Batch, Division, Documents, ReadOptions, Sink, read as read_inputs};

    #[test]
    fn numbers_have_their_sign() {
        for (bytes, number) in [
            (vec![0], 0),
            (vec![1], -1),
            (vec![2], 1),
            (vec![0x80, 1], 64),
            (vec![0xff; 9].into_iter().chain([1]).collect(), i64::MIN),
        ] {
            assert_eq!(read_number(&mut Cursor::new(bytes)).unwrap(), number);
        }
        assert!(read_number(&mut Cursor::new(vec![0x80; 20])).is_err());
        assert!(read_number(&mut Cursor::new(vec![0x80])).is_err());
    }

    /// Collects documents and columns.
    #[derive(Default)]
    struct Read {
        texts: Vec<String>,
        values: Vec<String>,
    }

    impl Sink for &mut Read {
        fn take(&mut self, batch: Batch) -> Outcome {
            self.texts.extend(batch.iter().map(|part| String::from_utf8_lossy(part.text).into_owned()));
            Ok(())
        }
    }

    impl ColumnSink for Read {
        fn check(&self, _schema: &Schema, _input: &str) -> Outcome {
            Ok(())
        }

        fn push(&mut self, rows: &RecordBatch) -> Outcome {
            let value = |idx| {
                let values = rows.columns().iter().map(|column| array_value_to_string(column, idx).unwrap());
                values.collect::<Vec<_>>().join("|")
            };
            self.values.extend((0..rows.num_rows()).map(value));
            Ok(())
        }

        fn num_columns(&self) -> usize {
            0
        }
    }

    /// Returns a number from 0 to 8191.
    fn number(value: usize) -> Vec<u8> {
        if value < 64 { vec![value as u8 * 2] } else { vec![(value % 64) as u8 * 2 + 128, (value / 64) as u8] }
    }

    fn text(value: &str) -> Vec<u8> {
        [number(value.len()), value.as_bytes().to_vec()].concat()
    }

    /// Returns the documents and the values of a file of these rows, whose text is in `column`.
    fn read_rows(fields: &str, column: &str, rows: &[Vec<u8>]) -> Read {
        let schema = format!(r#"{{"type": "record", "name": "r", "fields": [{fields}]}}"#);
        let head = [&[2], &text("avro.schema")[..], &text(&schema), &[0]].concat();
        let data = rows.concat();
        let block = [number(rows.len()), number(data.len()), data].concat();
        let file = [MAGIC, &head, &[7; MARKER_BYTES], &block, &[7; MARKER_BYTES]].concat();
        let source = Source::Text { bytes: file.into(), lines_before: 0 };
        let inputs = [Input::new(source, "a.avro".to_owned(), 0)];
        let division = Division::from(Documents::Avro(column.to_owned()));
        let (mut sink, mut columns) = (Read::default(), Read::default());
        let archives = ArchiveOptions::default();
        let mut documents = &mut sink;
        read_inputs(&inputs, &division, ReadOptions::default(), &archives, &mut columns, &mut documents).unwrap();
        Read { texts: sink.texts, values: columns.values }
    }

    #[test]
    fn unions_and_uuids_are_texts() {
        let body = r#"{"name": "body", "type": "string"}"#;
        let row = |value: &[u8]| [&text("t"), value].concat();
        let fields = format!(r#"{body}, {{"name": "u", "type": ["null", "int", "string"]}}"#);
        let rows = [row(&[0]), row(&[2, 2]), row(&[4, 2, b'x']), row(&[2, 4]), row(&[4, 2, b'y'])];
        let read = read_rows(&fields, "body", &rows);
        assert_eq!(read.values, ["", "1", "x", "2", "y"]);
        assert_eq!(read.texts.len(), 5);
        let fields = format!(r#"{body}, {{"name": "u", "type": ["int", "string"]}}"#);
        let rows = [row(&[0, 2]), row(&[2, 2, b'x']), row(&[0, 4])];
        assert_eq!(read_rows(&fields, "body", &rows).values, ["1", "x", "2"]);
        // The texts of a union are texts of documents, too.
        assert_eq!(read_rows(&fields, "u", &rows).texts, ["1", "x", "2"]);
        let record = |name: &str, field: &str, kind: &str| {
            format!(r#"{{"type": "record", "name": "{name}", "fields": [{{"name": "{field}", "type": "{kind}"}}]}}"#)
        };
        let records = format!("{}, {}", record("A", "v", "int"), record("B", "w", "string"));
        let fields = format!(r#"{body}, {{"name": "u", "type": ["null", {records}]}}"#);
        let rows = [row(&[0]), row(&[2, 2]), row(&[4, 2, b'q'])];
        assert_eq!(read_rows(&fields, "body", &rows).values, ["", "{\"v\":1}", "{\"w\":\"q\"}"]);
        let uuid = "550e8400-e29b-41d4-a716-446655440000";
        let fields = format!(r#"{body}, {{"name": "u", "type": {{"type": "string", "logicalType": "uuid"}}}}"#);
        assert_eq!(read_rows(&fields, "body", &[row(&text(uuid))]).values, [uuid]);
    }

    #[test]
    fn lists_without_bytes_are_refused() {
        let schema = |items: &str| {
            format!(
                r#"{{"type": "record", "name": "r", "fields": [
                    {{"name": "text", "type": "string"}},
                    {{"name": "list", "type": {{"type": "array", "items": {items}}}}}]}}"#
            )
        };
        assert!(decoder(&schema(r#""null""#)).is_err());
        assert!(decoder(&schema(r#"{"type": "record", "name": "e", "fields": []}"#)).is_err());
        assert!(decoder(&schema(r#""long""#)).is_ok());
        assert!(decoder(&schema(r#"["null", "string"]"#)).is_ok());
        assert!(decoder("[").is_err() && decoder(r#""string""#).is_err());
    }
}
