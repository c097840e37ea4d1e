//! Tests of blocks against simple reference results: round trips, single rows, damaged bytes, predicates on
//! codes against decoding and comparing, and streams of an independent encoder.
//!
//! # Independent encoder
//!
//! Its symbol tables and codes come from the crate fsst-rs 0.7.0. A program trained `fsst::Compressor` on three copies
//! of the rows (all but the last, which is there for its escapes), and printed `symbol_table()`, `symbol_lengths()` and
//! `compress(row)`. The streams are those of FSST: code 255 escapes a literal, and any other code has a symbol.

use proptest::prelude::*;

use crate::decode::{CodeRange, Decoder};
use crate::matching::Way;
use crate::{CodeWidth, Error, Symbol, SymbolTable, *};

/// A random generator (splitmix64) whose sequence never changes, so that the test cases stay the
/// same.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

pub(super) type Rows = Vec<Option<Vec<u8>>>;

pub(super) fn borrowed(rows: &Rows) -> Vec<Option<&[u8]>> {
    rows.iter().map(Option::as_deref).collect()
}

const WORDS: [&str; 12] = [
    "furiously ",
    "the ",
    "quickly final ",
    "deposits",
    " Größe",
    "日本語",
    "a",
    " ",
    "https://",
    "\0",
    "ing ",
    "xyzzy",
];

/// Returns `num_rows` rows of words.
pub(super) fn text_rows(num_rows: usize, random: &mut Random) -> Rows {
    let row = |random: &mut Random| {
        let num_words = random.below(7);
        (0..num_words).map(|_| WORDS[random.below(WORDS.len())]).collect::<String>().into_bytes()
    };
    (0..num_rows).map(|_| Some(row(random))).collect()
}

/// Returns columns of various shapes, which all tests share.
pub(super) fn columns() -> Vec<(&'static str, Rows)> {
    let mut random = Random(7);
    let mut columns: Vec<(&'static str, Rows)> = vec![
        ("no rows", vec![]),
        ("one empty row", vec![Some(vec![])]),
        ("one null", vec![None]),
        ("nulls and empty rows", vec![None, Some(vec![]), None, Some(b"a".to_vec()), None]),
        ("one byte", vec![Some(b"x".to_vec())]),
        ("all bytes", (0..=255).map(|byte| Some(vec![byte; 3])).collect()),
        ("all bytes in a row", vec![Some((0..=255).cycle().take(5000).collect())]),
        ("only 255", vec![Some(vec![255; 3000]), Some(vec![255])]),
        ("only 0", vec![Some(vec![0; 700]), Some(vec![0; 8])]),
    ];
    for num_rows in [1, 31, 32, 33, 127, 128, 129, 1000] {
        columns.push(("words", text_rows(num_rows, &mut random)));
    }
    let mut with_nulls = text_rows(500, &mut random);
    with_nulls.iter_mut().step_by(3).for_each(|row| *row = None);
    columns.push(("words and nulls", with_nulls));
    let bytes = |len: usize, random: &mut Random| (0..len).map(|_| random.next() as u8).collect();
    columns.push(("random bytes", (0..300).map(|i| Some(bytes(i % 40, &mut random))).collect()));
    columns.push(("64 KiB row", vec![Some(bytes(65536, &mut random)), None, Some(b"end".to_vec())]));
    let long = WORDS.concat().repeat(65536 / WORDS.concat().len()).into_bytes();
    columns.push(("64 KiB of words", vec![Some(long), Some(b"the ".to_vec())]));
    columns
}

/// Returns all combinations of width and parse.
pub(super) fn all_options() -> Vec<BlockOptions> {
    let mut all = Vec::new();
    for width in [CodeWidth::Eight, CodeWidth::Twelve] {
        for parse in [Parse::Greedy, Parse::Optimal] {
            for (split_codes, has_text_lengths) in [(512, true), (4096, false)] {
                let training = TrainingOptions { num_rounds: 3, ..TrainingOptions::new(width) };
                all.push(BlockOptions { width, parse, training, split_codes, has_text_lengths });
            }
        }
    }
    all
}

/// Compares the results of all ways of reading with `rows`.
fn check_reading(block: &Block<Vec<u8>>, rows: &Rows, what: &str) {
    let text: Vec<u8> = rows.iter().flatten().flatten().copied().collect();
    assert_eq!((block.num_rows(), block.text_len_bytes()), (rows.len(), text.len()), "{what}");
    assert_eq!(block.num_nulls(), rows.iter().filter(|row| row.is_none()).count(), "{what}");
    let decoded = block.decode_rows(0..rows.len()).unwrap();
    assert!(decoded.text == text, "{what}");
    assert_eq!(decoded.offsets.len(), rows.len() + 1);
    let mut appended = b"before".to_vec();
    block.decode_text(&mut appended);
    assert!(appended.strip_prefix(b"before") == Some(&text[..]), "{what}");
    for (row_idx, row) in rows.iter().enumerate() {
        let mut decoded_row = Vec::new();
        assert_eq!(block.decode_row(row_idx, &mut decoded_row).unwrap(), row.is_some());
        assert_eq!(decoded_row, row.clone().unwrap_or_default(), "{what}, row {row_idx}");
        let ends = (decoded.offsets[row_idx], decoded.offsets[row_idx + 1]);
        assert_eq!(&text[ends.0 as usize..ends.1 as usize], decoded_row);
        assert_eq!(block.is_null(row_idx), row.is_none());
    }
    let mut random = Random(rows.len() as u64);
    if !rows.is_empty() {
        let start = random.below(rows.len());
        let end = start + random.below(rows.len() - start + 1);
        let part = block.decode_rows(start..end).unwrap();
        let expected: Vec<u8> = rows[start..end].iter().flatten().flatten().copied().collect();
        assert!(part.text == expected, "{what}, rows {start}..{end}");
        assert_eq!((part.offsets[0], part.offsets.len()), (0, end - start + 1));
        let picked: Vec<u32> = (0..9).map(|_| random.below(rows.len()) as u32).collect();
        let part = block.decode_selected(&picked).unwrap();
        let expected: Vec<u8> = picked.iter().filter_map(|row| rows[*row as usize].clone()).flatten().collect();
        assert!(part.text == expected, "{what}, rows {picked:?}");
    }
    let len = rows.len() as u64;
    let error = block.decode_row(rows.len(), &mut Vec::new());
    assert!(matches!(error, Err(Error::OutOfRange { got, len: l, .. }) if got == len && l == len));
    assert!(matches!(block.decode_rows(0..rows.len() + 1), Err(Error::OutOfRange { .. })));
    assert!(matches!(block.decode_selected(&[len as u32]), Err(Error::OutOfRange { .. })));
}

/// Checks that each split decodes on its own, from its word alone, as on a device.
fn check_splits(block: &Block<Vec<u8>>, text: &[u8], what: &str) {
    let words: Vec<u32> = block.splits().collect();
    let mut is_literal = false;
    for (split_idx, word) in words.iter().enumerate() {
        let start = split_idx * block.split_codes();
        let end = block.num_codes().min(start + block.split_codes());
        let text_start = (word & (layout::SPLIT_STARTS_WITH_LITERAL - 1)) as usize;
        let mut decoded = Vec::new();
        assert_eq!(is_literal, word & layout::SPLIT_STARTS_WITH_LITERAL != 0, "{what}");
        for code_idx in start..end {
            let code = match block.width() {
                CodeWidth::Eight => u16::from(block.codes()[code_idx]),
                CodeWidth::Twelve => crate::symbol_table::code_at(block.codes(), code_idx),
            };
            let is_escape = !is_literal && code == 255 && block.width() == CodeWidth::Eight;
            if is_literal || is_escape {
                let tile = (code_idx - start) / layout::TILE_CODES;
                assert!(word >> layout::SPLIT_FIRST_TILE_BIT >> tile & 1 == 1, "{what}");
                assert!(!block.has_no_escapes(), "{what}");
            }
            match (is_literal, is_escape) {
                (true, _) => decoded.push(code as u8),
                (_, true) => {}
                _ => decoded.extend(block.table().symbols()[usize::from(code)].as_bytes()),
            }
            is_literal = is_escape;
        }
        assert!(text[text_start..].starts_with(&decoded), "{what}, split {split_idx}");
    }
}

#[test]
fn blocks_read_back() {
    for (name, rows) in columns() {
        let text: Vec<u8> = rows.iter().flatten().flatten().copied().collect();
        for options in all_options() {
            let what = format!("{name}, {options:?}");
            let bytes = write_block(&borrowed(&rows), &options).unwrap();
            assert_eq!(bytes.len() % layout::ALIGNMENT_BYTES, 0);
            assert_eq!(bytes, write_block(&borrowed(&rows), &options).unwrap(), "{what}");
            let block = Block::open(bytes).unwrap();
            check_reading(&block, &rows, &what);
            check_splits(&block, &text, &what);
            assert_eq!(block.text_ends().is_some(), options.has_text_lengths);
            if options.width == CodeWidth::Twelve {
                assert!(block.has_no_escapes());
            }
        }
    }
}

#[test]
fn splits_end_at_every_place_of_an_escape() {
    // Without symbols, every byte is an escape and a literal.
    let table = SymbolTable::new(CodeWidth::Eight, vec![]).unwrap();
    let symbols = vec![Symbol::new(b"a").unwrap()];
    let with_a = SymbolTable::new(CodeWidth::Eight, symbols).unwrap();
    for num_bytes in [255, 256, 257, 511, 512, 513, 2047, 2048, 2049] {
        for shift in 0..2 {
            let mut row = vec![b'a'; shift];
            row.extend((0..num_bytes).map(|i| if i % 5 == 0 { 255 } else { i as u8 | 128 }));
            let rows = vec![Some(row.clone()), Some(row.clone())];
            for table in [&table, &with_a] {
                for split_codes in [512, 1024, 4096] {
                    let options = BlockOptions { split_codes, ..BlockOptions::default() };
                    let bytes = write_block_with(table, &borrowed(&rows), &options).unwrap();
                    let block = Block::open(bytes).unwrap();
                    let what = format!("{num_bytes} bytes, shift {shift}, {split_codes}");
                    check_reading(&block, &rows, &what);
                    check_splits(&block, &[&row[..], &row].concat(), &what);
                }
            }
        }
    }
}

#[test]
fn the_greedy_parse_takes_the_longest_symbol_on_every_path() {
    let mut random = Random(3);
    for case in 0..40 {
        let rows = text_rows(200, &mut random);
        let table = SymbolTable::train(
            CodeWidth::Eight,
            &borrowed(&rows),
            &TrainingOptions { num_rounds: 1 + case % 4, ..TrainingOptions::new(CodeWidth::Eight) },
        );
        let options = BlockOptions::default();
        let block = Block::open(write_block_with(&table, &borrowed(&rows), &options).unwrap()).unwrap();
        // A further row holds all bytes, so that no byte is left to close rows with.
        let mut more = rows.clone();
        more.push(Some((0..=255).collect()));
        let other = Block::open(write_block_with(&table, &borrowed(&more), &options).unwrap()).unwrap();
        let end = block.num_codes();
        assert_eq!(block.codes(), &other.codes()[..end]);
        assert_eq!(block.code_ends(), &other.code_ends()[..=rows.len()]);
        for (row_idx, row) in rows.iter().enumerate() {
            let mut rest = row.as_deref().unwrap();
            let mut codes = Vec::new();
            while let Some(byte) = rest.first() {
                let starts = |code: &usize| rest.starts_with(table.symbols()[*code].as_bytes());
                let codes_of = (0..table.symbols().len()).filter(starts);
                match codes_of.max_by_key(|code| table.symbols()[*code].len_bytes()) {
                    Some(code) => {
                        codes.push(code as u8);
                        rest = &rest[table.symbols()[code].len_bytes()..];
                    }
                    None => {
                        codes.extend([ESCAPE_CODE, *byte]);
                        rest = &rest[1..];
                    }
                }
            }
            assert_eq!(&block.codes()[block.code_range(row_idx)], codes);
        }
    }
}

#[test]
fn limits_are_typed_errors() {
    let row = vec![b'x'; layout::MAX_BLOCK_TEXT_BYTES];
    let rows = [Some(&row[..]), Some(b"y")];
    assert_eq!(num_rows_that_fit(&rows), 1);
    assert_eq!(num_rows_that_fit(&[]), 0);
    let options = BlockOptions::default();
    let block = Block::open(write_block(&rows[..1], &options).unwrap()).unwrap();
    assert_eq!(block.text_len_bytes(), layout::MAX_BLOCK_TEXT_BYTES);
    assert!(matches!(write_block(&rows, &options), Err(Error::Capacity { limit, .. }) if limit == 1 << 23));
    let empty = vec![Some(&b""[..]); layout::MAX_BLOCK_ROWS + 1];
    assert_eq!(num_rows_that_fit(&empty), layout::MAX_BLOCK_ROWS);
    assert!(matches!(write_block(&empty, &options), Err(Error::Capacity { limit, .. }) if limit == 1 << 20));
    let block = Block::open(write_block(&empty[1..], &options).unwrap()).unwrap();
    assert_eq!((block.num_rows(), block.num_codes()), (layout::MAX_BLOCK_ROWS, 0));
    for split_codes in [0, 256, 1000, 8192] {
        let options = BlockOptions { split_codes, ..options };
        assert!(matches!(write_block(&rows[1..], &options), Err(Error::InvalidArgument { name: "split_codes", .. })));
    }
    let table = SymbolTable::new(CodeWidth::Twelve, vec![]).unwrap();
    let error = write_block_with(&table, &rows[1..], &options);
    assert!(matches!(error, Err(Error::InvalidArgument { name: "rows", .. })));
}

/// Returns a block with a corrected checksum.
fn resealed(mut block: Vec<u8>) -> Vec<u8> {
    if block.len() >= layout::HEADER_BYTES {
        layout::seal(&mut block);
    }
    block
}

/// Opens bytes that may not be a block, and reads all of it if they are one.
fn open_and_read(bytes: Vec<u8>) -> Option<Rows> {
    let block = match Block::open(bytes) {
        Ok(block) => block,
        Err(Error::Format { .. } | Error::Version { .. } | Error::Checksum { .. }) => return None,
        Err(other) => panic!("{other}"),
    };
    let decoded = block.decode_rows(0..block.num_rows()).unwrap();
    assert_eq!(decoded.text.len(), block.text_len_bytes());
    let rows: Rows = (0..block.num_rows())
        .map(|row| {
            let mut text = Vec::new();
            let is_valid = block.decode_row(row, &mut text).unwrap();
            let range = decoded.offsets[row] as usize..decoded.offsets[row + 1] as usize;
            assert_eq!(text, decoded.text[range]);
            is_valid.then_some(text)
        })
        .collect();
    Some(rows)
}

#[test]
fn malformed_blocks_are_refused_or_read_consistently() {
    let mut random = Random(11);
    let mut rows = text_rows(40, &mut random);
    rows[3] = None;
    rows[7] = Some(vec![255, 254, 253, 255, 255]);
    let blocks: Vec<Vec<u8>> = all_options().iter().map(|o| write_block(&borrowed(&rows), o).unwrap()).collect();
    let mut num_opened = 0;
    for case in 0..100_000 {
        let mut block = blocks[case % blocks.len()].clone();
        for _ in 0..1 + random.below(3) {
            let at = match random.below(3) {
                0 => random.below(layout::HEADER_BYTES),
                _ => random.below(block.len()),
            };
            block[at] = match random.below(4) {
                0 => 0,
                1 => 255,
                2 => block[at] ^ 1 << random.below(8),
                _ => random.next() as u8,
            };
        }
        match random.below(8) {
            0 => block.truncate(random.below(block.len())),
            1 => block.extend([0; 16]),
            _ => {}
        }
        if random.below(10) == 0 {
            let is_same = open_and_read(block).is_none_or(|read| read == rows);
            assert!(is_same, "a changed block passed its checksum");
        } else {
            let len = block.len() as u32;
            if random.below(2) == 0 && block.len() > 12 {
                block[8..12].copy_from_slice(&len.to_le_bytes());
            }
            num_opened += usize::from(open_and_read(resealed(block)).is_some());
        }
    }
    assert!(num_opened > 1000, "{num_opened}: the checks behind the checksum were not reached");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_rows_read_back(
        rows in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..60)), 0..60),
        choice in 0_usize..8,
    ) {
        let options = all_options()[choice];
        let block = Block::open(write_block(&borrowed(&rows), &options).unwrap()).unwrap();
        check_reading(&block, &rows, "any rows");
    }

    #[test]
    fn few_letters_read_back(
        rows in prop::collection::vec("[ab]{0,30}|(abc){0,9}|ÿ{0,5}", 0..80),
        choice in 0_usize..8,
    ) {
        let rows: Rows = rows.into_iter().map(|row| Some(row.into_bytes())).collect();
        let options = all_options()[choice];
        let block = Block::open(write_block(&borrowed(&rows), &options).unwrap()).unwrap();
        check_reading(&block, &rows, "few letters");
    }

    #[test]
    fn any_bytes_are_no_block(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(open_and_read(bytes), None);
    }
}

/// Compares every way of answering with the definition.
fn check(block: &Block<Vec<u8>>, rows: &Rows, pattern: &Pattern) {
    let expected: Vec<u32> = (0..rows.len() as u32)
        .filter(|row| rows[*row as usize].as_ref().is_some_and(|text| pattern.matches(text)))
        .collect();
    for way in [Way::Codes, Way::Text] {
        let mask = block.rows_like_by(pattern, way);
        assert_eq!(mask.rows(), expected, "{pattern:?} by {way:?}");
        assert_eq!((mask.num_rows(), mask.num_set()), (rows.len(), expected.len()));
    }
    assert_eq!(block.rows_like(pattern).rows(), expected, "{pattern:?}");
}

fn check_equal(block: &Block<Vec<u8>>, rows: &Rows, constants: &[&[u8]]) {
    let is_one = |row: &Option<Vec<u8>>| row.as_ref().is_some_and(|text| constants.contains(&&text[..]));
    let expected: Vec<u32> = (0..rows.len() as u32).filter(|row| is_one(&rows[*row as usize])).collect();
    assert_eq!(block.rows_equal_to(constants).rows(), expected, "{constants:?}");
}

/// Makes a pattern from a part of a row, so that it is likely to match.
fn pattern_from(row: &str, random: &mut Random) -> Pattern {
    let mut pattern = String::new();
    for character in row.chars() {
        match random.below(12) {
            0 => pattern.push('%'),
            1 => pattern.push('_'),
            2 => {}
            _ => {
                if matches!(character, '%' | '_' | '\\') {
                    pattern.push('\\');
                }
                pattern.push(character);
            }
        }
    }
    let pattern: String = match random.below(4) {
        0 => pattern,
        1 => format!("%{pattern}"),
        2 => format!("{}%", pattern.chars().take(6).collect::<String>()),
        _ => format!("%{}%", pattern.chars().skip(2).take(9).collect::<String>()),
    };
    Pattern::like(&pattern, Some('\\'))
}

#[test]
fn predicates_agree_with_decoded_rows() {
    let mut random = Random(5);
    for (name, rows) in columns().into_iter().filter(|(_, rows)| rows.len() <= 500) {
        for options in all_options() {
            let block = Block::open(write_block(&borrowed(&rows), &options).unwrap()).unwrap();
            for literal in [&b""[..], b"a", b"the ", b"xyzzy", b"e f", b"\xff", b"\xff\xff", b"\0\0"] {
                check(&block, &rows, &Pattern::equals(literal));
                check(&block, &rows, &Pattern::starts_with(literal));
                check(&block, &rows, &Pattern::contains(literal));
            }
            let some: Vec<&[u8]> = rows.iter().flatten().take(3).map(|row| &row[..]).collect();
            check_equal(&block, &rows, &some);
            check_equal(&block, &rows, &[]);
            check_equal(&block, &rows, &[b"", b"none of these"]);
            if !rows.is_empty() && name.contains("words") && rows.len() > 2 {
                for _ in 0..12 {
                    let row = rows[random.below(rows.len())].clone().unwrap_or_default();
                    let pattern = pattern_from(&String::from_utf8(row).unwrap(), &mut random);
                    check(&block, &rows, &pattern);
                }
            }
        }
    }
}

#[test]
fn patterns_with_too_many_states_are_answered_on_text() {
    let rows = text_rows(50, &mut Random(1));
    let block = Block::open(write_block(&borrowed(&rows), &BlockOptions::default()).unwrap()).unwrap();
    for pattern in ["%a____________b%", "%i__________%", "%_______________________a"] {
        check(&block, &rows, &Pattern::like(pattern, None));
    }
    let long = "x".repeat(1000);
    check(&block, &rows, &Pattern::like(&format!("{long}%"), None));
}

#[test]
fn equality_holds_for_rows_that_no_parse_of_ours_makes() {
    // The same text from different codes: another encoder may parse rows differently.
    let symbols = [&b"a"[..], b"b", b"ab", b"aba"].map(|bytes| Symbol::new(bytes).unwrap());
    let table = SymbolTable::new(CodeWidth::Eight, symbols.to_vec()).unwrap();
    let rows: Rows = vec![Some(b"abab".to_vec()); 3];
    let optimal = BlockOptions { parse: Parse::Optimal, ..BlockOptions::default() };
    for options in [BlockOptions::default(), optimal] {
        let bytes = write_block_with(&table, &borrowed(&rows), &options).unwrap();
        let mut other = bytes.clone();
        // `aba b` and `ab ab` have the same number of codes, so one row can be replaced.
        let first = if bytes[layout::HEADER_BYTES] == 3 { [2, 2] } else { [3, 1] };
        other[layout::HEADER_BYTES..layout::HEADER_BYTES + 2].copy_from_slice(&first);
        layout::seal(&mut other);
        let block = Block::open(other).unwrap();
        assert_ne!(block.codes()[..2], block.codes()[2..4]);
        check_equal(&block, &rows, &[b"abab"]);
        check(&block, &rows, &Pattern::equals(b"abab"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_pattern_agrees(
        rows in prop::collection::vec(prop::option::of("[abß]{0,12}"), 1..20),
        patterns in prop::collection::vec("[ab%_ß]{0,8}", 1..8),
        choice in 0_usize..8,
    ) {
        let rows: Rows = rows.into_iter().map(|row| row.map(String::into_bytes)).collect();
        let block =
            Block::open(write_block(&borrowed(&rows), &all_options()[choice]).unwrap()).unwrap();
        for pattern in patterns {
            check(&block, &rows, &Pattern::like(&pattern, Some('\\')));
        }
    }

    #[test]
    fn any_bytes_agree(
        rows in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..6), 1..20),
        pattern in "[a%_]{0,5}",
    ) {
        let rows: Rows = rows.into_iter().map(Some).collect();
        let block =
            Block::open(write_block(&borrowed(&rows), &BlockOptions::default()).unwrap()).unwrap();
        check(&block, &rows, &Pattern::like(&pattern, None));
        check(&block, &rows, &Pattern::contains(rows[0].as_deref().unwrap_or_default()));
    }
}

struct Golden {
    symbols: &'static [&'static [u8]],
    /// Text of each row and its codes.
    rows: &'static [(&'static [u8], &'static [u8])],
}

// 30 symbols.
const FSST_WORDS: Golden = Golden {
    symbols: &[
        b" s",
        b" d",
        b"ly",
        b" ir",
        b"ic ",
        b"iron",
        b"onic",
        b"carefull",
        b"deposits",
        b"ts sleep",
        b" careful",
        b"l deposi",
        b"the fina",
        b"y final ",
        b"l",
        b" ",
        b"s",
        b"e",
        b"a",
        b"p",
        b"i",
        b"c",
        b"t",
        b"y",
        b"o",
        b"k",
        b"g",
        b"n",
        b"f",
        b"d",
    ],
    rows: &[
        (b"carefully final deposits", b"\x07\r\x08"),
        (b"carefully ironic deposits", b"\x07\x17\x03\x06\x01\x11\x13\x18\x10\x14\x16\x10"),
        (b"", b""),
        (b"slyly final packages", b"\x10\x02\x02\x0f\x1c\x14\x1b\x12\x0e\x0f\x13\x12\x15\x19\x12\x1a\x11\x10"),
        (b"the final deposits sleep carefully", b"\x0c\x0b\t\n\x02"),
        (b"ironic packages sleep slyly", b"\x05\x04\x13\x12\x15\x19\x12\x1a\x11\x10\x00\x0e\x11\x11\x13\x00\x02\x02"),
        (b"zq finals \xff", b"\xffz\xffq\x0f\x1c\x14\x1b\x12\x0e\x10\x0f\xff\xff"),
    ],
};
// 7 symbols.
const FSST_BYTES: Golden = Golden {
    symbols: &[b"b\xff", b"\xff\xff\xfe", b"abab\xffaba", b"\x00", b"\xff", b"b", b"a"],
    rows: &[
        (b"\xff", b"\x04"),
        (b"\xff\xff\xfe\x00", b"\x01\x03"),
        (b"abab\xffabab\xff", b"\x02\x00"),
        (b"", b""),
        (b"\x00\x00\x00\x00\x00\x00\x00\x00\x00", b"\x03\x03\x03\x03\x03\x03\x03\x03\x03"),
        (b"zq finals \xff", b"\xffz\xffq\xff \xfff\xffi\xffn\x06\xffl\xffs\xff \x04"),
    ],
};
// 22 symbols.
const FSST_UTF8: Golden = Golden {
    symbols: &[
        b"\xe8\xaa",
        b"\x9c\xac",
        b"\xe6\x97\xa5\xe6\x9c\xac",
        b"Gr\xc3\xb6\xc3\x9fe ",
        b"\x9e\xe3\x81\xae\xe6\x97\xa5\xe6",
        b"und Ma\xc3\x9f",
        b"u",
        b"G",
        b" ",
        b"\xe8",
        b"\xe6",
        b"\xe2",
        b"\xc3",
        b"\xac",
        b"\x9f",
        b"\x9e",
        b"\x9c",
        b"\x82",
        b"n",
        b"d",
        b"a",
        b"M",
    ],
    rows: &[
        (b"Gr\xc3\xb6\xc3\x9fe und Ma\xc3\x9f", b"\x03\x05"),
        (b"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe6\x97\xa5\xe6\x9c\xac", b"\x02\x00\x04\x01"),
        (b"Ma\xc3\x9f und Gr\xc3\xb6\xc3\x9fe \xe2\x82\xac", b"\x15\x14\x0c\x0e\x08\x06\x12\x13\x08\x03\x0b\x11\r"),
        (b"zq finals \xff", b"\xffz\xffq\x08\xfff\xffi\x12\x14\xffl\xffs\x08\xff\xff"),
    ],
};

#[test]
fn streams_of_fsst_rs_decode_exactly() {
    for golden in [&FSST_WORDS, &FSST_BYTES, &FSST_UTF8] {
        let symbols = golden.symbols.iter().map(|bytes| Symbol::new(bytes).unwrap()).collect();
        let table = SymbolTable::new(CodeWidth::Eight, symbols).unwrap();
        let table = SymbolTable::from_bytes(CodeWidth::Eight, &table.to_bytes()).unwrap();
        let decoder = Decoder::new(&table);
        let mut all_codes = Vec::new();
        let mut all_text = Vec::new();
        let mut text = Vec::new();
        let decode = |codes: &[u8], text: &mut Vec<u8>| {
            decoder.decode(CodeRange { stored: codes, start: 0, end: codes.len() }, 0, text);
        };
        for (row, codes) in golden.rows {
            text.clear();
            decode(codes, &mut text);
            assert_eq!(&text, row);
            all_codes.extend_from_slice(codes);
            all_text.extend_from_slice(row);
        }
        // The repeated rows are long enough for the loop of 8 codes.
        text.clear();
        decode(&all_codes.repeat(20), &mut text);
        assert_eq!(text, all_text.repeat(20));
    }
}
