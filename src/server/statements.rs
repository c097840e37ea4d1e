//! Statements of clients: from a text to a stream of rows, within limits.
//!
//! ```text
//! request ─▶ slot ─▶ turn ─▶ plan ─▶ read only? ─▶ rows ─▶ pieces ─▶ channel ─▶ response
//!            │       │                             └ statement memory    │
//!            │       └ as many as two per core; given back after a second│
//!            └ too many: refused                                         └ full for 30 s: ended
//! ```
//!
//! All statements share one session, so corpora stay open. Statements run on threads of their own,
//! so that connections are served while they compute. A turn makes short statements wait in order
//! instead of slowing each other down; a long statement gives its turn back, so that nobody waits
//! for it. Planning cannot be interrupted, so it runs on a thread of its own.
//!
//! A statement ends when its time is over, when the client leaves or cancels it, or when the client
//! takes no rows. Its stream is dropped then, which ends the tasks of DataFusion, and the
//! computations of table functions at their next batch.
//!
//! A statement has a limit of memory of its own, inside the limit of the process. Its operators take their memory
//! from a [`StatementPool`], which passes each request on to the pool of the session. Corpora that stay open belong
//! to no statement and are not counted.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::resources_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size,
};
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, SetExpr};
use futures::TryStreamExt;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::connections::InUse;
use crate::metrics::Metrics;
use crate::refusal::{Kind, Refusal};
use crate::wire::{self, Given};
use datafusion_tadoc::{Stop, contain_panics_of, is_memory_of_corpora, notices};
use tadoc_session::{Outcome, Session, parameter_names, runtime_of};

/// Maximum bytes of a statement.
pub const MAX_STATEMENT_BYTES: usize = 1 << 20;
/// Threads of statements. Many, so that the system shares the cores among statements that compute for
/// long without a pause.
const STATEMENT_THREADS: usize = 64;
/// Maximum number of threads that load corpora and compute for table functions.
const MAX_BLOCKING: usize = 2048;
/// Time after which a statement gives its turn back.
const TURN: Duration = Duration::from_secs(1);
/// Time in which a client has to take a batch of rows.
const STALL: Duration = Duration::from_secs(30);
/// Time in which a client has to take an error behind its rows.
const LAST: Duration = Duration::from_secs(5);

/// Creates the threads that statements run on.
///
/// # Errors
/// The system cannot start them.
pub fn threads_of_statements() -> Outcome<Runtime> {
    let num_cores = available_parallelism().map_or(1, usize::from);
    runtime_of(STATEMENT_THREADS.max(num_cores), MAX_BLOCKING)
}

/// Limits of statements.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum time from the request to the last row.
    pub time: Duration,
    /// Maximum memory of one statement.
    pub memory_bytes: usize,
    /// Maximum number of statements that wait, run or send rows.
    pub num_statements: usize,
    /// Number of short statements that run at a time.
    pub num_turns: usize,
}

/// The statements of all clients; see the module docs.
pub struct Statements {
    session: Session,
    threads: Handle,
    limits: Limits,
    metrics: Arc<Metrics>,
    turns: Arc<Semaphore>,
    /// Wakes the running statements, to cancel them.
    running: Mutex<HashMap<Uuid, Arc<Notify>>>,
}

/// The text of a statement, with the values of its parameters.
#[derive(Debug, Clone, Default)]
pub struct Text {
    /// The number under which the statement can be cancelled.
    pub id: Uuid,
    /// One statement.
    pub sql: String,
    /// The values of the parameters.
    pub parameters: Given,
}

/// The columns of a statement, and the notices about it.
pub struct Planned {
    /// The schema of all batches.
    pub schema: SchemaRef,
    /// Notices of parts that its author may not have meant.
    pub notices: Vec<String>,
}

impl Planned {
    fn from_plan(plan: &LogicalPlan) -> Self {
        Self { schema: wire::schema(plan.schema().inner()), notices: notices(plan) }
    }
}

/// The rows of a statement that has started. Dropping them ends the statement.
pub struct Rows {
    /// The schema of all batches.
    pub schema: SchemaRef,
    /// Notices of parts that the author of the statement may not have meant.
    pub notices: Vec<String>,
    batches: Receiver<Result<RecordBatch, Refusal>>,
    /// Set when all rows were sent. Without it an end of the channel is no end of the rows.
    are_all: Arc<AtomicBool>,
    is_ended: bool,
    /// Keeps the connection from being closed as unused.
    _in_use: InUse,
}

impl Rows {
    /// Returns the next batch.
    ///
    /// # Errors
    /// The statement fails, or it was ended before its last row. The error may have found no place
    /// behind the rows that the client did not take.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, Refusal>> {
        if self.is_ended {
            return None;
        }
        let next = self.batches.recv().await;
        self.is_ended = !matches!(next, Some(Ok(_)));
        match next {
            None if !self.are_all.load(Ordering::Acquire) => {
                let text = "the statement was ended before its last row";
                Some(Err(Refusal::new(Kind::Stalled, text)))
            }
            next => next,
        }
    }
}

/// A statement as prepared for a client.
pub struct Description {
    /// The columns of the rows. `None` if they depend on the values of parameters.
    pub columns: Option<SchemaRef>,
    /// The parameters, in order. The types are those of the plan, or text.
    pub parameters: Schema,
}

impl Statements {
    /// Creates the statements of `session`, which run on `threads`.
    pub fn new(session: Session, threads: Handle, limits: Limits, metrics: Arc<Metrics>) -> Arc<Self> {
        let turns = Arc::new(Semaphore::new(limits.num_turns));
        Arc::new(Self { session, threads, limits, metrics, turns, running: Mutex::default() })
    }

    /// Returns the session of all statements.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the counters of the server.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns the bytes that the memory pool of the session has given out.
    pub fn reserved_bytes(&self) -> usize {
        self.session.context().runtime_env().memory_pool.reserved()
    }

    /// Starts the statement `text`.
    ///
    /// # Errors
    /// There are too many statements, or it fails before its first row.
    pub async fn run(self: &Arc<Self>, text: Text, in_use: InUse) -> Result<Rows, Refusal> {
        let slot = self.slot()?;
        let (sender, batches) = channel(1);
        let (tell, started) = oneshot::channel();
        let statements = Arc::clone(self);
        let task_in_use = in_use.clone();
        let are_all = Arc::new(AtomicBool::new(false));
        let tell_all = Arc::clone(&are_all);
        // On the threads of connections: those of statements may all compute when the time is over.
        tokio::spawn(async move {
            let _slot = slot;
            let is_whole = statements.answer(&text, &sender, tell, task_in_use).await;
            tell_all.store(is_whole, Ordering::Release);
        });
        let broken = |_| Refusal::new(Kind::Broken, "the statement broke down");
        let Planned { schema, notices } = started.await.map_err(broken)??;
        Ok(Rows { schema, notices, batches, are_all, is_ended: false, _in_use: in_use })
    }

    /// Cancels the running statement `id`, and says whether there was one.
    pub fn cancel(&self, id: Uuid) -> bool {
        let running = self.running().get(&id).cloned();
        running.inspect(|running| running.notify_one()).is_some()
    }

    /// Returns the columns of the rows of `text`, and the notices about it, without running it.
    ///
    /// # Errors
    /// There are too many statements, or it cannot be planned.
    pub async fn columns(self: &Arc<Self>, text: Text) -> Result<Planned, Refusal> {
        let columns = async move |statements: Arc<Self>| Ok(Planned::from_plan(&statements.plan(&text).await?));
        self.planned(columns).await
    }

    /// Describes `sql`, which may have parameters without values.
    ///
    /// # Errors
    /// There are too many statements, or it cannot be planned.
    pub async fn describe(self: &Arc<Self>, sql: String) -> Result<Description, Refusal> {
        self.planned(async move |statements: Arc<Self>| statements.description(&sql).await).await
    }

    /// Runs `work`, such as reading a catalog, on the threads of statements, within their limits.
    ///
    /// # Errors
    /// There are too many statements, or `work` fails, or its time is over.
    pub async fn planned<T, F>(
        self: &Arc<Self>,
        work: impl FnOnce(Arc<Self>) -> F + Send + 'static,
    ) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Refusal>>,
    {
        let slot = self.slot()?;
        let statements = Arc::clone(self);
        let threads = self.threads.clone();
        let planned = self.threads.spawn_blocking(move || {
            let _slot = slot;
            threads.block_on(async {
                let _turn = statements.turn().await;
                contain_panics_of("the statement", work(Arc::clone(&statements))).await?
            })
        });
        let broken = |_| Refusal::new(Kind::Broken, "the statement broke down");
        timeout(self.limits.time, planned).await.map_err(|_| self.too_late())?.map_err(broken)?
    }

    /// Runs a statement to its end. Returns true if all rows were sent.
    async fn answer(
        self: &Arc<Self>,
        text: &Text,
        sender: &Sender<Result<RecordBatch, Refusal>>,
        tell: oneshot::Sender<Result<Planned, Refusal>>,
        in_use: InUse,
    ) -> bool {
        let begun = Instant::now();
        let tell = Arc::new(Mutex::new(Some(tell)));
        let cancelled = Arc::new(Notify::new());
        self.running().insert(text.id, Arc::clone(&cancelled));
        // In a task of its own: an operator may compute for long without a pause, and time goes on meanwhile.
        let stop = Stop::default();
        let mut work = self.threads.spawn({
            let this = Arc::clone(self);
            let text = text.clone();
            let sender = sender.clone();
            let tell = Arc::clone(&tell);
            let stop = stop.clone();
            async move {
                let rows = this.produce(&text, &sender, &tell, &stop);
                contain_panics_of("the statement", rows).await
            }
        });
        let outcome = tokio::select! {
            outcome = timeout(self.limits.time, &mut work) => match outcome {
                Ok(Ok(contained)) => contained.map_err(Refusal::from).and_then(|outcome| outcome),
                Ok(Err(_)) => Err(Refusal::new(Kind::Broken, "the statement broke down")),
                Err(_) => Err(self.too_late()),
            },
            () = sender.closed() => Err(Refusal::new(Kind::Cancelled, "the client has left")),
            () = cancelled.notified() => Err(Refusal::new(Kind::Cancelled, "cancelled")),
        };
        work.abort();
        stop.set();
        self.running().remove(&text.id);
        self.metrics.end(outcome.as_ref().err().map(|refusal| refusal.kind), begun.elapsed());
        let Err(refusal) = outcome else { return true };
        let tell = tell.lock().unwrap_or_else(PoisonError::into_inner).take();
        match tell {
            // The client may have left.
            Some(tell) => drop(tell.send(Err(refusal))),
            None if refusal.kind == Kind::Stalled => in_use.close(),
            None => {
                if timeout(LAST, sender.send(Err(refusal))).await.is_err() {
                    in_use.close();
                }
            }
        }
        false
    }

    async fn produce(
        self: &Arc<Self>,
        text: &Text,
        sender: &Sender<Result<RecordBatch, Refusal>>,
        tell: &Mutex<Option<oneshot::Sender<Result<Planned, Refusal>>>>,
        stop: &Stop,
    ) -> Result<(), Refusal> {
        let _turn = self.turn().await;
        let planner = Arc::clone(self);
        let planned_text = text.clone();
        let plan = move || planner.threads.block_on(planner.plan(&planned_text));
        let planned = self.threads.spawn_blocking(plan);
        let broken = |_| Refusal::new(Kind::Broken, "planning broke down");
        let plan = planned.await.map_err(broken)??;
        let planned = Planned::from_plan(&plan);
        let schema = Arc::clone(&planned.schema);
        let session_pool = Arc::clone(&self.session.context().runtime_env().memory_pool);
        let pool = StatementPool::new(session_pool, self.limits.memory_bytes);
        let rows = self.session.start_in(plan, Some(pool), Some(stop)).await?;
        let tell = tell.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tell) = tell {
            // The client may have left, which the channel of rows shows too.
            let _ = tell.send(Ok(planned));
        }
        let send = async |mut stream: SendableRecordBatchStream| {
            while let Some(batch) = stream.try_next().await? {
                for piece in wire::pieces(&batch, &schema) {
                    let piece = piece?;
                    let num_rows = piece.num_rows() as u64;
                    let Ok(sent) = timeout(STALL, sender.send(Ok(piece))).await else {
                        let text = "the client has taken no rows for 30 s";
                        return Ok(Err(Refusal::new(Kind::Stalled, text)));
                    };
                    if sent.is_err() {
                        return Ok(Err(Refusal::new(Kind::Cancelled, "the client has left")));
                    }
                    self.metrics.rows.fetch_add(num_rows, Ordering::Relaxed);
                }
            }
            Ok(Ok(()))
        };
        rows.take(send).await?
    }

    /// Plans `text`. Takes as long as it takes, so it runs on a thread of its own.
    async fn plan(&self, text: &Text) -> Result<LogicalPlan, Refusal> {
        let mut statement = self.parsed(&text.sql)?;
        let mut parameters = text.parameters.bound(&mut statement)?;
        parameters.replace(&mut statement)?;
        parameters.finish()?;
        self.plan_of(statement).await
    }

    /// Returns the refusal of `sql`, which a client sent as a change.
    pub fn refuse_change(&self, sql: &str) -> Refusal {
        match self.parsed(sql) {
            Ok(_) => Refusal::new(Kind::Forbidden, "this server only reads: run the statement as a query"),
            Err(refusal) => refusal,
        }
    }

    /// Parses `sql`. A change is refused before anything else about it is looked at: parameters, tables and
    /// columns of a statement that never runs are of no use to a client.
    fn parsed(&self, sql: &str) -> Result<Statement, Refusal> {
        if sql.len() > MAX_STATEMENT_BYTES {
            return Err(Refusal::new(Kind::Invalid, "the statement has more than 1 MiB"));
        }
        let statement = self.session.parse_one(sql)?;
        if reads_only(&statement) { Ok(statement) } else { Err(only_reads()) }
    }

    async fn plan_of(&self, statement: Statement) -> Result<LogicalPlan, Refusal> {
        let plan = self.session.plan_alone(statement).await?;
        check_reads_only(&plan)?;
        Ok(plan)
    }

    async fn description(&self, sql: &str) -> Result<Description, Refusal> {
        let mut statement = self.parsed(sql)?;
        let names = parameter_names(&mut statement);
        let planned = self.plan_of(statement).await;
        let types = match &planned {
            Ok(plan) => plan.get_parameter_types().unwrap_or_default(),
            Err(_) => HashMap::default(),
        };
        let field = |name: &String| {
            let planned_type = types.get(&format!("${name}")).cloned().flatten();
            Field::new(name, planned_type.unwrap_or(DataType::Utf8), true)
        };
        let parameters = wire::schema(&Schema::new(names.iter().map(field).collect::<Vec<_>>()));
        let parameters = parameters.as_ref().clone();
        match planned {
            Ok(plan) => {
                let columns = Some(wire::schema(plan.schema().inner()));
                Ok(Description { columns, parameters })
            }
            // Arguments of table functions are literals, so the plan needs the values.
            Err(refusal) if refusal.kind == Kind::Invalid && !names.is_empty() => {
                Ok(Description { columns: None, parameters })
            }
            Err(refusal) => Err(refusal),
        }
    }

    fn slot(&self) -> Result<Slot, Refusal> {
        let slot = Slot(Arc::clone(&self.metrics));
        let num_open = slot.0.statements.fetch_add(1, Ordering::Relaxed);
        if num_open < self.limits.num_statements as u64 {
            Ok(slot)
        } else {
            let text = format!("the server has {num_open} statements open, and takes no more; try again later");
            self.metrics.end(Some(Kind::Exhausted), Duration::ZERO);
            Err(Refusal::new(Kind::Exhausted, text))
        }
    }

    /// Waits for a turn. It ends when the returned value is dropped, or after a second.
    async fn turn(&self) -> JoinSet<()> {
        let mut turn = JoinSet::new();
        let permit: Option<OwnedSemaphorePermit> = Arc::clone(&self.turns).acquire_owned().await.ok();
        let give_back = async move {
            sleep(TURN).await;
            drop(permit);
        };
        turn.spawn_on(give_back, &self.threads);
        turn
    }

    fn too_late(&self) -> Refusal {
        let limit_s = self.limits.time.as_secs();
        Refusal::new(
            Kind::TimedOut,
            format!(
                "the statement has run for {limit_s} s, which is all a statement may take; ask for \
                 less, or let the server be started with a larger --timeout"
            ),
        )
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<Notify>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A statement that is open.
struct Slot(Arc<Metrics>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.statements.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Refuses all plans but those that only read: queries, EXPLAIN, SHOW and DESCRIBE.
fn check_reads_only(plan: &LogicalPlan) -> Result<(), Refusal> {
    let allowed = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    allowed.verify_plan(plan).map_err(|_| only_reads())
}

/// Returns true unless `statement` changes data, a table or the session.
fn reads_only(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(statement) => is_query(statement),
        Statement::Explain(explained) => reads_only(&explained.statement),
        Statement::CreateExternalTable(_) | Statement::CopyTo(_) | Statement::Reset(_) => false,
    }
}

fn is_query(statement: &ast::Statement) -> bool {
    match statement {
        // `WITH … INSERT` is a query for the parser.
        ast::Statement::Query(query) => !matches!(
            query.body.as_ref(),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
        ),
        ast::Statement::Explain { statement, .. } => is_query(statement),
        other => matches!(
            other,
            ast::Statement::ExplainTable { .. }
                | ast::Statement::ShowColumns { .. }
                | ast::Statement::ShowCreate { .. }
                | ast::Statement::ShowFunctions { .. }
                | ast::Statement::ShowTables { .. }
                | ast::Statement::ShowVariable { .. }
                | ast::Statement::ShowVariables { .. }
        ),
    }
}

/// Returns the refusal of a change.
pub fn only_reads() -> Refusal {
    let text = "this server only reads: SELECT, EXPLAIN, SHOW and DESCRIBE; change corpora with \
                the command tadoc";
    Refusal::new(Kind::Forbidden, text)
}

/// The memory pool of one statement; see the module docs.
#[derive(Debug)]
pub struct StatementPool {
    session: Arc<dyn MemoryPool>,
    limit_bytes: usize,
    used_bytes: AtomicUsize,
}

impl StatementPool {
    /// Creates a pool of `limit_bytes` inside the pool of the session.
    pub fn new(session: Arc<dyn MemoryPool>, limit_bytes: usize) -> Arc<Self> {
        Arc::new(Self { session, limit_bytes, used_bytes: AtomicUsize::new(0) })
    }

    fn add(&self, additional: usize) -> Result<()> {
        let add = |used: usize| used.checked_add(additional).filter(|&used| used <= self.limit_bytes);
        let added = self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        added.map(drop).map_err(|used| {
            let [used, limit] = [used, self.limit_bytes].map(human_readable_size);
            resources_datafusion_err!(
                "the statement has {used} and may not take {} more: a statement may take {limit}; \
                 ask for fewer rows, or let the server be started with a larger --statement-memory",
                human_readable_size(additional)
            )
        })
    }
}

impl fmt::Display for StatementPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.session)
    }
}

impl MemoryPool for StatementPool {
    fn name(&self) -> &str {
        "statement"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.session.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.session.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        if !is_shared(reservation) {
            self.used_bytes.fetch_add(additional, Ordering::Relaxed);
        }
        self.session.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        if !is_shared(reservation) {
            self.used_bytes.fetch_sub(shrink, Ordering::Relaxed);
        }
        self.session.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if is_shared(reservation) {
            return self.session.try_grow(reservation, additional);
        }
        self.add(additional)?;
        let grown = self.session.try_grow(reservation, additional);
        if grown.is_err() {
            self.used_bytes.fetch_sub(additional, Ordering::Relaxed);
        }
        grown
    }

    fn reserved(&self) -> usize {
        self.session.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.session.memory_limit()
    }
}

fn is_shared(reservation: &MemoryReservation) -> bool {
    is_memory_of_corpora(reservation.consumer().name())
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    use super::*;

    #[test]
    fn a_statement_has_its_limit_and_corpora_have_that_of_the_session() {
        let session: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
        let pools = [(), ()].map(|()| StatementPool::new(Arc::clone(&session), 300));
        let [one, two] = pools.map(|pool| pool as Arc<dyn MemoryPool>);
        let sort = MemoryConsumer::new("Sort").register(&one);
        sort.try_grow(300).unwrap();
        let refused = sort.try_grow(1).unwrap_err().to_string();
        assert!(refused.contains("--statement-memory"), "{refused}");
        let corpus = MemoryConsumer::new("TadocCorpus[x]").register(&one);
        corpus.try_grow(600).unwrap();
        let other = MemoryConsumer::new("Sort").register(&two);
        assert!(other.try_grow(200).is_err());
        // A refusal of the session takes nothing from the statement.
        drop(corpus);
        other.try_grow(300).unwrap();
        drop(sort);
        assert_eq!(session.reserved(), 300);
    }
}
