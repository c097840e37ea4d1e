//! The functions `documents(corpus)`, one row per document, as tables `STORED AS TADOC` have, and
//! `extract(corpus, doc_id, byte_offset, byte_len)`, one passage, read by descending the grammar.
//!
//! ```text
//! ids of the partition ─▶ candidates ─▶ columns filter ─▶ decode ─▶ text filter ─▶ rows
//!                         (grammar)     (no text)         (1 MiB at a time)
//! ```
//!
//! Text is decoded only if it is returned or filtered on, and only for documents that pass the two stages before.
//! `document_source` decides how much of the corpus is loaded for that. User columns are read only from files with
//! documents that pass the filters on ids. The values that edits set replace them before any filter runs.
//!
//! `count(*)` comes from the footers. User columns are part of the schema if the table is registered. A bare path has
//! the six fixed columns, because a schema must be known before anything is read. A glob has the column `corpus` behind
//! them: the file of each document. One file goes without, so that its rows stay what they are.
//!
//! A length of a passage past the end of the document is cut there. If a passage begins or ends inside a character,
//! U+FFFD replaces the partial character. If a living corpus is not loaded, only the file that holds the document is
//! loaded.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::filter;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::corpora::columns::{read_user_columns, with_file_names};
use crate::corpora::glob::is_glob;
use crate::corpora::memory::Uses;
use crate::corpora::open_file::RowSource;
use crate::errors::task_error;
use crate::functions::doc_rows::{DOC_ID, check_doc_id, num_documents, passing_documents, range_of};
use crate::functions::document_source::{DocumentSource, UserColumns, are_facts_enough, is_user};
use crate::functions::strings::{Texts, int64};
use crate::planning::filter::Stage;
use crate::planning::function::{Definition, Facts, Merge, NO_KERNEL, OfPortion, Prepared, TableFunction};
use crate::planning::long_rows::batch_bytes;
use crate::planning::signature::{self, ArgumentKind, ColumnKind, Columns, Signature};
use crate::planning::table::registered_now;
use crate::planning::{Execution, ScanSpec, selected};
use tadoc::query::documents_for_demands;
use tadoc::read::ExtractQuery;
use tadoc::segment::Corpus;

/// Bytes of text that make a partition worth its thread.
const PARTITION_BYTES: u64 = 4 << 20;

/// The function `documents` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "documents",
        arguments: &[signature::CORPUS, signature::VERSION, signature::WHERE],
        columns: &[
            signature::DOC_ID.claimed(),
            signature::PATH.claimed(),
            signature::integer("bytes", "length of the text").claimed(),
            signature::integer("words", "number of words in the text").claimed(),
            signature::text("text", "the text, U+FFFD for invalid bytes").claimed_as_text(),
            signature::column("content", ColumnKind::Bytes, "the exact bytes").claimed_as_text(),
        ],
        summary: "one row per document; text is decoded only where it is asked for",
    },
    bind: |arguments, session| {
        let location = arguments.text("corpus");
        let table = registered_now(session, location);
        Arc::new(match table {
            Some(table) => Documents::new(table.user_columns()),
            None => Documents::from_location(location),
        })
    },
};

#[derive(Debug)]
pub(crate) struct Documents {
    user_columns: Vec<FieldRef>,
}

impl Documents {
    /// Builds the function over a location that is no table.
    pub(crate) fn from_location(location: &str) -> Self {
        if is_glob(location) { Self::new(with_file_names(Vec::new())) } else { Self::new(Vec::new()) }
    }

    /// Builds the function with `user_columns` after the fixed columns.
    pub(crate) fn new(user_columns: Vec<FieldRef>) -> Self {
        Self { user_columns }
    }
}

impl TableFunction for Documents {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn columns(&self) -> Columns {
        Columns::from_signature(&DEFINITION.signature).followed_by(self.user_columns.clone())
    }

    fn facts(&self, scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let is_decoded = needs_decoding(scan);
        let worth = if is_decoded { scan.len_bytes() / PARTITION_BYTES } else { 1 };
        let text = if is_decoded { "decoded" } else { "not decoded" };
        Facts {
            ordering: &["doc_id"],
            num_rows: num_documents(scan),
            num_partitions: usize::try_from(worth.min(scan.num_docs())).unwrap_or(usize::MAX),
            row_bytes: if is_decoded { scan.document_bytes() } else { 0 },
            uses: if are_facts_enough(scan) { Uses::Facts } else { Uses::Text },
            merge: Merge::Behind,
            task: NO_KERNEL,
            explain: vec![("text", text.into())],
            ..Facts::default()
        }
    }

    fn run(self: Arc<Self>, mut run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let num_rows = run.scan.num_docs_of(range_of(&run));
            run.counter("documents_total").add(num_rows);
            if run.scan.projection.is_empty() && !run.scan.is_filtered() {
                run.output.send_columns_async(vec![], num_rows).await?;
                return Ok(());
            }
            let reservation = run.reservation("Documents");
            let user: UserColumns = Arc::new(user_columns(&run, &reservation).await?);
            let (source, ids) = DocumentSource::open(&run, &user).await?;
            reservation.try_grow(source.memory_bytes())?;
            run.blocking(move |run| Scanner::new(run, source, user, reservation).run(ids)).await
        }
        .boxed()
    }
}

/// Reads the user columns that the query needs.
async fn user_columns(run: &Execution, reservation: &MemoryReservation) -> Result<HashMap<String, ArrayRef>> {
    let scan = &run.scan;
    let is_needed = |field: &&FieldRef| is_user(field.name()) && scan.uses(field.name());
    let fields: Vec<FieldRef> = scan.schema.fields().iter().filter(is_needed).cloned().collect();
    if fields.is_empty() {
        return Ok(HashMap::new());
    }
    let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
    let limit = scan.options.max_memory_bytes;
    let sources = row_sources(run).await?;
    let arrays = read_user_columns(&run.runtime, sources, scan.living(), fields, limit, reservation).await?;
    Ok(names.into_iter().zip(arrays).collect())
}

/// Returns the sources of the rows of user columns. Files are not read if filters on ids leave none
/// of their documents.
async fn row_sources(run: &Execution) -> Result<Vec<RowSource<'_>>> {
    let mut sources = run.scan.row_sources();
    let is_on_ids = |stage: &Stage| run.scan.names_in(stage).eq([DOC_ID]);
    if !run.scan.filters.columns.as_ref().is_some_and(is_on_ids) {
        return Ok(sources);
    }
    // Dynamic filters of joins and sorts above may use the columns that are to be read.
    let filters = run.scan.filters.without_dynamic();
    let scan = ScanSpec { filters, ..run.scan.as_ref().clone() };
    let range = range_of(run);
    let pick = move || passing_documents(&scan, range, |_, ids| int64(ids.iter().copied()));
    let ids = tokio::task::spawn_blocking(pick).await.map_err(task_error)??;
    let mut first_id = 0;
    for source in &mut sources {
        let num_docs = source.num_docs();
        let end = first_id + num_docs;
        let next = ids.partition_point(|&id| id < first_id);
        if ids.get(next).is_none_or(|&id| id >= end) {
            *source = RowSource::Nulls(num_docs);
        }
        first_id = end;
    }
    Ok(sources)
}

/// A partition of a documents scan.
struct Scanner {
    run: Execution,
    source: DocumentSource,
    user: UserColumns,
    reservation: MemoryReservation,
    /// Bytes of the reservation that are not for decoded text.
    held_bytes: usize,
}

impl Scanner {
    fn new(run: Execution, source: DocumentSource, user: UserColumns, reservation: MemoryReservation) -> Self {
        let held_bytes = reservation.size();
        Self { run, source, user, reservation, held_bytes }
    }

    /// Sends the rows. `passed` has the documents that pass the filters on columns, if they are
    /// known.
    fn run(mut self, passed: Option<Vec<u64>>) -> Result<()> {
        let scan = Arc::clone(&self.run.scan);
        let batch_size = self.run.output.batch_size();
        let is_filtered = passed.is_some();
        let ids = match passed {
            Some(passed) => self.narrowed(passed),
            None => self.ids(),
        };
        let Range { start: mut seen, end } = range_of(&self.run);
        for chunk in ids.chunks(batch_size) {
            let kept = if is_filtered { chunk.to_vec() } else { self.filter_by_columns(chunk)? };
            if scan.is_filtered() {
                let chunk_end = chunk.last().map_or(seen, |last| last + 1);
                self.run.note_kept(&(seen..chunk_end), &kept);
                seen = chunk_end;
            }
            let more = if needs_decoding(&scan) { self.send_decoded(&kept)? } else { self.send(&kept, None, None)? };
            if !more {
                return Ok(());
            }
        }
        if scan.is_filtered() {
            self.run.note_kept(&(seen..end), &[]);
        }
        Ok(())
    }

    /// Returns the documents of the partition that can match the demands of all text filters.
    fn ids(&self) -> Vec<u64> {
        self.narrowed(self.run.scan.documents(range_of(&self.run)).collect())
    }

    /// Returns those of `ids`, which ascend, that can match the demands of all text filters.
    fn narrowed(&self, mut ids: Vec<u64>) -> Vec<u64> {
        let Some(candidates) = self.source.corpus().and_then(|corpus| self.candidates(corpus)) else {
            return ids;
        };
        let num_before = ids.len();
        ids.retain(|id| candidates.binary_search(id).is_ok());
        self.run.counter("documents_pruned_by_grammar").add(num_before - ids.len());
        ids
    }

    /// Returns the documents of `corpus` that can match the demands of all text filters, or `None`
    /// for all documents.
    fn candidates(&self, corpus: &Corpus) -> Option<Vec<u64>> {
        let compute = || {
            let mut all = documents_for_demands(corpus, &self.run.scan.filters.demands);
            if let Some(all) = &mut all {
                all.retain(|&id| !self.run.scan.source.is_dropped(id));
            }
            all
        };
        self.run.shared.candidates.get_or_init(compute).clone()
    }

    fn filter_by_columns(&self, ids: &[u64]) -> Result<Vec<u64>> {
        let mask = self.run.scan.mask(ids.len(), |name| self.column(name, ids, None))?;
        let Some(mask) = mask else { return Ok(ids.to_vec()) };
        let kept: Vec<u64> = selected(&mask).map(|i| ids[i]).collect();
        self.run.counter("documents_pruned_by_columns").add(ids.len() - kept.len());
        Ok(kept)
    }

    /// Decodes, filters and sends `ids`, at most [`batch_bytes`] at a time.
    fn send_decoded(&mut self, ids: &[u64]) -> Result<bool> {
        let scan = Arc::clone(&self.run.scan);
        let decoded = self.run.counter("documents_decoded");
        let logical = self.run.counter("logical_bytes");
        let mut rest = ids;
        while !rest.is_empty() {
            if self.run.output.is_done() {
                return Ok(false);
            }
            let (batch, len_bytes) = self.next_batch(rest)?;
            rest = &rest[batch.len()..];
            // Decoded bytes, and the same again for the replacement of invalid ones.
            self.reservation.try_resize(self.held_bytes + 2 * len_bytes as usize)?;
            let mut ends = Vec::with_capacity(batch.len());
            for &id in batch {
                self.source.append_text(id)?;
                ends.push(self.source.text_len_bytes());
            }
            decoded.add(batch.len());
            logical.add(len_bytes as usize);
            let texts = Texts::new(self.source.take_text(), ends)?;
            let mask = match &scan.filters.text {
                None => None,
                Some(stage) => {
                    let arrays = scan.names_in(stage).map(|name| self.column(name, batch, Some(&texts)));
                    Some(stage.evaluate(arrays.collect::<Result<_>>()?, batch.len())?)
                }
            };
            if !self.send(batch, Some(&texts), mask.as_ref())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the longest prefix of `ids` that fits into a batch, at least one document, and its
    /// bytes.
    fn next_batch<'a>(&self, ids: &'a [u64]) -> Result<(&'a [u64], u64)> {
        let most = batch_bytes(&self.run.runtime.memory_pool);
        let most = most.min(self.run.scan.options.max_output_bytes);
        let mut sum = 0u64;
        for (i, &id) in ids.iter().enumerate() {
            let len = self.source.len_bytes(id)?;
            if i > 0 && sum.saturating_add(len) > most {
                return Ok((&ids[..i], sum));
            }
            if i == 0 && len > self.run.scan.options.max_output_bytes.min(i32::MAX as u64) {
                // The decoder refuses the document with its own error, before anything is reserved.
                return Ok((&ids[..1], 0));
            }
            sum = sum.saturating_add(len);
        }
        Ok((ids, sum))
    }

    /// Sends the rows of `ids` that `mask` selects.
    fn send(
        &mut self,
        ids: &[u64],
        texts: Option<&Texts>,
        mask: Option<&datafusion::arrow::array::BooleanArray>,
    ) -> Result<bool> {
        let kept: Vec<u64> = match mask {
            None => ids.to_vec(),
            Some(mask) => selected(mask).map(|i| ids[i]).collect(),
        };
        if kept.is_empty() {
            return Ok(!self.run.output.is_done());
        }
        let scan = Arc::clone(&self.run.scan);
        let column = |name: &str| match (name, mask) {
            ("text" | "content", Some(mask)) => Ok(filter(&self.column(name, ids, texts)?, mask)?),
            _ => self.column(name, &kept, texts),
        };
        let columns = scan.projected().map(column).collect::<Result<_>>()?;
        self.run.output.send_columns(columns, kept.len())
    }

    /// Returns the column `name` for `ids`. `texts` are their texts, if decoded.
    fn column(&self, name: &str, ids: &[u64], texts: Option<&Texts>) -> Result<ArrayRef> {
        match (name, texts) {
            ("text", Some(texts)) => Ok(Arc::new(texts.text()?)),
            ("content", Some(texts)) => Ok(Arc::new(texts.content()?)),
            _ => self.source.column(name, ids, &self.user),
        }
    }
}

fn needs_decoding(scan: &ScanSpec) -> bool {
    scan.uses("text") || scan.uses("content")
}

/// The function `extract` in SQL.
pub(super) static EXTRACT: Definition = Definition {
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
        &EXTRACT.signature
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
