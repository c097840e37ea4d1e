//! What stands in several places: pairs of documents by `near_duplicates(corpus [, threshold] [, n] [, fold])`, text by
//! `repeated_spans(corpus [, min_words])`, and other texts by `overlap(corpus, texts [, n] [, fold])`, for checks of
//! contamination.
//!
//! ```text
//! INSERT INTO "d$edits" (doc_id, pos, len_bytes)                     cuts out all copies but the first
//! SELECT doc_id, byte_offset, byte_len FROM repeated_spans('d') WHERE copy > 0
//! ORDER BY doc_id DESC, byte_offset DESC
//! ```
//!
//! `overlap` reads the corpus once, the others several times ([`PortionReader`]). Pairs are sent while others
//! are still looked for, so that `LIMIT 10` finds few. Bytes and paths are looked up while rows are sent, those of
//! pairs for many at a time, because their documents lie in all portions.

use std::borrow::Borrow;
use std::sync::Arc;

use datafusion::arrow::array::Float64Array;
use datafusion::common::internal_err;
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::corpora::memory::Uses;
use crate::errors::{core_error, datafusion_error};
use crate::functions::doc_rows::{path_of, paths};
use crate::functions::portion_reader::PortionReader;
use crate::functions::sequence_rows::{check_at_least, length};
use crate::functions::strings::{int64, int64_lists, shown_fold, views};
use crate::planning::function::{Definition, Facts, NO_KERNEL, Prepared, TableFunction, Walk};
use crate::planning::signature::{self, ArgumentKind, ColumnKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::Corpus;
use tadoc::analytics::{self, CorpusParts, Fold, OverlapTexts, SimilarPair, TextOverlap};

/// Number of pairs whose paths are looked up at a time.
const PAIRS_PER_LOOKUP: usize = 1 << 18;

/// The function `near_duplicates` in SQL.
pub(super) static NEAR_DUPLICATES: Definition = Definition {
    signature: Signature {
        name: "near_duplicates",
        arguments: &[
            signature::CORPUS,
            signature::optional(
                "threshold",
                ArgumentKind::Number,
                "0.8",
                "least similarity of a pair, above 0 and up to 1",
            ),
            signature::optional("n", ArgumentKind::Integer, "5", "words of an n-gram"),
            signature::FOLD,
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[
            signature::integer("doc_id_a", "number of the first document of the pair"),
            signature::text("path_a", "its path"),
            signature::integer("doc_id_b", "number of the second document, which is higher"),
            signature::text("path_b", "its path"),
            signature::number("similarity", "distinct n-grams of both, divided by those of either"),
        ],
        summary: "pairs of documents that have most of their n-grams in common, by document",
    },
    bind: |arguments, _| {
        Arc::new(NearDuplicates {
            threshold: arguments.number("threshold").unwrap_or(0.8),
            num_words: length(arguments.integer("n"), 5),
            fold: arguments.fold("fold"),
        })
    },
};

#[derive(Debug)]
struct NearDuplicates {
    threshold: f64,
    num_words: usize,
    fold: Fold,
}

impl TableFunction for NearDuplicates {
    fn signature(&self) -> &'static Signature {
        &NEAR_DUPLICATES.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let (threshold, n) = (self.threshold.to_string(), self.num_words.to_string());
        let mut arguments = vec![("threshold", threshold), ("n", n)];
        arguments.extend(shown_fold(&self.fold));
        arguments
    }

    fn prepare(&self, _scan: &ScanSpec) -> Result<Prepared> {
        let checked = analytics::check_similarity(self.threshold, self.num_words);
        checked.map_err(|error| self.signature().error(error))?;
        Ok(Prepared::default())
    }

    fn facts(&self, _scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let how = "token_scan: sets of n-grams, those compared whose rarest n-grams meet";
        Facts {
            ordering: &["doc_id_a", "doc_id_b"],
            uses: Uses::Text,
            task: NO_KERNEL,
            walk: Some(Walk::Only(how)),
            ..Facts::default()
        }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let portions = PortionReader::open(&run, "NearDuplicates").await?;
            run.blocking(move |run| self.send_pairs(run, &portions)).await
        }
        .boxed()
    }
}

impl NearDuplicates {
    fn send_pairs(&self, mut run: Execution, portions: &PortionReader) -> Result<()> {
        match self.find_pairs(&mut run, portions) {
            Err(tadoc::Error::Cancelled) => Ok(()),
            sent => sent.map_err(|error| portions.error(error)),
        }
    }

    fn find_pairs(&self, run: &mut Execution, portions: &PortionReader) -> tadoc::Result<()> {
        let documents = analytics::NearDuplicates::new(
            portions,
            self.threshold,
            self.num_words,
            &self.fold,
            portions.memory_bytes(),
        )?;
        let needs_paths = run.scan.projects("path_a") || run.scan.projects("path_b");
        documents.for_each_pairs(|pairs| {
            for pairs in pairs.chunks(PAIRS_PER_LOOKUP) {
                let paths =
                    if needs_paths { Paths::from_pairs(pairs, &documents, portions)? } else { Paths::default() };
                if !send_pairs(run, pairs, &paths).map_err(core_error)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }
}

/// Sends the rows of `pairs`. Returns false if the function should stop.
fn send_pairs(run: &mut Execution, pairs: &[SimilarPair], paths: &Paths) -> Result<bool> {
    for pairs in pairs.chunks(run.output.batch_size()) {
        let ids = |id: fn(&SimilarPair) -> u64| pairs.iter().map(id);
        let more = run.send(pairs.len(), |column| match column {
            "doc_id_a" => int64(ids(|pair| pair.doc_id_a)),
            "path_a" => Ok(views(ids(|pair| pair.doc_id_a).map(|id| paths.get(id)))),
            "doc_id_b" => int64(ids(|pair| pair.doc_id_b)),
            "path_b" => Ok(views(ids(|pair| pair.doc_id_b).map(|id| paths.get(id)))),
            "similarity" => {
                let similarities = pairs.iter().map(|pair| pair.similarity);
                Ok(Arc::new(Float64Array::from_iter_values(similarities)))
            }
            other => no_column(other),
        })?;
        if !more {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Paths of documents.
#[derive(Default)]
struct Paths {
    doc_ids: Vec<u64>,
    /// Paths, one after another, and their ends.
    text: String,
    ends: Vec<usize>,
}

impl Paths {
    /// Reads the paths of the documents of `pairs`. Loads each portion that has one of them.
    fn from_pairs(
        pairs: &[SimilarPair],
        documents: &analytics::NearDuplicates<'_, PortionReader>,
        portions: &PortionReader,
    ) -> tadoc::Result<Self> {
        let mut paths = Self::default();
        paths.doc_ids.extend(pairs.iter().flat_map(|pair| [pair.doc_id_a, pair.doc_id_b]));
        paths.doc_ids.sort_unstable();
        paths.doc_ids.dedup();
        let mut start = 0;
        for index in 0..portions.num_parts() {
            let (first, behind) = (documents.first_doc_id(index), documents.first_doc_id(index + 1));
            let end = paths.doc_ids.partition_point(|&doc_id| doc_id < behind);
            if start == end {
                continue;
            }
            let portion = portions.part(index)?;
            let corpus: &Corpus = portion.borrow();
            for doc_id in &paths.doc_ids[start..end] {
                paths.text.push_str(path_of(corpus, doc_id - first));
                paths.ends.push(paths.text.len());
            }
            start = end;
            portions.hold(documents.memory_bytes() + paths.memory_bytes())?;
        }
        Ok(paths)
    }

    /// Returns the path of document `doc_id`; empty if it was not read.
    fn get(&self, doc_id: u64) -> &str {
        let Ok(at) = self.doc_ids.binary_search(&doc_id) else { return "" };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[at]]
    }

    fn memory_bytes(&self) -> u64 {
        (self.text.capacity() + 8 * (self.ends.capacity() + self.doc_ids.capacity())) as u64
    }
}

/// Least number of words of a span, where none is given.
const DEFAULT_MIN_WORDS: u64 = 50;

/// The function `repeated_spans` in SQL.
pub(super) static SPANS: Definition = Definition {
    signature: Signature {
        name: "repeated_spans",
        arguments: &[
            signature::CORPUS,
            signature::optional("min_words", ArgumentKind::Integer, "50", "leave out what is repeated for fewer words"),
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[
            signature::DOC_ID,
            signature::PATH,
            signature::integer("byte_offset", "where the copy begins in the document"),
            signature::integer("byte_len", "length of the copy"),
            signature::integer("num_words", "number of its words"),
            signature::integer("span", "number of the text, from 0"),
            signature::integer("copy", "number of the copy of this text, 0 for the first one"),
        ],
        summary: "text that stands at an earlier place, too, in order of document and offset",
    },
    bind: |arguments, _| {
        let min_words = arguments.integer("min_words").unwrap_or(DEFAULT_MIN_WORDS);
        Arc::new(RepeatedSpans { min_words })
    },
};

#[derive(Debug)]
struct RepeatedSpans {
    min_words: u64,
}

impl TableFunction for RepeatedSpans {
    fn signature(&self) -> &'static Signature {
        &SPANS.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        vec![("min_words", self.min_words.to_string())]
    }

    fn prepare(&self, _scan: &ScanSpec) -> Result<Prepared> {
        match self.min_words {
            0 => Err(self.signature().error("min_words: got 0, expected 1 or more")),
            _ => Ok(Prepared::default()),
        }
    }

    fn facts(&self, _scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let how = "token_scan: windows of min_words words, those with a repeated part by hash";
        Facts {
            ordering: &["doc_id", "byte_offset"],
            uses: Uses::Text,
            task: NO_KERNEL,
            walk: Some(Walk::Only(how)),
            ..Facts::default()
        }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let portions = PortionReader::open(&run, "RepeatedSpans").await?;
            run.blocking(move |run| self.send_spans(run, &portions)).await
        }
        .boxed()
    }
}

impl RepeatedSpans {
    fn send_spans(&self, mut run: Execution, portions: &PortionReader) -> Result<()> {
        let found = analytics::RepeatedSpans::find(portions, self.min_words, portions.memory_bytes());
        let spans = match found {
            Err(tadoc::Error::Cancelled) => return Ok(()),
            found => found.map_err(|error| portions.error(error))?,
        };
        for index in 0..portions.num_parts() {
            let mut rows = spans.for_part(index);
            if rows.is_empty() {
                continue;
            }
            let portion = portions.part(index).map_err(datafusion_error)?;
            let (corpus, first_doc_id): (&Corpus, _) = (portion.borrow(), spans.first_doc_id(index));
            while !rows.is_empty() {
                let end = rows.end.min(rows.start + run.output.batch_size());
                let batch = spans.rows(index, corpus, rows.start..end);
                rows.start = end;
                let ids: Vec<u64> = batch.iter().map(|row| row.doc_id - first_doc_id).collect();
                let more = run.send(batch.len(), |column| match column {
                    "doc_id" => int64(batch.iter().map(|row| row.doc_id)),
                    "path" => Ok(paths(corpus, &ids)),
                    "byte_offset" => int64(batch.iter().map(|row| row.byte_offset)),
                    "byte_len" => int64(batch.iter().map(|row| row.byte_len)),
                    "num_words" => int64(batch.iter().map(|row| row.num_words)),
                    "span" => int64(batch.iter().map(|row| row.span)),
                    "copy" => int64(batch.iter().map(|row| row.copy)),
                    other => no_column(other),
                })?;
                if !more {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Number of words of a sequence, where none is given.
const DEFAULT_NUM_WORDS: usize = 13;

/// The function `overlap` in SQL.
pub(super) static OVERLAP: Definition = Definition {
    signature: Signature {
        name: "overlap",
        arguments: &[
            signature::CORPUS,
            signature::required(
                "texts",
                ArgumentKind::Text,
                "a table, a file or a corpus: a column text, and a column id if the texts have ids",
            ),
            signature::optional("n", ArgumentKind::Integer, "13", "words of a sequence"),
            signature::FOLD,
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[
            signature::text("text_id", "its id, or its number from 0"),
            signature::integer("num_ngrams", "number of its sequences"),
            signature::integer("num_found", "those that the corpus has"),
            signature::number("share", "num_found / num_ngrams; NULL where the text has fewer than n words").nullable(),
            signature::integer(
                "longest_match_words",
                "words of its longest stretch whose sequences are all in the corpus",
            ),
            signature::integer("docs", "documents with one of its sequences"),
            signature::column("doc_ids", ColumnKind::IntegerList, "the first of these documents, at most 10"),
        ],
        summary: "how much of each text the corpus has, in the order of the texts",
    },
    bind: |arguments, _| {
        Arc::new(Overlap {
            name: arguments.text("texts").to_owned(),
            num_words: length(arguments.integer("n"), DEFAULT_NUM_WORDS),
            fold: arguments.fold("fold"),
        })
    },
};

#[derive(Debug)]
struct Overlap {
    /// Name of the table of texts.
    name: String,
    num_words: usize,
    fold: Fold,
}

impl TableFunction for Overlap {
    fn signature(&self) -> &'static Signature {
        &OVERLAP.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let mut arguments = vec![("texts", self.name.clone()), ("n", self.num_words.to_string())];
        arguments.extend(shown_fold(&self.fold));
        arguments
    }

    fn prepare(&self, _scan: &ScanSpec) -> Result<Prepared> {
        check_at_least(self.signature(), "n", self.num_words, 1)?;
        Ok(Prepared::default())
    }

    fn facts(&self, _scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let walk = Some(Walk::Only("token_scan: sequences of n words, by hash"));
        Facts { uses: Uses::Text, task: NO_KERNEL, walk, ..Facts::default() }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let portions = PortionReader::open(&run, "Overlap").await?;
            run.blocking(move |run| self.send_overlap(run, &portions)).await
        }
        .boxed()
    }
}

impl Overlap {
    fn send_overlap(&self, mut run: Execution, portions: &PortionReader) -> Result<()> {
        let Some(read) = run.scan.texts.clone() else {
            return internal_err!("the texts of {} were not read", self.name);
        };
        let profile = run.scan.source.profile();
        let mut texts = OverlapTexts::new(profile, self.fold.clone(), self.num_words);
        let mut ids = Vec::new();
        let reservation = run.reservation("OverlapTexts");
        for (text, id) in read.iter() {
            texts.push(text.as_bytes()).map_err(datafusion_error)?;
            ids.push(id);
            if run.output.is_done() {
                return Ok(());
            }
            reservation.try_resize(texts.memory_bytes())?;
        }
        let answers = match analytics::overlap(&texts, portions, portions.memory_bytes()) {
            Err(tadoc::Error::Cancelled) => return Ok(()),
            answers => answers.map_err(|error| portions.error(error))?,
        };
        let batch_size = run.output.batch_size();
        for (answers, ids) in answers.chunks(batch_size).zip(ids.chunks(batch_size)) {
            let more = run.send(answers.len(), |column| match column {
                "text_id" => Ok(views(ids.iter().map(String::as_str))),
                "num_ngrams" => int64(answers.iter().map(|answer| answer.num_ngrams)),
                "num_found" => int64(answers.iter().map(|answer| answer.num_found)),
                "share" => {
                    let shares = answers.iter().map(TextOverlap::share);
                    Ok(Arc::new(Float64Array::from_iter(shares)))
                }
                "longest_match_words" => int64(answers.iter().map(|answer| answer.longest_match_words)),
                "docs" => int64(answers.iter().map(|answer| answer.num_docs)),
                "doc_ids" => {
                    let doc_ids = answers.iter().flat_map(|answer| answer.doc_ids.iter().copied());
                    let lens = answers.iter().map(|answer| answer.doc_ids.len());
                    int64_lists(
                        doc_ids,
                        lens.scan(0, |end, len| {
                            *end += len;
                            Some(*end)
                        }),
                    )
                }
                other => no_column(other),
            })?;
            if !more {
                break;
            }
        }
        Ok(())
    }
}
