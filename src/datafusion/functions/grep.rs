//! The function `grep(corpus, pattern [, context] [, fold])`: lines that match a regular expression.
//!
//! ```text
//! literals of the pattern ─▶ segments ─▶ documents ─▶ decoded, 1 MiB at a time ─▶ lines
//!                            (dictionary) (grammar)
//! ```
//!
//! Only documents that may match are decoded. Partitions have equal shares of them, in order.
//! Filters on `doc_id` choose the documents first. `tadoc.max_hits` bounds the rows of all
//! partitions, and `tadoc.max_output_bytes` a line with its context.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::doc_rows::{num_partitions, paths, range_of};
use super::searching::{NumHits, finished, sought_documents};
use super::sequence_rows::length;
use super::strings::{Texts, int64};
use crate::corpora::{LoadedCorpus, Sought};
use crate::planning::function::{Definition, Facts, Merge, NO_KERNEL, Prepared, TableFunction};
use crate::planning::long_rows::batch_bytes;
use crate::planning::signature::{self, ArgumentKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column, selected};
use tadoc::query::{
    GrepLine, GrepOptions, LineExpression, LinePattern, SearchOptions, TextPattern, documents_for_demands,
    grep_documents,
};

/// Bytes of a line in estimates.
const LINE_BYTES: u64 = 80;
/// Most bytes of a row. A batch of texts addresses 2^31 - 1 bytes.
const MAX_ROW_BYTES: u64 = 1 << 30;
/// Most literals of a demand that EXPLAIN shows.
const NUM_SHOWN_LITERALS: usize = 4;

/// Columns with lines.
const TEXTS: [&str; 3] = ["line", "before", "after"];

/// The function `grep` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "grep",
        arguments: &[
            signature::CORPUS,
            signature::required(
                "pattern",
                ArgumentKind::Text,
                "a regular expression, in the syntax of the regex crate, over one line",
            ),
            signature::optional("context", ArgumentKind::Integer, "0", "lines before and after each line"),
            signature::optional("fold", ArgumentKind::CaseFold, "false", "match upper and lower case alike"),
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[
            signature::DOC_ID.claimed(),
            signature::PATH,
            signature::integer("line_number", "number of the line, from 1"),
            signature::integer("byte_offset", "where the first match of the line begins in the document"),
            signature::integer("byte_len", "length of that match"),
            signature::text("line", "the line, without its end"),
            signature::text("before", "lines before it"),
            signature::text("after", "lines after it"),
        ],
        summary: "every line that matches a regular expression",
    },
    bind: |arguments, _| {
        let context = arguments.integer("context");
        let is_any_case = arguments.boolean("fold");
        Arc::new(Grep::new(arguments.text("pattern"), context, is_any_case))
    },
};

#[derive(Debug)]
pub(crate) struct Grep {
    pattern: String,
    context: usize,
    is_any_case: bool,
}

impl Grep {
    pub(crate) fn new(pattern: &str, context: Option<u64>, is_any_case: bool) -> Self {
        let pattern = pattern.to_owned();
        let context = length(context, 0);
        Self { pattern, context, is_any_case }
    }

    fn pattern(&self) -> tadoc::Result<LinePattern> {
        let is_any_case = self.is_any_case;
        LinePattern::new(&LineExpression { source: &self.pattern, is_any_case, ..LineExpression::default() })
    }
}

impl TableFunction for Grep {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let mut arguments = vec![("pattern", self.pattern.clone())];
        arguments.extend((self.context > 0).then(|| ("context", self.context.to_string())));
        arguments.extend(self.is_any_case.then(|| ("fold", "true".to_owned())));
        arguments
    }

    fn prepare(&self, _scan: &ScanSpec) -> Result<Prepared> {
        let pattern = self.pattern().map_err(|error| self.signature().error(error))?;
        Ok(Prepared::new(pattern))
    }

    fn facts(&self, scan: &ScanSpec, prepared: &Prepared) -> Facts {
        let pattern = prepared.get::<LinePattern>();
        let literals = pattern.map(|pattern| shown_demands(pattern.demands()));
        let hits = format!("at most {}", scan.options.max_hits);
        let num_lines = (self.context as u64).saturating_mul(2).saturating_add(1);
        Facts {
            ordering: &["doc_id", "line_number"],
            num_partitions: if scan.limit.is_some() { 1 } else { num_partitions(scan) },
            row_bytes: num_lines.saturating_mul(LINE_BYTES).min(scan.document_bytes()),
            finds_few: true,
            merge: Merge::Behind,
            task: NO_KERNEL,
            explain: vec![("literals", literals.unwrap_or_default()), ("hits", hits)],
            ..Facts::default()
        }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let pattern = run.prepared::<LinePattern>()?;
            let demands = pattern.demands().to_vec();
            let doc_ids = sought_documents(&run).await?;
            let loaded = if demands.is_empty() && doc_ids.is_none() {
                run.load().await?
            } else {
                run.load_sought(Sought { demands, doc_ids, ..Sought::default() }).await?
            };
            run.blocking(move |run| self.send_lines(run, &pattern, &loaded)).await
        }
        .boxed()
    }
}

impl Grep {
    fn send_lines(&self, mut run: Execution, pattern: &LinePattern, loaded: &LoadedCorpus) -> Result<()> {
        let docs = documents(&run, pattern, loaded)?;
        run.counter("documents_decoded").add(docs.len());
        let cancel = run.output.canceller();
        let is_cancelled = move || cancel.is_closed();
        let options = &run.scan.options;
        let search =
            SearchOptions { max_hits: options.max_hits, is_cancelled: &is_cancelled, ..SearchOptions::default() };
        let options = GrepOptions {
            search,
            before: self.context,
            after: self.context,
            max_output_bytes: options.max_output_bytes.min(MAX_ROW_BYTES),
            ..GrepOptions::default()
        };
        let mut rows = Rows::new(&run)?;
        let mut outcome = Ok(());
        let searched = grep_documents(&loaded.corpus, pattern, &docs, &options, &mut |line| {
            rows.push(line);
            if !rows.are_full() {
                return ControlFlow::Continue(());
            }
            match rows.send(&mut run, loaded) {
                Ok(true) => ControlFlow::Continue(()),
                Ok(false) => ControlFlow::Break(()),
                Err(error) => {
                    outcome = Err(error);
                    ControlFlow::Break(())
                }
            }
        });
        finished(outcome, searched)?;
        rows.send(&mut run, loaded).map(drop)
    }
}

/// Returns the documents that the run's partition decodes: its share of those that may match, if
/// they pass the filters on `doc_id`.
fn documents(run: &Execution, pattern: &LinePattern, loaded: &LoadedCorpus) -> Result<Vec<u64>> {
    let find = || documents_for_demands(&loaded.corpus, pattern.demands());
    let (seen, ids): (Range<u64>, Vec<u64>) = match run.shared.candidates.get_or_init(find) {
        Some(candidates) => {
            let share = |partition| candidates.len() * partition / run.plan.num_partitions;
            let ids = &candidates[share(run.partition)..share(run.partition + 1)];
            // The partitions look at all documents together.
            let first = |partition| match candidates.get(share(partition)) {
                _ if partition == 0 => 0,
                Some(&id) => id,
                None => run.scan.num_doc_ids(),
            };
            (first(run.partition)..first(run.partition + 1), ids.to_vec())
        }
        None => (range_of(run), run.scan.documents(range_of(run)).collect()),
    };
    let mask = run.scan.mask(ids.len(), |_| int64(ids.iter().copied()))?;
    let ids = match mask {
        Some(mask) => selected(&mask).map(|i| ids[i]).collect(),
        None => ids,
    };
    run.note_kept(&seen, &ids);
    Ok(ids)
}

/// Rows that are gathered for the next batch. Texts that are not returned are not kept.
struct Rows {
    doc_ids: Vec<u64>,
    line_numbers: Vec<u64>,
    byte_offsets: Vec<u64>,
    byte_lens: Vec<u64>,
    /// Lines, lines before them and lines after them; `None` if they are not returned.
    texts: [Option<(Vec<u8>, Vec<usize>)>; 3],
    max_rows: usize,
    max_bytes: usize,
    num_hits: Arc<NumHits>,
    reservation: MemoryReservation,
}

impl Rows {
    fn new(run: &Execution) -> Result<Self> {
        let text = |column| run.scan.projects(column).then(Default::default);
        Ok(Self {
            doc_ids: Vec::new(),
            line_numbers: Vec::new(),
            byte_offsets: Vec::new(),
            byte_lens: Vec::new(),
            texts: TEXTS.map(text),
            max_rows: run.output.batch_size(),
            max_bytes: batch_bytes(&run.runtime.memory_pool) as usize,
            num_hits: NumHits::shared(run)?,
            reservation: run.reservation("Grep"),
        })
    }

    fn push(&mut self, line: &GrepLine<'_>) {
        self.doc_ids.push(line.doc_id);
        self.line_numbers.push(line.line_number);
        self.byte_offsets.push(line.byte_offset());
        self.byte_lens.push(line.byte_len());
        let joined = |lines: &'_ [u8]| lines.len() - usize::from(lines.ends_with(b"\n"));
        let before = &line.before[..joined(line.before)];
        let after = &line.after[..joined(line.after)];
        for (texts, text) in self.texts.iter_mut().zip([line.line, before, after]) {
            if let Some((bytes, ends)) = texts {
                bytes.extend_from_slice(text);
                ends.push(bytes.len());
            }
        }
    }

    fn len_bytes(&self) -> usize {
        self.texts.iter().flatten().map(|(bytes, _)| bytes.len()).sum()
    }

    fn are_full(&self) -> bool {
        self.doc_ids.len() >= self.max_rows || self.len_bytes() >= self.max_bytes
    }

    /// Sends the rows and forgets them. Returns false if the function should stop.
    fn send(&mut self, run: &mut Execution, loaded: &LoadedCorpus) -> Result<bool> {
        let num_rows = self.doc_ids.len();
        self.num_hits.add(num_rows)?;
        // Decoded bytes, and the same again for the replacement of invalid ones.
        self.reservation.try_resize(2 * self.len_bytes() + num_rows * 5 * size_of::<u64>())?;
        let numbers = |numbers: &mut Vec<u64>| int64(std::mem::take(numbers).into_iter());
        let doc_ids = std::mem::take(&mut self.doc_ids);
        run.send(num_rows, |column| match column {
            "doc_id" => int64(doc_ids.iter().copied()),
            "path" => Ok(paths(&loaded.corpus, &doc_ids)),
            "line_number" => numbers(&mut self.line_numbers),
            "byte_offset" => numbers(&mut self.byte_offsets),
            "byte_len" => numbers(&mut self.byte_lens),
            name => {
                let Some(at) = TEXTS.iter().position(|&text| text == name) else { return no_column(name) };
                let texts = self.texts[at].as_mut().map(std::mem::take);
                let (bytes, ends) = texts.unwrap_or_default();
                Ok(Arc::new(Texts::new(bytes, ends)?.text()?) as ArrayRef)
            }
        })
    }
}

/// Returns `demands` for EXPLAIN: literals of which a line has one each.
fn shown_demands(demands: &[Vec<TextPattern>]) -> String {
    if demands.is_empty() {
        return "none, all documents are decoded".to_owned();
    }
    let shown = |patterns: &Vec<TextPattern>| {
        let literals = patterns.iter().take(NUM_SHOWN_LITERALS);
        let mut literals: Vec<String> = literals.map(|p| p.fragments.concat()).collect();
        literals.extend((patterns.len() > NUM_SHOWN_LITERALS).then(|| "…".to_owned()));
        let is_any_case = patterns.iter().any(|pattern| pattern.is_any_case);
        format!("[{}]{}", literals.join("|"), if is_any_case { " in any case" } else { "" })
    };
    demands.iter().map(shown).collect::<Vec<_>>().join(" and ")
}
