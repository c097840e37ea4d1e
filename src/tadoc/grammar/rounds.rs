//! Grammar builder that works in rounds: locally maximal Re-Pair on token ids.
//!
//! ```text
//! share segments ─▶ learn from samples ─▶ longest matches ─▶ rounds ─▶ repeats ─▶ clean-up
//!      `repeats`                                          `sequence`    `repeats`  `cleanup`
//! ```
//!
//! In a round at threshold T, every pair with count T or more competes with the pairs that overlap it, and the more
//! frequent pair wins. Pairs that win at least twice become rules and are replaced all at once. Only pairs next to a
//! replacement are counted again. T falls geometrically from the largest count to 3. There the rounds continue, four
//! times at most, until they replace almost nothing. Passages that then still stand twice become one rule each.
//!
//! Sources: Larsson & Moffat, *Off-line dictionary-based compression* (Re-Pair, 1999), for the pair
//! replacement; Sequitur's rule utility (Nevill-Manning & Witten, 1997) for the clean-up.
//!
//! Properties: the grammar does not depend on the number of threads. Its depth is at most the number of rounds: 14 over
//! each sample, 18 over the sequence, one for repeats and one for each repetition (7 to 21 observed).
//!
//! Memory: 9 bytes for each token, see [`Sequence`].
//!
//! Fewer rounds, a stop at 3 without repeats, full recounts in every round, and counts in hash
//! tables keyed by pair give larger grammars or take longer.
//!
//! # Learned rules
//!
//! ```text
//! text      |#---------------|#---------------| ...   1 of 64 stretches: rounds ─▶ rules
//! text      |##------|##------|##------|##---- ...    1 of 8: longest matches, rounds ─▶ more rules
//! ```
//!
//! Most replacements concern pairs that occur in any sample. [`Phrases`] replaces them in the whole
//! text in one pass, before its pairs are counted. The rules of the first sample make the second
//! one short. The later rounds find the pairs that the samples missed. The clean-up removes learned
//! rules that are never used. Without learning, the grammar is larger and the build is slower.
//!
//! # Phrases
//!
//! ```text
//! rules     R = a b,  S = R c,  T = b a        phrases  a b,  a b c,  b a
//! trie      a ─b─▶ R ─c─▶ S     b ─a─▶ T
//! sequence  a b c a b b a c  ─▶  S R T c       from the left, the longest phrase at each place
//! ```
//!
//! A phrase is the expansion of a rule. The phrases form a trie in one hash table. A node is the slot in which it lies,
//! and its key is its parent and a symbol. A first symbol is its own node, so the first look-up takes two symbols. A
//! slot has 8 bytes, and at most a quarter of them is used.
//!
//! One look-up for each element replaces a look-up for each pair in each round. On prose this takes half the time of
//! applying the rules round by round, on Markdown pages a quarter, with 0.5 % more elements at most. Rejected
//! experiment: a match that waits for a longer one at the next place is no faster and no smaller. Complexity: O(N)
//! look-ups for the text, at most [`MAX_PHRASE_LEN`] times as many for a hostile one.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::Result;

use super::Grammar;
use super::cleanup::{Draft, clean_up};
use super::pair_join::{BARRIER, CHUNK_LEN, Pair, Thresholds, has_second_pass, unpair};
use super::repeats::{Dedup, Shared, replace_repeats, share_segments};
use super::sequence::Sequence;

/// Builds a grammar of `tokens`. The documents begin at `doc_offsets` (one more offset than
/// documents), and the ids are below `num_terminals`. `dedup` says if repeated token ranges are shared before the
/// rounds. It uses all threads of the current rayon pool. The result does not depend on their number.
///
/// # Errors
/// [`Error::Capacity`](crate::Error::Capacity) if there are more than 2^31 tokens.
pub fn build_rounds(tokens: Vec<u32>, doc_offsets: &[usize], num_terminals: u32, dedup: Dedup) -> Result<Grammar> {
    let num_tokens = tokens.len();
    let shared = share_segments(tokens, doc_offsets, num_terminals, dedup)?;
    let first_rule = num_terminals + shared.num_segments;
    let learned = learn(&shared.symbols, first_rule);
    let grammar = run_rounds(shared, learned, num_terminals)?;
    if has_second_pass(grammar.symbols.len(), num_tokens) {
        run_rounds(Shared::from_grammar(&grammar), Vec::new(), num_terminals)
    } else {
        Ok(grammar)
    }
}

/// Replaces `learned` rules, runs all rounds over documents and rule bodies, then the clean-up.
fn run_rounds(shared: Shared, learned: Vec<Pair>, num_terminals: u32) -> Result<Grammar> {
    let Shared { mut symbols, num_segments } = shared;
    let first_learned = num_terminals + num_segments;
    if let Some(phrases) = Phrases::new(&learned, first_learned) {
        phrases.replace(&mut symbols);
        symbols.shrink_to_fit();
    }
    let first_rule = first_learned + learned.len() as u32;
    let mut sequence = Sequence::new(symbols, first_rule);
    sequence.run(Thresholds::from_largest_count);
    let (mut symbols, pair_ids, rules) = sequence.into_parts();
    let pairs: Vec<(u32, u32)> = learned.into_iter().chain(rules).map(unpair).collect();
    let first_repeat = first_learned + pairs.len() as u32;
    let repeats = replace_repeats(&mut symbols, pair_ids, first_repeat);
    clean_up(Draft { num_terminals, num_segments, pairs, repeats, symbols })
}

/// Least length of a text that is worth a sample.
const LEAST_SAMPLED: usize = 1 << 18;

/// Number of elements in a stretch of a sample.
const STRETCH_LEN: usize = 2_048;

/// Distances of the stretches of each sample, in stretches.
const SAMPLE_STEPS: [usize; 2] = [64, 8];

/// Returns the bodies of rules that are frequent in samples of `symbols`, oldest first. Their ids
/// begin at `first_rule`. There are none if the text is short.
pub(super) fn learn(symbols: &[u32], first_rule: u32) -> Vec<Pair> {
    let mut rules = Vec::new();
    if symbols.len() < LEAST_SAMPLED {
        return rules;
    }
    for step in SAMPLE_STEPS {
        let mut sample = sample(symbols, step);
        if let Some(phrases) = Phrases::new(&rules, first_rule) {
            phrases.replace(&mut sample);
        }
        let mut sequence = Sequence::new(sample, first_rule + rules.len() as u32);
        sequence.run(Thresholds::for_sample);
        rules.extend(sequence.into_rules());
    }
    rules
}

/// Returns one of `step` stretches of the text, each followed by a barrier.
fn sample(symbols: &[u32], step: usize) -> Vec<u32> {
    let mut sample = Vec::with_capacity(symbols.len() / step + 2 * STRETCH_LEN);
    for part in symbols.chunks(STRETCH_LEN * step) {
        sample.extend_from_slice(&part[..part.len().min(STRETCH_LEN)]);
        sample.push(BARRIER);
    }
    sample
}

/// Greatest length of a phrase. Rules with longer expansions are used only in other rules.
const MAX_PHRASE_LEN: usize = 64;

/// Share of the slots of a table that are used is at most 1 in this many.
const SLOTS_PER_NODE: usize = 4;

/// Trie of the expansions of rules.
pub(super) struct Phrases {
    /// 1 more than a node's key, above the number of its rule. The number is 1 more than the rule,
    /// or 0 if no phrase ends here. A free slot is 0.
    slots: Vec<u64>,
    /// Number of low bits that a hash loses to become the number of a slot.
    hash_shift: u32,
    symbol_bits: u32,
    number_bits: u32,
    first_rule: u32,
}

/// A node under construction. Parents come before children.
struct Node {
    /// First symbol of the phrase, or `first_rule` plus the index of the parent.
    parent: u32,
    symbol: u32,
    /// Number of the rule.
    number: u32,
}

impl Phrases {
    /// Creates the trie of `rules`, whose ids begin at `first_rule`. A rule may use terminals and
    /// earlier rules. Of equal phrases the first one counts.
    ///
    /// Keys of a slot have 64 bits. If there are more rules than that (more than a hundred thousand
    /// beside sixteen million words), only the first ones become phrases. Returns `None` if there
    /// are none.
    pub(super) fn new(rules: &[Pair], first_rule: u32) -> Option<Self> {
        let halves = std::iter::successors(Some(rules.len()), |&num_rules| Some(num_rules / 2));
        halves
            .take_while(|&num_rules| num_rules > 0)
            .find_map(|num_rules| Self::from_all(&rules[..num_rules], first_rule))
    }

    /// Creates the trie, or returns `None` if its keys do not fit into a slot.
    fn from_all(rules: &[Pair], first_rule: u32) -> Option<Self> {
        let nodes = nodes_from(rules, first_rule);
        let num_slots = (SLOTS_PER_NODE * nodes.len()).next_power_of_two();
        let symbol_bits = bits_for(first_rule as usize);
        let number_bits = bits_for(rules.len());
        if bits_for(first_rule as usize + num_slots) + symbol_bits + number_bits > u64::BITS {
            return None;
        }
        let mut phrases = Self {
            slots: vec![0; num_slots],
            hash_shift: u64::BITS - num_slots.trailing_zeros(),
            symbol_bits,
            number_bits,
            first_rule,
        };
        phrases.insert(&nodes);
        Some(phrases)
    }

    fn insert(&mut self, nodes: &[Node]) {
        let mut slot_of_node = Vec::with_capacity(nodes.len());
        for node in nodes {
            let parent = match node.parent.checked_sub(self.first_rule) {
                None => u64::from(node.parent),
                Some(node_idx) => self.node_at(slot_of_node[node_idx as usize]),
            };
            let key = self.key(parent, node.symbol);
            let slot_idx = self.find(key);
            self.slots[slot_idx] = key << self.number_bits | u64::from(node.number);
            slot_of_node.push(slot_idx);
        }
    }

    /// Returns the node that lies in a slot.
    #[inline]
    fn node_at(&self, slot_idx: usize) -> u64 {
        u64::from(self.first_rule) + slot_idx as u64
    }

    /// Returns the key of the child of `parent` at `symbol`, plus 1.
    #[inline]
    fn key(&self, parent: u64, symbol: u32) -> u64 {
        (parent << self.symbol_bits | u64::from(symbol)) + 1
    }

    /// Returns the slot with `key`, or the free slot where it belongs.
    #[inline]
    fn find(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot_idx = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.hash_shift) as usize;
        // Both ends of the search share one branch, because the outcome is unpredictable.
        while !((self.slots[slot_idx] == 0) | (self.slots[slot_idx] >> self.number_bits == key)) {
            slot_idx = (slot_idx + 1) & mask;
        }
        slot_idx
    }

    /// Returns the length and the rule of the longest phrase at the start of `symbols`, or the
    /// first symbol. `symbols` must not be empty.
    #[inline]
    fn longest(&self, symbols: &[u32]) -> (usize, u32) {
        let first = symbols[0];
        let mut longest = (1, first);
        // No phrase contains a barrier or a symbol behind the terminals, so the look-up of one
        // would fail, but its bits do not fit into a key.
        if first >= self.first_rule {
            return longest;
        }
        let mut parent = u64::from(first);
        for (len_before, &symbol) in symbols.iter().enumerate().skip(1) {
            if symbol >= self.first_rule {
                break;
            }
            let slot_idx = self.find(self.key(parent, symbol));
            let slot = self.slots[slot_idx];
            if slot == 0 {
                break;
            }
            let number = slot as u32 & ((1 << self.number_bits) - 1);
            if number != 0 {
                longest = (len_before + 1, self.first_rule + number - 1);
            }
            parent = self.node_at(slot_idx);
        }
        longest
    }

    /// Replaces phrases in `symbols` by their rules, from the left in each chunk.
    pub(super) fn replace(&self, symbols: &mut Vec<u32>) {
        let chunks = symbols.par_chunks_mut(CHUNK_LEN);
        let lens: Vec<usize> = chunks.map(|chunk| self.replace_in(chunk)).collect();
        let mut end = 0;
        for (chunk_idx, len) in lens.into_iter().enumerate() {
            let start = chunk_idx * CHUNK_LEN;
            symbols.copy_within(start..start + len, end);
            end += len;
        }
        symbols.truncate(end);
    }

    /// Replaces phrases in a chunk and returns its new length.
    fn replace_in(&self, chunk: &mut [u32]) -> usize {
        let mut read = 0;
        let mut write = 0;
        while read < chunk.len() {
            let (len, symbol) = self.longest(&chunk[read..]);
            chunk[write] = symbol;
            write += 1;
            read += len;
        }
        write
    }
}

/// Returns the number of bits of `number`.
fn bits_for(number: usize) -> u32 {
    usize::BITS - number.leading_zeros()
}

/// Returns the nodes of the trie of `rules`.
fn nodes_from(rules: &[Pair], first_rule: u32) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut child_of: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut expansions = Expansions { first_rule, symbols: Vec::new(), ends: Vec::new() };
    // Last node of each phrase.
    let mut last_nodes: Vec<u32> = Vec::with_capacity(rules.len());
    for (number, &rule) in (1..).zip(rules) {
        let (left, _) = unpair(rule);
        let Some((left_len, phrase)) = expansions.push(rule) else {
            last_nodes.push(0);
            continue;
        };
        let left_rule = left.checked_sub(first_rule);
        let mut last = left_rule.map_or(left, |rule_idx| last_nodes[rule_idx as usize]);
        for &symbol in &phrase[left_len..] {
            last = *child_of.entry((last, symbol)).or_insert_with(|| {
                nodes.push(Node { parent: last, symbol, number: 0 });
                first_rule + nodes.len() as u32 - 1
            });
        }
        let end = &mut nodes[(last - first_rule) as usize];
        if end.number == 0 {
            end.number = number;
        }
        last_nodes.push(last);
    }
    nodes
}

/// Expansions of rules, stored one after the other. A phrase that is too long is stored as empty.
struct Expansions {
    first_rule: u32,
    symbols: Vec<u32>,
    ends: Vec<usize>,
}

impl Expansions {
    /// Appends the expansion of the next rule. Returns the length of its left half, and the whole,
    /// or `None` if it is too long.
    fn push(&mut self, rule: Pair) -> Option<(usize, &[u32])> {
        let start = self.symbols.len();
        let (left, right) = unpair(rule);
        let left_len = self.append(left);
        let right_len = self.append(right);
        let len = self.symbols.len() - start;
        let is_phrase = left_len > 0 && right_len > 0 && len <= MAX_PHRASE_LEN;
        if !is_phrase {
            self.symbols.truncate(start);
        }
        self.ends.push(self.symbols.len());
        is_phrase.then(|| (left_len, &self.symbols[start..]))
    }

    /// Appends the expansion of `symbol` and returns its length.
    fn append(&mut self, symbol: u32) -> usize {
        let Some(rule_idx) = symbol.checked_sub(self.first_rule) else {
            self.symbols.push(symbol);
            return 1;
        };
        let rule_idx = rule_idx as usize;
        let start = rule_idx.checked_sub(1).map_or(0, |before| self.ends[before]);
        let expansion = start..self.ends[rule_idx];
        self.symbols.extend_from_within(expansion.clone());
        expansion.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use crate::grammar::pair_join::{BARRIER, pair};

    use super::*;

    #[test]
    fn samples_have_the_first_stretch_of_each_part() {
        let symbols: Vec<u32> = (0..5 * STRETCH_LEN as u32).collect();
        let sample = sample(&symbols, 2);
        let stretches: Vec<&[u32]> = sample.split(|&symbol| symbol == BARRIER).collect();
        let expected = [&symbols[..2_048], &symbols[4_096..6_144], &symbols[8_192..], &[]];
        assert_eq!(stretches, expected);
    }

    #[test]
    fn frequent_phrases_are_learned() {
        let symbols = [0, 1, 2, 3].repeat(LEAST_SAMPLED / 4);
        let rules = learn(&symbols, 4);
        assert!(!rules.is_empty());
        assert!(learn(&symbols[1..], 4).is_empty());
        let mut replaced = symbols.clone();
        Phrases::new(&rules, 4).unwrap().replace(&mut replaced);
        assert!(replaced.len() < symbols.len() / 32);
    }

    const NUM_TERMINALS: u32 = 4;

    fn expand(rules: &[Pair], symbol: u32) -> Vec<u32> {
        match symbol.checked_sub(NUM_TERMINALS) {
            Some(rule_idx) if symbol != BARRIER => {
                let (left, right) = unpair(rules[rule_idx as usize]);
                [expand(rules, left), expand(rules, right)].concat()
            }
            _ => vec![symbol],
        }
    }

    /// Returns `symbols` with the longest phrase at each place replaced, from the left.
    fn replaced(rules: &[Pair], symbols: &[u32]) -> Vec<u32> {
        let mut rule_of_phrase: HashMap<Vec<u32>, u32> = HashMap::new();
        for symbol in (NUM_TERMINALS..).take(rules.len()) {
            rule_of_phrase.entry(expand(rules, symbol)).or_insert(symbol);
        }
        let mut rest = symbols;
        let mut result = Vec::new();
        while !rest.is_empty() {
            let mut lens = (2..=rest.len().min(MAX_PHRASE_LEN)).rev();
            let found = lens.find_map(|len| Some((len, *rule_of_phrase.get(&rest[..len])?)));
            let (len, symbol) = found.unwrap_or((1, rest[0]));
            result.push(symbol);
            rest = &rest[len..];
        }
        result
    }

    /// Generates rules over terminals and earlier rules.
    fn rules() -> impl Strategy<Value = Vec<Pair>> {
        let seeds = prop::collection::vec((any::<u32>(), any::<u32>()), 1..30);
        seeds.prop_map(|seeds| {
            let of = |(i, seed): (u32, u32)| seed % (NUM_TERMINALS + i);
            (0..).zip(seeds).map(|(i, (a, b))| pair(of((i, a)), of((i, b)))).collect()
        })
    }

    proptest! {
        #[test]
        fn matches_are_the_longest(
            rules in rules(),
            symbols in prop::collection::vec(
                prop_oneof![9 => 0..NUM_TERMINALS, 1 => Just(BARRIER)],
                0..300,
            ),
        ) {
            let mut got = symbols.clone();
            Phrases::new(&rules, NUM_TERMINALS).unwrap().replace(&mut got);
            prop_assert_eq!(got, replaced(&rules, &symbols));
        }
    }

    #[test]
    fn chunks_are_matched_one_by_one() {
        let rules = [pair(0, 1), pair(4, 4)];
        let mut symbols = [0, 1].repeat(CHUNK_LEN);
        Phrases::new(&rules, NUM_TERMINALS).unwrap().replace(&mut symbols);
        assert_eq!(symbols, vec![5; CHUNK_LEN / 2]);
    }

    #[test]
    fn rules_that_do_not_fit_are_left_out() {
        let first_rule = 1 << 28;
        assert!(Phrases::new(&[], first_rule).is_none());
        let rules: Vec<Pair> = (0..1_000).map(|i| pair(i, i + 1)).collect();
        let phrases = Phrases::new(&rules, first_rule).unwrap();
        let mut symbols = vec![0, 1, 2, 999, 1_000];
        phrases.replace(&mut symbols);
        assert_eq!(symbols, [first_rule, 2, 999, 1_000]);
    }
}
