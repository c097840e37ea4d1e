//! Runs of neighbouring windows whose first places are neighbours, too.
//!
//! ```text
//! text        a b c d x  …  y a b c d z        windows of 3 words
//! run         a b c, b c d ─▶ a b c, b c d     2 windows, 4 words
//!
//! text        a b a b a b a b a b a b          windows of 4 words
//! places      0   2   4   6   8   10
//! run         at 4 from 0, 1, 0, 1, 0          5 windows with a period of 2
//! ```
//!
//! Text that repeats itself has few first places, which follow each other again and again. Such a run
//! has a period, so it is one run, too.

use std::ops::Range;

use crate::analytics::checked_sort::sort_checked;
use crate::error::Result;
use crate::interrupt::Canceller;

/// Windows at `at` and behind it that repeat the windows at `from` and behind it. After `period`
/// windows they repeat those at `from` again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    pub at: u64,
    pub from: u64,
    pub num_windows: u64,
    /// At most the number of windows.
    pub period: u64,
}

/// Runs in order of `at`.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: Vec<Run>,
    /// Number of runs that no window joins any more.
    num_closed: usize,
}

impl Run {
    /// Returns the places of the words of windows of `min_words` words.
    pub fn words(&self, min_words: u64) -> Range<u64> {
        self.at..self.at + self.num_windows - 1 + min_words
    }

    /// Returns the places of the words that they repeat.
    pub fn source_words(&self, min_words: u64) -> Range<u64> {
        self.from..self.from + self.period - 1 + min_words
    }

    /// Joins `next` to the run, if its windows come next, and if their first places do.
    fn join(&mut self, next: &Self) -> bool {
        if self.at + self.num_windows != next.at {
            return false;
        }
        let is_straight = next.period == next.num_windows;
        if is_straight && self.period == self.num_windows && next.from == self.from + self.period {
            self.period += next.period;
        } else {
            let is_in_phase = next.from == self.from + self.num_windows % self.period;
            let is_within = is_straight && next.from + next.period <= self.from + self.period;
            let is_alike = next.from == self.from && next.period == self.period;
            if !is_in_phase || !is_within && !is_alike {
                return false;
            }
        }
        self.num_windows += next.num_windows;
        true
    }
}

impl Runs {
    /// Adds the window at `at`, behind all others since the last [`close`](Self::close). It repeats the
    /// window at `from`.
    #[inline]
    pub fn push(&mut self, at: u64, from: u64) {
        self.append(&Run { at, from, num_windows: 1, period: 1 });
    }

    #[inline]
    fn append(&mut self, next: &Run) {
        let open = &mut self.runs[self.num_closed..];
        if !open.last_mut().is_some_and(|last| last.join(next)) {
            self.runs.push(*next);
        }
    }

    /// Ends a pass over the windows. The runs of the next one are others.
    pub fn close(&mut self) {
        self.num_closed = self.runs.len();
    }

    /// Removes the runs since the last [`close`](Self::close).
    pub fn remove_open(&mut self) {
        self.runs.truncate(self.num_closed);
    }

    /// Returns the number of runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Sorts the runs, and joins those that continue each other. Windows are added in several sorted
    /// sequences.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn sort(&mut self, canceller: Canceller<'_>) -> Result<()> {
        sort_checked(&mut self.runs, |&run| run, canceller)?;
        self.num_closed = 0;
        for run in std::mem::take(&mut self.runs) {
            self.append(&run);
        }
        Ok(())
    }

    /// Returns the runs.
    pub fn as_slice(&self) -> &[Run] {
        &self.runs
    }

    /// Returns the memory in bytes.
    pub fn memory_bytes(&self) -> u64 {
        (size_of::<Run>() * self.runs.capacity()) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAYS: Canceller<'static> = Canceller::new(&|| false);

    /// Returns each window of the runs, and its first place.
    fn windows_of(runs: &Runs) -> Vec<(u64, u64)> {
        let of_run = |run: &Run| {
            let Run { at, from, num_windows, period } = *run;
            (0..num_windows).map(move |window| (at + window, from + window % period))
        };
        runs.as_slice().iter().flat_map(of_run).collect()
    }

    #[test]
    fn neighbours_are_joined_also_from_several_passes() {
        let mut runs = Runs::default();
        for (at, from) in [(20, 3), (21, 4), (24, 7), (30, 0)] {
            runs.push(at, from);
        }
        for (at, from) in [(22, 5), (23, 6), (25, 9)] {
            runs.push(at, from);
        }
        runs.sort(STAYS).unwrap();
        let run = |at, from, num_windows| Run { at, from, num_windows, period: num_windows };
        assert_eq!(runs.as_slice(), [run(20, 3, 5), run(25, 9, 1), run(30, 0, 1)]);
        assert_eq!(run(20, 3, 5).words(4), 20..28);
        assert_eq!(run(20, 3, 5).source_words(4), 3..11);
    }

    #[test]
    fn text_that_repeats_itself_is_one_run() {
        let mut runs = Runs::default();
        (0..1_000).for_each(|window| runs.push(50 + window, 7 + window % 9));
        (0..10).for_each(|window| runs.push(1_050 + window, 3));
        let run = |at, from, num_windows, period| Run { at, from, num_windows, period };
        assert_eq!(runs.as_slice(), [run(50, 7, 1_000, 9), run(1_050, 3, 10, 1)]);
        assert_eq!(run(50, 7, 1_000, 9).source_words(50), 7..65);
    }

    proptest! {
        /// First places that go on, go back or jump, added in one pass or in three.
        #[test]
        fn runs_have_the_windows_that_were_added(
            steps in prop::collection::vec((0..12u64, 0..4u64, 0..3usize), 1..200),
        ) {
            let mut windows = Vec::new();
            let (mut at, mut from) = (1_000, 0);
            for &(step, to, pass) in &steps {
                (at, from) = match step {
                    0 => (at + 2, from + 1),
                    1..4 => (at + 1, to),
                    _ => (at + 1, from + 1),
                };
                windows.push((at, from, pass));
            }
            let (mut once, mut thrice) = (Runs::default(), Runs::default());
            windows.iter().for_each(|&(at, from, _)| once.push(at, from));
            for pass in 0..3 {
                let of_pass = windows.iter().filter(|window| window.2 == pass);
                of_pass.for_each(|&(at, from, _)| thrice.push(at, from));
                thrice.close();
                windows.iter().take(9).for_each(|&(at, from, _)| thrice.push(at, from));
                thrice.remove_open();
            }
            once.sort(STAYS).unwrap();
            thrice.sort(STAYS).unwrap();
            let expected: Vec<(u64, u64)> = windows.iter().map(|w| (w.0, w.1)).collect();
            prop_assert_eq!(windows_of(&once), expected.clone());
            prop_assert_eq!(windows_of(&thrice), expected);
        }
    }
}
