//! Text that stands in several places, by `repeated_spans(corpus [, min_words])`, and in other texts, by
//! `overlap(corpus, texts [, n] [, fold])`, for checks of contamination.
//!
//! ```text
//! INSERT INTO "d$edits" (doc_id, pos, len_bytes)                     cuts out all copies but the first
//! SELECT doc_id, byte_offset, byte_len FROM repeated_spans('d') WHERE copy > 0
//! ORDER BY doc_id DESC, byte_offset DESC
//! ```
//!
//! `overlap` reads the corpus once, `repeated_spans` several times ([`PortionReader`]). Bytes and paths are looked up
//! while rows are sent.

use std::borrow::Borrow;
use std::sync::Arc;

use datafusion::arrow::array::Float64Array;
use datafusion::common::internal_err;
use datafusion::error::Result;
use futures::future::BoxFuture;

use crate::corpora::memory::Uses;
use crate::errors::datafusion_error;
use crate::functions::doc_rows::paths;
use crate::functions::portion_reader::{PortionReader, with_portions};
use crate::functions::sequence_rows::{check_at_least, length};
use crate::functions::strings::{int64, int64_lists, shown_fold, views};
use crate::planning::function::{Definition, Facts, NO_KERNEL, Prepared, TableFunction, Walk};
use crate::planning::signature::{self, ArgumentKind, ColumnKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::Corpus;
use tadoc::analytics::{self, CorpusParts, Fold, OverlapTexts, TextOverlap};

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
        with_portions(run, "RepeatedSpans", move |run, portions| self.send_spans(run, portions))
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
        with_portions(run, "Overlap", move |run, portions| self.send_overlap(run, portions))
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
