//! Tickets of kernels whose threads wait for each other: the wrapper of
//! `kernels/corpus_tickets.cuh`.

use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::module::unsupported;

use super::launch::{Argument, address};
use super::transfer::{fill, one_to_host};

/// The next number for a thread block, and a flag that a warp gave up.
#[derive(Debug)]
pub(super) struct Tickets {
    device: Device,
    numbers: DeviceBuffer<u32>,
}

impl Tickets {
    pub(super) fn new(device: &Device) -> Result<Self, GpuError> {
        let numbers = device.alloc("numbers of thread blocks", 2)?;
        Ok(Self { device: device.clone(), numbers })
    }

    /// Resets the tickets for one launch.
    pub(super) fn reset(&mut self) -> Result<(), GpuError> {
        fill(&self.device, &mut self.numbers, 0)
    }

    pub(super) fn argument(&self) -> Argument {
        Argument::Long(address(&self.device, &self.numbers))
    }

    /// Checks that the last launch, of `kernel`, ended without giving up. Waits for it.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] for a grammar that is too deep; [`GpuError::Driver`].
    pub(super) fn check_end(&self, kernel: &'static str) -> Result<(), GpuError> {
        if one_to_host(&self.device, &self.numbers, 1)? == 0 {
            return Ok(());
        }
        let reason =
            "a grammar whose rules waited for each other for a second, it takes less deep ones";
        Err(unsupported(&self.device, kernel, reason.to_owned()))
    }
}
