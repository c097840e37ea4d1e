//! A folder with corpora and files, and the rows of statements.

use std::fs;
use std::path::{Path, PathBuf};

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc_ballista::datafusion_tadoc::TadocSessionStateBuilderExt;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tempfile::TempDir;

/// A folder with a corpus of many segments, a living corpus, files of columns, and plain files.
pub struct Scene {
    pub dir: TempDir,
}

impl Scene {
    pub async fn new() -> Self {
        let scene = Self { dir: TempDir::new().unwrap() };
        write_corpus(&scene.path("many.tadoc"), 20_000, &sources());
        fs::create_dir(scene.path("notes")).unwrap();
        fs::write(scene.path("notes/one.md"), "one line\nand another\n").unwrap();
        fs::write(scene.path("notes/two.md"), "two\n").unwrap();
        let ctx = session();
        for statement in [
            "CREATE EXTERNAL TABLE living STORED AS TADOC LOCATION '~/living' \
             OPTIONS ('tadoc.create' 'true')",
            "INSERT INTO living (path, text) VALUES ('a', 'red and green'), ('b', 'green, and blue')",
            "INSERT INTO living (path, text) VALUES ('c', 'the red scan of the file')",
            "DELETE FROM living WHERE path = 'a'",
            "COPY (SELECT t.doc_id, path, path || ' of ' || word AS text FROM tokens(@) t JOIN \
             documents(@) d ON t.doc_id = d.doc_id ORDER BY t.doc_id, word_index) \
             TO '~/columns.parquet' STORED AS GSST OPTIONS (gsst_row_group_rows '1000', gsst_columns 'path, text')",
            "COPY (SELECT word, count FROM word_count(@)) TO '~/plain.parquet' STORED AS PARQUET",
        ] {
            rows(&ctx, &scene.call(statement)).await.unwrap();
        }
        scene
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Makes the tables of the scene in `ctx`.
    pub async fn tables(&self, ctx: &SessionContext) {
        for statement in [
            "CREATE EXTERNAL TABLE many STORED AS TADOC LOCATION '~/many.tadoc'",
            "CREATE EXTERNAL TABLE living STORED AS TADOC LOCATION '~/living'",
            "CREATE EXTERNAL TABLE columns STORED AS GSST LOCATION '~/columns.parquet'",
            "CREATE EXTERNAL TABLE plain STORED AS PARQUET LOCATION '~/plain.parquet'",
            "CREATE TABLE alike AS VALUES ('scan', 'file'), ('files', 'file')",
        ] {
            rows(ctx, &self.call(statement)).await.unwrap();
        }
    }

    /// Returns `call` with the paths of this scene.
    pub fn call(&self, call: &str) -> String {
        let path = |name: &str| self.path(name).display().to_string();
        call.replace('@', &format!("'{}'", path("many.tadoc")))
            .replace('#', &format!("'{}'", path("living")))
            .replace('~', &self.dir.path().display().to_string())
    }
}

/// Returns names and texts of some sources of this package.
fn sources() -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(testkit::root().join("src/datafusion/planning")).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
    files.sort();
    let text = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read(&path).unwrap())
    };
    files.into_iter().map(text).collect()
}

/// Writes a corpus with a segment for each `block_bytes` of text.
pub fn write_corpus(path: &Path, block_bytes: usize, texts: &[(String, Vec<u8>)]) {
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for (name, text) in texts {
        builder.push_document(name, text).unwrap();
    }
    fs::write(path, builder.finish(None).unwrap().0).unwrap();
}

/// Returns a session of one process.
pub fn session() -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(2);
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    SessionContext::new_with_state(builder.with_tadoc().build())
}

/// Returns the rows of a statement.
pub async fn rows(ctx: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let batches = ctx.sql(sql).await?.collect().await?;
    let table = pretty_format_batches(&batches)?.to_string();
    Ok(table.lines().filter(|line| !line.starts_with('+')).map(str::to_owned).collect())
}

/// Returns `rows` in an order of their own.
pub fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort_unstable();
    rows
}
