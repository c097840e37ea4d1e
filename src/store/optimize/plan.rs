//! The plan of an optimization: the parts to rebuild, grouped into runs.
//!
//! | part | is rebuilt |
//! | --- | --- |
//! | documents of edits | always |
//! | file with a document that an edit names | always: its edits are built in |
//! | small file | beside another that is rebuilt or small |
//! | any other file | never |
//!
//! The small files of one optimization become one file. So appending n small files and optimizing
//! after each costs at most `small_file_bytes` each time.
//!
//! # Restriction
//!
//! The restriction of a version to a run of its parts, with the edits of its documents.
//!
//! The edits of one document do not depend on those of others, in either mode. So a run can be
//! assembled without the other parts. Ids count from its first document.

use std::ops::Range;

use tadoc::edits::{Edit, EditBatch};
use tadoc::error::Result;

use crate::store::{LivingStore, VersionEdits};
use crate::version::{Part, Version};

use super::OptimizeOptions;

/// A run of consecutive parts of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartRun {
    /// Indexes of the parts.
    pub parts: Range<usize>,
    /// Ids of the documents in them.
    pub doc_ids: Range<u64>,
    /// True if the parts become one new file.
    pub is_rebuilt: bool,
}

/// A plan for the optimization of one version.
#[derive(Debug, Clone)]
pub struct OptimizePlan {
    base: Version,
    edits: Vec<VersionEdits>,
    runs: Vec<PartRun>,
    /// Total length of the segment files, in bytes.
    pub file_bytes: u64,
    /// Total length of the files of versions whose edits are not in the segment files, in bytes.
    pub edit_bytes: u64,
    is_worth_it: bool,
}

impl OptimizePlan {
    /// Returns true if the optimization is worth it.
    pub fn is_worth_it(&self) -> bool {
        self.is_worth_it
    }

    /// Returns the runs, in order of the parts.
    pub fn runs(&self) -> &[PartRun] {
        &self.runs
    }

    /// Returns the version to optimize.
    pub fn base(&self) -> &Version {
        &self.base
    }

    /// Returns the number of edits that are not in the segment files.
    pub fn num_edits(&self) -> u64 {
        self.edits.iter().map(|edits| edits.batch.edits.len() as u64).sum()
    }

    pub(super) fn into_parts(self) -> (Version, Vec<PartRun>, Vec<VersionEdits>) {
        (self.base, self.runs, self.edits)
    }
}

impl LivingStore {
    /// Returns the plan that [`LivingStore::optimize`] would carry out on `base`.
    ///
    /// # Errors
    /// The errors of [`LivingStore::edits`].
    pub async fn optimize_plan(&self, base: &Version, options: &OptimizeOptions) -> Result<OptimizePlan> {
        let edits = self.edits(base.edit_versions()).await?;
        let edit_bytes = self.edit_bytes(base).await?;
        let file_bytes = base.parts.iter().map(len_bytes).fold(0, u64::saturating_add);
        let runs = runs(base, &states(base, &edits, options), options);
        let has_many_edits =
            !edits.is_empty() && edit_bytes as f64 > options.recompress_ratio * (file_bytes + edit_bytes) as f64;
        let is_all_rebuilt = options.rebuild_all && !base.parts.is_empty();
        let is_worth_it = has_many_edits || is_all_rebuilt || has_many_small_files(base, options);
        let base = base.clone();
        Ok(OptimizePlan { base, edits, runs, file_bytes, edit_bytes, is_worth_it })
    }
}

/// Returns true if enough small files of `base` to be worth joining are in one run, without
/// regard to edits.
pub(crate) fn has_many_small_files(base: &Version, options: &OptimizeOptions) -> bool {
    let num_small = |parts: &[Part]| parts.iter().filter(|part| is_small(part, options)).count();
    let min_small_files = options.min_small_files.max(2);
    // Most versions have too few small files in total.
    if num_small(&base.parts) < min_small_files {
        return false;
    }
    let runs = runs(base, &states(base, &[], options), options);
    let mut rebuilt = runs.iter().filter(|run| run.is_rebuilt);
    rebuilt.any(|run| num_small(&base.parts[run.parts.clone()]) >= min_small_files)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Kept,
    Small,
    Rebuilt,
}

fn len_bytes(part: &Part) -> u64 {
    part.file_len_bytes().unwrap_or(0)
}

fn is_small(part: &Part, options: &OptimizeOptions) -> bool {
    part.file_name().is_some() && len_bytes(part) < options.small_file_bytes
}

/// Returns the first id of each part, followed by the end of the last part.
pub(super) fn first_ids(base: &Version) -> Vec<u64> {
    let mut next = 0u64;
    let mut firsts = vec![next];
    for part in &base.parts {
        next = next.saturating_add(part.num_docs());
        firsts.push(next);
    }
    firsts
}

fn states(base: &Version, edits: &[VersionEdits], options: &OptimizeOptions) -> Vec<State> {
    let firsts = first_ids(base);
    let mut states: Vec<State> = base
        .parts
        .iter()
        .map(|part| match part {
            Part::Edits { .. } => State::Rebuilt,
            _ if options.rebuild_all => State::Rebuilt,
            part if is_small(part, options) => State::Small,
            Part::File { .. } => State::Kept,
        })
        .collect();
    for doc_id in edits.iter().flat_map(|edits| &edits.batch.edits).filter_map(|e| e.doc_id()) {
        let part_idx = firsts.partition_point(|&first| first <= doc_id) - 1;
        if let Some(state) = states.get_mut(part_idx) {
            *state = State::Rebuilt;
        }
    }
    states
}

/// Groups adjacent parts that are kept or rebuilt alike. The runs to rebuild are limited in
/// length.
fn runs(base: &Version, states: &[State], options: &OptimizeOptions) -> Vec<PartRun> {
    let firsts = first_ids(base);
    let mut runs: Vec<PartRun> = Vec::new();
    let mut run_bytes = 0u64;
    for (part_idx, (part, state)) in base.parts.iter().zip(states).enumerate() {
        let is_rebuilt = *state != State::Kept;
        run_bytes = run_bytes.saturating_add(len_bytes(part));
        match runs.last_mut() {
            Some(last) if last.is_rebuilt == is_rebuilt && (!is_rebuilt || run_bytes <= options.max_run_bytes) => {
                last.parts.end = part_idx + 1;
                last.doc_ids.end = firsts[part_idx + 1];
            }
            _ => {
                run_bytes = len_bytes(part);
                let (parts, doc_ids) = (part_idx..part_idx + 1, firsts[part_idx]..firsts[part_idx + 1]);
                runs.push(PartRun { parts, doc_ids, is_rebuilt });
            }
        }
    }
    for run in &mut runs {
        // A small file alone would not change.
        run.is_rebuilt &= states[run.parts.clone()] != [State::Small];
    }
    runs
}

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
    let version = Version { parts: base.parts[run.parts.clone()].to_vec(), dropped: dropped.collect(), ..base.clone() };
    Restricted { version, edits }
}

/// Assigns each of `edits` to the run that holds its document, and counts ids from the start of
/// that run.
pub(super) fn by_run(base: &Version, runs: &[PartRun], edits: Vec<VersionEdits>) -> Vec<Vec<VersionEdits>> {
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

#[cfg(test)]
mod tests {
    use tadoc::text::TokenizerProfile;

    use crate::names::CommitId;
    use crate::version::{CommitCounts, CommitKind};

    use super::*;

    fn version(parts: Vec<Part>) -> Version {
        let id = CommitId::from_bytes([1; 16]);
        Version {
            number: 20,
            commit_id: id,
            parent_id: id,
            time_us: 0,
            kind: CommitKind::Append,
            counts: CommitCounts::default(),
            writer: String::new(),
            profile: TokenizerProfile::default(),
            parts,
            dropped: Vec::new(),
            edits_since: 1,
            sets_columns: false,
            bookmarks: Vec::new(),
        }
    }

    fn file(len_bytes: u64) -> Part {
        Part::File { id: CommitId::from_bytes([2; 16]), len_bytes, crc32c: 0, num_docs: 10 }
    }

    fn edit_for(doc_id: u64) -> VersionEdits {
        let edits = vec![Edit::DropDocument { doc_id }];
        VersionEdits { version: 12, batch: EditBatch { edits, ..EditBatch::default() } }
    }

    fn planned(parts: Vec<Part>, edits: &[VersionEdits], max_bytes: u64) -> Vec<(usize, bool)> {
        let options = OptimizeOptions { small_file_bytes: 100, max_run_bytes: max_bytes, ..OptimizeOptions::default() };
        let base = version(parts);
        let runs = runs(&base, &states(&base, edits, &options), &options);
        assert_eq!(runs.first().map_or(0, |s| s.doc_ids.start), 0);
        assert_eq!(runs.last().map_or(0, |s| s.doc_ids.end), base.num_doc_ids());
        runs.iter().map(|run| (run.parts.len(), run.is_rebuilt)).collect()
    }

    #[test]
    fn what_is_touched_or_small_is_rebuilt_with_its_neighbours() {
        let big = || file(1000);
        assert_eq!(planned(vec![], &[], 9999), []);
        assert_eq!(planned(vec![big(), file(5), big()], &[], 9999), [(1, false); 3]);
        assert_eq!(planned(vec![big(), file(5), file(5)], &[], 9999), [(1, false), (2, true)]);
        let added = Part::Edits { version: 9, num_docs: 3 };
        let parts = vec![big(), big(), added, file(5), file(5), big(), file(5)];
        let expected = [(1, false), (4, true), (1, false), (1, false)];
        assert_eq!(planned(parts.clone(), &[edit_for(19)], 9999), expected);
        // The large file is as long as a rebuilt run may be.
        let expected = [(1, false), (1, true), (3, true), (1, false), (1, false)];
        let parts_of_zero: Vec<Part> = parts;
        assert_eq!(planned(parts_of_zero, &[edit_for(10)], 1000)[0], expected[0]);
    }

    #[test]
    fn small_files_are_many_where_one_run_holds_them() {
        let many = |parts: Vec<Part>, max_run_bytes| {
            let (small_file_bytes, min_small_files) = (100, 3);
            let options =
                OptimizeOptions { small_file_bytes, min_small_files, max_run_bytes, ..OptimizeOptions::default() };
            has_many_small_files(&version(parts), &options)
        };
        let (small, added) = (|| file(5), Part::Edits { version: 9, num_docs: 3 });
        assert!(many(vec![file(1000), small(), added, small(), small()], 9999));
        assert!(!many(vec![small(), small(), file(1000), small(), small()], 9999));
        assert!(!many(vec![small(), small(), small(), small()], 10));
    }
}
