//! The function `rank(corpus, query [, top] [, k1] [, b] [, fold] [, exact])`: the best documents for a query,
//! by BM25.
//!
//! Segments of files without any word of the query are not opened: numbers of documents and words
//! come from the footers. Rows are best first, so the limit of `ORDER BY score DESC LIMIT k` arrives
//! here and bounds `top`. Counts of words that were asked for are kept with the loaded corpus.

use std::sync::Arc;

use datafusion::arrow::array::Float64Array;
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::doc_rows::paths;
use super::searching::QueryText;
use super::sequence_rows::length;
use super::strings::int64;
use crate::corpora::{LoadedCorpus, Sought};
use crate::errors::datafusion_error;
use crate::planning::function::{Definition, Facts, NO_KERNEL, Prepared, TableFunction};
use crate::planning::signature::{self, ArgumentKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::query::{Query, RankOptions, SearchOptions};

/// The function `rank` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "rank",
        arguments: &[
            signature::CORPUS,
            signature::QUERY,
            signature::optional("top", ArgumentKind::Integer, "10", "so many documents at most"),
            signature::optional("k1", ArgumentKind::Number, "1.2", "how slowly more hits stop to count"),
            signature::optional("b", ArgumentKind::Number, "0.75", "how much long documents lose, up to 1"),
            signature::QUERY_FOLD,
            signature::EXACT,
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[signature::DOC_ID, signature::PATH, signature::number("score", "BM25 score, above 0")],
        summary: "the best documents for a query by BM25, best first",
    },
    bind: |arguments, _| {
        let defaults = RankOptions::default();
        let options = RankOptions {
            top: length(arguments.integer("top"), defaults.top),
            k1: arguments.number("k1").unwrap_or(defaults.k1),
            b: arguments.number("b").unwrap_or(defaults.b),
        };
        let query = QueryText::from_arguments(arguments);
        Arc::new(Rank { query, options })
    },
};

#[derive(Debug)]
pub(crate) struct Rank {
    query: QueryText,
    options: RankOptions,
}

impl TableFunction for Rank {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let RankOptions { top, k1, b } = self.options;
        let mut arguments = self.query.shown();
        arguments.extend([("top", top.to_string()), ("k1", k1.to_string()), ("b", b.to_string())]);
        arguments
    }

    fn prepare(&self, scan: &ScanSpec) -> Result<Prepared> {
        let query = self.query.parse(self.signature(), scan)?;
        self.options.check().map_err(|error| self.signature().error(error))?;
        Ok(Prepared::new(query))
    }

    fn facts(&self, scan: &ScanSpec, prepared: &Prepared) -> Facts {
        let explain = prepared.get::<Query>().map(|query| self.query.explain(scan, &query));
        Facts {
            ordering: &["score", "doc_id"],
            is_best_first: true,
            task: NO_KERNEL,
            explain: explain.unwrap_or_default(),
            ..Facts::default()
        }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let query = Query::clone(&*run.prepared::<Query>()?);
            let (loaded, query) = match run.scan.living() {
                // Its files do not tell how many words its documents have.
                Some(_) => (run.load().await?, query),
                None => {
                    // Documents that NOT excludes count for the weight of their words, too.
                    let sought = Sought { query: Some(query.clone().any_leaf()), ..Sought::default() };
                    run.load_counted(&query, sought).await?
                }
            };
            run.blocking(move |run| self.send_ranked(run, &query, &loaded)).await
        }
        .boxed()
    }
}

impl Rank {
    fn send_ranked(&self, mut run: Execution, query: &Query, loaded: &LoadedCorpus) -> Result<()> {
        let cancel = run.output.canceller();
        let is_cancelled = move || cancel.is_closed();
        let search = SearchOptions { is_cancelled: &is_cancelled, ..SearchOptions::default() };
        let of_files = run.scan.living().is_none().then(|| run.scan.num_word_tokens());
        let top = run.scan.limit.unwrap_or(usize::MAX).min(self.options.top);
        let options = RankOptions { top, ..self.options };
        let ranker = loaded.ranker(run.scan.num_docs(), of_files)?;
        let ranked = loaded.with_leaf_lists(|lists| ranker.rank(&loaded.corpus, lists, query, &options, &search));
        let ranked = match ranked {
            Err(tadoc::Error::Cancelled) => return Ok(()),
            other => other.map_err(datafusion_error)?,
        };
        let reservation = run.reservation("Rank");
        reservation.try_resize(size_of_val(ranked.as_slice()))?;
        for rows in ranked.chunks(run.output.batch_size()) {
            let more = run.send(rows.len(), |column| match column {
                "doc_id" => int64(rows.iter().map(|row| row.doc_id)),
                "path" => {
                    let ids: Vec<u64> = rows.iter().map(|row| row.doc_id).collect();
                    Ok(paths(&loaded.corpus, &ids))
                }
                "score" => Ok(Arc::new(rows.iter().map(|row| Some(row.score)).collect::<Float64Array>())),
                other => no_column(other),
            })?;
            if !more {
                break;
            }
        }
        Ok(())
    }
}
