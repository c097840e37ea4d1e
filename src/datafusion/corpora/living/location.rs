//! Locations of living corpora: folders of the local disk, and prefixes of object stores.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};

use crate::corpora::local_files::{DiskFile, FoundFile};
use crate::corpora::location::{CORPUS_EXTENSION, ParsedLocation, SourceFile, object_store};
use crate::errors::{core_error, datafusion_error};
use tadoc::error::Error;
use tadoc_store::{LivingStore, ObjectPrefix, Part, Storage, StoreOptions, storage_in};

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
