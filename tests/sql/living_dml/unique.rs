//! Tests of `tadoc.unique_paths`: a path is one document, also where statements run at the same time.

use std::collections::HashSet;

use tadoc_store::CommitKind;

use super::Notes;
use crate::fixtures;

/// Returns the paths of all documents.
async fn paths(notes: &Notes) -> Vec<String> {
    let documents = notes.documents().await.into_iter().flatten();
    documents.map(|(path, _)| path).collect()
}

#[tokio::test]
async fn a_path_is_inserted_once() {
    let notes = Notes::new().await;
    notes.run(CommitKind::Insert, "INSERT INTO d (path, text) VALUES ('a', 'x'), ('a', 'y')").await;
    notes.context.sql("SET tadoc.unique_paths = true").await.unwrap();
    let many = "INSERT INTO d (path, text) SELECT concat('p', value), 'x' FROM generate_series(1, 1000)";
    notes.run(CommitKind::Insert, many).await;
    for (rows, taken) in [
        ("VALUES ('b', 'x'), ('a', 'y')", "a"),
        ("SELECT concat('p', value), 'x' FROM generate_series(1000, 2000)", "p1000"),
        ("SELECT path, text FROM d WHERE path = 'p7'", "p7"),
    ] {
        let error = notes.refused(&format!("INSERT INTO d (path, text) {rows}")).await.to_string();
        let expected = format!(
            "{}: a document {taken} is there already; nothing was added: UPDATE or DELETE it; without \
             tadoc.unique_paths it is stored once more",
            notes.place()
        );
        assert!(error.contains(&expected), "{rows}: {error}");
    }
    // Rows of one statement are lines of one file, rows without a path are no file, and what was dropped is gone.
    notes.run(CommitKind::Insert, "INSERT INTO d (path, text) VALUES ('c', 'x'), ('c', 'y')").await;
    for _ in 0..2 {
        notes.run(CommitKind::Insert, "INSERT INTO d (text) VALUES ('z')").await;
    }
    notes.run(CommitKind::Delete, "DELETE FROM d WHERE path = 'a'").await;
    notes.run(CommitKind::Insert, "INSERT INTO d (path, text) VALUES ('a', 'z')").await;
    notes.context.sql("SET tadoc.unique_paths = false").await.unwrap();
    notes.run(CommitKind::Insert, "INSERT INTO d (path, text) VALUES ('a', 'x')").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_at_once_insert_a_path_once() {
    for num_rows in [1, 1000] {
        let notes = Notes::new().await;
        let sessions = [fixtures::session(), fixtures::session(), fixtures::session()];
        for session in &sessions {
            notes.attach(session).await;
            session.sql("SET tadoc.unique_paths = true").await.unwrap();
        }
        for round in 0..8 {
            // Each adds the documents of the others, and one of its own.
            let insert = async |session_idx: usize| {
                let rows = format!(
                    "INSERT INTO d (path, text) SELECT concat('p{round}_', value), 'x' FROM generate_series(1, {num_rows}) \
                     UNION ALL SELECT 'own {session_idx} of {round}', 'x'"
                );
                sessions[session_idx].sql(&rows).await.unwrap().collect().await.map(|_| ())
            };
            let (one, two, three) = futures::join!(insert(0), insert(1), insert(2));
            let done = [one, two, three];
            assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 1, "{done:?}");
        }
        let paths = paths(&notes).await;
        assert_eq!(paths.len(), 8 * (num_rows + 1));
        assert_eq!(paths.iter().collect::<HashSet<_>>().len(), paths.len());
    }
}
