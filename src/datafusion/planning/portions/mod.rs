//! Scans of corpora larger than memory, one portion of their segments after another.
//!
//! ```text
//! segments     0 1 2 │ 3 4 │ 5 6 7 │ 8          no document is cut between portions
//! in memory            3 4                      one portion, and the rest of the one before
//!
//! rows of documents    doc_id + first id ─┐
//!                      doc_id + first id ─┴ concatenated
//! counts               word, count ───────┐
//!                      word, count ───────┴ DataFusion: sum(count), grouped by the rest; spills
//! ```
//!
//! If the decoded segments of a scan need more than `tadoc.max_memory_bytes`, or more than half of
//! a bounded pool, the scan is planned once for each portion, as if the portion were the corpus.
//! The portions are read one after another. The cache evicts earlier portions when it needs their
//! memory. Filters on `doc_id` are rewritten to ids within the portion. A portion is not read if
//! they leave none of its documents.
//!
//! [`Merge`] says how the rows of portions become the rows of the whole corpus. Functions
//! themselves say how sums, lists and ranks are computed from the rows of
//! portions ([`combining`]). Scores and word ids need a number of each word in the whole corpus, which scans are
//! told ([`numbers`]). `repeated_phrases` needs all segments at once. It
//! is refused with an error that names the memory that it needs. `repeated_spans`, `overlap`,
//! `near_duplicates` and `near_duplicate_clusters` load the portions themselves.
//!
//! If the first rows are enough, because the limit is small and rows come in order of documents, the
//! first portion has a segment for each core and each other one twice as many as the one before. So a
//! statement with LIMIT opens as many segments as it needs.
//!
//! With several machines, portions are *runs* of segments that are read side by side ([`runs`]), if this
//! is faster than one process or one process has no room ([`division`]). Rows that are added up are packed as
//! numbers by the machines that count them, and merged by those that make texts of them ([`merged`]). Functions
//! that pack no rows, and corpora larger than memory, are combined by DataFusion's operators.
//!
//! While portions are read, memory for them is set aside in a bounded pool ([`exec`]), so that
//! operators over their rows spill in time. The time is that of the whole corpus, plus loading the
//! corpus once for each function in the plan.

mod combining;
mod division;
mod exec;
mod merged;
mod numbers;
mod runs;

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::arrow::compute::SortOptions;
use datafusion::catalog::Session;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, col, lit};
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::col as column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

use self::combining::{AllPortions, joined_lists};
pub use self::combining::{JoinedLists, PlannedRows};
pub(crate) use self::combining::{added_up, numbered};
use self::division::{Chosen, Division, Machines, division};
pub(crate) use self::division::{shape_of, work_ns};
use self::exec::{DOC_ID, DOC_IDS};
pub use self::exec::{PortionFacts, PortionsExec};
use self::merged::LEAST_PARTITIONS;
pub use self::merged::MergedRowsExec;
pub(crate) use self::numbers::WordNumbers;
pub use self::numbers::WordNumbersExec;
pub(crate) use self::runs::spreading_of;
pub use self::runs::{Run, RunsExec, Spreading};
use crate::corpora::memory::{MemoryWhenUsed, Uses};
use crate::corpora::{CorpusCache, OpenFile, Source, have_common_words};
use crate::options::TadocOptions;
use crate::planning::ScanSpec;
use crate::planning::filter::{Filters, Stage, unqualify};
use crate::planning::function::{Facts, Merge, OfPortion, Prepared, TableFunction};
use crate::planning::parcels::{MAX_PARCELS, Parcels};
use tadoc::format::SegmentMeta;
use tadoc::segment::Segment;

/// Least number of segments that are read in growing portions.
const MIN_GROWING: usize = 4;
/// Name of the column of words.
const WORD: &str = "word";
/// Name of the column that is added up.
const COUNT: &str = "count";
/// Name of the column with the number of documents that contain a word.
const COUNT_OF_DOCS: &str = "doc_count";
/// Bytes of a word of a segment besides its text, where all machines number words alike: its place among all words, that
/// among those of the machine, and a view.
const COMMON_WORD_BYTES: u64 = 40;
/// Number of ids that one evaluation of a filter covers.
const FILTER_IDS: usize = 65_536;
/// Largest number of ids of a portion that are filtered before the portion is read. A footer
/// declares at most as many.
const MAX_FILTERED_IDS: i64 = 1 << 26;

/// A corpus cut into portions.
#[derive(Debug)]
pub(crate) struct Portions {
    files: Vec<Files>,
    /// Partitions in which they are read side by side; 0 if they are read one after another.
    num_side_by_side: usize,
    /// Most machines that read them.
    num_workers: usize,
    /// True if one process is faster once it has the corpus open.
    is_faster_here: bool,
    /// Number of parcels of packed rows. `None` if rows are not packed.
    num_parcels: Option<u32>,
    /// True if the words of the whole corpus number those of packed rows.
    are_words_common: bool,
    /// Times with and without workers for EXPLAIN, where they are estimated.
    times: Option<String>,
    /// Bytes that any two consecutive portions need together (the one that is read and the one
    /// before), or that the largest portion needs alone if this is more.
    memory_bytes: u64,
}

impl Portions {
    /// Creates portions that one process reads one after another.
    fn in_turn(files: Vec<Files>, memory_bytes: u64) -> Self {
        Self {
            files,
            num_side_by_side: 0,
            num_workers: 1,
            is_faster_here: false,
            num_parcels: None,
            are_words_common: false,
            times: None,
            memory_bytes,
        }
    }
}

/// A portion: files, or runs of their segments, that fit into memory together.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) first_doc_id: u64,
    pub(crate) files: Vec<OpenFile>,
}

/// Returns the files of `source` in portions. Returns `None` if memory has room for all of them, or
/// if the texts of the source are not those of its files. User columns that edits set are not part
/// of the portions.
pub(crate) fn portions_of(
    source: &Source,
    runtime: &RuntimeEnv,
    options: &TadocOptions,
    uses: Uses,
) -> Option<Portions> {
    if source.living().is_some_and(|view| !view.has_texts_of_files()) {
        return None;
    }
    let limit_bytes = limit_bytes(runtime, options);
    let files = source.corpora();
    let needed = files.iter().map(|open| MemoryWhenUsed::for_segments(&open.footer.segments, uses));
    let needed = needed.fold(MemoryWhenUsed::default(), MemoryWhenUsed::and);
    let num_segments: usize = files.iter().map(|open| open.footer.segments.len()).sum();
    let is_larger = needed.bytes() > limit_bytes;
    if !is_larger || num_segments <= 1 {
        return None;
    }
    // The previous portion may still be in memory while one is loaded.
    let (files, largest_bytes) = cut(files, uses, |held, _| held.bytes() <= limit_bytes / 2);
    let memory_bytes = largest_bytes.max(limit_bytes);
    Some(Portions::in_turn(files, memory_bytes))
}

/// Returns the files of `source` in portions for a reader that may leave early: the first has
/// `num_first` segments or a few more, each other one twice as many as the one before. Returns `None`
/// for few segments, or if the texts of the source are not those of its files.
pub(crate) fn growing_portions(source: &Source, uses: Uses, num_first: usize) -> Option<Portions> {
    let num_segments: usize = source.corpora().iter().map(|open| open.footer.segments.len()).sum();
    let has_other_texts = source.living().is_some_and(|view| !view.has_texts_of_files());
    if has_other_texts || num_segments < MIN_GROWING.max(2 * num_first) {
        return None;
    }
    let most_segments = |portion: usize| (num_first.max(1) as u64).saturating_mul(1 << portion.min(32));
    let fits = |held: MemoryWhenUsed, portion: usize| held.num_segments() <= most_segments(portion);
    let (files, largest_bytes) = cut(source.corpora(), uses, fits);
    let memory_bytes = largest_bytes.saturating_mul(2);
    Some(Portions::in_turn(files, memory_bytes))
}

/// Returns the files of `source` in runs of segments for several machines: some for each partition
/// of each machine, of about the same size, and none larger than its share of the session's memory.
/// Returns `None` if there is only one run, if the texts of the source are not those of its files, or if one
/// process is faster: `facts` tell EXPLAIN so. `cache` has the corpora that are open here.
pub(crate) fn runs_of(
    spec: &ScanSpec,
    session: &dyn Session,
    uses: Uses,
    spreading: Spreading,
    facts: &mut Facts,
    cache: &CorpusCache,
) -> Option<Portions> {
    if spec.living().is_some_and(|view| !view.has_texts_of_files()) {
        return None;
    }
    let files = spec.corpora();
    let needed = files.iter().map(|open| MemoryWhenUsed::for_segments(&open.footer.segments, uses));
    let needed = needed.fold(MemoryWhenUsed::default(), MemoryWhenUsed::and);
    let limit_bytes = limit_bytes(session.runtime_env(), &spec.options);
    let num_partitions = session.config().target_partitions().max(1);
    let num_runs = num_partitions.saturating_mul(spreading.num_workers.max(1)) as u64;
    let most_bytes = limit_bytes / (2 * num_partitions as u64);
    let run_bytes = needed.bytes_of_part(num_runs).min(most_bytes);
    let (files, largest_bytes) = cut(files, uses, |held, _| held.bytes() <= run_bytes);
    if files.len() <= 1 {
        return None;
    }
    // An engine that does not tell its machines may run a partition on each.
    let (num_workers, partitions_of_each) = match spreading.num_workers {
        0 => (num_partitions, 1),
        num_workers => (num_workers, num_partitions),
    };
    let loaded = cache.loaded(&spec.source);
    let is_kept = |segment: &Arc<Segment>| segment.keeps_doc_words();
    let machines = Machines {
        num_workers,
        num_partitions: partitions_of_each,
        limit_bytes,
        needed_bytes: needed.bytes(),
        share_bytes: needed.bytes_of_part(num_workers as u64),
        largest_run: largest_part(&files, facts),
        is_loaded: loaded.is_some(),
        are_words_kept: loaded.is_some_and(|loaded| loaded.corpus.segments().iter().all(is_kept)),
        was_asked: cache.was_asked_elsewhere(spec.corpora()),
        common_bytes: common_bytes(spec),
    };
    let mut are_words_common = false;
    let (chosen, num_parcels, times) = match division(spec, facts, machines) {
        Division::OneProcess(reason) => {
            facts.explain.push(("workers", reason));
            return None;
        }
        Division::Parcels(chosen, are_common, times) => {
            are_words_common = are_common;
            let num_parcels = num_partitions.saturating_mul(chosen.num_workers.min(spreading.num_workers).max(1));
            (chosen, Some(u32::try_from(num_parcels).unwrap_or(u32::MAX).min(MAX_PARCELS)), Some(times))
        }
        Division::Runs(chosen, times) => (chosen, None, times),
    };
    let num_side_by_side = num_partitions.min(files.len()).max(2);
    let Chosen { num_workers, is_faster_here } = chosen;
    let memory_bytes = largest_bytes;
    Some(Portions {
        files,
        num_side_by_side,
        num_workers,
        is_faster_here,
        num_parcels,
        are_words_common,
        times,
        memory_bytes,
    })
}

/// Returns the memory of the words of the whole corpus of `spec`, if these can number the words of packed rows.
fn common_bytes(spec: &ScanSpec) -> Option<u64> {
    spec.function.words_of_rows()?;
    let files = spec.corpora();
    if !have_common_words(files) {
        return None;
    }
    let segments = files.iter().flat_map(|open| &open.footer.segments);
    Some(segments.map(|segment| segment.words_memory_bytes() + COMMON_WORD_BYTES * u64::from(segment.num_words)).sum())
}

/// Returns the part of the work of all `runs` that is in the largest one.
fn largest_part(runs: &[Files], facts: &Facts) -> f64 {
    let mut total = 0.0;
    let mut largest = 0.0;
    for run in runs {
        let work = work_ns(shape_of(&run.files), facts, true);
        total += work;
        largest = f64::max(largest, work);
    }
    if total > 0.0 { largest / total } else { 0.0 }
}

/// Returns the bytes that segments may take in memory.
fn limit_bytes(runtime: &RuntimeEnv, options: &TadocOptions) -> u64 {
    let pool = match runtime.memory_pool.memory_limit() {
        MemoryLimit::Finite(pool) => pool as u64 / 2,
        _ => u64::MAX,
    };
    pool.min(options.max_memory_bytes)
}

/// Cuts `files` into portions that `fits` accepts, by what they hold and their number, and returns the
/// bytes of the largest one. A portion has at least one run of segments that no document border
/// separates, even if the run does not fit.
fn cut(files: &[OpenFile], uses: Uses, fits: impl Fn(MemoryWhenUsed, usize) -> bool) -> (Vec<Files>, u64) {
    let mut portions: Vec<Files> = Vec::new();
    let mut largest_bytes = 0;
    let mut doc_id = 0;
    let mut held = MemoryWhenUsed::default();
    for open in files {
        let mut first_doc = 0;
        for run in runs(&open.footer.segments) {
            let needed = MemoryWhenUsed::for_segments(&open.footer.segments[run.clone()], uses);
            let part = open.portion(run, first_doc);
            let num_docs = part.footer.num_docs();
            held = held.and(needed);
            let last_idx = portions.len().saturating_sub(1);
            match portions.last_mut().filter(|_| fits(held, last_idx)) {
                Some(last) => last.push(part),
                None => {
                    portions.push(Files { first_doc_id: doc_id, files: vec![part] });
                    held = needed;
                }
            }
            largest_bytes = largest_bytes.max(held.bytes());
            (doc_id, first_doc) = (doc_id + num_docs, first_doc + num_docs);
        }
    }
    (portions, largest_bytes)
}

/// Returns the shortest runs of segments such that no document crosses from one run into the next.
fn runs(segments: &[SegmentMeta]) -> impl Iterator<Item = Range<usize>> + '_ {
    let starts = (0..segments.len()).filter(|&at| at == 0 || !segments[at].continues);
    let ends = (1..=segments.len()).filter(|&at| segments.get(at).is_none_or(|s| !s.continues));
    starts.zip(ends).map(|(start, end)| start..end)
}

impl Portions {
    /// Returns the files of each portion, in order.
    pub(crate) fn into_sources(self) -> Vec<Source> {
        self.files.into_iter().map(|files| Source::Corpora(files.files)).collect()
    }
}

impl Files {
    /// Appends `part`. It is joined to the last file if both are of the same file, where it follows
    /// directly.
    fn push(&mut self, part: OpenFile) {
        match self.files.last_mut() {
            Some(last) if last.file.version_key() == part.file.version_key() => last.join(part),
            _ => self.files.push(part),
        }
    }

    /// Returns the id of the first document of each file.
    fn first_doc_ids(&self) -> Vec<u64> {
        let mut next = self.first_doc_id;
        let mut first_doc_ids = Vec::with_capacity(self.files.len());
        for open in &self.files {
            first_doc_ids.push(next);
            next += open.footer.num_docs();
        }
        first_doc_ids
    }

    /// Returns the ids of the portion's documents.
    fn doc_ids(&self) -> Range<u64> {
        let num_docs: u64 = self.files.iter().map(|open| open.footer.num_docs()).sum();
        self.first_doc_id..self.first_doc_id + num_docs
    }
}

/// Planner of a scan that is answered portion by portion.
pub(crate) struct Planner<'a> {
    pub(crate) session: &'a dyn Session,
    /// Scan of the whole corpus.
    pub(crate) spec: ScanSpec,
    /// State that the function made for it.
    pub(crate) prepared: Prepared,
    pub(crate) facts: Facts,
    /// Filters that the scan evaluates itself, before they are compiled.
    pub(crate) filters: Vec<Expr>,
    /// Plans the scan of one portion.
    pub(crate) plan: PlanOf<'a>,
}

/// A function that plans a scan, for which its function has prepared some state.
type PlanOf<'a> = &'a (dyn Fn(ScanSpec, Prepared) -> Result<Arc<dyn ExecutionPlan>> + Sync);

impl Planner<'_> {
    /// Plans the rows of all `portions` together.
    ///
    /// # Errors
    /// The errors of planning the scans, and of planning the operators over their rows.
    pub(crate) async fn plan(&self, portions: &Portions) -> Result<Arc<dyn ExecutionPlan>> {
        match (self.facts.merge, portions.num_parcels) {
            (Merge::Combined | Merge::JoinedLists, Some(num_parcels)) => self.merged(portions, num_parcels),
            (Merge::Combined | Merge::JoinedLists, None) => self.combined(portions).await,
            (Merge::Numbered, _) => self.numbered(portions).await,
            (Merge::Behind | Merge::Never, _) => self.behind(portions),
        }
    }

    /// Plans the rows by packing those of each run, and merging them.
    fn merged(&self, portions: &Portions, num_parcels: u32) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = Parcels::schema();
        let projection = (0..schema.fields().len()).collect();
        let packed = ScanSpec {
            schema: Arc::clone(&schema),
            projection,
            filters: Filters::default(),
            limit: None,
            ..self.spec.clone()
        };
        let has_lists = self.spec.uses(DOC_IDS);
        let whole = portions.are_words_common.then(|| Source::Corpora(self.spec.corpora().to_vec()));
        let words = whole.clone().map(|whole| self.words_of_rows(whole)).transpose()?;
        let mut runs = Vec::with_capacity(portions.files.len());
        for files in &portions.files {
            let parcels = Parcels { num_parcels, first_doc_ids: files.first_doc_ids(), has_lists };
            let source = Source::Corpora(files.files.clone());
            let parcels = Some(Arc::new(parcels));
            let spec = ScanSpec { parcels, numbered_by: whole.clone(), ..packed.with_source(source) };
            let scan = (self.plan)(spec, self.prepared.clone())?;
            runs.push(Run { scan, first_doc_id: files.first_doc_id });
        }
        let runs = RunsExec::new(runs, portions.num_side_by_side, schema, &[""; 0]);
        let runs: Arc<dyn ExecutionPlan> = Arc::new(runs.for_workers(portions.num_workers, portions.is_faster_here));
        let spec = self.spec.with_source(Source::Corpora(Vec::new()));
        let rows = spec.projected_schema()?;
        let ordering = self.facts.ordering.iter().map_while(|name| column(name, &rows).ok());
        let ordering = ordering.map(|expr| PhysicalSortExpr::new(expr, SortOptions::default())).collect();
        let times = portions.times.clone().unwrap_or_default();
        let are_machines_told = spreading_of(self.session.config()).is_some_and(|spreading| spreading.num_workers > 0);
        let least_partitions = if are_machines_told { LEAST_PARTITIONS } else { 1 };
        let merged = MergedRowsExec::try_new(runs, Arc::new(spec), ordering, times, least_partitions)?;
        Ok(Arc::new(merged.with_words(words)))
    }

    /// Plans the scan of the words of packed rows, which those of the `whole` corpus number.
    fn words_of_rows(&self, whole: Source) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(function) = self.spec.function.words_of_rows() else {
            return internal_err!("{} packs rows of no words", self.spec.function.signature().name);
        };
        let schema = function.columns().schema;
        let spec = ScanSpec {
            projection: vec![schema.index_of(WORD)?],
            function,
            schema,
            filters: Filters::default(),
            limit: None,
            ..self.spec.with_source(whole)
        };
        let prepared = spec.function.prepare(&spec)?;
        (self.plan)(spec, prepared)
    }

    fn behind(&self, portions: &Portions) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = self.spec.function.columns();
        let mut inputs = Vec::with_capacity(portions.files.len());
        for files in &portions.files {
            let function = match self.spec.function.for_portion(files.doc_ids()) {
                OfPortion::Same => Arc::clone(&self.spec.function),
                OfPortion::Other(function) => function,
                OfPortion::Nothing => continue,
            };
            let shifted = self.filters.iter().map(|f| shifted(f.clone(), files.first_doc_id));
            let filters = shifted.collect::<Result<Vec<_>>>()?;
            if self.leave_nothing(&filters, files)? {
                continue;
            }
            let source = Source::Corpora(files.files.clone());
            let filters = Filters::compile(self.session, &columns, &filters)?;
            let spec = ScanSpec { function, source, filters, ..self.spec.clone() };
            inputs.push(((self.plan)(spec, self.prepared.clone())?, files.first_doc_id));
        }
        let schema = self.spec.projected_schema()?;
        let ordering = match self.facts.ordering {
            by_document @ [DOC_ID, ..] => by_document,
            _ => &[],
        };
        if portions.num_side_by_side > 0 && !inputs.is_empty() {
            let run = |(scan, first_doc_id)| Run { scan, first_doc_id };
            let runs = inputs.into_iter().map(run);
            let num_partitions = portions.num_side_by_side;
            let runs = RunsExec::new(runs.collect(), num_partitions, schema, ordering);
            // Of rows that are told numbers, the node that merges the numbers shows the times.
            let times = portions.times.clone().filter(|_| self.facts.merge == Merge::Behind);
            return Ok(Arc::new(runs.for_workers(portions.num_workers, portions.is_faster_here).with_times(times)));
        }
        Ok(Arc::new(PortionsExec::try_new(portions, inputs, schema, ordering)?))
    }

    /// Plans the rows of scans that are told the numbers of words.
    async fn numbered(&self, portions: &Portions) -> Result<Arc<dyn ExecutionPlan>> {
        let numbers = self.spec.function.word_numbers(&AllPortions { planner: self, portions })?.build()?;
        let numbers = physical_plan(self.session, &numbers).await?;
        let rows = self.behind(portions)?;
        Ok(Arc::new(WordNumbersExec::try_new(numbers, rows, self.spec.num_docs())?))
    }

    async fn combined(&self, portions: &Portions) -> Result<Arc<dyn ExecutionPlan>> {
        let mut rows = self.spec.function.combine(&AllPortions { planner: self, portions })?;
        if self.facts.merge == Merge::JoinedLists {
            rows = joined_lists(self.session, rows).await?;
        }
        let filters = self.filters.iter().map(|filter| unqualify(filter.clone()));
        let rows = match conjunction(filters.collect::<Result<Vec<_>>>()?) {
            Some(filter) => rows.filter(filter)?,
            None => rows,
        };
        let schema = self.spec.projected_schema()?;
        let columns = schema.fields().iter().map(|field| col(field.name()));
        let rows = rows.project(columns)?.build()?;
        let rows = physical_plan(self.session, &rows).await?;
        Ok(Arc::new(PortionsExec::combined(portions.files.len(), rows, schema)))
    }

    /// Returns the planner of `columns` of another `function` over the same corpus, with `filters`.
    fn for_function(
        &self,
        function: Arc<dyn TableFunction>,
        columns: &[&str],
        filters: Vec<Expr>,
    ) -> Result<Planner<'_>> {
        let function_columns = function.columns();
        let schema = &function_columns.schema;
        let projection = columns.iter().map(|name| Ok(schema.index_of(name)?)).collect::<Result<_>>()?;
        let spec = ScanSpec {
            function,
            schema: Arc::clone(schema),
            projection,
            filters: Filters::compile(self.session, &function_columns, &filters)?,
            limit: None,
            ..self.spec.clone()
        };
        let prepared = spec.function.prepare(&spec)?;
        let facts = spec.function.facts(&spec, &prepared);
        Ok(Planner { session: self.session, spec, prepared, facts, filters, plan: self.plan })
    }

    /// Returns true if those of `filters` that are on ids alone leave no document of `files`.
    fn leave_nothing(&self, filters: &[Expr], files: &Files) -> Result<bool> {
        let is_on_ids = |filter: &&Expr| filter.column_refs().iter().all(|c| c.name == DOC_ID);
        let filters: Vec<Expr> = filters.iter().filter(is_on_ids).cloned().collect();
        let Some(stage) = Stage::compile(self.session, &self.spec.schema, &filters)? else {
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
}

/// Plans `rows`, which become part of the plan of a statement. The planner of a session with workers is
/// not asked: it cuts the whole plan into stages.
async fn physical_plan(session: &dyn Session, rows: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
    match session.as_any().downcast_ref::<SessionState>() {
        Some(state) if spreading_of(session.config()).is_some() => {
            let rows = state.optimize(rows)?;
            DefaultPhysicalPlanner::default().create_physical_plan(&rows, state).await
        }
        _ => session.create_physical_plan(rows).await,
    }
}

/// Rewrites `filter` on ids of the whole corpus into one on ids of a portion, which count from the
/// portion's first document.
fn shifted(filter: Expr, first_doc_id: u64) -> Result<Expr> {
    let shift = |node| match &node {
        Expr::Column(column) if column.name == DOC_ID && first_doc_id > 0 => {
            // The traversal goes upwards: the column inside the new sum is not visited again.
            Ok(Transformed::yes(node + lit(first_doc_id as i64)))
        }
        _ => Ok(Transformed::no(node)),
    };
    filter.transform_up(shift).data()
}
