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

use crate::analytics::sequences::entries::{Entry, sorted_buckets};
use crate::error::Result;
use crate::interrupt::Canceller;

use super::text::BORDER;

/// Name of a sequence that is not repeated.
pub(super) const NONE: u32 = u32::MAX;

/// Number of positions of a parallel task.
const TASK_POSITIONS: usize = 1 << 16;

/// Returns the name of the `num_words` words that begin at each position of `text`, and the number
/// of names. The name is [`NONE`] if the words occur fewer than `min_count` times or cross a
/// border. The words of `text` are below `num_rows`.
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled).
pub(super) fn name(
    text: &[u32],
    num_rows: usize,
    num_words: usize,
    min_count: usize,
    canceller: Canceller<'_>,
) -> Result<(Vec<u32>, usize)> {
    let mut names = vec![NONE; text.len()];
    let bits = (usize::BITS - num_rows.saturating_sub(1).leading_zeros()).clamp(1, u32::BITS);
    let mut len = ((u64::BITS / bits) as usize).min(num_words);
    let entries = packed(text, bits, len, canceller)?;
    let last = u64::MAX >> (u64::BITS - bits * len as u32);
    let mut num_names = assign(entries, last, min_count, &mut names, canceller)?;
    while len < num_words && num_names > 0 {
        let step = len.min(num_words - len);
        let entries = paired(&names, step, canceller)?;
        let last = (num_names as u64) << 32;
        num_names = assign(entries, last, min_count, &mut names, canceller)?;
        len += step;
    }
    Ok((names, num_names))
}

/// Packs every sequence of `len` words without a border into a key, with `bits` bits for each word. The
/// value of an entry is its position.
fn packed(
    text: &[u32],
    bits: u32,
    len: usize,
    canceller: Canceller<'_>,
) -> Result<Vec<Vec<Entry>>> {
    let mask = u64::MAX >> (u64::BITS - bits * len as u32);
    let mut tasks = Vec::with_capacity(text.len().div_ceil(TASK_POSITIONS));
    let (mut key, mut num_before, mut end) = (0u64, 0usize, 0usize);
    for words in text.chunks(TASK_POSITIONS) {
        canceller.check()?;
        let mut entries = Vec::with_capacity(words.len());
        for &word in words {
            end += 1;
            if word == BORDER {
                num_before = 0;
                continue;
            }
            key = (key << bits | u64::from(word)) & mask;
            num_before += 1;
            if num_before >= len {
                entries.push(Entry { key, value: (end - len) as u64 });
            }
        }
        tasks.push(entries);
    }
    Ok(tasks)
}

/// Pairs every name with the name `step` positions later.
fn paired(names: &[u32], step: usize, canceller: Canceller<'_>) -> Result<Vec<Vec<Entry>>> {
    let starts: Vec<usize> = (0..names.len()).step_by(TASK_POSITIONS).collect();
    let entries = |start: usize| {
        canceller.check()?;
        let end = names.len().min(start + TASK_POSITIONS);
        let pairs =
            names[start..end].iter().zip(names.iter().skip(start + step)).zip(start as u64..);
        let are_named =
            |&((&first, &second), _): &((&u32, &u32), u64)| first != NONE && second != NONE;
        let key = |first: u32, second: u32| u64::from(first) << 32 | u64::from(second);
        let entry = |((&first, &second), value)| Entry { key: key(first, second), value };
        Ok(pairs.filter(are_named).map(entry).collect())
    };
    starts.into_par_iter().map(entries).collect()
}

/// Gives names to the entries of all `tasks` whose key occurs `min_count` times or more, in order of keys,
/// which are at most `last`. Returns the number of names.
fn assign(
    tasks: Vec<Vec<Entry>>,
    last: u64,
    min_count: usize,
    names: &mut [u32],
    canceller: Canceller<'_>,
) -> Result<usize> {
    // Positions and names of a bucket, and its number of names.
    let named = |entries: &mut [Entry]| {
        let runs = entries.chunk_by(|a, b| a.key == b.key).filter(|run| run.len() >= min_count);
        let (mut places, mut num_names) = (Vec::new(), 0);
        for run in runs {
            places.extend(run.iter().map(|entry| (entry.value as u32, num_names)));
            num_names += 1;
        }
        Ok((places, num_names))
    };
    let buckets: Vec<(Vec<(u32, u32)>, u32)> = sorted_buckets(tasks, (0, last), canceller, named)?;
    names.fill(NONE);
    let mut interrupt = canceller.interrupt();
    let mut num_names = 0;
    for (places, num_added) in buckets {
        for (position, name) in places {
            interrupt.check()?;
            names[position as usize] = num_names + name;
        }
        num_names += num_added;
    }
    Ok(num_names as usize)
}
