//! CPU or GPU for a scan, and why: `tadoc.device`, the throughput model, and what is there.
//!
//! ```text
//! tadoc.device   cpu  ─▶ CPU
//!                gpu  ─▶ GPU, or an error where there is none
//!                auto ─▶ the model (ingestion::choose) on the statistics of the table
//!                          CPU ─▶ CPU            GPU ─▶ a device there? ─▶ GPU, or CPU and why
//! ```
//!
//! The driver is asked only where the model wants a device, because asking takes a tenth of a
//! second the first time. That, and opening devices, starts on another thread as soon as it can be
//! foreseen. What the device fails at while it runs is the opener's business.

use std::fmt;

use datafusion::common::plan_err;
use datafusion::error::Result;

use super::super::failure::datafusion_error;
use super::super::options::{Device, TadocOptions};
use super::device;
use crate::ingestion::{self, Calibration, Choice, Column, Query, Situation, choose};

/// What a scan is about to decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Work {
    /// Text of the GSST columns it needs.
    pub(super) text_len_bytes: u64,
    pub(super) num_rows: u64,
    /// Whether a filter reads such a column.
    pub(super) is_text_filtered: bool,
    /// Stored bytes of the files, where nothing is known of their columns.
    pub(super) stored_len_bytes: Option<u64>,
    pub(super) num_cores: usize,
}

/// Where a scan decodes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placement {
    pub(super) is_on_device: bool,
    pub(super) reason: String,
    /// Text per second that the model expects, where it was asked.
    pub(super) predicted_gb_per_s: Option<f64>,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = if self.is_on_device { "gpu" } else { "cpu" };
        write!(f, "device={device} ({})", self.reason)
    }
}

impl Placement {
    fn on_cpu(reason: impl Into<String>) -> Self {
        Self { is_on_device: false, reason: reason.into(), predicted_gb_per_s: None }
    }
}

/// Starts on another thread what [`place`] and the scan of `work` are going to wait for: where a
/// device is demanded, opening it, where the model wants one, asking the driver.
pub(super) fn prepare(options: &TadocOptions, calibration: &Calibration, work: &Work) {
    let is_known = work.text_len_bytes > 0 || work.stored_len_bytes.is_some();
    match options.device {
        Device::Gpu => device::open_soon(),
        Device::Auto if is_known => {
            let choice = ask_model(options, calibration, work);
            if choice.is_ok_and(|choice| choice.place != ingestion::Place::Cpu) {
                device::ask_soon();
            }
        }
        Device::Auto | Device::Cpu => {}
    }
}

/// Decides where `work` is done.
///
/// # Errors
///
/// Where a device is demanded and there is none.
pub(super) fn place(
    options: &TadocOptions,
    calibration: &Calibration,
    work: &Work,
) -> Result<Placement> {
    match options.device {
        Device::Cpu => Ok(Placement::on_cpu("tadoc.device = cpu")),
        Device::Gpu => {
            if let Some(problem) = device::problem() {
                return plan_err!("tadoc.device = gpu: {problem}; SET tadoc.device = 'auto'");
            }
            let choice = ask_model(options, calibration, work)?;
            Ok(Placement {
                is_on_device: true,
                reason: "tadoc.device = gpu".to_owned(),
                predicted_gb_per_s: choice.gpu.map(|gpu| gpu.rate_gb_per_s),
            })
        }
        Device::Auto if work.text_len_bytes == 0 && work.stored_len_bytes.is_none() => {
            Ok(Placement::on_cpu("no GSST column is read"))
        }
        // The device would decode every row, and send all of them back, for the few that are left.
        Device::Auto if work.is_text_filtered => {
            Ok(Placement::on_cpu("filters on text are evaluated on its codes"))
        }
        Device::Auto => by_model(options, calibration, work),
    }
}

fn by_model(options: &TadocOptions, calibration: &Calibration, work: &Work) -> Result<Placement> {
    let choice = ask_model(options, calibration, work)?;
    if choice.place == ingestion::Place::Cpu {
        return Ok(Placement {
            is_on_device: false,
            predicted_gb_per_s: Some(choice.cpu.rate_gb_per_s),
            reason: reason_of(&choice),
        });
    }
    Ok(match device::problem() {
        None => Placement {
            is_on_device: true,
            predicted_gb_per_s: Some(choice.prediction().rate_gb_per_s),
            reason: reason_of(&choice),
        },
        Some(problem) => Placement {
            is_on_device: false,
            predicted_gb_per_s: Some(choice.cpu.rate_gb_per_s),
            reason: problem,
        },
    })
}

/// The model's sentence without the place, which stands in front of it.
fn reason_of(choice: &Choice) -> String {
    let reason = &choice.reason;
    reason.split_once(": ").map_or(reason.as_str(), |(_, reason)| reason).to_owned()
}

/// The rates that plans with these options go by; read once per plan, and not where nobody asks.
pub(super) fn calibration(options: &TadocOptions) -> Calibration {
    if options.device == Device::Cpu {
        return Calibration::default();
    }
    Calibration::load().unwrap_or_else(|error| {
        tracing::warn!(%error, "planning with built-in rates; run tadoc calibrate");
        Calibration::default()
    })
}

fn ask_model(options: &TadocOptions, calibration: &Calibration, work: &Work) -> Result<Choice> {
    let width = calibration.width(options.gsst_code_bits);
    let rates = calibration.rates(options.gsst_code_bits, true);
    let guessed = work.stored_len_bytes.map(|stored| (stored as f64 * width.ratio) as u64);
    let text_len_bytes = guessed.unwrap_or(work.text_len_bytes).max(1);
    let column = Column::new(text_len_bytes, work.num_rows, width.ratio);
    let query = Query {
        selectivity: None,
        is_wanted_on_host: true,
        is_in_host_memory: false,
        num_cores: work.num_cores.min(calibration.num_cores),
    };
    let situation = Situation {
        num_blocks: text_len_bytes.div_ceil(8 << 20),
        is_device_open: device::is_open(),
        is_resident: false,
    };
    choose(&rates, &column, &query, &situation).map_err(datafusion_error)
}
