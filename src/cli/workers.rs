//! Workers: `tadoc worker`, and the arguments of other commands that name them. `without_workers` is the twin of this file
//! in a build without them.

pub use tadoc_server::worker::{Arguments as Worker, run};
pub use tadoc_server::workers::Arguments as Named;
