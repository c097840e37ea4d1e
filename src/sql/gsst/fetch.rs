//! Byte ranges of a file, fetched before they are read.
//!
//! The Parquet crate and ours read from anything that gives ranges. Here that is memory: the ranges
//! of one row group come from the store in one asynchronous call, which puts neighbours together,
//! and blocking code decodes them without waiting for anything.

use std::ops::Range;
use std::sync::Arc;

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use datafusion::error::Result;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::reader::{ChunkReader, Length};
use object_store::ObjectStore;
use object_store::path::Path;

/// Some ranges of a file.
#[derive(Debug)]
pub(super) struct FetchedRanges {
    file_len_bytes: u64,
    /// Starts and bytes, ascending.
    ranges: Vec<(u64, Bytes)>,
}

impl FetchedRanges {
    /// Fetches `ranges`, ascending, of the object at `location`.
    pub(super) async fn fetch(
        store: &Arc<dyn ObjectStore>,
        location: &Path,
        file_len_bytes: u64,
        ranges: &[Range<u64>],
    ) -> Result<Self> {
        let bytes = match ranges {
            [] => Vec::new(),
            ranges => store.get_ranges(location, ranges).await?,
        };
        let ranges = ranges.iter().map(|range| range.start).zip(bytes).collect();
        Ok(Self { file_len_bytes, ranges })
    }

    /// What there is from `start` to the end of its range.
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
        match length <= rest.len() {
            true => Ok(rest.slice(..length)),
            false => Err(ParquetError::EOF(format!(
                "{length} bytes at {start} are asked for, {} are in its column",
                rest.len()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn only_fetched_ranges_are_there() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let location = Path::from("x");
        let file: Vec<u8> = (0..100).collect();
        store.put(&location, Bytes::from(file.clone()).into()).await.unwrap();
        let ranges = FetchedRanges::fetch(&store, &location, 100, &[10..20, 50..60]).await.unwrap();
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
    }
}
