//! The session of a client.

use std::sync::Arc;

use ballista_core::config::BALLISTA_ADAPTIVE_PLANNER_ENABLED;
use ballista_core::extension::SessionConfigExt;
use ballista_core::optimizer::with_ballista_optimizer_rules;
use datafusion::common::config_err;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::optimizer::Optimizer;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::{TadocSessionStateBuilderExt, mask_secrets};
use url::Url;

use crate::MAX_MESSAGE_BYTES;
use crate::codec::{LogicalCodec, PhysicalCodec};
use crate::planner::ClusterPlanner;

/// Port of a scheduler whose URL names none.
const PORT: u16 = 50050;

/// Builder of sessions whose statements run on a cluster.
///
/// ```
/// use datafusion_tadoc_ballista::SessionBuilder;
///
/// # fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionBuilder::new("df://localhost:50050")?.build()?;
/// assert!(ctx.state().table_functions().contains_key("word_count"));
/// assert!(SessionBuilder::new("localhost").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SessionBuilder {
    url: String,
    config: SessionConfig,
    runtime: Arc<RuntimeEnv>,
}

impl SessionBuilder {
    /// Makes a builder for the scheduler at `url`, like `df://host:50050`.
    ///
    /// # Errors
    /// An error if `url` is no such URL.
    pub fn new(url: &str) -> Result<Self> {
        let shown = mask_secrets(url);
        let parsed = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "df" | "http"));
        let Some((url, host)) = parsed.as_ref().and_then(|url| Some((url, url.host()?))) else {
            return config_err!("expected the URL of a scheduler like df://host:50050, got {shown}");
        };
        if !url.username().is_empty() || !matches!(url.path(), "" | "/") || url.query().is_some() {
            return config_err!("expected a URL of host and port like df://host:50050, got {shown}");
        }
        let url = format!("http://{host}:{}", url.port().unwrap_or(PORT));
        let config =
            SessionConfig::new_with_ballista().with_ballista_grpc_client_max_message_size(MAX_MESSAGE_BYTES as usize);
        Ok(Self { url, config, runtime: Arc::default() })
    }

    /// Sets the configuration of the session. Its settings travel with each statement. Begin with
    /// [`SessionConfig::new_with_ballista`]; the number of partitions is that of tasks of a stage.
    #[must_use]
    pub fn with_config(self, config: SessionConfig) -> Self {
        Self { config, ..self }
    }

    /// Sets the runtime of what stays in this process.
    #[must_use]
    pub fn with_runtime(self, runtime: Arc<RuntimeEnv>) -> Self {
        Self { runtime, ..self }
    }

    /// Returns the session. Nothing is sent before the first statement. Ballista's adaptive planner, joins by
    /// sorting and joins in one partition are off, because their rows can be wrong.
    ///
    /// # Errors
    /// None is known.
    pub fn build(self) -> Result<SessionContext> {
        let config = self
            .config
            .upgrade_for_ballista()
            .with_ballista_logical_extension_codec(Arc::<LogicalCodec>::default())
            .with_ballista_physical_extension_codec(Arc::<PhysicalCodec>::default())
            // Its exchanges keep the orders of their inputs, and some of its replans never end.
            .set_bool(BALLISTA_ADAPTIVE_PLANNER_ENABLED, false)
            // A limit above a join by sorting is pushed below it, and its columns are not nullable where they must be.
            .set_bool("datafusion.optimizer.prefer_hash_join", true)
            // An outer join that DataFusion plans in one partition is cut into several below operators that need one.
            .set_u64("datafusion.optimizer.hash_join_single_partition_threshold", 0)
            .set_u64("datafusion.optimizer.hash_join_single_partition_threshold_rows", 0);
        let planner = ClusterPlanner::new(self.url, config.ballista_config());
        let rules = with_ballista_optimizer_rules(&Optimizer::default().rules);
        let state = SessionStateBuilder::new()
            .with_default_features()
            .with_config(config)
            .with_runtime_env(self.runtime)
            .with_optimizer_rules(rules)
            .with_query_planner(Arc::new(planner))
            .with_tadoc()
            .build();
        Ok(SessionContext::new_with_state(state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_schedulers_are_checked() {
        let url = |text: &str| SessionBuilder::new(text).map(|builder| builder.url);
        assert_eq!(url("df://host").unwrap(), "http://host:50050");
        assert_eq!(url("http://127.0.0.1:7").unwrap(), "http://127.0.0.1:7");
        for wrong in ["host:7", "ftp://host", "df://host/x", "df://me:hush@host", ""] {
            let error = url(wrong).unwrap_err().to_string();
            assert!(error.contains("df://host:50050") && !error.contains("hush"), "{error}");
        }
    }
}
