//! Segments of rules that a test specifies, with made-up words.

use std::sync::Arc;

use tadoc::grammar::Grammar;
use tadoc::segment::{Corpus, Dag, Paths, Segment};
use tadoc::text::{Dictionary, TokenizerProfile};

pub const NUM_SEPARATORS: u32 = 4;

/// Builds a dictionary of `num_words` words of several lengths, then the separators "", "\n", ",",
/// ", ".
fn dictionary(num_words: u32) -> Dictionary {
    let word = |id: u32| format!("w{id:05}{}", "x".repeat(id as usize % 9));
    let mut tokens: Vec<String> = (0..num_words).map(word).collect();
    tokens.extend(["", "\n", ",", ", "].map(str::to_owned));
    let mut offsets = vec![0];
    tokens.iter().for_each(|token| offsets.push(offsets.last().unwrap() + token.len() as u32));
    Dictionary::from_parts(num_words, offsets, tokens.concat().into_bytes().into()).unwrap()
}

/// Builds a segment of `rules`. Rule r is element `num_words + NUM_SEPARATORS + r`. Returns `None`
/// if an expansion is too long for any corpus.
pub fn segment(rules: &[Vec<u32>], doc_offsets: Vec<u32>, num_words: u32) -> Option<Arc<Segment>> {
    let dictionary = dictionary(num_words);
    let mut rule_offsets = vec![0];
    rules.iter().for_each(|rule| {
        rule_offsets.push(rule_offsets.last().unwrap() + rule.len() as u32);
    });
    let num_terminals = num_words + NUM_SEPARATORS;
    let mut paths = Paths::default();
    (1..doc_offsets.len()).for_each(|doc| paths.push(&format!("{doc}")));
    let grammar = Grammar { num_terminals, rule_offsets, symbols: rules.concat(), doc_offsets };
    let dag = Dag::new(grammar, num_words, dictionary.lengths()).ok()?;
    Some(Arc::new(Segment::new(dictionary, dag, paths, false)))
}

pub fn corpus_of(segment: &Arc<Segment>) -> Corpus {
    Corpus::new(TokenizerProfile::Word, vec![segment.clone()])
}
