//! Snapshot of a version: its files with its edits applied, for everything that is answered from
//! rules.
//!
//! Segments without edits are shared with the files. Each other segment takes O(G + V) time, on a
//! blocking thread and all cores. Added text takes the time of the grammar builder.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::error::Result;

use crate::corpora::CorpusCache;
use crate::corpora::decoding::decoded;
use crate::corpora::living::view::LivingView;
use crate::corpora::loaded::{LoadContext, LoadedFile};
use crate::corpora::memory::{self, all_memory};
use tadoc::segment::{Corpus, Segment};
use tadoc_store::assemble;

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
    let of_files = view.version.part_ids().filter(|(part, _)| part.file_name().is_some());
    let touched = of_files.zip(files).filter(|((_, ids), _)| edited.range(ids.clone()).next().is_some());
    let rewritten: usize = touched.map(|(_, file)| all_memory(&file.segments)).sum();
    rewritten + BUILDER_BYTES * view.fresh_bytes as usize
}
