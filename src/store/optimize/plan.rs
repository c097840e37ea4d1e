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

use std::ops::Range;

use super::OptimizeOptions;
use crate::store::{LivingStore, VersionEdits};
use crate::version::{Part, Version};
use tadoc::error::Result;

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
    pub async fn optimize_plan(
        &self,
        base: &Version,
        options: &OptimizeOptions,
    ) -> Result<OptimizePlan> {
        let edits = self.edits(base.edit_versions()).await?;
        let edit_bytes = self.edit_bytes(base).await?;
        let file_bytes = base.parts.iter().map(len_bytes).fold(0, u64::saturating_add);
        let runs = runs(base, &states(base, &edits, options), options);
        let has_many_edits = !edits.is_empty()
            && edit_bytes as f64 > options.recompress_ratio * (file_bytes + edit_bytes) as f64;
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
            Some(last)
                if last.is_rebuilt == is_rebuilt
                    && (!is_rebuilt || run_bytes <= options.max_run_bytes) =>
            {
                last.parts.end = part_idx + 1;
                last.doc_ids.end = firsts[part_idx + 1];
            }
            _ => {
                run_bytes = len_bytes(part);
                let (parts, doc_ids) =
                    (part_idx..part_idx + 1, firsts[part_idx]..firsts[part_idx + 1]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::CommitId;
    use crate::version::{CommitCounts, CommitKind};
    use tadoc::edits::{Edit, EditBatch};
    use tadoc::text::TokenizerProfile;

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
            profile: TokenizerProfile::Word,
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

    fn edit_of(doc_id: u64) -> VersionEdits {
        let edits = vec![Edit::DropDocument { doc_id }];
        VersionEdits { version: 12, batch: EditBatch { edits, ..EditBatch::default() } }
    }

    fn planned(parts: Vec<Part>, edits: &[VersionEdits], max_bytes: u64) -> Vec<(usize, bool)> {
        let options = OptimizeOptions {
            small_file_bytes: 100,
            max_run_bytes: max_bytes,
            ..OptimizeOptions::default()
        };
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
        assert_eq!(planned(parts.clone(), &[edit_of(19)], 9999), expected);
        // The large file is as long as a rebuilt run may be.
        let expected = [(1, false), (1, true), (3, true), (1, false), (1, false)];
        let parts_of_zero: Vec<Part> = parts;
        assert_eq!(planned(parts_of_zero, &[edit_of(10)], 1000)[0], expected[0]);
    }

    #[test]
    fn small_files_are_many_where_one_run_holds_them() {
        let many = |parts: Vec<Part>, max_run_bytes| {
            let (small_file_bytes, min_small_files) = (100, 3);
            let options = OptimizeOptions {
                small_file_bytes,
                min_small_files,
                max_run_bytes,
                ..OptimizeOptions::default()
            };
            has_many_small_files(&version(parts), &options)
        };
        let (small, added) = (|| file(5), Part::Edits { version: 9, num_docs: 3 });
        assert!(many(vec![file(1000), small(), added, small(), small()], 9999));
        assert!(!many(vec![small(), small(), file(1000), small(), small()], 9999));
        assert!(!many(vec![small(), small(), small(), small()], 10));
    }
}
