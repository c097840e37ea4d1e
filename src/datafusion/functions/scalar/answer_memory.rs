//! Memory of the answers of a function's call, under the limit of a pool while the function runs.
//!
//! DataFusion counts the memory of operators, not of expressions.

use std::sync::Arc;

use datafusion::common::resources_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryPool, MemoryReservation, human_readable_size,
};

/// Answers of fewer bytes do not ask the pool.
const FREE_BYTES: u64 = 1 << 20;

/// Memory of the answers of one call of a function.
pub(super) struct AnswerMemory<'a> {
    name: &'a str,
    /// `None` without a limit.
    reservation: Option<MemoryReservation>,
    len_bytes: u64,
}

impl<'a> AnswerMemory<'a> {
    pub(super) fn new(name: &'a str, pool: Option<&Arc<dyn MemoryPool>>) -> Self {
        let reservation = pool.map(|pool| MemoryConsumer::new(name).register(pool));
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
        "the answer of {name} may take {}, and so much memory is not left; ask for less, or raise the limit \
         (--memory-limit of tadoc): {}",
        human_readable_size(len_bytes),
        cause.strip_backtrace()
    )
}
