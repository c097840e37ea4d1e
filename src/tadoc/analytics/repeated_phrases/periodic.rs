//! Phrases that repeat themselves: their own beginning, two times or more.
//!
//! ```text
//! text      x a b c a b c a b c y        a run of period 3
//! dropped     a b c a b c                its own shift by 3; so is every phrase of 6 words or more inside
//! kept        a b c                      3 times
//! ```
//!
//! A line that is written a thousand times in a row makes a thousand maximal repeats: the line two
//! times, three times, and so on. These say nothing that the shortest of them does not say. A phrase
//! is dropped if it equals itself shifted by a *period* of at most half its words. Periods up to
//! [`MAX_PERIOD`] words are looked for.
//!
//! The least period of the first 2 * [`MAX_PERIOD`] words is found with the failure function of
//! Knuth, Morris and Pratt (1977). By the theorem of Fine and Wilf (1965) no other period can be that
//! of the whole phrase. The run around it is then read once, for all phrases inside. O(512) for each
//! phrase, and O(words) for each period in all.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::interrupt::{Canceller, Interrupt};

use super::text::BORDER;

/// Largest period that is looked for, in words.
pub(super) const MAX_PERIOD: usize = 256;

/// Runs of a text that were read.
#[derive(Debug)]
pub(super) struct Runs<'t> {
    text: &'t [u32],
    /// Ends of runs, by period and start.
    ends: BTreeMap<(usize, usize), usize>,
    /// For each prefix of the phrase, the length of its longest proper border.
    borders: Vec<usize>,
    interrupt: Interrupt<'t>,
}

impl<'t> Runs<'t> {
    /// Creates the runs of `text`. None is read yet.
    pub fn new(text: &'t [u32], canceller: Canceller<'t>) -> Self {
        let interrupt = canceller.interrupt();
        Self { text, ends: BTreeMap::new(), borders: Vec::new(), interrupt }
    }

    /// Returns true if the `num_words` words from position `start` are their own shift by a period of
    /// at most half of them.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn is_periodic(&mut self, start: usize, num_words: usize) -> Result<bool> {
        let prefix = &self.text[start..start + num_words.min(2 * MAX_PERIOD)];
        self.interrupt.pass(prefix.len())?;
        Ok(match least_period(prefix, &mut self.borders) {
            Some(period) => self.end_of_run(start, period)? >= start + num_words,
            None => false,
        })
    }

    /// Returns the end of the run that has two periods at `start`.
    fn end_of_run(&mut self, start: usize, period: usize) -> Result<usize> {
        let before = self.ends.range((period, 0)..=(period, start)).next_back();
        // Two runs of one period share less than it. So one that has two periods here is this one.
        if let Some((_, &end)) = before.filter(|&(_, &end)| end >= start + 2 * period) {
            return Ok(end);
        }
        let text = self.text;
        let is_shift = |at: usize| text[at] == text[at - period] && text[at] != BORDER;
        let mut end = start + 2 * period;
        while end < text.len() && is_shift(end) {
            self.interrupt.check()?;
            end += 1;
        }
        let is_shift = |at: usize| text[at] == text[at + period] && text[at] != BORDER;
        let mut first = start;
        while first > 0 && is_shift(first - 1) {
            self.interrupt.check()?;
            first -= 1;
        }
        self.ends.insert((period, first), end);
        Ok(end)
    }
}

/// Returns the least period of `words` if it is at most half their number.
fn least_period(words: &[u32], borders: &mut Vec<usize>) -> Option<usize> {
    borders.clear();
    borders.push(0);
    for at in 1..words.len() {
        let mut border = borders[at - 1];
        while border > 0 && words[border] != words[at] {
            border = borders[border - 1];
        }
        borders.push(border + usize::from(words[border] == words[at]));
    }
    let period = words.len() - borders.last()?;
    (2 * period <= words.len()).then_some(period)
}
