//! Counts of sequences of n words on a device: the wrapper of `kernels/corpus_sequences.cu`.
//!
//! Windows are counted, their number is read, room is taken for them, and they are written, sorted
//! and added up. The first and last words of rules are made once, with the levels from the last to
//! the first. Memory: 8(n - 1) bytes for each rule, 8 for each position, 24 for each window.

#![allow(unsafe_code, reason = "launching kernels")]

use cudarc::driver::CudaFunction;

use crate::dag::Dag;
use crate::gpu::device::Device;
use crate::gpu::error::GpuError;
use crate::gpu::memory::DeviceBuffer;
use crate::gpu::module::{CORPUS_SEQUENCES, Module, unsupported};

use super::launch::{Argument, RuleArrays, THREADS, address, grid_for, launch};
use super::levels::{RuleLevels, Step, steps};
use super::sort::{MAX_KEYS, Pairs, SortSpace, Sorter};
use super::terms::bits_below;
use super::transfer::{one_to_host, to_host};
use super::{CorpusWeights, DeviceCorpus, check_limit};

const KERNEL: &str = "corpus_sequences";
/// Levels of so many rules are small.
const MAX_SMALL_RULES: u32 = 2048;
/// Threads of the thread block that has small levels.
const LEVELS_THREADS: u32 = 1024;
/// Numbers of a tile of a scan.
const TILE_NUMBERS: usize = 2048;

/// Counts the sequences of n words of a segment.
#[derive(Debug)]
pub struct CorpusSequences {
    corpus: DeviceCorpus,
    count: CudaFunction,
    emit: CudaFunction,
    sorter: Sorter,
    owners: DeviceBuffer<u32>,
    lens: DeviceBuffer<u8>,
    heads: DeviceBuffer<u32>,
    tails: DeviceBuffer<u32>,
    /// Windows by position, then the sum of those before.
    windows: DeviceBuffer<u32>,
    tile_sums: DeviceBuffer<u32>,
    space: Option<SortSpace<u64>>,
    num_positions: usize,
    num_words: usize,
    word_bits: u32,
}

/// Sequences and their counts in device memory.
#[derive(Debug)]
pub struct DeviceSequences {
    device: Device,
    keys: DeviceBuffer<u64>,
    counts: DeviceBuffer<u64>,
    num_rows: usize,
    num_windows: usize,
    num_words: usize,
    word_bits: u32,
}

/// Sequences, ascending by their words in order, and their counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceRows {
    keys: Vec<u64>,
    counts: Vec<u64>,
    num_words: usize,
    word_bits: u32,
}

impl CorpusSequences {
    pub(super) fn upload(corpus: &DeviceCorpus, n: usize) -> Result<Self, GpuError> {
        let (device, dag) = (&corpus.device, corpus.dag());
        let word_bits = bits_below(dag.num_words() as usize);
        if !(2..=64 / word_bits as usize).contains(&n) {
            let reason = format!("{n} words of {word_bits} bits, it takes 2 and more in 64 bits");
            return Err(unsupported(device, KERNEL, reason));
        }
        let (reach, num_positions) = (n - 1, dag.grammar().symbols.len());
        let max_positions = MAX_KEYS / reach;
        check_limit("elements of rules with their windows", num_positions, max_positions)?;
        let levels = RuleLevels::new(dag)?;
        let module = Module::load(device, CORPUS_SEQUENCES)?;
        let edges = || device.alloc("edges of rules", dag.grammar().num_rules() * reach);
        let made = Self {
            count: module.kernel("corpus_sequences_count")?,
            emit: module.kernel("corpus_sequences_emit")?,
            sorter: Sorter::new(device)?,
            owners: device.copy_of("rules of positions", &owners(dag))?,
            lens: device.copy_of("lengths of elements", &lens(dag, reach))?,
            heads: edges()?,
            tails: edges()?,
            windows: device.alloc("windows of positions", num_positions + 1)?,
            tile_sums: device.alloc("windows of positions", num_positions / TILE_NUMBERS + 2)?,
            space: None,
            num_positions,
            num_words: n,
            word_bits,
            corpus: corpus.clone(),
        };
        made.make_edges(&levels, &module)?;
        Ok(made)
    }

    fn arrays(&self) -> RuleArrays {
        let (device, arrays, dag) = (&self.corpus.device, &self.corpus.arrays, self.corpus.dag());
        RuleArrays {
            symbols: address(device, &arrays.symbols),
            rule_offsets: address(device, &arrays.rule_offsets),
            doc_offsets: address(device, &arrays.doc_offsets),
            owners: address(device, &self.owners),
            lens: address(device, &self.lens),
            heads: address(device, &self.heads),
            tails: address(device, &self.tails),
            num_terminals: dag.num_terminals(),
            num_root: dag.grammar().root().len() as u32,
            reach: self.num_words as u32 - 1,
            word_bits: self.word_bits,
        }
    }

    /// Finds the first and last words of all rules, those that hold others after these.
    fn make_edges(&self, levels: &RuleLevels, module: &Module) -> Result<(), GpuError> {
        let device = &self.corpus.device;
        let of_level = module.kernel("corpus_sequences_edges")?;
        let of_levels = module.kernel("corpus_sequences_edge_levels")?;
        let order = device.copy_of("rules by level", &levels.order)?;
        let starts = device.copy_of("rules by level", &levels.starts)?;
        let rules = Argument::Rules(self.arrays());
        let [order, starts] = [&order, &starts].map(|b| Argument::Long(address(device, b)));
        for step in steps(&levels.starts, MAX_SMALL_RULES).into_iter().rev() {
            // SAFETY: the arguments are those of the kernels, the arrays those of a validated
            // grammar; edges have place for `reach` words of each rule.
            unsafe {
                match step {
                    Step::Level(level) => {
                        let first = levels.starts[level as usize];
                        let end = levels.starts[level as usize + 1];
                        let grid = grid_for((end - first) as usize);
                        let range = [rules, order, Argument::Short(first), Argument::Short(end)];
                        launch(device, &of_level, grid, THREADS, &range)?;
                    }
                    Step::Levels(first, end) => {
                        let (first, end) = (Argument::Short(first), Argument::Short(end));
                        let range = [rules, order, starts, first, end];
                        launch(device, &of_levels, 1, LEVELS_THREADS, &range)?;
                    }
                }
            }
        }
        // The order is given back only now, on the same stream.
        Ok(())
    }

    /// How often each sequence occurs in the documents of the segment, with the weights of its rules.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] for weights of another copy of a segment; [`GpuError::OutOfMemory`],
    /// [`GpuError::Driver`].
    pub fn count(&mut self, weights: &CorpusWeights) -> Result<DeviceSequences, GpuError> {
        weights.check_made_for(&self.corpus)?;
        let device = self.corpus.device.clone();
        let grid = grid_for(self.num_positions);
        let [rules, num_positions] =
            [Argument::Rules(self.arrays()), Argument::Short(self.num_positions as u32)];
        let windows_at = Argument::Long(address(&device, &self.windows));
        let count = [rules, num_positions, windows_at];
        // SAFETY: the arguments are those of the kernel, the arrays those of a validated grammar;
        // there is a place for each position and one more, and sums for each tile.
        unsafe {
            launch(&device, &self.count, grid, THREADS, &count)?;
            self.sorter.scan_narrow(&self.windows, self.num_positions, &self.tile_sums)?;
        }
        let num_windows = one_to_host(&device, &self.windows, self.num_positions)? as usize;
        let kept = self.space.take().filter(|space| space.capacity() >= num_windows);
        let space = match kept {
            Some(space) => space,
            None => SortSpace::new(&device, num_windows)?,
        };
        let Pairs { keys_at, values_at } = space.inputs(&device);
        let output = [Argument::Long(keys_at), Argument::Long(values_at)];
        let emit = [rules, num_positions, windows_at, output[0], output[1]];
        let key_bits = self.num_words as u32 * self.word_bits;
        let rules_at = weights.rules_at(self.corpus.dag().num_terminals());
        // SAFETY: as above; the space has room for the windows that were counted, whose values are
        // rules of this segment, which have weights.
        let summed = unsafe {
            launch(&device, &self.emit, grid, THREADS, &emit)?;
            self.sorter.sum_by_key(&space, num_windows, key_bits, rules_at)?
        };
        self.space = Some(space);
        Ok(DeviceSequences {
            device,
            keys: summed.keys,
            counts: summed.sums,
            num_rows: summed.num_rows,
            num_windows,
            num_words: self.num_words,
            word_bits: self.word_bits,
        })
    }
}

impl DeviceSequences {
    /// Number of distinct sequences.
    pub fn len(&self) -> usize {
        self.num_rows
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.num_rows == 0
    }

    /// Windows that were sorted.
    pub fn num_windows(&self) -> usize {
        self.num_windows
    }

    /// Bytes that sorting the windows and adding them up read and write.
    pub fn traffic_bytes(&self) -> u64 {
        let num_digits = (self.num_words as u64 * u64::from(self.word_bits)).div_ceil(8);
        // A digit: keys for the histogram, then keys and values, read and written. Then the heads,
        // two scans of three passes, and the rows.
        self.num_windows as u64 * (num_digits * 32 + 32 + 12 + 24 + 20) + self.num_rows as u64 * 40
    }

    /// Copies them to the host.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the counting.
    pub fn to_host(&self) -> Result<SequenceRows, GpuError> {
        Ok(SequenceRows {
            keys: to_host(&self.device, &self.keys, self.num_rows)?,
            counts: to_host(&self.device, &self.counts, self.num_rows)?,
            num_words: self.num_words,
            word_bits: self.word_bits,
        })
    }
}

impl SequenceRows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Word ids of the sequence of `row`, in order.
    ///
    /// # Panics
    ///
    /// When `row` is not below [`len`](Self::len).
    pub fn words(&self, row: usize) -> impl ExactSizeIterator<Item = u32> + '_ {
        let (key, bits) = (self.keys[row], self.word_bits);
        let word = move |at: usize| (key >> (at as u32 * bits)) & ((1 << bits) - 1);
        (0..self.num_words).rev().map(move |at| word(at) as u32)
    }

    /// How often each occurs, 1 or more.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Bits of a word in a key.
    pub fn word_bits(&self) -> u32 {
        self.word_bits
    }

    /// Keys, which hold the word ids, the first one in the highest of the bits, and counts.
    pub fn into_keys_and_counts(self) -> (Vec<u64>, Vec<u64>) {
        (self.keys, self.counts)
    }
}

/// The rule of each position; in the root, the document.
fn owners(dag: &Dag) -> Vec<u32> {
    let grammar = dag.grammar();
    let mut owners = Vec::with_capacity(grammar.symbols.len());
    let documents = grammar.doc_offsets.windows(2).zip(0u32..);
    let rules = grammar.rule_offsets.windows(2).zip(0u32..).skip(1);
    for (ends, owner) in documents.chain(rules) {
        owners.resize(ends[1] as usize, owner);
    }
    owners
}

/// Words of each element, `reach` where it has more.
fn lens(dag: &Dag, reach: usize) -> Vec<u8> {
    let len = |element| dag.len_words(element).min(reach as u64) as u8;
    (0..dag.num_elements() as u32).map(len).collect()
}
