//! The plan node that lets Ballista divide the partitions of a scan between tasks.
//!
//! ```text
//! partitions of a scan         0   1   2   3
//! numbers, a table in memory  (0) (1) (2) (3)      a task with the slice 1, 3 gets (1) (3)
//! ```
//!
//! A task of Ballista has a plan whose leaves were cut to the partitions of the task, and runs all that the
//! plan then has. Ballista knows how to cut its own leaves and those of DataFusion. Any other leaf stays
//! whole, and each task returns the rows of all partitions. So this node has a child that Ballista cuts: a
//! table in memory with a number in each partition. It returns the rows of the leaf's partitions with those
//! numbers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Statistics, internal_err, plan_err};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};

/// A table whose scans Ballista can divide.
#[derive(Debug)]
pub(crate) struct SlicedTable(pub(crate) Arc<dyn TableProvider>);

#[async_trait]
impl TableProvider for SlicedTable {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        self.0.table_type()
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.0.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        sliced(self.0.scan(session, projection, filters, limit).await?)
    }
}

/// Returns `plan` with leaves that Ballista can cut.
fn sliced(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let is_known = node.is::<DataSourceExec>() || node.is::<EmptyExec>() || node.is::<PlaceholderRowExec>();
        if is_known || !node.children().is_empty() {
            return Ok(Transformed::no(node));
        }
        Ok(Transformed::yes(Arc::new(SlicedExec::from_leaf(node)?) as Arc<dyn ExecutionPlan>))
    })
    .data()
}

/// Some partitions of a leaf. See the module's description.
#[derive(Debug)]
pub(crate) struct SlicedExec {
    pub(crate) leaf: Arc<dyn ExecutionPlan>,
    numbers: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl SlicedExec {
    /// Returns all partitions of `leaf`.
    fn from_leaf(leaf: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let schema = numbers_schema();
        let partition = |number: usize| {
            let numbers = UInt64Array::from(vec![number as u64]);
            Ok(vec![RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(numbers)])?])
        };
        let num_partitions = leaf.output_partitioning().partition_count();
        let partitions = (0..num_partitions).map(partition).collect::<Result<Vec<_>>>()?;
        let numbers = MemorySourceConfig::try_new(&partitions, Arc::clone(&schema), None)?;
        Self::try_new(leaf, DataSourceExec::from_data_source(numbers))
    }

    /// Returns the partitions of `leaf` with the rows of `numbers`: a partition of numbers for each.
    ///
    /// # Errors
    /// An error if the rows of `numbers` are no numbers.
    pub(crate) fn try_new(leaf: Arc<dyn ExecutionPlan>, numbers: Arc<dyn ExecutionPlan>) -> Result<Self> {
        if numbers.schema() != numbers_schema() {
            return plan_err!("expected numbers of partitions, got rows of {}", numbers.schema());
        }
        let leaf_properties = leaf.properties();
        let properties = PlanProperties::new(
            leaf_properties.eq_properties.clone(),
            Partitioning::UnknownPartitioning(numbers.output_partitioning().partition_count()),
            leaf_properties.emission_type,
            leaf_properties.boundedness,
        )
        .with_scheduling_type(leaf_properties.scheduling_type);
        Ok(Self { leaf, numbers, properties: Arc::new(properties) })
    }
}

fn numbers_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("partition", DataType::UInt64, false)]))
}

impl DisplayAs for SlicedExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !matches!(format, DisplayFormatType::TreeRender) {
            write!(f, "SlicedExec: ")?;
        }
        self.leaf.fmt_as(format, f)
    }
}

impl ExecutionPlan for SlicedExec {
    fn name(&self) -> &str {
        "SlicedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.numbers]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.leaf.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([numbers]) => Ok(Arc::new(Self::try_new(Arc::clone(&self.leaf), numbers)?)),
            Err(children) => internal_err!("SlicedExec has one child, got {}", children.len()),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let numbers = self.numbers.execute(partition, Arc::clone(&context))?;
        let leaf = Arc::clone(&self.leaf);
        let rows = numbers.map(move |batch| {
            let numbers = batch?.column(0).as_primitive::<UInt64Type>().values().to_vec();
            let leaf = Arc::clone(&leaf);
            let context = Arc::clone(&context);
            let parts = numbers.into_iter().map(move |number| {
                let number = usize::try_from(number).unwrap_or(usize::MAX);
                leaf.execute(number, Arc::clone(&context))
            });
            Ok::<_, DataFusionError>(stream::iter(parts).try_flatten())
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows.try_flatten())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.leaf.metrics()
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match args.partition() {
            None => self.leaf.statistics_from_inputs(&[], args),
            Some(_) => Ok(Arc::new(Statistics::new_unknown(&self.schema()))),
        }
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let leaf = Arc::clone(&self.leaf);
        let numbers = Arc::clone(&self.numbers);
        Ok(Arc::new(Self::try_new(leaf.reset_state()?, numbers.reset_state()?)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::SessionContext;

    #[tokio::test]
    async fn a_slice_has_the_rows_of_its_partitions() {
        let ctx = SessionContext::new();
        let batch = |number: u64| {
            let numbers = UInt64Array::from(vec![number * 10, number * 10 + 1]);
            RecordBatch::try_new(numbers_schema(), vec![Arc::new(numbers)]).unwrap()
        };
        let partitions: Vec<Vec<RecordBatch>> = (0..4).map(|number| vec![batch(number)]).collect();
        let leaf = MemorySourceConfig::try_new(&partitions, numbers_schema(), None).unwrap();
        let leaf = DataSourceExec::from_data_source(leaf);
        let whole: Arc<dyn ExecutionPlan> = Arc::new(SlicedExec::from_leaf(leaf).unwrap());
        assert_eq!(whole.output_partitioning().partition_count(), 4);
        let slice = [1u64, 3].map(|number| {
            let number = UInt64Array::from(vec![number]);
            vec![RecordBatch::try_new(numbers_schema(), vec![Arc::new(number)]).unwrap()]
        });
        let numbers = MemorySourceConfig::try_new(&slice, numbers_schema(), None).unwrap();
        let numbers: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(numbers);
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        let some = whole.replace_children(vec![numbers], options).unwrap();
        assert_eq!(some.output_partitioning().partition_count(), 2);
        let mut rows = Vec::new();
        for partition in 0..2 {
            let stream = some.execute(partition, ctx.task_ctx()).unwrap();
            let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
            let values = batches.iter().map(|b| b.column(0).as_primitive::<UInt64Type>().values());
            rows.push(values.flatten().copied().collect::<Vec<u64>>());
        }
        assert_eq!(rows, [[10, 11], [30, 31]]);
    }
}
