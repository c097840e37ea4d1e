//! The function `term_vector(corpus [, top] [, fold])`: the words of each document, with their
//! counts.
//!
//! Filters on `doc_id`, including dynamic filters of joins above, choose the documents before
//! counting.

use std::sync::Arc;

use datafusion::error::Result;
use futures::future::BoxFuture;

use super::doc_rows::{doc_ids, selected_documents, term_facts, term_vectors, word_ordering, words_at};
use super::strings::{int64, shown_fold};
use crate::corpora::LoadedCorpus;
use crate::errors::datafusion_error;
use crate::planning::function::{Definition, Facts, Merge, Prepared, TableFunction};
use crate::planning::signature::{self, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::analytics::Fold;

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
