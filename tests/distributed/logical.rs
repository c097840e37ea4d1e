//! Logical plans that are encoded, decoded in another session, and give the same rows; and damaged and
//! forged tables: a typed error or a right answer, never a panic.

use std::fs;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc_distributed::proto::bytes::{
    logical_plan_from_bytes_with_extension_codec, logical_plan_to_bytes_with_extension_codec,
};
use datafusion_tadoc_distributed::proto::logical_plan::LogicalExtensionCodec;
use datafusion_tadoc_distributed::{EngineHome, TadocLogicalCodec, TravelError, is_message, resolve_tables};
use proptest::prelude::*;
use testkit::plans::CALLS;
use tokio::runtime::Runtime;

use super::fixtures::{Scene, arrival, rows, session, sorted};

/// Bytes before the body of a message: magic, version and checksum.
const HEAD_BYTES: usize = 12;
const CHECKSUM_AT: usize = 8;

/// Returns a session in which an engine plans statements of other machines.
fn planning() -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(3);
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    let home = EngineHome::new(Arc::<RuntimeEnv>::default());
    SessionContext::new_with_state(home.planning(builder).build())
}

/// Returns the plan of `sql` as it leaves.
async fn departs(from: &SessionContext, sql: &str) -> Result<Vec<u8>> {
    let plan = from.sql(sql).await?.into_optimized_plan()?;
    let plan = resolve_tables(plan, &from.state()).await?;
    Ok(logical_plan_to_bytes_with_extension_codec(&plan, &TadocLogicalCodec)?.to_vec())
}

/// Returns the rows of a plan that arrived.
async fn rows_there(to: &SessionContext, bytes: &[u8]) -> Result<Vec<String>> {
    let context = to.task_ctx();
    let plan = logical_plan_from_bytes_with_extension_codec(bytes, &context, &TadocLogicalCodec)?;
    let batches = to.execute_logical_plan(plan).await?.collect().await?;
    let table = datafusion::arrow::util::pretty::pretty_format_batches(&batches)?.to_string();
    Ok(table.lines().filter(|line| !line.starts_with('+')).map(str::to_owned).collect())
}

async fn arrives(from: &SessionContext, to: &[SessionContext], sql: &str) {
    let expected = sorted(rows(from, sql).await.unwrap());
    let bytes = departs(from, sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    for to in to {
        let got = rows_there(to, &bytes).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
        assert_eq!(sorted(got), expected, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_every_function_travel() {
    let scene = Scene::new().await;
    let from = session(2);
    let to = [arrival(), planning()];
    for call in CALLS {
        let sql = format!("SELECT * FROM {}", scene.call(call));
        arrives(&from, &to, &sql).await;
        rows(&from, &format!("EXPLAIN {sql}")).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_that_plan_elsewhere_have_the_stages_of_workers() {
    let scene = Scene::new().await;
    let from = session(2);
    rows(&from, "SET tadoc.divide = 'always'").await.unwrap();
    let to = planning();
    for (call, stage) in [
        ("word_count(@)", "TadocMergedRowsExec"),
        ("sequence_count(@, 3)", "TadocMergedRowsExec"),
        ("cooccurrence(@, 4)", "TadocMergedRowsExec"),
        ("inverted_index(@)", "TadocMergedRowsExec"),
        ("ranked_inverted_index(@, 5)", "TadocMergedRowsExec"),
        ("tfidf(@)", "TadocWordNumbersExec"),
        ("documents(@)", "TadocRunsExec"),
    ] {
        let sql = format!("SELECT * FROM {}", scene.call(call));
        let bytes = departs(&from, &sql).await.unwrap();
        let context = to.task_ctx();
        let plan = logical_plan_from_bytes_with_extension_codec(&bytes, &context, &TadocLogicalCodec).unwrap();
        let plan = to.state().create_physical_plan(&plan).await.unwrap();
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        assert!(shown.contains(stage) && shown.contains("TadocRunsExec"), "{shown}");
        // Rows are added up as numbers, or stay where they are.
        assert!(!shown.contains("AggregateExec"), "{shown}");
        arrives(&from, std::slice::from_ref(&to), &sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_joins_and_names_travel() {
    let scene = Scene::new().await;
    let from = session(2);
    let to = [arrival(), planning()];
    let folder = scene.dir.path().join("living").display().to_string();
    let create = format!("CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{folder}'");
    rows(&from, &create).await.unwrap();
    for sql in [
        "SELECT path, words FROM documents(@) WHERE doc_id BETWEEN 3 AND 7 AND bytes > 100",
        "SELECT path FROM documents(@) WHERE text LIKE '%dynamic%' AND text NOT LIKE '%fold%'",
        "SELECT count(*), sum(byte_offset) FROM search(@, 'scan') WHERE doc_id > 4",
        "SELECT w.word, d.path FROM word_count(@) w JOIN inverted_index(@) i ON w.word = i.word \
         JOIN documents(@) d ON d.doc_id = i.doc_ids[1] WHERE w.count > 40",
        "SELECT path, count FROM term_count(@, 'scan') ORDER BY count DESC, path LIMIT 3",
        "SELECT word FROM word_count(@) WHERE word NOT IN (SELECT word FROM word_count(#)) \
         AND count > 30",
        "SELECT unnest(tokenize('red and green', 'uax29')) AS token, path FROM d",
        "SELECT path, text FROM d WHERE path = 'b'",
        "SELECT * FROM word_count('d')",
        "SELECT * FROM (VALUES (1), (2)) AS t(n) JOIN documents(#) ON n = doc_id",
    ] {
        arrives(&from, &to, &scene.call(sql)).await;
    }
}

#[tokio::test]
async fn user_columns_settings_and_synonyms_travel() {
    let scene = Scene::new().await;
    let from = session(2);
    let to = [arrival(), planning()];
    let file = scene.dir.path().join("with_columns.tadoc").display().to_string();
    for statement in [
        format!(
            "COPY (SELECT * FROM (VALUES ('a', repeat('one two ', 3000), 1), \
             ('b', repeat('two three ', 3000), 2), ('c', repeat('four ', 6000), 3)) \
             AS t(path, text, size)) TO '{file}' STORED AS TADOC OPTIONS ('tadoc.block_bytes' '8192')"
        ),
        format!("CREATE EXTERNAL TABLE sized STORED AS TADOC LOCATION '{file}'"),
        "CREATE TABLE alike AS VALUES ('scan', 'file'), ('files', 'file')".to_owned(),
    ] {
        rows(&from, &statement).await.unwrap();
    }
    for sql in [
        "SELECT doc_id, path, size FROM sized WHERE size > 1",
        "SELECT doc_id, size FROM documents('sized')",
        "SELECT path, count FROM term_count(@, 'file', fold => 'case,synonyms:alike')",
        "SELECT * FROM keyness(@, #, fold => 'case,synonyms:alike') WHERE word = 'file'",
    ] {
        arrives(&from, &to, &scene.call(sql)).await;
    }
    // The limit is that of the session in which the statement was made.
    rows(&from, "SET tadoc.max_hits = '2'").await.unwrap();
    let bytes = departs(&from, &scene.call("SELECT * FROM search(@, 'scan')")).await.unwrap();
    let error = rows_there(&to[0], &bytes).await.unwrap_err().to_string();
    assert!(error.contains("max_hits"), "{error}");
}

#[tokio::test]
async fn files_of_columns_travel() {
    let scene = Scene::new().await;
    let from = session(2);
    let to = [arrival(), planning()];
    scene.columns(&from).await;
    let folder = scene.dir.path().join("parts");
    fs::create_dir(&folder).unwrap();
    for (name, from_word) in [("one.parquet", "a"), ("two.parquet", "m"), ("other.data", "z")] {
        let copy = format!(
            "COPY (SELECT word, count FROM word_count(@) WHERE word > '{from_word}') \
             TO '{}' STORED AS PARQUET",
            folder.join(name).display()
        );
        rows(&from, &scene.call(&copy)).await.unwrap();
    }
    let create = format!("CREATE EXTERNAL TABLE parts STORED AS PARQUET LOCATION '{}/*.parquet'", folder.display());
    rows(&from, &create).await.unwrap();
    let json = folder.join("json");
    fs::create_dir(&json).unwrap();
    fs::write(json.join("n.json"), "{\"n\": 18446744073709551615, \"x\": 0.5}\n{\"n\": 1, \"x\": 7}\n").unwrap();
    for create in ["numbers STORED AS JSON LOCATION '@/*.json'", "pairs (n DOUBLE) STORED AS JSON LOCATION '@/n.json'"]
    {
        let create = format!("CREATE EXTERNAL TABLE {create}").replace('@', &json.display().to_string());
        rows(&from, &create).await.unwrap();
    }
    for sql in [
        "SELECT * FROM columns",
        "SELECT * FROM numbers",
        "SELECT sum(n) FROM pairs",
        "SELECT doc_id, upper(text) FROM columns WHERE text LIKE '%filter%' OR text LIKE 'exec%'",
        "SELECT count(*) FROM columns WHERE doc_id > 3 AND path <> 'mod.rs'",
        "SELECT count(*), sum(count) FROM parts",
    ] {
        arrives(&from, &to, sql).await;
    }
}

#[tokio::test]
async fn a_version_is_fixed_when_the_statement_leaves() {
    let scene = Scene::new().await;
    let from = session(2);
    let to = planning();
    let sql = scene.call("SELECT path FROM documents(#)");
    let expected = rows(&from, &sql).await.unwrap();
    let bytes = departs(&from, &sql).await.unwrap();
    let living = scene.dir.path().join("living");
    for statement in [
        format!("CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{}'", living.display()),
        "INSERT INTO d (path, text) VALUES ('late', 'red')".to_owned(),
    ] {
        rows(&from, &statement).await.unwrap();
    }
    assert_ne!(rows(&from, &sql).await.unwrap(), expected);
    assert_eq!(rows_there(&to, &bytes).await.unwrap(), expected);
    // Another corpus with a version of the same number.
    fs::remove_dir_all(&living).unwrap();
    let again = session(1);
    for statement in [
        format!(
            "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{}' \
             OPTIONS ('tadoc.create' 'true')",
            living.display()
        ),
        "INSERT INTO d (path, text) VALUES ('x', 'y')".to_owned(),
        "INSERT INTO d (path, text) VALUES ('z', 'y')".to_owned(),
        "INSERT INTO d (path, text) VALUES ('u', 'y')".to_owned(),
    ] {
        rows(&again, &statement).await.unwrap();
    }
    let error = rows_there(&to, &bytes).await.unwrap_err();
    assert!(matches!(TravelError::from_error(&error), Some(TravelError::Changed(_))), "{error}");
}

#[tokio::test]
async fn what_stays_is_named() {
    let scene = Scene::new().await;
    let from = session(1);
    let folder = scene.dir.path().join("living").display().to_string();
    for statement in [
        format!("CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{folder}'"),
        "CREATE TABLE memory AS VALUES (1)".to_owned(),
        scene.call("COPY (SELECT path FROM documents(@)) TO '~/rows.csv' STORED AS CSV"),
        scene.call("CREATE EXTERNAL TABLE rows STORED AS CSV LOCATION '~/*.csv'"),
    ] {
        rows(&from, &statement).await.unwrap();
    }
    for (sql, expected) in [
        ("SELECT * FROM \"d$history\"", "d$history is no table"),
        ("DELETE FROM d", "d is no table"),
        ("INSERT INTO d (path, text) VALUES ('x', 'y')", "written in its session"),
        ("SELECT * FROM memory", "memory is no table"),
        ("COPY (SELECT 1 AS path) TO '~/x.tadoc' STORED AS TADOC", "writes .tadoc files"),
        ("SELECT * FROM rows", "name their folder instead"),
    ] {
        let error = departs(&from, &scene.call(sql)).await.unwrap_err();
        let stays = matches!(TravelError::from_error(&error), Some(TravelError::Stays(_)));
        assert!(stays && error.to_string().contains(expected), "{sql}: {error}");
    }
    // A table whose session was not asked.
    let plan = from.sql(&scene.call("SELECT * FROM word_count(@)")).await.unwrap();
    let plan = plan.into_optimized_plan().unwrap();
    let error = logical_plan_to_bytes_with_extension_codec(&plan, &TadocLogicalCodec).unwrap_err();
    assert!(error.to_string().contains("resolve_tables"), "{error}");
}

#[tokio::test]
async fn credentials_stay() {
    let from = session(1);
    let sql = "SELECT * FROM read_text('http://me:hush@127.0.0.1:9/x.txt')";
    let error = departs(&from, sql).await.unwrap_err();
    assert!(matches!(TravelError::from_error(&error), Some(TravelError::Stays(_))), "{error}");
    assert!(!error.to_string().contains("hush"), "{error}");
}

/// Returns the messages of the tables of a plan, with their tables.
fn tables(plan: &LogicalPlan) -> Vec<(Vec<u8>, Arc<dyn TableProvider>)> {
    let mut found = Vec::new();
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let table = source_as_provider(&scan.source)?;
            let mut bytes = Vec::new();
            let name = &scan.table_name;
            TadocLogicalCodec.try_encode_table_provider(name, Arc::clone(&table), &mut bytes)?;
            assert!(is_message(&bytes));
            found.push((bytes, table));
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    found
}

async fn scanned(ctx: &SessionContext, table: Arc<dyn TableProvider>) -> Result<Vec<String>> {
    let batches = ctx.read_table(table)?.collect().await?;
    let shown = datafusion::arrow::util::pretty::pretty_format_batches(&batches)?.to_string();
    Ok(shown.lines().map(str::to_owned).collect())
}

#[test]
fn damaged_and_forged_tables_are_no_panic() {
    let runtime = Runtime::new().unwrap();
    let ctx = planning();
    let (_scene, messages) = runtime.block_on(async {
        let scene = Scene::new().await;
        let from = session(1);
        scene.columns(&from).await;
        let mut messages = Vec::new();
        for sql in [
            "SELECT * FROM term_count(@, '/(?i)T[ho].*/') WHERE doc_id > 3",
            "SELECT * FROM search(#, 'red OR green', version => 2)",
            "SELECT * FROM read_lines('~/notes/*.md')",
            "SELECT * FROM ingestion_model(link_gb_per_s => 12)",
            "SELECT * FROM columns",
        ] {
            let plan = from.sql(&scene.call(sql)).await.unwrap().into_optimized_plan().unwrap();
            messages.extend(tables(&resolve_tables(plan, &from.state()).await.unwrap()));
        }
        (scene, messages)
    });
    assert_eq!(messages.len(), 5);
    let name = TableReference::bare("t");
    let decode = |bytes: &[u8], table: &Arc<dyn TableProvider>| {
        TadocLogicalCodec.try_decode_table_provider(bytes, &name, table.schema(), &ctx.task_ctx())
    };
    for (bytes, table) in &messages {
        let got = runtime.block_on(scanned(&ctx, decode(bytes, table).unwrap())).unwrap();
        let expected = runtime.block_on(scanned(&ctx, Arc::clone(table))).unwrap();
        assert_eq!(sorted(got), sorted(expected));
    }
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) };
    proptest!(config, |(
        which in 0..messages.len(),
        other in 0..messages.len(),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..4),
        cut: Option<usize>,
        noise: Option<Vec<u8>>,
        is_forged: bool,
    )| {
        let (original, table) = &messages[which];
        let mut bytes = original.clone();
        for (at, byte) in changes {
            let at = at % (bytes.len() - HEAD_BYTES) + HEAD_BYTES;
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(HEAD_BYTES + cut % (bytes.len() - HEAD_BYTES));
        }
        if let Some(noise) = noise {
            bytes.truncate(HEAD_BYTES);
            bytes.extend(noise);
        }
        if !is_forged {
            let outcome = decode(&bytes, table);
            if bytes != *original {
                let error = outcome.unwrap_err();
                prop_assert!(matches!(TravelError::from_error(&error), Some(TravelError::Message(_))));
            }
            return Ok(());
        }
        // Somebody computed the checksum anew: the table may be another one, or an error.
        let checksum = crc32c::crc32c(&bytes[HEAD_BYTES..]).to_le_bytes();
        bytes[CHECKSUM_AT..HEAD_BYTES].copy_from_slice(&checksum);
        for table in [table, &messages[other].1] {
            if let Ok(table) = decode(&bytes, table) {
                let outcome: Result<Vec<String>, DataFusionError> =
                    runtime.block_on(scanned(&ctx, table));
                drop(outcome);
            }
        }
    });
}
