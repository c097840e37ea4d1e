//! Tests of `grep` against the regex crate on each line of each document.

use std::ops::{ControlFlow, Range};

use proptest::prelude::*;
use regex::bytes::{Regex, RegexBuilder};
use tadoc::build::BuilderKind;
use tadoc::query::{GrepLine, GrepOptions, LineExpression, LinePattern, SearchOptions, documents_for_demands, grep};
use tadoc::text::TokenizerProfile;
use tadoc::{Corpus, Error};
use testkit::documents::{PROFILES, corpus_of, numbered, options};

/// A row of `grep`, with its own text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    doc_id: u64,
    line_number: u64,
    line_offset: u64,
    matched: Range<usize>,
    line: Vec<u8>,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl From<&GrepLine<'_>> for Row {
    fn from(row: &GrepLine<'_>) -> Self {
        assert_eq!(row.byte_offset(), row.line_offset + row.matched.start as u64);
        Self {
            doc_id: row.doc_id,
            line_number: row.line_number,
            line_offset: row.line_offset,
            matched: row.matched.clone(),
            line: row.line.to_vec(),
            before: row.before.to_vec(),
            after: row.after.to_vec(),
        }
    }
}

fn found(corpus: &Corpus, pattern: &LinePattern, options: &GrepOptions<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let visit = &mut |row: &GrepLine<'_>| {
        rows.push(row.into());
        ControlFlow::Continue(())
    };
    grep(corpus, pattern, options, visit).unwrap();
    rows
}

/// Returns the lines of `text`, each with its end.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').collect()
}

fn regex_of(expression: &LineExpression<'_>) -> Regex {
    let mut source = expression.source.to_owned();
    if expression.is_literal {
        source = regex::escape(&source);
    }
    if expression.is_line {
        source = format!("^(?:{source})$");
    } else if expression.is_word {
        source = format!(r"\b{{start-half}}(?:{source})\b{{end-half}}");
    }
    let mut regex = RegexBuilder::new(&source);
    regex.multi_line(true).case_insensitive(expression.is_any_case).build().unwrap()
}

/// Evaluates the definition, line by line.
fn slow(docs: &[Vec<u8>], expression: &LineExpression<'_>, options: &GrepOptions<'_>) -> Vec<Row> {
    let regex = regex_of(expression);
    let mut rows = Vec::new();
    for (doc_id, text) in docs.iter().enumerate() {
        let lines = lines(text);
        let mut line_offset = 0;
        let mut num_rows = 0;
        for (idx, &whole) in lines.iter().enumerate() {
            let line = whole.strip_suffix(b"\n").unwrap_or(whole);
            let matched = if expression.is_inverted {
                (!regex.is_match(line)).then_some(0..line.len())
            } else {
                regex.find(line).map(|found| found.range())
            };
            if let Some(matched) = matched.filter(|_| num_rows < options.max_lines_per_doc) {
                num_rows += 1;
                let end = lines.len().min(idx + 1 + options.after);
                rows.push(Row {
                    doc_id: doc_id as u64,
                    line_number: idx as u64 + 1,
                    line_offset,
                    matched,
                    line: line.to_vec(),
                    before: lines[idx.saturating_sub(options.before)..idx].concat(),
                    after: lines[idx + 1..end].concat(),
                });
            }
            line_offset += whole.len() as u64;
        }
    }
    rows
}

/// Pieces of texts.
const PIECES: &[&[u8]] = &[
    b"error",
    b"Error",
    b"ERR",
    b"disk",
    b"DISK",
    b"kelvin",
    b"\xe2\x84\xaaelvin",
    b"full",
    b"a",
    b"b",
    b"ab",
    b"x1",
    b"x2",
    b"\xc3\xa9",
    b"\xc3\x89",
    b" ",
    b"  ",
    b", ",
    b"-",
    b"\n",
    b"\n",
    b"\n\n",
    b"\r\n",
    b"\r",
    b"\xff",
    b"\xe2\x28",
    b"\0",
    b"_",
];

/// Words that no piece has.
const RARE: &[&str] = &["needle", " needle1", "a needle", "Needle2 error", "thread\n", "needle\n\n"];

fn texts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let text = prop::collection::vec(prop::sample::select(PIECES), 0..40);
    prop::collection::vec(text.prop_map(|pieces| pieces.concat()), 0..8)
}

fn sources() -> impl Strategy<Value = String> {
    let atoms = vec![
        "error",
        "err",
        "disk",
        "disk full",
        "full",
        "kelvin",
        "[Kk]elvin",
        "a",
        "b",
        "ab",
        "é",
        ".",
        ".*",
        r"\s",
        r"\s+",
        r"\w+",
        r"\b",
        r"\B",
        "^",
        "$",
        r"\A",
        r"\z",
        "[^a]",
        "x[0-9]",
        "x[12]+",
        r"\r",
        r"\r?$",
        "(?-u:\\xff)",
        "(?s).",
        "a?",
        "(?:ab)+",
        "(error|disk)",
        "(?i:error)",
        "(?i:É)",
        "(?-i:Err)",
        "(a|b|)",
        "-",
        ", ",
        "_",
        r"\x00",
        "$^",
        "^$",
    ];
    let sequence = prop::collection::vec(prop::sample::select(atoms), 1..4);
    let sequence = sequence.prop_map(|atoms| atoms.concat());
    prop::collection::vec(sequence, 1..4).prop_map(|parts| parts.join("|"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn finds_the_lines_of_the_definition(
        texts in texts(),
        source in sources(),
        flags in any::<[bool; 5]>(),
        block_bytes in 8_usize..200,
        (before, after) in (0_usize..4, 0_usize..4),
        max_lines_per_doc in prop_oneof![Just(u64::MAX), 0_u64..3],
        profile in prop::sample::select(&PROFILES),
    ) {
        let [is_any_case, is_literal, is_word, is_line, is_inverted] = flags;
        // Most texts are no expressions that match.
        let is_literal = is_literal && source.len() < 6;
        let source = source.as_str();
        let expression =
            LineExpression { source, is_any_case, is_literal, is_word, is_line, is_inverted };
        let pattern = LinePattern::new(&expression).unwrap();
        let build = options(profile, BuilderKind::Rounds, block_bytes);
        let corpus = corpus_of(&numbered(texts.clone()), &build);
        let options = GrepOptions { before, after, max_lines_per_doc, ..GrepOptions::default() };
        let expected = slow(&texts, &expression, &options);
        prop_assert_eq!(found(&corpus, &pattern, &options), expected.clone());
        for row in &expected {
            let all = regex_of(&expression);
            let all = all.find_iter(&row.line).map(|found| found.range());
            prop_assert_eq!(pattern.matches(&row.line).collect::<Vec<_>>(), all.collect::<Vec<_>>());
        }
        let docs: Vec<u64> = (0..texts.len() as u64).step_by(2).collect();
        let search = SearchOptions { docs: Some(&docs), ..SearchOptions::default() };
        let expected = expected.into_iter().filter(|row| row.doc_id % 2 == 0);
        let options = GrepOptions { search, ..options };
        prop_assert_eq!(found(&corpus, &pattern, &options), expected.collect::<Vec<_>>());
    }
}

/// Returns a text of 80,000 lines. A few of them, given in twenties, have a rare word.
fn long_text(seed: u64, rare: &[(usize, &str)]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut random = seed;
    for line in 0..80_000 {
        for _ in 0..8 {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            text.extend_from_slice(PIECES[(random >> 33) as usize % PIECES.len()]);
        }
        for (_, word) in rare.iter().filter(|&&(at, _)| 20 * at == line) {
            text.extend_from_slice(word.as_bytes());
        }
        text.push(b'\n');
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Documents of more than 1 MiB are decoded around the places of rare literals.
    #[test]
    fn long_documents_are_read_around_places(
        seed: u64,
        rare in prop::collection::vec((0usize..4000, prop::sample::select(RARE)), 0..12),
        block_bytes in prop::sample::select(&[30_000usize, 200_000, 1 << 20]),
        (before, after) in (0_usize..4, 0_usize..4),
        max_lines_per_doc in prop_oneof![Just(u64::MAX), 1_u64..4],
    ) {
        let texts = [long_text(seed, &rare), b"needle\n".to_vec(), long_text(!seed, &rare[rare.len() / 2..])];
        prop_assert!(texts[0].len() > 1 << 20 && texts[2].len() > 1 << 20);
        let build = options(TokenizerProfile::Word, BuilderKind::Rounds, block_bytes);
        let corpus = corpus_of(&numbered(texts.to_vec()), &build);
        let options = GrepOptions { before, after, max_lines_per_doc, ..GrepOptions::default() };
        for source in ["needle", "eedle2", "(?i)NEEDLE", "needle1.*error|thread", "a needle", "needle$"] {
            let expression = LineExpression { source, ..LineExpression::default() };
            let pattern = LinePattern::new(&expression).unwrap();
            let expected = slow(&texts, &expression, &options);
            prop_assert!(found(&corpus, &pattern, &options) == expected, "{source}");
        }
    }
}

/// Returns a corpus of some documents, and of one of 20 MB that is read in pieces.
fn large() -> (Vec<Vec<u8>>, Corpus) {
    let mut long = Vec::new();
    for number in 0..400_000_u64 {
        let width = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 57) as usize;
        long.extend_from_slice(format!("line {number} {}\n", "ab ".repeat(width % 24)).as_bytes());
        if number == 200_000 {
            // A line that is longer than a piece.
            long.extend_from_slice("word ".repeat(1_200_000).as_bytes());
            long.extend_from_slice(b"the end\n");
        }
    }
    long.extend_from_slice(b"line without end");
    let docs = vec![b"line 77\nab\n".to_vec(), long, b"x".to_vec()];
    let build = options(TokenizerProfile::Word, BuilderKind::Rounds, 7 << 20);
    let corpus = corpus_of(&numbered(docs.clone()), &build);
    assert!(corpus.segments().len() > 2);
    (docs, corpus)
}

#[test]
fn long_documents_are_read_in_pieces() {
    let (docs, corpus) = large();
    for (source, before, after) in [
        ("77 ", 0, 0),
        (r"line \d*99 $", 3, 2),
        ("the end$", 1, 1),
        ("without", 2, 2),
        ("line 399999 ", 0, 400_000),
        ("^x", 5, 5),
        ("line 200001 ", 200_000, 3),
    ] {
        let expression = LineExpression { source, ..LineExpression::default() };
        let pattern = LinePattern::new(&expression).unwrap();
        let options = GrepOptions { before, after, ..GrepOptions::default() };
        let expected = slow(&docs, &expression, &options);
        assert!(!expected.is_empty());
        assert!(found(&corpus, &pattern, &options) == expected, "{source}");
    }
    let pattern = LineExpression { source: "ab", is_inverted: true, ..LineExpression::default() };
    let options = GrepOptions::default();
    let rows = found(&corpus, &LinePattern::new(&pattern).unwrap(), &options);
    assert!(rows == slow(&docs, &pattern, &options));
}

#[test]
fn limits_and_the_end_of_a_search() {
    let (_, corpus) = large();
    let pattern = |source| LinePattern::new(&LineExpression { source, ..LineExpression::default() }).unwrap();
    let mut num_rows = 0;
    let mut run = |source, options: &GrepOptions<'_>, max: u64| {
        num_rows = 0;
        let outcome = grep(&corpus, &pattern(source), options, &mut |_| {
            num_rows += 1;
            if num_rows == max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        (outcome, num_rows)
    };
    let options = GrepOptions { max_output_bytes: 5 << 20, ..GrepOptions::default() };
    assert!(matches!(run("the end", &options, 9).0, Err(Error::Capacity { .. })));
    assert!(matches!(run("word", &options, 9).0, Err(Error::Capacity { .. })));
    let search = SearchOptions { max_hits: 3, ..SearchOptions::default() };
    let (outcome, num_rows) = run("line", &GrepOptions { search, ..GrepOptions::default() }, 9);
    assert!(matches!(outcome, Err(Error::Capacity { requested: 4, limit: 3, .. })));
    assert_eq!(num_rows, 3);
    let (outcome, num_rows) = run("line", &GrepOptions::default(), 2);
    assert_eq!((outcome.unwrap(), num_rows), ((), 2));
    let search = SearchOptions { is_cancelled: &|| true, ..SearchOptions::default() };
    let options = GrepOptions { search, ..GrepOptions::default() };
    assert!(matches!(run("line", &options, 9), (Err(Error::Cancelled), 0)));
}

#[test]
fn documents_without_a_literal_are_no_candidates() {
    let texts = ["The Disk failed", "a disc failed", "DISKS", "kelvin", "\u{212A}elvin"];
    let texts = texts.map(|text| text.as_bytes().to_vec());
    let build = options(TokenizerProfile::Word, BuilderKind::Rounds, 1 << 20);
    let corpus = corpus_of(&numbered(texts), &build);
    for (source, is_any_case, expected) in [
        ("(Disk|disc) failed", false, Some(vec![0, 1])),
        ("disk", true, Some(vec![0, 2])),
        ("(disks|KELVIN)$", true, Some(vec![2, 3, 4])),
        ("disk.*fail", true, Some(vec![0])),
        ("nowhere|disc", false, Some(vec![1])),
        ("nowhere", false, Some(vec![])),
        (".", false, None),
    ] {
        let expression = LineExpression { source, is_any_case, ..LineExpression::default() };
        let pattern = LinePattern::new(&expression).unwrap();
        assert_eq!(documents_for_demands(&corpus, pattern.demands()), expected, "{source}");
    }
}
