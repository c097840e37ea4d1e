//! The devices of this process, and GSST columns decoded and matched on them as Arrow arrays.
//!
//! ```text
//! missed, demanded, or placed on a device ──▶ on a thread of its own: driver ─▶ contexts ─▶ kernels ─▶ rates
//! state         waits for nothing
//! problem       waits for the driver (how many devices); where a device is demanded
//! the first run waits for contexts and kernels
//! ```
//!
//! Devices stay open; partition `p` uses device `p` modulo the number of those that did not fail. A
//! result is one buffer of pinned host memory, of which the arrays of all stretches are slices: no
//! text is copied on the host. The session's memory pool counts it for as long as one of them lives.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use datafusion::arrow::array::ArrayRef;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryReservation;

use super::device_rows::{block_matches, stretch_arrays};
use crate::errors::from_gsst;
use crate::placement;
use crate::placement::opening::Opening;
use crate::throughput::DeviceState;
use crate::throughput::calibration::{
    DeviceCalibration, GpuProbe, device_rates, expected_device, measure_only_device,
};
use gsst::arrow::TextType;
use gsst::parquet::{CodePredicate, CodeTest, StretchMatches};
use gsst::{CodeWidth, SealedBlock};
use tadoc::error::{Error, Result};
use tadoc_cuda::{
    Device, Devices, GpuError, GsstScanner, PendingMatches, PendingRows, RowForm, RowPredicate,
    RunBytes, ScanOptions, has_driver, num_devices,
};

type Scanners = Vec<Arc<GsstScanner>>;

/// One scanner for each device, or why there is none.
static SCANNERS: Opening<Scanners, GpuError> = Opening::new(open_all);
/// Whether there are devices; asking the driver costs a tenth of a second.
static NUM_DEVICES: OnceLock<std::result::Result<usize, GpuError>> = OnceLock::new();
/// Rates of the first open device, where they are known or measured.
static RATES: OnceLock<DeviceCalibration> = OnceLock::new();

/// Why there is no device, if there is none. Asks the driver.
pub(crate) fn problem() -> Option<String> {
    if let Err(error) = NUM_DEVICES.get_or_init(num_devices) {
        return Some(error.to_string());
    }
    let usable = SCANNERS.if_opened().map(usable);
    Some(usable?.err()?.to_string())
}

/// The state of the devices; asks nobody, but that the first call looks for the driver's library.
pub(crate) fn state() -> DeviceState {
    if !has_driver() {
        return DeviceState::Missing(GpuError::NoDriver.to_string());
    }
    if let Some(Err(error)) = NUM_DEVICES.get() {
        return DeviceState::Missing(error.to_string());
    }
    match SCANNERS.if_opened().map(usable) {
        Some(Err(error)) => DeviceState::Missing(error.to_string()),
        _ => SCANNERS.state(),
    }
}

/// Opens all devices and loads the kernels on a thread of its own, for which nobody waits.
pub(crate) fn open_soon() {
    SCANNERS.open_soon(find_rates);
}

/// Notes that work on `num_cores` cores would have been done `gain_s` seconds earlier on open devices, which take
/// `startup_s` seconds to open; opens them soon where that is worth it.
pub(crate) fn miss(gain_s: f64, startup_s: f64, num_cores: usize) {
    SCANNERS.miss(gain_s, startup_s, num_cores, find_rates);
}

/// Says that no statement comes after the next one, so that devices are opened for its own sake only.
pub(crate) fn expect_nothing_more() {
    SCANNERS.expect_nothing_more();
}

/// Returns true while a thread opens or measures devices.
pub(crate) fn is_opening() -> bool {
    SCANNERS.is_working()
}

/// Rates of the first device: built-in, or measured on this machine; before it is open, of the one that should be there.
pub(super) fn rates() -> Option<&'static DeviceCalibration> {
    static EXPECTED: OnceLock<Option<DeviceCalibration>> = OnceLock::new();
    RATES.get().or_else(|| EXPECTED.get_or_init(expected_device).as_ref())
}

/// Looks up the rates of the first device, or measures it.
fn find_rates(scanners: &Scanners) {
    let Some(first) = scanners.first() else { return };
    let device = first.device();
    let measure = || measure_only_device(&mut GpuProbe::open(device.ordinal())?);
    if let Some(rates) = device_rates(device.name(), measure) {
        let _ = RATES.set(rates);
    }
}

/// All devices, those that failed included; opens them the first time.
pub(crate) fn devices() -> std::result::Result<Vec<Device>, GpuError> {
    let scanners = scanners().map_err(GpuError::clone)?;
    Ok(scanners.iter().map(|scanner| scanner.device().clone()).collect())
}

/// The first device that did not fail, which takes at most `max_bytes` from now on; opens all devices the
/// first time.
pub(crate) fn first(max_bytes: u64) -> std::result::Result<Device, GpuError> {
    let scanners = usable(scanners())?;
    scanners[0].set_max_bytes(max_bytes);
    Ok(scanners[0].device().clone())
}

/// Gives up what scans keep on this device for the next ones.
pub(crate) fn release_idle(ordinal: usize) {
    let all = scanners().map_or(&[][..], Vec::as_slice);
    let of_device = all.iter().filter(|scanner| scanner.device().ordinal() == ordinal);
    of_device.for_each(|scanner| scanner.release_idle());
}

/// Decodes runs on one device.
#[derive(Debug, Clone)]
pub(super) struct Scanner(Arc<GsstScanner>);

impl Scanner {
    /// That of a partition, whose device takes at most `max_bytes` from now on; opens all devices the
    /// first time.
    pub(super) fn of_partition(partition: usize, max_bytes: u64) -> Result<Self> {
        let scanners = usable(scanners())?;
        let scanner = Arc::clone(scanners[partition % scanners.len()]);
        scanner.set_max_bytes(max_bytes);
        tracing::debug!(partition, device = scanner.device().ordinal(), "decoding on a device");
        Ok(Self(scanner))
    }

    /// Gives a run of blocks to the device; the blocks are not needed any more then. `held` has the
    /// memory of the run and then of its rows.
    pub(super) fn submit(
        &self,
        blocks: Vec<Bytes>,
        text_type: TextType,
        held: MemoryReservation,
    ) -> Result<Pending> {
        let sealed = sealed(blocks)?;
        let run = RunBytes::of(&sealed, RowForm::Views)?;
        held.try_grow(run.staging + run.rows).map_err(no_room)?;
        let rows =
            self.retried(|scanner| scanner.submit(&sealed, RowForm::Views, text_type.is_utf8()))?;
        Ok(Pending { rows, text_type, held })
    }

    /// Again with what idle slots and corpora keep, where the device has too little memory.
    fn retried<T>(
        &self,
        submit: impl Fn(&GsstScanner) -> std::result::Result<T, GpuError>,
    ) -> Result<T> {
        Ok(submit(&self.0).or_else(|error| match error {
            GpuError::OutOfMemory { .. } => {
                self.0.release_idle();
                placement::release(self.0.device().ordinal());
                submit(&self.0)
            }
            other => Err(other),
        })?)
    }

    /// All of `predicates` as the device takes them, those first that few rows should match.
    ///
    /// # Errors
    ///
    /// Where one is beyond a device.
    pub(super) fn tests(&self, predicates: &[&CodePredicate]) -> Result<Tests> {
        let mut predicates = predicates.to_vec();
        predicates.sort_by_key(|predicate| predicate.is_negated);
        let tests = predicates.into_iter().map(|predicate| {
            let test = match &predicate.test {
                CodeTest::IsIn(texts) => {
                    let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
                    self.0.matcher().one_of(&texts)?
                }
                CodeTest::Like(pattern) => self.0.matcher().like(pattern)?,
            };
            Ok(if predicate.is_negated { test.negated() } else { test })
        });
        Ok(Tests(tests.collect::<Result<_>>()?))
    }

    /// Gives a run of blocks to the device to find rows; the blocks are not needed any more then.
    /// `held` has the memory of the run and then of the rows that pass.
    pub(super) fn submit_matching(
        &self,
        blocks: Vec<Bytes>,
        tests: &Tests,
        text_type: TextType,
        is_text_wanted: bool,
        held: MemoryReservation,
    ) -> Result<PendingTests> {
        let sealed = sealed(blocks)?;
        held.try_grow(RunBytes::of(&sealed, RowForm::Views)?.staging).map_err(no_room)?;
        let rows =
            self.retried(|scanner| scanner.submit_matching(&sealed, &tests.0, is_text_wanted))?;
        Ok(PendingTests { rows, text_type, held })
    }
}

/// What rows are asked, all of it.
#[derive(Debug)]
pub(super) struct Tests(Vec<RowPredicate>);

/// A run on its way that only rows come back of that pass.
#[derive(Debug)]
pub(super) struct PendingTests {
    rows: PendingMatches,
    text_type: TextType,
    held: MemoryReservation,
}

impl PendingTests {
    /// Waits for the rows of each block.
    pub(super) fn wait(self) -> Result<Vec<StretchMatches>> {
        let rows = self.rows.wait()?;
        self.held.try_resize(rows.buffer().capacity_bytes()).map_err(no_room)?;
        block_matches(&rows, self.text_type, self.held)
    }
}

fn sealed(blocks: Vec<Bytes>) -> Result<Vec<SealedBlock<Bytes>>> {
    blocks.into_iter().map(|block| SealedBlock::open(block).map_err(from_gsst)).collect()
}

/// A run on its way.
#[derive(Debug)]
pub(super) struct Pending {
    rows: PendingRows,
    text_type: TextType,
    held: MemoryReservation,
}

impl Pending {
    /// Waits for the rows, an array for each block.
    pub(super) fn wait(self) -> Result<Vec<ArrayRef>> {
        let rows = self.rows.wait()?;
        // Staging is free again, but the buffer may be larger than the rows.
        self.held.try_resize(rows.buffer().capacity_bytes()).map_err(no_room)?;
        stretch_arrays(rows, self.text_type, self.held)
    }
}

/// What helps where a device failed; nothing where the bytes it read are at fault.
pub(super) fn way_out(error: &Error) -> Option<&'static str> {
    let Error::External { source, .. } = error else { return None };
    match source.downcast_ref() {
        Some(GpuError::Malformed { .. } | GpuError::NotText { .. }) => None,
        Some(GpuError::OutOfMemory { .. }) => Some(
            "tadoc.device = gpu; raise tadoc.gpu_memory_bytes, make row groups smaller \
             (gsst_row_group_rows), or SET tadoc.device = 'auto' to let the CPU decode what does not fit",
        ),
        Some(GpuError::Lost { .. }) => Some(
            "tadoc.device = gpu; the device can be used again in a new process; \
             SET tadoc.device = 'auto' to let the CPU decode until then",
        ),
        Some(_) => Some(
            "tadoc.device = gpu; SET tadoc.device = 'auto' to let the CPU decode what a device cannot",
        ),
        None => source.downcast_ref::<DataFusionError>().map(|_| {
            "tadoc.device = gpu; raise the session's memory limit, make row groups smaller \
             (gsst_row_group_rows), or SET tadoc.device = 'auto'"
        }),
    }
}

/// The session's memory pool has no room for a run.
fn no_room(error: DataFusionError) -> Error {
    Error::external("host memory for the rows of a device", error)
}

fn scanners() -> std::result::Result<&'static Scanners, &'static GpuError> {
    SCANNERS.get()
}

fn open_all() -> std::result::Result<Scanners, GpuError> {
    let devices = Devices::open(u64::MAX)?;
    let scanner = |device| Ok(Arc::new(GsstScanner::new(device, ScanOptions::default())?));
    let scanners = devices.all().iter().map(scanner).collect::<std::result::Result<Vec<_>, _>>()?;
    load_all(&scanners);
    Ok(scanners)
}

/// Those whose device did not fail; at least one.
fn usable<'a>(
    scanners: std::result::Result<&'a Scanners, &GpuError>,
) -> std::result::Result<Vec<&'a Arc<GsstScanner>>, GpuError> {
    let scanners = scanners.map_err(GpuError::clone)?;
    let (mut usable, mut lost) = (Vec::new(), GpuError::NoDevice);
    for scanner in scanners {
        match scanner.device().check() {
            Ok(()) => usable.push(scanner),
            Err(error) => lost = error,
        }
    }
    if usable.is_empty() { Err(lost) } else { Ok(usable) }
}

/// Loads the kernels of both widths; an error comes again with the first run.
fn load_all(scanners: &[Arc<GsstScanner>]) {
    std::thread::scope(|scope| {
        for scanner in scanners {
            let load = |width| scanner.load(width);
            scope.spawn(move || load(CodeWidth::Eight).and_then(|()| load(CodeWidth::Twelve)));
        }
    });
}
