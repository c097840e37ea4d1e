//! Corpora and GSST columns of `datafusion-tadoc` on a cluster of Ballista.
//!
//! ```text
//! client     SQL ─▶ logical plan ══▶ scheduler                  SessionBuilder
//! scheduler  footers ─▶ runs of segments ─▶ stages ══▶ tasks    SchedulerBuilder
//! executor   task: opens its segments ─▶ rows ══▶               ExecutorBuilder
//! ```
//!
//! Ballista's three processes are programs of one's own, which carry the functions of `datafusion-tadoc` and
//! the codecs of its tables and plan nodes. The builders of this crate make them; the examples `client`,
//! `scheduler` and `executor` are such programs. All three must be of the same version.
//!
//! ```no_run
//! use datafusion_tadoc_ballista::SessionBuilder;
//!
//! # #[tokio::main]
//! # async fn main() -> datafusion::error::Result<()> {
//! let ctx = SessionBuilder::new("df://localhost:50050")?.build()?;
//! ctx.sql("SELECT word, count FROM word_count('s3://texts/laws.tadoc')").await?.show().await?;
//! # Ok(())
//! # }
//! ```
//!
//! - *Rows* are those of one process. An executor refuses a file that changed after the scheduler planned.
//! - *Stores*: scheduler and executors open files themselves, with credentials from their own environments.
//!   The client needs none, except to write.
//! - *Writes* stay in the client's process (`COPY`, `INSERT`, `DELETE`, `UPDATE`); their queries run on the
//!   cluster. So do statements over tables that only the client has, such as `"d$history"` or tables in
//!   memory. A statement that needs both those and tables of files is refused.
//! - *Trust*: Ballista asks nobody for a password. A runtime of a
//!   [`Sandbox`](datafusion_tadoc::safety::Sandbox) keeps statements inside its places. Use a network in
//!   which all clients may read what the executors may.
//! - *Failures*: a task whose executor is gone runs again on another one, after the time in which a machine
//!   may be silent ([`SchedulerBuilder::with_silence`]).
//!
//! Ballista turns dynamic filters off, and reads an executor's rows from its disk. Its adaptive planner and its
//! joins by sorting are off, because their rows can be wrong (Ballista 55.0, DataFusion 55.2). The
//! workers of `datafusion-tadoc` itself (`tadoc sql --workers`) do without, and have less overhead.
//!
//! Reading order: `sliced` (scans that Ballista divides), `codec`, `session` (and what runs where),
//! `processes` (scheduler and executor).

mod codec;
mod processes;
mod session;
mod sliced;

pub use codec::{LogicalCodec, PhysicalCodec};

pub use processes::{ExecutorBuilder, SchedulerBuilder};
pub use session::SessionBuilder;

pub use ballista_core;
pub use ballista_executor;
pub use ballista_scheduler;
pub use datafusion_tadoc;
pub use datafusion_tadoc_distributed;

use std::time::Duration;

use ballista_core::error::BallistaError;
use datafusion::error::DataFusionError;

/// Time after which an executor that says nothing counts as gone.
const SILENT_FOR: Duration = Duration::from_secs(30);
/// Largest message between the processes. A plan that names many files is longer than Ballista's 16 MiB.
const MAX_MESSAGE_BYTES: u32 = 64 << 20;

fn error_of(error: BallistaError) -> DataFusionError {
    match error {
        BallistaError::DataFusionError(error) => *error,
        other => DataFusionError::External(Box::new(other)),
    }
}
