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
