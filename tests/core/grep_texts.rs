//! Tests of `grep_texts` against the lines of joined texts: documents of one path, each followed by a line end.

use std::ops::ControlFlow;

use proptest::prelude::*;
use regex::bytes::Regex;
use tadoc::build::BuilderKind;
use tadoc::query::{GrepOptions, LineExpression, LinePattern, PathTexts, TextLead, documents_for_demands, grep_texts};
use testkit::documents::{Document, PROFILES, corpus_of, options};

/// A line that was found: path, number, offset, line, lines before and after it.
type Row = (String, u64, u64, Vec<u8>, Vec<u8>, Vec<u8>);

/// Returns the rows of a naive search through texts, of which each has its lines with their ends.
fn naive(texts: &[(String, Vec<u8>)], pattern: &str, around: [usize; 2], max_lines: usize) -> Vec<Row> {
    let regex = Regex::new(pattern).unwrap();
    let mut rows = Vec::new();
    for (path, text) in texts {
        let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        let content = |line: usize| lines[line].strip_suffix(b"\n").unwrap_or(lines[line]);
        let selected = (0..lines.len()).filter(|&line| regex.is_match(content(line))).take(max_lines);
        for line in selected {
            let offset: usize = lines[..line].iter().map(|line| line.len()).sum();
            let before = lines[line.saturating_sub(around[0])..line].concat();
            let after = lines[line + 1..lines.len().min(line + 1 + around[1])].concat();
            rows.push((path.clone(), line as u64 + 1, offset as u64, content(line).to_vec(), before, after));
        }
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn lines_are_those_of_joined_texts(
        documents in prop::collection::vec((0..3usize, "(a|b|é|needle|ab\n|\n| |-){0,8}"), 1..30),
        pattern in prop::sample::select(vec!["needle", "a", "^$", "é b|ab", "b-?", "", "nothing"]),
        around in [0..4usize, 0..4usize],
        max_lines in prop::sample::select(vec![1usize, 2, 1000]),
        profile in prop::sample::select(PROFILES.to_vec()),
        block_bytes in prop::sample::select(vec![8usize, 64, 1 << 20]),
        dropped in 0..40usize,
    ) {
        let named: Vec<Document> =
            documents.iter().map(|(path, text)| (format!("p{path}"), text.clone().into_bytes())).collect();
        let corpus = corpus_of(&named, &options(profile, BuilderKind::Rounds, block_bytes));
        let mut joined: Vec<(String, Vec<u8>, usize)> = Vec::new();
        for (idx, (path, text)) in named.iter().enumerate() {
            if idx == dropped {
                continue;
            }
            match joined.iter_mut().find(|(other, ..)| other == path) {
                Some((_, all, num_docs)) => {
                    all.extend_from_slice(text);
                    all.push(b'\n');
                    *num_docs += 1;
                }
                None => joined.push((path.clone(), [text.as_slice(), b"\n"].concat(), 1)),
            }
        }
        // A document alone with its path stays as it is.
        let texts = joined.into_iter().map(|(path, mut text, num_docs)| {
            text.truncate(text.len() - usize::from(num_docs == 1));
            (path, text)
        });
        let expected = naive(&texts.collect::<Vec<_>>(), pattern, around, max_lines);

        let mut texts = PathTexts::without(&corpus, &|doc_id| doc_id == dropped as u64);
        texts.count_line_ends(&corpus);
        texts.count_bytes(&corpus).unwrap();
        let expression = LineExpression { source: pattern, ..LineExpression::default() };
        let line_pattern = LinePattern::new(&expression).unwrap();
        let docs = documents_for_demands(&corpus, line_pattern.demands());
        let docs = texts.in_order(docs.unwrap_or_else(|| (0..corpus.num_docs()).collect()));
        let [before, after] = around;
        let grep = GrepOptions { before, after, max_lines_per_doc: max_lines as u64, ..GrepOptions::default() };
        let mut found: Vec<Row> = Vec::new();
        grep_texts(&corpus, &line_pattern, &texts, &docs, &grep, &mut |line| {
            let path = corpus.path(line.doc_id).unwrap().to_owned();
            let [own, before, after] = [line.line, line.before, line.after].map(<[u8]>::to_vec);
            found.push((path, line.line_number, line.line_offset, own, before, after));
            ControlFlow::Continue(())
        }).unwrap();
        prop_assert_eq!(found, expected);
    }

    /// A corpus that is a part of a longer one has the numbers and neighbours of the whole.
    #[test]
    fn parts_go_on_from_each_other(
        texts in prop::collection::vec("(a|b|ab\n|\n){0,4}", 2..12),
        cut in 1..11usize,
        num_lines in 0..5usize,
    ) {
        let cut = cut.min(texts.len() - 1);
        let named: Vec<Document> = texts.iter().map(|text| ("p".to_owned(), text.clone().into_bytes())).collect();
        let options = options(PROFILES[0], BuilderKind::Rounds, 1 << 20);
        let [first, second] = [&named[..cut], &named[cut..]].map(|part| corpus_of(part, &options));
        let counted = |texts: PathTexts, corpus: &tadoc::Corpus| {
            let mut texts = texts;
            texts.count_line_ends(corpus);
            texts.count_bytes(corpus).unwrap();
            texts
        };
        let before = counted(PathTexts::new(&first).with_more(), &first);
        let lead = before.lead_of_next(&first, num_lines).unwrap();
        let whole: Vec<u8> = texts[..cut].iter().flat_map(|text| format!("{text}\n").into_bytes()).collect();
        let lines: Vec<&[u8]> = whole.split_inclusive(|&byte| byte == b'\n').collect();
        let expected = TextLead {
            num_docs: cut as u64,
            num_lines: lines.len() as u64,
            len_bytes: whole.len() as u64,
            last_lines: lines[lines.len().saturating_sub(num_lines)..].concat(),
        };
        prop_assert_eq!(&lead, &expected);

        let all: Vec<u8> = texts.iter().flat_map(|text| format!("{text}\n").into_bytes()).collect();
        let model = naive(&[("p".to_owned(), all)], "a", [num_lines, 0], 1000);
        let model: Vec<Row> = model.into_iter().filter(|row| row.1 > lines.len() as u64).collect();
        let after = counted(PathTexts::new(&second).with_lead(lead), &second);
        let expression = LineExpression { source: "a", ..LineExpression::default() };
        let pattern = LinePattern::new(&expression).unwrap();
        let docs = after.in_order((0..second.num_docs()).collect());
        let grep = GrepOptions { before: num_lines, ..GrepOptions::default() };
        let mut found: Vec<Row> = Vec::new();
        grep_texts(&second, &pattern, &after, &docs, &grep, &mut |line| {
            let [own, before] = [line.line, line.before].map(<[u8]>::to_vec);
            found.push(("p".to_owned(), line.line_number, line.line_offset, own, before, Vec::new()));
            ControlFlow::Continue(())
        }).unwrap();
        prop_assert_eq!(found, model);
    }
}
