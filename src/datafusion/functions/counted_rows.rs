//! Rows of sequences of words and their counts, which the cores, a device or workers have counted.
//!
//! ```text
//! cores    parts of rows ───────┐                    ┌─▶ columns of texts
//! device   slices of a table ───┼─▶ CountedRows ─────┤
//! workers  merged rows ─────────┘                    └─▶ parcels, if they are added up elsewhere
//! ```
//!
//! A function says how it counts and how a column is made ([`CountedTask`]). Rows are sent while others are still
//! counted. Filters on counts run before texts are made.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewArray};
use datafusion::error::Result;

use super::parcels::ParcelSender;
use super::searching::finished;
use super::sequence_rows::{MadeRows, rows_at_once, send_part, send_share, task_memory_bytes};
use crate::corpora::LoadedCorpus;
use crate::errors::{core_error, datafusion_error};
use crate::planning::Execution;
use crate::planning::answers::{SequenceSlice, SequenceTable};
use tadoc::analytics::{
    Cooccurrences, Fold, MergedRows, Packed, ParcelPacker, SequenceCounts, TaskLimits, Traversal, Vocabulary,
    for_each_in_order,
};

/// Sequences of words and their counts.
pub(super) trait CountedRows {
    /// Returns the number of rows.
    fn num_rows(&self) -> usize;

    /// Returns the words of `row` in order.
    fn words(&self, row: usize) -> impl ExactSizeIterator<Item = u32> + '_;

    /// Returns the count of `row`.
    fn count(&self, row: usize) -> u64;

    /// Packs all rows.
    fn packed(&self, packer: &ParcelPacker) -> Vec<Packed> {
        packer.pack((0..self.num_rows()).map(|row| (self.words(row), self.count(row))))
    }
}

impl CountedRows for SequenceCounts {
    fn num_rows(&self) -> usize {
        self.len()
    }

    fn words(&self, row: usize) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.sequences().words(row)
    }

    fn count(&self, row: usize) -> u64 {
        self.counts()[row]
    }

    fn packed(&self, packer: &ParcelPacker) -> Vec<Packed> {
        packer.pack_sequences(self.sequences(), self.counts())
    }
}

impl CountedRows for Cooccurrences {
    fn num_rows(&self) -> usize {
        self.len()
    }

    fn words(&self, row: usize) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.pairs().words(row)
    }

    fn count(&self, row: usize) -> u64 {
        self.counts()[row]
    }

    fn packed(&self, packer: &ParcelPacker) -> Vec<Packed> {
        packer.pack_sequences(self.pairs(), self.counts())
    }
}

impl CountedRows for SequenceSlice {
    fn num_rows(&self) -> usize {
        self.len()
    }

    fn words(&self, row: usize) -> impl ExactSizeIterator<Item = u32> + '_ {
        SequenceSlice::words(self, row)
    }

    fn count(&self, row: usize) -> u64 {
        self.counts()[row]
    }
}

impl CountedRows for MergedRows {
    fn num_rows(&self) -> usize {
        self.counts.len()
    }

    fn words(&self, row: usize) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.words_of(row)
    }

    fn count(&self, row: usize) -> u64 {
        self.counts[row]
    }
}

/// A function that counts sequences of words.
pub(super) trait CountedTask: Sync {
    /// A part of the rows that the cores count.
    type Part: CountedRows + Send;

    /// Name of its memory in messages.
    const CONSUMER: &str;

    /// Returns the number of words of a sequence.
    fn num_words(&self) -> usize;

    /// Returns the fold of the words.
    fn fold(&self) -> &Fold;

    /// Returns the rows that a device counts, if one is chosen.
    ///
    /// # Errors
    /// The errors of the device, if it was demanded.
    fn table(&self, run: &Execution, vocabulary: &Arc<Vocabulary>) -> Result<Option<SequenceTable>>;

    /// Counts part by part. Threads pass each part to `make`, and what it makes goes to `take` in order, with the
    /// bytes that the task holds, until it returns false.
    ///
    /// # Errors
    /// The errors of counting and of `take`.
    fn count<T: Send>(
        &self,
        vocabulary: Arc<Vocabulary>,
        traversal: Traversal,
        limits: TaskLimits<'_>,
        make: impl Fn(Self::Part) -> T + Send + Sync,
        take: impl FnMut(T, usize) -> tadoc::Result<bool>,
    ) -> tadoc::Result<()>;

    /// Makes the column `name` of the rows at `places`. Their words are places in `words`.
    ///
    /// # Errors
    /// An error for an unknown column, or for texts that Arrow cannot address.
    fn column(
        &self,
        name: &str,
        words: &StringViewArray,
        rows: &impl CountedRows,
        places: &[usize],
    ) -> Result<ArrayRef>;
}

/// Counts the sequences of `task` and sends them, as texts or as parcels.
///
/// # Errors
/// The errors of counting, and errors if memory is short.
pub(super) fn send_counted(task: &impl CountedTask, run: Execution, loaded: &LoadedCorpus) -> Result<()> {
    let vocabulary = run.vocabulary(loaded, task.fold())?;
    let table = run.shared.once(|| task.table(&run, &vocabulary))?;
    if run.scan.parcels.is_some() {
        send_packed(task, run, vocabulary, table.as_ref().as_ref())
    } else {
        let words = loaded.words(task.fold())?;
        send_texts(task, run, vocabulary, &words, table.as_ref().as_ref())
    }
}

/// A part of the counted rows.
enum Counted<P> {
    /// Finished rows.
    Made(Result<MadeRows>),
    /// Sequences that are too many or too long for all their rows to be held at once.
    Part(P),
}

fn send_texts<T: CountedTask>(
    task: &T,
    mut run: Execution,
    vocabulary: Arc<Vocabulary>,
    words: &StringViewArray,
    table: Option<&SequenceTable>,
) -> Result<()> {
    let scan = Arc::clone(&run.scan);
    if let Some(table) = table {
        return send_share(&mut run, table.num_slices(), |at| {
            let slice = table.slice(at).map_err(datafusion_error)?;
            MadeRows::passing(&scan, 0..slice.len(), |name, places| task.column(name, words, &slice, places))
        });
    }
    if run.partition > 0 {
        return Ok(());
    }
    let memory_bytes = task_memory_bytes(&run);
    let traversal = scan.options.traversal;
    let reservation = run.reservation(T::CONSUMER);
    let reader = run.output.canceller();
    let is_cancelled = || reader.is_closed();
    let limits = TaskLimits { max_memory_bytes: memory_bytes, is_cancelled: &is_cancelled };
    let rows_at_once = rows_at_once(task.num_words());
    let passing = |part: &T::Part, rows: Range<usize>| {
        MadeRows::passing(&scan, rows, |name, places| task.column(name, words, part, places))
    };
    let make = |part: T::Part| match part.num_rows() {
        num_rows if num_rows <= rows_at_once => Counted::Made(passing(&part, 0..num_rows)),
        _ => Counted::Part(part),
    };
    let take = |counted: Counted<T::Part>, held_bytes| match counted {
        Counted::Made(rows) => send_part(&mut run, &reservation, rows, held_bytes),
        Counted::Part(part) => {
            for start in (0..part.num_rows()).step_by(rows_at_once) {
                let rows = passing(&part, start..part.num_rows().min(start + rows_at_once));
                if !send_part(&mut run, &reservation, rows, held_bytes)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    };
    finished(Ok(()), task.count(vocabulary, traversal, limits, make, take))
}

fn send_packed<T: CountedTask>(
    task: &T,
    mut run: Execution,
    vocabulary: Arc<Vocabulary>,
    table: Option<&SequenceTable>,
) -> Result<()> {
    let sender = ParcelSender::new(&run, &vocabulary)?;
    let memory_bytes = task_memory_bytes(&run);
    let traversal = run.scan.options.traversal;
    let reader = run.output.canceller();
    let is_cancelled = || reader.is_closed();
    let mut send = |chunks: Vec<Packed>, held_bytes| sender.send(&mut run, &chunks, held_bytes).map_err(core_error);
    if let Some(table) = table {
        let pack = |at: usize| Ok(table.slice(at)?.packed(sender.packer()));
        let send = |chunks: tadoc::Result<Vec<Packed>>| send(chunks?, 0);
        for_each_in_order(table.num_slices(), pack, send).map_err(datafusion_error)?;
    } else {
        let limits = TaskLimits { max_memory_bytes: memory_bytes, is_cancelled: &is_cancelled };
        let pack = |part: T::Part| part.packed(sender.packer());
        finished(Ok(()), task.count(vocabulary, traversal, limits, pack, send))?;
    }
    sender.send_words(&mut run)
}
