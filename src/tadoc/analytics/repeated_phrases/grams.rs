//! Names of repeated sequences of n words.
//!
//! ```text
//! text       a  b  c  d  |  x  b  c  d  |        n = 3, from names of 2 words
//! 2 words    .  0  1  .  .  .  0  1  .  .        b c = 0, c d = 1; a b and x b stand alone
//! 3 words    .  0  .  .  .  .  0  .  .  .        0 and the name one further on: b c d
//! ```
//!
//! Names are numbered in the sorted order of the sequences, so comparing names compares words. Two
//! overlapping names of l words give a name of up to 2 l words (Karp, Miller, Rosenberg, 1972). The
//! first names have as many words as fit 64 bits. In each round, sequences that occur too seldom
//! lose their name, and no longer sequence that begins there is considered; after one round, most
//! of a prose text has no name. O(words * log words) for each of the log n rounds.

use rayon::prelude::*;

use super::text::BORDER;

/// Name of a sequence that is not repeated.
pub(super) const NONE: u32 = u32::MAX;

/// Sequence that begins at a position of the text.
#[derive(Debug, Clone, Copy)]
struct Entry {
    key: u64,
    position: u32,
}

/// Returns the name of the `num_words` words that begin at each position of `text`, and the number
/// of names. The name is [`NONE`] if the words occur fewer than `min_count` times or cross a
/// border. The words of `text` are below `num_rows`.
pub(super) fn name(
    text: &[u32],
    num_rows: usize,
    num_words: usize,
    min_count: usize,
) -> (Vec<u32>, usize) {
    let mut names = vec![NONE; text.len()];
    let bits = (usize::BITS - num_rows.saturating_sub(1).leading_zeros()).clamp(1, u32::BITS);
    let mut len = ((u64::BITS / bits) as usize).min(num_words);
    let mut num_names = assign(packed(text, bits, len), min_count, &mut names);
    while len < num_words && num_names > 0 {
        let step = len.min(num_words - len);
        num_names = assign(paired(&names, step), min_count, &mut names);
        len += step;
    }
    (names, num_names)
}

/// Packs every sequence of `len` words without a border into a key, with `bits` bits for each word.
fn packed(text: &[u32], bits: u32, len: usize) -> Vec<Entry> {
    let mask = u64::MAX >> (u64::BITS - bits * len as u32);
    let mut entries = Vec::with_capacity(text.len());
    let (mut key, mut num_before) = (0u64, 0usize);
    for (end, &word) in text.iter().enumerate() {
        if word == BORDER {
            num_before = 0;
            continue;
        }
        key = (key << bits | u64::from(word)) & mask;
        num_before += 1;
        if num_before >= len {
            entries.push(Entry { key, position: (end + 1 - len) as u32 });
        }
    }
    entries
}

/// Pairs every name with the name `step` positions later.
fn paired(names: &[u32], step: usize) -> Vec<Entry> {
    let pairs = names.iter().zip(names.iter().skip(step)).zip(0..);
    pairs
        .filter(|((first, second), _)| **first != NONE && **second != NONE)
        .map(|((&first, &second), position)| Entry {
            key: u64::from(first) << 32 | u64::from(second),
            position,
        })
        .collect()
}

/// Gives names to the `entries` whose key occurs `min_count` times or more, in order of keys.
/// Returns the number of names.
fn assign(mut entries: Vec<Entry>, min_count: usize, names: &mut [u32]) -> usize {
    entries.par_sort_unstable_by_key(|entry| entry.key);
    names.fill(NONE);
    let runs = entries.chunk_by(|a, b| a.key == b.key).filter(|run| run.len() >= min_count);
    let mut num_names = 0;
    for run in runs {
        run.iter().for_each(|entry| names[entry.position as usize] = num_names);
        num_names += 1;
    }
    num_names as usize
}
