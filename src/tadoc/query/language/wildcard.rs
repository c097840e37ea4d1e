//! Wildcards over one word: `*` matches any characters or none, `?` matches one.
//!
//! ```text
//! p?wer*s     |p?wer| * |s|     parts between the stars: the first is at the start of a word, the
//!                               last at its end, those between follow each other
//! ```
//!
//! The dictionary is in byte order, so the literal before the first wildcard narrows the search to
//! a range of words; for `pow*` this range is the result. In other cases a search over the bytes of
//! the dictionary finds the words that contain the longest literal, and only these are tested.
//! Cost: O(log V) for a prefix, else O(bytes of the range).

use crate::text::Dictionary;

use crate::query::matching::dictionary_search::{filtered, tokens_containing};
use crate::query::matching::word_set::WordSet;

/// One character of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) enum PatternChar {
    /// The given character.
    Literal(char),
    /// Any one character.
    One,
    /// Any characters, or none.
    Many,
}

/// A pattern with at least one wildcard.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::query) struct Wildcard {
    /// Parts between the stars, one or more; `None` is any character.
    parts: Vec<Vec<Option<char>>>,
}

impl Wildcard {
    pub fn new(pieces: impl IntoIterator<Item = PatternChar>) -> Self {
        let mut parts = vec![Vec::new()];
        for piece in pieces {
            let last = parts.len() - 1;
            match piece {
                PatternChar::Literal(character) => parts[last].push(Some(character)),
                PatternChar::One => parts[last].push(None),
                // Several stars in a row count as one.
                PatternChar::Many if last > 0 && parts[last].is_empty() => {}
                PatternChar::Many => parts.push(Vec::new()),
            }
        }
        Self { parts }
    }

    /// Returns the pattern, character by character.
    pub fn pieces(&self) -> impl Iterator<Item = PatternChar> + '_ {
        self.parts.iter().enumerate().flat_map(|(idx, part)| {
            let characters = part.iter().map(|c| c.map_or(PatternChar::One, PatternChar::Literal));
            (idx > 0).then_some(PatternChar::Many).into_iter().chain(characters)
        })
    }

    /// Returns true if the pattern matches all of `word`.
    pub fn matches(&self, word: &str) -> bool {
        let Some((first, others)) = self.parts.split_first() else { return false };
        let Some(mut rest) = after(word, first) else { return false };
        let Some((last, between)) = others.split_last() else { return rest.is_empty() };
        for part in between {
            let mut starts = rest.char_indices().map(|(at, _)| &rest[at..]);
            match starts.find_map(|text| after(text, part)) {
                Some(found) => rest = found,
                None => return false,
            }
        }
        let end = match last.len() {
            0 => return true,
            num_chars => rest.char_indices().rev().nth(num_chars - 1),
        };
        end.is_some_and(|(at, _)| after(&rest[at..], last).is_some())
    }

    /// Returns the words of `dictionary` that match.
    pub fn find(&self, dictionary: &Dictionary) -> WordSet {
        let prefix: String = self.parts[0].iter().map_while(|&character| character).collect();
        let ids = dictionary.words_with_prefix(prefix.as_bytes());
        let is_prefix = self.parts.len() == 2
            && self.parts[1].is_empty()
            && prefix.chars().count() == self.parts[0].len();
        if is_prefix {
            return WordSet::from_range(ids);
        }
        let needle = self.longest_literal();
        let fits = |id: u32| self.matches(dictionary.word(id.into()));
        if needle.len() <= prefix.len() {
            return WordSet::from_ids(&filtered(ids, fits));
        }
        let mut holding = tokens_containing(dictionary, ids, needle.as_bytes());
        holding.retain(|&id| fits(id));
        WordSet::from_ids(&holding)
    }

    fn longest_literal(&self) -> String {
        let literals = self.parts.iter().flat_map(|part| part.split(|c| c.is_none()));
        let text = |literal: &[Option<char>]| literal.iter().copied().flatten().collect::<String>();
        literals.map(text).max_by_key(String::len).unwrap_or_default()
    }
}

/// Returns the rest of `text` after `part`, if `text` starts with it.
fn after<'t>(text: &'t str, part: &[Option<char>]) -> Option<&'t str> {
    let mut characters = text.chars();
    for &expected in part {
        let character = characters.next()?;
        if expected.is_some_and(|expected| expected != character) {
            return None;
        }
    }
    Some(characters.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wildcard(pattern: &str) -> Wildcard {
        Wildcard::new(pattern.chars().map(|character| match character {
            '*' => PatternChar::Many,
            '?' => PatternChar::One,
            other => PatternChar::Literal(other),
        }))
    }

    /// Evaluates the definition, character by character.
    fn fits(pattern: &[char], word: &[char]) -> bool {
        match (pattern.split_first(), word.split_first()) {
            (None, None) => true,
            (Some((&'*', rest)), _) => {
                fits(rest, word) || !word.is_empty() && fits(pattern, &word[1..])
            }
            (Some((&expected, rest)), Some((&character, after))) => {
                (expected == '?' || expected == character) && fits(rest, after)
            }
            _ => false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn finds_the_words_of_the_definition(
            words in prop::collection::btree_set("[abé]{1,6}", 0..40),
            pattern in "[abé*?]{1,6}",
        ) {
            let mut offsets = vec![0];
            words.iter().for_each(|word| offsets.push(offsets[offsets.len() - 1] + word.len() as u32));
            let arena: String = words.iter().map(String::as_str).collect();
            let num_words = words.len() as u32;
            let dictionary = Dictionary::from_parts(num_words, offsets, arena.into()).unwrap();
            let characters: Vec<char> = pattern.chars().collect();
            let slow: Vec<u32> = (0..num_words)
                .zip(&words)
                .filter(|(_, word)| fits(&characters, &word.chars().collect::<Vec<_>>()))
                .map(|(id, _)| id)
                .collect();
            let found = wildcard(&pattern).find(&dictionary);
            prop_assert_eq!(found.ids().collect::<Vec<_>>(), slow);
        }
    }
}
