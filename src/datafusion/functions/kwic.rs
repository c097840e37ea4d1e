//! The function `kwic(corpus, query [, width] [, fold] [, exact] [, blanks] [, where] [, sample] [, seed])`: every hit
//! in its context, as concordances show them.
//!
//! Contexts are text as it stands in the document, cut at words. White space in them is shown as one blank, so that a
//! row is a line; `blanks => 'keep'` leaves it as it is. The words of a context, from the hit outwards, are listed only
//! if a statement uses them, folded as the query is. Only contexts are decoded. Filters on `doc_id` choose the
//! documents before the search.
//!
//! ```text
//! sample => 2   hits 1 2 3 4 5 ─▶ hash of seed, document and place   7 1 9 4 6   ─▶  the two least, 2 and 4, in order
//! ```
//!
//! A sample is the same each time, whatever the segments and partitions. One of a hundred lines is part of one of two
//! hundred. It takes a search of all hits, and memory for the lines that it has. It is drawn before any filter.

use std::borrow::Cow;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewBuilder};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::doc_rows::paths;
use super::searching::{QueryText, Searched, finished, load_searched, searched_segments};
use super::sequence_rows::length;
use super::strings::{int64, list_array};
use crate::corpora::{LoadedCorpus, Sought};
use crate::errors::datafusion_error;
use crate::planning::function::{Definition, Facts, Merge, Prepared, TableFunction};
use crate::planning::signature::{self, ArgumentKind, ColumnKind, Columns, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::analytics::Fold;
use tadoc::query::{
    Context, ContextBatch, ContextForm, ContextWords, DEFAULT_KWIC_WIDTH, Hit, MAX_CONTEXT_BYTES, Query, SearchOptions,
    kwic_hits, kwic_segments, search_segments,
};
use tadoc::segment::Corpus;

/// The function `kwic` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "kwic",
        arguments: &[
            signature::CORPUS,
            signature::QUERY,
            signature::optional("width", ArgumentKind::Integer, "8", "words on each side, at most 64 KiB"),
            signature::QUERY_FOLD,
            signature::optional(
                "blanks",
                ArgumentKind::Text,
                "'collapse'",
                "'collapse' shows white space as one blank, 'keep' as it is",
            ),
            signature::EXACT,
            signature::VERSION,
            signature::WHERE,
            signature::optional("sample", ArgumentKind::Integer, "NULL", "so many matches only, chosen at random"),
            signature::optional("seed", ArgumentKind::Integer, "0", "another number chooses other matches"),
        ],
        columns: &[
            signature::DOC_ID.claimed(),
            signature::PATH,
            signature::text("left", "text before the match"),
            signature::text("match", "text of the match"),
            signature::text("right", "text behind the match"),
            signature::column("left_words", ColumnKind::TextList, "words before the match, folded, the nearest first"),
            signature::column("right_words", ColumnKind::TextList, "words behind the match, folded, the nearest first"),
            signature::integer("byte_offset", "where the match begins in the document"),
            signature::integer("byte_len", "length of the match in bytes"),
        ],
        summary: "every match in its context",
    },
    bind: |arguments, _| {
        let width = length(arguments.integer("width"), DEFAULT_KWIC_WIDTH);
        let blanks = arguments.text("blanks").to_owned();
        let sample = arguments.integer("sample").map(|num_hits| Sample {
            num_hits: usize::try_from(num_hits).unwrap_or(usize::MAX),
            seed: arguments.integer("seed").unwrap_or(0),
        });
        let fold = arguments.fold("fold");
        Arc::new(Kwic { query: QueryText::from_arguments(arguments), fold, width, blanks, sample })
    },
};

#[derive(Debug)]
pub(crate) struct Kwic {
    query: QueryText,
    fold: Fold,
    width: usize,
    /// The argument `blanks`; empty if it was omitted.
    blanks: String,
    /// The hits that are shown, if not all are.
    sample: Option<Sample>,
}

/// A number of hits that are chosen at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    num_hits: usize,
    seed: u64,
}

impl Sample {
    /// Returns a number by which `hit` is chosen. It depends on nothing else (SplitMix64).
    fn rank(self, hit: &Hit) -> u64 {
        [hit.doc_id, hit.byte_offset].into_iter().fold(mixed(self.seed), |rank, number| mixed(rank ^ number))
    }
}

fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// A hit of a sample, in order of rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    rank: u64,
    doc_id: u64,
    byte_offset: u64,
    byte_len: u64,
    word_index: u64,
}

impl Ranked {
    fn hit(self) -> Hit {
        let Self { doc_id, byte_offset, byte_len, word_index, .. } = self;
        Hit { doc_id, byte_offset, byte_len, word_index }
    }
}

/// White space in contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blanks {
    Collapse,
    Keep,
}

/// The parts of a call that are parsed.
struct Asked {
    query: Query,
    blanks: Blanks,
}

impl Kwic {
    fn blanks(&self) -> Result<Blanks> {
        match self.blanks.as_str() {
            "" | "collapse" => Ok(Blanks::Collapse),
            "keep" => Ok(Blanks::Keep),
            other => {
                let expected = "expected 'collapse' or 'keep'";
                Err(self.signature().error(format!("blanks: got '{other}', {expected}")))
            }
        }
    }
}

impl TableFunction for Kwic {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let mut arguments = self.query.shown();
        arguments.push(("width", self.width.to_string()));
        let blanks = Some(self.blanks.clone()).filter(|blanks| blanks == "keep");
        arguments.extend(blanks.map(|blanks| ("blanks", blanks)));
        if let Some(Sample { num_hits, seed }) = self.sample {
            arguments.extend([("sample", num_hits.to_string()), ("seed", seed.to_string())]);
        }
        arguments
    }

    fn columns(&self) -> Columns {
        let columns = Columns::from_signature(self.signature());
        // Filters choose among the lines of the sample.
        if self.sample.is_some() { columns.unclaimed() } else { columns }
    }

    fn prepare(&self, scan: &ScanSpec) -> Result<Prepared> {
        let query = self.query.parse(self.signature(), scan)?;
        Ok(Prepared::new(Asked { query, blanks: self.blanks()? }))
    }

    fn facts(&self, scan: &ScanSpec, prepared: &Prepared) -> Facts {
        let Ok(asked) = prepared.get::<Asked>() else { return Facts::default() };
        let text_bytes = scan.words_bytes(self.width.saturating_mul(2));
        let times = if lists_words(scan) { 4 } else { 1 };
        let facts = self.query.hit_facts(scan, &asked.query);
        let row_bytes = text_bytes.min(2 * MAX_CONTEXT_BYTES as u64) * times;
        if self.sample.is_some() {
            // A portion does not know the hits of the others.
            return Facts { row_bytes, num_partitions: 1, merge: Merge::Never, ..facts };
        }
        Facts { row_bytes, ..facts }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let asked = run.prepared::<Asked>()?;
            let loaded = match self.sample {
                None => load_searched(&run, &asked.query, None).await?,
                // The first hits are not enough, also if few rows are asked for.
                Some(_) => {
                    let sought = Sought { query: Some(asked.query.clone()), ..Sought::default() };
                    run.load_sought(sought).await?
                }
            };
            run.blocking(move |run| self.send_contexts(run, &asked, &loaded)).await
        }
        .boxed()
    }
}

impl Kwic {
    fn send_contexts(&self, mut run: Execution, asked: &Asked, loaded: &LoadedCorpus) -> Result<()> {
        let searched = Searched::shared(&run)?;
        let cancel = run.output.canceller();
        let is_cancelled = move || cancel.is_closed();
        let options = SearchOptions {
            doc_id: None,
            docs: searched.docs(),
            max_hits: run.scan.options.max_hits,
            is_cancelled: &is_cancelled,
        };
        let max_bytes = run.scan.options.max_output_bytes;
        let &Asked { ref query, blanks } = asked;
        let form = ContextForm { width: self.width, with_words: lists_words(&run.scan) };
        let corpus = &loaded.corpus;
        let segments = searched_segments(&run, corpus);
        let reservation = run.reservation("Kwic");
        let sampled = match self.sample {
            None => None,
            Some(sample) => match sampled(sample, query, corpus, &options, &searched, &reservation)? {
                Some(hits) => Some(hits),
                None => return Ok(()),
            },
        };
        let held = reservation.size();
        let shape = Shape { blanks, fold: &self.fold };
        let mut outcome = Ok(true);
        let mut visit = |batch: &ContextBatch| {
            let num_new = if sampled.is_some() { 0 } else { batch.len() };
            outcome = searched
                .num_hits
                .add(num_new)
                .and_then(|()| reservation.try_resize(held + 2 * batch.memory_bytes()))
                .and_then(|()| send_batch(&mut run, loaded, batch, shape));
            match outcome {
                Ok(true) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        };
        let found = match &sampled {
            None => kwic_segments(corpus, query, segments, form, max_bytes, &options, &mut visit),
            Some(hits) => kwic_hits(corpus, hits, form, max_bytes, options.is_cancelled, &mut visit),
        };
        finished(outcome.map(drop), found)
    }
}

/// Returns the hits of `sample` in order of their places; `None` if nobody reads any more.
fn sampled(
    sample: Sample,
    query: &Query,
    corpus: &Corpus,
    options: &SearchOptions<'_>,
    searched: &Searched,
    reservation: &MemoryReservation,
) -> Result<Option<Vec<Hit>>> {
    let mut best: BinaryHeap<Ranked> = BinaryHeap::new();
    let mut outcome = Ok(());
    let segments = 0..corpus.segments().len();
    let found = search_segments(corpus, query, segments, options, &mut |hits| {
        for hit in hits {
            let &Hit { doc_id, byte_offset, byte_len, word_index } = hit;
            best.push(Ranked { rank: sample.rank(hit), doc_id, byte_offset, byte_len, word_index });
            if best.len() > sample.num_hits {
                best.pop();
            }
        }
        let held = best.capacity() * size_of::<Ranked>() + best.len() * size_of::<Hit>();
        outcome = searched.num_hits.add(hits.len()).and_then(|()| reservation.try_resize(held));
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    outcome?;
    match found {
        Err(tadoc::Error::Cancelled) => return Ok(None),
        other => other.map_err(datafusion_error)?,
    }
    let mut hits: Vec<Hit> = best.into_iter().map(Ranked::hit).collect();
    hits.sort_unstable_by_key(|hit| (hit.doc_id, hit.byte_offset, hit.byte_len));
    Ok(Some(hits))
}

/// The form of the texts of a row.
#[derive(Clone, Copy)]
struct Shape<'a> {
    blanks: Blanks,
    /// The fold of the words of contexts.
    fold: &'a Fold,
}

/// Returns true if the words of contexts are used.
fn lists_words(scan: &ScanSpec) -> bool {
    scan.uses("left_words") || scan.uses("right_words")
}

fn send_batch(run: &mut Execution, loaded: &LoadedCorpus, batch: &ContextBatch, shape: Shape<'_>) -> Result<bool> {
    let texts = |part: for<'a> fn(&Context<'a>) -> &'a [u8]| -> Result<ArrayRef> {
        let mut builder = StringViewBuilder::with_capacity(batch.len());
        for context in batch.iter() {
            let text = String::from_utf8_lossy(part(&context));
            builder.try_append_value(match shape.blanks {
                Blanks::Collapse => with_single_blanks(text),
                Blanks::Keep => text,
            })?;
        }
        Ok(Arc::new(builder.finish()))
    };
    let words = |side: for<'a> fn(&Context<'a>) -> ContextWords<'a>| -> Result<ArrayRef> {
        let mut builder = StringViewBuilder::new();
        let mut ends = Vec::with_capacity(batch.len());
        for context in batch.iter() {
            let words = side(&context);
            let end = ends.last().unwrap_or(&0) + words.iter().len();
            for word in words.iter() {
                builder.try_append_value(shape.fold.text(&String::from_utf8_lossy(word)))?;
            }
            ends.push(end);
        }
        Ok(Arc::new(list_array(Arc::new(builder.finish()), ends.into_iter(), None)?))
    };
    run.send(batch.len(), |column| match column {
        "doc_id" => int64(batch.iter().map(|context| context.hit.doc_id)),
        "path" => {
            let ids: Vec<u64> = batch.iter().map(|context| context.hit.doc_id).collect();
            Ok(paths(&loaded.corpus, &ids))
        }
        "left" => texts(|context| context.left),
        "match" => texts(|context| context.matched),
        "left_words" => words(|context| context.left_words),
        "right_words" => words(|context| context.right_words),
        "right" => texts(|context| context.right),
        "byte_offset" => int64(batch.iter().map(|context| context.hit.byte_offset)),
        "byte_len" => int64(batch.iter().map(|context| context.hit.byte_len)),
        other => no_column(other),
    })
}

/// Returns `text` with one blank in place of each run of white space.
fn with_single_blanks(text: Cow<'_, str>) -> Cow<'_, str> {
    let mut is_behind_space = false;
    let is_odd = |c: char| {
        let was_behind_space = std::mem::replace(&mut is_behind_space, c.is_whitespace());
        c.is_whitespace() && (c != ' ' || was_behind_space)
    };
    if !text.contains(is_odd) {
        return text;
    }
    let mut single = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_whitespace() {
            single.push(c);
        } else if !single.ends_with(' ') {
            single.push(' ');
        }
    }
    Cow::Owned(single)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_becomes_one_blank() {
        for (text, expected) in [
            ("a, b", "a, b"),
            ("", ""),
            (" a ", " a "),
            ("a\n", "a "),
            ("\r\n\ta  b\u{3000}c \n", " a b c "),
            ("a\u{a0}b", "a b"),
        ] {
            assert_eq!(with_single_blanks(Cow::Borrowed(text)), expected, "{text:?}");
        }
        assert!(matches!(with_single_blanks(Cow::Borrowed("as is")), Cow::Borrowed(_)));
    }
}
