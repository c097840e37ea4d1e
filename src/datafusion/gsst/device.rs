//! Helpers of scans that use a device: its memory in the session's pool, and advice for its faults.

use std::error::Error as StdError;

use datafusion::execution::memory_pool::MemoryReservation;

use gsst::parquet::device::{DeviceError, DeviceFault, RowMemory};

/// Reservation of the memory of a run in the session's pool.
pub(super) struct Reserved(pub(super) MemoryReservation);

impl RowMemory for Reserved {
    fn try_resize(&self, len_bytes: usize) -> Result<(), Box<dyn StdError + Send + Sync>> {
        Ok(self.0.try_resize(len_bytes)?)
    }
}

/// Returns advice for the user if a device that is demanded fails, or `None` for damaged blocks.
pub(super) fn way_out(error: &DeviceError) -> Option<&'static str> {
    match error.fault {
        DeviceFault::Data => None,
        DeviceFault::DeviceMemory => Some(
            "tadoc.device = gpu; raise tadoc.gpu_memory_bytes, make row groups smaller \
             (gsst_row_group_rows), or SET tadoc.device = 'auto' to let the CPU decode what does not fit",
        ),
        DeviceFault::HostMemory => Some(
            "tadoc.device = gpu; raise the session's memory limit, make row groups smaller \
             (gsst_row_group_rows), or SET tadoc.device = 'auto'",
        ),
        DeviceFault::Lost => Some(
            "tadoc.device = gpu; the device can be used again in a new process; \
             SET tadoc.device = 'auto' to let the CPU decode until then",
        ),
        DeviceFault::Other => {
            Some("tadoc.device = gpu; SET tadoc.device = 'auto' to let the CPU decode what a device cannot")
        }
    }
}
