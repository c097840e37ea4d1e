//! Memory of the answers of a function's call, under the limit of a pool while the function runs.
//!
//! DataFusion counts the memory of operators, not of expressions.

use std::sync::Arc;

use datafusion::common::resources_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryPool, MemoryReservation, human_readable_size,
};

/// Calls of fewer bytes do not ask the pool.
pub(super) const FREE_BYTES: u64 = 1 << 20;

/// Name of the memory of calls, before the name of the function.
const CALL: &str = "a call of ";

/// Returns true if the memory of the consumer of this name is that of the call of a function, which asks for it
/// before it takes any.
///
/// ```
/// assert!(datafusion_tadoc::is_memory_of_calls("a call of upper"));
/// assert!(!datafusion_tadoc::is_memory_of_calls("SortExec[0]"));
/// ```
pub fn is_memory_of_calls(consumer: &str) -> bool {
    consumer.starts_with(CALL)
}

/// Memory of the answers of one call of a function.
pub(super) struct AnswerMemory<'a> {
    name: &'a str,
    /// `None` without a limit.
    reservation: Option<MemoryReservation>,
    len_bytes: u64,
}

impl<'a> AnswerMemory<'a> {
    pub(super) fn new(name: &'a str, pool: Option<&Arc<dyn MemoryPool>>) -> Self {
        let reservation =
            pool.map(|pool| MemoryConsumer::new(format!("{CALL}{name}")).register(pool));
        Self { name, reservation, len_bytes: 0 }
    }

    /// Asks for `len_bytes` more.
    ///
    /// # Errors
    /// Resources exhausted, if the pool has not so many left.
    pub(super) fn add(&mut self, len_bytes: u64) -> Result<()> {
        self.len_bytes = self.len_bytes.saturating_add(len_bytes);
        let Some(reservation) = self.reservation.as_ref().filter(|_| self.len_bytes > FREE_BYTES)
        else {
            return Ok(());
        };
        let len_bytes = usize::try_from(self.len_bytes).unwrap_or(usize::MAX);
        let resized = reservation.try_resize(len_bytes);
        resized.map_err(|cause| too_long(self.name, len_bytes, &cause))
    }
}

fn too_long(name: &str, len_bytes: usize, cause: &DataFusionError) -> DataFusionError {
    resources_datafusion_err!(
        "a call of {name} may take {}, and so much memory is not left; ask for less, or raise the limit \
         (--memory-limit of tadoc): {}",
        human_readable_size(len_bytes),
        cause.strip_backtrace()
    )
}
