//! Open corpora of a session: loaded once, kept while memory allows.
//!
//! ```text
//! footers   file version ──▶ FileFooter                      one small read, while planning a scan
//! files     file version ──▶ segments, memory reservation    all of the file, on first execution
//!           commit ──▶ the same, of a living corpus           what its edits changed, once
//! corpora   list of versions ──▶ Corpus, vocabulary, word views
//! words     the same two, of words and their counts alone    a tenth of a file, where no more is asked for
//! ```
//!
//! A version is URL, length and e-tag (or modification time), so a file that was replaced is read
//! again. Two queries that want the same file load it once. The decoded form is reserved in the
//! session's memory pool for as long as it is kept; least recently used files go first when
//! `tadoc.max_memory_bytes`, or half of a bounded pool, is passed, or when the pool refuses a new
//! file. A version of a living corpus shares with its files the segments that no edit touched; a later
//! version that brings files reads only those. What a running query holds stays until it ends.
//! Decoding runs on blocking threads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use datafusion::arrow::array::{StringViewArray, make_view};
use datafusion::arrow::buffer::{Buffer, ScalarBuffer};
use datafusion::common::plan_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::metrics::Count;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use object_store::ObjectStore;
use tokio::sync::OnceCell;

use super::device_tasks::{self, KnownTasks};
use super::failure::{datafusion_error, task_error};
use super::footer::read_footer;
use super::living::{LivingCache, LivingView, explain_missing, make_version};
use super::location::{SourceFile, read_range, store_of};
use super::memory::{Uses, estimate_bytes, places_memory, text_memory, too_little};
use super::options::TadocOptions;
use super::portions::Portion;
use super::scan::Source;
use super::sections::Sections;
use crate::throughput::calibration::num_cores;
use tadoc::analytics::{Fold, TermVectors, Vocabulary, document_counts};
use tadoc::format::{FileFooter, OpenLimits, read_paths, read_segment, read_words};
use tadoc::segment::{Corpus, Paths, Segment};
use tadoc::text::TokenizerProfile;

const MAX_FOOTERS: usize = 4096;
const MAX_CORPORA: usize = 16;
/// Footers, or sections of paths, read at a time.
const FILES_AT_ONCE: usize = 16;

/// A file and its footer.
#[derive(Debug, Clone)]
pub(crate) struct OpenFile {
    pub(crate) file: SourceFile,
    pub(crate) footer: Arc<FileFooter>,
    /// Where it stands for a part of the segments, the only ones in the footer.
    pub(crate) portion: Option<Portion>,
}

impl OpenFile {
    /// What tells its segments from those of other files, versions and portions.
    pub(crate) fn key(&self) -> String {
        self.file.version_key() + &self.portion.as_ref().map(Portion::suffix).unwrap_or_default()
    }
}

/// The segments of one file and the memory they hold.
#[derive(Debug)]
pub(crate) struct LoadedFile {
    pub(super) segments: Vec<Arc<Segment>>,
    reservation: MemoryReservation,
    /// Of the reservation, what finding places takes; 0 before that is asked for.
    places_bytes: Mutex<usize>,
    /// Keeps the reservations of the files that segments are shared with.
    _shared: Vec<Arc<LoadedFile>>,
}

impl LoadedFile {
    /// `segments`, of which some are those of the files `shared`, and all the memory for the others.
    pub(super) fn new(
        segments: Vec<Arc<Segment>>,
        reservation: MemoryReservation,
        shared: Vec<Arc<LoadedFile>>,
    ) -> Self {
        Self { segments, reservation, places_bytes: Mutex::new(usize::MAX), _shared: shared }
    }

    /// The file as a corpus, whose words were cut by `profile`.
    pub(crate) fn corpus(&self, profile: TokenizerProfile) -> Corpus {
        Corpus::new(profile, self.segments.clone())
    }
}

impl Drop for LoadedFile {
    fn drop(&mut self) {
        let is_shared = |segment: &&Arc<Segment>| {
            let mut shared = self._shared.iter().flat_map(|file| &file.segments);
            shared.any(|other| Arc::ptr_eq(segment, other))
        };
        device_tasks::forget(self.segments.iter().filter(|segment| !is_shared(segment)));
    }
}

/// A corpus ready for queries, with what several queries share.
#[derive(Debug)]
pub(crate) struct LoadedCorpus {
    pub(crate) corpus: Corpus,
    /// By [`Fold`].
    vocabularies: [OnceLock<Arc<Vocabulary>>; 2],
    words: [OnceLock<StringViewArray>; 2],
    doc_counts: [OnceLock<Arc<[u64]>>; 2],
    /// Rows and times of tasks that were done.
    pub(crate) tasks: KnownTasks,
    reservation: MemoryReservation,
    /// Keeps the reservations of the files for as long as their segments are used here.
    _files: Vec<Arc<LoadedFile>>,
}

impl LoadedCorpus {
    /// Words of the corpus in byte order, merged over segments and folded on first use.
    pub(crate) fn vocabulary(&self, fold: Fold) -> Result<Arc<Vocabulary>> {
        let slot = &self.vocabularies[fold as usize];
        if let Some(vocabulary) = slot.get() {
            return Ok(Arc::clone(vocabulary));
        }
        let vocabulary = match fold {
            Fold::None => self.merged()?,
            Fold::Case => {
                let words = self.vocabulary(Fold::None)?;
                let held = self.reservation.new_empty();
                // Each word with its place, and texts in lower case.
                held.try_grow(64 * words.len())?;
                let folded = words.folded(fold).map_err(datafusion_error)?;
                self.reservation.try_grow(folded.memory_bytes())?;
                folded
            }
        };
        Ok(Arc::clone(slot.get_or_init(|| Arc::new(vocabulary))))
    }

    fn merged(&self) -> Result<Vocabulary> {
        let segments = self.corpus.segments();
        if segments.len() > 1 {
            // A row of the merge holds at most one (segment, id) pair and an offset for each word.
            let words: u64 = segments.iter().map(|s| u64::from(s.dictionary.num_words())).sum();
            self.reservation.try_grow(16 * words as usize)?;
        }
        Vocabulary::new(&self.corpus).map_err(datafusion_error)
    }

    /// Number of documents with each word of the vocabulary, which `vectors` are of, counted on first
    /// use: it takes longer than a sweep over all term vectors.
    pub(crate) fn doc_counts(&self, fold: Fold, vectors: &TermVectors) -> Result<Arc<[u64]>> {
        let slot = &self.doc_counts[fold as usize];
        if let Some(counts) = slot.get() {
            return Ok(Arc::clone(counts));
        }
        let counts = document_counts(vectors).map_err(datafusion_error)?;
        self.reservation.try_grow(8 * counts.len())?;
        Ok(Arc::clone(slot.get_or_init(|| counts.into())))
    }

    /// The vocabulary as an array whose views point into the dictionaries: 16 bytes a word, and
    /// no word is copied.
    pub(crate) fn words(&self, fold: Fold) -> Result<&StringViewArray> {
        let slot = &self.words[fold as usize];
        if let Some(words) = slot.get() {
            return Ok(words);
        }
        let vocabulary = self.vocabulary(fold)?;
        self.reservation.try_grow(16 * vocabulary.len())?;
        let words = word_views(&self.corpus, &vocabulary)?;
        Ok(slot.get_or_init(|| words))
    }
}

fn word_views(corpus: &Corpus, vocabulary: &Vocabulary) -> Result<StringViewArray> {
    let folded = vocabulary.folded_words();
    let dictionaries: Vec<_> = match folded {
        Some(words) => vec![words],
        None => corpus.segments().iter().map(|segment| &segment.dictionary).collect(),
    };
    let buffers: Vec<Buffer> =
        dictionaries.iter().map(|d| Buffer::from(d.bytes().clone())).collect();
    let view = |row: usize| {
        let place = match folded {
            Some(_) => Some((0, row as u32)),
            None => vocabulary.ids(row).next(),
        };
        place.map_or(0, |(dictionary_idx, id)| {
            let dictionary = dictionaries[dictionary_idx];
            make_view(dictionary.get(id), dictionary_idx as u32, dictionary.offsets()[id as usize])
        })
    };
    let views: ScalarBuffer<u128> = (0..vocabulary.len()).map(view).collect::<Vec<_>>().into();
    Ok(StringViewArray::try_new(views, buffers, None)?)
}

/// What loading needs from a query.
#[derive(Debug)]
pub(crate) struct LoadContext {
    pub(crate) runtime: Arc<RuntimeEnv>,
    /// What memory is taken for; of living corpora for everything.
    pub(crate) uses: Uses,
    pub(crate) options: TadocOptions,
    pub(crate) bytes_read: Count,
    /// Of living corpora only.
    pub(crate) versions_made: Option<Count>,
}

/// The open corpora of one registration; see the module's description.
#[derive(Debug, Default)]
pub(crate) struct CorpusCache {
    state: Mutex<State>,
    pub(crate) living: LivingCache,
}

#[derive(Debug, Default)]
struct State {
    clock: u64,
    footers: HashMap<String, (u64, Arc<FileFooter>)>,
    files: HashMap<String, Slot>,
    corpora: HashMap<Vec<String>, (u64, Arc<LoadedCorpus>)>,
}

/// A file, or a version of a living corpus, that is loaded or being loaded.
#[derive(Debug, Default)]
struct Slot {
    last_used: u64,
    /// Keys of the files it shares segments with.
    made_of: Vec<String>,
    cell: Arc<OnceCell<Arc<LoadedFile>>>,
}

impl CorpusCache {
    /// The footers of `files`, all of one tokenizer profile.
    pub(crate) async fn open(
        &self,
        runtime: &Arc<RuntimeEnv>,
        limits: &OpenLimits,
        files: Vec<SourceFile>,
    ) -> Result<Vec<OpenFile>> {
        let open = |file: SourceFile| async move {
            let footer = self.footer(runtime, limits, &file).await?;
            Ok::<_, DataFusionError>(OpenFile { file, footer, portion: None })
        };
        let files: Vec<OpenFile> =
            stream::iter(files).map(open).buffered(FILES_AT_ONCE).try_collect().await?;
        check_profiles(&files)?;
        Ok(files)
    }

    async fn footer(
        &self,
        runtime: &RuntimeEnv,
        limits: &OpenLimits,
        file: &SourceFile,
    ) -> Result<Arc<FileFooter>> {
        let key = file.version_key();
        {
            let mut state = self.lock();
            let now = state.tick();
            if let Some((last_used, footer)) = state.footers.get_mut(&key) {
                *last_used = now;
                return Ok(Arc::clone(footer));
            }
        }
        let store = store_of(runtime, file)?;
        let footer = Arc::new(read_footer(store.as_ref(), limits, file).await?);
        let mut state = self.lock();
        let now = state.tick();
        if state.footers.len() >= MAX_FOOTERS {
            let oldest = state.footers.iter().min_by_key(|(_, (used, _))| *used);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| state.footers.remove(&key));
        }
        state.footers.insert(key, (now, Arc::clone(&footer)));
        Ok(footer)
    }

    /// The corpus of `source`, loaded where it is not.
    pub(crate) async fn load(
        &self,
        context: &LoadContext,
        source: &Source,
    ) -> Result<Arc<LoadedCorpus>> {
        self.load_sections(context, source, Sections::All).await
    }

    /// The same for those who count words and nothing else: where the corpus is not loaded and its files have
    /// [word counts](Source::has_word_counts), these are all that is read.
    pub(crate) async fn load_words(
        &self,
        context: &LoadContext,
        source: &Source,
    ) -> Result<Arc<LoadedCorpus>> {
        let are_enough = source.has_word_counts() && self.loaded(source).is_none();
        let sections = if are_enough { Sections::Words } else { Sections::All };
        self.load_sections(context, source, sections).await
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
            if let Some((last_used, corpus)) = state.corpora.get_mut(&keys) {
                *last_used = now;
                let corpus = Arc::clone(corpus);
                drop(state);
                let held = self.hold(context, &corpus._files, &keys);
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
        let segments = loaded.iter().flat_map(|file| file.segments.iter().cloned()).collect();
        let corpus = Arc::new(LoadedCorpus {
            corpus: Corpus::new(source.profile(), segments),
            vocabularies: Default::default(),
            words: Default::default(),
            doc_counts: Default::default(),
            tasks: KnownTasks::default(),
            reservation: MemoryConsumer::new("TadocVocabulary").register(context.pool()),
            _files: loaded,
        });
        let mut state = self.lock();
        if sections == Sections::All {
            state.forget(&Sections::Words.keys(source));
        }
        let now = state.tick();
        // Partitions that came at the same time go on with one, whose vocabulary is made once.
        if let Some((_, corpus)) = state.corpora.get(&keys) {
            return Ok(Arc::clone(corpus));
        }
        state.corpora.insert(keys.clone(), (now, Arc::clone(&corpus)));
        state.evict(context.memory_limit_bytes(), &keys);
        Ok(corpus)
    }

    /// The files at `places` of `source`, loaded where they are not; of a living corpus, before any edit.
    pub(crate) async fn load_files(
        &self,
        context: &LoadContext,
        source: &Source,
        places: &[usize],
    ) -> Result<Vec<Arc<LoadedFile>>> {
        let files: Vec<&OpenFile> =
            places.iter().filter_map(|&place| source.corpora().get(place)).collect();
        let keys: Vec<String> = files.iter().map(|open| open.key()).collect();
        let loaded = self.load_each(context, source, &files, &keys, Sections::All).await?;
        self.hold(context, &loaded, &keys)?;
        self.lock().evict(context.memory_limit_bytes(), &keys);
        Ok(loaded)
    }

    /// `files` of `source`, as many at a time as there are cores for their segments.
    async fn load_each<'a>(
        &'a self,
        context: &'a LoadContext,
        source: &'a Source,
        files: &[&'a OpenFile],
        keys: &'a [String],
        sections: Sections,
    ) -> Result<Vec<Arc<LoadedFile>>> {
        let most_segments = files.iter().map(|open| open.footer.segments.len()).max();
        let files_at_once = num_cores() / most_segments.unwrap_or_default().max(1);
        // Boxed: the compiler cannot prove futures of borrowed files to be `Send`.
        let load =
            |open: &&'a OpenFile| self.load_shared(context, source, open, keys, sections).boxed();
        let loads: Vec<_> = files.iter().map(load).collect();
        stream::iter(loads).buffered(files_at_once.max(1)).try_collect().await
    }

    /// The file `open` of `source`; of those who want it at a time one loads it.
    async fn load_shared(
        &self,
        context: &LoadContext,
        source: &Source,
        open: &OpenFile,
        keep: &[String],
        sections: Sections,
    ) -> Result<Arc<LoadedFile>> {
        let cell = Arc::clone(&self.lock().slot(&sections.key(open)).cell);
        let file = cell.get_or_try_init(|| self.load_file(context, open, keep, sections)).await;
        file.cloned().map_err(|error| match source.living() {
            Some(view) => explain_missing(&view.place, error),
            None => error,
        })
    }

    /// Paths of the documents of a file, segment by segment, each with whether it goes on with a document
    /// of the segment before; nothing else is read of a file that is not loaded.
    pub(crate) async fn paths(
        &self,
        context: &LoadContext,
        open: &OpenFile,
    ) -> Result<Vec<(bool, Paths)>> {
        let slot = self.lock().files.get(&open.key()).map(|s| Arc::clone(&s.cell));
        if let Some(file) = slot.as_ref().and_then(|cell| cell.get()) {
            let segments = file.segments.iter();
            return Ok(segments.map(|s| (s.continues, s.paths.clone())).collect());
        }
        let store = store_of(&context.runtime, &open.file)?;
        stream::iter(0..open.footer.segments.len())
            .map(|segment_idx| load_paths(context, Arc::clone(&store), open, segment_idx))
            .buffered(FILES_AT_ONCE)
            .try_collect()
            .await
    }

    /// The corpus of `source` where it is loaded.
    pub(crate) fn loaded(&self, source: &Source) -> Option<Arc<LoadedCorpus>> {
        self.lock().corpora.get(&Sections::All.keys(source)).map(|(_, corpus)| Arc::clone(corpus))
    }

    async fn load_file(
        &self,
        context: &LoadContext,
        open: &OpenFile,
        keep: &[String],
        sections: Sections,
    ) -> Result<Arc<LoadedFile>> {
        let parallel = num_cores().min(open.footer.segments.len()).max(1);
        let estimate = estimate_bytes(&open.footer, parallel, sections, &context.options)?;
        let consumer = format!("TadocCorpus[{}]", open.file.path);
        let reservation = self.reserve(context, consumer, estimate, keep)?;
        let store = store_of(&context.runtime, &open.file)?;
        let segments: Vec<Arc<Segment>> = stream::iter(0..open.footer.segments.len())
            .map(|segment_idx| {
                load_segment(context, Arc::clone(&store), open, segment_idx, sections)
            })
            .buffered(parallel)
            .try_collect()
            .await?;
        let keep_no_copies = || segments.iter().for_each(|segment| segment.dag.keep_no_copies());
        if open.portion.is_some() {
            keep_no_copies();
        }
        if self.resize(&reservation, text_memory(&segments), keep).is_err() {
            keep_no_copies();
            self.resize(&reservation, text_memory(&segments), keep)?;
        }
        let (places_bytes, _shared) = (Mutex::default(), Vec::new());
        Ok(Arc::new(LoadedFile { segments, reservation, places_bytes, _shared }))
    }

    /// Takes memory for what a scan derives from `files` beside the text, for which all goes that is not in `keep` if need be.
    fn hold(
        &self,
        context: &LoadContext,
        files: &[Arc<LoadedFile>],
        keep: &[String],
    ) -> Result<()> {
        if context.uses != Uses::Places {
            return Ok(());
        }
        for file in files {
            let mut held = file.places_bytes.lock().unwrap_or_else(PoisonError::into_inner);
            let needed = places_memory(&file.segments);
            if *held < needed {
                self.resize(&file.reservation, file.reservation.size() + needed, keep)?;
                *held = needed;
            }
        }
        Ok(())
    }

    /// The version of `view`, made of its `files` and its edits where it is not yet.
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

    /// So many bytes of the session's memory, for which all goes that is not in `keep` if need be.
    pub(super) fn reserve(
        &self,
        context: &LoadContext,
        consumer: String,
        len_bytes: usize,
        keep: &[String],
    ) -> Result<MemoryReservation> {
        let reservation = MemoryConsumer::new(consumer).register(context.pool());
        self.resize(&reservation, len_bytes, keep)?;
        Ok(reservation)
    }

    /// Makes `reservation` as large, for which all goes that is not in `keep` if need be.
    pub(super) fn resize(
        &self,
        reservation: &MemoryReservation,
        len_bytes: usize,
        keep: &[String],
    ) -> Result<()> {
        if reservation.try_resize(len_bytes).is_err() {
            self.evict_but(keep);
            reservation.try_resize(len_bytes)?;
        }
        Ok(())
    }

    /// Forgets everything but what has its key in `keep`. Queries go on with what they hold.
    pub(crate) fn evict_but(&self, keep: &[String]) {
        self.lock().evict(0, keep);
        self.living.evict_but(keep);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LoadContext {
    fn pool(&self) -> &Arc<dyn datafusion::execution::memory_pool::MemoryPool> {
        &self.runtime.memory_pool
    }

    /// Memory that may be kept: the setting, and at most half of a bounded pool.
    fn memory_limit_bytes(&self) -> u64 {
        match self.pool().memory_limit() {
            MemoryLimit::Finite(pool) => self.options.max_memory_bytes.min(pool as u64 / 2),
            _ => self.options.max_memory_bytes,
        }
    }
}

impl State {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn slot(&mut self, key: &str) -> &mut Slot {
        let now = self.tick();
        let slot = self.files.entry(key.to_string()).or_default();
        slot.last_used = now;
        slot
    }

    /// Drops the files of `keys` and the corpora that were made of them.
    fn forget(&mut self, keys: &[String]) {
        keys.iter().for_each(|key| drop(self.files.remove(key)));
        self.corpora.retain(|files, _| !files.iter().any(|file| keys.contains(file)));
    }

    /// Drops least recently used files, never those of `keep`, until at most `limit_bytes` are
    /// held, and the corpora that were made of them; and what is left of loading that failed.
    fn evict(&mut self, limit_bytes: u64, keep: &[String]) {
        let is_wanted = |slot: &Slot| slot.cell.initialized() || Arc::strong_count(&slot.cell) > 1;
        self.files.retain(|_, slot| is_wanted(slot));
        while self.corpora.len() > MAX_CORPORA {
            let oldest = self.corpora.iter().min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(keys, _)| keys.clone()) else { break };
            self.corpora.remove(&oldest);
        }
        while self.held_bytes() > limit_bytes {
            let loaded = self.files.iter().filter(|(_, slot)| slot.cell.initialized());
            let oldest =
                loaded.filter(|(key, _)| !keep.contains(key)).min_by_key(|(_, s)| s.last_used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            self.files.remove(&oldest);
            self.files.retain(|_, slot| !slot.made_of.contains(&oldest));
            self.corpora.retain(|keys, _| !keys.contains(&oldest));
        }
    }

    fn held_bytes(&self) -> u64 {
        let files = self.files.values().filter_map(|slot| slot.cell.get());
        files.map(|file| file.reservation.size() as u64).sum()
    }
}

/// Refuses corpora of different tokenizers.
pub(crate) fn check_profiles(files: &[OpenFile]) -> Result<()> {
    let Some(first) = files.first() else { return Ok(()) };
    match files.iter().find(|f| f.footer.profile != first.footer.profile) {
        None => Ok(()),
        Some(other) => Err(plan_datafusion_err!(
            "{} was written with the tokenizer {}, {} with {}; query them one by one",
            first.file.path,
            first.footer.profile,
            other.file.path,
            other.footer.profile
        )),
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
    let (path, footer) = (open.file.path.clone(), Arc::clone(&open.footer));
    let limits = context.options.open_limits();
    let read = move || read_paths(&path, &footer, segment_idx, &bytes, &limits);
    let paths = tokio::task::spawn_blocking(read).await.map_err(task_error)?;
    Ok((meta.continues, paths.map_err(datafusion_error)?))
}

async fn load_segment(
    context: &LoadContext,
    store: Arc<dyn ObjectStore>,
    open: &OpenFile,
    segment_idx: usize,
    sections: Sections,
) -> Result<Arc<Segment>> {
    let range = sections.range(&open.footer.segments[segment_idx]);
    let bytes = read_range(store.as_ref(), &open.file, range).await?;
    context.bytes_read.add(bytes.len());
    let (path, footer) = (open.file.path.clone(), Arc::clone(&open.footer));
    let limits = context.options.open_limits();
    let read = move || match sections {
        Sections::All => read_segment(&path, &footer, segment_idx, &bytes, &limits),
        Sections::Words => read_words(&path, &footer, segment_idx, &bytes, &limits),
    };
    let segment = tokio::task::spawn_blocking(read).await.map_err(task_error)?;
    segment.map(Arc::new).map_err(datafusion_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_loading_that_failed() {
        let mut state = State::default();
        let under_way = Arc::clone(&state.slot("under way").cell);
        state.slot("failed");
        state.evict(u64::MAX, &[]);
        assert_eq!(state.files.keys().collect::<Vec<_>>(), ["under way"]);
        drop(under_way);
        state.evict(u64::MAX, &[]);
        assert!(state.files.is_empty());
    }
}
