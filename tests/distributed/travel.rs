//! Plans that are encoded, decoded in another session, and give the same rows.

use std::fs;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion_tadoc_distributed::proto::bytes::{
    physical_plan_from_bytes_with_proto_converter, physical_plan_to_bytes_with_proto_converter,
};
use datafusion_tadoc_distributed::proto::physical_plan::DeduplicatingProtoConverter;
use datafusion_tadoc_distributed::{TadocCodec, TravelError};

use testkit::plans::CALLS;

use super::fixtures::{Scene, arrival, rows, rows_of, session, sorted, spreading_session};

/// Returns the plan of `sql` as it arrives in another session.
async fn travelled(from: &SessionContext, to: &SessionContext, sql: &str) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = from.sql(sql).await?.create_physical_plan().await?;
    let converter = DeduplicatingProtoConverter {};
    let bytes = physical_plan_to_bytes_with_proto_converter(plan, &TadocCodec, &converter)?;
    physical_plan_from_bytes_with_proto_converter(&bytes, &to.task_ctx(), &TadocCodec, &converter)
}

async fn arrives(from: &SessionContext, sql: &str) {
    let to = arrival();
    let expected = rows(&session(1), sql).await.unwrap();
    let plan = travelled(from, &to, sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    let got = rows_of(plan, &to).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    assert_eq!(sorted(got), sorted(expected), "{sql}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_function_travels() {
    let scene = Scene::new().await;
    let mut names: Vec<&str> = CALLS.iter().map(|call| call.split('(').next().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    let mut known: Vec<&str> = datafusion_tadoc::signatures().map(|one| one.name).collect();
    known.sort_unstable();
    assert_eq!(names, known);
    let whole = session(2);
    let runs = spreading_session(3);
    for call in CALLS {
        let sql = format!("SELECT * FROM {}", scene.call(call));
        arrives(&whole, &sql).await;
        arrives(&runs, &sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_columns_limits_and_joins_travel() {
    let scene = Scene::new().await;
    let whole = session(2);
    let runs = spreading_session(2);
    for sql in [
        "SELECT path, words FROM documents(@) WHERE doc_id BETWEEN 3 AND 7 AND bytes > 100",
        "SELECT path FROM documents(@) WHERE text LIKE '%dynamic%' AND text NOT LIKE '%fold%'",
        "SELECT word FROM word_count(@) WHERE count > 5 AND word LIKE 'co%'",
        "SELECT count(*), sum(byte_offset) FROM search(@, 'scan') WHERE doc_id > 4",
        "SELECT w.word, d.path FROM word_count(@) w JOIN inverted_index(@) i ON w.word = i.word \
         JOIN documents(@) d ON d.doc_id = i.doc_ids[1] WHERE w.count > 40",
        "SELECT path, count FROM term_count(@, 'scan') ORDER BY count DESC, path LIMIT 3",
        "SELECT doc_id, path, version FROM (SELECT *, 3 AS version FROM documents(#)) ORDER BY doc_id",
        "SELECT word, row_number() OVER (ORDER BY word) FROM word_count(#)",
    ] {
        let sql = scene.call(sql);
        arrives(&whole, &sql).await;
        arrives(&runs, &sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_columns_travel() {
    let scene = Scene::new().await;
    let file = scene.dir.path().join("with_columns.tadoc").display().to_string();
    // One of them has the name of the lists of inverted_index.
    let copy = format!(
        "COPY (SELECT * FROM (VALUES ('a', repeat('one two ', 3000), 'x', 1), \
         ('b', repeat('two three ', 3000), 'y', 2), ('c', repeat('four ', 6000), 'z', 3)) \
         AS t(path, text, doc_ids, size)) TO '{file}' STORED AS TADOC \
         OPTIONS ('tadoc.block_bytes' '8192')"
    );
    rows(&session(1), &copy).await.unwrap();
    let create = format!("CREATE EXTERNAL TABLE columns STORED AS TADOC LOCATION '{file}'");
    let sql = "SELECT doc_id, path, doc_ids, size FROM columns WHERE size > 1";
    let whole = session(1);
    let runs = spreading_session(2);
    let to = arrival();
    for ctx in [&whole, &runs] {
        rows(ctx, &create).await.unwrap();
    }
    let expected = sorted(rows(&whole, sql).await.unwrap());
    assert!(expected.concat().contains("| 2      | c    | z       | 3    |"), "{expected:?}");
    let plan = rows(&runs, &format!("EXPLAIN {sql}")).await.unwrap().join("\n");
    assert!(plan.contains("TadocRunsExec"), "{plan}");
    for ctx in [&whole, &runs] {
        let plan = travelled(ctx, &to, sql).await.unwrap();
        assert_eq!(sorted(rows_of(plan, &to).await.unwrap()), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn synonyms_travel() {
    let scene = Scene::new().await;
    let table = "CREATE TABLE alike AS VALUES ('scan', 'file'), ('files', 'file')";
    let sql = scene.call("SELECT path, count FROM term_count(@, 'file', fold => 'case,synonyms:alike')");
    let from = spreading_session(2);
    let to = arrival();
    rows(&from, table).await.unwrap();
    let expected = rows(&from, &sql).await.unwrap();
    let plain = rows(&to, &sql.replace(",synonyms:alike", "")).await.unwrap();
    assert_ne!(expected, plain);
    let got = rows_of(travelled(&from, &to, &sql).await.unwrap(), &to).await.unwrap();
    assert_eq!(sorted(got), sorted(expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gsst_columns_travel() {
    let scene = Scene::new().await;
    let from = session(2);
    let to = arrival();
    scene.columns(&from).await;
    for sql in [
        "SELECT * FROM columns",
        "SELECT doc_id, upper(text) FROM columns WHERE text LIKE '%filter%' OR text LIKE 'exec%'",
        "SELECT count(*) FROM columns WHERE doc_id > 3 AND path <> 'mod.rs'",
    ] {
        let expected = rows(&from, sql).await.unwrap();
        let plan = travelled(&from, &to, sql).await.unwrap();
        assert_eq!(sorted(rows_of(plan, &to).await.unwrap()), sorted(expected), "{sql}");
    }
}

#[tokio::test]
async fn a_file_of_columns_that_was_replaced_is_refused() {
    let scene = Scene::new().await;
    let from = session(2);
    let to = arrival();
    let file = scene.columns(&from).await;
    let sql = "SELECT count(*), max(text) FROM columns WHERE text LIKE '%of%'";
    let planned = travelled(&from, &to, sql).await.unwrap();
    let bytes = fs::read(&file).unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    fs::write(&file, &bytes).unwrap();
    let error = rows_of(planned, &to).await.unwrap_err();
    assert!(matches!(TravelError::from_error(&error), Some(TravelError::Changed(_))), "{error}");
    assert!(error.to_string().contains(&file), "{error}");
    fs::remove_file(&file).unwrap();
    fs::write(&file, &bytes).unwrap();
    let expected = rows(&from, sql).await.unwrap();
    let planned = travelled(&from, &to, sql).await.unwrap();
    assert_eq!(rows_of(planned, &to).await.unwrap(), expected);
}

#[tokio::test]
async fn a_file_that_was_replaced_is_refused() {
    let scene = Scene::new().await;
    let from = spreading_session(2);
    let to = arrival();
    for call in ["word_count(@)", "read_lines('~/notes/*.md')", "corpus_verify(@)"] {
        let sql = format!("SELECT * FROM {}", scene.call(call));
        let plan = travelled(&from, &to, &sql).await.unwrap();
        let path = if call.starts_with("read") {
            scene.dir.path().join("notes/one.md")
        } else {
            scene.dir.path().join("many.tadoc")
        };
        // The same bytes at another time are another file.
        let bytes = fs::read(&path).unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        fs::write(&path, &bytes).unwrap();
        let error = rows_of(plan, &to).await.unwrap_err();
        assert!(matches!(TravelError::from_error(&error), Some(TravelError::Changed(_))), "{error}");
        let plan = travelled(&from, &to, &sql).await.unwrap();
        rows_of(plan, &to).await.unwrap();
        let plan = travelled(&from, &to, &sql).await.unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let error = rows_of(plan, &to).await.unwrap_err();
        assert!(error.to_string().contains("bytes, it has"), "{error}");
        fs::write(&path, &bytes).unwrap();
    }
}

#[tokio::test]
async fn a_living_corpus_that_was_replaced_is_refused() {
    let scene = Scene::new().await;
    let from = session(1);
    let to = arrival();
    let sql = scene.call("SELECT * FROM documents(#)");
    let plan = travelled(&from, &to, &sql).await.unwrap();
    let living = scene.dir.path().join("living");
    fs::remove_dir_all(&living).unwrap();
    let error = rows_of(plan, &to).await.unwrap_err();
    assert!(matches!(TravelError::from_error(&error), Some(TravelError::Changed(_))), "{error}");
}

#[tokio::test]
async fn writes_stay() {
    let scene = Scene::new().await;
    let from = session(1);
    let to = arrival();
    let file = scene.dir.path().join("copy.tadoc").display().to_string();
    let sql = format!("COPY (SELECT 'a' AS path, 'b' AS text) TO '{file}' STORED AS TADOC");
    assert!(travelled(&from, &to, &sql).await.is_err());
    let folder = scene.dir.path().join("living").display().to_string();
    let create = format!("CREATE EXTERNAL TABLE living STORED AS TADOC LOCATION '{folder}'");
    rows(&from, &create).await.unwrap();
    for sql in ["DELETE FROM living", "INSERT INTO living (path, text) VALUES ('x', 'y')"] {
        assert!(travelled(&from, &to, sql).await.is_err(), "{sql}");
    }
}
