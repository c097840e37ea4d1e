//! Calibration: the storage of this machine and the link to its device, measured once and kept in a
//! file.
//!
//! ```text
//! storage    rate of reading files
//! device     name of the device, rates of the link, time of opening
//! file       Calibration ◀──▶ JSON, one number per line
//!            $TADOC_CALIBRATION, or $XDG_CONFIG_HOME/tadoc/calibration,
//!            ~/.config/tadoc/calibration, %APPDATA%\tadoc\calibration
//! ```
//!
//! All other rates are built in ([`CpuRates::for_width`], [`DeviceRates::for_device`]). Without a
//! file, predictions use built-in values only.
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

mod file;
mod measuring;

pub use file::path;
pub(crate) use measuring::installed_device;
pub use measuring::{DeviceCalibration, StorageRate, StorageSource, measure_device, measure_storage};

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::arrow::temporal_conversions::timestamp_s_to_datetime;
use serde::{Deserialize, Serialize};

use super::model::{CpuRates, DeviceRates, Rates};
use gsst::CodeWidth;
use tadoc::error::Result;

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
        let (machine, date) = ("any".to_owned(), "built in".to_owned());
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

#[cfg(test)]
mod tests {
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
}
