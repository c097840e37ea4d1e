//! Devices that failed, for as long as the process lives.
//!
//! After some faults (an illegal address, say) the driver answers every call on that device with
//! the same error until the process ends. Whoever asks for such a device is told at once, and why.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::DriverError;

use super::error::{GpuError, is_sticky};

/// By ordinal, the first fault.
static LOST: Mutex<BTreeMap<usize, String>> = Mutex::new(BTreeMap::new());

/// Takes note of `error` of device `ordinal`, if it is one that stays.
pub(super) fn note(ordinal: usize, error: &GpuError) {
    if let GpuError::Driver { code, .. } = error
        && is_sticky(*code)
    {
        let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
        lost.entry(ordinal).or_insert_with(|| error.to_string());
    }
}

/// [`Device::fault`](super::Device) of device `ordinal`.
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

/// Whether device `ordinal` can still be used.
///
/// # Errors
///
/// [`GpuError::Lost`] where it cannot.
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
