//! Devices that failed and stay unusable until the process ends.
//!
//! After some faults, such as an illegal address, the driver answers every call on that device with
//! the same error until the process ends. Requests for such a device fail at once, with the first
//! fault as the reason.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::DriverError;

use super::error::{GpuError, is_sticky};

/// First fault of each lost device, by ordinal. A static, because the driver shares the context of a
/// device, and with it the fault, among all sessions of the process.
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

/// Returns the error mapping of [`Device::fault`](super::Device) for device `ordinal`.
pub(super) fn fault(
    ordinal: usize,
    what: &'static str,
) -> impl Fn(DriverError) -> GpuError + use<> {
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
        let fault =
            |code| GpuError::Driver { what: "decoding", code, reason: "no reason".to_owned() };
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
