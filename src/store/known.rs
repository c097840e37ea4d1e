//! The knowledge of a program about a version, kept beside the versions for its next run, and the changes since.
//!
//! ```text
//! versions/known-00000000000000000007-<id>.tadoc-known     bytes of a program, written after version 7
//! ```
//!
//! These bytes are no part of the corpus, and nothing but time is lost with them. Each write removes the earlier
//! ones. A program that finds them asks which documents the commits since then have changed.

use std::collections::HashSet;

use bytes::Bytes;
use tadoc::error::{Error, Result};

use super::names::{CommitId, KNOWN, VERSIONS, known_name, known_number};
use super::storage::{StorageError, StoredFile};
use super::store::LivingStore;
use super::version::Version;
use crate::retry::retrying;

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
