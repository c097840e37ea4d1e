//! Search for the place at which a document longer than a block is cut.
//!
//! The cut lies between two tokens, and both parts yield the same tokens as the whole text.
//!
//! ```text
//! document  ─────────────────┬─────────────┬╌╌╌╌╌╌╌╌
//!           limit / 2        │ limit       │ limit + 4 tokens: end of the first window
//!                            └ cut
//! ```
//!
//! The cut depends only on the text up to the end of the window, not on the text behind it. So a
//! document that arrives in parts is cut at the same place as the whole document. The search reads
//! O(limit) bytes.

use std::collections::VecDeque;

use crate::text::{MAX_TOKEN_BYTES, TokenizerProfile, for_each_token};

/// Size of the first window behind the limit, in tokens of the greatest length. This makes the
/// token ends before the limit certain.
const TOKENS_BEHIND: usize = 4;

/// Result of [`find_cut`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Position at which the text can be cut, neither its start nor its end.
    At(usize),
    /// The text is one token and stays whole.
    Nowhere,
    /// Number of bytes that the caller must provide first, unless the document is shorter.
    Unseen(usize),
}

/// Finds the place at which to cut `text` near `limit`, which is less than its length. `is_end` is
/// true if the document ends with `text`.
pub(super) fn find_cut(profile: TokenizerProfile, text: &[u8], limit: usize, is_end: bool) -> Cut {
    // An ASCII word byte before ASCII white space is a token border in every profile. Nearly every
    // text has such a border near the limit.
    let is_border =
        |i: &usize| text[*i].is_ascii_whitespace() && text[*i - 1].is_ascii_alphanumeric();
    if let Some(border) = (limit / 2 + 1..=limit).rev().find(is_border) {
        return Cut::At(border);
    }
    let mut window = limit.saturating_add(limit.min(TOKENS_BEHIND * MAX_TOKEN_BYTES));
    loop {
        let visible = &text[..window.min(text.len())];
        let is_all = visible.len() == text.len();
        if is_all && !is_end {
            return Cut::Unseen(window.saturating_add(1));
        }
        match last_token_end(profile, visible, limit, is_all) {
            Some(border) => return Cut::At(border),
            None if is_all => return Cut::Nowhere,
            None => window = window.saturating_mul(2),
        }
    }
}

/// Returns the last token end at or before `limit`, or the first one after it.
///
/// If `is_whole` is false, `visible` continues. Its end may cut a character, and the text behind it
/// may join the last tokens (`can.` + `t` in UAX #29). So a border counts only if two more token
/// ends follow it.
fn last_token_end(
    profile: TokenizerProfile,
    visible: &[u8],
    limit: usize,
    is_whole: bool,
) -> Option<usize> {
    let num_unsure = if is_whole { 1 } else { 3 };
    let (mut end, mut best) = (0, None);
    let mut unsure = VecDeque::with_capacity(num_unsure + 1);
    for_each_token(profile, visible, |token| {
        end += token.bytes.len();
        unsure.push_back(end);
        if unsure.len() > num_unsure
            && let Some(sure) = unsure.pop_front()
            && (sure <= limit || best.is_none())
        {
            best = Some(sure);
        }
    });
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokens(profile: TokenizerProfile, text: &[u8]) -> Vec<Vec<u8>> {
        let mut tokens = Vec::new();
        for_each_token(profile, text, |token| tokens.push(token.bytes.to_vec()));
        tokens
    }

    proptest! {
        #[test]
        fn a_cut_leaves_the_tokens_as_they_were(
            text in prop_oneof!["[a-c ._é\n]{2,60}", "[a ]{2,40}", "[\u{1F1E6}-\u{1F1E8}a' ]{2,20}"],
            limit in 1usize..30,
        ) {
            let text = text.as_bytes();
            prop_assume!(limit < text.len());
            for profile in
                [TokenizerProfile::Word, TokenizerProfile::Uax29, TokenizerProfile::Whitespace]
            {
                let Cut::At(cut) = find_cut(profile, text, limit, true) else { continue };
                prop_assert!(cut > 0 && cut < text.len());
                let mut parts = tokens(profile, &text[..cut]);
                parts.extend(tokens(profile, &text[cut..]));
                prop_assert_eq!(parts, tokens(profile, text));
                for seen in limit + 1..text.len() {
                    match find_cut(profile, &text[..seen], limit, false) {
                        Cut::At(early) => prop_assert_eq!(early, cut),
                        Cut::Unseen(asked) => prop_assert!(asked > seen),
                        Cut::Nowhere => prop_assert!(false, "the document goes on"),
                    }
                }
            }
        }
    }

    #[test]
    fn one_token_is_not_cut() {
        for (text, is_end, expected) in [
            (&b"aaaa"[..], true, Cut::Nowhere),
            (b"aaaa", false, Cut::Unseen(5)),
            (b"aaaaaaa", false, Cut::Unseen(9)),
            (b"aaa aaa", true, Cut::At(3)),
            (b"a aaaaa", false, Cut::Unseen(9)),
            (b"aa aaaaa", false, Cut::At(2)),
        ] {
            assert_eq!(find_cut(TokenizerProfile::Word, text, 2, is_end), expected, "{text:?}");
        }
    }
}
