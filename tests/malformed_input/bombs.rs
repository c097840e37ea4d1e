//! Tests of small grammars with very long, deep or wide expansions. They are counted exactly and
//! read in part, but never expanded in full. Grammars with cyclic references, and with more than
//! can be counted, are refused.

use std::time::{Duration, Instant};

use tadoc::analytics::word_count;
use tadoc::format::{CorpusWriter, OpenLimits, SegmentLayout};
use tadoc::grammar::Grammar;
use tadoc::query::{Query, SearchOptions, count};
use tadoc::read::{document_bytes, extract};
use tadoc::segment::Paths;
use tadoc::text::TokenizerProfile;
use tadoc::{Corpus, Error};
use testkit::malformed::LIMITS;
use testkit::malformed::anatomy::Anatomy;
use testkit::malformed::samples::Draft;

use super::{dictionary, file_of};

/// Returns `num_rules` rules of two elements. Each rule contains the next two rules; after the last
/// rule come two words.
fn fibonacci(num_rules: u32) -> Vec<Vec<u32>> {
    let next = |rule: u32| if rule < num_rules { 2 + rule } else { rule - num_rules };
    (0..num_rules).map(|rule| vec![next(rule + 1), next(rule + 2)]).collect()
}

#[test]
fn fibonacci_words_are_counted_and_read_in_part() {
    const NUM_RULES: u32 = 80;
    let bodies = fibonacci(NUM_RULES);
    let file = file_of(dictionary(&["a", "b"], &[]), &bodies, vec![0, 2]);
    assert!(file.len() < 2_048, "{} bytes", file.len());
    let started = Instant::now();
    let (footer, corpus) = Corpus::from_bytes("fibonacci", &file, &LIMITS).unwrap();
    let counts = word_count(&corpus).unwrap();
    println!("{} bytes opened and counted in {:?}", file.len(), started.elapsed());
    // Counts of the words (a, b) in a rule, from the last rule up.
    let mut first = (1u64, 0u64);
    let mut second = (0u64, 1u64);
    for _ in 0..NUM_RULES {
        (second, first) = (first, (first.0 + second.0, first.1 + second.1));
    }
    assert_eq!(counts.iter().collect::<Vec<_>>(), [("a", first.0), ("b", first.1)]);
    assert_eq!(footer.num_tokens(), first.0 + first.1);
    let refused = document_bytes(&corpus, 0, 1 << 40).unwrap_err();
    assert!(matches!(refused, Error::Capacity { .. }), "{refused}");
    // A Fibonacci word begins with each shorter Fibonacci word.
    let short = file_of(dictionary(&["a", "b"], &[]), &fibonacci(NUM_RULES - 60), vec![0, 2]);
    let (_, short) = Corpus::from_bytes("short", &short, &LIMITS).unwrap();
    let text = document_bytes(&short, 0, 1 << 20).unwrap();
    assert_eq!(extract(&corpus, 0, 0, 500).unwrap(), text[..500]);
    let query = Query::parse(TokenizerProfile::Word, "b").unwrap();
    let found = count(&corpus, &query, &SearchOptions::default());
    assert_eq!(found.unwrap(), first.1);
}

#[test]
fn a_chain_of_a_million_rules_needs_no_stack() {
    const NUM_RULES: u32 = 1_000_000;
    // 0 is the word and 1 the root. Each rule is the word and the next rule.
    let body = |rule: u32| if rule + 1 == NUM_RULES { vec![0, 0] } else { vec![0, rule + 2] };
    let bodies: Vec<Vec<u32>> = (0..NUM_RULES).map(body).collect();
    let file = file_of(dictionary(&["a"], &[]), &bodies, vec![0, 2]);
    let (_, corpus) = Corpus::from_bytes("chain", &file, &OpenLimits::default()).unwrap();
    let num_words = u64::from(NUM_RULES) + 1;
    assert_eq!(word_count(&corpus).unwrap().iter().collect::<Vec<_>>(), [("a", num_words)]);
    let text = "a ".repeat(num_words as usize);
    assert_eq!(document_bytes(&corpus, 0, 1 << 30).unwrap(), text.trim_end().as_bytes());
    assert_eq!(extract(&corpus, 0, num_words, 100).unwrap(), text.as_bytes()[num_words as usize..][..100]);
}

#[test]
fn a_rule_of_a_million_words_is_a_rule_like_others() {
    const NUM_WORDS: u64 = 1_000_000;
    let wide = (0..NUM_WORDS).map(|i| (i % 3) as u32).collect();
    let file = file_of(dictionary(&["a", "b", "c"], &[]), &[vec![4, 4], wide], vec![0, 1, 2]);
    let (_, corpus) = Corpus::from_bytes("wide", &file, &LIMITS).unwrap();
    let counts = word_count(&corpus).unwrap();
    assert_eq!(counts.iter().collect::<Vec<_>>(), [("a", 666_668), ("b", 666_666), ("c", 666_666)]);
    let query = Query::parse(TokenizerProfile::Word, "\"a b c\"").unwrap();
    let started = Instant::now();
    assert_eq!(count(&corpus, &query, &SearchOptions::default()).unwrap(), 666_666);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert_eq!(extract(&corpus, 1, 2 * NUM_WORDS - 8, 100).unwrap(), b"a b c a");
}

/// Writes the rules `bodies` over one word and returns the result.
fn written(bodies: &[Vec<u32>]) -> Result<(), Error> {
    let mut rule_offsets = vec![0];
    for body in bodies {
        rule_offsets.push(rule_offsets[rule_offsets.len() - 1] + body.len() as u32);
    }
    let root_len = bodies[0].len() as u32;
    let grammar = Grammar { num_terminals: 1, rule_offsets, symbols: bodies.concat(), doc_offsets: vec![0, root_len] };
    let mut paths = Paths::default();
    paths.push("hostile");
    let draft = Draft { dictionary: dictionary(&["a"], &[]), grammar, paths, continues: false };
    let mut writer = CorpusWriter::new(Vec::new(), TokenizerProfile::Word, "hostile")?;
    draft.write(&mut writer, SegmentLayout::INDEXED)?;
    let mut writer = CorpusWriter::new(Vec::new(), TokenizerProfile::Word, "hostile")?;
    draft.write(&mut writer, SegmentLayout::Small)
}

#[test]
fn rules_that_go_round_or_nowhere_are_refused() {
    // 0 is the word, 1 the root, and 2 and 3 are rules.
    assert!(written(&[vec![2, 3], vec![3, 0], vec![0, 0]]).is_ok());
    for (what, bodies) in [
        ("itself", [vec![2, 3], vec![2, 0], vec![0, 0]]),
        ("a cycle", [vec![2, 3], vec![3, 0], vec![2, 0]]),
        ("the root", [vec![2, 3], vec![1, 0], vec![0, 0]]),
        ("a rule before it", [vec![2, 3], vec![0, 0], vec![2, 0]]),
        ("no rule", [vec![2, 3], vec![0, 4], vec![0, 0]]),
    ] {
        let refused = written(&bodies).unwrap_err();
        assert!(matches!(refused, Error::InvalidArgument { .. }), "{what}: {refused}");
    }
}

/// Returns rules for 2^`log2` words. Each rule is the next one twice.
fn doubling(log2: u32) -> Vec<Vec<u32>> {
    let mut bodies: Vec<Vec<u32>> = (2..=log2).map(|rule| vec![rule; 2]).collect();
    bodies.push(vec![0, 0]);
    bodies
}

#[test]
fn more_than_can_be_counted_is_refused() {
    assert!(written(&doubling(61)).is_ok());
    for log2 in [64, 65, 200] {
        assert!(written(&doubling(log2)).is_err(), "2^{log2}");
    }
    // Each segment can be counted, but all of them together cannot.
    let mut parts = Anatomy::from_file(&file_of(dictionary(&["a"], &[]), &doubling(61), vec![0, 2]));
    assert!(Corpus::from_bytes("one", &parts.assemble(), &LIMITS).is_ok());
    parts.segments = vec![parts.segments[0].clone(); 8];
    let refused = Corpus::from_bytes("four", &parts.assemble(), &LIMITS).unwrap_err().to_string();
    assert!(refused.contains("totals below 2^64"), "{refused}");
}
