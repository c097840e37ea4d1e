//! Series that travel with their column: an optimizer rule around a fault of datafusion-proto.
//!
//! `SELECT count(*) FROM word_count('c'), generate_series(1, 3)` reads no column of the series, so its plan
//! node has an empty projection. datafusion-proto 55.2 writes the schema behind the projection and not the
//! projection itself, and the other end fails with "number of columns(1) must match number of fields(0)".
//! The rule puts the projection into a node of its own:
//!
//! ```text
//! LazyMemoryExec []   ─▶   ProjectionExec []
//!                            LazyMemoryExec [value]
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::memory::LazyMemoryExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

/// The rule; see the module's description.
#[derive(Debug)]
pub(super) struct WholeSeries;

impl PhysicalOptimizerRule for WholeSeries {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match node.downcast_ref().map(whole).transpose()?.flatten() {
            Some(whole) => Ok(Transformed::yes(whole)),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "tadoc_whole_series"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns a projection to no column above the whole of `series`, or `None` if the series has a column or no
/// rows.
fn whole(series: &LazyMemoryExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let [generator] = series.generators().as_slice() else { return Ok(None) };
    if !series.schema().fields().is_empty() {
        return Ok(None);
    }
    // A generator tells its schema by its first rows. Those of a copy are not missed.
    let copy = generator.read().reset_state();
    let Some(rows) = copy.write().generate_next_batch()? else { return Ok(None) };
    let whole = LazyMemoryExec::try_new(rows.schema(), vec![generator.read().reset_state()])?;
    let projection = ProjectionExec::try_new(Vec::<ProjectionExpr>::new(), Arc::new(whole))?;
    Ok(Some(Arc::new(projection)))
}
