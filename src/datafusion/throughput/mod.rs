//! Throughput of ingestion: a model, the rates it takes, and the choice between cores and device.
//!
//! ```text
//! rates        built in, by width of codes and name of the device ──┐
//! calibration  storage and link: measured ─▶ ~/.config/tadoc/calibration ─▶ Calibration
//!                                                                       │
//! model        predict(rates, column, query, route, plan) ◀─────────────┘ ─▶ GB/s, and the limiting stage
//!                ▲                    ▲
//! choice       the rule for a scan   codecs   every codec in every regime, for one link speed, and its published and
//!                                             measured rates ─benches/figures.rs─▶ benches/figures/*.svg
//! ```
//!
//! ```
//! use datafusion_tadoc::throughput::{Calibration, Regime, rows};
//!
//! // All codecs behind a link of 22 GB/s, the fastest of each regime first.
//! let rows = rows(22.0, &Calibration::default())?;
//! let fastest = |regime| rows.iter().find(|row| row.regime == regime).ok_or("no such row");
//! let (serial, overlapped) = (fastest(Regime::Serial)?, fastest(Regime::Overlapped)?);
//! assert!(overlapped.predicted_gb_per_s > serial.predicted_gb_per_s);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Reading order: `rates` (input of the model), [`model`] (predictions, and the equations of the thesis), [`choice`],
//! [`calibration`], [`codecs`]. Only [`calibration`] uses files and devices. The other modules are arithmetic.
//!
//! Source: Vonk, "GSST: High Throughput Parallel String Decompression on GPU" (TU Delft, 2024), chapter 3 and section
//! 6.3.

pub mod calibration;
pub mod choice;
pub mod codecs;
pub mod model;
mod rates;

pub use calibration::Calibration;
pub use choice::{Choice, DeviceState, Hindrance, Situation, choose};
pub use codecs::{ObservedStore, ObservedText, Regime, Row, add_observed, rows};
pub use model::{Column, Plan, Prediction, Query, Rates, Route, Stage, predict};
pub(crate) use rates::num_cores;

#[cfg(test)]
mod model_tests;
