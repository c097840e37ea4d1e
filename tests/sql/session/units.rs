//! Tests of questions about places and texts that units answer: rows are those of a corpus that is opened whole.

use std::fs;
use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::prelude::{SessionConfig, SessionContext};
use tadoc::build::IngestOptions;
use tadoc::format::SegmentLayout;
use testkit::random::Random;

use super::skipping::counter;
use super::{batches, session_with};
use crate::fixtures;

/// Number of words, of which those with small numbers are frequent.
const NUM_WORDS: usize = 3_000;

fn word(random: &mut Random) -> String {
    let most = [20, 300, NUM_WORDS][random.below(3)];
    format!("w{}", random.below(most))
}

/// Writes documents of random words in segments of several units. One document is cut into several segments.
fn write(path: &Path, seed: u64, layout: SegmentLayout) -> String {
    let mut random = Random(seed);
    let mut text = |doc: usize| {
        let num_words = if doc == 130 { 150_000 } else { [0, 3, 400, 2_000][doc % 4] };
        let words: Vec<String> = (0..num_words).map(|_| word(&mut random)).collect();
        words.join(["\n", " ", ", "][doc % 3])
    };
    let documents: Vec<(String, String)> = (0..300).map(|doc| (format!("{doc}.txt"), text(doc))).collect();
    let borrowed: Vec<(&str, &[u8])> = documents.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
    let options = IngestOptions { block_bytes: 400_000, layout, ..IngestOptions::default() };
    fixtures::write_corpus(path, options, &borrowed);
    path.display().to_string()
}

/// Returns a statement about few documents, most of the time.
fn statement(random: &mut Random) -> String {
    let rare = format!("w{}", 300 + random.below(NUM_WORDS));
    let one = word(random);
    let other = word(random);
    let doc = random.below(300);
    match random.below(17) {
        0 => format!("SELECT * FROM search('@', '{rare}')"),
        1 => format!("SELECT * FROM search('@', '\"{rare} {one}\" OR NEAR({rare} {other}, 3)')"),
        2 => format!("SELECT * FROM kwic('@', '\"{one} {other}\"', width => 3)"),
        3 => format!("SELECT * FROM kwic('@', '{rare} NOT {one}', width => 2) LIMIT 9"),
        4 => format!("SELECT * FROM term_count('@', '\"{one} {rare}\"~4')"),
        5 => format!("SELECT doc_id, round(score, 9) FROM rank('@', '\"{one} {other}\" OR {rare}', top => 5)"),
        6 => format!("SELECT * FROM grep('@', '{rare}[^0-9]', context => 1)"),
        7 => format!("SELECT doc_id, path, text FROM documents('@') WHERE text LIKE '%{rare} %{one}%'"),
        8 => format!("SELECT doc_id, path, bytes, text FROM documents('@') WHERE doc_id IN ({doc}, 7)"),
        9 => format!("SELECT extract_text('@', {}, 3, 40) AS text", doc | 1),
        10 => format!("SELECT * FROM search('@', '{one}') WHERE doc_id BETWEEN {doc} AND {}", doc + 2),
        11 => format!("SELECT word, count FROM collocates('@', '{rare}') ORDER BY word"),
        12 => format!("SELECT doc_id, count(*) FROM grep('@', '{one} {rare}') GROUP BY 1 ORDER BY 1"),
        13 => format!("SELECT * FROM search('@', '{one}') LIMIT {}", 1 + random.below(90)),
        14 => format!("SELECT doc_id, \"match\" FROM kwic('@', 'w1?') LIMIT {}", 1 + random.below(90)),
        15 => format!("SELECT doc_id, text FROM documents('@') LIMIT {}", 1 + random.below(90)),
        _ => format!("SELECT path FROM documents('@') WHERE starts_with(text, '{one}') AND contains(text, '{rare}')"),
    }
}

fn session() -> SessionContext {
    session_with(SessionConfig::new().with_target_partitions(3))
}

/// Returns the rows of `sql`, or `None` without a batch.
async fn rows(context: &SessionContext, sql: &str) -> Option<RecordBatch> {
    let batches = batches(context, sql).await.unwrap();
    let schema = batches.first()?.schema();
    let rows = concat_batches(&schema, &batches).unwrap();
    (rows.num_rows() > 0).then_some(rows)
}

#[tokio::test]
async fn rows_from_units_are_those_of_whole_segments() {
    let dir = tempfile::tempdir().unwrap();
    let few = SegmentLayout::Indexed { max_lists_percent: 5 };
    let mut num_units = 0;
    for (seed, layout) in [(1, SegmentLayout::INDEXED), (2, few)] {
        let indexed = write(&dir.path().join(format!("{seed}.tadoc")), seed, layout);
        let small = write(&dir.path().join(format!("{seed}.small.tadoc")), seed, SegmentLayout::Small);
        let whole = session();
        let mut random = Random(seed);
        // Statements of one session open more and more segments.
        let mut context = session();
        for number in 0..120 {
            if number % 12 == 0 {
                context = session();
            }
            let sql = statement(&mut random);
            let expected = rows(&whole, &sql.replace('@', &small)).await;
            let from_units = sql.replace('@', &indexed);
            assert!(rows(&context, &from_units).await == expected, "{seed}, {number}: {sql}");
            num_units += counter(&session(), &from_units, "units_decoded").await;
        }
    }
    assert!(num_units > 200, "{num_units}");
}

#[tokio::test]
async fn repeated_questions_open_segments() {
    let dir = tempfile::tempdir().unwrap();
    let indexed = write(&dir.path().join("a.tadoc"), 3, SegmentLayout::INDEXED);
    let context = session();
    let sql = |doc: usize| format!("SELECT length(text) FROM documents('{indexed}') WHERE doc_id = {doc}");
    let mut decoded = Vec::new();
    for doc in 0..60 {
        decoded.push(counter(&context, &sql(doc), "units_decoded").await);
    }
    assert_eq!(decoded[3], 1);
    assert_eq!(decoded[59], 0, "{decoded:?}");
}

#[tokio::test]
async fn few_documents_read_a_part_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let indexed = write(&dir.path().join("a.tadoc"), 5, SegmentLayout::INDEXED);
    let small = write(&dir.path().join("b.tadoc"), 5, SegmentLayout::Small);
    let file_len = fs::metadata(&indexed).unwrap().len() as usize;
    for (sql, most_percent) in [
        ("SELECT text FROM documents('@') WHERE doc_id = 7", 10),
        ("SELECT text FROM documents('@') WHERE doc_id IN (3, 250)", 20),
        ("SELECT text FROM extract('@', 7, 3, 40)", 10),
    ] {
        // Each of several partitions may read the same document.
        let one = session_with(SessionConfig::new().with_target_partitions(1));
        let num_read = counter(&one, &sql.replace('@', &indexed), "bytes_read").await;
        assert!(100 * num_read < most_percent * file_len, "{num_read} of {file_len}: {sql}");
        let expected = rows(&session(), &sql.replace('@', &small)).await;
        assert_eq!(rows(&session(), &sql.replace('@', &indexed)).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn first_rows_decode_the_first_documents() {
    let dir = tempfile::tempdir().unwrap();
    let indexed = write(&dir.path().join("a.tadoc"), 4, SegmentLayout::INDEXED);
    let decoded = async |sql: &str| counter(&session(), &sql.replace('@', &indexed), "units_decoded").await;
    assert_eq!(decoded("SELECT text FROM documents('@') LIMIT 2").await, 1);
    // Most documents have the word, so all rows open whole segments.
    assert_eq!(decoded("SELECT * FROM search('@', 'w5')").await, 0);
    let limited = "SELECT * FROM search('@', 'w5') LIMIT 2";
    let first = decoded(limited).await;
    assert!((1..9).contains(&first), "{first}");
    // A word without a list, too.
    let unlisted = write(&dir.path().join("b.tadoc"), 4, SegmentLayout::Indexed { max_lists_percent: 1 });
    let first = counter(&session(), &limited.replace('@', &unlisted), "units_decoded").await;
    assert!((1..9).contains(&first), "{first}");
    let [from_list, from_first] = [&indexed, &unlisted].map(|file| limited.replace('@', file));
    assert_eq!(rows(&session(), &from_first).await, rows(&session(), &from_list).await);
}
