//! The documents of each word on a device: the wrapper of `kernels/corpus_documents.cu`.
//!
//! ```text
//! root    R R c | R d     masks of documents   R 0b11   c 0b01   d 0b10
//! rule R  a b                                  a 0b11   b 0b11
//!   │ counted, summed, written out
//! words   a     b     c   d
//! docs    0 1   0 1   0   1        an inverted index
//! ```
//!
//! Two ways give the same rows. *Masks* flow down the grammar: O(E · D / 8) bytes are written and read for E elements
//! and D documents, and nothing depends on the length of the text. *Sorting* writes the words of the text out
//! ([`CorpusTerms`]): O(N), whatever the number of documents. The one that moves fewer bytes is taken
//! (`Masks::traffic_bytes`). It is the choice between traversals of G-TADOC (section IV-B) by counted bytes.
//!
//! Several segments are one grammar ([`DeviceGroup`]), but an element occurs in documents of its segment only. So a
//! mask has a bit for each document of a segment, D is that of the segment that has the most, and memory for masks is E
//! · D / 8 bytes. Kernels for masks take any text whose rows are fewer than 2^31.

#![allow(unsafe_code, reason = "launching kernels")]

use cudarc::driver::CudaFunction;

use crate::device::{CORPUS_DOCUMENTS, Module, unsupported};
use crate::error::GpuError;
use crate::memory::DeviceBuffer;

use super::DeviceGroup;
use super::group::GroupShape;
use super::launch::{Argument, THREADS, Tickets, address, grid_for, launch, one_to_host};
use super::sort::{MAX_KEYS, Sorter, num_sums};
use super::terms::{CorpusTerms, DeviceDocuments, text_traffic_bytes};

const KERNEL: &str = "corpus_documents";
/// Threads of a warp, each with a number of a mask.
const LANES: usize = 32;
/// Documents of a number of a mask.
const NUMBER_DOCS: usize = u32::BITS as usize;

/// An object that finds the documents of each word of some segments.
#[derive(Debug)]
pub struct CorpusDocuments {
    way: Way,
}

#[derive(Debug)]
enum Way {
    Masks(Box<MaskKernels>),
    Sorting(Box<CorpusTerms>),
}

/// A mask of documents for each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Masks {
    shape: GroupShape,
    /// Numbers of a mask: a power of two below the threads of a warp, or a multiple of them.
    row_len: usize,
}

#[derive(Debug)]
struct MaskKernels {
    group: DeviceGroup,
    doc_numbers: DeviceBuffer<u32>,
    masks: Masks,
    /// Largest number of documents of all words.
    max_rows: usize,
    sorter: Sorter,
    tickets: Tickets,
    uses: CudaFunction,
    root: CudaFunction,
    rules: CudaFunction,
    counts: CudaFunction,
    lists: CudaFunction,
}

impl Masks {
    fn new(shape: GroupShape) -> Self {
        let num_numbers = shape.max_docs.div_ceil(NUMBER_DOCS);
        let row_len =
            if num_numbers < LANES { num_numbers.next_power_of_two() } else { num_numbers.next_multiple_of(LANES) };
        Self { shape, row_len }
    }

    /// Returns true if masks move fewer bytes than sorting.
    fn are_better(shape: GroupShape) -> bool {
        Self::new(shape).traffic_bytes() < text_traffic_bytes(shape)
    }

    /// Returns the threads that have a mask.
    fn width(self) -> usize {
        self.row_len.min(LANES)
    }

    fn num_numbers(self) -> usize {
        self.shape.num_elements().saturating_mul(self.row_len)
    }

    /// Returns the bytes read and written at most to make masks and to read those of words twice.
    fn traffic_bytes(self) -> u64 {
        let shape = self.shape;
        let num_masks = (3 * shape.num_elements() + shape.num_held()) as u64;
        let row_bytes = (self.row_len * size_of::<u32>()) as u64;
        let num_positions = (2 * shape.num_held() + shape.num_root) as u64;
        num_masks.saturating_mul(row_bytes).saturating_add(num_positions * size_of::<u32>() as u64)
    }
}

impl CorpusDocuments {
    pub(super) fn new(group: &DeviceGroup) -> Result<Self, GpuError> {
        if Masks::are_better(group.shape) {
            return Self::with_masks(group);
        }
        Ok(Self { way: Way::Sorting(Box::new(group.terms()?)) })
    }

    pub(super) fn with_masks(group: &DeviceGroup) -> Result<Self, GpuError> {
        let device = &group.device;
        let shape = group.shape;
        let num_pairs = u64::from(shape.num_words) * shape.max_docs as u64;
        let max_rows = num_pairs.min(shape.len_words);
        if max_rows >= MAX_KEYS as u64 {
            let reason = format!("{max_rows} words of documents at most, it takes less than {MAX_KEYS}");
            return Err(unsupported(device, KERNEL, reason));
        }
        let module = Module::load(device, CORPUS_DOCUMENTS)?;
        let kernels = MaskKernels {
            group: group.clone(),
            doc_numbers: group.doc_numbers()?,
            masks: Masks::new(shape),
            max_rows: max_rows as usize,
            sorter: Sorter::new(device)?,
            tickets: Tickets::new(device)?,
            uses: module.kernel("corpus_documents_uses")?,
            root: module.kernel("corpus_documents_root")?,
            rules: module.kernel("corpus_documents_rules")?,
            counts: module.kernel("corpus_documents_counts")?,
            lists: module.kernel("corpus_documents_lists")?,
        };
        Ok(Self { way: Way::Masks(Box::new(kernels)) })
    }

    /// Returns true if masks flow down the grammar, false if the words of the text are sorted.
    pub fn has_masks(&self) -> bool {
        matches!(self.way, Way::Masks(_))
    }

    /// Finds the documents of each word.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] for a grammar that is too deep; [`GpuError::OutOfMemory`],
    /// [`GpuError::Driver`].
    pub fn run(&mut self) -> Result<DeviceDocuments, GpuError> {
        match &mut self.way {
            Way::Masks(kernels) => kernels.run(),
            Way::Sorting(terms) => Ok(terms.run()?.into_documents()),
        }
    }
}

impl MaskKernels {
    fn run(&mut self) -> Result<DeviceDocuments, GpuError> {
        let device = self.group.device.clone();
        let num_words = self.group.shape.num_words as usize;
        // Memory of `alloc` is 0, so the masks are empty.
        let masks: DeviceBuffer<u32> = device.alloc("masks of documents", self.masks.num_numbers())?;
        let masks_at = Argument::Long(address(&device, &masks));
        self.tickets.reset()?;
        self.flow(masks_at)?;
        let offsets: DeviceBuffer<u32> = device.alloc("documents of words", num_words + 1)?;
        let sums = device.alloc("documents of words", num_sums(num_words))?;
        let docs = device.alloc("documents of words", self.max_rows)?;
        let [offsets_at, docs_at] = [&offsets, &docs].map(|buffer| Argument::Long(address(&device, buffer)));
        let words = Argument::Short(num_words as u32);
        let row_len = Argument::Short(self.masks.row_len as u32);
        let grid = grid_for(num_words.saturating_mul(self.masks.width()));
        // SAFETY: the arguments match the kernels. There is a mask and a count for each word, room for a number after
        // the last, and room for all documents of all words.
        unsafe {
            launch(&device, &self.counts, grid, THREADS, &[masks_at, words, row_len, offsets_at])?;
            self.sorter.scan_narrow(&offsets, num_words, &sums)?;
            launch(&device, &self.lists, grid, THREADS, &[masks_at, offsets_at, words, row_len, docs_at])?;
        }
        self.tickets.check_end(KERNEL)?;
        let num_rows = one_to_host(&device, &offsets, num_words)? as usize;
        let traffic_bytes = self.masks.traffic_bytes() + 4 * num_rows as u64;
        Ok(DeviceDocuments { group: self.group.clone(), offsets, docs, are_local: true, num_rows, traffic_bytes })
    }

    /// Enqueues the kernels that make the masks of all elements.
    fn flow(&self, masks: Argument) -> Result<(), GpuError> {
        let device = &self.group.device;
        let shape = self.group.shape;
        let arrays = &self.group.arrays;
        let num_rules = shape.num_rules;
        let waiting: DeviceBuffer<u32> = device.alloc("rules that wait for rules", num_rules)?;
        let [waiting, doc_numbers, symbols, rule_offsets, doc_offsets] =
            [&waiting, &self.doc_numbers, &arrays.symbols, &arrays.rule_offsets, &arrays.doc_offsets]
                .map(|buffer| Argument::Long(address(device, buffer)));
        let [root_len, num_positions, rule_count, num_docs, row_len] =
            [shape.num_root, shape.num_positions, num_rules, shape.num_docs, self.masks.row_len]
                .map(|number| Argument::Short(number as u32));
        let words = Argument::Short(shape.num_words);
        let terminals = Argument::Short(shape.num_terminals);
        let uses = [symbols, root_len, num_positions, terminals, waiting];
        let root = [symbols, doc_offsets, doc_numbers, root_len, num_docs, words, terminals, row_len, masks];
        let tickets = self.tickets.argument();
        let rules = [symbols, rule_offsets, words, terminals, rule_count, row_len, tickets, waiting, masks];
        // SAFETY: the arguments match the kernels. The grammars were validated, so their rules precede the rules that
        // they contain. There is a mask for each element and a number for each rule, all 0 before. The device frees
        // them after the kernels.
        unsafe {
            launch(device, &self.uses, grid_for(shape.num_held()), THREADS, &uses)?;
            launch(device, &self.root, grid_for(shape.num_root), THREADS, &root)?;
            launch(device, &self.rules, grid_for((num_rules - 1).saturating_mul(LANES)), THREADS, &rules)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shape of 20,000 of 300 words without rules.
    fn shape(num_docs: usize) -> GroupShape {
        GroupShape {
            num_words: 300,
            num_terminals: 301,
            num_rules: 1,
            num_root: 20_000,
            num_positions: 20_000,
            num_docs,
            max_docs: num_docs,
            len_words: 20_000,
        }
    }

    #[test]
    fn masks_are_for_documents_with_much_in_common() {
        assert!(Masks::are_better(shape(20)));
        assert!(!Masks::are_better(shape(20_000)));
        // Text that cannot be written out.
        assert!(Masks::are_better(GroupShape { len_words: 1 << 58, ..shape(20_000) }));
    }

    #[test]
    fn masks_have_whole_warps_or_divide_one() {
        for (num_docs, row_len) in [(0, 1), (1, 1), (32, 1), (33, 2), (97, 4), (1024, 32), (1025, 64), (20_000, 640)] {
            assert_eq!(Masks::new(shape(num_docs)).row_len, row_len, "{num_docs}");
        }
    }
}
