//! How fast a path is read from its beginning to its end.
//!
//! Whether the bytes came from storage or from the page cache is asked of Linux (`read_bytes` of
//! `/proc/thread-self/io`: what a thread made the storage layer fetch); other systems do not say. All
//! cores read, each into memory of its own that it uses again, as scans do: 4 MiB at a time, one
//! gigabyte or one second at most. (One thread has 6 to 8 GB/s from the page cache; a scan on 16 cores
//! got two to four times as much, and the model was too low by that.) Left out: emptying the page
//! cache, which needs rights.

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
/// Fewer say more about opening files than about reading.
const MIN_BYTES: u64 = 1 << 20;

/// A rate of reading.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageRate {
    /// GB per second.
    pub gb_per_s: f64,
    /// Where the bytes came from.
    pub source: StorageSource,
}

/// Where bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StorageSource {
    /// At least nine tenths from storage.
    Storage,
    /// At least nine tenths from memory.
    PageCache,
    /// From both.
    Both,
    /// The system does not say.
    Unknown,
    /// Not measured.
    BuiltIn,
}

impl StorageSource {
    fn of(read_bytes: u64, fetched_bytes: Option<u64>) -> Self {
        match fetched_bytes {
            None => Self::Unknown,
            Some(fetched) if fetched >= read_bytes - read_bytes / 10 => Self::Storage,
            Some(fetched) if fetched <= read_bytes / 10 => Self::PageCache,
            Some(_) => Self::Both,
        }
    }
}

/// Reads the file at `path`, or the files of the folder at `path` by name (not those below it).
///
/// # Errors
///
/// [`Error::Io`]; [`Error::InvalidArgument`] where there is less than a mebibyte to read.
pub fn measure_storage(path: &Path) -> Result<StorageRate> {
    let stretches = stretches(files(path)?)?;
    let len_bytes: u64 = stretches.iter().map(|stretch| stretch.len_bytes).sum();
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
        let read = |_| scope.spawn(|| read_stretches(&stretches, &next, start));
        let readers: Vec<_> = (0..num_readers).map(read).collect();
        readers.into_iter().filter_map(|reader| reader.join().ok()).collect::<Result<Vec<_>>>()
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let read_bytes: u64 = done.iter().map(|done| done.read_bytes).sum();
    let fetched_bytes = done.iter().map(|done| done.fetched_bytes).sum();
    let source = StorageSource::of(read_bytes, fetched_bytes);
    Ok(StorageRate { gb_per_s: read_bytes as f64 / seconds / 1e9, source })
}

/// A part of a file that one reader takes at once.
struct Stretch {
    file: PathBuf,
    offset: u64,
    len_bytes: u64,
}

/// What one reader did.
struct Done {
    read_bytes: u64,
    /// What of it the storage layer fetched, where the system says.
    fetched_bytes: Option<u64>,
}

/// The first gigabyte of `files`, cut into stretches.
fn stretches(files: Vec<PathBuf>) -> Result<Vec<Stretch>> {
    let (mut stretches, mut left) = (Vec::new(), MAX_BYTES);
    for file in files {
        let failed = |error| Error::io(format!("reading {}", file.display()), error);
        let end = fs::metadata(&file).map_err(failed)?.len().min(left);
        left -= end;
        let cut = |start: u64| Stretch {
            file: file.clone(),
            offset: start,
            len_bytes: (end - start).min(BUFFER_BYTES),
        };
        stretches.extend((0..end).step_by(BUFFER_BYTES as usize).map(cut));
    }
    Ok(stretches)
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

/// Reads one stretch after the other that nobody else took, until none is left or time is up.
fn read_stretches(stretches: &[Stretch], next: &AtomicUsize, start: Instant) -> Result<Done> {
    let mut buffer = vec![0; BUFFER_BYTES as usize];
    let fetched_before = fetched_bytes();
    let mut read_bytes = 0;
    while let Some(stretch) = stretches.get(next.fetch_add(1, Ordering::Relaxed)) {
        if start.elapsed() >= MAX_TIME {
            break;
        }
        let failed = |error| Error::io(format!("reading {}", stretch.file.display()), error);
        let mut file = File::open(&stretch.file).map_err(failed)?;
        file.seek(SeekFrom::Start(stretch.offset)).map_err(failed)?;
        let buffer = &mut buffer[..stretch.len_bytes as usize];
        file.read_exact(buffer).map_err(failed)?;
        read_bytes += stretch.len_bytes;
    }
    let fetched = fetched_before.zip(fetched_bytes());
    let fetched_bytes = fetched.map(|(before, after)| after.saturating_sub(before));
    Ok(Done { read_bytes, fetched_bytes })
}

/// Bytes this thread made the storage layer fetch so far; `None` where the system does not say.
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
            assert!(
                !matches!(rate.source, StorageSource::Storage | StorageSource::BuiltIn),
                "{rate:?}"
            );
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
        let of = |fetched| StorageSource::of(1000, fetched);
        assert_eq!(of(None), StorageSource::Unknown);
        assert_eq!(of(Some(0)), StorageSource::PageCache);
        assert_eq!(of(Some(500)), StorageSource::Both);
        assert_eq!(of(Some(900)), StorageSource::Storage);
        // Reading ahead fetches more than was read.
        assert_eq!(of(Some(2000)), StorageSource::Storage);
    }
}
