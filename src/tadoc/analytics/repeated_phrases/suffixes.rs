//! Sorted suffixes of a text of symbols, and the lengths of the prefixes that neighbours share.
//!
//! Suffixes with the same first symbols form a group. Each round sorts the suffixes of a group by
//! the group of the text behind these symbols, which doubles the sorted length (Larsson, Sadakane,
//! "Faster suffix sorting", 2007). Groups of one suffix are finished. Common prefixes are then
//! computed in the order of the text (Kasai, Lee, Arimura, Arikawa, Park, 2001). O(symbols * log²
//! symbols), nearly linear if few groups are large; 20 bytes for each symbol.

use std::ops::Range;

use crate::analytics::checked_sort::sort_checked;
use crate::error::Result;
use crate::interrupt::{Canceller, Interrupt};

use super::chains::END;

/// Suffixes of a text that ends in [`END`]. Each [`END`] differs from every other one.
#[derive(Debug)]
pub(super) struct Suffixes {
    order: Vec<u32>,
    common: Vec<u32>,
}

impl Suffixes {
    /// Sorts the suffixes of `symbols`. A suffix precedes the longer ones that begin with it.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn new(symbols: &[u32], canceller: Canceller<'_>) -> Result<Self> {
        let mut sorting = Sorting::new(symbols, canceller)?;
        let mut depth = 1;
        while !sorting.open.is_empty() {
            sorting.deepen(depth)?;
            depth *= 2;
        }
        let interrupt = &mut sorting.interrupt;
        let common = common_prefixes(symbols, &sorting.order, &sorting.ranks, interrupt)?;
        Ok(Self { order: sorting.order, common })
    }

    /// Returns the start of each suffix, in sorted order.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Returns the number of symbols that the suffix at `index` of the order shares with the suffix
    /// before it.
    pub fn common(&self, index: usize) -> u32 {
        self.common[index]
    }
}

/// Suffixes in groups, while they are sorted.
struct Sorting<'a> {
    order: Vec<u32>,
    /// Start of the group in the order, by position.
    ranks: Vec<u32>,
    /// Groups of more than one suffix.
    open: Vec<Range<usize>>,
    /// Rank and position of the members of one group.
    keys: Vec<u64>,
    canceller: Canceller<'a>,
    interrupt: Interrupt<'a>,
}

impl<'a> Sorting<'a> {
    /// Groups the suffixes by their first symbol. Ends come first, each in its own group.
    fn new(symbols: &[u32], canceller: Canceller<'a>) -> Result<Self> {
        let len = symbols.len();
        let num_ends = symbols.iter().filter(|&&symbol| symbol == END).count();
        let mut sorting = Self {
            order: vec![0; len],
            ranks: vec![0; len],
            open: Vec::new(),
            keys: Vec::with_capacity(len),
            canceller,
            interrupt: canceller.interrupt(),
        };
        let positions = || (0u32..).zip(symbols);
        let ends = positions().filter(|(_, symbol)| **symbol == END);
        for ((position, _), rank) in ends.zip(0..) {
            sorting.interrupt.check()?;
            sorting.order[rank as usize] = position;
            sorting.ranks[position as usize] = rank;
        }
        let others = positions().filter(|(_, symbol)| **symbol != END);
        sorting.keys.extend(others.map(|(position, &symbol)| key(symbol, position)));
        sorting.split(num_ends..len)?;
        Ok(sorting)
    }

    /// Sorts each open group by the text behind the first `depth` symbols, which its members have
    /// in common.
    fn deepen(&mut self, depth: usize) -> Result<()> {
        for group in std::mem::take(&mut self.open) {
            self.interrupt.pass(group.len())?;
            let members = self.order[group.clone()].iter();
            // The common prefix of a group of several suffixes contains no end, so text follows it.
            let ranks = &self.ranks;
            self.keys.clear();
            self.keys.extend(members.map(|&at| key(ranks[at as usize + depth], at)));
            self.split(group)?;
        }
        Ok(())
    }

    /// Splits `group`, whose members are in `keys`, into groups of equal rank. Ranks may have
    /// become finer during the round. That does no harm, because finer ranks have the order of the
    /// suffixes, too.
    fn split(&mut self, group: Range<usize>) -> Result<()> {
        sort_checked(&mut self.keys, |&key| key, self.canceller)?;
        let mut start = group.start;
        for same in self.keys.chunk_by(|a, b| a >> 32 == b >> 32) {
            self.interrupt.pass(same.len())?;
            let end = start + same.len();
            for (slot, &key) in self.order[start..end].iter_mut().zip(same) {
                *slot = key as u32;
                self.ranks[key as u32 as usize] = start as u32;
            }
            if same.len() > 1 {
                self.open.push(start..end);
            }
            start = end;
        }
        Ok(())
    }
}

fn key(rank: u32, position: u32) -> u64 {
    u64::from(rank) << 32 | u64::from(position)
}

fn common_prefixes(
    symbols: &[u32],
    order: &[u32],
    ranks: &[u32],
    interrupt: &mut Interrupt<'_>,
) -> Result<Vec<u32>> {
    let mut common = vec![0; order.len()];
    let mut len = 0;
    for (at, &rank) in ranks.iter().enumerate() {
        interrupt.check()?;
        let Some(before) = (rank as usize).checked_sub(1) else {
            len = 0;
            continue;
        };
        let other = order[before] as usize;
        while symbols[at + len] != END && symbols[at + len] == symbols[other + len] {
            interrupt.check()?;
            len += 1;
        }
        common[rank as usize] = len as u32;
        len = len.saturating_sub(1);
    }
    Ok(common)
}
