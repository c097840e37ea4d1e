//! Plans whose rows come one plan after another, so that one of them is in memory at a time.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Int64Array, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::compute::kernels::numeric::add;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PhysicalExpr,
    PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};

/// The column whose numbers count from the first document of a portion.
pub(super) const DOC_ID: &str = "doc_id";

/// The rows of all inputs, in order; see the module's description.
#[derive(Debug)]
pub(super) struct PortionsExec {
    /// Portions of the corpus, those that are not read included.
    num_portions: usize,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    /// What is added to ids of documents of each input.
    first_doc_ids: Vec<u64>,
    properties: Arc<PlanProperties>,
}

impl PortionsExec {
    /// The rows of `inputs`, which have the columns of `schema` and may say less of them, each with the first of its
    /// documents. All rows together are ordered by the columns `ordering`, as far as they are there.
    ///
    /// # Errors
    /// None that is known.
    pub(super) fn try_new(
        num_portions: usize,
        inputs: Vec<(Arc<dyn ExecutionPlan>, u64)>,
        schema: SchemaRef,
        ordering: &[&str],
    ) -> Result<Self> {
        let mut equivalence = EquivalenceProperties::new(Arc::clone(&schema));
        let ordering = ordering.iter().map_while(|name| col(name, &schema).ok());
        let ordering = ordering.map(|expr| PhysicalSortExpr::new(expr, SortOptions::default()));
        if let Some(ordering) = LexOrdering::new(ordering) {
            equivalence.add_ordering(ordering);
        }
        let properties = PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (inputs, first_doc_ids) = inputs.into_iter().unzip();
        Ok(Self { num_portions, inputs, first_doc_ids, properties: Arc::new(properties) })
    }
}

impl DisplayAs for PortionsExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (num_portions, num_read) = (self.num_portions, self.inputs.len());
        match format {
            DisplayFormatType::TreeRender => write!(f, "portions={num_portions}\nread={num_read}"),
            _ => write!(f, "TadocPortionsExec: portions={num_portions}, read={num_read}"),
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

    fn maintains_input_order(&self) -> Vec<bool> {
        // An order that each of several inputs has is none of all rows: a sort must not go below.
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
            return internal_err!(
                "TadocPortionsExec has {} inputs, got {}",
                self.inputs.len(),
                children.len()
            );
        }
        let (num_portions, first_doc_ids) = (self.num_portions, self.first_doc_ids.clone());
        let properties = Arc::clone(&self.properties);
        Ok(Arc::new(Self { num_portions, inputs: children, first_doc_ids, properties }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition > 0 {
            return internal_err!("TadocPortionsExec has no partition {partition}");
        }
        let schema = self.schema();
        let inputs = self.inputs.clone().into_iter().zip(self.first_doc_ids.clone());
        let labels = Arc::clone(&schema);
        let streams = inputs.map(move |(input, first_doc_id)| {
            // Only now: what is before has ended, and given back its memory.
            let rows = input.execute(0, Arc::clone(&context))?;
            let labels = Arc::clone(&labels);
            Ok::<_, DataFusionError>(rows.map(move |batch| labelled(batch?, &labels, first_doc_id)))
        });
        let rows = stream::iter(streams).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// `batch` with ids of the whole, and with what `schema` says of its columns: sums of counts may be NULL by their
/// type.
fn labelled(batch: RecordBatch, schema: &SchemaRef, first_doc_id: u64) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let mut columns = batch.columns().to_vec();
    if let (true, Ok(at)) = (first_doc_id > 0, schema.index_of(DOC_ID)) {
        columns[at] = add(&columns[at], &Int64Array::new_scalar(first_doc_id as i64))?;
    }
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
