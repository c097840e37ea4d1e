//! Weights of elements and counts of words on a device: the wrapper of `kernels/corpus_weights.cu`.
//!
//! The inverse grammar is made once, and each element sums weights through it. It takes 28 bytes
//! per position while it is made, of which 16 stay.

#![allow(unsafe_code, reason = "launching kernels")]

use std::sync::Arc;

use cudarc::driver::CudaFunction;

use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::module::{CORPUS_WEIGHTS, Module};

use super::index::{DeviceInverse, Occurrences};
use super::launch::{Argument, THREADS, Tickets, address, fill, grid_for, launch, one_to_host, to_host};
use super::sort::{Sorter, num_sums};
use super::{DeviceCorpus, check_limit};

const KERNEL: &str = "corpus_weights";

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
        self.tickets.check_end(KERNEL)?;
        to_host(&self.corpus.device, &self.weights, self.corpus.dag().num_elements())
    }

    /// Returns the number of occurrences of each word, by word id. The caller sums over several
    /// segments.
    ///
    /// # Errors
    ///
    /// The errors of [`to_host`](Self::to_host).
    pub fn word_counts_to_host(&self) -> Result<Vec<u64>, GpuError> {
        self.tickets.check_end(KERNEL)?;
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
        self.tickets.check_end(KERNEL)
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
