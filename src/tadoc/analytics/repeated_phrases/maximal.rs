//! Maximal repeats, from the sorted suffixes.
//!
//! ```text
//! suffixes in order   b c d x     symbols shared with the one before
//!                     b c d y     3     ┐ b c d: an interval of 2     ┐ b c: of 3
//!                     b c z       2     ┘                             ┘
//! ```
//!
//! Suffixes with the same beginning are an interval of the order. An interval with a longer common
//! beginning than its surroundings is a repeat that cannot be extended to the right (Abouelhoda,
//! Kurtz, Ohlebusch, 2004). If the symbols before its suffixes differ, it cannot be extended to the
//! left either. One pass with a stack, O(suffixes).

use std::cmp::Reverse;

use crate::analytics::checked_sort::sort_checked;
use crate::error::Result;
use crate::interrupt::Canceller;

use super::chains::{Chains, END};
use super::periodic::Runs;
use super::suffixes::Suffixes;

/// A maximal repeat, which is a row of the result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phrase {
    /// Position of one occurrence in the text.
    pub start: u32,
    pub num_words: u32,
    pub count: u32,
}

/// Interval of the order whose end is not known yet.
#[derive(Debug, Clone, Copy)]
struct Open {
    start: usize,
    /// Number of symbols that all suffixes have in common.
    len: u32,
    /// Symbol before all suffixes, or [`END`] if these differ.
    before: u32,
}

/// A text whose suffixes are in order.
pub(super) struct Search<'a> {
    pub text: &'a [u32],
    pub chains: &'a Chains,
    pub suffixes: &'a Suffixes,
    pub canceller: Canceller<'a>,
}

impl Search<'_> {
    /// Returns the maximal repeats of the chains that occur `min_count` times or more and do not repeat
    /// themselves, in the order of rows. Names of the chains have `name_words` words of the text.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn maximal_repeats(&self, name_words: usize, min_count: usize) -> Result<Vec<Phrase>> {
        let (chains, order) = (self.chains, self.suffixes.order());
        let mut phrases = Vec::new();
        let mut runs = Runs::new(self.text, self.canceller);
        self.for_each_maximal(|open, end| {
            let first = order[open.start] as usize;
            let start = chains.start(first);
            let num_names = chains.start(first + open.len as usize) - start;
            let num_words = num_names + (name_words - 1) as u32;
            let count = end - open.start;
            if count >= min_count && !runs.is_periodic(start as usize, num_words as usize)? {
                // For ties: the place in the order puts a phrase before the phrases that begin with it.
                phrases.push(Phrase { start: open.start as u32, num_words, count: count as u32 });
            }
            Ok(())
        })?;
        let place = |phrase: &Phrase| {
            let cover = u64::from(phrase.num_words) * u64::from(phrase.count);
            (Reverse(cover), phrase.start, phrase.num_words)
        };
        sort_checked(&mut phrases, place, self.canceller)?;
        for phrase in &mut phrases {
            phrase.start = chains.start(order[phrase.start as usize] as usize);
        }
        Ok(phrases)
    }

    /// Calls `f` with each interval that has different symbols before it, and with the interval's end.
    fn for_each_maximal(&self, mut f: impl FnMut(Open, usize) -> Result<()>) -> Result<()> {
        let (order, mut interrupt) = (self.suffixes.order(), self.canceller.interrupt());
        let mut stack: Vec<Open> = Vec::new();
        for (index, &at) in order.iter().enumerate() {
            interrupt.check()?;
            let end = index + 1;
            let common = if end < order.len() { self.suffixes.common(end) } else { 0 };
            // First the suffix alone, then the intervals that end with it, from the inside to the
            // outside.
            let before = self.chains.before(at as usize);
            let mut part = Open { start: index, len: u32::MAX, before };
            while let Some(top) = stack.pop_if(|top| top.len > common) {
                part = joined(top, part);
                if part.before == END {
                    f(part, end)?;
                }
            }
            match stack.last_mut().filter(|top| top.len == common) {
                Some(top) => *top = joined(*top, part),
                None if common > 0 => stack.push(Open { len: common, ..part }),
                None => {}
            }
        }
        Ok(())
    }
}

/// Adds `part`, the last part of `outer`, to `outer`.
fn joined(outer: Open, part: Open) -> Open {
    let before = if outer.before == part.before { outer.before } else { END };
    Open { before, ..outer }
}
