//! The device of a machine: its name, the rates of its link, and the time of opening it.
//!
//! The copy to pinned host memory has no call of its own. It limits the throughput of blocks of
//! ratio 8 that are decoded run after run, so their rate is used. The copy from pinned host memory
//! is assumed to be as fast, because links have the same speed in both directions.
//!
//! Failed experiment: the time of a run less that of its upload, as the time of the copy to the
//! host. It gave 59 and 78 GB/s on a bus of 55. The result is wrong because an upload allocates
//! device memory again.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::throughput::model::DeviceRates;

/// A device, with the rates of its link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceCalibration {
    /// Name of the device.
    pub name: String,
    /// Rate of copying from pinned host memory to the device; `None` if not measured.
    pub h2d_pinned_gb_per_s: Option<f64>,
    /// Rate of copying from the device to pinned host memory; `None` if not measured.
    pub d2h_pinned_gb_per_s: Option<f64>,
    /// Seconds to open the device and to load a kernel; `None` if not measured.
    pub startup_s: Option<f64>,
}

impl DeviceCalibration {
    /// Creates the device that the driver calls `name`, of which nothing was measured.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Returns the built-in rates of the device, with those of the link that were measured.
    pub(super) fn rates(&self) -> DeviceRates {
        let built_in = DeviceRates::for_device(&self.name);
        DeviceRates {
            h2d_gb_per_s: self.h2d_pinned_gb_per_s.unwrap_or(built_in.h2d_gb_per_s),
            d2h_gb_per_s: self.d2h_pinned_gb_per_s.unwrap_or(built_in.d2h_gb_per_s),
            startup_s: self.startup_s.unwrap_or(built_in.startup_s),
            ..built_in
        }
    }
}

/// Returns the name of the first device of this machine, before the driver is started. `None` if
/// the system does not say it; Linux does.
pub(crate) fn installed_device() -> Option<String> {
    first_device(Path::new("/proc/driver/nvidia/gpus"))
}

/// Returns the name of the first device that has a folder in `gpus`, the folder of the driver.
fn first_device(gpus: &Path) -> Option<String> {
    let mut folders: Vec<_> = fs::read_dir(gpus).ok()?.flatten().map(|entry| entry.path()).collect();
    folders.sort_unstable();
    let text = fs::read_to_string(folders.first()?.join("information")).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("Model:"))?.trim();
    Some(name.to_owned())
}

/// Opens the first device and measures its link.
///
/// # Errors
///
/// The reason why no device was measured.
pub fn measure_device() -> Result<DeviceCalibration, String> {
    #[cfg(feature = "cuda")]
    return probe::measure().map_err(|error| error.to_string());
    #[cfg(not(feature = "cuda"))]
    return Err("built without the feature cuda".to_owned());
}

#[cfg(feature = "cuda")]
mod probe {
    use std::collections::VecDeque;
    use std::error::Error;
    use std::time::{Duration, Instant};

    use gsst::{Block, BlockOptions, CodeWidth, SealedBlock, write_block};
    use tadoc_cuda::{Device, GpuError, GsstScanner, PendingRows, RowForm, ScanOptions};

    use super::super::rounded;
    use super::DeviceCalibration;

    /// Row whose codes have an eighth of its bytes.
    const FLAT_ROW: [u8; 256] = [b'='; 256];
    const TEXT_BYTES: usize = 4 << 20;
    /// Largest number of copies of the block in a run: 64 MiB of text, as in runs of a scan.
    const MAX_COPIES: u64 = 16;
    const NUM_RUNS: usize = 12;
    /// Number of pending runs while another one is submitted. Scanners have three slots.
    const NUM_PENDING: usize = 2;
    const NUM_TRIES: usize = 5;

    pub(super) fn measure() -> Result<DeviceCalibration, Box<dyn Error>> {
        let start = Instant::now();
        let device = Device::open(0)?;
        let scanner = GsstScanner::new(&device, ScanOptions::default())?;
        scanner.load(CodeWidth::Eight)?;
        let startup_s = Some(rounded(start.elapsed().as_secs_f64()));
        let rows = vec![Some(&FLAT_ROW[..]); TEXT_BYTES / FLAT_ROW.len()];
        let block = Block::open(write_block(&rows, &BlockOptions::new(CodeWidth::Eight))?)?;
        // The run and its text take at most a quarter of the free memory.
        let block_bytes = (block.as_bytes().len() + block.text_len_bytes()) as u64;
        let num_copies = (device.free_bytes()? / 4 / block_bytes).clamp(1, MAX_COPIES);
        let run: Vec<_> = (0..num_copies).map(|_| SealedBlock::from_valid(&block)).collect();
        let link_gb_per_s = Some(rounded(link_gb_per_s(&scanner, &run)?));
        Ok(DeviceCalibration {
            name: device.name().to_owned(),
            h2d_pinned_gb_per_s: link_gb_per_s,
            d2h_pinned_gb_per_s: link_gb_per_s,
            startup_s,
        })
    }

    /// Returns the rate of rows that come back, of the fastest of a few tries.
    fn link_gb_per_s(scanner: &GsstScanner, run: &[SealedBlock<&[u8]>]) -> Result<f64, GpuError> {
        let mut fastest = Duration::MAX;
        let mut len_bytes = 0;
        for _ in 0..NUM_TRIES {
            let start = Instant::now();
            len_bytes = pipelined(scanner, run)?;
            fastest = fastest.min(start.elapsed());
        }
        Ok(len_bytes as f64 / fastest.as_secs_f64().max(1e-9) / 1e9)
    }

    /// Decodes a run [`NUM_RUNS`] times, with [`NUM_PENDING`] runs pending while the next one is
    /// submitted. Returns the number of bytes that came back.
    fn pipelined(scanner: &GsstScanner, run: &[SealedBlock<&[u8]>]) -> Result<usize, GpuError> {
        let mut pending = VecDeque::new();
        let mut len_bytes = 0;
        for _ in 0..NUM_RUNS {
            pending.push_back(scanner.submit(run, RowForm::Offsets, false)?);
            if pending.len() > NUM_PENDING
                && let Some(first) = pending.pop_front()
            {
                len_bytes += PendingRows::wait(first)?.buffer().len();
            }
        }
        for last in pending {
            len_bytes += last.wait()?.buffer().len();
        }
        Ok(len_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_names_the_device_before_the_driver_is_started() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(first_device(&dir.path().join("none")), None);
        assert_eq!(first_device(dir.path()), None);
        let gpu = dir.path().join("0000:01:00.0");
        fs::create_dir(&gpu).unwrap();
        assert_eq!(first_device(dir.path()), None);
        let text = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 92\nGPU UUID: \t GPU-0\n";
        fs::write(gpu.join("information"), text).unwrap();
        assert_eq!(first_device(dir.path()).as_deref(), Some("NVIDIA H200"));
    }
}
