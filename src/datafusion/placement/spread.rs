//! Rows that a device has counted go out of as many partitions as the plan above reads.
//!
//! ```text
//! AggregateExec: mode=Partial                         AggregateExec: mode=Partial
//!   RepartitionExec: RoundRobinBatch(16)     ──▶        TadocExec, 16 partitions
//!     TadocExec, 1 partition
//! ```
//!
//! All rows lie in host memory then, so that each partition makes texts of its own and none hands batches on.
//! Where rows are wanted in their order, plans have no such node, and nothing is changed.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};

use crate::scan::exec::TadocExec;

/// Takes away what deals rows of a device out to partitions.
#[derive(Debug, Default)]
pub(crate) struct SpreadRows;

impl PhysicalOptimizerRule for SpreadRows {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
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
