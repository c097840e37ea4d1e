//! Recompression: what edits touched and what is small is built anew, the rest stays as it is.
//!
//! ```text
//! parts     [ A: large ][ B: large, edited ][ edits of 9 ][ c ][ d ][ E: large ][ f ]
//! stretch   [   kept   ][              rebuilt                ][  kept ][ kept: small alone ]
//! after     [    A     ][                 G                   ][    E     ][ f ]
//! ```
//!
//! Reading order: [`plan`] (which parts), [`restriction`] (a stretch of parts and its edits as a
//! version of its own), [`rebuild`] (the new file). Every document keeps its id, path, text and user
//! columns; a dropped one is empty afterwards, its columns NULL.
//!
//! Time: O(bytes of the stretches). Memory: the files of one stretch, as any reader holds them, and
//! a block of text. Writers and readers go on: what is committed meanwhile is moved behind the new
//! parts ([`Change::optimize`]). Without an answer from the storage the old version is the latest.
//!
//! Rules of an earlier segment are not taken over: the builder learns its own from a sample.

mod plan;
mod rebuild;
mod restriction;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

pub(super) use plan::has_many_small_files;
pub use plan::{OptimizePlan, Stretch};

use super::change::Change;
use super::store::LivingStore;
use super::version::Version;
use tadoc::build::IngestOptions;
use tadoc::edits::Edit;
use tadoc::error::{Error, Result};
use tadoc::format::OpenLimits;

/// How often an optimization begins again where another came first.
const MAX_ATTEMPTS: u32 = 3;

/// The user columns of consecutive documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnsOfPart {
    /// The file they come from, for errors; empty where there is none.
    pub file: String,
    /// Rows.
    pub num_docs: u64,
    /// A Parquet file of as many rows; none where the documents have no columns: NULL in all.
    pub parquet: Option<Bytes>,
}

/// Joins the columns of parts, in order, to those of one file, with the values of the edits
/// ([`Edit::SetColumns`], in order) over them. Of the rows given as ranges nothing may stay: their
/// documents were dropped. Rows and documents count from the first of the parts.
pub type MergeColumns =
    Arc<dyn Fn(&[ColumnsOfPart], &[Edit], &[Range<u64>]) -> Result<Option<Vec<u8>>> + Send + Sync>;

/// What is recompressed, and how.
#[derive(Clone)]
pub struct OptimizeOptions {
    /// Edits are built in once their files have more than this share of the bytes of all files;
    /// 0 for any edit.
    pub recompress_ratio: f64,
    /// Files of fewer bytes are small.
    pub small_file_bytes: u64,
    /// Small files in a row that are worth being joined, 2 or more.
    pub min_small_files: usize,
    /// Files of a stretch are rebuilt together up to about as many bytes.
    pub max_stretch_bytes: u64,
    /// How text is compressed; its profile does not count. Segments of at least half of its
    /// `block_bytes` that no edit touched are copied.
    pub ingest: IngestOptions,
    /// What opening the files of a stretch may cost.
    pub limits: OpenLimits,
    /// Joins user columns. Without it, parts that have some are refused.
    pub merge_columns: Option<MergeColumns>,
}

impl Default for OptimizeOptions {
    fn default() -> Self {
        Self {
            recompress_ratio: 0.0,
            small_file_bytes: 8 << 20,
            min_small_files: 2,
            max_stretch_bytes: 256 << 20,
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
            .field("max_stretch_bytes", &self.max_stretch_bytes)
            .field("ingest", &self.ingest)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl LivingStore {
    /// Builds anew what edits touched and what is small, and commits it. Nothing where that is not
    /// worth it by `options`.
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
    /// Those of reading the files, of writing parts and of [`LivingStore::commit`];
    /// [`Error::Conflict`] where others optimize again and again; [`Error::InvalidArgument`] where
    /// there are user columns and nothing that joins them. Nothing happened then, but files may be
    /// left for [`LivingStore::clean_up`].
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
        let (base, stretches, edits) = plan.into_parts();
        let mut edits = restriction::by_stretch(&base, &stretches, edits);
        let (mut parts, mut dropped) = (Vec::new(), Vec::new());
        for (stretch, edits) in stretches.iter().zip(&mut edits) {
            let restricted = restriction::restricted(&base, stretch, std::mem::take(edits));
            let gone = match stretch.is_rebuilt {
                true => {
                    let rebuilt = self.rebuild(restricted, options).await?;
                    parts.push(rebuilt.part);
                    rebuilt.dropped
                }
                false => {
                    parts.extend(restricted.version.parts);
                    restricted.version.dropped
                }
            };
            let first_id = stretch.doc_ids.start;
            for doc_ids in gone {
                let doc_ids = doc_ids.start + first_id..doc_ids.end + first_id;
                restriction::push_range(&mut dropped, doc_ids);
            }
        }
        self.commit(&base, &Change::optimize(&base, parts, dropped)).await
    }
}
