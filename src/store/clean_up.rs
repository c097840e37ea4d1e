//! Files beside the latest version: those that nobody needs are removed by their age, and a program keeps what it knows
//! of a version for its next run.
//!
//! ```text
//! versions    1 … 4 | 5  6  7 | 8 … 12 (latest)
//!             gone    edits     kept: superseded less than `age` ago, and the latest
//!                     of 8 …    (8 was the latest `age` ago)
//! segments    those that 8 … 12 name are kept; others are removed if they are older than `age`
//! unfinished  files of writers that ended early: removed by the same rule
//! ```
//!
//! Versions are removed in ascending order, durably, and before the segments that they name. So a clean-up that is
//! interrupted leaves no version that seems complete but is not (`commit` relies on this). Segments are removed in any
//! order, many at once if the storage supports it. Files with other names stay. The age protects writers between their
//! segment files and their commit, and readers of old versions. With an age of zero there must be neither.
//!
//! A corpus that was created and never committed to can be removed as a whole ([`LivingStore::remove_unused`]).
//!
//! # Knowledge
//!
//! ```text
//! versions/known-00000000000000000007-<id>.tadoc-known     bytes of a program, written after version 7
//! ```
//!
//! These bytes are no part of the corpus, and nothing but time is lost with them. Each write removes the earlier
//! ones. A program that finds them asks which documents the commits since then have changed.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tadoc::error::{Error, Result};

use crate::storage::{
    CommitId, KNOWN, SEGMENTS, StorageError, StoredFile, UNFINISHED, VERSIONS, known_name, known_number, retrying,
    segment_id, version_number,
};
use crate::store::LivingStore;
use crate::version::{Part, Version};

/// Result of a clean-up or of a dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CleanUp {
    /// Removed files, in order of removal.
    pub removed: Vec<RemovedFile>,
    /// Oldest version that can be read afterwards.
    pub oldest_version: u64,
}

/// A file that was removed, or would be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedFile {
    /// Name relative to the location of the corpus.
    pub name: String,
    /// Length of the file, in bytes.
    pub len_bytes: u64,
}

impl CleanUp {
    /// Returns the total length of the removed files, in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.removed.iter().map(|file| file.len_bytes).fold(0, u64::saturating_add)
    }
}

impl LivingStore {
    /// Removes the files that are older than `age`, unless the latest version or one that was the
    /// latest within `age` needs them. With `dry_run` the files are only reported.
    ///
    /// # Errors
    /// The errors of [`LivingStore::latest`]. Files that were removed before the error stay
    /// removed.
    pub async fn clean_up(&self, age: Duration, dry_run: bool) -> Result<CleanUp> {
        // Segments are listed first. If a later commit names one, the versions listed afterwards
        // contain it.
        let segments = self.files(SEGMENTS, None).await?;
        let mut versions = self.files(VERSIONS, None).await?;
        versions.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let clock = Clock { now: SystemTime::now(), age };
        let kept = self.read_versions(clock.kept(&versions)).await?;
        let Some(oldest) = kept.first() else { return Ok(CleanUp::default()) };
        let unused_versions = clock.unused_versions(versions, &kept);
        let unused_segments = clock.unused_segments(segments, &kept);
        if !dry_run {
            self.remove(VERSIONS, &unused_versions).await?;
            self.remove(SEGMENTS, &unused_segments).await?;
        }
        let removed = unused_versions.into_iter().chain(unused_segments);
        let removed = removed.map(|file| RemovedFile { name: file.name, len_bytes: file.len_bytes });
        Ok(CleanUp { removed: removed.collect(), oldest_version: oldest.number })
    }

    /// Removes the first version of a corpus, so that there is no corpus any more, unless somebody
    /// has committed to it or is about to. Returns true if it is gone. Folders stay.
    ///
    /// A commit that comes in between stays: a version does not need the one before it.
    ///
    /// ```
    /// use tadoc::text::TokenizerProfile;
    /// use tadoc_store::{Change, CommitKind, LivingStore, LocalFolder, StoreOptions};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let root = dir.path().join("notes");
    /// # futures::executor::block_on(async {
    /// let (profile, options) = (TokenizerProfile::default(), StoreOptions::default());
    /// let store = LivingStore::create(LocalFolder::new(&root), profile, options).await?;
    /// assert!(store.remove_unused().await?);
    /// assert!(LivingStore::open(LocalFolder::new(&root), options).await.is_err());
    ///
    /// let store = LivingStore::create(LocalFolder::new(&root), profile, options).await?;
    /// let base = store.latest().await?;
    /// store.commit(&base, &Change::append(CommitKind::Append, &[])).await?;
    /// assert!(!store.remove_unused().await?);
    /// # Ok::<(), tadoc::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The errors of a listing and of a removal.
    pub async fn remove_unused(&self) -> Result<bool> {
        let versions = self.files(VERSIONS, None).await?;
        if versions.iter().any(|file| version_number(&file.name) != Some(1)) {
            return Ok(false);
        }
        self.abandoned.remove_own(self.storage()).await;
        if !self.files(SEGMENTS, None).await?.is_empty() {
            return Ok(false);
        }
        self.remove(VERSIONS, &versions).await?;
        Ok(true)
    }

    async fn remove(&self, folder: &str, files: &[StoredFile]) -> Result<()> {
        let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
        retrying(self.options().retry, || self.storage().remove(folder, &names))
            .await
            .map_err(|e| e.into_error(format!("cleaning up {}", self.name_for(folder))))
    }
}

/// Rule that decides which files are old.
struct Clock {
    now: SystemTime,
    age: Duration,
}

impl Clock {
    /// Returns true if `file` is at least as old as the age. A file with a time in the future is
    /// not old.
    fn is_old(&self, file: &StoredFile) -> bool {
        self.now.duration_since(file.modified).is_ok_and(|passed| passed >= self.age)
    }

    fn is_unfinished(&self, file: &StoredFile) -> bool {
        file.name.ends_with(UNFINISHED) && self.is_old(file)
    }

    /// Returns the numbers of the versions to keep, given `files` in order of name: the latest one,
    /// and those that were superseded less than the age ago.
    fn kept(&self, files: &[StoredFile]) -> Vec<u64> {
        let numbered = || files.iter().filter(|file| version_number(&file.name).is_some());
        let num_superseded = numbered().skip(1).take_while(|after| self.is_old(after)).count();
        numbered().skip(num_superseded).filter_map(|file| version_number(&file.name)).collect()
    }

    /// Returns the files to remove from the folder of the versions: versions that are neither
    /// `kept` nor needed for their edits, and old unfinished files.
    fn unused_versions(&self, files: Vec<StoredFile>, kept: &[Version]) -> Vec<StoredFile> {
        let first = kept.iter().map(|version| version.edits_since.min(version.number)).min();
        let (versions, others): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|file| version_number(&file.name).is_some());
        let versions = versions.into_iter().filter(|file| version_number(&file.name) < first);
        versions.chain(others.into_iter().filter(|file| self.is_unfinished(file))).collect()
    }

    /// Returns the files to remove from the folder of the segments.
    fn unused_segments(&self, files: Vec<StoredFile>, kept: &[Version]) -> Vec<StoredFile> {
        let parts = kept.iter().flat_map(|version| &version.parts);
        let needed: HashSet<String> = parts.filter_map(Part::file_name).collect();
        let is_unused = |file: &StoredFile| {
            let is_segment = segment_id(&file.name).is_some() && !needed.contains(&file.name);
            is_segment && self.is_old(file) || self.is_unfinished(file)
        };
        files.into_iter().filter(is_unused).collect()
    }
}

impl LivingStore {
    /// Returns the bytes that [`keep_known`](Self::keep_known) wrote last, if there are any.
    ///
    /// ```
    /// use tadoc::text::TokenizerProfile;
    /// use tadoc_store::{Change, CommitKind, LivingStore, LocalFolder, StoreOptions};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let root = dir.path().join("notes");
    /// # futures::executor::block_on(async {
    /// let (profile, options) = (TokenizerProfile::Word, StoreOptions::default());
    /// let store = LivingStore::create(LocalFolder::new(root), profile, options).await?;
    /// assert_eq!(store.known().await?, None);
    /// let first = store.latest().await?;
    /// store.keep_known(&first, "2 files".into()).await?;
    /// let second = store.commit(&first, &Change::append(CommitKind::Append, &[])).await?;
    /// store.keep_known(&second, "3 files".into()).await?;
    /// assert_eq!(store.known().await?, Some("3 files".into()));
    /// // No document of the first version was changed since.
    /// let changed = store.changed_since(first.number, first.commit_id, &second).await?;
    /// assert_eq!(changed, Some([].into()));
    /// # Ok::<(), tadoc::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::External`] from the storage.
    pub async fn known(&self) -> Result<Option<Bytes>> {
        let files = self.known_files().await?;
        let latest = files.iter().max_by_key(|file| (known_number(&file.name), file.modified));
        let Some(StoredFile { name, .. }) = latest else { return Ok(None) };
        let max_bytes = self.options().max_version_bytes;
        match retrying(self.options().retry, || self.storage().get(name, max_bytes)).await {
            // A writer of newer bytes has just removed them.
            Err(StorageError::NotFound) => Ok(None),
            read => read.map(Some).map_err(|e| e.into_error(format!("reading {}", self.name_for(name)))),
        }
    }

    /// Keeps `bytes`, which tell about `version`, in place of those that were kept before.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::External`] from the storage.
    pub async fn keep_known(&self, version: &Version, bytes: Bytes) -> Result<()> {
        let before = self.known_files().await?;
        let name = known_name(version.number, CommitId::random()?);
        let put = retrying(self.options().retry, || self.storage().put_if_absent(&name, bytes.clone())).await;
        match put {
            // The answer to an earlier attempt was lost: nobody else has this name.
            Ok(()) | Err(StorageError::Exists) => {}
            Err(error) => return Err(error.into_error(format!("writing {}", self.name_for(&name)))),
        }
        let names: Vec<String> = before.into_iter().map(|file| file.name).collect();
        retrying(self.options().retry, || self.storage().remove(VERSIONS, &names))
            .await
            .map_err(|e| e.into_error(format!("removing {}", self.name_for(KNOWN))))
    }

    /// Returns the ids of the documents of version `number` that later commits up to `latest` have edited or dropped.
    /// Returns `None` if that cannot be told: `latest` does not come from the commit `commit_id`, or a clean-up
    /// removed versions between them.
    ///
    /// # Errors
    /// The errors of [`LivingStore::edits`], except for missing versions.
    pub async fn changed_since(
        &self,
        number: u64,
        commit_id: CommitId,
        latest: &Version,
    ) -> Result<Option<HashSet<u64>>> {
        if number >= latest.number {
            let is_same = number == latest.number && commit_id == latest.commit_id;
            return Ok(is_same.then(HashSet::new));
        }
        let is_child = match self.read_version(number + 1).await {
            Ok(child) => child.parent_id == commit_id,
            Err(Error::Missing { .. }) => false,
            Err(error) => return Err(error),
        };
        if !is_child {
            return Ok(None);
        }
        let edits = match self.edits(number + 1..=latest.number).await {
            Ok(edits) => edits,
            Err(Error::Missing { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let edits = edits.iter().flat_map(|edits| &edits.batch.edits);
        Ok(Some(edits.filter_map(tadoc::edits::Edit::doc_id).collect()))
    }

    async fn known_files(&self) -> Result<Vec<StoredFile>> {
        let mut files = self.files(VERSIONS, Some(KNOWN)).await?;
        files.retain(|file| known_number(&file.name).is_some());
        Ok(files)
    }
}
