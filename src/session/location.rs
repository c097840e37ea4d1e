//! Locations as users write them: paths and URLs, and the folders of living corpora.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use tadoc::format::path_text;
use url::Url;

use crate::failure::{Failure, Outcome};

/// Names of the folders inside a living corpus.
pub const FOLDERS: [&str; 2] = ["segments", "versions"];

/// Returns true if `path` is a folder that holds a living corpus.
pub fn is_living_folder(path: &Path) -> bool {
    path.join(FOLDERS[1]).is_dir()
}

/// Returns `location` as text if it is a URL.
pub fn url_of(location: &Path) -> Option<&str> {
    location.to_str().filter(|text| text.contains("://"))
}

/// Returns the path of `location` on this machine, also for a `file://` URL. Returns `None` for a
/// location in a store.
///
/// # Errors
/// The URL is invalid.
pub fn local_path(location: &Path) -> Outcome<Option<PathBuf>> {
    let Some(text) = url_of(location) else { return Ok(Some(location.to_owned())) };
    let url = Url::parse(text).map_err(|error| Failure::with_cause(text, &error))?;
    if url.scheme() != "file" {
        return Ok(None);
    }
    let path = url.to_file_path();
    path.map(Some).map_err(|()| Failure::new(format!("{text}: expected file:///FOLDER/NAME")))
}

/// Returns a location as text for SQL and URLs. Names that are not UTF-8 are escaped; the library
/// reverses the escapes.
pub fn text_of(location: &Path) -> Cow<'_, str> {
    match url_of(location) {
        Some(url) => Cow::Borrowed(url),
        None => path_text(location.as_os_str().as_encoded_bytes()),
    }
}

/// Checks that a living corpus exists at `location` or can be created there.
///
/// # Errors
/// `location` is a file, or a folder that holds other files.
pub fn check_living_location(location: &Path) -> Outcome {
    if url_of(location).is_some() {
        return Ok(());
    }
    // A slash behind the name of a file would make the file look absent.
    let location: &Path = &location.components().collect::<PathBuf>();
    let shown = location.display();
    if location.symlink_metadata().is_err() {
        return Ok(());
    }
    if !location.is_dir() {
        return Err(Failure::new(format!(
            "{shown} is a file; --append adds to a folder or URL that holds a living corpus"
        )));
    }
    let entries = fs::read_dir(location).map_err(|error| Failure::with_cause(shown, &error))?;
    let names = entries.flatten().map(|entry| entry.file_name());
    match names.filter(|name| !FOLDERS.iter().any(|folder| name == folder)).min() {
        Some(other) if !is_living_folder(location) => Err(Failure::new(format!(
            "{} holds other files, such as {}; name a new folder for the living corpus",
            location.display(),
            other.to_string_lossy()
        ))),
        _ => Ok(()),
    }
}
