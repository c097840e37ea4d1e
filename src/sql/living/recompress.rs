//! Recompression by the statement whose commit makes it due.
//!
//! Due is a corpus whose edits have [`MIN_EDIT_BYTES`] or more and a larger share of its bytes than
//! `tadoc.recompress_ratio`, or one of [`MIN_SMALL_FILES`] small files. What this costs a statement is
//! spread over the many before it. The statement was committed before: nothing that fails here, or is
//! cut off, takes that back, and the next statement tries again.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::Result;
use crate::living::{LivingStore, OptimizeOptions, Version};
use crate::sql::options::TadocOptions;
use crate::sql::user_columns::merge_columns;

/// Edits of fewer bytes are left alone.
const MIN_EDIT_BYTES: u64 = 1 << 20;
/// So many small files are made one.
const MIN_SMALL_FILES: usize = 64;

/// Compresses the corpus anew, if that is due in `version`, the one just committed.
pub(super) async fn recompress_if_due(
    store: &LivingStore,
    version: &Version,
    options: &TadocOptions,
) {
    match recompress(store, version, options).await {
        Ok(None) => {}
        Ok(Some(optimized)) => {
            tracing::info!("{}: optimized as version {}", store.place(), optimized.number);
        }
        Err(error) => tracing::warn!("{}: not optimized: {error}", store.place()),
    }
}

fn recompress<'a>(
    store: &'a LivingStore,
    version: &'a Version,
    options: &TadocOptions,
) -> BoxFuture<'a, Result<Option<Version>>> {
    let optimize = OptimizeOptions {
        recompress_ratio: options.recompress_ratio,
        min_small_files: MIN_SMALL_FILES,
        ingest: options.ingest_options(),
        limits: options.open_limits(),
        merge_columns: Some(Arc::new(merge_columns)),
        ..OptimizeOptions::default()
    };
    async move {
        // Edits have no larger share than all.
        if optimize.recompress_ratio >= 1.0 {
            return Ok(None);
        }
        let is_small = |len_bytes: u64| len_bytes < optimize.small_file_bytes;
        let file_bytes = || version.parts.iter().filter_map(|part| part.file_len_bytes());
        let edit_bytes = store.edit_bytes(version).await?;
        let all_bytes = file_bytes().fold(edit_bytes, u64::saturating_add);
        let has_many_edits = edit_bytes >= MIN_EDIT_BYTES
            && edit_bytes as f64 > optimize.recompress_ratio * all_bytes as f64;
        let has_many_files = file_bytes().filter(|len| is_small(*len)).count() >= MIN_SMALL_FILES;
        match has_many_edits || has_many_files {
            true => store.optimize(&optimize).await,
            false => Ok(None),
        }
    }
    .boxed()
}
