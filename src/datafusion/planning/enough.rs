//! Memory limit that suffices for a plan. It is not the smallest one, but it is known before any
//! data is read.
//!
//! ```text
//! segments   ▇▇▇▇▇▇▇▇▇▇▇▇           decoded, of all corpora at once; half of the limit
//! rows       ▇▇▇▇▇▇ ▇▇▇▇▇▇ ▇▇▇▇▇▇   as held by operators that cannot spill, and by partitions of sorts
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::corpora::memory::MemoryWhenUsed;
use crate::planning::exec::TadocExec;

/// Number of copies of the rows in operators that cannot spill: input, sorted, output.
const COPIES_OF_ROWS: u64 = 3;
/// Number of partitions of a sort for each further copy. Batches of several partitions share the buffers of
/// their texts, and each partition counts them: 16 of them took seven times the rows.
const PARTITIONS_FOR_A_COPY: u64 = 2;
/// Memory of a session besides segments and rows, in bytes.
const BESIDE_BYTES: u64 = 64 << 20;

/// Returns the size, in bytes, of a memory pool that suffices for `plan`, even if its operators
/// hold all rows of the corpora. Returns `None` if the plan reads no corpus.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> datafusion::error::Result<()> {
/// # let ctx = datafusion::prelude::SessionContext::new();
/// let plan = ctx.sql("SELECT 1").await?.create_physical_plan().await?;
/// assert_eq!(datafusion_tadoc::enough_memory(&plan), None);
/// # Ok(())
/// # }
/// ```
pub fn enough_memory(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let mut segments: HashMap<String, MemoryWhenUsed> = HashMap::new();
    let (mut rows_bytes, mut num_scans, mut num_partitions) = (0u64, 0, 0);
    let look = plan.apply(|node| {
        if let Some(scan) = node.downcast_ref::<TadocExec>() {
            num_scans += 1;
            rows_bytes = rows_bytes.saturating_add(scan.all_bytes());
            segments.extend(scan.memory_when_used());
        }
        if node.downcast_ref::<SortExec>().is_some() {
            let of_sort = node.properties().partitioning.partition_count() as u64;
            num_partitions = of_sort.max(num_partitions);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    if look.is_err() || num_scans == 0 {
        return None;
    }
    let held = segments.into_values().fold(MemoryWhenUsed::default(), MemoryWhenUsed::and);
    let of_segments = held.bytes().saturating_mul(2);
    let num_copies = COPIES_OF_ROWS + num_partitions / PARTITIONS_FOR_A_COPY;
    let of_rows = rows_bytes.saturating_mul(num_copies);
    Some(of_segments.saturating_add(of_rows).saturating_add(BESIDE_BYTES))
}
