//! Calibration of a device through the trait [`DeviceProbe`].
//!
//! `gpu_probe` implements the trait for real devices. Tests have their own implementation.

use std::sync::Arc;

use gsst::Block;
use tadoc::analytics::SegmentShape;
use tadoc::error::Result;
use tadoc::segment::Segment;

use super::corpora::{CorpusTask, CorpusTimes, NUM_RUNS, ProbeCorpora, fresh, shape};
use super::{DeviceCalibration, NUM_CORPUS_TASKS};

/// A kind of host memory of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostMemory {
    /// Memory that the driver has pinned. Copies have the speed of the bus.
    Pinned,
    /// Ordinary memory. The driver copies it once more.
    Pageable,
}

/// A device that can be measured.
///
/// Methods return `None` if the implementation cannot measure the rate.
pub trait DeviceProbe {
    /// Returns the name of the device.
    fn name(&self) -> String;
    /// Returns the seconds that opening the device and loading a kernel took.
    fn startup_s(&self) -> f64;
    /// Measures copying stored bytes to the device, in GB/s, without the work of the host before
    /// it.
    ///
    /// # Errors
    ///
    /// Errors of the device. All other methods have these errors, too.
    fn h2d_gb_per_s(&mut self, block: &Block<Vec<u8>>, from: HostMemory) -> Result<Option<f64>>;
    /// Measures copying rows from the device, in GB/s.
    ///
    /// `flat` has a high ratio, so that almost all copied bytes are rows.
    fn d2h_gb_per_s(&mut self, flat: &Block<Vec<u8>>, to: HostMemory) -> Result<Option<f64>>;
    /// Measures decoding text in device memory, in GB/s.
    fn decode_gb_per_s(&mut self, block: &Block<Vec<u8>>) -> Result<f64>;
    /// Measures matching text in device memory, in GB/s.
    fn matching_gb_per_s(&mut self, block: &Block<Vec<u8>>) -> Result<Option<f64>>;
    /// Measures reading and writing device memory, in GB/s.
    fn memory_gb_per_s(&mut self, block: &Block<Vec<u8>>) -> Result<f64>;
    /// Measures almost empty parts, one after the other, in seconds per part.
    fn launch_s(&mut self, tiny: &Block<Vec<u8>>) -> Result<f64>;
    /// Measures `task` over a segment of which the device holds nothing yet.
    fn corpus_times(
        &mut self,
        segment: &Arc<Segment>,
        task: CorpusTask,
    ) -> Result<Option<CorpusTimes>>;
}

/// Input for the measurement of a device.
pub(super) struct ProbeBlocks {
    /// Block with codes of 8 bits.
    pub(super) eight: Block<Vec<u8>>,
    /// Block with codes of 12 bits.
    pub(super) twelve: Block<Vec<u8>>,
    /// Block with a high ratio.
    pub(super) flat: Block<Vec<u8>>,
    /// Block that is almost empty.
    pub(super) tiny: Block<Vec<u8>>,
    pub(super) corpora: ProbeCorpora,
}

/// Measures all rates of a device.
pub(super) fn measure_device(
    probe: &mut dyn DeviceProbe,
    blocks: &ProbeBlocks,
) -> Result<DeviceCalibration> {
    let ProbeBlocks { eight, twelve, flat, tiny, corpora } = blocks;
    let built_in = DeviceCalibration::default();
    let decode_8bit_gb_per_s = probe.decode_gb_per_s(eight)?;
    let decode_12bit_gb_per_s = probe.decode_gb_per_s(twelve)?;
    // Decoding cannot be faster than the memory. If the measured rate of the memory is below the
    // traffic of decoding, it is too low.
    let traffic = |rate: f64, block: &Block<Vec<u8>>| {
        rate * (1.0 + block.as_bytes().len() as f64 / block.text_len_bytes().max(1) as f64)
    };
    let memory_gb_per_s = probe
        .memory_gb_per_s(eight)?
        .max(traffic(decode_8bit_gb_per_s, eight))
        .max(traffic(decode_12bit_gb_per_s, twelve));
    let h2d_pageable = probe.h2d_gb_per_s(eight, HostMemory::Pageable)?;
    let d2h_pageable = probe.d2h_gb_per_s(flat, HostMemory::Pageable)?;
    let corpora = measure_device_corpora(probe, corpora)?;
    let corpus_unit_s = corpora.as_ref().map(|times| times.unit_s.map(Some));
    Ok(DeviceCalibration {
        name: probe.name(),
        h2d_pinned_gb_per_s: probe.h2d_gb_per_s(flat, HostMemory::Pinned)?,
        h2d_pageable_gb_per_s: h2d_pageable.unwrap_or(built_in.h2d_pageable_gb_per_s),
        d2h_pinned_gb_per_s: probe.d2h_gb_per_s(flat, HostMemory::Pinned)?,
        d2h_pageable_gb_per_s: d2h_pageable.unwrap_or(built_in.d2h_pageable_gb_per_s),
        decode_8bit_gb_per_s,
        decode_12bit_gb_per_s,
        matching_gb_per_s: probe.matching_gb_per_s(eight)?,
        memory_gb_per_s,
        launch_s: probe.launch_s(tiny)?,
        startup_s: probe.startup_s(),
        corpus_task_s: corpora.as_ref().map(|times| times.task_s),
        corpus_prepare_s: corpora.as_ref().map(|times| times.prepare_s),
        corpus_row_s: corpora.as_ref().map(|times| times.row_s),
        corpus_unit_s: corpus_unit_s.unwrap_or([None; NUM_CORPUS_TASKS]),
    })
}

/// Seconds of tasks over corpora on a device.
struct DeviceTimes {
    task_s: f64,
    prepare_s: f64,
    row_s: f64,
    /// Seconds of one unit, for each kind of task.
    unit_s: [f64; NUM_CORPUS_TASKS],
}

/// Measures tasks over corpora on a device.
///
/// The times of a task, of a prepared element and of a row are the largest of all kinds. The times
/// of units are of each kind. Returns `None` if the device cannot run the tasks.
fn measure_device_corpora(
    probe: &mut dyn DeviceProbe,
    corpora: &ProbeCorpora,
) -> Result<Option<DeviceTimes>> {
    // Times are at least a picosecond, because files hold numbers above 0.
    let [task_s, prepare_s, row_s] = [1e-12; 3];
    let mut times = DeviceTimes { task_s, prepare_s, row_s, unit_s: [1e-12; NUM_CORPUS_TASKS] };
    for (task, unit_s) in CorpusTask::MEASURED.into_iter().zip(&mut times.unit_s) {
        let tiny = least_times(probe, &corpora.tiny, task)?;
        let (Some((tiny, _)), Some((large, shape))) =
            (tiny, least_times(probe, &corpora.large, task)?)
        else {
            return Ok(None);
        };
        let each = |seconds: f64, number: u64| seconds / number.max(1) as f64;
        let kernels_s = (large.again_s - large.copy_s) - (tiny.again_s - tiny.copy_s);
        *unit_s = unit_s.max(each(kernels_s, task.num_units(shape)));
        times.row_s = times.row_s.max(each(large.copy_s - tiny.copy_s, large.num_rows as u64));
        let prepare_s = each(large.first_s - large.again_s, shape.num_elements);
        times.prepare_s = times.prepare_s.max(prepare_s);
        times.task_s = times.task_s.max(tiny.first_s);
    }
    Ok(Some(times))
}

/// Returns the least times of a few runs, each over a corpus of which the device holds nothing.
fn least_times(
    probe: &mut dyn DeviceProbe,
    file: &[u8],
    task: CorpusTask,
) -> Result<Option<(CorpusTimes, SegmentShape)>> {
    let mut least =
        CorpusTimes { first_s: f64::MAX, again_s: f64::MAX, copy_s: f64::MAX, num_rows: 0 };
    let mut shape_of = None;
    for _ in 0..NUM_RUNS {
        let corpus = fresh(file)?;
        let Some(times) = probe.corpus_times(&corpus.segments()[0], task)? else {
            return Ok(None);
        };
        least.first_s = least.first_s.min(times.first_s);
        least.again_s = least.again_s.min(times.again_s);
        least.copy_s = least.copy_s.min(times.copy_s);
        least.num_rows = times.num_rows;
        shape_of = Some(shape(&corpus));
    }
    Ok(shape_of.map(|shape| (least, shape)))
}
