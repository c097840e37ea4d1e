//! Requests that a worker answers: the sign of their end, the scans of their tasks, and panics of their threads.
//!
//! ```text
//! coordinator ══ plan, then nothing until the statement has ended ══▶ Requests ─▶ worker ─▶ session
//!                                                                       ├─ Scans ──────────▶ its scans
//!                                                                       └─ Stop ───────────▶ its joins
//! reader of rows ◀══ rows, then the end, or an error ═══════════════ Requests ◀═ channels ◀═ spawned threads
//!                                                                       └──────── a panic ───────┘
//! ```
//!
//! The worker of datafusion-distributed keeps the plan of a task in a cache, which may drop it only at the
//! next request. A task that was spawned for the plan runs as long. And a join that finds no rows does
//! not notice that it was dropped. So a sign is set where the body of the request is dropped: the
//! statement has ended, its command was cancelled, or the connection broke.
//!
//! The engine makes a session for each task, and does not tell it which task it is. The header of the request does.
//!
//! It spawns threads that exchange and encode rows, and takes the end of their channel for the end of the rows. So the
//! state of a request goes along to all that DataFusion's runtime spawns for it. The hook of panics, which runs before
//! the channel is dropped, notes the panic there, and the answer ends with an error. Threads that others spawn are not
//! seen, nor are any if the process has another tracer of spawned work.

use std::any::Any;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::{Arc, Once, OnceLock};
use std::task::{Context, Poll};

use datafusion::common::exec_err;
use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_tadoc::Stop;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryFutureExt, stream};
use http_body::Frame;
use http_body_util::BodyExt;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::server::NamedService;
use tower::Service;

use crate::progress::{AllScans, Scans};

tokio::task_local! {
    /// State of the request that is being answered.
    static REQUEST: RequestState;
}

/// State of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestState {
    /// Sign that is set when the request ends.
    stop: Stop,
    /// Scans of its task, if it names one.
    scans: Option<Arc<Scans>>,
    /// Text of the first panic of a thread that was spawned for it.
    panic: Arc<OnceLock<String>>,
}

type Output = Box<dyn Any + Send>;

/// Tracer that hands the state of a request to what is spawned for it.
struct HandOn;

impl JoinSetTracer for HandOn {
    fn trace_future(&self, work: BoxFuture<'static, Output>) -> BoxFuture<'static, Output> {
        match REQUEST.try_with(RequestState::clone) {
            Ok(state) => REQUEST.scope(state, work).boxed(),
            Err(_) => work,
        }
    }

    fn trace_block(&self, work: Box<dyn FnOnce() -> Output + Send>) -> Box<dyn FnOnce() -> Output + Send> {
        match REQUEST.try_with(RequestState::clone) {
            Ok(state) => Box::new(move || REQUEST.sync_scope(state, work)),
            Err(_) => work,
        }
    }
}

/// Makes panics of spawned work known to requests, from now on in the whole process.
fn watch_panics() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // Another tracer of the process hands nothing on.
        set_join_set_tracer(&HandOn).ok();
        let before = take_hook();
        set_hook(Box::new(move |info| {
            REQUEST.try_with(|request| request.panic.get_or_init(|| text_of(info)).len()).ok();
            before(info);
        }));
    });
}

fn text_of(info: &PanicHookInfo<'_>) -> String {
    let text = info.payload_as_str().unwrap_or("without a text");
    match info.location() {
        Some(place) => format!("{text}, at {}:{}", place.file(), place.line()),
        None => text.to_owned(),
    }
}

fn shown(panic: &str) -> String {
    format!("a thread that sends rows failed: {panic}; please report this with the statement")
}

/// Returns `rows`, which `begin` makes, with an error at their end if a thread that was spawned for them has panicked.
pub(super) fn watched_rows(
    begin: impl FnOnce() -> Result<SendableRecordBatchStream>,
) -> Result<SendableRecordBatchStream> {
    watch_panics();
    let state = RequestState::default();
    let mut rows = REQUEST.sync_scope(state.clone(), begin)?;
    let schema = rows.schema();
    let mut has_ended = false;
    let watched = stream::poll_fn(move |context| {
        if has_ended {
            return Poll::Ready(None);
        }
        let polled = REQUEST.sync_scope(state.clone(), || rows.poll_next_unpin(context));
        has_ended = matches!(polled, Poll::Ready(None));
        match state.panic.get().filter(|_| has_ended) {
            Some(panic) => Poll::Ready(Some(exec_err!("{}", shown(panic)))),
            None => polled,
        }
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, watched)))
}

/// Returns the last frame of an answer if a thread has panicked with this text.
fn failed_end(panic: &str) -> HeaderMap {
    let status = Status::internal(shown(panic));
    let mut end = HeaderMap::new();
    match status.add_header(&mut end) {
        Ok(()) => end,
        Err(status) => status.into_http::<Body>().headers().clone(),
    }
}

/// Returns the sign that is set when the request that is being answered ends.
pub(super) fn stop_of_request() -> Stop {
    REQUEST.try_with(|request| request.stop.clone()).unwrap_or_default()
}

/// Returns the scans of the task that the request that is being answered names.
pub(super) fn scans_of_request() -> Option<Arc<Scans>> {
    REQUEST.try_with(|request| request.scans.clone()).ok().flatten()
}

/// A service whose requests have a [`Stop`] and the scans of their tasks, and whose answers end with an error after a
/// panic.
#[derive(Debug, Clone)]
pub(super) struct Requests<S> {
    inner: S,
    scans: AllScans,
}

impl<S: NamedService> NamedService for Requests<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Requests<S> {
    /// Builds the service of `inner`.
    pub(super) fn new(inner: S, scans: AllScans) -> Self {
        watch_panics();
        Self { inner, scans }
    }
}

impl<S> Service<Request<Body>> for Requests<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, std::result::Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<std::result::Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let scans = self.scans.for_task(request.headers());
        let state = RequestState { scans, ..RequestState::default() };
        let at_end = SetAtEnd(state.stop.clone());
        let watched = |body: Body| {
            Body::new(body.map_frame(move |frame| {
                let _ = &at_end;
                frame
            }))
        };
        let panic = Arc::clone(&state.panic);
        let ended = move |frame: Frame<_>| match panic.get() {
            Some(panic) if frame.is_trailers() => Frame::trailers(failed_end(panic)),
            _ => frame,
        };
        let answer = REQUEST.scope(state, self.inner.call(request.map(watched)));
        answer.map_ok(|answer| answer.map(|body| Body::new(body.map_frame(ended)))).boxed()
    }
}

/// Sets the sign when it is dropped.
struct SetAtEnd(Stop);

impl Drop for SetAtEnd {
    fn drop(&mut self) {
        self.0.set();
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::future::pending;

    use datafusion::arrow::array::{Int64Array, RecordBatch};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::tree_node::TreeNodeRecursion;
    use datafusion::error::DataFusionError;
    use datafusion::execution::{SessionStateBuilder, TaskContext};
    use datafusion::physical_expr::EquivalenceProperties;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
    use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
    use datafusion::physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
    };
    use datafusion::prelude::{SessionConfig, SessionContext};
    use datafusion_distributed::grpc::create_worker_client;
    use datafusion_distributed::{
        DistributedConfig, DistributedExt, ExecuteTaskRequest, MaybeEncoded, ProducerHead, SetPlanRequest, TaskKey,
        Worker, WorkerPlanRewriteEvent, WorkerPlanRewriteEventResponse, WorkerQueryContext,
    };
    use datafusion_tadoc::travel::leaf_methods;
    use futures::TryStreamExt;
    use tokio::net::TcpListener;
    use tonic::service::Routes;
    use tonic::transport::server::TcpIncoming;
    use tonic::transport::{Endpoint, Server};
    use tower::util::BoxCloneSyncService;
    use url::Url;

    use super::*;

    /// An error that has no text: whoever encodes it for the other end panics.
    #[derive(Debug)]
    struct Untold;

    impl fmt::Display for Untold {
        fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("told on purpose")
        }
    }

    impl std::error::Error for Untold {}

    /// A leaf with a batch, and then an error without a text.
    #[derive(Debug)]
    struct Fails {
        properties: Arc<PlanProperties>,
    }

    impl DisplayAs for Fails {
        fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "Fails")
        }
    }

    impl ExecutionPlan for Fails {
        leaf_methods!("Fails");

        fn apply_expressions(
            &self,
            _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
        ) -> Result<TreeNodeRecursion> {
            Ok(TreeNodeRecursion::Continue)
        }

        fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
            let batch = RecordBatch::try_new(self.schema(), vec![Arc::new(Int64Array::from(vec![1, 2]))])?;
            let rows = stream::iter([Ok(batch), Err(DataFusionError::External(Box::new(Untold)))]);
            Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
        }
    }

    fn numbers() -> Arc<Schema> {
        Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]))
    }

    fn fails() -> Arc<dyn ExecutionPlan> {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(numbers()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Arc::new(Fails { properties: Arc::new(properties) })
    }

    /// Returns a worker that runs [`Fails`] for each plan.
    fn worker() -> Worker {
        Worker::from_session_builder(|context: WorkerQueryContext| async move {
            let mut builder: SessionStateBuilder = context.builder;
            let config = builder.config().take().unwrap_or_default();
            let config = config.with_distributed_worker_plan_rewrite_handler(|_: WorkerPlanRewriteEvent<'_>| {
                Ok(WorkerPlanRewriteEventResponse::new(fails()))
            });
            Ok(builder.with_config(config).build())
        })
    }

    /// Returns the number of rows of a task of a worker with these `routes`, or the error at their end.
    async fn num_rows(routes: Routes, head: ProducerHead) -> Result<usize> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url: Url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let server = Server::builder().add_routes(routes);
        let served = tokio::spawn(server.serve_with_incoming_shutdown(TcpIncoming::from(listener), pending()));
        let channel = Endpoint::from_shared(url.to_string()).unwrap().connect().await.unwrap();
        let mut client = create_worker_client(BoxCloneSyncService::new(channel));
        let mut config = SessionConfig::new();
        config.options_mut().extensions.insert(DistributedConfig::default());
        let context = SessionContext::new_with_config(config).task_ctx();
        let task_key = TaskKey { query_id: Default::default(), stage_id: 1, task_number: 0 };
        let request = SetPlanRequest {
            task_key,
            task_count: 1,
            plan: MaybeEncoded::Decoded(Arc::new(EmptyExec::new(numbers()))),
            work_unit_feed_declarations: Vec::new(),
            target_worker_url: url.clone(),
            query_start_time_ns: 0,
        };
        let metrics = ExecutionPlanMetricsSet::new();
        let messages = stream::pending().boxed();
        let _open = client.coordinator_channel(HeaderMap::new(), request, messages, metrics, &context).await?;
        let request =
            ExecuteTaskRequest { task_key, target_partition_start: 0, target_partition_end: 1, producer_head: head };
        let metrics = ExecutionPlanMetricsSet::new();
        let partitions = client.execute_task(HeaderMap::new(), request, metrics, &context).await?;
        let batches: Vec<RecordBatch> = stream::iter(partitions).flatten().try_collect().await?;
        served.abort();
        Ok(batches.iter().map(RecordBatch::num_rows).sum())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_panic_of_a_thread_that_sends_rows_is_an_error() {
        let heads = || {
            let exchange = Partitioning::RoundRobinBatch(1);
            [ProducerHead::None, ProducerHead::RepartitionExec { partitioning: MaybeEncoded::Decoded(exchange) }]
        };
        for head in heads() {
            // The engine alone takes the end of the thread for the end of the rows: of two, or of none behind an exchange.
            assert!(num_rows(Routes::new(worker().into_worker_server()), head).await.is_ok());
        }
        for head in heads() {
            let service = Requests::new(worker().into_worker_server(), AllScans::default());
            let error = num_rows(Routes::new(service), head).await.unwrap_err().to_string();
            assert!(error.contains("told on purpose") && error.contains("requests.rs:"), "{error}");
        }
    }
}
