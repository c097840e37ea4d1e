//! From the parts and edits of a version to the corpus that it is.
//!
//! ```text
//! parts   [ file A ][ file B ][ edits of 9 ][ file C ]     edits  8, 9, 11
//! made     A, B as the base | edits 8, 9 | C behind | edits 11
//! ```
//!
//! Edits name documents that were there when they were committed. So all edits up to those of a part
//! are made before the files behind that part are put in, and added documents get the ids that the
//! part stands for.

use std::collections::VecDeque;

use futures::{FutureExt, StreamExt, TryStreamExt};

use super::store::{LivingStore, VersionEdits};
use super::thread::on_computing_thread;
use super::version::{Part, Version};
use crate::corpus::{Corpus, OpenLimits};
use crate::edits::LivingCorpus;
use crate::error::{Error, Result};

/// Files read at a time.
const FILES_AT_ONCE: usize = 4;

/// The corpus of `version`, from its `files` (one for each part that is a file, in order) and its
/// `edits` (of [`Version::edit_versions`]). Clones of segments are shared, not copied.
///
/// # Errors
/// [`Error::InvalidArgument`] where files or edits are not those of the version; those of
/// [`LivingCorpus::apply`] where edits do not apply.
pub fn assemble(
    version: &Version,
    files: Vec<Corpus>,
    edits: &[VersionEdits],
) -> Result<LivingCorpus> {
    let mut living = LivingCorpus::new(Corpus::new(version.profile, Vec::new()));
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
