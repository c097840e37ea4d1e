//! Counts of sequences of n words on a device: the wrapper of `kernels/corpus_sequences.cu`.
//!
//! Windows, or pairs of words, are counted, their number is read, room is taken for them, and they are
//! written, sorted and added up. The first and last words of rules are made once. Memory: 8(n - 1)
//! bytes for each rule, 8 for each position, 24 for each window.

#![allow(unsafe_code, reason = "launching kernels")]

use cudarc::driver::CudaFunction;

use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::module::{CORPUS_INVERSE, CORPUS_SEQUENCES, Module, unsupported};

use super::inverse::owners;
use super::launch::{Argument, RuleArrays, THREADS, address, grid_for, launch};
use super::sort::Sorter;
use super::sort_space::{MAX_KEYS, Pairs, SortSpace, bits_below, num_sums, sort_bytes};
use super::tickets::Tickets;
use super::transfer::{fill, one_to_host, to_host};
use super::{CorpusWeights, DeviceCorpus, check_limit};

const KERNEL: &str = "corpus_sequences";
/// Windows of pairs have fewer words: lengths of edges have 8 bits.
const MAX_PAIR_WINDOW: usize = 255;

/// Counts the sequences of n words of a segment, or its pairs of words near one another.
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
    /// Words of an edge.
    reach: usize,
    /// Words of a row.
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

/// What is counted.
struct Counted {
    kernels: [&'static str; 2],
    reach: usize,
    num_words: usize,
    /// Keys of a position at most.
    max_keys: usize,
}

impl CorpusSequences {
    pub(super) fn upload(corpus: &DeviceCorpus, n: usize) -> Result<Self, GpuError> {
        let word_bits = bits_below(corpus.dag().num_words() as usize);
        if !(2..=64 / word_bits as usize).contains(&n) {
            let reason = format!("{n} words of {word_bits} bits, it takes 2 and more in 64 bits");
            return Err(unsupported(&corpus.device, KERNEL, reason));
        }
        let kernels = ["corpus_sequences_count", "corpus_sequences_emit"];
        Self::make(corpus, Counted { kernels, reach: n - 1, num_words: n, max_keys: n - 1 })
    }

    pub(super) fn upload_pairs(corpus: &DeviceCorpus, window: usize) -> Result<Self, GpuError> {
        if !(2..=MAX_PAIR_WINDOW).contains(&window) {
            let reason = format!("a window of {window} words, it takes 2 to {MAX_PAIR_WINDOW}");
            return Err(unsupported(&corpus.device, KERNEL, reason));
        }
        let (kernels, reach) =
            (["corpus_sequences_count_pairs", "corpus_sequences_emit_pairs"], window - 1);
        let max_keys = reach * (reach + 1) / 2;
        Self::make(corpus, Counted { kernels, reach, num_words: 2, max_keys })
    }

    fn make(corpus: &DeviceCorpus, counted: Counted) -> Result<Self, GpuError> {
        let (device, dag) = (&corpus.device, corpus.dag());
        let num_positions = dag.grammar().symbols.len();
        let max_positions = MAX_KEYS / counted.max_keys;
        check_limit("elements of rules with their windows", num_positions, max_positions)?;
        let module = Module::load(device, CORPUS_SEQUENCES)?;
        let edges = || device.alloc("edges of rules", dag.grammar().num_rules() * counted.reach);
        let [count, emit] = counted.kernels;
        let mut made = Self {
            count: module.kernel(count)?,
            emit: module.kernel(emit)?,
            sorter: Sorter::new(device)?,
            owners: owners(corpus, &Module::load(device, CORPUS_INVERSE)?)?,
            lens: device.alloc("lengths of elements", dag.num_elements())?,
            heads: edges()?,
            tails: edges()?,
            windows: device.alloc("windows of positions", num_positions + 1)?,
            tile_sums: device.alloc("windows of positions", num_sums(num_positions))?,
            space: None,
            num_positions,
            reach: counted.reach,
            num_words: counted.num_words,
            word_bits: bits_below(dag.num_words() as usize),
            corpus: corpus.clone(),
        };
        made.make_edges(&module)?;
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
            reach: self.reach as u32,
            word_bits: self.word_bits,
        }
    }

    /// Finds the first and last words of all rules, those that hold others after these.
    fn make_edges(&mut self, module: &Module) -> Result<(), GpuError> {
        let (device, dag) = (&self.corpus.device, self.corpus.dag());
        // Nothing is known yet: NO_LEN and NO_WORD.
        fill(device, &mut self.lens, 0xFF)?;
        fill(device, &mut self.heads, 0xFF)?;
        fill(device, &mut self.tails, 0xFF)?;
        let (num_terminals, num_rules) = (dag.num_terminals(), dag.grammar().num_rules());
        let terminals = [
            Argument::Long(address(device, &self.lens)),
            Argument::Short(dag.num_words()),
            Argument::Short(num_terminals),
        ];
        let tickets = Tickets::new(device)?;
        let rules =
            [Argument::Rules(self.arrays()), Argument::Short(num_rules as u32), tickets.argument()];
        let (of_terminals, of_rules) = (
            module.kernel("corpus_sequences_terminals")?,
            module.kernel("corpus_sequences_edges")?,
        );
        // SAFETY: the arguments are those of the kernels, the arrays those of a validated grammar, whose
        // rules stand before those that they hold; edges have place for `reach` words of each rule.
        unsafe {
            launch(device, &of_terminals, grid_for(num_terminals as usize), THREADS, &terminals)?;
            launch(device, &of_rules, grid_for(num_rules - 1), THREADS, &rules)?;
        }
        tickets.check_end(KERNEL)
    }

    /// How often each sequence occurs in the documents of the segment, with the weights of its rules.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] where the weights could not be counted; [`GpuError::Mismatch`] for weights of another copy of a segment; [`GpuError::OutOfMemory`],
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
        let kept = self.space.take().filter(|space| space.capacity >= num_windows);
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
        let sorting = sort_bytes::<u64>(self.num_windows, self.num_words as u32 * self.word_bits);
        // Then the heads, two scans of three passes, and the rows.
        sorting + self.num_windows as u64 * (32 + 12 + 24 + 20) + self.num_rows as u64 * 40
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
        words_of(self.keys[row], self.num_words, self.word_bits)
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

/// The words of a key, the first one in its highest bits.
pub(super) fn words_of(
    key: u64,
    num_words: usize,
    word_bits: u32,
) -> impl ExactSizeIterator<Item = u32> {
    let word = move |at: usize| (key >> (at as u32 * word_bits)) & ((1 << word_bits) - 1);
    (0..num_words).rev().map(move |at| word(at) as u32)
}
