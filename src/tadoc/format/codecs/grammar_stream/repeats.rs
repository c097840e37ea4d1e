//! Choice of the elements of the root that are written as repeats.
//!
//! A repeat takes a code and the bits of its distance, an element with a name a code and the bits of
//! its place in a group. The choice changes how often names and codes are used, so it is made in
//! rounds. Each takes the lengths that the choice before gives. All steps take O(elements).

use crate::grammar::Grammar;

use super::codes::{BIT, log2};
use super::{Coding, FIRST_USE, MAX_REPEAT_CLASSES};

/// Number of choices. A fourth one changes the size by less than a thousandth.
const NUM_ROUNDS: usize = 3;

/// Returns for each element of the root its distance to the place in its unit that it repeats, or 0 if
/// it has a name. `symbols` are the elements as they are written, root first. At the begin all that can
/// be repeats are. An element that gets no name then stays a repeat, whose class exists.
pub(super) fn choose_repeats(grammar: &Grammar, symbols: &[u32], unit_starts: &[u32]) -> Vec<u32> {
    let mut possible = last_distances(grammar, unit_starts);
    possible.iter_mut().zip(symbols).filter(|(_, element)| **element == FIRST_USE).for_each(|(to, _)| *to = 0);
    let mut repeats = possible.clone();
    for _ in 0..NUM_ROUNDS {
        let coding = Coding::new(grammar, symbols, &repeats);
        let lens = Lens::new(&coding, symbols, &repeats);
        for ((to, &distance), &element) in repeats.iter_mut().zip(&possible).zip(symbols) {
            let is_shorter = distance > 0 && lens.repeat(distance) < lens.name(element);
            *to = if is_shorter { distance } else { 0 };
        }
    }
    repeats
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

/// Estimated lengths of elements, in parts of a bit.
struct Lens<'c> {
    coding: &'c Coding,
    /// Length of the code of each class.
    codes: Vec<i64>,
}

impl<'c> Lens<'c> {
    /// Counts the codes of the root, with which `symbols` begin.
    fn new(coding: &'c Coding, symbols: &[u32], repeats: &[u32]) -> Self {
        let mut counts = vec![1u64; coding.classes.classes.len()];
        for (&element, &distance) in symbols.iter().zip(repeats) {
            let (class, _) = coding.class_and_place(element, distance);
            counts[usize::from(class)] += 1;
        }
        let sum = log2(counts.iter().sum());
        let codes = counts.into_iter().map(|count| sum - log2(count)).collect();
        Self { coding, codes }
    }

    /// Returns the length of a repeat. It is the greatest one for distances beyond those of the choice before.
    fn repeat(&self, distance: u32) -> i64 {
        self.class(self.coding.classes.first_repeat_class() + distance.ilog2() as u8)
    }

    /// Returns the length of an element with a name, or the greatest one if it has none.
    fn name(&self, element: u32) -> i64 {
        self.coding.group_of(element).map_or(i64::MAX, |group| self.class(group))
    }

    fn class(&self, class: u8) -> i64 {
        let class = usize::from(class);
        let Some(&code) = self.codes.get(class) else { return i64::MAX };
        code + BIT * i64::from(self.coding.classes.classes[class].width)
    }
}
