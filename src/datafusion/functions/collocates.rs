//! The function `collocates(corpus, query [, left] [, right] [, measure] [, min_count] [, fold] [, exact])`: the
//! words that stand near the hits of a query, and how strongly they belong to it.
//!
//! The neighbours of each hit are walked in the grammar, so the cost is that of the hits, not of all
//! pairs of words. How often a word occurs in the corpus is known from the vocabulary. Formulas and
//! sources of the measures are in `tadoc::analytics::Measure`.

use std::sync::Arc;

use datafusion::arrow::array::Float64Array;
use datafusion::error::Result;
use futures::future::BoxFuture;

use super::searching::{QueryText, count_near};
use super::sequence_rows::length;
use super::strings::{int64, views};
use crate::corpora::LoadedCorpus;
use crate::planning::function::{Definition, Facts, NO_KERNEL, Prepared, TableFunction};
use crate::planning::signature::{self, ArgumentKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::analytics::{Company, Fold, Measure, Vocabulary};
use tadoc::query::{Query, Window};
use tadoc::segment::Corpus;

/// Default number of words on each side.
const DEFAULT_SPAN: usize = 5;
/// Most words on each side. Each hit reads them all.
const MAX_SPAN: usize = 1000;

/// The function `collocates` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "collocates",
        arguments: &[
            signature::CORPUS,
            signature::QUERY,
            signature::optional("left", ArgumentKind::Integer, "5", "words before a match"),
            signature::optional("right", ArgumentKind::Integer, "5", "words behind a match"),
            signature::optional(
                "measure",
                ArgumentKind::Text,
                "'logdice'",
                "'logdice', 'mi', 't', 'll' (log-likelihood), 'mi3', 'dice', 'logratio' or 'deltap'",
            ),
            signature::optional("min_count", ArgumentKind::Integer, "1", "leave out rarer words"),
            signature::FOLD,
            signature::EXACT,
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[
            signature::text("word", "the word, in lower case where folded"),
            signature::integer("count", "how often it stands near a match"),
            signature::integer("corpus_count", "how often it occurs at all"),
            signature::number("score", "strength by the measure"),
        ],
        summary: "the words near the matches of a query, those that belong to it most first",
    },
    bind: |arguments, _| {
        let fold = arguments.fold("fold");
        Arc::new(Collocates {
            query: QueryText::from_arguments(arguments),
            window: Window {
                left: length(arguments.integer("left"), DEFAULT_SPAN),
                right: length(arguments.integer("right"), DEFAULT_SPAN),
            },
            measure: arguments.text("measure").to_owned(),
            min_count: arguments.integer("min_count").unwrap_or(1),
            fold,
        })
    },
};

#[derive(Debug)]
struct Collocates {
    query: QueryText,
    window: Window,
    /// The argument `measure`; empty if it was omitted.
    measure: String,
    min_count: u64,
    fold: Fold,
}

/// The parts of a call that are parsed.
struct Asked {
    query: Query,
    measure: Measure,
}

/// A row.
struct Collocate {
    /// Row of the word in the vocabulary.
    row: usize,
    count: u64,
    corpus_count: u64,
    score: f64,
}

impl TableFunction for Collocates {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let mut arguments = self.query.shown();
        let measure = self.measure().map_or_else(|_| self.measure.clone(), |m| m.as_str().into());
        arguments.extend([
            ("left", self.window.left.to_string()),
            ("right", self.window.right.to_string()),
            ("measure", measure),
            ("min_count", self.min_count.to_string()),
        ]);
        arguments
    }

    fn prepare(&self, scan: &ScanSpec) -> Result<Prepared> {
        let query = self.query.parse(self.signature(), scan)?;
        for (name, span) in [("left", self.window.left), ("right", self.window.right)] {
            if span > MAX_SPAN {
                let what = format!("{name}: got {span}, expected at most {MAX_SPAN} words");
                return Err(self.signature().error(what));
            }
        }
        Ok(Prepared::new(Asked { query, measure: self.measure()? }))
    }

    fn facts(&self, scan: &ScanSpec, prepared: &Prepared) -> Facts {
        let asked = prepared.get::<Asked>();
        let explain = asked.map(|asked| self.query.explain(scan, &asked.query));
        Facts { task: NO_KERNEL, explain: explain.unwrap_or_default(), ..Facts::default() }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        // Words are counted in all segments, also in those without a hit.
        run.with_corpus(move |run, loaded| self.send_rows(run, loaded))
    }
}

impl Collocates {
    fn measure(&self) -> Result<Measure> {
        match self.measure.as_str() {
            "" => Ok(Measure::default()),
            name => name.parse().map_err(|error| self.signature().error(error)),
        }
    }

    fn send_rows(&self, mut run: Execution, loaded: &LoadedCorpus) -> Result<()> {
        let vocabulary = loaded.vocabulary(&self.fold)?;
        let Some(rows) = self.rows(&run, loaded, &vocabulary)? else { return Ok(()) };
        for rows in rows.chunks(run.output.batch_size()) {
            let more = run.send(rows.len(), |column| match column {
                "word" => Ok(views(rows.iter().map(|row| vocabulary.word(row.row)))),
                "count" => int64(rows.iter().map(|row| row.count)),
                "corpus_count" => int64(rows.iter().map(|row| row.corpus_count)),
                "score" => Ok(Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.score)))),
                other => no_column(other),
            })?;
            if !more {
                break;
            }
        }
        Ok(())
    }

    /// Returns the rows in order: the highest score first, equal ones in byte order of the word.
    /// Returns `None` if the reader has left.
    fn rows(&self, run: &Execution, loaded: &LoadedCorpus, vocabulary: &Vocabulary) -> Result<Option<Vec<Collocate>>> {
        let asked = run.prepared::<Asked>()?;
        let near = count_near(run, loaded, &asked.query, self.window)?;
        let Some(near) = near else { return Ok(None) };
        let counted = loaded.word_counts(&self.fold)?;
        let total = counted.counts().iter().fold(0, |sum: u64, &count| sum.saturating_add(count));
        let reservation = run.reservation("Collocates");
        reservation.try_grow(bytes_of_sums(&loaded.corpus))?;
        let by_row = vocabulary.sums_by_row(near.by_id()).into_iter();
        let rows = by_row.filter(|(_, count)| *count >= self.min_count).map(|(row, together)| {
            let word_count = counted.count(row);
            let hits = near.num_hits();
            let near = near.num_words();
            let score = asked.measure.score(&Company { together, hits, near, word_count, total });
            Collocate { row, count: together, corpus_count: word_count, score }
        });
        let mut rows: Vec<Collocate> = rows.collect();
        // The sort is stable, and the rows are in byte order of their words.
        rows.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(Some(rows))
    }
}

/// Returns the bytes of a number for each word of each segment, if there are several segments.
fn bytes_of_sums(corpus: &Corpus) -> usize {
    match corpus.segments() {
        [_] => 0,
        many => many.iter().map(|segment| 8 * segment.dictionary.num_words() as usize).sum(),
    }
}
