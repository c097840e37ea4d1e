//! The function `inverted_index(corpus [, fold])`: the documents of each word.
//!
//! Both traversals of the papers are implemented and can be forced with `tadoc.traversal`. EXPLAIN
//! shows the choice for the segments and its reason, or that no rules are visited because segments
//! keep the words of documents. Filters on `word` and `doc_count` run over the dictionary, so that
//! lists are made only for the words that pass.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, StringViewArray};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::LogicalPlanBuilder;
use futures::future::BoxFuture;

use super::doc_rows::{Rows, for_each_selected, merged_words_at, num_words, record_sweep};
use super::parcels::{ParcelIds, ParcelSender};
use super::strings::{int64, lists, shown_fold};
use super::word_count::WordCount;
use crate::corpora::LoadedCorpus;
use crate::corpora::memory::Uses;
use crate::errors::datafusion_error;
use crate::placement::Task;
use crate::planning::function::{
    BoundFunction, Definition, Facts, Merge, ParcelRows, PortionRows, Prepared, TableFunction, Walk,
};
use crate::planning::parcels::Parcels;
use crate::planning::signature::{self, ColumnKind, Signature};
use crate::planning::{Execution, ScanSpec, answers, no_column};
use tadoc::analytics::{self, Fold, MergedRows, Traversal, TraversalTask, choose_traversal};
use tadoc::segment::{Dag, Segment};

/// Largest number of document ids of one batch: 32 MiB.
const MAX_IDS: usize = 1 << 22;

/// The function `inverted_index` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "inverted_index",
        arguments: &[signature::CORPUS, signature::FOLD, signature::VERSION, signature::WHERE],
        columns: &[
            signature::WORD.claimed(),
            signature::integer("doc_count", "number of documents that hold it").claimed(),
            signature::column("doc_ids", ColumnKind::IntegerList, "those documents, ascending"),
        ],
        summary: "the documents of each word, in byte order of word",
    },
    bind: |arguments, _| Arc::new(InvertedIndex::new(arguments.fold("fold"))),
};

#[derive(Debug, Clone)]
pub(crate) struct InvertedIndex {
    fold: Fold,
}

impl InvertedIndex {
    pub(crate) fn new(fold: Fold) -> Self {
        Self { fold }
    }
}

impl TableFunction for InvertedIndex {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        shown_fold(&self.fold).into_iter().collect()
    }

    fn facts(&self, scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let has_lists = needs_lists(scan);
        let task = Task::InvertedIndex { is_folded: self.fold != Fold::NONE };
        Facts {
            ordering: &["word"],
            num_rows: num_words(scan),
            task: Some(if has_lists { Ok(task) } else { Err("no documents are asked for") }),
            row_bytes: if scan.uses("doc_ids") { scan.list_bytes() } else { 0 },
            uses: Uses::Text,
            parcels: has_lists.then_some(ParcelRows::Task(TraversalTask::InvertedIndex, 2)),
            merge: Merge::JoinedLists,
            walk: Some(if has_lists {
                Walk::ForSegments(|segment| choose_traversal(segment))
            } else {
                Walk::Only("none: words are read from the dictionary")
            }),
            ..Facts::default()
        }
    }

    fn combine(&self, rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        let scan = rows.scan();
        let lists = ["doc_count", "doc_ids"].into_iter().filter(|name| scan.uses(name));
        let columns: Vec<&str> = std::iter::once("word").chain(lists).collect();
        rows.for_all(Arc::new(self.clone()), &columns)
    }

    fn merged_words(&self) -> Option<usize> {
        Some(1)
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
        match name {
            "word" => merged_words_at(words, rows, places),
            "doc_count" => int64(places.iter().map(|&row| rows.counts[row])),
            "doc_ids" => {
                let ids = places.iter().flat_map(|&row| rows.ids_of(row).iter().map(|&id| id as i64)).collect();
                let mut end = 0;
                let ends = places.iter().map(|&row| {
                    end += rows.ids_of(row).len();
                    end
                });
                lists(ids, ends)
            }
            other => no_column(other),
        }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        run.with_corpus(move |run, loaded| match run.scan.parcels.clone() {
            None => send_rows(run, loaded, &self.fold),
            Some(parcels) => send_parcels(run, loaded, &self.fold, &parcels),
        })
    }
}

fn send_rows(mut run: Execution, loaded: &LoadedCorpus, fold: &Fold) -> Result<()> {
    let reservation = run.reservation("InvertedIndex");
    let build = || build(&run, loaded, fold, &reservation);
    let words = &loaded.words(fold)?;
    let index = needs_lists(&run.scan).then(build).transpose()?;
    let all = 0..words.len();
    reservation.try_resize(index.as_ref().map_or(0, analytics::InvertedIndex::memory_bytes))?;
    let num_docs = |row| index.as_ref().map_or(0, |index| index.num_docs(row) as u64);
    let doc_counts = |rows: &Rows| int64(rows.iter().map(num_docs));
    for_each_selected(&mut run, words, all, doc_counts, |run, words, rows| {
        let Some(index) = &index else {
            return run.send(words.len(), |_| Ok(Arc::clone(words)));
        };
        let rows: Vec<usize> = rows.iter().collect();
        let mut start = 0;
        while start < rows.len() {
            let len = batch_len(index, &rows[start..], run.output.batch_size());
            let batch = &rows[start..start + len];
            let more = run.send(len, |column| match column {
                "word" => Ok(words.slice(start, len)),
                "doc_count" => int64(batch.iter().map(|&row| index.num_docs(row) as u64)),
                "doc_ids" => doc_ids(index, batch),
                other => no_column(other),
            })?;
            if !more {
                return Ok(false);
            }
            start += len;
        }
        Ok(true)
    })
}

/// Sends words and their documents as packed rows.
fn send_parcels(mut run: Execution, loaded: &LoadedCorpus, fold: &Fold, parcels: &Parcels) -> Result<()> {
    let reservation = run.reservation("InvertedIndex");
    let index = build(&run, loaded, fold, &reservation)?;
    reservation.try_resize(index.memory_bytes())?;
    let sender = ParcelSender::new(&run, index.vocabulary())?;
    let ids = ParcelIds::new(&run.scan, parcels);
    let pack = |words: Range<usize>| {
        let rows = words.filter(|&word| index.num_docs(word) > 0);
        if !parcels.has_lists {
            return sender.packer().pack(rows.map(|word| (std::iter::once(word as u32), index.num_docs(word) as u64)));
        }
        sender.packer().pack_lists(rows.map(|word| {
            let documents: Vec<u64> = ids.in_corpus(index.doc_ids(word)).collect();
            (word as u32, documents.into_iter())
        }))
    };
    sender.send_ranges(&mut run, index.len(), 0, pack)?;
    sender.send_words(&mut run)
}

/// Returns true if more than words is asked for.
fn needs_lists(scan: &ScanSpec) -> bool {
    scan.uses("doc_count") || scan.uses("doc_ids") || scan.parcels.is_some()
}

/// Builds the index.
fn build(
    run: &Execution,
    loaded: &LoadedCorpus,
    fold: &Fold,
    reservation: &MemoryReservation,
) -> Result<analytics::InvertedIndex> {
    let vocabulary = run.vocabulary(loaded, fold)?;
    if let Some(index) = answers::inverted_index(run, &vocabulary)? {
        return Ok(index);
    }
    let segments = loaded.corpus.segments().iter();
    reservation.try_grow(segments.map(|segment| usual_bytes(&segment.dag)).sum())?;
    let traversal = run.scan.options.traversal;
    let is_kept = |segment: &Segment| traversal == Traversal::Auto && segment.keeps_doc_words();
    record_sweep(run, loaded.corpus.segments().iter().filter(|segment| !is_kept(segment)));
    let reader = run.output.canceller();
    let is_cancelled = || reader.is_closed();
    analytics::InvertedIndex::cancellable(vocabulary, traversal, &is_cancelled).map_err(datafusion_error)
}

/// Returns the estimated memory of a segment's lists before they are made. It is the smallest of
/// three sizes: the length of the text, all documents for each word, and two documents for each
/// element. The words of documents have at most the last size on the corpora of
/// `benches/README.md`.
fn usual_bytes(dag: &Dag) -> usize {
    let grammar = dag.grammar();
    let num_words = dag.num_words() as usize;
    let num_listed = grammar.num_docs().saturating_mul(num_words).min(2 * grammar.symbols.len());
    let len_words = usize::try_from(dag.len_words(dag.num_terminals())).unwrap_or(usize::MAX);
    4 * (num_listed.min(len_words) + num_words)
}

/// Returns the number of `rows` that go into one batch.
fn batch_len(index: &analytics::InvertedIndex, rows: &[usize], batch_size: usize) -> usize {
    let mut num_ids = 0;
    let fits = |&&row: &&usize| {
        num_ids += index.num_docs(row);
        num_ids <= MAX_IDS
    };
    rows.iter().take(batch_size).take_while(fits).count().max(1)
}

fn doc_ids(index: &analytics::InvertedIndex, rows: &[usize]) -> Result<ArrayRef> {
    let mut ids: Vec<i64> = Vec::with_capacity(rows.iter().map(|&row| index.num_docs(row)).sum());
    let mut ends = Vec::with_capacity(rows.len());
    for &row in rows {
        index.append_doc_ids(row, &mut ids);
        ends.push(ids.len());
    }
    lists(ids, ends.into_iter())
}
