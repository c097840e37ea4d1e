//! Chains: names that always stand together, replaced by one symbol.
//!
//! ```text
//! names      0 1 2 3 .  5 1 2 3 .  5 1 4      1 2 3 is no chain: 4 may follow 1; 2 3 is one
//! symbols    0 1 2   |  5 1 2   |  5 1 4 |    the start of each is kept, too
//! ```
//!
//! Assume that b follows every a, and that a stands before every b. Then no maximal repeat begins
//! with b or ends with a, so every maximal repeat consists of whole chains. (The same step makes
//! unitigs of the graph of k-mers in genome assembly.) A run of names ends in [`END`]. The words
//! before and behind a run occur too seldom to be part of a phrase; like a border, they differ from
//! everything. O(names), 8 bytes for each name.

use crate::error::Result;
use crate::interrupt::Canceller;

use super::grams::NONE;

/// Symbol behind a run of names.
pub(super) const END: u32 = NONE;
/// Mark of a name without a neighbour yet. It is no name, because n positions have at most n / 2
/// distinct names.
const UNSEEN: u32 = NONE - 1;

/// Text as a sequence of chains.
#[derive(Debug)]
pub(super) struct Chains {
    symbols: Vec<u32>,
    starts: Vec<u32>,
}

impl Chains {
    /// Joins `names`, of which `num_names` are distinct, to chains.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn new(names: &[u32], num_names: usize, canceller: Canceller<'_>) -> Result<Self> {
        let neighbours = Neighbours::new(names, num_names, canceller)?;
        let mut interrupt = canceller.interrupt();
        let mut chains = Self { symbols: Vec::new(), starts: Vec::new() };
        let mut last = NONE;
        for (position, &name) in names.iter().chain([&NONE]).enumerate() {
            interrupt.check()?;
            let goes_on = neighbours.are_one(last, name);
            if !goes_on && (last != NONE || name != NONE) {
                chains.symbols.push(name);
                chains.starts.push(position as u32);
            }
            last = name;
        }
        Ok(chains)
    }

    /// Returns the chains as their first names, with [`END`] behind each run. These names have the
    /// same order as their words.
    pub fn symbols(&self) -> &[u32] {
        &self.symbols
    }

    /// Returns the start of the chain at `index` in the text, or the position behind a run.
    pub fn start(&self, index: usize) -> u32 {
        self.starts[index]
    }

    /// Returns the symbol before the chain at `index`, or [`END`] if that differs from everything.
    pub fn before(&self, index: usize) -> u32 {
        index.checked_sub(1).map_or(END, |before| self.symbols[before])
    }
}

/// Names before and behind each name, or [`NONE`] if they are not always the same.
struct Neighbours {
    before: Vec<u32>,
    behind: Vec<u32>,
}

impl Neighbours {
    fn new(names: &[u32], num_names: usize, canceller: Canceller<'_>) -> Result<Self> {
        let mut interrupt = canceller.interrupt();
        let mut found = Self { before: vec![UNSEEN; num_names], behind: vec![UNSEEN; num_names] };
        let mut last = NONE;
        for &name in names.iter().chain([&NONE]) {
            interrupt.check()?;
            note(&mut found.behind, last, name);
            note(&mut found.before, name, last);
            last = name;
        }
        Ok(found)
    }

    /// Returns true if `name` follows every `last`, and `last` stands before every `name`.
    fn are_one(&self, last: u32, name: u32) -> bool {
        last != NONE
            && name != NONE
            && self.behind[last as usize] == name
            && self.before[name as usize] == last
    }
}

fn note(neighbours: &mut [u32], of: u32, neighbour: u32) {
    if let Some(slot) = neighbours.get_mut(of as usize) {
        let is_same = *slot == UNSEEN || *slot == neighbour;
        *slot = if is_same { neighbour } else { NONE };
    }
}
