//! A session of SQL: what the command, its server and the Python module share.
//!
//! ```text
//! statements   parsed one by one, planned with parameters, started ─▶ rows
//!     │
//! session      DataFusion with all table functions, and the procedures that CALL runs
//!     ├─ memory      the limit of the process, and freed memory that goes back to the system
//!     └─ remote      the stores that statements name
//!
//! location     corpora at a location, for programs that wait, and tables that the arguments of a program name
//! cells        rows as cells of bounded width
//! failure      errors of all libraries as one line; notes; secrets that no line repeats
//! interrupt    the end of a process: Ctrl-C, SIGTERM, and a GPU that is being opened
//! ```
//!
//! ```
//! use tadoc_session::{Outcome, Session, Statements, runtime};
//!
//! # fn main() -> Outcome {
//! let names = runtime()?.block_on(async {
//!     let session = Session::for_program(None, &[]).await?;
//!     let plan = session.plan(session.parse_one("SELECT 1 AS one")?).await?;
//!     Ok::<_, tadoc_session::Failure>(plan.map(|plan| plan.schema().field_names()))
//! })?;
//! assert_eq!(names, Some(vec!["one".to_owned()]));
//! # Ok(())
//! # }
//! ```
//!
//! It knows no command line, no server and no prompt.

mod cells;
mod failure;
pub mod interrupt;
pub mod location;
mod memory;
mod parameters;
mod remote;
mod session;
mod statements;

pub use self::cells::{BoundedTable, MaxWidth};
pub use self::failure::{Failure, Outcome, masked, note, remember_secrets};
pub use self::location::{BlockingResolver, Corpora, CorpusFile, NamedLocation, StoredFile};
pub use self::memory::ResidentPool;
pub use self::parameters::{Parameters, parameter_names};
pub use self::session::{Engine, STACK_BYTES, Session, limited, runtime, runtime_of, sandbox_over};
pub use self::statements::{Rows, Statements, is_shown_whole};
pub use crate::session::{CallArgument, CallValue, Procedure};
