//! Tests of the conversion of Arrow arrays to blocks and back.

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int32Array, StringArray};
use arrow::buffer::NullBuffer;
use arrow::compute::{cast, concat, take};
use arrow::datatypes::DataType;
use proptest::prelude::*;

use super::arrow::{BlockEncoder, TextType, decode_rows, decode_selected, mask_array, rows};
use super::{Block, BlockOptions, CodeWidth, Pattern, write_block};
use crate::error::Error;

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
    let halves = write_block(
        &["ß".as_bytes()[..1].into(), "ß".as_bytes()[1..].into()],
        &BlockOptions::default(),
    )
    .unwrap();
    let halves = Block::open(&halves[..]).unwrap();
    assert!(decode_rows(&halves, 0..2, TextType::Utf8View).is_err());
}

#[test]
fn arrays_larger_than_a_block_are_cut_and_tables_shared() {
    let rows: Vec<String> = (0..300_000)
        .map(|row| format!("http://example.org/{}/item?id={}", row % 97, row % 9973))
        .collect();
    let array = StringArray::from(rows);
    for width in [CodeWidth::Eight, CodeWidth::Twelve] {
        let blocks = BlockEncoder::new(BlockOptions::new(width)).encode(&array).unwrap();
        assert!(blocks.len() > 1);
        let tables: Vec<_> =
            blocks.iter().map(|bytes| Block::open(&bytes[..]).unwrap().table().clone()).collect();
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
fn masks_become_arrays() {
    let array = StringArray::from(vec!["ab", "cd", "abc"]);
    let blocks = BlockEncoder::new(BlockOptions::default()).encode(&array).unwrap();
    let block = Block::open(&blocks[0][..]).unwrap();
    let mask = block.rows_like(&Pattern::starts_with(b"ab"));
    assert_eq!(mask_array(&mask).values().iter().collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(TextType::from_data_type(&DataType::Int8), None);
    assert_eq!(TextType::LargeUtf8.as_view(), TextType::Utf8View);
}
