//! Room for keys that are sorted in device memory.
//!
//! A space is allocated for a number of keys and reused. Keys and values lie in two buffers, and
//! each step moves them from one to the other. This takes 16 bytes per 32-bit key with its value,
//! and 24 per 64-bit key. The states by which tiles communicate take a quarter and a half of a byte
//! more.
//!
//! ```text
//! progress   tickets 8   counts 8 x 256   states: tiles x 256   states of the next step
//! ```

use std::ops::Range;

use cudarc::driver::{DeviceRepr, ValidAsZeroBits};

use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

use super::check_limit;
use super::launch::address;

/// Threads of a thread block that sorts a tile.
pub(super) const SORT_THREADS: u32 = 512;
/// Numbers in a tile of a scan.
pub(super) const TILE_NUMBERS: usize = 2048;
/// Largest number of bits of a digit.
const DIGIT_BITS: u32 = 8;
const NUM_DIGITS: usize = 1 << DIGIT_BITS;
/// Largest number of steps, that is, of digits of a key.
const MAX_STEPS: usize = 8;
const COUNTS_FROM: usize = MAX_STEPS;
const STATES_FROM: usize = COUNTS_FROM + MAX_STEPS * NUM_DIGITS;
/// Largest number of keys. Places have 32 bits, with room for a tile after the last.
pub(super) const MAX_KEYS: usize = 1 << 31;

/// Types of keys that can be sorted.
pub(super) trait SortKey: DeviceRepr + ValidAsZeroBits {
    /// Keys of a tile.
    const TILE_KEYS: usize;
}

impl SortKey for u32 {
    const TILE_KEYS: usize = 16 * SORT_THREADS as usize;
}

impl SortKey for u64 {
    const TILE_KEYS: usize = 11 * SORT_THREADS as usize;
}

/// Room for keys of type `T` and their values.
#[derive(Debug)]
pub(super) struct SortSpace<T> {
    pub(super) capacity: usize,
    pub(super) keys: [DeviceBuffer<T>; 2],
    pub(super) values: [DeviceBuffer<u32>; 2],
    pub(super) progress: DeviceBuffer<u32>,
    pub(super) narrow_sums: DeviceBuffer<u32>,
}

/// Addresses of keys and their values. An address of 0 means that the values are the places of the
/// keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pairs {
    pub(super) keys_at: u64,
    pub(super) values_at: u64,
}

/// Addresses of the progress of a sort.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    at: u64,
    num_states: usize,
}

/// The digits of a sort: `bits` in parts of equal width, except for the last.
#[derive(Debug, Clone)]
pub(super) struct Steps {
    pub(super) bits: Range<u32>,
    pub(super) step_bits: u32,
}

/// One digit of a sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) number: usize,
    pub(super) shift: u32,
    pub(super) num_bits: u32,
}

impl Steps {
    pub(super) fn for_bits(bits: Range<u32>) -> Self {
        let num_bits = bits.end - bits.start;
        let step_bits = num_bits.div_ceil(num_steps(num_bits).max(1)).max(1);
        Self { bits, step_bits }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Step> {
        let (end, step_bits) = (self.bits.end, self.step_bits);
        let step = move |(number, shift): (usize, u32)| {
            let num_bits = step_bits.min(end - shift);
            Step { number, shift, num_bits }
        };
        self.bits.clone().step_by(step_bits as usize).enumerate().map(step)
    }
}

impl Progress {
    /// Returns the number of bytes that must be 0 before a sort.
    pub(super) fn num_cleared_bytes(self) -> usize {
        (STATES_FROM + self.num_states) * size_of::<u32>()
    }

    pub(super) fn start(self) -> u64 {
        self.at
    }

    pub(super) fn counts(self) -> u64 {
        self.after(COUNTS_FROM)
    }

    pub(super) fn counts_of(self, step: Step) -> u64 {
        self.after(COUNTS_FROM + step.number * NUM_DIGITS)
    }

    pub(super) fn ticket_of(self, step: Step) -> u64 {
        self.after(step.number)
    }

    /// Returns the addresses of the states of the tiles in `step` and in the next step.
    pub(super) fn states_of(self, step: Step) -> [u64; 2] {
        [step.number, step.number + 1].map(|at| self.after(STATES_FROM + at % 2 * self.num_states))
    }

    fn after(self, numbers: usize) -> u64 {
        self.at + (numbers * size_of::<u32>()) as u64
    }
}

impl<T: SortKey> SortSpace<T> {
    /// Allocates room for `capacity` keys: 16 or 24 bytes per key, and some per tile.
    pub(super) fn new(device: &Device, capacity: usize) -> Result<Self, GpuError> {
        const WHAT: &str = "keys to sort";
        check_limit("keys to sort", capacity, MAX_KEYS)?;
        let keys = || device.alloc(WHAT, capacity + 1);
        let values = || device.alloc(WHAT, capacity + 1);
        let num_states = capacity.div_ceil(T::TILE_KEYS) * NUM_DIGITS;
        Ok(Self {
            capacity,
            keys: [keys()?, keys()?],
            values: [values()?, values()?],
            progress: device.alloc(WHAT, STATES_FROM + 2 * num_states)?,
            narrow_sums: device.alloc(WHAT, num_sums(capacity))?,
        })
    }

    /// Returns the progress of a sort of `len` keys.
    pub(super) fn progress(&self, device: &Device, len: usize) -> Progress {
        let num_states = len.div_ceil(T::TILE_KEYS) * NUM_DIGITS;
        Progress { at: address(device, &self.progress), num_states }
    }

    /// Returns the addresses to which keys and values must be written.
    pub(super) fn inputs(&self, device: &Device) -> Pairs {
        self.pairs(device, 1)
    }

    /// Returns the buffers that do not hold `used`.
    pub(super) fn beside(&self, device: &Device, used: Pairs) -> Pairs {
        let first = self.pairs(device, 0);
        if first.keys_at == used.keys_at { self.pairs(device, 1) } else { first }
    }

    /// Returns the values of `sorted`.
    pub(super) fn into_values(self, device: &Device, sorted: Pairs) -> DeviceBuffer<u32> {
        let is_first = self.pairs(device, 0).keys_at == sorted.keys_at;
        let [first, second] = self.values;
        if is_first { first } else { second }
    }

    pub(super) fn pairs(&self, device: &Device, at: usize) -> Pairs {
        let keys_at = address(device, &self.keys[at]);
        Pairs { keys_at, values_at: address(device, &self.values[at]) }
    }
}

impl SortSpace<u64> {
    /// Allocates room for `keys` and copies them there. The value of each key is its place.
    pub(super) fn with_keys(device: &Device, keys: &[u64]) -> Result<Self, GpuError> {
        let mut space = Self::new(device, keys.len())?;
        let numbers: Vec<u32> = (0..keys.len() as u32).collect();
        let copying = device.fault("copying keys to sort");
        let stream = device.stream();
        stream.memcpy_htod(keys, &mut space.keys[1]).map_err(&copying)?;
        stream.memcpy_htod(&numbers, &mut space.values[1]).map_err(&copying)?;
        Ok(space)
    }
}

/// Returns the number of bits of the numbers below `end`, at least 1.
pub(super) fn bits_below(end: usize) -> u32 {
    (usize::BITS - end.saturating_sub(1).leading_zeros()).max(1)
}

fn num_steps(num_bits: u32) -> u32 {
    num_bits.div_ceil(DIGIT_BITS)
}

/// Returns the bytes read and written to sort `len` keys and their values by `key_bits`. The keys
/// are read once to count digits. Each digit reads and writes keys and values once.
pub(super) fn sort_bytes<T: SortKey>(len: usize, key_bits: u32) -> u64 {
    let (key_bytes, num_steps) = (size_of::<T>() as u64, u64::from(num_steps(key_bits)));
    len as u64 * (key_bytes + num_steps * 2 * (key_bytes + size_of::<u32>() as u64))
}

/// Returns the number of sums for a scan of `len` numbers: one per tile, and the total.
pub(super) fn num_sums(len: usize) -> usize {
    len / TILE_NUMBERS + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_know_the_same_numbers() {
        let source = include_str!("../../../kernels/corpus_sort_tile.cuh");
        let own_keys = |tile_keys: usize| tile_keys / SORT_THREADS as usize;
        for line in [
            format!("constexpr u32 SORT_THREADS = {SORT_THREADS};"),
            format!("constexpr u32 DIGIT_BITS = {DIGIT_BITS};"),
            format!(
                "OWN_KEYS = sizeof(Key) == 8 ? {} : {};",
                own_keys(u64::TILE_KEYS),
                own_keys(u32::TILE_KEYS)
            ),
        ] {
            assert!(source.contains(&line), "{line}");
        }
        let source = include_str!("../../../kernels/corpus_sort.cu");
        assert!(source.contains(&format!("u32 shared[{MAX_STEPS}][DIGITS];")));
    }

    #[test]
    fn steps_have_all_bits_once() {
        for start in [0, 3, 40] {
            for end in start..=64 {
                let steps: Vec<_> = Steps::for_bits(start..end).iter().collect();
                assert_eq!(steps.len(), num_steps(end - start) as usize, "{start}..{end}");
                let mut at = start;
                for (number, step) in steps.into_iter().enumerate() {
                    assert_eq!((step.number, step.shift), (number, at));
                    assert!((1..=DIGIT_BITS).contains(&step.num_bits));
                    at += step.num_bits;
                }
                assert_eq!(at, end);
            }
        }
    }
}
