//! Tests of statements that change living corpora: one commit each, on exactly the rows that they
//! name.
//!
//! Versions are read back through `LivingStore`, and rows through SQL. DataFusion's optimizer turns
//! some predicates into joins, limits and empty relations. These are compared with the same
//! predicate in a query on the version before.

mod columns;
mod unique;

use datafusion::arrow::array::{Array, Int64Array, RecordBatch, UInt64Array};
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use tadoc::edits::{Edit, EditBatch, EditMode};
use tadoc::format::OpenLimits;
use tadoc::text::TokenizerProfile;
use tadoc_store::{CommitKind, LivingStore, LocalFolder, StoreOptions, Version};
use tempfile::TempDir;

use crate::fixtures;

/// Path and text of a document, or `None` if it was dropped.
type Document = Option<(String, String)>;

struct Notes {
    context: SessionContext,
    folder: TempDir,
}

impl Notes {
    /// Makes an empty living corpus behind the table `d`.
    async fn new() -> Self {
        let notes = Self { context: fixtures::session(), folder: tempfile::tempdir().unwrap() };
        notes.attach(&notes.context).await;
        notes
    }

    async fn attach(&self, context: &SessionContext) {
        let place = self.place();
        let create = format!(
            "CREATE EXTERNAL TABLE d (author VARCHAR, number INT) STORED AS TADOC \
             LOCATION '{place}' OPTIONS ('create' 'true', 'tokenizer' 'word')"
        );
        context.sql(&create).await.unwrap().collect().await.unwrap();
    }

    fn place(&self) -> String {
        self.folder.path().join("notes").display().to_string()
    }

    async fn store(&self) -> LivingStore {
        let folder = LocalFolder::new(self.folder.path().join("notes"));
        LivingStore::open(folder, StoreOptions::default()).await.unwrap()
    }

    async fn latest(&self) -> Version {
        self.store().await.latest().await.unwrap()
    }

    async fn try_run(&self, sql: &str) -> Result<u64> {
        Ok(count_of(&self.context.sql(sql).await?.collect().await?))
    }

    /// Runs a statement, checks that it is one commit of `kind`, and returns its count.
    async fn run(&self, kind: CommitKind, sql: &str) -> u64 {
        let before = self.latest().await;
        let count = self.try_run(sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
        let after = self.latest().await;
        assert_eq!((after.number, after.kind), (before.number + 1, kind), "{sql}");
        assert_eq!(after.parent_id, before.commit_id);
        count
    }

    /// Runs a statement, checks that it fails and changes nothing, and returns its error.
    async fn refused(&self, sql: &str) -> DataFusionError {
        let before = self.latest().await;
        let error = match self.try_run(sql).await {
            Err(error) => error,
            Ok(count) => panic!("{sql}\nanswers {count}"),
        };
        assert_eq!(self.latest().await, before, "{sql}");
        error
    }

    /// Returns the documents of the latest version, by id.
    async fn documents(&self) -> Vec<Document> {
        let store = self.store().await;
        let version = store.latest().await.unwrap();
        let corpus = store.corpus(&version, &OpenLimits::default()).await.unwrap();
        let document = |id| {
            let path = corpus.path(id)?.to_owned();
            let text = corpus.extract(id, 0, u64::MAX).ok()?;
            Some((path, String::from_utf8(text).unwrap()))
        };
        (0..corpus.num_docs()).map(document).collect()
    }

    /// Runs a statement and checks that it makes `change` of the documents that match `predicate`,
    /// in one commit, or in none if no document matches.
    async fn run_on(&self, predicate: &str, sql: &str, change: fn(Document) -> Document) {
        let ids = self.ids(&format!("SELECT doc_id FROM d WHERE {predicate}")).await;
        let mut expected = self.documents().await;
        for &id in &ids {
            expected[id as usize] = change(expected[id as usize].take());
        }
        let before = self.latest().await.number;
        let count = self.try_run(sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
        assert_eq!(count, ids.len() as u64, "{sql}");
        assert_eq!(self.documents().await, expected, "{sql}");
        let num_commits = u64::from(!ids.is_empty());
        assert_eq!(self.latest().await.number, before + num_commits, "{sql}");
    }

    /// Returns the ids of the documents in the answer of a query.
    async fn ids(&self, sql: &str) -> Vec<i64> {
        let batches = self.context.sql(sql).await.unwrap().collect().await.unwrap();
        let column = |batch: &RecordBatch| {
            let ids = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
            ids.values().to_vec()
        };
        batches.iter().flat_map(column).collect()
    }
}

/// Returns the count of a statement, which answers with one row of one column.
fn count_of(rows: &[RecordBatch]) -> u64 {
    let count = rows[0].column(0).as_any().downcast_ref::<UInt64Array>().unwrap();
    assert_eq!((rows.len(), rows[0].num_columns(), count.len()), (1, 1, 1));
    count.value(0)
}

fn document(path: &str, text: &str) -> Document {
    Some((path.into(), text.into()))
}

/// A statement that inserts 120 documents, which become a segment file.
const MANY: &str = "INSERT INTO d (path, text, number) SELECT 'p' || value, 'text number ' || value, \
                    value FROM generate_series(0, 119) ORDER BY value";

#[tokio::test]
async fn rows_become_documents() {
    let notes = Notes::new().await;
    assert_eq!(notes.latest().await.number, 1);
    let few = "INSERT INTO d (path, text) SELECT 'a', 'to be' UNION ALL SELECT 'b', '' UNION ALL \
               SELECT NULL, 'or not'";
    assert_eq!(notes.run(CommitKind::Insert, few).await, 3);
    // A small commit is one file.
    assert!(!notes.folder.path().join("notes/segments").read_dir().unwrap().any(|_| true));
    assert_eq!(notes.run(CommitKind::Insert, "INSERT INTO d (content) VALUES (X'746f')").await, 1);
    assert_eq!(notes.run(CommitKind::Insert, MANY).await, 120);
    let mut documents = notes.documents().await;
    let expected = [document("", "or not"), document("a", "to be"), document("b", "")];
    documents[..3].sort();
    assert_eq!((documents.len(), &documents[..3]), (124, &expected[..]));
    assert_eq!(documents[3], document("", "to"));
    assert_eq!(documents[4 + 77], document("p77", "text number 77"));
}

#[tokio::test]
async fn ten_thousand_rows_are_one_commit() {
    let notes = Notes::new().await;
    let sql = "INSERT INTO d (text, path) SELECT 'text ' || value, value || '.txt' \
               FROM generate_series(1, 10000)";
    assert_eq!(notes.run(CommitKind::Insert, sql).await, 10_000);
    let mut documents: Vec<_> = notes.documents().await.into_iter().flatten().collect();
    documents.sort();
    let mut expected: Vec<_> = (1..=10_000).map(|i| (format!("{i}.txt"), format!("text {i}"))).collect();
    expected.sort();
    assert_eq!(documents, expected);
    let counts = notes.latest().await.counts;
    assert_eq!((counts.docs_added, counts.edits), (10_000, 0));
}

#[tokio::test]
async fn no_rows_are_no_commit() {
    let notes = Notes::new().await;
    notes.run(CommitKind::Insert, MANY).await;
    for sql in [
        "INSERT INTO d (path, text) SELECT 'a', 'b' WHERE false",
        "INSERT INTO d (path, text) SELECT path, text FROM d WHERE doc_id < 0",
        "DELETE FROM d WHERE doc_id = 120",
        "UPDATE d SET text = 'x' WHERE path = ''",
        "UPDATE d SET text = (SELECT e.text FROM d AS e LIMIT 1) WHERE false",
    ] {
        assert_eq!(notes.try_run(sql).await.unwrap(), 0, "{sql}");
        assert_eq!(notes.latest().await.number, 2, "{sql}");
    }
    // An assignment of a column to itself changes nothing.
    assert_eq!(notes.try_run("UPDATE d SET text = text").await.unwrap(), 120);
    assert_eq!(notes.latest().await.number, 2);
}

#[tokio::test]
async fn a_text_comes_from_any_expression_over_the_row() {
    for (set, expected) in [
        ("text = concat(upper(path), ' ', number + 1)", "P5 6"),
        ("text = (SELECT max(text) FROM d)", "text number 99"),
        ("text = (SELECT e.path AS text FROM d AS e WHERE e.number = 7)", "p7"),
        ("content = X'c3a9'", "\u{e9}"),
        ("text = path, number = number", "p5"),
        ("text = ''", ""),
    ] {
        let notes = Notes::new().await;
        notes.run(CommitKind::Insert, MANY).await;
        let update = format!("UPDATE d SET {set} WHERE doc_id = 5");
        assert_eq!(notes.run(CommitKind::Update, &update).await, 1);
        assert_eq!(notes.documents().await[5], document("p5", expected), "{set}");
    }
    for (set, refusal) in [
        ("text = NULL", "the new text of document 0 is NULL"),
        ("path = 'x'", "column path cannot be set"),
        ("text = 'x', content = X'00'", "text and content are one"),
        ("nothing = 'x'", "nothing"),
    ] {
        let notes = Notes::new().await;
        notes.run(CommitKind::Insert, MANY).await;
        let error = notes.refused(&format!("UPDATE d SET {set}")).await;
        assert!(error.to_string().contains(refusal), "{error}");
    }
}

#[tokio::test]
async fn what_cannot_be_inserted_leaves_nothing() {
    let notes = Notes::new().await;
    for (sql, refusal) in [
        ("INSERT INTO d (doc_id, text) VALUES (1, 'x')", "column doc_id follows"),
        ("INSERT INTO d (words, text) VALUES (1, 'x')", "column words follows"),
        ("INSERT OVERWRITE d (text) VALUES ('x')", "DELETE them, then INSERT INTO"),
        ("REPLACE INTO d (text) VALUES ('x')", "DELETE them, then INSERT INTO"),
        ("INSERT INTO d (nothing) VALUES ('x')", "nothing"),
        (
            "INSERT INTO d (text) SELECT CAST(10 / (20000 - value) AS VARCHAR) \
             FROM generate_series(1, 20000)",
            "Divide by zero",
        ),
    ] {
        let error = notes.refused(sql).await;
        assert!(error.to_string().contains(refusal), "{sql}: {error}");
    }
    // No segment file is left either.
    assert!(!notes.folder.path().join("notes/segments").read_dir().unwrap().any(|_| true));
}

#[tokio::test]
async fn a_statement_that_nobody_waits_for_leaves_nothing() {
    let notes = Notes::new().await;
    for sql in [MANY, "DELETE FROM d", "UPDATE d SET text = ''"] {
        let before = notes.latest().await;
        let mut rows = notes.context.sql(sql).await.unwrap().execute_stream().await.unwrap();
        assert!(futures::poll!(rows.next()).is_pending());
        drop(rows);
        assert_eq!(notes.latest().await, before);
        notes.run(CommitKind::Insert, MANY).await;
    }
}

#[tokio::test]
async fn corpora_that_do_not_live_are_read_only() {
    let dir = tempfile::tempdir().unwrap();
    fixtures::write_all(dir.path());
    let context = fixtures::session();
    for (name, location) in [("one", "plays.tadoc"), ("some", "shelf/*.tadoc"), ("all", "shelf")] {
        let location = dir.path().join(location).display().to_string();
        let create = format!("CREATE EXTERNAL TABLE {name} STORED AS TADOC LOCATION '{location}'");
        context.sql(&create).await.unwrap().collect().await.unwrap();
        for sql in [
            format!("INSERT INTO {name} (path, text) VALUES ('a', 'b')"),
            format!("DELETE FROM {name} WHERE doc_id = 0"),
            format!("DELETE FROM {name} WHERE false"),
            format!("UPDATE {name} SET text = 'x'"),
            format!("TRUNCATE TABLE {name}"),
        ] {
            let error = context.sql(&sql).await.unwrap().collect().await.unwrap_err();
            assert!(matches!(error.find_root(), DataFusionError::Plan(_)), "{sql}: {error:?}");
            assert!(error.to_string().contains("is read-only: only a living corpus"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_corpus_begins_where_nothing_is() {
    let dir = tempfile::tempdir().unwrap();
    fixtures::write_all(dir.path());
    let context = fixtures::session();
    let create = async |location: &str, options: &str| {
        let location = dir.path().join(location).display().to_string();
        let columns = if options.contains("create") { "(author VARCHAR)" } else { "" };
        let sql =
            format!("CREATE OR REPLACE EXTERNAL TABLE t {columns} STORED AS TADOC LOCATION '{location}' {options}");
        context.sql(&sql).await?.collect().await
    };
    let asked = "OPTIONS ('tadoc.create' 'true', 'tadoc.tokenizer' 'whitespace')";
    let error = create("new", "").await.unwrap_err().to_string();
    assert!(error.contains("OPTIONS ('tadoc.create' 'true') begins a living corpus"), "{error}");
    create("new", asked).await.unwrap();
    create("new", asked).await.unwrap();
    let folder = LocalFolder::new(dir.path().join("new"));
    let store = LivingStore::open(folder, StoreOptions::default()).await.unwrap();
    assert_eq!(store.profile(), TokenizerProfile::Whitespace);
    assert_eq!(store.latest().await.unwrap().number, 1);
    for (location, refusal) in [
        ("nothing", "a living corpus begins in a folder of its own"),
        ("other/*.tadoc", "a living corpus is a folder"),
        ("other.tadoc", "a living corpus is a folder"),
    ] {
        let error = create(location, asked).await.unwrap_err().to_string();
        assert!(error.contains(refusal), "{error}");
    }
}

#[tokio::test]
async fn without_the_whole_statement_nothing_is_changed() {
    let notes = Notes::new().await;
    notes.run(CommitKind::Insert, MANY).await;
    let state = notes.context.state();
    let provider = notes.context.table_provider("d").await.unwrap();
    let error = provider.delete_from(&state, vec![]).await.unwrap_err();
    assert!(error.to_string().contains("nothing is changed"), "{error}");
    let error = provider.update(&state, vec![], vec![]).await.unwrap_err();
    assert!(error.to_string().contains("nothing is changed"), "{error}");
}

/// Predicates of all kinds, also those that the optimizer removes from the plan's filters.
const PREDICATES: [&str; 20] = [
    "doc_id = 7",
    "doc_id IN (3, 5, 500)",
    "path LIKE 'p1_' AND bytes > 13",
    "text LIKE '%number 11%' OR words < 3",
    "number % 10 = 3 AND path <> 'p13'",
    "number IS NULL",
    "author IS NULL AND number < 4",
    "author = 'nobody'",
    "NULL",
    "false",
    "1 = 2 AND doc_id = 3",
    "true AND doc_id = 9",
    "number = NULL",
    "number NOT IN (1, 2, NULL)",
    "doc_id IN (SELECT value FROM generate_series(10, 15))",
    "doc_id NOT IN (SELECT value FROM generate_series(3, 200))",
    "number = (SELECT max(e.number) FROM d AS e)",
    "EXISTS (SELECT 1 FROM generate_series(1, 5) AS s(n) WHERE s.n = d.number)",
    "doc_id IN (SELECT e.doc_id FROM d AS e WHERE e.text LIKE '%5')",
    "length(text) + length(text) = 26 AND upper(text) = 'TEXT NUMBER ' || doc_id",
];

#[tokio::test]
async fn exactly_the_named_rows_are_updated_and_deleted() {
    for predicate in PREDICATES {
        let notes = Notes::new().await;
        // The documents lie in a file and in edits, and some are changed or dropped.
        notes.run(CommitKind::Insert, MANY).await;
        notes.run(CommitKind::Insert, "INSERT INTO d (path, text) VALUES ('p13', 'x number 5')").await;
        notes.run(CommitKind::Update, "UPDATE d SET text = 'number 115' WHERE doc_id < 4").await;
        notes.run(CommitKind::Delete, "DELETE FROM d WHERE doc_id IN (5, 17)").await;
        let update = format!("UPDATE d SET text = text || '!' WHERE {predicate}");
        let longer = |document: Document| document.map(|(path, text)| (path, text + "!"));
        notes.run_on(predicate, &update, longer).await;
        notes.run_on(predicate, &format!("DELETE FROM d WHERE {predicate}"), |_| None).await;
    }
}

#[tokio::test]
async fn a_condition_that_is_null_changes_nothing() {
    let notes = Notes::new().await;
    notes.run(CommitKind::Insert, MANY).await;
    let documents = notes.documents().await;
    for condition in ["doc_id NOT IN (1, NULL)", "path NOT IN ('p1', NULL) AND bytes > 0", "text NOT IN ('x', NULL)"] {
        for change in ["DELETE FROM d", "UPDATE d SET text = 'gone'"] {
            let sql = format!("{change} WHERE {condition}");
            assert_eq!(notes.try_run(&sql).await.unwrap(), 0, "{sql}");
        }
    }
    assert_eq!(notes.documents().await, documents);
}

#[tokio::test]
async fn a_limit_and_an_alias_are_kept() {
    let notes = Notes::new().await;
    notes.run(CommitKind::Insert, MANY).await;
    assert_eq!(notes.run(CommitKind::Delete, "DELETE FROM d LIMIT 20").await, 20);
    assert_eq!(notes.documents().await.iter().flatten().count(), 100);
    notes.refused("DELETE FROM d AS x WHERE x.doc_id = 100").await;
    let update = "UPDATE d AS x SET text = x.path WHERE x.doc_id > 117";
    assert_eq!(notes.run(CommitKind::Update, update).await, 2);
    assert_eq!(notes.documents().await[118], document("p118", "p118"));
}

#[tokio::test]
async fn deleting_without_a_predicate_deletes_all() {
    for sql in ["DELETE FROM d", "DELETE FROM d WHERE true", "TRUNCATE TABLE d"] {
        let notes = Notes::new().await;
        notes.run(CommitKind::Insert, MANY).await;
        assert_eq!(notes.run(CommitKind::Delete, sql).await, 120);
        assert_eq!(notes.documents().await, vec![None; 120]);
    }
}

/// Damages the first section of every segment file.
fn damage_segments(notes: &Notes) {
    for entry in std::fs::read_dir(notes.folder.path().join("notes/segments")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        fixtures::damage_dictionary(&mut bytes);
        std::fs::write(path, bytes).unwrap();
    }
}

#[tokio::test]
async fn rows_that_are_named_by_id_or_path_are_changed_without_the_texts() {
    let notes = Notes::new().await;
    notes.run(CommitKind::Insert, MANY).await;
    notes.run(CommitKind::Delete, "DELETE FROM d WHERE doc_id = 7").await;
    damage_segments(&notes);
    let context = fixtures::session();
    notes.attach(&context).await;
    let notes = Notes { context, ..notes };
    assert_eq!(notes.run(CommitKind::Delete, "DELETE FROM d WHERE doc_id IN (3, 7, 8)").await, 2);
    let update = "UPDATE d SET text = 'new ' || doc_id WHERE doc_id BETWEEN 20 AND 22";
    assert_eq!(notes.run(CommitKind::Update, update).await, 3);
    let by_number = "DELETE FROM d WHERE number < 2";
    assert_eq!(notes.run(CommitKind::Delete, by_number).await, 2);
    assert_eq!(notes.ids("SELECT doc_id FROM d WHERE doc_id < 10").await, [2, 4, 5, 6, 9]);
    assert_eq!(notes.run(CommitKind::Delete, "DELETE FROM d WHERE path IN ('p7', 'p9')").await, 1);
    let edits = "INSERT INTO \"d$edits\" (doc_id, pos, text) VALUES (30, NULL, 'x'), (31, 0, 'y')";
    assert_eq!(notes.run(CommitKind::Edit, edits).await, 2);
    let error = notes.refused("INSERT INTO \"d$edits\" (doc_id, text) VALUES (7, 'z')").await;
    assert!(error.to_string().contains("there is no document 7"), "{error}");
    notes.refused("INSERT INTO \"d$edits\" (doc_id, pos, text) VALUES (30, 1, 'z')").await;
    notes.refused("UPDATE d SET text = text || '!' WHERE doc_id = 10").await;
    notes.refused("DELETE FROM d WHERE text = 'text number 11'").await;
}

#[tokio::test]
async fn rows_are_inserted_without_reading_what_is_there() {
    let notes = Notes::new().await;
    notes.run(CommitKind::Insert, MANY).await;
    let edits = "UPDATE d SET text = text || repeat(' more', 200) WHERE doc_id % 3 = 0";
    notes.run(CommitKind::Update, edits).await;
    notes.run(CommitKind::Delete, "DELETE FROM d WHERE doc_id = 7").await;
    damage_segments(&notes);
    let history = notes.store().await.history().await.unwrap();
    let updated = history.iter().position(|version| version.kind == CommitKind::Update).unwrap();
    let versions = std::fs::read_dir(notes.folder.path().join("notes/versions")).unwrap();
    let mut files: Vec<_> = versions.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    std::fs::remove_file(&files[updated]).unwrap();
    let context = fixtures::session();
    notes.attach(&context).await;
    let notes = Notes { context, ..notes };
    let insert = "INSERT INTO d (path, text) VALUES ('q', 'to be')";
    assert_eq!(notes.run(CommitKind::Insert, insert).await, 1);
    notes.refused("DELETE FROM d WHERE doc_id = 1").await;
}

#[tokio::test]
async fn an_empty_corpus_can_be_changed() {
    let notes = Notes::new().await;
    for sql in ["DELETE FROM d", "UPDATE d SET text = 'x'", "TRUNCATE TABLE d"] {
        assert_eq!(notes.try_run(sql).await.unwrap(), 0, "{sql}");
        assert_eq!(notes.latest().await.number, 1, "{sql}");
    }
    notes.refused("INSERT INTO \"d$edits\" (doc_id, text) VALUES (0, 'x')").await;
}

#[tokio::test]
async fn columns_of_the_user_stay_with_their_documents() {
    let notes = Notes::new().await;
    let insert = "INSERT INTO d (path, text, author, number) VALUES ('a', 'x', 'Ada', 1), ('b', 'y', NULL, 2)";
    notes.run(CommitKind::Insert, insert).await;
    notes.run(CommitKind::Insert, "INSERT INTO d (path, text) VALUES ('c', 'z')").await;
    notes.run(CommitKind::Update, "UPDATE d SET text = author || text WHERE number = 1").await;
    notes.run(CommitKind::Delete, "DELETE FROM d WHERE author IS NULL AND number IS NOT NULL").await;
    // This is another session, which reads the columns from the files.
    let context = fixtures::session();
    let place = notes.place();
    let create = format!("CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{place}'");
    context.sql(&create).await.unwrap().collect().await.unwrap();
    let rows = context.sql("SELECT path, text, author, number FROM d ORDER BY doc_id").await.unwrap();
    let rows = rows.to_string().await.unwrap();
    let rows: Vec<&str> = rows.lines().skip(3).take(2).collect();
    assert_eq!(rows, ["| a    | Adax | Ada    | 1      |", "| c    | z    |        |        |"]);
}

#[tokio::test]
async fn edits_that_are_most_of_a_corpus_are_compressed() {
    let notes = Notes::new().await;
    let insert = "INSERT INTO d (path, text, author) VALUES ('a', 'x', 'Ada')";
    notes.run(CommitKind::Insert, insert).await;
    notes.run(CommitKind::Insert, "INSERT INTO d (path, text) VALUES ('b', 'y')").await;
    // Two megabytes that do not repeat.
    let mut state = 1u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{:08x} ", state >> 32)
    };
    let text: String = (0..250_000).map(|_| word()).collect();
    let update = format!("UPDATE d SET text = '{text}' WHERE author = 'Ada'");
    let before = notes.latest().await.number;
    assert_eq!(notes.try_run(&update).await.unwrap(), 1);
    let after = notes.latest().await;
    assert_eq!((after.number, after.kind), (before + 2, CommitKind::Optimize));
    assert!(after.edit_versions().is_empty() && after.parts.len() == 1, "{after:?}");
    assert_eq!(notes.documents().await, [document("a", &text), document("b", "y")]);
    assert_eq!(notes.ids("SELECT doc_id FROM d WHERE author = 'Ada'").await, [0]);
    // A ratio of 1 turns the optimization off.
    notes.context.sql("SET tadoc.recompress_ratio = '1'").await.unwrap();
    notes.run(CommitKind::Update, &update.replace("SET text = '", "SET text = 'other ")).await;
    assert!(notes.context.sql("SET tadoc.recompress_ratio = '2'").await.is_err());
}

#[tokio::test]
async fn many_small_files_become_one() {
    let notes = Notes::new().await;
    // A row with a user column is a file of its own.
    let insert = |i| format!("INSERT INTO d (path, text, number) VALUES ('p{i}', 't{i}', {i})");
    for i in 0..63 {
        notes.run(CommitKind::Insert, &insert(i)).await;
    }
    let before = notes.latest().await;
    assert_eq!(before.parts.len(), 63);
    assert_eq!(notes.try_run(&insert(63)).await.unwrap(), 1);
    let after = notes.latest().await;
    assert_eq!((after.number, after.kind), (before.number + 2, CommitKind::Optimize));
    assert_eq!(after.parts.len(), 1);
    let expected: Vec<Document> = (0..64).map(|i| document(&format!("p{i}"), &format!("t{i}"))).collect();
    assert_eq!(notes.documents().await, expected);
    let ids = notes.ids("SELECT doc_id FROM d WHERE number = doc_id ORDER BY doc_id").await;
    assert_eq!(ids, (0..64).collect::<Vec<i64>>());
}

#[tokio::test]
async fn a_table_of_one_version_is_never_changed() {
    let notes = Notes::new().await;
    notes.run(CommitKind::Insert, MANY).await;
    let place = notes.place();
    let create = format!("CREATE EXTERNAL TABLE old STORED AS TADOC LOCATION '{place}' OPTIONS ('version' '2')");
    notes.context.sql(&create).await.unwrap().collect().await.unwrap();
    for sql in [
        "INSERT INTO old (text) VALUES ('x')",
        "DELETE FROM old",
        "UPDATE old SET text = ''",
        "INSERT INTO \"old$edits\" (doc_id, text) VALUES (0, 'x')",
    ] {
        let error = notes.refused(sql).await;
        assert!(error.to_string().contains("shows version 2 for ever"), "{error}");
    }
}

/// Every statement applies to the version that the other session left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_race_lose_nothing() {
    let notes = Notes::new().await;
    notes.run(CommitKind::Insert, MANY).await;
    let other = fixtures::session();
    notes.attach(&other).await;
    let sessions = [notes.context.clone(), other].into_iter().enumerate().map(|(i, context)| {
        tokio::spawn(async move {
            for round in 0..4 {
                for sql in [
                    "UPDATE d SET text = text || 'x' WHERE path = 'p119'".to_string(),
                    "DELETE FROM d WHERE doc_id = (SELECT min(e.doc_id) FROM d AS e)".to_string(),
                    "INSERT INTO \"d$edits\" (doc_id, pos, text) SELECT doc_id, bytes, 'y' FROM d \
                     WHERE doc_id = 118"
                        .to_string(),
                    format!("INSERT INTO d (path, text) VALUES ('{i}', '{round}')"),
                ] {
                    let rows = context.sql(&sql).await.unwrap().collect().await;
                    assert_eq!(count_of(&rows.unwrap_or_else(|e| panic!("{sql}: {e}"))), 1, "{sql}");
                }
            }
        })
    });
    for session in sessions.collect::<Vec<_>>() {
        session.await.unwrap();
    }
    assert_eq!(notes.latest().await.number, 2 + 2 * 4 * 4);
    let documents = notes.documents().await;
    assert!(documents[..8].iter().all(Option::is_none));
    assert_eq!(documents[8], document("p8", "text number 8"));
    assert_eq!(documents[118], document("p118", "text number 118yyyyyyyy"));
    assert_eq!(documents[119], document("p119", "text number 119xxxxxxxx"));
    let mut added = documents[120..].to_vec();
    added.sort();
    let expected = (0..8).map(|n| document(&(n / 4).to_string(), &(n % 4).to_string()));
    assert_eq!(added, expected.collect::<Vec<_>>());
}

/// A row of `"d$edits"`.
type EditRow = (u64, Option<u64>, Option<u64>, Option<&'static str>);

fn values(rows: &[EditRow]) -> String {
    let number = |n: Option<u64>| n.map_or("NULL".into(), |n| n.to_string());
    let row = |&(doc_id, pos, len, text): &EditRow| {
        let text = text.map_or("NULL".into(), |text| format!("'{text}'"));
        format!("({doc_id}, {}, {}, {text})", number(pos), number(len))
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    format!("INSERT INTO \"d$edits\" (doc_id, pos, len_bytes, text) VALUES {}", rows.join(", "))
}

fn batch(mode: EditMode, rows: &[EditRow]) -> EditBatch {
    let edit = |&(doc_id, pos, len, text): &EditRow| match (pos, len, text) {
        (Some(offset_bytes), None, Some(text)) => Edit::InsertText { doc_id, offset_bytes, text: text.into() },
        (None, None, Some(text)) => Edit::AppendText { doc_id, text: text.into() },
        (Some(offset_bytes), Some(len_bytes), None) => Edit::DeleteText { doc_id, offset_bytes, len_bytes },
        _ => panic!("no edit"),
    };
    EditBatch { mode, edits: rows.iter().map(edit).collect() }
}

/// Random batches, valid and not: SQL accepts the batches that the library accepts, with the same
/// result.
#[tokio::test]
async fn rows_of_edits_are_one_batch_in_either_mode() {
    let notes = Notes::new().await;
    let insert = "INSERT INTO d (path, text) VALUES ('a', 'one two'), ('b', ''), ('c', 'x'), ('d', 'y')";
    notes.run(CommitKind::Insert, insert).await;
    notes.run(CommitKind::Delete, "DELETE FROM d WHERE path = 'c'").await;
    let mut state = 12u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut num_made = 0;
    let mut num_refused = 0;
    for round in 0..60 {
        let mode = if round % 2 == 0 { EditMode::InSequence } else { EditMode::InBatch };
        notes.context.sql(&format!("SET tadoc.edit_mode = '{mode}'")).await.unwrap();
        let rows: Vec<EditRow> = (0..=draw(5))
            .map(|_| {
                let doc_id = if draw(20) == 0 { 2 + draw(3) } else { draw(2) };
                match draw(3) {
                    0 => (doc_id, None, None, Some("end ")),
                    1 => (doc_id, Some(draw(9)), None, Some("put in")),
                    _ => (doc_id, Some(draw(9)), Some(draw(4)), None),
                }
            })
            .collect();
        let store = notes.store().await;
        let version = store.latest().await.unwrap();
        let mut corpus = store.corpus(&version, &OpenLimits::default()).await.unwrap();
        let applied = corpus.apply(&batch(mode, &rows));
        if applied.is_err() {
            notes.refused(&values(&rows)).await;
            num_refused += 1;
            continue;
        }
        assert_eq!(notes.run(CommitKind::Edit, &values(&rows)).await, rows.len() as u64);
        for (id, found) in notes.documents().await.into_iter().enumerate() {
            let expected = corpus.extract(id as u64, 0, u64::MAX).ok();
            assert_eq!(found.map(|(_, text)| text.into_bytes()), expected, "{mode} {rows:?}");
        }
        num_made += 1;
    }
    assert!(num_made > 15 && num_refused > 15, "{num_made} made, {num_refused} refused");
}

#[tokio::test]
async fn edits_are_made_in_the_order_of_their_rows() {
    let notes = Notes::new().await;
    notes.run(CommitKind::Insert, "INSERT INTO d (path, text) VALUES ('a', '')").await;
    let sql = "INSERT INTO \"d$edits\" (doc_id, text) SELECT 0, concat(value, ' ') \
               FROM generate_series(1, 20000)";
    assert_eq!(notes.run(CommitKind::Edit, sql).await, 20_000);
    let expected: String = (1..=20_000).map(|i| format!("{i} ")).collect();
    assert!(notes.documents().await[0] == document("a", &expected));
}

#[tokio::test]
async fn rows_that_are_no_edit_are_refused() {
    let notes = Notes::new().await;
    notes.run(CommitKind::Insert, "INSERT INTO d (path, text) VALUES ('a', 'one two')").await;
    for (columns, row, refusal) in [
        ("doc_id, pos, text", "0, 8, 'x'", "byte 8 lies behind the end of document 0"),
        ("doc_id, pos, len_bytes", "0, 5, 3", "byte 8 lies behind the end of document 0"),
        ("doc_id, text", "1, 'x'", "there is no document 1"),
        ("doc_id, text", "-1, 'x'", "doc_id: got -1"),
        ("doc_id, pos, text", "0, -1, 'x'", "pos: got -1"),
        ("pos, text", "0, 'x'", "doc_id is NULL"),
        ("doc_id, pos", "0, 3", "got pos 3, len_bytes NULL, text NULL"),
        ("doc_id, len_bytes", "0, 3", "got pos NULL, len_bytes 3, text NULL"),
        ("doc_id, len_bytes, text", "0, 3, 'x'", "got pos NULL, len_bytes 3, text given"),
        ("doc_id, text, kind", "0, 'x', 'append'", "column kind of edits is for reading"),
        ("doc_id, text, version", "0, 'x', 1", "column version of edits is for reading"),
    ] {
        let sql = format!("INSERT INTO \"d$edits\" ({columns}) VALUES ({row})");
        let error = notes.refused(&sql).await;
        assert!(error.to_string().contains(refusal), "{sql}: {error}");
    }
    notes.refused("INSERT INTO \"d$history\" (version) VALUES (7)").await;
    notes.refused("DELETE FROM \"d$edits\"").await;
    notes.refused("UPDATE \"d$edits\" SET text = 'x'").await;
}
