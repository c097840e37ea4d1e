//! Shared code of functions over sequences of words: memory, filters on counts, and texts.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewBuilder};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryReservation};

use crate::errors::{core_error, datafusion_error};
use crate::planning::signature::Signature;
use crate::planning::{Execution, ScanSpec, selected};
use tadoc::analytics::for_each_in_order;
use tadoc::text::TokenizerProfile;

/// Name of the column on which filters are claimed, beside `doc_id`.
pub(super) const COUNT: &str = "count";
/// Number of rows between two tests for cancellation.
const CHUNK_ROWS: usize = 65_536;
/// Largest number of rows that one thread makes at a time, and of words in their sequences; the
/// smaller one decides. It is twice the usual size of a part of counted sequences, which is made as
/// a whole.
const PART_ROWS: usize = 8192;
const PART_WORDS: usize = 1 << 18;

/// Returns the bytes of memory that a task may take: the rest of the session's pool, at most
/// `tadoc.max_memory_bytes`.
pub(super) fn task_memory_bytes(run: &Execution) -> u64 {
    let pool = &run.runtime.memory_pool;
    let left = match pool.memory_limit() {
        MemoryLimit::Finite(limit) => limit.saturating_sub(pool.reserved()) as u64,
        MemoryLimit::Infinite | MemoryLimit::Unknown => u64::MAX,
    };
    left.min(run.scan.options.max_memory_bytes)
}

/// Refuses an argument below `least`.
pub(super) fn check_at_least(signature: &Signature, name: &str, got: usize, least: usize) -> Result<()> {
    if got < least {
        return Err(signature.error(format!("{name}: got {got}, expected {least} or more")));
    }
    Ok(())
}

/// Converts an argument to a length of something in memory.
pub(super) fn length(number: Option<u64>, default: usize) -> usize {
    number.map_or(default, |number| usize::try_from(number).unwrap_or(usize::MAX))
}

/// Rows that are ready to be sent: projected columns of one length.
pub(super) struct MadeRows {
    columns: Vec<ArrayRef>,
    num_rows: usize,
}

impl MadeRows {
    /// Makes the rows of `range` that pass the filters. `column` makes some rows of one column.
    pub(super) fn passing(
        scan: &ScanSpec,
        range: Range<usize>,
        column: impl Fn(&str, &[usize]) -> Result<ArrayRef>,
    ) -> Result<Self> {
        let mut rows: Vec<usize> = range.collect();
        if let Some(mask) = scan.mask(rows.len(), |name| column(name, &rows))? {
            rows = selected(&mask).map(|at| rows[at]).collect();
        }
        Self::from_columns(scan, &rows, column)
    }

    /// Makes `rows`. `column` makes each column.
    pub(super) fn from_columns(
        scan: &ScanSpec,
        rows: &[usize],
        column: impl Fn(&str, &[usize]) -> Result<ArrayRef>,
    ) -> Result<Self> {
        let columns = match rows {
            [] => Vec::new(),
            _ => scan.projected().map(|name| column(name, rows)).collect::<Result<_>>()?,
        };
        Ok(Self { columns, num_rows: rows.len() })
    }

    /// Sends the rows. Returns false if the function should stop.
    pub(super) fn send(self, run: &mut Execution) -> Result<bool> {
        match self.num_rows {
            0 => Ok(!run.output.is_done()),
            num_rows => run.output.send_columns(self.columns, num_rows),
        }
    }
}

/// Sends a part of the rows of a task that holds `held_bytes`. Returns false if the task should
/// stop.
pub(super) fn send_part(
    run: &mut Execution,
    reservation: &MemoryReservation,
    part: Result<MadeRows>,
    held_bytes: usize,
) -> tadoc::Result<bool> {
    let sent = reservation.try_resize(held_bytes).and_then(|()| part?.send(run));
    sent.map_err(core_error)
}

/// Returns the largest number of rows with sequences of `num_words` words that are made at once.
pub(super) fn rows_at_once(num_words: usize) -> usize {
    (PART_WORDS / num_words.max(1)).max(1)
}

/// Sends `num_rows` rows with sequences of `num_words` words each. `make` makes them range by
/// range, in parallel. Returns false if the function should stop.
pub(super) fn send_in_order(
    run: &mut Execution,
    num_rows: usize,
    num_words: usize,
    make: impl Fn(Range<usize>) -> Result<MadeRows> + Send + Sync,
) -> Result<bool> {
    let part_len = rows_at_once(num_words).min(PART_ROWS);
    let compute = |at: usize| make(at * part_len..num_rows.min((at + 1) * part_len));
    let send = |made: Result<MadeRows>| made.and_then(|made| made.send(run)).map_err(core_error);
    for_each_in_order(num_rows.div_ceil(part_len), compute, send).map_err(datafusion_error)
}

/// Sends the run's share of `num_parts` parts of rows that `make` makes. If there is only one
/// partition, parts are made in parallel.
pub(super) fn send_share(
    run: &mut Execution,
    num_parts: usize,
    make: impl Fn(usize) -> Result<MadeRows> + Send + Sync,
) -> Result<()> {
    let time = run.time("time_making_rows");
    let make = |at: usize| {
        let _timer = time.timer();
        make(at)
    };
    let num_partitions = run.plan.num_partitions;
    if num_partitions == 1 {
        let send = |made: Result<MadeRows>| made.and_then(|m| m.send(run)).map_err(core_error);
        return for_each_in_order(num_parts, make, send).map(drop).map_err(datafusion_error);
    }
    let share = |partition: usize| num_parts * partition / num_partitions;
    for at in share(run.partition)..share(run.partition + 1) {
        if !make(at)?.send(run)? {
            break;
        }
    }
    Ok(())
}

/// Calls `send` with the rows that pass the filter, at most a batch at a time, until it returns
/// false. `column` makes some rows of a column that the filter uses.
pub(super) fn for_each_passing(
    run: &mut Execution,
    num_rows: usize,
    column: impl Fn(&str, &[usize]) -> Result<ArrayRef>,
    mut send: impl FnMut(&mut Execution, &[usize]) -> Result<bool>,
) -> Result<()> {
    let scan: Arc<ScanSpec> = Arc::clone(&run.scan);
    for start in (0..num_rows).step_by(CHUNK_ROWS) {
        let end = num_rows.min(start + CHUNK_ROWS);
        let mut rows: Vec<usize> = (start..end).collect();
        if let Some(mask) = scan.mask(rows.len(), |name| column(name, &rows))? {
            rows = selected(&mask).map(|at| start + at).collect();
        }
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

/// Returns true if the texts of sequences ascend in byte order, given that their words do.
///
/// If one word is a prefix of another, the blank behind the shorter word must be below the next
/// byte of the longer one. No word of the profiles `auto` and `word` has a byte up to the blank; this is
/// checked when a segment is read. Words of `whitespace` may have control characters. In words of
/// `uax29`, white space can stand before a joiner.
pub(super) fn do_texts_ascend(scan: &ScanSpec, num_words: usize) -> bool {
    num_words == 1 || matches!(scan.source.profile(), TokenizerProfile::Auto | TokenizerProfile::Word)
}

/// Returns the texts of `rows`. `append` appends the text of a row.
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
