//! Passes: one walk if all windows fit into memory, else several walks over ranges of sequences.
//!
//! ```text
//! walk 1    all               too much: given up
//! walk 2    how many where    | 12 | 3 | 90 | 7 |        a range that alone is too much is cut again
//! walks     [12 3] [90] [7]   kept, counted, sent, forgotten
//! ```
//!
//! A range is cut while it has more than one sequence. So an error means that one sequence occurs
//! more often than memory can hold. O(walks * grammar), where the number of walks is (windows met /
//! windows that fit) + 2.

use std::ops::Range;
use std::sync::Arc;

use crate::analytics::Vocabulary;
use crate::error::{Error, Result};

use super::Sink;
use super::keep::{Keep, Tally};
use super::key::Key;
use super::limit::Limit;
use super::walk::Walk;

/// Maximum number of ranges of a tally (2 to this), with 8 bytes each.
const TALLY_BITS: u32 = 16;
const LEAST_TALLY_BITS: u32 = 4;

/// Range of keys that is counted separately: the first key and the last.
pub(in crate::analytics) type KeyRange<K> = (K, K);

/// Returns the keys of `key_bits` bits that begin with one of `words`, of `word_bits` bits each. Returns
/// `None` if there are no words.
pub(in crate::analytics) fn keys_of<K: Key>(
    words: Range<usize>,
    word_bits: u32,
    key_bits: u32,
) -> Option<KeyRange<K>> {
    let rest = key_bits - word_bits;
    let first_of = |word: usize| K::default().with_value(word as u32, 0).with_value(0, rest);
    let last = words.clone().next_back()?;
    Some((first_of(words.start), first_of(last).joined(K::ones(rest))))
}

/// Calls `take` for each pass, until it returns false. `take` gets the sinks of a walk, the range
/// of their keys (`within`, or all keys below 2^`key_bits`; one range of these after another if memory
/// is short), and the bytes that the walk still holds. `new` makes sinks.
///
/// # Errors
/// [`Error::Capacity`] if one sequence alone is met more often than `limit` allows,
/// [`Error::Cancelled`], and the errors of `take`.
pub(in crate::analytics) fn for_each_pass<K: Key, S: Sink + Send>(
    walk: Walk,
    vocabulary: &Vocabulary,
    limit: &Limit<'_>,
    (key_bits, within): (u32, Option<KeyRange<K>>),
    new: impl Fn(Keep<K>) -> S + Sync,
    mut take: impl FnMut(Vec<S>, KeyRange<K>, usize) -> Result<bool>,
) -> Result<()> {
    let all = within.unwrap_or((K::default(), K::ones(key_bits)));
    match walk.tasks(vocabulary, limit, || new(Keep::from_range(within))) {
        Ok(sinks) => {
            drop(walk);
            return take(sinks, all, 0).map(drop);
        }
        Err(Error::Capacity { .. }) => {}
        Err(error) => return Err(error),
    }
    let ranges = fitting_ranges(limit, key_bits, |keep| {
        walk.tasks(vocabulary, &limit.for_range(), || new(keep.clone())).map(drop)
    })?;
    for (first, last) in ranges {
        let (first, last) = (first.max(all.0), last.min(all.1));
        if first > last {
            continue;
        }
        let keep = Keep::Within(first, last);
        let sinks = walk.tasks(vocabulary, &limit.for_range(), || new(keep.clone()))?;
        if !take(sinks, (first, last), walk.memory_bytes())? {
            break;
        }
    }
    Ok(())
}

/// Returns ranges that together have all keys below 2^`key_bits`. Each has at most as many windows
/// as `limit` allows, unless a single key has more.
///
/// # Errors
/// The errors of `walk`.
pub(in crate::analytics) fn fitting_ranges<K: Key>(
    limit: &Limit<'_>,
    key_bits: u32,
    walk: impl Fn(&Keep<K>) -> Result<()>,
) -> Result<Vec<KeyRange<K>>> {
    let max_met = limit.max_met() as u64;
    let num_bits = (max_met + 1).ilog2().clamp(LEAST_TALLY_BITS, TALLY_BITS);
    let mut ranges: Vec<KeyRange<K>> = Vec::new();
    // Number of windows met in the last of `ranges`.
    let mut num_met = u64::MAX;
    // Ranges still to cut, the first one last, with the number of windows met in each.
    let mut waiting = vec![(K::default(), key_bits, u64::MAX)];
    while let Some((first, bits, count)) = waiting.pop() {
        if count > max_met && bits > 0 {
            let tally = Arc::new(Tally::new(first, bits, num_bits));
            walk(&Keep::Counted(tally.clone()))?;
            let parts: Vec<_> = tally.counts().collect();
            waiting.extend(parts.iter().rev().map(|&(first, n)| (first, tally.shift(), n)));
            continue;
        }
        let last = first.joined(K::ones(bits));
        match ranges.last_mut().filter(|_| num_met.saturating_add(count) <= max_met) {
            Some(range) => {
                range.1 = last;
                num_met += count;
            }
            None => {
                ranges.push((first, last));
                num_met = count;
            }
        }
    }
    Ok(ranges)
}
