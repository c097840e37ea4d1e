//! Long work that a caller can stop: a question that is asked every some thousand steps.
//!
//! ```text
//! Canceller   the question, for all threads      asked where a part of the work begins
//! Interrupt   the question and steps to it       counted down in a loop, asked at 0
//! ```
//!
//! A step takes some nanoseconds, so the question is asked every fraction of a millisecond; steps
//! that take longer count as several. O(1) for each step. The work ends with [`Error::Cancelled`]
//! when each of its threads has asked.

use crate::error::{Error, Result};

/// Steps of a walk between two looks at the cancellation.
const STEPS_PER_CHECK: u32 = 1 << 14;

/// A question whether the caller wants to stop; each parallel task gets its own [`Interrupt`].
#[derive(Clone, Copy)]
pub(crate) struct Canceller<'a>(&'a (dyn Fn() -> bool + Sync));

impl<'a> Canceller<'a> {
    /// Creates a canceller that asks `is_cancelled`, from any thread.
    pub const fn new(is_cancelled: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self(is_cancelled)
    }

    /// Asks the question.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the caller wants to stop.
    #[inline]
    pub fn check(self) -> Result<()> {
        if (self.0)() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Returns an interrupt for one task.
    pub fn interrupt(self) -> Interrupt<'a> {
        Interrupt { canceller: self, steps_left: STEPS_PER_CHECK }
    }
}

impl std::fmt::Debug for Canceller<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Canceller")
    }
}

/// A counter of steps that asks the question every [`STEPS_PER_CHECK`] steps.
#[derive(Debug)]
pub(crate) struct Interrupt<'a> {
    canceller: Canceller<'a>,
    steps_left: u32,
}

impl Interrupt<'_> {
    /// Checks the cancellation if enough steps have passed since the last check.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    #[inline]
    pub fn check(&mut self) -> Result<()> {
        self.pass(1)
    }

    /// Counts `num_steps` steps, and checks the cancellation if enough have passed since the last
    /// check.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    #[inline]
    pub fn pass(&mut self, num_steps: usize) -> Result<()> {
        if num_steps < self.steps_left as usize {
            self.steps_left -= num_steps as u32;
            return Ok(());
        }
        self.ask()
    }

    /// Checks the cancellation now.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn ask(&mut self) -> Result<()> {
        self.steps_left = STEPS_PER_CHECK;
        self.canceller.check()
    }
}
