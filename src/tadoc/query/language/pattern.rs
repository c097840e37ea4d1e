//! Pattern of one word of a phrase: a word, a word with edits, a wildcard or a regular expression.
//!
//! A folded word is found by all words at the first question of a dictionary and a fold: O(bytes of the words), a few
//! milliseconds for a million words in lower case, ten times as long for stems. Later questions take an index
//! ([`Dictionary::words_folded_to`]). A folded wildcard always reads all words. A regular expression matches any case
//! by itself, and only the words that begin like it are read; under other folds it reads all words as well.
//!
//! ```text
//! pattern              compared with
//! word                 the word in any of its spellings, or the folded word, after the same fold
//! wildcard, edits      the word after `case` and `accents`; a stem does not count
//! regular expression   the word as it is (`case` alone), or the folded word (with `accents` or a stem)
//! ```
//!
//! # Wildcards
//!
//! `*` matches any characters or none, `?` matches one.
//!
//! ```text
//! p?wer*s     |p?wer| * |s|     parts between the stars: the first is at the start of a word, the
//!                               last at its end, those between follow each other
//! ```
//!
//! The dictionary is in byte order, so the literal before the first wildcard narrows the search to a range of words;
//! for `pow*` this range is the result. In other cases a search over the bytes of the dictionary finds the words that
//! contain the longest literal, and only these are tested. Cost: O(log V) for a prefix, else O(bytes of the range).
//!
//! # Edits
//!
//! One edit inserts, removes or replaces a character, or swaps two neighbours. A character is edited once (optimal
//! string alignment): `ca` and `abc` are at distance 3. A Levenshtein automaton (Schulz and Mihov 2002) reads each word
//! of the dictionary until no word that begins so can match: a few nanoseconds a word.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::LazyLock;

use levenshtein_automata::{Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use rayon::prelude::*;

use crate::query::matching::sets::{WordSet, filtered, tokens_containing};
use crate::text::{Dictionary, Fold, composed, is_folded_to, spellings};

use super::regex::{RegexFault, WordRegex};

/// A condition on one word of a phrase.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WordPattern {
    kind: Kind,
    /// Fold that `kind` has already and that words need before the comparison.
    fold: Fold,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind {
    /// Spellings of one word, the first asked one first. A folded word has one.
    Exact(Vec<String>),
    Wildcard(Wildcard),
    Fuzzy(FuzzyWord),
    Regex(WordRegex),
}

impl WordPattern {
    pub(in crate::query) fn exact(word: String) -> Self {
        Self { kind: Kind::Exact(spellings(word)), fold: Fold::NONE }
    }

    pub(in crate::query) fn wildcard(wildcard: Wildcard) -> Self {
        Self { kind: Kind::Wildcard(wildcard), fold: Fold::NONE }
    }

    /// Returns the wildcard, if it is one.
    pub(in crate::query) fn as_wildcard(&self) -> Option<&Wildcard> {
        match &self.kind {
            Kind::Wildcard(wildcard) => Some(wildcard),
            _ => None,
        }
    }

    pub(in crate::query) fn fuzzy(word: FuzzyWord) -> Self {
        Self { kind: Kind::Fuzzy(word), fold: Fold::NONE }
    }

    pub(in crate::query) fn regex(regex: WordRegex) -> Self {
        Self { kind: Kind::Regex(regex), fold: Fold::NONE }
    }

    /// Returns the same pattern for words that match after `fold`. Only a word has synonyms, and
    /// only a word and a regular expression have stems.
    pub(in crate::query) fn folded(&self, fold: &Fold) -> Result<Self, RegexFault> {
        let (kind, fold) = match &self.kind {
            Kind::Exact(words) => {
                let folded = words.first().map(|word| fold.text(word).into_owned());
                (Kind::Exact(folded.into_iter().collect()), fold.clone())
            }
            Kind::Wildcard(wildcard) => (Kind::Wildcard(folded_wildcard(wildcard, fold)), fold.plain()),
            Kind::Regex(regex) => {
                let regex = if fold.ignores_case() { WordRegex::for_any_case(regex.source())? } else { regex.clone() };
                (Kind::Regex(regex), fold.without_synonyms())
            }
            Kind::Fuzzy(fuzzy) => {
                let word = fold.plain().text(&fuzzy.word).into_owned();
                (Kind::Fuzzy(FuzzyWord { word, ..fuzzy.clone() }), fold.plain())
            }
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

    /// Returns the spellings of the word, the first asked one first, if the pattern is a word without a fold.
    pub fn as_spellings(&self) -> Option<&[String]> {
        match (&self.kind, &self.fold) {
            (Kind::Exact(words), &Fold::NONE) => Some(words),
            _ => None,
        }
    }

    /// Returns the pattern for words that begin as this one; `None` for edits and regular
    /// expressions.
    pub(in crate::query) fn prefix(&self) -> Option<Self> {
        let pieces: Vec<PatternChar> = match &self.kind {
            Kind::Exact(words) => words.first()?.chars().map(PatternChar::Literal).collect(),
            Kind::Wildcard(wildcard) => wildcard.pieces().collect(),
            Kind::Fuzzy(_) | Kind::Regex(_) => return None,
        };
        let wildcard = Wildcard::new(pieces.into_iter().chain([PatternChar::Many]));
        Some(Self { kind: Kind::Wildcard(wildcard), fold: self.fold.clone() })
    }

    /// Returns true if the pattern matches all of `word`.
    pub fn matches(&self, word: &str) -> bool {
        match (&self.kind, &self.fold) {
            (Kind::Exact(words), &Fold::NONE) => words.iter().any(|expected| expected == word),
            (Kind::Exact(words), fold) => words.iter().any(|expected| is_folded_to(fold, word, expected)),
            (Kind::Wildcard(wildcard), fold) => wildcard.matches(&open_folded(word, fold)),
            (Kind::Fuzzy(fuzzy), fold) => fuzzy.matches(&fold.text(word)),
            (Kind::Regex(regex), &Fold::CASE) => regex.matches(word),
            (Kind::Regex(regex), fold) => regex.matches(&fold.text(word)),
        }
    }

    /// Returns the words of `dictionary` that match.
    pub(in crate::query) fn find(&self, dictionary: &Dictionary) -> WordSet {
        match (&self.kind, &self.fold) {
            (Kind::Exact(words), &Fold::NONE) => {
                let found = words.iter().filter_map(|word| dictionary.word_id(word.as_bytes()));
                let mut ids: Vec<u32> = found.map(u32::from).collect();
                ids.sort_unstable();
                WordSet::from_ids(&ids)
            }
            (Kind::Exact(words), fold) => words
                .first()
                .map_or(WordSet::default(), |word| WordSet::from_ids(&dictionary.words_folded_to(fold, word))),
            (Kind::Wildcard(wildcard), &Fold::NONE) => wildcard.find(dictionary),
            (Kind::Fuzzy(fuzzy), &Fold::NONE) => fuzzy.find(dictionary),
            (Kind::Regex(regex), &(Fold::NONE | Fold::CASE)) => regex.find(dictionary),
            _ => {
                let fits = |id: u32| self.matches(dictionary.word(id.into()));
                WordSet::from_ids(&filtered(0..dictionary.num_words(), fits))
            }
        }
    }
}

/// Gives all words of `items` that are one word in several spellings the spellings of each, so that they are equal.
/// Returns true if there may be such words.
pub(in crate::query) fn join_spellings(items: &mut [Vec<WordPattern>]) -> bool {
    let words = items.iter().flatten().filter_map(WordPattern::as_spellings);
    if words.clone().all(|spellings| spellings.len() == 1) {
        return false;
    }
    let mut joined: HashMap<String, Vec<String>> = HashMap::new();
    for spelling in words.flatten() {
        let all = joined.entry(composed(spelling)).or_default();
        if !all.contains(spelling) {
            all.push(spelling.clone());
        }
    }
    for word in items.iter_mut().flatten() {
        let Some([spelling, ..]) = word.as_spellings() else { continue };
        if let Some(all) = joined.get(&composed(spelling)) {
            word.kind = Kind::Exact(all.clone());
        }
    }
    true
}

/// Returns `word` after `fold`, which is plain. Each final sigma is a sigma: the choice between the
/// two depends on the next character, and a wildcard does not determine that.
fn open_folded<'w>(word: &'w str, fold: &Fold) -> Cow<'w, str> {
    match fold.text(word) {
        folded if fold.ignores_case() && folded.contains(FINAL_SIGMA) => {
            folded.chars().map(open_sigma).collect::<String>().into()
        }
        folded => folded,
    }
}

const FINAL_SIGMA: char = '\u{3c2}';

fn open_sigma(character: char) -> char {
    if character == FINAL_SIGMA { '\u{3c3}' } else { character }
}

/// Returns the wildcard for [`open_folded`] words. Its characters are folded one by one, after letters and marks in a
/// row are composed. It also loses the underscores at its ends, as words do.
fn folded_wildcard(wildcard: &Wildcard, fold: &Fold) -> Wildcard {
    let mut pieces: Vec<PatternChar> = usually_spelled(wildcard).flat_map(|piece| folded_piece(piece, fold)).collect();
    if fold.drops_underscores() {
        let is_kept = |piece: &PatternChar| *piece != PatternChar::Literal('_');
        pieces.truncate(pieces.iter().rposition(is_kept).map_or(0, |last| last + 1));
        pieces.drain(..pieces.iter().position(is_kept).unwrap_or(0));
    }
    Wildcard::new(pieces)
}

/// Returns the pieces of `wildcard` with the usual spelling of the parts between its wildcards.
fn usually_spelled(wildcard: &Wildcard) -> impl Iterator<Item = PatternChar> {
    let pieces: Vec<PatternChar> = wildcard.pieces().collect();
    let is_literal = |piece: &PatternChar| matches!(piece, PatternChar::Literal(_));
    let mut spelled = Vec::with_capacity(pieces.len());
    for run in pieces.chunk_by(|one, next| is_literal(one) && is_literal(next)) {
        let literals = run.iter().filter_map(|piece| match piece {
            PatternChar::Literal(character) => Some(*character),
            PatternChar::One | PatternChar::Many => None,
        });
        let text: String = literals.collect();
        spelled.extend(run.iter().filter(|piece| !is_literal(piece)));
        spelled.extend(Fold::usual_spelling(&text).chars().map(PatternChar::Literal));
    }
    spelled.into_iter()
}

/// Returns the pieces of [`open_folded`] words for a piece of a wildcard: none for an accent that
/// stands alone.
fn folded_piece(piece: PatternChar, fold: &Fold) -> Vec<PatternChar> {
    match piece {
        PatternChar::Literal(character) => {
            let folded = fold.character(character);
            let open = |c| if fold.ignores_case() { open_sigma(c) } else { c };
            folded.chars().map(|c| PatternChar::Literal(open(c))).collect()
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
            Kind::Exact(words) => words.iter().take(1).try_for_each(|word| write_word(formatter, word)),
            Kind::Wildcard(wildcard) => wildcard.pieces().try_for_each(|piece| match piece {
                PatternChar::Literal(character) => write_escaped(formatter, character),
                PatternChar::One => formatter.write_char('?'),
                PatternChar::Many => formatter.write_char('*'),
            }),
            Kind::Fuzzy(fuzzy) => {
                write_word(formatter, &fuzzy.word)?;
                write!(formatter, "~{}", fuzzy.max_distance)
            }
            Kind::Regex(regex) => write!(formatter, "/{}/", regex.source()),
        }
    }
}

/// Returns `text` with a backslash before each special character.
pub(in crate::query) fn escaped(text: &str) -> String {
    let escape = |c: char| is_special(c).then_some('\\').into_iter().chain([c]);
    text.chars().flat_map(escape).collect()
}

fn write_word(formatter: &mut fmt::Formatter<'_>, word: &str) -> fmt::Result {
    word.chars().try_for_each(|c| write_escaped(formatter, c))
}

fn write_escaped(formatter: &mut fmt::Formatter<'_>, character: char) -> fmt::Result {
    if is_special(character) {
        formatter.write_char('\\')?;
    }
    formatter.write_char(character)
}

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
        let is_prefix =
            self.parts.len() == 2 && self.parts[1].is_empty() && prefix.chars().count() == self.parts[0].len();
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

/// Largest edit distance.
pub(in crate::query) const MAX_DISTANCE: u8 = 2;
/// Most characters of a word that is compared with edits. The automaton grows with them.
pub(in crate::query) const MAX_CHARS: usize = 256;
/// Number of words that one task tests.
const WORDS_PER_TASK: usize = 1 << 12;

/// Builders of automata for distances 1 and 2. To make one takes milliseconds.
static BUILDERS: [LazyLock<LevenshteinAutomatonBuilder>; MAX_DISTANCE as usize] = [
    LazyLock::new(|| LevenshteinAutomatonBuilder::new(1, true)),
    LazyLock::new(|| LevenshteinAutomatonBuilder::new(2, true)),
];

/// A word, and the most edits by which others may differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::query) struct FuzzyWord {
    pub word: String,
    pub max_distance: u8,
}

impl FuzzyWord {
    /// Returns true if `word` differs by at most the distance.
    pub fn matches(&self, word: &str) -> bool {
        let (from, to): (Vec<char>, Vec<char>) = (self.word.chars().collect(), word.chars().collect());
        from.len().abs_diff(to.len()) <= usize::from(self.max_distance)
            && distance(&from, &to) <= usize::from(self.max_distance)
    }

    /// Returns the words of `dictionary` that match.
    pub fn find(&self, dictionary: &Dictionary) -> WordSet {
        let builder = &BUILDERS[usize::from(self.max_distance.clamp(1, MAX_DISTANCE) - 1)];
        let automaton = builder.build_dfa(&self.word);
        let fits = |id: &u32| {
            let mut state = automaton.initial_state();
            for &byte in dictionary.word((*id).into()).as_bytes() {
                state = automaton.transition(state, byte);
                if state == SINK_STATE {
                    return false;
                }
            }
            matches!(automaton.distance(state), Distance::Exact(_))
        };
        let words = (0..dictionary.num_words()).into_par_iter().with_min_len(WORDS_PER_TASK);
        WordSet::from_ids(&words.filter(fits).collect::<Vec<_>>())
    }
}

/// Returns the number of edits between two words.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut above: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, &character) in from.iter().enumerate() {
        let before = std::mem::replace(&mut above, row);
        row = vec![i + 1];
        for (j, &other) in to.iter().enumerate() {
            let replaced = above[j] + usize::from(character != other);
            let mut least = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && character == to[j - 1] && from[i - 1] == other {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::{Regex, escape};

    use crate::query::Query;
    use crate::text::TokenizerProfile;

    use super::*;

    /// Returns the only pattern of `text` after `fold`.
    fn pattern(text: &str, fold: &Fold) -> WordPattern {
        let query = Query::parse(TokenizerProfile::Whitespace, text).unwrap();
        query.items()[0][0].folded(fold).unwrap()
    }

    #[test]
    fn patterns_fit_folded_words() {
        for (fold, text, word, fits) in [
            ("accents", "château", "_chateau_", true),
            ("accents", "château", "Château", false),
            ("case,accents", "_CHATEAU", "château", true),
            ("case,accents", "strasse", "Straße", true),
            ("accents", "ch?t*", "château", true),
            ("accents", "_châ*", "_chateau_", true),
            ("accents", "*_", "chateau", true),
            ("accents", "*e\u{301}", "café", true),
            ("accents", "CAF*", "café", false),
            ("case,accents", "stra??e", "STRAßE", true),
            ("case,accents", "ά*Σ", "ΑΣΑς", true),
            ("accents", "ας*", "ΑΣΑ", false),
            ("accents", "/ch.t.*/", "château", true),
            ("accents", "/château/", "château", false),
            ("accents", "/CH.*/", "château", false),
            ("case,accents", "/CH.*/", "_château_", true),
            ("stem:english", "connected", "CONNECTIONS", true),
            ("stem:english", "connect*", "Connections", true),
            ("stem:english", "connects*", "Connections", false),
            ("stem:english", "/connect/", "Connections", true),
            ("stem:english", "/connections/", "Connections", false),
            ("accents,stem:german", "HAUS", "Häuser", true),
            ("accents,stem:german", "hauser*", "Häuser", true),
            ("stem:german", "hauser*", "Häuser", false),
        ] {
            let found = pattern(text, &fold.parse().unwrap()).matches(word);
            assert_eq!(found, fits, "{fold} {text} {word}");
        }
    }

    /// Returns `text` with every final sigma as a sigma, if case is folded.
    fn open(text: &str, fold: &Fold) -> String {
        if fold.ignores_case() { text.replace('ς', "σ") } else { text.to_owned() }
    }

    /// Returns the wildcard `text` as a regular expression over words after a fold.
    fn plainly(text: &str, fold: &Fold) -> Regex {
        let piece = |character: char| match character {
            '*' => ".*".to_owned(),
            '?' => ".".to_owned(),
            other => escape(&open(&fold.character(other), fold)),
        };
        let pieces: String = text.chars().map(piece).collect();
        let pieces = if fold.drops_underscores() { pieces.trim_matches('_') } else { &pieces };
        Regex::new(&format!("^(?s:{pieces})$")).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn finds_the_words_whose_folded_form_fits(
            words in prop::collection::btree_set("[_aAéÉßsσΣς]{1,3}(ing|s|ed)?", 0..40),
            text in "[_aAéÉßsσΣς*?]{1,4}(ing|s)?|/[aé.]{1,3}(ing)?/",
            fold in prop::sample::select(
                &["case", "accents", "case,accents", "stem:english", "accents,stem:english"][..]
            ),
        ) {
            let fold: Fold = fold.parse().unwrap();
            let mut offsets = vec![0];
            words.iter().for_each(|word| offsets.push(offsets[offsets.len() - 1] + word.len() as u32));
            let arena: String = words.iter().map(String::as_str).collect();
            let dictionary = Dictionary::from_parts(words.len() as u32, offsets, arena.into()).unwrap();
            let fits = |word: &str| {
                match text.strip_prefix('/').and_then(|text| text.strip_suffix('/')) {
                    Some(source) => {
                        let case = if fold.ignores_case() { "(?i)" } else { "" };
                        let regex = Regex::new(&format!("^{case}(?:{source})$")).unwrap();
                        let from_word = if fold == Fold::CASE { Fold::NONE } else { fold.clone() };
                        regex.is_match(&from_word.text(word))
                    }
                    None if text.contains(['*', '?']) => {
                        plainly(&text, &fold).is_match(&open(&fold.plain().text(word), &fold))
                    }
                    None => fold.text(&text) == fold.text(word),
                }
            };
            let slow = (0..words.len() as u32).zip(&words).filter(|(_, word)| fits(word));
            let slow: Vec<u32> = slow.map(|(id, _)| id).collect();
            let found = pattern(&text, &fold).find(&dictionary);
            prop_assert_eq!(found.ids().collect::<Vec<_>>(), slow, "{} {}", fold, text);
        }
    }

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
            (Some((&'*', rest)), _) => fits(rest, word) || !word.is_empty() && fits(pattern, &word[1..]),
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

    #[test]
    fn edits_are_counted() {
        let cases = [("", "ab", 2), ("kitten", "sitting", 3), ("form", "from", 1), ("ca", "abc", 3), ("é", "e", 1)];
        for (from, to, expected) in cases {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            assert_eq!(distance(&chars(from), &chars(to)), expected, "{from} {to}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_automaton_finds_the_words_of_the_definition(
            words in prop::collection::btree_set("[abcé]{1,6}", 0..40),
            word in "[abcé]{1,6}",
            max_distance in 1u8..=2,
        ) {
            let mut offsets = vec![0];
            words.iter().for_each(|word| offsets.push(offsets[offsets.len() - 1] + word.len() as u32));
            let arena: String = words.iter().map(String::as_str).collect();
            let num_words = words.len() as u32;
            let dictionary = Dictionary::from_parts(num_words, offsets, arena.into()).unwrap();
            let fuzzy = FuzzyWord { word, max_distance };
            let slow: Vec<u32> = (0..num_words)
                .zip(&words)
                .filter(|(_, word)| fuzzy.matches(word))
                .map(|(id, _)| id)
                .collect();
            prop_assert_eq!(fuzzy.find(&dictionary).ids().collect::<Vec<_>>(), slow);
        }
    }
}
