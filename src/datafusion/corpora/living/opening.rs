//! Opening of a version: its edits, and the footers of its files.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::runtime_env::RuntimeEnv;

use crate::corpora::living::cache::FoundCorpus;
use crate::corpora::living::view::{LivingView, check_files, dropped_docs, explain_missing, fresh_bytes, table_bytes};
use crate::corpora::{CorpusCache, OpenFile, memory};
use crate::options::TadocOptions;
use tadoc_store::{Version, VersionEdits};

/// Returns the view of `version` of `found` that a scan needs. It is read unless it is known.
///
/// # Errors
/// Errors of the store; [`Error::Missing`] if a file of the version does not exist any more; an
/// error if a file differs from what the version says, or if memory does not suffice.
///
/// [`Error::Missing`]: tadoc::Error::Missing
pub async fn open_view(
    corpora: &CorpusCache,
    runtime: &Arc<RuntimeEnv>,
    options: &TadocOptions,
    found: &FoundCorpus,
    version: Version,
) -> Result<Arc<LivingView>> {
    let key = format!("{}#{}", found.location.key(), version.commit_id);
    if let Some(view) = corpora.living.known(&key) {
        return Ok(view);
    }
    let location = found.store.location();
    let edits = corpora.living.edits(found, &version).await?;
    let dropped = dropped_docs(&version, &edits, options.max_memory_bytes)?;
    let fresh_bytes = fresh_bytes(&edits);
    let files = open_files(corpora, runtime, options, found, &version).await?;
    let reservation = MemoryConsumer::new(format!("{}[{location}]", memory::EDITS)).register(&runtime.memory_pool);
    let num_edits: usize = edits.iter().map(|edits| edits.batch.edits.len()).sum();
    let held = 8 * dropped.len() + 64 * num_edits + fresh_bytes as usize + table_bytes(&edits);
    if reservation.try_grow(held).is_err() {
        corpora.evict_but(&[]);
        reservation.try_grow(held)?;
    }
    let url = found.location.url();
    let narrowed = None;
    let view = LivingView { key, location, url, version, edits, dropped, files, fresh_bytes, narrowed, reservation };
    let view = Arc::new(view);
    corpora.living.keep(Arc::clone(&view), options.max_memory_bytes);
    Ok(view)
}

/// Opens what says which user columns `version` of `found` has: its files, and its edits if they set
/// any.
///
/// # Errors
/// The errors of [`open_view`].
pub(crate) async fn open_columns(
    corpora: &CorpusCache,
    runtime: &Arc<RuntimeEnv>,
    options: &TadocOptions,
    found: &FoundCorpus,
    version: Version,
) -> Result<(Vec<OpenFile>, Vec<Arc<VersionEdits>>)> {
    if version.sets_columns {
        let view = open_view(corpora, runtime, options, found, version).await?;
        return Ok((view.files.clone(), view.edits.clone()));
    }
    let files = open_files(corpora, runtime, options, found, &version).await?;
    Ok((files, Vec::new()))
}

/// Opens the files of `version`, a version of `found`, with their footers. Reads no edits.
///
/// # Errors
/// Errors of the store; [`Error::Missing`] if a file does not exist any more; an error if a file
/// differs from what the version says.
///
/// [`Error::Missing`]: tadoc::Error::Missing
async fn open_files(
    corpora: &CorpusCache,
    runtime: &Arc<RuntimeEnv>,
    options: &TadocOptions,
    found: &FoundCorpus,
    version: &Version,
) -> Result<Vec<OpenFile>> {
    let files = version.parts.iter().filter_map(|part| found.location.file(part)).collect();
    let opened = corpora.open(runtime, &options.open_limits(), files).await;
    let files = opened.map_err(|error| explain_missing(&found.store.location(), error))?;
    check_files(version, &files)?;
    Ok(files)
}
