//! Errors: conversion from the core to DataFusion, suggestions for mistyped names, masking of secrets.
//!
//! Errors that a host distinguishes keep their meaning. Limits become `ResourcesExhausted`, and mistakes of the
//! caller become `Execution`. Errors about bytes remain typed errors inside `External`, where
//! `downcast_ref::<tadoc::Error>()` finds them.
//!
//! ```text
//! http://ann:pw@host/x              http://***@host/x
//! 'aws.secret_access_key' 'abc'     'aws.secret_access_key' ***
//! ```
//!
//! Locations and options pass through plans, definitions and errors of DataFusion and of stores. So text is masked
//! at the output: in errors, plans and histories. [`Secrets`] remembers the secret values in the statements of a
//! session, and masks them in texts that contain them without their names. Time is O(text).

pub use tadoc::error::{contain_panics, quiet_readers};

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::LazyLock;

use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::error::{DataFusionError, Result};
use regex::{Captures, Regex};

use tadoc::error::Error;

/// Wraps `error` in the DataFusion variant with the same meaning. A wrapped DataFusion error is
/// unwrapped.
pub fn datafusion_error(error: Error) -> DataFusionError {
    match error {
        Error::Capacity { .. } => DataFusionError::ResourcesExhausted(error.to_string()),
        Error::InvalidArgument { .. }
        | Error::OutOfRange { .. }
        | Error::PastEnd { .. }
        | Error::InBatch { .. }
        | Error::Cancelled => DataFusionError::Execution(error.to_string()),
        Error::External { what, source } => match source.downcast::<DataFusionError>() {
            Ok(inner) => *inner,
            Err(source) => DataFusionError::External(Box::new(Error::External { what, source })),
        },
        other => DataFusionError::External(Box::new(other)),
    }
}

/// Converts an error of string columns to the core's error with the same meaning and text.
pub(crate) fn from_gsst(error: gsst::Error) -> Error {
    match error {
        gsst::Error::Format { file, section, offset, reason } => Error::Format { file, section, offset, reason },
        gsst::Error::Version { file, expected, got } => Error::Version { file, expected, got },
        gsst::Error::Checksum { file, section, offset, expected, got } => {
            Error::Checksum { file, section, offset, expected, got }
        }
        gsst::Error::InvalidArgument { name, got, allowed } => Error::InvalidArgument { name, got, allowed },
        gsst::Error::OutOfRange { what, got, len } => Error::OutOfRange { what, got, len },
        gsst::Error::Capacity { what, requested, limit, knob } => Error::Capacity { what, requested, limit, knob },
        gsst::Error::External { what, source } => Error::External { what, source },
        other => Error::external("string column", other),
    }
}

/// Wraps an error of string columns as [`datafusion_error`] does.
pub(crate) fn gsst_error(error: gsst::Error) -> DataFusionError {
    datafusion_error(from_gsst(error))
}

/// Wraps a DataFusion error for passing it through the core; [`datafusion_error`] unwraps it.
pub(crate) fn core_error(error: DataFusionError) -> Error {
    Error::external("query", error)
}

/// Returns the result of `work`, or an error about `what` if a library panics in it.
///
/// # Errors
/// The panic, as an error of [`contain_panics`].
pub async fn contain_panics_of<T>(what: &str, work: impl Future<Output = T>) -> Result<T> {
    let mut work = pin!(work);
    // After a panic the future is not polled again.
    let polled = poll_fn(|context| match contain_panics(what, || work.as_mut().poll(context)) {
        Ok(poll) => poll.map(Ok),
        Err(error) => std::task::Poll::Ready(Err(datafusion_error(error))),
    });
    polled.await
}

/// Returns the error for a background task that was aborted or panicked.
pub(crate) fn task_error(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    datafusion_error(Error::external("background task", error))
}

/// Most similar names that an error lists.
const MAX_NAMES: usize = 3;
/// Most files of a folder that are compared with a name.
const MAX_FILES: usize = 10_000;

/// Returns the candidate closest to `name`, if it is near enough to be a typing error.
pub(crate) fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    candidates
        .map(|c| (levenshtein(&name, c), c))
        .filter(|(distance, c)| *distance <= c.len().max(name.len()) / 3 + 1 && *distance < c.len())
        .min()
        .map(|(_, c)| c)
}

/// Returns `did you mean A or B?` for the candidates that are near enough to `name`, if there are any. Folders and
/// endings that they share say nothing.
pub(crate) fn did_you_mean(name: &str, candidates: BTreeSet<String>) -> Option<String> {
    let (folder, last) = name.rfind('/').map_or(("", name), |at| name.split_at(at + 1));
    let ending = last.rfind('.').filter(|&at| at > 0).map_or("", |at| &last[at..]);
    let stem = |text: &str| {
        let text = text.strip_prefix(folder).unwrap_or(text);
        text.strip_suffix(ending).unwrap_or(text).to_owned()
    };
    let stems = candidates.into_iter().map(|candidate| (stem(&candidate), candidate));
    let mut by_stem: BTreeMap<String, String> = stems.collect();
    let mut similar = Vec::new();
    while similar.len() < MAX_NAMES
        && let Some(found) = closest(&stem(name), by_stem.keys().map(String::as_str)).map(str::to_owned)
        && let Some(candidate) = by_stem.remove(&found)
    {
        similar.push(candidate);
    }
    (!similar.is_empty()).then(|| format!("did you mean {}?", similar.join(" or ")))
}

/// Returns the names of the files and folders beside `name` on the disk, as a statement writes them. A URL
/// has none.
pub(crate) fn files_beside(name: &str) -> BTreeSet<String> {
    let folder = name.rsplit_once('/').map(|(folder, _)| folder);
    if name.contains("://") {
        return BTreeSet::new();
    }
    let listed = match folder {
        None => ".",
        Some("") => "/",
        Some(folder) => folder,
    };
    let Ok(entries) = fs::read_dir(listed) else { return BTreeSet::new() };
    let names = entries.take(MAX_FILES).flatten().map(|entry| entry.file_name().into_string());
    let visible = names.flatten().filter(|name| !name.starts_with('.'));
    match folder {
        None => visible.collect(),
        Some(folder) => visible.map(|file| format!("{folder}/{file}")).collect(),
    }
}

/// Most characters of a text that an error repeats.
const MAX_CHARS: usize = 120;

/// Returns `text`, or its beginning and `…`.
pub fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

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
    let for_urls = text.contains("://").then(|| OF_USERS.iter());
    let for_options = KEY_PARTS.iter().any(|part| names.contains(part)).then(|| OF_OPTIONS.iter());
    for_urls.into_iter().flatten().chain(for_options.into_iter().flatten())
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

    #[test]
    fn shared_folders_and_endings_say_nothing() {
        let among =
            |name: &str, names: &[&str]| did_you_mean(name, names.iter().map(|&name| name.to_owned()).collect());
        let files = ["a/b/notes.tadoc", "a/b/laws.tadoc", "a/b/c"];
        assert_eq!(among("a/b/nowhere.tadoc", &files), None);
        assert_eq!(among("a/b/note.tadoc", &files).unwrap(), "did you mean a/b/notes.tadoc?");
        let tables = ["ab", "abc", "abcd", "b", "zebra"];
        assert_eq!(among("abx", &tables).unwrap(), "did you mean ab or abc or abcd?");
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let names = || ["corpus", "fold"].into_iter();
        assert_eq!(closest("flod", names()), Some("fold"));
        assert_eq!(closest("Corpse", names()), Some("corpus"));
        assert_eq!(closest("separator", names()), None);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "é".repeat(MAX_CHARS);
        assert_eq!(shown(&long), long);
        assert_eq!(shown(&format!("{long}a")), format!("{long}…"));
    }

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
