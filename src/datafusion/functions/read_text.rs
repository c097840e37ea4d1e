//! The function `read_text(glob)`: plain files as rows, one row per file, in order of path.
//!
//! Files that end in `.gz` and `.zst` are unpacked. `tadoc.max_output_bytes` bounds the unpacked
//! size of one file. Rows are grouped into batches of 1 MiB of text; a single file may be larger.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, StringViewArray};
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::plain_files::read_file;
use super::strings::{Texts, int64};
use crate::planning::function::{Definition, Facts, Prepared, Reads, TableFunction};
use crate::planning::signature::{self, ColumnKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};

const BATCH_BYTES: usize = 1 << 20;

/// The function `read_text` in SQL.
pub(super) static DEFINITION: Definition = Definition {
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
pub(crate) struct ReadText;

impl TableFunction for ReadText {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
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
