//! Paths of the documents of a version, read without the rest of the documents.
//!
//! ```text
//! parts   [ file A: segments 0, 1 ][ edits of 9 ][ file B ]
//! runs    ids 0.. | ids 40..        | ids 70..    | ids 72..
//! ```
//!
//! For a file that is not loaded, only the sections of paths are read. Memory is 8 bytes for each
//! document, plus its path.

use datafusion::error::Result;

use crate::corpora::living::view::{LivingView, explain_missing};
use crate::corpora::{CorpusCache, LoadContext};
use tadoc::edits::Edit;
use tadoc::segment::Paths;
use tadoc_store::Part;

/// Paths by document id; see the module's description.
#[derive(Debug, Default)]
pub(crate) struct PathTable {
    /// Runs in order of id.
    runs: Vec<IdRange>,
    num_ids: u64,
}

/// A run of documents with consecutive ids.
#[derive(Debug)]
struct IdRange {
    first_id: u64,
    /// Number of paths before that of the first document.
    num_before: usize,
    paths: Paths,
}

impl PathTable {
    /// Reads the paths of `view`. If `places` is given (ascending), only the files at these places
    /// are read.
    ///
    /// # Errors
    /// Errors of the store, and of damaged sections.
    pub(crate) async fn read(
        cache: &CorpusCache,
        context: &LoadContext,
        view: &LivingView,
        places: Option<&[usize]>,
    ) -> Result<Self> {
        let (mut table, mut files) = (Self::default(), view.files.iter().enumerate());
        let is_left_out = |place: usize| places.is_some_and(|places| places.binary_search(&place).is_err());
        for part in &view.version.parts {
            match (part, part.file_name().and_then(|_| files.next())) {
                (_, Some((place, _))) if is_left_out(place) => table.num_ids += part.num_docs(),
                (_, Some((_, open))) => {
                    let paths = cache.paths(context, open).await;
                    table.push_file(paths.map_err(|error| explain_missing(&view.location, error))?);
                }
                (Part::Edits { version, .. }, _) => table.push(0, added_paths(view, *version)),
                (Part::File { .. }, None) => {}
            }
        }
        Ok(table)
    }

    /// Returns the path of document `id`; an empty string if there is none.
    pub(crate) fn get(&self, id: u64) -> &str {
        let behind = self.runs.partition_point(|run| run.first_id <= id);
        let run = behind.checked_sub(1).map(|last| &self.runs[last]);
        let path = run.and_then(|run| run.paths.get((id - run.first_id) as usize + run.num_before));
        path.unwrap_or_default()
    }

    /// Returns the memory held, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.runs.iter().map(|run| size_of::<IdRange>() + run.paths.memory_bytes()).sum()
    }

    /// Appends the segments of a file. Each comes with a flag that is true if its first document
    /// continues the last document of the segment before.
    fn push_file(&mut self, segments: Vec<(bool, Paths)>) {
        let first_id = self.num_ids;
        for (continues, paths) in segments {
            let goes_on = continues && self.num_ids > first_id;
            self.push(usize::from(goes_on), paths);
        }
    }

    /// Appends the documents of `paths`, except the first `num_before`.
    fn push(&mut self, num_before: usize, paths: Paths) {
        if let Some(num_docs) = paths.len().checked_sub(num_before).filter(|&num_docs| num_docs > 0) {
            self.runs.push(IdRange { first_id: self.num_ids, num_before, paths });
            self.num_ids += num_docs as u64;
        }
    }
}

/// Returns the paths of the documents that the edits of version `number` added.
fn added_paths(view: &LivingView, number: u64) -> Paths {
    let place = view.edits.binary_search_by_key(&number, |edits| edits.version);
    let edits = place.ok().map(|place| &view.edits[place]);
    let mut paths = Paths::default();
    for edit in edits.iter().flat_map(|edits| &edits.batch.edits) {
        if let Edit::AddDocument { path, .. } = edit {
            paths.push(path);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_go_on_in_the_next_segment_are_told_once() {
        let paths = |names: &[&str]| {
            let mut paths = Paths::default();
            names.iter().for_each(|name| paths.push(name));
            paths
        };
        let mut table = PathTable::default();
        table.push_file(vec![(true, paths(&["a", "b"])), (true, paths(&["b"])), (false, paths(&[]))]);
        table.push(0, paths(&["c"]));
        table.push_file(vec![(true, paths(&["d"])), (true, paths(&["d", "e"]))]);
        let found: Vec<&str> = (0..6).map(|id| table.get(id)).collect();
        assert_eq!(found, ["a", "b", "c", "d", "e", ""]);
        assert!(table.memory_bytes() > 0);
    }
}
