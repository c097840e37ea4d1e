//! Tests that the device finds the rows that the CPU finds. It writes their numbers, offsets and
//! text over outputs filled with other bytes.
//!
//! Without a device these tests say that they are skipped; `REQUIRE_GPU=1` makes that a failure.

use gsst::{
    Block, BlockOptions, CodeWidth, Pattern, RowMask, SealedBlock, Symbol, SymbolTable, num_rows_that_fit, write_block,
    write_block_with,
};
use tadoc_cuda::{Device, DeviceSelection, GpuError, GsstMatcher, GsstScanner, MatchedRows, RowPredicate, ScanOptions};
use testkit::device::{POISONS, WIDTHS, open_device};
use testkit::random::Random;

type Rows = Vec<Option<Vec<u8>>>;

/// Returns a scanner with a matcher on the first device, or `None` without a device.
fn scanner() -> Option<GsstScanner> {
    let device = open_device()?;
    Some(GsstScanner::new(&device, ScanOptions::default()).unwrap())
}

/// Returns rows of words, of up to `max_len` bytes. Some rows are null or empty.
fn random_rows(random: &mut Random, num_rows: usize, max_len: usize) -> Rows {
    (0..num_rows)
        .map(|_| match random.below(10) {
            0 => None,
            1 => Some(Vec::new()),
            _ => {
                let len = random.below(max_len) + 1;
                Some(random.words(len))
            }
        })
        .collect()
}

fn block_of(rows: &Rows, options: &BlockOptions) -> Block<Vec<u8>> {
    let rows: Vec<_> = rows.iter().map(|row| row.as_deref()).collect();
    Block::open(write_block(&rows, options).unwrap()).unwrap()
}

fn block_by(table: &SymbolTable, rows: &Rows) -> Block<Vec<u8>> {
    let rows: Vec<_> = rows.iter().map(|row| row.as_deref()).collect();
    let options = BlockOptions::new(table.width());
    Block::open(write_block_with(table, &rows, &options).unwrap()).unwrap()
}

fn table_of(width: CodeWidth, symbols: &[&[u8]]) -> SymbolTable {
    let symbols = symbols.iter().map(|symbol| Symbol::new(symbol).unwrap()).collect();
    SymbolTable::new(width, symbols).unwrap()
}

/// One question to the CPU and to the device.
#[derive(Debug, Clone)]
enum Question<'a> {
    Like(Pattern),
    OneOf(Vec<&'a [u8]>),
}

impl Question<'_> {
    fn on_cpu(&self, block: &Block<Vec<u8>>) -> RowMask {
        match self {
            Self::Like(pattern) => block.rows_like(pattern),
            Self::OneOf(constants) => block.rows_equal_to(constants),
        }
    }

    fn on_device(&self, matcher: &GsstMatcher) -> RowPredicate {
        match self {
            Self::Like(pattern) => matcher.like(pattern).unwrap(),
            Self::OneOf(constants) => matcher.one_of(constants).unwrap(),
        }
    }
}

/// Content of a selection.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answer {
    rows: Vec<u32>,
    offsets: Vec<u32>,
    text: Vec<u8>,
}

impl Answer {
    fn of_cpu(blocks: &[Block<Vec<u8>>], question: &Question<'_>, is_negated: bool) -> Self {
        Self::of_all(blocks, &[(question, is_negated)])
    }

    /// Returns the rows for which all questions have the wanted answer.
    fn of_all(blocks: &[Block<Vec<u8>>], questions: &[(&Question<'_>, bool)]) -> Self {
        let mut answer = Self { offsets: vec![0], ..Self::default() };
        let mut first_row = 0;
        for block in blocks {
            let masks: Vec<_> =
                questions.iter().map(|(question, is_negated)| (question.on_cpu(block), *is_negated)).collect();
            let is_selected = |row: &u32| {
                let row = *row as usize;
                masks.iter().all(|(mask, is_negated)| mask.is_set(row) != *is_negated) && !block.is_null(row)
            };
            let rows: Vec<_> = (0..block.num_rows() as u32).filter(is_selected).collect();
            let decoded = block.decode_selected(&rows).unwrap();
            let text_at = answer.text.len() as u32;
            answer.rows.extend(rows.iter().map(|row| first_row + row));
            answer.offsets.extend(decoded.offsets[1..].iter().map(|end| text_at + end));
            answer.text.extend_from_slice(&decoded.text);
            first_row += block.num_rows() as u32;
        }
        answer
    }

    fn of_run(matched: &MatchedRows) -> Self {
        Self {
            rows: matched.rows().collect(),
            offsets: matched.offsets().unwrap().collect(),
            text: matched.text().unwrap().to_vec(),
        }
    }

    fn of_device(selection: &DeviceSelection) -> Self {
        assert_eq!(selection.num_rows(), selection.rows_to_host().unwrap().len());
        assert_eq!(selection.text_len_bytes(), selection.text_to_host().unwrap().len());
        Self {
            rows: selection.rows_to_host().unwrap(),
            offsets: selection.offsets_to_host().unwrap(),
            text: selection.text_to_host().unwrap(),
        }
    }
}

/// Compares both answers to all questions and their negations, with and without the filter. A
/// selection is filled for the first time and again.
#[track_caller]
fn assert_same(scanner: &GsstScanner, blocks: &[Block<Vec<u8>>], questions: &[Question<'_>], case: &str) {
    let matcher = scanner.matcher();
    assert_runs_are_same(scanner, blocks, questions, case);
    let rows = matcher.upload(blocks).unwrap();
    assert_eq!(rows.num_rows(), blocks.iter().map(|block| block.num_rows()).sum::<usize>());
    let mut selection = matcher.selection().unwrap();
    for question in questions {
        let predicate = question.on_device(matcher);
        let variants =
            [(predicate.clone(), false), (predicate.clone().without_filter(), false), (predicate.negated(), true)];
        let expected = [false, true].map(|is_negated| Answer::of_cpu(blocks, question, is_negated));
        for (variant, (predicate, is_negated)) in variants.iter().enumerate() {
            let counted = matcher.count(&rows, predicate, &mut selection).unwrap();
            assert_eq!(counted, expected[usize::from(*is_negated)].rows.len(), "{case}: {question:?}");
            assert_eq!(selection.num_rows(), 0);
            for poison in POISONS {
                selection.fill(poison).unwrap();
                matcher.select(&rows, predicate, &mut selection).unwrap();
                let got = Answer::of_device(&selection);
                let expected = &expected[usize::from(*is_negated)];
                let is_same = got == *expected;
                assert!(
                    is_same,
                    "{case}: {question:?}, variant {variant}, poison {poison:#x}: {} rows, {} \
                     bytes, expected {} and {}; first row that differs: {:?}",
                    got.rows.len(),
                    got.text.len(),
                    expected.rows.len(),
                    expected.text.len(),
                    got.rows.iter().zip(&expected.rows).find(|(got, expected)| got != expected),
                );
            }
        }
    }
}

/// Compares the answers of runs whose blocks the device checks, with several runs under way at a
/// time: each question, its negation, and the negation together with the question before.
#[track_caller]
fn assert_runs_are_same(scanner: &GsstScanner, blocks: &[Block<Vec<u8>>], questions: &[Question<'_>], case: &str) {
    let sealed: Vec<_> = blocks.iter().map(SealedBlock::from_valid).collect();
    let mut before = &questions[0];
    for question in questions {
        let asked = [vec![(question, false)], vec![(question, true)], vec![(before, false), (question, true)]];
        let submit = |asked: &Vec<(&Question<'_>, bool)>, is_text_wanted| {
            let predicate = |(question, is_negated): &(&Question<'_>, bool)| {
                let predicate = question.on_device(scanner.matcher());
                if *is_negated { predicate.negated() } else { predicate }
            };
            let predicates: Vec<_> = asked.iter().map(predicate).collect();
            scanner.submit_matching(&sealed, &predicates, is_text_wanted).unwrap()
        };
        let pending: Vec<_> = asked.iter().map(|asked| (submit(asked, true), submit(asked, false))).collect();
        for (asked, (with_text, without)) in asked.iter().zip(pending) {
            let with_text = with_text.wait().unwrap();
            let without = without.wait().unwrap();
            let expected = Answer::of_all(blocks, asked);
            let num_rows: Vec<_> = blocks.iter().map(|block| block.num_rows()).collect();
            assert_eq!(with_text.block_rows(), num_rows, "{case}");
            assert!(Answer::of_run(&with_text) == expected, "{case}: {asked:?}");
            assert!(without.rows().eq(expected.rows.iter().copied()), "{case}: {asked:?}");
            assert!(without.text().is_none() && without.offsets().is_none(), "{case}");
        }
        before = question;
    }
}

/// Returns questions of every kind about `literal`.
fn about<'a>(literal: &'a [u8]) -> Vec<Question<'a>> {
    vec![
        Question::Like(Pattern::equals(literal)),
        Question::Like(Pattern::starts_with(literal)),
        Question::Like(Pattern::contains(literal)),
        Question::OneOf(vec![literal, b"the ", b"zzz"]),
    ]
}

fn like(pattern: &str) -> Question<'static> {
    Question::Like(Pattern::like(pattern, Some('\\')))
}

#[test]
fn few_rows() {
    let Some(scanner) = scanner() else { return };
    let mut random = Random(1);
    let questions: Vec<_> = [&b""[..], b"a", b"the ", b"the f"].into_iter().flat_map(about).collect();
    assert_same(&scanner, &[], &questions, "no blocks");
    for width in WIDTHS {
        for num_rows in [0, 1, 31, 32, 33, 127, 128, 129] {
            let rows = random_rows(&mut random, num_rows, 12);
            let block = block_of(&rows, &BlockOptions::new(width));
            assert_same(&scanner, &[block], &questions, &format!("{width:?}, {num_rows} rows"));
        }
    }
}

#[test]
fn patterns_of_all_forms() {
    let Some(scanner) = scanner() else { return };
    let mut random = Random(2);
    let mut questions: Vec<_> = [
        "%",
        "",
        "_",
        "%_",
        "__%",
        "the%",
        "%the",
        "%the%",
        "th_ %",
        "the%reg%",
        "%sleep%0%",
        "%ü_er%",
        "%a",
        "%\n%",
        "%12345678%",
        "%urious%",
        "%y regular deposi%",
        "%—%",
        "%0",
        "t%0",
        "%ly ca%ly %",
        "%s%",
        "%the furiously regular deposits sleep the furiously regular%",
    ]
    .into_iter()
    .map(like)
    .collect();
    questions.extend(about(b"sleep "));
    questions.extend(about(b"12345678"));
    questions.push(Question::OneOf(Vec::new()));
    questions.push(Question::OneOf(vec![b"", b"a", b"aa", b"\n", b"the the "]));
    for width in WIDTHS {
        for max_len in [3, 40, 300] {
            let rows = random_rows(&mut random, 3000, max_len);
            let options = BlockOptions { has_text_lengths: max_len != 40, ..BlockOptions::new(width) };
            let block = block_of(&rows, &options);
            let case = format!("{width:?}, rows of up to {max_len} bytes");
            assert_same(&scanner, &[block], &questions, &case);
        }
    }
}

#[test]
fn literals_across_symbols_and_escapes() {
    let Some(scanner) = scanner() else { return };
    let mut random = Random(3);
    let alphabet = [b'a', b'b', b'c', 255];
    let rows: Rows =
        (0..4000).map(|_| Some((0..random.below(30)).map(|_| alphabet[random.below(4)]).collect())).collect();
    let eight: [&[&[u8]]; 4] =
        [&[], &[b"a", b"b", b"c"], &[b"ab", b"abc", b"bca", b"a"], &[b"abcabcab", b"ca", b"\xff"]];
    let twelve: [&[&[u8]]; 2] = [
        &[b"a", b"b", b"c", b"\xff"],
        &[b"abc", b"a", b"b", b"c", b"\xff", b"ca", b"abcabcab", b"\xff\xff", b"bc\xffabc"],
    ];
    let tables = eight.map(|symbols| table_of(CodeWidth::Eight, symbols));
    let more = twelve.map(|symbols| table_of(CodeWidth::Twelve, symbols));
    let blocks: Vec<_> = tables.iter().chain(&more).map(|table| block_by(table, &rows)).collect();
    let literals: [&[u8]; 12] = [
        b"a",
        b"\xff",
        b"ab",
        b"ca",
        b"\xff\xff",
        b"abc",
        b"a\xffb",
        b"abca",
        b"bcabcabca",
        b"cab\xff\xff",
        b"\xffa\xff",
        b"abcabcabcabcabcabcabcabcabc",
    ];
    let questions: Vec<_> = literals.into_iter().flat_map(about).collect();
    assert_same(&scanner, &blocks, &questions, "all tables");
}

#[test]
fn runs_that_look_like_escapes() {
    let Some(scanner) = scanner() else { return };
    let mut random = Random(4);
    let table = table_of(CodeWidth::Eight, &[b"z", b"zz\xff"]);
    let mut rows: Rows = (0..600).map(|len| Some(vec![255; len])).collect();
    rows.extend((0..600).map(|len| {
        let mut row = random.bytes(len);
        row.iter_mut().step_by(3).for_each(|byte| *byte = 255);
        Some(row)
    }));
    let block = block_by(&table, &rows);
    let questions: Vec<_> =
        [&b"\xff"[..], b"\xff\xff\xff", b"z", b"z\xff", &[255; 70]].into_iter().flat_map(about).collect();
    assert_same(&scanner, &[block], &questions, "runs of 255");
}

#[test]
fn all_rows_no_rows_and_only_nulls() {
    let Some(scanner) = scanner() else { return };
    let mut random = Random(5);
    for width in WIDTHS {
        let options = BlockOptions::new(width);
        let same: Rows = vec![Some(b"furiously regular".to_vec()); 5000];
        let nulls: Rows = vec![None; 700];
        let ones: Rows = (0..5000).map(|_| Some(random.words(1))).collect();
        let blocks = [&same, &nulls, &Vec::new(), &ones, &same].map(|rows| block_of(rows, &options));
        let mut questions = about(b"furiously regular");
        questions.extend(about(b"a"));
        questions.extend(about(b"not there"));
        questions.extend(["%", "_%", "%r", "f%y%r"].map(like));
        assert_same(&scanner, &blocks, &questions, &format!("{width:?}"));
    }
}

#[test]
fn long_rows() {
    let Some(scanner) = scanner() else { return };
    let mut random = Random(6);
    for width in WIDTHS {
        let mut rows: Rows = (0..60).map(|_| Some(random.words(64 << 10))).collect();
        for row in [3, 40] {
            let at = random.below(60_000);
            rows[row].as_mut().unwrap()[at..].iter_mut().zip(b"needle").for_each(|(a, b)| *a = *b);
        }
        rows.extend(random_rows(&mut random, 500, 30));
        rows.push(Some(random.words(2_000_000)));
        rows.push(Some(b"needle".to_vec()));
        let block = block_of(&rows, &BlockOptions::new(width));
        let mut questions = about(b"needle");
        questions.extend(["%needle%a%", "%e_dl%", "the%", "%0"].map(like));
        assert_same(&scanner, &[block], &questions, &format!("{width:?}"));
    }
}

#[test]
fn many_blocks_of_both_widths() {
    let Some(scanner) = scanner() else { return };
    let mut random = Random(7);
    let blocks: Vec<_> = (0..150)
        .map(|i| {
            let num_rows = random.below(2500);
            let max_len = random.below(60) + 1;
            let rows = random_rows(&mut random, num_rows, max_len);
            let options = BlockOptions { has_text_lengths: i % 3 != 1, ..BlockOptions::new(WIDTHS[i / 2 % 2]) };
            block_of(&rows, &options)
        })
        .collect();
    let mut questions = about(b"sleep a");
    questions.extend(["%regular deposits%", "%a%", "the %0"].map(like));
    // There are so many states that the tables of 12-bit blocks are made in groups.
    let long = "the furiously regular deposits sleep carefully ".repeat(5);
    questions.push(Question::Like(Pattern::contains(&long.as_bytes()[..200])));
    assert_same(&scanner, &blocks, &questions, "150 blocks");
}

#[test]
fn full_blocks() {
    let Some(scanner) = scanner() else { return };
    let mut random = Random(8);
    for width in WIDTHS {
        let texts: Vec<_> = (0..400_000).map(|_| random.words(24)).collect();
        let rows: Vec<_> = texts.iter().map(|row| Some(&row[..])).collect();
        let rows = &rows[..num_rows_that_fit(&rows)];
        let block = Block::open(write_block(rows, &BlockOptions::new(width)).unwrap()).unwrap();
        let questions = [like("%regular%"), like("%regular deposits c%"), like("a%"), like("%")];
        // There are so many units that their sums are scanned in two steps.
        let blocks = vec![block; 4];
        assert_same(&scanner, &blocks, &questions, &format!("{width:?}, 4 x 8 MiB"));
    }
}

#[test]
fn predicates_with_too_many_states_are_refused() {
    let Some(scanner) = scanner() else { return };
    let matcher = scanner.matcher();
    let refused = matcher.like(&Pattern::like("%a____________b%", None));
    assert!(matches!(refused, Err(GpuError::Unsupported { kernel: "gsst_match", .. })));
    let long = [b'x'; 300];
    assert!(matches!(matcher.one_of(&[&long]), Err(GpuError::Unsupported { .. })));
    assert!(matcher.like(&Pattern::contains(&long[..250])).is_ok());
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    let Some(_) = scanner() else { return };
    let mut random = Random(9);
    let block = block_of(&random_rows(&mut random, 2000, 30), &BlockOptions::default());
    let small = GsstMatcher::new(&Device::open(0).unwrap().with_max_bytes(2000));
    let refused = small.upload(&[block]).map(|rows| rows.num_rows());
    assert!(matches!(refused, Err(GpuError::OutOfMemory { available_bytes: 2000, .. })));
}

#[test]
fn runs_without_blocks_or_codes_or_predicates() {
    let Some(scanner) = scanner() else { return };
    let none: [SealedBlock<Vec<u8>>; 0] = [];
    let all = scanner.matcher().like(&Pattern::like("%", None)).unwrap();
    let matched = scanner.submit_matching(&none, &[all], true).unwrap().wait().unwrap();
    assert_eq!(Answer::of_run(&matched), Answer { offsets: vec![0], ..Answer::default() });
    let refused = scanner.submit_matching(&none, &[], true).map(drop);
    assert!(matches!(refused, Err(GpuError::Mismatch { got: 0, expected: 1, .. })));
    for width in WIDTHS {
        let empty: Rows = (0..300).map(|row| (row % 3 > 0).then(Vec::new)).collect();
        for has_text_lengths in [true, false] {
            let options = BlockOptions { has_text_lengths, ..BlockOptions::new(width) };
            let blocks = [&empty, &Vec::new(), &empty].map(|rows| block_of(rows, &options));
            let questions = [like(""), like("%"), like("a%"), like("_%")];
            assert_same(&scanner, &blocks, &questions, "no codes");
        }
    }
}

#[test]
fn threads_share_the_slots_of_a_scanner() {
    let Some(scanner) = scanner() else { return };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let scanner = &scanner;
            scope.spawn(move || {
                let mut random = Random(20 + thread);
                for turn in 0..6 {
                    let rows = random_rows(&mut random, 500 + 3000 * turn, 40);
                    let block = block_of(&rows, &BlockOptions::new(WIDTHS[turn % 2]));
                    let questions = [like("%regular%"), like("%a%"), like("the %")];
                    assert_runs_are_same(scanner, &[block], &questions, "four threads");
                }
            });
        }
    });
}
