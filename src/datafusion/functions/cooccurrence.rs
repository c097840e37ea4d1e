//! The function `cooccurrence(corpus [, window] [, min_count] [, fold] [, word])`: pairs of words that
//! occur near each other, and their counts.
//!
//! Two positions of one document that are less than `window` words apart count as one pair. With
//! `word`, only the pairs of this word are counted, at its places: each has the words less than
//! `window` away as partners. A pair of the word with itself is met from both of its places.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewArray};
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlanBuilder, col, lit};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::counted_rows::{CountedRows, CountedTask, send_counted};
use super::doc_rows::words_at;
use super::searching::count_near;
use super::sequence_rows::{MadeRows, check_at_least, length};
use super::strings::{int64, shown_fold, views};
use super::word_count::WordCount;
use crate::corpora::memory::Uses;
use crate::corpora::{LoadedCorpus, Sought};
use crate::errors::datafusion_error;
use crate::placement::Task;
use crate::planning::answers::{self, SequenceTable};
use crate::planning::function::{
    BoundFunction, Definition, Facts, Merge, ParcelRows, PortionRows, Prepared, TableFunction, Walk,
};
use crate::planning::portions::added_up;
use crate::planning::signature::{self, ArgumentKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::analytics::{Cooccurrences, Fold, MergedRows, Pairing, TaskLimits, Traversal, TraversalTask, Vocabulary};
use tadoc::query::{Query, Window};
use tadoc::text::{TokenizerProfile, for_each_token};

/// The function `cooccurrence` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "cooccurrence",
        arguments: &[
            signature::CORPUS,
            signature::optional("window", ArgumentKind::Integer, "5", "words, of which a pair is two"),
            signature::optional("min_count", ArgumentKind::Integer, "1", "leave out rarer pairs"),
            signature::FOLD,
            signature::optional(
                "word",
                ArgumentKind::Text,
                "NULL",
                "only pairs with this word, which is word1; a filter on word1 misses those in which it is \
                 word2",
            ),
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[
            signature::text("word1", "the word that is less in byte order, or the given one"),
            signature::text("word2", "the other, or the same"),
            signature::integer("count", "how often both stand in one window").claimed(),
        ],
        summary: "which words stand near each other, and how often",
    },
    bind: |arguments, _| {
        let window = arguments.integer("window");
        let min_count = arguments.integer("min_count");
        let word = Some(arguments.text("word")).filter(|word| !word.is_empty());
        Arc::new(Cooccurrence::new(window, min_count, arguments.fold("fold"), word))
    },
};

#[derive(Debug, Clone)]
pub(crate) struct Cooccurrence {
    window: usize,
    min_count: u64,
    fold: Fold,
    /// The word of all pairs as it was written, if one is given. The stem of a stem may be another.
    word: Option<String>,
}

impl Cooccurrence {
    fn new(window: Option<u64>, min_count: Option<u64>, fold: Fold, word: Option<&str>) -> Self {
        let window = length(window, 5);
        let min_count = min_count.unwrap_or(1);
        Self { window, min_count, fold, word: word.map(str::to_owned) }
    }

    /// Returns the function that a part of a corpus runs: a pair that is rare in each may be frequent in all.
    fn with_rare_pairs(&self) -> Self {
        Self { min_count: 1, ..self.clone() }
    }

    fn pairing(&self) -> Pairing {
        Pairing { window: self.window, min_count: self.min_count }
    }
}

impl TableFunction for Cooccurrence {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let mut arguments = vec![("window", self.window.to_string()), ("min_count", self.min_count.to_string())];
        arguments.extend(shown_fold(&self.fold));
        arguments.extend(self.word.clone().map(|word| ("word", word)));
        arguments
    }

    fn prepare(&self, scan: &ScanSpec) -> Result<Prepared> {
        check_at_least(self.signature(), "window", self.window, 2)?;
        let Some(word) = &self.word else { return Ok(Prepared::default()) };
        let profile = scan.source.profile();
        if !is_one_word(profile, word) {
            let expected = format!("expected one word of the tokenizer profile {profile}");
            return Err(self.signature().error(format!("word: got '{word}', {expected}")));
        }
        let query = Query::for_word(word).folded(&self.fold).map_err(datafusion_error)?;
        Ok(Prepared::new(query))
    }

    fn facts(&self, _scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let facts =
            Facts { ordering: &["word1", "word2"], can_spread: true, merge: Merge::Combined, ..Facts::default() };
        if self.word.is_some() {
            return Facts {
                task: Some(Err("the pairs of one word are counted at its places")),
                walk: Some(Walk::Only("none: the places of the word")),
                ..facts
            };
        }
        let is_folded = self.fold != Fold::NONE;
        Facts {
            task: Some(Ok(Task::Cooccurrence { window: self.window, is_folded })),
            uses: Uses::Text,
            parcels: Some(ParcelRows::Task(TraversalTask::Cooccurrence, self.window)),
            walk: Some(Walk::ForSequences(TraversalTask::Cooccurrence, self.window)),
            ..facts
        }
    }

    fn combine(&self, rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        let pairs = added_up(rows.for_all(Arc::new(self.with_rare_pairs()), &["word1", "word2", "count"])?)?;
        match i64::try_from(self.min_count) {
            Ok(0 | 1) => Ok(pairs),
            Ok(min_count) => pairs.filter(col("count").gt_eq(lit(min_count))),
            Err(_) => pairs.filter(lit(false)),
        }
    }

    fn merged_words(&self) -> Option<usize> {
        self.word.is_none().then_some(2)
    }

    fn least_count(&self) -> u64 {
        self.min_count
    }

    fn words_of_rows(&self) -> Option<BoundFunction> {
        Some(Arc::new(WordCount::new(self.fold.clone())))
    }

    fn merged_column(
        &self,
        name: &str,
        words: &StringViewArray,
        rows: &MergedRows,
        places: &[usize],
    ) -> Result<ArrayRef> {
        self.column(name, words, rows, places)
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let Some(word) = self.word.clone() else {
                let loaded = run.load().await?;
                let task = if run.scan.parcels.is_some() { self.with_rare_pairs() } else { Self::clone(&self) };
                return run.blocking(move |run| send_counted(&task, run, &loaded)).await;
            };
            if run.partition > 0 {
                return Ok(());
            }
            let query = run.prepared::<Query>()?;
            let sought = Sought { query: Some(Query::clone(&query)), ..Sought::default() };
            let loaded = run.load_sought(sought).await?;
            let word = self.fold.text(&word).into_owned();
            run.blocking(move |run| self.send_pairs_of(run, &loaded, &word, &query)).await
        }
        .boxed()
    }
}

/// Returns true if `text` is one word of `profile`.
fn is_one_word(profile: TokenizerProfile, text: &str) -> bool {
    let mut num_tokens = 0;
    let mut is_word = false;
    for_each_token(profile, text.as_bytes(), |token| {
        num_tokens += 1;
        is_word = token.is_word;
    });
    num_tokens == 1 && is_word
}

/// Returns the place in a pair of the word of the column `name`.
fn place(name: &str) -> usize {
    usize::from(name == "word2")
}

impl Cooccurrence {
    /// Sends the pairs of the folded `word`, whose places are the hits of `query`.
    fn send_pairs_of(&self, mut run: Execution, loaded: &LoadedCorpus, word: &str, query: &Query) -> Result<()> {
        let reach = self.window.saturating_sub(1);
        let window = Window { left: reach, right: reach };
        let Some(near) = count_near(&run, loaded, query, window)? else { return Ok(()) };
        let mut pairs = near.by_word(&loaded.corpus, &self.fold);
        if let Some(count) = pairs.get_mut(word) {
            *count /= 2;
        }
        pairs.retain(|_, count| *count >= self.min_count);
        let pairs: Vec<(String, u64)> = pairs.into_iter().collect();
        let scan = run.scan.clone();
        for start in (0..pairs.len()).step_by(run.output.batch_size()) {
            let rows = start..pairs.len().min(start + run.output.batch_size());
            let made = MadeRows::passing(&scan, rows, |column, rows| match column {
                "word1" => Ok(views(rows.iter().map(|_| word))),
                "word2" => Ok(views(rows.iter().map(|&row| pairs[row].0.as_str()))),
                "count" => int64(rows.iter().map(|&row| pairs[row].1)),
                other => no_column(other),
            })?;
            if !made.send(&mut run)? {
                break;
            }
        }
        Ok(())
    }
}

impl CountedTask for Cooccurrence {
    type Part = Cooccurrences;

    const CONSUMER: &str = "Cooccurrence";

    fn num_words(&self) -> usize {
        2
    }

    fn fold(&self) -> &Fold {
        &self.fold
    }

    fn table(&self, run: &Execution, vocabulary: &Arc<Vocabulary>) -> Result<Option<SequenceTable>> {
        answers::cooccurrences(run, vocabulary, self.pairing())
    }

    fn count<T: Send>(
        &self,
        vocabulary: Arc<Vocabulary>,
        traversal: Traversal,
        limits: TaskLimits<'_>,
        make: impl Fn(Cooccurrences) -> T + Send + Sync,
        take: impl FnMut(T, usize) -> tadoc::Result<bool>,
    ) -> tadoc::Result<()> {
        Cooccurrences::in_parts(vocabulary, self.pairing(), traversal, limits, make, take)
    }

    fn column(
        &self,
        name: &str,
        words: &StringViewArray,
        rows: &impl CountedRows,
        places: &[usize],
    ) -> Result<ArrayRef> {
        match name {
            "word1" | "word2" => {
                let word = |&row: &usize| rows.words(row).nth(place(name));
                words_at(words, &places.iter().filter_map(word).collect::<Vec<_>>())
            }
            "count" => int64(places.iter().map(|&row| rows.count(row))),
            other => no_column(other),
        }
    }
}
