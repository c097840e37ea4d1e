//! Column chunks in memory, compared with their checksums before Parquet reads them.

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use crate::error::{Error, Result};

use super::index::SOURCE;

/// Returns `chunk`, which starts at `offset` of the file, if it has the checksum `expected`.
pub(super) fn checked_chunk(chunk: Bytes, offset: u64, expected: u32) -> Result<Bytes> {
    let got = crc32c::crc32c(&chunk);
    if got == expected {
        return Ok(chunk);
    }
    let file = SOURCE.to_owned();
    Err(Error::Checksum { file, section: "column chunk", offset, expected, got })
}

/// Chunks of a row group at their places in the file. No other bytes are there.
pub(super) struct CheckedChunks {
    file_len_bytes: u64,
    chunks: Vec<(u64, Bytes)>,
}

impl CheckedChunks {
    /// Creates an input of `chunks`, each with its place in the file.
    pub(super) fn new(file_len_bytes: u64, chunks: Vec<(u64, Bytes)>) -> Self {
        Self { file_len_bytes, chunks }
    }

    /// Returns the bytes from `start` to the end of its chunk.
    fn rest(&self, start: u64) -> ParquetResult<Bytes> {
        let rest = |(chunk_start, chunk): &(u64, Bytes)| {
            let at = usize::try_from(start.checked_sub(*chunk_start)?).ok()?;
            (at < chunk.len()).then(|| chunk.slice(at..))
        };
        let outside = || ParquetError::EOF(format!("byte {start} is in no column that is read"));
        self.chunks.iter().find_map(rest).ok_or_else(outside)
    }
}

impl Length for CheckedChunks {
    fn len(&self) -> u64 {
        self.file_len_bytes
    }
}

impl ChunkReader for CheckedChunks {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.rest(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let rest = self.rest(start)?;
        if length > rest.len() {
            let there = rest.len();
            let reason =
                format!("{length} bytes at {start} are asked for, {there} are in its column");
            return Err(ParquetError::EOF(reason));
        }
        Ok(rest.slice(..length))
    }
}
