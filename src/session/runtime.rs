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
    build(&mut tokio::runtime::Builder::new_multi_thread())
}

/// Creates a runtime with `num_threads` threads, and with at most `num_blocking` more for work that
/// blocks.
pub fn runtime_of(num_threads: usize, num_blocking: usize) -> Outcome<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    build(builder.worker_threads(num_threads).max_blocking_threads(num_blocking))
}

fn build(builder: &mut tokio::runtime::Builder) -> Outcome<Runtime> {
    let runtime = builder.enable_all().thread_stack_size(STACK_BYTES).build();
    runtime.map_err(|error| Failure::with_cause("starting threads", &error))
}
