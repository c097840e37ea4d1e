//! Long work that a caller can stop: a question that is asked every some thousand steps.

use crate::error::{Error, Result};

/// Steps of a walk between two looks at the cancellation.
const STEPS_PER_CHECK: u32 = 1 << 14;

/// A question whether the caller wants to stop; each parallel task gets its own [`Interrupt`].
#[derive(Clone, Copy)]
pub(crate) struct Canceller<'a>(&'a (dyn Fn() -> bool + Sync));

impl<'a> Canceller<'a> {
    /// Creates a canceller that asks `is_cancelled`, from any thread.
    pub fn new(is_cancelled: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self(is_cancelled)
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
        self.steps_left -= 1;
        if self.steps_left > 0 {
            return Ok(());
        }
        self.steps_left = STEPS_PER_CHECK;
        if (self.canceller.0)() { Err(Error::Cancelled) } else { Ok(()) }
    }
}
