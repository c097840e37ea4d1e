//! Loading: from open files to a corpus in memory.
//!
//! Each version of a file is loaded once, even if many queries wait for it. Decoding runs on blocking threads, with at
//! most as many segments in parallel as there are cores, and fewer with little memory.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryLimit;
use futures::FutureExt;
use object_store::ObjectStore;

use crate::corpora::cache::FILES_AT_ONCE;
use crate::corpora::living::{LivingView, explain_missing, make_version};
use crate::corpora::loaded::{HeldMemory, LoadContext, LoadedCorpus, LoadedFile};
use crate::corpora::location::{read_range, store_of};
use crate::corpora::memory::{self, MemoryWhenUsed, Uses, estimate_bytes, positions_memory, text_memory};
use crate::corpora::open_file::{OpenFile, Sections, decoded, in_order};
use crate::corpora::{CorpusCache, FactTable, Source};
use tadoc::format::{read_document_facts, read_paths, read_segment, read_segment_with, read_words};
use tadoc::segment::{DocumentFacts, Paths, Segment, SegmentFacts};

impl CorpusCache {
    /// Returns the corpus of `source`. Loads it if necessary.
    pub(crate) async fn load(&self, context: &LoadContext, source: &Source) -> Result<Arc<LoadedCorpus>> {
        self.load_sections(context, source, Sections::All).await
    }

    /// Variant of [`CorpusCache::load`] for queries that only count words. If the corpus is not
    /// loaded and its files have [word counts](Source::has_word_counts), only the words and their
    /// counts are read.
    pub(crate) async fn load_words(&self, context: &LoadContext, source: &Source) -> Result<Arc<LoadedCorpus>> {
        let are_enough = source.has_word_counts() && self.loaded(source).is_none();
        let sections = if are_enough { Sections::Words } else { Sections::All };
        self.load_sections(context, source, sections).await
    }

    /// Returns the facts about documents of `source`, which [has
    /// them](Source::has_document_facts). If `places` is given (ascending), only the files at these
    /// places are read.
    pub(crate) async fn load_facts(
        &self,
        context: &LoadContext,
        source: &Source,
        places: Option<&[usize]>,
    ) -> Result<FactTable> {
        let is_meant = |place: usize| places.is_none_or(|places| places.binary_search(&place).is_ok());
        let files = || source.corpora().iter().enumerate();
        let meant = files().filter(|&(place, _)| is_meant(place)).map(|(_, open)| open);
        let meant: Vec<&OpenFile> = meant.collect();
        let keys: Vec<String> = meant.iter().map(|open| Sections::Facts.key(open)).collect();
        let loaded = self.load_each(context, source, &meant, &keys, Sections::Facts).await?;
        self.lock().evict(context.memory_limit_bytes(), &keys);
        let mut loaded = loaded.into_iter();
        let mut table = FactTable::default();
        for (place, open) in files() {
            let facts = if is_meant(place) { loaded.next() } else { None };
            table.push(open.footer.num_docs(), facts);
        }
        Ok(table)
    }

    async fn load_sections(
        &self,
        context: &LoadContext,
        source: &Source,
        sections: Sections,
    ) -> Result<Arc<LoadedCorpus>> {
        let keys = sections.keys(source);
        {
            let mut state = self.lock();
            let now = state.tick();
            for key in &keys {
                if let Some(slot) = state.files.get_mut(key) {
                    slot.last_used = now;
                }
            }
            if let Some(corpus) = state.whole_corpus(&keys) {
                drop(state);
                let held = self.hold(context, &corpus.files, &keys);
                // The data for positions of words may be larger than the file itself.
                self.lock().evict(context.memory_limit_bytes(), &keys);
                return held.map(|()| corpus).map_err(|e| too_little(context, source, e));
            }
        }
        let files: Vec<&OpenFile> = source.corpora().iter().collect();
        let loaded = self.load_each(context, source, &files, &keys, sections).await;
        let mut loaded = loaded.map_err(|error| too_little(context, source, error))?;
        if let Some(view) = source.living().filter(|_| sections == Sections::All) {
            loaded = vec![self.load_version(context, view, loaded, &keys).await?];
        }
        let held = self.hold(context, &loaded, &keys);
        held.map_err(|error| too_little(context, source, error))?;
        let corpus = Arc::new(LoadedCorpus::new(context, source.profile(), loaded));
        let mut state = self.lock();
        if sections == Sections::All {
            state.forget(&Sections::Words.keys(source));
            state.forget(&Sections::Facts.keys(source));
        }
        // Partitions that load at the same time share one corpus, so its vocabulary is made once.
        if let Some(corpus) = state.whole_corpus(&keys) {
            return Ok(corpus);
        }
        let now = state.tick();
        state.corpora.insert(keys.clone(), (now, Arc::clone(&corpus)));
        state.evict(context.memory_limit_bytes(), &keys);
        Ok(corpus)
    }

    /// Returns the files at `places` of `source`, without edits. Loads them if necessary.
    pub(crate) async fn load_files(
        &self,
        context: &LoadContext,
        source: &Source,
        places: &[usize],
    ) -> Result<Vec<Arc<LoadedFile>>> {
        let files: Vec<&OpenFile> = places.iter().filter_map(|&place| source.corpora().get(place)).collect();
        let keys: Vec<String> = files.iter().map(|open| open.key()).collect();
        let loaded = self.load_each(context, source, &files, &keys, Sections::All).await?;
        self.hold(context, &loaded, &keys)?;
        self.lock().evict(context.memory_limit_bytes(), &keys);
        Ok(loaded)
    }

    /// Loads `files` of `source`. The number of parallel loads depends on the cores and on the
    /// number of segments.
    async fn load_each<'a>(
        &'a self,
        context: &'a LoadContext,
        source: &'a Source,
        files: &[&'a OpenFile],
        keys: &'a [String],
        sections: Sections,
    ) -> Result<Vec<Arc<LoadedFile>>> {
        let at_once = segments_at_once(context, source);
        // Boxed: the compiler cannot prove that futures of borrowed files are `Send`.
        let load = |open: &&'a OpenFile| self.load_shared(context, source, open, keys, sections, at_once).boxed();
        let files_at_once = match sections {
            // Reading takes longer than decoding.
            Sections::Facts => FILES_AT_ONCE,
            Sections::All | Sections::Words => files_at_once(files.iter().copied(), at_once),
        };
        in_order(files.iter().map(load), files_at_once).await
    }

    /// Loads the file `open` of `source`, `at_once` segments in parallel. If several queries need it at the
    /// same time, one of them loads it.
    async fn load_shared(
        &self,
        context: &LoadContext,
        source: &Source,
        open: &OpenFile,
        keep: &[String],
        sections: Sections,
        at_once: usize,
    ) -> Result<Arc<LoadedFile>> {
        let cell = Arc::clone(&self.lock().slot(&sections.key(open)).cell);
        let load = || self.load_file(context, open, keep, sections, at_once);
        let file = cell.get_or_try_init(load).await;
        file.cloned().map_err(|error| match source.living() {
            Some(view) => explain_missing(&view.location, error),
            None => error,
        })
    }

    /// Returns the paths of the documents of a file, one entry for each segment. The flag of an
    /// entry is true if its first document continues the last one of the segment before. Of a file
    /// that is not loaded, only the paths are read.
    pub(crate) async fn paths(&self, context: &LoadContext, open: &OpenFile) -> Result<Vec<(bool, Paths)>> {
        let slot = self.lock().files.get(&open.key()).map(|s| Arc::clone(&s.cell));
        if let Some(file) = slot.as_ref().and_then(|cell| cell.get()) {
            let segments = file.segments.iter();
            return Ok(segments.map(|s| (s.continues, s.paths.clone())).collect());
        }
        let store = store_of(&context.runtime, &open.file)?;
        let load = |segment_idx| load_paths(context, Arc::clone(&store), open, segment_idx).boxed();
        in_order((0..open.footer.segments.len()).map(load), FILES_AT_ONCE).await
    }

    /// Returns the corpus of `source` if all of it is loaded.
    pub(crate) fn loaded(&self, source: &Source) -> Option<Arc<LoadedCorpus>> {
        self.lock().whole_corpus(&Sections::All.keys(source))
    }

    async fn load_file(
        &self,
        context: &LoadContext,
        open: &OpenFile,
        keep: &[String],
        sections: Sections,
        at_once: usize,
    ) -> Result<Arc<LoadedFile>> {
        if sections == Sections::All {
            self.lock().forget_part(&open.key());
        }
        let parallel = match sections {
            Sections::Facts => FILES_AT_ONCE,
            Sections::All | Sections::Words => at_once,
        };
        let parallel = parallel.min(open.footer.segments.len()).max(1);
        let estimate = estimate_bytes(&open.footer, parallel, sections, &context.options)?;
        let reservation = self.reserve(context, consumer_of(open), estimate, keep)?;
        let store = store_of(&context.runtime, &open.file)?;
        let devices = Arc::clone(&context.devices);
        if sections == Sections::Facts {
            let facts = DocumentFacts::new(facts_of(context, store, open, parallel).await?);
            self.resize(&reservation, facts.memory_bytes(), keep)?;
            return Ok(Arc::new(LoadedFile::from_facts(facts, reservation, devices)));
        }
        let load = |segment_idx| load_segment(context, Arc::clone(&store), open, segment_idx, sections).boxed();
        let segments: Vec<Arc<Segment>> = in_order((0..open.footer.segments.len()).map(load), parallel).await?;
        let keep_no_copies = || segments.iter().for_each(|segment| segment.keep_no_copies());
        if open.portion.is_some() {
            keep_no_copies();
        }
        if self.resize(&reservation, text_memory(&segments), keep).is_err() {
            keep_no_copies();
            self.resize(&reservation, text_memory(&segments), keep)?;
        }
        Ok(Arc::new(LoadedFile {
            segments,
            facts: DocumentFacts::default(),
            unopened: BTreeMap::new(),
            held: Arc::new(HeldMemory::new(reservation)),
            devices,
            _shared: Vec::new(),
        }))
    }

    /// Reserves memory for the data besides the text that a scan derives from `files`. If the
    /// memory does not suffice, everything that is not in `keep` is dropped from the cache.
    pub(super) fn hold(&self, context: &LoadContext, files: &[Arc<LoadedFile>], keep: &[String]) -> Result<()> {
        if context.uses != Uses::Positions {
            return Ok(());
        }
        for file in files {
            let HeldMemory { reservation, places_bytes } = file.held.as_ref();
            let mut places_bytes = places_bytes.lock().unwrap_or_else(PoisonError::into_inner);
            let needed = positions_memory(&file.segments);
            if *places_bytes < needed {
                self.resize(reservation, reservation.size() + needed - *places_bytes, keep)?;
                *places_bytes = needed;
            }
        }
        Ok(())
    }

    /// Returns the snapshot of `view`. Builds it from `files` and the edits if necessary.
    async fn load_version(
        &self,
        context: &LoadContext,
        view: &Arc<LivingView>,
        files: Vec<Arc<LoadedFile>>,
        keys: &[String],
    ) -> Result<Arc<LoadedFile>> {
        let cell = {
            let mut state = self.lock();
            let slot = state.slot(&view.key);
            slot.made_of = keys.iter().filter(|&key| key != &view.key).cloned().collect();
            Arc::clone(&slot.cell)
        };
        let made = cell.get_or_try_init(|| make_version(self, context, view, files, keys)).await?;
        Ok(Arc::clone(made))
    }
}

/// Returns the number of segments of `source` that are decoded in parallel: one for each core, or fewer if
/// memory has no room for more.
pub(super) fn segments_at_once(context: &LoadContext, source: &Source) -> usize {
    needed(context, source).at_once(context.memory_limit_bytes())
}

/// Returns the number of files that are loaded in parallel, if `at_once` segments are.
pub(super) fn files_at_once<'a>(files: impl Iterator<Item = &'a OpenFile>, at_once: usize) -> usize {
    let most_segments = files.map(|open| open.footer.segments.len()).max();
    (at_once / most_segments.unwrap_or_default().max(1)).max(1)
}

fn needed(context: &LoadContext, source: &Source) -> MemoryWhenUsed {
    let file_memory = |open: &OpenFile| MemoryWhenUsed::for_segments(&open.footer.segments, context.uses);
    source.corpora().iter().map(file_memory).fold(MemoryWhenUsed::default(), MemoryWhenUsed::and)
}

/// Returns the name of the memory of the segments of `open`.
pub(super) fn consumer_of(open: &OpenFile) -> String {
    format!("{}[{}]", memory::CORPUS, open.file.path)
}

/// Explains `error` if it says that the session's memory has no room for the segments of `source`.
/// The new error says how much memory would suffice.
pub(super) fn too_little(context: &LoadContext, source: &Source, error: DataFusionError) -> DataFusionError {
    let MemoryLimit::Finite(limit) = context.runtime.memory_pool.memory_limit() else {
        return error;
    };
    if !matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)) {
        return error;
    }
    let needed = needed(context, source).bytes();
    if needed > context.options.max_memory_bytes {
        return error;
    }
    // Half of the session's memory is for segments, as for portions.
    let enough = (2 * needed).div_ceil(1 << 20);
    let num_segments = needed_at_once(source);
    let first = source.corpora().first();
    let path = first.map_or("", |open| open.file.path.as_str());
    DataFusionError::ResourcesExhausted(format!(
        "{path}: {num_segments} must be in memory at once and need {needed} bytes, the session has {limit} for these and \
         what is made of them; raise its memory limit (--memory-limit {enough}MiB)"
    ))
}

fn needed_at_once(source: &Source) -> String {
    let segments = source.corpora().iter().map(|open| open.footer.segments.len());
    match segments.sum::<usize>() {
        1 => "a segment".to_owned(),
        num_segments => format!("{num_segments} segments"),
    }
}

async fn load_paths(
    context: &LoadContext,
    store: Arc<dyn ObjectStore>,
    open: &OpenFile,
    segment_idx: usize,
) -> Result<(bool, Paths)> {
    let meta = &open.footer.segments[segment_idx];
    let bytes = read_range(store.as_ref(), &open.file, meta.paths_range()).await?;
    context.bytes_read.add(bytes.len());
    let path = open.file.path.clone();
    let footer = Arc::clone(&open.footer);
    let limits = context.options.open_limits();
    let read = move || read_paths(&path, &footer, segment_idx, &bytes, &limits);
    Ok((meta.continues, decoded(read).await?))
}

/// Reads the facts about the documents of each segment of `open`, `parallel` segments at a time.
async fn facts_of(
    context: &LoadContext,
    store: Arc<dyn ObjectStore>,
    open: &OpenFile,
    parallel: usize,
) -> Result<Vec<SegmentFacts>> {
    let load = |segment_idx| load_segment_facts(context, Arc::clone(&store), open, segment_idx).boxed();
    in_order((0..open.footer.segments.len()).map(load), parallel).await
}

async fn load_segment_facts(
    context: &LoadContext,
    store: Arc<dyn ObjectStore>,
    open: &OpenFile,
    segment_idx: usize,
) -> Result<SegmentFacts> {
    let range = Sections::Facts.range(&open.footer.segments[segment_idx]);
    let bytes = read_range(store.as_ref(), &open.file, range).await?;
    context.bytes_read.add(bytes.len());
    let path = open.file.path.clone();
    let footer = Arc::clone(&open.footer);
    let limits = context.options.open_limits();
    let read = move || read_document_facts(&path, &footer, segment_idx, &bytes, &limits);
    decoded(read).await
}

async fn load_segment(
    context: &LoadContext,
    store: Arc<dyn ObjectStore>,
    open: &OpenFile,
    segment_idx: usize,
    sections: Sections,
) -> Result<Arc<Segment>> {
    let known = context.common.as_ref().filter(|_| sections == Sections::All);
    let known = known.and_then(|common| common.dictionary(open, segment_idx)).cloned();
    let meta = &open.footer.segments[segment_idx];
    let range = if known.is_some() { meta.rest_range() } else { sections.range(meta) };
    let bytes = read_range(store.as_ref(), &open.file, range).await?;
    context.bytes_read.add(bytes.len());
    let path = open.file.path.clone();
    let footer = Arc::clone(&open.footer);
    let limits = context.options.open_limits();
    let read = move || match known {
        Some(dictionary) => read_segment_with(&path, &footer, segment_idx, &bytes, dictionary, &limits),
        None if sections == Sections::Words => read_words(&path, &footer, segment_idx, &bytes, &limits),
        None => read_segment(&path, &footer, segment_idx, &bytes, &limits),
    };
    decoded(read).await.map(Arc::new)
}
