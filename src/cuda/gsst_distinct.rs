//! Different rows of a column, and how often each occurs: the wrapper of `kernels/gsst_distinct.cu`.
//!
//! ```text
//! decoded runs   chunk 0      chunk 1      chunk 2 …       on the device, with text and offsets
//!                   ▲  ▲         ▲
//! table          ───┴──┴─────────┴───────                  a slot leads to a row of a chunk
//! counts            7  1         2                         of rows with these bytes, if they are wanted
//! ```
//!
//! The answer is exact: a row is known only if its bytes are those of an earlier row. A chunk stays on the device
//! while a slot leads to it, so a column with many different rows stays there as a whole. A chunk without a new row is
//! freed at once. The table has 8 bytes a slot and at least two slots for each row that may be new. It grows by
//! doubling, which hashes the rows in it again.
//!
//! The most frequent rows come back without the others: the device counts how many slots have counts of each size (a
//! bin of counts is 3 % wide), the host chooses the bins, and the device collects the slots of these bins and their text.
//!
//! Limits: 131,071 chunks that stay, each with less than 2^31 rows. One row is compared by one thread. At most 262,144
//! rows and 256 MiB of their text come back.

#![allow(unsafe_code, reason = "launching kernels over addresses of device memory")]

use std::mem::size_of;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, DeviceRepr, LaunchConfig, PushKernelArg, result};

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
/// Number of bins of counts, as in the kernel. Counts below 64 have bins of their own.
const NUM_BINS: usize = 1920;
const NUM_EXACT_BINS: usize = 64;
/// Most rows that come back, and most bytes of their text. The memory of the host does not count them.
const MAX_SELECTED: u64 = 1 << 18;
const MAX_TEXT_BYTES: u64 = 1 << 28;
/// Most thread blocks of `gsst_distinct_bins`, each of which adds its bins to those of all.
const MAX_BIN_BLOCKS: u32 = 1024;
/// Threads of a thread block, as in the kernel.
const THREADS: u32 = 256;

/// Rows that occur most often, in any order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrequentRows {
    /// Number of times that each row occurs.
    pub counts: Vec<u64>,
    /// Start of each row in `text`, and the end of the last one.
    pub offsets: Vec<u64>,
    /// Text of all rows.
    pub text: Vec<u8>,
}

/// A slot that was selected; the same struct is in the kernel.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct SelectedRow {
    slot: u64,
    count: u64,
    len_bytes: u64,
}

/// The different rows of some columns in device memory, compared by their bytes. Null rows are none of them.
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
    has_counts: bool,
    /// Slots; none before the first rows.
    table: Option<DeviceMemory>,
    /// A count for each slot, if they are wanted.
    counts: Option<DeviceMemory>,
    num_slots: u64,
    /// Addresses of chunks, and behind them the number of new rows.
    chunks: DeviceMemory,
    kept: Vec<SharedColumn>,
    num_rows: u64,
    num_nulls: u64,
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
            has_counts: false,
            table: None,
            counts: None,
            num_slots: 0,
            chunks,
            stream,
            kept: Vec::new(),
            num_rows: 0,
            num_nulls: 0,
        })
    }

    /// Counts how often each row occurs, for [`DistinctRows::most_frequent`]. Must come before the first rows.
    #[must_use]
    pub fn with_counts(mut self) -> Self {
        self.has_counts = true;
        self
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

    /// Returns the number of null rows so far.
    pub fn num_nulls(&self) -> u64 {
        self.num_nulls
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
        self.num_nulls += column.num_nulls() as u64;
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
        let table = self.slots(num_slots, "table of rows", 0xff)?;
        let counts = if self.has_counts { Some(self.slots(num_slots, "counts of rows", 0)?) } else { None };
        if let Some(before) = &self.table {
            self.launch_move(before.address(), table.address(), address(counts.as_ref()), num_slots)?;
        }
        // The memory before is freed behind the kernel, in the order of the stream.
        self.table = Some(table);
        self.counts = counts;
        self.num_slots = num_slots;
        Ok(())
    }

    /// Allocates a word for each of `num_slots` slots, with all bytes `byte`.
    fn slots(&self, num_slots: u64, what: &'static str, byte: u8) -> Result<DeviceMemory, GpuError> {
        let len_bytes = usize::try_from(num_slots * SLOT_BYTES).unwrap_or(usize::MAX);
        let slots = DeviceMemory::new(self.device.budget(), &self.stream, what, len_bytes)?;
        slots.fill(byte)?;
        Ok(slots)
    }

    /// Moves the slots of `from`, and their counts, to a table of `num_slots` slots.
    fn launch_move(&self, from: u64, to: u64, counts_to: u64, num_slots: u64) -> Result<(), GpuError> {
        let counts_from = address(self.counts.as_ref());
        let to_mask = num_slots - 1;
        let chunks = self.chunks.address();
        let mut launch = self.stream.launch_builder(&self.relocate);
        launch.arg(&from).arg(&self.num_slots).arg(&counts_from);
        launch.arg(&to).arg(&to_mask).arg(&counts_to).arg(&chunks).arg(&self.hash_mask);
        // SAFETY: the arguments match the kernel. Slots lead to columns that are kept, and at most a quarter of
        // the new slots is taken.
        let launched = unsafe { launch.launch(threads_for(self.num_slots)) };
        launched.map(drop).map_err(self.device.fault("launching gsst_distinct_move"))
    }

    fn launch_insert(&self, column: &SharedColumn, chunk: u32) -> Result<(), GpuError> {
        let table = address(self.table.as_ref());
        let counts = address(self.counts.as_ref());
        let table_mask = self.num_slots - 1;
        let chunks = self.chunks.address();
        let num_new = self.place(MAX_CHUNKS);
        let num_rows = column.num_rows() as u32;
        let validity = column.validity().map_or(0, |validity| validity.address);
        let mut launch = self.stream.launch_builder(&self.insert);
        launch.arg(&table).arg(&table_mask).arg(&counts).arg(&chunks).arg(&chunk).arg(&num_rows);
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
        self.write(self.place(chunk_idx), &words)
    }

    /// Waits for the device, and returns the number of rows that got a slot.
    fn num_new(&self) -> Result<u64, GpuError> {
        Ok(self.read::<u64>(self.place(MAX_CHUNKS), 1)?[0])
    }

    /// Copies `values` to the device at `at`.
    fn write<T: DeviceRepr>(&self, at: u64, values: &[T]) -> Result<(), GpuError> {
        let writing = self.device.fault("writing to a table of rows");
        self.device.context().bind_to_thread().map_err(&writing)?;
        // SAFETY: callers pass memory of this length. The driver has read pageable memory when the call returns.
        unsafe { result::memcpy_htod_async(at, values, self.stream.cu_stream()) }.map_err(writing)
    }

    /// Waits for the device, and returns `len` values from `at`.
    fn read<T: DeviceRepr + Copy + Default>(&self, at: u64, len: usize) -> Result<Vec<T>, GpuError> {
        let reading = self.device.fault("reading a table of rows");
        let mut values = vec![T::default(); len];
        self.device.context().bind_to_thread().map_err(&reading)?;
        // SAFETY: callers pass memory of this length; the wait below ends the copy.
        let copied = unsafe { result::memcpy_dtoh_async(&mut values, at, self.stream.cu_stream()) };
        let waited = self.stream.synchronize();
        copied.and(waited).map_err(reading)?;
        Ok(values)
    }
}

/// Bins of counts whose slots come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChosenBins {
    /// Lowest of them.
    first: usize,
    /// Slots in higher bins.
    num_above: u64,
    /// Slots that come back.
    num_selected: u64,
}

/// Chooses the highest of `bins`, which together have the `num_rows` highest counts, from the number of slots of each.
/// If the lowest of them has one count only, and not all rows with it are wanted, it gives as many as are missing.
fn choose_bins(bins: &[u64], num_rows: u64, with_ties: bool) -> ChosenBins {
    let mut chosen = ChosenBins { first: bins.len(), num_above: 0, num_selected: 0 };
    while chosen.num_selected < num_rows && chosen.first > 0 {
        chosen.first -= 1;
        chosen.num_above = chosen.num_selected;
        chosen.num_selected += bins[chosen.first];
    }
    if chosen.first < NUM_EXACT_BINS && !with_ties {
        chosen.num_selected = chosen.num_selected.min(num_rows);
    }
    chosen
}

impl DistinctRows {
    /// Returns rows among which are the `num_rows` rows that occur most often, and some more: those with nearly as
    /// high counts. `with_ties` also gives all rows that occur as often as the last of them. Null rows are none of
    /// them. `None` if these are more than 262,144 rows, or have more than 256 MiB of text. Waits for the device.
    ///
    /// # Errors
    /// [`GpuError::Mismatch`] without [`DistinctRows::with_counts`]; [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn most_frequent(&self, num_rows: usize, with_ties: bool) -> Result<Option<FrequentRows>, GpuError> {
        let nothing = FrequentRows { offsets: vec![0], ..FrequentRows::default() };
        if !self.has_counts {
            return Err(GpuError::Mismatch { what: "counts of rows", got: 0, expected: 1 });
        }
        if self.num_rows == 0 || num_rows == 0 {
            return Ok(Some(nothing));
        }
        let chosen = choose_bins(&self.slots_by_bin()?, num_rows as u64, with_ties);
        if chosen.num_selected > MAX_SELECTED {
            return Ok(None);
        }
        let selected_bytes = chosen.num_selected as usize * size_of::<SelectedRow>();
        let selected = DeviceMemory::new(self.device.budget(), &self.stream, "frequent rows", selected_bytes)?;
        self.write_words(MAX_CHUNKS, [0, 0])?;
        // Slots of the lowest bin may be left out, so they come last.
        self.launch_select(selected.address(), [chosen.first + 1, NUM_BINS], chosen.num_above)?;
        self.launch_select(selected.address(), [chosen.first, chosen.first + 1], chosen.num_selected)?;
        let rows = self.read::<SelectedRow>(selected.address(), chosen.num_selected as usize)?;
        let text_bytes = rows.iter().map(|row| row.len_bytes).sum::<u64>();
        if text_bytes > MAX_TEXT_BYTES {
            return Ok(None);
        }
        self.with_text(&selected, &rows).map(Some)
    }

    /// Returns the number of slots with counts of each bin.
    fn slots_by_bin(&self) -> Result<Vec<u64>, GpuError> {
        let module = Module::load(&self.device, GSST_DISTINCT)?;
        let kernel = module.kernel("gsst_distinct_bins")?;
        let len_bytes = NUM_BINS * size_of::<u64>();
        let bins = DeviceMemory::new(self.device.budget(), &self.stream, "bins of counts", len_bytes)?;
        bins.fill(0)?;
        let (counts, to) = (address(self.counts.as_ref()), bins.address());
        let mut launch = self.stream.launch_builder(&kernel);
        launch.arg(&counts).arg(&self.num_slots).arg(&to);
        let mut threads = threads_for(self.num_slots);
        threads.grid_dim.0 = threads.grid_dim.0.min(MAX_BIN_BLOCKS);
        // SAFETY: the arguments match the kernel, there is a count for each slot, and bins have the kernel's number.
        let launched = unsafe { launch.launch(threads) };
        launched.map_err(self.device.fault("launching gsst_distinct_bins"))?;
        self.read(to, NUM_BINS)
    }

    /// Appends the slots with counts from bin `first` to before `end` to those at `selected`, at most up to
    /// `max_selected` of all.
    fn launch_select(&self, selected: u64, [first, end]: [usize; 2], max_selected: u64) -> Result<(), GpuError> {
        let module = Module::load(&self.device, GSST_DISTINCT)?;
        let kernel = module.kernel("gsst_distinct_select")?;
        let (table, counts) = (address(self.table.as_ref()), address(self.counts.as_ref()));
        let (chunks, num_selected) = (self.chunks.address(), self.place(MAX_CHUNKS));
        let (first, end) = (first as u32, end as u32);
        let mut launch = self.stream.launch_builder(&kernel);
        launch.arg(&table).arg(&counts).arg(&self.num_slots).arg(&chunks);
        launch.arg(&first).arg(&end).arg(&max_selected).arg(&selected).arg(&num_selected);
        // SAFETY: the arguments match the kernel, slots lead to columns that are kept, and the memory at `selected` has
        // room for `max_selected` rows.
        let launched = unsafe { launch.launch(threads_for(self.num_slots)) };
        launched.map(drop).map_err(self.device.fault("launching gsst_distinct_select"))
    }

    /// Returns the counts and the text of `rows`, which are at `selected` of the device.
    fn with_text(&self, selected: &DeviceMemory, rows: &[SelectedRow]) -> Result<FrequentRows, GpuError> {
        let module = Module::load(&self.device, GSST_DISTINCT)?;
        let kernel = module.kernel("gsst_distinct_text")?;
        let mut offsets = vec![0];
        let mut end = 0;
        for row in rows {
            end += row.len_bytes;
            offsets.push(end);
        }
        let starts_bytes = offsets.len() * size_of::<u64>();
        let starts = DeviceMemory::new(self.device.budget(), &self.stream, "frequent rows", starts_bytes)?;
        let text_bytes = usize::try_from(end).unwrap_or(usize::MAX);
        let text = DeviceMemory::new(self.device.budget(), &self.stream, "frequent rows", text_bytes)?;
        self.write(starts.address(), &offsets)?;
        let num_rows = rows.len() as u64;
        let (selected, chunks, starts_at, text_at) =
            (selected.address(), self.chunks.address(), starts.address(), text.address());
        let mut launch = self.stream.launch_builder(&kernel);
        launch.arg(&selected).arg(&num_rows).arg(&chunks).arg(&starts_at).arg(&text_at);
        // SAFETY: the arguments match the kernel, slots lead to columns that are kept, and the text has the sum of the
        // lengths of all rows.
        let launched = unsafe { launch.launch(threads_for(32 * num_rows)) };
        launched.map_err(self.device.fault("launching gsst_distinct_text"))?;
        let counts = rows.iter().map(|row| row.count).collect();
        Ok(FrequentRows { counts, offsets, text: self.read(text_at, text_bytes)? })
    }
}

// SAFETY: three words without padding, as in the kernel.
unsafe impl DeviceRepr for SelectedRow {}

impl Drop for DistinctRows {
    fn drop(&mut self) {
        // Columns are freed on streams of their own, so no kernel may read them any more.
        let _ = self.stream.synchronize();
    }
}

/// Returns the address of `memory`, or 0 without it.
fn address(memory: Option<&DeviceMemory>) -> u64 {
    memory.map_or(0, DeviceMemory::address)
}

/// Returns the launch of a thread for each of `num_threads` rows or slots.
fn threads_for(num_threads: u64) -> LaunchConfig {
    // Tables and columns fit device memory, so there are fewer than 2^31 thread blocks.
    let num_blocks = num_threads.div_ceil(u64::from(THREADS)) as u32;
    LaunchConfig { grid_dim: (num_blocks, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bins of rows with these counts.
    fn bins(counts: &[usize]) -> Vec<u64> {
        let mut bins = vec![0; NUM_BINS];
        for count in counts {
            bins[*count] += 1;
        }
        bins
    }

    #[test]
    fn bins_with_the_highest_counts_are_chosen() {
        let chosen = |first, num_above, num_selected| ChosenBins { first, num_above, num_selected };
        let some = bins(&[1, 1, 1, 2, 7, 7, 70, 70, 80]);
        assert_eq!(choose_bins(&some, 1, false), chosen(80, 0, 1));
        // Rows of a bin of many counts come all.
        assert_eq!(choose_bins(&some, 2, false), chosen(70, 1, 3));
        assert_eq!(choose_bins(&some, 4, false), chosen(7, 3, 4));
        assert_eq!(choose_bins(&some, 4, true), chosen(7, 3, 5));
        assert_eq!(choose_bins(&some, 7, false), chosen(1, 6, 7));
        assert_eq!(choose_bins(&some, 7, true), chosen(1, 6, 9));
        assert_eq!(choose_bins(&some, 100, false), chosen(0, 9, 9));
        assert_eq!(choose_bins(&bins(&[]), 5, true), chosen(0, 0, 0));
    }
}
