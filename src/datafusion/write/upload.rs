//! Objects that blocking code writes and that become visible as a whole.
//!
//! ```text
//! input ─▶ (feeding) ─▶ blocking thread: write(ChunkWriter) ─▶ channel ─▶ upload ─▶ Staged
//!                                                                          complete │ abort
//! ```
//!
//! A store makes an object visible when its upload completes. So no reader sees half a file, and an existing file is
//! replaced in one step. The caller completes the upload after everything that belongs together has succeeded. An
//! upload that is not completed is aborted, also if the statement is cancelled.
//!
//! On the local disk the blocking thread writes to a [`StagedFile`] itself. The staged files of `object_store`
//! (`x.parquet#1`) remain when a process is killed, and nothing shows that they are unused.

use std::fs::File;
use std::future::Future;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::metrics::Count;
use futures::StreamExt;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, WriteMultipart};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Sender, channel};

use crate::errors::{datafusion_error, task_error};
use tadoc::Error;
use tadoc_store::staging::StagedFile;

/// Size of a chunk that is handed to the upload, in bytes.
const CHUNK_BYTES: usize = 1 << 20;
/// Size of a part of an upload, in bytes.
const PART_BYTES: usize = 8 << 20;
/// Maximum number of parts of an upload in flight.
const MAX_PARTS: usize = 4;

/// Name of the store for the whole local file system. Local stores with another root have other
/// names.
const LOCAL_STORE: &str = "LocalFileSystem(file:///)";
/// Beginning of the names of stores of Azure.
const AZURE_STORE: &str = "MicrosoftAzure";

/// An object whose bytes are stored but that is not visible yet. If it is dropped, it never becomes
/// visible.
#[derive(Debug)]
pub(crate) enum Staged {
    /// A file on the local disk, and the folders that were created for it.
    File(StagedFile, NewFolders),
    /// An upload to another store.
    Upload(Upload),
}

impl Staged {
    /// Wraps an upload whose parts are stored.
    pub(crate) fn from_upload(upload: Box<dyn MultipartUpload>) -> Self {
        Self::Upload(Upload(Some(WriteMultipart::new(upload))))
    }

    /// Makes the object visible.
    pub(crate) async fn complete(self) -> Result<()> {
        match self {
            Self::File(file, folders) => {
                let completed = tokio::task::spawn_blocking(move || {
                    let completed = file.complete(true);
                    drop(folders);
                    completed
                });
                completed
                    .await
                    .map_err(task_error)?
                    .map_err(|error| datafusion_error(Error::io("COPY: giving the file its name", error)))
            }
            Self::Upload(mut upload) => match upload.0.take() {
                Some(upload) => Ok(upload.finish().await.map(|_| ())?),
                None => Ok(()),
            },
        }
    }

    /// Discards the object and waits until that is done.
    pub(crate) async fn abort(self) {
        if let Self::Upload(mut upload) = self
            && let Some(upload) = upload.0.take()
        {
            // A store that cannot abort makes nothing visible either way.
            let _aborted = upload.abort().await;
        }
    }
}

/// An upload that is aborted when it is dropped. Stores keep the parts of abandoned uploads
/// otherwise.
#[derive(Debug)]
pub(crate) struct Upload(Option<WriteMultipart>);

impl Drop for Upload {
    fn drop(&mut self) {
        if let (Some(upload), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(upload.abort());
        }
    }
}

/// Runs `write` on a blocking thread and sends its output to the store, while `feeding` supplies
/// its input. If one of the three fails, the result is an error and nothing is staged. `folders` are those of the
/// statement.
pub(crate) async fn stage<T: Send + 'static>(
    store: &Arc<dyn ObjectStore>,
    target: &Path,
    folders: &NewFolders,
    bytes_written: Count,
    feeding: impl Future<Output = Result<()>>,
    write: impl FnOnce(ChunkWriter) -> Result<T> + Send + 'static,
) -> Result<(Staged, T)> {
    match local_path(store.as_ref(), target) {
        Some(path) => stage_file(path, folders.clone(), bytes_written, feeding, write).await,
        None => stage_upload(store, target, bytes_written, feeding, write).await,
    }
}

/// Checks that `store` takes an object `target`, before the work for it is done: a bucket that is not there,
/// credentials and permissions, or a folder that cannot be written. Nothing is left there.
///
/// # Errors
/// The error of the store or of the disk.
pub async fn check_writable(store: &Arc<dyn ObjectStore>, target: &Path) -> Result<()> {
    if let Some(path) = local_path(store.as_ref(), target) {
        let shown = path.display().to_string();
        let checked = tokio::task::spawn_blocking(move || check_disk(&path)).await;
        return checked
            .map_err(task_error)?
            .map_err(|error| datafusion_error(Error::io(format!("{shown}: cannot write"), error)));
    }
    // Begins and gives up an upload, which stores of S3 and Google check as they check the real one.
    let mut upload = store.put_multipart(target).await?;
    // A store that cannot abort makes nothing visible either way.
    let _aborted = upload.abort().await;
    check_container(store, target).await
}

/// Checks that a container of Azure is there, where an upload begins without a request.
async fn check_container(store: &Arc<dyn ObjectStore>, target: &Path) -> Result<()> {
    if !store.to_string().contains(AZURE_STORE) {
        return Ok(());
    }
    match store.list(Some(target)).next().await {
        Some(Err(error @ object_store::Error::NotFound { .. })) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Checks that a file can be written beside `path`.
fn check_disk(path: &std::path::Path) -> io::Result<()> {
    let folders = NewFolders::default();
    folders.create_above(path)?;
    let staged = StagedFile::create(path)?;
    staged.probe()
}

/// Folders that a statement has created on the local disk. When the last clone is dropped, the empty ones are
/// removed: those of a statement that has failed. Drop it behind the files.
#[derive(Debug, Clone, Default)]
pub(crate) struct NewFolders(Arc<Mutex<CreatedFolders>>);

#[derive(Debug, Default)]
struct CreatedFolders(Vec<PathBuf>);

impl NewFolders {
    /// Creates the missing folders above an object, if `store` is the local file system. Leaves errors to the store.
    pub(super) fn create_for(&self, store: &dyn ObjectStore, object: &Path) {
        if let Some(file) = local_path(store, object) {
            let _created = self.create_above(&file);
        }
    }

    fn create_above(&self, file: &std::path::Path) -> io::Result<()> {
        let mut created = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let above = file.ancestors().skip(1);
        let missing = above.take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        for folder in missing.collect::<Vec<_>>().into_iter().rev() {
            match std::fs::create_dir(folder) {
                Ok(()) => created.0.push(folder.to_path_buf()),
                // Another statement has created it in the meantime.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for CreatedFolders {
    fn drop(&mut self) {
        // Each folder stands behind the one it is in.
        for folder in self.0.iter().rev() {
            // Fails for a folder with files, which stays.
            let _removed = std::fs::remove_dir(folder);
        }
    }
}

/// Returns the path of `target` on the local disk if `store` is the local file system.
fn local_path(store: &dyn ObjectStore, target: &Path) -> Option<PathBuf> {
    // The store may be wrapped in one that counts or caches.
    let is_local = store.to_string().contains(LOCAL_STORE);
    is_local.then(|| LocalFileSystem::new().path_to_filesystem(target).ok()).flatten()
}

async fn stage_file<T: Send + 'static>(
    path: PathBuf,
    folders: NewFolders,
    bytes_written: Count,
    feeding: impl Future<Output = Result<()>>,
    write: impl FnOnce(ChunkWriter) -> Result<T> + Send + 'static,
) -> Result<(Staged, T)> {
    let shown = path.display().to_string();
    let failed = |error| datafusion_error(Error::io(format!("{shown}: cannot write"), error));
    let created = tokio::task::spawn_blocking(move || {
        folders.create_above(&path)?;
        let staged = StagedFile::create(&path)?;
        staged.probe()?;
        let file = staged.file().try_clone()?;
        Ok((folders, staged, file))
    });
    // The folders are dropped behind the file in them.
    let (folders, staged, file) = created.await.map_err(task_error)?.map_err(failed)?;
    let out = ChunkWriter::new(Way::File(file, bytes_written));
    let writing = tokio::task::spawn_blocking(move || write(out));
    let (fed, written) = tokio::join!(feeding, writing);
    let answer = fed.and_then(|()| written.map_err(task_error)?)?;
    Ok((Staged::File(staged, folders), answer))
}

async fn stage_upload<T: Send + 'static>(
    store: &Arc<dyn ObjectStore>,
    target: &Path,
    bytes_written: Count,
    feeding: impl Future<Output = Result<()>>,
    write: impl FnOnce(ChunkWriter) -> Result<T> + Send + 'static,
) -> Result<(Staged, T)> {
    check_container(store, target).await?;
    let put = store.put_multipart(target).await?;
    let mut upload = Upload(Some(WriteMultipart::new_with_chunk_size(put, PART_BYTES)));
    let (sender, mut chunks) = channel::<Bytes>(4);
    let out = ChunkWriter::new(Way::Upload(sender));
    let writing = tokio::task::spawn_blocking(move || write(out));
    let parts = &mut upload;
    // Owns the chunks, so that a writer does not block forever after its upload failed.
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
    // The error of the cause comes first: a writer without input or without upload fails too.
    match fed.and(uploaded).and_then(|()| written.map_err(task_error)?) {
        Ok(answer) => Ok((staged, answer)),
        Err(error) => {
            staged.abort().await;
            Err(error)
        }
    }
}

/// Writer that passes on its bytes in chunks.
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

    /// Passes on the remaining bytes.
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
