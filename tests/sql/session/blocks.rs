//! Tests of blocks of `COPY` and `INSERT` that are built at once: the same file, within the
//! session's memory.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::TadocSessionStateBuilderExt;
use tempfile::TempDir;

use super::table;

const BLOCK_BYTES: usize = 64 << 10;
/// A query for 400 texts of 100 bytes to 12 KB, which make 37 blocks.
const ROWS: &str = "SELECT 'p' || value AS path, \
    repeat('the ' || value || ' quick foxes ' || (value % 7) || ' jump over it ', 1 + value % 300) \
    AS text FROM generate_series(1, 400)";

fn session(memory_bytes: usize) -> SessionContext {
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(memory_bytes, 1.0).build_arc();
    let config = SessionConfig::new().with_target_partitions(1).with_batch_size(8);
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    let state = builder.with_runtime_env(runtime.unwrap()).with_tadoc().build();
    SessionContext::new_with_state(state)
}

/// Returns the file that `COPY` writes in `context`, and the number of blocks built at once at the
/// end.
async fn copied(context: &SessionContext, at_once: &str) -> (Vec<u8>, usize) {
    let dir = TempDir::new().unwrap();
    let (bytes, plan) = copied_to(dir.path(), context, at_once).await.unwrap();
    (bytes, plan.metrics().unwrap().sum_by_name("blocks_at_once").unwrap().as_usize())
}

async fn copied_to(
    dir: &Path,
    context: &SessionContext,
    at_once: &str,
) -> Result<(Vec<u8>, Arc<dyn ExecutionPlan>), DataFusionError> {
    let path = dir.join("x.tadoc");
    let copy = format!(
        "COPY ({ROWS}) TO '{}' STORED AS TADOC \
         OPTIONS (block_bytes '{BLOCK_BYTES}', blocks_at_once '{at_once}', device 'cpu', overwrite 'true')",
        path.display()
    );
    let plan = context.sql(&copy).await?.create_physical_plan().await?;
    collect(Arc::clone(&plan), context.task_ctx()).await?;
    Ok((fs::read(path).unwrap(), plan))
}

#[tokio::test]
async fn blocks_at_once_write_the_same_file() {
    let context = session(usize::MAX);
    let (expected, at_once) = copied(&context, "1").await;
    assert_eq!(at_once, 1);
    for at_once in [2, 4, 64] {
        let (bytes, built) = copied(&context, &at_once.to_string()).await;
        assert!(bytes == expected, "{at_once}");
        assert_eq!(built, at_once);
    }
    assert!(copied(&context, "auto").await.0 == expected);
}

#[tokio::test]
async fn little_memory_is_for_fewer_blocks() {
    let (expected, _) = copied(&session(usize::MAX), "1").await;
    // The first block takes 6 times its bytes, each further one takes 4 times. Batches of the query
    // come on top.
    for (num_blocks, expected_at_once) in [(19, 4), (15, 3), (7, 1)] {
        let (bytes, at_once) = copied(&session(num_blocks * BLOCK_BYTES), "4").await;
        assert!(bytes == expected, "{num_blocks}");
        assert_eq!(at_once, expected_at_once, "{num_blocks}");
    }
    let dir = TempDir::new().unwrap();
    let error = copied_to(dir.path(), &session(5 * BLOCK_BYTES), "4").await.unwrap_err();
    assert!(matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)), "{error}");
    assert!(error.to_string().contains("tadoc.block_bytes = 65536: lower it"), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn inserted_blocks_are_the_same_documents() {
    let context = session(usize::MAX);
    table(&context, &format!("CREATE TABLE plain AS {ROWS}")).await;
    let dir = TempDir::new().unwrap();
    for at_once in ["1", "4"] {
        let name = format!("d{at_once}");
        let place = dir.path().join(at_once);
        for statement in [
            format!("SET tadoc.blocks_at_once = '{at_once}'"),
            format!("SET tadoc.block_bytes = '{BLOCK_BYTES}'"),
            format!(
                "CREATE EXTERNAL TABLE {name} STORED AS TADOC LOCATION '{}/' \
                 OPTIONS ('create' 'true')",
                place.display()
            ),
            format!("INSERT INTO {name} (path, text) SELECT path, text FROM plain"),
        ] {
            table(&context, &statement).await;
        }
        let missing = format!("SELECT path, text FROM plain EXCEPT SELECT path, text FROM {name}");
        assert!(!table(&context, &missing).await.contains('p'), "{at_once}");
    }
    let segments = |place: &str| {
        let folder = dir.path().join(place).join("segments");
        let files: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
        assert_eq!(files.len(), 1);
        fs::read(files[0].path()).unwrap()
    };
    assert!(segments("1") == segments("4"));
}
