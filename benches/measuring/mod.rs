//! Helpers shared by the benchmarks on a device: opening it, building corpora, and timing runs.

#![allow(dead_code, reason = "each bench uses its part")]

use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};
use tadoc::Corpus;
use tadoc::build::CorpusBuilder;
use tadoc::format::OpenLimits;
use tadoc_cuda::{Device, GpuError};

/// Memory limit in bytes that is larger than any benchmark needs.
pub const AMPLE: u64 = 64 << 30;

/// Opens the first device. Without a device it prints a line and returns `None`, unless a device is
/// required.
pub fn open_device() -> Result<Option<Device>, GpuError> {
    match Device::open(0) {
        Err(error) if std::env::var_os("REQUIRE_GPU").is_none() => {
            println!("skipped: {error}");
            Ok(None)
        }
        device => device.map(Some),
    }
}

/// Returns an environment variable or its default.
pub fn variable(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

/// Returns an environment variable as a number, or its default.
pub fn number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// Thread pools of one thread and of all cores.
pub struct Pools {
    pub one: ThreadPool,
    pub all: ThreadPool,
}

impl Pools {
    pub fn new() -> Self {
        let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        Self { one: pool(1), all: pool(0) }
    }
}

/// Builds a corpus of `documents` with `builder` and returns it as a reader opens it.
pub fn built(mut builder: CorpusBuilder<Vec<u8>>, documents: &[Vec<u8>]) -> Corpus {
    for (at, document) in documents.iter().enumerate() {
        builder.push_document(&at.to_string(), document).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    let limits = OpenLimits { max_memory_bytes: AMPLE, ..OpenLimits::default() };
    Corpus::from_bytes("memory", &file, &limits).unwrap().1
}

pub fn seconds_of(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

pub fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_unstable_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Limits for repeated runs on the CPU: a number of runs, and a number of seconds after which no
/// run starts.
#[derive(Clone, Copy)]
pub struct CpuRuns {
    pub max_runs: usize,
    pub max_seconds: f64,
}

impl CpuRuns {
    /// Returns the seconds of the fastest run. The time of `prepare` does not count.
    pub fn least_seconds<T>(self, mut prepare: impl FnMut() -> T, mut run: impl FnMut(T)) -> f64 {
        let mut least = f64::MAX;
        let mut sum = 0.0;
        for _ in 0..self.max_runs {
            let prepared = prepare();
            let seconds = seconds_of(|| run(prepared));
            least = least.min(seconds);
            sum += seconds;
            if sum > self.max_seconds {
                break;
            }
        }
        least
    }
}

/// Runs between two looks at the clock in [`repeat`].
const RUNS_AT_ONCE: u64 = 16;

/// Repeats `run` for `TADOC_SECONDS` seconds, between two lines for a reader of the device's energy counter
/// (`peers/gpu_codecs.py`). A run handles `text_bytes` of text. Without the variable it does nothing.
pub fn repeat(
    device: &Device,
    name: &str,
    text_bytes: u64,
    mut run: impl FnMut() -> Result<(), GpuError>,
) -> Result<(), GpuError> {
    let seconds = number("TADOC_SECONDS", 0);
    if seconds == 0 {
        return Ok(());
    }
    device.synchronize()?;
    println!("repeat begins: {name}");
    let start = Instant::now();
    let mut num_runs = 0;
    while start.elapsed() < Duration::from_secs(seconds as u64) {
        for _ in 0..RUNS_AT_ONCE {
            run()?;
        }
        device.synchronize()?;
        num_runs += RUNS_AT_ONCE;
    }
    println!("repeat ends: {num_runs} runs of {text_bytes} bytes");
    Ok(())
}

/// Returns the median seconds of `num_runs` runs by the device's clock, after one run that does not
/// count.
pub fn device_seconds(
    device: &Device,
    num_runs: usize,
    mut run: impl FnMut() -> Result<(), GpuError>,
) -> Result<f64, GpuError> {
    run()?;
    device.synchronize()?;
    let seconds = |_| Ok(device.time(&mut run)?.as_secs_f64());
    (0..num_runs).map(seconds).collect::<Result<_, GpuError>>().map(median)
}
