//! Sandboxes in sessions of a host program: refusals by kind, registered stores, wrapped registries,
//! and statements that the host does not check itself. The command's attempts are in `tests/cli`.

use std::path::Path;
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{CsvReadOptions, SessionConfig, SessionContext};
use datafusion_tadoc::register_all;
use datafusion_tadoc::safety::{Permission, Refusal, Refused, Sandbox};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use tadoc::build::IngestOptions;
use tempfile::TempDir;
use url::Url;

use crate::fixtures;

/// A folder with corpora and tables inside and outside of a root.
fn scene() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for place in ["in", "out"] {
        let folder = dir.path().join(place);
        std::fs::create_dir(&folder).unwrap();
        let documents: [(&str, &[u8]); 1] = [("a.txt", b"to be")];
        fixtures::write_corpus(&folder.join("c.tadoc"), IngestOptions::default(), &documents);
        std::fs::write(folder.join("t.csv"), "a\n1\n").unwrap();
    }
    dir
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn session(runtime: RuntimeEnvBuilder) -> SessionContext {
    let config = SessionConfig::new().with_information_schema(true);
    let ctx = SessionContext::new_with_config_rt(config, runtime.build_arc().unwrap());
    let ctx = ctx.enable_url_table();
    register_all(&ctx).unwrap();
    ctx
}

fn guarded(sandbox: &Sandbox) -> SessionContext {
    session(sandbox.guard(RuntimeEnvBuilder::new()))
}

async fn run(ctx: &SessionContext, sql: &str) -> Result<usize> {
    let batches = ctx.sql(sql).await?.collect().await?;
    Ok(batches.iter().map(|batch| batch.num_rows()).sum())
}

fn refusal(error: &DataFusionError) -> Option<Refusal> {
    Refused::from_error(error).map(Refused::refusal)
}

#[tokio::test]
async fn refusals_are_typed_whoever_reads() {
    let dir = scene();
    let inside = shown(&dir.path().join("in"));
    let sandbox = Sandbox::default().allow(&inside).unwrap();
    let ctx = guarded(&sandbox);
    let outside = shown(&dir.path().join("out"));
    for (reads, kind) in [
        (format!("SELECT * FROM documents('{outside}/c.tadoc')"), Refusal::Place),
        (format!("SELECT * FROM '{outside}/t.csv'"), Refusal::Place),
        (format!("SELECT extract_text('{outside}/c.tadoc', 0, 0, 1)"), Refusal::Place),
        (format!("SELECT * FROM read_text('{inside}/t.csv')"), Refusal::Function),
        (format!("COPY (SELECT 1) TO '{inside}/x.csv'"), Refusal::Statement),
        ("SELECT * FROM documents('http://127.0.0.1:9/c.tadoc')".into(), Refusal::Place),
        ("SELECT * FROM 'http://u:p@127.0.0.1:9/c.tadoc'".into(), Refusal::Credentials),
    ] {
        assert_eq!(refusal(&run(&ctx, &reads).await.unwrap_err()), Some(kind), "{reads}");
    }
    assert_eq!(run(&ctx, &format!("SELECT * FROM '{inside}/c.tadoc'")).await.unwrap(), 1);
    assert_eq!(run(&ctx, &format!("SELECT * FROM '{inside}/t.csv'")).await.unwrap(), 1);
    // The readers of the host program pass the door too.
    let read = |path: String| ctx.read_csv(path, CsvReadOptions::new());
    assert!(read(format!("{inside}/t.csv")).await.is_ok());
    let error = read(format!("{outside}/t.csv")).await.unwrap_err();
    assert_eq!(refusal(&error), Some(Refusal::Place));
}

/// DataFusion runs DDL and SET without analyzing them, so the host checks them.
#[tokio::test]
async fn statements_are_checked_before_they_run() {
    let dir = scene();
    let inside = shown(&dir.path().join("in"));
    let sandbox = Sandbox::default().allow(&inside).unwrap();
    let ctx = guarded(&sandbox);
    for sql in ["CREATE TABLE t AS VALUES (1)", "SET tadoc.max_hits = '1'", "PREPARE p AS SELECT 1"] {
        let error = sandbox.sql(&ctx, sql).await.unwrap_err();
        assert!(refusal(&error).is_some(), "{sql}: {error}");
    }
    assert_eq!(run(&ctx, "SELECT * FROM information_schema.tables WHERE table_name = 't'").await.unwrap(), 0);
    let create = format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{inside}/t.csv'");
    let permitted = sandbox.clone().permit(Permission::Create);
    permitted.sql(&ctx, &create).await.unwrap();
    assert_eq!(run(&ctx, "SELECT * FROM t").await.unwrap(), 1);
}

#[tokio::test]
async fn registered_stores_are_read_only_below_allowed_urls() {
    let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    for path in ["pub/t.csv", "private/t.csv"] {
        memory.put(&path.into(), "a\n1\n".into()).await.unwrap();
    }
    let sandbox = Sandbox::default().allow("corpora://store/pub/").unwrap();
    let ctx = guarded(&sandbox);
    for server in ["corpora://store", "corpora://other"] {
        ctx.register_object_store(&Url::parse(server).unwrap(), Arc::clone(&memory));
    }
    assert_eq!(run(&ctx, "SELECT * FROM 'corpora://store/pub/t.csv'").await.unwrap(), 1);
    for url in [
        "corpora://store/private/t.csv",
        "corpora://store/pub/../private/t.csv",
        "corpora://store/",
        "corpora://other/pub/t.csv",
    ] {
        let error = run(&ctx, &format!("SELECT * FROM '{url}'")).await.unwrap_err();
        assert_eq!(refusal(&error), Some(Refusal::Place), "{url}: {error}");
    }
    let store = ctx.runtime_env().object_store_registry.get_store(&Url::parse("corpora://store").unwrap());
    let store = store.unwrap();
    let put = store.put(&"pub/new".into(), "x".into()).await.unwrap_err();
    assert_eq!(Refused::from_error(&put).unwrap().refusal(), Refusal::Write);
    let delete = store.delete(&"pub/t.csv".into()).await.unwrap_err();
    assert_eq!(Refused::from_error(&delete).unwrap().refusal(), Refusal::Write);
    let copy = store.copy(&"private/t.csv".into(), &"pub/t2.csv".into()).await.unwrap_err();
    assert_eq!(Refused::from_error(&copy).unwrap().refusal(), Refusal::Write);
}

/// Registry of a host program that counts requests.
#[derive(Debug)]
struct Counting(Arc<dyn ObjectStoreRegistry>);

impl ObjectStoreRegistry for Counting {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        self.0.register_store(url, store)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.0.get_store(url)
    }
}

#[tokio::test]
async fn a_wrapped_registry_still_guards() {
    let dir = scene();
    let sandbox = Sandbox::default().allow(&shown(&dir.path().join("in"))).unwrap();
    let door = sandbox.guard(RuntimeEnvBuilder::new()).build().unwrap().object_store_registry;
    let wrapped = RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(Counting(door)));
    let ctx = session(wrapped);
    for (place, is_refused) in [("in", false), ("out", true)] {
        let corpus = shown(&dir.path().join(place).join("c.tadoc"));
        let outcome = run(&ctx, &format!("SELECT * FROM word_count('{corpus}')")).await;
        assert_eq!(outcome.is_err_and(|error| refusal(&error).is_some()), is_refused, "{place}");
    }
    let local = Arc::new(object_store::local::LocalFileSystem::new());
    ctx.register_object_store(&Url::parse("file://").unwrap(), local);
    let csv = shown(&dir.path().join("out/t.csv"));
    let error = run(&ctx, &format!("SELECT * FROM '{csv}'")).await.unwrap_err();
    assert_eq!(refusal(&error), Some(Refusal::Place));
}
