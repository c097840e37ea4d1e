//! Room for keys that are sorted in device memory.
//!
//! A space is taken once for so many keys and used again. Keys and values lie in two buffers, between
//! which each digit moves them: 16 bytes for a key of 32 bits and its value, 24 for one of 64 bits.

use cudarc::driver::{DeviceRepr, ValidAsZeroBits};

use crate::gpu::device::Device;
use crate::gpu::error::GpuError;
use crate::gpu::memory::DeviceBuffer;

use super::check_limit;
use super::launch::address;

/// Keys of a tile.
pub(super) const TILE_KEYS: usize = 4096;
/// Numbers of a tile of a scan.
pub(super) const TILE_NUMBERS: usize = 2048;
/// Digits of a key that are sorted by at once.
pub(super) const DIGIT_BITS: u32 = 8;
pub(super) const NUM_DIGITS: usize = 1 << DIGIT_BITS;
/// Keys at most: places are 32 bits wide, with room for a tile behind them.
pub(super) const MAX_KEYS: usize = 1 << 31;

/// Room for keys of `T` and their values.
#[derive(Debug)]
pub(super) struct SortSpace<T> {
    pub(super) capacity: usize,
    pub(super) keys: [DeviceBuffer<T>; 2],
    pub(super) values: [DeviceBuffer<u32>; 2],
    pub(super) histograms: DeviceBuffer<u32>,
    pub(super) narrow_sums: DeviceBuffer<u32>,
}

/// Where keys and their values lie; values at 0 are the places of the keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pairs {
    pub(super) keys_at: u64,
    pub(super) values_at: u64,
}

impl<T: DeviceRepr + ValidAsZeroBits> SortSpace<T> {
    /// Room for `capacity` keys: 16 or 24 bytes for each and some for each tile.
    pub(super) fn new(device: &Device, capacity: usize) -> Result<Self, GpuError> {
        const WHAT: &str = "keys to sort";
        check_limit("keys to sort", capacity, MAX_KEYS)?;
        let keys = || device.alloc(WHAT, capacity + 1);
        let values = || device.alloc(WHAT, capacity + 1);
        let num_counts = capacity.div_ceil(TILE_KEYS) * NUM_DIGITS;
        Ok(Self {
            capacity,
            keys: [keys()?, keys()?],
            values: [values()?, values()?],
            histograms: device.alloc(WHAT, num_counts + 1)?,
            narrow_sums: device.alloc(WHAT, num_sums(num_counts.max(capacity)))?,
        })
    }

    /// Where keys and values are to be written.
    pub(super) fn inputs(&self, device: &Device) -> Pairs {
        self.pairs(device, 1)
    }

    /// The buffers that do not hold `used`.
    pub(super) fn beside(&self, device: &Device, used: Pairs) -> Pairs {
        let first = self.pairs(device, 0);
        if first.keys_at == used.keys_at { self.pairs(device, 1) } else { first }
    }

    /// The values of `sorted`.
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
    /// Room for `keys`, which are copied there; the value of each is its place.
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

/// Bits of the numbers below `end`, 1 or more.
pub(super) fn bits_below(end: usize) -> u32 {
    (usize::BITS - end.saturating_sub(1).leading_zeros()).max(1)
}

/// Sums that a scan of `len` numbers takes: one for each tile, and that of all.
pub(super) fn num_sums(len: usize) -> usize {
    len / TILE_NUMBERS + 2
}
