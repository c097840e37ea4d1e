//! The devices of this process, and GSST columns decoded and matched on them as Arrow arrays.
//!
//! ```text
//! foreseen, or placed on a device ──▶ on another thread: driver ─▶ contexts ─▶ kernels
//! placement     waits for the driver (how many devices)
//! the first run waits for contexts and kernels
//! ```
//!
//! Devices stay open; partition `p` uses device `p` modulo the number of those that did not fail. A
//! result is one buffer of pinned host memory, of which the arrays of all stretches are slices: no
//! text is copied on the host. The session's memory pool counts it for as long as one of them lives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use datafusion::arrow::array::ArrayRef;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryReservation;

use super::super::device_tasks;
use super::device_rows::{block_matches, stretch_arrays};
use crate::error::{Error, Result};
use crate::gpu::{
    Device, Devices, GpuError, GsstScanner, PendingMatches, PendingRows, RowForm, RowPredicate,
    RunBytes, ScanOptions, num_devices,
};
use crate::gsst::arrow::TextType;
use crate::gsst::parquet::{CodePredicate, CodeTest, StretchMatches};
use crate::gsst::{CodeWidth, SealedBlock};

/// One scanner for each device, or why there is none.
static SCANNERS: OnceLock<std::result::Result<Vec<Arc<GsstScanner>>, GpuError>> = OnceLock::new();
/// Whether there are devices; asking the driver costs a tenth of a second.
static NUM_DEVICES: OnceLock<std::result::Result<usize, GpuError>> = OnceLock::new();
/// Whether somebody opens them ahead of time.
static IS_OPENING: AtomicBool = AtomicBool::new(false);

/// Why there is no device, if there is none.
pub(in crate::sql) fn problem() -> Option<String> {
    if let Err(error) = NUM_DEVICES.get_or_init(num_devices) {
        return Some(error.to_string());
    }
    let usable = SCANNERS.get().map(|scanners| usable(scanners.as_ref()));
    Some(usable?.err()?.to_string())
}

/// Whether devices have been opened.
pub(in crate::sql) fn is_open() -> bool {
    SCANNERS.get().is_some_and(|scanners| scanners.is_ok())
}

/// Asks the driver for devices on a thread of the runtime.
pub(super) fn ask_soon() {
    if NUM_DEVICES.get().is_none()
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        runtime.spawn_blocking(problem);
    }
}

/// Opens all devices and loads the kernels on a thread of the runtime, which waits for it when it
/// ends. What fails is found again by whoever needs a device.
pub(in crate::sql) fn open_soon() {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    if IS_OPENING.swap(true, Ordering::Relaxed) {
        return;
    }
    runtime.spawn_blocking(move || {
        if problem().is_none()
            && let Ok(scanners) = scanners()
        {
            load_all(scanners);
        }
    });
}

/// All devices, those that failed included; opens them the first time.
pub(in crate::sql) fn devices() -> std::result::Result<Vec<Device>, GpuError> {
    let scanners = scanners().map_err(GpuError::clone)?;
    Ok(scanners.iter().map(|scanner| scanner.device().clone()).collect())
}

/// The first device that did not fail, which takes at most `max_bytes` from now on; opens all devices the
/// first time.
pub(in crate::sql) fn first(max_bytes: u64) -> std::result::Result<Device, GpuError> {
    let scanners = usable(scanners())?;
    scanners[0].set_max_bytes(max_bytes);
    Ok(scanners[0].device().clone())
}

/// Gives up what scans keep on this device for the next ones.
pub(in crate::sql) fn release_idle(ordinal: usize) {
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
                device_tasks::release(self.0.device().ordinal());
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
    blocks.into_iter().map(SealedBlock::open).collect()
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

fn scanners() -> std::result::Result<&'static Vec<Arc<GsstScanner>>, &'static GpuError> {
    SCANNERS.get_or_init(open_all).as_ref()
}

fn open_all() -> std::result::Result<Vec<Arc<GsstScanner>>, GpuError> {
    let devices = Devices::open(u64::MAX)?;
    let scanner = |device| Ok(Arc::new(GsstScanner::new(device, ScanOptions::default())?));
    devices.all().iter().map(scanner).collect()
}

/// Those whose device did not fail; at least one.
fn usable<'a>(
    scanners: std::result::Result<&'a Vec<Arc<GsstScanner>>, &GpuError>,
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
