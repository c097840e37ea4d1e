//! What a machine does in a second: the numbers the model takes.
//!
//! Rates of links count stored bytes, all others bytes of text; GB are 10^9 bytes. Where the
//! numbers come from is the business of [`calibration`](super::calibration).

use serde::{Deserialize, Serialize};
use tadoc::error::{Error, Result};

/// What a machine does in a second, for codes of one width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Stored bytes from storage to the host.
    pub storage_gb_per_s: f64,
    /// Whether that is the page cache: reading it is a copy, and the cores do it.
    pub is_storage_cached: bool,
    /// Its cores.
    pub cpu: CpuRates,
    /// Its device, if there is one.
    pub device: Option<DeviceRates>,
}

/// What cores do in a second, in bytes of text.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuRates {
    /// Checking blocks for decoding on the cores: checksum, codes, splits, lengths.
    pub check: CoreRate,
    /// Checksums of blocks, and a copy to where the device takes them from; it checks the rest.
    pub staging: CoreRate,
    /// Decoding checked blocks to arrays of views, UTF-8 checked.
    pub decode: CoreRate,
    /// Finding the rows a predicate accepts.
    pub matching: CoreRate,
    /// Writing blocks with a table that has been trained. Not part of any prediction; for `COPY`.
    pub encode: CoreRate,
}

/// A rate of the CPU: cores help until something they share is used up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreRate {
    /// One core alone.
    pub per_core_gb_per_s: f64,
    /// All cores together.
    pub all_cores_gb_per_s: f64,
}

impl Rates {
    /// That all rates are above 0, and no time below.
    pub(super) fn check(&self) -> Result<()> {
        above_zero("storage_gb_per_s", self.storage_gb_per_s)?;
        let CpuRates { check, staging, decode, matching, encode } = self.cpu;
        for rate in [check, staging, decode, matching, encode] {
            above_zero("per_core_gb_per_s", rate.per_core_gb_per_s)?;
            above_zero("all_cores_gb_per_s", rate.all_cores_gb_per_s)?;
        }
        let Some(device) = &self.device else { return Ok(()) };
        above_zero("h2d_gb_per_s", device.h2d_gb_per_s)?;
        above_zero("d2h_gb_per_s", device.d2h_gb_per_s)?;
        above_zero("decode_gb_per_s", device.decode_gb_per_s)?;
        above_zero("matching_gb_per_s", device.matching_gb_per_s)?;
        above_zero("memory_gb_per_s", device.memory_gb_per_s)?;
        // Times may be 0.
        above_zero("launch_s", 1.0 + device.launch_s)?;
        above_zero("startup_s", 1.0 + device.startup_s)
    }
}

impl CoreRate {
    /// The rate of `num_cores` cores, at least one.
    pub fn of(self, num_cores: usize) -> f64 {
        let alone = self.per_core_gb_per_s;
        (alone * num_cores.max(1) as f64).min(self.all_cores_gb_per_s.max(alone))
    }
}

/// What a device does in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceRates {
    /// Host memory to device memory.
    pub h2d_gb_per_s: f64,
    /// Device memory to host memory.
    pub d2h_gb_per_s: f64,
    /// Text decoded, in device memory.
    pub decode_gb_per_s: f64,
    /// Text matched, in device memory, nothing written but one bit per row.
    pub matching_gb_per_s: f64,
    /// Bytes of device memory read and written.
    pub memory_gb_per_s: f64,
    /// What a part costs however small it is, its copies and kernels submitted one by one; seconds.
    pub launch_s: f64,
    /// Opening the device and loading a kernel, once per process, in seconds.
    pub startup_s: f64,
}

pub(super) fn above_zero(name: &'static str, value: f64) -> Result<()> {
    if value > 0.0 { Ok(()) } else { Err(invalid(name, value, "a number above 0")) }
}

pub(super) fn invalid(name: &'static str, got: impl ToString, allowed: &str) -> Error {
    Error::InvalidArgument { name, got: got.to_string(), allowed: allowed.to_owned() }
}

/// Three significant digits, or all before the point.
pub(super) fn significant(value: f64) -> String {
    let digits = if value >= 100.0 || value == 0.0 {
        0
    } else if value >= 1.0 {
        2 - value.log10() as usize
    } else {
        (2 - value.log10().floor() as i64).clamp(0, 12) as usize
    };
    format!("{value:.digits$}")
}
