//! The function `near_duplicates(corpus [, threshold] [, n] [, fold])`: pairs of documents that have
//! most of their n-grams in common.
//!
//! Pairs are sent while others are still looked for, so that `LIMIT 10` finds few. All documents are
//! compared, so a corpus that is larger than memory is refused.

use std::sync::Arc;

use datafusion::arrow::array::Float64Array;
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::doc_rows::paths;
use super::sequence_rows::{length, task_memory_bytes};
use super::strings::{int64, shown_fold};
use crate::errors::{core_error, datafusion_error};
use crate::scan::function::{Definition, TableFunction};
use crate::scan::signature::{self, ArgumentKind, ColumnKind, Signature};
use crate::scan::{Execution, Scan};
use crate::source::LoadedCorpus;
use crate::source::memory::Uses;
use tadoc::analytics::{self, DocSelection, Fold, SimilarPair};

/// The function `near_duplicates` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "near_duplicates",
        arguments: &[
            signature::CORPUS,
            signature::optional(
                "threshold",
                ArgumentKind::Number,
                "0.8",
                "least similarity of a pair, above 0 and up to 1",
            ),
            signature::optional("n", ArgumentKind::Integer, "5", "words of an n-gram"),
            signature::FOLD,
            signature::VERSION,
        ],
        columns: &[
            signature::column(
                "doc_id_a",
                ColumnKind::Integer,
                "number of the first document of the pair",
            ),
            signature::column("path_a", ColumnKind::Text, "its path"),
            signature::column(
                "doc_id_b",
                ColumnKind::Integer,
                "number of the second document, which is higher",
            ),
            signature::column("path_b", ColumnKind::Text, "its path"),
            signature::column(
                "similarity",
                ColumnKind::Number,
                "distinct n-grams of both, divided by those of either",
            ),
        ],
        summary: "pairs of documents that have most of their n-grams in common, by document",
    },
    bind: |arguments, _| {
        Arc::new(NearDuplicates {
            threshold: arguments.number("threshold").unwrap_or(0.8),
            num_words: length(arguments.integer("n"), 5),
            fold: arguments.fold("fold"),
        })
    },
};

#[derive(Debug)]
pub(crate) struct NearDuplicates {
    threshold: f64,
    num_words: usize,
    fold: Fold,
}

impl TableFunction for NearDuplicates {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let (threshold, n) = (self.threshold.to_string(), self.num_words.to_string());
        let mut arguments = vec![("threshold", threshold), ("n", n)];
        arguments.extend(shown_fold(&self.fold));
        arguments
    }

    fn ordering(&self, _scan: &Scan) -> &'static [&'static str] {
        &["doc_id_a", "doc_id_b"]
    }

    fn prepare(&self, _scan: &Scan) -> Result<()> {
        let checked = analytics::NearDuplicates::check(self.threshold, self.num_words);
        checked.map_err(|error| self.signature().error(error))
    }

    fn uses(&self, _scan: &Scan) -> Uses {
        Uses::Text
    }

    fn explain(&self, scan: &Scan) -> Vec<(&'static str, String)> {
        let how = "token_scan: sets of n-grams, those compared whose rarest n-grams meet";
        vec![scan.device(), ("traversal", how.into())]
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let loaded = run.load().await?;
            run.blocking(move |run| self.send_pairs(run, &loaded)).await
        }
        .boxed()
    }
}

impl NearDuplicates {
    fn send_pairs(&self, mut run: Execution, loaded: &LoadedCorpus) -> Result<()> {
        let vocabulary = loaded.vocabulary(&self.fold)?;
        let documents = analytics::NearDuplicates::new(
            &vocabulary,
            &DocSelection::all(&loaded.corpus),
            self.threshold,
            self.num_words,
            task_memory_bytes(&run),
        );
        let documents = documents.map_err(datafusion_error)?;
        let reservation = run.reservation("NearDuplicates");
        reservation.try_grow(documents.memory_bytes())?;
        let cancel = run.output.canceller();
        let is_cancelled = move || cancel.is_closed();
        let sent = documents.for_each_pairs(&is_cancelled, |pairs| {
            send(&mut run, loaded, pairs).map_err(core_error)
        });
        match sent {
            Err(tadoc::Error::Cancelled) => Ok(()),
            sent => sent.map_err(datafusion_error),
        }
    }
}

/// Sends the rows of `pairs`. Returns false if the function should stop.
fn send(run: &mut Execution, loaded: &LoadedCorpus, pairs: &[SimilarPair]) -> Result<bool> {
    for pairs in pairs.chunks(run.output.batch_size()) {
        let ids = |id: fn(&SimilarPair) -> u64| pairs.iter().map(id);
        let paths_of = |id| paths(&loaded.corpus, &ids(id).collect::<Vec<u64>>());
        let more = run.send(pairs.len(), |column| match column {
            0 => int64(ids(|pair| pair.doc_id_a)),
            1 => Ok(paths_of(|pair| pair.doc_id_a)),
            2 => int64(ids(|pair| pair.doc_id_b)),
            3 => Ok(paths_of(|pair| pair.doc_id_b)),
            _ => {
                let similarities = pairs.iter().map(|pair| pair.similarity);
                Ok(Arc::new(Float64Array::from_iter_values(similarities)))
            }
        })?;
        if !more {
            return Ok(false);
        }
    }
    Ok(true)
}
