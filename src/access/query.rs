//! The query language: words and quoted phrases.
//!
//! ```text
//! error                occurrences of the word `error` (case-sensitive)
//! "power loss"         consecutive words with nothing but separators between them
//! error "power loss"   occurrences of each item, in documents that hold all of them
//! well-known           an item with several words is a phrase: `well` then `known`
//! "say ""hi"""         a doubled quote inside quotes is a quote character
//! ```
//!
//! Items are cut into words by the tokenizer profile of the corpus, so a query word means what it
//! means in the text; separators of an item do not have to agree with those of the text. There is
//! no negation, alternative, prefix or nearness here: SQL combines results.

use std::fmt;

use crate::error::{Error, Result};
use crate::text::{TokenizerProfile, for_each_token};

/// A parsed query: one item or more, each a sequence of one word or more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    items: Vec<Vec<String>>,
}

impl Query {
    /// Parses `text` for a corpus of `profile`. An item that is written twice counts once.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] named `query` for a query without items, an item without a word,
    /// and a quote that is not closed.
    pub fn parse(profile: TokenizerProfile, text: &str) -> Result<Self> {
        let mut items: Vec<Vec<String>> = Vec::new();
        for item in split_items(text)? {
            let words = words_of(profile, &item);
            if words.is_empty() {
                return Err(invalid(
                    format!("`{item}`, which holds no word in profile {profile}"),
                    "items with at least one word",
                ));
            }
            if !items.contains(&words) {
                items.push(words);
            }
        }
        if items.is_empty() {
            return Err(invalid("an empty query".into(), "words or \"quoted phrases\""));
        }
        Ok(Self { items })
    }

    /// The items, each as its words.
    pub fn items(&self) -> &[Vec<String>] {
        &self.items
    }
}

impl fmt::Display for Query {
    /// The query in normal form: every item in quotes, its words joined by one blank.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (item_idx, item) in self.items.iter().enumerate() {
            let gap = if item_idx > 0 { " " } else { "" };
            write!(formatter, "{gap}\"{}\"", item.join(" ").replace('"', "\"\""))?;
        }
        Ok(())
    }
}

/// Cuts at white space outside quotes and around quoted parts.
fn split_items(text: &str) -> Result<Vec<String>> {
    let mut items = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let item = if let Some(quoted) = rest.strip_prefix('"') {
            let (item, after) = split_quoted(quoted).ok_or_else(|| {
                invalid(
                    format!("`{text}` with a quote that is not closed"),
                    "quotes in pairs; write \"\" inside quotes for a quote character",
                )
            })?;
            rest = after;
            item
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(rest.len());
            let (item, after) = rest.split_at(end);
            rest = after;
            item.to_owned()
        };
        items.push(item);
        rest = rest.trim_start();
    }
    Ok(items)
}

/// The text up to the closing quote, doubled quotes made single, and what follows.
fn split_quoted(text: &str) -> Option<(String, &str)> {
    let mut item = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        item.push_str(before);
        match after.strip_prefix('"') {
            Some(after) => {
                item.push('"');
                rest = after;
            }
            None => return Some((item, after)),
        }
    }
}

fn words_of(profile: TokenizerProfile, item: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each_token(profile, item.as_bytes(), |token| {
        if token.is_word {
            words.push(String::from_utf8_lossy(token.bytes).into_owned());
        }
    });
    words
}

fn invalid(got: String, allowed: &str) -> Error {
    Error::InvalidArgument { name: "query", got, allowed: allowed.into() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normal(text: &str) -> Result<String> {
        Query::parse(TokenizerProfile::Word, text).map(|query| query.to_string())
    }

    #[test]
    fn parses_words_and_phrases() {
        let cases = [
            ("error", "\"error\""),
            ("  error\n", "\"error\""),
            ("error \"power loss\"", "\"error\" \"power loss\""),
            ("error\"power loss\"now", "\"error\" \"power loss\" \"now\""),
            ("well-known", "\"well known\""),
            ("a a \"a\"", "\"a\""),
            ("\"say \"\"hi\"\"\"", "\"say hi\""),
            ("Ünï_1", "\"Ünï_1\""),
        ];
        for (text, expected) in cases {
            assert_eq!(normal(text).unwrap(), expected, "{text}");
        }
        let whitespace = Query::parse(TokenizerProfile::Whitespace, "\"say \"\"hi\"\"\"").unwrap();
        assert_eq!(whitespace.items(), [["say", "\"hi\""]]);
    }

    #[test]
    fn refuses_what_cannot_match() {
        let cases = [
            ("", "empty query"),
            (" \t", "empty query"),
            ("\"power loss", "not closed"),
            ("a \"", "not closed"),
            ("a \"\"", "no word"),
            ("a - b", "`-`"),
        ];
        for (text, expected) in cases {
            let fault = normal(text).unwrap_err();
            assert!(matches!(fault, Error::InvalidArgument { name: "query", .. }));
            assert!(fault.to_string().contains(expected), "{text}: {fault}");
        }
    }

    proptest! {
        #[test]
        fn the_normal_form_is_stable(text in "[ab\" \n.é-]{0,24}") {
            if let Ok(query) = Query::parse(TokenizerProfile::Word, &text) {
                let again = Query::parse(TokenizerProfile::Word, &query.to_string());
                prop_assert_eq!(again.unwrap(), query);
            }
        }
    }
}
