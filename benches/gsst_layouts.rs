//! Benchmark of the decode layouts of the thesis's figure 6.1 on the device, beside this library's
//! layout: one thread per block, one per split, one per split of transposed codes
//! (`kernels/layouts/gsst_layouts.cu`), and the warp per split of `GsstDecoder`, on the same blocks
//! of 8-bit codes in the same run.
//!
//! Command: `TADOC_COLUMN=l_comment.txt cargo bench --bench gsst_layouts`, with a row in each line.
//! Without the variable the rows are generated, and the rates mean little. `TADOC_ONLY=gsst_decode`
//! runs only the library's layout. `TADOC_SECONDS=3` also repeats that layout for seconds
//! (`measuring/mod.rs`). The column is repeated until it has 1 GiB, and lies in device memory. Every
//! output is compared twice, over two different fill bytes, before it is timed. Without a device the
//! benchmark says so and does nothing, unless `REQUIRE_GPU=1`.

#![allow(clippy::unwrap_used, missing_docs)]
#![allow(unsafe_code, reason = "launching kernels that are no part of the library")]

use std::sync::Arc;

use cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT;
use cudarc::driver::{CudaContext, CudaModule, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gsst::{Block, BlockOptions, CodeWidth, Parse};
use tadoc_cuda::{Device, GpuError, GsstDecoder};

mod gsst_column;
mod measuring;

use gsst_column::{Case, NUM_RUNS, NUM_WARM_UPS, POISONS, TEXT_BYTES, blocks, column};
use measuring::{open_device, repeat};

const LIBRARY: &str = "gsst_decode";
const SM_80: &[u8] = include_bytes!("../kernels/layouts/compiled/gsst_layouts.sm_80.cubin");
const SM_90: &[u8] = include_bytes!("../kernels/layouts/compiled/gsst_layouts.sm_90.cubin");
const COMPUTE_90: &str = include_str!("../kernels/layouts/compiled/gsst_layouts.compute_90.ptx");
/// Number of codes that a thread loads at once, and number of splits whose codes are transposed
/// together.
const CHUNK_CODES: usize = 16;
const GROUP_SPLITS: usize = 32;
/// Largest block for layouts with a thread per block. Larger blocks give too few threads to be
/// worth their time.
const MAX_THREAD_BLOCK_BYTES: usize = 1 << 20;

/// The codes that one thread decodes.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Block,
    Split,
    TransposedSplit,
}

const LAYOUTS: [(&str, Part); 6] = [
    ("gsst_layouts_blocks_bytes", Part::Block),
    ("gsst_layouts_blocks_words", Part::Block),
    ("gsst_layouts_splits_bytes", Part::Split),
    ("gsst_layouts_splits_shared", Part::Split),
    ("gsst_layouts_splits_words", Part::Split),
    ("gsst_layouts_transposed", Part::TransposedSplit),
];

/// Returns the cases of the library alone, then those of all layouts.
fn cases() -> (Vec<Case>, Vec<Case>) {
    let eight = BlockOptions::new(CodeWidth::Eight);
    let twelve = BlockOptions::new(CodeWidth::Twelve);
    let optimal = |options| BlockOptions { parse: Parse::Optimal, ..options };
    let splits = |split_codes| BlockOptions { split_codes, ..eight };
    let case = |name, options, kib: usize| Case { name, options, block_bytes: kib << 10 };
    let library = vec![
        case("8 bits, 4 MiB", eight, 4096),
        case("8 bits, optimal parse, 8 MiB", optimal(eight), 8192),
        case("12 bits, 4 MiB", twelve, 4096),
        case("12 bits, optimal parse, 8 MiB", optimal(twelve), 8192),
    ];
    let layouts = vec![
        case("16 KiB, splits of 512 codes", splits(512), 16),
        case("64 KiB, splits of 512 codes", splits(512), 64),
        case("1 MiB, splits of 512 codes", splits(512), 1024),
        case("4 MiB, splits of 512 codes", splits(512), 4096),
        case("4 MiB, splits of 4,096 codes", splits(4096), 4096),
    ];
    (library, layouts)
}

fn main() -> Result<(), GpuError> {
    let Some(device) = open_device()? else { return Ok(()) };
    let only = std::env::var("TADOC_ONLY").unwrap_or_default();
    let text = column();
    let rows: Vec<Option<&[u8]>> = text.split(|&byte| byte == b'\n').map(Some).collect();
    let other = Kernels::load(&device);
    let (library, layouts) = cases();
    println!("| kernel | blocks | GB/s, median of {NUM_RUNS} | lowest | highest | ratio |");
    for case in library.iter().filter(|_| LIBRARY.contains(&only)) {
        Column::new(&rows, case).measure_library(&device)?;
    }
    for case in &layouts {
        let is_asked = |kernel: &str, part: Part| {
            let is_small = case.block_bytes <= MAX_THREAD_BLOCK_BYTES;
            kernel.contains(&only) && (part != Part::Block || is_small)
        };
        let mut asked = LAYOUTS.iter().filter(|(kernel, part)| is_asked(kernel, *part)).peekable();
        if asked.peek().is_none() {
            continue;
        }
        let column = Column::new(&rows, case);
        asked.for_each(|(kernel, part)| other.measure(&column, kernel, *part));
        column.measure_library(&device)?;
    }
    Ok(())
}

/// The blocks of one case.
struct Column {
    name: &'static str,
    blocks: Vec<Block<Vec<u8>>>,
    copies: usize,
    /// Text of one copy.
    text: Vec<u8>,
}

impl Column {
    fn new(rows: &[Option<&[u8]>], case: &Case) -> Self {
        let blocks = blocks(rows, case);
        let mut text = Vec::new();
        blocks.iter().for_each(|block| block.decode_text(&mut text));
        Self { name: case.name, blocks, copies: TEXT_BYTES.div_ceil(text.len()), text }
    }

    fn assert_text(&self, kernel: &str, got: &[u8]) {
        assert_eq!(got.len(), self.copies * self.text.len(), "{kernel}");
        assert!(got.chunks(self.text.len()).all(|copy| copy == self.text), "{kernel}");
    }

    /// Prints a line of a table.
    fn print(&self, kernel: &str, mut seconds: Vec<f64>) {
        seconds.sort_unstable_by(f64::total_cmp);
        let rate = |run: usize| (self.copies * self.text.len()) as f64 / seconds[run] / 1e9;
        let stored_bytes: usize = self.blocks.iter().map(|block| block.as_bytes().len()).sum();
        println!(
            "| {kernel} | {} | {:.1} | {:.1} | {:.1} | {:.3} |",
            self.name,
            rate(NUM_RUNS / 2),
            rate(NUM_RUNS - 1),
            rate(0),
            self.text.len() as f64 / stored_bytes as f64,
        );
    }

    fn measure_library(&self, device: &Device) -> Result<(), GpuError> {
        let decoder = GsstDecoder::new(device);
        let all: Vec<_> = (0..self.copies).flat_map(|_| self.blocks.iter().cloned()).collect();
        let uploaded = decoder.upload(&all)?;
        let mut out = decoder.text_for(&uploaded)?;
        for poison in POISONS {
            out.fill(poison)?;
            decoder.decode_into(&uploaded, &mut out)?;
            self.assert_text(LIBRARY, &out.to_host()?);
        }
        for _ in 0..NUM_WARM_UPS {
            decoder.decode_into(&uploaded, &mut out)?;
        }
        device.synchronize()?;
        let time = |_| device.time(|| decoder.decode_into(&uploaded, &mut out));
        let times = (0..NUM_RUNS).map(time).collect::<Result<Vec<_>, _>>()?;
        self.print(LIBRARY, times.iter().map(|time| time.as_secs_f64()).collect());
        let name = format!("decode, {}", self.name);
        repeat(device, &name, uploaded.text_len_bytes(), || decoder.decode_into(&uploaded, &mut out))
    }
}

/// The loaded kernels of `kernels/layouts`.
struct Kernels {
    module: Arc<CudaModule>,
    stream: Arc<CudaStream>,
}

/// Inputs and outputs of a launch.
struct Uploaded {
    bytes: CudaSlice<u8>,
    tables: CudaSlice<u64>,
    blocks: CudaSlice<u64>,
    out: CudaSlice<u8>,
    num_blocks: u32,
    /// Largest number of splits in a block.
    num_splits: u32,
}

impl Kernels {
    fn load(device: &Device) -> Self {
        let context = CudaContext::new(device.ordinal()).unwrap();
        let code = match device.compute_capability().0 {
            8 => Ptx::from_binary(SM_80.to_vec()),
            9 => Ptx::from_binary(SM_90.to_vec()),
            _ => Ptx::from_src(COMPUTE_90),
        };
        Self { module: context.load_module(code).unwrap(), stream: context.default_stream() }
    }

    fn copy_of<T: cudarc::driver::DeviceRepr + cudarc::driver::ValidAsZeroBits>(&self, values: &[T]) -> CudaSlice<T> {
        let mut copy = self.stream.alloc_zeros(values.len()).unwrap();
        self.stream.memcpy_htod(values, &mut copy).unwrap();
        copy
    }

    /// Uploads blocks as `GsstBlock`s of `gsst_codes.cuh`, with their codes, splits and tables.
    fn upload(&self, column: &Column, is_transposed: bool) -> Uploaded {
        let mut bytes = Vec::new();
        let mut tables = Vec::new();
        let mut blocks = Vec::new();
        let mut text_at = 0;
        for block in (0..column.copies).flat_map(|_| &column.blocks) {
            let codes_at = bytes.len();
            if is_transposed {
                push_transposed(block, &mut bytes);
            } else {
                bytes.extend_from_slice(block.codes());
            }
            bytes.resize(bytes.len().next_multiple_of(CHUNK_CODES), 0);
            let splits_at = bytes.len() - codes_at;
            bytes.extend(block.splits().flat_map(u32::to_le_bytes));
            bytes.resize(bytes.len().next_multiple_of(CHUNK_CODES), 0);
            let pair = |low: usize, high: usize| low as u64 | (high as u64) << 32;
            blocks.extend([codes_at as u64, text_at as u64]);
            blocks.push(pair(splits_at, block.num_codes()));
            blocks.push(pair(0, block.split_codes().ilog2() as usize));
            tables.extend(block.table().packed());
            text_at += block.text_len_bytes();
        }
        Uploaded {
            bytes: self.copy_of(&bytes),
            tables: self.copy_of(&tables),
            blocks: self.copy_of(&blocks),
            out: self.stream.alloc_zeros(text_at).unwrap(),
            num_blocks: (column.copies * column.blocks.len()) as u32,
            num_splits: column.blocks.iter().map(|b| b.splits().len()).max().unwrap() as u32,
        }
    }

    fn measure(&self, column: &Column, kernel: &str, part: Part) {
        let function = self.module.load_function(kernel).unwrap();
        let mut uploaded = self.upload(column, part == Part::TransposedSplit);
        let config = match part {
            Part::Block => LaunchConfig {
                grid_dim: (uploaded.num_blocks.div_ceil(32), 1, 1),
                block_dim: (32, 1, 1),
                shared_mem_bytes: 0,
            },
            Part::Split | Part::TransposedSplit => LaunchConfig {
                grid_dim: (uploaded.num_blocks, uploaded.num_splits.div_ceil(128), 1),
                block_dim: (uploaded.num_splits.next_multiple_of(32).min(128), 1, 1),
                shared_mem_bytes: 0,
            },
        };
        let launch = |uploaded: &mut Uploaded| {
            let mut launch = self.stream.launch_builder(&function);
            launch.arg(&uploaded.bytes).arg(&uploaded.tables).arg(&uploaded.blocks);
            launch.arg(&uploaded.num_blocks).arg(&mut uploaded.out);
            // SAFETY: the arguments match the parameters of the kernels in number, order and type.
            // They hold validated blocks in the form that the kernel of this part reads, the output
            // is as long as their text, and the grid has a thread for each part.
            unsafe { launch.launch(config) }.unwrap();
        };
        let mut host = vec![0; column.copies * column.text.len()];
        for poison in POISONS {
            host.fill(poison);
            self.stream.memcpy_htod(&host, &mut uploaded.out).unwrap();
            launch(&mut uploaded);
            self.stream.memcpy_dtoh(&uploaded.out, &mut host).unwrap();
            self.stream.synchronize().unwrap();
            column.assert_text(kernel, &host);
        }
        (0..NUM_WARM_UPS).for_each(|_| launch(&mut uploaded));
        let mut seconds = || {
            let start = self.stream.record_event(Some(CU_EVENT_DEFAULT)).unwrap();
            launch(&mut uploaded);
            let end = self.stream.record_event(Some(CU_EVENT_DEFAULT)).unwrap();
            f64::from(start.elapsed_ms(&end).unwrap()) / 1e3
        };
        column.print(kernel, (0..NUM_RUNS).map(|_| seconds()).collect());
    }
}

/// Appends the codes of every 32 splits: the first 16 codes of each, the next 16 of each, and so
/// on.
fn push_transposed(block: &Block<Vec<u8>>, bytes: &mut Vec<u8>) {
    let split_codes = block.split_codes();
    for group in block.codes().chunks(GROUP_SPLITS * split_codes) {
        let mut padded = group.to_vec();
        padded.resize(GROUP_SPLITS * split_codes, 0);
        for at in (0..split_codes).step_by(CHUNK_CODES) {
            for split in padded.chunks(split_codes) {
                bytes.extend_from_slice(&split[at..at + CHUNK_CODES]);
            }
        }
    }
}
