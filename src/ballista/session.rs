//! The session of a client, and its planner: what runs on the cluster, and what in this process.
//!
//! ```text
//! query of tables that travel       ─▶ cluster
//! COPY, INSERT of such a query      ─▶ here; the query ─▶ cluster
//! DELETE, UPDATE                    ─▶ here
//! query of tables of this session,
//! or of none                        ─▶ here
//! FILTER over a window              ─▶ here, because it does not travel
//! UNION ALL                         ─▶ here; each of its queries ─▶ cluster
//! query of both                     ─▶ an error that names the table
//! ```
//!
//! Ballista 55 loses the rows of a UNION ALL, or waits forever, if it cuts a stage below one of its queries
//! and none below another: the tasks of the stage then count the partitions of the union in two ways.

use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::config::{BALLISTA_ADAPTIVE_PLANNER_ENABLED, BallistaConfig};
use ballista_core::extension::SessionConfigExt;
use ballista_core::optimizer::with_ballista_optimizer_rules;
use ballista_core::planner::BallistaQueryPlanner;
use datafusion::catalog::Session;
use datafusion::common::config_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::{DmlStatement, LogicalPlan, LogicalPlanBuilder, TableScan, Union, WriteOp};
use datafusion::optimizer::Optimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::logical_plan::AsLogicalPlan;
use datafusion_proto::protobuf::LogicalPlanNode;
use datafusion_tadoc::travel::PlannedRows;
use datafusion_tadoc::{TadocSessionStateBuilderExt, mask_secrets};
use datafusion_tadoc_distributed::{filters_windows, resolve_tables};
use url::Url;

use crate::MAX_MESSAGE_BYTES;
use crate::codec::{LogicalCodec, PhysicalCodec};

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

/// The planner of a client. See the module's description.
#[derive(Debug)]
pub(crate) struct ClusterPlanner {
    cluster: BallistaQueryPlanner<LogicalPlanNode>,
    codec: Arc<LogicalCodec>,
}

impl ClusterPlanner {
    /// Makes the planner of a client of the scheduler at `url`.
    pub(crate) fn new(url: String, config: BallistaConfig) -> Self {
        let codec = Arc::<LogicalCodec>::default();
        let cluster = BallistaQueryPlanner::with_extension(url, config, Arc::clone(&codec) as _);
        Self { cluster, codec }
    }

    /// Returns a plan of this process for `plan`.
    async fn here(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        DefaultPhysicalPlanner::default().create_physical_plan(plan, session).await
    }

    /// Returns the rows of `query` as a table of this process, which the cluster computes if it can.
    async fn rows_of(&self, query: &LogicalPlan, session: &dyn Session) -> Result<LogicalPlan> {
        let rows = PlannedRows(self.create_physical_plan(query, session).await?);
        let scan = LogicalPlanBuilder::scan("cluster", provider_as_source(Arc::new(rows)), None)?;
        scan.build()
    }

    /// Returns `plan` with the queries of each UNION ALL as tables of this process, which the cluster
    /// computes if it can.
    async fn with_unions_here(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<LogicalPlan> {
        if let LogicalPlan::Union(union) = plan {
            let mut inputs = Vec::with_capacity(union.inputs.len());
            for input in &union.inputs {
                inputs.push(Arc::new(self.rows_of(input, session).await?));
            }
            return Ok(LogicalPlan::Union(Union { inputs, schema: Arc::clone(&union.schema) }));
        }
        let mut inputs = Vec::new();
        for input in plan.inputs() {
            inputs.push(Box::pin(self.with_unions_here(input, session)).await?);
        }
        plan.with_new_exprs(plan.expressions(), inputs)
    }

    /// Returns true if `plan`, whose tables are resolved, reads a table that travels.
    fn travels(&self, plan: &LogicalPlan) -> Result<bool> {
        let mut travels = false;
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && self.encoded(&LogicalPlan::TableScan(alone(scan))).is_ok()
            {
                travels = true;
                return Ok(TreeNodeRecursion::Stop);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(travels)
    }

    fn encoded(&self, plan: &LogicalPlan) -> Result<LogicalPlanNode> {
        LogicalPlanNode::try_from_logical_plan(plan, self.codec.as_ref())
    }
}

/// Returns true if `plan` or a subquery in it has a UNION ALL.
fn has_union(plan: &LogicalPlan) -> Result<bool> {
    let mut has_union = false;
    plan.apply_with_subqueries(|node| {
        has_union |= matches!(node, LogicalPlan::Union(_));
        Ok(if has_union { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(has_union)
}

/// Returns `scan` without its filters, which may read other tables.
fn alone(scan: &TableScan) -> TableScan {
    TableScan { filters: Vec::new(), ..scan.clone() }
}

#[async_trait]
impl QueryPlanner for ClusterPlanner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        match plan {
            LogicalPlan::Copy(copy) => {
                let input = Arc::new(self.rows_of(&copy.input, session).await?);
                let copy = LogicalPlan::Copy(CopyTo { input, ..copy.clone() });
                return self.here(&copy, session).await;
            }
            LogicalPlan::Dml(insert) if matches!(insert.op, WriteOp::Insert(_)) => {
                let input = Arc::new(self.rows_of(&insert.input, session).await?);
                let insert = LogicalPlan::Dml(DmlStatement { input, ..insert.clone() });
                return self.here(&insert, session).await;
            }
            LogicalPlan::Dml(_) | LogicalPlan::Ddl(_) | LogicalPlan::Statement(_) => {
                return self.here(plan, session).await;
            }
            _ => {}
        }
        let resolved = resolve_tables(plan.clone(), session).await?;
        if filters_windows(&resolved)? || !self.travels(&resolved)? {
            return self.here(plan, session).await;
        }
        if has_union(plan)? {
            let plan = self.with_unions_here(plan, session).await?;
            return self.here(&plan, session).await;
        }
        // What cannot travel is refused now, not when rows are asked for.
        self.encoded(&resolved)?;
        self.cluster.create_physical_plan(&resolved, session).await
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
