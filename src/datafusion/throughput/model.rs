//! Model of ingestion throughput: arithmetic on rates and ratios.
//!
//! ```text
//! stage            bytes it moves                 CPU   device   device, resident
//! storage, or      stored                          x      x
//! page cache       stored / cores                  x      x
//! block checks     text / cores                    x
//! staging          text / cores                           x
//! host to device   stored                                 x
//! device match     text, if there is a filter             x            x
//! device decode    text, or less behind a filter          x            x
//! launches         none; one launch per part              x            x
//! device to host   rows that are wanted                   x            x     unless they stay
//! CPU match        text / cores, with a filter     x
//! CPU decode       text that is wanted / cores     x
//! ```
//!
//! ```text
//! Plan::Serial       t = t1 + t2 + ..
//! Plan::Overlapped   t = (t1 + t2 + ..) / N + max(t1, t2, ..) (N - 1) / N        N equal parts
//! ```
//!
//! For two stages, link and decoder, these are equation 3.4 of Vonk, "GSST" (TU Delft, 2024),
//! `T = CR Tio Td / (Td + CR Tio)`, and the larger time of equations 3.5 and 3.6 (appendix A). The model adds to the
//! thesis:
//!
//! - Each part costs the time of a launch, so more parts are not always better.
//! - All stages of a device share its memory. Each byte of text costs `1 / CR` to arrive, `1 / CR`
//!   to be read, 1 to be written, and 1 to leave again. No stage is faster than its own traffic
//!   allows, and all stages together are no faster than the sum of the traffic allows.
//! - The cores do one thing at a time. The times of checks, matching and decoding on them add up.
//!   So does the time of reading from the page cache, which is a copy.
//! - Stored bytes are codes and a sidecar (symbol tables, splits, lengths of rows).
//! - An engine on the CPU needs the text back: all rows, or the rows that pass a filter, each with
//!   a view of 16 bytes.
//! - Blocks are checked before they are decoded. The cores check them for decoding on the cores.
//!   For a device, the cores check the checksums and copy the blocks to memory that the device can
//!   reach, and the device checks the rest.
//!
//! A GB is 10^9 bytes. Rates of links count stored bytes. Rates of decoding, matching and checking count bytes of text.
//! An infinite rate removes its stage.
//!
//! Comparison with measurements (one H200, 20 November 2026, `GsstScanner` from one thread, two runs pending, blocks
//! opened by their checksum, views back to the host, rates from the calibration of the same process; staging limits the
//! throughput):
//!
//! ```text
//! runs of 45 MB of text     8 bits: predicted   measured    12 bits: predicted   measured
//!  1                              4.0 to 4.3    4.4 to 4.7          3.9 to 4.2    4.7 to 4.9 ms
//! 32, one after the other         128 to 135    137 to 144          123 to 132           164 ms
//! 32, overlapped                    83 to 90      93 to 94            78 to 87    104 to 116 ms
//! ```
//!
//! Codes of 12 bits take longer than predicted, because each block brings 32 KiB of symbols to the device.
//!
//! Simplifications: links carry both directions at full rate, all parts have the same size, and nobody else uses the
//! machine.

use std::fmt;

use super::rates::{above_zero, invalid, significant};
use tadoc::error::Result;

pub use super::rates::{CpuRates, DeviceRates, Rates, built_in_ratio};

/// Bytes of a string view, which is the form of rows for the engine.
pub const VIEW_BYTES: f64 = 16.0;

/// Part of the rows above which a device decodes all rows; below it decodes them one by one.
///
/// FastPair measured this crossover (2026, B300, URLs). Below it, the model lets the time grow
/// linearly.
pub const SPARSE_SELECTIVITY: f64 = 0.2;

/// Rows that a core compares in a second, if few of them differ: the highest rate that was measured
/// (benches/results/2026-12-01-h200.md). Many different rows take longer. The time of a device, a hundredth of this, is
/// left out.
const COMPARED_ROWS_PER_S: f64 = 1e8;

const BYTES_PER_GB: f64 = 1e9;

/// A column that is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Column {
    /// Number of bytes of text.
    pub text_bytes: u64,
    /// Number of rows.
    pub num_rows: u64,
    /// Bytes of text divided by bytes of codes.
    pub ratio: f64,
    /// Bytes of tables, splits and lengths for each byte of text; 0 if `ratio` includes them.
    pub sidecar_bytes_per_byte: f64,
}

impl Column {
    /// Creates a column of `text_bytes` whose `ratio` is text divided by all stored bytes.
    pub fn new(text_bytes: u64, num_rows: u64, ratio: f64) -> Self {
        Self { text_bytes, num_rows, ratio, sidecar_bytes_per_byte: 0.0 }
    }

    /// Returns the number of stored bytes.
    pub fn stored_bytes(&self) -> f64 {
        self.text_bytes as f64 * (1.0 / self.ratio + self.sidecar_bytes_per_byte)
    }
}

/// A query on a column, as far as the model needs it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Query {
    /// Part of the rows that pass the filter, 0 to 1; `None` without a filter.
    pub selectivity: Option<f64>,
    /// True if the engine that reads the rows next is on the host.
    pub is_wanted_on_host: bool,
    /// True if rows that pass are compared with each other where they are decoded, as for groups.
    pub are_rows_compared: bool,
    /// True if the stored bytes are in host memory already.
    pub is_in_host_memory: bool,
    /// Number of cores that the query may use.
    pub num_cores: usize,
}

/// A route of stored bytes to the cores or the device that decodes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// To the cores.
    Cpu,
    /// To the device, through the host.
    Gpu,
    /// To the device, whose memory has the stored bytes already.
    GpuResident,
}

/// An order of the stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Each stage begins after the previous one has ended.
    Serial,
    /// Parts follow one another through the stages.
    Overlapped {
        /// Number of parts of equal size, at least one.
        num_blocks: u64,
    },
}

impl Plan {
    fn num_parts(self) -> u64 {
        match self {
            Self::Serial => 1,
            Self::Overlapped { num_blocks } => num_blocks.max(1),
        }
    }
}

/// A stage that can limit the throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Reading stored bytes.
    Storage,
    /// Reading stored bytes that lie in the page cache.
    PageCache,
    /// Checking blocks on the cores, for decoding on the cores.
    BlockChecks,
    /// Checking checksums and copying blocks to memory that the device reads.
    Staging,
    /// Copying stored bytes to the device.
    HostToDevice,
    /// Matching on the device.
    DeviceMatch,
    /// Decoding on the device.
    DeviceDecode,
    /// Starting kernels.
    Launches,
    /// Copying rows back.
    DeviceToHost,
    /// Using the memory of the device, which all its stages share.
    DeviceMemory,
    /// Matching on the cores.
    CpuMatch,
    /// Decoding on the cores.
    CpuDecode,
    /// Comparing decoded rows on the cores.
    CpuCompare,
}

impl Stage {
    /// Returns true if the cores do the work.
    ///
    /// Stages on the cores take turns. Other stages run side by side.
    pub fn is_on_cores(self) -> bool {
        matches!(
            self,
            Self::PageCache | Self::BlockChecks | Self::Staging | Self::CpuMatch | Self::CpuDecode | Self::CpuCompare
        )
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Storage => "storage",
            Self::PageCache => "page cache",
            Self::BlockChecks => "block checks",
            Self::Staging => "staging",
            Self::HostToDevice => "host to device",
            Self::DeviceMatch => "device match",
            Self::DeviceDecode => "device decode",
            Self::Launches => "launches",
            Self::DeviceToHost => "device to host",
            Self::DeviceMemory => "device memory",
            Self::CpuMatch => "CPU match",
            Self::CpuDecode => "CPU decode",
            Self::CpuCompare => "CPU compare",
        })
    }
}

/// Time of a stage, over all parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageTime {
    /// The stage.
    pub stage: Stage,
    /// Time of the stage, in seconds.
    pub seconds: f64,
}

/// A prediction of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Seconds from the first byte that is read to the last byte that reaches its destination.
    pub seconds: f64,
    /// Throughput in GB of text per second, over all rows of the column; 0 if it has no text.
    pub rate_gb_per_s: f64,
    /// Stage that limits the throughput. This is the longest stage, or with overlapped stages, the
    /// longest stage of the busiest resource.
    pub binding: Stage,
    /// All stages, in the order in which bytes pass them, then the memory of the device.
    pub stages: Vec<StageTime>,
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} GB/s, bound by {}", significant(self.rate_gb_per_s), self.binding)
    }
}

/// Predicts the time of `query` on `column` by `route`.
///
/// ```
/// use datafusion_tadoc::throughput::{Calibration, Column, Route, Plan, Query, predict};
/// use gsst::CodeWidth;
///
/// let rates = Calibration::default().rates(CodeWidth::Eight, false);
/// let column = Column::new(1_000_000_000, 40_000_000, 2.84);
/// let query = Query {
///     selectivity: None,
///     is_wanted_on_host: true,
///     are_rows_compared: false,
///     is_in_host_memory: true,
///     num_cores: 1,
/// };
/// let prediction = predict(&rates, &column, &query, Route::Cpu, Plan::Serial)?;
/// println!("{prediction}");
/// # Ok::<(), tadoc::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`](tadoc::Error::InvalidArgument) if a rate or ratio is not above 0, if
/// a selectivity is not in 0 to 1, or if `route` leads to a device and `rates` has none.
pub fn predict(rates: &Rates, column: &Column, query: &Query, route: Route, plan: Plan) -> Result<Prediction> {
    check(rates, column, query)?;
    let mut stages = host_stages(rates, column, query, route);
    let memory = match (route, &rates.device) {
        (Route::Cpu, _) => None,
        (_, Some(device)) => {
            let device_stages = device_stages(device, column, query, route);
            let traffic_bytes: f64 = device_stages.iter().map(|stage| stage.traffic_bytes).sum();
            stages.extend(device_stages.iter().map(|stage| stage.time(device)));
            let launches = plan.num_parts() as f64 * num_kernels(query);
            let seconds = launches * device.launch_s;
            stages.push(StageTime { stage: Stage::Launches, seconds });
            Some(seconds_for(traffic_bytes, device.memory_gb_per_s))
        }
        (_, None) => return Err(invalid("place", "a device", "the CPU, there is no device")),
    };
    Ok(total(stages, memory, column, plan))
}

/// Returns the best number of parts, from 1 to `max_blocks`.
///
/// More parts shorten the time in which stages wait for the first and the last part. Each part
/// costs a launch.
///
/// # Errors
///
/// Errors of [`predict`].
pub fn best_num_blocks(rates: &Rates, column: &Column, query: &Query, route: Route, max_blocks: u64) -> Result<u64> {
    let whole = predict(rates, column, query, route, Plan::Serial)?;
    let launch_s = whole.seconds_of(Stage::Launches);
    let is_work = |time: &&StageTime| !matches!(time.stage, Stage::Launches | Stage::DeviceMemory);
    let work: Vec<StageTime> = whole.stages.iter().filter(is_work).copied().collect();
    let sum_s: f64 = work.iter().map(|time| time.seconds).sum();
    let longest_s = longest_s(&work);
    // N parts take sum / N + longest (1 - 1 / N) as long as the longest stage takes longer than the
    // launches, which falls with N. Beyond that they take sum / N + N launches, which is lowest at
    // the root of sum / launch.
    let best = (longest_s / launch_s).max((sum_s / launch_s).sqrt());
    Ok((best as u64).clamp(1, max_blocks.max(1)))
}

impl Prediction {
    /// Returns the seconds of `stage`, or 0 if the prediction has no such stage.
    pub fn seconds_of(&self, stage: Stage) -> f64 {
        self.stages.iter().filter(|time| time.stage == stage).map(|time| time.seconds).sum()
    }
}

/// Adds up the times of the stages.
fn total(mut stages: Vec<StageTime>, memory_s: Option<f64>, column: &Column, plan: Plan) -> Prediction {
    let num_parts = plan.num_parts() as f64;
    let sum_s: f64 = stages.iter().map(|time| time.seconds).sum();
    let longest_s = longest_s(&stages);
    let mut seconds = sum_s / num_parts + longest_s * (num_parts - 1.0) / num_parts;
    if let Some(memory_s) = memory_s {
        seconds = seconds.max(memory_s);
        stages.push(StageTime { stage: Stage::DeviceMemory, seconds: memory_s });
    }
    let binding = binding(&stages, num_parts > 1.0);
    let text_gb = column.text_bytes as f64 / BYTES_PER_GB;
    Prediction { seconds, rate_gb_per_s: if column.text_bytes == 0 { 0.0 } else { text_gb / seconds }, binding, stages }
}

/// Returns the seconds in which the busiest resource works.
///
/// The cores are one resource, which all their stages share. Each other stage is a resource alone.
fn longest_s(stages: &[StageTime]) -> f64 {
    stages.iter().map(|time| shared_s(time, stages)).fold(0.0, f64::max)
}

/// Returns the seconds in which the resource of `time` works.
fn shared_s(time: &StageTime, stages: &[StageTime]) -> f64 {
    if !time.stage.is_on_cores() {
        return time.seconds;
    }
    stages.iter().filter(|time| time.stage.is_on_cores()).map(|time| time.seconds).sum()
}

/// Returns the longest stage of the busiest resource.
fn binding(stages: &[StageTime], is_overlapped: bool) -> Stage {
    // In a serial plan, the times of the other stages include the time of the memory.
    let can_bind = |time: &&StageTime| is_overlapped || time.stage != Stage::DeviceMemory;
    let key = |time: &StageTime| {
        // In a serial plan, stages share nothing.
        let busy_s = if is_overlapped { shared_s(time, stages) } else { time.seconds };
        (busy_s, time.seconds)
    };
    let longest = stages.iter().filter(can_bind).max_by(|a, b| {
        let ((busy_a, own_a), (busy_b, own_b)) = (key(a), key(b));
        busy_a.total_cmp(&busy_b).then(own_a.total_cmp(&own_b))
    });
    longest.map_or(Stage::Storage, |time| time.stage)
}

/// Returns the stages before the device, or all stages of the CPU.
fn host_stages(rates: &Rates, column: &Column, query: &Query, route: Route) -> Vec<StageTime> {
    let mut stages = Vec::with_capacity(8);
    let mut push = |stage, bytes, rate_gb_per_s| {
        stages.push(StageTime { stage, seconds: seconds_for(bytes, rate_gb_per_s) });
    };
    let text_bytes = column.text_bytes as f64;
    let num_cores = query.num_cores.max(1) as f64;
    if route != Route::GpuResident {
        if !query.is_in_host_memory {
            let stage = if rates.is_storage_cached { Stage::PageCache } else { Stage::Storage };
            push(stage, column.stored_bytes(), rates.storage_gb_per_s);
        }
        let (stage, rate) = match route {
            Route::Cpu => (Stage::BlockChecks, rates.cpu.check_gb_per_s),
            _ => (Stage::Staging, rates.cpu.staging_gb_per_s),
        };
        push(stage, text_bytes, num_cores * rate);
    }
    if route == Route::Cpu {
        if query.selectivity.is_some() {
            push(Stage::CpuMatch, text_bytes, num_cores * rates.cpu.matching_gb_per_s);
        }
        let wanted_bytes = text_bytes * query.selectivity.unwrap_or(1.0);
        push(Stage::CpuDecode, wanted_bytes, num_cores * rates.cpu.decode_gb_per_s);
        if query.are_rows_compared {
            let num_rows = column.num_rows as f64 * query.selectivity.unwrap_or(1.0);
            push(Stage::CpuCompare, num_rows, num_cores * COMPARED_ROWS_PER_S / BYTES_PER_GB);
        }
    }
    stages
}

/// A stage of the device, with the bytes that it moves through the memory of the device.
struct DeviceStage {
    stage: Stage,
    bytes: f64,
    rate_gb_per_s: f64,
    traffic_bytes: f64,
}

impl DeviceStage {
    fn time(&self, device: &DeviceRates) -> StageTime {
        let alone_s = seconds_for(self.bytes, self.rate_gb_per_s);
        let traffic_s = seconds_for(self.traffic_bytes, device.memory_gb_per_s);
        StageTime { stage: self.stage, seconds: alone_s.max(traffic_s) }
    }
}

fn device_stages(device: &DeviceRates, column: &Column, query: &Query, route: Route) -> Vec<DeviceStage> {
    let text_bytes = column.text_bytes as f64;
    let stored_bytes = column.stored_bytes();
    let mut stages = Vec::with_capacity(4);
    let mut push = |stage, bytes, rate_gb_per_s, traffic_bytes| {
        stages.push(DeviceStage { stage, bytes, rate_gb_per_s, traffic_bytes });
    };
    if route == Route::Gpu {
        push(Stage::HostToDevice, stored_bytes, device.h2d_gb_per_s, stored_bytes);
    }
    if query.selectivity.is_some() {
        push(Stage::DeviceMatch, text_bytes, device.matching_gb_per_s, stored_bytes);
    }
    let decoded = query.selectivity.map_or(1.0, |part| (part / SPARSE_SELECTIVITY).min(1.0));
    let traffic_bytes = decoded * (stored_bytes + text_bytes);
    push(Stage::DeviceDecode, decoded * text_bytes, device.decode_gb_per_s, traffic_bytes);
    if query.is_wanted_on_host {
        let rows_bytes = text_bytes + VIEW_BYTES * column.num_rows as f64;
        let bytes = query.selectivity.unwrap_or(1.0) * rows_bytes;
        push(Stage::DeviceToHost, bytes, device.d2h_gb_per_s, bytes);
    }
    stages
}

fn num_kernels(query: &Query) -> f64 {
    if query.selectivity.is_some() { 2.0 } else { 1.0 }
}

fn seconds_for(bytes: f64, rate_gb_per_s: f64) -> f64 {
    bytes / (rate_gb_per_s * BYTES_PER_GB)
}

fn check(rates: &Rates, column: &Column, query: &Query) -> Result<()> {
    rates.check()?;
    above_zero("ratio", column.ratio)?;
    // The sidecar may be 0, so 1 is added.
    above_zero("sidecar_bytes_per_byte", 1.0 + column.sidecar_bytes_per_byte)?;
    match query.selectivity {
        Some(part) if !(0.0..=1.0).contains(&part) => Err(invalid("selectivity", part, "0 to 1")),
        _ => Ok(()),
    }
}

/// Returns the text per second if all of it is transferred before it is decoded (equation 3.4).
///
/// ```
/// use datafusion_tadoc::throughput::model::serial_gb_per_s;
///
/// // GSST on an A100 behind a link of 22 GB/s (section 6.3).
/// assert_eq!(serial_gb_per_s(2.74, 22.0, 191.0).floor(), 45.0);
/// ```
pub fn serial_gb_per_s(ratio: f64, link_gb_per_s: f64, decode_gb_per_s: f64) -> f64 {
    (1.0 / (ratio * link_gb_per_s) + 1.0 / decode_gb_per_s).recip()
}

/// Returns the text per second if each block is decoded while the next one is transferred.
///
/// This is the lower of equations 3.5 and 3.6 (appendix A.3).
pub fn overlapped_gb_per_s(ratio: f64, link_gb_per_s: f64, decode_gb_per_s: f64, num_blocks: u64) -> f64 {
    let transfer = 1.0 / (ratio * link_gb_per_s);
    let decode = 1.0 / decode_gb_per_s;
    let num_blocks = num_blocks.max(1) as f64;
    (transfer + decode / num_blocks).max(decode + transfer / num_blocks).recip()
}

/// Returns the link speed at which two codecs, given as (ratio, decode GB/s), are equally fast.
///
/// All text is transferred before it is decoded. Below this speed, the codec with the better ratio
/// is faster. Returns `None` if one codec is faster at every speed.
pub fn crossing_gb_per_s(a: (f64, f64), b: (f64, f64)) -> Option<f64> {
    let link_gb_per_s = (1.0 / a.0 - 1.0 / b.0) / (1.0 / b.1 - 1.0 / a.1);
    (link_gb_per_s > 0.0 && link_gb_per_s.is_finite()).then_some(link_gb_per_s)
}
