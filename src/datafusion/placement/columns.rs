//! The place of a scan of GSST columns: `tadoc.device`, the throughput model, and the devices.
//!
//! ```text
//! tadoc.device   cpu  ─▶ CPU
//!                gpu  ─▶ GPU, or an error if there is none
//!                auto ─▶ throughput::choose: statistics of the table, state of the device
//! ```
//!
//! With `auto`, a scan waits for the driver only if waiting is a gain, and `EXPLAIN` opens nothing.
//! A device that is demanded is opened as soon as the table is planned. The scan of a file handles
//! faults of the device.

use datafusion::error::Result;

use crate::errors::datafusion_error;
use crate::options::{Device, TadocOptions};
use crate::placement::decided::{Missed, Placement};
use crate::placement::session::DeviceSession;
use crate::throughput::calibration::StorageSource;
use crate::throughput::{
    self, Calibration, Choice, Column, DeviceState, Hindrance, Query, Situation, choose,
};
use gsst::parquet::CodePredicate;

/// Share of the rows that are not NULL that is assumed to pass a test, because there are no
/// statistics of texts. (PostgreSQL assumes 0.5 %.)
const TEST_PART: f64 = 0.01;

/// Columns that a scan decodes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ColumnWork {
    /// Length of the text of the GSST columns that the scan needs.
    pub(crate) text_len_bytes: u64,
    pub(crate) num_rows: u64,
    /// Share of the rows that pass the conditions on codes of GSST columns, if there are
    /// conditions. `text_len_bytes` is then the length of the text of these columns.
    pub(crate) selectivity: Option<f64>,
    /// True if the text is wanted, not only the rows that pass.
    pub(crate) is_text_wanted: bool,
    /// Stored bytes of the files, if nothing is known of their columns.
    pub(crate) stored_len_bytes: Option<u64>,
    pub(crate) num_cores: usize,
}

/// Opens the devices on another thread if one is demanded, so that the scan waits less.
pub(crate) fn prepare(devices: &DeviceSession, options: &TadocOptions) {
    if options.device == Device::Gpu {
        devices.open_soon();
    }
}

/// Decides the place of `work`.
///
/// # Errors
///
/// A plan error if a device is demanded and there is none.
pub(crate) fn place_columns(
    devices: &DeviceSession,
    options: &TadocOptions,
    calibration: &Calibration,
    work: &ColumnWork,
) -> Result<Placement> {
    let is_known = work.text_len_bytes > 0 || work.stored_len_bytes.is_some();
    let ask = |state: &dyn Fn() -> DeviceState| ask_model(options, calibration, work, state);
    match options.device {
        Device::Cpu => {
            let choice = is_known.then(|| ask(&|| DeviceState::Closed)).transpose()?;
            let predicted_gb_per_s = choice.map(|choice| choice.cpu.rate_gb_per_s);
            Ok(Placement { predicted_gb_per_s, ..Placement::on_cpu("tadoc.device = cpu") })
        }
        Device::Gpu => {
            devices.demand()?;
            let choice = ask(&|| DeviceState::Open)?;
            let predicted_gb_per_s = choice.gpu.map(|gpu| gpu.rate_gb_per_s);
            Ok(Placement { predicted_gb_per_s, ..Placement::on_device("tadoc.device = gpu") })
        }
        Device::Auto if !is_known => Ok(Placement::on_cpu("no GSST column is read")),
        Device::Auto => {
            let is_on_device = |choice: &Result<Choice>| choice.as_ref().is_ok_and(is_on_device);
            Ok(chosen(&devices.decide(ask, is_on_device)?, work))
        }
    }
}

fn is_on_device(choice: &Choice) -> bool {
    choice.route != throughput::Route::Cpu
}

/// Returns the placement of the model's choice.
fn chosen(choice: &Choice, work: &ColumnWork) -> Placement {
    let reason = reason_of(choice, work);
    let place = if is_on_device(choice) { Placement::on_device } else { Placement::on_cpu };
    let is_closed = choice.hindrance == Some(Hindrance::Closed);
    let missed = choice.effort.filter(|_| is_closed);
    Placement {
        predicted_gb_per_s: Some(choice.prediction().rate_gb_per_s),
        missed: missed.map(|effort| Missed { effort, num_cores: work.num_cores }),
        ..place(reason)
    }
}

/// Returns the model's sentence without the place, and its assumption about the filter.
fn reason_of(choice: &Choice, work: &ColumnWork) -> String {
    let reason = &choice.reason;
    let reason = reason.split_once(": ").map_or(reason.as_str(), |(_, reason)| reason);
    match work.selectivity {
        Some(part) => format!("{reason}, where {:.1} % of the rows pass", 100.0 * part),
        None => reason.to_owned(),
    }
}

/// Returns the share of the rows that pass all of `predicates`, or `None` without predicates.
/// `null_part` returns the share of NULLs in a column. The result is the share of the predicate
/// that the fewest rows pass, because the dependence between predicates is not known.
pub(crate) fn selectivity(
    predicates: &[CodePredicate],
    null_part: impl Fn(usize) -> f64,
) -> Option<f64> {
    let of_one = |predicate: &CodePredicate| {
        let part = if predicate.is_negated { 1.0 - TEST_PART } else { TEST_PART };
        part * (1.0 - null_part(predicate.field_idx))
    };
    predicates.iter().map(of_one).reduce(f64::min)
}

fn ask_model(
    options: &TadocOptions,
    calibration: &Calibration,
    work: &ColumnWork,
    state: &dyn Fn() -> DeviceState,
) -> Result<Choice> {
    let width = calibration.width(options.gsst_code_bits);
    let rates = calibration.rates(options.gsst_code_bits, true);
    let guessed = work.stored_len_bytes.map(|stored| (stored as f64 * width.ratio) as u64);
    let text_len_bytes = guessed.unwrap_or(work.text_len_bytes).max(1);
    let column = Column::new(text_len_bytes, work.num_rows, width.ratio);
    let query = Query {
        selectivity: work.selectivity,
        is_wanted_on_host: work.is_text_wanted,
        // Storage that was not measured is ignored, because both places wait for it equally.
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
        let work = ColumnWork {
            // This is too little text to open a device.
            text_len_bytes: 1 << 20,
            num_rows: 1 << 14,
            selectivity: Some(0.01),
            is_text_wanted: true,
            stored_len_bytes: None,
            num_cores: 2,
        };
        let placement =
            place_columns(&DeviceSession::default(), &options, &Calibration::default(), &work)
                .unwrap();
        assert!(placement.reason.ends_with(", where 1.0 % of the rows pass"), "{placement}");
        assert!(placement.predicted_gb_per_s().is_some());
        let unfiltered = ColumnWork { selectivity: None, ..work };
        let placement = place_columns(
            &DeviceSession::default(),
            &options,
            &Calibration::default(),
            &unfiltered,
        )
        .unwrap();
        assert!(!placement.reason.contains("pass"), "{placement}");
        let nothing = ColumnWork { text_len_bytes: 0, ..work };
        let placement =
            place_columns(&DeviceSession::default(), &options, &Calibration::default(), &nothing)
                .unwrap();
        assert_eq!(placement.reason, "no GSST column is read");
    }
}
