//! The order of rows that a table or a file declares, checked while the rows are read.
//!
//! ```text
//! CheckedOrderExec       each row comes behind those before it, or the statement fails
//!   DataSourceExec       output_ordering=[x ASC]: WITH ORDER (x), or what a Parquet file states
//! ```
//!
//! The planner leaves sorts out where rows are in an order already. If they are not, merges, joins, windows and
//! groups above answer wrongly. Cost: the declared columns of each row are compared with those of the row before.
//! Limit: a scan that another process runs for Ballista is not checked.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::exec_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties};
use futures::StreamExt;

use crate::file_scans::file_scan;
use crate::plan_methods::passing_methods;

/// Returns `plan` with a check above each scan of files that declares an order.
pub(crate) fn check_orders(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_down(|node| {
        if node.is::<CheckedOrderExec>() {
            return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
        }
        let Some(ordering) = declared_order(&node) else { return Ok(Transformed::no(node)) };
        let checked = Arc::new(CheckedOrderExec { input: node, ordering });
        Ok(Transformed::new(checked, true, TreeNodeRecursion::Jump))
    })
    .data()
}

/// Returns the order that a scan of files declares; `None` for other nodes, and where no column tells it.
fn declared_order(node: &Arc<dyn ExecutionPlan>) -> Option<LexOrdering> {
    file_scan(node).filter(|scan| !scan.output_ordering.is_empty())?;
    let ordering = node.output_ordering()?;
    fields_of(ordering, node).filter(|fields| RowConverter::supports_fields(fields))?;
    Some(ordering.clone())
}

fn fields_of(ordering: &LexOrdering, node: &Arc<dyn ExecutionPlan>) -> Option<Vec<SortField>> {
    let schema = node.schema();
    let field = |sort: &PhysicalSortExpr| {
        let kind = sort.expr.data_type(&schema).ok()?;
        Some(SortField::new_with_options(kind, sort.options))
    };
    ordering.iter().map(field).collect()
}

/// Plan node that checks the order of the rows of a scan.
#[derive(Debug)]
struct CheckedOrderExec {
    input: Arc<dyn ExecutionPlan>,
    ordering: LexOrdering,
}

impl DisplayAs for CheckedOrderExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            _ => write!(f, "CheckedOrderExec"),
        }
    }
}

impl ExecutionPlan for CheckedOrderExec {
    passing_methods!("CheckedOrderExec", |node, input| Ok(Self { input, ordering: node.ordering.clone() }));

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        let schema = rows.schema();
        let fields = fields_of(&self.ordering, &self.input).unwrap_or_default();
        let mut check = OrderCheck {
            ordering: self.ordering.clone(),
            converter: RowConverter::new(fields)?,
            last: None,
            files: files_of(&self.input, partition),
        };
        let rows = rows.map(move |batch| {
            let batch = batch?;
            check.batch(&batch)?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// Returns the names of the files of a partition, for errors.
fn files_of(node: &Arc<dyn ExecutionPlan>, partition: usize) -> String {
    let group = file_scan(node).and_then(|scan| scan.file_groups.get(partition));
    let files = group.into_iter().flat_map(|group| group.iter());
    let files = files.map(|file| file.object_meta.location.to_string()).collect::<Vec<_>>();
    files.join(", ")
}

/// Check of the rows of one partition, which come batch by batch.
struct OrderCheck {
    ordering: LexOrdering,
    converter: RowConverter,
    /// The last row of the batches before.
    last: Option<OwnedRow>,
    files: String,
}

impl OrderCheck {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let num_rows = batch.num_rows();
        if num_rows == 0 {
            return Ok(());
        }
        let values = |sort: &PhysicalSortExpr| sort.expr.evaluate(batch)?.into_array(num_rows);
        let columns = self.ordering.iter().map(values).collect::<Result<Vec<_>>>()?;
        let rows = self.converter.convert_columns(&columns)?;
        let is_early = |row: usize| match row.checked_sub(1) {
            Some(before) => rows.row(row) < rows.row(before),
            None => self.last.as_ref().is_some_and(|last| rows.row(row) < last.row()),
        };
        if let Some(row) = (0..num_rows).find(|row| is_early(*row)) {
            let shown = columns.iter().map(|column| array_value_to_string(column, row));
            let shown = shown.collect::<std::result::Result<Vec<_>, _>>()?.join(", ");
            return exec_err!(
                "{}: the row with {shown} stands behind one that belongs behind it in the declared order {}; leave \
                 WITH ORDER out, or sort the file",
                self.files,
                self.ordering
            );
        }
        self.last = Some(rows.row(num_rows - 1).owned());
        Ok(())
    }
}
