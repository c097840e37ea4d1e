//! The function `repeated_spans(corpus [, min_words])`: text that stands at an earlier place of the
//! corpus, too, with the bytes to cut it out.
//!
//! ```text
//! INSERT INTO "d$edits" (doc_id, pos, len_bytes)
//! SELECT doc_id, byte_offset, byte_len FROM repeated_spans('d') WHERE copy > 0
//! ORDER BY doc_id DESC, byte_offset DESC
//! ```
//!
//! A corpus larger than memory is read portion by portion, several times. Bytes and paths are looked up
//! while rows are sent.

use std::borrow::Borrow;
use std::sync::Arc;

use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::doc_rows::paths;
use super::portion_reader::PortionReader;
use super::strings::int64;
use crate::corpora::memory::Uses;
use crate::errors::datafusion_error;
use crate::planning::function::{Definition, Facts, NO_KERNEL, Prepared, TableFunction, Walk};
use crate::planning::signature::{self, ArgumentKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::Corpus;
use tadoc::analytics::{self, CorpusParts};

/// Least number of words of a span, where none is given.
const DEFAULT_MIN_WORDS: u64 = 50;

/// The function `repeated_spans` in SQL.
pub(super) static DEFINITION: Definition = Definition {
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
        &DEFINITION.signature
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
