//! Sessions with workers, and the sessions of workers.
//!
//! ```text
//! with_workers   planner, codec, tasks, connections ── one session for a coordinator
//! worker_of      one cache and one set of devices ──── one session for each task
//! ```
//!
//! Every request names the version of its sender, and a worker of another version refuses it. A
//! connection that cannot be made, or whose other end is silent, ends in an error after
//! [`SILENT_FOR`]: the machine may be gone, or stopped. The statement then goes on without it (`retries`).
//!
//! The engine runs each stage once, and a recursive query runs its part again and again. Some windows cannot
//! travel. Statements with either run in one process. DataFusion plans the statement behind `EXPLAIN` by itself,
//! without the planner that cuts plans into stages. So this planner plans it again. `EXPLAIN ANALYZE` shows stages
//! without it.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::catalog::Session;
use datafusion::common::exec_datafusion_err;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{LogicalPlan, PlanType, StringifiedPlan};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::grpc::create_worker_client;
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, DistributedExec, DistributedExt, ExecuteTaskRequest, GetWorkerInfoRequest,
    GetWorkerInfoResponse, MaybeEncoded, SessionStateBuilderExt, SetPlanRequest, TaskKey, Worker, WorkerChannel,
    WorkerPlanRewriteEvent, WorkerPlanRewriteEventResponse, WorkerQueryContext, WorkerToCoordinatorMsg,
    display_plan_ascii,
};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use tokio::net::TcpListener;
use tonic::codegen::http::{HeaderMap, HeaderValue};
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use url::Url;

use crate::codec::{WholeSeries, filters_windows, know_windows, name_windows};
use crate::connections::{ASK_EVERY, Connections, Credentials, SILENT_FOR, WORKER_VERSION, check_version, named};
use crate::exchanges::{NumbersForAll, PlainExchanges};
use crate::panics::caught;
use crate::progress::{AllScans, ProgressService, TASK_HEADER, Tasks};
use crate::requests::{Requests, scans_of_request, stop_of_request};
use crate::retries::{Retries, RetryExec};
use crate::tasks::{desired_tasks, divide, note_asked, route, work_of_task};
use crate::workers::WorkerUrls;
use crate::{TadocCodec, TravelError};
use datafusion_tadoc::travel::{AtWorker, BatchRows, CorpusCache, NameParquetFiles, WriteSegmentsExec, object_store};
use datafusion_tadoc::{
    DeviceSession, Spreading, TadocOptions, TadocSessionStateBuilderExt, asking, bound_functions, stoppable,
};

/// Most bytes of a message to a worker. The head of a message says its length, and memory for it is set
/// aside before it has arrived.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// Makes statements of the session run on `workers`. Call it after
/// [`with_tadoc`](TadocSessionStateBuilderExt::with_tadoc).
#[must_use]
pub fn with_workers(builder: SessionStateBuilder, workers: WorkerUrls) -> SessionStateBuilder {
    let mut builder = builder;
    let config = builder.config().get_or_insert_with(SessionConfig::new);
    config.set_extension(Arc::new(Spreading { num_workers: workers.len() }));
    let mut rules = builder.physical_optimizers().take().unwrap_or_default().rules;
    rules.extend(builder.physical_optimizer_rules().take().into_iter().flatten());
    // Workers put the names there: the source of a scan without them can travel.
    rules.retain(|rule| rule.name() != NameParquetFiles.name());
    PlainExchanges::add_to(&mut rules);
    let before = rules.iter().position(|rule| rule.name() == BatchRows.name());
    rules.insert(before.unwrap_or(rules.len()), Arc::new(KeepOrder));
    rules.push(Arc::new(WholeSeries));
    rules.push(Arc::new(NumbersForAll));
    let connections = Connections::new(workers.credentials().clone());
    let mut builder = name_windows(builder)
        .with_physical_optimizer_rules(rules)
        .with_distributed_channel_resolver(connections.clone())
        .with_distributed_worker_resolver(workers.clone())
        .with_distributed_user_codec(TadocCodec)
        .with_distributed_desired_task_count_handler(desired_tasks)
        .with_distributed_scale_up_leaf_node_handler(divide)
        .with_distributed_route_tasks_handler(route)
        .with_distributed_planner();
    let planner = builder.query_planner().take();
    builder.with_query_planner(Arc::new(StagesPlanner { planner, workers, connections }))
}

/// Variant of [`with_workers`] for a session that exists, after [`register_all`](datafusion_tadoc::register_all).
///
/// # Errors
/// Never fails today. The result matches [`register_all`](datafusion_tadoc::register_all).
pub fn register_workers(ctx: &SessionContext, workers: WorkerUrls) -> Result<()> {
    let state = ctx.state_ref();
    let mut state = state.write();
    let session_id = state.session_id().to_owned();
    let builder = SessionStateBuilder::new_from_existing(state.clone());
    *state = with_workers(builder, workers).with_session_id(session_id).build();
    Ok(())
}

/// Makes a session one in which plans of other machines run: it has the functions, the codec, and scalar
/// functions that ask for whole paths. It stands in place of
/// [`with_tadoc`](TadocSessionStateBuilderExt::with_tadoc).
#[must_use]
pub fn as_worker(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let config = builder.config().get_or_insert_with(SessionConfig::new);
    config.set_extension(Arc::new(AtWorker));
    know_windows(&mut builder);
    builder.with_tadoc().with_distributed_user_codec(TadocCodec)
}

/// Permission of the tasks of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerAccess {
    /// They only read.
    Read,
    /// They also write segments of living corpora, for `COPY` with `tadoc.workers_write`.
    Write,
}

/// Returns a worker whose tasks run in `runtime`. They share its memory and the corpora that they open.
/// The worker shows `credentials` to other workers, of which it reads.
pub fn worker_of(runtime: Arc<RuntimeEnv>, credentials: Credentials, access: WorkerAccess) -> Worker {
    let home = WorkerHome {
        access,
        runtime: Arc::clone(&runtime),
        cache: Arc::default(),
        devices: Arc::new(DeviceSession::new()),
        connections: Connections::new(credentials),
        idle: OnceLock::new(),
    };
    let home = Arc::new(home);
    let session = move |context: WorkerQueryContext| {
        let home = Arc::clone(&home);
        async move { home.session(context) }
    };
    Worker::from_session_builder(session).with_runtime_env(runtime).with_version(WORKER_VERSION)
}

/// Returns the service of `worker`, for a server of one's own. It refuses messages of more than 64 MiB,
/// such as a plan with a list of a million words.
pub fn worker_routes(worker: Worker) -> Routes {
    let service = worker.into_worker_server().max_decoding_message_size(MAX_MESSAGE_BYTES);
    let scans = AllScans::default();
    Routes::new(Requests::new(service, scans.clone())).add_service(ProgressService(scans))
}

/// Answers the requests of coordinators and other workers at `listener`, until `stop` ends. Then it
/// accepts no more connections, and returns when the open ones have ended. It asks nobody for a token:
/// keep it behind a firewall, or put [`worker_routes`] behind a check.
///
/// # Errors
/// The errors of the listener.
pub async fn serve_worker(worker: Worker, listener: TcpListener, stop: impl Future<Output = ()>) -> Result<()> {
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let served = Server::builder()
        .http2_keepalive_interval(Some(ASK_EVERY))
        .http2_keepalive_timeout(Some(SILENT_FOR))
        .add_routes(worker_routes(worker))
        .serve_with_incoming_shutdown(incoming, stop);
    served.await.map_err(|error| exec_datafusion_err!("the worker's listener: {error}"))
}

/// State that the tasks of a worker share.
struct WorkerHome {
    access: WorkerAccess,
    runtime: Arc<RuntimeEnv>,
    cache: Arc<CorpusCache>,
    devices: Arc<DeviceSession>,
    connections: Connections,
    /// Session without a task. Those of tasks are copies: making one takes longer than many tasks.
    idle: OnceLock<SessionState>,
}

impl WorkerHome {
    /// Returns the session of a task, which has the configuration of `context`.
    fn session(&self, mut context: WorkerQueryContext) -> Result<SessionState> {
        check_version(&context.headers)?;
        let mut state = self.idle()?.clone();
        let mut config = context.builder.config().take().unwrap_or_default();
        if let Some(scans) = scans_of_request() {
            config.set_extension(scans);
        }
        *state.config_mut() = self.configured(config);
        Ok(state)
    }

    fn idle(&self) -> Result<&SessionState> {
        if let Some(state) = self.idle.get() {
            return Ok(state);
        }
        let builder = SessionStateBuilder::new().with_default_features();
        let config = self.configured(SessionConfig::new());
        let builder = builder.with_config(config).with_runtime_env(Arc::clone(&self.runtime));
        let mut state = as_worker(builder).build();
        bound_functions(&mut state, &self.runtime.memory_pool)?;
        Ok(self.idle.get_or_init(|| state))
    }

    /// Adds to the configuration of a task what tasks share.
    fn configured(&self, mut config: SessionConfig) -> SessionConfig {
        config.set_extension(Arc::clone(&self.cache));
        config.set_extension(Arc::clone(&self.devices));
        config.set_extension(Arc::new(AtWorker));
        config.options_mut().extensions.insert(TadocOptions::default());
        let runtime = Arc::clone(&self.runtime);
        let access = self.access;
        let config = config.with_distributed_user_codec(TadocCodec);
        let config = config.with_distributed_channel_resolver(self.connections.clone());
        config.with_distributed_worker_plan_rewrite_handler(move |event: WorkerPlanRewriteEvent<'_>| {
            prepare(event, &runtime, access)
        })
    }
}

/// Refuses plans that write more than they may, prepares scans of files (their stores are known, and errors
/// of Parquet files name the file), makes joins stop when the coordinator has left, and makes errors of panics.
fn prepare(
    event: WorkerPlanRewriteEvent<'_>,
    runtime: &RuntimeEnv,
    access: WorkerAccess,
) -> Result<WorkerPlanRewriteEventResponse> {
    event.plan.apply(|node| {
        if node.is::<WriteSegmentsExec>() && access == WorkerAccess::Read {
            let what = "a plan that writes segments, on a worker that only reads: start it with \
                        --writable, or SET tadoc.workers_write = false";
            return Err(TravelError::Stays(what.to_owned()).into());
        }
        if node.is::<DataSinkExec>() {
            return Err(TravelError::Stays("a plan that writes".to_owned()).into());
        }
        let source = node.downcast_ref::<DataSourceExec>().map(|exec| exec.data_source());
        if let Some(files) = source.and_then(|source| source.downcast_ref::<FileScanConfig>()) {
            object_store(runtime, files.object_store_url.as_ref())?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let plan = NameParquetFiles.optimize(event.plan, event.session_config.options())?;
    let plan = asking(stoppable(plan, &stop_of_request())?)?;
    Ok(WorkerPlanRewriteEventResponse::new(caught(plan)?))
}

/// Optimizer rule that keeps the order of the rows of a statement, where it is known: partitions of
/// several machines are merged by it, not as they come.
#[derive(Debug)]
struct KeepOrder;

impl PhysicalOptimizerRule for KeepOrder {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let is_one = plan.output_partitioning().partition_count() == 1;
        match plan.output_ordering().cloned().filter(|_| !is_one) {
            Some(order) => Ok(Arc::new(SortPreservingMergeExec::new(order, plan))),
            None => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        "tadoc_keep_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

#[async_trait]
impl ChannelResolver for Connections {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        let channel = self.channel(url).await?;
        Ok(Box::new(NamedWorker { url: url.clone(), worker: create_worker_client(channel) }))
    }
}

/// A worker whose errors name it.
struct NamedWorker {
    url: Url,
    worker: Box<dyn WorkerChannel>,
}

/// Returns the name of a task in messages.
fn name_of(task: &TaskKey) -> String {
    format!("task {} of stage {}", task.task_number, task.stage_id)
}

#[async_trait]
impl WorkerChannel for NamedWorker {
    async fn coordinator_channel(
        &mut self,
        mut headers: HeaderMap,
        plan: SetPlanRequest,
        messages: BoxStream<'static, CoordinatorToWorkerMsg>,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
        let url = self.url.clone();
        if let MaybeEncoded::Decoded(task) = &plan.plan {
            note_asked(task)?;
        }
        if let Some(tasks) = context.session_config().get_extension::<Tasks>()
            && let MaybeEncoded::Decoded(task) = &plan.plan
            && let Some(work) = work_of_task(task)?
        {
            let name = tasks.add(plan.task_key, &url, work);
            headers.insert(TASK_HEADER, HeaderValue::try_from(name).map_err(|error| exec_datafusion_err!("{error}"))?);
        }
        let part = name_of(&plan.task_key);
        let answers = self.worker.coordinator_channel(headers, plan, messages, metrics, context);
        let answers = answers.await.map_err(|error| named(&url, &part, error))?;
        Ok(answers.map_err(move |error| named(&url, &part, error)).boxed())
    }

    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
        let part = name_of(&request.task_key);
        let partitions = self.worker.execute_task(headers, request, metrics, context).await;
        let partitions = partitions.map_err(|error| named(&self.url, &part, error))?.into_iter();
        let answered = |rows: BoxStream<'static, Result<RecordBatch>>| {
            let url = self.url.clone();
            let part = part.clone();
            rows.map_err(move |error| named(&url, &part, error)).boxed()
        };
        Ok(partitions.map(answered).collect())
    }

    async fn get_worker_info(&mut self, request: GetWorkerInfoRequest) -> Result<GetWorkerInfoResponse> {
        let info = self.worker.get_worker_info(request).await;
        info.map_err(|error| named(&self.url, "a check of its version", error))
    }
}

/// Line above a plan that is not divided.
const ONE_MACHINE: &str = "one task on this machine:\n";

/// Planner that shows stages, and runs statements again that lose a worker. It leaves all planning to the planner that
/// makes stages.
#[derive(Debug, Clone)]
struct StagesPlanner {
    planner: Option<Arc<dyn QueryPlanner + Send + Sync>>,
    workers: WorkerUrls,
    connections: Connections,
}

impl StagesPlanner {
    async fn plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let planned = match &self.planner {
            Some(planner) if !is_recursive(plan)? && !filters_windows(plan)? => {
                planner.create_physical_plan(plan, session).await?
            }
            _ => DefaultPhysicalPlanner::default().create_physical_plan(plan, session).await?,
        };
        if planned.is::<DistributedExec>() {
            return Ok(planned);
        }
        // Workers do so with what they get.
        NameParquetFiles.optimize(planned, session.config_options())
    }

    /// Returns `plan`, which was made of `logical_plan`, with the node that goes on without a lost worker.
    fn retried(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(state) = session.as_any().downcast_ref::<SessionState>() else { return Ok(plan) };
        // Statements that change a corpus have no sink.
        let changes = logical_plan.exists(|node| Ok(matches!(node, LogicalPlan::Dml(_))))?;
        let retries = match Retries::for_plan(&plan)? {
            Retries::None => return Ok(plan),
            Retries::AtAnyTime if changes => Retries::AfterErrors,
            other => other,
        };
        let planner = self.clone();
        let logical_plan = logical_plan.clone();
        let state = state.clone();
        let plan_again = move || {
            let planner = planner.clone();
            let logical_plan = logical_plan.clone();
            let state = state.clone();
            async move { planner.plan(&logical_plan, &state).await }.boxed()
        };
        Ok(Arc::new(RetryExec::new(
            plan,
            self.workers.clone(),
            self.connections.clone(),
            retries,
            Arc::new(plan_again),
        )))
    }
}

/// Returns true if a part of `plan`, or of a query in it, runs again and again.
fn is_recursive(plan: &LogicalPlan) -> Result<bool> {
    let mut is_found = false;
    plan.apply_with_subqueries(|node| {
        is_found |= matches!(node, LogicalPlan::RecursiveQuery(_));
        Ok(if is_found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_found)
}

#[async_trait]
impl QueryPlanner for StagesPlanner {
    async fn create_physical_plan(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.plan(logical_plan, session).await?;
        let (LogicalPlan::Explain(explain), Some(explained)) = (logical_plan, plan.downcast_ref::<ExplainExec>())
        else {
            return self.retried(plan, logical_plan, session);
        };
        // What is wrong with the statement is in the plan already.
        let Ok(staged) = self.plan(&explain.plan, session).await else { return Ok(plan) };
        let is_divided = staged.is::<DistributedExec>();
        let shown = |plan: &StringifiedPlan| match plan.plan_type {
            PlanType::FinalPhysicalPlan if is_divided => {
                StringifiedPlan::new(PlanType::FinalPhysicalPlan, display_plan_ascii(staged.as_ref(), false))
            }
            PlanType::FinalPhysicalPlan => {
                let text = format!("{ONE_MACHINE}{}", plan.plan);
                StringifiedPlan::new(PlanType::FinalPhysicalPlan, text)
            }
            _ => plan.clone(),
        };
        let plans = explained.stringified_plans().iter().map(shown).collect();
        Ok(Arc::new(ExplainExec::new(explained.schema(), plans, explained.verbose())))
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Int64Type;
    use datafusion_distributed::ProducerHead;
    use futures::stream;

    use super::*;

    /// Returns the numbers of all partitions of a task, or the first error.
    async fn numbers(streams: Vec<BoxStream<'static, Result<RecordBatch>>>) -> Result<Vec<i64>> {
        let batches: Vec<RecordBatch> = stream::iter(streams).flatten().try_collect().await?;
        let columns = batches.iter().map(|batch| batch.column(0).as_primitive::<Int64Type>());
        let mut numbers: Vec<i64> = columns.flat_map(|column| column.values().to_vec()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// A worker has one task, however often its plan and its rows are asked for. Each that asks gets all rows once, or
    /// an error.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_task_that_is_asked_twice_has_its_rows_once_for_each() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url: Url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let worker = worker_of(Arc::default(), Credentials::default(), WorkerAccess::Read);
        let served = tokio::spawn(serve_worker(worker, listener, pending()));
        let builder = SessionStateBuilder::new().with_default_features().with_tadoc();
        let workers: WorkerUrls = url.as_str().parse().unwrap();
        let ctx = SessionContext::new_with_state(with_workers(builder, workers).build());
        let connections = Connections::new(Credentials::default());
        for (stage_id, sql) in [
            "SELECT column1 FROM (VALUES (1), (2), (3))",
            "SELECT column1, count(*) FROM (VALUES (1), (2), (3), (3)) GROUP BY column1",
        ]
        .into_iter()
        .enumerate()
        {
            let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
            let num_partitions = plan.output_partitioning().partition_count();
            let task_key = TaskKey { query_id: Default::default(), stage_id, task_number: 0 };
            let mut open = Vec::new();
            for _ in 0..2 {
                let mut client = connections.get_worker_client_for_url(&url).await.unwrap();
                let request = SetPlanRequest {
                    task_key,
                    task_count: 1,
                    plan: MaybeEncoded::Decoded(Arc::clone(&plan)),
                    work_unit_feed_declarations: Vec::new(),
                    target_worker_url: url.clone(),
                    query_start_time_ns: 0,
                };
                let metrics = ExecutionPlanMetricsSet::new();
                let messages = stream::pending().boxed();
                let answers =
                    client.coordinator_channel(HeaderMap::new(), request, messages, metrics, &ctx.task_ctx()).await;
                open.push(answers);
            }
            assert!(open[0].is_ok());
            let mut num_whole = 0;
            for _ in 0..3 {
                let mut client = connections.get_worker_client_for_url(&url).await.unwrap();
                let request = ExecuteTaskRequest {
                    task_key,
                    target_partition_start: 0,
                    target_partition_end: num_partitions,
                    producer_head: ProducerHead::None,
                };
                let metrics = ExecutionPlanMetricsSet::new();
                let streams = client.execute_task(HeaderMap::new(), request, metrics, &ctx.task_ctx()).await;
                match numbers(streams.unwrap()).await {
                    Ok(numbers) => {
                        assert_eq!(numbers, [1, 2, 3], "{sql}");
                        num_whole += 1;
                    }
                    Err(error) => assert!(error.to_string().contains("worker http"), "{sql}: {error}"),
                }
            }
            assert!(num_whole > 0, "{sql}");
        }
        served.abort();
    }
}
