//! Measurement of a device through `tadoc-cuda`.
//!
//! Each rate is measured over copies of one block, as many as fit (at most 64, which is 256 MiB of
//! text), and the fastest of a few runs counts. The copy to pinned host memory has no call of its
//! own. It limits the throughput of runs of ratio 8 that follow one another, so their rate is used.
//! The copy from pinned host memory is assumed to be as fast, because links have the same speed in
//! both directions. No rate includes the checks of blocks on the device. Matching is not measured.
//!
//! Figures of one H200 (20 November 2026):
//!
//! ```text
//! device to host, pinned            50.7 to 51.7 GB/s
//! device to host, pageable          5.2 to 6.7 GB/s
//! host to device, pageable          11 to 14 GB/s
//! decoding with views, 8 bits       974 to 992 GB/s, ratio 2.25; without views 1,727
//! decoding with views, 12 bits      1,055 to 1,064 GB/s, ratio 2.88; without views 1,949
//! memory                            4,130 to 4,270 GB/s
//! a part                            34 to 47 us
//! opening                           0.21 to 0.95 s
//! ```
//!
//! Failed experiment: the time of a run less that of its upload, as the time of the copy to the
//! host. It gave 59 and 78 GB/s, and no bus of this machine is that fast. The result is wrong
//! because an upload allocates device memory again.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gsst::{Block, CodeWidth, SealedBlock};
use tadoc::error::Result;
use tadoc::segment::Segment;
use tadoc_cuda::{
    CorpusCopies, Device, GpuError, GsstDecoder, GsstScanner, PendingRows, RowForm, ScanOptions,
};

use super::corpora::{CorpusTask, CorpusTimes};
use super::device::{DeviceProbe, HostMemory};

const MAX_COPIES: u64 = 64;
/// Largest number of copies of a block for pageable memory, whose copies are slow.
const MAX_PAGEABLE_COPIES: usize = 16;
/// Largest number of blocks in a run: 64 MiB of text, as in runs of a scan.
const MAX_RUN_COPIES: usize = 16;
const NUM_FLAT_RUNS: usize = 12;
/// Number of pending runs while another one is submitted. Scanners have three slots.
const NUM_PENDING: usize = 2;
const NUM_RUNS: usize = 5;
const NUM_LAUNCHES: usize = 60;

/// An open device of `tadoc-cuda` that can be measured.
#[derive(Debug)]
pub struct GpuProbe {
    device: Device,
    scanner: GsstScanner,
    decoder: GsstDecoder,
    startup: Duration,
}

impl GpuProbe {
    /// Opens device number `ordinal` and loads kernels.
    ///
    /// # Errors
    ///
    /// Errors of [`Device::open`] and [`GsstScanner::load`].
    pub fn open(ordinal: usize) -> std::result::Result<Self, GpuError> {
        let start = Instant::now();
        let device = Device::open(ordinal)?;
        let scanner = GsstScanner::new(&device, ScanOptions::default())?;
        scanner.load(CodeWidth::Eight)?;
        let startup = start.elapsed();
        let decoder = GsstDecoder::new(&device);
        Ok(Self { device, scanner, decoder, startup })
    }

    /// Returns copies of a block that take, with their text, at most a quarter of the free memory.
    ///
    /// There are at least one and at most [`MAX_COPIES`].
    fn copies<'a>(&self, block: &'a Block<Vec<u8>>) -> Result<Vec<&'a Block<Vec<u8>>>> {
        let block_bytes = (block.as_bytes().len() + block.text_len_bytes()).max(1) as u64;
        let num_copies = (self.device.free_bytes()? / 4 / block_bytes).clamp(1, MAX_COPIES);
        Ok((0..num_copies).map(|_| block).collect())
    }

    /// Decodes a run `num_runs` times, with [`NUM_PENDING`] runs pending while the next one is
    /// submitted. Returns the number of bytes that came back.
    fn pipelined(
        &self,
        run: &[SealedBlock<&[u8]>],
        form: RowForm,
        num_runs: usize,
    ) -> Result<usize> {
        let (mut pending, mut len_bytes) = (VecDeque::new(), 0);
        for _ in 0..num_runs {
            pending.push_back(self.scanner.submit(run, form, false)?);
            if pending.len() > NUM_PENDING
                && let Some(first) = pending.pop_front()
            {
                len_bytes += PendingRows::wait(first)?.buffer().len();
            }
        }
        for last in pending {
            len_bytes += last.wait()?.buffer().len();
        }
        Ok(len_bytes)
    }

    /// Returns at most [`MAX_PAGEABLE_COPIES`] copies of a block, for slow measurements.
    fn few(&self, block: &Block<Vec<u8>>) -> Result<Vec<Block<Vec<u8>>>> {
        Ok(self.copies(block)?.into_iter().take(MAX_PAGEABLE_COPIES).cloned().collect())
    }
}

fn sealed<'a>(blocks: &[&'a Block<Vec<u8>>]) -> Vec<SealedBlock<&'a [u8]>> {
    blocks.iter().map(|block| SealedBlock::from_valid(*block)).collect()
}

/// Returns the seconds of the fastest of [`NUM_RUNS`] runs.
fn fastest(mut run: impl FnMut() -> Result<Duration>) -> Result<f64> {
    let mut fastest = run()?;
    for _ in 1..NUM_RUNS {
        fastest = fastest.min(run()?);
    }
    Ok(fastest.as_secs_f64())
}

fn gb_per_s(len_bytes: usize, seconds: f64) -> f64 {
    len_bytes as f64 / seconds / 1e9
}

impl DeviceProbe for GpuProbe {
    fn name(&self) -> String {
        self.device.name().to_owned()
    }

    fn startup_s(&self) -> f64 {
        self.startup.as_secs_f64()
    }

    fn h2d_gb_per_s(&mut self, block: &Block<Vec<u8>>, from: HostMemory) -> Result<Option<f64>> {
        if from == HostMemory::Pinned {
            return self.d2h_gb_per_s(block, from);
        }
        let copies = self.few(block)?;
        let mut len_bytes = 0;
        let seconds = fastest(|| {
            let start = Instant::now();
            let uploaded = self.decoder.upload(&copies)?;
            self.device.synchronize()?;
            len_bytes = uploaded.stored_len_bytes() as usize;
            Ok(start.elapsed())
        })?;
        Ok(Some(gb_per_s(len_bytes, seconds)))
    }

    fn d2h_gb_per_s(&mut self, flat: &Block<Vec<u8>>, to: HostMemory) -> Result<Option<f64>> {
        if to == HostMemory::Pageable {
            let blocks = self.decoder.upload(&self.few(flat)?)?;
            let text = self.decoder.text_for(&blocks)?;
            self.device.synchronize()?;
            let seconds = fastest(|| {
                let start = Instant::now();
                black_box(text.to_host()?);
                Ok(start.elapsed())
            })?;
            return Ok(Some(gb_per_s(text.len_bytes(), seconds)));
        }
        let copies = self.copies(flat)?;
        let run = sealed(&copies[..copies.len().min(MAX_RUN_COPIES)]);
        let mut len_bytes = 0;
        let seconds = fastest(|| {
            let start = Instant::now();
            len_bytes = self.pipelined(&run, RowForm::Offsets, NUM_FLAT_RUNS)?;
            Ok(start.elapsed())
        })?;
        Ok(Some(gb_per_s(len_bytes, seconds)))
    }

    /// Measures decoding to text and views, from validated blocks.
    fn decode_gb_per_s(&mut self, block: &Block<Vec<u8>>) -> Result<f64> {
        let copies: Vec<Block<Vec<u8>>> = self.copies(block)?.into_iter().cloned().collect();
        let run = self.scanner.upload(&copies, RowForm::Views)?;
        let mut rows = self.scanner.column_for(&run)?;
        self.scanner.decode_into(&run, &mut rows)?;
        self.device.synchronize()?;
        let seconds =
            fastest(|| Ok(self.device.time(|| self.scanner.decode_into(&run, &mut rows))?))?;
        Ok(gb_per_s(run.text_len_bytes(), seconds))
    }

    fn matching_gb_per_s(&mut self, _block: &Block<Vec<u8>>) -> Result<Option<f64>> {
        Ok(None)
    }

    /// Measures filling memory, which only writes it. Reading and writing together can be faster.
    fn memory_gb_per_s(&mut self, block: &Block<Vec<u8>>) -> Result<f64> {
        let copies: Vec<Block<Vec<u8>>> = self.copies(block)?.into_iter().cloned().collect();
        let mut text = self.decoder.text_for(&self.decoder.upload(&copies)?)?;
        text.fill(0)?;
        self.device.synchronize()?;
        let seconds = fastest(|| Ok(self.device.time(|| text.fill(0))?))?;
        Ok(gb_per_s(text.len_bytes(), seconds))
    }

    /// Measures many small runs, each submitted while earlier runs are pending.
    fn launch_s(&mut self, tiny: &Block<Vec<u8>>) -> Result<f64> {
        let run = sealed(&[tiny]);
        let seconds = fastest(|| {
            let start = Instant::now();
            self.pipelined(&run, RowForm::Views, NUM_LAUNCHES)?;
            Ok(start.elapsed())
        })?;
        Ok(seconds / NUM_LAUNCHES as f64)
    }

    fn corpus_times(
        &mut self,
        segment: &Arc<Segment>,
        task: CorpusTask,
    ) -> Result<Option<CorpusTimes>> {
        let mut copies = CorpusCopies::new(self.device.clone());
        let mut counted = || -> Result<CorpusTimes> {
            let start = Instant::now();
            let (copy_s, num_rows) = count(&mut copies, segment, task)?;
            let seconds = start.elapsed().as_secs_f64();
            Ok(CorpusTimes { first_s: seconds, again_s: seconds, copy_s, num_rows })
        };
        let (first, second, third) = (counted()?, counted()?, counted()?);
        Ok(Some(CorpusTimes {
            first_s: first.first_s,
            again_s: second.again_s.min(third.again_s),
            copy_s: second.copy_s.min(third.copy_s),
            num_rows: first.num_rows,
        }))
    }
}

/// Runs `task` and copies the answer to the host. Returns the seconds of the copy, and the number
/// of rows.
fn count(
    copies: &mut CorpusCopies,
    segment: &Arc<Segment>,
    task: CorpusTask,
) -> std::result::Result<(f64, usize), GpuError> {
    match task {
        CorpusTask::Sequences(n) => {
            let found = copies.sequence_counts(segment, n)?;
            copied(copies, found.len(), || found.to_host())
        }
        CorpusTask::Terms => {
            let found = copies.term_vectors(segment)?;
            copied(copies, found.len(), || found.to_host())
        }
        CorpusTask::Index => {
            let found = copies.word_documents(segment)?;
            copied(copies, found.len(), || found.to_host())
        }
        CorpusTask::Pairs(window) => {
            let found = copies.pair_counts(segment, window)?;
            copied(copies, found.len(), || found.to_host())
        }
        CorpusTask::Ranked(n) => {
            let found = copies.ranked_documents(segment, n)?;
            copied(copies, found.num_rows(), || found.to_host())
        }
    }
}

/// Waits for all earlier work, runs `to_host`, and returns its seconds and `num_rows`.
fn copied<T>(
    copies: &CorpusCopies,
    num_rows: usize,
    to_host: impl FnOnce() -> std::result::Result<T, GpuError>,
) -> std::result::Result<(f64, usize), GpuError> {
    copies.device().synchronize()?;
    let start = Instant::now();
    black_box(to_host()?);
    Ok((start.elapsed().as_secs_f64(), num_rows))
}
