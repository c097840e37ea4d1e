//! Queries of words and phrases: `search(corpus, query [, doc_id] [, fold] [, exact])` finds their places, `term_count`
//! their number in each document, and `rank(corpus, query [, top] [, k1] [, b] [, fold] [, exact])` the best documents
//! by BM25.
//!
//! A query is parsed when the scan is made, with the corpus's own tokenizer, so that a query without a word is a plan
//! error. Filters on `doc_id`, like the argument `doc_id`, choose the documents before the search.
//!
//! Places are found by climbing the grammar, segment by segment; several segments are searched at once.
//! `tadoc.max_hits` bounds the number of hits, and a pushed limit ends the search early. Hits in other documents count
//! for no limit. Lines are counted only if their columns are asked for: this reads each document up to its last hit. If
//! no place is asked for, hits are counted by document.
//!
//! Numbers are counted by rule and passed up to the documents; hits are not listed. Words that are asked for again are
//! counted in lists of documents that stay with the loaded corpus.
//!
//! For ranks, segments of files without any word of the query are not opened: numbers of documents and words come from
//! the footers. Rows are best first, so the limit of `ORDER BY score DESC LIMIT k` arrives here and bounds `top`.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use datafusion::arrow::array::{Float64Array, StringViewBuilder};
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::corpora::{LoadedCorpus, Sought};
use crate::errors::datafusion_error;
use crate::functions::doc_rows::{check_doc_id, path_of, paths};
use crate::functions::searching::{QueryText, Searched, finished, load_counted, load_searched, searched_segments};
use crate::functions::sequence_rows::length;
use crate::functions::strings::int64;
use crate::planning::function::{Definition, Facts, Merge, NO_KERNEL, OfPortion, Prepared, TableFunction};
use crate::planning::signature::{self, ArgumentKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::query::{DocumentCount, Hit, LineCounter, Query, RankOptions, SearchOptions, search_segments};

/// The function `search` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "search",
        arguments: &[
            signature::CORPUS,
            signature::QUERY,
            signature::optional("doc_id", ArgumentKind::Integer, "NULL", "search this document only"),
            signature::QUERY_FOLD,
            signature::EXACT,
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[
            signature::DOC_ID.claimed(),
            signature::PATH,
            signature::integer("byte_offset", "where the match begins in the document"),
            signature::integer("byte_len", "length of the match"),
            signature::integer("word_index", "words before the match in the document"),
            signature::integer("line", "line of the match, from 1"),
            signature::integer("column", "byte in the line, from 1"),
        ],
        summary: "every place of a word or a phrase",
    },
    bind: |arguments, _| {
        let query = QueryText::from_arguments(arguments);
        Arc::new(Search { query, doc_id: arguments.integer("doc_id") })
    },
};

#[derive(Debug)]
struct Search {
    query: QueryText,
    doc_id: Option<u64>,
}

impl TableFunction for Search {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let mut arguments = self.query.shown();
        arguments.extend(self.doc_id.map(|doc_id| ("doc_id", doc_id.to_string())));
        arguments
    }

    fn prepare(&self, scan: &ScanSpec) -> Result<Prepared> {
        let query = self.query.parse(self.signature(), scan)?;
        check_doc_id(self.signature(), scan, self.doc_id)?;
        Ok(Prepared::new(query))
    }

    fn facts(&self, scan: &ScanSpec, prepared: &Prepared) -> Facts {
        let Ok(query) = prepared.get::<Query>() else { return Facts::default() };
        let facts = self.query.hit_facts(scan, &query);
        let is_alone = self.doc_id.is_some() || self.counts(scan, &query);
        let num_partitions = if is_alone { 1 } else { facts.num_partitions };
        Facts { ordering: &["doc_id", "byte_offset"], num_partitions, ..facts }
    }

    fn for_portion(&self, docs: Range<u64>) -> OfPortion {
        let of = |doc_id| Self { query: self.query.clone(), doc_id: Some(doc_id) };
        self.doc_id.map_or(OfPortion::Same, |doc_id| OfPortion::for_document(doc_id, docs, of))
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let query = run.prepared::<Query>()?;
            if self.counts(&run.scan, &query) {
                let (loaded, query) = load_counted(&run, &query).await?;
                return run.blocking(move |run| send_counted(run, &query, &loaded)).await;
            }
            let loaded = load_searched(&run, &query, self.doc_id).await?;
            run.blocking(move |run| self.send_hits(run, &query, &loaded)).await
        }
        .boxed()
    }
}

impl Search {
    /// Returns true if the hits are counted by document, because no place is asked for and the numbers are found
    /// without the text. The first hits are found sooner one by one.
    fn counts(&self, scan: &ScanSpec, query: &Query) -> bool {
        let columns = self.signature().columns.iter().map(|column| column.name);
        let mut places = columns.filter(|name| !["doc_id", "path"].contains(name));
        let is_of_all = self.doc_id.is_none() && scan.limit.is_none() && !scan.is_filtered();
        is_of_all && !places.any(|name| scan.uses(name)) && scan.source.counts_leaves(query)
    }

    fn send_hits(&self, mut run: Execution, query: &Query, loaded: &LoadedCorpus) -> Result<()> {
        let shared = Searched::shared(&run)?;
        let cancel = run.output.canceller();
        let is_cancelled = move || cancel.is_closed();
        let options = SearchOptions {
            doc_id: self.doc_id,
            docs: shared.docs(),
            max_hits: run.scan.options.max_hits,
            is_cancelled: &is_cancelled,
        };
        let segments = searched_segments(&run, &loaded.corpus);
        let hits_found = run.counter("hits");
        let reservation = run.reservation("Search");
        let mut lines = locates_lines(&run.scan).then(|| LineCounter::new(&loaded.corpus));
        let mut outcome = Ok(());
        let searched = search_segments(&loaded.corpus, query, segments, &options, &mut |hits| {
            hits_found.add(hits.len());
            let counted = shared.num_hits.add(hits.len());
            if let Err(error) = counted.and_then(|()| reservation.try_resize(size_of_val(hits))) {
                outcome = Err(error);
                return ControlFlow::Break(());
            }
            for hits in hits.chunks(run.output.batch_size()) {
                match send_batch(&mut run, loaded, hits, lines.as_mut()) {
                    Ok(true) => {}
                    Ok(false) => return ControlFlow::Break(()),
                    Err(error) => {
                        outcome = Err(error);
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        });
        finished(outcome, searched)
    }
}

/// Sends as many rows for each document as it has hits.
fn send_counted(mut run: Execution, query: &Query, loaded: &LoadedCorpus) -> Result<()> {
    let shared = Searched::shared(&run)?;
    let hits_found = run.counter("hits");
    let cancel = run.output.canceller();
    let is_cancelled = move || cancel.is_closed();
    let options = SearchOptions { is_cancelled: &is_cancelled, ..SearchOptions::default() };
    let mut outcome = Ok(true);
    let mut send = |counts: &[DocumentCount]| {
        let num_hits = counts.iter().map(|counted| counted.count as usize).sum();
        hits_found.add(num_hits);
        outcome = shared.num_hits.add(num_hits).and_then(|()| send_each(&mut run, loaded, counts));
        match outcome {
            Ok(true) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    };
    let counted = loaded.with_leaf_lists(|lists| lists.term_count(&loaded.corpus, query, &options, &mut send));
    finished(outcome.map(drop), counted)
}

/// Sends a row for each hit in the documents of `counts`. Returns false if the function should stop.
fn send_each(run: &mut Execution, loaded: &LoadedCorpus, counts: &[DocumentCount]) -> Result<bool> {
    let mut hits = counts.iter().flat_map(|counted| std::iter::repeat_n(counted.doc_id, counted.count as usize));
    loop {
        let ids: Vec<u64> = hits.by_ref().take(run.output.batch_size()).collect();
        if ids.is_empty() {
            return Ok(true);
        }
        let more = run.send(ids.len(), |column| match column {
            "doc_id" => int64(ids.iter().copied()),
            "path" => Ok(paths(&loaded.corpus, &ids)),
            other => no_column(other),
        })?;
        if !more {
            return Ok(false);
        }
    }
}

/// Returns true if the lines of hits are used.
fn locates_lines(scan: &ScanSpec) -> bool {
    scan.uses("line") || scan.uses("column")
}

fn send_batch(
    run: &mut Execution,
    loaded: &LoadedCorpus,
    hits: &[Hit],
    lines: Option<&mut LineCounter<'_>>,
) -> Result<bool> {
    let mut places = Vec::new();
    if let Some(lines) = lines {
        for hit in hits {
            let place = lines.locate(hit.doc_id, hit.byte_offset);
            places.push(place.map_err(datafusion_error)?);
        }
    }
    run.send(hits.len(), |column| match column {
        "doc_id" => int64(hits.iter().map(|hit| hit.doc_id)),
        "path" => {
            let mut builder = StringViewBuilder::with_capacity(hits.len()).with_deduplicate_strings();
            hits.iter().for_each(|h| builder.append_value(path_of(&loaded.corpus, h.doc_id)));
            Ok(Arc::new(builder.finish()))
        }
        "byte_offset" => int64(hits.iter().map(|hit| hit.byte_offset)),
        "byte_len" => int64(hits.iter().map(|hit| hit.byte_len)),
        "word_index" => int64(hits.iter().map(|hit| hit.word_index)),
        "line" => int64(places.iter().map(|place| place.line)),
        "column" => int64(places.iter().map(|place| place.column)),
        other => no_column(other),
    })
}

/// The function `term_count` in SQL.
pub(super) static COUNTS: Definition = Definition {
    signature: Signature {
        name: "term_count",
        arguments: &[
            signature::CORPUS,
            signature::QUERY,
            signature::QUERY_FOLD,
            signature::EXACT,
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[
            signature::DOC_ID.claimed(),
            signature::PATH,
            signature::integer("count", "how often it matches there"),
        ],
        summary: "how often a query matches in each document that has a match",
    },
    bind: |arguments, _| Arc::new(TermCount { query: QueryText::from_arguments(arguments) }),
};

#[derive(Debug)]
struct TermCount {
    query: QueryText,
}

impl TableFunction for TermCount {
    fn signature(&self) -> &'static Signature {
        &COUNTS.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        self.query.shown()
    }

    fn prepare(&self, scan: &ScanSpec) -> Result<Prepared> {
        Ok(Prepared::new(self.query.parse(self.signature(), scan)?))
    }

    fn facts(&self, scan: &ScanSpec, prepared: &Prepared) -> Facts {
        let explain = prepared.get::<Query>().map(|query| self.query.explain(scan, &query));
        Facts {
            ordering: &["doc_id"],
            finds_few: true,
            merge: Merge::Behind,
            task: NO_KERNEL,
            explain: explain.unwrap_or_default(),
            ..Facts::default()
        }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let query = run.prepared::<Query>()?;
            let (loaded, query) = load_counted(&run, &query).await?;
            run.blocking(move |run| send_counts(run, &query, &loaded)).await
        }
        .boxed()
    }
}

fn send_counts(mut run: Execution, query: &Query, loaded: &LoadedCorpus) -> Result<()> {
    let searched = Searched::shared(&run)?;
    let cancel = run.output.canceller();
    let is_cancelled = move || cancel.is_closed();
    let options =
        SearchOptions { doc_id: None, docs: searched.docs(), max_hits: u64::MAX, is_cancelled: &is_cancelled };
    let mut outcome = Ok(true);
    let mut send = |counts: &[DocumentCount]| {
        outcome = run.send(counts.len(), |column| match column {
            "doc_id" => int64(counts.iter().map(|count| count.doc_id)),
            "path" => {
                let ids: Vec<u64> = counts.iter().map(|count| count.doc_id).collect();
                Ok(paths(&loaded.corpus, &ids))
            }
            "count" => int64(counts.iter().map(|count| count.count)),
            other => no_column(other),
        });
        match outcome {
            Ok(true) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    };
    let counted = loaded.with_leaf_lists(|lists| lists.term_count(&loaded.corpus, query, &options, &mut send));
    finished(outcome.map(drop), counted)
}

/// The function `rank` in SQL.
pub(super) static RANKED: Definition = Definition {
    signature: Signature {
        name: "rank",
        arguments: &[
            signature::CORPUS,
            signature::QUERY,
            signature::optional("top", ArgumentKind::Integer, "10", "so many documents at most"),
            signature::optional("k1", ArgumentKind::Number, "1.2", "how slowly more hits stop to count"),
            signature::optional("b", ArgumentKind::Number, "0.75", "how much long documents lose, up to 1"),
            signature::QUERY_FOLD,
            signature::EXACT,
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[signature::DOC_ID, signature::PATH, signature::number("score", "BM25 score, above 0")],
        summary: "the best documents for a query by BM25, best first",
    },
    bind: |arguments, _| {
        let defaults = RankOptions::default();
        let options = RankOptions {
            top: length(arguments.integer("top"), defaults.top),
            k1: arguments.number("k1").unwrap_or(defaults.k1),
            b: arguments.number("b").unwrap_or(defaults.b),
        };
        let query = QueryText::from_arguments(arguments);
        Arc::new(Rank { query, options })
    },
};

#[derive(Debug)]
struct Rank {
    query: QueryText,
    options: RankOptions,
}

impl TableFunction for Rank {
    fn signature(&self) -> &'static Signature {
        &RANKED.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let RankOptions { top, k1, b } = self.options;
        let mut arguments = self.query.shown();
        arguments.extend([("top", top.to_string()), ("k1", k1.to_string()), ("b", b.to_string())]);
        arguments
    }

    fn prepare(&self, scan: &ScanSpec) -> Result<Prepared> {
        let query = self.query.parse(self.signature(), scan)?;
        self.options.check().map_err(|error| self.signature().error(error))?;
        Ok(Prepared::new(query))
    }

    fn facts(&self, scan: &ScanSpec, prepared: &Prepared) -> Facts {
        let explain = prepared.get::<Query>().map(|query| self.query.explain(scan, &query));
        Facts {
            ordering: &["score", "doc_id"],
            is_best_first: true,
            task: NO_KERNEL,
            explain: explain.unwrap_or_default(),
            ..Facts::default()
        }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let query = Query::clone(&*run.prepared::<Query>()?);
            let (loaded, query) = match run.scan.living() {
                // Its files do not tell how many words its documents have.
                Some(_) => (run.load().await?, query),
                None => {
                    // Documents that NOT excludes count for the weight of their words, too.
                    let sought = Sought { query: Some(query.clone().any_leaf()), ..Sought::default() };
                    run.load_counted(&query, sought).await?
                }
            };
            run.blocking(move |run| self.send_ranked(run, &query, &loaded)).await
        }
        .boxed()
    }
}

impl Rank {
    fn send_ranked(&self, mut run: Execution, query: &Query, loaded: &LoadedCorpus) -> Result<()> {
        let cancel = run.output.canceller();
        let is_cancelled = move || cancel.is_closed();
        let search = SearchOptions { is_cancelled: &is_cancelled, ..SearchOptions::default() };
        let num_words = run.scan.living().is_none().then(|| run.scan.num_word_tokens());
        let top = run.scan.limit.unwrap_or(usize::MAX).min(self.options.top);
        let options = RankOptions { top, ..self.options };
        let ranker = loaded.ranker(run.scan.num_docs(), num_words)?;
        let ranked = loaded.with_leaf_lists(|lists| ranker.rank(&loaded.corpus, lists, query, &options, &search));
        let ranked = match ranked {
            Err(tadoc::Error::Cancelled) => return Ok(()),
            other => other.map_err(datafusion_error)?,
        };
        let reservation = run.reservation("Rank");
        reservation.try_resize(size_of_val(ranked.as_slice()))?;
        for rows in ranked.chunks(run.output.batch_size()) {
            let more = run.send(rows.len(), |column| match column {
                "doc_id" => int64(rows.iter().map(|row| row.doc_id)),
                "path" => {
                    let ids: Vec<u64> = rows.iter().map(|row| row.doc_id).collect();
                    Ok(paths(&loaded.corpus, &ids))
                }
                "score" => Ok(Arc::new(rows.iter().map(|row| Some(row.score)).collect::<Float64Array>())),
                other => no_column(other),
            })?;
            if !more {
                break;
            }
        }
        Ok(())
    }
}
