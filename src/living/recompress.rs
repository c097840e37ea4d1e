//! When a corpus is compressed anew without anybody asking: by the commit that makes it due.
//!
//! | due | where |
//! | --- | --- |
//! | edits of 1 MiB or more are a larger share of all bytes than the ratio | of the whole corpus |
//! | 64 small files | side by side, as far as an optimization joins them |
//!
//! A ratio of 0 or 1 turns both off. What this costs one commit is spread over the many before it:
//! what is not due costs a listing of the versions with edits, and O(parts).

use super::optimize::{OptimizeOptions, has_many_small_files};
use super::store::LivingStore;
use super::version::{Part, Version};
use crate::error::Result;

/// The ratio where nothing else is asked for.
pub const RECOMPRESS_RATIO: f64 = 0.2;
/// Edits of fewer bytes are left alone.
const MIN_EDIT_BYTES: u64 = 1 << 20;
/// So many small files are made one.
const MIN_SMALL_FILES: usize = 64;

impl LivingStore {
    /// [`LivingStore::optimize`], where that is due in `version`, the one just committed, by the
    /// `recompress_ratio` of `options`. Their `min_small_files` does not count.
    ///
    /// The commit stands, whatever becomes of this.
    ///
    /// # Errors
    /// As [`LivingStore::optimize`], and those of a listing.
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
        let file_bytes = version.parts.iter().filter_map(Part::file_len_bytes);
        let edit_bytes = self.edit_bytes(version).await?;
        let all_bytes = file_bytes.fold(edit_bytes, u64::saturating_add);
        let has_many_edits =
            edit_bytes >= MIN_EDIT_BYTES && edit_bytes as f64 > ratio * all_bytes as f64;
        match has_many_edits || has_many_small_files(version, &options) {
            true => self.optimize(&options).await,
            false => Ok(None),
        }
    }
}
