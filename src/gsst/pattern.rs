//! Patterns of predicates on text: `LIKE` over bytes.
//!
//! ```text
//! a%b_c    a  %  b  _  c      a byte; any bytes, also none; one character of UTF-8
//! ```
//!
//! `=`, `starts_with` and `contains` are patterns too. [`Pattern::matches`] is the definition: all
//! other search code must agree with it.
//!
//! # Automaton over bytes
//!
//! ```text
//! %ab%     {0} ─a▶ {0,1} ─b▶ {2}       states: sets of places in the pattern
//!           ▲ └other┘ │a:{0,1}          (KMP's failure links come out of the sets)
//!           └───other─┘
//! ```
//!
//! The automaton comes from the subset construction over the places of the pattern, including places inside a character
//! of `_`. Places before the last reached `%` are dropped, because the `%` matches all that they could still match. So
//! patterns without `_` have at most as many states as tokens. Patterns with `_` can have exponentially many. The
//! construction stops at 256 states, which fit into a byte.

use std::collections::HashMap;

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
    pub fn is_contains(&self) -> bool {
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
        let mut at = 0;
        let mut token = 0;
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

/// A deterministic automaton over bytes. State 0 is the first one.
///
/// ```
/// use gsst::{ByteAutomaton, Pattern};
///
/// let is_either = ByteAutomaton::one_of(&[b"to", b"tea"]).expect("few states");
/// assert!(is_either.matches(b"tea") && !is_either.matches(b"te"));
/// let has_a = ByteAutomaton::new(&Pattern::contains(b"a")).expect("few states");
/// assert!(has_a.matches(b"tea") && !has_a.matches(b"to"));
/// ```
#[derive(Debug, Clone)]
pub struct ByteAutomaton {
    /// Next state, by state and byte.
    next: Vec<[u8; 256]>,
    /// True, by state, if a text that ends in the state matches.
    accepts: Vec<bool>,
    /// True, by state, if the answer stays the same whatever follows.
    is_final: Vec<bool>,
}

/// Positions in the pattern, each as `4 x token + number of missing continuation bytes`.
type Positions = Vec<u32>;

impl ByteAutomaton {
    /// Builds the automaton of `pattern`, or returns `None` if it has more than 256 states.
    pub fn new(pattern: &Pattern) -> Option<Self> {
        let tokens = pattern.tokens();
        let mut automaton = Self { next: Vec::new(), accepts: Vec::new(), is_final: Vec::new() };
        let mut ids: HashMap<Positions, u8> = HashMap::new();
        let mut sets: Vec<Positions> = Vec::new();
        let mut id_of = |set: Positions, sets: &mut Vec<Positions>| {
            if let Some(id) = ids.get(&set) {
                return Some(*id);
            }
            let id = u8::try_from(sets.len()).ok()?;
            ids.insert(set.clone(), id);
            sets.push(set);
            Some(id)
        };
        id_of(closed(vec![0], tokens), &mut sets)?;
        let alike = bytes_alike(tokens);
        let mut state = 0;
        while state < sets.len() {
            let set = sets[state].clone();
            automaton.accepts.push(set.contains(&(4 * tokens.len() as u32)));
            let mut next = [0; 256];
            for byte in 0..=255 {
                let first = alike[usize::from(byte)];
                if first < byte {
                    next[usize::from(byte)] = next[usize::from(first)];
                    continue;
                }
                let places = set.iter().flat_map(|place| steps(*place, byte, tokens));
                next[usize::from(byte)] = id_of(closed(places.collect(), tokens), &mut sets)?;
            }
            automaton.next.push(next);
            state += 1;
        }
        automaton.find_final();
        Some(automaton)
    }

    /// Builds the automaton of texts that are one of `constants`, as a trie. It has one state per
    /// distinct prefix, and one for all other texts. Returns `None` if that is more than 256.
    pub fn one_of(constants: &[&[u8]]) -> Option<Self> {
        const OTHER: u8 = 1;
        let mut automaton = Self { next: vec![[OTHER; 256]; 2], accepts: vec![false; 2], is_final: Vec::new() };
        for constant in constants {
            let mut state = 0;
            for byte in *constant {
                let next = automaton.next[usize::from(state)][usize::from(*byte)];
                if next != OTHER {
                    state = next;
                    continue;
                }
                let id = u8::try_from(automaton.next.len()).ok()?;
                automaton.next[usize::from(state)][usize::from(*byte)] = id;
                automaton.next.push([OTHER; 256]);
                automaton.accepts.push(false);
                state = id;
            }
            automaton.accepts[usize::from(state)] = true;
        }
        automaton.find_final();
        Some(automaton)
    }

    fn find_final(&mut self) {
        let stays = |(state, next): (usize, &[u8; 256])| next.iter().all(|next| usize::from(*next) == state);
        self.is_final = self.next.iter().enumerate().map(stays).collect();
    }

    /// Returns true if `text` matches. Code automata and device kernels must agree with this
    /// result.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.accepts(text.iter().fold(0, |state, byte| self.next(state, *byte)))
    }

    /// Returns the number of states, 1 to 256.
    pub fn num_states(&self) -> usize {
        self.next.len()
    }

    /// Returns the next states, by state and byte.
    pub fn next_states(&self) -> &[[u8; 256]] {
        &self.next
    }

    #[inline]
    pub(super) fn next(&self, state: u8, byte: u8) -> u8 {
        self.next[usize::from(state)][usize::from(byte)]
    }

    /// Returns true if a text that ends in `state` matches.
    ///
    /// # Panics
    ///
    /// Panics if there is no such state.
    pub fn accepts(&self, state: u8) -> bool {
        self.accepts[usize::from(state)]
    }

    /// Returns true if the answer is that of `state` whatever follows.
    ///
    /// # Panics
    ///
    /// Panics if there is no such state.
    pub fn is_final(&self, state: u8) -> bool {
        self.is_final[usize::from(state)]
    }
}

/// Returns, for each byte, the first byte that no token distinguishes from it. So few sets are
/// computed, and the others are copied.
fn bytes_alike(tokens: &[Token]) -> [u8; 256] {
    let kind = |byte: u8| (num_continuations(byte), is_continuation(byte));
    let mut alike = [0; 256];
    for byte in 0..=u8::MAX {
        let is_alike = |other: &u8| kind(*other) == kind(byte) && !tokens.contains(&Token::Byte(*other));
        let has_own = tokens.contains(&Token::Byte(byte));
        let first = if has_own { None } else { (0..byte).find(is_alike) };
        alike[usize::from(byte)] = first.unwrap_or(byte);
    }
    alike
}

/// Returns the place that follows `place` after `byte`, if there is one.
fn steps(place: u32, byte: u8, tokens: &[Token]) -> Option<u32> {
    let token = place / 4;
    let num_missing = place % 4;
    if num_missing > 0 {
        let after = if num_missing == 1 { 4 * (token + 1) } else { place - 1 };
        return is_continuation(byte).then_some(after);
    }
    match tokens.get(token as usize)? {
        Token::Byte(expected) => (byte == *expected).then_some(place + 4),
        Token::AnyBytes => Some(place),
        Token::AnyCharacter => match num_continuations(byte)? {
            0 => Some(place + 4),
            num_missing => Some(place + num_missing as u32),
        },
    }
}

/// Adds the places behind each `%`, drops those before the last reached `%`, and sorts the places.
fn closed(mut places: Positions, tokens: &[Token]) -> Positions {
    let is_any = |place: u32| place.is_multiple_of(4) && tokens.get(place as usize / 4) == Some(&Token::AnyBytes);
    for i in 0..places.len() {
        let mut place = places[i];
        while is_any(place) {
            place += 4;
            places.push(place);
        }
    }
    places.sort_unstable();
    places.dedup();
    if let Some(last) = places.iter().rposition(|place| is_any(*place)) {
        places.drain(..last);
    }
    places
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
        assert!(!Pattern::like("_", None).matches(b"\x80") && !Pattern::like("_", None).matches(b"\xe6\x97"));
    }

    #[test]
    fn tries_accept_their_constants() {
        let texts: [&[u8]; 8] = [b"", b"t", b"to", b"tea", b"te", b"tot", b"o", b"\xff"];
        for constants in [&texts[..0], &texts[..1], &texts[2..4], &texts[..], &[b"to", b"to"]] {
            let one_of = ByteAutomaton::one_of(constants).unwrap();
            for text in texts {
                assert_eq!(one_of.matches(text), constants.contains(&text), "{text:?}");
            }
        }
    }

    #[test]
    fn more_than_256_states_are_given_up() {
        let long = [7; 254];
        assert_eq!(ByteAutomaton::one_of(&[&long]).map(|all| all.num_states()), Some(256));
        assert!(ByteAutomaton::one_of(&[&long, b"x"]).is_none());
    }
}
