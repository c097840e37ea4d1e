//! The function `corpus_verify(corpus)`: checks every checksum and every structure, and decodes
//! every document.
//!
//! A damaged file is a result, not an error: its rows say what is wrong. The rows of a file are its
//! sections in order, `decode` for each segment, and `file` for the checks of the whole file
//! (header, padding, footer). The status `refused` means that a limit stopped the check; the detail
//! names the limit. Whole files are read, one at a time.
//!
//! For a living corpus, the rows are those of the version's files, each with a row `part` that says
//! if it is the file that the version names. A row `edits` follows for each version with edits. If
//! all checks succeed, the last row is `apply`: the edits are applied, and every document of the
//! result is decoded.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::ObjectStoreExt;

use super::verify_file::{decoded_bytes, send, verify_file, verify_version};
use crate::corpora::Source;
use crate::corpora::location::{SourceFile, store_of};
use crate::errors::task_error;
use crate::planning::Execution;
use crate::planning::function::{Definition, Reads, TableFunction};
use crate::planning::signature::{self, Signature};

/// The function `corpus_verify` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "corpus_verify",
        arguments: &[signature::CORPUS, signature::VERSION],
        columns: &[
            signature::text("file", "the file"),
            signature::integer("segment", "number of the segment inside the file; NULL for parts of the file itself")
                .nullable(),
            signature::text("section", "the section, or decode for the whole segment"),
            signature::integer("offset", "where the section begins in the file").nullable(),
            signature::integer("bytes", "stored bytes of the section; decoded bytes for decode").nullable(),
            signature::text("status", "ok or damaged"),
            signature::text("detail", "what is wrong, NULL where nothing is").nullable(),
        ],
        summary: "checks every checksum and decodes every document",
    },
    bind: |_, _| Arc::new(CorpusVerify),
};

#[derive(Debug)]
pub(crate) struct CorpusVerify;

impl TableFunction for CorpusVerify {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn reads(&self) -> Reads {
        Reads::UncheckedCorpora
    }

    fn run(self: Arc<Self>, mut run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let scan = Arc::clone(&run.scan);
            if let Source::Unchecked(found, version) = &scan.source {
                return verify_version(run, found, version).await;
            }
            let reservation = run.reservation("Verify");
            for file in scan.files() {
                let bytes = read_file(&run, file, &reservation).await?;
                let (path, options) = (file.path.clone(), scan.options.clone());
                let verify = move || verify_file(&path, &bytes, &options);
                let rows = tokio::task::spawn_blocking(verify).await.map_err(task_error)?;
                if !send(&mut run, &file.path, &rows).await? {
                    break;
                }
            }
            Ok(())
        }
        .boxed()
    }
}

/// Reads all bytes of `file`. Reserves memory for them and for the decoded segments.
async fn read_file(run: &Execution, file: &SourceFile, reservation: &MemoryReservation) -> Result<Bytes> {
    reservation.try_resize(file.meta.size as usize)?;
    let store = store_of(&run.runtime, file)?;
    let bytes = store.get(&file.meta.location).await?.bytes().await?;
    run.counter("bytes_read").add(bytes.len());
    let decoded = decoded_bytes(&file.path, &bytes, &run.scan.options);
    reservation.try_resize(bytes.len() + decoded)?;
    Ok(bytes)
}
