//! Arrays that are derived from a grammar on the device: lengths of expansions and starts of positions, the
//! inverse grammar, and weights. The wrapper of `kernels/corpus_{index,inverse,weights}.cu`.
//!
//! ```text
//! token_offsets ─▶ bytes, infos of terminals ─▶ of rules, the last first ─▶ shares of positions
//!                                                                             │ scanned
//!                                         starts: bytes before each position ◀┘  blanks: 1 bit
//! ```
//!
//! Time is O(G) plus the depth of the grammar. Memory is 12 bytes per position and 16 per element.
//!
//! # Inverse and weights
//!
//! ```text
//! symbols    5 2 5 | 2 7          offsets    .. 2: 0   5: 2   7: 4 ..
//!   │ positions sorted by element
//! positions  1 3 | 0 2 | 4        parents    0 1 | 0 0 | 1
//! ```
//!
//! The inverse is made once, by a radix sort of G positions, 8 bits per pass. It takes 28 bytes per
//! position, of which 8 stay, or 16 with weights. Each element sums weights through it.

#![allow(unsafe_code, reason = "launching kernels")]

use std::sync::Arc;

use cudarc::driver::CudaFunction;

use super::launch::{Argument, THREADS, Tickets, address, fill, grid_for, launch, one_to_host, to_host};
use super::sort::{MAX_KEYS, Pairs, SortSpace, Sorter, bits_below, num_sums};
use super::{DeviceCorpus, check_limit};
use crate::device::{CORPUS_INDEX, CORPUS_INVERSE, CORPUS_WEIGHTS, Module, unsupported};
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

const INDEX_KERNEL: &str = "corpus_index";
const WEIGHTS_KERNEL: &str = "corpus_weights";
/// Limit of the words of a text. Infos use 3 bits for other purposes.
const MAX_WORDS: u64 = 1 << 61;
const WORDS_SHIFT: u32 = 3;

/// The lengths and starts of a segment in device memory.
#[derive(Debug)]
pub struct CorpusIndex {
    corpus: DeviceCorpus,
    sorter: Sorter,
    kernels: Kernels,
    tickets: Tickets,
    token_offsets: DeviceBuffer<u32>,
    owners: DeviceBuffer<u32>,
    bytes: DeviceBuffer<u64>,
    infos: DeviceBuffer<u64>,
    starts: DeviceBuffer<u64>,
    tile_sums: DeviceBuffer<u64>,
    blanks: DeviceBuffer<u32>,
}

#[derive(Debug)]
struct Kernels {
    terminals: CudaFunction,
    rules: CudaFunction,
    shares: CudaFunction,
    starts: CudaFunction,
}

impl CorpusIndex {
    pub(super) fn upload(corpus: &DeviceCorpus) -> Result<Self, GpuError> {
        let device = &corpus.device;
        let dag = corpus.dag();
        let len_words = dag.len_words(dag.num_terminals());
        if len_words >= MAX_WORDS {
            let reason = format!("{len_words} words, it takes less than {MAX_WORDS} of a segment");
            return Err(unsupported(device, INDEX_KERNEL, reason));
        }
        let num_positions = dag.grammar().symbols.len();
        let num_elements = dag.num_elements();
        check_limit("elements of rules", num_positions, MAX_KEYS)?;
        let module = Module::load(device, CORPUS_INDEX)?;
        let mut made = Self {
            sorter: Sorter::new(device)?,
            kernels: Kernels {
                terminals: module.kernel("corpus_index_terminals")?,
                rules: module.kernel("corpus_index_rules")?,
                shares: module.kernel("corpus_index_shares")?,
                starts: module.kernel("corpus_index_starts")?,
            },
            tickets: Tickets::new(device)?,
            token_offsets: device.copy_for("offsets of tokens", corpus.segment.dictionary.offsets())?,
            owners: owners(corpus, &Module::load(device, CORPUS_INVERSE)?)?,
            bytes: device.alloc("lengths of elements", num_elements)?,
            infos: device.alloc("lengths of elements", num_elements)?,
            starts: device.alloc("starts of elements", num_positions + 1)?,
            tile_sums: device.alloc("starts of elements", num_sums(num_positions))?,
            blanks: device.alloc("blanks between elements", num_positions / 32 + 1)?,
            corpus: corpus.clone(),
        };
        made.run()?;
        Ok(made)
    }

    /// Computes everything again. Returns once the work is enqueued, before it is done.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub fn run(&mut self) -> Result<(), GpuError> {
        let device = &self.corpus.device;
        let dag = self.corpus.dag();
        let grammar = dag.grammar();
        let num_terminals = dag.num_terminals();
        let num_positions = grammar.symbols.len();
        let num_rules = grammar.num_rules();
        // Marks all lengths as unknown.
        fill(device, &mut self.bytes, 0)?;
        fill(device, &mut self.infos, 0)?;
        self.tickets.reset()?;
        let arrays = &self.corpus.arrays;
        let symbols = Argument::Long(address(device, &arrays.symbols));
        let [bytes, infos, starts] =
            [&self.bytes, &self.infos, &self.starts].map(|buffer| Argument::Long(address(device, buffer)));
        let blanks = Argument::Long(address(device, &self.blanks));
        let len = Argument::Short(num_positions as u32);
        let terminals = [
            Argument::Long(address(device, &self.token_offsets)),
            Argument::Short(dag.num_words()),
            Argument::Short(num_terminals),
            bytes,
            infos,
        ];
        let rules = [
            symbols,
            Argument::Long(address(device, &arrays.rule_offsets)),
            Argument::Short(num_terminals),
            Argument::Short(num_rules as u32),
            self.tickets.argument(),
            bytes,
            infos,
        ];
        let owners = Argument::Long(address(device, &self.owners));
        let num_root = Argument::Short(grammar.root().len() as u32);
        let shares = [symbols, owners, num_root, len, bytes, infos, starts, blanks];
        let kernels = &self.kernels;
        let grid = grid_for(num_positions + 1);
        let grid_of_terminals = grid_for(num_terminals as usize);
        // SAFETY: the arguments match the kernels. The grammar was validated, so its rules precede
        // the rules that they contain. There are lengths for each element, a start for each
        // position and one more, and a bit for each position.
        unsafe {
            launch(device, &kernels.terminals, grid_of_terminals, THREADS, &terminals)?;
            launch(device, &kernels.rules, grid_for(num_rules - 1), THREADS, &rules)?;
            launch(device, &kernels.shares, grid, THREADS, &shares)?;
            self.sorter.scan_wide(&self.starts, num_positions, &self.tile_sums)?;
            launch(device, &kernels.starts, grid, THREADS, &[blanks, len, starts])
        }
    }

    /// Returns the bytes and words of each element's expansion, by element id. Those of the root
    /// are 0.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] for a grammar that is too deep; [`GpuError::Driver`], also for
    /// faults of the computation.
    pub fn lens_to_host(&self) -> Result<Vec<(u64, u64)>, GpuError> {
        self.tickets.check_end(INDEX_KERNEL)?;
        let device = &self.corpus.device;
        let num_elements = self.corpus.dag().num_elements();
        let bytes = to_host(device, &self.bytes, num_elements)?;
        let infos = to_host(device, &self.infos, num_elements)?;
        Ok(bytes.into_iter().zip(infos.into_iter().map(|info| info >> WORDS_SHIFT)).collect())
    }

    /// Returns the bytes before each position, including its own blank, over all rules in order,
    /// and the total. These are the values of
    /// [`PrefixSums::start`](tadoc::segment::PrefixSums::start).
    ///
    /// # Errors
    ///
    /// The errors of [`lens_to_host`](Self::lens_to_host).
    pub fn starts_to_host(&self) -> Result<Vec<u64>, GpuError> {
        self.tickets.check_end(INDEX_KERNEL)?;
        let num_positions = self.corpus.dag().grammar().symbols.len();
        to_host(&self.corpus.device, &self.starts, num_positions + 1)
    }

    /// Returns the starts of positions, and the bits of positions with a blank before them, in the
    /// form of the kernels.
    ///
    /// # Errors
    ///
    /// The errors of [`lens_to_host`](Self::lens_to_host).
    pub(super) fn into_starts(self) -> Result<(DeviceBuffer<u64>, DeviceBuffer<u32>), GpuError> {
        self.tickets.check_end(INDEX_KERNEL)?;
        Ok((self.starts, self.blanks))
    }
}

/// The positions of each element, in device memory.
#[derive(Debug)]
pub(super) struct DeviceInverse {
    /// Start of each element's positions, and the end of the last.
    pub(super) offsets: DeviceBuffer<u32>,
    positions: DeviceBuffer<u32>,
    /// Rules of `positions`.
    parents: DeviceBuffer<u32>,
}

/// The positions of each element on right-hand sides, as in
/// [`Inverse`](tadoc::segment::Inverse).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrences {
    offsets: Vec<u32>,
    positions: Vec<u32>,
    rules: Vec<u32>,
}

impl DeviceInverse {
    pub(super) fn new(corpus: &DeviceCorpus, sorter: &Sorter) -> Result<Self, GpuError> {
        let device = &corpus.device;
        let dag = corpus.dag();
        let num_positions = dag.grammar().symbols.len();
        let num_elements = dag.num_elements();
        let space = SortSpace::new(device, num_positions)?;
        let module = Module::load(device, CORPUS_INVERSE)?;
        let owners = owners(corpus, &module)?;
        let symbols = Pairs { keys_at: address(device, &corpus.arrays.symbols), values_at: 0 };
        // SAFETY: the symbols lie outside the space.
        let (sorted, offsets) = unsafe {
            let key_bits = bits_below(num_elements);
            let sorted = sorter.sort_narrow(&space, symbols, num_positions, key_bits)?;
            (sorted, sorter.offsets(sorted.keys_at, num_positions, num_elements)?)
        };
        let parents = device.alloc("rules of elements", num_positions)?;
        let arguments = [
            Argument::Long(sorted.values_at),
            Argument::Long(address(device, &owners)),
            Argument::Short(dag.grammar().root().len() as u32),
            Argument::Short(num_positions as u32),
            Argument::Long(address(device, &parents)),
        ];
        let kernel = module.kernel("corpus_inverse_parents")?;
        // SAFETY: the arguments match the kernel; the sorted values are positions.
        unsafe { launch(device, &kernel, grid_for(num_positions), THREADS, &arguments) }?;
        Ok(Self { offsets, positions: space.into_values(device, sorted), parents })
    }

    pub(super) fn to_host(&self, corpus: &DeviceCorpus) -> Result<Occurrences, GpuError> {
        let device = &corpus.device;
        let num_positions = corpus.dag().grammar().symbols.len();
        Ok(Occurrences {
            offsets: to_host(device, &self.offsets, corpus.dag().num_elements() + 1)?,
            positions: to_host(device, &self.positions, num_positions)?,
            rules: to_host(device, &self.parents, num_positions)?,
        })
    }
}

impl Occurrences {
    /// Returns the rule (0 is the root) and the position of each occurrence of `element` on
    /// right-hand sides, ascending by position.
    ///
    /// # Panics
    ///
    /// Panics if the segment has no such element.
    pub fn for_element(&self, element: u32) -> impl ExactSizeIterator<Item = (u32, u32)> + '_ {
        let at = element as usize;
        let range = self.offsets[at] as usize..self.offsets[at + 1] as usize;
        range.map(|at| (self.rules[at], self.positions[at]))
    }
}

/// Computes the rule of each position; in the root, the document.
pub(super) fn owners(corpus: &DeviceCorpus, module: &Module) -> Result<DeviceBuffer<u32>, GpuError> {
    let device = &corpus.device;
    let arrays = &corpus.arrays;
    let grammar = corpus.dag().grammar();
    let num_positions = grammar.symbols.len();
    let owners = device.alloc("rules of positions", num_positions)?;
    let arguments = [
        Argument::Long(address(device, &arrays.rule_offsets)),
        Argument::Long(address(device, &arrays.doc_offsets)),
        Argument::Short(grammar.num_rules() as u32),
        Argument::Short(grammar.num_docs() as u32),
        Argument::Short(grammar.root().len() as u32),
        Argument::Short(num_positions as u32),
        Argument::Long(address(device, &owners)),
    ];
    let kernel = module.kernel("corpus_inverse_owners")?;
    // SAFETY: the arguments match the kernel; the arrays belong to a validated grammar.
    unsafe { launch(device, &kernel, grid_for(num_positions), THREADS, &arguments) }?;
    Ok(owners)
}

/// The weights of the elements of a segment, in device memory.
#[derive(Debug)]
pub struct CorpusWeights {
    corpus: DeviceCorpus,
    sorter: Sorter,
    rules: CudaFunction,
    places: CudaFunction,
    terminals: CudaFunction,
    inverse: DeviceInverse,
    tickets: Tickets,
    weights: DeviceBuffer<u64>,
    /// Weight of the rule at each place of a terminal, later the sum of those before.
    sums: DeviceBuffer<u64>,
    tile_sums: DeviceBuffer<u64>,
    num_places: usize,
}

impl CorpusWeights {
    pub(super) fn upload(corpus: &DeviceCorpus) -> Result<Self, GpuError> {
        let device = &corpus.device;
        let dag = corpus.dag();
        let sorter = Sorter::new(device)?;
        let module = Module::load(device, CORPUS_WEIGHTS)?;
        let inverse = DeviceInverse::new(corpus, &sorter)?;
        let num_places = one_to_host(device, &inverse.offsets, dag.num_terminals() as usize)?;
        let num_places = num_places as usize;
        let mut made = Self {
            rules: module.kernel("corpus_weights_rules")?,
            places: module.kernel("corpus_weights_places")?,
            terminals: module.kernel("corpus_weights_terminals")?,
            tickets: Tickets::new(device)?,
            weights: device.alloc("weights", dag.num_elements())?,
            sums: device.alloc("weights of places", num_places + 1)?,
            tile_sums: device.alloc("weights of places", num_sums(num_places))?,
            corpus: corpus.clone(),
            sorter,
            inverse,
            num_places,
        };
        made.run()?;
        Ok(made)
    }

    /// Counts all elements again. Returns once the work is enqueued, before it is done.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub fn run(&mut self) -> Result<(), GpuError> {
        let device = &self.corpus.device;
        let dag = self.corpus.dag();
        let num_terminals = dag.num_terminals();
        let num_rules = dag.grammar().num_rules();
        fill(device, &mut self.weights, 0)?;
        self.tickets.reset()?;
        let offsets_at = address(device, &self.inverse.offsets);
        let rule_offsets_at = offsets_at + u64::from(num_terminals) * size_of::<u32>() as u64;
        let [parents, sums] = [address(device, &self.inverse.parents), address(device, &self.sums)].map(Argument::Long);
        let rule_weights = Argument::Long(self.rules_at(num_terminals));
        let rules = [
            Argument::Long(rule_offsets_at),
            parents,
            Argument::Short(num_rules as u32),
            self.tickets.argument(),
            rule_weights,
        ];
        let places = [parents, Argument::Short(self.num_places as u32), rule_weights, sums];
        let terminals = [
            Argument::Long(offsets_at),
            sums,
            Argument::Short(num_terminals),
            Argument::Long(address(device, &self.weights)),
        ];
        let grid_of_terminals = grid_for(num_terminals as usize);
        // SAFETY: the arguments match the kernels. The inverse grammar belongs to a validated
        // grammar, whose rules come after those that contain them. There is a weight for each
        // element, and a sum for each place of a terminal and one more.
        unsafe {
            launch(device, &self.rules, grid_for(num_rules), THREADS, &rules)?;
            launch(device, &self.places, grid_for(self.num_places), THREADS, &places)?;
            self.sorter.scan_wide(&self.sums, self.num_places, &self.tile_sums)?;
            launch(device, &self.terminals, grid_of_terminals, THREADS, &terminals)
        }
    }

    /// Returns the number of occurrences of each element, by element id, as in
    /// [`Grammar::weights`](tadoc::grammar::Grammar::weights).
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] for a grammar that is too deep; [`GpuError::Driver`], also for
    /// faults of the counting.
    pub fn to_host(&self) -> Result<Vec<u64>, GpuError> {
        self.tickets.check_end(WEIGHTS_KERNEL)?;
        to_host(&self.corpus.device, &self.weights, self.corpus.dag().num_elements())
    }

    /// Returns the number of occurrences of each word, by word id. The caller sums over several
    /// segments.
    ///
    /// # Errors
    ///
    /// The errors of [`to_host`](Self::to_host).
    pub fn word_counts_to_host(&self) -> Result<Vec<u64>, GpuError> {
        self.tickets.check_end(WEIGHTS_KERNEL)?;
        to_host(&self.corpus.device, &self.weights, self.corpus.dag().num_words() as usize)
    }

    /// Returns the positions of each element. The device computes them in order to count elements.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the computation.
    pub fn occurrences_to_host(&self) -> Result<Occurrences, GpuError> {
        self.inverse.to_host(&self.corpus)
    }

    /// Sets all bytes of the weights to one value. Tests use this to find bytes that the kernels do
    /// not write.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub fn fill(&mut self, byte: u8) -> Result<(), GpuError> {
        fill(&self.corpus.device, &mut self.weights, byte)?;
        fill(&self.corpus.device, &mut self.sums, byte)
    }

    /// Checks that these weights belong to `corpus` and are counted. Waits for the count.
    pub(super) fn check_made_for(&self, corpus: &DeviceCorpus) -> Result<(), GpuError> {
        let is_own = Arc::ptr_eq(&self.corpus.arrays, &corpus.arrays);
        check_limit("weights of another corpus", usize::from(!is_own), 0)?;
        self.tickets.check_end(WEIGHTS_KERNEL)
    }

    /// Returns the address of the weights of rules.
    pub(super) fn rules_at(&self, num_terminals: u32) -> u64 {
        address(&self.corpus.device, &self.weights) + u64::from(num_terminals) * size_of::<u64>() as u64
    }

    /// Returns the bytes that a run reads and writes. Each weight read counts as 8 bytes.
    pub fn traffic_bytes(&self) -> u64 {
        let num_positions = self.corpus.dag().grammar().symbols.len() as u64;
        // A scan reads twice and writes once.
        num_positions * 12 + self.num_places as u64 * 32 + self.weights.num_bytes() as u64
    }
}
