//! What functions over sequences of words share: memory, filters on counts, and texts.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewBuilder};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryLimit;

use crate::sql::scan::{Run, Scan, selected};
use crate::sql::signature::Signature;

use super::strings::int64;

/// The column that filters are taken over on, beside `doc_id`.
pub(super) const COUNT: &str = "count";
/// Rows looked at between two tests for cancellation.
const CHUNK_ROWS: usize = 65_536;

/// Memory that a task may take, in bytes: what the session's pool has left, at most
/// `tadoc.max_memory_bytes`.
pub(super) fn task_memory_bytes(run: &Run) -> u64 {
    let pool = &run.runtime.memory_pool;
    let left = match pool.memory_limit() {
        MemoryLimit::Finite(limit) => limit.saturating_sub(pool.reserved()) as u64,
        MemoryLimit::Infinite | MemoryLimit::Unknown => u64::MAX,
    };
    left.min(run.scan.options.max_memory_bytes)
}

/// Refuses an argument below `least`.
pub(super) fn check_at_least(
    signature: &Signature,
    name: &str,
    got: usize,
    least: usize,
) -> Result<()> {
    if got < least {
        return Err(signature.error(format!("{name}: got {got}, expected {least} or more")));
    }
    Ok(())
}

/// An argument as a length of something in memory.
pub(super) fn length(number: Option<u64>, default: usize) -> usize {
    number.map_or(default, |number| usize::try_from(number).unwrap_or(usize::MAX))
}

/// [`for_each_passing`] of rows that have `counts`, on which alone there is a filter.
pub(super) fn for_each_counted(
    run: &mut Run,
    counts: &[u64],
    send: impl FnMut(&mut Run, &[usize]) -> Result<bool>,
) -> Result<()> {
    let count = |_, rows: Range<usize>| int64(counts[rows].iter().copied());
    for_each_passing(run, counts.len(), count, send)
}

/// Calls `send` with the rows that pass the filter, as many at once as go into a batch, until it
/// answers false. `column` makes some rows of a column that the filter looks at.
pub(super) fn for_each_passing(
    run: &mut Run,
    num_rows: usize,
    column: impl Fn(usize, Range<usize>) -> Result<ArrayRef>,
    mut send: impl FnMut(&mut Run, &[usize]) -> Result<bool>,
) -> Result<()> {
    let scan: Arc<Scan> = Arc::clone(&run.scan);
    for start in (0..num_rows).step_by(CHUNK_ROWS) {
        let end = num_rows.min(start + CHUNK_ROWS);
        let mask = scan.mask(end - start, |position| column(position, start..end))?;
        let rows: Vec<usize> = match mask {
            None => (start..end).collect(),
            Some(mask) => selected(&mask).map(|i| start + i).collect(),
        };
        if run.output.is_done() {
            return Ok(());
        }
        for rows in rows.chunks(run.output.batch_size()) {
            if !send(run, rows)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The texts of `rows`, which `append` writes.
pub(super) fn texts(
    rows: impl ExactSizeIterator<Item = usize>,
    append: impl Fn(usize, &mut String),
) -> Result<ArrayRef> {
    let mut builder = StringViewBuilder::with_capacity(rows.len());
    let mut text = String::new();
    for row in rows {
        text.clear();
        append(row, &mut text);
        builder.try_append_value(&text)?;
    }
    Ok(Arc::new(builder.finish()))
}
