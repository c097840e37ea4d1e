//! The function `tfidf(corpus [, top] [, fold])`: a score for each word of each document.
//!
//! Filters on `doc_id` choose the documents that get rows. The document counts `df` and the number
//! of documents are always those of the whole corpus: a portion is told them.

use std::sync::Arc;

use datafusion::arrow::array::Float64Array;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use futures::future::BoxFuture;

use super::doc_rows::{doc_ids, new_term_vectors, selected_documents, term_facts, word_ordering, words_at};
use super::inverted_index::InvertedIndex;
use super::strings::{int64, shown_fold};
use crate::corpora::LoadedCorpus;
use crate::errors::datafusion_error;
use crate::planning::function::{Definition, Facts, Merge, PortionRows, Prepared, TableFunction};
use crate::planning::signature::{self, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::analytics::{self, Fold};

/// The function `tfidf` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "tfidf",
        arguments: &[signature::CORPUS, signature::TOP, signature::FOLD, signature::VERSION, signature::WHERE],
        columns: &[
            signature::DOC_ID.claimed(),
            signature::WORD,
            signature::integer("tf", "how often it occurs in the document"),
            signature::integer("df", "number of documents that hold it"),
            signature::number("score", "tf * ln(documents / df)"),
        ],
        summary: "how much each word tells about each document; with top, the best ones first",
    },
    bind: |arguments, _| Arc::new(Tfidf::new(arguments.integer("top"), arguments.fold("fold"))),
};

#[derive(Debug)]
pub(crate) struct Tfidf {
    top: Option<usize>,
    fold: Fold,
}

impl Tfidf {
    pub(crate) fn new(top: Option<u64>, fold: Fold) -> Self {
        let top = top.map(|top| usize::try_from(top).unwrap_or(usize::MAX));
        Self { top, fold }
    }
}

impl TableFunction for Tfidf {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let top = self.top.map(|top| ("top", top.to_string()));
        top.into_iter().chain(shown_fold(&self.fold)).collect()
    }

    fn facts(&self, scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        Facts { ordering: word_ordering(self.top), merge: Merge::Numbered, ..term_facts(scan) }
    }

    fn word_numbers(&self, rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        rows.for_words(Arc::new(InvertedIndex::new(self.fold.clone())), "doc_count")
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        run.with_corpus(move |run, loaded| self.send_rows(run, loaded))
    }
}

impl Tfidf {
    fn send_rows(&self, mut run: Execution, loaded: &LoadedCorpus) -> Result<()> {
        let docs = selected_documents(&run)?;
        let words = &loaded.words(&self.fold)?;
        let reader = run.output.canceller();
        let is_cancelled = || reader.is_closed();
        let tfidf = run.shared.once(|| {
            let vectors = new_term_vectors(&run, loaded, &self.fold)?;
            let (num_docs, doc_counts) = match &run.numbers {
                Some(numbers) => (numbers.num_docs(), numbers.for_words(words)?.into()),
                None => (run.scan.num_docs(), loaded.doc_counts(&self.fold, &vectors, &is_cancelled)?),
            };
            Ok(analytics::Tfidf::with_counts(vectors, num_docs, doc_counts))
        })?;
        let reservation = run.reservation("Tfidf");
        let num_counted = run.counter("documents_counted");
        let mut cursor = tfidf.cursor(&docs, self.top);
        while let Some(chunk) = cursor.next_chunk().map_err(datafusion_error)? {
            let shared = if run.partition == 0 { tfidf.memory_bytes() } else { 0 };
            reservation.try_resize(shared + cursor.memory_bytes() + chunk.memory_bytes())?;
            let terms = chunk.terms();
            num_counted.add(terms.num_docs());
            let more = run.send(terms.num_rows(), |column| match column {
                "doc_id" => doc_ids(terms.doc_ids(), terms.offsets()),
                "word" => words_at(words, terms.rows()),
                "tf" => int64(terms.counts().iter().copied()),
                "df" => int64(terms.rows().iter().map(|&row| tfidf.doc_counts()[row as usize])),
                "score" => Ok(Arc::new(Float64Array::from(chunk.scores().to_vec()))),
                other => no_column(other),
            })?;
            if !more {
                break;
            }
        }
        Ok(())
    }
}
