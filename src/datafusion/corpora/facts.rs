//! Facts about the documents of a source by document id, read without grammars.
//!
//! ```text
//! files   [ A: ids 0.. ][ B: ids 40.. (not read) ][ C: ids 70.. ]
//! ```

use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::error::Result;

use crate::corpora::loaded::LoadedFile;
use tadoc::segment::{DocumentFacts, DocumentLength, SegmentFacts};

/// Paths and lengths by document id; see the module's description.
#[derive(Debug, Default)]
pub(crate) struct FactTable {
    /// Files in order, each with the id of its first document. The facts of a file that is not read
    /// are missing.
    files: Vec<(u64, Option<Arc<LoadedFile>>)>,
    num_ids: u64,
}

impl FactTable {
    /// Appends a file of `num_docs` documents.
    pub(super) fn push(&mut self, num_docs: u64, file: Option<Arc<LoadedFile>>) {
        self.files.push((self.num_ids, file));
        self.num_ids += num_docs;
    }

    /// Returns the path of document `id`; empty if there is none.
    pub(crate) fn path(&self, id: u64) -> &str {
        self.file_with(id).and_then(|(facts, index)| facts.path(index)).unwrap_or_default()
    }

    /// Returns the length of document `id`.
    ///
    /// # Errors
    /// An internal error if its file was not read.
    pub(crate) fn length(&self, id: u64) -> Result<DocumentLength> {
        match self.file_with(id).and_then(|(facts, index)| facts.length(index)) {
            Some(length) => Ok(length),
            None => internal_err!("the length of document {id} was not read"),
        }
    }

    /// Returns the facts of segment `segment_idx` of the file at `place`, if it was read.
    pub(super) fn segment(&self, place: usize, segment_idx: usize) -> Option<&SegmentFacts> {
        let (_, file) = self.files.get(place)?;
        file.as_ref()?.facts.segments().get(segment_idx)
    }

    /// Returns the facts of the file with document `id`, and the id of the document in the file.
    fn file_with(&self, id: u64) -> Option<(&DocumentFacts, u64)> {
        let behind = self.files.partition_point(|&(first_id, _)| first_id <= id);
        let (first_id, file) = &self.files[behind.checked_sub(1)?];
        Some((&file.as_ref()?.facts, id - first_id))
    }
}
