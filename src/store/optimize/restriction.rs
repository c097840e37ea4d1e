//! The restriction of a version to a run of its parts, with the edits of its documents.
//!
//! The edits of one document do not depend on those of others, in either mode. So a run can be
//! assembled without the other parts. Ids count from its first document.

use std::ops::Range;

use super::plan::PartRun;
use crate::store::VersionEdits;
use crate::version::{Part, Version};
use tadoc::edits::{Edit, EditBatch};

/// A run as a version of its own.
#[derive(Debug)]
pub(super) struct Restricted {
    /// Version that contains only the parts of the run.
    pub(super) version: Version,
    /// Edits of the run.
    pub(super) edits: Vec<VersionEdits>,
}

/// Returns the run of `base` as a version, with its `edits` from [`by_run`].
pub(super) fn restricted(base: &Version, run: &PartRun, edits: Vec<VersionEdits>) -> Restricted {
    let ids = &run.doc_ids;
    let dropped = base.dropped.iter().filter_map(|doc_ids| {
        let (start, end) = (doc_ids.start.max(ids.start), doc_ids.end.min(ids.end));
        (start < end).then(|| start - ids.start..end - ids.start)
    });
    let version = Version {
        parts: base.parts[run.parts.clone()].to_vec(),
        dropped: dropped.collect(),
        ..base.clone()
    };
    Restricted { version, edits }
}

/// Assigns each of `edits` to the run that holds its document, and counts ids from the start of
/// that run.
pub(super) fn by_run(
    base: &Version,
    runs: &[PartRun],
    edits: Vec<VersionEdits>,
) -> Vec<Vec<VersionEdits>> {
    let mut of_run: Vec<Vec<VersionEdits>> = vec![Vec::new(); runs.len()];
    for VersionEdits { version, batch } in edits {
        let adds = |part: &Part| matches!(part, Part::Edits { version: of, .. } if *of == version);
        let adding = base.parts.iter().position(adds);
        for mut edit in batch.edits {
            let found = match edit.doc_id() {
                Some(doc_id) => runs.iter().rposition(|s| s.doc_ids.start <= doc_id),
                None => runs.iter().position(|s| adding.is_some_and(|i| s.parts.contains(&i))),
            };
            let Some(run_idx) = found else { continue };
            move_down(&mut edit, runs[run_idx].doc_ids.start);
            let edits = &mut of_run[run_idx];
            if edits.last().is_none_or(|last| last.version != version) {
                let batch = EditBatch { mode: batch.mode, edits: Vec::new() };
                edits.push(VersionEdits { version, batch });
            }
            if let Some(last) = edits.last_mut() {
                last.batch.edits.push(edit);
            }
        }
    }
    of_run
}

fn move_down(edit: &mut Edit, by: u64) {
    match edit {
        Edit::InsertText { doc_id, .. }
        | Edit::AppendText { doc_id, .. }
        | Edit::DeleteText { doc_id, .. }
        | Edit::DropDocument { doc_id }
        | Edit::ReplaceDocument { doc_id, .. }
        | Edit::SetColumns { doc_id, .. } => *doc_id -= by,
        Edit::AddDocument { .. } => {}
    }
}

/// Appends a range behind the others, joined to the last one if they are adjacent.
pub(super) fn push_range(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}
