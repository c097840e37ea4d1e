//! Names that always stand together, as one symbol.
//!
//! ```text
//! names      0 1 2 3 .  5 1 2 3 .  5 1 4      1 2 3 is no chain: 4 may follow 1; 2 3 is one
//! symbols    0 1 2   |  5 1 2   |  5 1 4 |    where each begins is kept beside
//! ```
//!
//! Where b follows every a, and a stands before every b, no maximal repeat begins with b or ends with
//! a, so all of them are made of whole chains. (The same step makes unitigs of the graph of k-mers
//! when genomes are assembled.) A stretch of names ends in [`END`]. What stands before or behind a
//! stretch is too seldom to be part of a phrase; it differs from everything, as a border does.
//! O(names), 8 bytes a name.

use super::grams::NONE;

/// The symbol behind a stretch of names.
pub(super) const END: u32 = NONE;
/// Nothing stood there yet. No name: of n positions at most n / 2 have different ones.
const UNSEEN: u32 = NONE - 1;

/// A text of chains.
#[derive(Debug)]
pub(super) struct Chains {
    symbols: Vec<u32>,
    starts: Vec<u32>,
}

impl Chains {
    /// Joins `names`, of which there are `num_names` different ones.
    pub fn new(names: &[u32], num_names: usize) -> Self {
        let neighbours = Neighbours::new(names, num_names);
        let mut chains = Self { symbols: Vec::new(), starts: Vec::new() };
        let mut last = NONE;
        for (position, &name) in names.iter().chain([&NONE]).enumerate() {
            let goes_on = neighbours.are_one(last, name);
            if !goes_on && (last != NONE || name != NONE) {
                chains.symbols.push(name);
                chains.starts.push(position as u32);
            }
            last = name;
        }
        chains
    }

    /// Chains by their first names, which order as their words do, [`END`] behind each stretch.
    pub fn symbols(&self) -> &[u32] {
        &self.symbols
    }

    /// Where the chain at `index` begins in the text, or the position behind a stretch.
    pub fn start(&self, index: usize) -> u32 {
        self.starts[index]
    }

    /// What stands before the chain at `index`; [`END`] for what differs from everything.
    pub fn before(&self, index: usize) -> u32 {
        index.checked_sub(1).map_or(END, |before| self.symbols[before])
    }
}

/// What stands before and behind each name, [`NONE`] where that is not always the same.
struct Neighbours {
    before: Vec<u32>,
    behind: Vec<u32>,
}

impl Neighbours {
    fn new(names: &[u32], num_names: usize) -> Self {
        let mut found = Self { before: vec![UNSEEN; num_names], behind: vec![UNSEEN; num_names] };
        let mut last = NONE;
        for &name in names.iter().chain([&NONE]) {
            note(&mut found.behind, last, name);
            note(&mut found.before, name, last);
            last = name;
        }
        found
    }

    /// Whether `name` stands behind every `last`, and `last` before every `name`.
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
