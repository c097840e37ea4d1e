//! The choice between cores and devices, for tasks over corpora and for scans of GSST columns.
//!
//! ```text
//! with_tadoc ── DeviceSession ──▶ in the session's configuration, in each scan
//!
//! corpora   task of a function  ──▶ chooser ─┐  task: times of earlier runs
//! columns   columns of a scan   ──▶ model   ─┴─▶ DeviceSession::decide ─▶ Placement
//! observed  rates of stores as read ──▲
//!
//! Placement ── EXPLAIN: device=gpu: reason, device=cpu: reason
//!           ── begin, when the plan is executed: opens devices, notes missed work
//! ```
//!
//! Two traits hide the devices: [`tadoc::accelerator`] and [`gsst::parquet::device`]. SQL reaches a
//! kernel through a [`Task`] and one function in `planning/answers`. If a device fails, the CPU does its
//! work: the log has the reason, and `device_fallbacks` counts it. Only a device that is demanded
//! and missing is an error.

mod chooser;
mod columns;
mod observed;
mod session;
mod task;

pub(super) use chooser::{Choice, Place, Placement, WORDS_KEPT, Work, choose};
pub(super) use columns::{ColumnWork, Storage, place_columns, prepare, selectivity};
pub(super) use observed::ObservedStores;
pub use session::DeviceSession;
pub(super) use session::demanded_but;
pub(super) use task::{Finds, KnownTasks, Task};
