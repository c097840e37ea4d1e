//! The function `repeated_phrases(corpus [, min_words] [, min_count] [, fold] [, max_words])`: the
//! phrases that a corpus repeats, each as long as possible.
//!
//! Examples are boilerplate, licences and templates of logs. Phrases that cover most words (words
//! times count) come first. Filters on `words` and `count` run before texts are made. Texts are cut
//! after `max_words` words: versions of a text share phrases of megabytes, at each of their lengths.

use std::sync::Arc;

use datafusion::error::Result;
use futures::future::BoxFuture;

use super::sequence_rows::{check_at_least, for_each_passing, length, task_memory_bytes, texts};
use super::strings::{int64, shown_fold};
use crate::corpora::LoadedCorpus;
use crate::corpora::memory::Uses;
use crate::errors::datafusion_error;
use crate::planning::function::{Definition, Facts, NO_KERNEL, Prepared, TableFunction, Walk};
use crate::planning::signature::{self, ArgumentKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::analytics::{self, DocSelection, Fold, TaskLimits};

/// Largest number of bytes of a phrase's text. Words beyond it are omitted.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Bytes of text of one batch. Arrow's views cannot address more than 2 GiB.
const BATCH_BYTES: usize = 32 << 20;

/// The function `repeated_phrases` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "repeated_phrases",
        arguments: &[
            signature::CORPUS,
            signature::optional("min_words", ArgumentKind::Integer, "8", "leave out shorter phrases"),
            signature::optional("min_count", ArgumentKind::Integer, "2", "leave out rarer phrases"),
            signature::FOLD,
            signature::optional("max_words", ArgumentKind::Integer, "256", "cut the text of longer phrases"),
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[
            signature::text("phrase", "its words, joined by one blank; after max_words or 64 KiB an ellipsis"),
            signature::integer("words", "number of its words").claimed(),
            signature::integer("count", "how often it occurs").claimed(),
        ],
        summary: "what the corpus repeats, as long as it can be, that which covers most words first",
    },
    bind: |arguments, _| {
        let min_words = arguments.integer("min_words");
        let min_count = arguments.integer("min_count");
        let max_words = arguments.integer("max_words");
        Arc::new(RepeatedPhrases {
            min_words: length(min_words, 8),
            min_count: min_count.unwrap_or(2),
            max_words: length(max_words, 256),
            fold: arguments.fold("fold"),
        })
    },
};

#[derive(Debug)]
pub(crate) struct RepeatedPhrases {
    min_words: usize,
    min_count: u64,
    max_words: usize,
    fold: Fold,
}

impl TableFunction for RepeatedPhrases {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let min_words = self.min_words.to_string();
        let min_count = self.min_count.to_string();
        let mut arguments = vec![("min_words", min_words), ("min_count", min_count)];
        arguments.extend(shown_fold(&self.fold));
        arguments.push(("max_words", self.max_words.to_string()));
        arguments
    }

    fn prepare(&self, _scan: &ScanSpec) -> Result<Prepared> {
        check_at_least(self.signature(), "min_words", self.min_words, 1)?;
        check_at_least(self.signature(), "min_count", length(Some(self.min_count), 2), 2)?;
        Ok(Prepared::default())
    }

    fn facts(&self, _scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let how = "token_scan: repeated sequences of min_words words, then their suffixes in order";
        let walk = Some(Walk::Only(how));
        Facts { uses: Uses::Text, task: NO_KERNEL, walk, ..Facts::default() }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        run.with_corpus(move |run, loaded| self.send_phrases(run, loaded))
    }
}

impl RepeatedPhrases {
    fn send_phrases(&self, mut run: Execution, loaded: &LoadedCorpus) -> Result<()> {
        let vocabulary = loaded.vocabulary(&self.fold)?;
        let reader = run.output.canceller();
        let is_cancelled = || reader.is_closed();
        let max_memory_bytes = task_memory_bytes(&run);
        let phrases = analytics::RepeatedPhrases::with_vocabulary(
            vocabulary,
            &DocSelection::all(&loaded.corpus),
            self.min_words,
            self.min_count,
            TaskLimits { max_memory_bytes, is_cancelled: &is_cancelled },
        );
        let phrases = match phrases {
            Err(tadoc::Error::Cancelled) => return Ok(()),
            found => found.map_err(datafusion_error)?,
        };
        let reservation = run.reservation("RepeatedPhrases");
        reservation.try_grow(phrases.memory_bytes())?;
        let numbers = |name: &str, rows: &[usize]| match name {
            "words" => int64(rows.iter().map(|&row| phrases.words(row).len() as u64)),
            "count" => int64(rows.iter().map(|&row| phrases.count(row))),
            other => no_column(other),
        };
        let append = |row, text: &mut String| {
            phrases.append_text(row, self.max_words, MAX_TEXT_BYTES, text);
        };
        for_each_passing(&mut run, phrases.len(), numbers, |run, mut rows| {
            while !rows.is_empty() {
                let (batch, behind) = rows.split_at(batch_len(&phrases, rows, self.max_words));
                rows = behind;
                let more = run.send(batch.len(), |column| match column {
                    "phrase" => texts(batch.iter().copied(), append),
                    name => numbers(name, batch),
                })?;
                if !more {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }
}

/// Returns the number of `rows` that go into one batch, at least one. The size is estimated with 16
/// bytes for each word; words are short, so that the text exceeds [`BATCH_BYTES`] at most by
/// little.
fn batch_len(phrases: &analytics::RepeatedPhrases, rows: &[usize], max_words: usize) -> usize {
    let mut num_bytes = 0;
    let fits = |&&row: &&usize| {
        num_bytes += (16 * phrases.words(row).len().min(max_words)).min(MAX_TEXT_BYTES);
        num_bytes <= BATCH_BYTES
    };
    rows.iter().take_while(fits).count().max(1)
}
