//! The handle of a living corpus, which opens it and reads its versions and edits; and the storage at a location.
//!
//! To find the latest version, a handle asks for the version after the last one it has seen. This takes the same time
//! for any number of versions. Only if it exists, the handle lists the later versions. Up to 16 versions are read at a
//! time. The total size of edits is listed once. Later puts of the same handle are added to it.
//!
//! | location | storage |
//! | --- | --- |
//! | a path, or `file://…` | [`LocalFolder`], which is durable on local disks |
//! | any other URL | [`ObjectPrefix`] in a store |
//!
//! An object store is configured from the environment, credentials included, unless the caller has one.
//!
//! Segment files whose writers ended before their commit are removed:
//!
//! ```text
//! write_part   hold ─▶ write ─▶ kept by the handle ─▶ commit ─▶ released
//! killed       the mark stays, its lock ends ─▶ the first commit of another handle: does a version
//!              name the file? no: it is removed; then the mark is removed
//! ```
//!
//! A handle that finds a mark without a lock first takes the lock and then reads the versions. If the writer committed,
//! it has done so by that time. Each handle lists the names once. It reads versions only if there is such a mark.

use std::collections::HashSet;
use std::future::Future;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::ObjectStore;
use url::Url;

use tadoc::edits::{Edit, EditBatch, decode_batch};
use tadoc::error::{Error, Result};
use tadoc::text::TokenizerProfile;

use crate::local::LocalFolder;
use crate::object::ObjectPrefix;
use crate::storage::{
    CommitId, Hold, RetryPolicy, SEGMENTS, Storage, StorageError, StoredFile, VERSIONS, retrying, version_name,
    version_number,
};
use crate::version::{Part, Version, decode_manifest, decode_version};

/// Largest number of versions that are read at a time.
const READS_AT_ONCE: usize = 16;

/// Options for access to a living corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreOptions {
    /// Retries of storage operations, and of commits after a conflict.
    pub retry: RetryPolicy,
    /// Largest length of a version's file, and of the edits in it, in bytes.
    pub max_version_bytes: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { retry: RetryPolicy::default(), max_version_bytes: 1 << 30 }
    }
}

/// Edits of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionEdits {
    /// Number of the version that added them.
    pub version: u64,
    /// Batch of edits. Its document ids are those of the version before.
    pub batch: EditBatch,
}

/// Handle of a living corpus. Clones share their knowledge of it.
///
/// ```
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::edits::{Edit, EditBatch};
/// use tadoc_store::{Change, CommitKind, LivingStore, LocalFolder, StoreOptions};
/// use tadoc::text::TokenizerProfile;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let root = dir.path().join("notes");
/// # futures::executor::block_on(async {
/// let folder = LocalFolder::new(root);
/// let store =
///     LivingStore::create(folder, TokenizerProfile::default(), StoreOptions::default()).await?;
///
/// // Many documents: a file of segments, then the commit that names it.
/// let written = store
///     .write_part(|out| {
///         let mut builder = CorpusBuilder::new(out, IngestOptions::default())?;
///         builder.push_document("a.txt", b"to be or not to be")?;
///         Ok(builder.finish(None)?.1.footer)
///     })
///     .await?;
/// let base = store.latest().await?;
/// let version = store.commit(&base, &Change::append(CommitKind::Append, &[written])).await?;
/// assert_eq!((version.number, version.num_doc_ids()), (2, 1));
///
/// // A small change: one file, two syncs.
/// let text = b", that is the question".to_vec();
/// let batch = EditBatch { edits: vec![Edit::AppendText { doc_id: 0, text }], ..Default::default() };
/// let edited = store.commit(&version, &Change::edit(CommitKind::Edit, &batch)).await?;
/// assert_eq!(store.edits(edited.edit_versions()).await?[0].batch, batch);
///
/// // What the author of a change has seen is not the latest any more: nothing happens.
/// assert!(store.commit(&version, &Change::edit(CommitKind::Edit, &batch)).await.is_err());
/// assert_eq!(store.history().await?.len(), 3);
/// # Ok::<(), tadoc::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct LivingStore {
    storage: Arc<dyn Storage>,
    options: StoreOptions,
    profile: TokenizerProfile,
    last_seen: Arc<AtomicU64>,
    edit_bytes: Arc<Mutex<Option<EditBytes>>>,
    pub(super) abandoned: Arc<Abandoned>,
}

/// Total length of the files of versions whose edits are not in the parts, as known of one version.
#[derive(Debug, Clone, Copy)]
struct EditBytes {
    commit_id: CommitId,
    edits_since: u64,
    len_bytes: u64,
}

impl LivingStore {
    /// Creates a handle of the corpus in `storage`, before anything is read or written.
    pub(super) fn new(storage: impl Storage, profile: TokenizerProfile, options: StoreOptions) -> Self {
        let last_seen = Arc::default();
        let edit_bytes = Arc::default();
        let abandoned = Arc::default();
        Self { storage: Arc::new(storage), options, profile, last_seen, edit_bytes, abandoned }
    }

    /// Opens the corpus in `storage`.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no corpus, and those of [`LivingStore::latest`].
    pub async fn open(storage: impl Storage, options: StoreOptions) -> Result<Self> {
        let mut store = Self::new(storage, TokenizerProfile::default(), options);
        store.profile = store.latest().await?.profile;
        Ok(store)
    }

    /// Returns the tokenizer profile of the corpus.
    pub fn profile(&self) -> TokenizerProfile {
        self.profile
    }

    /// Returns the location in the words of the user.
    pub fn location(&self) -> String {
        self.storage.location()
    }

    /// Returns the version of the latest commit.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::External`] from the storage. [`Error::Format`],
    /// [`Error::Checksum`], [`Error::Version`] and [`Error::Capacity`] if the file of the version
    /// cannot be read. [`Error::Missing`] if no versions exist any more.
    pub async fn latest(&self) -> Result<Version> {
        loop {
            let seen = self.last_seen.load(Ordering::Relaxed);
            if seen > 0 && !self.has_version(seen + 1).await? {
                match self.read_version(seen).await {
                    // Clean-ups remove versions in ascending order. Both may be gone while later
                    // ones exist.
                    Err(Error::Missing { .. }) => {}
                    read => return read,
                }
            }
            let after = (seen > 1).then(|| version_name(seen - 1));
            let mut found = self.version_files(after.as_deref()).await?;
            if found.is_empty() && after.is_some() {
                // The corpus has changed: someone restored an earlier state.
                found = self.version_files(None).await?;
            }
            let Some(newest) = found.iter().filter_map(|file| version_number(&file.name)).max() else {
                return Err(self.missing_version(None).await);
            };
            match self.read_version(newest).await {
                Ok(version) => return Ok(version),
                // A clean-up removed it, so a later version exists now.
                Err(Error::Missing { .. }) if newest > seen => self.see(newest),
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the version `number`, for reading the corpus in an earlier state.
    ///
    /// # Errors
    /// [`Error::Missing`] if the version does not exist, or if a clean-up removed files that it
    /// needs, and those of [`LivingStore::latest`].
    pub async fn version(&self, number: u64) -> Result<Version> {
        let version = self.read_version(number).await?;
        let versions = self.version_files(None).await?;
        let segments = self.files(SEGMENTS, None).await?;
        let files = versions.into_iter().chain(segments);
        let files: HashSet<String> = files.map(|file| file.name).collect();
        let mut names = version.parts.iter().filter_map(Part::file_name);
        let is_whole = version.edit_versions().all(|number| files.contains(&version_name(number)))
            && names.all(|name| files.contains(&name));
        if is_whole { Ok(version) } else { Err(self.missing_version(Some(number)).await) }
    }

    /// Returns the edits of `versions`, in order, without versions that have none. The edits of
    /// [`Version::edit_versions`] turn the documents of the parts into the current ones.
    ///
    /// # Errors
    /// The errors of [`LivingStore::version`].
    pub async fn edits(&self, versions: RangeInclusive<u64>) -> Result<Vec<VersionEdits>> {
        let read = futures::stream::iter(versions).map(|number| self.read_edits(number).boxed());
        let edits: Vec<_> = read.buffered(READS_AT_ONCE).try_collect().await?;
        Ok(edits.into_iter().flatten().collect())
    }

    /// Returns the number of documents of `version`: its ids without the dropped ones.
    ///
    /// # Errors
    /// The errors of [`LivingStore::edits`].
    pub async fn num_docs(&self, version: &Version) -> Result<u64> {
        let edits = self.edits(version.edit_versions()).await?;
        let edits = edits.iter().flat_map(|edits| &edits.batch.edits);
        let drops = edits.filter(|edit| matches!(edit, Edit::DropDocument { .. }));
        let dropped_before = version.dropped.iter().map(|ids| ids.end - ids.start);
        let num_dropped = dropped_before.fold(drops.count() as u64, u64::saturating_add);
        Ok(version.num_doc_ids().saturating_sub(num_dropped))
    }

    /// Returns all existing versions, in order of number.
    ///
    /// # Errors
    /// The errors of [`LivingStore::latest`].
    pub async fn history(&self) -> Result<Vec<Version>> {
        let files = self.version_files(None).await?;
        let mut numbers: Vec<u64> = files.iter().filter_map(|f| version_number(&f.name)).collect();
        numbers.sort_unstable();
        self.read_versions(numbers).await
    }

    /// Reads the versions `numbers`, without those that do not exist any more.
    pub(super) async fn read_versions(&self, numbers: Vec<u64>) -> Result<Vec<Version>> {
        let read = futures::stream::iter(numbers).map(|number| self.read_if_there(number).boxed());
        let versions: Vec<_> = read.buffered(READS_AT_ONCE).try_collect().await?;
        Ok(versions.into_iter().flatten().collect())
    }

    async fn read_if_there(&self, number: u64) -> Result<Option<Version>> {
        match self.read_version(number).await {
            Ok(version) => Ok(Some(version)),
            Err(Error::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns true if version `number` exists.
    pub(super) async fn has_version(&self, number: u64) -> Result<bool> {
        let name = version_name(number);
        let exists = retrying(self.options.retry, || self.storage.exists(&name)).await;
        exists.map_err(|e| e.into_error(format!("looking for {}", self.name_for(&name))))
    }

    /// Reads the version `number`, without unpacking its edits.
    pub(super) async fn read_version(&self, number: u64) -> Result<Version> {
        let (file, bytes) = self.read_manifest(number).await?;
        let version = decode_version(&file, &bytes, self.options.max_version_bytes)?;
        self.seen(&file, version, number)
    }

    /// Reads the file of version `number`, and returns its name for messages and its bytes.
    async fn read_manifest(&self, number: u64) -> Result<(String, Bytes)> {
        let name = version_name(number);
        let max_bytes = self.options.max_version_bytes;
        let bytes = retrying(self.options.retry, || self.storage.get(&name, max_bytes)).await;
        let bytes = match bytes {
            Err(StorageError::NotFound) => return Err(self.missing_version(Some(number)).await),
            Err(e) => return Err(e.into_error(format!("reading {}", self.name_for(&name)))),
            Ok(bytes) => bytes,
        };
        Ok((self.name_for(&name), bytes))
    }

    /// Records that `version`, read from `file`, exists, after checking that its number is
    /// `number`.
    fn seen(&self, file: &str, version: Version, number: u64) -> Result<Version> {
        if version.number != number {
            let reason = format!("expected version {number}, got {}", version.number);
            let file = file.to_string();
            let section = "version";
            return Err(Error::Format { file, section, offset: 24, reason });
        }
        self.see(number);
        Ok(version)
    }

    async fn read_edits(&self, number: u64) -> Result<Option<VersionEdits>> {
        let (file, bytes) = self.read_manifest(number).await?;
        let decoded = decode_manifest(&file, &bytes, self.options.max_version_bytes)?;
        let version = self.seen(&file, decoded.0, number)?;
        let edits = decoded.1;
        let batch = edits.map(|edits| decode_batch(&file, &edits)).transpose()?;
        let edits = batch.map(|batch| VersionEdits { version: number, batch });
        let added = edits.iter().flat_map(|edits| &edits.batch.edits);
        let added = added.filter(|edit| edit.doc_id().is_none()).count() as u64;
        let declared = version.parts.iter().map(|part| match part {
            Part::Edits { version, num_docs } if *version == number => *num_docs,
            _ => 0,
        });
        let declared: u64 = declared.sum();
        let sets_columns = edits.iter().any(|of| of.batch.edits.iter().any(Edit::sets_columns));
        if sets_columns && !version.sets_columns {
            let reason = "expected no edits that set columns, as the version says, got some".into();
            return Err(Error::Format { file, section: "edits", offset: 0, reason });
        }
        if added != declared {
            let reason = format!("expected edits that add {declared} documents, got {added}");
            return Err(Error::Format { file, section: "edits", offset: 0, reason });
        }
        Ok(edits)
    }

    pub(super) fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    pub(super) fn options(&self) -> &StoreOptions {
        &self.options
    }

    /// Returns the name of a file of the corpus, for messages.
    pub(super) fn name_for(&self, name: &str) -> String {
        format!("{}/{name}", self.location())
    }

    /// Records that version `number` exists or existed.
    pub(super) fn see(&self, number: u64) {
        self.last_seen.fetch_max(number, Ordering::Relaxed);
    }

    /// Returns the total length of the files of versions whose edits are not in the parts of
    /// `version`, in bytes. Versions without edits count too.
    ///
    /// # Errors
    /// The errors of a listing. There is no listing if the handle has listed before and all later
    /// versions are its own.
    pub async fn edit_bytes(&self, version: &Version) -> Result<u64> {
        let numbers = version.edit_versions();
        if numbers.is_empty() {
            return Ok(0);
        }
        let known = *self.known_edit_bytes();
        if let Some(known) = known.filter(|known| known.commit_id == version.commit_id) {
            return Ok(known.len_bytes);
        }
        let listed = self.version_files(Some(&version_name(numbers.start() - 1))).await?;
        let is_of_edits = |number: Option<u64>| number.is_some_and(|n| numbers.contains(&n));
        let files = listed.iter().filter(|file| is_of_edits(version_number(&file.name)));
        let len_bytes = files.map(|file| file.len_bytes).sum();
        let Version { commit_id, edits_since, .. } = *version;
        *self.known_edit_bytes() = Some(EditBytes { commit_id, edits_since, len_bytes });
        Ok(len_bytes)
    }

    /// Records that this handle put `next` as a file of `len_bytes`.
    pub(super) fn note_put(&self, next: &Version, len_bytes: u64) {
        let mut known = self.known_edit_bytes();
        let before = known.filter(|known| known.commit_id == next.parent_id);
        let Version { commit_id, edits_since, .. } = *next;
        let len_bytes = match before {
            _ if edits_since > next.number => 0,
            _ if edits_since == next.number => len_bytes,
            Some(before) if before.edits_since == edits_since => before.len_bytes + len_bytes,
            _ => return,
        };
        *known = Some(EditBytes { commit_id, edits_since, len_bytes });
    }

    fn known_edit_bytes(&self) -> MutexGuard<'_, Option<EditBytes>> {
        self.edit_bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists the files of versions, after the file named `after`.
    pub(super) async fn version_files(&self, after: Option<&str>) -> Result<Vec<StoredFile>> {
        let mut files = self.files(VERSIONS, after).await?;
        files.retain(|file| version_number(&file.name).is_some());
        Ok(files)
    }

    pub(super) async fn files(&self, folder: &str, after: Option<&str>) -> Result<Vec<StoredFile>> {
        retrying(self.options.retry, || self.storage.list(folder, after))
            .await
            .map_err(|e| e.into_error(format!("listing {}", self.name_for(folder))))
    }

    /// Returns the error for a missing version, which says which versions exist.
    async fn missing_version(&self, number: Option<u64>) -> Error {
        let files = match self.version_files(None).await {
            Ok(files) => files,
            Err(error) => return error,
        };
        let numbers = files.iter().filter_map(|file| version_number(&file.name));
        let existing = match (numbers.clone().min(), numbers.max()) {
            (Some(oldest), Some(newest)) => {
                format!("versions {oldest} to {newest} are there")
            }
            _ => "no living corpus is there; create one, or open .tadoc files by their name".into(),
        };
        let what = number.map_or("version".into(), |number| format!("version {number}"));
        Error::Missing { location: self.location(), what, existing }
    }
}

/// Returns the storage at `location`, a path or a URL. The storage is not accessed yet.
///
/// ```
/// use tadoc_store::{LivingStore, StoreOptions, storage_at};
/// use tadoc::text::TokenizerProfile;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let location = dir.path().join("notes");
/// # futures::executor::block_on(async {
/// let options = StoreOptions::default();
/// LivingStore::create(storage_at(&location)?, TokenizerProfile::default(), options).await?;
/// let store = LivingStore::open(storage_at(&location)?, options).await?;
/// assert_eq!(store.latest().await?.number, 1);
/// # Ok::<(), tadoc::Error>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// [`Error::InvalidArgument`] for an invalid URL, and [`Error::External`] if no store can be made
/// for it.
pub fn storage_at(location: impl AsRef<Path>) -> Result<Arc<dyn Storage>> {
    storage_in(location, |url| {
        // The stores' settings have the names of environment variables in lower case.
        let environment = std::env::vars().map(|(key, value)| (key.to_ascii_lowercase(), value));
        let made = object_store::parse_url_opts(url, environment);
        let (store, _) = made.map_err(|error| Error::external(format!("opening {url}"), error))?;
        Ok(Arc::from(store))
    })
}

/// Returns the storage at `location` as [`storage_at`] does. `store_of` returns the store of a URL.
///
/// # Errors
/// [`Error::InvalidArgument`] for an invalid URL, and the errors of `store_of`.
pub fn storage_in(
    location: impl AsRef<Path>,
    store_of: impl FnOnce(&Url) -> Result<Arc<dyn ObjectStore>>,
) -> Result<Arc<dyn Storage>> {
    let location = location.as_ref();
    let Some(location) = location.to_str().filter(|location| location.contains("://")) else {
        return Ok(Arc::new(LocalFolder::new(location)));
    };
    let refuse = |got: String| {
        let allowed = "a path, or a URL such as s3://bucket/notes".into();
        Error::InvalidArgument { name: "place", got, allowed }
    };
    let url = Url::parse(location).map_err(|error| refuse(format!("{location}: {error}")))?;
    if url.scheme() == "file" {
        let folder = url.to_file_path().map_err(|()| refuse(format!("{location}, which is no path")))?;
        return Ok(Arc::new(LocalFolder::new(folder)));
    }
    let path = object_store::path::Path::from_url_path(url.path());
    let path = path.map_err(|error| refuse(format!("{location}: {error}")))?;
    let prefix = ObjectPrefix::new(store_of(&url)?, path);
    Ok(Arc::new(prefix.with_location(location.trim_end_matches('/'))))
}

/// State of a handle for abandoned files.
#[derive(Debug, Default)]
pub(super) struct Abandoned {
    /// Holds of files that this handle wrote and has not committed.
    holds: Mutex<Vec<Hold>>,
    /// True after this handle has looked for abandoned files of others.
    is_looked_for: AtomicBool,
}

impl Abandoned {
    fn holds(&self) -> MutexGuard<'_, Vec<Hold>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the hold of a file until its commit if the file was written. Otherwise removes the
    /// file.
    pub(super) async fn keep_or_remove(&self, storage: &dyn Storage, hold: Option<Hold>, is_written: bool) {
        match hold {
            Some(hold) if is_written => self.holds().push(hold),
            Some(hold) => remove_held(storage, hold).await,
            None => {}
        }
    }

    /// Removes the files that this handle wrote and has not committed.
    pub(super) async fn remove_own(&self, storage: &dyn Storage) {
        let own = std::mem::take(&mut *self.holds());
        for hold in own {
            remove_held(storage, hold).await;
        }
    }

    /// Releases the holds of the files that the committed version `next` names. The first commit of
    /// a handle also removes the abandoned files of others. `versions` reads all versions. It is
    /// polled only if there are such files.
    pub(super) async fn let_go(
        &self,
        storage: &dyn Storage,
        next: &Version,
        versions: impl Future<Output = Result<Vec<Version>>>,
    ) {
        let named = names(std::slice::from_ref(next));
        let committed: Vec<Hold> = self.holds().extract_if(.., |hold| named.contains(hold.name())).collect();
        committed.into_iter().for_each(Hold::release);
        if !self.is_looked_for.swap(true, Ordering::Relaxed) {
            // The commit is done. If a file cannot be removed now, another handle will remove it.
            let _removed = remove_abandoned(storage, versions).await;
        }
    }
}

async fn remove_abandoned(storage: &dyn Storage, versions: impl Future<Output = Result<Vec<Version>>>) -> Result<()> {
    let holds = storage.abandoned().await;
    if holds.is_empty() {
        return Ok(());
    }
    let named = names(&versions.await?);
    for hold in holds {
        if named.contains(hold.name()) { hold.release() } else { remove_held(storage, hold).await }
    }
    Ok(())
}

async fn remove_held(storage: &dyn Storage, hold: Hold) {
    let removed = storage.remove(SEGMENTS, &[hold.name().to_owned()]).await;
    // If the removal failed, the mark stays and the next handle tries again.
    if removed.is_ok() {
        hold.release();
    }
}

/// Returns the names of the segment files of `versions`.
fn names(versions: &[Version]) -> HashSet<String> {
    versions.iter().flat_map(|version| &version.parts).filter_map(Part::file_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, CommitKind, LivingStore, LocalFolder, StoreOptions, WrittenPart};
    use tadoc::build::{CorpusBuilder, IngestOptions};
    use tadoc::text::TokenizerProfile;

    async fn write(store: &LivingStore) -> WrittenPart {
        let written = store.write_part(|out| {
            let mut builder = CorpusBuilder::new(out, IngestOptions::default())?;
            builder.push_document("a", b"to be or not to be")?;
            Ok(builder.finish(None)?.1.footer)
        });
        written.await.unwrap()
    }

    #[test]
    fn what_a_writer_left_goes_with_the_next_commit_and_what_lives_stays() {
        let dir = tempfile::tempdir().unwrap();
        let location = || LocalFolder::new(dir.path());
        let num_files = || std::fs::read_dir(dir.path().join(SEGMENTS)).unwrap().count();
        let open = async || LivingStore::open(location(), StoreOptions::default()).await.unwrap();
        futures::executor::block_on(async {
            let profile = TokenizerProfile::default();
            let options = StoreOptions::default();
            LivingStore::create(location(), profile, options).await.unwrap();
            let commit = async |store: &LivingStore, parts: &[WrittenPart]| {
                let base = store.latest().await.unwrap();
                let change = Change::append(CommitKind::Append, parts);
                store.commit(&base, &change).await.unwrap()
            };
            // There are two files and their marks: of a writer that ends, and of one that lives.
            let ended = open().await;
            write(&ended).await;
            let alive = open().await;
            let part = write(&alive).await;
            assert_eq!(num_files(), 4);
            drop(ended);
            commit(&open().await, &[]).await;
            assert_eq!(num_files(), 2);
            // The living writer commits as usual, and its mark is removed.
            let version = commit(&alive, &[part]).await;
            assert_eq!((num_files(), version.num_doc_ids()), (1, 1));
            // A mark stays if its writer ends between its commit and the removal of the mark.
            let name = version.parts[0].file_name().unwrap();
            std::fs::write(dir.path().join(crate::storage::mark_name(&name)), "").unwrap();
            commit(&open().await, &[]).await;
            assert_eq!(num_files(), 1);
            let latest = alive.latest().await.unwrap();
            alive.corpus(&latest, &tadoc::format::OpenLimits::default()).await.unwrap();
            // A failed write leaves no file.
            let failed = alive.write_part(|_| Err(tadoc::Error::Cancelled)).await;
            assert!(failed.is_err() && num_files() == 1);
        });
    }
}
