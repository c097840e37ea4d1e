//! Words of documents one after another in an array, as a text without a grammar would have them.
//!
//! ```text
//! rule    R4       R3         R2              children first, so R2 copies what R3 and R4 have
//! text    [a b]    [c a b]    [c a b d a b]
//! ```
//!
//! Small rules are written out once, in the order of the grammar ([`RuleTexts`]: O(G + words), 4 words
//! an element at most); a document copies their texts and takes larger rules apart, with a stack of
//! its own. O(words copied + rules taken apart).

use std::ops::Range;

use super::Dag;

/// Words of a rule at most for a text of its own.
const MAX_TEXT_WORDS: u64 = 64;
/// Words of all texts at most, for each element of the grammar.
const TEXT_WORDS_PER_ELEMENT: usize = 4;
/// Stands for a rule without a text.
const NOWHERE: u32 = u32::MAX;
/// Words up to which a loop is faster than a call that copies memory.
const SHORT_COPY: usize = 8;
/// Words of a document at most: 16 MiB.
pub(crate) const MAX_WORDS: u64 = 1 << 22;

/// The words of small rules.
#[derive(Debug, Default)]
pub(crate) struct RuleTexts {
    /// Start in `words` and length by rule; empty where there are no texts at all.
    ranges: Vec<(u32, u32)>,
    words: Vec<u32>,
}

impl RuleTexts {
    /// Texts from children to parents.
    pub fn new(dag: &Dag) -> Self {
        let grammar = dag.grammar();
        let max_words = grammar.symbols.len().saturating_mul(TEXT_WORDS_PER_ELEMENT);
        let max_words = max_words.min(NOWHERE as usize - 1);
        let ranges = vec![(NOWHERE, 0); grammar.num_rules()];
        let mut texts = Self { ranges, words: Vec::new() };
        for rule_idx in (1..grammar.num_rules()).rev() {
            let len = dag.len_words(dag.num_terminals() + rule_idx as u32);
            if len > MAX_TEXT_WORDS || texts.words.len() + len as usize > max_words {
                continue;
            }
            let start = texts.words.len();
            match texts.append(dag, rule_idx) {
                true => texts.ranges[rule_idx] = (start as u32, len as u32),
                false => texts.words.truncate(start),
            }
        }
        texts
    }

    /// Appends the words of a rule; says whether all its rules have a text.
    fn append(&mut self, dag: &Dag, rule_idx: usize) -> bool {
        for &element in dag.grammar().rule(rule_idx) {
            if element < dag.num_words() {
                self.words.push(element);
            } else if let Some(child) = dag.rule_of(element) {
                let (start, len) = self.ranges[child];
                if start == NOWHERE {
                    return false;
                }
                let (start, len) = (start as usize, len as usize);
                for at in start..start + len {
                    let word = self.words[at];
                    self.words.push(word);
                }
            }
        }
        true
    }

    #[inline]
    fn get(&self, rule_idx: usize) -> Option<&[u32]> {
        let &(start, len) = self.ranges.get(rule_idx)?;
        (start != NOWHERE).then(|| &self.words[start as usize..start as usize + len as usize])
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        8 * self.ranges.capacity() + 4 * self.words.capacity()
    }
}

/// The words of one document at a time.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    words: Vec<u32>,
    stack: Vec<Range<usize>>,
}

impl Expansion {
    /// The words at `positions` of one rule. Rules without words are not entered.
    pub fn expand(&mut self, dag: &Dag, texts: &RuleTexts, positions: Range<usize>) -> &[u32] {
        self.words.clear();
        let (symbols, num_words) = (&dag.grammar().symbols[..], dag.num_words());
        let mut range = positions;
        loop {
            let Some(position) = range.next() else {
                match self.stack.pop() {
                    Some(outer) => range = outer,
                    None => break,
                }
                continue;
            };
            let element = symbols[position];
            if element < num_words {
                self.words.push(element);
            } else if let Some(rule_idx) = dag.rule_of(element) {
                if let Some(text) = texts.get(rule_idx) {
                    match text.len() {
                        0..=SHORT_COPY => text.iter().for_each(|&word| self.words.push(word)),
                        _ => self.words.extend_from_slice(text),
                    }
                } else if dag.len_words(element) > 0 {
                    let outer = std::mem::replace(&mut range, dag.rule_range(rule_idx));
                    if !outer.is_empty() {
                        self.stack.push(outer);
                    }
                }
            }
        }
        &self.words
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        4 * self.words.capacity()
    }
}

/// Words at `positions` of one rule, 2^64 - 1 at most.
pub(crate) fn num_words_at(dag: &Dag, positions: Range<usize>) -> u64 {
    let lens = dag.grammar().symbols[positions].iter().map(|&element| dag.len_words(element));
    lens.fold(0, u64::saturating_add)
}
