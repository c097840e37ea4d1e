//! The function `read_lines(glob)`: the lines of plain files as rows, in order of path and number.
//!
//! A line ends at `\n` or at the end of the file; `\r` before `\n` belongs to the end. Files that
//! end in `.gz` and `.zst` are unpacked.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, StringViewArray};
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;
use memchr::memchr;

use super::plain_files::read_file;
use super::strings::{Texts, int64};
use crate::planning::function::{Definition, Facts, Prepared, Reads, TableFunction};
use crate::planning::signature::{self, Signature};
use crate::planning::{Execution, ScanSpec, no_column};

const BATCH_BYTES: usize = 1 << 20;

/// The function `read_lines` in SQL.
pub(super) static DEFINITION: Definition = Definition {
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
pub(crate) struct ReadLines;

impl TableFunction for ReadLines {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
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
                    if !send(&mut run, &file.path, batch).await? {
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

async fn send(run: &mut Execution, path: &str, batch: Batch) -> Result<bool> {
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
