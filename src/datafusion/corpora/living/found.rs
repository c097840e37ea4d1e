//! Living corpora that are found at locations, and the versions of them that a session knows.
//!
//! ```text
//! location ──▶ LivingLocation         a folder of the local disk, or a prefix of an object store
//! stores   location ──▶ LivingStore   remembers the last version, to list few files
//! views    location, commit ──▶ LivingView     edits, dropped ids, footers; bounded, LRU
//! ```
//!
//! A new version reuses the edits of an earlier known version, replaces it in the cache, and reads only the edits since
//! then. Views are reserved in the session's memory pool. The first scan of a statement that asks for a location looks
//! it up. The others reuse the result, so all of them read one version.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};
use tokio::sync::OnceCell;

use crate::corpora::living::view::LivingView;
use crate::corpora::local_files::{DiskFile, FoundFile};
use crate::corpora::location::{CORPUS_EXTENSION, ParsedLocation, SourceFile, object_store};
use crate::errors::{core_error, datafusion_error};
use tadoc::error::Error;
use tadoc_store::{LivingStore, ObjectPrefix, Part, Storage, StoreOptions, Version, VersionEdits, storage_in};

/// A folder or prefix that may hold a living corpus.
#[derive(Debug, Clone)]
pub(crate) struct LivingLocation {
    pub(crate) parsed: ParsedLocation,
    location: String,
}

impl LivingLocation {
    /// Parses `location` without checking what exists there.
    ///
    /// # Errors
    /// A plan error if `location` is not a location.
    pub(crate) fn parse(runtime: &RuntimeEnv, location: &str) -> Result<Self> {
        let parsed = ParsedLocation::parse_in(runtime, location)?;
        Ok(Self { parsed, location: location.to_string() })
    }

    /// Returns the location of a folder or prefix; `None` if it is a file or a glob.
    ///
    /// # Errors
    /// A plan error if `location` is not a location.
    pub(crate) fn from_folder_or_prefix(runtime: &RuntimeEnv, location: &str) -> Result<Option<Self>> {
        let found = Self::parse(runtime, location)?;
        let may_be = match found.folder() {
            Some(folder) => folder.is_dir(),
            None => !found.parsed.is_on_web() && !location.ends_with(CORPUS_EXTENSION),
        };
        Ok((may_be && found.parsed.glob.is_none()).then_some(found))
    }

    /// Returns a key that is independent of the spelling of the location.
    pub(crate) fn key(&self) -> String {
        format!("{}{}", &self.parsed.url[..url::Position::BeforePath], self.parsed.path)
    }

    /// Returns the location as a URL, which means the same in every folder.
    pub(crate) fn url(&self) -> String {
        let parsed = &self.parsed;
        format!("{}/{}", &parsed.url[..url::Position::BeforePath], parsed.path)
    }

    /// Opens the corpus at this location; `None` if there is none.
    ///
    /// # Errors
    /// Errors of the store and of the latest version.
    pub(crate) async fn open(&self, runtime: &RuntimeEnv) -> Result<Option<LivingStore>> {
        let path = &self.parsed.path;
        if self.folder().is_none() && !path.as_ref().is_empty() {
            let store = object_store(runtime, &self.parsed.url)?;
            if store.head(path).await.is_ok() {
                return Ok(None);
            }
        }
        match LivingStore::open(self.storage(runtime)?, StoreOptions::default()).await {
            Ok(store) => Ok(Some(store)),
            Err(Error::Missing { .. }) => Ok(None),
            Err(error) => Err(datafusion_error(error)),
        }
    }

    /// Returns the storage of a living corpus that exists or is created here.
    ///
    /// # Errors
    /// A plan error if there is no store for the location.
    pub(crate) fn storage(&self, runtime: &RuntimeEnv) -> Result<Arc<dyn Storage>> {
        if self.folder().is_none() && self.parsed.url.scheme() == "file" {
            // A guarded session opens no folders beside its store.
            let store = object_store(runtime, &self.parsed.url)?;
            let prefix = ObjectPrefix::new(store, self.parsed.path.clone());
            return Ok(Arc::new(prefix.with_location(self.location.trim_end_matches('/'))));
        }
        let location = self.folder().unwrap_or_else(|| PathBuf::from(&self.location));
        let store_of = |url: &url::Url| object_store(runtime, url).map_err(core_error);
        storage_in(location, store_of).map_err(datafusion_error)
    }

    /// Returns the file of `part`; `None` for edits. Such a file never changes, so no request goes
    /// to the store.
    pub(crate) fn file(&self, part: &Part) -> Option<SourceFile> {
        let Part::File { len_bytes, crc32c, .. } = part else { return None };
        let name = part.file_name()?;
        let parts = self.parsed.path.parts();
        let meta = ObjectMeta {
            location: parts.chain(Path::from(name.as_str()).parts()).collect(),
            last_modified: Default::default(),
            size: *len_bytes,
            e_tag: Some(format!("crc32c-{crc32c:08x}")),
            version: None,
        };
        let on_disk = self.folder().and_then(|folder| DiskFile::from_path(folder.join(&name)));
        let found = FoundFile { relative: name.clone(), meta, on_disk };
        Some(self.parsed.file(self.parsed.display(&name), found))
    }

    /// Returns the folder on the local disk, if the location is on it.
    fn folder(&self) -> Option<PathBuf> {
        self.parsed.disk.clone()
    }
}

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

/// Versions that one statement reads, by location; see the module's description.
#[derive(Debug, Default)]
pub(crate) struct Reading(Mutex<HashMap<String, Found>>);

/// Corpus at a location, once it has been looked up.
type Found = Arc<OnceCell<Option<FoundCorpus>>>;

impl Reading {
    /// Returns the living corpus at `location` as it was at the first lookup.
    ///
    /// # Errors
    /// The errors of [`LivingCache::find`].
    pub(crate) async fn find(
        &self,
        known: &LivingCache,
        runtime: &RuntimeEnv,
        location: &str,
    ) -> Result<Option<FoundCorpus>> {
        let Some(living) = LivingLocation::from_folder_or_prefix(runtime, location)? else {
            return Ok(None);
        };
        let cell = {
            let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(cells.entry(living.key()).or_default())
        };
        cell.get_or_try_init(|| known.find(runtime, location)).await.cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_globs_hold_no_living_corpus() {
        let runtime = RuntimeEnv::default();
        let found = |location| LivingLocation::from_folder_or_prefix(&runtime, location).unwrap();
        for location in ["*.tadoc", "s3://bucket/x.tadoc", "no/such/folder", "http://host/notes"] {
            assert!(found(location).is_none(), "{location}");
        }
        assert!(found("src").is_some());
        assert!(found("s3://bucket/notes/").is_some());
    }
}
