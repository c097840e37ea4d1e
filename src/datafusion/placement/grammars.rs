//! Grammars of files that `COPY` and `INSERT` write, by the rounds of a device.
//!
//! ```text
//! block ─▶ short ─────────────────────────────▶ the cores
//!       └▶ long ─▶ the first device that works ─▶ rules          the same on the cores, byte for byte
//!                    ├ none, or it fails ───────▶ the cores      device_fallbacks, and the log says why
//!                    └ not open, not worth waiting ▶ the cores   it is opened for the blocks after this
//! ```
//!
//! The device is that of scans, within `tadoc.gpu_memory_bytes`; about 80 bytes for each element of the
//! largest block are kept until the file is written. What scans and corpora keep there goes where there is
//! too little for a block.

use std::sync::{Arc, OnceLock};

use datafusion::common::plan_datafusion_err;
use datafusion::error::Result;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};

use crate::gsst::{calibration, device};
use crate::options::{Device, TadocOptions};
use crate::placement::devices::release;
use crate::throughput::{Decision, Effort, decide};
use tadoc::build::BuilderKind;
use tadoc::grammar::{RoundsEngine, RoundsOutput};
use tadoc_cuda::{DeviceRounds, GpuError, RoundsWhenLarge};

/// Seconds of an element on one core, and the part of the time that twice the cores take: 116 ns on 2 cores, 19 to 25 ns on
/// 16 (kernels/README.md).
const CORE_S: f64 = 200e-9;
const OF_TWICE: f64 = 0.58;
/// Seconds of a block on an open device, and of an element: twice what an H100 took.
const DEVICE_S: f64 = 5e-3;
const DEVICE_ELEMENT_S: f64 = 2e-9;
const MARGIN: f64 = 0.8;

/// What runs rounds in place of the cores, by `tadoc.device`; counted in `metrics`. Where a device is
/// demanded it is opened, which takes half a second the first time.
///
/// # Errors
/// A plan error that names the way out where a device is demanded and there is none.
pub(crate) fn rounds_engine(
    options: &TadocOptions,
    metrics: &ExecutionPlanMetricsSet,
) -> Result<Option<Arc<dyn RoundsEngine>>> {
    if options.device == Device::Cpu || options.builder != BuilderKind::Rounds {
        return Ok(None);
    }
    let counter = |name| MetricBuilder::new(metrics).global_counter(name);
    let engine = SessionRounds {
        is_demanded: options.device == Device::Gpu,
        max_bytes: options.gpu_memory_bytes,
        opened: OnceLock::new(),
        num_grammars: counter("device_grammars"),
        num_fallbacks: counter("device_fallbacks"),
    };
    if engine.is_demanded
        && let Err(problem) = engine.opened()
    {
        return Err(plan_datafusion_err!(
            "tadoc.device = gpu: {problem}; SET tadoc.device = 'auto'"
        ));
    }
    Ok(Some(Arc::new(engine)))
}

/// Rounds on the first device, once they are asked for.
#[derive(Debug)]
struct SessionRounds {
    is_demanded: bool,
    max_bytes: u64,
    opened: OnceLock<std::result::Result<Opened, GpuError>>,
    num_grammars: Count,
    num_fallbacks: Count,
}

#[derive(Debug)]
struct Opened {
    ordinal: usize,
    rounds: DeviceRounds,
}

impl SessionRounds {
    fn opened(&self) -> std::result::Result<&Opened, &GpuError> {
        let open = || {
            let device = device::first(self.max_bytes)?;
            Ok(Opened { ordinal: device.ordinal(), rounds: DeviceRounds::new(&device)? })
        };
        self.opened.get_or_init(open).as_ref()
    }

    /// Decides whether a block of so many elements goes to a device; notes the time that is missed where it is not open.
    fn is_for_device(&self, num_elements: usize) -> bool {
        if !RoundsWhenLarge::is_large(num_elements) {
            return false;
        }
        if self.is_demanded {
            return device::problem().is_none();
        }
        let num_cores = rayon::current_num_threads();
        let effort = effort(num_elements, num_cores, calibration().corpus_rates().startup_s);
        // A host without a device has nothing to fall back from.
        let is_chosen = decide(&effort, device::state) == Decision::Device;
        if !is_chosen {
            device::miss(effort.gain_s(), effort.startup_s, num_cores);
        }
        is_chosen
    }
}

/// Estimates the times of the rounds of so many elements.
fn effort(num_elements: usize, num_cores: usize, startup_s: f64) -> Effort {
    let of_cores = OF_TWICE.powf((num_cores.max(1) as f64).log2());
    Effort {
        cores_s: num_elements as f64 * CORE_S * of_cores,
        device_s: DEVICE_S + num_elements as f64 * DEVICE_ELEMENT_S,
        copies_s: 0.0,
        saved_s: 0.0,
        startup_s,
        margin: MARGIN,
    }
}

impl Opened {
    /// What the rounds leave; again without what others keep, where the device has too little memory.
    fn run(&self, symbols: &[u32], first_rule: u32) -> std::result::Result<RoundsOutput, GpuError> {
        self.rounds.rounds(symbols, first_rule).or_else(|error| match error {
            GpuError::OutOfMemory { .. } => {
                device::release_idle(self.ordinal);
                release(self.ordinal);
                self.rounds.rounds(symbols, first_rule)
            }
            other => Err(other),
        })
    }
}

impl RoundsEngine for SessionRounds {
    fn run(&self, symbols: &[u32], first_rule: u32) -> Option<RoundsOutput> {
        if !self.is_for_device(symbols.len()) {
            return None;
        }
        let opened = self.opened().map_err(GpuError::clone);
        match opened.and_then(|opened| opened.run(symbols, first_rule)) {
            Ok(output) => {
                self.num_grammars.add(1);
                Some(output)
            }
            Err(reason) => {
                tracing::warn!(%reason, "building a grammar on the CPU");
                self.num_fallbacks.add(1);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::throughput::DeviceState;

    /// The least block that is long, and one of 128 MiB of text, on 16 cores and an H200.
    #[test]
    fn blocks_wait_for_a_device_where_that_is_a_gain() {
        let is_for_device = |num_elements, num_cores, state| {
            decide(&effort(num_elements, num_cores, 0.35), || state) == Decision::Device
        };
        assert!(!is_for_device(4 << 20, 16, DeviceState::Closed));
        assert!(is_for_device(4 << 20, 16, DeviceState::Open));
        assert!(is_for_device(38_000_000, 16, DeviceState::Closed));
        assert!(is_for_device(8 << 20, 2, DeviceState::Closed));
        assert!(!is_for_device(8 << 20, 4096, DeviceState::Open));
    }

    #[test]
    fn the_cores_build_what_no_device_is_for() {
        let metrics = ExecutionPlanMetricsSet::new();
        let has_engine = |device, builder| {
            let options = TadocOptions { device, builder, ..TadocOptions::default() };
            rounds_engine(&options, &metrics).unwrap().is_some()
        };
        assert!(has_engine(Device::Auto, BuilderKind::Rounds));
        assert!(!has_engine(Device::Cpu, BuilderKind::Rounds));
        for device in [Device::Auto, Device::Cpu, Device::Gpu] {
            assert!(!has_engine(device, BuilderKind::Sequitur));
        }
    }

    #[test]
    fn a_demanded_device_that_is_not_there_is_an_error() {
        let options = TadocOptions { device: Device::Gpu, ..TadocOptions::default() };
        let engine = rounds_engine(&options, &ExecutionPlanMetricsSet::new());
        match device::problem() {
            None => assert!(engine.unwrap().is_some()),
            Some(problem) => {
                let error = engine.unwrap_err().to_string();
                let expected = format!("tadoc.device = gpu: {problem}; SET tadoc.device = 'auto'");
                assert!(error.contains(&expected), "{error}");
            }
        }
    }
}
