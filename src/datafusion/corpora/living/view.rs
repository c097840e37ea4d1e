//! View of a living corpus before anything is decoded: one version, its edits, its dropped documents, and the footers
//! of its files.
//!
//! A view is small compared with the corpus. The edits since the last optimize are its largest part.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::plan_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;

use crate::corpora::OpenFile;
use crate::corpora::open_file::RowSource;
use crate::errors::datafusion_error;
use tadoc::edits::{Edit, column_tables};
use tadoc::error::Error;
use tadoc_store::{Part, Version, VersionEdits};

/// The condition of a part of a corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrowed {
    /// The condition as the user wrote it.
    pub condition: String,
    /// Ids of the documents that are kept, as ascending ranges.
    pub kept: Vec<Range<u64>>,
    /// True if the whole corpus is plain files, which have no versions.
    pub is_of_files: bool,
}

/// One version of a living corpus, or a part of a corpus; see the module's description.
#[derive(Debug)]
pub struct LivingView {
    /// Key of the view. Views with equal keys have equal documents.
    pub(crate) key: String,
    /// Name of the corpus in messages.
    pub(crate) location: String,
    /// Location as a URL.
    pub url: String,
    pub version: Version,
    /// Edits that apply to the parts, in order.
    pub(crate) edits: Vec<Arc<VersionEdits>>,
    /// Ids of dropped documents, ascending.
    pub(crate) dropped: Vec<u64>,
    /// Open files of the parts that are files, in order.
    pub(crate) files: Vec<OpenFile>,
    /// Bytes of text in the edits.
    pub(crate) fresh_bytes: u64,
    /// The condition by which documents were left out, if this is a part of a corpus.
    pub narrowed: Option<Narrowed>,
    pub(super) reservation: MemoryReservation,
}

impl LivingView {
    /// Returns the open files of the parts that are files, in order.
    pub fn files(&self) -> &[OpenFile] {
        &self.files
    }

    /// Returns the number of edits that apply to the parts.
    pub(crate) fn num_edits(&self) -> usize {
        self.edits.iter().map(|edits| edits.batch.edits.len()).sum()
    }

    /// Returns true if all texts are those of the files. Edits may still set user columns.
    pub(crate) fn has_texts_of_files(&self) -> bool {
        let mut edits = self.edits.iter().flat_map(|edits| &edits.batch.edits);
        self.dropped.is_empty() && edits.all(Edit::sets_columns)
    }

    /// Returns the sources of rows of user columns, in order of id.
    pub(crate) fn row_sources(&self) -> Vec<RowSource<'_>> {
        let mut files = self.files.iter();
        let source = |part: &Part| match part {
            Part::File { .. } => files.next().map(RowSource::File),
            Part::Edits { num_docs, .. } => Some(RowSource::Nulls(*num_docs)),
        };
        self.version.parts.iter().filter_map(source).collect()
    }

    /// Returns the positions in `files` of the files that hold documents of `doc_ids` (ascending).
    pub(crate) fn files_with(&self, doc_ids: &[u64]) -> Vec<usize> {
        let file_parts = self.version.part_ids().filter(|(part, _)| part.file_name().is_some());
        let holds_any = |ids: &Range<u64>| {
            let place = doc_ids.partition_point(|id| *id < ids.start);
            doc_ids.get(place).is_some_and(|id| ids.contains(id))
        };
        file_parts.enumerate().filter(|(_, (_, ids))| holds_any(ids)).map(|(idx, _)| idx).collect()
    }

    /// Returns the id of the first document of each file in `files`.
    pub(crate) fn first_ids_of_files(&self) -> Vec<u64> {
        let file_parts = self.version.part_ids().filter(|(part, _)| part.file_name().is_some());
        file_parts.map(|(_, ids)| ids.start).collect()
    }

    /// Returns the ids of documents whose texts are edited, ascending.
    pub(crate) fn with_edited_texts(&self) -> BTreeSet<u64> {
        let edits = self.edits.iter().flat_map(|edits| &edits.batch.edits);
        edits.filter(|edit| !edit.sets_columns()).filter_map(Edit::doc_id).collect()
    }

    /// Returns the ids of documents that edits name, ascending.
    pub(crate) fn edited(&self) -> BTreeSet<u64> {
        self.edits.iter().flat_map(|edits| &edits.batch.edits).filter_map(Edit::doc_id).collect()
    }
}

/// Returns the ids of the documents dropped in `version` after `edits`. Fails if the ids that
/// `version` lists take more than `limit_bytes`.
pub(super) fn dropped_docs(version: &Version, edits: &[Arc<VersionEdits>], limit_bytes: u64) -> Result<Vec<u64>> {
    let by_edits = edits.iter().flat_map(|edits| &edits.batch.edits).filter_map(|edit| match edit {
        Edit::DropDocument { doc_id } => Some(*doc_id),
        _ => None,
    });
    let num_before = version.dropped.iter().map(|ids| ids.end - ids.start);
    let requested = num_before.fold(0, u64::saturating_add).saturating_mul(8);
    if requested > limit_bytes {
        return Err(datafusion_error(Error::Capacity {
            what: "ids of dropped documents in bytes",
            requested,
            limit: limit_bytes,
            knob: "tadoc.max_memory_bytes",
        }));
    }
    let mut dropped: Vec<u64> = version.dropped.iter().cloned().flatten().chain(by_edits).collect();
    dropped.sort_unstable();
    dropped.dedup();
    Ok(dropped)
}

/// Returns the bytes of the tables of user columns that `edits` set.
pub(super) fn table_bytes(edits: &[Arc<VersionEdits>]) -> usize {
    let edits = edits.iter().flat_map(|edits| &edits.batch.edits);
    column_tables(edits).map(Bytes::len).sum()
}

/// Returns the bytes of text in `edits`.
pub(super) fn fresh_bytes(edits: &[Arc<VersionEdits>]) -> u64 {
    edits.iter().flat_map(|edits| &edits.batch.edits).map(Edit::text_len_bytes).sum()
}

/// Refuses files that differ from what `version` says of them.
pub(super) fn check_files(version: &Version, files: &[OpenFile]) -> Result<()> {
    let parts = version.parts.iter().filter(|part| matches!(part, Part::File { .. }));
    for (part, open) in parts.zip(files) {
        let expected = part.num_docs();
        let got = open.footer.num_docs();
        let reason = match (expected == got, open.footer.profile == version.profile) {
            (false, _) => {
                format!("expected {expected} documents, which the version names, got {got}")
            }
            (_, false) => {
                format!("expected the tokenizer {}, got {}", version.profile, open.footer.profile)
            }
            _ => continue,
        };
        let file = open.file.path.clone();
        let offset = open.file.meta.size;
        return Err(datafusion_error(Error::Format { file, section: "footer", offset, reason }));
    }
    Ok(())
}

/// Explains, in an error about a missing file of the corpus at `location`, what may have happened
/// to the file.
pub(crate) fn explain_missing(location: &str, error: DataFusionError) -> DataFusionError {
    let DataFusionError::ObjectStore(cause) = error.find_root() else { return error };
    let object_store::Error::NotFound { path, .. } = cause.as_ref() else { return error };
    datafusion_error(Error::Missing {
        location: location.to_string(),
        what: format!("file {path}"),
        existing: "a clean-up took it away with old versions, or it is lost; read the latest \
                   version, or restore it from a copy"
            .into(),
    })
}

/// Returns the error for a version of `location`, which holds plain files.
pub(crate) fn no_versions(location: &str, version: u64, num_files: usize) -> DataFusionError {
    let files = match num_files {
        1 => "a plain .tadoc file, which has".to_string(),
        many => format!("{many} plain .tadoc files, which have"),
    };
    plan_datafusion_err!(
        "{location}: got version {version} of {files} one state; expected a living corpus, a folder \
         with versions"
    )
}

/// Returns the error for a location that cannot be changed.
pub(crate) fn read_only(location: &str) -> DataFusionError {
    plan_datafusion_err!(
        "{location} is read-only: only a living corpus can be changed; make one with CREATE EXTERNAL \
         TABLE d STORED AS TADOC LOCATION 'folder/' OPTIONS ('tadoc.create' 'true') and COPY (SELECT * \
         FROM '{location}') TO 'folder/' STORED AS TADOC, which keeps all columns"
    )
}
