//! Device memory of the rounds.
//!
//! ```text
//! Arrays    symbols, ids      elements x 4, twice: each round writes them again
//!           starts            starts of chunks
//!           pairs ... numbers by id of a pair: x 8, counts, uses, rules x 4 each
//!           rules             x 8
//! Shared    keys              pairs to number, with their places: x 24
//!           groups            repeated ones, by shard: x 16
//!           masks             9 bits an element; sums for each word
//! ```
//!
//! Addresses are requested once, because cudarc records events on each request.

use crate::corpus::launch::address;
use crate::corpus::sort_space::{SortSpace, num_sums};
use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use tadoc::grammar::schedule::CHUNK_LEN;

const WHAT: &str = "rounds of a grammar";

/// Additional ids beyond half the number of elements, for repeated pairs of short sequences and of
/// new rules.
const MORE_PAIRS: usize = 1 << 20;

/// Masks of a sequence.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mask {
    Candidates,
    LeftFirst,
    RightFirst,
    Chosen,
    Replaced,
    Places,
    Ends,
    Heads,
    Seconds,
}

const NUM_MASKS: usize = Mask::Seconds as usize + 1;

/// Room for a sequence.
#[derive(Debug)]
pub(super) struct Space {
    /// Largest number of elements.
    pub(super) capacity: usize,
    pub(super) sequence: Arrays,
    pub(super) shared: Shared,
}

impl Space {
    pub(super) fn new(device: &Device, capacity: usize) -> Result<Self, GpuError> {
        let sequence = Arrays::new(device, capacity)?;
        let shared = Shared::new(device, capacity, sequence.max_pairs)?;
        Ok(Self { capacity, sequence, shared })
    }
}

/// The arrays of a sequence and its pairs.
#[derive(Debug)]
pub(super) struct Arrays {
    pub(super) symbols: [DeviceBuffer<u32>; 2],
    pub(super) ids: [DeviceBuffer<u32>; 2],
    pub(super) starts: DeviceBuffer<u32>,
    pub(super) rules: DeviceBuffer<u64>,
    pub(super) numbers: DeviceBuffer<u32>,
    _pairs: DeviceBuffer<u64>,
    _counts: [DeviceBuffer<u32>; 3],
    pub(super) max_pairs: usize,
    pub(super) at: ArraysAt,
}

/// Addresses of the arrays.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArraysAt {
    pub(super) symbols: [u64; 2],
    pub(super) ids: [u64; 2],
    pub(super) starts: u64,
    pub(super) pairs: u64,
    pub(super) counts: u64,
    pub(super) uses: u64,
    pub(super) rule_of_pair: u64,
    pub(super) numbers: u64,
    pub(super) rules: u64,
}

impl Arrays {
    fn new(device: &Device, capacity: usize) -> Result<Self, GpuError> {
        // An id takes two places, and there are at most three places per element.
        let max_pairs = (capacity + capacity / 2).min(capacity / 2 + MORE_PAIRS) + 1;
        // A rule removes two elements.
        let max_rules = capacity / 2 + 1;
        let elements = || device.alloc(WHAT, capacity);
        let numbers = || device.alloc(WHAT, max_pairs + 1);
        let symbols: [DeviceBuffer<u32>; 2] = [elements()?, elements()?];
        let ids: [DeviceBuffer<u32>; 2] = [elements()?, elements()?];
        let starts = device.alloc(WHAT, capacity.div_ceil(CHUNK_LEN))?;
        let pairs: DeviceBuffer<u64> = device.alloc(WHAT, max_pairs)?;
        let [counts, uses, rule_of_pair, numbers]: [DeviceBuffer<u32>; 4] =
            [numbers()?, numbers()?, numbers()?, numbers()?];
        let rules = device.alloc(WHAT, max_rules)?;
        let at = ArraysAt {
            symbols: [address(device, &symbols[0]), address(device, &symbols[1])],
            ids: [address(device, &ids[0]), address(device, &ids[1])],
            starts: address(device, &starts),
            pairs: address(device, &pairs),
            counts: address(device, &counts),
            uses: address(device, &uses),
            rule_of_pair: address(device, &rule_of_pair),
            numbers: address(device, &numbers),
            rules: address(device, &rules),
        };
        let _counts = [counts, uses, rule_of_pair];
        Ok(Self { symbols, ids, starts, rules, numbers, _pairs: pairs, _counts, max_pairs, at })
    }
}

/// The arrays that the steps of a round use in turn.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) keys: SortSpace<u64>,
    pub(super) groups: SortSpace<u32>,
    _masks: DeviceBuffer<u32>,
    mask_bytes: u64,
    /// Replacements per word of elements, with new pairs in the high half.
    pub(super) sums: DeviceBuffer<u64>,
    pub(super) head_sums: DeviceBuffer<u32>,
    pub(super) second_sums: DeviceBuffer<u32>,
    pub(super) wide_tiles: DeviceBuffer<u64>,
    pub(super) narrow_tiles: DeviceBuffer<u32>,
    _group_starts: DeviceBuffer<u32>,
    _group_ids: DeviceBuffer<u32>,
    pub(super) pass_counts: DeviceBuffer<u32>,
    pub(super) pass_masks: DeviceBuffer<u32>,
    pub(super) largest: DeviceBuffer<u32>,
    pub(super) at: SharedAt,
}

/// Addresses of the shared arrays.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedAt {
    masks: u64,
    pub(super) sums: u64,
    pub(super) head_sums: u64,
    pub(super) second_sums: u64,
    pub(super) group_starts: u64,
    pub(super) group_ids: u64,
    pub(super) pass_counts: u64,
    pub(super) pass_masks: u64,
    pub(super) largest: u64,
}

/// Largest number of passes that number pairs. It exceeds the number that 2^30 elements need.
pub(super) const MAX_PASSES: usize = 256;

impl Shared {
    fn new(device: &Device, capacity: usize, max_pairs: usize) -> Result<Self, GpuError> {
        // A warp writes its word even if the word lies after the last element.
        let num_words = capacity.div_ceil(32) + 8;
        let masks: DeviceBuffer<u32> = device.alloc(WHAT, NUM_MASKS * num_words)?;
        let sums = device.alloc(WHAT, num_words + 1)?;
        let head_sums = device.alloc(WHAT, num_words + 1)?;
        let second_sums = device.alloc(WHAT, num_words + 1)?;
        let group_starts = device.alloc(WHAT, capacity + 1)?;
        let group_ids = device.alloc(WHAT, capacity)?;
        let pass_counts = device.alloc(WHAT, MAX_PASSES)?;
        let pass_masks = device.alloc(WHAT, MAX_PASSES)?;
        let largest = device.alloc(WHAT, 1)?;
        let at = SharedAt {
            masks: address(device, &masks),
            sums: address(device, &sums),
            head_sums: address(device, &head_sums),
            second_sums: address(device, &second_sums),
            group_starts: address(device, &group_starts),
            group_ids: address(device, &group_ids),
            pass_counts: address(device, &pass_counts),
            pass_masks: address(device, &pass_masks),
            largest: address(device, &largest),
        };
        Ok(Self {
            keys: SortSpace::new(device, capacity)?,
            groups: SortSpace::new(device, capacity / 2 + 1)?,
            mask_bytes: (num_words * size_of::<u32>()) as u64,
            _masks: masks,
            sums,
            head_sums,
            second_sums,
            wide_tiles: device.alloc(WHAT, num_sums(num_words))?,
            narrow_tiles: device.alloc(WHAT, num_sums(num_words.max(max_pairs)))?,
            _group_starts: group_starts,
            _group_ids: group_ids,
            pass_counts,
            pass_masks,
            largest,
            at,
        })
    }

    /// Returns the address of a mask.
    pub(super) fn mask(&self, mask: Mask) -> u64 {
        self.at.masks + mask as u64 * self.mask_bytes
    }
}
