//! Tests of the stored word counts of files: nothing else is read for them, and the rows equal
//! those of the grammar.

use std::fs;

use datafusion::prelude::SessionContext;
use tadoc::build::{CorpusBuilder, IngestOptions};
use testkit::malformed::anatomy::{Anatomy, TIES};

use super::{fixtures_folder, table};
use crate::fixtures;

/// Kind of the section of word counts.
const WORD_COUNTS: [u8; 2] = [5, 0];
const CORPORA: [&str; 4] = ["plays.tadoc", "parts.tadoc", "shelf", "empty.tadoc"];

async fn bytes_read(ctx: &SessionContext, call: &str) -> u64 {
    let text = table(ctx, &format!("EXPLAIN ANALYZE SELECT * FROM {call}")).await;
    let after = text.split("bytes_read=").nth(1).unwrap_or_default();
    after.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

#[tokio::test]
async fn words_are_counted_without_the_grammar() {
    let dir = fixtures_folder();
    let plays = dir.path().join("plays.tadoc");
    let count = format!("word_count('{}')", plays.display());
    let ctx = fixtures::session();
    let of_words = bytes_read(&ctx, &count).await;
    assert!((1..fs::metadata(&plays).unwrap().len() / 2).contains(&of_words), "{of_words}");
    assert_eq!(bytes_read(&ctx, &count).await, 0);
    let vectors = format!("term_vector('{}')", plays.display());
    assert!(bytes_read(&ctx, &vectors).await > of_words);
    assert_eq!(bytes_read(&ctx, &count).await, 0);
    // If the corpus is loaded already, the query uses it.
    let ctx = fixtures::session();
    bytes_read(&ctx, &vectors).await;
    assert_eq!(bytes_read(&ctx, &count).await, 0);
}

#[tokio::test]
async fn stored_counts_are_those_of_the_grammar() {
    let dir = fixtures_folder();
    for corpus in CORPORA {
        for fold in [false, true] {
            let sql = format!("SELECT * FROM word_count('{}', {fold})", dir.path().join(corpus).display());
            let ctx = fixtures::session();
            let stored = table(&ctx, &sql).await;
            table(&ctx, "SET tadoc.traversal = 'top_down'").await;
            assert_eq!(table(&ctx, &sql).await, stored, "{sql}");
            let explained = table(&ctx, &format!("EXPLAIN {sql}")).await;
            assert!(explained.contains("weights flow once"), "{explained}");
        }
    }
}

/// Returns a file of `text`, split into its sections.
fn anatomy_of(text: &str) -> Anatomy {
    let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
    builder.push_document("a.txt", text.as_bytes()).unwrap();
    Anatomy::from_file(&builder.finish(None).unwrap().0)
}

#[tokio::test]
async fn counts_of_another_file_are_refused_whatever_their_checksums() {
    let dir = fixtures_folder();
    let one = anatomy_of("to be be be");
    let other = anatomy_of("to to to be");
    let refusal = async |name: &str, kept: &dyn Fn(&[u8; 2]) -> bool| {
        let mut swapped = one.clone();
        let sections = &mut swapped.segments[0].sections;
        for (section, of_other) in sections.iter_mut().zip(&other.segments[0].sections) {
            if section.kind == WORD_COUNTS {
                *section = of_other.clone();
            }
        }
        sections.retain(|section| kept(&section.kind));
        let path = dir.path().join(name);
        fs::write(&path, swapped.assemble()).unwrap();
        let sql = format!("SELECT * FROM word_count('{}')", path.display());
        let ctx = fixtures::session();
        match ctx.sql(&sql).await {
            Ok(frame) => frame.collect().await.unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    };
    let error = refusal("swapped.tadoc", &|_| true).await;
    assert!(error.contains("swapped.tadoc") && error.contains("from a copy"), "{error}");
    let error = refusal("old-swapped.tadoc", &|kind| *kind != TIES).await;
    assert!(error.contains("word counts") && error.contains("got"), "{error}");
}

#[tokio::test]
async fn files_of_earlier_versions_have_no_counts_that_may_be_used() {
    let dir = fixtures_folder();
    let of = |corpus| [TIES, WORD_COUNTS].map(|kind| (corpus, kind));
    for (corpus, kind) in ["plays.tadoc", "parts.tadoc"].into_iter().flat_map(of) {
        let new = dir.path().join(corpus);
        let mut anatomy = Anatomy::from_file(&fs::read(&new).unwrap());
        for segment in &mut anatomy.segments {
            segment.sections.retain(|section| section.kind != kind && section.kind != TIES);
        }
        let old = dir.path().join(format!("old-{corpus}"));
        fs::write(&old, anatomy.assemble()).unwrap();
        let ctx = fixtures::session();
        let count = |path: &std::path::Path| format!("SELECT * FROM word_count('{}')", path.display());
        assert_eq!(table(&ctx, &count(&old)).await, table(&ctx, &count(&new)).await);
        let explained = table(&ctx, &format!("EXPLAIN {}", count(&old))).await;
        assert!(explained.contains("weights flow once"), "{explained}");
        let info = format!("SELECT value FROM corpus_info('{}') WHERE name LIKE 'word_counts%'", old.display());
        assert_eq!(table(&ctx, &info).await.contains("| 0 "), kind == WORD_COUNTS, "{corpus}");
    }
}
