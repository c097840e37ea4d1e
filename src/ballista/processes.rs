//! The processes of a cluster: the scheduler, which plans statements of clients and gives their tasks to
//! executors, and the executor, which runs them.

use std::sync::Arc;
use std::time::Duration;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::extension::SessionConfigExt;
use ballista_core::optimizer::with_ballista_optimizer_rules;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::optimizer::Optimizer;
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use datafusion_tadoc_distributed::{EngineHome, with_stores};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::codec::{LogicalCodec, PhysicalCodec};
use crate::{MAX_MESSAGE_BYTES, SILENT_FOR, error_of};

/// Builder of a scheduler.
///
/// ```
/// use datafusion_tadoc_ballista::SchedulerBuilder;
///
/// # fn main() -> datafusion::error::Result<()> {
/// let config = SchedulerBuilder::new()?.build();
/// assert!(config.override_logical_codec.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SchedulerBuilder {
    config: SchedulerConfig,
    runtime: Arc<RuntimeEnv>,
}

impl SchedulerBuilder {
    /// Makes a builder with Ballista's settings. Stores are made when a statement names them.
    ///
    /// # Errors
    /// The errors of a runtime.
    pub fn new() -> Result<Self> {
        let runtime = with_stores(RuntimeEnvBuilder::new()).build_arc()?;
        let config = SchedulerConfig {
            scheduling_policy: TaskSchedulingPolicy::PushStaged,
            grpc_server_max_decoding_message_size: MAX_MESSAGE_BYTES,
            grpc_server_max_encoding_message_size: MAX_MESSAGE_BYTES,
            grpc_client_max_message_size: MAX_MESSAGE_BYTES,
            ..SchedulerConfig::default()
        };
        Ok(Self { config, runtime }.with_silence(SILENT_FOR))
    }

    /// Changes settings of Ballista: `change` gets those that are set, and returns others.
    #[must_use]
    pub fn with_settings(self, change: impl FnOnce(SchedulerConfig) -> SchedulerConfig) -> Self {
        Self { config: change(self.config), ..self }
    }

    /// Sets the runtime in which footers are read. One of a
    /// [`Sandbox`](datafusion_tadoc::safety::Sandbox) refuses places that are not allowed.
    #[must_use]
    pub fn with_runtime(self, runtime: Arc<RuntimeEnv>) -> Self {
        Self { runtime, ..self }
    }

    /// Sets the time after which an executor that says nothing counts as gone. Its tasks then run on
    /// another one; without another one, statements end in an error after the same time again. Executors
    /// have the same setting.
    #[must_use]
    pub fn with_silence(mut self, silent_for: Duration) -> Self {
        let seconds = silent_for.as_secs().max(1);
        self.config.executor_timeout_seconds = seconds;
        self.config.expire_dead_executor_interval_seconds = seconds.div_ceil(3);
        self.config.no_executors_grace_period_seconds = seconds;
        self
    }

    /// Returns the configuration of a scheduler for Ballista's own functions.
    pub fn build(self) -> SchedulerConfig {
        let home = EngineHome::new(self.runtime);
        let producer = home.clone();
        let session = move |config: SessionConfig| {
            let rules = with_ballista_optimizer_rules(&Optimizer::default().rules);
            let builder =
                SessionStateBuilder::new().with_default_features().with_config(config).with_optimizer_rules(rules);
            Ok(home.planning(builder).build())
        };
        let config = move || producer.config(SessionConfig::new_with_ballista());
        SchedulerConfig {
            override_session_builder: Some(Arc::new(session)),
            override_config_producer: Some(Arc::new(config)),
            override_logical_codec: Some(Arc::<LogicalCodec>::default()),
            override_physical_codec: Some(Arc::<PhysicalCodec>::default()),
            ..self.config
        }
    }

    /// Answers clients and executors at `listener`, until the process ends. Executors connect to the
    /// external host of the settings and the port of `listener`.
    ///
    /// # Errors
    /// The errors of the listener.
    pub async fn serve(self, listener: TcpListener) -> Result<()> {
        let address = listener.local_addr();
        let address = address.map_err(|error| exec_datafusion_err!("the listener: {error}"))?;
        let mut config = self.build();
        (config.bind_host, config.bind_port) = (address.ip().to_string(), address.port());
        config.validate().map_err(error_of)?;
        let cluster = BallistaCluster::new_from_config(&config).await.map_err(error_of)?;
        let config = Arc::new(config);
        let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config);
        let scheduler = scheduler.await.map_err(error_of)?;
        start_grpc_service_with_listener(listener, scheduler).await.map_err(error_of)
    }
}

/// Builder of an executor.
///
/// ```
/// use datafusion_tadoc_ballista::ExecutorBuilder;
///
/// # fn main() -> datafusion::error::Result<()> {
/// let config = ExecutorBuilder::new("localhost", 50050)?.with_ports(50051, 50052).build();
/// assert!(config.override_physical_codec.is_some());
/// # Ok(())
/// # }
/// ```
pub struct ExecutorBuilder {
    config: ExecutorProcessConfig,
    runtime: Arc<RuntimeEnv>,
}

impl ExecutorBuilder {
    /// Makes a builder for the scheduler at `host` and `port`, with Ballista's settings. Tasks share one
    /// pool of memory without a limit. Stores are made when a task names them.
    ///
    /// # Errors
    /// The errors of a runtime.
    pub fn new(host: &str, port: u16) -> Result<Self> {
        let runtime = with_stores(RuntimeEnvBuilder::new()).build_arc()?;
        let config = ExecutorProcessConfig {
            scheduler_host: host.to_owned(),
            scheduler_port: port,
            task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
            grpc_max_decoding_message_size: MAX_MESSAGE_BYTES,
            grpc_max_encoding_message_size: MAX_MESSAGE_BYTES,
            // The pool of the runtime, which tasks share with the corpora that are open.
            memory_pool_size: Some(0),
            ..ExecutorProcessConfig::default()
        };
        Ok(Self { config, runtime }.with_silence(SILENT_FOR))
    }

    /// Changes settings of Ballista: `change` gets those that are set, and returns others.
    #[must_use]
    pub fn with_settings(self, change: impl FnOnce(ExecutorProcessConfig) -> ExecutorProcessConfig) -> Self {
        Self { config: change(self.config), ..self }
    }

    /// Sets the ports at which other processes fetch rows, and at which the scheduler sends tasks.
    #[must_use]
    pub fn with_ports(mut self, rows: u16, tasks: u16) -> Self {
        (self.config.port, self.config.grpc_port) = (rows, tasks);
        self
    }

    /// Sets the runtime in which tasks run: its stores, its memory and its disk. One of a
    /// [`Sandbox`](datafusion_tadoc::safety::Sandbox) refuses places that are not allowed.
    #[must_use]
    pub fn with_runtime(self, runtime: Arc<RuntimeEnv>) -> Self {
        Self { runtime, ..self }
    }

    /// Sets the time after which the scheduler takes this executor for gone if it says nothing.
    #[must_use]
    pub fn with_silence(mut self, silent_for: Duration) -> Self {
        self.config.executor_heartbeat_interval_seconds = (silent_for.as_secs() / 3).max(1);
        self
    }

    /// Returns the configuration of an executor for Ballista's own functions.
    pub fn build(self) -> ExecutorProcessConfig {
        let home = EngineHome::new(self.runtime);
        let state = home.executing(SessionStateBuilder::new().with_default_features()).build();
        let mut functions = BallistaFunctionRegistry::default();
        let scalars = state.scalar_functions().iter();
        functions.scalar_functions.extend(scalars.map(|(name, one)| (name.clone(), Arc::clone(one))));
        let windows = state.window_functions().iter();
        functions.window_functions.extend(windows.map(|(name, one)| (name.clone(), Arc::clone(one))));
        let runtime = Arc::clone(home.runtime());
        ExecutorProcessConfig {
            override_function_registry: Some(Arc::new(functions)),
            override_runtime_producer: Some(Arc::new(move |_| Ok(Arc::clone(&runtime)))),
            override_config_producer: Some(Arc::new(move || home.config(SessionConfig::new_with_ballista()))),
            override_logical_codec: Some(Arc::<LogicalCodec>::default()),
            override_physical_codec: Some(Arc::new(PhysicalCodec::for_executor())),
            ..self.config
        }
    }

    /// Runs tasks until the process is asked to end (SIGTERM, Ctrl-C) or the scheduler asks for it. Without
    /// a folder in the settings, rows are kept in a new one, which is removed then.
    ///
    /// # Errors
    /// An error if there is no scheduler, or if a port is in use.
    pub async fn run(self) -> Result<()> {
        let folder = TempDir::with_prefix("ballista-executor-")?;
        let mut config = self.build();
        config.work_dir = config.work_dir.or(folder.path().to_str().map(str::to_owned));
        start_executor_process(Arc::new(config)).await.map_err(error_of)
    }
}
