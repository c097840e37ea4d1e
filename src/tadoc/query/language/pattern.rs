//! Pattern of one word of a phrase: a word, a word with edits, a wildcard or a regular expression.
//!
//! A folded pattern is compared with folded words, so all words of a dictionary are read: O(bytes
//! of the words), a few milliseconds for a million words. A regular expression matches any case by
//! itself, and only the words that begin like it are read.

use std::borrow::Cow;
use std::fmt::{self, Write};

use crate::text::{Dictionary, Fold};

use crate::query::language::fuzzy::FuzzyWord;
use crate::query::language::regex::{RegexFault, WordRegex};
use crate::query::language::wildcard::{PatternChar, Wildcard};
use crate::query::matching::dictionary_search::filtered;
use crate::query::matching::word_set::WordSet;

/// A condition on one word of a phrase.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WordPattern {
    kind: Kind,
    /// Fold that `kind` has already and that words need before the comparison.
    fold: Fold,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind {
    Exact(String),
    Wildcard(Wildcard),
    Fuzzy(FuzzyWord),
    Regex(WordRegex),
}

impl WordPattern {
    pub(in crate::query) fn exact(word: String) -> Self {
        Self { kind: Kind::Exact(word), fold: Fold::None }
    }

    pub(in crate::query) fn wildcard(wildcard: Wildcard) -> Self {
        Self { kind: Kind::Wildcard(wildcard), fold: Fold::None }
    }

    pub(in crate::query) fn fuzzy(word: FuzzyWord) -> Self {
        Self { kind: Kind::Fuzzy(word), fold: Fold::None }
    }

    pub(in crate::query) fn regex(regex: WordRegex) -> Self {
        Self { kind: Kind::Regex(regex), fold: Fold::None }
    }

    /// Returns the same pattern for words of any case.
    pub(in crate::query) fn of_any_case(&self) -> Result<Self, RegexFault> {
        let fold = Fold::Case;
        let kind = match &self.kind {
            Kind::Exact(word) => Kind::Exact(fold.text(word).into_owned()),
            Kind::Wildcard(wildcard) => {
                Kind::Wildcard(Wildcard::new(wildcard.pieces().flat_map(folded_piece)))
            }
            Kind::Fuzzy(fuzzy) => Kind::Fuzzy(FuzzyWord {
                word: fold.text(&fuzzy.word).into_owned(),
                ..fuzzy.clone()
            }),
            Kind::Regex(regex) => Kind::Regex(WordRegex::for_any_case(regex.source())?),
        };
        Ok(Self { kind, fold })
    }

    /// Returns the memory of the compiled form of a regular expression, in bytes.
    pub(in crate::query) fn compiled_bytes(&self) -> usize {
        match &self.kind {
            Kind::Regex(regex) => regex.len_bytes(),
            _ => 0,
        }
    }

    /// Returns the word, if the pattern is one.
    pub fn as_word(&self) -> Option<&str> {
        match (&self.kind, self.fold) {
            (Kind::Exact(word), Fold::None) => Some(word),
            _ => None,
        }
    }

    /// Returns true if the pattern matches all of `word`.
    pub fn matches(&self, word: &str) -> bool {
        match (&self.kind, self.fold) {
            (Kind::Exact(expected), Fold::None) => expected == word,
            (Kind::Exact(expected), Fold::Case) => match word.is_ascii() {
                true => expected.eq_ignore_ascii_case(word),
                false => *expected == self.fold.text(word),
            },
            (Kind::Wildcard(wildcard), Fold::None) => wildcard.matches(word),
            (Kind::Wildcard(wildcard), Fold::Case) => wildcard.matches(&open_folded(word)),
            (Kind::Fuzzy(fuzzy), fold) => fuzzy.matches(&fold.text(word)),
            (Kind::Regex(regex), _) => regex.matches(word),
        }
    }

    /// Returns the words of `dictionary` that match.
    pub(in crate::query) fn find(&self, dictionary: &Dictionary) -> WordSet {
        match (&self.kind, self.fold) {
            (Kind::Exact(word), Fold::None) => {
                let id = dictionary.word_id(word.as_bytes());
                id.map_or(WordSet::default(), |id| WordSet::from_ids(&[id.into()]))
            }
            (Kind::Wildcard(wildcard), Fold::None) => wildcard.find(dictionary),
            (Kind::Fuzzy(fuzzy), Fold::None) => fuzzy.find(dictionary),
            (Kind::Regex(regex), _) => regex.find(dictionary),
            (Kind::Exact(_) | Kind::Wildcard(_) | Kind::Fuzzy(_), Fold::Case) => {
                let fits = |id: u32| self.matches(dictionary.word(id.into()));
                WordSet::from_ids(&filtered(0..dictionary.num_words(), fits))
            }
        }
    }
}

/// Returns the lower case of `word`, with each final sigma replaced by a sigma. The choice between
/// the two depends on the next character, and a wildcard does not determine that.
fn open_folded(word: &str) -> Cow<'_, str> {
    match Fold::Case.text(word) {
        folded if folded.contains(FINAL_SIGMA) => folded.replace(FINAL_SIGMA, SIGMA).into(),
        folded => folded,
    }
}

const FINAL_SIGMA: char = '\u{3c2}';
const SIGMA: &str = "\u{3c3}";

/// Returns the pieces of [`open_folded`] words for a piece of a wildcard, one or more.
fn folded_piece(piece: PatternChar) -> Vec<PatternChar> {
    match piece {
        PatternChar::Literal(character) => {
            open_folded(&character.to_string()).chars().map(PatternChar::Literal).collect()
        }
        other => vec![other],
    }
}

/// Returns true if `character` has a special meaning that a backslash before it removes.
pub(in crate::query) fn is_special(character: char) -> bool {
    matches!(character, '*' | '?' | '/' | '\\' | '~')
}

impl fmt::Display for WordPattern {
    /// Writes the pattern in the syntax of a query, without doubling quotes.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Exact(word) => word.chars().try_for_each(|c| write_escaped(formatter, c)),
            Kind::Wildcard(wildcard) => wildcard.pieces().try_for_each(|piece| match piece {
                PatternChar::Literal(character) => write_escaped(formatter, character),
                PatternChar::One => formatter.write_char('?'),
                PatternChar::Many => formatter.write_char('*'),
            }),
            Kind::Fuzzy(fuzzy) => {
                fuzzy.word.chars().try_for_each(|c| write_escaped(formatter, c))?;
                write!(formatter, "~{}", fuzzy.max_distance)
            }
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
