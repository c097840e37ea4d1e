//! Test of a mixed load for a given time: `ENDURANCE_SECONDS=28800 cargo test --test endurance --
//! --nocapture`.
//!
//! ```text
//! writer    INSERT, UPDATE, DELETE, edits in the session │ ingest, edit, optimize by the binary,
//!           a third of these runs is killed
//! readers   every function, in a session with much memory, in one with little memory, and in new
//!           sessions, on a version that the writer may replace meanwhile
//! usage     resident memory and open files of this process, four times a second
//! ```
//!
//! One folder is a living corpus; from time to time another corpus replaces it. Every answer is
//! compared with plain documents (`model`) of a moment between the beginning of the statement and
//! its end. After a kill the documents are those before the run or those after it. In the last
//! third of the run, memory and open files must not grow (`usage`). These belong to the process, so
//! this suite is a binary of its own. Without the variable it takes 5 seconds.

#![allow(clippy::unwrap_used, clippy::panic)]

mod model;
mod usage;

use std::collections::{BTreeMap, VecDeque};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::TadocSessionStateBuilderExt;
use testkit::command::{Folder, Ran};
use testkit::random::Random;
use tokio::sync::RwLock;

use model::{Model, Question, text};
use usage::Usage;

/// Approximate number of documents at a time.
const NUM_DOCS: usize = 40;
/// Number of ids after which another corpus takes the place. Ids of documents are never used again.
const MAX_IDS: u64 = 400;
/// Number of states that are kept for readers that began when one of them was the latest.
const NUM_STATES: usize = 512;
/// Memory of the sessions. Versions that were read fill half of it, and that is the warm-up.
const PLENTY_BYTES: usize = 64 << 20;
const LITTLE_BYTES: usize = 24 << 20;

/// States of the corpus. A statement that begins now may find the acknowledged state or a later
/// one.
#[derive(Debug, Default)]
struct History {
    states: VecDeque<Arc<Model>>,
    /// Number of the first state.
    first: usize,
    acknowledged: usize,
}

impl History {
    /// Adds the state `model`, which readers may find from now on.
    fn begin(&mut self, model: &Model) {
        self.states.push_back(Arc::new(model.clone()));
        if self.states.len() > NUM_STATES {
            self.states.pop_front();
            self.first += 1;
        }
    }

    /// Marks the last state as acknowledged.
    fn acknowledge(&mut self) {
        self.acknowledged = self.first + self.states.len() - 1;
    }

    /// Returns the states from number `from` on.
    fn since(&self, from: usize) -> Vec<Arc<Model>> {
        assert!(from >= self.first, "{NUM_STATES} commits during one statement");
        self.states.iter().skip(from - self.first).map(Arc::clone).collect()
    }
}

/// Data shared by writer and readers.
struct Scene {
    folder: Folder,
    place: String,
    history: Mutex<History>,
    /// A lock that statements hold for reading. A change to another corpus waits for them.
    in_use: RwLock<()>,
    plenty: SessionContext,
    little: SessionContext,
    done: Mutex<BTreeMap<&'static str, usize>>,
    is_over: AtomicBool,
}

fn session(memory_bytes: usize) -> SessionContext {
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(memory_bytes, 1.0).build_arc();
    let config = SessionConfig::new().with_target_partitions(2);
    let builder = SessionStateBuilder::new().with_config(config).with_runtime_env(runtime.unwrap());
    SessionContext::new_with_state(builder.with_default_features().with_tadoc().build())
}

/// Returns rows as text, in the order of the text.
async fn rows(context: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let batches = context.sql(sql).await?.collect().await?;
    let options = FormatOptions::default();
    let mut rows = Vec::new();
    for batch in &batches {
        let columns = batch.columns().iter();
        let columns: Vec<ArrayFormatter<'_>> =
            columns.map(|column| ArrayFormatter::try_new(column, &options)).collect::<std::result::Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| column.value(row).to_string());
            rows.push(cells.collect::<Vec<_>>().join(","));
        }
    }
    rows.sort_unstable();
    Ok(rows)
}

impl Scene {
    fn new() -> Self {
        let folder = Folder::for_program(env!("CARGO_BIN_EXE_tadoc"));
        let place = folder.join("notes").display().to_string();
        Self {
            folder,
            place,
            history: Mutex::default(),
            in_use: RwLock::default(),
            plenty: session(PLENTY_BYTES),
            little: session(LITTLE_BYTES),
            done: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    fn count(&self, what: &'static str) {
        *self.done.lock().unwrap().entry(what).or_default() += 1;
    }

    /// Asks questions until the run is over.
    async fn read(self: Arc<Self>, seed: u64) {
        let mut random = Random(seed);
        while !self.is_over.load(Ordering::Relaxed) {
            let _in_use = self.in_use.read().await;
            let question = Question::any(&mut random);
            let from = self.history.lock().unwrap().acknowledged;
            let new;
            let (context, what) = match random.below(8) {
                0 => {
                    new = session(LITTLE_BYTES);
                    (&new, "read in a new session")
                }
                1..4 => (&self.little, "read in little memory"),
                _ => (&self.plenty, "read"),
            };
            let answer = match rows(context, &question.sql(&self.place)).await {
                Ok(answer) => answer,
                Err(error) => {
                    let root = error.find_root();
                    let is_typed = matches!(root, DataFusionError::ResourcesExhausted(_));
                    assert!(is_typed, "{question:?}\n{error}");
                    self.count("refused for want of memory");
                    continue;
                }
            };
            let states = self.history.lock().unwrap().since(from);
            let is_right = states.iter().any(|model| question.answer(model) == answer);
            assert!(is_right, "{question:?} of {} states\n{answer:#?}\n{states:#?}", states.len());
            self.count(what);
        }
    }

    /// Runs a statement that changes the corpus to `after`.
    async fn change(&self, what: &'static str, sql: &str, after: &Model) {
        self.history.lock().unwrap().begin(after);
        rows(&self.plenty, sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
        self.history.lock().unwrap().acknowledge();
        self.count(what);
    }

    /// Runs the binary, which changes the corpus to `after`, and may kill it. Returns the documents
    /// that are there then.
    async fn run(&self, arguments: &[&str], kill_after: Option<Duration>, before: Model, after: Model) -> Model {
        self.history.lock().unwrap().begin(&after);
        let mut command = self.folder.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let ran = tokio::task::spawn_blocking(move || {
            if let Some(moment) = kill_after {
                std::thread::sleep(moment);
                child.kill().unwrap();
            }
            Ran::from(child.wait_with_output().unwrap())
        });
        let ran = ran.await.unwrap();
        assert!(ran.status == 0 || kill_after.is_some() && ran.status == -1, "{arguments:?}\n{}", ran.stderr);
        self.count(if ran.status == 0 { "run of the binary" } else { "kill" });
        let found = rows(&self.plenty, &Question::Documents.sql(&self.place)).await.unwrap();
        let happened = found == Question::Documents.answer(&after);
        let kept = Question::Documents.answer(&before);
        assert!(happened || ran.status != 0 && found == kept, "{arguments:?}\n{found:#?}\n{kept:#?}");
        let now = if happened { after } else { before };
        let mut history = self.history.lock().unwrap();
        history.begin(&now);
        history.acknowledge();
        now
    }

    /// Replaces the corpus by an empty one.
    async fn begin_anew(&self) -> Model {
        let _alone = self.in_use.write().await;
        if self.plenty.table_exist("d").unwrap() {
            rows(&self.plenty, "DROP TABLE d").await.unwrap();
            std::fs::remove_dir_all(&self.place).unwrap();
        }
        let create = format!(
            "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{}' OPTIONS ('tadoc.create' 'true')",
            self.place
        );
        rows(&self.plenty, &create).await.unwrap();
        self.count("new corpus");
        let mut history = self.history.lock().unwrap();
        history.begin(&Model::default());
        history.acknowledge();
        Model::default()
    }

    /// Makes one change and returns the documents after it.
    async fn write(&self, mut model: Model, random: &mut Random) -> Model {
        let before = model.clone();
        let num_docs = model.documents.len();
        let mark = text(random);
        if num_docs < 4 || num_docs < NUM_DOCS && random.one_in(3) {
            let documents = [(); 3].map(|()| (format!("{}.txt", random.number()), text(random)));
            let values = documents.each_ref().map(|(path, text)| format!("('{path}', '{text}')"));
            documents.into_iter().for_each(|document| model.add(document));
            let sql = format!("INSERT INTO d (path, text) VALUES {}", values.join(", "));
            self.change("INSERT", &sql, &model).await;
            return model;
        }
        let id = model.any_id(random);
        let kill_after = random.one_in(3).then(|| Duration::from_millis(random.below(400) as u64));
        let appended = format!(" {mark}");
        match random.below(12) {
            0..3 => {
                model.documents.get_mut(&id).unwrap().1.clone_from(&mark);
                let sql = format!("UPDATE d SET text = '{mark}' WHERE doc_id = {id}");
                self.change("UPDATE", &sql, &model).await;
            }
            3..6 => {
                model.documents.remove(&id);
                self.change("DELETE", &format!("DELETE FROM d WHERE doc_id = {id}"), &model).await;
            }
            6..9 => {
                model.documents.get_mut(&id).unwrap().1 += &appended;
                let sql = format!("INSERT INTO \"d$edits\" (doc_id, pos, text) VALUES ({id}, NULL, '{appended}')");
                self.change("edit", &sql, &model).await;
            }
            9 => {
                let name = format!("{}.txt", random.number());
                self.folder.write(&format!("in/{name}"), &mark);
                model.add((name.clone(), mark));
                let arguments = ["ingest", "in", "-o", "notes", "--append"];
                model = self.run(&arguments, kill_after, before, model).await;
                std::fs::remove_file(self.folder.join(&format!("in/{name}"))).unwrap();
            }
            10 => {
                model.documents.get_mut(&id).unwrap().1 += &appended;
                let arguments = ["edit", "notes", "--append", &id.to_string(), &appended];
                model = self.run(&arguments, kill_after, before, model).await;
            }
            _ => {
                let arguments = ["optimize", "notes", "--clean-up", "60s"];
                model = self.run(&arguments, kill_after, before, model).await;
            }
        }
        model
    }

    /// Asks the binary a question, with little memory.
    async fn ask_the_binary(&self, model: &Model, random: &mut Random) {
        let question = Question::any(random);
        let sql = question.sql("notes");
        let arguments = ["sql", "--quiet", "--memory-limit", "64MiB", "--format", "csv", "-c", &sql];
        let mut command = self.folder.command(&arguments);
        let ran = tokio::task::spawn_blocking(move || Ran::from(command.output().unwrap()));
        let text = ran.await.unwrap().ok();
        let mut found: Vec<&str> = text.lines().skip(1).collect();
        found.sort_unstable();
        assert_eq!(found, question.answer(model), "{question:?}");
        self.count("read by the binary");
    }
}

async fn load(scene: Arc<Scene>, run: Duration) {
    let started = Instant::now();
    let mut random = Random(2026);
    let mut model = scene.begin_anew().await;
    let readers: Vec<_> = [1, 2].map(|seed| tokio::spawn(Arc::clone(&scene).read(seed))).into();
    while started.elapsed() < run && !readers.iter().any(|reader| reader.is_finished()) {
        if model.next_id > MAX_IDS {
            model = scene.begin_anew().await;
        }
        model = scene.write(model, &mut random).await;
        if random.one_in(16) {
            scene.ask_the_binary(&model, &mut random).await;
        }
    }
    scene.is_over.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
}

#[test]
fn memory_and_files_stay_flat_and_answers_right() {
    let seconds = std::env::var("ENDURANCE_SECONDS").map_or(5, |text| text.parse().unwrap());
    let run = Duration::from_secs(seconds);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let usage = Usage::start(run);
    let scene = Arc::new(Scene::new());
    let runtime = runtime.unwrap();
    runtime.block_on(load(Arc::clone(&scene), run));
    let pools = [&scene.plenty, &scene.little].map(|c| c.runtime_env().memory_pool.clone());
    println!("{:?}", scene.done.lock().unwrap());
    println!("bytes in the accounts: {:?}", pools.each_ref().map(|pool| pool.reserved()));
    usage.assert_flat();
    drop(runtime);
    drop(scene);
    assert_eq!(pools.map(|pool| pool.reserved()), [0, 0], "bytes in the accounts of sessions that are gone");
}
