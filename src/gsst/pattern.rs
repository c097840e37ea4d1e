//! Patterns of predicates on text: `LIKE` over bytes.
//!
//! ```text
//! a%b_c    a  %  b  _  c      a byte; any bytes, also none; one character of UTF-8
//! ```
//!
//! `=`, `starts_with` and `contains` are patterns too. [`Pattern::matches`] is the definition: all
//! other search code must agree with it.

/// An element of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// One given byte.
    Byte(u8),
    /// One character: a byte below 0x80, or a lead byte with its continuation bytes.
    AnyCharacter,
    /// Any number of any bytes, also none.
    AnyBytes,
}

/// A pattern on the bytes of a text.
///
/// ```
/// use gsst::Pattern;
///
/// let pattern = Pattern::like("gr_ß%", Some('\\'));
/// assert!(pattern.matches("größe".as_bytes()) && !pattern.matches(b"gross"));
/// assert!(Pattern::like(r"100\%", Some('\\')).matches(b"100%"));
/// assert!(Pattern::contains(b"mid").matches(b"amidst"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    tokens: Vec<Token>,
}

impl Pattern {
    /// Creates the pattern of texts like `pattern` in the sense of SQL. The character after
    /// `escape` is a literal. So is an escape at the end.
    pub fn like(pattern: &str, escape: Option<char>) -> Self {
        let mut tokens = Vec::with_capacity(pattern.len());
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let is_escape = Some(character) == escape;
            match character {
                '%' if !is_escape => {
                    if tokens.last() != Some(&Token::AnyBytes) {
                        tokens.push(Token::AnyBytes);
                    }
                }
                '_' if !is_escape => tokens.push(Token::AnyCharacter),
                _ => {
                    let next = if is_escape { characters.next() } else { None };
                    let literal = next.unwrap_or(character);
                    tokens.extend(literal.encode_utf8(&mut [0; 4]).bytes().map(Token::Byte));
                }
            }
        }
        Self { tokens }
    }

    /// Creates the pattern that matches only `literal`.
    pub fn equals(literal: &[u8]) -> Self {
        Self { tokens: literal.iter().copied().map(Token::Byte).collect() }
    }

    /// Creates the pattern of texts that start with `literal`.
    pub fn starts_with(literal: &[u8]) -> Self {
        let mut pattern = Self::equals(literal);
        pattern.tokens.push(Token::AnyBytes);
        pattern
    }

    /// Creates the pattern of texts that end with `literal`.
    pub fn ends_with(literal: &[u8]) -> Self {
        let mut pattern = Self { tokens: vec![Token::AnyBytes] };
        pattern.tokens.extend(literal.iter().copied().map(Token::Byte));
        pattern
    }

    /// Creates the pattern of texts that contain `literal`.
    pub fn contains(literal: &[u8]) -> Self {
        let mut pattern = Self::ends_with(literal);
        if !literal.is_empty() {
            pattern.tokens.push(Token::AnyBytes);
        }
        pattern
    }

    /// Returns the longest run of bytes between wildcards if the pattern starts with `%`. Every
    /// matching text contains it, at no fixed place. Empty if the pattern starts with anything else
    /// or has no bytes.
    pub fn floating_literal(&self) -> Vec<u8> {
        if self.starts_with_any_bytes() { self.longest_literal() } else { Vec::new() }
    }

    pub(super) fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Returns true if the pattern has the form `%x%`.
    pub(super) fn is_contains(&self) -> bool {
        match &self.tokens[..] {
            [Token::AnyBytes, middle @ .., Token::AnyBytes] => literal(middle).is_some(),
            _ => false,
        }
    }

    /// Returns the bytes that matching texts end with, if the pattern has the form `%x`.
    pub(super) fn suffix(&self) -> Option<Vec<u8>> {
        match &self.tokens[..] {
            [Token::AnyBytes, rest @ ..] => literal(rest),
            _ => None,
        }
    }

    pub(super) fn starts_with_any_bytes(&self) -> bool {
        self.tokens.first() == Some(&Token::AnyBytes)
    }

    /// Returns the longest run of bytes between wildcards. Every matching text contains it.
    pub(super) fn longest_literal(&self) -> Vec<u8> {
        let is_wildcard = |token: &Token| !matches!(token, Token::Byte(_));
        let longest = self.tokens.split(is_wildcard).max_by_key(|run| run.len());
        longest.and_then(literal).unwrap_or_default()
    }

    /// Returns the bytes of a pattern without wildcards.
    pub(super) fn whole_literal(&self) -> Option<Vec<u8>> {
        literal(&self.tokens)
    }

    /// Returns true if `text` matches the pattern. Time O(text x pattern) at worst.
    pub fn matches(&self, text: &[u8]) -> bool {
        let (mut at, mut token) = (0, 0);
        // Place and token to resume from if the tokens behind the last `%` fail. The `%` then takes
        // one more byte.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let step = match self.tokens.get(token) {
                Some(Token::AnyBytes) => {
                    retry = Some((at, token));
                    token += 1;
                    continue;
                }
                Some(Token::Byte(byte)) => (text.get(at) == Some(byte)).then_some(1),
                Some(Token::AnyCharacter) => character_len(&text[at..]),
                None if at == text.len() => return true,
                None => None,
            };
            match (step, &mut retry) {
                (Some(len), _) => (at, token) = (at + len, token + 1),
                (None, Some((from, any_bytes))) if *from < text.len() => {
                    *from += 1;
                    (at, token) = (*from, *any_bytes + 1);
                }
                _ => return false,
            }
        }
    }
}

/// Returns the number of continuation bytes of a character that starts with `byte`.
pub(super) fn num_continuations(byte: u8) -> Option<usize> {
    match byte {
        0..0x80 => Some(0),
        0xc0..0xe0 => Some(1),
        0xe0..0xf0 => Some(2),
        0xf0..0xf8 => Some(3),
        _ => None,
    }
}

/// Returns true if `byte` is a continuation byte.
pub(super) fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Returns the length of the character that `text` starts with.
fn character_len(text: &[u8]) -> Option<usize> {
    let num_continuations = num_continuations(*text.first()?)?;
    let continuations = text.get(1..=num_continuations)?;
    continuations.iter().copied().all(is_continuation).then_some(1 + num_continuations)
}

fn literal(tokens: &[Token]) -> Option<Vec<u8>> {
    let byte = |token: &Token| match token {
        Token::Byte(byte) => Some(*byte),
        _ => None,
    };
    tokens.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_sql() {
        let cases = [
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("%%", "abc", true),
            ("_", "ß", true),
            ("_", "日本", false),
            ("__", "日本", true),
            ("a%b_c", "ab-c", true),
            ("a%b_c", "abb-c", true),
            ("a%b_c", "abc", false),
            ("%ab%ab", "abab", true),
            ("%ab%ab", "aba", false),
            ("%aab", "aaaab", true),
            (r"\%\_\\", r"%_\", true),
            (r"a\", r"a\", true),
            ("%_a", "a", false),
        ];
        for (pattern, text, expected) in cases {
            let pattern_of = Pattern::like(pattern, Some('\\'));
            assert_eq!(pattern_of.matches(text.as_bytes()), expected, "{text} like {pattern}");
        }
        assert_eq!(Pattern::ends_with(b"100%"), Pattern::like(r"%100\%", Some('\\')));
        assert!(Pattern::contains(b"").matches(b"") && Pattern::starts_with(b"").matches(b"x"));
        assert!(
            !Pattern::like("_", None).matches(b"\x80")
                && !Pattern::like("_", None).matches(b"\xe6\x97")
        );
    }
}
