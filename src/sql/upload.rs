//! Objects that are written by blocking code and show all at once.
//!
//! ```text
//! input ─▶ (feeding) ─▶ blocking thread: write(ChunkWriter) ─▶ channel ─▶ upload ─▶ Staged
//!                                                                          complete │ abort
//! ```
//!
//! Stores show an object when its upload completes (the local one renames a staged file), so no
//! reader ever sees half a file, and an existing file is replaced in one step. Whoever stages
//! decides when: after everything that belongs together has succeeded.

use std::future::Future;
use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::metrics::Count;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, WriteMultipart};
use tokio::sync::mpsc::{Sender, channel};

use super::failure::task_error;

/// Bytes handed to the upload at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes of a part.
const PART_BYTES: usize = 8 << 20;
/// Parts of an upload under way at the same time.
const MAX_PARTS: usize = 4;

/// An object whose bytes are with the store but that does not show yet.
pub(crate) struct Staged {
    upload: WriteMultipart,
}

impl Staged {
    /// Lets it show.
    pub(crate) async fn complete(self) -> Result<()> {
        self.upload.finish().await?;
        Ok(())
    }

    /// Drops it.
    pub(crate) async fn abort(self) {
        // A store that cannot abort shows nothing either way.
        let _aborted = self.upload.abort().await;
    }
}

/// Runs `write` on a blocking thread and sends what it writes to the store, while `feeding` brings
/// its input. Fails, with nothing staged, where one of the three does.
pub(crate) async fn stage<T: Send + 'static>(
    store: &Arc<dyn ObjectStore>,
    target: &Path,
    bytes_written: Count,
    feeding: impl Future<Output = Result<()>>,
    write: impl FnOnce(ChunkWriter) -> Result<T> + Send + 'static,
) -> Result<(Staged, T)> {
    let put = store.put_multipart(target).await?;
    let mut upload = WriteMultipart::new_with_chunk_size(put, PART_BYTES);
    let (sender, mut chunks) = channel::<Bytes>(4);
    let out = ChunkWriter { chunks: sender, buffer: Vec::with_capacity(CHUNK_BYTES) };
    let writing = tokio::task::spawn_blocking(move || write(out));
    let parts = &mut upload;
    // Owns the chunks, so that a writer whose upload failed does not wait for room in vain.
    let uploading = async move {
        while let Some(chunk) = chunks.recv().await {
            parts.wait_for_capacity(MAX_PARTS).await?;
            bytes_written.add(chunk.len());
            parts.put(chunk);
        }
        Ok::<(), DataFusionError>(())
    };
    let (fed, written, uploaded) = tokio::join!(feeding, writing, uploading);
    let staged = Staged { upload };
    // In order of cause: a writer without input or without upload fails too.
    match fed.and(uploaded).and_then(|()| written.map_err(task_error)?) {
        Ok(answer) => Ok((staged, answer)),
        Err(error) => {
            staged.abort().await;
            Err(error)
        }
    }
}

/// Hands what is written to the upload, a chunk at a time.
pub(crate) struct ChunkWriter {
    chunks: Sender<Bytes>,
    buffer: Vec<u8>,
}

impl ChunkWriter {
    fn send(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK_BYTES));
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the upload ended early");
        self.chunks.blocking_send(chunk.into()).map_err(gone)
    }

    /// Hands over the rest.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.send()
    }
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK_BYTES {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
