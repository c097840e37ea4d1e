//! The function `doc_term_matrix(corpus [, fold])`: a row of a sparse matrix for each document, for
//! LDA, GloVe and similar methods.
//!
//! `word_ids` are the columns of the matrix, ascending: the word with id `i` is row `i` of
//! `word_count(corpus)`, from 0. The concatenated lists of all documents are the `indices` and
//! `data` of a CSR matrix, and the ends of the lists are its `indptr`. Arrow stores them in exactly
//! this way.
//!
//! The function is refused if the corpus is larger than memory; `tokens` and `term_vector` are not.
//! Tried and dropped: lists by DataFusion's `array_agg` with ORDER BY, over `term_vector` and the
//! ids of words. They took 212 s and 13 GB for 1.07 GB of text.

use std::sync::Arc;

use datafusion::error::Result;
use futures::future::BoxFuture;

use super::doc_rows::{num_documents, selected_documents, term_facts, term_vectors};
use super::strings::{int64, int64_lists, shown_fold};
use crate::corpora::LoadedCorpus;
use crate::errors::datafusion_error;
use crate::planning::function::{Definition, Facts, Prepared, TableFunction};
use crate::planning::signature::{self, ColumnKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::analytics::Fold;

/// The function `doc_term_matrix` in SQL.
pub(super) static DEFINITION: Definition = Definition {
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
pub(crate) struct DocTermMatrix {
    fold: Fold,
}

impl DocTermMatrix {
    pub(crate) fn new(fold: Fold) -> Self {
        Self { fold }
    }
}

impl TableFunction for DocTermMatrix {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        shown_fold(&self.fold).into_iter().collect()
    }

    fn facts(&self, scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        Facts { ordering: &["doc_id"], num_rows: num_documents(scan), ..term_facts(scan) }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        run.with_corpus(move |run, loaded| send_rows(run, loaded, &self.fold))
    }
}

fn send_rows(mut run: Execution, loaded: &LoadedCorpus, fold: &Fold) -> Result<()> {
    let docs = selected_documents(&run)?;
    let vectors = term_vectors(&run, loaded, fold)?;
    let reservation = run.reservation("DocTermMatrix");
    let mut cursor = vectors.cursor(&docs, None);
    while let Some(chunk) = cursor.next_chunk().map_err(datafusion_error)? {
        let shared = if run.partition == 0 { vectors.memory_bytes() } else { 0 };
        reservation.try_resize(shared + cursor.memory_bytes() + 3 * chunk.memory_bytes())?;
        let ends = || chunk.offsets()[1..].iter().map(|&end| end as usize);
        let more = run.send(chunk.num_docs(), |column| match column {
            "doc_id" => int64(chunk.doc_ids().iter().copied()),
            "word_ids" => int64_lists(chunk.rows().iter().map(|&row| u64::from(row)), ends()),
            "counts" => int64_lists(chunk.counts().iter().copied(), ends()),
            other => no_column(other),
        })?;
        if !more {
            break;
        }
    }
    Ok(())
}
