//! Tests of calls about a part of a corpus (`where => …`) and of samples: the rows of a corpus that has only these
//! documents, and of all lines, are the oracle.

use std::collections::BTreeSet;

use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::{SessionConfig, SessionContext};
use tempfile::TempDir;
use testkit::random::Random;

use super::{batches, session_with, table};

/// Calls about a part. `@` is the corpus, `#` another corpus.
const CALLS: [&str; 32] = [
    "documents(@)",
    "word_count(@)",
    "word_count(@, fold => 'case,accents')",
    "word_sort(@, fold => true)",
    "inverted_index(@)",
    "term_vector(@)",
    "term_vector(@, top => 3, fold => true)",
    "tfidf(@)",
    "tfidf(@, top => 2)",
    "doc_term_matrix(@)",
    "tokens(@)",
    "sequence_count(@, n => 1)",
    "sequence_count(@, n => 2)",
    "sequence_count(@, n => 2, by_doc => true)",
    "ranked_inverted_index(@, n => 2)",
    "cooccurrence(@, window => 3)",
    "repeated_phrases(@, min_words => 3)",
    "near_duplicates(@, threshold => 0.05, n => 2)",
    "near_duplicate_clusters(@, threshold => 0.05, n => 2)",
    "log_templates(@)",
    "log_templates(@, by_doc => true)",
    "repeated_spans(@, min_words => 3)",
    "overlap(@, '#', n => 2)",
    "search(@, '\"the s*\"')",
    "search(@, 'king OR sea')",
    "term_count(@, 'king AND sea')",
    "kwic(@, 'of', width => 2)",
    "rank(@, 'king OR storm', top => 100)",
    "grep(@, '(?i)the [a-s]', context => 1)",
    "collocates(@, 'of')",
    "dispersion(@, 'king')",
    "keyness(@, '#')",
];

fn session() -> SessionContext {
    session_with(SessionConfig::new().with_target_partitions(3))
}

/// Returns lines of few words, so that phrases repeat.
fn random_text(random: &mut Random) -> String {
    let words = ["the", "sea", "s", "of", "a", "king", "storm", "Théorie", "_sea_", "2026"];
    let num_lines = random.below(9);
    let line = |random: &mut Random| {
        let words: Vec<&str> = (0..8).map(|_| *random.pick(&words)).collect();
        format!("the s {} of\n", words.join(" "))
    };
    (0..num_lines).map(|_| line(random)).collect()
}

/// Returns a statement that selects `num_docs` documents with the columns `author` and `year`.
fn random_documents(random: &mut Random, num_docs: usize) -> String {
    let row = |number: usize, random: &mut Random| {
        let author = *random.pick(&["'Balzac'", "'Sand'", "NULL"]);
        let year = 1800 + random.below(60);
        format!("('{}.txt', '{}', {author}, {year})", number % 7, random_text(random))
    };
    let rows: Vec<String> = (0..num_docs).map(|number| row(number, random)).collect();
    format!("SELECT * FROM (VALUES {}) AS t(path, text, author, year)", rows.join(", "))
}

/// Returns all rows of a statement as texts, sorted. Ids of documents, and lists of them, become those in `ids`.
async fn rows(ctx: &SessionContext, sql: &str, ids: Option<&[u64]>) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches(ctx, sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}")) {
        let schema = batch.schema();
        let columns: Vec<ArrayFormatter<'_>> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let cell = |(column, cells): (usize, &ArrayFormatter<'_>)| {
                let text = cells.value(row).to_string();
                let has_ids = schema.field(column).name().contains("doc_id");
                match ids {
                    Some(ids) if has_ids => renumbered(&text, ids),
                    _ => text,
                }
            };
            let cells: Vec<String> = columns.iter().enumerate().map(cell).collect();
            rows.push(cells.join("|"));
        }
    }
    rows.sort();
    rows
}

/// Returns `text` with the document id that stands in `ids` in place of each number.
fn renumbered(text: &str, ids: &[u64]) -> String {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut all = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_digit) {
        let end = rest[start..].find(|c| !is_digit(c)).map_or(rest.len(), |len| start + len);
        all += &rest[..start];
        all += &ids[rest[start..end].parse::<usize>().unwrap()].to_string();
        rest = &rest[end..];
    }
    all + rest
}

async fn ids(ctx: &SessionContext, sql: &str) -> Vec<u64> {
    let mut ids: Vec<u64> = rows(ctx, sql, None).await.iter().map(|id| id.parse().unwrap()).collect();
    ids.sort_unstable();
    ids
}

/// Compares all calls about the documents of `corpus` that meet each condition with those about a corpus that has only
/// these. Returns the number of documents that met the conditions.
async fn compare(ctx: &SessionContext, folder: &TempDir, corpus: &str, other: &str, conditions: &[&str]) -> Vec<usize> {
    let mut kept = Vec::new();
    for (number, condition) in conditions.iter().enumerate() {
        let ids = ids(ctx, &format!("SELECT doc_id FROM '{corpus}' WHERE {condition}")).await;
        let part = folder.path().join(format!("part{number}.tadoc")).display().to_string();
        let copy = format!(
            "COPY (SELECT path, text, author, year FROM '{corpus}' WHERE {condition} ORDER BY doc_id) TO '{part}' \
             STORED AS TADOC OPTIONS ('tadoc.allow_empty' 'true', 'tadoc.overwrite' 'true')"
        );
        batches(ctx, &copy).await.unwrap();
        for call in CALLS {
            let call = call.replace('#', other);
            let alone = call.replace('@', &format!("'{part}'"));
            let narrowed = call.replace('@', &format!("'{corpus}'"));
            let narrowed = format!("{}, where => $${condition}$$)", narrowed.strip_suffix(')').unwrap());
            let expected = rows(ctx, &format!("SELECT * FROM {alone}"), Some(&ids)).await;
            let got = rows(ctx, &format!("SELECT * FROM {narrowed}"), None).await;
            assert_eq!(got, expected, "{narrowed}");
        }
        kept.push(ids.len());
    }
    kept
}

const CONDITIONS: [&str; 8] = [
    "author = 'Balzac' AND year < 1830",
    "author IS NULL OR year BETWEEN 1810 AND 1820",
    "path IN ('1.txt', '2.txt')",
    "text LIKE '%king%' AND words > 20",
    "doc_id % 3 = 1",
    "year > 9999",
    "true",
    "lower(author) = 'sand'",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_of_a_file_has_the_answers_of_a_corpus_of_its_own() {
    let folder = TempDir::new().unwrap();
    let ctx = session();
    let [corpus, other] =
        ["whole", "other"].map(|name| folder.path().join(format!("{name}.tadoc")).display().to_string());
    let mut random = Random(9);
    for (path, num_docs) in [(&corpus, 60), (&other, 5)] {
        let documents = random_documents(&mut random, num_docs);
        let copy = format!("COPY ({documents}) TO '{path}' STORED AS TADOC OPTIONS ('tadoc.block_bytes' '2KiB')");
        batches(&ctx, &copy).await.unwrap();
    }
    let kept = compare(&ctx, &folder, &corpus, &other, &CONDITIONS).await;
    assert_eq!((kept[5], kept[6]), (0, 60), "{kept:?}");
    assert!(kept.iter().filter(|&&num| num > 3 && num < 50).count() >= 5, "{kept:?}");
}

/// Texts and columns of the same documents were changed, added and deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_of_a_living_corpus_has_the_answers_of_a_corpus_of_its_own() {
    let folder = TempDir::new().unwrap();
    let ctx = session();
    let mut random = Random(10);
    let other = folder.path().join("other.tadoc").display().to_string();
    let documents = random_documents(&mut random, 5);
    batches(&ctx, &format!("COPY ({documents}) TO '{other}' STORED AS TADOC")).await.unwrap();
    let living = format!("{}/living/", folder.path().display());
    let create = format!(
        "CREATE EXTERNAL TABLE d (author TEXT, year BIGINT) STORED AS TADOC LOCATION '{living}' \
         OPTIONS ('tadoc.create' 'true')"
    );
    batches(&ctx, &create).await.unwrap();
    for statement in [
        format!("INSERT INTO d (path, text, author, year) {}", random_documents(&mut random, 30)),
        "DELETE FROM d WHERE doc_id IN (3, 4)".to_owned(),
        format!("INSERT INTO d (path, text, author, year) {}", random_documents(&mut random, 12)),
        "UPDATE d SET author = 'Balzac', text = 'the s of a king in the storm of the sea' WHERE doc_id IN (2, 8, 33)"
            .to_owned(),
        "DELETE FROM d WHERE doc_id = 35".to_owned(),
    ] {
        batches(&ctx, &statement).await.unwrap();
    }
    let kept = compare(&ctx, &folder, &living, &other, &CONDITIONS).await;
    assert_eq!((kept[5], kept[6]), (0, 39), "{kept:?}");
    // The part is that of the latest version.
    let count = format!("SELECT * FROM term_count('{living}', 'balloon', where => 'year IS NULL')");
    assert_eq!(rows(&ctx, &count, None).await.len(), 0);
    batches(&ctx, "INSERT INTO d (path, text) VALUES ('new', 'a balloon')").await.unwrap();
    assert_eq!(rows(&ctx, &count, None).await, ["42|new|1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_parts_of_a_corpus_are_key_against_each_other() {
    let folder = TempDir::new().unwrap();
    let ctx = session();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let corpus = path("novels.tadoc");
    let documents = random_documents(&mut Random(11), 40);
    batches(&ctx, &format!("COPY ({documents}) TO '{corpus}' STORED AS TADOC")).await.unwrap();
    for (name, condition) in [("early.tadoc", "year < 1830"), ("late.tadoc", "year >= 1830")] {
        let part = path(name);
        let copy = format!("COPY (SELECT path, text FROM '{corpus}' WHERE {condition}) TO '{part}' STORED AS TADOC");
        batches(&ctx, &copy).await.unwrap();
    }
    let parts = format!(
        "SELECT * FROM keyness('{corpus}', '{corpus}', fold => true, where => \"year < 1830\", \
         reference_where => 'year >= 1830')"
    );
    let files = format!("SELECT * FROM keyness('{}', '{}', fold => true)", path("early.tadoc"), path("late.tadoc"));
    assert_eq!(rows(&ctx, &parts, None).await, rows(&ctx, &files, None).await);
    // Two calls about the same corpus in one statement are two calls.
    let both = format!(
        "SELECT (SELECT count FROM dispersion('{corpus}', 'king', where => 'year < 1830')) + \
         (SELECT count FROM dispersion('{corpus}', 'king', where => 'year >= 1830')) - \
         (SELECT count FROM dispersion('{corpus}', 'king')) AS rest"
    );
    assert_eq!(rows(&ctx, &both, None).await, ["0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_that_are_none_say_so() {
    let folder = TempDir::new().unwrap();
    let ctx = session();
    let corpus = folder.path().join("c.tadoc").display().to_string();
    let documents = random_documents(&mut Random(12), 6);
    batches(&ctx, &format!("COPY ({documents}) TO '{corpus}' STORED AS TADOC")).await.unwrap();
    let deep = vec!["year = 1"; 3000].join(" OR ");
    for (condition, fault) in [
        ("autor = 'Sand'", "No field named autor"),
        ("year <", "where: year <"),
        ("year < 1850)", "where: year < 1850)"),
        ("year", "non-boolean predicate"),
        ("random() < 0.5", "the same value each time"),
        ("year IN (SELECT 1)", "without queries"),
        ("count(*) > 1", "without queries and aggregates"),
        ("no_function(year)", "no_function"),
        (deep.as_str(), "the limit is 2000"),
        ("", "got '', expected text that is not empty"),
    ] {
        let sql = format!("SELECT * FROM word_count('{corpus}', where => $${condition}$$)");
        let error = batches(&ctx, &sql).await.unwrap_err().to_string();
        assert!(error.contains(fault), "{condition}: {error}");
    }
    // A text that is computed is measured, too.
    let computed = format!("SELECT * FROM word_count('{corpus}', where => repeat('year = 1 OR ', 3000) || 'true')");
    let error = batches(&ctx, &computed).await.unwrap_err().to_string();
    assert!(error.contains("the limit is 2000"), "{error}");
    let named = format!("SELECT * FROM word_count('{corpus}', where => year)");
    let error = batches(&ctx, &named).await.unwrap_err().to_string();
    assert!(error.contains("where: got column year, expected a condition in quotes"), "{error}");
    let plan =
        table(&ctx, &format!("EXPLAIN SELECT * FROM word_count('{corpus}', where => \"author = 'Sand'\")")).await;
    assert!(plan.contains("where=author = 'Sand', documents="), "{plan}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sample_is_some_of_all_lines_and_the_same_each_time() {
    let folder = TempDir::new().unwrap();
    let documents = random_documents(&mut Random(13), 80);
    let mut of_blocks = Vec::new();
    for block in ["1KiB", "1MiB"] {
        let corpus = folder.path().join(format!("{block}.tadoc")).display().to_string();
        let options = format!("OPTIONS ('tadoc.block_bytes' '{block}')");
        batches(&session(), &format!("COPY ({documents}) TO '{corpus}' STORED AS TADOC {options}")).await.unwrap();
        for partitions in [1, 4] {
            let ctx = session_with(SessionConfig::new().with_target_partitions(partitions));
            let lines = async |arguments: &str, rest: &str| {
                rows(&ctx, &format!("SELECT * FROM kwic('{corpus}', 'king'{arguments}) {rest}"), None).await
            };
            let all = lines("", "").await;
            assert!(all.len() > 100, "{}", all.len());
            let mut last: BTreeSet<String> = BTreeSet::new();
            for num in [0, 1, 5, 50, all.len(), all.len() + 9] {
                let sample = lines(&format!(", sample => {num}"), "").await;
                assert_eq!(sample.len(), num.min(all.len()));
                let sample: BTreeSet<String> = sample.into_iter().collect();
                assert!(last.is_subset(&sample) && sample.iter().all(|line| all.contains(line)));
                last = sample;
            }
            let seeds = [0, 1, 2].map(|seed| format!(", sample => 20, seed => {seed}"));
            let samples = [lines(&seeds[0], "").await, lines(&seeds[1], "").await, lines(&seeds[2], "").await];
            assert!(samples[0] != samples[1] && samples[1] != samples[2]);
            // A limit and a filter choose among the lines of the sample.
            let few = lines(&seeds[1], "LIMIT 3").await;
            assert!(few.len() == 3 && few.iter().all(|line| samples[1].contains(line)));
            let filtered = lines(&seeds[1], "WHERE doc_id < 40").await;
            let expected: Vec<String> = samples[1]
                .iter()
                .filter(|line| line.split('|').next().unwrap().parse::<u64>().unwrap() < 40)
                .cloned()
                .collect();
            assert_eq!(filtered, expected);
            of_blocks.push(samples);
        }
    }
    assert!(of_blocks.windows(2).all(|pair| pair[0] == pair[1]));
}
