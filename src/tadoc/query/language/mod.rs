//! The query language: from text to patterns of words. A query is a tree: leaves that have occurrences,
//! joined by AND, OR and NOT.
//!
//! ```text
//! NEAR(power loss, 5) ("red alert" OR alarm) NOT test
//!
//! items     0 power   1 loss   2 red alert   3 alarm   4 test
//! leaves    0 NEAR of items 0, 1   1 item 2   2 item 3   3 item 4
//! root      (0 AND (1 OR 2)) NOT 3
//! ```
//!
//! Items and leaves that are written twice are kept once. AND in AND and OR in OR are flattened.
//!
//! Reading order: `query` (the language), `parser`, `words` (from an item to patterns), `pattern` (one word
//! of a phrase: with wildcards or edits), `regex`.

pub(in crate::query) mod parser;
pub(in crate::query) mod pattern;
pub(in crate::query) mod query;
pub(in crate::query) mod regex;
pub(in crate::query) mod words;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;

use pattern::escaped;

pub use pattern::WordPattern;
pub use query::Query;
pub use words::QueryLimits;

/// Words that follow each other, one or more, as patterns.
pub type Item = Vec<WordPattern>;

/// A part of a query that has occurrences of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Leaf {
    /// The words of one item, with nothing but separators between them.
    Phrase(usize),
    /// The words of one item where their surroundings fit.
    Placed {
        /// Index of the item.
        item: usize,
        /// Surroundings.
        place: Place,
    },
    /// Occurrences of all items, two or more, in any order. Between the end of the first and the
    /// start of the last there are at most `max_between` words.
    Near {
        /// Indexes of the items.
        items: Vec<usize>,
        /// Surroundings of each item.
        places: Vec<Place>,
        /// Most words between the first and the last occurrence.
        max_between: u64,
    },
    /// Words in this order, two or more, with at most `max_between` other words among them.
    Gapped {
        /// Indexes of the items, of one word each.
        items: Vec<usize>,
        /// Most other words among them, in total.
        max_between: u64,
    },
}

impl Leaf {
    /// Returns the indexes of the items of the leaf.
    pub fn items(&self) -> &[usize] {
        match self {
            Self::Phrase(item) | Self::Placed { item, .. } => std::slice::from_ref(item),
            Self::Near { items, .. } | Self::Gapped { items, .. } => items,
        }
    }

    /// Returns the surroundings of the part with this index among [`items`](Self::items).
    pub(in crate::query) fn place(&self, part: usize) -> &Place {
        const ANY: &Place = &Place { is_first: false, gaps: Vec::new() };
        match self {
            Self::Placed { place, .. } => place,
            Self::Near { places, .. } => places.get(part).unwrap_or(ANY),
            Self::Phrase(_) | Self::Gapped { .. } => ANY,
        }
    }
}

/// Surroundings that the occurrences of an item must have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// True if the occurrence begins at the first word of the document.
    pub is_first: bool,
    /// Text before the first word, between neighbours and behind the last word. Empty if any text
    /// fits.
    pub gaps: Vec<String>,
}

impl Place {
    /// Returns true if every occurrence fits.
    pub(in crate::query) fn is_any(&self) -> bool {
        !self.is_first && self.gaps.is_empty()
    }
}

/// A condition on a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expression {
    /// The document has an occurrence of the leaf with this index.
    Leaf(usize),
    /// All of these hold.
    And(Vec<Expression>),
    /// At least one of these holds.
    Or(Vec<Expression>),
    /// The first holds and the second does not.
    Not(Box<[Expression; 2]>),
}

impl Expression {
    /// Returns the condition that all of `parts` hold.
    pub(in crate::query) fn all(parts: Vec<Self>) -> Self {
        let flat = parts.into_iter().flat_map(|part| match part {
            Self::And(parts) => parts,
            other => vec![other],
        });
        single_or(distinct(flat.collect()), Self::And)
    }

    /// Returns the condition that one of `parts` holds.
    pub(in crate::query) fn any(parts: Vec<Self>) -> Self {
        let flat = parts.into_iter().flat_map(|part| match part {
            Self::Or(parts) => parts,
            other => vec![other],
        });
        single_or(distinct(flat.collect()), Self::Or)
    }

    /// Returns the condition that `kept` holds and none of `excluded`. `a NOT b NOT c` is the same
    /// as `a NOT (b OR c)`, so that a chain of any length has one level.
    pub(in crate::query) fn without(kept: Self, excluded: Vec<Self>) -> Self {
        match (kept, excluded) {
            (kept, excluded) if excluded.is_empty() => kept,
            (Self::Not(parts), more) => {
                let [kept, excluded] = *parts;
                let excluded = Self::any([excluded].into_iter().chain(more).collect());
                Self::Not(Box::new([kept, excluded]))
            }
            (kept, excluded) => Self::Not(Box::new([kept, Self::any(excluded)])),
        }
    }

    /// Returns true if the condition holds where exactly the leaves that `is_there` returns true
    /// for have occurrences.
    pub(in crate::query) fn holds(&self, is_there: &mut dyn FnMut(usize) -> bool) -> bool {
        match self {
            Self::Leaf(leaf) => is_there(*leaf),
            Self::And(parts) => parts.iter().all(|part| part.holds(is_there)),
            Self::Or(parts) => parts.iter().any(|part| part.holds(is_there)),
            Self::Not(parts) => parts[0].holds(is_there) && !parts[1].holds(is_there),
        }
    }

    /// Returns true if the condition can hold where at most the leaves that `is_there` returns true
    /// for have occurrences.
    pub(in crate::query) fn can_hold(&self, is_there: &mut dyn FnMut(usize) -> bool) -> bool {
        match self {
            Self::Leaf(leaf) => is_there(*leaf),
            Self::And(parts) => parts.iter().all(|part| part.can_hold(is_there)),
            Self::Or(parts) => parts.iter().any(|part| part.can_hold(is_there)),
            Self::Not(parts) => parts[0].can_hold(is_there),
        }
    }

    /// Calls `visit` with the leaves whose occurrences are hits where the condition holds: all but
    /// those that NOT excludes and those of alternatives that do not hold.
    pub(in crate::query) fn for_each_hit_leaf(
        &self,
        is_there: &mut dyn FnMut(usize) -> bool,
        visit: &mut dyn FnMut(usize),
    ) {
        match self {
            Self::Leaf(leaf) => visit(*leaf),
            Self::And(parts) => {
                parts.iter().for_each(|part| part.for_each_hit_leaf(is_there, visit));
            }
            Self::Or(parts) => {
                for part in parts {
                    if part.holds(is_there) {
                        part.for_each_hit_leaf(is_there, visit);
                    }
                }
            }
            Self::Not(parts) => parts[0].for_each_hit_leaf(is_there, visit),
        }
    }

    /// Returns the same condition with leaf `i` replaced by leaf `leaves[i]`.
    fn renumbered(&self, leaves: &[usize]) -> Self {
        let all = |parts: &[Self]| parts.iter().map(|part| part.renumbered(leaves)).collect();
        match self {
            Self::Leaf(leaf) => Self::Leaf(leaves[*leaf]),
            Self::And(parts) => Self::all(all(parts)),
            Self::Or(parts) => Self::any(all(parts)),
            Self::Not(parts) => Self::without(parts[0].renumbered(leaves), vec![parts[1].renumbered(leaves)]),
        }
    }
}

/// Returns the only part, or `join` of several.
fn single_or(parts: Vec<Expression>, join: fn(Vec<Expression>) -> Expression) -> Expression {
    match <[Expression; 1]>::try_from(parts) {
        Ok([only]) => only,
        Err(parts) => join(parts),
    }
}

/// Returns `parts` without repetitions, in order.
fn distinct<T: Eq + Hash>(parts: Vec<T>) -> Vec<T> {
    let mut seen = HashSet::with_capacity(parts.len());
    let is_new: Vec<bool> = parts.iter().map(|part| seen.insert(part)).collect();
    parts.into_iter().zip(is_new).filter_map(|(part, is_new)| is_new.then_some(part)).collect()
}

/// Distinct values, numbered in order of their first appearance.
#[derive(Debug)]
struct Numbered<T> {
    values: Vec<T>,
    numbers: HashMap<T, usize>,
}

impl<T: Eq + Hash + Clone> Numbered<T> {
    fn new() -> Self {
        Self { values: Vec::new(), numbers: HashMap::new() }
    }

    fn number(&mut self, value: T) -> usize {
        let next = self.values.len();
        *self.numbers.entry(value).or_insert_with_key(|value| {
            self.values.push(value.clone());
            next
        })
    }
}

/// Items and leaves of a query that is being put together.
#[derive(Debug)]
pub(in crate::query) struct Leaves {
    items: Numbered<Item>,
    leaves: Numbered<Leaf>,
}

impl Leaves {
    pub fn new() -> Self {
        Self { items: Numbered::new(), leaves: Numbered::new() }
    }

    /// Returns the number of the leaf whose words follow each other.
    pub fn phrase(&mut self, item: Item) -> usize {
        let item = self.items.number(item);
        self.leaves.number(Leaf::Phrase(item))
    }

    /// Returns the number of the leaf whose words follow each other where `place` fits.
    pub fn placed(&mut self, item: Item, place: Place) -> usize {
        let item = self.items.number(item);
        self.leaves.number(if place.is_any() { Leaf::Phrase(item) } else { Leaf::Placed { item, place } })
    }

    /// Returns the number of the leaf whose `parts` lie near each other. Equal parts count once.
    pub fn near(&mut self, parts: Vec<(Item, Place)>, max_between: u64) -> usize {
        if let [first, rest @ ..] = &parts[..]
            && rest.iter().all(|part| part == first)
        {
            let (item, place) = first.clone();
            return self.placed(item, place);
        }
        let parts = parts.into_iter().map(|(item, place)| (self.items.number(item), place));
        let (items, places) = distinct(parts.collect()).into_iter().unzip();
        self.leaves.number(Leaf::Near { items, places, max_between })
    }

    /// Returns the number of the leaf whose words follow each other with gaps.
    pub fn gapped(&mut self, item: Item, max_between: u64) -> usize {
        if item.len() == 1 || max_between == 0 {
            return self.phrase(item);
        }
        let items = item.into_iter().map(|word| self.items.number(vec![word])).collect();
        self.leaves.number(Leaf::Gapped { items, max_between })
    }

    /// Returns `root` for other `items` in place of the items it was made with, as items, leaves
    /// and root. Items that are equal become one, and items of no leaf are left out. Cost:
    /// O(leaves and their items).
    pub fn replaced(items: &[Item], leaves: &[Leaf], root: &Expression) -> (Vec<Item>, Vec<Leaf>, Expression) {
        let mut made = Self::new();
        let leaves = leaves.iter().map(|leaf| made.replaced_leaf(leaf, items));
        let numbers: Vec<usize> = leaves.collect();
        let root = root.renumbered(&numbers);
        let (items, leaves) = made.finish();
        (items, leaves, root)
    }

    /// Adds `leaf`, whose items are in `items`, and returns its number.
    fn replaced_leaf(&mut self, leaf: &Leaf, items: &[Item]) -> usize {
        match leaf {
            Leaf::Phrase(item) => self.phrase(items[*item].clone()),
            Leaf::Placed { item, place } => self.placed(items[*item].clone(), place.clone()),
            Leaf::Near { items: near, places, max_between } => {
                let parts = near.iter().zip(places);
                let parts = parts.map(|(&item, place)| (items[item].clone(), place.clone()));
                self.near(parts.collect(), *max_between)
            }
            Leaf::Gapped { items: gapped, max_between } => {
                self.gapped(gapped.iter().flat_map(|&i| items[i].clone()).collect(), *max_between)
            }
        }
    }

    /// Returns the items and the leaves.
    pub fn finish(self) -> (Vec<Item>, Vec<Leaf>) {
        (self.items.values, self.leaves.values)
    }
}

/// An expression with the items and leaves that it refers to, to be written in normal form.
pub(in crate::query) struct Shown<'q> {
    pub items: &'q [Item],
    pub leaves: &'q [Leaf],
    pub expression: &'q Expression,
}

impl Shown<'_> {
    fn for_expression(&self, expression: &Expression) -> String {
        Shown { expression, ..*self }.to_string()
    }

    /// Writes an operand of an operator that binds more tightly than OR. NOT inside of it stands in
    /// parentheses.
    fn operand(&self, expression: &Expression) -> String {
        let text = self.for_expression(expression);
        match expression {
            Expression::Leaf(_) | Expression::And(_) => text,
            Expression::Or(_) | Expression::Not(_) => format!("({text})"),
        }
    }

    /// Writes words that follow each other.
    fn phrase(&self, item: usize) -> String {
        phrase(&self.words(item))
    }

    /// Writes an item with the text around its words.
    fn placed(&self, item: usize, place: &Place) -> String {
        let sign = if place.is_first { "^" } else { "" };
        if place.gaps.is_empty() {
            return sign.to_owned() + &self.phrase(item);
        }
        let mut gaps = place.gaps.iter().map(|gap| escaped(gap));
        let first = gaps.next().unwrap_or_default();
        let rest = self.words(item).into_iter().zip(gaps).map(|(word, gap)| word + &gap);
        format!("{sign}{}", quoted(&(first + &rest.collect::<String>())))
    }

    fn words(&self, item: usize) -> Vec<String> {
        self.items[item].iter().map(WordPattern::to_string).collect()
    }

    fn leaf(&self, leaf: &Leaf) -> String {
        match leaf {
            Leaf::Phrase(item) => self.phrase(*item),
            Leaf::Placed { item, place } => self.placed(*item, place),
            Leaf::Near { items, places, max_between } => {
                let parts = items.iter().zip(places);
                let parts: Vec<String> = parts.map(|(&i, place)| self.placed(i, place)).collect();
                format!("NEAR({}, {max_between})", parts.join(" "))
            }
            Leaf::Gapped { items, max_between } => {
                let words = items.iter().flat_map(|&item| &self.items[item]);
                let words: Vec<String> = words.map(WordPattern::to_string).collect();
                format!("{}~{max_between}", phrase(&words))
            }
        }
    }
}

/// Writes `words` in quotes. A question mark before the closing quote would be text,
/// so a blank is between them.
fn phrase(words: &[String]) -> String {
    let text = words.join(" ");
    let is_open = text.strip_suffix('?').is_some_and(|before| {
        let num_escapes = before.len() - before.trim_end_matches('\\').len();
        num_escapes % 2 == 0
    });
    quoted(&(text + if is_open { " " } else { "" }))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |parts: Vec<String>, by: &str| parts.join(by);
        let text = match self.expression {
            Expression::Leaf(leaf) => self.leaf(&self.leaves[*leaf]),
            Expression::And(parts) => joined(parts.iter().map(|part| self.operand(part)).collect(), " "),
            Expression::Or(parts) => joined(parts.iter().map(|part| self.for_expression(part)).collect(), " OR "),
            Expression::Not(parts) => {
                let [kept, excluded] = parts.as_ref();
                let excluded = match excluded {
                    Expression::Or(parts) => &parts[..],
                    other => std::slice::from_ref(other),
                };
                let excluded = excluded.iter().map(|part| self.operand(part));
                joined([self.operand(kept)].into_iter().chain(excluded).collect(), " NOT ")
            }
        };
        formatter.write_str(&text)
    }
}
