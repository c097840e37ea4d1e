//! Tests of SQL on living corpora. After any commits, every function answers as on a corpus built
//! anew from the texts. Loaded data is kept, and a statement reads one version.

mod few_files;
pub(crate) mod reads;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{Int64Type, SchemaRef};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::optimizer::Analyzer;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use datafusion_tadoc::TadocSessionStateBuilderExt;
use futures::executor::block_on;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use tadoc::build::IngestOptions;
use tadoc::edits::{Edit, EditBatch};
use tadoc::text::TokenizerProfile;
use tadoc_store::{Change, CommitKind, LivingStore, ObjectPrefix, Part, StoreOptions, Version};
use testkit::random::Random;
use url::Url;

use crate::fixtures::living::{commit, create, edit, write_notes, write_part};
use crate::fixtures::{session, write_corpus};

/// Documents by id, with their paths; `None` for a dropped document.
type Texts = Vec<Option<(String, Vec<u8>)>>;

/// Queries for every function, with `@` for the location and `#` for the last argument. Ids become
/// paths.
const QUERIES: &[&str] = &[
    "SELECT path, bytes, words, text, content FROM documents(@#)",
    "SELECT count(*) FROM documents(@#)",
    "SELECT path FROM documents(@#) WHERE text LIKE '%be%' OR bytes = 0",
    "SELECT * FROM word_count(@#)",
    "SELECT * FROM word_sort(@, fold => true#)",
    "SELECT i.word, i.doc_count, d.path FROM (SELECT word, doc_count, unnest(doc_ids) AS doc_id
     FROM inverted_index(@#)) i JOIN documents(@#) d USING (doc_id)",
    "SELECT d.path, t.word, t.count FROM term_vector(@#) t JOIN documents(@#) d USING (doc_id)",
    "SELECT d.path, t.word, t.tf, t.df, t.score FROM tfidf(@#) t JOIN documents(@#) d USING (doc_id)",
    "SELECT d.path, m.word_ids, m.counts FROM doc_term_matrix(@#) m JOIN documents(@#) d USING (doc_id)",
    "SELECT d.path, t.word_index, t.word_id, t.word FROM tokens(@#) t JOIN documents(@#) d USING (doc_id)",
    "SELECT * FROM sequence_count(@, n => 2#)",
    "SELECT d.path, s.sequence, s.count FROM sequence_count(@, n => 2, by_doc => true#) s
     JOIN documents(@#) d USING (doc_id)",
    "SELECT r.sequence, d.path, r.count, r.rank FROM ranked_inverted_index(@, n => 2#) r
     JOIN documents(@#) d USING (doc_id)",
    "SELECT * FROM cooccurrence(@, window => 3#)",
    "SELECT * FROM repeated_phrases(@, min_words => 2#)",
    "SELECT path_a, path_b, similarity FROM near_duplicates(@, threshold => 0.1, n => 1#)",
    "SELECT c.path, d.path, c.docs, c.is_kept FROM near_duplicate_clusters(@, threshold => 0.1, n => 1#) c
     JOIN documents(@#) d ON d.doc_id = c.first_doc_id",
    "SELECT template, count, doc_count, example FROM log_templates(@#)",
    "SELECT d.path, t.template, t.count FROM log_templates(@, by_doc => true#) t
     JOIN documents(@#) d USING (doc_id)",
    "SELECT path, byte_offset, byte_len, num_words, span, copy FROM repeated_spans(@, min_words => 2#)",
    "SELECT path, byte_offset, byte_len, word_index FROM search(@, 'b* \"to be\"'#)",
    "SELECT path, count FROM term_count(@, 'to'#)",
    "SELECT path, \"left\", match, \"right\" FROM kwic(@, 'be', width => 2#)",
    "SELECT path, line_number, byte_offset, line FROM grep(@, 'b.|to'#)",
    "SELECT * FROM corpus_info(@#) WHERE name IN ('documents', 'text_bytes', 'words')",
];

async fn batches(ctx: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    let frame = ctx.sql(sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
    frame.collect().await.unwrap_or_else(|e| panic!("{sql}\n{e}"))
}

async fn table(ctx: &SessionContext, sql: &str) -> String {
    pretty_format_batches(&batches(ctx, sql).await).unwrap().to_string()
}

/// Returns the sorted rows of a query.
async fn rows(ctx: &SessionContext, sql: &str) -> Vec<String> {
    let mut rows: Vec<String> = table(ctx, sql).await.lines().map(str::to_owned).collect();
    rows.sort_unstable();
    rows
}

fn words(random: &mut Random) -> Vec<u8> {
    let words: [&str; 8] = ["to", "be", " ", "or", ", ", "not", "caf\u{e9}", "question "];
    (0..random.below(8)).flat_map(|_| random.pick(&words).bytes()).collect()
}

/// Makes a random commit, and the same change of `texts`.
fn random_commit(store: &LivingStore, random: &mut Random, texts: &mut Texts) {
    let there: Vec<usize> = (0..texts.len()).filter(|&id| texts[id].is_some()).collect();
    match random.below(5) {
        0 => append_file(store, random, texts),
        1 => optimize(store, texts),
        _ if there.is_empty() => append_file(store, random, texts),
        _ => {
            let edits = (0..1 + random.below(4)).filter_map(|_| random_edit(random, texts, &there));
            let edits: Vec<Edit> = edits.collect();
            edit(store, CommitKind::Edit, edits);
        }
    }
}

fn append_file(store: &LivingStore, random: &mut Random, texts: &mut Texts) {
    let first = texts.len();
    let added = (0..1 + random.below(3)).map(|i| Some((format!("p{}", first + i), words(random))));
    texts.extend(added.collect::<Vec<_>>());
    let documents: Vec<(&str, &[u8])> =
        texts[first..].iter().flatten().map(|(path, text)| (&**path, &**text)).collect();
    let part = write_part(store, &documents, None);
    commit(store, &Change::append(CommitKind::Append, &[part]));
}

/// Replaces all parts and edits by one file.
fn optimize(store: &LivingStore, texts: &Texts) {
    if texts.is_empty() {
        return;
    }
    let empty = (String::new(), Vec::new());
    let documents = texts.iter().map(|text| text.as_ref().unwrap_or(&empty));
    let documents: Vec<(&str, &[u8])> = documents.map(|(path, text)| (&**path, &**text)).collect();
    let part = write_part(store, &documents, None).part;
    let dropped = (0u64..).zip(texts).filter(|(_, text)| text.is_none()).map(|(id, _)| id);
    let mut ranges: Vec<std::ops::Range<u64>> = Vec::new();
    for id in dropped {
        match ranges.last_mut() {
            Some(range) if range.end == id => range.end += 1,
            _ => ranges.push(id..id + 1),
        }
    }
    let base = block_on(store.latest()).unwrap();
    commit(store, &Change::optimize(&base, vec![part], ranges));
}

fn random_edit(random: &mut Random, texts: &mut Texts, there: &[usize]) -> Option<Edit> {
    if random.one_in(4) {
        let path = format!("p{}", texts.len());
        let content = words(random);
        texts.push(Some((path.clone(), content.clone())));
        return Some(Edit::AddDocument { path, content });
    }
    let at = *random.pick(there);
    let doc_id = at as u64;
    let (_, text) = texts[at].as_mut()?;
    let offset = random.below(text.len() + 1);
    Some(match random.below(5) {
        0 => {
            texts[at] = None;
            Edit::DropDocument { doc_id }
        }
        1 => {
            *text = words(random);
            Edit::ReplaceDocument { doc_id, content: text.clone() }
        }
        2 => {
            let len = random.below(text.len() - offset + 1);
            text.drain(offset..offset + len);
            Edit::DeleteText { doc_id, offset_bytes: offset as u64, len_bytes: len as u64 }
        }
        3 => {
            let added = words(random);
            text.extend(&added);
            Edit::AppendText { doc_id, text: added }
        }
        _ => {
            let added = words(random);
            text.splice(offset..offset, added.iter().copied());
            Edit::InsertText { doc_id, offset_bytes: offset as u64, text: added }
        }
    })
}

async fn compare(ctx: &SessionContext, living: &str, version: &str, rebuilt: &str) {
    for query in QUERIES {
        let of = |location: &str, version: &str| query.replace('@', &format!("'{location}'")).replace('#', version);
        let expected = of(rebuilt, "");
        let got = of(living, version);
        assert_eq!(rows(ctx, &got).await, rows(ctx, &expected).await, "{got}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_function_answers_as_on_a_corpus_built_anew() {
    for seed in 0..2 {
        let dir = tempfile::tempdir().unwrap();
        let living = dir.path().join("living");
        let store = create(&living);
        let mut random = Random(seed);
        let mut texts = Texts::new();
        let mut by_version = vec![texts.clone()];
        for _ in 0..8 {
            random_commit(&store, &mut random, &mut texts);
            let number = block_on(store.latest()).unwrap().number as usize;
            by_version.resize(number, texts.clone());
        }
        let ctx = session();
        let living = living.display().to_string();
        for (texts, number) in by_version.iter().zip(1..) {
            let rebuilt = dir.path().join(format!("{number}.tadoc"));
            let documents: Vec<(&str, &[u8])> = texts.iter().flatten().map(|(path, text)| (&**path, &**text)).collect();
            write_corpus(&rebuilt, IngestOptions::default(), &documents);
            let rebuilt = rebuilt.display().to_string();
            compare(&ctx, &living, &format!(", version => {number}"), &rebuilt).await;
            if number == by_version.len() {
                compare(&ctx, &living, "", &rebuilt).await;
            }
            let damaged = format!("SELECT * FROM corpus_verify('{living}', version => {number}) WHERE status <> 'ok'");
            assert!(batches(&ctx, &damaged).await.iter().all(|batch| batch.num_rows() == 0));
        }
    }
}

/// Returns the sum of a metric over a plan that ran.
fn metric(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name(name));
    let own = own.map_or(0, |value| value.as_usize());
    own + plan.children().into_iter().map(|child| metric(child, name)).sum::<usize>()
}

/// Returns the bytes read and the versions made by a query.
async fn work(ctx: &SessionContext, sql: &str) -> (usize, usize) {
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    (metric(&plan, "bytes_read"), metric(&plan, "versions_made"))
}

fn notes(dir: &Path) -> (LivingStore, String) {
    let path = dir.join("notes");
    write_notes(&path);
    let folder = tadoc_store::LocalFolder::new(&path);
    let store = block_on(LivingStore::open(folder, StoreOptions::default())).unwrap();
    (store, path.display().to_string())
}

#[tokio::test]
async fn files_are_read_once_and_versions_made_once() {
    let dir = tempfile::tempdir().unwrap();
    let (store, path) = notes(dir.path());
    let ctx = session();
    let count = format!("SELECT * FROM word_count('{path}')");
    let search = format!("SELECT * FROM search('{path}', 'to')");
    let first = work(&ctx, &count).await;
    assert!(first.0 > 0 && first.1 == 1, "{first:?}");
    assert_eq!(work(&ctx, &search).await, (0, 0));

    let part = write_part(&store, &[("f.txt", b"to sleep")], None);
    commit(&store, &Change::append(CommitKind::Append, std::slice::from_ref(&part)));
    let Part::File { len_bytes, .. } = part.part else { panic!("{part:?}") };
    let with_file = work(&ctx, &search).await;
    assert!((1..=len_bytes as usize).contains(&with_file.0) && with_file.1 == 1, "{with_file:?}");

    edit(&store, CommitKind::Delete, vec![Edit::DropDocument { doc_id: 0 }]);
    assert_eq!(work(&ctx, &search).await, (0, 1));
    // The earlier version is still in memory.
    assert_eq!(work(&ctx, &format!("SELECT * FROM word_count('{path}', version => 7)")).await, (0, 0));
}

#[tokio::test]
async fn files_are_skipped_as_long_as_no_text_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    let living = dir.path().join("living");
    let store = create(&living);
    for (path, text) in [("a", "red green"), ("b", "green blue")] {
        let part = write_part(&store, &[(path, text.as_bytes())], None);
        commit(&store, &Change::append(CommitKind::Append, &[part]));
    }
    let search = format!("SELECT * FROM search('{}', 'blue')", living.display());
    let skipped_and_rows = async || {
        let ctx = session();
        let plan = ctx.sql(&search).await.unwrap().create_physical_plan().await.unwrap();
        let rows = collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
        (metric(&plan, "segments_skipped"), rows.iter().map(RecordBatch::num_rows).sum::<usize>())
    };
    assert_eq!(skipped_and_rows().await, (1, 1));
    let text = b" blue".to_vec();
    edit(&store, CommitKind::Edit, vec![Edit::AppendText { doc_id: 0, text }]);
    assert_eq!(skipped_and_rows().await, (0, 2));
}

#[tokio::test]
async fn little_is_read_for_ids_paths_and_few_documents() {
    let dir = tempfile::tempdir().unwrap();
    let (_, path) = notes(dir.path());
    let made = 1;
    let most = usize::MAX;
    for (query, least_bytes, most_bytes, num_made) in [
        ("SELECT doc_id FROM documents('@') WHERE doc_id % 2 = 0", 0, 0, 0),
        ("SELECT path FROM documents('@')", 1, most, 0),
        ("SELECT doc_id FROM documents('@') WHERE path LIKE '_.txt' ORDER BY path", 1, most, 0),
        ("SELECT bytes FROM documents('@') WHERE doc_id = 4", 1, most, 0),
        ("SELECT text FROM documents('@') WHERE path = 'd.txt' AND text <> ''", 1, most, 0),
        ("SELECT d.text FROM documents('@') d JOIN (VALUES (1)) w (id) ON d.doc_id = w.id", 1, most, 0),
        ("SELECT words FROM documents('@') WHERE doc_id = 4", 1, most, made),
        ("SELECT text FROM documents('@')", 1, most, made),
        ("SELECT path FROM documents('@') WHERE bytes > 3", 1, most, made),
    ] {
        let (num_bytes, num_versions) = work(&session(), &query.replace('@', &path)).await;
        assert!((least_bytes..=most_bytes).contains(&num_bytes), "{num_bytes} bytes by {query}");
        assert_eq!(num_versions, num_made, "{query}");
    }
    // Data that is in memory is used.
    let ctx = session();
    work(&ctx, &format!("SELECT * FROM word_count('{path}')")).await;
    let one = format!("SELECT text FROM documents('{path}') WHERE doc_id = 4");
    assert_eq!(work(&ctx, &one).await, (0, 0));
}

/// Paths and lengths of a version without edits are read from its files, and no version is made.
#[tokio::test]
async fn facts_of_unedited_documents_are_those_of_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let living = dir.path().join("living");
    let whole = dir.path().join("whole.tadoc");
    let store = create(&living);
    let text =
        |at: usize| -> String { (0..200 + at).map(|word| format!("{} ", (at * 7919 + word * word) % 509)).collect() };
    let documents: Vec<(String, String)> = (0..12).map(|at| (format!("p{at}"), text(at))).collect();
    let documents: Vec<(&str, &[u8])> = documents.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
    let mut all_bytes = 0;
    for documents in documents.chunks(4) {
        let part = write_part(&store, documents, None);
        let Part::File { len_bytes, .. } = part.part else { panic!("{part:?}") };
        all_bytes += len_bytes as usize;
        commit(&store, &Change::append(CommitKind::Append, &[part]));
    }
    write_corpus(&whole, IngestOptions::default(), &documents);
    let statements = [
        "SELECT doc_id, path, bytes, words FROM documents('@')",
        "SELECT sum(bytes), sum(words) FROM documents('@')",
        "SELECT path, bytes FROM documents('@') WHERE path LIKE '%1%'",
        "SELECT path, words FROM documents('@') WHERE doc_id IN (3, 9)",
        "SELECT path FROM documents('@') WHERE words > 205",
    ];
    for statement in statements {
        let [of_living, of_whole] = [&living, &whole].map(|path| statement.replace('@', &path.display().to_string()));
        let (num_bytes, num_versions) = work(&session(), &of_living).await;
        assert!((1..all_bytes / 4).contains(&num_bytes), "{num_bytes} bytes by {statement}");
        assert_eq!(num_versions, 0, "{statement}");
        assert_eq!(rows(&session(), &of_living).await, rows(&session(), &of_whole).await);
    }
    // Of edited texts, only the assembled version knows the words.
    let insert = Edit::InsertText { doc_id: 3, offset_bytes: 0, text: b"one more ".to_vec() };
    edit(&store, CommitKind::Edit, vec![insert]);
    let sum = format!("SELECT sum(words) FROM documents('{}')", living.display());
    assert_eq!(work(&session(), &sum).await.1, 1);
}

/// Documents that are read alone are the same as in a version made of all edits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_documents_are_as_among_all() {
    for seed in 10..14 {
        let dir = tempfile::tempdir().unwrap();
        let living = dir.path().join("living");
        let store = create(&living);
        let mut random = Random(seed);
        let mut texts = Texts::new();
        (0..12).for_each(|_| random_commit(&store, &mut random, &mut texts));
        let place = living.display().to_string();
        let made = session();
        for number in [6, block_on(store.latest()).unwrap().number] {
            let version = format!("'{place}', version => {number}");
            batches(&made, &format!("SELECT count(*) FROM word_count({version})")).await;
            for query in [
                "SELECT doc_id, path FROM documents(@)",
                "SELECT doc_id, path, bytes, text, content FROM documents(@) WHERE doc_id < 3",
                "SELECT doc_id, path, bytes, text, content FROM documents(@) WHERE doc_id >= 3",
                "SELECT * EXCEPT (words) FROM documents(@) WHERE doc_id % 2 = 1 AND text LIKE '%o%'",
                "SELECT doc_id, text FROM documents(@) WHERE path IN ('p1', 'p4', 'p7')",
                "SELECT doc_id, bytes FROM documents(@) WHERE path > 'p4'",
            ] {
                let query = query.replace('@', &version);
                let plan = session().sql(&query).await.unwrap().create_physical_plan().await.unwrap();
                let few = collect(Arc::clone(&plan), session().task_ctx()).await.unwrap();
                assert_eq!(metric(&plan, "versions_made"), 0, "{query}");
                let mut few: Vec<String> =
                    pretty_format_batches(&few).unwrap().to_string().lines().map(str::to_owned).collect();
                few.sort_unstable();
                assert_eq!(few, rows(&made, &query).await, "{query}");
            }
        }
    }
}

#[tokio::test]
async fn a_scan_reads_the_version_it_was_planned_for() {
    let dir = tempfile::tempdir().unwrap();
    let (store, path) = notes(dir.path());
    let ctx = session();
    let sql = format!("SELECT doc_id FROM documents('{path}') WHERE text LIKE '%to%'");
    let plan = ctx.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
    edit(&store, CommitKind::Delete, vec![Edit::DropDocument { doc_id: 0 }]);
    let num_rows = |batches: &[RecordBatch]| batches.iter().map(|b| b.num_rows()).sum::<usize>();
    assert_eq!(num_rows(&collect(plan, ctx.task_ctx()).await.unwrap()), 3);
    assert_eq!(num_rows(&batches(&ctx, &sql).await), 2);
}

/// A table of one row. Each scan of it first appends " w" to document 0 of a living corpus.
#[derive(Debug)]
struct Writer {
    store: LivingStore,
    row: MemTable,
}

impl Writer {
    fn new(store: &LivingStore) -> Self {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let batch = RecordBatch::try_from_iter([("one", column)]).unwrap();
        let row = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
        Self { store: store.clone(), row }
    }
}

#[async_trait]
impl TableProvider for Writer {
    fn schema(&self) -> SchemaRef {
        self.row.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let edits = vec![Edit::AppendText { doc_id: 0, text: b" w".to_vec() }];
        let batch = EditBatch { edits, ..EditBatch::default() };
        let base = self.store.latest().await.unwrap();
        self.store.commit(&base, &Change::edit(CommitKind::Edit, &batch)).await.unwrap();
        self.row.scan(session, projection, filters, limit).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_a_statement_reads_is_of_one_version() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("words");
    let store = create(&place);
    // Version n has n - 1 edits, and n - 1 words in its document.
    let first = Edit::AddDocument { path: "d".into(), content: b"w".to_vec() };
    edit(&store, CommitKind::Insert, vec![first]);
    // Scans are planned one after the other.
    let config = SessionConfig::new().set_usize("datafusion.execution.planning_concurrency", 1);
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    let ctx = SessionContext::new_with_state(builder.with_tadoc().build());
    ctx.register_table("writer", Arc::new(Writer::new(&store))).unwrap();
    let place = place.display().to_string();
    batches(&ctx, &format!("CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{place}'")).await;
    batches(&ctx, "CREATE VIEW v AS SELECT words AS n FROM d").await;
    let sources = [
        "SELECT words AS n FROM d",
        "SELECT words AS n FROM documents('@')",
        "SELECT count AS n FROM term_count('@', 'w')",
        "SELECT max(version) - 1 AS n FROM \"d$history\"",
        "SELECT count(*) AS n FROM \"d$edits\"",
        "SELECT n FROM v",
        "SELECT count_word('@', doc_id, 'w') AS n FROM d",
        "SELECT count_word('d', one - 1, 'w') AS n FROM writer",
        "SELECT words AS n FROM d WHERE words = (SELECT max(words) FROM d, writer)",
        "SELECT words AS n FROM d WHERE EXISTS (SELECT 1 FROM term_count('@', 'w') t WHERE t.count \
         = d.words)",
    ];
    let tables: Vec<String> = (0..).zip(sources).map(|(idx, sql)| format!("writer w{idx}, ({sql}) t{idx}")).collect();
    let columns: Vec<String> = (0..sources.len()).map(|idx| format!("t{idx}.n")).collect();
    let columns = columns.join(", ");
    let tables = tables.join(", ");
    let sql = format!("SELECT {columns} FROM {tables}, writer").replace('@', &place);
    let frame = ctx.sql(&sql).await.unwrap();
    let mut last_read = 0;
    // A second run of the statement reads a newer version.
    for _ in 0..2 {
        let before = store.latest().await.unwrap().number;
        let found = numbers(frame.clone()).await;
        let after = store.latest().await.unwrap().number;
        assert_eq!(found.len(), sources.len());
        assert!(found.iter().all(|n| *n == found[0]), "versions {before} to {after}: {found:?}");
        let read = found[0] as u64 + 1;
        assert!((before..after).contains(&read) && read > last_read, "{before} {read} {after}");
        last_read = read;
    }
    // Without the analyzer rule, some scans read commits that came in between.
    let state = SessionStateBuilder::new_from_existing(ctx.state());
    let state = state.with_analyzer_rules(Analyzer::new().rules).build();
    let found = numbers(SessionContext::new_with_state(state).sql(&sql).await.unwrap()).await;
    assert!(found.is_empty() || found.iter().any(|n| *n != found[0]), "{found:?}");
}

/// Returns the only row of `frame`, or nothing.
async fn numbers(frame: DataFrame) -> Vec<i64> {
    let batches = frame.collect().await.unwrap();
    let rows: Vec<_> = batches.iter().filter(|batch| batch.num_rows() > 0).collect();
    assert!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>() < 2, "{batches:?}");
    let number = |column: &ArrayRef| column.as_primitive::<Int64Type>().value(0);
    rows.iter().flat_map(|batch| batch.columns()).map(number).collect()
}

#[tokio::test]
async fn memory_of_versions_is_reserved_and_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let (store, path) = notes(dir.path());
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(64 << 20, 1.0).build_arc().unwrap();
    let builder = SessionStateBuilder::new().with_runtime_env(Arc::clone(&runtime));
    let ctx = SessionContext::new_with_state(builder.with_default_features().with_tadoc().build());
    let text = "a document of its own and another ".repeat(2_000).into_bytes();
    for i in 0..30 {
        let content = text.clone();
        edit(&store, CommitKind::Insert, vec![Edit::AddDocument { path: format!("n{i}"), content }]);
        batches(&ctx, &format!("SELECT count(*) FROM word_count('{path}')")).await;
    }
    let reserved = runtime.memory_pool.reserved();
    assert!(reserved > text.len() && reserved <= 64 << 20, "{reserved}");
    drop(ctx);
    assert_eq!(runtime.memory_pool.reserved(), 0);
}

#[tokio::test]
async fn prefixes_of_object_stores_are_living_corpora() {
    let bucket: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let ctx = session();
    ctx.register_object_store(&Url::parse("memory://bucket").unwrap(), Arc::clone(&bucket));
    let prefix = ObjectPrefix::new(bucket, "corpora/notes".into());
    let made = LivingStore::create(prefix, TokenizerProfile::default(), StoreOptions::default());
    let store = made.await.unwrap();
    let part = write_part(&store, &[("a", b"to be"), ("b", b"not to be")], Some(&["ann", "bob"]));
    commit(&store, &Change::append(CommitKind::Append, &[part]));
    edit(&store, CommitKind::Edit, vec![Edit::AppendText { doc_id: 0, text: b" or".to_vec() }]);
    let create = "CREATE EXTERNAL TABLE notes STORED AS TADOC LOCATION 'memory://bucket/corpora/notes/'";
    batches(&ctx, create).await;
    let expected = "\
+------+--------+----------+
| path | author | text     |
+------+--------+----------+
| a    | ann    | to be or |
+------+--------+----------+";
    assert_eq!(table(&ctx, "SELECT path, author, text FROM notes WHERE doc_id = 0").await, expected);
    let sql = "SELECT count(*) AS n FROM word_count('memory://bucket/corpora/notes', version => 2)";
    assert!(table(&ctx, sql).await.contains("| 3 |"));
    let error = ctx.sql("SELECT * FROM documents('memory://bucket/corpora')").await.unwrap();
    let error = error.collect().await.unwrap_err().to_string();
    assert!(error.contains("memory://bucket/corpora/notes is a living corpus"), "{error}");
}

#[tokio::test]
async fn another_corpus_at_the_same_place_is_another_corpus() {
    let dir = tempfile::tempdir().unwrap();
    let (_, path) = notes(dir.path());
    let ctx = session();
    let sql = format!("SELECT count(*) AS n FROM documents('{path}')");
    assert!(table(&ctx, &sql).await.contains("| 4 |"));
    std::fs::remove_dir_all(&path).unwrap();
    let error = ctx.sql(&sql).await.unwrap().collect().await.unwrap_err().to_string();
    assert!(error.contains("there is no file and no folder"), "{error}");
    let store = create(Path::new(&path));
    let part = write_part(&store, &[("only", b"one")], None);
    commit(&store, &Change::append(CommitKind::Append, &[part]));
    assert!(table(&ctx, &sql).await.contains("| 1 |"));
    let versions: Vec<Version> = store.history().await.unwrap();
    assert_eq!(versions.len(), 2);
}

#[tokio::test]
async fn a_file_that_is_gone_is_told_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let (_, path) = notes(dir.path());
    std::fs::remove_dir_all(Path::new(&path).join("segments")).unwrap();
    let sql = format!("SELECT * FROM word_count('{path}')");
    let error = session().sql(&sql).await.unwrap().collect().await.unwrap_err().to_string();
    assert!(error.contains("there is no file") && error.contains("a clean-up took it"), "{error}");
}
