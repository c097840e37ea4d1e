//! Operators that make many rows of few: they let others run, and can be stopped.
//!
//! ```text
//! CooperativeExec        lets other tasks run after some batches        cooperative
//!   NestedLoopJoinExec
//!
//! StoppableExec          … and fails once the statement is stopped      stoppable
//!   NestedLoopJoinExec   its filter fails then, too
//! ```
//!
//! DataFusion makes the leaves of a plan yield to other tasks after some batches. A join can make
//! millions of rows from one batch of a leaf, so an aggregation above it would neither yield nor
//! notice that nobody waits for it any more: `SELECT count(*) FROM a, b, c` ran on for minutes after
//! its client had left. So these operators yield too ([`cooperative`]). It costs a counter for each batch.
//!
//! That does not end a join whose filter no pair passes: it compares all pairs of a batch before it
//! returns. And a task of another machine, or one that a repartition has spawned, goes on as long as
//! something holds its plan. So whoever may give a statement up sets a [`Stop`] ([`stoppable`]). It costs
//! a look at a flag for each batch, and for each row of the first side of a join. Calls of functions that are
//! charged to a memory pool look at it, too ([`Stop::added_to`]): a sort has spawned many tasks that compute keys.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{config_err, exec_err, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::coop::{CooperativeExec, make_cooperative};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::StreamExt;

use crate::plan_methods::passing_methods;

/// A sign that nobody reads the rows of a statement any more. A clone shares it.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the plans of [`stoppable`] with this sign.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns `options` with this sign. [Charged](crate::charge_calls) calls of functions that are planned with them
    /// fail after it is set, also in tasks that an operator has spawned.
    ///
    /// ```
    /// use datafusion::common::config::ConfigOptions;
    /// use datafusion_tadoc::Stop;
    ///
    /// let options = Stop::default().added_to(&ConfigOptions::new());
    /// assert!(options.extensions.get::<Stop>().is_some());
    /// ```
    pub fn added_to(&self, options: &ConfigOptions) -> ConfigOptions {
        let mut options = options.clone();
        options.extensions.insert(self.clone());
        options
    }

    /// Returns an error if the sign of `options` is set.
    pub(crate) fn check_in(options: &ConfigOptions) -> Result<()> {
        options.extensions.get::<Self>().map_or(Ok(()), Self::check)
    }

    fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            exec_err!("the statement was stopped: nobody reads its rows")
        } else {
            Ok(())
        }
    }
}

impl ConfigExtension for Stop {
    const PREFIX: &'static str = "tadoc_stop";
}

/// The sign is no setting: it has no entries.
impl ExtensionOptions for Stop {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _value: &str) -> Result<()> {
        config_err!("there is no setting {key}")
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

/// Returns `plan` with operators that yield where rows multiply.
///
/// # Errors
/// An operator does not take its input, which is an error of the plan.
pub fn cooperative(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let wrap = |node: Arc<dyn ExecutionPlan>| {
        Ok(if multiplies_rows(node.name()) {
            Transformed::yes(Arc::new(CooperativeExec::new(node)) as _)
        } else {
            Transformed::no(node)
        })
    };
    Ok(plan.transform_up(wrap)?.data)
}

/// Returns a plan of [`cooperative`] whose operators fail after `stop` is set, where rows multiply. It has
/// the same number of nodes.
///
/// # Errors
/// An operator does not take its input, which is an error of the plan.
pub fn stoppable(plan: Arc<dyn ExecutionPlan>, stop: &Stop) -> Result<Arc<dyn ExecutionPlan>> {
    let replace = |node: Arc<dyn ExecutionPlan>| {
        if let Some(join) = with_stoppable_filter(node.as_ref(), stop)? {
            return Ok(Transformed::yes(join));
        }
        let yielding = node.downcast_ref::<CooperativeExec>().map(CooperativeExec::input);
        Ok(match yielding.filter(|input| multiplies_rows(input.name())) {
            Some(input) => {
                let input = Arc::clone(input);
                let stop = stop.clone();
                Transformed::yes(Arc::new(StoppableExec { input, stop }) as _)
            }
            None => Transformed::no(node),
        })
    };
    Ok(plan.transform_up(replace)?.data)
}

fn multiplies_rows(name: &str) -> bool {
    name.ends_with("JoinExec") || ["UnnestExec", "RecursiveQueryExec"].contains(&name)
}

/// Returns the join `node` with a filter that fails after `stop` is set; `None` if it is none, or has no
/// filter.
fn with_stoppable_filter(node: &dyn ExecutionPlan, stop: &Stop) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let stoppable = |filter: &JoinFilter| {
        let inner = Arc::clone(filter.expression());
        let stop = stop.clone();
        let expression = Arc::new(StoppableFilter { inner, stop });
        let columns = filter.column_indices().to_vec();
        Some(JoinFilter::new(expression, columns, Arc::clone(filter.schema())))
    };
    if let Some((join, filter)) =
        node.downcast_ref::<NestedLoopJoinExec>().and_then(|join| Some((join, join.filter()?)))
    {
        let builder = NestedLoopJoinExecBuilder::from(join).with_filter(stoppable(filter));
        return Ok(Some(Arc::new(builder.build()?)));
    }
    if let Some((join, filter)) = node.downcast_ref::<HashJoinExec>().and_then(|join| Some((join, join.filter()?))) {
        return Ok(Some(join.builder().with_filter(stoppable(filter)).build_exec()?));
    }
    Ok(None)
}

/// Plan node that returns the rows of its input, yields after some batches, and fails once the statement
/// is stopped.
#[derive(Debug)]
struct StoppableExec {
    input: Arc<dyn ExecutionPlan>,
    stop: Stop,
}

impl DisplayAs for StoppableExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            _ => write!(f, "StoppableExec"),
        }
    }
}

impl ExecutionPlan for StoppableExec {
    passing_methods!("StoppableExec", |node, input| Ok(Self { input, stop: node.stop.clone() }));

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = make_cooperative(self.input.execute(partition, context)?);
        let schema = rows.schema();
        let stop = self.stop.clone();
        let checked = rows.map(move |batch| stop.check().and(batch));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, checked)))
    }
}

/// A filter of a join that fails once the statement is stopped. It is compared as the filter is.
#[derive(Debug)]
struct StoppableFilter {
    inner: Arc<dyn PhysicalExpr>,
    stop: Stop,
}

impl PartialEq for StoppableFilter {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for StoppableFilter {}

impl Hash for StoppableFilter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl fmt::Display for StoppableFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for StoppableFilter {
    fn return_field(&self, input: &Schema) -> Result<FieldRef> {
        self.inner.return_field(input)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.stop.check()?;
        self.inner.evaluate(batch)
    }

    fn evaluate_selection(&self, batch: &RecordBatch, selection: &BooleanArray) -> Result<ColumnarValue> {
        self.stop.check()?;
        self.inner.evaluate_selection(batch, selection)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        match (children.pop(), children.len()) {
            (Some(inner), 0) => Ok(Arc::new(Self { inner, stop: self.stop.clone() })),
            (_, more) => internal_err!("a stoppable filter has one child, got {more} more"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::physical_plan::{collect, displayable};
    use datafusion::prelude::SessionContext;

    use super::*;

    async fn planned(sql: &str) -> (Arc<dyn ExecutionPlan>, Arc<TaskContext>) {
        let frame = SessionContext::new().sql(sql).await.unwrap();
        let task = Arc::new(frame.task_ctx());
        (cooperative(frame.create_physical_plan().await.unwrap()).unwrap(), task)
    }

    fn shown(plan: &Arc<dyn ExecutionPlan>) -> String {
        displayable(plan.as_ref()).indent(false).to_string()
    }

    fn sorted_rows(batches: &[RecordBatch]) -> Vec<String> {
        let table = pretty_format_batches(batches).unwrap().to_string();
        let mut rows: Vec<String> = table.lines().map(str::to_owned).collect();
        rows.sort_unstable();
        rows
    }

    #[tokio::test]
    async fn a_join_of_many_rows_can_be_stopped() {
        let numbers = "(SELECT * FROM generate_series(1, 20000))";
        let sql = format!("SELECT count(*) FROM {numbers} a, {numbers} b, {numbers} c");
        let (plan, task) = planned(&sql).await;
        assert!(shown(&plan).contains("CooperativeExec"));
        let started = Instant::now();
        let rows = tokio::time::timeout(Duration::from_millis(300), collect(plan, task));
        assert!(rows.await.is_err());
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn joins_without_rows_end_when_they_are_stopped() {
        let numbers = "(SELECT * FROM generate_series(1, 300000))";
        let [a, b] = ["a", "b"].map(|name| format!("{numbers} {name}"));
        for (condition, node) in [
            ("a.value + b.value < 0", "NestedLoopJoinExec"),
            ("a.value % 2 = b.value % 2 AND a.value + b.value < 0", "HashJoinExec"),
        ] {
            let (plan, task) = planned(&format!("SELECT count(*) FROM {a} JOIN {b} ON {condition}")).await;
            assert!(shown(&plan).contains(node), "{}", shown(&plan));
            let stop = Stop::default();
            let plan = stoppable(plan, &stop).unwrap();
            assert!(shown(&plan).contains("StoppableExec"), "{}", shown(&plan));
            let started = Instant::now();
            // The joins may take all threads of the runtime, with its clock.
            let setter = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(300));
                stop.set();
            });
            let error = collect(plan, task).await.unwrap_err().to_string();
            setter.join().unwrap();
            assert!(error.contains("nobody reads its rows"), "{error}");
            assert!(started.elapsed() < Duration::from_secs(10), "{condition}");
        }
    }

    #[tokio::test]
    async fn rows_are_those_without_a_stop() {
        let numbers = "(SELECT * FROM generate_series(1, 40))";
        for sql in [
            format!("SELECT * FROM {numbers} a JOIN {numbers} b ON a.value + b.value < 7"),
            format!("SELECT * FROM {numbers} a LEFT JOIN {numbers} b ON a.value * b.value = 12"),
            format!("SELECT * FROM {numbers} a JOIN {numbers} b ON a.value % 3 = b.value % 3 AND a.value < b.value"),
            format!("SELECT * FROM {numbers} a, {numbers} b"),
        ] {
            let (plan, task) = planned(&sql).await;
            let expected = sorted_rows(&collect(plan, task).await.unwrap());
            let (plan, task) = planned(&sql).await;
            let plan = stoppable(plan, &Stop::default()).unwrap();
            assert_eq!(sorted_rows(&collect(plan, task).await.unwrap()), expected, "{sql}");
        }
    }
}
