//! Tests of the templates of lines against a program that reads line by line, masks with regular
//! expressions and compares each line with every template.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::prelude::*;
use regex::Regex;
use tadoc::analytics::{DocSelection, LogTemplate, LogTemplates, TemplateOptions};
use tadoc::build::BuilderKind;
use tadoc::segment::Segment;
use tadoc::text::TokenizerProfile;
use tadoc::{Corpus, Error};
use testkit::documents::{PROFILES, corpus_of, numbered, options};
use testkit::scrambled::{bomb, doubled, segment_of};

/// Memory limit in bytes that is larger than any of these tests needs.
const AMPLE: u64 = 1 << 30;
/// Bytes of a line that count.
const MAX_LINE_BYTES: usize = 64 << 10;
/// Stands for a variable part until white space is gone. No text of these tests has it.
const MARK: &str = "\u{E000}";

fn templates_of(corpus: &Corpus, options: &TemplateOptions) -> LogTemplates {
    LogTemplates::new(corpus, options, AMPLE, &|| false).unwrap()
}

/// Masks `line` by the rules of the reference, one regular expression each.
struct SlowMask {
    padding: Regex,
    word: Regex,
    always: Regex,
    hex: Regex,
    links: Regex,
    name: Regex,
    joined: Regex,
    signed: Regex,
}

impl SlowMask {
    fn new() -> Self {
        let regex = |source: &str| Regex::new(source).unwrap();
        Self {
            padding: regex(r"([\[(])[ \t\r\x0C]+([0-9])"),
            word: regex(r"(?:[0-9A-Za-z_]|[^\x00-\x7F])+"),
            always: regex(r"[0-9]|^[0-9A-Fa-f]{8,}$"),
            hex: regex("^[0-9A-Fa-f]+$"),
            links: regex("^[:-]+$"),
            name: regex("^(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun)$"),
            joined: regex(&format!("{MARK}(?:[.:,+/-]+{MARK})+")),
            signed: regex(&format!("(^|[\\x00-/:-@\\[-^`{{-\\x7F])[+-]{MARK}")),
        }
    }

    fn mask(&self, line: &str) -> String {
        let line = self.padding.replace_all(line, "$1$2");
        let words: Vec<_> = self.word.find_iter(&line).collect();
        let mut variable: Vec<bool> = words.iter().map(|word| self.always.is_match(word.as_str())).collect();
        loop {
            let before = variable.clone();
            for at in 0..words.len() {
                let is_linked = |a: usize, b: usize| self.links.is_match(&line[words[a].end()..words[b].start()]);
                let after_variable = at > 0 && before[at - 1];
                let before_variable = at + 1 < words.len() && before[at + 1];
                let is_hex = self.hex.is_match(words[at].as_str());
                variable[at] |= is_hex && after_variable && is_linked(at - 1, at)
                    || is_hex && before_variable && is_linked(at, at + 1)
                    || before_variable && self.name.is_match(words[at].as_str());
            }
            if variable == before {
                break;
            }
        }
        let mut marked = String::new();
        let mut behind = 0;
        for (word, is_variable) in words.iter().zip(variable) {
            marked.push_str(&line[behind..word.start()]);
            marked.push_str(if is_variable { MARK } else { word.as_str() });
            behind = word.end();
        }
        marked.push_str(&line[behind..]);
        let joined = self.joined.replace_all(&marked, MARK);
        let unsigned = self.signed.replace_all(&joined, format!("${{1}}{MARK}"));
        let tokens: Vec<&str> = unsigned.split_ascii_whitespace().collect();
        tokens.join(" ").replace(MARK, "<*>")
    }
}

fn has_letter(token: &str) -> bool {
    token.chars().any(|c| c.is_ascii_alphabetic() || !c.is_ascii())
}

/// Returns the beginning of a line up to its `num_words`-th token with a letter.
fn first_words(tokens: &[String], num_words: usize) -> Option<&[String]> {
    let mut num_seen = 0;
    for end in 0..=tokens.len() {
        if num_seen == num_words {
            return Some(&tokens[..end]);
        }
        num_seen += usize::from(tokens.get(end).is_some_and(|token| has_letter(token)));
    }
    None
}

/// Returns the template of each masked line.
fn slow_merge(counts: &BTreeMap<String, u64>, options: &TemplateOptions) -> BTreeMap<String, String> {
    let mut lines: Vec<(&String, u64)> = counts.iter().map(|(line, &count)| (line, count)).collect();
    lines.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let mut templates: Vec<Vec<String>> = Vec::new();
    let mut template_of = Vec::new();
    for (line, _) in lines {
        let tokens: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let first = first_words(&tokens, options.depth - 3);
        let mut best: Option<(usize, usize)> = None;
        for (at, template) in templates.iter().enumerate() {
            if first.is_none() || template.len() != tokens.len() || first_words(template, options.depth - 3) != first {
                continue;
            }
            let pairs = template.iter().zip(&tokens);
            let num_equal = pairs.filter(|(a, b)| a == b && has_letter(a)).count();
            let is_enough = num_equal as f64 / tokens.len() as f64 >= options.similarity;
            if is_enough && best.is_none_or(|(_, most)| num_equal > most) {
                best = Some((at, num_equal));
            }
        }
        match best {
            Some((at, _)) => {
                for (token, of_line) in templates[at].iter_mut().zip(&tokens) {
                    if token != of_line {
                        *token = "<*>".to_owned();
                    }
                }
                template_of.push((line.clone(), at));
            }
            None => {
                template_of.push((line.clone(), templates.len()));
                templates.push(tokens);
            }
        }
    }
    template_of.into_iter().map(|(line, at)| (line, templates[at].join(" "))).collect()
}

/// Templates of each document with their numbers of lines.
type OfDocuments = Vec<(u64, BTreeMap<String, u64>)>;

/// Evaluates the definition.
fn slow(docs: &[Vec<u8>], options: &TemplateOptions) -> (Vec<LogTemplate>, OfDocuments) {
    let masks = SlowMask::new();
    let mut lines: Vec<(u64, String, String)> = Vec::new();
    for (doc_id, text) in (0..).zip(docs) {
        for line in text.split(|&byte| byte == b'\n') {
            let line = &line[..line.len().min(MAX_LINE_BYTES)];
            let line = String::from_utf8_lossy(line).into_owned();
            let masked = masks.mask(&line);
            if !masked.is_empty() {
                lines.push((doc_id, line, masked));
            }
        }
    }
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    lines.iter().for_each(|(_, _, masked)| *counts.entry(masked.clone()).or_default() += 1);
    let template_of = slow_merge(&counts, options);
    let mut rows: BTreeMap<String, (u64, BTreeSet<u64>, BTreeSet<String>)> = BTreeMap::new();
    let mut of_documents: BTreeMap<u64, BTreeMap<String, u64>> = BTreeMap::new();
    for (doc_id, line, masked) in lines {
        let template = template_of[&masked].clone();
        *of_documents.entry(doc_id).or_default().entry(template.clone()).or_default() += 1;
        let (count, docs, examples) = rows.entry(template).or_default();
        *count += 1;
        docs.insert(doc_id);
        examples.insert(line);
    }
    let mut rows: Vec<LogTemplate> = rows
        .into_iter()
        .map(|(text, (count, docs, mut examples))| LogTemplate {
            text,
            count,
            doc_count: docs.len() as u64,
            first_doc_id: *docs.first().unwrap(),
            last_doc_id: *docs.last().unwrap(),
            example: examples.pop_first().unwrap(),
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    (rows, of_documents.into_iter().collect())
}

/// Returns the templates of each document.
fn of_documents(templates: &LogTemplates, docs: &DocSelection) -> OfDocuments {
    let mut found = Vec::new();
    templates.for_each_document(docs, &mut |doc_id, rows| {
        assert!(rows.is_sorted_by(|a, b| a.0 < b.0));
        let named = |&(row, count): &(u32, u64)| (templates.rows()[row as usize].text.clone(), count);
        found.push((doc_id, rows.iter().map(named).collect()));
        ControlFlow::Continue(())
    });
    found
}

/// Pieces of texts.
const PIECES: &[&str] = &[
    "usb", "usb", "error", "user", "alice", "bob", "disk", "on", "from", "logged", "in", "1", "27", "0x1F", "deadbeef",
    "dead", "cafe", "a", "Jan", "Dec", "May", "Mon", "é", "x1", "sda1", "10.0.0.1", "12:30:01", "_", "<*>", " ", " ",
    " ", " ", "  ", "\t", "\r\n", "\n", "\n", "\n", "\n\n", "\n \n", "\n--\n", "[", "( ", "]", ")", "=", "-", "+", ":",
    ".", ",", "/", "%", "\u{0}",
];

/// Generates documents of lines that recur, with other words in some of their places.
fn texts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let piece = prop_oneof![
        40 => prop::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::sample::select(vec![b"\xff".to_vec(), b"\xe2\x82".to_vec()]),
    ];
    let line = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    prop::collection::vec(line, 1..6).prop_flat_map(|lines| {
        let word = prop::sample::select(vec!["usb", "alice", "bob", "7", "99", "x"]);
        let end = prop::sample::select(vec!["\n", "\n", "\n", "", " "]);
        let line = (0..lines.len(), word, end).prop_map(move |(line, word, end)| {
            [b"usb ", &lines[line][..], b" ", word.as_bytes(), end.as_bytes()].concat()
        });
        let doc = prop::collection::vec(line, 0..8).prop_map(|lines| lines.concat());
        prop::collection::vec(doc, 0..6)
    })
}

fn template_options() -> impl Strategy<Value = TemplateOptions> {
    let similarity = prop::sample::select(vec![0.0, 0.2, 0.4, 0.5, 0.7, 1.0]);
    (similarity, 3_usize..7).prop_map(|(similarity, depth)| TemplateOptions { similarity, depth })
}

/// Builds a corpus of `docs` under arbitrary grammars. The text is cut into segments at `cuts`.
fn scrambled_corpus(profile: TokenizerProfile, docs: &[Vec<u8>], cuts: &BTreeSet<usize>, seed: u64) -> Corpus {
    let mut segments: Vec<Arc<Segment>> = Vec::new();
    let (mut parts, mut continues, mut at): (Vec<Vec<u8>>, _, _) = (Vec::new(), false, 0);
    let mut close = |parts: &mut Vec<Vec<u8>>, continues| {
        let seed = seed.wrapping_add(segments.len() as u64);
        segments.push(Arc::new(segment_of(profile, parts, continues, seed)));
        parts.clear();
    };
    for doc in docs {
        let mut start = 0;
        for &cut in cuts.range(at + 1..at + doc.len().max(1)) {
            parts.push(doc[start..cut - at].to_vec());
            close(&mut parts, continues);
            (start, continues) = (cut - at, true);
        }
        parts.push(doc[start..].to_vec());
        at += doc.len();
        if cuts.contains(&at) {
            close(&mut parts, continues);
            continues = false;
        }
    }
    if !parts.is_empty() || docs.is_empty() {
        close(&mut parts, continues);
    }
    Corpus::new(profile, segments)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn templates_are_those_of_the_definition(
        docs in texts(),
        rules in template_options(),
        profile in prop::sample::select(&PROFILES),
        cuts in prop::collection::btree_set(0_usize..400, 0..4),
        seed in any::<u64>(),
        picks in any::<u8>(),
    ) {
        let corpus = scrambled_corpus(profile, &docs, &cuts, seed);
        let templates = templates_of(&corpus, &rules);
        let (expected, expected_documents) = slow(&docs, &rules);
        prop_assert_eq!(templates.rows(), &expected[..]);
        let all = DocSelection::all(&corpus);
        prop_assert_eq!(of_documents(&templates, &all), expected_documents.clone());
        let picked: Vec<u64> = (0..docs.len() as u64).filter(|doc| picks >> doc & 1 == 1).collect();
        let selection = DocSelection::list(picked.clone()).unwrap();
        let of_picked = expected_documents.into_iter().filter(|(doc, _)| picked.contains(doc));
        prop_assert_eq!(of_documents(&templates, &selection), of_picked.collect::<Vec<_>>());
    }

    #[test]
    fn blocks_have_no_influence(
        docs in texts(),
        block_bytes in 8_usize..200,
        builder in prop::sample::select(vec![BuilderKind::Rounds, BuilderKind::Sequitur]),
        profile in prop::sample::select(&PROFILES),
    ) {
        let rules = TemplateOptions::default();
        let corpus = corpus_of(&numbered(docs.clone()), &options(profile, builder, block_bytes));
        let templates = templates_of(&corpus, &rules);
        let expected = slow(&docs, &rules).0;
        prop_assert_eq!(templates.rows(), &expected[..]);
    }
}

/// Many parts of a large grammar, lines longer than the limit, and documents across segments.
#[test]
fn large_texts_are_read_in_parts() {
    let mut docs: Vec<Vec<u8>> = Vec::new();
    let mut random = 7_u64;
    let mut below = |end: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % end
    };
    for doc in 0..6 {
        let mut text = String::new();
        for line in 0..20_000_u64 {
            let a = below(1000);
            let b = below(40);
            match below(5) {
                0 => text += &format!("[{line:6}.{a}] usb {b}-1: new device {}\n", ["x", "y"][b as usize % 2]),
                1 => text += &format!("user u{} logged in from 10.0.{a}.{b}\n", below(9)),
                2 => text += "the same line again and again\n",
                3 => text += &format!("state {} of unit {}\n", ["up", "down", "lost"][a as usize % 3], b),
                _ => text += &format!("word{} {}\n", ["a", "b", "c"][b as usize % 3], "z ".repeat(b as usize)),
            }
        }
        if doc == 2 {
            text += &format!("{}\n{}", "long ".repeat(40_000), "y".repeat(200_000));
        }
        docs.push(text.into_bytes());
    }
    let build = options(TokenizerProfile::Word, BuilderKind::Rounds, 3 << 20);
    let corpus = corpus_of(&numbered(docs.clone()), &build);
    assert!(corpus.segments().len() > 1);
    for rules in [TemplateOptions::default(), TemplateOptions { similarity: 0.7, depth: 3 }] {
        let templates = templates_of(&corpus, &rules);
        let (expected, expected_documents) = slow(&docs, &rules);
        assert_eq!(templates.rows(), &expected[..]);
        assert_eq!(of_documents(&templates, &DocSelection::all(&corpus)), expected_documents);
    }
}

#[test]
fn hostile_grammars_and_limits() {
    let rules = TemplateOptions::default();
    // One line of 2^60 words is its beginning.
    let templates = templates_of(&bomb(), &rules);
    let texts: Vec<usize> = templates.rows().iter().map(|row| row.text.len()).collect();
    assert_eq!((texts.len(), texts.iter().max()), (2, Some(&MAX_LINE_BYTES)));
    assert_eq!(templates_of(&doubled(60), &rules).rows().len(), 1);
    let fault = |options: &TemplateOptions, max_bytes: u64, is_cancelled: bool| {
        LogTemplates::new(&doubled(4), options, max_bytes, &|| is_cancelled).unwrap_err()
    };
    assert!(matches!(fault(&rules, 64, false), Error::Capacity { .. }));
    for options in [
        TemplateOptions { similarity: 1.5, ..rules },
        TemplateOptions { similarity: f64::NAN, ..rules },
        TemplateOptions { depth: 2, ..rules },
    ] {
        assert!(matches!(fault(&options, AMPLE, false), Error::InvalidArgument { .. }));
    }
}
