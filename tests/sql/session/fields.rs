//! Conditions on fields of texts: the documents are those of the same condition on plain rows, which nothing is pushed
//! into.

use std::sync::Arc;

use datafusion::arrow::array::{Int64Array, RecordBatch, StringViewArray};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::SessionContext;
use tadoc::build::IngestOptions;
use testkit::random::Random;

use crate::fixtures;

const PATTERNS: [&str; 6] = [
    "user {u} took {n:int} ms",
    "{u:word} took {n:int}",
    "GET {u} HTTP {n:int}",
    "a={u:quoted} {n:float}",
    "é{u}ü{n:int}",
    "{u}, {n:int}",
];

/// Conditions on `u` and `n`.
const CONDITIONS: [&str; 12] = [
    "u = 'ann'",
    "'ann' <> u",
    "n > 5",
    "CAST(n AS TEXT) = '7'",
    "u IS NOT NULL",
    "u IS NULL",
    "u LIKE '%n%'",
    "u NOT LIKE '%n%'",
    "u IN ('ann', '/index')",
    "u NOT IN ('ann')",
    "n BETWEEN 3 AND 8",
    "u IS DISTINCT FROM 'ann'",
];

fn text(random: &mut Random) -> String {
    let pieces = [
        "user ", " took ", " ms", "GET ", " HTTP ", "a=", "\"x y\" ", "é", "ü", ", ", "ann", "/index", "7", "12",
        "\u{fffd}", " ", "bob",
    ];
    (0..random.below(9)).map(|_| *random.pick::<&str>(&pieces)).collect()
}

async fn rows(ctx: &SessionContext, sql: &str) -> String {
    let batches = ctx.sql(sql).await.unwrap().collect().await.unwrap();
    pretty_format_batches(&batches).unwrap().to_string()
}

#[tokio::test]
async fn conditions_on_fields_find_the_documents_of_plain_rows() {
    let mut random = Random(7);
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<String> = (0..400).map(|_| text(&mut random)).collect();
    let named: Vec<(&str, &[u8])> = texts.iter().map(|text| ("l", text.as_bytes())).collect();
    let corpus = folder.path().join("c.tadoc");
    fixtures::write_corpus(&corpus, IngestOptions { block_bytes: 1 << 10, ..IngestOptions::default() }, &named);
    let ctx = fixtures::session();
    let ids = Int64Array::from_iter_values(0..texts.len() as i64);
    let column = StringViewArray::from_iter_values(&texts);
    let plain = RecordBatch::try_from_iter([("doc_id", Arc::new(ids) as _), ("text", Arc::new(column) as _)]).unwrap();
    ctx.register_batch("plain", plain).unwrap();
    let documents = format!("documents('{}')", corpus.display());
    for case in 0..150 {
        let pattern = *random.pick::<&str>(&PATTERNS);
        let field = |name: &str| format!("parse(text, '{pattern}')['{name}']");
        let condition = random.pick::<&str>(&CONDITIONS);
        let words = condition.split(' ').map(|word| match word.trim_start_matches("CAST(") {
            "u" => field("u"),
            "n" if word.starts_with("CAST(") => format!("CAST({}", field("n")),
            "n" => field("n"),
            _ => word.to_owned(),
        });
        let condition = words.collect::<Vec<_>>().join(" ");
        let condition = match case % 4 {
            0 => condition,
            1 => format!("NOT ({condition})"),
            2 => format!("({condition}) IS NULL"),
            _ => format!("({condition}) OR text LIKE '%bob%'"),
        };
        let from = |table: &str| format!("SELECT doc_id FROM {table} WHERE {condition} ORDER BY doc_id");
        assert_eq!(rows(&ctx, &from(&documents)).await, rows(&ctx, &from("plain")).await, "{condition}");
    }
}
