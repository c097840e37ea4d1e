//! Codecs: published and measured ratios and decoding rates, and the rows of `ingestion_model(t)`, which has every
//! codec in every regime behind a link of `t` GB/s.
//!
//! | table | device | text | source |
//! | --- | --- | --- | --- |
//! | [`THESIS_SECTION_6_2`] | A100 | TPC-H text of dbgen, 10 GB | Vonk, "GSST" (TU Delft, 2024), section 6.2: percentages of 191 GB/s and 2.74 |
//! | [`THESIS_SECTION_6_3`] | A100 | TPC-H text of dbgen, 10 GB | section 6.2, with two rates fitted to section 6.3 |
//! | [`LINEITEM_H200`] | H200 | `lineitem.tbl` of TPC-H, all columns, 1.4 GiB | `benches/results/2026-11-21-h200.md`: one run of `benches/peers/gpu_codecs.py` |
//! | [`L_COMMENT_H200`] | H200 | `l_comment` of TPC-H, 1.185 GiB | `benches/results/2026-11-20-h200.md` |
//!
//! *Contradiction in the thesis.* Section 6.3 (figure 6.3, no overlap, equation 3.4) says that GSST wins between 0.8
//! and 87 GB/s. Zstd wins below, and ANS wins above. The percentages of section 6.2 put the crossings at 0.70 and 104
//! GB/s instead. A rate of ANS of 314 GB/s (65 % above GSST, not 49 %) moves the second crossing to 87. With this rate,
//! the model also gives the figures of section 6.3 for a link of 22 GB/s: 45 GB/s for GSST and 35 for ANS, 27 % apart.
//! With 49 % it gives 29 %. So figure 6.3 was probably drawn with about 314 GB/s for ANS, and with about 11 GB/s for
//! Zstd (17 times slower than GSST, not 19.6). The thesis gives rates and ratios of LZ4, Snappy, GDeflate and Cascaded
//! only in the drawing of figure 6.2. They are left out.
//!
//! *Texts.* A ratio is valid for its text only. `l_comment` alone compresses better than whole lines (2.84 against 2.34
//! for GSST with 8 bits), so the two tables are not mixed.
//!
//! ```text
//! serial       link, then decode; text stays on the device        equation 3.4
//! overlapped   128 parts, one transferred while one is decoded    equations 3.5, 3.6
//! to_host      overlapped, and all text back over the same link
//! resident     blocks are in device memory already; decode only
//! cpu          link, block checks, cores; this machine only
//! ```
//!
//! A codec with a device and a text in its name was measured on that device, with at least 1 GiB of whole lines of
//! `lineitem` or of its comments. A codec of `this machine` has built-in rates and ratios, and pays for block checks or
//! staging; its rows on a device need one in the calibration. The link goes from storage to the device directly (figure
//! 3.1b of the thesis), with the same speed in both directions. A codec of `this machine` with the URL of a store has
//! the ratio of the columns that the session has read there. Its link is the store, at the observed rate, and not `t`.
//!
//! ```
//! use datafusion_tadoc::throughput::codecs::{THESIS_SECTION_6_3, best_at};
//!
//! let best = |link_gb_per_s| best_at(&THESIS_SECTION_6_3, link_gb_per_s).map(|codec| codec.name);
//! assert_eq!([best(0.5), best(22.0)], [Some("nvCOMP Zstd"), Some("GSST")]);
//! ```

use std::fmt;

use crate::throughput::calibration::Calibration;
use crate::throughput::model::{
    Column, CpuRates, DeviceRates, Plan, Query, Rates, Route, Stage, built_in_ratio, crossing_gb_per_s, predict,
    serial_gb_per_s,
};
use crate::throughput::rates::num_cores;
use gsst::CodeWidth;
use tadoc::error::Result;

/// A codec, with its ratio and rate on one device and text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Codec {
    /// Name of the codec.
    pub name: &'static str,
    /// Bytes of text divided by all stored bytes.
    pub ratio: f64,
    /// Decoding rate in device memory, in GB of text per second.
    pub decode_gb_per_s: f64,
}

const fn codec(name: &'static str, ratio: f64, decode_gb_per_s: f64) -> Codec {
    Codec { name, ratio, decode_gb_per_s }
}

const THESIS_GSST: Codec = codec("GSST", 2.74, 191.0);

/// Codecs of section 6.2 of the thesis.
///
/// ANS is 49 % faster than GSST, and the ratio of GSST is 49 % higher. For Bitcomp the figures are
/// 46 % and 151 %. The ratio of Zstd is 23 % higher than that of GSST, and GSST is 1,858 % faster.
pub const THESIS_SECTION_6_2: [Codec; 4] = [
    THESIS_GSST,
    codec("nvCOMP ANS", 2.74 / 1.49, 191.0 * 1.49),
    codec("nvCOMP Bitcomp", 2.74 / 2.51, 191.0 * 1.46),
    codec("nvCOMP Zstd", 2.74 * 1.23, 191.0 / 19.58),
];

/// Codecs of section 6.2, with rates of ANS and Zstd that cross GSST at 87 and 0.8 GB/s.
///
/// Section 6.3 gives these crossings.
pub const THESIS_SECTION_6_3: [Codec; 4] = [
    THESIS_GSST,
    codec("nvCOMP ANS", 2.74 / 1.49, decode_that_crosses(THESIS_GSST, 2.74 / 1.49, 87.0)),
    codec("nvCOMP Bitcomp", 2.74 / 2.51, 191.0 * 1.46),
    codec("nvCOMP Zstd", 2.74 * 1.23, decode_that_crosses(THESIS_GSST, 2.74 * 1.23, 0.8)),
];

/// Codecs on whole lines of `lineitem`, on one H200.
///
/// The codecs of this project and of nvCOMP 6.0.0.12 read the same bytes in the same run. Each
/// codec of nvCOMP has the chunk size at which it is fastest: 256 KiB for ANS, 64 KiB for the
/// others. GDeflate has level 4.
pub const LINEITEM_H200: [Codec; 9] = [
    codec("GSST-12, optimal parse", 3.078, 2480.0),
    codec("GSST-12", 2.917, 2339.0),
    codec("GSST-8, optimal parse", 2.375, 2028.0),
    codec("GSST-8", 2.342, 1997.0),
    codec("nvCOMP ANS", 1.591, 1245.0),
    codec("nvCOMP Snappy", 1.909, 196.5),
    codec("nvCOMP LZ4", 1.838, 101.5),
    codec("nvCOMP GDeflate", 3.368, 81.9),
    codec("nvCOMP Zstd", 2.948, 74.4),
];

/// Codecs on the comment column of `lineitem`, on one H200.
pub const L_COMMENT_H200: [Codec; 4] = [
    codec("GSST-12, optimal parse", 3.547, 2621.0),
    codec("GSST-12", 3.373, 2584.0),
    codec("GSST-8, optimal parse", 3.039, 2469.0),
    codec("GSST-8", 2.844, 2390.0),
];

/// Returns the decoding rate with which a codec of this ratio crosses `other` at `link_gb_per_s`.
const fn decode_that_crosses(other: Codec, ratio: f64, link_gb_per_s: f64) -> f64 {
    let transfer = (1.0 / ratio - 1.0 / other.ratio) / link_gb_per_s;
    1.0 / (1.0 / other.decode_gb_per_s - transfer)
}

impl Codec {
    /// Returns the text per second behind a link, if all of it is transferred before it is decoded.
    ///
    /// This is equation 3.4.
    pub fn serial_gb_per_s(&self, link_gb_per_s: f64) -> f64 {
        serial_gb_per_s(self.ratio, link_gb_per_s, self.decode_gb_per_s)
    }

    /// Returns the link speed at which both codecs are equally fast.
    ///
    /// Returns `None` if one codec is faster at every speed.
    pub fn crossing_gb_per_s(&self, other: &Self) -> Option<f64> {
        let pair = |codec: &Self| (codec.ratio, codec.decode_gb_per_s);
        crossing_gb_per_s(pair(self), pair(other))
    }
}

/// Returns the codec with the highest throughput behind a link, or `None` if `codecs` is empty.
pub fn best_at(codecs: &[Codec], link_gb_per_s: f64) -> Option<&Codec> {
    let rate = |codec: &Codec| codec.serial_gb_per_s(link_gb_per_s);
    codecs.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

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
        are_rows_compared: false,
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

    fn crossings(codecs: &[Codec; 4]) -> (f64, f64) {
        let [gsst, ans, _, zstd] = codecs;
        (gsst.crossing_gb_per_s(zstd).unwrap(), gsst.crossing_gb_per_s(ans).unwrap())
    }

    #[test]
    fn percentages_of_section_6_2_cross_near_what_section_6_3_says() {
        let (zstd, ans) = crossings(&THESIS_SECTION_6_2);
        assert_eq!((format!("{zstd:.2}"), format!("{ans:.0}")), ("0.70".into(), "104".into()));
        assert!((zstd / 0.8 - 1.0).abs() < 0.2 && (ans / 87.0 - 1.0).abs() < 0.2);
    }

    #[test]
    fn figure_6_3_has_its_crossings_and_what_the_text_says_of_22_gb_per_s() {
        let (zstd, ans) = crossings(&THESIS_SECTION_6_3);
        assert!((zstd - 0.8).abs() < 1e-9 && (ans - 87.0).abs() < 1e-9);
        // These figures were not used for the fit. The text of the thesis truncates them.
        let [gsst, ans, ..] = THESIS_SECTION_6_3.map(|codec| codec.serial_gb_per_s(22.0));
        assert_eq!((gsst.floor(), ans.floor()), (45.0, 35.0));
        assert_eq!(((gsst / ans - 1.0) * 100.0).floor(), 27.0);
    }

    #[test]
    fn gsst_wins_between_the_crossings_only() {
        let winner = |link| best_at(&THESIS_SECTION_6_3, link).unwrap().name;
        for (link, name) in [
            (0.1, "nvCOMP Zstd"),
            (0.79, "nvCOMP Zstd"),
            (0.81, "GSST"),
            (22.0, "GSST"),
            (86.0, "GSST"),
            (88.0, "nvCOMP ANS"),
            (450.0, "nvCOMP ANS"),
        ] {
            assert_eq!(winner(link), name, "{link} GB/s");
        }
    }

    #[test]
    fn measured_on_lineitem_gdeflate_wins_slow_links_and_gsst_all_others() {
        let winner = |link| best_at(&LINEITEM_H200, link).unwrap().name;
        for (link, name) in [
            (0.1, "nvCOMP GDeflate"),
            (2.3, "nvCOMP GDeflate"),
            (2.4, "GSST-12, optimal parse"),
            (1000.0, "GSST-12, optimal parse"),
        ] {
            assert_eq!(winner(link), name, "{link} GB/s");
        }
        let [_, _, eight, greedy, .., zstd] = LINEITEM_H200;
        assert_eq!(format!("{:.1}", eight.crossing_gb_per_s(&zstd).unwrap()), "6.3");
        assert_eq!(format!("{:.1}", greedy.crossing_gb_per_s(&zstd).unwrap()), "6.8");
        assert_eq!(best_at(&[], 1.0), None);
    }

    #[test]
    fn at_a_crossing_both_are_equal() {
        let [gsst, _, _, zstd] = THESIS_SECTION_6_2;
        let link = gsst.crossing_gb_per_s(&zstd).unwrap();
        assert!((gsst.serial_gb_per_s(link) / zstd.serial_gb_per_s(link) - 1.0).abs() < 1e-12);
        assert_eq!(gsst.crossing_gb_per_s(&gsst), None);
    }

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
