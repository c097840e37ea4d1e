//! Items that mean something in the query languages of other engines, and what to write here.

/// Quotes that a phrase has.
pub(super) const STRAIGHT_QUOTES: &str = "straight double quotes around a phrase, as in \"a b\"; write other quotes \
                               inside them for the characters";

/// Returns what to write in place of `text`, an item without quotes, if it means something in the language
/// of another engine.
pub(super) fn meant_otherwise(text: &str) -> Option<&'static str> {
    let ends_in_tilde = || {
        let before = text.strip_suffix('~').and_then(|text| text.chars().next_back());
        before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '*' | '?'))
    };
    Some(match text {
        "&&" => "AND between parts, or nothing; write \"&&\" in quotes for the text",
        "||" => "OR between parts; write \"||\" in quotes for the text",
        "*:*" => "words; documents(corpus) lists all documents, and * finds every word",
        _ if is_distance(text) => {
            "NEAR(a b, 5) or \"a b\"~5 for words near each other; write it in quotes for the text"
        }
        _ if text.contains(['“', '”', '„', '«', '»']) => STRAIGHT_QUOTES,
        _ if text.contains("}:") => {
            "a query without column filters; write a condition on the column in WHERE"
        }
        _ if text.rsplit_once('^').is_some_and(|(_, weight)| is_number(weight)) => {
            "parts without weights; write \"a^2\" in quotes for the text"
        }
        _ if text.strip_prefix('~').is_some_and(is_number) => {
            "a number of edits or words directly behind a word or phrase, as in word~1 or \"a b\"~5; \
             write \\~ for the character"
        }
        _ if ends_in_tilde() => {
            "word~1 or word~2 for words within so many edits; write \\~ for the character"
        }
        _ => return None,
    })
}

/// Returns true for an operator between words that lie near each other: `w/3`, `pre/3`, `AROUND(3)`, `<3>`.
fn is_distance(text: &str) -> bool {
    let around = text.strip_prefix("AROUND(").and_then(|text| text.strip_suffix(')'));
    let angles = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
    let slash = text.split_once('/').filter(|(name, _)| {
        ["w", "pre"].iter().any(|operator| name.eq_ignore_ascii_case(operator))
    });
    let number = around.or(angles).or(slash.map(|(_, number)| number));
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns true for digits, with or without a point among them.
fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}
