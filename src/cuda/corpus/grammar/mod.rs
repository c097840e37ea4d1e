//! Rounds of the grammar builder on a device: the wrapper of `kernels/grammar_rounds.cu` and
//! `kernels/grammar_pairs.cu`.
//!
//! ```text
//! symbols ─▶ all pairs numbered ─▶ rounds, T to 3 ─▶ sequence, ids of its pairs, rules
//! round      slopes ─▶ choose ─▶ make rules ─▶ count ─▶ rewrite ─▶ new pairs: sort, group, number
//! ```
//!
//! The result equals that of `src/tadoc/grammar/sequence.rs` byte for byte. Thresholds, ends and
//! shards come from `src/tadoc/grammar/schedule.rs`; the kernels define the order of ids and
//! choices. The cores learn rules and match them before the rounds, and look for repeats after
//! them. A round waits for the device twice: for the number of replacements and for the number of
//! new pairs.
//!
//! The rounds take about 80 bytes of device memory per element, kept between runs. A sequence is
//! refused if its repeated pairs overflow their arrays. The arrays hold half as many pairs as there
//! are elements, plus a million.

mod kernels;
mod pairs;
mod sequence;
mod space;
mod when_large;

pub use when_large::RoundsWhenLarge;

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::device::Device;
use crate::error::GpuError;
use tadoc::grammar::schedule::Thresholds;
use tadoc::grammar::{RoundsEngine, RoundsOutput};

use super::check_limit;
use kernels::Kernels;
use sequence::Sequence;
use space::Space;

/// Largest number of elements. Places and their sums have 32 bits.
const MAX_ELEMENTS: usize = 1 << 30;

/// An engine that runs the rounds on a device, one sequence at a time.
#[derive(Debug)]
pub struct DeviceRounds {
    device: Device,
    kernels: Kernels,
    space: Mutex<Option<Space>>,
    fault: Mutex<Option<GpuError>>,
}

impl DeviceRounds {
    /// Loads the kernels and builds the engine.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`], [`GpuError::Driver`].
    pub fn new(device: &Device) -> Result<Self, GpuError> {
        Ok(Self {
            device: device.clone(),
            kernels: Kernels::new(device)?,
            space: Mutex::default(),
            fault: Mutex::default(),
        })
    }

    /// Runs the rounds on `symbols`. All of them except the barriers must be below `first_rule`.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if there are too many elements or repeated pairs;
    /// [`GpuError::OutOfMemory`], [`GpuError::Lost`], [`GpuError::Driver`].
    pub fn rounds(&self, symbols: &[u32], first_rule: u32) -> Result<RoundsOutput, GpuError> {
        self.device.check()?;
        check_limit("elements of a sequence", symbols.len(), MAX_ELEMENTS)?;
        if symbols.is_empty() {
            return Ok(RoundsOutput::default());
        }
        let mut kept = lock(&self.space);
        let fitting = kept.take().filter(|space| space.capacity >= symbols.len());
        let mut space = match fitting {
            Some(space) => space,
            None => Space::new(&self.device, symbols.len())?,
        };
        let output = self.run_in(&mut space, symbols, first_rule)?;
        *kept = Some(space);
        Ok(output)
    }

    /// Returns the error of the last sequence that was left to the cores, if there was one.
    pub fn fault(&self) -> Option<GpuError> {
        lock(&self.fault).clone()
    }

    fn run_in(
        &self,
        space: &mut Space,
        symbols: &[u32],
        first_rule: u32,
    ) -> Result<RoundsOutput, GpuError> {
        let kernels = &self.kernels;
        let mut sequence =
            Sequence::begin(kernels, &mut space.sequence, symbols.len(), first_rule)?;
        sequence.copy_from(symbols)?;
        let shared = &mut space.shared;
        let num_keys = sequence.find_all_pairs(shared)?;
        sequence.number(shared, num_keys)?;
        let mut thresholds = Thresholds::from_largest_count(sequence.largest_count(shared)?);
        while let Some(threshold) = thresholds.next() {
            let num_replaced = sequence.round(shared, threshold)?;
            sequence.join_chunks();
            thresholds.end_if_few(num_replaced, sequence.len());
        }
        sequence.to_host()
    }
}

impl RoundsEngine for DeviceRounds {
    fn run(&self, symbols: &[u32], first_rule: u32) -> Option<RoundsOutput> {
        match self.rounds(symbols, first_rule) {
            Ok(output) => Some(output),
            Err(error) => {
                *lock(&self.fault) = Some(error);
                None
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
