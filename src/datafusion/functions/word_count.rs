//! The functions `word_count(corpus [, fold])` and `word_sort(corpus [, fold])`.
//!
//! Counts are stored with the words, or come from one top-down traversal of the grammar. Words are
//! views of the dictionary, in byte order. Filters on `word` and `count` run over the dictionary,
//! so that only the rows that pass are materialised.

use std::sync::Arc;

use datafusion::arrow::array::Array;
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::strings::int64;
use super::traversals::{SWEEP, record_sweep};
use super::word_rows::{Rows, WORD, for_each_selected, num_words};
use crate::errors::datafusion_error;
use crate::placement::Task;
use crate::portions::added_up;
use crate::scan::function::{Definition, Merge, PortionRows, TableFunction};
use crate::scan::signature::{self, ColumnKind, Signature};
use crate::scan::{Execution, Scan};
use crate::source::LoadedCorpus;
use crate::source::memory::Uses;
use tadoc::analytics::{Fold, Traversal, WordCounts};

const COUNT: usize = 1;
/// Text for EXPLAIN if the counts are stored and no grammar is traversed. If a corpus is open
/// already, its own counts are used: both were compared when it was opened.
const STORED: &str = "none: counts are stored with the words";

/// Reason why no device counts words: counting them takes no work.
const WORDS_COUNTED: &str = "the vocabulary has counted words";

/// The function `word_count` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "word_count",
        arguments: &[signature::CORPUS, signature::FOLD, signature::VERSION],
        columns: &[
            signature::column("word", ColumnKind::Text, "the word, in lower case where folded"),
            signature::column("count", ColumnKind::Integer, "how often it occurs"),
        ],
        summary: "how often each word occurs, in byte order of word",
    },
    bind: |arguments, _| Arc::new(WordCount::new(arguments.fold("fold"))),
};

/// The function `word_sort` in SQL.
pub(super) static SORTED: Definition = Definition {
    signature: Signature {
        name: "word_sort",
        arguments: &[signature::CORPUS, signature::FOLD, signature::VERSION],
        columns: &[
            signature::WORD,
            signature::column("count", ColumnKind::Integer, "how often it occurs"),
        ],
        summary: "how often each word occurs, in byte order of word",
    },
    bind: |arguments, _| Arc::new(WordCount::sorted(arguments.fold("fold"))),
};

#[derive(Debug, Clone)]
pub(crate) struct WordCount {
    signature: &'static Signature,
    fold: Fold,
}

impl WordCount {
    pub(crate) fn new(fold: Fold) -> Self {
        Self { signature: &DEFINITION.signature, fold }
    }

    /// Builds the function `word_sort`.
    pub(crate) fn sorted(fold: Fold) -> Self {
        Self { signature: &SORTED.signature, fold }
    }
}

impl TableFunction for WordCount {
    fn signature(&self) -> &'static Signature {
        self.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        vec![("fold", self.fold.to_string())]
    }

    fn claims_column(&self, column: &str) -> bool {
        matches!(column, "word" | "count")
    }

    fn ordering(&self, _scan: &Scan) -> &'static [&'static str] {
        &["word"]
    }

    fn num_rows(&self, scan: &Scan) -> Precision<usize> {
        num_words(scan)
    }

    fn device_task(&self, scan: &Scan) -> std::result::Result<Task, &'static str> {
        Err(if scan.uses(COUNT) { WORDS_COUNTED } else { "nothing is counted" })
    }

    fn explain(&self, scan: &Scan) -> Vec<(&'static str, String)> {
        let traversal = if are_stored(scan) { STORED } else { SWEEP };
        vec![scan.device(), ("traversal", traversal.into())]
    }

    fn uses(&self, scan: &Scan) -> Uses {
        if are_stored(scan) { Uses::Words } else { Uses::Text }
    }

    fn has_shares(&self, _scan: &Scan) -> bool {
        true
    }

    fn merge(&self, _scan: &Scan) -> Merge {
        Merge::Combined
    }

    fn combine(&self, rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        added_up(rows.for_all(Arc::new(self.clone()), &["word", "count"])?)
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let loaded =
                if are_stored(&run.scan) { run.load_words().await? } else { run.load().await? };
            run.blocking(move |run| send_counts(run, &loaded, &self.fold)).await
        }
        .boxed()
    }
}

/// Returns true if the counts that are stored in the files are the answer.
fn are_stored(scan: &Scan) -> bool {
    scan.options.traversal == Traversal::Auto && scan.source.has_word_counts()
}

fn send_counts(mut run: Execution, loaded: &LoadedCorpus, fold: &Fold) -> Result<()> {
    let counted = run.scan.uses(COUNT).then(|| {
        let vocabulary = loaded.vocabulary(fold)?;
        // A corpus of which only the words are loaded has no documents and no rules.
        if loaded.corpus.num_docs() > 0 {
            record_sweep(&run, loaded.corpus.segments());
        }
        WordCounts::with_vocabulary(vocabulary).map_err(datafusion_error)
    });
    let counted = counted.transpose()?;
    let counts = counted.as_ref().map_or(&[][..], WordCounts::counts);
    let counts = |rows: &Rows| match rows {
        Rows::Range(range) => int64(counts[range.clone()].iter().copied()),
        Rows::Selected(rows) => int64(rows.iter().map(|&row| counts[row])),
    };
    let words = &loaded.words(fold)?;
    let all = run.scan.share.part(words.len());
    for_each_selected(&mut run, words, all, counts, |run, words, rows| {
        run.send(words.len(), |column| match column {
            WORD => Ok(Arc::clone(words)),
            _ => counts(&rows),
        })
    })
}
