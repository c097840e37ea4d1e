//! Batches of questions to a corpus on devices: passages, and words in documents.
//!
//! ```text
//! rows of a batch ─▶ checked on the host, cut at segments ─┬▶ cores: access
//!                    (errors are the CPU's)                └▶ devices: gpu, a lock for each
//!                                       chosen by Batches, of a call in a statement
//! ```
//!
//! Whoever asks has checked the questions with the CPU's own code, so a device is asked for what is there
//! and its answers are rows of the CPU's type. What a device fails at, the CPU answers, and so the rest of
//! the statement; `TadocBatchesExec` shows why. `chooser` estimates, `place` remembers from batch to batch,
//! `cut`, `together` and `answers` do the work.

#[cfg(feature = "cuda")]
mod answers;
#[cfg(not(feature = "cuda"))]
#[path = "no_answers.rs"]
mod answers;
mod chooser;
#[cfg(feature = "cuda")]
mod cut;
mod place;
mod show;
#[cfg(feature = "cuda")]
mod together;

pub(in crate::sql) use place::Batches;
pub(in crate::sql) use show::ShowBatches;
