//! From the parts and edits of a version to the corpus that it is.
//!
//! ```text
//! parts   [ file A ][ file B ][ edits of 9 ][ file C ]     edits  8, 9, 11
//! made     A, B as the base | edits 8, 9 | C behind | edits 11
//! ```
//!
//! Edits name documents that were there when they were committed. So all edits up to those of a part
//! are made before the files behind that part are put in, and added documents get the ids that the
//! part stands for. Where only some documents are asked for, edits of others are left out: those of one
//! document never depend on those of another.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap, VecDeque};

use futures::{FutureExt, StreamExt, TryStreamExt};

use super::store::{LivingStore, VersionEdits};
use super::thread::on_computing_thread;
use super::version::{Part, Version};
use crate::corpus::{Corpus, OpenLimits};
use crate::edits::{Edit, EditBatch, LivingCorpus};
use crate::error::{Error, Result};

/// Files read at a time.
const FILES_AT_ONCE: usize = 4;

/// The corpus of `version`, from its `files` (one for each part that is a file, in order) and its
/// `edits` (of [`Version::edit_versions`]). Clones of segments are shared, not copied.
///
/// # Errors
/// [`Error::InvalidArgument`] where files or edits are not those of the version; those of
/// [`LivingCorpus::apply`] where edits do not apply.
pub fn assemble<E: Borrow<VersionEdits>>(
    version: &Version,
    files: Vec<Corpus>,
    edits: &[E],
) -> Result<LivingCorpus> {
    let mut living = LivingCorpus::new(Corpus::new(version.profile, Vec::new()));
    let edits = edits.iter().map(<E as Borrow<VersionEdits>>::borrow);
    let (mut files, mut edits) = (VecDeque::from(files), VecDeque::from_iter(edits));
    // Of all others the ids are younger than the rewriting that left gaps.
    let num_files = version.parts.iter().take_while(|part| part.file_name().is_some()).count();
    for (part_idx, part) in version.parts.iter().enumerate() {
        if part_idx == num_files {
            mark_dropped(version, &mut living)?;
        }
        match part {
            Part::File { num_docs, .. } => {
                let found = files.pop_front().filter(|file| file.num_docs() == *num_docs);
                let file = found.ok_or_else(|| misfit(version, "files", part))?;
                living.append_base(&file)?;
            }
            Part::Edits { version: number, num_docs } => {
                let first_added = living.num_docs();
                while let Some(next) = edits.pop_front_if(|next| next.version <= *number) {
                    living.apply(&next.batch)?;
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
    for edits in edits {
        living.apply(&edits.batch)?;
    }
    Ok(living)
}

/// [`assemble`] for whoever reads no other documents than `doc_ids`: of others, edits are not made, and
/// the text of added ones is left out. Paths are those of all. O(edits), and what the edits of `doc_ids`
/// take.
///
/// # Errors
/// As [`assemble`].
pub fn assemble_documents<E: Borrow<VersionEdits>>(
    version: &Version,
    files: Vec<Corpus>,
    edits: &[E],
    doc_ids: &BTreeSet<u64>,
) -> Result<LivingCorpus> {
    let (mut first_added, mut num_ids) = (HashMap::new(), 0);
    for part in &version.parts {
        if let Part::Edits { version, .. } = part {
            first_added.insert(*version, num_ids);
        }
        num_ids += part.num_docs();
    }
    let edits = edits.iter().map(<E as Borrow<VersionEdits>>::borrow).map(|edits| {
        let first_added = first_added.get(&edits.version).copied().unwrap_or(num_ids);
        let batch = edits_of(&edits.batch, first_added, doc_ids);
        VersionEdits { version: edits.version, batch }
    });
    assemble(version, files, &edits.collect::<Vec<_>>())
}

/// The edits of `batch` on documents of `doc_ids`, and the paths that it adds, the first of them with the
/// id `first_added`.
fn edits_of(batch: &EditBatch, first_added: u64, doc_ids: &BTreeSet<u64>) -> EditBatch {
    let mut next_id = first_added;
    let edits = batch.edits.iter().filter_map(|edit| match edit {
        Edit::AddDocument { path, .. } => {
            let is_asked = doc_ids.contains(&next_id);
            next_id += 1;
            let empty = || Edit::AddDocument { path: path.clone(), content: Vec::new() };
            Some(if is_asked { edit.clone() } else { empty() })
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
    /// The corpus of `version`, all of it in memory.
    ///
    /// # Errors
    /// Those of [`LivingStore::read_part`], [`LivingStore::edits`] and [`assemble`].
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
    use crate::edits::EditMode;
    use crate::living::{Change, CommitKind, ObjectPrefix, StoreOptions};
    use crate::text::TokenizerProfile;

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
            (
                EditMode::InBatch,
                vec![insert(1, 0, "x"), insert(0, 5, "y"), delete(1, 0), delete(0, 0)],
            ),
            (EditMode::InBatch, vec![add("c", "that"), insert(1, 3, " is"), insert(1, 0, "so ")]),
            (
                EditMode::InSequence,
                vec![Edit::DropDocument { doc_id: 0 }, delete(1, 1), insert(2, 4, "s")],
            ),
        ];
        let prefix = ObjectPrefix::new(
            std::sync::Arc::new(object_store::memory::InMemory::new()),
            "c".into(),
        );
        futures::executor::block_on(async {
            let made = LivingStore::create(prefix, TokenizerProfile::Word, StoreOptions::default());
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
                    assert_eq!(some.path(doc_id), all.path(doc_id));
                    if asked.contains(&doc_id) && doc_id > 0 {
                        let text = |living: &LivingCorpus| living.extract(doc_id, 0, 99).unwrap();
                        assert_eq!(text(&some), text(&all), "{doc_id} of {doc_ids:?}");
                    }
                }
                assert_eq!(some.is_dropped(0), asked.contains(&0));
            }
        });
    }
}
