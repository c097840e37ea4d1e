//! The function `ranked_inverted_index(corpus [, n] [, fold])`: the documents of each sequence of n
//! words, by falling count.
//!
//! Filters on `doc_id`, `count` and `rank` run before texts are made, so that `WHERE rank <= 3`
//! makes few texts. If all filters are on `doc_id` and no rank is asked for, they choose the
//! documents before counting. Then rows of portions are put behind one another.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{ExprFunctionExt, LogicalPlanBuilder, cast, col};
use futures::future::BoxFuture;

use super::doc_rows::{DOC_ID, all_selected_documents};
use super::parcels::{ParcelIds, ParcelSender};
use super::searching::finished;
use super::sequence_count::SequenceCount;
use super::sequence_rows::{
    COUNT, MadeRows, check_at_least, do_texts_ascend, length, send_in_order, send_share, task_memory_bytes,
};
use super::sequence_texts::{sequence_texts, texts_of_rows};
use super::strings::{int64, shown_fold};
use super::word_count::WordCount;
use crate::corpora::LoadedCorpus;
use crate::corpora::memory::Uses;
use crate::errors::{core_error, datafusion_error};
use crate::placement::Task;
use crate::planning::answers;
use crate::planning::function::{
    BoundFunction, Definition, Facts, Merge, ParcelRows, PortionRows, Prepared, TableFunction, Walk,
};
use crate::planning::parcels::Parcels;
use crate::planning::signature::{self, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::analytics::{self, DocSelection, Fold, MergedRows, TaskLimits, TraversalTask};

/// The function `ranked_inverted_index` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "ranked_inverted_index",
        arguments: &[signature::CORPUS, signature::NUM_WORDS, signature::FOLD, signature::VERSION, signature::WHERE],
        columns: &[
            signature::SEQUENCE,
            signature::DOC_ID.claimed(),
            signature::integer("count", "how often it occurs in the document").claimed(),
            signature::integer("rank", "from 1: the document that repeats it most").claimed(),
        ],
        summary: "the documents of each sequence of n words, those that repeat it most first",
    },
    bind: |arguments, _| Arc::new(RankedInvertedIndex::new(arguments.integer("n"), arguments.fold("fold"))),
};

#[derive(Debug)]
pub(crate) struct RankedInvertedIndex {
    num_words: usize,
    fold: Fold,
}

impl RankedInvertedIndex {
    pub(crate) fn new(num_words: Option<u64>, fold: Fold) -> Self {
        Self { num_words: length(num_words, 3), fold }
    }
}

impl TableFunction for RankedInvertedIndex {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let n = ("n", self.num_words.to_string());
        [n].into_iter().chain(shown_fold(&self.fold)).collect()
    }

    fn prepare(&self, _scan: &ScanSpec) -> Result<Prepared> {
        check_at_least(self.signature(), "n", self.num_words, 1)?;
        Ok(Prepared::default())
    }

    fn facts(&self, scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let is_part = scan.is_filtered() && !ranks_matter(scan);
        let num_words = self.num_words;
        let is_folded = self.fold != Fold::NONE;
        let ascend = do_texts_ascend(scan, num_words);
        Facts {
            ordering: if ascend { &["sequence", "rank"] } else { &[] },
            row_bytes: scan.words_bytes(num_words),
            can_spread: !is_folded,
            task: Some(Ok(Task::RankedInvertedIndex { num_words, is_folded, is_part })),
            uses: Uses::Text,
            parcels: Some(ParcelRows::Task(TraversalTask::DocumentSequences, num_words)),
            merge: if scan.uses("rank") { Merge::Combined } else { Merge::Behind },
            walk: Some(Walk::ForSequences(TraversalTask::DocumentSequences, num_words)),
            ..Facts::default()
        }
    }

    fn combine(&self, rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        let num_words = Some(self.num_words as u64);
        let counts = SequenceCount::new(num_words, true, self.fold.clone());
        let columns = ["sequence", DOC_ID, COUNT];
        let counts = rows.for_all(Arc::new(counts), &columns)?;
        let most_first = vec![col(COUNT).sort(false, false), col(DOC_ID).sort(true, false)];
        let numbered = row_number().partition_by(vec![col("sequence")]);
        let place = numbered.order_by(most_first).build()?.alias("place");
        let rank = cast(col("place"), DataType::Int64).alias("rank");
        counts.window([place])?.project(columns.map(col).into_iter().chain([rank]))
    }

    fn merged_words(&self) -> Option<usize> {
        Some(self.num_words)
    }

    fn words_of_rows(&self) -> Option<BoundFunction> {
        Some(Arc::new(WordCount::new(self.fold.clone())))
    }

    fn merged_column(
        &self,
        name: &str,
        words: &StringViewArray,
        rows: &MergedRows,
        places: &[usize],
    ) -> Result<ArrayRef> {
        if rows.ranks.len() != rows.counts.len() {
            return internal_err!("packed rows of {} have no documents", self.signature().name);
        }
        match name {
            "sequence" => texts_of_rows(words, self.num_words, places.iter().map(|&row| rows.words_of(row))),
            DOC_ID => int64(places.iter().flat_map(|&row| rows.ids_of(row)).copied()),
            COUNT => int64(places.iter().map(|&row| rows.counts[row])),
            "rank" => int64(places.iter().map(|&row| rows.ranks[row])),
            other => no_column(other),
        }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        run.with_corpus(move |run, loaded| match run.scan.parcels.clone() {
            None => send_rows(run, loaded, &self),
            Some(parcels) => send_parcels(run, loaded, &self, &parcels),
        })
    }
}

/// Sends sequences and their documents as packed rows. They are ranked where they are merged.
fn send_parcels(
    mut run: Execution,
    loaded: &LoadedCorpus,
    asked: &RankedInvertedIndex,
    parcels: &Parcels,
) -> Result<()> {
    let vocabulary = run.vocabulary(loaded, &asked.fold)?;
    let docs = DocSelection::all(&loaded.corpus);
    let sender = ParcelSender::new(&run, &vocabulary)?;
    let ids = ParcelIds::new(&run.scan, parcels);
    let memory_bytes = task_memory_bytes(&run);
    let traversal = run.scan.options.traversal;
    let on_device = answers::ranked_inverted_index(&run, &vocabulary, &docs, asked.num_words)?;
    let reader = run.output.canceller();
    let mut send = |index: analytics::RankedInvertedIndex| {
        let pack = |rows| sender.packer().pack_ranks(packed_rows(&index, &ids, rows));
        sender.send_ranges(&mut run, index.len(), index.memory_bytes(), pack).map_err(core_error)
    };
    if let Some(index) = on_device {
        send(index).map_err(datafusion_error)?;
    } else {
        let is_cancelled = || reader.is_closed();
        let limits = TaskLimits { max_memory_bytes: memory_bytes, is_cancelled: &is_cancelled };
        let counted =
            analytics::RankedInvertedIndex::in_ranges(vocabulary, &docs, asked.num_words, traversal, limits, send);
        finished(Ok(()), counted)?;
    }
    sender.send_words(&mut run)
}

/// Returns the words of `rows` of `index`, and their documents in the whole corpus, ascending, with their counts.
fn packed_rows<'a>(
    index: &'a analytics::RankedInvertedIndex,
    ids: &'a ParcelIds,
    rows: Range<usize>,
) -> impl Iterator<Item = (impl Iterator<Item = u32> + 'a, impl ExactSizeIterator<Item = (u64, u64)> + use<>)> {
    rows.map(|row| {
        let entries = index.entries_of(row).map(|at| (index.doc_ids()[at], index.counts()[at]));
        let mut entries: Vec<(u64, u64)> = entries.collect();
        entries.sort_unstable();
        let in_corpus = ids.in_corpus(entries.iter().map(|&(id, _)| id));
        let entries: Vec<(u64, u64)> = in_corpus.zip(entries.iter().map(|&(_, count)| count)).collect();
        (index.sequences().words(row), entries.into_iter())
    })
}

fn send_rows(mut run: Execution, loaded: &LoadedCorpus, asked: &RankedInvertedIndex) -> Result<()> {
    let num_words = asked.num_words;
    let fold = &asked.fold;
    let vocabulary = loaded.vocabulary(fold)?;
    let words = &loaded.words(fold)?;
    if *fold == Fold::NONE && run.plan.placement.is_on_device() {
        let rank = || {
            let docs = documents(&run, loaded)?;
            answers::ranked_table(&run, &vocabulary, &docs, num_words)
        };
        if let Some(table) = run.shared.once(rank)?.as_ref() {
            let scan = run.scan.clone();
            return send_share(&mut run, table.num_slices(), |at| {
                let slice = table.slice(at);
                MadeRows::passing(&scan, 0..slice.len(), |column, rows| match column {
                    "sequence" => texts_of_rows(words, num_words, rows.iter().map(|&row| slice.words(row))),
                    DOC_ID => int64(rows.iter().map(|&row| slice.doc_ids()[row])),
                    COUNT => int64(rows.iter().map(|&row| slice.counts()[row])),
                    "rank" => int64(rows.iter().map(|&row| slice.ranks()[row])),
                    other => no_column(other),
                })
            });
        }
        if run.partition > 0 {
            return Ok(());
        }
    }
    let docs = documents(&run, loaded)?;
    let memory_bytes = task_memory_bytes(&run);
    let traversal = run.scan.options.traversal;
    let on_device = match fold {
        &Fold::NONE => None,
        _ => answers::ranked_inverted_index(&run, &vocabulary, &docs, num_words)?,
    };
    let reservation = run.reservation("RankedInvertedIndex");
    let reader = run.output.canceller();
    let mut send = |index: analytics::RankedInvertedIndex| {
        let held_bytes = index.memory_bytes() + 4 * index.doc_ids().len();
        let sent = reservation.try_resize(held_bytes);
        sent.and_then(|()| send_index(&mut run, &index, words)).map_err(core_error)
    };
    if let Some(index) = on_device {
        return send(index).map(drop).map_err(datafusion_error);
    }
    type Index = analytics::RankedInvertedIndex;
    let is_cancelled = || reader.is_closed();
    let limits = TaskLimits { max_memory_bytes: memory_bytes, is_cancelled: &is_cancelled };
    finished(Ok(()), Index::in_ranges(vocabulary, &docs, num_words, traversal, limits, send))
}

/// Returns the documents that are counted.
fn documents(run: &Execution, loaded: &LoadedCorpus) -> Result<DocSelection> {
    let docs = if ranks_matter(&run.scan) { DocSelection::all(&loaded.corpus) } else { all_selected_documents(run)? };
    run.counter("documents_counted").add(docs.len());
    Ok(docs)
}

/// Returns true if documents that a filter drops affect the rows. They affect ranks. Filters on
/// counts can drop documents only after counting.
fn ranks_matter(scan: &ScanSpec) -> bool {
    scan.uses("rank") || scan.filters.stages().any(|stage| !scan.names_in(stage).eq([DOC_ID]))
}

/// Sends the rows of some sequences. Returns false if the function should stop.
fn send_index(run: &mut Execution, index: &analytics::RankedInvertedIndex, words: &StringViewArray) -> Result<bool> {
    // The sequence of each row.
    let sequences: Vec<u32> = (0..index.len()).flat_map(|row| index.entries_of(row).map(move |_| row as u32)).collect();
    let sequence = |row: usize| sequences[row] as usize;
    let rank = |&row: &usize| (row - index.entries_of(sequence(row)).start + 1) as u64;
    let scan = run.scan.clone();
    send_in_order(run, sequences.len(), index.sequences().num_words(), |range| {
        MadeRows::passing(&scan, range, |column, rows| match column {
            "sequence" => {
                let rows: Vec<usize> = rows.iter().map(|&row| sequence(row)).collect();
                sequence_texts(index.sequences(), words, &rows)
            }
            DOC_ID => int64(rows.iter().map(|&row| index.doc_ids()[row])),
            COUNT => int64(rows.iter().map(|&row| index.counts()[row])),
            "rank" => int64(rows.iter().map(rank)),
            other => no_column(other),
        })
    })
}
