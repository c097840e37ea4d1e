//! The function `tokens(corpus [, fold])`: the words of each document in order, for word2vec and
//! similar methods.
//!
//! `word_id` is the word's row in `word_count(corpus)`, from 0, and its column in
//! `doc_term_matrix(corpus)`. Separators have no row.

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::logical_expr::{JoinType, LogicalPlanBuilder};
use futures::future::BoxFuture;

use super::doc_rows::{num_partitions, selected_documents, words_at};
use super::strings::{int64, shown_fold};
use super::word_count::WordCount;
use crate::corpora::LoadedCorpus;
use crate::corpora::memory::Uses;
use crate::errors::datafusion_error;
use crate::planning::function::{Definition, Facts, Merge, NO_KERNEL, PortionRows, Prepared, TableFunction};
use crate::planning::portions::numbered;
use crate::planning::signature::{self, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::analytics::{Fold, TokenCursor};

/// The function `tokens` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "tokens",
        arguments: &[signature::CORPUS, signature::FOLD, signature::VERSION, signature::WHERE],
        columns: &[
            signature::DOC_ID.claimed(),
            signature::integer("word_index", "words before it in the document"),
            signature::integer("word_id", "row of word_count, from 0"),
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

    fn facts(&self, scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let num_words = usize::try_from(scan.num_word_tokens());
        Facts {
            ordering: &["doc_id", "word_index"],
            num_rows: num_words.map_or(Precision::Absent, Precision::Inexact),
            num_partitions: num_partitions(scan),
            task: NO_KERNEL,
            uses: Uses::Text,
            merge: if scan.uses("word_id") { Merge::Combined } else { Merge::Behind },
            ..Facts::default()
        }
    }

    fn combine(&self, rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        let words = WordCount::new(self.fold.clone());
        let ids = numbered(rows.for_all(Arc::new(words), &["word"])?)?;
        let tokens = rows.for_documents(Arc::new(self.clone()), &["doc_id", "word_index", "word"])?;
        // A hash join holds its left side in memory.
        ids.join(tokens.build()?, JoinType::Inner, (vec!["key"], vec!["word"]), None)
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        run.with_corpus(move |run, loaded| send_rows(run, loaded, &self.fold))
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
            "doc_id" => int64(chunk.doc_ids().iter().copied()),
            "word_index" => int64(chunk.word_indexes().iter().copied()),
            "word_id" => int64(chunk.rows().iter().map(|&row| u64::from(row))),
            "word" => words_at(words, chunk.rows()),
            other => no_column(other),
        })?;
        if !more {
            break;
        }
    }
    Ok(())
}
