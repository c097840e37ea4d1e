//! Plain files: their bytes, unpacked as their endings say.

use std::io::Read;

use bytes::Bytes;
use datafusion::error::Result;
use object_store::ObjectStoreExt;

use crate::corpora::location::{SourceFile, store_of};
use crate::errors::{datafusion_error, task_error};
use crate::planning::Execution;
use tadoc::Error;

/// Reads the bytes of `file` and unpacks them as its ending says.
pub(super) async fn read_file(run: &Execution, file: &SourceFile) -> Result<Bytes> {
    let limit = run.scan.options.max_output_bytes.min(i32::MAX as u64);
    check_len(file.meta.size, limit)?;
    let store = store_of(&run.runtime, file)?;
    let bytes = store.get(&file.meta.location).await?.bytes().await?;
    run.counter("bytes_read").add(bytes.len());
    // The length of some files is known only after they are read.
    check_len(bytes.len() as u64, limit)?;
    let packing = Packing::from_path(&file.path);
    if packing == Packing::None {
        return Ok(bytes);
    }
    let path = file.path.clone();
    let unpack = move || unpack(&path, &bytes, packing, limit);
    tokio::task::spawn_blocking(unpack).await.map_err(task_error)?.map_err(datafusion_error)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Zstd,
}

impl Packing {
    fn from_path(path: &str) -> Self {
        match path.rsplit('.').next() {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::None,
        }
    }
}

fn unpack(path: &str, bytes: &[u8], packing: Packing, limit: u64) -> Result<Bytes, Error> {
    let failed = |e| Error::io(format!("{path}: cannot be unpacked"), e);
    let mut out = Vec::new();
    let unpacked = match packing {
        Packing::Gzip => flate2::read::MultiGzDecoder::new(bytes).take(limit + 1).read_to_end(&mut out),
        _ => {
            let decoder = zstd::stream::read::Decoder::new(bytes).map_err(failed)?;
            decoder.take(limit + 1).read_to_end(&mut out)
        }
    };
    unpacked.map_err(failed)?;
    if out.len() as u64 > limit {
        return Err(too_long(out.len() as u64, limit));
    }
    Ok(out.into())
}

fn check_len(len: u64, limit: u64) -> Result<()> {
    if len > limit { Err(datafusion_error(too_long(len, limit))) } else { Ok(()) }
}

fn too_long(requested: u64, limit: u64) -> Error {
    Error::Capacity { what: "text of one file", requested, limit, knob: "tadoc.max_output_bytes" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacking_stops_at_the_limit() {
        let packed = zstd::encode_all(&vec![b'a'; 10_000][..], 3).unwrap();
        assert!(matches!(unpack("a.zst", &packed, Packing::Zstd, 9_999), Err(Error::Capacity { .. })));
        assert_eq!(unpack("a.zst", &packed, Packing::Zstd, 10_000).unwrap().len(), 10_000);
        assert!(matches!(unpack("a.gz", &packed, Packing::Gzip, 10_000), Err(Error::Io { .. })));
    }
}
