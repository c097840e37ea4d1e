//! The removal of segment files whose writers ended before their commit.
//!
//! ```text
//! write_part   hold ─▶ write ─▶ kept by the handle ─▶ commit ─▶ released
//! killed       the mark stays, its lock ends ─▶ the first commit of another handle: does a version
//!              name the file? no: it is removed; then the mark is removed
//! ```
//!
//! A handle that finds a mark without a lock first takes the lock and then reads the versions. If
//! the writer committed, it has done so by that time. Each handle lists the names once. It reads
//! versions only if there is such a mark.

use std::collections::HashSet;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::names::SEGMENTS;
use super::storage::{Hold, Storage};
use super::version::{Part, Version};
use tadoc::error::Result;

/// State of a handle for abandoned files.
#[derive(Debug, Default)]
pub(super) struct Abandoned {
    /// Holds of files that this handle wrote and has not committed.
    holds: Mutex<Vec<Hold>>,
    /// True after this handle has looked for abandoned files of others.
    is_looked_for: AtomicBool,
}

impl Abandoned {
    fn holds(&self) -> MutexGuard<'_, Vec<Hold>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the hold of a file until its commit if the file was written. Otherwise removes the
    /// file.
    pub(super) async fn keep_or_remove(&self, storage: &dyn Storage, hold: Option<Hold>, is_written: bool) {
        match hold {
            Some(hold) if is_written => self.holds().push(hold),
            Some(hold) => remove_held(storage, hold).await,
            None => {}
        }
    }

    /// Removes the files that this handle wrote and has not committed.
    pub(super) async fn remove_own(&self, storage: &dyn Storage) {
        let own = std::mem::take(&mut *self.holds());
        for hold in own {
            remove_held(storage, hold).await;
        }
    }

    /// Releases the holds of the files that the committed version `next` names. The first commit of
    /// a handle also removes the abandoned files of others. `versions` reads all versions. It is
    /// polled only if there are such files.
    pub(super) async fn let_go(
        &self,
        storage: &dyn Storage,
        next: &Version,
        versions: impl Future<Output = Result<Vec<Version>>>,
    ) {
        let named = names(std::slice::from_ref(next));
        let committed: Vec<Hold> = self.holds().extract_if(.., |hold| named.contains(hold.name())).collect();
        committed.into_iter().for_each(Hold::release);
        if !self.is_looked_for.swap(true, Ordering::Relaxed) {
            // The commit is done. If a file cannot be removed now, another handle will remove it.
            let _removed = remove_abandoned(storage, versions).await;
        }
    }
}

async fn remove_abandoned(storage: &dyn Storage, versions: impl Future<Output = Result<Vec<Version>>>) -> Result<()> {
    let holds = storage.abandoned().await;
    if holds.is_empty() {
        return Ok(());
    }
    let named = names(&versions.await?);
    for hold in holds {
        if named.contains(hold.name()) { hold.release() } else { remove_held(storage, hold).await }
    }
    Ok(())
}

async fn remove_held(storage: &dyn Storage, hold: Hold) {
    let removed = storage.remove(SEGMENTS, &[hold.name().to_owned()]).await;
    // If the removal failed, the mark stays and the next handle tries again.
    if removed.is_ok() {
        hold.release();
    }
}

/// Returns the names of the segment files of `versions`.
fn names(versions: &[Version]) -> HashSet<String> {
    versions.iter().flat_map(|version| &version.parts).filter_map(Part::file_name).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Change, CommitKind, LivingStore, LocalFolder, StoreOptions};
    use super::*;
    use crate::WrittenPart;
    use tadoc::build::{CorpusBuilder, IngestOptions};
    use tadoc::text::TokenizerProfile;

    async fn write(store: &LivingStore) -> WrittenPart {
        let written = store.write_part(|out| {
            let mut builder = CorpusBuilder::new(out, IngestOptions::default())?;
            builder.push_document("a", b"to be or not to be")?;
            Ok(builder.finish(None)?.1.footer)
        });
        written.await.unwrap()
    }

    #[test]
    fn what_a_writer_left_goes_with_the_next_commit_and_what_lives_stays() {
        let dir = tempfile::tempdir().unwrap();
        let location = || LocalFolder::new(dir.path());
        let num_files = || std::fs::read_dir(dir.path().join(SEGMENTS)).unwrap().count();
        let open = async || LivingStore::open(location(), StoreOptions::default()).await.unwrap();
        futures::executor::block_on(async {
            let profile = TokenizerProfile::default();
            let options = StoreOptions::default();
            LivingStore::create(location(), profile, options).await.unwrap();
            let commit = async |store: &LivingStore, parts: &[WrittenPart]| {
                let base = store.latest().await.unwrap();
                let change = Change::append(CommitKind::Append, parts);
                store.commit(&base, &change).await.unwrap()
            };
            // There are two files and their marks: of a writer that ends, and of one that lives.
            let ended = open().await;
            write(&ended).await;
            let alive = open().await;
            let part = write(&alive).await;
            assert_eq!(num_files(), 4);
            drop(ended);
            commit(&open().await, &[]).await;
            assert_eq!(num_files(), 2);
            // The living writer commits as usual, and its mark is removed.
            let version = commit(&alive, &[part]).await;
            assert_eq!((num_files(), version.num_doc_ids()), (1, 1));
            // A mark stays if its writer ends between its commit and the removal of the mark.
            let name = version.parts[0].file_name().unwrap();
            std::fs::write(dir.path().join(super::super::names::mark_name(&name)), "").unwrap();
            commit(&open().await, &[]).await;
            assert_eq!(num_files(), 1);
            let latest = alive.latest().await.unwrap();
            alive.corpus(&latest, &tadoc::format::OpenLimits::default()).await.unwrap();
            // A failed write leaves no file.
            let failed = alive.write_part(|_| Err(tadoc::Error::Cancelled)).await;
            assert!(failed.is_err() && num_files() == 1);
        });
    }
}
