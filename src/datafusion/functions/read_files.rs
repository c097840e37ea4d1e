//! The functions `read_text(glob)` and `read_lines(glob)`: plain files as rows, one for each file or for each line, in
//! order of path and number.
//!
//! Files that end in `.gz` and `.zst` are unpacked. `tadoc.max_output_bytes` bounds the unpacked size of one file. A
//! line ends at `\n` or at the end of the file; `\r` before `\n` belongs to the end. Rows are grouped into batches of 1
//! MiB of text; a single file or line may be larger.

use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, StringViewArray};
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;
use memchr::memchr;
use object_store::ObjectStoreExt;

use crate::corpora::location::{SourceFile, store_of};
use crate::errors::{datafusion_error, task_error};
use crate::functions::strings::{Texts, int64};
use crate::planning::function::{Definition, Facts, Prepared, Reads, TableFunction};
use crate::planning::signature::{self, ColumnKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::Error;

/// Reads the bytes of `file` and unpacks them as its ending says.
async fn read_file(run: &Execution, file: &SourceFile) -> Result<Bytes> {
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

const BATCH_BYTES: usize = 1 << 20;

/// The function `read_text` in SQL.
pub(super) static TEXT: Definition = Definition {
    signature: Signature {
        name: "read_text",
        arguments: &[signature::GLOB],
        columns: &[
            signature::text("path", "the file"),
            signature::integer("bytes", "its length"),
            signature::text("text", "the text, U+FFFD for invalid bytes"),
            signature::column("content", ColumnKind::Bytes, "the exact bytes"),
        ],
        summary: "one row per file",
    },
    bind: |_, _| Arc::new(ReadText),
};

#[derive(Debug)]
struct ReadText;

impl TableFunction for ReadText {
    fn signature(&self) -> &'static Signature {
        &TEXT.signature
    }

    fn reads(&self) -> Reads {
        Reads::Files
    }

    fn facts(&self, scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let files = scan.files();
        let len_bytes: u64 = files.iter().map(|file| file.meta.size).sum();
        Facts {
            ordering: &["path"],
            num_rows: Precision::Exact(files.len()),
            row_bytes: len_bytes / (files.len() as u64).max(1),
            ..Facts::default()
        }
    }

    fn run(self: Arc<Self>, mut run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let scan = Arc::clone(&run.scan);
            let needs_bytes = scan.projected().any(|name| name != "path");
            let reservation = run.reservation("ReadText");
            let mut group = Group::default();
            for file in scan.files() {
                let text = if needs_bytes { read_file(&run, file).await? } else { Bytes::new() };
                // The reservation grows with the group. It counts the bytes as read, and their copy
                // in the group's buffer.
                reservation.try_resize(2 * (group.bytes.len() + text.len()))?;
                group.push(&file.path, &text);
                let is_full = group.bytes.len() >= BATCH_BYTES || group.ends.len() >= run.output.batch_size();
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

    async fn send(&mut self, run: &mut Execution) -> Result<bool> {
        let group = std::mem::take(self);
        if group.paths.is_empty() {
            return Ok(true);
        }
        let starts = std::iter::once(0).chain(group.ends.iter().copied());
        let lens: Vec<u64> = group.ends.iter().zip(starts).map(|(end, start)| (end - start) as u64).collect();
        let texts = Texts::new(group.bytes, group.ends)?;
        let column = |name: &str| -> Result<ArrayRef> {
            Ok(match name {
                "path" => Arc::new(StringViewArray::from_iter_values(&group.paths)),
                "bytes" => int64(lens.iter().copied())?,
                "text" => Arc::new(texts.text()?),
                "content" => Arc::new(texts.content()?),
                other => return no_column(other),
            })
        };
        run.send_async(lens.len(), column).await
    }
}

/// The function `read_lines` in SQL.
pub(super) static LINES: Definition = Definition {
    signature: Signature {
        name: "read_lines",
        arguments: &[signature::GLOB],
        columns: &[
            signature::text("path", "the file"),
            signature::integer("line_number", "number of the line in its file, from 1"),
            signature::text("text", "the line without its end, U+FFFD for invalid bytes"),
        ],
        summary: "one row per line",
    },
    bind: |_, _| Arc::new(ReadLines),
};

#[derive(Debug)]
struct ReadLines;

impl TableFunction for ReadLines {
    fn signature(&self) -> &'static Signature {
        &LINES.signature
    }

    fn reads(&self) -> Reads {
        Reads::Files
    }

    fn facts(&self, _scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        Facts { ordering: &["path", "line_number"], ..Facts::default() }
    }

    fn run(self: Arc<Self>, mut run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let scan = Arc::clone(&run.scan);
            let reservation = run.reservation("ReadLines");
            for file in scan.files() {
                let text = read_file(&run, file).await?;
                reservation.try_resize(text.len() + 2 * BATCH_BYTES)?;
                let mut lines = Lines { rest: text, num_before: 0 };
                while let Some(batch) = lines.next_batch(run.output.batch_size()) {
                    if !send_lines(&mut run, &file.path, batch).await? {
                        return Ok(());
                    }
                }
            }
            Ok(())
        }
        .boxed()
    }
}

/// Consecutive lines without their ends.
struct Batch {
    first_number: u64,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

async fn send_lines(run: &mut Execution, path: &str, batch: Batch) -> Result<bool> {
    let num_rows = batch.ends.len();
    let texts = Texts::new(batch.bytes, batch.ends)?;
    let column = |name: &str| -> Result<ArrayRef> {
        Ok(match name {
            "path" => Arc::new(StringViewArray::from_iter_values(std::iter::repeat_n(path, num_rows))),
            "line_number" => int64(batch.first_number..batch.first_number + num_rows as u64)?,
            "text" => Arc::new(texts.text()?),
            other => return no_column(other),
        })
    };
    run.send_async(num_rows, column).await
}

/// Lines of a text that are not read yet.
struct Lines {
    rest: Bytes,
    num_before: u64,
}

impl Lines {
    /// Returns the next lines: at most `num_lines` and about 1 MiB, at least one. Returns `None` at
    /// the end.
    fn next_batch(&mut self, num_lines: usize) -> Option<Batch> {
        let first_number = self.num_before + 1;
        let mut batch = Batch { first_number, bytes: Vec::new(), ends: Vec::new() };
        while !self.rest.is_empty() && batch.ends.len() < num_lines && batch.bytes.len() < BATCH_BYTES {
            let end = memchr(b'\n', &self.rest);
            let line = self.rest.split_to(end.map_or(self.rest.len(), |end| end + 1));
            let line = match end {
                Some(end) => line[..end].strip_suffix(b"\r").unwrap_or(&line[..end]),
                None => &line[..],
            };
            batch.bytes.extend_from_slice(line);
            batch.ends.push(batch.bytes.len());
        }
        self.num_before += batch.ends.len() as u64;
        (!batch.ends.is_empty()).then_some(batch)
    }
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

    fn lines(text: &'static str, num_lines: usize) -> Vec<(u64, Vec<u8>, Vec<usize>)> {
        let mut lines = Lines { rest: text.into(), num_before: 0 };
        let next = || lines.next_batch(num_lines).map(|b| (b.first_number, b.bytes, b.ends));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn lines_lose_their_ends_and_keep_their_numbers() {
        assert_eq!(lines("a\r\n\nb", 2), [(1, b"a".to_vec(), vec![1, 1]), (3, b"b".to_vec(), vec![1])]);
        assert_eq!(lines("a\n", 9), [(1, b"a".to_vec(), vec![1])]);
        assert_eq!(lines("a\rb", 9), [(1, b"a\rb".to_vec(), vec![3])]);
        assert!(lines("", 9).is_empty());
    }
}
