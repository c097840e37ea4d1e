//! One place of a phrase: a word, a wildcard or a regular expression.

use std::fmt::{self, Write};

use crate::text::Dictionary;

use super::wildcard::{Piece, Wildcard};
use super::word_regex::WordRegex;
use super::word_set::WordSet;

/// What one word of a phrase has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordPattern(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Exact(String),
    Wildcard(Wildcard),
    Regex(WordRegex),
}

impl WordPattern {
    pub(super) fn exact(word: String) -> Self {
        Self(Kind::Exact(word))
    }

    pub(super) fn wildcard(wildcard: Wildcard) -> Self {
        Self(Kind::Wildcard(wildcard))
    }

    pub(super) fn regex(regex: WordRegex) -> Self {
        Self(Kind::Regex(regex))
    }

    /// The word, where the pattern is one.
    pub fn as_word(&self) -> Option<&str> {
        match &self.0 {
            Kind::Exact(word) => Some(word),
            _ => None,
        }
    }

    /// Whether `word` fits, all of it.
    pub fn matches(&self, word: &str) -> bool {
        match &self.0 {
            Kind::Exact(expected) => expected == word,
            Kind::Wildcard(wildcard) => wildcard.matches(word),
            Kind::Regex(regex) => regex.matches(word),
        }
    }

    /// The words of `dictionary` that fit.
    pub(super) fn find(&self, dictionary: &Dictionary) -> WordSet {
        match &self.0 {
            Kind::Exact(word) => {
                let id = dictionary.word_id(word.as_bytes());
                id.map_or(WordSet::default(), |id| WordSet::from_range(id..id + 1))
            }
            Kind::Wildcard(wildcard) => wildcard.find(dictionary),
            Kind::Regex(regex) => regex.find(dictionary),
        }
    }
}

/// Whether a backslash before `character` makes it mean nothing but itself.
pub(super) fn is_special(character: char) -> bool {
    matches!(character, '*' | '?' | '/' | '\\')
}

impl fmt::Display for WordPattern {
    /// The pattern as it is written in a query, quotes not doubled.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Exact(word) => word.chars().try_for_each(|c| write_escaped(formatter, c)),
            Kind::Wildcard(wildcard) => wildcard.pieces().try_for_each(|piece| match piece {
                Piece::Literal(character) => write_escaped(formatter, character),
                Piece::One => formatter.write_char('?'),
                Piece::Many => formatter.write_char('*'),
            }),
            Kind::Regex(regex) => write!(formatter, "/{}/", regex.source()),
        }
    }
}

fn write_escaped(formatter: &mut fmt::Formatter<'_>, character: char) -> fmt::Result {
    if is_special(character) {
        formatter.write_char('\\')?;
    }
    formatter.write_char(character)
}
