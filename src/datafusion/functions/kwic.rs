//! The function `kwic(corpus, query [, width] [, fold])`: every hit in its context, as concordances
//! show them.
//!
//! Contexts are text as it stands in the document, cut at words. Only contexts are decoded. Filters
//! on `doc_id` choose the documents before the search.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewBuilder};
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::doc_rows::{DOC_ID, paths};
use super::searching::{
    NumHits, QueryText, finished, load_searched, num_search_partitions, searched_documents,
    searched_segments,
};
use super::sequence_rows::length;
use super::strings::int64;
use crate::errors::datafusion_error;
use crate::scan::function::{Definition, Merge, TableFunction};
use crate::scan::signature::{self, ArgumentKind, ColumnKind, Signature};
use crate::scan::{Execution, Scan};
use crate::source::LoadedCorpus;
use tadoc::query::{
    Context, ContextBatch, DEFAULT_KWIC_WIDTH, MAX_CONTEXT_BYTES, SearchOptions, kwic_segments,
};

/// The function `kwic` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "kwic",
        arguments: &[
            signature::CORPUS,
            signature::QUERY,
            signature::optional(
                "width",
                ArgumentKind::Integer,
                "8",
                "words on each side, at most 64 KiB",
            ),
            signature::ANY_CASE,
            signature::VERSION,
        ],
        columns: &[
            signature::DOC_ID,
            signature::PATH,
            signature::column("left", ColumnKind::Text, "text before the match"),
            signature::column("match", ColumnKind::Text, "text of the match"),
            signature::column("right", ColumnKind::Text, "text behind the match"),
        ],
        summary: "every match in its context, in order of document and offset",
    },
    bind: |arguments, _| {
        let (width, is_folded) = (arguments.integer("width"), arguments.boolean("fold"));
        Arc::new(Kwic::new(arguments.text("query"), width, is_folded))
    },
};

#[derive(Debug)]
pub(crate) struct Kwic {
    query: QueryText,
    width: usize,
}

impl Kwic {
    pub(crate) fn new(query: &str, width: Option<u64>, is_folded: bool) -> Self {
        let width = length(width, DEFAULT_KWIC_WIDTH);
        Self { query: QueryText::new(query, is_folded), width }
    }
}

impl TableFunction for Kwic {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let mut arguments = self.query.shown();
        arguments.push(("width", self.width.to_string()));
        arguments
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

    fn num_partitions(&self, scan: &Scan, target: usize) -> usize {
        let query = self.query.parse(scan);
        query.map_or(1, |query| num_search_partitions(scan, target, &query))
    }

    fn row_bytes(&self, scan: &Scan) -> u64 {
        scan.words_bytes(self.width.saturating_mul(2)).min(2 * MAX_CONTEXT_BYTES as u64)
    }

    fn explain(&self, scan: &Scan) -> Vec<(&'static str, String)> {
        let hits = format!("at most {}", scan.options.max_hits);
        let shown = [("hits", hits), scan.device()];
        self.query.explain(scan).into_iter().chain(shown).collect()
    }

    fn merge(&self, _scan: &Scan) -> Merge {
        Merge::Behind
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let loaded = load_searched(&run, &self.query, None).await?;
            run.blocking(move |run| self.send_contexts(run, &loaded)).await
        }
        .boxed()
    }
}

impl Kwic {
    fn send_contexts(&self, mut run: Execution, loaded: &LoadedCorpus) -> Result<()> {
        let query = self.query.parse(&run.scan).map_err(datafusion_error)?;
        let docs = searched_documents(&run)?;
        let cancel = run.output.canceller();
        let is_cancelled = move || cancel.is_closed();
        let options = SearchOptions {
            doc_id: None,
            docs: docs.as_deref(),
            max_hits: run.scan.options.max_hits,
            is_cancelled: &is_cancelled,
        };
        let max_bytes = run.scan.options.max_output_bytes;
        let corpus = &loaded.corpus;
        let segments = searched_segments(&run, corpus);
        let num_hits = NumHits::for_execution(&run)?;
        let reservation = run.reservation("Kwic");
        let mut outcome = Ok(true);
        let mut visit = |batch: &ContextBatch| {
            outcome = num_hits
                .add(batch.len())
                .and_then(|()| reservation.try_resize(2 * batch.memory_bytes()))
                .and_then(|()| send_batch(&mut run, loaded, batch));
            match outcome {
                Ok(true) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        };
        let found =
            kwic_segments(corpus, &query, segments, self.width, max_bytes, &options, &mut visit);
        finished(outcome.map(drop), found)
    }
}

fn send_batch(run: &mut Execution, loaded: &LoadedCorpus, batch: &ContextBatch) -> Result<bool> {
    let texts = |part: for<'a> fn(&Context<'a>) -> &'a [u8]| -> Result<ArrayRef> {
        let mut builder = StringViewBuilder::with_capacity(batch.len());
        for context in batch.iter() {
            builder.try_append_value(String::from_utf8_lossy(part(&context)))?;
        }
        Ok(Arc::new(builder.finish()))
    };
    run.send(batch.len(), |column| match column {
        0 => int64(batch.iter().map(|context| context.hit.doc_id)),
        1 => {
            let ids: Vec<u64> = batch.iter().map(|context| context.hit.doc_id).collect();
            Ok(paths(&loaded.corpus, &ids))
        }
        2 => texts(|context| context.left),
        3 => texts(|context| context.matched),
        _ => texts(|context| context.right),
    })
}
