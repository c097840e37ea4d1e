//! The place of a scan of GSST columns: `tadoc.device`, the throughput model, and the devices.
//!
//! ```text
//! tadoc.device   cpu  ─▶ CPU
//!                gpu  ─▶ GPU, or an error if there is none
//!                auto ─▶ throughput::choose: statistics of the table, state of the device
//! ```
//!
//! With `auto`, a scan waits for the driver only if waiting is a gain, and `EXPLAIN` opens nothing. A device that is
//! demanded is opened as soon as the table is planned. The scan of a file handles faults of the device.
//!
//! Width, ratio and number of row groups are those of the files. The rate of the store is that of the calibration for
//! local files, else that which the session has observed.

use datafusion::error::{DataFusionError, Result};

use crate::errors::datafusion_error;
use crate::options::{Device, TadocOptions};
use crate::placement::chooser::Placement;
use crate::placement::session::DeviceSession;
use crate::throughput::calibration::StorageSource;
use crate::throughput::model::built_in_ratio;
use crate::throughput::{
    self, Calibration, Choice, Column, DeviceState, Hindrance, Query, Rates, Situation, choose, num_cores,
};
use gsst::CodeWidth;
use gsst::parquet::CodePredicate;

/// Share of the rows that are not NULL that is assumed to pass a test, because there are no
/// statistics of texts. (PostgreSQL assumes 0.5 %.)
const TEST_PART: f64 = 0.01;

/// A scan of 1 GiB of text, by which the width of codes is chosen.
const MUCH_TEXT: ColumnWork = ColumnWork {
    text_len_bytes: 1 << 30,
    num_rows: 1 << 25,
    selectivity: None,
    is_text_wanted: true,
    are_rows_compared: false,
    stored_len_bytes: 0,
    width: None,
    num_row_groups: 64,
    storage: Storage { is_local: false, observed_gb_per_s: None },
    num_cores: 1,
};

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
    /// True if the rows are compared with each other, as for groups.
    pub(crate) are_rows_compared: bool,
    /// Length of the blocks of these columns.
    pub(crate) stored_len_bytes: u64,
    /// Width of most of their codes. `None` if the files do not say it.
    pub(crate) width: Option<CodeWidth>,
    pub(crate) num_row_groups: u64,
    pub(crate) storage: Storage,
    pub(crate) num_cores: usize,
}

/// The store of the files of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Storage {
    /// True if the files are local, as those that the calibration reads.
    pub(crate) is_local: bool,
    /// Rate that the session has observed.
    pub(crate) observed_gb_per_s: Option<f64>,
}

impl Storage {
    /// Returns the store at `store_url`, with the rate that the session of `devices` has observed.
    pub(crate) fn for_url(devices: &DeviceSession, store_url: &str) -> Self {
        Self { is_local: is_local(store_url), observed_gb_per_s: devices.stores().rate_gb_per_s(store_url) }
    }
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
    let is_known = work.text_len_bytes > 0;
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
    let is_missed = choice.hindrance == Some(Hindrance::Closed);
    Placement {
        predicted_gb_per_s: Some(choice.prediction().rate_gb_per_s),
        missed_bytes: if is_missed { work.text_len_bytes } else { 0 },
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
pub(crate) fn selectivity(predicates: &[CodePredicate], null_part: impl Fn(usize) -> f64) -> Option<f64> {
    let passing_share = |predicate: &CodePredicate| {
        let part = if predicate.is_negated { 1.0 - TEST_PART } else { TEST_PART };
        part * (1.0 - null_part(predicate.field_idx))
    };
    predicates.iter().map(passing_share).reduce(f64::min)
}

pub(crate) fn is_local(store_url: &str) -> bool {
    store_url.starts_with("file:")
}

/// Returns the width of codes with which a scan of all rows of much text in `storage` is predicted to be faster, 8
/// bits if both are equal. Waits for the driver.
///
/// # Errors
///
/// An execution error if a rate of the calibration is not above 0.
pub(crate) fn fastest_width(
    devices: &DeviceSession,
    options: &TadocOptions,
    calibration: &Calibration,
    storage: Storage,
    num_cores: usize,
) -> Result<CodeWidth> {
    // A file is scanned many times, so the device is open.
    let state = || devices.problem().map_or(DeviceState::Open, DeviceState::Missing);
    let seconds = |width| {
        let work = ColumnWork { storage, num_cores, width: Some(width), ..MUCH_TEXT };
        let choice = ask_model(options, calibration, &work, &state)?;
        let prediction = if options.device == Device::Cpu { &choice.cpu } else { choice.prediction() };
        Ok::<_, DataFusionError>(prediction.seconds)
    };
    let is_twelve = seconds(CodeWidth::Twelve)? < seconds(CodeWidth::Eight)?;
    Ok(if is_twelve { CodeWidth::Twelve } else { CodeWidth::Eight })
}

fn ask_model(
    options: &TadocOptions,
    calibration: &Calibration,
    work: &ColumnWork,
    state: &dyn Fn() -> DeviceState,
) -> Result<Choice> {
    let width = work.width.unwrap_or(options.code_width());
    let storage_gb_per_s = storage_rate(calibration, work.storage);
    let mut rates = calibration.rates(width, true);
    if let Some(rate) = storage_gb_per_s.filter(|_| !is_calibrated(calibration, work.storage)) {
        rates = Rates { storage_gb_per_s: rate, is_storage_cached: false, ..rates };
    }
    let text_len_bytes = work.text_len_bytes.max(1);
    let ratio = if work.text_len_bytes > 0 && work.stored_len_bytes > 0 {
        work.text_len_bytes as f64 / work.stored_len_bytes as f64
    } else {
        built_in_ratio(width)
    };
    let column = Column::new(text_len_bytes, work.num_rows, ratio);
    let query = Query {
        selectivity: work.selectivity,
        is_wanted_on_host: work.is_text_wanted,
        are_rows_compared: work.are_rows_compared,
        // Storage of which no rate is known is ignored, because both places wait for it equally.
        is_in_host_memory: storage_gb_per_s.is_none(),
        num_cores: work.num_cores.min(num_cores()),
    };
    // A partition reads a row group at a time.
    let situation = Situation { num_blocks: work.num_row_groups, is_resident: false };
    choose(&rates, &column, &query, &situation, state).map_err(datafusion_error)
}

/// Returns true if the calibration has measured the store.
fn is_calibrated(calibration: &Calibration, storage: Storage) -> bool {
    storage.is_local && calibration.storage.source != StorageSource::BuiltIn
}

/// Returns the rate of the store, if it was measured or observed.
fn storage_rate(calibration: &Calibration, storage: Storage) -> Option<f64> {
    if is_calibrated(calibration, storage) {
        return Some(calibration.storage.gb_per_s);
    }
    storage.observed_gb_per_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::throughput::Stage;
    use crate::throughput::calibration::{DeviceCalibration, StorageRate};
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
            stored_len_bytes: 1 << 19,
            num_row_groups: 1,
            num_cores: 2,
            ..ColumnWork::default()
        };
        let placement = place_columns(&DeviceSession::default(), &options, &Calibration::default(), &work).unwrap();
        assert!(placement.reason.ends_with(", where 1.0 % of the rows pass"), "{placement}");
        assert!(placement.predicted_gb_per_s().is_some());
        let unfiltered = ColumnWork { selectivity: None, ..work };
        let placement =
            place_columns(&DeviceSession::default(), &options, &Calibration::default(), &unfiltered).unwrap();
        assert!(!placement.reason.contains("pass"), "{placement}");
        let nothing = ColumnWork { text_len_bytes: 0, ..work };
        let placement = place_columns(&DeviceSession::default(), &options, &Calibration::default(), &nothing).unwrap();
        assert_eq!(placement.reason, "no GSST column is read");
    }

    /// Returns the rate that the model predicts on the cores, under the setting `bits` for writing.
    fn predicted(work: &ColumnWork, calibration: &Calibration, bits: CodeWidth) -> Choice {
        let options = TadocOptions { gsst_code_bits: Some(bits), ..TadocOptions::default() };
        ask_model(&options, calibration, work, &|| DeviceState::Closed).unwrap()
    }

    #[test]
    fn the_files_decide_and_not_the_settings_for_writing() {
        let work = ColumnWork {
            text_len_bytes: 100 << 20,
            num_rows: 1 << 20,
            is_text_wanted: true,
            stored_len_bytes: 25 << 20,
            num_row_groups: 4,
            storage: Storage { is_local: true, observed_gb_per_s: Some(0.01) },
            num_cores: 2,
            ..ColumnWork::default()
        };
        let calibration = Calibration::default();
        let both = [CodeWidth::Eight, CodeWidth::Twelve];
        for width in both {
            let work = ColumnWork { width: Some(width), ..work };
            let [one, other] = both.map(|bits| predicted(&work, &calibration, bits));
            assert_eq!(one, other);
            // Storage passes 10 MB/s of codes, and 4 times as much text.
            assert_eq!(one.cpu.binding, Stage::Storage);
            assert!((one.cpu.seconds_of(Stage::Storage) - 2.62144).abs() < 1e-9);
            let per_core = calibration.rates(width, false).cpu.check_gb_per_s;
            let check = per_core * num_cores().min(2) as f64;
            let expected = f64::from(100 << 20) / check / 1e9;
            assert!((one.cpu.seconds_of(Stage::BlockChecks) - expected).abs() < 1e-9);
        }
        // A file that does not say its width is taken for one that this session would write.
        let [eight, twelve] = both.map(|bits| predicted(&work, &calibration, bits));
        assert!(eight.cpu != twelve.cpu);
        let few = ColumnWork { num_row_groups: 1, ..work };
        assert!(predicted(&few, &calibration, CodeWidth::Eight).reason.contains("on 1 core "));
    }

    #[test]
    fn slow_storage_has_wide_codes_and_fast_storage_narrow_ones() {
        let devices = DeviceSession::default();
        let options = TadocOptions { device: Device::Cpu, ..TadocOptions::default() };
        let width = |gb_per_s, num_cores| {
            let storage = Storage { is_local: false, observed_gb_per_s: Some(gb_per_s) };
            fastest_width(&devices, &options, &Calibration::default(), storage, num_cores).unwrap()
        };
        assert_eq!(width(0.01, 1), CodeWidth::Twelve);
        assert_eq!(width(100.0, 1), CodeWidth::Eight);
        let unknown = Storage::default();
        let width = fastest_width(&devices, &options, &Calibration::default(), unknown, 1).unwrap();
        assert_eq!(width, CodeWidth::Eight);
    }

    /// The device tests of faults rely on it: their sessions have one core, little text, and such a
    /// calibration.
    #[test]
    fn a_device_that_costs_nothing_is_wanted_for_little_text() {
        let device = DeviceCalibration {
            name: "NVIDIA H200".to_owned(),
            h2d_pinned_gb_per_s: Some(1e6),
            d2h_pinned_gb_per_s: Some(1e6),
            startup_s: Some(1e-9),
        };
        let storage = StorageRate { gb_per_s: 1e6, source: StorageSource::Storage };
        let calibration = Calibration { storage, device: Some(device), ..Calibration::default() };
        for num_cores in [1, 4] {
            let work = ColumnWork {
                text_len_bytes: 4_600_000,
                num_rows: 80_000,
                is_text_wanted: true,
                stored_len_bytes: 1_000_000,
                num_row_groups: 20,
                storage: Storage { is_local: true, observed_gb_per_s: Some(0.01) },
                num_cores,
                ..ColumnWork::default()
            };
            for bits in [CodeWidth::Eight, CodeWidth::Twelve] {
                let choice = predicted(&work, &calibration, bits);
                assert!(is_on_device(&choice), "{}", choice.reason);
            }
        }
    }

    #[test]
    fn a_store_has_the_rate_that_was_measured_or_observed() {
        let built_in = Calibration::default();
        let measured = StorageRate { gb_per_s: 3.0, source: StorageSource::Storage };
        let measured = Calibration { storage: measured, ..Calibration::default() };
        let storage = |is_local, observed_gb_per_s| Storage { is_local, observed_gb_per_s };
        assert_eq!(storage_rate(&built_in, storage(true, None)), None);
        assert_eq!(storage_rate(&built_in, storage(true, Some(2.0))), Some(2.0));
        assert_eq!(storage_rate(&measured, storage(true, Some(2.0))), Some(3.0));
        assert_eq!(storage_rate(&measured, storage(false, Some(2.0))), Some(2.0));
        assert_eq!(storage_rate(&measured, storage(false, None)), None);
        let work = ColumnWork { text_len_bytes: 1 << 20, num_row_groups: 1, ..Default::default() };
        let choice = predicted(&work, &built_in, CodeWidth::Eight);
        assert_eq!(choice.cpu.seconds_of(Stage::Storage), 0.0);
    }
}
