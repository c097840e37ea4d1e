//! Rows of `ingestion_model(t)`: every codec in every regime, behind a link of `t` GB/s.
//!
//! ```text
//! serial       link, then decode; text stays on the device        equation 3.4
//! overlapped   128 parts, one transferred while one is decoded    equations 3.5, 3.6
//! to_host      overlapped, and all text back over the same link
//! resident     blocks are in device memory already; decode only
//! cpu          link, block checks, cores; this machine only
//! ```
//!
//! A codec with a device and a text in its name was measured on that device, with at least 1 GiB of
//! whole lines of `lineitem` or of its comments ([`codecs`](super::codecs)). Compare codecs only
//! within one text. A codec of `this machine` has built-in rates and ratios, and pays for block
//! checks or staging; its rows on a device need one in the calibration. The link goes from storage
//! to the device directly (figure 3.1b of the thesis), with the same speed in both directions.
//!
//! A codec of `this machine` with the URL of a store has the ratio of the columns that the session
//! has read there. Its link is the store, at the observed rate, and not `t`.

use std::fmt;

use gsst::CodeWidth;
use tadoc::error::Result;

use super::calibration::Calibration;
use super::codecs::{L_COMMENT_H200, LINEITEM_H200};
use super::model::{Column, CpuRates, DeviceRates, Plan, Query, Rates, Route, Stage, built_in_ratio, predict};
use super::rates::num_cores;

/// Size of the column of each prediction: 1 GiB in blocks of 8 MiB, with rows of 128 bytes.
const TEXT_BYTES: u64 = 1 << 30;
const NUM_BLOCKS: u64 = 128;
const ROW_BYTES: u64 = 128;
const DEVICE: &str = "H200";
/// Rate of device memory of an H200, in bytes read and written (measured by copying).
const MEMORY_GB_PER_S: f64 = 4300.0;
/// Seconds of a launch on an H200, back to back (published for many devices: 5 to 7 us).
const LAUNCH_S: f64 = 7e-6;

/// A regime: the source of the text, its destination, and the order of the stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Regime {
    /// Transfer, then decode.
    Serial,
    /// Transfer and decode at the same time.
    Overlapped,
    /// Transfer and decode at the same time, and copy all text back to the host.
    ToHost,
    /// Decode blocks that are in device memory.
    Resident,
    /// Transfer to the host and decode there.
    Cpu,
}

impl fmt::Display for Regime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Serial => "serial",
            Self::Overlapped => "overlapped",
            Self::ToHost => "to_host",
            Self::Resident => "resident",
            Self::Cpu => "cpu",
        })
    }
}

/// A row: the prediction for one codec in one regime.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Name of the codec, with the device and the text of its measurement.
    pub codec: String,
    /// Regime of the prediction.
    pub regime: Regime,
    /// Bytes of text divided by all stored bytes.
    pub ratio: f64,
    /// Decoding rate, in GB of text per second; `None` if nothing is decoded.
    pub decode_gb_per_s: Option<f64>,
    /// Predicted throughput, in GB of text per second.
    pub predicted_gb_per_s: f64,
    /// Stage that works longest.
    pub binding: Stage,
}

/// Returns all codecs in all regimes behind a link of `link_gb_per_s`.
///
/// The rows are sorted by regime, then by falling throughput.
///
/// ```
/// use datafusion_tadoc::throughput::{Calibration, Regime, rows};
///
/// let rows = rows(55.0, &Calibration::default())?;
/// assert_eq!((rows[0].regime, &rows[0].codec[..7]), (Regime::Serial, "GSST-12"));
/// # Ok::<(), tadoc::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`](tadoc::Error::InvalidArgument) if the speed is not above 0.
pub fn rows(link_gb_per_s: f64, calibration: &Calibration) -> Result<Vec<Row>> {
    let mut rows = vec![uncompressed(link_gb_per_s)];
    let of = |text| move |codec| (text, codec);
    let lines = LINEITEM_H200.into_iter().map(of("lineitem"));
    for (text, codec) in lines.chain(L_COMMENT_H200.into_iter().map(of("l_comment"))) {
        let rates = published_rates(link_gb_per_s, codec.decode_gb_per_s);
        let name = format!("{} ({DEVICE}, {text})", codec.name);
        for regime in [Regime::Serial, Regime::Overlapped, Regime::ToHost, Regime::Resident] {
            rows.push(row(&name, codec.ratio, regime, &rates)?);
        }
    }
    for (name, width) in [("GSST-8", CodeWidth::Eight), ("GSST-12", CodeWidth::Twelve)] {
        let rates = with_link(calibration.rates(width, true), link_gb_per_s);
        let ratio = built_in_ratio(width);
        let name = format!("{name} (this machine)");
        for regime in regimes(calibration) {
            rows.push(row(&name, ratio, *regime, &rates)?);
        }
    }
    sort(&mut rows);
    Ok(rows)
}

/// Text of GSST columns of one width that a session has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ObservedText {
    /// Bytes of text.
    pub text_bytes: u64,
    /// Bytes of its blocks.
    pub stored_bytes: u64,
}

impl ObservedText {
    /// Returns bytes of text divided by stored bytes. `None` if nothing was read.
    pub fn ratio(&self) -> Option<f64> {
        let is_known = self.text_bytes > 0 && self.stored_bytes > 0;
        is_known.then(|| self.text_bytes as f64 / self.stored_bytes as f64)
    }
}

/// A store, as a session has observed it while it read GSST columns.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedStore {
    /// URL of the store.
    pub url: String,
    /// Rate of reading, in GB per second.
    pub gb_per_s: f64,
    /// Text whose codes have 8 bits.
    pub eight: ObservedText,
    /// Text whose codes have 12 bits.
    pub twelve: ObservedText,
}

/// Adds, for each store and width that a session has read, the row of the cores of this machine at
/// the observed rate and ratio. Keeps the order of [`rows`].
///
/// # Errors
///
/// The errors of [`predict`].
pub fn add_observed(rows: &mut Vec<Row>, stores: &[ObservedStore], calibration: &Calibration) -> Result<()> {
    for store in stores {
        let widths = [("GSST-8", CodeWidth::Eight, store.eight), ("GSST-12", CodeWidth::Twelve, store.twelve)];
        for (name, width, text) in widths {
            let Some(ratio) = text.ratio() else { continue };
            let rates = with_link(calibration.rates(width, false), store.gb_per_s);
            let name = format!("{name} (this machine, {})", store.url);
            rows.push(row(&name, ratio, Regime::Cpu, &rates)?);
        }
    }
    sort(rows);
    Ok(())
}

fn sort(rows: &mut [Row]) {
    let by_rate = |a: &Row, b: &Row| b.predicted_gb_per_s.total_cmp(&a.predicted_gb_per_s);
    rows.sort_by(|a, b| (a.regime as u8).cmp(&(b.regime as u8)).then_with(|| by_rate(a, b)));
}

/// Returns the regimes of this machine. Regimes of the device need a measured device.
fn regimes(calibration: &Calibration) -> &'static [Regime] {
    let all = &[Regime::Cpu, Regime::Serial, Regime::Overlapped, Regime::ToHost, Regime::Resident];
    if calibration.device.is_some() { all } else { &all[..1] }
}

/// Returns the row of uncompressed text, which only the link limits.
fn uncompressed(link_gb_per_s: f64) -> Row {
    Row {
        codec: "uncompressed".to_owned(),
        regime: Regime::Serial,
        ratio: 1.0,
        decode_gb_per_s: None,
        predicted_gb_per_s: link_gb_per_s,
        binding: Stage::HostToDevice,
    }
}

fn row(name: &str, ratio: f64, regime: Regime, rates: &Rates) -> Result<Row> {
    let column = Column::new(TEXT_BYTES, TEXT_BYTES / ROW_BYTES, ratio);
    let query = Query {
        selectivity: None,
        is_wanted_on_host: matches!(regime, Regime::ToHost | Regime::Cpu),
        is_in_host_memory: regime != Regime::Cpu,
        num_cores: num_cores(),
    };
    let overlapped = Plan::Overlapped { num_blocks: NUM_BLOCKS };
    let (route, plan) = match regime {
        Regime::Serial => (Route::Gpu, Plan::Serial),
        Regime::Overlapped | Regime::ToHost => (Route::Gpu, overlapped),
        Regime::Resident => (Route::GpuResident, Plan::Serial),
        Regime::Cpu => (Route::Cpu, overlapped),
    };
    let prediction = predict(rates, &column, &query, route, plan)?;
    let decode_gb_per_s = match (route, &rates.device) {
        (Route::Gpu | Route::GpuResident, Some(device)) => device.decode_gb_per_s,
        _ => num_cores() as f64 * rates.cpu.decode_gb_per_s,
    };
    Ok(Row {
        codec: name.to_owned(),
        regime,
        ratio,
        decode_gb_per_s: Some(decode_gb_per_s),
        predicted_gb_per_s: prediction.rate_gb_per_s,
        binding: prediction.binding,
    })
}

/// Returns the rates of a device with this decoding rate and link, and of a host that takes no
/// time.
fn published_rates(link_gb_per_s: f64, decode_gb_per_s: f64) -> Rates {
    const FREE: f64 = f64::INFINITY;
    Rates {
        storage_gb_per_s: FREE,
        is_storage_cached: false,
        cpu: CpuRates { check_gb_per_s: FREE, staging_gb_per_s: FREE, decode_gb_per_s: FREE, matching_gb_per_s: FREE },
        device: Some(DeviceRates {
            h2d_gb_per_s: link_gb_per_s,
            d2h_gb_per_s: link_gb_per_s,
            decode_gb_per_s,
            matching_gb_per_s: decode_gb_per_s,
            memory_gb_per_s: MEMORY_GB_PER_S,
            launch_s: LAUNCH_S,
            startup_s: 0.0,
        }),
    }
}

/// Returns `rates` with the link replaced.
fn with_link(rates: Rates, link_gb_per_s: f64) -> Rates {
    let device =
        rates.device.map(|device| DeviceRates { h2d_gb_per_s: link_gb_per_s, d2h_gb_per_s: link_gb_per_s, ..device });
    Rates { storage_gb_per_s: link_gb_per_s, is_storage_cached: false, device, ..rates }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::throughput::model::{overlapped_gb_per_s, serial_gb_per_s};

    fn find<'a>(rows: &'a [Row], codec: &str, regime: Regime) -> &'a Row {
        rows.iter().find(|row| row.codec == codec && row.regime == regime).unwrap()
    }

    #[test]
    fn rows_are_what_the_equations_say() {
        let rows = rows(55.0, &Calibration::default()).unwrap();
        let name = "nvCOMP Zstd (H200, lineitem)";
        let near = |row: &Row, expected: f64| {
            let got = row.predicted_gb_per_s;
            assert!((got / expected - 1.0).abs() < 0.01, "{row:?}, expected {expected}");
        };
        near(find(&rows, name, Regime::Serial), serial_gb_per_s(2.948, 55.0, 74.4));
        near(find(&rows, name, Regime::Overlapped), overlapped_gb_per_s(2.948, 55.0, 74.4, 128));
        near(find(&rows, name, Regime::Resident), 74.4);
        let best = find(&rows, "GSST-12, optimal parse (H200, lineitem)", Regime::ToHost);
        // Each row has 128 bytes of text and a view of 16 bytes.
        near(best, 55.0 * 128.0 / 144.0);
        assert_eq!(best.binding, Stage::DeviceToHost);
        assert_eq!(find(&rows, "uncompressed", Regime::Serial).predicted_gb_per_s, 55.0);
    }

    #[test]
    fn rows_are_ordered_and_all_there() {
        let defaults = Calibration::default();
        let rows_here = rows(1.0, &defaults).unwrap();
        assert_eq!(rows_here.len(), 1 + 13 * 4 + 2 * regimes(&defaults).len());
        let order: Vec<_> = rows_here.iter().map(|row| row.regime as u8).collect();
        assert!(order.is_sorted());
        for pair in rows_here.windows(2).filter(|pair| pair[0].regime == pair[1].regime) {
            assert!(pair[0].predicted_gb_per_s >= pair[1].predicted_gb_per_s);
        }
        assert!(rows(0.0, &defaults).is_err() && rows(f64::NAN, &defaults).is_err());
    }

    #[test]
    fn an_observed_store_has_a_row_for_each_width_that_was_read() {
        let calibration = Calibration::default();
        let store = ObservedStore {
            url: "s3://bucket/".to_owned(),
            gb_per_s: 0.001,
            eight: ObservedText::default(),
            twelve: ObservedText { text_bytes: 700, stored_bytes: 200 },
        };
        let mut all = rows(55.0, &calibration).unwrap();
        let num_rows = all.len();
        add_observed(&mut all, &[store], &calibration).unwrap();
        assert_eq!(all.len(), num_rows + 1);
        let row = find(&all, "GSST-12 (this machine, s3://bucket/)", Regime::Cpu);
        assert_eq!((row.ratio, row.binding), (3.5, Stage::Storage));
        assert!((row.predicted_gb_per_s / 0.0035 - 1.0).abs() < 0.02, "{row:?}");
        assert!(all.iter().map(|row| row.regime as u8).is_sorted());
    }

    #[test]
    fn regimes_have_the_names_of_the_sql_function() {
        let all = [Regime::Serial, Regime::Overlapped, Regime::ToHost, Regime::Resident, Regime::Cpu];
        let names = all.map(|regime| regime.to_string());
        assert_eq!(names, ["serial", "overlapped", "to_host", "resident", "cpu"]);
    }
}
