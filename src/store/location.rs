//! The conversion of a location to the storage there.
//!
//! | location | storage |
//! | --- | --- |
//! | a path, or `file://…` | [`LocalFolder`], which is durable on local disks |
//! | any other URL | [`ObjectPrefix`] in a store |
//!
//! An object store is configured from the environment, credentials included, unless the caller has
//! one.

use std::path::Path;
use std::sync::Arc;

use object_store::ObjectStore;
use url::Url;

use super::local::LocalFolder;
use super::object::ObjectPrefix;
use super::storage::Storage;
use tadoc::error::{Error, Result};

/// Returns the storage at `location`, a path or a URL. The storage is not accessed yet.
///
/// ```
/// use tadoc_store::{LivingStore, StoreOptions, storage_at};
/// use tadoc::text::TokenizerProfile;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let location = dir.path().join("notes");
/// # futures::executor::block_on(async {
/// let options = StoreOptions::default();
/// LivingStore::create(storage_at(&location)?, TokenizerProfile::default(), options).await?;
/// let store = LivingStore::open(storage_at(&location)?, options).await?;
/// assert_eq!(store.latest().await?.number, 1);
/// # Ok::<(), tadoc::Error>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// [`Error::InvalidArgument`] for an invalid URL, and [`Error::External`] if no store can be made
/// for it.
pub fn storage_at(location: impl AsRef<Path>) -> Result<Arc<dyn Storage>> {
    storage_in(location, |url| {
        // The stores' settings have the names of environment variables in lower case.
        let environment = std::env::vars().map(|(key, value)| (key.to_ascii_lowercase(), value));
        let made = object_store::parse_url_opts(url, environment);
        let (store, _) = made.map_err(|error| Error::external(format!("opening {url}"), error))?;
        Ok(Arc::from(store))
    })
}

/// Returns the storage at `location` as [`storage_at`] does. `store_of` returns the store of a URL.
///
/// # Errors
/// [`Error::InvalidArgument`] for an invalid URL, and the errors of `store_of`.
pub fn storage_in(
    location: impl AsRef<Path>,
    store_of: impl FnOnce(&Url) -> Result<Arc<dyn ObjectStore>>,
) -> Result<Arc<dyn Storage>> {
    let location = location.as_ref();
    let Some(location) = location.to_str().filter(|location| location.contains("://")) else {
        return Ok(Arc::new(LocalFolder::new(location)));
    };
    let refuse = |got: String| {
        let allowed = "a path, or a URL such as s3://bucket/notes".into();
        Error::InvalidArgument { name: "place", got, allowed }
    };
    let url = Url::parse(location).map_err(|error| refuse(format!("{location}: {error}")))?;
    if url.scheme() == "file" {
        let folder = url.to_file_path().map_err(|()| refuse(format!("{location}, which is no path")))?;
        return Ok(Arc::new(LocalFolder::new(folder)));
    }
    let path = object_store::path::Path::from_url_path(url.path());
    let path = path.map_err(|error| refuse(format!("{location}: {error}")))?;
    let prefix = ObjectPrefix::new(store_of(&url)?, path);
    Ok(Arc::new(prefix.with_location(location.trim_end_matches('/'))))
}
