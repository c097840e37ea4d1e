//! Rounds on the first device, which is opened for the first sequence that is long enough.
//!
//! Opening a device takes 0.4 s. In this time 2 cores run the rounds of about 4 million elements.
//! The rounds of all tokens of a block of 128 MiB took 7 to 25 ms on a device and 0.2 to 0.8 s on
//! 16 cores. Now the cores match learned phrases first, so a sequence is two to four times shorter.
//! Without a device, or if it fails, the cores run the rounds.

use std::sync::OnceLock;

use crate::device::Device;
use crate::error::GpuError;
use tadoc::accelerator::MIN_ROUNDS_ELEMENTS;
use tadoc::grammar::{RoundsEngine, RoundsOutput};

use super::DeviceRounds;

/// The [`DeviceRounds`] of the first device, made on first use.
#[derive(Debug, Default)]
pub struct RoundsWhenLarge {
    rounds: OnceLock<Result<DeviceRounds, GpuError>>,
}

impl RoundsWhenLarge {
    /// Opens the first device at once; it must exist.
    ///
    /// # Errors
    ///
    /// [`GpuError`] if there is no device, or if it cannot load the kernels.
    pub fn opened() -> Result<Self, GpuError> {
        Ok(Self { rounds: OnceLock::from(Ok(open()?)) })
    }

    /// Returns the error of the last long sequence that was left to the cores, if there was one.
    pub fn fault(&self) -> Option<GpuError> {
        match self.rounds.get()? {
            Ok(rounds) => rounds.fault(),
            Err(error) => Some(error.clone()),
        }
    }
}

impl RoundsEngine for RoundsWhenLarge {
    fn run(&self, symbols: &[u32], first_rule: u32) -> Option<RoundsOutput> {
        if symbols.len() < MIN_ROUNDS_ELEMENTS {
            return None;
        }
        self.rounds.get_or_init(open).as_ref().ok()?.run(symbols, first_rule)
    }
}

fn open() -> Result<DeviceRounds, GpuError> {
    DeviceRounds::new(&Device::open(0)?)
}
