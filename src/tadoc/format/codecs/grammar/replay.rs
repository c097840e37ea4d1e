//! Events of the section, turned into the grammar that they describe.
//!
//! ```text
//! symbols   elements of the root and of open rules ▶ │ free │ complete rules
//!                                                             the last one has the lowest number
//! ```
//!
//! Both codecs of the section describe the same events. An event takes O(1), a complete rule as
//! much as its length. It needs 4 bytes for each element and about 35 for each id.
//!
//! # Order of events
//!
//! Iterator over a grammar as the events of its section, see the [module](super).
//!
//! Each element of each rule is one event. The first use of a rule is two events, around its body.
//! It needs one bit for each element, and a stack as deep as the nesting of rules.

use crate::format::layout::SegmentMeta;
use crate::grammar::Grammar;

use super::recency::{Entry, Recency};
use super::{
    CLASSES, DOC_END, FIRST_SYMBOL, LISTS, NEW_RULE, NUM_LISTS, NUM_SYMBOLS, PREDICTED, SEPARATORS, UNSEEN_SEPARATOR,
    UNSEEN_WORD, WORDS, begins_with_separator, ends_with_separator, rules,
};

/// Stands for an element that does not exist.
const NOTHING: u32 = u32::MAX;

/// Number of uses at which an element leaves each symbol for the next.
const NEXT_AT: [u32; NUM_SYMBOLS] = {
    let mut next_at = [u32::MAX; NUM_SYMBOLS];
    let mut list = 0;
    while list < NUM_LISTS {
        let mut octave = 1;
        while octave < 16 {
            if CLASSES[list][octave] > CLASSES[list][octave - 1] {
                next_at[FIRST_SYMBOL[list] + CLASSES[list][octave - 1] as usize] = 1 << octave;
            }
            octave += 1;
        }
        list += 1;
    }
    next_at
};

/// Grammar after the events so far.
pub(super) struct Replay {
    /// Element that last followed two after each element.
    followers: Vec<u32>,
    /// List of each terminal and of each complete rule.
    lists: Vec<u8>,
    /// Last element and the one before it, or the two places behind all ids at the begin of a
    /// document.
    before: usize,
    before_last: usize,
    /// List of the last element.
    last_list: usize,
    /// Elements of each symbol.
    recency: [Recency; NUM_SYMBOLS],
    unseen: [Vec<u32>; 2],
    rules: Rules,
}

impl Replay {
    pub(super) fn new(meta: &SegmentMeta) -> Self {
        let num_terminals = meta.num_words + meta.num_separators;
        let num_ids = num_terminals as usize + meta.num_rules as usize;
        let mut lists = vec![WORDS as u8; num_ids];
        lists[meta.num_words as usize..num_terminals as usize].fill(SEPARATORS as u8);
        Self {
            followers: vec![NOTHING; num_ids + 2],
            lists,
            before: num_ids + 1,
            before_last: num_ids,
            last_list: SEPARATORS,
            recency: Default::default(),
            unseen: [(0..meta.num_words).collect(), (meta.num_words..num_terminals).collect()],
            rules: Rules::new(num_terminals, meta.num_rules, meta.num_elements as usize),
        }
    }

    /// Returns the list of the last element, that of separators at the begin of a document.
    pub(super) fn last_list(&self) -> usize {
        self.last_list
    }

    /// Returns the last element.
    pub(super) fn last_element(&self) -> u32 {
        self.before as u32
    }

    /// Returns the number of tokens of `list` that are not used yet.
    pub(super) fn num_unseen(&self, list: usize) -> u32 {
        self.unseen[list].len() as u32
    }

    /// Applies the event of `symbol`, with the `number` or index that follows if the symbol has
    /// one. Returns `None` if it does not fit.
    #[inline]
    pub(super) fn event(&mut self, symbol: u8, number: u32) -> Option<()> {
        let symbol = usize::from(symbol);
        match symbol {
            UNSEEN_WORD | UNSEEN_SEPARATOR => self.unseen_token(symbol - UNSEEN_WORD, number),
            NEW_RULE => self.rules.open_rule(number),
            DOC_END => self.end_document(),
            PREDICTED => {
                let element = self.followers[self.before_last];
                self.predicted(element)
            }
            _ => self.seen_element(symbol % NUM_SYMBOLS, number),
        }
    }

    fn end_document(&mut self) -> Option<()> {
        self.last_list = SEPARATORS;
        self.before_last = self.followers.len() - 2;
        self.before = self.before_last + 1;
        self.rules.end_document()
    }

    /// Appends `element`, if there is one.
    #[inline]
    pub(super) fn predicted(&mut self, element: u32) -> Option<()> {
        let list = *self.lists.get(element as usize)?;
        self.element(element, list.into())
    }

    #[inline]
    fn unseen_token(&mut self, list: usize, index: u32) -> Option<()> {
        let unseen = &mut self.unseen[list];
        if index as usize >= unseen.len() {
            return None;
        }
        let element = unseen.swap_remove(index as usize);
        self.recency[FIRST_SYMBOL[list]].push(Entry::from_element(element));
        self.element(element, list)
    }

    #[inline]
    fn seen_element(&mut self, symbol: usize, distance: u32) -> Option<()> {
        let entry = self.recency[symbol].take(distance)?.used_again();
        let leaves = entry.num_uses() >= NEXT_AT[symbol];
        let to = if leaves { symbol + 1 } else { symbol };
        self.recency[to % NUM_SYMBOLS].push(entry);
        self.element(entry.element(), LISTS[symbol].into())
    }

    /// Appends an element of `list` and closes the rules that it completes.
    #[inline]
    fn element(&mut self, element: u32, list: usize) -> Option<()> {
        self.last_list = list;
        self.followers[self.before_last] = element;
        self.before_last = self.before;
        self.before = element as usize;
        self.rules.push(element, list)?;
        match self.rules.open.left {
            0 => self.close_rules(),
            _ => Some(()),
        }
    }

    /// Closes all rules that are complete.
    fn close_rules(&mut self) -> Option<()> {
        while self.rules.open.left == 0 {
            let begins_with_separator = begins_with_separator(self.rules.open.first_list.into());
            let rule = self.rules.close()?;
            let list = rules(begins_with_separator, ends_with_separator(self.last_list));
            *self.lists.get_mut(rule as usize)? = list as u8;
            self.recency[FIRST_SYMBOL[list]].push(Entry::from_element(rule));
            self.rules.push(rule, list)?;
        }
        Some(())
    }

    /// Returns the grammar if it is whole.
    pub(super) fn finish(self, num_docs: u64) -> Option<Grammar> {
        self.rules.finish().filter(|grammar| grammar.doc_offsets.len() as u64 == num_docs + 1)
    }
}

/// A rule whose elements are being read, or the root.
#[derive(Debug, Clone, Copy)]
struct OpenRule {
    /// Number of its remaining elements, never 0 for the root.
    left: u32,
    /// Index of its first element.
    start: u32,
    /// List of its first element.
    first_list: u8,
}

/// Rules under construction.
struct Rules {
    num_terminals: u32,
    /// Index of the rule that is completed next. 0 is the root.
    next_rule_idx: usize,
    rule_offsets: Vec<u32>,
    symbols: Vec<u32>,
    /// Number of elements of the root and of open rules.
    num_pending: usize,
    /// Number of elements before the first complete rule.
    num_free: usize,
    /// Sum of the lengths of all rules so far.
    num_promised: usize,
    /// Rule opened last, and the rules around it, root first.
    open: OpenRule,
    around: Vec<OpenRule>,
    doc_offsets: Vec<u32>,
}

impl Rules {
    fn new(num_terminals: u32, num_rules: u32, num_elements: usize) -> Self {
        let mut rule_offsets = vec![0; num_rules as usize + 1];
        rule_offsets[num_rules as usize] = num_elements as u32;
        Self {
            num_terminals,
            next_rule_idx: (num_rules as usize).saturating_sub(1),
            rule_offsets,
            symbols: vec![0; num_elements],
            num_pending: 0,
            num_free: num_elements,
            num_promised: 0,
            open: OpenRule { left: u32::MAX, start: 0, first_list: SEPARATORS as u8 },
            around: Vec::new(),
            doc_offsets: vec![0],
        }
    }

    /// Begins a rule of `len` elements.
    #[inline]
    fn open_rule(&mut self, len: u32) -> Option<()> {
        self.num_promised = self.num_promised.checked_add(len as usize)?;
        let fits = len > 0 && self.num_promised <= self.symbols.len() && self.around.len() < self.next_rule_idx;
        if !fits {
            return None;
        }
        self.around.push(self.open);
        let start = self.num_pending as u32;
        self.open = OpenRule { left: len, start, first_list: SEPARATORS as u8 };
        Some(())
    }

    fn end_document(&mut self) -> Option<()> {
        self.around.is_empty().then(|| self.doc_offsets.push(self.num_pending as u32))
    }

    /// Appends an element of `list` to the rule opened last, or to the root.
    #[inline]
    fn push(&mut self, element: u32, list: usize) -> Option<()> {
        if self.num_pending >= self.num_free {
            return None;
        }
        *self.symbols.get_mut(self.num_pending)? = element;
        let OpenRule { left, start, first_list } = self.open;
        let is_first = start as usize == self.num_pending;
        let first_list = if is_first { list as u8 } else { first_list };
        self.open = OpenRule { left: left - 1, start, first_list };
        self.num_pending += 1;
        Some(())
    }

    /// Closes the rule opened last, which is complete, and returns its id.
    fn close(&mut self) -> Option<u32> {
        let start = self.open.start as usize;
        let to = self.num_free - (self.num_pending - start);
        self.symbols.copy_within(start..self.num_pending, to);
        self.open = self.around.pop()?;
        let rule_idx = self.next_rule_idx;
        self.next_rule_idx = rule_idx.checked_sub(1)?;
        self.rule_offsets[rule_idx] = to as u32;
        (self.num_free, self.num_pending) = (to, start);
        Some(self.num_terminals + rule_idx as u32)
    }

    /// Returns the grammar if it has all declared elements. The pending elements are the root.
    fn finish(self) -> Option<Grammar> {
        let is_whole = self.around.is_empty() && self.next_rule_idx == 0 && self.num_pending == self.num_free;
        is_whole.then_some(Grammar {
            num_terminals: self.num_terminals,
            rule_offsets: self.rule_offsets,
            symbols: self.symbols,
            doc_offsets: self.doc_offsets,
        })
    }
}

/// One event of the section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::format) enum Event {
    /// A terminal or a complete rule, by id.
    Element(u32),
    /// First use of a rule, by index.
    OpenRule(u32),
    /// End of the rule opened last, by index.
    CloseRule(u32),
    DocEnd,
}

/// Remaining elements of a rule.
struct Open {
    rule_idx: u32,
    next: u32,
    end: u32,
}

/// Iterator state: the next positions in the root and in the open rules.
pub(in crate::format) struct EventOrder<'a> {
    grammar: &'a Grammar,
    /// Bit of each element, set if it is a rule that was not opened yet. Terminals are included so
    /// that the walk has no branch on the kind of element.
    is_new_rule: Vec<u64>,
    next_doc: usize,
    root_next: u32,
    open: Vec<Open>,
}

impl<'a> EventOrder<'a> {
    /// Creates the iterator over the events of `grammar`, which must be valid.
    pub(in crate::format) fn new(grammar: &'a Grammar) -> Self {
        let num_terminals = grammar.num_terminals as usize;
        let mut is_new_rule = vec![u64::MAX; (num_terminals + grammar.num_rules()).div_ceil(64)];
        is_new_rule[..num_terminals / 64].fill(0);
        if let Some(mixed) = is_new_rule.get_mut(num_terminals / 64) {
            *mixed = u64::MAX << (num_terminals % 64);
        }
        Self { grammar, is_new_rule, next_doc: 1, root_next: 0, open: Vec::new() }
    }

    /// Returns the next event.
    #[inline]
    pub(in crate::format) fn next_event(&mut self) -> Option<Event> {
        let position = match self.open.last_mut() {
            Some(&mut Open { rule_idx, next, end }) if next == end => {
                self.open.pop();
                return Some(Event::CloseRule(rule_idx));
            }
            Some(open) => &mut open.next,
            None if self.grammar.doc_offsets.get(self.next_doc) == Some(&self.root_next) => {
                self.next_doc += 1;
                return Some(Event::DocEnd);
            }
            None if self.root_next == self.grammar.rule_offsets[1] => return None,
            None => &mut self.root_next,
        };
        let element = self.grammar.symbols[*position as usize];
        *position += 1;
        let is_new_rule = self.is_new_rule[element as usize / 64] >> (element % 64) & 1 != 0;
        Some(if is_new_rule { self.open_rule(element) } else { Event::Element(element) })
    }

    /// Returns the place in the grammar's symbols at which the rule that was opened last is used first.
    pub(in crate::format) fn opened_at(&self) -> usize {
        let parent = self.open.len().checked_sub(2).and_then(|at| self.open.get(at));
        parent.map_or(self.root_next, |parent| parent.next) as usize - 1
    }

    fn open_rule(&mut self, element: u32) -> Event {
        self.is_new_rule[element as usize / 64] &= !(1 << (element % 64));
        let rule_idx = element - self.grammar.num_terminals;
        let offsets = &self.grammar.rule_offsets;
        let next = offsets[rule_idx as usize];
        let end = offsets[rule_idx as usize + 1];
        self.open.push(Open { rule_idx, next, end });
        Event::OpenRule(rule_idx)
    }
}
