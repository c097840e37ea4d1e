//! Sorting, scans and sums by key in device memory: the wrapper of `kernels/corpus_sort.cu`.
//!
//! A step per digit moves keys and values between the two buffers of a [`SortSpace`]. 64-bit keys
//! are sorted and summed, 32-bit keys only sorted.
//!
//! # Space
//!
//! A space is allocated for a number of keys and reused. Keys and values lie in two buffers, and each step moves them
//! from one to the other. This takes 16 bytes per 32-bit key with its value, and 24 per 64-bit key. The states by which
//! tiles communicate take a quarter and a half of a byte more.
//!
//! ```text
//! progress   tickets 8   counts 8 x 256   states: tiles x 256   states of the next step
//! ```

#![allow(unsafe_code, reason = "launching kernels")]

use std::ops::Range;

use cudarc::driver::{CudaFunction, DeviceRepr, ValidAsZeroBits};

use crate::device::{CORPUS_SORT, Device, Module};
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

use super::check_limit;
use super::launch::{Argument, THREADS, address, clear, grid_for, launch, one_to_host};

/// Least number of keys whose digits a thread block counts, and largest number of counting thread
/// blocks.
const COUNT_KEYS: usize = 4096;
const MAX_COUNT_GRID: usize = 1024;

/// The kernels, on one device.
#[derive(Debug)]
pub(super) struct Sorter {
    device: Device,
    narrow_digits: Digits,
    wide_digits: Digits,
    narrow: Scan,
    wide: Scan,
    offsets: CudaFunction,
    heads: CudaFunction,
    rows: CudaFunction,
    differences: CudaFunction,
}

/// The kernels that sort keys of one width.
#[derive(Debug)]
struct Digits {
    counts: CudaFunction,
    step: CudaFunction,
}

/// The three steps of a scan of one kind of numbers.
#[derive(Debug)]
struct Scan {
    tile_sums: CudaFunction,
    scan_sums: CudaFunction,
    scan: CudaFunction,
}

/// Distinct keys, ascending, with the sum of the weights of each.
#[derive(Debug)]
pub(super) struct SummedKeys {
    pub(super) keys: DeviceBuffer<u64>,
    pub(super) sums: DeviceBuffer<u64>,
    pub(super) num_rows: usize,
}

impl Sorter {
    pub(super) fn new(device: &Device) -> Result<Self, GpuError> {
        let module = Module::load(device, CORPUS_SORT)?;
        Ok(Self {
            device: device.clone(),
            narrow_digits: Digits {
                counts: module.kernel("corpus_sort_counts_32")?,
                step: module.kernel("corpus_sort_step_32")?,
            },
            wide_digits: Digits {
                counts: module.kernel("corpus_sort_counts_64")?,
                step: module.kernel("corpus_sort_step_64")?,
            },
            offsets: module.kernel("corpus_sort_offsets")?,
            narrow: Scan {
                tile_sums: module.kernel("corpus_sort_tile_sums_32")?,
                scan_sums: module.kernel("corpus_sort_scan_sums_32")?,
                scan: module.kernel("corpus_sort_scan_32")?,
            },
            wide: Scan {
                tile_sums: module.kernel("corpus_sort_tile_sums_64")?,
                scan_sums: module.kernel("corpus_sort_scan_sums_64")?,
                scan: module.kernel("corpus_sort_scan_64")?,
            },
            heads: module.kernel("corpus_sort_heads")?,
            rows: module.kernel("corpus_sort_rows")?,
            differences: module.kernel("corpus_sort_differences")?,
        })
    }

    /// Replaces each of `len` numbers by the sum of those before. Writes the total after them.
    ///
    /// # Safety
    ///
    /// `numbers` has room for one more number, `sums` for one per tile and two more.
    pub(super) unsafe fn scan_narrow(
        &self,
        numbers: &DeviceBuffer<u32>,
        len: usize,
        sums: &DeviceBuffer<u32>,
    ) -> Result<(), GpuError> {
        let [numbers, sums] = [numbers, sums].map(|buffer| address(&self.device, buffer));
        // SAFETY: the caller guarantees it.
        unsafe { self.scan(&self.narrow, numbers, len, sums) }
    }

    /// Scans like [`scan_narrow`](Self::scan_narrow), but with 64-bit numbers. Sums wrap.
    ///
    /// # Safety
    ///
    /// The contract of [`scan_narrow`](Self::scan_narrow).
    pub(super) unsafe fn scan_wide(
        &self,
        numbers: &DeviceBuffer<u64>,
        len: usize,
        sums: &DeviceBuffer<u64>,
    ) -> Result<(), GpuError> {
        let [numbers, sums] = [numbers, sums].map(|buffer| address(&self.device, buffer));
        // SAFETY: the caller guarantees it.
        unsafe { self.scan(&self.wide, numbers, len, sums) }
    }

    /// Enqueues the steps of a scan over the numbers and sums at these addresses.
    unsafe fn scan(&self, scan: &Scan, numbers: u64, len: usize, sums: u64) -> Result<(), GpuError> {
        let num_tiles = num_sums(len) as u32 - 1;
        let tile = [Argument::Long(numbers), Argument::Short(len as u32), Argument::Long(sums)];
        let all = [Argument::Long(sums), Argument::Short(num_tiles)];
        // SAFETY: the arguments match the kernels; the caller guarantees the rest.
        unsafe {
            launch(&self.device, &scan.tile_sums, num_tiles, THREADS, &tile)?;
            launch(&self.device, &scan.scan_sums, 1, THREADS, &all)?;
            launch(&self.device, &scan.scan, num_tiles, THREADS, &tile)
        }
    }

    /// Sorts the first `len` keys of `space` by their lowest `key_bits` bits. Sums by key the
    /// weights at `weights_at` that the values index.
    ///
    /// # Safety
    ///
    /// Values are indices of weights. The weights lie on the device and live until the work is
    /// done.
    pub(super) unsafe fn sum_by_key(
        &self,
        space: &SortSpace<u64>,
        len: usize,
        key_bits: u32,
        weights_at: u64,
    ) -> Result<SummedKeys, GpuError> {
        let device = &self.device;
        let wide_sums: DeviceBuffer<u64> = device.alloc("sums of keys", num_sums(len))?;
        // SAFETY: the space has room for all keys; the caller guarantees the values.
        let sorted = unsafe { self.sort(&self.wide_digits, space, space.inputs(device), len, 0..key_bits) }?;
        let [keys, values] = [address(device, &space.keys[sorted]), address(device, &space.values[sorted])];
        // The buffers that the last step read are free again.
        let sums = &space.keys[1 - sorted];
        let rows = &space.values[1 - sorted];
        let [sums_at, rows_at] = [address(device, sums), address(device, rows)];
        let heads = [
            Argument::Long(keys),
            Argument::Long(values),
            Argument::Short(len as u32),
            Argument::Long(weights_at),
            Argument::Long(rows_at),
            Argument::Long(sums_at),
        ];
        // SAFETY: buffers of a space have room for `len + 1`; the caller guarantees the weights.
        unsafe {
            launch(device, &self.heads, grid_for(len), THREADS, &heads)?;
            self.scan(&self.narrow, rows_at, len, address(device, &space.narrow_sums))?;
            self.scan(&self.wide, sums_at, len, address(device, &wide_sums))?;
        }
        let num_rows = one_to_host(device, rows, len)? as usize;
        let row_keys = device.alloc("distinct keys", num_rows)?;
        let row_sums: DeviceBuffer<u64> = device.alloc("sums of keys", num_rows + 1)?;
        let counts = device.alloc("sums of keys", num_rows)?;
        let row_sums_at = Argument::Long(address(device, &row_sums));
        let rows = [
            Argument::Long(keys),
            Argument::Short(len as u32),
            Argument::Long(rows_at),
            Argument::Long(sums_at),
            Argument::Long(address(device, &row_keys)),
            row_sums_at,
        ];
        let differences = [row_sums_at, Argument::Short(num_rows as u32), Argument::Long(address(device, &counts))];
        // SAFETY: there are `num_rows` heads among the keys, as the scan counted.
        unsafe {
            launch(device, &self.rows, grid_for(len + 1), THREADS, &rows)?;
            launch(device, &self.differences, grid_for(num_rows), THREADS, &differences)?;
        }
        Ok(SummedKeys { keys: row_keys, sums: counts, num_rows })
    }

    /// Sorts `len` 32-bit keys by their lowest `key_bits` bits, at least 1. The sort is stable.
    /// Returns their place in `space`.
    ///
    /// # Safety
    ///
    /// The keys of `input`, and its values if it has any, lie on the device, outside the first
    /// buffer of `space`.
    pub(super) unsafe fn sort_narrow(
        &self,
        space: &SortSpace<u32>,
        input: Pairs,
        len: usize,
        key_bits: u32,
    ) -> Result<Pairs, GpuError> {
        // SAFETY: the caller guarantees it.
        let sorted = unsafe { self.sort(&self.narrow_digits, space, input, len, 0..key_bits) }?;
        Ok(space.pairs(&self.device, sorted))
    }

    /// Sorts like [`sort_narrow`](Self::sort_narrow), but 64-bit keys by their bits `bits`.
    ///
    /// # Safety
    ///
    /// The contract of [`sort_narrow`](Self::sort_narrow).
    pub(super) unsafe fn sort_wide(
        &self,
        space: &SortSpace<u64>,
        input: Pairs,
        len: usize,
        bits: Range<u32>,
    ) -> Result<Pairs, GpuError> {
        // SAFETY: the caller guarantees it.
        let sorted = unsafe { self.sort(&self.wide_digits, space, input, len, bits) }?;
        Ok(space.pairs(&self.device, sorted))
    }

    /// Scans `len` numbers in the key buffer of `space` that `sorted` does not use: replaces each
    /// number by the sum of those before. Returns the total, which is also written after them.
    ///
    /// # Safety
    ///
    /// `len` is at most the capacity of `space`.
    pub(super) unsafe fn scan_beside(
        &self,
        space: &SortSpace<u32>,
        sorted: Pairs,
        len: usize,
    ) -> Result<usize, GpuError> {
        let numbers_at = space.beside(&self.device, sorted).keys_at;
        let [first, second] = &space.keys;
        let is_first = address(&self.device, first) == numbers_at;
        let sums = address(&self.device, &space.narrow_sums);
        // SAFETY: a space has room for one more number, and for the sums of all tiles.
        unsafe { self.scan(&self.narrow, numbers_at, len, sums) }?;
        Ok(one_to_host(&self.device, if is_first { first } else { second }, len)? as usize)
    }

    /// Returns the start of each number below `num_numbers` among `len` ascending keys, and `len`.
    ///
    /// # Safety
    ///
    /// There are `len` 32-bit keys at `keys_at`.
    pub(super) unsafe fn offsets(
        &self,
        keys_at: u64,
        len: usize,
        num_numbers: usize,
    ) -> Result<DeviceBuffer<u32>, GpuError> {
        let offsets = self.device.alloc("offsets of sorted keys", num_numbers + 1)?;
        let arguments = [
            Argument::Long(keys_at),
            Argument::Short(len as u32),
            Argument::Short(num_numbers as u32),
            Argument::Long(address(&self.device, &offsets)),
        ];
        // SAFETY: the caller guarantees the keys; there is an offset for each number and one more.
        unsafe {
            let grid = grid_for(num_numbers + 1);
            launch(&self.device, &self.offsets, grid, THREADS, &arguments)?;
        }
        Ok(offsets)
    }

    /// Sorts the `len` keys of `input`. Returns the index of the buffer of `space` that holds them.
    unsafe fn sort<T: SortKey>(
        &self,
        digits: &Digits,
        space: &SortSpace<T>,
        input: Pairs,
        len: usize,
        bits: Range<u32>,
    ) -> Result<usize, GpuError> {
        check_limit("keys to sort", len, space.capacity)?;
        let device = &self.device;
        let steps = Steps::for_bits(bits);
        let progress = space.progress(device, len);
        let num_tiles = len.div_ceil(T::TILE_KEYS) as u32;
        let counts = [
            Argument::Long(input.keys_at),
            Argument::Short(len as u32),
            Argument::Short(steps.bits.start),
            Argument::Short(steps.bits.end),
            Argument::Short(steps.step_bits),
            Argument::Long(progress.counts()),
        ];
        let count_grid = len.div_ceil(COUNT_KEYS).min(MAX_COUNT_GRID) as u32;
        // SAFETY: the arguments match the kernel. There is a count for each digit of each step, and
        // there are states for all tiles.
        unsafe {
            clear(device, progress.start(), progress.num_cleared_bytes())?;
            launch(device, &digits.counts, count_grid, THREADS, &counts)?;
        }
        let mut from = input;
        let mut sorted = 1;
        for step in steps.iter() {
            sorted = 1 - sorted;
            let to = space.pairs(device, sorted);
            let [states, next_states] = progress.states_for(step);
            let arguments = [
                Argument::Long(from.keys_at),
                Argument::Long(from.values_at),
                Argument::Short(len as u32),
                Argument::Short(step.shift),
                Argument::Short(step.num_bits),
                Argument::Long(progress.counts_for(step)),
                Argument::Long(progress.ticket_for(step)),
                Argument::Long(states),
                Argument::Long(next_states),
                Argument::Long(to.keys_at),
                Argument::Long(to.values_at),
            ];
            // SAFETY: the arguments match the kernel. The counts belong to this step, each tile has
            // states, and both buffers have room for all keys.
            unsafe { launch(device, &digits.step, num_tiles, SORT_THREADS, &arguments) }?;
            from = to;
        }
        Ok(sorted)
    }
}

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
        let end = self.bits.end;
        let step_bits = self.step_bits;
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

    pub(super) fn counts_for(self, step: Step) -> u64 {
        self.after(COUNTS_FROM + step.number * NUM_DIGITS)
    }

    pub(super) fn ticket_for(self, step: Step) -> u64 {
        self.after(step.number)
    }

    /// Returns the addresses of the states of the tiles in `step` and in the next step.
    pub(super) fn states_for(self, step: Step) -> [u64; 2] {
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
    let key_bytes = size_of::<T>() as u64;
    let num_steps = u64::from(num_steps(key_bits));
    (len as u64).saturating_mul(key_bytes + num_steps * 2 * (key_bytes + size_of::<u32>() as u64))
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
            format!("OWN_KEYS = sizeof(Key) == 8 ? {} : {};", own_keys(u64::TILE_KEYS), own_keys(u32::TILE_KEYS)),
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
