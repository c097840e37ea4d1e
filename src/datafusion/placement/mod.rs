//! Tasks over corpora on devices: what has kernels, where it runs, and what comes back.
//!
//! ```text
//! function ── device_task(scan) ──▶ Task, or why there is none
//! table    ── place, chooser ─────▶ Placement in the scan          EXPLAIN: device=gpu, device=cpu: reason
//! function ── answers::… (run) ───▶ None: the CPU counts; it was placed there, or a device failed
//!               │                   Some: rows of the CPU's type, or parts of them (…_parts, row_keys)
//!               └ devices: a lock and the copies of segments for each; segments in turn
//! optimizer ── SpreadRows ─────────▶ parts go out of as many partitions as the plan above reads
//! sink      ── rounds_engine ──────▶ grammars of COPY and INSERT
//! ```
//!
//! A kernel is plugged in by a [`Task`] and one function in `answers`: what it does with a segment, and
//! how the answers of segments become the CPU's rows. What a device fails at, the CPU does: the log says
//! why, `device_fallbacks` counts it. Only a device that was demanded and is not there is an error, as
//! for GSST scans.

#[cfg(feature = "cuda")]
mod answers;
#[cfg(not(feature = "cuda"))]
#[path = "no_answers.rs"]
mod answers;
mod chooser;
mod decided;
#[cfg(feature = "cuda")]
mod devices;
#[cfg(feature = "cuda")]
mod grammars;
#[cfg(not(feature = "cuda"))]
#[path = "no_grammars.rs"]
mod grammars;
mod known;
#[cfg(feature = "cuda")]
pub(crate) mod opening;
mod place;
#[cfg(feature = "cuda")]
mod ranked_parts;
#[cfg(feature = "cuda")]
mod row_keys;
#[cfg(feature = "cuda")]
mod sequence_parts;
mod spread;
mod task;

pub(super) use answers::{
    cooccurrences, forget, inverted_index, ranked_inverted_index, ranked_parts, sequence_counts,
    term_vectors, word_counts,
};
pub(super) use decided::Placement;
#[cfg(feature = "cuda")]
pub(super) use devices::release;
pub(super) use grammars::rounds_engine;
pub(super) use known::KnownTasks;
pub(super) use place::place;
pub(super) use spread::SpreadRows;
pub(super) use task::Task;
