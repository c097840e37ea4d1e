//! Plans that travel to other machines, with `datafusion-distributed`.
//!
//! ```text
//! coordinator   SQL ─▶ plan: runs of segments ─▶ stages ─▶ codec ══ messages ══▶ workers
//! worker        message ─▶ scan without footers ─ opens the files, refuses others ─▶ rows ══▶
//! ```
//!
//! A scan travels as names and numbers: the function and its arguments, files with their lengths and
//! versions, filters, columns, limit and settings. The worker opens the files itself. It refuses a file
//! that is not the one that was planned, because a new file has other rows. Credentials do not travel:
//! each machine takes its own from its environment. Statements that write do not travel either, but for the segments of
//! a `COPY` to a living corpus, if the session and the workers permit it: one commit of the coordinator names them.
//!
//! A session with workers cuts scans into runs of segments, which each worker reads and answers in
//! place. DataFusion's own operators add up, join and sort the rows. Functions that need all segments at
//! once run as one task. Some functions pack their rows as numbers, and other workers merge them; and what one
//! process does faster is not divided (`datafusion/planning/portions`).
//!
//! ```
//! use datafusion::execution::SessionStateBuilder;
//! use datafusion::prelude::SessionContext;
//! use datafusion_tadoc::TadocSessionStateBuilderExt;
//! use datafusion_tadoc_distributed::{WorkerUrls, with_workers};
//!
//! # fn main() -> datafusion::error::Result<()> {
//! let workers: WorkerUrls = "http://one:8815,http://two:8815".parse()?;
//! let builder = SessionStateBuilder::new().with_default_features().with_tadoc();
//! let ctx = SessionContext::new_with_state(with_workers(builder, workers).build());
//! # drop(ctx);
//! # Ok(())
//! # }
//! ```
//!
//! Engines that plan a statement on another machine, such as Ballista, get a logical plan instead. Its
//! tables travel by [`TadocLogicalCodec`], and [`EngineHome`] makes the sessions there. The package
//! `datafusion-tadoc-ballista` puts both together.
//!
//! Reading order: `message` (bytes), `scans` (a scan, its message, and the scan that arrives), `codec` (all nodes,
//! and what messages of datafusion-proto leave out), `tasks` (which worker gets which runs), `exchanges` (what is
//! known of rows of several tasks), `connections` (to workers), `workers`, `progress`, `requests` and `retries` (those
//! that are lost, or slow), `panics` (of tasks) and `session` (also stages in plans); then `tables` (of logical plans)
//! and `home`. `blocks` has nothing to do with plans: workers build the segments of an ingest. `scale.md` says what
//! 10 TB on 100 workers would take.

mod arrived;
mod blocks;
mod codec;
mod connections;
mod exchanges;
mod files;
mod home;
mod message;
mod panics;
mod progress;
mod requests;
mod retries;
mod scans;
mod session;
mod tables;
mod tasks;
mod workers;

pub use blocks::{BlockWorkers, with_blocks};
pub use codec::{TadocCodec, filters_windows};
pub use connections::{Credentials, WORKER_VERSION};
pub use home::EngineHome;
pub use message::is_message;
pub use panics::watched;
pub use session::{WorkerAccess, as_worker, register_workers, serve_worker, with_workers, worker_of, worker_routes};
pub use tables::{TadocLogicalCodec, resolve_tables};
pub use workers::WorkerUrls;
pub use {datafusion_distributed as engine, datafusion_proto as proto};

pub use datafusion_tadoc::with_stores;

use std::fmt;

use datafusion::error::{DataFusionError, Result};

/// Error of a plan that cannot travel, or of one that arrived.
///
/// ```
/// use datafusion::execution::TaskContext;
/// use datafusion_proto::physical_plan::{DefaultPhysicalProtoConverter, PhysicalExtensionCodec};
/// use datafusion_tadoc_distributed::{TadocCodec, TravelError};
///
/// let converter = DefaultPhysicalProtoConverter {};
/// let context = TaskContext::default();
/// let error = TadocCodec.try_decode(b"other bytes", &[], &context, &converter).unwrap_err();
/// assert!(matches!(TravelError::from_error(&error), Some(TravelError::Message(_))));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TravelError {
    /// Bytes that are no message of this version.
    Message(String),
    /// A part of a plan that stays where it was made.
    Stays(String),
    /// A file, or a living corpus, that is not the one that was planned.
    Changed(String),
}

impl fmt::Display for TravelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(fault) => write!(f, "message of a plan: {fault}"),
            Self::Stays(what) => write!(f, "{what}; it cannot run on another machine"),
            Self::Changed(what) => write!(f, "{what}; run the statement again"),
        }
    }
}

impl std::error::Error for TravelError {}

impl TravelError {
    /// Returns the error in the chain of causes of `error`, if there is one.
    pub fn from_error(error: &DataFusionError) -> Option<&Self> {
        match error.find_root() {
            DataFusionError::External(cause) => cause.downcast_ref(),
            _ => None,
        }
    }
}

impl From<TravelError> for DataFusionError {
    fn from(error: TravelError) -> Self {
        Self::External(Box::new(error))
    }
}

/// Returns the error of a message with this fault.
fn refused<T>(fault: impl Into<String>) -> Result<T> {
    Err(TravelError::Message(fault.into()).into())
}
