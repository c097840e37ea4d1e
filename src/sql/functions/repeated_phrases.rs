//! `repeated_phrases(corpus [, min_words] [, min_count] [, fold])`: what a corpus repeats, in phrases
//! as long as they can be: boilerplate, licences, templates of logs.
//!
//! Those that cover most words (words times count) come first. Filters on `words` and `count` run
//! before texts are made.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewBuilder};
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::TableFunction;
use super::sequence_rows::{COUNT, check_at_least, length, task_memory_bytes};
use super::strings::{fold_of, int64, shown_fold};
use crate::analytics::{self, DocSelection, Fold};
use crate::sql::corpora::LoadedCorpus;
use crate::sql::failure::datafusion_error;
use crate::sql::scan::{Run, Scan, selected};
use crate::sql::signature::{Signature, entry};

const PHRASE: usize = 0;
const WORDS: usize = 1;
/// Of a longer phrase the words that go into so many bytes are shown.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Text of one batch, which Arrow's views could not address past 2 GiB.
const BATCH_BYTES: usize = 32 << 20;
/// Rows looked at between two tests for cancellation.
const CHUNK_ROWS: usize = 65_536;

#[derive(Debug)]
pub(crate) struct RepeatedPhrases {
    min_words: usize,
    min_count: u64,
    fold: Fold,
}

impl RepeatedPhrases {
    pub(crate) fn new(min_words: Option<u64>, min_count: Option<u64>, is_folded: bool) -> Self {
        let (min_words, min_count) = (length(min_words, 8), min_count.unwrap_or(2));
        Self { min_words, min_count, fold: fold_of(is_folded) }
    }
}

impl TableFunction for RepeatedPhrases {
    fn signature(&self) -> &'static Signature {
        const { entry("repeated_phrases") }
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let (min_words, min_count) = (self.min_words.to_string(), self.min_count.to_string());
        let mut arguments = vec![("min_words", min_words), ("min_count", min_count)];
        arguments.extend(shown_fold(self.fold));
        arguments
    }

    fn claims_column(&self, column: &str) -> bool {
        matches!(column, "words" | COUNT)
    }

    fn prepare(&self, _scan: &Scan) -> Result<()> {
        check_at_least(self.signature(), "min_words", self.min_words, 1)?;
        check_at_least(self.signature(), "min_count", length(Some(self.min_count), 2), 2)
    }

    fn explain(&self, _scan: &Scan) -> Vec<(&'static str, String)> {
        let how = "token_scan: repeated sequences of min_words words, then their suffixes in order";
        vec![("device", "cpu".into()), ("traversal", how.into())]
    }

    fn run(self: Arc<Self>, run: Run) -> BoxFuture<'static, Result<()>> {
        async move {
            let loaded = run.load().await?;
            run.blocking(move |run| self.send_phrases(run, &loaded)).await
        }
        .boxed()
    }
}

impl RepeatedPhrases {
    fn send_phrases(&self, mut run: Run, loaded: &LoadedCorpus) -> Result<()> {
        let vocabulary = loaded.vocabulary(self.fold)?;
        let phrases = analytics::RepeatedPhrases::with_vocabulary(
            vocabulary,
            &DocSelection::all(&loaded.corpus),
            self.min_words,
            self.min_count,
            task_memory_bytes(&run),
        );
        let phrases = phrases.map_err(datafusion_error)?;
        let reservation = run.reservation("RepeatedPhrases");
        reservation.try_grow(phrases.memory_bytes())?;
        let number = |column: usize, row: usize| match column {
            WORDS => phrases.words(row).len() as u64,
            _ => phrases.count(row),
        };
        let scan = Arc::clone(&run.scan);
        for start in (0..phrases.len()).step_by(CHUNK_ROWS) {
            let chunk = start..phrases.len().min(start + CHUNK_ROWS);
            let numbers = |column| int64(chunk.clone().map(|row| number(column, row)));
            let rows: Vec<usize> = match scan.mask(chunk.len(), numbers)? {
                None => chunk.collect(),
                Some(mask) => selected(&mask).map(|i| start + i).collect(),
            };
            let mut rest = rows.as_slice();
            while !rest.is_empty() {
                let len = batch_len(&phrases, rest, run.output.batch_size());
                let (batch, behind) = rest.split_at(len);
                rest = behind;
                let more = run.send(len, |column| match column {
                    PHRASE => texts(&phrases, batch),
                    _ => int64(batch.iter().map(|&row| number(column, row))),
                })?;
                if !more {
                    return Ok(());
                }
            }
            if run.output.is_done() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// How many of `rows` go into one batch, one at least. Words are short: that many bytes of text are
/// passed by little.
fn batch_len(phrases: &analytics::RepeatedPhrases, rows: &[usize], batch_size: usize) -> usize {
    let mut num_bytes = 0;
    let fits = |&&row: &&usize| {
        num_bytes += (16 * phrases.words(row).len()).min(MAX_TEXT_BYTES);
        num_bytes <= BATCH_BYTES
    };
    rows.iter().take(batch_size).take_while(fits).count().max(1)
}

fn texts(phrases: &analytics::RepeatedPhrases, rows: &[usize]) -> Result<ArrayRef> {
    let mut builder = StringViewBuilder::with_capacity(rows.len());
    let mut text = String::new();
    for &row in rows {
        text.clear();
        phrases.append_text(row, MAX_TEXT_BYTES, &mut text);
        builder.try_append_value(&text)?;
    }
    Ok(Arc::new(builder.finish()))
}
