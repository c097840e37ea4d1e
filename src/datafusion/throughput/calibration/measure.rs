//! Measurement of this machine, in a few seconds.
//!
//! ```text
//! 4 MiB of generated text ─▶ encode ─▶ block of 8 bits ─┬▶ check, decode, match: one and all cores
//!                                      block of 12 bits ─┘▶ device, if one is given
//! this text as documents  ─▶ corpus ────▶ tasks on one and all cores, and on the device
//! ```
//!
//! The rate of one core is that of the fastest run. The rate of all cores is the sum of the mean
//! rates of their threads, which run at the same time. A block with its text is larger than the
//! caches of one core. Staging needs no text and is measured over eight blocks.
//!
//! Rates of 16 cores of a virtual Xeon (20 November 2026) in GB/s of text, one core and all:
//!
//! ```text
//! bits   ratio   checks      staging     decoding    matching    encoding
//!  8     2.25    2.1   24    17   200    4.1   40    3.1   37    0.26   2.9
//! 12     2.88    1.5   15    18   220    7.5   68    5.0   44    0.14   1.8
//! ```
//!
//! If the host checked all blocks for a device behind PCIe 5, the device would wait for these
//! checks and not for the bus.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gsst::arrow::{TextType, decode_rows};
use gsst::{Block, BlockOptions, CodeWidth, Pattern, SealedBlock, write_block, write_block_with};
use tadoc::error::Result;

use crate::errors::from_gsst;

use super::super::model::{CoreRate, CpuRates};
use super::corpora::{ProbeCorpora, measure_cores};
use super::device::{DeviceProbe, ProbeBlocks, measure_device};
use super::storage::measure_storage;
use super::{Calibration, CoreTimes, DeviceCalibration, WidthRates, text};

const TEXT_BYTES: usize = 4 << 20;
const TINY_BYTES: usize = 1 << 10;
/// Number of blocks in one run of staging, which are larger than the caches of a core.
const NUM_RUN_BLOCKS: usize = 8;
/// Row whose codes have an eighth of its bytes.
const FLAT_ROW: [u8; 256] = [b'='; 256];
/// Time for the measurement of one rate, for one core and again for all.
const TIME: Duration = Duration::from_millis(90);

/// A step of the measurement, for a display of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Reading a path.
    Storage,
    /// Measuring codes of 8 bits on the cores.
    CoresEight,
    /// Measuring codes of 12 bits on the cores.
    CoresTwelve,
    /// Measuring tasks over a corpus on the cores.
    CoresCorpus,
    /// Measuring the device.
    Device,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Storage => "storage",
            Self::CoresEight => "cores, codes of 8 bits",
            Self::CoresTwelve => "cores, codes of 12 bits",
            Self::CoresCorpus => "cores, tasks over a corpus",
            Self::Device => "device",
        })
    }
}

/// Measures this machine: the cores, and if given, the storage at a path and a device.
///
/// Rates that are not measured keep their built-in values. `on_step` is called before each step.
///
/// # Errors
///
/// Errors of [`measure_storage`] and of the device.
pub fn measure(
    storage: Option<&Path>,
    device: Option<&mut dyn DeviceProbe>,
    mut on_step: impl FnMut(Step),
) -> Result<Calibration> {
    let mut calibration =
        Calibration { machine: machine(), date: today(), ..Calibration::default() };
    if let Some(path) = storage {
        on_step(Step::Storage);
        calibration.storage = measure_storage(path)?;
    }
    let rows = text::rows(TEXT_BYTES);
    let rows: Vec<Option<&[u8]>> = rows.iter().map(|row| Some(&row[..])).collect();
    let num_cores = calibration.num_cores;
    on_step(Step::CoresEight);
    let (eight, block_eight) = measure_width(CodeWidth::Eight, &rows, num_cores)?;
    on_step(Step::CoresTwelve);
    let (twelve, block_twelve) = measure_width(CodeWidth::Twelve, &rows, num_cores)?;
    (calibration.eight, calibration.twelve) = (eight, twelve);
    on_step(Step::CoresCorpus);
    let corpora = ProbeCorpora::new(num_cores)?;
    let times = measure_cores(&corpora, num_cores)?;
    calibration.corpus_elements = times.elements;
    for (at, slot) in calibration.corpora.iter_mut().enumerate() {
        let [one_core, all_cores] = times.ratios[at].map(Some);
        *slot = CoreTimes { one_core, all_cores, large: times.large_ratios.map(|all| all[at]) };
    }
    if let Some(probe) = device {
        on_step(Step::Device);
        let blocks = probe_blocks(&rows, [block_eight, block_twelve], corpora)?;
        calibration.device = Some(measure_device(probe, &blocks)?);
    }
    for (_, number) in calibration.numbers() {
        *number = rounded(*number);
    }
    Ok(calibration)
}

/// Measures a device alone, in 1 to 2 s.
///
/// # Errors
///
/// Errors of the device.
pub fn measure_only_device(probe: &mut dyn DeviceProbe) -> Result<DeviceCalibration> {
    let rows = text::rows(TEXT_BYTES);
    let rows: Vec<Option<&[u8]>> = rows.iter().map(|row| Some(&row[..])).collect();
    let blocks = [block(CodeWidth::Eight, &rows)?, block(CodeWidth::Twelve, &rows)?];
    measure_device(probe, &probe_blocks(&rows, blocks, ProbeCorpora::new(1)?)?)
}

/// Builds the input for the measurement of a device: the blocks of `rows` in both widths, a flat
/// block, a tiny block and the `corpora`.
fn probe_blocks(
    rows: &[Option<&[u8]>],
    [eight, twelve]: [Block<Vec<u8>>; 2],
    corpora: ProbeCorpora,
) -> Result<ProbeBlocks> {
    let num_rows = rows.len() * TINY_BYTES / TEXT_BYTES;
    let flat_rows = vec![Some(&FLAT_ROW[..]); TEXT_BYTES / FLAT_ROW.len()];
    let flat = block(CodeWidth::Eight, &flat_rows)?;
    let tiny = block(CodeWidth::Eight, &rows[..num_rows])?;
    Ok(ProbeBlocks { eight, twelve, flat, tiny, corpora })
}

fn block(width: CodeWidth, rows: &[Option<&[u8]>]) -> Result<Block<Vec<u8>>> {
    Block::open(write_block(rows, &BlockOptions::new(width)).map_err(from_gsst)?).map_err(from_gsst)
}

/// Measures the rates of the cores for one width, and returns them with the measured block.
fn measure_width(
    width: CodeWidth,
    rows: &[Option<&[u8]>],
    num_cores: usize,
) -> Result<(WidthRates, Block<Vec<u8>>)> {
    let options = BlockOptions::new(width);
    let block = block(width, rows)?;
    let pattern = Pattern::contains(text::NEEDLE.as_bytes());
    let (table, text_bytes) = (block.table(), block.text_len_bytes());
    let (all, views) = (|| 0..block.num_rows(), TextType::Utf8View);
    let rate = |work: &(dyn Fn() + Sync)| core_rate(text_bytes, num_cores, work);
    let run = vec![block.as_bytes().to_vec(); NUM_RUN_BLOCKS];
    let staging = || drop(std::hint::black_box(staged(&run)));
    let cpu = CpuRates {
        check: rate(&|| drop(std::hint::black_box(Block::open(block.as_bytes())))),
        staging: core_rate(NUM_RUN_BLOCKS * text_bytes, num_cores, &staging),
        decode: rate(&|| drop(std::hint::black_box(decode_rows(&block, all(), views)))),
        matching: rate(&|| drop(std::hint::black_box(block.rows_like(&pattern)))),
        encode: rate(&|| drop(std::hint::black_box(write_block_with(table, rows, &options)))),
    };
    let ratio = text_bytes as f64 / block.as_bytes().len() as f64;
    Ok((WidthRates { ratio, cpu }, block))
}

/// Checks the checksums of a run of blocks and copies it once, as the host does for a device.
fn staged(blocks: &[Vec<u8>]) -> Result<Vec<u8>> {
    let mut run = Vec::with_capacity(blocks.iter().map(Vec::len).sum());
    for block in blocks {
        run.extend_from_slice(SealedBlock::open(&block[..]).map_err(from_gsst)?.as_bytes());
    }
    Ok(run)
}

/// Measures the rate of `work`, which handles `text_bytes` in each run, on one core and on all.
fn core_rate(text_bytes: usize, num_cores: usize, work: &(dyn Fn() + Sync)) -> CoreRate {
    let text_gb = text_bytes as f64 / 1e9;
    let (begin, mut fastest) = (Instant::now(), Duration::MAX);
    while fastest == Duration::MAX || begin.elapsed() < TIME {
        let start = Instant::now();
        work();
        fastest = fastest.min(start.elapsed());
    }
    let alone = text_gb / fastest.as_secs_f64().max(1e-9);
    let rates = std::thread::scope(|scope| {
        // Collecting the handles starts all threads before the first one is joined.
        let threads: Vec<_> =
            (0..num_cores).map(|_| scope.spawn(|| text_gb / seconds_of_a_run(work))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).sum::<f64>()
    });
    CoreRate { per_core_gb_per_s: alone, all_cores_gb_per_s: rates }
}

/// Returns the mean seconds of a run, over the runs within [`TIME`], at least one.
fn seconds_of_a_run(work: &(dyn Fn() + Sync)) -> f64 {
    let (start, mut num_runs) = (Instant::now(), 0.0);
    while num_runs == 0.0 || start.elapsed() < TIME {
        work();
        num_runs += 1.0;
    }
    start.elapsed().as_secs_f64().max(1e-9) / num_runs
}

/// Rounds to four significant digits, which is the precision of the measurement.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // Rounding goes through text, so that the file has exactly these digits.
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// Returns the name and processor of this machine.
pub(super) fn machine() -> String {
    let first_line = |path: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        Some(text.lines().next()?.trim().to_owned())
    };
    let host = first_line("/proc/sys/kernel/hostname")
        .or_else(|| ["COMPUTERNAME", "HOSTNAME"].iter().find_map(|name| std::env::var(name).ok()))
        .unwrap_or_else(|| "unknown".to_owned());
    let cpu_info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu_info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim())
    });
    format!("{host}, {}", model.unwrap_or(std::env::consts::ARCH))
}

/// Returns the current day (UTC), such as `2026-11-20`.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(since.as_secs() / 86_400)
}

/// Returns the date `days` days after 1 January 1970, in the Gregorian calendar.
fn date(mut days: u64) -> String {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for len_days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < len_days {
            break;
        }
        days -= len_days;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::corpora::{CorpusTask, CorpusTimes};
    use super::super::device::HostMemory;
    use super::*;
    use tadoc::analytics::SegmentShape;
    use tadoc::segment::Segment;

    /// A device with made-up rates.
    struct Fake;

    impl DeviceProbe for Fake {
        fn name(&self) -> String {
            "fake".to_owned()
        }
        fn startup_s(&self) -> f64 {
            0.25
        }
        fn h2d_gb_per_s(&mut self, _: &Block<Vec<u8>>, from: HostMemory) -> Result<Option<f64>> {
            Ok(Some(if from == HostMemory::Pinned { 55.123_456 } else { 10.0 }))
        }
        fn d2h_gb_per_s(&mut self, _: &Block<Vec<u8>>, to: HostMemory) -> Result<Option<f64>> {
            Ok((to == HostMemory::Pageable).then_some(9.0))
        }
        fn decode_gb_per_s(&mut self, block: &Block<Vec<u8>>) -> Result<f64> {
            Ok(if block.width() == CodeWidth::Eight { 2000.0 } else { 2500.0 })
        }
        fn matching_gb_per_s(&mut self, _: &Block<Vec<u8>>) -> Result<Option<f64>> {
            Ok(None)
        }
        fn memory_gb_per_s(&mut self, _: &Block<Vec<u8>>) -> Result<f64> {
            Ok(100.0)
        }
        fn launch_s(&mut self, tiny: &Block<Vec<u8>>) -> Result<f64> {
            assert!((500..2000).contains(&tiny.text_len_bytes()));
            Ok(6e-6)
        }
        fn corpus_times(
            &mut self,
            segment: &Arc<Segment>,
            task: CorpusTask,
        ) -> Result<Option<CorpusTimes>> {
            let shape = SegmentShape::from(segment.as_ref());
            let unit_s = if task == CorpusTask::Terms { 4e-9 } else { 2e-9 };
            let num_rows = shape.num_words as usize / 2;
            let copy_s = 1e-5 + 5e-9 * num_rows as f64;
            let again_s = 1e-3 + copy_s + unit_s * task.num_units(shape) as f64;
            let first_s = again_s + 3e-9 * shape.num_elements as f64;
            Ok(Some(CorpusTimes { first_s, again_s, copy_s, num_rows }))
        }
    }

    #[test]
    fn a_machine_is_measured_and_survives_its_file() {
        let mut steps = Vec::new();
        let calibration = measure(None, Some(&mut Fake), |step| steps.push(step)).unwrap();
        let cores = [Step::CoresEight, Step::CoresTwelve, Step::CoresCorpus];
        assert_eq!(steps, [&cores[..], &[Step::Device]].concat());
        assert!(calibration.is_of_this_machine());
        for width in [CodeWidth::Eight, CodeWidth::Twelve] {
            let rates = calibration.width(width);
            assert!(rates.ratio > 2.0, "{rates:?}");
            let CpuRates { check, staging, decode, matching, encode } = rates.cpu;
            for rate in [check, staging, decode, matching, encode] {
                assert!(rate.per_core_gb_per_s > 0.0 && rate.all_cores_gb_per_s > 0.0, "{rates:?}");
            }
        }
        let device = calibration.device.clone().unwrap();
        assert_eq!(device.h2d_pinned_gb_per_s, Some(55.12));
        assert_eq!((device.d2h_pinned_gb_per_s, device.matching_gb_per_s), (None, None));
        assert!(device.memory_gb_per_s > 2500.0, "no less than decoding moves");
        let rates = calibration.corpus_rates();
        for task in CorpusTask::MEASURED {
            let (of_task, is_slow) = (rates.for_task(task), task == CorpusTask::Terms);
            let is_right = if is_slow { 3.9e-9..4.1e-9 } else { 1.9e-9..2.1e-9 };
            assert!(is_right.contains(&of_task.unit_s), "{task:?}: {rates:?}");
            assert!(of_task.for_cores(1) > 0.0);
        }
        assert!((2.9e-9..3.1e-9).contains(&rates.prepare_s), "{rates:?}");
        assert!((4.9e-9..5.1e-9).contains(&rates.row_s), "{rates:?}");
        assert!(rates.task_s > 1e-3 && rates.startup_s == 0.25);
        let read = Calibration::from_text("test", &calibration.to_text().unwrap()).unwrap();
        assert_eq!(read, calibration);
    }

    #[test]
    fn days_have_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(20_777), "2026-11-20");
        assert_eq!(date(20_818), "2026-12-31");
        assert_eq!(date(20_819), "2027-01-01");
        assert_eq!(today().len(), 10);
    }

    #[test]
    fn four_digits_are_kept() {
        assert_eq!(rounded(55.123_456), 55.12);
        assert_eq!(rounded(0.000_006_123_4), 0.000_006_123);
        assert_eq!(rounded(2390.4), 2390.0);
        assert_eq!(rounded(0.0), 0.0);
    }
}
