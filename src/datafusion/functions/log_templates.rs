//! The function `log_templates(corpus [, similarity] [, depth] [, by_doc])`: lines that differ only in their variable
//! parts, counted together.
//!
//! ```text
//! portions      masked lines, count, example ─▶ sum ─▶ joined to templates ─┐
//!               doc_id, masked line, count ─────────────────────────────────┴▶ join ─▶ template, counts
//! ```
//!
//! A masked line is a template of `similarity => 1`, so its counts in portions add up. Masked lines of all portions are
//! joined at once, by a scalar function over their lists. Rows of portions have no order. Filters on `count` run before
//! texts are made. With `by_doc`, filters on `doc_id` choose the documents of the rows. The times are those of the user
//! column `ts`, which is read only if they are used; the documents of each template are looked for again then.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray, TimestampMicrosecondArray, UInt64Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType};
use datafusion::common::{Column, NullHandling, UnnestOptions, internal_err};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::functions_aggregate::expr_fn::{array_agg, count_distinct, max, min, sum};
use datafusion::logical_expr::{
    ColumnarValue, Expr, JoinType, LogicalPlanBuilder, ScalarUDF, Volatility, col, create_udf, lit,
};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::doc_rows::{DOC_ID, selected_documents, words_at};
use super::sequence_rows::{COUNT, for_each_passing, length, task_memory_bytes, texts};
use super::strings::{int64, list_array};
use crate::corpora::LoadedCorpus;
use crate::corpora::columns::{TS, read_user_columns, times_field};
use crate::corpora::memory::Uses;
use crate::errors::datafusion_error;
use crate::planning::function::{Definition, Facts, Merge, NO_KERNEL, PortionRows, Prepared, TableFunction, Walk};
use crate::planning::long_rows::batch_bytes;
use crate::planning::signature::{self, ArgumentKind, ColumnKind, Columns, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::analytics::{self, DocSelection, LogTemplate, TemplateOptions};
use tadoc::segment::Corpus;

/// Bytes of a template and of its example in estimates.
const ROW_BYTES: u64 = 160;
/// Columns with `by_doc`.
const OF_DOC: [&str; 4] = [DOC_ID, "template", COUNT, TS];

/// The function `log_templates` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "log_templates",
        arguments: &[
            signature::CORPUS,
            signature::optional(
                "similarity",
                ArgumentKind::Number,
                "0.4",
                "share of equal tokens that joins a line to a template, up to 1",
            ),
            signature::optional(
                "depth",
                ArgumentKind::Integer,
                "4",
                "depth of Drain's tree: lines of a template have the same first depth - 3 words",
            ),
            signature::optional("by_doc", ArgumentKind::Boolean, "false", "count in each document"),
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[
            signature::integer("doc_id", "number of the document; with by_doc only").claimed(),
            signature::text("template", "tokens of its lines, <*> for variable parts"),
            signature::integer("count", "number of its lines").claimed(),
            signature::column(TS, ColumnKind::Time, "the user column ts of the document; with by_doc only").nullable(),
            signature::integer("doc_count", "number of documents with such a line; not with by_doc"),
            signature::integer("first_doc_id", "first document with such a line; not with by_doc"),
            signature::integer("last_doc_id", "last document with such a line; not with by_doc"),
            signature::text("example", "the least of its lines in byte order; not with by_doc"),
            signature::column("first_ts", ColumnKind::Time, "least user column ts of its documents; not with by_doc")
                .nullable(),
            signature::column("last_ts", ColumnKind::Time, "greatest user column ts of its documents; not with by_doc")
                .nullable(),
        ],
        summary: "lines that differ only in variable parts, counted together, most lines first",
    },
    bind: |arguments, _| {
        let defaults = TemplateOptions::default();
        let similarity = arguments.number("similarity").unwrap_or(defaults.similarity);
        let depth = length(arguments.integer("depth"), defaults.depth);
        let options = TemplateOptions { similarity, depth };
        Arc::new(LogTemplates { options, by_doc: arguments.boolean("by_doc") })
    },
};

#[derive(Debug, Clone)]
pub(crate) struct LogTemplates {
    options: TemplateOptions,
    by_doc: bool,
}

impl TableFunction for LogTemplates {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn columns(&self) -> Columns {
        let columns = DEFINITION.signature.columns;
        if self.by_doc {
            let is_of_doc = |column: &&signature::Column| OF_DOC.contains(&column.name);
            Columns::from_columns(columns.iter().filter(is_of_doc)).claimed_only(DOC_ID)
        } else {
            let is_total = |column: &&signature::Column| column.name != DOC_ID && column.name != TS;
            Columns::from_columns(columns.iter().filter(is_total))
        }
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let TemplateOptions { similarity, depth } = self.options;
        let by_doc = ("by_doc", self.by_doc.to_string());
        vec![("similarity", similarity.to_string()), ("depth", depth.to_string()), by_doc]
    }

    fn prepare(&self, _scan: &ScanSpec) -> Result<Prepared> {
        self.options.check().map_err(|error| self.signature().error(error))?;
        Ok(Prepared::default())
    }

    fn facts(&self, scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let is_joined = self.by_doc && self.joins_equal_lines();
        let how = "top_down: lines of each rule once, with its weight; documents by their rules";
        Facts {
            ordering: if self.by_doc { &["doc_id"] } else { &[] },
            row_bytes: ROW_BYTES,
            uses: Uses::Text,
            reads_user_columns: self.uses_times(scan),
            merge: if is_joined { Merge::Behind } else { Merge::Combined },
            task: NO_KERNEL,
            walk: Some(Walk::Only(how)),
            ..Facts::default()
        }
    }

    fn combine(&self, rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        let masked = |by_doc| {
            let options = TemplateOptions { similarity: 1.0, ..self.options };
            Arc::new(Self { options, by_doc })
        };
        let joined = self.joined_lines(rows.for_all(masked(false), &["template", COUNT, "example"])?)?;
        let columns = [DOC_ID, "template", COUNT, TS];
        let templates = if self.by_doc {
            rows.for_documents(masked(true), &columns)?
        } else {
            rows.for_all(masked(true), &columns)?
        };
        let on = (vec!["template"], vec!["line"]);
        let lines = templates.join(joined.build()?, JoinType::Inner, on, None)?;
        if self.by_doc {
            // All lines of a document have its time.
            let keys = [col(DOC_ID), col("joined")];
            let sums = [sum(col(COUNT)).alias(COUNT), max(col(TS)).alias(TS)];
            let named = [col(DOC_ID), col("joined").alias("template"), col(COUNT), col(TS)];
            return lines.aggregate(keys, sums)?.project(named);
        }
        lines
            .aggregate(
                [col("joined")],
                [
                    sum(col(COUNT)).alias(COUNT),
                    count_distinct(col(DOC_ID)).alias("doc_count"),
                    min(col(DOC_ID)).alias("first_doc_id"),
                    max(col(DOC_ID)).alias("last_doc_id"),
                    min(col("example")).alias("example"),
                    min(col(TS)).alias("first_ts"),
                    max(col(TS)).alias("last_ts"),
                ],
            )?
            .project([
                col("joined").alias("template"),
                col(COUNT),
                col("doc_count"),
                col("first_doc_id"),
                col("last_doc_id"),
                col("example"),
                col("first_ts"),
                col("last_ts"),
            ])
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let loaded = run.load().await?;
            let reservation = run.reservation("LogTemplates");
            let times = self.times(&run, &reservation).await?;
            run.blocking(move |run| self.send_rows(run, &loaded, times, reservation)).await
        }
        .boxed()
    }
}

impl LogTemplates {
    /// Returns true if a template is one masked line.
    fn joins_equal_lines(&self) -> bool {
        self.options.similarity == 1.0
    }

    /// Returns `line`, `example` and `joined` of `lines`, the masked lines of all portions: each of
    /// them once, with its example and its template.
    fn joined_lines(&self, lines: LogicalPlanBuilder) -> Result<LogicalPlanBuilder> {
        let none: [Expr; 0] = [];
        let depth = i64::try_from(self.options.depth).unwrap_or(i64::MAX);
        let joined = joining().call(vec![col("line"), col("lines"), lit(self.options.similarity), lit(depth)]);
        let lists = ["line", "example", "joined"];
        let options = UnnestOptions { null_handling: NullHandling::Drop, ..UnnestOptions::default() };
        lines
            .aggregate([col("template")], [sum(col(COUNT)).alias(COUNT), min(col("example")).alias("example")])?
            .aggregate(
                none,
                [
                    array_agg(col("template")).alias("line"),
                    array_agg(col(COUNT)).alias("lines"),
                    array_agg(col("example")).alias("example"),
                ],
            )?
            .project([col("line"), col("example"), joined.alias("joined")])?
            .unnest_columns_with_options(lists.map(Column::from_name).into(), options)
    }

    /// Returns true if `scan` uses columns with times.
    fn uses_times(&self, scan: &ScanSpec) -> bool {
        let names: &[&str] = if self.by_doc { &[TS] } else { &["first_ts", "last_ts"] };
        names.iter().any(|name| scan.uses(name))
    }

    /// Returns the time of each document, if the query uses times.
    async fn times(&self, run: &Execution, reservation: &MemoryReservation) -> Result<Option<ArrayRef>> {
        let scan = &run.scan;
        if !self.uses_times(scan) {
            return Ok(None);
        }
        let field = times_field(ColumnKind::Time.data_type());
        let limit = scan.options.max_memory_bytes;
        let sources = scan.row_sources();
        let living = scan.living();
        let columns = read_user_columns(&run.runtime, sources, living, vec![field], limit, reservation);
        match columns.await?.pop() {
            Some(times) if times.len() as u64 == scan.num_doc_ids() => Ok(Some(times)),
            _ => internal_err!("log_templates: expected a time for each document"),
        }
    }

    fn send_rows(
        &self,
        mut run: Execution,
        loaded: &LoadedCorpus,
        times: Option<ArrayRef>,
        reservation: MemoryReservation,
    ) -> Result<()> {
        let cancel = run.output.canceller();
        let is_cancelled = move || cancel.is_closed();
        let corpus = &loaded.corpus;
        let memory_bytes = task_memory_bytes(&run);
        let found = analytics::LogTemplates::new(corpus, &self.options, memory_bytes, &is_cancelled);
        let templates = match found {
            Err(tadoc::Error::Cancelled) => return Ok(()),
            found => found.map_err(datafusion_error)?,
        };
        reservation.try_grow(templates.memory_bytes())?;
        run.counter("templates").add(templates.rows().len());
        if self.by_doc {
            send_documents(&mut run, &templates, times.as_ref())
        } else {
            let spans = times.map(|times| Spans::new(&templates, corpus, &times));
            send_templates(&mut run, templates.rows(), spans.as_ref())
        }
    }
}

/// The least and the greatest time of each template's documents.
struct Spans {
    first: Vec<Option<i64>>,
    last: Vec<Option<i64>>,
}

impl Spans {
    /// Finds the spans. `times` has the time of each document.
    fn new(templates: &analytics::LogTemplates, corpus: &Corpus, times: &ArrayRef) -> Self {
        let num_rows = templates.rows().len();
        let mut spans = Self { first: vec![None; num_rows], last: vec![None; num_rows] };
        let times = times.as_primitive::<TimestampMicrosecondType>();
        templates.for_each_document(&DocSelection::all(corpus), &mut |doc_id, rows| {
            let doc = doc_id as usize;
            if doc < times.len() && times.is_valid(doc) {
                let time = times.value(doc);
                for &(row, _) in rows {
                    let first = &mut spans.first[row as usize];
                    let last = &mut spans.last[row as usize];
                    *first = Some(first.map_or(time, |first| first.min(time)));
                    *last = Some(last.map_or(time, |last| last.max(time)));
                }
            }
            ControlFlow::Continue(())
        });
        spans
    }

    /// Returns the column of `rows`.
    fn column(times: &[Option<i64>], rows: &[usize]) -> ArrayRef {
        let times: TimestampMicrosecondArray = rows.iter().map(|&row| times[row]).collect();
        Arc::new(times.with_timezone(signature::UTC))
    }
}

/// Sends the rows that pass the filters.
fn send_templates(run: &mut Execution, templates: &[LogTemplate], spans: Option<&Spans>) -> Result<()> {
    let most_bytes = batch_bytes(&run.runtime.memory_pool) as usize;
    let numbers = |name: &str, rows: &[usize]| {
        let number: fn(&LogTemplate) -> u64 = match name {
            "count" => |template| template.count,
            "doc_count" => |template| template.doc_count,
            "first_doc_id" => |template| template.first_doc_id,
            "last_doc_id" => |template| template.last_doc_id,
            other => return no_column(other),
        };
        int64(rows.iter().map(|&row| number(&templates[row])))
    };
    for_each_passing(run, templates.len(), numbers, |run, mut rows| {
        while !rows.is_empty() {
            let (batch, behind) = rows.split_at(batch_len(templates, rows, most_bytes));
            rows = behind;
            let text = |text: fn(&LogTemplate) -> &str| {
                texts(batch.iter().copied(), |row, output| output.push_str(text(&templates[row])))
            };
            let more = run.send(batch.len(), |column| match column {
                "template" => text(|template| &template.text),
                "first_ts" | "last_ts" => match spans {
                    Some(Spans { first, .. }) if column == "first_ts" => Ok(Spans::column(first, batch)),
                    Some(Spans { last, .. }) => Ok(Spans::column(last, batch)),
                    None => internal_err!("the times were not asked for"),
                },
                "example" => text(|template| &template.example),
                name => numbers(name, batch),
            })?;
            if !more {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Returns the number of `rows` whose texts have `most_bytes`, at least one.
fn batch_len(templates: &[LogTemplate], rows: &[usize], most_bytes: usize) -> usize {
    let mut num_bytes = 0;
    let fits = |&&row: &&usize| {
        num_bytes += templates[row].text.len() + templates[row].example.len();
        num_bytes <= most_bytes
    };
    rows.iter().take_while(fits).count().max(1)
}

/// Sends the rows of each document.
fn send_documents(run: &mut Execution, templates: &analytics::LogTemplates, times: Option<&ArrayRef>) -> Result<()> {
    let docs: DocSelection = selected_documents(run)?;
    let names = StringViewArray::from_iter_values(templates.rows().iter().map(|row| row.text.as_str()));
    let mut doc_ids = Vec::new();
    let mut rows = Vec::new();
    let mut counts = Vec::new();
    let max_rows = run.output.batch_size();
    let mut outcome = Ok(true);
    let mut send = |doc_ids: &mut Vec<u64>, rows: &mut Vec<u32>, counts: &mut Vec<u64>| {
        let sent = run.send(rows.len(), |column| match column {
            "doc_id" => int64(doc_ids.iter().copied()),
            "template" => words_at(&names, rows),
            "ts" => match times {
                Some(times) => Ok(take(times, &UInt64Array::from(doc_ids.clone()), None)?),
                None => internal_err!("the times were not asked for"),
            },
            "count" => int64(counts.iter().copied()),
            other => no_column(other),
        });
        doc_ids.clear();
        rows.clear();
        counts.clear();
        sent
    };
    templates.for_each_document(&docs, &mut |doc_id, of_document| {
        for &(row, count) in of_document {
            doc_ids.push(doc_id);
            rows.push(row);
            counts.push(count);
            if rows.len() >= max_rows {
                outcome = send(&mut doc_ids, &mut rows, &mut counts);
                if !matches!(outcome, Ok(true)) {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    });
    if outcome? && !rows.is_empty() {
        send(&mut doc_ids, &mut rows, &mut counts)?;
    }
    Ok(())
}

/// Returns the functions that the plan calls.
pub(super) fn functions() -> [ScalarUDF; 1] {
    [joining()]
}

/// Returns a function of masked lines, their counts, the similarity and the depth. It returns the
/// template of each line.
fn joining() -> ScalarUDF {
    let list_of = |item| DataType::new_list(item, true);
    let arguments = vec![list_of(DataType::Utf8View), list_of(DataType::Int64), DataType::Float64, DataType::Int64];
    let answer = |arguments: &[ColumnarValue]| {
        let columns = ColumnarValue::values_to_arrays(arguments)?;
        let [lines, counts, numbers @ ..] = columns.as_slice() else {
            return internal_err!("log_templates_joined takes 4 arguments, got {}", columns.len());
        };
        let mut joined: Vec<String> = Vec::new();
        let mut ends = Vec::with_capacity(lines.len());
        for row in 0..lines.len() {
            joined.extend(joined_list(lines, counts, numbers, row)?);
            ends.push(joined.len());
        }
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter(joined.into_iter().map(Some)));
        let lists = list_array(texts, ends.into_iter(), None)?;
        Ok(ColumnarValue::Array(Arc::new(lists) as ArrayRef))
    };
    let returned = ColumnKind::TextList.data_type();
    create_udf("log_templates_joined", arguments, returned, Volatility::Immutable, Arc::new(answer))
}

/// Returns the templates of the lists at `row`; none if these are NULL.
fn joined_list(lines: &ArrayRef, counts: &ArrayRef, numbers: &[ArrayRef], row: usize) -> Result<Vec<String>> {
    let [lines, counts] = [lines, counts].map(|lists| lists.as_list::<i32>());
    if lines.is_null(row) || counts.is_null(row) {
        return Ok(Vec::new());
    }
    let [similarity, depth] = numbers else {
        return internal_err!("log_templates_joined takes a similarity and a depth");
    };
    let options = TemplateOptions {
        similarity: similarity.as_primitive::<Float64Type>().value(row),
        depth: length(Some(depth.as_primitive::<Int64Type>().value(row).unsigned_abs()), 0),
    };
    let lines = lines.value(row);
    let counts = counts.value(row);
    let texts = lines.as_string_view().iter().map(Option::unwrap_or_default);
    let counts = counts.as_primitive::<Int64Type>().values().iter().map(|count| count.unsigned_abs());
    let lines: Vec<(&str, u64)> = texts.zip(counts).collect();
    options.join(&lines, &|| false).map_err(datafusion_error)
}
