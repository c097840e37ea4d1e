//! Optimization: edited parts and small files are built anew, and the others stay.
//!
//! ```text
//! parts     [ A: large ][ B: large, edited ][ edits of 9 ][ c ][ d ][ E: large ][ f ]
//! run       [   kept   ][              rebuilt                ][  kept ][ kept: small alone ]
//! after     [    A     ][                 G                   ][    E     ][ f ]
//! ```
//!
//! Reading order: [`plan`] (the choice of parts), [`restriction`] (a run of parts and its edits
//! as a version of its own), [`rebuild`] (the new file). Every document keeps its id, path, text
//! and user columns. A dropped document is empty afterwards, and its columns are NULL.
//!
//! Time: O(bytes of the runs). Memory: the files of one run, as any reader holds them, and
//! a block of text. Writers and readers are not blocked: later commits are moved behind the new
//! parts ([`Change::optimize`]). If the storage does not answer, the old version stays the latest.
//!
//! The rules of the old segments are not reused: the builder learns its own from a sample.

mod plan;
mod rebuild;
mod restriction;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

pub(super) use plan::has_many_small_files;
pub use plan::{OptimizePlan, PartRun};

use super::change::Change;
use super::store::LivingStore;
use super::version::Version;
use tadoc::build::IngestOptions;
use tadoc::edits::Edit;
use tadoc::error::{Error, Result};
use tadoc::format::OpenLimits;

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
pub type MergeColumns =
    Arc<dyn Fn(&[ColumnsOfPart], &[Edit], &[Range<u64>]) -> Result<Option<Vec<u8>>> + Send + Sync>;

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
    /// True if no segment is copied, such as for another effort.
    pub rebuild_grammars: bool,
    /// Approximate limit for the total length of a run's files, in bytes.
    pub max_run_bytes: u64,
    /// Options for compressing text. The profile is ignored. Segments of at least half of
    /// `block_bytes` that no edit touched are copied, unless `rebuild_grammars` is true.
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
            rebuild_grammars: false,
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
            .field("rebuild_grammars", &self.rebuild_grammars)
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
    /// let store = LivingStore::create(folder, TokenizerProfile::Word, options).await?;
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
        let mut edits = restriction::by_run(&base, &runs, edits);
        let (mut parts, mut dropped) = (Vec::new(), Vec::new());
        for (run, edits) in runs.iter().zip(&mut edits) {
            let restricted = restriction::restricted(&base, run, std::mem::take(edits));
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
                restriction::push_range(&mut dropped, doc_ids);
            }
        }
        self.commit(&base, &Change::optimize(&base, parts, dropped)).await
    }
}
