//! Opening of a version: its edits and footers, the paths of its documents, and its snapshot.
//!
//! ```text
//! parts   [ file A: segments 0, 1 ][ edits of 9 ][ file B ]
//! runs    ids 0.. | ids 40..        | ids 70..    | ids 72..      of paths
//! ```
//!
//! Of a file that is not loaded, only the sections of paths are read for paths: 8 bytes for each document, plus its
//! path. The snapshot is the files with the edits applied, for everything that is answered from rules. Segments without
//! edits are shared with the files. Each other segment takes O(G + V) time, on a blocking thread and all cores. Added
//! text takes the time of the grammar builder.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::runtime_env::RuntimeEnv;

use crate::corpora::living::found::FoundCorpus;
use crate::corpora::living::view::{LivingView, check_files, dropped_docs, explain_missing, fresh_bytes, table_bytes};
use crate::corpora::loaded::{LoadContext, LoadedFile};
use crate::corpora::memory::{self, all_memory};
use crate::corpora::open_file::decoded;
use crate::corpora::{CorpusCache, OpenFile};
use crate::options::TadocOptions;
use tadoc::edits::Edit;
use tadoc::segment::{Corpus, Paths, Segment};
use tadoc_store::{Part, Version, VersionEdits, assemble};

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

/// Paths by document id; see the module's description.
#[derive(Debug, Default)]
pub(crate) struct PathTable {
    /// Runs in order of id.
    runs: Vec<IdRange>,
    num_ids: u64,
}

/// A run of documents with consecutive ids.
#[derive(Debug)]
struct IdRange {
    first_id: u64,
    /// Number of paths before that of the first document.
    num_before: usize,
    paths: Paths,
}

impl PathTable {
    /// Reads the paths of `view`. If `places` is given (ascending), only the files at these places
    /// are read.
    ///
    /// # Errors
    /// Errors of the store, and of damaged sections.
    pub(crate) async fn read(
        cache: &CorpusCache,
        context: &LoadContext,
        view: &LivingView,
        places: Option<&[usize]>,
    ) -> Result<Self> {
        let mut table = Self::default();
        let mut files = view.files.iter().enumerate();
        let is_left_out = |place: usize| places.is_some_and(|places| places.binary_search(&place).is_err());
        for part in &view.version.parts {
            match (part, part.file_name().and_then(|_| files.next())) {
                (_, Some((place, _))) if is_left_out(place) => table.num_ids += part.num_docs(),
                (_, Some((_, open))) => {
                    let paths = cache.paths(context, open).await;
                    table.push_file(paths.map_err(|error| explain_missing(&view.location, error))?);
                }
                (Part::Edits { version, .. }, _) => table.push(0, added_paths(view, *version)),
                (Part::File { .. }, None) => {}
            }
        }
        Ok(table)
    }

    /// Returns the path of document `id`; an empty string if there is none.
    pub(crate) fn get(&self, id: u64) -> &str {
        let behind = self.runs.partition_point(|run| run.first_id <= id);
        let run = behind.checked_sub(1).map(|last| &self.runs[last]);
        let path = run.and_then(|run| run.paths.get((id - run.first_id) as usize + run.num_before));
        path.unwrap_or_default()
    }

    /// Returns the memory held, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.runs.iter().map(|run| size_of::<IdRange>() + run.paths.memory_bytes()).sum()
    }

    /// Appends the segments of a file. Each comes with a flag that is true if its first document
    /// continues the last document of the segment before.
    fn push_file(&mut self, segments: Vec<(bool, Paths)>) {
        let first_id = self.num_ids;
        for (continues, paths) in segments {
            let goes_on = continues && self.num_ids > first_id;
            self.push(usize::from(goes_on), paths);
        }
    }

    /// Appends the documents of `paths`, except the first `num_before`.
    fn push(&mut self, num_before: usize, paths: Paths) {
        if let Some(num_docs) = paths.len().checked_sub(num_before).filter(|&num_docs| num_docs > 0) {
            self.runs.push(IdRange { first_id: self.num_ids, num_before, paths });
            self.num_ids += num_docs as u64;
        }
    }
}

/// Returns the paths of the documents that the edits of version `number` added.
fn added_paths(view: &LivingView, number: u64) -> Paths {
    let place = view.edits.binary_search_by_key(&number, |edits| edits.version);
    let edits = place.ok().map(|place| &view.edits[place]);
    let mut paths = Paths::default();
    for edit in edits.iter().flat_map(|edits| &edits.batch.edits) {
        if let Edit::AddDocument { path, .. } = edit {
            paths.push(path);
        }
    }
    paths
}

/// Bytes of tokens, pairs and rules for each byte of added text while its grammar is built.
const BUILDER_BYTES: usize = 16;

/// Builds the snapshot of `view`, whose `files` are loaded. Files and versions whose keys are in
/// `keep` stay in memory.
pub(crate) async fn make_version(
    cache: &CorpusCache,
    context: &LoadContext,
    view: &Arc<LivingView>,
    files: Vec<Arc<LoadedFile>>,
    keep: &[String],
) -> Result<Arc<LoadedFile>> {
    let consumer = format!("{}[{}]", memory::VERSION, view.location);
    let reservation = cache.reserve(context, consumer, peak_bytes(view, &files), keep)?;
    context.versions_made.iter().for_each(|count| count.add(1));
    let corpora = files.iter().map(|file| file.corpus(view.version.profile));
    let (corpora, making): (Vec<Corpus>, _) = (corpora.collect(), Arc::clone(view));
    let make = move || assemble(&making.version, corpora, &making.edits)?.snapshot();
    let segments = decoded(make).await?.segments().to_vec();
    let shared: HashSet<*const Segment> = files.iter().flat_map(|file| &file.segments).map(Arc::as_ptr).collect();
    let own = segments.iter().filter(|segment| !shared.contains(&Arc::as_ptr(segment)));
    let own: Vec<Arc<Segment>> = own.cloned().collect();
    let held = all_memory(&own);
    cache.resize(&reservation, held, keep)?;
    Ok(Arc::new(LoadedFile::new(segments, reservation, Arc::clone(&context.devices), files)))
}

/// Returns the peak memory of a snapshot: the segments of files with edits, and the text of the
/// edits.
fn peak_bytes(view: &LivingView, files: &[Arc<LoadedFile>]) -> usize {
    let mut edited = view.with_edited_texts();
    edited.extend(&view.dropped);
    let file_parts = view.version.part_ids().filter(|(part, _)| part.file_name().is_some());
    let touched = file_parts.zip(files).filter(|((_, ids), _)| edited.range(ids.clone()).next().is_some());
    let rewritten: usize = touched.map(|(_, file)| all_memory(&file.segments)).sum();
    rewritten + BUILDER_BYTES * view.fresh_bytes as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_go_on_in_the_next_segment_are_told_once() {
        let paths = |names: &[&str]| {
            let mut paths = Paths::default();
            names.iter().for_each(|name| paths.push(name));
            paths
        };
        let mut table = PathTable::default();
        table.push_file(vec![(true, paths(&["a", "b"])), (true, paths(&["b"])), (false, paths(&[]))]);
        table.push(0, paths(&["c"]));
        table.push_file(vec![(true, paths(&["d"])), (true, paths(&["d", "e"]))]);
        let found: Vec<&str> = (0..6).map(|id| table.get(id)).collect();
        assert_eq!(found, ["a", "b", "c", "d", "e", ""]);
        assert!(table.memory_bytes() > 0);
    }
}
