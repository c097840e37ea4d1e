//! Words of one segment that can stand at one place of a phrase.
//!
//! ```text
//! power       12..13                 one id
//! pow*        12..40                 ids are in byte order of words, so a prefix is a range
//! *ing        first 7, 1001 0000…    many ranges become a bitmap from the first id on
//! ```
//!
//! A look-up takes one or two steps however large the set is. The set takes V / 8 bytes at most.
//!
//! # Search of a dictionary
//!
//! Search for the tokens of a dictionary that contain some bytes, in one pass over the arena, where
//! tokens are stored end to end.

use std::ops::Range;

use memchr::memmem::Finder;
use rayon::prelude::*;
use regex_automata::meta::Regex;

use crate::ids::WordId;
use crate::segment::{Occurrence, Segment};
use crate::text::Dictionary;

/// Number of ranges above which a set becomes a bitmap.
const MAX_RANGES: usize = 4;

/// A set of word ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::query) struct WordSet {
    /// Ranges in ascending order, with ids between them that are not in the set; empty if there is
    /// a bitmap.
    ranges: Vec<Range<u32>>,
    /// Id of the lowest bit of `bits`.
    first: u32,
    bits: Vec<u64>,
}

impl WordSet {
    /// Creates the set of the words of `range`.
    pub fn from_range(range: Range<u32>) -> Self {
        let ranges = if range.is_empty() { Vec::new() } else { vec![range] };
        Self { ranges, ..Self::default() }
    }

    /// Creates the set of the words `ids`, which ascend.
    pub fn from_ids(ids: &[u32]) -> Self {
        let mut ranges: Vec<Range<u32>> = Vec::new();
        for &id in ids {
            if let Some(last) = ranges.last_mut().filter(|last| last.end == id) {
                last.end += 1;
                continue;
            }
            if ranges.len() == MAX_RANGES {
                return Self::bitmap(ids);
            }
            ranges.push(id..id + 1);
        }
        Self { ranges, ..Self::default() }
    }

    fn bitmap(ids: &[u32]) -> Self {
        let (Some(&first), Some(&last)) = (ids.first(), ids.last()) else {
            return Self::default();
        };
        let mut bits = vec![0; (last - first) as usize / 64 + 1];
        ids.iter().map(|id| id - first).for_each(|at| bits[at as usize / 64] |= 1 << (at % 64));
        Self { ranges: Vec::new(), first, bits }
    }

    /// Returns true if there is no word.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.bits.is_empty()
    }

    /// Returns the word, if the set has exactly one.
    pub fn only(&self) -> Option<WordId> {
        match &self.ranges[..] {
            [range] if range.len() == 1 => Some(range.start.into()),
            _ => None,
        }
    }

    /// Returns true if `word` is in the set. It is false for a number that is no word of the
    /// segment.
    #[inline]
    pub fn contains(&self, word: u32) -> bool {
        if self.bits.is_empty() {
            return self.ranges.iter().any(|range| range.contains(&word));
        }
        let at = word.wrapping_sub(self.first);
        self.bits.get(at as usize / 64).is_some_and(|bits| bits >> (at % 64) & 1 != 0)
    }

    /// Returns the words, in ascending order.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        let first = self.first;
        let from_bits = self.bits.iter().zip(0u32..).flat_map(move |(&bits, at)| {
            let mut rest = bits;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(first + at * 64 + bit)
            })
        });
        self.ranges.iter().cloned().flatten().chain(from_bits)
    }

    /// Returns the number of occurrences of the words in the segment; O(set).
    pub fn weight(&self, segment: &Segment) -> u64 {
        let weights = segment.weights_or_derive();
        // Each weight is a share of the words of the segment, whose number is below 2^64.
        self.ids().map(|id| weights[id as usize]).sum()
    }

    /// Returns the positions of the words, one word after the other.
    pub fn positions(&self, segment: &Segment) -> Vec<Occurrence> {
        let inverse = segment.inverse_or_derive();
        self.ids().flat_map(|id| inverse.for_element(id)).copied().collect()
    }
}

/// Number of tokens that one task of a dictionary search reads.
const TOKENS_PER_TASK: usize = 1 << 15;

/// Returns the `ids` for which `fits` is true, in ascending order.
pub(in crate::query) fn filtered(ids: Range<u32>, fits: impl Fn(u32) -> bool + Sync) -> Vec<u32> {
    ids.into_par_iter().with_min_len(TOKENS_PER_TASK).filter(|&id| fits(id)).collect()
}

/// Returns the tokens of `ids` that contain `needle`, in ascending order, by a search over the
/// arena.
pub(in crate::query) fn tokens_containing(dictionary: &Dictionary, ids: Range<u32>, needle: &[u8]) -> Vec<u32> {
    let finder = Finder::new(needle);
    let found = |bytes: &[u8]| finder.find(bytes).map(|at| at..at + needle.len());
    tasks(ids).flat_map_iter(|ids| search_range(dictionary, ids, found, (true, true))).collect()
}

/// Returns the tokens of `ids` that contain the text of `finder`, in ascending order. If `is_open`
/// is false in front of it or behind it, a token begins or ends with it.
pub(in crate::query) fn tokens_containing_any_case(
    dictionary: &Dictionary,
    ids: Range<u32>,
    finder: &AnyCaseFinder,
    is_open: (bool, bool),
) -> Vec<u32> {
    // Each task has its own copy, so that tasks do not wait for each other's scratch memory.
    let search = |AnyCaseFinder(regex): &mut AnyCaseFinder, ids: Range<u32>| {
        let found = |bytes: &[u8]| regex.find(bytes).map(|found| found.range());
        search_range(dictionary, ids, found, is_open)
    };
    tasks(ids).map_init(|| finder.clone(), search).flatten_iter().collect()
}

/// A text that is searched for in any case, by Unicode's simple case folding.
#[derive(Debug, Clone)]
pub(in crate::query) struct AnyCaseFinder(Regex);

impl AnyCaseFinder {
    /// Creates a finder of `text`; `None` if it is too long to be searched for.
    pub fn new(text: &str) -> Option<Self> {
        let syntax = regex_automata::util::syntax::Config::new().case_insensitive(true);
        let regex = Regex::builder().syntax(syntax).build(&regex_syntax::escape(text));
        regex.ok().map(Self)
    }
}

/// Returns the ids of each task of a search.
fn tasks(ids: Range<u32>) -> impl IndexedParallelIterator<Item = Range<u32>> {
    let starts: Vec<u32> = ids.clone().step_by(TOKENS_PER_TASK).collect();
    let end_of = move |start: u32| ids.end.min(start.saturating_add(TOKENS_PER_TASK as u32));
    starts.into_par_iter().map(move |start| start..end_of(start))
}

/// Returns the tokens of `ids` with a place that `find` finds, at their border where `is_open` is
/// false.
fn search_range(
    dictionary: &Dictionary,
    ids: Range<u32>,
    find: impl Fn(&[u8]) -> Option<Range<usize>>,
    is_open: (bool, bool),
) -> Vec<u32> {
    let offsets = &dictionary.offsets()[..=ids.end as usize];
    let end = offsets[ids.end as usize] as usize;
    let mut at = offsets[ids.start as usize] as usize;
    let mut first_id = ids.start as usize;
    let mut found = Vec::new();
    while let Some(hit) = find(&dictionary.bytes()[at..end]) {
        let hit = at + hit.start..at + hit.end;
        // The last token that starts at or before the hit. Empty tokens before it have the same
        // start.
        first_id += offsets[first_id..].partition_point(|&offset| offset as usize <= hit.start) - 1;
        let token = offsets[first_id] as usize..offsets[first_id + 1] as usize;
        let is_inside =
            hit.end <= token.end && (is_open.0 || hit.start == token.start) && (is_open.1 || hit.end == token.end);
        if is_inside {
            found.push(first_id as u32);
            at = token.end;
        } else {
            at = hit.start + 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_tree_set(ids in prop::collection::btree_set(0u32..300, 0..40), base in 0u32..1000) {
            let ids: BTreeSet<u32> = ids.iter().map(|id| id + base).collect();
            let set = WordSet::from_ids(&ids.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.ids().collect::<Vec<_>>(), ids.iter().copied().collect::<Vec<_>>());
            prop_assert!((0..1400).chain([u32::MAX]).all(|id| set.contains(id) == ids.contains(&id)));
            prop_assert_eq!(set.is_empty(), ids.is_empty());
            let only = ids.first().copied().filter(|_| ids.len() == 1).map(WordId::from);
            prop_assert_eq!(set.only(), only);
        }

        #[test]
        fn ranges_are_sets(start in 0u32..100, len in 0u32..100) {
            let ids: Vec<u32> = (start..start + len).collect();
            prop_assert_eq!(WordSet::from_range(start..start + len), WordSet::from_ids(&ids));
        }
    }
}
