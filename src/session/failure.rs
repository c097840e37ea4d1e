//! Failures of commands: one line on standard error and an exit status.
//!
//! The line starts with `error: ` and holds the whole chain of causes, without backtraces. What libraries
//! repeat of their input is cut, so that no line has more than a few thousand characters. A reader
//! that closes the pipe (`tadoc cat … | head`) is not reported: the program ends silently.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::io::{self, Write};
use std::sync::{LazyLock, Mutex, PoisonError};

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion_tadoc::safety::Refused;
use datafusion_tadoc::{Secrets, way_out};
use tadoc_documents as documents;
use tadoc_documents::failure::chain;
use tadoc_documents::{FailureKind, display};

/// Exit status of a command that failed.
const FAILED: u8 = 1;
/// Exit status of a command line that is not understood (clap uses the same).
const USAGE: u8 = 2;
/// Exit status after an interrupt: 128 + SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Most characters of a text: of a longer one the middle is left out.
const MAX_CHARS: usize = 3000;
/// Most characters of the end of such a text, which has the way out.
const MAX_END_CHARS: usize = 1000;
/// Most characters of what a parser of JSON says, which repeats its input at its end.
const MAX_JSON_CHARS: usize = 180;

/// Secrets in the statements of this process.
static SECRETS: LazyLock<Mutex<Secrets>> = LazyLock::new(Mutex::default);

/// Result of a command or of a step of it.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Text of a failed command, and its exit status.
#[derive(Debug)]
pub struct Failure {
    text: Option<String>,
    status: u8,
    is_damage: bool,
}

impl Failure {
    /// Creates a failure with a text and exit status 1.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), status: FAILED, is_damage: false }
    }

    /// Creates a failure for arguments that do not fit together, with exit status 2.
    pub fn usage(text: impl Into<String>) -> Self {
        Self { status: USAGE, ..Self::new(text) }
    }

    /// Creates the failure of an interrupted command, with exit status 130.
    pub fn interrupted() -> Self {
        Self { status: INTERRUPTED, ..Self::new("interrupted") }
    }

    /// Creates the outcome of a search without a result: no text, exit status 1.
    pub fn nothing_found() -> Self {
        Self { text: None, status: FAILED, is_damage: false }
    }

    /// Returns the same failure with exit status 2, because 1 means that nothing was found. An
    /// interrupt and a pipe that was closed keep theirs.
    pub fn for_search(self) -> Self {
        match self.status {
            FAILED => Self { status: USAGE, ..self },
            _ => self,
        }
    }

    /// Creates a failure with the text `what: cause`, including the causes of `cause`.
    pub fn with_cause(what: impl fmt::Display, cause: &(dyn StdError + 'static)) -> Self {
        if is_broken_pipe(cause) { Self::broken_pipe() } else { Self::new(format!("{what}: {}", chain(cause))) }
    }

    /// Puts `what: ` in front of the text. An interrupt keeps its text.
    pub fn within(mut self, what: impl fmt::Display) -> Self {
        if self.status != INTERRUPTED {
            self.text = self.text.map(|text| format!("{what}: {text}"));
        }
        self
    }

    /// Variant of [`within`](Self::within) that leaves a text as it is if `what` is named in it.
    pub fn about(self, what: &str) -> Self {
        if self.text.as_ref().is_some_and(|text| text.contains(what)) { self } else { self.within(what) }
    }

    /// Puts `; way_out` behind a text that has `what`.
    pub fn with_way_out(mut self, what: &str, way_out: impl fmt::Display) -> Self {
        self.text = self.text.map(|text| if text.contains(what) { format!("{text}; {way_out}") } else { text });
        self
    }

    /// Returns true if stored bytes are damaged, and false if they could not be read.
    pub fn is_damage(&self) -> bool {
        self.is_damage
    }

    /// Returns the text as [`Failure::report`] prints it.
    pub fn into_text(self) -> String {
        one_line(&masked(&self.text.unwrap_or_default()))
    }

    /// Prints the text and returns the exit status.
    pub fn report(self) -> u8 {
        if let Some(text) = self.text {
            // If standard error is closed too, nobody can be told.
            let _ = writeln!(io::stderr(), "error: {}", one_line(&masked(&text)));
        }
        self.status
    }

    fn broken_pipe() -> Self {
        Self { text: None, status: 0, is_damage: false }
    }

    fn from_cause(cause: &(dyn StdError + 'static)) -> Self {
        if is_broken_pipe(cause) {
            Self::broken_pipe()
        } else {
            Self { is_damage: is_damage(cause), ..Self::new(chain(cause)) }
        }
    }
}

impl From<tadoc::Error> for Failure {
    fn from(error: tadoc::Error) -> Self {
        match error {
            tadoc::Error::Cancelled => Self::interrupted(),
            error => Self::from_cause(&error),
        }
    }
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        if is_broken_pipe(&error) {
            Self::broken_pipe()
        } else {
            Self { is_damage: is_damage(&error), ..Self::new(query_error(&error)) }
        }
    }
}

impl From<documents::Failure> for Failure {
    fn from(failure: documents::Failure) -> Self {
        match failure.kind() {
            FailureKind::Options => Self::usage(failure.to_string()),
            _ => Self::new(failure.to_string()),
        }
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        Self::from_cause(&error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::from_cause(&error)
    }
}

/// Writes a line to standard error and ignores errors.
pub fn note(line: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Remembers the secrets in `sql`, so that no message repeats them.
pub fn remember_secrets(sql: &str) {
    SECRETS.lock().unwrap_or_else(PoisonError::into_inner).remember(sql);
}

/// Remembers the secrets in the environment of the process.
pub fn remember_environment() {
    SECRETS.lock().unwrap_or_else(PoisonError::into_inner).remember_environment();
}

/// Masks the secrets in `text`.
pub fn masked(text: &str) -> String {
    SECRETS.lock().unwrap_or_else(PoisonError::into_inner).mask(text)
}

/// Formats the error of a query with its remedy.
///
/// The names of DataFusion's error kinds are left out, because they say nothing to a user.
fn query_error(error: &DataFusionError) -> String {
    let text = without_json(cause_of_query(error));
    let Some(way_out) = way_out(&text) else { return text };
    // DataFusion suggests names of other functions, on a line of its own; our text replaces that.
    let (fault, _) = text.split_once("Did you mean").unwrap_or((&text, ""));
    format!("{}; {way_out}", fault.trim_end_matches(['.', ' ', '\n']))
}

/// Cuts the input that a parser of JSON repeats at the end of `text`.
fn without_json(mut text: String) -> String {
    let fault = text.find("Json error: ");
    let mut rest = fault.into_iter().flat_map(|at| text[at..].char_indices().map(move |c| at + c.0));
    if let Some(end) = rest.nth(MAX_JSON_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn cause_of_query(error: &DataFusionError) -> String {
    if let Some(refused) = Refused::from_error(error) {
        return refused.to_string();
    }
    match error {
        DataFusionError::SQL(error, _) => match error.as_ref() {
            ParserError::ParserError(text) | ParserError::TokenizerError(text) => {
                format!("no valid SQL: {text}")
            }
            ParserError::RecursionLimitExceeded => "the SQL is nested too deeply".to_owned(),
        },
        DataFusionError::Context(what, error) => format!("{what}: {}", cause_of_query(error)),
        DataFusionError::Diagnostic(_, error) => cause_of_query(error),
        DataFusionError::Shared(error) => cause_of_query(error),
        DataFusionError::External(error) => chain(error.as_ref()),
        other => {
            let text = other.message();
            let (text, _) = text.split_once(DataFusionError::BACK_TRACE_SEP).unwrap_or((&text, ""));
            text.to_owned()
        }
    }
}

/// Joins a text into one line without control characters, which may come from file names. The middle of
/// a long text is left out.
fn one_line(text: &str) -> String {
    let text = bounded(text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    display::plain(&lines.join(" ")).into_owned()
}

fn bounded(text: &str) -> Cow<'_, str> {
    if text.chars().nth(MAX_CHARS).is_none() {
        return text.into();
    }
    let begin = text.char_indices().nth(MAX_CHARS - MAX_END_CHARS).map_or(0, |(at, _)| at);
    let end = text.char_indices().rev().nth(MAX_END_CHARS - 1).map_or(0, |(at, _)| at);
    let left_out = display::grouped((end - begin) as u64);
    format!("{} … ({left_out} bytes left out) … {}", &text[..begin], &text[end..]).into()
}

fn is_broken_pipe(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|error| io_kind(error) == Some(io::ErrorKind::BrokenPipe))
}

fn is_damage(error: &(dyn StdError + 'static)) -> bool {
    let ours = |error: &(dyn StdError + 'static)| error.downcast_ref().is_some_and(tadoc::Error::is_damage);
    causes(error).any(ours)
}

/// Returns `error` and its chain of sources.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Returns the kind of an I/O error, also of one inside an [`ArrowError`] that does not report it
/// as its source.
fn io_kind(error: &(dyn StdError + 'static)) -> Option<io::ErrorKind> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return Some(error.kind());
    }
    match error.downcast_ref::<ArrowError>() {
        Some(ArrowError::IoError(_, error)) => Some(error.kind()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once_and_on_one_line() {
        let cause = io::Error::other("disk\n  full");
        let error = tadoc::Error::io("writing x.tadoc", cause);
        assert_eq!(one_line(&chain(&error)), "writing x.tadoc: disk full");
    }

    #[test]
    fn long_texts_are_cut_in_the_middle() {
        let long = |len: usize| format!("begin {} end", "é".repeat(len));
        assert_eq!(one_line(&long(2000)), long(2000));
        let cut = one_line(&long(1 << 20));
        assert!(cut.starts_with("begin ééé") && cut.ends_with("ééé end"), "{cut}");
        assert!(cut.chars().count() < 3100 && cut.contains(" bytes left out) … "), "{cut}");
        let json = format!("x.json: Json error: expected {{ got [{}]", "1, ".repeat(1 << 20));
        let cut = without_json(json);
        assert!(cut.chars().count() < 200 && cut.starts_with("x.json: Json error: expected { got [1"));
        assert_eq!(without_json("Json error: é".to_owned()), "Json error: é");
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        let cause = io::Error::from(io::ErrorKind::BrokenPipe);
        let failure = Failure::from(ArrowError::IoError("x".to_owned(), cause));
        assert!(failure.text.is_none() && failure.status == 0);
    }
}
