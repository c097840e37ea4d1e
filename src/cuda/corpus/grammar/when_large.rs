//! Rounds on the first device, which is opened for the first sequence that is worth it.
//!
//! Opening a device takes 0.4 s, as long as 2 cores take for the rounds of some 4 million elements; those of a
//! block of 128 MiB take 7 to 25 ms there and 0.2 to 0.8 s on 16 cores. Where there is no device, or it
//! fails, the cores run them.

use std::sync::OnceLock;

use crate::device::Device;
use crate::error::GpuError;
use tadoc::grammar::{RoundsEngine, RoundsOutput};

use super::DeviceRounds;

/// Shorter sequences are left to the cores.
const MIN_ELEMENTS: usize = 4 << 20;

/// [`DeviceRounds`] of the first device, once they are asked for.
#[derive(Debug, Default)]
pub struct RoundsWhenLarge {
    rounds: OnceLock<Result<DeviceRounds, GpuError>>,
}

impl RoundsWhenLarge {
    /// On a device that must be there, opened at once.
    ///
    /// # Errors
    /// [`GpuError`] where there is none, or it has no kernels for this.
    pub fn opened() -> Result<Self, GpuError> {
        Ok(Self { rounds: OnceLock::from(Ok(open()?)) })
    }

    /// Whether the rounds of so many elements are worth a device.
    pub fn is_large(num_elements: usize) -> bool {
        num_elements >= MIN_ELEMENTS
    }

    /// Why the last long sequence was left to the cores, if one was.
    pub fn fault(&self) -> Option<GpuError> {
        match self.rounds.get()? {
            Ok(rounds) => rounds.fault(),
            Err(error) => Some(error.clone()),
        }
    }
}

impl RoundsEngine for RoundsWhenLarge {
    fn run(&self, symbols: &[u32], first_rule: u32) -> Option<RoundsOutput> {
        if !Self::is_large(symbols.len()) {
            return None;
        }
        self.rounds.get_or_init(open).as_ref().ok()?.run(symbols, first_rule)
    }
}

fn open() -> Result<DeviceRounds, GpuError> {
    DeviceRounds::new(&Device::open(0)?)
}
