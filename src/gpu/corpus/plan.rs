//! The inverse grammar as `corpus_weights` adds it up: rows by level and length.
//!
//! ```text
//! element ──occurs in──▶ root 3 times, rules r, r, s       row: base 3, slots r r s
//! more than 64 slots     pieces of 64, each a row with a slot of its own, and a row of these
//! level                  after those of all its slots; terminals last
//! ```
//!
//! Inside a level the longest rows come first, so 32 neighbours are of about the same length and are
//! stored as a chunk, filled up with a slot that is 0. Built from the CPU's inverse grammar by two
//! counting sorts, O(G); 4 bytes for each occurrence outside the root, 8 bytes for each element.

use crate::dag::{Dag, Occurrence};
use crate::gpu::error::GpuError;

use super::check_limit;
use super::levels::MAX_LEVELS;

/// Slots of a row at most.
const MAX_ROW_LEN: usize = 64;
/// Rows of a chunk.
pub(super) const CHUNK_ROWS: usize = 32;
/// Stands for the slot of a row that is none.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// What the device gets; `kernels/corpus_weights.cu` draws the arrays.
#[derive(Debug)]
pub(super) struct PullPlan {
    /// Elements, partial sums, and one that stays 0.
    pub(super) num_slots: usize,
    pub(super) chunk_starts: Vec<u32>,
    pub(super) entries: Vec<u32>,
    pub(super) row_slots: Vec<u32>,
    pub(super) row_bases: Vec<u32>,
    /// First chunk of each level, and the end of the last one.
    pub(super) level_chunks: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Row<'a> {
    slot: u32,
    base: u32,
    level: u32,
    slots: Slots<'a>,
}

/// What a row adds up.
#[derive(Debug, Clone, Copy)]
enum Slots<'a> {
    /// The rules that hold an element.
    Rules(&'a [Occurrence]),
    /// So many partial sums from this one on.
    Pieces(u32, u32),
}

impl Slots<'_> {
    fn len(&self) -> usize {
        match self {
            Slots::Rules(places) => places.len(),
            Slots::Pieces(_, len) => *len as usize,
        }
    }

    fn at(&self, i: usize, num_terminals: u32) -> u32 {
        match self {
            Slots::Rules(places) => num_terminals + places[i].rule_idx,
            Slots::Pieces(first, _) => first + i as u32,
        }
    }

    fn part(&self, from: usize, to: usize) -> Self {
        match self {
            Slots::Rules(places) => Slots::Rules(&places[from..to]),
            Slots::Pieces(first, _) => Slots::Pieces(first + from as u32, (to - from) as u32),
        }
    }
}

/// Rows as they are made, rules before terminals.
struct Builder<'a> {
    dag: &'a Dag,
    rows: Vec<Row<'a>>,
    /// By slot, from the first rule on.
    levels: Vec<u32>,
}

impl PullPlan {
    /// The plan for `dag`.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] where the grammar is too deep, or has too many occurrences.
    pub(super) fn new(dag: &Dag) -> Result<Self, GpuError> {
        let num_elements = dag.num_elements();
        let zero_slot = num_elements as u32;
        // Pieces are few: one for 64 occurrences and their sums.
        let max_slots = num_elements + dag.grammar().symbols.len() / 32 + 2;
        check_limit("elements and partial sums of a grammar", max_slots, NO_SLOT as usize)?;
        let zero = Row { slot: zero_slot, base: 0, level: 0, slots: Slots::Rules(&[]) };
        let mut rows = Vec::with_capacity(num_elements + 1);
        rows.push(zero);
        let mut levels = vec![0; dag.grammar().num_rules() + 1];
        levels.reserve(dag.grammar().symbols.len() / 32);
        let mut builder = Builder { dag, rows, levels };
        for rule_idx in 0..dag.grammar().num_rules() as u32 {
            builder.add(dag.num_terminals() + rule_idx, None);
        }
        let num_rule_levels = builder.rows.iter().map(|row| row.level + 1).max().unwrap_or(0);
        for terminal in 0..dag.num_terminals() {
            builder.add(terminal, Some(num_rule_levels));
        }
        let num_slots = dag.num_terminals() as usize + builder.levels.len();
        let num_levels = builder.rows.iter().map(|row| row.level + 1).max().unwrap_or(0);
        check_limit("levels of a grammar", num_levels as usize, MAX_LEVELS)?;
        let order = by_level_and_len(&builder.rows, num_levels as usize);
        let mut plan = Self::empty(num_slots);
        plan.write(&builder.rows, &order, num_levels, dag.num_terminals())?;
        Ok(plan)
    }

    fn empty(num_slots: usize) -> Self {
        Self {
            num_slots,
            chunk_starts: vec![0],
            entries: Vec::new(),
            row_slots: Vec::new(),
            row_bases: Vec::new(),
            level_chunks: Vec::new(),
        }
    }

    /// Writes `rows` in this order, chunk by chunk.
    fn write(
        &mut self,
        rows: &[Row<'_>],
        order: &[u32],
        num_levels: u32,
        num_terminals: u32,
    ) -> Result<(), GpuError> {
        let zero_slot = rows[0].slot;
        let mut at = 0;
        for level in 0..num_levels {
            self.level_chunks.push(self.chunk_starts.len() as u32 - 1);
            while at < order.len() && rows[order[at] as usize].level == level {
                let rest = order[at..].iter().take(CHUNK_ROWS).map(|&row| &rows[row as usize]);
                let chunk: Vec<_> = rest.take_while(|row| row.level == level).collect();
                for i in 0..chunk.first().map_or(0, |longest| longest.slots.len()) {
                    self.entries.extend((0..CHUNK_ROWS).map(|lane| {
                        let row = chunk.get(lane).filter(|row| i < row.slots.len());
                        row.map_or(zero_slot, |row| row.slots.at(i, num_terminals))
                    }));
                }
                for lane in 0..CHUNK_ROWS {
                    self.row_slots.push(chunk.get(lane).map_or(NO_SLOT, |row| row.slot));
                    self.row_bases.push(chunk.get(lane).map_or(0, |row| row.base));
                }
                // The kernel adds up to 128 to places before it compares them.
                let max_entries = u32::MAX as usize - 128;
                check_limit("entries of an inverse grammar", self.entries.len(), max_entries)?;
                self.chunk_starts.push(self.entries.len() as u32);
                at += chunk.len();
            }
        }
        self.level_chunks.push(self.chunk_starts.len() as u32 - 1);
        Ok(())
    }
}

impl<'a> Builder<'a> {
    /// Adds the rows of `element`; where `level` is given, its pieces begin there, and it comes after
    /// them.
    fn add(&mut self, element: u32, level: Option<u32>) {
        let dag = self.dag;
        let places = dag.inverse().of(element);
        let num_in_root = places.partition_point(|place| place.rule_idx == 0);
        let is_root = element == dag.num_terminals();
        let base = num_in_root as u32 + u32::from(is_root);
        let mut slots = Slots::Rules(&places[num_in_root..]);
        let mut level = level;
        while slots.len() > MAX_ROW_LEN {
            let first_piece = dag.num_terminals() + self.levels.len() as u32;
            let len = slots.len();
            for from in (0..len).step_by(MAX_ROW_LEN) {
                let part = slots.part(from, len.min(from + MAX_ROW_LEN));
                let slot = dag.num_terminals() + self.levels.len() as u32;
                let level = level.unwrap_or_else(|| self.level_after(part));
                self.rows.push(Row { slot, base: 0, level, slots: part });
                self.levels.push(level);
            }
            slots = Slots::Pieces(first_piece, len.div_ceil(MAX_ROW_LEN) as u32);
            level = level.map(|level| level + 1);
        }
        let level = level.unwrap_or_else(|| self.level_after(slots));
        self.rows.push(Row { slot: element, base, level, slots });
        if let Some(rule_idx) = dag.rule_of(element) {
            self.levels[rule_idx] = level;
        }
    }

    /// The first level that all of `slots` lie before.
    fn level_after(&self, slots: Slots<'_>) -> u32 {
        let first = self.dag.num_terminals();
        let level = |i| self.levels[(slots.at(i, first) - first) as usize] + 1;
        (0..slots.len()).map(level).max().unwrap_or(0)
    }
}

/// Rows by level, and inside a level from the longest to the shortest.
fn by_level_and_len(rows: &[Row<'_>], num_levels: usize) -> Vec<u32> {
    let all: Vec<u32> = (0..rows.len() as u32).collect();
    let shortness = |row: &Row<'_>| MAX_ROW_LEN - row.slots.len();
    let by_len = counted(&all, MAX_ROW_LEN + 1, |row| shortness(&rows[row as usize]));
    counted(&by_len, num_levels, |row| rows[row as usize].level as usize)
}

/// `items` sorted by a key below `num_keys`; those of the same key stay in order.
fn counted(items: &[u32], num_keys: usize, key: impl Fn(u32) -> usize) -> Vec<u32> {
    let mut next = vec![0usize; num_keys + 1];
    items.iter().for_each(|&item| next[key(item) + 1] += 1);
    (0..num_keys).for_each(|key| next[key + 1] += next[key]);
    let mut sorted = vec![0; items.len()];
    for &item in items {
        let place = &mut next[key(item)];
        sorted[*place] = item;
        *place += 1;
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Grammar;

    fn dag_of(rules: &[Vec<u32>], num_terminals: u32) -> Dag {
        let mut rule_offsets = vec![0];
        rules.iter().for_each(|rule| {
            rule_offsets.push(rule_offsets.last().unwrap() + rule.len() as u32);
        });
        let doc_offsets = vec![0, rules[0].len() as u32];
        let grammar = Grammar { num_terminals, rule_offsets, symbols: rules.concat(), doc_offsets };
        let lens = vec![1; num_terminals as usize];
        Dag::new(grammar, num_terminals, lens.into_iter()).unwrap()
    }

    /// What the device does with a plan, level by level, rows of a level in any order.
    fn pulled(plan: &PullPlan) -> Vec<u64> {
        let mut weights = vec![0xA5A5_A5A5_u64; plan.num_slots];
        for chunks in plan.level_chunks.windows(2) {
            for chunk in (chunks[0]..chunks[1]).rev() {
                let range =
                    plan.chunk_starts[chunk as usize]..plan.chunk_starts[chunk as usize + 1];
                for lane in 0..CHUNK_ROWS {
                    let row = chunk as usize * CHUNK_ROWS + lane;
                    let mut sum = u64::from(plan.row_bases[row]);
                    for at in range.clone().skip(lane).step_by(CHUNK_ROWS) {
                        let slot = plan.entries[at as usize];
                        sum = sum.wrapping_add(weights[slot as usize]);
                    }
                    if plan.row_slots[row] != NO_SLOT {
                        weights[plan.row_slots[row] as usize] = sum;
                    }
                }
            }
        }
        weights
    }

    fn check(dag: &Dag) -> PullPlan {
        let plan = PullPlan::new(dag).unwrap();
        assert_eq!(pulled(&plan)[..dag.num_elements()], *dag.weights());
        plan
    }

    #[test]
    fn plans_add_up_to_the_weights() {
        check(&dag_of(&[vec![]], 0));
        check(&dag_of(&[vec![0, 1, 0]], 2));
        // Rules that double the next one, and rules used from everywhere.
        let mut rules: Vec<Vec<u32>> = (0..60).map(|r| vec![r + 3, r + 3, 0]).collect();
        rules.push(vec![0, 1]);
        check(&dag_of(&rules, 2));
        let mut random = 7u64;
        for num_rules in [5, 90, 700] {
            let mut rules = vec![Vec::new(); num_rules];
            for child in 1..num_rules {
                for _ in 0..if child % 97 == 96 { 200 } else { 1 + child % 2 } {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let distance = 1 + (random >> 33) as usize % child;
                    rules[child.saturating_sub(distance)].push(3 + child as u32);
                }
            }
            rules.iter_mut().enumerate().for_each(|(i, rule)| rule.push(i as u32 % 3));
            check(&dag_of(&rules, 3));
        }
    }

    #[test]
    fn long_rows_are_trees() {
        // Word 0 stands 300,000 times in rule 1, which the root holds twice, and in other rules.
        let mut rules = vec![vec![3, 3, 4, 5, 0], vec![0; 300_000], vec![1, 0], vec![4 + 2, 0]];
        rules.push(vec![0, 1]);
        let plan = check(&dag_of(&rules, 2));
        // Pieces of 300,003, of 4,688, of 74 and of 2 slots.
        assert_eq!(plan.num_slots, 7 + 1 + 4_688 + 74 + 2);
        assert!(plan.entries.len() < 2 * 300_000);
        // A rule used that often comes after its pieces.
        let rules = [vec![3, 4, 5, 3], vec![5; 5_000], vec![5, 0], vec![0, 1]];
        check(&dag_of(&rules, 2));
    }
}
