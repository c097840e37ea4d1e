//! The optimizer rule and plan node that forget what is known of rows before they go from task to task.
//!
//! ```text
//! task 0   scan, by doc_id ─ RepartitionExec ─┐      one partition: rows of all tasks, as they come
//! task 1   scan, by doc_id ─ RepartitionExec ─┴─▶ AggregateExec
//! ```
//!
//! DataFusion plans for one machine. There an exchange of rows by hash keeps their order if it merges its
//! inputs, or has only one. It also keeps that a column is constant, or equal to another. An engine that runs
//! the part below an exchange as several tasks mixes their rows, and a plan that travels does not say what was
//! known of them. An operator that counts on it then answers wrongly: a group comes out twice, a merge takes
//! rows in a wrong order, a sort is left out.
//!
//! So [`PlainExchanges`] puts a [`PlainRowsExec`] below each exchange by hash. It promises nothing of its
//! rows, so the exchange promises nothing either. Operators above that need an order get a sort. An
//! aggregation only gains by an order, so it groups by a hash table instead, unless its functions need the
//! order. Where partitions of several tasks are put side by side (`SortPreservingMergeExec`,
//! `CoalescePartitionsExec`), each keeps its order, and the node forgets the rest.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, OrderingRequirements};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};

use datafusion_distributed::BroadcastExec;
use datafusion_tadoc::travel::{WordNumbersExec, one_input_methods, same_rows_methods};

type Plan = Arc<dyn ExecutionPlan>;
type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Optimizer rule that makes exchanges between tasks promise nothing. See the module's description.
#[derive(Debug, Default)]
pub(super) struct PlainExchanges;

impl PlainExchanges {
    /// Adds the rule to `rules`, directly after the one that makes exchanges.
    pub(super) fn add_to(rules: &mut Vec<Rule>) {
        let name = EnsureRequirements::new().name().to_owned();
        let place = rules.iter().rposition(|rule| rule.name() == name);
        rules.insert(place.map_or(rules.len(), |at| at + 1), Arc::new(Self));
    }
}

impl PhysicalOptimizerRule for PlainExchanges {
    fn optimize(&self, plan: Plan, _config: &ConfigOptions) -> Result<Plan> {
        plain(plan)
    }

    fn name(&self) -> &str {
        "tadoc_plain_exchanges"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Optimizer rule that hands the numbers of words to all tasks that are told them.
#[derive(Debug, Default)]
pub(super) struct NumbersForAll;

impl PhysicalOptimizerRule for NumbersForAll {
    fn optimize(&self, plan: Plan, _config: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|node| match node.downcast_ref::<WordNumbersExec>() {
            Some(told) => numbers_for_all(told, &node).map(Transformed::yes),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "tadoc_numbers_for_all"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns `node`, which is `told`, above an exchange from which each task gets all numbers.
fn numbers_for_all(told: &WordNumbersExec, node: &Plan) -> Result<Plan> {
    let numbers = told.numbers();
    let numbers = numbers.downcast_ref::<CoalescePartitionsExec>().map_or(numbers, CoalescePartitionsExec::input);
    // The engine sets the number of tasks.
    let numbers: Plan = Arc::new(BroadcastExec::new(Arc::clone(numbers), 1));
    let mut inputs: Vec<Plan> = node.children().into_iter().cloned().collect();
    inputs[0] = Arc::new(CoalescePartitionsExec::new(numbers));
    with_inputs(Arc::clone(node), inputs)
}

/// Returns `plan` with exchanges that promise nothing, and with sorts where it still needs an order.
fn plain(plan: Plan) -> Result<Plan> {
    let mut inputs = Vec::new();
    let mut is_changed = false;
    for input in plan.children() {
        let new = with_plain_rows(&plan, plain(Arc::clone(input))?);
        is_changed |= !Arc::ptr_eq(&new, input);
        inputs.push(new);
    }
    if !is_changed {
        return Ok(plan);
    }
    // An operator may need more of inputs that promise less.
    let plan = with_inputs(plan, inputs)?;
    let required = plan.required_input_ordering();
    let mut inputs = Vec::new();
    let mut is_changed = false;
    for (input, required) in plan.children().into_iter().zip(required) {
        let new = in_order(&plan, Arc::clone(input), required)?;
        is_changed |= !Arc::ptr_eq(&new, input);
        inputs.push(new);
    }
    if is_changed { with_inputs(plan, inputs) } else { Ok(plan) }
}

fn with_inputs(plan: Plan, inputs: Vec<Plan>) -> Result<Plan> {
    plan.replace_children(inputs, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// Returns `input` of `plan`, without promises if `plan` hands its rows from task to task.
fn with_plain_rows(plan: &Plan, input: Plan) -> Plan {
    let ordering = match kept_ordering(plan, &input) {
        Some(ordering) if is_more_known(&input, ordering.as_ref()) => ordering,
        _ => return input,
    };
    Arc::new(PlainRowsExec::new(input, ordering))
}

/// Returns the order of each partition of `input` that is kept between the tasks of `input` and `plan`.
/// Returns `None` if both are parts of one task.
fn kept_ordering(plan: &Plan, input: &Plan) -> Option<Option<LexOrdering>> {
    if let Some(exchange) = plan.downcast_ref::<RepartitionExec>() {
        let is_by_hash = matches!(exchange.partitioning(), Partitioning::Hash(..));
        return is_by_hash.then_some(None);
    }
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        return Some(Some(merge.expr().clone()));
    }
    plan.is::<CoalescePartitionsExec>().then(|| input.output_ordering().cloned())
}

/// Returns true if more is known of the rows of `input` than their `ordering`.
fn is_more_known(input: &Plan, ordering: Option<&LexOrdering>) -> bool {
    let known = input.equivalence_properties();
    let is_ordered = ordering.is_none() && input.output_ordering().is_some();
    is_ordered || !known.constants().is_empty() || !known.eq_group().is_empty()
}

/// Returns `input` in the order that `plan` needs.
fn in_order(plan: &Plan, input: Plan, required: Option<OrderingRequirements>) -> Result<Plan> {
    let is_needed = match &required {
        None => false,
        Some(OrderingRequirements::Hard(_)) => true,
        Some(OrderingRequirements::Soft(_)) => has_ordered_functions(plan),
    };
    let Some(required) = required.filter(|_| is_needed) else { return Ok(input) };
    let required = required.into_single();
    if input.equivalence_properties().ordering_satisfy_requirement(required.clone())? {
        return Ok(input);
    }
    let is_divided = input.output_partitioning().partition_count() > 1;
    let fetch = plan.downcast_ref::<SortPreservingMergeExec>().and_then(ExecutionPlan::fetch);
    let sort = SortExec::new(required.into(), input).with_preserve_partitioning(is_divided);
    Ok(Arc::new(sort.with_fetch(fetch)))
}

/// Returns true if `plan` aggregates with functions that take rows in an order.
fn has_ordered_functions(plan: &Plan) -> bool {
    let aggregates = plan.downcast_ref::<AggregateExec>().map(AggregateExec::aggr_expr);
    aggregates.is_none_or(|all| all.iter().any(|function| !function.order_bys().is_empty()))
}

/// Plan node that returns the rows of its input, of which it promises an order at most. See the module's
/// description.
#[derive(Debug)]
pub(super) struct PlainRowsExec {
    input: Plan,
    ordering: Option<LexOrdering>,
    properties: Arc<PlanProperties>,
}

impl PlainRowsExec {
    /// Builds a node over `input`, whose partitions have this order.
    pub(super) fn new(input: Plan, ordering: Option<LexOrdering>) -> Self {
        let mut known = EquivalenceProperties::new(input.schema());
        if let Some(ordering) = &ordering {
            known.add_ordering(ordering.clone());
        }
        let properties = input.properties().as_ref().clone().with_eq_properties(known);
        Self { input, ordering, properties: Arc::new(properties) }
    }
}

impl DisplayAs for PlainRowsExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            _ => write!(f, "TadocPlainRowsExec"),
        }
    }
}

impl ExecutionPlan for PlainRowsExec {
    one_input_methods!("TadocPlainRowsExec", |node, input| Ok(Self::new(input, node.ordering.clone())));

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.ordering.is_some()]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.ordering.clone().map(OrderingRequirements::from)]
    }

    same_rows_methods!();

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
