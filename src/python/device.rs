//! GSST columns of a Parquet file as text on a GPU, row group by row group, some of them ahead.
//!
//! ```text
//! page cache ─ all cores ─▶ pinned memory ─ bus ─▶ device ─ decode ─▶ DeviceArray        thread 0: row groups 0, 3, 6
//!      └────────────────────▶ pinned memory ──────▶ device ────────▶ DeviceArray       thread 1: row groups 1, 4, 7
//!           └───────────────────▶ pinned memory ─────▶ device ───────▶ DeviceArray     thread 2: row groups 2, 5, 8
//! ```
//!
//! Each thread reads the blocks of its next row group into pinned memory, which checks their checksums, and decodes
//! them. It hands the array over, and the reader takes arrays from the threads in turn. A thread waits
//! with its array until the reader takes it. Only the codes travel to the device.
//!
//! Limits: one row group is one array, at most 64 MiB of codes and 2^31 bytes of text. The file is
//! local.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use arrow::datatypes::{DataType, Field};
use datafusion_tadoc::contain_panics;
use gsst::parquet::GsstFooter;
use gsst::{BlockOptions, SealedBlock, write_block};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use tadoc_cuda::{Device, GpuError, GsstScanner, RowForm, ScanOptions};

use crate::device_array::DeviceArray;
use crate::{Error, error_of};

/// Most row groups that the decoder of a device works on at the same time.
const NUM_SLOTS: usize = 16;

/// The decoders of devices by their ordinals. They keep kernels and pinned memory, which take longer to make than a
/// file to decode.
static SCANNERS: Mutex<BTreeMap<usize, Arc<GsstScanner>>> = Mutex::new(BTreeMap::new());

/// The row groups of a column of a file, decoded as they are asked for.
#[pyclass(frozen, module = "datafusion_tadoc._native")]
pub struct DeviceArrays {
    column: Arc<Column>,
    num_ahead: usize,
}

/// A GSST column of a file, and the decoder of a device.
struct Column {
    path: PathBuf,
    file: File,
    footer: GsstFooter,
    column_idx: usize,
    field: Field,
    scanner: Arc<GsstScanner>,
}

/// Opens the column `name` of the file `path`. `num_ahead` row groups are decoded at the same time.
#[pyfunction]
pub fn device_arrays(
    py: Python<'_>,
    path: PathBuf,
    name: &str,
    device: usize,
    num_ahead: usize,
) -> PyResult<DeviceArrays> {
    let num_ahead = num_ahead.max(1);
    let column = py.detach(|| contained(|| Column::open(path, name, device)))?;
    Ok(DeviceArrays { column: Arc::new(column), num_ahead })
}

/// Runs `work` and makes an exception of a panic.
fn contained<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    contain_panics("a GSST column", work).map_err(error_of).and_then(|outcome| outcome)
}

fn failed(error: impl std::fmt::Display) -> PyErr {
    Error::new_err(error.to_string())
}

/// Returns the decoder of device number `ordinal`.
fn scanner_for(ordinal: usize) -> Result<Arc<GsstScanner>, GpuError> {
    let mut scanners = SCANNERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(scanner) = scanners.get(&ordinal) {
        return Ok(Arc::clone(scanner));
    }
    let options = ScanOptions { num_slots: NUM_SLOTS, ..ScanOptions::default() };
    let scanner = Arc::new(GsstScanner::new(&Device::open(ordinal)?, options)?);
    scanners.insert(ordinal, Arc::clone(&scanner));
    Ok(scanner)
}

impl Column {
    fn open(path: PathBuf, name: &str, device: usize) -> PyResult<Self> {
        let within = |error: &dyn std::fmt::Display| failed(format!("{}: {error}", path.display()));
        let file = File::open(&path).map_err(|error| within(&error))?;
        let footer = GsstFooter::read(&file).map_err(|error| within(&error))?;
        let field = footer.schema().fields().find(name);
        let column = field.and_then(|(at, field)| {
            let column_idx = footer.gsst().column_of_field(at)?;
            Some((column_idx, field.data_type().clone()))
        });
        let Some((column_idx, data_type)) = column else {
            let columns = footer.gsst().columns().iter();
            let names = columns.map(|c| footer.schema().field(c.field_idx).name().as_str());
            let names: Vec<&str> = names.collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(within(&format!("there is no GSST column {name:?}; those of the file: {names}")));
        };
        // Offsets have 32 bits on the device.
        let data_type = match data_type {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
            _ => DataType::Binary,
        };
        let scanner = scanner_for(device).map_err(failed)?;
        let field = Field::new(name, data_type, true);
        Ok(Self { file, footer, column_idx, field, scanner, path })
    }

    fn num_row_groups(&self) -> usize {
        self.footer.num_row_groups()
    }

    fn within(&self, error: &dyn std::fmt::Display) -> PyErr {
        failed(format!("{}: {error}", self.path.display()))
    }

    /// Reads the blocks of a row group and decodes them on the device.
    fn decode(&self, row_group: usize) -> PyResult<DeviceArray> {
        let index = &self.footer.gsst().row_groups()[row_group];
        let run = &index.runs[self.column_idx];
        let len_bytes = run.blocks.iter().map(|block| block.len_bytes).sum();
        let mut buffer = self.scanner.pinned_buffer(len_bytes);
        let mut rest = &mut buffer[..];
        let mut at = run.start;
        let mut stretches = Vec::with_capacity(run.blocks.len());
        for (block, &num_rows) in run.blocks.iter().zip(&index.stretch_rows) {
            let (bytes, behind) = rest.split_at_mut(block.len_bytes);
            stretches.push((at, bytes, num_rows));
            rest = behind;
            at += block.len_bytes as u64;
        }
        let blocks = stretches.into_par_iter().map(|(at, bytes, num_rows)| self.read(at, bytes, num_rows));
        let blocks = blocks.collect::<PyResult<Vec<_>>>()?;
        let must_be_utf8 = *self.field.data_type() == DataType::Utf8;
        let rows = self.scanner.decode_pinned(&blocks, RowForm::Offsets, must_be_utf8);
        let rows = rows.and_then(|rows| rows.share()).map_err(|error| self.within(&error))?;
        Ok(DeviceArray::new(rows, self.field.clone()))
    }

    /// Reads the block of a stretch to `bytes` and opens it.
    fn read<'a>(&self, at: u64, bytes: &'a mut [u8], num_rows: usize) -> PyResult<SealedBlock<Cow<'a, [u8]>>> {
        let bytes = if bytes.is_empty() {
            // Rows of which all are null have no block.
            let nulls = write_block(&vec![None; num_rows], &BlockOptions::default());
            Cow::Owned(nulls.map_err(|error| self.within(&error))?)
        } else {
            read_exact_at(&self.file, bytes, at).map_err(|error| self.within(&error))?;
            Cow::Borrowed(&*bytes)
        };
        let block = SealedBlock::open(bytes).map_err(|error| self.within(&error))?;
        if block.num_rows() != num_rows {
            let got = block.num_rows();
            return Err(self.within(&format!("a block at offset {at} has {got} rows, the footer says {num_rows}")));
        }
        Ok(block)
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(not(unix))]
fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    // A handle of its own has no place of its own, so readers take turns.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut file = file;
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(bytes)
}

#[pymethods]
impl DeviceArrays {
    /// The number of row groups, each of which becomes one array.
    fn __len__(&self) -> usize {
        self.column.num_row_groups()
    }

    /// Decodes a row group.
    fn __getitem__(&self, py: Python<'_>, index: isize) -> PyResult<DeviceArray> {
        let num_row_groups = self.column.num_row_groups();
        let from_end = index.unsigned_abs();
        let row_group = if index < 0 { num_row_groups.wrapping_sub(from_end) } else { from_end };
        if row_group >= num_row_groups {
            return Err(PyIndexError::new_err(format!("row group {index} of {num_row_groups}")));
        }
        py.detach(|| contained(|| self.column.decode(row_group)))
    }

    /// Starts to decode all row groups, in order.
    fn __iter__(&self) -> PyResult<DeviceArrayIterator> {
        DeviceArrayIterator::start(&self.column, self.num_ahead)
    }
}

/// Row groups that threads decode ahead of their reader.
#[pyclass(frozen, module = "datafusion_tadoc._native")]
pub struct DeviceArrayIterator {
    ahead: Mutex<Ahead>,
}

struct Ahead {
    /// One of each thread. Row group `i` comes from number `i` modulo their number.
    arrays: Vec<Receiver<PyResult<DeviceArray>>>,
    threads: Vec<JoinHandle<()>>,
    next_row_group: usize,
    num_row_groups: usize,
}

impl DeviceArrayIterator {
    fn start(column: &Arc<Column>, num_ahead: usize) -> PyResult<Self> {
        let num_row_groups = column.num_row_groups();
        let num_threads = num_ahead.min(num_row_groups);
        let mut ahead = Ahead { arrays: Vec::new(), threads: Vec::new(), next_row_group: 0, num_row_groups };
        for first in 0..num_threads {
            let (sender, receiver) = sync_channel(0);
            let column = Arc::clone(column);
            let row_groups = (first..num_row_groups).step_by(num_threads);
            let work = move || decode_each(&column, row_groups, &sender);
            let thread = std::thread::Builder::new().name("gsst-device".to_owned()).spawn(work);
            ahead.arrays.push(receiver);
            ahead.threads.push(thread.map_err(failed)?);
        }
        Ok(Self { ahead: Mutex::new(ahead) })
    }

    fn next_array(&self) -> Option<PyResult<DeviceArray>> {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if ahead.next_row_group >= ahead.num_row_groups {
            return None;
        }
        let which = ahead.next_row_group % ahead.arrays.len();
        let array = ahead.arrays[which].recv().unwrap_or_else(|error| Err(failed(error)));
        // After an error nothing more comes.
        let is_end = array.is_err();
        ahead.next_row_group = if is_end { ahead.num_row_groups } else { ahead.next_row_group + 1 };
        Some(array)
    }
}

/// Decodes row groups until the reader wants no more or one fails.
fn decode_each(column: &Column, row_groups: impl Iterator<Item = usize>, to: &SyncSender<PyResult<DeviceArray>>) {
    for row_group in row_groups {
        let array = contained(|| column.decode(row_group));
        let is_end = array.is_err();
        if to.send(array).is_err() || is_end {
            return;
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Threads that wait for the reader end. The others end with their row group.
        self.arrays.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[pymethods]
impl DeviceArrayIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> Option<PyResult<DeviceArray>> {
        py.detach(|| self.next_array())
    }
}
