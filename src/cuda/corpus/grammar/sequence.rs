//! The sequence under replacement on a device: the counterpart of `Sequence` in
//! `src/tadoc/grammar/sequence.rs` and of `Chunk` in `src/tadoc/grammar/chunk.rs`.

#![allow(unsafe_code, reason = "launching kernels")]

use crate::corpus::launch::Argument;
use crate::corpus::sort_space::bits_below;
use crate::corpus::transfer::{clear, fill, one_to_host, to_host};
use crate::device::Device;
use crate::error::GpuError;
use tadoc::grammar::RoundsOutput;
use tadoc::grammar::schedule::{CHUNK_LEN, are_joined};

use super::kernels::{Kernels, at, number};
use super::space::{Arrays, Mask, Shared};

/// The elements in device memory, their pairs, and the rules so far.
#[derive(Debug)]
pub(super) struct Sequence<'a> {
    pub(super) kernels: &'a Kernels,
    pub(super) arrays: &'a mut Arrays,
    /// Index of the buffer that holds the elements.
    current: usize,
    len: usize,
    pub(super) first_rule: u32,
    num_rules: usize,
    /// Number of pairs that have ids.
    pub(super) num_pairs: usize,
    /// Initial number of chunks. Neighbours are joined until there is one chunk for each
    /// `chunk_step` of them.
    num_chunks: usize,
    chunk_step: usize,
}

impl<'a> Sequence<'a> {
    /// Builds a sequence of `len` elements in `arrays`. The elements must be written afterwards.
    pub(super) fn begin(
        kernels: &'a Kernels,
        arrays: &'a mut Arrays,
        len: usize,
        first_rule: u32,
    ) -> Result<Self, GpuError> {
        let starts: Vec<u32> = (0..len).step_by(CHUNK_LEN).map(|start| start as u32).collect();
        let num_chunks = starts.len();
        let copied = kernels
            .device
            .stream()
            .memcpy_htod(&starts, &mut arrays.starts.slice_mut(..num_chunks));
        copied.map_err(kernels.device.fault("copying places of chunks"))?;
        Ok(Self {
            kernels,
            arrays,
            current: 0,
            len,
            first_rule,
            num_rules: 0,
            num_pairs: 0,
            num_chunks,
            chunk_step: 1,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn device(&self) -> &'a Device {
        &self.kernels.device
    }

    /// Returns the number of words of a mask.
    pub(super) fn num_words(&self) -> usize {
        self.len.div_ceil(32)
    }

    /// Returns the number of bits of a symbol.
    pub(super) fn symbol_bits(&self) -> u32 {
        bits_below(self.first_rule as usize + self.num_rules)
    }

    fn symbols_at(&self) -> u64 {
        self.arrays.at.symbols[self.current]
    }

    pub(super) fn ids_at(&self) -> u64 {
        self.arrays.at.ids[self.current]
    }

    /// Copies `symbols`, as many as the length of the sequence, to its elements.
    pub(super) fn copy_from(&mut self, symbols: &[u32]) -> Result<(), GpuError> {
        let device = self.device();
        let target = &mut self.arrays.symbols[0].slice_mut(..symbols.len());
        let copied = device.stream().memcpy_htod(symbols, target);
        copied.map_err(device.fault("copying a sequence"))
    }

    /// Writes all pairs to the keys of `shared` and returns their number. Afterwards no pair has an
    /// id.
    pub(super) fn find_all_pairs(&mut self, shared: &mut Shared) -> Result<usize, GpuError> {
        let (kernels, device) = (self.kernels, self.device());
        fill(device, &mut self.arrays.ids[self.current], 0xff)?;
        self.mark_ends(shared)?;
        let [symbols, len] = [at(self.symbols_at()), number(self.len)];
        let [places, sums] = [at(shared.mask(Mask::Places)), at(shared.at.sums)];
        let find = [symbols, len, at(shared.mask(Mask::Ends)), places, sums];
        let input = shared.keys.inputs(device);
        let write = [
            symbols,
            len,
            places,
            sums,
            Argument::Short(self.symbol_bits()),
            at(input.keys_at),
            at(input.values_at),
        ];
        // SAFETY: the arguments match the kernels. Masks and sums are as long as the sequence, and
        // there is room for as many keys. The last element is an end.
        unsafe {
            kernels.launch(&kernels.fresh, self.len, &find)?;
            kernels.sorter.scan_wide(&shared.sums, self.num_words(), &shared.wide_tiles)?;
            kernels.launch(&kernels.fresh_write, self.len, &write)?;
        }
        Ok(self.totals(shared)?.1)
    }

    /// Returns the number of pairs to replace and the number of pairs to be given ids.
    fn totals(&self, shared: &Shared) -> Result<(usize, usize), GpuError> {
        let total = one_to_host(self.device(), &shared.sums, self.num_words())?;
        Ok((total as u32 as usize, (total >> 32) as usize))
    }

    /// Marks the last element of each chunk.
    fn mark_ends(&self, shared: &Shared) -> Result<(), GpuError> {
        let ends = shared.mask(Mask::Ends);
        let arguments = [
            at(self.arrays.at.starts),
            number(self.num_chunks),
            number(self.chunk_step),
            number(self.len),
            at(ends),
        ];
        // SAFETY: the mask has a bit for each element; the arguments match the kernel.
        unsafe {
            clear(self.device(), ends, self.num_words() * size_of::<u32>())?;
            self.kernels.launch(&self.kernels.ends, self.num_chunks, &arguments)
        }
    }

    /// Runs one round at `threshold`. Returns the number of pairs replaced.
    pub(super) fn round(&mut self, shared: &mut Shared, threshold: u32) -> Result<usize, GpuError> {
        if self.num_pairs == 0 {
            return Ok(0);
        }
        let (num_replaced, num_keys) = self.replace(shared, threshold)?;
        self.number(shared, num_keys)?;
        Ok(num_replaced)
    }

    /// Replaces the winning pairs that have a rule. Returns their number and the number of new
    /// pairs. The new pairs are the keys of `shared` and have no ids yet.
    fn replace(&mut self, shared: &mut Shared, threshold: u32) -> Result<(usize, usize), GpuError> {
        self.mark_ends(shared)?;
        self.choose(shared, threshold)?;
        self.make_rules(shared)?;
        self.count(shared)?;
        let (num_replaced, num_keys) = self.totals(shared)?;
        if num_replaced > 0 {
            self.rewrite(shared)?;
            self.current = 1 - self.current;
            self.len -= num_replaced;
        }
        Ok((num_replaced, num_keys))
    }

    /// Marks the pairs that win.
    fn choose(&self, shared: &Shared, threshold: u32) -> Result<(), GpuError> {
        let (kernels, arrays) = (self.kernels, self.arrays.at);
        let [ids, len] = [at(self.ids_at()), number(self.len)];
        let [candidates, left_first, right_first] =
            [Mask::Candidates, Mask::LeftFirst, Mask::RightFirst].map(|mask| at(shared.mask(mask)));
        let (counts, threshold) = (at(arrays.counts), Argument::Short(threshold));
        let slopes = [ids, len, counts, threshold, candidates, left_first, right_first];
        let chosen = at(shared.mask(Mask::Chosen));
        let choose = [ids, len, candidates, left_first, right_first, at(arrays.uses), chosen];
        // SAFETY: the arguments match the kernels; ids have counts, and masks are as long as the
        // sequence.
        unsafe {
            kernels.launch(&kernels.slopes, self.len, &slopes)?;
            kernels.launch(&kernels.choose, self.len, &choose)
        }
    }

    /// Makes rules from the pairs that won at least twice, and marks the pairs that have a rule.
    fn make_rules(&mut self, shared: &Shared) -> Result<(), GpuError> {
        let (kernels, arrays) = (self.kernels, self.arrays.at);
        let num_pairs = number(self.num_pairs);
        let find = [at(arrays.uses), at(arrays.rule_of_pair), num_pairs, at(arrays.numbers)];
        let make = [
            at(arrays.numbers),
            num_pairs,
            number(self.num_rules),
            Argument::Short(self.first_rule),
            at(arrays.pairs),
            at(arrays.counts),
            at(arrays.uses),
            at(arrays.rule_of_pair),
            at(arrays.rules),
        ];
        let mark = [
            at(self.ids_at()),
            number(self.len),
            at(shared.mask(Mask::Chosen)),
            at(arrays.rule_of_pair),
            at(shared.mask(Mask::Replaced)),
        ];
        // SAFETY: the arguments match the kernels. There is a number for each id and one more, and
        // a rule for every two elements.
        unsafe {
            kernels.launch(&kernels.new_rules, self.num_pairs, &find)?;
            kernels.sorter.scan_narrow(
                &self.arrays.numbers,
                self.num_pairs,
                &shared.narrow_tiles,
            )?;
            kernels.launch(&kernels.make_rules, self.num_pairs, &make)?;
            kernels.launch(&kernels.replaced, self.len, &mark)?;
        }
        let num_new = one_to_host(self.device(), &self.arrays.numbers, self.num_pairs)?;
        self.num_rules += num_new as usize;
        Ok(())
    }

    /// Counts the pairs to replace, and subtracts the pairs that disappear from the counts.
    fn count(&self, shared: &Shared) -> Result<(), GpuError> {
        let kernels = self.kernels;
        let arguments = [
            at(self.symbols_at()),
            at(self.ids_at()),
            number(self.len),
            at(shared.mask(Mask::Replaced)),
            at(shared.mask(Mask::Ends)),
            at(self.arrays.at.counts),
            at(shared.mask(Mask::Places)),
            at(shared.at.sums),
        ];
        // SAFETY: the arguments match the kernel; masks and sums are as long as the sequence.
        unsafe {
            kernels.launch(&kernels.count, self.len, &arguments)?;
            kernels.sorter.scan_wide(&shared.sums, self.num_words(), &shared.wide_tiles)
        }
    }

    /// Writes the new sequence to the other buffer.
    fn rewrite(&self, shared: &Shared) -> Result<(), GpuError> {
        let (kernels, arrays) = (self.kernels, self.arrays.at);
        let [replaced, sums] = [at(shared.mask(Mask::Replaced)), at(shared.at.sums)];
        let input = shared.keys.inputs(self.device());
        let rewrite = [
            at(self.symbols_at()),
            at(self.ids_at()),
            number(self.len),
            replaced,
            at(shared.mask(Mask::Places)),
            sums,
            at(arrays.rule_of_pair),
            Argument::Short(self.first_rule),
            Argument::Short(self.symbol_bits()),
            at(arrays.symbols[1 - self.current]),
            at(arrays.ids[1 - self.current]),
            at(input.keys_at),
            at(input.values_at),
        ];
        let starts = [at(arrays.starts), number(self.num_chunks), replaced, sums];
        // SAFETY: the arguments match the kernels. The new sequence is shorter than the old one and
        // has at most as many new pairs as elements.
        unsafe {
            kernels.launch(&kernels.rewrite, self.len, &rewrite)?;
            kernels.launch(&kernels.starts, self.num_chunks, &starts)
        }
    }

    /// Joins neighbouring chunks if chunks are half empty on average.
    pub(super) fn join_chunks(&mut self) {
        while are_joined(self.num_chunks.div_ceil(self.chunk_step), self.len) {
            self.chunk_step *= 2;
        }
    }

    /// Returns the elements, the ids of their pairs, and the two elements of each rule, oldest rule
    /// first.
    pub(super) fn to_host(&self) -> Result<RoundsOutput, GpuError> {
        let device = self.device();
        let symbols = to_host(device, &self.arrays.symbols[self.current], self.len)?;
        let pair_ids = to_host(device, &self.arrays.ids[self.current], self.len)?;
        let rules = to_host(device, &self.arrays.rules, self.num_rules)?;
        let rules = rules.into_iter().map(|pair| ((pair >> 32) as u32, pair as u32)).collect();
        Ok(RoundsOutput { symbols, pair_ids, rules })
    }
}
