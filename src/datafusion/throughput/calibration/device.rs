//! What a device has to answer to be calibrated.
//!
//! The answers of `gpu` are in `gpu_probe`; tests have their own.

use std::sync::Arc;

use gsst::Block;
use tadoc::error::Result;
use tadoc::segment::Segment;

use super::corpora::{CorpusTask, CorpusTimes, ProbeCorpora, measure_device_corpora};
use super::{DeviceCalibration, NUM_CORPUS_TASKS};

/// Where host memory of a copy comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostMemory {
    /// The driver has pinned it: copies run at the speed of the bus.
    Pinned,
    /// Ordinary memory: the driver copies it once more.
    Pageable,
}

/// A device that can be measured. `None` is: not possible with this implementation.
pub trait DeviceProbe {
    /// Its name.
    fn name(&self) -> String;
    /// Seconds it took to open it and to load a kernel.
    fn startup_s(&self) -> f64;
    /// Stored bytes to the device, in GB/s, without what the host does before.
    ///
    /// # Errors
    ///
    /// Those of the device; the same for all below.
    fn h2d_gb_per_s(&mut self, block: &Block<Vec<u8>>, from: HostMemory) -> Result<Option<f64>>;
    /// Rows from the device, in GB/s. `flat` has a high ratio: hardly anything else is copied.
    fn d2h_gb_per_s(&mut self, flat: &Block<Vec<u8>>, to: HostMemory) -> Result<Option<f64>>;
    /// Text decoded in device memory, in GB/s.
    fn decode_gb_per_s(&mut self, block: &Block<Vec<u8>>) -> Result<f64>;
    /// Text matched in device memory, in GB/s.
    fn matching_gb_per_s(&mut self, block: &Block<Vec<u8>>) -> Result<Option<f64>>;
    /// Device memory read and written, in GB/s.
    fn memory_gb_per_s(&mut self, block: &Block<Vec<u8>>) -> Result<f64>;
    /// Seconds a part costs that has next to nothing to do, one after the other.
    fn launch_s(&mut self, tiny: &Block<Vec<u8>>) -> Result<f64>;
    /// What `task` takes over a segment that it has nothing of.
    fn corpus_times(
        &mut self,
        segment: &Arc<Segment>,
        task: CorpusTask,
    ) -> Result<Option<CorpusTimes>>;
}

/// What devices are measured with.
pub(super) struct ProbeBlocks {
    /// Codes of 8 bits.
    pub(super) eight: Block<Vec<u8>>,
    /// Codes of 12 bits.
    pub(super) twelve: Block<Vec<u8>>,
    /// A high ratio.
    pub(super) flat: Block<Vec<u8>>,
    /// Next to nothing.
    pub(super) tiny: Block<Vec<u8>>,
    pub(super) corpora: ProbeCorpora,
}

/// Asks for everything.
pub(super) fn measure_device(
    probe: &mut dyn DeviceProbe,
    blocks: &ProbeBlocks,
) -> Result<DeviceCalibration> {
    let ProbeBlocks { eight, twelve, flat, tiny, corpora } = blocks;
    let built_in = DeviceCalibration::default();
    let decode_8bit_gb_per_s = probe.decode_gb_per_s(eight)?;
    let decode_12bit_gb_per_s = probe.decode_gb_per_s(twelve)?;
    // Decoding is no faster than the memory: a measured rate below its traffic was too low.
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
