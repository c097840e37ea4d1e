//! Recompression by the statement whose commit makes it due ([`LivingStore::recompress_if_due`]).
//!
//! The statement is committed before. A failure or an interruption here does not undo it, and the
//! next statement tries again.

use std::sync::Arc;

use futures::FutureExt;

use crate::options::TadocOptions;
use crate::user_columns::merge_columns;
use tadoc_store::{LivingStore, OptimizeOptions, Version};

/// Recompresses the corpus if that is due in `version`, the version just committed.
pub(super) async fn recompress_if_due(store: &LivingStore, version: &Version, options: &TadocOptions) {
    let options = OptimizeOptions {
        recompress_ratio: options.recompress_ratio,
        ingest: options.ingest_options(),
        limits: options.open_limits(),
        merge_columns: Some(Arc::new(merge_columns)),
        ..OptimizeOptions::default()
    };
    // Boxed, because the future is large and rarely run.
    match store.recompress_if_due(version, &options).boxed().await {
        Ok(None) => {}
        Ok(Some(optimized)) => {
            tracing::info!("{}: optimized as version {}", store.location(), optimized.number);
        }
        Err(error) => tracing::warn!("{}: not optimized: {error}", store.location()),
    }
}
