//! Languages whose words can be stemmed: the algorithms of Snowball, as the crate `frostem` has them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use frostem::{Algorithm, Stemmer};

use crate::error::{Error, Result};

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

    /// Returns true if the stem of each word of ASCII letters, digits and underscores begins with the first
    /// byte of the word, unless that is an underscore. Some algorithms take prefixes away, or write letters
    /// in another way.
    pub(super) fn keeps_first_byte(self) -> bool {
        !matches!(
            self.name(),
            "dutch"
                | "esperanto"
                | "indonesian"
                | "irish"
                | "lovins"
                | "serbian"
                | "sesotho"
                | "turkish"
        )
    }

    /// Returns the stem of `word`, which is in lower case, or `word` if nothing would be left of it.
    pub(super) fn stem(self, word: &str) -> Cow<'_, str> {
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
            super::refused(&format!("stem:{name}"), &allowed)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;

    use super::*;

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
            let lost = words
                .iter()
                .find(|word| language.stem(word).as_bytes().first() != word.as_bytes().first());
            assert_eq!(lost.is_none(), language.keeps_first_byte(), "{language} {lost:?}");
        }
    }
}
