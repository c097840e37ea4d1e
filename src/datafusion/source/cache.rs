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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::common::plan_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::OnceCell;

use crate::source::footer::read_footer;
use crate::source::loaded::{LoadContext, LoadedCorpus, LoadedFile};
use crate::source::location::{SourceFile, store_of};
use crate::source::open_file::OpenFile;
use crate::store::LivingCache;
use tadoc::format::{FileFooter, OpenLimits};

const MAX_FOOTERS: usize = 4096;
const MAX_CORPORA: usize = 16;
/// Footers, or sections of paths, read at a time.
pub(super) const FILES_AT_ONCE: usize = 16;

/// The open corpora of one registration; see the module's description.
#[derive(Debug, Default)]
pub(crate) struct CorpusCache {
    state: Mutex<State>,
    pub(crate) living: LivingCache,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) clock: u64,
    pub(super) footers: HashMap<String, (u64, Arc<FileFooter>)>,
    pub(super) files: HashMap<String, Slot>,
    pub(super) corpora: HashMap<Vec<String>, (u64, Arc<LoadedCorpus>)>,
}

/// A file, or a version of a living corpus, that is loaded or being loaded.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) last_used: u64,
    /// Keys of the files it shares segments with.
    pub(super) made_of: Vec<String>,
    pub(super) cell: Arc<OnceCell<Arc<LoadedFile>>>,
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

    /// So many bytes of the session's memory, for which all goes that is not in `keep` if need be.
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

    /// Makes `reservation` as large, for which all goes that is not in `keep` if need be.
    pub(crate) fn resize(
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

    /// Drops the files of `keys` and the corpora that were made of them.
    pub(super) fn forget(&mut self, keys: &[String]) {
        keys.iter().for_each(|key| drop(self.files.remove(key)));
        self.corpora.retain(|files, _| !files.iter().any(|file| keys.contains(file)));
    }

    /// Drops least recently used files, never those of `keep`, until at most `limit_bytes` are
    /// held, and the corpora that were made of them; and what is left of loading that failed.
    pub(super) fn evict(&mut self, limit_bytes: u64, keep: &[String]) {
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
