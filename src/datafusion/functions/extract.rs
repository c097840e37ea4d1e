//! The function `extract(corpus, doc_id, byte_offset, byte_len)`: one passage, read by descending
//! the grammar.
//!
//! A length past the end of the document is cut there. If a passage begins or ends inside a
//! character, U+FFFD replaces the partial character. If a living corpus is not loaded, only the
//! file that holds the document is loaded.

use std::ops::Range;
use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::doc_rows::check_doc_id;
use super::document_source::DocumentSource;
use super::strings::Texts;
use crate::planning::function::{Definition, Facts, Merge, NO_KERNEL, OfPortion, Prepared, TableFunction};
use crate::planning::signature::{self, ArgumentKind, Signature};
use crate::planning::{Execution, ScanSpec};
use tadoc::read::ExtractQuery;

/// The function `extract` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "extract",
        arguments: &[
            signature::CORPUS,
            signature::required("doc_id", ArgumentKind::Integer, "number of the document"),
            signature::required("byte_offset", ArgumentKind::Integer, "where to begin"),
            signature::required("byte_len", ArgumentKind::Integer, "how many bytes, cut at the document's end"),
            signature::VERSION,
        ],
        columns: &[signature::text("text", "the passage, U+FFFD for invalid bytes")],
        summary: "one passage of one document, without decoding the rest",
    },
    bind: |arguments, _| {
        let number = |name| arguments.integer(name).unwrap_or_default();
        Arc::new(Extract::new(number("doc_id"), number("byte_offset"), number("byte_len")))
    },
};

#[derive(Debug)]
pub(crate) struct Extract {
    doc_id: u64,
    byte_offset: u64,
    byte_len: u64,
}

impl Extract {
    pub(crate) fn new(doc_id: u64, byte_offset: u64, byte_len: u64) -> Self {
        Self { doc_id, byte_offset, byte_len }
    }
}

impl TableFunction for Extract {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        vec![
            ("doc_id", self.doc_id.to_string()),
            ("byte_offset", self.byte_offset.to_string()),
            ("byte_len", self.byte_len.to_string()),
        ]
    }

    fn prepare(&self, scan: &ScanSpec) -> Result<Prepared> {
        check_doc_id(self.signature(), scan, Some(self.doc_id))?;
        Ok(Prepared::default())
    }

    fn facts(&self, _scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let num_rows = Precision::Exact(1);
        Facts { num_rows, task: NO_KERNEL, merge: Merge::Behind, ..Facts::default() }
    }

    fn for_portion(&self, docs: Range<u64>) -> OfPortion {
        OfPortion::for_document(self.doc_id, docs, |doc_id| Self { doc_id, ..*self })
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let source = DocumentSource::from_document(&run, self.doc_id).await?;
            run.blocking(move |run| self.send_passage(run, &source)).await
        }
        .boxed()
    }
}

impl Extract {
    fn send_passage(&self, mut run: Execution, source: &DocumentSource) -> Result<()> {
        let limit = run.scan.options.max_output_bytes.min(i32::MAX as u64);
        let reservation = run.reservation("Extract");
        let most = self.byte_len.min(limit).min(run.scan.len_bytes()) as usize;
        reservation.try_grow(source.memory_bytes() + most)?;
        let &Self { doc_id, byte_offset, byte_len } = self;
        let passage = source.passage(&run.scan, &ExtractQuery { doc_id, byte_offset, byte_len })?;
        run.counter("logical_bytes").add(passage.len());
        let ends = vec![passage.len()];
        let texts = Texts::new(passage, ends)?;
        run.send(1, |_| Ok(Arc::new(texts.text()?)))?;
        Ok(())
    }
}
