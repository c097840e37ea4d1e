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

use super::doc_rows::{DOC_ID, paths};
use super::searching::{QueryText, Searched, finished, load_searched};
use super::strings::int64;
use crate::errors::datafusion_error;
use crate::scan::function::{Definition, Merge, TableFunction};
use crate::scan::signature::{self, ColumnKind, Signature};
use crate::scan::{Execution, Scan};
use crate::source::LoadedCorpus;
use tadoc::query::{DocumentCount, SearchOptions};

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
        ],
        columns: &[
            signature::DOC_ID,
            signature::PATH,
            signature::column("count", ColumnKind::Integer, "how often it matches there"),
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

    fn claims_column(&self, column: &str) -> bool {
        column == DOC_ID
    }

    fn ordering(&self, _scan: &Scan) -> &'static [&'static str] {
        &["doc_id"]
    }

    fn prepare(&self, scan: &Scan) -> Result<()> {
        self.query.parse(scan).map(drop).map_err(|error| self.signature().error(error))
    }

    fn finds_few(&self) -> bool {
        true
    }

    fn explain(&self, scan: &Scan) -> Vec<(&'static str, String)> {
        self.query.explain(scan).into_iter().chain([scan.device()]).collect()
    }

    fn merge(&self, _scan: &Scan) -> Merge {
        Merge::Behind
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let loaded = load_searched(&run, &self.query, None).await?;
            run.blocking(move |run| self.send_counts(run, &loaded)).await
        }
        .boxed()
    }
}

impl TermCount {
    fn send_counts(&self, mut run: Execution, loaded: &LoadedCorpus) -> Result<()> {
        let query = self.query.parse(&run.scan).map_err(datafusion_error)?;
        let searched = Searched::shared(&run)?;
        let cancel = run.output.canceller();
        let is_cancelled = move || cancel.is_closed();
        let options = SearchOptions {
            doc_id: None,
            docs: searched.docs(),
            max_hits: u64::MAX,
            is_cancelled: &is_cancelled,
        };
        let mut outcome = Ok(true);
        let mut send = |counts: &[DocumentCount]| {
            outcome = run.send(counts.len(), |column| match column {
                0 => int64(counts.iter().map(|count| count.doc_id)),
                1 => {
                    let ids: Vec<u64> = counts.iter().map(|count| count.doc_id).collect();
                    Ok(paths(&loaded.corpus, &ids))
                }
                _ => int64(counts.iter().map(|count| count.count)),
            });
            match outcome {
                Ok(true) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        };
        let counted = loaded
            .with_leaf_lists(|lists| lists.term_count(&loaded.corpus, &query, &options, &mut send));
        finished(outcome.map(drop), counted)
    }
}
