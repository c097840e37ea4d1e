//! The inverse grammar of a segment, made on the device: the wrapper of
//! `kernels/corpus_inverse.cu`.
//!
//! ```text
//! symbols    5 2 5 | 2 7          offsets    .. 2: 0   5: 2   7: 4 ..
//!   │ positions sorted by element
//! positions  1 3 | 0 2 | 4        parents    0 1 | 0 0 | 1
//! ```
//!
//! A radix sort of G positions, 8 bits per pass. It takes 28 bytes per position, of which 8 stay.

#![allow(unsafe_code, reason = "launching kernels")]

use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::module::{CORPUS_INVERSE, Module};

use super::DeviceCorpus;
use super::launch::{Argument, THREADS, address, grid_for, launch};
use super::sort::Sorter;
use super::sort_space::{Pairs, SortSpace, bits_below};
use super::transfer::to_host;

/// The positions of each element, in device memory.
#[derive(Debug)]
pub(super) struct DeviceInverse {
    /// Start of each element's positions, and the end of the last.
    pub(super) offsets: DeviceBuffer<u32>,
    positions: DeviceBuffer<u32>,
    /// Rules of `positions`.
    pub(super) parents: DeviceBuffer<u32>,
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
        let (device, dag) = (&corpus.device, corpus.dag());
        let (num_positions, num_elements) = (dag.grammar().symbols.len(), dag.num_elements());
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
        let (device, num_positions) = (&corpus.device, corpus.dag().grammar().symbols.len());
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
pub(super) fn owners(
    corpus: &DeviceCorpus,
    module: &Module,
) -> Result<DeviceBuffer<u32>, GpuError> {
    let (device, arrays, grammar) = (&corpus.device, &corpus.arrays, corpus.dag().grammar());
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
