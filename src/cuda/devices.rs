//! All devices of the host, handed out in turn.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::device::{Device, num_devices};
use super::error::GpuError;
use super::lost;

/// The devices that could be opened. The partitions of a scan take them in turn.
#[derive(Debug)]
pub struct Devices {
    devices: Vec<Device>,
    next: AtomicUsize,
}

impl Devices {
    /// Opens every device, each with at most `max_bytes` of device memory. Leaves out the devices
    /// that cannot be opened, if at least one can.
    ///
    /// # Errors
    ///
    /// The errors of [`num_devices`]. If no device can be opened, the error of the first one.
    pub fn open(max_bytes: u64) -> Result<Self, GpuError> {
        let opened = open_each(num_devices()?);
        let first_error = opened.iter().find_map(|device| device.as_ref().err().cloned());
        let devices: Vec<_> =
            opened.into_iter().flatten().map(|device| device.with_max_bytes(max_bytes)).collect();
        match first_error {
            Some(error) if devices.is_empty() => Err(error),
            _ => Ok(Self { devices, next: AtomicUsize::new(0) }),
        }
    }

    /// Returns the number of devices; at least one.
    pub fn len(&self) -> usize {
        self.devices.len()
    }

    /// Returns false always, because opening no device is an error.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// Returns all devices, by ordinal.
    pub fn all(&self) -> &[Device] {
        &self.devices
    }

    /// Returns the next device in turn that is not lost.
    ///
    /// # Errors
    ///
    /// [`GpuError::Lost`] if all devices are lost.
    pub fn next(&self) -> Result<&Device, GpuError> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let ordinals: Vec<_> = self.devices.iter().map(Device::ordinal).collect();
        in_turn(&ordinals, first).map(|at| &self.devices[at])
    }
}

/// Opens the devices below `num_devices` in parallel, because the driver needs a tenth of a second
/// for each.
fn open_each(num_devices: usize) -> Vec<Result<Device, GpuError>> {
    std::thread::scope(|scope| {
        let open = |ordinal| scope.spawn(move || Device::open(ordinal));
        let threads: Vec<_> = (0..num_devices).map(open).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

/// Returns the index of the first device in turn, from `first` on, that is not lost.
fn in_turn(ordinals: &[usize], first: usize) -> Result<usize, GpuError> {
    let places = (0..ordinals.len()).map(|i| first.wrapping_add(i) % ordinals.len());
    let mut error = GpuError::NoDevice;
    for at in places {
        match lost::check(ordinals[at]) {
            Ok(()) => return Ok(at),
            Err(lost) => error = lost,
        }
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_take_turns_and_lost_ones_are_left_out() {
        let ordinals = [5_000, 5_001, 5_002];
        let turns = |num| (0..num).map(|first| in_turn(&ordinals, first)).collect::<Vec<_>>();
        assert_eq!(turns(4), [Ok(0), Ok(1), Ok(2), Ok(0)]);
        let fault = GpuError::Driver { what: "a test", code: 719, reason: "none".to_owned() };
        lost::note(5_001, &fault);
        assert_eq!(turns(4), [Ok(0), Ok(2), Ok(2), Ok(0)]);
        lost::note(5_000, &fault);
        lost::note(5_002, &fault);
        assert!(matches!(in_turn(&ordinals, 0), Err(GpuError::Lost { ordinal: 5_002, .. })));
        assert_eq!(in_turn(&[], 3), Err(GpuError::NoDevice));
    }
}
