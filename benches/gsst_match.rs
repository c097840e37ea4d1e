//! Benchmark of predicates on GSST blocks on the device. Goals for `l_comment`, from codes to numbers,
//! offsets and text of the rows that match: 1.8 TB/s and more for a `LIKE '%…%'` that finds 1 % of the rows,
//! and three quarters of the rate of decoding everything where most rows match. Beside it stands the rate
//! of counting the same rows.
//!
//! Command: `TADOC_COLUMN=l_comment.txt cargo bench --bench gsst_match`, with a row in each line.
//! Without the variable the rows are generated, and the rates mean little. The column is repeated
//! until it has 1 GiB, and lies in device memory. Every answer is compared with the CPU's before it
//! is timed. A time covers the whole call: the transfer of the predicate, its tables, all kernels,
//! and the transfer of the number of matches. `TADOC_ONLY` names a case, `TADOC_PREDICATE` a
//! predicate, and `TADOC_SECONDS=3` also repeats each for seconds (`measuring/mod.rs`). Without a
//! device the benchmark says so and does nothing, unless `REQUIRE_GPU=1`.

#![allow(clippy::unwrap_used, missing_docs)]

use std::time::Duration;

use gsst::{Block, BlockOptions, CodeWidth, Parse, Pattern, RowMask};
use rayon::prelude::*;
use tadoc_cuda::{Device, DeviceRows, DeviceSelection, GpuError, GsstDecoder, GsstMatcher, RowPredicate};

mod gsst_column;
mod measuring;

use gsst_column::{Case, NUM_RUNS, NUM_WARM_UPS, POISONS, TEXT_BYTES, blocks, column};
use measuring::{open_device, repeat};

fn cases() -> Vec<Case> {
    let eight = BlockOptions::new(CodeWidth::Eight);
    let twelve = BlockOptions::new(CodeWidth::Twelve);
    let case = |name, options, mib: usize| Case { name, options, block_bytes: mib << 20 };
    let optimal = BlockOptions { parse: Parse::Optimal, ..twelve };
    vec![
        case("8 bits, 4 MiB", eight, 4),
        case("12 bits, 4 MiB", twelve, 4),
        case("12 bits, optimal parse, 8 MiB", optimal, 8),
    ]
}

/// The rows of one case, on the host and on the device.
struct Column {
    blocks: Vec<Block<Vec<u8>>>,
    copies: usize,
    rows: DeviceRows,
}

fn main() -> Result<(), GpuError> {
    let Some(device) = open_device()? else { return Ok(()) };
    let only = std::env::var("TADOC_ONLY").unwrap_or_default();
    let text = column();
    let rows: Vec<Option<&[u8]>> = text.split(|&byte| byte == b'\n').map(Some).collect();
    for case in cases().iter().filter(|case| case.name.contains(&only)) {
        measure(&device, case, &rows)?;
    }
    Ok(())
}

fn measure(device: &Device, case: &Case, rows: &[Option<&[u8]>]) -> Result<(), GpuError> {
    let matcher = GsstMatcher::new(device);
    let blocks = blocks(rows, case);
    let len_bytes: usize = blocks.iter().map(|block| block.text_len_bytes()).sum();
    let copies = TEXT_BYTES.div_ceil(len_bytes);
    let all: Vec<_> = (0..copies).flat_map(|_| blocks.iter().cloned()).collect();
    let decode_gb_per_s = decode_rate(device, &all)?;
    let column = Column { blocks, copies, rows: matcher.upload(&all)? };
    drop(all);
    println!(
        "\n{}: {} rows, {} bytes of text, ratio {:.3}, decode of all {decode_gb_per_s:.0} GB/s",
        case.name,
        column.rows.num_rows(),
        column.rows.text_len_bytes(),
        column.rows.text_len_bytes() as f64 / column.rows.stored_len_bytes() as f64,
    );
    println!(
        "| predicate | rows that match | GB/s, median of {NUM_RUNS} | lowest | highest | counted, GB/s | extra MiB |"
    );
    let first = rows[rows.len() / 2].unwrap_or_default();
    let constants = [first, rows[7].unwrap_or_default(), b"no such row"];
    let one_of = |constants: &[&[u8]]| matcher.one_of(constants).unwrap();
    let is_like = |pattern: &str| Pattern::like(pattern, None);
    for pattern in [
        "%special packages wake%",
        "%regular deposits%",
        "%final dep%",
        "%express%",
        "%special%",
        "%the slyly%",
        "%furiously%",
        "%ly %",
        "%e%",
        "%",
        "the%",
        "furious%",
        "c%y%s",
        "%deposits",
    ] {
        let pattern_of = is_like(pattern);
        let on_cpu = |block: &Block<Vec<u8>>| block.rows_like(&pattern_of).rows();
        let predicate = matcher.like(&pattern_of)?;
        check_and_time(device, &matcher, &column, &predicate, on_cpu, pattern)?;
        if pattern == "%special%" || pattern == "%furiously%" {
            let predicate = predicate.without_filter();
            let name = format!("{pattern}, no filter");
            check_and_time(device, &matcher, &column, &predicate, on_cpu, &name)?;
        }
    }
    for (name, constants) in [("= row", &constants[..1]), ("IN (3)", &constants[..])] {
        let on_cpu = |block: &Block<Vec<u8>>| block.rows_equal_to(constants).rows();
        check_and_time(device, &matcher, &column, &one_of(constants), on_cpu, name)?;
    }
    let furiously = is_like("%furiously%");
    let on_cpu = |block: &Block<Vec<u8>>| unset_rows(&block.rows_like(&furiously), block.num_rows());
    let negated = matcher.like(&furiously)?.negated();
    check_and_time(device, &matcher, &column, &negated, on_cpu, "NOT LIKE %furiously%")?;
    let on_cpu = |block: &Block<Vec<u8>>| unset_rows(&block.rows_equal_to(&constants[..1]), block.num_rows());
    let negated = one_of(&constants[..1]).negated();
    check_and_time(device, &matcher, &column, &negated, on_cpu, "<> row")
}

/// Returns the rows that are not in `mask`. No row of the column is null.
fn unset_rows(mask: &RowMask, num_rows: usize) -> Vec<u32> {
    (0..num_rows as u32).filter(|row| !mask.is_set(*row as usize)).collect()
}

fn check_and_time(
    device: &Device,
    matcher: &GsstMatcher,
    column: &Column,
    predicate: &RowPredicate,
    on_cpu: impl Fn(&Block<Vec<u8>>) -> Vec<u32> + Sync,
    name: &str,
) -> Result<(), GpuError> {
    if std::env::var("TADOC_PREDICATE").is_ok_and(|only| only != name) {
        return Ok(());
    }
    let mut selection = matcher.selection()?;
    check(matcher, column, predicate, on_cpu, &mut selection)?;
    for _ in 0..NUM_WARM_UPS {
        matcher.select(&column.rows, predicate, &mut selection)?;
    }
    device.synchronize()?;
    let time = |_| device.time(|| matcher.select(&column.rows, predicate, &mut selection));
    let mut times = (0..NUM_RUNS).map(time).collect::<Result<Vec<_>, _>>()?;
    times.sort_unstable();
    let len_bytes = column.rows.text_len_bytes() as f64;
    let num_rows = selection.num_rows();
    let count = |_| device.time(|| matcher.count(&column.rows, predicate, &mut selection).map(|_| ()));
    let mut count_times = (0..NUM_RUNS).map(count).collect::<Result<Vec<_>, _>>()?;
    count_times.sort_unstable();
    let rate_gb_per_s = |time: Duration| len_bytes / time.as_secs_f64() / 1e9;
    println!(
        "| `{name}` | {:.3} % | {:.0} | {:.0} | {:.0} | {:.0} | {:.1} |",
        100.0 * num_rows as f64 / column.rows.num_rows() as f64,
        rate_gb_per_s(times[NUM_RUNS / 2]),
        rate_gb_per_s(times[NUM_RUNS - 1]),
        rate_gb_per_s(times[0]),
        rate_gb_per_s(count_times[NUM_RUNS / 2]),
        (selection.scratch_len_bytes() + column.rows.overhead_len_bytes()) as f64 / f64::from(1 << 20),
    );
    let text_bytes = column.rows.text_len_bytes();
    repeat(device, name, text_bytes, || matcher.select(&column.rows, predicate, &mut selection))
}

/// Compares numbers and text of the rows with the answer of the CPU, over two fill bytes.
fn check(
    matcher: &GsstMatcher,
    column: &Column,
    predicate: &RowPredicate,
    on_cpu: impl Fn(&Block<Vec<u8>>) -> Vec<u32> + Sync,
    selection: &mut DeviceSelection,
) -> Result<(), GpuError> {
    let expected: Vec<_> = column
        .blocks
        .par_iter()
        .map(|block| {
            let rows = on_cpu(block);
            let decoded = block.decode_selected(&rows).unwrap();
            (rows, decoded)
        })
        .collect();
    for poison in POISONS {
        selection.fill(poison)?;
        matcher.select(&column.rows, predicate, selection)?;
        let rows = selection.rows_to_host()?;
        let offsets = selection.offsets_to_host()?;
        let text = selection.text_to_host()?;
        let mut row_idx = 0;
        let mut first_row = 0;
        for _ in 0..column.copies {
            for (block, (expected_rows, decoded)) in column.blocks.iter().zip(&expected) {
                let end = row_idx + expected_rows.len();
                let is_same = |(got, expected): (&u32, &u32)| *got == first_row + expected;
                assert!(rows[row_idx..end].iter().zip(expected_rows).all(is_same));
                let text_at = offsets[row_idx];
                let is_same = |(got, expected): (&u32, &u32)| *got == text_at + expected;
                assert!(offsets[row_idx..=end].iter().zip(&decoded.offsets).all(is_same));
                assert!(text[text_at as usize..offsets[end] as usize] == decoded.text);
                row_idx = end;
                first_row += block.num_rows() as u32;
            }
        }
        assert_eq!((row_idx, offsets[row_idx] as usize), (rows.len(), text.len()));
    }
    Ok(())
}

/// Returns the rate of decoding all rows, measured as in `benches/gsst_decode.rs`.
fn decode_rate(device: &Device, blocks: &[Block<Vec<u8>>]) -> Result<f64, GpuError> {
    let decoder = GsstDecoder::new(device);
    let uploaded = decoder.upload(blocks)?;
    let mut out = decoder.text_for(&uploaded)?;
    for _ in 0..NUM_WARM_UPS {
        decoder.decode_into(&uploaded, &mut out)?;
    }
    device.synchronize()?;
    let time = |_| device.time(|| decoder.decode_into(&uploaded, &mut out));
    let mut times = (0..NUM_RUNS).map(time).collect::<Result<Vec<_>, _>>()?;
    times.sort_unstable();
    Ok(uploaded.text_len_bytes() as f64 / times[NUM_RUNS / 2].as_secs_f64() / 1e9)
}
