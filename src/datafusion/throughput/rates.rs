//! Rates of a machine: the input of the model, and the values that are built in.
//!
//! ```text
//! cores    rates of one core, by the width of codes
//! device   name ─┬▶ in the table below ─▶ link and memory ─▶ rates of an H200, scaled
//!                └▶ not there ─▶ rates of a slow device
//! ```
//!
//! Rates of storage and links count stored bytes, and rates of memory count the bytes read and written. All others
//! count bytes of text. A GB is 10^9 bytes. The module [`calibration`](super::calibration) measures storage and the
//! link to the device.
//!
//! Only H100 and H200 were measured (benches/results). For the other devices, the table has 90 % of the rates of link
//! and memory in their datasheets. All work in device memory is assumed to scale with the rate of the memory.

use std::sync::LazyLock;

use gsst::CodeWidth;
use tadoc::error::{Error, Result};

/// Known devices: a word of the name, the rate of the link in each direction from pinned memory in
/// GB/s, and the rate of the memory in GB/s.
const KNOWN: [(&str, f64, f64); 14] = [
    ("H200", 50.0, 4200.0),
    ("H100", 50.0, 3000.0),
    ("H800", 50.0, 3000.0),
    ("H20", 50.0, 3600.0),
    ("B200", 50.0, 7000.0),
    ("A100", 23.0, 1500.0),
    ("A800", 23.0, 1500.0),
    ("A30", 23.0, 840.0),
    ("A10", 23.0, 540.0),
    ("A10G", 23.0, 540.0),
    ("L4", 23.0, 270.0),
    ("L40", 23.0, 780.0),
    ("L40S", 23.0, 780.0),
    ("4090", 23.0, 910.0),
];

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

/// Rates of one core, in GB of text per second. They grow with the number of cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuRates {
    /// Rate of checking blocks for decoding on the cores: checksum, codes, splits, lengths.
    pub check_gb_per_s: f64,
    /// Rate of staging: checking the checksums of blocks and copying them to memory that the device
    /// reads. The device checks the rest.
    pub staging_gb_per_s: f64,
    /// Rate of decoding checked blocks to arrays of views, with a check of UTF-8.
    pub decode_gb_per_s: f64,
    /// Rate of finding the rows that a predicate accepts.
    pub matching_gb_per_s: f64,
}

impl CpuRates {
    /// Returns the built-in rates for codes of this width: about half of those of a virtual Xeon.
    pub fn for_width(width: CodeWidth) -> Self {
        let [check_gb_per_s, decode_gb_per_s, matching_gb_per_s] = match width {
            CodeWidth::Eight => [0.9, 1.5, 1.2],
            CodeWidth::Twelve => [0.6, 2.5, 1.8],
        };
        Self { check_gb_per_s, staging_gb_per_s: 8.0, decode_gb_per_s, matching_gb_per_s }
    }
}

/// Returns the bytes of text for each stored byte of codes of this width, where no file says it.
pub fn built_in_ratio(width: CodeWidth) -> f64 {
    match width {
        CodeWidth::Eight => 2.25,
        CodeWidth::Twelve => 2.88,
    }
}

/// Returns the number of cores that this process may use.
///
/// The number is determined once: it takes reading four files, and plans of small queries would
/// wait for that.
pub(crate) fn num_cores() -> usize {
    static NUM_CORES: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    *NUM_CORES
}

impl Rates {
    /// Checks that all rates are above 0, and that no time is negative.
    pub(super) fn check(&self) -> Result<()> {
        above_zero("storage_gb_per_s", self.storage_gb_per_s)?;
        above_zero("check_gb_per_s", self.cpu.check_gb_per_s)?;
        above_zero("staging_gb_per_s", self.cpu.staging_gb_per_s)?;
        above_zero("decode_gb_per_s", self.cpu.decode_gb_per_s)?;
        above_zero("matching_gb_per_s", self.cpu.matching_gb_per_s)?;
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

impl DeviceRates {
    /// Returns the built-in rates of the device that the driver calls `name`, such as `NVIDIA
    /// H200`. A device that the table does not have is taken for a slow one.
    pub fn for_device(name: &str) -> Self {
        let is_in_name = |word: &str| name.split(|c: char| !c.is_alphanumeric()).any(|w| w == word);
        let known = KNOWN.into_iter().find(|(word, _, _)| is_in_name(word));
        known.map_or_else(Self::default, |(_, link, memory)| Self::scaled(link, memory))
    }

    /// Returns the rates of one H200, scaled to another link and another memory.
    fn scaled(link_gb_per_s: f64, memory_gb_per_s: f64) -> Self {
        let memory_ratio = memory_gb_per_s / 4200.0;
        Self {
            h2d_gb_per_s: link_gb_per_s,
            d2h_gb_per_s: link_gb_per_s,
            decode_gb_per_s: 1400.0 * memory_ratio,
            matching_gb_per_s: 1800.0 * memory_ratio,
            memory_gb_per_s,
            launch_s: 5e-5,
            startup_s: 0.35,
        }
    }
}

impl Default for DeviceRates {
    /// Returns the rates of a slow device.
    ///
    /// The link is PCIe 3 with 16 lanes, the memory that of a small device of 2020. Decoding has
    /// half the rate of GSST on an A100. The times of parts and of startup are long.
    fn default() -> Self {
        Self {
            h2d_gb_per_s: 10.0,
            d2h_gb_per_s: 10.0,
            decode_gb_per_s: 100.0,
            matching_gb_per_s: 100.0,
            memory_gb_per_s: 400.0,
            launch_s: 1e-4,
            startup_s: 0.5,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_driver_are_known() {
        let link = |name: &str| {
            let rates = DeviceRates::for_device(name);
            (rates.h2d_gb_per_s, rates.memory_gb_per_s)
        };
        assert_eq!(link("NVIDIA H200"), (50.0, 4200.0));
        assert_eq!(link("NVIDIA H100 80GB HBM3"), (50.0, 3000.0));
        assert_eq!(link("NVIDIA A100-SXM4-80GB"), (23.0, 1500.0));
        assert_eq!(link("NVIDIA L4"), (23.0, 270.0));
        assert_eq!(link("NVIDIA L40S"), (23.0, 780.0));
        // This device is no H200, although its name contains these letters.
        let slow = DeviceRates::default();
        assert_eq!(DeviceRates::for_device("NVIDIA GH200 480GB"), slow);
        assert_eq!(DeviceRates::for_device(""), slow);
    }
}
