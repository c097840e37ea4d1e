//! Scans of runs of GSST blocks on a device, several runs at a time.
//!
//! ```text
//! slot 0   write │ copy in │ check, decode, rows │ copy back │            write │ copy in │ …
//! slot 1           write │ copy in │ check, decode, rows │ copy back │
//! slot 2                     write │ copy in │ check, decode, rows │ copy back │
//! ```
//!
//! A slot is a stream with its staging buffer (pinned) and device memory, which later runs reuse.
//! [`GsstScanner::submit`] returns once the run is in the staging buffer and the rest is enqueued.
//! A thread that submits a second run before it waits for the first keeps both directions of the
//! bus and the device busy. Runs of 16 to 64 MiB of text suffice.
//!
//! Blocks are sealed: the device checks all properties that the checksum does not guarantee before it decodes. Results
//! lie in pinned host memory, which Arrow takes without a copy, or stay on the device.
//!
//! # Matching
//!
//! ```text
//! slot a   write │ copy in │ check, match │ how many │ copy back what matches │
//! slot b           write │ copy in │ check, match │ how many │ copy back …
//! ```
//!
//! The size of the result is known only after the device has matched. So a run keeps its slot until it was waited for.
//! The number of slots is the largest number of runs that were in progress at once.
//!
//! # Memory
//!
//! Slots keep device memory and staging buffers between runs, and a pool keeps pinned memory. Both stay within limits
//! that the user of the scanner can change. The host memory of a run is known before the run is submitted.

#![allow(unsafe_code, reason = "launching what was laid out here")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gsst::{Block, CodeWidth, SealedBlock};

use crate::device::Device;
use crate::device_column::{DeviceColumn, DeviceRun};
use crate::error::{self, GpuError};
use crate::gsst_match::{GsstMatcher, MatchLayout, MatchOutput, MatchRunKernels, RowPredicate};
use crate::gsst_run::{RowForm, RunLayout, validity_for};
use crate::matched_rows::{FreeSlots, PendingMatches};
use crate::memory::{DeviceMemory, HostBuffer, PinnedPool};
use crate::run_kernels::{RunAddresses, RunKernels};
use crate::scan_slot::{PendingRows, ScannedRows, Slot, SlotMemory, set_error_word, set_head, verdict};

/// Bytes of the error word at the start of an output.
const ERROR_WORD_BYTES: usize = 8;

/// Options of a scanner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanOptions {
    /// Number of runs in progress at the same time.
    pub num_slots: usize,
    /// Limit of pinned host memory in bytes, for staging and results together. Results beyond it
    /// come in pageable memory.
    pub max_pinned_bytes: usize,
}

impl Default for ScanOptions {
    /// Returns 3 slots and 1 GiB.
    fn default() -> Self {
        Self { num_slots: 3, max_pinned_bytes: 1 << 30 }
    }
}

/// A decoder of runs of GSST blocks on one device, several at a time. Any thread may use it.
///
/// ```no_run
/// use tadoc_cuda::{Device, GsstScanner, RowForm, ScanOptions};
/// use gsst::{BlockOptions, SealedBlock, write_block};
///
/// let bytes = write_block(&[Some(&b"http://a.example"[..]), None], &BlockOptions::default())?;
/// let scanner = GsstScanner::new(&Device::open(0)?, ScanOptions::default())?;
/// let run = [SealedBlock::open(&bytes)?];
/// let pending = scanner.submit(&run, RowForm::Offsets, true)?;
/// let rows = pending.wait()?;
/// assert_eq!((rows.text(), rows.offsets()), (&b"http://a.example"[..], Some(&[0, 16, 16][..])));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GsstScanner {
    device: Device,
    kernels: RunKernels,
    pub(super) pool: Arc<PinnedPool>,
    pub(super) max_pinned_bytes: usize,
    pub(super) slots: Vec<Mutex<Slot>>,
    next_slot: AtomicUsize,
    matching: Matching,
}

impl GsstScanner {
    /// Builds a scanner for `device`. Opens streams, but allocates no memory yet.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub fn new(device: &Device, options: ScanOptions) -> Result<Self, GpuError> {
        let slot = |_| Slot::new(device).map(Mutex::new);
        Ok(Self {
            device: device.clone(),
            kernels: RunKernels::new(device)?,
            pool: PinnedPool::new(device.context(), options.max_pinned_bytes),
            max_pinned_bytes: options.max_pinned_bytes,
            slots: (0..options.num_slots.max(1)).map(slot).collect::<Result<_, _>>()?,
            next_slot: AtomicUsize::new(0),
            matching: Matching::new(device),
        })
    }

    /// Returns the device of the scanner.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the pinned host memory that the scanner holds, in use and free, in bytes.
    pub fn pinned_bytes(&self) -> usize {
        self.pool.pinned_bytes()
    }

    /// Loads the kernels of a width, unless they are loaded already. The first run does this too.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`], [`GpuError::Driver`].
    pub fn load(&self, width: CodeWidth) -> Result<(), GpuError> {
        self.kernels.load(width)
    }

    /// Submits a run for decoding. The text and the `form` of its rows come back to host memory.
    /// With `must_be_utf8`, text that is not UTF-8, or a row that starts inside a character, is an
    /// error. `blocks` may be dropped after the return.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if the run has 2^31 or more bytes of text or rows;
    /// [`GpuError::OutOfMemory`], [`GpuError::Unsupported`], [`GpuError::Lost`],
    /// [`GpuError::Driver`].
    pub fn submit<B: AsRef<[u8]>>(
        &self,
        blocks: &[SealedBlock<B>],
        form: RowForm,
        must_be_utf8: bool,
    ) -> Result<PendingRows, GpuError> {
        error::check(self.device.ordinal())?;
        let mut layout = RunLayout::new(blocks, form, false)?;
        let mut slot = self.slot();
        let slot = &mut *slot;
        slot.upload(&self.pool, &mut layout, blocks, true)?;
        let mut buffer = self.pool.take(layout.output_len_bytes);
        slot.reserve_output(&buffer)?;
        let ran = slot.run(&self.kernels, &layout, must_be_utf8);
        let done = ran.and_then(|()| slot.copy_back(&mut buffer));
        let done = match done {
            Ok(done) => done,
            Err(error) => {
                // A copy may still run, so the buffer must stay until the stream is done.
                let _ = slot.stream.synchronize();
                return Err(error);
            }
        };
        let rows = ScannedRows {
            buffer: Arc::new(buffer),
            form,
            text: layout.text.clone(),
            rows: layout.rows.clone(),
            num_rows: layout.num_rows,
            num_nulls: layout.num_nulls,
            block_rows: blocks.iter().map(SealedBlock::num_rows).collect(),
            validity: validity_for(blocks),
        };
        Ok(PendingRows { device: self.device.clone(), done: Some(done), rows: Some(rows) })
    }

    /// Decodes a run like [`GsstScanner::submit`], but keeps the rows on the device. Waits for the
    /// device.
    ///
    /// # Errors
    ///
    /// The errors of [`GsstScanner::submit`] and [`PendingRows::wait`].
    pub fn decode_to_device<B: AsRef<[u8]>>(
        &self,
        blocks: &[SealedBlock<B>],
        form: RowForm,
        must_be_utf8: bool,
    ) -> Result<DeviceColumn, GpuError> {
        self.decode_uploaded(blocks, form, must_be_utf8, |slot, layout| slot.upload(&self.pool, layout, blocks, true))
    }

    /// Takes pinned host memory of `len_bytes` with unspecified content, for blocks that
    /// [`GsstScanner::decode_pinned`] decodes. It is pageable where the limit of pinned memory is reached.
    pub fn pinned_buffer(&self, len_bytes: usize) -> HostBuffer {
        self.pool.take(len_bytes)
    }

    /// Decodes a run like [`GsstScanner::decode_to_device`], and copies the blocks to the device from where they are.
    /// They belong into memory of [`GsstScanner::pinned_buffer`]: copies from other memory are slow.
    ///
    /// # Errors
    ///
    /// The errors of [`GsstScanner::decode_to_device`].
    pub fn decode_pinned<B: AsRef<[u8]>>(
        &self,
        blocks: &[SealedBlock<B>],
        form: RowForm,
        must_be_utf8: bool,
    ) -> Result<DeviceColumn, GpuError> {
        self.decode_uploaded(blocks, form, must_be_utf8, |slot, layout| slot.upload_pinned(&self.pool, layout, blocks))
    }

    fn decode_uploaded<B: AsRef<[u8]>>(
        &self,
        blocks: &[SealedBlock<B>],
        form: RowForm,
        must_be_utf8: bool,
        upload: impl FnOnce(&mut Slot, &mut RunLayout) -> Result<(), GpuError>,
    ) -> Result<DeviceColumn, GpuError> {
        error::check(self.device.ordinal())?;
        let mut layout = RunLayout::new(blocks, form, false)?;
        let mut slot = self.slot();
        let slot = &mut *slot;
        let decoded = upload(slot, &mut layout).and_then(|()| self.decode_in(slot, &layout, must_be_utf8));
        if decoded.is_err() {
            // A copy may still read the blocks.
            let _ = slot.stream.synchronize();
        }
        Ok(DeviceColumn {
            device: self.device.clone(),
            output: decoded?,
            form,
            text: layout.text.clone(),
            rows: layout.rows.clone(),
            num_rows: layout.num_rows,
            num_nulls: layout.num_nulls,
            validity: validity_for(blocks),
        })
    }

    /// Decodes the run that was uploaded to `slot` into memory of its own. Waits for the device.
    fn decode_in(&self, slot: &mut Slot, layout: &RunLayout, must_be_utf8: bool) -> Result<DeviceMemory, GpuError> {
        let output = DeviceMemory::new(self.device.budget(), &slot.stream, "rows", layout.output_len_bytes)?;
        let before = slot.output.replace(output);
        let ran = slot.run(&self.kernels, layout, must_be_utf8);
        let checked = ran.and_then(|()| slot.copy_head(ERROR_WORD_BYTES));
        let output = std::mem::replace(&mut slot.output, before);
        checked?.synchronize().map_err(self.device.fault("decoding GSST blocks"))?;
        verdict(slot.head_word(0))?;
        output.ok_or_else(|| slot.gone())
    }

    /// Copies validated blocks to the device, where they can be decoded any number of times. A
    /// cache of compressed columns in device memory holds such runs. All blocks must have lengths
    /// of texts.
    ///
    /// # Errors
    ///
    /// The errors of [`GsstScanner::submit`], and [`GpuError::Mismatch`] for a block without
    /// lengths of texts.
    pub fn upload<B: AsRef<[u8]>>(&self, blocks: &[Block<B>], form: RowForm) -> Result<DeviceRun, GpuError> {
        let sealed = blocks.iter().map(SealedBlock::from_valid).collect::<Vec<_>>();
        let mut layout = RunLayout::new(&sealed, form, true)?;
        if !layout.has_lengths {
            let without = sealed.iter().filter(|block| !block.has_text_lengths()).count();
            let what = "blocks without lengths of texts";
            return Err(GpuError::Mismatch { what, got: without as u64, expected: 0 });
        }
        let mut slot = self.slot();
        slot.upload(&self.pool, &mut layout, &sealed, false)?;
        slot.stream.synchronize().map_err(self.device.fault("copying GSST blocks"))?;
        match (slot.input.take(), slot.scratch.take()) {
            (Some(input), Some(scratch)) => {
                // `decode_into` works on the device's own stream.
                let stream = self.device.stream();
                let input = input.moved_to(stream);
                let scratch = scratch.moved_to(stream);
                Ok(DeviceRun { layout, input, scratch, validity: validity_for(&sealed) })
            }
            _ => Err(slot.gone()),
        }
    }

    /// Allocates device memory for the rows of `run`.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn column_for(&self, run: &DeviceRun) -> Result<DeviceColumn, GpuError> {
        let layout = &run.layout;
        let stream = self.device.stream();
        let len_bytes = layout.output_len_bytes;
        let output = DeviceMemory::new(self.device.budget(), stream, "rows", len_bytes)?;
        let rows = DeviceColumn {
            device: self.device.clone(),
            output,
            form: layout.form.unwrap_or(RowForm::Offsets),
            text: layout.text.clone(),
            rows: layout.rows.clone(),
            num_rows: layout.num_rows,
            num_nulls: layout.num_nulls,
            validity: run.validity.clone(),
        };
        rows.fill(0)?;
        Ok(rows)
    }

    /// Decodes `run` into `rows`. Returns once the work is enqueued on the device's own stream,
    /// which is that of [`Device::synchronize`] and [`Device::time`], before it is done.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if `rows` belong to another run; [`GpuError::Driver`].
    pub fn decode_into(&self, run: &DeviceRun, rows: &mut DeviceColumn) -> Result<(), GpuError> {
        let expected = run.layout.output_len_bytes as u64;
        let got = rows.output.len_bytes() as u64;
        let is_same = rows.text == run.layout.text && rows.rows == run.layout.rows;
        if expected.max(1) != got || !is_same || rows.device.ordinal() != self.device.ordinal() {
            return Err(GpuError::Mismatch { what: "rows of another run", got, expected });
        }
        let stream = self.device.stream();
        let at = RunAddresses {
            stream,
            input: run.input.address(),
            scratch: run.scratch.address(),
            output: rows.output.address(),
        };
        set_error_word(&self.device, stream, &run.layout, rows.output.address())?;
        // SAFETY: `upload` laid out and copied the whole run, from validated blocks that all have
        // lengths of texts. `rows` has its lengths (checked above) and is borrowed mutably.
        unsafe { self.kernels.run_valid(&run.layout, at) }
    }

    /// Returns a free slot, or else the next one.
    fn slot(&self) -> MutexGuard<'_, Slot> {
        let first = self.next_slot.fetch_add(1, Ordering::Relaxed);
        let slot = |i: usize| &self.slots[(first + i) % self.slots.len()];
        let free = (0..self.slots.len()).find_map(|i| slot(i).try_lock().ok());
        free.unwrap_or_else(|| slot(0).lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The state of a scanner for matching.
#[derive(Debug)]
struct Matching {
    matcher: GsstMatcher,
    kernels: OnceLock<MatchRunKernels>,
    free: Arc<FreeSlots>,
}

impl Matching {
    fn new(device: &Device) -> Self {
        Self { matcher: GsstMatcher::new(device), kernels: OnceLock::new(), free: Arc::default() }
    }

    fn kernels(&self) -> Result<&MatchRunKernels, GpuError> {
        if let Some(kernels) = self.kernels.get() {
            return Ok(kernels);
        }
        let kernels = self.matcher.run_kernels()?;
        Ok(self.kernels.get_or_init(|| kernels))
    }
}

impl GsstScanner {
    /// Returns the matcher, which makes predicates for [`GsstScanner::submit_matching`].
    pub fn matcher(&self) -> &GsstMatcher {
        &self.matching.matcher
    }

    /// Frees the memory of the matching slots that no run uses.
    pub(crate) fn release_idle_matching(&self) {
        while self.matching.free.take().is_some() {}
    }

    /// Submits a run to find the rows that match all `predicates`. Their numbers come back to host
    /// memory, with their text if `is_text_wanted`. Blocks are checked as by
    /// [`GsstScanner::submit`], except for UTF-8. `blocks` may be dropped after the return.
    ///
    /// ```no_run
    /// use tadoc_cuda::{Device, GsstScanner, ScanOptions};
    /// use gsst::{BlockOptions, Pattern, SealedBlock, write_block};
    ///
    /// let rows = [Some(&b"http://a.example"[..]), None, Some(b"http://b.example")];
    /// let run = [SealedBlock::open(write_block(&rows, &BlockOptions::default())?)?];
    /// let scanner = GsstScanner::new(&Device::open(0)?, ScanOptions::default())?;
    /// let has_b = scanner.matcher().like(&Pattern::contains(b"b."))?;
    /// let matched = scanner.submit_matching(&run, &[has_b], true)?.wait()?;
    /// assert_eq!(matched.rows().collect::<Vec<_>>(), [2]);
    /// assert_eq!(matched.text(), Some(&b"http://b.example"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if the run has 2^31 or more bytes of text or rows, or there is no
    /// predicate; [`GpuError::OutOfMemory`], [`GpuError::Unsupported`], [`GpuError::Lost`],
    /// [`GpuError::Driver`].
    pub fn submit_matching<B: AsRef<[u8]>>(
        &self,
        blocks: &[SealedBlock<B>],
        predicates: &[RowPredicate],
        is_text_wanted: bool,
    ) -> Result<PendingMatches, GpuError> {
        error::check(self.device.ordinal())?;
        let mut layout = MatchLayout::new(blocks, predicates, is_text_wanted)?;
        let kernels = self.matching.kernels()?;
        let mut slot = match self.matching.free.take() {
            Some(slot) => slot,
            None => Slot::new(&self.device)?,
        };
        let lens_bytes = [layout.copied_len_bytes, layout.input_len_bytes];
        slot.upload_bytes(&self.pool, lens_bytes, false, |input| {
            layout.write(blocks, predicates, input);
        })?;
        slot.reserve(SlotMemory::Scratch, layout.scratch_len_bytes)?;
        slot.reserve(SlotMemory::Output, layout.output.len_bytes)?;
        let at = RunAddresses {
            stream: &slot.stream,
            input: slot.address(SlotMemory::Input),
            scratch: slot.address(SlotMemory::Scratch),
            output: slot.address(SlotMemory::Output),
        };
        set_head(&self.device, &slot.stream, at.output, layout.output.zeros())?;
        // SAFETY: memory of the layout's lengths was allocated, its input was copied and its head
        // set, all on the stream of this slot. Nothing else uses the slot until it was waited for.
        unsafe { layout.launch(&self.device, &self.kernels, kernels, predicates, at) }?;
        let counted = slot.copy_head(MatchOutput::HEAD_BYTES)?;
        Ok(PendingMatches {
            device: self.device.clone(),
            pool: Arc::clone(&self.pool),
            free: Arc::clone(&self.matching.free),
            slot,
            counted,
            output: layout.output,
            block_rows: blocks.iter().map(SealedBlock::num_rows).collect(),
        })
    }
}

/// Host memory of a run, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunBytes {
    /// Staging buffer of the blocks, held until the rows are on the host.
    pub staging: usize,
    /// Buffer of the rows.
    pub rows: usize,
}

impl RunBytes {
    /// Computes the host memory of a run of `blocks` whose rows come back as `form`.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] if the run has 2^31 or more bytes of text or rows.
    pub fn from_blocks<B: AsRef<[u8]>>(blocks: &[SealedBlock<B>], form: RowForm) -> Result<Self, GpuError> {
        let layout = RunLayout::new(blocks, form, false)?;
        Ok(Self { staging: layout.input_len_bytes, rows: layout.output_len_bytes })
    }
}

impl GsstScanner {
    /// Limits the device and its clones to `max_bytes` of device memory from now on. Limits the
    /// pinned memory of this scanner to `max_bytes` or to its options, whichever is lower. Frees
    /// the memory that slots hold beyond the limit, except in slots that a run is being submitted
    /// to.
    pub(crate) fn set_max_bytes(&self, max_bytes: u64) {
        let budget = self.device().budget();
        if budget.max_bytes() == max_bytes {
            return;
        }
        budget.set_max_bytes(max_bytes);
        if budget.used_bytes() > max_bytes {
            self.release_idle();
        }
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        self.pool.set_max_bytes(max_bytes.min(self.max_pinned_bytes));
    }

    /// Frees the memory of all slots that no run is being submitted to. Waits for their runs.
    pub(crate) fn release_idle(&self) {
        for mut slot in self.slots.iter().filter_map(|slot| slot.try_lock().ok()) {
            slot.release();
        }
        self.release_idle_matching();
    }
}
