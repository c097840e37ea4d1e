//! The removal of files that no kept version needs, by their age.
//!
//! ```text
//! versions    1 … 4 | 5  6  7 | 8 … 12 (latest)
//!             gone    edits     kept: superseded less than `age` ago, and the latest
//!                     of 8 …    (8 was the latest `age` ago)
//! segments    those that 8 … 12 name are kept; others are removed if they are older than `age`
//! unfinished  files of writers that ended early: removed by the same rule
//! ```
//!
//! Versions are removed in ascending order, durably, and before the segments that they name. So a
//! clean-up that is interrupted leaves no version that seems complete but is not (`commit` relies
//! on this). Segments are removed in any order, many at once if the storage supports it. Files with
//! other names stay. The age protects writers between their segment files and their commit, and
//! readers of old versions. With an age of zero there must be neither.
//!
//! A corpus that was created and never committed to can be removed as a whole
//! ([`LivingStore::remove_unused`]).

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use super::names::{SEGMENTS, UNFINISHED, VERSIONS, segment_id, version_number};
use super::storage::StoredFile;
use super::store::LivingStore;
use super::version::{Part, Version};
use crate::retry::retrying;
use tadoc::error::Result;

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
