//! Corpora larger than memory: portion by portion of their segments.
//!
//! ```text
//! segments     0 1 2 │ 3 4 │ 5 6 7 │ 8          documents are cut nowhere between portions
//! in memory            3 4                      one portion, and what is left of the one before
//!
//! rows of documents    doc_id + first id ─┐
//!                      doc_id + first id ─┴ one behind the other
//! counts               word, count ───────┐
//!                      word, count ───────┴ AggregateExec: sum(count) by the rest, which spills
//! ```
//!
//! Where the decoded segments of a scan need more than `tadoc.max_memory_bytes`, or half of a bounded pool, the
//! scan is planned once for each portion, as if it were the corpus, and portions are read one after another; who
//! was there before goes as the cache lets files go. Filters on `doc_id` are told of ids in the portion, and
//! a portion of which they leave no document is not read. What rows of portions become together is said by
//! [`Merge`]: functions that need all segments for each row (`tfidf`, `inverted_index`, ranks, word ids) are refused as
//! before, with the memory that they need. Time is that of the whole, and of loading it once for each statement.

mod exec;

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::catalog::Session;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, lit};
use datafusion::physical_expr::aggregate::AggregateExprBuilder;
use datafusion::physical_expr::expressions::col;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use self::exec::{DOC_ID, PortionsExec};
use super::corpora::OpenFile;
use super::filter::{Stage, project_schema, unqualify};
use super::functions::TableFunction;
use super::memory::MemoryWhenUsed;
use super::options::TadocOptions;
use super::scan::{Scan, Source};
use crate::corpus::{FileFooter, SegmentMeta};
use crate::ingestion::calibration::num_cores;

const COUNT: &str = "count";
/// Ids looked at by one evaluation of a filter.
const FILTER_IDS: usize = 65_536;
/// Ids of a portion that are looked at before anything is read of it: as many as a footer declares.
const MAX_FILTERED_IDS: i64 = 1 << 26;

/// What rows of portions become together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    /// Nothing: a row needs all segments.
    Never,
    /// The rows of the whole, one portion behind the other; column `doc_id`, if there is one, counts from the
    /// first document of each.
    Behind,
    /// Rows that are equal but for `count`, which is added up.
    Sum,
}

/// What a function asks of a portion.
#[derive(Debug)]
pub(crate) enum OfPortion {
    /// What it asks of the whole.
    Same,
    /// The same of a document, which has another id there.
    Other(Arc<dyn TableFunction>),
    /// Nothing.
    Nothing,
}

impl OfPortion {
    /// What is asked of document `doc_id` of the whole by a function that `of_document` makes for an id.
    pub(crate) fn of_document<F: TableFunction>(
        doc_id: u64,
        docs: Range<u64>,
        of_document: impl FnOnce(u64) -> F,
    ) -> Self {
        match docs.contains(&doc_id) {
            true => Self::Other(Arc::new(of_document(doc_id - docs.start))),
            false => Self::Nothing,
        }
    }
}

/// Which segments of its file an [`OpenFile`] stands for, whose footer has no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Portion {
    segments: Range<usize>,
    /// Their documents, counted from the first of the file.
    pub(crate) docs: Range<u64>,
    /// Documents of the file.
    pub(crate) num_docs_of_file: u64,
}

impl Portion {
    /// Tells it from the others of its file.
    pub(crate) fn suffix(&self) -> String {
        format!(", segments {} to {}", self.segments.start, self.segments.end)
    }
}

/// Files, or runs of their segments, that memory has room for at once.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) first_doc_id: u64,
    pub(crate) files: Vec<OpenFile>,
}

/// The files of `source` in portions; `None` where there is room for all of it, or where it is no sum of files.
pub(crate) fn portions_of(
    source: &Source,
    session: &dyn Session,
    options: &TadocOptions,
) -> Option<Vec<Files>> {
    if source.living().is_some_and(|view| !view.is_as_in_files()) {
        return None;
    }
    let pool = match session.runtime_env().memory_pool.memory_limit() {
        MemoryLimit::Finite(pool) => pool as u64 / 2,
        _ => u64::MAX,
    };
    let limit_bytes = pool.min(options.max_memory_bytes);
    let files = source.corpora();
    let needed = files.iter().map(|open| MemoryWhenUsed::of(&open.footer.segments));
    let needed = needed.fold(MemoryWhenUsed::default(), MemoryWhenUsed::and);
    let num_segments: usize = files.iter().map(|open| open.footer.segments.len()).sum();
    let is_larger = needed.bytes(num_cores()) > limit_bytes;
    // The portion before may still be held while one is loaded.
    (is_larger && num_segments > 1).then(|| cut(files, limit_bytes / 2))
}

/// `files` in portions of `limit_bytes` or one run of segments that a document goes through.
fn cut(files: &[OpenFile], limit_bytes: u64) -> Vec<Files> {
    let mut portions: Vec<Files> = Vec::new();
    let (mut doc_id, mut held) = (0, MemoryWhenUsed::default());
    for open in files {
        let mut first_doc = 0;
        for run in runs(&open.footer.segments) {
            let needed = MemoryWhenUsed::of(&open.footer.segments[run.clone()]);
            let part = open.portion(run, first_doc);
            let num_docs = part.footer.num_docs();
            held = held.and(needed);
            match portions.last_mut().filter(|_| held.bytes(num_cores()) <= limit_bytes) {
                Some(last) => last.push(part),
                None => {
                    portions.push(Files { first_doc_id: doc_id, files: vec![part] });
                    held = needed;
                }
            }
            (doc_id, first_doc) = (doc_id + num_docs, first_doc + num_docs);
        }
    }
    portions
}

/// Runs of segments between which no document is cut.
fn runs(segments: &[SegmentMeta]) -> impl Iterator<Item = Range<usize>> + '_ {
    let starts = (0..segments.len()).filter(|&at| at == 0 || !segments[at].continues);
    let ends = (1..=segments.len()).filter(|&at| segments.get(at).is_none_or(|s| !s.continues));
    starts.zip(ends).map(|(start, end)| start..end)
}

impl Files {
    /// Appends `part`, which follows on the last one of its file where that is one of these.
    fn push(&mut self, part: OpenFile) {
        match self.files.last_mut() {
            Some(last) if last.file.version_key() == part.file.version_key() => last.join(part),
            _ => self.files.push(part),
        }
    }

    /// Ids of its documents.
    fn doc_ids(&self) -> Range<u64> {
        let num_docs: u64 = self.files.iter().map(|open| open.footer.num_docs()).sum();
        self.first_doc_id..self.first_doc_id + num_docs
    }
}

impl OpenFile {
    /// The file as if it had only these segments, whose first document is `first_doc`.
    fn portion(&self, segments: Range<usize>, first_doc: u64) -> Self {
        let whole = &self.footer;
        let footer = FileFooter {
            profile: whole.profile,
            unicode_version: whole.unicode_version,
            writer: whole.writer.clone(),
            builder: whole.builder.clone(),
            segments: whole.segments[segments.clone()].to_vec(),
            columns: whole.columns.clone(),
            unknown: Vec::new(),
        };
        let docs = first_doc..first_doc + footer.num_docs();
        let portion = Portion { segments, docs, num_docs_of_file: whole.num_docs() };
        Self { file: self.file.clone(), footer: Arc::new(footer), portion: Some(portion) }
    }

    /// Appends the segments of `next`, which follow on those of this portion.
    fn join(&mut self, next: Self) {
        let (Some(portion), Some(behind)) = (&mut self.portion, next.portion) else { return };
        (portion.segments.end, portion.docs.end) = (behind.segments.end, behind.docs.end);
        Arc::make_mut(&mut self.footer).segments.extend_from_slice(&next.footer.segments);
    }
}

/// Plans a scan portion by portion.
pub(crate) struct Planner<'a> {
    pub(crate) session: &'a dyn Session,
    /// The scan of the whole, without filters.
    pub(crate) scan: Scan,
    pub(crate) function: Arc<dyn TableFunction>,
    /// Those that are taken over.
    pub(crate) filters: Vec<Expr>,
}

/// Plans the scan of a portion, with its filters.
type PlanOf<'a> =
    &'a dyn Fn(Arc<dyn TableFunction>, Scan, &[Expr]) -> Result<Arc<dyn ExecutionPlan>>;

impl Planner<'_> {
    /// The rows of all `portions` together; `plan` plans the scan of one.
    ///
    /// # Errors
    /// Those of `plan`.
    pub(crate) fn plan(
        &self,
        portions: &[Files],
        plan: PlanOf<'_>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match self.function.merge(&self.scan) {
            Merge::Sum => self.sum(portions, plan),
            Merge::Behind | Merge::Never => self.behind(portions, plan),
        }
    }

    fn behind(&self, portions: &[Files], plan: PlanOf<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        let mut inputs = Vec::with_capacity(portions.len());
        for files in portions {
            let function = match self.function.of_portion(files.doc_ids()) {
                OfPortion::Same => Arc::clone(&self.function),
                OfPortion::Other(function) => function,
                OfPortion::Nothing => continue,
            };
            let shifted = self.filters.iter().map(|f| shifted(f.clone(), files.first_doc_id));
            let filters = shifted.collect::<Result<Vec<_>>>()?;
            if self.leave_nothing(&filters, files)? {
                continue;
            }
            let input = plan(function, self.scan_of(files), &filters)?;
            inputs.push((input, files.first_doc_id));
        }
        let schema = project_schema(&self.scan.schema, &self.scan.projection)?;
        let ordering = self.function.ordering(&self.scan);
        Ok(Arc::new(PortionsExec::try_new(portions.len(), inputs, schema, ordering)?))
    }

    fn sum(&self, portions: &[Files], plan: PlanOf<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.scan.schema.fields().len()).collect();
        let mut inputs = Vec::with_capacity(portions.len());
        for files in portions {
            let scan = Scan { projection: all.clone(), limit: None, ..self.scan_of(files) };
            inputs.push((plan(Arc::clone(&self.function), scan, &[])?, 0));
        }
        let schema = &self.scan.schema;
        let rows = PortionsExec::try_new(portions.len(), inputs, Arc::clone(schema), &[])?;
        let summed = self.filtered(added_up(Arc::new(rows))?)?;
        let columns = self.scan.projection.iter().map(|&at| {
            let name = schema.field(at).name();
            Ok(ProjectionExpr { expr: col(name, &summed.schema())?, alias: name.clone() })
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let projected = ProjectionExec::try_new(columns, Arc::clone(&summed))?;
        let schema = project_schema(schema, &self.scan.projection)?;
        Ok(Arc::new(PortionsExec::try_new(1, vec![(Arc::new(projected), 0)], schema, &[])?))
    }

    /// Whether none of the documents of `files` passes those of `filters` that are on ids alone.
    fn leave_nothing(&self, filters: &[Expr], files: &Files) -> Result<bool> {
        let is_on_ids = |filter: &&Expr| filter.column_refs().iter().all(|c| c.name == DOC_ID);
        let filters: Vec<Expr> = filters.iter().filter(is_on_ids).cloned().collect();
        let Some(stage) = Stage::compile(self.session, &self.scan.schema, &filters)? else {
            return Ok(false);
        };
        let num_ids = (files.doc_ids().end - files.first_doc_id) as i64;
        if num_ids > MAX_FILTERED_IDS {
            return Ok(false);
        }
        for start in (0..num_ids).step_by(FILTER_IDS) {
            let ids = start..num_ids.min(start + FILTER_IDS as i64);
            let num_rows = (ids.end - ids.start) as usize;
            let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
            let columns = stage.columns.iter().map(|_| Arc::clone(&ids)).collect();
            if stage.evaluate(columns, num_rows)?.true_count() > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn scan_of(&self, files: &Files) -> Scan {
        Scan { source: Source::Corpora(files.files.clone()), ..self.scan.clone() }
    }

    fn filtered(&self, input: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let filters = self.filters.iter().map(|filter| unqualify(filter.clone()));
        let Some(filter) = conjunction(filters.collect::<Result<Vec<_>>>()?) else {
            return Ok(input);
        };
        let schema = DFSchema::try_from(input.schema())?;
        let filter = self.session.create_physical_expr(filter, &schema)?;
        Ok(Arc::new(FilterExec::try_new(filter, input)?))
    }
}

/// `filter` of the whole as one of a portion, whose ids count from its first document.
fn shifted(filter: Expr, first_doc_id: u64) -> Result<Expr> {
    let shift = |node| match &node {
        Expr::Column(column) if column.name == DOC_ID && first_doc_id > 0 => {
            // Upwards: the column inside the sum was looked at before.
            Ok(Transformed::yes(node + lit(first_doc_id as i64)))
        }
        _ => Ok(Transformed::no(node)),
    };
    filter.transform_up(shift).data()
}

/// The rows of `input`, equal ones but for their count as one.
fn added_up(input: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = input.schema();
    let keys = schema.fields().iter().filter(|field| field.name() != COUNT);
    let keys = keys.map(|field| Ok((col(field.name(), &schema)?, field.name().clone())));
    let keys = PhysicalGroupBy::new_single(keys.collect::<Result<Vec<_>>>()?);
    let sum = AggregateExprBuilder::new(sum_udaf(), vec![col(COUNT, &schema)?])
        .schema(Arc::clone(&schema))
        .alias(COUNT)
        .build()?;
    let (sums, no_filter) = (vec![Arc::new(sum)], vec![None]);
    let mode = AggregateMode::Single;
    Ok(Arc::new(AggregateExec::try_new(mode, keys, sums, no_filter, input, schema)?))
}
