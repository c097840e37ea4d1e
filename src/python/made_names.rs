//! Names of tables that this package makes, in texts for users.
//!
//! `read_gsst`, `ingest` and living corpora make tables for themselves. Their names say nothing to a user, so
//! errors speak of what the table is.

/// Beginnings of the names, and what a user calls these tables. A number of 32 digits follows.
const NAMES: [(&str, &str); 4] = [
    ("tadoc_gsst_", "the file"),
    ("tadoc_rows_", "the rows"),
    ("tadoc_columns_", "the rows"),
    ("living_", "the corpus"),
];
/// Number of digits of the number behind a beginning.
const NUM_DIGITS: usize = 32;
/// Qualifier of tables in errors of DataFusion.
const SCHEMA: &str = "datafusion.public.";

/// Returns `text` without names of tables that this package made.
pub fn without_made_names(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, len, meaning)) = first_name(rest) {
        let (before, behind) = (&rest[..at], &rest[at + len..]);
        shown.push_str(before.strip_suffix(SCHEMA).unwrap_or(before));
        match behind.strip_prefix('.').filter(|column| column.starts_with(is_of_name)) {
            // The name qualifies a column.
            Some(column) => rest = column,
            None => {
                shown.push_str(meaning);
                rest = behind;
            }
        }
    }
    shown.push_str(rest);
    shown
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '"')
}

/// Returns the place, the length and the meaning of the first name in `text`.
fn first_name(text: &str) -> Option<(usize, usize, &'static str)> {
    let places = NAMES.iter().flat_map(|&(prefix, meaning)| {
        text.match_indices(prefix).filter_map(move |(at, _)| {
            let digits = text.as_bytes().get(at + prefix.len()..at + prefix.len() + NUM_DIGITS)?;
            let is_number = digits.iter().all(u8::is_ascii_hexdigit);
            is_number.then_some((at, prefix.len() + NUM_DIGITS, meaning))
        })
    });
    places.min_by_key(|&(at, _, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_were_made_are_not_shown() {
        let digits = "0123456789abcdef0123456789abcdef";
        for (text, expected) in [
            (
                format!("No field named x. Valid fields are tadoc_gsst_{digits}.id, tadoc_gsst_{digits}.\"A b\"."),
                "No field named x. Valid fields are id, \"A b\".",
            ),
            (format!("table 'datafusion.public.living_{digits}' not found"), "table 'the corpus' not found"),
            (format!("tadoc_rows_{digits}: broken."), "the rows: broken."),
            ("living_room tadoc_gsst_12.x".to_owned(), "living_room tadoc_gsst_12.x"),
            ("é living_".to_owned(), "é living_"),
        ] {
            assert_eq!(without_made_names(&text), expected);
        }
    }
}
