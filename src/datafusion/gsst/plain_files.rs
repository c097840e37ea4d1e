//! Files that were found to have no GSST columns.
//!
//! Every plan of Parquet files asks it of each file. DataFusion's cache of footers has a limit of
//! bytes, and a table may have more. Here a file takes its name and version.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use object_store::ObjectMeta;
use object_store::path::Path;

/// Number of files that are known at most.
const MAX_FILES: usize = 1 << 16;

/// Plain Parquet files, by location, in the version that was read.
#[derive(Debug, Default)]
pub(crate) struct PlainFiles(Mutex<HashMap<Path, ObjectMeta>>);

impl PlainFiles {
    /// Returns true if this version of the file is known to be plain.
    pub(super) fn contains(&self, object: &ObjectMeta) -> bool {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.get(&object.location) == Some(object)
    }

    /// Notes that this version of the file is plain.
    pub(super) fn insert(&self, object: &ObjectMeta) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= MAX_FILES {
            files.clear();
        }
        files.insert(object.location.clone(), object.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_is_not_known() {
        let object = |size, e_tag: &str| ObjectMeta {
            location: Path::from("a/x.parquet"),
            last_modified: Default::default(),
            size,
            e_tag: Some(e_tag.to_owned()),
            version: None,
        };
        let files = PlainFiles::default();
        files.insert(&object(7, "one"));
        assert!(files.contains(&object(7, "one")));
        assert!(!files.contains(&object(8, "one")) && !files.contains(&object(7, "two")));
    }
}
