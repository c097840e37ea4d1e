//! Conversion between Arrow arrays of text and blocks.
//!
//! ```text
//! Utf8, LargeUtf8, Utf8View,       ──rows──▶ borrowed rows ──BlockEncoder──▶ blocks
//! Binary, LargeBinary, BinaryView                                              │
//!       ▲                                                        decode_rows, decode_selected
//!       │   offsets, or views: at most 12 bytes inline,                        │
//!       └── longer ones point into the text ◀───────── text and offsets ◀──────┘
//! ```
//!
//! Decoding makes one buffer of text, which the array uses as it is: no row is copied on its own. UTF-8 is checked once
//! for the whole buffer. Then the starts of rows are checked to be starts of characters, since a block may hold any
//! bytes whatever its checksum. A decoded array shares nothing with the block, so the block can be dropped.
//!
//! Limits: those of a block (2^23 bytes of text, 2^20 rows). An array with 32-bit offsets or views holds at most 2^31 -
//! 1 bytes of text. Dictionaries and lists are left to the caller, since their values are text again.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, GenericByteArray, OffsetSizeTrait, StringViewArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{BinaryType, ByteArrayType, DataType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow::error::ArrowError;

use crate::{Error, Result, fault};

use super::layout::Header;
use crate::block::{Block, BlockOptions, DecodedRows, num_rows_that_fit, write_block_with};
use crate::symbol_table::SymbolTable;
use crate::training::TrainingOptions;

/// Largest ratio between the codes per byte of text on new rows and on the rows that the table was
/// trained on. Above it, the table is trained again.
const MAX_SHARED_LOSS: f64 = 1.02;

/// Arrow types whose values a block can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextType {
    /// UTF-8 with 32-bit offsets.
    Utf8,
    /// UTF-8 with 64-bit offsets.
    LargeUtf8,
    /// UTF-8 with views.
    Utf8View,
    /// Bytes with 32-bit offsets.
    Binary,
    /// Bytes with 64-bit offsets.
    LargeBinary,
    /// Bytes with views.
    BinaryView,
}

impl TextType {
    /// All text types.
    pub const ALL: [Self; 6] =
        [Self::Utf8, Self::LargeUtf8, Self::Utf8View, Self::Binary, Self::LargeBinary, Self::BinaryView];

    /// Returns the text type of `data_type`, if it is one.
    pub(crate) fn from_data_type(data_type: &DataType) -> Option<Self> {
        Self::ALL.into_iter().find(|text_type| text_type.data_type() == *data_type)
    }

    /// Returns the Arrow type.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Utf8 => DataType::Utf8,
            Self::LargeUtf8 => DataType::LargeUtf8,
            Self::Utf8View => DataType::Utf8View,
            Self::Binary => DataType::Binary,
            Self::LargeBinary => DataType::LargeBinary,
            Self::BinaryView => DataType::BinaryView,
        }
    }

    /// Returns true if values must be UTF-8.
    pub fn is_utf8(self) -> bool {
        matches!(self, Self::Utf8 | Self::LargeUtf8 | Self::Utf8View)
    }

    /// Returns the type for the same values as views.
    pub fn as_view(self) -> Self {
        if self.is_utf8() { Self::Utf8View } else { Self::BinaryView }
    }
}

/// Borrows the rows of an array of one of the [`TextType`]s.
///
/// # Errors
///
/// [`Error::InvalidArgument`] if the array has another type.
pub fn rows(array: &dyn Array) -> Result<Vec<Option<&[u8]>>> {
    Ok(match TextType::from_data_type(array.data_type()) {
        Some(TextType::Utf8) => bytes_for(array.as_string::<i32>().iter()),
        Some(TextType::LargeUtf8) => bytes_for(array.as_string::<i64>().iter()),
        Some(TextType::Utf8View) => bytes_for(array.as_string_view().iter()),
        Some(TextType::Binary) => array.as_binary::<i32>().iter().collect(),
        Some(TextType::LargeBinary) => array.as_binary::<i64>().iter().collect(),
        Some(TextType::BinaryView) => array.as_binary_view().iter().collect(),
        None => {
            return Err(Error::InvalidArgument {
                name: "type of a GSST column",
                got: array.data_type().to_string(),
                allowed: "Utf8, LargeUtf8, Utf8View, Binary, LargeBinary or BinaryView".to_owned(),
            });
        }
    })
}

fn bytes_for<'a>(rows: impl Iterator<Item = Option<&'a str>>) -> Vec<Option<&'a [u8]>> {
    rows.map(|row| row.map(str::as_bytes)).collect()
}

/// Encoder that writes the blocks of a column.
///
/// It keeps the symbol table from block to block as long as the table fits, because training costs
/// more than encoding and the text of one column is alike. It trains the table again if codes
/// become 2 % longer, if a block would get escapes that the first block does not have, or if a
/// table of 12 bits lacks a byte.
///
/// ```
/// use arrow::array::StringArray;
/// use gsst::arrow::{BlockEncoder, TextType, decode_rows};
/// use gsst::{Block, BlockOptions};
///
/// let names = StringArray::from(vec![Some("Amersfoort"), None, Some(""), Some("Amsterdam")]);
/// let blocks = BlockEncoder::new(BlockOptions::default()).encode(&names)?;
/// let block = Block::open(&blocks[0][..])?;
/// let read = decode_rows(&block, 0..4, TextType::Utf8)?;
/// assert_eq!(read.as_ref(), &names as &dyn arrow::array::Array);
/// # Ok::<(), gsst::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BlockEncoder {
    options: BlockOptions,
    trained: Option<Trained>,
}

#[derive(Debug, Clone)]
struct Trained {
    table: SymbolTable,
    /// Measures of its codes on the rows that it was trained on.
    codes: CodesFigures,
}

#[derive(Debug, Clone, Copy)]
struct CodesFigures {
    codes_per_text_byte: f64,
    has_no_escapes: bool,
}

impl CodesFigures {
    fn from_block(block: &[u8]) -> Result<Self> {
        let (header, _) = Header::read(block)?;
        let codes_per_text_byte = header.num_codes as f64 / header.text_len_bytes.max(1) as f64;
        Ok(Self { codes_per_text_byte, has_no_escapes: header.has_no_escapes })
    }
}

impl BlockEncoder {
    /// Creates an encoder that has no table yet.
    pub fn new(options: BlockOptions) -> Self {
        Self { options, trained: None }
    }

    /// Encodes the rows of `array` as blocks, each as large as the limits allow. There are no
    /// blocks if there are no rows.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the type is not a [`TextType`], and those of
    /// `BlockEncoder::encode_rows`.
    pub fn encode(&mut self, array: &dyn Array) -> Result<Vec<Vec<u8>>> {
        let rows = rows(array)?;
        let mut rest = &rows[..];
        let mut blocks = Vec::new();
        while !rest.is_empty() {
            let (block_rows, behind) = rest.split_at(num_rows_that_fit(rest));
            blocks.push(self.encode_rows(block_rows)?);
            rest = behind;
        }
        Ok(blocks)
    }

    /// Encodes `rows` (`None` is null) as one block.
    ///
    /// # Errors
    ///
    /// The errors of [`write_block_with`].
    pub(crate) fn encode_rows(&mut self, rows: &[Option<&[u8]>]) -> Result<Vec<u8>> {
        if let Some(block) = self.encode_with_trained(rows)? {
            return Ok(block);
        }
        let BlockOptions { width, parse, training, .. } = self.options;
        let table = SymbolTable::train(width, rows, &TrainingOptions { parse, ..training });
        let block = write_block_with(&table, rows, &self.options)?;
        if rows.iter().flatten().any(|row| !row.is_empty()) {
            self.trained = Some(Trained { table, codes: CodesFigures::from_block(&block)? });
        }
        Ok(block)
    }

    /// Encodes the rows with the present table. Returns `None` if a new table should be trained.
    fn encode_with_trained(&self, rows: &[Option<&[u8]>]) -> Result<Option<Vec<u8>>> {
        let Some(Trained { table, codes }) = &self.trained else {
            return Ok(None);
        };
        let block = match write_block_with(table, rows, &self.options) {
            Ok(block) => block,
            // A byte has no symbol. If another argument is invalid, encoding after training reports
            // it.
            Err(Error::InvalidArgument { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let got = CodesFigures::from_block(&block)?;
        let is_as_good = got.codes_per_text_byte <= codes.codes_per_text_byte * MAX_SHARED_LOSS
            && (got.has_no_escapes || !codes.has_no_escapes);
        Ok(is_as_good.then_some(block))
    }
}

/// Decodes a range of rows as an array of type `text_type`.
///
/// # Errors
///
/// [`Error::OutOfRange`] if the range ends behind the last row. [`Error::Format`] if a row is not
/// UTF-8 and `text_type` requires it.
pub fn decode_rows<B: AsRef<[u8]>>(block: &Block<B>, rows: Range<usize>, text_type: TextType) -> Result<ArrayRef> {
    let decoded = block.decode_rows(rows.clone())?;
    let nulls = block.validity().map(|bits| {
        let bits = Buffer::from(bits.to_vec());
        NullBuffer::new(BooleanBuffer::new(bits, rows.start, rows.len()))
    });
    to_array(decoded, nulls, text_type)
}

/// Decodes some rows, in the given order, as an array of type `text_type`.
///
/// # Errors
///
/// [`Error::OutOfRange`] if one of the rows does not exist. [`Error::Format`] if one is not UTF-8
/// and `text_type` requires it. [`Error::Capacity`] if their text is longer than the offsets of
/// `text_type` allow.
pub fn decode_selected<B: AsRef<[u8]>>(block: &Block<B>, rows: &[u32], text_type: TextType) -> Result<ArrayRef> {
    let decoded = block.decode_selected(rows)?;
    let nulls = (block.num_nulls() > 0).then(|| rows.iter().map(|row| !block.is_null(*row as usize)).collect());
    to_array(decoded, nulls, text_type)
}

/// Builds an array of decoded rows. Views are made from an array with offsets: Arrow then knows
/// that every row is UTF-8, and views share its text.
fn to_array(decoded: DecodedRows, nulls: Option<NullBuffer>, text_type: TextType) -> Result<ArrayRef> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
    Ok(match text_type {
        TextType::Utf8 => Arc::new(byte_array::<Utf8Type>(decoded, nulls)?),
        TextType::LargeUtf8 => Arc::new(byte_array::<LargeUtf8Type>(decoded, nulls)?),
        TextType::Utf8View => Arc::new(StringViewArray::from(&byte_array::<Utf8Type>(decoded, nulls)?)),
        TextType::Binary => Arc::new(byte_array::<BinaryType>(decoded, nulls)?),
        TextType::LargeBinary => Arc::new(byte_array::<LargeBinaryType>(decoded, nulls)?),
        TextType::BinaryView => Arc::new(BinaryViewArray::from(&byte_array::<BinaryType>(decoded, nulls)?)),
    })
}

fn byte_array<T: ByteArrayType>(decoded: DecodedRows, nulls: Option<NullBuffer>) -> Result<GenericByteArray<T>> {
    let offsets = offsets(&decoded)?;
    GenericByteArray::try_new(offsets, Buffer::from_vec(decoded.text), nulls).map_err(not_valid)
}

fn offsets<O: OffsetSizeTrait>(decoded: &DecodedRows) -> Result<OffsetBuffer<O>> {
    if O::from_usize(decoded.text.len()).is_none() {
        return Err(Error::Capacity {
            what: "text of an array with 32-bit offsets",
            requested: decoded.text.len() as u64,
            limit: i32::MAX as u64,
            knob: "the number of calls",
        });
    }
    let offsets: Vec<O> = decoded.offsets.iter().map(|end| O::usize_as(*end as usize)).collect();
    Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}

fn not_valid(error: ArrowError) -> Error {
    fault("text", 0, error.to_string())
}

/// Tests of the conversion of Arrow arrays to blocks and back.
#[cfg(test)]
mod tests {
    use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int32Array, StringArray};
    use arrow::buffer::NullBuffer;
    use arrow::compute::{cast, concat, take};
    use arrow::datatypes::DataType;
    use proptest::prelude::*;

    use crate::arrow::{BlockEncoder, TextType, decode_rows, decode_selected, rows};
    use crate::{Block, BlockOptions, CodeWidth, Error, write_block};

    /// Returns the text of `rows` as an array of `text_type`.
    fn array_for(rows: &[Option<String>], text_type: TextType) -> ArrayRef {
        let strings = StringArray::from(rows.to_vec());
        cast(&strings, &text_type.data_type()).unwrap()
    }

    fn rows_strategy() -> impl Strategy<Value = Vec<Option<String>>> {
        let row = prop_oneof![
            1 => Just(None),
            1 => Just(Some(String::new())),
            4 => "[a-e]{0,16}".prop_map(Some),
            2 => "(http://www\\.)?[a-z]{1,20}\\.(com|example)".prop_map(Some),
            1 => "\\PC{0,9}".prop_map(Some),
        ];
        proptest::collection::vec(row, 0..120)
    }

    fn decoded(blocks: &[Vec<u8>], text_type: TextType) -> ArrayRef {
        let decode = |bytes: &Vec<u8>| {
            let block = Block::open(&bytes[..]).unwrap();
            decode_rows(&block, 0..block.num_rows(), text_type).unwrap()
        };
        let arrays: Vec<_> = blocks.iter().map(decode).collect();
        let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
        concat(&arrays).unwrap()
    }

    proptest! {
        #[test]
        fn every_type_slice_range_and_selection_reads_back(
            rows in rows_strategy(),
            type_idx in 0usize..6,
            cut in (0.0..1.0, 0.0..1.0),
            is_twelve: bool,
            selected in proptest::collection::vec(0.0..1.0, 0..40),
        ) {
            let text_type = TextType::ALL[type_idx];
            let whole = array_for(&rows, text_type);
            let at = |part: f64, of: usize| (part * (of + 1) as f64) as usize;
            let start = at(cut.0, rows.len());
            let array = whole.slice(start, at(cut.1, rows.len() - start));
            let width = if is_twelve { CodeWidth::Twelve } else { CodeWidth::Eight };
            let blocks = BlockEncoder::new(BlockOptions::new(width)).encode(&array).unwrap();
            prop_assert_eq!(blocks.len(), usize::from(!array.is_empty()));
            let Some(bytes) = blocks.first() else { return Ok(()) };
            let block = Block::open(&bytes[..]).unwrap();
            prop_assert_eq!(&decode_rows(&block, 0..array.len(), text_type).unwrap(), &array);
            let first = array.len() / 3;
            let part = decode_rows(&block, first..array.len(), text_type).unwrap();
            prop_assert_eq!(&part, &array.slice(first, array.len() - first));
            let picked: Vec<u32> =
                selected.iter().map(|part| (part * array.len() as f64) as u32).collect();
            let indices = Int32Array::from_iter_values(picked.iter().map(|row| *row as i32));
            let read = decode_selected(&block, &picked, text_type).unwrap();
            prop_assert_eq!(&read, &take(&array, &indices, None).unwrap());
        }
    }

    #[test]
    fn views_share_one_buffer_and_short_rows_are_inline() {
        let long = "a row that is longer than twelve bytes";
        let array = StringArray::from(vec![Some("twelve bytes"), None, Some(long), Some(long)]);
        let blocks = BlockEncoder::new(BlockOptions::default()).encode(&array).unwrap();
        let block = Block::open(&blocks[0][..]).unwrap();
        let read = decode_rows(&block, 0..4, TextType::Utf8View).unwrap();
        let views = read.as_string_view();
        assert_eq!(views.data_buffers().len(), 1);
        assert_eq!((views.value(0), views.value(3), views.null_count()), ("twelve bytes", long, 1));
        let short = decode_rows(&block, 2..2, TextType::Utf8View).unwrap();
        assert!(short.is_empty());
    }

    #[test]
    fn rows_that_are_not_utf8_are_an_error_of_text_only() {
        let block = write_block(&[Some(b"ab"), Some(b"a\xff")], &BlockOptions::default()).unwrap();
        let block = Block::open(&block[..]).unwrap();
        for text_type in TextType::ALL {
            let is_format = |error| matches!(error, Error::Format { section: "text", .. });
            assert_eq!(decode_rows(&block, 0..2, text_type).is_err_and(is_format), text_type.is_utf8());
            assert!(decode_rows(&block, 0..1, text_type).is_ok());
            assert_eq!(decode_selected(&block, &[1], text_type).is_ok(), !text_type.is_utf8());
        }
        // Together these two rows are UTF-8. Each alone is not.
        let halves =
            write_block(&["ß".as_bytes()[..1].into(), "ß".as_bytes()[1..].into()], &BlockOptions::default()).unwrap();
        let halves = Block::open(&halves[..]).unwrap();
        assert!(decode_rows(&halves, 0..2, TextType::Utf8View).is_err());
    }

    #[test]
    fn arrays_larger_than_a_block_are_cut_and_tables_shared() {
        let rows: Vec<String> =
            (0..300_000).map(|row| format!("http://example.org/{}/item?id={}", row % 97, row % 9973)).collect();
        let array = StringArray::from(rows);
        for width in [CodeWidth::Eight, CodeWidth::Twelve] {
            let blocks = BlockEncoder::new(BlockOptions::new(width)).encode(&array).unwrap();
            assert!(blocks.len() > 1);
            let tables: Vec<_> = blocks.iter().map(|bytes| Block::open(&bytes[..]).unwrap().table().clone()).collect();
            assert!(tables.windows(2).all(|pair| pair[0] == pair[1]));
            assert_eq!(decoded(&blocks, TextType::Utf8).as_string::<i32>(), &array);
        }
    }

    #[test]
    fn tables_are_trained_again_where_text_changes() {
        for width in [CodeWidth::Eight, CodeWidth::Twelve] {
            let mut encoder = BlockEncoder::new(BlockOptions::new(width));
            for text in ["furiously final deposits ", "0123456789 5 7 ", "ΔΞΠΣ ΦΨΩ "] {
                let row = text.repeat(20);
                let rows = vec![Some(row.as_bytes()); 300];
                let shared = encoder.encode_rows(&rows).unwrap();
                let own = write_block(&rows, &BlockOptions::new(width)).unwrap();
                assert_eq!(shared, own);
            }
        }
    }

    #[test]
    fn other_types_are_refused_and_nulls_with_bytes_have_none() {
        assert!(matches!(rows(&Int32Array::from(vec![1])), Err(Error::InvalidArgument { .. })));
        let (offsets, values, _) = BinaryArray::from(vec![&b"abc"[..], b"de"]).into_parts();
        let array = BinaryArray::new(offsets, values, Some(NullBuffer::from(vec![false, true])));
        assert_eq!(rows(&array).unwrap(), [None, Some(&b"de"[..])]);
        let blocks = BlockEncoder::new(BlockOptions::default()).encode(&array).unwrap();
        assert_eq!(decoded(&blocks, TextType::Binary).as_ref(), &array as &dyn Array);
    }

    #[test]
    fn types_of_text_are_known() {
        assert_eq!(TextType::from_data_type(&DataType::Int8), None);
        assert_eq!(TextType::LargeUtf8.as_view(), TextType::Utf8View);
    }
}
