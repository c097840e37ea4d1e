//! Measurements of this machine: the rate at which files are read from beginning to end, and of the device its name,
//! the rates of its link, and the time of opening it.
//!
//! Linux says if the bytes of a file came from storage or from the page cache: `read_bytes` of `/proc/thread-self/io`
//! counts the bytes that a thread made the storage layer fetch. Other systems do not say it. All cores read, each into
//! its own buffer that it uses again, as scans do. Each read has 4 MiB. The measurement ends after one gibibyte or one
//! second.
//!
//! One thread reads 6 to 8 GB/s from the page cache. A scan on 16 cores got two to four times as much, so predictions
//! from one thread were too low. The page cache is not emptied first, because that needs privileges.
//!
//! The copy to pinned host memory has no call of its own. It limits the throughput of blocks of ratio 8 that are
//! decoded run after run, so their rate is used. The copy from pinned host memory is assumed to be as fast, because
//! links have the same speed in both directions. The time of a run less that of its upload is a wrong measure: an
//! upload allocates device memory again (59 and 78 GB/s on a bus of 55).

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::throughput::model::DeviceRates;
use tadoc::error::{Error, Result};

const BUFFER_BYTES: u64 = 4 << 20;
const MAX_BYTES: u64 = 1 << 30;
const MAX_TIME: Duration = Duration::from_secs(1);
/// Least number of bytes; with fewer, the time of opening files counts more than that of reading.
const MIN_BYTES: u64 = 1 << 20;

/// A rate of reading.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageRate {
    /// Rate in GB per second.
    pub gb_per_s: f64,
    /// Source of the bytes.
    pub source: StorageSource,
}

impl Default for StorageRate {
    /// Returns the built-in rate of a slow SSD.
    fn default() -> Self {
        Self { gb_per_s: 0.5, source: StorageSource::BuiltIn }
    }
}

/// A source of bytes that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StorageSource {
    /// At least 90 % of the bytes came from storage.
    Storage,
    /// At least 90 % of the bytes came from memory.
    PageCache,
    /// The bytes came from both.
    Both,
    /// The system does not say.
    Unknown,
    /// The rate is built in and was not measured.
    BuiltIn,
}

impl StorageSource {
    fn from_bytes(read_bytes: u64, fetched_bytes: Option<u64>) -> Self {
        match fetched_bytes {
            None => Self::Unknown,
            Some(fetched) if fetched >= read_bytes - read_bytes / 10 => Self::Storage,
            Some(fetched) if fetched <= read_bytes / 10 => Self::PageCache,
            Some(_) => Self::Both,
        }
    }
}

/// Measures the rate of reading the file at `path`, or the files of the folder at `path`.
///
/// The files of a folder are read in the order of their names. Folders inside it are skipped.
///
/// # Errors
///
/// [`Error::Io`]; [`Error::InvalidArgument`] if there is less than 1 MiB to read.
pub fn measure_storage(path: &Path) -> Result<StorageRate> {
    let tasks = tasks(files(path)?)?;
    let len_bytes: u64 = tasks.iter().map(|task| task.len_bytes).sum();
    if len_bytes < MIN_BYTES {
        return Err(Error::InvalidArgument {
            name: "path of the storage",
            got: format!("{} with {len_bytes} bytes", path.display()),
            allowed: format!("a file, or a folder with files, of {MIN_BYTES} bytes or more"),
        });
    }
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    let num_readers = thread::available_parallelism().map_or(1, usize::from);
    let done = thread::scope(|scope| {
        let read = |_| scope.spawn(|| read_tasks(&tasks, &next, start));
        let readers: Vec<_> = (0..num_readers).map(read).collect();
        readers.into_iter().filter_map(|reader| reader.join().ok()).collect::<Result<Vec<_>>>()
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let read_bytes: u64 = done.iter().map(|done| done.read_bytes).sum();
    let fetched_bytes = done.iter().map(|done| done.fetched_bytes).sum();
    let source = StorageSource::from_bytes(read_bytes, fetched_bytes);
    Ok(StorageRate { gb_per_s: read_bytes as f64 / seconds / 1e9, source })
}

/// A range of a file that one reader reads at once.
struct ReadTask {
    file: PathBuf,
    offset: u64,
    len_bytes: u64,
}

/// Result of one reader.
struct Done {
    read_bytes: u64,
    /// Bytes that the storage layer fetched; `None` if the system does not say.
    fetched_bytes: Option<u64>,
}

/// Cuts the first [`MAX_BYTES`] of `files` into read tasks.
fn tasks(files: Vec<PathBuf>) -> Result<Vec<ReadTask>> {
    let mut tasks = Vec::new();
    let mut left = MAX_BYTES;
    for file in files {
        let failed = |error| Error::io(format!("reading {}", file.display()), error);
        let end = fs::metadata(&file).map_err(failed)?.len().min(left);
        left -= end;
        let cut =
            |start: u64| ReadTask { file: file.clone(), offset: start, len_bytes: (end - start).min(BUFFER_BYTES) };
        tasks.extend((0..end).step_by(BUFFER_BYTES as usize).map(cut));
    }
    Ok(tasks)
}

fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| Error::io(format!("listing {}", path.display()), error);
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.is_file() {
            files.push(file);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Takes and runs read tasks until none is left or the time is up.
fn read_tasks(tasks: &[ReadTask], next: &AtomicUsize, start: Instant) -> Result<Done> {
    let mut buffer = vec![0; BUFFER_BYTES as usize];
    let fetched_before = fetched_bytes();
    let mut read_bytes = 0;
    while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
        if start.elapsed() >= MAX_TIME {
            break;
        }
        let failed = |error| Error::io(format!("reading {}", task.file.display()), error);
        let mut file = File::open(&task.file).map_err(failed)?;
        file.seek(SeekFrom::Start(task.offset)).map_err(failed)?;
        let buffer = &mut buffer[..task.len_bytes as usize];
        file.read_exact(buffer).map_err(failed)?;
        read_bytes += task.len_bytes;
    }
    let fetched = fetched_before.zip(fetched_bytes());
    let fetched_bytes = fetched.map(|(before, after)| after.saturating_sub(before));
    Ok(Done { read_bytes, fetched_bytes })
}

/// Returns the bytes that this thread has made the storage layer fetch so far.
///
/// Returns `None` if the system does not say.
fn fetched_bytes() -> Option<u64> {
    let counters = fs::read_to_string("/proc/thread-self/io").ok()?;
    let line = counters.lines().find_map(|line| line.strip_prefix("read_bytes:"))?;
    line.trim().parse().ok()
}

/// A device, with the rates of its link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceCalibration {
    /// Name of the device.
    pub name: String,
    /// Rate of copying from pinned host memory to the device; `None` if not measured.
    pub h2d_pinned_gb_per_s: Option<f64>,
    /// Rate of copying from the device to pinned host memory; `None` if not measured.
    pub d2h_pinned_gb_per_s: Option<f64>,
    /// Seconds to open the device and to load a kernel; `None` if not measured.
    pub startup_s: Option<f64>,
}

impl DeviceCalibration {
    /// Creates the device that the driver calls `name`, of which nothing was measured.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Returns the built-in rates of the device, with those of the link that were measured.
    pub(super) fn rates(&self) -> DeviceRates {
        let built_in = DeviceRates::for_device(&self.name);
        DeviceRates {
            h2d_gb_per_s: self.h2d_pinned_gb_per_s.unwrap_or(built_in.h2d_gb_per_s),
            d2h_gb_per_s: self.d2h_pinned_gb_per_s.unwrap_or(built_in.d2h_gb_per_s),
            startup_s: self.startup_s.unwrap_or(built_in.startup_s),
            ..built_in
        }
    }
}

/// Returns the name of the first device of this machine, before the driver is started. `None` if
/// the system does not say it; Linux does.
pub(crate) fn installed_device() -> Option<String> {
    first_device(Path::new("/proc/driver/nvidia/gpus"))
}

/// Returns the name of the first device that has a folder in `gpus`, the folder of the driver.
fn first_device(gpus: &Path) -> Option<String> {
    let mut folders: Vec<_> = fs::read_dir(gpus).ok()?.flatten().map(|entry| entry.path()).collect();
    folders.sort_unstable();
    let text = fs::read_to_string(folders.first()?.join("information")).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("Model:"))?.trim();
    Some(name.to_owned())
}

/// Opens the first device and measures its link.
///
/// # Errors
///
/// The reason why no device was measured.
pub fn measure_device() -> Result<DeviceCalibration, String> {
    #[cfg(feature = "cuda")]
    return probe::measure().map_err(|error| error.to_string());
    #[cfg(not(feature = "cuda"))]
    return Err("built without the feature cuda".to_owned());
}

#[cfg(feature = "cuda")]
mod probe {
    use std::collections::VecDeque;
    use std::error::Error;
    use std::time::{Duration, Instant};

    use gsst::{Block, BlockOptions, CodeWidth, SealedBlock, write_block};
    use tadoc_cuda::{Device, GpuError, GsstScanner, PendingRows, RowForm, ScanOptions};

    use super::DeviceCalibration;
    use crate::throughput::calibration::rounded;

    /// Row whose codes have an eighth of its bytes.
    const FLAT_ROW: [u8; 256] = [b'='; 256];
    const TEXT_BYTES: usize = 4 << 20;
    /// Largest number of copies of the block in a run: 64 MiB of text, as in runs of a scan.
    const MAX_COPIES: u64 = 16;
    const NUM_RUNS: usize = 12;
    /// Number of pending runs while another one is submitted. Scanners have three slots.
    const NUM_PENDING: usize = 2;
    const NUM_TRIES: usize = 5;

    pub(super) fn measure() -> Result<DeviceCalibration, Box<dyn Error>> {
        let start = Instant::now();
        let device = Device::open(0)?;
        let scanner = GsstScanner::new(&device, ScanOptions::default())?;
        scanner.load(CodeWidth::Eight)?;
        let startup_s = Some(rounded(start.elapsed().as_secs_f64()));
        let rows = vec![Some(&FLAT_ROW[..]); TEXT_BYTES / FLAT_ROW.len()];
        let block = Block::open(write_block(&rows, &BlockOptions::new(CodeWidth::Eight))?)?;
        // The run and its text take at most a quarter of the free memory.
        let block_bytes = (block.as_bytes().len() + block.text_len_bytes()) as u64;
        let num_copies = (device.free_bytes()? / 4 / block_bytes).clamp(1, MAX_COPIES);
        let run: Vec<_> = (0..num_copies).map(|_| SealedBlock::from_valid(&block)).collect();
        let link_gb_per_s = Some(rounded(link_gb_per_s(&scanner, &run)?));
        Ok(DeviceCalibration {
            name: device.name().to_owned(),
            h2d_pinned_gb_per_s: link_gb_per_s,
            d2h_pinned_gb_per_s: link_gb_per_s,
            startup_s,
        })
    }

    /// Returns the rate of rows that come back, of the fastest of a few tries.
    fn link_gb_per_s(scanner: &GsstScanner, run: &[SealedBlock<&[u8]>]) -> Result<f64, GpuError> {
        let mut fastest = Duration::MAX;
        let mut len_bytes = 0;
        for _ in 0..NUM_TRIES {
            let start = Instant::now();
            len_bytes = pipelined(scanner, run)?;
            fastest = fastest.min(start.elapsed());
        }
        Ok(len_bytes as f64 / fastest.as_secs_f64().max(1e-9) / 1e9)
    }

    /// Decodes a run [`NUM_RUNS`] times, with [`NUM_PENDING`] runs pending while the next one is
    /// submitted. Returns the number of bytes that came back.
    fn pipelined(scanner: &GsstScanner, run: &[SealedBlock<&[u8]>]) -> Result<usize, GpuError> {
        let mut pending = VecDeque::new();
        let mut len_bytes = 0;
        for _ in 0..NUM_RUNS {
            pending.push_back(scanner.submit(run, RowForm::Offsets, false)?);
            if pending.len() > NUM_PENDING
                && let Some(first) = pending.pop_front()
            {
                len_bytes += PendingRows::wait(first)?.buffer().len();
            }
        }
        for last in pending {
            len_bytes += last.wait()?.buffer().len();
        }
        Ok(len_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_just_written_is_read_from_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zeros");
        fs::write(&path, vec![0; 3 << 20]).unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        for path in [&path, folder.path()] {
            let rate = measure_storage(path).unwrap();
            assert!(rate.gb_per_s > 0.0);
            assert!(!matches!(rate.source, StorageSource::Storage | StorageSource::BuiltIn), "{rate:?}");
        }
    }

    #[test]
    fn too_little_and_nothing_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("small"), b"abc").unwrap();
        let error = measure_storage(folder.path()).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
        assert!(error.to_string().contains("with 3 bytes"), "{error}");
        let error = measure_storage(&folder.path().join("missing")).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
    }

    #[test]
    fn sources_follow_what_was_fetched() {
        let of = |fetched| StorageSource::from_bytes(1000, fetched);
        assert_eq!(of(None), StorageSource::Unknown);
        assert_eq!(of(Some(0)), StorageSource::PageCache);
        assert_eq!(of(Some(500)), StorageSource::Both);
        assert_eq!(of(Some(900)), StorageSource::Storage);
        // Read-ahead fetches more than was read.
        assert_eq!(of(Some(2000)), StorageSource::Storage);
    }

    #[test]
    fn linux_names_the_device_before_the_driver_is_started() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(first_device(&dir.path().join("none")), None);
        assert_eq!(first_device(dir.path()), None);
        let gpu = dir.path().join("0000:01:00.0");
        fs::create_dir(&gpu).unwrap();
        assert_eq!(first_device(dir.path()), None);
        let text = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 92\nGPU UUID: \t GPU-0\n";
        fs::write(gpu.join("information"), text).unwrap();
        assert_eq!(first_device(dir.path()).as_deref(), Some("NVIDIA H200"));
    }
}
