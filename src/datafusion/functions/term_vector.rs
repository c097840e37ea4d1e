//! The words of each document: `term_vector(corpus [, top] [, fold])` with their counts,
//! `doc_term_matrix(corpus [, fold])` as a row of a sparse matrix, and `tokens(corpus [, fold])` in order, for LDA,
//! GloVe, word2vec and similar methods.
//!
//! The id of a word is its row in `word_count(corpus)`, from 0: `word_id` of `tokens`, and the columns of the matrix,
//! which are `word_ids`, ascending. The concatenated lists of all documents are the `indices` and `data` of a CSR
//! matrix, and the ends of the lists are its `indptr`. Arrow stores them in exactly this way. Separators have no row.
//! Filters on `doc_id`, including dynamic filters of joins above, choose the documents before counting.
//!
//! Portions of a corpus are told the ids of words. They ascend as words do, so lists keep their order. Tried and
//! dropped: lists by DataFusion's `array_agg` with ORDER BY, over `term_vector` and the ids of words. They took 212 s
//! and 13 GB for 1.07 GB of text.

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use futures::future::BoxFuture;

use crate::corpora::LoadedCorpus;
use crate::corpora::memory::Uses;
use crate::errors::datafusion_error;
use crate::functions::doc_rows::{
    doc_ids, num_documents, num_partitions, selected_documents, term_facts, term_vectors, word_ordering, words_at,
};
use crate::functions::strings::{int64, int64_lists, shown_fold};
use crate::functions::word_count::WordCount;
use crate::planning::function::{Definition, Facts, Merge, NO_KERNEL, PortionRows, Prepared, TableFunction};
use crate::planning::portions::numbered;
use crate::planning::signature::{self, ColumnKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::analytics::{Fold, TokenCursor};

/// The function `term_vector` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "term_vector",
        arguments: &[signature::CORPUS, signature::TOP, signature::FOLD, signature::VERSION, signature::WHERE],
        columns: &[
            signature::DOC_ID.claimed(),
            signature::WORD,
            signature::integer("count", "how often it occurs in the document"),
        ],
        summary: "the words of each document; with top, its most frequent ones, these first",
    },
    bind: |arguments, _| Arc::new(TermVector::new(arguments.integer("top"), arguments.fold("fold"))),
};

#[derive(Debug)]
pub(crate) struct TermVector {
    top: Option<usize>,
    fold: Fold,
}

impl TermVector {
    pub(crate) fn new(top: Option<u64>, fold: Fold) -> Self {
        let top = top.map(|top| usize::try_from(top).unwrap_or(usize::MAX));
        Self { top, fold }
    }
}

impl TableFunction for TermVector {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let top = self.top.map(|top| ("top", top.to_string()));
        top.into_iter().chain(shown_fold(&self.fold)).collect()
    }

    fn facts(&self, scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        Facts { ordering: word_ordering(self.top), merge: Merge::Behind, ..term_facts(scan) }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        run.with_corpus(move |run, loaded| self.send_rows(run, loaded))
    }
}

impl TermVector {
    fn send_rows(&self, mut run: Execution, loaded: &LoadedCorpus) -> Result<()> {
        let docs = selected_documents(&run)?;
        let vectors = term_vectors(&run, loaded, &self.fold)?;
        let words = &loaded.words(&self.fold)?;
        let reservation = run.reservation("TermVector");
        let num_counted = run.counter("documents_counted");
        let mut cursor = vectors.cursor(&docs, self.top);
        while let Some(chunk) = cursor.next_chunk().map_err(datafusion_error)? {
            let shared = if run.partition == 0 { vectors.memory_bytes() } else { 0 };
            reservation.try_resize(shared + cursor.memory_bytes() + chunk.memory_bytes())?;
            num_counted.add(chunk.num_docs());
            let more = run.send(chunk.num_rows(), |column| match column {
                "doc_id" => doc_ids(chunk.doc_ids(), chunk.offsets()),
                "word" => words_at(words, chunk.rows()),
                "count" => int64(chunk.counts().iter().copied()),
                other => no_column(other),
            })?;
            if !more {
                break;
            }
        }
        Ok(())
    }
}

/// The function `doc_term_matrix` in SQL.
pub(super) static MATRIX: Definition = Definition {
    signature: Signature {
        name: "doc_term_matrix",
        arguments: &[signature::CORPUS, signature::FOLD, signature::VERSION, signature::WHERE],
        columns: &[
            signature::DOC_ID.claimed(),
            signature::column("word_ids", ColumnKind::IntegerList, "its words, ascending: rows of word_count"),
            signature::column("counts", ColumnKind::IntegerList, "how often each occurs in the document"),
        ],
        summary: "a sparse matrix of documents and words, one row a document",
    },
    bind: |arguments, _| Arc::new(DocTermMatrix::new(arguments.fold("fold"))),
};

#[derive(Debug)]
struct DocTermMatrix {
    fold: Fold,
}

impl DocTermMatrix {
    fn new(fold: Fold) -> Self {
        Self { fold }
    }
}

impl TableFunction for DocTermMatrix {
    fn signature(&self) -> &'static Signature {
        &MATRIX.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        shown_fold(&self.fold).into_iter().collect()
    }

    fn facts(&self, scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let merge = if scan.uses("word_ids") { Merge::Numbered } else { Merge::Behind };
        Facts { ordering: &["doc_id"], num_rows: num_documents(scan), merge, ..term_facts(scan) }
    }

    fn word_numbers(&self, rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        word_ids(rows, &self.fold)
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        run.with_corpus(move |run, loaded| send_matrix(run, loaded, &self.fold))
    }
}

/// Returns a plan of the words of a corpus and their ids.
fn word_ids(rows: &dyn PortionRows, fold: &Fold) -> Result<LogicalPlanBuilder> {
    numbered(rows.for_words(Arc::new(WordCount::new(fold.clone())), "count")?)
}

/// The ids of the words of a scan.
struct WordIds(Option<Vec<u64>>);

impl WordIds {
    /// Returns those of the whole corpus, for a column `name` that may be asked for.
    fn new(run: &Execution, loaded: &LoadedCorpus, fold: &Fold, name: &str) -> Result<Self> {
        let words = loaded.words(fold)?;
        let told = run.numbers.as_ref().filter(|_| run.scan.uses(name));
        Ok(Self(told.map(|numbers| numbers.for_words(&words)).transpose()?))
    }

    /// Returns the ids of the words at `rows` of the vocabulary.
    fn for_rows(&self, rows: &[u32]) -> impl Iterator<Item = u64> {
        rows.iter().map(|&row| self.0.as_ref().map_or(u64::from(row), |ids| ids[row as usize]))
    }
}

fn send_matrix(mut run: Execution, loaded: &LoadedCorpus, fold: &Fold) -> Result<()> {
    let docs = selected_documents(&run)?;
    let ids = WordIds::new(&run, loaded, fold, "word_ids")?;
    let vectors = term_vectors(&run, loaded, fold)?;
    let reservation = run.reservation("DocTermMatrix");
    let mut cursor = vectors.cursor(&docs, None);
    while let Some(chunk) = cursor.next_chunk().map_err(datafusion_error)? {
        let shared = if run.partition == 0 { vectors.memory_bytes() } else { 0 };
        reservation.try_resize(shared + cursor.memory_bytes() + 3 * chunk.memory_bytes())?;
        let ends = || chunk.offsets()[1..].iter().map(|&end| end as usize);
        let more = run.send(chunk.num_docs(), |column| match column {
            "doc_id" => int64(chunk.doc_ids().iter().copied()),
            "word_ids" => int64_lists(ids.for_rows(chunk.rows()), ends()),
            "counts" => int64_lists(chunk.counts().iter().copied(), ends()),
            other => no_column(other),
        })?;
        if !more {
            break;
        }
    }
    Ok(())
}

/// The function `tokens` in SQL.
pub(super) static TOKENS: Definition = Definition {
    signature: Signature {
        name: "tokens",
        arguments: &[signature::CORPUS, signature::FOLD, signature::VERSION, signature::WHERE],
        columns: &[
            signature::DOC_ID.claimed(),
            signature::integer("word_index", "words before it in the document"),
            signature::integer("word_id", "row of word_count, from 0"),
            signature::WORD,
        ],
        summary: "the words of each document in order",
    },
    bind: |arguments, _| Arc::new(Tokens::new(arguments.fold("fold"))),
};

#[derive(Debug)]
struct Tokens {
    fold: Fold,
}

impl Tokens {
    fn new(fold: Fold) -> Self {
        Self { fold }
    }
}

impl TableFunction for Tokens {
    fn signature(&self) -> &'static Signature {
        &TOKENS.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        shown_fold(&self.fold).into_iter().collect()
    }

    fn facts(&self, scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let num_words = usize::try_from(scan.num_word_tokens());
        Facts {
            ordering: &["doc_id", "word_index"],
            num_rows: num_words.map_or(Precision::Absent, Precision::Inexact),
            num_partitions: num_partitions(scan),
            task: NO_KERNEL,
            uses: Uses::Text,
            merge: if scan.uses("word_id") { Merge::Numbered } else { Merge::Behind },
            ..Facts::default()
        }
    }

    fn word_numbers(&self, rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        word_ids(rows, &self.fold)
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        run.with_corpus(move |run, loaded| send_tokens(run, loaded, &self.fold))
    }
}

fn send_tokens(mut run: Execution, loaded: &LoadedCorpus, fold: &Fold) -> Result<()> {
    let docs = selected_documents(&run)?;
    let words = &loaded.words(fold)?;
    let ids = WordIds::new(&run, loaded, fold, "word_id")?;
    let num_read = run.counter("words_read");
    let mut cursor = TokenCursor::new(loaded.vocabulary(fold)?, &docs);
    while let Some(chunk) = cursor.next_chunk().map_err(datafusion_error)? {
        num_read.add(chunk.len());
        let more = run.send(chunk.len(), |column| match column {
            "doc_id" => int64(chunk.doc_ids().iter().copied()),
            "word_index" => int64(chunk.word_indexes().iter().copied()),
            "word_id" => int64(ids.for_rows(chunk.rows())),
            "word" => words_at(words, chunk.rows()),
            other => no_column(other),
        })?;
        if !more {
            break;
        }
    }
    Ok(())
}
