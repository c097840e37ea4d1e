//! Rates of a machine: the input of the model.
//!
//! Rates of storage and links count stored bytes, and rates of memory count the bytes read and
//! written. All others count bytes of text. A GB is 10^9 bytes. The module
//! [`calibration`](super::calibration) provides the numbers.

use serde::{Deserialize, Serialize};
use tadoc::error::{Error, Result};

/// Rates of a machine, for codes of one width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Rate of reading stored bytes from storage into host memory.
    pub storage_gb_per_s: f64,
    /// True if the bytes come from the page cache. Then reading is a copy, which the cores make.
    pub is_storage_cached: bool,
    /// Rates of the cores.
    pub cpu: CpuRates,
    /// Rates of the device, if there is one.
    pub device: Option<DeviceRates>,
}

/// Rates of the cores, in bytes of text.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuRates {
    /// Rate of checking blocks for decoding on the cores: checksum, codes, splits, lengths.
    pub check: CoreRate,
    /// Rate of staging: checking the checksums of blocks and copying them to memory that the device
    /// reads. The device checks the rest.
    pub staging: CoreRate,
    /// Rate of decoding checked blocks to arrays of views, with a check of UTF-8.
    pub decode: CoreRate,
    /// Rate of finding the rows that a predicate accepts.
    pub matching: CoreRate,
    /// Rate of writing blocks with a trained table, for `COPY`. No prediction uses it.
    pub encode: CoreRate,
}

/// A rate of the cores: it grows with their number up to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreRate {
    /// Rate of one core alone.
    pub per_core_gb_per_s: f64,
    /// Rate of all cores together.
    pub all_cores_gb_per_s: f64,
}

impl Rates {
    /// Checks that all rates are above 0, and that no time is negative.
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
        // Times may be 0, so 1 is added.
        above_zero("launch_s", 1.0 + device.launch_s)?;
        above_zero("startup_s", 1.0 + device.startup_s)
    }
}

impl CoreRate {
    /// Returns the rate of `num_cores` cores, at least one.
    pub fn for_cores(self, num_cores: usize) -> f64 {
        let alone = self.per_core_gb_per_s;
        (alone * num_cores.max(1) as f64).min(self.all_cores_gb_per_s.max(alone))
    }
}

/// Rates of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceRates {
    /// Rate of copying from host memory to device memory.
    pub h2d_gb_per_s: f64,
    /// Rate of copying from device memory to host memory.
    pub d2h_gb_per_s: f64,
    /// Rate of decoding text in device memory.
    pub decode_gb_per_s: f64,
    /// Rate of matching text in device memory, which writes one bit per row.
    pub matching_gb_per_s: f64,
    /// Rate of reading and writing device memory, in bytes read and written.
    pub memory_gb_per_s: f64,
    /// Seconds that each part costs at least, to submit its copies and kernels one by one.
    pub launch_s: f64,
    /// Seconds to open the device and to load a kernel, once per process.
    pub startup_s: f64,
}

pub(super) fn above_zero(name: &'static str, value: f64) -> Result<()> {
    if value > 0.0 { Ok(()) } else { Err(invalid(name, value, "a number above 0")) }
}

pub(super) fn invalid(name: &'static str, got: impl ToString, allowed: &str) -> Error {
    Error::InvalidArgument { name, got: got.to_string(), allowed: allowed.to_owned() }
}

/// Formats a number with three significant digits, or with all digits before the point if these are
/// more.
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
