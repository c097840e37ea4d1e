//! Byte ranges of a file, fetched to memory before they are read.
//!
//! The crates `parquet` and `gsst` read from any source of byte ranges. Here the source is memory.
//! One asynchronous call of the store fetches the ranges of a row group and joins neighbouring
//! ranges. Blocking code then decodes them and never waits for input.
//!
//! Local files are read into reused memory ([`ReadBuffers`]). A row group has megabytes. For a new
//! buffer the operating system provides its memory page by page, which takes longer than copying the
//! bytes from the page cache: on 16 cores it was two thirds of the time of a scan that a device decodes.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::Result;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::reader::{ChunkReader, Length};
use object_store::path::Path;
use object_store::{GetResultPayload, ObjectStore, ObjectStoreExt};

use crate::errors::task_error;

/// Largest total size of free buffers, in bytes. Scans reserve the memory of the buffers that they
/// use.
const MAX_FREE_BYTES: usize = 512 << 20;

/// Free buffers that the scans of a session share. A buffer becomes free when the last slice of it is
/// dropped.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffers {
    free: Mutex<Vec<Vec<u8>>>,
}

impl ReadBuffers {
    /// Returns the bytes that `fill` writes to a buffer of `len_bytes` bytes. `fill` gets a buffer
    /// with unspecified content.
    ///
    /// # Errors
    /// The errors of `fill`.
    pub(super) fn filled<E>(
        self: &Arc<Self>,
        len_bytes: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Bytes, E> {
        let mut buffer = Buffer { bytes: self.take(len_bytes), len_bytes, home: Arc::clone(self) };
        fill(&mut buffer.bytes[..len_bytes])?;
        Ok(Bytes::from_owner(buffer))
    }

    /// Takes the smallest free buffer that is large enough, or a new buffer. All bytes are
    /// initialized.
    fn take(&self, len_bytes: usize) -> Vec<u8> {
        let mut free = self.lock();
        let large_enough = (0..free.len()).filter(|i| free[*i].len() >= len_bytes);
        match large_enough.min_by_key(|i| free[*i].len()) {
            Some(i) => free.swap_remove(i),
            None => {
                // The new buffer replaces the largest free one, which is too small.
                let largest = (0..free.len()).max_by_key(|i| free[*i].len());
                let dropped = largest.map(|i| free.swap_remove(i));
                drop((free, dropped));
                vec![0; len_bytes]
            }
        }
    }

    fn put_back(&self, bytes: Vec<u8>) {
        let mut free = self.lock();
        let num_bytes: usize = free.iter().map(Vec::len).sum();
        if num_bytes + bytes.len() <= MAX_FREE_BYTES {
            free.push(bytes);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer in use.
struct Buffer {
    bytes: Vec<u8>,
    len_bytes: usize,
    home: Arc<ReadBuffers>,
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len_bytes]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.home.put_back(std::mem::take(&mut self.bytes));
    }
}

/// Fetched ranges of a file.
#[derive(Debug)]
pub(super) struct FetchedRanges {
    file_len_bytes: u64,
    /// Start and bytes of each range, ascending.
    ranges: Vec<(u64, Bytes)>,
}

/// Store of the objects of a table.
#[derive(Clone)]
pub(super) struct Objects {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Buffers for the bytes of objects that are local files.
    pub(super) local: Option<Arc<ReadBuffers>>,
}

impl FetchedRanges {
    /// Fetches `ranges` of the object at `location`. They must ascend.
    pub(super) async fn fetch(
        objects: &Objects,
        location: &Path,
        file_len_bytes: u64,
        ranges: &[Range<u64>],
    ) -> Result<Self> {
        let bytes = match (ranges, &objects.local) {
            ([], _) => Vec::new(),
            (ranges, Some(buffers)) => match local_file(&objects.store, location).await? {
                Some(file) => {
                    let buffers = Arc::clone(buffers);
                    let ranges = ranges.to_vec();
                    let reading = move || read(&file, &buffers, &ranges);
                    SpawnedTask::spawn_blocking(reading).join().await.map_err(task_error)??
                }
                None => objects.store.get_ranges(location, ranges).await?,
            },
            (ranges, None) => objects.store.get_ranges(location, ranges).await?,
        };
        let ranges = ranges.iter().map(|range| range.start).zip(bytes).collect();
        Ok(Self { file_len_bytes, ranges })
    }

    /// Returns the bytes from `start` to the end of its range.
    fn from(&self, start: u64) -> ParquetResult<Bytes> {
        let after = self.ranges.partition_point(|(range_start, _)| *range_start <= start);
        let range = self.ranges[..after].last();
        let rest = range.and_then(|(range_start, bytes)| {
            let at = usize::try_from(start - range_start).ok()?;
            (at < bytes.len()).then(|| bytes.slice(at..))
        });
        rest.ok_or_else(|| ParquetError::EOF(format!("byte {start} is in no column of the footer")))
    }
}

impl Length for FetchedRanges {
    fn len(&self) -> u64 {
        self.file_len_bytes
    }
}

impl ChunkReader for FetchedRanges {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let rest = if length == 0 { Bytes::new() } else { self.from(start)? };
        if length <= rest.len() {
            Ok(rest.slice(..length))
        } else {
            Err(ParquetError::EOF(format!("{length} bytes at {start} are asked for, {} are in its column", rest.len())))
        }
    }
}

/// Returns the local file behind an object, if the store has one.
async fn local_file(store: &Arc<dyn ObjectStore>, location: &Path) -> Result<Option<File>> {
    match store.get(location).await?.payload {
        GetResultPayload::File(file, _) => Ok(Some(file)),
        GetResultPayload::Stream(_) => Ok(None),
    }
}

/// Reads ranges of a file into one buffer, one after the other.
fn read(file: &File, buffers: &Arc<ReadBuffers>, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
    let len_bytes = |range: &Range<u64>| (range.end - range.start) as usize;
    let fill = |mut rest: &mut [u8]| -> std::io::Result<()> {
        for range in ranges {
            let (part, behind) = rest.split_at_mut(len_bytes(range));
            let mut file = file;
            file.seek(SeekFrom::Start(range.start))?;
            file.read_exact(part)?;
            rest = behind;
        }
        Ok(())
    };
    let mut all = buffers.filled(ranges.iter().map(len_bytes).sum(), fill)?;
    Ok(ranges.iter().map(|range| all.split_to(len_bytes(range))).collect())
}

#[cfg(test)]
mod tests {
    use object_store::local::LocalFileSystem;
    use object_store::memory::InMemory;

    use super::*;

    fn bytes(buffers: &Arc<ReadBuffers>, len_bytes: usize, byte: u8) -> Bytes {
        let fill = |bytes: &mut [u8]| {
            bytes.fill(byte);
            Ok::<(), ()>(())
        };
        buffers.filled(len_bytes, fill).unwrap()
    }

    #[test]
    fn a_buffer_comes_back_with_its_last_slice() {
        let buffers = Arc::new(ReadBuffers::default());
        let first = bytes(&buffers, 1000, 1);
        let slice = first.slice(10..20);
        let place = first.as_ptr();
        drop(first);
        let second = bytes(&buffers, 500, 2);
        assert_ne!(second.as_ptr(), place);
        assert_eq!(slice[..], [1; 10]);
        drop(slice);
        let third = bytes(&buffers, 900, 3);
        assert_eq!((third.as_ptr(), third.len()), (place, 900));
        assert!(second.iter().all(|byte| *byte == 2) && third.iter().all(|byte| *byte == 3));
    }

    #[test]
    fn a_buffer_that_was_not_filled_comes_back_too() {
        let buffers = Arc::new(ReadBuffers::default());
        assert_eq!(buffers.filled(10, |_| Err("no")).unwrap_err(), "no");
        assert_eq!(buffers.lock().len(), 1);
        // A larger buffer replaces the free one that is too small.
        drop(bytes(&buffers, 20, 0));
        assert_eq!(buffers.lock().iter().map(Vec::len).collect::<Vec<_>>(), [20]);
        assert!(bytes(&buffers, 0, 0).is_empty());
    }

    #[test]
    fn free_memory_is_bounded() {
        let buffers = Arc::new(ReadBuffers::default());
        buffers.put_back(vec![0; MAX_FREE_BYTES]);
        buffers.put_back(vec![0; 1]);
        assert_eq!(buffers.lock().len(), 1);
    }

    async fn check(objects: &Objects) {
        let location = Path::from("x");
        let file: Vec<u8> = (0..100).collect();
        objects.store.put(&location, Bytes::from(file.clone()).into()).await.unwrap();
        let ranges = FetchedRanges::fetch(objects, &location, 100, &[10..20, 50..60]).await.unwrap();
        assert_eq!(ranges.len(), 100);
        assert_eq!(ranges.get_bytes(12, 8).unwrap(), file[12..20]);
        assert_eq!(ranges.get_bytes(50, 1).unwrap(), file[50..51]);
        assert!(ranges.get_bytes(99, 0).unwrap().is_empty());
        for (start, length) in [(12, 9), (9, 1), (20, 1), (60, 1), (0, 1)] {
            assert!(ranges.get_bytes(start, length).is_err(), "{start} {length}");
        }
        let mut rest = Vec::new();
        ranges.get_read(55).unwrap().read_to_end(&mut rest).unwrap();
        assert_eq!(rest, file[55..60]);
        assert!(ranges.get_read(30).is_err());
        // Some stores return the existing bytes of a range that ends behind the file.
        let behind = FetchedRanges::fetch(objects, &location, 100, &[0..1, 90..101]).await;
        assert!(behind.is_err() || behind.unwrap().get_bytes(90, 11).is_err());
    }

    #[tokio::test]
    async fn only_fetched_ranges_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let local: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new_with_prefix(dir.path()).unwrap());
        let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let buffers = Some(Arc::new(ReadBuffers::default()));
        check(&Objects { store: Arc::clone(&local), local: buffers.clone() }).await;
        check(&Objects { store: local, local: None }).await;
        // A store without local files, although it has buffers for them.
        check(&Objects { store: Arc::clone(&memory), local: buffers }).await;
        check(&Objects { store: memory, local: None }).await;
    }
}
