//! Tests that statements about few documents read only the files with these documents. Rows, ids
//! and history are those of statements that read everything.
//!
//! ```text
//! files   0       1       2       3       edits    4         5         6         7
//! ids     0 1 2   3 4 .   6 7 8   9..11   12 13    14 15 16  17 18 19  20 21 22  23 24 25
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::prelude::SessionContext;
use object_store::memory::InMemory;
use tadoc::edits::Edit;
use tadoc::text::TokenizerProfile;
use tadoc_store::{Change, CommitKind, LivingStore, ObjectPrefix, StoreOptions};
use url::Url;

use super::reads::NotingStore;
use super::{rows, table};
use crate::fixtures::living::{commit, edit, write_part};
use crate::fixtures::session;

/// Statements on the table `d` in `@`, each with the files that it needs.
const STATEMENTS: &[(&str, &[usize])] = &[
    ("SELECT doc_id, path, text, bytes FROM d WHERE doc_id = 4", &[1]),
    ("SELECT doc_id, path, bytes FROM d WHERE doc_id = 13 OR doc_id = 12", &[]),
    ("SELECT doc_id, path FROM d WHERE doc_id IN (0, 19, 25)", &[0, 5, 7]),
    ("SELECT author, text FROM d WHERE doc_id IN (0, 17) ORDER BY doc_id", &[0, 5]),
    ("SELECT * EXCEPT (words) FROM d WHERE doc_id = 16", &[4]),
    ("SELECT author FROM d WHERE doc_id BETWEEN 9 AND 12", &[3]),
    ("SELECT text FROM d WHERE doc_id = 15 AND text LIKE '%no such text%'", &[4]),
    ("SELECT text FROM d WHERE doc_id = 5", &[]),
    ("SELECT text FROM d WHERE doc_id > 25", &[]),
    ("SELECT * FROM extract('@', 16, 2, 9)", &[4]),
    ("SELECT * FROM extract('@', 13, 1, 99)", &[]),
    ("SELECT * FROM extract('@', 1, 0, 99, version => 4)", &[0]),
    ("SELECT text FROM documents('@', version => 4) WHERE doc_id = 5", &[1]),
    ("SELECT a.text, b.text FROM d a, d b WHERE a.doc_id = 2 AND b.doc_id = 22", &[0, 6]),
    ("UPDATE d SET text = upper(text) WHERE doc_id = 20", &[6]),
    ("UPDATE d SET text = author || text || '!' WHERE doc_id IN (16, 23)", &[4, 7]),
    ("UPDATE d SET text = 'all new' WHERE doc_id = 24", &[]),
    ("UPDATE d SET author = 'new' WHERE doc_id IN (10, 13, 24)", &[]),
    ("SELECT author FROM d WHERE doc_id = 13", &[]),
    ("DELETE FROM d WHERE doc_id IN (2, 21)", &[]),
    ("DELETE FROM d WHERE doc_id = 8 AND text LIKE '%8%'", &[2]),
    ("INSERT INTO \"d$edits\" (doc_id, pos, text) VALUES (3, 2, 'x'), (20, 1, 'y')", &[1, 6]),
    ("INSERT INTO \"d$edits\" (doc_id, pos, len_bytes) VALUES (12, 0, 2)", &[]),
    ("INSERT INTO d (path, text) VALUES ('last', 'to sleep')", &[]),
    ("SELECT doc_id, text FROM d WHERE doc_id IN (3, 20, 26)", &[1, 6]),
    ("SELECT * FROM extract('@', 20, 0, 9)", &[6]),
    ("SELECT doc_id, bytes FROM d", &[0, 1, 2, 3, 4, 5, 6, 7]),
    ("DELETE FROM d WHERE text LIKE '%text of 1%'", &[0, 1, 2, 3, 4, 5, 6, 7]),
];

const PLACE: &str = "memory://bucket/corpora/many";

fn prefix(store: &NotingStore) -> ObjectPrefix {
    ObjectPrefix::new(Arc::new(store.clone()), "corpora/many".into())
}

/// Makes the corpus of this module's description.
async fn many_files() -> NotingStore {
    let noting = NotingStore::new(InMemory::new());
    let made = LivingStore::create(prefix(&noting), TokenizerProfile::default(), StoreOptions::default());
    let store = made.await.unwrap();
    let append = |first: usize, has_authors: bool| {
        let documents: Vec<(String, String)> =
            (first..first + 3).map(|id| (format!("p{id}"), format!("the text of {id}"))).collect();
        let documents: Vec<(&str, &[u8])> =
            documents.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
        let authors = has_authors.then_some(["ann", "bob", "cy"].as_slice());
        commit(&store, &Change::append(CommitKind::Append, &[write_part(&store, &documents, authors)]));
    };
    (0..4).for_each(|file| append(3 * file, file != 2));
    let added = ["p12", "p13"]
        .map(|path| Edit::AddDocument { path: path.into(), content: format!("added as {path}").into_bytes() });
    let first = Edit::InsertText { doc_id: 1, offset_bytes: 4, text: b"first ".to_vec() };
    edit(&store, CommitKind::Edit, added.into_iter().chain([first]).collect());
    (0..4).for_each(|file| append(14 + 3 * file, true));
    edit(&store, CommitKind::Delete, vec![Edit::DropDocument { doc_id: 5 }]);
    edit(&store, CommitKind::Edit, vec![Edit::DeleteText { doc_id: 16, offset_bytes: 0, len_bytes: 4 }]);
    edit(&store, CommitKind::Edit, vec![Edit::AppendText { doc_id: 13, text: b" later".to_vec() }]);
    noting
}

/// Returns a session that has read nothing and has only the table `d`.
async fn attached(store: &NotingStore) -> SessionContext {
    let context = session();
    let url = Url::parse("memory://bucket").unwrap();
    context.register_object_store(&url, Arc::new(store.clone()));
    let create = format!("CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{PLACE}/'");
    table(&context, &create).await;
    context
}

/// Returns the names of the files of the latest version.
async fn files(store: &NotingStore) -> Vec<String> {
    let living = LivingStore::open(prefix(store), StoreOptions::default()).await.unwrap();
    let parts = living.latest().await.unwrap().parts;
    parts.iter().filter_map(|part| part.file_name()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_read_the_files_of_their_documents() {
    let many_files = many_files().await;
    // Each statement gets its own session. In the second store, each session has loaded everything
    // before.
    let few = many_files.fork();
    let all = many_files;
    let files = files(&few).await;
    assert_eq!(files.len(), 8);
    for (statement, needed) in STATEMENTS {
        let statement = statement.replace('@', PLACE);
        let warm = attached(&all).await;
        for version in ["", ", version => 4"] {
            let count = format!("SELECT count(*) FROM word_count('{PLACE}'{version})");
            table(&warm, &count).await;
        }
        let cold = attached(&few).await;
        few.take_reads();
        assert_eq!(rows(&cold, &statement).await, rows(&warm, &statement).await, "{statement}");
        let read = few.take_reads();
        let is_read = |file: &String| read.iter().any(|name| name.ends_with(file));
        let read: BTreeSet<usize> = (0..8).filter(|&idx| is_read(&files[idx])).collect();
        assert_eq!(read, needed.iter().copied().collect(), "{statement}");
    }
    for query in [
        "SELECT doc_id, path, bytes, words, text, author FROM d",
        "SELECT version, kind, docs_added, docs_dropped, edits, text_bytes FROM \"d$history\"",
    ] {
        assert_eq!(rows(&attached(&few).await, query).await, rows(&attached(&all).await, query).await);
    }
}
