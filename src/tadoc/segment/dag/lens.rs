//! Length and edge class of every element's expansion, eight bytes for each.
//!
//! ```text
//! bit     0 .. 31   32 .. 59   60, 61      62                   63
//!         bytes     words      thinness    begins with a word   ends with a word
//! ```
//!
//! An expansion of 2^32 - 1 bytes or 2^28 - 1 words, or more, has all of the lower 60 bits set. Its length stands in a
//! table beside the array; few elements of a file have one. One load finds all there is to know of nearly every
//! element, and the array is a third of one with full lengths, so the sweep that fills it is several times as fast.
//!
//! The sweep also finds *steep* rules, of which walks take many steps and yield almost no text. An exact count of steps
//! needs another number for each element. So the sweep tests a property that all grammars of builders have and that no
//! steep rule has. The exact count is made only without it.
//!
//! A rule is *thin* if one of its elements has bytes and the others are empty. Its thinness is 1, and 1 more than that
//! of the one element if that is thin, too. The property: no thinness exceeds 2, and no rule has more than one empty
//! element before, between and after those with bytes. Then a rule of b bytes has at most 17 b + 6 elements below it.
//! (By induction: 17 b - 17 if it is not thin, since n > 1 elements with bytes have at most 6 steps each through thin
//! rules, and 2 n + 1 elements are in the rule itself.)

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::ids::RuleId;

/// Greatest number of elements below a rule, including those of inner rules, for each byte of its
/// expansion. Rules of two elements or more over tokens of real text take at most 6 steps for each
/// byte.
const MAX_STEPS_PER_BYTE: u64 = 64;

const BYTES: u64 = (1 << 32) - 1;
const WORDS_SHIFT: u32 = 32;
const WORDS: u64 = (1 << 28) - 1;
/// Bytes and words of an expansion whose length stands in the table.
const TOO_LARGE: u64 = (1 << 60) - 1;
const THINNESS_SHIFT: u32 = 60;
const THINNESS: u64 = 3;
const BEGINS_WITH_WORD: u64 = 1 << 62;
const ENDS_WITH_WORD: u64 = 1 << 63;
/// Smallest number of words that is refused.
const END_WORDS: u64 = 1 << 62;

/// Lengths of all elements of a grammar.
#[derive(Debug)]
pub(super) struct Lens {
    packed: Vec<Packed>,
    /// Bytes and words of expansions that are too large for the array, by element id.
    large: FxHashMap<u32, [u64; 2]>,
}

/// Length of an expansion, and its edge class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Len {
    /// Number of bytes, including implied blanks inside it.
    pub bytes: u64,
    /// Number of words.
    pub words: u64,
    edges: Packed,
}

impl Len {
    /// Returns 1 if a blank is implied between `before` and this element.
    #[inline]
    pub fn blank_after(self, before: Self) -> u64 {
        self.edges.blank_after(before.edges)
    }

    /// Returns true if the expansion ends with a word.
    #[inline]
    pub fn ends_with_word(self) -> bool {
        self.edges.0 & ENDS_WITH_WORD != 0
    }
}

/// Entry of the array.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Packed(u64);

impl Packed {
    fn new(bytes: u64, words: u64) -> Option<Self> {
        (bytes < BYTES && words < WORDS).then_some(Self(bytes | words << WORDS_SHIFT))
    }

    #[inline]
    fn bytes(self) -> u64 {
        self.0 & BYTES
    }

    #[inline]
    fn words(self) -> u64 {
        self.0 >> WORDS_SHIFT & WORDS
    }

    #[inline]
    fn is_too_large(self) -> bool {
        self.bytes() == BYTES
    }

    #[inline]
    fn thinness(self) -> u64 {
        self.0 >> THINNESS_SHIFT & THINNESS
    }

    #[inline]
    fn blank_after(self, before: Self) -> u64 {
        before.0 >> 63 & self.0 >> 62 & 1
    }
}

/// Sums over the elements of one rule.
#[derive(Debug, Clone, Copy, Default)]
struct RuleSums {
    bytes: u64,
    words: u64,
    /// Number of blanks between its elements.
    num_blanks: u64,
    /// Number of elements without bytes.
    num_empty: u64,
    /// Number of elements whose lengths stand in the table.
    num_large: u64,
}

impl Lens {
    /// Sums up the lengths of the rules of `grammar` from `terminal_len_bytes`, the length of each
    /// terminal. Terminals below `num_words` are words. One backward sweep, children before
    /// parents, with one load for each element.
    ///
    /// Returns also a steep rule, if there is one: a rule other than the root with more than
    /// [`MAX_STEPS_PER_BYTE`] elements below it for each byte. It is given as the number of
    /// elements and of bytes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if a rule other than the root expands to no bytes, or if an
    /// expansion has 2^64 bytes or 2^62 words.
    pub fn new(
        grammar: &Grammar,
        num_words: u32,
        terminal_len_bytes: impl ExactSizeIterator<Item = u32>,
    ) -> Result<(Self, Option<(u64, u64)>)> {
        let num_elements = terminal_len_bytes.len() + grammar.num_rules();
        let mut lens = Self { packed: Vec::with_capacity(num_elements), large: FxHashMap::default() };
        for (id, len_bytes) in (0..).zip(terminal_len_bytes) {
            let is_word = u64::from(id < num_words);
            let edges = (BEGINS_WITH_WORD | ENDS_WITH_WORD) * is_word;
            lens.packed.push(Packed::default());
            lens.set(id, u64::from(len_bytes), is_word, edges);
        }
        lens.packed.resize(num_elements, Packed::default());
        let mut may_be_steep = false;
        for rule_id in grammar.rule_ids().rev() {
            may_be_steep |= lens.add_rule(grammar, rule_id)? && rule_id != RuleId::ROOT;
        }
        let steep_rule = may_be_steep.then(|| lens.steep_rule(grammar)).flatten();
        Ok((lens, steep_rule))
    }

    /// Sets the length of rule `rule_id`, whose elements have theirs. Returns true if the rule may
    /// be steep.
    fn add_rule(&mut self, grammar: &Grammar, rule_id: RuleId) -> Result<bool> {
        let rule = grammar.rule(rule_id);
        let mut sums = RuleSums::default();
        let mut before = Packed::default();
        // Neither sum of less than 2^32 numbers of at most 32 bits exceeds 64 bits.
        let packed = &self.packed[..];
        for &element in rule {
            let len = packed[element as usize];
            sums.bytes += len.bytes();
            sums.words += len.words();
            sums.num_blanks += len.blank_after(before);
            sums.num_empty += u64::from(len.bytes() == 0);
            sums.num_large += u64::from(len.bytes() == BYTES);
            before = len;
        }
        let (bytes, words) = match sums.num_large {
            0 => (sums.bytes + sums.num_blanks, sums.words),
            _ => self.large_sum(rule).ok_or_else(|| too_long(rule_id))?,
        };
        if words >= END_WORDS {
            return Err(too_long(rule_id));
        }
        // Empty separators never touch, so no builder makes a rule of them alone. Without such
        // rules the bytes of an expansion bound every walk over it.
        if rule_id != RuleId::ROOT && bytes == 0 {
            return Err(Error::InvalidArgument {
                name: "symbols",
                got: format!("rule {rule_id}, which expands to nothing"),
                allowed: "rules that expand to one byte or more".into(),
            });
        }
        let num_filled = rule.len() as u64 - sums.num_empty;
        let thinness = match num_filled {
            1 => 1 + rule.iter().map(|&element| packed[element as usize].thinness()).sum::<u64>(),
            _ => 0,
        };
        let first = rule.first().map_or(0, |&first| packed[first as usize].0);
        let edges = first & BEGINS_WITH_WORD | before.0 & ENDS_WITH_WORD;
        let edges = edges | thinness.min(THINNESS) << THINNESS_SHIFT;
        self.set(grammar.element_for(rule_id), bytes, words, edges);
        Ok(thinness >= THINNESS || sums.num_empty > num_filled + 1)
    }

    /// Returns the bytes and words of `rule`, or `None` if there are too many.
    #[cold]
    fn large_sum(&self, rule: &[u32]) -> Option<(u64, u64)> {
        let mut bytes = 0u64;
        let mut words = 0u64;
        let mut before = Len::default();
        for &element in rule {
            let len = self.for_element(element);
            bytes = bytes.checked_add(len.bytes)?.checked_add(len.blank_after(before))?;
            words = words.checked_add(len.words)?;
            before = len;
        }
        Some((bytes, words))
    }

    fn set(&mut self, element: u32, bytes: u64, words: u64, edges: u64) {
        let packed = Packed::new(bytes, words).unwrap_or_else(|| {
            self.large.insert(element, [bytes, words]);
            Packed(TOO_LARGE)
        });
        self.packed[element as usize] = Packed(packed.0 | edges);
    }

    /// Counts the elements below each rule and returns a steep one.
    fn steep_rule(&self, grammar: &Grammar) -> Option<(u64, u64)> {
        let mut num_steps = vec![0u64; grammar.num_rules()];
        for rule_id in grammar.rule_ids().rev().filter(|&rule_id| rule_id != RuleId::ROOT) {
            let rule = grammar.rule(rule_id);
            let below = |&element: &u32| grammar.rule_of(element).map(|id| num_steps[id.index()]);
            let all = rule.iter().filter_map(below).fold(rule.len() as u64, u64::saturating_add);
            let bytes = self.for_element(grammar.element_for(rule_id)).bytes;
            if all > bytes.saturating_mul(MAX_STEPS_PER_BYTE) {
                return Some((all, bytes));
            }
            num_steps[rule_id.index()] = all;
        }
        None
    }

    /// Returns the length of `element`.
    #[inline]
    pub fn for_element(&self, element: u32) -> Len {
        let packed = self.packed[element as usize];
        if packed.is_too_large() {
            self.large(element)
        } else {
            Len { bytes: packed.bytes(), words: packed.words(), edges: packed }
        }
    }

    #[cold]
    fn large(&self, element: u32) -> Len {
        let [bytes, words] = self.large.get(&element).copied().unwrap_or_default();
        Len { bytes, words, edges: self.packed[element as usize] }
    }

    #[inline]
    pub fn begins_with_word(&self, element: u32) -> bool {
        self.packed[element as usize].0 & BEGINS_WITH_WORD != 0
    }

    #[inline]
    pub fn ends_with_word(&self, element: u32) -> bool {
        self.packed[element as usize].0 & ENDS_WITH_WORD != 0
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    pub fn memory_bytes(&self) -> usize {
        size_of::<Packed>() * self.packed.len() + size_of::<(u32, [u64; 2])>() * self.large.capacity()
    }
}

fn too_long(rule_id: RuleId) -> Error {
    Error::InvalidArgument {
        name: "symbols",
        got: format!("an expansion of rule {rule_id} past 2^64 bytes or 2^62 words"),
        allowed: "expansions below 2^64 bytes and 2^62 words".into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::super::tests::grammar_from;
    use super::*;

    /// Lengths of the terminals: two words, an empty separator, a long one.
    const TERMINALS: [u32; 4] = [1, 3, 0, u32::MAX];
    const NUM_WORDS: u32 = 2;

    /// Makes a grammar in which rules refer to later rules and terminals, all within range.
    fn any_grammar() -> impl Strategy<Value = Grammar> {
        let element = (0..6u8, any::<Index>());
        let rule = prop::collection::vec(element, 1..5);
        prop::collection::vec(rule, 1..70).prop_map(|rules| {
            let num_terminals = TERMINALS.len() as u32;
            let num_rules = rules.len();
            let numbered = rules.into_iter().enumerate().map(|(at, rule)| {
                let element = |(kind, index): (u8, Index)| match (kind, num_rules - at - 1) {
                    (0..3, _) | (_, 0) => [0, 1, 2, 2, 2, 3][index.index(6)],
                    (3..5, _) => num_terminals + at as u32 + 1,
                    (_, num_below) => num_terminals + (at + 1 + index.index(num_below)) as u32,
                };
                rule.into_iter().map(element).collect::<Vec<u32>>()
            });
            let numbered: Vec<Vec<u32>> = numbered.collect();
            let root_len = numbered[0].len() as u32;
            grammar_from(numbered, &[0, root_len], num_terminals)
        })
    }

    /// Bytes, words and edges of each element by 128-bit sums; `None` if one is too large or empty.
    fn slow(grammar: &Grammar) -> Option<Vec<(u128, u128, bool, bool)>> {
        let for_terminal = |(id, &len): (u32, &u32)| {
            let is_word = id < NUM_WORDS;
            (u128::from(len), u128::from(is_word), is_word, is_word)
        };
        let mut all: Vec<_> = (0..).zip(&TERMINALS).map(for_terminal).collect();
        all.resize(TERMINALS.len() + grammar.num_rules(), (0, 0, false, false));
        for rule_id in grammar.rule_ids().rev() {
            let mut bytes = 0;
            let mut words = 0;
            let mut after_word = false;
            for &element in grammar.rule(rule_id) {
                let (more_bytes, more_words, begins, ends) = all[element as usize];
                bytes += more_bytes + u128::from(after_word && begins);
                words += more_words;
                after_word = ends;
            }
            let is_fine = bytes < 1 << 64 && words < 1 << 62 && (bytes > 0 || rule_id == RuleId::ROOT);
            if !is_fine {
                return None;
            }
            let begins = all[grammar.rule(rule_id)[0] as usize].2;
            all[grammar.element_for(rule_id) as usize] = (bytes, words, begins, after_word);
        }
        Some(all)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn lengths_are_those_of_wide_sums(grammar in any_grammar()) {
            let lens = Lens::new(&grammar, NUM_WORDS, TERMINALS.into_iter());
            let Some(expected) = slow(&grammar) else {
                prop_assert!(lens.is_err());
                return Ok(());
            };
            let (lens, steep_rule) = lens.unwrap();
            for (element, (bytes, words, begins, ends)) in (0..).zip(expected) {
                let len = lens.for_element(element);
                prop_assert_eq!((u128::from(len.bytes), u128::from(len.words)), (bytes, words));
                prop_assert_eq!(lens.begins_with_word(element), begins);
                prop_assert_eq!(lens.ends_with_word(element), ends);
            }
            // The quick test lets no steep rule pass.
            prop_assert_eq!(steep_rule.is_some(), lens.steep_rule(&grammar).is_some());
        }
    }

    #[test]
    fn only_rules_that_no_builder_makes_are_counted() {
        let steep = |rules: Vec<Vec<u32>>| {
            let root_len = rules[0].len() as u32;
            let grammar = grammar_from(rules, &[0, root_len], 3);
            Lens::new(&grammar, 2, [1, 1, 0].into_iter()).unwrap().1
        };
        let chain = |rule: Vec<u32>| {
            let mut rules: Vec<Vec<u32>> =
                (0..300u32).map(|at| rule.iter().map(|&e| if e == 9 { 4 + at } else { e }).collect()).collect();
            rules.push(vec![0, 1]);
            steep(rules)
        };
        assert!(chain(vec![9]).is_some());
        assert!(chain(vec![9, 2]).is_some());
        assert_eq!(chain(vec![9, 0]), None);
        assert!(steep(vec![vec![4], [vec![0], vec![2; 200]].concat()]).is_some());
        assert_eq!(steep(vec![vec![4, 4], vec![2, 5, 2], vec![0, 2, 1]]), None);
    }
}
