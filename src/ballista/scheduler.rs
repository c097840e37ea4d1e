//! The scheduler: it plans statements of clients and gives their tasks to executors.

use std::sync::Arc;
use std::time::Duration;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::extension::SessionConfigExt;
use ballista_core::optimizer::with_ballista_optimizer_rules;
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
