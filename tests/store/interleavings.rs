//! Tests of concurrent writers, readers and a clean-up, in every order that a scheduler chooses.
//!
//! ```text
//! writer 1   latest · · put 2 · · · · · ─▶ acknowledged
//! writer 2   · · latest · · put 2 ✗ · · latest put 3 (lost answer) · get 3 ─▶ acknowledged
//! reader     · latest · · · latest · · · · ·
//!            └ at each call of the storage the scheduler chooses who goes on
//! ```
//!
//! The code under test is the crate's own. Its tasks share only a storage, and this file simulates
//! that. Shuttle chooses the order and the calls that fail. A failure prints the schedule that
//! leads to it, for `shuttle::replay`. Shuttle does not interleave the locks and atomic numbers of
//! a handle, because none is held during a call.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use shuttle::future::{self, JoinHandle};
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use tadoc::Error;
use tadoc::edits::Edit;
use tadoc::text::TokenizerProfile;
use tadoc_store::{
    ByteStream, Change, CommitKind, LivingStore, Storage, StorageError, StorageResult, StoredFile, Version,
};
use testkit::living::{batch, eager};

/// Stack size that is enough for code without optimization.
const STACK_BYTES: usize = 1 << 20;
/// Number of commits of each writer.
const NUM_COMMITS: usize = 2;

/// A storage in memory. Other tasks may run before each of its calls.
#[derive(Clone)]
struct Shelf {
    files: Arc<Mutex<BTreeMap<String, Bytes>>>,
    /// One call in this number fails; 0 means that none fails.
    fails_one_in: u32,
    /// Flag for a storage that overwrites existing files, which no storage may do.
    overwrites: bool,
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shelf")
    }
}

impl Shelf {
    fn new(fails_one_in: u32, overwrites: bool) -> Self {
        Self { files: Arc::default(), fails_one_in, overwrites }
    }

    fn never_fails(&self) -> Self {
        Self { fails_one_in: 0, ..self.clone() }
    }

    fn fails(&self) -> bool {
        self.fails_one_in > 0 && thread_rng().gen_range(0..self.fails_one_in) == 0
    }

    /// Lets other tasks run first, and fails at times.
    async fn call(&self) -> StorageResult<()> {
        future::yield_now().await;
        if self.fails() { Err(StorageError::Transient("busy".into())) } else { Ok(()) }
    }
}

#[async_trait]
impl Storage for Shelf {
    fn location(&self) -> String {
        "shelf".into()
    }

    async fn prepare(&self) -> StorageResult<()> {
        self.call().await
    }

    async fn put_if_absent(&self, name: &str, bytes: Bytes) -> StorageResult<()> {
        self.call().await?;
        if self.fails() {
            // Another writer is about to put the file, and then does not.
            return Err(StorageError::Exists);
        }
        {
            let mut files = self.files.lock().unwrap();
            if !self.overwrites && files.contains_key(name) {
                return Err(StorageError::Exists);
            }
            files.insert(name.to_owned(), bytes);
        }
        // The call took effect, and its answer is late or lost.
        self.call().await
    }

    async fn put_stream(&self, name: &str, _chunks: ByteStream) -> StorageResult<()> {
        panic!("{name}: these writers make no segments")
    }

    async fn get(&self, name: &str, _max_bytes: u64) -> StorageResult<Bytes> {
        self.call().await?;
        self.files.lock().unwrap().get(name).cloned().ok_or(StorageError::NotFound)
    }

    async fn exists(&self, name: &str) -> StorageResult<bool> {
        self.call().await?;
        Ok(self.files.lock().unwrap().contains_key(name))
    }

    async fn list(&self, folder: &str, after: Option<&str>) -> StorageResult<Vec<StoredFile>> {
        self.call().await?;
        let files = self.files.lock().unwrap();
        let prefix = format!("{folder}/");
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let listed = files.range::<str, _>((from, Bound::Unbounded));
        let listed = listed.filter(|(name, _)| name.starts_with(&prefix));
        let file = |(name, bytes): (&String, &Bytes)| StoredFile {
            name: name.clone(),
            len_bytes: bytes.len() as u64,
            modified: SystemTime::UNIX_EPOCH,
        };
        Ok(listed.map(file).collect())
    }

    async fn remove(&self, _folder: &str, names: &[String]) -> StorageResult<()> {
        for name in names {
            self.call().await?;
            self.files.lock().unwrap().remove(name);
        }
        Ok(())
    }
}

/// Results that a writer got for the documents it added, by path.
#[derive(Debug, Default)]
struct Told {
    acknowledged: BTreeSet<String>,
    perhaps: BTreeSet<String>,
    /// Paths whose commit was refused, so that nothing happened.
    refused: BTreeSet<String>,
}

/// Adds documents. The last commit depends on the latest version.
async fn write(shelf: Shelf, writer: usize) -> Told {
    let mut told = Told::default();
    let store = loop {
        // Opening fails if the storage fails sixty times in a row.
        if let Ok(store) = LivingStore::open(shelf.clone(), eager()).await {
            break store;
        }
    };
    for number in 0..NUM_COMMITS {
        let path = format!("{writer}-{number}");
        let add = |path: &str| Edit::AddDocument { path: path.into(), content: b"text".to_vec() };
        let done = if number + 1 < NUM_COMMITS {
            let Ok(base) = store.latest().await else { continue };
            store.commit(&base, &Change::edit(CommitKind::Insert, &batch(vec![add(&path)]))).await
        } else {
            let change = async |latest: Version| {
                let mut edits = vec![add(&path)];
                if latest.num_doc_ids() > 0 {
                    let doc_id = latest.num_doc_ids() - 1;
                    edits.push(Edit::AppendText { doc_id, text: b"!".to_vec() });
                }
                Ok(Change::edit(CommitKind::Edit, &batch(edits)))
            };
            store.update(change).await
        };
        match done {
            Ok(_) => told.acknowledged.insert(path),
            Err(Error::Conflict { .. }) => told.refused.insert(path),
            Err(Error::UnknownCommit { .. }) => told.perhaps.insert(path),
            // The storage failed before the put, or sixty times in a row.
            Err(Error::External { .. }) => told.refused.insert(path),
            Err(other) => panic!("{other:?}"),
        };
    }
    told
}

/// Reads the latest version several times and checks that it never goes back.
async fn read(shelf: Shelf) {
    let Ok(store) = LivingStore::open(shelf, eager()).await else { return };
    let mut before = 0;
    for _ in 0..4 {
        if let Ok(latest) = store.latest().await {
            assert!(latest.number >= before, "{} after {before}", latest.number);
            before = latest.number;
        }
    }
}

/// Checks that versions follow one another, and contain acknowledged documents once and refused
/// ones never.
async fn check(shelf: Shelf, told: &[Told], died: &[String], is_whole: bool) {
    let store = LivingStore::open(shelf, eager()).await.unwrap();
    let versions = store.history().await.unwrap();
    let latest = versions.last().unwrap();
    for pair in versions.windows(2) {
        assert_eq!((pair[1].number, pair[1].parent_id), (pair[0].number + 1, pair[0].commit_id));
    }
    if is_whole {
        assert_eq!(versions[0].number, 1);
    }
    let edits = store.edits(latest.edit_versions()).await.unwrap();
    let mut found = BTreeSet::new();
    for edit in edits.iter().flat_map(|edits| &edits.batch.edits) {
        if let Edit::AddDocument { path, .. } = edit {
            assert!(found.insert(path.clone()), "{path} is there twice");
        }
    }
    assert_eq!(found.len() as u64, latest.num_doc_ids());
    for told in told {
        assert!(told.acknowledged.is_subset(&found), "{told:?}\n{found:?}");
        assert!(told.refused.is_disjoint(&found), "{told:?}\n{found:?}");
        let named = [&told.acknowledged, &told.perhaps, &told.refused];
        named.iter().for_each(|paths| found.retain(|path| !paths.contains(path)));
    }
    found.retain(|path| !died.iter().any(|writer| path.starts_with(writer)));
    assert!(found.is_empty(), "nobody wrote {found:?}");
}

/// Conditions and tasks beside two writers and a reader.
#[derive(Clone, Copy, Default)]
struct Scene {
    fails_one_in: u32,
    overwrites: bool,
    /// Flag for a third writer that dies on its way.
    dies: bool,
    cleans_up: bool,
}

impl Scene {
    async fn play(self) {
        let shelf = Shelf::new(self.fails_one_in, self.overwrites);
        let calm = shelf.never_fails();
        LivingStore::create(calm.clone(), TokenizerProfile::default(), eager()).await.unwrap();
        let writers: Vec<JoinHandle<Told>> = (0..2).map(|writer| future::spawn(write(shelf.clone(), writer))).collect();
        let reader = future::spawn(read(shelf.clone()));
        let cleaner = self.cleans_up.then(|| {
            let calm = calm.clone();
            future::spawn(async move {
                let store = LivingStore::open(calm, eager()).await.unwrap();
                store.clean_up(Duration::ZERO, false).await.unwrap();
            })
        });
        if self.dies {
            let third = future::spawn(write(shelf.clone(), 2));
            for _ in 0..thread_rng().gen_range(0..30) {
                future::yield_now().await;
            }
            third.abort();
            // The writer is aborted, or has ended before.
            drop(third.await);
        }
        let mut told = Vec::new();
        for writer in writers {
            told.push(writer.await.unwrap());
        }
        reader.await.unwrap();
        if let Some(cleaner) = cleaner {
            cleaner.await.unwrap();
        }
        check(calm, &told, &["2-".into()], !self.cleans_up).await;
    }

    fn run(self, scheduler: impl Scheduler + 'static) -> usize {
        let mut config = shuttle::Config::default();
        config.stack_size = STACK_BYTES;
        shuttle::Runner::new(scheduler, config).run(move || future::block_on(self.play()))
    }
}

#[test]
fn commits_are_in_one_line_whatever_the_order() {
    for scene in [
        Scene::default(),
        Scene { fails_one_in: 6, ..Scene::default() },
        Scene { dies: true, ..Scene::default() },
        Scene { cleans_up: true, ..Scene::default() },
        Scene { fails_one_in: 8, dies: true, cleans_up: true, ..Scene::default() },
    ] {
        assert_eq!(scene.run(RandomScheduler::new_from_seed(7, 400)), 400);
        assert_eq!(scene.run(PctScheduler::new_from_seed(7, 3, 400)), 400);
    }
}

/// A storage that overwrites files must make this suite fail.
#[test]
#[should_panic]
fn a_storage_that_puts_over_what_is_there_is_found() {
    let scene = Scene { overwrites: true, ..Scene::default() };
    scene.run(RandomScheduler::new_from_seed(7, 400));
}
