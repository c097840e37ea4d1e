//! The function `sequence_count(corpus [, n] [, by_doc] [, fold])`: the number of occurrences of
//! sequences of n words.
//!
//! Filters on `count` run before texts are made, so that `WHERE count > 9` and `ORDER BY count DESC LIMIT 10` make few
//! texts. With `by_doc`, filters on `doc_id` choose the documents before counting. Rows are sent while others are still
//! counted. If memory is short, ranges of sequences are counted one after another, each with its own traversal.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewArray};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use futures::future::BoxFuture;

use super::counted_rows::{CountedRows, CountedTask, send_counted};
use super::doc_rows::{DOC_ID, SWEEP, selected_documents};
use super::sequence_rows::{MadeRows, check_at_least, do_texts_ascend, length, send_in_order, task_memory_bytes};
use super::sequence_texts::{sequence_texts, texts_of_rows};
use super::strings::{int64, shown_fold};
use super::word_count::WordCount;
use crate::corpora::LoadedCorpus;
use crate::corpora::memory::Uses;
use crate::errors::datafusion_error;
use crate::placement::Task;
use crate::planning::answers::{self, SequenceTable};
use crate::planning::function::{
    BoundFunction, Definition, Facts, Merge, ParcelRows, PortionRows, Prepared, TableFunction, Walk,
};
use crate::planning::portions::added_up;
use crate::planning::signature::{self, ArgumentKind, Columns, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::analytics::{
    DocumentSequences, Fold, MergedRows, SequenceCounts, TaskLimits, Traversal, TraversalTask, Vocabulary,
};
use tadoc::read::document_num_words;

/// Largest number of words in the documents that are counted at once, if memory has room for them.
const CHUNK_WORDS: u64 = 1 << 18;
/// Largest number of documents that are counted at once.
const CHUNK_DOCS: usize = 8192;
/// Divisor of the number of documents. Fewer documents than this part of the corpus are counted one
/// by one, top-down.
const PART_WORTH_PREPARING: u64 = 32;

/// The function `sequence_count` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "sequence_count",
        arguments: &[
            signature::CORPUS,
            signature::NUM_WORDS,
            signature::optional("by_doc", ArgumentKind::Boolean, "false", "count in each document"),
            signature::FOLD,
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[
            signature::integer("doc_id", "number of the document; with by_doc only").claimed(),
            signature::SEQUENCE,
            signature::integer("count", "how often it occurs").claimed(),
        ],
        summary: "how often each sequence of n words occurs, ascending by word",
    },
    bind: |arguments, _| {
        let by_doc = arguments.boolean("by_doc");
        let fold = arguments.fold("fold");
        Arc::new(SequenceCount::new(arguments.integer("n"), by_doc, fold))
    },
};

#[derive(Debug, Clone)]
pub(crate) struct SequenceCount {
    num_words: usize,
    by_doc: bool,
    fold: Fold,
}

impl SequenceCount {
    pub(crate) fn new(num_words: Option<u64>, by_doc: bool, fold: Fold) -> Self {
        Self { num_words: length(num_words, 3), by_doc, fold }
    }
}

impl TableFunction for SequenceCount {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn columns(&self) -> Columns {
        let columns = DEFINITION.signature.columns;
        if self.by_doc {
            Columns::from_columns(columns.iter()).claimed_only(DOC_ID)
        } else {
            Columns::from_columns(columns[1..].iter())
        }
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let mut arguments = vec![("n", self.num_words.to_string()), ("by_doc", self.by_doc.to_string())];
        arguments.extend(shown_fold(&self.fold));
        arguments
    }

    fn prepare(&self, _scan: &ScanSpec) -> Result<Prepared> {
        check_at_least(self.signature(), "n", self.num_words, 1)?;
        Ok(Prepared::default())
    }

    fn facts(&self, scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let num_words = self.num_words;
        let ordering: &[&str] = match (self.by_doc, do_texts_ascend(scan, num_words)) {
            (true, true) => &["doc_id", "sequence"],
            (true, false) => &["doc_id"],
            (false, true) => &["sequence"],
            (false, false) => &[],
        };
        let facts = Facts { ordering, row_bytes: scan.words_bytes(num_words), uses: Uses::Text, ..Facts::default() };
        let is_folded = self.fold != Fold::NONE;
        if self.by_doc {
            return Facts {
                merge: Merge::Behind,
                task: Some(Ok(Task::DocumentSequences { num_words, is_folded, is_part: scan.is_part() })),
                walk: Some(Walk::ForSequences(TraversalTask::DocumentSequences, num_words)),
                ..facts
            };
        }
        let (task, walk) = match num_words {
            1 => (Err("words have their counts"), Walk::Only(SWEEP)),
            _ => (
                Ok(Task::SequenceCount { num_words, is_folded }),
                Walk::ForSequences(TraversalTask::SequenceCount, num_words),
            ),
        };
        Facts {
            can_spread: true,
            parcels: self.merged_words().map(|num_words| ParcelRows::Task(TraversalTask::SequenceCount, num_words)),
            merge: Merge::Combined,
            task: Some(task),
            walk: Some(walk),
            ..facts
        }
    }

    fn combine(&self, rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        added_up(rows.for_all(Arc::new(self.clone()), &["sequence", "count"])?)
    }

    fn merged_words(&self) -> Option<usize> {
        // Words have their counts in the dictionary, and one process reads them at once.
        (!self.by_doc && self.num_words > 1).then_some(self.num_words)
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
        self.column(name, words, rows, places)
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        run.with_corpus(move |run, loaded| {
            if self.by_doc { self.send_by_document(run, loaded) } else { send_counted(self.as_ref(), run, loaded) }
        })
    }
}

impl CountedTask for SequenceCount {
    type Part = SequenceCounts;

    const CONSUMER: &str = "SequenceCount";

    fn num_words(&self) -> usize {
        self.num_words
    }

    fn fold(&self) -> &Fold {
        &self.fold
    }

    fn table(&self, run: &Execution, vocabulary: &Arc<Vocabulary>) -> Result<Option<SequenceTable>> {
        answers::sequence_counts(run, vocabulary, self.num_words)
    }

    fn count<T: Send>(
        &self,
        vocabulary: Arc<Vocabulary>,
        traversal: Traversal,
        limits: TaskLimits<'_>,
        make: impl Fn(SequenceCounts) -> T + Send + Sync,
        take: impl FnMut(T, usize) -> tadoc::Result<bool>,
    ) -> tadoc::Result<()> {
        SequenceCounts::in_parts(vocabulary, self.num_words, traversal, limits, make, take)
    }

    fn column(
        &self,
        name: &str,
        words: &StringViewArray,
        rows: &impl CountedRows,
        places: &[usize],
    ) -> Result<ArrayRef> {
        match name {
            "sequence" => texts_of_rows(words, self.num_words, places.iter().map(|&row| rows.words(row))),
            "count" => int64(places.iter().map(|&row| rows.count(row))),
            other => no_column(other),
        }
    }
}

impl SequenceCount {
    fn send_by_document(&self, mut run: Execution, loaded: &LoadedCorpus) -> Result<()> {
        let docs: Vec<u64> = selected_documents(&run)?.iter().collect();
        let memory_bytes = task_memory_bytes(&run);
        let vocabulary = loaded.vocabulary(&self.fold)?;
        let words = &loaded.words(&self.fold)?;
        let scan = run.scan.clone();
        let traversal = run.scan.options.traversal;
        let traversal = match traversal {
            Traversal::Auto if is_small_part(loaded, docs.len()) => Traversal::TopDown,
            traversal => traversal,
        };
        let reader = run.output.canceller();
        let is_cancelled = || reader.is_closed();
        let limits = TaskLimits { max_memory_bytes: memory_bytes, is_cancelled: &is_cancelled };
        let on_device = answers::document_sequences(&run, &vocabulary, self.num_words, limits)?;
        let sequences = match on_device {
            Some(sequences) => sequences,
            None => {
                let counted = DocumentSequences::new(vocabulary, self.num_words, traversal, limits);
                counted.map_err(datafusion_error)?
            }
        };
        let chunk_words = CHUNK_WORDS.min(memory_bytes / row_bytes(self.num_words));
        let reservation = run.reservation("SequenceCount");
        let num_counted = run.counter("documents_counted");
        let mut rest = &docs[..];
        while !rest.is_empty() && !run.output.is_done() {
            let (docs, behind) = rest.split_at(chunk_len(loaded, rest, chunk_words)?);
            rest = behind;
            let counts = sequences.chunk(docs).map_err(datafusion_error)?;
            reservation.try_resize(sequences.memory_bytes() + counts.memory_bytes())?;
            num_counted.add(docs.len());
            let doc_of_row = |at: usize| std::iter::repeat_n(docs[at], counts.rows_of(at).len());
            let doc_ids: Vec<u64> = (0..docs.len()).flat_map(doc_of_row).collect();
            let make = |range: Range<usize>| {
                let rows: Vec<usize> = range.collect();
                MadeRows::from_columns(&scan, &rows, |column, rows| match column {
                    DOC_ID => int64(rows.iter().map(|&row| doc_ids[row])),
                    "sequence" => sequence_texts(counts.sequences(), words, rows),
                    "count" => int64(rows.iter().map(|&row| counts.counts()[row])),
                    other => no_column(other),
                })
            };
            if !send_in_order(&mut run, counts.counts().len(), self.num_words, make)? {
                break;
            }
        }
        Ok(())
    }
}

/// Returns the largest number of bytes that a row of a chunk needs while it is counted.
fn row_bytes(num_words: usize) -> u64 {
    128 + 8 * (num_words as u64).min(CHUNK_WORDS)
}

/// Returns true if so few documents are counted that the preparation of all rules, O(G), which the
/// other traversals need, does not pay.
fn is_small_part(loaded: &LoadedCorpus, num_docs: usize) -> bool {
    (num_docs as u64) < loaded.corpus.num_docs() / PART_WORTH_PREPARING
}

/// Returns the number of `docs` that are counted at once, at least one.
fn chunk_len(loaded: &LoadedCorpus, docs: &[u64], chunk_words: u64) -> Result<usize> {
    let mut num_words = 0u64;
    for (i, &doc_id) in docs.iter().take(CHUNK_DOCS).enumerate() {
        let added = document_num_words(&loaded.corpus, doc_id).map_err(datafusion_error)?;
        num_words = num_words.saturating_add(added);
        if num_words > chunk_words {
            return Ok(i.max(1));
        }
    }
    Ok(docs.len().min(CHUNK_DOCS))
}
