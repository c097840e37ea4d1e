//! The devices of this process, and GSST columns decoded on them as Arrow arrays.
//!
//! Devices are opened with the first scan that needs them and stay open; partition `p` uses device
//! `p` modulo their number. A result is one buffer of pinned host memory, of which the arrays of
//! all stretches are slices: no text is copied on the host.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use datafusion::arrow::array::ArrayRef;

use super::device_rows::stretch_arrays;
use crate::error::{Error, Result};
use crate::gpu::{Devices, GpuError, GsstScanner, PendingRows, RowForm, ScanOptions, num_devices};
use crate::gsst::SealedBlock;
use crate::gsst::arrow::TextType;

/// One scanner for each device, or why there is none.
static SCANNERS: OnceLock<std::result::Result<Vec<Arc<GsstScanner>>, GpuError>> = OnceLock::new();
/// Whether there are devices; asking the driver costs a tenth of a second.
static NUM_DEVICES: OnceLock<std::result::Result<usize, GpuError>> = OnceLock::new();

/// Why there is no device, if there is none.
pub(super) fn problem() -> Option<String> {
    Some(NUM_DEVICES.get_or_init(num_devices).as_ref().err()?.to_string())
}

/// Whether devices have been opened.
pub(super) fn is_open() -> bool {
    SCANNERS.get().is_some_and(|scanners| scanners.is_ok())
}

/// Decodes runs on one device.
#[derive(Debug, Clone)]
pub(super) struct Scanner(Arc<GsstScanner>);

impl Scanner {
    /// That of a partition; opens all devices the first time.
    pub(super) fn of_partition(partition: usize, max_bytes: u64) -> Result<Self> {
        let scanners = SCANNERS.get_or_init(|| open_all(max_bytes)).as_ref();
        let scanners = scanners.map_err(|error| Error::from(error.clone()))?;
        Ok(Self(Arc::clone(&scanners[partition % scanners.len()])))
    }

    /// Gives a run of blocks to the device; the blocks are not needed any more then.
    pub(super) fn submit(&self, blocks: Vec<Bytes>, text_type: TextType) -> Result<Pending> {
        let sealed = blocks.into_iter().map(SealedBlock::open);
        let sealed = sealed.collect::<Result<Vec<_>>>()?;
        let rows = self.0.submit(&sealed, RowForm::Views, text_type.is_utf8())?;
        Ok(Pending { rows, text_type })
    }
}

/// A run on its way.
#[derive(Debug)]
pub(super) struct Pending {
    rows: PendingRows,
    text_type: TextType,
}

impl Pending {
    /// Waits for the rows, an array for each block.
    pub(super) fn wait(self) -> Result<Vec<ArrayRef>> {
        stretch_arrays(self.rows.wait()?, self.text_type)
    }
}

fn open_all(max_bytes: u64) -> std::result::Result<Vec<Arc<GsstScanner>>, GpuError> {
    let devices = Devices::open(max_bytes)?;
    let scanner = |device| Ok(Arc::new(GsstScanner::new(device, ScanOptions::default())?));
    devices.all().iter().map(scanner).collect()
}
