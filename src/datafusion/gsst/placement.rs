//! CPU or GPU for a scan, and why: `tadoc.device`, the throughput model, and what is there.
//!
//! ```text
//! tadoc.device   cpu  ─▶ CPU
//!                gpu  ─▶ GPU, or an error where there is none
//!                auto ─▶ the model (ingestion::choose) on the statistics of the table, and the state of the device
//!                          GPU       CPU ─▶ a gain that is missed, which may open the device for scans after this
//! ```
//!
//! With `auto` nobody waits for the driver, unless the scan is so long that waiting is a gain: then, and where a
//! device is demanded, it is opened on another thread as soon as it can be foreseen. `EXPLAIN` opens nothing, but
//! before a scan goes to a device the driver is asked for one: the plan names the place that the scan takes.
//! The opener handles faults of the device while a scan runs.

use std::fmt;

use datafusion::common::plan_err;
use datafusion::error::Result;

use super::device;
use crate::errors::datafusion_error;
use crate::options::{Device, TadocOptions};
use crate::throughput::calibration::StorageSource;
use crate::throughput::{
    self, Calibration, Choice, Column, DeviceState, Effort, Hindrance, Query, Situation, choose,
};
use gsst::parquet::CodePredicate;

/// The part of rows that are not null of which a test holds, where nothing is known: there are no
/// statistics of how often texts occur. (PostgreSQL takes 0.5 %.)
const TEST_PART: f64 = 0.01;

/// What a scan is about to decode.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Work {
    /// Text of the GSST columns it needs.
    pub(super) text_len_bytes: u64,
    pub(super) num_rows: u64,
    /// The part of the rows that pass conditions on codes of such columns, where there are any;
    /// `text_len_bytes` is then the text of those.
    pub(super) selectivity: Option<f64>,
    /// Whether their text is wanted, not only which rows pass.
    pub(super) is_text_wanted: bool,
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
    /// Time that is missed because the device is closed.
    pub(super) missed: Option<Missed>,
}

/// Time that an open device would have saved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Missed {
    effort: Effort,
    num_cores: usize,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = if self.is_on_device { "gpu" } else { "cpu" };
        write!(f, "device={device} ({})", self.reason)
    }
}

impl Placement {
    fn on_cpu(reason: impl Into<String>, predicted_gb_per_s: Option<f64>) -> Self {
        Self { is_on_device: false, reason: reason.into(), predicted_gb_per_s, missed: None }
    }

    /// Says that the scan begins: the device is opened where that is needed, or worth it for scans after this.
    pub(super) fn begin(&self) {
        if self.is_on_device {
            device::open_soon();
        }
        if let Some(Missed { effort, num_cores }) = &self.missed {
            device::miss(effort.gain_s(), effort.startup_s, *num_cores);
        }
    }
}

/// Opens a device on another thread where one is demanded, for [`place`] and the scan to wait less.
pub(super) fn prepare(options: &TadocOptions) {
    if options.device == Device::Gpu {
        device::open_soon();
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
    let is_known = work.text_len_bytes > 0 || work.stored_len_bytes.is_some();
    match options.device {
        Device::Cpu => {
            let closed = || DeviceState::Closed;
            let choice = is_known.then(|| ask_model(options, calibration, work, closed));
            let choice = choice.transpose()?;
            let rate = choice.map(|choice| choice.cpu.rate_gb_per_s);
            Ok(Placement::on_cpu("tadoc.device = cpu", rate))
        }
        Device::Gpu => {
            if let Some(problem) = device::problem() {
                return plan_err!("tadoc.device = gpu: {problem}; SET tadoc.device = 'auto'");
            }
            let choice = ask_model(options, calibration, work, || DeviceState::Open)?;
            Ok(Placement {
                is_on_device: true,
                reason: "tadoc.device = gpu".to_owned(),
                predicted_gb_per_s: choice.gpu.map(|gpu| gpu.rate_gb_per_s),
                missed: None,
            })
        }
        Device::Auto if !is_known => Ok(Placement::on_cpu("no GSST column is read", None)),
        Device::Auto => by_model(options, calibration, work),
    }
}

fn by_model(options: &TadocOptions, calibration: &Calibration, work: &Work) -> Result<Placement> {
    let mut choice = ask_model(options, calibration, work, device::state)?;
    if choice.place != throughput::Place::Cpu
        && let Some(problem) = device::problem()
    {
        choice = ask_model(options, calibration, work, || DeviceState::Missing(problem))?;
    }
    let is_closed = choice.hindrance == Some(Hindrance::Closed);
    let missed = choice.effort.filter(|_| is_closed);
    Ok(Placement {
        is_on_device: choice.place != throughput::Place::Cpu,
        predicted_gb_per_s: Some(choice.prediction().rate_gb_per_s),
        reason: reason_of(&choice, work),
        missed: missed.map(|effort| Missed { effort, num_cores: work.num_cores }),
    })
}

/// The model's sentence without the place, which stands in front of it, and what it assumes.
fn reason_of(choice: &Choice, work: &Work) -> String {
    let reason = &choice.reason;
    let reason = reason.split_once(": ").map_or(reason.as_str(), |(_, reason)| reason);
    match work.selectivity {
        Some(part) => format!("{reason}, where {:.1} % of the rows pass", 100.0 * part),
        None => reason.to_owned(),
    }
}

/// The part of the rows that pass all of `predicates`, of which `null_part` of the rows of a column
/// are null; `None` where there is no predicate. The one that fewest pass decides: how conditions
/// depend on each other is not known.
pub(super) fn selectivity(
    predicates: &[CodePredicate],
    null_part: impl Fn(usize) -> f64,
) -> Option<f64> {
    let of_one = |predicate: &CodePredicate| {
        let part = if predicate.is_negated { 1.0 - TEST_PART } else { TEST_PART };
        part * (1.0 - null_part(predicate.field_idx))
    };
    predicates.iter().map(of_one).reduce(f64::min)
}

/// The rates that plans go by; read once per plan. A device that was not calibrated has built-in rates, or those that
/// were measured when it was opened.
pub(crate) fn calibration() -> Calibration {
    let mut calibration = Calibration::load().unwrap_or_else(|error| {
        tracing::warn!(%error, "planning with built-in rates; run tadoc calibrate");
        Calibration::default()
    });
    if calibration.device.is_none() {
        calibration.device = device::rates().cloned();
    }
    calibration
}

fn ask_model(
    options: &TadocOptions,
    calibration: &Calibration,
    work: &Work,
    state: impl FnOnce() -> DeviceState,
) -> Result<Choice> {
    let width = calibration.width(options.gsst_code_bits);
    let rates = calibration.rates(options.gsst_code_bits, true);
    let guessed = work.stored_len_bytes.map(|stored| (stored as f64 * width.ratio) as u64);
    let text_len_bytes = guessed.unwrap_or(work.text_len_bytes).max(1);
    let column = Column::new(text_len_bytes, work.num_rows, width.ratio);
    let query = Query {
        selectivity: work.selectivity,
        is_wanted_on_host: work.is_text_wanted,
        // Storage that was not measured is left out: both places wait for it alike.
        is_in_host_memory: calibration.storage.source == StorageSource::BuiltIn,
        num_cores: work.num_cores.min(calibration.num_cores),
    };
    // A partition reads a row group at a time.
    let num_row_groups = work.num_rows.div_ceil(options.gsst_row_group_rows.max(1));
    let situation = Situation {
        num_blocks: if work.num_rows > 0 {
            num_row_groups
        } else {
            text_len_bytes.div_ceil(8 << 20)
        },
        is_resident: false,
    };
    choose(&rates, &column, &query, &situation, state).map_err(datafusion_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gsst::parquet::CodeTest;

    fn test_on(field_idx: usize, is_negated: bool) -> CodePredicate {
        CodePredicate { field_idx, test: CodeTest::IsIn(vec![b"a".to_vec()]), is_negated }
    }

    #[test]
    fn the_rarest_condition_says_how_many_rows_pass() {
        let null_part = |idx: usize| if idx == 1 { 0.5 } else { 0.0 };
        let part = |predicates: &[CodePredicate]| selectivity(predicates, null_part);
        assert_eq!(part(&[]), None);
        assert_eq!(part(&[test_on(0, false)]), Some(TEST_PART));
        assert_eq!(part(&[test_on(1, true)]), Some((1.0 - TEST_PART) / 2.0));
        assert_eq!(part(&[test_on(0, true), test_on(1, false)]), Some(TEST_PART / 2.0));
    }

    #[test]
    fn filters_on_text_are_placed_by_the_model() {
        let options = TadocOptions::default();
        let work = Work {
            // Too little to open a device for.
            text_len_bytes: 1 << 20,
            num_rows: 1 << 14,
            selectivity: Some(0.01),
            is_text_wanted: true,
            stored_len_bytes: None,
            num_cores: 2,
        };
        let placement = place(&options, &Calibration::default(), &work).unwrap();
        assert!(placement.reason.ends_with(", where 1.0 % of the rows pass"), "{placement}");
        assert!(placement.predicted_gb_per_s.is_some());
        let unfiltered = Work { selectivity: None, ..work };
        let placement = place(&options, &Calibration::default(), &unfiltered).unwrap();
        assert!(!placement.reason.contains("pass"), "{placement}");
        let nothing = Work { text_len_bytes: 0, ..work };
        let placement = place(&options, &Calibration::default(), &nothing).unwrap();
        assert_eq!(placement.reason, "no GSST column is read");
    }
}
