//! Ids of pairs on a device, found by sorting: the counterpart of `src/tadoc/grammar/pair_join.rs`.

#![allow(unsafe_code, reason = "launching kernels")]

use crate::corpus::check_limit;
use crate::corpus::launch::Argument;
use crate::corpus::sort_space::{Pairs, bits_below};
use crate::corpus::transfer::{clear, one_to_host, to_host};
use crate::error::GpuError;
use tadoc::grammar::schedule::{MAX_SHARDS, num_passes, num_shards};

use super::kernels::{at, number};
use super::sequence::Sequence;
use super::space::{MAX_PASSES, Mask, Shared};

/// Sorted pairs, with the number of bits by which they are grouped.
#[derive(Debug, Clone, Copy)]
struct Sorted {
    pairs: Pairs,
    len: usize,
    symbol_bits: u32,
}

impl Sequence<'_> {
    /// Assigns ids to the pairs that occur at least twice among the first `num_keys` keys of
    /// `shared`.
    pub(super) fn number(&mut self, shared: &mut Shared, num_keys: usize) -> Result<(), GpuError> {
        if num_keys == 0 {
            return Ok(());
        }
        let (kernels, symbol_bits) = (self.kernels, self.symbol_bits());
        let input = shared.keys.inputs(&kernels.device);
        // SAFETY: the keys were written there; their lowest bits are two symbols.
        let pairs =
            unsafe { kernels.sorter.sort_wide(&shared.keys, input, num_keys, 0..2 * symbol_bits) }?;
        let sorted = Sorted { pairs, len: num_keys, symbol_bits };
        self.find_groups(shared, sorted)?;
        let shard_bits = self.group(shared, sorted)?;
        let num_new = one_to_host(&kernels.device, &shared.second_sums, self.num_words())? as usize;
        if num_new == 0 {
            return Ok(());
        }
        check_limit("repeated pairs", self.num_pairs + num_new, self.arrays.max_pairs)?;
        let groups = shared.groups.inputs(&kernels.device);
        let groups = match shard_bits {
            0 => groups,
            // SAFETY: the shards and groups of the repeated pairs were written there.
            bits => unsafe { kernels.sorter.sort_narrow(&shared.groups, groups, num_new, bits) }?,
        };
        self.name(shared, sorted, groups.values_at, num_new)
    }

    /// Marks the starts of groups of equal pairs, and the places of their second pairs. Counts both
    /// by mask word.
    fn find_groups(&self, shared: &Shared, sorted: Sorted) -> Result<(), GpuError> {
        let (kernels, num_words) = (self.kernels, self.num_words());
        let second_places = shared.mask(Mask::Seconds);
        let heads = [
            at(sorted.pairs.keys_at),
            at(sorted.pairs.values_at),
            number(sorted.len),
            at(shared.mask(Mask::Heads)),
            at(shared.at.head_sums),
            at(second_places),
        ];
        let seconds = [at(second_places), number(num_words), at(shared.at.second_sums)];
        // SAFETY: the arguments match the kernels. There are at most as many keys as elements, and
        // a bit for each.
        unsafe {
            clear(&kernels.device, second_places, num_words * size_of::<u32>())?;
            kernels.launch(&kernels.heads, sorted.len, &heads)?;
            let num_head_words = sorted.len.div_ceil(32);
            kernels.sorter.scan_narrow(&shared.head_sums, num_head_words, &shared.narrow_tiles)?;
            kernels.launch(&kernels.seconds, num_words, &seconds)?;
            kernels.sorter.scan_narrow(&shared.second_sums, num_words, &shared.narrow_tiles)
        }
    }

    /// Lists the groups. Lists the repeated ones with their shards in the order of their second
    /// places. Returns the number of bits of a shard; 0 if there is one shard.
    fn group(&self, shared: &mut Shared, sorted: Sorted) -> Result<u32, GpuError> {
        let (kernels, device) = (self.kernels, &self.kernels.device);
        let shards = self.num_shards(shared, sorted)?;
        let masks: Vec<u32> = shards.iter().map(|&num_shards| num_shards as u32 - 1).collect();
        let copied =
            device.stream().memcpy_htod(&masks, &mut shared.pass_masks.slice_mut(..masks.len()));
        copied.map_err(device.fault("copying numbers of shards"))?;
        let input = shared.groups.inputs(device);
        let arguments = [
            at(sorted.pairs.keys_at),
            at(sorted.pairs.values_at),
            number(sorted.len),
            Argument::Short(sorted.symbol_bits),
            at(shared.mask(Mask::Heads)),
            at(shared.at.head_sums),
            at(shared.mask(Mask::Seconds)),
            at(shared.at.second_sums),
            number(shards.len()),
            at(shared.at.pass_masks),
            at(shared.at.group_starts),
            at(shared.at.group_ids),
            at(input.keys_at),
            at(input.values_at),
        ];
        // SAFETY: the arguments match the kernel; at most every second key is the second one of a
        // group.
        unsafe { kernels.launch(&kernels.groups, sorted.len, &arguments) }?;
        Ok(match *shards {
            [1] => 0,
            [num_shards] => bits_below(num_shards),
            _ => bits_below(MAX_SHARDS * shards.len()),
        })
    }

    /// Returns the number of shards of each pass.
    fn num_shards(&self, shared: &mut Shared, sorted: Sorted) -> Result<Vec<usize>, GpuError> {
        let num_passes = num_passes(sorted.len);
        check_limit("passes of pairs", num_passes, MAX_PASSES)?;
        if num_passes == 1 {
            return Ok(vec![num_shards(sorted.len)]);
        }
        let (kernels, device) = (self.kernels, &self.kernels.device);
        let arguments = [
            at(sorted.pairs.keys_at),
            number(sorted.len),
            Argument::Short(sorted.symbol_bits),
            number(num_passes),
            at(shared.at.pass_counts),
        ];
        // SAFETY: the arguments match the kernel; there is a count for each pass.
        unsafe {
            clear(device, shared.at.pass_counts, MAX_PASSES * size_of::<u32>())?;
            kernels.launch(&kernels.passes, sorted.len, &arguments)?;
        }
        let counts = to_host(device, &shared.pass_counts, num_passes)?;
        Ok(counts.into_iter().map(|count| num_shards(count as usize)).collect())
    }

    /// Assigns ids to the groups in order, and writes the ids to the places of the pairs.
    fn name(
        &mut self,
        shared: &Shared,
        sorted: Sorted,
        groups_at: u64,
        num_new: usize,
    ) -> Result<(), GpuError> {
        let (kernels, arrays) = (self.kernels, self.arrays.at);
        let group_ids = at(shared.at.group_ids);
        let name = [
            at(groups_at),
            number(num_new),
            number(self.num_pairs),
            at(sorted.pairs.keys_at),
            Argument::Short(sorted.symbol_bits),
            at(shared.at.group_starts),
            at(arrays.pairs),
            at(arrays.counts),
            at(arrays.uses),
            at(arrays.rule_of_pair),
            group_ids,
        ];
        let answer = [
            at(sorted.pairs.values_at),
            number(sorted.len),
            at(shared.mask(Mask::Heads)),
            at(shared.at.head_sums),
            group_ids,
            at(self.ids_at()),
        ];
        // SAFETY: the arguments match the kernels; there is room for the ids.
        unsafe {
            kernels.launch(&kernels.number, num_new, &name)?;
            kernels.launch(&kernels.answer, sorted.len, &answer)?;
        }
        self.num_pairs += num_new;
        Ok(())
    }

    /// Returns the count of the most frequent pair; 0 if no pair is repeated.
    pub(super) fn largest_count(&self, shared: &Shared) -> Result<u32, GpuError> {
        let device = &self.kernels.device;
        let arguments = [at(self.arrays.at.counts), number(self.num_pairs), at(shared.at.largest)];
        // SAFETY: the arguments match the kernel; there is a count for each id.
        unsafe {
            clear(device, shared.at.largest, size_of::<u32>())?;
            self.kernels.launch(&self.kernels.largest, self.num_pairs, &arguments)?;
        }
        one_to_host(device, &shared.largest, 0)
    }
}
