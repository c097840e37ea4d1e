//! Tests of predicates on codes against decoding and comparing.

use proptest::prelude::*;

use super::tests::{Random, Rows, all_options, borrowed, columns, text_rows};
use super::*;
use crate::matching::Way;

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
