//! Tests of user columns beside the rows of every function, and of files beside ids of documents, in the words of a
//! user.

use std::collections::BTreeSet;

use datafusion::prelude::{SessionConfig, SessionContext};
use tadoc::build::IngestOptions;
use tempfile::TempDir;
use testkit::random::Random;

use super::every_function::CALLS;
use super::{batches, session_with, table};
use crate::fixtures;

const AUTHORS: [&str; 3] = ["Balzac", "Sand", "Zola"];

fn session() -> SessionContext {
    session_with(SessionConfig::new().with_target_partitions(3).with_information_schema(true))
}

/// Writes a corpus of sources of this package with the columns `author` and `year`, and makes the table `known` of
/// them.
async fn write_authors(ctx: &SessionContext, folder: &TempDir) -> String {
    let plain = folder.path().join("plain.tadoc");
    let root = testkit::root().join("src/datafusion/functions");
    let texts: Vec<(String, Vec<u8>)> = fixtures::files_below(&root)
        .into_iter()
        .map(|file| (file.display().to_string(), std::fs::read(&file).unwrap()))
        .collect();
    let borrowed: Vec<(&str, &[u8])> = texts.iter().map(|(path, text)| (path.as_str(), text.as_slice())).collect();
    fixtures::write_corpus(&plain, IngestOptions { block_bytes: 60_000, ..IngestOptions::default() }, &borrowed);
    let [first, second, third] = AUTHORS;
    let named = folder.path().join("authors.tadoc").display().to_string();
    let known = format!(
        "CREATE TABLE known AS SELECT doc_id, CASE doc_id % 3 WHEN 0 THEN '{first}' WHEN 1 THEN '{second}' \
         ELSE '{third}' END AS author, 1800 + doc_id AS year FROM documents('{}')",
        plain.display()
    );
    batches(ctx, &known).await.unwrap();
    let copy = format!(
        "COPY (SELECT path, content, author, year FROM documents('{}') JOIN known USING (doc_id) ORDER BY doc_id) \
         TO '{named}' STORED AS TADOC",
        plain.display()
    );
    batches(ctx, &copy).await.unwrap();
    named
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_location_in_quotes_has_all_columns() {
    let folder = TempDir::new().unwrap();
    // As a program has it that registers everything with one call.
    let ctx = SessionContext::new();
    datafusion_tadoc::register_all(&ctx).unwrap();
    let corpus = write_authors(&ctx, &folder).await;
    let count =
        format!("SELECT author, count(*), min(year) AS first FROM '{corpus}' WHERE year < 1850 GROUP BY 1 ORDER BY 1");
    let of_known = count.replace(&format!("'{corpus}'"), "known");
    assert_eq!(table(&ctx, &count).await, table(&ctx, &of_known).await);
    let names = ctx.sql(&format!("SELECT * FROM '{corpus}'")).await.unwrap().schema().field_names();
    let names: Vec<&str> = names.iter().filter_map(|name| name.rsplit('.').next()).collect();
    assert_eq!(names, ["doc_id", "path", "bytes", "words", "text", "content", "author", "year"]);
    // The function keeps its columns, whatever the corpus has.
    let names = ctx.sql(&format!("SELECT * FROM documents('{corpus}')")).await.unwrap();
    assert_eq!(names.schema().fields().len(), 6);
}

/// Rows of all functions by document, joined as one would type it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_every_function_join_the_columns_of_their_documents() {
    let folder = TempDir::new().unwrap();
    let ctx = session();
    let corpus = format!("'{}'", write_authors(&ctx, &folder).await);
    let mut joined = BTreeSet::new();
    for (call, number, _) in CALLS {
        let call = call.replace('@', &corpus);
        let schema = ctx.sql(&format!("SELECT * FROM {call}")).await.unwrap();
        if call.starts_with("documents(") || !schema.schema().has_column_with_unqualified_name("doc_id") {
            continue;
        }
        let rows = format!(
            "SELECT author, count(*), min(year) AS first FROM {call} JOIN {corpus} USING (doc_id) WHERE year > 1805 \
             GROUP BY author ORDER BY author"
        );
        let expected = rows.replace(&format!("JOIN {corpus}"), "JOIN known");
        assert_eq!(table(&ctx, &rows).await, table(&ctx, &expected).await, "{rows}");
        assert!(!number.is_empty());
        joined.insert(call.split('(').next().unwrap().to_owned());
    }
    let all = [
        "doc_term_matrix",
        "grep",
        "kwic",
        "log_templates",
        "near_duplicate_clusters",
        "ranked_inverted_index",
        "repeated_spans",
        "search",
        "sequence_count",
        "term_count",
        "term_vector",
        "tfidf",
        "tokens",
    ];
    assert_eq!(joined.iter().map(String::as_str).collect::<Vec<_>>(), all);
}

/// Returns lines of few words, so that phrases repeat.
fn random_text(random: &mut Random) -> String {
    let words = ["the", "sea", "s", "of", "a", "king", "storm", "Theory", "2026"];
    let line = |random: &mut Random| {
        let words: Vec<&str> = (0..8).map(|_| *random.pick(&words)).collect();
        format!("the s {} of\n", words.join(" "))
    };
    (0..40).map(|_| line(random)).collect()
}

/// Calls about files with the same paths: each row says which file has its document. A statement without the
/// column has the plan that it had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_over_several_files_name_the_file() {
    let folder = TempDir::new().unwrap();
    for (seed, name) in (50..).zip(["a", "b", "c"]) {
        let mut random = Random(seed);
        let texts: Vec<String> = (0..9).map(|_| random_text(&mut random)).collect();
        let documents: Vec<(&str, &[u8])> = texts.iter().map(|text| ("same.txt", text.as_bytes())).collect();
        let options = IngestOptions { block_bytes: 4000, ..IngestOptions::default() };
        fixtures::write_corpus(&folder.path().join(format!("{name}.tadoc")), options, &documents);
    }
    let glob = format!("'{}/*.tadoc'", folder.path().display());
    let file = |name: &str| format!("{}/{name}.tadoc", folder.path().display());
    let named = |id: &str| {
        let [a, b, c] = ["a", "b", "c"].map(file);
        format!("CASE WHEN {id} < 9 THEN '{a}' WHEN {id} < 18 THEN '{b}' ELSE '{c}' END")
    };
    let contexts = [session(), session()];
    batches(&contexts[1], "SET tadoc.max_memory_bytes = '64KiB'").await.unwrap();
    let mut checked = BTreeSet::new();
    for (call, ..) in CALLS {
        let call = call.replace('@', &glob);
        let frame = contexts[0].sql(&format!("SELECT * FROM {call}")).await.unwrap();
        let names = frame.schema().field_names();
        let names: Vec<&str> = names.iter().filter_map(|name| name.rsplit('.').next()).collect();
        for ids in names.iter().filter(|name| name.contains("doc_id") && !name.ends_with("ids")) {
            let corpus = ids.replace("doc_id", "corpus");
            assert!(names.contains(&corpus.as_str()), "{call}: {names:?}");
            let wrong = format!("SELECT count(*), count({corpus}) FROM {call} WHERE {corpus} <> {}", named(ids));
            let all = format!("SELECT count(*) = count({corpus}), count(DISTINCT {corpus}) FROM {call}");
            for ctx in &contexts {
                let Ok(rows) = batches(ctx, &all).await else { continue };
                let rows = datafusion::arrow::util::pretty::pretty_format_batches(&rows).unwrap().to_string();
                assert!(rows.contains("| true "), "{all}\n{rows}");
                assert!(table(ctx, &wrong).await.contains("| 0        | 0"), "{wrong}");
            }
            checked.insert(call.split('(').next().unwrap().to_owned());
        }
    }
    assert_eq!(checked.len(), 15, "{checked:?}");
    // The columns that a call had on one file stay, in their order, and a table over the glob has the same.
    let create = format!("CREATE EXTERNAL TABLE shelf STORED AS TADOC LOCATION {glob}");
    batches(&contexts[0], &create).await.unwrap();
    for location in [glob.as_str(), "'shelf'"] {
        let frame = contexts[0].sql(&format!("SELECT * FROM search({location}, 'of')")).await.unwrap();
        let names = frame.schema().field_names();
        let names: Vec<&str> = names.iter().filter_map(|name| name.rsplit('.').next()).collect();
        assert_eq!(names, ["doc_id", "path", "byte_offset", "byte_len", "word_index", "line", "column", "corpus"]);
    }
    let plan = table(&contexts[0], &format!("EXPLAIN SELECT doc_id, path FROM search({glob}, 'of')")).await;
    assert!(!plan.contains("file_of_document"), "{plan}");
    let plan = table(&contexts[0], &format!("EXPLAIN SELECT corpus FROM search({glob}, 'of')")).await;
    assert!(plan.contains("file_of_document"), "{plan}");
}
