//! The failure to read inputs: a text for people, and its kind.
//!
//! The text names the file, the place in it, and the way out. It holds the whole chain of causes.

use std::error::Error;
use std::{fmt, io};

use arrow::error::ArrowError;

/// The result of reading, or of a step of it.
pub type Outcome<T = ()> = Result<T, Failure>;

/// The reason why inputs cannot be read.
///
/// ```
/// use tadoc_documents::failure::{Failure, FailureKind};
///
/// let failure = Failure::new("line 7 is no object").within("a.jsonl");
/// assert_eq!(failure.to_string(), "a.jsonl: line 7 is no object");
/// assert_eq!(failure.kind(), FailureKind::Input);
/// ```
#[derive(Debug)]
pub struct Failure {
    text: String,
    kind: FailureKind,
}

/// The kind of a [`Failure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// An input cannot be read, or it does not fit the division into documents.
    Input,
    /// Options do not fit together.
    Options,
    /// This build has no reader of such inputs. The feature of this name has it.
    LeftOut {
        /// Name of the feature.
        feature: &'static str,
    },
}

impl Failure {
    /// Creates a failure of an input with a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: FailureKind::Input }
    }

    /// Creates a failure for options that do not fit together.
    pub fn usage(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: FailureKind::Options }
    }

    /// Creates the failure for inputs, such as `mailboxes`, whose reader belongs to a feature that this build lacks.
    pub fn left_out(inputs: &str, feature: &'static str) -> Self {
        let text = format!("this build has no reader of {inputs}; compile it with the feature `{feature}`");
        Self { text, kind: FailureKind::LeftOut { feature } }
    }

    /// Creates a failure with the text `what: cause`, including the causes of `cause`.
    pub fn with_cause(what: impl fmt::Display, cause: &(dyn Error + 'static)) -> Self {
        Self::new(format!("{what}: {}", chain(cause)))
    }

    /// Puts `what: ` in front of the text.
    pub fn within(self, what: impl fmt::Display) -> Self {
        Self { text: format!("{what}: {}", self.text), ..self }
    }

    /// Returns the kind.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Failure {}

impl From<tadoc::Error> for Failure {
    fn from(error: tadoc::Error) -> Self {
        Self::new(chain(&error))
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        Self::new(chain(&error))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(chain(&error))
    }
}

/// Formats an error and its causes. A cause that an outer text repeats is left out.
///
/// ```
/// use tadoc_documents::failure::chain;
///
/// let error = tadoc::Error::io("writing x.tadoc", std::io::Error::other("disk full"));
/// assert_eq!(chain(&error), "writing x.tadoc: disk full");
/// ```
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.contains(&inner) {
            text = format!("{text}: {inner}");
        }
        cause = error.source();
    }
    text
}
