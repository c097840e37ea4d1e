//! The storage of a living corpus: the names of its files, its interface, and retries of failed operations.
//!
//! ```text
//! versions/00000000000000000007.tadoc-version    version 7
//! versions/known-00000000000000000007-<id>.tadoc-known
//!                                                what a program knows of version 7
//! segments/<id>.tadoc                            a segment file
//! segments/<id>.unfinished                       its mark while its writer is alive
//! ```
//!
//! Failures are distinguished by what they say about the state, which a commit has to know:
//!
//! | failure | did it happen | reaction |
//! | --- | --- | --- |
//! | `NotFound`, `Exists` | no | look at the stored file |
//! | `Transient` | perhaps | try again: names are new or the bytes the same |
//! | `Unknown` | perhaps | report: a disk whose sync failed once must not be asked twice |
//! | `Permanent` | no | report |
//!
//! Waits between retries double up to a limit. Each wait is drawn between half of its length and all of it, so that
//! writers that collided once do not collide at every attempt (Brooker, "Exponential backoff and jitter"). Stores that
//! retry by themselves may take minutes for one attempt (`object_store`: 10 times or 3 minutes). After that there are
//! no further attempts. Threads block and wait, so that neither needs a runtime nor blocks the polling thread. A thread
//! costs much less than a sync of a disk.

use std::fmt;
use std::panic::resume_unwind;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures::channel::oneshot;
use futures::stream::BoxStream;
use tadoc::error::{Error, Result};

use crate::staging::LockedFile;

/// Folder of the versions.
pub(super) const VERSIONS: &str = "versions";
/// Folder of the segment files.
pub(super) const SEGMENTS: &str = "segments";
/// Ending of a file's name while it is written, on disks that show unfinished files.
pub(super) const UNFINISHED: &str = ".unfinished";
/// Beginning of the names of files with what a program knows of a version.
pub(super) const KNOWN: &str = "versions/known-";
const VERSION_EXTENSION: &str = ".tadoc-version";
const KNOWN_EXTENSION: &str = ".tadoc-known";
const SEGMENT_EXTENSION: &str = ".tadoc";

/// Returns the name of the file of version `number`, relative to the location of the corpus.
pub(super) fn version_name(number: u64) -> String {
    format!("{VERSIONS}/{number:020}{VERSION_EXTENSION}")
}

/// Returns the number of the version in the file `name`, if the name has the form of a version's.
pub(super) fn version_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix("versions/")?.strip_suffix(VERSION_EXTENSION)?;
    let number = number.parse().ok()?;
    (version_name(number) == name).then_some(number)
}

/// Returns the name of the file `id` with what a program knows of version `number`, relative to the location of the
/// corpus.
pub(super) fn known_name(number: u64, id: CommitId) -> String {
    format!("{KNOWN}{number:020}-{id}{KNOWN_EXTENSION}")
}

/// Returns the number of the version that the file `name` tells about, if the name has the form of such a file's.
pub(super) fn known_number(name: &str) -> Option<u64> {
    let (number, id) = name.strip_prefix(KNOWN)?.strip_suffix(KNOWN_EXTENSION)?.split_once('-')?;
    let number = number.parse().ok()?;
    let id: CommitId = id.parse().ok()?;
    (known_name(number, id) == name).then_some(number)
}

/// Returns the name of the segment file `id`, relative to the location of the corpus.
pub(super) fn segment_name(id: CommitId) -> String {
    format!("{SEGMENTS}/{id}{SEGMENT_EXTENSION}")
}

/// Returns the name of the file that marks the segment file `name` as unfinished.
pub(super) fn mark_name(name: &str) -> String {
    format!("{}{UNFINISHED}", name.strip_suffix(SEGMENT_EXTENSION).unwrap_or(name))
}

/// Returns the name of the segment file that the file `mark` marks.
pub(super) fn marked_name(mark: &str) -> Option<String> {
    let name = format!("{SEGMENTS}/{}{SEGMENT_EXTENSION}", mark.strip_suffix(UNFINISHED)?);
    segment_id(&name).map(|_| name)
}

/// Returns the id of the segment file `name`, if the name has the form of a segment file's.
pub(super) fn segment_id(name: &str) -> Option<CommitId> {
    name.strip_prefix("segments/")?.strip_suffix(SEGMENT_EXTENSION)?.parse().ok()
}

/// A random number that names a commit or a file: 16 bytes, written as a UUID of version 4.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitId([u8; 16]);

impl CommitId {
    /// Creates a new random id.
    ///
    /// # Errors
    /// [`Error::Io`] if the system has no random numbers.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; 16];
        getrandom::getrandom(&mut bytes).map_err(|e| Error::io("asking the system for random numbers", e.into()))?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Ok(Self(bytes))
    }

    /// Creates an id from its bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            let dash = if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for CommitId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = || Error::InvalidArgument {
            name: "commit id",
            got: text.into(),
            allowed: "a UUID such as 01234567-89ab-4cde-8f01-23456789abcd".into(),
        };
        let digits: Vec<u8> = text.bytes().filter(|&byte| byte != b'-').collect();
        let mut bytes = [0; 16];
        if digits.len() != 32 {
            return Err(refuse());
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |c: u8| char::from(c).to_digit(16).ok_or_else(refuse);
            *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        match Self(bytes) {
            // Only one spelling is valid, so that a file has only one name.
            id if id.to_string() == text => Ok(id),
            _ => Err(refuse()),
        }
    }
}

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

/// Time after the first attempt from which no further attempt begins.
const MAX_TIME: Duration = Duration::from_secs(180);

/// Limits for retries of storage operations, and of commits after a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Number of attempts, the first included. At least 1.
    pub max_attempts: u32,
    /// First wait. Each further wait is twice as long.
    pub first_wait: Duration,
    /// Longest wait.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 12, first_wait: Duration::from_millis(20), max_wait: Duration::from_secs(5) }
    }
}

impl RetryPolicy {
    /// Returns the wait after `num_failed` attempts, before jitter.
    fn wait(&self, num_failed: u32) -> Duration {
        let doubled = self.first_wait.saturating_mul(1 << num_failed.saturating_sub(1).min(31));
        doubled.min(self.max_wait)
    }
}

/// State of the attempts at one operation.
#[derive(Debug)]
pub(super) struct Attempts {
    policy: RetryPolicy,
    num_failed: u32,
    started: Instant,
}

impl Attempts {
    pub(super) fn new(policy: RetryPolicy) -> Self {
        Self { policy, num_failed: 0, started: Instant::now() }
    }

    /// Counts a failed attempt. If another attempt is allowed, waits and returns true.
    pub(super) async fn again(&mut self) -> bool {
        self.num_failed += 1;
        if self.num_failed >= self.policy.max_attempts || self.started.elapsed() >= MAX_TIME {
            return false;
        }
        let longest = self.policy.wait(self.num_failed);
        // Without random numbers, or without a thread to wait on, the next attempt comes sooner.
        let random = CommitId::random().map_or(0, |id| u32::from(id.as_bytes()[0]));
        let _waited = wait(longest / 2 + longest / 512 * random).await;
        true
    }
}

/// Calls `attempt` until it succeeds, fails for good, or has been called as often as the policy
/// allows.
pub(super) async fn retrying<T, F: Future<Output = StorageResult<T>>>(
    policy: RetryPolicy,
    mut attempt: impl FnMut() -> F,
) -> StorageResult<T> {
    let mut attempts = Attempts::new(policy);
    loop {
        match attempt().await {
            Err(StorageError::Transient(cause)) => {
                if !attempts.again().await {
                    return Err(StorageError::Transient(cause));
                }
            }
            done => return done,
        }
    }
}

/// Runs `work` on a thread of its own. The work runs to its end even if nobody waits for it any
/// more.
///
/// # Errors
/// [`Error::Io`] if the system cannot start more threads.
pub(super) async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let (sender, receiver) = oneshot::channel();
    let thread = std::thread::Builder::new().name("tadoc-living".into()).spawn(move || {
        // The receiver is gone if nobody waits.
        let _unheard = sender.send(work());
    });
    let thread = thread.map_err(|e| Error::io("starting a thread", e))?;
    match receiver.await {
        Ok(answer) => Ok(answer),
        Err(_) => match thread.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => Err(Error::Cancelled),
        },
    }
}

/// Runs `work`, which uses rayon's workers, on a thread of its own. If the caller is one of these
/// workers, the work gets a pool of its own, because the caller could be the last free worker.
///
/// # Errors
/// The errors of [`on_thread`], and [`Error::External`] if no pool can be started.
pub(super) async fn on_computing_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    if rayon::current_thread_index().is_none() {
        return on_thread(work).await;
    }
    let num_threads = rayon::current_num_threads();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads).build();
    let pool = pool.map_err(|e| Error::external("starting threads", e))?;
    on_thread(move || pool.install(work)).await
}

/// Waits for `duration`.
///
/// # Errors
/// The errors of [`on_thread`].
pub(super) async fn wait(duration: Duration) -> Result<()> {
    if duration.is_zero() { Ok(()) } else { on_thread(move || std::thread::sleep(duration)).await }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_from_their_only_spelling() {
        let id = CommitId::random().unwrap();
        let text = id.to_string();
        assert_eq!(text.parse::<CommitId>().unwrap(), id);
        assert_eq!((text.len(), &text[14..15]), (36, "4"));
        for wrong in ["", "x", &text.replace('-', ""), &text.to_uppercase(), &text[1..]] {
            // An id may have only digits, which are the same in upper and lower case.
            if wrong != text {
                assert!(wrong.parse::<CommitId>().is_err(), "{wrong}");
            }
        }
        assert_ne!(id, CommitId::random().unwrap());
    }

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

    #[test]
    fn waits_double_up_to_the_limit() {
        let policy = RetryPolicy::default();
        let waits: Vec<u128> = [1, 2, 3, 20, 300].map(|n| policy.wait(n).as_millis()).into();
        assert_eq!(waits, [20, 40, 80, 5000, 5000]);
    }

    #[test]
    fn only_transient_failures_are_tried_again() {
        let policy = RetryPolicy { max_attempts: 3, first_wait: Duration::ZERO, ..Default::default() };
        for (error, expected) in [
            (|| StorageError::Transient("busy".into()), 3),
            (|| StorageError::Permanent("refused".into()), 1),
            (|| StorageError::NotFound, 1),
        ] as [(fn() -> StorageError, u32); 3]
        {
            let mut num_calls = 0;
            let attempt = || {
                num_calls += 1;
                std::future::ready(Err::<(), _>(error()))
            };
            let result = futures::executor::block_on(retrying(policy, attempt));
            assert!(result.is_err());
            assert_eq!(num_calls, expected);
        }
    }
}
