//! Why the device did not answer.

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

use tadoc::error::Error;

use super::block_check::BlockCheck;

/// Anything that can go wrong on the way to the device and back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The driver's library cannot be loaded.
    #[error("no NVIDIA driver: its library (libcuda.so or nvcuda.dll) cannot be loaded")]
    NoDriver,
    /// The driver is older than the calls of this build.
    #[error("the NVIDIA driver speaks CUDA {got}, this build needs {expected} or newer")]
    OldDriver {
        /// Version the driver knows.
        got: String,
        /// Oldest version that is enough.
        expected: String,
    },
    /// There is a driver, but it sees no device.
    #[error("the NVIDIA driver sees no device")]
    NoDevice,
    /// No device has this number.
    #[error("device {got} does not exist, there are {num_devices}")]
    NoSuchDevice {
        /// The number that was asked for.
        got: usize,
        /// How many devices there are.
        num_devices: usize,
    },
    /// The device lacks something a kernel needs.
    #[error("{device} cannot run {kernel}: {reason}")]
    Unsupported {
        /// Name of the device.
        device: String,
        /// The kernel.
        kernel: &'static str,
        /// What is missing.
        reason: String,
    },
    /// The device has too little memory left, or the limit in force is lower.
    #[error(
        "{what} needs {requested_bytes} bytes of device memory, {available_bytes} are available"
    )]
    OutOfMemory {
        /// What was to be allocated.
        what: &'static str,
        /// How much was asked for.
        requested_bytes: u64,
        /// How much could have been had.
        available_bytes: u64,
    },
    /// A buffer, or a number of blocks, does not fit the call.
    #[error("{what}: got {got}, expected {expected}")]
    Mismatch {
        /// What does not fit.
        what: &'static str,
        /// What came.
        got: u64,
        /// What the call needs.
        expected: u64,
    },
    /// A block is not what its header says; the CPU finds the same.
    #[error("GSST block {block_idx} of the run: {check} (at {place})")]
    Malformed {
        /// Number of the block in the run.
        block_idx: usize,
        /// What is wrong with it.
        check: BlockCheck,
        /// Where: a split, or a row of the block.
        place: u32,
    },
    /// The text of a run is not what a column of strings may hold.
    #[error("text of the run: {check} (at {place})")]
    NotText {
        /// What is wrong with it.
        check: BlockCheck,
        /// Where: a row, or a multiple of 64 bytes.
        place: u32,
    },
    /// The device failed in a way that no later call survives; it is not used again in this process.
    #[error("device {ordinal} is lost since an earlier fault: {reason}")]
    Lost {
        /// Its number.
        ordinal: usize,
        /// The fault.
        reason: String,
    },
    /// The driver refused.
    #[error("{what}: {reason} (CUDA error {code})")]
    Driver {
        /// What was being done.
        what: &'static str,
        /// The driver's number for the error.
        code: u32,
        /// The driver's text for it.
        reason: String,
    },
}

impl GpuError {
    /// Names what was being done when the driver refused; for `map_err`.
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

/// Whether the driver answers every later call of the process with the same error.
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
