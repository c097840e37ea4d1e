//! Parts of corpora: views in which all other documents are dropped.
//!
//! ```text
//! files of a corpus, or a version     ids that are kept      view
//! a.tadoc 0 1 2   b.tadoc 3 4 5   +   1 3 4              ─▶  the same files, dropped 0 2 5
//! ```
//!
//! Every function leaves out dropped documents, and keeps the ids of the others. So a part of a corpus has the answers
//! of a corpus with these documents alone, under their ids in the whole. Views with equal documents are one view, whose
//! snapshot is kept as that of a version is. A view takes O(dropped documents) memory; what is read of it, O(G + V)
//! time for each segment in which a document is dropped, once.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;

use crate::corpora::living::view::{LivingView, Narrowed};
use crate::corpora::{CorpusCache, OpenFile, Source, memory};
use tadoc::edits::{Edit, EditBatch, EditMode};
use tadoc_store::{CommitCounts, CommitId, CommitKind, Part, Version, VersionEdits};

/// Parts of corpora that a session keeps.
const MAX_PARTS: usize = 16;

impl CorpusCache {
    /// Returns the part of `source` with the documents `kept`, which ascend. Returns `source` if these are all.
    ///
    /// # Errors
    /// An error if memory has no room for the ids.
    pub fn narrowed(
        &self,
        runtime: &Arc<RuntimeEnv>,
        source: Source,
        condition: &str,
        kept: Vec<Range<u64>>,
    ) -> Result<Source> {
        let whole = Whole::new(&source);
        let num_ids = whole.version.num_doc_ids();
        let dropped = dropped_beside(&kept, num_ids, &whole.dropped);
        if dropped.len() == whole.dropped.len() {
            return Ok(source);
        }
        let mut parts = self.parts();
        let known = parts.iter().position(|part| part.is_part_of(&whole.key) && part.dropped == dropped);
        if let Some(place) = known {
            let part = parts.remove(place);
            parts.push(Arc::clone(&part));
            return Ok(Source::Living(part));
        }
        let narrowed = Narrowed { condition: condition.to_owned(), kept, is_of_files: whole.is_of_files };
        let part = Arc::new(whole.narrowed_to(runtime, narrowed, dropped)?);
        if parts.len() >= MAX_PARTS {
            parts.remove(0);
        }
        parts.push(Arc::clone(&part));
        Ok(Source::Living(part))
    }
}

/// A corpus that is narrowed.
struct Whole {
    key: String,
    location: String,
    url: String,
    version: Version,
    edits: Vec<Arc<VersionEdits>>,
    dropped: Vec<u64>,
    files: Vec<OpenFile>,
    fresh_bytes: u64,
    is_of_files: bool,
}

impl Whole {
    /// Takes `source` apart. Files become the parts of a version without edits.
    fn new(source: &Source) -> Self {
        if let Some(view) = source.living() {
            return Self {
                key: view.key.clone(),
                location: view.location.clone(),
                url: view.url.clone(),
                version: view.version.clone(),
                edits: view.edits.clone(),
                dropped: view.dropped.clone(),
                files: view.files.clone(),
                fresh_bytes: view.fresh_bytes,
                is_of_files: false,
            };
        }
        let files = source.corpora().to_vec();
        let keys: Vec<String> = files.iter().map(OpenFile::key).collect();
        let names: Vec<&str> = files.iter().map(|open| open.file.path.as_str()).collect();
        Self {
            key: keys.join("\n"),
            location: names.join(", "),
            url: String::new(),
            version: version_of_files(source),
            edits: Vec::new(),
            dropped: Vec::new(),
            files,
            fresh_bytes: 0,
            is_of_files: true,
        }
    }

    /// Returns the view in which `dropped` are dropped, those of the whole corpus included.
    fn narrowed_to(mut self, runtime: &RuntimeEnv, narrowed: Narrowed, dropped: Vec<u64>) -> Result<LivingView> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let new: Vec<u64> = beside(&dropped, &self.dropped).collect();
        // Only files have documents that a version can drop, and edits of a document come before its end.
        let leading = self.version.parts.iter().take_while(|part| part.file_name().is_some());
        let num_leading = leading.map(Part::num_docs).fold(0, u64::saturating_add);
        let edits = self.edits.iter().flat_map(|edits| &edits.batch.edits);
        let edited: HashSet<u64> = edits.filter_map(Edit::doc_id).collect();
        let (by_version, by_edits): (Vec<u64>, Vec<u64>) =
            new.into_iter().partition(|id| *id < num_leading && !edited.contains(id));
        let held = 8 * dropped.len() + 64 * by_edits.len() + 16 * narrowed.kept.len() + 16 * by_version.len();
        let reservation = reserved(runtime, &self.location, held)?;
        let mut dropped_before: Vec<u64> = self.version.dropped.iter().cloned().flatten().chain(by_version).collect();
        dropped_before.sort_unstable();
        self.version.dropped = ranges_of(&dropped_before);
        if !by_edits.is_empty() {
            let edits = by_edits.into_iter().map(|doc_id| Edit::DropDocument { doc_id }).collect();
            let batch = EditBatch { mode: EditMode::default(), edits };
            // Behind all edits of the version, which are found by number.
            let version = self.version.number.saturating_add(1);
            self.edits.push(Arc::new(VersionEdits { version, batch }));
        }
        let key = format!("{}{PART}{}", self.key, NUMBER.fetch_add(1, Ordering::Relaxed));
        Ok(LivingView {
            key,
            location: self.location,
            url: self.url,
            version: self.version,
            edits: self.edits,
            dropped,
            files: self.files,
            fresh_bytes: self.fresh_bytes,
            narrowed: Some(narrowed),
            reservation,
        })
    }
}

/// Text between the key of a corpus and the number of a part of it.
const PART: &str = "\npart ";

impl LivingView {
    /// Returns true if this is a part of the corpus with the key `whole`.
    fn is_part_of(&self, whole: &str) -> bool {
        self.key.rsplit_once(PART).is_some_and(|(key, _)| key == whole)
    }
}

fn reserved(runtime: &RuntimeEnv, location: &str, held_bytes: usize) -> Result<MemoryReservation> {
    let consumer = MemoryConsumer::new(format!("{}[{location}]", memory::EDITS));
    let reservation = consumer.register(&runtime.memory_pool);
    reservation.try_grow(held_bytes)?;
    Ok(reservation)
}

/// Returns the version whose parts are the files of `source`.
fn version_of_files(source: &Source) -> Version {
    let nobody = || CommitId::from_bytes([0; 16]);
    let part = |open: &OpenFile| Part::File {
        id: nobody(),
        len_bytes: open.file.meta.size,
        crc32c: 0,
        num_docs: open.footer.num_docs(),
    };
    Version {
        number: 0,
        commit_id: nobody(),
        parent_id: nobody(),
        time_us: 0,
        kind: CommitKind::Create,
        counts: CommitCounts::default(),
        writer: String::new(),
        profile: source.profile(),
        parts: source.corpora().iter().map(part).collect(),
        dropped: Vec::new(),
        edits_since: 1,
        sets_columns: false,
        bookmarks: Vec::new(),
    }
}

/// Returns the ids below `num_ids` that are in `already`, or in none of the ascending ranges `kept`.
fn dropped_beside(kept: &[Range<u64>], num_ids: u64, already: &[u64]) -> Vec<u64> {
    let starts = kept.iter().map(|range| range.start).chain([num_ids]);
    let ends = [0].into_iter().chain(kept.iter().map(|range| range.end));
    let gaps = ends.zip(starts).flat_map(|(end, start)| end..start);
    let mut dropped: Vec<u64> = gaps.chain(already.iter().copied()).collect();
    dropped.sort_unstable();
    dropped.dedup();
    dropped
}

/// Returns those of `ids` that are not in `others`. Both ascend.
fn beside<'a>(ids: &'a [u64], others: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
    ids.iter().copied().filter(|id| others.binary_search(id).is_err())
}

/// Returns ascending ids as ranges that neither touch nor overlap.
pub(crate) fn ranges_of(ids: &[u64]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for &id in ids {
        match ranges.last_mut() {
            Some(last) if last.end == id => last.end = id + 1,
            Some(last) if last.end > id => {}
            _ => ranges.push(id..id + 1),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_ranges_and_what_lies_between_them() {
        let kept = ranges_of(&[1, 2, 2, 5, 7, 8]);
        assert_eq!(kept, [1..3, 5..6, 7..9]);
        assert_eq!(dropped_beside(&kept, 10, &[]), [0, 3, 4, 6, 9]);
        assert_eq!(dropped_beside(&kept, 10, &[2, 3]), [0, 2, 3, 4, 6, 9]);
        assert_eq!(dropped_beside(&[], 3, &[1]), [0, 1, 2]);
        assert_eq!(dropped_beside(&ranges_of(&[0, 1, 2]), 3, &[]), [0; 0]);
        assert_eq!(beside(&[0, 1, 2], &[1]).collect::<Vec<_>>(), [0, 2]);
    }
}
