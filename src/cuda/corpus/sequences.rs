//! Counts of the sequences of n words on a device: the wrapper of `kernels/corpus_sequences.cu`.
//!
//! The device counts the windows, or pairs of words, and the host reads their number and allocates
//! room. Then the device writes, sorts and sums them. The first and last words of rules are
//! computed once. Memory is 8(n - 1) bytes per rule, 8 per position and 24 per window.

#![allow(unsafe_code, reason = "launching kernels")]

use cudarc::driver::CudaFunction;

use super::index::owners;
use super::launch::{Argument, RuleArrays, THREADS, Tickets, address, fill, grid_for, launch, one_to_host, to_host};
use super::sort::{MAX_KEYS, Pairs, SortSpace, Sorter, bits_below, num_sums, sort_bytes};
use super::{CorpusWeights, DeviceCorpus, check_limit};
use crate::device::{CORPUS_INVERSE, CORPUS_SEQUENCES, Device, Module, unsupported};
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

const SEQUENCES_KERNEL: &str = "corpus_sequences";
/// Largest window of pairs, in words. Lengths of edges have 8 bits.
const MAX_PAIR_WINDOW: usize = 255;

/// An object that counts the sequences of n words of a segment, or its pairs of nearby words.
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
    /// Windows of each position, later the sum of those before.
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

/// Sequences and their counts, in device memory.
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

/// Sequences, ascending by their words in order, with their counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceRows {
    keys: Vec<u64>,
    counts: Vec<u64>,
    num_words: usize,
    word_bits: u32,
}

/// The kernels and sizes of one kind of count.
struct Counted {
    kernels: [&'static str; 2],
    reach: usize,
    num_words: usize,
    /// Largest number of keys of a position.
    max_keys: usize,
}

impl CorpusSequences {
    pub(super) fn upload(corpus: &DeviceCorpus, n: usize) -> Result<Self, GpuError> {
        let word_bits = bits_below(corpus.dag().num_words() as usize);
        if !(2..=64 / word_bits as usize).contains(&n) {
            let reason = format!("{n} words of {word_bits} bits, it takes 2 and more in 64 bits");
            return Err(unsupported(&corpus.device, SEQUENCES_KERNEL, reason));
        }
        let kernels = ["corpus_sequences_count", "corpus_sequences_emit"];
        Self::make(corpus, Counted { kernels, reach: n - 1, num_words: n, max_keys: n - 1 })
    }

    pub(super) fn upload_pairs(corpus: &DeviceCorpus, window: usize) -> Result<Self, GpuError> {
        if !(2..=MAX_PAIR_WINDOW).contains(&window) {
            let reason = format!("a window of {window} words, it takes 2 to {MAX_PAIR_WINDOW}");
            return Err(unsupported(&corpus.device, SEQUENCES_KERNEL, reason));
        }
        let kernels = ["corpus_sequences_count_pairs", "corpus_sequences_emit_pairs"];
        let reach = window - 1;
        let max_keys = reach * (reach + 1) / 2;
        Self::make(corpus, Counted { kernels, reach, num_words: 2, max_keys })
    }

    fn make(corpus: &DeviceCorpus, counted: Counted) -> Result<Self, GpuError> {
        let device = &corpus.device;
        let dag = corpus.dag();
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
        let device = &self.corpus.device;
        let arrays = &self.corpus.arrays;
        let dag = self.corpus.dag();
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

    /// Computes the first and last words of all rules. A rule is computed after the rules that it
    /// contains.
    fn make_edges(&mut self, module: &Module) -> Result<(), GpuError> {
        let device = &self.corpus.device;
        let dag = self.corpus.dag();
        // Marks all values as unknown: NO_LEN and NO_WORD.
        fill(device, &mut self.lens, 0xFF)?;
        fill(device, &mut self.heads, 0xFF)?;
        fill(device, &mut self.tails, 0xFF)?;
        let num_terminals = dag.num_terminals();
        let num_rules = dag.grammar().num_rules();
        let terminals = [
            Argument::Long(address(device, &self.lens)),
            Argument::Short(dag.num_words()),
            Argument::Short(num_terminals),
        ];
        let tickets = Tickets::new(device)?;
        let rules = [Argument::Rules(self.arrays()), Argument::Short(num_rules as u32), tickets.argument()];
        let terminals_kernel = module.kernel("corpus_sequences_terminals")?;
        let rules_kernel = module.kernel("corpus_sequences_edges")?;
        // SAFETY: the arguments match the kernels. The arrays belong to a validated grammar, so its
        // rules precede those that they contain. Edges have room for `reach` words of each rule.
        unsafe {
            launch(device, &terminals_kernel, grid_for(num_terminals as usize), THREADS, &terminals)?;
            launch(device, &rules_kernel, grid_for(num_rules - 1), THREADS, &rules)?;
        }
        tickets.check_end(SEQUENCES_KERNEL)
    }

    /// Counts the occurrences of each sequence in the documents of the segment, with the weights of
    /// its rules.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the weights could not be counted; [`GpuError::Mismatch`] for
    /// weights of another copy of a segment; [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn count(&mut self, weights: &CorpusWeights) -> Result<DeviceSequences, GpuError> {
        weights.check_made_for(&self.corpus)?;
        let device = self.corpus.device.clone();
        let grid = grid_for(self.num_positions);
        let [rules, num_positions] = [Argument::Rules(self.arrays()), Argument::Short(self.num_positions as u32)];
        let windows_at = Argument::Long(address(&device, &self.windows));
        let count = [rules, num_positions, windows_at];
        // SAFETY: the arguments match the kernel; the arrays belong to a validated grammar. There
        // is room for each position and one more, and for a sum of each tile.
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
        // SAFETY: same argument as for the kernels above. The space has room for the counted
        // windows, whose values are rules of this segment, which have weights.
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
    /// Returns the number of distinct sequences.
    pub fn len(&self) -> usize {
        self.num_rows
    }

    /// Returns true if there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.num_rows == 0
    }

    /// Returns the number of windows that were sorted.
    pub fn num_windows(&self) -> usize {
        self.num_windows
    }

    /// Returns the bytes read and written to sort and sum the windows.
    pub fn traffic_bytes(&self) -> u64 {
        let sorting = sort_bytes::<u64>(self.num_windows, self.num_words as u32 * self.word_bits);
        // After the sort: the heads, two scans of three passes, and the rows.
        sorting + self.num_windows as u64 * (32 + 12 + 24 + 20) + self.num_rows as u64 * 40
    }

    /// Copies the sequences to the host.
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
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the word ids of the sequence of `row`, in order.
    ///
    /// # Panics
    ///
    /// Panics if `row` is not below [`len`](Self::len).
    pub fn words(&self, row: usize) -> impl ExactSizeIterator<Item = u32> + '_ {
        words_from(self.keys[row], self.num_words, self.word_bits)
    }

    /// Returns the number of occurrences of each sequence, at least 1.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the number of bits of a word in a key.
    pub fn word_bits(&self) -> u32 {
        self.word_bits
    }

    /// Returns the keys and the counts. A key holds the word ids, the first in the highest bits.
    pub(crate) fn into_keys_and_counts(self) -> (Vec<u64>, Vec<u64>) {
        (self.keys, self.counts)
    }
}

/// Returns the words of a key, the first from its highest bits.
pub(super) fn words_from(key: u64, num_words: usize, word_bits: u32) -> impl ExactSizeIterator<Item = u32> {
    let word = move |at: usize| (key >> (at as u32 * word_bits)) & ((1 << word_bits) - 1);
    (0..num_words).rev().map(move |at| word(at) as u32)
}
