//! Paths on the local disk as object stores write them.

use std::path::Path as DiskPath;
use std::time::{SystemTime, UNIX_EPOCH};

use object_store::ObjectMeta;
use object_store::path::Path;
use tadoc::format::path_text;

/// Returns the path in a store of the absolute `path`. A path that a store cannot represent is
/// escaped.
pub(crate) fn store_path(path: &DiskPath) -> Path {
    Path::from_absolute_path(path).unwrap_or_else(|_| Path::from(text_of(path)))
}

/// Returns `path` as text, escaped where it is none.
pub(crate) fn text_of(path: &DiskPath) -> String {
    path_text(path.as_os_str().as_encoded_bytes()).into_owned()
}

/// Builds the metadata as the session's store does, so that a file has the same version either way.
pub(crate) fn meta_of(path: &DiskPath, number: u64, modified: SystemTime, size: u64) -> ObjectMeta {
    let micros = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    ObjectMeta {
        location: store_path(path),
        last_modified: modified.into(),
        size,
        e_tag: Some(format!("{number:x}-{micros:x}-{size:x}")),
        version: None,
    }
}
