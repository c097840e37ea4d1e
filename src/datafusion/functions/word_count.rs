//! The functions `word_count(corpus [, fold])` and `word_sort(corpus [, fold])`.
//!
//! Counts are stored with the words, or come from one top-down traversal of the grammar. Words are
//! views of the dictionary, in byte order. Filters on `word` and `count` run over the dictionary,
//! so that only the rows that pass are materialised.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, StringViewArray};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::doc_rows::{Rows, SWEEP, for_each_selected, merged_words_at, num_words, record_sweep};
use super::parcels::ParcelSender;
use super::strings::int64;
use crate::corpora::LoadedCorpus;
use crate::corpora::memory::Uses;
use crate::errors::datafusion_error;
use crate::planning::function::{Definition, Facts, Merge, ParcelRows, PortionRows, Prepared, TableFunction, Walk};
use crate::planning::portions::added_up;
use crate::planning::signature::{self, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::analytics::{Fold, MergedRows, Traversal, WordCounts};

/// Text for EXPLAIN if the counts are stored and no grammar is traversed. If a corpus is open
/// already, its own counts are used: both were compared when it was opened.
const STORED: &str = "none: counts are stored with the words";

/// Reason why no device counts words: counting them takes no work.
const WORDS_COUNTED: &str = "the vocabulary has counted words";

/// The function `word_count` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "word_count",
        arguments: &[signature::CORPUS, signature::FOLD, signature::VERSION, signature::WHERE],
        columns: &[
            signature::text("word", "the word, in lower case where folded").claimed(),
            signature::integer("count", "how often it occurs").claimed(),
        ],
        summary: "how often each word occurs, in byte order of word",
    },
    bind: |arguments, _| Arc::new(WordCount::new(arguments.fold("fold"))),
};

/// The function `word_sort` in SQL.
pub(super) static SORTED: Definition = Definition {
    signature: Signature {
        name: "word_sort",
        arguments: &[signature::CORPUS, signature::FOLD, signature::VERSION, signature::WHERE],
        columns: &[signature::WORD.claimed(), signature::integer("count", "how often it occurs").claimed()],
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

    fn facts(&self, scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let are_stored = are_stored(scan);
        let is_counted = scan.uses("count");
        Facts {
            ordering: &["word"],
            num_rows: num_words(scan),
            task: Some(Err(if is_counted { WORDS_COUNTED } else { "nothing is counted" })),
            uses: if are_stored { Uses::Words } else { Uses::Text },
            parcels: Some(ParcelRows::Words),
            merge: Merge::Combined,
            walk: Some(Walk::Only(if are_stored { STORED } else { SWEEP })),
            ..Facts::default()
        }
    }

    fn combine(&self, rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        added_up(rows.for_all(Arc::new(self.clone()), &["word", "count"])?)
    }

    fn merged_words(&self) -> Option<usize> {
        Some(1)
    }

    fn least_count(&self) -> u64 {
        // Each word of a dictionary has a row.
        0
    }

    fn merged_column(
        &self,
        name: &str,
        words: &StringViewArray,
        rows: &MergedRows,
        places: &[usize],
    ) -> Result<ArrayRef> {
        match name {
            "word" => merged_words_at(words, rows, places),
            "count" => int64(places.iter().map(|&row| rows.counts[row])),
            other => no_column(other),
        }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let loaded = if are_stored(&run.scan) { run.load_words().await? } else { run.load().await? };
            run.blocking(move |run| {
                let send = if run.scan.parcels.is_some() { send_parcels } else { send_counts };
                send(run, &loaded, &self.fold)
            })
            .await
        }
        .boxed()
    }
}

/// Returns true if the counts that are stored in the files are the answer.
fn are_stored(scan: &ScanSpec) -> bool {
    scan.options.traversal == Traversal::Auto && scan.source.has_word_counts()
}

fn send_counts(mut run: Execution, loaded: &LoadedCorpus, fold: &Fold) -> Result<()> {
    let counted = run.scan.uses("count").then(|| counted(&run, loaded, fold)).transpose()?;
    let counts = counted.as_ref().map_or(&[][..], WordCounts::counts);
    let counts = |rows: &Rows| match rows {
        Rows::Range(range) => int64(counts[range.clone()].iter().copied()),
        Rows::Selected(rows) => int64(rows.iter().map(|&row| counts[row])),
    };
    let words = &loaded.words(fold)?;
    let all = 0..words.len();
    for_each_selected(&mut run, words, all, counts, |run, words, rows| {
        run.send(words.len(), |column| match column {
            "word" => Ok(Arc::clone(words)),
            "count" => counts(&rows),
            other => no_column(other),
        })
    })
}

fn counted(run: &Execution, loaded: &LoadedCorpus, fold: &Fold) -> Result<WordCounts> {
    let vocabulary = loaded.vocabulary(fold)?;
    // A corpus of which only the words are loaded has no documents and no rules.
    if loaded.corpus.num_docs() > 0 {
        record_sweep(run, loaded.corpus.segments());
    }
    WordCounts::with_vocabulary(vocabulary).map_err(datafusion_error)
}

/// Sends words and their counts as packed rows.
fn send_parcels(mut run: Execution, loaded: &LoadedCorpus, fold: &Fold) -> Result<()> {
    let counted = counted(&run, loaded, fold)?;
    let sender = ParcelSender::new(&run, &loaded.vocabulary(fold)?)?;
    let counts = counted.counts();
    let row = |word: usize| (std::iter::once(word as u32), counts[word]);
    sender.send_ranges(&mut run, counts.len(), 0, |words| sender.packer().pack(words.map(row)))?;
    sender.send_words(&mut run)
}
