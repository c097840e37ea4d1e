//! Living corpora: folders or prefixes of immutable segment files and numbered versions.
//!
//! ```text
//! <location>/segments/<uuid>.tadoc                     documents, compressed; never rewritten
//! <location>/versions/00000000000000000007.tadoc-version  the state of the corpus after commit 7
//!
//!  open, latest, version, history ─▶ Version ◀──── commit, update, optimize (by put-if-absent)
//!                                      │ parts            ▲ Change
//!       corpus, read_part, edits ◀─────┘   write_part ────┘
//! ```
//!
//! A [`Version`] is a list of [`Part`]s, which hold the documents in order of id, and the edits of the versions since
//! the last optimization, which apply to the documents in order. A commit writes the file of the next version, if no
//! such file exists. So two writers cannot both succeed, and a reader keeps one complete version for as long as it
//! likes. A commit of edits alone writes one object. A commit of many documents writes their segment files first.
//!
//! ```
//! use tadoc::edits::{Edit, EditBatch};
//! use tadoc::read::{DEFAULT_MAX_OUTPUT_BYTES, document_bytes};
//! use tadoc::segment::Corpus;
//! use tadoc::text::TokenizerProfile;
//! use tadoc_store::{Change, CommitKind, LivingStore, LocalFolder, StoreOptions, assemble};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let notes = dir.path().join("notes");
//! # futures::executor::block_on(async {
//! let folder = LocalFolder::new(notes);
//! let store =
//!     LivingStore::create(folder, TokenizerProfile::default(), StoreOptions::default()).await?;
//! let add = Edit::AddDocument { path: "a.txt".into(), content: b"to be".to_vec() };
//! let batch = EditBatch { edits: vec![add], ..EditBatch::default() };
//! let first = store.latest().await?;
//! let version = store.commit(&first, &Change::edit(CommitKind::Insert, &batch)).await?;
//!
//! // No part of the version is a file: all of it lies in the edits.
//! let edits = store.edits(version.edit_versions()).await?;
//! let corpus = assemble(&version, Vec::<Corpus>::new(), &edits)?.snapshot()?;
//! assert_eq!(document_bytes(&corpus, 0, DEFAULT_MAX_OUTPUT_BYTES)?, b"to be");
//! # Ok::<(), tadoc::Error>(())
//! # }).unwrap();
//! ```
//!
//! Reading order: `staging`, `storage` (names of files, the operations at a location, retries and threads), `version`
//! (the value, and its bytes), `local` and `object` (folders that survive power loss, and object stores), `store` (the
//! handle, the choice of the storage, and files without a commit), `parts` (segment files, and a version as a corpus),
//! `commit` (a change, and the next version), `optimize` (parts built anew, and when that is due), `clean_up` (files
//! that go, and those that a program keeps for its next run).
//!
//! The crate needs no runtime: blocking work and waiting happen on threads of their own.

mod clean_up;
mod commit;
mod local;
mod object;
mod optimize;
mod parts;
pub mod staging;
mod storage;
mod store;
mod version;

pub use crate::optimize::{ColumnsOfPart, MergeColumns, OptimizeOptions, OptimizePlan, PartRun, RECOMPRESS_RATIO};
pub use clean_up::{CleanUp, RemovedFile};
pub use commit::Change;
pub use local::{Disk, DiskFile, LocalDisk, LocalFolder};
pub use object::ObjectPrefix;
pub use parts::{PartWriter, WrittenPart, assemble, assemble_documents};
pub use storage::{ByteStream, CommitId, Hold, RetryPolicy, Storage, StorageError, StorageResult, StoredFile};
pub use store::{LivingStore, StoreOptions, VersionEdits, storage_at, storage_in};
pub use version::{Bookmark, CommitCounts, CommitKind, Part, Version, decode_manifest, encode_manifest};
