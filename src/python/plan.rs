//! A plan that Python or another library holds.
//!
//! Deep statements need more stack to be dropped than the threads of Python have. So a plan is
//! dropped on a thread of this library.

use datafusion::logical_expr::LogicalPlan;

use crate::waiting::runtime;

/// A plan that is dropped where there is room for deep statements.
pub struct Plan(LogicalPlan);

impl Plan {
    /// Creates the plan.
    pub fn new(plan: LogicalPlan) -> Self {
        Self(plan)
    }

    /// Returns the plan.
    pub fn get(&self) -> &LogicalPlan {
        &self.0
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        let plan = std::mem::take(&mut self.0);
        match runtime() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(plan))),
            // A forked process leaves it where it is.
            Err(_) => std::mem::forget(plan),
        }
    }
}
