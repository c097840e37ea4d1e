//! Errors of the device.

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

use tadoc::error::Error;

use super::block_check::BlockCheck;

/// An error of the device, its driver or its input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The driver's library cannot be loaded.
    #[error("no NVIDIA driver: its library (libcuda.so or nvcuda.dll) cannot be loaded")]
    NoDriver,
    /// The driver is older than the calls of this build.
    #[error("the NVIDIA driver speaks CUDA {got}, this build needs {expected} or newer")]
    OldDriver {
        /// Version that the driver supports.
        got: String,
        /// Oldest version that suffices.
        expected: String,
    },
    /// The driver sees no device.
    #[error("the NVIDIA driver sees no device")]
    NoDevice,
    /// No device has this number.
    #[error("device {got} does not exist, there are {num_devices}")]
    NoSuchDevice {
        /// The requested ordinal.
        got: usize,
        /// Number of devices.
        num_devices: usize,
    },
    /// The device lacks something that a kernel needs.
    #[error("{device} cannot run {kernel}: {reason}")]
    Unsupported {
        /// Name of the device.
        device: String,
        /// Name of the kernel.
        kernel: &'static str,
        /// Description of the missing feature.
        reason: String,
    },
    /// The free device memory, or the limit in force, is too low.
    #[error(
        "{what} needs {requested_bytes} bytes of device memory, {available_bytes} are available"
    )]
    OutOfMemory {
        /// Purpose of the allocation.
        what: &'static str,
        /// Requested bytes.
        requested_bytes: u64,
        /// Available bytes.
        available_bytes: u64,
    },
    /// A buffer or a number does not fit the call.
    #[error("{what}: got {got}, expected {expected}")]
    Mismatch {
        /// Name of the value that does not fit.
        what: &'static str,
        /// The value given.
        got: u64,
        /// The value that the call needs.
        expected: u64,
    },
    /// A block contradicts its header. The CPU finds the same.
    #[error("GSST block {block_idx} of the run: {check} (at {place})")]
    Malformed {
        /// Index of the block in the run.
        block_idx: usize,
        /// The check that failed.
        check: BlockCheck,
        /// Place of the fault: a split, or a row of the block.
        place: u32,
    },
    /// The text of a run is not valid in a column of strings.
    #[error("text of the run: {check} (at {place})")]
    NotText {
        /// The check that failed.
        check: BlockCheck,
        /// Place of the fault: a row, or a multiple of 64 bytes.
        place: u32,
    },
    /// The device had a fault that makes all later calls fail; this process does not use it again.
    #[error("device {ordinal} is lost since an earlier fault: {reason}")]
    Lost {
        /// Ordinal of the device.
        ordinal: usize,
        /// Description of the fault.
        reason: String,
    },
    /// The driver reported an error.
    #[error("{what}: {reason} (CUDA error {code})")]
    Driver {
        /// Operation that failed.
        what: &'static str,
        /// Error number of the driver.
        code: u32,
        /// Error text of the driver.
        reason: String,
    },
}

impl GpuError {
    /// Returns a function for `map_err` that turns an error of the driver into a [`GpuError`].
    /// `what` names the operation that failed.
    pub(super) fn driver(what: &'static str) -> impl Fn(DriverError) -> Self {
        move |error| match error.0 {
            CUresult::CUDA_ERROR_NO_DEVICE => Self::NoDevice,
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                Self::OutOfMemory { what, requested_bytes: 0, available_bytes: 0 }
            }
            code => {
                let reason = error.error_string().map(|text| text.to_string_lossy().into_owned());
                let reason = reason.unwrap_or_else(|_| format!("{code:?}"));
                Self::Driver { what, code: code as u32, reason }
            }
        }
    }
}

/// Returns true if the driver answers every later call of the process with the same error.
pub(super) fn is_sticky(code: u32) -> bool {
    [
        CUresult::CUDA_ERROR_ECC_UNCORRECTABLE,
        CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE,
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
        CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
        CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUresult::CUDA_ERROR_ASSERT,
        CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
        CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUresult::CUDA_ERROR_INVALID_PC,
        CUresult::CUDA_ERROR_LAUNCH_FAILED,
        CUresult::CUDA_ERROR_SYSTEM_NOT_READY,
    ]
    .iter()
    .any(|sticky| *sticky as u32 == code)
}

impl From<GpuError> for Error {
    fn from(error: GpuError) -> Self {
        Self::external("GPU", error)
    }
}
