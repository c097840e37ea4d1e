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
use crate::errors::datafusion_error;
use crate::scan::function::{Definition, TableFunction};
use crate::scan::signature::{self, ArgumentKind, ColumnKind, Signature};
use crate::scan::{Compared, Execution, Scan, Texts};
use crate::source::memory::Uses;
use tadoc::analytics::{self, Fold, OverlapTexts, TextOverlap};

const TEXT_ID: usize = 0;
const NUM_NGRAMS: usize = 1;
const NUM_FOUND: usize = 2;
const SHARE: usize = 3;
const LONGEST_MATCH_WORDS: usize = 4;
const DOCS: usize = 5;
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
        ],
        columns: &[
            signature::column("text_id", ColumnKind::Text, "its id, or its number from 0"),
            signature::column("num_ngrams", ColumnKind::Integer, "number of its sequences"),
            signature::column("num_found", ColumnKind::Integer, "those that the corpus has"),
            signature::nullable(
                "share",
                ColumnKind::Number,
                "num_found / num_ngrams; NULL where the text has fewer than n words",
            ),
            signature::column(
                "longest_match_words",
                ColumnKind::Integer,
                "words of its longest stretch whose sequences are all in the corpus",
            ),
            signature::column("docs", ColumnKind::Integer, "documents with one of its sequences"),
            signature::column(
                "doc_ids",
                ColumnKind::IntegerList,
                "the first of these documents, at most 10",
            ),
        ],
        summary: "how much of each text the corpus has, in the order of the texts",
    },
    bind: |arguments, _| {
        Arc::new(Overlap {
            name: arguments.text("texts").to_owned(),
            num_words: length(arguments.integer("n"), DEFAULT_NUM_WORDS),
            fold: arguments.fold("fold"),
            texts: Compared::Unread(arguments.text("texts").to_owned()),
        })
    },
};

#[derive(Debug)]
struct Overlap {
    /// Name of the table of texts.
    name: String,
    num_words: usize,
    fold: Fold,
    texts: Compared,
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

    fn compared(&self) -> Option<&Compared> {
        Some(&self.texts)
    }

    fn with_texts(&self, texts: Arc<Texts>) -> Result<Arc<dyn TableFunction>> {
        let (name, num_words, fold) = (self.name.clone(), self.num_words, self.fold.clone());
        Ok(Arc::new(Self { name, num_words, fold, texts: Compared::Read(texts) }))
    }

    fn prepare(&self, _scan: &Scan) -> Result<()> {
        check_at_least(self.signature(), "n", self.num_words, 1)
    }

    fn uses(&self, _scan: &Scan) -> Uses {
        Uses::Text
    }

    fn explain(&self, scan: &Scan) -> Vec<(&'static str, String)> {
        let how = "token_scan: sequences of n words, by hash";
        vec![scan.device(), ("traversal", how.into())]
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
        let Compared::Read(read) = &self.texts else {
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
                TEXT_ID => Ok(views(ids.iter().map(String::as_str))),
                NUM_NGRAMS => int64(answers.iter().map(|answer| answer.num_ngrams)),
                NUM_FOUND => int64(answers.iter().map(|answer| answer.num_found)),
                SHARE => {
                    let shares = answers.iter().map(TextOverlap::share);
                    Ok(Arc::new(Float64Array::from_iter(shares)))
                }
                LONGEST_MATCH_WORDS => {
                    int64(answers.iter().map(|answer| answer.longest_match_words))
                }
                DOCS => int64(answers.iter().map(|answer| answer.num_docs)),
                _ => {
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
            })?;
            if !more {
                break;
            }
        }
        Ok(())
    }
}
