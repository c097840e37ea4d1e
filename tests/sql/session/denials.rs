//! Tests of refused requests for memory, one by one. The statement answers without the memory, or
//! reports the refusal, and the session continues.
//!
//! ```text
//! requests of a statement   1  2  3  4  5  6  7 …
//! runs                      ✗
//!                              ✗                    one alone
//!                                 ✗  …
//!                           ✗  ✗  ✗  ✗  ✗  ✗  ✗
//!                              ✗  ✗  ✗  ✗  ✗  ✗     this one and all behind it
//!                                 ✗  ✗  ✗  …
//! ```

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::{fmt, fs};

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::resources_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::TadocSessionStateBuilderExt;
use tadoc::build::IngestOptions;
use tempfile::TempDir;

use super::every_function::CALLS;
use super::{batches, wait_until};
use crate::fixtures;

/// A pool with much memory that refuses requests by their number.
#[derive(Debug)]
struct DenyingPool {
    plenty: GreedyMemoryPool,
    state: Mutex<Requests>,
}

#[derive(Debug, Default)]
struct Requests {
    num_made: usize,
    refused: Range<usize>,
    /// Consumer of the first refused request.
    consumer: Option<String>,
}

impl DenyingPool {
    fn new() -> Arc<Self> {
        let plenty = GreedyMemoryPool::new(1 << 40);
        Arc::new(Self { plenty, state: Mutex::default() })
    }

    /// Refuses the next requests whose numbers, from 0 on, are in the range. Returns the consumer
    /// that was refused before.
    fn refuse(&self, refused: Range<usize>) -> Option<String> {
        let requests = Requests { refused, ..Requests::default() };
        std::mem::replace(&mut *self.state.lock().unwrap(), requests).consumer
    }
}

impl fmt::Display for DenyingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl MemoryPool for DenyingPool {
    fn name(&self) -> &str {
        "denying"
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.plenty.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        assert!(shrink <= self.reserved(), "{shrink} bytes are given back twice");
        self.plenty.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        let number = state.num_made;
        state.num_made += 1;
        if state.refused.contains(&number) {
            let name = reservation.consumer().name().to_owned();
            let refused = resources_datafusion_err!("request {number}, {additional} bytes, {name}");
            state.consumer.get_or_insert(name);
            return Err(refused);
        }
        self.plenty.try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.plenty.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.plenty.memory_limit()
    }
}

/// Returns a new session in `pool`, after the statements `before`.
async fn session(pool: &Arc<DenyingPool>, before: &[String]) -> SessionContext {
    let pool: Arc<dyn MemoryPool> = Arc::clone(pool) as _;
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    let builder = SessionStateBuilder::new().with_runtime_env(runtime);
    let config = SessionConfig::new().with_target_partitions(2);
    let state = builder.with_config(config).with_default_features().with_tadoc().build();
    let context = SessionContext::new_with_state(state);
    for sql in before {
        batches(&context, sql).await.unwrap();
    }
    context
}

async fn rows(context: &SessionContext, sql: &str) -> Result<String> {
    Ok(pretty_format_batches(&batches(context, sql).await?).unwrap().to_string())
}

/// A statement that runs in a new session each time.
struct Trial<'a> {
    /// A function that restores the files to their first state.
    prepare: &'a dyn Fn(),
    /// Statements to run before the statement.
    before: Vec<String>,
    sql: String,
    /// For a statement that writes: statements that read the result, with the answer in the last
    /// one.
    look: Vec<String>,
    folder: &'a Path,
}

impl Trial<'_> {
    fn query(before: &[String], sql: String) -> Self {
        let before = before.into();
        let folder = Path::new("/");
        Self { prepare: &|| {}, before, sql, look: Vec::new(), folder }
    }

    async fn session(&self) -> (Arc<DenyingPool>, SessionContext) {
        (self.prepare)();
        let pool = DenyingPool::new();
        let context = session(&pool, &self.before).await;
        (pool, context)
    }

    /// Returns the state after the statement: its answer, or the content of the files if it writes.
    async fn state(&self, context: &SessionContext, answer: &str) -> String {
        if self.look.is_empty() {
            return answer.to_owned();
        }
        let mut found = Ok(String::new());
        for sql in &self.look {
            found = rows(context, sql).await;
        }
        let names = fixtures::files_below(self.folder);
        found.unwrap_or_else(|_| format!("nothing but {names:?}"))
    }

    /// Runs the statement with each request for memory refused, alone and with all requests behind
    /// it, until no request is left. Each time the statement does everything, or does nothing and
    /// reports a lack of memory. Then it does everything in the same session. Returns the number of
    /// requests that were refused first.
    async fn with_each_refused(&self) -> usize {
        let (pool, context) = self.session().await;
        let nothing = self.state(&context, "nothing").await;
        let answer = rows(&context, &self.sql).await.unwrap_or_else(|e| panic!("{}\n{e}", self.sql));
        let all = self.state(&context, &answer).await;
        assert_ne!(nothing, all, "{}", self.sql);
        if self.look.is_empty() {
            rows(&context, &self.sql).await.unwrap();
        }
        let kept_bytes = pool.reserved();
        drop(context);
        wait_until("the account is at zero", || pool.reserved() == 0).await;
        let mut num_refused = 0;
        for is_alone in [true, false] {
            for first in 0.. {
                let refused = first..if is_alone { first + 1 } else { usize::MAX };
                if !self.with_refused(refused, &nothing, &all, kept_bytes).await {
                    break;
                }
                num_refused += 1;
            }
        }
        num_refused
    }

    /// Returns true if a request was refused.
    async fn with_refused(&self, refused: Range<usize>, nothing: &str, all: &str, kept_bytes: usize) -> bool {
        let (pool, context) = self.session().await;
        pool.refuse(refused.clone());
        let mut answer = rows(&context, &self.sql).await;
        let of = pool.refuse(0..0);
        let what = format!("{}\nrequests {refused:?}, of {of:?}", self.sql);
        if let Err(error) = answer {
            let root = error.find_root();
            let is_typed = matches!(root, DataFusionError::ResourcesExhausted(_));
            assert!(is_typed && of.is_some(), "{what}\n{error}");
            assert_eq!(self.state(&context, "nothing").await, nothing, "{what}\n{error}");
            answer = rows(&context, &self.sql).await;
        }
        let answer = answer.unwrap_or_else(|error| panic!("{what}\n{error}"));
        assert_eq!(self.state(&context, &answer).await, all, "{what}");
        // The versions that a writer keeps depend on which of them it read, and how often.
        let is_little = || !self.look.is_empty() || pool.reserved() <= kept_bytes;
        wait_until(&format!("no more than {kept_bytes} is held: {what}"), is_little).await;
        drop(context);
        wait_until(&format!("the account is at zero: {what}"), || pool.reserved() == 0).await;
        of.is_some()
    }
}

fn write_texts(dir: &Path) -> String {
    let text = |at: usize| {
        let own: String = (0..20).map(|word| format!("{at}_{word} ")).collect();
        own + &format!("the {} quick brown foxes of the caf\u{e9} jump\n", at % 7).repeat(4 + at)
    };
    let documents: Vec<(String, Vec<u8>)> = (0..12).map(|at| (format!("{at:02}.txt"), text(at).into_bytes())).collect();
    let borrowed: Vec<(&str, &[u8])> = documents.iter().map(|(path, text)| (path.as_str(), text.as_slice())).collect();
    let path = dir.join("texts.tadoc");
    let options = IngestOptions { block_bytes: 1_500, ..IngestOptions::default() };
    fixtures::write_corpus(&path, options, &borrowed);
    path.display().to_string()
}

/// Returns the statement after which `corpus` is read in portions.
async fn limit_for_portions(corpus: &str) -> String {
    for limit in (2..40).rev().map(|quarters| quarters << 18) {
        let limit = format!("SET tadoc.max_memory_bytes = '{limit}'");
        let context = session(&DenyingPool::new(), std::slice::from_ref(&limit)).await;
        let plan = rows(&context, &format!("EXPLAIN SELECT * FROM documents('{corpus}')")).await;
        if plan.is_ok_and(|plan| plan.contains("TadocPortionsExec")) {
            return limit;
        }
    }
    panic!("no limit makes portions of {corpus}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_survive_each_refusal() {
    let dir = TempDir::new().unwrap();
    let corpus = write_texts(dir.path());
    for (call, number, _) in CALLS {
        let call = call.replace('@', &format!("'{corpus}'"));
        let trial = Trial::query(&[][..], format!("SELECT count(*), sum({number}) FROM {call}"));
        assert!(trial.with_each_refused().await > 0, "{call} asks for no memory");
    }
}

/// The scans are versions with edits, tables, GSST files, portions, and plans of DataFusion over
/// their rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_scans_survive_each_refusal() {
    let dir = TempDir::new().unwrap();
    let corpus = write_texts(dir.path());
    let notes = dir.path().join("notes");
    fixtures::living::write_notes(&notes);
    let notes = notes.display();
    let gsst = dir.path().join("texts.parquet").display().to_string();
    let copy = format!("COPY (SELECT path, text FROM documents('{corpus}')) TO '{gsst}' STORED AS GSST");
    session(&DenyingPool::new(), &[copy]).await;
    let create =
        |name, format, location: &str| format!("CREATE EXTERNAL TABLE {name} STORED AS {format} LOCATION '{location}'");
    let tables = [create("g", "GSST", &gsst), create("d", "TADOC", &notes.to_string())];
    let little = [limit_for_portions(&corpus).await];
    for (before, sql) in [
        (&tables[..], "SELECT count(*), max(length(text)) FROM g WHERE text LIKE '%3_1%'".to_owned()),
        (&tables[..], "SELECT path, text FROM g ORDER BY text DESC, path".to_owned()),
        (&tables[..], "SELECT * FROM d ORDER BY doc_id".to_owned()),
        (&tables[..], "SELECT count(*), max(version) FROM \"d$edits\"".to_owned()),
        (&tables[..], format!("SELECT word, count FROM word_count('{notes}') ORDER BY word")),
        (&tables[..], format!("SELECT sum(count) FROM sequence_count('{notes}', n => 2, version => 3)")),
        (&[], format!("SELECT word, sum(count) FROM term_vector('{corpus}') GROUP BY word ORDER BY 2, 1")),
        (&little[..], format!("SELECT count(*), sum(count) FROM sequence_count('{corpus}', n => 2)")),
        (&little[..], format!("SELECT count(*), sum(doc_count) FROM inverted_index('{corpus}')")),
        (&little[..], format!("SELECT count(*), sum(octet_length(text)) FROM documents('{corpus}')")),
    ] {
        let num_refused = Trial::query(before, sql.clone()).with_each_refused().await;
        assert!(num_refused > 0, "{sql} asks for no memory");
    }
}

/// A statement writes everything or nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_survive_each_refusal() {
    let dir = TempDir::new().unwrap();
    let corpus = write_texts(dir.path());
    let notes = dir.path().join("notes");
    let out = dir.path().join("out");
    let prepare = || {
        for folder in [&notes, &out] {
            if folder.exists() {
                fs::remove_dir_all(folder).unwrap();
            }
        }
        fs::create_dir(&out).unwrap();
        fixtures::living::write_notes(&notes);
    };
    let notes_table = format!("CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{}'", notes.display());
    let all_of_d = vec!["SELECT * FROM d ORDER BY doc_id".to_owned()];
    let [tadoc, gsst] = ["x.tadoc", "x.parquet"].map(|name| out.join(name).display().to_string());
    let rows = format!("(SELECT path, text FROM documents('{corpus}'))");
    let table = format!("CREATE OR REPLACE EXTERNAL TABLE x STORED AS GSST LOCATION '{gsst}'");
    let summed = |of: &str| format!("SELECT count(*), sum(octet_length(text)) FROM {of}");
    let writers = [
        (format!("INSERT INTO d (path, text) SELECT path, text FROM documents('{corpus}')"), all_of_d.clone()),
        ("UPDATE d SET text = concat(text, ' more') WHERE doc_id <> 1".to_owned(), all_of_d.clone()),
        ("DELETE FROM d WHERE text LIKE '%be%'".to_owned(), all_of_d.clone()),
        ("INSERT INTO \"d$edits\" (doc_id, text) SELECT doc_id, path FROM d".to_owned(), all_of_d),
        (format!("COPY {rows} TO '{tadoc}'"), vec![summed(&format!("documents('{tadoc}')"))]),
        (format!("COPY {rows} TO '{gsst}' STORED AS GSST"), vec![table, summed("x")]),
    ];
    for (sql, look) in writers {
        let before = vec![notes_table.clone()];
        let trial = Trial { prepare: &prepare, before, sql, look, folder: &out };
        let num_refused = trial.with_each_refused().await;
        assert!(num_refused > 0, "{} asks for no memory", trial.sql);
    }
}
