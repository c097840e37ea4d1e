//! Calibration: the storage of this machine and the link to its device, measured once and kept in a file.
//!
//! ```text
//! measuring  rate of reading files; name of the device, rates of the link, time of opening
//! file       $TADOC_CALIBRATION, or $XDG_CONFIG_HOME/tadoc/calibration,
//!            ~/.config/tadoc/calibration, %APPDATA%\tadoc\calibration
//!
//! {
//!   "version": 2,
//!   "calibration": {
//!     "machine": "build-7, Intel(R) Xeon(R) Platinum 8480C",
//!     "date": "2026-11-20",
//!     "storage": { "gb_per_s": 2.41, "source": "page_cache" },
//!     "device": { "name": "NVIDIA H200", "h2d_pinned_gb_per_s": 51.2, … }
//!   }
//! }
//! ```
//!
//! The keys of the file are the fields of [`Calibration`], and `null` stands for a number that was not measured. GB are
//! 10^9 bytes. A missing key has its built-in value, and other keys are ignored. Without the file, and for all other
//! rates ([`CpuRates::for_width`], [`DeviceRates::for_device`]), built-in values apply. The file is replaced as a
//! whole: readers see the old one or the new one.
//!
//! ```
//! use datafusion_tadoc::throughput::Calibration;
//! use datafusion_tadoc::throughput::calibration::DeviceCalibration;
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let file = dir.path().join("calibration");
//! let device = Some(DeviceCalibration::named("NVIDIA H200"));
//! let calibration = Calibration { device, ..Calibration::default() };
//! calibration.save_to(&file)?;
//! assert_eq!(Calibration::load_from(&file)?, calibration);
//! # Ok::<(), tadoc::Error>(())
//! ```

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::arrow::temporal_conversions::timestamp_s_to_datetime;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::throughput::model::{CpuRates, DeviceRates, Rates};
use gsst::CodeWidth;
use tadoc::error::{Error, Result};
use tadoc_store::staging::StagedFile;

mod measuring;

pub(crate) use measuring::installed_device;
pub use measuring::{DeviceCalibration, StorageRate, StorageSource, measure_device, measure_storage};

/// Measured rates of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Calibration {
    /// Name and processor of the machine.
    pub machine: String,
    /// Day of the measurement (UTC), such as `2026-11-20`, or `built in`.
    pub date: String,
    /// Rate of sequential reads.
    pub storage: StorageRate,
    /// Link to the device; `None` if no device was measured.
    pub device: Option<DeviceCalibration>,
}

impl Default for Calibration {
    /// Returns built-in values. There is no device.
    fn default() -> Self {
        let machine = "any".to_owned();
        let date = "built in".to_owned();
        Self { machine, date, storage: StorageRate::default(), device: None }
    }
}

impl Calibration {
    /// Measures the storage at a path, if one is given, and adds the measured `device`. Rates that
    /// are not measured are built in.
    ///
    /// # Errors
    ///
    /// Errors of [`measure_storage`].
    pub fn measure(storage: Option<&Path>, device: Option<DeviceCalibration>) -> Result<Self> {
        let mut storage = storage.map(measure_storage).transpose()?.unwrap_or_default();
        storage.gb_per_s = rounded(storage.gb_per_s);
        Ok(Self { machine: machine(), date: today(), storage, device })
    }

    /// Returns the rates that predictions for codes of this width need.
    ///
    /// With `has_device`, and if no device is named, the rates of the device are those of
    /// [`DeviceRates::default`].
    pub fn rates(&self, width: CodeWidth, has_device: bool) -> Rates {
        let device = || self.device.as_ref().map_or_else(DeviceRates::default, DeviceCalibration::rates);
        Rates {
            storage_gb_per_s: self.storage.gb_per_s,
            is_storage_cached: self.storage.source == StorageSource::PageCache,
            cpu: CpuRates::for_width(width),
            device: has_device.then(device),
        }
    }
}

/// Rounds to four significant digits, which is the precision of the measurement.
fn rounded(value: f64) -> f64 {
    // Rounding goes through text, so that the file has exactly these digits.
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// Returns the name and processor of this machine.
fn machine() -> String {
    let first_line = |path: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        Some(text.lines().next()?.trim().to_owned())
    };
    let host = first_line("/proc/sys/kernel/hostname")
        .or_else(|| ["COMPUTERNAME", "HOSTNAME"].iter().find_map(|name| std::env::var(name).ok()))
        .unwrap_or_else(|| "unknown".to_owned());
    let cpu_info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu_info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim())
    });
    format!("{host}, {}", model.unwrap_or(std::env::consts::ARCH))
}

/// Returns the current day (UTC), such as `2026-11-20`.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(since.as_secs()).ok().and_then(timestamp_s_to_datetime);
    now.map_or_else(String::new, |now| now.date().to_string())
}

const VERSION: u64 = 2;
/// Limit of a file's size, far above the size of a calibration. Larger files are refused.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// Longest part of a line that an error shows, in characters.
const MAX_SHOWN_CHARS: usize = 80;

/// The whole content of a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content<C> {
    version: u64,
    calibration: C,
}

/// Returns the path of this user's calibration: `TADOC_CALIBRATION`, else the file `calibration` in
/// the folder `tadoc` of the user's configuration. `None` if no variable names that folder.
pub fn path() -> Option<PathBuf> {
    path_from(|name| std::env::var_os(name), cfg!(windows))
}

fn path_from(variable: impl Fn(&str) -> Option<OsString>, is_windows: bool) -> Option<PathBuf> {
    let path_of = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = path_of("TADOC_CALIBRATION") {
        return Some(path);
    }
    let folder = if is_windows {
        path_of("APPDATA")
    } else {
        // The XDG base directory specification: relative paths are to be ignored.
        let configured = path_of("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        configured.or_else(|| Some(path_of("HOME")?.join(".config")))
    };
    Some(folder?.join("tadoc").join("calibration"))
}

impl Calibration {
    /// Reads the file at [`path`]. Returns the built-in values if there is none.
    ///
    /// # Errors
    ///
    /// The errors of [`Calibration::load_from`].
    pub fn load() -> Result<Self> {
        path().map_or_else(|| Ok(Self::default()), |path| Self::load_from(&path))
    }

    /// Reads the file at `path`. Returns the built-in values if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], and the errors of [`Calibration::from_text`].
    pub fn load_from(path: &Path) -> Result<Self> {
        let failed = |error| Error::io(format!("reading the calibration {}", path.display()), error);
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            file => file.map_err(failed)?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        let name = path.display().to_string();
        if bytes.len() as u64 > MAX_FILE_BYTES {
            let reason = format!("got more than {MAX_FILE_BYTES} bytes, expected a calibration");
            return Err(fault(&name, MAX_FILE_BYTES, reason));
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => Self::from_text(&name, text),
            Err(error) => {
                let reason = "got bytes that are not UTF-8, expected JSON".to_owned();
                Err(fault(&name, error.valid_up_to() as u64, reason))
            }
        }
    }

    /// Replaces the file at `path`. Creates its folder.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], and the errors of [`Calibration::to_text`]. The old file then stays.
    pub fn save_to(&self, path: &Path) -> Result<()> {
        let failed = |error| Error::io(format!("writing the calibration {}", path.display()), error);
        let text = self.to_text()?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        let replace = || {
            let mut new = StagedFile::create(path)?;
            new.write_all(text.as_bytes())?;
            new.file().sync_all()?;
            new.complete(true)
        };
        replace().map_err(failed)?;
        // A rename is durable once its folder is; not all systems can open folders.
        if let Ok(folder) = File::open(folder) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// Returns the file's text.
    ///
    /// # Errors
    ///
    /// [`Error::External`] if JSON cannot express the calibration. That happens to none today.
    pub fn to_text(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(&Content { version: VERSION, calibration: self })
            .map_err(|error| Error::external("writing a calibration as JSON", error))?;
        Ok(text + "\n")
    }

    /// Reads the calibration from `text`. Errors name `file` as its origin.
    ///
    /// # Errors
    ///
    /// [`Error::Version`]; [`Error::Format`] that names the line or the key if the text is not JSON,
    /// a key is there twice, or a number is not above 0.
    pub fn from_text(file: &str, text: &str) -> Result<Self> {
        let refused = |error| json_fault(file, text, &error);
        // The version comes first, because another version may have other keys.
        let content: Content<IgnoredAny> = serde_json::from_str(text).map_err(refused)?;
        if content.version != VERSION {
            let got = content.version.to_string();
            let expected = VERSION.to_string();
            return Err(Error::Version { file: file.to_owned(), expected, got });
        }
        let content: Content<Self> = serde_json::from_str(text).map_err(refused)?;
        let calibration = content.calibration;
        for (key, number) in calibration.numbers() {
            if !number.is_finite() || number <= 0.0 {
                let reason = format!("{key}: got {number}, expected a number above 0");
                return Err(fault(file, 0, reason));
            }
        }
        Ok(calibration)
    }

    /// Returns all measured numbers with their keys.
    fn numbers(&self) -> impl Iterator<Item = (&'static str, f64)> + use<> {
        let device = self.device.as_ref();
        let numbers = [
            ("storage.gb_per_s", Some(self.storage.gb_per_s)),
            ("device.h2d_pinned_gb_per_s", device.and_then(|device| device.h2d_pinned_gb_per_s)),
            ("device.d2h_pinned_gb_per_s", device.and_then(|device| device.d2h_pinned_gb_per_s)),
            ("device.startup_s", device.and_then(|device| device.startup_s)),
        ];
        numbers.into_iter().filter_map(|(key, number)| Some((key, number?)))
    }
}

/// Returns the error for text that `serde_json` refuses, with the line that it stopped at.
fn json_fault(file: &str, text: &str, error: &serde_json::Error) -> Error {
    let num_before = error.line().saturating_sub(1);
    let before_bytes: usize = text.split_inclusive('\n').take(num_before).map(str::len).sum();
    let line = text.lines().nth(num_before).unwrap_or_default().trim();
    let shown: String = line.chars().take(MAX_SHOWN_CHARS).collect();
    let offset = (before_bytes + error.column()) as u64;
    fault(file, offset, format!("got `{shown}`, expected a calibration in JSON: {error}"))
}

/// Returns the error for a file that is no calibration. It names the way out.
fn fault(file: &str, offset: u64, reason: String) -> Error {
    let reason = format!("{reason}; run `tadoc calibrate` again");
    Error::Format { file: file.to_owned(), section: "calibration", offset, reason }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    #[test]
    fn a_machine_is_measured_and_survives_its_file() {
        let link = DeviceCalibration {
            h2d_pinned_gb_per_s: Some(55.12),
            startup_s: Some(0.25),
            ..DeviceCalibration::named("NVIDIA H200")
        };
        let calibration = Calibration::measure(None, Some(link)).unwrap();
        assert_eq!((calibration.date.len(), calibration.storage), (10, StorageRate::default()));
        let text = calibration.to_text().unwrap();
        assert_eq!(Calibration::from_text("test", &text).unwrap(), calibration);
        // The link is that which was measured, and the rest is built in for the name.
        let device = calibration.rates(CodeWidth::Eight, true).device.unwrap();
        let expected = DeviceRates { h2d_gb_per_s: 55.12, startup_s: 0.25, ..DeviceRates::for_device("NVIDIA H200") };
        assert_eq!(device, expected);
        assert_eq!(calibration.rates(CodeWidth::Eight, false).device, None);
    }

    #[test]
    fn four_digits_are_kept() {
        assert_eq!(rounded(55.123_456), 55.12);
        assert_eq!(rounded(0.000_006_123_4), 0.000_006_123);
        assert_eq!(rounded(2390.4), 2390.0);
        assert_eq!(rounded(0.0), 0.0);
    }

    /// A file that also has rates of cores, of decoding and of tasks over corpora.
    const WITH_MORE_RATES: &str = r#"{
  "version": 2,
  "calibration": {
    "machine": "build-7, Xeon", "date": "2026-11-20", "num_cores": 16,
    "storage": { "gb_per_s": 2.41, "source": "page_cache" },
    "eight": { "ratio": 2.25, "cpu": { "check": { "per_core_gb_per_s": 2.1, "all_cores_gb_per_s": 24.0 } } },
    "corpora": [{ "one_core": 1.1, "all_cores": 0.2, "large": null }],
    "corpus_elements": [12345.0, null],
    "device": {
      "name": "NVIDIA H200",
      "h2d_pinned_gb_per_s": 51.2, "h2d_pageable_gb_per_s": 11.0,
      "d2h_pinned_gb_per_s": null, "d2h_pageable_gb_per_s": 5.0,
      "decode_8bit_gb_per_s": 980.0, "matching_gb_per_s": null, "launch_s": 0.00004, "startup_s": 0.21,
      "corpus_task_s": 0.005, "corpus_unit_s": [null, 1e-9, null, null, null]
    }
  }
}"#;

    fn with_device() -> Calibration {
        let device = DeviceCalibration {
            h2d_pinned_gb_per_s: Some(55.2),
            startup_s: Some(0.31),
            ..DeviceCalibration::named("NVIDIA H200")
        };
        Calibration { device: Some(device), ..Calibration::default() }
    }

    /// Returns a calibration that has every number, each with digits that need the last bit.
    fn with_everything() -> Calibration {
        let third = Some(1.0 / 3.0);
        let device = DeviceCalibration {
            name: "NVIDIA \"H200\"\n".to_owned(),
            h2d_pinned_gb_per_s: third,
            d2h_pinned_gb_per_s: third,
            startup_s: Some(6.123_456_789_012_345e-6),
        };
        Calibration { device: Some(device), ..Calibration::default() }
    }

    fn text_of(calibration: &Calibration) -> String {
        calibration.to_text().unwrap()
    }

    /// Returns the reason without the way out, which every reason has.
    fn reason(text: &str) -> String {
        match Calibration::from_text("some/file", text) {
            Err(Error::Format { file, section: "calibration", reason, offset }) => {
                assert_eq!(file, "some/file");
                assert!(offset <= text.len() as u64, "{offset}");
                reason.strip_suffix("; run `tadoc calibrate` again").unwrap().to_owned()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn reading_returns_the_calibration_that_was_written() {
        for calibration in [Calibration::default(), with_device(), with_everything()] {
            let text = text_of(&calibration);
            assert_eq!(Calibration::from_text("f", &text).unwrap(), calibration, "{text}");
            let windows = text.replace('\n', "\r\n");
            assert_eq!(Calibration::from_text("f", &windows).unwrap(), calibration);
        }
    }

    #[test]
    fn keys_may_be_left_out_and_others_are_ignored() {
        let text = text_of(&with_device());
        let left_out = text.replacen("\"d2h_pinned_gb_per_s\": null,", "", 1);
        assert_ne!(left_out, text);
        assert_eq!(Calibration::from_text("f", &left_out).unwrap(), with_device());
        let nothing = "{\"version\": 2, \"calibration\": {}}";
        assert_eq!(Calibration::from_text("f", nothing).unwrap(), Calibration::default());
        let read = Calibration::from_text("f", WITH_MORE_RATES).unwrap();
        let machine = "build-7, Xeon";
        let storage = StorageSource::PageCache;
        assert_eq!((read.machine.as_str(), read.date.as_str()), (machine, "2026-11-20"));
        assert_eq!(read.storage, StorageRate { gb_per_s: 2.41, source: storage });
        let device = DeviceCalibration {
            h2d_pinned_gb_per_s: Some(51.2),
            startup_s: Some(0.21),
            ..DeviceCalibration::named("NVIDIA H200")
        };
        assert_eq!(read.device, Some(device));
    }

    #[test]
    fn each_number_must_be_above_0() {
        let calibration = with_everything();
        assert_eq!(calibration.numbers().count(), 4);
        for (key, number) in calibration.numbers() {
            let name = key.rsplit('.').next().unwrap();
            let number = serde_json::to_string(&number).unwrap();
            for wrong in [0.0, -0.0, -1.5, -f64::MAX] {
                let from = format!("\"{name}\": {number}");
                let changed = text_of(&calibration).replacen(&from, &format!("\"{name}\": {wrong:?}"), 1);
                assert_eq!(reason(&changed), format!("{key}: got {wrong}, expected a number above 0"));
            }
        }
    }

    #[test]
    fn numbers_must_be_finite() {
        let text = text_of(&with_device());
        for wrong in ["NaN", "inf", "-inf", "1e999", "\"0.5\"", "null", "[]", "0.5 GB"] {
            let reason = reason(&text.replacen("\"gb_per_s\": 0.5", &format!("\"gb_per_s\": {wrong}"), 1));
            let start = format!("got `\"gb_per_s\": {wrong},`, expected a calibration in JSON: ");
            assert!(reason.starts_with(&start) && reason.contains("at line 7 "), "{reason}");
        }
    }

    #[test]
    fn faults_name_key_and_line() {
        let text = text_of(&with_device());
        let changed = |from: &str, to: &str| {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            reason(&changed)
        };
        let holds = |reason: String, parts: &[&str]| {
            assert!(parts.iter().all(|part| reason.contains(part)), "{reason}");
        };
        holds(changed("\"name\"", "\"startup_s\": 1, \"name\""), &["duplicate field `startup_s`"]);
        holds(changed("\"built_in\"", "\"tape\""), &["`\"source\": \"tape\"`", "unknown variant `tape`"]);
        holds(changed("\"calibration\"", "\"calibrations\""), &["unknown field `calibrations`"]);
        holds(reason("what"), &["got `what`", "at line 1 "]);
        holds(reason(""), &["got ``", "EOF while parsing"]);
        holds(reason(&format!("{text}x")), &["got `x`", "trailing characters"]);
        holds(reason(&"[".repeat(10_000)), &[&format!("got `{}`", "[".repeat(MAX_SHOWN_CHARS))]);
        let cut = reason(&text[..text.len() / 2]);
        holds(cut, &["EOF while parsing"]);
    }

    #[test]
    fn other_versions_are_refused() {
        let later = "{\"version\": 3, \"calibration\": [1, {\"speed\": \"high\"}]}";
        let error = Calibration::from_text("f", later).unwrap_err();
        assert!(matches!(&error, Error::Version { got, .. } if got == "3"), "{error:?}");
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/folders/calibration");
        assert_eq!(Calibration::load_from(&path).unwrap(), Calibration::default());
        for calibration in [with_device(), Calibration::default(), with_device()] {
            calibration.save_to(&path).unwrap();
            assert_eq!(Calibration::load_from(&path).unwrap(), calibration);
        }
        let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration");
        fs::create_dir(&path).unwrap();
        assert!(matches!(with_device().save_to(&path), Err(Error::Io { .. })));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(matches!(Calibration::load_from(&path), Err(Error::Io { .. })));
    }

    #[test]
    fn huge_and_binary_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration");
        for bytes in [vec![b'#'; 70_000], vec![0xFF; 10]] {
            fs::write(&path, bytes).unwrap();
            let error = Calibration::load_from(&path).unwrap_err();
            assert!(matches!(error, Error::Format { .. }), "{error}");
            assert!(error.to_string().contains("run `tadoc calibrate` again"), "{error}");
        }
    }

    #[test]
    fn places_follow_the_variables() {
        let of = |set: &[(&str, &str)], is_windows| {
            let value = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, v)| v.into());
            path_from(value, is_windows)
        };
        let own = [("TADOC_CALIBRATION", "here"), ("HOME", "/home/u")];
        assert_eq!(of(&own, false).unwrap(), Path::new("here"));
        assert_eq!(of(&own, true).unwrap(), Path::new("here"));
        let home = Path::new("/home/u/.config/tadoc/calibration");
        for set in [
            vec![("HOME", "/home/u")],
            vec![("HOME", "/home/u"), ("XDG_CONFIG_HOME", "")],
            vec![("HOME", "/home/u"), ("XDG_CONFIG_HOME", "relative"), ("TADOC_CALIBRATION", "")],
        ] {
            assert_eq!(of(&set, false).unwrap(), home);
        }
        let configured = [("HOME", "/home/u"), ("XDG_CONFIG_HOME", "/etc/u")];
        assert_eq!(of(&configured, false).unwrap(), Path::new("/etc/u/tadoc/calibration"));
        let windows = of(&[("APPDATA", "data"), ("HOME", "/home/u")], true).unwrap();
        assert_eq!(windows, Path::new("data").join("tadoc").join("calibration"));
        assert_eq!(of(&[], false), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,300}") {
            let _ = Calibration::from_text("f", &text);
        }

        #[test]
        fn any_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("calibration");
            fs::write(&path, bytes).unwrap();
            prop_assert!(Calibration::load_from(&path).is_err());
        }

        #[test]
        fn a_damaged_file_is_read_or_refused(place: Index, byte: u8) {
            let mut bytes = text_of(&with_everything()).into_bytes();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            let Ok(text) = String::from_utf8(bytes) else { return Ok(()) };
            if let Ok(read) = Calibration::from_text("f", &text) {
                prop_assert!(read.numbers().all(|(_, number)| number > 0.0));
            }
        }
    }
}
