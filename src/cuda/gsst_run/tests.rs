//! Tests that the kernels of runs and their wrapper declare the same constants and structs, and
//! tests of validity bits and layouts.

use super::*;
use crate::error::CHECKS;
use gsst::{BlockOptions, write_block};

const HEADER: &str = include_str!("../../../kernels/gsst_run.cuh");

#[test]
fn numbers_of_checks_are_those_of_the_kernel() {
    for (i, (_, name)) in CHECKS.iter().enumerate() {
        let line = format!("constexpr u32 {name} = {};", i + 1);
        assert!(HEADER.contains(&line), "{line}");
    }
    assert_eq!(HEADER.matches("constexpr u32 CHECK_").count(), CHECKS.len());
    assert!(HEADER.contains(&format!("constexpr u32 FRAME_ROWS = {FRAME_ROWS};")));
    assert!(HEADER.contains("constexpr u32 NO_BLOCK = 0xfffffffeu;"));
    assert!(HEADER.contains("(u64)block << 32 | (u64)check << 26"));
}

#[test]
fn fields_are_those_of_the_kernel() {
    let offsets = [
        std::mem::offset_of!(RunBlock, bytes_at),
        std::mem::offset_of!(RunBlock, text_at),
        std::mem::offset_of!(RunBlock, validity_at),
        std::mem::offset_of!(RunBlock, first_row),
        std::mem::offset_of!(RunBlock, num_rows),
        std::mem::offset_of!(RunBlock, first_frame),
        std::mem::offset_of!(RunBlock, num_codes),
        std::mem::offset_of!(RunBlock, text_len),
        std::mem::offset_of!(RunBlock, has_lengths),
        std::mem::offset_of!(RunBlock, table),
    ];
    assert_eq!(offsets, [0, 8, 16, 20, 24, 28, 32, 36, 40, 44]);
    let offsets = [
        std::mem::offset_of!(RunFrame, counts_at),
        std::mem::offset_of!(RunFrame, lengths_at),
        std::mem::offset_of!(RunFrame, counts_head),
        std::mem::offset_of!(RunFrame, lengths_head),
        std::mem::offset_of!(RunFrame, block),
        std::mem::offset_of!(RunFrame, first_row),
        std::mem::offset_of!(RunFrame, num_rows),
    ];
    assert_eq!(offsets, [0, 4, 8, 12, 16, 20, 24]);
    assert!(HEADER.contains(&format!("constexpr u32 FRAME_WIDTH_BIT = {FRAME_WIDTH_BIT};")));
    let (_, split_rows) = HEADER.split_once("struct alignas(16) SplitRows {").unwrap();
    let fields = split_rows.split("static").next().unwrap();
    assert_eq!(fields.matches("    u32 ").count() * size_of::<u32>(), SPLIT_ROWS_BYTES);
}

#[test]
fn validity_of_blocks_of_any_number_of_rows_is_that_of_the_run() {
    let mut expected = Vec::new();
    let mut blocks = Vec::new();
    for (block_idx, num_rows) in [0, 1, 7, 8, 9, 3, 128, 130, 5].into_iter().enumerate() {
        let is_valid =
            |row: &usize| block_idx % 3 == 0 || !(row * row + block_idx).is_multiple_of(3);
        let valid: Vec<bool> = (0..num_rows).map(|row| is_valid(&row)).collect();
        let rows: Vec<_> = valid.iter().map(|valid| valid.then_some(&b"a"[..])).collect();
        blocks.push(write_block(&rows, &BlockOptions::default()).unwrap());
        expected.extend(valid);
    }
    let sealed: Vec<_> = blocks.iter().map(|bytes| SealedBlock::open(bytes).unwrap()).collect();
    let bits = validity_for(&sealed).unwrap();
    assert_eq!(bits.len(), expected.len().div_ceil(8));
    for (row, valid) in expected.iter().enumerate() {
        assert_eq!(bits[row / 8] >> (row % 8) & 1 == 1, *valid, "{row}");
    }
    assert_eq!(validity_for(&sealed[..2]), None);
}

#[test]
fn views_are_decoded_where_no_block_has_many_rows_of_little_text() {
    let of = |len: usize, num_rows: usize| {
        let row = [b'a'; 40];
        let mut rows = vec![Some(&row[..len]); num_rows];
        rows.resize(100, Some(&row[..0]));
        write_block(&rows, &BlockOptions::default()).unwrap()
    };
    let decodes = |blocks: &[&Vec<u8>], form, is_checked| {
        let run: Vec<_> = blocks.iter().map(|bytes| SealedBlock::open(bytes).unwrap()).collect();
        let layout = RunLayout::new(&run, form, is_checked).unwrap();
        assert_eq!(layout.eight.split_rows.is_empty(), !layout.decodes_views);
        layout.decodes_views
    };
    let none = write_block(&[], &BlockOptions::default()).unwrap();
    let (enough, too_little, nothing) = (of(40, 10), of(39, 10), of(0, 0));
    assert!(decodes(&[&enough, &none, &of(4, 100)], RowForm::Views, true));
    assert!(!decodes(&[&enough, &too_little], RowForm::Views, true));
    assert!(!decodes(&[&enough, &nothing], RowForm::Views, true));
    assert!(!decodes(&[&enough], RowForm::Views, false));
    assert!(!decodes(&[&enough], RowForm::Offsets, true));
}

#[test]
fn a_layout_holds_every_block_with_its_slack() {
    let rows: Vec<_> = (0..1000).map(|_| Some(&b"carefully final deposits"[..])).collect();
    let block = write_block(&rows, &BlockOptions::default()).unwrap();
    let empty = write_block(&[], &BlockOptions::default()).unwrap();
    let run: Vec<_> =
        [&block, &empty, &block].map(|bytes| SealedBlock::open(bytes).unwrap()).into();
    let mut layout = RunLayout::new(&run, RowForm::Views, false).unwrap();
    let mut input = vec![0xA5; layout.input_len_bytes];
    layout.write(&run, &mut input);
    assert!(input.starts_with(&block));
    assert!(input[block.len() + empty.len()..].starts_with(&block));
    assert_eq!(input[layout.stored_len_bytes..][..SLACK_BYTES], [0; SLACK_BYTES]);
    assert_eq!((layout.num_rows, layout.num_frames, layout.eight.num_blocks), (2000, 16, 2));
    assert_eq!(layout.rows.len(), 16 * 2000);
    assert!(layout.text.start.is_multiple_of(64) && layout.rows.start.is_multiple_of(64));
}
