//! The choice between cores and devices, for tasks over corpora and for scans of GSST columns.
//!
//! ```text
//! with_tadoc ── DeviceSession ──▶ in the session's configuration, in each scan
//!
//! corpora   task of a function  ──▶ chooser ─┐  two estimates (throughput::decide)
//! columns   columns of a scan   ──▶ model   ─┴─▶ DeviceSession::decide ─▶ Placement
//! observed  rates of stores as read ──▲
//! grammars  blocks of COPY and INSERT ────▶ DeviceSession::decide, for each block
//!
//! Placement ── EXPLAIN: device=gpu: reason, device=cpu: reason
//!           ── begin, when the plan is executed: opens devices, notes missed time
//!
//! function ── answers::… ─▶ None: the CPU counts, because it was chosen or a device failed
//!               └─▶ Some: rows of the CPU's type, or parts of them (…_parts, row_keys)
//! optimizer ── SpreadRows ─▶ the scan sends parts from as many partitions as the plan above reads
//! ```
//!
//! Two traits hide the devices: [`tadoc::accelerator`] and [`gsst::parquet::device`]. SQL reaches a
//! kernel through a [`Task`] and one function in `answers`. If a device fails, the CPU does its
//! work: the log has the reason, and `device_fallbacks` counts it. Only a device that is demanded
//! and missing is an error.

mod answers;
mod chooser;
mod columns;
mod corpora;
mod decided;
mod known;
mod observed;
mod ranked_table;
mod row_keys;
mod sequence_table;
mod session;
mod spread;
mod task;

pub(super) use answers::{
    cooccurrences, inverted_index, ranked_inverted_index, ranked_table, sequence_counts,
    term_vectors,
};
pub(super) use columns::{ColumnWork, Storage, place_columns, prepare, selectivity};
pub(super) use corpora::place;
pub(super) use decided::Placement;
pub(super) use known::KnownTasks;
pub(super) use observed::ObservedStores;
pub use session::DeviceSession;
pub(super) use spread::SpreadRows;
pub(super) use task::Task;
