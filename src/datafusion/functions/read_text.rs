//! The function `read_text(glob)`: plain files as rows, one row per file, in order of path.
//!
//! Files that end in `.gz` and `.zst` are unpacked. `tadoc.max_output_bytes` bounds the unpacked
//! size of one file. Rows are grouped into batches of 1 MiB of text; a single file may be larger.

use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, StringViewArray};
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::ObjectStoreExt;

use super::strings::{Texts, int64};
use crate::errors::{datafusion_error, task_error};
use crate::scan::function::{Definition, Reads, TableFunction};
use crate::scan::signature::{self, ColumnKind, Signature};
use crate::scan::{Run, Scan};
use crate::source::location::{SourceFile, store_of};
use tadoc::Error;

const PATH: usize = 0;
const BYTES: usize = 1;
const TEXT: usize = 2;
const BATCH_BYTES: usize = 1 << 20;

/// The function `read_text` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "read_text",
        arguments: &[signature::GLOB],
        columns: &[
            signature::column("path", ColumnKind::Text, "the file"),
            signature::column("bytes", ColumnKind::Integer, "its length"),
            signature::column("text", ColumnKind::Text, "the text, U+FFFD for invalid bytes"),
            signature::column("content", ColumnKind::Bytes, "the exact bytes"),
        ],
        summary: "one row per file",
    },
    bind: |_, _| Arc::new(ReadText),
};

#[derive(Debug)]
pub(crate) struct ReadText;

impl TableFunction for ReadText {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn reads(&self) -> Reads {
        Reads::Files
    }

    fn ordering(&self, _scan: &Scan) -> &'static [&'static str] {
        &["path"]
    }

    fn num_rows(&self, scan: &Scan) -> Precision<usize> {
        Precision::Exact(scan.files().len())
    }

    fn row_bytes(&self, scan: &Scan) -> u64 {
        let lens = scan.files().iter().map(|file| file.meta.size);
        lens.sum::<u64>() / (scan.files().len() as u64).max(1)
    }

    fn run(self: Arc<Self>, mut run: Run) -> BoxFuture<'static, Result<()>> {
        async move {
            let scan = Arc::clone(&run.scan);
            let needs_bytes = scan.projection.iter().any(|&column| column != PATH);
            let reservation = run.reservation("ReadText");
            let mut group = Group::default();
            for file in scan.files() {
                let text = match needs_bytes {
                    true => read_file(&run, file).await?,
                    false => Bytes::new(),
                };
                // The reservation grows with the group. It counts the bytes as read, and their copy
                // in the group's buffer.
                reservation.try_resize(2 * (group.bytes.len() + text.len()))?;
                group.push(&file.path, &text);
                let is_full =
                    group.bytes.len() >= BATCH_BYTES || group.ends.len() >= run.output.batch_size();
                if is_full && !group.send(&mut run).await? {
                    return Ok(());
                }
            }
            group.send(&mut run).await?;
            Ok(())
        }
        .boxed()
    }
}

/// Files that are sent together.
#[derive(Default)]
struct Group {
    paths: Vec<String>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Group {
    fn push(&mut self, path: &str, text: &[u8]) {
        self.paths.push(path.to_string());
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    async fn send(&mut self, run: &mut Run) -> Result<bool> {
        let group = std::mem::take(self);
        if group.paths.is_empty() {
            return Ok(true);
        }
        let starts = std::iter::once(0).chain(group.ends.iter().copied());
        let lens: Vec<u64> =
            group.ends.iter().zip(starts).map(|(end, start)| (end - start) as u64).collect();
        let texts = Texts::new(group.bytes, group.ends)?;
        let column = |&i: &usize| -> Result<ArrayRef> {
            Ok(match i {
                PATH => Arc::new(StringViewArray::from_iter_values(&group.paths)),
                BYTES => int64(lens.iter().copied())?,
                TEXT => Arc::new(texts.text()?),
                _ => Arc::new(texts.content()?),
            })
        };
        let columns = run.scan.projection.iter().map(column).collect::<Result<_>>()?;
        run.output.send_columns_async(columns, lens.len()).await
    }
}

/// Reads the bytes of `file` and unpacks them as its ending says.
pub(super) async fn read_file(run: &Run, file: &SourceFile) -> Result<Bytes> {
    let limit = run.scan.options.max_output_bytes.min(i32::MAX as u64);
    check_len(file.meta.size, limit)?;
    let store = store_of(&run.runtime, file)?;
    let bytes = store.get(&file.meta.location).await?.bytes().await?;
    run.counter("bytes_read").add(bytes.len());
    // The length of some files is known only after they are read.
    check_len(bytes.len() as u64, limit)?;
    let packing = Packing::of(&file.path);
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
    fn of(path: &str) -> Self {
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
        Packing::Gzip => {
            flate2::read::MultiGzDecoder::new(bytes).take(limit + 1).read_to_end(&mut out)
        }
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
        assert!(matches!(
            unpack("a.zst", &packed, Packing::Zstd, 9_999),
            Err(Error::Capacity { .. })
        ));
        assert_eq!(unpack("a.zst", &packed, Packing::Zstd, 10_000).unwrap().len(), 10_000);
        assert!(matches!(unpack("a.gz", &packed, Packing::Gzip, 10_000), Err(Error::Io { .. })));
    }
}
