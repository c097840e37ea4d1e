//! `tfidf(corpus [, top] [, fold])`: how much each word tells about each document.
//!
//! Filters on `doc_id` choose the documents that get rows; `df` and the number of documents are
//! those of the whole corpus always.

use std::sync::Arc;

use datafusion::arrow::array::Float64Array;
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::TableFunction;
use super::doc_rows::{
    DOC_ID, doc_ids, new_term_vectors, num_partitions, selected_documents, terms_task, words_at,
};
use super::inverted_index::shown_choices;
use super::strings::{fold_of, int64, shown_fold};
use crate::analytics::{self, Fold, choose_term_traversal};
use crate::sql::corpora::LoadedCorpus;
use crate::sql::device_tasks::Task;
use crate::sql::failure::datafusion_error;
use crate::sql::scan::{Run, Scan};
use crate::sql::signature::{Signature, entry};

#[derive(Debug)]
pub(crate) struct Tfidf {
    top: Option<usize>,
    fold: Fold,
}

impl Tfidf {
    pub(crate) fn new(top: Option<u64>, is_folded: bool) -> Self {
        let top = top.map(|top| usize::try_from(top).unwrap_or(usize::MAX));
        Self { top, fold: fold_of(is_folded) }
    }
}

impl TableFunction for Tfidf {
    fn signature(&self) -> &'static Signature {
        const { entry("tfidf") }
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let top = self.top.map(|top| ("top", top.to_string()));
        top.into_iter().chain(shown_fold(self.fold)).collect()
    }

    fn claims_column(&self, column: &str) -> bool {
        column == DOC_ID
    }

    fn ordering(&self, _scan: &Scan) -> &'static [&'static str] {
        if self.top.is_some() { &["doc_id"] } else { &["doc_id", "word"] }
    }

    fn num_partitions(&self, scan: &Scan, target: usize) -> usize {
        num_partitions(scan, target)
    }

    fn device_task(&self, scan: &Scan) -> std::result::Result<Task, &'static str> {
        Ok(terms_task(scan))
    }

    fn explain(&self, scan: &Scan) -> Vec<(&'static str, String)> {
        let traversal = shown_choices(scan, |segment| choose_term_traversal(segment));
        vec![scan.device(), ("traversal", traversal)]
    }

    fn run(self: Arc<Self>, run: Run) -> BoxFuture<'static, Result<()>> {
        async move {
            let loaded = run.load().await?;
            run.blocking(move |run| self.send_rows(run, &loaded)).await
        }
        .boxed()
    }
}

impl Tfidf {
    fn send_rows(&self, mut run: Run, loaded: &LoadedCorpus) -> Result<()> {
        let docs = selected_documents(&run)?;
        let tfidf = run.shared.prepared(|| {
            let vectors = new_term_vectors(&run, loaded, self.fold)?;
            let doc_counts = loaded.doc_counts(self.fold, &vectors)?;
            Ok(analytics::Tfidf::with_counts(vectors, run.scan.num_docs(), doc_counts))
        })?;
        let words = loaded.words(self.fold)?;
        let reservation = run.reservation("Tfidf");
        let num_counted = run.counter("documents_counted");
        let mut cursor = tfidf.cursor(&docs, self.top);
        while let Some(chunk) = cursor.next_chunk().map_err(datafusion_error)? {
            let shared = if run.partition == 0 { tfidf.memory_bytes() } else { 0 };
            reservation.try_resize(shared + cursor.memory_bytes() + chunk.memory_bytes())?;
            let terms = chunk.terms();
            num_counted.add(terms.num_docs());
            let more = run.send(terms.num_rows(), |column| match column {
                0 => doc_ids(terms.doc_ids(), terms.offsets()),
                1 => words_at(words, terms.rows()),
                2 => int64(terms.counts().iter().copied()),
                3 => int64(terms.rows().iter().map(|&row| tfidf.doc_counts()[row as usize])),
                _ => Ok(Arc::new(Float64Array::from(chunk.scores().to_vec()))),
            })?;
            if !more {
                break;
            }
        }
        Ok(())
    }
}
