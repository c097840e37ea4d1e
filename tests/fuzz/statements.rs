//! User columns and locations, which only SQL reads: an error that is not one of ours or of a library's panic, or
//! rows. All files lie in memory, whatever a location says: nothing is read and nobody is asked.

use std::cell::OnceCell;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::Corpus;
use datafusion_tadoc::sql::TadocSessionStateBuilderExt;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use tokio::runtime::Runtime;
use url::Url;

use super::LIMITS;
use super::anatomy::Anatomy;
use super::mutations::mutant_of_kind;
use super::random::Random;
use super::samples::{Content, Sample};
use super::strings::strung;
use super::target::{Input, Verdict, part_input};

const COLUMNS: [u8; 2] = [4, 0];
/// Statements of a session, before the next one: a session keeps what it read.
const MAX_STATEMENTS: usize = 100;
/// What locations are strung together from.
const PIECES: [&str; 32] = [
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
];
const SEEDS: [&str; 10] = [
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
];

/// The only store, for every URL.
#[derive(Debug, Default)]
struct OneStore(Arc<InMemory>);

impl ObjectStoreRegistry for OneStore {
    fn register_store(&self, _: &Url, _: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, _: &Url) -> Result<Arc<dyn ObjectStore>> {
        Ok(self.0.clone())
    }
}

/// A session on a store of its own.
struct Engine {
    runtime: Runtime,
    store: Arc<InMemory>,
    session: SessionContext,
    num_statements: usize,
}

impl Engine {
    fn new() -> Self {
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

    fn put(&self, path: &str, bytes: Vec<u8>) {
        let path = Path::from(path);
        self.runtime.block_on(self.store.put(&path, bytes.into())).unwrap();
    }

    fn rows(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        self.runtime.block_on(async { self.session.sql(sql).await?.collect().await })
    }
}

/// Calls `ask` with the session of this thread.
fn with_engine<T>(ask: impl FnOnce(&Engine) -> T) -> T {
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

/// Refuses errors that are bugs: of ours, of a library, or panics that somebody caught.
fn check_error(error: &DataFusionError, what: &str) {
    let text = error.to_string();
    let is_bug = matches!(error.find_root(), DataFusionError::Internal(_));
    assert!(!is_bug && !text.contains("panic"), "{what}: {text}");
}

/// Corpora whose columns are of many types.
fn samples() -> &'static [Sample] {
    static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
        let engine = Engine::new();
        let of = |columns: &str| {
            let rows = "SELECT path, text, n, name, at, tags FROM (VALUES \
                        ('a', 'to be', 1, 'x', TIMESTAMP '2026-01-02 03:04:05', [1, 2]), \
                        ('b', 'or not', NULL, 'y', NULL, []), ('c', '', 3, NULL, NULL, NULL)) \
                        AS t(path, text, n, name, at, tags)";
            let sql = format!(
                "COPY (SELECT {columns} FROM ({rows})) TO 'memory:///c.tadoc' STORED AS TADOC"
            );
            engine.rows(&sql).unwrap();
            let path = Path::from("c.tadoc");
            let file = engine.runtime.block_on(async {
                let file = engine.store.get(&path).await.unwrap().bytes().await.unwrap();
                engine.store.delete(&path).await.unwrap();
                file
            });
            let content = Content { documents: Vec::new(), columns: None };
            Sample { name: columns.into(), file: file.to_vec(), content }
        };
        ["path, text, n", "path, text, n, name, at", "path, text, tags, name"].map(of).into()
    });
    &SAMPLES
}

fn columns_of(file: &[u8]) -> Vec<u8> {
    let parts = Anatomy::of(file);
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
            let mut parts = Anatomy::of(&samples()[pick % samples().len()].file);
            for section in parts.sections_mut().into_iter().filter(|s| s.kind == COLUMNS) {
                section.bytes = bytes.to_vec();
            }
            parts.tied().assemble()
        }
    };
    let footer = match Corpus::from_bytes("mutant", &file, &LIMITS) {
        Ok((footer, _)) => footer,
        Err(error) => return Verdict::of(&error),
    };
    with_engine(|engine| {
        let table = format!("mutant{}", engine.num_statements);
        engine.put(&format!("{table}.tadoc"), file);
        match rows_of_table(engine, &table) {
            Err(error) => {
                check_error(&error, "columns");
                Verdict::Refused
            }
            Ok(batches) => {
                let num_rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
                assert_eq!(num_rows as u64, footer.num_docs());
                Verdict::Answered
            }
        }
    })
}

/// All columns of the corpus `table`, those of the user too.
fn rows_of_table(engine: &Engine, table: &str) -> Result<Vec<RecordBatch>> {
    let location = format!("memory:///{table}.tadoc");
    engine.rows(&format!("CREATE EXTERNAL TABLE {table} STORED AS TADOC LOCATION '{location}'"))?;
    let rows = engine.rows(&format!("SELECT * FROM {table}"));
    engine.rows(&format!("DROP TABLE {table}"))?;
    rows
}

pub fn location_seeds() -> Vec<Vec<u8>> {
    SEEDS.iter().map(|text| part_input(0, text.as_bytes())).collect()
}

pub fn location(input: &Input<'_>) -> Verdict {
    let mut random = Random(input.number());
    let location = match *input {
        Input::Part { bytes, .. } => String::from_utf8_lossy(bytes).into_owned(),
        Input::Number(_) => strung(&mut random, &PIECES),
    };
    let call = *random.pick(&["documents", "word_count", "read_text", "read_lines", "corpus_info"]);
    with_engine(|engine| {
        for path in ["c.tadoc", "a/c.tadoc", "corpora/z.tadoc"] {
            engine.put(path, samples()[0].file.clone());
        }
        let sql = format!("SELECT * FROM {call}('{}')", location.replace('\'', "''"));
        match engine.rows(&sql) {
            Err(error) => {
                check_error(&error, &location);
                Verdict::Refused
            }
            Ok(_) => Verdict::Answered,
        }
    })
}
