//! The changes that a commit makes, and their transfer to a later version after a conflict.
//!
//! | change | can be made on a later version |
//! | --- | --- |
//! | adds documents (files, or edits that only add) | always: new ids follow the existing ones |
//! | moves a bookmark | unless another commit has moved the same one |
//! | edits existing documents | never: its author must read them again ([`LivingStore::update`]) |
//! | optimizes | unless another optimization came first; later documents and edits stay |
//!
//! [`LivingStore::update`]: super::LivingStore::update

use std::ops::Range;

use super::names::CommitId;
use super::part_file::WrittenPart;
use super::version::{Bookmark, CommitCounts, CommitKind, Part, Version};
use tadoc::edits::{Edit, EditBatch, encode_batch};
use tadoc::error::{Error, Result};
use tadoc::format::WRITER;

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
    /// [`LivingStore::write_part`]: super::LivingStore::write_part
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
            let (version, num_docs) = (next.number, self.docs_added_by_edits);
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
