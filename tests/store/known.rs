//! Tests of what a program keeps beside the versions, and of the documents that were changed since.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use tadoc::edits::Edit;
use tadoc::text::TokenizerProfile;
use tadoc_store::{Change, CommitKind, LivingStore, LocalFolder, ObjectPrefix, OptimizeOptions, Storage, Version};
use testkit::living::{add, append, batch, eager};

async fn commit(store: &LivingStore, edits: Vec<Edit>) -> Version {
    let base = store.latest().await.unwrap();
    store.commit(&base, &Change::edit(CommitKind::Edit, &batch(edits))).await.unwrap()
}

/// Runs `check` with a new corpus in a folder, and with one in an object store.
fn at_each_place(check: impl AsyncFn(LivingStore)) {
    let dir = tempfile::tempdir().unwrap();
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let places: [Arc<dyn Storage>; 2] =
        [Arc::new(LocalFolder::new(dir.path().join("c"))), Arc::new(ObjectPrefix::new(objects, "corpora/c".into()))];
    for place in places {
        block_on(async { check(LivingStore::create(place, TokenizerProfile::Word, eager()).await.unwrap()).await });
    }
}

#[test]
fn the_latest_bytes_are_kept() {
    at_each_place(async |store| {
        assert_eq!(store.known().await.unwrap(), None);
        let first = store.latest().await.unwrap();
        for text in ["one", "two", ""] {
            store.keep_known(&first, text.into()).await.unwrap();
            assert_eq!(store.known().await.unwrap().unwrap(), text);
        }
        let second = commit(&store, vec![add("x")]).await;
        store.keep_known(&second, "three".into()).await.unwrap();
        // They are no version, and an optimization and a clean-up leave them.
        assert_eq!(store.history().await.unwrap().len(), 2);
        store.optimize(&OptimizeOptions::default()).await.unwrap();
        store.clean_up(Duration::ZERO, false).await.unwrap();
        assert_eq!(store.latest().await.unwrap().number, 3);
        assert_eq!(store.known().await.unwrap().unwrap(), "three");
    });
}

#[test]
fn documents_that_were_changed_since_are_told() {
    at_each_place(async |store| {
        let base = commit(&store, vec![add("x"), add("y"), add("z")]).await;
        let changed = async |base: &Version| {
            let latest = store.latest().await.unwrap();
            store.changed_since(base.number, base.commit_id, &latest).await.unwrap()
        };
        let ids = |ids: &[u64]| Some(ids.iter().copied().collect::<HashSet<u64>>());
        assert_eq!(changed(&base).await, ids(&[]));
        commit(&store, vec![add("new")]).await;
        assert_eq!(changed(&base).await, ids(&[]));
        let edited = commit(&store, vec![append(1, "!"), append(3, "?")]).await;
        commit(&store, vec![Edit::DropDocument { doc_id: 0 }]).await;
        assert_eq!(changed(&base).await, ids(&[0, 1, 3]));
        assert_eq!(changed(&edited).await, ids(&[0]));
        // An optimization changes no document, and the edits before it are still read.
        let optimized = store.optimize(&OptimizeOptions::default()).await.unwrap();
        assert!(optimized.is_some());
        assert_eq!(changed(&base).await, ids(&[0, 1, 3]));
        // Another history, and a version to come.
        let other = Version { commit_id: edited.commit_id, ..base.clone() };
        assert_eq!(changed(&other).await, None);
        let later = Version { number: 99, ..base.clone() };
        assert_eq!(changed(&later).await, None);
        let latest = store.latest().await.unwrap();
        assert_eq!(changed(&latest).await, ids(&[]));
        // What a clean-up removed cannot be told.
        store.clean_up(Duration::ZERO, false).await.unwrap();
        assert_eq!(changed(&base).await, None);
        assert_eq!(changed(&latest).await, ids(&[]));
    });
}
