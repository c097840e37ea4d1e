//! The assembly of a corpus from the parts and edits of a version.
//!
//! ```text
//! parts   [ file A ][ file B ][ edits of 9 ][ file C ]     edits  8, 9, 11
//! order    A, B as the base | edits 8, 9 | then C | edits 11
//! ```
//!
//! Edits name documents that existed at their commit. So the edits up to those of a part are
//! applied before the files behind that part are added, and added documents get the ids of their
//! part. If only some documents are requested, edits of other documents are left out, because the
//! edits of one document never depend on those of another. Parts without requested documents are
//! left out too.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;

use futures::{FutureExt, StreamExt, TryStreamExt};

use super::store::{LivingStore, VersionEdits};
use super::version::{Part, Version};
use crate::retry::on_computing_thread;
use tadoc::edits::{Edit, EditBatch, LivingCorpus};
use tadoc::error::{Error, Result};
use tadoc::format::OpenLimits;
use tadoc::segment::Corpus;

/// Largest number of files that are read at a time.
const FILES_AT_ONCE: usize = 4;

/// Assembles the corpus of `version` from its `files` (one for each part that is a file, in order)
/// and its `edits` (of [`Version::edit_versions`]). Segments are shared, not copied.
///
/// # Errors
/// [`Error::InvalidArgument`] if files or edits are not those of the version, and those of
/// [`LivingCorpus::apply`] if edits do not apply.
pub fn assemble<E: Borrow<VersionEdits>>(version: &Version, files: Vec<Corpus>, edits: &[E]) -> Result<LivingCorpus> {
    let edits = edits.iter().map(<E as Borrow<VersionEdits>>::borrow);
    Assembly { version, files: files.into(), edits: edits.collect(), asked: None }.put_together()
}

/// Assembles the corpus as [`assemble`] does, for readers that read no other documents than
/// `doc_ids`. Edits of other documents are not made. Parts without any of `doc_ids` are left out,
/// so `files` are those of the other parts only. Documents that are left out can neither be read
/// nor edited. Time O(edits), and the time of the edits of `doc_ids`.
///
/// # Errors
/// The errors of [`assemble`].
pub fn assemble_documents<E: Borrow<VersionEdits>>(
    version: &Version,
    files: Vec<Corpus>,
    edits: &[E],
    doc_ids: &BTreeSet<u64>,
) -> Result<LivingCorpus> {
    // Ids that the edits of each version add. Parts that are left out are included, so that none of
    // their documents are added.
    let added: HashMap<u64, Range<u64>> = version
        .part_ids()
        .filter_map(|(part, ids)| match part {
            Part::Edits { version, .. } => Some((*version, ids)),
            Part::File { .. } => None,
        })
        .collect();
    let edits = edits.iter().map(<E as Borrow<VersionEdits>>::borrow).filter_map(|edits| {
        let added = added.get(&edits.version).cloned().unwrap_or_default();
        let batch = edits_for(&edits.batch, added, doc_ids);
        (!batch.edits.is_empty()).then_some(VersionEdits { version: edits.version, batch })
    });
    let edits: Vec<VersionEdits> = edits.collect();
    let edits = edits.iter().collect();
    Assembly { version, files: files.into(), edits, asked: Some(doc_ids) }.put_together()
}

/// Inputs for the assembly of a version.
struct Assembly<'a> {
    version: &'a Version,
    files: VecDeque<Corpus>,
    edits: VecDeque<&'a VersionEdits>,
    /// Requested documents. Parts without any of them are left out.
    asked: Option<&'a BTreeSet<u64>>,
}

impl Assembly<'_> {
    fn put_together(mut self) -> Result<LivingCorpus> {
        let version = self.version;
        let mut living = LivingCorpus::new(Corpus::new(version.profile, Vec::new()));
        // Dropped ids lie in the leading files only. The ids of all later parts are younger than
        // the optimization that dropped them.
        let num_files = version.parts.iter().take_while(|part| part.file_name().is_some()).count();
        for (part_idx, (part, ids)) in version.part_ids().enumerate() {
            if part_idx == num_files {
                mark_dropped(version, &mut living)?;
            }
            let is_absent = self.asked.is_some_and(|asked| asked.range(ids).next().is_none());
            match part {
                Part::File { num_docs, .. } if is_absent => living.append_absent(*num_docs),
                Part::File { num_docs, .. } => {
                    let found = self.files.pop_front().filter(|file| file.num_docs() == *num_docs);
                    let file = found.ok_or_else(|| misfit(version, "files", part))?;
                    living.append_base(&file)?;
                }
                Part::Edits { version: number, num_docs } => {
                    let first_added = living.num_docs();
                    while let Some(next) = self.edits.pop_front_if(|next| next.version <= *number) {
                        living.apply(&next.batch)?;
                    }
                    if is_absent {
                        living.append_absent(*num_docs);
                    }
                    if living.num_docs() - first_added != *num_docs {
                        return Err(misfit(version, "edits", part));
                    }
                }
            }
        }
        if num_files == version.parts.len() {
            mark_dropped(version, &mut living)?;
        }
        for edits in self.edits {
            living.apply(&edits.batch)?;
        }
        Ok(living)
    }
}

/// Returns the edits of `batch` on documents of `doc_ids`. Documents that it adds get the ids
/// `added`. If some of these are in `doc_ids`, the other added documents are kept too, with their
/// paths and empty.
fn edits_for(batch: &EditBatch, added: Range<u64>, doc_ids: &BTreeSet<u64>) -> EditBatch {
    let adds_any = doc_ids.range(added.clone()).next().is_some();
    let mut next_id = added.start;
    let edits = batch.edits.iter().filter_map(|edit| match edit {
        Edit::AddDocument { path, .. } => {
            let is_asked = doc_ids.contains(&next_id);
            next_id += 1;
            let empty = || Edit::AddDocument { path: path.clone(), content: Vec::new() };
            adds_any.then(|| if is_asked { edit.clone() } else { empty() })
        }
        edit => edit.doc_id().filter(|id| doc_ids.contains(id)).map(|_| edit.clone()),
    });
    EditBatch { mode: batch.mode, edits: edits.collect() }
}

fn mark_dropped(version: &Version, living: &mut LivingCorpus) -> Result<()> {
    version.dropped.iter().try_for_each(|doc_ids| living.mark_dropped(doc_ids.clone()))
}

fn misfit(version: &Version, name: &'static str, part: &Part) -> Error {
    Error::InvalidArgument {
        name,
        got: format!("others than those of {part:?}"),
        allowed: format!("the {name} of version {}", version.number),
    }
}

impl LivingStore {
    /// Reads and assembles the whole corpus of `version` in memory.
    ///
    /// # Errors
    /// The errors of [`LivingStore::read_part`], [`LivingStore::edits`] and [`assemble`].
    pub async fn corpus(&self, version: &Version, limits: &OpenLimits) -> Result<LivingCorpus> {
        let parts = version.parts.iter().filter(|part| part.file_name().is_some());
        let parts: Vec<Part> = parts.cloned().collect();
        let read = |part: Part| async move { self.read_part(&part, limits).await }.boxed();
        let read = futures::stream::iter(parts).map(read);
        let files: Vec<_> = read.buffered(FILES_AT_ONCE).try_collect().await?;
        let edits = self.edits(version.edit_versions()).await?;
        let version = version.clone();
        on_computing_thread(move || {
            let files = files.into_iter().map(|(_, corpus)| corpus).collect();
            assemble(&version, files, &edits)
        })
        .await?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, CommitKind, ObjectPrefix, StoreOptions};
    use tadoc::edits::EditMode;
    use tadoc::text::TokenizerProfile;

    fn insert(doc_id: u64, offset_bytes: u64, text: &str) -> Edit {
        Edit::InsertText { doc_id, offset_bytes, text: text.into() }
    }

    fn add(path: &str, content: &str) -> Edit {
        Edit::AddDocument { path: path.into(), content: content.into() }
    }

    #[test]
    fn documents_do_not_need_the_edits_of_others() {
        let delete = |doc_id, offset_bytes| Edit::DeleteText { doc_id, offset_bytes, len_bytes: 2 };
        let batches = [
            (EditMode::InSequence, vec![add("a", "to be"), add("b", "or not"), insert(0, 2, "!")]),
            (EditMode::InBatch, vec![insert(1, 0, "x"), insert(0, 5, "y"), delete(1, 0), delete(0, 0)]),
            (EditMode::InBatch, vec![add("c", "that"), insert(1, 3, " is"), insert(1, 0, "so ")]),
            (EditMode::InSequence, vec![Edit::DropDocument { doc_id: 0 }, delete(1, 1), insert(2, 4, "s")]),
        ];
        let prefix = ObjectPrefix::new(std::sync::Arc::new(object_store::memory::InMemory::new()), "c".into());
        futures::executor::block_on(async {
            let made = LivingStore::create(prefix, TokenizerProfile::default(), StoreOptions::default());
            let store = made.await.unwrap();
            for (mode, edits) in batches {
                let base = store.latest().await.unwrap();
                let batch = EditBatch { mode, edits };
                store.commit(&base, &Change::edit(CommitKind::Edit, &batch)).await.unwrap();
            }
            let version = store.latest().await.unwrap();
            let edits = store.edits(version.edit_versions()).await.unwrap();
            let all = assemble(&version, Vec::new(), &edits).unwrap();
            for doc_ids in [vec![], vec![1], vec![2], vec![1, 2], vec![0, 1, 2]] {
                let asked: BTreeSet<u64> = doc_ids.iter().copied().collect();
                let some = assemble_documents(&version, Vec::new(), &edits, &asked).unwrap();
                for doc_id in 0..3 {
                    if asked.contains(&doc_id) {
                        assert_eq!(some.path(doc_id), all.path(doc_id));
                    }
                    if asked.contains(&doc_id) && doc_id > 0 {
                        let text = |living: &LivingCorpus| living.extract(doc_id, 0, 99).unwrap();
                        assert_eq!(text(&some), text(&all), "{doc_id} of {doc_ids:?}");
                    }
                }
                assert_eq!(some.is_dropped(0), asked.contains(&0));
                // Document 2 is the only one of its part.
                if !asked.contains(&2) {
                    let absent = [some.len_bytes(2).map(|_| ()), some.snapshot().map(|_| ())];
                    for error in absent.map(Result::unwrap_err) {
                        assert!(error.to_string().contains("was left out"), "{error}");
                    }
                    let refused =
                        some.clone().apply(&EditBatch { edits: vec![insert(2, 0, "x")], ..EditBatch::default() });
                    assert!(refused.unwrap_err().to_string().contains("was left out"));
                    assert_eq!((some.path(2), some.num_docs()), (None, 3));
                }
            }
        });
    }
}
