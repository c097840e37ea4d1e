//! Faults of inputs that `--keep-going` leaves out.
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
//! try. So does a fault of the output. Each input has one warning, for its first fault; the members of an archive are inputs
//! of their own.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::rc::Rc;

use crate::display;
use crate::failure::{Failure, Outcome};
use crate::inputs::Input;

/// The way to store compressed files and archives, for messages behind "pass".
pub const RAW: &str = "--no-decompress to store the bytes as they are";
/// Most inputs that are named.
const MAX_NAMED: usize = 20;

/// A fault of the bytes of a member.
#[derive(Debug)]
pub struct DamagedMember(String);

impl fmt::Display for DamagedMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for DamagedMember {}

/// The bytes of a member, with faults that are told from those of a disk.
pub struct MemberBytes<R>(pub R);

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
pub struct Faults {
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
