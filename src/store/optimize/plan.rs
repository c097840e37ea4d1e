//! The plan of an optimization: the parts to rebuild, grouped into runs; and the rebuilding of a run as one new file.
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
//! A run is a version restricted to some of its parts, with the edits of its documents. The edits of one document do
//! not depend on those of others, in either mode. So a run can be assembled without the other parts. Ids count from
//! its first document.
//!
//! ```text
//! files ─┬─ large segments that no edit touched ────────────────────────────▶ copied ─┐
//!        └─ assemble with the edits ─▶ documents, one by one ─▶ builder ──────────────┴▶ part file
//! columns of the parts, and the edits that set columns ─▶ merge_columns ──────────────▶
//! ```
//!
//! If a document spans several segments, either all of them are copied or none.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::edits::{Edit, EditBatch, LivingCorpus};
use tadoc::error::{Error, Result};
use tadoc::format::{FileFooter, SegmentContents, SegmentMeta, read_columns};
use tadoc::segment::{Corpus, Segment};

use crate::parts::{PartWriter, WrittenPart, assemble};
use crate::storage::{on_computing_thread, retrying};
use crate::store::{LivingStore, VersionEdits};
use crate::version::{Part, Version};

use super::{ColumnsOfPart, OptimizeOptions};

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
                let parts = part_idx..part_idx + 1;
                let doc_ids = firsts[part_idx]..firsts[part_idx + 1];
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
        let start = doc_ids.start.max(ids.start);
        let end = doc_ids.end.min(ids.end);
        (start < end).then(|| start - ids.start..end - ids.start)
    });
    let version = Version { parts: base.parts[run.parts.clone()].to_vec(), dropped: dropped.collect(), ..base.clone() };
    Restricted { version, edits }
}

/// Assigns each of `edits` to the run that holds its document, and counts ids from the start of
/// that run.
pub(super) fn by_run(base: &Version, runs: &[PartRun], edits: Vec<VersionEdits>) -> Vec<Vec<VersionEdits>> {
    let mut run_edits: Vec<Vec<VersionEdits>> = vec![Vec::new(); runs.len()];
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
            let edits = &mut run_edits[run_idx];
            if edits.last().is_none_or(|last| last.version != version) {
                let batch = EditBatch { mode: batch.mode, edits: Vec::new() };
                edits.push(VersionEdits { version, batch });
            }
            if let Some(last) = edits.last_mut() {
                last.batch.edits.push(edit);
            }
        }
    }
    run_edits
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

/// A run as one file.
pub(super) struct Rebuilt {
    /// Part for the new file.
    pub(super) part: Part,
    /// Ids of its dropped documents.
    pub(super) dropped: Vec<Range<u64>>,
}

impl LivingStore {
    /// Writes the documents of `restricted` to a new file.
    pub(super) async fn rebuild(&self, restricted: Restricted, options: &OptimizeOptions) -> Result<Rebuilt> {
        let mut files = Vec::new();
        let mut columns = Vec::new();
        for part in &restricted.version.parts {
            let num_docs = part.num_docs();
            let mut parquet = None;
            if matches!(part, Part::File { .. }) {
                let (footer, corpus) = self.read_part(part, &options.limits).await?;
                parquet = self.columns_for(part, &footer).await?;
                files.push((footer, corpus));
            }
            let file = part.file_name().map(|name| self.name_for(&name)).unwrap_or_default();
            columns.push(ColumnsOfPart { file, num_docs, parquet });
        }
        let edits = restricted.edits.iter().flat_map(|edits| &edits.batch.edits);
        let set: Vec<Edit> = edits.filter(|edit| edit.sets_columns()).cloned().collect();
        let first_layout = files.iter().flat_map(|(footer, _)| &footer.segments).map(SegmentMeta::layout).next();
        let layout = first_layout.filter(|_| options.keep_layout).unwrap_or(options.ingest.layout);
        let ingest = IngestOptions { profile: self.profile(), layout, ..options.ingest };
        let run = move || Documents::new(restricted, files, ingest);
        let run = on_computing_thread(run).await??;
        let mut dropped = Vec::new();
        for doc_id in run.living.dropped_docs() {
            push_range(&mut dropped, doc_id..doc_id + 1);
        }
        let merged = self.merged_columns(&columns, &set, &dropped, options)?;
        let WrittenPart { part, .. } = self.write_part(move |out| run.write(out, ingest, merged)).await?;
        Ok(Rebuilt { part, dropped })
    }

    /// Returns the Parquet file inside the file of `part`.
    async fn columns_for(&self, part: &Part, footer: &FileFooter) -> Result<Option<Bytes>> {
        let (Some(section), Part::File { len_bytes, .. }) = (&footer.columns, part) else {
            return Ok(None);
        };
        let name = part.file_name().unwrap_or_default();
        let get = retrying(self.options().retry, || self.storage().get(&name, *len_bytes)).await;
        let file = self.name_for(&name);
        let bytes = get.map_err(|error| error.into_error(format!("reading {file}")))?;
        let range = section.offset as usize..(section.offset + section.len) as usize;
        let stored = bytes.get(range).unwrap_or_default();
        read_columns(&file, section, stored).map(Some)
    }

    fn merged_columns(
        &self,
        columns: &[ColumnsOfPart],
        set: &[Edit],
        dropped: &[Range<u64>],
        options: &OptimizeOptions,
    ) -> Result<Option<Vec<u8>>> {
        if set.is_empty() && columns.iter().all(|part| part.parquet.is_none()) {
            return Ok(None);
        }
        match &options.merge_columns {
            Some(merge) => merge(columns, set, dropped),
            None => Err(Error::InvalidArgument {
                name: "merge_columns",
                got: "nothing, and there are user columns".into(),
                allowed: "what joins them; or use `tadoc optimize`".into(),
            }),
        }
    }
}

/// Documents of a run, and its segments that may be copied.
struct Documents {
    living: LivingCorpus,
    groups: Vec<Group>,
}

/// A run of documents that are written together.
struct Group {
    doc_ids: Range<u64>,
    /// Segments that are copied with these documents. Empty if the documents are built anew.
    copied: Vec<(Arc<Segment>, SegmentMeta)>,
}

impl Documents {
    /// Creates the run of `restricted`.
    fn new(restricted: Restricted, files: Vec<(FileFooter, Corpus)>, ingest: IngestOptions) -> Result<Self> {
        let Restricted { version, edits } = restricted;
        let named = edits.iter().flat_map(|edits| &edits.batch.edits);
        let named = named.filter(|edit| !edit.sets_columns());
        let mut touched: Vec<u64> = named.filter_map(|edit| edit.doc_id()).collect();
        touched.sort_unstable();
        let mut groups = Vec::new();
        let mut next = 0;
        let mut unread = files.iter();
        for part in &version.parts {
            let doc_ids = next..next + part.num_docs();
            next = doc_ids.end;
            let file = if part.file_name().is_some() { unread.next() } else { None };
            match file.and_then(|(footer, corpus)| groups_for(footer, corpus, doc_ids.start)) {
                Some(file_groups) => groups.extend(file_groups),
                None => groups.push(Group { doc_ids, copied: Vec::new() }),
            }
        }
        for group in &mut groups {
            let len_bytes: u64 = group.copied.iter().map(|(_, meta)| meta.len_bytes).sum();
            let is_large = len_bytes >= ingest.block_bytes as u64 / 2;
            let first = touched.partition_point(|doc_id| *doc_id < group.doc_ids.start);
            if !is_large || touched.get(first).is_some_and(|id| group.doc_ids.contains(id)) {
                group.copied.clear();
            }
        }
        let files = files.into_iter().map(|(_, corpus)| corpus).collect();
        Ok(Self { living: assemble(&version, files, &edits)?, groups })
    }

    fn write(self, out: &mut PartWriter, ingest: IngestOptions, columns: Option<Vec<u8>>) -> Result<FileFooter> {
        let Self { living, groups } = self;
        let mut builder = CorpusBuilder::new(out, ingest)?;
        let mut text = Vec::new();
        for Group { doc_ids, copied } in groups {
            if copied.is_empty() {
                for doc_id in doc_ids {
                    text.clear();
                    if !living.is_dropped(doc_id) {
                        living.extract_into(doc_id, 0, u64::MAX, u64::MAX, &mut text)?;
                    }
                    builder.push_document(living.path(doc_id).unwrap_or_default(), &text)?;
                }
            }
            for (segment, meta) in copied {
                builder.push_segment(&SegmentContents::from_segment(&segment, &meta))?;
            }
        }
        Ok(builder.finish(columns)?.1.footer)
    }
}

/// Returns the segments of a file, grouped if they share a document. Returns `None` if their
/// documents are not those of the file.
fn groups_for(footer: &FileFooter, corpus: &Corpus, first_id: u64) -> Option<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    for (segment, meta) in corpus.segments().iter().zip(&footer.segments) {
        let copy = (Arc::clone(segment), meta.clone());
        let num_docs = segment.dag.grammar().num_docs() as u64;
        match groups.last_mut() {
            Some(last) if segment.continues => {
                last.doc_ids.end += num_docs.saturating_sub(1);
                last.copied.push(copy);
            }
            last => {
                let start = last.map_or(first_id, |last| last.doc_ids.end);
                groups.push(Group { doc_ids: start..start + num_docs, copied: vec![copy] });
            }
        }
    }
    let end = groups.last().map_or(first_id, |last| last.doc_ids.end);
    (end == first_id + corpus.num_docs()).then_some(groups)
}

#[cfg(test)]
mod tests {
    use tadoc::text::TokenizerProfile;

    use crate::storage::CommitId;
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
            let small_file_bytes = 100;
            let min_small_files = 3;
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
