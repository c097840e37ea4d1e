//! Folds: rules that make different words count as equal. A query chooses them, and nothing of them is stored.
//!
//! ```text
//!                      Häuser     _Straße    ΣΑΣ     mangées
//! case                 häuser     straße     σας     mangées      Unicode lower case, no underscores around
//! accents              Hauser     Strasse    ΣΑΣ     mangees      base letters, no underscores around
//! case,accents         hauser     strasse    σας     mangees
//! stem:german          haus       strass     σας     mangé        Snowball's stem of the lower case
//! accents,stem:french  haus       strass     σας     mang         the stem, then its base letters
//! synonyms             Häuser     Weg        ΣΑΣ     mangées      with a row (_Straße, Weg)
//! ```
//!
//! Each word is folded alone. Every fold also joins the spellings of a word: composed and decomposed letters,
//! apostrophes, soft hyphens. Lower case is that of [`str::to_lowercase`]: `İ` becomes `i` and a dot above, `ß` is
//! unchanged. Underscores around a word mark italics in plain texts, such as `_word_`; `case` and `accents` drop them,
//! unless nothing would be left. `accents` has the rules for base letters. The text of a [`Fold`] is a list of its
//! parts in normal form, such as `accents,stem:german`.
//!
//! A stem implies `case`, because the stemmers read lower case. With `accents`, the word is stemmed as it is spelled
//! and the accents of the stem are dropped, because the endings of many languages have accents: the stem of `mangées`
//! is that of `manger`, the stem of `mangees` is not. So words that `stem` joins stay joined, and a word without its
//! accents has the same stem mostly, not always (`très` and `tres`).
//!
//! [`Synonyms`] come last: they read the word as the other parts fold it.
//!
//! O(bytes) of a word. A word of ASCII that needs no work is borrowed. Stemmers read words of at
//! most [`MAX_STEMMED_BYTES`] only, because some of them take quadratic time.
//!
//! # Spellings
//!
//! ```text
//! don’t            don't            one of several apostrophes
//! cafe^            café             a letter and its mark, or one character (NFD and NFC)
//! Zei·tung         Zeitung          · is a soft hyphen or another mark that nobody sees
//! ```
//!
//! Each fold compares the usual spelling of words. A word without a fold is found by its spellings with
//! composed or decomposed letters and with each apostrophe. Marks that nobody sees are dropped by folds only.
//!
//! # Languages
//!
//! The algorithms of Snowball, as the crate `frostem` has them.

mod tables;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use frostem::{Algorithm, Stemmer};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::error::{Error, Result};
use crate::text::unspaced::is_invisible;

pub use tables::Synonyms;

/// Length of the longest word that is stemmed, in bytes. A longer one counts as its own stem.
const MAX_STEMMED_BYTES: usize = 256;

/// Rule by which words count as equal: none, or one or more of `case`, `accents`, a stem and
/// synonyms.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Fold {
    /// True if words are compared in lower case. Always true if there is a stem.
    case: bool,
    accents: bool,
    stem: Option<Language>,
    synonyms: Option<Arc<Synonyms>>,
}

impl Fold {
    /// Every word counts as itself.
    pub const NONE: Self = Self { case: false, accents: false, stem: None, synonyms: None };
    /// Words with the same Unicode lower case count as equal.
    pub const CASE: Self = Self { case: true, ..Self::NONE };
    /// Words with the same base letters count as equal.
    pub const ACCENTS: Self = Self { accents: true, ..Self::NONE };

    /// Returns the fold by which words with the same stem count as equal.
    pub const fn with_stem(language: Language) -> Self {
        Self { stem: Some(language), ..Self::CASE }
    }

    /// Returns true if words are compared in lower case.
    pub(crate) const fn ignores_case(&self) -> bool {
        self.case
    }

    /// Returns true if words are compared without the underscores around them.
    pub(crate) const fn drops_underscores(&self) -> bool {
        self.case || self.accents
    }

    /// Returns the same fold without its stem and its synonyms. It folds the characters of a word
    /// one by one, but for the final sigma and the underscores around a word.
    pub const fn plain(&self) -> Self {
        Self { case: self.case, accents: self.accents, ..Self::NONE }
    }

    /// Returns the fold of this one and `other`. A stem and synonyms of `other` have priority.
    pub fn and(self, other: Self) -> Self {
        Self {
            case: self.case || other.case,
            accents: self.accents || other.accents,
            stem: other.stem.or(self.stem),
            synonyms: other.synonyms.or(self.synonyms),
        }
    }

    /// Returns true if each word of ASCII letters, digits and underscores that begins with a letter
    /// or digit becomes a text that begins with it, in either case.
    pub(crate) fn keeps_first_byte(&self) -> bool {
        self.synonyms.is_none() && self.stem.is_none_or(Language::keeps_first_byte)
    }

    /// Returns the same fold with synonyms. They are those of words as this fold leaves them.
    pub fn with_synonyms(self, synonyms: Synonyms) -> Self {
        Self { synonyms: Some(Arc::new(synonyms)), ..self }
    }

    /// Returns the same fold without synonyms.
    pub(crate) fn without_synonyms(&self) -> Self {
        Self { synonyms: None, ..self.clone() }
    }

    /// Returns the folded form of `word`. It is not empty unless `word` is.
    ///
    /// ```
    /// use tadoc::text::Fold;
    ///
    /// let fold: Fold = "accents,stem:german".parse()?;
    /// assert_eq!(fold.text("Häuser"), "haus");
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    pub fn text<'w>(&self, word: &'w str) -> Cow<'w, str> {
        let text = self.spelled(word);
        match self.synonyms.as_ref().and_then(|synonyms| synonyms.meaning(&text)) {
            Some(meaning) if *meaning != *text => Cow::Owned(meaning.to_owned()),
            _ => text,
        }
    }

    /// Returns the folded form of `word` before its synonyms.
    fn spelled<'w>(&self, word: &'w str) -> Cow<'w, str> {
        let mut text = Cow::Borrowed(word);
        let Some(language) = self.stem else {
            if self.accents {
                // Before, because underscores may stand behind a mark that nobody sees; behind, because letters have
                // apostrophes in their base.
                text = then(then(usual_word(word), tables::base), usual_word);
            }
            return if self.case { then(text, lower) } else { text };
        };
        if self.accents {
            text = then(usual_word(word), tables::composed);
        }
        text = then(text, lower);
        if text.len() <= MAX_STEMMED_BYTES {
            text = then(text, |text| language.stem(text));
        }
        if self.accents { then(text, tables::base) } else { text }
    }

    /// Returns the folded form of one character of a word, without the stem: none for a mark that
    /// is dropped. An underscore stays.
    pub(crate) fn character(&self, character: char) -> String {
        let text = if self.accents { tables::base_letters(&character.to_string()) } else { character.to_string() };
        let text = if self.case { text.to_lowercase() } else { text };
        usual_letters(&text)
    }

    /// Returns `word` without the underscores around it, or as it is if nothing else is in it.
    pub(crate) fn bare(word: &str) -> &str {
        tables::without_underscores(word)
    }

    /// Returns a part of a word in the usual spelling: composed, with the usual apostrophe, without marks that nobody
    /// sees.
    pub(crate) fn usual_spelling(part: &str) -> String {
        usual_letters(part)
    }
}

/// Returns `step` of `text`. A text that stays as it is keeps its memory.
fn then<'w>(text: Cow<'w, str>, step: impl for<'t> Fn(&'t str) -> Cow<'t, str>) -> Cow<'w, str> {
    match text {
        Cow::Borrowed(text) => step(text),
        Cow::Owned(text) => match step(&text) {
            Cow::Borrowed(same) if same.len() == text.len() => Cow::Owned(text),
            other => Cow::Owned(other.into_owned()),
        },
    }
}

/// Returns `text` in lower case and in the usual spelling, without the underscores around it.
fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(tables::without_underscores(text));
    }
    // The usual spelling comes first, too, because underscores may stand behind a mark that nobody sees.
    let seen = usual_word(text);
    let bare = tables::without_underscores(&seen);
    then(Cow::Owned(bare.to_lowercase()), usual_word)
}

impl fmt::Display for Fold {
    /// Writes the parts in the order `case`, `accents`, `stem:LANGUAGE`, `synonyms:TABLE`, or
    /// `none`. Beside a stem `case` is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let case = (self.case && self.stem.is_none()).then(|| "case".to_owned());
        let accents = self.accents.then(|| "accents".to_owned());
        let stem = self.stem.map(|language| format!("stem:{language}"));
        let synonyms = self.synonyms.as_ref().map(|table| format!("synonyms:{}", table.name()));
        let parts: Vec<String> = [case, accents, stem, synonyms].into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "none".into() } else { parts.join(",") }.as_str())
    }
}

impl FromStr for Fold {
    type Err = Error;

    /// Parses `none`, or parts with commas between them, in any order and case. Synonyms are no
    /// part of a text: [`with_synonyms`](Self::with_synonyms) adds them.
    fn from_str(text: &str) -> Result<Self> {
        if text.trim().eq_ignore_ascii_case("none") {
            return Ok(Self::NONE);
        }
        let mut fold = Self::NONE;
        for part in text.split(',') {
            let next = part_from(part.trim())?;
            if let (Some(one), Some(other)) = (fold.stem, next.stem)
                && one != other
            {
                return Err(refused(&format!("stem:{one} and stem:{other}"), "one stem"));
            }
            fold = fold.and(next);
        }
        Ok(fold)
    }
}

fn part_from(part: &str) -> Result<Fold> {
    match part.to_ascii_lowercase().as_str() {
        "case" => Ok(Fold::CASE),
        "accents" => Ok(Fold::ACCENTS),
        lower => match lower.split_once(':') {
            Some(("stem", name)) => name.parse().map(Fold::with_stem),
            Some(("synonyms", _)) => Err(refused(part, "synonyms:TABLE in table functions only, which read the table")),
            _ => Err(refused(
                part,
                "none, case, accents, stem:LANGUAGE, synonyms:TABLE, or several of them with commas \
                 between",
            )),
        },
    }
}

fn refused(got: &str, allowed: &str) -> Error {
    let got = match got.char_indices().nth(48) {
        Some((end, _)) => format!("'{}…'", &got[..end]),
        None => format!("'{got}'"),
    };
    Error::InvalidArgument { name: "fold", got, allowed: allowed.to_owned() }
}

/// A language, or one of several algorithms for it, such as `porter` beside `english`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Language(Algorithm);

impl Language {
    /// Returns all languages, ordered by name.
    pub fn all() -> impl Iterator<Item = Self> {
        Algorithm::all().iter().copied().map(Self)
    }

    /// Returns the name, in lower case.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Returns true if the stem of each word of ASCII letters, digits and underscores begins with
    /// the first byte of the word, unless that is an underscore. Some algorithms take prefixes
    /// away, or write letters in another way.
    fn keeps_first_byte(self) -> bool {
        !matches!(
            self.name(),
            "dutch" | "esperanto" | "indonesian" | "irish" | "lovins" | "serbian" | "sesotho" | "turkish"
        )
    }

    /// Returns the stem of `word`, which is in lower case, or `word` if nothing would be left of
    /// it.
    fn stem(self, word: &str) -> Cow<'_, str> {
        match Stemmer::new(self.0).stem(word) {
            stem if stem.is_empty() => Cow::Borrowed(word),
            stem => stem,
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Language {
    type Err = Error;

    /// Takes a name, or an alias that Snowball has for it, such as `en`.
    fn from_str(name: &str) -> Result<Self> {
        Algorithm::from_name(name).map(Self).map_err(|_| {
            let names: Vec<&str> = Self::all().map(Self::name).collect();
            let allowed = format!("stem:LANGUAGE with one of {}", names.join(", "));
            refused(&format!("stem:{name}"), &allowed)
        })
    }
}

/// Characters that are written for an apostrophe, the usual one first.
const APOSTROPHES: [char; 3] = ['\'', '\u{2019}', '\u{2bc}'];
/// The two joiners: marks without width that some letters need.
const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];

/// Returns the usual spelling of `word`: composed (NFC), with one kind of apostrophe, without marks
/// that nobody sees.
/// A word of such marks alone stays as it is.
fn usual_word(word: &str) -> Cow<'_, str> {
    if word.is_ascii() || is_usual(word) {
        return Cow::Borrowed(word);
    }
    match usual_letters(word) {
        letters if letters.is_empty() => Cow::Borrowed(word),
        letters => Cow::Owned(letters),
    }
}

/// Returns true if `word` is in the usual spelling as far as a look at each character tells.
fn is_usual(word: &str) -> bool {
    let is_written = |c: char| is_seen(c) && !APOSTROPHES[1..].contains(&c);
    word.chars().all(is_written) && is_nfc_quick(word.chars()) == IsNormalized::Yes
}

fn is_seen(c: char) -> bool {
    !is_invisible(c) && !JOINERS.contains(&c)
}

/// Returns `text` in the usual spelling. Nothing may be left.
fn usual_letters(text: &str) -> String {
    let letters = text.chars().filter(|c| is_seen(*c));
    letters.map(|c| if APOSTROPHES.contains(&c) { APOSTROPHES[0] } else { c }).nfc().collect()
}

/// Returns `word`, and its other spellings with composed or decomposed letters and with each apostrophe.
pub(crate) fn spellings(word: String) -> Vec<String> {
    let has_apostrophe = word.contains(APOSTROPHES);
    if word.is_ascii() && !has_apostrophe {
        return vec![word];
    }
    let mut all = vec![word.clone(), word.nfc().collect(), word.nfd().collect()];
    if has_apostrophe {
        let with = |form: &String, apostrophe: char| form.replace(APOSTROPHES, apostrophe.encode_utf8(&mut [0; 4]));
        let others: Vec<String> =
            all.iter().flat_map(|form| APOSTROPHES.map(|apostrophe| with(form, apostrophe))).collect();
        all.extend(others);
    }
    let mut distinct: Vec<String> = Vec::new();
    for form in all {
        if !distinct.contains(&form) {
            distinct.push(form);
        }
    }
    distinct
}

/// Returns the text that all [`spellings`] of `word` have in common: composed, with one kind of apostrophe.
pub(crate) fn composed(word: &str) -> String {
    word.replace(APOSTROPHES, "'").nfc().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;

    use super::*;

    fn fold(text: &str) -> Fold {
        text.parse().unwrap()
    }

    #[test]
    fn case_is_folded_beyond_ascii() {
        for (word, text) in [
            ("tea", "tea"),
            ("Tea_2", "tea_2"),
            ("É", "é"),
            ("ΣΑΣ", "σας"),
            ("İ", "i\u{307}"),
            ("ẞß", "ßß"),
            ("中文", "中文"),
            ("CAFE\u{301}", "café"),
            ("Don’t", "don't"),
            ("Zei\u{ad}tung", "zeitung"),
        ] {
            assert_eq!(Fold::CASE.text(word), text);
            assert_eq!(Fold::NONE.text(word), word);
        }
    }

    #[test]
    fn folds_combine() {
        for (name, word, text) in [
            ("accents", "_Straße", "Strasse"),
            ("case,accents", "_Straße", "strasse"),
            ("case,accents", "İ", "i"),
            ("case,accents", "℡", "tel"),
            ("case,accents", "ΆΣ", "ας"),
            ("stem:english", "Connections", "connect"),
            ("stem:german", "Häuser", "haus"),
            ("stem:german", "_Straße", "strass"),
            ("accents,stem:german", "_Straße", "strass"),
            ("case", "_Straße_", "straße"),
            ("case", "\u{ad}_É_\u{ad}", "é"),
            ("case", "__init__", "init"),
            ("case", "snake_Case", "snake_case"),
            ("case", "__", "__"),
            ("stem:french", "CHÂTEAUX", "château"),
            ("accents,stem:french", "Cha\u{302}teaux", "chateau"),
            ("accents,stem:french", "mangées", "mang"),
            ("stem:russian", "новый", "нов"),
            ("accents,stem:russian", "новый", "нов"),
            ("stem:english", "中文", "中文"),
        ] {
            assert_eq!(fold(name).text(word), text, "{name} {word}");
        }
    }

    #[test]
    fn texts_have_a_normal_form() {
        for (text, normal) in [
            ("none", "none"),
            (" None ", "none"),
            ("case", "case"),
            ("accents,CASE", "case,accents"),
            ("case, case", "case"),
            ("Stem:German", "stem:german"),
            ("stem:en,case", "stem:english"),
            ("stem:french , accents", "accents,stem:french"),
            ("stem:dutch_porter,stem:dutch_porter", "stem:dutch_porter"),
        ] {
            assert_eq!(fold(text).to_string(), normal);
            assert_eq!(fold(normal), fold(text));
        }
        for language in Language::all() {
            for one in [Fold::with_stem(language), Fold::with_stem(language).and(Fold::ACCENTS)] {
                assert_eq!(fold(&one.to_string()), one);
            }
        }
        assert_eq!(fold("accents").and(Fold::CASE), fold("case,accents"));
    }

    #[test]
    fn unknown_folds_are_refused() {
        for (text, expected) in [
            ("", "fold: got '', expected none, case, accents, stem:LANGUAGE, synonyms:TABLE"),
            ("case,synonyms:cars", "got 'synonyms:cars', expected synonyms:TABLE in table functions only"),
            ("case,", "got ''"),
            ("none,case", "got 'none'"),
            ("yes", "got 'yes'"),
            ("stem", "got 'stem'"),
            ("stem:", "got 'stem:', expected stem:LANGUAGE with one of arabic, armenian,"),
            ("stem:klingon", "got 'stem:klingon', expected stem:LANGUAGE"),
            ("stem:german,stem:dutch", "'stem:german and stem:dutch', expected one stem"),
        ] {
            let fault = text.parse::<Fold>().unwrap_err().to_string();
            assert!(fault.contains(expected), "{text}: {fault}");
        }
        assert!("x".repeat(10_000).parse::<Fold>().unwrap_err().to_string().len() < 300);
    }

    #[test]
    fn ascii_that_needs_no_work_is_borrowed() {
        for name in ["none", "case", "accents", "case,accents", "stem:english", "accents,stem:english"] {
            for word in ["tea", "tea_2"] {
                assert!(matches!(fold(name).text(word), Cow::Borrowed(_)), "{name} {word}");
            }
        }
        assert!(matches!(fold("accents").text("__Init__"), Cow::Borrowed("Init")));
    }

    /// Every character is folded as each of its cases is, and a folded character stays as it is.
    /// Only the two cases of the lunate sigma decompose to different sigmas.
    #[test]
    fn characters_of_any_case_and_accent_meet() {
        let both = fold("case,accents");
        for character in ('\u{1}'..=char::MAX).filter(|c| *c != 'Ϲ') {
            let word = character.to_string();
            let folded = both.text(&word).into_owned();
            assert_eq!(both.text(&folded), folded, "{character}");
            assert_eq!(Fold::CASE.text(&folded), folded, "{character}");
            assert_eq!(both.text(&Fold::CASE.text(&word)), folded, "{character}");
            if Fold::ACCENTS.text(&word) != word {
                assert_eq!(both.text(&Fold::ACCENTS.text(&word)), folded, "{character}");
            }
        }
    }

    #[test]
    fn long_words_count_as_their_own_stems() {
        let english = fold("stem:english");
        let word = |len: usize| "A".repeat(len - 3) + "ing";
        assert_eq!(english.text(&word(MAX_STEMMED_BYTES)).len(), MAX_STEMMED_BYTES - 3);
        let long = word(MAX_STEMMED_BYTES + 1);
        assert_eq!(english.text(&long), long.to_lowercase());
    }

    fn folds() -> impl Strategy<Value = Fold> {
        let languages: Vec<_> = Language::all().map(Some).chain([None; 8]).collect();
        let parts = (any::<bool>(), any::<bool>(), prop::sample::select(languages));
        parts.prop_map(|(case, accents, stem)| {
            let stem = stem.map_or(Fold::NONE, Fold::with_stem);
            let case = if case { Fold::CASE } else { Fold::NONE };
            stem.and(case).and(if accents { Fold::ACCENTS } else { Fold::NONE })
        })
    }

    /// Folds without any fast way.
    fn plainly(fold: &Fold, word: &str) -> String {
        let base = |text: &str| if fold.accents { tables::plainly(text) } else { text.to_owned() };
        let usual = |text: &str| usual_word(text).into_owned();
        let lower = |text: &str| usual(&Fold::bare(&usual(text)).to_lowercase());
        match fold.stem {
            None if fold.case && fold.accents => lower(&usual(&base(&usual(word)))),
            None if fold.case => lower(word),
            None if fold.accents => usual(&base(&usual(word))),
            None => word.to_owned(),
            Some(language) => {
                let spelled = usual(word);
                let spelled = if fold.accents { tables::composed(&spelled) } else { word.into() };
                base(&language.stem(&lower(&spelled)))
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn words_are_folded_as_the_plain_way_does(
            fold in folds(),
            word in "[_a-zA-Z0-9]{1,12}|[_a-zéÉßøŁσΣсЯйİ\u{301}日’\u{ad}\u{200d}]{1,10}|[[:alpha:]]{1,8}|\\PC{1,8}",
        ) {
            // No word of any profile has white space.
            prop_assume!(!word.contains(char::is_whitespace));
            let folded = fold.text(&word);
            prop_assert_eq!(&*folded, plainly(&fold, &word));
            prop_assert!(!folded.is_empty());
            let plain = fold.plain();
            let once = plain.text(&word);
            prop_assert_eq!(plain.text(&once), &*once);
        }

        /// No stemmer fails on any text, of any language.
        #[test]
        fn stemmers_take_any_text(word in "\\PC{0,40}|[\\p{L}\\p{M}]{0,30}|\\p{Cyrillic}{1,20}|[\\p{Arabic}\\p{Greek}\\p{Devanagari}\\p{Tamil}]{1,20}") {
            for language in Language::all() {
                Fold::with_stem(language).and(Fold::ACCENTS).text(&word);
                Fold::with_stem(language).text(&word);
            }
        }
    }

    /// Returns short words of letters, and longer ones of letters, digits, underscores and endings.
    fn words() -> Vec<String> {
        let endings = "ation|ing|ed|s|er|es|en|heit|ement|ir|din|mente|ovi|ine|unda";
        let longer = format!("[a-z0-9][a-z0-9_]{{0,6}}({endings})?(s|e|a)?");
        let mut runner = TestRunner::deterministic();
        let mut words = Vec::new();
        for (form, num_words) in [("[a-z0-9]{1,3}", 20_000), (longer.as_str(), 60_000)] {
            let form = proptest::string::string_regex(form).unwrap();
            words.extend((0..num_words).map(|_| form.new_tree(&mut runner).unwrap().current()));
        }
        words
    }

    #[test]
    fn the_first_byte_stays_where_a_language_keeps_it() {
        let words = words();
        for language in Language::all() {
            let lost = words.iter().find(|word| language.stem(word).as_bytes().first() != word.as_bytes().first());
            assert_eq!(lost.is_none(), language.keeps_first_byte(), "{language} {lost:?}");
        }
    }

    #[test]
    fn spellings_of_a_word_are_those_that_people_write() {
        assert_eq!(spellings("tea".to_owned()), ["tea"]);
        assert_eq!(spellings("中文".to_owned()), ["中文"]);
        assert_eq!(spellings("don't".to_owned()), ["don't", "don’t", "don\u{2bc}t"]);
        assert_eq!(spellings("cafe\u{301}".to_owned()), ["cafe\u{301}", "café"]);
        assert_eq!(spellings("l’été".to_owned()).len(), 6);
        assert_eq!(usual_word("Zei\u{ad}tung"), "Zeitung");
        assert_eq!(usual_word("می\u{200c}روم"), "میروم");
        assert_eq!(usual_word("\u{200d}"), "\u{200d}");
        assert_eq!(usual_word("l’e\u{301}te\u{301}"), "l'été");
    }

    proptest! {
        #[test]
        fn every_spelling_has_the_same_usual_one(word in "[a-z'’é\u{301}Å\u{2bc}\u{ad}\\PC]{1,12}") {
            let expected = usual_word(&word).into_owned();
            let letters = usual_letters(&word);
            prop_assert_eq!(&expected, if letters.is_empty() { &word } else { &letters });
            prop_assert_eq!(usual_word(&expected), &expected[..]);
            for spelling in spellings(word.clone()) {
                prop_assert_eq!(usual_word(&spelling), &expected[..], "{}", spelling);
                prop_assert_eq!(composed(&spelling), composed(&word));
                prop_assert!(spellings(spelling).contains(&word) || word.nfc().ne(word.chars()));
            }
        }
    }
}
