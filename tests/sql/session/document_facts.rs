//! Tests of the stored lengths of documents: paths, bytes and words are read without grammars, and
//! the rows equal those of the loaded corpus.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use tadoc::build::IngestOptions;
use testkit::malformed::anatomy::{Anatomy, TIES};

use super::{batches, fixtures_folder, table};
use crate::fixtures;

/// Kinds of sections in the footer.
const GRAMMAR: [u8; 2] = [2, 0];
const DOCUMENTS: [u8; 2] = [3, 0];
const DOCUMENT_LENGTHS: [u8; 2] = [7, 0];
const CORPORA: [&str; 5] = ["plays.tadoc", "parts.tadoc", "shelf", "empty.tadoc", "many.tadoc"];
/// Statements that need no text. Each has one row for each document at most, or sums.
const STATEMENTS: [&str; 9] = [
    "SELECT path FROM documents('@')",
    "SELECT doc_id, path, bytes, words FROM documents('@')",
    "SELECT path, bytes, words FROM documents('@') WHERE path LIKE '%1%'",
    "SELECT count(*), sum(bytes), sum(words) FROM documents('@')",
    "SELECT doc_id, words FROM documents('@') WHERE bytes > 5 ORDER BY words DESC, doc_id LIMIT 3",
    "SELECT path, words FROM documents('@') WHERE doc_id = 1 OR doc_id % 7 = 3",
    "SELECT path, bytes FROM documents('@') WHERE doc_id > 100000",
    "SELECT doc_id FROM documents('@') WHERE words = 0",
    "SELECT a.path, b.bytes FROM documents('@') a JOIN documents('@') b ON a.doc_id = b.doc_id + 1",
];

/// Writes documents whose grammar is much larger than their paths and lengths, cut into segments.
fn write_many(dir: &Path) {
    let text = |at: usize| -> String {
        (0..300 + at % 70).map(|word| format!("{} ", (at * 7919 + word * word) % 1009)).collect()
    };
    let documents: Vec<(String, String)> = (0..60).map(|at| (format!("folder/{at}.txt"), text(at))).collect();
    let documents: Vec<(&str, &[u8])> = documents.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
    let options = IngestOptions { block_bytes: 20_000, ..IngestOptions::default() };
    fixtures::write_corpus(&dir.join("many.tadoc"), options, &documents);
}

/// Returns the rows of `sql`, sorted.
async fn rows(ctx: &SessionContext, sql: &str) -> Vec<String> {
    let mut rows: Vec<String> = table(ctx, sql).await.lines().map(str::to_owned).collect();
    rows.sort_unstable();
    rows
}

/// Returns the bytes that a statement reads of corpora.
async fn bytes_read(ctx: &SessionContext, sql: &str) -> u64 {
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    bytes_read_by(&plan)
}

fn bytes_read_by(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name("bytes_read"));
    let own = own.map_or(0, |value| value.as_usize() as u64);
    own + plan.children().into_iter().map(bytes_read_by).sum::<u64>()
}

/// Returns the bytes of the sections of these kinds in a file.
fn stored(path: &Path, kinds: &[[u8; 2]]) -> u64 {
    let mut anatomy = Anatomy::from_file(&fs::read(path).unwrap());
    let sections = anatomy.sections_mut().into_iter();
    sections.filter(|section| kinds.contains(&section.kind)).map(|s| s.bytes.len() as u64).sum()
}

#[tokio::test]
async fn facts_are_read_without_the_grammar() {
    let dir = fixtures_folder();
    write_many(dir.path());
    let many = dir.path().join("many.tadoc");
    let grammar = stored(&many, &[GRAMMAR]);
    let facts = stored(&many, &[DOCUMENTS, DOCUMENT_LENGTHS]);
    for statement in STATEMENTS {
        let sql = statement.replace('@', &many.display().to_string());
        let ctx = fixtures::session();
        let read = bytes_read(&ctx, &sql).await;
        assert!(read < grammar / 2, "{read} of {grammar} bytes by {sql}");
        assert!(statement.contains("100000") || read >= facts, "{read} of {facts} bytes by {sql}");
        assert_eq!(bytes_read(&ctx, &sql).await, 0, "{sql}");
        let text = format!("SELECT text FROM documents('{}')", many.display());
        assert!(bytes_read(&ctx, &text).await > grammar);
        // If the corpus is loaded already, the query uses it.
        let ctx = fixtures::session();
        bytes_read(&ctx, &text).await;
        assert_eq!(bytes_read(&ctx, &sql).await, 0, "{sql}");
    }
}

#[tokio::test]
async fn stored_facts_are_those_of_the_grammar() {
    let dir = fixtures_folder();
    write_many(dir.path());
    for corpus in CORPORA {
        let place = dir.path().join(corpus).display().to_string();
        let loaded = fixtures::session();
        table(&loaded, &format!("SELECT * FROM documents('{place}')")).await;
        for statement in STATEMENTS {
            let sql = statement.replace('@', &place);
            let stored = rows(&fixtures::session(), &sql).await;
            assert_eq!(stored, rows(&loaded, &sql).await, "{sql}");
        }
    }
}

#[tokio::test]
async fn files_of_earlier_versions_are_read_whole() {
    let dir = fixtures_folder();
    write_many(dir.path());
    for corpus in ["plays.tadoc", "parts.tadoc", "many.tadoc"] {
        let new = dir.path().join(corpus);
        for kind in [DOCUMENT_LENGTHS, TIES] {
            let mut anatomy = Anatomy::from_file(&fs::read(&new).unwrap());
            for segment in &mut anatomy.segments {
                segment.sections.retain(|section| section.kind != kind && section.kind != TIES);
            }
            let old = dir.path().join(format!("old-{corpus}"));
            fs::write(&old, anatomy.assemble()).unwrap();
            let grammar = stored(&old, &[GRAMMAR]);
            for statement in STATEMENTS {
                let of = |path: &Path| statement.replace('@', &path.display().to_string());
                let ctx = fixtures::session();
                assert_eq!(rows(&ctx, &of(&old)).await, rows(&ctx, &of(&new)).await, "{statement}");
                let read = bytes_read(&fixtures::session(), &of(&old)).await;
                // No document has such an id, so no segment is opened.
                let is_none = statement.contains("100000");
                assert!(is_none || read >= grammar, "{read} of {grammar} bytes by {statement}");
            }
        }
    }
}

#[tokio::test]
async fn every_flipped_byte_of_facts_is_found() {
    let dir = fixtures_folder();
    let plays = dir.path().join("plays.tadoc");
    let whole = fs::read(&plays).unwrap();
    let sections = Anatomy::from_file(&whole);
    let mut start = 64;
    for section in &sections.segments[0].sections {
        let len = section.bytes.len();
        if [DOCUMENTS, DOCUMENT_LENGTHS].contains(&section.kind) {
            for at in start..start + len {
                let mut damaged = whole.clone();
                damaged[at] ^= 1;
                let path = dir.path().join("flipped.tadoc");
                fs::write(&path, damaged).unwrap();
                let sql = format!("SELECT path, bytes FROM documents('{}')", path.display());
                let error = batches(&fixtures::session(), &sql).await.unwrap_err().to_string();
                assert!(error.contains("flipped.tadoc: section document"), "{error}");
            }
        }
        start += len.next_multiple_of(64);
    }
}
