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

use super::optimize::{OptimizeOptions, has_many_small_files};
use super::store::LivingStore;
use super::version::{Part, Version};
use tadoc::error::Result;

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
    pub async fn recompress_if_due(
        &self,
        version: &Version,
        options: &OptimizeOptions,
    ) -> Result<Option<Version>> {
        let ratio = options.recompress_ratio;
        if ratio <= 0.0 || ratio >= 1.0 {
            return Ok(None);
        }
        let options = OptimizeOptions { min_small_files: MIN_SMALL_FILES, ..options.clone() };
        if self.has_many_edits(version, ratio).await? || has_many_small_files(version, &options) {
            return self.optimize(&options).await;
        }
        let of_any_share = OptimizeOptions { recompress_ratio: 0.0, ..options };
        if self.has_many_additions(version, &of_any_share).await? {
            self.optimize(&of_any_share).await
        } else {
            Ok(None)
        }
    }

    /// Returns true if edits are a large share of all bytes.
    async fn has_many_edits(&self, version: &Version, ratio: f64) -> Result<bool> {
        let num_commits = (version.number + 1).saturating_sub(version.edits_since);
        let is_looked_at =
            num_commits < COMMITS_PER_LOOK || num_commits.is_multiple_of(COMMITS_PER_LOOK);
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
    async fn has_many_additions(
        &self,
        version: &Version,
        options: &OptimizeOptions,
    ) -> Result<bool> {
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
