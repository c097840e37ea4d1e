//! Rows: the stretches of words that runs cover, and the first copies of their words.
//!
//! ```text
//! runs        at 50..60 from 0..10, at 55..70 from 20..35, at 80..90 from 5..15
//! copies      50..70, 80..90           ranges that overlap or touch are joined
//! spans       0: 0..15, 1: 20..35      so are the ranges that they repeat
//! rows        0..15 span 0 copy 0 │ 20..35 span 1 copy 0 │ 50..70 span 1 copy 1 │ 80..90 span 0 copy 1
//! ```
//!
//! A copy belongs to the span that has the first places of most of its windows, or to the earliest of
//! these.

use std::ops::Range;

use super::runs::Run;
use crate::analytics::checked_sort::sort_checked;
use crate::error::Result;
use crate::interrupt::Canceller;

/// A row: places of words, the span and the number of the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub words: Range<u64>,
    pub span: u64,
    pub copy: u64,
}

/// Greatest memory for each run while words are compared and rows are made: 32 bytes for its place in
/// the order of comparing, or 32 for the ranges of words that are repeated and 128 for two rows in a
/// vector that grows, and some reserve.
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
    rows.extend(spans.iter().zip(0..).map(|(words, span)| Row {
        words: words.clone(),
        span,
        copy: 0,
    }));
    let mut runs = runs.iter().peekable();
    while let Some(first) = runs.next() {
        interrupt.check()?;
        let mut words = first.words(min_words);
        let mut shares = vec![(span_of(&spans, first), first.num_windows)];
        while let Some(run) = runs.next_if(|run| run.at <= words.end) {
            words.end = words.end.max(run.words(min_words).end);
            interrupt.check()?;
            shares.push((span_of(&spans, run), run.num_windows));
        }
        let span = largest_share(shares);
        num_copies[span] += 1;
        rows.push(Row { words, span: span as u64, copy: num_copies[span] });
    }
    // The rows of the spans, and those of the copies, are in order already: two runs for a stable sort.
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
fn span_of(spans: &[Range<u64>], run: &Run) -> usize {
    spans.partition_point(|span| span.start <= run.from) - 1
}

/// Returns the span with the largest sum of shares, the earliest of several.
fn largest_share(mut shares: Vec<(usize, u64)>) -> usize {
    shares.sort_unstable();
    let (mut best, mut most) = (0, 0);
    for shares in shares.chunk_by(|a, b| a.0 == b.0) {
        let sum = shares.iter().map(|&(_, share)| share).sum();
        if sum > most {
            (best, most) = (shares[0].0, sum);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

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
