//! The planner of a client: what runs on the cluster, and what in this process.
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
use ballista_core::config::BallistaConfig;
use ballista_core::planner::BallistaQueryPlanner;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::not_impl_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::{
    DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, TableScan, TableType, Union, WriteOp,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion_proto::logical_plan::AsLogicalPlan;
use datafusion_proto::protobuf::LogicalPlanNode;
use datafusion_tadoc_distributed::{filters_windows, resolve_tables};

use crate::codec::LogicalCodec;

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
        let rows = ClusterRows(self.create_physical_plan(query, session).await?);
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

/// A table of the rows of a plan.
#[derive(Debug)]
struct ClusterRows(Arc<dyn ExecutionPlan>);

#[async_trait]
impl TableProvider for ClusterRows {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let num_columns = self.schema().fields().len();
        if projection.is_none_or(|columns| columns.iter().copied().eq(0..num_columns)) {
            Ok(Arc::clone(&self.0))
        } else {
            not_impl_err!("some columns of the rows of a cluster")
        }
    }
}
