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
//! Text that repeats itself has few first places, which follow each other again and again. Such a
//! run has a period, so it is one run, too.
//!
//! # Rows
//!
//! ```text
//! runs        at 50..60 from 0..10, at 55..70 from 20..35, at 80..90 from 5..15
//! copies      50..70, 80..90           ranges that overlap or touch are joined
//! spans       0: 0..15, 1: 20..35      so are the ranges that they repeat
//! rows        0..15 span 0 copy 0 │ 20..35 span 1 copy 0 │ 50..70 span 1 copy 1 │ 80..90 span 0 copy 1
//! ```
//!
//! A copy whose windows have their first places in several spans alike belongs to the earliest of these.
//!
//! # Comparing
//!
//! Words of one segment are equal if their ids are. For words of two segments, the id in the other
//! segment is noted when their bytes were compared for the first time, 4 bytes for each word of the
//! dictionary. Each word has one id in a segment, so a pair of other ids is a difference.

use std::ops::Range;

use crate::analytics::task_limits::sort_checked;
use crate::error::{Canceller, Result};

use super::places::{PartAt, Places, Word};

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
    /// Adds the window at `at`, behind all others since the last [`close`](Self::close). It repeats
    /// the window at `from`.
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

    /// Sorts the runs, and joins those that continue each other. Windows are added in several
    /// sorted sequences.
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

/// A row: places of words, the span and the number of the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub words: Range<u64>,
    pub span: u64,
    pub copy: u64,
}

/// Greatest memory for each run while words are compared and rows are made: 32 bytes for its place
/// in the order of comparing, or 32 for the ranges of words that are repeated and 128 for two rows
/// in a vector that grows, and some reserve.
pub(super) const BYTES_PER_RUN: u64 = 208;

/// Returns the rows of `runs`, which are in order, in order of their places. O(runs * log runs).
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled).
pub(super) fn rows_of(runs: &[Run], min_words: u64, canceller: Canceller<'_>) -> Result<Vec<Row>> {
    let source = |run: &Run| {
        let words = run.source_words(min_words);
        (words.start, words.end)
    };
    let mut sources: Vec<(u64, u64)> = runs.iter().map(source).collect();
    sort_checked(&mut sources, |&source| source, canceller)?;
    let spans = joined(sources.into_iter().map(|(start, end)| start..end));
    let mut interrupt = canceller.interrupt();
    let mut num_copies = vec![0u64; spans.len()];
    let mut rows = Vec::with_capacity(2 * spans.len());
    rows.extend(spans.iter().zip(0..).map(|(words, span)| Row { words: words.clone(), span, copy: 0 }));
    let mut runs = runs.iter().peekable();
    while let Some(first) = runs.next() {
        interrupt.check()?;
        let mut words = first.words(min_words);
        let mut shares = vec![(span_for(&spans, first), first.num_windows)];
        while let Some(run) = runs.next_if(|run| run.at <= words.end) {
            words.end = words.end.max(run.words(min_words).end);
            interrupt.check()?;
            shares.push((span_for(&spans, run), run.num_windows));
        }
        let span = largest_share(shares);
        num_copies[span] += 1;
        rows.push(Row { words, span: span as u64, copy: num_copies[span] });
    }
    // The rows of the spans, and those of the copies, are in order already: two runs for a stable
    // sort.
    canceller.check()?;
    rows.sort_by_key(|row| row.words.start);
    Ok(rows)
}

/// Joins ranges, in order of their starts, that overlap or touch.
fn joined(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match all.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => all.push(range),
        }
    }
    all
}

/// Returns the span that has the words which `run` repeats.
fn span_for(spans: &[Range<u64>], run: &Run) -> usize {
    spans.partition_point(|span| span.start <= run.from) - 1
}

/// Returns the span with the largest sum of shares, the earliest of several.
fn largest_share(mut shares: Vec<(usize, u64)>) -> usize {
    shares.sort_unstable();
    let mut best = 0;
    let mut most = 0;
    for shares in shares.chunk_by(|a, b| a.0 == b.0) {
        let sum = shares.iter().map(|&(_, share)| share).sum();
        if sum > most {
            (best, most) = (shares[0].0, sum);
        }
    }
    best
}

/// Number of words that are read at a time.
const CHUNK_WORDS: u64 = 1024;
/// No id was noted yet. Ids are smaller.
const UNKNOWN: u32 = u32::MAX;

/// Comparison of the words of two parts, which may be the same.
#[derive(Debug)]
pub(super) struct Comparison<'a> {
    places: &'a Places,
    min_words: u64,
    later: PartAt<'a>,
    earlier: PartAt<'a>,
    /// For each segment of the later part, the part and segment to which its words were compared
    /// last, and their ids there.
    ids: Vec<((usize, usize), Vec<u32>)>,
    later_words: Vec<Word>,
    earlier_words: Vec<Word>,
}

impl<'a> Comparison<'a> {
    /// Creates the comparison of windows of `min_words` words in two parts.
    pub fn new(places: &'a Places, min_words: u64, later: PartAt<'a>, earlier: PartAt<'a>) -> Self {
        Self {
            places,
            min_words,
            later,
            earlier,
            ids: vec![((usize::MAX, 0), Vec::new()); later.corpus.segments().len()],
            later_words: Vec::new(),
            earlier_words: Vec::new(),
        }
    }

    /// Returns the greatest number of bytes of memory of a comparison of words of `later`: an id
    /// for each word of its dictionaries.
    pub fn max_memory_bytes(later: PartAt<'_>) -> u64 {
        let from_segments = later.corpus.segments().iter().map(|segment| segment.dag.num_words());
        from_segments.map(|num_words| 4 * u64::from(num_words)).sum()
    }

    /// Returns true if the words of `run` are those that it repeats. Behind the first period, each
    /// word must be the one that stands a period before it. Then the windows there are those a
    /// period before.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn is_repeat(&mut self, run: &Run, canceller: Canceller<'_>) -> Result<bool> {
        let words = run.words(self.min_words);
        let source = run.source_words(self.min_words);
        let num_words = source.end - source.start;
        let shifted = words.start + run.period..words.end;
        let [(start, from), (shifted_start, before)] =
            [(words.start, (self.earlier, source.start)), (shifted.start, (self.later, words.start))];
        Ok(self.are_same(start, from, num_words, canceller)?
            && (run.period == run.num_windows
                || self.are_same(shifted_start, before, shifted.end - shifted.start, canceller)?))
    }

    /// Returns true if `num_words` words of the later part, from `at` on, are those of `earlier`
    /// from `source` on.
    fn are_same(
        &mut self,
        at: u64,
        (earlier, source): (PartAt<'a>, u64),
        num_words: u64,
        canceller: Canceller<'_>,
    ) -> Result<bool> {
        let places = self.places;
        let later = self.later;
        let is_one_part = later.index == earlier.index;
        for done in (0..num_words).step_by(CHUNK_WORDS as usize) {
            canceller.check()?;
            let num_words = CHUNK_WORDS.min(num_words - done) as usize;
            places.read_words(later, at + done, num_words, &mut self.later_words);
            places.read_words(earlier, source + done, num_words, &mut self.earlier_words);
            if self.later_words.len() != num_words || self.earlier_words.len() != num_words {
                return Ok(false);
            }
            for at in 0..num_words {
                let word = self.later_words[at];
                let other = self.earlier_words[at];
                let is_same = if is_one_part && word.segment_idx == other.segment_idx {
                    word.id == other.id
                } else {
                    self.have_same_bytes(later, word, earlier, other)
                };
                if !is_same {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns true if two words of different segments are the same.
    fn have_same_bytes(&mut self, later: PartAt<'_>, word: Word, earlier: PartAt<'_>, other: Word) -> bool {
        let (compared_to, ids) = &mut self.ids[word.segment_idx];
        let segment = (earlier.index, other.segment_idx);
        if *compared_to != segment {
            *compared_to = segment;
            ids.clear();
            let num_words = later.corpus.segments()[word.segment_idx].dag.num_words();
            ids.resize(num_words as usize, UNKNOWN);
        }
        let id = &mut ids[word.id as usize];
        if *id == UNKNOWN {
            if bytes_of(later, word) != bytes_of(earlier, other) {
                return false;
            }
            *id = other.id;
        }
        *id == other.id
    }
}

fn bytes_of(part: PartAt<'_>, word: Word) -> &[u8] {
    part.corpus.segments()[word.segment_idx].dictionary.get(word.id)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAYS: Canceller<'static> = Canceller::new(&|| false);

    /// Returns each window of the runs, and its first place.
    fn windows_from(runs: &Runs) -> Vec<(u64, u64)> {
        let for_run = |run: &Run| {
            let Run { at, from, num_windows, period } = *run;
            (0..num_windows).map(move |window| (at + window, from + window % period))
        };
        runs.as_slice().iter().flat_map(for_run).collect()
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
            let mut at = 1_000;
            let mut from = 0;
            for &(step, to, pass) in &steps {
                (at, from) = match step {
                    0 => (at + 2, from + 1),
                    1..4 => (at + 1, to),
                    _ => (at + 1, from + 1),
                };
                windows.push((at, from, pass));
            }
            let mut once = Runs::default();
            let mut thrice = Runs::default();
            windows.iter().for_each(|&(at, from, _)| once.push(at, from));
            for pass in 0..3 {
                let from_pass = windows.iter().filter(|window| window.2 == pass);
                from_pass.for_each(|&(at, from, _)| thrice.push(at, from));
                thrice.close();
                windows.iter().take(9).for_each(|&(at, from, _)| thrice.push(at, from));
                thrice.remove_open();
            }
            once.sort(STAYS).unwrap();
            thrice.sort(STAYS).unwrap();
            let expected: Vec<(u64, u64)> = windows.iter().map(|w| (w.0, w.1)).collect();
            prop_assert_eq!(windows_from(&once), expected.clone());
            prop_assert_eq!(windows_from(&thrice), expected);
        }
    }

    #[test]
    fn neighbouring_runs_are_one_row() {
        let run = |at, from, num_windows| Run { at, from, num_windows, period: num_windows };
        let runs = [run(50, 0, 2), run(55, 20, 7), run(80, 5, 2)];
        let row = |words, span, copy| Row { words, span, copy };
        let expected = [row(0..15, 0, 0), row(20..35, 1, 0), row(50..70, 1, 1), row(80..90, 0, 1)];
        let stays = Canceller::new(&|| false);
        assert_eq!(rows_of(&runs, 9, stays).unwrap(), expected);
        // Ranges that touch are joined, too.
        let runs = [run(50, 0, 1), run(59, 0, 1), run(68, 9, 1), run(78, 0, 1)];
        let rows = rows_of(&runs, 9, stays).unwrap();
        let expected = [row(0..18, 0, 0), row(50..77, 0, 1), row(78..87, 0, 2)];
        assert_eq!(rows, expected);
        assert_eq!(rows_of(&[], 9, stays).unwrap(), []);
    }
}
