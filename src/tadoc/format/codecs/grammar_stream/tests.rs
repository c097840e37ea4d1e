//! Tests of the grammar section with entry points, against the grammar that it was made of.

use proptest::prelude::*;
use proptest::sample::Index;

use crate::format::codec_numbers::{GRAMMAR_STREAM, STREAM_WITHOUT_REPEATS};
use crate::format::cursor::Origin;
use crate::format::framing::OpenLimits;
use crate::format::layout::SegmentMeta;
use crate::grammar::{Dedup, Grammar, build_rounds, expand_tokens};
use crate::segment::Dag;
use crate::{Error, Result};

use super::codes::{Unit, Units};
use super::{GrammarStream, PartialGrammar, cut_units, decode, encode, group_widths};

const PLACE: Origin<'_> = Origin { file: "a", section: "grammar", offset: 0 };
const NUM_TERMINALS: u32 = 31;

fn meta_for(grammar: &Grammar) -> SegmentMeta {
    SegmentMeta {
        num_docs: grammar.num_docs() as u64,
        num_words: grammar.num_terminals,
        num_rules: grammar.num_rules() as u32,
        num_elements: grammar.symbols.len() as u64,
        ..SegmentMeta::default()
    }
}

fn doc_grammar(docs: &[Vec<u32>]) -> Grammar {
    let mut ends = vec![0];
    docs.iter().for_each(|doc| ends.push(ends[ends.len() - 1] + doc.len()));
    build_rounds(docs.concat(), &ends, NUM_TERMINALS, Dedup::Auto).unwrap()
}

fn grammar_from(rules: &[Vec<u32>], doc_offsets: &[u32], num_terminals: u32) -> Grammar {
    let mut rule_offsets = vec![0];
    rules.iter().for_each(|rule| rule_offsets.push(rule_offsets[rule_offsets.len() - 1] + rule.len() as u32));
    Grammar { num_terminals, rule_offsets, symbols: rules.concat(), doc_offsets: doc_offsets.to_vec() }
}

/// Returns the begins of units at the positions of the root that `cuts` choose.
fn unit_starts(grammar: &Grammar, cuts: &[Index]) -> Vec<u32> {
    let root_len = grammar.root().len();
    let mut starts: Vec<u32> = cuts.iter().map(|cut| cut.index(root_len.max(1)) as u32).collect();
    starts.extend((grammar.num_docs() > 0).then_some(0));
    starts.sort_unstable();
    starts.dedup();
    if grammar.num_docs() > 0 { starts } else { Vec::new() }
}

fn all(units: &Units) -> Vec<Unit> {
    (0..units.len()).map(|unit_idx| units.get(unit_idx).unwrap()).collect()
}

/// Returns `whole` with only the elements of `units` in the root.
fn with_units(whole: &Grammar, units: &[Unit]) -> Grammar {
    let is_wanted = |at: u32| units.iter().any(|unit| unit.root.contains(&at));
    let mut root = Vec::new();
    let mut doc_offsets = vec![0];
    for ends in whole.doc_offsets.windows(2) {
        root.extend((ends[0]..ends[1]).filter(|&at| is_wanted(at)).map(|at| whole.root()[at as usize]));
        doc_offsets.push(root.len() as u32);
    }
    let removed = (whole.root().len() - root.len()) as u32;
    let symbols = [&root[..], &whole.symbols[whole.root().len()..]].concat();
    let rule_offsets = whole.rule_offsets.iter().enumerate();
    let rule_offsets = rule_offsets.map(|(rule, &offset)| if rule == 0 { 0 } else { offset - removed }).collect();
    Grammar { num_terminals: whole.num_terminals, rule_offsets, symbols, doc_offsets }
}

fn decode_units(bytes: &[u8], meta: &SegmentMeta, wanted: &[usize]) -> Result<PartialGrammar> {
    let stream = GrammarStream::open(PLACE, GRAMMAR_STREAM, bytes, meta)?;
    stream.decode_units(wanted.iter().copied(), &OpenLimits::default())
}

/// Decodes the units `wanted` in both ways.
fn decode_in_both_ways(stream: &GrammarStream<'_>, wanted: &[usize]) -> [Result<PartialGrammar>; 2] {
    let units = stream.existing_units(wanted.iter().copied()).unwrap();
    [stream.decode_beside_rules(&units), stream.decode_alone(units, &OpenLimits::default())]
}

/// Checks that the units `wanted` are those of `whole`.
fn check_units(bytes: &[u8], whole: &Grammar, wanted: &[usize]) {
    let meta = meta_for(whole);
    let stream = GrammarStream::open(PLACE, GRAMMAR_STREAM, bytes, &meta).unwrap();
    let units: Vec<Unit> = wanted.iter().map(|&unit_idx| stream.units().get(unit_idx).unwrap()).collect();
    let [beside_rules, alone] = decode_in_both_ways(&stream, wanted).map(Result::unwrap);
    assert_eq!(beside_rules, alone);
    let (counted, known) = stream.decode_with_rules(wanted.iter().copied(), &OpenLimits::default()).unwrap();
    let known = known.unwrap_or_else(|| (0..whole.num_terminals).collect());
    let PartialGrammar { grammar, terminals } = alone;
    let expected = with_units(whole, &units);
    let number_in_segment = |tokens: &mut Vec<u32>| tokens.iter_mut().for_each(|token| *token = known[*token as usize]);
    let mut counted = expand_tokens(&counted);
    counted.iter_mut().for_each(number_in_segment);
    assert_eq!(counted, expand_tokens(&expected));
    assert_eq!(grammar.doc_offsets, expected.doc_offsets);
    assert!(terminals.is_sorted_by(|a, b| a < b));
    let mut is_used = vec![false; terminals.len()];
    let mut tokens = expand_tokens(&grammar);
    for token in tokens.iter_mut().flatten() {
        is_used[*token as usize] = true;
        *token = terminals[*token as usize];
    }
    assert_eq!(tokens, expand_tokens(&expected));
    assert!(is_used.iter().all(|&is_used| is_used));
    check_valid(grammar);
}

/// Checks that a grammar is valid and that its rules are all used.
fn check_valid(grammar: Grammar) {
    grammar.validate().unwrap();
    let num_terminals = grammar.num_terminals;
    match Dag::new(grammar, num_terminals, vec![1; num_terminals as usize].into_iter()) {
        Ok(_) => {}
        Err(error) => assert!(error.to_string().contains("2^64"), "{error}"),
    }
}

/// Checks that bytes are refused or describe grammars, as a whole and in parts. The parts are those
/// of the whole if units and blocks are found where they are.
fn check_hostile(bytes: &[u8], meta: &SegmentMeta) {
    let whole = decode(PLACE, GRAMMAR_STREAM, bytes, meta).ok().filter(|grammar| grammar.validate().is_ok());
    let Ok(stream) = GrammarStream::open(PLACE, GRAMMAR_STREAM, bytes, meta) else {
        assert_eq!(whole, None);
        return;
    };
    let all: Vec<usize> = (0..stream.units().len()).collect();
    let is_checked = stream.check_entrances(&OpenLimits::default()).is_ok();
    if let Some(whole) = whole {
        check_valid(whole.clone());
        for wanted in all.chunks(1).filter(|_| is_checked) {
            check_units(bytes, &whole, wanted);
        }
    }
    for wanted in all.chunks(1).chain([&all[..]]) {
        for partial in decode_in_both_ways(&stream, wanted).into_iter().flatten() {
            assert_eq!(partial.grammar.num_docs() as u64, meta.num_docs);
            check_valid(partial.grammar);
        }
        if let Ok((grammar, _)) = stream.decode_with_rules(wanted.iter().copied(), &OpenLimits::default()) {
            grammar.validate().unwrap();
        }
    }
}

#[test]
fn groups_hold_every_id_once() {
    for num_ids in (0..3_000).chain([1 << 20, (1 << 20) - 1, u32::MAX]) {
        let widths = group_widths(num_ids);
        assert_eq!(widths.iter().map(|&width| 1u64 << width).sum::<u64>(), u64::from(num_ids));
        assert!(widths.len() < 61, "{num_ids} ids in {} groups", widths.len());
    }
}

#[test]
fn grammars_come_back_with_the_same_text() {
    let texts: [(Vec<u32>, &[usize]); 6] = [
        (vec![], &[0]),
        (vec![], &[0, 0, 0]),
        (vec![0, 1, 2], &[0, 0, 3, 3]),
        ([0, 1, 2].repeat(40), &[0, 60, 120]),
        ((0..4_000).map(|at| at * at % 97 % 31).collect(), &[0, 1, 3_999, 4_000]),
        (
            (0..200_000u32).map(|at| (at / 7).wrapping_mul(2_654_435_761) >> 20 & 15).collect(),
            &[0, 100, 90_000, 200_000],
        ),
    ];
    for (tokens, ends) in texts {
        let grammar = build_rounds(tokens, ends, NUM_TERMINALS, Dedup::Auto).unwrap();
        let starts = cut_units(&grammar, |_| 1_000);
        let bytes = encode(&grammar, &starts).unwrap();
        let read = decode(PLACE, GRAMMAR_STREAM, &bytes, &meta_for(&grammar)).unwrap();
        read.validate().unwrap();
        assert_eq!(expand_tokens(&read), expand_tokens(&grammar));
        assert_eq!(encode(&read, &starts).unwrap(), bytes);
    }
}

#[test]
fn units_have_text_and_elements() {
    // An empty document stands behind the second one.
    let grammar = grammar_from(&[vec![0; 12_010]], &[0, 10, 1_510, 1_510, 3_010, 12_010], 1);
    assert_eq!(cut_units(&grammar, |_| 40), [0, 1_510, 3_010, 5_058, 7_106, 9_154, 11_202]);
    assert_eq!(cut_units(&grammar, |_| 8), [0, 8_192]);
    assert_eq!(cut_units(&grammar, |_| 0), [0]);
    let bytes = encode(&grammar, &[0, 1_510, 5_058]).unwrap();
    let meta = meta_for(&grammar);
    let stream = GrammarStream::open(PLACE, GRAMMAR_STREAM, &bytes, &meta).unwrap();
    let units: Vec<_> = all(stream.units()).into_iter().map(|unit| (unit.docs, unit.continues, unit.root)).collect();
    assert_eq!(units, [(0..2, false, 0..1_510), (2..5, false, 1_510..5_058), (4..5, true, 5_058..12_010)]);
    let units_by_doc: Vec<_> = (0..5).map(|doc| stream.units().for_doc(doc)).collect();
    assert_eq!(units_by_doc, [0..1, 0..1, 1..2, 1..2, 1..3]);
}

#[test]
fn elements_repeat_within_their_units() {
    // Rule 1 is named nowhere: it is used first in the root and repeated there.
    let root = [32, 5, 6, 32, 7, 5, 8, 32, 9, 5, 10];
    let grammar = grammar_from(&[root.to_vec(), vec![3, 4]], &[0, 4, 11], NUM_TERMINALS);
    let meta = meta_for(&grammar);
    for starts in [&[0][..], &[0, 4], &[0, 2, 7]] {
        let bytes = encode(&grammar, starts).unwrap();
        // With units of few elements names are shorter.
        assert!(bytes[8] > 0 || starts.len() > 1);
        assert_eq!(decode(PLACE, GRAMMAR_STREAM, &bytes, &meta).unwrap(), grammar);
        (0..starts.len()).for_each(|unit_idx| check_units(&bytes, &grammar, &[unit_idx]));
    }
}

#[test]
fn sections_without_repeats_are_read() {
    let grammar = doc_grammar(&[(0..NUM_TERMINALS).collect()]);
    let mut bytes = encode(&grammar, &[0, 7]).unwrap();
    let meta = meta_for(&grammar);
    assert_eq!(bytes.remove(8), 0);
    assert_eq!(decode(PLACE, STREAM_WITHOUT_REPEATS, &bytes, &meta).unwrap(), grammar);
    let stream = GrammarStream::open(PLACE, STREAM_WITHOUT_REPEATS, &bytes, &meta).unwrap();
    stream.check_entrances(&OpenLimits::default()).unwrap();
}

#[test]
fn wanted_units_must_ascend_and_exist() {
    let grammar = doc_grammar(&[vec![1, 2, 3, 4], vec![5, 6]]);
    let bytes = encode(&grammar, &[0, 2]).unwrap();
    let meta = meta_for(&grammar);
    assert!(matches!(decode_units(&bytes, &meta, &[2]), Err(Error::OutOfRange { what: "unit", got: 2, len: 2 })));
    assert!(matches!(decode_units(&bytes, &meta, &[1, 0]), Err(Error::InvalidArgument { .. })));
    assert!(matches!(decode_units(&bytes, &meta, &[0, 0]), Err(Error::InvalidArgument { .. })));
}

#[test]
fn deep_grammars_and_bombs_cost_what_they_have_elements() {
    let doubling: Vec<Vec<u32>> = (0..64).map(|rule| vec![rule + 2; 2]).chain([vec![0]]).collect();
    let chain: Vec<Vec<u32>> = (0..100_000).map(|rule| vec![0, rule + 2]).chain([vec![0, 0]]).collect();
    for rules in [doubling, chain] {
        let grammar = grammar_from(&rules, &[0, 1, 2], 1);
        let bytes = encode(&grammar, &[0, 1]).unwrap();
        let meta = meta_for(&grammar);
        let whole = decode(PLACE, GRAMMAR_STREAM, &bytes, &meta).unwrap();
        assert_eq!(whole, grammar);
        for wanted in [&[0][..], &[1], &[0, 1]] {
            let partial = decode_units(&bytes, &meta, wanted).unwrap().grammar;
            assert!(partial.symbols.len() <= grammar.symbols.len());
            check_valid(partial);
        }
        let limits = OpenLimits { max_memory_bytes: 1_000, ..OpenLimits::default() };
        let stream = GrammarStream::open(PLACE, GRAMMAR_STREAM, &bytes, &meta).unwrap();
        assert!(matches!(stream.decode_units([1], &limits), Err(Error::Capacity { .. })));
    }
}

#[test]
fn each_changed_byte_is_refused_or_gives_a_grammar() {
    let grammar = doc_grammar(&[vec![0; 7], vec![0, 1, 2, 0, 1, 2], vec![], vec![0, 1, 2, 3]]);
    let starts: Vec<u32> = (0..grammar.root().len() as u32).step_by(2).collect();
    let bytes = encode(&grammar, &starts).unwrap();
    let meta = meta_for(&grammar);
    for at in 0..bytes.len() {
        for change in 1..=u8::MAX {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            check_hostile(&changed, &meta);
        }
        check_hostile(&bytes[..at], &meta);
    }
}

fn docs() -> impl Strategy<Value = Vec<Vec<u32>>> {
    let docs = proptest::collection::vec(proptest::collection::vec(0u32..NUM_TERMINALS, 0..90), 0..6);
    (docs, 1usize..30).prop_map(|(docs, repeats)| docs.iter().map(|doc| doc.repeat(repeats)).collect())
}

proptest! {
    #[test]
    fn units_are_those_of_the_whole(
        docs in docs(),
        cuts in proptest::collection::vec(any::<Index>(), 0..8),
        is_wanted in proptest::collection::vec(any::<bool>(), 9),
    ) {
        let grammar = doc_grammar(&docs);
        let starts = unit_starts(&grammar, &cuts);
        let bytes = encode(&grammar, &starts).unwrap();
        let meta = meta_for(&grammar);
        let whole = decode(PLACE, GRAMMAR_STREAM, &bytes, &meta).unwrap();
        prop_assert_eq!(expand_tokens(&whole), expand_tokens(&grammar));
        let stream = GrammarStream::open(PLACE, GRAMMAR_STREAM, &bytes, &meta).unwrap();
        stream.check_entrances(&OpenLimits::default()).unwrap();
        let units: Vec<Unit> = all(stream.units());
        prop_assert!(units.iter().map(|unit| unit.root.start).eq(starts));
        for (unit_idx, unit) in units.iter().enumerate() {
            let offsets = &whole.doc_offsets;
            prop_assert_eq!(unit.continues, offsets[unit.docs.start as usize] < unit.root.start);
            for doc in 0..whole.num_docs() as u32 {
                let is_of_doc = stream.units().for_doc(doc).contains(&unit_idx);
                prop_assert_eq!(is_of_doc, unit.docs.contains(&doc));
            }
            check_units(&bytes, &whole, &[unit_idx]);
        }
        let wanted: Vec<usize> = (0..units.len()).filter(|&unit_idx| is_wanted[unit_idx]).collect();
        check_units(&bytes, &whole, &wanted);
        let all: Vec<usize> = (0..units.len()).collect();
        check_units(&bytes, &whole, &all);
    }

    #[test]
    fn changed_bytes_are_refused_or_give_grammars(
        docs in docs(),
        cuts in proptest::collection::vec(any::<Index>(), 0..8),
        changes in proptest::collection::vec((any::<Index>(), 1u8..), 1..4),
    ) {
        let grammar = doc_grammar(&docs);
        let mut bytes = encode(&grammar, &unit_starts(&grammar, &cuts)).unwrap();
        let meta = meta_for(&grammar);
        for (at, change) in changes {
            let at = at.index(bytes.len());
            bytes[at] ^= change;
        }
        check_hostile(&bytes, &meta);
    }
}
