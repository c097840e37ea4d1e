//! Objects that are written by blocking code and show all at once.
//!
//! ```text
//! input ─▶ (feeding) ─▶ blocking thread: write(ChunkWriter) ─▶ channel ─▶ upload ─▶ Staged
//!                                                                          complete │ abort
//! ```
//!
//! Stores show an object when its upload completes, so no reader ever sees half a file, and an existing
//! file is replaced in one step. Whoever stages decides when: after everything that belongs together has
//! succeeded. What is not completed is aborted, also where the statement is given up.
//!
//! On the local disk the blocking thread writes to a [`StagedFile`] itself. `object_store`'s staged
//! files (`x.parquet#1`) stay where a process is killed, and nobody can tell that they are not in use.

use std::fs::File;
use std::future::Future;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::metrics::Count;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, WriteMultipart};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Sender, channel};

use crate::errors::{datafusion_error, task_error};
use tadoc::Error;
use tadoc_store::staging::StagedFile;

/// Bytes handed to the upload at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes of a part.
const PART_BYTES: usize = 8 << 20;
/// Parts of an upload under way at the same time.
const MAX_PARTS: usize = 4;

/// How the file system of this machine calls itself as a store; others of its kind have another root.
const LOCAL_STORE: &str = "LocalFileSystem(file:///)";

/// An object whose bytes are with the store but that does not show yet. Dropped, it never will.
#[derive(Debug)]
pub(crate) enum Staged {
    /// On the local disk.
    File(StagedFile),
    /// Elsewhere.
    Upload(Upload),
}

impl Staged {
    /// Lets it show.
    pub(crate) async fn complete(self) -> Result<()> {
        match self {
            Self::File(file) => {
                let completed = tokio::task::spawn_blocking(move || file.complete(true));
                completed.await.map_err(task_error)?.map_err(|error| {
                    datafusion_error(Error::io("COPY: giving the file its name", error))
                })
            }
            Self::Upload(mut upload) => match upload.0.take() {
                Some(upload) => Ok(upload.finish().await.map(|_| ())?),
                None => Ok(()),
            },
        }
    }

    /// Drops it, and waits until that is done.
    pub(crate) async fn abort(self) {
        if let Self::Upload(mut upload) = self
            && let Some(upload) = upload.0.take()
        {
            // A store that cannot abort shows nothing either way.
            let _aborted = upload.abort().await;
        }
    }
}

/// An upload that is aborted where it is dropped: stores keep the parts of others.
#[derive(Debug)]
pub(crate) struct Upload(Option<WriteMultipart>);

impl Drop for Upload {
    fn drop(&mut self) {
        if let (Some(upload), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(upload.abort());
        }
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
    match local_path(store.as_ref(), target) {
        Some(path) => stage_file(path, bytes_written, feeding, write).await,
        None => stage_upload(store, target, bytes_written, feeding, write).await,
    }
}

/// Where `target` lies if `store` is the file system of this machine.
fn local_path(store: &dyn ObjectStore, target: &Path) -> Option<PathBuf> {
    // Perhaps inside another that counts or caches.
    let is_local = store.to_string().contains(LOCAL_STORE);
    is_local.then(|| LocalFileSystem::new().path_to_filesystem(target).ok()).flatten()
}

async fn stage_file<T: Send + 'static>(
    path: PathBuf,
    bytes_written: Count,
    feeding: impl Future<Output = Result<()>>,
    write: impl FnOnce(ChunkWriter) -> Result<T> + Send + 'static,
) -> Result<(Staged, T)> {
    let shown = path.display().to_string();
    let failed = |error| datafusion_error(Error::io(format!("{shown}: cannot write"), error));
    let created = tokio::task::spawn_blocking(move || {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        let staged = StagedFile::create(&path)?;
        let file = staged.file().try_clone()?;
        Ok((staged, file))
    });
    let (staged, file) = created.await.map_err(task_error)?.map_err(failed)?;
    let out = ChunkWriter::new(Way::File(file, bytes_written));
    let writing = tokio::task::spawn_blocking(move || write(out));
    let (fed, written) = tokio::join!(feeding, writing);
    let answer = fed.and_then(|()| written.map_err(task_error)?)?;
    Ok((Staged::File(staged), answer))
}

async fn stage_upload<T: Send + 'static>(
    store: &Arc<dyn ObjectStore>,
    target: &Path,
    bytes_written: Count,
    feeding: impl Future<Output = Result<()>>,
    write: impl FnOnce(ChunkWriter) -> Result<T> + Send + 'static,
) -> Result<(Staged, T)> {
    let put = store.put_multipart(target).await?;
    let mut upload = Upload(Some(WriteMultipart::new_with_chunk_size(put, PART_BYTES)));
    let (sender, mut chunks) = channel::<Bytes>(4);
    let out = ChunkWriter::new(Way::Upload(sender));
    let writing = tokio::task::spawn_blocking(move || write(out));
    let parts = &mut upload;
    // Owns the chunks, so that a writer whose upload failed does not wait for room in vain.
    let uploading = async move {
        while let (Some(chunk), Some(parts)) = (chunks.recv().await, &mut parts.0) {
            parts.wait_for_capacity(MAX_PARTS).await?;
            bytes_written.add(chunk.len());
            parts.put(chunk);
        }
        Ok::<(), DataFusionError>(())
    };
    let (fed, written, uploaded) = tokio::join!(feeding, writing, uploading);
    let staged = Staged::Upload(upload);
    // In order of cause: a writer without input or without upload fails too.
    match fed.and(uploaded).and_then(|()| written.map_err(task_error)?) {
        Ok(answer) => Ok((staged, answer)),
        Err(error) => {
            staged.abort().await;
            Err(error)
        }
    }
}

/// Hands on what is written, a chunk at a time.
pub(crate) struct ChunkWriter {
    way: Way,
    buffer: Vec<u8>,
}

enum Way {
    Upload(Sender<Bytes>),
    File(File, Count),
}

impl ChunkWriter {
    fn new(way: Way) -> Self {
        Self { way, buffer: Vec::with_capacity(CHUNK_BYTES) }
    }

    fn send(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        match &mut self.way {
            Way::Upload(chunks) => {
                let empty = Vec::with_capacity(CHUNK_BYTES);
                let chunk = std::mem::replace(&mut self.buffer, empty);
                let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the upload ended early");
                chunks.blocking_send(chunk.into()).map_err(gone)
            }
            Way::File(file, bytes_written) => {
                file.write_all(&self.buffer)?;
                bytes_written.add(self.buffer.len());
                self.buffer.clear();
                Ok(())
            }
        }
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
