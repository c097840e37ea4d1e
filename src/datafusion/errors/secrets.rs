//! Masking of secrets in output: passwords in URLs, keys and tokens in options.
//!
//! ```text
//! http://ann:pw@host/x              http://***@host/x
//! 'aws.secret_access_key' 'abc'     'aws.secret_access_key' ***
//! ```
//!
//! Locations and options pass through plans, definitions and errors of DataFusion and of stores. So
//! text is masked at the output: in errors, plans and histories. [`Secrets`] remembers the secret
//! values in the statements of a session, and masks them in texts that contain them without their
//! names. Time is O(text).

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Replacement for a secret.
const MASK: &str = "***";
/// Minimum length of a value that is masked without its name. Shorter values may be parts of other
/// words.
const MIN_VALUE_BYTES: usize = 4;

/// Pattern of the user and password before the host of a URL.
const USER: &str = r#"(?<name>[A-Za-z][A-Za-z0-9+.-]*://)(?<value>[^/\s'"?\#]*)(?<rest>@)"#;
/// Pattern of the quoted name of a secret option and its quoted value.
const QUOTED: &str = r#"(?xi)
    (?<name> ['"] [\w.-]* KEY ['"] \s* (?: => | = | : )? \s* )
    (?<value> '(?:[^']|'')*' | "(?:[^"\\]|\\.)*" ) (?<rest>)"#;
/// Pattern of such a name that contains a dot or stands before `=`, and its value up to a blank.
const BARE: &str = r#"(?xi)
    (?<name> [\w-]+ \. [\w.-]* KEY ['"]? (?: \s* (?: => | = | : ) \s* | \s+ ) | \b [\w-]* KEY = )
    (?<value> '(?:[^']|'')*' | "(?:[^"\\]|\\.)*" | [^\s,;)'"}\]&]+ ) (?<rest>)"#;
/// Pattern of the ends of the names of secret options.
const KEY: &str = r"(?: secret\w* | password | passwd | passphrase | token | credentials? | private_key
    | account_key | api_key | access_key | access_key_id | sas_key | signature | sig )";

/// Parts of the names that [`KEY`] matches; each of its names has one.
const KEY_PARTS: [&str; 7] = ["secret", "passw", "passphrase", "token", "credential", "key", "sig"];

static OF_USERS: LazyLock<Vec<Regex>> = LazyLock::new(|| compiled(&[USER]));
static OF_OPTIONS: LazyLock<Vec<Regex>> = LazyLock::new(|| compiled(&[QUOTED, BARE]));

fn compiled(patterns: &[&str]) -> Vec<Regex> {
    let regexes = patterns.iter().map(|pattern| Regex::new(&pattern.replace("KEY", KEY)));
    regexes.flatten().collect()
}

/// Returns the patterns that can match in `text`. A command that needs none does not compile them,
/// which takes nearly half the time of a small statement (11 ms of 24 for `SELECT 1`).
fn patterns_for(text: &str) -> impl Iterator<Item = &'static Regex> {
    // Patterns in any case match the long s as well.
    let names = text.to_lowercase().replace('ſ', "s");
    let of_users = text.contains("://").then(|| OF_USERS.iter());
    let of_options = KEY_PARTS.iter().any(|part| names.contains(part)).then(|| OF_OPTIONS.iter());
    of_users.into_iter().flatten().chain(of_options.into_iter().flatten())
}

/// Returns `text` with `***` in place of passwords in URLs and of the values of options with secret
/// names.
///
/// ```
/// use datafusion_tadoc::mask_secrets;
///
/// assert_eq!(mask_secrets("GET http://ann:pw@host/x"), "GET http://***@host/x");
/// let options = "OPTIONS ('aws.secret_access_key' 'abc', 'aws.region' 'eu')";
/// assert_eq!(mask_secrets(options), "OPTIONS ('aws.secret_access_key' ***, 'aws.region' 'eu')");
/// ```
pub fn mask_secrets(text: &str) -> String {
    let mask = |text: String, pattern: &Regex| {
        let masked = |found: &Captures<'_>| format!("{}{MASK}{}", &found["name"], &found["rest"]);
        pattern.replace_all(&text, masked).into_owned()
    };
    patterns_for(text).fold(text.to_owned(), mask)
}

/// Secret values in the statements of a session.
///
/// ```
/// use datafusion_tadoc::Secrets;
///
/// let mut secrets = Secrets::default();
/// secrets.remember("CREATE EXTERNAL TABLE t … OPTIONS ('aws.secret_access_key' 'a1b2c3d4')");
/// assert_eq!(secrets.mask("403: key a1b2c3d4 is not known"), "403: key *** is not known");
/// ```
#[derive(Debug, Default)]
pub struct Secrets {
    values: BTreeSet<String>,
}

impl Secrets {
    /// Remembers the secrets in the statement `text`.
    pub fn remember(&mut self, text: &str) {
        for found in patterns_for(text).flat_map(|pattern| pattern.captures_iter(text)) {
            let value = &found["value"];
            let quote = value.chars().next().filter(|first| matches!(first, '\'' | '"'));
            let value = match quote {
                Some(quote) => value.trim_matches(quote).replace("''", "'"),
                None if found["rest"].is_empty() => value.to_owned(),
                None => value.split_once(':').map_or(value, |(_, password)| password).to_owned(),
            };
            if value.len() >= MIN_VALUE_BYTES && value != MASK {
                self.values.insert(value);
            }
        }
    }

    /// Remembers the values of environment variables with secret names, such as
    /// `AWS_SECRET_ACCESS_KEY`.
    pub fn remember_environment(&mut self) {
        for (name, value) in std::env::vars() {
            self.remember(&format!("'{name}' '{}'", value.replace('\'', "''")));
        }
    }

    /// Returns [`mask_secrets`] of `text`, with all remembered values masked too.
    pub fn mask(&self, text: &str) -> String {
        // Descending byte order, so that a value is replaced before its own prefixes.
        let replace = |text: String, value: &String| text.replace(value.as_str(), MASK);
        self.values.iter().rev().fold(mask_secrets(text), replace)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Parts of statements, from which names and values of options arise.
    const PIECES: [&str; 26] = [
        "'",
        "\"",
        "=",
        ":",
        " ",
        ".",
        "@",
        "/",
        "?",
        "a",
        "x_",
        "http://",
        "SECRET",
        "ſecret",
        "pass",
        "word",
        "wd",
        "PHRASE",
        "Token",
        "credential",
        "s",
        "private_",
        "access_",
        "\u{212a}ey",
        "Sig",
        "nature",
    ];

    #[test]
    fn secrets_are_masked_however_they_are_written() {
        let texts = [
            "s3://key:SECRET@bucket/x",
            "http://SECRET@host",
            "http://a:SE@CRET@host/b@c",
            "OPTIONS ('aws.secret_access_key' 'SECRET')",
            "options: (aws.session_token SECRET)",
            "OPTIONS (aws.access_key_id 'SECRET', format.x 'y')",
            "'password' 'SECRET'",
            "{\"aws.secret_access_key\": \"SECRET\"}",
            "https://h/x?sig=SECRET&a=b",
            "X-Amz-Signature=SECRET",
            "'gcp.service_account_key' = 'SECRET'",
            "OPTIONS ('aws.secret_access_key' 'it''s SECRET')",
        ];
        for text in texts {
            let masked = mask_secrets(text);
            assert!(masked.contains(MASK) && !masked.contains("CRET"), "{text}: {masked}");
        }
    }

    proptest! {
        #[test]
        fn patterns_that_are_not_compiled_would_not_match(
            pieces in prop::collection::vec(select(PIECES.to_vec()), 0..12),
        ) {
            let text = pieces.concat();
            let all = OF_USERS.iter().chain(OF_OPTIONS.iter());
            let matching = |pattern: &&Regex| pattern.is_match(&text);
            let expected: Vec<&str> = all.filter(matching).map(Regex::as_str).collect();
            let found: Vec<&str> =
                patterns_for(&text).filter(matching).map(Regex::as_str).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        let texts = [
            "OPTIONS ('tadoc.tokenizer' 'word')",
            "http://host/a@b",
            "unexpected token at line 3",
            "SELECT token FROM t WHERE password = 'x'",
            "INSERT INTO t VALUES ('token', 'abcd')",
            "'format.delimiter' ';'",
            "a.b c",
        ];
        for text in texts {
            assert_eq!(mask_secrets(text), text);
        }
    }

    #[test]
    fn values_are_known_without_their_names() {
        let mut secrets = Secrets::default();
        secrets.remember("… LOCATION 'http://ann:pass@h/x' OPTIONS ('aws.secret_access_key' 'abcdef')");
        secrets.remember("OPTIONS ('aws.session_token' 'abc')");
        assert_eq!(secrets.mask("found: abcdef, pass, abc"), "found: ***, ***, abc");
    }
}
