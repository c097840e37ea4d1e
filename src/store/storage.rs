//! The interface of a storage for a living corpus.
//!
//! Failures are distinguished by what they say about the state, which a commit has to know:
//!
//! | failure | did it happen | reaction |
//! | --- | --- | --- |
//! | `NotFound`, `Exists` | no | look at the stored file |
//! | `Transient` | perhaps | try again: names are new or the bytes the same |
//! | `Unknown` | perhaps | report: a disk whose sync failed once must not be asked twice |
//! | `Permanent` | no | report |

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use crate::staging::LockedFile;
use tadoc::error::{Error, Result};

/// Failure of a storage operation.
#[derive(Debug)]
pub enum StorageError {
    /// A file that does not exist.
    NotFound,
    /// A file that already exists, or that another writer is about to write.
    Exists,
    /// A failed attempt that may have taken effect. Trying again does no harm.
    Transient(Cause),
    /// An operation that may have taken effect and must not be tried again.
    Unknown(Cause),
    /// An operation that did not take effect and cannot succeed.
    Permanent(Cause),
}

/// Underlying error of a failure.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Alias of `Result` with a [`StorageError`].
pub type StorageResult<T> = std::result::Result<T, StorageError>;

/// Stream of the bytes of a new file. An error ends the file, which then must not become visible.
pub type ByteStream = BoxStream<'static, Result<Bytes>>;

impl StorageError {
    /// Converts the failure to the crate's error for the operation `what`.
    pub fn into_error(self, what: impl Into<String>) -> Error {
        let cause = match self {
            Self::NotFound => "there is no such file".into(),
            Self::Exists => "there is such a file already".into(),
            Self::Transient(cause) | Self::Unknown(cause) | Self::Permanent(cause) => cause,
        };
        match cause.downcast::<std::io::Error>() {
            Ok(source) => Error::io(what, *source),
            Err(cause) => Error::external(what, cause),
        }
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("not found"),
            Self::Exists => f.write_str("exists already"),
            Self::Transient(cause) | Self::Unknown(cause) | Self::Permanent(cause) => cause.fmt(f),
        }
    }
}

/// A file in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Name relative to the location of the corpus, such as `versions/….tadoc-version`.
    pub name: String,
    /// Length of the file, in bytes.
    pub len_bytes: u64,
    /// Time of the last write, by the storage's clock.
    pub modified: SystemTime,
}

/// A lock that shows that the writer of a segment file is alive: the file is being written, or
/// waits for its commit. When the hold is dropped, the file is abandoned.
#[derive(Debug)]
pub struct Hold {
    name: String,
    mark: LockedFile,
}

impl Hold {
    pub(super) fn new(name: String, mark: LockedFile) -> Self {
        Self { name, mark }
    }

    /// Returns the name of the segment file, relative to the location of the corpus.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends the hold, after the file was committed or removed.
    pub(super) fn release(self) {
        // If the removal fails, an empty file stays, and a later commit looks at it again.
        let _removed = self.mark.remove();
    }
}

/// A folder or prefix that can hold a living corpus. Names are relative to it, with parts separated
/// by `/`.
///
/// The effects of an operation that returned without an error are durable, and visible to every
/// call that begins afterwards.
#[async_trait]
pub trait Storage: fmt::Debug + Send + Sync + 'static {
    /// Returns the location in the words of the user, for messages.
    fn location(&self) -> String;

    /// Creates the folders that must exist before files are written.
    async fn prepare(&self) -> StorageResult<()>;

    /// Writes the file `name` in one step, unless it exists: then [`StorageError::Exists`], also if
    /// another writer is about to create it. Nobody ever sees a part of the file.
    async fn put_if_absent(&self, name: &str, bytes: Bytes) -> StorageResult<()>;

    /// Writes the file `name`, which is not in use yet, from `chunks`. If they end in an error, the
    /// file does not become visible, or is left to
    /// [`LivingStore::clean_up`](super::LivingStore::clean_up).
    async fn put_stream(&self, name: &str, chunks: ByteStream) -> StorageResult<()>;

    /// Creates a hold of the segment file `name`, before it is written. Returns `None` if the
    /// storage cannot tell later if the writer is alive.
    async fn hold(&self, _name: &str) -> Option<Hold> {
        None
    }

    /// Takes over the holds of segment files whose writers have ended.
    async fn abandoned(&self) -> Vec<Hold> {
        Vec::new()
    }

    /// Returns the bytes of a file, or [`StorageError::Permanent`] if they are more than
    /// `max_bytes`.
    async fn get(&self, name: &str, max_bytes: u64) -> StorageResult<Bytes>;

    /// Returns true if a file `name` exists.
    async fn exists(&self, name: &str) -> StorageResult<bool>;

    /// Lists the files of `folder`, in any order. If `after` is given, only files whose names come
    /// after it are listed. Returns no files if there is no such folder.
    async fn list(&self, folder: &str, after: Option<&str>) -> StorageResult<Vec<StoredFile>>;

    /// Removes the files `names`, all in `folder`. Files that do not exist count as removed.
    /// Versions are removed one after the other, in this order, segment files in any order.
    async fn remove(&self, folder: &str, names: &[String]) -> StorageResult<()>;
}

#[async_trait]
impl Storage for Arc<dyn Storage> {
    fn location(&self) -> String {
        self.as_ref().location()
    }

    async fn prepare(&self) -> StorageResult<()> {
        self.as_ref().prepare().await
    }

    async fn put_if_absent(&self, name: &str, bytes: Bytes) -> StorageResult<()> {
        self.as_ref().put_if_absent(name, bytes).await
    }

    async fn put_stream(&self, name: &str, chunks: ByteStream) -> StorageResult<()> {
        self.as_ref().put_stream(name, chunks).await
    }

    async fn hold(&self, name: &str) -> Option<Hold> {
        self.as_ref().hold(name).await
    }

    async fn abandoned(&self) -> Vec<Hold> {
        self.as_ref().abandoned().await
    }

    async fn get(&self, name: &str, max_bytes: u64) -> StorageResult<Bytes> {
        self.as_ref().get(name, max_bytes).await
    }

    async fn exists(&self, name: &str) -> StorageResult<bool> {
        self.as_ref().exists(name).await
    }

    async fn list(&self, folder: &str, after: Option<&str>) -> StorageResult<Vec<StoredFile>> {
        self.as_ref().list(folder, after).await
    }

    async fn remove(&self, folder: &str, names: &[String]) -> StorageResult<()> {
        self.as_ref().remove(folder, names).await
    }
}
