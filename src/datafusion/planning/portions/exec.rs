//! The plan node that reads its inputs one after another, so that one portion is in memory at a time, and the memory
//! pool that sets memory aside for them.
//!
//! ```text
//! session's pool   │ portions: used │ set aside │ sums, sorts, joins of their rows │ free │
//! ```
//!
//! Operators over the rows of portions grow as long as their pool has room, and spill if it has
//! none. If portions had no memory set aside, the next portion would find no room, and portions
//! cannot spill. So this part of the pool is taken before the first portion is loaded, as far as
//! there is room. It is given back after the last one.
//!
//! The part appears as a pool of that size. The cache keeps loaded files up to half of it, and
//! tasks see memory that nobody else can take. Memory that portions use beyond it comes from the
//! session's pool, as does memory of files that stay loaded afterwards.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, ListArray, RecordBatch, RecordBatchOptions, StringViewArray,
};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::compute::kernels::numeric::add;
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, Partitioning, PhysicalExpr,
    PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};

use super::Portions;
use crate::planning::long_rows::context_with;

/// Name of the column of document ids, which count from the first document of a portion.
pub(super) const DOC_ID: &str = "doc_id";
/// Name of the column with lists of document ids.
pub(super) const DOC_IDS: &str = "doc_ids";
/// Bytes that the buffers of a column may have before it is checked how many of them the column
/// uses.
const UNUSED_BYTES: usize = 64 << 10;

/// Plan node that returns the rows of all inputs, in order. See the module's description.
#[derive(Debug)]
pub struct PortionsExec {
    facts: PortionFacts,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
}

/// Facts about a [`PortionsExec`] besides its inputs.
#[derive(Debug, Clone)]
pub struct PortionFacts {
    /// Number of portions of the corpus, including those that are not read.
    pub num_portions: usize,
    /// True if the node has one input, with the combined rows of all portions.
    pub is_combined: bool,
    /// Number that is added to the document ids of each input.
    pub first_doc_ids: Vec<u64>,
    /// Bytes of memory that are set aside for portions.
    pub memory_bytes: usize,
}

impl PortionsExec {
    /// Builds a node that returns the rows of `inputs` in order. Each input comes with the id of
    /// its first document. Inputs have the columns of `schema`, with less precise metadata perhaps.
    /// All rows together are ordered by the columns `ordering`, up to the first one that `schema`
    /// lacks. No two of `portions` need more memory than is set aside for them.
    ///
    /// # Errors
    /// None is known.
    pub(super) fn try_new(
        portions: &Portions,
        inputs: Vec<(Arc<dyn ExecutionPlan>, u64)>,
        schema: SchemaRef,
        ordering: &[&str],
    ) -> Result<Self> {
        let ordering = ordering.iter().map_while(|name| col(name, &schema).ok());
        let ordering = ordering.map(|expr| PhysicalSortExpr::new(expr, SortOptions::default())).collect();
        let (inputs, first_doc_ids) = inputs.into_iter().unzip();
        let facts = PortionFacts {
            num_portions: portions.files.len(),
            is_combined: false,
            first_doc_ids,
            memory_bytes: usize::try_from(portions.memory_bytes).unwrap_or(usize::MAX),
        };
        Self::from_facts(facts, inputs, schema, ordering)
    }

    /// Builds a node that returns the rows of `input`, which has combined all portions, in its
    /// order. The columns get the types and fields of `schema`.
    pub(super) fn combined(num_portions: usize, input: Arc<dyn ExecutionPlan>, schema: SchemaRef) -> Self {
        // With several partitions, each has its own order.
        let is_one = input.output_partitioning().partition_count() == 1;
        let ordering = input.output_ordering().filter(|_| is_one).cloned();
        let inputs = vec![input];
        let properties = properties(schema, ordering);
        let facts = PortionFacts { num_portions, is_combined: true, first_doc_ids: vec![0], memory_bytes: 0 };
        Self { facts, inputs, properties }
    }

    /// Returns the facts about the node.
    pub fn facts(&self) -> &PortionFacts {
        &self.facts
    }

    /// Builds the node of `facts` above `inputs`, with rows of `schema` that are ordered by the columns `ordering`.
    ///
    /// # Errors
    /// An error if there is another number of inputs.
    pub fn from_facts(
        facts: PortionFacts,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
        schema: SchemaRef,
        ordering: Vec<PhysicalSortExpr>,
    ) -> Result<Self> {
        if inputs.len() != facts.first_doc_ids.len() || facts.is_combined && inputs.len() != 1 {
            return internal_err!("TadocPortionsExec: {} inputs", inputs.len());
        }
        let properties = properties(schema, LexOrdering::new(ordering));
        Ok(Self { facts, inputs, properties })
    }
}

fn properties(schema: SchemaRef, ordering: Option<LexOrdering>) -> Arc<PlanProperties> {
    let mut equivalence = EquivalenceProperties::new(schema);
    if let Some(ordering) = ordering {
        equivalence.add_ordering(ordering);
    }
    Arc::new(PlanProperties::new(
        equivalence,
        Partitioning::UnknownPartitioning(1),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

impl DisplayAs for PortionsExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let num_portions = self.facts.num_portions;
        let how =
            if self.facts.is_combined { "combined=true".to_owned() } else { format!("read={}", self.inputs.len()) };
        match format {
            DisplayFormatType::TreeRender => write!(f, "portions={num_portions}\n{how}"),
            _ => write!(f, "TadocPortionsExec: portions={num_portions}, {how}"),
        }
    }
}

impl ExecutionPlan for PortionsExec {
    fn name(&self) -> &str {
        "TadocPortionsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition; self.inputs.len()]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let whole_order = || self.properties.output_ordering().map(|all| all.clone().into());
        self.inputs.iter().map(|_| self.facts.is_combined.then(whole_order).flatten()).collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        // Several inputs that are ordered one by one are not ordered together: a sort must not be
        // pushed below.
        vec![self.inputs.len() == 1; self.inputs.len()]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.len() != self.inputs.len() {
            return internal_err!("TadocPortionsExec has {} inputs, got {}", self.inputs.len(), children.len());
        }
        let facts = self.facts.clone();
        let properties = Arc::clone(&self.properties);
        Ok(Arc::new(Self { facts, inputs: children, properties }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition > 0 {
            return internal_err!("TadocPortionsExec has no partition {partition}");
        }
        let schema = self.schema();
        let inputs = self.inputs.clone().into_iter().zip(self.facts.first_doc_ids.clone());
        let labels = Arc::clone(&schema);
        let set_aside = || PortionsContext::new(&context, self.facts.memory_bytes);
        let portions = (!self.facts.is_combined).then(set_aside);
        let streams = inputs.map(move |(input, first_doc_id)| {
            // The context is made only now: the input before has ended and returned its memory.
            let context = portions.as_ref().map_or_else(|| Arc::clone(&context), PortionsContext::next);
            let rows = input.execute(0, context)?;
            let labels = Arc::clone(&labels);
            Ok::<_, DataFusionError>(rows.map(move |batch| labelled(batch?, &labels, first_doc_id)))
        });
        let rows = stream::iter(streams).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// Returns `batch` with the ids of the whole corpus and the fields of `schema`. The types of sums
/// and of joined lists would allow NULL.
pub(super) fn labelled(batch: RecordBatch, schema: &SchemaRef, first_doc_id: u64) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let labels = schema.fields().iter().zip(batch.columns());
    let columns = labels.map(|(field, column)| match (field.name().as_str(), first_doc_id) {
        (DOC_ID, 1..) => Ok(add(column, &Int64Array::new_scalar(first_doc_id as i64))?),
        // User columns have no lists, and may have this name.
        (DOC_IDS, 1..) if column.as_list_opt::<i32>().is_some() => shifted_lists(column.as_list(), first_doc_id),
        _ => Ok(without_unused(cast(column, field.data_type())?)),
    });
    let columns = columns.collect::<Result<_>>()?;
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// Returns `column` without buffer bytes that none of its texts uses. Words are views of
/// dictionaries. Operators that gather rows would count the whole dictionary for each batch, and
/// would keep it in memory after its portion is gone.
fn without_unused(column: ArrayRef) -> ArrayRef {
    match column.as_string_view_opt() {
        Some(texts) if is_much_unused(texts) => Arc::new(texts.gc()),
        _ => column,
    }
}

fn is_much_unused(texts: &StringViewArray) -> bool {
    let len_bytes: usize = texts.data_buffers().iter().map(Buffer::len).sum();
    len_bytes > UNUSED_BYTES && len_bytes > 2 * texts.total_buffer_bytes_used()
}

/// Adds `first_doc_id` to each number of `lists`.
fn shifted_lists(lists: &ListArray, first_doc_id: u64) -> Result<ArrayRef> {
    let values = add(lists.values(), &Int64Array::new_scalar(first_doc_id as i64))?;
    let DataType::List(item) = lists.data_type() else {
        return internal_err!("lists of {}", lists.data_type());
    };
    let offsets = lists.offsets().clone();
    let nulls = lists.nulls().cloned();
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, nulls)?))
}

/// Memory pool inside the session's pool. See the module's description.
#[derive(Debug)]
struct PortionsPool {
    outer: Arc<dyn MemoryPool>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Reservation in the outer pool. It has the bytes used, or more while memory is set aside.
    held: MemoryReservation,
    used_bytes: usize,
    set_aside_bytes: usize,
}

impl State {
    /// Shrinks the reservation to the bytes that are used or set aside, whichever is more.
    fn give_back(&mut self) {
        let needed = self.used_bytes.max(self.set_aside_bytes);
        self.held.shrink(self.held.size().saturating_sub(needed));
    }
}

impl PortionsPool {
    fn new(outer: Arc<dyn MemoryPool>) -> Self {
        let held = MemoryConsumer::new("TadocPortions").register(&outer);
        let state = Mutex::new(State { held, used_bytes: 0, set_aside_bytes: 0 });
        Self { outer, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets `len_bytes` aside for the next portion, and half of the memory that is then left for
    /// tasks over it, at most `len_bytes`. Sets all free memory aside if there is less.
    fn set_aside(&self, len_bytes: usize) {
        // An unbounded pool needs nothing set aside.
        let MemoryLimit::Finite(limit) = self.outer.memory_limit() else { return };
        let mut state = self.state();
        let held_bytes = state.held.size();
        let left_bytes = held_bytes.saturating_add(limit.saturating_sub(self.outer.reserved()));
        let for_tasks = left_bytes.saturating_sub(len_bytes) / 2;
        let wanted = len_bytes.saturating_add(for_tasks.min(len_bytes)).min(left_bytes);
        // Another consumer may have taken the memory meanwhile.
        if state.held.try_grow(wanted.saturating_sub(held_bytes)).is_ok() {
            state.set_aside_bytes = wanted;
            state.give_back();
        }
    }

    fn give_back(&self) {
        let mut state = self.state();
        state.set_aside_bytes = 0;
        state.give_back();
    }
}

impl fmt::Display for PortionsPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let used = state.used_bytes;
        let held = state.held.size();
        write!(f, "{}(used: {used}, held: {held}) of {}", self.name(), self.outer)
    }
}

impl MemoryPool for PortionsPool {
    fn name(&self) -> &str {
        "portions"
    }

    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        let mut state = self.state();
        state.used_bytes += additional;
        state.held.grow(state.used_bytes.saturating_sub(state.held.size()));
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        let mut state = self.state();
        state.used_bytes = state.used_bytes.saturating_sub(shrink);
        state.give_back();
    }

    fn try_grow(&self, _reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut state = self.state();
        let used_bytes = state.used_bytes.saturating_add(additional);
        state.held.try_grow(used_bytes.saturating_sub(state.held.size()))?;
        state.used_bytes = used_bytes;
        Ok(())
    }

    fn reserved(&self) -> usize {
        let state = self.state();
        match state.set_aside_bytes {
            0 => self.outer.reserved(),
            _ => state.used_bytes,
        }
    }

    fn memory_limit(&self) -> MemoryLimit {
        match self.state().set_aside_bytes {
            0 => self.outer.memory_limit(),
            set_aside_bytes => MemoryLimit::Finite(set_aside_bytes),
        }
    }
}

/// Task context in which portions are read: `context` with a pool of their own.
#[derive(Debug)]
pub(super) struct PortionsContext {
    pool: Arc<PortionsPool>,
    context: Arc<TaskContext>,
    len_bytes: usize,
}

impl PortionsContext {
    /// Builds a context in which `len_bytes` can be set aside.
    pub(super) fn new(context: &TaskContext, len_bytes: usize) -> Self {
        let pool = Arc::new(PortionsPool::new(Arc::clone(context.memory_pool())));
        let memory_pool = Arc::clone(&pool) as Arc<dyn MemoryPool>;
        let runtime = RuntimeEnv { memory_pool, ..context.runtime_env().as_ref().clone() };
        let config = context.session_config().clone();
        let context = context_with(context, config, Arc::new(runtime));
        Self { pool, context, len_bytes }
    }

    /// Returns the context of the next portion, and sets memory aside for it.
    pub(super) fn next(&self) -> Arc<TaskContext> {
        self.pool.set_aside(self.len_bytes);
        Arc::clone(&self.context)
    }
}

impl Drop for PortionsContext {
    fn drop(&mut self) {
        self.pool.give_back();
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    use super::*;

    fn reservation(name: &str, pool: &Arc<dyn MemoryPool>) -> MemoryReservation {
        MemoryConsumer::new(name).register(pool)
    }

    #[test]
    fn what_is_set_aside_is_for_portions() {
        let outer: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(100));
        let pool = Arc::new(PortionsPool::new(Arc::clone(&outer)));
        let inner: Arc<dyn MemoryPool> = Arc::clone(&pool) as _;
        pool.set_aside(40);
        assert_eq!((outer.reserved(), inner.reserved()), (70, 0));
        pool.set_aside(20);
        assert_eq!((outer.reserved(), inner.reserved()), (40, 0));
        pool.set_aside(60);
        assert_eq!((outer.reserved(), inner.reserved()), (80, 0));
        let sum = reservation("sum", &outer);
        let portion = reservation("portion", &inner);
        sum.try_grow(20).unwrap();
        assert!(sum.try_grow(1).is_err());
        portion.try_grow(50).unwrap();
        assert_eq!((outer.reserved(), inner.reserved()), (100, 50));
        assert!(matches!(inner.memory_limit(), MemoryLimit::Finite(80)));
        let refused = portion.try_grow(31).unwrap_err().to_string();
        assert!(refused.contains("TadocPortions"), "{refused}");
        assert_eq!((portion.size(), inner.reserved()), (50, 50));
        // Portions may use more than is set aside if the outer pool has room.
        sum.free();
        portion.try_grow(40).unwrap();
        assert_eq!(outer.reserved(), 90);
        portion.shrink(80);
        assert_eq!((outer.reserved(), inner.reserved()), (80, 10));
        // Memory of files that stay loaded remains reserved.
        pool.give_back();
        assert_eq!((outer.reserved(), inner.reserved()), (10, 10));
        assert!(matches!(inner.memory_limit(), MemoryLimit::Finite(100)));
        portion.free();
        assert_eq!((outer.reserved(), inner.reserved()), (0, 0));
    }

    #[test]
    fn as_much_is_set_aside_as_there_is() {
        let outer: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(100));
        let pool = PortionsPool::new(Arc::clone(&outer));
        let sum = reservation("sum", &outer);
        sum.try_grow(70).unwrap();
        pool.set_aside(60);
        assert_eq!(outer.reserved(), 100);
        sum.free();
        pool.set_aside(60);
        assert_eq!(outer.reserved(), 80);
        pool.give_back();
        assert_eq!(outer.reserved(), 0);
    }
}
