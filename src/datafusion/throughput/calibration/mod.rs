//! Calibration: the rates of this machine, measured once and kept in a file.
//!
//! ```text
//! measure    storage, cores, device ──▶ Calibration        6 to 8 s
//! file       Calibration ◀──▶ JSON, one number per line
//!            $TADOC_CALIBRATION, or $XDG_CONFIG_HOME/tadoc/calibration,
//!            ~/.config/tadoc/calibration, %APPDATA%\tadoc\calibration
//! device     DeviceProbe, the trait of devices that can be measured; gpu_probe implements it
//! known      devices with built-in rates; others are measured when they are opened, and cached
//! corpora    rates of tasks over corpora
//! storage    rate of reading files
//! text       generated text for the measurements
//! ```
//!
//! Without a file, predictions use the built-in values of [`Calibration::default`], which are low
//! for machines of 2026.
//!
//! ```
//! use datafusion_tadoc::throughput::Calibration;
//! use datafusion_tadoc::throughput::calibration::DeviceCalibration;
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let file = dir.path().join("calibration");
//! let device = DeviceCalibration::for_known_device("NVIDIA H200");
//! let calibration = Calibration { device, ..Calibration::default() };
//! calibration.save_to(&file)?;
//! assert_eq!(Calibration::load_from(&file)?, calibration);
//! # Ok::<(), tadoc::Error>(())
//! ```

mod corpora;
mod device;
mod file;
#[cfg(feature = "cuda")]
mod gpu_probe;
mod known;
mod measure;
mod storage;
mod text;

use std::sync::LazyLock;

use gsst::CodeWidth;
use serde::{Deserialize, Serialize};

use super::model::{CoreRate, CpuRates, DeviceRates, Rates};

pub use corpora::{CorpusRates, CorpusTask, CorpusTimes, Growth, NUM_CORPUS_TASKS, TaskRates};
pub use device::{DeviceProbe, HostMemory};
pub use file::path;
#[cfg(feature = "cuda")]
pub use gpu_probe::GpuProbe;
pub use known::{device_rates, expected_device};
pub use measure::{Step, measure, measure_only_device};
pub use storage::{StorageRate, StorageSource, measure_storage};

/// Rates of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Name and processor of the machine.
    pub machine: String,
    /// Day of the measurement (UTC), such as `2026-11-20`, or `built in`.
    pub date: String,
    /// Number of cores.
    pub num_cores: usize,
    /// Rate of sequential reads.
    pub storage: StorageRate,
    /// Rates of codes of 8 bits on the cores.
    pub eight: WidthRates,
    /// Rates of codes of 12 bits on the cores.
    pub twelve: WidthRates,
    /// Times of tasks over a corpus on the cores, in the order of [`CorpusTask::MEASURED`].
    pub corpora: [CoreTimes; NUM_CORPUS_TASKS],
    /// Elements of the grammars of the measured corpus and of the larger one.
    pub corpus_elements: [Option<f64>; 2],
    /// Rates of the device; `None` if no device was measured.
    pub device: Option<DeviceCalibration>,
}

/// Rates of codes of one width on the cores, in GB of text per second, with the ratio of the text.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WidthRates {
    /// Bytes of the generated text divided by its stored bytes.
    pub ratio: f64,
    /// Rates of the cores.
    pub cpu: CpuRates,
}

/// Times of a task over a corpus, as multiples of the built-in time; `None` if not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreTimes {
    /// Time on one core.
    pub one_core: Option<f64>,
    /// Time on all cores.
    pub all_cores: Option<f64>,
    /// Time on all cores, over a corpus that is larger than the caches.
    pub large: Option<f64>,
}

/// Rates of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceCalibration {
    /// Name of the device.
    pub name: String,
    /// Rate of copying from pinned host memory to the device; `None` if not measured.
    pub h2d_pinned_gb_per_s: Option<f64>,
    /// Rate of copying from ordinary host memory to the device.
    pub h2d_pageable_gb_per_s: f64,
    /// Rate of copying from the device to pinned host memory; `None` if not measured.
    pub d2h_pinned_gb_per_s: Option<f64>,
    /// Rate of copying from the device to ordinary host memory.
    pub d2h_pageable_gb_per_s: f64,
    /// Rate of decoding codes of 8 bits, in bytes of text.
    pub decode_8bit_gb_per_s: f64,
    /// Rate of decoding codes of 12 bits, in bytes of text.
    pub decode_12bit_gb_per_s: f64,
    /// Rate of matching text; `None` if not measured, then the rate of decoding is used.
    pub matching_gb_per_s: Option<f64>,
    /// Rate of the memory of the device, in bytes read and written.
    pub memory_gb_per_s: f64,
    /// Seconds of a part that is almost empty.
    pub launch_s: f64,
    /// Seconds to open the device and to load a kernel.
    pub startup_s: f64,
    /// Seconds of a task over a corpus that is almost empty; `None` if not measured.
    pub corpus_task_s: Option<f64>,
    /// Seconds to prepare one element of a grammar before the first task; `None` if not measured.
    pub corpus_prepare_s: Option<f64>,
    /// Seconds to copy one row of an answer to the host; `None` if the times of units include it.
    pub corpus_row_s: Option<f64>,
    /// Seconds of one unit (a window of a sequence, a word, or a pair), in the order of
    /// [`CorpusTask::MEASURED`]; `None` if not measured.
    pub corpus_unit_s: [Option<f64>; NUM_CORPUS_TASKS],
}

impl Calibration {
    /// Returns the rates that predictions for codes of this width need.
    ///
    /// With `has_device`, and if no device was measured, the rates of the device are the built-in
    /// values of [`DeviceCalibration::default`].
    pub fn rates(&self, width: CodeWidth, has_device: bool) -> Rates {
        let built_in = DeviceCalibration::default();
        let device = self.device.as_ref().unwrap_or(&built_in);
        Rates {
            storage_gb_per_s: self.storage.gb_per_s,
            is_storage_cached: self.storage.source == StorageSource::PageCache,
            cpu: self.width(width).cpu,
            device: has_device.then(|| device.rates(width)),
        }
    }

    /// Returns the rates of tasks over corpora.
    ///
    /// Built-in values replace rates that were not measured. On the cores, a task that was not
    /// measured has the rates of sequences.
    pub fn corpus_rates(&self) -> CorpusRates {
        let mut rates = CorpusRates::default();
        let built_in = rates;
        let [sequences, ..] = self.corpora;
        for (rates, times) in rates.tasks.iter_mut().zip(&self.corpora) {
            for CoreTimes { one_core, all_cores, .. } in [sequences, *times] {
                if let (Some(one_core), Some(all_cores)) = (one_core, all_cores) {
                    rates.set_cores(one_core, all_cores, self.num_cores);
                }
            }
            if let (Some(all_cores), Some(large)) = (times.all_cores, times.large)
                && let [Some(smaller), Some(larger)] = self.corpus_elements
            {
                let elements = [smaller, larger];
                rates.growth = Some(Growth { elements, factor: large / all_cores });
            }
        }
        let Some(device) = &self.device else { return rates };
        rates.startup_s = device.startup_s;
        rates.task_s = device.corpus_task_s.unwrap_or(built_in.task_s);
        rates.prepare_s = device.corpus_prepare_s.unwrap_or(built_in.prepare_s);
        for (rates, measured) in rates.tasks.iter_mut().zip(device.corpus_unit_s) {
            rates.unit_s = measured.unwrap_or(rates.unit_s);
        }
        if device.corpus_unit_s.iter().any(Option::is_some) {
            rates.row_s = device.corpus_row_s.unwrap_or(0.0);
        }
        rates
    }

    /// Returns the rates of the cores for one width.
    pub fn width(&self, width: CodeWidth) -> &WidthRates {
        match width {
            CodeWidth::Eight => &self.eight,
            CodeWidth::Twelve => &self.twelve,
        }
    }

    /// Returns true if the calibration was measured on this machine, or is built in.
    ///
    /// Machines may share a home folder, but not their rates.
    pub fn is_of_this_machine(&self) -> bool {
        self.date == BUILT_IN || self.machine == measure::machine()
    }
}

const BUILT_IN: &str = "built in";

/// Returns the number of cores that this process may use.
///
/// The number is determined once: it takes reading four files, and plans of small queries would
/// wait for that.
pub(crate) fn num_cores() -> usize {
    static NUM_CORES: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    *NUM_CORES
}

impl Default for Calibration {
    /// Returns built-in values.
    ///
    /// Storage is a slow SSD. One core has about half the rate of a virtual Xeon in November 2026
    /// (see `measure.rs`), and all cores of this machine have the sum. There is no device.
    fn default() -> Self {
        let num_cores = num_cores();
        let rate = |per_core_gb_per_s: f64| CoreRate {
            per_core_gb_per_s,
            all_cores_gb_per_s: per_core_gb_per_s * num_cores as f64,
        };
        let width = |ratio, [check, staging, decode, matching, encode]: [f64; 5]| WidthRates {
            ratio,
            cpu: CpuRates {
                check: rate(check),
                staging: rate(staging),
                decode: rate(decode),
                matching: rate(matching),
                encode: rate(encode),
            },
        };
        Self {
            machine: "any".to_owned(),
            date: BUILT_IN.to_owned(),
            num_cores,
            storage: StorageRate { gb_per_s: 0.5, source: StorageSource::BuiltIn },
            eight: width(2.25, [0.9, 8.0, 1.5, 1.2, 0.1]),
            twelve: width(2.88, [0.6, 8.0, 2.5, 1.8, 0.06]),
            corpora: [CoreTimes::default(); NUM_CORPUS_TASKS],
            corpus_elements: [None; 2],
            device: None,
        }
    }
}

impl DeviceCalibration {
    fn rates(&self, width: CodeWidth) -> DeviceRates {
        let decode_gb_per_s = match width {
            CodeWidth::Eight => self.decode_8bit_gb_per_s,
            CodeWidth::Twelve => self.decode_12bit_gb_per_s,
        };
        DeviceRates {
            h2d_gb_per_s: self.h2d_pinned_gb_per_s.unwrap_or(self.h2d_pageable_gb_per_s),
            d2h_gb_per_s: self.d2h_pinned_gb_per_s.unwrap_or(self.d2h_pageable_gb_per_s),
            decode_gb_per_s,
            matching_gb_per_s: self.matching_gb_per_s.unwrap_or(decode_gb_per_s),
            memory_gb_per_s: self.memory_gb_per_s,
            launch_s: self.launch_s,
            startup_s: self.startup_s,
        }
    }
}

impl Default for DeviceCalibration {
    /// Returns built-in values.
    ///
    /// The link is PCIe 3 with 16 lanes, and pageable copies are as slow as on an H200 (see
    /// `gpu_probe.rs`). The memory is that of a small device of 2020. Decoding has half the rate of
    /// GSST on an A100. The times of parts and of startup are long.
    fn default() -> Self {
        Self {
            name: "any".to_owned(),
            h2d_pinned_gb_per_s: Some(10.0),
            h2d_pageable_gb_per_s: 5.0,
            d2h_pinned_gb_per_s: Some(10.0),
            d2h_pageable_gb_per_s: 1.2,
            decode_8bit_gb_per_s: 100.0,
            decode_12bit_gb_per_s: 100.0,
            matching_gb_per_s: None,
            memory_gb_per_s: 400.0,
            launch_s: 1e-4,
            startup_s: 0.5,
            corpus_task_s: None,
            corpus_prepare_s: None,
            corpus_row_s: None,
            corpus_unit_s: [None; NUM_CORPUS_TASKS],
        }
    }
}
