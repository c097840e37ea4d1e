//! Tests of both builders by expansion, with tiny alphabets, much repetition and many document
//! borders.

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
        self.rounds_by(dedup, Effort::Balanced)
    }

    fn rounds_by(&self, dedup: Dedup, effort: Effort) -> Grammar {
        let options = RoundsOptions { dedup, effort };
        build_rounds(self.tokens(), &self.doc_offsets(), self.num_terminals, &options).unwrap()
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
        assert!(uses >= 2 && grammar.rule(RuleId::from(rule_idx as u32)).len() >= 2, "rule {rule_idx}: {uses} uses");
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

#[test]
fn more_effort_gives_smaller_grammars() {
    // Stretches of a text in another order each, as revisions have.
    let text: Vec<u32> = (0..6_000u32).map(|i| i.wrapping_mul(2_654_435_761) >> 22).collect();
    let stretch = |i: usize| text[i * 997 % 5_000..][..600 + i % 7].to_vec();
    let input = Input { num_terminals: 1 << 10, documents: (0..120).map(stretch).collect() };
    let [fast, balanced, small] = Effort::ALL.map(|effort| input.rounds_by(Dedup::Auto, effort).symbols.len());
    assert!(small <= balanced && balanced <= fast, "{fast} {balanced} {small}");
}

proptest! {
    #[test]
    fn rounds_expand_to_the_input(input in inputs(), is_shared in any::<bool>()) {
        for effort in Effort::ALL {
            let dedup = if is_shared { Dedup::On } else { Dedup::Off };
            check(&input, &input.rounds_by(dedup, effort));
        }
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
        pool.install(|| {
            let efforts = |dedup| Effort::ALL.map(|effort| input.rounds_by(dedup, effort));
            [Dedup::Off, Dedup::On].map(efforts).concat()
        })
    };
    let one = with_threads(1);
    one.iter().for_each(|grammar| check(&input, grammar));
    assert!(one[0].symbols.len() < input.tokens().len() / 2);
    assert_eq!(one, with_threads(2));
    assert_eq!(one, with_threads(5));
}
