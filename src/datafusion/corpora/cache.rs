//! Cache of the open corpora of a session. Files are loaded once and kept while memory allows.
//!
//! ```text
//! footers   file version ──▶ FileFooter                      one small read, while planning a scan
//! columns   file version ──▶ schema of user columns          while planning a scan of a table
//! files     file version ──▶ segments, memory reservation    the whole file, on first execution
//!                            some segments                   if a statement looks for words
//!           commit ──▶ segments of a living corpus           what its edits changed, once
//! corpora   list of versions ──▶ Corpus, vocabulary, word views
//! words     files and corpora with words and counts only     a tenth of a file
//! facts     files with paths and lengths of documents only   a hundredth of a file
//! ```
//!
//! A file version consists of URL, length and e-tag (or modification time), so a replaced file is read again. Two
//! queries that need the same file load it once. The decoded form is reserved in the session's memory pool as long as
//! it is kept. The least recently used files are dropped first, when `tadoc.max_memory_bytes` or half of a bounded pool
//! is exceeded, or when the pool refuses a new file. A version of a living corpus shares segments without edits with
//! its files; a later version with more files reads only the new ones. Data of a running query stays until the query
//! ends. Decoding runs on blocking threads.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::plan_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::OnceCell;

use crate::corpora::living::{FoundCorpus, LivingCache, LivingView};
use crate::corpora::loaded::{LoadContext, LoadedCorpus, LoadedFile};
use crate::corpora::location::{SourceFile, store_of};
use crate::corpora::open_file::{OpenFile, read_footer};
use tadoc::format::{FileFooter, OpenLimits};
use tadoc::text::TokenizerProfile;

const MAX_FOOTERS: usize = 4096;
const MAX_CORPORA: usize = 16;
/// Number of footers, or of sections about documents, that are read in parallel.
pub(super) const FILES_AT_ONCE: usize = 16;

/// Cache of the open corpora of one registration; see the module's description.
#[derive(Debug, Default)]
pub struct CorpusCache {
    state: Mutex<State>,
    pub(crate) living: LivingCache,
    /// Parts of corpora, the one that was used last at the end.
    parts: Mutex<Vec<Arc<LivingView>>>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) clock: u64,
    pub(super) footers: HashMap<String, (u64, Arc<FileFooter>)>,
    /// Schemas of user columns, by file version.
    columns: HashMap<String, SchemaRef>,
    pub(super) files: HashMap<String, Slot>,
    pub(super) corpora: HashMap<Vec<String>, (u64, Arc<LoadedCorpus>)>,
    /// Versions of files for which workers were asked, where one process that has them open is faster.
    asked_elsewhere: HashSet<String>,
}

/// A file, or a version of a living corpus, that is loaded or being loaded.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) last_used: u64,
    /// Keys of the files that it shares segments with.
    pub(super) made_of: Vec<String>,
    /// The whole file.
    pub(super) cell: Arc<OnceCell<Arc<LoadedFile>>>,
    /// The file with some segments absent, as long as it is not loaded whole.
    pub(super) part: Option<Arc<LoadedFile>>,
    /// Held while segments of the part are opened.
    pub(super) opening: Arc<tokio::sync::Mutex<()>>,
}

impl Slot {
    /// Returns the file, whole or with some segments absent.
    pub(super) fn file(&self) -> Option<&Arc<LoadedFile>> {
        self.cell.get().or(self.part.as_ref())
    }

    /// Keeps `file`, of which segments were opened. Returns the whole file if it was loaded
    /// meanwhile.
    pub(super) fn keep(&mut self, file: Arc<LoadedFile>) -> Arc<LoadedFile> {
        if file.unopened.is_empty() {
            drop(self.cell.set(Arc::clone(&file)));
        }
        match self.cell.get() {
            Some(whole) => {
                self.part = None;
                Arc::clone(whole)
            }
            None => {
                self.part = Some(Arc::clone(&file));
                file
            }
        }
    }
}

impl CorpusCache {
    /// Reads the footers of `files`.
    ///
    /// # Errors
    /// The errors of the store and of footers; an error if two files have different tokenizer profiles.
    pub async fn open(
        &self,
        runtime: &Arc<RuntimeEnv>,
        limits: &OpenLimits,
        files: Vec<SourceFile>,
    ) -> Result<Vec<OpenFile>> {
        let open = |file: SourceFile| async move {
            let footer = self.footer(runtime, limits, &file).await?;
            Ok::<_, DataFusionError>(OpenFile { file, footer, portion: None })
        };
        let files: Vec<OpenFile> = stream::iter(files).map(open).buffered(FILES_AT_ONCE).try_collect().await?;
        common_profile(&files)?;
        Ok(files)
    }

    /// Returns the living corpus at `location` with its latest version, or `None` if there is none.
    ///
    /// # Errors
    /// A plan error if `location` is not a location; errors of the store and of the latest version.
    pub async fn find_living(&self, runtime: &RuntimeEnv, location: &str) -> Result<Option<FoundCorpus>> {
        self.living.find(runtime, location).await
    }

    async fn footer(&self, runtime: &RuntimeEnv, limits: &OpenLimits, file: &SourceFile) -> Result<Arc<FileFooter>> {
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

    /// Returns the schema of the user columns of the file version `key`, if it was read.
    pub(super) fn known_columns(&self, key: &str) -> Option<SchemaRef> {
        self.lock().columns.get(key).cloned()
    }

    /// Keeps the schema of the user columns of the file version `key`.
    pub(super) fn keep_columns(&self, key: String, schema: SchemaRef) {
        let mut state = self.lock();
        if state.columns.len() >= MAX_FOOTERS {
            state.columns.clear();
        }
        state.columns.insert(key, schema);
    }

    /// Returns true if workers were asked for all of `files`, where one process that has them open is faster.
    pub(crate) fn was_asked_elsewhere(&self, files: &[OpenFile]) -> bool {
        let state = self.lock();
        files.iter().all(|open| state.asked_elsewhere.contains(&open.file.version_key()))
    }

    /// Notes that workers are asked for `files`, where one process that has them open is faster.
    pub(crate) fn note_asked_elsewhere(&self, files: &[OpenFile]) {
        let mut state = self.lock();
        if state.asked_elsewhere.len() >= MAX_FOOTERS {
            state.asked_elsewhere.clear();
        }
        state.asked_elsewhere.extend(files.iter().map(|open| open.file.version_key()));
    }

    /// Reserves `len_bytes` of the session's memory. If the memory does not suffice, everything
    /// that is not in `keep` is dropped from the cache.
    pub(crate) fn reserve(
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

    /// Resizes `reservation` to `len_bytes`. If the memory does not suffice, everything that is not
    /// in `keep` is dropped from the cache.
    pub(crate) fn resize(&self, reservation: &MemoryReservation, len_bytes: usize, keep: &[String]) -> Result<()> {
        if reservation.try_resize(len_bytes).is_err() {
            self.evict_but(keep);
            reservation.try_resize(len_bytes)?;
        }
        Ok(())
    }

    /// Drops everything whose key is not in `keep`. Running queries keep the data that they hold.
    pub(crate) fn evict_but(&self, keep: &[String]) {
        self.lock().evict(0, keep);
        self.living.evict_but(keep);
        self.parts().retain(|part| keep.contains(&part.key));
    }

    pub(super) fn parts(&self) -> MutexGuard<'_, Vec<Arc<LivingView>>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub(super) fn slot(&mut self, key: &str) -> &mut Slot {
        let now = self.tick();
        let slot = self.files.entry(key.to_string()).or_default();
        slot.last_used = now;
        slot
    }

    /// Returns the corpus of the files `keys`, if all of it is loaded.
    pub(super) fn whole_corpus(&mut self, keys: &[String]) -> Option<Arc<LoadedCorpus>> {
        let now = self.tick();
        let (last_used, corpus) = self.corpora.get_mut(keys).filter(|(_, corpus)| corpus.is_whole())?;
        *last_used = now;
        Some(Arc::clone(corpus))
    }

    /// Drops the opened segments of the file `key`, which is about to be loaded whole.
    pub(super) fn forget_part(&mut self, key: &String) {
        if let Some(slot) = self.files.get_mut(key) {
            slot.part = None;
        }
        self.corpora.retain(|files, (_, corpus)| corpus.is_whole() || !files.contains(key));
    }

    /// Drops the files of `keys` and the corpora that contain them.
    pub(super) fn forget(&mut self, keys: &[String]) {
        keys.iter().for_each(|key| drop(self.files.remove(key)));
        self.corpora.retain(|files, _| !files.iter().any(|file| keys.contains(file)));
    }

    /// Drops the least recently used files, except those in `keep`, until at most `limit_bytes` are
    /// held. Also drops the corpora that contain them, and the remains of failed loads.
    pub(super) fn evict(&mut self, limit_bytes: u64, keep: &[String]) {
        let is_under_way = |slot: &Slot| Arc::strong_count(&slot.cell) > 1 || Arc::strong_count(&slot.opening) > 1;
        let is_wanted = |slot: &Slot| slot.file().is_some() || is_under_way(slot);
        self.files.retain(|_, slot| is_wanted(slot));
        // A corpus whose files were dropped while it was put together would hold their memory uncounted.
        let has_file = |key: &String| self.files.get(key).is_some_and(|slot| slot.file().is_some());
        self.corpora.retain(|keys, _| keys[..] == *keep || keys.iter().all(has_file));
        while self.corpora.len() > MAX_CORPORA {
            let oldest = self.corpora.iter().min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(keys, _)| keys.clone()) else { break };
            self.corpora.remove(&oldest);
        }
        while self.held_bytes() > limit_bytes {
            let loaded = self.files.iter().filter(|(_, slot)| slot.file().is_some());
            let oldest = loaded.filter(|(key, _)| !keep.contains(key)).min_by_key(|(_, s)| s.last_used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            self.files.remove(&oldest);
            self.files.retain(|_, slot| !slot.made_of.contains(&oldest));
            self.corpora.retain(|keys, _| !keys.contains(&oldest));
        }
    }

    fn held_bytes(&self) -> u64 {
        let files = self.files.values().flat_map(|slot| slot.cell.get().into_iter().chain(&slot.part));
        files.map(|file| file.held.reservation.size() as u64).sum()
    }
}

/// Returns the tokenizer profile of questions to all `files`.
///
/// # Errors
/// The words of two of them are different.
pub(crate) fn common_profile(files: &[OpenFile]) -> Result<TokenizerProfile> {
    let Some(first) = files.first() else { return Ok(TokenizerProfile::default()) };
    let mut common = first.footer.profile;
    for other in files {
        common = common.together(other.footer.profile).ok_or_else(|| {
            plan_datafusion_err!(
                "{} was written with the tokenizer {}, {} with {}; query them one by one",
                first.file.path,
                first.footer.profile,
                other.file.path,
                other.footer.profile
            )
        })?;
    }
    Ok(common)
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
