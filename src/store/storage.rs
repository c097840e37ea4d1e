//! What a place must be able to do to hold a living corpus, and how its files are called.
//!
//! Failures are told apart by what they say about the state, which is what a commit has to know:
//!
//! | failure | did it happen | then |
//! | --- | --- | --- |
//! | `NotFound`, `Exists` | no | look what is there |
//! | `Transient` | perhaps | try again: names are new or the bytes the same |
//! | `Unknown` | perhaps | report: a disk whose sync failed once must not be asked twice |
//! | `Permanent` | no | report |

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use super::version::CommitId;
use crate::staging::LockedFile;
use tadoc::error::{Error, Result};

/// Folder of the versions.
pub(super) const VERSIONS: &str = "versions";
/// Folder of the segment files.
pub(super) const SEGMENTS: &str = "segments";
/// How a file is called while it is written, on disks that show it then.
pub(super) const UNFINISHED: &str = ".unfinished";
const VERSION_EXTENSION: &str = ".tadoc-version";
const SEGMENT_EXTENSION: &str = ".tadoc";

/// Name of the file of version `number`, below the place of the corpus.
pub(super) fn version_name(number: u64) -> String {
    format!("{VERSIONS}/{number:020}{VERSION_EXTENSION}")
}

/// The number of the version in the file `name`, if it is called like one.
pub(super) fn version_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix("versions/")?.strip_suffix(VERSION_EXTENSION)?;
    let number = number.parse().ok()?;
    (version_name(number) == name).then_some(number)
}

/// Name of the segment file `id`, below the place of the corpus.
pub(super) fn segment_name(id: CommitId) -> String {
    format!("{SEGMENTS}/{id}{SEGMENT_EXTENSION}")
}

/// Name of the file that marks the segment file `name` as one in the making.
pub(super) fn mark_name(name: &str) -> String {
    format!("{}{UNFINISHED}", name.strip_suffix(SEGMENT_EXTENSION).unwrap_or(name))
}

/// Name of the segment file that the file `mark` marks.
pub(super) fn marked_name(mark: &str) -> Option<String> {
    let name = format!("{SEGMENTS}/{}{SEGMENT_EXTENSION}", mark.strip_suffix(UNFINISHED)?);
    segment_id(&name).map(|_| name)
}

/// The id of the segment file `name`, if it is called like one.
pub(super) fn segment_id(name: &str) -> Option<CommitId> {
    name.strip_prefix("segments/")?.strip_suffix(SEGMENT_EXTENSION)?.parse().ok()
}

/// Why a storage failed.
#[derive(Debug)]
pub enum StorageError {
    /// There is no file of that name.
    NotFound,
    /// There is a file of that name already, or someone else is about to write it.
    Exists,
    /// It failed this time, and may have happened all the same; trying again does no harm.
    Transient(Cause),
    /// It may have happened, and cannot be tried again.
    Unknown(Cause),
    /// It did not happen and will not.
    Permanent(Cause),
}

/// What lies below a failure.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// `Result` with a [`StorageError`].
pub type StorageResult<T> = std::result::Result<T, StorageError>;

/// Bytes of a file in the making; an error ends the file, which then must not show.
pub type ByteStream = BoxStream<'static, Result<Bytes>>;

impl StorageError {
    /// The error of the crate, of doing `what`.
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

/// A file as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Name below the place of the corpus, such as `versions/….tadoc-version`.
    pub name: String,
    /// Bytes.
    pub len_bytes: u64,
    /// When it was written, by the storage's clock.
    pub modified: SystemTime,
}

/// Says of a segment file that its writer lives: it is in the making, or waits for its commit. Dropped,
/// the file is abandoned.
#[derive(Debug)]
pub struct Hold {
    name: String,
    mark: LockedFile,
}

impl Hold {
    pub(super) fn new(name: String, mark: LockedFile) -> Self {
        Self { name, mark }
    }

    /// Name of the segment file, below the place of the corpus.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends it: the file is committed, or gone.
    pub(super) fn release(self) {
        // What is left of it is an empty file, which is looked at again.
        let _removed = self.mark.remove();
    }
}

/// A folder or prefix that can hold a living corpus. Names are relative to it, parts divided by `/`.
///
/// What returned without an error is durable, and seen by every call that begins afterwards.
#[async_trait]
pub trait Storage: fmt::Debug + Send + Sync + 'static {
    /// The place in the words of the user, for messages.
    fn place(&self) -> String;

    /// Makes what must be there before files are written.
    async fn prepare(&self) -> StorageResult<()>;

    /// Writes the file `name` in one step, unless there is one: then [`StorageError::Exists`], also
    /// where another writer is about to make it. Nobody ever sees a part of it.
    async fn put_if_absent(&self, name: &str, bytes: Bytes) -> StorageResult<()>;

    /// Writes the file `name`, which nobody knows yet, from `chunks`. Where these end in an error
    /// the file does not show, or is left to [`LivingStore::clean_up`](super::LivingStore::clean_up).
    async fn put_stream(&self, name: &str, chunks: ByteStream) -> StorageResult<()>;

    /// Holds the segment file `name`, before it is written. Nothing where the storage cannot tell later
    /// whether the writer lives.
    async fn hold(&self, _name: &str) -> Option<Hold> {
        None
    }

    /// Takes over the segment files whose writers have ended holding them.
    async fn abandoned(&self) -> Vec<Hold> {
        Vec::new()
    }

    /// The bytes of a file; [`StorageError::Permanent`] where they are more than `max_bytes`.
    async fn get(&self, name: &str, max_bytes: u64) -> StorageResult<Bytes>;

    /// Whether there is a file `name`.
    async fn exists(&self, name: &str) -> StorageResult<bool>;

    /// The files of `folder`, in any order; only those whose names come after `after`, if that is
    /// given. Nothing where there is no such folder.
    async fn list(&self, folder: &str, after: Option<&str>) -> StorageResult<Vec<StoredFile>>;

    /// Removes the files `names`, all in `folder`; those that are not there count as removed. Of
    /// versions one after the other, in this order; segment files in any order.
    async fn remove(&self, folder: &str, names: &[String]) -> StorageResult<()>;
}

#[async_trait]
impl Storage for Arc<dyn Storage> {
    fn place(&self) -> String {
        self.as_ref().place()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        assert_eq!(version_name(7), "versions/00000000000000000007.tadoc-version");
        assert_eq!(version_number(&version_name(u64::MAX)), Some(u64::MAX));
        for wrong in [
            "versions/7.tadoc-version",
            "versions/+0000000000000000007.tadoc-version",
            "versions/00000000000000000007.tadoc-version.unfinished",
            "00000000000000000007.tadoc-version",
        ] {
            assert_eq!(version_number(wrong), None, "{wrong}");
        }
        let id = CommitId::from_bytes([7; 16]);
        assert_eq!(segment_id(&segment_name(id)), Some(id));
        assert_eq!(segment_id("segments/x.tadoc"), None);
        let mark = mark_name(&segment_name(id));
        assert_eq!(marked_name(mark.strip_prefix("segments/").unwrap()), Some(segment_name(id)));
        assert_eq!(marked_name("x.unfinished"), None);
    }
}
