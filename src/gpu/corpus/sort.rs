//! Sorting, scans and sums by key in device memory: the wrapper of `kernels/corpus_sort.cu`.
//!
//! A [`SortSpace`] is taken once for so many keys and used again. Keys and values lie in two buffers,
//! between which each digit moves them.

#![allow(unsafe_code, reason = "launching kernels")]

use cudarc::driver::CudaFunction;

use crate::gpu::device::Device;
use crate::gpu::error::GpuError;
use crate::gpu::memory::DeviceBuffer;
use crate::gpu::module::{CORPUS_SORT, Module};

use super::check_limit;
use super::launch::{Argument, THREADS, address, grid_for, launch};
use super::transfer::one_to_host;

/// Keys of a tile.
const TILE_KEYS: usize = 4096;
/// Numbers of a tile.
const TILE_NUMBERS: usize = 2048;
/// Digits of a key that are sorted by at once.
const DIGIT_BITS: u32 = 8;
const NUM_DIGITS: usize = 1 << DIGIT_BITS;
/// Keys at most: places are 32 bits wide, with room for a tile behind them.
pub(super) const MAX_KEYS: usize = 1 << 31;

/// The kernels, on one device.
#[derive(Debug)]
pub(super) struct Sorter {
    device: Device,
    histogram: CudaFunction,
    scatter: CudaFunction,
    narrow: Scan,
    wide: Scan,
    heads: CudaFunction,
    rows: CudaFunction,
    differences: CudaFunction,
}

/// The three steps of a scan of one kind of numbers.
#[derive(Debug)]
struct Scan {
    tile_sums: CudaFunction,
    scan_sums: CudaFunction,
    scan: CudaFunction,
}

/// Room for keys and their values.
#[derive(Debug)]
pub(super) struct SortSpace {
    capacity: usize,
    keys: [DeviceBuffer<u64>; 2],
    values: [DeviceBuffer<u32>; 2],
    histograms: DeviceBuffer<u32>,
    narrow_sums: DeviceBuffer<u32>,
    wide_sums: DeviceBuffer<u64>,
}

/// Keys, each once and ascending, and the sum of the weights of each.
#[derive(Debug)]
pub(super) struct SummedKeys {
    pub(super) keys: DeviceBuffer<u64>,
    pub(super) sums: DeviceBuffer<u64>,
    pub(super) num_rows: usize,
}

impl SortSpace {
    /// Room for `capacity` keys: 24 bytes for each and some for each tile.
    pub(super) fn new(device: &Device, capacity: usize) -> Result<Self, GpuError> {
        const WHAT: &str = "keys to sort";
        check_limit("keys to sort", capacity, MAX_KEYS)?;
        let keys = || device.alloc(WHAT, capacity + 1);
        let values = || device.alloc(WHAT, capacity + 1);
        let num_counts = capacity.div_ceil(TILE_KEYS) * NUM_DIGITS;
        let num_sums = num_counts.max(capacity) / TILE_NUMBERS + 2;
        Ok(Self {
            capacity,
            keys: [keys()?, keys()?],
            values: [values()?, values()?],
            histograms: device.alloc(WHAT, num_counts + 1)?,
            narrow_sums: device.alloc(WHAT, num_sums)?,
            wide_sums: device.alloc(WHAT, num_sums)?,
        })
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Where keys and values are to be written.
    pub(super) fn inputs_at(&self, device: &Device) -> [u64; 2] {
        [address(device, &self.keys[0]), address(device, &self.values[0])]
    }
}

impl Sorter {
    pub(super) fn new(device: &Device) -> Result<Self, GpuError> {
        let module = Module::load(device, CORPUS_SORT)?;
        Ok(Self {
            device: device.clone(),
            histogram: module.kernel("corpus_sort_histogram")?,
            scatter: module.kernel("corpus_sort_scatter")?,
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

    /// Turns `len` numbers into the sums of those before; behind them the sum of all.
    ///
    /// # Safety
    ///
    /// `numbers` has place for one more; `sums` for each tile and two more.
    pub(super) unsafe fn scan_narrow(
        &self,
        numbers: &DeviceBuffer<u32>,
        len: usize,
        sums: &DeviceBuffer<u32>,
    ) -> Result<(), GpuError> {
        let [numbers, sums] = [numbers, sums].map(|buffer| address(&self.device, buffer));
        // SAFETY: the caller promises it.
        unsafe { self.scan(&self.narrow, numbers, len, sums) }
    }

    /// The steps of a scan, over numbers and sums at these addresses.
    unsafe fn scan(
        &self,
        scan: &Scan,
        numbers: u64,
        len: usize,
        sums: u64,
    ) -> Result<(), GpuError> {
        let num_tiles = (len / TILE_NUMBERS + 1) as u32;
        let tile = [Argument::Long(numbers), Argument::Short(len as u32), Argument::Long(sums)];
        let all = [Argument::Long(sums), Argument::Short(num_tiles)];
        // SAFETY: the arguments are those of the kernels; the caller promises the rest.
        unsafe {
            launch(&self.device, &scan.tile_sums, num_tiles, THREADS, &tile)?;
            launch(&self.device, &scan.scan_sums, 1, THREADS, &all)?;
            launch(&self.device, &scan.scan, num_tiles, THREADS, &tile)
        }
    }

    /// Sorts the first `len` keys of `space` by their lowest `key_bits` bits, and adds up by key the
    /// `weights_at` place of each value.
    ///
    /// # Safety
    ///
    /// Values are places of weights that lie on the device, and live until the work is done.
    pub(super) unsafe fn sum_by_key(
        &self,
        space: &SortSpace,
        len: usize,
        key_bits: u32,
        weights_at: u64,
    ) -> Result<SummedKeys, GpuError> {
        check_limit("keys to sort", len, space.capacity)?;
        let device = &self.device;
        // SAFETY: the space has room for all keys, the values are the caller's.
        let sorted = unsafe { self.sort(space, len, key_bits) }?;
        let [keys, values] =
            [address(device, &space.keys[sorted]), address(device, &space.values[sorted])];
        // What was sorted from is free again.
        let (sums, rows) = (&space.keys[1 - sorted], &space.values[1 - sorted]);
        let [sums_at, rows_at] = [address(device, sums), address(device, rows)];
        let heads = [
            Argument::Long(keys),
            Argument::Long(values),
            Argument::Short(len as u32),
            Argument::Long(weights_at),
            Argument::Long(rows_at),
            Argument::Long(sums_at),
        ];
        // SAFETY: buffers of a space have place for `len + 1`; the caller promises the weights.
        unsafe {
            launch(device, &self.heads, grid_for(len), THREADS, &heads)?;
            self.scan(&self.narrow, rows_at, len, address(device, &space.narrow_sums))?;
            self.scan(&self.wide, sums_at, len, address(device, &space.wide_sums))?;
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
        let differences = [
            row_sums_at,
            Argument::Short(num_rows as u32),
            Argument::Long(address(device, &counts)),
        ];
        // SAFETY: there are `num_rows` heads among the keys, as the scan counted.
        unsafe {
            launch(device, &self.rows, grid_for(len + 1), THREADS, &rows)?;
            launch(device, &self.differences, grid_for(num_rows), THREADS, &differences)?;
        }
        Ok(SummedKeys { keys: row_keys, sums: counts, num_rows })
    }

    /// Sorts the first `len` keys; returns in which of the two buffers they lie then.
    unsafe fn sort(&self, space: &SortSpace, len: usize, key_bits: u32) -> Result<usize, GpuError> {
        let device = &self.device;
        let num_tiles = len.div_ceil(TILE_KEYS) as u32;
        let histograms = address(device, &space.histograms);
        let sums = address(device, &space.narrow_sums);
        let keys = space.keys.each_ref().map(|buffer| address(device, buffer));
        let values = space.values.each_ref().map(|buffer| address(device, buffer));
        let mut from = 0;
        for shift in (0..key_bits).step_by(DIGIT_BITS as usize) {
            let numbers = [
                Argument::Short(len as u32),
                Argument::Short(shift),
                Argument::Short(num_tiles),
                Argument::Long(histograms),
            ];
            let [len_argument, shift_argument, tiles_argument, starts] = numbers;
            let histogram =
                [Argument::Long(keys[from]), len_argument, shift_argument, tiles_argument, starts];
            let scatter = [
                Argument::Long(keys[from]),
                Argument::Long(values[from]),
                len_argument,
                shift_argument,
                tiles_argument,
                starts,
                Argument::Long(keys[1 - from]),
                Argument::Long(values[1 - from]),
            ];
            // SAFETY: the arguments are those of the kernels; a space has place for the counts of all
            // tiles and one more, and both buffers for all keys.
            unsafe {
                launch(device, &self.histogram, num_tiles, THREADS, &histogram)?;
                self.scan(&self.narrow, histograms, num_tiles as usize * NUM_DIGITS, sums)?;
                launch(device, &self.scatter, num_tiles, THREADS, &scatter)?;
            }
            from = 1 - from;
        }
        Ok(from)
    }
}
