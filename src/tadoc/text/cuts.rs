//! Search for places at which a text can be cut and tokenized separately, for any text around the
//! visible part.
//!
//! ```text
//! seen      …wer loss, 日|         the rest of the document may be anything, and may change
//! cuts          | |  |           word, whitespace: where the class changes between two characters
//!               |                uax29: letter or digit, then white space (or `\n`, then a letter)
//! ```
//!
//! The visible part has a whole character on both sides of a cut. UTF-8 characters can be found
//! from any byte, so these two characters are the same in any surroundings. The border between them
//! is a token border: between runs of two classes, or by UAX #29, none of whose rules looks across
//! such a place (WB3a, WB999). Unlike [`next_cut`](super::tokenizer::next_cut) this search needs no
//! bytes before the visible part. It takes the nearest place, so cuts are a few bytes apart in
//! ordinary text.

use super::TokenizerProfile;
use super::tokenizer::last_char;

/// Returns the last cut inside `seen`.
pub fn last_cut(profile: TokenizerProfile, seen: &[u8]) -> Option<usize> {
    (1..seen.len()).rev().find(|&at| is_cut(profile, seen, at))
}

/// Returns the first cut inside `seen`.
pub fn first_cut(profile: TokenizerProfile, seen: &[u8]) -> Option<usize> {
    (1..seen.len()).find(|&at| is_cut(profile, seen, at))
}

fn is_cut(profile: TokenizerProfile, seen: &[u8], at: usize) -> bool {
    // Continuation byte, so `at` lies inside a character. This is the usual case in scripts with
    // multi-byte characters.
    if seen[at] & 0xC0 == 0x80 {
        return false;
    }
    let (Some(before), Some(behind)) = (last_char(&seen[..at]), first_char(&seen[at..])) else {
        return false;
    };
    match profile {
        TokenizerProfile::Word | TokenizerProfile::Whitespace => {
            profile.ends_word(before) != profile.ends_word(behind)
        }
        TokenizerProfile::Uax29 => match (before, behind) {
            (before, ' ' | '\t' | '\r' | '\n') => before.is_alphanumeric(),
            ('\n', behind) => behind.is_alphanumeric(),
            _ => false,
        },
    }
}

/// Returns the first character of `bytes`, or `None` if it is invalid UTF-8 or longer than `bytes`.
fn first_char(bytes: &[u8]) -> Option<char> {
    let len = match bytes.first()? {
        0..0x80 => 1,
        0..0xE0 => 2,
        0..0xF0 => 3,
        _ => 4,
    };
    std::str::from_utf8(bytes.get(..len)?).ok()?.chars().next()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::for_each_token;
    use super::super::tokenizer::tests::{any_profile, odd_text};
    use super::*;

    fn tokens(profile: TokenizerProfile, text: &[u8]) -> Vec<(Vec<u8>, bool)> {
        let mut tokens = Vec::new();
        for_each_token(profile, text, |token| tokens.push((token.bytes.to_vec(), token.is_word)));
        tokens
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        #[test]
        fn tokens_are_the_same_on_both_sides_in_any_surroundings(
            before in odd_text(), seen in odd_text(), behind in odd_text(),
            shown in any::<(prop::sample::Index, prop::sample::Index)>(),
            profile in any_profile(),
        ) {
            let (start, end) = (shown.0.index(seen.len() + 1), shown.1.index(seen.len() + 1));
            let seen = &seen[start.min(end)..start.max(end)];
            let whole = [&before, seen, &behind].concat();
            for cut in (1..seen.len()).filter(|&at| is_cut(profile, seen, at)) {
                let (left, right) = whole.split_at(before.len() + cut);
                let apart = [tokens(profile, left), tokens(profile, right)].concat();
                prop_assert_eq!(tokens(profile, &whole), apart);
            }
        }
    }

    #[test]
    fn cuts_are_where_the_header_draws_them() {
        let seen = "wer loss, 日".as_bytes();
        let cuts = |profile, seen| {
            (1..usize::MAX)
                .take(20)
                .filter(move |&at| at < <[u8]>::len(seen) && is_cut(profile, seen, at))
        };
        assert!(cuts(TokenizerProfile::Word, seen).eq([3, 4, 8, 10]));
        assert!(cuts(TokenizerProfile::Whitespace, seen).eq([3, 4, 9, 10]));
        assert!(cuts(TokenizerProfile::Uax29, seen).eq([3]));
        assert!(cuts(TokenizerProfile::Uax29, "日。\n本".as_bytes()).eq([7]));
        assert_eq!(first_cut(TokenizerProfile::Word, seen), Some(3));
        assert_eq!(last_cut(TokenizerProfile::Word, seen), Some(10));
        // The last character is not completely visible.
        assert_eq!(last_cut(TokenizerProfile::Word, &seen[..12]), Some(8));
        assert_eq!(last_cut(TokenizerProfile::Word, b"abc"), None);
        assert_eq!(first_cut(TokenizerProfile::Word, b""), None);
    }
}
