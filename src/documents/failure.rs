//! Failures to read inputs: a text for people, and its kind; and the faults that `--keep-going` leaves out.
//!
//! The text names the file, the place in it, and the way out. It holds the whole chain of causes.
//!
//! ```text
//! stream that is damaged or exceeds a limit     its text up to there is stored, as if the input ended there
//! archive that is damaged or exceeds a limit    its members up to there are stored
//! input that cannot be opened                   left out
//! row that cannot be read, does not fit, or is too large    left out
//! tar archive without a mark at its end         its members are stored, also without --keep-going
//! ```
//!
//! An error of the disk or of a store ends the ingest nevertheless: the same input may be whole at the next
//! try. So does a fault of the output. Each input has one warning, for its first fault; the members of an
//! archive are inputs of their own.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::rc::Rc;

use arrow::error::ArrowError;

use crate::display;
use crate::inputs::Input;

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

/// The way to store compressed files and archives, for messages behind "pass".
pub(crate) const RAW: &str = "--no-decompress to store the bytes as they are";
/// Most inputs that are named.
const MAX_NAMED: usize = 20;

/// A fault of the bytes of a member.
#[derive(Debug)]
pub(crate) struct DamagedMember(String);

impl fmt::Display for DamagedMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for DamagedMember {}

/// The bytes of a member, with faults that are told from those of a disk.
pub(crate) struct MemberBytes<R>(pub R);

impl<R: Read> Read for MemberBytes<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes).map_err(|error| match error.kind() {
            ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof => {
                io::Error::new(error.kind(), DamagedMember(error.to_string()))
            }
            _ => error,
        })
    }
}

/// Faults of all inputs so far. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Faults {
    is_kept_going: bool,
    /// True behind a fault that ends the ingest.
    is_over: Rc<Cell<bool>>,
    noted: Rc<RefCell<Noted>>,
}

#[derive(Default)]
struct Noted {
    /// Input of the latest fault.
    latest: Option<String>,
    warnings: Vec<String>,
    num_more: u64,
    num_rows: u64,
}

impl Faults {
    /// Creates an empty list. If `is_kept_going` is false, each fault ends the ingest.
    pub fn new(is_kept_going: bool) -> Self {
        Self { is_kept_going, ..Self::default() }
    }

    /// Notes that no input can be read after this.
    pub fn end(&self) {
        self.is_over.set(true);
    }

    /// Returns true if a fault of an input does not end the ingest.
    pub fn are_left_out(&self) -> bool {
        self.is_kept_going && !self.is_over.get()
    }

    /// Returns the ways out of damage, for messages: options behind "pass".
    pub fn ways_out(&self) -> &'static str {
        if self.is_kept_going {
            RAW
        } else {
            "--no-decompress to store the bytes as they are, or --keep-going to store what can be read"
        }
    }

    /// Notes the failure of `input` in place of returning it, if the ingest goes on.
    ///
    /// # Errors
    /// The failure of `outcome`.
    pub fn pass(&self, input: &Input, outcome: Outcome) -> Outcome {
        match outcome {
            Err(failure) if self.are_left_out() => {
                self.note(input, failure);
                Ok(())
            }
            other => other,
        }
    }

    /// Leaves out a row of `input` for its `failure`, if the ingest goes on.
    ///
    /// # Errors
    /// The failure.
    pub fn pass_row(&self, input: &Input, failure: Failure) -> Outcome {
        self.pass(input, Err(failure))?;
        self.add_rows(1);
        Ok(())
    }

    /// Notes a fault of `input`.
    pub fn note(&self, input: &Input, failure: Failure) {
        let noted = &mut *self.noted.borrow_mut();
        let shown = input.shown();
        if noted.latest.as_ref() == Some(&shown) {
            return;
        }
        noted.latest = Some(shown);
        if noted.warnings.len() < MAX_NAMED { noted.warnings.push(failure.to_string()) } else { noted.num_more += 1 }
    }

    /// Counts rows that were left out.
    pub fn add_rows(&self, num_rows: u64) {
        self.noted.borrow_mut().num_rows += num_rows;
    }

    /// Returns true if the latest fault is one of `input`.
    pub fn is_latest(&self, input: &Input) -> bool {
        self.noted.borrow().latest.as_ref().is_some_and(|latest| *latest == input.shown())
    }

    /// Returns a warning for each of the first inputs with a fault, and one for the others.
    pub fn warnings(&self) -> Vec<String> {
        let noted = self.noted.borrow();
        let rows = format!("{} left out", display::plural(noted.num_rows, "row"));
        let more = format!("{} with such faults", display::plural(noted.num_more, "more input"));
        let counts = [(noted.num_rows, rows), (noted.num_more, more)];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text);
        noted.warnings.iter().cloned().chain(counts).collect()
    }
}
