//! The function `tokens(corpus [, fold])`: the words of each document in order, for word2vec and
//! similar methods.
//!
//! `word_id` is the word's row in `word_count(corpus)`, from 0, and its column in
//! `doc_term_matrix(corpus)`. Separators have no row.

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::logical_expr::{JoinType, LogicalPlanBuilder};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::doc_rows::{DOC_ID, num_partitions, selected_documents, words_at};
use super::strings::{int64, shown_fold};
use super::word_count::WordCount;
use crate::errors::datafusion_error;
use crate::portions::numbered;
use crate::scan::function::{Definition, Merge, PortionRows, TableFunction};
use crate::scan::signature::{self, ColumnKind, Signature};
use crate::scan::{Execution, Scan};
use crate::source::LoadedCorpus;
use crate::source::memory::Uses;
use tadoc::analytics::{Fold, TokenCursor};

const WORD_ID: usize = 2;

/// The function `tokens` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "tokens",
        arguments: &[signature::CORPUS, signature::FOLD, signature::VERSION],
        columns: &[
            signature::DOC_ID,
            signature::column("word_index", ColumnKind::Integer, "words before it in the document"),
            signature::column("word_id", ColumnKind::Integer, "row of word_count, from 0"),
            signature::WORD,
        ],
        summary: "the words of each document in order",
    },
    bind: |arguments, _| Arc::new(Tokens::new(arguments.fold("fold"))),
};

#[derive(Debug, Clone)]
pub(crate) struct Tokens {
    fold: Fold,
}

impl Tokens {
    pub(crate) fn new(fold: Fold) -> Self {
        Self { fold }
    }
}

impl TableFunction for Tokens {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        shown_fold(&self.fold).into_iter().collect()
    }

    fn claims_column(&self, column: &str) -> bool {
        column == DOC_ID
    }

    fn ordering(&self, _scan: &Scan) -> &'static [&'static str] {
        &["doc_id", "word_index"]
    }

    fn num_rows(&self, scan: &Scan) -> Precision<usize> {
        let segments = scan.corpora().iter().flat_map(|open| &open.footer.segments);
        let num_words = segments.fold(0u64, |sum, s| sum.saturating_add(s.num_word_tokens));
        usize::try_from(num_words).map_or(Precision::Absent, Precision::Inexact)
    }

    fn num_partitions(&self, scan: &Scan, target: usize) -> usize {
        num_partitions(scan, target)
    }

    fn uses(&self, _scan: &Scan) -> Uses {
        Uses::Text
    }

    fn explain(&self, scan: &Scan) -> Vec<(&'static str, String)> {
        vec![scan.device()]
    }

    fn merge(&self, scan: &Scan) -> Merge {
        if scan.uses(WORD_ID) { Merge::Combined } else { Merge::Behind }
    }

    fn combine(&self, rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        let words = WordCount::new(self.fold.clone());
        let ids = numbered(rows.for_all(Arc::new(words), &["word"])?)?;
        let tokens =
            rows.for_documents(Arc::new(self.clone()), &["doc_id", "word_index", "word"])?;
        // A hash join holds its left side in memory.
        ids.join(tokens.build()?, JoinType::Inner, (vec!["key"], vec!["word"]), None)
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let loaded = run.load().await?;
            run.blocking(move |run| send_rows(run, &loaded, &self.fold)).await
        }
        .boxed()
    }
}

fn send_rows(mut run: Execution, loaded: &LoadedCorpus, fold: &Fold) -> Result<()> {
    let docs = selected_documents(&run)?;
    let words = &loaded.words(fold)?;
    let num_read = run.counter("words_read");
    let mut cursor = TokenCursor::new(loaded.vocabulary(fold)?, &docs);
    while let Some(chunk) = cursor.next_chunk().map_err(datafusion_error)? {
        num_read.add(chunk.len());
        let more = run.send(chunk.len(), |column| match column {
            0 => int64(chunk.doc_ids().iter().copied()),
            1 => int64(chunk.word_indexes().iter().copied()),
            2 => int64(chunk.rows().iter().map(|&row| u64::from(row))),
            _ => words_at(words, chunk.rows()),
        })?;
        if !more {
            break;
        }
    }
    Ok(())
}
