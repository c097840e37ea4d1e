//! Corpora under grammars that no builder makes: random ones of small hostile texts for the oracle tests, and
//! rules that a test specifies, with made-up words.
//!
//! Pairs, single elements and longer runs at random places become rules. So single-use rules, unit rules, rules of
//! separators only and deep nesting all occur, more often than in the output of any builder. Texts mix word, separator,
//! multi-byte and invalid pieces from a tiny alphabet. Documents are cut between segments at any two tokens.

use std::sync::Arc;

use proptest::prelude::*;
use tadoc::grammar::Grammar;
use tadoc::segment::{Corpus, Dag, Paths, Segment};
use tadoc::text::{Dictionary, TokenizerProfile, for_each_token, tokenize_block};

use crate::naive::{Plain, PlainWord};
use crate::random::Random;

/// Pieces of the texts.
pub const PIECES: [&[u8]; 30] = [
    b"a",
    b"b",
    b"ab",
    b"aa",
    b"power",
    b"loss",
    b"c1",
    b"A",
    b"aB",
    b"Power",
    "é".as_bytes(),
    "É".as_bytes(),
    "İ".as_bytes(),
    "ΑΣ".as_bytes(),
    "中文".as_bytes(),
    b" ",
    b" ",
    b" ",
    b"  ",
    b"\n",
    b"\r\n",
    b", ",
    b".",
    b"-",
    b"\0",
    b"\xff",
    b"\xe2\x82",
    b"'",
    "\u{FFFD}".as_bytes(),
    b"don't",
];

/// A corpus and its plain content.
#[derive(Debug, Clone)]
pub struct Case {
    pub plain: Plain,
    pub corpus: Corpus,
}

/// The parameters of a [`Case`]. A failing test prints its `Debug` form.
#[derive(Debug, Clone)]
pub struct Recipe {
    pub profile: TokenizerProfile,
    /// Documents as indexes into [`PIECES`].
    pub docs: Vec<Vec<usize>>,
    /// Ends of segments: a document, and the share of its tokens (in 256ths) before the cut.
    pub cuts: Vec<(usize, u8)>,
    pub seed: u64,
}

/// Generates recipes of all profiles with any number of segments.
pub fn recipes() -> impl Strategy<Value = Recipe> {
    let sentence = prop::collection::vec(0..PIECES.len(), 1..9);
    let texts = prop::collection::vec(sentence, 1..5).prop_flat_map(|sentences| {
        let doc = prop::collection::vec(0..sentences.len(), 0..8)
            .prop_map(move |picks| picks.iter().flat_map(|&pick| sentences[pick].clone()).collect::<Vec<usize>>());
        prop::collection::vec(doc, 0..7)
    });
    let profile = prop::sample::select(TokenizerProfile::ALL.to_vec());
    let cuts = prop::collection::vec((0usize..7, any::<u8>()), 0..4);
    (profile, texts, cuts, any::<u64>()).prop_map(|(profile, docs, mut cuts, seed)| {
        cuts.retain(|&(doc, _)| doc < docs.len());
        cuts.sort_unstable();
        cuts.dedup();
        Recipe { profile, docs, cuts, seed }
    })
}

impl Recipe {
    pub fn cook(&self) -> Case {
        let docs: Vec<Vec<u8>> =
            self.docs.iter().map(|pieces| pieces.iter().flat_map(|&piece| PIECES[piece].to_vec()).collect()).collect();
        let mut segments = Vec::new();
        let mut words = Vec::new();
        let mut open: Vec<Vec<u8>> = Vec::new();
        let mut continues = false;
        let mut seed = self.seed;
        let mut close = |parts: &mut Vec<Vec<u8>>, continues: bool| {
            seed = seed.wrapping_add(1);
            segments.push(Arc::new(segment_of(self.profile, parts, continues, seed)));
            parts.clear();
        };
        for (doc_idx, doc) in docs.iter().enumerate() {
            let ends = token_ends(self.profile, doc);
            let mut start = 0;
            let mut placed = Vec::new();
            for &(_, share) in self.cuts.iter().filter(|&&(cut_doc, _)| cut_doc == doc_idx) {
                let end = ends.get(ends.len() * share as usize / 256).copied().unwrap_or(0);
                // A cut at the start or end of a document is a border between documents and is
                // ignored.
                if end <= start || end >= doc.len() {
                    continue;
                }
                push_words(self.profile, doc, start..end, &mut placed);
                open.push(doc[start..end].to_vec());
                close(&mut open, continues);
                continues = true;
                start = end;
            }
            push_words(self.profile, doc, start..doc.len(), &mut placed);
            open.push(doc[start..].to_vec());
            words.push(placed);
            let ends_segment = self.cuts.iter().any(|&(cut_doc, share)| cut_doc == doc_idx && share == 255);
            if ends_segment {
                close(&mut open, continues);
                continues = false;
            }
        }
        if !open.is_empty() || docs.is_empty() {
            close(&mut open, continues);
        }
        let corpus = Corpus::new(self.profile, segments);
        Case { plain: Plain { docs, words, profile: self.profile }, corpus }
    }
}

/// Builds a case of whole documents in one segment.
pub fn case_of(profile: TokenizerProfile, docs: Vec<Vec<u8>>, seed: u64) -> Case {
    let segment = segment_of(profile, &docs, false, seed);
    let placed = |doc: &Vec<u8>| {
        let mut words = Vec::new();
        push_words(profile, doc, 0..doc.len(), &mut words);
        words
    };
    let words = docs.iter().map(placed).collect();
    let corpus = Corpus::new(profile, vec![Arc::new(segment)]);
    Case { plain: Plain { docs, words, profile }, corpus }
}

/// Returns the end of each token of `text`.
fn token_ends(profile: TokenizerProfile, text: &[u8]) -> Vec<usize> {
    let mut at = 0;
    let mut ends = Vec::new();
    for_each_token(profile, text, |token| {
        at += token.bytes.len();
        ends.push(at);
    });
    ends
}

fn push_words(profile: TokenizerProfile, doc: &[u8], part: std::ops::Range<usize>, placed: &mut Vec<PlainWord>) {
    let mut at = part.start as u64;
    for_each_token(profile, &doc[part], |token| {
        let byte_len = token.bytes.len() as u64;
        if token.is_word {
            let text = String::from_utf8(token.bytes.to_vec()).unwrap();
            placed.push(PlainWord { text, byte_offset: at, byte_len });
        }
        at += byte_len;
    });
}

/// Builds one segment of `docs` under a random grammar.
pub fn segment_of(profile: TokenizerProfile, docs: &[Vec<u8>], continues: bool, seed: u64) -> Segment {
    let ends: Vec<usize> = docs
        .iter()
        .scan(0, |end, doc| {
            *end += doc.len();
            Some(*end)
        })
        .collect();
    let block = tokenize_block(profile, &docs.concat(), &ends).unwrap();
    let empty = block.dictionary.separator_id(b"");
    let num_terminals = block.dictionary.len();
    let grammar = scrambled_grammar(&block.tokens, &block.doc_offsets, num_terminals, empty, seed);
    let num_words = block.dictionary.num_words();
    let dag = Dag::new(grammar, num_words, block.dictionary.lengths()).unwrap();
    let mut paths = Paths::default();
    (0..docs.len()).for_each(|doc| paths.push(&format!("{doc}.txt")));
    Segment::new(block.dictionary, dag, paths, continues)
}

/// Builds a corpus of one document with 2^60 times "ab ", and a small one.
pub fn bomb() -> Corpus {
    let dictionary = Dictionary::from_parts(2, vec![0, 2, 4], "abzz".into()).unwrap();
    let mut rules: Vec<Vec<u32>> = vec![vec![3, 1, 0, 0]];
    rules.extend((3..62).map(|element| vec![element + 1, element + 1]));
    rules.push(vec![0]);
    let mut rule_offsets = vec![0];
    rules.iter().for_each(|rule| {
        rule_offsets.push(rule_offsets[rule_offsets.len() - 1] + rule.len() as u32);
    });
    let symbols = rules.concat();
    let grammar = Grammar { num_terminals: 2, rule_offsets, symbols, doc_offsets: vec![0, 2, 4] };
    let dag = Dag::new(grammar, 2, dictionary.lengths()).unwrap();
    let mut paths = Paths::default();
    ["bomb", "small"].iter().for_each(|path| paths.push(path));
    let segment = Segment::new(dictionary, dag, paths, false);
    Corpus::new(TokenizerProfile::Word, vec![Arc::new(segment)])
}

/// Builds a grammar of random shape for `tokens`. No rule consists only of the `empty` separator.
pub fn scrambled_grammar(
    tokens: &[u32],
    doc_offsets: &[usize],
    num_terminals: u32,
    empty: Option<u32>,
    seed: u64,
) -> Grammar {
    let mut random = Random(seed);
    // Bodies of the documents, then of the rules. Until `number`, rule ids count from
    // `num_terminals`.
    let mut bodies: Vec<Vec<u32>> = doc_offsets.windows(2).map(|range| tokens[range[0]..range[1]].to_vec()).collect();
    let num_docs = bodies.len();
    for _ in 0..random.below(24) {
        let Some(body) = pick(&mut random, &bodies, |body| !body.is_empty()) else { break };
        let max_len = [1, 2, 2, 2, 3, 6][random.below(6)].min(bodies[body].len());
        let start = random.below(bodies[body].len() - max_len + 1);
        let run = bodies[body][start..start + max_len].to_vec();
        if run.iter().all(|&element| Some(element) == empty) {
            continue;
        }
        let id = num_terminals + (bodies.len() - num_docs) as u32;
        // If a unit rule replaced every use of its element, it would only rename the element.
        let keeps_some = random.below(3) == 0;
        for body in &mut bodies {
            replace(body, &run, id, |at| keeps_some && at % 2 == 1);
        }
        bodies.push(run);
    }
    number(bodies, num_docs, num_terminals)
}

fn pick(random: &mut Random, bodies: &[Vec<u32>], fits: impl Fn(&Vec<u32>) -> bool) -> Option<usize> {
    let fitting: Vec<usize> = (0..bodies.len()).filter(|&at| fits(&bodies[at])).collect();
    (!fitting.is_empty()).then(|| fitting[random.below(fitting.len())])
}

/// Replaces uses of `run` from left to right: the first one always, others unless `is_kept`.
fn replace(body: &mut Vec<u32>, run: &[u32], id: u32, is_kept: impl Fn(usize) -> bool) {
    let mut replaced = Vec::new();
    let mut at = 0;
    let mut seen = 0;
    while at < body.len() {
        if body[at..].starts_with(run) {
            seen += 1;
            if seen == 1 || !is_kept(seen) {
                replaced.push(id);
                at += run.len();
                continue;
            }
        }
        replaced.push(body[at]);
        at += 1;
    }
    *body = replaced;
}

/// Drops unused rules and numbers the others, parents before children.
fn number(bodies: Vec<Vec<u32>>, num_docs: usize, num_terminals: u32) -> Grammar {
    let child_of = |element: u32| element.checked_sub(num_terminals).map(|rule| num_docs + rule as usize);
    let mut level = vec![0usize; bodies.len()];
    // Level: length of the longest path from a document. There are at most as many passes as
    // bodies.
    level[..num_docs].fill(1);
    loop {
        let before = level.clone();
        for body in 0..bodies.len() {
            if level[body] > 0 {
                for child in bodies[body].iter().filter_map(|&element| child_of(element)) {
                    level[child] = level[child].max(level[body] + 1);
                }
            }
        }
        if level == before {
            break;
        }
    }
    let mut order: Vec<usize> = (num_docs..bodies.len()).filter(|&body| level[body] > 0).collect();
    order.sort_by_key(|&body| level[body]);
    let mut ids = vec![0; bodies.len()];
    for (rank, &body) in order.iter().enumerate() {
        ids[body] = num_terminals + 1 + rank as u32;
    }
    let renamed = |body: &[u32]| -> Vec<u32> {
        body.iter().map(|&element| child_of(element).map_or(element, |child| ids[child])).collect()
    };
    let mut symbols = Vec::new();
    let mut doc_offsets = vec![0];
    for body in &bodies[..num_docs] {
        symbols.extend(renamed(body));
        doc_offsets.push(symbols.len() as u32);
    }
    let mut rule_offsets = vec![0, symbols.len() as u32];
    for &body in &order {
        symbols.extend(renamed(&bodies[body]));
        rule_offsets.push(symbols.len() as u32);
    }
    Grammar { num_terminals, rule_offsets, symbols, doc_offsets }
}

/// Builds a corpus of one document with 2^`doublings` times "a b", from a grammar of a few bytes.
pub fn doubled(doublings: u32) -> Corpus {
    let offsets = vec![0, 1, 2];
    let dictionary = Dictionary::from_parts(2, offsets, b"ab".as_slice().into()).unwrap();
    let first = 3;
    let mut rules = vec![vec![first]];
    rules.extend((0..doublings).map(|level| vec![first + level + 1; 2]));
    rules.push(vec![0, 1]);
    let mut rule_offsets = vec![0];
    rules.iter().for_each(|rule| rule_offsets.push(rule_offsets.last().unwrap() + rule.len() as u32));
    let symbols = rules.concat();
    let grammar = Grammar { num_terminals: 2, rule_offsets, symbols, doc_offsets: vec![0, 1] };
    let dag = Dag::new(grammar, 2, dictionary.lengths()).unwrap();
    let mut paths = Paths::default();
    paths.push("doubled.txt");
    let segment = Segment::new(dictionary, dag, paths, false);
    Corpus::new(TokenizerProfile::Word, vec![Arc::new(segment)])
}

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
