//! Fuzz targets for user columns and locations, which only SQL reads. A mutant gives rows, or an
//! error that says where it is and is no bug of ours or of a library. Files lie in memory, for any
//! URL of a location, or in a folder of the test. No other host or folder is asked.

use std::cell::OnceCell;
use std::fs;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::parquet::file::metadata::ParquetMetaDataReader;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use datafusion_tadoc::TadocSessionStateBuilderExt;
use datafusion_tadoc::user_columns::merge_columns;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use tadoc::Corpus;
use tadoc_store::ColumnsOfPart;
use tempfile::TempDir;
use testkit::malformed::LIMITS;
use testkit::malformed::anatomy::Anatomy;
use testkit::malformed::mutations::mutant_of_kind;
use testkit::malformed::samples::{Content, Sample, content_of};
use testkit::random::Random;
use tokio::runtime::Runtime;
use url::Url;

use super::strings::strung;
use super::target::{Input, Verdict, part_input};

const COLUMNS: [u8; 2] = [4, 0];
/// Number of statements after which a new session starts, because a session keeps the data that it
/// read.
const MAX_STATEMENTS: usize = 100;
/// Pieces of random locations.
const PIECES: [&str; 33] = [
    "a",
    "c.tadoc",
    "c",
    "notes",
    ".tadoc",
    "/",
    "//",
    "///",
    ".",
    "..",
    "../",
    "*",
    "**",
    "?",
    "[",
    "]",
    "[a-z]",
    "[!",
    "{",
    "}",
    "file://",
    "memory://",
    "s3://b/",
    "http://user:secret@127.0.0.1/",
    "%2e%2e",
    "%00",
    "\u{0}",
    " ",
    "é",
    "\\",
    ":",
    "~",
    "tape://b/",
];
const SEEDS: [&str; 18] = [
    "c.tadoc",
    "/c.tadoc",
    "memory:///c.tadoc",
    "file:///a/c.tadoc",
    "corpora/",
    "logs/2026-*.tadoc",
    "**/[a-z]?.tadoc",
    "s3://bucket/prefix/*.tadoc",
    "../c.tadoc",
    "%2e%2e/c.tadoc",
    "FOLDER/c.tadoc",
    "FOLDER",
    "FOLDER/a/../**/*.tadoc",
    "FOLDER/**/[!a-b]?tadoc",
    "FOLDER/notes",
    "file://FOLDER/a",
    "tape://bucket/c.tadoc",
    "corpora",
];

/// URL scheme without a store: this package is built without it.
const UNKNOWN_SCHEME: &str = "tape";
/// Prefix of locations on disk. They are below [`folder`].
const FOLDER: &str = "FOLDER";

/// The only store, for every URL.
#[derive(Debug, Default)]
struct OneStore(Arc<InMemory>);

impl ObjectStoreRegistry for OneStore {
    fn register_store(&self, _: &Url, _: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        match url.scheme() {
            UNKNOWN_SCHEME => plan_err!("nobody registered {url}"),
            _ => Ok(self.0.clone()),
        }
    }
}

/// A session on a store of its own.
pub struct Engine {
    runtime: Runtime,
    store: Arc<InMemory>,
    session: SessionContext,
    num_statements: usize,
}

impl Engine {
    pub fn new() -> Self {
        let store = Arc::new(InMemory::new());
        let registry = Arc::new(OneStore(store.clone()));
        let environment = RuntimeEnvBuilder::new().with_object_store_registry(registry);
        let builder = SessionStateBuilder::new()
            .with_config(SessionConfig::new().with_target_partitions(1))
            .with_runtime_env(environment.build_arc().unwrap())
            .with_default_features();
        let session = SessionContext::new_with_state(builder.with_tadoc().build());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { runtime, store, session, num_statements: 0 }
    }

    /// Returns the number of statements so far, this one included. Names of files contain it.
    pub fn num_statements(&self) -> usize {
        self.num_statements
    }

    pub fn get(&self, path: &str) -> Vec<u8> {
        let path = Path::from(path);
        let bytes = async { self.store.get(&path).await?.bytes().await };
        self.runtime.block_on(bytes).unwrap().to_vec()
    }

    pub fn put(&self, path: &str, bytes: Vec<u8>) {
        let path = Path::from(path);
        self.runtime.block_on(self.store.put(&path, bytes.into())).unwrap();
    }

    pub fn frame(&self, sql: &str) -> Result<DataFrame> {
        self.runtime.block_on(self.session.sql(sql))
    }

    pub fn collect(&self, frame: DataFrame) -> Result<Vec<RecordBatch>> {
        self.runtime.block_on(frame.collect())
    }

    pub fn rows(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        self.collect(self.frame(sql)?)
    }
}

/// Calls `ask` with the session of this thread.
pub fn with_engine<T>(ask: impl FnOnce(&Engine) -> T) -> T {
    thread_local!(static ENGINE: std::cell::RefCell<OnceCell<Engine>> = const { std::cell::RefCell::new(OnceCell::new()) });
    ENGINE.with_borrow_mut(|cell| {
        if cell.get().is_some_and(|engine| engine.num_statements >= MAX_STATEMENTS) {
            cell.take();
        }
        cell.get_or_init(Engine::new);
        let engine = cell.get_mut().unwrap();
        engine.num_statements += 1;
        ask(engine)
    })
}

/// Returns the verdict on a mutant that was refused with `error`. Checks that the error's text
/// contains all of `parts`, and that the error is not a bug of ours or of a library and not a
/// caught panic.
pub fn refused(error: &DataFusionError, parts: &[&str]) -> Verdict {
    let text = error.to_string();
    let root = error.find_root();
    let is_bug = matches!(root, DataFusionError::Internal(_));
    assert!(!is_bug && !text.contains("panic"), "{text}");
    for part in parts {
        assert!(text.contains(part), "no word of {part}: {text}");
    }
    match root {
        DataFusionError::External(inner) => match inner.downcast_ref() {
            Some(tadoc::Error::Checksum { .. }) => Verdict::StoppedByChecksum,
            _ => Verdict::Refused,
        },
        _ => Verdict::Refused,
    }
}

/// Returns corpora whose columns have many types.
fn samples() -> &'static [Sample] {
    static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
        let engine = Engine::new();
        let of = |columns: &str| {
            let rows = "SELECT path, text, n, name, at, tags FROM (VALUES \
                        ('a', 'to be', 1, 'x', TIMESTAMP '2026-01-02 03:04:05', [1, 2]), \
                        ('b', 'or not', NULL, 'y', NULL, []), ('c', '', 3, NULL, NULL, NULL)) \
                        AS t(path, text, n, name, at, tags)";
            let sql = format!("COPY (SELECT {columns} FROM ({rows})) TO 'memory:///c.tadoc' STORED AS TADOC");
            engine.rows(&sql).unwrap();
            let file = engine.get("c.tadoc");
            let path = Path::from("c.tadoc");
            engine.runtime.block_on(engine.store.delete(&path)).unwrap();
            let content = Content { documents: Vec::new(), columns: None };
            Sample { name: columns.into(), file, content }
        };
        ["path, text, n", "path, text, n, name, at", "path, text, tags, name"].map(of).into()
    });
    &SAMPLES
}

fn columns_of(file: &[u8]) -> Vec<u8> {
    let parts = Anatomy::from_file(file);
    parts.file_sections.into_iter().find(|s| s.kind == COLUMNS).map_or(Vec::new(), |s| s.bytes)
}

pub fn columns_seeds() -> Vec<Vec<u8>> {
    let of = |(pick, sample): (usize, &Sample)| part_input(pick, &columns_of(&sample.file));
    samples().iter().enumerate().map(of).collect()
}

pub fn columns(input: &Input<'_>) -> Verdict {
    let file = match *input {
        Input::Number(number) => mutant_of_kind(number, COLUMNS, samples()),
        Input::Part { pick, bytes } => {
            let mut parts = Anatomy::from_file(&samples()[pick % samples().len()].file);
            for section in parts.sections_mut().into_iter().filter(|s| s.kind == COLUMNS) {
                section.bytes = bytes.to_vec();
            }
            parts.tied().assemble()
        }
    };
    let content = match Corpus::from_bytes("mutant", &file, &LIMITS) {
        Ok((footer, corpus)) => content_of(&file, &footer, &corpus).unwrap(),
        Err(error) => return Verdict::from_error(&error),
    };
    check_merged(&content);
    with_engine(|engine| {
        let table = format!("mutant{}", engine.num_statements);
        engine.put(&format!("{table}.tadoc"), file);
        match rows_of_table(engine, &table) {
            Err(error) => refused(&error, &[&format!("{table}.tadoc"), "section columns"]),
            Ok(batches) => {
                check_documents(&batches, &content);
                Verdict::Answered
            }
        }
    })
}

/// Joins the columns with those of another part. Checks that the error names the file, or that
/// there are as many rows as documents.
fn check_merged(content: &Content) {
    let num_docs = content.documents.len() as u64;
    let part = |file: &str, columns: Option<&Vec<u8>>| ColumnsOfPart {
        file: file.into(),
        num_docs,
        parquet: columns.map(|columns| columns.clone().into()),
    };
    let parts = [part("mutant.tadoc", content.columns.as_ref()), part("none.tadoc", None)];
    match merge_columns(&parts, &[], std::slice::from_ref(&(0..1))) {
        Ok(Some(joined)) => {
            let footer = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(joined));
            assert_eq!(footer.unwrap().file_metadata().num_rows(), 2 * num_docs as i64);
        }
        Ok(None) => {}
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("mutant.tadoc: section columns"), "{text}");
        }
    }
}

/// Checks that paths and texts are those of the corpus, beside any columns.
fn check_documents(batches: &[RecordBatch], content: &Content) {
    let mut documents = content.documents.iter();
    for batch in batches {
        batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
        let column = |name: &str| batch.column_by_name(name).unwrap().as_string_view();
        let paths = column("path");
        let texts = column("text");
        for (path, text) in paths.iter().zip(texts) {
            let (expected_path, expected_text) = documents.next().unwrap();
            assert_eq!(path, Some(expected_path.as_str()));
            assert_eq!(text.map(str::as_bytes), Some(expected_text.as_slice()));
        }
    }
    assert!(documents.next().is_none());
}

/// Returns all columns of the corpus `table`, with the user columns.
fn rows_of_table(engine: &Engine, table: &str) -> Result<Vec<RecordBatch>> {
    let location = format!("memory:///{table}.tadoc");
    engine.rows(&format!("CREATE EXTERNAL TABLE {table} STORED AS TADOC LOCATION '{location}'"))?;
    let rows = engine.rows(&format!("SELECT * FROM {table}"));
    engine.rows(&format!("DROP TABLE {table}"))?;
    rows
}

/// Returns a folder of corpora and other files on disk.
fn folder() -> &'static str {
    static MADE: LazyLock<(TempDir, String)> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let corpus = &samples()[0].file;
        for (path, bytes) in [
            ("c.tadoc", corpus.as_slice()),
            ("a/c.tadoc", corpus),
            ("a/[b]?.tadoc", corpus),
            ("a/broken.tadoc", &corpus[..corpus.len() / 2]),
            ("notes/n.md", b"no corpus"),
            ("notes/.hidden", b"nor this"),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let path = folder.path().to_str().unwrap().to_owned();
        (folder, path)
    });
    &MADE.1
}

pub fn location_seeds() -> Vec<Vec<u8>> {
    SEEDS.iter().map(|text| part_input(0, text.as_bytes())).collect()
}

pub fn location(input: &Input<'_>) -> Verdict {
    let mut random = Random(input.number());
    let location = match *input {
        Input::Part { bytes, .. } => String::from_utf8_lossy(bytes).into_owned(),
        Input::Number(_) => {
            let start = *random.pick(&["", "", "FOLDER/", "file://FOLDER/"]);
            start.to_owned() + &strung(&mut random, &PIECES)
        }
    };
    let location = location.replace(FOLDER, folder());
    let call = *random.pick(&["documents", "word_count", "read_text", "read_lines", "corpus_info"]);
    with_engine(|engine| {
        for path in ["c.tadoc", "a/c.tadoc", "corpora/z.tadoc"] {
            engine.put(path, samples()[0].file.clone());
        }
        let sql = format!("SELECT * FROM {call}('{}')", location.replace('\'', "''"));
        match engine.rows(&sql) {
            Err(error) => refused(&error, &[]),
            Ok(_) => Verdict::Answered,
        }
    })
}
