//! A limit of memory that is enough for a plan: not the least, but one that is known before anything is read.
//!
//! ```text
//! segments   ▇▇▇▇▇▇▇▇▇▇▇▇      decoded, of all corpora at once; half of the limit is for these
//! rows       ▇▇▇▇▇▇ ▇▇▇▇▇▇ ▇▇▇▇▇▇   as operators keep them that cannot spill
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::ExecutionPlan;

use crate::scan::exec::TadocExec;
use crate::source::memory::MemoryWhenUsed;
use crate::throughput::calibration::num_cores;

/// Times that operators which cannot spill have rows in memory: as they come, sorted, and as they go out.
const COPIES_OF_ROWS: u64 = 3;
/// What a session takes beside segments and rows.
const BESIDE_BYTES: u64 = 64 << 20;

/// Bytes of a memory pool in which `plan` runs, whatever its operators keep of the rows of corpora; `None` where it
/// reads none.
pub fn enough_memory(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let mut segments: HashMap<String, MemoryWhenUsed> = HashMap::new();
    let (mut rows_bytes, mut num_scans) = (0u64, 0);
    let look = plan.apply(|node| {
        if let Some(scan) = node.downcast_ref::<TadocExec>() {
            num_scans += 1;
            rows_bytes = rows_bytes.saturating_add(scan.all_bytes());
            segments.extend(scan.memory_when_used());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    if look.is_err() || num_scans == 0 {
        return None;
    }
    let held = segments.into_values().fold(MemoryWhenUsed::default(), MemoryWhenUsed::and);
    let of_segments = held.bytes(num_cores()).saturating_mul(2);
    let of_rows = rows_bytes.saturating_mul(COPIES_OF_ROWS);
    Some(of_segments.saturating_add(of_rows).saturating_add(BESIDE_BYTES))
}
