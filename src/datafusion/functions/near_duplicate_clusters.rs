//! The function `near_duplicate_clusters(corpus [, threshold] [, n] [, fold])`: documents that have near
//! duplicates, with the one of each cluster to keep.
//!
//! ```text
//! SELECT … FROM 'c.tadoc' LEFT ANTI JOIN
//!   (SELECT doc_id FROM near_duplicate_clusters('c.tadoc') WHERE NOT is_kept) USING (doc_id)
//! ```
//!
//! The pairs are those of `near_duplicates`, joined in the core, so their number takes no memory. A corpus larger
//! than memory is read portion by portion, several times, and once more if paths are asked for.

use std::borrow::Borrow;
use std::sync::Arc;

use datafusion::arrow::array::BooleanArray;
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::doc_rows::paths;
use super::portion_reader::{LoadedPortion, PortionReader};
use super::sequence_rows::length;
use super::strings::{int64, shown_fold};
use crate::corpora::memory::Uses;
use crate::errors::datafusion_error;
use crate::planning::function::{Definition, Facts, NO_KERNEL, Prepared, TableFunction, Walk};
use crate::planning::signature::{self, ArgumentKind, ColumnKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::Corpus;
use tadoc::analytics::{self, ClusteredDoc, CorpusParts, Fold};

/// The function `near_duplicate_clusters` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "near_duplicate_clusters",
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
            signature::WHERE,
        ],
        columns: &[
            signature::DOC_ID,
            signature::PATH,
            signature::integer("first_doc_id", "number of the first document of its cluster"),
            signature::integer("docs", "documents of the cluster, 2 or more"),
            signature::column("is_kept", ColumnKind::Boolean, "true for the first document of the cluster"),
        ],
        summary: "documents that pairs of near_duplicates join, with the one to keep, by document",
    },
    bind: |arguments, _| {
        Arc::new(NearDuplicateClusters {
            threshold: arguments.number("threshold").unwrap_or(0.8),
            num_words: length(arguments.integer("n"), 5),
            fold: arguments.fold("fold"),
        })
    },
};

#[derive(Debug)]
struct NearDuplicateClusters {
    threshold: f64,
    num_words: usize,
    fold: Fold,
}

impl TableFunction for NearDuplicateClusters {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let (threshold, n) = (self.threshold.to_string(), self.num_words.to_string());
        let mut arguments = vec![("threshold", threshold), ("n", n)];
        arguments.extend(shown_fold(&self.fold));
        arguments
    }

    fn prepare(&self, _scan: &ScanSpec) -> Result<Prepared> {
        let checked = analytics::check_similarity(self.threshold, self.num_words);
        checked.map_err(|error| self.signature().error(error))?;
        Ok(Prepared::default())
    }

    fn facts(&self, _scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let how = "token_scan: sets of n-grams, those compared whose rarest n-grams meet";
        Facts {
            ordering: &["doc_id"],
            uses: Uses::Text,
            task: NO_KERNEL,
            walk: Some(Walk::Only(how)),
            ..Facts::default()
        }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let portions = PortionReader::open(&run, "NearDuplicates").await?;
            run.blocking(move |run| match self.send_docs(run, &portions)? {
                Ok(()) | Err(tadoc::Error::Cancelled) => Ok(()),
                Err(error) => Err(portions.error(error)),
            })
            .await
        }
        .boxed()
    }
}

impl NearDuplicateClusters {
    /// Sends the rows. Errors of the search are the inner ones.
    fn send_docs(&self, mut run: Execution, portions: &PortionReader) -> Result<tadoc::Result<()>> {
        let memory_bytes = portions.memory_bytes();
        let documents =
            analytics::NearDuplicates::new(portions, self.threshold, self.num_words, &self.fold, memory_bytes);
        let documents = match documents {
            Ok(documents) => documents,
            Err(error) => return Ok(Err(error)),
        };
        let starts: Vec<u64> = (0..=portions.num_parts()).map(|part| documents.first_doc_id(part)).collect();
        let clusters = match documents.clusters() {
            Ok(clusters) => clusters,
            Err(error) => return Ok(Err(error)),
        };
        let needs_paths = run.scan.projects("path");
        for (index, bounds) in starts.windows(2).enumerate() {
            let mut docs = clusters.docs(bounds[0]..bounds[1]).peekable();
            if docs.peek().is_none() {
                continue;
            }
            let portion: Option<LoadedPortion> =
                if needs_paths { Some(portions.part(index).map_err(datafusion_error)?) } else { None };
            let corpus: Option<&Corpus> = portion.as_ref().map(Borrow::borrow);
            while docs.peek().is_some() {
                let rows: Vec<ClusteredDoc> = docs.by_ref().take(run.output.batch_size()).collect();
                if !send(&mut run, &rows, corpus, bounds[0])? {
                    return Ok(Ok(()));
                }
            }
        }
        Ok(Ok(()))
    }
}

/// Sends the rows of documents of `corpus`, whose first one is `first_doc_id`. Returns false if the function should
/// stop.
fn send(run: &mut Execution, docs: &[ClusteredDoc], corpus: Option<&Corpus>, first_doc_id: u64) -> Result<bool> {
    run.send(docs.len(), |column| match (column, corpus) {
        ("doc_id", _) => int64(docs.iter().map(|doc| doc.doc_id)),
        ("path", Some(corpus)) => {
            let ids: Vec<u64> = docs.iter().map(|doc| doc.doc_id - first_doc_id).collect();
            Ok(paths(corpus, &ids))
        }
        ("first_doc_id", _) => int64(docs.iter().map(|doc| doc.first_doc_id)),
        ("docs", _) => int64(docs.iter().map(|doc| doc.num_docs)),
        ("is_kept", _) => {
            let are_first: Vec<bool> = docs.iter().map(ClusteredDoc::is_first).collect();
            Ok(Arc::new(BooleanArray::from(are_first)))
        }
        (other, _) => no_column(other),
    })
}
