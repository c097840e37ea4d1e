//! Runner of every `sql/**/*.slt` file, every `sql/examples/*.sql` query, and the statements of
//! [`DOCUMENTS`].
//!
//! Each file gets its own session, in a folder with the fixtures of `fixtures`. Each document gets
//! its own session and folder. `TADOC_SLT_COMPLETE=1 cargo test --test sql slt` writes the engine's
//! answers into the files; review the difference before you keep it.

mod engine;

use std::fs;
use std::path::Path;

use datafusion::prelude::SessionContext;
use sqllogictest::{Runner, strict_column_validator};
use testkit::command::{is_alone, run_apart};

use self::engine::{Engine, is_expected, normalize};
use crate::fixtures;

/// Documents whose SQL is run, with the least number of SQL blocks in each.
const DOCUMENTS: &[(&str, usize)] =
    &[("README.md", 3), ("sql/README.md", 8), ("sql/linguists.md", 9), ("sql/training.md", 6)];

/// There is one test, in its own process, because the working directory belongs to the process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sql_files() {
    if !is_alone("slt::sql_files") {
        return run_apart("slt::sql_files", |_| {});
    }
    let sql = testkit::root().join("sql");
    let dir = tempfile::tempdir().unwrap();
    fixtures::write_all(dir.path());
    std::env::set_current_dir(dir.path()).unwrap();
    let mut failures = Vec::new();
    let mut num_slt = 0;
    let mut num_examples = 0;
    for file in fixtures::files_below(&sql) {
        let name = file.strip_prefix(&sql).unwrap().display().to_string();
        let outcome = match file.extension().and_then(|e| e.to_str()) {
            Some("slt") => {
                num_slt += 1;
                run_slt(&file).await
            }
            Some("sql") => {
                num_examples += 1;
                run_example(&file).await
            }
            _ => Ok(()),
        };
        if let Err(error) = outcome {
            failures.push(format!("{name}: {error}"));
        }
    }
    for &(document, min_blocks) in DOCUMENTS {
        if let Err(error) = run_document(document, min_blocks).await {
            failures.push(format!("{document}: {error}"));
        }
    }
    std::env::set_current_dir(&sql).unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(num_slt >= 10 && num_examples >= 1, "ran {num_slt} slt files, {num_examples} examples");
}

async fn run_slt(file: &Path) -> Result<(), String> {
    let context: SessionContext = fixtures::session();
    let mut runner = Runner::new(|| async { Ok(Engine(context.clone())) });
    runner.with_column_validator(strict_column_validator);
    runner.with_normalizer(normalize);
    runner.with_validator(is_expected);
    if has_device() {
        runner.add_label("device");
    }
    if std::env::var_os("TADOC_SLT_COMPLETE").is_some() {
        let columns = strict_column_validator;
        let done = runner.update_test_file(file, " ", is_expected, normalize, columns);
        done.await.map_err(|e| e.to_string())?;
        return forget_folder(file);
    }
    runner.run_file_async(file).await.map_err(|e| e.display(false).to_string())
}

/// Returns true if the driver sees a device. Files use this in `skipif device` and `onlyif device`.
fn has_device() -> bool {
    #[cfg(feature = "cuda")]
    return tadoc_cuda::num_devices().is_ok();
    #[cfg(not(feature = "cuda"))]
    false
}

/// Replaces the folder of this run in a file's answers by a pattern.
fn forget_folder(file: &Path) -> Result<(), String> {
    let folder = std::env::current_dir().unwrap().display().to_string();
    let folder = folder.trim_start_matches('/').replace('.', "\\.");
    let text = fs::read_to_string(file).unwrap();
    fs::write(file, text.replace(&folder, ".*")).map_err(|e| e.to_string())
}

/// Runs the statements of an example.
async fn run_example(file: &Path) -> Result<(), String> {
    run_statements(&fixtures::session(), &fs::read_to_string(file).unwrap()).await
}

/// Runs the SQL of a document, one block after the other.
async fn run_document(document: &str, min_blocks: usize) -> Result<(), String> {
    let path = testkit::root().join(document);
    let text = fs::read_to_string(path).unwrap();
    let blocks: Vec<&str> =
        text.split("\n```sql\n").skip(1).map(|behind| behind.split("\n```").next().unwrap()).collect();
    assert!(blocks.len() >= min_blocks, "{document}: {} blocks of SQL", blocks.len());
    let dir = tempfile::tempdir().unwrap();
    std::env::set_current_dir(dir.path()).unwrap();
    // URL tables are on, as in `tadoc sql`, for queries of files without a table.
    let context = fixtures::session().enable_url_table();
    fixtures::readme::write_all(dir.path(), &context).await;
    run_statements(&context, &blocks.join("\n")).await
}

/// Runs statements. Each query must return at least one row. No string in them may contain `--` or
/// `;`.
async fn run_statements(context: &SessionContext, text: &str) -> Result<(), String> {
    let code: Vec<&str> = text.lines().filter_map(|line| line.split("--").next()).collect();
    for statement in code.join("\n").split(';').map(str::trim).filter(|s| !s.is_empty()) {
        let failed = |e| format!("{statement}\n{e}");
        let rows = context.sql(statement).await.map_err(failed)?.collect().await.map_err(failed)?;
        let is_query = statement.starts_with("SELECT") || statement.starts_with("WITH");
        let num_rows: usize = rows.iter().map(|batch| batch.num_rows()).sum();
        if is_query && num_rows == 0 {
            return Err(format!("{statement}\nanswers with no row"));
        }
    }
    Ok(())
}
