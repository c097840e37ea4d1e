//! Grammar of one segment: rules over elements, root first, cut by document splitters.
//!
//! ```text
//! element  0 ..... num_words ..... num_terminals ..... num_terminals + num_rules
//!          | words (sorted) | separators (sorted) | rules, parents before children |
//!
//! rule_offsets [0, 5, 8, 10]      rule 0 is the root, rule r is sym[off[r]..off[r+1]]
//! symbols      [9 4 9 7 8 | 0 5 10 | 1 2]
//! doc_offsets  [0, 2, 2, 5]       document d is root[doc_offsets[d]..doc_offsets[d+1]]
//! ```
//!
//! Invariants of a [`Grammar`] (ensured by the builders, checked by [`Grammar::validate`] for bytes
//! from outside): a rule refers only to rules with a larger index, so there are no cycles. No rule
//! refers to the root. `doc_offsets` starts at 0, never falls and ends at the root's length. A
//! grammar contains no bytes: terminals are ids of a [`Dictionary`](crate::text::Dictionary).
//!
//! ```
//! use tadoc::grammar::{Dedup, build_rounds, expand_tokens};
//!
//! # fn main() -> tadoc::Result<()> {
//! let tokens: Vec<u32> = [0, 1, 2].repeat(4);
//! let grammar = build_rounds(tokens.clone(), &[0, 12], 3, Dedup::Auto)?;
//! assert!(grammar.symbols.len() < tokens.len());
//! assert_eq!(expand_tokens(&grammar), [tokens]);
//! # Ok(())
//! # }
//! ```

mod cleanup;
mod pair_join;
mod repeats;
mod rounds;
mod sequence;
mod sequitur;

use std::ops::Range;

use crate::error::{Error, Result};
use crate::ids::{DocId, RuleId};

pub use repeats::Dedup;
pub use rounds::build_rounds;
pub use sequitur::build_sequitur;

/// Rules over the elements of one segment, see the drawing in the module docs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grammar {
    /// Number of terminals (words, then separators). The id of rule `r` is `num_terminals + r`.
    pub num_terminals: u32,
    /// Start of each rule in `symbols`, and the end of the last one: `num_rules + 1` values.
    pub rule_offsets: Vec<u32>,
    /// Elements of all right-hand sides, root first (G values).
    pub symbols: Vec<u32>,
    /// Start of each document in the root, and the end of the last one: `num_docs + 1` values.
    pub doc_offsets: Vec<u32>,
}

impl Grammar {
    /// Returns the number of rules, including the root.
    pub fn num_rules(&self) -> usize {
        self.rule_offsets.len() - 1
    }

    /// Returns the number of documents.
    pub fn num_docs(&self) -> usize {
        self.doc_offsets.len() - 1
    }

    /// Returns the ids of all documents.
    pub fn docs(&self) -> impl ExactSizeIterator<Item = DocId> + DoubleEndedIterator + use<> {
        DocId::range(0..self.num_docs())
    }

    /// Returns the ids of all rules, root first.
    pub fn rule_ids(&self) -> impl ExactSizeIterator<Item = RuleId> + DoubleEndedIterator + use<> {
        (0..self.num_rules() as u32).map(RuleId::from)
    }

    /// Returns the rule that `element` is, or `None` for a terminal.
    #[inline]
    pub fn rule_of(&self, element: u32) -> Option<RuleId> {
        element.checked_sub(self.num_terminals).map(RuleId::from)
    }

    /// Returns the id of a rule as an element.
    #[inline]
    pub(crate) fn element_for(&self, rule_id: RuleId) -> u32 {
        self.num_terminals + u32::from(rule_id)
    }

    /// Returns the positions of rule `rule_id`, which must exist, in `symbols`.
    #[inline]
    pub(crate) fn rule_range(&self, rule_id: RuleId) -> Range<usize> {
        let rule_idx = rule_id.index();
        self.rule_offsets[rule_idx] as usize..self.rule_offsets[rule_idx + 1] as usize
    }

    /// Returns the elements of rule `rule_id`, which must exist.
    pub fn rule(&self, rule_id: RuleId) -> &[u32] {
        &self.symbols[self.rule_range(rule_id)]
    }

    /// Returns the elements of document `doc` in the root.
    pub fn document(&self, doc: DocId) -> &[u32] {
        &self.symbols[self.doc_offsets[doc.index()] as usize..self.doc_offsets[doc.index() + 1] as usize]
    }

    /// Returns the elements of the root.
    pub fn root(&self) -> &[u32] {
        self.rule(RuleId::ROOT)
    }

    /// Returns the number of occurrences of each element in the text, by element id: one forward
    /// sweep over the rules, O(G). The root has weight 1. The grammar must be valid.
    ///
    /// The weights are exact for words, rules and separators with bytes, which occur at most as
    /// often as the root has bytes. Only the weight of the empty separator may wrap, because a
    /// hostile file can contain many of them side by side.
    ///
    /// The coarsening of the TADOC papers does not pay for one sweep: merging equal elements of a
    /// rule or inlining small rules takes longer than the sweep.
    pub fn weights(&self) -> Vec<u64> {
        let num_terminals = self.num_terminals as usize;
        let mut weights = vec![0u64; num_terminals + self.num_rules()];
        weights[num_terminals] = 1;
        for rule_id in self.rule_ids() {
            let weight = weights[self.element_for(rule_id) as usize];
            for &element in self.rule(rule_id) {
                weights[element as usize] = weights[element as usize].wrapping_add(weight);
            }
        }
        weights
    }

    /// Checks every invariant of the module docs in O(G).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] that names the first broken invariant.
    pub fn validate(&self) -> Result<()> {
        check_offsets("rule_offsets", &self.rule_offsets, self.symbols.len())?;
        check_offsets("doc_offsets", &self.doc_offsets, self.root().len())?;
        let num_elements = u64::from(self.num_terminals) + self.num_rules() as u64;
        if num_elements > u64::from(u32::MAX) {
            return broken("num_terminals + num_rules", num_elements.to_string(), "at most 2^32 - 1");
        }
        for rule_id in self.rule_ids() {
            // A rule may refer only to terminals and to later rules. The ids between are
            // subtracted, so that the allowed ids are below a limit, which is checked for many
            // elements at a time.
            let first_allowed = self.element_for(rule_id) + 1;
            let num_allowed = num_elements as u32 - first_allowed;
            let is_allowed = |&e: &u32| (e < self.num_terminals) | (e.wrapping_sub(first_allowed) < num_allowed);
            if self.rule(rule_id).iter().fold(true, |all, e| all & is_allowed(e)) {
                continue;
            }
            if let Some(e) = self.rule(rule_id).iter().find(|e| !is_allowed(e)) {
                return broken(
                    "symbols",
                    format!("element {e} in rule {rule_id}"),
                    "a terminal or a rule with a larger index",
                );
            }
        }
        Ok(())
    }
}

fn check_offsets(name: &'static str, offsets: &[u32], end: usize) -> Result<()> {
    let spans = offsets.first() == Some(&0) && offsets.last().is_some_and(|&l| l as usize == end);
    if !spans || offsets.len() < 2 && name == "rule_offsets" {
        return broken(name, format!("{} offsets", offsets.len()), "offsets from 0 to the end");
    }
    match offsets.windows(2).position(|w| w[0] > w[1]) {
        Some(i) => broken(name, format!("a fall after offset {i}"), "offsets that never fall"),
        None => Ok(()),
    }
}

fn broken<T>(name: &'static str, got: String, allowed: &str) -> Result<T> {
    Err(Error::InvalidArgument { name, got, allowed: allowed.into() })
}

/// Returns the tokens of each document, in order.
pub fn expand_tokens(grammar: &Grammar) -> Vec<Vec<u32>> {
    grammar
        .doc_offsets
        .windows(2)
        .map(|doc| expand(grammar, &grammar.root()[doc[0] as usize..doc[1] as usize]))
        .collect()
}

fn expand(grammar: &Grammar, elements: &[u32]) -> Vec<u32> {
    let mut tokens = Vec::new();
    let mut stack = vec![elements.iter()];
    while let Some(top) = stack.last_mut() {
        match top.next() {
            None => {
                stack.pop();
            }
            Some(&element) => match grammar.rule_of(element) {
                None => tokens.push(element),
                Some(rule_id) => stack.push(grammar.rule(rule_id).iter()),
            },
        }
    }
    tokens
}

/// Tests of both builders by expansion, with tiny alphabets, much repetition and many document borders.
#[cfg(test)]
mod tests {
    use crate::ids::RuleId;
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// Documents of tokens below `num_terminals`, stored one after the other.
    #[derive(Debug, Clone)]
    struct Input {
        num_terminals: u32,
        documents: Vec<Vec<u32>>,
    }

    impl Input {
        fn tokens(&self) -> Vec<u32> {
            self.documents.concat()
        }

        fn doc_offsets(&self) -> Vec<usize> {
            let ends = self.documents.iter().scan(0, |end, doc| {
                *end += doc.len();
                Some(*end)
            });
            std::iter::once(0).chain(ends).collect()
        }

        fn rounds(&self, dedup: Dedup) -> Grammar {
            build_rounds(self.tokens(), &self.doc_offsets(), self.num_terminals, dedup).unwrap()
        }

        fn sequitur(&self) -> Grammar {
            build_sequitur(&self.tokens(), &self.doc_offsets(), self.num_terminals).unwrap()
        }
    }

    /// Generates documents from a few random phrases, with many long repeats, runs and near-repeats.
    fn inputs() -> impl Strategy<Value = Input> {
        let phrases = (1u32..12).prop_flat_map(|num_terminals| {
            let phrase = prop::collection::vec(0..num_terminals, 1..40);
            (Just(num_terminals), prop::collection::vec(phrase, 1..6))
        });
        phrases.prop_flat_map(|(num_terminals, phrases)| {
            let piece = (0..phrases.len(), 0..4usize);
            let document = prop::collection::vec(piece, 0..12);
            prop::collection::vec(document, 0..6).prop_map(move |documents| Input {
                num_terminals,
                documents: documents
                    .iter()
                    .map(|pieces| {
                        pieces.iter().flat_map(|&(phrase, skip)| phrases[phrase].iter().skip(skip).copied()).collect()
                    })
                    .collect(),
            })
        })
    }

    fn seeds() -> Vec<Input> {
        let run = |len: usize| vec![0; len];
        let input = |num_terminals, documents| Input { num_terminals, documents };
        let count = |n: u32| (0..n).collect::<Vec<u32>>();
        vec![
            input(0, vec![]),
            input(0, vec![vec![], vec![]]),
            input(1, vec![run(1)]),
            input(1, (1..9).map(run).collect()),
            input(1, vec![run(100_000)]),
            input(2, vec![[0, 1].repeat(5_000)]),
            input(500, vec![count(500)]),
            input(500, vec![count(500); 40]),
            input(500, vec![count(500).repeat(300), vec![], count(250)]),
            input(1, vec![vec![]; 10_000]),
        ]
    }

    /// Checks that the grammar expands to the input and that every rule except the root saves elements.
    fn check(input: &Input, grammar: &Grammar) {
        grammar.validate().unwrap();
        assert_eq!(expand_tokens(grammar), input.documents);
        let mut uses = vec![0usize; grammar.num_rules()];
        for &element in &grammar.symbols {
            if let Some(rule) = element.checked_sub(grammar.num_terminals) {
                uses[rule as usize] += 1;
            }
        }
        for (rule_idx, &uses) in uses.iter().enumerate().skip(1) {
            assert!(
                uses >= 2 && grammar.rule(RuleId::from(rule_idx as u32)).len() >= 2,
                "rule {rule_idx}: {uses} uses"
            );
        }
    }

    #[test]
    fn seeds_survive_both_builders() {
        for input in seeds() {
            for dedup in [Dedup::Auto, Dedup::On, Dedup::Off] {
                check(&input, &input.rounds(dedup));
            }
            check(&input, &input.sequitur());
        }
    }

    #[test]
    fn a_run_is_halved_by_every_rule() {
        let input = Input { num_terminals: 1, documents: vec![vec![0; 1 << 16]] };
        let grammar = input.rounds(Dedup::Off);
        assert!(grammar.symbols.len() < 64, "{} elements", grammar.symbols.len());
    }

    proptest! {
        #[test]
        fn rounds_expand_to_the_input(input in inputs(), is_shared in any::<bool>()) {
            let dedup = if is_shared { Dedup::On } else { Dedup::Off };
            check(&input, &input.rounds(dedup));
        }

        #[test]
        fn sequitur_keeps_its_two_invariants(input in inputs()) {
            let grammar = input.sequitur();
            check(&input, &grammar);
            let mut seen = HashSet::new();
            let documents = grammar.doc_offsets.windows(2).map(|d| &grammar.root()[d[0] as usize..d[1] as usize]);
            for elements in documents.chain(grammar.rule_ids().skip(1).map(|r| grammar.rule(r))) {
                for (i, pair) in elements.windows(2).enumerate() {
                    let is_run = elements.get(i + 2) == Some(&pair[0]) && pair[0] == pair[1];
                    prop_assert!(is_run || seen.insert([pair[0], pair[1]]), "{pair:?} stands twice");
                }
            }
        }
    }

    #[test]
    fn the_grammar_does_not_depend_on_threads() {
        let mut documents = Vec::new();
        let mut state = 1u64;
        for _ in 0..40 {
            let document = (0..12_000).map(|i: u32| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                if state >> 60 == 0 { (state >> 33) as u32 % 5_000 } else { i % 3_000 }
            });
            documents.push(document.collect());
        }
        let input = Input { num_terminals: 5_000, documents };
        let with_threads = |num_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads).build().unwrap();
            pool.install(|| [Dedup::Off, Dedup::On].map(|dedup| input.rounds(dedup)))
        };
        let one = with_threads(1);
        one.iter().for_each(|grammar| check(&input, grammar));
        assert!(one[0].symbols.len() < input.tokens().len() / 2);
        assert_eq!(one, with_threads(2));
        assert_eq!(one, with_threads(5));
    }
}
