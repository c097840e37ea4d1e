//! Benchmark of decoding GSST blocks on the device. Goals: 2.2 TB/s of `l_comment` and more, byte
//! for byte the text of the CPU, and blocks of 1 MiB at 80 % of the best rate and more. It measures
//! decoding with offsets of rows, with views, and from sealed blocks in host memory to rows in host
//! memory.
//!
//! Command: `TADOC_COLUMN=l_comment.txt cargo bench --bench gsst_decode`, with a row in each line.
//! Without the variable the rows are generated, and the rates mean little. The column is repeated
//! until it has 1 GiB, and lies in device memory. Every output is compared twice, over two
//! different fill bytes, before it is timed. `TADOC_ONLY` names the cases. Without a device the
//! benchmark says so and does nothing, unless `REQUIRE_GPU=1`.

#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::VecDeque;
use std::time::Instant;

use gsst::{Block, BlockOptions, CodeWidth, Parse, SealedBlock};
use tadoc_cuda::{Device, GpuError, GsstDecoder, GsstScanner, PendingRows, RowForm, ScanOptions, ScannedRows};

mod gsst_column;
mod measuring;

use gsst_column::{Case, NUM_RUNS, NUM_WARM_UPS, POISONS, TEXT_BYTES, blocks, column};
use measuring::{open_device, variable};

/// Returns the cases whose names begin with `TADOC_ONLY`.
fn cases() -> Vec<Case> {
    let only = variable("TADOC_ONLY", "");
    let eight = BlockOptions::new(CodeWidth::Eight);
    let twelve = BlockOptions::new(CodeWidth::Twelve);
    let optimal = |options| BlockOptions { parse: Parse::Optimal, ..options };
    let case = |name, options, mib: usize| Case { name, options, block_bytes: mib << 20 };
    let all = [
        case("8 bits, 4 MiB", eight, 4),
        case("8 bits, optimal parse, 8 MiB", optimal(eight), 8),
        case("8 bits, 1 MiB", eight, 1),
        case("8 bits, splits of 2,048 codes, 4 MiB", BlockOptions { split_codes: 2048, ..eight }, 4),
        case("12 bits, 4 MiB", twelve, 4),
        case("12 bits, optimal parse, 8 MiB", optimal(twelve), 8),
    ];
    all.into_iter().filter(|case| case.name.starts_with(&only)).collect()
}

fn main() -> Result<(), GpuError> {
    let Some(device) = open_device()? else { return Ok(()) };
    let decoder = GsstDecoder::new(&device);
    let text = column();
    let rows: Vec<Option<&[u8]>> = text.split(|&byte| byte == b'\n').map(Some).collect();
    let clean = cases().into_iter().map(|case| (case, &rows));
    let dirty = with_random_bytes(&text);
    let dirty_rows: Vec<Option<&[u8]>> = dirty.split(|&byte| byte == b'\n').map(Some).collect();
    let options = BlockOptions::new(CodeWidth::Eight);
    let escapes = Case { name: "8 bits, 1 % random bytes, 4 MiB", options, block_bytes: 4 << 20 };
    println!("| blocks | GB/s, median of {NUM_RUNS} | lowest | highest | ratio | bytes per code |");
    for (case, rows) in clean.chain([(escapes, &dirty_rows)]) {
        measure(&device, &decoder, &case, rows)?;
    }
    let options = ScanOptions { max_pinned_bytes: 4 << 30, ..ScanOptions::default() };
    let scanner = GsstScanner::new(&device, options)?;
    println!("| rows of blocks on the device | form | GB/s of text | lowest | highest | extra MiB |");
    for case in cases() {
        measure_rows(&scanner, &case, &rows)?;
    }
    println!("| host to host | form | runs, MiB | in flight | GB/s of text, best of 4 |");
    for case in cases().iter().take(2) {
        measure_pipeline(&scanner, case, &rows)?;
    }
    Ok(())
}

fn measure(device: &Device, decoder: &GsstDecoder, case: &Case, rows: &[Option<&[u8]>]) -> Result<(), GpuError> {
    let one = blocks(rows, case);
    let mut expected = Vec::new();
    one.iter().for_each(|block| block.decode_text(&mut expected));
    let copies = TEXT_BYTES.div_ceil(expected.len());
    let all: Vec<_> = (0..copies).flat_map(|_| one.iter().cloned()).collect();
    let uploaded = decoder.upload(&all)?;
    let mut out = decoder.text_for(&uploaded)?;
    for poison in POISONS {
        out.fill(poison)?;
        decoder.decode_into(&uploaded, &mut out)?;
        assert!(out.to_host()?.chunks(expected.len()).all(|copy| copy == expected), "{}", case.name);
    }
    for _ in 0..NUM_WARM_UPS {
        decoder.decode_into(&uploaded, &mut out)?;
    }
    device.synchronize()?;
    let time = |_| device.time(|| decoder.decode_into(&uploaded, &mut out));
    let mut times = (0..NUM_RUNS).map(time).collect::<Result<Vec<_>, _>>()?;
    times.sort_unstable();
    let len_bytes = uploaded.text_len_bytes() as f64;
    let rate_gb_per_s = |run: usize| len_bytes / times[run].as_secs_f64() / 1e9;
    let num_codes: usize = one.iter().map(|block| block.num_codes()).sum();
    println!(
        "| {} | {:.0} | {:.0} | {:.0} | {:.3} | {:.2} |",
        case.name,
        rate_gb_per_s(NUM_RUNS / 2),
        rate_gb_per_s(NUM_RUNS - 1),
        rate_gb_per_s(0),
        len_bytes / uploaded.stored_len_bytes() as f64,
        expected.len() as f64 / num_codes as f64,
    );
    Ok(())
}

/// Measures text with offsets and with views, from validated blocks in device memory.
fn measure_rows(scanner: &GsstScanner, case: &Case, rows: &[Option<&[u8]>]) -> Result<(), GpuError> {
    let device = scanner.device();
    let one = blocks(rows, case);
    let len_bytes: usize = one.iter().map(Block::text_len_bytes).sum();
    let copies = TEXT_BYTES.div_ceil(len_bytes);
    let all: Vec<_> = (0..copies).flat_map(|_| one.iter().cloned()).collect();
    for form in [RowForm::Offsets, RowForm::Views] {
        let run = scanner.upload(&all, form)?;
        let mut column = scanner.column_for(&run)?;
        for poison in POISONS {
            column.fill(poison)?;
            scanner.decode_into(&run, &mut column)?;
            assert_rows(&column.to_host()?, rows, copies);
        }
        for _ in 0..NUM_WARM_UPS {
            scanner.decode_into(&run, &mut column)?;
        }
        device.synchronize()?;
        let time = |_| device.time(|| scanner.decode_into(&run, &mut column));
        let mut times = (0..NUM_RUNS).map(time).collect::<Result<Vec<_>, _>>()?;
        times.sort_unstable();
        let text_bytes = run.text_len_bytes() as f64;
        let rate_gb_per_s = |run: usize| text_bytes / times[run].as_secs_f64() / 1e9;
        println!(
            "| {} | {form:?} | {:.0} | {:.0} | {:.0} | {} |",
            case.name,
            rate_gb_per_s(NUM_RUNS / 2),
            rate_gb_per_s(NUM_RUNS - 1),
            rate_gb_per_s(0),
            run.extra_bytes() >> 20,
        );
    }
    Ok(())
}

/// Compares the rows of `copies` copies of a column.
fn assert_rows(got: &ScannedRows, rows: &[Option<&[u8]>], copies: usize) {
    let text = got.text();
    let mut at = 0;
    let expected = (0..copies).flat_map(|_| rows.iter().flatten());
    for (row, expected) in expected.enumerate() {
        let end = at + expected.len();
        assert_eq!(&text[at..end], *expected);
        if let Some(offsets) = got.offsets() {
            assert_eq!(offsets[row..row + 2], [at as u32, end as u32]);
        }
        if let Some(views) = got.views() {
            let mut view = [0; 16];
            view[..4].copy_from_slice(&(expected.len() as u32).to_le_bytes());
            if expected.len() <= 12 {
                view[4..4 + expected.len()].copy_from_slice(expected);
            } else {
                view[4..8].copy_from_slice(&expected[..4]);
                view[12..].copy_from_slice(&(at as u32).to_le_bytes());
            }
            assert_eq!(views[row], u128::from_le_bytes(view));
        }
        at = end;
    }
    assert_eq!(at, text.len());
}

/// Measures the pipeline from sealed blocks to rows. The device checks the blocks; one thread
/// submits and waits.
fn measure_pipeline(scanner: &GsstScanner, case: &Case, rows: &[Option<&[u8]>]) -> Result<(), GpuError> {
    let all = blocks(rows, case);
    let sealed: Vec<_> = all.iter().map(|block| SealedBlock::open(block.as_bytes()).unwrap()).collect();
    let expected: usize = all.iter().map(Block::text_len_bytes).sum();
    for form in [RowForm::Offsets, RowForm::Views] {
        for (run_mib, num_in_flight) in [(16, 1), (16, 3), (64, 1), (64, 3)] {
            let run_blocks = ((run_mib << 20) / case.block_bytes).clamp(1, sealed.len());
            let num_runs = 4 * sealed.len().div_ceil(run_blocks);
            let mut best = f64::MAX;
            for _ in 0..4 {
                let start = Instant::now();
                let mut len_bytes = 0;
                let mut pending: VecDeque<PendingRows> = VecDeque::new();
                for run in sealed.chunks(run_blocks).cycle().take(num_runs) {
                    if pending.len() == num_in_flight {
                        len_bytes += pending.pop_front().unwrap().wait()?.text().len();
                    }
                    pending.push_back(scanner.submit(run, form, true)?);
                }
                for rows in pending {
                    len_bytes += rows.wait()?.text().len();
                }
                assert_eq!(len_bytes, 4 * expected);
                best = best.min(start.elapsed().as_secs_f64() / len_bytes as f64);
            }
            let name = case.name;
            let rate_gb_per_s = 1e-9 / best;
            // A column may be shorter than a run.
            let run_mib = (run_blocks * case.block_bytes) >> 20;
            println!("| {name} | {form:?} | {run_mib} | {num_in_flight} | {rate_gb_per_s:.1} |");
        }
    }
    Ok(())
}

/// Returns the text with one byte in a hundred replaced. Bytes without a symbol in the table are
/// escaped.
fn with_random_bytes(text: &[u8]) -> Vec<u8> {
    let mut dirty = text.to_vec();
    for (i, byte) in dirty.iter_mut().step_by(97).enumerate().filter(|(_, byte)| **byte != b'\n') {
        let random = ((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
        *byte = if random == b'\n' { 255 } else { random };
    }
    dirty
}
