//! Ingestion throughput: pure arithmetic on rates and ratios.
//!
//! ```text
//! stage            bytes it moves                 CPU   device   device, resident
//! storage, or      stored                          x      x
//! page cache       stored / cores                  x      x
//! block checks     text / cores                    x
//! staging          text / cores                           x
//! host to device   stored                                 x
//! device match     text, where there is a filter          x            x
//! device decode    text, or less behind a filter          x            x
//! launches         one for each part                      x            x
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
//! For two stages, link and decoder, these are equation 3.4 of Vonk, "GSST" (TU Delft, 2024), `T =
//! CR Tio Td / (Td + CR Tio)`, and the larger time of equations 3.5 and 3.6 (appendix A). What the
//! thesis leaves out is added here:
//!
//! - a launch costs time for each part, so more parts are not always better;
//! - all stages of a device share its memory. Each byte of text costs `1 / CR` to arrive, `1 / CR`
//!   to be read, 1 to be written, and 1 to leave again: no stage is faster than its own traffic,
//!   and all together no faster than the sum;
//! - the cores do one thing at a time: checks, matching and decoding on them add up, and so does
//!   reading what lies in the page cache, which is a copy;
//! - stored bytes are codes and a sidecar (symbol tables, splits, lengths of rows);
//! - an engine on the CPU needs the text back: all rows, or those a filter lets pass, each with a
//!   view of 16 bytes;
//! - blocks are checked before anything decodes them: by the cores, or, all but checksums, by the
//!   device, for which the cores then copy them to memory the device can reach.
//!
//! GB are 10^9 bytes. Rates of links count stored bytes, rates of decoding, matching, checking and
//! encoding bytes of text. A rate may be infinite, which takes the stage out.
//!
//! Against measurement (one H200, 20 November 2026, `GsstScanner` from one thread, two runs
//! pending, blocks opened by their checksum, views back to the host, rates from the calibration of
//! the same process; staging binds):
//!
//! ```text
//! runs of 45 MB of text     8 bits: predicted   measured    12 bits: predicted   measured
//!  1                              4.0 to 4.3    4.4 to 4.7          3.9 to 4.2    4.7 to 4.9 ms
//! 32, one after the other         128 to 135    137 to 144          123 to 132           164 ms
//! 32, overlapped                    83 to 90      93 to 94            78 to 87    104 to 116 ms
//! ```
//!
//! 12 bits take longer than predicted because each block brings 32 KiB of symbols to the device.
//!
//! Left out: links are taken to carry both directions at full rate, parts to be of one size, and
//! nobody else to use the machine.

use std::fmt;

use tadoc::error::Result;

use super::rates::{above_zero, invalid, significant};

pub use super::equations::{crossing_gb_per_s, overlapped_gb_per_s, serial_gb_per_s};
pub use super::rates::{CoreRate, CpuRates, DeviceRates, Rates};

/// Bytes of a string view, the form in which rows reach the engine.
pub const VIEW_BYTES: f64 = 16.0;

/// Below this part of the rows a device decodes them one by one, above it decodes all: the
/// crossover FastPair measured (2026, B300, URLs). The time is taken to grow linearly up to it.
pub const SPARSE_SELECTIVITY: f64 = 0.2;

const BYTES_PER_GB: f64 = 1e9;

/// What is to be read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Column {
    /// Bytes of text.
    pub text_bytes: u64,
    /// Rows.
    pub num_rows: u64,
    /// Text : codes.
    pub ratio: f64,
    /// Bytes of tables, splits and lengths for each byte of text; 0 where `ratio` counts them.
    pub sidecar_bytes_per_byte: f64,
}

impl Column {
    /// A column of `text_bytes` whose `ratio` is text : all stored bytes.
    pub fn new(text_bytes: u64, num_rows: u64, ratio: f64) -> Self {
        Self { text_bytes, num_rows, ratio, sidecar_bytes_per_byte: 0.0 }
    }

    /// Bytes as stored.
    pub fn stored_bytes(&self) -> f64 {
        self.text_bytes as f64 * (1.0 / self.ratio + self.sidecar_bytes_per_byte)
    }
}

/// What is wanted of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Query {
    /// The part of the rows a filter lets pass, 0 to 1; `None`: no filter, all rows.
    pub selectivity: Option<f64>,
    /// Whether the engine that goes on with the rows is on the host.
    pub is_wanted_on_host: bool,
    /// Whether the stored bytes are in host memory already.
    pub is_in_host_memory: bool,
    /// Cores it may use.
    pub num_cores: usize,
}

/// Who decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The cores.
    Cpu,
    /// The device; stored bytes come through the host.
    Gpu,
    /// The device; stored bytes are in its memory already.
    GpuResident,
}

/// In which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// A stage begins when the one before it has ended.
    Serial,
    /// Parts follow one another through the stages.
    Overlapped {
        /// Parts of equal size, at least one.
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

/// What can bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Reading stored bytes.
    Storage,
    /// Reading stored bytes that lie in the page cache.
    PageCache,
    /// Checking blocks on the cores, to decode them there.
    BlockChecks,
    /// Checking checksums and copying blocks to where the device takes them from.
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
    /// Memory of the device, which all its stages share.
    DeviceMemory,
    /// Matching on the cores.
    CpuMatch,
    /// Decoding on the cores.
    CpuDecode,
}

impl Stage {
    /// Whether the cores do it: such stages take turns, others run side by side.
    pub fn is_on_cores(self) -> bool {
        matches!(
            self,
            Self::PageCache | Self::BlockChecks | Self::Staging | Self::CpuMatch | Self::CpuDecode
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
        })
    }
}

/// How long a stage works, over all parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageTime {
    /// Which.
    pub stage: Stage,
    /// Seconds.
    pub seconds: f64,
}

/// What the model says.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// From the first byte read to the last byte where it is wanted, in seconds.
    pub seconds: f64,
    /// Bytes of text of the column, wanted or not, in that time; 0 where it has none.
    pub rate_gb_per_s: f64,
    /// The stage that works longest; where stages overlap, on whatever is busy longest.
    pub binding: Stage,
    /// All stages, in the order in which bytes meet them; then the device's memory.
    pub stages: Vec<StageTime>,
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} GB/s, bound by {}", significant(self.rate_gb_per_s), self.binding)
    }
}

/// How long `query` on `column` takes at `place`.
///
/// ```
/// use datafusion_tadoc::throughput::{Calibration, Column, Place, Plan, Query, predict};
/// use gsst::CodeWidth;
///
/// let rates = Calibration::default().rates(CodeWidth::Eight, false);
/// let column = Column::new(1_000_000_000, 40_000_000, 2.84);
/// let query = Query {
///     selectivity: None,
///     is_wanted_on_host: true,
///     is_in_host_memory: true,
///     num_cores: 1,
/// };
/// let prediction = predict(&rates, &column, &query, Place::Cpu, Plan::Serial)?;
/// println!("{prediction}");
/// # Ok::<(), tadoc::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`](tadoc::Error::InvalidArgument) where a rate or ratio is not above 0,
/// a selectivity not in 0 to 1, or `place` is a device and `rates` have none.
pub fn predict(
    rates: &Rates,
    column: &Column,
    query: &Query,
    place: Place,
    plan: Plan,
) -> Result<Prediction> {
    check(rates, column, query)?;
    let mut stages = host_stages(rates, column, query, place);
    let memory = match (place, &rates.device) {
        (Place::Cpu, _) => None,
        (_, Some(device)) => {
            let device_stages = device_stages(device, column, query, place);
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

/// How many parts are best: a part more shortens the way of the first one in and the last one out,
/// and costs a launch. At least 1, at most `max_blocks`.
///
/// # Errors
///
/// Those of [`predict`].
pub fn best_num_blocks(
    rates: &Rates,
    column: &Column,
    query: &Query,
    place: Place,
    max_blocks: u64,
) -> Result<u64> {
    let whole = predict(rates, column, query, place, Plan::Serial)?;
    let launch_s = whole.seconds_of(Stage::Launches);
    let is_work = |time: &&StageTime| !matches!(time.stage, Stage::Launches | Stage::DeviceMemory);
    let work: Vec<StageTime> = whole.stages.iter().filter(is_work).copied().collect();
    let sum_s: f64 = work.iter().map(|time| time.seconds).sum();
    let longest_s = longest_s(&work);
    // With N parts: sum / N + longest (1 - 1 / N) while a part takes longer than a launch, which
    // falls with N; then sum / N + N launches, which is lowest at the root of sum / launch.
    let best = (longest_s / launch_s).max((sum_s / launch_s).sqrt());
    Ok((best as u64).clamp(1, max_blocks.max(1)))
}

impl Prediction {
    /// How long `stage` works; 0 where bytes do not meet it.
    pub fn seconds_of(&self, stage: Stage) -> f64 {
        self.stages.iter().filter(|time| time.stage == stage).map(|time| time.seconds).sum()
    }
}

/// Adds up what the stages take.
fn total(
    mut stages: Vec<StageTime>,
    memory_s: Option<f64>,
    column: &Column,
    plan: Plan,
) -> Prediction {
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
    Prediction {
        seconds,
        rate_gb_per_s: if column.text_bytes == 0 { 0.0 } else { text_gb / seconds },
        binding,
        stages,
    }
}

/// How long the busiest part of the machine works: a link, the device, or the cores, which all
/// stages of the host share.
fn longest_s(stages: &[StageTime]) -> f64 {
    stages.iter().map(|time| shared_s(time, stages)).fold(0.0, f64::max)
}

/// How long what `time` runs on works.
fn shared_s(time: &StageTime, stages: &[StageTime]) -> f64 {
    if !time.stage.is_on_cores() {
        return time.seconds;
    }
    stages.iter().filter(|time| time.stage.is_on_cores()).map(|time| time.seconds).sum()
}

/// The longest stage of the busiest part of the machine.
fn binding(stages: &[StageTime], is_overlapped: bool) -> Stage {
    // One after the other, the memory's time lies within that of the others.
    let can_bind = |time: &&StageTime| is_overlapped || time.stage != Stage::DeviceMemory;
    let key = |time: &StageTime| {
        // One after the other, nothing is shared.
        let busy_s = if is_overlapped { shared_s(time, stages) } else { time.seconds };
        (busy_s, time.seconds)
    };
    let longest = stages.iter().filter(can_bind).max_by(|a, b| {
        let ((busy_a, own_a), (busy_b, own_b)) = (key(a), key(b));
        busy_a.total_cmp(&busy_b).then(own_a.total_cmp(&own_b))
    });
    longest.map_or(Stage::Storage, |time| time.stage)
}

/// The stages before the device, or all of the CPU's.
fn host_stages(rates: &Rates, column: &Column, query: &Query, place: Place) -> Vec<StageTime> {
    let mut stages = Vec::with_capacity(8);
    let mut push = |stage, bytes, rate_gb_per_s| {
        stages.push(StageTime { stage, seconds: seconds_for(bytes, rate_gb_per_s) });
    };
    let text_bytes = column.text_bytes as f64;
    if place != Place::GpuResident {
        if !query.is_in_host_memory {
            let stage = if rates.is_storage_cached { Stage::PageCache } else { Stage::Storage };
            push(stage, column.stored_bytes(), rates.storage_gb_per_s);
        }
        let (stage, rate) = match place {
            Place::Cpu => (Stage::BlockChecks, rates.cpu.check),
            _ => (Stage::Staging, rates.cpu.staging),
        };
        push(stage, text_bytes, rate.of(query.num_cores));
    }
    if place == Place::Cpu {
        if query.selectivity.is_some() {
            push(Stage::CpuMatch, text_bytes, rates.cpu.matching.of(query.num_cores));
        }
        let wanted_bytes = text_bytes * query.selectivity.unwrap_or(1.0);
        push(Stage::CpuDecode, wanted_bytes, rates.cpu.decode.of(query.num_cores));
    }
    stages
}

/// A stage of the device, and the bytes it moves through the device's memory.
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

fn device_stages(
    device: &DeviceRates,
    column: &Column,
    query: &Query,
    place: Place,
) -> Vec<DeviceStage> {
    let (text_bytes, stored_bytes) = (column.text_bytes as f64, column.stored_bytes());
    let mut stages = Vec::with_capacity(4);
    let mut push = |stage, bytes, rate_gb_per_s, traffic_bytes| {
        stages.push(DeviceStage { stage, bytes, rate_gb_per_s, traffic_bytes });
    };
    if place == Place::Gpu {
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
    // It may be 0.
    above_zero("sidecar_bytes_per_byte", 1.0 + column.sidecar_bytes_per_byte)?;
    match query.selectivity {
        Some(part) if !(0.0..=1.0).contains(&part) => Err(invalid("selectivity", part, "0 to 1")),
        _ => Ok(()),
    }
}
