//! Expansion of documents into arrays of words, as a text without a grammar would have them.
//!
//! ```text
//! rule    R4       R3         R2              children first, so R2 copies the texts of R3 and R4
//! text    [a b]    [c a b]    [c a b d a b]
//! ```
//!
//! Small rules are expanded once, in the order of the grammar ([`RuleTexts`]: O(G + words), at most
//! 4 words for each element). A document copies their texts and descends into larger rules, with an
//! explicit stack. It needs O(words copied + rules entered) time.
//!
//! The kind of an element (word, separator, short rule, long rule) is almost random. So words and
//! separators have texts too, and [`SHORT_COPY`] words of every short text are copied, without a
//! branch. The next text overwrites the excess. All term vectors of 7,424 small documents (a-tldr)
//! took 1.2 times as long with branches.

use std::ops::Range;

use crate::ids::RuleId;
use crate::segment::Dag;

/// Greatest number of words of a rule that has a text.
const MAX_TEXT_WORDS: u64 = 64;
/// Greatest number of words in all texts, for each element of the grammar.
const TEXT_WORDS_PER_ELEMENT: usize = 4;
/// Length that marks a rule without a text.
const NO_TEXT: usize = u32::MAX as usize;
/// Number of words in a short text: a cache line.
const SHORT_COPY: usize = 16;
/// Greatest number of words of a document: 16 MiB, in a buffer for up to twice as many.
pub(crate) const MAX_WORDS: u64 = 1 << 22;

/// Words of small rules.
#[derive(Debug)]
pub(crate) struct RuleTexts {
    /// Start in `words` and length of each separator and rule.
    ranges: Vec<(u32, u32)>,
    /// All texts one after another, then room for a short copy.
    words: Vec<u32>,
}

impl RuleTexts {
    /// Builds the texts from children to parents.
    pub fn new(dag: &Dag) -> Self {
        let (grammar, num_words) = (dag.grammar(), dag.num_words());
        let max_words = grammar.symbols.len().saturating_mul(TEXT_WORDS_PER_ELEMENT);
        let max_words = max_words.min(NO_TEXT - 1);
        let num_separators = (dag.num_terminals() - num_words) as usize;
        let mut ranges = vec![(0, 0); num_separators];
        ranges.resize(num_separators + grammar.num_rules(), (0, NO_TEXT as u32));
        let (mut texts, mut end) = (Self { ranges, words: Vec::new() }, 0);
        for rule_id in grammar.rule_ids().skip(1).rev() {
            let len = dag.len_words(grammar.element_of(rule_id));
            if len > MAX_TEXT_WORDS || end + len as usize > max_words {
                continue;
            }
            if texts.write(dag, rule_id, end) {
                texts.ranges[num_separators + rule_id.index()] = (end as u32, len as u32);
                end += len as usize;
            }
        }
        texts.words.resize(end + SHORT_COPY, 0);
        texts.words.shrink_to_fit();
        texts
    }

    /// Writes the words of a rule from `end` on. Returns true if all rules in it have a text.
    fn write(&mut self, dag: &Dag, rule_id: RuleId, mut end: usize) -> bool {
        for &element in dag.grammar().rule(rule_id) {
            let (start, len) = self.range(dag.num_words(), element);
            if len == NO_TEXT {
                return false;
            }
            make_room(&mut self.words, end.max(start) + len.max(SHORT_COPY));
            match len {
                ..=SHORT_COPY => {
                    let first = first_word(self.words[start], dag.num_words(), element);
                    self.words.copy_within(start..start + SHORT_COPY, end);
                    self.words[end] = first;
                }
                _ => self.words.copy_within(start..start + len, end),
            }
            end += len;
        }
        true
    }

    /// Returns the start and length of the text of `element`. For a word the start is arbitrary.
    #[inline]
    fn range(&self, num_words: u32, element: u32) -> (usize, usize) {
        let is_word = element < num_words;
        let (start, len) = self.ranges[if is_word { 0 } else { (element - num_words) as usize }];
        if is_word { (0, 1) } else { (start as usize, len as usize) }
    }

    /// Returns the number of bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        8 * self.ranges.capacity() + 4 * self.words.capacity()
    }
}

/// Returns the first word of the short text of `element`: the element if it is a word, else
/// `first`.
#[inline]
fn first_word(first: u32, num_words: u32, element: u32) -> u32 {
    if element < num_words { element } else { first }
}

/// Extends `words` to at least `len` entries.
#[inline]
fn make_room(words: &mut Vec<u32>, len: usize) {
    if words.len() < len {
        words.resize(len + len / 2, 0);
    }
}

/// Buffer for the words of one document at a time.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    words: Vec<u32>,
    stack: Vec<Range<usize>>,
}

impl Expansion {
    /// Returns the words at `positions` of one rule. It does not enter rules without words.
    pub fn expand(&mut self, dag: &Dag, texts: &RuleTexts, positions: Range<usize>) -> &[u32] {
        let (symbols, num_words) = (&dag.grammar().symbols[..], dag.num_words());
        let (mut range, mut end) = (positions, 0);
        loop {
            let Some(position) = range.next() else {
                match self.stack.pop() {
                    Some(outer) => range = outer,
                    None => break,
                }
                continue;
            };
            let element = symbols[position];
            let (start, len) = texts.range(num_words, element);
            match len {
                ..=SHORT_COPY => {
                    make_room(&mut self.words, end + SHORT_COPY);
                    let text = &texts.words[start..start + SHORT_COPY];
                    let to = &mut self.words[end..end + SHORT_COPY];
                    to.copy_from_slice(text);
                    to[0] = first_word(text[0], num_words, element);
                    end += len;
                }
                NO_TEXT => {
                    if let Some(rule_id) =
                        dag.rule_of(element).filter(|_| dag.len_words(element) > 0)
                    {
                        let outer = std::mem::replace(&mut range, dag.rule_range(rule_id));
                        if !outer.is_empty() {
                            self.stack.push(outer);
                        }
                    }
                }
                _ => {
                    make_room(&mut self.words, end + len);
                    self.words[end..end + len].copy_from_slice(&texts.words[start..start + len]);
                    end += len;
                }
            }
        }
        &self.words[..end]
    }

    /// Returns the number of bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        4 * self.words.capacity()
    }
}

/// Returns the number of words at `positions` of one rule, at most 2^64 - 1.
pub(crate) fn num_words_at(dag: &Dag, positions: Range<usize>) -> u64 {
    let lens = dag.grammar().symbols[positions].iter().map(|&element| dag.len_words(element));
    lens.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::segment::dag::tests::dag_of;

    fn slow(dag: &Dag, positions: Range<usize>) -> Vec<u32> {
        let mut pending: Vec<u32> =
            dag.grammar().symbols[positions].iter().rev().copied().collect();
        let mut words = Vec::new();
        while let Some(element) = pending.pop() {
            match dag.rule_of(element) {
                Some(rule_id) => pending.extend(dag.grammar().rule(rule_id).iter().rev()),
                None if element < dag.num_words() => words.push(element),
                None => {}
            }
        }
        words
    }

    proptest! {
        #[test]
        fn words_are_those_of_the_rules(
            root in prop::collection::vec(0u32..14, 1..60),
            inner in prop::collection::vec(0u32..5, 2..20),
        ) {
            // Words 0 to 2, separators 3 and 4. Rule r is twice rule r + 1 and a separator, up to
            // 19 * 2^7 words.
            let used = root.into_iter().map(|e| if e < 5 { e } else { (e - 5) % 8 + 6 });
            let root: Vec<u32> = used.chain(6..14).collect();
            let mut rules = vec![root];
            rules.extend((7..14).map(|next| vec![next, 3, next]));
            rules.push(inner);
            let end = rules[0].len() as u32;
            let dag = dag_of(rules, &[0, end / 2, end], 3, &[1, 2, 3, 1, 1]);
            let texts = RuleTexts::new(&dag);
            let mut expansion = Expansion::default();
            for positions in [0..end as usize, 0..end as usize / 2, end as usize - 1..end as usize, 0..0] {
                let expected = slow(&dag, positions.clone());
                prop_assert_eq!(expansion.expand(&dag, &texts, positions), expected);
            }
        }
    }
}
