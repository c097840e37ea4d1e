//! Errors of the device, the names of the faults that it finds in blocks, by the numbers of
//! `kernels/gsst_run.cuh`, and the devices that are lost.
//!
//! # Lost devices
//!
//! After some faults, such as an illegal address, the driver answers every call on that device with the same error
//! until the process ends. Requests for such a device fail at once, with the first fault as the reason.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;
use tadoc::error::Error;

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
    #[error("{what} needs {requested_bytes} bytes of device memory, {available_bytes} are available")]
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
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Self::OutOfMemory { what, requested_bytes: 0, available_bytes: 0 },
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

/// A check of `kernels/gsst_check.cu` or `kernels/gsst_rows.cu` that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockCheck {
    /// The numbers of codes of all rows do not sum to that of the block.
    CodeCounts,
    /// The lengths of the texts of all rows do not sum to that of the block.
    TextLengths,
    /// A row without codes has text.
    EmptyRow,
    /// A null row has codes.
    NullRow,
    /// A code has no symbol.
    Code,
    /// The length of a split's text differs from the stored one.
    SplitText,
    /// The bits of a split's tiles differ from its escapes.
    SplitTiles,
    /// The end of a split and the start of the next disagree about an escape, or the last code is
    /// an escape.
    SplitLiteral,
    /// A row ends inside an escape.
    RowInEscape,
    /// The length of a row's text differs from that of its codes.
    RowText,
    /// The text is not UTF-8.
    Utf8,
    /// A row starts inside a UTF-8 character.
    RowInCharacter,
    /// A number that this build does not know.
    Unknown,
}

/// All checks with their names in the kernels, by number from 1.
pub(super) const CHECKS: [(BlockCheck, &str); 12] = [
    (BlockCheck::CodeCounts, "CHECK_CODE_COUNTS"),
    (BlockCheck::TextLengths, "CHECK_TEXT_LENGTHS"),
    (BlockCheck::EmptyRow, "CHECK_EMPTY_ROW"),
    (BlockCheck::NullRow, "CHECK_NULL_ROW"),
    (BlockCheck::Code, "CHECK_CODE"),
    (BlockCheck::SplitText, "CHECK_SPLIT_TEXT"),
    (BlockCheck::SplitTiles, "CHECK_SPLIT_TILES"),
    (BlockCheck::SplitLiteral, "CHECK_SPLIT_LITERAL"),
    (BlockCheck::RowInEscape, "CHECK_ROW_IN_ESCAPE"),
    (BlockCheck::RowText, "CHECK_ROW_TEXT"),
    (BlockCheck::Utf8, "CHECK_UTF8"),
    (BlockCheck::RowInCharacter, "CHECK_ROW_IN_CHARACTER"),
];

impl BlockCheck {
    /// Returns the check for a number that a kernel reported.
    pub(super) fn from_number(number: u32) -> Self {
        let place = (number as usize).checked_sub(1);
        place.and_then(|at| CHECKS.get(at)).map_or(Self::Unknown, |(check, _)| *check)
    }
}

impl fmt::Display for BlockCheck {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::CodeCounts => "numbers of codes do not sum up to that of the block",
            Self::TextLengths => "lengths of texts do not sum up to that of the block",
            Self::EmptyRow => "a row without codes has text",
            Self::NullRow => "a null row has codes",
            Self::Code => "a code has no symbol",
            Self::SplitText => "a split's text has another length than stored",
            Self::SplitTiles => "the bits of a split's tiles are not those of its escapes",
            Self::SplitLiteral => "an escape at the end of a split does not fit the next one",
            Self::RowInEscape => "a row ends inside an escape",
            Self::RowText => "a row's length of text is not that of its codes",
            Self::Utf8 => "the text is not UTF-8",
            Self::RowInCharacter => "a row starts inside a character",
            Self::Unknown => "a fault this build has no name for",
        })
    }
}

/// First fault of each lost device, by ordinal. A static, because the driver shares the context of
/// a device, and with it the fault, among all sessions of the process.
static LOST: Mutex<BTreeMap<usize, String>> = Mutex::new(BTreeMap::new());

/// Records `error` of device `ordinal` if it is a lasting fault.
pub(super) fn note(ordinal: usize, error: &GpuError) {
    if let GpuError::Driver { code, .. } = error
        && is_sticky(*code)
    {
        let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
        lost.entry(ordinal).or_insert_with(|| error.to_string());
    }
}

/// Returns the error mapping of [`Device::fault`](crate::Device) for device `ordinal`.
pub(super) fn fault(ordinal: usize, what: &'static str) -> impl Fn(DriverError) -> GpuError + use<> {
    move |error| {
        let error = GpuError::driver(what)(error);
        note(ordinal, &error);
        error
    }
}

/// Checks that device `ordinal` can still be used.
///
/// # Errors
///
/// [`GpuError::Lost`] if the device failed.
pub(super) fn check(ordinal: usize) -> Result<(), GpuError> {
    let lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
    match lost.get(&ordinal) {
        Some(reason) => Err(GpuError::Lost { ordinal, reason: reason.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_faults_that_stay_make_a_device_lost() {
        let fault = |code| GpuError::Driver { what: "decoding", code, reason: "no reason".to_owned() };
        let ordinal = 1 << 30;
        note(ordinal, &fault(2));
        note(ordinal, &GpuError::NoDevice);
        assert_eq!(check(ordinal), Ok(()));
        note(ordinal, &fault(700));
        note(ordinal, &fault(719));
        let reason = fault(700).to_string();
        assert_eq!(check(ordinal), Err(GpuError::Lost { ordinal, reason }));
        assert_eq!(check(ordinal + 1), Ok(()));
    }
}
