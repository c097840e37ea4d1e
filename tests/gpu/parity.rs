//! Tests that the device decodes what the CPU decodes, byte for byte, over outputs filled with
//! other bytes.
//!
//! Without a device these tests say that they are skipped; `REQUIRE_GPU=1` makes that a failure.
//! Checks that need no device run on every machine: errors instead of panics.

mod scan;

use gsst::{Block, BlockOptions, CodeWidth, Symbol, SymbolTable, num_rows_that_fit, write_block, write_block_with};
use tadoc::Error;
use tadoc_cuda::{Device, GpuError, GsstDecoder, num_devices};
use testkit::device::{POISONS, WIDTHS, open_device};
use testkit::random::Random;

/// Returns a decoder on the first device, or `None` without a device.
fn decoder() -> Option<GsstDecoder> {
    open_device().map(|device| GsstDecoder::new(&device))
}

fn block_of(rows: &[Vec<u8>], options: &BlockOptions) -> Block<Vec<u8>> {
    let rows: Vec<_> = rows.iter().map(|row| Some(&row[..])).collect();
    Block::open(write_block(&rows, options).unwrap()).unwrap()
}

fn options(width: CodeWidth, split_codes: usize) -> BlockOptions {
    BlockOptions { split_codes, ..BlockOptions::new(width) }
}

/// Compares both answers for `blocks` in one launch, over every fill byte.
#[track_caller]
fn assert_parity(decoder: &GsstDecoder, blocks: &[Block<Vec<u8>>], case: &str) {
    let mut expected = Vec::new();
    for block in blocks {
        block.decode_text(&mut expected);
    }
    let uploaded = decoder.upload(blocks).unwrap();
    assert_eq!(uploaded.text_len_bytes(), expected.len() as u64, "{case}");
    let mut text = decoder.text_for(&uploaded).unwrap();
    for poison in POISONS {
        text.fill(poison).unwrap();
        decoder.decode_into(&uploaded, &mut text).unwrap();
        let got = text.to_host().unwrap();
        let differs = got.iter().zip(&expected).position(|(got, expected)| got != expected);
        assert_eq!((got.len(), differs), (expected.len(), None), "{case}, poison {poison:#x}");
    }
}

#[test]
fn few_rows() {
    let Some(decoder) = decoder() else { return };
    let mut random = Random(1);
    assert_parity(&decoder, &[], "no blocks");
    for width in WIDTHS {
        for num_rows in [0, 1, 31, 32, 33] {
            for row_len in [0, 1, 7, 31] {
                let rows: Vec<_> = (0..num_rows).map(|_| random.words(row_len)).collect();
                let block = block_of(&rows, &options(width, 4096));
                let case = format!("{width:?}, {num_rows} rows of {row_len} bytes");
                assert_parity(&decoder, &[block], &case);
            }
        }
    }
}

#[test]
fn around_tiles_and_splits() {
    let Some(decoder) = decoder() else { return };
    let mut random = Random(2);
    let symbols = [&b"a"[..], b"bc", b"defg", b"hijkl", b"mnopqrst", b"uvw", b"xyzabc", b"0123456"];
    let symbols: Vec<_> = symbols.iter().map(|bytes| Symbol::new(bytes).unwrap()).collect();
    // Tables of 12 bits must also contain every single byte.
    let single = (b'a'..=b'z').chain(b'0'..=b'9').map(|byte| Symbol::new(&[byte]).unwrap());
    let all: Vec<_> = symbols.iter().copied().chain(single).collect();
    for width in WIDTHS {
        let table = SymbolTable::new(width, all.clone()).unwrap();
        for split_codes in [512, 1024, 2048, 4096] {
            for num_codes in [1, 2, 511, 512, 513, 4095, 4096, 4097, 8191, 8192, 8193, 40_001] {
                // Each row is one symbol, so the number of codes equals that of rows.
                let symbol = |random: &mut Random| symbols[random.below(8)].as_bytes().to_vec();
                let rows: Vec<_> = (0..num_codes).map(|_| symbol(&mut random)).collect();
                let rows: Vec<_> = rows.iter().map(|row| Some(&row[..])).collect();
                let options = options(width, split_codes);
                let block = write_block_with(&table, &rows, &options).unwrap();
                let block = Block::open(block).unwrap();
                assert_eq!(block.num_codes(), num_codes);
                let case = format!("{width:?}, {num_codes} codes in splits of {split_codes}");
                assert_parity(&decoder, &[block], &case);
            }
        }
    }
}

#[test]
fn escapes_anywhere() {
    let Some(decoder) = decoder() else { return };
    let mut random = Random(3);
    let symbols = vec![Symbol::new(b"abcdefgh").unwrap(), Symbol::new(b"z").unwrap()];
    let table = SymbolTable::new(CodeWidth::Eight, symbols).unwrap();
    let none = SymbolTable::new(CodeWidth::Eight, Vec::new()).unwrap();
    for len in [1, 255, 256, 257, 2047, 2048, 2049, 4096, 100_000] {
        let all = vec![random.bytes(len)];
        let ones = vec![vec![255; len]];
        let mut some = random.words(len);
        for _ in 0..len / 50 + 1 {
            let at = random.below(len);
            some[at..].iter_mut().take(40).for_each(|byte| *byte = 255);
        }
        for (rows, name) in [(all, "random"), (ones, "255s"), (vec![some], "runs of 255")] {
            let rows: Vec<_> = rows.iter().map(|row| Some(&row[..])).collect();
            for split_codes in [512, 4096] {
                let options = options(CodeWidth::Eight, split_codes);
                let blocks = [&table, &none].map(|table| {
                    let block = write_block_with(table, &rows, &options).unwrap();
                    Block::open(block).unwrap()
                });
                assert!(!blocks[1].has_no_escapes());
                assert_parity(&decoder, &blocks, &format!("{name}, {len} bytes"));
            }
        }
    }
}

#[test]
fn splits_that_start_with_a_literal() {
    let Some(decoder) = decoder() else { return };
    let mut random = Random(4);
    let table = SymbolTable::new(CodeWidth::Eight, vec![Symbol::new(b"z").unwrap()]).unwrap();
    // An odd number of symbols stands before literals only, so every split starts inside an escape.
    for literal in [255, 0, b'q'] {
        let mut row = vec![b'z'; 3];
        row.extend((0..50_000).map(|_| literal));
        for _ in 0..20 {
            let at = random.below(row.len());
            row[at] = b'z';
        }
        for split_codes in [512, 1024, 4096] {
            let options = options(CodeWidth::Eight, split_codes);
            let block = write_block_with(&table, &[Some(&row)], &options).unwrap();
            let block = Block::open(block).unwrap();
            assert_parity(&decoder, &[block], &format!("literals {literal}"));
        }
    }
}

#[test]
fn all_bytes_nulls_and_extreme_rows() {
    let Some(decoder) = decoder() else { return };
    let mut random = Random(5);
    let all: Vec<u8> = (0..=255).collect();
    for width in WIDTHS {
        let options = options(width, 4096);
        let shuffled = random.bytes(70_000);
        let blocks = [
            block_of(&vec![all.clone(); 300], &options),
            block_of(&all.iter().map(|byte| vec![*byte]).collect::<Vec<_>>(), &options),
            block_of(&(0..5000).map(|_| random.words(1)).collect::<Vec<_>>(), &options),
            block_of(&(0..20).map(|_| random.words(64 << 10)).collect::<Vec<_>>(), &options),
            block_of(&[[all.clone(), shuffled].concat()], &options),
        ];
        assert_parity(&decoder, &blocks, &format!("{width:?}"));
        let texts: Vec<_> = (0..3000).map(|row| random.words(row % 50)).collect();
        let rows: Vec<_> = texts.iter().enumerate().map(|(i, text)| (i % 3 != 1).then_some(&text[..])).collect();
        let block = Block::open(write_block(&rows, &options).unwrap()).unwrap();
        assert!(block.num_nulls() > 0);
        assert_parity(&decoder, &[block], "nulls");
        let nulls = Block::open(write_block(&[None; 40], &options).unwrap()).unwrap();
        assert_parity(&decoder, &[nulls], "only nulls");
    }
}

#[test]
fn many_blocks_of_both_widths_in_one_call() {
    let Some(decoder) = decoder() else { return };
    let mut random = Random(6);
    let splits = [512, 1024, 2048, 4096];
    let mut blocks = Vec::new();
    for i in 0..300 {
        let mut row_lens = (0..random.below(40)).map(|_| random.below(900)).collect::<Vec<_>>();
        row_lens.push(if i % 50 == 0 { 200_000 } else { i });
        let rows: Vec<_> = row_lens.into_iter().map(|len| random.words(len)).collect();
        blocks.push(block_of(&rows, &options(WIDTHS[i % 2], splits[i / 2 % 4])));
    }
    assert_parity(&decoder, &blocks, "300 blocks");
}

#[test]
fn a_full_block() {
    let Some(decoder) = decoder() else { return };
    let mut random = Random(7);
    let rows: Vec<_> = (0..70_000).map(|_| random.words(120)).collect();
    let rows: Vec<_> = rows.iter().map(|row| Some(&row[..])).collect();
    let rows = &rows[..num_rows_that_fit(&rows)];
    for width in WIDTHS {
        let block = write_block(rows, &options(width, 4096)).unwrap();
        assert_parity(&decoder, &[Block::open(block).unwrap()], &format!("{width:?}, 8 MiB"));
    }
}

#[test]
fn wrong_buffers_and_limits_are_refused() {
    let Some(decoder) = decoder() else { return };
    let mut random = Random(8);
    let short = block_of(&[random.words(1000)], &BlockOptions::default());
    let long = block_of(&[random.words(2000)], &BlockOptions::default());
    let short = decoder.upload(&[short]).unwrap();
    let mut text = decoder.text_for(&short).unwrap();
    let uploaded = decoder.upload(std::slice::from_ref(&long)).unwrap();
    let refused = decoder.decode_into(&uploaded, &mut text);
    assert!(matches!(refused, Err(GpuError::Mismatch { got: 1000, expected: 2000, .. })));
    let small = Device::open(0).unwrap().with_max_bytes(1500);
    let refused = GsstDecoder::new(&small).upload(std::slice::from_ref(&long));
    assert!(matches!(refused, Err(GpuError::OutOfMemory { available_bytes: 1500, .. })));
    let counted = Device::open(0).unwrap().with_max_bytes(1 << 20);
    let uploaded = GsstDecoder::new(&counted).upload(&[long]).unwrap();
    let used = counted.used_bytes();
    assert!((2000..200_000).contains(&used), "{used}");
    drop(uploaded);
    assert_eq!(counted.used_bytes(), 0);
}

#[test]
fn devices_that_do_not_exist_are_errors() {
    let refused = Device::open(1 << 20).map(|device| device.name().to_owned());
    match num_devices() {
        Ok(num_devices) => {
            assert_eq!(refused, Err(GpuError::NoSuchDevice { got: 1 << 20, num_devices }));
        }
        Err(reason) => assert_eq!(refused, Err(reason)),
    }
    let error = Error::from(GpuError::NoDriver);
    assert!(error.to_string().contains("no NVIDIA driver"), "{error}");
}
