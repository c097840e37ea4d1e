//! The planner of a session with workers: `EXPLAIN` shows stages, and some statements run in one process.
//!
//! The engine runs each stage once, and a recursive query runs its part again and again. Some windows cannot
//! travel. Statements with either run in one process. DataFusion plans the statement behind `EXPLAIN` by itself,
//! without the planner that cuts plans into stages. So this planner plans it again. `EXPLAIN ANALYZE` shows stages without it.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::{LogicalPlan, PlanType, StringifiedPlan};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion_distributed::{DistributedExec, display_plan_ascii};
use datafusion_tadoc::travel::NameParquetFiles;

use crate::proto_gaps::filters_windows;

/// Line above a plan that is not divided.
const ONE_MACHINE: &str = "one task on this machine:\n";

/// Planner that shows stages. It leaves all planning to the planner that makes them.
#[derive(Debug)]
pub(super) struct StagesPlanner {
    planner: Option<Arc<dyn QueryPlanner + Send + Sync>>,
}

impl StagesPlanner {
    pub(super) fn new(planner: Option<Arc<dyn QueryPlanner + Send + Sync>>) -> Self {
        Self { planner }
    }

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
            return Ok(plan);
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
