//! Statements that create and change a living corpus. They run at two places: in S3 and, as the
//! oracle, on the local disk.

use std::sync::Arc;

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;
use datafusion_tadoc::TadocSessionStateBuilderExt;
use object_store::ObjectStore;
use url::Url;

/// Statements that change the corpus. `@` stands for the place.
const STATEMENTS: &[&str] = &[
    "CREATE EXTERNAL TABLE d (author VARCHAR) STORED AS TADOC LOCATION '@' OPTIONS ('create' 'true')",
    "INSERT INTO d (path, text) VALUES ('a', 'to be'), ('b', 'or not to be')",
    // User columns make the insert a segment file.
    "INSERT INTO d (path, text, author) VALUES ('c', 'that is', 'Ada'), ('d', 'the', 'Bob')",
    "INSERT INTO \"d$edits\" (doc_id, pos, text) VALUES (0, 2, ' surely'), (3, NULL, ' question')",
    "SET tadoc.edit_mode = 'in_batch'",
    "INSERT INTO \"d$edits\" (doc_id, pos, len_bytes) VALUES (0, 0, 3), (1, 0, 3)",
    "UPDATE d SET text = upper(text) WHERE author = 'Ada'",
    "DELETE FROM d WHERE path IN (SELECT path FROM d WHERE text LIKE 'not%')",
    "DELETE FROM d WHERE path = 'nowhere'",
    "SELECT * FROM \"d$edits\" ORDER BY version, place",
    // More than 1 MiB of edits makes the store optimize.
    "UPDATE d SET text = repeat('to be or not to be ', 60000) WHERE doc_id = 0",
    "INSERT INTO d (path, text) VALUES ('e', 'late')",
    "COPY (SELECT 'f' AS path, 'later' AS text, 'Eve' AS author) TO '@/' STORED AS TADOC",
    "COPY (SELECT 'g' AS path, 'last' AS text) TO '@/' STORED AS TADOC",
];

/// Queries for the final state. Ids of commits and times are not compared.
const QUERIES: &[&str] = &[
    "SELECT doc_id, path, author, bytes, md5(text) FROM d ORDER BY doc_id",
    "SELECT version, kind, docs_added, docs_dropped, edits, text_bytes FROM \"d$history\"
     ORDER BY version",
    "SELECT count(*) FROM \"d$segments\"",
    "SELECT doc_id, text FROM documents('@', version => 3) ORDER BY doc_id",
    "SELECT doc_id, text FROM documents('@', version => 5) ORDER BY doc_id",
    "SELECT word, count FROM word_count('@') ORDER BY word",
];

/// Runs all statements with the corpus at `place` and returns all answers. Objects of S3 are in
/// `bucket`.
pub async fn answers(place: &str, bucket: Option<(&str, Arc<dyn ObjectStore>)>) -> Vec<String> {
    let state = SessionStateBuilder::new().with_default_features().with_tadoc().build();
    let ctx = SessionContext::new_with_state(state);
    if let Some((url, store)) = bucket {
        ctx.register_object_store(&Url::parse(url).unwrap(), store);
    }
    let mut answers = Vec::new();
    for sql in STATEMENTS.iter().chain(QUERIES) {
        let sql = sql.replace('@', place);
        let frame = ctx.sql(&sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
        let rows = frame.collect().await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
        let rows = pretty_format_batches(&rows).unwrap().to_string();
        answers.push(rows.replace(place, "@"));
    }
    answers
}
