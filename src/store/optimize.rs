//! Optimization: edited parts and small files are built anew, and the others stay.
//!
//! ```text
//! parts     [ A: large ][ B: large, edited ][ edits of 9 ][ c ][ d ][ E: large ][ f ]
//! run       [   kept   ][              rebuilt                ][  kept ][ kept: small alone ]
//! after     [    A     ][                 G                   ][    E     ][ f ]
//! ```
//!
//! [`plan`] has the choice of parts, a run of them with its edits as a version of its own, and the new file. Every
//! document keeps its id, path, text and user columns. A dropped document is empty afterwards, and its columns are
//! NULL.
//!
//! Time: O(bytes of the runs). Memory: the files of one run, as any reader holds them, and
//! a block of text. Writers and readers are not blocked: later commits are moved behind the new
//! parts ([`Change::optimize`]). If the storage does not answer, the old version stays the latest.
//!
//! The rules of the old segments are not reused: the builder learns its own from a sample.
//!
//! # Recompression
//!
//! Automatic optimization, started by the commit that makes it due.
//!
//! | due | condition |
//! | --- | --- |
//! | edits of 1 MiB or more are a larger share of all bytes than the ratio | in the whole corpus |
//! | 64 small files | adjacent, as far as an optimization joins them |
//! | 512 commits that added documents by edits | at most 4 bytes of rebuilt files per edit byte |
//!
//! A ratio of 0 or 1 turns all of this off. The cost for one commit is spread over the many commits
//! before it. A commit after which nothing is due costs O(parts). If others have committed since, a
//! listing of the versions with edits is added for each of the first 16 commits of edits, for every
//! 16th after them, and for every commit of 64 KiB or more. The last row bounds the list of parts,
//! which every commit writes, in a corpus that is so large that its share of edits stays small.

mod plan;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use tadoc::build::IngestOptions;
use tadoc::edits::Edit;
use tadoc::error::{Error, Result};
use tadoc::format::OpenLimits;

use crate::commit::Change;
use crate::store::LivingStore;
use crate::version::{Part, Version};

pub(super) use plan::has_many_small_files;
pub use plan::{OptimizePlan, PartRun};

/// Largest number of attempts of an optimization after conflicts with others.
const MAX_ATTEMPTS: u32 = 3;

/// User columns of consecutive documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnsOfPart {
    /// Name of the file that they come from, for errors. Empty if there is no file.
    pub file: String,
    /// Number of rows.
    pub num_docs: u64,
    /// Parquet file with this number of rows. `None` if the documents have no columns: NULL in all.
    pub parquet: Option<Bytes>,
}

/// Function that joins the columns of parts, in order, into those of one file, and applies the
/// values of the edits ([`Edit::SetColumns`], in order). It clears the rows of the given ranges,
/// whose documents were dropped. Rows and document ids count from the first of the parts.
pub type MergeColumns = Arc<dyn Fn(&[ColumnsOfPart], &[Edit], &[Range<u64>]) -> Result<Option<Vec<u8>>> + Send + Sync>;

/// Options for an optimization.
#[derive(Clone)]
pub struct OptimizeOptions {
    /// Share of the bytes of all files that the files of edits must exceed before edits are built
    /// in. With 0, any edit is built in.
    pub recompress_ratio: f64,
    /// Length, in bytes, below which a file is small.
    pub small_file_bytes: u64,
    /// Number of adjacent small files that are worth joining, 2 or more.
    pub min_small_files: usize,
    /// True if every part is rebuilt, such as for another layout.
    pub rebuild_all: bool,
    /// True if a new file has the layout of the first file that it replaces, if there is one.
    pub keep_layout: bool,
    /// Approximate limit for the total length of a run's files, in bytes.
    pub max_run_bytes: u64,
    /// Options for compressing text. The profile is ignored. Segments of at least half of
    /// `block_bytes` that no edit touched are copied.
    pub ingest: IngestOptions,
    /// Limits for opening the files of a run.
    pub limits: OpenLimits,
    /// Function that joins user columns. Without it, parts with user columns are refused.
    pub merge_columns: Option<MergeColumns>,
}

impl Default for OptimizeOptions {
    fn default() -> Self {
        Self {
            recompress_ratio: 0.0,
            small_file_bytes: 8 << 20,
            min_small_files: 2,
            rebuild_all: false,
            keep_layout: true,
            max_run_bytes: 256 << 20,
            ingest: IngestOptions::default(),
            limits: OpenLimits::default(),
            merge_columns: None,
        }
    }
}

impl fmt::Debug for OptimizeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OptimizeOptions")
            .field("recompress_ratio", &self.recompress_ratio)
            .field("small_file_bytes", &self.small_file_bytes)
            .field("min_small_files", &self.min_small_files)
            .field("rebuild_all", &self.rebuild_all)
            .field("keep_layout", &self.keep_layout)
            .field("max_run_bytes", &self.max_run_bytes)
            .field("ingest", &self.ingest)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl LivingStore {
    /// Builds edited parts and small files anew, and commits the result. Returns `None` if that is
    /// not worth it by `options`.
    ///
    /// ```
    /// use tadoc::edits::{Edit, EditBatch};
    /// use tadoc_store::{Change, CommitKind, LivingStore, LocalFolder};
    /// use tadoc_store::{OptimizeOptions, StoreOptions};
    /// use tadoc::text::TokenizerProfile;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let folder = LocalFolder::new(dir.path().join("notes"));
    /// # futures::executor::block_on(async {
    /// let options = StoreOptions::default();
    /// let store = LivingStore::create(folder, TokenizerProfile::default(), options).await?;
    /// let content = b"to be or not to be".to_vec();
    /// let edits = vec![Edit::AddDocument { path: "a.txt".into(), content }];
    /// let change = Change::edit(CommitKind::Edit, &EditBatch { edits, ..Default::default() });
    /// store.commit(&store.latest().await?, &change).await?;
    ///
    /// let version = store.optimize(&OptimizeOptions::default()).await?.unwrap();
    /// assert!(version.parts[0].file_name().is_some() && version.edit_versions().is_empty());
    /// assert_eq!(store.optimize(&OptimizeOptions::default()).await?, None);
    /// # Ok::<(), tadoc::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The errors of reading the files, of writing parts and of [`LivingStore::commit`].
    /// [`Error::Conflict`] if others optimize again and again. [`Error::InvalidArgument`] if there
    /// are user columns and no function that joins them. In these cases the corpus is unchanged,
    /// but files may be left for [`LivingStore::clean_up`].
    pub async fn optimize(&self, options: &OptimizeOptions) -> Result<Option<Version>> {
        let mut num_attempts = 0;
        loop {
            let base = self.latest().await?;
            let plan = self.optimize_plan(&base, options).await?;
            if !plan.is_worth_it() {
                return Ok(None);
            }
            num_attempts += 1;
            match self.optimize_as(plan, options).await {
                Err(Error::Conflict { .. }) if num_attempts < MAX_ATTEMPTS => {}
                done => return done.map(Some),
            }
        }
    }

    /// Carries out `plan`.
    async fn optimize_as(&self, plan: OptimizePlan, options: &OptimizeOptions) -> Result<Version> {
        let (base, runs, edits) = plan.into_parts();
        let mut edits = plan::by_run(&base, &runs, edits);
        let mut parts = Vec::new();
        let mut dropped = Vec::new();
        for (run, edits) in runs.iter().zip(&mut edits) {
            let restricted = plan::restricted(&base, run, std::mem::take(edits));
            let gone = if run.is_rebuilt {
                let rebuilt = self.rebuild(restricted, options).await?;
                parts.push(rebuilt.part);
                rebuilt.dropped
            } else {
                parts.extend(restricted.version.parts);
                restricted.version.dropped
            };
            let first_id = run.doc_ids.start;
            for doc_ids in gone {
                let doc_ids = doc_ids.start + first_id..doc_ids.end + first_id;
                plan::push_range(&mut dropped, doc_ids);
            }
        }
        self.commit(&base, &Change::optimize(&base, parts, dropped)).await
    }
}

/// Default ratio.
pub const RECOMPRESS_RATIO: f64 = 0.2;
/// Smallest total size of edits, in bytes, that makes an optimization due.
const MIN_EDIT_BYTES: u64 = 1 << 20;
/// Number of small files that makes an optimization due.
const MIN_SMALL_FILES: usize = 64;
/// Number of commits of edits between two checks of their size. The first commits, up to this
/// number, are all checked.
const COMMITS_PER_LOOK: u64 = 16;
/// Bytes of text of a commit from which the size is checked after this commit.
const MIN_TEXT_BYTES: u64 = 64 << 10;
/// Number of commits that added documents by edits from which they may be made a file.
const MIN_ADDING_COMMITS: usize = 512;
/// Number of such commits between two checks.
const ADDING_COMMITS_PER_LOOK: usize = 64;
/// Largest number of bytes of files to rebuild for each byte of edits.
const MAX_FILE_BYTES_PER_EDIT_BYTE: u64 = 4;

impl LivingStore {
    /// Runs [`LivingStore::optimize`] if it is due in `version`, the one just committed, by the
    /// `recompress_ratio` of `options`. The field `min_small_files` of `options` is ignored.
    ///
    /// The commit remains valid if the optimization fails.
    ///
    /// # Errors
    /// The errors of [`LivingStore::optimize`] and of a listing.
    pub async fn recompress_if_due(&self, version: &Version, options: &OptimizeOptions) -> Result<Option<Version>> {
        let ratio = options.recompress_ratio;
        if ratio <= 0.0 || ratio >= 1.0 {
            return Ok(None);
        }
        let options = OptimizeOptions { min_small_files: MIN_SMALL_FILES, ..options.clone() };
        if self.has_many_edits(version, ratio).await? || has_many_small_files(version, &options) {
            return self.optimize(&options).await;
        }
        let from_any_share = OptimizeOptions { recompress_ratio: 0.0, ..options };
        if self.has_many_additions(version, &from_any_share).await? {
            self.optimize(&from_any_share).await
        } else {
            Ok(None)
        }
    }

    /// Returns true if edits are a large share of all bytes.
    async fn has_many_edits(&self, version: &Version, ratio: f64) -> Result<bool> {
        let num_commits = (version.number + 1).saturating_sub(version.edits_since);
        let is_looked_at = num_commits < COMMITS_PER_LOOK || num_commits.is_multiple_of(COMMITS_PER_LOOK);
        if !is_looked_at && version.counts.text_bytes < MIN_TEXT_BYTES {
            return Ok(false);
        }
        let edit_bytes = self.edit_bytes(version).await?;
        let file_bytes = version.parts.iter().filter_map(Part::file_len_bytes);
        let all_bytes = file_bytes.fold(edit_bytes, u64::saturating_add);
        Ok(edit_bytes >= MIN_EDIT_BYTES && edit_bytes as f64 > ratio * all_bytes as f64)
    }

    /// Returns true if many commits added documents by edits, and files are cheap to rebuild with
    /// them.
    async fn has_many_additions(&self, version: &Version, options: &OptimizeOptions) -> Result<bool> {
        let added = version.parts.iter().filter(|part| matches!(part, Part::Edits { .. }));
        let num_commits = added.count();
        if num_commits < MIN_ADDING_COMMITS || num_commits % ADDING_COMMITS_PER_LOOK != 0 {
            return Ok(false);
        }
        let plan = self.optimize_plan(version, options).await?;
        let rebuilt = plan.runs().iter().filter(|run| run.is_rebuilt);
        let rebuilt = rebuilt.flat_map(|run| &version.parts[run.parts.clone()]);
        let file_bytes: u64 = rebuilt.filter_map(Part::file_len_bytes).sum();
        Ok(file_bytes <= plan.edit_bytes.saturating_mul(MAX_FILE_BYTES_PER_EDIT_BYTE))
    }
}
