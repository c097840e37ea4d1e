//! The threads that plan and run statements and asynchronous reads.

use tokio::runtime::Runtime;

use crate::failure::{Failure, Outcome};

/// Bytes of stack of each thread that plans or runs statements.
///
/// A statement of the maximum depth, `tadoc.max_statement_depth` = 4,000, takes 27 KB per level in
/// a build without optimizations. Unused stack takes no memory.
pub const STACK_BYTES: usize = 128 << 20;

/// Creates the runtime that queries run on.
pub fn runtime() -> Outcome<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().thread_stack_size(STACK_BYTES).build();
    runtime.map_err(|error| Failure::with_cause("starting threads", &error))
}
