//! Tests of the rows of runs: texts, offsets, views and validity equal those of the CPU, and the
//! device refuses every block that the CPU refuses.

use gsst::{Block, BlockOptions, CodeWidth, Pattern, SealedBlock, SymbolTable, write_block, write_block_with};
use tadoc_cuda::{
    BlockCheck, ColumnType, Device, DeviceColumn, Devices, GpuError, GsstScanner, RowForm, ScanOptions, ScannedRows,
    num_devices,
};

use super::{POISONS, Random, WIDTHS, decoder, options};

const FORMS: [RowForm; 2] = [RowForm::Offsets, RowForm::Views];

fn scanner() -> Option<GsstScanner> {
    decoder()?;
    Some(GsstScanner::new(&Device::open(0).unwrap(), ScanOptions::default()).unwrap())
}

/// Result of a run, decoded by the CPU.
#[derive(Debug, Default)]
struct Expected {
    text: Vec<u8>,
    offsets: Vec<u32>,
    valid: Vec<bool>,
}

impl Expected {
    fn from_run(run: &[Vec<u8>]) -> Self {
        let mut expected = Self { offsets: vec![0], ..Self::default() };
        for bytes in run {
            let block = Block::open(bytes).unwrap();
            let rows = block.decode_all();
            let base = expected.text.len() as u32;
            expected.text.extend_from_slice(&rows.text);
            expected.offsets.extend(rows.offsets[1..].iter().map(|end| base + end));
            expected.valid.extend((0..block.num_rows()).map(|row| !block.is_null(row)));
        }
        expected
    }

    fn view(&self, row: usize) -> u128 {
        let start = self.offsets[row] as usize;
        let end = self.offsets[row + 1] as usize;
        let text = &self.text[start..end];
        let mut view = [0; 16];
        view[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
        if text.len() <= 12 {
            view[4..4 + text.len()].copy_from_slice(text);
        } else {
            view[4..8].copy_from_slice(&text[..4]);
            view[12..].copy_from_slice(&(start as u32).to_le_bytes());
        }
        u128::from_le_bytes(view)
    }

    #[track_caller]
    fn assert_is(&self, rows: &ScannedRows, case: &str) {
        assert_eq!(rows.num_rows(), self.valid.len(), "{case}");
        let differs = rows.text().iter().zip(&self.text).position(|(got, expected)| got != expected);
        assert_eq!((rows.text().len(), differs), (self.text.len(), None), "{case}");
        if let Some(offsets) = rows.offsets() {
            let differs = offsets.iter().zip(&self.offsets).position(|(got, expected)| got != expected);
            assert_eq!((offsets.len(), differs), (self.offsets.len(), None), "{case}");
        }
        if let Some(views) = rows.views() {
            assert_eq!(views.len(), self.valid.len(), "{case}");
            for (row, view) in views.iter().enumerate() {
                assert_eq!(*view, self.view(row), "{case}, row {row}");
            }
        }
        let num_nulls = self.valid.iter().filter(|valid| !**valid).count();
        assert_eq!(rows.num_nulls(), num_nulls, "{case}");
        assert_eq!(rows.validity().is_some(), num_nulls > 0, "{case}");
        for (row, valid) in self.valid.iter().enumerate() {
            let is_valid = rows.validity().is_none_or(|bits| bits[row / 8] >> (row % 8) & 1 == 1);
            assert_eq!(is_valid, *valid, "{case}, row {row}");
        }
    }
}

fn sealed(run: &[Vec<u8>]) -> Vec<SealedBlock<&[u8]>> {
    run.iter().map(|bytes| SealedBlock::open(&bytes[..]).unwrap()).collect()
}

/// Copies blocks to `to`, one behind the other, and opens them there.
fn copied<'a>(run: &[Vec<u8>], mut to: &'a mut [u8]) -> Vec<SealedBlock<&'a [u8]>> {
    let mut blocks = Vec::new();
    for bytes in run {
        let (block, behind) = to.split_at_mut(bytes.len());
        block.copy_from_slice(bytes);
        blocks.push(SealedBlock::open(&*block).unwrap());
        to = behind;
    }
    blocks
}

/// Compares rows from the pipeline, and rows of validated blocks over every fill byte.
#[track_caller]
fn assert_rows(scanner: &GsstScanner, run: &[Vec<u8>], case: &str) {
    let expected = Expected::from_run(run);
    for form in FORMS {
        let case = format!("{case}, {form:?}");
        let pending = scanner.submit(&sealed(run), form, false).unwrap();
        expected.assert_is(&pending.wait().unwrap(), &case);
        let mut pinned = scanner.pinned_buffer(run.iter().map(Vec::len).sum());
        for (blocks, place) in [(copied(run, &mut pinned), "pinned"), (sealed(run), "pageable")] {
            let rows = scanner.decode_pinned(&blocks, form, false).unwrap();
            expected.assert_is(&rows.to_host().unwrap(), &format!("{case}, {place} blocks"));
        }
        let blocks: Vec<_> = run.iter().map(|bytes| Block::open(&bytes[..]).unwrap()).collect();
        if blocks.iter().any(|block| block.text_ends().is_none()) {
            assert!(matches!(scanner.upload(&blocks, form), Err(GpuError::Mismatch { .. })));
            continue;
        }
        let uploaded = scanner.upload(&blocks, form).unwrap();
        let mut rows: DeviceColumn = scanner.column_for(&uploaded).unwrap();
        for poison in POISONS {
            rows.fill(poison).unwrap();
            scanner.decode_into(&uploaded, &mut rows).unwrap();
            expected.assert_is(&rows.to_host().unwrap(), &format!("{case}, poison {poison:#x}"));
        }
    }
}

fn block(rows: &[Option<Vec<u8>>], options: &BlockOptions) -> Vec<u8> {
    let rows: Vec<_> = rows.iter().map(Option::as_deref).collect();
    write_block(&rows, options).unwrap()
}

fn some(rows: impl Iterator<Item = Vec<u8>>) -> Vec<Option<Vec<u8>>> {
    rows.map(Some).collect()
}

fn without_lengths(options: BlockOptions) -> BlockOptions {
    BlockOptions { has_text_lengths: false, ..options }
}

#[test]
fn rows_of_few_and_many() {
    let Some(scanner) = scanner() else { return };
    let mut random = Random(11);
    assert_rows(&scanner, &[], "no blocks");
    for width in WIDTHS {
        for num_rows in [0, 1, 31, 32, 33, 127, 128, 129, 1000, 40_000] {
            for max_len in [0, 1, 12, 13, 40] {
                let rows = some((0..num_rows).map(|_| {
                    let len = random.below(max_len + 1);
                    random.words(len)
                }));
                for options in [options(width, 4096), without_lengths(options(width, 512))] {
                    let case = format!("{width:?}, {num_rows} rows of up to {max_len} bytes");
                    assert_rows(&scanner, &[block(&rows, &options)], &case);
                }
            }
        }
    }
}

#[test]
fn rows_with_nulls_escapes_and_extreme_lengths() {
    let Some(scanner) = scanner() else { return };
    let mut random = Random(12);
    let none = SymbolTable::new(CodeWidth::Eight, Vec::new()).unwrap();
    let mut run = Vec::new();
    for options in [
        options(CodeWidth::Eight, 512),
        options(CodeWidth::Twelve, 4096),
        without_lengths(options(CodeWidth::Eight, 4096)),
    ] {
        let nulls = (0..700).map(|row| (row % 3 != 1).then(|| random.words(row % 50))).collect::<Vec<_>>();
        let bytes = some((0..=255).map(|byte| vec![byte]));
        let long = some([0, 64 << 10, 3, 200_000, 0, 64 << 10].into_iter().map(|len| random.words(len)));
        let any = some((0..3000).map(|row| random.bytes(row % 30)));
        let mut blocks = vec![nulls, bytes, long, any, vec![None; 40], Vec::new()];
        blocks.push(some((0..5000).map(|_| Vec::new())));
        for rows in &blocks {
            run.push(block(rows, &options));
            assert_rows(&scanner, &run[run.len() - 1..], "one block");
        }
        if options.width == CodeWidth::Eight {
            for rows in &blocks[2..4] {
                let rows: Vec<_> = rows.iter().map(Option::as_deref).collect();
                run.push(write_block_with(&none, &rows, &options).unwrap());
                assert_rows(&scanner, &run[run.len() - 1..], "escapes only");
            }
        }
    }
    assert_rows(&scanner, &run[..16], "half of the blocks");
    let with_lengths: Vec<_> =
        run.into_iter().filter(|bytes| SealedBlock::open(bytes).unwrap().has_text_lengths()).collect();
    assert_rows(&scanner, &with_lengths, "all blocks with lengths of texts");
}

/// Rows start and end anywhere in tiles, splits and blocks, with at least 4 bytes per row. Their
/// views are made while their text is decoded.
#[test]
fn views_of_rows_over_tiles_splits_and_blocks() {
    let Some(scanner) = scanner() else { return };
    let mut random = Random(20);
    let none = SymbolTable::new(CodeWidth::Eight, Vec::new()).unwrap();
    let mut run = Vec::new();
    for (width, split_codes) in WIDTHS.into_iter().flat_map(|width| [(width, 512), (width, 4096)]) {
        let options = options(width, split_codes);
        let mut columns: Vec<Vec<Option<Vec<u8>>>> = Vec::new();
        for len in [4, 5, 8, 11, 12, 13, 16, 17, 100] {
            columns.push(some((0..2500).map(|_| random.words(len))));
        }
        for (num_rows, max_len) in [(1, 40), (127, 24), (128, 24), (129, 24), (20_000, 16)] {
            let lens: Vec<_> = (0..num_rows).map(|_| 4 + random.below(max_len - 3)).collect();
            columns.push(some(lens.into_iter().map(|len| random.words(len))));
        }
        // Short rows stand beside long ones, whose frames have numbers of more than 8 bits.
        let mixed = |row: usize| [64 << 10, 1, 0, 3, 9, 1, 200, 12, 1, 5][row % 10];
        columns.push(some((0..300).map(|row| random.words(mixed(row)))));
        let odd = |row: usize| if row.is_multiple_of(37) { 300 + row % 5 } else { row % 3 };
        columns.push(some((0..9000).map(|row| random.words(odd(row)))));
        columns.push(some([0, 200_000, 0, 64 << 10, 1].into_iter().map(|len| random.words(len))));
        // Whole frames have no text: in front, between and behind.
        let is_empty = |row: usize| row < 1000 || (2000..5000).contains(&row) || row >= 8000;
        columns.push((0..9000).map(|row| (!is_empty(row)).then(|| random.words(10 + row % 9))).collect());
        columns.push((0..700).map(|row| (row % 3 != 1).then(|| random.words(row % 50))).collect());
        columns.push(some((0..6000).map(|row| random.bytes(row % 31))));
        for rows in &columns {
            run.push(block(rows, &options));
            assert_rows(&scanner, &run[run.len() - 1..], &format!("{width:?}, {split_codes}"));
        }
        if width == CodeWidth::Eight {
            for rows in &columns[columns.len() - 5..] {
                let rows: Vec<_> = rows.iter().map(Option::as_deref).collect();
                run.push(write_block_with(&none, &rows, &options).unwrap());
                assert_rows(&scanner, &run[run.len() - 1..], "escapes only");
            }
        }
    }
    assert_rows(&scanner, &run, "all blocks");
    run.reverse();
    assert_rows(&scanner, &run, "all blocks, the last one first");
}

#[test]
fn many_runs_from_many_threads() {
    let Some(scanner) = scanner() else { return };
    let one = |seed: u64| {
        let mut random = Random(seed);
        let num_blocks = random.below(6);
        (0..num_blocks)
            .map(|i| {
                let num_rows = random.below(3000);
                let rows = some((0..num_rows).map(|_| {
                    let len = random.below(60);
                    random.words(len)
                }));
                block(&rows, &options(WIDTHS[i % 2], 1024))
            })
            .collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let scanner = &scanner;
            let one = &one;
            scope.spawn(move || {
                let runs: Vec<_> = (0..20).map(|i| one(100 + thread * 50 + i)).collect();
                let submit = |run: &Vec<Vec<u8>>| scanner.submit(&sealed(run), RowForm::Views, false).unwrap();
                let pending: Vec<_> = runs.iter().map(submit).collect();
                for (run, pending) in runs.iter().zip(pending) {
                    Expected::from_run(run).assert_is(&pending.wait().unwrap(), "many runs");
                }
            });
        }
    });
    // These results are dropped before they are done, without a wait.
    for seed in 0..10 {
        drop(scanner.submit(&sealed(&one(seed)), RowForm::Offsets, false).unwrap());
    }
}

#[test]
fn without_pinned_memory_rows_come_in_pageable_memory() {
    let Some(_) = decoder() else { return };
    let options = ScanOptions { num_slots: 2, max_pinned_bytes: 3 << 20 };
    let scanner = GsstScanner::new(&Device::open(0).unwrap(), options).unwrap();
    let mut random = Random(13);
    let run = [block(&some((0..2000).map(|_| random.words(50))), &BlockOptions::default())];
    let rows: Vec<_> =
        (0..6).map(|_| scanner.submit(&sealed(&run), RowForm::Offsets, false).unwrap().wait().unwrap()).collect();
    let expected = Expected::from_run(&run);
    rows.iter().for_each(|rows| expected.assert_is(rows, "held results"));
    assert!(scanner.pinned_bytes() <= 3 << 20);
    let num_pinned = rows.iter().filter(|rows| rows.buffer().is_pinned()).count();
    assert!((1..6).contains(&num_pinned), "{num_pinned}");
}

#[test]
fn device_memory_is_bounded_and_given_back() {
    let Some(_) = decoder() else { return };
    let mut random = Random(14);
    let run = [block(&some((0..20_000).map(|_| random.words(50))), &BlockOptions::default())];
    let device = Device::open(0).unwrap().with_max_bytes(1 << 30);
    let scanner = GsstScanner::new(&device, ScanOptions::default()).unwrap();
    for _ in 0..10 {
        drop(scanner.submit(&sealed(&run), RowForm::Views, false).unwrap().wait().unwrap());
    }
    let used = device.used_bytes();
    let peak = device.peak_bytes();
    assert!(used > 1_000_000 && used <= peak && peak < 16 << 20, "{used} {peak}");
    let rows = scanner.decode_to_device(&sealed(&run), RowForm::Views, false).unwrap();
    Expected::from_run(&run).assert_is(&rows.to_host().unwrap(), "on the device");
    assert!(device.used_bytes() > used);
    drop(rows);
    drop(scanner);
    assert_eq!(device.used_bytes(), 0);
    let small = device.with_max_bytes(1 << 20);
    let scanner = GsstScanner::new(&small, ScanOptions::default()).unwrap();
    let refused = scanner.submit(&sealed(&run), RowForm::Views, true).map(drop);
    assert!(matches!(refused, Err(GpuError::OutOfMemory { .. })), "{refused:?}");
}

#[test]
#[allow(unsafe_code, reason = "an interface of raw pointers")]
fn arrays_and_views_share_rows_until_the_last_of_them_goes() {
    let Some(_) = decoder() else { return };
    let device = Device::open(0).unwrap().with_max_bytes(1 << 30);
    // One slot, whose memory the first run takes.
    let options = ScanOptions { num_slots: 1, ..ScanOptions::default() };
    let scanner = GsstScanner::new(&device, options).unwrap();
    for (form, with_nulls) in [(RowForm::Offsets, false), (RowForm::Offsets, true), (RowForm::Views, true)] {
        let texts = (0..500).map(|row| (row % 7 > 0 || !with_nulls).then(|| vec![b'a'; row % 20]));
        let run = [block(&texts.collect::<Vec<_>>(), &BlockOptions::default())];
        let expected = Expected::from_run(&run);
        drop(scanner.decode_pinned(&sealed(&run), form, false).unwrap());
        let used = device.used_bytes();
        let column = scanner.decode_pinned(&sealed(&run), form, false).unwrap().share().unwrap();
        assert_eq!((column.num_rows(), column.num_nulls() > 0, column.ordinal()), (500, with_nulls, 0));
        assert_eq!(column.text().len_bytes, expected.text.len());
        let mut arrays = [column.to_arrow_device(), column.to_arrow_device()];
        for array in &arrays {
            // SAFETY: the array lists its buffers.
            let buffers = unsafe { std::slice::from_raw_parts(array.array.buffers, array.array.n_buffers as usize) };
            let addresses: Vec<u64> = buffers.iter().map(|buffer| buffer.addr() as u64).collect();
            let validity = column.validity().map_or(0, |range| range.address);
            assert_eq!(addresses[..3], [validity, column.rows().address, column.text().address]);
            assert_eq!((addresses.len(), array.device_type), (if form == RowForm::Views { 4 } else { 3 }, 2));
            assert_eq!((array.array.length, array.array.null_count > 0), (500, with_nulls));
        }
        drop(column);
        for array in &mut arrays {
            assert!(device.used_bytes() > used);
            // SAFETY: the array is released once.
            unsafe { array.array.release.unwrap()(&raw mut array.array) };
            assert!(array.array.release.is_none());
        }
        assert_eq!(device.used_bytes(), used);
    }
}

#[test]
fn a_device_that_shares_the_hosts_memory_gives_the_same_rows() {
    let Some(_) = decoder() else { return };
    let device = Device::open(0).unwrap().sharing_host_memory().with_max_bytes(1 << 30);
    // There is room for one result and the staging buffer, so later results are copied.
    let little = ScanOptions { num_slots: 1, max_pinned_bytes: 4 << 20 };
    for options in [ScanOptions::default(), little] {
        let scanner = GsstScanner::new(&device, options).unwrap();
        for seed in 0..6 {
            let mut random = Random(40 + seed);
            let width = BlockOptions::new(WIDTHS[seed as usize % 2]);
            let texts = |num: usize| some((0..num).map(|_| random.words(60)));
            let run = [20_000, 3, 9_000].map(texts).map(|rows| block(&rows, &width));
            let expected = Expected::from_run(&run);
            let held = [RowForm::Views, RowForm::Offsets, RowForm::Views].map(|form| {
                let pending = scanner.submit(&sealed(&run), form, false).unwrap();
                pending.wait().unwrap()
            });
            held.iter().for_each(|rows| expected.assert_is(rows, "shared memory"));
            let rows = scanner.decode_to_device(&sealed(&run), RowForm::Offsets, false).unwrap();
            expected.assert_is(&rows.to_host().unwrap(), "shared memory, on the device");
        }
        // The device keeps no blocks or rows if all of them are in pinned memory.
        let kept = device.used_bytes();
        assert_eq!(kept < 1 << 20, options != little, "{kept}");
    }
}

#[test]
fn every_device_gives_the_same_rows() {
    let Some(_) = decoder() else { return };
    let mut random = Random(18);
    let run = [block(&some((0..20_000).map(|_| random.words(30))), &BlockOptions::default())];
    let devices = Devices::open(1 << 30).unwrap();
    assert_eq!(devices.len(), num_devices().unwrap());
    let expected = Expected::from_run(&run);
    for turn in 0..2 * devices.len() {
        let device = devices.next().unwrap();
        assert_eq!(device.ordinal(), turn % devices.len());
        let scanner = GsstScanner::new(device, ScanOptions::default()).unwrap();
        let rows = scanner.submit(&sealed(&run), RowForm::Views, false).unwrap().wait().unwrap();
        expected.assert_is(&rows, &format!("device {}", device.ordinal()));
        let rows = scanner.decode_to_device(&sealed(&run), RowForm::Offsets, false).unwrap();
        expected.assert_is(&rows.to_host().unwrap(), "on the device");
        assert_eq!(rows.arrow_format(ColumnType::Utf8), "u");
    }
}

/// Returns the block with its checksum corrected.
fn seal(mut block: Vec<u8>) -> Vec<u8> {
    let checksum = crc32c::crc32c(&block[8..]);
    block[4..8].copy_from_slice(&checksum.to_le_bytes());
    block
}

/// Compares both answers for an untrusted block. Returns true if it was refused.
#[track_caller]
fn assert_same_answer(scanner: &GsstScanner, bytes: Vec<u8>, case: &str) -> bool {
    let cpu = Block::open(&bytes[..]);
    let Ok(sealed) = SealedBlock::open(&bytes[..]) else {
        assert!(cpu.is_err(), "{case}: only the frame is refused");
        return false;
    };
    // A run that only matches rows finds the same fault.
    let all = scanner.matcher().like(&Pattern::like("%", None)).unwrap();
    let some = scanner.matcher().like(&Pattern::contains(b"regular")).unwrap();
    let matched = scanner.submit_matching(std::slice::from_ref(&sealed), &[some, all], true).unwrap().wait();
    let kept = scanner.decode_pinned(std::slice::from_ref(&sealed), RowForm::Offsets, false);
    let gpu = scanner.submit(&[sealed], RowForm::Offsets, false).unwrap().wait();
    assert_eq!(kept.map(drop).err().as_ref(), gpu.as_ref().map(drop).err(), "{case}");
    assert_eq!(matched.as_ref().map(drop).err(), gpu.as_ref().map(drop).err(), "{case}");
    match (&cpu, &gpu) {
        (Ok(_), Ok(rows)) => Expected::from_run(&[bytes]).assert_is(rows, case),
        (Err(_), Err(GpuError::Malformed { block_idx: 0, .. })) => {}
        _ => panic!("{case}: CPU {:?}, device {:?}", cpu.map(drop), gpu.map(drop)),
    }
    gpu.is_err()
}

#[test]
fn malformed_blocks_are_refused_as_by_the_cpu() {
    let Some(scanner) = scanner() else { return };
    let mut random = Random(15);
    let none = SymbolTable::new(CodeWidth::Eight, Vec::new()).unwrap();
    let mut originals = Vec::new();
    for options in [
        options(CodeWidth::Eight, 512),
        options(CodeWidth::Twelve, 512),
        without_lengths(options(CodeWidth::Eight, 1024)),
    ] {
        let rows: Vec<_> = (0..300).map(|row| (row % 7 != 3).then(|| random.words(row % 41))).collect();
        originals.push(block(&rows, &options));
        let any = some((0..100).map(|row| random.bytes(row % 60)));
        originals.push(block(&any, &options));
        if options.width == CodeWidth::Eight {
            let any: Vec<_> = any.iter().map(Option::as_deref).collect();
            originals.push(write_block_with(&none, &any, &options).unwrap());
        }
    }
    let mut num_refused_by_device = 0;
    for i in 0..1200 {
        let mut bytes = originals[i % originals.len()].clone();
        for _ in 0..1 + random.below(3) {
            let at = match random.below(3) {
                0 => 16 + random.below(bytes.len() - 16),
                1 => bytes.len() * 3 / 5 + random.below(bytes.len() * 2 / 5),
                _ => 64 + random.below(200),
            };
            bytes[at] = match random.below(4) {
                0 => 255,
                1 => bytes[at] ^ 1 << random.below(8),
                2 => bytes[at].wrapping_add(1),
                _ => random.below(256) as u8,
            };
        }
        let refused = assert_same_answer(&scanner, seal(bytes), &format!("case {i}"));
        num_refused_by_device += usize::from(refused);
    }
    assert!(num_refused_by_device > 100, "{num_refused_by_device}");
}

#[test]
fn each_check_finds_its_fault() {
    let Some(scanner) = scanner() else { return };
    let mut random = Random(16);
    let rows = some((0..2000).map(|_| random.words(20)));
    let good = block(&rows, &options(CodeWidth::Eight, 512));
    let other = block(&rows[..1900], &options(CodeWidth::Eight, 512));
    let check = |bytes: &Vec<u8>| {
        let run = [good.clone(), bytes.clone()];
        let sealed: Vec<_> = run.iter().map(|bytes| SealedBlock::open(&bytes[..]).unwrap()).collect();
        match scanner.submit(&sealed, RowForm::Views, false).unwrap().wait() {
            Err(GpuError::Malformed { block_idx: 1, check, .. }) => Some(check),
            other => panic!("{:?}", other.map(drop)),
        }
    };
    // A split's text begins one byte later.
    let sections = SealedBlock::open(&other).unwrap();
    let splits_at = sections.splits_offset();
    let counts_at = sections.frames().code_counts[3].bits_offset as usize - 1;
    let lengths_at = sections.frames().text_lengths[3].bits_offset as usize - 1;
    let mut bytes = other.clone();
    bytes[splits_at + 4] += 1;
    assert_eq!(check(&seal(bytes)), Some(BlockCheck::SplitText));
    // The smallest number of codes, and the smallest length, of a frame are one higher.
    let mut bytes = other.clone();
    bytes[counts_at] += 1;
    assert_eq!(check(&seal(bytes)), Some(BlockCheck::CodeCounts));
    let mut bytes = other.clone();
    bytes[lengths_at] += 1;
    assert_eq!(check(&seal(bytes)), Some(BlockCheck::TextLengths));
    let mut bytes = other;
    bytes[64 + 600] = 255;
    assert_eq!(check(&seal(bytes)), Some(BlockCheck::SplitTiles));
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let Some(scanner) = scanner() else { return };
    let mut random = Random(17);
    let alphabet = ["a", "é", "—", "𝄞", "z", "0", "\u{7ff}", "\u{800}", "\u{ffff}", "\u{10ffff}"];
    let wrong: [&[u8]; 12] = [
        b"\x80",
        b"\xc0\x80",
        b"\xc1\xbf",
        b"\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xf0\x80\x80\x80",
        b"\xff",
        b"\xc3",
        b"\xe2\x82",
        b"\xf0\x9f\x98",
        b"\xf8\x88\x80\x80\x80",
    ];
    let mut num_right = 0;
    let mut num_wrong = 0;
    for case in 0..300 {
        let rows = some((0..1 + random.below(60)).map(|_| {
            let mut row = Vec::new();
            for _ in 0..random.below(20) {
                row.extend_from_slice(alphabet[random.below(alphabet.len())].as_bytes());
            }
            if random.below(60) == 0 {
                row.extend_from_slice(wrong[random.below(wrong.len())]);
                row.extend_from_slice(b"after"[..random.below(3)].as_ref());
            }
            row
        }));
        // Rows are cut inside a character of a valid text.
        let rows = if case % 5 == 4 {
            let text: Vec<u8> = rows.iter().flatten().flatten().copied().collect();
            text.chunks(1 + random.below(9)).map(|row| Some(row.to_vec())).collect()
        } else {
            rows
        };
        let is_utf8 = rows.iter().flatten().all(|row| std::str::from_utf8(row).is_ok());
        let run = [block(&rows, &options(WIDTHS[case % 2], 512))];
        let got = scanner.submit(&sealed(&run), FORMS[case % 2], true).unwrap().wait();
        match (&got, is_utf8) {
            (Ok(rows), true) => Expected::from_run(&run).assert_is(rows, "UTF-8"),
            (Err(GpuError::NotText { .. }), false) => {}
            _ => panic!("case {case}: {is_utf8}, {:?}", got.map(drop)),
        }
        num_right += usize::from(is_utf8);
        num_wrong += usize::from(!is_utf8);
        let any = scanner.submit(&sealed(&run), RowForm::Offsets, false).unwrap().wait();
        Expected::from_run(&run).assert_is(&any.unwrap(), "bytes");
    }
    assert!(num_right > 40 && num_wrong > 40, "{num_right} {num_wrong}");
}
