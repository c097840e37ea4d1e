//! The function `overlap(corpus, texts [, n] [, fold])`: how much of each text the corpus has, for
//! checks of contamination.
//!
//! The texts are those of a table, a corpus or a file of the session. The corpus is read once, portion
//! by portion if it is larger than memory.

use std::sync::Arc;

use datafusion::arrow::array::Float64Array;
use datafusion::common::internal_err;
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::portion_reader::PortionReader;
use super::sequence_rows::{check_at_least, length};
use super::strings::{int64, int64_lists, shown_fold, views};
use crate::corpora::memory::Uses;
use crate::errors::datafusion_error;
use crate::planning::function::{Definition, Facts, NO_KERNEL, Prepared, TableFunction, Walk};
use crate::planning::signature::{self, ArgumentKind, ColumnKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::analytics::{self, Fold, OverlapTexts, TextOverlap};

/// Number of words of a sequence, where none is given.
const DEFAULT_NUM_WORDS: usize = 13;

/// The function `overlap` in SQL.
pub(super) static DEFINITION: Definition = Definition {
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
        &DEFINITION.signature
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
