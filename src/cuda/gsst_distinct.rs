//! Numbers of different rows of a column: the wrapper of `kernels/gsst_distinct.cu`.
//!
//! ```text
//! decoded runs   chunk 0      chunk 1      chunk 2 …       on the device, with text and offsets
//!                   ▲  ▲         ▲
//! table          ───┴──┴─────────┴───────                  a slot leads to a row of a chunk
//! ```
//!
//! The answer is exact: a row is known only if its bytes are those of an earlier row. A chunk stays on the device
//! while a slot leads to it, so a column with many different rows stays there as a whole. A chunk without a new row is
//! freed at once. The table has 8 bytes a slot and at least two slots for each row that may be new. It grows by
//! doubling, which hashes the rows in it again.
//!
//! Limits: 131,071 chunks that stay, each with less than 2^31 rows. One row is compared by one thread.

#![allow(unsafe_code, reason = "launching kernels over addresses of device memory")]

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg, result};

use crate::device::{Device, GSST_DISTINCT, Module};
use crate::device_column::SharedColumn;
use crate::error::GpuError;
use crate::memory::DeviceMemory;

/// Largest number of chunks that slots lead to. The number of a chunk has 17 bits, and an empty slot the last number.
const MAX_CHUNKS: usize = (1 << 17) - 1;
/// Size of `DistinctChunk` of the kernel: two addresses.
const CHUNK_BYTES: usize = 16;
/// Smallest number of slots.
const MIN_SLOTS: u64 = 1 << 16;
const SLOT_BYTES: u64 = 8;
/// Threads of a thread block, as in the kernel.
const THREADS: u32 = 256;

/// The different rows of some columns in device memory, compared by their bytes. Null rows do not count.
///
/// ```no_run
/// use gsst::{BlockOptions, SealedBlock, write_block};
/// use tadoc_cuda::{Device, DistinctRows, GsstScanner, RowForm, ScanOptions};
///
/// let rows = [Some(&b"to"[..]), Some(b"be"), None, Some(b"to")];
/// let run = [SealedBlock::open(write_block(&rows, &BlockOptions::default())?)?];
/// let device = Device::open(0)?;
/// let scanner = GsstScanner::new(&device, ScanOptions::default())?;
/// let mut distinct = DistinctRows::new(&device)?;
/// distinct.add(&scanner.decode_to_device(&run, RowForm::Offsets, true)?.share()?)?;
/// assert_eq!(distinct.num_rows(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DistinctRows {
    device: Device,
    stream: Arc<CudaStream>,
    insert: CudaFunction,
    relocate: CudaFunction,
    hash_mask: u64,
    /// Slots; none before the first rows.
    table: Option<DeviceMemory>,
    num_slots: u64,
    /// Addresses of chunks, and behind them the number of new rows.
    chunks: DeviceMemory,
    kept: Vec<SharedColumn>,
    num_rows: u64,
}

impl DistinctRows {
    /// Builds an empty set on `device`.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn new(device: &Device) -> Result<Self, GpuError> {
        let module = Module::load(device, GSST_DISTINCT)?;
        let stream = device.context().new_stream().map_err(device.fault("opening a stream"))?;
        let chunks_bytes = (MAX_CHUNKS + 1) * CHUNK_BYTES;
        let chunks = DeviceMemory::new(device.budget(), &stream, "addresses of rows", chunks_bytes)?;
        Ok(Self {
            device: device.clone(),
            insert: module.kernel("gsst_distinct_insert")?,
            relocate: module.kernel("gsst_distinct_move")?,
            hash_mask: u64::MAX,
            table: None,
            num_slots: 0,
            chunks,
            stream,
            kept: Vec::new(),
            num_rows: 0,
        })
    }

    /// Keeps only the bits of hashes that are set in `hash_mask`. Tests use it to make hashes equal.
    #[must_use]
    pub fn with_hash_mask(mut self, hash_mask: u64) -> Self {
        self.hash_mask = hash_mask;
        self
    }

    /// Returns the number of different rows so far.
    pub fn num_rows(&self) -> u64 {
        self.num_rows
    }

    /// Returns the number of columns that stay on the device.
    pub fn num_kept(&self) -> usize {
        self.kept.len()
    }

    /// Adds the rows of a column with offsets, and returns how many of them are new. Waits for the device.
    ///
    /// # Errors
    /// [`GpuError::Mismatch`] if the column has views, is on another device, or is one more than 131,071 that stay;
    /// [`GpuError::OutOfMemory`]. The set is then as before. After [`GpuError::Driver`] its number is wrong.
    pub fn add(&mut self, column: &SharedColumn) -> Result<u64, GpuError> {
        self.check(column)?;
        let num_rows = column.num_rows() as u64;
        if num_rows == 0 {
            return Ok(0);
        }
        self.make_room(num_rows)?;
        let chunk_idx = self.kept.len();
        let addresses = [column.text().address, column.rows().address];
        self.write_words(chunk_idx, addresses)?;
        self.write_words(MAX_CHUNKS, [0, 0])?;
        // Slots may lead to the column from here on, also after an error.
        self.kept.push(column.clone());
        self.launch_insert(column, chunk_idx as u32)?;
        let num_new = self.num_new()?;
        if num_new == 0 {
            self.kept.pop();
        }
        self.num_rows += num_new;
        Ok(num_new)
    }

    fn check(&self, column: &SharedColumn) -> Result<(), GpuError> {
        let offsets_bytes = 4 * (column.num_rows() as u64 + 1);
        let numbers = [
            ("bytes of offsets", column.rows().len_bytes as u64, offsets_bytes),
            ("device of a column", column.ordinal() as u64, self.device.ordinal() as u64),
        ];
        for (what, got, expected) in numbers {
            if got != expected {
                return Err(GpuError::Mismatch { what, got, expected });
            }
        }
        if self.kept.len() == MAX_CHUNKS {
            let expected = MAX_CHUNKS as u64;
            return Err(GpuError::Mismatch { what: "columns with new rows", got: expected + 1, expected });
        }
        Ok(())
    }

    /// Makes the table so large that half of it stays empty if `num_rows` rows are new.
    fn make_room(&mut self, num_rows: u64) -> Result<(), GpuError> {
        let num_slots = (2 * (self.num_rows + num_rows)).next_power_of_two().max(MIN_SLOTS);
        if num_slots <= self.num_slots {
            return Ok(());
        }
        let len_bytes = usize::try_from(num_slots * SLOT_BYTES).unwrap_or(usize::MAX);
        let table = DeviceMemory::new(self.device.budget(), &self.stream, "table of rows", len_bytes)?;
        let growing = self.device.fault("growing a table of rows");
        self.device.context().bind_to_thread().map_err(&growing)?;
        // SAFETY: the allocation has this length, and all work on it is in the order of its stream.
        unsafe { result::memset_d8_async(table.address(), 0xff, len_bytes, self.stream.cu_stream()) }
            .map_err(&growing)?;
        if let Some(before) = &self.table {
            let (from, to, chunks) = (before.address(), table.address(), self.chunks.address());
            let to_mask = num_slots - 1;
            let mut launch = self.stream.launch_builder(&self.relocate);
            launch.arg(&from).arg(&self.num_slots).arg(&to).arg(&to_mask).arg(&chunks).arg(&self.hash_mask);
            // SAFETY: the arguments match the kernel. Slots lead to columns that are kept, and at most a quarter of
            // the new slots is taken.
            unsafe { launch.launch(threads_for(self.num_slots)) }.map_err(&growing)?;
        }
        // The memory before is freed behind the kernel, in the order of the stream.
        self.table = Some(table);
        self.num_slots = num_slots;
        Ok(())
    }

    fn launch_insert(&self, column: &SharedColumn, chunk: u32) -> Result<(), GpuError> {
        let table = self.table.as_ref().map_or(0, DeviceMemory::address);
        let table_mask = self.num_slots - 1;
        let chunks = self.chunks.address();
        let num_new = self.place(MAX_CHUNKS);
        let num_rows = column.num_rows() as u32;
        let validity = column.validity().map_or(0, |validity| validity.address);
        let mut launch = self.stream.launch_builder(&self.insert);
        launch.arg(&table).arg(&table_mask).arg(&chunks).arg(&chunk).arg(&num_rows);
        launch.arg(&validity).arg(&self.hash_mask).arg(&num_new);
        // SAFETY: the arguments match the kernel. The column is complete and kept, its offsets were checked when it
        // was decoded, and the table has more slots than rows.
        let launched = unsafe { launch.launch(threads_for(u64::from(num_rows))) };
        launched.map(drop).map_err(self.device.fault("launching gsst_distinct_insert"))
    }

    /// Returns the address of the words of a chunk.
    fn place(&self, chunk_idx: usize) -> u64 {
        self.chunks.address() + (chunk_idx * CHUNK_BYTES) as u64
    }

    fn write_words(&self, chunk_idx: usize, words: [u64; 2]) -> Result<(), GpuError> {
        let writing = self.device.fault("writing addresses of rows");
        self.device.context().bind_to_thread().map_err(&writing)?;
        // SAFETY: the memory has a place for this chunk. The driver has read pageable memory when the call returns.
        unsafe { result::memcpy_htod_async(self.place(chunk_idx), &words, self.stream.cu_stream()) }.map_err(&writing)
    }

    /// Waits for the device, and returns the number of rows that got a slot.
    fn num_new(&self) -> Result<u64, GpuError> {
        let reading = self.device.fault("counting rows that differ");
        let mut num_new = [0_u64];
        // SAFETY: source and destination have 8 bytes; the wait below ends the copy.
        let copied =
            unsafe { result::memcpy_dtoh_async(&mut num_new, self.place(MAX_CHUNKS), self.stream.cu_stream()) };
        let waited = self.stream.synchronize();
        copied.and(waited).map_err(reading)?;
        Ok(num_new[0])
    }
}

impl Drop for DistinctRows {
    fn drop(&mut self) {
        // Columns are freed on streams of their own, so no kernel may read them any more.
        let _ = self.stream.synchronize();
    }
}

/// Returns the launch of a thread for each of `num_threads` rows or slots.
fn threads_for(num_threads: u64) -> LaunchConfig {
    // Tables and columns fit device memory, so there are fewer than 2^31 thread blocks.
    let num_blocks = num_threads.div_ceil(u64::from(THREADS)) as u32;
    LaunchConfig { grid_dim: (num_blocks, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 }
}
