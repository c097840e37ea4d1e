//! The optimizer rule that sends rows of a device from as many partitions as the plan above reads.
//!
//! ```text
//! AggregateExec: mode=Partial                         AggregateExec: mode=Partial
//!   RepartitionExec: RoundRobinBatch(16)     ──▶        TadocExec, 16 partitions
//!     TadocExec, 1 partition
//! ```
//!
//! All rows are in host memory at that time. So each partition makes the texts of its own rows, and
//! no batch is passed from one partition to another. If the plan needs the order of rows, it has no
//! such node, and the rule changes nothing.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};

use crate::planning::exec::TadocExec;

/// Optimizer rule that removes the node that distributes rows of a device over partitions.
#[derive(Debug, Default)]
pub(crate) struct SpreadRows;

impl PhysicalOptimizerRule for SpreadRows {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let spread = |plan: Arc<dyn ExecutionPlan>| {
            Ok(match spread(plan.as_ref()) {
                Some(exec) => Transformed::yes(Arc::new(exec) as _),
                None => Transformed::no(plan),
            })
        };
        plan.transform_up(spread).data()
    }

    fn name(&self) -> &str {
        "tadoc_spread_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn spread(plan: &dyn ExecutionPlan) -> Option<TadocExec> {
    let dealt = plan.downcast_ref::<RepartitionExec>()?;
    match *dealt.partitioning() {
        Partitioning::RoundRobinBatch(num_partitions) => {
            dealt.input().downcast_ref::<TadocExec>()?.spread(num_partitions)
        }
        _ => None,
    }
}
