//! What the statements of README.md and sql/README.md speak of, in a folder for each.
//!
//! ```text
//! notes.tadoc          nine documents, one below server/, the eighth of more than 1,400 bytes
//! src/lib.rs           a source
//! inbox/*.txt          nine notes, one of them to be deleted
//! lineitem.parquet     a column l_comment
//! questions, more      tables of the session
//! ```

use std::fs;
use std::path::Path;

use super::write_corpus;
use datafusion::prelude::SessionContext;
use tadoc::build::IngestOptions;

/// Statements that make the tables and `lineitem.parquet`.
const TABLES: &[&str] = &[
    "CREATE TABLE questions AS SELECT * FROM (VALUES (1, 7, 0), (2, 0, 4)) AS q (id, doc_id, pos)",
    "CREATE TABLE more AS SELECT 1 AS l_orderkey, 'carefully express deposits' AS l_comment",
    "COPY more TO 'lineitem.parquet' STORED AS PARQUET",
];

/// Writes the files below `dir`, which is the working directory, and makes the tables of `context`.
pub async fn write_all(dir: &Path, context: &SessionContext) {
    let long = "after the power loss a deadlock, and a power failure again; ".repeat(30);
    let note = |at: usize| match at {
        7 => ("server/long.md".to_owned(), long.clone()),
        _ => {
            (format!("note{at}.md"), format!("note {at} of the power loss, a deadlock to be fixed"))
        }
    };
    let notes: Vec<(String, String)> = (0..9).map(note).collect();
    let documents: Vec<(&str, &[u8])> =
        notes.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
    write_corpus(&dir.join("notes.tadoc"), IngestOptions::default(), &documents);
    for folder in ["src", "inbox"] {
        fs::create_dir(dir.join(folder)).unwrap();
    }
    fs::write(dir.join("src/lib.rs"), "//! A library.\n").unwrap();
    for (at, (_, text)) in notes.iter().enumerate() {
        let rest = if at == 5 { " to be deleted" } else { " in colour" };
        fs::write(dir.join(format!("inbox/{at}.txt")), format!("{text}{rest}")).unwrap();
    }
    for statement in TABLES {
        context.sql(statement).await.unwrap().collect().await.unwrap();
    }
}
