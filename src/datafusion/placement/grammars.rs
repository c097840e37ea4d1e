//! Grammars of the files that `COPY` and `INSERT` write, built in rounds on a device.
//!
//! ```text
//! block ─▶ short ────────────────────────────────▶ the cores
//!       └▶ long ─▶ the first usable device ──────▶ rules       the same bytes as on the cores
//!                    ├ no device, or it fails ───▶ the cores   device_fallbacks, the log
//!                    └ closed, not worth waiting ▶ the cores   it may be opened for later blocks
//! ```
//!
//! Scans use the same device, and `tadoc.gpu_memory_bytes` limits the memory of both. About 80
//! bytes for each element of the largest block stay allocated until the file is written. If a
//! device has too little memory for a block, it drops the copies of corpora and the free memory of
//! scans.

use std::sync::{Arc, OnceLock};

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};

use crate::options::{Device, TadocOptions};
use crate::placement::session::{DeviceSession, demanded_but};
use crate::throughput::{Decision, Effort, decide};
use tadoc::accelerator::{MIN_ROUNDS_ELEMENTS, Rounds};
use tadoc::build::BuilderKind;
use tadoc::grammar::{RoundsEngine, RoundsOutput};

/// Seconds for an element on one core. Measured on sequences of single tokens: 116 ns on 2 cores,
/// and on 16 cores 19 to 25 ns (benches/results/2026-11-22-h100.md has runs on 16 cores). An element
/// that remains after the longest matches costs more, so this is a low estimate.
const CORE_S: f64 = 200e-9;
/// Time on twice as many cores, as a share of the time.
const OF_TWICE: f64 = 0.58;
/// Seconds for a block on an open device, without its elements. Twice the time of an H100.
const DEVICE_S: f64 = 5e-3;
/// Seconds for an element on an open device. Twice the time of an H100.
const DEVICE_ELEMENT_S: f64 = 2e-9;
/// Largest time on the device, as a share of the time on the cores.
const MARGIN: f64 = 0.8;

/// Returns the engine that runs rounds in place of the cores, or `None` if `tadoc.device` or the
/// builder does not allow it. `metrics` count its grammars. A device that is demanded is opened
/// here; the first opening takes half a second.
///
/// # Errors
/// A plan error that says what the user can do, if a device is demanded and there is none.
pub(crate) fn rounds_engine(
    devices: &Arc<DeviceSession>,
    options: &TadocOptions,
    metrics: &ExecutionPlanMetricsSet,
) -> Result<Option<Arc<dyn RoundsEngine>>> {
    if options.device == Device::Cpu || options.builder != BuilderKind::Rounds {
        return Ok(None);
    }
    let counter = |name| MetricBuilder::new(metrics).global_counter(name);
    let engine = SessionRounds {
        devices: Arc::clone(devices),
        is_demanded: options.device == Device::Gpu,
        max_bytes: options.gpu_memory_bytes,
        opened: OnceLock::new(),
        num_grammars: counter("device_grammars"),
        num_fallbacks: counter("device_fallbacks"),
    };
    if engine.is_demanded
        && let Err(problem) = engine.opened()
    {
        return plan_err!("{}", demanded_but(problem));
    }
    Ok(Some(Arc::new(engine)))
}

/// Rounds on the first usable device. The first block opens them.
#[derive(Debug)]
struct SessionRounds {
    devices: Arc<DeviceSession>,
    is_demanded: bool,
    max_bytes: u64,
    /// The rounds, or the reason why there are none.
    opened: OnceLock<std::result::Result<Box<dyn Rounds>, String>>,
    num_grammars: Count,
    num_fallbacks: Count,
}

impl SessionRounds {
    fn opened(&self) -> std::result::Result<&dyn Rounds, &str> {
        let open = || {
            let rounds = self.devices.usable()?.rounds(self.max_bytes);
            rounds.map_err(|error| error.to_string())
        };
        match self.opened.get_or_init(open) {
            Ok(rounds) => Ok(rounds.as_ref()),
            Err(problem) => Err(problem),
        }
    }

    /// Returns true if a block of `num_elements` elements goes to a device. Otherwise adds to the
    /// missed time of the session.
    fn is_for_device(&self, num_elements: usize) -> bool {
        if num_elements < MIN_ROUNDS_ELEMENTS {
            return false;
        }
        if self.is_demanded {
            return self.devices.problem().is_none();
        }
        let num_cores = rayon::current_num_threads();
        let startup_s = self.devices.calibration().corpus_rates().startup_s;
        let effort = effort(num_elements, num_cores, startup_s);
        let is_on_device = |decision: &Decision| *decision == Decision::Device;
        let decision = self.devices.decide(|state| decide(&effort, state), is_on_device);
        if !is_on_device(&decision) {
            self.devices.miss(&effort, num_cores);
        }
        is_on_device(&decision)
    }
}

/// Returns the estimated times of the rounds of a block of `num_elements` elements.
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

impl RoundsEngine for SessionRounds {
    fn run(&self, symbols: &[u32], first_rule: u32) -> Option<RoundsOutput> {
        if !self.is_for_device(symbols.len()) {
            return None;
        }
        let opened = self.opened().map_err(str::to_owned);
        let run = |rounds: &dyn Rounds| {
            rounds.run(symbols, first_rule).map_err(|error| error.to_string())
        };
        match opened.and_then(run) {
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

    /// The shortest block for a device, and a block of 128 MiB of text, on 16 cores with an H200.
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
            rounds_engine(&Arc::default(), &options, &metrics).is_ok_and(|engine| engine.is_some())
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
        let devices = Arc::new(DeviceSession::new());
        let engine = rounds_engine(&devices, &options, &ExecutionPlanMetricsSet::new());
        match devices.problem() {
            None => assert!(engine.unwrap().is_some()),
            Some(problem) => {
                let error = engine.unwrap_err().to_string();
                let expected = format!("tadoc.device = gpu: {problem}; SET tadoc.device = 'auto'");
                assert!(error.contains(&expected), "{error}");
            }
        }
    }
}
