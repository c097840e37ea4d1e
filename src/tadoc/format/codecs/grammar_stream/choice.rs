//! Elements as they are written: order of the rules, choice of repeats in the root, groups of the others by their uses.
//!
//! ```text
//! root      a b c a b d c      distances   - - - 3 3 - 4
//! round     uses of names ─▶ groups ─▶ lengths of names and repeats ─▶ repeats that are shorter ─▶ uses …
//! ```
//!
//! Rules are numbered depth-first: the rule that is completed last, the root, is rule 0. The rules that a rule uses
//! first are therefore the ones that were completed last, and their first uses need no id.
//!
//! The choice changes how often names and codes are used, so it is made in rounds. Each takes the lengths that the
//! choice before gives. The group of an element and the class of its distance decide if a repeat is shorter than a
//! name. So a round looks up one group for each element that can be a repeat, and goes once over all ids. Groups are
//! found by counting, without sorting: an element's rank follows from the numbers of elements with more uses.
//!
//! Time and memory: O(elements).

use std::cmp::Reverse;

use crate::format::codecs::grammar::replay::{self, EventOrder};
use crate::grammar::Grammar;
use crate::ids::RuleId;

use super::codes::{BIT, log2};
use super::{Classes, MAX_REPEAT_CLASSES, group_widths};

/// Stands for a first use.
pub(super) const USED_FIRST: u32 = u32::MAX;

/// Rules of a grammar in the order and form in which they are written.
pub(super) struct RulesWritten {
    /// Length of each rule but the root, last rule first.
    pub(super) lens: Vec<u32>,
    /// Elements of all rules, root first, by their ids when they are read back, or [`USED_FIRST`].
    pub(super) symbols: Vec<u32>,
}

impl RulesWritten {
    pub(super) fn new(grammar: &Grammar) -> Self {
        let num_rules = grammar.num_rules() as u32;
        let mut order = EventOrder::new(grammar);
        let mut completed = Vec::with_capacity(num_rules as usize);
        let mut is_first_use = vec![false; grammar.symbols.len()];
        while let Some(event) = order.next_event() {
            match event {
                replay::Event::OpenRule(_) => is_first_use[order.opened_at()] = true,
                replay::Event::CloseRule(rule_idx) => completed.push(RuleId::from(rule_idx)),
                _ => {}
            }
        }
        completed.push(RuleId::ROOT);
        // Numbers when read back: the rule that is completed last is rule 0.
        let mut new_idx = vec![0; num_rules as usize];
        for (rule_id, idx) in completed.iter().zip((0..num_rules).rev()) {
            new_idx[rule_id.index()] = idx;
        }
        let mut symbols = Vec::with_capacity(grammar.symbols.len());
        for &rule_id in &completed {
            for at in grammar.rule_range(rule_id).rev() {
                let element = grammar.symbols[at];
                symbols.push(match grammar.rule_of(element) {
                    None => element,
                    Some(_) if is_first_use[at] => USED_FIRST,
                    Some(rule_id) => grammar.num_terminals + new_idx[rule_id.index()],
                });
            }
        }
        symbols.reverse();
        completed.pop();
        let lens = completed.iter().map(|&rule_id| grammar.rule(rule_id).len() as u32).collect();
        Self { lens, symbols }
    }
}

/// Number of choices. A fourth one changes the size by less than a thousandth.
const NUM_ROUNDS: usize = 3;

/// The repeats of a root, and the uses of names that remain.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Distance of each element of the root to the place in its unit that it repeats, or 0 if it has a name.
    pub repeats: Vec<u32>,
    /// Number of uses of each element by its name, in the root and in rules.
    pub num_uses: Vec<u32>,
    /// Number of classes of distances up to the greatest one.
    pub num_repeat_classes: u8,
}

/// An element of the root that can be a repeat, and the class of its distance.
struct Candidate {
    element: u32,
    class: u8,
}

impl Choice {
    /// Chooses repeats in the root of `grammar`. `symbols` are its elements as they are written, root first, or
    /// [`USED_FIRST`]. At the begin all that can be repeats are. An element that gets no name then stays a repeat,
    /// whose class exists.
    pub(super) fn new(grammar: &Grammar, symbols: &[u32], unit_starts: &[u32]) -> Self {
        let mut repeats = last_distances(grammar, unit_starts);
        let (root, rules) = symbols.split_at(repeats.len());
        let num_elements = grammar.num_terminals as usize + grammar.num_rules();
        let uses_in_rules = uses_in(rules, num_elements);
        let mut candidates = Vec::new();
        let mut always_named = vec![0u32; num_elements];
        let mut num_first_uses = 0;
        for (&element, distance) in root.iter().zip(&mut repeats) {
            if element == USED_FIRST {
                *distance = 0;
                num_first_uses += 1;
            } else if *distance == 0 {
                always_named[element as usize] += 1;
            } else {
                candidates.push(Candidate { element, class: distance.ilog2() as u8 });
            }
        }
        let mut round = Round::with_all_repeated(&candidates, always_named.clone());
        let mut shorter = Shorter::default();
        for _ in 0..NUM_ROUNDS {
            shorter = Shorter::new(&round, &uses_in_rules, grammar.num_terminals, num_first_uses);
            round.named.copy_from_slice(&always_named);
            round.choose(&candidates, &shorter);
        }
        let can_be = repeats.iter_mut().filter(|distance| **distance > 0);
        for (distance, candidate) in can_be.zip(&candidates) {
            *distance *= shorter.is_repeat(candidate);
        }
        let num_repeat_classes = round.num_repeat_classes();
        Self { repeats, num_uses: sums(&round.named, &uses_in_rules), num_repeat_classes }
    }
}

/// Returns how often each of `num_elements` elements is used in `symbols`, but for first uses.
fn uses_in(symbols: &[u32], num_elements: usize) -> Vec<u32> {
    let mut num_uses = vec![0u32; num_elements];
    for &element in symbols {
        if let Some(num) = num_uses.get_mut(element as usize) {
            *num += 1;
        }
    }
    num_uses
}

fn sums(some: &[u32], others: &[u32]) -> Vec<u32> {
    some.iter().zip(others).map(|(some, others)| some + others).collect()
}

/// Returns the distance of each element of the root to the last place in its unit where it stands, or 0
/// if there is none.
fn last_distances(grammar: &Grammar, unit_starts: &[u32]) -> Vec<u32> {
    let mut last_end = vec![0u32; grammar.num_terminals as usize + grammar.num_rules()];
    let mut starts = unit_starts.iter().peekable();
    let mut unit_start = 0;
    let distances = (0u32..).zip(grammar.root()).map(|(at, &element)| {
        unit_start = starts.next_if_eq(&&at).copied().unwrap_or(unit_start);
        let end = std::mem::replace(&mut last_end[element as usize], at + 1);
        let distance = at + 1 - end;
        let is_in_unit = end > unit_start && distance.ilog2() < MAX_REPEAT_CLASSES.into();
        if is_in_unit { distance } else { 0 }
    });
    distances.collect()
}

/// Numbers of the names and repeats in the root.
struct Round {
    /// Uses of each element by its name.
    named: Vec<u32>,
    /// Number of repeats of each class of distances.
    repeated: [u32; MAX_REPEAT_CLASSES as usize],
}

impl Round {
    fn with_all_repeated(candidates: &[Candidate], named: Vec<u32>) -> Self {
        let mut repeated = [0; MAX_REPEAT_CLASSES as usize];
        candidates.iter().for_each(|candidate| repeated[usize::from(candidate.class)] += 1);
        Self { named, repeated }
    }

    /// Counts `candidates` as names or repeats. Those that have no choice are counted as names already.
    fn choose(&mut self, candidates: &[Candidate], shorter: &Shorter) {
        self.repeated.fill(0);
        for candidate in candidates {
            // Added without a branch, which would be unpredictable.
            let is_repeat = shorter.is_repeat(candidate);
            self.repeated[usize::from(candidate.class)] += is_repeat;
            self.named[candidate.element as usize] += 1 - is_repeat;
        }
    }

    fn num_repeat_classes(&self) -> u8 {
        self.repeated.iter().rposition(|&num| num > 0).map_or(0, |class| class as u8 + 1)
    }
}

/// Classes of distances in which a repeat is shorter than the name of an element.
#[derive(Default)]
struct Shorter {
    /// Group of each element, or [`NO_GROUP`].
    group_of: Vec<u8>,
    /// Classes in which repeats are shorter than names of each group, as bits. The last one is of elements without a
    /// name, which is longer than each repeat.
    classes_of_group: Vec<u32>,
}

impl Shorter {
    /// Estimates lengths by the numbers of `round`.
    fn new(round: &Round, uses_in_rules: &[u32], num_terminals: u32, num_first_uses: u64) -> Self {
        let Groups { num_named, mut group_of } = Groups::new(&sums(&round.named, uses_in_rules), num_terminals);
        let classes = Classes::new(num_named[0], num_named[1], round.num_repeat_classes());
        // No count is 0, so that each class has a length.
        let mut counts = vec![1u64; classes.classes.len()];
        for (&group, &num) in group_of.iter().zip(&round.named) {
            if let Some(count) = counts.get_mut(usize::from(group)) {
                *count += u64::from(num);
            }
        }
        counts[usize::from(classes.first_use_class())] += num_first_uses;
        let first_repeat = usize::from(classes.first_repeat_class());
        counts[first_repeat..].iter_mut().zip(round.repeated).for_each(|(count, num)| *count += u64::from(num));

        let sum = log2(counts.iter().sum());
        let lens =
            counts.iter().zip(&classes.classes).map(|(&count, class)| sum - log2(count) + BIT * i64::from(class.width));
        let lens: Vec<i64> = lens.collect();
        let bits_for = |name_len: i64| {
            let is_shorter = |&class: &u32| lens[first_repeat + class as usize] < name_len;
            (0..u32::from(classes.num_repeat_classes())).filter(is_shorter).fold(0, |bits, class| bits | 1 << class)
        };
        let names = lens[..classes.num_groups].iter().copied().chain([i64::MAX]);
        let classes_of_group: Vec<u32> = names.map(bits_for).collect();
        for group in &mut group_of {
            *group = (*group).min(classes.num_groups as u8);
        }
        Self { group_of, classes_of_group }
    }

    /// Returns 1 if `candidate` is shorter as a repeat, otherwise 0.
    #[inline]
    fn is_repeat(&self, candidate: &Candidate) -> u32 {
        let group = self.group_of[candidate.element as usize];
        self.classes_of_group[usize::from(group)] >> candidate.class & 1
    }
}

/// Mark of an element without a name.
const NO_GROUP: u8 = u8::MAX;

/// From so many uses on, elements are sorted. There are few of them.
const MANY_USES: usize = 1 << 12;

/// Groups of the elements that are used by their names: of terminals, then of rules.
pub(super) struct Groups {
    /// Number of terminals and of rules with a name.
    pub num_named: [u32; 2],
    /// Group of each element, or a number above all groups if it has no name.
    pub group_of: Vec<u8>,
}

impl Groups {
    /// Groups the elements by `num_uses`, those with most uses first. Equal ones follow by their ids.
    pub(super) fn new(num_uses: &[u32], num_terminals: u32) -> Self {
        let (terminals, rules) = num_uses.split_at(num_terminals as usize);
        let mut group_of = Vec::with_capacity(num_uses.len());
        let mut next_group = 0;
        let num_named = [terminals, rules].map(|num_uses| append_groups(&mut group_of, num_uses, &mut next_group));
        Self { num_named, group_of }
    }
}

/// Appends the groups of elements with `num_uses` to `group_of`. They begin with `next_group`, which the groups that
/// follow begin with then. Returns the number of elements with a name.
fn append_groups(group_of: &mut Vec<u8>, num_uses: &[u32], next_group: &mut u8) -> u32 {
    let mut num_with = vec![0u32; MANY_USES];
    let mut many = Vec::new();
    for (id, &num) in num_uses.iter().enumerate() {
        match num_with.get_mut(num as usize) {
            Some(num_with) => *num_with += 1,
            None => many.push((Reverse(num), id)),
        }
    }
    many.sort_unstable();
    let num_named = num_uses.len() as u32 - num_with[0];
    let mut group_at_rank: Vec<u8> = Vec::with_capacity(num_named as usize);
    for width in group_widths(num_named) {
        group_at_rank.resize(group_at_rank.len() + (1 << width), *next_group);
        *next_group += 1;
    }
    // Rank of the next element with each number of uses.
    let mut next_rank = num_with;
    let mut rank = many.len() as u32;
    for next in next_rank[1..].iter_mut().rev() {
        rank += std::mem::replace(next, rank);
    }
    group_of.extend(num_uses.iter().enumerate().map(|(id, &num)| match next_rank.get_mut(num as usize) {
        _ if num == 0 => NO_GROUP,
        Some(next) => {
            *next += 1;
            group_at_rank[*next as usize - 1]
        }
        None => group_at_rank[many.partition_point(|&other| other < (Reverse(num), id))],
    }));
    num_named
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::grammar::{Dedup, build_rounds};

    use super::*;

    /// Groups elements by their order.
    fn slow_groups(num_uses: &[u32], num_terminals: u32) -> ([u32; 2], Vec<Option<u8>>) {
        let mut group_of = vec![None; num_uses.len()];
        let mut group = 0;
        let num_named = [0..num_terminals, num_terminals..num_uses.len() as u32].map(|ids| {
            let mut used: Vec<u32> = ids.filter(|&id| num_uses[id as usize] > 0).collect();
            used.sort_by_key(|&id| (Reverse(num_uses[id as usize]), id));
            let mut rest = &used[..];
            for width in group_widths(used.len() as u32) {
                let (members, others) = rest.split_at(1 << width);
                members.iter().for_each(|&id| group_of[id as usize] = Some(group));
                rest = others;
                group += 1;
            }
            used.len() as u32
        });
        (num_named, group_of)
    }

    /// Chooses by the definition: each round counts all symbols and compares the lengths of each element.
    fn slow_choice(grammar: &Grammar, symbols: &[u32], unit_starts: &[u32]) -> Choice {
        let mut possible = last_distances(grammar, unit_starts);
        possible.iter_mut().zip(symbols).filter(|(_, element)| **element == USED_FIRST).for_each(|(to, _)| *to = 0);
        let uses = |repeats: &[u32]| {
            let mut num_uses = vec![0; grammar.num_terminals as usize + grammar.num_rules()];
            let distances = repeats.iter().copied().chain(std::iter::repeat(0));
            let named =
                symbols.iter().zip(distances).filter(|(element, distance)| **element != USED_FIRST && *distance == 0);
            named.for_each(|(&element, _)| num_uses[element as usize] += 1);
            num_uses
        };
        let num_classes =
            |repeats: &[u32]| repeats.iter().map(|distance| distance.checked_ilog2().map_or(0, |log| log + 1)).max();
        let mut repeats = possible.clone();
        for _ in 0..NUM_ROUNDS {
            let ([terminals, rules], group_of) = slow_groups(&uses(&repeats), grammar.num_terminals);
            let classes = Classes::new(terminals, rules, num_classes(&repeats).unwrap_or(0) as u8);
            let first_repeat = usize::from(classes.first_repeat_class());
            let mut counts = vec![1; classes.classes.len()];
            for (&element, &distance) in symbols.iter().zip(&repeats) {
                let class = match distance.checked_ilog2() {
                    _ if element == USED_FIRST => classes.first_use_class().into(),
                    Some(log) => first_repeat + log as usize,
                    None => group_of[element as usize].unwrap().into(),
                };
                counts[class] += 1;
            }
            let len_for = |class: usize| {
                let count = *counts.get(class)?;
                Some(log2(counts.iter().sum()) - log2(count) + BIT * i64::from(classes.classes[class].width))
            };
            for ((to, &distance), &element) in repeats.iter_mut().zip(&possible).zip(symbols) {
                let Some(log) = distance.checked_ilog2() else { continue };
                let name_len = group_of[element as usize].and_then(|group| len_for(group.into()));
                let repeat_len = len_for(first_repeat + log as usize);
                let is_shorter = repeat_len.unwrap_or(i64::MAX) < name_len.unwrap_or(i64::MAX);
                *to = if is_shorter { distance } else { 0 };
            }
        }
        let num_repeat_classes = num_classes(&repeats).unwrap_or(0) as u8;
        Choice { num_uses: uses(&repeats), repeats, num_repeat_classes }
    }

    proptest! {
        #[test]
        fn groups_agree_with_their_order(
            num_uses in prop::collection::vec(prop_oneof![8 => 0..5u32, 1 => 4_090..4_100u32, 1 => any::<u32>()], 0..500),
            num_terminals in any::<prop::sample::Index>(),
        ) {
            let num_terminals = num_terminals.index(num_uses.len() + 1) as u32;
            let (num_named, expected) = slow_groups(&num_uses, num_terminals);
            let groups = Groups::new(&num_uses, num_terminals);
            let got: Vec<_> = groups.group_of.iter().map(|&group| Some(group).filter(|&group| group != NO_GROUP)).collect();
            prop_assert_eq!(groups.num_named, num_named);
            prop_assert_eq!(got, expected);
        }

        #[test]
        fn the_choice_follows_its_definition(
            phrases in prop::collection::vec(prop::collection::vec(0..40u32, 1..30), 1..8),
            order in prop::collection::vec((any::<prop::sample::Index>(), 0..12usize), 0..300),
            doc_len in 1..400usize,
            unit_len in 1..60usize,
        ) {
            let passages = order.iter().flat_map(|(phrase, skip)| phrases[phrase.index(phrases.len())].iter().skip(*skip));
            let tokens: Vec<u32> = passages.copied().collect();
            let mut ends: Vec<usize> = (0..tokens.len()).step_by(doc_len).collect();
            ends.extend((ends.is_empty()).then_some(0));
            ends.push(tokens.len());
            let grammar = build_rounds(tokens, &ends, 40, Dedup::Auto).unwrap();
            let unit_starts: Vec<u32> = (0..grammar.root().len() as u32).step_by(unit_len).collect();
            let written = RulesWritten::new(&grammar);
            let choice = Choice::new(&grammar, &written.symbols, &unit_starts);
            prop_assert_eq!(choice, slow_choice(&grammar, &written.symbols, &unit_starts));
        }
    }
}
