//! What `gpu` answers when it is calibrated.
//!
//! Everything is measured over copies of one block, as many as fit (64, that is 256 MiB of text),
//! and the fastest of a few runs counts. The way back in pinned memory has no call of its own: it
//! is what binds where runs of ratio 8 follow one another. The way there is taken to be as fast, as
//! links are. Checks of blocks on the device are part of no rate. Predicates do not run on devices
//! yet.
//!
//! One H200 (20 November 2026), GB/s: back 50.7 to 51.7 pinned, 5.2 to 6.7 pageable; there 11 to 14
//! pageable; decoding with views 974 to 992 (8 bits, ratio 2.25) and 1,055 to 1,064 (12 bits,
//! 2.88), without views 1,727 and 1,949; memory 4,130 to 4,270; a part 34 to 47 us, opening 0.21 to
//! 0.95 s. Tried: the way back as the time of a run less that of its upload, 59 and 78 GB/s, which
//! no bus here has, since an upload takes device memory anew.

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
/// Pageable copies are slow.
const MAX_PAGEABLE_COPIES: usize = 16;
/// 64 MiB of text, as runs of a scan have.
const MAX_RUN_COPIES: usize = 16;
const NUM_FLAT_RUNS: usize = 12;
/// Runs on their way while another is submitted; scanners have three slots.
const NUM_PENDING: usize = 2;
const NUM_RUNS: usize = 5;
const NUM_LAUNCHES: usize = 60;

/// A device of `gpu`.
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
    /// Those of [`Device::open`] and [`GsstScanner::load`].
    pub fn open(ordinal: usize) -> std::result::Result<Self, GpuError> {
        let start = Instant::now();
        let device = Device::open(ordinal)?;
        let scanner = GsstScanner::new(&device, ScanOptions::default())?;
        scanner.load(CodeWidth::Eight)?;
        let startup = start.elapsed();
        let decoder = GsstDecoder::new(&device);
        Ok(Self { device, scanner, decoder, startup })
    }

    /// Copies of a block that take, with their text, a quarter of the memory that is free.
    fn copies<'a>(&self, block: &'a Block<Vec<u8>>) -> Result<Vec<&'a Block<Vec<u8>>>> {
        let block_bytes = (block.as_bytes().len() + block.text_len_bytes()).max(1) as u64;
        let num_copies = (self.device.free_bytes()? / 4 / block_bytes).clamp(1, MAX_COPIES);
        Ok((0..num_copies).map(|_| block).collect())
    }

    /// Decodes a run many times, each submitted while two before it are on their way; the bytes
    /// that came back.
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

    /// A run of a few copies, for what is slow.
    fn few(&self, block: &Block<Vec<u8>>) -> Result<Vec<Block<Vec<u8>>>> {
        Ok(self.copies(block)?.into_iter().take(MAX_PAGEABLE_COPIES).cloned().collect())
    }
}

fn sealed<'a>(blocks: &[&'a Block<Vec<u8>>]) -> Vec<SealedBlock<&'a [u8]>> {
    blocks.iter().map(|block| SealedBlock::of_valid(*block)).collect()
}

/// The fastest of some runs, in seconds.
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

    /// Text and views, from blocks that have been validated.
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

    /// Filling memory, which only writes it: less than reading and writing together can be.
    fn memory_gb_per_s(&mut self, block: &Block<Vec<u8>>) -> Result<f64> {
        let copies: Vec<Block<Vec<u8>>> = self.copies(block)?.into_iter().cloned().collect();
        let mut text = self.decoder.text_for(&self.decoder.upload(&copies)?)?;
        text.fill(0)?;
        self.device.synchronize()?;
        let seconds = fastest(|| Ok(self.device.time(|| text.fill(0))?))?;
        Ok(gb_per_s(text.len_bytes(), seconds))
    }

    /// Many small runs, one submitted while the one before is on its way.
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

/// Counts, and copies the answer to the host: seconds for that, and its rows.
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

/// Seconds of `to_host` when all work before is done, and the rows.
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
