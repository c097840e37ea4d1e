//! The codec of all plan nodes of this crate, and the gaps of the messages of plans in `datafusion-proto` 55.2:
//! windows, and series without columns.
//!
//! The message of a window has the name and the arguments of a window function. It leaves out that the
//! function ignores nulls, and that it runs over rows in the reverse order. The planner reverses a function
//! where its rows are ordered the other way round already. The machine that gets the plan would compute other
//! values.
//!
//! ```text
//! lag(x) IGNORE NULLS            tadoc_ignoring_nulls_lag(x)
//! lag(x), rows the other way     tadoc_reversed_lag(x)
//! ```
//!
//! So [`NameWindows`] gives the planner functions whose names say both, and sessions that run parts of plans
//! know functions of these names ([`know_windows`]). The message of an aggregate over a window leaves its
//! `FILTER` out. Statements with one stay in one process ([`filters_windows`]).
//!
//! `SELECT count(*) FROM word_count('c'), generate_series(1, 3)` reads no column of the series, so its plan
//! node has an empty projection. Its message has the schema behind the projection and not the projection
//! itself, and the other end fails with "number of columns(1) must match number of fields(0)". The rule
//! [`WholeSeries`] puts the projection into a node of its own:
//!
//! ```text
//! LazyMemoryExec []   ─▶   ProjectionExec []
//!                            LazyMemoryExec [value]
//! ```

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::SchemaExt;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SessionStateBuilder, TaskContext};
use datafusion::logical_expr::expr::{NullTreatment, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    Expr, LimitEffect, LogicalPlan, PartitionEvaluator, ReversedUDWF, Signature, WindowFunctionDefinition, WindowUDF,
    WindowUDFImpl,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::memory::LazyMemoryExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use url::Url;

use crate::exchanges::PlainRowsExec;
use crate::files::check_no_user;
use crate::message::{
    self, MergedMessage, NodeMessage, PortionsMessage, RunMessage, RunsMessage, ScanMessage, SegmentsMessage,
};
use crate::scans::{Decoder, Encoder, columns_of, options, options_of, ordering_of, sorted_by};
use crate::{TravelError, refused};
use datafusion_tadoc::TadocExec;
use datafusion_tadoc::travel::{
    BatchRowsExec, JoinedLists, MergedRowsExec, NullableRowsExec, PortionFacts, PortionsExec, Run, RunsExec,
    SegmentTarget, Source, WordNumbersExec, WriteSegmentsExec,
};

/// Most partitions of runs of segments.
const MAX_PARTITIONS: u32 = 1 << 16;

/// Codec of the plan nodes of this crate: scans of corpora and of living ones, their portions and runs,
/// and scans of GSST columns, and the node that writes segments of living corpora. Other nodes that write are
/// refused. Scalar functions travel by name.
///
/// A session that decodes needs [`with_tadoc`](datafusion_tadoc::TadocSessionStateBuilderExt::with_tadoc).
#[derive(Debug, Clone, Copy, Default)]
pub struct TadocCodec;

impl PhysicalExtensionCodec for TadocCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let decoder = Decoder { codec: self, converter, context };
        let node = message::open(buf)?;
        let num_inputs = inputs.len();
        match (node, inputs) {
            (NodeMessage { scan: Some(scan), .. }, []) => Ok(Arc::new(decoder.scan(*scan, &Arc::default())?)),
            (NodeMessage { runs: Some(runs), .. }, []) => Ok(Arc::new(decoder.runs(runs)?)),
            (NodeMessage { columns: Some(columns), .. }, []) => decoder.columns(&columns),
            (NodeMessage { portions: Some(portions), .. }, inputs) => Ok(Arc::new(decoder.portions(portions, inputs)?)),
            (NodeMessage { merged: Some(merged), .. }, [input]) => Ok(Arc::new(decoder.merged(*merged, input)?)),
            (NodeMessage { numbered_docs: Some(num_docs), .. }, [numbers, rows]) => {
                match WordNumbersExec::try_new(Arc::clone(numbers), Arc::clone(rows), num_docs) {
                    Ok(node) => Ok(Arc::new(node)),
                    Err(error) => refused(error.strip_backtrace()),
                }
            }
            (NodeMessage { joins_lists: true, .. }, [input]) => match JoinedLists::try_new(Arc::clone(input)) {
                Ok(node) => Ok(Arc::new(node)),
                Err(error) => refused(error.strip_backtrace()),
            },
            (NodeMessage { plain_rows: true, .. }, [input]) => {
                Ok(Arc::new(PlainRowsExec::new(Arc::clone(input), None)))
            }
            (NodeMessage { nullable_rows: true, .. }, [input]) => {
                Ok(Arc::new(NullableRowsExec::new(Arc::clone(input))))
            }
            (NodeMessage { segments: Some(segments), .. }, [input]) => {
                Ok(Arc::new(decoder.segments(&segments, input)?))
            }
            (NodeMessage { row_bytes: Some(row_bytes), .. }, [input]) => {
                Ok(Arc::new(BatchRowsExec { input: Arc::clone(input), row_bytes }))
            }
            _ => refused(format!("expected a node, got none for {num_inputs} inputs")),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let encoder = Encoder { codec: self, converter };
        let message = if let Some(scan) = node.downcast_ref::<TadocExec>() {
            NodeMessage { scan: Some(Box::new(encoder.scan(scan)?)), ..NodeMessage::default() }
        } else if let Some(runs) = node.downcast_ref::<RunsExec>() {
            NodeMessage { runs: Some(encoder.runs(runs)?), ..NodeMessage::default() }
        } else if let Some(portions) = node.downcast_ref::<PortionsExec>() {
            NodeMessage { portions: Some(encoder.portions(portions)?), ..NodeMessage::default() }
        } else if let Some(merged) = node.downcast_ref::<MergedRowsExec>() {
            NodeMessage { merged: Some(Box::new(encoder.merged(merged)?)), ..NodeMessage::default() }
        } else if let Some(numbers) = node.downcast_ref::<WordNumbersExec>() {
            NodeMessage { numbered_docs: Some(numbers.num_docs()), ..NodeMessage::default() }
        } else if node.is::<JoinedLists>() {
            NodeMessage { joins_lists: true, ..NodeMessage::default() }
        } else if node.is::<PlainRowsExec>() {
            NodeMessage { plain_rows: true, ..NodeMessage::default() }
        } else if node.is::<NullableRowsExec>() {
            NodeMessage { nullable_rows: true, ..NodeMessage::default() }
        } else if let Some(node) = node.downcast_ref::<BatchRowsExec>() {
            NodeMessage { row_bytes: Some(node.row_bytes), ..NodeMessage::default() }
        } else if let Some(write) = node.downcast_ref::<WriteSegmentsExec>() {
            let segments = encoder.segments(write.target())?;
            NodeMessage { segments: Some(segments), ..NodeMessage::default() }
        } else if let Some((config, source)) = columns_of(&node) {
            let columns = encoder.columns(config, source)?;
            NodeMessage { columns: Some(columns), ..NodeMessage::default() }
        } else {
            let what = format!("{} is no node of datafusion-tadoc that reads", node.name());
            return Err(TravelError::Stays(what).into());
        };
        message::seal(&message, buf);
        Ok(())
    }
}

impl Encoder<'_> {
    fn segments(&self, target: &SegmentTarget) -> Result<SegmentsMessage> {
        if let Ok(url) = Url::parse(&target.location) {
            check_no_user(&url, &target.location)?;
        }
        Ok(SegmentsMessage {
            location: target.location.clone(),
            schema: self.schema(&target.schema)?,
            options: options(&target.options),
        })
    }

    fn runs(&self, runs: &RunsExec) -> Result<RunsMessage> {
        let message_for = |run: &Run| {
            let Some(scan) = run.scan.downcast_ref::<TadocExec>() else {
                let what = format!("a run of {}", run.scan.name());
                return Err(TravelError::Stays(what).into());
            };
            Ok(RunMessage { scan: Some(self.scan(scan)?), first_doc_id: run.first_doc_id })
        };
        Ok(RunsMessage {
            runs: runs.runs.iter().map(message_for).collect::<Result<_>>()?,
            num_partitions: u32::try_from(runs.num_partitions()).unwrap_or(u32::MAX),
            schema: self.schema(&runs.schema())?,
            ordering: runs.ordering.clone(),
        })
    }

    fn merged(&self, merged: &MergedRowsExec) -> Result<MergedMessage> {
        let scan = ScanMessage { ordering: ordering_of(merged), ..self.spec(merged.spec())? };
        let least_partitions = u32::try_from(merged.least_partitions()).unwrap_or(u32::MAX);
        let words = merged.words().map(|words| match words.downcast_ref::<TadocExec>() {
            Some(words) => self.scan(words),
            None => Err(TravelError::Stays(format!("words of {}", words.name())).into()),
        });
        let times = merged.times().to_owned();
        Ok(MergedMessage { scan: Some(scan), times, least_partitions, words: words.transpose()? })
    }

    fn portions(&self, portions: &PortionsExec) -> Result<PortionsMessage> {
        let facts = portions.facts();
        Ok(PortionsMessage {
            num_portions: facts.num_portions as u64,
            is_combined: facts.is_combined,
            first_doc_ids: facts.first_doc_ids.clone(),
            memory_bytes: facts.memory_bytes as u64,
            schema: self.schema(&portions.schema())?,
            ordering: ordering_of(portions),
        })
    }
}

impl Decoder<'_> {
    fn segments(&self, message: &SegmentsMessage, input: &Arc<dyn ExecutionPlan>) -> Result<WriteSegmentsExec> {
        let schema = self.schema(&message.schema)?;
        if let Err(error) = schema.logically_equivalent_names_and_types(&input.schema()) {
            return refused(format!("columns of segments: {}", error.strip_backtrace()));
        }
        let options = options_of(&message.options)?;
        let target = SegmentTarget { location: message.location.clone(), schema, options };
        Ok(WriteSegmentsExec::new(Arc::clone(input), target))
    }

    fn runs(&self, message: RunsMessage) -> Result<RunsExec> {
        let schema = self.schema(&message.schema)?;
        if !(1..=MAX_PARTITIONS).contains(&message.num_partitions) {
            let got = message.num_partitions;
            return refused(format!("expected 1 to {MAX_PARTITIONS} partitions, got {got}"));
        }
        let found = Arc::default();
        let run_from = |run: RunMessage| {
            let Some(scan) = run.scan else { return refused("a run without a scan") };
            let scan = self.scan(scan, &found)?;
            let got = scan.schema();
            let expected = schema.fields().len();
            if got.fields().len() != expected {
                return refused(format!("expected {expected} columns of a run, got {got}"));
            }
            Ok(Run { scan: Arc::new(scan), first_doc_id: run.first_doc_id })
        };
        let runs = message.runs.into_iter().map(run_from).collect::<Result<_>>()?;
        let num_partitions = message.num_partitions as usize;
        Ok(RunsExec::new(runs, num_partitions, Arc::clone(&schema), &message.ordering))
    }

    fn merged(&self, message: MergedMessage, input: &Arc<dyn ExecutionPlan>) -> Result<MergedRowsExec> {
        let Some(scan) = message.scan else { return refused("merged rows without a scan") };
        let ordering = scan.ordering.clone();
        let words = message.words.map(|words| self.scan(words, &Arc::default())).transpose()?;
        let words = words.map(|words| Arc::new(words) as Arc<dyn ExecutionPlan>);
        let spec = self.spec(scan)?.with_source(Source::Corpora(Vec::new()));
        let ordering = sorted_by(&ordering, &*spec.projected_schema()?)?;
        if !(1..=MAX_PARTITIONS).contains(&message.least_partitions) {
            let got = message.least_partitions;
            return refused(format!("expected 1 to {MAX_PARTITIONS} partitions of merged rows, got {got}"));
        }
        let least_partitions = message.least_partitions as usize;
        match MergedRowsExec::try_new(Arc::clone(input), Arc::new(spec), ordering, message.times, least_partitions) {
            Ok(node) => Ok(node.with_words(words)),
            Err(error) => refused(error.strip_backtrace()),
        }
    }

    fn portions(&self, message: PortionsMessage, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<PortionsExec> {
        let schema = self.schema(&message.schema)?;
        let ordering = sorted_by(&message.ordering, &schema)?;
        let facts = PortionFacts {
            num_portions: message.num_portions as usize,
            is_combined: message.is_combined,
            first_doc_ids: message.first_doc_ids,
            memory_bytes: message.memory_bytes as usize,
        };
        PortionsExec::from_facts(facts, inputs.to_vec(), schema, ordering)
    }
}

/// Returns true if `plan`, or a query in it, has an aggregate with a `FILTER` over a window. Such a plan does
/// not travel: the message of a window leaves the filter out.
///
/// # Errors
/// The errors of DataFusion's walk over a plan.
pub fn filters_windows(plan: &LogicalPlan) -> Result<bool> {
    let mut is_found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Window(window) = node {
            is_found |= window.window_expr.iter().any(has_filter);
        }
        Ok(if is_found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_found)
}

fn has_filter(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => has_filter(&alias.expr),
        Expr::WindowFunction(function) => function.params.filter.is_some(),
        _ => false,
    }
}

/// Adds [`NameWindows`] to the optimizer of a session that plans for other machines.
pub(super) fn name_windows(builder: SessionStateBuilder) -> SessionStateBuilder {
    builder.with_optimizer_rule(Arc::new(NameWindows))
}

/// Makes a session know the functions with the names of all its window functions.
pub(super) fn know_windows(builder: &mut SessionStateBuilder) {
    let functions = builder.window_functions().get_or_insert_default();
    let mut named = Vec::new();
    for function in functions.iter() {
        for (is_reversed, ignores_nulls) in [(true, false), (false, true), (true, true)] {
            named.push(NamedWindow::named(Arc::clone(function), is_reversed, ignores_nulls));
        }
    }
    functions.extend(named);
}

/// Optimizer rule that gives window functions names that say how they run. See the module's description.
#[derive(Debug)]
struct NameWindows;

impl OptimizerRule for NameWindows {
    fn name(&self) -> &str {
        "tadoc_name_windows"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !matches!(plan, LogicalPlan::Window(_)) {
            return Ok(Transformed::no(plan));
        }
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let named = expr.transform_up(|expr| Ok(with_name(expr)))?;
            Ok(named.update_data(|expr| name.restore(expr)))
        })
    }
}

/// Returns `expr` with a function that says how it runs, if the message of a window would leave it out.
fn with_name(expr: Expr) -> Transformed<Expr> {
    let Expr::WindowFunction(mut window) = expr else { return Transformed::no(expr) };
    let ignores_nulls = window.params.null_treatment == Some(NullTreatment::IgnoreNulls);
    match named_function(&window, ignores_nulls) {
        Some(function) => {
            window.fun = WindowFunctionDefinition::WindowUDF(function);
            Transformed::yes(Expr::WindowFunction(window))
        }
        None => Transformed::no(Expr::WindowFunction(window)),
    }
}

/// Returns the function to take in place of that of `window`; `None` if it travels as it is.
fn named_function(window: &WindowFunction, ignores_nulls: bool) -> Option<Arc<WindowUDF>> {
    let WindowFunctionDefinition::WindowUDF(function) = &window.fun else { return None };
    let is_reversible = matches!(function.reverse_expr(), ReversedUDWF::Reversed(_));
    let is_needed = (is_reversible || ignores_nulls) && !function.inner().is::<NamedWindow>();
    is_needed.then(|| NamedWindow::named(Arc::clone(function), false, ignores_nulls))
}

/// A window function whose name says how it runs.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NamedWindow {
    function: Arc<WindowUDF>,
    is_reversed: bool,
    ignores_nulls: bool,
    name: String,
}

impl NamedWindow {
    fn named(function: Arc<WindowUDF>, is_reversed: bool, ignores_nulls: bool) -> Arc<WindowUDF> {
        let before = match (is_reversed, ignores_nulls) {
            (false, false) => "",
            (true, false) => "tadoc_reversed_",
            (false, true) => "tadoc_ignoring_nulls_",
            (true, true) => "tadoc_reversed_ignoring_nulls_",
        };
        let name = format!("{before}{}", function.name());
        Arc::new(WindowUDF::from(Self { function, is_reversed, ignores_nulls, name }))
    }
}

impl WindowUDFImpl for NamedWindow {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn expressions(&self, args: ExpressionArgs<'_>) -> Vec<Arc<dyn PhysicalExpr>> {
        self.function.expressions(args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs<'_>) -> Result<Box<dyn PartitionEvaluator>> {
        self.function.partition_evaluator_factory(PartitionEvaluatorArgs::new(
            args.input_exprs(),
            args.input_fields(),
            self.is_reversed,
            self.ignores_nulls,
        ))
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        self.function.field(args)
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.function.sort_options()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        match self.function.reverse_expr() {
            ReversedUDWF::Reversed(function) => {
                ReversedUDWF::Reversed(Self::named(function, !self.is_reversed, self.ignores_nulls))
            }
            other => other,
        }
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.function.inner().limit_effect(args)
    }
}

/// The optimizer rule that gives a series its column; see the head of the file.
#[derive(Debug)]
pub(super) struct WholeSeries;

impl PhysicalOptimizerRule for WholeSeries {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match node.downcast_ref().map(whole).transpose()?.flatten() {
            Some(whole) => Ok(Transformed::yes(whole)),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "tadoc_whole_series"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns a projection to no column above the whole of `series`, or `None` if the series has a column or no
/// rows.
fn whole(series: &LazyMemoryExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let [generator] = series.generators().as_slice() else { return Ok(None) };
    if !series.schema().fields().is_empty() {
        return Ok(None);
    }
    // A generator tells its schema by its first rows. Those of a copy are not missed.
    let copy = generator.read().reset_state();
    let Some(rows) = copy.write().generate_next_batch()? else { return Ok(None) };
    let whole = LazyMemoryExec::try_new(rows.schema(), vec![generator.read().reset_state()])?;
    let projection = ProjectionExec::try_new(Vec::<ProjectionExpr>::new(), Arc::new(whole))?;
    Ok(Some(Arc::new(projection)))
}
