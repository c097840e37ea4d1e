//! Cache of the living corpora that a session has opened, and of their known versions.
//!
//! ```text
//! stores  location ──▶ LivingStore            remembers the last version, to list few files
//! views   location, commit ──▶ LivingView     edits, dropped ids, footers; bounded, LRU
//! ```
//!
//! A new version reuses the edits of an earlier known version, replaces it in the cache, and reads
//! only the edits since then. Views are reserved in the session's memory pool.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;

use crate::corpora::living::location::LivingLocation;
use crate::corpora::living::view::LivingView;
use crate::errors::datafusion_error;
use tadoc::error::Error;
use tadoc_store::{LivingStore, Version, VersionEdits};

const MAX_STORES: usize = 256;
const MAX_VIEWS: usize = 64;

/// A living corpus that exists.
#[derive(Debug, Clone)]
pub struct FoundCorpus {
    pub(crate) location: LivingLocation,
    pub(crate) store: LivingStore,
    pub(crate) latest: Version,
}

impl FoundCorpus {
    /// Returns its location as a URL.
    pub fn url(&self) -> String {
        self.location.url()
    }

    /// Returns the version `asked`, or the latest one.
    ///
    /// # Errors
    /// [`Error::Missing`] if the version does not exist (any more). The error lists the existing
    /// versions.
    pub async fn version(&self, asked: Option<u64>) -> Result<Version> {
        match asked {
            Some(number) if number != self.latest.number => self.store.version(number).await.map_err(datafusion_error),
            _ => Ok(self.latest.clone()),
        }
    }
}

/// Cache of living corpora; see the module's description.
#[derive(Debug, Default)]
pub(crate) struct LivingCache {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    clock: u64,
    stores: HashMap<String, LivingStore>,
    views: HashMap<String, (u64, Arc<LivingView>)>,
}

impl LivingCache {
    /// Returns the living corpus at `location` with its latest version, or `None` if there is no
    /// living corpus.
    ///
    /// # Errors
    /// A plan error if `location` is not a location; errors of the store and of the latest version.
    pub(crate) async fn find(&self, runtime: &RuntimeEnv, location: &str) -> Result<Option<FoundCorpus>> {
        let Some(location) = LivingLocation::from_folder_or_prefix(runtime, location)? else {
            return Ok(None);
        };
        let key = location.key();
        let known = self.lock().stores.get(&key).cloned();
        if let Some(store) = known {
            match store.latest().await {
                // Another corpus may have replaced the known one.
                Ok(latest) if latest.profile == store.profile() => {
                    return Ok(Some(FoundCorpus { location, store, latest }));
                }
                Ok(_) | Err(Error::Missing { .. }) => drop(self.lock().stores.remove(&key)),
                Err(error) => return Err(datafusion_error(error)),
            }
        }
        let Some(store) = location.open(runtime).await? else { return Ok(None) };
        let latest = store.latest().await.map_err(datafusion_error)?;
        let mut state = self.lock();
        if state.stores.len() >= MAX_STORES {
            state.stores.clear();
        }
        state.stores.insert(key, store.clone());
        Ok(Some(FoundCorpus { location, store, latest }))
    }

    /// Removes every view whose key is not in `keep`.
    pub(crate) fn evict_but(&self, keep: &[String]) {
        self.lock().views.retain(|key, _| keep.contains(key));
    }

    /// Keeps `view`. Drops views that are too many, or that hold more than `limit_bytes`.
    pub(super) fn keep(&self, view: Arc<LivingView>, limit_bytes: u64) {
        self.lock().keep(view, limit_bytes);
    }

    /// Returns the view `key`, if it is in the cache.
    pub(super) fn known(&self, key: &str) -> Option<Arc<LivingView>> {
        let mut state = self.lock();
        let now = state.tick();
        let (last_used, view) = state.views.get_mut(key)?;
        *last_used = now;
        Some(Arc::clone(view))
    }

    /// Returns the edits that apply to the parts of `version`. Edits of an earlier known version
    /// are reused, not read again.
    pub(super) async fn edits(&self, found: &FoundCorpus, version: &Version) -> Result<Vec<Arc<VersionEdits>>> {
        let store = &found.store;
        let mut edits = Vec::new();
        let mut missing = version.edit_versions();
        let known = self.lock().before(&found.location.key(), version);
        if let Some(known) = known {
            let next = known.version.number + 1;
            let next = if next == version.number { Ok(version.clone()) } else { store.version(next).await };
            // Version numbers alone do not prove that it is the same corpus.
            if next.is_ok_and(|next| next.parent_id == known.version.commit_id) {
                edits.clone_from(&known.edits);
                self.lock().views.remove(&known.key);
                missing = known.version.number + 1..=version.number;
            }
        }
        if !missing.is_empty() {
            let read = store.edits(missing).await.map_err(datafusion_error)?;
            edits.extend(read.into_iter().map(Arc::new));
        }
        Ok(edits)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Returns the last known version at `location` before `version` whose edits apply to the same
    /// parts.
    fn before(&self, location: &str, version: &Version) -> Option<Arc<LivingView>> {
        let is_before = |view: &&Arc<LivingView>| {
            view.version.number < version.number
                && view.version.edits_since == version.edits_since
                && view.key.strip_suffix(&format!("#{}", view.version.commit_id)) == Some(location)
        };
        let views = self.views.values().map(|(_, view)| view);
        views.filter(is_before).max_by_key(|view| view.version.number).cloned()
    }

    /// Keeps `view`. Drops the least recently used views while there are too many, or while they
    /// hold more than `limit_bytes`.
    fn keep(&mut self, view: Arc<LivingView>, limit_bytes: u64) {
        let now = self.tick();
        self.views.insert(view.key.clone(), (now, view));
        let held = |views: &HashMap<String, (u64, Arc<LivingView>)>| {
            views.values().map(|(_, view)| view.reservation.size() as u64).sum::<u64>()
        };
        while self.views.len() > MAX_VIEWS || (self.views.len() > 1 && held(&self.views) > limit_bytes) {
            let oldest = self.views.iter().min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            self.views.remove(&oldest);
        }
    }
}
