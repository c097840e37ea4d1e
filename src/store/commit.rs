//! Commits: a version is put if none with its number exists.
//!
//! ```text
//! put n ─▶ done ───────────────────────────────▶ does version n - 1 exist? ─▶ committed
//!       ─▶ exists ─▶ read n ─▶ our commit id ──▶ (an answer was lost)
//!                           ─▶ another's ──────▶ apply to the latest version, or Conflict
//!                           ─▶ nothing (409) ──▶ wait, put n again
//!       ─▶ 500, 503, time-out ─────────────────▶ wait, put n again: the same bytes
//! ```
//!
//! No change is committed twice. A commit keeps its id over all attempts. It moves on from number n
//! only after it has read another commit there, because then its own can never get this number.
//!
//! The question about version n - 1 concerns writers that slept for longer than clean-ups keep versions: version n of
//! another writer may have been cleaned up. Clean-ups remove versions in ascending order. So if n - 1 still exists, n
//! did not exist before. Otherwise the parent id of version n + 1 tells whose commit n was. A version n that was
//! cleaned up may even be ours, put by an attempt whose answer was lost. In that case the commit is reported as unknown
//! and not repeated.
//!
//! | change | can be made on a later version |
//! | --- | --- |
//! | adds documents (files, or edits that only add) | always: new ids follow the existing ones |
//! | moves a bookmark | unless another commit has moved the same one |
//! | edits existing documents | never: its author must read them again ([`LivingStore::update`]) |
//! | optimizes | unless another optimization came first; later documents and edits stay |

use std::future::Future;
use std::ops::Range;
use std::time::SystemTime;

use bytes::Bytes;

use tadoc::edits::{Edit, EditBatch, encode_batch};
use tadoc::error::{Error, Result};
use tadoc::format::WRITER;
use tadoc::text::TokenizerProfile;

use crate::parts::WrittenPart;
use crate::storage::{Attempts, CommitId, Storage, StorageError, VERSIONS, retrying, version_name, version_number};
use crate::store::{LivingStore, StoreOptions};
use crate::version::{Bookmark, CommitCounts, CommitKind, Part, Version, encode_manifest};

/// A change of a corpus, made by a commit. The functions below create it.
#[derive(Debug, Clone)]
pub struct Change {
    kind: CommitKind,
    counts: CommitCounts,
    files: Vec<Part>,
    edits: Option<Vec<u8>>,
    docs_added_by_edits: u64,
    /// True if the change may be made only on the version that its author has seen.
    is_pinned: bool,
    sets_columns: bool,
    replacement: Option<Replacement>,
    moved: Option<MovedBookmark>,
}

/// A bookmark that a commit moves on.
#[derive(Debug, Clone)]
struct MovedBookmark {
    /// Place that the author has seen.
    before: Option<String>,
    after: Bookmark,
}

/// Parts before and after an optimization.
#[derive(Debug, Clone)]
struct Replacement {
    base: Version,
    parts: Vec<Part>,
    dropped: Vec<Range<u64>>,
}

impl Change {
    /// Creates a change that adds the documents of `files`, in order, as written by
    /// [`LivingStore::write_part`].
    ///
    /// [`LivingStore::write_part`]: crate::LivingStore::write_part
    pub fn append(kind: CommitKind, files: &[WrittenPart]) -> Self {
        Self::empty(kind).with_files(files)
    }

    /// Creates a change that makes the edits of `batch`. Their document ids are those of the
    /// version that the commit is based on.
    pub fn edit(kind: CommitKind, batch: &EditBatch) -> Self {
        let mut counts = CommitCounts { edits: batch.edits.len() as u64, ..CommitCounts::default() };
        for edit in &batch.edits {
            match edit {
                Edit::AddDocument { .. } => counts.docs_added += 1,
                Edit::DropDocument { .. } => counts.docs_dropped += 1,
                _ => {}
            }
            counts.text_bytes += edit.text_len_bytes();
        }
        Self {
            counts,
            edits: Some(encode_batch(batch)),
            docs_added_by_edits: counts.docs_added,
            is_pinned: batch.edits.iter().any(|edit| edit.doc_id().is_some()),
            sets_columns: batch.edits.iter().any(Edit::sets_columns),
            ..Self::empty(kind)
        }
    }

    /// Adds the documents of `files` in the same commit, before the documents that edits add.
    #[must_use]
    pub fn with_files(mut self, files: &[WrittenPart]) -> Self {
        for WrittenPart { part, text_bytes } in files {
            let counts = &mut self.counts;
            counts.docs_added = counts.docs_added.saturating_add(part.num_docs());
            counts.text_bytes = counts.text_bytes.saturating_add(*text_bytes);
            self.files.push(part.clone());
        }
        self
    }

    /// Creates a change that replaces the parts and edits of `base` by `parts`. These hold the same
    /// documents with the edits made, one document for each id. Documents of `dropped` ids are
    /// never read. Parts of `base` may be among the new parts only if no edit touched them.
    pub fn optimize(base: &Version, parts: Vec<Part>, dropped: Vec<Range<u64>>) -> Self {
        let replacement = Some(Replacement { base: base.clone(), parts, dropped });
        Self { replacement, ..Self::empty(CommitKind::Optimize) }
    }

    /// Moves the bookmark of a source in the same commit, from the place `before` to `after`.
    /// `before` is none for a source without a bookmark. If the bookmark is at another place, the
    /// change is refused. So no part of a source is added twice.
    ///
    /// ```
    /// use tadoc::text::TokenizerProfile;
    /// use tadoc_store::{Bookmark, Change, CommitKind, LivingStore, LocalFolder, StoreOptions};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let root = dir.path().join("logs");
    /// # futures::executor::block_on(async {
    /// let (profile, options) = (TokenizerProfile::default(), StoreOptions::default());
    /// let store = LivingStore::create(LocalFolder::new(root), profile, options).await?;
    /// let up_to = |place: &str| Bookmark { source: "app.log".into(), place: place.into() };
    /// let nothing = || Change::append(CommitKind::Append, &[]);
    ///
    /// let first = store.latest().await?;
    /// let change = nothing().with_bookmark(None, up_to("byte 7"));
    /// store.commit(&first, &change).await?;
    /// // The bookmark stays in later versions.
    /// let version = store.commit(&first, &nothing()).await?;
    /// assert_eq!((version.number, version.bookmark("app.log")), (3, Some("byte 7")));
    /// // A reader that has begun at the same place as the first one is refused.
    /// assert!(store.commit(&version, &change).await.is_err());
    /// let change = nothing().with_bookmark(Some("byte 7".into()), up_to("byte 9"));
    /// let version = store.commit(&version, &change).await?;
    /// assert_eq!(store.latest().await?.bookmark("app.log"), Some("byte 9"));
    /// assert_eq!(version.bookmark("other.log"), None);
    /// # Ok::<(), tadoc::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn with_bookmark(mut self, before: Option<String>, after: Bookmark) -> Self {
        self.moved = Some(MovedBookmark { before, after });
        self
    }

    /// Lets the change be made only on a version that its author has seen. A commit on an older
    /// version is a conflict, and the author looks at the newer one.
    #[must_use]
    pub fn pinned(self) -> Self {
        Self { is_pinned: true, ..self }
    }

    fn empty(kind: CommitKind) -> Self {
        Self {
            kind,
            counts: CommitCounts::default(),
            files: Vec::new(),
            edits: None,
            docs_added_by_edits: 0,
            is_pinned: false,
            sets_columns: false,
            replacement: None,
            moved: None,
        }
    }

    /// Returns true if the change may be made on a version that its author has not seen.
    pub(super) fn is_movable(&self) -> bool {
        !self.is_pinned
    }

    /// Returns the bytes of the edits.
    pub(super) fn edits(&self) -> Option<&[u8]> {
        self.edits.as_deref()
    }

    /// Returns the version that the change makes of `base`.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the parts that it replaces do not exist any more, or another commit
    /// has moved its bookmark, and [`Error::InvalidArgument`] if its parts do not cover the ids.
    pub(super) fn on(&self, location: &str, base: &Version, commit_id: CommitId, now_us: u64) -> Result<Version> {
        let mut next = Version {
            number: base.number + 1,
            commit_id,
            parent_id: base.commit_id,
            time_us: now_us.max(base.time_us),
            kind: self.kind,
            counts: self.counts,
            writer: WRITER.into(),
            ..base.clone()
        };
        if let Some(replacement) = &self.replacement {
            replacement.put_into(location, &mut next)?;
        }
        if let Some(moved) = &self.moved {
            moved.put_into(location, &mut next)?;
        }
        next.sets_columns |= self.sets_columns;
        next.parts.extend(self.files.iter().cloned());
        if next.edits_since == next.number && self.edits.is_none() {
            // There are still no edits to apply.
            next.edits_since += 1;
        }
        if self.docs_added_by_edits > 0 {
            let version = next.number;
            let num_docs = self.docs_added_by_edits;
            next.parts.push(Part::Edits { version, num_docs });
        }
        match next.contradiction() {
            None => Ok(next),
            Some(got) => Err(Error::InvalidArgument {
                name: "change",
                got,
                allowed: "parts that cover the ids of the version once".into(),
            }),
        }
    }
}

impl MovedBookmark {
    fn put_into(&self, location: &str, next: &mut Version) -> Result<()> {
        let Self { before, after } = self;
        if next.bookmark(&after.source) != before.as_deref() {
            let what = format!("{location}: reading on in {}", after.source);
            return Err(Error::Conflict { what, version: next.number - 1 });
        }
        next.set_bookmark(after.clone());
        Ok(())
    }
}

impl Replacement {
    fn put_into(&self, location: &str, next: &mut Version) -> Result<()> {
        let Self { base, parts, dropped } = self;
        // Another optimization would have replaced every part and range that edits touched.
        let added = match next.parts.strip_prefix(base.parts.as_slice()) {
            Some(added) if next.dropped == base.dropped => added,
            _ => {
                let what = format!("{location}: optimizing version {}", base.number);
                return Err(Error::Conflict { what, version: next.number - 1 });
            }
        };
        let num_docs = parts.iter().map(Part::num_docs).fold(0, u64::saturating_add);
        if num_docs != base.num_doc_ids() {
            return Err(Error::InvalidArgument {
                name: "parts",
                got: format!("{num_docs} documents"),
                allowed: format!("{}, one for each id", base.num_doc_ids()),
            });
        }
        next.parts = [parts, added].concat();
        next.dropped.clone_from(dropped);
        // The value is already later if there were no edits to apply.
        next.edits_since = next.edits_since.max(base.number + 1);
        // Later commits may set columns. If the flag is set without need, reading is slower but
        // correct.
        next.sets_columns &= next.parent_id != base.commit_id;
        Ok(())
    }
}

/// Outcome of putting a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Put {
    /// A version that exists and is durable.
    Done,
    /// A version that never will exist, because another one has its number.
    Lost,
}

impl LivingStore {
    /// Creates a corpus without documents in `storage`, as version 1.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if a corpus exists there, [`Error::Io`] and [`Error::External`]
    /// from the storage, and [`Error::UnknownCommit`] if its answer was lost.
    pub async fn create(storage: impl Storage, profile: TokenizerProfile, options: StoreOptions) -> Result<Self> {
        let store = Self::new(storage, profile, options);
        let location = store.location();
        let taken = || Error::InvalidArgument {
            name: "place",
            got: format!("{location}, which holds a living corpus"),
            allowed: "a place without one; open it instead".into(),
        };
        retrying(options.retry, || store.storage().prepare())
            .await
            .map_err(|e| e.into_error(format!("preparing {location}")))?;
        if !store.version_files(None).await?.is_empty() {
            return Err(taken());
        }
        let first = Version {
            number: 1,
            commit_id: CommitId::random()?,
            parent_id: CommitId::from_bytes([0; 16]),
            time_us: now_us(),
            kind: CommitKind::Create,
            counts: CommitCounts::default(),
            writer: WRITER.into(),
            profile,
            parts: Vec::new(),
            dropped: Vec::new(),
            edits_since: 2,
            sets_columns: false,
            bookmarks: Vec::new(),
        };
        match store.put_version(&first, None).await? {
            Put::Done => Ok(store),
            Put::Lost => Err(taken()),
        }
    }

    /// Commits `change`, whose author has seen `base`, as the next version. If others committed
    /// first, the change is made on their version if that is possible (see [`Change`]).
    ///
    /// # Errors
    /// [`Error::Conflict`] if others committed first and the change cannot be made on their
    /// version, or if this happened as often as the policy allows attempts.
    /// [`Error::UnknownCommit`] if the storage's answer was lost and the outcome could not be
    /// determined. [`Error::InvalidArgument`], [`Error::Io`] and [`Error::External`] if the commit
    /// had no effect.
    pub async fn commit(&self, base: &Version, change: &Change) -> Result<Version> {
        let commit_id = CommitId::random()?;
        let mut base = base.clone();
        let mut attempts = Attempts::new(self.options().retry);
        loop {
            let next = change.on(&self.location(), &base, commit_id, now_us())?;
            if self.put_version(&next, change.edits()).await? == Put::Done {
                return Ok(next);
            }
            if !change.is_movable() || !attempts.again().await {
                let what = format!("{}: {} on version {}", self.location(), next.kind, base.number);
                return Err(Error::Conflict { what, version: next.number });
            }
            base = self.latest().await?;
        }
    }

    /// Calls `change` with the latest version and commits the returned change on exactly that
    /// version. If others committed first, this is repeated. It serves changes that depend on the
    /// present documents.
    ///
    /// ```
    /// use tadoc::edits::{Edit, EditBatch};
    /// use tadoc_store::{Change, CommitKind, LivingStore, ObjectPrefix, StoreOptions};
    /// use tadoc::text::TokenizerProfile;
    /// use object_store::memory::InMemory;
    ///
    /// # futures::executor::block_on(async {
    /// let prefix = ObjectPrefix::new(std::sync::Arc::new(InMemory::new()), "notes".into());
    /// let store =
    ///     LivingStore::create(prefix, TokenizerProfile::default(), StoreOptions::default()).await?;
    /// let version = store
    ///     .update(async |latest| {
    ///         let path = format!("{}.txt", latest.num_doc_ids());
    ///         let edits = vec![Edit::AddDocument { path, content: b"new".to_vec() }];
    ///         let batch = EditBatch { edits, ..EditBatch::default() };
    ///         Ok(Change::edit(CommitKind::Insert, &batch))
    ///     })
    ///     .await?;
    /// assert_eq!((version.number, version.num_doc_ids()), (2, 1));
    /// # Ok::<(), tadoc::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The errors of `change` and of [`LivingStore::commit`].
    pub async fn update<F: Future<Output = Result<Change>>>(
        &self,
        mut change: impl FnMut(Version) -> F,
    ) -> Result<Version> {
        let commit_id = CommitId::random()?;
        let mut attempts = Attempts::new(self.options().retry);
        loop {
            let base = self.latest().await?;
            let change = change(base.clone()).await?;
            let next = change.on(&self.location(), &base, commit_id, now_us())?;
            if self.put_version(&next, change.edits()).await? == Put::Done {
                return Ok(next);
            }
            if !attempts.again().await {
                let what = format!("{}: {} on version {}", self.location(), next.kind, base.number);
                return Err(Error::Conflict { what, version: next.number });
            }
        }
    }

    /// Puts `next` unless a version with its number exists.
    async fn put_version(&self, next: &Version, edits: Option<&[u8]>) -> Result<Put> {
        let bytes = Bytes::from(encode_manifest(next, edits)?);
        self.check_size(bytes.len().max(edits.map_or(0, <[u8]>::len)) as u64)?;
        let len_bytes = bytes.len() as u64;
        let put = self.put_manifest(next, bytes).await?;
        if put == Put::Done {
            self.note_put(next, len_bytes);
            self.abandoned.let_go(self.storage(), next, self.history()).await;
        }
        Ok(put)
    }

    async fn put_manifest(&self, next: &Version, bytes: Bytes) -> Result<Put> {
        let name = version_name(next.number);
        let mut attempts = Attempts::new(self.options().retry);
        // True if an attempt may have succeeded although its answer was lost.
        let mut is_unsure = false;
        loop {
            let failure = match self.storage().put_if_absent(&name, bytes.clone()).await {
                Ok(()) => return self.settle(next, is_unsure).await,
                Err(StorageError::Exists) => match self.read_version(next.number).await {
                    Ok(there) if there.commit_id == next.commit_id => {
                        return self.settle(next, is_unsure).await;
                    }
                    Ok(_) => return Ok(Put::Lost),
                    Err(Error::Missing { .. }) => "another writer is about to put it".into(),
                    Err(error) if is_unsure => return Err(self.unknown(next, error.into())),
                    Err(error) => return Err(error),
                },
                Err(StorageError::Transient(cause)) => {
                    is_unsure = true;
                    cause
                }
                Err(StorageError::Unknown(cause)) => return Err(self.unknown(next, cause)),
                Err(error) => {
                    let error = error.into_error(format!("writing {}", self.name_for(&name)));
                    return Err(if is_unsure { self.unknown(next, error.into()) } else { error });
                }
            };
            if !attempts.again().await {
                return self.give_up(next, failure, is_unsure).await;
            }
        }
    }

    /// Returns the outcome for `next` after the last attempt failed.
    async fn give_up(
        &self,
        next: &Version,
        failure: Box<dyn std::error::Error + Send + Sync>,
        is_unsure: bool,
    ) -> Result<Put> {
        match self.read_version(next.number).await {
            Ok(there) if there.commit_id == next.commit_id => self.settle(next, is_unsure).await,
            Ok(_) => Ok(Put::Lost),
            Err(_) if is_unsure => Err(self.unknown(next, failure)),
            Err(_) => {
                let name = self.name_for(&version_name(next.number));
                Err(Error::external(format!("writing {name}"), failure))
            }
        }
    }

    /// Checks that `next`, which was put, follows its parent and does not reuse a number that was
    /// cleaned up.
    async fn settle(&self, next: &Version, is_unsure: bool) -> Result<Put> {
        let is_in_line = self.is_in_line(next).await;
        if is_in_line.map_err(|error| self.unknown(next, error.into()))? {
            self.see(next.number);
            return Ok(Put::Done);
        }
        let name = version_name(next.number);
        let is_there = self.has_version(next.number).await;
        // The file is older than all kept versions. If this removal fails, the next clean-up
        // removes the file.
        let _removed = self.storage().remove(VERSIONS, &[name]).await;
        match is_there {
            Ok(true) if !is_unsure => Ok(Put::Lost),
            // The version, or that of an earlier attempt, may have been cleaned up after it was
            // put.
            _ => {
                let why = "versions from before it to after it were cleaned up meanwhile";
                Err(self.unknown(next, why.into()))
            }
        }
    }

    async fn is_in_line(&self, next: &Version) -> Result<bool> {
        if next.number > 1 && self.has_version(next.number - 1).await? {
            return Ok(true);
        }
        let later = self.version_files(Some(&version_name(next.number))).await?;
        let Some(oldest) = later.iter().filter_map(|file| version_number(&file.name)).min() else {
            return Ok(true);
        };
        let child = self.read_version(oldest).await?;
        Ok(oldest == next.number + 1 && child.parent_id == next.commit_id)
    }

    fn check_size(&self, requested: u64) -> Result<()> {
        let limit = self.options().max_version_bytes;
        if requested <= limit {
            return Ok(());
        }
        let what = "a commit (bytes)";
        let knob = "max_version_bytes";
        Err(Error::Capacity { what, requested, limit, knob })
    }

    fn unknown(&self, next: &Version, source: Box<dyn std::error::Error + Send + Sync>) -> Error {
        let location = self.location();
        let version = next.number;
        let commit_id = next.commit_id.to_string();
        Error::UnknownCommit { location, version, commit_id, source }
    }
}

/// Returns the time in microseconds since 1970.
fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use async_trait::async_trait;
    use object_store::memory::InMemory;

    use super::*;
    use crate::{ByteStream, CommitKind, ObjectPrefix, Storage, StorageResult, StoreOptions, StoredFile};
    use tadoc::text::TokenizerProfile;

    /// A storage whose writer sleeps once after its version was put, so long that others commit and
    /// clean up.
    #[derive(Debug)]
    struct Sleeper {
        inner: ObjectPrefix,
        has_slept: AtomicBool,
        hears_the_answer: bool,
    }

    fn nothing() -> Change {
        Change::append(CommitKind::Append, &[])
    }

    async fn open(storage: impl Storage) -> LivingStore {
        LivingStore::open(storage, StoreOptions::default()).await.unwrap()
    }

    #[async_trait]
    impl Storage for Sleeper {
        fn location(&self) -> String {
            self.inner.location()
        }

        async fn prepare(&self) -> StorageResult<()> {
            self.inner.prepare().await
        }

        async fn put_if_absent(&self, name: &str, bytes: Bytes) -> StorageResult<()> {
            self.inner.put_if_absent(name, bytes).await?;
            if self.has_slept.swap(true, Ordering::Relaxed) {
                return Ok(());
            }
            let others = open(self.inner.clone()).await;
            for _ in 0..3 {
                let base = others.latest().await.unwrap();
                others.commit(&base, &nothing()).await.unwrap();
            }
            others.clean_up(Duration::ZERO, false).await.unwrap();
            if self.hears_the_answer { Ok(()) } else { Err(StorageError::Transient("it took too long".into())) }
        }

        async fn put_stream(&self, name: &str, chunks: ByteStream) -> StorageResult<()> {
            self.inner.put_stream(name, chunks).await
        }

        async fn get(&self, name: &str, max_bytes: u64) -> StorageResult<Bytes> {
            self.inner.get(name, max_bytes).await
        }

        async fn exists(&self, name: &str) -> StorageResult<bool> {
            self.inner.exists(name).await
        }

        async fn list(&self, folder: &str, after: Option<&str>) -> StorageResult<Vec<StoredFile>> {
            self.inner.list(folder, after).await
        }

        async fn remove(&self, folder: &str, names: &[String]) -> StorageResult<()> {
            self.inner.remove(folder, names).await
        }
    }

    #[test]
    fn a_commit_that_was_cleaned_up_before_its_writer_knew_of_it_is_not_made_again() {
        futures::executor::block_on(async {
            for hears_the_answer in [true, false] {
                let inner = ObjectPrefix::new(Arc::new(InMemory::new()), "c".into());
                let profile = TokenizerProfile::default();
                let options = StoreOptions::default();
                LivingStore::create(inner.clone(), profile, options).await.unwrap();
                let has_slept = AtomicBool::new(false);
                let store = open(Sleeper { inner: inner.clone(), has_slept, hears_the_answer }).await;
                let base = store.latest().await.unwrap();
                let unknown = store.commit(&base, &nothing()).await.unwrap_err();
                assert!(matches!(unknown, Error::UnknownCommit { version: 2, .. }), "{unknown}");
                // There are its own commit and three of others. A version that it may have put
                // again is removed.
                let history = open(inner).await.history().await.unwrap();
                let numbers: Vec<u64> = history.iter().map(|version| version.number).collect();
                assert_eq!(numbers, [5]);
            }
        });
    }
}
