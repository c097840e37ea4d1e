//! The function `term_count(corpus, query [, fold] [, exact])`: the number of hits of a query in each
//! document.
//!
//! Hits are counted by rule and passed up to the documents; they are not listed. Words that are
//! asked for again are counted in lists of documents that stay with the loaded corpus. Filters on
//! `doc_id` choose the documents before.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::doc_rows::paths;
use super::searching::{QueryText, Searched, finished, load_counted};
use super::strings::int64;
use crate::corpora::LoadedCorpus;
use crate::planning::function::{Definition, Facts, Merge, NO_KERNEL, Prepared, TableFunction};
use crate::planning::signature::{self, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::query::{DocumentCount, Query, SearchOptions};

/// The function `term_count` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "term_count",
        arguments: &[
            signature::CORPUS,
            signature::QUERY,
            signature::QUERY_FOLD,
            signature::EXACT,
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[
            signature::DOC_ID.claimed(),
            signature::PATH,
            signature::integer("count", "how often it matches there"),
        ],
        summary: "how often a query matches in each document that has a match",
    },
    bind: |arguments, _| Arc::new(TermCount { query: QueryText::from_arguments(arguments) }),
};

#[derive(Debug)]
pub(crate) struct TermCount {
    query: QueryText,
}

impl TableFunction for TermCount {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        self.query.shown()
    }

    fn prepare(&self, scan: &ScanSpec) -> Result<Prepared> {
        Ok(Prepared::new(self.query.parse(self.signature(), scan)?))
    }

    fn facts(&self, scan: &ScanSpec, prepared: &Prepared) -> Facts {
        let explain = prepared.get::<Query>().map(|query| self.query.explain(scan, &query));
        Facts {
            ordering: &["doc_id"],
            finds_few: true,
            merge: Merge::Behind,
            task: NO_KERNEL,
            explain: explain.unwrap_or_default(),
            ..Facts::default()
        }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let query = run.prepared::<Query>()?;
            let (loaded, query) = load_counted(&run, &query).await?;
            run.blocking(move |run| send_counts(run, &query, &loaded)).await
        }
        .boxed()
    }
}

fn send_counts(mut run: Execution, query: &Query, loaded: &LoadedCorpus) -> Result<()> {
    let searched = Searched::shared(&run)?;
    let cancel = run.output.canceller();
    let is_cancelled = move || cancel.is_closed();
    let options =
        SearchOptions { doc_id: None, docs: searched.docs(), max_hits: u64::MAX, is_cancelled: &is_cancelled };
    let mut outcome = Ok(true);
    let mut send = |counts: &[DocumentCount]| {
        outcome = run.send(counts.len(), |column| match column {
            "doc_id" => int64(counts.iter().map(|count| count.doc_id)),
            "path" => {
                let ids: Vec<u64> = counts.iter().map(|count| count.doc_id).collect();
                Ok(paths(&loaded.corpus, &ids))
            }
            "count" => int64(counts.iter().map(|count| count.count)),
            other => no_column(other),
        });
        match outcome {
            Ok(true) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    };
    let counted = loaded.with_leaf_lists(|lists| lists.term_count(&loaded.corpus, query, &options, &mut send));
    finished(outcome.map(drop), counted)
}
