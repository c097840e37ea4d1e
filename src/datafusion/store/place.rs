//! Locations of living corpora: folders of the local disk, and prefixes of object stores.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};

use crate::errors::{core_error, datafusion_error};
use crate::source::local_files::{DiskFile, FoundFile};
use crate::source::location::{CORPUS_EXTENSION, ParsedLocation, SourceFile, object_store};
use tadoc::error::Error;
use tadoc_store::{LivingStore, Part, Storage, StoreOptions, storage_in};

/// A folder or prefix that may hold a living corpus.
#[derive(Debug, Clone)]
pub(crate) struct LivingPlace {
    pub(super) place: ParsedLocation,
    location: String,
}

impl LivingPlace {
    /// Parses `location` without checking what exists there.
    ///
    /// # Errors
    /// A plan error if `location` is not a location.
    pub(crate) fn parse(location: &str) -> Result<Self> {
        Ok(Self { place: ParsedLocation::parse(location)?, location: location.to_string() })
    }

    /// Returns the place of `location`; `None` if it is a file or a glob.
    ///
    /// # Errors
    /// A plan error if `location` is not a location.
    pub(crate) fn of(location: &str) -> Result<Option<Self>> {
        let found = Self::parse(location)?;
        let may_be = match found.folder() {
            Some(folder) => folder.is_dir(),
            None => !found.place.is_on_web() && !location.ends_with(CORPUS_EXTENSION),
        };
        Ok((may_be && found.place.glob.is_none()).then_some(found))
    }

    /// Returns a key of the place that is independent of the spelling of the location.
    pub(crate) fn key(&self) -> String {
        format!("{}{}", &self.place.url[..url::Position::BeforePath], self.place.path)
    }

    /// Opens the corpus at this place; `None` if there is none.
    ///
    /// # Errors
    /// Errors of the store and of the latest version.
    pub(crate) async fn open(&self, runtime: &RuntimeEnv) -> Result<Option<LivingStore>> {
        let path = &self.place.path;
        if self.folder().is_none() && !path.as_ref().is_empty() {
            let store = object_store(runtime, &self.place.url)?;
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
    /// A plan error if there is no store for the place.
    pub(super) fn storage(&self, runtime: &RuntimeEnv) -> Result<Arc<dyn Storage>> {
        let place = self.folder().unwrap_or_else(|| PathBuf::from(&self.location));
        let store_of = |url: &url::Url| object_store(runtime, url).map_err(core_error);
        storage_in(place, store_of).map_err(datafusion_error)
    }

    /// Returns the file of `part`; `None` for edits. Such a file never changes, so no request goes
    /// to the store.
    pub(crate) fn file(&self, part: &Part) -> Option<SourceFile> {
        let Part::File { len_bytes, crc32c, .. } = part else { return None };
        let name = part.file_name()?;
        let parts = self.place.path.parts();
        let meta = ObjectMeta {
            location: parts.chain(Path::from(name.as_str()).parts()).collect(),
            last_modified: Default::default(),
            size: *len_bytes,
            e_tag: Some(format!("crc32c-{crc32c:08x}")),
            version: None,
        };
        let on_disk = self.folder().and_then(|folder| DiskFile::of(folder.join(&name)));
        let found = FoundFile { relative: name.clone(), meta, on_disk };
        Some(self.place.file(self.place.display(&name), found))
    }

    /// Returns the folder on the local disk, if the place is on it.
    fn folder(&self) -> Option<PathBuf> {
        self.place.disk.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_globs_are_no_places() {
        for location in ["*.tadoc", "s3://bucket/x.tadoc", "no/such/folder", "http://host/notes"] {
            assert!(LivingPlace::of(location).unwrap().is_none(), "{location}");
        }
        assert!(LivingPlace::of("src").unwrap().is_some());
        assert!(LivingPlace::of("s3://bucket/notes/").unwrap().is_some());
    }
}
