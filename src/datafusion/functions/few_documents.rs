//! Few documents of a living corpus in their current state, read without the other documents.
//!
//! ```text
//! ids 3, 40   parts   [ file A: 0..9 ][ edits of 7: 9..11 ][ file B: 11..30 ][ file C: 30.. ]
//!             loaded        A                                                      C
//! ```
//!
//! A version is assembled from all its files and edits, for all statements that follow. A statement
//! that needs few documents waits only for the files that hold them, and for their edits. It takes
//! O(edits) plus the time for those files.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::error::Result;

use crate::corpora::living::LivingView;
use crate::corpora::loaded::LoadedFile;
use crate::errors::{datafusion_error, task_error};
use crate::planning::Execution;
use tadoc::edits::{Edit, LivingCorpus};
use tadoc::error::Error;
use tadoc::read::ExtractQuery;
use tadoc_store::assemble_documents;

/// Largest number of documents that are read without the others.
const MAX_FEW_DOCS: usize = 1024;
/// Largest number of edits of these documents. With more edits the version is assembled, once for
/// all statements.
const MAX_FEW_EDITS: usize = 4096;

/// Few documents of a living corpus. See the module's description.
pub(super) struct FewDocuments {
    corpus: LivingCorpus,
    max_output_bytes: u64,
    /// Files of the documents. They are kept so that their memory stays reserved.
    _files: Vec<Arc<LoadedFile>>,
}

impl FewDocuments {
    /// Returns true if it pays to read `ids` of `view`, ascending, without the others.
    pub(super) fn are_few(view: &LivingView, ids: &[u64]) -> bool {
        let edits = view.edits.iter().flat_map(|edits| &edits.batch.edits);
        let is_asked = |id: &u64| ids.binary_search(id).is_ok();
        let mut of_asked = edits.filter_map(Edit::doc_id).filter(is_asked);
        ids.len() <= MAX_FEW_DOCS && of_asked.nth(MAX_FEW_EDITS).is_none()
    }

    /// Reads the documents `ids` of `view`, ascending. A text that is read later may have at most
    /// `max_output_bytes`.
    ///
    /// # Errors
    /// Errors of the store, of damaged files, and of insufficient memory.
    pub(super) async fn read(
        run: &Execution,
        view: &Arc<LivingView>,
        ids: &[u64],
        max_output_bytes: u64,
    ) -> Result<Self> {
        let places = view.files_with(ids);
        let files = run.cache.load_files(&run.load_context(), &run.scan.source, &places).await?;
        let (view, ids) = (Arc::clone(view), BTreeSet::from_iter(ids.iter().copied()));
        let read = move || {
            let corpora = files.iter().map(|file| file.corpus(view.version.profile)).collect();
            let corpus = assemble_documents(&view.version, corpora, &view.edits, &ids)?;
            Ok(Self { corpus, max_output_bytes, _files: files })
        };
        tokio::task::spawn_blocking(read).await.map_err(task_error)?.map_err(datafusion_error)
    }

    /// Returns the bytes of memory held beside the files.
    pub(super) fn memory_bytes(&self) -> usize {
        self.corpus.memory_bytes()
    }

    /// Returns the path of document `id`; empty if there is none.
    pub(super) fn path(&self, id: u64) -> &str {
        self.corpus.path(id).unwrap_or_default()
    }

    /// Returns the bytes of the text of document `id`.
    pub(super) fn len_bytes(&self, id: u64) -> tadoc::Result<u64> {
        self.corpus.len_bytes(id)
    }

    /// Appends the passage that `query` asks for to `output`.
    pub(super) fn append_passage(&self, query: &ExtractQuery, output: &mut Vec<u8>) -> tadoc::Result<()> {
        let ExtractQuery { doc_id, byte_offset, byte_len } = *query;
        let len_bytes = self.corpus.len_bytes(doc_id)?;
        if byte_offset > len_bytes {
            let (what, path) = ("byte_offset", Some(self.path(doc_id).to_owned()));
            return Err(Error::PastEnd { what, got: byte_offset, doc_id, path, len_bytes });
        }
        self.corpus.extract_into(doc_id, byte_offset, byte_len, self.max_output_bytes, output)
    }
}
