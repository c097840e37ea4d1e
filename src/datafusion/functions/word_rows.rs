//! Shared code of functions with a row for each word: the rows that pass the filters, and the traversal that
//! counts words, in EXPLAIN and in the metrics.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewArray, UInt64Array};
use datafusion::arrow::compute::take;
use datafusion::common::stats::Precision;
use datafusion::error::Result;

use crate::planning::{Execution, ScanSpec, selected};
use tadoc::segment::Segment;

/// Number of words between two tests for cancellation.
const CHUNK_LEN: usize = 65_536;

/// Returns an upper bound of the number of distinct words. It is exact for a corpus of one segment.
pub(super) fn num_words(scan: &ScanSpec) -> Precision<usize> {
    let segments = scan.corpora().iter().flat_map(|open| &open.footer.segments);
    Precision::Inexact(segments.map(|segment| segment.num_words as usize).sum())
}

/// Rows of a vocabulary: a range, or the rows that passed a filter.
pub(super) enum Rows {
    Range(Range<usize>),
    Selected(Vec<usize>),
}

impl Rows {
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let (range, selected) = match self {
            Self::Range(range) => (range.clone(), &[][..]),
            Self::Selected(rows) => (0..0, rows.as_slice()),
        };
        range.chain(selected.iter().copied())
    }
}

/// Calls `send` with those words of the rows `all` that pass the filter and with their rows, chunk by chunk,
/// until it returns false. `numbers` makes the one other column that a filter may use.
pub(super) fn for_each_selected(
    run: &mut Execution,
    words: &StringViewArray,
    all: Range<usize>,
    numbers: impl Fn(&Rows) -> Result<ArrayRef>,
    mut send: impl FnMut(&mut Execution, &ArrayRef, Rows) -> Result<bool>,
) -> Result<()> {
    let scan = Arc::clone(&run.scan);
    for start in all.clone().step_by(CHUNK_LEN) {
        let len = CHUNK_LEN.min(all.end - start);
        let chunk: ArrayRef = Arc::new(words.slice(start, len));
        let rows = Rows::Range(start..start + len);
        let mask = scan.mask(len, |column| match column {
            "word" => Ok(Arc::clone(&chunk)),
            _ => numbers(&rows),
        })?;
        let more = match mask {
            None => send(run, &chunk, rows)?,
            Some(mask) => {
                let passed: Vec<usize> = selected(&mask).collect();
                if passed.is_empty() {
                    !run.output.is_done()
                } else {
                    let indices = UInt64Array::from_iter_values(passed.iter().map(|&i| i as u64));
                    let words = take(&chunk, &indices, None)?;
                    send(run, &words, Rows::Selected(passed.iter().map(|i| i + start).collect()))?
                }
            }
        };
        if !more {
            break;
        }
    }
    Ok(())
}

/// Traversal that counts words, for EXPLAIN.
pub(super) const SWEEP: &str = "top_down: weights flow once from the root to the words";

/// Adds the work of a traversal of all rules of `segments` to the metrics.
pub(super) fn record_sweep<'a>(run: &Execution, segments: impl IntoIterator<Item = &'a Arc<Segment>>) {
    let (mut num_rules, mut num_elements) = (0, 0);
    for segment in segments {
        num_rules += segment.dag.grammar().num_rules();
        num_elements += segment.dag.grammar().symbols.len();
    }
    run.counter("rules_visited").add(num_rules);
    run.counter("elements_read").add(num_elements);
    run.counter("logical_bytes").add(run.scan.len_bytes() as usize);
}
