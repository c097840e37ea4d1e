//! Measurement of the rate at which files are read from beginning to end.
//!
//! Linux says if the bytes came from storage or from the page cache: `read_bytes` of
//! `/proc/thread-self/io` counts the bytes that a thread made the storage layer fetch. Other
//! systems do not say it. All cores read, each into its own buffer that it uses again, as scans do.
//! Each read has 4 MiB. The measurement ends after one gibibyte or one second.
//!
//! One thread reads 6 to 8 GB/s from the page cache. A scan on 16 cores got two to four times as
//! much, so predictions from one thread were too low. The page cache is not emptied first, because
//! that needs privileges.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
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
    let (next, start) = (AtomicUsize::new(0), Instant::now());
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
    let (mut tasks, mut left) = (Vec::new(), MAX_BYTES);
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
}
