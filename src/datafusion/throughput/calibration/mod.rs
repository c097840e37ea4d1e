//! What this machine can do: measured once, kept in a file, used by every prediction.
//!
//! ```text
//! measure    storage, cores, device ──▶ Calibration        6 to 8 s
//! file       Calibration ◀──▶ JSON, one number in a line
//!            $TADOC_CALIBRATION, or $XDG_CONFIG_HOME/tadoc/calibration,
//!            ~/.config/tadoc/calibration, %APPDATA%\tadoc\calibration
//! device     what a device has to answer; gpu_probe has the answers of `gpu`
//! known      devices with built-in rates; others are measured when they are opened, and cached
//! corpora    the same for tasks over corpora
//! ```
//!
//! Without a file the built-in values of [`Calibration::default`] are used. They are on the low
//! side for machines of 2026.
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
    /// The machine's name and processor.
    pub machine: String,
    /// The day it was measured (UTC), such as `2026-11-20`; `built in` where it was not.
    pub date: String,
    /// Cores it has.
    pub num_cores: usize,
    /// Sequential reads.
    pub storage: StorageRate,
    /// Codes of 8 bits on the cores.
    pub eight: WidthRates,
    /// Codes of 12 bits on the cores.
    pub twelve: WidthRates,
    /// Tasks over a corpus on the cores, in the order of [`CorpusTask::MEASURED`].
    pub corpora: [CoreTimes; NUM_CORPUS_TASKS],
    /// Elements of the grammars of the corpus that was counted and of the larger one.
    pub corpus_elements: [Option<f64>; 2],
    /// The device; `None` where none was measured.
    pub device: Option<DeviceCalibration>,
}

/// Rates of one width on the cores, in GB of text per second, and the ratio of the text that was
/// used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WidthRates {
    /// Text : stored bytes of the generated text.
    pub ratio: f64,
    /// What the cores do.
    pub cpu: CpuRates,
}

/// What a task over a corpus takes, as a multiple of the built-in time; `None`: not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreTimes {
    /// One core.
    pub one_core: Option<f64>,
    /// All cores.
    pub all_cores: Option<f64>,
    /// All cores, a corpus that is larger than caches.
    pub large: Option<f64>,
}

/// Rates of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceCalibration {
    /// Its name.
    pub name: String,
    /// Host to device from memory the driver has pinned; `None`: not measured.
    pub h2d_pinned_gb_per_s: Option<f64>,
    /// Host to device from ordinary memory.
    pub h2d_pageable_gb_per_s: f64,
    /// Device to host into pinned memory; `None`: not measured.
    pub d2h_pinned_gb_per_s: Option<f64>,
    /// Device to host into ordinary memory.
    pub d2h_pageable_gb_per_s: f64,
    /// Text decoded from codes of 8 bits.
    pub decode_8bit_gb_per_s: f64,
    /// Text decoded from codes of 12 bits.
    pub decode_12bit_gb_per_s: f64,
    /// Text matched; `None`: not measured, taken to be as fast as decoding.
    pub matching_gb_per_s: Option<f64>,
    /// Its memory, bytes read and written.
    pub memory_gb_per_s: f64,
    /// A part with next to nothing in it, in seconds.
    pub launch_s: f64,
    /// Opening it and loading a kernel, in seconds.
    pub startup_s: f64,
    /// A task over a corpus with next to nothing in it, in seconds; `None`: not measured, as below.
    pub corpus_task_s: Option<f64>,
    /// What is made of an element of a grammar before the first task, in seconds.
    pub corpus_prepare_s: Option<f64>,
    /// A row of an answer that comes to the host, in seconds; `None`: units have their rows.
    pub corpus_row_s: Option<f64>,
    /// A window of a sequence, a word, or a pair that is counted, in seconds, in the order of
    /// [`CorpusTask::MEASURED`].
    pub corpus_unit_s: [Option<f64>; NUM_CORPUS_TASKS],
}

impl Calibration {
    /// What predictions for codes of this width need. With `has_device` and no device measured, the
    /// built-in values of [`DeviceCalibration::default`] stand in.
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

    /// What tasks over corpora take; what was not measured is built in, of cores as for sequences.
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

    /// The cores' rates for one width.
    pub fn width(&self, width: CodeWidth) -> &WidthRates {
        match width {
            CodeWidth::Eight => &self.eight,
            CodeWidth::Twelve => &self.twelve,
        }
    }

    /// Whether this machine is the one that was measured: home folders are shared, rates are not.
    /// Built-in values fit every machine.
    pub fn is_of_this_machine(&self) -> bool {
        self.date == BUILT_IN || self.machine == measure::machine()
    }
}

const BUILT_IN: &str = "built in";

/// Cores that this process may use. Asking reads four files, which plans of small queries would wait for, so that it is
/// asked once.
pub(crate) fn num_cores() -> usize {
    static NUM_CORES: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    *NUM_CORES
}

impl Default for Calibration {
    /// Built-in values: storage as a slow SSD, cores at about half of what a virtual Xeon did in
    /// November 2026 (see `measure.rs`), all cores of this machine together at their sum, no
    /// device.
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
    /// Built-in values: PCIe 3 with 16 lanes, pageable copies as slow as they were on an H200 (see
    /// `gpu_probe.rs`), memory of a small device of 2020, decoding at half of what GSST had on an
    /// A100, parts and startup at the slow end.
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
